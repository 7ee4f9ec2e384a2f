"""One file of a migrated program: replacements applied, everything else rewritten, imports put right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import libcst as cst

from migrator.names.bindings import read_bindings, values_given
from migrator.names.imports import SWITCHES, canonical, dotted, imports_tensorflow
from migrator.names.standard import STANDARD_MODULES
from migrator.program.calls import attributes_in, calls_in, is_docstring
from migrator.program.comments import comment_lines
from migrator.program.parsed import Blocked, names_in
from migrator.program.summaries import summary_symbol
from migrator.rules import mnist
from migrator.rules.generation import Keras
from migrator.rules.rewriter import Rewriter
from migrator.walking import OF_LINES, OF_PUNCTUATION, walk

_ON_CLUSTER = "# Keras 2 (tf_keras), not the Keras 3 of TensorFlow 2.16 and newer, which cannot fit on a cluster."
_PRIVATE = frozenset(("tensorflow.python.client.device_lib",))
_ON_KERAS_2 = "# Keras 2 (tf_keras), not the Keras 3 of TensorFlow 2.16 and newer: this program needs it."
_ON_ONE_DEVICE = "# Keras 2 (tf_keras), not the Keras 3 of TensorFlow 2.16 and newer: the numbers were matched on it."


_SUMMARIES = tuple(f"tf.summary.{kind}" for kind in ("scalar", "histogram", "image", "audio", "text", "tensor_summary"))


@dataclass
class Within:
    """Statements that get a `with` line around them, neighbours in one block; `held` are those that were rewritten."""

    line: str
    statements: Sequence[cst.BaseStatement]
    held: list[cst.BaseStatement] = field(default_factory=list)


@dataclass
class FileChanges:
    """What is to be replaced in one file, by node of its tree; keys of `statements` and `within` are whole statements.

    `moved` statements stand elsewhere, with their comments. `within` says of statements what they go into. `keras` is
    the generation of Keras of the new file, if any.
    """

    statements: dict[cst.CSTNode, list[cst.BaseStatement]] = field(default_factory=dict)
    moved: set[cst.CSTNode] = field(default_factory=set)
    expressions: dict[cst.CSTNode, cst.BaseExpression] = field(default_factory=dict)
    parameters: dict[cst.CSTNode, cst.Param] = field(default_factory=dict)
    helpers: list[str] = field(default_factory=list)
    helpers_before: cst.CSTNode | None = None
    needs: set[str] = field(default_factory=set)
    within: dict[cst.CSTNode, Within] = field(default_factory=dict)
    classes: dict[str, str] = field(default_factory=dict)
    keras: Keras | None = None
    on_cluster: bool = False


class FileRewriter(Rewriter):
    """A Rewriter that also puts the replacements in, without walking into what they replace."""

    changes: FileChanges
    module: cst.Module

    def prepare(self, module: cst.Module, changes: FileChanges) -> FileRewriter:
        """Sets what is to be replaced in `module`; to be called before the walk."""
        self.module, self.changes = module, changes
        self._carried: Sequence[cst.EmptyLine] = []
        self._extra: dict[cst.CSTNode, Sequence[cst.EmptyLine]] = {}
        self._dropped: set[cst.CSTNode] = set(self.imports.alias_lines)
        self.problems += [Blocked("TFM209", node, message) for node, message in self.imports.problems]
        self._read_nested_imports()
        loads = any(self.imports.tensorflow(call.func) in mnist.LOADERS for call in calls_in(module))
        methods = [one for one in attributes_in(module) if one.attr.value in mnist.METHODS]
        if loads and methods:
            message = f"`{methods[0].attr.value}` of the old MNIST loader is unsupported: batch the arrays"
            self.problems.append(Blocked("TFM752", methods[0], message))
        return self

    def _read_nested_imports(self) -> None:
        """Imports of TensorFlow below the top level go where the module imports it anyway; others are problems."""
        at_top = False
        for statement in self.module.body:
            if statement in self.imports.collapsed:
                at_top = True
            elif isinstance(statement, cst.SimpleStatementLine):
                at_top |= any(imports_tensorflow(small) is not False for small in statement.body)
        seen = False
        for statement in self.module.body:
            if isinstance(statement, cst.SimpleStatementLine) or statement in self.imports.collapsed:
                seen = seen or not isinstance(statement, cst.SimpleStatementLine)
                if isinstance(statement, cst.SimpleStatementLine):
                    seen |= any(imports_tensorflow(small) is not False for small in statement.body)
                continue
            finder = _ImportLines()
            walk(statement, finder)
            for line, small, in_function in finder.found:
                alone = isinstance(line, cst.SimpleStatementLine) and all(
                    imports_tensorflow(other) is True for other in line.body
                )
                if alone and at_top and (seen or in_function):
                    assert line is not None
                    self._dropped.add(line)
                else:
                    message = "TensorFlow is imported inside a block or function: import it at the top of the file"
                    self.problems.append(Blocked("TFM209", small, message))

    def _import(self, node: cst.Import | cst.ImportFrom) -> None:
        """Imports of the file are put right by finish_imports."""

    def on_visit(self, node: Any) -> bool:
        if type(node) in OF_PUNCTUATION:
            return False
        if OF_LINES[type(node)]:
            if node in self.changes.moved:
                return False
            if self._carried:
                self._extra[node], self._carried = self._carried, []
            if self.changes.statements.get(node) == [] or self._is_removed(node):
                self._remark_on_summary(node)
                self._carried = [*self._extra.pop(node, ()), *node.leading_lines, *comment_lines(node, leading=False)]
                return False
            if node in self.imports.collapsed or node in self.changes.statements:
                return False
        elif self.changes.expressions and node in self.changes.expressions:
            return False
        return super().on_visit(node)

    def _is_removed(self, node: cst.CSTNode) -> bool:
        """Whether a statement only switched TensorFlow 2 behaviour on or off, or only gave TensorFlow another name."""
        if node in self._dropped:
            return True
        if type(node) is not cst.SimpleStatementLine or len(node.body) != 1:
            return False
        if isinstance(node.body[0], cst.Expr):
            value = node.body[0].value
            if isinstance(value, cst.Attribute):
                return self.imports.tensorflow(value) is not None  # `tf.metrics.precision` alone does nothing
            if summary_symbol(node.body[0], self.imports) in _SUMMARIES:
                return True
            return isinstance(value, cst.Call) and self.imports.resolve(value.func) in SWITCHES
        return False

    def _remark_on_summary(self, node: cst.SimpleStatementLine | cst.BaseCompoundStatement) -> None:
        if isinstance(node, cst.SimpleStatementLine) and isinstance(node.body[0], cst.Expr):
            if summary_symbol(node.body[0], self.imports) in _SUMMARIES:
                message = "the summary is dropped: Keras' TensorBoard callback writes loss and metrics"
                self.remarks.append(Blocked("TFM801", node, message))

    def on_leave(self, original_node, updated_node):  # type: ignore[no-untyped-def]
        changes = self.changes
        kind = type(original_node)
        if kind in OF_PUNCTUATION:
            return updated_node
        if not OF_LINES[kind]:
            if changes.expressions and original_node in changes.expressions:
                return changes.expressions[original_node]
            if changes.parameters and original_node in changes.parameters:
                return changes.parameters[original_node]
            new: Any = super().on_leave(original_node, updated_node)
            if self._carried and (kind is cst.IndentedBlock or kind is cst.Module):
                comments = [line for line in self._carried if line.comment is not None]
                self._carried = []
                new = new.with_changes(footer=[*comments, *new.footer])
            return new
        if original_node in changes.moved:
            return cst.RemoveFromParent()
        if original_node in changes.statements:
            if not changes.statements[original_node]:
                return cst.RemoveFromParent()
            new = _in_place_of(original_node, changes.statements[original_node])
        elif self._is_removed(original_node):
            return cst.RemoveFromParent()
        elif original_node in self.imports.collapsed:
            lines = [*_leading(original_node), *comment_lines(original_node, leading=False)]
            new = _import_tensorflow(self.module)
            new = new.with_changes(leading_lines=lines)
        else:
            new = super().on_leave(original_node, updated_node)
        if original_node in self._extra:
            new = _under(self._extra[original_node], new)
        if original_node is changes.helpers_before and original_node not in changes.within:
            return new if self.puts_before(original_node) else self.with_helpers(new)
        return new

    def values_of(self, name: str) -> list[cst.BaseExpression | None]:
        """What assignments give a name in the file; None for what binds it otherwise."""
        values: list[cst.BaseExpression | None] = [*values_given(self.module, name)]
        others = sum(one.name == name for one in read_bindings(self.module)) - len(values)
        return [*values, *[None] * others]

    def puts_before(self, node: cst.CSTNode | None) -> bool:
        """Whether further statements come before a statement, which helper functions have to stand above, too."""
        return False

    def with_helpers(
        self, anchor: cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement]
    ) -> cst.FlattenSentinel[cst.BaseStatement]:
        """The helper functions, two blank lines before each, and the statement that they stand before."""
        config = self.module.config_for_parsing
        rest = list(anchor) if isinstance(anchor, cst.FlattenSentinel) else [anchor]
        two = [cst.EmptyLine(indent=False), cst.EmptyLine(indent=False)]
        new: list[cst.BaseStatement] = []
        for text in self.changes.helpers:
            for statement in _definitions(text, config):
                new.append(statement.with_changes(leading_lines=two))
        comments = _leading(rest[0])
        while comments and comments[0].comment is None:
            comments.pop(0)
        return cst.FlattenSentinel([*new, rest[0].with_changes(leading_lines=[*two, *comments]), *rest[1:]])


@lru_cache(maxsize=256)
def _definitions(text: str, config: cst.PartialParserConfig) -> Sequence[cst.SimpleStatementLine | cst.BaseStatement]:
    """The statements of a text of ours. Most programs get the same ones, and nothing changes a tree."""
    return cst.parse_module(text, config=config).body


class _ImportLines(cst.CSTVisitor):
    """Imports of TensorFlow below a statement: the line that holds each, and whether that is in a function."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[cst.SimpleStatementLine | None, cst.BaseSmallStatement, bool]] = []
        self._line: cst.SimpleStatementLine | None = None
        self._depth = 0

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self._depth += 1

    def leave_FunctionDef(self, original_node: cst.FunctionDef) -> None:
        self._depth -= 1

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> None:
        self._line = node

    def leave_SimpleStatementLine(self, original_node: cst.SimpleStatementLine) -> None:
        self._line = None

    def visit_Import(self, node: cst.Import) -> None:
        self._small(node)

    def visit_ImportFrom(self, node: cst.ImportFrom) -> None:
        self._small(node)

    def _small(self, node: cst.Import | cst.ImportFrom) -> None:
        if imports_tensorflow(node) is not False:
            self.found.append((self._line, node, self._depth > 0))


