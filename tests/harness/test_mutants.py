"""The catalogue of known mistakes, the judgement on them, the kill table, and the cases of the self-test."""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from numpy_programs import Program, run
from rich.console import Console

from migrator.cli import selftest as selftest_command
from migrator.harness.case import Case
from migrator.harness.mutants import BY_ID, MUTANTS, SENTINELS, Family, cases, select, selftest, table
from migrator.harness.mutants.killing import CaseKills, KillTable, Unmutated, kill, same_numbers
from migrator.harness.protocol.results import LevelResult, MutantOutcome, Status
from migrator.harness.protocol.verdict import REQUIRED, TITLES
from migrator.harness.recording import Evaluation, Lines, Recording

INSIDE = Path(__file__).parents[2] / "migrator" / "harness" / "inside"
MUTATE = ast.parse((INSIDE / "mutate.py").read_text(), feature_version=(3, 7))


def kinds() -> set[str]:
    """The keys of KINDS in mutate.py, which cannot be imported here."""
    for node in MUTATE.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "KINDS":
            assert isinstance(node.value, ast.Dict)
            return {key.value for key in node.value.keys if isinstance(key, ast.Constant)}
    raise AssertionError("mutate.py has no KINDS")


class TestCatalogue:
    def test_ids_and_what_they_do_are_unique(self) -> None:
        assert len(BY_ID) == len(MUTANTS)
        assert len({json.dumps(dict(mutant.parameters), sort_keys=True) for mutant in MUTANTS}) == len(MUTANTS)
        assert len({mutant.description for mutant in MUTANTS}) == len(MUTANTS)

    def test_every_mutant_can_be_told_to_the_process(self) -> None:
        for mutant in MUTANTS:
            plan = json.loads(json.dumps(mutant.plan))
            assert plan["id"] == mutant.id and plan["kind"] in kinds()
            assert mutant.expected_level in TITLES

    def test_every_kind_is_used_and_every_family_has_mutants(self) -> None:
        assert {mutant.parameters["kind"] for mutant in MUTANTS} == kinds()
        assert {mutant.family for mutant in MUTANTS} == set(Family)

    def test_what_is_unseen_is_not_found_by_reading_settings(self) -> None:
        unseen = [mutant for mutant in MUTANTS if mutant.parameters.get("unseen")]
        assert len(unseen) > 5
        assert all(mutant.expected_level != "L0b" for mutant in unseen)

    def test_the_sentinels(self) -> None:
        assert [mutant.id for mutant in SENTINELS] == [
            "learning-rate-x1.01",
            "last-batch-dropped",
            "update-ops-missing",
            "sum-for-mean",
        ]

    def test_selection(self) -> None:
        assert select(["sentinels"]) == tuple(mutant for mutant in MUTANTS if mutant in SENTINELS)
        chosen = select(["evaluation", "nesterov", "nesterov"])
        assert [mutant.id for mutant in chosen if mutant.family is not Family.EVALUATION] == ["nesterov"]
        assert len(chosen) == 1 + sum(mutant.family is Family.EVALUATION for mutant in MUTANTS)
        assert select([]) == ()
        with pytest.raises(ValueError, match="nestorov"):
            select(["nestorov"])


@dataclass(frozen=True)
class Made:
    recording: Recording | None
    complaint: str | None = None


BASE = run(Program())
MUTANT = BY_ID["epsilon-unseen"]
MUTATED = replace(run(Program(float64_sums=True)), mutation=1)


def level(id: str, status: Status = Status.EQUIVALENT, ratio: float | None = None) -> LevelResult:
    return LevelResult(id, TITLES[id], status, f"{id} says so", ratio=ratio, tolerance=None if ratio is None else 8.0)


def judged(
    recording: Recording | None, levels: Sequence[LevelResult] = (), before: Sequence[LevelResult] = ()
) -> MutantOutcome:
    plans: list[Mapping[str, Any]] = []

    def start(plan: Mapping[str, Any]) -> Made:
        plans.append(plan)
        return Made(recording, "it broke" if recording is None else None)

    outcome = kill(MUTANT, start, lambda _: levels, Unmutated(BASE, tuple(before)))
    assert plans == [{"mutant": MUTANT.plan}]
    assert (outcome.id, outcome.description, outcome.expected_level) == (MUTANT.id, MUTANT.description, "L4")
    return outcome


