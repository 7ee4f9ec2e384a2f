"""While a name stands that TensorFlow 2.21 lacks, a finding says so, and so does the exit code."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from migrator.cli.program import program

TF = "import tensorflow as tf\n"


def run(tmp_path: Path, *options: str, **files: str) -> Result:
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(text)
    return CliRunner().invoke(program, [*options, str(tmp_path)])


@pytest.mark.parametrize(
    ("text", "findings"),
    [
        (
            "from tensorflow.contrib import timeseries\ntimeseries.ARRegressor(1, 2, 1).train(x)\n",
            [("TFM156", 2, "`tf.contrib.timeseries.ARRegressor` is gone")],
        ),
        (
            f"{TF}w = tf.get_variable('w', [2])\nv = tf.get_variable('v', [2])\nx = tf.keras.Input([1])\n",
            [("TFM270", 2, "write `tf.compat.v1.get_variable` (also line 3)")],
        ),
        (
            f"{TF}def f(x):\n    return tf.constant_initializer(x, dtype=tf.Module)\n",
            [("TFM271", 3, "has no `dtype`")],
        ),
        (
            "import tensorflow.compat.v1 as tf\nestimator = tf.keras.estimator\n",
            [("TFM270", 2, "`tf.compat.v1.keras.estimator`")],
        ),
        (
            "import tensorflow as tf\nfrom tensorflow.examples.tutorials.mnist import no\nx = tf.keras.Input([1])\n",
            [("TFM270", 2, "tf.keras.datasets.mnist")],
        ),
        ("from tensorflow.python.layers import utils, no\n", []),  # nobody knows
        ("from tensorflow.python.keras.engine import network\n", [("TFM270", 1, "`tf.python.keras.engine.network`")]),
        (f"{TF}# tf.Session, tf.contrib\ntext = 'tf.get_variable'\n", []),
        (f"{TF}if tf.__version__ < '2':\n    tf.Session()\n", []),
        (f"{TF}x = tf.map_fn(f, tf.nn.dropout(y, rate=0.5))\n", []),
        (f"{TF}layer = tf.keras.layers.BatchNormalization()\nboard = tf.keras.callbacks.TensorBoard('x')\n", []),
    ],
)
def test_what_stands_is_told(text: str, findings: list[tuple[str, int, str]], tmp_path: Path) -> None:
    done = run(tmp_path, "--check", library=text)
    lines = [line for line in done.output.splitlines() if ": TFM" in line]
    assert len(lines) == len(findings), done.output
    for line, (code, number, words) in zip(lines, findings, strict=True):
        assert line.startswith(f"{tmp_path}/library.py:{number}:") and f": {code} " in line and words in line
    assert done.exit_code == (1 if findings else 0)


MODERN = """\
import tensorflow as tf
{comment}
strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy()
with strategy.scope():
  model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
  model.compile(tf.keras.optimizers.SGD(lr=0.1), "mse")
model.fit(tf.data.Dataset.from_tensors(([[1.0]], [[1.0]])).repeat(), steps_per_epoch=3)
"""


@pytest.mark.parametrize(
    "comment",
    ["", "# Once tf.compat.v1.", "# No Estimator: tf.contrib, tf.Session", "'''tf.get_variable, tf.estimator'''"],
)
def test_comments_and_texts_have_no_say(comment: str, tmp_path: Path) -> None:
    done = run(tmp_path, main=MODERN.format(comment=comment))
    new = (tmp_path / "main.py").read_text()
    assert done.exit_code == 0
    assert "tf.distribute.MultiWorkerMirroredStrategy()" in new and "SGD(learning_rate=0.1)" in new
    assert 'os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")' in new and comment in new


def test_files_with_names_of_both_versions_are_mended(tmp_path: Path) -> None:
    """The multi-worker guide's TensorFlow 2 half has a ConfigProto."""
    threads = "config = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=4)\nprint(config)"
    done = run(tmp_path, main=MODERN.format(comment=threads))
    new = (tmp_path / "main.py").read_text()
    assert done.exit_code == 0 and threads in new
    assert "tf.distribute.MultiWorkerMirroredStrategy()" in new and "TF_USE_LEGACY_KERAS" in new


def test_what_is_taken_of_compat_keeps_its_meaning(tmp_path: Path) -> None:
    text = "import tensorflow as tf\nfor_all = tf.compat.v1.data.experimental.AUTOTUNE\nprint(for_all)\n"
    assert run(tmp_path, main=text).exit_code == 0
    assert (tmp_path / "main.py").read_text() == text


