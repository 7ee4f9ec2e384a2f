"""What a program prints, as it is on TensorFlow 1 and migrated: the lines that begin with "told"."""

from __future__ import annotations

import os
from pathlib import Path

from click.testing import CliRunner

from migrator.cli.migrate import command
from migrator.harness.environments import migrated_python, original_python
from tests import warm

TENSORFLOW1 = os.environ.get("TF_MIGRATE_TENSORFLOW1_PYTHON", "")


def told_by_both(program: str, folder: Path, style: str = "bridge") -> tuple[list[str], list[str]]:
    """Runs the program on 1.15.5 where it is there, else on 2.15.1, and what it becomes on 2.21."""
    old, new = folder / "old" / "program.py", folder / "new" / "program.py"
    for path in (old, new):
        path.parent.mkdir()
        path.write_text(program)
    done = CliRunner().invoke(command, ["--style", style, str(new)])
    assert done.exit_code == 0, done.output
    return _told(TENSORFLOW1 or str(original_python()), old), _told(str(migrated_python()), new)


def _told(python: str, program: Path) -> list[str]:
    done = warm.run(python, program.name, cwd=program.parent)
    assert done.returncode == 0, done.stderr[-3000:]
    return [line for line in done.stdout.splitlines() if line.startswith("told")]
