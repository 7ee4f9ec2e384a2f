"""Where each TensorFlow 1 symbol lives in TensorFlow 2.

Two sources: `symbols.json`, made by tools/make_symbol_table.py by comparing the objects of an installed
TensorFlow 2.21, and the table below of symbols whose two versions are different objects but compute the same
for the arguments listed (source: the signatures in TensorFlow 2.21, `tf.compat.v1` against `tf`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path


@dataclass(frozen=True)
class Home:
    """The TensorFlow 2 name of a symbol, and how far its call may be carried over as written.

    `positional` is the number of leading positional arguments that mean the same in both versions and
    `keywords` the keyword arguments that do; None means any.
    """

    name: str
    positional: int | None = None
    keywords: frozenset[str] | None = None


def _checked(name: str, positional: int, keywords: str) -> Home:
    return Home(name, positional, frozenset(keywords.split()))


_REDUCTIONS = ("all", "any", "max", "mean", "min", "prod", "sum", "logsumexp")
_CHECKED = {
    **{f"tf.reduce_{r}": _checked(f"tf.reduce_{r}", 3, "input_tensor axis keepdims name") for r in _REDUCTIONS},
    "tf.name_scope": _checked("tf.name_scope", 1, "name"),
    "tf.argmax": _checked("tf.argmax", 2, "input axis output_type name"),
    "tf.argmin": _checked("tf.argmin", 2, "input axis output_type name"),
    "tf.math.argmax": _checked("tf.math.argmax", 2, "input axis output_type name"),
    "tf.nn.softmax": _checked("tf.nn.softmax", 3, "logits axis name"),
    "tf.nn.log_softmax": _checked("tf.nn.log_softmax", 3, "logits axis name"),
    "tf.nn.sigmoid": _checked("tf.nn.sigmoid", 2, "x name"),
    "tf.nn.tanh": _checked("tf.nn.tanh", 2, "x name"),
    "tf.squeeze": _checked("tf.squeeze", 3, "input axis name"),
    "tf.expand_dims": _checked("tf.expand_dims", 2, "input axis name"),
    "tf.shape": _checked("tf.shape", 1, "input out_type name"),
    "tf.size": _checked("tf.size", 1, "input out_type name"),
    "tf.constant": _checked("tf.constant", 3, "value dtype shape name"),
    "tf.zeros_like": _checked("tf.zeros_like", 1, "dtype name"),
    "tf.ones_like": _checked("tf.ones_like", 1, "dtype name"),
    "tf.set_random_seed": _checked("tf.random.set_seed", 1, "seed"),
    "tf.random.set_random_seed": _checked("tf.random.set_seed", 1, "seed"),
    "tf.decode_csv": _checked(
        "tf.io.decode_csv", 5, "records record_defaults field_delim use_quote_delim na_value name"
    ),
    "tf.io.decode_csv": _checked(
        "tf.io.decode_csv", 5, "records record_defaults field_delim use_quote_delim na_value name"
    ),
    "tf.parse_single_example": _checked("tf.io.parse_single_example", 2, "serialized features name"),
    "tf.io.parse_single_example": _checked("tf.io.parse_single_example", 2, "serialized features name"),
    "tf.parse_example": _checked("tf.io.parse_example", 2, "serialized features name"),
    "tf.io.parse_example": _checked("tf.io.parse_example", 2, "serialized features name"),
    "tf.string_to_number": _checked("tf.strings.to_number", 2, "out_type name"),
    "tf.strings.to_number": _checked("tf.strings.to_number", 2, "out_type name"),
    "tf.data.Dataset": Home("tf.data.Dataset"),
    "tf.data.TextLineDataset": Home("tf.data.TextLineDataset"),
    "tf.data.TFRecordDataset": Home("tf.data.TFRecordDataset"),
    "tf.data.FixedLengthRecordDataset": Home("tf.data.FixedLengthRecordDataset"),
    "tf.data.AUTOTUNE": Home("tf.data.AUTOTUNE"),
    "tf.data.experimental.AUTOTUNE": Home("tf.data.AUTOTUNE"),
    "tf.gfile.Exists": Home("tf.io.gfile.exists"),
    "tf.gfile.MakeDirs": Home("tf.io.gfile.makedirs"),
    "tf.gfile.Glob": Home("tf.io.gfile.glob"),
    "tf.gfile.GFile": Home("tf.io.gfile.GFile"),
    "tf.gfile.Open": Home("tf.io.gfile.GFile"),
    "tf.gfile.DeleteRecursively": Home("tf.io.gfile.rmtree"),
    "tf.gfile.Remove": Home("tf.io.gfile.remove"),
    "tf.gfile.ListDirectory": Home("tf.io.gfile.listdir"),
    "tf.gfile.IsDirectory": Home("tf.io.gfile.isdir"),
}
_CHECKED.update({name: Home("tf.version.VERSION") for name in ("tf.VERSION", "tf.version.VERSION")})
_CHECKED["tf.__version__"] = Home("tf.__version__")
# The values of tf.estimator.ModeKeys (tensorflow_estimator/python/estimator/mode_keys.py).
MODE_KEYS = {
    "tf.estimator.ModeKeys.TRAIN": "train",
    "tf.estimator.ModeKeys.EVAL": "eval",
    "tf.estimator.ModeKeys.PREDICT": "infer",
    "tf.contrib.learn.ModeKeys.TRAIN": "train",
    "tf.contrib.learn.ModeKeys.EVAL": "eval",
    "tf.contrib.learn.ModeKeys.INFER": "infer",
}
_DATASET_MAKERS = ("from_tensor_slices", "from_tensors", "from_generator", "range", "zip", "list_files")
_CONTRIB_DATA = (
    *("parallel_interleave", "ignore_errors", "group_by_window", "bucket_by_sequence_length", "choose_from_datasets"),
    *("sample_from_datasets", "assert_element_shape", "copy_to_device", "prefetch_to_device", "scan", "unique"),
)
_CHECKED.update({f"tf.contrib.data.{name}": Home(f"tf.data.experimental.{name}") for name in _CONTRIB_DATA})
_CHECKED["tf.contrib.data.AUTOTUNE"] = Home("tf.data.AUTOTUNE")
_CHECKED.update({f"tf.data.Dataset.{name}": Home(f"tf.data.Dataset.{name}") for name in _DATASET_MAKERS})


@lru_cache(maxsize=1)
def _table() -> tuple[frozenset[str], dict[str, str]]:
    data = json.loads(Path(__file__).with_name("symbols.json").read_text(encoding="utf-8"))
    return frozenset(data["same"]), data["renamed"]


def home(name: str) -> Home | None:
    """Where `tf.X` of TensorFlow 1 lives in TensorFlow 2; None when it has no home there."""
    if name in _CHECKED:
        return _CHECKED[name]
    same, renamed = _table()
    if name in same:
        return Home(name)
    if name in renamed and ".experimental." not in renamed[name]:
        return Home(renamed[name])
    return None


def is_namespace(name: str) -> bool:
    """Whether some known symbol lies below `name` (`tf.nn`): a module, not a symbol."""
    same, renamed = _table()
    prefix = name + "."
    return name == "tf" or any(s.startswith(prefix) for table in (same, renamed, _CHECKED) for s in table)
