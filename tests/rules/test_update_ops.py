"""UPDATE_OPS as a list at a line, and what waits for it: moving averages move where they moved, or the tool says no.

What each program trains was run on TensorFlow 1.15.5: the averages of those in KEPT stay zero and one.
"""

from __future__ import annotations

import pytest

from migrator.findings import Severity
from tests.rules.programs import run

PROGRAM = """\
import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0], [3.0]], [[2.0], [5.0]])).repeat().batch(2)


def applied(opt, loss):
    ups = tf.get_collection("update_ops")
    op = opt.minimize(loss, tf.train.get_global_step())
    return tf.group(op, *ups)


def model_fn(features, labels, mode):
    FIRST
    net = tf.layers.batch_normalization(features, training=mode == tf.estimator.ModeKeys.TRAIN)
    BETWEEN
    logits = tf.layers.dense(net, 1)
    loss = tf.losses.mean_squared_error(labels, logits)
    opt = tf.train.GradientDescentOptimizer(0.1)
    TRAINING
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn, steps=5)
"""
UPDATES = "tf.get_collection(tf.GraphKeys.UPDATE_OPS)"
MINIMIZE = "train_op = opt.minimize(loss, tf.train.get_global_step())"
AFTER = f"with tf.control_dependencies(ups):\n    {MINIMIZE}"
AGAIN = "net = tf.layers.batch_normalization(tf.nn.relu(net), training=mode == tf.estimator.ModeKeys.TRAIN)"

MOVED = {
    "minimize waits": f"ups = {UPDATES}\n{AFTER}",
    "gradients wait": f"with tf.control_dependencies({UPDATES}):\n"
    "    pairs = opt.compute_gradients(loss)\ntrain_op = opt.apply_gradients(pairs, tf.train.get_global_step())",
    "in a group": f"op = opt.minimize(loss, tf.train.get_global_step())\ntrain_op = tf.group(op, {UPDATES})",
    "in a group of a helper": "train_op = applied(opt, loss)",
    "the loss waits": f"with tf.control_dependencies({UPDATES}):\n    loss = tf.identity(loss)\n{MINIMIZE}",
    "a term of the loss": f"with tf.control_dependencies({UPDATES}):\n    term = loss * 2.0\nloss = term\n{MINIMIZE}",
    "by itself": "train_op = tf.contrib.layers.optimize_loss(loss, tf.train.get_global_step(), 0.1, 'SGD')",
}
KEPT = {
    "never read": MINIMIZE,
    "read and not run": f"ups = {UPDATES}\n{MINIMIZE}",
    "only another name waits": f"{MINIMIZE}\nwith tf.control_dependencies({UPDATES}):\n    train_op = train_op",
}
REFUSED = {
    "a summary waits": f'{MINIMIZE}\nwith tf.control_dependencies({UPDATES}):\n    tf.summary.scalar("loss", loss)',
    "something else waits": f"{MINIMIZE}\nwith tf.control_dependencies({UPDATES}):\n    other = tf.identity(loss)",
}


def migrated(training: str, first: str = "pass", between: str = "pass", style: str = "native") -> tuple[str, list[str]]:
    """The new program, and the codes of what stands in its way."""
    text = PROGRAM
    for key, code in (("FIRST", first), ("BETWEEN", between), ("TRAINING", training)):
        text = text.replace(key, code.replace("\n", "\n    "))
    new, findings = run(text, style=style)
    return new, [f"{f.code}:{f.message}" for f in findings if f.severity is Severity.MANUAL]


@pytest.mark.parametrize("name", MOVED)
def test_averages_move_where_loss_or_train_op_wait_for_updates(name: str) -> None:
    new, refused = migrated(MOVED[name])
    assert not refused
    assert "BatchNormalization()(features)" in new


@pytest.mark.parametrize("name", KEPT)
def test_averages_are_kept_where_nothing_waits(name: str) -> None:
    new, refused = migrated(KEPT[name])
    assert not refused
    assert "BatchNormalization(momentum=1.0)(features)" in new


def test_a_list_read_before_all_layers_is_empty() -> None:
    new, refused = migrated(AFTER, first=f"ups = {UPDATES}")
    assert not refused
    assert "BatchNormalization(momentum=1.0)(features)" in new


@pytest.mark.parametrize("name", REFUSED)
def test_updates_that_run_now_and_then_are_refused(name: str) -> None:
    _, refused = migrated(REFUSED[name])
    assert any(one.startswith("TFM403:neither the loss nor the train_op depends on these updates") for one in refused)