def _under(
    lines: Sequence[cst.EmptyLine], node: cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement]
) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement]:
    """A statement under the comments (and, where it has no space of its own, the blank lines) of removed ones."""
    first, *rest = list(node) if isinstance(node, cst.FlattenSentinel) else [node]
    own = _leading(first)
    above = [line for line in lines if line.comment is not None] if own else list(lines)
    first = first.with_changes(leading_lines=[*above, *own])
    return cst.FlattenSentinel([first, *rest]) if rest else first


def _in_place_of(old: cst.CSTNode, new: list[cst.BaseStatement]) -> cst.FlattenSentinel[cst.BaseStatement]:
    """New statements with the comments and blank lines that stood over the old one."""
    first = new[0]
    if isinstance(old, (cst.SimpleStatementLine, cst.BaseCompoundStatement)) and isinstance(
        first, (cst.SimpleStatementLine, cst.BaseCompoundStatement)
    ):
        first = first.with_changes(leading_lines=[*old.leading_lines, *_own(first)])
    return cst.FlattenSentinel([first, *new[1:]])


def _own(node: cst.SimpleStatementLine | cst.BaseCompoundStatement) -> list[cst.EmptyLine]:
    return [line for line in node.leading_lines if line.comment is not None]


def insert_classes(module: cst.Module, classes: Mapping[str, str]) -> cst.Module:
    """The module with classes (name and text) before its first function or class, or the line that uses one."""
    if not classes:
        return module
    two = [cst.EmptyLine(indent=False), cst.EmptyLine(indent=False)]
    new: list[cst.BaseStatement | cst.SimpleStatementLine] = []
    for text in classes.values():
        for statement in _definitions(text, cst.PartialParserConfig()):  # own indentation: it takes the file's
            new.append(statement.with_changes(leading_lines=two))
    body = list(module.body)
    at = next(
        (
            i
            for i, s in enumerate(body)
            if isinstance(s, (cst.FunctionDef, cst.ClassDef)) or names_in(s) & classes.keys()
        ),
        len(body),
    )
    if at < len(body):
        lines = list(_leading(body[at]))
        while lines and lines[0].comment is None:
            lines.pop(0)
        body[at] = body[at].with_changes(leading_lines=[*two, *lines])
    return module.with_changes(body=[*body[:at], *new, *body[at:]])


