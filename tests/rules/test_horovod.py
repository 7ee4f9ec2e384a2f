"""Programs that use Horovod where it is installed."""

from __future__ import annotations

import ast

import pytest

from migrator.findings import Severity
from tests.rules.programs import run_project

OPTIMIZATION = """\
import tensorflow as tf


def make_train_op(loss, rate, workers=0, nesterov=False):
    optimizer = tf.train.MomentumOptimizer(rate, 0.9, use_nesterov=nesterov)
    if workers and rate > 0:
        import horovod.tensorflow as hvd
        optimizer = hvd.DistributedOptimizer(optimizer)
    return optimizer.minimize(loss, global_step=tf.train.get_global_step())
"""

PROGRAM = """\
import os

import tensorflow as tf

import optimization

global workers
# Horovod, where there is one.
try:
    import horovod.tensorflow as hvd

    hvd.init()
    workers = hvd.size()
except ImportError:
    workers = 0
    print("no Horovod: one process")

SYNC = True


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).repeat().batch(1)


def model_fn_builder(rate, several=workers):
    def model_fn(features, labels, mode):
        logits = tf.layers.dense(features, 1)
        loss = tf.losses.mean_squared_error(labels, logits)
        train_op = optimization.make_train_op(loss, rate, (several if SYNC else 0))
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    return model_fn


def main():
    folder = "model"
    rate = 0.1
    # Horovod: the rate goes with the processes.
    if workers:
        rate = rate * hvd.size()
        folder = folder if hvd.rank() == 0 else os.path.join(folder, str(hvd.rank()))
    # Horovod: all begin with the same weights.
    if workers > 1:
        hooks = [hvd.BroadcastGlobalVariablesHook(0)]
    elif not workers:
        hooks = []
    else:
        hooks = None
    estimator = tf.estimator.Estimator(model_fn_builder(rate, several=workers), folder)
    estimator.train(input_fn, steps=5, hooks=hooks)


main()
"""


def both(program: str = PROGRAM, optimization: str = OPTIMIZATION) -> tuple[str, str, list[str]]:
    results = run_project({"train.py": program, "optimization.py": optimization}, style="native")
    findings = [finding for _, found in results.values() for finding in found]
    blocking = [finding.code for finding in findings if finding.severity is Severity.MANUAL]
    assert blocking or any(finding.code == "TFM196" for finding in findings)
    return results["train.py"][0], results["optimization.py"][0], blocking


def test_the_program_is_what_runs_without_it() -> None:
    new, optimization, blocking = both()
    assert not blocking
    for text in (new, optimization):
        ast.parse(text)
        for word in ("horovod", "hvd", "several", "workers", "Horovod: "):
            assert word not in text, word
    assert 'print("no Horovod' not in new
    assert "fit(" in new and "rate = 0.1\n" in new


def test_what_the_handler_does_stays() -> None:
    lines = "    workers = 0\n    # Its own folder.\n    os.makedirs('/tmp/mpi', exist_ok=True)\n"
    new, _, blocking = both(PROGRAM.replace("    workers = 0\n", lines))
    assert not blocking
    assert "# Its own folder.\nos.makedirs('/tmp/mpi', exist_ok=True)\n" in new and "no Horovod" not in new


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("except ImportError:", "except ValueError:", id="another error"),
        pytest.param("    workers = 0\n", "    workers = os.cpu_count()\n", id="a value that is not known"),
        pytest.param("    workers = 0\n", "    pass\n", id="no value"),
        pytest.param("except ImportError:", "except ImportError as error:", id="an error with a name"),
        pytest.param(
            "    workers = 0\n", "    workers = 0\n    os.sys.exit('Horovod!')\n", id="the end of the program"
        ),
        pytest.param("SYNC = True", "SYNC = True\nworkers = 2", id="given another value"),
        pytest.param('    folder = "model"\n', '    global workers\n    workers = 2\n    folder = "model"\n', id="set"),
        pytest.param("    rate = 0.1\n", "    rate = 0.1 * hvd.size()\n", id="needed outside of a branch"),
        pytest.param("    if workers > 1:", "    if SYNC:", id="under another condition"),
        pytest.param("(several if SYNC else 0)", "(several if SYNC else 2)", id="a function that gets another value"),
        pytest.param("(several if SYNC else 0)", "*[1]", id="arguments that are not known"),
        pytest.param("loss, rate, (several", "loss, rate, nesterov=(several", id="another parameter"),
    ],
)
def test_what_needs_horovod_is_refused(old: str, new: str) -> None:
    assert old in PROGRAM
    changed = PROGRAM.replace(old, new, 1)
    text, optimization, blocking = both(changed)
    assert blocking
    assert (text, optimization) == (changed, OPTIMIZATION)


