"""Training by a loop of the program's own, on one device or on the replicas of one process.

A class beside the program holds the steps: the loss of each example (the model is compiled with Reduction.NONE),
averaged by `tf.nn.compute_average_loss` over the examples of all replicas, and `strategy.run` inside a `tf.function`.
Where a training is told its steps, many of them are made in one call (`tf.range` in a `tf.function`): nothing of such a
program watches single steps, since hooks go to `fit` only. Measured on TensorFlow 2.21, a dense network of 64 units and
batches of 32, processor time per step: 0.59 ms step by step, 0.16 ms in calls of 100; with two replicas 2.6 and 1.1 ms.

Measured: the losses of 1, 2 and 4 replicas on the same global batches agree to 2e-6 over eight steps with momentum, and
with Adam to 2e-7 over twelve (tests/harness/test_recording_loops.py, guides.md §2.4).
"""

from __future__ import annotations

from migrator.emit.layout import call
from migrator.targets import scheduled, setup
from migrator.targets.fit_on_cluster import OF_COORDINATOR
from migrator.targets.plan import Loop, LoopShape, TrainingPlan, of_tensorflow1, primary, steps_of_data

# After as many steps an Estimator wrote its loss down, where it was not told otherwise.
STEPS_PER_CALL = 100

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
        if not latest.startswith("model.ckpt"):  # an Estimator's{rate}
            self.checkpoints.restore_or_initialize(){keep_rate}"""
_RESTORE_ON_WORKERS = """
        checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
        latest = tf.train.latest_checkpoint(model_dir)
        if latest and not os.path.basename(latest).startswith("model.ckpt"):  # an Estimator's{rate}
            checkpoint.restore(latest){keep_rate}
        # All workers save, since some variables are read from all of them; what the chief writes stays.
        folder = model_dir if self.strategy.extended.should_checkpoint else tempfile.mkdtemp()
        self.checkpoints = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=5)"""
_SAVE = """
        self.checkpoints.save(self.model.optimizer.iterations.numpy())"""
# Each replica moves averages of its own; a checkpoint of an Estimator has their mean, which its evaluation reads.
_AVERAGE = """
        for weight in self.model.non_trainable_weights:
            weight.assign(weight.read_value())  # the mean of the replicas' moving averages, as an Estimator saves it"""

_HEAD = '''\
class {name}:
    """{what} a model in steps of {of_what}."""

    def __init__(self, model{model_dir}{many}):
        self.model = model
        self.strategy = model.distribute_strategy{keep_many}{coordinator}{made}{restore}
'''
_SCOPE = """
        with self.strategy.scope():"""
_MEAN_LOSS = """
            self.mean_loss = tf.keras.metrics.Mean(name="loss")"""

# The slots of Keras 3 have to be there before a step runs in a tf.function, and before they are restored.
_BUILD = """
            model.optimizer.build(model.trainable_variables)"""
_APPLY = "self.model.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))"
_APPLY_ON_KERAS3 = "self.model.optimizer.apply(tape.gradient(loss, variables), variables)"
_UPDATE = """
        self.model.compiled_metrics.update_state(labels, predictions)"""
_UPDATE_ITSELF = """
        self.model.compute_metrics(features, labels, predictions, None)"""
_UPDATE_ON_KERAS3 = """
        self.model.compute_metrics(features, labels, predictions)"""

_BATCHES = '''
    def batches(self, dataset):
        """Returns an iterator over the batches of a dataset, each divided between the replicas."""
        return iter(self.strategy.experimental_distribute_dataset(dataset))
'''
_BATCHES_OF_WORKERS = '''
    def batches(self, dataset):
        """Returns an iterator over the batches of a dataset, each divided between the replicas of all workers."""
        options = tf.data.Options()
        # Not by files: workers would make up other batches than those of the dataset.
        options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
        return iter(self.strategy.experimental_distribute_dataset(dataset.with_options(options)))
'''
_OWN_BATCHES_OF_WORKERS = '''
    def own_batches(self, make_dataset):
        """Returns an iterator that draws whole batches for every worker, as an Estimator's strategy does."""
        return iter(self.strategy.distribute_datasets_from_function(make_dataset))
'''
# See setup.per_replica and setup.whole_rounds.
_OWN_BATCHES = '''
    def own_batches(self, make_dataset):
        """Returns an iterator that draws whole batches for every replica, until there is not one for each of them."""

{whole_rounds}

        return iter(self.strategy.distribute_datasets_from_function(whole_rounds))
'''

