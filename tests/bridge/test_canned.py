"""Canned Estimators and heads: trained by TensorFlow 1, then by both from its checkpoint: the same numbers.

Both sides predict, train on and evaluate, from the folder that the old side has trained for two steps.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.bridge.sides import TENSORFLOW1, run_both
from tests.bridge.test_exports import alike

pytestmark = pytest.mark.tensorflow

SETUP = """\
    import types
    est = types.SimpleNamespace(**{name: getattr(tf.estimator, name) for name in dir(tf.estimator) if name[0] != "_"})
    from tensorflow_estimator.python.estimator.canned import head as head_lib
    try:
        from tensorflow_estimator.contrib.estimator.python.estimator import head as heads
        from tensorflow_estimator.contrib.estimator.python.estimator import multi_head
        vars(est).update(vars(heads))
        est.multi_head = multi_head.multi_head
    except ImportError:
        pass
"""

PROGRAM = """
import shutil

fc = tf.feature_column
WORDS = ["a", "b", "c"]
random = np.random.RandomState(1)
ROWS = 24
X = random.normal(size=(ROWS, 2)).astype(np.float32)
WORD = np.array(WORDS + ["zz"])[random.randint(0, 4, ROWS)]
IDS = random.randint(0, 5, ROWS)
CLASSES = random.randint(0, 3, ROWS)
W = random.uniform(0.5, 2.0, ROWS).astype(np.float32)
FEATURES = {"x": X, "word": WORD, "id": IDS, "w": W}


def input_fn(labels, epochs=1):
    return lambda: tf.data.Dataset.from_tensor_slices((FEATURES, labels)).repeat(epochs).batch(8)


word = fc.categorical_column_with_vocabulary_list("word", WORDS)
identity = fc.categorical_column_with_identity("id", 5)
x = fc.numeric_column("x", shape=(2,), normalizer_fn=lambda value: value * 0.5)
crossed = fc.crossed_column(["word", "id"], 11)
bucket = fc.bucketized_column(fc.numeric_column("w"), [0.7, 1.3])
WIDE = [word, identity, crossed, bucket]
DEEP = [x, fc.embedding_column(word, 3), fc.indicator_column(identity)]
SUM = tf.losses.Reduction.SUM
MEAN = tf.losses.Reduction.SUM_OVER_BATCH_SIZE


def adam():
    return tf.train.AdamOptimizer(tf.train.exponential_decay(0.1, tf.train.get_global_step(), 2, 0.5))


split = tf.fixed_size_partitioner(2)
BINARY = (CLASSES > 0).astype(np.int32)
NAMES = np.array(WORDS)[CLASSES]
SIGNS = np.array(["no", "yes"])[BINARY]
NUMBERS = X.sum(axis=1) + 1
COUNTS = CLASSES.astype(np.float32)
MULTI = np.stack([CLASSES == 0, CLASSES > 0, X[:, 0] > 0], axis=1).astype(np.int64)
PROGRAMS = {
    "deep": (lambda d: est.DNNClassifier([6, 4], DEEP, d, dropout=None), BINARY),
    "deep, all settings": (
        lambda d: est.DNNClassifier(
            hidden_units=[5], feature_columns=DEEP, model_dir=d, n_classes=3, weight_column="w", label_vocabulary=WORDS,
            optimizer=adam, activation_fn=tf.nn.tanh, batch_norm=True, loss_reduction=MEAN,
            input_layer_partitioner=split,
        ),
        NAMES,
    ),
    "deep numbers": (
        lambda d: est.DNNRegressor(
            [4], DEEP, d, label_dimension=2, weight_column=fc.numeric_column("w"), optimizer="SGD"
        ),
        X,
    ),
    "wide": (lambda d: est.LinearClassifier(WIDE, d, label_vocabulary=["no", "yes"]), SIGNS),
    "wide of 3": (lambda d: est.LinearClassifier(WIDE + [x], d, n_classes=3, optimizer=None), CLASSES),
    "wide numbers": (
        lambda d: est.LinearRegressor(WIDE, d, weight_column="w", optimizer=tf.train.AdagradOptimizer(0.1),
                                      sparse_combiner="mean", loss_reduction=MEAN, partitioner=split),
        NUMBERS,
    ),
    "wide and deep": (lambda d: est.DNNLinearCombinedClassifier(d, WIDE, "Ftrl", DEEP, "Adam", [4, 3]), BINARY),
    "wide and deep numbers": (
        lambda d: est.DNNLinearCombinedRegressor(
            model_dir=d, linear_feature_columns=WIDE, dnn_feature_columns=DEEP, dnn_hidden_units=[4], batch_norm=True,
            dnn_optimizer=adam, linear_optimizer=tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01),
        ),
        NUMBERS,
    ),
    "baseline": (lambda d: est.BaselineClassifier(d, n_classes=3, weight_column="w"), CLASSES),
    "baseline numbers": (lambda d: est.BaselineRegressor(d, optimizer="RMSProp"), NUMBERS),
}


def own(head, optimizer=lambda: tf.train.MomentumOptimizer(0.05, 0.9), **more):
    def model_fn(features, labels, mode):
        net = tf.feature_column.input_layer(features, DEEP)
        logits = tf.layers.dense(net, head.logits_dimension)
        regularization = [1e-2 * tf.nn.l2_loss(v) for v in tf.trainable_variables()] if more else None
        keywords = {"regularization_losses": regularization} if more else {}
        return head.create_estimator_spec(
            features=features, mode=mode, labels=labels, logits=logits,
            train_op_fn=lambda loss: optimizer().minimize(loss, global_step=tf.train.get_global_step()), **keywords
        )

    return lambda d: est.Estimator(model_fn, model_dir=d)


