"""Which statements of a model_fn a method of the Keras model computes, and which tensors of the network it needs.

A model_fn computes network, loss and metrics in one body. A Keras model computes its network in one place, and loss
and metrics in methods that see the features, the labels and what the network answered. What reads the labels or the
model's variables goes to the method; what the network made becomes an output.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import IntEnum

import libcst as cst

from migrator.names.bindings import Form, changes_in
from migrator.names.imports import ImportMap, dotted
from migrator.program.body import Body, names_given
from migrator.program.calls import calls_in, nodes_in, parameters_of, string
from migrator.program.modes import EVAL, TRAIN, ModalStatement
from migrator.program.parsed import Blocked, ParsedFile, names_in

_MUTATORS = frozenset(("append", "extend", "insert", "update", "add", "setdefault", "pop", "remove", "clear"))
_METHODS = _MUTATORS | {
    *("get", "get_shape", "as_list", "items", "keys", "values", "set_shape", "eval", "index", "count", "with_rank"),
    *("format", "join", "split", "startswith", "endswith", "lower", "upper", "strip", "concatenate", "merge_with"),
}
# Python's own functions that may run any code, or change what is around them.
_NOT_PLAIN = "eval exec compile __import__ open input globals locals vars setattr delattr super breakpoint next iter"
_PLAIN = frozenset(dir(builtins)) - frozenset(_NOT_PLAIN.split())
_TELLING = ("tf.", "logging.", "absl.", "warnings.", "time.", "sys.", "os.", "pprint.")
_DEPTH = 4  # of functions that hand on what they are given
_LIBRARIES = ("np.", "numpy.", "math.", "functools.", "itertools.", "operator.", "collections.", "six.")
# What makes variables, or is a part of the network whatever it reads.
_NETWORK = (
    "tf.layers.",
    "tf.get_variable",
    "tf.Variable",
    "tf.contrib.",
    "tf.keras.layers.",
    "tf.keras.Sequential",
    "tf.keras.Model",
    "tf.keras.applications.",
    "tf.nn.rnn_cell.",
    "tf.nn.dynamic_rnn",
    "tf.nn.bidirectional_dynamic_rnn",
    "tf.nn.static_rnn",
    "tf.feature_column.",
    "tf.make_template",
    "tf.py_func",
    "tf.assign",
    "tf.placeholder",
    "tf.train.",
    "tf.metrics.",
    "tf.estimator.",
)
_OF_MODEL = (
    "tf.get_collection",
    "tf.trainable_variables",
    "tf.losses.get_",
    "tf.train.get_global_step",
    "tf.train.get_or_create_global_step",
)


@dataclass(frozen=True)
class Outlined:
    """The part of a model_fn that goes to a method.

    `statements` are the indices of its statements, in order, `outputs` the names of the network's tensors that it
    reads, and `reads` every name that the method finds given: outputs, features and labels. `moved` are those of the
    statements that nothing else can run, because they read the labels or the model.
    """

    statements: tuple[int, ...]
    outputs: tuple[str, ...]
    reads: frozenset[str]
    moved: frozenset[int]


def given(statement: ModalStatement) -> set[str]:
    """Every name that a statement gives a value to or changes in place (`losses.append(x)`)."""
    found = names_given((statement,))
    for call in calls_in(statement.node):
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in _MUTATORS:
            if isinstance(call.func.value, cst.Name):
                found.add(call.func.value.value)
    return found


def touched(statement: ModalStatement, file: ParsedFile) -> set[str]:
    """The names of `given`, and those that a line hands to code of the program that may change what they stand for.

    `settings.boost()` and `boost(settings)` do; what libraries are given stays as it is.
    """
    return given(statement) | _passed_to_calls(statement.node, file, 0)


def acts(statement: ModalStatement, file: ParsedFile) -> bool:
    """Whether a statement may change what others read by other names: it runs for what it does.

    A line that only calls something does, but for TensorFlow, what Python has, and what tells people something; and one
    that changes a part of what the file has at its top.
    """
    parts = {one.name for one in changes_in(statement.node) if one.form is Form.PART}
    if parts & (file.names_at_top - file.imports.names.keys()):
        return True
    for line in nodes_in(statement.node):
        call = line.value if isinstance(line, cst.Expr) else None
        if not isinstance(call, cst.Call):
            continue
        symbol = file.imports.resolve(call.func)
        own = isinstance(call.func, cst.Name) and call.func.value not in file.functions and call.func.value in _PLAIN
        if not own and (symbol is None or not symbol.startswith(_TELLING)):
            return True
    return False


def _passed_to_calls(node: cst.CSTNode, file: ParsedFile, depth: int) -> set[str]:
    """The names that lines which only call something hand to code of the program."""
    found: set[str] = set()
    for line in nodes_in(node):
        call = line.value if isinstance(line, cst.Expr) else None
        if not isinstance(call, cst.Call) or file.imports.resolve(call.func) is not None:
            continue
        helper = file.functions.get(call.func.value) if isinstance(call.func, cst.Name) else None
        if isinstance(call.func, cst.Name) and helper is None and call.func.value in _PLAIN:
            continue
        if helper is not None and depth < _DEPTH and not _changes_arguments(file, helper, depth):
            continue
        parts = [arg.value for arg in call.args]
        if isinstance(call.func, cst.Attribute):
            parts.append(call.func.value)
        found |= {name for part in parts for name in names_in(part)} - file.imports.names.keys()
    return found


def _changes_arguments(file: ParsedFile, helper: cst.FunctionDef, depth: int) -> bool:
    """Whether a function of the file may change what it is given."""
    stars = [one for one in (helper.params.star_arg, helper.params.star_kwarg) if isinstance(one, cst.Param)]
    own = {param.name.value for param in (*parameters_of(helper), *stars)}
    changed = {one.name for one in changes_in(helper) if one.form in (Form.PART, Form.CALLED, Form.AUGMENTED)}
    return bool(own & (changed | _passed_to_calls(helper.body, file, depth + 1)))


def of_labels(body: Body) -> frozenset[str]:
    """The labels parameter and every name that is computed from it, however indirectly."""
    return _computed_from(body, lambda node: False)


def _of_labels_or_model(body: Body) -> frozenset[str]:
    return _computed_from(body, lambda node: reads_model(node, body.file.imports))


def _computed_from(body: Body, starts: Callable[[cst.CSTNode], bool]) -> frozenset[str]:
    """The labels and what is computed from them or from what `starts` a chain."""
    names = {name for name in (body.parameters.labels,) if name is not None}
    before = -1
    while len(names) != before:
        before = len(names)
        for statement in body.statements:
            if names & names_in(statement.node) or starts(statement.node):
                names |= given(statement)
    return frozenset(names)


def reads_model(node: cst.CSTNode, imports: ImportMap) -> bool:
    """Whether a node reads the model's variables, collections or step."""
    return any((imports.resolve(call.func) or "").startswith(_OF_MODEL) for call in calls_in(node))


