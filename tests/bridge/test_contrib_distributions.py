"""Distributions of tf.contrib: numbers of TensorFlow 1.15.5."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from migrator.bridge.codemod import Support, bridge_file
from tests.bridge.sides import TENSORFLOW1, run_new, run_old
from tests.bridge.test_core import close

SETUP = """\
    import tensorflow
    est = tensorflow.contrib.distributions
"""
MODULES = ("contrib_distributions",)
NOTED = Path(__file__).with_name("noted") / "contrib_distributions.json"
PROGRAM = """
LOC = np.array([[0.5, -1.0, 2.0], [0.0, 3.0, -0.25]], "f")
SCALE = np.array([0.5, 2.0, 1.5], "f")


def run(name, make):
    with tf.Graph().as_default():
        one = make(tf.constant(LOC), tf.constant(SCALE))
        other = make(tf.constant(LOC * 0.5 + 1), tf.constant(SCALE * 1.5))
        gradients = tf.gradients(one.log_prob(LOC * 2), [one.loc])
        drawn = one.sample(20000, seed=1)
        moments = tf.nn.moments(drawn, [0])
        values = {
            "log_prob": one.log_prob(LOC * 2), "prob": one.prob(LOC),
            "of several": one.log_prob(np.ones([4, 2, 3], "f")),
            "entropy": one.entropy(), "mean": one.mean(), "mode": one.mode(), "variance": one.variance(),
            "stddev": one.stddev(), "covariance": one.covariance(), "loc": one.loc, "scale": one.scale.diag_part(),
            "kl": tf.distributions.kl_divergence(one, other), "own kl": one.kl_divergence(other),
            "batch": one.batch_shape_tensor(), "event": one.event_shape_tensor(), "gradient": gradients[0],
            "drawn": tf.shape(drawn),
        }
        found[name + " shapes"] = [one.batch_shape.as_list(), one.event_shape.as_list(), drawn.shape.as_list()]
        with tf.Session() as session:
            for key, value in session.run(values).items():
                found[name + " " + key] = np.round(value.astype("d"), 5)
            mean, variance, real_mean, real_variance = session.run([*moments, one.mean(), one.variance()])
        # Numbers that are drawn differ between the two; of 20,000 their moments are these.
        found[name + " moments"] = bool(np.all(np.abs(mean - real_mean) < 0.1)
                                        and np.all(np.abs(variance / real_variance - 1) < 0.1))


run("both", lambda loc, scale: est.MultivariateNormalDiag(loc, scale))
run("negative", lambda loc, scale: est.MultivariateNormalDiag(loc, -scale))
run("of means", lambda loc, scale: est.MultivariateNormalDiag(loc))
run("multiplied", lambda loc, scale: est.MultivariateNormalDiag(loc, scale_identity_multiplier=tf.constant([0.5, 2.0])))
run("added", lambda loc, scale: est.MultivariateNormalDiag(loc, scale, tf.constant([0.5, 2.0])))
run("softplus", lambda loc, scale: est.MultivariateNormalDiagWithSoftplusScale(loc, scale))
"""


@pytest.mark.tensorflow
def test_numbers_noted_from_1_15_5(tmp_path: Path) -> None:
    noted, new = json.loads(NOTED.read_text()), run_new(PROGRAM, tmp_path, MODULES)
    assert not {what: (noted[what], new[what]) for what in noted if not close(noted[what], new[what])}


@pytest.mark.tensorflow
@pytest.mark.skipif(not TENSORFLOW1, reason="no TensorFlow 1.15.5: TF_MIGRATE_TENSORFLOW1_PYTHON is not set")
def test_numbers_noted_are_those_of_1_15_5(tmp_path: Path) -> None:
    assert close(json.loads(NOTED.read_text()), run_old(PROGRAM, tmp_path, MODULES, SETUP))


def test_a_model_of_several_distributions() -> None:
    text = (
        "import tensorflow as tf\nfrom tensorflow.contrib import distributions as ds\n"
        "q = ds.MultivariateNormalDiag(mu, sigma)\nkl = ds.kl_divergence(q, p)\nb = ds.Bernoulli(logits=x)\n"
    )
    made = bridge_file(text, Support("keras_estimator"))
    assert not made.blocking and made.used == {"MultivariateNormalDiag"}
    assert "q = keras_estimator.MultivariateNormalDiag(mu, sigma)\n" in made.text
    assert "kl = tf.distributions.kl_divergence(q, p)\n" in made.text
