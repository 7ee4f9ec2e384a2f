"""Calls that only tell somebody something: `print`, and what loggers do."""

from __future__ import annotations

import libcst as cst

from migrator.names.bindings import all_given, read_bindings
from migrator.names.imports import dotted
from migrator.program.calls import calls_in, functions_in, nodes_in
from migrator.program.parsed import ParsedFile, name_nodes
from migrator.walking import of_kinds

#: Methods of a logger, and functions of the same names, that only tell something.
_TELLING = ("info", "warning", "warn", "error", "debug", "exception", "critical", "log")
_LOGGERS = ("logging.getLogger", "tf.get_logger", "absl.logging.get_absl_logger")
_LOGGING = ("logging", "tf.logging", "absl.logging")
#: Functions that say what time it is.
_CLOCKS = (
    *("time.time", "time.perf_counter", "time.monotonic", "time.process_time", "time.clock", "timeit.default_timer"),
    *("datetime.datetime.now", "datetime.datetime.utcnow"),
)
#: Functions that only look at what they are given.
_LOOKS = ("str", "repr", "format", "len", "int", "float", "bool", "type", "isinstance", "sum", "list", "sorted", "zip")
_LOOKS_OF_NUMPY = ("numpy.prod", "numpy.sum")
#: What gives the variables or the step of TensorFlow 1's graph.
GRAPH = frozenset(
    (
        *("tf.trainable_variables", "tf.global_variables", "tf.local_variables", "tf.model_variables"),
        *("tf.moving_average_variables", "tf.get_collection", "tf.train.get_global_step", "tf.get_default_graph"),
    )
)
#: Methods of tensors and shapes that only look.
_LOOKING = ("get_shape", "as_list", "as_graph_def", "get_operations")
#: What writes a graph of TensorFlow 1 to a file.
_WRITING = ("tf.train.write_graph", "tf.io.write_graph")
#: TensorFlow's functions that leave something in the graph, which others find there: losses, penalties, variables.
_LEAVING = (
    *(
        "tf.losses.",
        "tf.layers.",
        "tf.keras.",
        "tf.contrib.",
        "tf.get_variable",
        "tf.Variable",
        "tf.get_local_variable",
    ),
    *("tf.add_to_collection", "tf.assign", "tf.scatter", "tf.make_template", "tf.py_func", "tf.numpy_function"),
    *("tf.nn.rnn_cell.", "tf.nn.dynamic_rnn", "tf.nn.bidirectional_dynamic_rnn", "tf.nn.static_rnn", "tf.nn.raw_rnn"),
)
#: Functions that give something which is empty once it was looked through.
_ONCE = ("map", "zip", "filter", "iter", "enumerate", "reversed")
_LOOKS_THROUGH = ("list", "sorted", "sum", "zip", "tuple", "set", "any", "all", "max", "min", "enumerate")
_TEXTS = (cst.SimpleString, cst.FormattedString, cst.ConcatenatedString)


def called(file: ParsedFile, func: cst.BaseExpression) -> str | None:
    """The name of a builtin, or of what an import gives, where the file gives that name no other meaning."""
    head = (dotted(func) or "").partition(".")[0]
    bound = [b for b in read_bindings(file.module) if b.name == head]
    if not bound:
        return func.value if isinstance(func, cst.Name) else None
    if len({b.origin for b in bound}) > 1 or any(b.origin is None or b.level for b in bound):
        return None
    return file.imports.resolve(func)


def tells(file: ParsedFile, func: cst.BaseExpression) -> bool:
    """Whether a call of `func` prints or logs its arguments, or writes a graph down."""
    name = called(file, func) or ""
    module, _, function = name.rpartition(".")
    if name == "print" or name in _WRITING or (module in _LOGGING and function in _TELLING):
        return True
    return isinstance(func, cst.Attribute) and func.attr.value in _TELLING and _is_logger(file, func.value)


def only_tells(file: ParsedFile, node: cst.CSTNode) -> bool:
    """Whether a statement prints or logs something, and what it computes for that has no effect.

    That may be a loop over what is told, or a condition of it.
    """
    if isinstance(node, (cst.For, cst.If)):
        seen = node.iter if isinstance(node, cst.For) else node.test
        blocks = [node.body, *([node.orelse] if node.orelse is not None else [])]
        lines = [line for block in blocks for line in _lines(block)]
        if isinstance(node, cst.For) and _is_used_up(file, seen):
            return False
        return only_looks(file, seen) and bool(lines) and all(only_tells(file, line) for line in lines)
    small = node.body[0] if isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1 else None
    call = small.value if isinstance(small, cst.Expr) else None
    if not isinstance(call, cst.Call) or not tells(file, call.func):
        return False
    if any(arg.star and _is_used_up(file, arg.value) for arg in call.args):
        return False
    return all(only_looks(file, arg) for arg in call.args)


def _lines(block: cst.CSTNode) -> list[cst.CSTNode]:
    """The statements of a block, or of an `elif`."""
    if isinstance(block, cst.Else):
        return _lines(block.body)
    return list(block.body) if isinstance(block, cst.IndentedBlock) else [block]


def of_graph(file: ParsedFile, node: cst.CSTNode) -> bool:
    """Whether a node asks for the variables or the step of TensorFlow 1's graph."""
    return any(called(file, call.func) in GRAPH for call in calls_in(node))


