"""Programs that keep their sessions: whole texts before and after, those that stay first, and the numbers of both."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from migrator.bridge.project import Bridges, bridge_project
from migrator.findings import Severity
from migrator.harness.environments import migrated_python, original_python
from migrator.migrate import Options, migrate
from migrator.source.reading import Source
from tests import warm

TENSORFLOW1 = os.environ.get("TF_MIGRATE_TENSORFLOW1_PYTHON", "")
PATH = Path("train.py")

LOOP = """\
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(3):
        _, found = sess.run([train_op, loss], feed_dict={x: [[1.0]]})
    print(sess.run(loss, {x: [[2.0]]}))
"""
GRAPH = """\
x = tf.placeholder(tf.float32, [None, 1])
w = tf.Variable(tf.zeros([1, 1]))
loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - 1.0))
train_op = tf.train.AdamOptimizer(0.1).minimize(loss)
"""
PLAIN = f"import tensorflow as tf\n\n{GRAPH}{LOOP}"


def bridged(**texts: str) -> Bridges:
    return bridge_project({Path(f"{name}.py"): text for name, text in texts.items()})


STAYS = {
    "done": f"import tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()\n\n{GRAPH}{LOOP}",
    "done, and all of it in a graph": "import tensorflow.compat.v1 as tf\n\nwith tf.Graph().as_default():\n"
    "    one = tf.constant(1)\n    print(tf.Session().run(one))\n",
    "TensorFlow 2": "import tensorflow as tf\n\ntf.random.set_seed(1)\nwith tf.compat.v1.Session() as s:\n    s.run(x)",
    "for both versions": "import tensorflow as tf\n\nif tf.__version__ < '2':\n    s = tf.Session()\n",
    "types alone": "import tensorflow.compat.v1 as tf\nfrom typing import Optional\n\n\n"
    "def f(s: tf.Session, t: Optional[tf.Session] = None) -> 'tf.Session':\n    u: tf.Session = t\n"
    "    return s if isinstance(u, (tf.Session, tf.InteractiveSession)) else tf.log(u)\n",
    "eager anywhere": "import tensorflow as tf\n\ntf.compat.v1.enable_eager_execution()\nprint(tf.reduce_sum([1]))\n",
    "another Session": "import tensorflow as tf\nfrom requests import Session\n\nSession().get(tf.__version__)\n",
}


@pytest.mark.parametrize("text", STAYS.values(), ids=STAYS)
def test_stays(text: str) -> None:
    found = bridged(train=text)
    assert not found.texts and not found.findings


EAGER = """\
import numpy as np
import tensorflow as tf
import layer

tf.enable_eager_execution()
tfe = tf.contrib.eager
w = tfe.Variable([[0.0]], name="w")
step = tf.train.get_or_create_global_step()
optimizer = tf.train.AdamOptimizer(0.1)
x = np.linspace(-1.0, 1.0, 8).astype(np.float32)[:, None]
data = tf.data.Dataset.from_tensor_slices((x, 3 * x)).batch(2)
mean, right = tfe.metrics.Mean(), tfe.metrics.Accuracy("right")
iterator = tfe.Iterator(data)
print(int(x.shape[1]), tf.constant(x).shape[1].value, iterator.get_next()[0].numpy().tolist(), len(list(iterator)))
for a, b in tfe.Iterator(data):
    with tf.GradientTape() as tape:
        loss = tf.losses.mean_squared_error(b, layer.apply(a, w))
    grads = tape.gradient(loss, [w])
    optimizer.apply_gradients(zip(grads, [w]), global_step=step)
    mean(loss)
    right(tf.sign(b), tf.sign(layer.apply(a, w)))
    print("%d %.6f %.6f %.6f" % (step.numpy(), loss, mean.result(), right.result()))
