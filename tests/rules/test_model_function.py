"""model_fns as people write them: what is carried over, and what must not be changed in silence."""

from __future__ import annotations

import pytest

from migrator.findings import Finding, Severity
from tests.rules.programs import program as whole_program
from tests.rules.programs import run

HEAD = """\
import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(1)


"""
TAIL = """

estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn, steps=3)
"""
TRAIN = "tf.estimator.ModeKeys.TRAIN"
EVAL = "tf.estimator.ModeKeys.EVAL"
PREDICT = "tf.estimator.ModeKeys.PREDICT"
LOSS = "loss = tf.losses.mean_squared_error(labels, logits)\n"
DENSE = "logits = tf.layers.dense(features, 1)\n"
OP = "tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=tf.train.get_global_step())"
END = f"return tf.estimator.EstimatorSpec(mode, loss=loss, train_op={OP})\n"


def migrate(
    body: str, tail: str = "", head: str = "def model_fn(features, labels, mode):"
) -> tuple[str, list[Finding]]:
    """Migrates a program whose model_fn has the given body; returns the new model_fn and the findings."""
    lines = "".join(f"    {line}\n" if line else "\n" for line in body.rstrip("\n").split("\n"))
    text = f"{HEAD}{head}\n{lines}{TAIL}{tail}"
    new, findings = run(text)
    if any(f.severity is Severity.MANUAL for f in findings):
        assert new == text
    return new.partition("def model_fn")[2].partition("\n\n\n")[0], findings


def blocked(body: str, tail: str = "") -> list[str]:
    return [f.code for f in migrate(body, tail)[1] if f.severity is Severity.MANUAL]


# -- one network for every mode ------------------------------------------------------------------------------------

PARTS_OF_ONE_MODE = {
    "noise in training": (
        f"net = features\nif mode == {TRAIN}:\n    net = net + 1.0\nlogits = tf.layers.dense(net, 1)\n"
    ),
    "clipped in evaluation": f"{DENSE}if mode == {EVAL}:\n    logits = tf.clip_by_value(logits, 0.0, 1.0)\n",
    "dropout over another tensor": (
        f"net = features * 2.0\nif mode == {TRAIN}:\n    net = tf.layers.dropout(features, training=True)\n"
        "logits = tf.layers.dense(net, 1)\n"
    ),
}


@pytest.mark.parametrize("part", PARTS_OF_ONE_MODE)
def test_a_part_of_one_mode_is_refused(part: str) -> None:
    assert "TFM106" in blocked(PARTS_OF_ONE_MODE[part] + LOSS + END)


def test_what_predict_does_alone_stays_out_of_training() -> None:
    body = (
        f"{DENSE}if mode == {PREDICT}:\n    logits = tf.sigmoid(logits)\n"
        '    return tf.estimator.EstimatorSpec(mode, predictions={"p": logits})\n'
    )
    new, _ = migrate(body + LOSS + END)
    assert "sigmoid" not in new
    assert "TFM106" in blocked(body + LOSS + END, "for p in estimator.predict(input_fn):\n    print(p)\n")


def test_dropout_of_the_training_branch_is_a_keras_dropout() -> None:
    new, _ = migrate(
        f"net = features\nif mode == {TRAIN}:\n    net = tf.layers.dropout(net, 0.3, training=True)\n"
        f"logits = tf.layers.dense(net, 1)\n{LOSS}{END}"
    )
    assert "net = tf.keras.layers.Dropout(0.3)(net)\n" in new


def test_is_training_as_a_conditional_expression() -> None:
    new, _ = migrate(
        f"is_training = True if mode == {TRAIN} else False\n"
        f"net = tf.layers.dropout(features, 0.3, training=is_training)\nlogits = tf.layers.dense(net, 1)\n{LOSS}{END}"
    )
    assert "net = tf.keras.layers.Dropout(0.3)(features)\n" in new and "is_training" not in new


# -- names that change ---------------------------------------------------------------------------------------------


def test_output_that_changes_after_the_loss() -> None:
    assert blocked(f"{DENSE}{LOSS}logits = tf.nn.relu(logits)\n{END}") == ["TFM301"]


def test_loss_that_changes_after_minimize() -> None:
    body = f"{DENSE}{LOSS}train_op = {OP}\nloss += tf.losses.get_regularization_loss()\n"
    assert blocked(body + "return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)\n") == ["TFM403"]


