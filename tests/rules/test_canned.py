"""Canned Estimators and heads: what is written out for them, and what is refused."""

from __future__ import annotations

import re

import pytest

from migrator.findings import Severity
from migrator.program.spread import Edit, Kept, Written, spread
from tests.rules.programs import run, run_project

TOP = """\
import tensorflow as tf
import tensorflow.compat.v1 as tf1

# where the data come from
def input_fn():
    return tf.data.Dataset.from_tensor_slices(({"x": [1.0, 2.0]}, [0, 1])).batch(2)


def main():
    columns = [tf.feature_column.numeric_column("x")]
"""
DRIVE = """\
    estimator.train(input_fn, steps=3)
    print(estimator.evaluate(input_fn))


main()
"""


def canned(made: str, before: str = "", drive: str = DRIVE) -> str:
    return f"{TOP}{before}    estimator = {made}\n{drive}"


def migrated(text: str) -> str:
    new, findings = run(text)
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    compile(new, "new", "exec")
    return new


def test_a_deep_classifier_of_tensorflow1() -> None:
    new = migrated(canned("tf1.estimator.DNNClassifier([8, 4], columns, dropout=0.1, model_dir='m')"))
    assert "def dnn_classifier(features, feature_columns):" in new
    assert "net = tf.keras.layers.DenseFeatures(feature_columns)(features)" in new
    assert "for units in [8, 4]:" in new
    assert "legacy.Adagrad(learning_rate=0.05, initial_accumulator_value=0.1, epsilon=1e-30)" in new
    assert "loss = tf.reduce_sum(losses)" in new
    assert "model = dnn_classifier(make_inputs(input_fn()), feature_columns=columns)" in new
    assert "# where the data come from\ndef input_fn" in new


def test_the_same_of_tensorflow2() -> None:
    new = migrated(canned("tf.estimator.DNNClassifier([8, 4], columns)"))
    assert (
        "tf.keras.optimizers.legacy.Adagrad(learning_rate=0.001, initial_accumulator_value=0.1, epsilon=1e-07)" in new
    )
    assert "reduce_sum(losses)" not in new


def test_a_version_that_nothing_tells() -> None:
    text = canned("tf.estimator.LinearRegressor(columns)").replace("import tensorflow.compat.v1 as tf1\n", "")
    new, findings = run(text)
    assert "loss = tf.reduce_sum(losses)" in new
    assert [f.line for f in findings if f.code == "TFM191"] == [text[: text.index("LinearReg")].count("\n") + 1]
    explicit = 'columns, optimizer="SGD", loss_reduction=tf.losses.Reduction.SUM'
    _, findings = run(text.replace("LinearRegressor(columns", f"LinearRegressor({explicit}"))
    assert "TFM191" not in {f.code for f in findings}
    _, findings = run(text.replace("# where", "tf.logging.info('a')\n# where"))
    assert "TFM191" not in {f.code for f in findings}


def test_a_linear_model() -> None:
    new = migrated(canned("tf1.estimator.LinearClassifier(columns, n_classes=3)"))
    assert "logits = linear_model(features, feature_columns, units=3)" in new
    assert "def linear_model(features, columns, units=1" in new and "class Bias(" in new
    assert "optimizer = tf.keras.optimizers.legacy.Ftrl(learning_rate=0.2)" in new


def test_columns_that_are_called_like_what_an_estimator_gives() -> None:
    text = canned("tf1.estimator.LinearClassifier(features, n_classes=3)")
    new = migrated(text.replace("columns = [", "features = ["))
    assert "model = linear_classifier(make_inputs(input_fn()), feature_columns=features)" in new


def test_two_of_one_kind_share_a_function() -> None:
    made = "tf1.estimator.LinearClassifier(columns)\n    other = tf1.estimator.LinearClassifier(columns)"
    new = migrated(canned(made, drive=f"    other.train(input_fn, steps=2)\n{DRIVE}"))
    assert new.count("def linear_classifier") == 1