def only_looks(file: ParsedFile, node: cst.CSTNode) -> bool:
    """Whether an expression has no effect: it calls nothing but what looks at values, or at a clock."""
    if of_kinds(node, cst.NamedExpr, cst.Await, cst.Yield):
        return False
    looked = [one.iter for one in of_kinds(node, cst.CompFor)]
    looked += [arg.value for call in calls_in(node) for arg in call.args if _looks_through(call, arg)]
    if any(_is_used_up(file, one) for one in looked):
        return False
    return all(is_look(file, call.func) for call in calls_in(node))


#: What is asked of a module to say which one it is.
_OF_MODULES = ("__name__", "__version__", "__file__", "__doc__")


def shown_modules(file: ParsedFile) -> dict[cst.CSTNode, str]:
    """TensorFlow's modules among what a loop asks for names and versions (`for module in np, tf, keras:`)."""
    found: dict[cst.CSTNode, str] = {}
    for node in of_kinds(file.module, cst.For, cst.CompFor):
        if not isinstance(node.iter, (cst.Tuple, cst.List)):
            continue
        given = {one.value: file.imports.tensorflow(one.value) for one in node.iter.elements}
        modules = {one: name for one, name in given.items() if isinstance(one, cst.Name) and name in ("tf", "tf.keras")}
        asked = _asked(file, node.target) if modules and isinstance(node.target, cst.Name) else None
        if asked is not None and not ("__version__" in asked and "tf.keras" in modules.values()):  # Keras 2 has none
            found.update({one: name for one, name in modules.items() if name is not None})
    return found


def _asked(file: ParsedFile, target: cst.Name) -> set[str] | None:
    """What of modules' names and versions is asked of a name; None where something else is done with it."""
    asks = [one for one in of_kinds(file.module, cst.Attribute) if one.attr.value in _OF_MODULES]
    of = {one.value: one.attr.value for one in asks}
    others = [one for one in name_nodes(file.module) if one.value == target.value and one is not target]
    return {of[one] for one in others} if others and all(one in of for one in others) else None


def leaves_something(symbol: str) -> bool:
    """Whether a function of TensorFlow leaves something in the graph, beside what it returns."""
    return symbol.startswith(_LEAVING) and not symbol.startswith("tf.losses.get_")


def _looks_through(call: cst.Call, arg: cst.Arg) -> bool:
    """Whether a call goes through all elements of an argument."""
    name = call.func.value if isinstance(call.func, cst.Name) else ""
    joins = isinstance(call.func, cst.Attribute) and call.func.attr.value == "join"
    return bool(arg.star) or name in _LOOKS_THROUGH or joins


def _is_used_up(file: ParsedFile, node: cst.BaseExpression) -> bool:
    """Whether an expression may be, by a name of the file, what can be looked through only once."""
    if not isinstance(node, cst.Name):
        return isinstance(node, (cst.Subscript, cst.Attribute)) and any(
            isinstance(one, cst.Name) and _is_used_up(file, one) for one in nodes_in(node)[1:]
        )
    given = [value for target, value in all_given(file.module) if any(one.value == node.value for one in _of(target))]
    for value in given:
        for one in (value, *nodes_in(value)):
            if isinstance(one, cst.GeneratorExp):
                return True
            if isinstance(one, cst.Call) and (called(file, one.func) in _ONCE or _is_generator(file, one.func)):
                return True
    return False


def _of(target: cst.CSTNode) -> list[cst.Name]:
    return of_kinds(target, cst.Name)


def _is_generator(file: ParsedFile, func: cst.BaseExpression) -> bool:
    """Whether a function of the file, by its last name, is a generator."""
    name = func.attr.value if isinstance(func, cst.Attribute) else func.value if isinstance(func, cst.Name) else ""
    made = [one for one in functions_in(file.module) if one.name.value == name]
    return any(isinstance(inner, cst.Yield) for one in made for inner in nodes_in(one.body))


def is_look(file: ParsedFile, func: cst.BaseExpression) -> bool:
    """Whether a function only looks at what it is given, at the graph, or at a clock."""
    name = called(file, func)
    if name in (*_LOOKS, *_LOOKS_OF_NUMPY, *_CLOCKS) or name in GRAPH:
        return True
    return isinstance(func, cst.Attribute) and (isinstance(func.value, _TEXTS) or func.attr.value in _LOOKING)


def _is_logger(file: ParsedFile, node: cst.BaseExpression) -> bool:
    """Whether an expression is a logger: a call that gets one, or a name that is given nothing else."""
    if isinstance(node, cst.Call):
        return called(file, node.func) in _LOGGERS
    if not isinstance(node, cst.Name):
        return False
    bound = [b.node for b in read_bindings(file.module) if b.name == node.value]
    return bool(bound) and all(
        isinstance(one, cst.Assign)
        and all(isinstance(target.target, cst.Name) for target in one.targets)
        and isinstance(one.value, cst.Call)
        and called(file, one.value.func) in _LOGGERS
        for one in bound
    )


__all__ = ["called", "is_look", "leaves_something", "of_graph", "only_looks", "only_tells", "shown_modules", "tells"]