class TestKilling:
    def test_the_first_level_that_says_different_kills(self) -> None:
        levels = [level("L0"), level("L4", Status.DIFFERENT, 77.0), level("L5", Status.DIFFERENT, 99.0)]
        outcome = judged(MUTATED, levels)
        assert (outcome.status, outcome.killed_at, outcome.ratio) == ("killed", "L4", 77.0)
        assert outcome.detail == "L4 says so"

    def test_a_crash_proves_nothing(self) -> None:
        outcome = judged(None, [level("L0", Status.DIFFERENT)])
        assert (outcome.status, outcome.killed_at) == ("not_exercised", None)
        assert "it broke" in outcome.detail

    def test_nothing_to_change(self) -> None:
        assert judged(replace(MUTATED, mutation=0), [level("L4", Status.DIFFERENT)]).status == "not_applicable"

    def test_a_run_without_the_mutant_is_an_error(self) -> None:
        with pytest.raises(ValueError, match="epsilon-unseen"):
            judged(replace(MUTATED, mutation=None))

    def test_a_change_without_effect_is_never_killed(self) -> None:
        outcome = judged(replace(BASE, mutation=3), [level("L4", Status.DIFFERENT)])
        assert (outcome.status, outcome.killed_at) == ("not_exercised", None)

    def test_what_no_level_says_is_missed(self) -> None:
        outcome = judged(MUTATED, [level("L0"), level("L3", ratio=0.5), level("L4", ratio=3.1)])
        assert (outcome.status, outcome.killed_at) == ("missed", None)
        assert "3.1 noise floors (L4)" in outcome.detail
        assert judged(MUTATED, [level("L0")]).status == "missed"

    def test_what_is_no_more_than_rounding_cannot_be_seen(self) -> None:
        outcome = judged(MUTATED, [level("L3", ratio=0.5), level("L4", ratio=1.9)])
        assert outcome.status == "not_exercised"
        assert "1.9 noise floors" in outcome.detail

    @pytest.mark.parametrize(
        "changed",
        [
            {"batches": BASE.batches[:-1]},
            {"dropout_rates": (0.5,)},
            {"update_ops": 2},
            {"regularizers": 1},
            {"steps": tuple(replace(step, learning_rate=0.0501) for step in BASE.steps)},
            {"evaluations": (Evaluation("local:0", 30, {"loss": 1.0}),)},
        ],
        ids=lambda changed: next(iter(changed)),
    )
    def test_what_is_exact_is_not_rounding(self, changed: dict[str, Any]) -> None:
        assert judged(replace(MUTATED, **changed), [level("L4", ratio=0.1)]).status == "missed"

    def test_no_ratio_that_is_not_a_number_is_rounding(self) -> None:
        assert judged(MUTATED, [level("L4", ratio=math.nan)]).status == "missed"

    def test_inconclusive_is_neither_killed_nor_missed(self) -> None:
        levels = [level("L0"), level("L2", Status.INCONCLUSIVE), level("L4", ratio=3.1)]
        outcome = judged(MUTATED, levels, [level("L2")])
        assert (outcome.status, outcome.killed_at) == ("not_exercised", None)
        assert "L2 is INCONCLUSIVE" in outcome.detail
        # It was so before: the mistake has not changed the verdict.
        assert judged(MUTATED, levels, [level("L2", Status.INCONCLUSIVE)]).status == "missed"


class TestSameNumbers:
    def test_a_recording_and_its_repetition(self) -> None:
        again = run(Program())
        assert again is not BASE and same_numbers(BASE, again)
        later = tuple(replace(step, time=9.0) for step in again.steps)
        assert same_numbers(BASE, replace(again, steps=later, mutation=1))

    @pytest.mark.parametrize(
        "changed",
        [
            {"learning_rate": 0.050001},
            {"drop_last": 1},
            {"epsilon": 1e-7, "train_output": False},
        ],
    )
    def test_another_program(self, changed: dict[str, Any]) -> None:
        assert not same_numbers(BASE, run(Program(**changed)))

    def test_bits_count(self) -> None:
        zero, minus = np.zeros(2, np.float32), -np.zeros(2, np.float32)
        assert same_numbers(zero, zero.copy())
        assert not same_numbers(zero, minus)
        assert not same_numbers(zero, zero.astype(np.float64))
        assert not same_numbers(zero, zero.reshape(2, 1))
        assert same_numbers(np.array([np.nan]), np.array([np.nan])) and same_numbers(math.nan, math.nan)
        assert not same_numbers({"a": 1.0}, {"b": 1.0}) and not same_numbers((1.0,), (1.0, 2.0))


