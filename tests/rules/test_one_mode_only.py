"""What a model_fn does in one mode only, or beside its loss."""

from __future__ import annotations

import pytest

from migrator.findings import Severity
from tests.rules.programs import program, run

TRAINING = "if mode == tf.estimator.ModeKeys.TRAIN:\n    labels = labels * 0.9\n"
EVALUATION = "if mode == tf.estimator.ModeKeys.EVAL:\n    labels = labels * 0.9\n"
MSE = "tf.losses.mean_squared_error(labels, logits)"


@pytest.mark.parametrize(
    ("loss", "code", "line"),
    [
        (
            f"{MSE}\ntf.losses.add_loss(tf.reduce_mean(net))\nloss = tf.losses.get_total_loss()",
            "TFM301",
            "tf.losses.add_loss(tf.reduce_mean(net))",
        ),
    ],
    ids=["a term added by hand"],
)
def test_a_loss_that_is_not_the_same_in_both_modes_is_refused(loss: str, code: str, line: str) -> None:
    text = program(network="", loss=loss)
    new, findings = run(text)
    assert new == text
    found = [f for f in findings if f.severity is Severity.MANUAL]
    assert [f.code for f in found] == [code]
    assert line in text.splitlines()[found[0].line - 1]


@pytest.mark.parametrize(("lines", "places"), [(TRAINING, [True, False]), (EVALUATION, [False, True])])
def test_labels_of_one_mode_are_those_of_its_loss(lines: str, places: list[bool]) -> None:
    new, findings = run(program(network="", loss=f"{lines}loss = {MSE}"))
    assert not [f for f in findings if f.severity is Severity.MANUAL]
    trained, evaluated = new.split("def evaluation_loss(")
    assert ["labels = labels * 0.9" in text for text in (trained, evaluated.split("def ")[0])] == places


def test_labels_of_both_modes_are_moved() -> None:
    both = "if mode != tf.estimator.ModeKeys.PREDICT:\n    labels = labels * 0.9\n"
    new, findings = run(program(network="", loss=f"{both}loss = {MSE}"))
    assert not [f for f in findings if f.severity is Severity.MANUAL]
    assert "labels = labels * 0.9" in new


def test_a_loss_that_asks_for_the_mode_in_one_line() -> None:
    asked = f"loss = None if mode == tf.estimator.ModeKeys.PREDICT else {MSE}"
    lines = f"if mode == tf.estimator.ModeKeys.PREDICT:\n    loss = None\nelse:\n    loss = {MSE}"
    new, findings = run(program(loss=asked))
    assert not [f for f in findings if f.severity is Severity.MANUAL]
    assert new == run(program(loss=lines))[0]


FAILING = "if mode == tf.estimator.ModeKeys.PREDICT:\n    return tf.estimator.EstimatorSpec({})\nloss = " + MSE


@pytest.mark.parametrize(
    ("given", "driver", "code"),
    [
        ("labels=labels, predictions=logits", "estimator.train(input_fn, steps=3)", "TFM126"),
        ("labels=labels, predictions=logits", "next(estimator.predict(input_fn))", "TFM111"),
    ],
)
def test_predictions_that_nobody_makes_may_fail(given: str, driver: str, code: str) -> None:
    text = program(loss=FAILING.format(given), driver=driver)
    new, findings = run(text)
    assert code in {finding.code for finding in findings}
    assert (new != text) == (code == "TFM126")
    assert "labels=labels" not in new or new == text


def test_what_only_predictions_do_is_not_left_out_in_silence() -> None:
    seen = "if mode == tf.estimator.ModeKeys.PREDICT:\n    SEEN.append(mode)\n"
    text = program(network=seen, spec=", predictions={'out': net}", driver="next(estimator.predict(input_fn))")
    text = text.replace("def model_fn", "SEEN = []\n\n\ndef model_fn", 1)
    new, findings = run(text)
    assert new == text and [f.code for f in findings if f.severity is Severity.MANUAL] == ["TFM106"]
    for other in (
        text.replace("SEEN.append(mode)", "seen = mode"),
        text.replace("next(estimator.predict(", "estimator.train(("),
    ):
        assert not [f for f in run(other)[1] if f.severity is Severity.MANUAL]


def test_what_fails_in_another_mode_too_is_refused() -> None:
    text = program(loss=FAILING.format("labels=labels, loss=0.0").replace(".PREDICT", ".EVAL"))
    new, findings = run(text)
    assert new == text and "TFM105" in {finding.code for finding in findings}