def test_loss_term_under_a_condition() -> None:
    body = f"{DENSE}{LOSS}if WEIGHT:\n    loss = loss + tf.losses.get_regularization_loss()\n{END}"
    new, _ = migrate(body)
    assert "            if WEIGHT:\n                loss = loss + sum(self.losses)\n" in new


def test_another_loss_in_evaluation() -> None:
    body = (
        f"{DENSE}{LOSS}if mode == {EVAL}:\n"
        "    return tf.estimator.EstimatorSpec(mode, loss=tf.losses.absolute_difference(labels, logits))\n"
    )
    new, _ = migrate(body + END)
    evaluated = new[new.index("def evaluation_loss(") : new.index("def test_step(")]
    assert "return tf.reduce_mean(tf.keras.losses.mean_absolute_error(labels, logits))" in evaluated


# -- features and labels -------------------------------------------------------------------------------------------


def test_changed_features_do_not_become_the_inputs() -> None:
    new, _ = migrate(
        f'features["x"] = features["x"] * 2.0\nids = features.pop("id")\n'
        f'logits = tf.layers.dense(features["x"], 1)\n{LOSS}{END}'
    )
    assert "inputs = features\n    features = dict(features)" in new
    assert 'ids = features.pop("id")' in new
    assert "tf.keras.Model(inputs, logits)" in new


def test_labels_in_a_dict() -> None:
    new, _ = migrate(f'{DENSE}loss = tf.losses.mean_squared_error(labels["y"], logits)\n{END}')
    assert 'loss = tf.reduce_mean(tf.keras.losses.mean_squared_error(labels["y"], logits))' in new


def test_labels_reshaped_like_the_output() -> None:
    new, _ = migrate(
        "out = tf.layers.dense(features, 5)\nlogits = tf.reshape(out, [-1, 1])\n"
        f"loss = tf.losses.mean_squared_error(tf.reshape(labels, [-1, 1]), logits)\n{END}"
    )
    assert "return tf.keras.losses.mean_squared_error(tf.reshape(labels, [-1, 1]), logits)" in new


@pytest.mark.parametrize(
    ("body", "compiled"),
    [
        ("loss = tf.losses.mean_squared_error(features, out)\n", False),
        ("del labels\nloss = tf.losses.mean_squared_error(features, out)\n", False),
        ("loss = tf.losses.mean_squared_error(labels, out)\n", True),
    ],
)
def test_metrics_of_data_that_may_have_no_labels(body: str, compiled: bool) -> None:
    """Keras passes over the metrics of `Model.compile` for data without labels: an autoencoder's stayed zero."""
    out, metrics = "out = tf.layers.dense(features, 4)\n", 'metrics = {"out": tf.metrics.mean(out)}\n'
    new, _ = migrate(out + body + metrics + MEASURED, "estimator.evaluate(input_fn)\n")
    assert ("metrics=[" in new) is compiled
    assert ("def compute_metrics" in new) is not compiled


@pytest.mark.parametrize("units", ["1", "3", "features.shape[1]"])
@pytest.mark.parametrize(
    ("loss", "compiled"),
    [
        ("tf.square(logits - labels)", True),
        ("tf.abs(tf.sigmoid(logits) - tf.cast(labels, tf.float32))", True),
        ("tf.reduce_sum(tf.square(labels - 2.0 * logits), 1)", True),
        ("tf.square(logits[:, 0] - labels)", False),
        ("tf.square(flat(logits) - labels)", False),
        ("tf.square(tf.reduce_max(logits, axis=1) - labels)", False),
        ("tf.square(logits - tf.reduce_mean(labels))", False),
        ("tf.square(tf.reshape(logits, [-1]) - labels)", False),
    ],
)
def test_a_loss_that_a_column_of_labels_would_change_gets_them_as_they_are(
    loss: str, compiled: bool, units: str
) -> None:
    """As a column beside `logits[:, 0]` they made a table of all pairs: 0.4799 for 0.4529 of TensorFlow 1.15.5. Beside
    a column they make none, which TensorFlow 1 did: 0.1155 for 0.2804.
    """
    head = "def flat(x):\n    return tf.squeeze(x, axis=-1)\n\n\ndef model_fn(features, labels, mode):"
    outputs = DENSE.replace("1)", f"{units})")
    new, findings = migrate(f"{outputs}loss = tf.reduce_mean({loss})\n{END}", head=head)
    assert all(f.severity is not Severity.MANUAL for f in findings)
    compiled = compiled and units == "3"
    assert ("loss=loss_fn" in new) is compiled
    assert ("def compute_loss" in new) is not compiled


