"""TPUEstimator: what it says otherwise than an Estimator does, and which TPU it asks for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

import libcst as cst

from migrator.names.bindings import values_given
from migrator.pairing import equal_zip
from migrator.program.body import Definition
from migrator.program.calls import bind, calls_in, is_false, is_none, is_true, string
from migrator.program.flow import InFile
from migrator.program.modes import ModalStatement
from migrator.program.parsed import Blocked, ParsedFile, names_in
from migrator.program.scopes import with_values
from migrator.walking import of_kinds

ESTIMATORS = ("tf.contrib.tpu.TPUEstimator", "tf.estimator.tpu.TPUEstimator")
SPECS = ("tf.contrib.tpu.TPUEstimatorSpec", "tf.estimator.tpu.TPUEstimatorSpec")
RESOLVERS = (
    "tf.contrib.cluster_resolver.TPUClusterResolver",
    "tf.distribute.cluster_resolver.TPUClusterResolver",
)
PARAMETERS = (
    *("model_fn", "model_dir", "config", "params", "use_tpu", "train_batch_size", "eval_batch_size"),
    *("predict_batch_size", "batch_axis", "eval_on_tpu", "export_to_tpu", "warm_start_from"),
    *("embedding_config_spec", "export_to_cpu", "export_saved_model_api_version"),
)
SPEC = (
    *("mode", "predictions", "loss", "train_op", "eval_metrics", "export_outputs", "scaffold_fn", "host_call"),
    *("training_hooks", "evaluation_hooks", "prediction_hooks"),
)
_CONFIGS = ("tf.contrib.tpu.TPUConfig", "tf.estimator.tpu.TPUConfig")
_CONFIG = (
    *("iterations_per_loop", "num_shards", "num_cores_per_replica", "per_host_input_for_training", "tpu_job_name"),
    *("initial_infeed_sleep_secs", "input_partition_dims", "eval_training_input_configuration"),
    *("experimental_host_call_every_n_steps", "experimental_allow_per_host_v2_parallel_get_next"),
    "experimental_feed_hook",
)
_RESOLVER = (
    *("tpu", "zone", "project", "job_name", "coordinator_name", "coordinator_address", "credentials", "service"),
    "discovery_url",
)
_SIZES = {"train": "train_batch_size", "eval": "eval_batch_size", "infer": "predict_batch_size"}
ANYWAY = "the new program ignores this, and runs on the devices of its own machine"
OPEN = "TFM144"
_REFUSED = "TFM145"
_PARTS = "TFM441"
_NOT_FOUND = "TFM446"


@dataclass(frozen=True)
class TpuArguments:
    """The batch sizes by mode that a TPUEstimator puts into `params`, and whether it asks for a TPU.

    `flag` is the expression that decides it when the program runs (None: it is sure).
    """

    batch_sizes: dict[str, cst.BaseExpression]
    asks: bool
    flag: cst.BaseExpression | None


@dataclass(frozen=True)
class TpuUse:
    """The TPU that a program asks for.

    `place` is where it says so, `flag` the expression that decides when the program runs (None: always). `resolver` are
    the arguments of the TPUClusterResolver, `iterations` the steps that the TPU makes in one go (None: not said), and
    `removed` the lines that only served what is left out where the program does without a TPU. `name` is what the
    program calls the resolver, and `made` says that its own line, which stays, makes it before.
    """

    place: cst.CSTNode
    flag: cst.BaseExpression | None = None
    resolver: tuple[cst.Arg, ...] = ()
    iterations: cst.BaseExpression | None = None
    remarks: tuple[Blocked, ...] = ()
    problem: Blocked | None = None
    removed: tuple[cst.BaseStatement, ...] = field(default=())
    name: str | None = None
    made: bool = False

    @property
    def reads(self) -> set[str]:
        """The names that making the strategy reads."""
        given = [self.flag, self.iterations, *(arg.value for arg in self.resolver)]
        return set().union(*(names_in(node) for node in given if node is not None))


def read_tpu(bound: dict[str, cst.BaseExpression]) -> TpuArguments:
    """What the arguments of a TPUEstimator say beside those of an Estimator. Raises Blocked (TFM443)."""
    embedding = bound.get("embedding_config_spec")
    if not is_none(embedding):
        assert embedding is not None
        message = (
            "TPU embeddings (`embedding_config_spec`) have no built-in counterpart: use plain "
            "embedding columns or tf.keras.layers.Embedding, or tensorflow_recommenders' "
            "TPUEmbedding"
        )
        raise Blocked("TFM443", embedding, message)
    use = bound.get("use_tpu")
    sizes = {mode: bound[key] for mode, key in _SIZES.items() if not is_none(bound.get(key))}
    sure = use is None or is_true(use)
    return TpuArguments(sizes, not is_false(use), None if sure else use)


def read_use(
    file: ParsedFile,
    scope: cst.CSTNode,
    place: cst.Call,
    given: TpuArguments,
    settings: dict[str, cst.BaseExpression],
    value_of: Callable[[cst.BaseExpression], cst.BaseExpression | None],
    known: Collection[str],
) -> TpuUse:
    """The TPU that a TPUEstimator asks for. `settings` are those of its RunConfig, `value_of` tells what a name of the
    scope is, `known` are the names that can be read where the strategy is made.
    """
    use = TpuUse(given.flag if given.flag is not None else place, given.flag)
    try:
        iterations, remarks, job = _config(file, settings.get("tpu_config"), value_of)
        resolver = _resolver(file, place, settings, value_of)
        if job is not None and all(arg.keyword is None or arg.keyword.value != "job_name" for arg in resolver):
            resolver = (
                *resolver,
                cst.Arg(
                    job,
                    keyword=cst.Name("job_name"),
                    equal=cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace("")),
                ),
            )
        name = _name_of_resolver(file, scope, settings)
        use = replace(use, resolver=resolver, iterations=iterations, remarks=tuple(remarks), name=name)
        strange = sorted(use.reads - set(known))
        if strange:
            message = f"`{strange[0]}`, which selects the TPU, is not available where the Estimator is created"
            raise Blocked(_NOT_FOUND, place, message)
    except Blocked as problem:
        return replace(use, problem=problem)
    return use


def _config(
    file: ParsedFile,
    node: cst.BaseExpression | None,
    value_of: Callable[[cst.BaseExpression], cst.BaseExpression | None],
) -> tuple[cst.BaseExpression | None, list[Blocked], cst.BaseExpression | None]:
    """The steps of a loop on the TPU, remarks, and the name of the TPU's job."""
    if is_none(node):
        return None, [], None
    assert node is not None
    found = value_of(node)
    if not isinstance(found, cst.Call) or file.imports.resolve(found.func) not in _CONFIGS:
        message = "this TPUConfig cannot be resolved: every execution runs one step"
        return None, [Blocked("TFM445", node, message)], None
    bound = bind(found, _CONFIG, "TPUConfig", "TFM108")
    for key in ("num_cores_per_replica", "input_partition_dims"):
        if not is_none(bound.get(key)):
            message = f"`{key}` splits one model over cores, which TPUStrategy and fit do not support"
            raise Blocked(_PARTS, bound[key], message)
    per_host = bound.get("per_host_input_for_training")
    if per_host is not None:
        value = value_of(per_host)
        name = (file.imports.resolve(value) if value is not None else None) or ""
        if name.endswith(".BROADCAST"):
            message = "BROADCAST sends every host the same batch, which `fit` would split: use PER_HOST_V2 or SLICED"
            raise Blocked("TFM442", per_host, message)
    iterations = bound.get("iterations_per_loop")
    remarks = []
    if iterations is not None and string(iterations) is not None:
        message = "a loop of a number of seconds is unsupported: pass the number of steps"
        remarks.append(Blocked("TFM445", iterations, message))
        iterations = None
    job = bound.get("tpu_job_name")
    return iterations, remarks, None if is_none(job) else job


