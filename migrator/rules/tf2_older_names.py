"""Names of TensorFlow 1 in files of TensorFlow 2 that mean the same wherever they stand: each is spelled anew."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from migrator.findings import Severity
from migrator.names.fate import Compat, Renamed, exists, fate
from migrator.names.imports import dotted
from migrator.names.uses import uses
from migrator.program.modern import Change, ModernFile
from migrator.rules.rule import Example, Rule

RULES = (
    Rule(
        "TFM272",
        "names of TensorFlow 1 in files of TensorFlow 2",
        Severity.MIGRATED,
        """
A file of TensorFlow 2 with a name that only TensorFlow 1 had fails there. Functions that only moved get their new name:
both names are one object in TensorFlow 2.21. What deals with flags, logs, files and settings, and not with graphs, and
what computes its result from its arguments alone (`tf.to_float`, `tf.div`, `tf.decode_csv`), is spelled
`tf.compat.v1.X`, where it does the same with and without eager execution. All other names of TensorFlow 1 are
told (TFM270): a graph, a session or a variable of `get_variable` is no part of a TensorFlow 2 program.
""",
        (
            Example("tf.log(keras.Input([1]))", "tf.math.log(keras.Input([1]))"),
            Example("tf.logging.info('begun')", "tf.compat.v1.logging.info('begun')"),
            Example("tf.to_int32(keras.Input([1]))", "tf.compat.v1.to_int32(keras.Input([1]))"),
        ),
    ),
)

# Modules and symbols that make nothing in a graph, and so do the same in both ways to run TensorFlow.
_BESIDE_GRAPHS = (
    *("tf.app", "tf.flags", "tf.logging", "tf.gfile", "tf.python_io", "tf.resource_loader"),
    *("tf.ConfigProto", "tf.GPUOptions", "tf.OptimizerOptions", "tf.GraphOptions", "tf.RunOptions", "tf.RunMetadata"),
    *("tf.GraphDef", "tf.NodeDef", "tf.MetaGraphDef", "tf.Summary", "tf.Event", "tf.VERSION", "tf.GIT_VERSION"),
    *("tf.COMPILER_VERSION", "tf.set_random_seed"),
)
# Functions whose result is that of their arguments, however TensorFlow runs (called eagerly on 2.21, each of them).
_OF_THEIR_ARGUMENTS = (
    *(f"tf.to_{kind}" for kind in ("bfloat16", "complex64", "complex128", "double", "float", "int32", "int64")),
    *("tf.arg_max", "tf.arg_min", "tf.batch_gather", "tf.confusion_matrix", "tf.count_nonzero", "tf.decode_csv"),
    *("tf.decode_raw", "tf.depth_to_space", "tf.div", "tf.floor_div", "tf.setdiff1d", "tf.space_to_depth"),
    *("tf.string_split", "tf.string_to_hash_bucket", "tf.string_to_number", "tf.substr", "tf.verify_tensor_all_finite"),
    *("tf.image.resize_area", "tf.image.resize_bicubic", "tf.image.resize_bilinear", "tf.image.resize_images"),
    *("tf.image.resize_nearest_neighbor", "tf.image.extract_image_patches", "tf.sparse_to_dense", "tf.reduce_join"),
    *("tf.nn.softmax_cross_entropy_with_logits_v2", "tf.nn.xw_plus_b", "tf.parse_example", "tf.parse_single_example"),
)


def check_older_names(file: ModernFile) -> Iterable[Change]:
    """Names that only TensorFlow 1 has, where another name means the same by itself."""
    standing = {use.name for use in uses(file.parsed.text) if not use.guarded and not exists(use.name)}
    if not standing:
        return
    below = {node.value for node in file.attributes}
    for node in file.attributes:
        name = file.name(node)
        if node in below or name not in standing:
            continue
        spelled = _spelled(file, node, name)
        if spelled is not None:
            code = file.parsed.code(node)
            yield Change("TFM272", node, f"`{code}` is `{spelled}` now", lambda _, s=spelled: cst.parse_expression(s))  # type: ignore[misc]


def _spelled(file: ModernFile, node: cst.Attribute, name: str) -> str | None:
    """The new spelling, by the name that the file gives to TensorFlow."""
    head, _, rest = (dotted(node) or "").partition(".")
    if file.parsed.imports.names.get(head) != "tensorflow" or name != f"tf.{rest}":
        return None
    found = fate(name)
    if isinstance(found, Renamed):
        moves = ".experimental." not in found.to
    elif isinstance(found, Compat):
        moves = name in _OF_THEIR_ARGUMENTS or any(name == one or name.startswith(f"{one}.") for one in _BESIDE_GRAPHS)
    else:
        return None
    return head + found.to.removeprefix("tf") if moves else None


CHECKS = (check_older_names,)
