"""Programs that train by hand on towers, one on every GPU."""

from __future__ import annotations

import ast

import pytest

from migrator.findings import Severity
from tests.rules.programs import run

TOWERS = """\
import tensorflow as tf


def average_gradients(tower_gradients):
    \"\"\"The mean of the gradients of all towers.\"\"\"
    average = []
    for pairs in zip(*tower_gradients):
        gradients = []
        for gradient, _ in pairs:
            gradients.append(tf.expand_dims(gradient, 0))
        mean = tf.reduce_mean(tf.concat(axis=0, values=gradients), 0)
        variable = pairs[0][1]
        average.append((mean, variable))
    return average


def network(x):
    return tf.layers.dense(tf.layers.dense(x, 4, activation=tf.nn.relu), 1)


def train(points, targets, rate, num_gpus):
    with tf.Graph().as_default(), tf.device("/cpu:0"):
        dataset = tf.data.Dataset.from_tensor_slices((points, targets)).repeat().batch(16)
        x, y = dataset.make_one_shot_iterator().get_next()
        x_parts = tf.split(x, num_gpus)
        y_parts = tf.split(value=y, num_or_size_splits=num_gpus, axis=0)
        step = tf.train.get_or_create_global_step()
        optimizer = tf.train.MomentumOptimizer(rate, 0.9)
        tower_gradients = []
        tower_losses = []
        for i in range(num_gpus):
            with tf.device("/gpu:%d" % i), tf.name_scope("tower_%d" % i):
                with tf.variable_scope(tf.get_variable_scope(), reuse=i > 0):
                    guess = network(x_parts[i])
                    loss = tf.losses.mean_squared_error(y_parts[i], guess)
                    gradients = optimizer.compute_gradients(loss)
                    tower_gradients.append(gradients)
                    tower_losses.append(loss)
        mean_loss = tf.reduce_mean(tower_losses)
        gradients = average_gradients(tower_gradients)
        train_op = optimizer.apply_gradients(gradients, global_step=step)
        config = tf.ConfigProto(allow_soft_placement=True)
        hooks = [tf.train.StopAtStepHook(last_step=5)]
        with tf.train.MonitoredTrainingSession(hooks=hooks, config=config) as session:
            while not session.should_stop():
                _, shown = session.run([train_op, mean_loss])
                print(shown)
"""

PARTS = """\
        x, y = dataset.make_one_shot_iterator().get_next()
        x_parts = tf.split(x, num_gpus)
        y_parts = tf.split(value=y, num_or_size_splits=num_gpus, axis=0)
"""
DRAWN = "                    x, y = iterator.get_next()\n                    guess = network(x)\n"
DRAWING = (
    TOWERS.replace(PARTS, "        iterator = dataset.make_one_shot_iterator()\n")
    .replace("                    guess = network(x_parts[i])\n", DRAWN)
    .replace("y_parts[i]", "y")
)


def test_towers_become_replicas_that_divide_the_batch() -> None:
    text, findings = run(TOWERS)
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    ast.parse(text)
    assert "tf.distribute.MirroredStrategy()" in text and "class TrainingLoop" in text
    assert "    def model_fn(x):\n        optimizer = " in text and "guess = network(x)" in text
    assert "MeanSquaredError(reduction=tf.keras.losses.Reduction.NONE)" in text
    for gone in ("average_gradients", "tower", "tf.split", "x_parts", "get_variable_scope", "gpu:", "tf.reduce_mean"):
        assert gone not in text, gone
    text, findings = run(TOWERS, strategy="one-device")
    assert "model.fit(" in text and "Mirrored" not in text


def test_batches_that_towers_draw_become_one() -> None:
    text, findings = run(DRAWING)
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert ".batch(16).batch(num_gpus, drop_remainder=True).map(join_batches)" in text
    assert "tf.reshape(batch, [-1, *batch.shape[2:]])" in text


LISTS = "        tower_gradients = []\n        tower_losses = []\n"


