"""Estimators around a Keras model that is made and compiled elsewhere: the model itself is the migrated program."""

from __future__ import annotations

import libcst as cst

from migrator.findings import Severity
from migrator.program.parsed import Blocked, ParsedFile
from migrator.rules.rule import Rule
from migrator.walking import walk

RULES = (
    Rule(
        "TFM858",
        "an Estimator created from a Keras model",
        Severity.MANUAL,
        """
A model_fn that clones a Keras model (`tf.keras.models.clone_model`), with its loss, metrics and optimizer, is what
`tf.keras.estimator.model_to_estimator` is, written out: it made an Estimator of a model that Keras trains by itself.
There is nothing to migrate in it. Where it is called, keep the compiled model: `model.fit` for `estimator.train`,
`model.evaluate` for `estimator.evaluate`, `tf.keras.callbacks.ModelCheckpoint` for its `model_dir`,
`model.load_weights` for `warm_start_from`; then remove the function.
""",
    ),
)

_CLONE = "tf.keras.models.clone_model"


def check_not_wrapped(file: ParsedFile, function: cst.FunctionDef | None, place: cst.CSTNode) -> None:
    """Raises Blocked (TFM858) for an Estimator that a function makes of a Keras model which it clones."""
    if function is None:
        return
    finder = _Clones(file)
    walk(function.body, finder)
    if finder.found:
        message = "this creates an Estimator from a Keras model: keep the compiled model, and call its fit and evaluate"
        raise Blocked("TFM858", place, message)


class _Clones(cst.CSTVisitor):
    def __init__(self, file: ParsedFile) -> None:
        super().__init__()
        self.file = file
        self.found = False

    def visit_Call(self, node: cst.Call) -> None:
        self.found = self.found or self.file.imports.resolve(node.func) == _CLONE
