"""How many steps `fit` makes in one execution, where nobody can tell the difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import libcst as cst

from migrator.findings import Severity
from migrator.names.bindings import Binding, Form, changes_in
from migrator.program.calls import is_none, number
from migrator.program.parsed import ParsedFile, Project
from migrator.program.scopes import returns_in
from migrator.program.training import Arguments, TrainingProgram
from migrator.rules.arrays import is_array_input
from migrator.rules.endless import never_end
from migrator.rules.rule import Rule

RULES = (
    Rule(
        "TFM725",
        "several steps per execution",
        Severity.REVIEW,
        """
`fit` spends 0.5 to 1 millisecond of Python on every step, an Estimator less: small models would train at half the
speed of the original. `compile` is therefore given `steps_per_execution=20`: 20 steps are one call of the train
function (0.2 milliseconds of CPU for a step, where 0.9 were; measured with tf_keras 2.21). The steps are the same ones,
the last execution is shorter where 20 does not divide them, and weights, counted steps and reported losses are equal to
the last bit. Callbacks that you give to `fit` are called after every 20th step only.

It is written where all of this holds:

- the program trains by `fit`, on one device, on mirrored replicas, in central storage or on mirrored workers (with two
  of them 1 and 20 gave the same bits), and no hook of it has become a callback. On Keras 3, on one device only: `fit`
  makes whole executions there where it gets a number of steps (120 for 113, measured with 3.15), so that it gets so
  many batches instead, and the period of train_and_evaluate has to be a multiple of 20.
- on parameter servers an execution is what the coordinator gives to one worker, which reads and writes the variables
  in each of its steps as before (with one worker 1 and 20 gave the same bits); the others wait for the last one at
  the end of an epoch, and it is made again after a failure. It has 10 steps at most, and there are 20 executions in an
  epoch at least, as far as there are 20 steps in them (5 steps where the program does not say how many there are):
  `steps_per_execution=10 if "ps" in resolver.cluster_spec().jobs else 20`.