def test_a_loss_of_reshaped_labels_is_the_same_of_columns() -> None:
    loss = "tf.reduce_mean(tf.square(tf.reshape(logits, [-1]) - tf.reshape(labels, [-1])))"
    new, _ = migrate(f"{DENSE}loss = {loss}\n{END}")
    assert "loss=loss_fn" in new


@pytest.mark.parametrize(
    ("network", "counts"),
    [
        ("features", False),
        ("tf.reshape(features, [tf.shape(features)[0], 4])", False),
        ("tf.reshape(features, [-1, 4])", True),
        ("tf.reshape(features, shape)", True),
        ("reshaped(features)", True),
    ],
)
def test_labels_reshaped_like_something_before_the_output(network: str, counts: bool) -> None:
    """Labels `[b, t]` beside an output `[b * t, 1]`: without their reshape the program fails when it runs."""
    head = "def reshaped(x):\n    return tf.nn.relu(tf.reshape(x, (-1, 4)))\n\n\ndef model_fn(features, labels, mode):"
    new, _ = migrate(
        f"shape = tf.stack([-1, 4])\nlogits = tf.layers.dense({network}, 1)\n"
        f"loss = tf.losses.mean_squared_error(tf.reshape(labels, [-1, 1]), logits)\n{END}",
        head=head,
    )
    assert ("loss=tf.keras.losses.MeanSquaredError()" in new) is not counts
    assert ("return tf.keras.losses.mean_squared_error(tf.reshape(labels, [-1, 1]), logits)" in new) is counts


def test_one_hot_labels_become_sparse_with_a_remark() -> None:
    new, findings = migrate(
        "logits = tf.layers.dense(features, 3)\n"
        f"loss = tf.losses.softmax_cross_entropy(tf.one_hot(labels, 3), logits)\n{END}"
    )
    assert "SparseCategoricalCrossentropy(from_logits=True)" in new
    assert "TFM307" in [f.code for f in findings]


# -- losses --------------------------------------------------------------------------------------------------------


def test_total_loss_without_regularization() -> None:
    dense = "logits = tf.layers.dense(features, 1, kernel_regularizer=tf.keras.regularizers.l2(0.1))\n"
    loss = LOSS.replace("loss = ", "") + "loss = tf.losses.get_total_loss(add_regularization_losses=False)\n"
    new, findings = migrate(dense + loss + END)
    assert "kernel_regularizer" not in new and "TFM206" in [f.code for f in findings]


def test_arguments_of_the_loss_are_kept_alive() -> None:
    new, _ = migrate(
        "smoothing = 0.1\nlogits = tf.layers.dense(features, 3)\n"
        f"loss = tf.losses.softmax_cross_entropy(labels, logits, label_smoothing=smoothing)\n{END}"
    )
    assert "smoothing = 0.1\n" in new and "label_smoothing=smoothing" in new


def test_loss_and_training_in_name_scopes() -> None:
    new, _ = migrate(
        f'{DENSE}with tf.name_scope("loss"):\n    {LOSS}with tf.name_scope("train"):\n'
        f"    train_op = {OP}\nreturn tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)\n"
    )
    assert "loss=tf.keras.losses.MeanSquaredError()" in new and "name_scope" not in new


def test_mean_with_a_name() -> None:
    outputs = DENSE.replace("1)", "3)")
    new, findings = migrate(f'{outputs}loss = tf.reduce_mean(tf.square(labels - logits), name="mse")\n{END}')
    assert "return tf.square(labels - logits)" in new
    assert "TFM306" in [f.code for f in findings]


# -- specs, metrics, layers ----------------------------------------------------------------------------------------


def test_specs_given_to_one_name() -> None:
    new, _ = migrate(
        f"{DENSE}{LOSS}if mode == {TRAIN}:\n"
        f"    spec = tf.estimator.EstimatorSpec(mode, loss=loss, train_op={OP})\nelse:\n"
        "    spec = tf.estimator.EstimatorSpec(mode, loss=loss)\nreturn spec\n"
    )
    assert "optimizer=tf.keras.optimizers.legacy.SGD(learning_rate=0.1)" in new


def test_metrics_added_one_by_one() -> None:
    new, _ = migrate(
        f"{DENSE}{LOSS}metrics = {{}}\nif mode == {EVAL}:\n"
        '    metrics["mae"] = tf.metrics.mean_absolute_error(labels, logits)\n'
        f"return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics, train_op={OP})\n"
    )
    assert 'metrics=[tf.keras.metrics.MeanAbsoluteError(name="mae")]' in new


