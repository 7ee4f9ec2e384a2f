"""All that stands in the way of a program is told at once, and nothing that only follows from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.findings import Finding, Severity
from migrator.migration.native import models
from migrator.migration.project import migrate_project
from migrator.program.inlining import Inlined, inline_helpers
from migrator.program.model_reference import ModelReference
from migrator.program.parsed import Blocked, Project
from migrator.program.refusals import Refusals
from tests.rules.programs import program, run, run_project

DRIVER = """\
estimator.train(input_fn, steps=3, saving_listeners=[listener])
estimator.evaluate(input_fn, checkpoint_path="model.ckpt-3")
estimator.resume(input_fn)
keep(estimator)
"""


def refused(findings: list[Finding]) -> list[tuple[int, str]]:
    return [(f.line, f.code) for f in findings if f.severity is Severity.MANUAL]


def test_everything_that_stands_in_the_way_of_a_driver() -> None:
    text = program(driver=DRIVER)
    new, findings = run(text)
    assert new == text
    first = text[: text.index("estimator.train")].count("\n") + 1
    assert refused(findings) == [
        (first, "TFM110"),
        (first + 1, "TFM110"),
        (first + 2, "TFM103"),
        (first + 3, "TFM103"),
    ]


def test_the_model_fn_of_a_refused_driver_is_read_too() -> None:
    network = "w = tf.placeholder(tf.float32)\nnet = tf.matmul(net, w)"
    text = program(network=network, driver="estimator.resume(input_fn)")
    line = text[: text.index("tf.placeholder")].count("\n") + 1
    assert refused(run(text)[1]) == [(line, "TFM203"), (text.count("\n"), "TFM103")]
    assert refused(run(program(driver="estimator.resume(input_fn)"))[1]) == [(program().count("\n"), "TFM103")]


def test_hooks_metrics_and_loss_of_one_model_fn() -> None:
    spec = ", training_hooks=[tf.train.FeedFnHook(feed)], eval_metric_ops=make(labels)"
    text = program(spec=spec)
    assert {code for _, code in refused(run(text)[1])} == {"TFM110", "TFM501"}


def test_an_estimator_without_a_name_tells_of_its_configuration() -> None:
    text = program(driver="").replace("estimator = tf", "use(tf").replace("0.1})", "0.1}, config=make()))")
    assert [code for _, code in refused(run(text)[1])] == ["TFM103", "TFM108"]


def test_what_follows_from_a_refusal_is_not_told() -> None:
    """The Estimator is mentioned in a hook that is refused: that is no problem of its own."""
    hook = "hook = tf.contrib.estimator.stop_if_lower_hook(estimator, 'loss', 1.0, eval_dir=folder)\n"
    text = program(driver=f"{hook}estimator.train(input_fn, steps=3, hooks=[hook])")
    assert len(refused(run(text)[1])) == 1


def test_a_program_that_is_migrated_is_not_touched_by_a_refused_one() -> None:
    files = {"good.py": program(), "bad.py": program(driver=DRIVER)}
    results = run_project(files)
    assert results["bad.py"][0] == files["bad.py"] and len(refused(results["bad.py"][1])) == 4
    assert "tf.keras.Model" in results["good.py"][0] and not refused(results["good.py"][1])


def test_a_refusal_is_collected_once() -> None:
    refusals = Refusals()

    def fails() -> int:
        raise Blocked("TFM103", None, "this")

    assert not refusals
    assert refusals.of(fails, 7) == 7 and refusals.of(lambda: 3, 7) == 3
    assert refusals.of(fails, 0) == 0
    refusals.refuse("TFM103", None, "that")
    assert [r.message for r in refusals.found] == ["this", "that"]


MODEL = """\
import tensorflow as tf


def model_fn(features, labels, mode):
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features["x"], 1))
    train_op = tf.train.AdamOptimizer(0.1).minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
"""
CALLER = """\
import tensorflow as tf
{imported}


def input_fn():
    return tf.data.Dataset.from_tensors(({{"x": [[1.0]]}}, [[2.0]])).repeat()


estimator = tf.estimator.Estimator({model})
estimator.train(input_fn, steps=3{hooks})
"""


def test_a_model_fn_is_read_once_whatever_drivers_call_it(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[ModelReference] = []

    def counted(project: Project, model: ModelReference) -> Inlined:
        read.append(model)
        return inline_helpers(project, model)

    monkeypatch.setattr(models, "inline_helpers", counted)
    texts = {
        Path("model.py"): MODEL,
        Path("first.py"): CALLER.format(imported="import model", model="model.model_fn", hooks=""),
        Path("second.py"): CALLER.format(
            imported="from model import model_fn as network", model="network", hooks=", hooks=[Own()]"
        ),
    }
    new, findings = migrate_project(texts, "auto")
    assert not new
    assert {
        (path.name, f.code) for path, found in findings.items() for f in found if f.severity is Severity.MANUAL
    } == {
        ("first.py", "TFM114"),
        ("second.py", "TFM110"),
    }
    assert len(read) == 1
