"""Which of TRAIN, EVAL and PREDICT a piece of a model_fn runs in.

A model_fn branches on `mode`. Here its body becomes one straight list of statements, each with the set of modes
that reach it, and the EstimatorSpecs that it returns, each with the modes that return it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import libcst as cst

from migrator.names.bindings import names_changed
from migrator.names.imports import ImportMap
from migrator.pairing import equal_zip
from migrator.program.calls import is_none, string
from migrator.program.comments import comment_lines
from migrator.program.parsed import Blocked, names_in
from migrator.walking import walk

TRAIN, EVAL, PREDICT = "train", "eval", "infer"
ALL = frozenset((TRAIN, EVAL, PREDICT))
Modes = frozenset[str]

#: The parameters of EstimatorSpec, in their order.
SPEC = (
    "mode",
    "predictions",
    "loss",
    "train_op",
    "eval_metric_ops",
    "export_outputs",
    "training_chief_hooks",
    "training_hooks",
    "scaffold",
    "evaluation_hooks",
    "prediction_hooks",
)

_KEYS = {
    "tf.estimator.ModeKeys.TRAIN": TRAIN,
    "tf.estimator.ModeKeys.EVAL": EVAL,
    "tf.estimator.ModeKeys.PREDICT": PREDICT,
    "tf.contrib.learn.ModeKeys.TRAIN": TRAIN,
    "tf.contrib.learn.ModeKeys.EVAL": EVAL,
    "tf.contrib.learn.ModeKeys.INFER": PREDICT,
}


_SPECS = ("tf.estimator.EstimatorSpec", "tf.contrib.tpu.TPUEstimatorSpec", "tf.estimator.tpu.TPUEstimatorSpec")


@dataclass(frozen=True)
class ModeNames:
    """The parameter called mode, and flags such as `is_training = mode == TRAIN`."""

    imports: ImportMap
    mode: str | None
    flags: dict[str, Modes]

    def when(self, test: cst.BaseExpression) -> Modes | None:
        """The modes in which a condition holds; None when it does not depend on the mode alone."""
        if isinstance(test, cst.Name):
            if test.value in ("True", "False"):
                return ALL if test.value == "True" else frozenset()
            return self.flags.get(test.value)
        if isinstance(test, cst.IfExp):
            chosen, yes, no = self.when(test.test), self.when(test.body), self.when(test.orelse)
            if chosen is None or yes is None or no is None:
                return None
            return (chosen & yes) | (no - chosen)
        if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
            inner = self.when(test.expression)
            return None if inner is None else ALL - inner
        if isinstance(test, cst.BooleanOperation):
            left, right = self.when(test.left), self.when(test.right)
            if left is None or right is None:
                return None
            return left & right if isinstance(test.operator, cst.And) else left | right
        if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
            return self._comparison(test.left, test.comparisons[0])
        return None

    def bounds(self, test: cst.BaseExpression) -> tuple[Modes, Modes]:
        """The modes in which a condition holds for certain, and those in which it may."""
        when = self.when(test)
        if when is not None:
            return when, when
        if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
            surely, perhaps = self.bounds(test.expression)
            return ALL - perhaps, ALL - surely
        if isinstance(test, cst.BooleanOperation):
            left, right = self.bounds(test.left), self.bounds(test.right)
            if isinstance(test.operator, cst.And):
                return left[0] & right[0], left[1] & right[1]
            return left[0] | right[0], left[1] | right[1]
        return frozenset(), ALL

    def _comparison(self, left: cst.BaseExpression, target: cst.ComparisonTarget) -> Modes | None:
        operator, right = target.operator, target.comparator
        if not self._is_mode(left):
            left, right = right, left
        if not self._is_mode(left):
            return None
        if isinstance(right, cst.Name) and right.value == "None" and not isinstance(operator, (cst.In, cst.NotIn)):
            return ALL if isinstance(operator, (cst.IsNot, cst.NotEqual)) else frozenset()
        if isinstance(operator, (cst.In, cst.NotIn)):
            if not isinstance(right, (cst.Tuple, cst.List, cst.Set)):
                return None
            keys = [self._key(element.value) for element in right.elements]
        else:
            keys = [self._key(right)]
        if any(key is None for key in keys):
            return None
        modes = frozenset(key for key in keys if key is not None)
        if isinstance(operator, (cst.Equal, cst.Is, cst.In)):
            return modes
        if isinstance(operator, (cst.NotEqual, cst.IsNot, cst.NotIn)):
            return ALL - modes
        return None

    def _is_mode(self, node: cst.BaseExpression) -> bool:
        return self.mode is not None and isinstance(node, cst.Name) and node.value == self.mode

    def _key(self, node: cst.BaseExpression) -> str | None:
        if isinstance(node, cst.SimpleString):
            value = node.evaluated_value
            return value if isinstance(value, str) and value in ALL else None
        return _KEYS.get(self.imports.resolve(node) or "")


@dataclass(frozen=True)
class ModalStatement:
    """A statement of the model_fn and the modes that run it."""

    node: cst.BaseStatement
    modes: Modes
    comments: tuple[cst.EmptyLine, ...] = ()  # of the mode branches dissolved just before it
    after: tuple[cst.BaseExpression, ...] = ()  # what `with tf.control_dependencies(...)` around it names


@dataclass(frozen=True)
class Spec:
    """An `EstimatorSpec(...)` call, the statement that holds it, and the modes that return it."""

    call: cst.Call
    modes: Modes
    statement: cst.BaseStatement
    position: int  # how many statements come before it


@dataclass(frozen=True)
class StraightBody:
    """A model_fn without its mode branches."""

    statements: tuple[ModalStatement, ...]
    specs: tuple[Spec, ...]
    names: ModeNames
    trailing_comments: tuple[cst.EmptyLine, ...]


def straighten(
    body: Sequence[cst.BaseStatement], imports: ImportMap, mode: str | None, lenient: bool = False
) -> StraightBody:
    """Resolves the mode branches of a function body. Raises Blocked (TFM105, TFM106).

    `lenient` leaves what cannot be resolved as one statement, whatever it does with the mode and with specs, and takes
    the statements of every `with` one by one: they are only read, not written anew. Where PREDICT alone may come to
    both branches of a condition (`frozen and mode == PREDICT`), it has the statements of both.
    """
    walker = _Walker(ModeNames(imports, mode, {}), _spread(body, imports), lenient)
    left = walker.block(body, ALL)
    if left & {TRAIN, EVAL} and not lenient:
        raise Blocked("TFM105", None, "the model_fn can end without returning an EstimatorSpec")
    return StraightBody(tuple(walker.statements), tuple(walker.specs), walker.names, tuple(walker.carried))


def _without(
    mode: str, body: Sequence[cst.BaseStatement], names: ModeNames, found: list[cst.BaseStatement]
) -> tuple[bool, ModeNames]:
    """Collects what a mode does not run in a block; whether it falls out of the block's end, and the flags there."""
    for index, statement in enumerate(body):
        when = names.when(statement.test) if isinstance(statement, cst.If) else None
        if isinstance(statement, cst.If) and when is None and names.bounds(statement.test) != (frozenset(), ALL):
            goes_on, names = _without_either(mode, statement, names, found)
        elif isinstance(statement, cst.If) and when is not None:
            taken, other = _body(statement.body), statement.orelse
            if mode not in when:
                found += taken
                taken = [other] if isinstance(other, cst.If) else [] if other is None else _body(other.body)
            elif other is not None:
                found += _all_below(other)
            goes_on, names = _without(mode, taken, names, found)
        elif isinstance(statement, cst.With):
            goes_on, names = _without(mode, _body(statement.body), names, found)
        else:
            goes_on = not _leaves(statement)
            names = _with_flag(names, statement)
        if not goes_on:
            found += body[index + 1 :]
            return False, names
    return True, names