def test_one_layer_name_in_two_scopes() -> None:
    body = (
        'with tf.variable_scope("a"):\n    net = tf.layers.dense(features, 2, name="fc")\n'
        'with tf.variable_scope("b"):\n    logits = tf.layers.dense(net, 1, name="fc")\n'
    )
    new, _ = migrate(body + LOSS + END)
    assert 'Dense(2, name="a_fc")' in new and 'Dense(1, name="b_fc")' in new
    assert blocked(body.replace('"b"', '"a"') + LOSS + END) == ["TFM202"]


def test_annotations_of_tensorflow_1_go() -> None:
    head = "def model_fn(features, labels, mode: str) -> tf.estimator.EstimatorSpec:"
    new, _ = migrate(DENSE + LOSS + END, head=head)
    assert new.startswith("(features):")


# -- what is the user's stays --------------------------------------------------------------------------------------


def test_comments_survive_and_unread_names_too() -> None:
    new, _ = migrate(
        "# How many parameters.\ncount = 3  # only for the log\n"
        f"{DENSE}# The loss, as in the paper.\nloss = tf.losses.mean_squared_error(labels, logits)  # eq. 3\n"
        "optimizer = tf.train.AdamOptimizer(\n    learning_rate=0.01,  # tuned by hand\n)\n"
        "train_op = optimizer.minimize(loss, tf.train.get_global_step())  # go\n"
        "return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)  # done\n"
    )
    for comment in ("# How many parameters.", "# only for the log", "# eq. 3", "# tuned by hand", "# go", "# done"):
        assert comment in new, comment
    assert "count = 3" in new
    assert new.index("# The loss, as in the paper.") > new.index("optimizer = ")


@pytest.mark.parametrize("text", ["features", "tf.stop_gradient(net)"])
def test_labels_that_the_network_makes(text: str) -> None:
    """An autoencoder: a function of labels and output would read tensors of the function that builds the model."""
    new, findings = run(whole_program(loss=f"loss = tf.losses.mean_squared_error({text}, logits)"))
    assert not [f for f in findings if f.severity is Severity.MANUAL]
    assert "def loss_fn" not in new and f"tf.keras.losses.mean_squared_error({text}, logits)" in new


METHOD = """
import tensorflow as tf


class Trainer:
    weight = 0.5

    def model_fn(self, features, labels, mode):
        a = tf.layers.dense(features, 1)
        b = tf.layers.dense(features, 1)
        loss = tf.losses.mean_squared_error(labels, a) + self.weight * tf.losses.mean_squared_error(labels, b)
        metrics = {"both": tf.metrics.mean(METRIC)}
        train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(1)


estimator = tf.estimator.Estimator(Trainer().model_fn)
estimator.train(input_fn, steps=3)
print(estimator.evaluate(input_fn))
"""


def test_self_of_a_model_fn_is_not_that_of_the_model() -> None:
    new, findings = run(METHOD.replace("METRIC", "loss"))
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert "        owner = self\n\n        class Model(tf.keras.Model):\n" in new
    assert "+ owner.weight * tf.reduce_mean(" in new and "self.weight" not in new
    assert 'model = Model(features, {"a": a, "b": b})' in new
    new, findings = run(METHOD.replace("METRIC", "a * self.weight"))
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert "update_state(a * owner.weight)" in new and "self.weight" not in new


GIVEN = "if labels is not None:\n    labels = tf.cast(labels, tf.float32)\n"
PREDICTS = f"if mode == {PREDICT}:\n    return tf.estimator.EstimatorSpec(mode, predictions=logits)\n"
METRICS = "metrics = {'error': tf.metrics.mean_absolute_error(labels, logits)}\n"
MEASURED = f"return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics, train_op={OP})\n"


@pytest.mark.parametrize(
    "test", ["labels is not None", "not (labels is None)", f"labels is not None and mode != {PREDICT}"]
)
def test_a_test_for_labels_is_one_of_the_mode(test: str) -> None:
    given = GIVEN.replace("labels is not None", test)
    new, findings = migrate(DENSE + given + PREDICTS + LOSS + METRICS + MEASURED, "estimator.evaluate(input_fn)\n")
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert "is not None" not in new and "is None" not in new


