"""Towers inside a model_fn: a network for each GPU, whose gradients the program averages itself."""

from __future__ import annotations

import libcst as cst

from migrator.findings import Severity
from migrator.names.imports import ImportMap
from migrator.program.calls import calls_in
from migrator.program.parsed import names_in
from migrator.rules.rule import Rule
from migrator.walking import walk

CODE = "TFM743"

RULES = (
    Rule(
        CODE,
        "towers inside a model_fn",
        Severity.MANUAL,
        """
A model_fn that splits its batch, builds a network for each GPU (`for i in range(n): with tf.device("/gpu:%d" % i):`),
and averages the gradients itself becomes the model_fn of one tower, which gets the whole batch; the replicas of a
MirroredStrategy divide that again, in a custom training loop (TFM736; `--strategy one-device` writes `fit` for one
device). Understood are the parts of a `tf.split` into as many as there are towers, variables that all share
(`variable_scope(..., reuse=i > 0)`, `reuse_variables()`), branches on the mode, a function of the same file that takes
the mean of the gradients (TFM767; those of `optimizer.compute_gradients(loss)`, or of `tf.gradients(loss, v)` with `v =
tf.trainable_variables()`), losses that are means over examples (TFM768), and networks that treat every example by
itself (TFM769: no batch normalization). What the towers put into lists may be joined again by `tf.reduce_mean` (or
`tf.add_n` divided by their number) for losses and by `tf.concat(..., 0)` for rows.

The finding says what is otherwise here. Before you migrate, write the model_fn for one tower: features and labels as
they are, one loss, `optimizer.minimize(loss, ...)`, no `tf.device`. Then give the RunConfig
`train_distribute=tf.distribute.MirroredStrategy()` and let the input function make batches as large as one tower's:
each replica draws one, and the mean of their gradients is applied, as before. Or leave the batches as they are, and
migrate with `--strategy mirrored --loop custom`. With equal towers and the mean of their gradients both make the steps
that the towers made (measured with two: losses to 1e-5, weights to 1e-4 or better); for a sum, make the learning rate
as many times larger. Moving averages of a batch normalization are others (TFM722, TFM738).

A program without an Estimator whose loop has such towers is supported as it is (TFM766).
""",
    ),
)


def find_towers(node: cst.CSTNode, imports: ImportMap) -> cst.For | None:
    """The loop of a function that takes gradients on one device after the other, if there is one."""
    finder = _Towers(imports)
    walk(node, finder)
    return finder.found


class _Towers(cst.CSTVisitor):
    def __init__(self, imports: ImportMap) -> None:
        super().__init__()
        self.imports = imports
        self.found: cst.For | None = None

    def visit_For(self, node: cst.For) -> None:
        if self.found is None and self._on_devices(node) and any(self._takes_gradients(c) for c in calls_in(node.body)):
            self.found = node

    def _on_devices(self, node: cst.For) -> bool:
        """Whether a device in the loop depends on what it goes over."""
        counted = names_in(node.target)
        return any(
            self.imports.tensorflow(call.func) == "tf.device" and names_in(call) & counted
            for call in calls_in(node.body)
        )

    def _takes_gradients(self, call: cst.Call) -> bool:
        if self.imports.tensorflow(call.func) == "tf.gradients":
            return True
        return isinstance(call.func, cst.Attribute) and call.func.attr.value == "compute_gradients"