def outline(
    body: Body,
    roots: Sequence[tuple[cst.BaseExpression, int]],
    consumed: Collection[int],
    mode: str,
    apart: bool = False,
) -> Outlined:
    """What a method needs that computes `roots` (expressions, each with the number of statements before it) in a mode.

    `consumed` are statements that say something else (train_op, metrics, summaries). `apart`: this mode alone runs the
    method, so that what it computes for itself belongs there. Raises Blocked (TFM301, TFM311).
    """
    return _Outliner(body, roots, consumed, mode, apart).outline()


class _Kind(IntEnum):
    """What a statement's values depend on."""

    STATIC = 0  # neither features nor labels: a number read from params, say
    FEATURES = 1  # features only, and no variables
    NETWORK = 2
    METHOD = 3  # labels, or the model's own variables and losses


class _Outliner:
    def __init__(
        self,
        body: Body,
        roots: Sequence[tuple[cst.BaseExpression, int]],
        consumed: Collection[int],
        mode: str,
        apart: bool,
    ) -> None:
        self.body = body
        self.roots = roots
        self.mode = mode
        self.apart = apart
        self.statements = body.statements
        self.live = [i for i, s in enumerate(body.statements) if i not in consumed and mode in s.modes]
        self.given = {i: given(body.statements[i]) for i in self.live}
        self.read = {i: names_in(body.statements[i].node) for i in self.live}
        self.tainted = _of_labels_or_model(body)
        self.kinds: dict[int, _Kind] = {}

    def outline(self) -> Outlined:
        needed: dict[str, int] = {}  # name -> how many statements may come before its last reader
        for expression, position in self.roots:
            for name in names_in(expression):
                needed[name] = max(needed.get(name, 0), position)
        method: set[int] = set()
        network: dict[str, int] = {}
        for index in reversed(self.live):
            names = {name for name in self.given[index] if needed.get(name, -1) > index}
            if not names:
                continue
            kind = self._kind(index)
            own = self.apart and self._is_own(index, method)
            if kind is _Kind.NETWORK and not own:
                for name in names:
                    network.setdefault(name, index)
                continue
            if kind is _Kind.STATIC and not own and not any(names & self.given[i] for i in method):
                continue
            if kind is _Kind.METHOD:
                check_pure(self.statements[index].node, self.body)
            method.add(index)
            for name in self.read[index]:
                needed[name] = max(needed.get(name, 0), index)
        self._check_order(method, network)
        outputs = tuple(sorted(network, key=lambda name: (network[name], name)))
        parameters = {self.body.parameters.features, self.body.parameters.labels} & needed.keys()
        moved = frozenset(i for i in method if self._kind(i) is _Kind.METHOD)
        reads = frozenset(str(name) for name in parameters - network.keys()) | set(outputs)
        return Outlined(tuple(sorted(method)), outputs, reads, moved)

    def _is_own(self, index: int, method: Collection[int]) -> bool:
        """Whether a statement computes for the method alone what the mode has for itself: numbers that the mode
        decides, or what is computed of the network's tensors without variables, and read by statements of the method.
        """
        statement, kind = self.statements[index], self._kind(index)
        shared = {TRAIN, EVAL} <= statement.modes and not self.read[index] & self.body.about
        if shared and not (kind is _Kind.STATIC and self.given[index] & self._given_by_one()):
            return False
        if kind is _Kind.METHOD or not isinstance(statement.node, cst.SimpleStatementLine):
            return False
        if any("dropout" in (self.body.file.imports.resolve(call.func) or "") for call in calls_in(statement.node)):
            return False  # a layer of Keras, which a method cannot make
        try:
            check_pure(statement.node, self.body)
        except Blocked:
            return False
        if kind is _Kind.STATIC:
            return True
        names = self.given[index]
        once = not any(names & self.given[other] for other in self.live if other != index)
        return once and all(other in method for other in self.live if other > index and names & self.read[other])

    def _given_by_one(self) -> set[str]:
        """The names that a statement of one of training and evaluation gives a value."""
        ones = [one for one in self.statements if len({TRAIN, EVAL} & one.modes) == 1]
        return set[str]().union(*(given(one) for one in ones))

    def _check_order(self, method: set[int], network: dict[str, int]) -> None:
        """What the method finds given must mean the same wherever it reads it."""
        parameters = {self.body.parameters.features, self.body.parameters.labels} - network.keys()
        for name in [*network, *(str(name) for name in parameters if name is not None)]:
            givers = [i for i in self.live if i not in method and name in self.given[i]]
            readers = [i for i in method if name in self.read[i]]
            readers += [position for expression, position in self.roots if name in names_in(expression)]
            if givers and readers and max(givers) >= min(readers):
                node = self.statements[max(givers)].node
                raise Blocked("TFM301", node, f"`{name}` is reassigned after the loss reads it: use another name")
            if givers and readers and name not in network:
                raise Blocked("TFM301", self.statements[max(givers)].node, f"`{name}` is changed by the network")
        known = {*network, *(name for name in parameters if name is not None)}
        own = set().union(*(self.given[i] for i in method), set())
        for index in sorted(method):
            node = self.statements[index].node
            early = (_read_first(node) & own) - known
            if early:
                raise Blocked("TFM301", node, f"`{sorted(early)[0]}` has a value here that the loss does not compute")
            known |= self.given[index]

    def _kind(self, index: int) -> _Kind:
        if index not in self.kinds:
            self.kinds[index] = _Kind.STATIC  # while it is worked out: a loop adds nothing to itself
            self.kinds[index] = self._work_out(index)
        return self.kinds[index]

    def _work_out(self, index: int) -> _Kind:
        node = self.statements[index].node
        if self.read[index] & self.tainted or reads_model(node, self.body.file.imports):
            return _Kind.METHOD
        try:
            check_pure(node, self.body)
        except Blocked:
            return _Kind.NETWORK
        found = _Kind.STATIC
        for name in self.read[index]:
            if name == self.body.parameters.features:
                found = max(found, _Kind.FEATURES)
            for other in self.live:
                if name in self.given[other] and other != index:
                    found = max(found, self._kind(other))
        return found