def test_an_optimizer_with_a_name_moves_into_the_function() -> None:
    before = "    rate = 0.1\n    optimizer = tf1.train.AdamOptimizer(rate)\n"
    new = migrated(canned("tf1.estimator.DNNRegressor([2], columns, optimizer=optimizer)", before))
    assert "def dnn_regressor(features, feature_columns, rate):" in new
    assert new.count("tf.keras.optimizers.legacy.Adam(") == 1 and "feature_columns=columns, rate=rate)" in new


COMBINED = "tf1.estimator.DNNLinearCombinedClassifier(linear_feature_columns=columns, dnn_feature_columns=columns, {})"


def test_a_wide_and_deep_classifier() -> None:
    new = migrated(canned(COMBINED.format("dnn_hidden_units=[4], linear_optimizer='SGD'")))
    assert "def wide_and_deep_classifier(features, dnn_feature_columns, linear_feature_columns):" in new
    assert "logits = dnn_logits + linear_logits" in new
    deep = "tf.keras.optimizers.legacy.Adagrad(learning_rate=0.001, initial_accumulator_value=0.1, epsilon=1e-30)"
    assert f"deep={deep}," in new
    assert "linear=tf.keras.optimizers.legacy.SGD(learning_rate=0.005)," in new
    assert "class WideAndDeepOptimizer(tf.keras.optimizers.legacy.Optimizer):" in new


MADE = """\
def make(kind):
    if kind == "one":
        optimizer = lambda: tf.keras.optimizers.legacy.Ftrl(
            l1_regularization_strength=0.01,
            learning_rate=tf1.train.exponential_decay(0.5, tf1.train.get_global_step(), 2, 0.5),
        )
    elif kind == "other":
        optimizer = tf.keras.optimizers.Adam(0.1)
    return optimizer


"""
SCRIPT = """\
columns = [tf.feature_column.numeric_column("x")]
optimizer = make("one")
estimator = tf.estimator.DNNLinearCombinedEstimator(
    head=tf.estimator.BinaryClassHead(), linear_feature_columns=columns, dnn_feature_columns=columns,
    dnn_hidden_units=[2], linear_optimizer=optimizer, dnn_optimizer=optimizer)
estimator.train(input_fn)
optimizer = make("other")
print(optimizer)
"""


def made_by(script: str = SCRIPT, function: str = MADE) -> str:
    return TOP[: TOP.index("def main")] + function + script


def test_an_optimizer_that_a_function_makes_for_a_constant() -> None:
    new = migrated(made_by())
    assert 'def make(kind):\n    if kind == "other":\n        optimizer = tf.keras.optimizers.legacy.Adam(0.1)\n' in new
    assert new.count("tf.keras.optimizers.legacy.Ftrl(l1_regularization_strength=0.01, learning_rate=tf.keras.") == 2
    assert "TFM425" in [f.code for f in run(made_by())[1]]
    assert "ExponentialDecay(0.5, 2, 0.5)" in new
    assert new.endswith('optimizer = make("other")\nprint(optimizer)\n') and new.count("make(") == 2
    alone = migrated(made_by(SCRIPT[: SCRIPT.index('optimizer = make("other")')]))
    assert "def make(" not in alone and '"one"' not in alone


CHOSEN = """\
RATE = 0.1


def make(kind):
    if kind == "one":
        optimizer = tf1.train.AdagradOptimizer(RATE)
    elif kind == "other":
        optimizer = tf1.train.FtrlOptimizer(0.2)
    return optimizer


"""
LOCAL = """\
def main():
    columns = [tf.feature_column.numeric_column("x")]
    estimator = tf.estimator.DNNClassifier([2], columns, optimizer=make("one"))
    estimator.train(input_fn)


main()
"""


@pytest.mark.parametrize(
    "other", ["    RATE = 0.5\n    print(RATE)\n", "    for RATE in [0.5]:\n        print(RATE)\n"]
)
def test_a_name_that_means_something_else_at_the_call(other: str) -> None:
    assert "Adagrad(learning_rate=RATE" in migrated(made_by(LOCAL, CHOSEN))
    text = made_by(LOCAL.replace("def main():\n", "def main():\n" + other), CHOSEN)
    result, findings = run(text)
    assert result == text and "TFM190" in [f.code for f in findings if f.severity is Severity.MANUAL]


