"""Exports: serving functions, exporters and export_saved_model, carried over or refused."""

from __future__ import annotations

import ast

import pytest

from migrator.findings import Finding, Severity
from tests.rules.programs import program, run


def manual(findings: list[Finding]) -> list[str]:
    return [f.code for f in findings if f.severity is Severity.MANUAL]


def migrated(text: str, strategy: str = "auto") -> str:
    new, findings = run(text, strategy)
    assert not manual(findings), findings
    ast.parse(new)
    return new


RECEIVER = """\
def serving_fn():
    \"\"\"What a client sends.\"\"\"
    # raw pixels
    x = tf.placeholder(tf.float32, [None, 1], name="pixels")
    inputs = {"pixels": x}
    scaled = tf.to_float(x) / 255.0
    return tf.estimator.export.ServingInputReceiver({"x": scaled}, inputs)


"""


def exporting(
    serving: str = RECEIVER, driver: str = "", outputs: str = "", predictions: str = '{"out": logits}'
) -> str:
    driver = driver or 'estimator.train(input_fn, steps=3)\nestimator.export_savedmodel("out", serving_fn)'
    spec = f", predictions={predictions}{outputs}"
    return program(driver=driver, spec=spec).replace("def model_fn", serving + "def model_fn", 1)


def test_a_serving_function_becomes_a_signature() -> None:
    new = migrated(exporting())
    assert """\
def serving_fn(predictor):
    \"\"\"What a client sends.\"\"\"
    @tf.function(input_signature=[tf.TensorSpec([None, 1], tf.float32, name="pixels")])
    def serve(x):
        scaled = tf.cast(x, tf.float32) / 255.0
        return predictor({"x": scaled})

    return serve
""" in new.replace("    # raw pixels\n", "")
    assert 'export_model(predictor, serving_fn, "out")' in new
    assert 'signatures={"serving_default": serve}' in new
    assert "import time" in new and "def predict(" not in new and "placeholder" not in new


TABLE = """\
def raw():
    x = tf.placeholder(tf.float32, [None, 1])
    return tf.estimator.export.ServingInputReceiver({"x": x}, {"raw": x})


SERVING = {"scaled": serving_fn, "raw": raw}


"""


def test_a_serving_function_of_a_dict() -> None:
    driver = "estimator.train(input_fn, steps=3)\nestimator.export_savedmodel('out', SERVING[kind])"
    new = migrated("import sys\nkind = sys.argv[1]\n" + exporting(RECEIVER + TABLE, driver))
    assert "def serving_fn(predictor):" in new and "def raw(predictor):" in new
    assert "export_model(predictor, SERVING[kind], 'out')" in new
    assert 'SERVING = {"scaled": serving_fn, "raw": raw}\n' in new
    other = (RECEIVER + TABLE).replace('"raw": raw}', '"raw": make("raw")}')
    text = "import sys\nkind = sys.argv[1]\n" + exporting(other, driver)
    new, findings = run(text)
    assert new == text and "TFM142" in manual(findings)


