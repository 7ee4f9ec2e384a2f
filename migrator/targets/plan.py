"""Targets (strategies) and loops: what a module of this package says about itself, and what it is told of a program.

A `TrainingPlan` has what the training statements of a migrated program need to know, as source text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import libcst as cst

from migrator.emit.layout import bracket, call
from migrator.rules.generation import KERAS_2, Keras
from migrator.targets.clusters import ONE_EVALUATOR, Clusters


def _nothing(plan: TrainingPlan) -> list[str]:
    return []


def _as_it_is(plan: TrainingPlan, dataset: str, depth: int) -> str:
    return dataset


@dataclass(frozen=True)
class Target:
    """A strategy that a migrated program runs on.

    - `word`: what `--strategy` calls it
    - `classes`: the last part of the names of the TensorFlow 1 classes that ask for it in a RunConfig
    - `reads_cluster`: the program finds its task in TF_CONFIG when it starts, and an evaluator may be one
    - `parameter_servers`: variables may live on parameter servers, which a coordinator drives
    - `mirrored_workers`: workers may train in step, each in a process of its own
    - `replicas`: one process may train several replicas in step
    - `fits_on_keras3`: `Model.fit` works there on TensorFlow 2.21 with Keras 3
    - `loops_on_keras3`: loops of the program's own work there
    - `helper`: a function beside the program that makes the strategy: its source text for a name, a partitioner (None:
      variables are not split) and an indent
    - `set_up`: the lines that make the strategy, which a model is then made in the scope of; none on one device
    - `feed`: the expression that `fit` is given for a dataset of per-replica batches, on a line of this depth
    - `creates`: `feed` gives a function of datasets, for which `fit` must know its steps
    - `counts`: `fit` and `evaluate` are told their steps, of which several may be made in one execution
    - `scope`: what the object is called in whose scope a model is made
    - `helper_name`: what the helper is called
    - `loop`: the only loop that trains there, whatever `--loop` says
    - `mesh`: the devices are a mesh, which the function that makes the model is given
    - `fuses`: optimizers of `tf.keras.optimizers.legacy` run under it
    - `dimensions`, `layouts`: those of the mesh beside the batch's, and what variables are divided over, see
      `dtensor.Layouts`; `by_size` says that these are chosen from what a device has room for
    """

    word: str
    classes: tuple[str, ...] = ()
    reads_cluster: bool = False
    parameter_servers: bool = False
    mirrored_workers: bool = False
    replicas: bool = False
    fits_on_keras3: bool = False
    loops_on_keras3: bool = False
    helper: Callable[[str, str | None, str], str] | None = None
    set_up: Callable[[TrainingPlan], list[str]] = _nothing
    feed: Callable[[TrainingPlan, str, int], str] = _as_it_is
    creates: bool = False
    counts: bool = False
    scope: str = "strategy"
    helper_name: str = "make_strategy"
    loop: Loop | None = None
    mesh: bool = False
    fuses: bool = True
    dimensions: tuple[tuple[str, int], ...] = ()
    layouts: tuple[tuple[str, tuple[str, ...]], ...] = ()
    by_size: bool = False

    @property
    def in_step(self) -> bool:
        """Whether several replicas may train in step: Keras adds up what they compute, an Estimator took the mean."""
        return self.mirrored_workers or self.replicas

    @property
    def per_replica(self) -> bool:
        """Whether one process may train several replicas, each with batches of its own."""
        return self.replicas and self.creates

    @property
    def alone(self) -> bool:
        """Whether this is one device: there is no strategy to make, and no scope."""
        return not self.reads_cluster and not self.replicas and not self.mesh


@dataclass(frozen=True)
class LoopShape:
    """What the class of a loop of the program's own has to do for a program.

    - `of_class`: the model's loss is one of Keras' classes, else a function of the program's own
    - `saves`: the program has a model_dir
    - `measures`: it has metrics
    - `evaluates`: it evaluates
    - `divides`: replicas divide the batches of the input function, so that a step is what it was on one device
    - `draws`: each replica draws whole batches, as those of an Estimator with a strategy do
    - `sized`: where they draw, all datasets know the number of their batches
    - `averages`: replicas that draw have moving averages of their own
    - `on_workers`: the replicas may be those of several processes
    - `on_servers`: a coordinator may give the steps to workers, which draw batches of their own
    - `counts`: every training is told its steps, of which many are made in one call
    - `on_keras3`: it is written for Keras 3
    - `of_batch`: the model computes its loss from whole batches, and keeps the mean of them
    - `measures_itself`: the model updates its metrics itself
    - `may_end`: the data of train_and_evaluate may end before its last period
    - `rates`: whose learning rates a checkpoint leaves as they are, see setup.rates_kept ("": nobody's)
    - `shares_penalties`: where replicas draw, gradients have of what regularizers add the share of one replica
    """

    of_class: bool
    saves: bool
    measures: bool
    evaluates: bool = True
    divides: bool = False
    draws: bool = False
    sized: bool = False
    averages: bool = False
    on_workers: bool = False
    on_servers: bool = False
    counts: bool = False
    on_keras3: bool = False
    of_batch: bool = False
    measures_itself: bool = False
    may_end: bool = False
    rates: str = ""
    shares_penalties: bool = False


@dataclass(frozen=True)
class Loop:
    """How a program trains: by `fit`, or by a loop of its own.

    - `word`: what `--loop` calls it
    - `train_and_evaluate`: the statements that replace `tf.estimator.train_and_evaluate`, as source text at depth 0
    - `train`: the lines that train on a dataset for so many steps (None: all of it); absolute steps count from step 0
    - `evaluate`: the expression that evaluates a dataset, on a line of this depth
    - `set_up`: lines after those that make the model
    - `make`: the class beside the program whose steps these are, which also restores what was saved: its source text
      for a name, an indent and a shape; None where the steps are those of `fit`
    """

    word: str
    train_and_evaluate: Callable[[TrainingPlan], str]
    train: Callable[[TrainingPlan, str, str | None, bool], list[str]]
    evaluate: Callable[[TrainingPlan, int], str]
    set_up: Callable[[TrainingPlan], list[str]] = _nothing
    make: Callable[[str, str, LoopShape], str] | None = None

    @property
    def own(self) -> bool:
        """Whether the steps are those of a class beside the program."""
        return self.make is not None


@dataclass(frozen=True)
class TrainingPlan:
    """The driver of one program. All fields that are not names of the new code are text of the user's expressions.

    `again` says that the model may have trained before: steps counted from the start then leave out those behind it.
    `period` is save_checkpoints_steps where it divides `max_steps`: then every period is one epoch, with a checkpoint
    and an evaluation after it, as the Estimator had; with `uneven` the last one may be shorter. `saves_every` are the
    batches between checkpoints of a training without periods (None: one comes at its end), which the program may turn
    out not to give unless `saves_surely`. `callbacks` are the elements of the list of the training's, and
    `eval_callbacks` those of the evaluation's. `checkpoint` is the name of the newest checkpoint, or on Keras 3 (whose
    own checkpoints of weights cannot be found by their number) that of the manager of checkpoints. `make_strategy` is
    the name of the target's helper, and `devices` what the strategy is given for its devices ("": it finds them), where
    it is not `made` by the program already. `per_replica` is the name of the function (setup.per_replica) that datasets
    for replicas go through, and `averages` that of the callback that makes their moving averages equal ("": there are
    none). `eval_steps` are the batches of an evaluation, where that is told them; with `evaluates_apart` each is one
    batch for every replica. `tpu_flag` is the condition for a TPU (None: always), `tpu_resolver` the arguments of its
    resolver (None: it is there). `loop_name`, `loop_class` and `batches` are names of a loop of the program's own,
    whose replicas `draws` whole batches or divide them, and which makes `steps_per_call` steps in one call (None: what
    is usual). `mesh` is the name of a mesh of devices, and `check_layouts` that of the function that refuses layouts of
    nothing ("": there are no layouts). `counted` is the name of the callback that keeps the number of steps ("": none
    is needed).
    `endless`: steps counted from the start may be None when the program runs, which a loop of the program's own takes
    for all batches. `told_steps`: the training data have no end, so that `fit` is told the steps; `may_end`: those of a
    loop of periods may, before its last one. `replicas` is how many batches a step of a mesh takes. `load` is the
    name of the function that goes on from a checkpoint at the program's learning rate ("": it takes the checkpoint's).
    `result` is the name that what train_and_evaluate answers is given ("": nothing reads it), and `last_evaluation`
    that of the function that finds it where `fit` evaluates. `clusters` is what is asked for clusters. `local` is the
    name of the copy of the model that the coordinator evaluates, and `coordinator` that of the callback which does so
    during a training ("": it does not); `start_servers` is the name of the function that starts a cluster in one
    process ("": none does).
    """

    target: Target
    loop: Loop
    model: str
    resolver: str
    strategy_name: str
    checkpoint: str
    steps: str
    indent: str
    train_dataset: str
    eval_dataset: str
    max_steps: str | None
    period: str | None
    epochs: str | None
    model_dir: str | None
    again: bool = False
    callbacks: tuple[str, ...] = ()
    eval_callbacks: tuple[str, ...] = ()
    keras: Keras = KERAS_2
    make_strategy: str = ""
    devices: str = ""
    made: bool = False
    per_replica: str = ""
    averages: str = ""
    evaluates_apart: bool = False
    eval_steps: str | None = None
    tpu_flag: str | None = None
    tpu_resolver: tuple[str, ...] | None = ()
    loop_name: str = ""
    loop_class: str = ""
    batches: str = ""
    draws: bool = False
    steps_per_call: str | None = None
    saves_every: str | None = None
    mesh: str = ""
    check_layouts: str = ""
    saves_surely: bool = False
    counted: str = ""
    endless: bool = False
    told_steps: bool = False
    uneven: bool = False
    may_end: bool = False
    replicas: str = ""
    load: str = ""
    trains: bool = True
    result: str = ""
    last_evaluation: str = ""
    clusters: Clusters = ONE_EVALUATOR
    local: str = ""
    coordinator: str = ""
    start_servers: str = ""

    @property
    def resumes(self) -> bool:
        """Whether the training may start behind step 0."""
        return self.again or self.model_dir is not None


def primary(text: str) -> str:
    """An expression that `.take(...)` or `- 1` may follow: in parentheses unless it needs none."""
    node = cst.parse_expression(text)
    simple = isinstance(node, (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.Integer))
    return text if simple or node.lpar else f"({text})"


def callbacks_argument(plan: TrainingPlan, name: str, depth: int, more: Sequence[str] = ()) -> list[str]:
    """The argument that gives the training its callbacks, none where it has none.

    One saves the weights and the optimizer under `name` after every epoch, where the program has a model_dir, another
    one after every `saves_every` batches. They come first, as the saver of an Estimator does: a callback that ends the
    training finds the step saved.
    """
    found = without_servers(plan, [*plan.callbacks, *more])
    if plan.averages and plan.keras.number == 2:
        found.append(f"{plan.averages}()")
    if plan.coordinator:
        found.append(_on_coordinator(plan, depth + 2))
    if plan.model_dir is not None:
        found = [*_savers(plan, name, depth), *found]
    if plan.averages and plan.keras.number == 3:
        found = [f"{plan.averages}({plan.model})", *found]  # before what saves them
    if plan.counted:
        found = [*without_servers(plan, [f"{plan.counted}()"]), *found]  # before what saves the number
    return as_argument(found, plan.indent, depth)


def _on_coordinator(plan: TrainingPlan, depth: int) -> str:
    """The callback that evaluates while a cluster waits; without a cluster it does nothing."""
    given = evaluation(replace(plan, model="copy"), depth + 1).strip()
    return call(plan.coordinator, [plan.local, f"lambda copy: {given}"], plan.indent, depth)


def _savers(plan: TrainingPlan, name: str, depth: int) -> list[str]:
    """The callbacks that save checkpoints."""
    every = plan.saves_every
    if plan.keras.checkpoints_by_manager:
        step = f"{plan.model}.optimizer.iterations.numpy()"
        saves = [f"on_epoch_end=lambda epoch, logs: {plan.checkpoint}.save({step})"]
        if every is not None:
            save = f"{plan.checkpoint}.save({step})"
            due = f"(batch + 1) % {primary(every)} == 0"
            due = due if plan.saves_surely else f"{primary(every)} and {due}"
            saves.append(f"on_train_batch_end=lambda batch, logs: {due} and {save}")
        return [call("tf.keras.callbacks.LambdaCallback", saves, plan.indent, depth + 2)]
    arguments = [f'os.path.join({plan.model_dir}, "{name}")', "save_weights_only=True"]
    found = [call("tf.keras.callbacks.ModelCheckpoint", arguments, plan.indent, depth + 2)]
    if every is not None:
        # Without a period, a checkpoint comes when an epoch ends.
        arguments.append(f"save_freq={every}" if plan.saves_surely else f'save_freq={primary(every)} or "epoch"')
        found.append(call("tf.keras.callbacks.ModelCheckpoint", arguments, plan.indent, depth + 2))
    return found


def without_servers(plan: TrainingPlan, callbacks: Sequence[str]) -> list[str]:
    """Callbacks of a training: none on parameter servers, where Keras refuses those that act on batches."""
    if not callbacks or not plan.target.parameter_servers:
        return list(callbacks)
    given = callbacks[0][1:] if len(callbacks) == 1 and callbacks[0].startswith("*") else f"[{', '.join(callbacks)}]"
    return [f'*([] if "ps" in {plan.resolver}.cluster_spec().jobs else {given})']


def as_argument(callbacks: Sequence[str], indent: str, depth: int) -> list[str]:
    """`callbacks=[...]`, or what a single `*name` in it stands for."""
    if not callbacks:
        return []
    if len(callbacks) == 1 and callbacks[0].startswith("*"):
        return [f"callbacks={callbacks[0][1:]}"]
    return [f"callbacks={bracket(callbacks, indent, depth + 1)}"]


def in_periods(plan: TrainingPlan, depth: int, validation: Sequence[str]) -> list[str]:
    """Lines that train to `max_steps` in epochs of one period each; `validation` are the arguments that evaluate then.

    A checkpoint may lie between two periods: one of a training with another period or without any, or of data that
    ended. What is left of that period comes first, so that the others end at `max_steps`.
    """
    done, period = f"{plan.model}.optimizer.iterations.numpy()", plan.period
    fed = plan.target.feed(plan, plan.train_dataset, depth)
    arguments = [fed, f"steps_per_epoch={period}", f"epochs={plan.epochs}"]
    if plan.resumes:
        arguments.append(f"initial_epoch={f'-(-{done} // {period})' if plan.uneven else f'{done} // {period}'}")
    arguments += callbacks_argument(plan, "ckpt-{epoch}", depth, plan.eval_callbacks)
    trained = call(f"{plan.model}.fit", [*arguments, *validation], plan.indent, depth)
    if not plan.resumes:
        return [trained]
    left = f"{period} - {plan.steps} % {period}"
    left = f"min({left}, {primary(str(plan.max_steps))} - {plan.steps})" if plan.uneven else left
    if plan.keras.cuts_executions or plan.target.creates:
        rest = [plan.target.feed(plan, plan.train_dataset, depth + 1), f"steps_per_epoch={left}"]
    else:
        rest = [plan.target.feed(plan, f"{primary(plan.train_dataset)}.take({left})", depth + 1)]
    rest += callbacks_argument(replace(plan, model_dir=None, coordinator=""), "", depth + 1)
    return [
        f"{plan.steps} = {done}",
        f"if {plan.steps} % {period} and {plan.steps} < {plan.max_steps}:  # an earlier run ended between two periods",
        plan.indent + call(f"{plan.model}.fit", rest, plan.indent, depth + 1),
        trained,
    ]


def evaluation(plan: TrainingPlan, depth: int) -> str:
    """The call that evaluates after the training."""
    callbacks = as_argument(plan.eval_callbacks, plan.indent, depth)
    return call(f"{plan.model}.evaluate", [*evaluated(plan, depth), *callbacks], plan.indent, depth)


def answering(plan: TrainingPlan, depth: int) -> str:
    """The call that evaluates after the training, whose result is train_and_evaluate's where something reads that."""
    if not plan.result:
        return evaluation(plan, depth)
    callbacks = as_argument(plan.eval_callbacks, plan.indent, depth)
    arguments = [*evaluated(plan, depth), *callbacks, "return_dict=True"]
    step = f"global_step=int({plan.model}.optimizer.iterations.numpy())"
    metrics = call(f"{plan.model}.evaluate", arguments, plan.indent, depth + 1).rstrip()
    return f"{plan.result} = {call('dict', [metrics, step], plan.indent, depth).rstrip()}, []"