@pytest.mark.parametrize("first", ["labels = labels * 2.0", "unit, labels = 1, labels * 2.0"])
@pytest.mark.parametrize(
    "then", ["labels = tf.cast(labels, tf.float32)", GIVEN, "labels = tf.reshape(labels, [-1, 1])"]
)
def test_labels_that_get_two_values(first: str, then: str) -> None:
    """What Keras does by itself to labels is left out of a program; not what was done to them before."""
    tail = "estimator.evaluate(input_fn)\n"
    new, findings = migrate(DENSE + PREDICTS + first + "\n" + then.strip() + "\n" + LOSS + METRICS + MEASURED, tail)
    if not [f for f in findings if f.severity is Severity.MANUAL]:
        assert new.count("labels * 2.0") == 2 and "update_state(labels, logits)" in new
        assert "loss=loss_fn" in new or "def compute_loss" in new


def test_without_labels_is_to_predict() -> None:
    body = DENSE + "if labels is None:\n    return tf.estimator.EstimatorSpec(mode, predictions=logits)\n" + LOSS + END
    _, findings = migrate(body)
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings


OTHER_NAMES = {
    "another name": ("targets = labels\nif targets is None:\n", True),
    "a name in the test": ("if (targets := labels) is None:\n", True),
    "what is computed of them": ("labels = labels * 2.0\nif labels is None:\n", True),
    "a name that gets something else": ("targets = labels\ntargets = features\nif targets is None:\n", False),
    "labels that get something else": ("labels = features\nif labels is None:\n", False),
    "a name of those": ("labels = features\ntargets = labels\nif targets is None:\n", False),
}


@pytest.mark.parametrize("way", OTHER_NAMES)
def test_other_names_of_the_labels(way: str) -> None:
    test, tells = OTHER_NAMES[way]
    body = f"{DENSE}{test}    return tf.estimator.EstimatorSpec(mode, predictions=logits)\n{LOSS}{END}"
    _, findings = migrate(body)
    assert bool([f for f in findings if f.severity is Severity.MANUAL]) is not tells, findings


IN_TRAINING = f"mode == {TRAIN}"
KEPT = "net = tf.nn.dropout(features, keep)\n"
CHOSEN_RATES = {
    "either branch": f"if {IN_TRAINING}:\n    keep = 0.75\nelse:\n    keep = 1.0\n{KEPT}",
    "a default": f"keep = 1.0\nif {IN_TRAINING}:\n    keep = 0.75\n{KEPT}",
    "out of training": f"rate = 0.25\nif mode != {TRAIN}:\n    rate = 0\n"
    "net = tf.layers.dropout(features, rate, training=True)\n",
    "both say it": f"rate = 0.25 if {IN_TRAINING} else 0.0\n"
    f"net = tf.layers.dropout(features, rate, training={IN_TRAINING})\n",
    "what is kept": f"rate = 0.0 if mode != {TRAIN} else 0.25\n{KEPT.replace('keep', 'keep_prob=1 - rate')}",
    "another name": f"if {IN_TRAINING}:\n    net = tf.nn.dropout(features, 0.75)\nelse:\n    net = features\n",
    "below another name": f"net = features\nif {IN_TRAINING}:\n    net = tf.nn.dropout(features, 0.75)\n",
    "a flag": f"training = {IN_TRAINING}\nkeep = 1.0\nif training:\n    keep = 0.75\n{KEPT}",
}
NET = DENSE.replace("features", "net")


@pytest.mark.parametrize("way", CHOSEN_RATES)
def test_a_dropout_in_training_however_its_rate_is_chosen(way: str) -> None:
    new, findings = migrate(CHOSEN_RATES[way] + NET + PREDICTS + LOSS + END)
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert "net = tf.keras.layers.Dropout(0.25)(features)" in new and "keep" not in new


@pytest.mark.parametrize("rate", ['params["rate"]', "params.rate", 'params.get("rate", 0.3)'])
def test_a_rate_of_params_that_is_put_out_of_force(rate: str) -> None:
    """`rate = params["rate"]`, and `if mode != TRAIN: rate = 0.0` below it."""
    body = f"rate = {rate}\nnet = features * 2.0\nif mode != {TRAIN}:\n    rate = 0.0\n"
    body += "net = tf.nn.dropout(net, rate=rate)\n"
    new, findings = migrate(body + NET + PREDICTS + LOSS + END, head="def model_fn(features, labels, mode, params):")
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert f"net = tf.keras.layers.Dropout({rate})(net)" in new


