"""Programs that share files with blocked ones."""

from __future__ import annotations

import pytest

from migrator.findings import Severity
from tests.rules.programs import run_project

SHARED = """\
import tensorflow as tf


def read(path):
    with tf.gfile.Open(path) as file:
        return [[float(line)] for line in file]


def table():
    with tf.variable_scope("table"):
        return tf.get_variable("weights", [1, 2])
"""
PROGRAM = """\
import tensorflow as tf

import shared{imports}


def input_fn():
    return tf.data.Dataset.from_tensor_slices((shared.read("a.txt"), [[2.0]])).batch(1)


def model_fn(features, labels, mode):
    logits = {network}
    loss = tf.losses.mean_squared_error(labels, tf.reduce_sum(logits, 1, keepdims=True))
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


if __name__ == "__main__":
    estimator = tf.estimator.Estimator(model_fn)
    estimator.train(input_fn, steps=3)
"""
SESSION = "tf.matmul(features, tf.Session().run(shared.table()))"
NATIVE = PROGRAM.format(imports="", network="tf.layers.dense(features, 2)")
MAPPED = PROGRAM.format(imports="", network="tf.matmul(features, shared.table())")
STUCK = PROGRAM.format(imports="", network=SESSION)


def migrate(**programs: str) -> dict[str, tuple[str, dict[str, str]]]:
    """The programs and what they share, by name: the new text, and the messages of what was said by code."""
    texts = {f"{name}.py": text for name, text in programs.items()} | {"shared.py": SHARED}
    found = run_project(texts, style="auto")
    return {
        path.removesuffix(".py"): (
            text,
            {f.code: f.message for f in findings if f.severity in (Severity.MANUAL, Severity.REVIEW)},
        )
        for path, (text, findings) in found.items()
    }


def test_the_others_come_out_in_the_form_that_each_has() -> None:
    found = migrate(one=MAPPED, stuck=STUCK)
    assert found["stuck"][0] == STUCK and "TFM153" in found["stuck"][1]
    assert "TF1Model" in found["one"][0] and "TFM114" not in found["one"][1]
    assert "tf.compat.v1.get_variable" in found["shared"][0] and "TFM424" in found["shared"][1]


def test_a_native_program_stays_native_where_only_names_change_in_what_is_shared() -> None:
    shared = SHARED.partition("\n\ndef table")[0]
    stuck = PROGRAM.format(imports="", network="tf.matmul(features, tf.Session().run(tf.ones([1, 2])))")
    found = run_project({"one.py": NATIVE, "stuck.py": stuck, "shared.py": shared}, style="auto")
    assert "tf.keras.layers.Dense" in found["one.py"][0] and "TF1Model" not in found["one.py"][0]
    assert "tf.io.gfile.GFile" in found["shared.py"][0] and found["stuck.py"][0] == stuck


def test_a_program_that_cannot_be_read_may_be_outside_of_the_group() -> None:
    unread = PROGRAM.format(imports="\nimport elsewhere", network=SESSION).replace(
        "Estimator(model", "Estimator(elsewhere.m"
    )
    found = migrate(one=MAPPED, stuck=unread)
    assert found["stuck"][0] == unread and "TF1Model" in found["one"][0] and "TFM424" in found["shared"][1]


def importing(reads: str) -> str:
    """A blocked program that takes something of another."""
    return PROGRAM.format(imports="\nimport one", network=SESSION).replace("shared.read(", f"{reads} or shared.read(")


def test_a_program_that_a_blocked_one_imports_is_migrated_where_what_that_takes_stays() -> None:
    stuck = importing("one.input_fn and one.COUNT")
    found = migrate(one=MAPPED.replace("\n\n\n", "\n\nCOUNT = 3\n\n\n", 1), stuck=stuck)
    assert found["stuck"][0] == stuck and "COUNT = 3" in found["one"][0]
    assert "(TF1Model.run_tracked)" in found["one"][0] and "TFM424" in found["one"][1]