_LOSS = '''
    def loss(self, labels, predictions{divided}):
        """Returns {whose}, regularization included."""{labels}
        losses = self.model.loss(labels, predictions){mean}
        if self.model.losses:{penalty}
        return loss
'''
_PENALTY = """
            loss += tf.nn.scale_regularization_loss(tf.add_n(self.model.losses))"""
# Under an Estimator's strategy the loss of every replica has all terms, but they are of the variables of the first,
# whose gradients alone have them.
_SHARE_OF_PENALTY = """
            penalty = tf.add_n(self.model.losses)
            # As under an Estimator's strategy: all of it in the loss, the share of one replica in the gradients.
            share = penalty / self.strategy.num_replicas_in_sync
            loss += tf.nn.scale_regularization_loss(share + tf.stop_gradient(penalty - share))"""
_EITHER_PENALTY = """
            penalty = tf.add_n(self.model.losses)
            if not divided:  # as under an Estimator's strategy: all of it in the loss, a share in the gradients
                share = penalty / self.strategy.num_replicas_in_sync
                penalty = share + tf.stop_gradient(penalty - share)
            loss += tf.nn.scale_regularization_loss(penalty)"""
_DIVIDED_MEAN = """
        tf.debugging.assert_rank_at_least(losses, 1, "the loss has to be that of each example")
        # Counted, because the last batch may be smaller than the others.
        size = tf.distribute.get_replica_context().all_reduce("SUM", tf.size(losses))
        loss = tf.nn.compute_average_loss(losses, global_batch_size=size)"""
_OWN_MEAN = """
        loss = tf.reduce_mean(losses) / self.strategy.num_replicas_in_sync"""
_EITHER_MEAN = """
        if divided:
            tf.debugging.assert_rank_at_least(losses, 1, "the loss has to be that of each example")
            size = tf.distribute.get_replica_context().all_reduce("SUM", tf.size(losses))
            loss = tf.nn.compute_average_loss(losses, global_batch_size=size)
        else:
            loss = tf.reduce_mean(losses) / self.strategy.num_replicas_in_sync"""
_MEAN = """
        loss = tf.reduce_mean(losses)"""

_TRAIN_STEP = """
    def train_step(self, inputs):
        features, labels = inputs
        with tf.GradientTape() as tape:
            loss = self.loss(labels, self.model(features, training=True))
        variables = self.model.trainable_variables
        {apply}
        return loss
"""
_TEST_STEP = """
    def test_step(self, inputs):
        features, labels = inputs
        predictions = self.model(features, training=False)
        self.mean_loss.update_state(self.loss(labels, predictions)){update}
"""
_TEST_STEP_OF_REPLICAS = """
    def test_step(self, inputs):
        features, labels = inputs
        predictions = self.model(features, training=False)
        # The mean over replicas of what only their sum makes whole.
        self.mean_loss.update_state(self.loss(labels, predictions{of}) * self.strategy.num_replicas_in_sync){update}
"""
_DISTRIBUTED_TRAIN_STEP = """
    @tf.function
    def distributed_train_step(self, batch):
        return self.strategy.reduce("SUM", self.strategy.run(self.train_step, args=(batch,)), axis=None)
"""
_DISTRIBUTED_TEST_STEP = """
    @tf.function
    def distributed_test_step(self, batch):
        self.strategy.run(self.test_step, args=(batch,))
"""

# Not `next(batches)`: where that finds no more batches, the optimizer has counted the step already (measured on 2.21).
_TRAIN_STEPS = '''
    @tf.function
    def train_steps(self, batches, steps):
        """Trains on so many batches, if there are; returns how many there were, and the loss of the last one."""
        done, loss = 0, 0.0
        for _ in tf.range(steps):
            batch = batches.get_next_as_optional()
            if not batch.has_value():
                break
            losses = self.strategy.run(self.train_step, args=(batch.get_value(),))
            loss = tf.cast(self.strategy.reduce("SUM", losses, axis=None), tf.float32)
            done += 1
        return done, loss
'''

