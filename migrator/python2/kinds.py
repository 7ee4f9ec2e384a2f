"""Which expressions of a file are whole numbers for certain, and which are not: what Python 2 made of `a / b`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from migrator.names.references import Binding, Names, Scope, read_names
from migrator.python2.signs import dotted


class Kind(Enum):
    """What an expression is, in every run. `UNTOLD` is that of a name while it is being found out."""

    WHOLE = "a whole number, or an array of such"
    FLOAT = "a number with a fraction, or an array or tensor of such"
    UNKNOWN = "anything"
    UNTOLD = "nothing yet"


_BOXES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.Module)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_WHOLE_CALLS = frozenset(
    (
        *("len", "int", "ord", "hash", "id", "bool", "string.atoi", "string.atol"),
        *("os.getpid", "os.path.getsize", "random.randint", "random.randrange", "multiprocessing.cpu_count"),
        *("numpy.random.randint", "numpy.int32", "numpy.int64", "numpy.argmax", "numpy.argmin", "numpy.size"),
        *("numpy.ndim", "numpy.int8", "numpy.int16", "numpy.uint8", "numpy.uint16", "numpy.uint32"),
        *("math.factorial", "sys.getsizeof", "numpy.argsort", "tensorflow.size", "tensorflow.rank"),
    )
)
_FLOAT_CALLS = frozenset(
    (
        *("float", "round", "time.time", "time.clock", "time.perf_counter", "random.random", "random.uniform"),
        *("random.gauss", "numpy.sqrt", "numpy.exp", "numpy.log", "numpy.log2", "numpy.log10", "numpy.mean"),
        *("numpy.std", "numpy.var", "numpy.median", "numpy.average", "numpy.sin", "numpy.cos", "numpy.tan"),
        *("numpy.tanh", "numpy.arctan", "numpy.arctan2", "numpy.linspace", "numpy.float32", "numpy.float64"),
        *("numpy.float", "numpy.float16", "numpy.linalg.norm", "numpy.floor", "numpy.ceil", "numpy.hypot"),
        *("numpy.random.rand", "numpy.random.randn", "numpy.random.random", "numpy.random.normal"),
        *("numpy.random.uniform", "numpy.random.random_sample", "numpy.sinh", "numpy.cosh"),
        *("tensorflow.sqrt", "tensorflow.exp", "tensorflow.log", "tensorflow.sigmoid", "tensorflow.tanh"),
        *("tensorflow.to_float", "tensorflow.random_normal", "tensorflow.truncated_normal", "tensorflow.rsqrt"),
        *("tensorflow.nn.l2_loss", "tensorflow.norm", "tensorflow.lgamma"),
    )
)
#: Of floats, unless they are told another type.
_MADE = frozenset(("numpy.zeros", "numpy.ones", "numpy.empty", "tensorflow.zeros", "tensorflow.ones"))
_FLOAT_METHODS = frozenset(("mean", "std", "var", "total_seconds"))
_WHOLE_METHODS = frozenset(("argmax", "argmin", "num_elements"))
_WHOLE_ATTRIBUTES = frozenset(("ndim",))
_FLOAT_TYPE = re.compile(r"\bfloat(?:16|32|64)?_?\b|\bdouble\b")
_WHOLE_TYPE = re.compile(r"\bu?int(?:8|16|32|64)?_?\b|\blong\b")
_ONE_OF = {"abs", "max", "min", "tensorflow.abs", "tensorflow.maximum", "tensorflow.minimum", "numpy.abs"}
_SHAPES = frozenset(("shape", "get_shape", "as_list", "static_shape"))
_FLAG = re.compile(r"(?:^|\.)(?:DEFINE|define)_(integer|float)$")


def flags_of(trees: Iterable[ast.Module]) -> dict[str, Kind]:
    """What the flags of a project are, by their names: those of tf.flags and of argparse."""
    found: dict[str, set[Kind]] = {}
    for tree in trees:
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not node.args or not isinstance(node.args[0], ast.Constant):
                continue
            kind = None
            called = dotted(node.func) if isinstance(node.func, (ast.Name, ast.Attribute)) else ""
            if (match := _FLAG.search(called)) is not None:
                kind = Kind.WHOLE if match[1] == "integer" else Kind.FLOAT
            elif isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument":
                types = [dotted(word.value) for word in node.keywords if word.arg == "type"]
                kind = {"int": Kind.WHOLE, "float": Kind.FLOAT}.get(types[0] if types else "", Kind.UNKNOWN)
            if kind is not None:
                words = [one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
                longest = max(words, key=len, default="") if called.endswith("add_argument") else words[:1]
                name = (longest if isinstance(longest, str) else "".join(longest)).lstrip("-").replace("-", "_")
                found.setdefault(name, set()).add(kind)
    return {name: kinds.pop() for name, kinds in found.items() if len(kinds) == 1}


@dataclass(eq=False)
class Kinds:
    """Answers of one file."""

    tree: ast.Module
    everywhere: Everywhere
    path: Path
    stem: str
    """What other files import it by."""

    def __post_init__(self) -> None:
        self.names: Names = read_names(self.tree)
        self.parents = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}
        self.scopes: dict[ast.AST, Scope] = {self.tree: self.names.module}
        for binding in self.names.bindings:
            if binding.scope is not None:
                self.scopes[binding.scope.node] = binding.scope
        self.origins = {reference.nodes[-1]: reference.origin for reference in self.names.references}
        self.uses: dict[str, list[ast.Name]] = {}
        self.attributes: dict[str, list[ast.Attribute]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self.uses.setdefault(node.id, []).append(node)
            elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
                self.attributes.setdefault(node.attr, []).append(node)
        self.known: dict[object, Kind] = {}

    def of(self, node: ast.expr) -> Kind:
        """The kind of an expression."""
        if node in self.known:
            return self.known[node]
        if isinstance(node, (ast.Name, ast.Attribute, ast.Call)):
            self.known[node] = Kind.UNTOLD
            kind = self._of(node)
            self.known[node] = kind
            if kind is Kind.UNTOLD:
                del self.known[node]
            return kind
        return self._of(node)

    def _of(self, node: ast.expr) -> Kind:
        if isinstance(node, ast.Constant):
            if isinstance(node.value, int):
                return Kind.WHOLE
            return Kind.FLOAT if isinstance(node.value, (float, complex)) else Kind.UNKNOWN
        if isinstance(node, ast.UnaryOp):
            return Kind.WHOLE if isinstance(node.op, ast.Not) else self.of(node.operand)
        if isinstance(node, ast.BinOp):
            return self._computed(node)
        if isinstance(node, ast.IfExp):
            return joined((self.of(node.body), self.of(node.orelse)))
        if isinstance(node, ast.Compare) and all(isinstance(side, ast.Constant) for side in node.comparators):
            return Kind.UNKNOWN
        if isinstance(node, ast.Call):
            return self._called(node)
        if isinstance(node, ast.Subscript):
            return self._item(node)
        if isinstance(node, ast.Attribute):
            return self._attribute(node)
        if isinstance(node, ast.Name):
            return self._named(node)
        return Kind.UNKNOWN

    def _computed(self, node: ast.BinOp) -> Kind:
        left, right = self.of(node.left), self.of(node.right)
        if (
            isinstance(node.op, ast.Mod)
            and isinstance(node.left, (ast.Constant, ast.JoinedStr))
            and (not isinstance(node.left, ast.Constant) or isinstance(node.left.value, str))
        ):
            return Kind.UNKNOWN
        if isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod)):
            if Kind.FLOAT in (left, right):
                return Kind.FLOAT
            return joined((left, right))
        if isinstance(node.op, ast.Pow):
            if Kind.FLOAT in (left, right):
                return Kind.FLOAT
            positive = isinstance(node.right, ast.Constant) and isinstance(node.right.value, int)
            return left if positive else Kind.UNKNOWN
        if isinstance(node.op, (ast.LShift, ast.RShift, ast.BitAnd, ast.BitOr, ast.BitXor)):
            return joined((left, right))
        return Kind.UNKNOWN

    def _called(self, node: ast.Call) -> Kind:
        if isinstance(node.func, ast.Name) and node.func.id in self.names.unbound:
            name = node.func.id
        else:
            name = self.origins.get(node.func, "")
        if name.startswith("math."):
            return Kind.WHOLE if name == "math.factorial" else Kind.FLOAT
        if name.startswith("tensorflow.compat.v1."):
            name = name.replace(".compat.v1", "")
        if name in _WHOLE_CALLS:
            return Kind.WHOLE
        if name in _FLOAT_CALLS:
            return Kind.FLOAT
        if name == "sum" and len(node.args) == 1:
            return self.items(node.args[0])
        if name in _ONE_OF and node.args and not node.keywords:
            kinds = [self.of(one) for one in node.args]
            if len(kinds) > 1 or name.endswith("abs"):
                return joined(kinds)
            return self.items(node.args[0])
        if name in _MADE:
            given = [*node.args[1:2], *(word.value for word in node.keywords if word.arg == "dtype")]
            return self._type(given[0]) if given else Kind.FLOAT
        if name in ("tensorflow.cast", "numpy.asarray", "numpy.array", "tensorflow.constant", "numpy.arange"):
            given = [
                *(node.args[1:2] if "arange" not in name else ()),
                *(word.value for word in node.keywords if word.arg == "dtype"),
            ]
            return self._type(given[0]) if given else Kind.UNKNOWN
        if name in ("tensorflow.placeholder", "tensorflow.get_variable"):
            given = [
                *(node.args[:1] if name.endswith("placeholder") else node.args[2:3]),
                *(word.value for word in node.keywords if word.arg == "dtype"),
            ]
            return self._type(given[0]) if given else Kind.UNKNOWN
        if isinstance(node.func, ast.Attribute):
            if node.func.attr in ("astype", "cast") and node.args:
                return self._type(node.args[-1])
            if not self.origins.get(node.func):
                if node.func.attr in _FLOAT_METHODS:
                    return Kind.FLOAT
                if node.func.attr in _WHOLE_METHODS:
                    return Kind.WHOLE
        if isinstance(node.func, ast.Name):
            return self._returned(node.func)
        return Kind.UNKNOWN

    def _type(self, node: ast.expr) -> Kind:
        said = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else dotted(node)
        if _FLOAT_TYPE.search(said):
            return Kind.FLOAT
        return Kind.WHOLE if _WHOLE_TYPE.search(said) else Kind.UNKNOWN

    def _returned(self, name: ast.Name) -> Kind:
        """What the one function of a name returns everywhere."""
        bindings = self.bindings_of(name)
        if len(bindings) != 1 or not isinstance(bindings[0].node, ast.FunctionDef):
            return Kind.UNKNOWN
        function = bindings[0].node
        if function.decorator_list:
            return Kind.UNKNOWN
        inside = list(_own(function))
        if any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in inside):
            return Kind.UNKNOWN
        values = [node.value for node in inside if isinstance(node, ast.Return)]
        if not values or None in values:
            return Kind.UNKNOWN
        return joined(self.of(value) for value in values if value is not None)

    def is_taken_for_whole(self, node: ast.expr, read: frozenset[ast.AST] = frozenset()) -> bool:
        """Whether a value is used where Python 2 took whole numbers alone: a program that ran there has one.

        In `range` or as a bound of a slice, whatever is added to it or multiplied with it before, and through a name
        that is given nothing else. `read` are the names that were followed.
        """
        above = self.parents[node]
        while isinstance(above, (ast.UnaryOp, ast.BinOp)) and not isinstance(above.op, (ast.Div, ast.Not, ast.Pow)):
            node, above = above, self.parents[above]
        if isinstance(above, ast.Slice):
            return True
        if isinstance(above, ast.Call):
            called = above.func
            return node in above.args and isinstance(called, ast.Name) and self._is_range(called)
        if not isinstance(above, ast.Assign) or len(above.targets) != 1 or not isinstance(above.targets[0], ast.Name):
            return False
        name = above.targets[0]
        uses = [
            one for one in self.uses.get(name.id, ()) if [b.node for b in self.bindings_of(one)] in ([name], [above])
        ]
        return name not in read and any(self.is_taken_for_whole(one, read | {name}) for one in uses)

    def _is_range(self, name: ast.Name) -> bool:
        return name.id in ("range", "xrange") and not self.bindings_of(name)

    def items(self, node: ast.expr) -> Kind:
        """What the things in a list are, where the file shows all that is put into it."""
        if isinstance(node, (ast.GeneratorExp, ast.ListComp)):
            return self.of(node.elt)
        if isinstance(node, (ast.List, ast.Tuple)):
            return joined(self.of(one) for one in node.elts)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in self.names.unbound:
            if node.func.id == "range":
                return Kind.WHOLE
            if node.func.id in ("list", "sorted", "reversed", "tuple") and node.args:
                return self.items(node.args[0])
        if isinstance(node, ast.Name) and ("items", node) not in self.known:
            self.known["items", node] = Kind.UNTOLD
            self.known["items", node] = kind = self._items_of_name(node)
            return kind
        return self.known.get(("items", node), Kind.UNKNOWN)

    def _items_of_name(self, node: ast.Name) -> Kind:
        bindings = self.bindings_of(node)
        if not bindings or not all(isinstance(binding.node, ast.Assign) for binding in bindings):
            return Kind.UNKNOWN
        kinds = [self.items(binding.node.value) for binding in bindings if isinstance(binding.node, ast.Assign)]
        for use in self.uses.get(node.id, ()):
            parent = self.parents[use]
            if self.bindings_of(use) is not bindings:
                continue
            if isinstance(parent, ast.Subscript) and parent.value is use and not isinstance(parent.ctx, ast.Load):
                return Kind.UNKNOWN
            if isinstance(parent, ast.Attribute) and parent.attr not in ("sort", "reverse", "index", "count", "pop"):
                call = self.parents[parent]
                if parent.attr != "append" or not isinstance(call, ast.Call) or len(call.args) != 1:
                    return Kind.UNKNOWN
                kinds.append(self.of(call.args[0]))
        kind = joined(kinds)
        return Kind.UNKNOWN if kind is Kind.UNTOLD else kind

    def _item(self, node: ast.Subscript) -> Kind:
        held = node.value
        if isinstance(held, ast.Call) and isinstance(held.func, ast.Attribute):
            if self.origins.get(held.func) == "tensorflow.shape":
                return Kind.WHOLE
            return Kind.WHOLE if held.func.attr in _SHAPES else Kind.UNKNOWN
        if isinstance(held, ast.Attribute) and held.attr == "shape":
            return Kind.WHOLE
        if isinstance(held, ast.Name):
            # `size = image.shape`, and then `size[0]`
            values = [b.node.value for b in self.bindings_of(held) if isinstance(b.node, ast.Assign)]
            if values and len(values) == len(self.bindings_of(held)) and all(map(self._is_shape, values)):
                return Kind.WHOLE
        if not isinstance(node.slice, ast.Slice):
            return self.items(held)
        return Kind.UNKNOWN

    def _is_shape(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Attribute):
            return node.attr == "shape"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            return node.func.attr in _SHAPES or self.origins.get(node.func) == "tensorflow.shape"
        if isinstance(node, (ast.List, ast.Tuple)):
            return bool(node.elts) and all(self.of(one) is Kind.WHOLE for one in node.elts)
        return False

    def _attribute(self, node: ast.Attribute) -> Kind:
        if node.attr in _WHOLE_ATTRIBUTES:
            return Kind.WHOLE
        if self.origins.get(node) in ("math.pi", "math.e", "numpy.pi", "numpy.e", "numpy.inf"):
            return Kind.FLOAT
        if node.attr == "value" and isinstance(node.value, ast.Subscript):
            return self._item(node.value)
        if isinstance(node.value, ast.Name):
            if node.attr in self.everywhere.flags and self._holds_flags(node.value):
                return self.everywhere.flags[node.attr]
            if node.value.id == "self":
                return self._own_attribute(node)
        return Kind.UNKNOWN

    def _holds_flags(self, name: ast.Name) -> bool:
        if name.id in ("FLAGS", "F", "flags"):
            return True
        return any(
            isinstance(binding.node, ast.Assign)
            and isinstance(binding.node.value, ast.Call)
            and isinstance(binding.node.value.func, ast.Attribute)
            and binding.node.value.func.attr in ("parse_args", "parse_known_args")
            for binding in self.bindings_of(name)
        )

    def _own_attribute(self, node: ast.Attribute) -> Kind:
        """What `self.x` is, where all that the file puts there is known, and no other file puts anything."""
        stores = self.attributes.get(node.attr, [])
        if (
            not stores
            or self.everywhere.stored.get(node.attr, set()) - {self.path}
            or any(not isinstance(one.value, ast.Name) or one.value.id != "self" for one in stores)
        ):
            return Kind.UNKNOWN
        return _accumulated((self._put(one), self._starts_at_zero(self.parents[one])) for one in stores)

    def _named(self, node: ast.Name) -> Kind:
        bindings = self.bindings_of(node)
        if not bindings or len(bindings) > 30:
            return Kind.UNKNOWN
        return _accumulated((self._bound(binding), self._starts_at_zero(binding.node)) for binding in bindings)

    def _starts_at_zero(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and node.value.value == 0

    def bindings_of(self, name: ast.Name) -> list[Binding]:
        """The bindings that a name may have where it stands."""
        node: ast.AST = name
        below: list[ast.AST] = []
        first = True
        while node in self.parents:
            below.append(node)
            node = self.parents[node]
            if not isinstance(node, (*_BOXES, *_COMPREHENSIONS)) or _is_in_header(below, node):
                continue
            scope = self.scopes.get(node)
            if scope is not None and name.id in scope.names and (first or not scope.is_class):
                return scope.names[name.id]
            if scope is not None and name.id in scope.elsewhere:
                return [] if scope.elsewhere[name.id] == "nonlocal" else self.names.module.names.get(name.id, [])
            first = first and isinstance(node, _COMPREHENSIONS)
        return []

    def _bound(self, binding: Binding) -> Kind:
        key = ("binding", id(binding))
        if key in self.known:
            return self.known[key]
        self.known[key] = Kind.UNTOLD
        node = binding.node
        if isinstance(node, ast.Assign):
            kind = self.of(node.value)
        elif isinstance(node, ast.Name):
            kind = self._put(node)
        elif isinstance(node, ast.arg):
            kind = self._given(node)
        else:
            kind = Kind.UNKNOWN
        if kind is Kind.UNTOLD:
            del self.known[key]
        else:
            self.known[key] = kind
        return kind

    def _put(self, target: ast.Name | ast.Attribute) -> Kind:
        """What a target of an assignment or a loop is given."""
        parent = self.parents[target]
        if isinstance(parent, ast.Assign):
            return self.of(parent.value)
        if isinstance(parent, ast.AnnAssign):
            return Kind.UNKNOWN if parent.value is None else self.of(parent.value)
        if isinstance(parent, ast.AugAssign):
            # What a name was before is told by its other bindings: whole and whole stay so, and a float makes a float.
            plain = isinstance(parent.op, (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod))
            return self.of(parent.value) if plain else Kind.UNKNOWN
        if isinstance(parent, (ast.For, ast.comprehension)) and parent.target is target:
            return self._drawn(parent.iter, 0)
        if isinstance(parent, (ast.Tuple, ast.List)):
            at = parent.elts.index(target)
            above = self.parents[parent]
            if isinstance(above, ast.Assign):
                value = above.value
                if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(parent.elts):
                    return self.of(value.elts[at])
                of_image = isinstance(value, ast.Attribute) and value.attr == "size"  # of arrays it is one number
                return Kind.WHOLE if of_image or self._is_shape(value) else Kind.UNKNOWN
            if isinstance(above, (ast.For, ast.comprehension)) and above.target is parent:
                return self._drawn(above.iter, at, unpacked=True)
        return Kind.UNKNOWN

    def _drawn(self, source: ast.expr, at: int, unpacked: bool = False) -> Kind:
        if isinstance(source, ast.Call) and isinstance(source.func, ast.Name):
            name = source.func.id
            if name in ("list", "sorted", "reversed", "tqdm", "trange") and source.args:
                return self._drawn(source.args[0], at, unpacked) if name != "trange" else Kind.WHOLE
            if name == "range" and name in self.names.unbound and not unpacked:
                return Kind.WHOLE
            if name == "enumerate" and unpacked and at == 0:
                return Kind.WHOLE
        return Kind.UNKNOWN if unpacked else self.items(source)

    def _given(self, parameter: ast.arg) -> Kind:
        """What a parameter is, where the project shows all calls of its function."""
        arguments = self.parents[parameter]
        function = self.parents.get(arguments)
        if not isinstance(arguments, ast.arguments) or not isinstance(function, ast.FunctionDef):
            return Kind.UNKNOWN
        if function.decorator_list or parameter in (arguments.vararg, arguments.kwarg):
            return Kind.UNKNOWN
        outer = self.parents[function]
        of_class = isinstance(outer, ast.ClassDef)
        called = outer.name if isinstance(outer, ast.ClassDef) and function.name == "__init__" else function.name
        if called.startswith("__"):
            return Kind.UNKNOWN
        parameters = [*arguments.posonlyargs, *arguments.args][of_class:]
        at = parameters.index(parameter) if parameter in parameters else -1
        kinds = []
        for file, use in self.everywhere.uses(called):
            calls = file.calls_by(use, self, outer if called != function.name else function, of_class)
            if calls is None:
                continue
            call = file.parents[use]
            if not calls or not isinstance(call, ast.Call) or call.func is not use:
                return Kind.UNKNOWN
            if any(isinstance(one, ast.Starred) for one in call.args) or any(one.arg is None for one in call.keywords):
                return Kind.UNKNOWN
            given = [word.value for word in call.keywords if word.arg == parameter.arg]
            if given or 0 <= at < len(call.args):
                kinds.append(file.of(given[0] if given else call.args[at]))
                continue
            number = at - len(parameters) + len(arguments.defaults)
            default = arguments.defaults[number] if at >= 0 and number >= 0 else None
            kinds.append(self.of(default) if default is not None else Kind.UNKNOWN)
        return joined(kinds) if kinds else Kind.UNKNOWN

    def calls_by(self, use: ast.Name | ast.Attribute, home: Kinds, what: ast.AST, of_class: bool) -> bool | None:
        """Whether a name here may be a function, or a class, of another file; None where it is something else."""
        if isinstance(use, ast.Name):
            bindings = self.bindings_of(use)
            if self is home and any(binding.node is what for binding in bindings):
                return True
            if isinstance(what, ast.FunctionDef) and of_class:
                return None  # a method is not called by its name alone
            imported = any(binding.statement is not None for binding in bindings)
            return True if (imported or not bindings) and self is not home else None
        origin = self.origins.get(use, "")
        if not origin:
            return True if isinstance(what, ast.FunctionDef) and of_class else None
        parts = origin.split(".")
        if len(parts) < 2 or parts[-2] != home.stem:
            return False if of_class and isinstance(what, ast.FunctionDef) and not self._is_library(parts[0]) else None
        return True

    def _is_library(self, module: str) -> bool:
        return module in ("numpy", "tensorflow", "math", "os", "random", "scipy", "time", "sys", "matplotlib")


@dataclass(eq=False)
class Everywhere:
    """The files of a project: what one of them says of another's functions and flags."""

    trees: Mapping[Path, ast.Module]

    def __post_init__(self) -> None:
        self.flags = flags_of(self.trees.values())
        self.made: dict[Path, Kinds] = {}
        self.index: dict[str, list[tuple[Path, ast.Name | ast.Attribute]]] = {}
        self.stored: dict[str, set[Path]] = {}
        for path, tree in self.trees.items():
            for node in ast.walk(tree):
                if isinstance(node, (ast.Name, ast.Attribute)):
                    name = node.id if isinstance(node, ast.Name) else node.attr
                    if isinstance(node.ctx, ast.Load):
                        self.index.setdefault(name, []).append((path, node))
                    elif isinstance(node, ast.Attribute):
                        self.stored.setdefault(name, set()).add(path)

    def kinds(self, path: Path) -> Kinds:
        """The answers of one file."""
        if path not in self.made:
            stem = path.parent.name if path.stem == "__init__" else path.stem
            self.made[path] = Kinds(self.trees[path], self, path, stem)
        return self.made[path]

    def uses(self, name: str) -> list[tuple[Kinds, ast.Name | ast.Attribute]]:
        """Where a name, or an attribute of this name, is read in the project."""
        return [(self.kinds(path), node) for path, node in self.index.get(name, ())]


