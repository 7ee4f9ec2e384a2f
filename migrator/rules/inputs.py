"""Input functions: back from iterators to datasets."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import libcst as cst

from migrator.emit.names import free
from migrator.findings import Severity
from migrator.names.bindings import read_bindings
from migrator.names.imports import ImportMap
from migrator.program.calls import calls_in, is_none
from migrator.program.parsed import Blocked, name_nodes, names_in
from migrator.program.scopes import returns_in
from migrator.rules.iterators import initializable, of_collection, setting_of
from migrator.rules.rule import Rule
from migrator.walking import own_of_kinds, walk

RULES = (
    Rule(
        "TFM601",
        "an input_fn returns its dataset",
        Severity.MANUAL,
        """
`return dataset.make_one_shot_iterator().get_next()`, in one line or over several statements, becomes `return dataset`,
and `return {"x": features}, labels` of such tensors a `map` that does the same. Statements that work on the tensors
after `get_next()` move into a function `prepare` for `map`, as they are. An input function where they branch, loop or
call what may have effects of its own, that uses another kind of iterator, or that makes tensors without a dataset, is
left: do that work in `dataset.map` and return the dataset.
""",
    ),
    Rule(
        "TFM602",
        "how the input_fn is passed",
        Severity.MANUAL,
        """
Understood: the name of a function without required parameters (or with `params`, `mode`), a lambda that takes at most
these, `functools.partial(function, ...)`, and a call that returns the input function.
""",
    ),
    Rule(
        "TFM619",
        "a network that reads its batch size",
        Severity.MANUAL,
        """
The network reads the size of its batches (`features.shape[0]`) where it is made. An Estimator made it once for every
training and evaluation, with the size that this one's input function gave. A Keras model is made once: it knows a size
where all input functions give the same one, written as a constant (`batch(8, drop_remainder=True)`), and the model is
not on several devices. Elsewhere use `tf.shape(features)[0]` in the network, or -1 in `tf.reshape`. The bridge
makes the network for each size, as an Estimator did.
""",
    ),
    Rule(
        "TFM617",
        "data that may end between two periods of train_and_evaluate",
        Severity.REVIEW,
        """
With `save_checkpoints_steps`, train_and_evaluate becomes a `fit` whose epochs are the periods between two checkpoints.
An Estimator stopped where its data ended, at a last checkpoint and evaluation. It is not seen that these have no end
(`repeat()` without a number), and where they end before `max_steps`, `fit` does something else (measured on 2.21 with
data of 20 batches): two epochs of 20 steps train on them twice, on Keras 3 so do four epochs of 10; else it stops as
the Estimator did, with a warning and one step too many in `optimizer.iterations`. Repeat the data, or let `max_steps`
be no more than they have. A custom loop (`--loop custom`) stops as the Estimator did.
""",
    ),
    Rule(
        "TFM616",
        "the order of a shuffle with a seed",
        Severity.REVIEW,
        """