# How a program drives the steps.
_TRAIN_MANY = '''
    def train(self, batches, steps):
        """Trains on so many batches, many of them in one call, or until there are no more{returns}."""
        done = count = 0
        while done < steps and done == count:
            count = min(count + self.steps_per_call, steps)
            made, loss = self.train_steps(batches, tf.constant(count - done))
            done += made.numpy()
            if made:
                print("step %d: loss = %.6g" % (self.model.optimizer.iterations.numpy(), loss.numpy())){end}
'''
_TRAIN = '''
    def train(self, batches, steps=None):
        """Trains on so many batches (None: all of them){returns}."""
        loss = None
        for batch in itertools.islice(batches, steps):
            loss = self.{train_step}(batch)
        if loss is not None:
            print("step %d: loss = %.6g" % (self.model.optimizer.iterations.numpy(), loss.numpy())){end}
'''
_EVALUATE = '''
    def evaluate(self, batches):
        """Returns the mean loss of the batches and the metrics, by name."""
        {reset}
        for batch in batches:
            self.{test_step}(batch)
        {results}
'''

_RESULTS = "return {metric.name: metric.result().numpy() for metric in %s}"
_RESULTS_ON_KERAS3 = """\
results = dict(self.model.get_metrics_result(), loss=self.mean_loss.result())
        return {name: value.numpy() for name, value in results.items()}"""


def training_loop(name: str, indent: str, shape: LoopShape) -> str:
    """The class beside the program, as source text."""
    either = shape.draws and shape.evaluates and not shape.on_workers and not shape.on_servers
    parts = [_HEAD]
    if shape.on_servers:
        parts += [scheduled.BATCHES if shape.evaluates else "", scheduled.OWN_BATCHES]
    elif shape.evaluates or not shape.draws:
        parts.append(_BATCHES_OF_WORKERS if shape.on_workers and shape.divides else _BATCHES)
    if shape.draws and shape.on_workers and not shape.on_servers:
        parts.append(_OWN_BATCHES_OF_WORKERS)
    elif shape.draws and not shape.on_servers:
        rounds = setup.whole_rounds("make_dataset(context)", shape.sized, 2)
        parts.append(_OWN_BATCHES.format(whole_rounds=rounds))
    parts += [_LOSS, _TRAIN_STEP]
    if shape.evaluates:
        parts.append(_TEST_STEP_OF_REPLICAS if shape.divides or either else _TEST_STEP)
    parts.append(scheduled.STEPS if shape.on_servers else _TRAIN_STEPS if shape.counts else _DISTRIBUTED_TRAIN_STEP)
    if shape.evaluates:
        parts.append(_DISTRIBUTED_TEST_STEP)
    whose = "a replica's share of the mean over the examples of all replicas"
    mean = _DIVIDED_MEAN
    if either:
        whose, mean = (
            "a replica's share of the mean over the replicas, or over the examples that they divide",
            _EITHER_MEAN,
        )
    elif shape.draws:
        whose, mean = "a replica's share of the mean over the replicas", _OWN_MEAN
    elif not shape.divides:
        whose, mean = "the mean over the examples", _MEAN
    penalty = _PENALTY
    if shape.shares_penalties:
        penalty = _EITHER_PENALTY if either else _SHARE_OF_PENALTY
    return filled(
        "".join(parts),
        _RESTORE_ON_WORKERS if shape.on_workers else RESTORE,
        ("distributed_train_step", "distributed_test_step"),
        name,
        indent,
        shape,
        whose=whose,
        mean=mean,
        penalty=penalty,
        divided=", divided=False" if either else "",
        of=", divided=True" if either else "",
    )