def _is_in_header(below: list[ast.AST], box: ast.AST) -> bool:
    """Whether what stands below a function, last the part of it, is read outside: defaults and decorators."""
    part = below[-1]
    if isinstance(part, ast.arguments):
        return len(below) > 1 and (below[-2] in part.defaults or below[-2] in part.kw_defaults)
    if isinstance(box, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return part in box.decorator_list
    return isinstance(box, ast.ClassDef) and (part in box.bases or part in box.decorator_list)


def _accumulated(kinds: Iterable[tuple[Kind, bool]]) -> Kind:
    """What a name is that is bound to these; a sum of floats may start at a whole 0, whose quotients are the same."""
    found = list(kinds)
    later = [kind for kind, zero in found if not zero]
    return Kind.FLOAT if joined(later) is Kind.FLOAT else joined(kind for kind, _ in found)


def joined(kinds: Iterable[Kind]) -> Kind:
    """What something is that may be any of these."""
    found = set(kinds) - {Kind.UNTOLD}
    if not found:
        return Kind.UNTOLD
    return found.pop() if len(found) == 1 else Kind.UNKNOWN


def _own(function: ast.FunctionDef) -> Iterable[ast.AST]:
    queue: list[ast.AST] = list(function.body)
    while queue:
        node = queue.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            queue += ast.iter_child_nodes(node)