def test_blocked_programs_tell_what_blocks_them_alone(tmp_path: Path) -> None:
    """What stands in the files of a program that stays as it is will go with it."""
    model = f"{TF}from net import net\n\n\ndef model_fn(features, labels, mode):\n    raise ValueError\n"
    main = f"{TF}from model import model_fn\ntf.estimator.Estimator(model_fn).train(print, steps=1)\n"
    other = f"{TF}x = tf.layers.dense\ny = tf.contrib.bayesflow.x()\n"
    files = {"model": model, "main": main, "net": f"{TF}net = tf.layers.dense\n", "other": other}
    done = run(tmp_path, "--check", **files)
    told = {line.split(":")[0] for line in done.output.splitlines() if ": TFM270 " in line}
    assert done.exit_code == 1 and told == {f"{tmp_path}/other.py"}


def test_names_that_mean_the_same_anywhere_are_mended_one_by_one(tmp_path: Path) -> None:
    text = MODERN.format(
        comment="tf.logging.set_verbosity(tf.logging.ERROR)\ntf.app.flags.DEFINE_integer('n', 3, '')\nx = tf.log(2.0)\n"
        "if hasattr(tf, 'gfile'):\n  tf.gfile.Exists('x')\nw = tf.get_variable('w', [1])"
    )
    done = run(tmp_path, main=text)
    new = (tmp_path / "main.py").read_text()
    assert "tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)\n" in new
    assert "tf.compat.v1.app.flags.DEFINE_integer('n', 3, '')\nx = tf.math.log(2.0)\n" in new
    assert "  tf.gfile.Exists('x')\nw = tf.get_variable('w', [1])\n" in new
    told = [line.split(" ")[1] for line in done.output.splitlines() if ": TFM" in line]
    assert done.exit_code == 1 and told == ["TFM270"]  # of get_variable, which is left


@pytest.mark.parametrize(("steps", "chosen"), [("5", True), ("STEPS", True), ("1", False)])
def test_several_steps_on_replicas_need_keras_2(steps: str, chosen: bool, tmp_path: Path) -> None:
    text = (
        f"{TF}STEPS = 3\nstrategy = tf.distribute.MirroredStrategy()\nwith strategy.scope():\n"
        f"  model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\n"
        f"  model.compile('sgd', 'mse', steps_per_execution={steps})\n"
    )
    assert run(tmp_path, main=text).exit_code == 0
    assert ("TF_USE_LEGACY_KERAS" in (tmp_path / "main.py").read_text()) is chosen


SESSION = """\
import tensorflow as tf
{}
x = tf.compat.v1.placeholder(tf.float32, [None, 3])
with tf.compat.v1.Session() as session:
  print(session.run(tf.reduce_sum(x), {{x: [[1.0, 2.0, 3.0]]}}))
"""


def test_a_session_that_finds_no_graph(tmp_path: Path) -> None:
    """As `tf_upgrade_v2` leaves it: every name is there, and the first line fails on TensorFlow 2."""
    done = run(tmp_path, main=SESSION.format(""))
    assert done.exit_code == 1 and f"{tmp_path}/main.py:3:5: TFM273 " in done.output


@pytest.mark.parametrize(
    "text",
    [
        SESSION.format("tf.compat.v1.disable_v2_behavior()"),
        SESSION.format("tf.compat.v1.disable_eager_execution()"),
        f"{TF}with tf.compat.v1.Session() as session:\n  x = tf.compat.v1.placeholder(tf.float32)\n",
        f"{TF}with tf.Graph().as_default():\n  session = tf.compat.v1.Session()\n",
        f"{TF}tf.compat.v1.keras.backend.set_session(tf.compat.v1.Session())\n",  # sets devices
        f"{TF}\n\ndef x():\n  return tf.compat.v1.placeholder(tf.float32)\n",  # who calls it is not known
    ],
)
def test_a_session_that_finds_its_graph(text: str, tmp_path: Path) -> None:
    done = run(tmp_path, main=text)
    assert done.exit_code == 0, done.output


