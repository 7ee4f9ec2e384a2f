"""Keras models that model_to_estimator is given, under strategies: what goes into the scope, and what is refused."""

from __future__ import annotations

import libcst as cst
import pytest

from migrator.findings import Severity
from migrator.rules.optimizers import compiled
from tests.rules.programs import run

TOP = """\
import os

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

COUNT = 2


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0], [2.0]], [[0.0], [1.0]])).batch(2).repeat()


def build(units):
    net = tf.keras.Sequential()
    net.add(tf.keras.layers.Dense(units, input_shape=(1,)))
    return net


"""
MODEL = 'model = build(1)\nmodel.compile("sgd", loss="mse")\n'
STRATEGY = "strategy = tf.distribute.MirroredStrategy()\n"
CONFIG = "config = tf.estimator.RunConfig(train_distribute=strategy)\n"
ESTIMATOR = "estimator = tf.keras.estimator.model_to_estimator(model, config=config)\n"
TRAIN = "estimator.train(input_fn, steps=3)\n"
BOTH = """\
tf.estimator.train_and_evaluate(
    estimator, tf.estimator.TrainSpec(input_fn, max_steps=3), tf.estimator.EvalSpec(input_fn, steps=1)
)
"""
MIRRORED = MODEL + STRATEGY + CONFIG + ESTIMATOR + TRAIN
AUTO = MODEL + ESTIMATOR.replace(", config=config", "") + BOTH


def migrated(text: str, strategy: str = "auto") -> str:
    new, findings = run(TOP + text, strategy)
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    compile(new, "new", "exec")
    return new


def test_the_model_goes_into_the_scope() -> None:
    new = migrated(MIRRORED)
    assert new.endswith("""\
strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    model = build(1)
    model.compile("sgd", loss="mse")
model.fit(per_replica(lambda: input_fn()), steps_per_epoch=3)
""")


def test_what_the_model_is_made_of_goes_with_it() -> None:
    text = """\
data = np.zeros([4, 1])
# how it learns
optimizer = tf.keras.optimizers.SGD(0.1)
print(data.shape)
inputs = tf.keras.Input(data.shape[1:])
model = tf.keras.Model(inputs, tf.keras.layers.Dense(1)(inputs))
model.compile(optimizer, "mse")
"""
    new = migrated(MIRRORED.replace(MODEL, text))
    assert (
        """\
data = np.zeros([4, 1])
strategy = tf.distribute.MirroredStrategy()
# how it learns
with strategy.scope():
    optimizer = tf.keras.optimizers.legacy.SGD(0.1)
print(data.shape)
with strategy.scope():
    inputs = tf.keras.Input(data.shape[1:])
    model = tf.keras.Model(inputs, tf.keras.layers.Dense(1)(inputs))
    model.compile(optimizer, "mse")
model.fit("""
        in new
    )


def test_a_scope_of_the_programs_own_stays() -> None:
    inside = "with strategy.scope():\n" + "".join(f"    {line}\n" for line in MODEL.splitlines())
    new = migrated(STRATEGY + inside + CONFIG + ESTIMATOR + TRAIN)
    assert f"{STRATEGY}{inside}" in new and new.count(".scope()") == 1 and "\nmodel.fit(per_replica(" in new


def test_in_a_function_and_below_a_condition() -> None:
    lines = f"if COUNT:\n    model = build(COUNT)\nelse:\n    model = build(1)\n{MIRRORED.partition(chr(10))[2]}"
    new = migrated("def main():\n" + "".join(f"    {line}\n" for line in lines.splitlines()) + "\n\nmain()\n")
    assert (
        """\
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        if COUNT:
            model = build(COUNT)
        else:
            model = build(1)
        model.compile("""
        in new
    )


def test_an_estimator_below_a_model_of_the_module() -> None:
    new = migrated(
        MODEL + 'if __name__ == "__main__":\n' + "".join(f"    {s}\n" for s in AUTO[len(MODEL) :].splitlines())
    )
    at = new.index("def make_strategy(resolver)")
    assert at < new.index("strategy = make_strategy(resolver)\nwith strategy.scope():\n    model = build(1)\n")


def test_a_cluster() -> None:
    new = migrated(AUTO)
    assert "strategy = make_strategy(resolver)\nwith strategy.scope():\n    model = build(1)\n" in new
    assert 'if resolver.task_type == "evaluator":' in new


@pytest.mark.parametrize("word", ["mirrored", "central-storage", "multi-worker-mirrored", "parameter-server"])
def test_a_strategy_that_is_asked_for(word: str) -> None:
    new = migrated(AUTO, word)
    assert "with strategy.scope():\n    model = build(1)\n" in new


