"""Functions that run a graph of their own beside the training, such as benchmarks of a frozen graph."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import libcst as cst

from migrator.names.bindings import Binding, changes_in, dotted
from migrator.program.calls import calls_in, string
from migrator.program.parsed import ParsedFile, Project
from migrator.program.scopes import path_to
from migrator.walking import walk

_SESSION = "tf.Session"
#: What does the same wherever it stands, with the default graph of TensorFlow 1 and without one.
ANYWHERE = (
    *("tf.Graph", "tf.GraphDef", "tf.ConfigProto", "tf.GPUOptions", "tf.GraphOptions", "tf.OptimizerOptions"),
    *("tf.RunOptions", "tf.RunMetadata", "tf.logging", "tf.gfile", "tf.io.gfile", "tf.core.framework"),
    *("tf.core.protobuf", "tf.flags", "tf.app.flags"),
)
#: Libraries whose functions for TensorFlow 1 are gone, or make operations in the default graph.
_ON_GRAPHS = ("tensorflow", "keras", "tf_keras", "tf_slim", "tensor2tensor", "bert")
_TELLING = ("tf.logging", "tf.flags", "tf.app.flags")
#: What puts operations into the default graph, which the function has to name.
_INTO_GRAPH = ("tf.import_graph_def", "tf.graph_util.import_graph_def", "tf.placeholder")


def runs_own_graph(project: Project, file: ParsedFile, function: cst.FunctionDef) -> bool:
    """Whether a function does all that it does with TensorFlow in sessions of graphs that it makes itself.

    Such code means the same in TensorFlow 2 when its symbols are spelled `tf.compat.v1.X`.
    """
    reader = _Reader(file, _graphs(file, function))
    walk(function.body, reader)
    return (
        reader.sessions > 0
        and not reader.other
        and all(_only_tells(*known) for call in calls_in(function.body) if (known := project.function(file, call.func)))
    )


def asks_imported_graph(file: ParsedFile, call: cst.Call) -> bool:
    """Whether a call (`tf.get_default_graph()`) is asked for a tensor by its name in a function that imports a graph.

    The names are those of the imported graph (`name=""`), and the same in the graph that `tf.function` makes.
    """
    around = path_to(file.module, call)
    above = around[-2] if len(around) > 1 else None
    if not isinstance(above, cst.Attribute) or above.attr.value != "get_tensor_by_name":
        return False
    function = next((node for node in reversed(around) if isinstance(node, cst.FunctionDef)), None)
    calls = calls_in(function.body) if function is not None else []
    return any(file.imports.tensorflow(one.func) in _INTO_GRAPH and _has_no_prefix(one) for one in calls)


def _has_no_prefix(call: cst.Call) -> bool:
    return any(arg.keyword is not None and arg.keyword.value == "name" and string(arg.value) == "" for arg in call.args)


def _graphs(file: ParsedFile, function: cst.FunctionDef) -> set[str]:
    """The names that a function gives nothing but new graphs."""
    known = [(dotted(b.target) if b.target is not None else None, b) for b in changes_in(function)]
    made = {name for name, binding in known if name is not None and _is_graph(file, _given(binding))}
    return made - {name for name, binding in known if name is not None and not _is_graph(file, _given(binding))}


def _given(binding: Binding) -> cst.BaseExpression | None:
    """What a name is given: by an assignment, or by a `with` statement."""
    return binding.node.item if isinstance(binding.node, cst.WithItem) else binding.value


def _is_graph(file: ParsedFile, node: cst.BaseExpression | None) -> bool:
    """Whether an expression is `tf.Graph()` or `tf.Graph().as_default()`."""
    if not isinstance(node, cst.Call):
        return False
    if isinstance(node.func, cst.Attribute) and node.func.attr.value == "as_default":
        return _is_graph(file, node.func.value)
    return file.imports.tensorflow(node.func) == "tf.Graph"


def _only_tells(file: ParsedFile, function: cst.FunctionDef) -> bool:
    """Whether a function has nothing to do with TensorFlow but logs and flags."""
    reader = _Reader(file, ())
    walk(function, reader)
    return not reader.other and all(name.startswith(_TELLING) for name in reader.named)


@dataclass
class _Reader(cst.CSTVisitor):
    """The symbols of TensorFlow, and whether all that needs a graph names one of `graphs`."""

    file: ParsedFile
    graphs: Collection[str]
    sessions: int = 0
    other: list[cst.CSTNode] = field(default_factory=list)
    named: list[str] = field(default_factory=list)
    _inside: int = 0
    _good: set[cst.CSTNode] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def visit_With(self, node: cst.With) -> bool:
        for item in node.items:
            walk(item, self)
        own = any(self._is_default(item.item) or _is_graph(self.file, item.item) for item in node.items)
        self._inside += own
        walk(node.body, self)
        self._inside -= own
        return False

    def _is_default(self, item: cst.BaseExpression) -> bool:
        name = dotted(item.func) if isinstance(item, cst.Call) else None
        return name is not None and name.removesuffix(".as_default") in self.graphs and name.endswith(".as_default")

    def visit_Call(self, node: cst.Call) -> None:
        name = self.file.imports.tensorflow(node.func)
        if name == _SESSION and (self._inside or any(self._gives_graph(arg) for arg in node.args)):
            self.sessions += 1
            self._good.add(node.func)

    def _gives_graph(self, arg: cst.Arg) -> bool:
        given = arg.keyword is not None and arg.keyword.value == "graph"
        return given and isinstance(arg.value, cst.Name) and arg.value.value in self.graphs

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        if self._read(node):
            return False
        walk(node.value, self)
        return False

    def visit_Name(self, node: cst.Name) -> None:
        self._read(node)

    def _read(self, node: cst.Attribute | cst.Name) -> bool:
        name = self.file.imports.tensorflow(node)
        if name is None:
            if (self.file.imports.resolve(node) or "").startswith(_ON_GRAPHS):
                self.other.append(node)
            return False
        self.named.append(name)
        allowed = node in self._good or (self._inside and name in _INTO_GRAPH)
        if not allowed and not any(name == one or name.startswith(f"{one}.") for one in ANYWHERE):
            self.other.append(node)
        return True


__all__ = ["ANYWHERE", "asks_imported_graph", "runs_own_graph"]
