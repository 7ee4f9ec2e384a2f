"""What `--loop custom` writes, and what it refuses."""

from __future__ import annotations

import pytest

from migrator.findings import Finding, Severity
from tests.rules.programs import program, run

NONE = "reduction=tf.keras.losses.Reduction.NONE"
BOTH = """
train_spec = tf.estimator.TrainSpec(input_fn, max_steps=6)
tf.estimator.train_and_evaluate(estimator, train_spec, tf.estimator.EvalSpec(input_fn, steps=None))
"""

AGAIN = "lambda: input_fn().repeat()"


ON_TPU = """
import tensorflow as tf


def input_fn(params):
    data = tf.data.Dataset.from_tensor_slices((tf.ones([16, 3]), tf.ones([16, 1])))
    return data.repeat().batch(params["batch_size"], drop_remainder=True)


def model_fn(features, labels, mode, params):
    net = tf.layers.dense(features, 3)
    net = tf.layers.batch_normalization(net, training=mode == tf.estimator.ModeKeys.TRAIN)
    logits = tf.layers.dense(net, 1)
    loss = tf.losses.mean_squared_error(labels, logits)
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss)
    optimizer = tf.tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.1))
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


resolver = tf.distribute.cluster_resolver.TPUClusterResolver("here")
config = tf.estimator.tpu.RunConfig(cluster=resolver, tpu_config=tf.estimator.tpu.TPUConfig(iterations_per_loop=20))
estimator = tf.estimator.tpu.TPUEstimator(model_fn, config=config, train_batch_size=8, eval_batch_size=8)
estimator.train(input_fn, steps=40)
print(estimator.evaluate(input_fn, steps=2))
"""


NORMALIZED = "net = tf.layers.batch_normalization(net, training=mode == tf.estimator.ModeKeys.TRAIN)"


def manual(findings: list[Finding]) -> list[str]:
    return [finding.code for finding in findings if finding.severity is Severity.MANUAL]


def test_steps_are_written_out() -> None:
    new, findings = run(program(driver="estimator.train(input_fn, steps=3)"), loop="custom")
    assert manual(findings) == []
    assert f"loss=tf.keras.losses.MeanSquaredError({NONE})" in new
    assert "loop = TrainingLoop(model)\nloop.train(loop.batches(input_fn()), 3)\n" in new
    assert "tf.distribute.MirroredStrategy" not in new and "fit(" not in new and "CheckpointManager" not in new
    compile(new, "train.py", "exec")


@pytest.mark.parametrize(
    ("before", "steps", "many"),
    [
        ("", "steps=3", True),
        ("", "max_steps=len(str(3))", True),
        ("", "steps=None", False),
        ("count = None\n", "steps=count", False),
        ('tf.flags.DEFINE_integer("count", None, "")\n', "steps=tf.flags.FLAGS.count", False),
        ('tf.flags.DEFINE_integer("count", 5, "")\n', "steps=tf.flags.FLAGS.count", True),
    ],
)
def test_many_steps_are_made_in_one_call_where_they_are_counted(before: str, steps: str, many: bool) -> None:
    new, findings = run(program(driver=f"{before}estimator.train(input_fn, {steps})"), loop="custom")
    assert manual(findings) == []
    assert ("for _ in tf.range(steps):" in new) == many == ("import itertools" not in new)
    assert ("batches.get_next_as_optional()" in new) == many
    compile(new, "train.py", "exec")


def test_the_loop_of_a_tpu_makes_its_iterations_in_one_call() -> None:
    new, findings = run(ON_TPU, loop="custom")
    assert [f.code for f in findings if f.severity is not Severity.MIGRATED] == ["TFM440"]
    assert "TrainingLoop(model, steps_per_call=20)\n" in new and "steps_per_execution" not in new
    assert "tf.distribute.TPUStrategy(resolver)" in new and "for _ in tf.range(steps):" in new
    assert 'loop.evaluate(loop.batches(input_fn({"batch_size": 8}).take(2)))' in new
    assert "synchronized" not in new and "tf.nn.compute_average_loss(" in new


