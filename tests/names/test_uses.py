"""Every use of TensorFlow in a file, through imports, aliases and scopes."""

from __future__ import annotations

import pytest

from migrator.names.uses import uses


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("import tensorflow as tf\ntf.nn.relu(x)", ["tf", "tf.nn.relu"]),
        ("import tensorflow\ntensorflow.nn.relu", ["tf", "tf.nn.relu"]),
        ("import tensorflow.compat.v1 as tf\ntf.Session()", ["tf.compat.v1", "tf.compat.v1.Session"]),
        ("import tensorflow.contrib.slim as slim\nslim.conv2d", ["tf.contrib.slim", "tf.contrib.slim.conv2d"]),
        ("from tensorflow.contrib import learn as l\nl.X.y", ["tf.contrib.learn", "tf.contrib.learn.X.y"]),
        ("from tensorflow import nn\nnn.relu", ["tf.nn", "tf.nn.relu"]),
        ("import tensorflow as tf\nlayers = tf.layers\nlayers.dense", ["tf", "tf.layers", "tf.layers.dense"]),
        ("import tensorflow as tf\ndef f():\n  return [tf.a for _ in tf.b]", ["tf", "tf.a", "tf.b"]),
        ("import tensorflow as tf\n@tf.a\ndef f(x=tf.b) -> tf.c: pass", ["tf", "tf.a", "tf.b", "tf.c"]),
        ("import tensorflow as tf\nclass A(tf.B):\n  tf = 1\n  def f(self): return tf.c", ["tf", "tf.B", "tf.c"]),
        ("import tensorflow as tf\ntf.a(tf.b(1).c).d", ["tf", "tf.a", "tf.b"]),
        ("def f():\n  import tensorflow as tf\n  tf.a\ntf.b", ["tf", "tf.a"]),
        # What the name stands for is not known, or is something else.
        ("import tensorflow as tf\ndef f(tf): return tf.a", ["tf"]),
        ("from tensorflow import layers\ndef f():\n  layers = []\n  layers.append(1)", ["tf.layers"]),
        ("from tensorflow import layers\nx = [layers.a for layers in y]", ["tf.layers"]),
        ("import tensorflow as tf\ntf = other()\ntf.a", ["tf"]),
        ("from .tensorflow import a\nimport mytensorflow as tf\ntf.a", []),
        ("# import tensorflow as tf, tf.a\n'''tf.compat.v1.b tensorflow'''", []),
        ("import tensorflow as tf\nthis is no Python", []),
    ],
)
def test_names(text: str, names: list[str]) -> None:
    assert [use.name for use in uses(text)] == names


def test_places_calls_and_keywords() -> None:
    [_, call, argument] = uses(
        "import tensorflow as tf\n\nx = tf.reduce_sum(\n  tf.ones([2]), keep_dims=True, **more)\n"
    )
    assert (call.name, call.line, call.column, call.called, call.keywords) == (
        "tf.reduce_sum",
        3,
        5,
        True,
        ("keep_dims",),
    )
    assert (argument.name, argument.line, argument.column, argument.called) == ("tf.ones", 4, 3, True)


@pytest.mark.parametrize(
    ("text", "guarded"),
    [
        ("if tf.__version__ < '2': tf.a", True),
        ("x = tf.a if hasattr(tf, 'a') else None", True),
        ("if x:\n  pass\nelse:\n  tf.a", False),
        ("try:\n  tf.a\nexcept AttributeError:\n  pass", True),
        ("try:\n  tf.a\nexcept tf.errors.OpError:\n  pass", False),
        ("try:\n  pass\nexcept (ImportError, ValueError):\n  tf.a", True),
        ("try:\n  pass\nfinally:\n  tf.a", False),
    ],
)
def test_what_a_program_guards(text: str, guarded: bool) -> None:
    [found] = [use for use in uses(f"import tensorflow as tf\n{text}\n") if use.name == "tf.a"]
    assert found.guarded is guarded


def test_of_several_imports_one_is_made() -> None:
    text = "try:\n  import tensorflow.compat.v1 as tf\nexcept ImportError:\n  import tensorflow as tf\ntf.Session()\n"
    assert [(use.name, use.guarded) for use in uses(text) if use.called] == [("tf.compat.v1.Session", True)]
