"""L9: whether XLA compiles what the cores of a TPU would be given, where a stand-in took the TPU's place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from migrator.harness.protocol.results import LevelResult, Reason, Status
from migrator.harness.protocol.verdict import TITLES

ID = "L9"
_NOT_SHOWN = "XLA compiled for a CPU: memory, bfloat16 and speed of a TPU are not shown"
_LISTED = 5
#: What XLA says, and what to do about it; for anything else the line is named alone.
_ADVICE = (
    ("fixed tensor list size", "give the loop `maximum_iterations`, or TensorArrays a size"),
    ("TensorArray", "give the loop `maximum_iterations`, or TensorArrays a size"),
    (
        "loop body do not match",
        "make the tensor whole before the loop, and write to its parts: it has to keep its shape",
    ),
    ("compile-time constant", "compute it in the input function, or from static shapes"),
)


@dataclass(frozen=True)
class Operation:
    """An operation of a step. `lacks` says what a TPU has not that it needs ("strings", "tables", "Python"; empty: a
    kernel), `place` is "train.py:12", empty where it is not known.
    """

    type: str
    lacks: str
    place: str

    def __str__(self) -> str:
        return f"`{self.type}`" + (f" ({self.place})" if self.place else "")


@dataclass(frozen=True)
class Graph:
    """What became of a step: how many operations were compiled; those `on_host`, which no TPU has; `refused`, what XLA
    does not compile, with its words; `unknown`, why that cannot be said. `sized`: the size of its batches is known
    before they come. `soft_placement`: the program lets TensorFlow leave operations to the host.
    """

    trains: bool
    operations: int
    on_host: tuple[Operation, ...] = ()
    refused: tuple[Operation, str] | None = None
    unknown: str | None = None
    sized: bool = True
    soft_placement: bool = True


def judge(graphs: Sequence[Graph]) -> LevelResult:
    """The level's result; `graphs` are the steps that the stand-in ran, none where it ran them without a graph.

    What XLA refuses, and what needs strings, tables or Python where the program does not leave that to the host, makes
    the verdict inconclusive: the numbers are those of a program that no TPU runs. Other operations without a kernel are
    told: the XLA of a TPU has a few that this one has not.
    """
    if not graphs:
        summary = "the stand-in saw no step in a graph: strategy.run was not called in a tf.function"
        return LevelResult(ID, TITLES[ID], Status.NOT_EXERCISED, summary, Reason.NOT_EXERCISED)
    refused = [_refusal(one) for one in graphs]
    wrong = list(dict.fromkeys(text for text in refused if text))
    host = list(dict.fromkeys(one for graph in graphs for one in graph.on_host))
    notes = [_on_host(one) for one in host[:_LISTED]]
    if len(host) > _LISTED:
        notes.append(f"and {len(host) - _LISTED} other operations that run on the host")
    notes += dict.fromkeys(f"{_called(one)}: {one.unknown}" for one in graphs if one.unknown)
    unsized = list(dict.fromkeys(_called(one) for one in graphs if not one.sized))
    if unsized:
        notes.append(
            f"{' and '.join(unsized)}: the size of a batch is not known before it comes, which a TPU pads or compiles "
            "anew for: give `batch` of the data `drop_remainder=True`"
        )
    if wrong:
        summary = f"on a TPU the program would stop: {wrong[0]}"
        notes = [*wrong[1:], *notes]
        return LevelResult(ID, TITLES[ID], Status.INCONCLUSIVE, summary, Reason.NOT_COMPILED, notes=tuple(notes))
    compiled = [one for one in graphs if not one.unknown]
    if not compiled:
        return LevelResult(
            ID, TITLES[ID], Status.NOT_EXERCISED, "no step could be compiled", Reason.NOT_EXERCISED, notes=tuple(notes)
        )
    steps = " and ".join(dict.fromkeys(_called(one) for one in compiled))
    count = max(one.operations for one in compiled)
    summary = f"XLA compiles {steps} (at most {count:,} operations)"
    if host:
        named = ", ".join(map(str, host[:_LISTED])) + (" ..." if len(host) > _LISTED else "")
        summary += f", but for {named}"
    return LevelResult(ID, TITLES[ID], Status.EQUIVALENT, summary, notes=(*notes, _NOT_SHOWN))


def _called(graph: Graph) -> str:
    return "the step of training" if graph.trains else "the step of evaluation or prediction"


def _on_host(one: Operation) -> str:
    why = f"needs {one.lacks}, which a TPU does not support" if one.lacks else "has no kernel in the XLA of a CPU"
    return f"{one} {why}: do it in the input function, or the host has to do it in every step"


def _refusal(graph: Graph) -> str | None:
    if graph.refused is not None:
        operation, said = graph.refused
        what = "compute it in another way, or on the host in the input function"
        advice = next((advice for words, advice in _ADVICE if words in said), what)
        return f"{operation} of {_called(graph)} does not compile: {said.rstrip('.')}; {advice}"
    lacking = next((one for one in graph.on_host if one.lacks), None)
    if lacking is not None and not graph.soft_placement:
        return (
            f"{lacking} of {_called(graph)} needs {lacking.lacks}, which a TPU does not support: do it in the input "
            "function, or have the host do it in every step (`tf.config.set_soft_device_placement(True)`)"
        )
    return None
