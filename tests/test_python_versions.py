"""The codemod on every Python that it promises and that this machine has, each in an environment of its own."""

from __future__ import annotations

import configparser
import hashlib
import os
import shutil
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

import pytest
import uv

from tests.fixture_cases import FOLDER

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = ("3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
IMPORT_ALL = """
import importlib, pkgutil, sys
for name in ("fcntl", "grp", "pwd", "resource", "termios", "tty", "pty", "syslog"):
    sys.modules[name] = None  # not there on Windows: its import fails
import migrator
# Not the harness, whose commands say which Python they need; not what needs numpy; not files that go into programs.
WITHOUT = ("migrator.__main__", "migrator.harness", "migrator.checkpoint", "migrator.bridge.library")
WITHOUT = (*WITHOUT, "migrator.cli.verify_project")  # behind `verify`, which is told about first
names = [m.name for m in pkgutil.walk_packages(migrator.__path__, "migrator.") if not m.name.startswith(WITHOUT)]
for name in names:
    importlib.import_module(name)
print(len(names))
"""


def requirements() -> list[str]:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    return config["options"]["install_requires"].strip().splitlines()


@lru_cache
def interpreter(version: str) -> Path | None:
    """A Python of this version that runs, on the path or among those of pyenv."""
    candidates = [Path(found)] if (found := shutil.which(f"python{version}")) else []
    candidates += sorted((Path.home() / ".pyenv/versions").glob(f"{version}.*/bin/python"))
    for candidate in candidates:
        code = "import sys, venv; print('%d.%d' % sys.version_info[:2])"
        done = subprocess.run([candidate, "-c", code], capture_output=True, text=True, check=False)
        if done.stdout.strip() == version:
            return candidate
    return None


def environment(version: str) -> Path:
    """The Python of an environment that has what the codemod needs and nothing else, made once."""
    found = interpreter(version)
    if found is None:
        pytest.skip(f"there is no Python {version} on this machine")
    wanted = " ".join([str(found.resolve()), *requirements()])
    folder = Path.home() / ".cache/tf-migrate/tests" / f"{version}-{hashlib.sha256(wanted.encode()).hexdigest()[:12]}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as new:
            command = [uv.find_uv_bin(), "venv", "--quiet", "--python", found, f"{new}/made"]
            subprocess.run(command, check=True)
            command = [uv.find_uv_bin(), "pip", "install", "--quiet", "--python", f"{new}/made/bin/python"]
            subprocess.run([*command, *requirements()], check=True)
            os.replace(f"{new}/made", folder)
    return folder / "bin/python"


@pytest.mark.parametrize("version", VERSIONS)
def test_codemod(version: str, tmp_path: Path) -> None:
    python = environment(version)
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([python, "-c", IMPORT_ALL], capture_output=True, text=True, env=env, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 250

    shutil.copytree(FOLDER / "bert_classifier/original", tmp_path / "bert")
    shutil.copyfile(FOLDER / "classifier/original.py", tmp_path / "classifier.py")
    command = [python, "-m", "migrator", "."]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=env, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "classifier.py").read_bytes() == (FOLDER / "classifier/migrated.py").read_bytes()
    expected = {path.name: path.read_bytes() for path in (FOLDER / "bert_classifier/migrated").iterdir()}
    assert {path.name: path.read_bytes() for path in (tmp_path / "bert").iterdir()} == expected
