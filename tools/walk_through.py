"""A repository from the first look to the proof, as a newcomer would go: `python tools/walk_through.py FOLDER`.

Makes a git repository of three programs in six files and a notebook in FOLDER, which must not be there yet, and runs in
it: the hook of pre-commit, status, the formats of findings for CI, the migration, the comment that accepts what cannot
be migrated, the hook again, and the verification of all programs against what they were in git. Every command and what
it printed is shown; the first one that does not do what is expected ends the walk with exit code 1. The verification
needs the TensorFlow environments and takes some minutes: --without-verification leaves it out.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FIXTURES = ROOT / "fixtures"

TREES = """\
import tensorflow as tf

from columns import COLUMNS


def main():
    estimator = tf.estimator.BoostedTreesClassifier(COLUMNS, n_batches_per_layer=1)
    estimator.train(lambda: tf.data.Dataset.from_tensors(({"x": [[1.0]]}, [[1]])), steps=1)


main()
"""
COLUMNS = """\
import tensorflow as tf

COLUMNS = [tf.feature_column.numeric_column("x")]
"""
# As .pre-commit-hooks.yaml has it, with the tool of this environment in the place of one that is installed from a tag.
HOOK = """\
repos:
  - repo: local
    hooks:
      - id: tf-migrate-check
        name: tf-migrate --check
        entry: {tool} --check .
        language: system
        types_or: [python, jupyter]
        pass_filenames: false
        require_serial: true
