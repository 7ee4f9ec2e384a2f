"""Text from the programs is never taken for anything but text."""

from __future__ import annotations

import io
import re
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from junitparser import JUnitXml
from report_documents import KINDS, reports
from rich.console import Console
from test_report_page import parse

from migrator.harness.report import github, html, json_report, junit, terminal
from migrator.harness.report.document import Report, plain
from migrator.harness.report.texts import clean

RICH = reports(rich=True, steps=5)
MARK = "<b id=x onclick='y'>\"&{{ 7*7 }}{% raw %}</script><script>alert(1)</script></style></pre>-->]]>"
#: Values that the schema confines to a list, and texts that the tool itself composes.
CONFINED = re.compile(
    r"/(schema_version|name|version|verdict|status|reason_code|reason|decided_by|id|level|expected_level|killed_at"
    r"|treatment|kind|program|role|part|sha256|initial_sha256|started|saved|dtype|exit)$"
)


def poisoned(value: Any, text: str, path: str = "") -> Any:
    """The document with `text` in every place that can hold any text, among them the keys that are names of tasks."""
    if isinstance(value, dict):
        return {
            (f"{text}{key}" if path.endswith("/participation/steps") else key): poisoned(item, text, f"{path}/{key}")
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [poisoned(item, text, path) for item in value]
    if isinstance(value, str) and not (CONFINED.search(path) and not path.startswith("/mutants/id")):
        return text
    return value


def with_everything(kind: str, text: str) -> Report:
    document = poisoned(RICH[kind].document, text)
    document["participation"] = [{"program": "original", "steps": {text: 3}}]
    document["environment"]["original"] = {"python": text, "tensorflow": text, "keras": text}
    document["baseline"] = {
        "file": text,
        "saved": "2026-01-01T00:00:00+00:00",
        "verdict": "EQUIVALENT",
        "changes": [{"what": text, "before": text, "after": text, "counts": True}],
        "accepted": True,
        "reason": text,
    }
    document["processes"][0].update(tail=[text], exit=f"SIG{text}")
    return Report(plain(document))


def tags(made: Report) -> list[str]:
    return [tag for tag, _ in parse(html.render(made)).elements]


def test_markup_in_every_field_changes_no_element() -> None:
    for kind in KINDS:
        poisoned_page, harmless = with_everything(kind, MARK), with_everything(kind, "x")
        json_report.validate(poisoned_page.document)
        text = html.render(poisoned_page)
        assert tags(poisoned_page) == tags(harmless)
        assert "alert(1)</script>" not in text and "<b id" not in text and "49" not in re.sub(r"\d{3,}", "", MARK)
        parsed = parse(text)
        assert parsed.visible.count(MARK) > 10
        assert [a for a in parsed.attributes if a[1].startswith("on")] == []


# Anything that Python can hold, half surrogate pairs and control characters among it.
ANY = st.text(st.characters(exclude_categories=()), min_size=1, max_size=40)


@settings(max_examples=40, deadline=None)
@given(ANY, st.sampled_from(KINDS))
def test_any_text_can_be_written_and_read_everywhere(text: str, kind: str) -> None:
    made = with_everything(kind, text)
    json_report.render(made).encode("utf-8")
    html.render(made).encode("utf-8")
    (suite,) = JUnitXml.fromstring(junit.render(made).encode("utf-8"))
    assert len(list(suite)) == len(made.document["levels"]) + 1
    stream = io.StringIO()
    terminal.show(made, Console(file=stream, width=80, force_terminal=True, color_system=None))
    stream.getvalue().encode("utf-8")
    github.summary(made).encode("utf-8")


@settings(max_examples=40, deadline=None)
@given(ANY, st.sampled_from(KINDS))
def test_no_text_changes_the_elements_of_the_page(text: str, kind: str) -> None:
    assert tags(with_everything(kind, text)) == tags(with_everything(kind, "x"))


@settings(max_examples=60, deadline=None)
@given(ANY)
def test_no_text_becomes_a_workflow_command_or_a_field_of_one(text: str) -> None:
    line = github.workflow_command("error", text, file=text, line=3, title=text)
    assert not re.search(r"[\r\n]", line)
    match = re.fullmatch(r"::error file=([^,:]*),line=3,title=([^,:]*)::(.*)", line)
    assert match is not None

    def read(field: str) -> str:
        for code, character in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
            field = field.replace(code, character)
        return field

    assert read(match[1]) == read(match[2]) == read(match[3]) == clean(text)


def test_orders_to_a_terminal_are_left_out() -> None:
    text = "\x1b[31mred\x1b[0m \x1b]0;title\x07\x1b]8;;http://x\x1b\\link\x1b(B \x9b1m\ra\tb\nc\x00\x08"
    assert clean(text) == "red link(B 1ma\tb\nc"
    stream = io.StringIO()
    terminal.show(
        with_everything("FAILED", text), Console(file=stream, width=80, force_terminal=True, color_system=None)
    )
    assert "\x1b]" not in stream.getvalue() and "\x1b[31m" not in stream.getvalue()


@settings(max_examples=60, deadline=None)
@given(ANY)
def test_markdown_takes_no_text_for_markup(text: str) -> None:
    made = with_everything("DIFFERENT", text)
    # Within <pre> nothing is markup to Markdown, and no text can end it.
    summary, harmless = (
        re.sub(r"<pre>.*?</pre>", "", github.summary(found), flags=re.DOTALL)
        for found in (made, with_everything("DIFFERENT", "x"))
    )
    for mark in ("|", "<", "`", "**", "[", "\n## ", "\n### ", "\n- ", "\n1. "):
        assert summary.count(mark) == harmless.count(mark), mark
