"""Gradients on their way to an optimizer: every way to go through them says the same, and what changes them is seen."""

from __future__ import annotations

import pytest

from migrator.findings import Severity
from tests.rules.programs import run
from tests.rules.test_training import STEP, migrated, program

OPTIMIZER = "optimizer = tf.train.GradientDescentOptimizer(0.1)"
APPLIED = f"train_op = optimizer.apply_gradients(pairs, {STEP})"
PLAIN = f"{OPTIMIZER}\ntrain_op = optimizer.minimize(loss, {STEP})"

UNCHANGED = {
    "one by one": "pairs = [(g, v) for g, v in optimizer.compute_gradients(loss)]",
    "where there are any": "pairs = [p for p in optimizer.compute_gradients(loss) if p[0] is not None]",
    "columns and rows": "pairs = zip(*zip(*optimizer.compute_gradients(loss)))",
    "two columns": "gs, vs = zip(*optimizer.compute_gradients(loss))\npairs = list(zip(gs, vs))",
    "a function of a pair": "pairs = map(lambda pair: (pair[0], pair[1]), optimizer.compute_gradients(loss))",
    "a loop": (
        "pairs = []\nfor g, v in optimizer.compute_gradients(loss):\n    if g is None:\n        continue\n"
        "    pairs.append((g, v))"
    ),
}
CLIPPED = {
    "one by one": "pairs = [(tf.clip_by_norm(g, 2.0), v) for g, v in optimizer.compute_gradients(loss)]",
    "a function of a pair": (
        "pairs = map(lambda p: (tf.clip_by_norm(p[0], 2.0), p[1]), optimizer.compute_gradients(loss))"
    ),
    "a loop with a condition": (
        "pairs = []\nfor g, v in optimizer.compute_gradients(loss):\n    if g is not None:\n"
        "        g = tf.clip_by_norm(g, 2.0)\n    pairs.append((g, v))"
    ),
    "in place": (
        "pairs = optimizer.compute_gradients(loss)\nfor i, (g, v) in enumerate(pairs):\n    if g is not None:\n"
        "        pairs[i] = (tf.clip_by_norm(g, 2.0), v)"
    ),
    "in place, columns": (
        "gs, vs = zip(*optimizer.compute_gradients(loss))\ngs = list(gs)\nfor i, g in enumerate(gs):\n"
        "    gs[i] = tf.clip_by_norm(g, 2.0)\npairs = zip(gs, vs)"
    ),
    "a column": (
        "gs, vs = zip(*optimizer.compute_gradients(loss))\n"
        "pairs = zip([None if g is None else tf.clip_by_norm(g, 2.0) for g in gs], vs)"
    ),
}
REFUSED = {
    "one of them is changed": (
        "pairs = optimizer.compute_gradients(loss)\npairs[0] = (tf.clip_by_norm(pairs[0][0], 2.0), pairs[0][1])"
    ),
    "read again after they were changed in place": (
        "found = optimizer.compute_gradients(loss)\nfor i, (g, v) in enumerate(found):\n"
        "    found[i] = (tf.clip_by_norm(g, 2.0), v)\npairs = [(g, v) for g, v in found]"
    ),
    "changed in place twice": (
        "pairs = optimizer.compute_gradients(loss)\nfor i, (g, v) in enumerate(pairs):\n"
        "    pairs[i] = (tf.clip_by_norm(g, 2.0), v)\nfor i, (g, v) in enumerate(pairs):\n    pairs[i] = (-g, v)"
    ),
    "clipped by a condition": (
        "pairs = optimizer.compute_gradients(loss)\nif params['rate'] > 1:\n"
        "    pairs = [(tf.clip_by_norm(g, 2.0), v) for g, v in pairs]"
    ),
    "clipped where there are none": (
        "pairs = [(tf.clip_by_norm(g, 2.0) if g is None else g, v) for g, v in optimizer.compute_gradients(loss)]"
    ),
    "in another order": "gs, vs = zip(*optimizer.compute_gradients(loss))\npairs = zip(gs, vs[::-1])",
    "scaled": "pairs = [(2.0 * g, v) for g, v in optimizer.compute_gradients(loss)]",
    "swapped": "pairs = [(v, g) for g, v in optimizer.compute_gradients(loss)]",
    "some of them": "pairs = optimizer.compute_gradients(loss)[1:]",
    "some of them by name": "pairs = [(g, v) for g, v in optimizer.compute_gradients(loss) if 'bias' in v.name]",
}


