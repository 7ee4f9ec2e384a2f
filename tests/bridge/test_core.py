"""A model_fn that stays as it is trains, evaluates and predicts the numbers of TensorFlow 1, under its names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.bridge.sides import run_both, run_new

pytestmark = pytest.mark.tensorflow

MODULES = ("specs", "config", "estimator", "training", "tpu")

PROGRAM = """
import shutil
spec_class, modes = est.EstimatorSpec, est.ModeKeys
random = np.random.RandomState(0)
x = random.normal(size=(256, 4)).astype(np.float32)
y = (x[:, 0] > 0).astype(np.int32) + (x[:, 1] > 0)


def values(*shape):
    whole = np.sin(np.arange(np.prod(shape))).reshape(shape).astype(np.float32)

    def initializer(shape, dtype=None, partition_info=None):
        first = 0 if partition_info is None else partition_info.var_offset[0]
        return tf.constant(whole[first : first + int(shape[0])])

    return initializer


def dataset():
    return tf.data.Dataset.from_tensor_slices(({"x": x}, y)).repeat().batch(32)


def evaluation():
    return tf.data.Dataset.from_tensor_slices(({"x": x}, y)).batch(50)


class Losses(tf.train.SessionRunHook):
    def __init__(self, name="watched"):
        self.name, self.losses, self.calls, self.seen = name, [], [], []

    def begin(self):
        self.calls.append("begin " + tf.train.get_global_step().name)
        named = tf.get_default_graph().get_tensor_by_name("global_step:0")
        self.calls.append("named %s" % (named.shape,))
        self.asked = {"object": tf.train.get_global_step(), "name": "global_step:0", "tensor": named,
                      "weights": tf.trainable_variables()[0]}

    def after_create_session(self, session, coord):
        self.calls.append("created %d" % session.run(tf.train.get_global_step()))

    def before_run(self, context):
        return tf.train.SessionRunArgs({"loss": self.name + ":0", "variables": self.asked})

    def after_run(self, context, run_values):
        self.losses.append(run_values.results["loss"])
        asked = run_values.results["variables"]
        # Reference variables are seen behind the step's updates.
        steps = [int(asked[key]) for key in ("object", "name", "tensor")]
        self.seen.append([*steps, float(asked["weights"][0, 0])])

    def end(self, session):
        self.calls.append("end %d" % session.run(tf.train.get_global_step()))


def network(features, mode, partitioner=None):
    with tf.variable_scope("net", partitioner=partitioner):
        w = tf.get_variable("w", [4, 8], initializer=values(4, 8))
        hidden = tf.nn.relu(tf.matmul(features["x"], w))
        hidden = tf.layers.batch_normalization(hidden, training=mode == "train")
        return tf.layers.dense(hidden, 3, kernel_initializer=values(8, 3))


def model_fn(mode, features, labels, params):
    logits = network(features, mode)
    predictions = {"class": tf.argmax(logits, 1), "probabilities": tf.nn.softmax(logits)}
    if mode == modes.PREDICT:
        return spec_class(mode, predictions=predictions)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    chosen = [v for v in tf.trainable_variables() if not v.op.name.startswith("net/batch")]
    loss += 0.01 * tf.add_n([tf.nn.l2_loss(v) for v in chosen]) + 0.001 * tf.reduce_sum(tf.trainable_variables()[0])
    metrics = {"accuracy": tf.metrics.accuracy(labels, predictions["class"]),
               "first": tf.metrics.mean(predictions["probabilities"][:, 0])}
    tf.identity(loss, name="watched")
    if mode == modes.EVAL:
        return spec_class(mode, loss=loss, eval_metric_ops=metrics)
    step = tf.train.get_global_step()
    tf.assign_add(step, 1000)  # asked for by nothing, so that it is not run
    rate = tf.train.exponential_decay(params["rate"], step, 10, 0.9)
    with tf.variable_scope("opt"):
        optimizer = params["optimizer"](rate)
        gradients, variables = zip(*optimizer.compute_gradients(loss))
        gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
        counter = tf.Variable(3.0 * tf.ones([2]), name="counter", trainable=False)
        update = optimizer.apply_gradients(zip(gradients, variables), global_step=step)
        updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS) if params.get("updates", True) else []
        train_op = tf.group(update, tf.assign_add(counter, [1.0, 2.0]), *updates)
    return spec_class(mode, loss=loss, train_op=train_op)


