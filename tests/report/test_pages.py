"""Every code has an address: on the web where the documentation is, else on this machine."""

from __future__ import annotations

import io
import json
from email.message import Message
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest

from migrator.findings import Finding, Severity
from migrator.report.json import to_json
from migrator.report.outcome import FileOutcome, Outcome
from migrator.report.pages import rule_urls
from migrator.report.sarif import to_sarif
from migrator.report.text import print_text

CODES = ("TFM203", "TFM911")
BLOCKED = Finding("x.py", 1, 1, "TFM203", Severity.MANUAL, "no")
OUTCOME = Outcome((FileOutcome("x.py", False, False, (BLOCKED,)),), False, False)


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A tool without an address, whose user has a cache; returns the cache."""
    monkeypatch.delenv("TF_MIGRATE_DOCS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a cache"))
    published(monkeypatch)
    return tmp_path / "a cache/tf-migrate"


def published(monkeypatch: pytest.MonkeyPatch, *urls: str) -> None:
    def metadata(name: str) -> Message:
        made = Message()
        for url in urls:
            made["Project-URL"] = url
        return made

    monkeypatch.setattr("importlib.metadata.metadata", metadata)


def test_the_variable_comes_before_the_package(monkeypatch: pytest.MonkeyPatch, nowhere: Path) -> None:
    published(monkeypatch, "Source, https://code.test/x", "Documentation, https://docs.test/tf-migrate/")
    assert rule_urls(CODES, here=False)["TFM911"] == "https://docs.test/tf-migrate/rules/TFM911.html"
    monkeypatch.setenv("TF_MIGRATE_DOCS", "https://ours.test/")
    assert rule_urls(CODES, here=False) == {code: f"https://ours.test/rules/{code}.html" for code in CODES}
    assert not nowhere.exists()


@pytest.mark.parametrize("url", ["https://example.com/tf-migrate/docs", "https://docs.example.org", "no address"])
def test_no_address_is_made_up(monkeypatch: pytest.MonkeyPatch, nowhere: Path, url: str) -> None:
    published(monkeypatch, f"Documentation, {url}")
    assert rule_urls(CODES, here=False) == {}
    assert "helpUri" not in json.loads(to_sarif(OUTCOME))["runs"][0]["tool"]["driver"]["rules"][0]


def test_a_tree_that_is_not_installed_has_pages_on_this_machine(monkeypatch: pytest.MonkeyPatch, nowhere: Path) -> None:
    def metadata(name: str) -> Message:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.metadata", metadata)
    urls = rule_urls((*CODES, "TFM000"), here=True)
    assert urls.keys() == set(CODES), "there is no such rule"
    for code, url in urls.items():
        page = Path(url2pathname(urlsplit(url).path))
        assert page.is_relative_to(nowhere)
        assert f"<h1>{code}: " in page.read_text(encoding="utf-8")
    assert sorted(path.name for path in page.parent.iterdir()) == ["TFM203.html", "TFM911.html"]


def test_findings_name_them(monkeypatch: pytest.MonkeyPatch, nowhere: Path) -> None:
    (url,) = rule_urls(["TFM203"], here=True).values()
    assert json.loads(to_json(OUTCOME))["findings"][0]["url"] == url

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    terminal, plain = Terminal(), io.StringIO()
    for stream in (terminal, plain):
        print_text(OUTCOME, stream)
    assert url in terminal.getvalue() and "\x1b]8;" in terminal.getvalue()
    assert plain.getvalue().startswith("x.py:1:1: TFM203 no\n")


def test_a_cache_that_cannot_be_written_costs_the_address_only(nowhere: Path) -> None:
    nowhere.parent.mkdir()
    nowhere.write_text("a file")
    assert rule_urls(CODES, here=True) == {}
    assert json.loads(to_json(OUTCOME))["findings"][0]["url"] is None
