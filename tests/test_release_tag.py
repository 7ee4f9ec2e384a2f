"""A release: the documents name the tag that `make release` makes."""

from __future__ import annotations

from pathlib import Path

from migrator import __version__
from tools.release import TAG, wrong_in_files

ROOT = Path(__file__).resolve().parents[1]


def test_the_documents_name_the_tag_of_this_version() -> None:
    assert list(wrong_in_files(ROOT, __version__)) == []
    assert f"rev: {TAG}" in (ROOT / "docs/projects.md").read_text(encoding="utf-8")


def test_what_does_not_fit_is_named(tmp_path: Path) -> None:
    (tmp_path / "docs/tutorials").mkdir(parents=True)
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n\n## 1.0.0 - 2026-01-02\n")
    (tmp_path / "docs/tutorials/a.md").write_text("```yaml\n    rev: v1.0.0  # the tag\n```\n")
    assert list(wrong_in_files(tmp_path, "1.0.0")) == ["CHANGELOG.md has to begin with a dated section of 1.0.0"]
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 1.1.0 - 2026-02-03\n")
    assert list(wrong_in_files(tmp_path, "1.1.0")) == ["docs/tutorials/a.md:2 names v1.0.0, and the tag is v1.1.0"]
