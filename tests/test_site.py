"""The documents as a site: every link leads somewhere, every page is in it, and nothing is fetched from elsewhere."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    shutil.copy(ROOT / "mkdocs.yml", folder)
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("rules"))
    pages = "import sys; sys.path[:0] = ['.', 'tools']; import make_docs, pathlib; "
    pages += f"make_docs.make_rule_pages(pathlib.Path({str(folder / 'docs/rules')!r}))"
    subprocess.run([sys.executable, "-c", pages], cwd=ROOT, check=True)
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", "site"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder / "site"


def test_every_page_is_there_and_found(site: Path) -> None:
    documents = [
        path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "rules"
    ]
    assert len(documents) > 12
    for document in documents:
        page = document.with_suffix(".html")
        assert (site / (page.with_name("index.html") if page.name == "README.html" else page)).exists(), document
    entries = json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))["docs"]
    places = {entry["location"].partition("#")[0] for entry in entries}
    assert {"rules/TFM203.html", "rules/catalogue.html", "tutorials/tpu.html"} <= places
    first = next(entry for entry in entries if entry["location"] == "index.html")
    assert first["title"] == "module 'tensorflow' has no attribute 'estimator'"


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    for page in (site / "index.html", site / "tutorials/repository.html", site / "figures/terminal.svg"):
        text = page.read_text(encoding="utf-8")
        assert re.findall(r"""(?:src|url)[=(]["']?https?:[^"')]+""", text) == []
        assert re.findall(r"""<link[^>]+rel="(?:stylesheet|preconnect)"[^>]+href="https?:[^"]+""", text) == []