def _without_either(
    mode: str, statement: cst.If, names: ModeNames, found: list[cst.BaseStatement]
) -> tuple[bool, ModeNames]:
    """Collects what a mode does not run of an `if` whose condition mixes the mode with something else."""
    surely, perhaps = names.bounds(statement.test)
    goes_on = False
    if mode in perhaps:
        goes_on, _ = _without(mode, _body(statement.body), names, found)
    else:
        found += _body(statement.body)
    other = statement.orelse
    if mode in surely:
        found += [] if other is None else _all_below(other)
    elif other is None:
        goes_on = True
    else:
        more, _ = _without(mode, [other] if isinstance(other, cst.If) else _body(other.body), names, found)
        goes_on |= more
    return goes_on, _with_flag(names, statement)


def _all_below(orelse: cst.If | cst.Else) -> list[cst.BaseStatement]:
    """The statements of an `else`, or of an `elif` and all that follow it."""
    found = list(_body(orelse.body))
    if isinstance(orelse, cst.If) and orelse.orelse is not None:
        found += _all_below(orelse.orelse)
    return found


def _leaves(statement: cst.BaseStatement) -> bool:
    """Whether a statement line ends the function."""
    return isinstance(statement, cst.SimpleStatementLine) and isinstance(statement.body[-1], (cst.Return, cst.Raise))