def _future_first(
    body: Sequence[cst.SimpleStatementLine | cst.BaseCompoundStatement],
) -> list[cst.SimpleStatementLine | cst.BaseCompoundStatement]:
    """Statements with imports from `__future__` before strings that are no docstring: Python 3.8 wants them so."""
    strings = 0
    while strings < len(body) and is_docstring(body[strings]):
        strings += 1
    until = strings
    while until < len(body) and _is_of_future(body[until]):
        until += 1
    if strings < 2 or until == strings:
        return list(body)
    return [body[0], *body[strings:until], *body[1:strings], *body[until:]]


def _is_of_future(node: cst.CSTNode) -> bool:
    small = node.body[0] if isinstance(node, cst.SimpleStatementLine) else None
    return isinstance(small, cst.ImportFrom) and dotted(small.module) == "__future__"


def finish_imports(module: cst.Module, changes: FileChanges) -> cst.Module:
    """Leaves one `import tensorflow as tf`, and adds `os` and the choice of Keras where they are needed."""
    body: list[cst.BaseStatement] = []
    placed = False
    pending: list[cst.EmptyLine] = []
    for statement in _future_first(module.body):
        kept, is_tensorflow = _without_tensorflow(statement)
        if is_tensorflow and not placed:
            placed = True
            lines: list[cst.BaseStatement] = []
            if changes.keras is not None and changes.keras.choose:
                before = list(_leading(statement))
                for module_name in ("os", "importlib.util"):
                    _insert_import(body, module_name)
                reason = _ON_CLUSTER if changes.on_cluster else _ON_ONE_DEVICE
                text = (
                    'if importlib.util.find_spec("tf_keras"):\n'
                    f'{module.default_indent}os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")\n'
                )
                choice = cst.parse_module(text, config=module.config_for_parsing).body[0]
                if body and not any(line.comment is None for line in before):
                    before = [cst.EmptyLine(indent=False), *before]
                assert isinstance(choice, cst.If)
                lines.append(choice.with_changes(leading_lines=[*before, cst.EmptyLine(comment=cst.Comment(reason))]))
                lines.append(_import_tensorflow(module, statement if kept is None else None))
            else:
                line = _import_tensorflow(module, statement if kept is None else None)
                lines.append(line.with_changes(leading_lines=_leading(statement)))
            body.extend(lines)
            if kept is not None:
                body.append(kept)
            continue
        if kept is None:
            pending += [line for line in _leading(statement) if line.comment is not None]
            if isinstance(statement, cst.SimpleStatementLine):
                pending += comment_lines(statement, leading=False)
            continue
        if pending and isinstance(kept, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
            kept = kept.with_changes(leading_lines=[*pending, *kept.leading_lines])
            pending = []
        body.append(kept)
    if pending:
        module = module.with_changes(footer=[*pending, *module.footer])
    module = module.with_changes(body=body)
    for wanted in sorted(changes.needs):
        module = add_import(module, wanted)
    return module


def add_import(module: cst.Module, wanted: str) -> cst.Module:
    """The module with `import wanted`, if it has it not."""
    body: list[cst.BaseStatement] = list(module.body)
    _insert_import(body, wanted)
    return module.with_changes(body=body)


def choose_keras_2(module: cst.Module) -> cst.Module:
    """A file that imports TensorFlow with the lines that choose Keras 2 before; others as they are."""
    body: list[cst.BaseStatement] = list(module.body)
    at = next((i for i, statement in enumerate(body) if _without_tensorflow(statement)[1]), None)
    if at is None:
        return module
    following = body[at]
    before = list(_leading(following))
    above: list[cst.BaseStatement] = body[:at]
    rest: list[cst.BaseStatement] = [following.with_changes(leading_lines=[]), *body[at + 1 :]]
    for module_name in ("os", "importlib.util"):
        _insert_import(above, module_name)
    text = (
        'if importlib.util.find_spec("tf_keras"):\n'
        f'{module.default_indent}os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")\n'
    )
    choice = cst.parse_module(text, config=module.config_for_parsing).body[0]
    assert isinstance(choice, cst.If)
    if above and not any(line.comment is None for line in before):
        before = [cst.EmptyLine(indent=False), *before]
    lines = [*before, cst.EmptyLine(comment=cst.Comment(_ON_KERAS_2))]
    return module.with_changes(body=[*above, choice.with_changes(leading_lines=lines), *rest])


def _without_tensorflow(
    statement: cst.BaseStatement | cst.SimpleStatementLine,
) -> tuple[cst.BaseStatement | None, bool]:
    """A top-level statement without its imports of TensorFlow, and whether it had any."""
    if not isinstance(statement, cst.SimpleStatementLine):
        return statement, False
    kept: list[cst.BaseSmallStatement] = []
    found = False
    for small in statement.body:
        if isinstance(small, cst.Import):
            others = [a for a in small.names if not _is_of_tensorflow(dotted(a.name))]
            if len(others) != len(small.names):
                found = True
                if others:
                    last = others[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
                    kept.append(small.with_changes(names=[*others[:-1], last]))
                continue
        elif isinstance(small, cst.ImportFrom) and not small.relative:
            if _is_of_tensorflow(dotted(small.module)):
                found = True
                stays = _private(small)
                kept += [] if stays is None else [stays]
                continue
        kept.append(small)
    if not found:
        return statement, False
    return (statement.with_changes(body=kept, leading_lines=[]) if kept else None), True


def _is_of_tensorflow(module: str | None) -> bool:
    return canonical(module or "").partition(".")[0] in ("tf", "tensorflow_estimator")


def _private(line: cst.ImportFrom) -> cst.ImportFrom | None:
    """An import of private modules of TensorFlow's whose functions stay (TFM259), of which nothing else is left."""
    if isinstance(line.names, cst.ImportStar):
        return None
    names = [a for a in line.names if f"{dotted(line.module)}.{dotted(a.name)}" in _PRIVATE]
    if not names:
        return None
    return line.with_changes(names=[*names[:-1], names[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)])


def _import_tensorflow(module: cst.Module, instead_of: cst.BaseStatement | None = None) -> cst.SimpleStatementLine:
    """The one import, with the comment behind the one that it replaces."""
    line = cst.parse_module("import tensorflow as tf\n", config=module.config_for_parsing).body[0]
    assert isinstance(line, cst.SimpleStatementLine)
    if isinstance(instead_of, cst.SimpleStatementLine):
        line = line.with_changes(trailing_whitespace=instead_of.trailing_whitespace)
    return line


def _leading(statement: cst.BaseStatement) -> list[cst.EmptyLine]:
    if isinstance(statement, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
        return list(statement.leading_lines)
    return []


def _imports(body: list[cst.BaseStatement], name: str) -> bool:
    for statement in body:
        if isinstance(statement, cst.SimpleStatementLine):
            for small in statement.body:
                if isinstance(small, cst.Import) and any(
                    dotted(a.name) == name and a.asname is None for a in small.names
                ):
                    return True
    return False


def _insert_import(body: list[cst.BaseStatement], wanted: str) -> None:
    """Adds `import wanted` after the docstring and __future__ imports, among the plain imports of standard modules.

    A module that is not standard goes just before TensorFlow and what chooses its Keras.
    """
    if _imports(body, wanted):
        return
    if wanted.partition(".")[0] not in _STANDARD:
        _insert_before_tensorflow(body, wanted)
        return
    at = 0
    for index, statement in enumerate(body):
        if isinstance(statement, cst.SimpleStatementLine):
            small = statement.body[0]
            if (
                isinstance(small, cst.Expr)
                and isinstance(small.value, (cst.SimpleString, cst.ConcatenatedString))
                and index == 0
            ):
                at = 1
                continue
            if isinstance(small, cst.ImportFrom) and dotted(small.module) == "__future__":
                at = index + 1
                continue
            if isinstance(small, cst.Import):
                name = dotted(small.names[0].name) or ""
                if name < wanted and name.partition(".")[0] in _STANDARD:
                    at = index + 1
                    continue
        break
    parsed = cst.parse_module(f"import {wanted}\n").body[0]
    assert isinstance(parsed, cst.SimpleStatementLine)
    line = parsed
    if at < len(body):
        following = body[at]
        above = body[at - 1] if at > 0 else None
        if isinstance(above, cst.SimpleStatementLine) and _is_import(above):
            body.insert(at, line)
            return
        line = line.with_changes(leading_lines=_leading(following))
        if isinstance(following, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
            next_one = following.body[0] if isinstance(following, cst.SimpleStatementLine) else None
            imports_standard = isinstance(next_one, (cst.Import, cst.ImportFrom)) and _root(next_one) in _STANDARD
            gap = [] if imports_standard else [cst.EmptyLine(indent=False)]
            body[at] = following.with_changes(leading_lines=gap)
    body.insert(at, line)


def _insert_before_tensorflow(body: list[cst.BaseStatement], wanted: str) -> None:
    for index, statement in enumerate(body):
        first = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
        chooses = isinstance(statement, cst.If) and "tf_keras" in cst.Module([]).code_for_node(statement.test)
        if chooses or (isinstance(first, (cst.Import, cst.ImportFrom)) and _root(first) == "tensorflow"):
            above = body[index - 1] if index else None
            follows = isinstance(above, cst.SimpleStatementLine) and _is_import(above)
            third_party = follows and _root(above.body[0]) not in _STANDARD  # type: ignore[union-attr]
            gap = [] if third_party or not chooses else [cst.EmptyLine(indent=False)]
            line = cst.parse_module(f"import {wanted}\n").body[0]
            assert isinstance(line, cst.SimpleStatementLine)
            body.insert(index, line.with_changes(leading_lines=gap))
            return
    _insert_among_imports(body, wanted)


def _insert_among_imports(body: list[cst.BaseStatement], wanted: str) -> None:
    """Adds an import to a file that has TensorFlow from an `import *`: before the first import that is not standard."""
    for index, statement in enumerate(body):
        if isinstance(statement, cst.SimpleStatementLine) and _is_import(statement):
            first = statement.body[0]
            earlier = isinstance(first, cst.Import) and (dotted(first.names[0].name) or "") < wanted
            if _root(first) not in (*_STANDARD, "__future__") and not earlier:
                line = cst.parse_module(f"import {wanted}\n").body[0]
                assert isinstance(line, cst.SimpleStatementLine)
                body[index] = statement.with_changes(leading_lines=[])
                body.insert(index, line.with_changes(leading_lines=_leading(statement)))
                return


def _is_import(statement: cst.SimpleStatementLine) -> bool:
    return isinstance(statement.body[0], (cst.Import, cst.ImportFrom))


def _root(small: cst.BaseSmallStatement) -> str:
    if isinstance(small, cst.Import):
        return (dotted(small.names[0].name) or "").partition(".")[0]
    if isinstance(small, cst.ImportFrom):
        return (dotted(small.module) or "").partition(".")[0]
    return ""


_STANDARD = frozenset(STANDARD_MODULES)
