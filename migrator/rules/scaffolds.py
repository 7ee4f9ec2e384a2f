"""Scaffolds of EstimatorSpecs: those that only say how checkpoints are kept are left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import libcst as cst

from migrator.findings import Severity
from migrator.names.bindings import values_given
from migrator.program.calls import bind, calls_in, functions_in, is_none
from migrator.program.parsed import Blocked, ParsedFile
from migrator.rules.rule import Rule

SCAFFOLDS = ("tf.train.Scaffold", "tf.compat.v1.train.Scaffold")
SAVERS = ("tf.train.Saver", "tf.compat.v1.train.Saver")
_CHECKPOINT = "tf.train.Checkpoint"
AVERAGING = "tf.train.ExponentialMovingAverage"
#: The codes of remarks about savers: objects that are saved, and moving averages that are restored.
_OBJECTS, AVERAGES = "TFM183", "TFM412"

RULES = (
    Rule(
        "TFM854",
        "a scaffold that only keeps checkpoints",
        Severity.REVIEW,
        """
`tf.train.Scaffold(saver=tf.train.Saver(max_to_keep=...))` says how many checkpoints an Estimator keeps, and
`summary_op` what it reports: no number of the training depends on it, so that it is left out. The migrated program
keeps the newest checkpoint, or one for each period of `save_checkpoints_steps`; delete old ones where that is too many.
""",
    ),
    Rule(
        "TFM855",
        "a scaffold that may change the training",
        Severity.MANUAL,
        """
An `init_fn` restores or changes variables before the training, initial and ready operations may do that too, and a
saver of some variables leaves others out of the checkpoints, or gives them other names there for programs that read
them. None of that is supported, except evaluations with moving averages of the weights (TFM412). Where `init_fn`
restores pretrained weights, give the Estimator `warm_start_from=tf.estimator.WarmStartSettings(checkpoint,
vars_to_warm_start="scope/")` in its place, or call `tf.train.init_from_checkpoint` in the model_fn: a `scaffold_fn` of
a TPUEstimatorSpec that does so is a function that a TPU's host runs, and Keras has none. Where the saver only picks
what is saved, leave the scaffold out.
""",
    ),
    Rule(
        "TFM183",
        "a Checkpoint that an Estimator saves",
        Severity.REVIEW,
        """