def _with_flag(names: ModeNames, statement: cst.BaseStatement) -> ModeNames:
    """The mode and its flags after a statement."""
    small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
    if isinstance(small, cst.Assign) and len(small.targets) == 1 and isinstance(small.targets[0].target, cst.Name):
        name, when = small.targets[0].target.value, names.when(small.value)
        if when is not None and not isinstance(small.value, cst.Name):
            return ModeNames(names.imports, names.mode, {**names.flags, name: when})
    given = names_changed((statement,))
    left = {name: when for name, when in names.flags.items() if name not in given}
    return names if len(left) == len(names.flags) else ModeNames(names.imports, names.mode, left)


class _Walker:
    def __init__(self, names: ModeNames, spread: frozenset[str], lenient: bool = False) -> None:
        self.names = names
        self.spread = spread
        self.lenient = lenient
        self._entries: dict[str, list[tuple[Modes, str, cst.BaseExpression]]] = {}
        self._nones: dict[str, Modes] = {}
        self.statements: list[ModalStatement] = []
        self.specs: list[Spec] = []
        self.carried: list[cst.EmptyLine] = []
        self._pending: dict[str, list[Spec]] = {}
        self._after: tuple[cst.BaseExpression, ...] = ()

    def block(self, body: Sequence[cst.BaseStatement], modes: Modes) -> Modes:
        """Walks a block that `modes` enter; returns the modes that fall out of its end."""
        for statement in body:
            if not modes:
                break
            modes = self._statement(statement, modes)
        return modes

    def _statement(self, statement: cst.BaseStatement, modes: Modes) -> Modes:
        if isinstance(statement, cst.If):
            when = self.names.when(statement.test)
            if when is not None:
                return self._branch(statement, modes, when)
            surely, perhaps = self.names.bounds(statement.test)
            if self.lenient and perhaps - surely == {PREDICT}:
                return self._branch(statement, modes, perhaps, surely)
            self._no_spec_inside(statement)
        elif isinstance(statement, cst.With) and self._only_names(statement):
            self._carry(statement.leading_lines)
            return self.block(_body(statement.body), modes)
        elif isinstance(statement, cst.With) and (first := self._dependencies(statement)) is not None:
            self._carry(statement.leading_lines)
            outer, self._after = self._after, (*self._after, first)
            out = self.block(_body(statement.body), modes)
            self._after = outer
            return out
        elif isinstance(statement, cst.With) and self.lenient:
            self._carry(statement.leading_lines)
            self._rebind(statement, modes)
            return self.block(_body(statement.body), modes)
        elif isinstance(statement, cst.SimpleStatementLine):
            if len(statement.body) == 1:
                done = self._simple(statement, statement.body[0], modes)
                if done is not None:
                    self._carry(comment_lines(statement))
                    return done
        else:
            self._no_spec_inside(statement)
        self._remember(statement, modes)
        self.statements.append(ModalStatement(statement, modes, tuple(self.carried), self._after))
        self.carried = []
        return modes

    def _rebind(self, statement: cst.With, modes: Modes) -> None:
        """Keeps what a `with` line, which is not kept, gives to names that have another value: as assignments."""
        known = names_changed(one.node for one in self.statements)
        for item in statement.items:
            if item.asname is not None and known & names_changed((item,)):
                assert isinstance(item.asname.name, (cst.Name, cst.Tuple, cst.List, cst.Attribute, cst.Subscript))
                given = cst.Assign([cst.AssignTarget(item.asname.name)], item.item)
                self.statements.append(ModalStatement(cst.SimpleStatementLine([given]), modes, (), self._after))

    def _remember(self, statement: cst.BaseStatement, modes: Modes) -> None:
        """Keeps account of the names that are None, by mode."""
        small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
        if isinstance(small, cst.Assign) and is_none(small.value) and isinstance(small.targets[0].target, cst.Name):
            name = small.targets[0].target.value
            self._nones[name] = self._nones.get(name, frozenset()) | modes
            return
        for name in names_changed((statement,)) & self._nones.keys():
            self._nones[name] -= modes

    def _only_names(self, statement: cst.With) -> bool:
        """Whether a with statement only names the operations of the loss, the training or the metrics."""
        if len(statement.items) != 1 or statement.items[0].asname is not None:
            return False
        call = statement.items[0].item
        if not isinstance(call, cst.Call) or len(call.args) != 1:
            return False
        if self.names.imports.resolve(call.func) not in ("tf.name_scope", "tf.variable_scope"):
            return False
        finder = _Symbols(self.names.imports)
        walk(statement.body, finder)
        return any(
            name.startswith(("tf.losses.", "tf.train.", "tf.metrics.", "tf.estimator.")) or "cross_entropy" in name
            for name in finder.found
        )

    def _dependencies(self, statement: cst.With) -> cst.BaseExpression | None:
        """What a `with tf.control_dependencies(...)` names."""
        call = statement.items[0].item if len(statement.items) == 1 else None
        if not isinstance(call, cst.Call) or len(call.args) != 1:
            return None
        if self.names.imports.resolve(call.func) != "tf.control_dependencies":
            return None
        return call.args[0].value

    def _carry(self, lines: Sequence[cst.EmptyLine]) -> None:
        if any(line.comment is not None for line in lines):
            self.carried.extend(lines)

    def _branch(self, statement: cst.If, modes: Modes, when: Modes, surely: Modes | None = None) -> Modes:
        """Walks what the modes `when` run of an `if`, and what those run that do not do so for certain."""
        self._carry(statement.leading_lines)
        out = self.block(_body(statement.body), modes & when) if modes & when else frozenset()
        rest = modes - (when if surely is None else surely)
        if statement.orelse is None or not rest:
            return out | rest
        if isinstance(statement.orelse, cst.If):
            return out | self._statement(statement.orelse, rest)
        return out | self.block(_body(statement.orelse.body), rest)

    def _simple(self, statement: cst.SimpleStatementLine, small: cst.BaseSmallStatement, modes: Modes) -> Modes | None:
        """Handles returns, asserts about the mode, mode flags and specs; None for anything else."""
        if isinstance(small, cst.Return):
            call = self._spec_call(small.value)
            if call is not None:
                self.specs += self._specs(call, modes, statement)
                return frozenset()
            made = self._pending.get(small.value.value, []) if isinstance(small.value, cst.Name) else []
            if modes - frozenset().union(*(spec.modes for spec in made)):
                raise Blocked("TFM105", small, "the model_fn returns something other than an EstimatorSpec")
            self.specs += [replace(spec, modes=spec.modes & modes) for spec in made if spec.modes & modes]
            return frozenset()
        if isinstance(small, cst.Raise):
            return frozenset()
        if isinstance(small, cst.Assert) and self.names.when(small.test) is not None:
            return modes
        if isinstance(small, cst.Assign) and len(small.targets) == 1 and isinstance(small.targets[0].target, cst.Name):
            name = small.targets[0].target.value
            call = self._spec_call(small.value)
            if call is not None:
                earlier = [replace(spec, modes=spec.modes - modes) for spec in self._pending.get(name, [])]
                new = self._specs(call, modes, statement)
                self._pending[name] = [*(spec for spec in earlier if spec.modes), *new]
                return modes
            if name in self.spread:
                self._entries[name] = [(m - modes, k, v) for m, k, v in self._entries.get(name, [])]
                self._entries[name] += [(modes, key, value) for key, value in _entries(small.value)]
                return modes
            when = self.names.when(small.value)
            if when is not None and not isinstance(small.value, cst.Name):
                self.names = ModeNames(self.names.imports, self.names.mode, {**self.names.flags, name: when})
                return modes
        entry = _entry_set(small)
        if entry is not None and entry[0] in self.spread:
            self._entries.setdefault(entry[0], []).extend((modes, key, value) for key, value in entry[1])
            return modes
        if self.spread & names_in(small):
            raise Blocked("TFM105", small, "the arguments of the EstimatorSpec are used otherwise than in its call")
        return None

    def _specs(self, call: cst.Call, modes: Modes, statement: cst.BaseStatement) -> list[Spec]:
        """The specs that a call makes, one for each set of modes with the same arguments."""
        found: list[tuple[list[cst.Arg], Modes]] = []
        for mode in sorted(modes):
            args = self._arguments(call, mode)
            for index, (known, others) in enumerate(found):
                if [a.value for a in known] == [a.value for a in args]:
                    found[index] = known, others | {mode}
                    break
            else:
                found.append((args, frozenset((mode,))))
        position = len(self.statements)
        return [
            Spec(call if _same(args, call.args) else call.with_changes(args=args), of, statement, position)
            for args, of in found
        ]

    def _arguments(self, call: cst.Call, mode: str) -> list[cst.Arg]:
        """The arguments of an EstimatorSpec in one mode: what is None there left out, what the mode chooses chosen."""
        args: list[cst.Arg] = []
        for arg in call.args:
            if arg.star == "**":
                if isinstance(arg.value, cst.Name) and arg.value.value in self._entries:
                    given = {key: v for m, key, v in self._entries[arg.value.value] if mode in m}
                else:
                    given = dict(_entries(arg.value))
                args += [cst.Arg(value, keyword=cst.Name(key)) for key, value in given.items()]
                continue
            value = arg.value
            while isinstance(value, cst.IfExp) and (when := self.names.when(value.test)) is not None:
                value = value.body if mode in when else value.orelse
            args.append(arg if value is arg.value else arg.with_changes(value=value))
        return [
            arg
            for arg in args
            if arg.keyword is None
            or not (isinstance(arg.value, cst.Name) and mode in self._nones.get(arg.value.value, frozenset()))
        ]

    def _spec_call(self, node: cst.BaseExpression | None) -> cst.Call | None:
        if isinstance(node, cst.Call) and self.names.imports.resolve(node.func) in _SPECS:
            return node
        return None

    def _no_spec_inside(self, statement: cst.BaseStatement) -> None:
        if self.lenient:
            return
        finder = _Returns()
        walk(statement, finder)
        if finder.found is not None and not isinstance(statement, (cst.FunctionDef, cst.ClassDef)):
            raise Blocked(
                "TFM105", finder.found, "the model_fn returns from inside a block that tf-migrate cannot resolve"
            )
        if (
            self.names.mode is not None
            and isinstance(statement, cst.If)
            and self.names.mode in names_in(statement.test)
        ):
            raise Blocked("TFM106", statement.test, "this condition mixes `mode` with something else")


