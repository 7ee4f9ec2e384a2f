"""Functions of tf.contrib.nn, framework, layers, data, lookup and learn.datasets: numbers of TensorFlow 1.15.5."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bridge.sides import TENSORFLOW1, run_new, run_old
from tests.bridge.test_core import close

pytestmark = pytest.mark.tensorflow

SETUP = """\
    import tensorflow
    contrib = tensorflow.contrib
    from tensorflow.python.estimator import model_fn as keys
"""
MODULES = ("contrib_others",)
NOTED = Path(__file__).with_name("noted") / "contrib_others.json"
PROGRAM = """
if OLD:
    nn, framework, layers, data = contrib.nn, contrib.framework, contrib.layers, contrib.data
    learn = contrib.learn.datasets
    flipped = lambda name: getattr(nn, "deprecated_flipped_%s_with_logits" % name)
    py_func, table, csv = framework.py_func, contrib.lookup.MutableHashTable, learn.base
else:
    nn = framework = layers = data = learn = csv = keys = est
    flipped = lambda name: getattr(est, "flipped_" + name)
    py_func, table = est.contrib_py_func, est.mutable_hash_table
X = np.random.RandomState(0).randn(4, 3).astype("f")


def run(name, build):
    with tf.Graph().as_default():
        tf.set_random_seed(7)
        made = tf.nest.flatten(build(tf.constant(X)))
        found[name + " shapes"] = [one.shape.as_list() if one.shape.rank is not None else None for one in made]
        with tf.Session() as session:
            session.run([tf.global_variables_initializer(), tf.tables_initializer()])
            found[name] = [np.round(one.astype("d"), 6) for one in session.run(made)]


run("alpha dropout", lambda x: [nn.alpha_dropout(x, 0.6, seed=3), nn.alpha_dropout(x, 0.3, [4, 1], 5)])
run("kept", lambda x: nn.alpha_dropout(x, 1.0))
run("kept by a tensor", lambda x: nn.alpha_dropout(x, tf.placeholder_with_default(0.5, []), seed=1))
run("softplus", lambda x: [nn.scaled_softplus(x, 0.5), nn.scaled_softplus(x, 2.0, 1.5)])
run("flipped", lambda x: [
    flipped("sigmoid_cross_entropy")(x, tf.sigmoid(x)), flipped("softmax_cross_entropy")(x, tf.nn.softmax(x * 2)),
    flipped("sparse_softmax_cross_entropy")(x, tf.constant([0, 1, 2, 0]))])
run("known", lambda x: framework.smart_cond(True, lambda: x, lambda: tf.zeros([])))
run("one or zero", lambda x: framework.smart_cond(0, lambda: x, lambda: tf.zeros([])))
run("known tensor", lambda x: framework.smart_cond(tf.constant(False), lambda: x, lambda: tf.zeros([])))
run("unknown", lambda x: framework.smart_cond(tf.placeholder_with_default(True, []), lambda: x, lambda: x * 2))
run("python", lambda x: py_func(
    lambda a, b, c: {"sum": a + b[0], "row": a[0] * c}, [x, [x * 2]], {"c": tf.constant(3.0)},
    {"sum": tf.float32, "row": tf.float32}, {"sum": [4, 3], "row": [None]}))


def lookup(x, **settings):
    ids = tf.SparseTensor([[0, 0], [0, 2], [2, 0], [2, 1]], tf.constant([0, 2, 1, -1], tf.int64), [4, 3])
    weights = tf.SparseTensor(ids.indices, tf.constant([1.0, 2.0, 0.5, 3.0]), [4, 3])
    return [layers.safe_embedding_lookup_sparse([x], ids, **settings),
            layers.safe_embedding_lookup_sparse([x[:2], x[2:]], ids, weights, default_id=1, **settings)]


run("lookup", lambda x: lookup(x))
run("lookup of sums", lambda x: lookup(x, combiner="sum", max_norm=1.0))


def tables(x):
    made = table(tf.string, tf.int64, -1)
    insert = made.insert(tf.constant(["a", "b"]), tf.constant([4, 5], tf.int64))
    with tf.control_dependencies([insert]):
        return [made.lookup(tf.constant(["b", "c"])), made.size()]


run("table", tables)
numbers = lambda: tf.data.Dataset.range(7).map(lambda x: tf.fill([tf.cast(x, tf.int32)], x))
once = lambda dataset: tf.data.make_one_shot_iterator(dataset).get_next()
run("padded", lambda x: once(numbers().apply(data.padded_batch_and_drop_remainder(4, [None]))))
run("sloppy", lambda x: once(tf.data.Dataset.range(3).apply(
    data.sloppy_interleave(lambda one: tf.data.Dataset.from_tensors(one * 0), 2)).batch(3)))
iris = learn.load_dataset("iris")
found["iris"] = [iris.data, iris.target, str(iris.data.dtype), str(iris.target.dtype)]
with open(os.path.join(FOLDER, "a.csv"), "w") as file:
    file.write("2,3,a,b\\n1,2,3,0\\n4,5,6.5,1\\n")
with open(os.path.join(FOLDER, "b.csv"), "w") as file:
    file.write("1,2,3,0\\n4,5,6.5,1\\n")
for made in (csv.load_csv_with_header(os.path.join(FOLDER, "a.csv"), np.int64, np.float32),
             csv.load_csv_without_header(os.path.join(FOLDER, "b.csv"), np.int64, np.float32, 0)):
    found["csv %d" % len(found)] = [made.data, made.target, str(made.data.dtype), str(made.target.dtype)]
from_there = "file://" + os.path.join(FOLDER, "b.csv")
for _ in range(2):
    path = csv.maybe_download("c.csv", os.path.join(FOLDER, "new"), from_there)
    found["downloaded"] = [os.path.relpath(path, FOLDER), open(path).read()]
    from_there = "file:///nowhere"  # the second time it is there
csv.shrink_csv(path, 2)
found["shrunk"] = open(path.replace(".", "_small.")).read()
found["keys"] = [keys.LOSS_METRIC_KEY, keys.AVERAGE_LOSS_METRIC_KEY]
"""


def test_numbers_noted_from_1_15_5(tmp_path: Path) -> None:
    noted, new = json.loads(NOTED.read_text()), run_new(PROGRAM, tmp_path, MODULES)
    assert not {what: (noted[what], new[what]) for what in noted if not close(noted[what], new[what])}


@pytest.mark.skipif(not TENSORFLOW1, reason="no TensorFlow 1.15.5: TF_MIGRATE_TENSORFLOW1_PYTHON is not set")
def test_numbers_noted_are_those_of_1_15_5(tmp_path: Path) -> None:
    assert close(json.loads(NOTED.read_text()), run_old(PROGRAM, tmp_path, MODULES, SETUP))