mean.init_variables()
mean(tf.constant([1.0, 3.0]), weights=tf.constant([3.0, 1.0]))
print(float(mean.result()))
"""
LAYER = "import tensorflow as tf\n\n\ndef apply(x, w):\n    return tf.matmul(x, w) + tf.to_float(0.5)\n"


def test_eager_programs_stay_eager() -> None:
    """Each file has what TensorFlow 1 had in its tensors; no file turns eager execution off."""
    found = bridged(train=EAGER, layer=LAYER)
    assert [(one.code, one.line) for one in found.findings[PATH]] == [("TFM199", 5)]
    switches = "import tensorflow.compat.v1 as tf\ntf.disable_tensor_equality()\ntf.disable_v2_tensorshape()\n"
    for path in (PATH, Path("layer.py")):
        assert switches in found.texts[path] and "disable_v2_behavior" not in found.texts[path]
    assert "\ntf.enable_eager_execution()\n" in found.texts[PATH]


def test_an_eager_program_with_sessions_turns_tensorflow_2_off_first() -> None:
    found = bridged(train=PLAIN.replace("\n\n", "\n\nif FLAGS.eager:\n    tf.enable_eager_execution()\n", 1))
    assert "tf.disable_v2_behavior()\n" in found.texts[PATH] and "tensorshape" not in found.texts[PATH]


@pytest.mark.tensorflow
def test_eager_programs_compute_the_same(tmp_path: Path) -> None:
    new_python = migrated_python()
    if new_python is None or not TENSORFLOW1:
        pytest.skip("TF_MIGRATE_TENSORFLOW1_PYTHON names no TensorFlow 1.15.5, or no environments")
    printed = []
    for side, python in (("old", Path(TENSORFLOW1)), ("new", new_python)):
        folder = tmp_path / side
        folder.mkdir()
        texts = {PATH: EAGER, Path("layer.py"): LAYER}
        for path, text in {**texts, **(bridged(train=EAGER, layer=LAYER).texts if side == "new" else {})}.items():
            (folder / path).write_text(text)
        done = warm.run(python, str(folder / PATH), cwd=folder)
        assert not done.returncode, done.stderr[-4000:]
        printed.append(done.stdout)
    assert printed[0] == printed[1] and printed[0].count("\n") == 6


def test_a_program_that_needs_nothing_else_has_no_file_beside_it() -> None:
    found = bridged(train=PLAIN)
    switched = "import tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()\n"
    assert found.texts == {PATH: PLAIN.replace("import tensorflow as tf\n", switched)}
    (told,) = found.findings[PATH]
    assert (told.code, told.line, told.severity) == ("TFM199", 7, Severity.REVIEW)
    assert not bridge_project(found.texts).texts


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            "import os, tensorflow as tf\nimport model\nprint(tf.Session().run(model.f()))\n",
            "import os, tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()\nimport model\n"
            "print(tf.Session().run(model.f()))\n",
            id="several in a line",
        ),
        pytest.param(
            "from tensorflow import Session, placeholder\nSession().run(placeholder('float'))\n",
            "import tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()\n"
            "from tensorflow.compat.v1 import Session, placeholder\nSession().run(placeholder('float'))\n",
            id="names alone",
        ),
        pytest.param(
            "try:\n    import tensorflow as tf\nexcept ImportError:\n    raise\ntf.Session().run(tf.zeros(3))\n",
            "try:\n    import tensorflow.compat.v1 as tf\nexcept ImportError:\n    raise\n"
            "tf.disable_v2_behavior()\ntf.Session().run(tf.zeros(3))\n",
            id="in a try",
        ),
        pytest.param(
            "import tensorflow as tf; tf.disable_eager_execution()\ntf.Session().run(tf.log(2.0))\n",
            "import tensorflow.compat.v1 as tf; tf.disable_eager_execution()\ntf.Session().run(tf.log(2.0))\n",
            id="a switch of its own",
        ),
    ],
)
def test_where_the_switch_stands(before: str, after: str) -> None:
    assert bridged(train=before).texts[PATH] == after


@pytest.mark.parametrize(
    ("made", "line"),
    [
        ("make: object = tf.Session\n", 7),
        ("make = functools.partial(tf.Session, config=None)\n", 7),
        ("make = {'one': tf.InteractiveSession}['one']\n", 7),
        ("class make(tf.Session):\n    pass\n\n\n", 7),
        ("def make(kind=tf.Session):\n    return kind()\n\n\n", 7),
        ("make = lambda: tf.train.MonitoredTrainingSession()\n", 7),
    ],
)
def test_sessions_may_be_made_by_whatever_is_given_their_class(made: str, line: int) -> None:
    text = PLAIN.replace("with tf.Session()", f"{made}with make()")
    found = bridged(train=text)
    assert "tf.disable_v2_behavior()" in found.texts[PATH]
    assert [(one.code, one.line) for one in found.findings[PATH]] == [("TFM199", line)]


def test_what_tensorflow_2_lacks_comes_from_the_file_beside_it() -> None:
    text = PLAIN.replace("tf.zeros([1, 1])", "tf.contrib.layers.xavier_initializer()([1, 1])")
    found = bridged(train=text)
    assert set(found.texts) == {PATH, Path("keras_estimator.py")}
    head = (
        "import keras_estimator  # before TensorFlow: it chooses Keras 2\nimport tensorflow.compat.v1 as tf\n"
        "tf.disable_v2_behavior()\n"
    )
    assert found.texts[PATH].startswith(head) and "keras_estimator.xavier_initializer()" in found.texts[PATH]
    support = found.texts[Path("keras_estimator.py")]
    assert (
        support.startswith('"""What TensorFlow 1 had and TensorFlow 2.21 has not') and "class Estimator" not in support
    )
    assert bridged(train=PLAIN.replace("tf.matmul(x, w)", "tf.layers.dense(x, 1)")).texts[PATH].startswith(head)