def _same(args: Sequence[cst.Arg], others: Sequence[cst.Arg]) -> bool:
    return len(args) == len(others) and all(a is b for a, b in equal_zip(args, others))


def _entries(node: cst.BaseExpression) -> list[tuple[str, cst.BaseExpression]]:
    """The entries of a dict of arguments. Raises Blocked (TFM105)."""
    found: list[tuple[str, cst.BaseExpression]] = []
    if isinstance(node, cst.Dict):
        for element in node.elements:
            key = string(element.key) if isinstance(element, cst.DictElement) else None
            if key is None:
                raise Blocked("TFM105", node, "the arguments of the EstimatorSpec are not written out")
            found.append((key, element.value))
        return found
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "dict":
        if all(arg.keyword is not None for arg in node.args):
            return [(arg.keyword.value, arg.value) for arg in node.args if arg.keyword is not None]
    raise Blocked("TFM105", node, "the arguments of the EstimatorSpec are not written out")


def _entry_set(small: cst.BaseSmallStatement) -> tuple[str, list[tuple[str, cst.BaseExpression]]] | None:
    """`name["key"] = value` and `name.update(key=value)`."""
    if isinstance(small, cst.Assign) and len(small.targets) == 1 and isinstance(small.targets[0].target, cst.Subscript):
        target = small.targets[0].target
        index = target.slice[0].slice if len(target.slice) == 1 else None
        key = string(index.value) if isinstance(index, cst.Index) else None
        if isinstance(target.value, cst.Name) and key is not None:
            return target.value.value, [(key, small.value)]
    if isinstance(small, cst.Expr) and isinstance(small.value, cst.Call):
        call = small.value
        if isinstance(call.func, cst.Attribute) and call.func.attr.value == "update":
            if isinstance(call.func.value, cst.Name):
                if len(call.args) == 1 and call.args[0].keyword is None and isinstance(call.args[0].value, cst.Dict):
                    return call.func.value.value, _entries(call.args[0].value)
                if call.args and all(arg.keyword is not None for arg in call.args):
                    given = [(arg.keyword.value, arg.value) for arg in call.args if arg.keyword is not None]
                    return call.func.value.value, given
    return None