def test_an_output_that_reads_the_mode() -> None:
    scaled = "logits / (1.0 if mode == tf.estimator.ModeKeys.TRAIN else 2.0)"
    text = program(loss=f"loss = tf.losses.mean_squared_error(labels, {scaled})")
    new, findings = run(text)
    assert new == text
    assert "TFM106" in [f.code for f in findings]
    assert "keras_estimator.Estimator" in run(text, style="auto")[0]


WAYS_TO_ASK = {
    "a function": ("def evaluates():\n    return mode == tf.estimator.ModeKeys.EVAL\n", "evaluates()"),
    "a function of a flag": (
        "training = mode == 'train'\ndef evaluates():\n    return not (training or mode == 'infer')\n",
        "evaluates()",
    ),
    "bool": ("", "bool(mode == tf.estimator.ModeKeys.EVAL)"),
    "a dict": ("", "{'train': False, 'eval': True, 'infer': False}[mode]"),
    "a set": ("", "mode not in {'infer', tf.estimator.ModeKeys.TRAIN}"),
    "a chain": ("", "'infer' != mode != 'train'"),
}


@pytest.mark.parametrize("way", WAYS_TO_ASK)
def test_the_mode_may_be_asked_in_any_python(way: str) -> None:
    before, test = WAYS_TO_ASK[way]
    text = program(
        network="", loss=f"loss = {MSE}\n{before}if {test}:\n    return tf.estimator.EstimatorSpec(mode, loss=loss)"
    )
    new, findings = run(text)
    assert not [f for f in findings if f.severity is Severity.MANUAL]
    assert "mode" not in new.partition("def make_inputs")[0].partition("def model_fn")[2].replace("model", "")
    assert "def evaluates" not in new


@pytest.mark.parametrize("test", ["mode in (TRAIN, EVAL) and mode != TRAIN", "mode == Keys.EVAL", "not EVAL != mode"])
def test_modes_may_have_names(test: str) -> None:
    names = "Keys = tf.estimator.ModeKeys\nTRAIN = Keys.TRAIN\nEVAL = tf.estimator.ModeKeys.EVAL\n"
    loss = f"loss = {MSE}\nif {test}:\n    return tf.estimator.EstimatorSpec(mode, loss=loss)"
    new, findings = run(program(network="", loss=loss).replace("\n\n\ndef input_fn", f"\n\n{names}\n\ndef input_fn", 1))
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert "ModeKeys" not in new


def test_a_function_of_the_mode_that_is_read_otherwise_is_refused() -> None:
    asks = "def evaluates():\n    return mode == 'eval'\nnet = net * (2.0 if evaluates() else 1.0)"
    text = program(network=asks)
    new, findings = run(text)
    assert new == text and "TFM106" in [f.code for f in findings if f.severity is Severity.MANUAL]


EMPTY = "metrics = {}\nif mode == tf.estimator.ModeKeys.EVAL:\n    "
ACCURACY = "tf.metrics.mean_absolute_error(labels, logits)"


def test_an_empty_dict_that_one_mode_replaces_is_none() -> None:
    loss = f"loss = {MSE}\n{EMPTY}metrics = {{'error': {ACCURACY}}}"
    new, findings = run(program(network="", loss=loss, spec=", eval_metric_ops=metrics"))
    assert not [f for f in findings if f.severity is Severity.MANUAL]
    assert "MeanAbsoluteError(name='error')" in new.replace('"', "'") and "metrics = {}" not in new


EACH_MODE = f"""\
if mode == tf.estimator.ModeKeys.TRAIN:
    loss = {MSE}
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
if mode == tf.estimator.ModeKeys.EVAL:
    loss = {MSE}
    return tf.estimator.EstimatorSpec(mode, loss=loss)
loss = None"""


def test_a_loss_that_each_mode_computes_anew() -> None:
    before, _, rest = program(network="", loss=EACH_MODE).partition("    loss = None\n")
    new, findings = run(before + rest.partition("train_op=train_op)\n")[2])
    assert not [f for f in findings if f.severity is Severity.MANUAL]
    assert "tf.keras.losses.MeanSquaredError()" in new


TOLD = [
    'print("building for", mode)',
    'print(f"{mode}: {features}")',
    'tf.logging.info("mode %s of %d", str(mode), len(features))',
    'print("is it {}?".format(mode == tf.estimator.ModeKeys.TRAIN))',
]


@pytest.mark.parametrize("line", TOLD)
def test_a_line_that_tells_the_mode_is_left_out(line: str) -> None:
    plain, _ = run(program(network="pass"))
    new, findings = run(program(network=line))
    assert new == plain.replace("    pass\n", "")
    assert [f.code for f in findings if f.severity is Severity.MANUAL] == []
    assert "TFM127" in {f.code for f in findings}