def _resolver(
    file: ParsedFile,
    place: cst.Call,
    settings: dict[str, cst.BaseExpression],
    value_of: Callable[[cst.BaseExpression], cst.BaseExpression | None],
) -> tuple[cst.Arg, ...]:
    """The address of the master, or the arguments of the one resolver of a file."""
    master = settings.get("master")
    if master is not None and not is_none(master) and not _asks_resolver(value_of(master)):
        value = value_of(master)
        return () if value is not None and is_none(value) else (cst.Arg(master),)
    made = [call for call in _every_call(file) if file.imports.resolve(call.func) in RESOLVERS]
    if len({tuple(sorted(file.code(arg.value) for arg in call.args)) for call in made}) > 1:
        raise Blocked(_NOT_FOUND, place, "the file creates several TPUClusterResolvers: create one, for the Estimator")
    if made:
        bind(made[0], _RESOLVER, "TPUClusterResolver", _NOT_FOUND)
        return _in_line(made[0].args)
    cluster = settings.get("cluster")
    value = None if cluster is None else value_of(cluster)
    if master is not None or (cluster is not None and (value is None or not is_none(value))):
        message = "the TPUClusterResolver is not created in the Estimator's file: create it there"
        raise Blocked(_NOT_FOUND, cluster or master, message)
    return ()


