"""`--layout auto`: which variables a mesh divides is chosen from the sizes in the program that comes out.

A program is written for the mesh with all variables whole first. That one is evaluated: its layers have the names that
layouts go by, and the sizes that they get. Then it is written again, with the layouts that were chosen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, TypeVar

from migrator.findings import Finding, Severity
from migrator.ir.evaluate import Evaluator
from migrator.ir.program import Program
from migrator.ir.values import Constant, Operation
from migrator.program.known import program_of
from migrator.program.parsed import ParsedFile
from migrator.program.relevant import connected
from migrator.query.weights import Unclear, training
from migrator.source.reading import Source
from migrator.targets.sizes import Choice, SizeError, choose, slots, written

CHOSEN, UNKNOWN = "TFM781", "TFM782"
_MAKES = ".LayoutMap(mesh="
#: Calls of TensorFlow 1 and Keras that make the weights of a dense layer or a table, by the ends of their names.
_MAKERS = {
    "Dense": ("dense", "Dense", "fully_connected"),
    "Embedding": ("Embedding", "embed_sequence", "get_variable", "Variable"),
}


class Result(Protocol):
    """One file afterwards, see `migrate.Result`."""

    @property
    def source(self) -> Source:
        """The file as it was."""
        ...

    @property
    def text(self) -> str:
        """Its new text."""
        ...

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is told of it."""
        ...


_Result = TypeVar("_Result", bound=Result)


@dataclass(frozen=True)
class Room:
    """What a device has room for, and the dimension of the mesh that divides variables."""

    limit: int
    dimension: str
    parts: int


@dataclass(frozen=True)
class _Planned:
    """What is to become of the program of a file: the layouts, and what is told of it."""

    layouts: tuple[str, ...]
    finding: Finding


def with_sizes(
    results: Sequence[_Result], room: Room, again: Callable[[tuple[str, ...]], Sequence[_Result]]
) -> list[_Result]:
    """The results with the layouts that were chosen; `again` gives those with such layouts of a command line."""
    before = {one.source.path: one.source.text for one in results}
    after = {one.source.path: one.text for one in results}
    programs = [path for path, text in after.items() if makes_mesh(before[path], text)]
    plans: dict[Path, _Planned] = {}
    texts = {path: text for path, text in before.items() if text}
    together = {path: connected(texts, {path}) | {path} for path in programs}
    for path in programs:
        known = {one: after[one] for one in together[path] if one in after}
        place = next((f for one in results for f in one.findings if Path(f.path) == path and is_place(f)), None)
        plans[path] = _planned(path, known, before, room, place)
    for path in programs:
        for other in programs:
            if other in together[path] and plans[other].layouts != plans[path].layouts:
                message = f"`{other}` shares files with this program, but needs other layouts: give both `--layout`"
                told = replace(plans[path].finding, code=UNKNOWN, severity=_MANUAL, message=message)
                plans[path] = _Planned((), told)
    made: dict[tuple[str, ...], dict[Path, _Result]] = {(): {one.source.path: one for one in results}}
    final = dict(made[()])
    for path, plan in plans.items():
        if plan.layouts not in made:
            made[plan.layouts] = {one.source.path: one for one in again(plan.layouts)}
        for other in together[path]:
            if other not in final:
                continue
            new = made[plan.layouts][other]
            if plan.finding.severity is _MANUAL:
                new = unchanged(new)
            if other == path:
                new = _telling(new, plan.finding)
            final[other] = new
    return list(final.values())


_MANUAL = Severity.MANUAL


def makes_mesh(before: str, after: str) -> bool:
    """Whether a file has become one that makes a model for a mesh."""
    return _MAKES in after and _MAKES not in before


def is_place(finding: Finding) -> bool:
    """Whether a finding stands where a program is made."""
    return finding.code in ("TFM101", "TFM780") and finding.message != ""


def _telling(result: _Result, finding: Finding) -> _Result:
    return replace(result, findings=tuple(sorted({*result.findings, finding})))  # type: ignore[type-var]


def unchanged(result: _Result) -> _Result:
    """A file as it was, with what stood in the way of it."""
    kept = tuple(one for one in result.findings if one.severity in (Severity.MANUAL, Severity.ERROR))
    return replace(result, text=result.source.text, findings=kept)  # type: ignore[type-var]