def test_all_files_of_a_program_go_or_none() -> None:
    model = f"import tensorflow as tf\n\n\ndef build():\n    {GRAPH.replace(chr(10), chr(10) + '    ')}return x, loss\n"
    train = f"import tensorflow as tf\nfrom model import build\n\nx, loss = build()\ntrain_op = loss\n{LOOP}"
    other = f"import tensorflow as tf\nimport model\n\nx, loss = model.build()\ntrain_op = loss\n{LOOP}"
    found = bridged(model=model, train=train, other=other)
    assert len(found.texts) == 3
    assert all("tf.disable_v2_behavior()" in text for text in found.texts.values())
    found = bridged(model=model.replace("tf.square", "tf.contrib.nosuch.square"), train=train, other=other)
    assert not found.texts
    told = {(str(path), one.line): one.message for path, many in found.findings.items() for one in many}
    assert set(told) == {("model.py", 7), ("train.py", 6), ("other.py", 6)}
    assert told["train.py", 6].startswith("the program of this session is blocked at model.py:7")


def test_what_an_estimator_uses_is_its_own() -> None:
    """A helper with a session stays with the program of its Estimator, also where that stays as it was."""
    helper = (
        "import tensorflow as tf\n\n\ndef count():\n    with tf.Session() as s:\n        return s.run(tf.zeros(3))\n"
    )
    main = "import tensorflow as tf\nimport helper\n\ntf.estimator.Estimator(f).train(helper.count, steps={})\n"
    assert "disable_v2_behavior" not in bridged(helper=helper, main=main.format(3)).texts[Path("helper.py")]
    assert not bridged(helper=helper, main=main.format("tf.contrib.nosuch.x()")).texts