def test_a_loop_on_keras3() -> None:
    text = program(driver=BOTH).replace(
        'params={"rate": 0.1}', 'params={"rate": 0.1},\n    config=tf.estimator.RunConfig(model_dir="m")'
    )
    new, findings = run(text, loop="custom", keras="3")
    assert manual(findings) == []
    assert 'loss=tf.keras.losses.MeanSquaredError(reduction="none")' in new and "Reduction.NONE" not in new
    assert "self.model.optimizer.apply(tape.gradient(loss, variables), variables)" in new
    build = "            model.optimizer.build(model.trainable_variables)\n        checkpoint = tf.train.Checkpoint("
    assert build in new and "TF_USE_LEGACY_KERAS" not in new and "compiled_metrics" not in new
    compile(new, "train.py", "exec")


def test_a_loss_function_of_the_programs_own_is_not_averaged() -> None:
    loss = "loss = tf.reduce_mean(tf.square(labels - logits))"
    new, findings = run(program(loss=loss), loop="custom")
    assert manual(findings) == []
    assert "return tf.square(labels - logits)" in new and "loss=loss_fn" in new and NONE not in new
    assert "if labels.shape.rank == 1 and predictions.shape.rank == 2:" in new


@pytest.mark.parametrize("loop", ["fit", "custom"])
@pytest.mark.parametrize(
    ("labels", "logits", "known"),
    [
        ("labels", "logits", True),
        ("tf.cast(labels, tf.int32) - 1", "logits / 2.0", True),
        ("tf.reshape(labels, [-1])", "logits", False),
    ],
)
def test_classes_of_a_loss_function_are_no_column(loop: str, labels: str, logits: str, known: bool) -> None:
    op = f"tf.nn.sparse_softmax_cross_entropy_with_logits(labels={labels}, logits={logits})"
    new, findings = run(program(loss=f"loss = tf.reduce_mean(2.0 * {op})"), loop=loop)
    assert manual(findings) == []
    squeeze = "if labels.shape.rank == logits.shape.rank:\n            labels = tf.squeeze(labels, -1)"
    assert (squeeze in new) == known == ("TFM306" not in [f.code for f in findings])


@pytest.mark.parametrize("strategy", ["auto", "multi-worker-mirrored"])
def test_steps_from_the_start_that_are_none_train_on_all_data(strategy: str) -> None:
    flag = 'tf.flags.DEFINE_integer("count", None, "")'
    driver = f"{flag}\n{BOTH.replace('max_steps=6', 'max_steps=tf.flags.FLAGS.count')}"
    text = program(driver=driver).replace(
        'params={"rate": 0.1}', 'params={"rate": 0.1},\n    config=tf.estimator.RunConfig(model_dir="m")'
    )
    new, findings = run(text, strategy, loop="custom")
    assert manual(findings) == [] and "TFM115" not in [f.code for f in findings]
    assert "steps is not None:" in new and "if steps is None or steps > 0:" in new
    on_workers = strategy != "auto"
    assert ("FLAGS.count is not None and model.optimizer.iterations.numpy() >= " in new) == on_workers
    told = [f.code for f in run(text)[1]]
    assert "TFM115" in told
    assert "TFM115" not in [f.code for f in run(text.replace('"count", None', '"count", 6'))[1]]


@pytest.mark.parametrize("limit", ["steps", "max_steps"])
def test_a_fit_that_is_told_no_number_of_steps_is_told_of(limit: str) -> None:
    flag = 'tf.flags.DEFINE_integer("count", None, "")\n'
    _, findings = run(program(driver=f"{flag}estimator.train(input_fn, {limit}=tf.flags.FLAGS.count)"))
    assert manual(findings) == [] and [f.code for f in findings].count("TFM115") == 1


def test_replicas_divide_batches() -> None:
    new, findings = run(program(), "mirrored", loop="custom")
    assert manual(findings) == [] and "TFM736" in [f.code for f in findings]
    assert "strategy = tf.distribute.MirroredStrategy()\nwith strategy.scope():\n    model = model_fn(" in new
    assert "self.strategy.experimental_distribute_dataset(dataset)" in new


@pytest.mark.parametrize(("strategy", "written"), [("auto", ""), ("mirrored", "synchronized=True")])
def test_replicas_normalize_the_whole_batch(strategy: str, written: str) -> None:
    norm = "logits = tf.layers.batch_normalization(logits, training=mode == tf.estimator.ModeKeys.TRAIN)"
    text = program(loss=f"{norm}\nloss = tf.losses.mean_squared_error(labels, logits)")
    updates = "    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):\n        train_op = "
    text = text.replace("    train_op = ", updates)
    new, findings = run(text, strategy, loop="custom")
    assert manual(findings) == []
    assert f"BatchNormalization({written})(logits)" in new
    assert ("TFM738" in [f.code for f in findings]) == bool(written)


