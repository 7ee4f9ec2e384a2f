"""Training by a loop of the program's own, on one device or on the replicas of one process.

A class beside the program holds the steps: the loss of each example (the model is compiled with Reduction.NONE),
averaged by `tf.nn.compute_average_loss` over the examples of all replicas, and `strategy.run` inside a `tf.function`.
Measured: the losses of 1, 2 and 4 replicas on the same global batches agree to 2e-6 over eight steps with momentum, and
with Adam to 2e-7 over twelve (tests/harness/test_recording_loops.py, guides.md §2.4).
"""

from __future__ import annotations

import textwrap

from migrator.emit.layout import call
from migrator.targets.plan import TrainingPlan, primary
from migrator.targets.target import Loop

# What Keras does to labels of one number per example before a loss: a class averages the last axis, which must not be
# that of the examples; a function of the program's own was written for the column that Keras makes.
_OF_CLASS = """
        # A loss averages the last axis, which must not be that of the examples.
        if labels.shape.rank == 1:
            labels = labels[:, tf.newaxis]
        if predictions.shape.rank == 1:
            predictions = predictions[:, tf.newaxis]"""
_OF_FUNCTION = """
        if labels.shape.rank == 1 and predictions.shape.rank == 2:
            labels = labels[:, tf.newaxis]"""
RESTORE = """
        checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
        self.checkpoints = tf.train.CheckpointManager(checkpoint, model_dir, max_to_keep=5)
        latest = os.path.basename(self.checkpoints.latest_checkpoint or "")
        if not latest.startswith("model.ckpt"):  # an Estimator's
            self.checkpoints.restore_or_initialize()"""
_SAVE = """
        self.checkpoints.save(self.model.optimizer.iterations.numpy())"""

_CLASS = '''\
class {name}:
    """Trains and evaluates a model in steps of all replicas of its strategy."""

    def __init__(self, model{model_dir}):
        self.model = model
        self.strategy = model.distribute_strategy
        with self.strategy.scope():
            self.mean_loss = tf.keras.metrics.Mean(name="loss"){restore}

    def batches(self, dataset):
        """Returns an iterator over the batches of a dataset, each divided between the replicas."""
        return iter(self.strategy.experimental_distribute_dataset(dataset))

    def loss(self, labels, predictions):
        """Returns a replica's share of the mean over the examples of all replicas, regularization included."""{labels}
        losses = self.model.loss(labels, predictions)
        tf.debugging.assert_rank_at_least(losses, 1, "the loss has to be that of each example")
        # Counted, because the last batch may be smaller than the others.
        size = tf.distribute.get_replica_context().all_reduce("SUM", tf.size(losses))
        loss = tf.nn.compute_average_loss(losses, global_batch_size=size)
        if self.model.losses:
            loss += tf.nn.scale_regularization_loss(tf.add_n(self.model.losses))
        return loss

    def train_step(self, inputs):
        features, labels = inputs
        with tf.GradientTape() as tape:
            loss = self.loss(labels, self.model(features, training=True))
        variables = self.model.trainable_variables
        self.model.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    def test_step(self, inputs):
        features, labels = inputs
        predictions = self.model(features, training=False)
        # The mean over replicas of what only their sum makes whole.
        self.mean_loss.update_state(self.loss(labels, predictions) * self.strategy.num_replicas_in_sync){update}

    @tf.function
    def distributed_train_step(self, batch):
        return self.strategy.reduce("SUM", self.strategy.run(self.train_step, args=(batch,)), axis=None)

    @tf.function
    def distributed_test_step(self, batch):
        self.strategy.run(self.test_step, args=(batch,))
'''

# How a program drives the steps.
_DRIVING = '''
    def train(self, batches, steps=None):
        """Trains on so many batches (None: all of them)."""
        loss = None
        for batch in itertools.islice(batches, steps):
            loss = self.{train_step}(batch)
        if loss is not None:
            print("step %d: loss = %.6g" % (self.model.optimizer.iterations.numpy(), loss.numpy())){save}

    def evaluate(self, batches):
        """Returns the mean loss of the batches and the metrics, by name."""
        self.mean_loss.reset_state(){reset}
        for batch in batches:
            self.{test_step}(batch)
        return {{metric.name: metric.result().numpy() for metric in {metrics}}}
'''