def test_a_file_that_an_estimator_shares_does_not_turn_tensorflow_2_off() -> None:
    """The session's own file does, for both; `data.py` has names that mean the same with TensorFlow 2 on."""
    data = "import tensorflow as tf\n\n\ndef scaled(x):\n    return tf.log(x)\n"
    estimator = (
        "import tensorflow as tf\nfrom data import scaled\n\n\ndef model_fn(features, labels, mode):\n"
        "    w = tf.get_variable('w', [])\n    loss = w * tf.reduce_sum(scaled(features))\n"
        "    train_op = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())\n"
        "    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)\n\n\n"
        "tf.estimator.Estimator(model_fn).train(lambda: tf.data.Dataset.from_tensors(1.0))\n"
    )
    session = f"import tensorflow as tf\nfrom data import scaled\n{GRAPH}{LOOP}"
    texts = {Path("data.py"): data, Path("train.py"): estimator, Path("graph.py"): session}
    made = bridge_project(texts)
    assert "keras_estimator.Estimator" in made.texts[Path("train.py")]
    assert "disable_v2_behavior" not in made.texts[Path("data.py")]
    graph = made.texts[Path("graph.py")]
    assert graph.startswith("import tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()\nfrom data import scaled\n")
    assert [one.code for one in made.findings[Path("graph.py")]] == ["TFM199"]
    alone = bridge_project({path: text for path, text in texts.items() if path.name != "train.py"})
    assert "disable_v2_behavior" in alone.texts[Path("graph.py")]


def test_a_session_that_has_tensorflow_from_a_file_of_an_estimator_turns_tensorflow_2_off() -> None:
    common = "import tensorflow as tf\n"
    estimator = (
        "from common import tf\n\n\ndef model_fn(features, labels, mode):\n    loss = tf.get_variable('w', [])\n"
        "    train_op = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())\n"
        "    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)\n\n\n"
        "tf.estimator.Estimator(model_fn).train(lambda: tf.data.Dataset.from_tensors(1.0))\n"
    )
    made = bridged(common=common, train=estimator, graph=f"from common import tf\n\n{GRAPH}{LOOP}")
    assert made.texts[Path("common.py")] == "import tensorflow.compat.v1 as tf\n"
    graph = made.texts[Path("graph.py")]
    assert graph == "from common import tf\ntf.disable_v2_behavior()\n\n" + GRAPH + LOOP
    assert not bridge_project(made.texts, {Path("graph.py"), Path("train.py"), Path("common.py")}).texts


def test_a_file_with_nothing_but_the_import_of_tensorflow() -> None:
    """No file says both what is read and what it is of."""
    texts = {"common.py": "import tensorflow as tf\n", "graph.py": f"from common import tf\n\n{GRAPH}{LOOP}"}
    sources = [Source(Path(name), text.encode(), text, "utf-8", False) for name, text in texts.items()]
    new = {str(one.source.path): one.text for one in migrate(sources, Options(bridge=True))}
    assert new["common.py"] == "import tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()\n"


@pytest.mark.parametrize(
    ("taken", "lent", "code"),
    [
        ("from data import scaled", {"scaled"}, "TFM199"),
        ("import data\nscaled = data.scaled", {"scaled"}, "TFM199"),
        ("from data import scaled, rows", {"scaled"}, "TFM148"),
        ("from data import *", {"scaled"}, "TFM148"),
        ("import data\nscaled = vars(data)['scaled']", {"scaled"}, "TFM148"),
    ],
)
def test_a_file_that_another_form_has_changed(taken: str, lent: set[str], code: str) -> None:
    """It may give what means the same; else the session stays, and it is said why."""
    new = "import tensorflow as tf\n\n\ndef scaled(x):\n    return tf.math.log(x)\n\n\ndef rows():\n    return data\n"
    session = f"import tensorflow as tf\n{taken}\n{GRAPH}{LOOP}"
    texts = {Path("data.py"): new, Path("graph.py"): session}
    made = bridge_project(texts, {Path("graph.py")}, lends=lambda path, names: names <= lent)
    assert made.texts.keys() == ({Path("graph.py")} if code == "TFM199" else set())
    assert [one.code for one in made.findings[Path("graph.py")]] == [code]


def test_a_program_that_has_its_support_file_is_done() -> None:
    """Its text is that of an earlier run, which gave it the file beside it: there is nothing to tell."""
    made = bridged(train=PLAIN.replace("tf.matmul(x, w)", "tf.contrib.layers.layer_norm(x) * w"))
    assert Path("keras_estimator.py") in made.texts
    again = bridge_project(made.texts, {Path("train.py")})
    assert not again.texts and not again.findings


