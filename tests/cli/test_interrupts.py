"""Ctrl-C ends every command with 130 and without a traceback, from its first import on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# Sends the signal of Ctrl-C when a module is looked for, as a user does who presses it then.
SCRIPT = """
import os, runpy, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in the background
class Presses:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Presses())
sys.argv = ["tf-migrate", *{words!r}]
runpy.run_module("migrator", run_name="__main__", alter_sys=True)
"""

MOMENTS = [
    ("", "migrator.cli"),
    ("--version", "click"),
    ("a.py", "migrator.cli.migrate"),
    ("--check a.py", "migrator.source.discovery"),
    ("a.py", "libcst"),
    ("verify a.py a.py", "rich.console"),
    ("verify a.py a.py", "numpy"),
    ("verify a.py a.py", "migrator.harness.session"),
    ("checkpoint a.py a.py", "numpy"),
    ("report a.py", "migrator.harness.report"),
    ("selftest --list", "migrator.harness.mutants"),
    ("rules", "migrator.cli.rules"),
    ("environments", "migrator.harness.environments"),
]


@pytest.mark.parametrize(("words", "module"), MOMENTS)
def test_ctrl_c_while_importing(tmp_path: Path, words: str, module: str) -> None:
    (tmp_path / "a.py").write_text("import tensorflow as tf\ntf.estimator.Estimator(f)\n")
    script = SCRIPT.format(module=module, words=words.split())
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "Interrupted.\n")