def test_a_function_that_another_file_calls_stays() -> None:
    texts = {"train.py": made_by(), "other.py": "from train import make\n\nprint(make('one'))\n"}
    new = run_project(texts)
    assert 'if kind == "one":' in new["train.py"][0] and 'elif kind == "other":' in new["train.py"][0]


def test_a_linear_model_beside_a_name_of_its_function() -> None:
    new = migrated(canned("tf1.estimator.LinearRegressor(columns)", "    linear_model = 1\n    print(linear_model)\n"))
    assert "def linear_model_2(features, columns" in new and "logits = linear_model_2(features" in new


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("        optimizer = lambda: tf.", "        optimizer = tf.", "TFM190"),  # one object in both parts
        (
            "legacy.Ftrl(\n            l1_regularization_strength=0.01,",
            "Adam(\n            weight_decay=0.8,",
            "TFM190",
        ),
        ('kind == "one"', "kind in NAMES", "TFM190"),
        ("    return optimizer", "    print(optimizer)\n    return optimizer", "TFM190"),
        ("make(kind)", "make(kind, *more)", ""),
        ('make("one")', "make(*kinds)", "TFM190"),
        ("estimator.train(input_fn)", "estimator.train(input_fn)\nprint(optimizer)", "TFM190"),
        ("estimator.train(input_fn)", "estimator.train(input_fn)\n\ndef f():\n    print(optimizer)\n", "TFM190"),
    ],
)
def test_made_by_functions_that_are_refused(old: str, new: str, code: str) -> None:
    text = made_by().replace(old, new)
    assert text != made_by()
    result, findings = run(text)
    if not code:
        assert "def make(kind, *more):" in migrated(text)
        return
    assert result == text and code in [f.code for f in findings if f.severity is Severity.MANUAL]


@pytest.mark.parametrize(
    ("made", "code", "word"),
    [
        (COMBINED.format("linear_optimizer=None, dnn_hidden_units=[2]"), "TFM190", "optimizer=None"),
        (COMBINED.format(""), "TFM190", "hidden units"),
        ("tf1.estimator.DNNClassifier([2], columns, dropout=net)", "TFM190", "`net`"),
        ("tf1.estimator.LinearClassifier(columns, n_classes=count())", "TFM192", "n_classes"),
        ("tf1.estimator.LinearClassifier(columns, label_vocabulary=['a', 'b'])", "TFM192", "label_vocabulary"),
        ("tf1.estimator.LinearClassifier(columns, optimizer=None)", "TFM190", "optimizer=None"),
        ("tf1.estimator.LinearClassifier(columns, optimizer='Lion')", "TFM190", "no optimizer of this name"),
        ("tf1.estimator.DNNClassifier([2], columns, input_layer_partitioner=f)", "TFM701", "partitioner"),
        ("tf1.estimator.DNNEstimator(tf1.estimator.MultiLabelHead(3), [2], columns)", "TFM190", "head"),
        ("tf1.estimator.BoostedTreesClassifier(columns, 1)", "TFM102", "BoostedTrees"),
    ],
)
def test_what_is_refused(made: str, code: str, word: str) -> None:
    text = canned(made)
    new, findings = run(text)
    assert new == text
    (finding,) = [f for f in findings if f.severity is Severity.MANUAL]
    assert finding.code == code and word in finding.message
    assert finding.line == text[: text.index("    estimator = ")].count("\n") + 1


def test_places_behind_what_was_written_out() -> None:
    text = canned("tf1.estimator.LinearClassifier(columns)", drive=f"    print(tf1.Session())\n{DRIVE}")
    new, findings = run(text)
    assert new == text
    assert {f.line for f in findings if "tf.Session" in f.message} == {text[: text.index("tf1.Ses")].count("\n") + 1}