`tf.train.Scaffold(saver=tf.train.Checkpoint(step=..., optimizer=..., net=...))` makes an Estimator write checkpoints of
objects, which programs of TensorFlow 2 restore. The weights that a Keras model saves are such a checkpoint, too: the
model is given the same objects under the same names, so that what restored them from the Estimator's checkpoints
restores them from the new ones, which hold the rest of the model as well. The step and the iterations of the optimizer
are one variable in them: into a Checkpoint of both, only the step is restored, so assign it to
`optimizer.iterations` where the optimizer is to train on. A Checkpoint of anything else than the global step, the
optimizer and parts of the network is refused (TFM855).
""",
    ),
)

_SCAFFOLD = (
    *("init_op", "init_feed_dict", "init_fn", "ready_op", "ready_for_local_init_op", "local_init_op", "summary_op"),
    *("saver", "copy_from_scaffold", "local_init_feed_dict"),
)
_SAVER = (
    *("var_list", "reshape", "sharded", "max_to_keep", "keep_checkpoint_every_n_hours", "name", "restore_sequentially"),
    *("saver_def", "builder", "defer_build", "allow_empty", "write_version", "pad_step_number"),
    *("save_relative_paths", "filename"),
)
# What a Keras model has already, under names that people give objects.
_OF_MODELS = (
    "activity_regularizer", "build", "call", "compile", "dtype", "fit", "history", "inputs", "input", "layers",
    "loss", "losses", "metrics", "name", "optimizer", "output", "outputs", "predict", "save", "state",
    "submodules", "summary", "trainable", "updates", "variables", "weights",
)  # fmt: skip
_KEEPING = frozenset(_SAVER) - {"var_list", "reshape", "saver_def", "builder"}


def may_go(symbol: str) -> bool:
    """Whether a call may be left out with the scaffold that it was made for."""
    return symbol in (*SCAFFOLDS, *SAVERS, _CHECKPOINT, AVERAGING, "tf.summary.merge_all")


def read_scaffolds(
    file: ParsedFile, function: cst.FunctionDef | cst.Module, specs: Iterable[Mapping[str, cst.BaseExpression]]
) -> tuple[list[cst.BaseExpression], list[Blocked]]:
    """The scaffolds of EstimatorSpecs, to be left out, and remarks. Raises Blocked (TFM855)."""
    nodes: list[cst.BaseExpression] = []
    remarks: list[Blocked] = []
    for bound in specs:
        given = bound.get("scaffold")
        if given is None or is_none(given):
            continue
        nodes.append(given)
        checkpoints = [
            _check_scaffold(file, function, value) for value in _values(file, function, given) if not is_none(value)
        ]
        remark = Blocked("TFM854", given, "the scaffold is dropped: it configures how checkpoints are kept")
        if AVERAGES in checkpoints:
            if set(checkpoints) != {AVERAGES}:
                raise Blocked("TFM413", given, "moving averages are restored only under a condition")
            remark = Blocked(AVERAGES, given, "moving averages replace the evaluated weights")
        elif any(checkpoints):
            message = (
                "checkpoints hold this saver's objects under the same names; where they are restored, "
                "an optimizer saved next to the step has 0 iterations: assign it the step to continue "
                "training"
            )
            remark = Blocked(_OBJECTS, given, message)
        remarks.append(remark)
    return nodes, remarks


def _check_scaffold(file: ParsedFile, function: cst.FunctionDef | cst.Module, node: cst.BaseExpression) -> str:
    """What a scaffold saves: a `tf.train.Checkpoint` (TFM183), AVERAGES, nothing of note. Raises Blocked (TFM855)."""
    saves = ""
    if not isinstance(node, cst.Call) or file.imports.resolve(node.func) not in SCAFFOLDS:
        message = "this is not a `tf.train.Scaffold` created in the model_fn"
        if isinstance(node, cst.Name) and any(f.name.value == node.value for f in functions_in(function)):
            message = (
                f"`{node.value}` is a function that may restore variables: call "
                "`tf.train.init_from_checkpoint` in the model_fn, and remove the `scaffold_fn`"
            )
        raise Blocked("TFM855", node, message)
    bound = bind(node, _SCAFFOLD, "tf.train.Scaffold", "TFM855")
    for key, value in bound.items():
        if is_none(value) or key == "summary_op":
            continue
        if key == "init_fn":
            message = "the scaffold's `init_fn` may change the initial weights: use `warm_start_from`"
            raise Blocked("TFM855", value, message)
        if key != "saver":
            raise Blocked("TFM855", value, f"the scaffold's `{key}` may change the training, and is unsupported")
        for saver in _values(file, function, value):
            made = saver.func if isinstance(saver, cst.Call) and isinstance(value, cst.Name) else None
            if made is not None and file.imports.resolve(made) == _CHECKPOINT:
                saves = _OBJECTS
            elif _check_saver(file, function, saver):
                saves = AVERAGES
    return saves


def check_saved(
    file: ParsedFile,
    function: cst.FunctionDef,
    objects: Sequence[tuple[str, str, cst.BaseExpression]],
    place: cst.CSTNode | None,
) -> None:
    """Refuses a Checkpoint whose objects a model cannot have under the same names (TFM855)."""
    if not objects:
        raise Blocked("TFM855", place, "the objects of this saver are not literal keyword arguments")
    called = {call.func.value for call in calls_in(function.body) if isinstance(call.func, cst.Name)}
    for name, kind, node in objects:
        if name in _OF_MODELS and (name, kind) != ("optimizer", "optimizer"):
            raise Blocked("TFM855", node, f"a Keras model has its own `{name}`: rename the object")
        if not kind and not (isinstance(node, cst.Name) and node.value in called):
            message = f"`{file.code(node)}` is neither the global step, nor the optimizer, nor a model called here"
            raise Blocked("TFM855", node, message)


def lines_of_saved(objects: Sequence[tuple[str, str, cst.BaseExpression]], model: str) -> list[str]:
    """The lines that give a compiled model the objects of a Checkpoint, which its own checkpoints hold then."""
    values = {"step": f"{model}.optimizer.iterations", "optimizer": f"{model}.optimizer"}
    found = []
    for name, kind, node in objects:
        value = values.get(kind) or (node.value if isinstance(node, cst.Name) else "")
        if kind == "step":
            found.append(f'tf.Module.__setattr__({model}, "{name}", {value})  # in checkpoints, and no weight')
        elif f"{model}.{name}" != value:
            found.append(f"{model}.{name} = {value}")
    return found


def _check_saver(file: ParsedFile, function: cst.FunctionDef | cst.Module, node: cst.BaseExpression) -> bool:
    """Whether a saver restores moving averages in the place of weights. Raises Blocked (TFM855)."""
    if is_none(node):
        return False
    averages = False
    if not isinstance(node, cst.Call) or file.imports.resolve(node.func) not in SAVERS:
        message = "this saver is not a `tf.train.Saver`: its checkpoints use other names, which other code may read"
        raise Blocked("TFM855", node, message)
    for key, value in bind(node, _SAVER, "tf.train.Saver", "TFM855").items():
        if key == "var_list" and _are_averages(file, function, value):
            averages = True
        elif key not in _KEEPING and not is_none(value):
            raise Blocked("TFM855", value, f"`{key}` of the saver is dropped: new checkpoints hold everything")
    return averages


def _are_averages(file: ParsedFile, function: cst.FunctionDef | cst.Module, node: cst.BaseExpression) -> bool:
    """Whether an expression is `tf.train.ExponentialMovingAverage(...).variables_to_restore()`, and nothing else."""
    for value in _values(file, function, node):
        func = value.func if isinstance(value, cst.Call) and not value.args else None
        if not isinstance(func, cst.Attribute) or func.attr.value != "variables_to_restore":
            return False
        for made in _values(file, function, func.value):
            if not isinstance(made, cst.Call) or file.imports.resolve(made.func) != AVERAGING:
                return False
            if any(arg.keyword is not None and arg.keyword.value == "name" for arg in made.args) or len(made.args) > 3:
                return False  # averages under other names
    return True


def _values(
    file: ParsedFile, function: cst.FunctionDef | cst.Module, node: cst.BaseExpression
) -> list[cst.BaseExpression]:
    """What an expression may be: names are followed to what the model_fn gives them."""
    if isinstance(node, cst.IfExp):
        return [*_values(file, function, node.body), *_values(file, function, node.orelse)]
    if not isinstance(node, cst.Name) or is_none(node):
        return [node]
    given = values_given(function if isinstance(function, cst.Module) else function.body, node.value)
    return [one for value in given for one in _values(file, function, value)] if given else [node]