@pytest.mark.parametrize(
    "body",
    [
        f"if {IN_TRAINING}:\n    keep = 0.75\nelse:\n    keep = 0.9\n{KEPT}",
        f"keep = ONE['keep']\nONE = {{'keep': 0.5}}\nif mode != {TRAIN}:\n    keep = 1.0\n{KEPT}",
    ],
)
def test_rates_that_are_no_choice_of_the_training_alone_are_refused(body: str) -> None:
    _, findings = migrate(body + NET + PREDICTS + LOSS + END)
    assert [f for f in findings if f.severity is Severity.MANUAL]


@pytest.mark.parametrize(
    ("body", "rate"),
    [
        (f"keep = 1.0\nprint(keep)\nif {IN_TRAINING}:\n    keep = 0.75\n{KEPT}", "0.25"),
        (f"keep = 1.0\nif {IN_TRAINING}:\n    keep = keep - 0.4\n{KEPT}", "0.4"),
        (
            f"ONE = dict(keep=0.7)\nkeep = ONE['keep']\nONE.update(keep=0.1)\nif mode != {TRAIN}:\n    keep = 1.0\n"
            + KEPT,
            "0.3",
        ),
    ],
)
def test_rates_of_values_that_change(body: str, rate: str) -> None:
    new, findings = migrate(body + NET + PREDICTS + LOSS + END)
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert f"tf.keras.layers.Dropout({rate})(features)" in new


OF_FEATURES = f"""\
features["x"] = tf.reshape(features["x"], [-1, 1])
logits = tf.layers.dense(features["x"], 1)
predictions = {{"x": features["x"], "y": features["y"], "out": logits}}
if mode == {PREDICT}:
    return tf.estimator.EstimatorSpec(mode, predictions=predictions)
loss = tf.losses.mean_squared_error(features["y"], logits)
metrics = {{"error": tf.metrics.mean_absolute_error(features["y"], predictions["out"])}}
"""


@pytest.mark.parametrize(
    ("old", "new", "refused"), [("", "", False), ('predictions["out"])', 'predictions["x"])', True)]
)
def test_a_metric_of_an_entry_beside_one_that_gets_another_value(old: str, new: str, refused: bool) -> None:
    """A metric reads one entry of a dict; that others of it are of features with a new value does not matter."""
    body = OF_FEATURES.replace(old, new) if old else OF_FEATURES
    tail = "estimator.evaluate(input_fn)\n"
    _, findings = migrate(body + MEASURED, tail, head="def model_fn(features, mode):")
    assert bool([f for f in findings if f.severity is Severity.MANUAL]) is refused


@pytest.mark.parametrize("index", ["[:, None]", "[:, tf.newaxis]", "[..., None]"])
def test_labels_that_are_made_a_column(index: str) -> None:
    """Keras makes labels of one number a column before it calls a loss: done again, every label meets every output."""
    new, findings = migrate(DENSE + LOSS.replace("labels,", f"labels{index},") + END)
    assert not findings or all(f.severity is not Severity.MANUAL for f in findings)
    assert "loss=tf.keras.losses.MeanSquaredError()" in new and index not in new
    twice = f"labels = labels{index} * 2.0\n"
    new, findings = migrate(DENSE + twice + LOSS + END)
    assert "loss=" not in new and "def compute_loss" in new and index in new
    own = f"loss = tf.reduce_mean(tf.square(labels{index} - logits))\n"
    new, findings = migrate(DENSE + own + END)
    assert "loss=" not in new and "def compute_loss" in new and index in new


@pytest.mark.parametrize("given", ["labels[:, None]", "tf.expand_dims(labels, 1)"])
@pytest.mark.parametrize(
    ("output", "is_column"),
    [
        ("tf.layers.dense(features, 1)", True),
        ("2.0 * tf.nn.sigmoid(tf.layers.Dense(WIDTH)(features))", True),
        ("tf.multiply(2.0, tf.nn.leaky_relu(tf.layers.dense(inputs=features, units=1)))", True),
        ("tf.layers.dense(features, 3)", False),
        ("tf.layers.dense(features, features.shape[1])", False),
    ],
)
def test_a_second_axis_is_not_always_the_last(given: str, output: str, is_column: bool) -> None:
    """Labels `[b, t]` beside an output `[b, 1, t]`: 0.269 in TensorFlow 1.15.5, 0.430 without the labels' axis."""
    body = f"logits = {output}\n" + LOSS.replace("labels,", f"{given},") + END
    new, findings = migrate(body, head="WIDTH = 1\n\n\ndef model_fn(features, labels, mode):")
    assert all(f.severity is not Severity.MANUAL for f in findings)
    assert ("loss=tf.keras.losses.MeanSquaredError()" in new) is is_column
    assert ("def compute_loss" in new and given in new) is not is_column
