"""Towers inside a model_fn: a network for each GPU, whose gradients the program averages itself."""

from __future__ import annotations

import libcst as cst

from migrator.findings import Severity
from migrator.names.imports import ImportMap
from migrator.program.calls import calls_in
from migrator.program.parsed import names_in
from migrator.rules.rule import Rule
from migrator.walking import walk

RULES = (
    Rule(
        "TFM743",
        "towers inside a model_fn",
        Severity.MANUAL,
        """
This model_fn splits its batch, builds one network for each GPU (`for i in range(n): with tf.device("/gpu:%d" % i):`),
and averages the gradients itself. In TensorFlow 2 that is what a strategy does with a model that knows of one device
only. Before you migrate, write the model_fn for one tower: features and labels as they are, one loss,
`optimizer.minimize(loss, ...)`, no `tf.device`. Then give the RunConfig
`train_distribute=tf.distribute.MirroredStrategy()` and let the input function make batches as large as one tower's:
each replica draws one, and the mean of their gradients is applied, as before. Or leave the batches as they are, and
migrate with `--strategy mirrored --loop custom`: the replicas divide each batch (TFM736). With equal towers and the
mean of their gradients both make the steps that the towers made; for a sum, make the rate as many times larger. Moving
averages of a batch normalization are others (TFM722, TFM738).

A program without an Estimator whose loop has such towers is carried over as it is (TFM766).
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
