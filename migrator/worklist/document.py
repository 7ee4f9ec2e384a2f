"""The worklist as plain data, which all of its renderings are made of."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from migrator import __version__
from migrator.findings import Finding
from migrator.report.pages import page_html, rule_urls
from migrator.worklist.plan import by_reason, counts, duration, efforts, openings
from migrator.worklist.programs import Program, Reason

FORMAT = 1
"""Raised when a key changes its meaning or goes; new keys may come at any time."""


def document(programs: Sequence[Program], problems: Sequence[Finding], titles: Mapping[str, str]) -> dict[str, Any]:
    """The whole worklist; `problems` are files that cannot be read, `titles` those of the rules by code."""
    parts = efforts(programs)
    urls = rule_urls((reason.code for program in programs for reason in program.reasons), here=True)
    facts = {code: (title, urls.get(code)) for code, title in titles.items()}
    minutes = sum(part.minutes for part in parts)
    return {
        "format": FORMAT,
        "tool": {"name": "tf-migrate", "version": __version__},
        "programs": {"total": len(programs), **counts(programs)},
        "effort": {
            "minutes": minutes,
            "about": duration(minutes),
            "measured": False,
            "parts": [{"what": part.what, "count": part.count, "minutes": part.minutes} for part in parts],
        },
        "openings": [
            {
                "reasons": [_reason(one, facts) for one in opening.reasons],
                "programs": [p.place for p in opening.programs],
            }
            for opening in openings(programs)
        ],
        "reasons": [
            {**_reason(reason, facts), "programs": [one.place for one in some], "alone": alone}
            for reason, some, alone in by_reason(programs)
        ],
        "list": [_program(program, facts) for program in programs],
        "unreadable": [{"place": one.place, "code": one.code, "message": one.message} for one in problems],
    }


def to_json(data: Mapping[str, Any]) -> str:
    """Returns one JSON object, ASCII only, with a final newline."""
    return json.dumps(data, indent=2) + "\n"


def to_html(data: Mapping[str, Any]) -> str:
    """Returns one page that needs no other file."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    from migrator.rules.catalogue import all_rules

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    codes = {one["code"] for one in (*data["reasons"], *data["unreadable"])}
    codes |= {one["code"] for program in data["list"] for one in program["reviews"]}
    pages = [(rule, page_html(rule.text.strip())) for rule in all_rules() if rule.code in codes]
    return environment.get_template("page.html.jinja").render(data=data, pages=pages) + "\n"


def _reason(reason: Reason, facts: Mapping[str, tuple[str, str | None]]) -> dict[str, Any]:
    title, url = facts.get(reason.code, ("", None))
    return {
        "code": reason.code,
        "what": reason.what,
        "is_symbol": reason.is_symbol,
        "title": title,
        "url": url,
    }


def _program(program: Program, facts: Mapping[str, tuple[str, str | None]]) -> dict[str, Any]:
    return {
        "place": program.place,
        "path": program.path,
        **({"cell": program.cell} if program.cell else {}),
        "line": program.line,
        "makes": program.made,
        "form": program.form,
        "files": list(program.files),
        "blocking": [
            {**_reason(reason, facts), "findings": [{"place": one.place, "message": one.message} for one in some]}
            for reason, some in program.blocking
        ],
        "reviews": [{"place": one.place, "code": one.code, "message": one.message} for one in program.reviews],
    }
