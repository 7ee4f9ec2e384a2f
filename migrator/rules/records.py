"""Record files and strings: functions that TensorFlow 2 has in another form only."""

from __future__ import annotations

import libcst as cst

from migrator.findings import Severity
from migrator.program.calls import is_none
from migrator.program.parsed import Blocked
from migrator.rules.rule import Example, Rule
from migrator.rules.site import CallRule, Site, call_text, expression

RULES = (
    Rule(
        "TFM241",
        "record files and strings",
        Severity.MANUAL,
        """
`tf.python_io.tf_record_iterator` gives the same bytes as the iterator of a `tf.data.TFRecordDataset`. `tf.string_split`
takes each character of its delimiter as a separator and gives a SparseTensor, which no function of TensorFlow 2 does
for every text: the operation itself is called. Options of compressed files are unsupported.
""",
        (
            Example("tf.python_io.tf_record_iterator(path)", "tf.data.TFRecordDataset(path).as_numpy_iterator()"),
            Example("tf.python_io.tf_record_iterator(path, options)", None),
            Example(
                "tf.string_split([line], ',')",
                "tf.SparseTensor(*tf.raw_ops.StringSplit(input=[line], delimiter=',', skip_empty=True))",
            ),
        ),
    ),
)


def _iterator(site: Site) -> cst.BaseExpression:
    new = site.arguments(("path", "options"), "TFM241")
    if "path" not in new or not is_none(new.get("options")):
        raise Blocked("TFM241", site.original, "record file options are unsupported")
    return expression(f"tf.data.TFRecordDataset({site.code(new['path'])}).as_numpy_iterator()")


def _split(site: Site) -> cst.BaseExpression:
    new = site.arguments(("source", "sep", "skip_empty", "delimiter", "result_type", "input", "name"), "TFM241")
    source = new.get("source") or new.get("input")
    delimiter = new.get("delimiter") or new.get("sep")
    if source is None or "result_type" in new or (is_none(delimiter) and "skip_empty" in new):
        raise Blocked("TFM241", site.original, "`tf.string_split` needs a source and a delimiter")
    parts = [f"input={site.code(source)}"]
    if delimiter is None or is_none(delimiter):
        parts.append('delimiter=" "')
    else:
        parts.append(f"delimiter={site.code(delimiter)}")
    parts.append(f"skip_empty={site.code(new['skip_empty']) if 'skip_empty' in new else True}")
    return expression(f"tf.SparseTensor(*{call_text('tf.raw_ops.StringSplit', parts)})")


CALLS: dict[str, CallRule] = {
    "tf.python_io.tf_record_iterator": _iterator,
    "tf.io.tf_record_iterator": _iterator,
    "tf.string_split": _split,
}
