"""What stands in the way of a native form, whatever becomes of the lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import libcst as cst

from migrator.emit.model_function import EmittedModel
from migrator.migration.native.strategies import strategy_of
from migrator.migration.state import GroupState
from migrator.names.bare import bare, says
from migrator.program.calls import calls_in, is_false, is_none, is_true, nodes_in
from migrator.program.flow import InFile
from migrator.program.helpers import Scope
from migrator.program.model_function import ModelFunction
from migrator.program.parsed import Blocked, ParsedFile
from migrator.program.region import reach
from migrator.program.training import TrainingProgram
from migrator.program.unused_layers import unused_layers
from migrator.rules import rebinding
from migrator.rules.model_towers import find_towers
from migrator.rules.own_loops import over_examples
from migrator.rules.replicas import check_replicas
from migrator.targets.registry import AUTO


def check_files_of_others(state: GroupState) -> bool:
    """Whether a program that cannot be read shares a file with this group; says so when it is not in the group."""
    shared = sorted(state.blocked_files.keys() & state.group.files.keys())
    for path in shared:
        other = state.blocked_files[path]
        if other not in state.group.files:
            for program in state.group.programs:
                message = f"`{path}` also belongs to the program in `{other}`, which is blocked: all or none change"
                state.problems[program.file.path].append(Blocked("TFM114", program.place.call, message))
    return bool(shared)


def check_references(state: GroupState) -> None:
    """Finds model_fns that are used outside of an Estimator, too (TFM113)."""
    models = {program.model_fn for program in state.group.programs}
    models |= {function for program in state.group.programs for _, function in program.model.builders}
    for model, file, node in state.references:
        if model in models:
            message = f"`{model.name.value}` gets a new signature, but is used here outside an Estimator"
            state.problems.setdefault(file.path, []).append(Blocked("TFM113", node, message))
            if file.path not in state.group.files:
                state.outside[file.path] = file


def check_moving_averages(state: GroupState, program: TrainingProgram, moved: bool) -> None:
    """Refuses a batch normalization of Keras whose moving averages no step moves, as `fit` does. Raises Blocked.

    Its updates are in no collection (TensorFlow 1.15.5 and 2.15.1): a train_op has to ask the model for them. Where
    it does, the layers of TensorFlow 1 go on with the batch's statistics when they are not trainable, those of
    TensorFlow 2 do not.
    """
    for node, file in reach(state.project, program.model_file, program.model_fn).items():
        for call in calls_in(node):
            name = file.imports.tensorflow(call.func) or ""
            if moved and name == "tf.keras.layers.BatchNormalization" and not file.imports.means_two(call.func):
                frozen = [arg for arg in call.args if arg.keyword is not None and arg.keyword.value == "trainable"]
                frozen = [arg for arg in frozen if not is_true(arg.value)]
                targets = [one.target for one in nodes_in(file.module) if isinstance(one, cst.AssignTarget)]
                if frozen or any(isinstance(one, cst.Attribute) and one.attr.value == "trainable" for one in targets):
                    message = "a frozen batch normalization behaves differently in TensorFlow 2"
                    raise InFile(file, "TFM202", call, message)
            elif not moved and _normalizes_batches(name) and not _is_frozen(call):
                message = (
                    "no step updates the averages of this layer, but `fit` would: let the train_op run "
                    "`model.get_updates_for(None) + model.get_updates_for(features)`"
                )
                raise InFile(file, "TFM202", call, message)


def check_unused(
    state: GroupState,
    program: TrainingProgram,
    function: ModelFunction,
    scope: Scope,
    emitted: EmittedModel,
    read_all: bool,
) -> None:
    """Refuses a loss over variables of layers that the Keras model does not have. Raises Blocked (TFM312)."""
    kept = [s for i, s in enumerate(function.statements) if i not in function.train.consumed]
    found = unused_layers(state.project, scope, kept, emitted.outputs, function.output)
    if found is None or not (read_all or says(_texts(state, program), "regularizer")):
        return
    message = "the loss sums variables of a layer that does not feed it, so the Keras model does not have that layer"
    raise Blocked("TFM312", found, message)


def _texts(state: GroupState, program: TrainingProgram) -> str:
    """The code that a model_fn reaches."""
    region = reach(state.project, program.model_file, program.model_fn)
    return "\n".join(file.code(node) for node, file in region.items())


def check_hidden(state: GroupState, program: TrainingProgram) -> None:
    """Refuses a program that gives names values in ways which no statement shows. Raises Blocked (TFM128)."""
    run: dict[cst.CSTNode, ParsedFile] = {file.module: file for file in state.group.files.values()}
    run.update(reach(state.project, program.model_file, program.model_fn))
    if program.scope not in run:
        run[program.scope] = program.file
    for node, file in run.items():
        try:
            rebinding.check_hidden(state.project, file, node)
            if isinstance(node, cst.Module):
                rebinding.check_imports(state.project, file)
        except Blocked as problem:
            raise InFile(file, problem.code, problem.node, problem.message) from None


def check_folder(state: GroupState, program: TrainingProgram) -> None:
    """Refuses an Estimator that reads what another one has trained in their model_dir. Raises Blocked (TFM103)."""
    for other in state.group.programs:
        if other is not program and program.may_read(other):
            message = (
                f"`{program.variable}` reads what `{other.variable}` trains in the same model_dir: "
                "create it after that training"
            )
            raise Blocked("TFM103", program.place.call, message)


def check_names(state: GroupState, program: TrainingProgram) -> None:
    """Refuses a network that binds a name in a way that is not followed. Raises Blocked (TFM128)."""
    rebinding.check_mode(program.model_fn, program.model.parameters.mode)
    for node, file in reach(state.project, program.model_file, program.model_fn).items():
        try:
            rebinding.check_names(node)
        except Blocked as problem:
            raise InFile(file, problem.code, problem.node, problem.message) from None


def check_towers(state: GroupState, program: TrainingProgram) -> None:
    """Refuses a network for each device, and a strategy around what was some. Raises Blocked (TFM743)."""
    given = program.config.get("train_distribute")
    if program.of_towers and given is not None and not is_none(given):
        raise Blocked(
            "TFM743", program.model_fn.name, "towers under a strategy are unsupported: each replica would build all"
        )
    for node, file in reach(state.project, program.model_file, program.model_fn).items():
        found = find_towers(node, file.imports)
        if found is not None:
            message = "towers average their gradients: write the model_fn for one, and use a MirroredStrategy"
            place = found if file is program.model_file else program.model_fn.name
            raise Blocked("TFM743", place, message)


def check_examples(state: GroupState, program: TrainingProgram, emitted: EmittedModel) -> None:
    """Refuses what is computed over all examples of a batch that replicas divide. Raises Blocked (TFM739)."""
    for node, file in _functions_of(state, program, emitted):
        found = over_examples(node, file.imports)
        if found is not None:
            text = file.code(found)
            message = f"`{text}` is computed over all examples, but replicas split them: use `--strategy one-device`"
            raise Blocked("TFM739", program.model_fn.name if node is emitted.node else found, message)


def check_rounds(state: GroupState, program: TrainingProgram, emitted: EmittedModel) -> None:
    """Refuses what replicas computed each over its own batch, which a mesh has in one. Raises Blocked (TFM790)."""
    place = program.model_fn.name
    if emitted.loss_of_batch:
        message = "each replica divided its loss by a value of its own batch, a mesh would use the whole batch"
        raise Blocked("TFM790", place, f"{message}: write a mean over examples, or choose another `--strategy`")
    for node, file in _functions_of(state, program, emitted):
        text = bare(file.code(node))
        found = over_examples(node, file.imports)
        what = None
        if re.search(r"[Bb]atch_?[Nn]orm", text):
            what = "batches are normalized, which is"
        elif re.search(r"\b(?:global_)?clip(?:norm|value)=|tf\.clip_by_\w*norm", text):
            what = "gradients are"
        elif found is not None:
            what = f"`{file.code(found)}` is"
        if what is not None:
            message = f"{what} computed by each replica for its own batch, and on a mesh for those of all"
            raise Blocked("TFM790", place, f"{message}: choose another `--strategy`")


def _functions_of(
    state: GroupState, program: TrainingProgram, emitted: EmittedModel
) -> Iterator[tuple[cst.CSTNode, ParsedFile]]:
    """The function that makes the model, as it is emitted, and the other functions that it reaches."""
    yield emitted.node, program.model_file
    for node, file in reach(state.project, program.model_file, program.model_fn).items():
        if node is not program.model_fn:
            yield node, file


def check_programs_on_replicas(state: GroupState, programs: Iterable[TrainingProgram]) -> None:
    """Refuses what replicas in step compute in another way in Keras, where the Estimator had some."""
    for program in programs:
        strategy = strategy_of(state, program)
        local = strategy.per_replica or strategy.mesh
        several = local or strategy.mirrored_workers
        if program.config.get("train_distribute") is not None and several and strategy is not AUTO:
            shares = state.loop.own and strategy.per_replica and is_none(program.config.get("eval_distribute"))
            region = reach(state.project, program.model_file, program.model_fn)
            if check_replicas(region, local, shares):
                state.sharing_penalties.add(program.model_fn)


def _normalizes_batches(name: str) -> bool:
    """Whether a class of Keras is a batch normalization, or one of its ready networks that hold some."""
    _, _, network = name.partition("tf.keras.applications.")
    last = network.rpartition(".")[2]
    return name == "tf.keras.layers.BatchNormalization" or (last[:1].isupper() and not last.startswith("VGG"))


def _is_frozen(call: cst.Call) -> bool:
    """Whether a layer is made with `trainable=False`, so that a batch normalization stays as it is."""
    return any(
        arg.keyword is not None and arg.keyword.value == "trainable" and is_false(arg.value) for arg in call.args
    )
