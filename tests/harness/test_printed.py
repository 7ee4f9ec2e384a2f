"""The numbers that a run printed."""

from pathlib import Path

from migrator.harness import printed
from migrator.harness.recording import _printed


def test_numbers_with_a_point_are_kept(tmp_path: Path) -> None:
    (tmp_path / "record").mkdir()
    folder = tmp_path / "tasks" / "local-0"
    folder.mkdir(parents=True)
    (folder / "stdout.log").write_text("[0.25 -1.5e-3] loss: 3.\nstep 7 v1.2.3 2.15.1 x0.5\n0.25\n")
    printed.keep(tmp_path)
    assert _printed(tmp_path / "record" / printed.FILE) == ((-1.5e-3, 0.25, 3.0), (7,))


def test_numbers_without_a_point_are_kept_in_their_order(tmp_path: Path) -> None:
    (tmp_path / "record").mkdir()
    folder = tmp_path / "tasks" / "local-0"
    folder.mkdir(parents=True)
    (folder / "stdout.log").write_text("class: 2, [0 -1 1] 60/60 v3 x4 5s 6. 7.5 True\nFalse Trueish 8\n9.\n10")
    printed.keep(tmp_path)
    assert _printed(tmp_path / "record" / printed.FILE)[1] == (2, 0, -1, 1, 60, 60, 1, 0, 8, 10)


def test_nothing_printed_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "record").mkdir()
    printed.keep(tmp_path)
    assert _printed(tmp_path / "record" / printed.FILE) == ((), ())


def test_where_nothing_was_recorded_nothing_is_kept(tmp_path: Path) -> None:
    (tmp_path / "tasks" / "local-0").mkdir(parents=True)
    (tmp_path / "tasks" / "local-0" / "stdout.log").write_text("loss 0.5")
    printed.keep(tmp_path)
    assert not (tmp_path / "record").exists()
