// Sorting, reading values off a curve, and copying. The page says everything without it.
"use strict";
(function () {
  function number(cell) {
    const text = cell.dataset.value === undefined ? cell.textContent.trim() : cell.dataset.value;
    if (text === "Infinity" || text === "NaN") return Infinity;
    const value = parseFloat(text);
    return isNaN(value) ? null : value;
  }

  function compare(a, b, numeric) {
    if (!numeric) return a.textContent.localeCompare(b.textContent, undefined, { numeric: true });
    const x = number(a), y = number(b);
    if (x === null || y === null) return (x === null) - (y === null);
    return x === y ? 0 : x - y;
  }

  function unfold(table) {
    const more = document.getElementById(table.dataset.more || "");
    if (!more) return;
    table.tBodies[0].append(...more.querySelectorAll("tbody > tr"));
    more.remove();
  }

  function sort(table, heading, column) {
    unfold(table);
    const down = heading.getAttribute("aria-sort") !== "descending";
    const numeric = heading.classList.contains("n");
    const rows = Array.from(table.tBodies[0].rows);
    rows.sort((a, b) => (down ? -1 : 1) * compare(a.cells[column], b.cells[column], numeric));
    for (const other of heading.parentNode.cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    table.tBodies[0].append(...rows);
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    Array.from(table.tHead.rows[0].cells).forEach((heading, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      button.addEventListener("click", () => sort(table, heading, column));
      heading.append(button);
    });
  }

  function nearest(points, step) {
    return points.reduce((best, point) => (Math.abs(point[0] - step) < Math.abs(best[0] - step) ? point : best));
  }

  function follow(figure, chart) {
    const svg = figure.querySelector("svg");
    const cursor = figure.querySelector(".cursor");
    const readout = document.getElementById(figure.dataset.readout);
    const steps = chart.curves[chart.curves.length - 1].points.map((point) => point[0]);
    let at = 0;

    function show(step) {
      const place = (100 * (step - chart.first)) / (chart.last - chart.first) + "%";
      cursor.setAttribute("x1", place);
      cursor.setAttribute("x2", place);
      cursor.removeAttribute("visibility");
      const values = chart.curves.map((curve) => curve.label + " " + nearest(curve.points, step)[1].toPrecision(7));
      readout.textContent = "Step " + step + ": " + values.reverse().join(", ");
    }

    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const step = chart.first + ((event.clientX - box.left) / box.width) * (chart.last - chart.first);
      at = steps.indexOf(nearest(steps.map((s) => [s]), step)[0]);
      show(steps[at]);
    });
    svg.setAttribute("tabindex", "0");
    svg.addEventListener("keydown", (event) => {
      const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!move) return;
      event.preventDefault();
      at = Math.min(steps.length - 1, Math.max(0, at + move));
      show(steps[at]);
    });
  }

  const data = JSON.parse(document.getElementById("data").textContent);
  for (const chart of data.charts) {
    const figure = document.getElementById(chart.id);
    if (figure) follow(figure, chart);
  }

  const command = document.querySelectorAll("p.command");
  for (const line of command) {
    const button = document.createElement("button");
    const code = line.querySelector("code");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.setAttribute("aria-label", "Copy the command");
    button.addEventListener("click", () => {
      const said = (text) => { button.textContent = text; };
      const select = () => {
        getSelection().selectAllChildren(code);
        said("Selected");
      };
      if (navigator.clipboard) navigator.clipboard.writeText(code.textContent).then(() => said("Copied"), select);
      else select();
    });
    line.append(button);
  }

  addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details")) details.open = true;
  });
})();
