"""Files that a program which stays TensorFlow 1 shares with one that is migrated."""

from __future__ import annotations

import re
from collections.abc import Collection

from migrator.names.bare import says

_NAMES = re.compile(r"\btf\.[\w.]+")
_DIMENSIONS = re.compile(r"\]\.value\b")
# New spellings that mean the same in TensorFlow 1.15 as in TensorFlow 2.
_IN_BOTH = (
    *("tf.compat.v1.", "tf.io.gfile.", "tf.io.FixedLen", "tf.io.VarLen", "tf.io.parse_", "tf.math.", "tf.random."),
    *("tf.cast", "tf.get_logger", "tf.init_scope", "tf.executing_eagerly", "tf.io.TFRecordWriter"),
    # Of these, the arguments that both have stand in the same places, and the others are written with their names.
    *("tf.io.decode_csv", "tf.io.decode_raw"),
)
# Of these, what TensorFlow 1.15.5 has not got: a layer that is made once, the variables of a model.
_ONLY_IN_TWO = "tf.compat.v1.keras.utils."
# What makes datasets, and what those of `tf.compat.v1` have beside what all have.
# The class itself stays: what `isinstance` asks of any dataset is true of those as well.
_DATASETS = re.compile(r"\btf\.data\.(Dataset(?=\.)|TFRecordDataset|TextLineDataset|FixedLengthRecordDataset)\b")
_OF_DATASETS = (
    *("make_one_shot_iterator", "make_initializable_iterator", "output_types", "output_shapes", "output_classes"),
)
_AUTOTUNE = "tf.data.experimental.AUTOTUNE"
# What the layer_norm that is written out for contrib's says; TensorFlow 1.15 takes `keepdims` as well.
_SAME = (
    *("tf.float16", "tf.float32", "tf.nn.batch_normalization", "tf.nn.moments"),
    *("tf.float64", "tf.int32", "tf.int64", _AUTOTUNE),
)


#: What functions that are served are written with.
SERVING = frozenset(("tf.TensorSpec", "tf.function"))


def spelled_for_both(text: str) -> str:
    """New code with the names that TensorFlow 1.15 has, where TensorFlow 2 still has them, too."""
    return re.sub(r"\btf\.data\.AUTOTUNE\b", _AUTOTUNE, text)


def asks_for_iterators(text: str) -> bool:
    """Whether code asks datasets for what only those of TensorFlow 1 have."""
    return says(text, *_OF_DATASETS)


def with_old_datasets(text: str) -> str:
    """New code whose datasets can be asked for iterators: they are TensorFlow 1's, which are TensorFlow 2's as well."""
    return _DATASETS.sub(r"tf.compat.v1.data.\1", text)


def runs_in_both(old: str, new: str, never_there: Collection[str] = ()) -> bool:
    """Whether the new text of a module means in TensorFlow 1.15 what the old one did: only names are spelled anew.

    `never_there` are symbols of functions that TensorFlow 1 never runs.
    """
    if len(_DIMENSIONS.findall(old)) != len(_DIMENSIONS.findall(new)):
        return False
    names = set(_NAMES.findall(new)) - set(_NAMES.findall(old)) - set(never_there)
    if any(name.startswith(_ONLY_IN_TWO) for name in names):
        return False
    return all(name.startswith(_IN_BOTH) or name in _SAME for name in names)