def filled(
    text: str, restore: str, steps: tuple[str, str], name: str, indent: str, shape: LoopShape, **further: str
) -> str:
    """A class of steps with what a program needs of it; `restore` begins from the checkpoints in a model_dir, `steps`
    are the methods that train and evaluate on a batch, `further` are texts for fields of the class.
    """
    made = (_MEAN_LOSS if shape.evaluates else "") + (_BUILD if shape.on_keras3 else "")
    train = scheduled.TRAIN if shape.on_servers else _TRAIN_MANY if shape.counts else _TRAIN
    metrics = "[self.mean_loss, *self.model.metrics]" if shape.measures else "[self.mean_loss]"
    metrics = "self.model.metrics" if shape.of_batch else metrics
    reset = [] if shape.of_batch else ["self.mean_loss.reset_state()"]
    reset += ["self.model.reset_metrics()"] if shape.measures or shape.of_batch else []
    many = scheduled.STEPS_PER_CALL if shape.on_servers else STEPS_PER_CALL if shape.counts else 0
    average, save = _AVERAGE if shape.averages else "", _SAVE if shape.saves else ""
    trained = "\n        return done > 0" if shape.counts else "\n        return loss is not None"
    text = (text + train + (_EVALUATE if shape.evaluates else "")).format(
        name=name,
        what="Trains and evaluates" if shape.evaluates else "Trains",
        of_what="the workers of its strategy" if shape.on_servers else "all replicas of its strategy",
        train_step=steps[0],
        test_step=steps[1],
        model_dir=", model_dir" if shape.saves else "",
        many=f", steps_per_call={many}" if many else "",
        keep_many="\n        self.steps_per_call = steps_per_call" if many else "",
        coordinator=scheduled.COORDINATOR if shape.on_servers else "",
        made=_SCOPE + made if made else "",
        restore=_at_rate(restore, shape) if shape.saves else "",
        average=average,
        save=save,
        end=average + save + (trained if shape.may_end else ""),
        labels=labels_of(shape),
        apply=_APPLY_ON_KERAS3 if shape.on_keras3 else _APPLY,
        update=_update(shape),
        reset="\n        ".join(reset),
        returns="; returns whether there were any" if shape.may_end else "",
        results=_RESULTS_ON_KERAS3 if shape.on_keras3 and shape.measures else _RESULTS % metrics,
        **further,
    )
    return text if indent == "    " else text.replace("    ", indent)


def _at_rate(restore: str, shape: LoopShape) -> str:
    """The lines that restore a checkpoint, and keep the learning rate of the program; see setup.load_checkpoint."""
    if not shape.rates:
        return restore.format(rate="", keep_rate="")
    before, after = setup.rates_kept("model", shape.rates)
    rate, keep = ("".join(f"\n            {line}" for line in lines) for lines in (before, after))
    return restore.format(rate=rate, keep_rate=keep)


def labels_of(shape: LoopShape) -> str:
    """The lines that give labels the axes that the loss of a model wants."""
    return _OF_CLASS if shape.of_class else _OF_FUNCTION


def _update(shape: LoopShape) -> str:
    """The line that updates the metrics of a model."""
    if not shape.measures:
        return ""
    if shape.on_keras3:
        return _UPDATE_ON_KERAS3
    return _UPDATE_ITSELF if shape.measures_itself else _UPDATE


def set_up(plan: TrainingPlan) -> list[str]:
    """The lines that make the loop of a model."""
    arguments = [plan.model, *([] if plan.model_dir is None else [plan.model_dir])]
    if plan.steps_per_call is not None:
        arguments.append(f"steps_per_call={plan.steps_per_call}")
    return [call(f"{plan.loop_name} = {plan.loop_class}", arguments, plan.indent, 0)]


def _batches(plan: TrainingPlan, dataset: str) -> str:
    """An iterator over the batches of a training."""
    if not plan.draws:
        return f"{plan.loop_name}.batches({dataset})"
    if plan.target.mesh:
        return call(f"{plan.loop_name}.rounds", [dataset, plan.replicas], plan.indent, 0)
    return f"{plan.loop_name}.own_batches(lambda context: {dataset})"


