"""The import map of one file: which local name stands for which module or symbol.

Every spelling of TensorFlow 1 ends in the same canonical form `tf.X`: plain `import tensorflow as tf`,
`tensorflow.compat.v1 as tf`, `tf.compat.v1.X`, `tf1.X`, `from tensorflow import estimator`, and module-level
assignments such as `layers = tf.layers`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import libcst as cst

from migrator.names.bare import says
from migrator.names.bindings import Binding, dotted, read_bindings
from migrator.names.compat import written_for_two
from migrator.names.spelling import canonical
from migrator.names.symbols import MODE_KEYS, home
from migrator.walking import names_below, of_kinds, walk

__all__ = ["SWITCHES", "ImportMap", "canonical", "dotted", "imports_tensorflow", "missing_file", "read_imports"]

SWITCHES = (
    "tf.disable_v2_behavior",
    "tf.disable_eager_execution",
    "tf.enable_v2_behavior",
    "tf.enable_eager_execution",
    "tf.disable_v2_tensorshape",
    "tf.enable_resource_variables",
)
_FLAGS = ("tf.flags", "tf.app.flags")
# What `from tensorflow import *` certainly gives a program; enough to see that it is one, and to refuse it.
_STAR_NAMES = ("estimator", "contrib", "layers", "losses", "train")


def missing_file(imports: ImportMap, node: cst.BaseExpression) -> str:
    """What to tell about `module.name`, or an imported name, whose module is not among the files (empty: nothing)."""
    module = (imports.resolve(node) or "").rpartition(".")[0]
    if not module or _is_tensorflow(canonical(module)):
        return ""
    return f": pass `{module.replace('.', '/')}.py` to tf-migrate as well"


def _is_tensorflow(name: str | None) -> bool:
    return name is not None and (name == "tf" or name.startswith("tf."))


@dataclass(frozen=True)
class ImportMap:
    """Local name -> dotted name that it was imported from (`np` -> `numpy`, `tf` -> `tensorflow`).

    `stars` are the modules of `from module import *` (also in `names`, as `*module`). `alias_lines` are module-level
    assignments that only give a TensorFlow name another name, `collapsed` the top-level statements that only choose
    between imports of TensorFlow. `problems` are bindings that make the map uncertain. `mentions_v1` says that the file
    speaks of `compat.v1`, so that a plain `tf.X` in it may mean TensorFlow 2, `for_two` that it means nothing else.
    """

    names: dict[str, str]
    relative: dict[str, tuple[int, str]]
    stars: tuple[str, ...] = ()
    star_names: set[str] = field(default_factory=set)
    alias_lines: frozenset[cst.CSTNode] = frozenset()
    collapsed: frozenset[cst.CSTNode] = frozenset()
    problems: list[tuple[cst.CSTNode, str]] = field(default_factory=list)
    nodes: dict[str, cst.CSTNode] = field(default_factory=dict)
    mentions_v1: bool = False
    for_two: bool = False

    def resolve(self, node: cst.BaseExpression | None) -> str | None:
        """The canonical dotted name of an expression, when its first part was imported; else None."""
        name = dotted(node)
        if name is None:
            return None
        head, _, rest = name.partition(".")
        origin = self.names.get(head)
        if origin is None:
            return None
        return canonical(f"{origin}.{rest}" if rest else origin)

    def is_compat(self, node: cst.BaseExpression | None) -> bool:
        """Whether a name is spelled as one of `tf.compat.v1`."""
        head, _, rest = (dotted(node) or "").partition(".")
        return ".compat.v1" in f"{self.names.get(head, '')}.{rest}"

    def may_be_two(self, node: cst.BaseExpression) -> bool:
        """Whether a name may already mean TensorFlow 2: it is spelled plainly in a file that also says compat.v1."""
        head, _, rest = (dotted(node) or "").partition(".")
        return self.mentions_v1 and "compat.v1" not in f"{self.names.get(head, '')}.{rest}"

    def means_two(self, node: cst.BaseExpression) -> bool:
        """Whether a name of what only TensorFlow 2 has so means that: `tensorflow.compat.v1` is imported as well."""
        origins = self.names.values()
        both = "tensorflow" in origins and "tensorflow.compat.v1" in origins
        return (both or self.for_two) and self._is_plain(node)

    def is_of_two(self, node: cst.BaseExpression) -> bool:
        """Whether a name that both versions have means that of TensorFlow 2, where alone the file runs."""
        return self.for_two and self._is_plain(node)

    def _is_plain(self, node: cst.BaseExpression) -> bool:
        head = (dotted(node) or "").partition(".")[0]
        return self.names.get(head) == "tensorflow" and self.may_be_two(node)

    def tensorflow(self, node: cst.BaseExpression | None) -> str | None:
        """Like resolve, but only for TensorFlow symbols (`tf` or `tf.X`)."""
        name = self.resolve(node)
        return name if _is_tensorflow(name) else None

    def symbols_in(self, node: cst.CSTNode) -> list[str]:
        """The TensorFlow symbols that names and dotted names below a node stand for, the longest of each."""
        found: list[str] = []
        inside: set[cst.CSTNode] = set()
        for one in (*of_kinds(node, cst.Attribute), *names_below(node)):
            name = None if one in inside else self.tensorflow(one)
            if isinstance(one, cst.Attribute) and (name is not None or one in inside):
                inside.add(one.value)
            if name is not None:
                found.append(name)
        return found


def imports_tensorflow(small: cst.BaseSmallStatement) -> bool | None:
    """Whether a statement imports only TensorFlow (True), not at all (False), or among others (None)."""
    if isinstance(small, cst.ImportFrom):
        return not small.relative and _is_tensorflow(canonical(dotted(small.module) or ""))
    if isinstance(small, cst.Import):
        found = [_is_tensorflow(canonical(dotted(alias.name) or "")) for alias in small.names]
        return all(found) or (None if any(found) else False)
    return False


def read_imports(module: cst.Module, text: str = "") -> ImportMap:
    """Collects the imports anywhere in a module (function bodies included) and the aliases at its top level.

    `text` is that of the file.
    """
    found = _Reader(module).read()
    if not says(text, "compat.v1"):
        return found
    heads = {name for name, origin in found.names.items() if origin == "tensorflow"}
    compat_heads = {name for name, origin in found.names.items() if origin == "tensorflow.compat.v1"}
    return replace(found, mentions_v1=True, for_two=written_for_two(text, heads, compat_heads))


class _Reader:
    def __init__(self, module: cst.Module) -> None:
        self.module = module
        self.bindings = read_bindings(module)
        self.names: dict[str, str] = {}
        self.problems: list[tuple[cst.CSTNode, str]] = []
        self.alias_lines: set[cst.CSTNode] = set()
        self.explained: set[cst.CSTNode] = set()  # assignments that only rename TensorFlow

    def read(self) -> ImportMap:
        relative: dict[str, tuple[int, str]] = {}
        for binding in self.bindings:
            if binding.origin is not None:
                self.names[binding.name] = binding.origin
                if binding.level:
                    relative[binding.name] = (binding.level, binding.origin)
        stars = self._stars()
        collapsed = {statement for statement in self.module.body if self._only_chooses(statement)}
        for statement in self.module.body:
            if isinstance(statement, cst.SimpleStatementLine):
                for small in statement.body:
                    self._alias(statement, small)
            else:
                self._local_aliases(statement)
        self._check()
        nodes = {b.name: b.node for b in self.bindings if b.origin is not None}
        return ImportMap(
            self.names, relative, stars, set(), frozenset(self.alias_lines), frozenset(collapsed), self.problems, nodes
        )

    def _resolve(self, node: cst.BaseExpression | None) -> str | None:
        return ImportMap(self.names, {}).tensorflow(node)

    def _of(self, name: str) -> list[Binding]:
        return [b for b in self.bindings if b.name == name]

    def _stars(self) -> tuple[str, ...]:
        stars: list[str] = []
        for node in of_kinds(self.module, cst.ImportFrom):
            if not isinstance(node.names, cst.ImportStar):
                continue
            origin = dotted(node.module) or ""
            if imports_tensorflow(node):
                self.problems.append((node, "`import *` from TensorFlow: import it as `tf`"))
                if canonical(origin) == "tf":
                    for name in _STAR_NAMES:
                        if not self._of(name):
                            self.names[name] = f"tensorflow.{name}"
            elif origin:
                stars.append(origin)
                self.names[f"*{origin}"] = origin
        return tuple(dict.fromkeys(stars))

    def _only_chooses(self, statement: cst.CSTNode) -> bool:
        """Whether a top-level try or version test only decides how TensorFlow is imported."""
        blocks: list[cst.BaseSuite] = []
        if isinstance(statement, cst.Try):
            blocks = [statement.body, *(one.body for one in statement.handlers if not _ends_program(one))]
            blocks += [part.body for part in (statement.orelse, statement.finalbody) if part is not None]
        elif isinstance(statement, cst.If):
            branch: cst.If | cst.Else | None = statement
            while branch is not None:
                blocks.append(branch.body)
                if isinstance(branch, cst.If):
                    if not self._asks_version(branch.test):
                        return False
                    branch = branch.orelse
                else:
                    branch = None
        smalls = [small for block in blocks for small in _smalls(block)]
        if not smalls or not all(self._is_choice(small) for small in smalls):
            return False
        self.explained.update(small for small in smalls if isinstance(small, cst.Assign))
        return True

    def _asks_version(self, test: cst.BaseExpression) -> bool:
        versions = ("tf.__version__", "tf.VERSION", "tf.version.VERSION")
        return any(self._resolve(node) in versions for node in of_kinds(test, cst.Attribute))

    def _is_choice(self, small: cst.BaseSmallStatement | None) -> bool:
        if isinstance(small, (cst.Import, cst.ImportFrom)):
            return imports_tensorflow(small) is True
        if isinstance(small, cst.Expr) and isinstance(small.value, cst.Call):
            return self._resolve(small.value.func) in SWITCHES
        if isinstance(small, cst.Assign):
            target = small.targets[0].target
            return len(small.targets) == 1 and isinstance(target, cst.Name) and self._resolve(small.value) == "tf"
        return isinstance(small, cst.Pass)

    def _alias(self, line: cst.SimpleStatementLine, small: cst.BaseSmallStatement) -> None:
        """Follows `name = tf.something` when the name stands for nothing else."""
        if not isinstance(small, cst.Assign) or len(small.targets) != 1:
            return
        target, origin = small.targets[0].target, self._resolve(small.value)
        if not isinstance(target, cst.Name) or origin is None or origin.startswith(_FLAGS):
            return
        if not self._has_no_value(origin):
            return  # it lives on, and may keep its name
        others = [b for b in self._of(target.value) if b.node is not small]
        sure = all(self._same(b, origin) for b in others) and len(line.body) == 1
        if sure:
            self.names[target.value] = origin
            self.alias_lines.add(line)
            self.explained.add(small)
        elif origin not in MODE_KEYS:
            self.explained.add(small)
            self.problems.append((small, f"`{target.value}` is bound to `{origin}`, and to something else as well"))

    def _has_no_value(self, origin: str) -> bool:
        """Whether a name of TensorFlow 1 is none of TensorFlow 2, or means something else there."""
        found = home(origin)
        return found is None or found.signature is not None

    def _local_aliases(self, statement: cst.CSTNode) -> None:
        """Follows `layers = tf.keras.layers` inside a function, where the file gives the name no other meaning."""
        finder = _AliasLines()
        walk(statement, finder)
        for line, small, name in finder.found:
            origin = self._resolve(small.value)
            if origin is None or len(self._of(name)) != 1 or not self._has_no_value(origin):
                continue
            self.names[name] = origin
            self.alias_lines.add(line)
            self.explained.add(small)

    def _same(self, binding: Binding, origin: str) -> bool:
        """Whether a binding gives the name the meaning `origin` as well."""
        if binding.origin is not None:
            return canonical(binding.origin) == origin
        node = binding.node
        return isinstance(node, cst.Assign) and len(node.targets) == 1 and self._resolve(node.value) == origin

    def _check(self) -> None:
        """Names of TensorFlow, and `tf` above all, must not stand for anything else anywhere in the file."""
        meanings: dict[str, str] = {}
        for name, origin in self.names.items():
            if _is_tensorflow(canonical(origin)):
                meanings[name] = canonical(origin)
        if not meanings and not any(_is_tensorflow(canonical(b.origin or "")) for b in self.bindings):
            return
        for binding in self.bindings:
            if binding.origin is not None and _is_tensorflow(canonical(binding.origin)):
                meanings.setdefault(binding.name, canonical(binding.origin))
        meanings["tf"] = "tf"
        for binding in self.bindings:
            meaning = meanings.get(binding.name)
            if meaning is None or binding.node in self.explained:
                continue
            if binding.origin is None or canonical(binding.origin) != meaning:
                other = "TensorFlow" if meaning == "tf" else f"`{meaning}`"
                self.problems.append((binding.node, f"`{binding.name}` is something other than {other} here"))


_EXITS = ("exit", "quit", "sys.exit", "os._exit")


def _ends_program(handler: cst.ExceptHandler) -> bool:
    """Whether a program that cannot import something only says so and ends."""
    *told, last = list(_smalls(handler.body)) or [None]
    exits = isinstance(last, cst.Expr) and isinstance(last.value, cst.Call) and dotted(last.value.func) in _EXITS
    tells = [one.value for one in told if isinstance(one, cst.Expr) and isinstance(one.value, cst.Call)]
    only_tells = len(tells) == len(told) and all(dotted(one.func) == "print" for one in tells)
    return (isinstance(last, cst.Raise) or exits) and only_tells


def _smalls(block: cst.BaseSuite) -> Iterable[cst.BaseSmallStatement | None]:
    """The small statements of a block; None for a compound one."""
    if isinstance(block, cst.SimpleStatementSuite):
        yield from block.body
        return
    lines: Sequence[cst.BaseStatement | cst.BaseSmallStatement] = block.body
    for line in lines:
        if isinstance(line, cst.SimpleStatementLine):
            yield from line.body
        else:
            yield None


class _AliasLines(cst.CSTVisitor):
    """Lines that are `name = a.b`, and nothing else, directly in the body of a function that has others."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[cst.SimpleStatementLine, cst.Assign, str]] = []

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        lines = node.body.body if isinstance(node.body, cst.IndentedBlock) else ()
        for line in lines if len(lines) > 1 else ():
            small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
            target = small.targets[0].target if isinstance(small, cst.Assign) and len(small.targets) == 1 else None
            if (
                isinstance(target, cst.Name)
                and isinstance(small, cst.Assign)
                and isinstance(small.value, cst.Attribute)
            ):
                assert isinstance(line, cst.SimpleStatementLine)
                self.found.append((line, small, target.value))
