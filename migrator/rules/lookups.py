"""Tables of `tf.contrib.lookup` that look up words: `tf.lookup` has the same, made of an initializer."""

from __future__ import annotations

import libcst as cst

from migrator.findings import Severity
from migrator.program.calls import is_none, number
from migrator.program.parsed import Blocked
from migrator.rules.rule import Example, Rule
from migrator.rules.site import CallRule, Site, call_text, expression

RULES = (
    Rule(
        "TFM250",
        "lookup tables of tf.contrib.lookup",
        Severity.MANUAL,
        """
`index_table_from_file` and `index_table_from_tensor` become a `tf.lookup.StaticVocabularyTable` (words that are not in
the vocabulary share `num_oov_buckets` ids, by the same hash) or a `tf.lookup.StaticHashTable` (they get
`default_value`); `index_to_string_table_from_file` and `..._from_tensor` a `StaticHashTable`. The ids are equal
(measured on TensorFlow 1.15.5, ids of unknown words included). Unsupported: `vocab_size`, another hash, other columns
or key types, and tables that the model_fn makes.

    tf.contrib.lookup.index_table_from_file(path, num_oov_buckets=2)

in an input function becomes

    tf.lookup.StaticVocabularyTable(tf.lookup.TextFileInitializer(path, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE,
                                                                  tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER), 2)
""",
        (Example("tf.contrib.lookup.index_table_from_file(path, vocab_size=10)", None),),
    ),
    Rule(
        "TFM251",
        "a lookup table with a computed number of buckets",
        Severity.REVIEW,
        """
`num_oov_buckets` of the named table is not written out. For 0 TensorFlow 1 makes a table that gives unknown words
`default_value`; `tf.lookup.StaticVocabularyTable` raises a ValueError then. Use a `tf.lookup.StaticHashTable` if it can
be 0.
""",
    ),
)

_FILE = (
    *("vocabulary_file", "num_oov_buckets", "vocab_size", "default_value", "hasher_spec", "key_dtype", "name"),
    *("key_column_index", "value_column_index", "delimiter"),
)
_TENSOR = ("mapping", "num_oov_buckets", "default_value", "hasher_spec", "dtype", "name")
_TO_STRING_FILE = (
    *("vocabulary_file", "vocab_size", "default_value", "name", "key_column_index", "value_column_index", "delimiter"),
)
_TO_STRING_TENSOR = ("mapping", "default_value", "name")
_LINE, _NUMBER = "tf.lookup.TextFileIndex.WHOLE_LINE", "tf.lookup.TextFileIndex.LINE_NUMBER"


def _bound(site: Site, parameters: tuple[str, ...], kept: tuple[str, ...]) -> dict[str, cst.BaseExpression]:
    if site.modes is not None:
        message = f"`{site.name}` in a model_fn would be created at every call: create it in the input_fn"
        raise Blocked("TFM250", site.original, message)
    bound = site.arguments(parameters, "TFM250")
    for key in bound.keys() - {*kept, "name"}:
        if not is_none(bound[key]):
            raise Blocked("TFM250", site.original, f"`{key}` of `{site.name}` is unsupported")
    if kept[0] not in bound:
        raise Blocked("TFM250", site.original, f"`{site.name}` is called without `{kept[0]}`")
    return bound


def _index_table(site: Site, bound: dict[str, cst.BaseExpression], initializer: str) -> cst.BaseExpression:
    buckets = bound.get("num_oov_buckets")
    known = 0.0 if buckets is None else number(buckets)
    if known is None:
        message = "StaticVocabularyTable needs `num_oov_buckets` above 0, and raises if it gets 0"
        site.remarks.append(Blocked("TFM251", site.original, message))
    if known != 0.0:
        assert buckets is not None
        return expression(call_text("tf.lookup.StaticVocabularyTable", [initializer, site.code(buckets)]))
    default = site.code(bound["default_value"]) if "default_value" in bound else "-1"
    return expression(call_text("tf.lookup.StaticHashTable", [initializer, default]))


def _index_from_file(site: Site) -> cst.BaseExpression:
    bound = _bound(site, _FILE, ("vocabulary_file", "num_oov_buckets", "default_value"))
    path = site.code(bound["vocabulary_file"])
    return _index_table(site, bound, _from_file([path, "tf.string", _LINE, "tf.int64", _NUMBER]))


def _from_file(arguments: list[str]) -> str:
    return call_text("tf.lookup.TextFileInitializer", arguments)


def _index_from_tensor(site: Site) -> cst.BaseExpression:
    bound = _bound(site, _TENSOR, ("mapping", "num_oov_buckets", "default_value"))
    words = site.code(bound["mapping"])
    ids = f"tf.range(tf.size({words}, tf.int64))"
    return _index_table(site, bound, call_text("tf.lookup.KeyValueTensorInitializer", [words, ids]))


def _string_from_file(site: Site) -> cst.BaseExpression:
    bound = _bound(site, _TO_STRING_FILE, ("vocabulary_file", "default_value"))
    initializer = _from_file([site.code(bound["vocabulary_file"]), "tf.int64", _NUMBER, "tf.string", _LINE])
    return expression(call_text("tf.lookup.StaticHashTable", [initializer, _unknown(site, bound)]))


def _string_from_tensor(site: Site) -> cst.BaseExpression:
    bound = _bound(site, _TO_STRING_TENSOR, ("mapping", "default_value"))
    words = site.code(bound["mapping"])
    ids = f"tf.range(tf.size({words}, tf.int64))"
    initializer = call_text("tf.lookup.KeyValueTensorInitializer", [ids, words])
    return expression(call_text("tf.lookup.StaticHashTable", [initializer, _unknown(site, bound)]))


def _unknown(site: Site, bound: dict[str, cst.BaseExpression]) -> str:
    return site.code(bound["default_value"]) if "default_value" in bound else '"UNK"'


CALLS: dict[str, CallRule] = {
    "tf.contrib.lookup.index_table_from_file": _index_from_file,
    "tf.contrib.lookup.index_table_from_tensor": _index_from_tensor,
    "tf.contrib.lookup.index_to_string_table_from_file": _string_from_file,
    "tf.contrib.lookup.index_to_string_table_from_tensor": _string_from_tensor,
}
