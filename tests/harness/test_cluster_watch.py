"""Reading the files that running tasks write."""

from pathlib import Path

from migrator.harness.cluster.watch import Activity, LogTail, last_lines


def append(path: Path, content: bytes) -> None:
    with open(path, "ab") as file:
        file.write(content)


def test_log_tail_gives_whole_lines_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    tail = LogTail(log)
    assert list(tail.lines()) == []
    append(log, b"one\ntw")
    assert list(tail.lines()) == ["one"]
    append(log, b"o\n\nthree")
    assert list(tail.lines()) == ["two", ""]
    assert list(tail.lines(final=True)) == ["three"]
    assert list(tail.lines(final=True)) == []


def test_log_tail_survives_a_character_cut_in_two_and_bad_bytes(tmp_path: Path) -> None:
    log = tmp_path / "log"
    tail = LogTail(log)
    whole = "gr\u00fc\u00dfe\n".encode()
    append(log, whole[:3])
    assert list(tail.lines()) == []
    append(log, whole[3:] + b"\xff\n")
    assert list(tail.lines()) == ["gr\u00fc\u00dfe", "\ufffd"]


def test_a_progress_bar_is_its_last_state(tmp_path: Path) -> None:
    log = tmp_path / "log"
    append(log, b"1/3\r2/3\r3/3\r\nnext\r\n")
    assert list(LogTail(log).lines()) == ["3/3", "next"]
    assert last_lines(log) == ("3/3", "next")


def test_last_lines_joins_logs_and_counts_from_the_end(tmp_path: Path) -> None:
    out, err = tmp_path / "out", tmp_path / "err"
    append(out, b"".join(b"out %d\n" % number for number in range(50)))
    assert last_lines(out, err)[-1] == "out 49"
    append(err, b"err 0\n\nerr 1")
    assert last_lines(out, err) == (*(f"out {number}" for number in range(32, 50)), "err 0", "err 1")
    append(err, b"\n" * 100_000 + b"".join(b"more %d\n" % number for number in range(30)))
    assert last_lines(out, err) == tuple(f"more {number}" for number in range(10, 30))


def test_the_records_of_a_file_are_counted_as_they_come(tmp_path: Path) -> None:
    steps = tmp_path / "record" / "local-0" / "steps"
    activity = Activity([tmp_path / "record"], count=steps)
    record = b"%018d%012d" % (1, 3) + b"abc"
    counts = []
    steps.parent.mkdir(parents=True)
    for more in (b"", record, record[:20], record[20:] + record, b"no record, but as long as the head of one"):
        append(steps, more)
        activity.look()
        counts.append(activity.counted)
    assert counts == [0, 1, 1, 3, 3]


def test_activity_sees_growth_new_files_and_folders(tmp_path: Path) -> None:
    record = tmp_path / "record"
    activity = Activity([record])
    moments = [activity.last_change]

    def look() -> None:
        activity.look()
        moments.append(activity.last_change)

    look()
    assert moments[-1] == moments[-2]
    (record / "deep").mkdir(parents=True)
    (record / "deep" / "steps").touch()
    look()
    assert moments[-1] > moments[-2]
    empty = activity.anything
    append(record / "deep" / "steps", b"1")
    look()
    assert moments[-1] > moments[-2]
    assert (empty, activity.anything) == (False, True)
    look()
    assert moments[-1] == moments[-2]
