"""Which target a program gets: the one that is asked for, else the one that its RunConfig and its driver say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import libcst as cst

from migrator.names.bindings import values_given
from migrator.program.calls import bind, is_false, is_none, number, string
from migrator.program.clusters import Cluster
from migrator.program.parsed import Blocked, name_nodes, names_in
from migrator.program.scopes import bindings, path_to
from migrator.program.starts import VARIABLES
from migrator.program.training import TrainingProgram
from migrator.rules.generation import Keras
from migrator.targets import between_graph
from migrator.targets.chosen import Choice, read_choice
from migrator.targets.plan import Target
from migrator.targets.registry import AUTO, ONE_DEVICE, TPU, target_of
from migrator.walking import walk

_WORKERS = ("num_gpus_per_worker", "communication", "communication_options", "cluster_resolver")
# The parameters of the classes in their order; those of tf.contrib have other ones.
_PARAMETERS = {
    "one-device": ("device",),
    "mirrored": ("devices", "cross_device_ops"),
    "central-storage": ("compute_devices", "parameter_device"),
    "multi-worker-mirrored": ("communication", "cluster_resolver", "communication_options"),
    "parameter-server": ("cluster_resolver",),
}
# The strategies that a loop of the program's own is written for, beside one device.
_WITH_LOOPS = ("mirrored", "central-storage", "multi-worker-mirrored", "parameter-server", "tpu")
_CONTRIB = {
    "mirrored": (
        *("devices", "num_gpus", "num_gpus_per_worker", "cross_device_ops"),
        *("auto_shard_dataset", "cross_tower_ops"),
    ),
    "multi-worker-mirrored": ("num_gpus_per_worker", "communication"),
    "parameter-server": ("num_gpus_per_worker",),
}


@dataclass(frozen=True)
class OwnStrategy:
    """The strategy that a program makes for its RunConfig.

    `name` and `line` are those of a variable that holds it; `elsewhere` says that the program reads it for more. Where
    it is one of several, `choice` has all of them, and `call` is the first.
    """

    target: Target
    call: cst.Call
    name: str | None = None
    line: cst.SimpleStatementLine | None = None
    elsewhere: bool = False
    choice: Choice | None = None


def choose(program: TrainingProgram, asked: Target) -> Target:
    """The target of a program. Raises Blocked (TFM704, TFM762)."""
    cluster = program.file.clusters.get(program.variable)
    if cluster is not None:
        return _of_cluster(program, cluster, asked)
    own = None if asked is not AUTO or program.tpu is not None else own_strategy(program)
    wanted = asked if own is None else own.target
    if asked is AUTO and program.tpu is not None:
        wanted = TPU
    elif asked is AUTO and own is None and program.config.get("eval_distribute") is not None:
        message = "`eval_distribute` without `train_distribute` is unsupported: set both, or neither"
        raise Blocked("TFM704", program.config["eval_distribute"], message)
    _check_evaluations(program, asked)
    if wanted.reads_cluster and wanted is not AUTO:
        _check_uses(program)
    if any(hooks.stops for phase, hooks in program.hooks if phase == "train"):
        if wanted.reads_cluster and wanted is not AUTO:
            message = "a hook stops the training: on a cluster every worker would have to stop at the same step"
            raise Blocked("TFM704", program.place.call, message)
        return ONE_DEVICE if wanted is AUTO else wanted
    if program.model.ready and wanted is TPU:
        raise Blocked("TFM704", program.place.call, "the program's own Keras model is unsupported on TPUs")
    if wanted is not AUTO:
        return wanted
    follows = program.train_and_evaluate is not None or (program.flowing is not None and bool(program.flowing.both))
    return AUTO if follows else ONE_DEVICE


def _check_uses(program: TrainingProgram) -> None:
    """Refuses plain calls of an Estimator on a cluster, but those that train and evaluate. Raises Blocked (TFM704)."""
    lent = [use for one in program.lent for use in one.uses]
    for use in (*program.uses, *lent):
        if use.method not in ("train", "evaluate", *VARIABLES) or use in lent or program.train_and_evaluate is not None:
            message = (
                f"`{use.method}` is unsupported on a cluster: use train_and_evaluate, or `train` and `evaluate` only"
            )
            raise Blocked("TFM704", use.place.call, message)
    if program.uses and program.model.ready:
        message = "the program's own Keras model is supported on a cluster only with train_and_evaluate"
        raise Blocked("TFM704", program.place.call, message)


def for_own_loop(program: TrainingProgram, target: Target, keras: Keras) -> Target:
    """The target of a program whose loop is one of its own. Raises Blocked (TFM735, TFM737)."""
    place = program.place.call
    if program.lent:
        message = "a custom loop is unsupported for an Estimator passed between functions: leave `--loop custom` out"
        raise Blocked("TFM735", place, message)
    if program.model.ready:
        message = "the program's own Keras model has an averaged loss: leave `--loop custom` out"
        raise Blocked("TFM735", place, message)
    if target is AUTO:
        return ONE_DEVICE
    if target.reads_cluster and program.uses and program.variable not in program.file.clusters:
        message = "a custom loop is unsupported for a plain `train` on a cluster: leave `--loop custom` out"
        raise Blocked("TFM737", program.uses[0].place.call, message)
    if target is not ONE_DEVICE and target.word not in _WITH_LOOPS:
        message = f"a custom loop is unsupported under the {target.word} strategy: use `--loop fit`"
        raise Blocked("TFM737", place, message)
    if target.parameter_servers and program.variable in program.file.clusters:
        message = "a custom loop is unsupported with hand-made parameter servers: use `--loop fit`"
        raise Blocked("TFM737", place, message)
    return target


def draws_batches(program: TrainingProgram, target: Target) -> bool:
    """Whether each replica draws whole batches in a loop of the program's own, as those of its Estimator did.

    A step of a mesh then takes the batches of all of them.
    """
    several = (target.in_step and target is not TPU) or target.mesh
    return several and program.config.get("train_distribute") is not None


def divides_batches(program: TrainingProgram, target: Target) -> bool:
    """Whether replicas divide the batches of the one device that the Estimator had, in a loop of the program's own.

    The cores of a TPUEstimator divided its batches, too, but each computed its part of a step by itself.
    """
    of_cores = target is TPU and program.tpu is not None
    return target.in_step and target is not AUTO and not draws_batches(program, target) and not of_cores


def for_mesh(program: TrainingProgram, target: Target, keras: Keras) -> Target:
    """The target of a program whose devices are a mesh. Raises Blocked (TFM790)."""
    place = program.place.call
    other = "choose another `--strategy`"
    if keras.number == 3:
        raise Blocked("TFM790", place, "Keras 3 has no DTensor: leave `--keras 3` out")
    if program.lent:
        raise Blocked("TFM790", place, f"an Estimator passed between functions is unsupported on a mesh: {other}")
    if program.model.ready:
        raise Blocked("TFM790", place, f"the program's own Keras model was created without a mesh: {other}")
    if program.tpu is not None:
        raise Blocked("TFM790", place, f"a TPU program is unsupported on a mesh: {other}")
    distribute = program.config.get("eval_distribute")
    if distribute is not None:
        message = (
            f"evaluating whole batches per replica is unsupported on a mesh: leave `eval_distribute` out, or {other}"
        )
        raise Blocked("TFM790", distribute, message)
    distribute = program.config.get("train_distribute")
    own = own_strategy(program)
    if own is not None and distribute is not None:
        if own.target.word != "mirrored":
            raise Blocked("TFM790", distribute, f"only a MirroredStrategy becomes a mesh: {other}")
        if own.choice is not None:
            raise Blocked("TFM790", distribute, f"a strategy chosen at run time is unsupported on a mesh: {other}")
        if own.elsewhere:
            message = f"`{own.name}` is used outside the RunConfig, but a mesh is not a strategy: {other}"
            raise Blocked("TFM790", own.call, message)
    for use in program.all_uses:
        if use.method not in ("train", "evaluate", "predict"):
            raise Blocked("TFM790", use.place.call, f"`{use.method}` is unsupported on a mesh (DTensor): {other}")
    if all(use.method == "predict" for use in program.all_uses) and program.train_and_evaluate is None:
        message = f"a program that only predicts is unsupported on a mesh: {other}"
        raise Blocked("TFM790", place, message)
    if program.servings:
        raise Blocked("TFM790", place, f"exports are unsupported on a mesh (DTensor): {other}")
    return target


def _of_cluster(program: TrainingProgram, cluster: Cluster, asked: Target) -> Target:
    """The target of a program that makes its cluster by hand."""
    target = between_graph.target(cluster)
    if asked is not AUTO and asked.word != target.word:
        message = f"this program creates its own cluster, which becomes `{target.word}`: leave `--strategy` out"
        raise Blocked("TFM762", program.place.call, message)
    for use in program.uses:
        if is_none(use.arguments.get("max_steps")):
            message = (
                "the total number of steps of all workers is unknown: give the session StopAtStepHook(last_step=n)"
            )
            raise Blocked("TFM762", program.place.call, message)
    for _, hooks in program.hooks:
        if hooks.stops or (target.parameter_servers and (hooks.own or hooks.made)):
            message = "hooks that see every step or stop the training are unsupported on parameter servers"
            raise Blocked("TFM762", program.place.call, message)
    return target


def _check_evaluations(program: TrainingProgram, asked: Target) -> None:
    """Refuses evaluations on other devices than the training has. Raises Blocked (TFM704)."""
    if is_none(program.config.get("eval_distribute")) or is_none(program.config.get("train_distribute")):
        return
    if program.tpu is not None or asked.mesh:
        return
    own = own_strategy(program)
    if own is None or own.target.reads_cluster or own.choice is not None or asked not in (AUTO, own.target):
        return
    evaluations = program.config["eval_distribute"]
    if program.file.code(evaluations) == program.file.code(program.config["train_distribute"]):
        return
    other = own_strategy(program, "eval_distribute")
    same = other is not None and other.choice is None
    if other is None or not same or program.file.code(other.call) != program.file.code(own.call):
        message = (
            "evaluation uses other devices than training, but a Keras model has one strategy: give both the "
            "same, or leave `eval_distribute` out, and each batch of an evaluation counts once, as on one "
            "device"
        )
        raise Blocked("TFM704", evaluations, message)
    for name in names_in(own.call) - program.file.imports.names.keys():
        if len([1 for bound, _ in (*bindings(program.scope), *bindings(program.file.module)) if bound == name]) > 1:
            message = f"`{name}` may change between the two strategies: give `eval_distribute` the name of the first"
            raise Blocked("TFM704", evaluations, message)


def own_strategy(program: TrainingProgram, key: str = "train_distribute") -> OwnStrategy | None:
    """The strategy that `train_distribute` names (or another `key`); None where there is none.

    Raises Blocked (TFM704).
    """
    distribute = program.config.get(key)
    if distribute is None:
        return None
    if isinstance(distribute, cst.Call) and _target(program, distribute) is not None:
        return OwnStrategy(_known(program, distribute), distribute)
    if isinstance(distribute, cst.Name):
        lines = _Lines(distribute.value)
        walk(program.file.module, lines)
        at = program.file.position
        before = [found for found in lines.found if at(found[0]) < at(program.place.call)]
        after = [found for found in lines.found if found not in before]
        over = all(at(found[0]) > at(use) for found in after for use in program.calls)
        known = len(before) == 1 and lines.plain and over
        if known and _target(program, before[0][1]) is not None:
            line, call = before[0]
            gone = [line, program.place.statement, *program.removed]
            uses = [node for node in name_nodes(program.file.module) if node.value == distribute.value]
            if after:
                uses = [node for node in uses if at(node) < min(at(found[0]) for found in after)]
            elsewhere = any(not any(g is not None and path_to(g, use) for g in gone) for use in uses)
            return OwnStrategy(_known(program, call), call, distribute.value, line, elsewhere)
    choice = read_choice(program, distribute)
    if choice is not None:
        name = distribute.value if isinstance(distribute, cst.Name) else None
        return OwnStrategy(choice.target, choice.calls[0][0], name, None, name is not None, choice)
    if _is_for_tpus(program, distribute):
        message = (
            "a TPUStrategy in the RunConfig is unsupported: remove it with its resolver, and migrate with "
            "`--strategy tpu`, or use a TPUEstimator"
        )
        raise Blocked("TFM704", distribute, message)
    message = (
        f"this {key} is not a strategy that the program creates, nor a choice of some: give it "
        "`Strategy(...)`, or a function of this file that returns one"
    )
    raise Blocked("TFM704", distribute, message)


def _is_for_tpus(program: TrainingProgram, node: cst.BaseExpression) -> bool:
    """Whether an expression is a TPUStrategy, in place or behind a name."""
    values = [node]
    if isinstance(node, cst.Name):
        values = [*values_given(program.scope, node.value), *values_given(program.file.module, node.value)]
    made = [program.file.imports.resolve(value.func) or "" for value in values if isinstance(value, cst.Call)]
    return any(name.endswith(("TPUStrategy", "TPUStrategyV2")) for name in made)


def _target(program: TrainingProgram, call: cst.Call) -> Target | None:
    name = program.file.imports.resolve(call.func)
    return None if name is None else target_of(name)


def _known(program: TrainingProgram, call: cst.Call) -> Target:
    target = _target(program, call)
    assert target is not None
    return target


def arguments_of(
    program: TrainingProgram, own: OwnStrategy, text: Callable[[cst.BaseExpression], str], remarks: list[Blocked]
) -> str:
    """What the new strategy is given, as source text. Raises Blocked (TFM704)."""
    name = program.file.imports.resolve(own.call.func) or ""
    contrib = name.startswith("tf.contrib.")
    word = own.target.word
    known = _CONTRIB.get(word, _PARAMETERS[word]) if contrib else _PARAMETERS[word]
    ahead = next((a for a in own.call.args if a.keyword and a.keyword.value == "prefetch_on_device"), None)
    if contrib and ahead is not None:
        message = "leave `prefetch_on_device` out: TensorFlow 2 prefetches batches to the devices itself"
        raise Blocked("TFM704", ahead, message)
    given = {k: v for k, v in bind(own.call, known, name.rpartition(".")[2], "TFM704").items() if not is_none(v)}
    made: list[str] = []
    for key, value in given.items():
        if key in ("num_gpus", "num_gpus_per_worker") and word == "mirrored":
            made.append(f"devices={_gpus(value, text)}")
        elif key in ("cross_device_ops", "cross_tower_ops", *_WORKERS):
            resolved = program.file.imports.resolve(value.func) if isinstance(value, cst.Call) else None
            if key == "cross_device_ops" and (resolved or "").startswith("tf.distribute."):
                made.append(f"{key}={text(value)}")
            else:
                remarks.append(Blocked("TFM720", value, f"the strategy's `{key}` is dropped"))
        elif key == "auto_shard_dataset":
            if not is_false(value):
                raise Blocked(
                    "TFM704", value, "splitting a dataset between replicas is unsupported: leave auto_shard_dataset out"
                )
        else:
            made.append(f"{key}={text(value)}")
    return ", ".join(made)


def uses_local_gpus(program: TrainingProgram, own: OwnStrategy) -> bool:
    """Whether the strategy of mirrored workers took several GPUs of a machine where TF_CONFIG has no cluster.

    That of tf.contrib took as many as it was told.
    """
    name = program.file.imports.resolve(own.call.func) or ""
    if not name.startswith("tf.contrib."):
        return True
    told = bind(own.call, _CONTRIB[own.target.word], name.rpartition(".")[2], "TFM704").get("num_gpus_per_worker")
    return told is not None and number(told) not in (0, 1)


def replicas_of(
    program: TrainingProgram, own: OwnStrategy, text: Callable[[cst.BaseExpression], str], mesh: str
) -> str:
    """How many replicas a MirroredStrategy has, as source text; the devices of the mesh where it does not say it."""
    made = cst.parse_expression(f"f({arguments_of(program, own, text, [])})")
    assert isinstance(made, cst.Call)
    named = {arg.keyword.value: arg.value for arg in made.args if arg.keyword is not None}
    devices = named.get("devices", made.args[0].value if made.args and made.args[0].keyword is None else None)
    if devices is None:
        return f"{mesh}.size"
    if isinstance(devices, (cst.List, cst.Tuple)) and not any(
        isinstance(e, cst.StarredElement) for e in devices.elements
    ):
        return str(len(devices.elements))
    code = cst.Module([]).code_for_node(devices)
    return f"len({code})"


def _gpus(value: cst.BaseExpression, text: Callable[[cst.BaseExpression], str]) -> str:
    """The devices that `num_gpus` stood for: none is the CPU."""
    count = number(value)
    if count is None:
        return f'[f"/gpu:{{i}}" for i in range({text(value)})] or ["/cpu:0"]'
    names = [f'"/gpu:{i}"' for i in range(int(count))] or ['"/cpu:0"']
    return f"[{', '.join(names)}]"


def is_main_guard(node: cst.CSTNode) -> bool:
    """Whether a statement is `if __name__ == "__main__":` alone, which chooses nothing."""
    test = node.test if isinstance(node, cst.If) and node.orelse is None else None
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return False
    sides = (test.left, test.comparisons[0].comparator)
    names = [one for one in sides if isinstance(one, cst.Name) and one.value == "__name__"]
    return (
        isinstance(test.comparisons[0].operator, cst.Equal)
        and len(names) == 1
        and any(string(one) == "__main__" for one in sides)
    )


class _Lines(cst.CSTVisitor):
    """The lines `name = call(...)` of a file; `plain` says that nothing else gives the name a value."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.found: list[tuple[cst.SimpleStatementLine, cst.Call]] = []
        self.plain = True
        self._around: list[cst.CSTNode] = []

    def visit_If(self, node: cst.If) -> None:
        if not is_main_guard(node):
            self._around.append(node)

    def visit_For(self, node: cst.For) -> None:
        self._around.append(node)

    def visit_While(self, node: cst.While) -> None:
        self._around.append(node)

    def visit_Try(self, node: cst.Try) -> None:
        self._around.append(node)

    def _leave(self, node: cst.CSTNode) -> None:
        if self._around and self._around[-1] is node:
            self._around.pop()

    def leave_If(self, original_node: cst.If) -> None:
        self._leave(original_node)

    def leave_For(self, original_node: cst.For) -> None:
        self._leave(original_node)

    def leave_While(self, original_node: cst.While) -> None:
        self._leave(original_node)

    def leave_Try(self, original_node: cst.Try) -> None:
        self._leave(original_node)

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> None:
        for small in node.body:
            targets: Sequence[cst.CSTNode] = ()
            if isinstance(small, cst.Assign):
                targets = [t.target for t in small.targets]
                own = any(isinstance(t, cst.Name) and t.value == self.name for t in targets)
                if own and len(targets) == len(node.body) == 1 and isinstance(small.value, cst.Call):
                    self.found.append((node, small.value))
                    self.plain = self.plain and not self._around
                    continue
            elif isinstance(small, (cst.AugAssign, cst.AnnAssign)):
                targets = [small.target]
            if any(n.value == self.name for t in targets for n in name_nodes(t)):
                self.plain = False

    def visit_Param(self, node: cst.Param) -> None:
        self.plain = self.plain and node.name.value != self.name