def test_a_line_that_tells_a_number_of_the_mode_is_left_out() -> None:
    lines = "keep = 0.5 if mode == tf.estimator.ModeKeys.TRAIN else 1.0\n{}net = tf.nn.dropout(net, keep_prob=keep)"
    plain, _ = run(program(network=lines.format("")))
    new, findings = run(program(network=lines.format("print('keep', keep)\n")))
    assert new == plain and "Dropout(0.5)" in new
    assert "TFM127" in {f.code for f in findings}


@pytest.mark.parametrize("line", ["print(note(mode))", "note(mode)", "print(modes.append(mode))", "kept = print(mode)"])
def test_a_line_that_does_more_than_tell_it_stays(line: str) -> None:
    text = program(network=line)
    new, findings = run(text)
    assert new == text and "TFM106" in {f.code for f in findings if f.severity is Severity.MANUAL}


AFTER_TRAINING = """\
import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[1.0, 0.0]])).batch(1)


def model_fn(features, labels, mode):
    logits = tf.layers.dense(features, 2)
    loss = tf.losses.softmax_cross_entropy(labels, logits)
    if mode == tf.estimator.ModeKeys.{early}:
        {returned}
    guess, truth = tf.argmax(logits, 1), tf.argmax(labels, 1)
    hits = tf.nn.in_top_k(logits, truth, 1)
    metrics = {{"hits": tf.metrics.mean(hits), "union": tf.metrics.mean_iou(truth, guess, 2)}}
    return tf.estimator.EstimatorSpec(mode, loss=loss, {step}eval_metric_ops=metrics)


estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn, steps=3)
print(estimator.evaluate(input_fn))
"""
STEP = "tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=tf.train.get_global_step())"


@pytest.mark.parametrize(
    ("early", "returned", "step"),
    [
        ("TRAIN", f"return tf.estimator.EstimatorSpec(mode, loss=loss, train_op={STEP})", ""),
        ("PREDICT", "return tf.estimator.EstimatorSpec(mode, predictions=logits)", f"train_op={STEP}, "),
    ],
)
def test_metrics_read_lines_of_the_evaluation_whichever_modes_else_run_them(
    early: str, returned: str, step: str
) -> None:
    new, findings = run(AFTER_TRAINING.format(early=early, returned=returned, step=step))
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert "truth = tf.argmax(labels, 1)" in new and 'metrics["union"].update_state(truth, guess)' in new


TOLD_OF_THE_GRAPH = [
    'print("loss", loss)',
    "print(loss.get_shape().as_list(), labels.shape)",
    'tf.logging.info("loss %s, step %s", loss, tf.train.get_global_step())',
    'if params["verbose"]:\n    print(loss)',
    "for v in tf.trainable_variables():\n    print(v.name, v.shape)",
    "count = sum(np.prod(v.shape.as_list()) for v in tf.trainable_variables())\nprint('parameters', count)",
    "shapes = [v.get_shape() for v in tf.trainable_variables()]\ntold = str(shapes)\nprint(told)",
    "total = loss\nprint(total)",
]


@pytest.mark.parametrize("lines", TOLD_OF_THE_GRAPH)
def test_lines_that_tell_of_the_graph_are_left_out(lines: str) -> None:
    loss = "loss = tf.losses.mean_squared_error(labels, logits)\n"
    plain, _ = run(program(loss=loss).replace("import tensorflow", "import numpy as np\nimport tensorflow"))
    new, findings = run(
        program(loss=loss + lines).replace("import tensorflow", "import numpy as np\nimport tensorflow")
    )
    assert [f.code for f in findings if f.severity is Severity.MANUAL] == []
    assert [line for line in new.splitlines() if line.strip()] == [line for line in plain.splitlines() if line.strip()]
    assert "TFM127" in {f.code for f in findings}


@pytest.mark.parametrize("line", ["kept.append(loss)", "assert loss.shape.ndims == 0", "print(note(loss))"])
def test_lines_that_do_more_with_the_loss_than_to_tell_of_it(line: str) -> None:
    text = program(loss=f"loss = tf.losses.mean_squared_error(labels, logits)\n{line}")
    new, findings = run(text)
    blocked = [(f.code, f.line) for f in findings if f.severity is Severity.MANUAL]
    assert new == text and blocked == [("TFM301", text[: text.index(line)].count("\n") + 1)]


