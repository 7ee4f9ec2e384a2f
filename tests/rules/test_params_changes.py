"""An Estimator copies its params when it is made, and again for every call of its model_fn."""

from __future__ import annotations

import pytest

from migrator.findings import Severity
from tests.rules.programs import program, run

HELPERS = """\
def tune(p):
    p["rate"] = 0.01


def show(p):
    print(p["rate"])


def outer(p):
    tune(p)


"""
FORGET = """\
def forget():
    params["rate"] = 0.01


"""
MADE = "estimator = tf.estimator.Estimator(model_fn, params=params)\n"
TRAINED = "estimator.train(input_fn, steps=3)"
OWN = 'estimator = tf.estimator.Estimator(model_fn, params={"rate": 0.1})\n'
CHANGES = {
    "an entry": 'params["rate"] = 0.01',
    "a method": "params.update(rate=0.01)",
    "deleted": 'del params["other"]',
    "another name": 'also["rate"] = 0.01',
    "a function": "tune(params)",
    "a function of a function": "outer(p=params)",
    "a function without parameters": "forget()",
    "setattr": 'setattr(params, "rate", 0.01)',
}
KEEPS = {
    "nothing": "",
    "reads": 'print(params["rate"], len(params))',
    "a function that reads": "show(params)",
    "a copy": 'changed = dict(params)\nchanged["rate"] = 0.01',
    "another object": 'other = {"rate": 0.1}\nother["rate"] = 0.2',
}


def driven(
    before: str, after: str, network: str = "net = tf.nn.relu(net)", style: str = "native"
) -> tuple[str, list[str]]:
    """The new program, and what stands in its way."""
    text = program(network, optimizer='tf.train.GradientDescentOptimizer(params["rate"])', driver="DRIVER")
    first = 'params = {"rate": 0.1, "other": 1}\nalso = params\n'
    text = text.replace(OWN + "DRIVER", f"{first}{before}{MADE}{after}\n{TRAINED}")
    helpers = HELPERS + (FORGET if "forget" in after else "")
    new, findings = run(text.replace("def model_fn", helpers + "def model_fn"), style=style)
    return new, [f"{f.code}:{f.line}" for f in findings if f.severity is Severity.MANUAL]


@pytest.mark.parametrize("name", CHANGES)
def test_params_that_change_later_are_copied(name: str) -> None:
    new, refused = driven("", CHANGES[name])
    assert not refused
    assert "copy.deepcopy(params))" in new and "import copy\n" in new


def test_params_that_change_in_a_loop_around_are_copied() -> None:
    text = program(driver="DRIVER").replace(OWN + "DRIVER", "")
    loop = 'params = {"rate": 0.1}\nfor rate in (0.1, 0.2):\n    params["rate"] = rate\n    ' + MADE
    new, findings = run(f"{text}{loop}    {TRAINED}\n")
    assert not [f for f in findings if f.severity is Severity.MANUAL]
    assert "copy.deepcopy(params)" in new


@pytest.mark.parametrize("name", KEEPS)
def test_params_that_stay_are_given_as_they_are(name: str) -> None:
    new, refused = driven("", KEEPS[name])
    assert not refused
    assert "deepcopy" not in new


@pytest.mark.parametrize("name", ["an entry", "a method", "deleted", "another name"])
def test_params_that_change_before_are_given_as_they_are(name: str) -> None:
    new, refused = driven(CHANGES[name] + "\n", "")
    assert not refused and "deepcopy" not in new


def test_params_that_the_model_fn_changes_are_copied() -> None:
    new, refused = driven("", "", 'width = params.pop("other")\nnet = tf.layers.dense(net, width)')
    assert not refused and "copy.deepcopy(params))" in new


def test_imports_go_behind_what_the_future_needs() -> None:
    text = program().replace("import tensorflow as tf\n", "", 1)
    head = '"""The module."""\n"""Another string."""\n# A comment.\nfrom __future__ import print_function\n'
    new, findings = run(f"{head}import tensorflow as tf\n{text}")
    assert not [f for f in findings if f.severity is Severity.MANUAL]
    compile(new, "train.py", "exec")
    assert new.startswith('"""The module."""\n# A comment.\nfrom __future__ import print_function\n')
    assert '"""Another string."""' in new


def test_a_module_of_tensorflow_hub_is_no_code_that_stays() -> None:
    text = "import tensorflow_hub as hub\n" + program('net = hub.Module("handle")(net)')
    new, findings = run(text, style="native")
    assert new == text and "TFM175" in [f.code for f in findings]
    new, findings = run(text, style="auto")
    assert 'net = keras_estimator.HubModule("handle")(net)' in new and "TFM155" in [f.code for f in findings]


TPU = """\
import tensorflow as tf


def size_of(p):
    return p["batch_size"]


def model_fn(features, labels, mode, params):
    net = tf.reshape(features, (SIZE, -1)) * tf.get_variable("w", [12])
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(net, 1))
    optimizer = tf.contrib.tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.1))
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.contrib.tpu.TPUEstimatorSpec(mode=mode, loss=loss, train_op=train_op)


def input_fn(params):
    dataset = tf.data.Dataset.from_tensor_slices((tf.ones([64, 3, 4]), tf.ones([64, 1])))
    return dataset.repeat().batch(params["batch_size"], drop_remainder=True)


resolver = tf.contrib.cluster_resolver.TPUClusterResolver("local")
config = tf.contrib.tpu.RunConfig(cluster=resolver, tpu_config=tf.contrib.tpu.TPUConfig(num_shards=2))
estimator = tf.contrib.tpu.TPUEstimator(model_fn=model_fn, config=config, train_batch_size=16, use_tpu=True)
estimator.train(input_fn, max_steps=20)
"""
