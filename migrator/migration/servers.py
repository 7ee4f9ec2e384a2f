"""The data of parameter servers' workers: one process makes them for all, and a step that finds no batch fails."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import libcst as cst

from migrator.migration.state import GroupState
from migrator.migration.workers import feeding
from migrator.names.bare import bare
from migrator.names.bindings import values_given
from migrator.program.calls import is_none, nodes_in, string
from migrator.program.parsed import Blocked, ParsedFile
from migrator.program.region import reach
from migrator.program.tasks import WORDS, Says, TaskReads
from migrator.program.training import TrainingProgram
from migrator.targets.plan import Target
from migrator.targets.registry import AUTO

_WITHOUT_AN_END = re.compile(
    r"\brepeat\(\s*(count\s*=\s*)?(None|-1)?\s*\)"
    r"|\bshuffle_and_repeat\(\s*[^,()]+(\([^()]*\))?\s*(,\s*(count\s*=\s*)?(None|-1)\s*|,\s*seed\s*=[^,()]+)?\)"
    r"|num_epochs\s*=\s*None"
    r"|\bmake_(csv|batched_features)_dataset\((?![^#]*num_epochs)"
)
_ENDS = re.compile(r"\.take\(|\btake_while\(")


def check_data(state: GroupState, program: TrainingProgram) -> None:
    """Refuses data that may end before the steps do. Raises Blocked (TFM742)."""
    both = program.train_and_evaluate
    if both is None or is_none(both.train.get("max_steps")):
        return
    node = both.train.get("input_fn")
    if node is None:
        return
    texts = [bare(file.code(one)) for one, file in feeding(state, program, node).items()]
    if not any(_WITHOUT_AN_END.search(text) for text in texts) or any(_ENDS.search(text) for text in texts):
        message = "this data may be finite, and a step without a batch fails: add `.repeat()`"
        raise Blocked("TFM742", node, message)


def check_tasks(state: GroupState, program: TrainingProgram, strategy: Target) -> None:
    """Refuses data and models that differ by task, which the coordinator makes for all. Raises Blocked (TFM765)."""
    reads = TaskReads(state.project.with_files(state.everything.mentioning(WORDS)))
    fed = [node for arguments in program.trainings if (node := arguments.get("input_fn")) is not None]
    data = {one: file for node in fed for one, file in feeding(state, program, node).items()}
    model = reach(state.project, program.model_file, program.model_fn)
    found: list[tuple[ParsedFile, cst.CSTNode]] = []
    for one, file in {**data, **model}.items():
        told = reads.told(file, one)
        found += [] if told is None else [(file, told)]
    found += [(program.file, given) for given in fed if reads.says(program.file, given) is Says.TASK]
    found += _of_params(program, reads, {**data, **model})
    if strategy is not AUTO and program.config.get("train_distribute") is not None:
        found += [(file, node) for one, file in data.items() for node in _pipeline_ids(one)]
    if not found:
        return
    where, place = min(found, key=lambda one: (one[0] is not program.file, one[0].position(one[1])))
    what = where.code(place).strip().splitlines()[0]
    message = (
        f"`{what}` differs by task, but on parameter servers one process, the coordinator, creates data "
        "and model for all: let every worker read all data, shuffled without a seed of the task"
    )
    if strategy is AUTO:
        message += "; without `ps` tasks no change is needed: `--strategy multi-worker-mirrored` or `one-device`"
    if where.path not in state.group.files:
        raise Blocked("TFM765", program.place.call, f"{where.path.name}: {message}")
    if message not in [problem.message for problem in state.problems[where.path]]:
        state.problems[where.path].append(Blocked("TFM765", place, message))


def _pipeline_ids(function: cst.CSTNode) -> Iterator[cst.Attribute]:
    """Where a function asks which worker's data it makes, which TensorFlow 2 says is 0 of 1 for each of them."""
    for node in nodes_in(function):
        if isinstance(node, cst.Attribute) and node.attr.value == "input_pipeline_id":
            yield node


def _of_params(
    program: TrainingProgram, reads: TaskReads, region: Mapping[cst.CSTNode, ParsedFile]
) -> list[tuple[ParsedFile, cst.CSTNode]]:
    """What the params of an Estimator say of the task, where data or model ask them for it."""
    file, params = program.file, program.params
    values = [] if params is None else [params]
    if isinstance(params, cst.Name):
        values = [*values_given(program.scope, params.value), *filter(None, [file.constants.get(params.value)])]
    entries: list[tuple[str | None, cst.BaseExpression]] = []
    for value in values:
        if isinstance(value, cst.Dict):
            entries += [(string(e.key), e.value) for e in value.elements if isinstance(e, cst.DictElement)]
        elif isinstance(value, cst.Call):
            entries += [(arg.keyword.value, arg.value) for arg in value.args if arg.keyword is not None]
    found: list[tuple[ParsedFile, cst.CSTNode]] = []
    for key, value in entries:
        if key is None or reads.says(file, value) is not Says.TASK:
            continue
        asks = re.compile(rf"""\[\s*["']{key}["']\s*\]|\.get\(\s*["']{key}["']|\.{key}\b""")
        if any(asks.search(bare(where.code(node))) for node, where in region.items() if node is not value):
            found.append((file, value))
    return found
