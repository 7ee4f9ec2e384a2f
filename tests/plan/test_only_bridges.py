"""What the native form refuses because Keras has nothing like it comes out as a bridge, with its own lines."""

from __future__ import annotations

import pytest

from migrator.findings import Severity
from tests.rules.programs import program, run

SUMS = """\
step = tf.train.get_or_create_global_step()
    optimizer = tf.train.AdamOptimizer(0.1)
    variables = tf.trainable_variables()
    sums = [tf.Variable(tf.zeros_like(v.initialized_value()), trainable=False) for v in variables]
    pairs = optimizer.compute_gradients(loss, variables)
    add = [total.assign_add(g) for total, (g, _) in zip(sums, pairs)]

    def apply_and_clear():
        apply = optimizer.apply_gradients(zip(sums, variables))
        with tf.control_dependencies([apply]):
            return tf.group([total.assign(tf.zeros_like(total)) for total in sums])

    with tf.control_dependencies(add):
        update = tf.cond(tf.equal((step + 1) % 3, 0), apply_and_clear, tf.no_op)
    with tf.control_dependencies([update]):
        train_op = tf.assign_add(step, 1)"""
CLEARED = "return tf.group([total.assign(tf.zeros_like(total)) for total in sums])"
MINIMIZE = "train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())"
TRAIN = "estimator.train(input_fn, steps=3)"
MADE = 'estimator = tf.estimator.Estimator(model_fn, params={"rate": 0.1})\n'
DERIVED = """\
class Own(tf.estimator.Estimator):
    def __init__(self, rate):
        super(Own, self).__init__(model_fn, params=dict(rate=rate))
        self.rate = rate


own = Own(0.1)
own.train(input_fn, steps=3)
"""
_SCOPE = "tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope='dense')"


def _trained(by: str) -> str:
    text = program(driver=TRAIN)
    assert MINIMIZE in text
    return text.replace(MINIMIZE, by)


def _summed() -> str:
    text = program(driver=TRAIN)
    start, end = text.index("    optimizer = "), text.index(MINIMIZE) + len(MINIMIZE)
    return f"{text[:start]}    {SUMS}{text[end:]}"


def _driven(lines: str) -> str:
    text = program(driver=TRAIN)
    assert MADE in text
    return text.replace(MADE, "").replace(TRAIN, lines)


#: What it is -> the program, and the code that says why no native one is written.
PROGRAMS = {
    "gradients of several batches": (_summed(), "TFM417"),
    "sums that are never cleared": (_summed().replace(CLEARED, "return tf.no_op()"), "TFM417"),
    "variables by a scope": (_trained(MINIMIZE.replace("loss,", f"loss, var_list={_SCOPE},")), "TFM415"),
    "a derived class": (_driven(DERIVED), "TFM181"),
    "returned by a lambda": (
        _driven(f"build = lambda: {MADE.partition(' = ')[2]}\nbuild().train(input_fn, steps=3)"),
        "TFM103",
    ),
    "in a list": (_driven(f"{MADE}made = [estimator] * 2\nmade[0].train(input_fn, steps=3)"), "TFM103"),
    "in a dict": (_driven(f"{MADE}made = dict(one=estimator)\nmade['one'].train(input_fn, steps=3)"), "TFM103"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_comes_out(name: str) -> None:
    text, code = PROGRAMS[name]
    new, findings = run(text)
    assert new == text and code in {f.code for f in findings if f.severity is Severity.MANUAL}, findings
    new, findings = run(text, style="auto")
    expected = text.replace("tf.estimator.", "keras_estimator.").splitlines()
    assert new.splitlines()[2:] == expected[1:]
    assert [f.code for f in findings] == ["TFM155"]
