"""Where the page of a rule is found: on the web, or on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from migrator import __version__

VARIABLE = "TF_MIGRATE_DOCS"

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
body {{ margin: 0 auto; max-width: 50rem; padding: 1rem; font: 1rem/1.5 system-ui, sans-serif; }}
pre {{ padding: .75rem; border: 1px solid; border-radius: .5rem; white-space: pre-wrap; overflow-wrap: anywhere; }}
code {{ font: .875em ui-monospace, monospace; overflow-wrap: anywhere; }}
</style>
</head>
<body>
<main>
{body}</main>
</body>
</html>
"""


def rule_urls(codes: Iterable[str], *, here: bool) -> dict[str, str]:
    """The addresses of the rules' pages by code; a code that has none is left out.

    They are those of the documentation on the web, which the variable TF_MIGRATE_DOCS names, or else the installed
    package. Where neither does, and `here` says that the reader is on this machine, they are files in the user's cache.
    """
    wanted = sorted(set(codes))
    base = _on_the_web()
    if base is not None:
        return {code: f"{base}/rules/{code}.html" for code in wanted}
    return _files(wanted) if here and wanted else {}


def page_html(markdown: str) -> str:
    """A rule's page as a piece of HTML."""
    from markdown_it import MarkdownIt

    rendered: str = MarkdownIt().render(markdown)
    return rendered


def _on_the_web() -> str | None:
    said = os.environ.get(VARIABLE, "").strip()
    if said.startswith(("https://", "http://")):
        return said.rstrip("/")
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        urls = metadata("tf-migrate").get_all("Project-URL") or []
    except PackageNotFoundError:
        return None
    for label, _, url in (one.partition(", ") for one in urls):
        host = urlsplit(url).hostname or ""
        # example.com is nobody's (RFC 2606): it stands where an address is still to be filled in.
        if label == "Documentation" and host and not f".{host}".endswith((".example.com", ".example.org")):
            return str(url).rstrip("/")
    return None


def _files(codes: list[str]) -> dict[str, str]:
    """The pages as files, which are written where they are not there yet, or are those of another version."""
    from migrator.folders import cache_folder

    folder = cache_folder() / "rules" / __version__
    missing = [code for code in codes if not (folder / f"{code}.html").is_file()]
    try:
        if missing:
            _write(folder, set(missing))
        return {code: path.as_uri() for code in codes if (path := folder / f"{code}.html").is_file()}
    except OSError:
        return {}


def _write(folder: Path, codes: set[str]) -> None:
    from html import escape

    from migrator.rules.catalogue import all_rules

    folder.mkdir(parents=True, exist_ok=True)
    for rule in all_rules():
        if rule.code in codes:
            title = escape(f"{rule.code}: {rule.title}")
            made = folder / f".{rule.code}.{os.getpid()}"
            made.write_text(_PAGE.format(title=title, body=page_html(rule.page())), encoding="utf-8")
            made.replace(folder / f"{rule.code}.html")
