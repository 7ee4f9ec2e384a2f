"""The fixtures: one folder per case, described by its case.toml."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).resolve().parents[1] / "fixtures"


@dataclass(frozen=True)
class FixtureCase:
    """A TensorFlow 1 program, the expected migrated program, and how the two are compared.

    `cluster` is what `--cluster` gets (empty: one process without TF_CONFIG), `style` what `--style` got. `script` is
    the file that is run, of the same name on both sides, where a side has several files.
    """

    name: str
    folder: Path
    shows: str
    cluster: str
    strategy: str
    style: str
    script: str | None

    @property
    def original(self) -> Path:
        return self.folder / "original" / self.script if self.script else self.folder / "original.py"

    @property
    def migrated(self) -> Path:
        return self.folder / "migrated" / self.script if self.script else self.folder / "migrated.py"

    @property
    def original_files(self) -> list[Path]:
        return sorted((self.folder / "original").glob("*.py")) if self.script else [self.original]

    def migrated_file(self, original: Path) -> Path:
        """The expected counterpart of one original file."""
        return self.folder / "migrated" / original.name if self.script else self.migrated


def load_cases() -> list[FixtureCase]:
    """All fixtures, by name."""
    cases = []
    for path in sorted(FOLDER.glob("*/case.toml")):
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        cases.append(
            FixtureCase(
                name=path.parent.name,
                folder=path.parent,
                shows=data["shows"],
                cluster=data.get("cluster", ""),
                strategy=data.get("strategy", "auto"),
                style=data.get("style", "native"),
                script=data.get("script"),
            )
        )
    return cases