"""


def notebook() -> str:
    """A program in two cells, the second of which says something."""
    text = (FIXTURES / "multi_worker_guide/original.py").read_text(encoding="utf-8")
    first, second = text.split("\nestimator = ", 1)
    output = {"name": "stdout", "output_type": "stream", "text": ["loss 0.1\n"]}
    cells = [
        {
            "cell_type": "code",
            "execution_count": number,
            "metadata": {},
            "outputs": [output] if number == 2 else [],
            "source": code.strip("\n").splitlines(keepends=True),
        }
        for number, code in ((1, first), (2, f"estimator = {second}"))
    ]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}, indent=1)


def write_programs(folder: Path) -> None:
    """Writes three programs in six files, the third of which cannot be migrated, and a notebook."""
    shutil.copytree(FIXTURES / "two_files/original", folder / "price")
    for name in ("linear", "trees"):
        (folder / name).mkdir()
    shutil.copy(FIXTURES / "multi_worker_guide/original.py", folder / "linear/train.py")
    (folder / "linear/report.py").write_text("def show(result):\n    print(result)\n", encoding="utf-8")
    (folder / "trees/train.py").write_text(TREES, encoding="utf-8")
    (folder / "trees/columns.py").write_text(COLUMNS, encoding="utf-8")
    (folder / "explore.ipynb").write_text(notebook(), encoding="utf-8")


class Stray(Exception):
    """A command that did not do what is expected."""


class Walk:
    """Runs commands in a folder, and shows them as they would be typed."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self.environment = environment

    def run(self, line: str, *, code: int = 0, says: Sequence[str] = ()) -> str:
        """Runs one command line; returns what it printed, and raises Stray where that lacks one of the words."""
        print(f"$ {line}", flush=True)
        done = subprocess.run(
            line.replace("tf-migrate ", f"{TOOL} ", 1) if line.startswith("tf-migrate ") else line,
            shell=True,
            cwd=self.folder,
            env=dict(self.environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        print(done.stdout + (f"[exit code {done.returncode}]\n" if done.returncode else ""), flush=True)
        missing = [words for words in says if words not in done.stdout]
        if done.returncode != code or missing:
            raise Stray(f"`{line}` ended with {done.returncode} for {code}; not said: {missing}")
        return done.stdout

    def commit(self, message: str) -> None:
        self.run(f"git add -A && git commit -q -m {shlex.quote(message)}")


TOOL = f"{shlex.quote(sys.executable)} -m tf_migrate"
_PRE_COMMIT = f"{shlex.quote(sys.executable)} -m pre_commit"


def walk(folder: Path, environment: Mapping[str, str], *, verify: bool) -> None:
    """Goes through all of it; raises Stray."""
    folder.mkdir(parents=True)
    steps = Walk(folder, environment)
    steps.run("git init -q -b main")
    write_programs(folder)
    (folder / ".pre-commit-config.yaml").write_text(HOOK.format(tool=TOOL), encoding="utf-8")
    (folder / ".gitignore").write_text("reports/\n", encoding="utf-8")
    (folder / "reports").mkdir()
    steps.commit("Six files and a notebook")

    print("# The hook: what is there to do?\n")
    said = steps.run(f"{_PRE_COMMIT} run --all-files tf-migrate-check", code=1, says=["would migrate explore.ipynb"])
    if said.count(" programs: ") != 1:
        raise Stray("the hook was not called once")

    print("# The plan\n")
    plan = ["4 programs", "3 become native Keras programs", "1 is blocked", "BoostedTreesClassifier"]
    steps.run("tf-migrate status .", says=plan)
    steps.run("tf-migrate status . --format html --output reports/left.html")

    print("# For CI\n")
    for form in ("sarif", "junit", "github", "json"):
        steps.run(f"tf-migrate --check --format {form} . > reports/findings.{form}", code=1)
    check_formats(folder / "reports")

    print("# The migration\n")
    steps.run("tf-migrate .", code=1, says=["migrated price/model.py", "migrated explore.ipynb", "trees/train.py:7:"])
    steps.run(
        "git status --short", says=[" M explore.ipynb\n M linear/train.py\n M price/model.py\n M price/train.py\n"]
    )

    print("# The program that stays is accepted on its line\n")
    steps.run("sed -i.bak '7s/$/  # tf-migrate: ignore[TFM102]/' trees/train.py && rm trees/train.py.bak")
    steps.commit("Migrate to Keras")
    steps.run(f"{_PRE_COMMIT} run --all-files --verbose tf-migrate-check", says=["1 accepted"])

    if verify:
        print("# The proof\n")
        steps.run("tf-migrate verify . --base HEAD~1 --report reports/proof", says=["3 EQUIVALENT"])
        for name in ("project.html", "project.json", "project.xml"):
            if not (folder / "reports/proof" / name).is_file():
                raise Stray(f"there is no reports/proof/{name}")


def check_formats(folder: Path) -> None:
    """Raises Stray where a report is not what its readers expect."""
    sarif = json.loads((folder / "findings.sarif").read_text(encoding="utf-8"))
    blocked = [one for one in sarif["runs"][0]["results"] if one["level"] == "warning"]
    if [one["ruleId"] for one in blocked] != ["TFM102"]:
        raise Stray(f"SARIF has other warnings: {blocked}")
    junit = ElementTree.parse(folder / "findings.junit").getroot()
    if len(junit.findall(".//testcase")) != 7 or len(junit.findall(".//failure")) != 5:
        raise Stray("JUnit does not have a case for each file, and a failure for each that is left")
    github = (folder / "findings.github").read_text(encoding="utf-8")
    if "::warning file=trees/train.py,line=7," not in github:
        raise Stray("GitHub is not told of the line that blocks")
    data = json.loads((folder / "findings.json").read_text(encoding="utf-8"))
    if (data["programs"].get("native"), data["programs"].get("blocked")) != (3, 1):
        raise Stray(f"JSON counts other programs: {data['programs']}")


def main() -> None:
    """Walks, and ends with 1 where something was not as expected."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--without-verification", action="store_true")
    asked = parser.parse_args()
    if asked.folder.exists():
        parser.error(f"{asked.folder} is there already")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "PRE_COMMIT"))},
        "PYTHONPATH": str(ROOT),
        **{f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    }
    try:
        walk(asked.folder.absolute(), environment, verify=not asked.without_verification)
    except Stray as error:
        raise SystemExit(f"Not as expected: {error}") from None
    print("All was as expected.")


if __name__ == "__main__":
    main()
