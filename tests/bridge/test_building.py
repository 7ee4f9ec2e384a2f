"""`--try`: models of bridged programs are built in every mode that they use, and what fails is told with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from migrator.cli.migrate import command

pytestmark = pytest.mark.tensorflow

HELPER = """import tensorflow as tf


def loss_of(features, labels):
    return tf.losses.mean_squared_error(labels, tf.layers.dense(features["x"], 1))


def wrong(features):
    return tf.layers.dense(features["x"], 1).nosuch
"""
GOOD = """import tensorflow as tf
import helper


def model_fn(features, labels, mode):
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, features)
    loss = helper.loss_of(features, labels)
    train_op = tf.train.AdamOptimizer().minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def data():
    return tf.data.Dataset.from_tensors(({"x": [[1.0]]}, [[1.0]]))


if __name__ == "__main__":
    model = tf.estimator.Estimator(model_fn, "m")
    model.train(data)
    print(model.evaluate(data)["accuracy"] + 1)
    print(list(model.predict(data)))
    open("trained", "w").close()
"""
FILES = {
    "helper.py": HELPER,
    "good.py": GOOD,
    "bad.py": GOOD.replace("helper.loss_of(features, labels)", "helper.wrong(features)"),
    "late.py": GOOD.replace("return tf.estimator.EstimatorSpec(mode, features)", "return tf.estimator.nothing"),
    "packed.py": GOOD.replace("import helper", "import helper\nfrom no_such_package.plots import Plot, colours"),
    "package/__init__.py": "",
    "package/part.py": GOOD.replace("import helper", "from .inner import helper"),
    "package/inner/__init__.py": "",
    "package/inner/helper.py": HELPER,
    "tpu.py": GOOD.replace("tf.estimator.E", "tf.estimator.tpu.TPUE").replace(
        '"m")',
        'config=tf.estimator.tpu.RunConfig(master="a"), train_batch_size=1, eval_batch_size=1, predict_batch_size=1)',
    ),
    "downloads.py": GOOD.replace('if __name__ == "__main__":', 'if __name__ == "__main__":\n    images()').replace(
        "def data():",
        "def images():\n    tf.contrib.learn.datasets.load_dataset('mnist').train.images.reshape([-1, 28, 28])\n"
        "    (pictures, _), _ = tf.keras.datasets.cifar100.load_data()\n"
        "    if pictures.shape[1:] != (32, 32, 3):\n        raise ValueError(pictures.shape)\n\n\ndef data():",
    ),
    "wants.py": GOOD.replace(
        'if __name__ == "__main__":',
        'if __name__ == "__main__":\n    import argparse\n\n    parser = argparse.ArgumentParser()\n'
        '    parser.add_argument("--size", type=int, required=True)\n    parser.add_argument("folder")\n'
        "    given = parser.parse_args()\n    files = tf.gfile.Glob(given.folder + '/*.tfrecord')\n"
        "    tf.data.TFRecordDataset(files).batch(given.size)",
    ),
    "beside.py": GOOD.replace("AdamOptimizer()", "AdagradOptimizer(0.1)").replace(
        'if __name__ == "__main__":', 'if __name__ == "__main__":\n    own = tf.placeholder(tf.float32, [])'
    ),
    "flags.py": GOOD.replace("import helper\n", "import helper\n\nflags = tf.app.flags\n", 1)
    .replace(
        "\n\ndef model_fn",
        "flags.DEFINE_integer('size', None, '')\nflags.mark_flag_as_required('size')\n\n\ndef model_fn",
        1,
    )
    .replace('if __name__ == "__main__":', "def main(argv):\n    tf.zeros([flags.FLAGS.size])")
    + "\n\ntf.app.run()\n",
    "learn.py": "import numpy as np\nimport tensorflow as tf\n\nX = np.ones([4, 2], np.float32)\n"
    "columns = tf.contrib.learn.infer_real_valued_columns_from_input(X)\n"
    "model = tf.contrib.learn.DNNClassifier([3], columns)\nmodel.fit(X, np.zeros(4, np.int32), steps=1)\n"
    "print(model.evaluate(X, np.zeros(4, np.int32))['loss'] + 1, list(model.predict_proba(X)))\n",
    "asks.py": GOOD.replace(
        'if __name__ == "__main__":', 'if __name__ == "__main__":\n    import numpy as np\n    np.load("data.npy")'
    ),
    "calls.py": GOOD.replace(
        'if __name__ == "__main__":', 'if __name__ == "__main__":\n    no_such_package.sizes()'
    ).replace("import helper", "import helper\nimport no_such_package"),
    "reads.py": GOOD.replace('if __name__ == "__main__":', 'if __name__ == "__main__":\n    words()').replace(
        "def data():",
        'def words():\n    with tf.gfile.Open("words.txt") as file:\n        assert len({line for line in file}) > 1\n'
        '    with open("sizes.txt", "rb") as file:\n        int(next(file))\n\n\ndef data():',
    ),
}
FILES["words.py"] = FILES["tpu.py"].replace(
    "    loss = helper", "    tf.strings.length(tf.as_string(features['x']))\n    loss = helper"
)
FILES["session.py"] = """import tensorflow as tf

