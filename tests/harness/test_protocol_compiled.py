"""L9: what becomes of XLA's answers to the steps that a stand-in for a TPU ran."""

from __future__ import annotations

from migrator.harness.compiling import read
from migrator.harness.protocol.l9_compiled import judge
from migrator.harness.protocol.remedies import Context, remedy
from migrator.harness.protocol.results import Reason, Status
from migrator.harness.protocol.verdict import decide

SOUND = {
    "trains": True,
    "operations": 1425,
    "host": [],
    "refused": None,
    "open": None,
    "sizes": True,
    "soft_placement": False,
}
EVALUATION = {**SOUND, "trains": False, "operations": 98}
STRINGS = [["AsString", "strings", ["train.py", 37]], ["StringLength", "strings", ["train.py", 37]]]
RAGGED = [["RaggedTensorToTensor", "", ["train.py", 41]]]
LIST = "XLA compilation requires a fixed tensor list size. Set the max number of elements."


def test_steps_that_compile_are_told_and_leave_the_verdict() -> None:
    level = judge(read([SOUND, EVALUATION]))
    assert (level.id, level.status, level.reason) == ("L9", Status.EQUIVALENT, None)
    told = "the step of training and the step of evaluation or prediction (at most 1,425 operations)"
    assert level.summary == f"XLA compiles {told}"
    assert len(level.notes) == 1 and "bfloat16" in level.notes[0]


def test_strings_make_it_inconclusive_unless_the_host_may_have_them() -> None:
    level = judge(read([{**SOUND, "host": STRINGS}, EVALUATION]))
    assert (level.status, level.reason) == (Status.INCONCLUSIVE, Reason.NOT_COMPILED)
    assert "`AsString` (train.py:37) of the step of training needs strings" in level.summary
    assert "set_soft_device_placement(True)" in level.summary
    assert sum("train.py:37" in note for note in level.notes) == 2
    assert decide([level], ()).status is Status.INCONCLUSIVE
    found = remedy(level, Context(("tf-migrate", "verify")))
    assert found is not None and found.command is None and "train.py:37" in found.found

    allowed = judge(read([{**SOUND, "host": STRINGS, "soft_placement": True}, EVALUATION]))
    assert allowed.status is Status.EQUIVALENT and "but for `AsString` (train.py:37)" in allowed.summary


def test_operations_that_the_xla_of_a_cpu_lacks_are_told_alone() -> None:
    level = judge(read([{**SOUND, "host": RAGGED}]))
    assert level.status is Status.EQUIVALENT
    assert any("`RaggedTensorToTensor` (train.py:41) has no kernel" in note for note in level.notes)


def test_what_xla_refuses_is_told_with_what_to_do() -> None:
    level = judge(read([{**SOUND, "refused": ["While", LIST, ["train.py", 12]]}, EVALUATION]))
    assert (level.status, level.reason) == (Status.INCONCLUSIVE, Reason.NOT_COMPILED)
    assert "`While` (train.py:12) of the step of training does not compile" in level.summary
    assert level.summary.endswith("give the loop `maximum_iterations`, or TensorArrays a size")


def test_what_was_not_tried_decides_nothing() -> None:
    level = judge(read([{**SOUND, "open": "shapes of what it is given are not known: x"}]))
    assert (level.status, level.reason) == (Status.NOT_EXERCISED, Reason.NOT_EXERCISED)
    assert any("shapes of what it is given" in note for note in level.notes)
    assert judge(()).status is Status.NOT_EXERCISED
    both = judge(read([SOUND, {**EVALUATION, "open": "y"}]))
    assert both.status is Status.EQUIVALENT and "evaluation" not in both.summary


def test_batches_of_no_known_size_are_told() -> None:
    level = judge(read([{**SOUND, "sizes": False}, {**SOUND, "sizes": False}, EVALUATION]))
    assert level.status is Status.EQUIVALENT
    notes = [note for note in level.notes if "drop_remainder=True" in note]
    assert len(notes) == 1 and notes[0].startswith("the step of training: ")