def evaluated(plan: TrainingPlan, depth: int, validation: bool = False) -> list[str]:
    """The arguments for the data of an evaluation, or of the `validation` of a training."""
    names = ("validation_data=", "validation_steps=") if validation else ("", "steps=")
    if not plan.evaluates_apart:
        steps = [] if plan.eval_steps is None else [f"{names[1]}{plan.eval_steps}"]
        return [f"{names[0]}{plan.eval_dataset}", *steps]
    fed = plan.target.feed(plan, plan.eval_dataset, depth)
    return [f"{names[0]}{fed}", f"{names[1]}{plan.eval_steps or -1}"]


#: What is said of a checkpoint that Keras cannot load, behind its path.
OF_ESTIMATORS = "is an Estimator's checkpoint: `tf-migrate checkpoint` carries it over."


def of_tensorflow1(plan: TrainingPlan) -> str:
    """Whether a checkpoint is one of an Estimator, which Keras cannot load: it is called model.ckpt-<step>."""
    return f'os.path.basename({plan.checkpoint}).startswith("model.ckpt")'


def steps_of_data(plan: TrainingPlan) -> list[str]:
    """Lines that count the steps of a training on all data, which each worker of parameter servers passes over once."""
    lines = [f"{plan.steps} = sum(1 for _ in {plan.train_dataset})"]
    if plan.target.parameter_servers:
        spec = f"{plan.resolver}.cluster_spec()"
        lines.append(f'if "ps" in {spec}.jobs:' if plan.target.mirrored_workers else f"if {spec}.jobs:")
        lines.append(f'{plan.indent}{plan.steps} *= {spec}.num_tasks("worker")  # each passes over the data once')
    return lines


