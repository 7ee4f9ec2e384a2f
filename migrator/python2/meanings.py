"""What both Pythons run and mean otherwise: written as Python 2 meant it where that is known, else told."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from migrator.names.references import Reference
from migrator.python2.edits import Edits
from migrator.python2.kinds import Kind, Kinds

_MADE_UP = "xxx_todo_changeme"
_COMPARED = "({0} > {1}) - ({0} < {1})"
_STRING = {
    "letters": "ascii_letters",
    "lowercase": "ascii_lowercase",
    "uppercase": "ascii_uppercase",
}
_STRING_CALLS = {"atoi": "int", "atof": "float", "atol": "int", "maketrans": "str.maketrans"}
_STRING_METHODS = frozenset(
    (
        *("split", "replace", "strip", "lstrip", "rstrip", "lower", "upper", "find", "rfind", "index", "count"),
        *("zfill", "ljust", "rjust", "center", "translate", "splitlines", "expandtabs", "capitalize"),
    )
)
_TYPES = {
    "StringType": "str",
    "StringTypes": "str",
    "UnicodeType": "str",
    "IntType": "int",
    "LongType": "int",
    "FloatType": "float",
    "ListType": "list",
    "DictType": "dict",
    "DictionaryType": "dict",
    "TupleType": "tuple",
    "BooleanType": "bool",
    "ObjectType": "object",
    "FileType": "object",
}
#: By another name of their module than the fixer knows.
_BUILT_IN = {"itertools.izip": "zip", "itertools.imap": "map", "itertools.ifilter": "filter"}
_LATER = {"sys.maxint": "maxsize", "os.getcwdu": "getcwd", "itertools.izip_longest": "zip_longest"}
_DIVIDE = {"__div__": "__truediv__", "__rdiv__": "__rtruediv__", "__idiv__": "__itruediv__"}
_GONE_METHODS = {
    "__cmp__": "write __eq__ and __lt__ (functools.total_ordering makes the others)",
    "__getslice__": "write __getitem__, which is given a slice",
    "__setslice__": "write __setitem__, which is given a slice",
    "__unicode__": "write __str__",
    "__coerce__": "write the operators",
}
_DRAWS = frozenset(("shuffle", "choice", "sample", "randint", "randrange"))
_BINARY = frozenset(("pickle.load", "pickle.dump"))
_TEXT = frozenset(("csv.reader", "csv.writer", "csv.DictReader", "csv.DictWriter"))


@dataclass(eq=False)
class Meanings:
    """The edits of a file, and what somebody has to look at: nodes, and a sentence each."""

    edits: Edits
    kinds: Kinds
    told: list[tuple[ast.expr | ast.stmt, str]] = field(default_factory=list)
    functools: bool = False
    opened: set[ast.Call] = field(default_factory=set)

    def keep(self) -> None:
        """Makes all edits."""
        kinds = self.kinds
        for node in ast.walk(kinds.tree):
            if isinstance(node, ast.Call):
                self._call(node)
            elif isinstance(node, ast.ClassDef):
                self._class(node)
            elif isinstance(node, ast.Name) and node.id in kinds.names.unbound and isinstance(node.ctx, ast.Load):
                self._built_in(node)
            elif isinstance(node, ast.ListComp):
                self._leak(node)
            elif isinstance(node, ast.Import) and len(node.names) == 1:
                if (alias := node.names[0]).asname == alias.name:  # `import cPickle as pickle` of before
                    self.edits.between(self.edits.start(node), self.edits.end(node), f"import {alias.name}")
            elif isinstance(node, ast.FunctionDef):
                self._parameters(node)
        for reference in kinds.names.references:
            self._reference(reference)
        if self.functools:
            self._import("functools")

    # -- calls -------------------------------------------------------------------------------------------------------

    def _call(self, call: ast.Call) -> None:
        origin = self.kinds.origins.get(call.func, "")
        name = call.func.id if isinstance(call.func, ast.Name) and call.func.id in self.kinds.names.unbound else ""
        if name == "sorted" or (isinstance(call.func, ast.Attribute) and call.func.attr == "sort"):
            self._sorted(call, 1 if name else 0)
        elif name == "cmp" and len(call.args) == 2 and not call.keywords:
            self._compared(call)
        elif name == "round":
            self._told(
                call,
                "`round`: Python 2 rounded halves away from zero and returned a float, Python 3 rounds them "
                "to even and returns an int without digits: write `float(math.floor(x + 0.5))` if halves, or "
                "the type, matter",
            )
        elif name == "hash" and call.args and self.kinds.of(call.args[0]) is not Kind.WHOLE:
            self._told(
                call,
                "`hash` of a string differs in every run of Python 3: use zlib.crc32(text.encode()) if it "
                "chooses a bucket or a split of the data",
            )
        elif origin in ("pickle.load", "pickle.loads") and len(call.args) == 1 and not call.keywords:
            end = self.edits.end(call.args[0])
            self.edits.between(end, end, ', encoding="latin1"')
            self._told(
                call,
                "this pickle was written by Python 2: its strings are read as latin-1, which is right for "
                'arrays and plain ASCII; otherwise pass encoding="utf-8" or "bytes"',
            )
        elif origin == "random.seed":
            draws = [
                use
                for reference in self.kinds.names.references
                if (use := reference.origin).startswith("random.") and use.split(".")[1] in _DRAWS
            ]
            if draws:
                self._told(
                    call,
                    f"from this seed `{draws[0]}` draws other numbers than in Python 2 (`random.random` draws the "
                    "same): shuffles and splits of the data differ from earlier runs",
                )
        elif name == "print" and len(call.args) == 1 and not call.keywords:
            self._bare(call)
        if origin in _BINARY or origin in _TEXT:
            at = 1 if origin == "pickle.dump" else 0
            if len(call.args) > at:
                self._opened(call.args[at], binary=origin in _BINARY)

    def _bare(self, call: ast.Call) -> None:
        """`print (x)` of before is `print(x)`, and not `print((x))`."""
        opening = (self.edits.end(call.func), self.edits.start(call.args[0]))
        closing = (self.edits.end(call.args[0]), self.edits.end(call))
        if self.edits.raw[slice(*opening)] == b"((" and self.edits.raw[slice(*closing)] == b"))":
            self.edits.between(opening[0], opening[1], "(")
            self.edits.between(closing[0], closing[1], ")")

    def _sorted(self, call: ast.Call, at: int) -> None:
        given = next((word for word in call.keywords if word.arg == "cmp"), None)
        function: ast.expr | None = None
        if given is not None:
            function, start = given.value, self.edits.start(given)
        elif len(call.args) == at + 1 and not isinstance(call.args[at], ast.Starred) and self._compares(call.args[at]):
            function = call.args[at]
            start = self.edits.start(function)
        if function is None:
            return
        self.functools = True
        self.edits.between(start, self.edits.start(function), "key=functools.cmp_to_key(")
        self.edits.between(self.edits.end(function), self.edits.end(function), ")")

    def _compares(self, node: ast.expr) -> bool:
        """Whether a value is a function of two things."""
        if isinstance(node, ast.Lambda):
            return len(node.args.args) == 2
        if not isinstance(node, ast.Name):
            return False
        if node.id == "cmp":
            return node.id in self.kinds.names.unbound
        functions = [
            b.node for b in self.kinds.names.module.names.get(node.id, ()) if isinstance(b.node, ast.FunctionDef)
        ]
        return bool(functions) and all(len(one.args.args) == 2 for one in functions)

    def _compared(self, call: ast.Call) -> None:
        if all(_is_plain(one) for one in call.args):
            sides = [self.edits.code(one) if _is_atom(one) else f"({self.edits.code(one)})" for one in call.args]
            self.edits.replace(call, f"({_COMPARED.format(*sides)})")
        else:
            made = f"(lambda a, b: {_COMPARED.format('a', 'b')})"
            self.edits.between(self.edits.start(call.func), self.edits.end(call.func), made)

    def _built_in(self, node: ast.Name) -> None:
        parent = self.kinds.parents.get(node)
        called = isinstance(parent, ast.Call) and parent.func is node
        if node.id == "cmp" and not called:
            self.edits.replace(node, f"(lambda a, b: {_COMPARED.format('a', 'b')})")
        elif node.id == "file" and called:
            self.edits.replace(node, "open")

    def _opened(self, file: ast.expr, *, binary: bool) -> None:
        """Opens a file for bytes, or for text, which made no difference to Python 2."""
        for call in set(self._opening(file)) - self.opened:
            self.opened.add(call)
            mode = call.args[1] if len(call.args) > 1 else None
            mode = next((word.value for word in call.keywords if word.arg == "mode"), mode)
            if mode is None:
                if binary and len(call.args) == 1:
                    self.edits.between(self.edits.end(call.args[0]), self.edits.end(call.args[0]), ', "rb"')
                continue
            if not isinstance(mode, ast.Constant) or not isinstance(mode.value, str):
                continue
            letters = mode.value.replace("U", "")
            new = (letters if "b" in letters else f"{letters or 'r'}b") if binary else letters.replace("b", "") or "r"
            quote = self.edits.code(mode)[-1]
            if new != mode.value:
                self.edits.replace(mode, f"{quote}{new}{quote}")
            if not binary and "b" in mode.value and not any(word.arg == "newline" for word in call.keywords):
                self.edits.between(self.edits.end(mode), self.edits.end(mode), f", newline={quote}{quote}")

    def _opening(self, file: ast.expr) -> Iterator[ast.Call]:
        """The calls of `open` that a file may come from, where it is open for this alone."""
        if isinstance(file, ast.Call) and isinstance(file.func, ast.Name) and file.func.id in ("open", "file"):
            if file.func.id in self.kinds.names.unbound:
                yield file
        elif isinstance(file, ast.Name):
            found = [(b, self.kinds.parents.get(b.node)) for b in self.kinds.bindings_of(file)]
            above = set(self._above(file))
            within = [one for _, one in found if isinstance(one, ast.withitem) and self.kinds.parents[one] in above]
            before = [b.node.value for b, _ in found if isinstance(b.node, ast.Assign) and b.node.lineno <= file.lineno]
            if within:
                yield from self._opening(within[-1].context_expr)
            elif before:
                yield from self._opening(max(before, key=lambda one: one.lineno))

    def _above(self, node: ast.AST) -> Iterator[ast.AST]:
        while node in self.kinds.parents:
            node = self.kinds.parents[node]
            yield node

    # -- names -------------------------------------------------------------------------------------------------------

    def _reference(self, reference: Reference) -> None:
        last = reference.nodes[-1]
        module, _, name = reference.origin.partition(".")
        whole = len(reference.nodes) == 2
        parent = self.kinds.parents.get(last)
        call = parent if isinstance(parent, ast.Call) and parent.func is last else None
        if module == "string" and whole:
            if name in _STRING:
                self.edits.between(self.edits.end(last) - len(name), self.edits.end(last), _STRING[name])
            elif call is not None and name in _STRING_CALLS:
                self.edits.replace(last, _STRING_CALLS[name])
            elif call is not None and name in ("join", "joinfields") and 1 <= len(call.args) <= 2 and not call.keywords:
                by = self.edits.code(call.args[1]) if len(call.args) == 2 else '" "'
                by = by if len(call.args) < 2 or _is_atom(call.args[1]) else f"({by})"
                self.edits.replace(call, f"{by}.join({self.edits.code(call.args[0])})")
            elif call is not None and name in _STRING_METHODS and call.args and not call.keywords:
                text = self.edits.code(call.args[0])
                text = text if _is_atom(call.args[0]) else f"({text})"
                rest = ", ".join(self.edits.code(one) for one in call.args[1:])
                self.edits.replace(call, f"{text}.{name}({rest})")
        elif module == "types" and whole and name in _TYPES:
            self.edits.replace(last, _TYPES[name])
        elif reference.origin in _BUILT_IN:
            self.edits.replace(last, _BUILT_IN[reference.origin])
        elif reference.origin in _LATER and whole:
            self.edits.between(self.edits.end(last) - len(name), self.edits.end(last), _LATER[reference.origin])
        elif reference.origin == "io.StringIO" and call is not None:
            self._told(call, "`StringIO` holds text only: use io.BytesIO for images or other bytes")

    # -- classes and comprehensions ----------------------------------------------------------------------------------

    def _class(self, node: ast.ClassDef) -> None:
        methods = {one.name: one for one in node.body if isinstance(one, ast.FunctionDef)}
        for old, new in _DIVIDE.items():
            if old in methods and new not in methods:
                at = self.edits.raw.index(old.encode(), self.edits.start(methods[old]))
                self.edits.between(at, at + len(old), new)
        for old, todo in _GONE_METHODS.items():
            if old in methods:
                self._told(methods[old], f"Python 3 never calls `{old}`: {todo}")

    def _parameters(self, node: ast.FunctionDef) -> None:
        """Names what the fixer made of a parameter `(top, left)` by its parts."""
        taken = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
        taken |= {one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)}
        for parameter in node.args.args:
            uses = [one for one in ast.walk(node) if isinstance(one, ast.Name) and one.id == parameter.arg]
            if not parameter.arg.startswith(_MADE_UP) or len(uses) != 1:
                continue
            parent = self.kinds.parents[uses[0]]
            if isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Tuple):
                parts = [one.id for one in ast.walk(parent.targets[0]) if isinstance(one, ast.Name)]
                name = "_".join(parts)
                while name in taken:
                    name += "_"
                taken.add(name)
                self.edits.replace(uses[0], name)
                at = self.edits.starts[parameter.lineno - 1] + parameter.col_offset
                self.edits.between(at, at + len(parameter.arg), name)

    def _leak(self, node: ast.ListComp) -> None:
        """The name of a loop inside of `[...]`, which Python 2 left behind with its last value."""
        block = self.kinds.parents[node]
        while not isinstance(block, (ast.FunctionDef, ast.Module, ast.ClassDef, ast.Lambda)):
            if isinstance(block, (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)):
                return
            block = self.kinds.parents[block]
        scope = self.kinds.scopes.get(block)
        targets = {one.id for part in node.generators for one in ast.walk(part.target) if isinstance(one, ast.Name)}
        end = self.edits.end(node)
        for name in sorted(targets):
            for use in self.kinds.uses.get(name, ()):
                if self.edits.start(use) < end or self._block_of(use) is not block:
                    continue
                stores = scope.names.get(name, []) if scope is not None else []
                between = [
                    b
                    for b in stores
                    if hasattr(b.node, "lineno")
                    and end < self.edits.starts[b.node.lineno - 1]
                    and b.node.lineno <= use.lineno
                ]
                if not between:
                    self._told(
                        use,
                        f"`{name}` had the last value of the loop in [...] of line {node.lineno} in "
                        "Python 2, but not in Python 3: assign it",
                    )
                break

    def _block_of(self, node: ast.AST) -> ast.AST | None:
        """The function that a name is read in; none where a comprehension has it."""
        name = node.id if isinstance(node, ast.Name) else ""
        while node in self.kinds.parents:
            node = self.kinds.parents[node]
            if isinstance(node, (ast.FunctionDef, ast.Module, ast.ClassDef, ast.Lambda)):
                return node
            if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)):
                bound = {
                    one.id for part in node.generators for one in ast.walk(part.target) if isinstance(one, ast.Name)
                }
                if name in bound:
                    return None
        return None

    def _told(self, node: ast.expr | ast.stmt, message: str) -> None:
        self.told.append((node, message))

    def _import(self, module: str) -> None:
        """Imports a module, before the first import that is none from `__future__`."""
        if any(b.origin == module and b.scope is self.kinds.names.module for b in self.kinds.names.imported()):
            return
        body = self.kinds.tree.body
        imports = [
            one
            for one in body
            if isinstance(one, ast.Import) or (isinstance(one, ast.ImportFrom) and one.module != "__future__")
        ]
        future = [one for one in body if isinstance(one, ast.ImportFrom) and one.module == "__future__"]
        if imports:
            at = self.edits.start(imports[0])
        else:
            documented = bool(body) and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
            after = future[-1] if future else body[0] if documented else None
            at = self.edits.starts[after.end_lineno or 1] if after is not None else 0
        self.edits.between(at, at, f"import {module}\n")


def _is_plain(node: ast.expr) -> bool:
    """Whether reading an expression twice is as good as once."""
    return all(
        not isinstance(one, (ast.Call, ast.Await, ast.Yield, ast.Lambda, ast.ListComp)) for one in ast.walk(node)
    )


def _is_atom(node: ast.expr) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
