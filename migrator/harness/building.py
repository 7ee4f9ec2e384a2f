"""Bridged programs, run in a copy of their project so far that each model is built: nothing is trained."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from migrator.bridge.files import Imports, read_imports
from migrator.bridge.support import MARK
from migrator.findings import Finding, Severity
from migrator.harness.environments import migrated_python

_INSIDE = Path(__file__).parent / "inside" / "build_models.py"
_LARGEST = 20_000_000  # bytes of a file that is copied: the data of a program is not needed to build its model
_LEFT_OUT = (".git", "__pycache__", ".venv", "venv", "node_modules")
_MODES = {"train": "training", "eval": "evaluation", "infer": "prediction"}
# An error whose text says one of these is not for want of data, arguments or packages.
_OF_TENSORFLOW = ("tensorflow", "keras", "eager", "Tensor", "graph")


@dataclass
class Built:
    """What came of it: findings by file, and the files of programs whose model could not be built."""

    findings: dict[Path, list[Finding]] = field(default_factory=dict)
    failed: set[Path] = field(default_factory=set)
    models: int = 0


def build_models(
    texts: Mapping[Path, str], programs: Collection[Path], seconds: int = 120, python: Path | None = None
) -> Built:
    """Builds the models of programs (the files that make Estimators) in every mode that they use.

    `texts` are all files of the project as they would be, support files among them. The programs run in a copy of
    the folder that holds them, by the interpreter of migrated programs, each for `seconds` at most.
    """
    result = Built()
    if not programs:
        return result
    imports = read_imports(texts)
    starts = {
        _absolute(script): program for program in sorted(programs) for script in [_script(program, imports, texts)]
    }
    root = Path(os.path.commonpath([_absolute(path).parent for path in texts]))
    with tempfile.TemporaryDirectory(prefix="tf-migrate-try-") as folder:
        copy = Path(folder).resolve() / "project"
        _copy(root, copy)
        for path, text in texts.items():
            target = copy / _absolute(path).relative_to(root)
            target.parent.mkdir(parents=True, exist_ok=True)
            last = "\n\nimport build_models  # noqa: E402\n\nbuild_models.install(globals())\n" if MARK in text else ""
            target.write_text(text + last, encoding="utf-8")
        job, answers = Path(folder) / "job.json", Path(folder) / "answers.json"
        scripts = [str(script.relative_to(root)) for script in starts]
        job.write_text(json.dumps({"root": str(copy), "scripts": scripts, "seconds": seconds}), encoding="utf-8")
        environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "TF_CONFIG")}
        environment |= {"TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
        environment["PYTHONPATH"] = str(copy)
        command = [str(python or migrated_python()), str(_INSIDE), str(job), str(answers)]
        subprocess.run(command, env=environment, check=False, capture_output=True, timeout=60 + seconds * len(scripts))
        found = json.loads(answers.read_text(encoding="utf-8")) if answers.exists() else {}
    by_name = {str(_absolute(path).relative_to(root)): path for path in texts}
    failed = set()
    for script, program in starts.items():
        answer = found.get(str(script.relative_to(root)), {"built": [], "ended": ["it did not run at all", None]})
        if _tell(answer, program, by_name, result):
            failed.add(program)
    going = {path for program in programs if program not in failed for path in imports.reach(program)}
    result.failed = {path for program in failed for path in imports.reach(program)} - going
    return result


def _tell(answer: Mapping[str, object], program: Path, by_name: Mapping[str, Path], result: Built) -> bool:
    """Adds what one script answered. Whether the program fails."""
    built, ended = answer["built"], answer["ended"]
    assert isinstance(built, list)
    failures = [
        (f"the model for {_MODES.get(mode, mode)} is not built", said, place) for mode, said, place in built if said
    ]
    result.models += sum(1 for _, said, _ in built if not said)
    if isinstance(ended, list):
        said, place = ended
        fails = any(word in said for word in _OF_TENSORFLOW) and not said.startswith(("SystemExit", "ModuleNotFound"))
        if fails and not failures:
            failures.append(("the program ends", said, place))
        elif not built:
            message = f"this program was not tried: it ended before an Estimator was used ({said})"
            result.findings.setdefault(program, []).append(
                Finding(str(program), 1, 1, "TFM177", Severity.REVIEW, message)
            )
    for what, said, place in failures:
        path, line = (by_name.get(place[0], program), place[1]) if place else (program, 1)
        message = f"{what} in the migrated environment: {said}"
        finding = Finding(str(path), line, 1, "TFM169", Severity.MANUAL, message)
        if finding not in result.findings.setdefault(path, []):
            result.findings[path].append(finding)
    return bool(failures)


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