@pytest.mark.parametrize("read", [UPDATES, 'tf.get_collection("update_ops")'])
def test_a_list_read_between_two_layers_is_refused(read: str) -> None:
    _, refused = migrated(AFTER, between=f"ups = {read}\n{AGAIN}")
    assert any(one.startswith("TFM403:the moving averages of layers below this line") for one in refused)


def test_layers_that_update_at_once_may_come_later() -> None:
    at_once = "net = tf.contrib.layers.batch_norm(net, updates_collections=None)"
    _, refused = migrated(AFTER, between=f"ups = {UPDATES}\n{at_once}")
    assert not any("layers below this line" in one for one in refused)


CONDITION = """\
if FLAG:
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = opt.minimize(loss, global_step=tf.train.get_global_step())
else:
    train_op = opt.minimize(loss, global_step=tf.train.get_global_step())
"""
NORMALIZED = "tf.layers.batch_normalization(net, training=training)"
NETWORK = f"""\
def network(features, training, params):
    net = tf.layers.dense(features, 2)
    if params.use_batch_norm:
        net = {NORMALIZED}
    return net


def model_fn"""


def by_condition(flag: str = "params.use_batch_norm", network: str = NETWORK, given: str = "params") -> str:
    text = PROGRAM.replace("def model_fn", network).replace("labels, mode)", "labels, mode, params)")
    made = f"net = network(features, mode == tf.estimator.ModeKeys.TRAIN, {given})"
    text = text.replace(
        "net = tf.layers.batch_normalization(features, training=mode == tf.estimator.ModeKeys.TRAIN)", made
    )
    text = (
        text.replace("    FIRST\n", "")
        .replace("    BETWEEN\n", "")
        .replace("Estimator(model_fn)", "Estimator(model_fn, params=p)")
    )
    return text.replace("TRAINING", CONDITION.replace("FLAG", flag).replace("\n", "\n    "))


def test_updates_by_the_condition_that_makes_the_layers() -> None:
    """`verify`: equivalent with the flag set, 4 steps and the evaluation (2.15.1 and 2.21)."""
    new = run(by_condition())[0]
    assert "if params.use_batch_norm:\n        net = tf.keras.layers.BatchNormalization()(net)" in new
    assert "UPDATE_OPS" not in new and new.count("optimizer=opt") == 1


def test_updates_by_an_entry_that_makes_the_layers() -> None:
    """Equal to 1.15.5 on 2.21 after 8 steps, with and without the flag."""
    network = NETWORK.replace("params.use_batch_norm", "params['norm']")
    new = run(by_condition(flag="params['norm']", network=network))[0]
    assert "if params['norm']:\n        net = tf.keras.layers.BatchNormalization()(net)" in new
    assert "UPDATE_OPS" not in new and new.count("optimizer=opt") == 1


OTHERWISE = {
    "by an entry that is computed": by_condition(
        flag="params[key()]", network=NETWORK.replace("params.use_batch_norm", "params[key()]")
    ),
    "entries that may change": by_condition(
        flag="params['norm']",
        network=NETWORK.replace("params.use_batch_norm", "params['norm']").replace(
            "    net = tf.layers.dense", "    params['norm'] = not params.off\n    net = tf.layers.dense"
        ),
    ),
    "by another flag": by_condition(flag="params.other"),
    "a layer without the flag": by_condition(
        network=NETWORK.replace(
            "    return net", "    net = tf.layers.batch_normalization(net, training=training)\n    return net"
        )
    ),
    "under else": by_condition(
        network=NETWORK.replace(
            "    if params.use_batch_norm:", "    if params.use_batch_norm:\n        pass\n    else:"
        )
    ),
    "other params": by_condition(given="changed(params)"),
    "params that may change": by_condition(
        network=NETWORK.replace(
            "    net = tf.layers.dense", "    params.use_batch_norm = not params.off\n    net = tf.layers.dense"
        )
    ),
}


def test_updates_by_a_condition_that_always_holds() -> None:
    line = "    params.use_batch_norm = True\n    net = tf.layers.dense"
    new, findings = run(by_condition(network=NETWORK.replace("    net = tf.layers.dense", line)))
    assert not [f for f in findings if f.severity is Severity.MANUAL]
    assert "BatchNormalization()(net)" in new and "train_op" not in new


@pytest.mark.parametrize("name", OTHERWISE)
def test_updates_by_a_condition_that_is_not_that_of_the_layers(name: str) -> None:
    new, findings = run(OTHERWISE[name])
    assert new == OTHERWISE[name]
    assert {"TFM403"} & {f.code for f in findings if f.severity is Severity.MANUAL}