FORMS = {
    "dict of placeholders": (
        'def serving_fn():\n    inputs = {"a": tf.placeholder(tf.float32, [None, 1]), "b-c": tf.placeholder(tf.int64)}'
        "\n"
        "    return tf.estimator.export.ServingInputReceiver(inputs, inputs)\n\n\n",
        ['inputs = {"a": a, "b-c": value}', "def serve(a, value):", "return predictor(inputs)", "None, tf.int64"],
    ),
    "one tensor": (
        "def serving_fn():\n    image = tf.placeholder(tf.float32, [None, 1])\n"
        "    return tf.estimator.export.TensorServingInputReceiver(image, image)\n\n\n",
        ['name="input"', "def serve(image):", "return predictor(image)"],
    ),
    "placeholders of a comprehension, and features made of them": (
        "NAMES = ['x']\n\n\ndef serving_fn():\n"
        "    received = {name: tf.placeholder(tf.float32, [None]) for name in NAMES}\n"
        "    features = {name: tf.expand_dims(tensor, -1) for name, tensor in received.items()}\n"
        "    return tf.estimator.export.ServingInputReceiver(features, received)\n\n\n",
        [
            "        name: tf.TensorSpec([None], tf.float32, name=name)\n        for name in NAMES\n",
            "def serve(received):\n        features = {name: tf.expand_dims(tensor, -1) for",
            "return predictor(features)",
        ],
    ),
    "placeholders of a loop": (
        "COLUMNS = [tf.feature_column.numeric_column('x')]\n\n\ndef serving_fn():\n    'For JSON.'\n    inputs = {}\n"
        "    for column in COLUMNS:\n        inputs[column.key] = tf.placeholder(shape=[None, 1], dtype=column.dtype)\n"
        "    return tf.estimator.export.ServingInputReceiver(dict(inputs), inputs)\n\n\n",
        [
            "    'For JSON.'\n    signature = {\n",
            "        column.key: tf.TensorSpec([None, 1], column.dtype, name=column.key)\n",
            "        for column in COLUMNS\n",
            "def serve(inputs):\n        return predictor(dict(inputs))",
        ],
    ),
    "parsing behind a name": (
        'spec = {"x": tf.FixedLenFeature([1], tf.float32)}\n'
        "serving_fn = tf.estimator.export.build_parsing_serving_input_receiver_fn(spec)\n\n\n",
        ['tf.TensorSpec([None], tf.string, name="examples")', "predictor(tf.io.parse_example(examples, spec))"],
    ),
    "raw, called at once": (
        "def serving_fn():\n    return tf.estimator.export.build_raw_serving_input_receiver_fn("
        '{"x": tf.placeholder(tf.float32, [None, 1])})()\n\n\n',
        ['return predictor({"x": x})'],
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_forms_of_serving_functions(name: str) -> None:
    serving, expected = FORMS[name]
    new = migrated(exporting(serving))
    for text in expected:
        assert text in new, new
    assert "placeholder" not in new and "tf.estimator" not in new


OUTPUTS = {
    "a name of its own": (
        ', export_outputs={"predict": tf.estimator.export.PredictOutput({"out": logits})}',
        "predict",
    ),
    "the default": (
        ", export_outputs={tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY:"
        ' tf.estimator.export.PredictOutput({"out": logits})}',
        None,
    ),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_names_of_signatures(name: str) -> None:
    outputs, key = OUTPUTS[name]
    new = migrated(exporting(outputs=outputs))
    served = '{"serving_default": serve' + (f', "{key}": serve' if key else "") + "}"
    assert served in new


KINDS = {
    "a regression": ('RegressionOutput(predictions["out"])', '{"outputs": predictor({"x": x})["out"]}', True),
    "a regression of a tensor": ("RegressionOutput(value=logits)", '{"outputs": predictor({"x": x})["out"]}', True),
    "a classification": (
        'ClassificationOutput(classes=net, scores=predictions["out"])',
        '{"classes": predictions["net"], "scores": predictions["out"]}',
        True,
    ),
    "scores": ("ClassificationOutput(scores=logits)", '{"scores": predictor({"x": x})["out"]}', True),
    "some of the predictions": (
        'PredictOutput({"a": net, "b": predictions["out"]})',
        '{"a": predictions["net"], "b": predictions["out"]}',
        False,
    ),
    "one of the predictions": ("PredictOutput(net)", '{"output": predictor({"x": x})["net"]}', False),
}


@pytest.mark.parametrize("name", KINDS)
def test_kinds_of_export_outputs(name: str) -> None:
    output, answer, examples = KINDS[name]
    serving = (
        "def serving_fn():\n    x = tf.placeholder(tf.string, [None])\n"
        '    return tf.estimator.export.ServingInputReceiver({"x": x}, {"examples": x})\n\n\n'
    )
    text = exporting(serving, outputs=', export_outputs={"k": tf.estimator.export.' + output + "}")
    text = text.replace("predictions={", "predictions=predictions").replace('predictions"out": logits}', "predictions")
    text = text.replace("    optimizer = ", '    predictions = {"out": logits, "net": net}\n    optimizer = ', 1)
    new = migrated(text)
    assert f"        return {answer}\n" in new, new
    assert f'tf.TensorSpec([None], tf.string, name="{"inputs" if examples else "examples"}")' in new
    assert 'signatures={"serving_default": serve, "k": serve}' in new
    assert ("TFM174" in [f.code for f in run(text)[1]]) is examples


SEVERAL = (
    ", export_outputs={'serving_default': tf.estimator.export.RegressionOutput(logits),"
    " 'all': tf.estimator.export.PredictOutput({'out': logits})}"
)


def test_several_signatures() -> None:
    text = exporting(RECEIVER.replace("tf.float32", "tf.string"), outputs=SEVERAL)
    new = migrated(text)
    assert '    def regress(inputs):\n        return {"outputs": serve(inputs)["out"]}\n' in new
    assert '    def predict(x):\n        return {"out": serve(x)["out"]}\n' in new
    assert '    return {"serving_default": regress, "all": predict}\n' in new
    assert "signatures=serving(predictor)" in new
    assert new.count("@tf.function(input_signature") == 2
    assert "TFM174" in [f.code for f in run(text)[1]]


def test_signatures_of_examples_are_left_out_where_numbers_are_served() -> None:
    new = migrated(exporting(outputs=SEVERAL))
    assert '    return {"all": predict}\n' in new and "regress" not in new


CANNED = """\
import tensorflow.compat.v1 as tf


def input_fn():
    return tf.data.Dataset.from_tensor_slices(({"x": [1.0, 2.0]}, [0, 1])).batch(2)


columns = [tf.feature_column.numeric_column("x")]
serving_fn = tf.estimator.export.build_parsing_serving_input_receiver_fn(
    tf.feature_column.make_parse_example_spec(columns))
first = tf.estimator.LinearClassifier(columns)
first.train(input_fn)
first.export_saved_model("first", serving_fn)
"""


def test_canned_estimators_keep_their_signatures() -> None:
    new = migrated(CANNED)
    assert '"classification": classify,' in new and '"predict": serve,' in new and '"regression": regress,' in new
    assert '{"classes": predictions["all_classes"], "scores": predictions["probabilities"]}' in new
    codes = [f.code for f in run(CANNED + "print(list(first.predict(input_fn)))\n")[1]]
    assert "TFM174" in codes and "TFM193" not in codes


SECOND = """\
second = tf.estimator.LinearRegressor(columns)
second.train(input_fn)
second.export_saved_model('second', serving_fn)
"""


def test_one_serving_function_for_two_kinds_of_signatures_asks_the_model() -> None:
    again = SECOND.replace("LinearRegressor", "LinearClassifier")
    assert migrated(CANNED + again).count("def serving_fn(predictor)") == 1
    new = migrated(CANNED + SECOND + again.replace("second", "third"))
    written = new[new.index("def serving_fn(predictor):") :]
    written = written[: written.index("\ndef ")]
    assert new.count("def serving_fn(predictor):") == 1 and written.count("def serve(examples)") == 1
    assert written.count('    if "all_class_ids" in predictor.output:\n') == 1
    assert written.count('return {"outputs": serve(inputs)["logistic"]}') == 1
    assert written.endswith('    return {"serving_default": regress, "regression": regress, "predict": serve}\n\n')


OTHER = """\
def model_fn(features, labels, mode):
    out = tf.layers.dense(tf.reshape(features["x"], [-1, 1]), 1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=out)
    loss = tf.losses.mean_squared_error(tf.reshape(labels, [-1, 1]), out)
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


"""


def test_one_serving_function_for_models_that_nothing_tells_apart_is_refused() -> None:
    second = SECOND.replace("LinearRegressor(columns)", "Estimator(model_fn)")
    text = (CANNED + second).replace("columns = [", f"{OTHER}columns = [", 1)
    new, findings = run(text)
    assert new == text and "TFM142" in manual(findings)


MADE_THERE = """\
first.export_saved_model(
    # to serve
    "first", tf.estimator.export.build_parsing_serving_input_receiver_fn(
        tf.feature_column.make_parse_example_spec(columns)))
"""


def test_a_serving_function_that_is_made_in_the_export() -> None:
    named, export = CANNED.index("serving_fn ="), CANNED.index("first =")
    text = CANNED[:named] + CANNED[export:].replace('first.export_saved_model("first", serving_fn)\n', MADE_THERE)
    assert migrated(text).count("def serving_input_receiver_fn(predictor):") == 1
    again = migrated(text + MADE_THERE.replace('"first"', '"second"'))
    assert again.count("serving_input_receiver_fn") == 4 and "def serving_input_receiver_fn_2(predictor):" in again


@pytest.mark.parametrize("around", ["f = lambda: ({})", "f = {} if columns else None"])
def test_one_that_is_made_in_no_line_of_its_own_is_refused(around: str) -> None:
    export = "first.export_saved_model('a', tf.estimator.export.build_parsing_serving_input_receiver_fn(columns))"
    text = CANNED.replace('first.export_saved_model("first", serving_fn)', around.format(export))
    new, findings = run(text)
    assert new == text and manual(findings)


def test_features_that_are_not_served_are_not_wanted() -> None:
    text = exporting().replace(
        "    net = features\n", '    net = tf.feature_column.input_layer(features, params["c"])\n'
    )
    new = migrated(text)
    columns = 'tf.feature_column.make_parse_example_spec(params["c"])'
    assert f'DenseFeatures(params["c"])({{key: features[key] for key in {columns}}})' in new
    assert (
        'predictions = {"out": logits}\n    return model, tf.keras.Model(inputs_of(predictions, features), predictions)'
        in new
    )
    assert "def inputs_of(outputs, features):" in new
    assert "inputs_of" not in migrated(exporting())


def test_a_single_tensor_is_served_as_output() -> None:
    assert 'return {"output": predictor(' in migrated(exporting(predictions="logits"))


SPECS = (
    'exporter = tf.estimator.{kind}("exporter", serving_fn)\n'
    "tf.estimator.train_and_evaluate(estimator, tf.estimator.TrainSpec(input_fn, max_steps=4),"
    " tf.estimator.EvalSpec(input_fn, exporters=[exporter]))"
)


def with_folder(text: str) -> str:
    return text.replace('params={"rate": 0.1})', 'params={"rate": 0.1}, model_dir="m")')


@pytest.mark.parametrize("kind", ["FinalExporter", "LatestExporter", "BestExporter"])
def test_exporters(kind: str) -> None:
    text = with_folder(exporting(driver=SPECS.format(kind=kind)))
    new = migrated(text)
    assert "export_model(predictor, serving_fn, os.path.join(" in new and '"export", "exporter"))' in new
    assert 'if resolver.task_type == "evaluator" or not resolver.cluster_spec().jobs:' in new
    assert "Exporter" not in new
    found = [f.code for f in run(text)[1] if f.severity is Severity.REVIEW]
    assert ("TFM143" in found) == (kind != "FinalExporter")
    assert "\nexport_model(" in migrated(text, "one-device")


@pytest.mark.parametrize(("given", "told"), [("True", True), ("flag", True), ("False", False), ("None", False)])
def test_exports_as_text_are_told(given: str, told: bool) -> None:
    exporter = with_folder(exporting(driver=SPECS.format(kind="FinalExporter")))
    exporter = exporter.replace("serving_fn)\n", f"serving_fn, as_text={given})\n")
    call = f"estimator.export_saved_model('o', serving_fn, as_text={given})"
    for text in (exporter, exporting(driver="estimator.train(input_fn, steps=3)\n" + call)):
        assert f"as_text={given}" in text
        found = [f for f in run(text)[1] if f.code == "TFM176"]
        assert len(found) == told
        assert "as_text" not in migrated(text)


CHANGED = """\
def serving_fn():
    inputs = {0}
    {1}
    return tf.estimator.export.ServingInputReceiver({2}, inputs)


"""
ALL_OF_A_KEY = '{key: tf.placeholder(tf.float32, [None, 1]) for key in ["x"]}'
ITEM = 'inputs["x"] = inputs["x"] * 2.0'


def changing(inputs: str, change: str, features: str = "inputs") -> str:
    """A program whose dict of placeholders gets another tensor."""
    return exporting(CHANGED.format(inputs, change, features))


REFUSED = {
    "a comprehension that is changed": changing(ALL_OF_A_KEY, ITEM),
    "by another name": changing(ALL_OF_A_KEY, "other = inputs\n    " + ITEM.replace("inputs[", "other[", 1), "other"),
    "a dict that is changed": changing('{"x": tf.placeholder(tf.float32, [None, 1])}', ITEM),
    "one that is updated": changing(ALL_OF_A_KEY, 'inputs.update({"x": inputs["x"] * 2.0})'),
    "a loop that is changed": changing(
        "{}", 'for key in ["x"]:\n        inputs[key] = tf.placeholder(tf.float32, [None, 1])\n    ' + ITEM
    ),
    "no such function": exporting(
        "", driver="estimator.train(input_fn, steps=3)\nestimator.export_savedmodel('o', f())"
    ),
    "classification": exporting(
        outputs=", export_outputs={'c': tf.estimator.export.ClassificationOutput(scores=logits)}"
    ),
    "a regression of numbers": exporting(
        outputs=", export_outputs={'c': tf.estimator.export.RegressionOutput(logits)}"
    ),
    "other outputs": exporting(outputs=", export_outputs={'c': tf.estimator.export.PredictOutput({'a': net})}"),
    "no default": exporting(outputs=SEVERAL.replace("serving_default", "some")),
    "arguments": exporting(RECEIVER.replace("serving_fn()", "serving_fn(n)")),
    "assets": exporting(
        driver="estimator.train(input_fn, steps=3)\nestimator.export_savedmodel('o', serving_fn, assets_extra={})"
    ),
    "another placeholder": exporting(
        RECEIVER.replace("    scaled", "    rate = tf.placeholder(tf.float32)\n    scaled", 1)
    ),
    "in a branch": exporting(
        "def serving_fn():\n    if 1:\n        x = tf.placeholder(tf.float32)\n"
        "    return tf.estimator.export.ServingInputReceiver({'x': x}, {'x': x})\n\n\n"
    ),
    "own exporter": with_folder(exporting(driver=SPECS.format(kind="Exporter"))),
    "best of several": with_folder(exporting(driver=SPECS.format(kind="BestExporter"))).replace(
        'model_dir="m")', 'model_dir="m", config=tf.estimator.RunConfig(save_checkpoints_steps=2))'
    ),
}


def test_features_in_a_dict_of_their_own() -> None:
    new = migrated(changing(ALL_OF_A_KEY, "other = dict(inputs)\n    " + ITEM.replace("inputs[", "other[", 1), "other"))
    assert 'def serve(inputs):\n        other = dict(inputs)\n        other["x"] = inputs["x"] * 2.0\n' in new


@pytest.mark.parametrize("name", REFUSED)
def test_exports_that_are_refused(name: str) -> None:
    new, findings = run(REFUSED[name])
    assert new == REFUSED[name] and "TFM142" in manual(findings)


DEFAULTS = RECEIVER.replace("serving_fn()", "serving_fn(size=None, scale=255.0)").replace("[None, 1]", "[size, 1]")
DEFAULTS = DEFAULTS.replace("/ 255.0", "/ scale")


def test_defaults_of_a_serving_function_stand_in_their_places() -> None:
    new = migrated(exporting(DEFAULTS))
    assert 'tf.TensorSpec([None, 1], tf.float32, name="pixels")' in new and "tf.cast(x, tf.float32) / 255.0" in new
    assert "def serving_fn(predictor):" in new


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("size=None", "size"),
        ("scale=255.0", "scale=SCALE"),  # whatever that is when the function is made
        ("    inputs =", "    scale = 2 * scale\n    inputs ="),
        ("scale=255.0", "scale=255.0, **more"),
        ("    return tf", "    other = serving_fn(3)\n    return tf"),
    ],
)
def test_serving_functions_with_arguments_stay(old: str, new: str) -> None:
    _, findings = run(exporting(DEFAULTS.replace(old, new)))
    assert "TFM142" in manual(findings)
