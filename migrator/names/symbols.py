"""Where each TensorFlow 1 symbol lives in TensorFlow 2.

Two sources: `symbols.json`, made by tools/make_symbol_table.py by comparing the objects of an installed
TensorFlow 2.21, and signatures.py, of symbols whose two versions are different objects but compute the same for the
arguments that both have.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from migrator.names.signatures import SIGNATURES, Signature


@dataclass(frozen=True)
class Home:
    """The TensorFlow 2 name of a symbol, and how its call is carried over.

    Without a `signature` any call means the same in both versions.
    """

    name: str
    signature: Signature | None = None


_CHECKED = {
    **{old: Home(new, signature) for old, (new, signature) in SIGNATURES.items()},
    "tf.keras.layers.DenseFeatures": Home("tf.keras.layers.DenseFeatures"),  # of tf_keras
    "tf.data.Dataset": Home("tf.data.Dataset"),
    "tf.data.TextLineDataset": Home("tf.data.TextLineDataset"),
    "tf.data.TFRecordDataset": Home("tf.data.TFRecordDataset"),
    "tf.data.FixedLengthRecordDataset": Home("tf.data.FixedLengthRecordDataset"),
    "tf.data.experimental.make_csv_dataset": Home("tf.data.experimental.make_csv_dataset"),
    "tf.contrib.data.make_csv_dataset": Home("tf.data.experimental.make_csv_dataset"),
    "tf.data.AUTOTUNE": Home("tf.data.AUTOTUNE"),
    "tf.data.experimental.AUTOTUNE": Home("tf.data.AUTOTUNE"),
    "tf.contrib.data.AUTOTUNE": Home("tf.data.AUTOTUNE"),
    "tf.gfile.GFile": Home("tf.io.gfile.GFile"),
    "tf.gfile.Open": Home("tf.io.gfile.GFile"),
    "tf.io.gfile.Open": Home("tf.io.gfile.GFile"),  # what programs say that were converted by hand; 1.15.5 has none
    "tf.gfile.FastGFile": Home("tf.io.gfile.GFile"),
    # Of TensorFlow before 1.15, which has them in tf.linalg only: the class moved, and TriL was its first name.
    "tf.contrib.linalg.LinearOperatorLowerTriangular": Home("tf.linalg.LinearOperatorLowerTriangular"),
    "tf.contrib.linalg.LinearOperatorTriL": Home("tf.linalg.LinearOperatorLowerTriangular"),
    **{
        f"tf.compat.{name}": Home(f"tf.compat.{name}")
        for name in (
            *("as_bytes", "as_str", "as_str_any", "as_text", "path_to_str", "bytes_or_text_types", "complex_types"),
            *("integral_types", "real_types", "forward_compatible", "forward_compatibility_horizon"),
            *("dimension_value", "dimension_at_index"),
        )
    },
    "tf.dimension_value": Home("tf.compat.dimension_value"),
    "tf.dimension_at_index": Home("tf.compat.dimension_at_index"),
    **{f"tf.keras.models.{name}": Home(f"tf.keras.experimental.{name}") for name in ("LinearModel", "WideDeepModel")},
    **{
        f"tf.saved_model.{module}.{name}": Home(f"tf.saved_model.{name}")
        for module, names in {
            "tag_constants": ("SERVING", "TRAINING", "GPU", "TPU"),
            "signature_constants": (
                "CLASSIFY_INPUTS",
                "CLASSIFY_METHOD_NAME",
                "CLASSIFY_OUTPUT_CLASSES",
                "CLASSIFY_OUTPUT_SCORES",
                "DEFAULT_SERVING_SIGNATURE_DEF_KEY",
                "PREDICT_INPUTS",
                "PREDICT_METHOD_NAME",
                "PREDICT_OUTPUTS",
                "REGRESS_INPUTS",
                "REGRESS_METHOD_NAME",
                "REGRESS_OUTPUTS",
            ),
        }.items()
        for name in names
    },
}
_CHECKED.update({name: Home("tf.version.VERSION") for name in ("tf.VERSION", "tf.version.VERSION")})
_CHECKED.update(
    {
        **{name: Home("tf.version.GIT_VERSION") for name in ("tf.GIT_VERSION", "tf.__git_version__")},
        **{name: Home("tf.version.COMPILER_VERSION") for name in ("tf.COMPILER_VERSION", "tf.__compiler_version__")},
    }
)
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
#: Symbols that are texts, and these.
TEXTS = {**MODE_KEYS, "tf.GraphKeys.GLOBAL_STEP": "global_step"}
_DATASET_MAKERS = ("from_tensor_slices", "from_tensors", "from_generator", "range", "zip", "list_files")
_CONTRIB_DATA = (
    *("parallel_interleave", "ignore_errors", "group_by_window", "bucket_by_sequence_length", "choose_from_datasets"),
    *("sample_from_datasets", "copy_to_device", "prefetch_to_device", "scan", "unique"),
)
_CHECKED.update({f"tf.contrib.data.{name}": Home(f"tf.data.experimental.{name}") for name in _CONTRIB_DATA})
_CHECKED["tf.contrib.data.AUTOTUNE"] = Home("tf.data.AUTOTUNE")
_CHECKED.update({f"tf.data.Dataset.{name}": Home(f"tf.data.Dataset.{name}") for name in _DATASET_MAKERS})


@lru_cache(maxsize=1)
def _table() -> tuple[frozenset[str], dict[str, str]]:
    data = json.loads(Path(__file__).with_name("symbols.json").read_text(encoding="utf-8"))
    return frozenset((*data["same"], *data["new"])), data["renamed"]


def home(name: str) -> Home | None:
    """Where `tf.X` of TensorFlow 1 lives in TensorFlow 2; None when it has no home there.

    A name that only TensorFlow 2 has stays what it is.
    """
    if name in _CHECKED:
        return _CHECKED[name]
    same, renamed = _table()
    if name in same:
        return Home(name)
    if name in renamed and ".experimental." not in renamed[name]:
        return Home(renamed[name])
    return None


@lru_cache(maxsize=1)
def _new() -> frozenset[str]:
    return frozenset(json.loads(Path(__file__).with_name("symbols.json").read_text(encoding="utf-8"))["new"])


def is_new(name: str) -> bool:
    """Whether only TensorFlow 2 has a symbol."""
    return name in _new()


def is_namespace(name: str) -> bool:
    """Whether some known symbol lies below `name` (`tf.nn`): a module, not a symbol."""
    return name == "tf" or name in _namespaces()


@lru_cache(maxsize=1)
def _namespaces() -> frozenset[str]:
    same, renamed = _table()
    parts = [name.split(".") for table in (same, renamed, _CHECKED) for name in table]
    return frozenset(".".join(one[:length]) for one in parts for length in range(1, len(one)))