def train(plan: TrainingPlan, dataset: str, steps: str | None, absolute: bool) -> list[str]:
    """Lines that train on `steps` batches (None: all). Absolute steps count those of before."""
    arguments = [_batches(plan, dataset)]
    if steps is None and plan.target.parameter_servers:  # one worker may make more of the steps than another
        again = _batches(plan, f"{primary(dataset)}.repeat()")
        return [*steps_of_data(plan), call(f"{plan.loop_name}.train", [again, plan.steps], plan.indent, 0)]
    if steps is None:
        return [call(f"{plan.loop_name}.train", arguments, plan.indent, 0)]
    if not absolute or not plan.resumes:
        return [call(f"{plan.loop_name}.train", [*arguments, steps], plan.indent, 0)]
    if plan.endless:
        return [
            f"{plan.steps} = {steps}",
            f"if {plan.steps} is not None:",
            f"{plan.indent}{plan.steps} -= {plan.model}.optimizer.iterations.numpy()",
            f"if {plan.steps} is None or {plan.steps} > 0:",
            plan.indent + call(f"{plan.loop_name}.train", [*arguments, plan.steps], plan.indent, 1),
        ]
    return [
        f"{plan.steps} = {primary(steps)} - {plan.model}.optimizer.iterations.numpy()",
        f"if {plan.steps} > 0:",
        plan.indent + call(f"{plan.loop_name}.train", [*arguments, plan.steps], plan.indent, 1),
    ]


def train_and_evaluate(plan: TrainingPlan) -> str:
    """The statements that replace train_and_evaluate, as source text at depth 0."""
    shown = [f"print({evaluate(plan, 0)})"]
    on_workers = plan.target.reads_cluster
    if on_workers and not plan.clusters.coordinates:
        shown = [f"if not {plan.resolver}.cluster_spec().jobs:", plan.indent + shown[0]]
    if plan.period is None:
        lines = [*train(plan, plan.train_dataset, plan.max_steps, True), *shown]
    else:
        begin, steps = "", str(plan.period)
        if plan.resumes:
            done = f"{plan.model}.optimizer.iterations.numpy()"
            begin = f"{done} // {plan.period}, "
            # A checkpoint may lie between two periods: where the data of an earlier run ended, or an Estimator's.
            steps = f"min({plan.period}, {primary(plan.max_steps)} - {done})" if plan.max_steps is not None else steps
        trained = [call(f"{plan.loop_name}.train", [plan.batches, steps], plan.indent, 1)]
        if plan.may_end:
            trained = [f"if not {trained[0].rstrip()}:  # the data have ended", f"{plan.indent}break"]
        lines = [
            f"{plan.batches} = {_batches(plan, plan.train_dataset)}",
            f"for _ in range({begin}{plan.epochs}):",
            *(plan.indent + line for line in (*trained, *shown)),
        ]
    if on_workers:
        evaluator = [
            f'if {plan.resolver}.task_type == "evaluator":',
            *(plan.indent + line for line in _evaluator(plan)),
        ]
        lines = [*evaluator, "else:", *(plan.indent + line for line in lines)]
    return "\n".join(lines) + "\n"


def _evaluator(plan: TrainingPlan) -> list[str]:
    """Evaluates every new checkpoint until the last one."""
    if plan.clusters.coordinates:
        return [OF_COORDINATOR]
    if plan.model_dir is None:
        return ['print("This program has no model_dir, and so no checkpoints to evaluate.")']
    indent = plan.indent
    lines = [
        f"for {plan.checkpoint} in tf.train.checkpoints_iterator({plan.model_dir}):",
        f"{indent}if {of_tensorflow1(plan)}:",
        f"{indent * 2}continue  # an Estimator's",
        f"{indent}{plan.loop_name}.checkpoints.checkpoint.restore({plan.checkpoint}).expect_partial()",
        f"{indent}print({evaluate(plan, 0)})",
    ]
    if plan.max_steps is not None:
        given = f"{primary(plan.max_steps)} is not None and " if plan.endless else ""
        lines += [
            f"{indent}if {given}{plan.model}.optimizer.iterations.numpy() >= {primary(plan.max_steps)}:",
            f"{indent * 2}break",
        ]
    return lines


def evaluate(plan: TrainingPlan, depth: int) -> str:
    """The expression that evaluates after the training."""
    return f"{plan.loop_name}.evaluate({plan.loop_name}.batches({plan.eval_dataset}))"


LOOP = Loop(
    "custom",
    train_and_evaluate=train_and_evaluate,
    train=train,
    evaluate=evaluate,
    set_up=set_up,
    make=training_loop,
)