`fit` and `evaluate` of Keras 2 start a dataset that ends twice before the first batch (also what `take` leaves of one
without an end), and at each start `dataset.shuffle(n, seed)` has another order: the new program reads the examples in
that of the second (measured with tf_keras on 2.21; `verify` says DIFFERENT at L2). It trains on the same examples as
often. Of data that are seen to repeat for ever (`repeat()` without a number), and whose steps are given, nothing is
reported: they are written as `fit(dataset, steps_per_epoch=steps)`, which starts them once and reads TensorFlow 1's
order. So does Keras 3 on one device. Evaluations between the periods of `train_and_evaluate` start one dataset again
and again where every evaluation of an Estimator had one of its own. Where the very order has to be kept, repeat the
data for ever; a custom loop (`--loop custom`) keeps it, too.
""",
    ),
)


@dataclass
class InputChanges:
    """What to replace in a function that hands out `get_next()`.

    `expressions` are new by node, where None removes a statement. `functions` stand in place of a statement;
    `moved` are the statements that they took in. `fed` says that placeholders have become what they were fed.
    """

    expressions: dict[cst.CSTNode, cst.BaseExpression | None] = field(default_factory=dict)
    functions: dict[cst.CSTNode, cst.FunctionDef] = field(default_factory=dict)
    moved: set[cst.CSTNode] = field(default_factory=set)
    fed: bool = False


def rewrite_returns(
    function: cst.FunctionDef,
    imports: ImportMap,
    functions: Collection[str] = frozenset(),
    setters: Collection[cst.CSTNode] = (),
) -> InputChanges:
    """The changes of an input function; none of a function without iterators.

    `functions` are the names of the user's own functions, which may be called in a `map` as well, `setters` lines that
    give a hook, which is left out, the initializer of an iterator to run. Raises Blocked (TFM601) when an iterator is
    used in a way that is not understood.
    """
    if not isinstance(function.body, cst.IndentedBlock):
        return InputChanges()
    found = _iterators(function.body)
    if not found:
        return InputChanges()
    reader = _Reader(function, imports, functions, setters)
    reader.block(function.body.body, _State({}, {}, set()))
    for call in found:
        if call not in reader.covered:
            raise _other_use(call)
    for statement in reader.made:
        if statement not in reader.used:
            raise _other_use(statement)
    if reader.initializers.keys() - reader.initialized:
        raise _other_use(found[0])
    return InputChanges(reader.changes, reader.functions, reader.moved, bool(reader.fed))


def check_returns(function: cst.FunctionDef, imports: ImportMap, functions: Collection[str] = frozenset()) -> None:
    """Raises Blocked (TFM601) when a function known to be an input function returns tensors instead of a dataset."""
    changes = rewrite_returns(function, imports, functions).expressions
    for node in returns_in(function.body):
        value = node.value
        if value is None or value in changes:
            continue
        if isinstance(value, cst.Name):
            assigned = own_of_kinds(function.body, cst.Assign, inner=(cst.FunctionDef,))
            given = [a.value for a in assigned if _shape(a.targets[0].target) == value.value]
            value = next((v for v in given if isinstance(v, (cst.Tuple, cst.Dict))), value)
        if isinstance(value, (cst.Tuple, cst.Dict)) or _is_dict_call(value):
            raise Blocked("TFM601", node, "this input_fn returns tensors: return a `tf.data.Dataset`")


def seeded_shuffles(function: cst.FunctionDef) -> list[Blocked]:
    """A remark for each `dataset.shuffle` with a seed, whose order Keras changes."""
    message = "Keras restarts the data, so the order for this seed changes (the examples are the same)"
    return [Blocked("TFM616", call, message) for call in calls_in(function.body) if _is_seeded(call)]


def _is_seeded(node: cst.Call) -> bool:
    if not isinstance(node.func, cst.Attribute) or node.func.attr.value not in ("shuffle", "make_csv_dataset"):
        return False
    if node.func.attr.value == "make_csv_dataset":  # which has another order on TensorFlow 2.21, too
        named = {arg.keyword.value: arg.value for arg in node.args if arg.keyword is not None}
        return not is_none(named.get("shuffle_seed")) or len([arg for arg in node.args if arg.keyword is None]) > 13
    seeds = [arg.value for arg in node.args if arg.keyword is not None and arg.keyword.value == "seed"]
    plain = [arg.value for arg in node.args if arg.keyword is None and not arg.star]
    return any(not is_none(seed) for seed in [*seeds, *plain[1:2]])


def is_iterator(node: cst.Call) -> bool:
    """Whether a call makes an iterator of TensorFlow 1."""
    return isinstance(node.func, cst.Attribute) and node.func.attr.value in _MAKERS


_MAKERS = ("make_one_shot_iterator", "make_initializable_iterator")


def _other_use(node: cst.CSTNode) -> Blocked:
    return Blocked("TFM601", node, "these iterator tensors are used, not just returned: do this in `Dataset.map`")


@dataclass
class _Element:
    """`target = iterator.get_next()`: the target, the dataset behind it, and the statements that made it."""

    target: cst.BaseExpression
    dataset: cst.BaseExpression
    made: tuple[cst.CSTNode, ...]


@dataclass
class _State:
    """The iterators and elements that are known at a place, and names of those made in blocks that ended."""

    iterators: dict[str, tuple[cst.BaseExpression, cst.CSTNode]]
    elements: dict[str, _Element]
    gone: set[str]

    def copy(self) -> _State:
        return _State(dict(self.iterators), dict(self.elements), set(self.gone))

    def names(self) -> set[str]:
        """Names that must not be mentioned in any statement that is not understood."""
        targets = [names_in(element.target) for element in self.elements.values()]
        return set(self.iterators) | self.gone | {name for found in targets for name in found}

    def behind(self) -> set[str]:
        """Names that the datasets are made of."""
        datasets = [dataset for dataset, _ in self.iterators.values()]
        datasets += [element.dataset for element in self.elements.values()]
        return {name for dataset in datasets for name in names_in(dataset)}


class _Reader:
    """Follows `iterator = ...`, `x, y = iterator.get_next()` and `return ...` through the blocks of a function."""

    def __init__(
        self,
        function: cst.FunctionDef,
        imports: ImportMap,
        functions: Collection[str],
        setters: Collection[cst.CSTNode],
    ) -> None:
        self.imports = imports
        self.function = function
        self.own = functions
        self.functions: dict[cst.CSTNode, cst.FunctionDef] = {}
        self.moved: set[cst.CSTNode] = set()
        self.changes: dict[cst.CSTNode, cst.BaseExpression | None] = {}
        self.covered: set[cst.CSTNode] = set()
        self.made: list[cst.CSTNode] = []
        self.used: set[cst.CSTNode] = set()
        self.locals = _stores(function.body)
        self.initializers: dict[str, cst.CSTNode] = {}
        self.initialized: set[str] = set()
        self.fed: dict[str, cst.BaseExpression] = {}
        self._read_initializers(setters)

    def _read_initializers(self, setters: Collection[cst.CSTNode]) -> None:
        """The lines that say how an initializable iterator is initialized, and what they feed."""
        lines = own_of_kinds(self.function.body, cst.SimpleStatementLine, inner=(cst.FunctionDef,))
        for line in lines:
            setting = setting_of(line) if any(line is one for one in setters) else None
            name = setting.iterator if setting is not None else of_collection(line.body[0], self.imports)
            if name is None or len(line.body) != 1:
                continue
            if name in self.initializers:
                raise _other_use(line)
            self.initializers[name] = line
            self.fed.update(setting.fed if setting is not None else {})
        mentions = name_nodes(self.function)
        order = {id(node): index for index, node in enumerate(mentions)}
        for name, value in self.fed.items():
            made = [line for line in lines if _placeholder(line, name, self.imports) is not None]
            bound = [binding for binding in read_bindings(self.function.body) if binding.name == name]
            if len(made) != 1 or len(bound) != 1:
                raise _other_use(value)
            self.changes[made[0]] = None
            inside = [n for node in (made[0], *self.initializers.values()) for n in name_nodes(node)]
            reads = [n for n in mentions if n.value == name and not any(n is other for other in inside)]
            first = min((order[id(n)] for n in reads), default=0)
            sources = [b for b in read_bindings(self.function.body) if b.name in names_in(value)]
            if not reads or any(order[id(n)] >= first for b in sources for n in name_nodes(b.node)):
                raise _other_use(value)
            call = _placeholder(made[0], name, self.imports)
            assert call is not None
            for node in reads:
                self.changes[node] = _instead_of(call, value)

    def block(self, body: Sequence[cst.BaseStatement], state: _State) -> None:
        for index, statement in enumerate(body):
            if statement in self.changes and self.changes[statement] is None:
                continue
            if any(statement is line for line in self.initializers.values()):
                self.changes[statement] = None
            elif isinstance(statement, cst.SimpleStatementLine):
                if len(statement.body) != 1 or not self._simple(statement, statement.body[0], state):
                    self._check(statement, state)
                elif self._moves(statement, body[index + 1 :], state):
                    break
            elif isinstance(statement, (cst.If, cst.With, cst.For, cst.While, cst.Try)):
                self._compound(statement, state)
            else:
                self._check(statement, state)
        if body and all(s in self.changes or s in self.moved for s in body):
            raise _other_use(body[0])

    def _compound(self, statement: cst.BaseCompoundStatement, state: _State) -> None:
        if not _iterators(statement) and not state.names() & names_in(statement):
            self._check(statement, state)
            return
        for part in statement.children:
            if isinstance(part, cst.IndentedBlock):
                if isinstance(statement, cst.With):
                    self.block(part.body, state)
                    continue
                inner = state.copy()
                if isinstance(statement, (cst.For, cst.While)) and _stores(part) & (state.behind() | state.names()):
                    raise _other_use(statement)
                self.block(part.body, inner)
                state.gone |= inner.names() - state.names()
                if _stores(part) & state.behind():
                    raise _other_use(statement)
            elif isinstance(part, (cst.If, cst.Else, cst.ExceptHandler, cst.Finally)):
                self._compound(part, state)  # type: ignore[arg-type]
            elif not isinstance(part, (cst.BaseParenthesizableWhitespace, cst.TrailingWhitespace, cst.EmptyLine)):
                self._check(part, state)

    def _check(self, node: cst.CSTNode, state: _State) -> None:
        """Refuses a statement that uses the tensors, or changes what the datasets are made of."""
        if state.names() & names_in(node) or state.behind() & _stores(node):
            raise _other_use(node)

    def _simple(self, statement: cst.SimpleStatementLine, small: cst.BaseSmallStatement, state: _State) -> bool:
        if isinstance(small, cst.Assign) and len(small.targets) == 1:
            return self._assign(statement, small, small.targets[0].target, state)
        if isinstance(small, cst.Return) and small.value is not None:
            return self._return(small.value, state)
        return False

    def _assign(
        self, statement: cst.SimpleStatementLine, small: cst.Assign, target: cst.BaseExpression, state: _State
    ) -> bool:
        before = state.behind()  # a name may go on to stand for the tensors: `dataset = dataset...get_next()` goes
        dataset = self._iterated(small.value, target)
        source = _next(small.value, self.imports, {name: made[0] for name, made in state.iterators.items()})
        if dataset is not None and isinstance(target, cst.Name):
            self._check(small.value, state)
            self._check(target, state)
            state.iterators[target.value] = dataset, statement
        elif source is not None:
            self._check(target, state)
            made: tuple[cst.CSTNode, ...] = (statement,)
            name = _iterator_name(small.value)
            if name is not None:
                made = (state.iterators.pop(name)[1], statement)
                state.gone.add(name)
            else:
                self._check(small.value, state)
            state.elements[_shape(target)] = _Element(target, source, made)
        else:
            return False
        if before & _stores(statement):
            raise _other_use(statement)
        self._cover(small.value)
        self.made.append(statement)
        self.changes[statement] = None
        return True

    def _iterated(self, value: cst.BaseExpression, target: cst.BaseExpression) -> cst.BaseExpression | None:
        """The dataset of an iterator that Estimator would make itself: a one-shot one, or one that is initialized."""
        dataset = initializable(value, self.imports)
        if dataset is not None and isinstance(target, cst.Name) and target.value in self.initializers:
            self.initialized.add(target.value)
            return dataset
        return _one_shot(value, self.imports)

    def _return(self, value: cst.BaseExpression, state: _State) -> bool:
        if isinstance(value, cst.Lambda):
            # What makes input functions: `return lambda: dataset.make_one_shot_iterator().get_next()`.
            return _next(value.body, self.imports, {}) is not None and self._return(value.body, state)
        source = _next(value, self.imports, {name: made[0] for name, made in state.iterators.items()})
        name = _iterator_name(value)
        element = state.elements.get(_shape(value))
        if source is not None:
            if name is not None:
                self.used.add(state.iterators[name][1])
            else:
                self._check(value, state)
            self._cover(value)
        elif element is not None:
            source = element.dataset
            self.used.update(element.made)
        elif state.names() & names_in(value):
            source = self._mapped(value, state)
        else:
            return False
        self.changes[value] = source
        return True

    def _mapped(self, value: cst.BaseExpression, state: _State) -> cst.BaseExpression:
        """`dataset.map(lambda x, y: value)` for a return of something made of the plain names `x, y`."""
        read = names_in(value)
        for element in state.elements.values():
            target = element.target
            kinds = _Kinds(target.value if isinstance(target, cst.Name) else "")
            walk(value, kinds)
            if isinstance(target, cst.Name) and kinds.kinds == {"dict"}:
                names = [target.value]
            elif isinstance(target, cst.Tuple) and all(isinstance(e.value, cst.Name) for e in target.elements):
                names = [e.value.value for e in target.elements if isinstance(e.value, cst.Name)]
            else:
                continue
            outside = read - set(names)
            alone = len(names) < 2 and not isinstance(target, cst.Name)
            if len(set(names)) != len(names) or alone or outside & (self.locals | state.names()):
                continue
            if _stores(value) or not isinstance(value, (cst.Tuple, cst.Dict)) or self._has_effects(value, names):
                continue
            self.used.update(element.made)
            body = value if value.lpar or isinstance(value, cst.Dict) else _parenthesized(value)
            parameters = cst.Parameters([cst.Param(cst.Name(name)) for name in names])
            function = cst.Lambda(parameters, body)
            return cst.Call(cst.Attribute(element.dataset, cst.Name("map")), [cst.Arg(function)])
        raise _other_use(value)

    def _has_effects(self, value: cst.BaseExpression, names: Sequence[str]) -> bool:
        """Whether an expression calls anything but TensorFlow and `get` of an element: it may do more, so it stays."""
        return any(
            self.imports.tensorflow(call.func) is None
            and not (isinstance(call.func, cst.Attribute) and call.func.attr.value == "get" and _is_one_of(call, names))
            for call in calls_in(value)
        )

    # -- work on the tensors ---------------------------------------------------------------------------------------

    def _moves(self, statement: cst.CSTNode, rest: Sequence[cst.BaseStatement], state: _State) -> bool:
        """Moves the statements between `get_next()` and the return of what they make into a function for `map`."""
        element = next((e for e in state.elements.values() if e.made[-1] is statement), None)
        value = _returned(rest[-1]) if rest else None
        if element is None or value is None:
            return False
        done = [s for s in rest[:-1] if any(s is line for line in self.initializers.values())]
        middle = [s for s in rest[:-1] if s not in done]
        names = names_in(element.target)
        if not any(names & names_in(s) for s in middle) and self._returns_plainly(value, element, state):
            return False
        self._check_middle(middle, value, element, state)
        parameters = _parameters(element.target, [*middle, rest[-1]])
        if parameters is None:
            raise _other_use(middle[0] if middle else value)
        name = free("prepare", names_in(self.function))
        two = [cst.EmptyLine(indent=False)]
        block = cst.IndentedBlock([*middle, rest[-1]], footer=two)
        self.functions[statement] = cst.FunctionDef(cst.Name(name), parameters, block)
        self.moved.update(middle)
        self.changes.update(dict.fromkeys(done))
        self.changes[value] = cst.Call(cst.Attribute(element.dataset, cst.Name("map")), [cst.Arg(cst.Name(name))])
        del self.changes[statement]
        self.used.update(element.made)
        return True

    def _returns_plainly(self, value: cst.BaseExpression, element: _Element, state: _State) -> bool:
        """Whether the return can be written without a function: the element itself, or a lambda of it."""
        if _shape(value) == _shape(element.target) or not state.names() & names_in(value):
            return True
        try:
            self._mapped(value, state)
        except Blocked:
            return False
        return True

    def _check_middle(
        self, middle: Sequence[cst.BaseStatement], value: cst.BaseExpression, element: _Element, state: _State
    ) -> None:
        """Refuses statements that would do something else in a `map`."""
        names = names_in(element.target)
        for statement in middle:
            plain = (cst.Assign, cst.AugAssign, cst.Expr, cst.Del)
            if not isinstance(statement, cst.SimpleStatementLine) or not all(
                isinstance(small, plain) for small in statement.body
            ):
                raise _other_use(statement)
        for node in (*middle, value):
            self._check_calls(node)
            if (state.names() - names) & names_in(node) or state.behind() & _stores(node):
                raise _other_use(node)
        inside: dict[str, int] = {}
        for node in middle:
            for binding in read_bindings(node):
                inside[binding.name] = inside.get(binding.name, 0) + 1
        everywhere: dict[str, int] = {}
        for binding in read_bindings(self.function):
            everywhere[binding.name] = everywhere.get(binding.name, 0) + 1
        for name, count in inside.items():
            if name not in names and everywhere.get(name, 0) != count:
                raise _other_use(middle[0])  # it also has a value from outside
        outside = set().union(*(names_in(node) for node in (*middle, value))) - names
        for assigned in own_of_kinds(self.function.body, cst.Assign, inner=(cst.FunctionDef,)):
            # A tensor from outside was computed again for every batch, and would be computed once.
            within = any(assigned in s.body for s in middle if isinstance(s, cst.SimpleStatementLine))
            if not within and outside & _stores(assigned) and self._makes_tensors(assigned.value):
                raise _other_use(middle[0] if middle else value)

    def _makes_tensors(self, node: cst.CSTNode) -> bool:
        return any(self.imports.tensorflow(call.func) is not None for call in calls_in(node))

    def _check_calls(self, node: cst.CSTNode) -> None:
        for call in calls_in(node):
            func = call.func
            known = self.imports.tensorflow(func) is not None
            if isinstance(func, cst.Name):
                known = known or func.value in self.own or func.value in _PLAIN_CALLS
            elif isinstance(func, cst.Attribute):
                known = known or func.attr.value in _METHODS
            if not known:
                raise _other_use(call)

    def _cover(self, node: cst.CSTNode) -> None:
        found = _iterators(node)
        if len(found) == 1:
            self.covered.update(found)


_PLAIN_CALLS = frozenset(("dict", "list", "tuple", "len", "zip", "range", "int", "float", "str", "sorted", "enumerate"))
_METHODS = frozenset(("pop", "update", "items", "keys", "values", "get", "append", "set_shape", "get_shape", "as_list"))


def _returned(statement: cst.BaseStatement) -> cst.BaseExpression | None:
    if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1:
        small = statement.body[0]
        return small.value if isinstance(small, cst.Return) else None
    return None


def _parameters(target: cst.BaseExpression, statements: Sequence[cst.CSTNode]) -> cst.Parameters | None:
    """The parameters of a function for `map`, which gives a tuple as several arguments and a dict as one.

    None where it cannot be told which of the two an element is.
    """
    if isinstance(target, cst.Tuple):
        names = [e.value.value for e in target.elements if isinstance(e.value, cst.Name)]
        if len(names) != len(target.elements) or len(set(names)) != len(names):
            return None
        return cst.Parameters([cst.Param(cst.Name(name)) for name in names])
    if not isinstance(target, cst.Name):
        return None
    finder = _Kinds(target.value)
    for statement in statements:
        walk(statement, finder)
    if len(finder.kinds) > 1:
        return None
    parameter = cst.Param(cst.Name(target.value))
    if finder.kinds == {"tuple"}:
        return cst.Parameters(star_arg=parameter.with_changes(star="*"))
    return cst.Parameters([parameter])


class _Kinds(cst.CSTVisitor):
    """Whether a name is used as a tuple or as a dict."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.kinds: set[str] = set()

    def _is_name(self, node: cst.BaseExpression) -> bool:
        return isinstance(node, cst.Name) and node.value == self.name

    def visit_Subscript(self, node: cst.Subscript) -> None:
        if self._is_name(node.value):
            element = node.slice[0].slice
            index = isinstance(element, cst.Index) and isinstance(element.value, (cst.Integer, cst.UnaryOperation))
            key = isinstance(element, cst.Index) and isinstance(element.value, cst.SimpleString)
            self.kinds.add("tuple" if index else "dict" if key else "unknown")

    def visit_Call(self, node: cst.Call) -> None:
        if isinstance(node.func, cst.Attribute) and self._is_name(node.func.value):
            self.kinds.add("dict" if node.func.attr.value in _METHODS else "unknown")

    def visit_Assign(self, node: cst.Assign) -> None:
        if self._is_name(node.value):
            unpacked = any(isinstance(t.target, (cst.Tuple, cst.List)) for t in node.targets)
            self.kinds.add("tuple" if unpacked else "unknown")