def _read_first(node: cst.CSTNode) -> set[str]:
    """The names that a plain assignment reads; nothing for statements that may give a value before they read it."""
    if not isinstance(node, cst.SimpleStatementLine) or len(node.body) != 1:
        return set()
    small = node.body[0]
    if isinstance(small, cst.Assign):
        return names_in(small.value)
    return names_in(small)


def check_pure(node: cst.CSTNode, body: Body) -> None:
    """Refuses what may make variables or change state: the loss cannot do that. Raises Blocked (TFM311)."""
    _check_pure(node, body, set())


def _is_keras_loss(node: cst.BaseExpression, imports: ImportMap) -> bool:
    """`tf.keras.losses.X(..., reduction=...NONE)`, which gives the loss of every example wherever it is called."""
    if not isinstance(node, cst.Call) or not (imports.tensorflow(node.func) or "").startswith("tf.keras.losses."):
        return False
    given = [arg.value for arg in node.args if arg.keyword is not None and arg.keyword.value == "reduction"]
    return (
        len(given) == 1 and (string(given[0]) or imports.resolve(given[0]) or "").rpartition(".")[2].lower() == "none"
    )


def _check_pure(node: cst.CSTNode, body: Body, seen: set[str]) -> None:
    imports = body.file.imports
    for call in calls_in(node):
        if _is_keras_loss(call.func, imports):
            continue
        name = imports.tensorflow(call.func)
        if name is not None:
            if name.startswith(_NETWORK) and not name.startswith(_OF_MODEL):
                raise Blocked("TFM311", call, f"the loss calls `{name}`, which belongs to the network")
            continue
        written, _ = body.file.home(call)  # another file, where its helper was inlined
        function = written.functions.get(call.func.value) if isinstance(call.func, cst.Name) else None
        if function is not None:
            if function.name.value not in seen:
                _check_pure(function.body, body, seen | {function.name.value})
            continue
        origin = (imports.resolve(call.func) or dotted(call.func) or "") + "."
        if origin.startswith(_LIBRARIES) or (isinstance(call.func, cst.Name) and call.func.value in _PLAIN):
            continue
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in _METHODS:
            continue
        text = body.file.code(call.func)
        raise Blocked("TFM311", call, f"the loss calls `{text}`, which may make variables of the network")