def test_what_a_told_line_reads_and_the_graph_keeps_is_not_left_out() -> None:
    """Beside TensorFlow 1.15.5 the weights differed by 0.37 after four steps without the first loss."""
    loss = (
        "side = tf.losses.absolute_difference(labels, logits)\nprint(side)\n"
        "tf.losses.mean_squared_error(labels, logits)\nloss = tf.losses.get_total_loss()\n"
    )
    new, findings = run(program(loss=loss))
    assert not [f for f in findings if f.severity is Severity.MANUAL]
    assert "print" not in new and "mean_absolute_error(labels, logits)" in new


USED_UP = [
    "parts = (one for one in [loss, loss])\nprint(list(parts))\nloss = tf.add_n(list(parts))",
    "parts = map(tf.square, [loss])\nfor one in parts:\n    print(one)\nloss = tf.add_n([loss, *parts])",
    "parts = iter([loss])\nprint(loss, *parts)\nloss = tf.add_n([loss, *parts])",
    "for one in [loss]:\n    print(one)\nloss = one * 2.0",
]


@pytest.mark.parametrize("lines", USED_UP)
def test_loops_that_others_see_are_not_left_out(lines: str) -> None:
    _, findings = run(program(loss=f"loss = tf.losses.mean_squared_error(labels, logits)\n{lines}"))
    assert "TFM127" not in {f.code for f in findings}
    assert "TFM905" not in {f.code for f in findings}


def test_numbers_of_the_graph_that_the_loss_reads_may_be_told() -> None:
    loss = (
        "count = 0\nfor v in tf.trainable_variables():\n    count += 1\nprint('count %d' % count)\n"
        "loss = tf.losses.mean_squared_error(labels, logits) * count\n"
    )
    new, findings = run(program(loss=loss))
    assert not [f for f in findings if f.severity is Severity.MANUAL]
    assert "print" not in new and "for v in self.trainable_variables:" in new


@pytest.mark.parametrize(
    "lines",
    [
        "factor = 1.0\ndef scaled(x):\n    return x * factor\nif training:\n    factor = 0.5\nnet = scaled(net)",
        "factor = 1.0\nscaled = lambda x: x * factor\nfactor = 0.5\nnet = scaled(net)",
        "factors = [1.0]\ndef scaled(x):\n    return x * factors[-1]\nfactors.append(0.5)\nnet = scaled(net)",
    ],
    ids=["in one mode", "in all modes", "in place"],
)
def test_what_a_function_inside_reads_does_not_change_before_it_is_called(lines: str) -> None:
    lines = lines.replace("training", "mode == tf.estimator.ModeKeys.TRAIN")
    text = program(network=lines)
    new, findings = run(text)
    assert new == text
    assert "TFM106" in [f.code for f in findings if f.severity is Severity.MANUAL]


def test_functions_inside_may_read_what_stays() -> None:
    functions = "def scaled(x):\n    return grown(x) * factor\ndef grown(x):\n    return x + factor\n"
    own = "def halved(x):\n    factor = 0.5\n    return x * factor\n"
    own += "net = halved(net)\nfactor = 3.0\nx = net * factor\nnet = x"
    asked = (
        "if mode == tf.estimator.ModeKeys.EVAL:\n    def told(x):\n        return x * factor\n"
        "if mode == tf.estimator.ModeKeys.PREDICT:\n    factor = 5.0"
    )
    for lines in (f"factor = 2.0\n{functions}net = scaled(net)", own, f"factor = 2.0\n{asked}"):
        _, findings = run(program(network=lines))
        assert not [f for f in findings if f.severity is Severity.MANUAL], lines


@pytest.mark.parametrize(
    ("top", "lines"),
    [
        ("N = [0]\ndef grown(x):\n    N[0] += 1\n    return x * N[0]\n", "net = grown(net)"),
        ("class Net:\n    calls = 0\n", "Net.calls += 1\nnet = net * Net.calls"),
        ("import itertools\nNUMBERS = itertools.count(1)\n", "net = net * next(NUMBERS)"),
    ],
    ids=["a number in a list", "an attribute of a class", "an iterator"],
)
def test_the_calls_of_a_model_fn_are_not_counted(top: str, lines: str) -> None:
    text = program(network=lines).replace("def model_fn", f"{top}def model_fn", 1)
    assert top in text
    new, findings = run(text)
    assert new == text
    assert "TFM106" in [f.code for f in findings if f.severity is Severity.MANUAL]


def test_a_number_that_begins_anew_in_each_call_may_be_counted() -> None:
    top = "N = 0\ndef grown(x):\n    global N\n    N += 1\n    return x * N\n"
    lines = "global N\nN = 0\nnet = grown(net)"
    _, findings = run(program(network=lines).replace("def model_fn", f"{top}def model_fn", 1))
    assert not [f for f in findings if f.severity is Severity.MANUAL]
