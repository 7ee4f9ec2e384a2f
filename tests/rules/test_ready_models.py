"""Keras models that model_to_estimator is given, under strategies: what goes into the scope, and what is refused."""

from __future__ import annotations

import pytest

from migrator.findings import Severity
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
    optimizer = tf.keras.optimizers.SGD(0.1)
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
        (CONFIG, f"{CONFIG}print(strategy.num_replicas_in_sync)\n", "TFM727", "behind the model"),
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