def test_lists_that_are_made_in_one_line() -> None:
    assert LISTS in TOWERS
    both = TOWERS.replace(LISTS, "        tower_gradients, tower_losses = [], []\n")
    assert run(both)[0] == run(TOWERS)[0]
    for wrong in ("[], [0.0]", "[], rate", "([],) * 2"):
        changed = both.replace("= [], []", f"= {wrong}")
        text, findings = run(changed)
        assert text == changed, wrong
        places = [(f.line, f.code) for f in findings if f.severity is Severity.MANUAL]
        assert places and all(line > 1 for line, _ in places), (wrong, findings)


SCOPED = TOWERS.replace('tf.name_scope("tower_%d" % i):', 'tf.name_scope("tower_%d" % i) as scope:')
GIVEN = {
    "first": ("network(x)", "network(scope, x)", "network(x_parts[i])", "network(scope, x_parts[i])"),
    "last": ("network(x)", "network(x, scope=None)", "network(x_parts[i])", "network(x_parts[i], scope=scope)"),
    "another name": ("network(x)", "network(where, x)", "network(x_parts[i])", "network(scope, x_parts[i])"),
}


@pytest.mark.parametrize("how", GIVEN)
def test_a_scope_that_a_function_does_nothing_with(how: str) -> None:
    head, given_head, call, given_call = GIVEN[how]
    program = SCOPED.replace(f"def {head}", f"def {given_head}").replace(call, given_call)
    assert program.count(given_call) == 1 and given_head in program
    assert run(program)[0] == run(TOWERS)[0]


USED = {
    "in the function": "    tf.summary.scalar(scope, tf.reduce_mean(x))\n    return",
    "of a collection": "    x = tf.add_n(tf.get_collection('losses', scope)) + x\n    return",
}


@pytest.mark.parametrize("how", USED)
def test_a_scope_that_is_used_is_refused(how: str) -> None:
    program = SCOPED.replace("def network(x)", "def network(scope, x)").replace(
        "work(x_parts[i])", "work(scope, x_parts[i])"
    )
    changed = program.replace("    return tf.layers", USED[how] + " tf.layers")
    text, findings = run(changed)
    assert text == changed
    assert any("`scope`, the scope of a tower" in f.message for f in findings if f.code == "TFM766"), findings


def test_a_scope_of_a_function_that_is_called_elsewhere_is_refused() -> None:
    program = SCOPED.replace("def network(x)", "def network(scope, x)").replace(
        "work(x_parts[i])", "work(scope, x_parts[i])"
    )
    changed = program + "\n\ndef again(x):\n    return network('', x)\n"
    text, findings = run(changed)
    assert text == changed and "TFM766" in {f.code for f in findings}


def test_scopes_that_create_or_share_keep_their_name() -> None:
    changed = TOWERS.replace("tf.get_variable_scope(), reuse=i > 0", '"net", reuse=tf.AUTO_REUSE')
    text, findings = run(changed)
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert "AUTO_REUSE" not in text and "guess = network(x)" in text


AVERAGES = {
    "stacked": "return [(tf.reduce_mean(tf.stack([g for g, _ in p]), 0), p[0][1]) for p in zip(*tower_gradients)]",
    "summed": "return [(tf.add_n([g for g, _ in p]) / len(p), p[0][1]) for p in zip(*tower_gradients)]",
}
NO_AVERAGES = {
    "a sum": "return [(tf.add_n([g for g, _ in p]), p[0][1]) for p in zip(*tower_gradients)]",
    "the first": "return [(p[0][0], p[0][1]) for p in zip(*tower_gradients)]",
    "another axis": "return [(tf.reduce_mean(tf.stack([g for g, _ in p]), 1), p[0][1]) for p in zip(*tower_gradients)]",
    "all": "return [(tf.reduce_mean(tf.stack([g for g, _ in p])), p[0][1]) for p in zip(*tower_gradients)]",
    "some": "return [(tf.add_n([g for g, v in p if v]) / len(p), p[0][1]) for p in zip(*tower_gradients)]",
    "clipped": "return [(tf.clip_by_norm(tf.add_n([g for g, _ in p]), 1.0), p[0][1]) for p in zip(*tower_gradients)]",
}


