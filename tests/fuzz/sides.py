"""Migrates programs and runs both sides of them, in batches: TensorFlow is imported once a side."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from migrator.harness.environments import migrated_python, original_python

#: A program: its files by name.
Texts = Mapping[str, str]

TREE = Path(__file__).parent.parent.parent
SCRIPT = "train.py"
#: Seconds for one program, thirty times what one takes on an idle machine.
_SECONDS = 150
_INSIDE = Path(__file__).parent / "inside"


@dataclass(frozen=True)
class Migration:
    """What the tool made of a program: the new files, its codes, the findings that block it, how the tool failed."""

    texts: Texts
    codes: tuple[str, ...]
    refusals: tuple[str, ...]
    failure: str = ""

    @property
    def bridged(self) -> bool:
        """Whether the program keeps its Estimator, which a support file answers for."""
        return any(name.endswith("keras_estimator.py") for name in self.texts)


@dataclass(frozen=True)
class Run:
    """What a program left: the error that ended it, what it printed, and what it trained.

    `weights` and `steps` are by model; all are plain numbers in lists.
    """

    error: str | None
    output: str = ""
    weights: tuple[Mapping[str, object], ...] = ()
    steps: tuple[int, ...] = ()
    evaluations: tuple[Mapping[str, object], ...] = ()
    losses: tuple[float, ...] = ()


@dataclass(frozen=True)
class Setting:
    """With what everything is run: the tool's tree, the originals' interpreter (None: TensorFlow 2.15's), processes.

    `style` is that of the tool; with `bridge`, what is blocked in it may become a bridge, as with the command. Each
    program is said in other words by as many `rewordings`, chosen by chance.
    """

    tree: Path = TREE
    original: Path | None = None
    jobs: int = 1
    style: str = "auto"
    bridge: bool = False
    rewordings: int = 0


def migrate(programs: Sequence[Texts], setting: Setting) -> list[Migration]:
    """Migrates every program by itself with the tool of the setting's tree. RuntimeError if that does not run."""
    environment = {**os.environ, "PYTHONPATH": str(setting.tree)}
    run = subprocess.run(
        [sys.executable, str(_INSIDE / "migrating.py"), setting.style, *(["bridge"] if setting.bridge else [])],
        input=json.dumps([dict(texts) for texts in programs]),
        capture_output=True,
        text=True,
        env=environment,
        cwd=setting.tree,
        check=False,
    )
    if run.returncode:
        raise RuntimeError(f"the tool of {setting.tree} did not run:\n{run.stderr}")
    return [
        Migration(found["texts"], tuple(found["codes"]), tuple(found["refusals"]), found["failure"])
        for found in json.loads(run.stdout)
    ]


def run_sides(originals: Sequence[Texts], migrated: Sequence[Texts], setting: Setting) -> tuple[list[Run], list[Run]]:
    """Runs originals and migrated programs, each in an empty folder of its own."""
    shim = str(TREE / "migrator" / "harness" / "inside")
    with tempfile.TemporaryDirectory(prefix="tf-migrate-fuzz-") as name, ThreadPoolExecutor(setting.jobs) as pool:
        folder = Path(name)
        running = []
        for side, programs in (("original", originals), ("migrated", migrated)):
            if not programs:
                continue
            for at, texts in enumerate(programs):
                _write(texts, folder / f"{side}-{at}")
            python = migrated_python() if side == "migrated" else setting.original or original_python()
            for turn in range(min(setting.jobs, len(programs))):
                share = [folder / f"{side}-{at}" for at in range(turn, len(programs), setting.jobs)]
                command = [str(python), str(_INSIDE / f"{side}.py"), str(folder / f"{side}-{turn}.jobs"), shim]
                running.append(pool.submit(_run_share, share, command))
        for one in running:
            one.result()
        return (
            [_read(folder / f"original-{at}") for at in range(len(originals))],
            [_read(folder / f"migrated-{at}") for at in range(len(migrated))],
        )


def _write(texts: Texts, folder: Path) -> None:
    folder.mkdir()
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


def _run_share(share: Sequence[Path], command: Sequence[str]) -> None:
    """Runs the programs of those folders in one interpreter. RuntimeError if that interpreter itself fails."""
    jobs = [{"folder": str(folder), "script": SCRIPT, "out": f"{folder}.json", "seconds": _SECONDS} for folder in share]
    Path(command[2]).write_text(json.dumps(jobs))
    environment = {name: text for name, text in os.environ.items() if name not in ("PYTHONPATH", "TF_CONFIG")}
    environment.update(PYTHONWARNINGS="ignore", PYTHONDONTWRITEBYTECODE="1", TMPDIR=str(share[0].parent))
    run = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if run.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{run.stderr[-4000:]}")


def _read(folder: Path) -> Run:
    log = folder.with_name(folder.name + ".json.log")
    output = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    left = folder.with_name(folder.name + ".json")
    if not left.exists():
        return Run("its process was ended before it could say why", output)
    found = json.loads(left.read_text())
    return Run(
        found["error"],
        output,
        tuple(found.get("weights", ())),
        tuple(found.get("steps", ())),
        tuple(found.get("evaluations", ())),
        tuple(found.get("losses", ())),
    )
