"""The cases of the self-test: folders with an original, its migration and a case.toml."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from migrator.harness.mutants.catalogue import MUTANTS, SENTINELS, Mutant, select

# What case.toml says of how both programs are run. Without it a program for two replicas would be judged on one.
_OPTIONS = frozenset({"args", "devices", "original_devices", "tpu_cores"})
_WORKLOADS = Path(__file__).parent / "workloads"
_FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"


class SelfTestCaseError(ValueError):
    """There is no such case, or its case.toml is not what it should be; the message says which."""


@dataclass(frozen=True)
class SelfTestCase:
    """A program and a good migration of it. `cluster` is as for verify; `mutants` are tried on it. `options` are the
    other fields of the Case that it is compared as.
    """

    name: str
    original: Path
    migrated: Path
    cluster: str
    mutants: tuple[Mutant, ...]
    options: Mapping[str, Any] = field(default_factory=dict)


def load(folder: Path, default: Sequence[Mutant] = MUTANTS) -> SelfTestCase:
    """The case in a folder: original.py and migrated.py, or folders of these names that both hold the `script` of
    case.toml. `default` are the mutants where case.toml names none. SelfTestCaseError.
    """
    path = folder / "case.toml"
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise SelfTestCaseError(f"{folder} is no case: {error.strerror}: {path.name}") from error
    except ValueError as error:
        raise SelfTestCaseError(f"{path}: {error}") from error
    script = data.get("script")
    sides = [folder / side / script if script else folder / f"{side}.py" for side in ("original", "migrated")]
    missing = [side for side in sides if not side.is_file()]
    if missing:
        raise SelfTestCaseError(f"{folder} is no case: {missing[0]} is missing")
    try:
        mutants = select(data["mutants"]) if "mutants" in data else tuple(default)
    except ValueError as error:
        raise SelfTestCaseError(f"{path}: {error}") from error
    options = {name: tuple(value) if name == "args" else value for name, value in data.items() if name in _OPTIONS}
    return SelfTestCase(folder.name, sides[0], sides[1], data.get("cluster", ""), mutants, options)


def workloads() -> tuple[SelfTestCase, ...]:
    """The cases that come with the package."""
    return tuple(load(path.parent) for path in sorted(_WORKLOADS.glob("*/case.toml")))


def fixtures() -> tuple[SelfTestCase, ...]:
    """The fixtures of the repository that the package runs from, with the sentinels; none where it is installed."""
    return tuple(load(path.parent, SENTINELS) for path in sorted(_FIXTURES.glob("*/case.toml")))


def find(words: Sequence[str]) -> tuple[SelfTestCase, ...]:
    """The cases named: those of the package or the repository by name, others by folder. SelfTestCaseError."""
    known = {case.name: case for case in (*fixtures(), *workloads())}
    return tuple(known[word] if word in known else load(Path(word)) for word in words)
