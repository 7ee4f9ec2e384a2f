"""Brings the documents up to date with the code: `python tools/make_docs.py` in the repository.

Writes the page of every rule and the catalogue of symbols to docs/rules, the fixture's migrated program into the
README, what the commands of tutorials print into them, and the picture of a terminal. With --tensorflow the commands
that run TensorFlow are run, too, which takes minutes; with --pages only docs/rules is written.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from migrator.bridge.answers import rows as answers
from migrator.catalogue.answers import page as page_of_answers
from migrator.catalogue.page import table
from migrator.catalogue.rows import row, symbols
from migrator.rules.catalogue import all_rules
from tests.tutorials import TUTORIALS, update

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
    (folder / "symbols.md").write_text(page_of_answers(list(answers())), encoding="utf-8")
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


BLOCKED = """import tensorflow as tf

columns = [tf.feature_column.numeric_column("age")]
estimator = tf.estimator.BoostedTreesClassifier(columns, n_batches_per_layer=1)
estimator.train(lambda: tf.data.Dataset.from_tensors(({"age": [1.0]}, [1])), max_steps=10)
"""


def in_terminal(command: list[str], folder: Path) -> str:
    """What a command writes to a terminal, colours included."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color"}
    process = subprocess.Popen(command, cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    written = b""
    with contextlib.suppress(OSError):  # the end, on Linux
        while some := os.read(ours, 4096):
            written += some
    process.wait()
    os.close(ours)
    return written.decode().replace("\r\n", "\n")


def draw_terminal(picture: Path) -> None:
    """Draws what tf-migrate says of a program of two files and of one that is blocked, as it looks in a terminal."""
    with tempfile.TemporaryDirectory() as name:
        models = Path(name, "models")
        shutil.copytree(ROOT / "fixtures/two_files/original", models)
        (models / "trees.py").write_text(BLOCKED, encoding="utf-8")
        printed = in_terminal([str(Path(sys.executable).with_name("tf-migrate")), "models"], Path(name))
    console = Console(record=True, width=92, file=open(os.devnull, "w"), force_terminal=True)  # noqa: PTH123, SIM115
    console.print(Text("$ tf-migrate models", style="bold"))
    console.print(Text.from_ansi(printed))
    drawn = console.export_svg(title="tf-migrate", unique_id="terminal")
    # The fonts would be fetched from elsewhere; the reader's own will do.
    picture.write_text(re.sub(r"(?s)\s*@font-face \{.*?\n\s*\}", "", drawn), encoding="utf-8")


def main() -> None:
    """Writes what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", action="store_true", help="only docs/rules")
    parser.add_argument("--tensorflow", action="store_true", help="the commands that run TensorFlow, too")
    asked = parser.parse_args()
    print(f"{make_rule_pages(ROOT / 'docs/rules')} pages in docs/rules")
    if asked.pages:
        return
    update_readme(ROOT / "README.md")
    draw_terminal(ROOT / "docs/figures/terminal.svg")
    for tutorial in TUTORIALS:
        with tempfile.TemporaryDirectory() as folder:
            changed = update(tutorial, Path(folder), asked.tensorflow)
            print(f"{tutorial.relative_to(ROOT)}: {'changed' if changed else 'as it was'}")


if __name__ == "__main__":
    main()
