"""Makes the tag of a release: `make release`, on the commit that is to be it.

The tag is v and the version of `migrator`, which is what the documents tell users to name as `rev:` of the hooks. It is
not made while the tree has changes, CHANGELOG.md does not begin with a dated section of that version, a document names
another `rev:`, or the tag is there already. Nothing is pushed.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from migrator import __version__

ROOT = Path(__file__).resolve().parents[1]
TAG = f"v{__version__}"


def wrong_in_files(root: Path, version: str) -> Iterator[str]:
    """What of the documents does not fit a release of this version."""
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    first = re.search(r"^## (.*)$", changelog, re.MULTILINE)
    if first is None or not re.fullmatch(rf"{re.escape(version)} - \d{{4}}-\d\d-\d\d", first[1]):
        yield f"CHANGELOG.md has to begin with a dated section of {version}"
    for document in sorted(root.glob("docs/**/*.md")):
        for number, line in enumerate(document.read_text(encoding="utf-8").splitlines(), 1):
            rev = re.fullmatch(r"\s*rev: (\S+).*", line)
            if rev is not None and rev[1] != f"v{version}":
                yield f"{document.relative_to(root)}:{number} names {rev[1]}, and the tag is v{version}"


def _git(*words: str) -> str:
    return subprocess.run(["git", "-C", ROOT, *words], check=True, capture_output=True, text=True).stdout


def main() -> None:
    """Makes the tag, or says what is wrong and ends with 1."""
    wrong = list(wrong_in_files(ROOT, __version__))
    if _git("status", "--porcelain"):
        wrong.append("the tree has changes that are not committed")
    if _git("tag", "--list", TAG):
        wrong.append(f"the tag {TAG} is there already")
    if wrong:
        raise SystemExit("\n".join(wrong))
    _git("tag", "--annotate", TAG, "--message", f"tf-migrate {__version__}")
    print(f"{TAG} is made; `git push origin {TAG}` publishes it")


if __name__ == "__main__":
    main()