def test_a_file_that_loses_its_import_does_not_ask_it_to_turn_tensorflow_2_off() -> None:
    config = "import tensorflow as tf\n\nconfig = tf.contrib.training.HParams(rate=0.1)\n"
    found = bridged(config=config, train=f"from config import config\n{PLAIN}")
    assert found.texts[Path("config.py")] == (
        "import keras_estimator  # before TensorFlow: it chooses Keras 2\nimport tensorflow.compat.v1 as tf\n"
        "tf.disable_v2_behavior()\n\nconfig = keras_estimator.HParams(rate=0.1)\n"
    )


COMMON = (
    "import numpy as np\nimport tensorflow as tf\ncontrib = tf.contrib\nrnn = tf.contrib.rnn\nkept = tf.nn.rnn_cell\n"
)
TAKES = "from common import tf, contrib, rnn, kept\n"
CELLS = "cells = rnn.LSTMCell(3), rnn.LSTMBlockCell(3), kept.GRUCell(3), contrib.layers.l2_regularizer(0.1)\n"
NEW_CELLS = "cells = tf.nn.rnn_cell.LSTMCell(3), keras_estimator.LSTMBlockCell(3), kept.GRUCell(3), "


def test_programs_that_get_tensorflow_and_modules_of_it_from_a_file_of_theirs() -> None:
    found = bridged(common=COMMON, train=f"{TAKES}{GRAPH}{CELLS}{LOOP}")
    assert {one.code for one in found.findings[PATH]} == {"TFM199"}
    text = found.texts[PATH]
    assert text.startswith(
        f"import keras_estimator  # before TensorFlow: it chooses Keras 2\n{TAKES}{GRAPH}{NEW_CELLS}"
    )
    assert "keras_estimator.l2_regularizer(0.1)\n" in text and text.endswith(LOOP)
    assert found.texts[Path("common.py")] == (
        "import numpy as np\nimport keras_estimator  # before TensorFlow: it chooses Keras 2\n"
        "import tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()\n"
        "contrib = None\nrnn = None\nkept = tf.nn.rnn_cell\n"  # the names are imported still
    )


@pytest.mark.parametrize("takes", [TAKES, "from common import *\n"])
def test_no_program_imports_what_gets_tensorflow_from_another_file(takes: str) -> None:
    other = f"{takes}\n\ndef f(x):\n    return tf.log(x)\n\n\n{CELLS}"
    found = bridged(common=COMMON, other=other)
    assert "import tensorflow.compat.v1 as tf\n" in found.texts[Path("common.py")]
    assert "keras_estimator.LSTMBlockCell(3)" in found.texts[Path("other.py")]
    two = "from common import tf\n\nmodel = tf.keras.Sequential()\ntf.random.set_seed(1)\n"
    assert Path("common.py") not in bridged(common=COMMON.partition("contrib")[0], other=other, two=two).texts


# -- the numbers of both --

