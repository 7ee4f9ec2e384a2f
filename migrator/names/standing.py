"""What a file says that TensorFlow 2.21 does not understand, and which TensorFlow it was written for."""

from __future__ import annotations

from dataclasses import dataclass

from migrator.names.fate import Compat, Gone, New, Renamed, exists, fate, gone_keywords, needs_keras_2, symbol
from migrator.names.methods import lacking
from migrator.names.uses import Use, uses

_COMPAT = "tf.compat.v1"
# Where TensorFlow 2 programs begin: what both versions have, but only programs of the second one train with.
_OF_TWO = ("tf.keras", "tf.distribute", "tf.function", "tf.GradientTape", "tf.config", "tf.Module")
# Functions that take arguments in TensorFlow 1 which those of the same name do not take now, and give the same for them
# as `tf.compat.v1.X` in both ways to run TensorFlow.
_OF_OLD_ARGUMENTS = frozenset(
    f"tf.{name}"
    for name in (
        *(f"reduce_{kind}" for kind in ("all", "any", "logsumexp", "max", "mean", "min", "prod", "sum")),
        *("argmax", "argmin", "expand_dims", "squeeze", "norm", "reverse_sequence", "nn.softmax", "nn.log_softmax"),
        *("nn.dropout", "nn.max_pool", "nn.avg_pool", "nn.conv2d", "nn.moments"),
    )
)
# What no program of TensorFlow 2 says of `tf`: its variables, placeholders and sessions are of a graph.
_OF_GRAPHS = frozenset(
    f"tf.{name}"
    for name in (
        *("placeholder", "Session", "InteractiveSession", "variable_scope", "global_variables_initializer"),
        *("tables_initializer", "get_collection", "trainable_variables"),
    )
)
# Gone since TensorFlow 2.0: programs that name these are of TensorFlow 1.
_OF_ONE = ("tf.contrib", "tf.examples", "tf.models")

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


@dataclass(frozen=True)
class Standing:
    """A name that TensorFlow 2.21 lacks, at the first line that says it.

    `name` is `tf.X` or `tf.compat.v1.X`; `keywords` are the arguments that are gone, where the name itself is there.
    `to` is where TensorFlow 2.21 has what TensorFlow 1 called so, None where it is gone. `further` are other lines.
    """

    name: str
    line: int
    column: int
    to: str | None
    keywords: tuple[str, ...] = ()
    further: tuple[int, ...] = ()


def is_plain(use: Use) -> bool:
    """Whether a name is spelled as `tf.X`, which has another meaning in each of the two versions."""
    return use.name != _COMPAT and not use.name.startswith(f"{_COMPAT}.")


def standing(text: str) -> tuple[Standing, ...]:
    """What stands in a file that TensorFlow 2.21 lacks, each name once, in the order of the lines.

    Left out is what a program guards: by the version that it asks for, or by catching the error.
    """
    found: dict[tuple[str, tuple[str, ...]], Standing] = {}
    lines: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    for use in uses(text):
        if use.guarded:
            continue
        gone: tuple[str, ...] = ()
        if exists(use.name):
            if is_plain(use) and use.called:
                gone = tuple(sorted(gone_keywords(use.name).intersection(use.keywords)))
            if not gone:
                continue
        name = symbol(use.name) if is_plain(use) else f"{_COMPAT}{symbol(use.name).removeprefix('tf')}"
        key = name, gone
        found.setdefault(key, Standing(name, use.line, use.column, _home(name, gone), gone))
        lines.setdefault(key, []).append(use.line)
    for method in lacking(text):
        key = method.name, ()
        found.setdefault(key, Standing(method.name, method.line, method.column, method.to))
        lines.setdefault(key, []).append(method.line)
    return tuple(
        Standing(one.name, one.line, one.column, one.to, one.keywords, tuple(sorted({*lines[key]} - {one.line})))
        for key, one in found.items()
    )


def _home(name: str, gone: tuple[str, ...]) -> str | None:
    if gone:
        return f"{_COMPAT}{name.removeprefix('tf')}"
    found = fate(name)
    return found.to if isinstance(found, (Renamed, Compat)) else None


def is_for_one(text: str) -> bool:
    """Whether a file is of TensorFlow 1: it says, unguarded, what only TensorFlow 1 understands, and nothing newer.

    Keras and what else both versions have says nothing beside what only a graph of TensorFlow 1 has.
    """
    found = _of_one(text)
    if not found or any(_is_new(use) for use in uses(text)):
        return False
    return not is_for_two(text) or any(one.name in _OF_GRAPHS for one in found)


def needs_tensorflow_1(text: str) -> bool:
    """Whether a file is of TensorFlow 1, and something that it says has no other name that means the same anywhere."""
    return is_for_one(text) and any(one.keywords or same_anywhere(one.name) is None for one in standing(text))


def same_anywhere(name: str) -> str | None:
    """The name in TensorFlow 2.21 that means what `tf.X` of TensorFlow 1 does, with and without eager execution."""
    found = fate(name)
    if isinstance(found, Renamed):
        return None if ".experimental." in found.to else found.to
    if isinstance(found, Compat) and (name in _OF_THEIR_ARGUMENTS or _is_below(name, *_BESIDE_GRAPHS)):
        return found.to
    return None


def takes_old_arguments(name: str) -> bool:
    """Whether `tf.compat.v1.X` is what `tf.X` of TensorFlow 1 was, called with any of its arguments."""
    return name.replace("tf.math.", "tf.", 1) in _OF_OLD_ARGUMENTS


def is_for_two(text: str) -> bool:
    """Whether a file names what programs of TensorFlow 2 are made of."""
    return any(_is_new(use) or (is_plain(use) and _is_below(use.name, *_OF_TWO)) for use in uses(text))


def _is_new(use: Use) -> bool:
    return is_plain(use) and isinstance(fate(use.name), New)


def _of_one(text: str) -> list[Standing]:
    return [
        one
        for one in standing(text)
        if one.keywords or not isinstance(fate(one.name), Gone) or _is_below(one.name, *_OF_ONE)
    ]


def has_estimators(text: str) -> bool:
    """Whether a file names an Estimator of TensorFlow's, or what belongs to one."""
    return any(
        ".estimator" in use.name or "Estimator" in use.name or ".contrib.learn" in use.name for use in uses(text)
    )


def only_keras_2(text: str) -> tuple[Use, ...]:
    """The names of a file, as they are spelled, that are there on Keras 2 (tf_keras) alone."""
    return tuple(use for use in uses(text) if not use.guarded and needs_keras_2(use.name))


def _is_below(name: str, *modules: str) -> bool:
    return any(name == module or name.startswith(f"{module}.") for module in modules)
