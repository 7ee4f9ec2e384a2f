"""The three partitioners, from model scope to the strategy."""

from __future__ import annotations

import libcst as cst

from migrator.findings import Severity
from migrator.program.calls import is_none, number
from migrator.program.parsed import Blocked
from migrator.rules.rule import Example, Rule
from migrator.rules.site import CallRule, Site, call_text, expression

RULES = (
    Rule(
        "TFM701",
        "partitioners become tf.distribute.experimental.partitioners",
        Severity.MANUAL,
        """
A TensorFlow 1 partitioner belongs to a variable scope, a TensorFlow 2 one to the whole ParameterServerStrategy, so it
moves there. The two families give the same shards (compared on 3,000 random shapes), but their positional arguments
stand in another order; keywords are written. What remains in the way: an `axis` other than 0, because
ParameterServerStrategy splits the first axis only.
""",
        (
            Example(
                "tf.fixed_size_partitioner(2)",
                "tf.distribute.experimental.partitioners.FixedShardsPartitioner(num_shards=2)",
            ),
            Example(
                "tf.min_max_variable_partitioner(4, min_slice_size=1 << 10)",
                "tf.distribute.experimental.partitioners.MinSizePartitioner(min_shard_bytes=1 << 10, max_shards=4)",
            ),
            Example(
                "tf.variable_axis_size_partitioner(1 << 20, max_shards=8)",
                "tf.distribute.experimental.partitioners.MaxSizePartitioner(max_shard_bytes=1 << 20, max_shards=8)",
            ),
            Example("tf.fixed_size_partitioner(2, axis=1)", None),
        ),
    ),
    Rule(
        "TFM702",
        "more than one partitioner in a program",
        Severity.MANUAL,
        """
ParameterServerStrategy takes one partitioner for all variables. Two different ones in one program have no
counterpart: choose one, or leave the smaller variables whole with a MinSizePartitioner.
""",
    ),
    Rule(
        "TFM705",
        "a variable scope does more than name and partition",
        Severity.MANUAL,
        """
`tf.variable_scope("name")` becomes `tf.name_scope("name")`, and its partitioner moves to the strategy. A scope that
sets an initializer, a regularizer, a custom getter or reuse changes what the layers inside do: give those arguments
to the layers instead. (`--style mapped`, which keeps such code, is planned.)
""",
    ),
)

_MODULE = "tf.distribute.experimental.partitioners"
# TensorFlow 1 function -> (its parameters, TensorFlow 2 class, TensorFlow 2 keyword by TensorFlow 1 parameter in the
# order of the TensorFlow 2 signature, defaults to write out)
_TABLE: dict[str, tuple[tuple[str, ...], str, dict[str, str], dict[str, str]]] = {
    "fixed_size_partitioner": (("num_shards", "axis"), "FixedShardsPartitioner", {"num_shards": "num_shards"}, {}),
    "min_max_variable_partitioner": (
        ("max_partitions", "axis", "min_slice_size", "bytes_per_string_element"),
        "MinSizePartitioner",
        {
            "min_slice_size": "min_shard_bytes",
            "max_partitions": "max_shards",
            "bytes_per_string_element": "bytes_per_string",
        },
        {"min_slice_size": "256 << 10", "max_partitions": "1"},
    ),
    "variable_axis_size_partitioner": (
        ("max_shard_bytes", "axis", "bytes_per_string_element", "max_shards"),
        "MaxSizePartitioner",
        {
            "max_shard_bytes": "max_shard_bytes",
            "max_shards": "max_shards",
            "bytes_per_string_element": "bytes_per_string",
        },
        {},
    ),
}


def _partitioner(site: Site) -> cst.BaseExpression:
    parameters, keras, keywords, defaults = _TABLE[site.name.rpartition(".")[2]]
    bound = site.arguments(parameters, "TFM701")
    axis = bound.pop("axis", None)
    if axis is not None and number(axis) != 0:
        raise Blocked("TFM701", site.original, "`axis` is not 0: ParameterServerStrategy splits the first axis only")
    texts = {**defaults, **{name: site.code(value) for name, value in bound.items() if not is_none(value)}}
    return expression(call_text(f"{_MODULE}.{keras}", [f"{keywords[p]}={texts[p]}" for p in keywords if p in texts]))


CALLS: dict[str, CallRule] = {f"tf.{name}": _partitioner for name in _TABLE}
