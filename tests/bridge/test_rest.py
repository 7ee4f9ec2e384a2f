"""Files of TensorFlow 1 that no program of the project imports: their names change with those of its programs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from migrator.findings import Finding, Severity
from migrator.harness.environments import migrated_python
from migrator.migrate import Options, migrate
from migrator.source.reading import Source

# It finds its network by name.
MAIN = """import importlib
import sys

import tensorflow as tf

with tf.Session() as session:
    x = tf.placeholder(tf.float32, [None, 3])
    y = importlib.import_module("nets." + sys.argv[1]).network(x)
    step = tf.train.GradientDescentOptimizer(0.5).minimize(tf.reduce_mean(tf.square(y - 1.0)))
    session.run(tf.global_variables_initializer())
    session.run(step, {x: [[1.0, 1.0, 1.0]]})
    print(session.run(y, {x: [[1.0, 0.0, 0.0]]}).tolist())
"""
NET = """import tensorflow as tf


def network(x):
    scale = tf.get_variable("scale", [], initializer=tf.zeros_initializer())
    return tf.layers.dense(x, 1, kernel_initializer=tf.zeros_initializer(), use_bias=False) + scale
"""
OF_CONTRIB = """import tensorflow as tf


def network(x):
    return tf.contrib.rnn.LayerNormBasicLSTMCell(3)(x, x)
"""
LEARNS = """import tensorflow as tf


def model_fn(features, labels, mode):
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features["x"], 1))
    train_op = tf.train.AdamOptimizer().minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


