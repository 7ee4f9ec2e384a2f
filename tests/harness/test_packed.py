"""Records one behind another in one file: what is written inside of a program is read here, and given to others."""

import importlib.util
from pathlib import Path

from migrator.harness import packed

INSIDE = Path(packed.__file__).with_name("inside") / "appended.py"
specification = importlib.util.spec_from_file_location("inside_appended", INSIDE)
assert specification is not None and specification.loader is not None
appended = importlib.util.module_from_spec(specification)
specification.loader.exec_module(appended)


def test_records_come_back_by_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "steps"
    assert packed.places(path) == ()
    given = [(20, b"\x00\n" * 5000), (10, b""), (1_790_000_000_000_000, b"a")]
    for number, content in given:
        appended.append(str(path), number, content)
    assert list(packed.contents(path)) == sorted(given)
    assert [packed.content(path, place) for place in packed.places(path)] == [one for _, one in sorted(given)]
    appended.append(str(path), 15, b"later")
    assert [place.number for place in packed.places(path)] == [10, 15, 20, 1_790_000_000_000_000]


def test_batches_are_given_to_a_replay_in_files_of_their_own_once(tmp_path: Path) -> None:
    record, replays = tmp_path / "run" / "record", tmp_path / "replays"
    for task in ("chief-0", "worker-1", "ps-0"):
        (record / task).mkdir(parents=True)
        (record / task / "batches").touch()
    (record / "ready").mkdir()
    (record / "chief-0" / "calls.jsonl").write_text("{}\n")
    for number in (7, 5):
        appended.append(str(record / "worker-1" / "batches"), number, b"%d" % number)
    made = packed.for_replay(record, replays)
    files = {str(one.relative_to(made)): one.read_bytes() for one in made.rglob("*") if one.is_file()}
    assert files == {
        "chief-0/calls.jsonl": b"{}\n",
        "worker-1/batches/000000000000000005": b"5",
        "worker-1/batches/000000000000000007": b"7",
    }
    assert packed.for_replay(record, replays) == made and [one.name for one in replays.iterdir()] == [made.name]
    assert packed.for_replay(made, replays) == made, "it has such files already"
    assert packed.for_replay(tmp_path / "none", replays) == tmp_path / "none", "the program says that there is nothing"