def outcome(id: str, status: str, killed_at: str | None = None, ratio: float | None = None) -> MutantOutcome:
    return MutantOutcome(id, BY_ID[id].description, BY_ID[id].expected_level, status, killed_at, ratio)


GOOD = KillTable(
    (
        CaseKills(
            "first",
            Status.EQUIVALENT,
            "the same",
            (
                outcome("sum-for-mean", "killed", "L3", math.inf),
                outcome("nesterov", "killed", "L0b"),
                outcome("clipping-5-unseen", "not_exercised"),
            ),
        ),
        CaseKills("second", Status.EQUIVALENT, "the same", (outcome("sum-for-mean", "not_applicable"),)),
    )
)


def text(kills: KillTable) -> str:
    file = StringIO()
    table.show(kills, Console(file=file, width=120))
    return file.getvalue()


class TestKillTable:
    def test_what_passes(self) -> None:
        assert GOOD.passed
        assert [mutant.id for mutant in GOOD.mutants] == ["nesterov", "clipping-5-unseen", "sum-for-mean"]
        assert GOOD.never_killed == ("clipping-5-unseen",)
        assert GOOD.outcome("second", "nesterov") is None
        assert "2 killed, 0 missed, 0 false alarm(s)" in text(GOOD)

    def test_a_miss_and_a_false_alarm_do_not(self) -> None:
        missed = replace(GOOD.cases[1], outcomes=(outcome("nesterov", "missed"),))
        blind = KillTable((GOOD.cases[0], missed))
        assert not blind.passed and blind.count("missed") == 1
        assert "Missed in second: the other of the two momentum rules (nesterov)" in text(blind)
        alarmed = KillTable((replace(GOOD.cases[1], unmutated=Status.INCONCLUSIVE, outcomes=()),))
        assert not alarmed.passed and alarmed.false_alarms == ("second",)
        assert "False alarm: second: the same" in text(alarmed)

    def test_the_document_is_json(self) -> None:
        document = json.loads(json.dumps(GOOD.document(), allow_nan=False))
        assert document["totals"] == {"killed": 2, "missed": 0, "not_exercised": 1, "not_applicable": 1}
        assert document["cases"][0]["mutants"][0]["ratio"] == "inf"
        assert document["cases"][1] | {"mutants": []} == {
            "case": "second",
            "verdict": "EQUIVALENT",
            "summary": "the same",
            "duration_s": 0.0,
            "mutants": [],
        }


class TestCases:
    def test_the_workloads_try_every_mutant(self) -> None:
        tried = {mutant.id for case in cases.workloads() for mutant in case.mutants}
        assert tried == set(BY_ID)
        assert {case.cluster for case in cases.workloads()} >= {"", "worker=2", "chief=1,ps=2"}

    def test_the_sentinels_are_tried_on_the_fixtures(self) -> None:
        found = {case.name: case for case in cases.fixtures()}
        assert found and all(case.mutants for case in found.values())
        assert cases.find(["batch_norm"]) == tuple(c for c in cases.workloads() if c.name == "batch_norm")

    def test_a_folder(self, tmp_path: Path) -> None:
        folder = tmp_path / "mine"
        for side in ("original", "migrated"):
            (folder / side).mkdir(parents=True)
            (folder / side / "train.py").write_text("")
        (folder / "case.toml").write_text('script = "train.py"\nmutants = ["nesterov"]\n')
        (found,) = cases.find([str(folder)])
        assert (found.name, found.original, found.mutants) == (
            "mine",
            folder / "original" / "train.py",
            (BY_ID["nesterov"],),
        )

    def test_a_case_is_run_as_its_file_says(self) -> None:
        """Without them two replicas would be judged as one, and a program that wants flags would not run at all."""
        found = {case.name: case.options for case in cases.fixtures()}
        assert found["towers"] == {"devices": 2}
        assert found["mirrored_mesh"] == {"devices": 4, "original_devices": 2}
        assert found["tpu_convnet"] == {"tpu_cores": 2, "args": ("--use_tpu=true", "--tpu=any")}
        assert found["multi_worker_guide"] == {}

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (None, "No such file"),
            ("shows = ", "case.toml"),
            ('shows = "nothing"', "original.py is missing"),
        ],
    )
    def test_what_is_no_case(self, tmp_path: Path, content: str | None, message: str) -> None:
        if content is not None:
            (tmp_path / "case.toml").write_text(content)
        with pytest.raises(cases.SelfTestCaseError, match=message):
            cases.load(tmp_path)

    def test_a_mutant_that_there_is_not(self, tmp_path: Path) -> None:
        for name in ("original.py", "migrated.py"):
            (tmp_path / name).write_text("")
        (tmp_path / "case.toml").write_text('mutants = ["nestorov"]')
        with pytest.raises(cases.SelfTestCaseError, match="nestorov"):
            cases.load(tmp_path)