HEAD = """\
import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0], [2.0]], [0, 1])).batch(2)


def model_fn(features, labels, mode):
    head = tf.contrib.estimator.binary_classification_head(thresholds=[0.5])
    logits = tf.layers.dense(features, head.logits_dimension)
    optimizer = tf.train.AdagradOptimizer(0.1)
    return head.create_estimator_spec(
        features=features,
        mode=mode,
        labels=labels,
        logits=logits,
        train_op_fn=lambda loss: optimizer.minimize(loss, global_step=tf.train.get_global_step()),
    )


estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn, steps=3)
estimator.evaluate(input_fn)
"""


def test_a_head() -> None:
    new = migrated(HEAD)
    assert "logits = tf.keras.layers.Dense(1)(features)" in new
    assert "tf.keras.losses.BinaryCrossentropy(from_logits=True)" in new or "reduce_mean" in new
    assert '"recall/positive_threshold_0.5"' in new
    assert "head" not in new


def test_a_head_of_a_model_fn_that_says_itself_what_it_serves() -> None:
    own = """\
    if mode == tf.estimator.ModeKeys.PREDICT:
        predictions = {"chance": tf.sigmoid(logits)}
        export_outputs = {"predict": tf.estimator.export.PredictOutput(predictions)}
        return tf.estimator.EstimatorSpec(mode, predictions=predictions, export_outputs=export_outputs)
    return head"""
    text = HEAD.replace("    return head", own) + "estimator.export_saved_model('out', serving)\n"
    serving = "def serving():\n    x = tf.placeholder(tf.float32, [None, 1], name='x')\n"
    serving += "    return tf.estimator.export.ServingInputReceiver(x, x)\n\n\ndef model_fn"
    new, findings = run_project({"train.py": text.replace("def model_fn", serving)}, style="auto")["train.py"]
    assert "TFM142" not in {f.code for f in findings} and "tf.saved_model.save" in new


def test_a_head_that_is_only_asked_for_its_size() -> None:
    start, end = HEAD.index("    return head."), HEAD.index("\n\nestimator = ")
    loss = (
        "    loss = tf.losses.sigmoid_cross_entropy(labels, logits)\n"
        "    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())\n"
        "    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)\n"
    )
    new = migrated(HEAD[:start] + loss + HEAD[end:])
    assert "logits = tf.keras.layers.Dense(1)(features)" in new
    assert "head" not in new


def test_a_train_op_fn_with_a_name() -> None:
    lines = "    def train_op_fn(loss):\n        return optimizer.minimize(loss, tf.train.get_global_step())\n\n"
    text = HEAD.replace("    return head", f"{lines}    return head")
    text = text.replace(text[text.index("train_op_fn=") : text.index("    )\n")], "train_op_fn=train_op_fn\n")
    assert migrated(text) == migrated(HEAD)


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("thresholds=[0.5]", "loss_fn=mine", "loss_fn"),
        ("thresholds=[0.5]", "thresholds=mine", "thresholds"),
        ("logits=logits,", "logits=logits, regularization_losses=[0.1],", "regularization_losses"),
        ("logits=logits,", "logits=logits * 2,", "logits"),
    ],
)
def test_heads_that_are_refused(old: str, new: str, word: str) -> None:
    text = HEAD.replace(old, new)
    assert text != HEAD
    result, findings = run(text)
    assert result == text
    assert [f.code for f in findings if word in f.message and f.severity is Severity.MANUAL] == ["TFM192"]


def test_a_head_that_is_an_argument_is_refused() -> None:
    text = HEAD.replace("labels, mode):", "labels, mode, params):").replace(
        "head = tf.contrib.estimator.binary_classification_head(thresholds=[0.5])", 'head = params["head"]'
    )
    _, findings = run(text)
    assert "TFM192" in {f.code for f in findings}


def test_spread() -> None:
    old = "one\ntwo three\nfour\n"
    made = spread(old, [Edit(4, 7, (Written("2\n2 ", 4), Kept(4, 7))), Edit(14, 14, (Written("new\n", 14),))])
    assert made.text == "one\n2\n2 two three\nnew\nfour\n"
    assert [made.original(line, 0) for line in (1, 2, 3, 4, 5)] == [(1, 0), (2, 0), (2, 0), (3, 0), (3, 0)]
    assert made.original(3, 2) == (2, 0) and made.original(3, 6) == (2, 4)


