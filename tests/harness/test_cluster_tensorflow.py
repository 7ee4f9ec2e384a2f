"""Real TensorFlow programs on real clusters, without the recorder."""

import json
import textwrap
from pathlib import Path

import pytest

from migrator.harness.cluster import ClusterShape, ForkServer, Launch, RunOutcome

pytestmark = pytest.mark.tensorflow

ESTIMATOR = """
import sys
import tensorflow as tf
import quick
from network import model_fn


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0, 2.0], [3.0, 4.0]], [[1.0], [2.0]])).repeat().batch(2)


model = tf.estimator.Estimator(model_fn, model_dir=sys.argv[1])
tf.estimator.train_and_evaluate(
    model,
    tf.estimator.TrainSpec(input_fn, max_steps=20),
    tf.estimator.EvalSpec(input_fn, steps=2, start_delay_secs=0, throttle_secs=1),
)
print("eager" if tf.executing_eagerly() else "graph")
"""
# Each module of the program names TensorFlow in its own way.
NETWORK = """
from tensorflow import estimator
import tensorflow as tf
from loss import mean_squared_error


def model_fn(features, labels, mode):
    loss = mean_squared_error(labels, tf.layers.dense(features, 1))
    step = tf.train.get_global_step()
    train_op = tf.compat.v1.train.GradientDescentOptimizer(0.01).minimize(loss, global_step=step)
    return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
"""
LOSS = """
import tensorflow.compat.v1 as tf1


def mean_squared_error(labels, predictions):
    return tf1.losses.mean_squared_error(labels, predictions)
"""
# Without the recorder nobody else takes the deliberate waits out.
QUICK = """
from tensorflow.python.training import session_manager
from tensorflow_estimator.python.estimator import training

training._DELAY_SECS_PER_WORKER = 0
manager = session_manager.SessionManager
init = manager.__init__
manager.__init__ = lambda self, *a, **k: init(self, *a, **dict(k, recovery_wait_secs=0.3))
"""
KERAS_MIRRORED = """
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(2,))])
    model.compile("sgd", "mse")
data = tf.data.Dataset.from_tensors(([[1.0, 2.0], [3.0, 4.0]], [[1.0], [2.0]])).repeat()
history = model.fit(data, steps_per_epoch=5, epochs=2, verbose=0)
print(strategy.num_replicas_in_sync, *history.history["loss"], tf.keras.layers.Dense.__module__)
"""
KERAS_PARAMETER_SERVER = """
import tensorflow as tf

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if resolver.task_type in ("worker", "ps"):
    spec = resolver.cluster_spec()
    tf.distribute.Server(spec, resolver.task_type, resolver.task_id, protocol="grpc").join()
elif resolver.task_type == "chief":
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(2,))])
        model.compile("sgd", "mse")
    creator = tf.keras.utils.experimental.DatasetCreator(
        lambda _: tf.data.Dataset.from_tensors(([[1.0, 2.0], [3.0, 4.0]], [[1.0], [2.0]])).repeat()
    )
    history = model.fit(creator, steps_per_epoch=5, epochs=2, verbose=0)
    print(len(history.history["loss"]), tf.keras.layers.Dense.__module__)
"""


@pytest.fixture(name="servers", scope="module")
def by_program(servers: tuple[ForkServer, ForkServer]) -> dict[str, ForkServer]:
    return {"original": servers[0], "migrated": servers[1]}


def run(server: ForkServer, program: str, folder: Path, text: str, shape: str = "", *args: str) -> RunOutcome:
    script = folder / "program.py"
    script.write_text(textwrap.dedent(text))
    cluster = ClusterShape.parse(shape, coordinated=program == "migrated")
    launch = Launch(program, script, args, cluster, folder / "run", total_timeout=120.0)
    outcome = server.run(launch)
    assert outcome.failure is None, outcome.failure
    return outcome


def said(outcome: RunOutcome) -> dict[str, str]:
    return {str(task.task): task.stdout.read_text().strip() for task in outcome.tasks}


def test_the_servers_are_what_they_should_be(servers: dict[str, ForkServer]) -> None:
    original, migrated = servers["original"].describe(), servers["migrated"].describe()
    assert original["tensorflow"].startswith(("1.15.", "2.15."))
    assert original["estimator"].startswith("tensorflow_estimator.")
    assert migrated["layer"].startswith(("tf_keras.", "keras.src.layers.core."))
    # A context that was initialised before the fork would make every strategy in a child fail.
    assert (original["context_initialized"], migrated["context_initialized"]) == (False, False)


def test_an_estimator_trains_on_parameter_servers(servers: dict[str, ForkServer], tmp_path: Path) -> None:
    (tmp_path / "network.py").write_text(NETWORK)
    (tmp_path / "loss.py").write_text(LOSS)
    (tmp_path / "quick.py").write_text(QUICK)
    shape = "chief=1,worker=1,ps=1,evaluator=1"
    outcome = run(servers["original"], "original", tmp_path, ESTIMATOR, shape, str(tmp_path / "model"))
    assert said(outcome) == {"ps:0": "", "worker:0": "graph", "chief:0": "graph", "evaluator:0": "graph"}
    assert [str(task.task) for task in outcome.tasks if task.ended_by_launcher] == ["ps:0"]
    # With two trainers the last checkpoint may be a step or two beyond what was asked for.
    steps = [int(path.stem.rpartition("-")[2]) for path in (tmp_path / "model").glob("model.ckpt-*.index")]
    assert 20 <= max(steps) <= 22


