"""`make demo`, the first command of the README, in a clone: all but the training."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_demo_migrates_and_asks_for_a_verdict(tmp_path: Path) -> None:
    clone, commands = tmp_path / "clone", tmp_path / "bin"
    (clone / "tools").mkdir(parents=True)
    commands.mkdir()
    shutil.copy(ROOT / "tools" / "demo", clone / "tools")
    shutil.copytree(ROOT / "fixtures" / "multi_worker_guide", clone / "fixtures" / "multi_worker_guide")
    (clone / ".gitignore").write_text("build/\n")
    for command in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *command], cwd=clone, check=True)
    migrate = commands / "tf-migrate"
    migrate.write_text(
        '#!/usr/bin/env bash\nif [ "$1" = verify ]; then echo "asked: $*"; exit 0; fi\n'
        f'export PYTHONPATH="{ROOT}"\nexec "{sys.executable}" -m migrator "$@"\n'
    )
    migrate.chmod(0o755)
    done = subprocess.run(
        ["bash", "tools/demo", str(commands)], cwd=clone, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "+    model.fit(" in done.stdout or "+    model" in done.stdout
    assert "asked: verify fixtures/multi_worker_guide/original.py build/demo/migrated.py --cluster" in done.stdout
