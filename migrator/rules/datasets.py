"""Transformations of datasets: those of tf.contrib.data, and queues, which are no datasets."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from migrator.findings import Severity
from migrator.names.imports import ImportMap
from migrator.program.calls import bind, is_none
from migrator.program.parsed import Blocked, ParsedFile
from migrator.rules.rule import Example, Rule
from migrator.rules.site import CallRule, Site, expression

RULES = (
    Rule(
        "TFM610",
        "transformations of tf.contrib.data and tf.data.experimental",
        Severity.MIGRATED,
        """
What became a method of the dataset is called as one; the others moved to `tf.data.experimental`. The batches are the
same. Where `shuffle_and_repeat` has a seed the order is another, though: TensorFlow 1 fuses the two and draws from
another stream of random numbers.
""",
        (
            Example(
                "d.apply(tf.contrib.data.map_and_batch(parse, 8))",
                "d.map(parse, num_parallel_calls=tf.data.AUTOTUNE).batch(8)",
            ),
            Example(
                "d.apply(tf.data.experimental.map_and_batch(map_func=parse, batch_size=n, drop_remainder=True,"
                " num_parallel_calls=4))",
                "d.map(parse, num_parallel_calls=4).batch(n, drop_remainder=True)",
            ),
            Example(
                "d.apply(tf.data.experimental.map_and_batch_with_legacy_function(parse, batch_size=n))",
                "d.map(parse, num_parallel_calls=tf.data.AUTOTUNE).batch(n)",
            ),
            Example("d.apply(tf.contrib.data.shuffle_and_repeat(100, 3))", "d.shuffle(100).repeat(3)"),
            Example(
                "d.apply(tf.contrib.data.shuffle_and_repeat(buffer_size=n, seed=1))", "d.shuffle(n, seed=1).repeat()"
            ),
            Example("d.apply(tf.contrib.data.batch_and_drop_remainder(8))", "d.batch(8, drop_remainder=True)"),
            Example("d.apply(tf.contrib.data.unbatch())", "d.unbatch()"),
            Example("d.apply(tf.contrib.data.ignore_errors())", "d.apply(tf.data.experimental.ignore_errors())"),
        ),
    ),
    Rule(
        "TFM612",
        "queues are unsupported",
        Severity.MANUAL,
        """
Input functions that fill queues with threads (`tf.train.string_input_producer`, `batch`, `shuffle_batch`,
`slice_input_producer`, readers) have no counterpart in TensorFlow 2. Write them with `tf.data`:
`tf.data.TFRecordDataset(files).map(parse).shuffle(n).repeat(epochs).batch(size)` in place of producer, reader, decoder
and `shuffle_batch`. The order of shuffled queues was never reproducible.
""",
        (
            Example("tf.train.string_input_producer(files)", None),
            Example("tf.train.shuffle_batch([x, y], 8, 100, 50)", None),
            Example("tf.TFRecordReader()", None),
        ),
    ),
)

_MAP_AND_BATCH = ("map_func", "batch_size", "num_parallel_batches", "drop_remainder", "num_parallel_calls")
_TRANSFORMATIONS = {
    "map_and_batch": _MAP_AND_BATCH,
    "map_and_batch_with_legacy_function": _MAP_AND_BATCH,
    "shuffle_and_repeat": ("buffer_size", "count", "seed"),
    "batch_and_drop_remainder": ("batch_size",),
    "unbatch": (),
}
_MODULES = ("tf.contrib.data", "tf.data.experimental")
_QUEUES = (
    *(f"tf.train.{name}" for name in ("string_input_producer", "slice_input_producer", "input_producer")),
    *(f"tf.train.{name}" for name in ("batch", "batch_join", "shuffle_batch", "shuffle_batch_join", "limit_epochs")),
    *(f"tf.train.{name}" for name in ("maybe_batch", "maybe_shuffle_batch", "range_input_producer")),
    "tf.TFRecordReader",
    "tf.TextLineReader",
    "tf.WholeFileReader",
    "tf.FixedLengthRecordReader",
    "tf.contrib.learn.read_batch_examples",
    "tf.contrib.learn.read_batch_record_features",
    "tf.contrib.learn.io.read_batch_features",
)


#: What asks Python code for the elements of a dataset.
_PYTHON = ("from_generator", "py_func", "py_function", "numpy_function")


def runs_python(files: Iterable[ParsedFile]) -> bool:
    """Whether datasets of some files may ask Python code for their elements, which may look at what else is done."""
    return any(word in file.bare for file in files for word in _PYTHON)


def applied(original: cst.Call, updated: cst.Call, imports: ImportMap) -> cst.BaseExpression:
    """`dataset.apply(transformation)` as methods of the dataset, where there are such; any other call as it is."""
    if not isinstance(updated.func, cst.Attribute) or updated.func.attr.value != "apply" or len(original.args) != 1:
        return updated
    inner, new = original.args[0].value, updated.args[0].value
    if not isinstance(inner, cst.Call):
        return updated
    module, _, name = (imports.tensorflow(inner.func) or "").rpartition(".")
    if module not in _MODULES or name not in _TRANSFORMATIONS:
        return updated
    if isinstance(new, cst.Lambda) and isinstance(new.body, cst.Call):
        new = new.body.with_changes(args=new.body.args[:1])  # what _transformation made of batch_and_drop_remainder
    assert isinstance(new, cst.Call)
    given = bind(new, _TRANSFORMATIONS[name], f"{module}.{name}", "TFM204")
    dataset = updated.func.value
    if name.startswith("map_and_batch"):
        calls = given.get("num_parallel_calls")
        parallel = expression("tf.data.AUTOTUNE") if is_none(calls) else calls
        dataset = _method(dataset, "map", [given["map_func"]], num_parallel_calls=parallel)
    if name == "shuffle_and_repeat":
        dataset = _method(dataset, "shuffle", [given["buffer_size"]], seed=given.get("seed"))
        count = given.get("count")
        return _method(dataset, "repeat", [] if count is None else [count])
    if name == "unbatch":
        return _method(dataset, "unbatch", [])
    drop = cst.Name("True") if name == "batch_and_drop_remainder" else given.get("drop_remainder")
    return _method(dataset, "batch", [given["batch_size"]], drop_remainder=drop)


def _method(
    dataset: cst.BaseExpression, name: str, arguments: list[cst.BaseExpression], **keywords: cst.BaseExpression | None
) -> cst.Call:
    equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    args = [cst.Arg(value) for value in arguments]
    args += [
        cst.Arg(v, keyword=cst.Name(k), equal=equal) for k, v in keywords.items() if v is not None and not is_none(v)
    ]
    return cst.Call(cst.Attribute(dataset, cst.Name(name)), args)


def _transformation(site: Site) -> cst.BaseExpression:
    """The function alone: `applied` makes methods of it where it is applied."""
    name = site.name.rpartition(".")[2]
    if name == "batch_and_drop_remainder":
        value = site.arguments(("batch_size",), "TFM204")["batch_size"]
        return expression(f"lambda dataset: dataset.batch({site.code(value)}, drop_remainder=True)")
    return site.call.with_changes(func=expression(f"tf.data.experimental.{name}"))


def _queue(site: Site) -> cst.BaseExpression:
    raise Blocked("TFM612", site.original, f"`{site.name}` fills a queue: write the input_fn with `tf.data`")


CALLS: dict[str, CallRule] = {
    **{f"{module}.{name}": _transformation for module in _MODULES for name in _TRANSFORMATIONS},
    **dict.fromkeys(_QUEUES, _queue),
}