class _Spread(cst.CSTVisitor):
    """The names in `EstimatorSpec(**name)`."""

    def __init__(self, imports: ImportMap) -> None:
        super().__init__()
        self.imports = imports
        self.found: set[str] = set()

    def visit_Call(self, node: cst.Call) -> None:
        if self.imports.resolve(node.func) == "tf.estimator.EstimatorSpec":
            stars = [arg.value for arg in node.args if arg.star == "**"]
            self.found |= {value.value for value in stars if isinstance(value, cst.Name)}


def _spread(body: Sequence[cst.BaseStatement], imports: ImportMap) -> frozenset[str]:
    finder = _Spread(imports)
    for statement in body:
        walk(statement, finder)
    return frozenset(finder.found)


class _Returns(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.found: cst.CSTNode | None = None

    def visit_Return(self, node: cst.Return) -> None:
        self.found = self.found or node

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return False


class _Symbols(cst.CSTVisitor):
    def __init__(self, imports: ImportMap) -> None:
        super().__init__()
        self.imports = imports
        self.found: list[str] = []

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        name = self.imports.tensorflow(node)
        if name is not None:
            self.found.append(name)
        return name is None


def _body(block: cst.BaseSuite) -> Sequence[cst.BaseStatement]:
    if isinstance(block, cst.IndentedBlock):
        return block.body
    assert isinstance(block, cst.SimpleStatementSuite)
    return [cst.SimpleStatementLine(block.body)]
