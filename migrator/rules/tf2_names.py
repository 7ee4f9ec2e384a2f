"""Names of TensorFlow 2.0 to 2.15 that moved, that need Keras 2, or that are gone in TensorFlow 2.21."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import cast

import libcst as cst

from migrator.findings import Severity
from migrator.names.imports import canonical, dotted
from migrator.pairing import equal_zip
from migrator.program.comments import comment_lines
from migrator.program.modern import STRATEGIES, Change, ModernFile, is_edit_of, keyword
from migrator.program.replica_losses import refused_by_keras_2
from migrator.rules.rule import Example, Rule

RULES = (
    Rule(
        "TFM710",
        "names that moved since TensorFlow 2.0",
        Severity.MIGRATED,
        """
In files that TensorFlow 2.0 to 2.15 ran, experimental names become the stable ones that stand for the same thing. For
Keras' names both are the same object on tf_keras 2.21; `tf.distribute.experimental.MultiWorkerMirroredStrategy` and
`TPUStrategy` are older classes whose arguments have other names, and these are renamed too.
`strategy.experimental_run_v2` and `experimental_make_numpy_dataset` no longer exist at all.
Modules that Keras 3 does not have are imported as those where their names are now, under the same local name; where
something else of such a module is used, the file gets Keras 2, which has them (all but `mixed_precision.experimental`).
""",
        (
            Example(
                "tf.distribute.experimental.MultiWorkerMirroredStrategy(\n"
                "    communication=tf.distribute.experimental.CollectiveCommunication.RING)",
                "tf.distribute.MultiWorkerMirroredStrategy(\n"
                "    communication_options=tf.distribute.experimental.CommunicationOptions(\n"
                "        implementation=tf.distribute.experimental.CommunicationImplementation.RING\n"
                "    ))",
            ),
            Example("strategy.experimental_run_v2(step, args=(x,))", "strategy.run(step, args=(x,))"),
            Example(
                "strategy.experimental_distribute_datasets_from_function(make)",
                "strategy.distribute_datasets_from_function(make)",
            ),
            Example("tf.keras.layers.experimental.preprocessing.Rescaling(1.0)", "tf.keras.layers.Rescaling(1.0)"),
            Example("tf.function(f, experimental_compile=True)", "tf.function(f, jit_compile=True)"),
        ),
    ),
    Rule(
        "TFM711",
        "removed TensorFlow 2 names",
        Severity.MANUAL,
        """
These existed between TensorFlow 2.0 and 2.15 and have no successor with the same meaning; the message says what comes
closest. The rest of the file is mended as far as that is safe.
""",
        (Example("tf.keras.utils.multi_gpu_model(model, 2)", None),),
    ),
    Rule(
        "TFM712",
        "programs that need Keras 2",
        Severity.MIGRATED,
        """
