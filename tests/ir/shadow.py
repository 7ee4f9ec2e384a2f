"""What the evaluator says of programs, beside what the readers say: `python -m tests.ir.shadow [programs]`.

Compared are the Estimators that readers read: where they are made, what is done with them, their model_fn; and for
programs that come out natively the optimizer, clipping, update operations and the number of metrics.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from migrator.ir.files import Parsed, Together
from migrator.ir.program import Estimator, Program, understood
from migrator.ir.values import Function, Method, Partial, Value, alternatives
from migrator.migrate import Options, migrate
from migrator.migration import reading
from migrator.migration.native import models as native
from migrator.program.model_function import ModelFunction
from migrator.program.training import TrainingProgram
from migrator.query.answers import answers
from migrator.query.model import Step, metrics, steps
from migrator.source.reading import Source, decode, read
from tests.fuzz.axes import draw
from tests.fuzz.programs import files as program_files
from tests.ir.golden import cases
from tests.rewording.rewordings import FIRST, reword

Compared = tuple[str, object, object]  # what, what readers say, and the evaluator


@contextmanager
def _noted() -> Iterator[tuple[list[TrainingProgram], list[ModelFunction]]]:
    """What readers read meanwhile."""
    programs: list[TrainingProgram] = []
    models: list[ModelFunction] = []
    old_programs, old_model = reading.read_programs, native.read_model_function

    def read_programs(*args: Any) -> list[TrainingProgram]:
        found = old_programs(*args)
        programs.extend(one for one in found if not one.refusals)
        return found

    def read_model(*args: Any) -> ModelFunction | None:
        found = old_model(*args)
        models.extend([] if found is None else [found])
        return found

    reading.read_programs, native.read_model_function = read_programs, read_model
    try:
        yield programs, models
    finally:
        reading.read_programs, native.read_model_function = old_programs, old_model


def disagreements(sources: list[Source], options: Options) -> tuple[int, list[str]]:
    """How many answers of readers were compared, and those that the evaluator does not share."""
    with _noted() as (programs, models):
        migrate(sources, options)
    parsed = [Parsed.of(one.path, one.text) for one in sources]
    evaluated = [understood(Together.of(parsed), file) for file in parsed]
    found: list[str] = []
    count = 0
    for one in programs:
        line = one.file.position(one.place.call)[0]
        mine = [(p, e) for p in evaluated for e in p.estimators if _is_at(p, e, one.file.path, line)]
        for what, said, known in _of_program(one, mine):
            count += 1
            if said != known:
                found.append(f"{one.file.path}:{line}: {what}: readers {said}, evaluator {known}")
    by_name = {
        name: (p, e) for p in evaluated for e in p.estimators for name in _functions(e.arguments.get("model_fn"))
    }
    for model in models:
        name = model.node.name.value
        for what, said, known in _of_model(model, by_name.get(name)):
            count += 1
            if said != known:
                found.append(f"{model.file.path}: {name}: {what}: readers {said}, evaluator {known}")
    return count, found


def _is_at(program: Program, estimator: Estimator, path: Path, line: int) -> bool:
    site = estimator.operation.site
    if site is None or site.path != path:
        return False
    from libcst.metadata import MetadataWrapper, PositionProvider

    file = next(one for one in program.evaluator.files.files if one.path == path)
    places = MetadataWrapper(file.module, unsafe_skip_copy=True).resolve(PositionProvider)
    return bool(places[site.node].start.line == line)


def _functions(value: Value | None) -> list[str]:
    found = []
    for one in alternatives(value) if value is not None else []:
        while isinstance(one, Partial):
            one = one.function
        one = one.function if isinstance(one, Method) and one.function is not None else one
        found += [one.name] if isinstance(one, Function) else []
    return found


def _of_program(
    program: TrainingProgram, mine: list[tuple[Program, Estimator]]
) -> Iterator[tuple[str, object, object]]:
    said = [use.method for use in program.all_uses] + ["train_and_evaluate"] * bool(program.train_and_evaluate)
    ours = {use.operation: use.method for _, estimator in mine for use in estimator.uses}
    known = {"train", "evaluate", "predict", "train_and_evaluate"}
    yield "uses", sorted({*said} & known), sorted({*ours.values()} & known)
    name = program.model.function.name.value
    names = {one for _, estimator in mine for one in _functions(estimator.arguments.get("model_fn"))}
    if mine and mine[0][1].is_canned is False:
        yield "model_fn", True, name in names or "lambda" in names


def _of_model(model: ModelFunction, mine: tuple[Program, Estimator] | None) -> Iterator[Compared]:
    graph = mine[1].graphs.get("train") if mine is not None else None
    if mine is None or graph is None:
        return
    machine = mine[0].evaluator
    made = [one for one in steps(machine, graph) if isinstance(one, Step)]
    yield "a step", True, bool(made)
    if made:
        said = sorted({model.file.imports.resolve(call.func) or "?" for call in model.train.made})
        known = sorted({one.optimizer.symbol for one in made})
        yield "optimizer", said, known
        clipping = model.train.clipping.argument if model.train.clipping is not None else ""
        yield "clipping", [clipping], sorted({one.clipping.argument if one.clipping else "" for one in made})
        yield "updates", model.train.updates, any(one.updates for one in made)
    evaluated = mine[1].graphs.get("eval")
    table = metrics(machine, evaluated) if evaluated is not None else None
    if table is not None:
        yield "metrics", len(model.metrics), len(table)


def fixtures() -> Iterator[tuple[str, list[Source], Options]]:
    for name, case in cases().items():
        sources = [one for one in map(read, case.original_files) if isinstance(one, Source)]
        yield name, sources, replace(case.options, style="auto", bridge=True)


def by_chance(count: int) -> Iterator[tuple[str, list[Source], Options]]:
    for seed in range(count):
        texts: Mapping[str, str] = program_files(draw(seed))
        found = [decode(Path(name), text.encode()) for name, text in texts.items()]
        yield f"seed {seed}", [one for one in found if isinstance(one, Source)], Options(style="auto", bridge=True)


def reworded(rewording: str, name: str) -> tuple[object, object] | None:
    """What the evaluator knows of a fixture, and of the same in other words; None where these change nothing."""
    case = cases()[name]

    def said(words: Any) -> object:
        parsed = [Parsed.of(path, words(path.read_text(encoding="utf-8"))) for path in case.original_files]
        main = next(one for one in parsed if one.path == case.original)
        return answers(understood(Together.of(parsed), main))

    texts = [path.read_text(encoding="utf-8") for path in case.original_files]
    if not any(reword(text, rewording) for text in texts):
        return None
    return said(lambda text: text), said(lambda text: reword(text, rewording) or text)


def main(programs: int) -> None:
    total = 0
    for name, sources, options in (*fixtures(), *by_chance(programs)):
        count, found = disagreements(sources, options)
        total += count
        for one in found:
            print(f"{name}: {one}")
    print(f"{total} answers compared")
    kept = tried = 0
    for rewording in FIRST:
        for name in cases():
            both = reworded(rewording, name)
            if both is not None:
                tried += 1
                kept += both[0] == both[1]
                if both[0] != both[1]:
                    print(f"{rewording}: {name}: {_difference(*both)}")
    print(f"{kept} of {tried} reworded programs are known as before")


def _difference(first: Any, second: Any) -> str:
    if len(first) != len(second):
        return f"{len(first)} Estimators, {len(second)}"
    for a, b in zip(first, second, strict=True):
        for name in vars(a):
            if getattr(a, name) != getattr(b, name):
                return f"{name}: {getattr(a, name)} -> {getattr(b, name)}"[:300]
    return ""


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
