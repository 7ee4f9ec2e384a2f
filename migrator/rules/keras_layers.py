"""Keras layers and models that a model_fn calls: whether they train."""

from __future__ import annotations

from collections.abc import MutableSequence

import libcst as cst

from migrator.findings import Severity
from migrator.program.parsed import Blocked
from migrator.rules.layers import add_argument
from migrator.rules.rule import Rule
from migrator.rules.site import keyword

RULES = (
    Rule(
        "TFM404",
        "whether a Keras layer of a model_fn is active in training",
        Severity.REVIEW,
        """
In a graph of TensorFlow 1 a Keras layer trains only where its call says so. `training=(mode == ModeKeys.TRAIN)`, of a
layer, of a `Sequential` or other model, or of what a function returns that makes one, goes: Keras tells its layers by
itself, and means the same. A dropout that is called without `training=` was at work **nowhere**, not in training either
(its phase is a placeholder that is 0 unless somebody feeds it; measured on 1.15.5 and 2.15.1: what `Dropout(0.5)` gives
is its input). It stays so, with `training=False`, which is almost never what was meant: take it out to have the
dropout, and expect other numbers.

`training=` has to be given by name. Each of these layers has to be called, by itself or in a model, in code that can be
resolved from the one that creates it: what stands in a list, a dict or an attribute of an object, or is passed to a
function, is refused. Make and call it in the model_fn, or in a function that it calls.

A class of the program that is derived from `tf.keras.Model` or `tf.keras.layers.Layer` is called like one of Keras,
where its `call(self, inputs, training)` hands `training=training` on to each of its layers that trains otherwise, and
trains nowhere by itself.
""",
    ),
    Rule(
        "TFM405",
        "a regularizer of a Keras layer in a model_fn",
        Severity.MANUAL,
        """
In TensorFlow 1 the term of `tf.keras.layers.Dense(10, kernel_regularizer=...)` is in `layer.losses` only, and no part
of the loss unless the model_fn adds it; it is in none of the collections that `tf.losses` reads. A compiled Keras model
adds it by itself. Leave the regularizer out where the loss had no term of it; where it had, take the function of
`tf.layers`, and `tf.losses.get_regularization_loss()`. Refused as well are `ActivityRegularization`, `add_loss` and
regularizers that are set later, and arguments of Keras layers that cannot be read (`**options`).
""",
    ),
)


def told_not_to_train(original: cst.Call, updated: cst.Call, remarks: MutableSequence[Blocked]) -> cst.Call:
    """The call of a Keras layer that nobody told to train, which it says now."""
    message = (
        "without `training=` this layer was inactive everywhere, in training as well: it stays so (`training=False`)"
    )
    remarks.append(Blocked("TFM404", original, message))
    return updated.with_changes(args=add_argument(list(updated.args), keyword("training", cst.Name("False"))))