`import tensorflow` of TensorFlow 2.16 and newer brings Keras 3, on which parts of TensorFlow 2 programs are absent,
fail, or compute something else (measured on 2.21): `fit` on parameter servers and on several workers fails, `fit` on
CentralStorageStrategy reports a wrong loss, losses with the default reduction are divided by the number of replicas in
custom loops, `compile` takes no optimizer of `tf.compat.v1`, and `optimizers.legacy`, the layers and recurrent cells of
`tf.compat.v1`, feature columns' layers and Keras' DTensor layouts do not exist. Whether `fit` of Keras 3 trains on a
TPU was not tried. A file with one of these gets the lines that choose tf_keras (Keras 2), where all of them work as
before, and so do the files that import it.
""",
    ),
)

_PREPROCESSING = [
    "Normalization",
    "TextVectorization",
    "Rescaling",
    "Resizing",
    "CenterCrop",
    "RandomCrop",
    "RandomFlip",
    "RandomTranslation",
    "RandomRotation",
    "RandomZoom",
    "RandomHeight",
    "RandomWidth",
    "RandomContrast",
    "CategoryEncoding",
    "Discretization",
    "Hashing",
    "HashedCrossing",
    "IntegerLookup",
    "StringLookup",
]
_OPTIMIZERS = [
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Ftrl",
    "Nadam",
    "Optimizer",
    "RMSprop",
    "SGD",
]
_EXPERIMENTAL = "tf.distribute.experimental."
RENAMED: dict[str, str] = {
    **{f"tf.keras.layers.experimental.preprocessing.{n}": f"tf.keras.layers.{n}" for n in _PREPROCESSING},
    **{f"tf.keras.optimizers.experimental.{n}": f"tf.keras.optimizers.{n}" for n in _OPTIMIZERS},
    "tf.keras.layers.experimental.EinsumDense": "tf.keras.layers.EinsumDense",
    "tf.keras.experimental.CosineDecay": "tf.keras.optimizers.schedules.CosineDecay",
    "tf.keras.experimental.CosineDecayRestarts": "tf.keras.optimizers.schedules.CosineDecayRestarts",
    "tf.keras.experimental.SidecarEvaluator": "tf.keras.utils.SidecarEvaluator",
    "tf.keras.callbacks.experimental.BackupAndRestore": "tf.keras.callbacks.BackupAndRestore",
    "tf.keras.mixed_precision.experimental.set_policy": "tf.keras.mixed_precision.set_global_policy",
    "tf.keras.mixed_precision.experimental.global_policy": "tf.keras.mixed_precision.global_policy",
    "tf.keras.mixed_precision.experimental.Policy": "tf.keras.mixed_precision.Policy",
    "tf.saved_model.experimental.save": "tf.saved_model.save",
    f"{_EXPERIMENTAL}MultiWorkerMirroredStrategy": "tf.distribute.MultiWorkerMirroredStrategy",
    f"{_EXPERIMENTAL}ParameterServerStrategy": "tf.distribute.ParameterServerStrategy",
    f"{_EXPERIMENTAL}TPUStrategy": "tf.distribute.TPUStrategy",
    f"{_EXPERIMENTAL}CollectiveCommunication": f"{_EXPERIMENTAL}CommunicationImplementation",
    f"{_EXPERIMENTAL}CollectiveHints": f"{_EXPERIMENTAL}CommunicationOptions",
    f"{_EXPERIMENTAL}coordinator.ClusterCoordinator": "tf.distribute.coordinator.ClusterCoordinator",
    "tf.config.experimental.list_physical_devices": "tf.config.list_physical_devices",
    "tf.config.experimental.list_logical_devices": "tf.config.list_logical_devices",
    "tf.config.experimental.set_visible_devices": "tf.config.set_visible_devices",
    "tf.config.experimental.get_visible_devices": "tf.config.get_visible_devices",
    "tf.config.experimental.VirtualDeviceConfiguration": "tf.config.LogicalDeviceConfiguration",
    "tf.config.experimental.set_virtual_device_configuration": "tf.config.set_logical_device_configuration",
    "tf.config.experimental.get_virtual_device_configuration": "tf.config.get_logical_device_configuration",
    "tf.config.experimental_run_functions_eagerly": "tf.config.run_functions_eagerly",
    "tf.config.experimental_functions_run_eagerly": "tf.config.functions_run_eagerly",
    "tf.data.experimental.AUTOTUNE": "tf.data.AUTOTUNE",
    "tf.random.experimental.Generator": "tf.random.Generator",
    "tf.random.experimental.get_global_generator": "tf.random.get_global_generator",
    "tf.random.experimental.set_global_generator": "tf.random.set_global_generator",
    "tf.random.experimental.create_rng_state": "tf.random.create_rng_state",
}
"""Old name -> the stable one that means the same, both of TensorFlow 2."""

REMOVED: dict[str, str] = {
    "tf.keras.utils.multi_gpu_model": "build and compile the model in the scope of a tf.distribute.MirroredStrategy",
    "tf.keras.experimental.LinearCosineDecay": "write the schedule as a LearningRateSchedule of your own",
    "tf.keras.experimental.NoisyLinearCosineDecay": "write the schedule as a LearningRateSchedule of your own",
    "tf.keras.experimental.PeepholeLSTMCell": "write the cell as a layer of your own",
    "tf.keras.experimental.export_saved_model": "use model.export or tf.saved_model.save",
    "tf.keras.experimental.load_from_saved_model": "use tf.saved_model.load",
    "tf.keras.mixed_precision.experimental.LossScaleOptimizer": (
        "use tf.keras.mixed_precision.LossScaleOptimizer, whose arguments are others"
    ),
    "tf.train.experimental.enable_mixed_precision_graph_rewrite": (
        "use tf.keras.mixed_precision.set_global_policy('mixed_float16')"
    ),
    "tf.train.experimental.FixedLossScale": "use tf.keras.mixed_precision.LossScaleOptimizer(dynamic=False)",
    "tf.train.experimental.DynamicLossScale": "use tf.keras.mixed_precision.LossScaleOptimizer",
    "tf.mixed_precision.experimental.FixedLossScale": (
        "use tf.keras.mixed_precision.LossScaleOptimizer(dynamic=False)"
    ),
    "tf.mixed_precision.experimental.DynamicLossScale": "use tf.keras.mixed_precision.LossScaleOptimizer",
    "tf.keras.wrappers.scikit_learn.KerasClassifier": "use the scikeras package",
    "tf.keras.wrappers.scikit_learn.KerasRegressor": "use the scikeras package",
    "tf.keras.layers.CuDNNLSTM": "tf.keras.layers.LSTM uses the same kernels on a GPU",
    "tf.keras.layers.CuDNNGRU": "tf.keras.layers.GRU uses the same kernels on a GPU",
    "tf.keras.layers.experimental.preprocessing.CategoryCrossing": "use tf.keras.layers.HashedCrossing",
    "tf.keras.backend.get_session": "there are no sessions in TensorFlow 2",
    "tf.keras.backend.set_session": "there are no sessions in TensorFlow 2: set devices and threads by tf.config",
    "tf.data.experimental.StatsAggregator": "use the TensorFlow profiler",
    "tf.data.experimental.MapVectorizationOptions": "leave it out: it never had an effect by default",
}
"""Gone in TensorFlow 2.21, on both Keras (probed); what comes closest."""

MODULES: dict[str, str] = {
    "tf.keras.mixed_precision.experimental": "tf.keras.mixed_precision",
    "tf.keras.layers.experimental.preprocessing": "tf.keras.layers",
    "tf.keras.layers.experimental": "tf.keras.layers",
    "tf.keras.optimizers.experimental": "tf.keras.optimizers",
    "tf.keras.callbacks.experimental": "tf.keras.callbacks",
    "tf.keras.experimental": "tf.keras.optimizers.schedules",
}
"""Modules that Keras 3 does not have, and where most of their names are. Keras 2 has all but the first (probed)."""
_NOWHERE = "tf.keras.mixed_precision.experimental"

KERAS_2: frozenset[str] = frozenset(
    {
        "tf.keras.experimental.LinearModel",
        "tf.keras.experimental.WideDeepModel",
        "tf.keras.experimental.SequenceFeatures",
        "tf.keras.experimental.SidecarEvaluator",
        "tf.keras.utils.SidecarEvaluator",
        "tf.keras.utils.experimental.DatasetCreator",
        "tf.keras.layers.experimental.RandomFourierFeatures",
        "tf.keras.layers.experimental.SyncBatchNormalization",
        "tf.keras.layers.experimental.preprocessing.PreprocessingLayer",
        "tf.keras.layers.DenseFeatures",
        "tf.keras.layers.LocallyConnected1D",
        "tf.keras.layers.LocallyConnected2D",
        "tf.keras.metrics.MeanRelativeError",
        "tf.keras.metrics.MeanTensor",
        "tf.keras.backend.learning_phase",
        "tf.keras.backend.set_learning_phase",
        "tf.keras.utils.OrderedEnqueuer",
        "tf.keras.backend.experimental.enable_tf_random_generator",
    }
)
"""Names of TensorFlow 2.21 that only tf_keras has (probed)."""

_KERAS_2_PREFIXES = ("tf.keras.optimizers.legacy.", "tf.keras.dtensor.experimental.")
# On Keras 3 fit fails on these, or reports a wrong loss.
_KERAS_2_STRATEGIES = ("MultiWorkerMirroredStrategy", "ParameterServerStrategy", "CentralStorageStrategy")
# Methods of tf.distribute.Strategy that no other class has.
_METHODS = {
    "experimental_run_v2": "run",
    "experimental_distribute_datasets_from_function": "distribute_datasets_from_function",
}
_FUNCTION_OPTIONS = {"experimental_compile": "jit_compile", "experimental_relax_shapes": "reduce_retracing"}


def check_names(file: ModernFile) -> Iterable[Change]:
    """Symbols of TensorFlow that moved, are gone, or exist on Keras 2 only."""
    moved = _moved_modules(file)
    below = {node.value for node in file.attributes}
    for node in file.attributes:
        name = file.name(node)
        if name is None:
            continue
        if name in RENAMED:
            yield from _renamed(file, node, name, moved)
        elif name in REMOVED:
            message = f"`{file.parsed.code(node)}` is gone in TensorFlow 2.21: {REMOVED[name]}"
            yield Change("TFM711", node, message, severity=Severity.MANUAL)
        elif name in KERAS_2 or name.startswith(_KERAS_2_PREFIXES):
            yield Change("TFM712", node, f"`{file.parsed.code(node)}` exists on Keras 2 only", keras_2=True)
        elif name in MODULES and node not in below:
            yield _module(file, node, name, moved)
    for statement in file.imports_from:
        yield from _imported_from(file, statement, moved)
    for plain in file.imports:
        yield from _imported(file, plain, moved)


def _moved_modules(file: ModernFile) -> dict[str, str]:
    """Local names of modules that moved -> what they stand for when the file is mended.

    A name is one of them where all that is used of it is found in one new module.
    """
    origins = {local: canonical(origin) for local, origin in file.parsed.imports.names.items()}
    below = {node.value for node in file.attributes}
    moved = {local: MODULES[origin] for local, origin in origins.items() if origin in MODULES}
    for node in file.attributes:
        local = (dotted(node) or "").partition(".")[0]
        if local not in moved or node in below:
            continue
        name = _known(file, node)
        if name is None or not RENAMED[name].startswith(moved[local] + "."):
            del moved[local]
    return moved


def _known(file: ModernFile, node: cst.BaseExpression) -> str | None:
    """The name that moved which an attribute is, or begins with (`preprocessing.Rescaling.from_config`)."""
    while isinstance(node, cst.Attribute):
        name = file.name(node)
        if name in RENAMED:
            return name
        node = node.value
    return None


def _module(file: ModernFile, node: cst.Attribute, name: str, moved: Mapping[str, str]) -> Change:
    """A module that moved, given as a value: `preprocessing = tf.keras.layers.experimental.preprocessing`."""
    code = file.parsed.code(node)
    taken = [local for local, value in file.aliases if value is node]
    spelled = spelled_here(file, node, MODULES[name], moved)
    if taken and all(local in moved for local in taken) and spelled is not None:
        return Change("TFM710", node, f"`{code}` is `{spelled}` now", lambda _: cst.parse_expression(spelled))
    return _stays(node, name, code)


def _stays(node: cst.CSTNode, name: str, code: str) -> Change:
    """A module of which something is used that has no new place, or nobody knows what."""
    if name != _NOWHERE:
        return Change("TFM712", node, f"`{code}` exists on Keras 2 only", keras_2=True)
    message = f"`{code}` is gone in TensorFlow 2.21: use {MODULES[name]}"
    return Change("TFM711", node, message, severity=Severity.MANUAL)


def _renamed(file: ModernFile, node: cst.Attribute, name: str, moved: Mapping[str, str]) -> Iterable[Change]:
    code, new = file.parsed.code(node), RENAMED[name]
    spelled = spelled_here(file, node, new, moved)
    if spelled is None:
        message = f"`{code}` moved to `{new}`: import tensorflow as tf, and use that"
        yield Change("TFM711", node, message, severity=Severity.MANUAL)
    elif spelled != code:  # else the import says it
        message = f"`{code}` is `{spelled}` now"
        yield Change("TFM710", node, message, lambda _: cst.parse_expression(spelled), keras_2=new in KERAS_2)


def spelled_here(
    file: ModernFile, node: cst.BaseExpression, new: str, moved: Mapping[str, str] | None = None
) -> str | None:
    """The new name by what the file calls TensorFlow: the name that the old one began with, or any other.

    `moved` are names that stand for other modules when the file is mended.
    """
    names = {**file.parsed.imports.names, **(moved or {})}
    head = (dotted(node) or "").partition(".")[0]
    for local in (head, *sorted(names)):
        origin = canonical(names.get(local, ""))
        if origin and "compat" not in names[local] and (new == origin or new.startswith(origin + ".")):
            return local + new[len(origin) :]
    return None


def _imported_from(file: ModernFile, statement: cst.ImportFrom, moved: Mapping[str, str]) -> Iterable[Change]:
    """`from tensorflow.keras.x import Y`, where Y moved or is gone."""
    module = canonical(dotted(statement.module) or "")
    if statement.relative or not module.startswith("tf") or isinstance(statement.names, cst.ImportStar):
        return
    names: list[str] = []
    for alias in statement.names:
        name = f"{module}.{dotted(alias.name)}"
        names.append(name)
        if name in REMOVED:
            message = f"`{name}` is gone in TensorFlow 2.21: {REMOVED[name]}"
            yield Change("TFM711", alias, message, severity=Severity.MANUAL)
        elif name in KERAS_2 or name.startswith(_KERAS_2_PREFIXES):
            yield Change("TFM712", alias, f"`{name}` exists on Keras 2 only", keras_2=True)
        elif name in RENAMED:
            names[-1] = RENAMED[name]
            yield Change("TFM710", alias, f"`{name}` is `{RENAMED[name]}` now", keras_2=RENAMED[name] in KERAS_2)
        elif name in MODULES and _local(alias) in moved:
            names[-1] = MODULES[name]
            yield Change("TFM710", alias, f"`{name}` is `{MODULES[name]}` now")
        elif name in MODULES:
            yield _stays(alias, name, name)
    if all(new == f"{module}.{dotted(alias.name)}" for new, alias in equal_zip(names, statement.names)):
        return
    homes = {name.rpartition(".")[0] for name in names}
    if len(homes) == 1:
        yield Change("TFM710", statement, "", partial(_import_from, homes.pop(), names))
        return
    line = file.parsed.parents.get(statement)
    if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1:
        yield Change("TFM710", line, "", partial(_import_each, names))
    else:
        yield Change("TFM710", statement, "", lambda node: cast(cst.CSTNode, cst.FlattenSentinel(_each(names, node))))


def _imported(file: ModernFile, statement: cst.Import, moved: Mapping[str, str]) -> Iterable[Change]:
    """`import tensorflow.keras.x.experimental as y`."""
    for alias in statement.names:
        name = canonical(dotted(alias.name) or "")
        if name not in MODULES:
            continue
        if alias.asname is not None and _local(alias) not in moved:
            yield _stays(alias, name, name)
            continue
        message = f"`{name}` is `{MODULES[name]}` now"
        yield Change("TFM710", alias, message, partial(_import_module, MODULES[name]))


def _local(alias: cst.ImportAlias) -> str:
    """The name that an import binds."""
    return alias.evaluated_alias or alias.evaluated_name.partition(".")[0]


def _tensorflow(name: str) -> cst.Attribute | cst.Name:
    expression = cst.parse_expression("tensorflow" + name[len("tf") :])
    assert isinstance(expression, (cst.Attribute, cst.Name))
    return expression


def _import_module(name: str, node: cst.CSTNode) -> cst.CSTNode:
    return is_edit_of(node, cst.ImportAlias).with_changes(name=_tensorflow(name))


def _import_from(module: str, names: Sequence[str], node: cst.CSTNode) -> cst.CSTNode:
    """The statement with other names, all of one module."""
    statement = is_edit_of(node, cst.ImportFrom)
    assert not isinstance(statement.names, cst.ImportStar)
    aliases = [_alias(name, alias) for name, alias in equal_zip(names, statement.names)]
    return statement.with_changes(module=_tensorflow(module), names=aliases)


def _alias(name: str, alias: cst.ImportAlias) -> cst.ImportAlias:
    """The import of another name, bound to the local name that it had."""
    last, local = name.rpartition(".")[2], alias.evaluated_alias or alias.evaluated_name
    if local == last:
        return alias.with_changes(name=cst.Name(last), asname=None)
    asname = alias.asname if alias.asname is not None else cst.AsName(cst.Name(local))
    return alias.with_changes(name=cst.Name(last), asname=asname)


def _import_each(names: Sequence[str], node: cst.CSTNode) -> cst.CSTNode:
    """A line for each module that the names are in now; the first one keeps the comments."""
    line = is_edit_of(node, cst.SimpleStatementLine)
    statements = _each(names, line.body[0])
    above = [*line.leading_lines, *comment_lines(line.body[0])]
    lines = [
        line.with_changes(
            body=[statement],
            leading_lines=[] if index else above,
            trailing_whitespace=line.trailing_whitespace if index + 1 == len(statements) else cst.TrailingWhitespace(),
        )
        for index, statement in enumerate(statements)
    ]
    return cast(cst.CSTNode, cst.FlattenSentinel(lines))  # libcst puts all of them in the place of the one


def _each(names: Sequence[str], node: cst.CSTNode) -> list[cst.ImportFrom]:
    """An import for each module that the names are in now."""
    statement = is_edit_of(node, cst.ImportFrom)
    assert not isinstance(statement.names, cst.ImportStar)
    homes: dict[str, list[cst.ImportAlias]] = {}
    for name, alias in equal_zip(names, statement.names):
        plain = _alias(name, alias).with_changes(comma=cst.MaybeSentinel.DEFAULT)
        homes.setdefault(name.rpartition(".")[0], []).append(plain)
    return [cst.ImportFrom(_tensorflow(module), aliases) for module, aliases in homes.items()]


def check_strategies(file: ModernFile) -> Iterable[Change]:
    """Strategies: arguments that have other names, methods that moved, and what needs Keras 2."""
    uses_keras = any((file.name(node) or "").startswith("tf.keras") for node in file.attributes) or any(
        canonical(dotted(s.module) or "").startswith(("tf.keras", "tf")) for s in file.imports_from
    )
    on_tpu = uses_keras and any((file.name(call.func) or "").endswith(".TPUStrategy") for call in file.calls)
    in_replicas = any((file.name(call.func) or "").rpartition(".")[2] in STRATEGIES for call in file.calls)
    for call in file.calls:
        name = file.name(call.func) or ""
        last = name.rpartition(".")[2]
        if name in (f"{_EXPERIMENTAL}MultiWorkerMirroredStrategy", f"{_EXPERIMENTAL}TPUStrategy"):
            yield from _older_arguments(file, call, last)
        if name.startswith("tf.distribute.") and last in _KERAS_2_STRATEGIES and uses_keras:
            yield Change("TFM712", call, f"Keras 3 does not train on a {last} as Keras 2 does", keras_2=True)
        if _is_method(call, "fit") and on_tpu:
            message = "`fit` on a TPUStrategy was tested with Keras 2 only"
            yield Change("TFM712", call, message, keras_2=True)
        prefetch = keyword(call, "experimental_prefetch_to_device")
        if name == "tf.distribute.InputOptions" and prefetch is not None and prefetch.keyword is not None:
            message = "`experimental_prefetch_to_device` is `experimental_fetch_to_device` now"
            yield Change("TFM710", prefetch.keyword, message, lambda _: cst.Name("experimental_fetch_to_device"))
        if name == "tf.function":
            for arg in call.args:
                if arg.keyword is not None and arg.keyword.value in _FUNCTION_OPTIONS:
                    new = _FUNCTION_OPTIONS[arg.keyword.value]
                    message = f"`{arg.keyword.value}` is `{new}` now"
                    yield Change("TFM710", arg.keyword, message, lambda _, new=new: cst.Name(new))  # type: ignore[misc]
        older = keyword(call, "experimental_steps_per_execution")
        if older is not None and older.keyword is not None and _is_method(call, "compile"):
            message = "`experimental_steps_per_execution` is `steps_per_execution` now"
            yield Change("TFM710", older.keyword, message, lambda _: cst.Name("steps_per_execution"))
        steps = keyword(call, "steps_per_execution") or older
        if steps is not None and uses_keras and in_replicas and not _is_one(steps.value):
            yield Change(
                "TFM712", call, "Keras 3 does not support several steps per execution on replicas", keras_2=True
            )
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in _METHODS:
            old, new = call.func.attr.value, _METHODS[call.func.attr.value]
            yield Change("TFM710", call.func.attr, f"`{old}` is `{new}` now", lambda _, new=new: cst.Name(new))  # type: ignore[misc]
        if isinstance(call.func, cst.Attribute) and call.func.attr.value == "experimental_make_numpy_dataset":
            dataset = spelled_here(file, call.func, "tf.data.Dataset.from_tensor_slices")
            if dataset is None or len(call.args) != 1:
                yield Change(
                    "TFM711",
                    call,
                    "`experimental_make_numpy_dataset` is gone: use tf.data.Dataset.from_tensor_slices",
                    severity=Severity.MANUAL,
                )
            else:
                message = f"`experimental_make_numpy_dataset` is `{dataset}` now"
                yield Change("TFM710", call.func, message, lambda _, d=dataset: cst.parse_expression(d))  # type: ignore[misc]
    has_steps = uses_keras and any(file.runs_on_replicas(call) for call in file.calls)
    if has_steps and not _applies_as_keras_3(file) and not refused_by_keras_2(file):
        first = file.on_replicas[0]
        message = "Keras 3 scales the losses of replica steps differently"
        yield Change("TFM712", first.name, message, keras_2=True)


def _is_method(call: cst.Call, name: str) -> bool:
    return isinstance(call.func, cst.Attribute) and call.func.attr.value == name


def _is_one(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Integer) and node.evaluated_value == 1


def _applies_as_keras_3(file: ModernFile) -> bool:
    """Whether a step applies gradients as only optimizers of Keras 3 do: `optimizer.apply(gradients, variables)`."""
    applied = [call.func for call in file.calls if isinstance(call.func, cst.Attribute) and file.runs_on_replicas(call)]
    return any(
        func.attr.value == "apply" and (dotted(func.value) or "").rpartition(".")[2].endswith("optimizer")
        for func in applied
    )


def _older_arguments(file: ModernFile, call: cst.Call, last: str) -> Iterable[Change]:
    first, second = ("communication", "cluster_resolver") if last.startswith("Multi") else ("tpu_cluster_resolver", "")
    if any(arg.star for arg in call.args):
        message = f"the arguments of {last} were renamed: write them out"
        yield Change("TFM711", call, message, severity=Severity.MANUAL)
        return
    if last == "TPUStrategy":
        old = keyword(call, "device_assignment")
        if old is not None and old.keyword is not None:
            message = "`device_assignment` is `experimental_device_assignment` now"
            yield Change("TFM710", old.keyword, message, lambda _: cst.Name("experimental_device_assignment"))
        return
    for position, arg in enumerate(call.args):
        name = arg.keyword.value if arg.keyword is not None else (first, second)[position]
        if name == "communication":
            options = spelled_here(file, call.func, f"{_EXPERIMENTAL}CommunicationOptions")
            message = "`communication` is now one of the `communication_options`"
            yield Change("TFM710", arg, message, partial(_communication, options or "tf"))
        elif arg.keyword is None:
            yield Change("TFM710", arg, f"the second argument is now passed as `{name}`", partial(_by_keyword, name))


def _communication(options: str, node: cst.CSTNode) -> cst.CSTNode:
    arg = is_edit_of(node, cst.Arg)
    inner = cst.Arg(arg.value, cst.Name("implementation"), equal=_EQUAL, whitespace_after_arg=_line(1))
    value = cst.Call(cst.parse_expression(options), [inner], whitespace_before_args=_line(2))
    return arg.with_changes(keyword=cst.Name("communication_options"), value=value, equal=_EQUAL)


def _by_keyword(name: str, node: cst.CSTNode) -> cst.CSTNode:
    return is_edit_of(node, cst.Arg).with_changes(keyword=cst.Name(name), equal=_EQUAL)


def _line(depth: int) -> cst.ParenthesizedWhitespace:
    """A new line, so many levels below the statement."""
    return cst.ParenthesizedWhitespace(indent=True, last_line=cst.SimpleWhitespace("    " * depth))


_EQUAL = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))

CHECKS = (check_names, check_strategies)
