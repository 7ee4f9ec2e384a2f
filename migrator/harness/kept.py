"""What the original showed about itself, kept on disk by content: the next migrated program is compared with that.

An entry's name is made of all that the original's runs depend on and that can be known before they run: its script and
the files of the project that it imports, arguments, cluster and limits, the interpreter and what is installed there,
the machine, this harness. Data that it reads elsewhere are not part of it: `session.compare` looks at them where a
verdict is not EQUIVALENT, since a migrated program that reads the same batches as those kept has read the same data.

An entry is a link to a folder that is never changed: a verification which began with one reads it to its end, though
another one of the same original forgets it or keeps a new one. Folders without a link are removed two days after their
last use.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import os
import pickle
import platform
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from migrator import folders
from migrator.bridge.files import read_imports
from migrator.harness.case import Case
from migrator.harness.original import OriginalEvidence
from migrator.harness.protocol import l2_data
from migrator.harness.recording import Recording, RecordingError, SourceLine, read
from migrator.harness.runs import Run, Session, weights_file
from migrator.source.discovery import discover

_INDEX = "evidence.pickle"
#: Fields of a Case that say nothing about the runs of the original.
_OF_OTHERS = frozenset(
    ("original", "migrated", "names", "report_dir", "options", "log_dir", "command", "folders", "stdin", "kept")
) | {"seeds", "required", "promised", "all_mutants", "ready_timeout", "stall_timeout", "total_timeout"}
#: Variables of the environment that change what TensorFlow computes or what a program imports, by their beginnings.
_VARIABLES = ("TF_", "XLA_", "OMP_", "MKL_", "KMP_", "OPENBLAS_", "PYTHON", "CUDA_", "KERAS_")
#: Entries that are kept, and for how many days without use.
_MOST, _DAYS = 40, 30
#: Seconds after which nobody reads a folder any more that has no link.
_LEFT = 2 * 86400
_FILES = 5_000
#: The name of a package that is TensorFlow itself, with its version.
_TENSORFLOW = re.compile(r"(tensorflow|tf_nightly)(_cpu|_gpu|_intel|_macos|_rocm)?-[0-9]")


def key_of(case: Case, session: Session) -> str:
    """The name of what is kept for the original of a case."""
    digest = hashlib.sha256()
    for part in _facts(case, session):
        digest.update(repr(part).encode())
        digest.update(b"\0")
    return digest.hexdigest()[:32]


def load(key: str, case: Case, session: Session) -> OriginalEvidence | None:
    """The evidence of an earlier verification; None where there is none that can be read."""
    entry = (_folder() / key).resolve()
    try:
        root, stored = pickle.loads((entry / _INDEX).read_bytes())
        runs = {name: _restored(run, entry / "runs" / name, root, case) for name, run in stored["runs"].items()}
        names, plain = stored["names"], stored["plain"]
        fields: dict[str, Any] = {
            name: tuple(runs[one] for one in value) if isinstance(value, tuple) else value and runs[value]
            for name, value in names.items()
        }
        evidence = OriginalEvidence(**fields, **plain)
        os.utime(entry)
    except (OSError, RecordingError, pickle.UnpicklingError, EOFError, KeyError, TypeError, ValueError, AttributeError):
        return None
    if evidence.main.recording is None:
        return None
    return dataclasses.replace(evidence, initial=weights_file(session, evidence.main.recording.initial))


def description(key: str) -> dict[str, Any] | None:
    """What the interpreter said of itself (see Runner.describe) that made what is kept; None where nothing is."""
    try:
        _, stored = pickle.loads((_folder() / key / _INDEX).read_bytes())
        found: dict[str, Any] = dict(stored["described"])
    except (OSError, pickle.UnpicklingError, EOFError, KeyError, TypeError, ValueError, AttributeError):
        return None
    return found


def save(key: str, case: Case, evidence: OriginalEvidence, described: dict[str, Any]) -> None:
    """Keeps evidence, if it is whole, and what its interpreter says of itself; what cannot be kept (on a full disk,
    say) is not.
    """
    if evidence.main.recording is None or evidence.failed_run is not None or evidence.repeat is None:
        return
    place = _folder()
    with contextlib.suppress(OSError):
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        partial = Path(tempfile.mkdtemp(prefix=f".{key}.", dir=place))
        try:
            names: dict[str, Any] = {}
            plain: dict[str, Any] = {}
            runs: dict[str, Run] = {}
            for field in dataclasses.fields(evidence):
                value = getattr(evidence, field.name)
                if isinstance(value, Run):
                    names[field.name] = _store(value, partial, runs)
                elif isinstance(value, tuple) and all(isinstance(one, Run) for one in value):
                    names[field.name] = tuple(_store(one, partial, runs) for one in value)
                elif field.name != "initial":
                    plain[field.name] = value
            content = {"runs": runs, "names": names, "plain": plain, "described": described}
            (partial / _INDEX).write_bytes(pickle.dumps((_root(case), content)))
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        link = partial.with_name(partial.name + ".link")
        link.symlink_to(partial.name)
        link.replace(place / key)
        _prune(place)


def forget(key: str) -> None:
    """Removes an entry; what reads it still can go on."""
    with contextlib.suppress(OSError):
        (_folder() / key).unlink()


def reads_the_same(kept: OriginalEvidence, now: Run) -> bool:
    """Whether a run of the original of today is what was kept: its data, its variables, its optimizer."""
    then, found = kept.main.recording, now.recording
    if then is None or found is None or kept.random_order:
        return False
    return (
        l2_data.same_beginning(then, found)
        and (then.variables, then.optimizer, then.regularizers)
        == (found.variables, found.optimizer, found.regularizers)
        and [step.learning_rate for step in then.steps] == [step.learning_rate for step in found.steps]
    )


def _folder() -> Path:
    return folders.cache_folder() / "originals"


def _root(case: Case) -> Path:
    return (case.folders[0] or case.original.absolute().parent).absolute()


def _facts(case: Case, session: Session) -> Iterator[object]:
    yield _harness()
    server = session.server(case, "original")
    installed = _installed(server.python)
    yield os.path.realpath(server.python), installed
    if not any(map(_TENSORFLOW.match, installed)):  # it is somewhere else: the interpreter knows
        described = server.describe()
        yield {name: value for name, value in described.items() if name in ("python", "tensorflow", "keras")}
    yield platform.platform(), platform.machine(), os.cpu_count(), _processor()
    yield sorted((name, value) for name, value in os.environ.items() if name.startswith(_VARIABLES))
    yield [(one.name, getattr(case, one.name)) for one in dataclasses.fields(case) if one.name not in _OF_OTHERS]
    yield None if case.stdin is None else case.stdin.read_bytes()
    root, script = _root(case), case.original.absolute()
    yield os.path.relpath(script, root)
    texts = {}
    for found in discover([root])[:_FILES]:
        with contextlib.suppress(OSError):
            texts[found.path.absolute()] = found.path.read_bytes().decode("utf-8", "replace")
    texts[script] = script.read_bytes().decode("utf-8", "replace")
    for path in sorted(read_imports(texts).reach(script)):
        yield os.path.relpath(path, root), texts[path]


@functools.cache
def _harness() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _installed(python: Path) -> list[str]:
    """The names and versions of all packages of an interpreter."""
    return sorted(path.name for path in python.parent.parent.glob("lib/python*/site-packages/*.dist-info"))


def _processor() -> list[str]:
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
        return sorted({line for line in lines if line.startswith(("model name", "flags", "Features"))})
    return [platform.processor()]


def _store(run: Run, folder: Path, runs: dict[str, Run]) -> str:
    """Copies what a run recorded and what its checkpoints tell, once, and returns its name."""
    name = run.outcome.run_dir.name
    if name not in runs:
        target = folder / "runs" / name
        shutil.copytree(run.record_dir, target / "record", copy_function=_linked)
        model = run.outcome.run_dir / "model"
        for state in model.rglob("checkpoint"):
            if state.is_file():
                place = target / "model" / state.relative_to(model)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(state, place)
        runs[name] = dataclasses.replace(run, recording=None)
    return name


def _linked(source: str, target: str) -> None:
    """Gives what a run wrote, which is not written to any more, a second name; a copy where that is another disk."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _restored(run: Run, folder: Path, root: Path, case: Case) -> Run:
    recording: Recording = dataclasses.replace(read(folder / "record"), program=run.program)
    sources = {what: SourceLine(_moved(one.path, root, case), one.line) for what, one in recording.sources.items()}
    outcome = dataclasses.replace(run.outcome, run_dir=folder)
    return dataclasses.replace(run, outcome=outcome, recording=dataclasses.replace(recording, sources=sources))


def _moved(path: str, root: Path, case: Case) -> str:
    """A file of the project where the project is now: a revision's files are in another folder each time."""
    return str(_root(case) / Path(path).relative_to(root)) if Path(path).is_relative_to(root) else path


def _prune(place: Path) -> None:
    used = {path: _last_use(path) for path in place.iterdir()}
    links = sorted((path for path in used if path.is_symlink()), key=lambda path: -used[path])
    for number, path in enumerate(links):
        if number >= _MOST or time.time() - used[path] > _DAYS * 86400:
            path.unlink(missing_ok=True)
    linked = {path.resolve() for path in links if path.is_symlink()}
    for path, last in used.items():
        if path not in links and path.resolve() not in linked and time.time() - last > _LEFT:
            shutil.rmtree(path, ignore_errors=True)


def _last_use(path: Path) -> float:
    """When the folder that an entry points to was read last; long ago where it is gone."""
    with contextlib.suppress(OSError):
        return path.stat().st_mtime
    return 0.0
