"""What has to be said to TensorFlow once, where the support file is imported."""

import importlib
import importlib.util
import sys

import tensorflow.compat.v1 as tf1


def keep_tensorflow_1_shapes():
    """Shapes give Dimensions, as `x.shape[1].value` asks for, and not integers."""
    tf1.disable_v2_tensorshape()


def let_tf_slim_find_its_layers():
    """tf_slim asks for tf_keras.legacy_tf_layers, which newer versions of tf_keras have in tf_keras.src."""
    old, new = "tf_keras.legacy_tf_layers", "tf_keras.src.legacy_tf_layers"
    if importlib.util.find_spec("tf_keras") is None or importlib.util.find_spec(old) is not None:
        return
    for module in ("", ".base", ".convolutional", ".core", ".normalization", ".pooling"):
        sys.modules[old + module] = importlib.import_module(new + module)