STRATEGY = 'params={"rate": 0.1},\n    config=tf.estimator.RunConfig(train_distribute=tf.distribute.%s())'


def test_replicas_of_a_strategy_draw_whole_batches() -> None:
    text = program(driver="estimator.train(input_fn, steps=3)")
    text = text.replace('params={"rate": 0.1}', STRATEGY % "MirroredStrategy")
    new, findings = run(text, loop="custom")
    assert manual(findings) == [] and "TFM740" in [f.code for f in findings]
    assert "loop.train(loop.own_batches(lambda context: input_fn()), 3)" in new
    assert "loss = tf.reduce_mean(losses) / self.strategy.num_replicas_in_sync" in new
    assert "whole_rounds" in new and "def evaluate" not in new and "mean_loss" not in new and "all_reduce" not in new
    compile(new, "train.py", "exec")


def test_a_program_without_a_strategy_beside_one_with_it_is_refused() -> None:
    again = (
        'other = tf.estimator.Estimator(\n    model_fn,\n    params={"rate": 0.1},\n)\nother.train(input_fn, steps=3)\n'
    )
    text = program(driver="estimator.train(input_fn, steps=3)")
    text = text.replace('params={"rate": 0.1}', STRATEGY % "MirroredStrategy") + again
    new, findings = run(text, "mirrored", loop="custom")
    assert new == text and "TFM737" in manual(findings)


def test_workers_divide_batches_and_the_chief_saves() -> None:
    text = program(driver=BOTH).replace(
        'params={"rate": 0.1}', 'params={"rate": 0.1},\n    config=tf.estimator.RunConfig(model_dir="m")'
    )
    new, findings = run(text, "multi-worker-mirrored", loop="custom")
    assert manual(findings) == [] and "TFM736" in [f.code for f in findings]
    assert "AutoShardPolicy.DATA" in new and "tf.nn.compute_average_loss(" in new and "import tempfile" in new
    assert "folder = model_dir if self.strategy.extended.should_checkpoint else tempfile.mkdtemp()" in new
    assert (
        'if resolver.task_type == "evaluator":\n    for checkpoint in tf.train.checkpoints_iterator(model_dir):\n'
        in new
    )
    assert "    loop.checkpoints.checkpoint.restore(checkpoint).expect_partial()\n" in new
    compile(new, "train.py", "exec")


def test_a_coordinator_schedules_steps_on_parameter_servers() -> None:
    text = program(driver=BOTH.replace("input_fn, max", f"{AGAIN}, max")).replace(
        'params={"rate": 0.1}', 'params={"rate": 0.1},\n    config=tf.estimator.RunConfig(model_dir="m")'
    )
    new, findings = run(text, "parameter-server", loop="custom")
    assert manual(findings) == [] and "TFM706" in [f.code for f in findings]
    assert "self.coordinator = tf.distribute.coordinator.ClusterCoordinator(self.strategy)\n" in new
    assert "def __init__(self, model, model_dir, steps_per_call=5):\n" in new
    assert "loss = self.coordinator.schedule(self.train_steps, args=(batches, count))\n" in new
    assert "loop.train(loop.own_batches(lambda context: input_fn().repeat()), steps)\n" in new
    assert "self.checkpoints.save(self.model.optimizer.iterations.numpy())\n" in new and "tempfile" not in new
    compile(new, "train.py", "exec")


def test_workers_of_parameter_servers_pass_over_all_data() -> None:
    text = program(driver=BOTH.replace(", max_steps=6", ""))
    new, findings = run(text, "parameter-server", loop="custom")
    assert manual(findings) == []
    assert '    if resolver.cluster_spec().jobs:\n        steps *= resolver.cluster_spec().num_tasks("worker")' in new
    assert "    loop.train(loop.own_batches(lambda context: input_fn().repeat()), steps)\n" in new


def test_checkpoints_and_evaluations_come_with_every_period() -> None:
    text = program(driver=BOTH).replace(
        'params={"rate": 0.1}',
        'params={"rate": 0.1},\n    config=tf.estimator.RunConfig(model_dir="m", save_checkpoints_steps=3)',
    )
    new, findings = run(text, loop="custom")
    assert manual(findings) == []
    assert "for _ in range(model.optimizer.iterations.numpy() // 3, 6 // 3):\n" in new
    trained = "loop.train(batches, min(3, 6 - model.optimizer.iterations.numpy()))"
    assert f"    if not {trained}:  # the data have ended\n        break\n" in new and "return done > 0" in new
    assert "    print(loop.evaluate(loop.batches(input_fn())))\n" in new
    assert "self.checkpoints.restore_or_initialize()" in new and "load_weights" not in new
    endless, _ = run(text.replace(".batch(1)", ".repeat().batch(1)"), loop="custom")
    assert f"    {trained}\n" in endless and "return done > 0" not in endless


