"""Remedies: every reason for INCONCLUSIVE says what was found, what is ruled out, and the command that settles it."""

from __future__ import annotations

import shlex

import pytest
from click.testing import CliRunner

from migrator.cli.verify import command
from migrator.harness.cluster.launch import FAILURE_KINDS
from migrator.harness.protocol import remedies
from migrator.harness.protocol.results import AsyncEvidence, Divergence, LevelResult, Reason, Remedy, Status

COMMAND = ("tf-migrate", "verify", "a b.py", "m.py", "--steps", "12", "--", "--steps", "7")
CONTEXT = remedies.Context(COMMAND, steps=12, seeds=8, timeout=100.0)


def level(reason: Reason | None, level_id: str = "L5", **changes: object) -> LevelResult:
    return LevelResult(level_id, "Title", Status.INCONCLUSIVE, "what it says", reason, **changes)  # type: ignore[arg-type]


def settled(reason: Reason, context: remedies.Context = CONTEXT, **changes: object) -> list[str] | None:
    made = remedies.remedy(level(reason, **changes), context)  # type: ignore[arg-type]
    assert made is not None
    if made.command is None:
        return None
    return shlex.split(made.command)


def test_every_reason_that_may_be_inconclusive_has_advice() -> None:
    never = {
        Reason.PROGRAM_FAILED,
        Reason.SETTING_DIFFERS,
        Reason.VARIABLES_DIFFER,
        Reason.DATA_DIFFERS,
        Reason.VALUE_DIFFERS,
        Reason.STOPPED_EARLIER,
    }
    assert set(remedies._ADVICE) == set(Reason) - never
    for reason in set(Reason) - never:
        made = remedies.remedy(level(reason), CONTEXT)
        assert made is not None
        assert made.found.startswith("L5: what it says. ")
        if made.command is not None:
            assert shlex.split(made.command)[-3:] == ["--", "--steps", "7"], "the script's arguments stay as they are"
            assert shlex.split(made.command) != list(COMMAND), "the same command again settles nothing"


def test_there_is_none_for_other_verdicts() -> None:
    for status in (Status.EQUIVALENT, Status.DIFFERENT, Status.NOT_APPLICABLE):
        assert remedies.remedy(LevelResult("L4", "", status, ""), CONTEXT) is None
    left_out = LevelResult("L6", "", Status.NOT_EXERCISED, "not asked for", Reason.NOT_EXERCISED)
    made = remedies.remedy(left_out, CONTEXT)
    assert made is not None and made.command is not None and "--full" in made.command


def after_failure(kind: str, message: str = "local:0 ended with exit code 1: ValueError: no", *tail: str) -> Remedy:
    failed = LevelResult("L0", "", Status.FAILED, message, Reason.PROGRAM_FAILED, notes=tail)
    made = remedies.remedy(failed, remedies.Context(COMMAND, stall_timeout=45.0, failure=kind))
    assert made is not None and made.found.startswith(f"L0: {message}. ")
    return made


def test_every_kind_of_failure_has_a_remedy_of_its_own() -> None:
    kinds = [kind for kind in FAILURE_KINDS if kind != "timeout"]  # a run that takes too long is no failure
    made = {kind: after_failure(kind) for kind in kinds}
    assert set(remedies._AFTER) == set(kinds)
    assert len({one.found for one in made.values()}) == len(kinds)
    assert all(one.command is None or shlex.split(one.command) != list(COMMAND) for one in made.values())
    assert made["stall"].command is not None and "--stall-timeout 180 -- --steps 7" in made["stall"].command
    assert made["disk"].command is not None and made["disk"].command.startswith("env TMPDIR=")
    # A run that left no recording, or that failed late, has no kind.
    assert after_failure("").found == made["exit"].found


@pytest.mark.parametrize(
    ("message", "tail", "told", "option"),
    [
        ("exit code 1: ModuleNotFoundError: No module named 'pandas.io'", (), "name the package", "--with pandas"),
        ("exit code 1: ModuleNotFoundError: No module named 'tensorflow.contrib'", (), "Fix that", None),
        ("exit code 1: FileNotFoundError: [Errno 2] No such file or directory: 'a.csv'", (), "working directory", None),
        ("exit code 2", ("train.py: error: unrecognized arguments: --x",), "after `--`", None),
        (
            "exit code 1: PermissionError: [Errno 13] verify keeps programs from changing what is outside of their run",
            (),
            "changes your files",
            "--allow-writes",
        ),
        ("exit code 1: RuntimeError: no", (), "whole log", None),
    ],
)
def test_what_a_program_says_when_it_fails_tells_what_to_do(
    message: str, tail: tuple[str, ...], told: str, option: str | None
) -> None:
    made = after_failure("exit", f"the migrated program failed: local:0 ended with {message}", *tail)
    assert told in made.found
    assert (made.command is None) if option is None else (made.command is not None and option in made.command)