def folder(name):
    return os.path.join(FOLDER, sys.argv[1] + "_" + name)


def trained(name, params, model_fn=model_fn, input_fn=dataset, steps=25, **settings):
    estimator = est.Estimator(model_fn, folder(name), est.RunConfig(save_checkpoints_steps=10), params, **settings)
    hook = Losses()
    estimator.train(input_fn, hooks=[hook], steps=steps)
    return estimator, hook


momentum = lambda rate: tf.train.MomentumOptimizer(rate, 0.9)
adam = tf.train.AdamOptimizer
estimator, hook = trained("momentum", {"rate": 0.05, "optimizer": momentum})
found["losses"], found["calls"], found["asked for"] = hook.losses, hook.calls, hook.seen
found["evaluation"] = estimator.evaluate(evaluation)
found["two batches"] = estimator.evaluate(evaluation, steps=2, name="two")
# What a hook asks for at the end takes one more batch.
class AtEnd(tf.train.SessionRunHook):
    def end(self, session):
        self.loss = session.run("watched:0")


at_end = [AtEnd(), AtEnd()]
estimator.train(dataset, max_steps=40, hooks=at_end[:1])
estimator.evaluate(evaluation, steps=1, name="last", hooks=at_end[1:])
estimator.train(dataset, max_steps=40)
found["at end"] = [hook.loss for hook in at_end]
found["more"] = estimator.evaluate(evaluation)
found["earlier"] = estimator.evaluate(evaluation, checkpoint_path=os.path.join(folder("momentum"), "model.ckpt-25"))
found["predicted"] = [one for _, one in zip(range(3), estimator.predict(evaluation, predict_keys=["probabilities"]))]
found["batches"] = [len(one["class"]) for one in estimator.predict(evaluation, yield_single_examples=False)]
found["names"] = sorted(estimator.get_variable_names())
found["values"] = {name: estimator.get_variable_value(name) for name in estimator.get_variable_names()}
found["files"] = sorted(name for name in os.listdir(folder("momentum")) if name.endswith(".index"))

# An optimizer with slots and powers; the averages of batch normalization without their updates.
estimator, hook = trained("adam", {"rate": 0.01, "optimizer": adam, "updates": False})
found["adam"], found["adam names"] = hook.losses, sorted(estimator.get_variable_names())
found["adam evaluation"] = estimator.evaluate(evaluation)

# Tensors of an iterator that is initialized by a hook, and a table of words.
class Initialize(tf.train.SessionRunHook):
    def after_create_session(self, session, coord):
        session.run(self.iterator.initializer, feed_dict={self.start: 64})

initialize = Initialize()

def by_iterator():
    initialize.start = tf.placeholder(tf.int64, [])
    data = tf.data.Dataset.from_tensor_slices(({"x": x}, y)).skip(initialize.start).batch(32)
    initialize.iterator = tf.data.make_initializable_iterator(data)
    return initialize.iterator.get_next()

estimator = est.Estimator(model_fn, folder("iterator"), params={"rate": 0.05, "optimizer": adam})
hook = Losses()
estimator.train(by_iterator, hooks=[initialize, hook])
found["iterator"], found["iterator steps"] = hook.losses, int(estimator.get_variable_value("global_step"))

def one_shot():
    return tf.data.make_one_shot_iterator(dataset()).get_next()

found["one shot"] = trained("one_shot", {"rate": 0.05, "optimizer": adam}, input_fn=one_shot, steps=5)[1].losses

# A model that starts from the variables of another, by name.
def starts_elsewhere(features, labels, mode, params):
    logits = network(features, mode)
    first = os.path.join(FOLDER, sys.argv[1] + "_momentum")
    tf.train.init_from_checkpoint(first, {"net/": "net/"})
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    tf.identity(loss, name="watched")
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return spec_class(mode, loss=loss, train_op=train_op)