@pytest.mark.parametrize("strategy", ["one-device", "mirrored", "auto"])
def test_fit_goes_on_between_two_periods(strategy: str) -> None:
    text = program(driver=BOTH).replace(
        'params={"rate": 0.1}',
        'params={"rate": 0.1},\n    config=tf.estimator.RunConfig(model_dir="m", save_checkpoints_steps=3)',
    )
    new, findings = run(text, strategy)
    assert "TFM617" in [finding.code for finding in findings]
    assert "if steps % 3 and steps < 6:  # an earlier run ended between two periods\n" in new
    assert new.count("steps_per_epoch=3 - steps % 3") == 1 and new.count("initial_epoch=") == 1
    assert "TFM617" not in [f.code for f in run(text.replace(".batch(1)", ".repeat().batch(1)"), strategy)[1]]
    assert "steps %" not in run(text.replace('model_dir="m", ', ""), strategy)[0]


@pytest.mark.parametrize(
    ("text", "options", "code"),
    [
        (program(loss="loss = tf.losses.mean_squared_error(labels, logits, weights=2.0 * labels)"), {}, "TFM735"),
        (program(), {"keras": "3", "strategy": "central-storage"}, "TFM872"),
        (program(network=NORMALIZED), {"keras": "3", "strategy": "mirrored"}, "TFM872"),
        (program(driver=BOTH), {"strategy": "parameter-server"}, "TFM742"),
        (
            program(driver="steps = None\n" + BOTH.replace("input_fn, max_steps=6", f"{AGAIN}, max_steps=steps")),
            {"strategy": "parameter-server"},
            "TFM737",
        ),
        (program(driver=BOTH + 'import os\nprint(os.environ["TF_CONFIG"])'), {}, "TFM737"),
        (
            program(driver='estimator.train(input_fn, hooks=[tf.train.LoggingTensorHook({"a": "b"}, 1), Own()])'),
            {},
            "TFM735",
        ),
    ],
)
def test_what_has_no_loop_of_its_own_is_refused(text: str, options: dict[str, str], code: str) -> None:
    own = "class Own(tf.train.SessionRunHook):\n    def end(self, session):\n        print('end')\n\n\n"
    text = text.replace("def input_fn", own + "def input_fn", 1) if "Own()" in text else text
    new, findings = run(text, **{"loop": "custom", **options})
    assert new == text and code in manual(findings)


@pytest.mark.parametrize(
    ("network", "loss"),
    [
        ("net = net / tf.reduce_max(tf.abs(net))", "tf.losses.mean_squared_error(labels, logits)"),
        ("net = net - tf.reduce_mean(net, axis=0)", "tf.losses.mean_squared_error(labels, logits)"),
        ("net = tf.nn.l2_normalize(net, [0, 1])", "tf.losses.mean_squared_error(labels, logits)"),
        ("net = net / tf.cast(tf.shape(net)[0], tf.float32)", "tf.losses.mean_squared_error(labels, logits)"),
        ("net = tf.reshape(net, [16, 1])", "tf.losses.mean_squared_error(labels, logits)"),
        ("net = tf.matmul(net, net, transpose_b=True)", "tf.losses.mean_squared_error(labels, logits)"),
        ("net = tf.nn.relu(net)", "tf.reduce_mean(tf.reduce_sum(tf.square(logits - labels), axis=0))"),
    ],
)
def test_replicas_refuse_what_all_examples_make(network: str, loss: str) -> None:
    text = program(network=network, loss=f"loss = {loss}")
    assert manual(run(text, loop="custom")[1]) == []
    new, findings = run(text, "mirrored", loop="custom")
    assert new == text and "TFM739" in manual(findings)


@pytest.mark.parametrize(
    "network",
    [
        "net = tf.nn.softmax(tf.reduce_sum(tf.expand_dims(net, 2), axis=-1))",
        "net = tf.reshape(net, [-1, 1]) / tf.norm(net, axis=1, keepdims=True)",
        "net = net + tf.zeros([tf.shape(net)[0], 1])",
    ],
)
def test_replicas_take_what_each_example_makes(network: str) -> None:
    assert manual(run(program(network=network), "mirrored", loop="custom")[1]) == []


