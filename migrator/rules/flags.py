"""Flags that a script reads before `tf.app.run`: TensorFlow 1 parsed the command line then, absl does not."""

from __future__ import annotations

import libcst as cst

from migrator.findings import Severity
from migrator.names.imports import ImportMap
from migrator.rules.rule import Rule
from migrator.walking import walk

RULES = (
    Rule(
        "TFM856",
        "flags read before the program runs",
        Severity.REVIEW,
        """
`tf.app.flags` parsed the command line when a flag was read for the first time, absl wants it parsed before. Where a
script reads a flag outside of its functions, `FLAGS(sys.argv)` is put before that line; `absl.app.run` may parse the
same command line again. A function that such a line calls, or that is called before `absl.app.run`, may need it too.
""",
    ),
)

_MODULES = ("tf.flags", "tf.app.flags")
_FLAGS = ("tf.flags.FLAGS", "tf.app.flags.FLAGS")


def first_read(module: cst.Module, imports: ImportMap) -> tuple[str, cst.BaseStatement] | None:
    """The name of the flags, and the statement that reads one when the script is loaded; None where none does."""
    finder = _Reads(imports)
    walk(module, finder)
    return finder.found


class _Reads(cst.CSTVisitor):
    def __init__(self, imports: ImportMap) -> None:
        super().__init__()
        self.imports = imports
        self.names: set[str] = set()
        self.modules: set[str] = set()
        self.found: tuple[str, cst.BaseStatement] | None = None
        self.parsed = False
        self._around: list[cst.BaseStatement] = []
        self._body: list[frozenset[cst.CSTNode]] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        if self.found is not None or self.parsed:
            return False
        if isinstance(node, (cst.Module, cst.IndentedBlock)):
            self._body.append(frozenset(node.body))
        elif self._body and node in self._body[-1] and isinstance(node, cst.BaseStatement):
            self._around.append(node)
        return super().on_visit(node)

    def on_leave(self, original_node: cst.CSTNode) -> None:
        super().on_leave(original_node)
        if isinstance(original_node, (cst.Module, cst.IndentedBlock)) and self._body:
            self._body.pop()
        elif self._around and self._around[-1] is original_node:
            self._around.pop()

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return False

    def visit_ClassDef(self, node: cst.ClassDef) -> bool:
        return False

    def visit_Lambda(self, node: cst.Lambda) -> bool:
        return False

    def visit_Assign(self, node: cst.Assign) -> None:
        targets = {t.target.value for t in node.targets if isinstance(t.target, cst.Name)}
        name, value = self.imports.resolve(node.value), node.value
        if name in _MODULES:
            self.modules |= targets
        if isinstance(value, cst.Attribute) and value.attr.value == "FLAGS" and isinstance(value.value, cst.Name):
            name = "tf.flags.FLAGS" if value.value.value in self.modules else name
        if name in _FLAGS:
            self.names |= targets

    def visit_Call(self, node: cst.Call) -> None:
        name = self.imports.resolve(node.func) or ""
        own = isinstance(node.func, cst.Name) and node.func.value in self.names
        # Behind these lines the flags are parsed.
        self.parsed = self.parsed or own or name == "tf.app.run"

    def visit_Attribute(self, node: cst.Attribute) -> None:
        if isinstance(node.value, cst.Name) and node.value.value in self.names and self._around and not self.parsed:
            self.found = node.value.value, self._around[-1]