def cubed(labels, logits):
    return tf.abs(labels - logits) ** 3


if not OLD or hasattr(est, "multi_label_head"):
    binary = est.binary_classification_head("w", thresholds=[0.25, 0.5], name="b", loss_reduction=SUM)
    PROGRAMS.update({
        "binary head": (own(binary, more=True), BINARY),
        "multi class head": (own(est.multi_class_head(3, label_vocabulary=WORDS)), NAMES),
        "regression head": (own(est.regression_head("w", loss_fn=cubed, name="r"), more=True), NUMBERS),
        "poisson head": (own(est.poisson_regression_head("w")), COUNTS),
        "logistic head": (own(est.logistic_regression_head()), BINARY.astype(np.float32)),
        "multi label head": (
            own(est.multi_label_head(3, thresholds=[0.5], classes_for_class_based_metrics=[0, 2])), MULTI),
        "multi label head of words": (
            own(est.multi_label_head(3, "w", label_vocabulary=WORDS, classes_for_class_based_metrics=["b"])), MULTI),
        "two heads": (
            own(est.multi_head(
                [est.multi_class_head(3, name="kind"), est.regression_head(name="size")], head_weights=[1.0, 0.5])),
            {"kind": CLASSES, "size": NUMBERS}),
    })


def losses(estimator, labels, steps):
    class Losses(tf.train.SessionRunHook):
        seen = []

        def before_run(self, context):
            return tf.train.SessionRunArgs(tf.get_collection(tf.GraphKeys.LOSSES)[0])

        def after_run(self, context, values):
            Losses.seen.append(float(np.sum(values.results)))

    estimator.train(input_fn(labels, None), steps=steps, hooks=[Losses()])
    return Losses.seen


for name, (make, labels) in PROGRAMS.items():
    folder = os.path.join(FOLDER, name.replace(" ", "_").replace(",", ""))
    if OLD:
        make(folder).train(input_fn(labels), steps=2)
        shutil.copytree(folder, folder + "-kept")
    else:
        shutil.rmtree(folder)
        shutil.copytree(folder + "-kept", folder)
    estimator = make(folder)
    predictions = [{str(key): value for key, value in row.items()} for row in estimator.predict(input_fn(labels))]
    seen = losses(estimator, labels, 5)
    names = [n for n, _ in tf.train.list_variables(folder)]
    whole = [n for n in names if "/t_" not in n and "/part_" not in n]  # slots of split variables are slices
    variables = {"names": names, **{n: tf.train.load_variable(folder, n) for n in whole}}
    found[name] = {
        "predictions": predictions[:4],
        "losses": seen,
        "last": dict(estimator.evaluate(input_fn(labels))),
        "variables": variables,
    }

with tf.Graph().as_default():
    plain_spec = lambda spec: {key: [type(value).__name__, str(value)] for key, value in spec.items()}
    columns = [word, identity, bucket]
    parse = est.classifier_parse_example_spec(columns, "label", label_dtype=tf.string, weight_column="weight")
    found["classifier spec"] = plain_spec(parse)
    found["regressor spec"] = plain_spec(est.regressor_parse_example_spec(DEEP, "label", label_dimension=2))


def error(call, *arguments, **keywords):
    try:
        call(*arguments, **keywords)
    except Exception as wrong:
        return type(wrong).__name__
    return None


found["errors"] = [
    error(est.DNNLinearCombinedClassifier),
    error(est.LinearClassifier, WIDE, n_classes=1),
    error(est.LinearClassifier, WIDE, loss_reduction="none"),
    error(est.classifier_parse_example_spec, WIDE, "word"),
]
"""

NAMES = (
    "deep",
    "deep, all settings",
    "deep numbers",
    "wide",
    "wide of 3",
    "wide numbers",
    "wide and deep",
    "wide and deep numbers",
    "baseline",
    "baseline numbers",
    "binary head",
    "multi class head",
    "regression head",
    "poisson head",
    "logistic head",
    "multi label head",
    "multi label head of words",
    "two heads",
)


MODULES = ("specs", "exporting", "heads", "estimator", "canned")


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    if not TENSORFLOW1:
        pytest.skip("2.15 has no heads of tf.contrib.estimator: set TF_MIGRATE_TENSORFLOW1_PYTHON")
    return run_both(PROGRAM, tmp_path_factory.mktemp("canned"), MODULES, setup=SETUP)


@pytest.mark.parametrize("name", NAMES)
def test_it_goes_on_like_tensorflow1(name: str, sides: tuple[dict[str, Any], dict[str, Any]]) -> None:
    old, new = sides
    if name not in old:
        pytest.skip("this needs tf.contrib of TensorFlow 1.15.5")
    for part in ("predictions", "losses", "last", "variables"):
        assert alike(old[name][part], new[name][part]), (part, old[name][part], new[name][part])
    assert len(new[name]["losses"]) == 5 and len(set(new[name]["losses"])) > 1


@pytest.mark.parametrize("case", ["classifier spec", "regressor spec", "errors"])
def test_what_is_read(case: str, sides: tuple[dict[str, Any], dict[str, Any]]) -> None:
    old, new = sides
    assert old[case] == new[case]