@pytest.mark.parametrize(
    ("reads", "one", "why"),
    [
        ("vars(one)", MAPPED, "what it takes from it is not followed"),
        ("one.input_fn", MAPPED.replace('if __name__ == "__main__":', "if True:"), "does something else when it is"),
        ("one.NUMBER", MAPPED + "\n\nNUMBER = tf.string_to_number('1')\n", "needs `tf.strings.to_number` when"),
        (
            "one.input_fn",
            MAPPED.replace("[[2.0]])).batch(1)", "[[2.0]])).batch(1).make_one_shot_iterator().get_next()"),
            "`input_fn` will be another",
        ),
        ("one.main", MAPPED.replace('if __name__ == "__main__":', "def main():"), "`main` will be another"),
    ],
)
def test_but_not_where_that_would_be_another(reads: str, one: str, why: str) -> None:
    found = migrate(one=one, other=MAPPED, stuck=importing(reads))
    assert found["one"][0] == one
    assert why in found["one"][1]["TFM114"] and found["one"][1]["TFM114"].startswith("`stuck.py`, whose program is")
    assert "TF1Model" in found["other"][0] and found["stuck"][0] == importing(reads)


START = "try:\n    import horovod.tensorflow as hvd\n    hvd.init()\n    workers = hvd.size()\n"
HOROVOD = f"\nglobal workers\n{START}except ImportError:\n    workers = 0\n\n\ndef input_fn():"


def test_horovod_that_is_left_out_is_nothing_to_a_program_that_asks_for_something_else() -> None:
    stuck = importing("one.input_fn")
    found = migrate(one=MAPPED.replace("\ndef input_fn():", HOROVOD), stuck=stuck)
    assert found["stuck"][0] == stuck and "(TF1Model.run_tracked)" in found["one"][0] and "hvd" not in found["one"][0]


@pytest.mark.parametrize("reads", ["one.workers", "__import__('horovod').size() and one.input_fn"])
def test_but_it_stays_for_one_that_asks_for_it(reads: str) -> None:
    one = MAPPED.replace("\ndef input_fn():", HOROVOD)
    stuck = importing(reads)
    if "horovod" in reads:
        stuck = stuck.replace("import one", "import horovod\nimport one").replace("__import__('horovod')", "horovod")
    found = migrate(one=one, stuck=stuck)
    assert (found["one"][0], found["stuck"][0]) == (one, stuck)


def test_a_function_that_makes_hooks_stays_for_a_program_that_stays() -> None:
    hooks = "\n\ndef log(loss):\n    return tf.train.LoggingTensorHook({'loss': loss}, 3)\n"
    spec = "    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op"
    one, stuck = (text.replace(spec, f"{spec}, training_hooks=[shared.log(loss)]") for text in (MAPPED, STUCK))
    texts = {"one.py": one, "stuck.py": stuck, "shared.py": SHARED + hooks}
    found = run_project(texts, style="auto")
    assert found["stuck.py"][0] == stuck and "TF1Model" in found["one.py"][0] and "hook" not in found["one.py"][0]
    assert "return tf.compat.v1.train.LoggingTensorHook({'loss': loss}, 3)" in found["shared.py"][0]
    assert {"TFM116", "TFM424"} <= {finding.code for finding in found["shared.py"][1]}


def test_a_function_that_makes_a_hook_which_is_left_out_goes_with_it() -> None:
    hooks = "import tensorflow as tf\n\n\ndef log(loss):\n    return tf.train.LoggingTensorHook({'loss': loss}, 3)\n"
    hooks += "\n\ndef double(net):\n    return 2 * net\n"
    program = PROGRAM.format(imports="\nimport making", network="making.double(tf.get_variable('w', [1, 2]))").replace(
        "    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)",
        "    hook = making.log(loss)\n"
        "    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, training_hooks=[hook])",
    )
    found = migrate(one=program, making=hooks)
    assert "TFM141" in found["one"][1] and "hook" not in found["one"][0]
    assert "LoggingTensorHook" not in found["making"][0] and "def double" in found["making"][0]


def test_a_program_in_which_nothing_stands_in_the_way_is_told_why_it_stays() -> None:
    shared = SHARED.partition("\n\ndef table")[0] + "\n\ndef net(features):\n    return tf.layers.dense(features, 2)\n"
    one = PROGRAM.format(imports="", network="shared.net(features)")
    stuck = PROGRAM.format(imports="", network="tf.Session().run(shared.net(features))")
    found = run_project({"one.py": one, "stuck.py": stuck, "shared.py": shared}, style="native")
    assert [found[name][0] for name in ("one.py", "stuck.py", "shared.py")] == [one, stuck, shared]
    (told,) = found["one.py"][1]
    assert told.code == "TFM114" and "blocked at stuck.py:11" in told.message
