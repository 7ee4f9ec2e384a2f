"""Brings the documents up to date with the code: `python tools/make_docs.py` in the repository.

Writes the page of every rule to docs/rules, and the fixture's migrated program into the README.
"""

from __future__ import annotations

import re
from pathlib import Path

from migrator.rules.catalogue import all_rules

ROOT = Path(__file__).resolve().parents[1]
FIXTURE = ROOT / "fixtures/multi_worker_guide"


def make_rule_pages(folder: Path) -> int:
    """Replaces the pages in `folder` by one for each code, and an index; returns how many."""
    folder.mkdir(parents=True, exist_ok=True)
    for page in folder.glob("*.md"):
        page.unlink()
    rules = all_rules()
    for rule in rules:
        (folder / f"{rule.code}.md").write_text(rule.page(), encoding="utf-8")
    index = "".join(f"- [{rule.code}]({rule.code}.md): {rule.title}\n" for rule in rules)
    text = f"# Rules\n\nMade by `make docs` from `migrator/rules/`.\n\n{index}"
    (folder / "README.md").write_text(text, encoding="utf-8")
    return len(rules)


def update_readme(readme: Path) -> None:
    """Puts the fixture, from its model_fn on, into the two Python blocks of the README."""
    programs = iter(
        "def _model_fn" + (FIXTURE / name).read_text(encoding="utf-8").partition("def _model_fn")[2]
        for name in ("original.py", "migrated.py")
    )
    text = readme.read_text(encoding="utf-8")
    readme.write_text(re.sub(r"(?s)(?<=```python\n).*?(?=```)", lambda _: next(programs), text), encoding="utf-8")


if __name__ == "__main__":
    update_readme(ROOT / "README.md")
    print(f"README.md; {make_rule_pages(ROOT / 'docs/rules')} pages in docs/rules")