class TestCommand:
    @pytest.mark.parametrize(
        ("kills", "code"),
        [
            (GOOD, 0),
            (KillTable((replace(GOOD.cases[0], outcomes=(outcome("nesterov", "missed"),)),)), 5),
            (KillTable((replace(GOOD.cases[0], unmutated=Status.DIFFERENT, outcomes=()),)), 5),
        ],
        ids=["passed", "missed", "false alarm"],
    )
    def test_exit_codes(self, kills: KillTable, code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        asked: list[Any] = []
        monkeypatch.setattr(selftest, "run", lambda *arguments: asked.append(arguments) or kills)
        arguments = ["clipped", "--mutants", "nesterov", "--json", str(tmp_path / "table.json")]
        result = CliRunner().invoke(selftest_command.command, arguments)
        assert result.exit_code == code, result.output
        assert json.loads((tmp_path / "table.json").read_text())["passed"] is (code == 0)
        assert [case.name for case in asked[0][0]] == ["clipped"]
        assert asked[0][2] == (BY_ID["nesterov"],)

    @pytest.mark.parametrize(
        "arguments", [["nowhere"], ["clipped", "--mutants", "nestorov"], ["clipped", "--json", "nowhere/table.json"]]
    )
    def test_wrong_usage(self, arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(selftest, "run", lambda *_: pytest.fail("it ran"))
        assert CliRunner().invoke(selftest_command.command, arguments).exit_code == 2

    def test_the_list(self) -> None:
        result = CliRunner().invoke(selftest_command.command, ["--list"])
        assert result.exit_code == 0
        assert [line.split()[0] for line in result.output.splitlines()] == [mutant.id for mutant in MUTANTS]


def test_what_ran_and_was_printed_is_no_number_of_a_recording() -> None:
    """Two runs of one program print other times, and may be watched or not."""
    one = run(Program(steps=2))
    lines = {"/train.py": Lines(frozenset({1}), frozenset({1, 2}))}
    assert same_numbers(one, replace(one, lines=lines, printed=(0.5,), apart={}))
    assert not same_numbers(one, replace(one, steps=one.steps[:1]))


def test_trainers_that_wait_for_each_other_need_no_fixed_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """That they do is known when the original has run; a comparison of them has no L5s."""
    case = next(one for one in cases.fixtures() if one.name == "between_graph_sync")

    def compare(comparison: Case, *_: object) -> SimpleNamespace:
        shape = replace(comparison.shape, in_step=True)
        levels = tuple(LevelResult(one, TITLES[one], Status.EQUIVALENT, "") for one in REQUIRED)
        return SimpleNamespace(case=replace(comparison, shape=shape), levels=levels)

    monkeypatch.setattr(selftest.sessions, "collect_original", lambda *_: None)
    monkeypatch.setattr(selftest.sessions, "compare", compare)
    monkeypatch.setattr(selftest, "try_mutants", lambda *_: ())
    found = selftest._run_case(None, case, lambda *_: None, ())  # type: ignore[arg-type]
    assert found.unmutated is Status.EQUIVALENT, found.summary