@pytest.mark.parametrize("way", UNCHANGED)
def test_unchanged(way: str) -> None:
    assert migrated(f"{OPTIMIZER}\n{UNCHANGED[way]}\n{APPLIED}") == migrated(PLAIN)


@pytest.mark.parametrize("way", CLIPPED)
def test_clipped(way: str) -> None:
    new = migrated(f"{OPTIMIZER}\n{CLIPPED[way]}\n{APPLIED}")
    assert "SGD(learning_rate=0.1, clipnorm=2.0)" in new and "clip_by_norm" not in new


@pytest.mark.parametrize("way", REFUSED)
def test_refused(way: str) -> None:
    before = program(f"{OPTIMIZER}\n{REFUSED[way]}\n{APPLIED}")
    new, findings = run(before)
    assert new == before
    assert {f.code for f in findings if f.severity is Severity.MANUAL} & {"TFM403", "TFM415"}


def test_two_names_of_an_optimizer() -> None:
    new = migrated(f"{OPTIMIZER}\nopts = [optimizer]\nopt = opts[0]\ntrain_op = opt.minimize(loss, {STEP})")
    assert "optimizer=opt" in new and "minimize" not in new


def test_clipping_that_waits_for_updates_runs_them() -> None:
    text = (
        f"{OPTIMIZER}\npairs = optimizer.compute_gradients(loss)\n"
        "with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):\n"
        f"    pairs = [(tf.clip_by_norm(g, 2.0), v) for g, v in pairs]\n{APPLIED}"
    )
    normalized = program(text).replace(
        "    loss =", "    logits = tf.layers.batch_normalization(logits, training=mode == 'train')\n    loss ="
    )
    new, findings = run(normalized)
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert "BatchNormalization" in new and "trainable = False" not in new


GIVEN = f"{OPTIMIZER}\npairs = optimizer.compute_gradients(loss)\n"
LOOKED = {
    "an entry": "first = pairs[0][0]\nsize = tf.reduce_mean(tf.abs(first))\n",
    "the one of a name": "first = [g for g, v in pairs if v.name == 'w:0'][0]\nsize = tf.norm(first)\n",
    "all": "sizes = [tf.norm(g) for g, v in pairs]\nsize = tf.add_n(sizes)\n",
    "a loop": "size = tf.norm(pairs[0][0])\nfor g, v in pairs:\n"
    "    r = size / tf.norm(g)\n    tf.summary.scalar(v.op.name, r)\n",
}


@pytest.mark.parametrize("way", LOOKED)
def test_what_summaries_show_of_gradients_goes_with_them(way: str) -> None:
    """Beside TensorFlow 1.15.5 four such programs end with the same weights, apart by 1e-6."""
    shown = f"{GIVEN}{LOOKED[way]}tf.summary.scalar('size', size)\n{APPLIED}"
    assert migrated(shown) == migrated(PLAIN)


@pytest.mark.parametrize(
    "used", ["loss = loss + size", "pairs = [(g * size, v) for g, v in pairs]", "pairs.append((size, pairs[0][1]))"]
)
def test_what_is_computed_of_gradients_and_used_is_refused(used: str) -> None:
    text = program(f"{GIVEN}{LOOKED['an entry']}{used}\n{APPLIED}")
    new, findings = run(text)
    assert new == text and any(one.severity is Severity.MANUAL for one in findings)
