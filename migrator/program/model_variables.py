"""Whether the variables of one Keras object are all those that a model_fn trains."""

from __future__ import annotations

import builtins

import libcst as cst

from migrator.program.calls import calls_in, is_false
from migrator.program.parsed import ParsedFile
from migrator.program.scopes import bindings, path_to

_WITHOUT_VARIABLES = tuple(
    f"tf.keras.{name}." for name in ("losses", "metrics", "optimizers", "backend", "initializers", "regularizers")
)
_MAKING = ("tf.keras.", "tf.layers.", "tf.contrib.", "tf.feature_column.", "tf.nn.rnn_cell.", "tf.Variable")
_LINEAR = "tf.feature_column.linear_model"
_MAKING_TOO = frozenset({"tf.get_variable", "tf.make_template", "tf.Module", "tf.import_graph_def"})
_LAYERS = (
    *("tf.layers.", "tf.keras.layers.", "tf.contrib.layers.", "tf.contrib.slim.", "tf.nn.rnn_cell.", "tf.contrib.rnn."),
    *("tf.nn.dynamic_rnn", "tf.nn.static_rnn", "tf.nn.bidirectional_dynamic_rnn"),
)
# What is asked of tensors, dicts, optimizers, metrics and tapes, none of which makes a variable that is trained.
_METHODS = (
    "apply_gradients", "as_list", "assign_add", "compute_gradients", "get", "get_losses_for", "get_shape",
    "get_updates", "get_updates_for", "gradient", "gradients", "items", "keys", "minimize", "pop", "result",
    "set_shape", "update_state", "values",
)  # fmt: skip


def makes_variables(file: ParsedFile, node: cst.CSTNode) -> bool:
    """Whether code makes variables that are trained, by itself or in functions of the file that it calls."""
    return _makes(file, node, set())


def _makes(file: ParsedFile, node: cst.CSTNode, seen: set[str]) -> bool:
    for call in calls_in(node):
        symbol = file.imports.resolve(call.func) or ""
        if is_making(symbol) and not any(_is_trainable_false(arg) for arg in call.args):
            return True
        name = call.func.value if isinstance(call.func, cst.Name) else ""
        if name in file.functions and name not in seen:
            seen.add(name)
            if _makes(file, file.functions[name].body, seen):
                return True
    return False


def is_making(symbol: str) -> bool:
    """Whether a symbol of TensorFlow makes variables that are trained, or is a layer."""
    if symbol in ("tf.get_variable", "tf.Variable", "tf.feature_column.input_layer", _LINEAR):
        return True
    last = symbol.rpartition(".")[2]
    if last.endswith(("initializer", "regularizer", "optimize_loss", "apply_regularization", "arg_scope")):
        return False
    return symbol.startswith(_LAYERS)


def is_one_linear_model(file: ParsedFile, function: cst.FunctionDef) -> bool:
    """Whether a weighted sum of feature columns has all variables that a model_fn trains, as far as its calls tell."""
    symbols = [(call, file.imports.resolve(call.func)) for call in calls_in(function.body)]
    others = [(call, symbol) for call, symbol in symbols if symbol != _LINEAR]
    return len(symbols) - len(others) == 1 and all(
        not is_making(symbol) if symbol is not None else _is_plain(call.func) for call, symbol in others
    )


def _is_plain(func: cst.BaseExpression) -> bool:
    """Whether something is called that TensorFlow has no part in: a method of a tensor or a dict, or a builtin."""
    if isinstance(func, cst.Attribute):
        return func.attr.value in _METHODS
    return isinstance(func, cst.Name) and hasattr(builtins, func.value)


def _is_trainable_false(arg: cst.Arg) -> bool:
    return arg.keyword is not None and arg.keyword.value == "trainable" and is_false(arg.value)


def is_all_of_it(file: ParsedFile, function: cst.FunctionDef, name: str) -> bool:
    """Whether a model_fn gives a name one object, and makes variables to train nowhere but in it, as far as its calls
    tell."""
    found = [node for known, node in bindings(function) if known == name]
    made = (
        next((n for n in reversed(path_to(function, found[0])) if isinstance(n, cst.Assign)), None) if found else None
    )
    if len(found) != 1 or made is None or not isinstance(made.value, cst.Call):
        return False
    inside = calls_in(made.value)
    return all(call in inside or _trains_nothing(file, function, name, call) for call in calls_in(function.body))


def _trains_nothing(file: ParsedFile, function: cst.FunctionDef, name: str, call: cst.Call) -> bool:
    """Whether a call makes no variable that is trained beside those of the object of that name."""
    symbol = file.imports.resolve(call.func)
    if symbol is not None:
        making = symbol.startswith(_MAKING) and not symbol.startswith(_WITHOUT_VARIABLES)
        return symbol.startswith("tf.") and not making and symbol not in _MAKING_TOO
    func = call.func
    if isinstance(func, cst.Attribute):
        return func.attr.value in _METHODS or (isinstance(func.value, cst.Name) and func.value.value == name)
    if not isinstance(func, cst.Name):
        return False
    return func.value == name or hasattr(builtins, func.value) or _is_loss(file, function, func.value)


def _is_loss(file: ParsedFile, function: cst.FunctionDef, name: str) -> bool:
    """Whether a name is a loss or a metric of Keras that the model_fn makes."""
    found = [node for known, node in bindings(function) if known == name]
    made = [n for node in found for n in path_to(function, node) if isinstance(n, cst.Assign)]
    symbols = [file.imports.resolve(n.value.func) or "" for n in made if isinstance(n.value, cst.Call)]
    return bool(found) and len(symbols) == len(found) and all(s.startswith(_WITHOUT_VARIABLES) for s in symbols)