def test_a_head_in_another_file() -> None:
    driver = HEAD[HEAD.index("def input_fn") : HEAD.index("def model_fn")] + HEAD[HEAD.index("estimator = ") :]
    driver = f"import tensorflow as tf\nfrom model import model_fn\n\n\n{driver}"
    model = HEAD[: HEAD.index("estimator = ")].replace(
        HEAD[HEAD.index("def input_fn") : HEAD.index("def model_fn")], ""
    )
    results = run_project({"train.py": driver, "model.py": model})
    assert "create_estimator_spec" not in results["model.py"][0] and "tf.keras.Model" in results["model.py"][0]


KERAS = """\
import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0], [2.0]], [[0.0], [1.0]])).batch(2)


model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,))])
model.compile(loss="mse", optimizer=tf.train.AdamOptimizer(0.1))
estimator = tf.keras.estimator.model_to_estimator(keras_model=model)
estimator.train(input_fn, steps=3)
print(estimator.evaluate(input_fn))
"""


BUILT = """
def build(units):
    net = tf.keras.Sequential()
    net.add(tf.keras.layers.BatchNormalization(input_shape=(1,)))
    net.add(tf.keras.layers.Dense(units))
    net.compile(loss="mse", optimizer=tf.train.AdamOptimizer(0.1))
    return net


{}
"""


@pytest.mark.parametrize("made", ["estimator", "model"])
def test_a_keras_model_that_a_function_makes_and_compiles(made: str) -> None:
    start = KERAS.index("model = ")
    body = KERAS[KERAS.index("estimator = ") :]
    body = f"model = build(1)\n{body}" if made == "model" else body.replace("keras_model=model", "build(1)")
    new = migrated(KERAS[:start] + BUILT.format(body).lstrip())
    assert "model_to_estimator" not in new and "model = build(1)\nmodel.fit(input_fn().take(3))" in new
    assert 'net.compile(loss="mse", optimizer=tf.keras.optimizers.legacy.Adam(' in new
    assert "    net.add(tf.keras.layers.BatchNormalization(input_shape=(1,)))\n" in new


@pytest.mark.parametrize(
    ("lines", "compiled"),
    [
        ("    if units > 3:\n    {}", False),
        ("    for _ in range(units):\n    {}", False),
        ("    with tf.name_scope('a'):\n    {}", True),
        ("    if units > 3:\n    {}\n    else:\n    {}", True),
    ],
)
def test_a_function_that_may_not_compile_its_model(lines: str, compiled: bool) -> None:
    start = KERAS[: KERAS.index("model = ")]
    body = KERAS[KERAS.index("estimator = ") :].replace("keras_model=model", "build(1)")
    text = start + BUILT.format(body).lstrip()
    line = next(one for one in text.splitlines() if "net.compile" in one)
    result, findings = run(text.replace(line, lines.format(line, line)))
    assert ("TFM194" in [f.code for f in findings if f.severity is Severity.MANUAL]) is not compiled
    assert ("model_to_estimator" not in result) is compiled


def test_an_estimator_of_a_keras_model() -> None:
    new = migrated(KERAS)
    assert "model_to_estimator" not in new and "model.fit(input_fn().take(3))" in new
    assert "print(model.evaluate(input_fn(), return_dict=True))" in new and "make_inputs" not in new


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("print(", "model.predict([[1.0]])\nprint(", "is used after"),
        ("estimator = ", "model.fit([[1.0]], [[1.0]])\nestimator = ", "model.fit"),
        ("keras_model=model", "keras_model=models[0]", "to a name"),
        ("keras_model=model", "keras_model=build()", "not compiled"),
        ("keras_model=model", 'keras_model_path="m"', "keras_model_path"),
        ("model.compile(", "print(", "not compiled"),
    ],
)
def test_keras_models_that_are_refused(old: str, new: str, word: str) -> None:
    text = KERAS.replace(old, new)
    result, findings = run(text)
    assert result == text
    assert [f.code for f in findings if f.severity is Severity.MANUAL and word in f.message] == ["TFM194"]