def averaging(body: str) -> str:
    head, rest = TOWERS.split("    average = []\n")
    return head + "    " + body + "\n" + rest[rest.index("    return average\n") + len("    return average\n") :]


@pytest.mark.parametrize("how", AVERAGES)
def test_means_of_gradients_are_understood(how: str) -> None:
    text, findings = run(averaging(AVERAGES[how]))
    assert "MirroredStrategy" in text, findings


@pytest.mark.parametrize("how", NO_AVERAGES)
def test_what_is_no_mean_is_refused(how: str) -> None:
    program = averaging(NO_AVERAGES[how])
    text, findings = run(program)
    assert text == program and "TFM767" in [f.code for f in findings]


REFUSED = {
    "no sharing": (", reuse=i > 0", "", "TFM766"),
    "sharing of the first": ("reuse=i > 0", "reuse=i > 1", "TFM766"),
    "weights of its own": ("tf.get_variable_scope(), reuse=i > 0", '"tower_%d" % i, reuse=tf.AUTO_REUSE', "TFM766"),
    "other parts": ("tf.split(x, num_gpus)", "tf.split(x, num_gpus, 1)", "TFM766"),
    "parts of another number": ("tf.split(x, num_gpus)", "tf.split(x, 2)", "TFM766"),
    "another part": ("network(x_parts[i])", "network(x_parts[0])", "TFM766"),
    "a rate by tower": ("mean_squared_error(y_parts[i], guess)", "mean_squared_error(y_parts[i], guess * i)", "TFM766"),
    "a sum": (
        "tf.losses.mean_squared_error(y_parts[i], guess)",
        "tf.reduce_sum(tf.square(y_parts[i] - guess))",
        "TFM768",
    ),
    "weights": ("(y_parts[i], guess)", "(y_parts[i], guess, weights=y_parts[i])", "TFM768"),
    "weights by place": ("(y_parts[i], guess)", "(y_parts[i], guess, y_parts[i])", "TFM768"),
    "the losses of all": (
        "gradients = optimizer.compute_gradients(loss)",
        "gradients = optimizer.compute_gradients(tf.losses.get_total_loss())",
        "TFM768",
    ),
    "batch normalization": (
        "guess = network(x_parts[i])",
        "guess = network(tf.layers.batch_normalization(x_parts[i], training=True))",
        "TFM769",
    ),
    "a mean over examples": (
        "guess = network(x_parts[i])",
        "guess = network(x_parts[i] - tf.reduce_mean(x_parts[i], 0))",
        "TFM769",
    ),
    "a mean over all": ("return tf.layers.dense(", "return tf.reduce_mean(x) + tf.layers.dense(", "TFM769"),
    "products of examples": (
        "return tf.layers.dense(",
        "x = tf.matmul(x, x, transpose_b=True)\n    return tf.layers.dense(",
        "TFM769",
    ),
    "foreign functions": ("guess = network(x_parts[i])", "guess = helpers.network(x_parts[i])", "TFM769"),
    "what all towers need": (
        "(gradients, global_step=step)",
        "(gradients, global_step=step, name=tower_losses)",
        "TFM766",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_towers_that_are_another_training_are_refused(what: str) -> None:
    before, after, code = REFUSED[what]
    assert before in TOWERS
    program = TOWERS.replace(before, after).replace(
        "import tensorflow as tf\n", "import helpers\nimport tensorflow as tf\n"
    )
    text, findings = run(program)
    assert text == program
    assert code in [f.code for f in findings if f.severity is Severity.MANUAL], findings


def test_an_iterator_of_each_tower_is_refused() -> None:
    program = DRAWING.replace("iterator.get_next()", "dataset.make_one_shot_iterator().get_next()")
    text, findings = run(program)
    assert text == program and "TFM766" in [f.code for f in findings], findings
