"""What the codemod costs beside tools of its kind: `python benchmarks/codemod.py [--rounds 3]`, CPU seconds.

Four trees: programs that are migrated (the originals of the fixtures, several times), files of TensorFlow 1 without
programs, files that nothing concerns (the packages of this environment), and one empty file, which is the start. The
tools: tf-migrate (from nothing, from its cache, with two processes), a LibCST command that changes nothing,
django-upgrade, ruff, and tf_upgrade_v2 of the TensorFlow environment. Each is run over a whole tree in one command.
Printed are medians of the CPU time (user and system, of all processes), and lines per second of it.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import uv

from migrator.harness.environments import migrated_python

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
NO_OP = """\
import sys
import libcst as cst

class Nothing(cst.CSTTransformer):
    pass

for name in sys.argv[1:]:
    with open(name, encoding="utf-8") as file:
        text = file.read()
    cst.parse_module(text).visit(Nothing()).code
"""
LEGACY = """\
import tensorflow as tf


def layer_{number}(x, name="layer"):
    with tf.variable_scope(name):
        w = tf.get_variable("w", [x.shape[1], {number}])
        return tf.nn.relu(tf.matmul(x, w)), tf.log(tf.reduce_sum(w))
"""


@dataclass(frozen=True)
class Tree:
    """Python files in a folder."""

    name: str
    folder: Path
    files: tuple[Path, ...]
    lines: int


def _tree(name: str, folder: Path, texts: Mapping[str, str]) -> Tree:
    for place, text in texts.items():
        path = folder / name / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    files = tuple(sorted((folder / name).rglob("*.py")))
    return Tree(name, folder / name, files, sum(text.count("\n") for text in texts.values()))


def trees(folder: Path, programs: int) -> list[Tree]:
    """The trees that are measured, the first of them with that many programs."""
    originals = {one.parent.name: one.read_text(encoding="utf-8") for one in sorted(FIXTURES.glob("*/original.py"))}
    names = sorted(originals)
    migrated = {f"{i:04}/{names[i % len(names)]}.py": originals[names[i % len(names)]] for i in range(programs)}
    legacy = {f"layers_{number}.py": LEGACY.format(number=number) * 20 for number in range(1, programs + 1)}
    packages = Path(sysconfig.get_path("purelib"))
    others = {
        str(path.relative_to(packages)): path.read_text(encoding="utf-8")
        for path in sorted(packages.glob("[a-m]*/**/*.py"))
        if b"\0" not in path.read_bytes() and _is_text(path)
    }
    return [
        _tree("migrated", folder, migrated),
        _tree("TensorFlow 1, no programs", folder, legacy),
        _tree("untouched", folder, others),
        _tree("start", folder, {"empty.py": "import tensorflow\n"}),
    ]


def _is_text(path: Path) -> bool:
    try:
        path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return False
    return True


def seconds(command: Sequence[str], folder: Path, cache: Path) -> float:
    """CPU seconds of a command and its children, run in a folder."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {
        **os.environ,
        "XDG_CACHE_HOME": str(cache),
        "CUDA_VISIBLE_DEVICES": "-1",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed tool is compiled once
    subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def commands(scratch: Path) -> dict[str, list[str]]:
    """What is run in each tree, by name. `FILES` stands for the names of all files."""
    tools = scratch / "tools"
    if not tools.exists():
        subprocess.run([uv.find_uv_bin(), "venv", "--quiet", "--python", sys.executable, str(tools)], check=True)
        install = [
            uv.find_uv_bin(),
            "pip",
            "install",
            "--quiet",
            "--python",
            str(tools / "bin/python"),
            "django-upgrade",
        ]
        subprocess.run(install, check=True)
    no_op = scratch / "no_op.py"
    no_op.write_text(NO_OP, encoding="utf-8")
    ours = [sys.executable, "-m", "tf_migrate", "--check", "--quiet"]
    upgrade = migrated_python().with_name("tf_upgrade_v2")
    return {
        "tf-migrate": [*ours, "--no-cache", "--jobs", "1", "."],
        "tf-migrate, two processes": [*ours, "--no-cache", "--jobs", "2", "."],
        "tf-migrate, from the cache": [*ours, "--jobs", "1", "."],
        "LibCST, no change": [sys.executable, str(no_op), "FILES"],
        "django-upgrade": [str(tools / "bin/django-upgrade"), "--target-version", "4.2", "FILES"],
        "ruff check": [
            str(Path(sys.executable).with_name("ruff")),
            "check",
            "--isolated",
            "--no-cache",
            "--quiet",
            ".",
        ],
        "tf_upgrade_v2": [
            str(upgrade),
            "--intree",
            ".",
            "--outtree",
            str(scratch / "upgraded"),
            "--reportfile",
            os.devnull,
        ],
    }


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--programs", type=int, default=100)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="codemod-") as made:
        scratch = Path(made)
        made_trees = trees(scratch / "trees", arguments.programs)
        table = commands(scratch)
        print("| tree | files | lines |\n|---|---:|---:|")
        for tree in made_trees:
            print(f"| {tree.name} | {len(tree.files)} | {tree.lines} |")
        print("\n| tool | " + " | ".join(tree.name for tree in made_trees) + " |\n|---|" + "---:|" * len(made_trees))
        for name, words in table.items():
            cells = []
            for tree in made_trees:
                command = [
                    one for word in words for one in ([str(f) for f in tree.files] if word == "FILES" else [word])
                ]
                cache = scratch / "cache" / tree.name
                if "cache" in name:
                    seconds(command, tree.folder, cache)
                found = []
                for _ in range(arguments.rounds):
                    shutil.rmtree(scratch / "upgraded", ignore_errors=True)
                    found.append(seconds(command, tree.folder, cache))
                middle = statistics.median(found)
                rate = f" ({tree.lines / middle:,.0f} lines/s)" if tree.lines > 100 else ""
                cells.append(f"{middle:.2f}{rate}")
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
