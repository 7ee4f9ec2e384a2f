"""Estimators of tf.contrib.learn, columns of tf.contrib.layers: trained by 1.15.5, then by both: the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.bridge.sides import TENSORFLOW1, run_both
from tests.bridge.test_exports import alike

pytestmark = pytest.mark.tensorflow

SETUP = """\
    import tensorflow, types
    learn, layers = tensorflow.contrib.learn, tensorflow.contrib.layers
    est = types.SimpleNamespace(
        **{"Learn" + name: getattr(learn, name) for name in (
            "Estimator", "LinearClassifier", "LinearRegressor", "DNNClassifier", "DNNRegressor",
            "DNNLinearCombinedClassifier", "DNNLinearCombinedRegressor")},
        **{name: getattr(learn, name) for name in (
            "ModelFnOps", "MetricSpec", "SKCompat", "Experiment", "infer_real_valued_columns_from_input")},
        **{"layers_" + name: getattr(layers, name) for name in (
            "real_valued_column", "bucketized_column", "sparse_column_with_hash_bucket", "sparse_column_with_keys",
            "sparse_column_with_integerized_feature", "weighted_sparse_column", "crossed_column", "one_hot_column",
            "embedding_column", "shared_embedding_columns", "create_feature_spec_for_parsing")},
        SDCAOptimizer=tensorflow.contrib.linear_optimizer.SDCAOptimizer,
        SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY=layers.SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY,
        build_parsing_serving_input_fn=learn.build_parsing_serving_input_fn,
        learn_numpy_input_fn=learn.io.numpy_input_fn,
    )
"""

PROGRAM = """
import functools, shutil

random = np.random.RandomState(1)
ROWS = 24
X = random.normal(size=(ROWS, 2)).astype(np.float32)
WORD = np.array(["a", "b", "c", "zz"])[random.randint(0, 4, (ROWS, 1))]
IDS = random.randint(0, 9, (ROWS, 1))
CLASSES = random.randint(0, 3, ROWS)
BINARY = (CLASSES > 0).astype(np.int32)
NUMBERS = X.sum(axis=1) + 1
W = random.uniform(0.5, 2.0, ROWS).astype(np.float32)
KEYS = np.array([str(row) for row in range(ROWS)])
FEATURES = {"x": X, "key": KEYS, "word": WORD, "word2": WORD[::-1], "id": IDS, "w": W}

real = est.layers_real_valued_column("x", dimension=2, normalizer=lambda value: value * 0.5)
weight = est.layers_real_valued_column("w")
word = est.layers_sparse_column_with_keys("word", ["a", "b", "c"])
hashed = est.layers_sparse_column_with_hash_bucket("word", 7, combiner="sqrtn")
number = est.layers_sparse_column_with_integerized_feature("id", 5)
crossed = est.layers_crossed_column(
    [word, number], 11, hash_key=est.SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY)
bucket = est.layers_bucketized_column(weight, [0.7, 1.3])
WIDE = [word, hashed, number, crossed, bucket, est.layers_weighted_sparse_column(number, "w")]
DEEP = [real, est.layers_embedding_column(word, 3), est.layers_one_hot_column(number), bucket,
        *est.layers_shared_embedding_columns(
            [hashed, est.layers_sparse_column_with_hash_bucket("word2", 7)], 2, combiner="sum")]


def input_fn(labels, epochs=1):
    def made():
        dataset = tf.data.Dataset.from_tensor_slices((FEATURES, labels)).repeat(epochs).batch(8, drop_remainder=True)
        features, answers = tf.data.make_one_shot_iterator(dataset).get_next()
        features["w"] = tf.reshape(features["w"], [-1, 1])
        return features, answers
    return made


def own(d):
    def model_fn(features, targets, mode, params):
        net = tf.layers.dense(features["x"], 1)[:, 0]
        loss = tf.losses.mean_squared_error(targets, net)
        step = tf.train.get_global_step()
        train = tf.group(tf.train.GradientDescentOptimizer(params["rate"]).minimize(loss), tf.assign_add(step, 1))
        return est.ModelFnOps(mode=mode, predictions={"y": net}, loss=loss, train_op=train)

    return est.LearnEstimator(model_fn, model_dir=d, params={"rate": 0.1})


