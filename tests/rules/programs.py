"""A small Estimator program with places to put other constructs in."""

from __future__ import annotations

from pathlib import Path

from migrator.findings import Finding, Severity
from migrator.migrate import Options, migrate
from migrator.source.reading import Source, decode

PROGRAM = """\
import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(1)


def model_fn(features, labels, mode, params):
    net = features
    {network}
    logits = tf.layers.dense(net, 1)
    {loss}
    optimizer = {optimizer}
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op{spec})


estimator = tf.estimator.Estimator(model_fn, params={{"rate": 0.1}})
{driver}
"""


def program(
    network: str = "net = tf.nn.relu(net)",
    loss: str = "loss = tf.losses.mean_squared_error(labels, logits)",
    optimizer: str = "tf.train.GradientDescentOptimizer(0.1)",
    spec: str = "",
    driver: str = "estimator.train(input_fn, steps=3)",
) -> str:
    """The program with some of its parts replaced; further lines of a part are indented to fit."""
    fit = {"network": network, "loss": loss}
    fit = {key: text.replace("\n", "\n    ") for key, text in fit.items()}
    return PROGRAM.format(optimizer=optimizer, spec=spec, driver=driver, **fit)


def run(
    text: str,
    strategy: str = "auto",
    path: str = "train.py",
    style: str = "native",
    keras: str = "2",
    loop: str = "fit",
) -> tuple[str, list[Finding]]:
    """Migrates one file; returns its new text and findings."""
    return run_project({path: text}, strategy, style, keras, loop)[path]


def run_or_blocked(text: str, keras: str = "2") -> tuple[str, list[str]]:
    """Migrates one file for one device; returns its new text, and the codes of what blocks it (it stays as it is)."""
    new, findings = run(text, "one-device", keras=keras)
    blocked = [f.code for f in findings if f.severity is Severity.MANUAL]
    assert bool(blocked) == (new == text)
    return new, blocked


def run_project(
    texts: dict[str, str], strategy: str = "auto", style: str = "native", keras: str = "2", loop: str = "fit"
) -> dict[str, tuple[str, list[Finding]]]:
    """Migrates several files together, into native models only unless another style is asked for.

    With "auto" programs become bridges where the native form is blocked, as the command does.
    """
    sources = []
    for path, text in texts.items():
        source = decode(Path(path), text.encode())
        assert isinstance(source, Source)
        sources.append(source)
    results = migrate(sources, Options(strategy, style, keras, loop, bridge=style == "auto"))
    return {str(r.source.path): (r.text, list(r.findings)) for r in results}