PROGRAM = """\
import os, sys
import numpy as np
import tensorflow as tf

FOLDER = sys.argv[1]
rng = np.random.RandomState(0)
images = rng.normal(size=(48, 6, 4)).astype(np.float32)
labels = (images.sum((1, 2)) > 0).astype(np.int64)


def kernel(*shape):
    return tf.constant_initializer(np.sin(np.arange(np.prod(shape))).reshape(shape).astype(np.float32))


# An initializable iterator for what is evaluated, placeholders for what is trained.
data = tf.data.Dataset.from_tensor_slices((images, labels)).batch(16)
iterator = data.make_initializable_iterator()
x = tf.placeholder(tf.float32, [None, 6, 4], name="x")
y = tf.placeholder(tf.int64, [None], name="y")
training = tf.placeholder_with_default(False, [])
with tf.variable_scope("net", reuse=tf.AUTO_REUSE):

    def net(x):
        cell = tf.nn.rnn_cell.BasicLSTMCell(5)
        outputs, _ = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)
        hidden = tf.layers.dense(outputs[:, -1], 7, tf.nn.relu, kernel_initializer=kernel(5, 7), name="hidden")
        w = tf.get_variable("w", [7, 2], initializer=kernel(7, 2))
        return tf.nn.xw_plus_b(hidden, w, tf.get_variable("b", [2], initializer=tf.zeros_initializer()))

    logits = net(x)
    given, wanted = iterator.get_next()
    predicted = net(given)
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
accuracy, update = tf.metrics.accuracy(wanted, tf.argmax(predicted, 1))
step = tf.train.get_or_create_global_step()
rate = tf.train.exponential_decay(0.05, step, 4, 0.9)
optimizer = tf.train.RMSPropOptimizer(rate, momentum=0.5)
gradients, variables = zip(*optimizer.compute_gradients(loss))
gradients, norm = tf.clip_by_global_norm(gradients, 0.5)
train_op = optimizer.apply_gradients(zip(gradients, variables), global_step=step)
average = tf.train.ExponentialMovingAverage(0.9, step)
with tf.control_dependencies([train_op]):
    train_op = average.apply(tf.trainable_variables())
saver = tf.train.Saver(max_to_keep=2)
recurrent = [v for v in tf.trainable_variables() if "lstm" in v.name]
start = [v.assign(np.cos(np.arange(np.prod(v.shape.as_list()))).reshape(v.shape.as_list())) for v in recurrent]
config = tf.ConfigProto(allow_soft_placement=True)
with tf.Session(config=config) as sess:
    sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    sess.run(start)
    for epoch in range(2):
        for begin in range(0, 48, 16):
            feed = {x: images[begin:begin + 16], y: labels[begin:begin + 16], training: True}
            _, found, size, number = sess.run([train_op, loss, norm, step], feed_dict=feed)
            print("FOUND", float(found), float(size))
        sess.run([iterator.initializer, tf.local_variables_initializer()])
        while True:
            try:
                sess.run(update)
            except tf.errors.OutOfRangeError:
                break
        print("FOUND", epoch, float(sess.run(accuracy)), float(sess.run(loss, {x: images, y: labels})))
        saver.save(sess, os.path.join(FOLDER, "model"), global_step=step)
with tf.Session() as sess:
    saver.restore(sess, tf.train.latest_checkpoint(FOLDER))
    print("FOUND", float(loss.eval({x: images, y: labels})), int(step.eval()))
for name, value in tf.train.list_variables(FOLDER):
    print("SAVED", name, value)
"""


@pytest.mark.tensorflow
def test_losses_and_checkpoints_are_those_of_tensorflow_1(tmp_path: Path) -> None:
    old, new = Path(TENSORFLOW1) if TENSORFLOW1 else original_python(), migrated_python()
    if old is None or new is None:
        pytest.skip("no TensorFlow environments: make environments")
    made = bridge_project({PATH: PROGRAM}).texts
    before = PROGRAM
    if not TENSORFLOW1:
        behaviour = "import tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()\n"
        before = before.replace("import tensorflow as tf\n", behaviour)
    lines = []
    for name, python, texts in (("before", old, {PATH: before}), ("after", new, made)):
        folder = tmp_path / name
        folder.mkdir()
        for path, text in texts.items():
            (folder / path).write_text(text)
        done = warm.run(python, str(folder / PATH), str(folder / "model"), cwd=folder)
        assert not done.returncode, done.stderr[-3000:]
        lines.append([line for line in done.stdout.splitlines() if line.startswith(("FOUND", "SAVED"))])
    ours, theirs = lines[1], lines[0]
    assert len(ours) == len(theirs) > 20
    for one, other in zip(ours, theirs, strict=True):
        if one.startswith("SAVED") and TENSORFLOW1:
            assert one == other
        found, wanted = ([float(value) for value in re.findall(r"-?\d+\.\d+\S*", line)] for line in (one, other))
        assert found == pytest.approx(wanted, rel=2e-5), (one, other)