PROGRAMS = {
    "linear": (lambda d: est.LearnLinearClassifier(WIDE, d), BINARY),
    "linear of 3": (
        lambda d: est.LearnLinearClassifier(
            WIDE + [real], d, n_classes=3, weight_column_name="w", gradient_clip_norm=0.1,
            optimizer=tf.train.GradientDescentOptimizer(0.2)),
        CLASSES[:, None]),
    "linear numbers": (lambda d: est.LearnLinearRegressor([real, number], d), NUMBERS),
    "deep": (lambda d: est.LearnDNNClassifier([6, 4], DEEP, d), BINARY),
    "deep of 3": (
        lambda d: est.LearnDNNClassifier([5], DEEP, d, n_classes=3, activation_fn=tf.nn.tanh, gradient_clip_norm=0.2,
                                         optimizer=lambda: tf.train.AdamOptimizer(0.01)),
        CLASSES),
    "deep numbers": (lambda d: est.LearnDNNRegressor([4], DEEP, d, weight_column_name="w", label_dimension=1), NUMBERS),
    "both": (
        lambda d: est.LearnDNNLinearCombinedClassifier(
            d, linear_feature_columns=WIDE, dnn_feature_columns=DEEP, dnn_hidden_units=[4, 3],
            fix_global_step_increment_bug=True),
        BINARY),
    "both numbers": (
        lambda d: est.LearnDNNLinearCombinedRegressor(
            d, linear_feature_columns=WIDE, dnn_feature_columns=DEEP, dnn_hidden_units=[4]), NUMBERS),
    "own": (own, NUMBERS),
}


def losses(estimator, labels, steps):
    class Losses(tf.train.SessionRunHook):
        seen = []

        def before_run(self, context):
            return tf.train.SessionRunArgs(tf.get_collection(tf.GraphKeys.LOSSES)[-1])

        def after_run(self, context, values):
            Losses.seen.append(float(np.sum(values.results)))

    estimator.fit(input_fn=input_fn(labels, None), steps=steps, monitors=[Losses()])
    return Losses.seen


for name, (make, labels) in PROGRAMS.items():
    folder = os.path.join(FOLDER, name.replace(" ", "_"))
    if OLD:
        make(folder).fit(input_fn=input_fn(labels), steps=2)
        shutil.copytree(folder, folder + "-kept")
    else:
        shutil.rmtree(folder)
        shutil.copytree(folder + "-kept", folder)
    estimator = make(folder)
    seen = losses(estimator, labels, 6)
    names = [n for n, _ in tf.train.list_variables(folder)]
    more = {}
    if name == "own":
        more = {"metrics": {
            ("far", "y"): lambda predictions, labels: tf.metrics.mean_absolute_error(labels, predictions)}}
    elif name == "deep":
        more = {"metrics": {
            "sum": est.MetricSpec(tf.metrics.mean, prediction_key="classes", weight_key="w"),
            "right": est.MetricSpec(tf.metrics.accuracy, prediction_key="classes")}}
    found[name] = {
        "predictions": [value for value in estimator.predict(input_fn=input_fn(labels))],
        "losses": seen,
        "last": dict(estimator.evaluate(input_fn=input_fn(labels), **more)),
        "variables": {"names": names, **{n: tf.train.load_variable(folder, n) for n in names}},
    }
    if hasattr(estimator, "predict_proba"):
        found[name]["probabilities"] = list(estimator.predict_proba(input_fn=input_fn(labels)))

# Which argument of a metric's function gets the labels, the predictions and the weights.
def first(target, guess, weight=None):
    return tf.reduce_sum(target * (1.0 if weight is None else weight) - 2 * guess)

def second(guess, label):
    return tf.reduce_sum(guess - 2 * label)

def scaled(scale, logits):
    return tf.reduce_sum(scale * logits)

found["metrics"] = {}
for key, function, settings in (
    ("mean", tf.metrics.mean, {}), ("weighted", tf.metrics.mean, {"weight_key": "w"}),
    ("error", tf.metrics.mean_absolute_error, {"label_key": "two", "weight_key": "w"}),
    ("first", first, {"label_key": "one"}), ("weighted first", first, {"label_key": "two", "weight_key": "w"}),
    ("second", second, {"label_key": "two"}), ("scaled", functools.partial(scaled, 3.0), {"label_key": "one"}),
    ("lambda", lambda values: tf.reduce_max(values), {"label_key": None}),
):
    with tf.Graph().as_default(), tf.Session() as session:
        several = {"one": tf.constant([1.0, 5.0, 2.0]), "two": tf.constant([3.0, 0.5, 7.0])}
        if not settings.get("label_key"):
            several.pop("two")
        try:
            spec = est.MetricSpec(function, prediction_key="y", **settings)
            ops = spec.create_metric_ops(
                {"w": tf.constant([1.0, 2.0, 4.0])}, several, {"y": tf.constant([0.0, 1.0, 6.0]), "z": tf.zeros([3])})
        except ValueError as error:
            found["metrics"][key] = "ValueError"
            continue
        session.run(tf.local_variables_initializer())
        found["metrics"][key] = session.run(ops[1] if isinstance(ops, tuple) else ops)

