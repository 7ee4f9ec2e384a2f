"""Estimators around a Keras model that is made and compiled elsewhere: the model itself is the migrated program."""

from __future__ import annotations

import libcst as cst

from migrator.findings import Severity
from migrator.program.calls import calls_in
from migrator.program.parsed import Blocked, ParsedFile
from migrator.rules.rule import Rule

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
    if any(file.imports.resolve(call.func) == _CLONE for call in calls_in(function.body)):
        message = "this creates an Estimator from a Keras model: keep the compiled model, and call its fit and evaluate"
        raise Blocked("TFM858", place, message)
