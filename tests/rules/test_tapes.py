"""model_fns of TensorFlow 2: tapes, optimizers of Keras, checkpoints of objects, features without labels."""

from __future__ import annotations

import pytest

from migrator.findings import Severity
from tests.rules.programs import run

PROGRAM = """\
import tensorflow as tf
import tensorflow.compat.v1 as tf1


def input_fn():
    return tf.data.Dataset.from_tensor_slices({"x": [[1.0]], "y": [[2.0]]}).batch(1)


class Net(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.layer = tf.keras.layers.Dense(1)

    def call(self, x):
        return self.layer(x)


def model_fn(features, labels, mode):
    net = Net()
    opt = tf.keras.optimizers.Adam(0.1)
    ckpt = tf.train.Checkpoint(step=tf1.train.get_global_step(), optimizer=opt, net=net)
    with tf.GradientTape() as tape:
        # the network
        output = net(features["x"])

        loss = tf.reduce_mean(tf.abs(output - features["y"]))
    variables = net.trainable_variables
    gradients = tape.gradient(loss, variables)
    train_op = tf.group(opt.apply_gradients(zip(gradients, variables)), ckpt.step.assign_add(1))
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=train_op, scaffold=tf1.train.Scaffold(saver=ckpt))


estimator = tf.estimator.Estimator(model_fn, "m")
estimator.train(input_fn, steps=3)
"""
GUIDE = ("opt.apply_gradients(zip(gradients, variables)), ckpt.step.assign_add(1)", "opt.minimize(loss, variables)")


def migrated(text: str) -> str:
    new, findings = run(text)
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    compile(new, "new", "exec")
    return new


def refused(text: str) -> set[str]:
    new, findings = run(text)
    assert new == text
    return {f.code for f in findings if f.severity is Severity.MANUAL}


def test_a_tape_goes_and_its_block_stays() -> None:
    new = migrated(PROGRAM)
    assert '    # the network\n    output = net(features["x"])\n' in new
    assert "GradientTape" not in new and "gradient" not in new and "tf1" not in new
    assert "model.compile(optimizer=opt)" in new


def test_the_objects_of_a_checkpoint_are_those_of_the_model() -> None:
    new = migrated(PROGRAM)
    step = '    tf.Module.__setattr__(model, "step", model.optimizer.iterations)  # in checkpoints, and no weight\n'
    assert f"{step}    model.net = net\n    return model\n" in new
    assert "Checkpoint(" not in new.replace("ModelCheckpoint(", "")
    assert "TFM183" in {f.code for f in run(PROGRAM)[1]}
    assert "model.best = model.optimizer" in migrated(PROGRAM.replace("optimizer=opt, net", "best=opt, net"))


def test_datasets_of_features_alone_are_not_taken_apart() -> None:
    assert "features = spec[0] if isinstance(spec, tuple) else spec" in migrated(PROGRAM)
    labelled = PROGRAM.replace('features["y"]', "labels").replace(
        '{"x": [[1.0]], "y": [[2.0]]}', '({"x": [[1.0]]}, [[2.0]])'
    )
    assert "features, _ = dataset.element_spec" in migrated(labelled)


@pytest.mark.parametrize("step", ["opt.minimize(loss, variables)", "opt.get_updates(loss, variables)[0]"])
def test_an_optimizer_of_keras_that_counts_the_global_step(step: str) -> None:
    text = PROGRAM.replace(GUIDE[0], step).replace(
        "    with tf", "    opt.iterations = tf1.train.get_or_create_global_step()\n    with tf"
    )
    new = migrated(text)
    assert "iterations =" not in new and "tf1" not in new
    assert refused(PROGRAM.replace(GUIDE[0], step)) == {"TFM403"}  # nothing counts the steps


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("    variables =", "    head = tf.keras.layers.Dense(1)(output)\n    variables =", "TFM403"),
        ("    variables =", "    more = build(output)\n    variables =", "TFM403"),
        ("    variables =", "    tape.reset()\n    variables =", "TFM403"),
        ("tf.GradientTape()", "tf.GradientTape(watch_accessed_variables=False)", "TFM403"),
        ("net=net)", "net=net.layer)", "TFM855"),
        ("net=net)", "layers=net)", "TFM855"),
        ("(saver=ckpt)", "(saver=tf.train.Checkpoint(net=net))", "TFM855"),
    ],
)
def test_what_is_refused(old: str, new: str, code: str) -> None:
    assert code in refused(PROGRAM.replace(old, new))