WORKERS = "multi-worker-mirrored"
CONFIG = 'params={"rate": 0.1},\n    config=tf.estimator.RunConfig(model_dir="m"%s)'
SHUFFLED = "data.shuffle(16).repeat().batch(4)"


def fed(data: str, seed: str = "", before: str = "") -> str:
    """A program that trains on a cluster, with these lines in its input function, and before its Estimator."""
    text = program(driver=BOTH).replace('params={"rate": 0.1}', CONFIG % seed)
    new = f"    data = tf.data.Dataset.from_tensor_slices(([[1.0]] * 16, [[2.0]] * 16))\n    {data}\n"
    text = text.replace("    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(1)\n", new)
    return text.replace(
        "import tensorflow as tf\n", "import random\n\nimport numpy as np\nimport tensorflow as tf\n"
    ).replace("estimator = tf.", f"{before}\nestimator = tf.")


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (f"return {SHUFFLED}", 9),
        ("return data.shuffle(16, seed=None).batch(4)", 9),
        ("return data.map(lambda x, y: (x + tf.random_normal([1]), y)).batch(4)", 9),
        ("return data.map(lambda x, y: (tf.random.uniform([1]), y)).batch(4)", 9),
        ("files = tf.data.Dataset.list_files('*.csv')\n    return tf.data.TextLineDataset(files).batch(4)", 9),
        ("order = list(range(16))\n    random.shuffle(order)\n    return data.batch(4)", 10),
        ("order = np.random.permutation(16)\n    return data.batch(4)", 9),
        ("return data.apply(tf.data.experimental.shuffle_and_repeat(16)).batch(4)", 9),
    ],
)
def test_workers_do_not_divide_what_each_draws_for_itself(data: str, line: int) -> None:
    text = fed(data)
    new, findings = run(text, WORKERS, loop="custom")
    assert new == text and ("TFM741", line) in [(f.code, f.line) for f in findings if f.severity is Severity.MANUAL]
    for strategy in ("auto", "mirrored"):
        assert "TFM741" not in [f.code for f in run(text, strategy, loop="custom")[1]]


@pytest.mark.parametrize(
    ("data", "seed", "before"),
    [
        ("return data.shuffle(16, seed=3).repeat().batch(4)", "", ""),
        ("return data.shuffle(16, 3).repeat().batch(4)", "", ""),
        (f"return {SHUFFLED}", ", tf_random_seed=3", ""),
        (f"return {SHUFFLED}", "", "tf.set_random_seed(3)"),
        ("random.shuffle([1, 2])\n    return data.batch(4)", "", "random.seed(3)"),
        ("np.random.RandomState(3).shuffle([1, 2])\n    return data.batch(4)", "", ""),
        ("rng = np.random.RandomState(3)\n    rng.shuffle([1, 2])\n    return data.batch(4)", "", ""),
        ("return data.repeat().batch(4)", "", ""),
    ],
)
def test_workers_divide_what_all_draw_alike(data: str, seed: str, before: str) -> None:
    assert manual(run(fed(data, seed, before), WORKERS, loop="custom")[1]) == []


@pytest.mark.parametrize(
    ("data", "seed", "before"),
    [
        (f"return {SHUFFLED}", ", tf_random_seed=None", ""),
        (f"return {SHUFFLED}", "", "def never():\n    tf.set_random_seed(3)\n\n"),
        ("random.shuffle([1, 2])\n    return data.batch(4)", "", "random.seed()"),
        ("random.shuffle([1, 2])\n    return data.batch(4)", ", tf_random_seed=3", ""),
    ],
)
def test_what_is_no_seed_of_all_workers(data: str, seed: str, before: str) -> None:
    assert "TFM741" in manual(run(fed(data, seed, before), WORKERS, loop="custom")[1])


