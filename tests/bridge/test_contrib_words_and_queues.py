"""Words, queues, warped images and optimizers outside of the graph, as tf.contrib had them: numbers of 1.15.5."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bridge.sides import TENSORFLOW1, run_new, run_old
from tests.bridge.test_core import close

pytestmark = pytest.mark.tensorflow

# Variables are fed by what 1.15.5 minimizes with, which resource variables do not notice.
SETUP = """\
    tf.disable_resource_variables()
    from tensorflow import contrib
    import tensorflow.contrib.resampler
    lookup, layers, image, training, opt = (
        contrib.lookup, contrib.layers, contrib.image, contrib.training, contrib.opt)
    sparse, bucket_by_length = contrib.sparsemax, training.bucket_by_sequence_length
    resampler, gru = contrib.resampler.resampler, contrib.cudnn_rnn.CudnnCompatibleGRUCell
    profiler = contrib.tfprof.model_analyzer
"""
MODULES = (
    *("contrib_words", "contrib_queues", "contrib_image", "contrib_external", "contrib_rnn", "contrib_training"),
)
NOTED = Path(__file__).with_name("noted") / "contrib_words_and_queues.json"
PROGRAM = """
import types
if not OLD:
    lookup = layers = image = training = opt = sparse = profiler = est
    resampler, gru, bucket_by_length = est.resampler, est.CudnnCompatibleGRUCell, est.bucket_by_length
waves = lambda *shape: tf.constant(np.sin(np.arange(np.prod(shape)) * 1.3 + 1).reshape(shape).astype("f"))


def run(name, build, steps=1):
    with tf.Graph().as_default():
        tf.set_random_seed(7)
        made = tf.nest.flatten(build())
        found[name + " shapes"] = [one.shape.as_list() for one in made if one.shape.rank is not None]
        with tf.Session() as session:
            session.run([tf.global_variables_initializer(), tf.local_variables_initializer(),
                         tf.tables_initializer()])
            ends = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(session, ends)
            for step in range(steps):
                values = session.run(made)
                found["%s %d" % (name, step)] = [
                    one if one.dtype == object else np.round(np.asarray(one, "d"), 5) for one in values]
            ends.request_stop()
            ends.join(threads)


words = lambda: tf.constant([["b", "x"], ["a", "c"]])
names = lambda: tf.constant(["a", "b", "c"])
with open(os.path.join(FOLDER, "words"), "w") as file:
    file.write("c\\nb\\na\\n")
run("places", lambda: [
    lookup.string_to_index(words(), names()), lookup.string_to_index(words(), names(), default_value=7),
    lookup.string_to_index_table_from_tensor(["a", "b"], 1).lookup(words()),
    lookup.string_to_index_table_from_file(os.path.join(FOLDER, "words"), default_value=9).lookup(words())])
run("strings", lambda: [lookup.index_to_string(tf.constant([2, 5, 0], tf.int64), names()),
                        lookup.index_to_string(tf.constant([[1, 5]], tf.int64), names(), "none")])
half = tf.constant_initializer(np.arange(8.0).reshape(4, 2))
ids = lambda: tf.constant([[1, 3, 0], [0, 0, 0], [2, 2, 3]])


def bags():
    made = [layers.bow_encoder(ids(), 4, 2, initializer=half), layers.bow_encoder(ids(), 4, 2, False, half),
            layers.bow_encoder(tf.sparse.from_dense(ids()), 4, 2, initializer=half, scope="mine",
                               regularizer=tf.nn.l2_loss)]
    with tf.variable_scope("mine", reuse=True):
        made.append(layers.embedding_lookup_unique(tf.get_variable("embeddings", [4, 2]), ids()))
    found["bags"] = [one.name for key in ("variables", "trainable_variables", "model_variables")
                     for one in tf.get_collection(key)]
    return [*made, *tf.get_collection("regularization_losses"), *tf.gradients(made[0], tf.global_variables()[0])[:1]]


run("bags", lambda: [tf.convert_to_tensor(one) for one in bags()])
run("split", lambda: layers.embedding_lookup_unique([waves(2, 3), waves(2, 3) + 1], tf.constant([3, 0, 3])))
infinite = lambda: tf.constant([[np.inf, 0.0], [-np.inf, 0.0], [-np.inf, -np.inf], [np.nan, 1.0]], tf.float64)


def simplex(logits, labels):
    made = sparse.sparsemax(logits)
    loss = sparse.sparsemax_loss(logits, made, labels)
    return [tf.where(tf.is_nan(one), tf.fill(tf.shape(one), tf.constant(-9.0, one.dtype)), one)
            for one in (made, loss, tf.gradients(loss, logits)[0])]