OWN_WORDS = {
    # As people write them, and what comes out: the code of the first finding, or a line of the new file.
    "contrib.timeseries's Estimator, by its full name": (
        f"{TF}model = tf.contrib.timeseries.ARRegressor(2, 3, 1, num_features=1)\nmodel.train(data, steps=2)\n",
        "TFM156",
    ),
    "flags and logs alone": (
        f"{TF}tf.app.flags.DEFINE_string('name', 'x', '')\n\n\ndef main(argv):\n"
        "    tf.logging.warn('%s', tf.app.flags.FLAGS.name)\n\n\ntf.app.run(main)\n",
        "tf.compat.v1.app.run(main)",
    ),
    "a session that predicts": (
        f"{TF}x = tf.placeholder(tf.float32, [2])\nwith tf.Session() as s:\n    print(s.run(x, {{x: [1.0, 2.0]}}))\n",
        "tf.disable_v2_behavior()",
    ),
    "a cluster, servers with a ConfigProto, and fit on them": (
        f"{TF}import os\nresolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()\n"
        "config = tf.compat.v1.ConfigProto()\nconfig.inter_op_parallelism_threads = 2\n"
        "tf.distribute.Server(resolver.cluster_spec(), job_name='ps', task_index=0, config=config)\n"
        "strategy = tf.distribute.experimental.ParameterServerStrategy(resolver)\n"
        "with strategy.scope():\n    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\n"
        "    model.compile('sgd', 'mse')\nmodel.fit(data, steps_per_epoch=2)\n",
        "strategy = tf.distribute.ParameterServerStrategy(resolver)",
    ),
    "a partitioner of compat.v1 in a program of TensorFlow 2": (
        f"{TF}strategy = tf.distribute.experimental.ParameterServerStrategy(\n"
        "    resolver, variable_partitioner=tf.compat.v1.fixed_size_partitioner(3)\n)\n"
        "with strategy.scope():\n    optimizer = tf.keras.optimizers.Adagrad(lr=0.1)\n",
        "    optimizer = tf.keras.optimizers.Adagrad(learning_rate=0.1)",
    ),
    "both modules imported, one of them for nothing": (
        f"{TF}import tensorflow.compat.v1 as tf1\nstrategy = tf.distribute.MultiWorkerMirroredStrategy()\n"
        "with strategy.scope():\n    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\n",
        'os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")',
    ),
    "a log of compat.v1 above a loop with methods that moved": (
        f"{TF}tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)\n"
        "strategy = tf.distribute.MirroredStrategy()\nwith strategy.scope():\n    mean = tf.keras.metrics.Mean()\n"
        "mean.reset_states()\nstrategy.experimental_run_v2(print)\n",
        "strategy.run(print)",
    ),
}


@pytest.mark.parametrize("name", OWN_WORDS)
def test_programs_that_were_called_done(name: str, tmp_path: Path) -> None:
    text, expected = OWN_WORDS[name]
    done = run(tmp_path, main=text)
    if expected.startswith("TFM"):
        told = [line.split(" ")[1] for line in done.output.splitlines() if ": TFM" in line]
        assert done.exit_code == 1 and told[0] == expected
        assert (tmp_path / "main.py").read_text() == text
    else:
        lines = (tmp_path / "main.py").read_text().splitlines()
        assert done.exit_code == 0 and any(line.strip() == expected.strip() for line in lines), lines


@pytest.mark.tensorflow
def test_a_mended_file_with_names_of_both_versions_runs(tmp_path: Path) -> None:
    """It fails on TensorFlow 2.21 before, and trains after."""
    from migrator.harness.environments import migrated_python

    threads = "print(tf.compat.v1.ConfigProto(inter_op_parallelism_threads=4))\ntf.logging.set_verbosity('ERROR')"
    (tmp_path / "main.py").write_text(MODERN.format(comment=threads))
    environment = {key: value for key, value in os.environ.items() if key != "TF_USE_LEGACY_KERAS"}
    command = [str(migrated_python()), "main.py"]

    def trains() -> bool:
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
        return done.returncode == 0 and "loss:" in done.stdout

    assert not trains()
    assert run(tmp_path).exit_code == 0
    assert trains()


def test_arguments_that_are_gone_where_the_function_of_compat_takes_them(tmp_path: Path) -> None:
    text = f"{TF}layer = tf.keras.layers.Dense(1)\nx = tf.reduce_sum(y, 1, keep_dims=True) + tf.reduce_sum(y, 1)\n"
    assert run(tmp_path, main=text).exit_code == 0
    new = (tmp_path / "main.py").read_text()
    assert new == text.replace("tf.reduce_sum(y, 1, keep", "tf.compat.v1.reduce_sum(y, 1, keep")


@pytest.mark.parametrize(
    ("before", "called"),
    [
        ("total: object = tf.reduce_sum\n", "total"),
        ("from tensorflow import reduce_sum as total\n", "total"),
        ("", "tf.math.reduce_sum"),
    ],
)
def test_arguments_that_are_gone_however_the_function_is_called(before: str, called: str, tmp_path: Path) -> None:
    text = f"{TF}layer = tf.keras.layers.Dense(1)\n{before}x = {called}(y, 1, keep_dims=True)\n"
    assert run(tmp_path, main=text).exit_code == 0
    inner = "math." if ".math." in called else ""
    expected = f"x = tf.compat.v1.{inner}reduce_sum(y, 1, keep_dims=True)"
    assert (tmp_path / "main.py").read_text().splitlines()[-1] == expected
