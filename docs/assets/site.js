// What the theme leaves out for screen readers and keyboards: a name for its search, a way into tables that scroll.
document$.subscribe(() => {
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
  setTimeout(() => document.querySelectorAll(".md-typeset__scrollwrap").forEach((one) => (one.tabIndex = 0)), 0);
});
