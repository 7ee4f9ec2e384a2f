"""tf.contrib.image, training, data and the projector in the support file: the numbers of TensorFlow 1.15.5's own."""

from __future__ import annotations

from typing import Any

import pytest

from tests.bridge.sides import TENSORFLOW1, run_both
from tests.bridge.test_core import close

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.skipif(not TENSORFLOW1, reason="no TensorFlow 1.15.5: TF_MIGRATE_TENSORFLOW1_PYTHON is not set"),
]

SETUP = """\
    import tensorflow
    import tensorflow.contrib.tensorboard.plugins.projector
"""
PROGRAM = """
OTHER = {"translate": "translate_images", "rotate": "rotate_images", "transform": "transform_images"}


def of(module, name):
    return getattr(getattr(tensorflow.contrib, module), name) if OLD else getattr(est, OTHER.get(name, name))


def run(build):
    with tf.Graph().as_default():
        made = build()
        with tf.Session() as session:
            session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            return session.run(made)


IMAGES = np.random.RandomState(0).rand(2, 5, 6, 3).astype("f")


def images():
    many, one, flat = tf.constant(IMAGES), tf.constant(IMAGES[0]), tf.constant(IMAGES[0, :, :, 0])
    turn = of("image", "angles_to_projective_transforms")([0.2, -1.0], 5.0, 6.0)
    shift = of("image", "translations_to_projective_transforms")([[1.0, 2.0], [0.5, -1.0]])
    both = of("image", "compose_transforms")(turn, shift)
    made = [turn, shift, both, of("image", "flat_transforms_to_matrices")(both)]
    for way in ("NEAREST", "BILINEAR"):
        moved = of("image", "translate")(many, [[1.0, -2.0], [0.3, 1.5]], way)
        made += [moved, of("image", "translate")(one, [2, 1], interpolation=way), tf.gradients(moved, many)[0]]
        made += [of("image", "rotate")(many, 0.4, way), of("image", "rotate")(flat, 2.0, interpolation=way)]
        made.append(of("image", "transform")(many, both, way, output_shape=[4, 3]))
    return made


def steps(**more):
    v = tf.get_variable("v", [3], initializer=tf.ones_initializer())
    average = tf.get_variable("a", [], initializer=tf.zeros_initializer(), trainable=False)
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_add(average, 1.0))
    loss = tf.reduce_sum(v * v * [1.0, 2.0, 30.0])
    made = of("training", "create_train_op")(loss, tf.train.AdamOptimizer(0.1), **more)
    values = []
    for _ in range(3):
        with tf.control_dependencies(values[-1:]):
            values.append(tf.identity(made))
    with tf.control_dependencies(values):
        read = [v.read_value(), average.read_value(), tf.train.get_or_create_global_step().read_value()]
    found.setdefault("summaries", []).append([one.op.name for one in tf.get_collection(tf.GraphKeys.SUMMARIES)])
    found.setdefault("names", []).append([one.name for one in tf.global_variables()])
    return values + read


def windows():
    made = []
    for settings in ({"window_size": 3}, {"window_size": 2, "window_shift": 2, "window_stride": 3}):
        data = tf.data.Dataset.range(8).map(lambda n: {"n": n, "twice": (2 * n, n)})
        data = data.apply(of("data", "sliding_window_batch")(**settings))
        rows = tf.data.make_one_shot_iterator(data.batch(3 if len(settings) > 1 else 6)).get_next()
        made += [rows["n"], rows["twice"][0]]
    return made


found["images"] = run(images)
clip = (tensorflow.contrib.training if OLD else est).clip_gradient_norms_fn(0.5)
found["steps"] = [run(steps), run(lambda: steps(transform_grads_fn=clip, summarize_gradients=True))]
found["steps"] += [run(lambda: steps(global_step=None, update_ops=[]))]
found["windows"] = run(windows)

projector = tensorflow.contrib.tensorboard.plugins.projector if OLD else est
settings = projector.ProjectorConfig()
settings.model_checkpoint_path = "model.ckpt-3"
table = settings.embeddings.add()
table.tensor_name, table.metadata_path = "words/table:0", "words.tsv"
table.sprite.image_path = "sprite.png"
table.sprite.single_image_dim.extend([28, 28])
settings.embeddings.add().tensor_name = "other"
folder = os.path.join(FOLDER, sys.argv[1] + "_logs")
with tf.Graph().as_default():
    projector.visualize_embeddings(tf.summary.FileWriter(folder), settings)
with open(os.path.join(folder, "projector_config.pbtxt")) as file:
    found["projector"] = file.read()

if OLD:
    from tensorflow_estimator.python.estimator.canned import metric_keys, optimizers, prediction_keys
    keys = [metric_keys.MetricKeys, prediction_keys.PredictionKeys]
    optimizer = optimizers.get_optimizer_instance
else:
    keys, optimizer = [est.MetricKeys, est.PredictionKeys], est.get_optimizer_instance
found["keys"] = [{name: getattr(one, name) for name in dir(one) if name.isupper()} for one in keys]
names = ("Adagrad", "Adam", "Ftrl", "RMSProp", "SGD")
found["optimizers"] = [type(optimizer(name, 0.1)).__name__ for name in names]
"""


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    return run_both(PROGRAM, tmp_path_factory.mktemp("contrib"), ("contrib_image", "contrib_training"), SETUP)


WHAT = ["images", "steps", "summaries", "names", "windows", "projector", "keys", "optimizers"]


@pytest.mark.parametrize("what", WHAT)
def test_same_numbers_and_names(what: str, sides: tuple[dict[str, Any], dict[str, Any]]) -> None:
    old, new = sides
    assert close(old[what], new[what]), (old[what], new[what])