run("simplex", lambda: simplex(waves(4, 5), tf.one_hot([0, 1, 2, 3], 5)))
run("infinite", lambda: simplex(infinite(), tf.one_hot([0, 1, 1, 0], 2, dtype=tf.float64)))
pictures = lambda: waves(2, 5, 4, 3)
flow = lambda: waves(2, 5, 4, 2) * 3.0
sources = lambda: tf.constant([[[1.0, 1.0], [3.0, 2.0], [0.5, 3.0]]] * 2)


def graded(build, *tensors):
    made = tf.nest.flatten(build(*tensors))
    return made + tf.gradients([tf.reduce_sum(one * one) for one in made], tensors)


run("warped", lambda: graded(image.dense_image_warp, pictures(), flow()))
run("warped by halves", lambda: image.dense_image_warp(tf.cast(pictures(), tf.float64), flow()))
for order in (1, 2, 3, 4, 6):
    run("spline %d" % order, lambda: image.interpolate_spline(sources(), waves(2, 3, 2), flow()[:, 0], order, 0.1))
run("moved", lambda: image.sparse_image_warp(pictures(), sources(), sources() + waves(2, 3, 2)))
wide = lambda one: tf.cast(one, tf.float64)
run("moved inside", lambda: image.sparse_image_warp(
    wide(pictures()), wide(sources()), wide(sources() + waves(2, 3, 2)), 3, 0.01, 2))
run("sampled", lambda: graded(resampler, pictures(), waves(2, 7, 2) * 5.0 + 0.7))
grid = lambda: tf.constant(np.linspace(-1.5, 5.5, 24).reshape(2, 3, 2, 2), tf.float32)
run("sampled dense", lambda: graded(resampler, pictures(), grid()))


def recurrent():
    initializer = lambda shape, dtype=None, partition_info=None: waves(*shape)
    getter = lambda getter, **settings: getter(**dict(settings, initializer=initializer))
    with tf.variable_scope("", custom_getter=getter):
        made = tf.nn.dynamic_rnn(gru(3), waves(2, 4, 2), dtype=tf.float32)
    found["gru"] = [one.name for one in tf.trainable_variables()]
    return made


run("gru", recurrent)


def counted():
    numbers = tf.train.range_input_producer(6, shuffle=False, capacity=6).dequeue_many(2)
    return numbers, tf.cast(numbers % 2, tf.int32)


def strata():
    numbers, classes = counted()
    batches, labels = training.stratified_sample([numbers, numbers * 2], classes, [0.0, 1.0], 3, [0.5, 0.5], True)
    return [*batches, labels]


def by_probability():
    numbers, _ = counted()
    return training.rejection_sample(
        [numbers, numbers * 2], lambda one: tf.cast(one[0] > 2, tf.float32), 2, enqueue_many=True, runtime_checks=True)


run("strata", strata, 2)
run("strata of one class", lambda: training.stratified_sample(
    [tf.constant([1.0, 2.0])], tf.constant(1), [0.5, 0.5], 2)[1])
run("by probability", by_probability, 2)
run("resampled", lambda: tf.reshape(training.resample_at_rate([waves(3, 2)], tf.zeros([3]))[0], [-1, 2]))


def resampled():
    drawn, rates = training.weighted_resample([waves(4, 2)], tf.constant([0.0, 0.0, 0.0, 2.0]), 3.0, seed=3)
    with tf.control_dependencies([tf.assert_equal(drawn[0], waves(4, 2)[3:] * tf.ones_like(drawn[0]))]):
        found["mean"] = [one.name for one in tf.local_variables()]
        return [tf.unique(rates)[0]]


run("resampled by weight", resampled)


def buckets(**settings):
    number = tf.train.range_input_producer(6, num_epochs=1, shuffle=False).dequeue()
    lengths, batches = bucket_by_length(
        number, {"row": tf.fill([number], number), "odd": number % 2}, 2, [3], dynamic_pad=True, **settings)
    return [lengths, batches["odd"], batches["row"]]


def collect(name, build):
    batches = []
    with tf.Graph().as_default():
        made = build()
        with tf.Session() as session:
            session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            ends = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(session, ends)
            try:
                while True:
                    batches.append(plain([one for one in session.run(made)]))
            except tf.errors.OutOfRangeError:
                pass
            ends.request_stop()
            ends.join(threads)
        found[name] = [sorted(batches), [one.shape.as_list() for one in made]]


def in_buckets(which, tensors, **settings):
    number, batches = training.bucket(tensors, which, num_buckets=2, **settings)
    return [number, *(batches if isinstance(batches, list) else [batches])]


once = lambda: tf.train.range_input_producer(7, num_epochs=1, shuffle=False).dequeue()
collect("buckets", buckets)
collect("buckets kept", lambda: buckets(keep_input=tf.constant(True), allow_smaller_final_batch=True,
                                        bucket_capacities=[4, 5]))


def both(**settings):
    number = once()
    return in_buckets(number % 2, [number], **settings)


collect("two", lambda: both(batch_size=3))
collect("of sizes", lambda: both(batch_size=[1, 3], allow_smaller_final_batch=True))