def _parenthesized(node: cst.BaseExpression) -> cst.BaseExpression:
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def _is_one_of(call: cst.Call, names: Sequence[str]) -> bool:
    """Whether a call is of a method of one of some names."""
    func = call.func
    return isinstance(func, cst.Attribute) and isinstance(func.value, cst.Name) and func.value.value in names


def _placeholder(line: cst.CSTNode, name: str, imports: ImportMap) -> cst.Call | None:
    """The call in `name = tf.placeholder(...)`."""
    small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
    if not isinstance(small, cst.Assign) or len(small.targets) != 1 or _shape(small.targets[0].target) != name:
        return None
    call = small.value
    return call if isinstance(call, cst.Call) and imports.tensorflow(call.func) == "tf.placeholder" else None


def _instead_of(placeholder: cst.Call, value: cst.BaseExpression) -> cst.BaseExpression:
    """What a placeholder is fed, as a tensor of its type."""
    keywords = {arg.keyword.value: arg.value for arg in placeholder.args if arg.keyword is not None}
    positional = [arg.value for arg in placeholder.args if arg.keyword is None]
    dtype = keywords.get("dtype", positional[0] if positional else None)
    if dtype is None:
        raise _other_use(placeholder)
    if _shape(dtype) == f"{_shape(value)}.dtype":
        return value
    return cst.Call(
        cst.Attribute(cst.Name("tf"), cst.Name("constant")),
        [cst.Arg(value, comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))), cst.Arg(dtype)],
    )