found["elsewhere"] = trained("elsewhere", {}, starts_elsewhere, steps=5)[1].losses
warm = est.WarmStartSettings(folder("momentum"), vars_to_warm_start="net/w")
found["warm"] = trained("warm", {"rate": 0.05, "optimizer": adam}, steps=5, warm_start_from=warm)[1].losses

# A scaffold whose function loads what it likes, and partitioned variables.
def with_scaffold(features, labels, mode, params):
    logits = network(features, mode, tf.fixed_size_partitioner(2))
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    tf.identity(loss, name="watched")
    extra = tf.get_variable("extra", [], initializer=tf.zeros_initializer(), trainable=False)
    given = tf.placeholder(tf.float32, [])
    assign = tf.assign(extra, given)
    scaffold = tf.train.Scaffold(init_fn=lambda scaffold, session: session.run(assign, {given: 7.0}))
    train_op = tf.train.AdagradOptimizer(0.1).minimize(loss + 0.0 * extra, tf.train.get_global_step())
    return spec_class(mode, loss=loss, train_op=train_op, scaffold=scaffold)

estimator, hook = trained("scaffold", {}, with_scaffold, steps=5)
found["scaffold"], found["extra"] = hook.losses, estimator.get_variable_value("extra")
found["parts"] = {name: estimator.get_variable_value(name).shape for name in sorted(estimator.get_variable_names())}

# Moving averages are evaluated, which a scaffold's saver reads in the place of the variables. Listeners of checkpoints.
def averaged(features, labels, mode):
    w = tf.get_variable("w", [4, 1], initializer=values(4, 1))
    loss = tf.reduce_mean(tf.square(tf.matmul(features["x"], w)))
    average = tf.train.ExponentialMovingAverage(0.5)
    if mode == modes.EVAL:
        scaffold = tf.train.Scaffold(saver=tf.train.Saver(average.variables_to_restore()))
        return spec_class(mode, loss=loss, scaffold=scaffold)
    update = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    with tf.control_dependencies([update]):
        return spec_class(mode, loss=loss, train_op=average.apply([w]))

class Saved(tf.train.CheckpointSaverListener):
    def __init__(self):
        self.calls = []

    def begin(self):
        self.calls.append("begin " + tf.train.get_global_step().name)

    def before_save(self, session, step):
        self.calls.append("before %d of %d" % (step, session.run(tf.train.get_global_step())))

    def after_save(self, session, step):
        self.calls.append("after %d" % step)
        return step == 20

    def end(self, session, step):
        self.calls.append("end %d" % step)

listener = Saved()
estimator = est.Estimator(averaged, folder("averaged"), est.RunConfig(save_checkpoints_steps=10))
estimator.train(dataset, steps=5)
found["averaged"] = estimator.evaluate(evaluation)
estimator.train(dataset, steps=40, saving_listeners=[listener])
found["listened"] = listener.calls

# Evaluation behind every checkpoint, and what train_and_evaluate returns.
estimator = est.Estimator(model_fn, folder("both"), est.RunConfig(save_checkpoints_steps=10),
                          {"rate": 0.05, "optimizer": momentum})
seen = []
class Watch(tf.train.SessionRunHook):
    def end(self, session):
        seen.append(int(session.run(tf.train.get_global_step())))
result = est.train_and_evaluate(estimator, est.TrainSpec(dataset, max_steps=25),
                                est.EvalSpec(evaluation, steps=None, hooks=[Watch()], throttle_secs=0))
found["both"], found["evaluated at"] = [result[0], list(result[1])], seen

# Two models of one process, params that change later, data that end, and a model without labels.
changed = {"rate": 0.05, "optimizer": momentum}
estimator = est.Estimator(model_fn, folder("params"), params=changed)
changed["rate"] = 50.0
hook = Losses()
estimator.train(lambda: evaluation().take(3), hooks=[hook])
found["params"] = hook.losses

