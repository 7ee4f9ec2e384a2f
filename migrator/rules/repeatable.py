"""Which input functions may be called once more, or earlier, than an Estimator called them.

A Keras model has to know the shapes of its features when it is made, so that the new program asks an input function
for a dataset before the training does. That is no difference where the function only builds a dataset; one that draws
from numpy's generator would train on other data from there on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum

import libcst as cst

from migrator.findings import Severity
from migrator.names.bindings import Form, read_bindings
from migrator.program.calls import calls_in, nodes_in, parameters_of
from migrator.program.parsed import ParsedFile, Project, names_in
from migrator.program.region import reach
from migrator.program.scopes import free_names, path_to
from migrator.program.training import TrainingProgram
from migrator.rules.executions import given_in
from migrator.rules.rule import Rule
from migrator.walking import of_kinds

RULES = (
    Rule(
        "TFM618",
        "an input_fn that must not be called again",
        Severity.MANUAL,
        """
A Keras model is made for the shapes of its features, which an input function tells. An Estimator called each input
function once for every training and evaluation, so that one that draws from a generator of numpy, counts its calls or
takes the next of something gives other data when it is called for the shapes, too (measured: a training on
`np.random.permutation` of its data, where one more call changed the loss after an epoch from 0.5195 to 0.5381).

