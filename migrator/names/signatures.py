"""Symbols whose two versions are different objects, but compute the same for the arguments that both have.

Each entry is the TensorFlow 2 name and the parameters of TensorFlow 1 in their order. `|` ends those that may stay
positional; `old>new` is given as `new` in TensorFlow 2; `~name` has no effect on the result and is left out;
`name=literal` may only be given as that literal, and is left out then. Parameters that are not listed are refused.
Source: the signatures of `tf.compat.v1` and `tf` in TensorFlow 2.21 (and of 1.15.5 for what is gone since);
tests/names/test_signatures.py compares both with this table and runs examples of it in both versions.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Parameter:
    """One parameter of a TensorFlow 1 function.

    `new` is its name in TensorFlow 2, None where it is left out; `only` the one literal that it may be given as.
    """

    old: str
    new: str | None
    only: str | None = None


@dataclass(frozen=True)
class Signature:
    """The parameters in their order, and how many of the first may stay positional."""

    parameters: tuple[Parameter, ...]
    shared: int

    def named(self, old: str) -> Parameter | None:
        """The parameter of that name in TensorFlow 1."""
        return next((p for p in self.parameters if p.old == old), None)


def signature(text: str) -> Signature:
    """Reads the notation of the module's docstring."""
    before, _, after = text.partition("|")
    words = before.split()
    return Signature(tuple(_parameter(word) for word in [*words, *after.split()]), len(words))


def _parameter(word: str) -> Parameter:
    if word.startswith("~"):
        return Parameter(word[1:], None)
    if "=" in word:
        name, _, only = word.partition("=")
        return Parameter(name, None, only)
    old, _, new = word.partition(">")
    return Parameter(old, new or old)


_REDUCTION = "input_tensor axis keepdims name | reduction_indices>axis keep_dims>keepdims"
_ARG = "input axis | name dimension>axis output_type"
_SOFTMAX = "logits axis name | dim>axis"
_SIZE = "input | name out_type"
_LIKE = "tensor>input dtype name | ~optimize"
_PARSE = "serialized features | name example_names"
_DECODE_CSV = "records record_defaults field_delim use_quote_delim | name na_value select_cols"
_TO_NUMBER = "string_tensor>input out_type name | input"
_HASH = "string_tensor>input num_buckets name | input"
_REDUCE_JOIN = "inputs axis keep_dims>keepdims separator name | reduction_indices>axis keepdims"
_L2_NORMALIZE = "x axis epsilon name | dim>axis"
_IN_TOP_K = "| predictions targets k name"
_COUNT = "input_tensor>input axis keepdims dtype name | reduction_indices>axis keep_dims>keepdims input"
_POOL = "value>input ksize strides padding data_format name | input"
_CROSS_ENTROPY = "| _sentinel=None labels logits name"
_DECODE_RAW = "input_bytes out_type little_endian | name bytes>input_bytes"
_MULTINOMIAL = "logits num_samples | seed name output_dtype>dtype"
_REVERSE_SEQUENCE = "input seq_lengths seq_axis batch_axis name | seq_dim>seq_axis batch_dim>batch_axis"
_CONFUSION = "labels predictions num_classes | dtype name weights"
_SUBSTR = "input pos len | name unit"