def without_labels(features, mode):
    value = tf.reduce_mean(tf.square(tf.layers.dense(features, 1, kernel_initializer=values(4, 1))))
    if mode == modes.PREDICT:
        return spec_class(mode, predictions=features[:, 0])
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(value, tf.train.get_global_step())
    return spec_class(mode, loss=value, train_op=train_op)

estimator = est.Estimator(without_labels, folder("unlabelled"))
estimator.train(lambda: tf.data.Dataset.from_tensor_slices(x).batch(64))
found["unlabelled"] = estimator.evaluate(lambda: tf.data.Dataset.from_tensor_slices(x).batch(64))
found["lone"] = [one for _, one in zip(range(2), estimator.predict(
    lambda: tf.data.Dataset.from_tensor_slices((x, y)).batch(64)))]

# Variables that start from others, and are given their first values again by a hook.
def starts_from_others(features, labels, mode):
    w = tf.get_variable("w", [4, 1], initializer=values(4, 1))
    gathered = [tf.Variable(tf.zeros_like(v.initialized_value()), trainable=False) for v in tf.trainable_variables()]
    twin = tf.Variable(w.initialized_value() * 3.0, name="twin", trainable=False)
    value = tf.reduce_mean(tf.square(tf.matmul(features["x"], w)))
    with tf.control_dependencies([gathered[0].assign_add(tf.gradients(value, w)[0]), twin.assign_sub(w)]):
        train_op = tf.train.GradientDescentOptimizer(0.1).minimize(0.0 * value, tf.train.get_global_step())

    class Again(tf.train.SessionRunHook):
        def begin(self):
            self.first = tf.variables_initializer([gathered[0]])

        def end(self, session):
            found["twin"] = session.run(twin)
            session.run(self.first)

    scaffold = tf.train.Scaffold(init_op=tf.global_variables_initializer())
    return spec_class(mode, loss=value, train_op=train_op, training_hooks=[Again()], scaffold=scaffold)

estimator = est.Estimator(starts_from_others, folder("others"))
estimator.train(dataset, steps=3)

# The regularization of layers, of scopes, of shared variables and of split ones.
def regularized(features, labels, mode):
    l2, ones = tf.keras.regularizers.l2(0.1), tf.ones_initializer()
    with tf.variable_scope("net", regularizer=lambda w: 0.03 * tf.reduce_sum(w * w)):
        value = tf.matmul(features["x"], tf.get_variable("w", [4, 4], initializer=ones))
    for _ in range(2):
        with tf.variable_scope("shared", reuse=tf.AUTO_REUSE):
            value = tf.layers.dense(value, 4, kernel_initializer=ones, kernel_regularizer=l2, name="d")
    value = tf.layers.conv1d(value[:, :, None], 2, 2, kernel_initializer=ones, kernel_regularizer=l2,
                             bias_regularizer=l2)
    with tf.variable_scope("parts", partitioner=tf.fixed_size_partitioner(2)):
        value = tf.layers.dense(tf.layers.flatten(value), 1, kernel_initializer=ones, kernel_regularizer=l2)
    terms = len(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES))
    loss = 0.001 * tf.reduce_mean(tf.square(value)) + tf.losses.get_regularization_loss()
    train_op = tf.train.GradientDescentOptimizer(0.01).minimize(loss, tf.train.get_global_step())
    return spec_class(mode, loss=loss, train_op=train_op, eval_metric_ops={"terms": tf.metrics.mean(float(terms))})

estimator = est.Estimator(regularized, folder("regularized"))
estimator.train(dataset, steps=5)
found["regularized"] = estimator.evaluate(dataset, steps=2)