def _planned(
    path: Path, after: dict[Path, str], before: dict[Path, str], room: Room, place: Finding | None
) -> _Planned:
    """What the sizes of a program say."""
    line, column = (place.line, place.column) if place is not None else (1, 1)
    program = _evaluated(path, after)
    try:
        known = training(program.evaluator)
        if not program.is_complete:
            raise Unclear("the program takes too many steps to trace", None)
        choice = choose(known.weights, slots(known.optimizer, known.given), room.dimension, room.parts, room.limit)
    except Unclear as problem:
        where = _original(path, before, problem, program.evaluator)
        file, line, column = where or (path, line, column)
        advice = (
            "write it in the program (`tf.reshape(net, [-1, 784])` before the layer, or `shape=` of its "
            "input), or set it by hand: `--layout 'PATTERN=unsharded,model'`"
        )
        message = f"layouts cannot be chosen from sizes, because {problem.message}: {advice}"
        return _Planned((), Finding(str(file), line, column, UNKNOWN, _MANUAL, message))
    except SizeError as problem:
        advice = "give `--mesh` more parts, a larger `--device-memory`, or an optimizer with fewer slots"
        return _Planned((), Finding(str(path), line, column, UNKNOWN, _MANUAL, f"{problem}: {advice}"))
    layouts = tuple(f"{re.escape(name)}={','.join(axes)}" for name, axes in choice.divided)
    message = _told(choice, room, known.weights)
    return _Planned(layouts, Finding(str(path), line, column, CHOSEN, Severity.REVIEW, message))


def _told(choice: Choice, room: Room, weights: Sequence[object]) -> str:
    held = f"each device holds {written(choice.bytes)} of weights, slots and gradients, of {written(room.limit)}"
    if not choice.divided:
        return f"{held}: all {len(weights)} variables stay whole; what a step computes on its way is not counted"
    named = ", ".join(f"`{name}` ({', '.join(axes)})" for name, axes in choice.divided)
    rest = len(weights) - len(choice.divided)
    return (
        f"{held}: {named} divided over `{room.dimension}={room.parts}`, the other {rest} whole; with all whole it "
        f"would be {written(choice.whole)}; what a step computes on its way is not counted"
    )


def _evaluated(path: Path, texts: dict[Path, str]) -> Program:
    files = {one: ParsedFile.parse(one, text) for one, text in texts.items()}
    return program_of(files[path], files.values())


def _original(
    path: Path, before: dict[Path, str], problem: Unclear, machine: Evaluator
) -> tuple[Path, int, int] | None:
    """The place in the program as it was where a layer of the new one is made: by its name, else by its turn among
    those of its kind.
    """
    made = problem.site.node if problem.site is not None else None
    if made is None or not problem.name:
        return None
    files = {one: ParsedFile.parse(one, text) for one, text in before.items() if text}
    old = program_of(files[path], files.values())
    graphs = [graph for one in old.estimators for mode, graph in one.graphs.items() if mode == "train"]
    effects = [effect.operation for graph in graphs for effect in graph.effects]
    effects += [effect.operation for effect in old.evaluator.effects]
    layer = problem.name.partition(".")[0]
    named = [one for one in effects if _named(one) == layer]
    if not named:
        new = [effect.operation for effect in machine.effects]
        for kind, ends in _MAKERS.items():
            ours = [one for one in new if one.symbol == f"tf.keras.layers.{kind}"]
            theirs = [one for one in effects if one.symbol.rpartition(".")[2] in ends]
            turn = [index for index, one in enumerate(ours) if one.site is not None and one.site.node is made]
            if turn and len(ours) == len(theirs):
                named = [theirs[turn[0]]]
    site = named[0].site if named else None
    if site is None or site.path not in files:
        return None
    line, column = files[site.path].position(site.node)
    return site.path, line, column


def _named(operation: Operation) -> str | None:
    for name in ("name", "scope"):
        given = operation.kwargs.get(name)
        if isinstance(given, Constant) and isinstance(given.value, str):
            return given.value
    return None


__all__ = ["CHOSEN", "UNKNOWN", "Result", "Room", "is_place", "makes_mesh", "unchanged", "with_sizes"]
