"""Writes the expected output of every fixture anew. Read the diff before you commit it.

python tools/update_fixtures.py [CASE ...]
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from migrator.migrate import migrate  # noqa: E402
from migrator.source.reading import Source, encode, read  # noqa: E402
from tests.fixture_cases import FixtureCase, load_cases  # noqa: E402


def update(case: FixtureCase) -> None:
    """Writes migrated.py (or the files of migrated/) of one case."""
    sources = [source for path in case.original_files if isinstance(source := read(path), Source)]
    for result in migrate(sources, case.options):
        target = case.migrated_file(result.source.path)
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(encode(result.source, result.text))
        for finding in result.findings:
            print(finding)


if __name__ == "__main__":
    wanted = sys.argv[1:]
    for case in [*load_cases(), *load_cases(dtensor=True)]:
        if not wanted or case.name in wanted:
            update(case)
