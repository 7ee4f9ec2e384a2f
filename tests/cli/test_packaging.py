"""What is in the tree is in the package."""

from __future__ import annotations

import configparser
from fnmatch import fnmatch
from pathlib import Path

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
        if is_program(path):
            name, patterns = str(path.relative_to(ROOT / "migrator/harness")), data["migrator.harness"].split()
        else:
            name, patterns = path.name, ["*.py", *anywhere]
        assert any(fnmatch(name, pattern) for pattern in patterns), path
