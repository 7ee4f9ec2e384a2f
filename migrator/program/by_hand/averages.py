"""Whether a function takes the mean of the towers' gradients: its statements are followed with what they stand for."""

from __future__ import annotations

import ast

import libcst as cst

from migrator.pairing import equal_zip
from migrator.program.parsed import ParsedFile

# What a name stands for while `for pairs in zip(*towers)` runs: one variable's (gradient, variable) of every tower.
TOWERS, PAIRS, GRADIENT, VARIABLE, ROW = "towers", "pairs", "gradient", "variable", "row"
GRADIENTS, ROWS, STACKED, SUM, MEAN, COUNT = "gradients", "rows", "stacked", "sum", "mean", "count"
MEAN_OF_ONE, MEANS, EMPTY = "(mean, variable)", "means", "[]"

_LISTED = {GRADIENT: GRADIENTS, ROW: ROWS, MEAN_OF_ONE: MEANS}


def averages_towers(function: cst.FunctionDef, file: ParsedFile) -> bool:
    """Whether a function of one parameter, the list of the towers' (gradient, variable) lists, returns their mean."""
    code = ast.parse(cst.Module([function.with_changes(decorators=[], leading_lines=[])]).code).body[0]
    assert isinstance(code, ast.FunctionDef)
    given = [arg.arg for arg in code.args.args]
    if len(given) != 1 or function.decorators:
        return False
    reader = _Reader(file)
    try:
        return reader.run(code.body, {given[0]: TOWERS}) == MEANS
    except _UnknownError:
        return False


class _UnknownError(Exception):
    """A statement that is not understood."""


class _Reader:
    def __init__(self, file: ParsedFile) -> None:
        self.file = file

    def run(self, body: list[ast.stmt], names: dict[str, str]) -> str | None:
        """What is returned; None where nothing is."""
        for statement in body:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                continue  # a docstring
            if isinstance(statement, ast.Return) and statement.value is not None:
                return self.value(statement.value, names)
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                target = statement.targets[0]
                if not isinstance(target, ast.Name):
                    raise _UnknownError
                names[target.id] = self.value(statement.value, names)
            elif isinstance(statement, ast.For) and not statement.orelse:
                self.loop(statement, names)
            elif isinstance(statement, ast.Expr):
                self.append(statement.value, names)
            else:
                raise _UnknownError
        return None

    def loop(self, statement: ast.For, names: dict[str, str]) -> None:
        """A loop fills lists: those that were empty before it hold one thing for each turn behind it."""
        self.bind(statement.target, self.value(statement.iter, names), names)
        before = dict(names)
        if self.run(statement.body, names) is not None:
            raise _UnknownError
        for name, value in before.items():
            if value not in (EMPTY, names[name]):
                raise _UnknownError

    def bind(self, target: ast.expr, over: str, names: dict[str, str]) -> None:
        if over == "zip" and isinstance(target, ast.Name):
            names[target.id] = PAIRS
        elif over == PAIRS and isinstance(target, ast.Tuple) and len(target.elts) == 2:
            for one, value in equal_zip(target.elts, (GRADIENT, VARIABLE)):
                if not isinstance(one, ast.Name):
                    raise _UnknownError
                names[one.id] = value
        else:
            raise _UnknownError

    def append(self, call: ast.expr, names: dict[str, str]) -> None:
        known = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "append"
        if not known or not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            raise _UnknownError
        place = call.func.value
        if not isinstance(place, ast.Name) or names.get(place.id) != EMPTY or len(call.args) != 1:
            raise _UnknownError
        names[place.id] = self.listed(self.value(call.args[0], names))

    @staticmethod
    def listed(value: str) -> str:
        if value not in _LISTED:
            raise _UnknownError
        return _LISTED[value]

    def value(self, node: ast.expr, names: dict[str, str]) -> str:
        if isinstance(node, ast.Name) and node.id in names:
            return names[node.id]
        if isinstance(node, ast.List) and not node.elts:
            return EMPTY
        if isinstance(node, ast.Tuple) and [self.value(one, names) for one in node.elts] == [MEAN, VARIABLE]:
            return MEAN_OF_ONE
        if isinstance(node, ast.ListComp) and len(node.generators) == 1 and not node.generators[0].ifs:
            inner = dict(names)
            self.bind(node.generators[0].target, self.value(node.generators[0].iter, names), inner)
            return self.listed(self.value(node.elt, inner))
        if isinstance(node, ast.Subscript):
            return self.variable(node, names)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            if (self.value(node.left, names), self.value(node.right, names)) == (SUM, COUNT):
                return MEAN
        if isinstance(node, ast.Call):
            return self.call(node, names)
        raise _UnknownError

    def variable(self, node: ast.Subscript, names: dict[str, str]) -> str:
        """`pairs[0][1]`: the towers share the variable."""
        inner = node.value
        if isinstance(inner, ast.Subscript) and self.value(inner.value, names) == PAIRS:
            if isinstance(inner.slice, ast.Constant) and isinstance(node.slice, ast.Constant):
                if isinstance(inner.slice.value, int) and node.slice.value == 1:
                    return VARIABLE
        raise _UnknownError

    def call(self, node: ast.Call, names: dict[str, str]) -> str:
        name = ast.unparse(node.func)
        if name == "zip" and len(node.args) == 1 and isinstance(node.args[0], ast.Starred):
            if self.value(node.args[0].value, names) == TOWERS:
                return "zip"
        if name in ("len", "float") and len(node.args) == 1 and not node.keywords:
            if self.value(node.args[0], names) in (GRADIENTS, PAIRS, TOWERS, COUNT):
                return COUNT
        symbol = self.file.imports.tensorflow(cst.parse_expression(name))
        given = dict(zip(("first", "second"), node.args))
        given.update({one.arg or "": one.value for one in node.keywords})
        values, axis = self.operands(symbol, given)
        if values is None:
            raise _UnknownError
        along = axis.value if isinstance(axis, ast.Constant) and isinstance(axis.value, int) else None
        found = self.value(values, names)
        known = {
            ("tf.expand_dims", GRADIENT, 0): ROW,
            ("tf.concat", ROWS, 0): STACKED,
            ("tf.stack", GRADIENTS, 0): STACKED,
            ("tf.stack", GRADIENTS, None): STACKED,
            ("tf.reduce_mean", STACKED, 0): MEAN,
            ("tf.reduce_mean", GRADIENTS, 0): MEAN,
            ("tf.add_n", GRADIENTS, None): SUM,
        }
        if (axis is not None and along is None) or (symbol or "", found, along) not in known:
            raise _UnknownError
        return known[symbol or "", found, along]

    @staticmethod
    def operands(symbol: str | None, given: dict[str, ast.expr]) -> tuple[ast.expr | None, ast.expr | None]:
        """What an operation computes of, and along which axis."""
        words = {
            "name",
            "first",
            "second",
            "axis",
            "values",
            "input",
            "inputs",
            "input_tensor",
            "reduction_indices",
            "dim",
        }
        if set(given) - words:
            return None, None
        first, second = given.get("first"), given.get("second")
        keyed = next((given[word] for word in ("values", "input", "inputs", "input_tensor") if word in given), None)
        axis = next((given[word] for word in ("axis", "reduction_indices", "dim") if word in given), None)
        if keyed is not None and first is not None:
            return None, None
        if second is not None and axis is not None:
            return None, None
        return (first if keyed is None else keyed), (second if axis is None else axis)