def test_averages_of_a_network_that_keras_has() -> None:
    made = "tf.keras.applications.MobileNet(weights=None)"
    assert "callbacks=[ReplicaAverages()]" in migrated(MIRRORED.replace("build(1)", made))


def test_contrib() -> None:
    line = "strategy = tf.contrib.distribute.MirroredStrategy(num_gpus=COUNT)\n"
    new = migrated(MIRRORED.replace(STRATEGY, line))
    assert 'MirroredStrategy(devices=[f"/gpu:{i}" for i in range(COUNT)] or ["/cpu:0"])\nwith strategy.scope()' in new


@pytest.mark.parametrize(
    ("old", "new", "code", "word"),
    [
        ('"sgd"', "tf1.train.AdamOptimizer()", "TFM731", "twice"),
        ('"sgd"', "tf.keras.optimizers.SGD(0.1, clipnorm=1.0)", "TFM731", "twice"),
        ('"sgd"', 'tf.keras.optimizers.get("sgd")', "TFM731", "twice"),
        ('"sgd"', "optimizer=optimizer", "TFM731", "twice"),
        (STRATEGY, f"model.optimizer.clipnorm = 1.0\n{STRATEGY}", "TFM731", "twice"),
        (STRATEGY, "devices = os.listdir('.')\nstrategy = tf.distribute.MirroredStrategy(devices)\n", "TFM727", "dev"),
        (STRATEGY, f"strategy = None\nif COUNT > 1:\n    {STRATEGY}", "TFM727", "chosen"),
        (CONFIG, f"{CONFIG}print(strategy.num_replicas_in_sync)\n", "TFM727", "after the model"),
        (TRAIN, f"{TRAIN}estimator.evaluate(input_fn, steps=1)\n", "TFM721", "sum"),
    ],
)
def test_what_is_refused(old: str, new: str, code: str, word: str) -> None:
    text = MIRRORED.replace(old, new)
    if code == "TFM721":
        text = text.replace('loss="mse"', "loss=lambda t, p: tf.reduce_sum(t - p)")
    result, findings = run(TOP + text)
    assert result == TOP + text
    assert (code, True) in [(f.code, word in f.message) for f in findings if f.severity is Severity.MANUAL]


@pytest.mark.parametrize(
    "text",
    [
        # an optimizer that a function reads from outside of it
        "optimizer = tf.keras.optimizers.SGD(0.1)\n\n\ndef make():\n    net = build(1)\n"
        "    net.compile(optimizer, 'mse')\n    return net\n\n\nmodel = make()\n" + MIRRORED[len(MODEL) :],
        # every turn begins with a copy of the same model
        MODEL + STRATEGY + CONFIG + f"for _ in range(2):\n    {ESTIMATOR}    {TRAIN}",
    ],
)
def test_models_that_no_scope_reaches(text: str) -> None:
    result, findings = run(TOP + text)
    assert result == TOP + text
    assert "TFM727" in [f.code for f in findings if f.severity is Severity.MANUAL]


def test_a_cluster_that_is_known_too_late() -> None:
    text = AUTO.replace("estimator =", 'os.environ["TF_CONFIG"] = "{}"\nestimator =')
    result, findings = run(TOP + text)
    assert result == TOP + text and "TFM727" in [f.code for f in findings if f.severity is Severity.MANUAL]


def test_one_device_where_the_model_stays() -> None:
    body = f"    {ESTIMATOR.replace(', config=config', '')}" + "".join(f"    {line}\n" for line in BOTH.splitlines())
    text = TOP + MODEL + f"for _ in range(1):\n{body}"
    new, findings = run(text)
    assert "TFM728" in [f.code for f in findings] and "scope()" not in new and "model.fit(" in new


def refused(text: str, code: str, word: str, strategy: str = "auto") -> None:
    result, findings = run(TOP + text, strategy)
    found = [(f.code, f.message) for f in findings if f.severity is Severity.MANUAL]
    assert result == TOP + text and any(code == one and word in message for one, message in found), found


ALONE = MODEL + ESTIMATOR.replace(", config=config", "") + TRAIN