if OLD:
    tf.disable_resource_variables()  # its SDCAOptimizer takes no others
for name, make, labels in (
    ("sdca numbers", est.LearnLinearRegressor, NUMBERS), ("sdca classes", est.LearnLinearClassifier, BINARY[:, None])
):
    optimizer = est.SDCAOptimizer("key", symmetric_l1_regularization=0.1, symmetric_l2_regularization=1.5)
    columns = [real, word, number] if make is est.LearnLinearRegressor else WIDE
    estimator = make(columns, os.path.join(FOLDER, name + sys.argv[1]), weight_column_name="w", optimizer=optimizer)
    losses(estimator, labels, 150)  # it draws examples at random, and comes to the same end
    found[name] = {
        "last": dict(estimator.evaluate(input_fn=input_fn(labels))),
        "weights": {
            n: estimator.get_variable_value(n)
            for n in estimator.get_variable_names() if n.endswith(("weight", "weights"))
        },
    }

folder = os.path.join(FOLDER, "rows")
columns = est.infer_real_valued_columns_from_input(X)
make = lambda: est.LearnDNNClassifier([4], columns, folder, n_classes=3)
if OLD:
    make().fit(X, CLASSES, steps=1)
    shutil.copytree(folder, folder + "-kept")
else:
    shutil.rmtree(folder)
    shutil.copytree(folder + "-kept", folder)
estimator = est.SKCompat(make().fit(X, CLASSES, steps=3))
estimator.fit(X, CLASSES[:, None], batch_size=5, steps=7)  # the order of the rows is always the same
found["rows"] = {
    "score": dict(estimator.score(X, CLASSES)),
    "predictions": {key: value.tolist() for key, value in make().predict(
        X, outputs=["classes", "probabilities"], as_iterable=False).items()} if not OLD else {
            key: value.tolist() for key, value in estimator.predict(X, outputs=["classes", "probabilities"]).items()},
    "all": estimator.predict(X, batch_size=7, outputs=["classes"])["classes"].tolist(),
}
found["spec"] = {key: str(value) for key, value in est.layers_create_feature_spec_for_parsing(WIDE + DEEP).items()}

serving = est.build_parsing_serving_input_fn(est.layers_create_feature_spec_for_parsing([real]))
exported = est.LearnLinearRegressor([real], os.path.join(FOLDER, sys.argv[1] + "-serving"))
exported.fit(input_fn=est.learn_numpy_input_fn({"x": X}, NUMBERS, shuffle=False), steps=1)
path = exported.export_savedmodel(os.path.join(FOLDER, sys.argv[1] + "-export"), serving)
with tf.Graph().as_default(), tf.Session() as session:
    signatures = tf.saved_model.loader.load(session, ["serve"], os.fsdecode(path)).signature_def
    found["export"] = {key: signatures[key].method_name for key in signatures if key == "serving_default"}
"""

NAMES = ("linear", "linear of 3", "linear numbers", "deep", "deep of 3", "deep numbers", "both", "both numbers", "own")
MODULES = ("contrib_learn", "contrib_columns", "contrib_learn_models", "contrib_sdca")


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    if not TENSORFLOW1:
        pytest.skip("tf.contrib.learn is in TensorFlow 1.15.5: set TF_MIGRATE_TENSORFLOW1_PYTHON")
    return run_both(PROGRAM, tmp_path_factory.mktemp("learn"), MODULES, setup=SETUP)


@pytest.mark.parametrize("name", NAMES)
def test_it_goes_on_like_tensorflow1(name: str, sides: tuple[dict[str, Any], dict[str, Any]]) -> None:
    old, new = sides
    for part, expected in old[name].items():
        assert alike(expected, new[name][part]), (part, expected, new[name][part])
    assert len(new[name]["losses"]) >= 3 and len(set(new[name]["losses"])) > 1


@pytest.mark.parametrize("name", ["sdca numbers", "sdca classes"])
def test_it_comes_to_the_same_end(name: str, sides: tuple[dict[str, Any], dict[str, Any]]) -> None:
    old, new = ({**side[name]["last"], **side[name]["weights"]} for side in sides)
    assert old.keys() == new.keys()
    for key, expected in old.items():
        np.testing.assert_allclose(new[key], expected, rtol=1e-3, atol=1e-3, err_msg=key)


@pytest.mark.parametrize("name", ["rows", "spec", "export", "metrics"])
def test_rows_specs_and_exports(name: str, sides: tuple[dict[str, Any], dict[str, Any]]) -> None:
    old, new = sides
    assert alike(old[name], new[name]), (old[name], new[name])
