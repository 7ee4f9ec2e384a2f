"""Findings about what still stands in a file that TensorFlow 2.21 lacks: no such file is one with nothing to do."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from migrator.findings import Finding, Severity
from migrator.names.spelling import canonical
from migrator.names.standing import Standing, standing
from migrator.names.uses import uses
from migrator.syntax import NOT_PYTHON, tree_of

NAME, ARGUMENT, EAGER = "TFM270", "TFM271", "TFM273"

_GRAPHS = (".disable_v2_behavior", ".disable_eager_execution", ".wrap_function", ".function")
# What fails in eager execution, or has nothing to do there.
_OF_GRAPHS = (".placeholder", ".get_variable", ".global_variables_initializer", ".import_meta_graph")
# Say of a name that nothing runs it, or that the program may not come to it.
_UNUSED = ("TFM172", "TFM180")
_SHOWN = 4  # lines of a name, beside the first
# What to do about names that have no home, by the longest beginning.
_ADVICE = {
    "tf.estimator": "Estimators are gone since 2.16; tf-migrate rewrites programs that create and train one",
    "tf.keras.estimator": "Estimators are gone since 2.16; train the Keras model itself",
    "tf.contrib": "contrib is gone since TensorFlow 2.0",
    "tf.contrib.learn": "contrib is gone; train a Keras model, or write the program for tf.estimator first",
    "tf.contrib.learn.datasets": "contrib is gone; use the datasets of tf.keras.datasets or tensorflow_datasets",
    "tf.contrib.slim": "use the tf_slim package, in programs that run as TensorFlow 1 code",
    "tf.contrib.layers": "use tf.keras.layers, or the tf_slim package in programs that run as TensorFlow 1 code",
    "tf.contrib.layers.xavier_initializer": "use tf.keras.initializers.GlorotUniform",
    "tf.contrib.layers.l2_regularizer": "use tf.keras.regularizers.L2, with half the scale",
    "tf.contrib.rnn": "use tf.compat.v1.nn.rnn_cell, or tf.keras.layers",
    "tf.contrib.framework.nest": "use tf.nest",
    "tf.contrib.data": "use tf.data.experimental, or tf.data.Dataset",
    "tf.contrib.eager": "TensorFlow 2 runs eagerly; use tf itself",
    "tf.contrib.distribute": "use tf.distribute",
    "tf.contrib.lookup": "use tf.lookup",
    "tf.contrib.summary": "use tf.summary",
    "tf.contrib.lite": "use tf.lite",
    "tf.contrib.tpu": "use tf.distribute.TPUStrategy",
    "tf.contrib.image": "use tf.image, or tf.raw_ops.ImageProjectiveTransformV3",
    "tf.contrib.training.HParams": "use a dataclass, or types.SimpleNamespace",
    "tf.examples.tutorials.mnist": "use tf.keras.datasets.mnist, or the tensorflow_datasets package",
    "tf.python.estimator": "Estimators are gone since 2.16; tf-migrate rewrites programs that create and train one",
}


def left_in(path: Path, old: str, new: str, before: Collection[Finding]) -> list[Finding]:
    """A finding for each name in the new text of a file that TensorFlow 2.21 lacks.

    The lines are those of the old text, where it has the name too. What `before` says by hand about a line stands.
    """
    told = {finding.line for finding in before if finding.severity is Severity.MANUAL or finding.code in _UNUSED}
    apart = {finding.line for finding in before if finding.code in _UNUSED}
    known = {(canonical(one.name), one.keywords): one for one in standing(old)}
    left = (known.get((canonical(one.name), one.keywords), one) for one in standing(new))
    return [_finding(path, one) for one in left if one.line not in told and apart.isdisjoint(one.further)]


def eager_sessions(path: Path, text: str) -> list[Finding]:
    """A finding for each function, or top level, with a session whose graph is never the default one."""
    if "Session" not in text or standing(text):
        return []
    called = [use.name for use in uses(text) if use.called and not use.guarded]
    if not any(name.endswith("Session") for name in called) or not any(name.endswith(_OF_GRAPHS) for name in called):
        return []  # a session that only sets devices for Keras, say
    from migrator.bridge.sessions import own_sessions
    from migrator.names.references import read_names

    try:
        tree = tree_of(text)
    except NOT_PYTHON:
        return []
    meanings = {one.nodes[-1]: canonical(one.origin) for one in read_names(tree).references}
    message = (
        "TensorFlow 2 runs eagerly, so this session gets an empty graph: call "
        "`tf.compat.v1.disable_v2_behavior()` after importing TensorFlow"
    )
    return [
        Finding(str(path), own.place.lineno, own.place.col_offset + 1, EAGER, Severity.MANUAL, message)
        for own in own_sessions(tree, meanings, ())
    ]


def makes_graphs(texts: Iterable[str]) -> bool:
    """Whether some file of a project turns eager execution off, or makes a graph the default one itself."""
    return any(
        use.name.endswith(_GRAPHS)
        for text in texts
        if any(one.lstrip(".") in text for one in _GRAPHS)
        for use in uses(text)
    ) or any("as_default(" in text for text in texts)


def _finding(path: Path, one: Standing) -> Finding:
    if one.keywords:
        words = " and ".join(f"`{word}`" for word in one.keywords)
        message = f"`{one.name}` has no {words} in TensorFlow 2.21: use `{one.to}`" + _also(one)
        return Finding(str(path), one.line, one.column, ARGUMENT, Severity.MANUAL, message)
    what = f"write `{one.to}`" if one.to is not None else _advice(one.name)
    message = f"`{one.name}` is not in TensorFlow 2.21: {what}" + _also(one)
    return Finding(str(path), one.line, one.column, NAME, Severity.MANUAL, message)


def _also(one: Standing) -> str:
    if not one.further:
        return ""
    shown = ", ".join(map(str, one.further[:_SHOWN]))
    more = f" and {len(one.further) - _SHOWN} more" if len(one.further) > _SHOWN else ""
    return f" (also line{'s' if len(one.further) > 1 else ''} {shown}{more})"


def _advice(name: str) -> str:
    name = name.replace("tf.compat.v1.", "tf.", 1)
    while "." in name:
        if name in _ADVICE:
            return _ADVICE[name]
        name = name.rpartition(".")[0]
    return "it is gone without a successor"