def test_one_name_for_two_estimators() -> None:
    text = f"""{TOP[: TOP.index("def main")]}columns = [tf.feature_column.numeric_column("x")]
estimator = tf1.estimator.LinearClassifier(columns)
estimator.train(input_fn, steps=3)
estimator = tf1.estimator.LinearClassifier(columns * 1)
estimator.train(input_fn, steps=4)
print(estimator.evaluate(input_fn))
"""
    new = migrated(text)
    assert "model.fit(input_fn().take(3))" in new and "model_2.fit(input_fn().take(4))" in new
    assert "print(model_2.evaluate(" in new


def test_a_number_of_classes_that_has_a_name_in_the_function() -> None:
    new = migrated(canned("tf1.estimator.LinearClassifier(columns, n_classes=count)", "    count = 3\n"))
    assert "units=3" in new
    new = migrated(canned("tf1.estimator.LinearClassifier(columns, n_classes=n)", "    n = count = 1 + 2\n"))
    assert "units=3" in new
    _, findings = run(canned("tf1.estimator.LinearRegressor(columns, label_dimension=n)", "    n = int(input())\n"))
    assert [f.code for f in findings if f.severity is Severity.MANUAL] == ["TFM190"]


def test_a_number_of_classes_that_another_file_has() -> None:
    data = "import tensorflow as tf\n\nKINDS = ['a', 'b', 'c']\n"
    text = canned("tf1.estimator.LinearClassifier(columns, n_classes=len(data.KINDS))")
    new, findings = run_project({"train.py": f"import data\n{text}", "data.py": data})["train.py"]
    assert "units=len(data.KINDS)" in new and not [f for f in findings if f.severity is Severity.MANUAL]
    changes = f"{data}KINDS.append(input())\n"
    _, findings = run_project({"train.py": f"import data\n{text}", "data.py": changes})["train.py"]
    assert "TFM192" not in [f.code for f in findings]  # four, whatever is read
    unknown = data.replace("['a', 'b', 'c']", "input().split()")
    _, findings = run_project({"train.py": f"import data\n{text}", "data.py": unknown})["train.py"]
    assert "TFM192" in [f.code for f in findings if f.severity is Severity.MANUAL]


def test_an_estimator_that_is_made_in_a_method() -> None:
    text = f"""{TOP[: TOP.index("def main")]}class Trainer:
    def __init__(self, rate):
        self.rate = rate
        self.columns = [tf.feature_column.numeric_column("x")]

    def run(self):
        optimizer = tf1.train.AdamOptimizer(self.rate)
        classifier = tf1.estimator.DNNClassifier([2], self.columns, optimizer=optimizer)
        classifier.train(input_fn, steps=3)


Trainer(0.1).run()
"""
    new = migrated(text)
    assert "def dnn_classifier(features, feature_columns, rate):" in new
    assert "feature_columns=self.columns, rate=self.rate)" in new


@pytest.mark.parametrize("around", [False, True])
@pytest.mark.parametrize("name", ["config", "run_config"])
def test_a_partitioner_that_asks_for_the_number_of_servers(name: str, around: bool) -> None:
    """Canned Estimators, too, are often given as many shards as there are parameter servers."""
    lines = [
        f"{name} = tf.estimator.RunConfig()",
        "columns = [tf.feature_column.numeric_column('x')]",
        f"parts = tf.min_max_variable_partitioner(max_partitions={name}.num_ps_replicas, min_slice_size=64 << 20)",
        f"estimator = tf.estimator.DNNRegressor([4], columns, config={name}, input_layer_partitioner=parts)",
        "train = tf.estimator.TrainSpec(input_fn, max_steps=10)",
        "tf.estimator.train_and_evaluate(estimator, train, tf.estimator.EvalSpec(input_fn, steps=2))",
    ]
    if around:
        lines = ["def main():", *(f"    {line}" for line in lines), "", "", "main()"]
    head = (
        "import tensorflow as tf\n\n\ndef input_fn():\n"
        "    return tf.data.Dataset.from_tensors(({'x': [[1.0]]}, [[1.0]])).repeat()\n\n\n"
    )
    new, findings = run(head + "\n".join(lines) + "\n", strategy="parameter-server")
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    made = 'MinSizePartitioner(min_shard_bytes=64 << 20, max_shards=cluster.num_tasks("ps"))'
    assert made in new and "num_ps_replicas" not in new and "tf=tf" not in new


