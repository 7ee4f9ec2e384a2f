"""What waits for a release, see release.py: something that stays covers its kind, and its files have a digest."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests import release

FILES = {path.stem: path for path in (release.ROOT / "tests").rglob("test_*.py")}


@pytest.mark.parametrize("one", release.WAITING, ids=lambda one: f"{one.test}-{one.instead.rpartition('::')[2]}")
def test_something_stays_that_covers_its_kind(one: release.Waiting) -> None:
    for file, names in ((one.file, one.tests), (one.instead.partition("::")[0], (one.instead.partition("::")[2],))):
        text = FILES[file].read_text(encoding="utf-8")
        assert all(re.search(rf"def {name.partition('[')[0]}\(", text) for name in names)
    file, _, name = one.instead.partition("::")
    assert release.find(file, name) is None
    assert one.reason


def test_digests_are_of_files_that_there_are() -> None:
    assert sorted(release.recorded()) == release.places()
    assert all(any(release.ROOT.glob(one)) for place in release.places() for one in place.split())


def test_what_has_changed_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "test_fixture_is_equivalent[bert_classifier]"
    one = release.find("test_fixtures", name)
    assert one is not None
    monkeypatch.setattr(release, "recorded", lambda: {"fixtures/bert_classifier/**/*": "of another text"})
    assert not one.waits(name)
    monkeypatch.setattr(release, "recorded", lambda: {place: release.digest(place) for place in release.places()})
    assert one.waits(name)


def test_every_name_that_waits_is_one_of_a_test() -> None:
    """Pytest itself refuses a name that there is not, but only where it collects the tests that train."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--collect-only", "-m", "tensorflow"]
    done = subprocess.run(command, cwd=release.ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-500:]
