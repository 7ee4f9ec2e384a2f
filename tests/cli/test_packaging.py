"""What is in the tree is in the package."""

from __future__ import annotations

import configparser
import os
import shutil
import subprocess
import sys
import zipfile
from fnmatch import fnmatch
from pathlib import Path

import pytest
import uv

ROOT = Path(__file__).resolve().parents[2]
INSIDE = ROOT / "migrator/harness/inside"


def files() -> list[Path]:
    return [
        path
        for path in (ROOT / "migrator").rglob("*")
        if path.is_file()
        and not any(part == "__pycache__" or part.startswith(".") for part in path.relative_to(ROOT).parts)
    ]


# Programs that are run by path: files of their package, and no packages.
PROGRAMS = (INSIDE, ROOT / "migrator/harness/mutants/workloads")


def is_program(path: Path) -> bool:
    return any(folder in path.parents for folder in PROGRAMS)


def test_every_module_is_in_a_package() -> None:
    folders = {path.parent for path in files() if path.suffix == ".py" and not is_program(path)}
    assert [str(folder) for folder in folders if not (folder / "__init__.py").exists()] == []


def test_every_data_file_is_packaged() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    data = config["options.package_data"]
    anywhere = data["*"].split()
    for path in files():
        if is_program(path) or path.suffix == ".txt":
            name, patterns = (
                str(path.relative_to(ROOT / "migrator/harness")),
                data["tf_migrate.migrator.harness"].split(),
            )
        else:
            name, patterns = path.name, ["*.py", *anywhere]
        assert any(fnmatch(name, pattern) for pattern in patterns), path


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment that has the built package."""
    folder = tmp_path_factory.mktemp("installed")
    source = folder / "source"
    source.mkdir()
    for name in ("setup.cfg", "setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in ("migrator", "tf_migrate"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    tool = uv.find_uv_bin()
    subprocess.run([tool, "build", "--quiet", "--wheel", "--out-dir", folder, source], check=True)
    subprocess.run([tool, "venv", "--quiet", "--python", sys.executable, folder / "venv"], check=True)
    wheel = next(folder.glob("*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.partition("/")[0] for name in archive.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"tf_migrate"}
    python = folder / "venv/bin/python"
    subprocess.run([tool, "pip", "install", "--quiet", "--python", python, wheel], check=True)
    return python.parent


def test_the_users_modules_and_ours_do_not_meet(installed: Path, tmp_path: Path) -> None:
    original, migrated = (ROOT / "fixtures/classifier" / name for name in ("original.py", "migrated.py"))
    theirs = "raise SystemExit('imported a module of the user')\n"
    for name in ("migrator", "click", "libcst", "random", "platformdirs"):
        (tmp_path / f"{name}.py").write_text(theirs)
    site = next(installed.parent.glob("lib/*/site-packages"))
    (site / "migrator").mkdir()  # another project's, installed beside ours
    (site / "migrator/__init__.py").write_text(theirs)
    program = tmp_path / "train.py"
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    for command, path in (
        ([installed / "tf-migrate"], ""),
        ([installed / "tf-migrate"], str(tmp_path)),
        ([installed / "tf-migrate"], "."),
        ([installed / "python", "-m", "tf_migrate"], ""),
        ([installed / "python", "-P", "-m", "tf_migrate"], ""),
    ):
        if "-P" in command and sys.version_info < (3, 11):
            continue
        shutil.copy(original, program)
        environment = {**env, "PYTHONPATH": path} if path else env
        done = subprocess.run(
            [*command, "train.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (command, path, done.stdout + done.stderr)
        assert program.read_bytes() == migrated.read_bytes()


def test_what_is_installed_is_complete(installed: Path) -> None:
    site = next(installed.parent.glob("lib/*/site-packages"))
    missing = [path for path in files() if not (site / "tf_migrate" / path.relative_to(ROOT)).exists()]
    assert missing == []
    done = subprocess.run([installed / "tf-migrate", "rules", "TFM203"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