limits = lambda bounds: str([tuple(float(one) for one in pair) for pair in bounds])


class Steps(opt.ExternalOptimizerInterface):
    def _minimize(self, initial_val, loss_grad_func, equality_funcs, equality_grad_funcs, inequality_funcs,
                  inequality_grad_funcs, packed_bounds, step_callback, optimizer_kwargs):
        vector, seen = initial_val, []
        for _ in range(4):
            loss, gradient = loss_grad_func(vector)
            seen.append([np.round(np.asarray(one, "d"), 5) for one in (loss, gradient)])
            vector = vector - optimizer_kwargs["rate"] * gradient
            step_callback(vector)
        others = [one(vector) for one in (equality_funcs + equality_grad_funcs + inequality_funcs
                                          + inequality_grad_funcs)]
        found["outside"] = [seen, [np.round(np.asarray(one[0], "d"), 5) for one in others], limits(packed_bounds)]
        return vector


def minimizer(kind, **settings):
    some, other = tf.get_variable("some", initializer=waves(2, 2)), tf.get_variable("other", initializer=3.0)
    tf.get_variable("unused", initializer=waves(3))
    scale = tf.placeholder(tf.float32, [])
    loss = scale * tf.reduce_sum(tf.square(some - 0.3)) + tf.square(other) * some[0, 0]
    made = kind(loss, var_to_bounds={some: (0.0, [1.0, 2.0])}, equalities=[some[0, 0] - other],
                inequalities=[other * 2], **settings)
    seen, steps = [], []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        made.minimize(session, {scale: 2.0}, [loss, other], lambda vector: steps.append(np.round(vector, 5)),
                      lambda *values: seen.append(np.round(np.asarray(values, "d"), 5)))
        return [np.round(one.astype("d"), 4) for one in session.run(tf.global_variables())], seen, steps


with tf.Graph().as_default():
    found["steps outside"] = minimizer(Steps, rate=0.1)


# scipy.optimize.minimize as it is called: it takes one step, and says what it was given.
def minimize(function, start, jac, callback, method, constraints, bounds, **settings):
    loss, gradient = function(start)
    callback(start - 0.1 * gradient)
    found["scipy"] = [jac, method, limits(bounds), sorted(settings.items()), str(gradient.dtype),
                      [[one["type"], np.round(np.ravel(one["fun"](start)), 5), np.round(np.ravel(one["jac"](start)), 5)]
                       for one in constraints]]
    return type("Result", (dict,), {"message": "done", "fun": float(loss), "nit": 1})(x=start - 0.1 * gradient)


sys.modules["scipy"] = types.SimpleNamespace(optimize=types.SimpleNamespace(minimize=minimize))
sys.modules["scipy.optimize"] = sys.modules["scipy"].optimize
with tf.Graph().as_default():
    found["by scipy"] = minimizer(opt.ScipyOptimizerInterface, method="SLSQP", options={"maxiter": 3})
for setting in ("bounds", "jac"):
    with tf.Graph().as_default():
        try:
            minimizer(opt.ScipyOptimizerInterface, **{setting: None})
        except ValueError as error:
            found["wrong " + setting] = str(error)
with tf.Graph().as_default():
    loads = training.GreedyLoadBalancingStrategy(3, training.byte_size_load_fn)
    chance = training.RandomStrategy(3, seed=2)
    tasks = []
    for number, shape in enumerate([[10], [4, 2], [], [3], [5], [2]]):
        variable = tf.get_variable("v%d" % number, shape, use_resource=number % 2 == 1)
        tasks.append([int(chance(variable.op)), int(loads(variable.op)) if number % 2 == 0 else None])
    found["tasks"] = tasks
    said = profiler.print_model_analysis(
        tf.get_default_graph(), tfprof_options=dict(profiler.TRAINABLE_VARS_PARAMS_STAT_OPTIONS, output="none"))
    found["parameters"] = said.total_parameters
    tf.matmul(waves(2, 3), waves(3, 4))
    said = profiler.print_model_analysis(
        tf.get_default_graph(), tfprof_options=dict(profiler.FLOAT_OPS_OPTIONS, output="none"))
    found["operations"] = said.total_float_ops
"""


def test_names_and_numbers_noted_from_1_15_5(tmp_path: Path) -> None:
    noted, new = json.loads(NOTED.read_text()), run_new(PROGRAM, tmp_path, MODULES)
    assert not {what: (noted[what], new[what]) for what in noted if not close(noted[what], new[what])}


@pytest.mark.skipif(not TENSORFLOW1, reason="no TensorFlow 1.15.5: TF_MIGRATE_TENSORFLOW1_PYTHON is not set")
def test_names_and_numbers_noted_are_those_of_1_15_5(tmp_path: Path) -> None:
    assert close(json.loads(NOTED.read_text()), run_old(PROGRAM, tmp_path, MODULES, SETUP))
