"""How long a repository of 10,000 Python files takes: `python benchmarks/large_tree.py [--rounds 5]`.

Makes a git repository of the packages of this environment, as often as it takes, and the originals of all fixtures,
and checks it: with nothing in the cache, from the cache, and with one and two processes. Prints medians of the CPU time
(user and system, git's included) and of the time on the clock.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"


def make_tree(folder: Path, files: int) -> int:
    """Writes a repository of that many Python files, all committed; returns how many bytes they are."""
    size = 0
    for source, place in islice(_files(), files):
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        size += target.stat().st_size
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "all"]):
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "gc.auto=0"]
        subprocess.run(["git", *identity, *words], cwd=folder, check=True)
    return size


def _files() -> Iterator[tuple[Path, Path]]:
    for fixture in sorted(FIXTURES.iterdir()):
        if (fixture / "original.py").exists():
            yield fixture / "original.py", Path("programs", f"{fixture.name}.py")
        else:
            for file in sorted((fixture / "original").rglob("*.py")):
                yield file, Path("programs", fixture.name, file.relative_to(fixture / "original"))
    packages = Path(sysconfig.get_path("purelib"))
    found = sorted(file for file in packages.rglob("*.py") if file.is_file())
    for copy in count():
        for file in found:
            yield file, Path(f"copy{copy}", file.relative_to(packages))


def measured(folder: Path, cache: Path, *words: str) -> tuple[float, float]:
    """Seconds of CPU, and on the clock, of one check."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "tf_migrate", "--check", "--quiet", *words, "."]
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 1:
        raise SystemExit(f"exit {done.returncode}: {done.stdout.decode()[-2000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, time.perf_counter() - started


def main() -> None:
    """Measures, and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        tree, cache = Path(name, "tree"), Path(name, "cache")
        tree.mkdir()
        size = make_tree(tree, asked.files)
        load = os.getloadavg()[0]
        print(f"{asked.files} files, {size / 1e6:.0f} MB; load {load:.1f} before; medians of {asked.rounds} rounds")
        kinds: dict[str, list[tuple[float, float]]] = {}
        measured(tree, cache)  # what Python compiles, it compiles once
        for _ in range(asked.rounds):
            for kind, words in (
                ("cold, one process", ("--jobs", "1", "--no-cache")),
                ("cold, two processes", ("--jobs", "2", "--no-cache")),
                ("from the cache", ()),
            ):
                kinds.setdefault(kind, []).append(measured(tree, cache, *words))
        for kind, figures in kinds.items():
            used, clock = (statistics.median(column) for column in zip(*figures, strict=True))
            print(f"{kind:20} {used:6.2f} CPU s {clock:6.2f} s on the clock")
        alone, two = (
            statistics.median(clock for _, clock in kinds[f"cold, {word}"]) for word in ("one process", "two processes")
        )
        print(f"two processes are {alone / two:.2f} times as fast as one")


if __name__ == "__main__":
    main()