- it makes 100 steps or more, or their number is not known before it runs
- a checkpoint comes between two executions: where `train` is called, `save_checkpoints_steps` is a multiple of 20
- every batch counts as a step
- the number of batches is known of every dataset that it trains on or evaluates: slices of arrays (or a range) that
  are shuffled, mapped, batched, repeated or cut, and whatever a `repeat()` makes endless before that. Of files,
  generators, and after `filter` or `flat_map` it is not, and tf_keras refuses those ("Could not infer the size of the
  data"). Where you know the number, give `steps_per_execution=20` to `compile`, `steps_per_epoch` to `fit` and `steps`
  to `evaluate`.

A program that may run on a cluster gets a function `set_train_function`, which gives `fit` its train function. On
parameter servers the steps of an execution are written out one after the other in a graph: in a loop, which Keras
makes, all servers tell each other of every round, and that takes longer than an Estimator took. Ten steps are traced
ten times: for a network that takes minutes to trace, give fewer. What `fit` shows of the loss and the metrics is
computed once for an execution: with the train function of Keras, mirrored workers exchange it in every step, and
workers read it from the servers. See *How fast the new program is*.
""",
    ),
)

#: The period in which an Estimator logs (`log_step_count_steps`, 100) is a multiple of it; 100 gains nothing more
#: (measured: 0.18 to 0.29 milliseconds of CPU for a step with 20, 0.16 to 0.23 with 100).
STEPS_OF_EXECUTION = 20
#: On parameter servers the workers wait for the last execution of an epoch: for a twentieth of it at most.
_EXECUTIONS_OF_EPOCH = 20
#: There each step is traced for itself; 20 at a time gain little more (measured: 6 milliseconds of CPU for a step with
#: 10, 5.5 with 20, and 7.5 with 5, which is what comes where the steps of an epoch are not known).
_STEPS_ON_SERVERS = 10
_STEPS_OF_UNKNOWN = 5
#: A training of fewer steps is over too soon to gain anything.
_WORTH = 100

_SOURCES = (
    "tf.data.Dataset.from_tensor_slices",
    "tf.data.Dataset.from_tensors",
    "tf.data.Dataset.range",
)
_KEEP_SIZE = (
    *("batch", "cache", "enumerate", "map", "padded_batch", "prefetch", "repeat", "shard", "shuffle", "skip", "take"),
    *("get_next", "make_initializable_iterator", "make_one_shot_iterator", "with_options"),
)
_APPLIED = tuple(
    f"tf.{module}.{name}"
    for module in ("data.experimental", "contrib.data")
    for name in ("map_and_batch", "shuffle_and_repeat")
)


def steps_of_execution(project: Project, program: TrainingProgram) -> int:
    """How many steps `fit` may make in one execution on one device: 1 where somebody might see it, or gain nothing."""
    trainings = program.trainings
    calls = [*trainings, *program.evaluations]
    if program.model.ready or program.lent or not trainings:
        return 1
    if any(hooks.callbacks is not None or hooks.own or hooks.made for _, hooks in program.hooks):
        return 1
    if any(not is_none(arguments.get("callbacks")) for arguments in calls):
        return 1
    period = program.config.get("save_checkpoints_steps")
    if period is not None and not is_none(period) and program.train_and_evaluate is None:
        every = program.file.integer(period)  # with train_and_evaluate, a period is an epoch
        if every is None or every % STEPS_OF_EXECUTION:
            return 1
    known = [_steps(program.file, arguments) for arguments in trainings]
    if all(count is not None and count < _WORTH for count in known):
        return 1
    return STEPS_OF_EXECUTION if know_their_sizes(project, program) else 1


def steps_on_servers(project: Project, program: TrainingProgram) -> int:
    """How many steps `fit` may give a worker of parameter servers at a time."""
    several = steps_of_execution(project, program)
    epochs = [_epoch(program, arguments) for arguments in program.trainings]
    most = [_STEPS_OF_UNKNOWN if steps is None else steps // _EXECUTIONS_OF_EPOCH for steps in epochs]
    return max(1, min([several, _STEPS_ON_SERVERS, *most]))


def _epoch(program: TrainingProgram, arguments: Arguments) -> int | None:
    """The steps of an epoch, which ends where a checkpoint comes; None where they are not written down."""
    steps = _steps(program.file, arguments)
    period = program.config.get("save_checkpoints_steps")
    every = program.file.integer(period) if program.train_and_evaluate is not None else None
    return steps if not every or steps is None or steps % every else every


def epochs_are_executions(program: TrainingProgram) -> bool:
    """Whether each epoch of a period is made of whole executions, and so is the training: else `fit` of Keras 3, which
    makes whole ones only where it is told the steps, would make more.
    """
    both = program.train_and_evaluate
    period = program.config.get("save_checkpoints_steps")
    if both is None or period is None or is_none(period):
        return True  # `fit` gets so much data as it shall make steps
    every, steps = program.file.integer(period), program.file.integer(both.train.get("max_steps"))
    if not every or steps is None:
        return False
    return every % STEPS_OF_EXECUTION == 0 and steps % every == 0


def may_end(project: Project, program: TrainingProgram) -> bool:
    """Whether the data of a training may have an end."""
    return any(not never_end(project, program, one.get("input_fn"), "train") for one in program.trainings)


def ends_early(project: Project, program: TrainingProgram) -> bool:
    """Whether the data of a training may end before the steps that it is told."""
    return any(
        not never_end(project, program, one.get("input_fn"), "train")
        for one in program.trainings
        if not all(is_none(one.get(name)) for name in ("steps", "max_steps"))
    )


def trains_to_an_unknown_end(project: Project, program: TrainingProgram) -> bool:
    """Whether a training may look for a batch behind the last: its dataset does not know how many there are."""
    calls = [one for one in program.trainings if not never_end(project, program, one.get("input_fn"), "train")]
    return not _know_sizes(project, program, calls)


def know_their_sizes(project: Project, program: TrainingProgram) -> bool:
    """Whether every dataset that a program trains on or evaluates knows the number of its batches, or has no end."""
    return _know_sizes(project, program, [*program.trainings, *program.evaluations])


def _know_sizes(project: Project, program: TrainingProgram, calls: Sequence[Arguments]) -> bool:
    sizes = _Sizes(project, program.file, program.scope)
    return all(sizes.of_input(arguments.get("input_fn")) for arguments in calls)


def _steps(file: ParsedFile, arguments: Mapping[str, cst.BaseExpression]) -> int | None:
    """The steps of a training, where they are written down."""
    for name in ("steps", "max_steps"):
        count = file.integer(arguments.get(name))
        if count is not None:
            return count
    return None


@dataclass
class _Sizes:
    """Which datasets of a driver know the number of their batches."""

    project: Project
    file: ParsedFile
    scope: cst.CSTNode
    seen: set[cst.CSTNode] = field(default_factory=set)

    def of_input(self, node: cst.BaseExpression | None) -> bool:
        """Whether an expression is an input function whose dataset knows it."""
        if isinstance(node, cst.Lambda):
            return self._known(self.file, self.scope, node.body)
        if isinstance(node, cst.Call):
            name = self.file.imports.resolve(node.func)
            if name == "functools.partial" and node.args:
                return self.of_input(node.args[0].value)
            maker = self.project.function(self.file, node.func)
            return is_array_input(name) or (maker is not None and self._of_maker(*maker))
        if isinstance(node, cst.Name):
            given = given_in(self.scope, node.value)
            given = given or [self.file.constants.get(node.value)]
            if given != [None]:
                return len(given) == 1 and self._is_input(given[0])
        found = None if node is None else self.project.function(self.file, node)
        return found is not None and self._of_function(*found)

    def _is_input(self, given: cst.CSTNode | None) -> bool:
        if isinstance(given, cst.FunctionDef):
            return self._of_function(self.file, given)
        return isinstance(given, (cst.Lambda, cst.Call)) and self.of_input(given)

    def _of_maker(self, file: ParsedFile, function: cst.FunctionDef) -> bool:
        """Whether a function returns nothing but input functions of its own whose dataset knows it."""
        returns = returns_in(function.body)
        made = [given_in(function, r.value.value) if isinstance(r.value, cst.Name) else [] for r in returns]
        inner = [one[0] if len(one) == 1 else None for one in made]
        return bool(inner) and all(isinstance(one, cst.FunctionDef) and self._of_function(file, one) for one in inner)

    def _of_function(self, file: ParsedFile, function: cst.FunctionDef) -> bool:
        if function in self.seen:
            return False
        self.seen.add(function)
        returns = returns_in(function.body)
        known = bool(returns) and all(self._known(file, function, r.value) for r in returns)
        self.seen.discard(function)
        return known

    def _known(
        self, file: ParsedFile, scope: cst.CSTNode, node: cst.BaseExpression | None, names: frozenset[str] = frozenset()
    ) -> bool:
        """Whether an expression is a dataset that knows it; `names` are looked at already."""
        if isinstance(node, cst.IfExp):
            return all(self._known(file, scope, one, names) for one in (node.body, node.orelse))
        if isinstance(node, cst.Tuple):  # what an iterator gives
            return all(self._known(file, scope, one.value, names) for one in node.elements)
        if isinstance(node, cst.Name):
            if node.value in names:
                return True
            given = given_in(scope, node.value)
            names |= {node.value}
            return bool(given) and all(
                isinstance(one, cst.BaseExpression) and self._known(file, scope, one, names) for one in given
            )
        if not isinstance(node, cst.Call):
            return False
        name = file.imports.resolve(node.func)
        if name in _SOURCES:
            return True
        if name == "tf.data.Dataset.zip" and len(node.args) == 1 and isinstance(node.args[0].value, cst.Tuple):
            return all(self._known(file, scope, one.value, names) for one in node.args[0].value.elements)
        if name is None and isinstance(node.func, cst.Attribute):
            if node.func.attr.value == "repeat" and _is_endless(node):
                return True  # whatever is repeated: TensorFlow calls the size of it infinite
            applied = _applied(file, node) in _APPLIED
            return (applied or node.func.attr.value in _KEEP_SIZE) and self._known(file, scope, node.func.value, names)
        if isinstance(node.func, cst.Name):
            inner = given_in(scope, node.func.value)
            if inner:
                return isinstance(inner[0], cst.FunctionDef) and len(inner) == 1 and self._of_function(file, inner[0])
        found = self.project.function(file, node.func)
        return found is not None and self._of_function(*found)


def _applied(file: ParsedFile, call: cst.Call) -> str | None:
    """The name of the transformation in `dataset.apply(transformation(...))`."""
    assert isinstance(call.func, cst.Attribute)
    made = call.args[0].value if call.func.attr.value == "apply" and len(call.args) == 1 else None
    return file.imports.resolve(made.func) if isinstance(made, cst.Call) else None


def _is_endless(call: cst.Call) -> bool:
    """Whether a `repeat` is not told how often."""
    return not call.args or (len(call.args) == 1 and is_none(call.args[0].value)) or number(call.args[0].value) == -1


def given_in(scope: cst.CSTNode, name: str) -> list[cst.CSTNode | None]:
    """All that a name is given in a scope: values, functions, or None where it is something else."""
    return [_given(binding) for binding in changes_in(scope) if binding.name == name]


def _given(binding: Binding) -> cst.CSTNode | None:
    if binding.form is Form.FUNCTION:
        return binding.node
    whole = binding.node.value if isinstance(binding.node, cst.Assign) and binding.form is not Form.PART else None
    return whole if isinstance(whole, cst.Call) else None if binding.form is Form.PART else binding.value