# What is read before it is assigned, as BERT's optimizer does it. TensorFlow 1 makes it a race: there it is ordered.
def counts_itself(features, labels, mode):
    step, loss = tf.train.get_global_step(), tf.reduce_mean(tf.matmul(features["x"], tf.ones([4, 1])))
    rate = tf.train.polynomial_decay(0.1, step, 10)
    with tf.control_dependencies([loss]):
        later = tf.cast(step, tf.float32) + tf.cond(loss < 100.0, lambda: tf.cast(step, tf.float32), lambda: 0.0)
    seen = tf.get_variable("seen", [2], trainable=False, initializer=tf.zeros_initializer())
    update, following = seen.assign_add([rate, later]), step + 1
    with tf.control_dependencies([update] if OLD else []):
        counted = step.assign(following)
    return spec_class(mode, loss=loss, train_op=tf.group(update, [counted]))

estimator = est.Estimator(counts_itself, folder("counts_itself"))
estimator.train(dataset, steps=6)
found["read before"] = estimator.get_variable_value("seen")

# What is read after it was assigned, by a use that waits for that: the new value, as a variable's tensor is its memory.
def moves_its_center(features, labels, mode):
    center = tf.get_variable("center", [4], trainable=False, initializer=tf.zeros_initializer())
    seen = tf.get_variable("seen", [4], trainable=False, initializer=tf.zeros_initializer())
    x = tf.ones([4])
    with tf.control_dependencies([center.assign(0.9 * center + 0.1 * x)]):
        x = tf.identity(x)
    step = tf.train.get_global_step()
    train_op = tf.group(seen.assign_add(x - center), step.assign_add(1))
    return spec_class(mode, loss=tf.reduce_mean(x), train_op=train_op)

estimator = est.Estimator(moves_its_center, folder("moves_its_center"))
estimator.train(dataset, steps=3)
found["read after"] = estimator.get_variable_value("seen")

# What waits for a variable itself waits for nothing.
def waits_for_variables(features, labels, mode):
    scale = tf.get_variable("scale", [4], initializer=tf.ones_initializer())
    with tf.control_dependencies([scale, scale.op]):
        loss = tf.reduce_mean(tf.square(features["x"] * scale))
    update = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    measured = {"scale": tf.metrics.mean(scale)}
    return spec_class(mode, loss=loss, train_op=tf.group(update, scale.op), eval_metric_ops=measured)

estimator = est.Estimator(waits_for_variables, folder("waits_for_variables"))
estimator.train(dataset, steps=4)
found["waits for variables"] = estimator.evaluate(evaluation)

# A TPUEstimator without a TPU.
tpu = tf.estimator.tpu if OLD else est
config_class = tf.estimator.tpu.RunConfig if OLD else est.TPURunConfig

def tpu_model_fn(features, labels, mode, params):
    logits = network(features, mode)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits) * params["batch_size"]
    if mode == modes.EVAL:
        metrics = lambda labels, logits: {"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, 1))}
        return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metrics, [labels, logits]))
    train_op = tf.train.GradientDescentOptimizer(0.01).minimize(loss, tf.train.get_global_step())
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

estimator = tpu.TPUEstimator(tpu_model_fn, folder("tpu"), config_class(), use_tpu=False, train_batch_size=16,
                             eval_batch_size=32)
by_params = lambda params: tf.data.Dataset.from_tensor_slices(({"x": x}, y)).repeat().batch(params["batch_size"])
estimator.train(by_params, max_steps=5)
found["tpu"] = estimator.evaluate(by_params, steps=3)

# Rows of an embedding start from those of the same words of another vocabulary.
def vocabulary(name, words):
    with open(folder(name), "w") as file:
        file.write("\\n".join(words) + "\\n")
    return folder(name)

def embedded(features, labels, mode, params):
    words = tf.get_variable("words", [params["size"], 2], initializer=values(params["size"], 2))
    loss = tf.reduce_sum(tf.square(words))
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return spec_class(mode, loss=loss, train_op=train_op)

