"""Branches for TPUs: `if use_tpu:` around what only a TPU can run.

What such a branch does, a TPUStrategy does by itself (a CrossShardOptimizer, a Scaffold), or the driver's new lines do
(the resolver), so these branches are read, and left out, before anything else is looked at.
"""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator.program.calls import string
from migrator.program.folding import Folding
from migrator.program.parsed import Blocked, ParsedFile
from migrator.program.region import References
from migrator.walking import of_kinds, transformed, walk

_ON_TPU = ("tf.contrib.tpu.", "tf.tpu.", "tf.estimator.tpu.", "tf.compat.v1.tpu.")
_ONLY_ON_TPU = (
    "tf.train.Scaffold",
    "tf.contrib.cluster_resolver.TPUClusterResolver",
    "tf.distribute.cluster_resolver.TPUClusterResolver",
)
_CODE = "TFM420"


def without_tpu_branches(file: ParsedFile) -> tuple[ParsedFile, list[Blocked]]:
    """The file without its branches for TPUs, whose nodes keep their positions, and a remark for each of them."""
    if "tpu" not in file.bare or not _asks(file.module):
        return file, []
    remover = _Remover(file)
    module = transformed(file.module, remover)
    if not remover.gone:
        return file, []
    assert isinstance(module, cst.Module)
    pruned = ParsedFile(file.path, file.text, module, left_out=tuple(remover.left_out))
    pruned.keep_positions(remover.made, file)
    return pruned, [Blocked(_CODE, node, message) for node, message in remover.gone]


def _asks(module: cst.Module) -> bool:
    return any(asks_for_tpu(one.test) is not None for one in of_kinds(module, cst.If, cst.IfExp))


def asks_for_tpu(node: cst.BaseExpression) -> bool | None:
    """Whether a condition is that a TPU is used (or, False, that none is); None when it says something else.

    A flag, a parameter or an attribute counts by its name: `use_tpu`, `FLAGS.use_tpu`, `params["use_tpu"]`.
    """
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
        inner = asks_for_tpu(node.expression)
        return None if inner is None else not inner
    if isinstance(node, cst.BooleanOperation) and isinstance(node.operator, cst.And):
        return True if asks_for_tpu(node.left) or asks_for_tpu(node.right) else None
    name = ""
    if isinstance(node, cst.Name):
        name = node.value
    elif isinstance(node, cst.Attribute):
        name = node.attr.value
    elif isinstance(node, cst.Subscript) and len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Index):
        name = string(node.slice[0].slice.value) or ""
    return True if name.lower().strip("_") in ("use_tpu", "with_tpu", "is_tpu", "on_tpu") else None


class _Remover(Folding):
    """Puts the other branch in the place of an `if` whose one branch is for TPUs."""

    def __init__(self, file: ParsedFile) -> None:
        super().__init__()
        self.file = file
        self.gone: list[tuple[cst.CSTNode, str]] = []
        self.left_out: list[cst.CSTNode] = []

    def leave_If(self, original_node: cst.If, updated_node: cst.If) -> Any:
        asks = asks_for_tpu(original_node.test)
        if asks is None or self.is_elif(original_node):
            return updated_node
        other = original_node.orelse
        dropped = original_node.body if asks else other.body if isinstance(other, cst.Else) else None
        if dropped is None or not self._only_on_tpu(dropped):
            return updated_node
        self.gone.append((original_node, "the branch for TPUs is dropped"))
        self.left_out.append(dropped)
        if asks:
            return self.orelse_instead(original_node, updated_node)
        return self.body_instead(original_node, updated_node)

    def leave_IfExp(self, original_node: cst.IfExp, updated_node: cst.IfExp) -> cst.BaseExpression:
        asks = asks_for_tpu(original_node.test)
        if asks is None:
            return updated_node
        dropped, kept = (original_node.body, updated_node.orelse) if asks else (original_node.orelse, updated_node.body)
        if not self._only_on_tpu(dropped):
            return updated_node
        self.gone.append((original_node, "the value for TPUs is dropped"))
        self.left_out.append(dropped)
        return kept

    def _only_on_tpu(self, node: cst.CSTNode) -> bool:
        mentions = References()
        walk(node, mentions)
        names = [self.file.imports.tensorflow(one) or "" for one in mentions.found]
        return any(name.startswith(_ON_TPU) or name in _ONLY_ON_TPU for name in names)


__all__ = ["asks_for_tpu", "without_tpu_branches"]
