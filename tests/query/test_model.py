"""What a model_fn builds, however it is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.ir.files import Parsed, Together
from migrator.ir.program import understood
from migrator.ir.values import Constant, Operation
from migrator.query.model import Step, Unread, losses, steps

PROGRAM = """\
import tensorflow as tf

def model_fn(features, labels, mode, params):
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features, 1))
    opt = tf.train.AdamOptimizer(0.1)
    step = tf.train.get_global_step()
{}
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=op)

tf.estimator.Estimator(model_fn, params={{"clip": 3.0}}).train(lambda: None)
"""


def _steps(body: str) -> tuple[list[Step | Unread], list[object]]:
    text = PROGRAM.format("\n".join(f"    {line}" for line in body.splitlines()))
    file = Parsed.of(Path("train.py"), text)
    program = understood(Together.of([file]), file)
    (estimator,) = program.estimators
    graph = estimator.graphs["train"]
    return steps(program.evaluator, graph), list(losses(graph))


CLIPPED = {
    "zip": (
        "grads, tvars = zip(*opt.compute_gradients(loss))\ngrads, _ = tf.clip_by_global_norm(grads, 5.0)\n"
        "op = opt.apply_gradients(zip(grads, tvars), step)",
        ("global_clipnorm", 5.0),
    ),
    "of the variables": (
        "tvars = tf.trainable_variables()\n"
        "(grads, _) = tf.clip_by_global_norm(tf.gradients(loss, tvars), clip_norm=1.0)\n"
        "op = opt.apply_gradients(zip(grads, tvars), global_step=step)",
        ("global_clipnorm", 1.0),
    ),
    "comprehension": (
        "capped = [(tf.clip_by_value(g, -1., 1.), v) for g, v in opt.compute_gradients(loss)]\n"
        "op = opt.apply_gradients(capped, step)",
        ("clipvalue", 1.0),
    ),
    "loop": (
        "out = []\nfor g, v in opt.compute_gradients(loss):\n    if g is not None:\n"
        "        out.append((tf.clip_by_norm(g, 2.0), v))\nop = opt.apply_gradients(out, step)",
        ("clipnorm", 2.0),
    ),
    "lambda": (
        "clip = lambda pair: (tf.clip_by_norm(pair[0], params['clip']), pair[1])\n"
        "op = opt.apply_gradients([clip(p) for p in opt.compute_gradients(loss)], step)",
        ("clipnorm", 3.0),
    ),
    "none": ("op = opt.minimize(loss, global_step=step)", None),
    "method by name": ("op = getattr(opt, 'minimize')(**{'loss': loss, 'global_step': step})", None),
    "grouped": ("op = tf.group(opt.minimize(loss, step), tf.get_collection(tf.GraphKeys.UPDATE_OPS))", None),
}


@pytest.mark.parametrize("name", CLIPPED)
def test_a_step(name: str) -> None:
    body, clipped = CLIPPED[name]
    (step,), (loss,) = _steps(body)
    assert isinstance(step, Step)
    assert step.optimizer.symbol == "tf.train.AdamOptimizer"
    assert step.loss is loss
    assert isinstance(step.counted, Operation) and step.counted.symbol == "tf.train.get_global_step"
    value = None if step.clipping is None else step.clipping.value
    found = (step.clipping.argument, value.value) if step.clipping and isinstance(value, Constant) else None
    assert found == clipped
    assert step.updates is (name == "grouped")


def test_updates_before_the_step() -> None:
    deps = "deps = tf.get_collection(tf.GraphKeys.UPDATE_OPS)\n"
    body = deps + "with tf.control_dependencies(deps):\n    op = opt.minimize(loss)"
    (step,), _ = _steps(body)
    assert isinstance(step, Step) and step.updates and step.counted is None


def test_another_loss() -> None:
    (step,), (loss,) = _steps("op = opt.minimize(2.0 * loss, step)")
    assert isinstance(step, Step) and step.loss is not loss


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("op = tf.no_op()", "`tf.no_op` is not a supported training step"),
        ("op = opt.apply_gradients(params['clip'])", "its gradients are changed in an unsupported way"),
        (
            "gvs = opt.compute_gradients(loss)\nop = opt.apply_gradients([(tf.negative(g), v) for g, v in gvs])",
            "its gradients are changed in an unsupported way",
        ),
        (
            "gvs = opt.compute_gradients(loss)\n"
            "op = opt.apply_gradients([(tf.clip_by_norm(tf.clip_by_norm(g, 1.0), 1.0), v) for g, v in gvs])",
            "the gradients are clipped twice",
        ),
        ("op = tf.group(opt.minimize(loss), opt.minimize(loss))", "not one step of training"),
    ],
)
def test_no_step(body: str, reason: str) -> None:
    (step,), _ = _steps(body)
    assert isinstance(step, Unread) and step.reason == reason