def test_a_parameter_that_others_give_a_value_stays() -> None:
    used = "import optimization\n\n\ndef test():\n    assert optimization.make_train_op(1.0, 0.1, workers=4)\n"
    files = {"train.py": PROGRAM, "optimization.py": OPTIMIZATION, "other.py": used}
    results = run_project(files, style="native")
    assert "TFM196" not in {finding.code for _, found in results.values() for finding in found}
    assert {name: text for name, (text, _) in results.items()} == files


ELSEWHERE = "import library.optimization\n\n\ndef test():\n    library.optimization.make_train_op({})\n"


@pytest.mark.parametrize("given", ["1.0, 0.1", "1.0, rate=0.1", "1.0, 0.1, nesterov=True"])
def test_calls_that_may_be_another_function_of_the_name_and_leave_the_parameter_out(given: str) -> None:
    files = {"train.py": PROGRAM, "optimization.py": OPTIMIZATION, "other.py": ELSEWHERE.format(given)}
    results = run_project(files, style="native")
    assert all("hvd" not in text for text, _ in results.values()) and "fit(" in results["train.py"][0]


@pytest.mark.parametrize(
    ("given", "default"),
    [("1.0, 0.1, 2", "0"), ("1.0, *[0.1]", "0"), ("1.0, 0.1, workers=2", "0"), ("1.0, 0.1", "2"), ("1.0, 0.1", "N")],
)
def test_but_not_where_it_may_be_given(given: str, default: str) -> None:
    optimization = OPTIMIZATION.replace("workers=0", f"workers={default}")
    files = {"train.py": PROGRAM, "optimization.py": optimization, "other.py": ELSEWHERE.format(given)}
    results = run_project(files, style="native")
    assert {name: text for name, (text, _) in results.items()} == files


def test_values_that_are_read_elsewhere_stay() -> None:
    changed = PROGRAM.replace("    rate = 0.1\n", "    rate = 0.1\n    print(workers, 'workers')\n")
    new, _, blocking = both(changed)
    assert not blocking and "workers = 0" in new and "print(workers, 'workers')" in new


@pytest.mark.parametrize("error", ["ModuleNotFoundError", "(ImportError, AttributeError)", ""])
def test_ways_to_ask(error: str) -> None:
    changed = PROGRAM.replace("except ImportError:", f"except {error}:".replace(" :", ":"))
    changed = changed.replace("    workers = 0\n", "    hvd = None\n    workers = None\n")
    changed = changed.replace("if workers > 1:", "if hvd is not None and workers:")
    new, _, blocking = both(changed)
    assert not blocking and "hvd" not in new


@pytest.mark.parametrize("reads", ["import train\n\nprint(train.workers)\n", "from train import workers\n"])
def test_values_that_another_file_reads_stay(reads: str) -> None:
    files = {"train.py": PROGRAM, "optimization.py": OPTIMIZATION, "other.py": reads}
    results = run_project(files, style="native")
    assert "workers = 0" in results["train.py"][0] and "hvd" not in results["train.py"][0]


def test_a_program_of_tensorflow_2_keeps_it_and_is_told() -> None:
    program = (
        "import tensorflow as tf\nimport horovod.tensorflow as hvd\n\nhvd.init()\n\n\ndef step(model, x):\n"
        "    with tf.GradientTape() as tape:\n        loss = tf.reduce_mean(model(x))\n"
        "    return hvd.DistributedGradientTape(tape).gradient(loss, model.trainable_variables)\n"
    )
    ((text, findings),) = run_project({"train.py": program}, style="auto").values()
    assert text == program
    assert [(one.code, one.line, one.severity) for one in findings] == [("TFM274", 2, Severity.REVIEW)]
