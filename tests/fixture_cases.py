"""The fixtures: one folder per case, described by its case.toml."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path

from migrator.migrate import Options

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).resolve().parents[1] / "fixtures"


@dataclass(frozen=True)
class FixtureCase:
    """A program, mostly of TensorFlow 1, the expected migrated program, and how the two are compared.

    `cluster` is what `--cluster` gets (empty: one process without TF_CONFIG), `style` and `keras` what these options
    got; `args` are those of both scripts, and `tpu_cores` virtual CPUs stand in for a TPU. `script` is the file that is
    run, of the same name on both sides, where a side has several files. What `--keras 3` makes of a program is beside
    what Keras 2 gets, in keras3.py or keras3/. `loop` is what `--loop` got, and `devices` what `--devices` of verify
    gets. `in_step`: the trainers of the original wait for each other although it has parameter servers. `mesh` and
    `layouts` are what these options got. `tensorflow2`: the original is a TensorFlow 2 program, on `original_devices`.
    """

    name: str
    folder: Path
    shows: str
    cluster: str
    strategy: str
    style: str
    script: str | None
    keras: str = "2"
    args: tuple[str, ...] = ()
    tpu_cores: int = 1
    loop: str = "fit"
    devices: int | None = None
    in_step: bool = False
    mesh: str = ""
    layouts: tuple[str, ...] = ()
    tensorflow2: bool = False
    original_devices: int = 1

    @property
    def options(self) -> Options:
        """What the codemod is asked for."""
        return Options(self.strategy, self.style, self.keras, self.loop, self.mesh, self.layouts)

    @property
    def original(self) -> Path:
        return self.folder / "original" / self.script if self.script else self.folder / "original.py"

    @property
    def migrated(self) -> Path:
        return self.folder / self.output / self.script if self.script else self.folder / f"{self.output}.py"

    @property
    def output(self) -> str:
        """The name of the expected file, or folder of files."""
        return "migrated" if self.keras == "2" else "keras3"

    @property
    def original_files(self) -> list[Path]:
        return sorted((self.folder / "original").glob("*.py")) if self.script else [self.original]

    def migrated_file(self, original: Path) -> Path:
        """The expected counterpart of one original file."""
        return self.folder / self.output / original.name if self.script else self.migrated


def load_cases(*, dtensor: bool = False) -> list[FixtureCase]:
    """All fixtures of programs for the codemod to bring to a strategy, by name; or those of DTensor programs."""
    cases = []
    for path in sorted(FOLDER.glob("*/case.toml")):
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        if data.get("dtensor", False) != dtensor:
            continue
        case = FixtureCase(
            name=path.parent.name,
            folder=path.parent,
            shows=data["shows"],
            cluster=data.get("cluster", ""),
            strategy=data.get("strategy", "auto"),
            style=data.get("style", "native"),
            script=data.get("script"),
            args=tuple(data.get("args", ())),
            tpu_cores=data.get("tpu_cores", 1),
            loop=data.get("loop", "fit"),
            devices=data.get("devices"),
            in_step=data.get("in_step", False),
            mesh=data.get("mesh", ""),
            layouts=tuple(data.get("layouts", ())),
            tensorflow2=data.get("tensorflow2", False),
            original_devices=data.get("original_devices", 1),
        )
        cases.append(case)
        if data.get("keras3", False):
            cases.append(replace(case, name=f"{case.name}_keras3", keras="3"))
    return cases
