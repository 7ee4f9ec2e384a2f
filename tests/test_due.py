"""Which tests have something new to say, see due.py."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import due

TESTS = due.ROOT / "tests"
PROOF = TESTS / "end_to_end" / "test_rules_train_the_same.py"
LIBRARY = TESTS / "bridge" / "test_inputs.py"
RECORDER = TESTS / "harness" / "test_recording_runs.py"
JUDGE = TESTS / "harness" / "test_session.py"
COMMAND = TESTS / "bridge" / "test_command.py"


def parts(path: Path) -> list[set[str]]:
    return [{one.relative_to(due.ROOT).as_posix() for one in part} for part in due._parts(path)]


@pytest.mark.parametrize("path", [PROOF, LIBRARY, RECORDER, JUDGE, COMMAND], ids=lambda path: path.stem)
def test_a_test_sees_itself_and_what_all_share(path: Path) -> None:
    whole, about, _ = parts(path)
    assert {path.relative_to(due.ROOT).as_posix(), "tests/conftest.py", "setup.cfg"} <= about <= whole


def test_a_proof_sees_the_codemod_by_its_texts_and_the_recorder_as_an_instrument() -> None:
    whole, about, instrument = parts(PROOF)
    rules = {one.relative_to(due.ROOT).as_posix() for one in (due.ROOT / "migrator" / "rules").glob("*.py")}
    assert rules <= whole and not rules & about
    assert "migrator/bridge/library/estimator.py" in whole  # it may come out as a bridge
    assert {"tests/end_to_end/proving.py", "tests/rules/programs.py"} <= about
    inside = "migrator/harness/inside/record_keras.py"
    assert inside in instrument and inside not in whole


def test_the_bridges_modules_are_those_that_a_test_names_and_what_they_import() -> None:
    whole, _, _ = parts(LIBRARY)
    modules = {Path(one).stem for one in whole if one.startswith("migrator/bridge/library/")}
    assert "inputs" in modules and "estimator" not in modules and "tpu" not in modules
    assert "training" in {Path(one).stem for one in parts(TESTS / "bridge" / "test_keras_in_model_fn.py")[0]}


def test_tests_of_the_recorder_and_of_the_judge_see_them() -> None:
    assert "migrator/harness/inside/record_keras.py" in parts(RECORDER)[0]
    assert "migrator/harness/protocol/l1_variables.py" not in parts(RECORDER)[0]
    assert {"migrator/harness/inside/record_keras.py", "migrator/harness/protocol/l1_variables.py"} <= parts(JUDGE)[0]
    assert not parts(RECORDER)[2] and not parts(JUDGE)[2]


def test_who_starts_the_tool_sees_all_of_it() -> None:
    assert {"migrator/rules/losses.py", "migrator/cli/migrate.py", "migrator/emit/beside.py"} <= parts(COMMAND)[1]


def recorded(monkeypatch: pytest.MonkeyPatch, seen: due.Seen, **tests: str | None) -> None:
    green = {PROOF.relative_to(due.ROOT).as_posix(): due.Green(seen, dict(tests))}
    monkeypatch.setattr(due, "recorded", lambda: green)


def test_what_has_changed_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    now = due.seen(PROOF)
    recorded(monkeypatch, now, test_a="texts", test_b=None)
    assert due.waits(PROOF, "test_a") and due.waits(PROOF, "test_b") and not due.waits(PROOF, "test_c")
    # The codemod is another: what came out of it decides.
    recorded(monkeypatch, due.Seen("other", now.about, now.instrument), test_a="texts", test_b=None)
    assert not due.waits(PROOF, "test_a")
    assert due.migrations_when_green(PROOF, "test_a") == "texts" and due.migrations_when_green(PROOF, "test_b") is None
    # So is the test.
    recorded(monkeypatch, due.Seen(now.whole, "other", now.instrument), test_a="texts")
    assert not due.waits(PROOF, "test_a") and due.migrations_when_green(PROOF, "test_a") is None


def test_where_the_instrument_has_changed_a_sample_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    now = due.seen(PROOF)
    names = [f"test_{number}" for number in range(400)]
    recorded(monkeypatch, due.Seen(now.whole, now.about, "other"), **dict.fromkeys(names))
    drawn = [name for name in names if not due.waits(PROOF, name)]
    assert 25 <= len(drawn) <= 80
    monkeypatch.setattr(due, "seen", lambda _: due.Seen(now.whole, now.about, "a third"))
    assert [name for name in names if not due.waits(PROOF, name)] != drawn


def test_a_fixture_of_each_kind_never_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    path, name = TESTS / "end_to_end" / "test_fixtures.py", "test_fixture_is_equivalent[classifier]"
    green = {path.relative_to(due.ROOT).as_posix(): due.Green(due.seen(path), {name: None, "another": None})}
    monkeypatch.setattr(due, "recorded", lambda: green)
    assert due.waits(path, "another") and not due.waits(path, name)


def test_what_is_noted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "green.json"
    monkeypatch.setattr(due, "RECORDED", file)

    def stored() -> dict[str, str | None]:
        due.recorded.cache_clear()
        return due.recorded()[PROOF.relative_to(due.ROOT).as_posix()].tests

    due.recorded.cache_clear()
    due.note({PROOF: {"test_a": "1", "test_b": None, "test_c": "3"}}, {})
    assert stored() == {"test_a": "1", "test_b": None, "test_c": "3"}
    due.note({PROOF: {"test_b": "2"}}, {})  # nothing else has changed: the others are as they were
    assert stored() == {"test_a": "1", "test_b": "2", "test_c": "3"}
    now = due.seen(PROOF)
    monkeypatch.setattr(due, "seen", lambda _: due.Seen("another codemod", now.about, now.instrument))
    due.note({PROOF: {"test_b": "4"}}, {PROOF: {"test_a"}})  # test_c did not run, or failed
    assert stored() == {"test_a": "1", "test_b": "4"}
    # Of another instrument, what was drawn has to run.
    names = [f"test_{number}" for number in range(60)]
    due.note({PROOF: dict.fromkeys(names)}, {})
    monkeypatch.setattr(due, "seen", lambda _: due.Seen("another codemod", now.about, "another"))
    due.recorded.cache_clear()
    drawn = [name for name in names if not due.waits(PROOF, name)]
    due.note({PROOF: {"test_0": None}}, {})
    assert drawn and set(stored()) == {"test_a", "test_b", *names} - {*drawn} | {"test_0"}
    monkeypatch.setattr(due, "seen", lambda _: due.Seen("a third", "another test", now.instrument))
    due.note({PROOF: {"test_b": "5"}}, {})
    assert stored() == {"test_b": "5"}
    due.recorded.cache_clear()


def test_a_test_ends_at_its_first_program_if_all_its_migrations_are_before_that() -> None:
    def run(expected: str | None, *events: str) -> tuple[list[bool], str | None]:
        migrations, answers = due.Migrations(), []
        migrations.begin(expected, ["module::evidence"])
        for event in events:
            if event == "program":
                answers.append(migrations.waits_here())
            elif event.startswith("shared"):
                with migrations.making("module::evidence"):
                    if event != "shared":
                        migrations.made(SimpleNamespace(text=event))
                    assert not migrations.waits_here()
            else:
                migrations.made(SimpleNamespace(text=event))
        return answers, migrations.all

    _, digest = run(None, "a text", "program", "program")
    assert digest and run(digest, "a text", "program", "program") == ([True, True], digest)
    assert run(digest, "another text", "program")[0] == [False]
    assert run(None, "a text", "program", "another text", "program") == ([False, False], None)
    assert run(digest, "shared", "a text", "program") == ([True], digest)
    _, other = run(digest, "shared text", "a text", "program")
    assert other not in (digest, None) and run(other, "a text", "shared text", "program") == ([True], other)
    assert run(other, "a text", "program", "shared text") == ([False], None)
    folders = [f"/tmp/pytest-of-me/pytest-{number}/popen-gw{number}/test_0/x" for number in (1, 2)]
    assert len({run(None, folder, "program")[1] for folder in folders}) == 1


def test_what_tests_share_belongs_to_each_of_them() -> None:
    """Also to those that find it made."""
    migrations = due.Migrations()
    digests = []
    for shared in (["module::evidence"], ["module::evidence"], []):
        migrations.begin(None, shared)
        if not digests:
            with migrations.making("module::evidence"):
                migrations.made("a text")
        migrations.waits_here()
        digests.append(migrations.all)
    assert digests[0] == digests[1] != digests[2]


def test_starting_an_interpreter_is_no_program_of_the_test() -> None:
    migrations = due.Migrations()
    migrations.begin(None)
    with migrations.unseen():
        assert not migrations.waits_here()
    migrations.made("a text")
    assert not migrations.waits_here() and migrations.all


def test_an_interpreter_that_starts_hides_no_program_of_another_thread() -> None:
    """A test whose first program was not seen ended at its second, in the middle of a verification, and with that the
    interpreter that later tests share.
    """
    migrations = due.Migrations()
    migrations.begin("no such digest")
    answers: list[bool] = []
    with migrations.unseen():
        other = threading.Thread(target=lambda: answers.append(migrations.waits_here()))
        other.start()
        other.join()
        assert migrations.all  # seen
        migrations.begin(migrations.all)
        other = threading.Thread(target=lambda: answers.append(migrations.waits_here()))
        other.start()
        other.join()
        assert not migrations.waits_here()
    assert answers == [False, True] and migrations.waits_here()


def test_what_is_imported_in_other_ways_is_seen_too() -> None:
    """Whatever a migration has imported in the end is among what was found by reading."""
    code = (
        "import sys; from tests.rules.programs import program, run; run(program()); run(program(), style='bridge'); "
        "print(*(one.__file__ for name, one in sys.modules.items() if name.startswith('migrator.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=due.ROOT, capture_output=True, text=True, check=True)
    imported = set(map(Path, done.stdout.split()))
    assert len(imported) > 200 and imported <= due._parts(PROOF)[0]