@pytest.mark.parametrize(
    ("reason", "changes", "options"),
    [
        (Reason.CONTROL_NOT_DETECTED, {}, ["--steps", "48"]),
        (Reason.BEYOND_TRUSTED_HORIZON, {"horizon_step": 9}, ["--steps", "9"]),
        (Reason.DEGENERATE_PARTICIPATION, {}, ["--steps", "200"]),
        (Reason.UNMAPPED_VARIABLE, {}, ["--steps", "12", "--name-map", "names.json"]),
        (Reason.INSUFFICIENT_SEEDS, {}, ["--steps", "12", "--full", "--seeds", "16"]),
        (Reason.TIMEOUT, {}, ["--steps", "12", "--timeout", "400"]),
        (Reason.NOT_EXERCISED, {}, ["--steps", "12", "--full"]),
        (Reason.NONDETERMINISTIC_ORIGINAL, {"level_id": "L2"}, []),
        (Reason.NONDETERMINISTIC_ORIGINAL, {"level_id": "L4b"}, None),
        (Reason.MISSING_VALUES, {}, ["--steps", "20"]),
        (Reason.DATA_NOT_REPLAYABLE, {}, None),
        (Reason.ORDER_DIFFERS, {}, None),
        (Reason.NON_FINITE, {"differences": (Divergence("loss", None, None, step=6),)}, ["--steps", "5"]),
        (Reason.NON_FINITE, {}, None),
    ],
)
def test_the_command_that_settles_it(reason: Reason, changes: dict[str, object], options: list[str] | None) -> None:
    """None: the scripts have to change first, and the command stays what it is."""
    assert settled(reason, **changes) == (None if options is None else [*COMMAND[:4], *options, *COMMAND[6:]])


def test_keras_in_a_graph_leaves_its_mode() -> None:
    summary = "local:0 trains with fit of a Keras model in TensorFlow 1's mode (m.py:3)"
    advice = remedies._not_replayable(LevelResult("L0", "", Status.INCONCLUSIVE, summary), remedies.Context(COMMAND))[0]
    assert "disable_v2_behavior" in advice and "copy" in advice
    other = remedies._not_replayable(LevelResult("L0", "", Status.INCONCLUSIVE, "other"), remedies.Context(COMMAND))[0]
    assert "train_step" in other


def test_an_unstable_machine_is_reduced_to_one_core_and_then_given_everything() -> None:
    words = settled(Reason.ENVIRONMENT_UNSTABLE)
    assert words is not None and words == ["taskset", "-c", "0", *COMMAND]
    again = settled(Reason.ENVIRONMENT_UNSTABLE, remedies.Context(words))
    assert (
        again is not None and "--full" in again and again[:3] == ["taskset", "-c", "0"] and again.count("taskset") == 1
    )


def evidence(ci90: tuple[float, float], needed: int | None) -> AsyncEvidence:
    return AsyncEvidence(8, 1000, 0.05, 0.044, 0.0, ci90, 0.1, 0.5, (), 0.0, (0.0, 0.0), 0.18, needed, ())


def test_the_seeds_that_are_needed_and_what_their_interval_rules_out() -> None:
    context = remedies.Context(COMMAND, seeds=8, asynchronous=evidence((-0.01, 0.07), 25))
    made = remedies.remedy(level(Reason.INSUFFICIENT_SEEDS, "L6"), context)
    assert made is not None
    assert made.command is not None and "--full --seeds 25" in made.command and "About 25 seeds" in made.found
    # exp(0.07) - 1
    assert made.ruled_out == (
        "running freely, an error like a learning rate more than 7.3 % off is excluded; one of 5 % is not"
    )
    inside = remedies.Context(COMMAND, asynchronous=evidence((-0.01, 0.03), None))
    made = remedies.remedy(level(Reason.CONTROL_NOT_DETECTED, "L6"), inside)
    assert made is not None and made.ruled_out.endswith("a learning rate 5 % off is excluded")


def test_what_other_levels_rule_out() -> None:
    good = LevelResult("L4", "", Status.EQUIVALENT, "", excluded="a learning rate 0.01 % off would have been seen")
    other = LevelResult("L3", "", Status.EQUIVALENT, "")
    stuck = level(Reason.BEYOND_TRUSTED_HORIZON, horizon_step=88)

    def ruled_out(*levels: LevelResult, of: LevelResult = stuck) -> str:
        made = remedies.remedy(of, remedies.Context(COMMAND, levels))
        assert made is not None
        return made.ruled_out

    assert ruled_out(other, good, stuck) == (
        "L4: a learning rate 0.01 % off would have been seen; L5: the losses agree up to step 88"
    )
    assert ruled_out(other, of=level(Reason.TIMEOUT)) == (
        "what L3 compare agrees, and no smaller error than that is excluded"
    )
    assert ruled_out(of=level(Reason.TIMEOUT)) == "nothing yet"


@pytest.mark.parametrize(
    ("words", "options", "expected"),
    [
        (["v", "a"], {"--steps": "5"}, "v a --steps 5"),
        (["v", "--steps", "3", "a"], {"--steps": "5"}, "v a --steps 5"),
        (["v", "--steps=3", "a"], {"--steps": "5"}, "v a --steps 5"),
        (["v", "--full", "a"], {"--full": ""}, "v a --full"),
        (["v", "--steps", "3", "a"], {"--steps": None}, "v a"),
        (["v", "a"], {"--steps": None}, "v a"),
        (["v", "a b", "--", "--steps", "3"], {"--steps": "5"}, "v 'a b' --steps 5 -- --steps 3"),
    ],
)
def test_options_are_set_in_a_command(words: list[str], options: dict[str, str | None], expected: str) -> None:
    assert remedies.with_options(words, options) == expected


def test_every_option_that_is_advised_exists() -> None:
    text = CliRunner().invoke(command, ["--help"]).output
    for option in (
        "--steps",
        "--full",
        "--seeds",
        "--name-map",
        "--timeout",
        "--stall-timeout",
        "--with",
        "--allow-writes",
    ):
        assert option in text
