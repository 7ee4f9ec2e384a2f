"""What has to be said to TensorFlow once, where the support file is imported."""

import importlib
import importlib.util
import sys

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1


def print_numbers_as_ever():
    """A number of NumPy among others prints as `0.5` again, which is `np.float32(0.5)` from NumPy 2 on."""
    if int(np.__version__.split(".")[0]) > 1:
        np.set_printoptions(legacy="1.25")


def keep_tensorflow_1_shapes():
    """Shapes give Dimensions, as `x.shape[1].value` asks for, and not integers."""
    tf1.disable_v2_tensorshape()


def tell_version_of_keras():
    """tf.keras says its version, as it did while Keras was a part of TensorFlow.

    `from tensorflow.keras import layers` puts a module in the place of the object that loads Keras when asked for it.
    """
    package = importlib.import_module(tf.keras.Model.__module__.partition(".")[0])
    for name in ("tensorflow.keras", "tensorflow.compat.v1.keras"):
        module = importlib.import_module(name)
        if not hasattr(module, "__version__"):
            module.__version__ = package.__version__


def let_tf_slim_find_its_layers():
    """tf_slim asks for names that newer versions of tf_keras and TensorFlow have elsewhere."""
    old, new = "tf_keras.legacy_tf_layers", "tf_keras.src.legacy_tf_layers"
    if importlib.util.find_spec("tf_keras") is not None and importlib.util.find_spec(old) is None:
        for module in ("", ".base", ".convolutional", ".core", ".normalization", ".pooling"):
            sys.modules[old + module] = importlib.import_module(new + module)
    asked = {
        "framework.ops": {"Tensor": tf1.Tensor, "IndexedSlices": tf1.IndexedSlices},
        "ops.variable_scope": {"variable": tf1.Variable},
        "ops.control_flow_ops": {
            "Assert": tf1.Assert,
            "cond": tf1.cond,
            "case": tf1.case,
            "while_loop": tf1.while_loop,
        },
        "ops.array_ops": {"stack": tf1.stack, "unstack": tf1.unstack},
    }
    for name, symbols in asked.items():
        module = importlib.import_module(f"tensorflow.python.{name}")
        for symbol, value in symbols.items():
            if not hasattr(module, symbol):
                setattr(module, symbol, value)


def let_keras_models_take_any_shape():
    """Keras models take inputs of other shapes than they declare, if their layers do, as in TensorFlow 1.15.

    There a functional model did not look at the shape of its inputs, and a Sequential left that to its first layer.
    """
    sequential, functional = tf.keras.Sequential, tf.keras.Sequential.__bases__[0]

    def of_first_layer(model):
        return getattr(model, "_manual_input_spec", model.layers[0].input_spec if model.layers else None)

    def of_nothing(model):
        return getattr(model, "_manual_input_spec", None)

    sequential.input_spec = property(of_first_layer, sequential.input_spec.fset)
    functional.input_spec = property(of_nothing, functional.input_spec.fset)