def test_batches_that_helpers_and_arrays_shuffle() -> None:
    helper = "def mixed(data):\n    return data.shuffle(16)\n\n\n"
    text = fed("return mixed(data).batch(4)").replace("def input_fn", helper + "def input_fn")
    assert "TFM741" in manual(run(text, WORKERS, loop="custom")[1])
    for shuffle in ("True", "False"):
        made = f"numpy_input_fn(np.ones([16, 1], np.float32), np.ones([16, 1], np.float32), shuffle={shuffle})"
        text = fed("return data").replace("estimator = tf.", f"fed = tf.estimator.inputs.{made}\nestimator = tf.")
        text = text.replace("TrainSpec(input_fn", "TrainSpec(fed")
        assert ("TFM741" in manual(run(text, WORKERS, loop="custom")[1])) == (shuffle == "True")


def test_workers_that_draw_whole_batches_shuffle_each_for_itself() -> None:
    config = ", train_distribute=tf.distribute.experimental.MultiWorkerMirroredStrategy()"
    assert "TFM741" not in [f.code for f in run(fed(f"return {SHUFFLED}", config), WORKERS, loop="custom")[1]]


@pytest.mark.parametrize(
    ("data", "known"),
    [
        ("repeat()", True),
        ("repeat(None)", True),
        ("repeat(count=-1)", True),
        ("shuffle(9).repeat().batch(2)", True),
        ("apply(tf.data.experimental.shuffle_and_repeat(9))", True),
        ("repeat(2)", False),
        ("repeat(len('ab'))", False),
        ("repeat().take(5)", False),
        ("apply(tf.data.experimental.shuffle_and_repeat(9, 3))", False),
    ],
)
def test_scheduled_steps_need_data_without_an_end(data: str, known: bool) -> None:
    given = f"lambda: input_fn().{data}"
    text = program(driver=BOTH.replace("input_fn, max", f"{given}, max")).replace(
        'params={"rate": 0.1}', 'params={"rate": 0.1},\n    config=tf.estimator.RunConfig(model_dir="m")'
    )
    found = manual(run(text, "parameter-server", loop="custom")[1])
    assert ("TFM742" not in found) is known


def test_a_loop_on_keras3_is_not_taken_for_one_on_keras2() -> None:
    once, _ = run(program(driver="estimator.train(input_fn, steps=3)"), loop="custom", keras="3")
    twice, findings = run(once)
    assert "self.model.optimizer.apply(" in once and twice == once and findings == []


def _regularized(replicated: str, driver: str, layer: str = "tf.layers.dense(features, 1, kernel_regularizer=") -> str:
    """A program whose loss has the terms of a regularizer, under a strategy of its RunConfig."""
    text = program(
        network=f"net = net + {layer}tf.keras.regularizers.l2(0.1))",
        loss="loss = tf.losses.mean_squared_error(labels, logits) + tf.losses.get_regularization_loss()",
        driver=driver,
    )
    given = f"config=tf.estimator.RunConfig(train_distribute={replicated})"
    return text.replace(', params={"rate": 0.1})', f", {given}, params=dict(rate=0.1))")


MIRRORED = 'tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])'
TRAINS = "estimator.train(input_fn, steps=3)"
EVALUATES = f"{TRAINS}\nestimator.evaluate(input_fn)"


def test_penalties_weigh_a_share_among_the_replicas_of_an_estimator() -> None:
    new, findings = run(_regularized(MIRRORED, TRAINS), loop="custom")
    assert manual(findings) == []
    assert "            loss += tf.nn.scale_regularization_loss(share + tf.stop_gradient(penalty - share))\n" in new
    new, findings = run(_regularized(MIRRORED, EVALUATES), loop="custom")
    assert manual(findings) == []
    assert "            if not divided:  # as under an Estimator's strategy" in new  # an evaluation is one device's


@pytest.mark.parametrize(
    ("text", "loop"),
    [
        (_regularized(MIRRORED, TRAINS), "fit"),
        (_regularized(f"{MIRRORED}, eval_distribute={MIRRORED}", EVALUATES), "custom"),
        (_regularized(MIRRORED, TRAINS, 'tf.get_variable("w", [], regularizer='), "custom"),
    ],
)
def test_penalties_that_weigh_otherwise_are_refused(text: str, loop: str) -> None:
    new, findings = run(text, loop=loop)
    assert new == text and "TFM707" in manual(findings), findings


def test_penalties_count_in_full_where_the_estimator_had_no_replicas() -> None:
    text = _regularized(MIRRORED, TRAINS).replace(f"config=tf.estimator.RunConfig(train_distribute={MIRRORED}), ", "")
    new, findings = run(text, "mirrored", loop="custom")
    assert manual(findings) == []
    assert "loss += tf.nn.scale_regularization_loss(tf.add_n(self.model.losses))\n" in new
