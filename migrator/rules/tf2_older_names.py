"""Names of TensorFlow 1 in files of TensorFlow 2 that mean the same wherever they stand: each is spelled anew."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from migrator.findings import Severity
from migrator.names.fate import exists, gone_keywords
from migrator.names.imports import dotted
from migrator.names.standing import same_anywhere, standing, takes_old_arguments
from migrator.names.uses import uses
from migrator.program.modern import Change, ModernFile
from migrator.rules.rule import Example, Rule

RULES = (
    Rule(
        "TFM272",
        "TensorFlow 1 names in TensorFlow 2 files",
        Severity.MIGRATED,
        """
A file of TensorFlow 2 with a name that only TensorFlow 1 had fails there. Functions that only moved get their new name:
both names are one object in TensorFlow 2.21. What deals with flags, logs, files and settings, and not with graphs, and
what computes its result from its arguments alone (`tf.to_float`, `tf.div`, `tf.decode_csv`, and `tf.reduce_sum`,
`tf.argmax`, `tf.nn.dropout` and others with arguments that are gone), is spelled `tf.compat.v1.X`, where it does the
same with and without eager execution. All other names of TensorFlow 1 are reported (TFM270): a graph, a session or a
variable of `get_variable` is no part of a TensorFlow 2 program.
""",
        (
            Example("tf.log(keras.Input([1]))", "tf.math.log(keras.Input([1]))"),
            Example("tf.logging.info('begun')", "tf.compat.v1.logging.info('begun')"),
            Example(
                "tf.reduce_sum(keras.Input([1]), keep_dims=True)",
                "tf.compat.v1.reduce_sum(keras.Input([1]), keep_dims=True)",
            ),
            Example("tf.to_int32(keras.Input([1]))", "tf.compat.v1.to_int32(keras.Input([1]))"),
        ),
    ),
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
    to = same_anywhere(name)
    return None if to is None else head + to.removeprefix("tf")


def check_older_arguments(file: ModernFile) -> Iterable[Change]:
    """Calls with arguments that only TensorFlow 1 has, of functions that are there under both names."""
    unguarded = {one.name for one in standing(file.parsed.text) if one.keywords}
    tensorflow = next((local for local, name in file.parsed.imports.names.items() if name == "tensorflow"), None)
    for call in file.calls if unguarded and tensorflow else ():
        name = file.name(call.func)
        if name not in unguarded or not takes_old_arguments(name):
            continue
        given = (arg.keyword.value for arg in call.args if arg.keyword is not None)
        word = next((one for one in given if one in gone_keywords(name)), None)
        if word is not None:
            spelled = f"{tensorflow}.compat.v1.{name.removeprefix('tf.')}"
            message = f"`{file.parsed.code(call.func)}` takes `{word}` as `{spelled}`"
            yield Change("TFM272", call.func, message, lambda _, s=spelled: cst.parse_expression(s))  # type: ignore[misc]


CHECKS = (check_older_names, check_older_arguments)
