"""The page of all public names of TensorFlow 1.15: how many have which answer, module by module."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from migrator.bridge.answers import Answer, Row, answer
from migrator.names.advice import Advice, advice
from migrator.names.spelling import canonical

_MEANING = {
    Answer.SAME: "`tf.X` of TensorFlow 2.21 is the same object",
    Answer.RENAMED: "the same under another name of TensorFlow 2.21, which the codemod writes",
    Answer.COMPAT: "`tf.compat.v1.X`; where a rule knows it, the native form is a Keras or TensorFlow 2 call",
    Answer.SUPPORT: "a class or function of `keras_estimator.py`, the project's own file ([TFM155](TFM155.md))",
    Answer.LIBRARY: "a separate package, usually `tf_slim`",
    Answer.GONE: "no equivalent: the finding (TFM156) says what to do instead",
}
_HEAD = """\
# Every name of TensorFlow 1.15

Made by `make docs` from the public names of TensorFlow 1.15.5 (`tf.X` and `tf.contrib.X`, {count:,} of them) and of
TensorFlow 2.21. `tf-migrate rules tf.X` shows the answer for one name.

| answer | names | meaning |
|---|---:|---|
"""
_TABLE = """
## By module

Modules of the same answer throughout stand in the first table only. What is done about names that are gone:

| module | {columns} | where names are gone |
|---|{lines}---|
"""


def page(rows: Sequence[Row]) -> str:
    """The page, in Markdown."""
    counts = Counter(row.answer for row in rows)
    text = _HEAD.format(count=len(rows))
    text += "".join(f"| {one.value} | {counts[one]:,} | {_MEANING[one]} |\n" for one in Answer)
    modules: dict[str, list[Row]] = {}
    for row in rows:
        modules.setdefault(_module(row.name), []).append(row)
    columns = " | ".join(one.value for one in Answer)
    text += _TABLE.format(columns=columns, lines="---:|" * len(Answer))
    for module, found in sorted(modules.items()):
        own = Counter(row.answer for row in found)
        if set(own) == {Answer.SAME}:
            continue
        numbers = " | ".join(str(own[one] or "") for one in Answer)
        text += f"| `{module}` | {numbers} | {'; '.join(_told(found))} |\n"
    return text


def _module(name: str) -> str:
    """`tf.contrib.rnn` for what lies in it, `tf.nn` and `tf` for the rest."""
    parts = name.split(".")
    return ".".join(parts[: 3 if parts[1] == "contrib" and len(parts) > 3 else min(2, len(parts) - 1)])


def _told(rows: Iterable[Row]) -> list[str]:
    found: dict[Advice, None] = {}
    for row in rows:
        if row.answer is Answer.GONE or (row.answer is Answer.LIBRARY and not row.now.startswith("tf_slim")):
            found.setdefault(advice(row.name))
    return [f"{one.text} ({one.package})" if one.package else one.text for one in found][:3]


def lines(name: str) -> str:
    """What `tf-migrate rules` says of a name that no rule rewrites."""
    row = answer(canonical(name))
    return f"# {row.name}\n\n{row.answer.value}: {_MEANING[row.answer]}.\n\nNow: `{row.now}`\n"
