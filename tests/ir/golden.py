"""The fixtures as programs of the evaluator; `python -m tests.ir.golden` writes the expected texts anew."""

from __future__ import annotations

from pathlib import Path

from migrator.ir.files import Parsed, Together
from migrator.ir.printing import printed
from migrator.ir.program import Program, understood
from tests.fixture_cases import FixtureCase, load_cases

FOLDER = Path(__file__).parent / "programs"


def cases() -> dict[str, FixtureCase]:
    """The fixtures of TensorFlow 1 programs, by name; those of the same original once."""
    found = {case.name: case for case in load_cases() if not case.tensorflow2}
    return {name: case for name, case in found.items() if case.output == "migrated"}


def program(case: FixtureCase) -> Program:
    """A fixture's script, evaluated."""
    files = [Parsed.of(path, path.read_text(encoding="utf-8")) for path in case.original_files]
    main = next(file for file in files if file.path == case.original)
    return understood(Together.of(files), main)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, case in cases().items():
        (FOLDER / f"{name}.txt").write_text(printed(program(case)), encoding="utf-8")


if __name__ == "__main__":
    main()