x = tf.placeholder(tf.float32, [None, 2])
w = tf.Variable(tf.zeros([2, 1]))
step = tf.train.AdamOptimizer(0.1).minimize(tf.reduce_mean(tf.square(tf.matmul(x, w) - 1.0)))
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    while True:  # which is not waited for
        session.run([step], {x: [[1.0, 2.0]]})
"""
FILES["feeds.py"] = FILES["session.py"].replace("[[1.0, 2.0]]", "[1.0, 2.0]")


def test_models_are_built_and_failures_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")  # nothing is downloaded, whatever machine this is
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    done = CliRunner().invoke(command, ["--style", "bridge", "--try", str(tmp_path)])
    told = sorted(line.split(": ", 1) for line in done.output.splitlines() if ": TFM" in line)
    assert sorted((said[:6], place.removeprefix(f"{tmp_path}/")) for place, said in told) == [
        ("TFM155", "asks.py:20:13"),
        ("TFM155", "beside.py:19:13"),  # its placeholder is in the default graph
        ("TFM155", "calls.py:20:13"),
        ("TFM155", "downloads.py:26:13"),
        ("TFM155", "flags.py:23:13"),
        ("TFM155", "good.py:18:13"),
        ("TFM155", "learn.py:6:9"),
        ("TFM155", "package/part.py:18:13"),
        ("TFM155", "packed.py:19:13"),  # the package is not called
        ("TFM155", "reads.py:26:13"),
        ("TFM155", "tpu.py:18:13"),
        ("TFM155", "wants.py:26:13"),
        ("TFM155", "words.py:19:13"),
        ("TFM156", "late.py:7:16"),
        ("TFM169", "feeds.py:9:1"),  # a value that its placeholder does not take
        ("TFM169", "helper.py:9:1"),  # in training
        ("TFM169", "helper.py:9:1"),  # and in evaluation
        ("TFM177", "asks.py:20:1"),
        ("TFM177", "downloads.py:1:1"),  # built, on images of that shape
        ("TFM177", "flags.py:1:1"),
        ("TFM177", "reads.py:1:1"),  # built, on lines of numbers
        ("TFM177", "wants.py:1:1"),
        ("TFM179", "calls.py:20:1"),  # the package is
        ("TFM199", "session.py:6:6"),
        ("TFM432", "words.py:9:1"),  # to strings
        ("TFM432", "words.py:9:1"),  # and of strings
    ]
    assert done.output.count("on stand-ins") == 4
    assert (tmp_path / "bad.py").read_text() == FILES["bad.py"]
    assert (tmp_path / "good.py").read_text() != FILES["good.py"]
    assert "class Estimator" in (tmp_path / "keras_estimator.py").read_text()
    assert not (tmp_path / "trained").exists() and not (tmp_path / "m").exists()
