"""Bridged programs, run in a copy of their project so far that each model is built: nothing is trained."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from migrator.bridge.files import Edge, Imports, read_imports
from migrator.bridge.support import MARK
from migrator.findings import Finding, Severity
from migrator.harness.packages import python_with, wanted_packages

_INSIDE = Path(__file__).parent / "inside" / "build_models.py"
_LARGEST = 20_000_000  # bytes of a file that is copied: the data of a program is not needed to build its model
_LEFT_OUT = (".git", "__pycache__", ".venv", "venv", "node_modules")
_MODES = {"train": "training", "eval": "evaluation", "infer": "prediction"}
# An error whose text says one of these is not for want of data, arguments or packages.
_OF_TENSORFLOW = ("tensorflow", "keras", "eager", "Tensor", "graph")
# What a program lacks, by what its error says, in this order.
_LACKS = (
    ("a package", re.compile(r"^(Needed: |ModuleNotFoundError: (?!No module named '(tensorflow|keras|tf_keras)\b))")),
    ("arguments", re.compile(r"^(SystemExit: [12]$|IllegalFlagValueError|UnparsedFlagAccessError|UsageError)")),
    (
        "a network",
        re.compile(r"URL fetch failure|URLError|Name or service not known|Temporary failure in name|Connection"),
    ),
    (
        "data",
        re.compile(
            r"^(FileNotFoundError|NotADirectoryError|NotFoundError|PermissionError|IsADirectoryError)|No such file"
            r"|[Nn]o \S* ?(\w+ )?files? (was |were )?found|does not exist|[Cc]ould not find (file|any)"
            r"|^AssertionError: assert \S*\b([Ee]xists|isfile|isdir|IsDirectory|is_file|is_dir)\("
        ),
    ),
)

# What nobody can put there to try again: a library that is not to be had by its name, and what is on a network.
_OUT_OF_REACH = ("a package", "a network")
_ON_STAND_INS = (
    "its models are built, but on stand-ins: downloads, files it names or its arguments are missing here; "
    "supply them and try again, or train it"
)


@dataclass
class Built:
    """What came of it: findings by file, and the files of programs whose model could not be built."""

    findings: dict[Path, list[Finding]] = field(default_factory=dict)
    failed: set[Path] = field(default_factory=set)
    models: int = 0
    states: dict[Path, str] = field(default_factory=dict)
    """By program: built, "built on stand-ins" (for a download, a file that is only named, or arguments), fails,
    "lacks data" (arguments, a package, a network), or "ends" before its models."""

    def add(self, finding: Finding, path: Path) -> None:
        """Adds a finding once."""
        if finding not in self.findings.setdefault(path, []):
            self.findings[path].append(finding)


def build_models(
    texts: Mapping[Path, str],
    programs: Collection[Path],
    seconds: int = 120,
    python: Path | None = None,
    arguments: Mapping[Path, Sequence[str]] | None = None,
    sessions: Collection[Path] = (),
) -> Built:
    """Builds the models of programs (the files that make Estimators) in every mode that they use.

    Of `sessions`, the files of programs that keep their sessions, the first step is taken.
    `texts` are all files of the project as they would be, support files among them. The programs run in a copy of
    the folder that holds them, by the interpreter of migrated programs (with such well-known packages as they import,
    if `python` names none), each for `seconds` at most. `arguments` are those of the scripts, if they want any.
    """
    result = Built()
    programs = {*programs, *sessions}
    if not programs:
        return result
    imports = read_imports(texts)
    starts = {program: _script(program, imports, texts) for program in sorted(programs)}
    edges = [edge for program in programs for path in imports.reach(program) for edge in imports.of.get(path, ())]
    root = Path(os.path.commonpath([*(_absolute(path).parent for path in texts), *(_absolute(e.root) for e in edges)]))
    with tempfile.TemporaryDirectory(prefix="tf-migrate-try-") as folder:
        copy = Path(folder).resolve() / "project"
        _copy(root, copy)
        for path, text in texts.items():
            target = copy / _absolute(path).relative_to(root)
            target.parent.mkdir(parents=True, exist_ok=True)
            last = "\n\nimport build_models  # noqa: E402\n\nbuild_models.install(globals())\n" if MARK in text else ""
            target.write_text(text + last, encoding="utf-8")
        own = sorted({part for path in texts for part in _absolute(path).relative_to(root).with_suffix("").parts})
        reached = {path for script in starts.values() for path in imports.reach(script)}
        trees = [imports.trees[path] for path in sorted(reached) if path in imports.trees]
        job, answers = Path(folder) / "job.json", Path(folder) / "answers.json"
        scripts = [
            {
                **way_to_run(script, imports, root),
                "arguments": list((arguments or {}).get(script, ())),
                "own": own,
                "session": program in sessions,
            }
            for program, script in starts.items()
        ]
        job.write_text(json.dumps({"root": str(copy), "scripts": scripts, "seconds": seconds}), encoding="utf-8")
        environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "TF_CONFIG")}
        environment |= {"TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
        environment["PYTHONPATH"] = str(copy)
        python = python or python_with(wanted_packages(trees, own, root))
        command = [str(python), str(_INSIDE), str(job), str(answers)]
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(command, env=environment, capture_output=True, timeout=60 + seconds * len(scripts))
        found = json.loads(answers.read_text(encoding="utf-8")) if answers.exists() else []
    by_name = {str(_absolute(path).relative_to(root)): path for path in texts}
    failed = set()
    nothing = {"built": [], "ended": ["it did not run at all", None], "absent": [], "made_up": False}
    for program, answer in zip(starts, [*found, *[nothing] * (len(starts) - len(found))], strict=True):
        if _tell(answer, program, by_name, result):
            failed.add(program)
    going = {path for program in programs if program not in failed for path in imports.reach(program)}
    result.failed = {path for program in failed for path in imports.reach(program)} - going
    return result


def _tell(answer: Mapping[str, object], program: Path, by_name: Mapping[str, Path], result: Built) -> bool:
    """Adds what one script answered. Whether the program fails."""
    built, ended, absent = answer["built"], answer["ended"], answer["absent"]
    assert isinstance(built, list) and isinstance(absent, list)
    for operation, what, place in answer.get("lacking") or ():  # type: ignore[attr-defined]
        path, line = _placed(place, program, by_name)
        message = f"`{operation}` needs {what}, which a TPU does not support: do it in the input function"
        result.add(Finding(str(path), line, 1, "TFM432", Severity.REVIEW, message), path)
    failures: list[tuple[str, str, Any]] = []
    wants: list[tuple[str, str, Any]] = []
    for mode, said, place in built:
        if said:
            what = _MODES.get(mode, mode)
            (wants if lacking(said) else failures).append((f"the model for {what} is not built", said, place))
    done = sum(1 for _, said, _ in built if not said)
    result.models += done
    if answer["made_up"]:  # what comes behind the models is not told: it is not the program that the user has
        result.states[program] = "built on stand-ins"
        result.add(Finding(str(program), 1, 1, "TFM177", Severity.REVIEW, _ON_STAND_INS), program)
        return False
    if isinstance(ended, list):
        said, place = ended
        fails = any(word in said for word in _OF_TENSORFLOW) and not said.startswith("SystemExit") and not lacking(said)
        if fails and not failures:
            failures.append(("the program fails", said, place))
        elif not built:
            wants.append(("this program is untested", said, place))
    elif not built:
        wants.append(("this program is untested", "", None))
    for what, said, place in wants:
        code = "TFM179" if lacking(said) in _OUT_OF_REACH else "TFM177"
        path, line = _placed(place, program, by_name)
        result.add(Finding(str(path), line, 1, code, Severity.REVIEW, _wish(what, said, absent)), path)
    for what, said, place in failures:
        path, line = _placed(place, program, by_name)
        message = f"{what} in the migrated environment: {said}"
        result.add(Finding(str(path), line, 1, "TFM169", Severity.MANUAL, message), path)
    lacks = next((f"lacks {found}" for _, said, _ in wants if (found := lacking(said))), "ends")
    result.states[program] = "fails" if failures else lacks if wants else "built"
    return bool(failures)


def lacking(said: str) -> str:
    """What a program lacks that ended with an error: data, arguments, a package, a network; else nothing."""
    return next((what for what, pattern in _LACKS if pattern.search(said)), "")


def _wish(what: str, said: str, absent: Collection[str]) -> str:
    """What to tell of a program that was not built for want of something."""
    lacks = lacking(said)
    packages = (
        f"; it ran without {', '.join(absent)}, which {'is' if len(absent) == 1 else 'are'} not installed"
        if absent
        else ""
    )
    if lacks == "data":
        return f"{what}: it needs its data, which are not here ({said}): put them there, or a few rows like them"
    if lacks == "a package":
        return (
            f"{what}: it needs a package that could not be installed ({said}); name it in requirements.txt as it is "
            "installed, or install it into an interpreter of your own and name that in TF_MIGRATE_MIGRATED_PYTHON"
        )
    if lacks:
        return f"{what}: it needs {lacks} ({said})"
    if said:
        return f"{what}: it ended before a model was built ({said}){packages}"
    return f"{what}: it came to its end and built no model{packages}"


def _placed(place: Sequence[Any] | None, program: Path, by_name: Mapping[str, Path]) -> tuple[Path, int]:
    """The file and the line of an error; the program's first where it is in none of the project's."""
    path = by_name.get(place[0]) if place else None
    return (path, place[1]) if path is not None and place else (program, 1)


def way_to_run(script: Path, imports: Imports, root: Path) -> dict[str, object]:
    """How a script is run: as a file in its folder, or as a module where it imports in its package.

    `paths` are the folders that its files look modules up in.
    """
    edges = [edge for path in imports.reach(script) for edge in imports.of.get(path, ())]
    paths = sorted({str(_absolute(edge.root).relative_to(root)) for edge in edges if not edge.level})
    absolute = _absolute(script)
    level = max((e.level for e in imports.of.get(script, ())), default=0)
    folder, module = absolute.parent, ""
    if level:
        # The package reaches up to the folder that others are looked up in, and at least as far as the dots do.
        for _ in range(level):
            folder = folder.parent if folder != root else folder
        inside = absolute.relative_to(folder).with_suffix("").parts
        module = ".".join(inside) if len(inside) > level else ""
    if not module:
        folder = absolute.parent
        hidden = [_absolute(edge.root) for edge in edges if _is_hidden(edge, absolute, imports)]
        if hidden:  # as a file it would find another file of its folder in the place of its package
            folder = hidden[0]
            module = ".".join(absolute.relative_to(folder).with_suffix("").parts)
    asked = {"script": str(absolute.relative_to(root)), "folder": str(folder.relative_to(root))}
    return {**asked, "module": module, "paths": paths}


def _is_hidden(edge: Edge, script: Path, imports: Imports) -> bool:
    """Whether what is imported has the name of a file beside the script, which Python would take."""
    above = _absolute(edge.root)
    if edge.level or above == script.parent or not script.is_relative_to(above):
        return False
    top = _absolute(edge.imported).relative_to(above).parts[0]
    beside = script.parent / f"{top}.py"
    return any(_absolute(path) == beside for path in imports.trees)


def _script(program: Path, imports: Imports, texts: Mapping[Path, str]) -> Path:
    """The file to run for a program: itself, or the first that imports it and is imported by none."""
    seen, queue = {program}, [program]
    while queue:
        path = queue.pop(0)
        above = [edge.importer for edge in imports.importers([path]) if edge.importer not in seen]
        if "__main__" in texts[path] or not above:
            return path
        seen.update(above)
        queue += above
    return program


def _copy(root: Path, copy: Path) -> None:
    def left_out(folder: str, names: list[str]) -> list[str]:
        paths = [Path(folder, name) for name in names]
        return [p.name for p in paths if p.name in _LEFT_OUT or (p.is_file() and p.stat().st_size > _LARGEST)]

    shutil.copytree(root, copy, ignore=left_out, symlinks=True)


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100 - without following links