tf.estimator.Estimator(model_fn, "m").train(lambda: None, steps=3)
"""


def migrated(files: dict[str, str]) -> tuple[dict[str, str], list[Finding]]:
    """The texts that change, those of a second run being the same, and the findings of the first."""

    def run(texts: dict[str, str]) -> tuple[dict[str, str], list[Finding]]:
        sources = [Source(Path(path), text.encode(), text, "utf-8", False) for path, text in texts.items()]
        results = migrate(sources, Options(bridge=True))
        changed = {str(one.source.path): one.text for one in results if one.text != texts.get(str(one.source.path), "")}
        return changed, [finding for one in results for finding in one.findings]

    texts, findings = run(files)
    again, _ = run({**files, **texts})
    assert not again
    return texts, findings


def told(findings: list[Finding]) -> set[tuple[str, str]]:
    return {(one.path, one.code) for one in findings}


def test_a_network_that_is_found_by_its_name() -> None:
    texts, findings = migrated({"main.py": MAIN, "nets/__init__.py": "", "nets/small.py": NET})
    assert texts.keys() == {"keras_estimator.py", "main.py", "nets/small.py"}
    keras_2 = "import keras_estimator  # before TensorFlow: it chooses Keras 2\n"
    imports = f"{keras_2}import tensorflow.compat.v1 as tf"
    assert texts["nets/small.py"] == NET.replace("import tensorflow as tf", imports)
    assert keras_2 in texts["main.py"], "for the tf.layers of the network that it imports later"
    assert "disable_v2_behavior" in texts["main.py"]
    assert told(findings) == {("main.py", "TFM199"), ("nets/small.py", "TFM185")}


def test_beside_an_estimator_it_shares_the_support_file() -> None:
    main = LEARNS.replace("tf.train.AdamOptimizer", "tf.contrib.opt.LazyAdamOptimizer")
    texts, findings = migrated({"main.py": main, "nets.py": OF_CONTRIB})
    assert texts.keys() == {"keras_estimator.py", "main.py", "nets.py"}
    assert "class LayerNormBasicLSTMCell" in texts["keras_estimator.py"]
    assert "keras_estimator.LayerNormBasicLSTMCell(3)" in texts["nets.py"]
    assert "disable_v2_behavior" not in texts["nets.py"], "Estimators need TensorFlow 2"
    assert ("nets.py", "TFM185") in told(findings)


def test_without_any_program_it_has_a_support_file_of_its_own() -> None:
    texts, findings = migrated({"lib/nets.py": OF_CONTRIB})
    assert texts.keys() == {"lib/keras_estimator.py", "lib/nets.py"}
    assert "class LayerNormBasicLSTMCell" in texts["lib/keras_estimator.py"]
    assert told(findings) == {("lib/nets.py", "TFM185")}


def test_what_means_the_same_anywhere_is_spelled_anew() -> None:
    text = 'import tensorflow as tf\n\nwith tf.python_io.TFRecordWriter("x") as writer:\n    writer.write(b"")\n'
    texts, findings = migrated({"convert.py": text})
    assert texts == {"convert.py": text.replace("tf.python_io", "tf.io")}
    assert told(findings) == {("convert.py", "TFM272")}


@pytest.mark.parametrize("gone", ["tf.contrib.bayesflow.x", "tf.contrib.gan.losses.x"])
def test_what_nothing_stands_for_keeps_it_and_what_imports_it(gone: str) -> None:
    nets = NET.replace("tf.layers.dense", gone)
    texts, findings = migrated({"nets.py": nets, "more.py": NET + "\n\nimport nets\n", "other.py": NET})
    assert texts.keys() == {"keras_estimator.py", "other.py"}
    assert {one.severity for one in findings if one.path == "nets.py"} == {Severity.MANUAL}
    assert {one.severity for one in findings if one.path == "more.py"} == {Severity.MANUAL}


def test_files_of_a_blocked_program_stay() -> None:
    main = "import nets\n" + LEARNS.replace('"m")', '"m", tf.contrib.bayesflow.x)')
    texts, _ = migrated({"main.py": main, "nets.py": NET, "tests.py": NET + "\n\nimport nets\n"})
    assert not texts


def test_files_of_tensorflow_2_stay() -> None:
    text = "import tensorflow as tf\n\nlayer = tf.keras.layers.Dense(1)\nx = tf.get_variable('x')\n"
    texts, findings = migrated({"main.py": text})
    assert not texts
    assert told(findings) == {("main.py", "TFM270")}


def test_what_a_bridged_program_shares_with_a_test_holds_nothing() -> None:
    texts, _ = migrated({"main.py": "import nets\n" + LEARNS, "nets.py": NET, "check.py": NET + "\n\nimport nets\n"})
    assert {"main.py", "nets.py", "check.py"} < texts.keys()


def test_keras_beside_a_graph_is_no_tensorflow_2() -> None:
    text = NET + "\n\ny = tf.keras.utils.to_categorical([1])\nx = tf.placeholder(tf.float32)\n"
    texts, findings = migrated({"nets.py": text})
    assert texts.keys() == {"keras_estimator.py", "nets.py"} and told(findings) == {("nets.py", "TFM185")}


@pytest.mark.tensorflow
def test_the_program_runs(tmp_path: Path) -> None:
    python = migrated_python()
    if python is None:
        pytest.skip("no TensorFlow environments: make environments")
    texts, _ = migrated({"main.py": MAIN, "nets/__init__.py": "", "nets/small.py": NET})
    for name, text in {"nets/__init__.py": "", **texts}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    environment = {key: value for key, value in os.environ.items() if key != "TF_USE_LEGACY_KERAS"}
    done = subprocess.run(
        [python, "main.py", "small"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    # (y - 1)^2 has the gradient -2 for the scale and each of the three weights: all become 1.
    assert done.stdout.splitlines()[-1] == "[[2.0]]"


def test_a_lone_text_chooses_keras_2_itself() -> None:
    result = migrate([Source(Path("-"), NET.encode(), NET, "utf-8", False)], Options(bridge=True, inside=True))
    assert "tf.compat.v1" not in result[0].text and "import tensorflow.compat.v1 as tf" in result[0].text
    assert "TF_USE_LEGACY_KERAS" in result[0].text
    assert len(result) == 1


def test_a_test_of_native_programs_stays_with_them() -> None:
    """What a second run finds beside Keras programs is no reason to spell those in names of TensorFlow 1."""
    keras = (
        'import os\n\nos.environ["TF_USE_LEGACY_KERAS"] = "1"\n'
        "import tensorflow as tf\n\nlayer = tf.keras.layers.Dense(1)\n"
        "optimizer = tf.keras.optimizers.legacy.Adagrad(0.1)\nx = tf.as_string(1)\n"
    )
    test = "import tensorflow as tf\nimport main\n\nwith tf.Session() as session:\n    x = tf.placeholder(tf.float32)\n"
    check = test.replace("with tf.Session() as session", "@tf.test.mock.patch.dict(main.__dict__)\ndef test_main()")
    texts, findings = migrated({"main.py": keras, "check.py": check})
    assert not texts
    assert ("check.py", "TFM270") in told(findings)