def training_loop(name: str, indent: str, *, of_class: bool, saves: bool, measures: bool) -> str:
    """The class beside the program, as source text.

    `of_class`: the model's loss is one of Keras' classes, else a function of the program's own. `saves`: the program
    has a model_dir, `measures`: it has metrics.
    """
    steps = ("distributed_train_step", "distributed_test_step")
    restore = textwrap.indent(RESTORE, "    ")
    return filled(_CLASS, restore, steps, name, indent, of_class=of_class, saves=saves, measures=measures)


def filled(
    text: str,
    restore: str,
    steps: tuple[str, str],
    name: str,
    indent: str,
    *,
    of_class: bool,
    saves: bool,
    measures: bool,
) -> str:
    """A class of steps with what a program needs of it; `restore` begins from the checkpoints in a model_dir, `steps`
    are the methods that train and evaluate on a batch.
    """
    text = (text + _DRIVING).format(
        name=name,
        train_step=steps[0],
        test_step=steps[1],
        model_dir=", model_dir" if saves else "",
        restore=restore if saves else "",
        save=_SAVE if saves else "",
        labels=_OF_CLASS if of_class else _OF_FUNCTION,
        update="\n        self.model.compiled_metrics.update_state(labels, predictions)" if measures else "",
        reset="\n        self.model.reset_metrics()" if measures else "",
        metrics="[self.mean_loss, *self.model.metrics]" if measures else "[self.mean_loss]",
    )
    return text if indent == "    " else text.replace("    ", indent)


def set_up(plan: TrainingPlan) -> list[str]:
    """The lines that make the loop of a model."""
    arguments = [plan.model, *([] if plan.model_dir is None else [plan.model_dir])]
    return [call(f"{plan.loop_name} = {plan.loop_class}", arguments, plan.indent, 0)]


def _batches(plan: TrainingPlan, dataset: str) -> str:
    return f"{plan.loop_name}.batches({dataset})"


def train(plan: TrainingPlan, dataset: str, steps: str | None, absolute: bool) -> list[str]:
    """Lines that train on `steps` batches (None: all). Absolute steps count those of before."""
    arguments = [_batches(plan, dataset)]
    if steps is None:
        return [call(f"{plan.loop_name}.train", arguments, plan.indent, 0)]
    if not absolute or not plan.resumes:
        return [call(f"{plan.loop_name}.train", [*arguments, steps], plan.indent, 0)]
    return [
        f"{plan.steps} = {primary(steps)} - {plan.model}.optimizer.iterations.numpy()",
        f"if {plan.steps} > 0:",
        plan.indent + call(f"{plan.loop_name}.train", [*arguments, plan.steps], plan.indent, 1),
    ]


def train_and_evaluate(plan: TrainingPlan) -> str:
    """The statements that replace train_and_evaluate, as source text at depth 0."""
    shown = f"print({evaluate(plan, 0)})"
    if plan.period is None:
        return "\n".join([*train(plan, plan.train_dataset, plan.max_steps, True), shown]) + "\n"
    begin = f"{plan.model}.optimizer.iterations.numpy() // {plan.period}, " if plan.resumes else ""
    lines = [
        f"{plan.batches} = {_batches(plan, plan.train_dataset)}",
        f"for _ in range({begin}{plan.epochs}):",
        f"{plan.indent}{plan.loop_name}.train({plan.batches}, {plan.period})",
        plan.indent + shown,
    ]
    return "\n".join(lines) + "\n"


def evaluate(plan: TrainingPlan, depth: int) -> str:
    """The expression that evaluates after the training."""
    return f"{plan.loop_name}.evaluate({_batches(plan, plan.eval_dataset)})"


LOOP = Loop(
    "custom",
    train_and_evaluate=train_and_evaluate,
    train=train,
    evaluate=evaluate,
    set_up=set_up,
    make=training_loop,
)