@pytest.mark.parametrize("text", [ALONE, AUTO, MIRRORED])
@pytest.mark.parametrize(
    "line",
    [
        "model = build(2)\n",
        "del model\n",
        "for model in (1, 2):\n    print(1)\n",
        "with open('a') as model:\n    pass\n",
        "import os as model\n",
        "try:\n    pass\nexcept ValueError as model:\n    pass\n",
        "if COUNT:\n    model = None\n",
        "(model, other) = (1, 2)\n",
        "print(model := 3)\n",
        "def model():\n    pass\n\n\n",
        "def late():\n    global model\n    model = None\n\n\nlate()\n",
    ],
)
def test_a_name_that_is_another_model_at_the_last_use(text: str, line: str) -> None:
    start, used, end = text.partition("estimator.train(" if text is not AUTO else "tf.estimator.train_and")
    refused(start + line + used + end, "TFM194", "used after" if "def " in line else "reassigned")


@pytest.mark.parametrize("line", ["model.summary()\n", "print(model.input_names[0])\n", "n = model.count_params()\n"])
def test_how_a_model_is_built_may_be_asked_after_the_estimator_was_made(line: str) -> None:
    start, used, end = ALONE.partition("estimator.train(")
    assert line in migrated(start + line + used + end)


@pytest.mark.parametrize(
    "line",
    ["model.name = 'own'\n", "print(model.get_weights())\n", "model.layers[0].trainable = False\n", "print(model)\n"],
)
def test_what_else_a_model_is_asked_then_is_refused(line: str) -> None:
    start, used, end = ALONE.partition("estimator.train(")
    refused(start + line + used + end, "TFM194", "used after")


def test_a_name_that_is_bound_again_between_two_uses_and_in_a_loop() -> None:
    refused(ALONE + "model = build(2)\nestimator.evaluate(input_fn, steps=1)\n", "TFM194", "reassigned")
    start = ALONE[: -len(TRAIN)]
    refused(start + f"for _ in range(2):\n    {TRAIN}    model = build(2)\n", "TFM194", "reassigned")


def test_a_name_that_is_bound_again_behind_the_last_use() -> None:
    new = migrated(ALONE + "model = build(2)\nmodel.compile('sgd', 'mae')\nmodel.fit([[1.0]], [[1.0]])\n")
    assert "model.fit(input_fn(), steps_per_epoch=3)" in new
    assert "with strategy.scope()" in migrated(MIRRORED + "del model\n")


def test_models_one_after_the_other_in_a_loop() -> None:
    body = "".join(f"    {line}\n" for line in ALONE.splitlines())
    assert "    model = build(1)\n" in migrated(f"for _ in range(2):\n{body}")


@pytest.mark.parametrize(
    "line",
    [
        'tf.config.set_visible_devices([], "GPU")',
        'os.environ["CUDA_VISIBLE_DEVICES"] = "0"',
        'os.environ.update(CUDA_VISIBLE_DEVICES="0")',
        'os.environ.setdefault("CUDA_VISIBLE_DEVICES", "0")',
        'os.putenv("CUDA_VISIBLE_DEVICES", "0")',
        'del os.environ["CUDA_VISIBLE_DEVICES"]',
        "tf.compat.v1.disable_v2_tensorshape()",
        "devices.setup()",
        "own_setup()",
        "exec('1')",
        "print(devices.setup())",
        "if devices.setup():\n    print(1)",
    ],
)
def test_what_may_decide_the_devices_before_the_strategy(line: str) -> None:
    top = "import devices\n\n\ndef own_setup():\n    os.environ['A'] = 'b'\n\n\n"
    refused(top + MIRRORED.replace(STRATEGY, f"{line}\n{STRATEGY}"), "TFM727", "determine")
    # Before the model and behind the strategy it stays where it was.
    migrated(top + f"{line}\n{MIRRORED}")
    migrated(top + MIRRORED.replace(STRATEGY, f"{STRATEGY}{line}\n"))


def test_a_cluster_that_unknown_code_may_write() -> None:
    text = AUTO.replace("estimator =", "setup()\nestimator =")
    new, findings = run(TOP + f"from cluster import setup\n\n{text}")
    assert "TFM728" in [f.code for f in findings] and "scope()" not in new
    refused(f"from cluster import setup\n\n{text}", "TFM727", "determine", "multi-worker-mirrored")


@pytest.mark.parametrize(
    "line",
    [
        "print(np.zeros([2]).shape, len(sorted([2, 1])))",
        "data = tf.data.Dataset.range(3).map(lambda x: x + 1)",
        "print(os.environ.get('HOME'), os.environ['HOME'], 'HOME' in os.environ, os.getenv('A'))",
        "tf.compat.v1.logging.set_verbosity(20)",
        "model.summary()",
        "print('{}'.format(own()))",
    ],
)
def test_what_leaves_the_devices_as_they_are(line: str) -> None:
    top = "def own():\n    parts = []\n    parts.append(1)\n    return parts\n\n\n"
    assert "with strategy.scope()" in migrated(top + MIRRORED.replace(STRATEGY, f"{line}\n{STRATEGY}"))