known = vocabulary("known", ["a", "b", "c", "d"])
est.Estimator(embedded, folder("words"), params={"size": 4}).train(dataset, steps=1)
later = tf.train.VocabInfo(vocabulary("later", ["d", "new", "b"]), 3, 0, known, -1, tf.zeros_initializer())
warm = est.WarmStartSettings(folder("words"), "words", {"words": later})
estimator = est.Estimator(embedded, folder("more_words"), params={"size": 3}, warm_start_from=warm)
estimator.train(dataset, steps=1)
found["vocabulary"] = estimator.get_variable_value("words")
"""

GOES_ON = """
# The folder that TensorFlow 1 has trained halfway is gone on from on both sides.
halfway = folder("halfway")
if OLD:
    trained("halfway", {"rate": 0.05, "optimizer": adam}, steps=20)
    shutil.copytree(halfway, os.path.join(FOLDER, "new_halfway"))
found["goes on"] = trained("halfway", {"rate": 0.05, "optimizer": adam}, steps=20)[1].losses
"""


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    # 2.15.1 has the variables of 1.15.5, which know what they start from, only when it is told; and a condition on one
    # reads it before it looks at the condition, whether it has a value or not.
    told = "    tf.disable_resource_variables()\n    tf.disable_control_flow_v2()\n"
    return run_both(PROGRAM + GOES_ON, tmp_path_factory.mktemp("core"), MODULES, told)


def close(old: Any, new: Any) -> bool:
    if isinstance(old, dict):
        return old.keys() == new.keys() and all(close(old[key], new[key]) for key in old)
    if isinstance(old, list):
        return len(old) == len(new) and all(close(one, other) for one, other in zip(old, new, strict=True))
    if isinstance(old, float):
        return abs(old - new) <= 2e-5 * max(1.0, abs(old))
    return bool(old == new)


@pytest.mark.parametrize(
    "what",
    [
        "losses",
        "calls",
        "asked for",
        "at end",
        "evaluation",
        "two batches",
        "averaged",
        "vocabulary",
        "listened",
        "more",
        "earlier",
        "predicted",
        "batches",
        "names",
        "values",
        "files",
        "adam",
        "adam names",
        "adam evaluation",
        "iterator",
        "iterator steps",
        "one shot",
        "elsewhere",
        "warm",
        "scaffold",
        "extra",
        "parts",
        "both",
        "evaluated at",
        "params",
        "unlabelled",
        "lone",
        "twin",
        "regularized",
        "read before",
        "read after",
        "waits for variables",
        "tpu",
        "goes on",
    ],
)
def test_the_same_as_tensorflow_1(sides: tuple[dict[str, Any], dict[str, Any]], what: str) -> None:
    old, new = sides
    assert close(old[what], new[what]), f"{old[what]}\n{new[what]}"
    assert old[what] not in ([], {})


def test_trains_at_all(sides: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """The comparison is of numbers that change."""
    losses = sides[1]["losses"]
    assert len(losses) == 25
    assert losses[-1] < 0.7 * losses[0]
    assert sides[1]["adam evaluation"]["loss"] != sides[1]["evaluation"]["loss"]


BEHIND_A_BRANCH = """
def model_fn(features, labels, mode):
    step, loss = tf.train.get_global_step(), tf.reduce_mean(features["x"])

    def slowly():
        big = tf.ones([600, 600])
        for _ in range(8):
            big = tf.matmul(big, big) * 1e-3
        with tf.control_dependencies([big]):
            return tf.cast(step.read_value(), tf.float32)

    later = tf.cond(loss < 100.0, slowly, lambda: 0.0)
    seen = tf.get_variable("seen", [], trainable=False, initializer=tf.zeros_initializer())
    return est.EstimatorSpec(mode, loss=loss, train_op=tf.group(seen.assign_add(later), step.assign(step + 1)))


estimator = est.Estimator(model_fn, os.path.join(FOLDER, "m"))
estimator.train(lambda: tf.data.Dataset.from_tensors({"x": np.ones([4, 4], "f")}).repeat(), steps=12)
found["seen"] = estimator.get_variable_value("seen")
"""


def test_a_write_waits_for_what_a_branch_reads(tmp_path: Path) -> None:
    """A condition lets go of what waits for it before its branch has read: the steps before each write are 0 to 11."""
    assert run_new(BEHIND_A_BRANCH, tmp_path, MODULES) == {"seen": 66.0}