CLIPPED = """\
    made = tf1.train.AdamOptimizer(learning_rate=0.01)
    made = tf.contrib.estimator.clip_gradients_by_norm(made, 5.0)
"""
MADE_BEFORE = {
    "wrapped": (
        CLIPPED,
        "legacy.Adam(learning_rate=0.01, beta_1=0.9, beta_2=0.999, epsilon=1e-08, global_clipnorm=5.0)",
    ),
    "wrapped under another name": (
        CLIPPED.replace("    made = tf.", "    other = tf.").replace(
            "(made, 5.0)\n", "(made, 5.0)\n    made = other\n"
        ),
        "",
    ),
    "a later value counts": (
        "    made = tf1.train.AdamOptimizer(0.3)\n    print(made)\n    made = tf1.train.AdagradOptimizer(0.25)\n",
        "legacy.Adagrad(learning_rate=0.25, initial_accumulator_value=0.1, epsilon=1e-30)",
    ),
    "its rate changes": ("    rate = 0.1\n    made = tf1.train.AdamOptimizer(rate)\n    rate = 0.2\n", ""),
    "read by another": ("    made = tf1.train.AdamOptimizer(0.1)\n    print(made)\n", ""),
    "one of two": (
        "    made = tf1.train.AdamOptimizer(0.1)\n    if columns:\n        made = tf1.train.AdamOptimizer(0.2)\n",
        "",
    ),
}


@pytest.mark.parametrize("case", MADE_BEFORE)
def test_an_optimizer_that_lines_before_made(case: str) -> None:
    lines, wanted = MADE_BEFORE[case]
    text = canned("tf1.estimator.LinearRegressor(columns, optimizer=made)", lines)
    if wanted:
        new = migrated(text)
        assert (
            re.search(rf"optimizer ?= ?tf.keras.optimizers.{re.escape(wanted)}", new) and "made = tf.contrib" not in new
        )
    else:
        result, findings = run(text)
        assert result == text and "TFM190" in [f.code for f in findings if f.severity is Severity.MANUAL]


def test_one_optimizer_for_each_branch() -> None:
    lines = """\
    if columns:
        made = tf1.train.FtrlOptimizer(0.1)
        estimator = tf1.estimator.LinearRegressor(columns, optimizer=made)
    else:
        made = tf1.train.AdamOptimizer(0.1)
        estimator = tf1.estimator.DNNRegressor([2], columns, optimizer=made)
    estimator.train(input_fn, steps=3)


main()
"""
    _, findings = run(TOP + lines)
    assert "TFM190" not in [f.code for f in findings if f.severity is Severity.MANUAL]


IN_A_SCRIPT = """\
import tensorflow as tf

def input_fn():
    return tf.data.Dataset.from_tensor_slices(({"x": [1.0, 2.0]}, [0, 1])).batch(2)

columns = [tf.feature_column.numeric_column("x")]
optimizer = tf.train.AdagradOptimizer(0.5)
estimator = tf.estimator.LinearRegressor(columns, optimizer=optimizer)
estimator.train(input_fn, steps=3)
"""


@pytest.mark.parametrize(
    ("other", "follows"),
    [("optimizer = None\n", True), ("import script\n\nprint(script.optimizer)\n", False)],
)
def test_an_optimizer_of_a_script_that_another_file_may_name(other: str, follows: bool) -> None:
    results = run_project({"script.py": IN_A_SCRIPT, "other.py": other})
    found = [f.code for _, findings in results.values() for f in findings if f.severity is Severity.MANUAL]
    assert ("TFM190" not in found) is follows