def test_a_model_that_is_a_class() -> None:
    text = (
        "class Net(tf.keras.Model):\n    def __init__(self):\n        super().__init__()\n"
        "        self.dense = tf.keras.layers.Dense(1)\n\n    def call(self, x):\n        return self.dense(x)\n\n\n"
    )
    assert "with strategy.scope()" in migrated(text + MIRRORED.replace("build(1)", "Net()"))


LAYER = """\
layer = tf.keras.layers.Dense(1)
inputs = tf.keras.Input((1,))
model = tf.keras.Model(inputs, layer(inputs))
model.compile("sgd", "mse")
"""


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (LAYER + ALONE[len(MODEL) :] + "print(layer.get_weights())\n", "used after"),
        (LAYER + ALONE[len(MODEL) :] + "other = tf.keras.Model(inputs, layer(inputs))\n", "used after"),
        (LAYER + "layer.set_weights([])\n" + ALONE[len(MODEL) :], "set_weights"),
        (MODEL + "net = model\n" + ALONE[len(MODEL) :] + "net.get_weights()\n", "used after"),
        (MODEL + "net = model.layers[0]\n" + ALONE[len(MODEL) :] + "net.get_weights()\n", "used after"),
        (MODEL + "net = model\nnet.load_weights('a')\n" + ALONE[len(MODEL) :], "load_weights"),
        (
            "net = build(1)\nmodel = net\nmodel.compile('sgd', 'mse')\nnet.load_weights('a')\n" + ALONE[len(MODEL) :],
            "load",
        ),
        (
            "net = build(1)\nmodel = net\nmodel.compile('sgd', 'mse')\n" + ALONE[len(MODEL) :] + "print(net)\n",
            "used after",
        ),
        (
            LAYER
            + "other = tf.keras.Model(inputs, layer(inputs))\nother.compile('adam', 'mae')\n"
            + ESTIMATOR.replace(", config=config", "")
            + "second = tf.keras.estimator.model_to_estimator(other)\n"
            + TRAIN
            + "second.train(input_fn, steps=2)\n",
            "two Estimators",
        ),
    ],
)
def test_parts_of_a_model_that_are_used_elsewhere(text: str, word: str) -> None:
    refused(text, "TFM194", word)


def test_names_of_parts_that_are_bound_again() -> None:
    second = ALONE[len(MODEL) :].replace("estimator =", "second =").replace("estimator.train", "second.train")
    second = second.replace("(model)", "(other)")
    new = migrated(LAYER + ALONE[len(MODEL) :] + LAYER.replace("model", "other") + second)
    assert new.count(".fit(") == 2
    assert "units" in migrated("units = 2\n" + ALONE.replace("build(1)", "build(units)") + "print(units)\n")


@pytest.mark.parametrize("name", ["MirroredStrategy", "MultiWorkerMirroredStrategy"])
def test_a_strategy_of_the_main_program_is_no_choice(name: str) -> None:
    text = MIRRORED.replace("MirroredStrategy", name).replace(TRAIN, BOTH if "Worker" in name else TRAIN)
    new = migrated('if __name__ == "__main__":\n' + "".join(f"    {line}\n" for line in text.splitlines()))
    assert "    with strategy.scope():\n        model = build(1)\n" in new


NAMED = """\
METRICS = ["accuracy", "mse"]


def make(optimizer):
    model = build(1)
    model.compile(optimizer, "mse", {metrics})
    return model


model = make({optimizer})
"""


@pytest.mark.parametrize(
    ("metrics", "named"),
    [
        ('["accuracy"]', '["acc"]'),
        ("metrics=['crossentropy', 'mse']", "metrics=['ce', 'mean_squared_error']"),
        ('metrics={"dense": ["accuracy"]}', 'metrics={"dense": ["acc"]}'),
        ("METRICS", '["acc", "mean_squared_error"]'),
        ('metrics=["mae"]', 'metrics=["mean_absolute_error"]'),
        ('metrics=["hinge"]', 'metrics=["hinge"]'),
    ],
)
def test_metrics_have_the_names_of_tensorflow_1(metrics: str, named: str) -> None:
    new = migrated(NAMED.format(metrics=metrics, optimizer='"sgd"') + ESTIMATOR.replace(", config=config", "") + TRAIN)
    assert f'use_legacy_optimizer=True), "mse", {named})\n' in new


