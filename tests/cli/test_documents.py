"""What the documents show is what is in the tree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# The pages of docs/rules are made by `make docs`; tests/test_site.py looks at the links to them.
DOCUMENTS = [path for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")) if path.parent.name != "rules"]


def test_before_and_after_in_the_readme_are_the_fixture() -> None:
    before, after = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    fixture = ROOT / "fixtures/multi_worker_guide"
    assert before in (fixture / "original.py").read_text(encoding="utf-8")
    assert after in (fixture / "migrated.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text(encoding="utf-8")):
        if "rules/" in target:
            continue
        assert (document.parent / target).exists(), target


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_finding_codes_exist(document: Path) -> None:
    from migrator.rules.catalogue import all_rules

    codes = {rule.code for rule in all_rules()}
    assert set(re.findall(r"TFM\d{3}", document.read_text(encoding="utf-8"))) <= codes


def test_the_settings_that_are_shown_are_known(tmp_path: Path) -> None:
    from migrator.project.choices import choices_of
    from migrator.settings import find

    text = (ROOT / "docs/projects.md").read_text(encoding="utf-8")
    for name, language in (("pyproject.toml", "toml"), ("setup.cfg", "ini")):
        (shown,) = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
        folder = tmp_path / language
        folder.mkdir()
        (folder / name).write_text(shown, encoding="utf-8")
        choices = choices_of(find([folder]))
        assert choices.exclude == ("third_party/", "*_pb2.py")
        assert choices.per_file["legacy/**"].style == "bridge"