The shapes are asked of another input function of the program, where one may be called as often as you like, or the
dataset that told them is kept for the first training. Neither can be done here, since what comes first is decided when
the program runs, or a loop trains and evaluates on such data only. Draw outside of the input function, or give it a
generator of its own that it makes itself (`np.random.RandomState(7)`).
""",
    ),
)


class Effect(IntEnum):
    """What a further call of a function does."""

    NONE = 0
    READS = 1  # it may give something else at another time
    DRAWS = 2  # it changes what later calls give


_OWN_GENERATORS = ("RandomState", "default_rng", "Generator", "Random", "Philox", "PCG64", "SeedSequence")
#: Methods of generators, and of what hands its elements out one after the other.
_DRAWING = frozenset(
    (
        *("rand", "randn", "randint", "random_sample", "ranf", "integers", "permutation", "choice", "choices"),
        "permuted",
        *("normal", "standard_normal", "uniform", "binomial", "poisson", "exponential", "gauss", "randrange", "sample"),
        *("next_batch", "next", "__next__", "readline", "popleft", "bytes", "beta", "gamma", "multivariate_normal"),
    )
)
_CHANGING = frozenset(
    (
        *("append", "pop", "extend", "remove", "insert", "clear", "update", "add", "setdefault", "sort", "reverse"),
        "shuffle",
    )
)
_READING = ("open", "input", "glob.", "os.listdir", "os.path.", "os.walk", "os.scandir", "json.load", "pickle.load")
_READING_NUMPY = frozenset(("load", "loadtxt", "genfromtxt", "fromfile", "memmap"))
_READING_TENSORFLOW = ("tf.gfile.", "tf.io.gfile.", "tf.io.read_file", "tf.read_file", "tf.io.matching_files")
_BUILTINS = frozenset(
    (
        *("abs", "bool", "dict", "enumerate", "filter", "float", "frozenset", "getattr", "hasattr", "int"),
        "isinstance",
        *("iter", "len", "list", "map", "max", "min", "print", "range", "repr", "reversed", "round", "set", "sorted"),
        *("str", "sum", "super", "tuple", "type", "zip", "format", "any", "all", "slice", "vars"),
    )
)


def effect_of(project: Project, program: TrainingProgram, given: cst.BaseExpression | None) -> Effect:
    """What one more call of an input function does."""
    if given is None:
        return Effect.NONE
    found = [_Function(file, node).effect() for node, file in _behind(project, program, given)]
    return max(found, default=Effect.NONE)


def acts(file: ParsedFile, statement: cst.CSTNode) -> bool:
    """Whether a statement may do something to what functions read: it calls more than TensorFlow and builtins."""
    if isinstance(statement, (cst.FunctionDef, cst.ClassDef)):
        return False
    inner = {id(call) for node in of_kinds(statement, cst.Lambda) for call in calls_in(node)}
    return any(
        file.imports.tensorflow(call.func) is None
        and not (isinstance(call.func, cst.Name) and call.func.value in _BUILTINS)
        for call in calls_in(statement)
        if id(call) not in inner
    )


def _behind(
    project: Project, program: TrainingProgram, given: cst.BaseExpression
) -> Iterator[tuple[cst.CSTNode, ParsedFile]]:
    """The functions that run when an input function is called: those that it mentions, directly or not."""
    file, seen = program.file, set[int]()
    queue: list[cst.CSTNode] = [given]
    scopes = [one for one in path_to(file.module, program.scope) if isinstance(one, (cst.Module, cst.FunctionDef))]
    local: list[cst.CSTNode] = []
    mentions: list[cst.CSTNode] = []
    while queue:
        node = queue.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, (cst.FunctionDef, cst.Lambda)):
            local.append(node)
        else:
            mentions.append(node)
        names = free_names(node) if isinstance(node, (cst.FunctionDef, cst.Lambda)) else names_in(node)
        for value in (value for name in names for scope in scopes for value in given_in(scope, name)):
            if isinstance(value, (cst.FunctionDef, cst.Lambda)):
                queue.append(value)
            elif isinstance(value, cst.Call) and not isinstance(node, (cst.FunctionDef, cst.Lambda)):
                queue += _made_of(value)
    found: dict[cst.CSTNode, ParsedFile] = dict.fromkeys(local, file)
    for node in (*local, *mentions):
        reached = reach(project, file, node)
        found.update({one: where for one, where in reached.items() if one not in mentions})
    yield from found.items()


def _made_of(call: cst.Call) -> list[cst.BaseExpression]:
    """What a call that gives an input function is made of: `partial(function, ...)`, `maker(...)`."""
    given = [arg.value for arg in call.args]
    return [call.func, *(value for value in given if isinstance(value, (cst.Name, cst.Attribute, cst.Lambda)))]


@dataclass
class _Function:
    """A function, a lambda or a class that may run when an input function is called."""

    file: ParsedFile
    node: cst.CSTNode
    own: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.parameters = {
            p.name.value
            for f in nodes_in(self.node)
            if isinstance(f, (cst.FunctionDef, cst.Lambda))
            for p in parameters_of(f)
        }
        bound = {one.name for one in read_bindings(self.node)} - self.parameters
        told = of_kinds(self.node, cst.Global, cst.Nonlocal)
        self.outside = {item.name.value for s in told for item in s.names}
        named = {self.node.name.value} if isinstance(self.node, (cst.FunctionDef, cst.ClassDef)) else set()
        aliases = {
            target.target.value
            for one in nodes_in(self.node)
            if isinstance(one, cst.Assign) and self._root(one.value) not in bound | {None}
            for target in one.targets
            if isinstance(target.target, cst.Name)
        }
        self.own = bound - self.outside - {"self", "cls"} - named - aliases
        self.imported = {one.name for one in read_bindings(self.node) if one.form is Form.IMPORTED}
        made = [
            node
            for node in nodes_in(self.node)
            if isinstance(node, cst.Assign) and isinstance(node.value, cst.Call) and self._makes_generator(node.value)
        ]
        self.generators = {name for node in made for target in node.targets for name in names_in(target)}

    def _makes_generator(self, call: cst.Call) -> bool:
        last = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
        return isinstance(last, cst.Name) and last.value in _OWN_GENERATORS

    def effect(self) -> Effect:
        """What a call of it does."""
        bound = {one.name for one in read_bindings(self.node)}
        if self.outside & bound or any(map(self._changes, nodes_in(self.node))):
            return Effect.DRAWS
        return max((self._of_call(call) for call in calls_in(self.node)), default=Effect.NONE)

    def _root(self, node: cst.BaseExpression) -> str | None:
        while isinstance(node, (cst.Attribute, cst.Subscript)):
            node = node.value
        return node.value if isinstance(node, cst.Name) else None

    def _changes(self, node: cst.CSTNode) -> bool:
        """Whether a statement adds to an attribute or an element of something from outside (`self.calls += 1`)."""
        if not isinstance(node, cst.AugAssign) or not isinstance(node.target, (cst.Attribute, cst.Subscript)):
            return False
        root = self._root(node.target)
        return root is not None and root not in self.own and root not in self.parameters - {"self", "cls"}

    def _of_call(self, call: cst.Call) -> Effect:
        func, imports = call.func, self.file.imports
        tensorflow = imports.tensorflow(func)
        if tensorflow is not None:
            return Effect.READS if tensorflow.startswith(_READING_TENSORFLOW) else Effect.NONE
        is_local = self._root(func) in self.own - self.imported  # whatever the file imports by that name
        name = None if is_local else imports.resolve(func)
        if isinstance(func, cst.Name) and name is None:
            if func.value == "next":
                return Effect.DRAWS
            return Effect.READS if func.value in _READING else Effect.NONE
        if name is not None:
            root, _, last = name.rpartition(".")
            if last in _OWN_GENERATORS:
                return Effect.NONE
            if root in ("numpy.random", "random", "numpy.random.mtrand"):
                return Effect.DRAWS
            if root == "numpy":
                return Effect.READS if last in _READING_NUMPY else Effect.NONE
            return Effect.READS
        return self._of_method(call)

    def _of_method(self, call: cst.Call) -> Effect:
        if not isinstance(call.func, cst.Attribute):
            return Effect.NONE
        method, root = call.func.attr.value, self._root(call.func.value)
        if root is None or root in self.generators or isinstance(call.func.value, cst.Call):
            return Effect.NONE
        if method in _DRAWING:
            return Effect.DRAWS if root not in self.own else Effect.NONE
        outside = root not in self.own and root not in self.parameters - {"self", "cls"}
        plain = method in _CHANGING and (outside or (method == "shuffle" and root not in self.own))
        return Effect.DRAWS if plain and self._is_statement(call) else Effect.NONE

    def _is_statement(self, call: cst.Call) -> bool:
        """Whether the result of a call is left, as it is of what changes its object (`rng.shuffle(x)`), or a `pop`."""
        assert isinstance(call.func, cst.Attribute)
        if call.func.attr.value == "pop":
            return True
        return any(isinstance(node, cst.Expr) and node.value is call for node in nodes_in(self.node))