def test_keras_trains_on_mirrored_workers(servers: dict[str, ForkServer], tmp_path: Path) -> None:
    outcome = run(servers["migrated"], "migrated", tmp_path, KERAS_MIRRORED, "worker=2")
    lines = list(said(outcome).values())
    assert lines[0] == lines[1]
    replicas, first, last, layer = lines[0].split()
    assert (replicas, layer.split(".")[0]) == ("2", "tf_keras")
    assert float(last) < float(first)


def test_keras_trains_on_parameter_servers(servers: dict[str, ForkServer], tmp_path: Path) -> None:
    outcome = run(servers["migrated"], "migrated", tmp_path, KERAS_PARAMETER_SERVER, "chief=1,worker=1,ps=2")
    assert said(outcome)["chief:0"].startswith("2 tf_keras.")
    ended = {str(task.task) for task in outcome.tasks if task.ended_by_launcher}
    assert ended == {"ps:0", "ps:1", "worker:0"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "import tensorflow as tf\nprint(tf.executing_eagerly(), tf.placeholder(tf.float32, [2]).shape)",
            "False (2,)",
        ),
        ("import tensorflow as tf\nprint(tf.compat.v1.placeholder(tf.float32, [2]).shape)", "(2,)"),
        (
            "import tensorflow.compat.v1 as tf\nprint(tf.executing_eagerly(), tf.layers.Dense.__name__)",
            "True Dense",
        ),
        (
            "import tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()\nprint(tf.placeholder(tf.float32, [2]).shape)",
            "(2,)",
        ),
        (
            "import tensorflow as tf\nimport tensorflow.compat.v1 as tf1\n"
            "print(tf.executing_eagerly(), tf.random.set_seed(1), tf1.estimator.Estimator.__name__)",
            "True None Estimator",
        ),
        (
            "import tensorflow as tf\nimport tensorflow.compat.v1 as tf1\n"
            "print(tf.executing_eagerly(), tf.layers.dense is tf1.layers.dense)",
            "False True",
        ),
        ("import tensorflow as tf\ntf.random.set_seed(1); print(tf.executing_eagerly())", "True"),
        ("import tensorflow as tf\nfor x in tf.data.Dataset.range(3).take(1): print(x.shape)", "()"),
        (
            "from tensorflow import estimator, layers\nprint(estimator.Estimator.__name__, layers.dense)",
            "Estimator <function dense",
        ),
        (
            "from tensorflow.layers import dense\nimport tensorflow.train as train\nprint(train.AdamOptimizer)",
            "<class 'tensorflow",
        ),
        (
            "from tensorflow.keras import layers\nimport tensorflow.keras.backend as K\nprint(K.epsilon())",
            "1e-07",
        ),
        (
            "from tensorflow.python.ops import math_ops\nimport tensorflow.python.framework.ops as o\nprint(o.Graph)",
            "<class",
        ),
        (
            "import tensorflow as tf\ntf.flags.DEFINE_integer('x', 3, 'a flag')\n"
            "def main(_): print('main', tf.flags.FLAGS.x)\nif __name__ == '__main__': tf.app.run()",
            "main 3",
        ),
        (
            "from tensorflow import *\nimport sys; sys.stdout.write(str(placeholder(float32, [2]).shape))",
            "(2,)",
        ),
        (
            "try:\n    import tensorflow.contrib.slim\nexcept ModuleNotFoundError as e: print(e)",
            "No module named 'tensorflow.contrib'",
        ),
        ("import tensorflow as tf\nprint(hasattr(tf, 'contrib'), tf.__version__[:2])", "False 2."),
    ],
)
def test_each_spelling_of_tensorflow_1_works(
    servers: dict[str, ForkServer], tmp_path: Path, text: str, expected: str
) -> None:
    if not servers["original"].describe()["tensorflow"].startswith("2."):
        pytest.skip("the original environment is TensorFlow 1 itself")
    assert said(run(servers["original"], "original", tmp_path, text))["local:0"].startswith(expected)


def test_libraries_keep_the_real_tensorflow(servers: dict[str, ForkServer], tmp_path: Path) -> None:
    library = tmp_path / "site-packages"
    library.mkdir()
    (library / "library.py").write_text("import tensorflow as tf\nfound = tf.__name__, hasattr(tf, 'placeholder')\n")
    (tmp_path / "mine.py").write_text("import tensorflow as tf\nfound = tf.__name__, hasattr(tf, 'placeholder')\n")
    text = f"""
    import json, sys
    sys.path.append({str(library)!r})
    import library, mine
    print(json.dumps([library.found, mine.found]))
    """
    found = json.loads(said(run(servers["original"], "original", tmp_path, text))["local:0"])
    assert found == [["tensorflow", False], ["tensorflow", True]]