_TABLE = {
    **{
        f"tf.{module}reduce_{r}": (f"tf.reduce_{r}", _REDUCTION)
        for module in ("", "math.")
        for r in ("all", "any", "max", "mean", "min", "prod", "sum", "logsumexp")
    },
    "tf.argmax": ("tf.argmax", _ARG),
    "tf.argmin": ("tf.argmin", _ARG),
    "tf.math.argmax": ("tf.argmax", _ARG),
    "tf.math.argmin": ("tf.argmin", _ARG),
    "tf.arg_max": ("tf.argmax", "input dimension>axis output_type name |"),
    "tf.arg_min": ("tf.argmin", "input dimension>axis output_type name |"),
    "tf.nn.softmax": ("tf.nn.softmax", _SOFTMAX),
    "tf.math.softmax": ("tf.nn.softmax", _SOFTMAX),
    "tf.nn.log_softmax": ("tf.nn.log_softmax", _SOFTMAX),
    "tf.math.log_softmax": ("tf.nn.log_softmax", _SOFTMAX),
    "tf.nn.l2_normalize": ("tf.nn.l2_normalize", _L2_NORMALIZE),
    "tf.math.l2_normalize": ("tf.math.l2_normalize", _L2_NORMALIZE),
    "tf.linalg.l2_normalize": ("tf.math.l2_normalize", _L2_NORMALIZE),
    "tf.nn.moments": ("tf.nn.moments", "x axes shift | name keep_dims>keepdims keepdims"),
    "tf.nn.in_top_k": ("tf.math.in_top_k", _IN_TOP_K),
    "tf.math.in_top_k": ("tf.math.in_top_k", _IN_TOP_K),
    "tf.nn.max_pool": ("tf.nn.max_pool", _POOL),
    "tf.nn.avg_pool": ("tf.nn.avg_pool", _POOL),
    "tf.nn.sigmoid_cross_entropy_with_logits": ("tf.nn.sigmoid_cross_entropy_with_logits", _CROSS_ENTROPY),
    "tf.nn.sparse_softmax_cross_entropy_with_logits": (
        "tf.nn.sparse_softmax_cross_entropy_with_logits",
        _CROSS_ENTROPY,
    ),
    "tf.nn.softmax_cross_entropy_with_logits_v2": (
        "tf.nn.softmax_cross_entropy_with_logits",
        "labels logits axis name | dim>axis",
    ),
    "tf.floor_div": ("tf.math.floordiv", "x y name |"),
    "tf.squeeze": ("tf.squeeze", "input axis name | squeeze_dims>axis"),
    "tf.expand_dims": ("tf.expand_dims", "input axis name | dim>axis"),
    "tf.shape": ("tf.shape", _SIZE),
    "tf.size": ("tf.size", _SIZE),
    "tf.constant": ("tf.constant", "value dtype shape name | verify_shape=False"),
    "tf.zeros_like": ("tf.zeros_like", _LIKE),
    "tf.ones_like": ("tf.ones_like", _LIKE),
    "tf.transpose": ("tf.transpose", "a perm | name conjugate"),
    "tf.gather": ("tf.gather", "params indices validate_indices | name axis batch_dims"),
    "tf.gather_nd": ("tf.gather_nd", "params indices | name batch_dims"),
    "tf.map_fn": (
        "tf.map_fn",
        "fn elems dtype parallel_iterations back_prop swap_memory infer_shape name | fn_output_signature",
    ),
    "tf.pad": ("tf.pad", "tensor paddings mode | name constant_values"),
    "tf.convert_to_tensor": ("tf.convert_to_tensor", "value dtype | name preferred_dtype>dtype_hint dtype_hint"),
    "tf.boolean_mask": ("tf.boolean_mask", "tensor mask | name axis"),
    "tf.norm": ("tf.norm", "tensor ord axis keepdims name | keep_dims>keepdims"),
    "tf.linalg.norm": ("tf.norm", "tensor ord axis keepdims name | keep_dims>keepdims"),
    "tf.count_nonzero": ("tf.math.count_nonzero", _COUNT),
    "tf.math.count_nonzero": ("tf.math.count_nonzero", _COUNT),
    "tf.reverse_sequence": ("tf.reverse_sequence", _REVERSE_SEQUENCE),
    "tf.confusion_matrix": ("tf.math.confusion_matrix", _CONFUSION),
    "tf.math.confusion_matrix": ("tf.math.confusion_matrix", _CONFUSION),
    "tf.multinomial": ("tf.random.categorical", _MULTINOMIAL),
    "tf.random.multinomial": ("tf.random.categorical", _MULTINOMIAL),
    "tf.set_random_seed": ("tf.random.set_seed", "seed |"),
    "tf.random.set_random_seed": ("tf.random.set_seed", "seed |"),
    "tf.name_scope": ("tf.name_scope", "name | default_name=None ~values"),  # of a rule of its own
    "tf.decode_csv": ("tf.io.decode_csv", _DECODE_CSV),
    "tf.io.decode_csv": ("tf.io.decode_csv", _DECODE_CSV),
    "tf.decode_raw": ("tf.io.decode_raw", _DECODE_RAW),
    "tf.io.decode_raw": ("tf.io.decode_raw", _DECODE_RAW),
    "tf.parse_single_example": ("tf.io.parse_single_example", _PARSE),
    "tf.io.parse_single_example": ("tf.io.parse_single_example", _PARSE),
    "tf.parse_example": ("tf.io.parse_example", _PARSE),
    "tf.io.parse_example": ("tf.io.parse_example", _PARSE),
    "tf.string_to_number": ("tf.strings.to_number", _TO_NUMBER),
    "tf.strings.to_number": ("tf.strings.to_number", _TO_NUMBER),
    "tf.string_to_hash_bucket": ("tf.strings.to_hash_bucket", _HASH),
    "tf.strings.to_hash_bucket": ("tf.strings.to_hash_bucket", _HASH),
    "tf.reduce_join": ("tf.strings.reduce_join", _REDUCE_JOIN),
    "tf.substr": ("tf.strings.substr", _SUBSTR),
    "tf.strings.substr": ("tf.strings.substr", _SUBSTR),
    "tf.py_func": ("tf.numpy_function", "func inp Tout | stateful name"),
    "tf.image.sample_distorted_bounding_box": (
        "tf.image.sample_distorted_bounding_box",
        "image_size bounding_boxes | seed seed2=None min_object_covered aspect_ratio_range area_range max_attempts "
        "use_image_if_no_bounding_boxes name",
    ),
    "tf.scalar_mul": ("tf.math.scalar_mul", "scalar x name |"),
    "tf.math.scalar_mul": ("tf.math.scalar_mul", "scalar x name |"),
    "tf.feature_column.make_parse_example_spec": ("tf.feature_column.make_parse_example_spec", "feature_columns |"),
    "tf.gfile.Exists": ("tf.io.gfile.exists", "filename>path |"),
    "tf.gfile.MakeDirs": ("tf.io.gfile.makedirs", "dirname>path |"),
    "tf.gfile.MkDir": ("tf.io.gfile.mkdir", "dirname>path |"),
    "tf.gfile.Glob": ("tf.io.gfile.glob", "filename>pattern |"),
    "tf.gfile.DeleteRecursively": ("tf.io.gfile.rmtree", "dirname>path |"),
    "tf.gfile.Remove": ("tf.io.gfile.remove", "filename>path |"),
    "tf.gfile.ListDirectory": ("tf.io.gfile.listdir", "dirname>path |"),
    "tf.gfile.IsDirectory": ("tf.io.gfile.isdir", "dirname>path |"),
    "tf.gfile.Stat": ("tf.io.gfile.stat", "filename>path |"),
    "tf.gfile.Copy": ("tf.io.gfile.copy", "oldpath>src newpath>dst overwrite |"),
    "tf.gfile.Rename": ("tf.io.gfile.rename", "oldname>src newname>dst overwrite |"),
    "tf.gfile.Walk": ("tf.io.gfile.walk", "top in_order>topdown |"),
}

SIGNATURES: dict[str, tuple[str, Signature]] = {old: (new, signature(text)) for old, (new, text) in _TABLE.items()}
