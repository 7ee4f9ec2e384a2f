"""TensorFlow 1 code that stays what it is, with symbols that TensorFlow 2 has under other names spelled so."""

from __future__ import annotations

import libcst as cst

from migrator.names.compat import in_compat
from migrator.names.imports import ImportMap, dotted
from migrator.names.symbols import home, is_namespace
from migrator.program.parsed import Blocked

_IN_COMPAT = ("tf.logging", "tf.app", "tf.flags", "tf.gfile")  # modules that tf.compat.v1 keeps
_THE_SAME = ("tf.core.framework.", "tf.core.protobuf.")  # messages, which are imported from the same modules


class Respelled(cst.CSTTransformer):
    """Spells every TensorFlow 1 symbol below a node as TensorFlow 2 has it; `left` are those that it does not have.

    Where `messages` is not None, names of messages (protocol buffers), which both have in the same place, stay, and it
    gets the lines that import them.

    Visit only nodes of the file's own tree.
    """

    def __init__(self, imports: ImportMap, messages: set[str] | None = None) -> None:
        super().__init__()
        self.imports = imports
        self.messages = messages
        self.left: list[tuple[cst.CSTNode, str]] = []
        self._names: set[cst.CSTNode] = set()  # that are no references

    def visit_Import(self, node: cst.Import) -> bool:
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        return False

    def visit_Arg(self, node: cst.Arg) -> bool:
        if node.keyword is not None:
            self._names.add(node.keyword)
        return True

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        self._names.add(node.attr)
        return self.imports.tensorflow(node) is None

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        return self._spelled(original_node, updated_node)

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        if original_node in self._names or original_node.value not in self.imports.names:
            return updated_node
        return self._spelled(original_node, updated_node)

    def _is_inner(self, node: cst.BaseExpression) -> bool:
        """Whether a name is one of a module inside of TensorFlow."""
        head = (dotted(node) or "").partition(".")[0]
        return self.imports.names.get(head, "").startswith(("tensorflow.python.", "tensorflow.core."))

    def _spelled(self, original: cst.Attribute | cst.Name, updated: cst.Attribute | cst.Name) -> cst.BaseExpression:
        name = self.imports.tensorflow(original)
        if name is None or (self.imports.may_be_two(original) and not self._is_inner(original)):
            return updated
        if self.messages is not None and name.startswith(_THE_SAME):
            head = (dotted(original) or "").partition(".")[0]
            module, _, attribute = self.imports.names.get(head, "").rpartition(".")
            if f"{module}.".startswith("tensorflow.core."):
                self.messages.add(f"from {module} import {attribute}" + ("" if attribute == head else f" as {head}"))
                return updated
        text = spelling(name)
        if text is None:
            self.left.append((original, name))
            text = name
        return updated if dotted(updated) == text else cst.parse_expression(text)


def spelling(name: str) -> str | None:
    """How TensorFlow 2.21 spells `tf.X` of TensorFlow 1, with the same arguments; None when it has no such symbol."""
    if name == "tf":
        return name
    if any(name == module or name.startswith(f"{module}.") for module in _IN_COMPAT):
        return f"tf.compat.v1.{name.removeprefix('tf.')}"
    head, rest = name, ""
    while "." in head:
        found = home(head)
        if found is not None and found.signature is None:
            return found.name + rest
        if in_compat(head):
            return f"tf.compat.v1.{head.removeprefix('tf.')}{rest}"
        head, _, last = head.rpartition(".")
        rest = f".{last}{rest}"
        if is_namespace(head):
            return None
    return None


def respelled_test(node: cst.FunctionDef, imports: ImportMap) -> tuple[cst.BaseStatement, list[Blocked]]:
    """A test that no program runs, respelled, and what there is to say about it."""
    walk = Respelled(imports)
    new = node.visit(walk)
    assert isinstance(new, cst.FunctionDef)
    message = f"the test `{node.name.value}` stays TensorFlow 1 code, which TensorFlow 2 cannot run as it is"
    return new, [Blocked("TFM118", node.name, message)]


def respelled_session(node: cst.FunctionDef, imports: ImportMap) -> tuple[cst.BaseStatement, list[Blocked]] | None:
    """A function that runs a graph of its own, respelled, and what there is to say; None where a name is gone."""
    messages: set[str] = set()
    walk = Respelled(imports, messages)
    new = node.visit(walk)
    assert isinstance(new, cst.FunctionDef)
    if walk.left or not isinstance(new.body, cst.IndentedBlock):
        return None
    lines = [cst.parse_statement(line) for line in sorted(messages)]
    first = int(node.get_docstring() is not None)
    body = new.body.with_changes(body=[*new.body.body[:first], *lines, *new.body.body[first:]])
    new = new.with_changes(body=body)
    message = f"`{node.name.value}` runs its own graph in a session: it stays TensorFlow 1 code"
    return new, [Blocked("TFM187", node.name, message)]


def respelled(node: cst.FunctionDef | cst.ClassDef, imports: ImportMap) -> tuple[cst.BaseStatement, list[Blocked]]:
    """A function or class that no program runs, respelled, and what there is to say about it."""
    walk = Respelled(imports)
    new = node.visit(walk)
    assert isinstance(new, (cst.FunctionDef, cst.ClassDef))
    title = node.name.value
    message = f"`{title}` is unused: it stays TensorFlow 1 code, with the names of TensorFlow 2"
    remarks = [Blocked("TFM171", node.name, message)]
    known: set[str] = set()
    for where, name in walk.left:
        if name not in known:
            known.add(name)
            remarks.append(Blocked("TFM172", where, f"`{name}` is not in TensorFlow 2, but `{title}` is unused"))
    return new, remarks
