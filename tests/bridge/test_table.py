"""The rows of the table lead somewhere, and the names of tf.contrib that moved are those of TensorFlow 1.15."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

import migrator.bridge
from migrator.bridge.assemble import library
from migrator.bridge.homes import Kind, home_of
from migrator.bridge.table import MOVED, SUPPLIED

MOVED_FILE = Path(migrator.bridge.__file__).with_name("moved.json")
TENSORFLOW1 = os.environ.get("TF_MIGRATE_TENSORFLOW1_PYTHON")


@pytest.mark.parametrize(
    ("name", "kind", "new", "parts"),
    [
        ("tf.layers.dense", Kind.COMPAT, "tf.layers.dense", 3),
        ("tf.GraphKeys.UPDATE_OPS", Kind.COMPAT, "tf.GraphKeys.UPDATE_OPS", 3),
        ("tf.flags.DEFINE_string", Kind.COMPAT, "tf.flags.DEFINE_string", 3),
        ("tf.estimator.ModeKeys.TRAIN", Kind.SUPPORT, "ModeKeys", 3),
        ("tf.estimator", Kind.SUPPORT, "", 2),
        ("tf.estimator.nosuch", Kind.NONE, "tf.estimator.nosuch", 3),
        ("tf.contrib.rnn.LSTMCell", Kind.COMPAT, "tf.nn.rnn_cell.LSTMCell", 4),
        ("tf.contrib.data.map_and_batch", Kind.COMPAT, "tf.data.experimental.map_and_batch", 4),
        ("tf.contrib.distribute.CrossTowerOps", Kind.COMPAT, "tf.distribute.CrossDeviceOps", 4),
        ("tf.contrib.slim.conv2d", Kind.SLIM, "conv2d", 4),
        ("tf.contrib.slim.nets.resnet_v2.resnet_v2_50", Kind.SLIM, "nets.resnet_v2", 5),
        ("tf.contrib.layers.python.layers.layers.batch_norm", Kind.SLIM, "batch_norm", 7),
        ("tf.__version__.split", Kind.COMPAT, "tf.__version__.split", 3),
        ("tf.contrib.layers.feature_column.one_hot_column", Kind.SUPPORT, "layers_one_hot_column", 5),
        ("tf.contrib.rnn.core_rnn_cell.LSTMCell", Kind.COMPAT, "tf.nn.rnn_cell.LSTMCell", 5),
        ("tf.contrib.tpu.tpu_optimizer.CrossShardOptimizer", Kind.SUPPORT, "CrossShardOptimizer", 5),
        ("tf.contrib.layers.feature_column", Kind.NONE, "tf.contrib.layers.feature_column", 4),
        ("tf.contrib.layers.python.layers.initializers", Kind.SLIM, "layers.initializers", 6),
        ("tf.contrib.layers.python.layers.initializers.xavier_initializer", Kind.SUPPORT, "xavier_initializer", 7),
        ("tf.contrib.layers.python.layers.utils.collect_named_outputs", Kind.SLIM, "layers.utils", 6),
        ("tf.contrib.framework.nest.is_sequence", Kind.COMPAT, "tf.nest.is_nested", 5),
        ("tf.logging._logger.setLevel", Kind.COMPAT, "tf.get_logger()", 3),
        ("tf.contrib.framework.python.ops.arg_scope", Kind.SLIM, "arg_scope", 6),
        ("tf.contrib.keras.python.keras.layers.Dense", Kind.COMPAT, "tf.keras.layers.Dense", 7),
        ("tf.contrib.slim.embed_sequence", Kind.SUPPORT, "embed_sequence", 4),
        ("tf.contrib.slim.layers.conv2d", Kind.SLIM, "layers", 4),
        ("tf.contrib.slim.nosuch", Kind.NONE, "tf.contrib.layers.nosuch", 4),
        ("tf.contrib.metrics.streaming_mean_iou", Kind.SLIM, "metrics.streaming_mean_iou", 4),
        ("tf.contrib.metrics.streaming_accuracy", Kind.SUPPORT, "streaming_accuracy", 4),
        ("tf.contrib.losses.log_loss", Kind.SLIM, "losses.log_loss", 4),
        ("tf.contrib.losses.metric_learning.npairs_loss", Kind.SLIM, "losses.npairs_loss", 5),
        ("tf.contrib.seq2seq.python.ops.helper.TrainingHelper", Kind.SUPPORT, "TrainingHelper", 7),
        ("tf.contrib.framework.nest.flatten_up_to", Kind.PRIVATE, "tf.python.util.nest.flatten_up_to", 5),
        ("tf.nn.rnn_cell._linear", Kind.SUPPORT, "linear_of_parts", 4),
        ("tf.contrib.factorization.KMeans", Kind.PRIVATE, "tf.python.ops.clustering_ops.KMeans", 4),
        ("tf.contrib.training.evaluate_once", Kind.SLIM, "train_eval.evaluate_once", 4),
        ("tf.contrib.training.bucket_by_sequence_length", Kind.SUPPORT, "bucket_by_length", 4),
        ("tf.contrib.eager.implicit_gradients", Kind.PRIVATE, "tf.python.eager.backprop.implicit_grad", 4),
        ("tf.contrib.nosuch.x", Kind.NONE, "tf.contrib.nosuch.x", 4),
        ("tf.python.ops.array_ops.zeros", Kind.PRIVATE, "tf.python.ops.array_ops.zeros", 5),
        ("tf.core.framework.summary_pb2", Kind.PRIVATE, "tf.core.framework.summary_pb2", 4),
        ("tf.examples.tutorials.mnist.input_data", Kind.NONE, "tf.examples.tutorials.mnist.input_data", 5),
    ],
)
def test_home(name: str, kind: Kind, new: str, parts: int) -> None:
    found = home_of(name)
    assert (found.kind, found.name, found.parts) == (kind, new, parts)


def test_rows_that_move_a_name_lead_somewhere() -> None:
    moved = {**json.loads(MOVED_FILE.read_text()), **MOVED}
    nowhere = sorted(new for old, new in moved.items() if home_of(old).kind is Kind.NONE)
    # What TensorFlow 2 dropped after 1.15; and functions of Estimators that the support file has not.
    assert [name for name in nowhere if not name.startswith("tf.estimator.")] == [
        "tf.config.experimental_list_devices",
        "tf.keras.experimental.export_saved_model",
        "tf.keras.experimental.load_from_saved_model",
    ]


def test_names_of_the_library_that_rows_lead_to_are_public() -> None:
    assert {"Estimator", "RunConfig", "ModeKeys"} <= library().public
    assert not [name for name in SUPPLIED.values() if name.startswith("_")]


@pytest.mark.tensorflow
def test_names_of_contrib_that_moved(tmp_path: Path) -> None:
    if TENSORFLOW1 is None:
        pytest.skip("TensorFlow 1.15 is not here: TF_MIGRATE_TENSORFLOW1_PYTHON")
    tool = Path(__file__).parents[2] / "tools" / "make_moved_table.py"
    subprocess.run([TENSORFLOW1, tool, tmp_path / "moved.json"], check=True, capture_output=True)
    assert json.loads((tmp_path / "moved.json").read_text()) == json.loads(MOVED_FILE.read_text())


def test_networks_of_slim_by_their_own_files() -> None:
    """tf_slim 1.1.0 has the same files."""
    found = home_of("tf.contrib.slim.python.slim.nets.inception_v3.inception_v3_arg_scope")
    assert (found.kind, found.name, found.parts) == (Kind.SLIM, "nets.inception_v3", 7)
    assert home_of("tf.contrib.slim.python.slim.learning.train").kind is home_of("tf.contrib.slim.learning.train").kind