def _is_dict_call(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "dict"


def _iterator_name(node: cst.BaseExpression) -> str | None:
    """`iterator` of `iterator.get_next()`."""
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and isinstance(node.func.value, cst.Name):
        return node.func.value.value
    return None


def _stores(node: cst.CSTNode) -> set[str]:
    return {binding.name for binding in read_bindings(node)}


def _iterators(node: cst.CSTNode) -> list[cst.Call]:
    """The iterators that a function makes itself, those of a lambda that it returns with them."""
    lambdas = [one.value.body for one in returns_in(node) if isinstance(one.value, cst.Lambda)]
    return [call for one in (node, *lambdas) for call in own_of_kinds(one, cst.Call, enter=False) if is_iterator(call)]


def _one_shot(node: cst.BaseExpression, imports: ImportMap) -> cst.BaseExpression | None:
    """The dataset of `d.make_one_shot_iterator()` or `tf.data.make_one_shot_iterator(d)`."""
    if not isinstance(node, cst.Call):
        return None
    if imports.resolve(node.func) in ("tf.data.make_one_shot_iterator", "tf.compat.v1.data.make_one_shot_iterator"):
        return node.args[0].value if len(node.args) == 1 else None
    if isinstance(node.func, cst.Attribute) and node.func.attr.value == "make_one_shot_iterator" and not node.args:
        return node.func.value
    return None


def _next(
    node: cst.BaseExpression, imports: ImportMap, iterators: dict[str, cst.BaseExpression]
) -> cst.BaseExpression | None:
    """The dataset of `iterator.get_next()`."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute) or node.func.attr.value != "get_next":
        return None
    iterator = node.func.value
    if isinstance(iterator, cst.Name):
        return iterators.get(iterator.value)
    return _one_shot(iterator, imports)


def _shape(node: cst.BaseExpression) -> str:
    """`x` or `x, y` as text without parentheses, to compare a target with what is returned."""
    text = cst.Module([]).code_for_node(node)
    return text.strip("() ").replace(" ", "")