def refused(plan: TrainingPlan, checkpoint: str) -> str:
    """The line that ends a program which trains nothing, where it would predict with weights that nobody trained."""
    return f'{plan.indent}raise ValueError(f"{{{checkpoint}}} {OF_ESTIMATORS}")'


def restore(plan: TrainingPlan) -> list[str]:
    """Lines that go on from the newest checkpoint, as an Estimator with a model_dir does.

    A program that trains nothing ends where that is one of an Estimator, which Keras cannot load.
    """
    given = f"{plan.model}, {plan.checkpoint}"
    if plan.keras.checkpoints_by_manager:
        tracked = f"tf.train.Checkpoint(model={plan.model}, optimizer={plan.model}.optimizer)"
        arguments = [tracked, f"{plan.model_dir}", "max_to_keep=None"]
        estimators = f'os.path.basename({plan.checkpoint}.latest_checkpoint or "").startswith("model.ckpt")'
        build = [f"{plan.model}.optimizer.build({plan.model}.trainable_variables)"]
        if plan.target.replicas:
            build = [f"with {plan.strategy_name}.scope():", plan.indent + build[0]]
        return [
            call(f"{plan.checkpoint} = tf.train.CheckpointManager", arguments, plan.indent, 0),
            *build,
            *(
                [f"if not {estimators}:  # an Estimator's"]
                if plan.trains
                else [f"if {estimators}:", refused(plan, f"{plan.checkpoint}.latest_checkpoint"), "else:"]
            ),
            plan.indent + (f"{plan.load}({given})" if plan.load else f"{plan.checkpoint}.restore_or_initialize()"),
        ]
    if not plan.trains:
        return [
            f"{plan.checkpoint} = tf.train.latest_checkpoint({plan.model_dir})",
            f"if {plan.checkpoint} and {of_tensorflow1(plan)}:",
            refused(plan, plan.checkpoint),
            f"if {plan.checkpoint}:",
            f"{plan.indent}{plan.model}.load_weights({plan.checkpoint})",
        ]
    return [
        f"{plan.checkpoint} = tf.train.latest_checkpoint({plan.model_dir})",
        f"if {plan.checkpoint} and not {of_tensorflow1(plan)}:  # an Estimator's",
        plan.indent + (f"{plan.load}({given})" if plan.load else f"{plan.model}.load_weights({plan.checkpoint})"),
    ]
