"""A program of one file comes out as before when it is said over several files, which import each other in any way."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from migrator.bridge.support import MARK
from migrator.findings import Severity
from migrator.migrate import Options, migrate
from migrator.source.reading import Source, decode
from tests.rewording.measure import cases
from tests.rewording.rewordings import _calls

_DRIVING = ("Estimator", "TPUEstimator", "train_and_evaluate", "DNNLinearCombinedClassifier", "RunConfig")


@dataclass(frozen=True)
class Parts:
    """A program in two: what is defined, the driver, and which of the names the driver reads."""

    defined: str
    driver: str
    names: tuple[str, ...]


def parts(text: str) -> Parts | None:
    """A program's definitions and its driver; None where the driver has a part in the definitions, or there is none."""
    module = ast.parse(text)
    at = next((index for index, one in enumerate(module.body) if _calls(one, *_DRIVING)), None)
    if at is None:
        return None
    head, tail = module.body[:at], module.body[at:]
    given = {name for statement in head for name in _given(statement)}
    used = [node for statement in tail for node in ast.walk(statement) if isinstance(node, ast.Name)]
    if not given or any(node.id in given and not isinstance(node.ctx, ast.Load) for node in used):
        return None
    imports = [one for one in head if isinstance(one, ast.Import | ast.ImportFrom)]
    imported = {alias.asname or alias.name for one in imports for alias in one.names}
    names = tuple(sorted({node.id for node in used} & given - imported))
    driver = ast.unparse(ast.Module([*imports, *tail], [])) + "\n"
    return Parts(ast.unparse(ast.Module(head, [])) + "\n", driver, names) if names else None


def _given(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return [statement.name]
    return [node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]


def _of_module(driver: str, module: str, names: tuple[str, ...]) -> str:
    """The driver with `module.name` for each of the names."""
    tree = ast.parse(driver)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in names:
            node.id = f"{module}.{node.id}"
    return ast.unparse(tree) + "\n"


def _after_imports(driver: str, line: str) -> str:
    return f"{line}\n{driver}"


def over_two(made: Parts) -> dict[str, str]:
    line = f"from parts import {', '.join(made.names)}"
    return {"main.py": _after_imports(made.driver, line), "parts.py": made.defined}


def module_by_alias(made: Parts) -> dict[str, str]:
    driver = _of_module(made.driver, "p", made.names)
    return {
        "main.py": _after_imports(driver, "import pkg.parts as p"),
        "pkg/__init__.py": "",
        "pkg/parts.py": made.defined,
    }


def module_of_a_package(made: Parts) -> dict[str, str]:
    driver = _of_module(made.driver, "parts", made.names)
    return {
        "main.py": _after_imports(driver, "from pkg import parts"),
        "pkg/__init__.py": "",
        "pkg/parts.py": made.defined,
    }


def package_that_passes_on(made: Parts) -> dict[str, str]:
    names = ", ".join(made.names)
    return {
        "main.py": _after_imports(made.driver, f"from pkg import {names}"),
        "pkg/__init__.py": f'"""Its parts."""\nfrom .parts import {names}\n',
        "pkg/parts.py": made.defined,
    }


def star_of_a_package(made: Parts) -> dict[str, str]:
    return {
        "main.py": _after_imports(made.driver, "from pkg import *"),
        "pkg/__init__.py": f"from .parts import *\n__all__ = {list(made.names)}\n",
        "pkg/parts.py": made.defined,
    }


def module_between(made: Parts) -> dict[str, str]:
    names = ", ".join(made.names)
    return {
        "main.py": _after_imports(made.driver, f"from common import {names}"),
        "common.py": f"from parts import {names}\n",
        "parts.py": made.defined,
    }


def import_under_try(made: Parts) -> dict[str, str]:
    names = ", ".join(made.names)
    line = f"try:\n    from fast import {names}\nexcept ImportError:\n    from parts import {names}"
    return {"main.py": _after_imports(made.driver, line), "parts.py": made.defined}


def driver_of_a_script(made: Parts) -> dict[str, str]:
    """A script that imports the driver as a module, which runs it."""
    return {**over_two(made), "run.py": "import main\n\nprint(main.__name__)\n"}


WAYS = {
    one.__name__: one
    for one in (
        *(over_two, module_by_alias, module_of_a_package, package_that_passes_on, star_of_a_package),
        *(module_between, import_under_try, driver_of_a_script),
    )
}


def form(files: dict[str, str], options: Options) -> str:
    sources = [decode(Path(name), text.encode()) for name, text in files.items()]
    given = [one for one in sources if isinstance(one, Source)]
    results = migrate(given, replace(options, style="auto", bridge=True))
    blocked = [str(f) for result in results for f in result.findings if f.severity is Severity.MANUAL]
    if blocked:
        return f"refused: {blocked}"
    if any(MARK in result.text for result in results):
        return "bridge"
    return "untouched" if all(result.text == result.source.text for result in results) else "native"


#: Fixtures of one file whose driver stands by itself.
APART = {
    name: (made, case.options)
    for name, case in cases().items()
    if len(case.original_files) == 1 and (made := parts(case.original_files[0].read_text(encoding="utf-8"))) is not None
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("turn", range(2))
def test_outcome(way: str, turn: int) -> None:
    """Which fixtures a way is tried on rotates, two for each."""
    names = list(APART)
    name = names[(2 * list(WAYS).index(way) + turn) % len(names)]
    made, options = APART[name]
    assert form(WAYS[way](made), options) == form({"main.py": made.defined + made.driver}, options), name


def test_there_are_enough() -> None:
    assert len(APART) >= 15
