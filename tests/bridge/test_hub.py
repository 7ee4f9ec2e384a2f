"""Modules of TensorFlow Hub in the format of TensorFlow 1: they train and predict as their network does in 1.15.5."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bridge.sides import TENSORFLOW1, run_both
from tests.bridge.test_exports import alike

pytestmark = pytest.mark.tensorflow

PROGRAM = """
PATH = os.path.join(FOLDER, "saved")
WORDS = os.path.join(FOLDER, "words.txt")
X = np.random.RandomState(0).normal(size=(16, 3)).astype(np.float32)
TEXT = np.array(["a", "b", "c", "a"] * 4)
Y = X.sum(axis=1, keepdims=True)


def network(x, words, training):
    net = tf.layers.dense(x, 4, kernel_regularizer=lambda weights: 0.1 * tf.nn.l2_loss(weights), name="dense")
    net = tf.layers.batch_normalization(net, training=training, momentum=0.5, name="norm")
    ids = tf.lookup.StaticVocabularyTable(tf.lookup.TextFileInitializer(
        WORDS, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER), 1)
    return net + tf.nn.embedding_lookup(tf.get_variable("words", [4, 4]), ids.lookup(words))


def write():
    with open(WORDS, "w") as file:
        file.write("a\\nb\\nc\\n")
    builder = tf.saved_model.builder.SavedModelBuilder(PATH)
    for tags in ([], ["train"]):
        with tf.Graph().as_default(), tf.Session() as session:
            tf.set_random_seed(1)
            inputs = {"x": tf.placeholder(tf.float32, [None, 3]), "words": tf.placeholder(tf.string, [None])}
            out = {"default": network(inputs["x"], inputs["words"], bool(tags))}
            signatures = {"default": tf.saved_model.predict_signature_def(inputs, out)}
            assets = tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS)
            if tags:
                builder.add_meta_graph(tags, signatures, assets_collection=assets)
            else:
                session.run(tf.global_variables_initializer())
                builder.add_meta_graph_and_variables(session, tags, signatures, assets_collection=assets)
    builder.save()


def model_fn(features, labels, mode, params):
    training = mode == "train" and params["trainable"]
    if OLD:
        before = set(tf.trainable_variables())
        with tf.variable_scope("module"):
            net = network(features["x"], features["words"], training)
        tf.train.init_from_checkpoint(os.path.join(PATH, "variables", "variables"), {"/": "module/"})
        if not params["trainable"]:
            del tf.get_collection_ref(tf.GraphKeys.TRAINABLE_VARIABLES)[:]
            del tf.get_collection_ref(tf.GraphKeys.REGULARIZATION_LOSSES)[:]
    else:
        module = est.HubModule(PATH, trainable=params["trainable"], tags={"train"} if training else None)
        found["of " + str(training)] = [
            module.get_signature_names(), sorted(module.get_input_info_dict()),
            module.get_output_info_dict()["default"].get_shape().as_list(), sorted(module.variable_map)]
        net = module({"x": features["x"], "words": features["words"]})
    net = tf.layers.dense(net, 1, kernel_initializer=tf.ones_initializer(), name="top")
    if mode == "infer":
        return tf.estimator.EstimatorSpec(mode, {"y": net}) if OLD else est.EstimatorSpec(mode, {"y": net})
    loss = tf.losses.mean_squared_error(labels, net) + tf.losses.get_regularization_loss()
    kind = tf.estimator.EstimatorSpec if OLD else est.EstimatorSpec
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        step = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss, tf.train.get_global_step())
    return kind(mode, loss=loss, train_op=step)


def input_fn():
    return tf.data.Dataset.from_tensor_slices(({"x": X, "words": TEXT}, Y)).batch(8)


if OLD:
    write()
for trainable in (True, False):
    folder = os.path.join(FOLDER, "%s-%s" % (sys.argv[1], trainable))
    kind = tf.estimator.Estimator if OLD else est.Estimator
    estimator = kind(model_fn, folder, params={"trainable": trainable})
    estimator.train(lambda: input_fn().repeat(3))
    found["trainable" if trainable else "fixed"] = {
        "last": dict(estimator.evaluate(input_fn)),
        "predictions": list(estimator.predict(input_fn)),
        "variables": {name: estimator.get_variable_value(name) for name in estimator.get_variable_names()},
    }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hub")


def test_a_module_trains_and_predicts_as_its_network(folder: Path) -> None:
    if not TENSORFLOW1:
        pytest.skip("the module is written by TensorFlow 1.15.5: set TF_MIGRATE_TENSORFLOW1_PYTHON")
    # The initial values follow from the number of operations before them: with these no sum cancels to its rounding.
    setup = "    est = None\n    tf.disable_resource_variables()\n"
    old, new = run_both(PROGRAM, folder, ("estimator", "specs", "hub"), setup=setup)
    assert alike(old["trainable"], new["trainable"]), (old["trainable"], new["trainable"])
    assert alike(old["fixed"], new["fixed"]), (old["fixed"], new["fixed"])
    moved = "module/dense/kernel"
    assert not alike(new["trainable"]["variables"][moved], new["fixed"]["variables"][moved])
    variables = [f"dense/{name}" for name in ("bias", "kernel")]
    variables += [f"norm/{name}" for name in ("beta", "gamma", "moving_mean", "moving_variance")]
    expected = [["default"], ["words", "x"], [None, 4], [*variables, "words"]]
    assert new["of True"] == new["of False"] == expected