def test_an_optimizer_by_a_name_from_elsewhere_is_that_of_tensorflow_1() -> None:
    end = ESTIMATOR.replace(", config=config", "") + TRAIN
    new = migrated(NAMED.format(metrics="[]", optimizer='tf.keras.optimizers.get("rmsprop")') + end)
    assert 'make(tf.keras.optimizers.get("rmsprop", use_legacy_optimizer=True))' in new
    assert "model.compile(tf.keras.optimizers.get(optimizer, use_legacy_optimizer=True)," in new
    known = 'model = build(1)\noptimizer = tf.keras.optimizers.SGD(0.1)\nmodel.compile(optimizer, "mse")\n'
    assert 'model.compile(optimizer, "mse")' in migrated(known + end)


def test_what_a_metric_is_called_by_the_program_stays() -> None:
    named = 'metrics=[tf.keras.metrics.MeanAbsoluteError(name="mae"), tf.keras.metrics.Mean("accuracy")]'
    call = cst.ensure_type(cst.parse_expression(f'model.compile("sgd", "mse", {named})'), cst.Call)
    new = compiled(call, lambda _: [])
    assert cst.Module([]).code_for_node(new).endswith(f"{named})")


def test_adagrad_by_its_name_starts_as_in_tensorflow_1() -> None:
    end = ESTIMATOR.replace(", config=config", "") + TRAIN
    zero = "tf.keras.optimizers.legacy.Adagrad(initial_accumulator_value=0.0)"
    direct = 'model = build(1)\nmodel.compile(optimizer="Adagrad", loss="mse")\n'
    for text in (direct, NAMED.format(metrics="[]", optimizer='tf.keras.optimizers.get("adagrad")')):
        assert zero in migrated(text + end)
        assert "TFM431" in [f.code for f in run(TOP + text + end)[1]]
    assert zero not in migrated('model = build(1)\nmodel.compile(tf.keras.optimizers.Adagrad(), "mse")\n' + end)


def test_exporters_of_a_ready_model_serve_its_outputs_by_name() -> None:
    """Run on TensorFlow 1.15.5 and 2.21 with the same weights: one signature `serving_default`, input `raw`, output
    `dense_1`, [[2.25], [7.5]] from both, a layer that drops units not at work."""
    model = 'model = build(1)\nmodel.compile(optimizer="adam", loss="mse")\n'
    serving = (
        "def serving_fn():\n    x = tf.placeholder(tf.float32, [None, 1])\n"
        "    return tf.estimator.export.ServingInputReceiver(x, x)\n\n\n"
    )
    estimator = ESTIMATOR.replace(", config=config", "").replace("(model", '(model, model_dir="out"')
    exporter = 'exporter = tf.estimator.LatestExporter("exporter", serving_fn)\n'
    specs = (
        "tf.estimator.train_and_evaluate(estimator, tf.estimator.TrainSpec(input_fn, max_steps=3), "
        "tf.estimator.EvalSpec(input_fn, steps=2, exporters=exporter))\n"
    )
    new = migrated(serving + model + estimator + exporter + specs)
    assert "predictor = tf.keras.Model(model.inputs, dict(zip(model.output_names, model.outputs)))" in new
    assert "predictor.input_spec = None" in new
    assert 'export_model(model, serving_fn, os.path.join(model_dir, "export", "exporter"))' in new
    direct = TRAIN + 'print(estimator.export_savedmodel("out", serving_fn))\n'
    new = migrated(serving + model + estimator + direct)
    assert 'print(export_model(model, serving_fn, "out").encode())' in new


def test_the_name_of_the_input_is_asked_of_the_model() -> None:
    model = 'model = build(1)\nmodel.compile(optimizer="adam", loss="mse")\n'
    estimator = ESTIMATOR.replace(", config=config", "")
    new = migrated(f"{model}{estimator}print(model.input.name.split(':')[0])\n{TRAIN}")
    assert "print(model.input.name.split(':')[0])" in new
    refused(f"{model}{estimator}print(model.input)\n{TRAIN}", "TFM194", "used after")


def test_predictions_go_by_the_names_of_the_outputs() -> None:
    """As on TensorFlow 1.15.5, whose Estimator answers `{"total": [..]}` for a model that ends with a layer `total`."""
    new = migrated(ALONE + "rows = list(estimator.predict(input_fn))\n", "one-device")
    assert "rows = list(predict(model, input_fn()))" in new
    assert "predictions = dict(zip(predictor.output_names, tf.nest.flatten(predictions)))" in new
    assert "    estimator" not in new