def _asks_resolver(node: cst.BaseExpression | None) -> bool:
    """`resolver.get_master()`."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return False
    return node.func.attr.value in ("get_master", "master")


def _name_of_resolver(file: ParsedFile, scope: cst.CSTNode, settings: dict[str, cst.BaseExpression]) -> str | None:
    """The name that a RunConfig has the resolver by, where that only ever stands for it."""
    cluster = settings.get("cluster")
    if not isinstance(cluster, cst.Name):
        return None
    values = [v for node in (scope, *file.left_out) for v in values_given(node, cluster.value) if not is_none(v)]
    made = [v for v in values if isinstance(v, cst.Call) and file.imports.resolve(v.func) in RESOLVERS]
    return cluster.value if len(made) == len(values) else None


def with_own_resolver(use: TpuUse, file: ParsedFile, scope: cst.CSTNode, gone: Collection[cst.CSTNode]) -> TpuUse:
    """Where the program's own line that makes the resolver stays, and always runs, there is no other."""
    body = scope.body.body if isinstance(scope, cst.FunctionDef) else getattr(scope, "body", ())
    for line in body:
        small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
        if not isinstance(small, cst.Assign) or any(line is other for other in gone) or use.flag is not None:
            continue
        target = small.targets[0].target
        named = isinstance(target, cst.Name) and target.value == use.name
        if named and isinstance(small.value, cst.Call) and file.imports.resolve(small.value.func) in RESOLVERS:
            return replace(use, made=file.position(line) < file.position(use.place))
    return use


def _every_call(file: ParsedFile) -> list[cst.Call]:
    return [*calls_in(file.module), *(call for node in file.left_out for call in calls_in(node))]


def _in_line(args: Sequence[cst.Arg]) -> tuple[cst.Arg, ...]:
    """Arguments without the line breaks and comments between them."""
    plain = [
        arg.with_changes(comma=cst.MaybeSentinel.DEFAULT, whitespace_after_arg=cst.SimpleWhitespace("")) for arg in args
    ]
    return tuple(plain)


def check_optimizers(files: Sequence[ParsedFile]) -> None:
    """Refuses K-FAC's optimizers for TensorFlow 1, which are graphs with sums over cores of their own (TFM447)."""
    for file in files:
        for name, origin in file.imports.names.items():
            if origin == "kfac" or origin.startswith(("kfac.python.ops", "kfac.optimizer", "kfac.Periodic")):
                message = "K-FAC builds its updates, and its sums over cores, as a TensorFlow 1 graph"
                raise InFile(file, "TFM447", file.imports.nodes.get(name, file.module), message)


def check_input(function: cst.FunctionDef | cst.Lambda) -> None:
    """Refuses an input function that asks for which host it is called (TFM442)."""
    asked = _asks_for_context(function)
    if asked is not None:
        message = (
            '`params["context"]` describes the host or core, which the new program does not have: it calls this once'
        )
        raise Blocked("TFM442", asked, message)


def bind_spec(call: cst.Call, name: str | None) -> dict[str, cst.BaseExpression]:
    """The arguments of a TPUEstimatorSpec, `eval_metrics` and `host_call` among them. Raises Blocked (TFM105)."""
    return bind(call, SPEC, name or "TPUEstimatorSpec", "TFM105")


def host_functions(
    file: ParsedFile,
    statements: Sequence[ModalStatement],
    definitions: Sequence[Definition],
    node: cst.BaseExpression,
) -> list[cst.FunctionDef]:
    """The functions that the `host_call` of a TPUEstimatorSpec names, of the model_fn or of its file."""
    pairs = [d.value for d in definitions if isinstance(node, cst.Name) and d.name == node.value] or [node]
    heads = {p.elements[0].value.value for p in pairs if _is_pair_of_a_name(p)}  # type: ignore[attr-defined]
    nested = [s.node for s in statements if isinstance(s.node, cst.FunctionDef)]
    return [one for one in (*nested, *file.functions.values()) if one.name.value in heads]


def without_host_call(node: cst.BaseExpression) -> Blocked:
    """The remark on a `host_call` that the new program does not have."""
    return Blocked("TFM423", node, "the host_call is dropped: it only writes summaries")


