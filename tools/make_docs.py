"""Brings the documents up to date with the code: `python tools/make_docs.py` in the repository.

Writes the page of every rule and the catalogue of symbols to docs/rules, and the fixture's migrated program into the
README.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from migrator.catalogue.page import table
from migrator.catalogue.rows import row, symbols
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
    text = (
        "# Rules\n\nMade by `make docs` from `migrator/rules/`. [What each symbol becomes](catalogue.md).\n\n" + index
    )
    (folder / "README.md").write_text(text, encoding="utf-8")
    rows = [row(symbol) for symbol in symbols()]
    (folder / "catalogue.md").write_text(table(rows, proofs([one.symbol for one in rows])), encoding="utf-8")
    return len(rules)


# How proofs spell modules that they import by a name of their own.
_SPELLED = {
    "slim.": ("tf.contrib.slim.",),
    "layers.": ("tf.layers.", "tf.contrib.layers."),
    "lookup.": ("tf.contrib.lookup.",),
    "learn.": ("tf.contrib.learn.",),
}


def proofs(symbols: Sequence[str]) -> dict[str, list[str]]:
    """The tests and fixtures that train programs in which a symbol stands, by symbol."""
    found: dict[str, list[str]] = {}
    files = [*ROOT.glob("tests/end_to_end/test_*.py"), *ROOT.glob("fixtures/*/original.py")]
    for file in sorted(files):
        text = re.sub(r"\btf\.compat\.v1\.", "tf.", file.read_text(encoding="utf-8"))
        names = set(re.findall(r"[a-z_]\w*(?:\.\w+)+", text))
        for start, modules in _SPELLED.items():
            names |= {module + name[len(start) :] for name in names if name.startswith(start) for module in modules}
        label = file.stem if file.parent.name == "end_to_end" else file.parent.name
        for symbol in names.intersection(symbols):
            found.setdefault(symbol, []).append(label)
    return found


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