def _is_pair_of_a_name(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Tuple) and len(node.elements) == 2 and isinstance(node.elements[0].value, cst.Name)


def metric_ops(
    file: ParsedFile,
    statements: Sequence[ModalStatement],
    definitions: Sequence[Definition],
    node: cst.BaseExpression,
) -> tuple[cst.BaseExpression, set[int], cst.FunctionDef]:
    """The dict of metrics that `eval_metrics=(metric_fn, tensors)` means, the statements that only made it, metric_fn.

    The body of metric_fn is read as if it stood in the model_fn. Raises Blocked (TFM501).
    """
    gone: set[int] = set()
    node = _followed(definitions, node, gone)
    if not isinstance(node, cst.Tuple) or len(node.elements) != 2:
        raise Blocked("TFM501", node, "`eval_metrics` is not a pair of a function and its tensors")
    head, tensors = node.elements[0].value, _followed(definitions, node.elements[1].value, gone)
    function = None
    if isinstance(head, cst.Name):
        for index, statement in enumerate(statements):
            if isinstance(statement.node, cst.FunctionDef) and statement.node.name.value == head.value:
                function = statement.node
                gone.add(index)
        function = function or file.functions.get(head.value)
    if function is None or not isinstance(function.body, cst.IndentedBlock):
        raise Blocked("TFM501", head, "the function of `eval_metrics` is not in this file: define it here")
    values = _arguments(function, tensors)
    result: cst.BaseExpression | None = None
    for line in function.body.body:
        small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
        if isinstance(small, cst.Return) and small.value is not None:
            result = with_values(small.value, values)
        elif isinstance(small, cst.Assign) and len(small.targets) == 1 and result is None:
            target = small.targets[0].target
            if not isinstance(target, cst.Name):
                raise Blocked(
                    "TFM501", function.name, "the function of `eval_metrics` cannot be resolved: write plain statements"
                )
            values[target.value] = with_values(small.value, values)
        elif not (isinstance(small, cst.Expr) and isinstance(small.value, cst.SimpleString)):
            raise Blocked("TFM501", function.name, "the function of `eval_metrics` has more than plain statements")
    if result is None:
        raise Blocked("TFM501", function.name, "the function of `eval_metrics` returns nothing")
    return result, gone, function


def _followed(definitions: Sequence[Definition], node: cst.BaseExpression, gone: set[int]) -> cst.BaseExpression:
    if isinstance(node, cst.Name):
        found = [d for d in definitions if d.name == node.value]
        if len(found) == 1 and isinstance(found[0].value, (cst.Tuple, cst.List, cst.Dict)):
            gone.add(found[0].index)
            return found[0].value
    return node


def _arguments(function: cst.FunctionDef, tensors: cst.BaseExpression) -> dict[str, cst.BaseExpression]:
    """What a metric_fn is called with: tensors by position, or by name."""
    names = [p.name.value for p in function.params.params]
    if isinstance(tensors, (cst.List, cst.Tuple)):
        given = [element.value for element in tensors.elements]
        if len(given) == len(names):
            return dict(equal_zip(names, given))
    if isinstance(tensors, cst.Dict):
        found: dict[str, cst.BaseExpression] = {}
        for element in tensors.elements:
            key = element.key if isinstance(element, cst.DictElement) else None
            if not isinstance(key, cst.SimpleString):
                break
            found[str(key.evaluated_value)] = element.value
        if set(found) == set(names):
            return found
    raise Blocked("TFM501", tensors, "the tensors of `eval_metrics` do not match the parameters of its function")


__all__ = [
    "ANYWAY",
    "ESTIMATORS",
    "OPEN",
    "PARAMETERS",
    "SPECS",
    "TpuArguments",
    "TpuUse",
    "bind_spec",
    "check_input",
    "check_optimizers",
    "host_functions",
    "metric_ops",
    "read_tpu",
    "read_use",
    "with_own_resolver",
    "without_host_call",
]


def _asks_for_context(function: cst.FunctionDef | cst.Lambda) -> cst.CSTNode | None:
    """Where a function reads `params["context"]` or `params.get("context")`."""
    node: cst.Subscript | cst.Call
    for node in of_kinds(function, cst.Subscript, cst.Call):
        if isinstance(node, cst.Subscript):
            index = node.slice[0].slice
            key = index.value if isinstance(index, cst.Index) else None
        else:
            asks = isinstance(node.func, cst.Attribute) and node.func.attr.value == "get" and node.args
            key = node.args[0].value if asks else None
        if string(key) == "context":
            return node
    return None
