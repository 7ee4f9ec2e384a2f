"""Which of TRAIN, EVAL and PREDICT a piece of a model_fn runs in.

A model_fn branches on `mode`. Here its body becomes one straight list of statements, each with the set of modes
that reach it, and the EstimatorSpecs that it returns, each with the modes that return it.
"""

from __future__ import annotations

import builtins
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import libcst as cst

from migrator.ir.evaluate import Evaluator
from migrator.ir.files import Together
from migrator.ir.machine import TooMuch
from migrator.ir.values import Constant, Operation, Scope, Symbol, Unknown, Value
from migrator.names.bindings import names_bound, names_changed, names_read
from migrator.names.imports import ImportMap
from migrator.names.symbols import TEXTS
from migrator.pairing import equal_zip
from migrator.program.calls import calls_in, is_none, string, written_entries
from migrator.program.comments import comment_lines
from migrator.program.parsed import Blocked, names_in
from migrator.program.scopes import returns_in

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

#: What gives labels another shape or type, and has no variables.
_OF_LABELS = ("tf.expand_dims", "tf.reshape", "tf.squeeze", "tf.cast", "tf.to_float", "tf.to_int32", "tf.to_int64")
_TYPES = {"tf.float32", "tf.int32", "tf.int64"}
_SPECS = ("tf.estimator.EstimatorSpec", "tf.contrib.tpu.TPUEstimatorSpec", "tf.estimator.tpu.TPUEstimatorSpec")


_CHOICES = (cst.BooleanOperation, cst.Comparison, cst.IfExp, cst.Name, cst.Subscript, cst.UnaryOperation)


@dataclass(frozen=True)
class ModeNames:
    """The parameter called mode, flags such as `is_training = mode == TRAIN`, and functions that are `told` of it.

    `functions` are those of the file, which a test may ask with the mode as an argument. `labels` is the parameter of
    that name while it is what the Estimator gives: None to predict, and something in the other modes; `targets` are
    other names of it.
    """

    imports: ImportMap
    mode: str | None
    flags: Mapping[str, Modes] = field(default_factory=dict)
    told: tuple[cst.FunctionDef, ...] = ()
    functions: Mapping[str, cst.FunctionDef] = field(default_factory=dict)
    labels: str | None = None
    targets: frozenset[str] = frozenset()

    @property
    def given(self) -> frozenset[str]:
        """The names of the labels that the Estimator gives."""
        return self.targets if self.labels is None else self.targets | {self.labels}

    @property
    def about(self) -> frozenset[str]:
        """The names that say something of the mode."""
        named = (self.mode,) if self.mode is not None else ()
        return frozenset((*named, *self.flags, *(one.name.value for one in self.told)))

    def when(self, test: cst.BaseExpression) -> Modes | None:
        """The modes in which an expression is True, where it is False in the others; None where that is not so."""
        if isinstance(test, cst.Name) and test.value in ("True", "False"):
            return ALL if test.value == "True" else frozenset()
        if not self._may_tell(test):
            return None
        values = {mode: value.value if isinstance(value, Constant) else None for mode, value in self._values(test)}
        if not all(isinstance(value, bool) for value in values.values()):
            return None
        return frozenset(mode for mode, value in values.items() if value)

    def bounds(self, test: cst.BaseExpression) -> tuple[Modes, Modes]:
        """The modes in which a condition holds for certain, and those in which it may."""
        when = self.when(test)
        if when is not None:
            return when, when
        if not self._may_tell(test):
            return frozenset(), ALL
        machine = _machine()
        truths = {mode: machine.truth(value) for mode, value in self._values(test)}
        surely = frozenset(mode for mode, truth in truths.items() if truth)
        return surely, frozenset(mode for mode, truth in truths.items() if truth is not False)

    def after(self, statement: cst.CSTNode) -> ModeNames:
        """What is called by which name after a statement."""
        if isinstance(statement, cst.FunctionDef):
            name = statement.name.value
            with_it = replace(self.without({name}), told=(*self.told, statement))
            asked = cst.Call(statement.name)
            reads = names_read(statement.body) & self.about
            return with_it if reads and not statement.decorators and with_it.when(asked) is not None else self
        flag = self.flag(statement)
        if flag is not None:
            return replace(self, flags={**self.flags, flag[0]: flag[1]})
        changed = self.without(names_changed((statement,)))
        other = self.other_name(statement)
        return changed if other is None else replace(changed, targets=changed.targets | {other})

    def other_name(self, statement: cst.CSTNode) -> str | None:
        """The name in `targets = labels`."""
        small = (
            statement.body[0] if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1 else None
        )
        if isinstance(small, cst.Assign) and len(small.targets) == 1 and isinstance(small.value, cst.Name):
            target = small.targets[0].target
            return target.value if isinstance(target, cst.Name) and small.value.value in self.given else None
        return None

    def without(self, names: Collection[str]) -> ModeNames:
        """The same where some names mean something else."""
        flags = {name: when for name, when in self.flags.items() if name not in names}
        told = tuple(one for one in self.told if one.name.value not in names)
        labels = None if self.labels in names else self.labels
        targets = self.targets.difference(names)
        same = (flags, told, labels, targets) == (self.flags, self.told, self.labels, self.targets)
        return self if same else replace(self, flags=flags, told=told, labels=labels, targets=targets)

    def flag(self, statement: cst.CSTNode) -> tuple[str, Modes] | None:
        """`is_training = mode == TRAIN`: the name, and the modes in which it is True."""
        if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
            return None
        small = statement.body[0]
        if isinstance(small, cst.Assign) and len(small.targets) == 1 and isinstance(small.targets[0].target, cst.Name):
            when = self.when(small.value)
            if when is not None and names_in(small.value) & {*self.about, *self.given}:
                return small.targets[0].target.value, when
        return None

    def _may_tell(self, test: cst.BaseExpression) -> bool:
        """Whether an expression reads the mode at all; calls are looked into where they ask such a function."""
        if isinstance(test, cst.Call):
            name = test.func.value if isinstance(test.func, cst.Name) else None
            asked = name in _ASKING or any(one.name.value == name for one in self.told) or name in self.functions
            if not asked and (name is not None or self.imports.resolve(test.func) is not None):
                return False
        elif not isinstance(test, _CHOICES):
            return False
        return not names_read(test).isdisjoint({*self.about, *self.given})

    def _values(self, test: cst.BaseExpression) -> Iterator[tuple[str, Value]]:
        """What an expression is in each mode."""
        machine = _machine()
        asked = [self.functions[name] for name in sorted(names_read(test)) if name in self.functions]
        functions = (*asked, *self.told)
        read = names_read(test).union(*(names_read(one) for one in functions))
        for mode in sorted(ALL):
            mark = machine.store.mark()
            scope = Scope("mode", frozenset(), None, machine.nowhere.path, "module")
            try:
                for name in sorted(read):
                    origin = self.imports.resolve(cst.Name(name))
                    if name == self.mode:
                        machine.store.set((scope, name), Constant(None, mode))
                    elif name in self.given:
                        given = Constant(None, None) if mode == PREDICT else Operation(None, "tf.placeholder")
                        machine.store.set((scope, name), given)
                    elif name in self.flags:
                        machine.store.set((scope, name), Constant(None, mode in self.flags[name]))
                    elif origin is not None:
                        known = Constant(None, TEXTS[origin]) if origin in TEXTS else Symbol(None, origin)
                        machine.store.set((scope, name), known)
                    elif name not in vars(builtins):
                        machine.store.set((scope, name), Unknown(None, f"`{name}` does not depend on the mode alone"))
                for function in functions:
                    machine.run(function, scope)
                value = machine.value(test, scope)
            except (TooMuch, RecursionError):
                value = Unknown(None, "too much")
            finally:
                machine.work = 0
                machine.store.undo(mark)
            yield mode, value


#: Functions of Python that answer with True or False.
_ASKING = ("all", "any", "bool")


@lru_cache(maxsize=1)
def _machine() -> Evaluator:
    return Evaluator(Together.of([]))


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
class SpecialisedBody:
    """A model_fn without its mode branches; `placed` are the blocks of devices that are dissolved, too."""

    statements: tuple[ModalStatement, ...]
    specs: tuple[Spec, ...]
    names: ModeNames
    trailing_comments: tuple[cst.EmptyLine, ...]
    placed: tuple[cst.With, ...] = ()


def specialise(
    body: Sequence[cst.BaseStatement],
    imports: ImportMap,
    mode: str | None,
    lenient: bool = False,
    functions: Mapping[str, cst.FunctionDef] | None = None,
    labels: str | None = None,
) -> SpecialisedBody:
    """Resolves the mode branches of a function body, which may ask `functions` of its file. Raises Blocked (TFM105,
    TFM106).

    A test whether there are `labels` is such a branch: an Estimator gives none to predict.

    `lenient` leaves what cannot be resolved as one statement, whatever it does with the mode and with specs, and takes
    the statements of every `with` one by one: they are only read, not written anew. Where PREDICT alone may come to
    both branches of a condition (`frozen and mode == PREDICT`), it has the statements of both.
    """
    names = ModeNames(imports, mode, functions=functions or {}, labels=labels)
    walker = _Walker(names, _spread(body, imports), lenient)
    left = walker.block(body, ALL)
    if left & {TRAIN, EVAL} and not lenient:
        raise Blocked(
            "TFM105", None, "the model_fn may end without returning an EstimatorSpec: return one in every branch"
        )
    placed = tuple(walker.placed)
    return SpecialisedBody(tuple(walker.statements), tuple(walker.specs), walker.names, tuple(walker.carried), placed)


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
            names = names.after(statement)
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
    return goes_on, names.after(statement)


def _all_below(orelse: cst.If | cst.Else) -> list[cst.BaseStatement]:
    """The statements of an `else`, or of an `elif` and all that follow it."""
    found = list(_body(orelse.body))
    if isinstance(orelse, cst.If) and orelse.orelse is not None:
        found += _all_below(orelse.orelse)
    return found


def _leaves(statement: cst.BaseStatement) -> bool:
    """Whether a statement line ends the function."""
    return isinstance(statement, cst.SimpleStatementLine) and isinstance(statement.body[-1], (cst.Return, cst.Raise))


@dataclass
class _Truths:
    """A name that is True or False by mode, the lines that say so, and how many statements come before them."""

    start: int
    values: dict[str, bool] = field(default_factory=dict)
    lines: list[cst.SimpleStatementLine] = field(default_factory=list)
    ended: bool = False


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
        self.placed: list[cst.With] = []
        self._pending: dict[str, list[Spec]] = {}
        self._truths: dict[str, _Truths] = {}
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
        elif isinstance(statement, cst.With) and self._only_places(statement):
            self._carry(statement.leading_lines)
            self.placed.append(statement)
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
        elif isinstance(statement, cst.FunctionDef) and (names := self.names.after(statement)) is not self.names:
            self.names = names
            return modes
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
        """Keeps account of the names that are None, by mode, and of those that are the labels."""
        other = self.names.other_name(statement) if modes == ALL else None
        changed = names_changed((statement,))
        for name in changed & self._truths.keys():
            if not any(line is statement for line in self._truths[name].lines):
                self._truths[name].ended = True
                self._other_truth(statement, name)
        targets = self.names.targets.difference(changed).union([other] if other is not None else ())
        # What is computed from the labels is there where they are.
        gone = self.names.labels in changed and names_read(statement).isdisjoint(self.names.given)
        if gone or targets != self.names.targets:
            self.names = replace(self.names, targets=targets, labels=None if gone else self.names.labels)
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
        symbols = set(self.names.imports.symbols_in(statement.body))
        if self.names.labels in names_bound((statement.body,)) and symbols - _TYPES <= set(_OF_LABELS):
            return True
        return any(
            name.startswith(("tf.losses.", "tf.train.", "tf.metrics.", "tf.estimator.")) or "cross_entropy" in name
            for name in symbols
        )

    def _only_places(self, statement: cst.With) -> bool:
        """Whether a with statement only says on which device its lines run."""
        call = statement.items[0].item if len(statement.items) == 1 else None
        is_device = isinstance(call, cst.Call) and self.names.imports.resolve(call.func) == "tf.device"
        return is_device and statement.items[0].asname is None

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
            out |= rest
        elif isinstance(statement.orelse, cst.If):
            out |= self._statement(statement.orelse, rest)
        else:
            out |= self.block(_body(statement.orelse.body), rest)
        self._tell_truths(out)
        return out

    def _tell_truths(self, modes: Modes) -> None:
        """Names that are True in some modes and False in all others now say the mode: their lines go."""
        for name, found in self._truths.items():
            if name in self.names.flags or not modes or modes - found.values.keys() or found.ended:
                continue
            said = frozenset(mode for mode, value in found.values.items() if value)
            if not said & modes or not modes - said:
                continue
            self.names = replace(self.names, flags={**self.names.flags, name: said})
            for line in found.lines:
                at = next(index for index, one in enumerate(self.statements) if one.node is line)
                self._leave_out(at)

    def _leave_out(self, at: int) -> None:
        gone = self.statements.pop(at)
        if at < len(self.statements):
            kept = self.statements[at]
            self.statements[at] = replace(kept, comments=(*gone.comments, *kept.comments))
        else:
            self.carried[:0] = gone.comments

        def moved(spec: Spec) -> Spec:
            return replace(spec, position=spec.position - (spec.position > at))

        self.specs = [moved(spec) for spec in self.specs]
        self._pending = {name: [moved(spec) for spec in specs] for name, specs in self._pending.items()}

    def _truth(self, statement: cst.SimpleStatementLine, name: str, value: bool, modes: Modes) -> Modes | None:
        """Keeps account of `name = True` by mode; the modes where that is all that the line says."""
        found = self._truths.setdefault(name, _Truths(len(self.statements)))
        if found.ended or any(name in names_changed((one.node,)) for one in self.statements[: found.start]):
            return None
        behind = self.statements[found.start :]
        again = modes & found.values.keys()
        if any(one.modes & again and name in names_read(one.node) for one in behind):
            found.ended = True  # it was asked before it changed
            self._other_truth(statement, name)
            return None
        found.values.update(dict.fromkeys(modes, value))
        if name in self.names.flags:
            said = self.names.flags[name] - modes | (modes if value else frozenset())
            self.names = replace(self.names, flags={**self.names.flags, name: said})
            return modes
        found.lines.append(statement)
        return None

    def _other_truth(self, statement: cst.BaseStatement, name: str) -> None:
        """Raises Blocked (TFM106) where the mode was asked by a name that gets another value."""
        if name in self.names.flags:
            raise Blocked("TFM106", statement, f"`{name}` is reassigned after it was set by the mode: use another name")

    def _simple(self, statement: cst.SimpleStatementLine, small: cst.BaseSmallStatement, modes: Modes) -> Modes | None:
        """Handles returns, asserts about the mode, mode flags and specs; None for anything else."""
        if isinstance(small, cst.Return):
            made = self._made(small.value, modes, statement)
            if made is None:
                raise Blocked("TFM105", small, "the model_fn returns something other than an EstimatorSpec")
            self.specs += made
            return frozenset()
        if isinstance(small, cst.Raise):
            return frozenset()
        if isinstance(small, cst.Assert) and self.names.when(small.test) is not None:
            return modes
        if isinstance(small, cst.Assign) and len(small.targets) == 1 and isinstance(small.targets[0].target, cst.Name):
            name = small.targets[0].target.value
            new = None if isinstance(small.value, cst.Name) else self._made(small.value, modes, statement)
            if new is not None:
                earlier = [replace(spec, modes=spec.modes - modes) for spec in self._pending.get(name, [])]
                self._pending[name] = [*(spec for spec in earlier if spec.modes), *new]
                return modes
            if name in self.spread:
                self._entries[name] = [(m - modes, k, v) for m, k, v in self._entries.get(name, [])]
                self._entries[name] += [(modes, key, value) for key, value in _entries(small.value)]
                return modes
            if isinstance(small.value, cst.Name) and small.value.value in ("True", "False") and not self.lenient:
                return self._truth(statement, name, small.value.value == "True", modes)
            when = self.names.when(small.value)
            if when is not None and not isinstance(small.value, cst.Name):
                self.names = replace(self.names, flags={**self.names.flags, name: when})
                return modes
        entry = _entry_set(small)
        if entry is not None and entry[0] in self.spread:
            self._entries.setdefault(entry[0], []).extend((modes, key, value) for key, value in entry[1])
            return modes
        if self.spread & names_in(small):
            raise Blocked(
                "TFM105", small, "the arguments of the EstimatorSpec are used outside its call: write them in the call"
            )
        return None

    def _made(
        self, node: cst.BaseExpression | None, modes: Modes, statement: cst.SimpleStatementLine
    ) -> list[Spec] | None:
        """The specs that an expression gives, in these modes: a call, the name of some, or `spec._replace(...)`."""
        call = self._spec_call(node)
        if call is not None:
            return self._specs(call, modes, statement)
        if isinstance(node, cst.Name):
            known = self._pending.get(node.value, [])
            missing = modes - frozenset().union(*(spec.modes for spec in known))
            if missing and (not known or missing != {PREDICT}):
                return None  # TensorFlow 1 fails where nothing gave the name a spec, and may do so when it predicts
            return [replace(spec, modes=spec.modes & modes) for spec in known if spec.modes & modes]
        of = node.func if isinstance(node, cst.Call) else None
        if not isinstance(node, cst.Call) or not isinstance(of, cst.Attribute) or of.attr.value != "_replace":
            return None
        old = self._made(of.value, modes, statement)
        if old is None or any(arg.keyword is None and arg.star != "**" for arg in node.args):
            return None
        found: list[Spec] = []
        for spec in old:
            since = names_changed(one.node for one in self.statements[spec.position :])
            if since & names_in(spec.call):
                raise Blocked("TFM105", node, "an argument of this EstimatorSpec has changed since")
            for more in self._specs(node, spec.modes, statement):
                found.append(replace(more, call=_with(spec.call, more.call.args)))
        return found

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
        returns = returns_in(statement)
        if returns and not isinstance(statement, (cst.FunctionDef, cst.ClassDef)):
            raise Blocked(
                "TFM105",
                returns[0],
                (
                    "the model_fn returns from a block that tf-migrate cannot resolve: return at its end, "
                    "or in branches on the mode"
                ),
            )
        if (
            self.names.mode is not None
            and isinstance(statement, cst.If)
            and self.names.mode in names_in(statement.test)
        ):
            raise Blocked("TFM106", statement.test, "this condition combines `mode` with something else: split it")


def _with(call: cst.Call, more: Sequence[cst.Arg]) -> cst.Call:
    """The call of an EstimatorSpec with some arguments given anew."""
    given = {arg.keyword.value: arg.value for arg in more if arg.keyword is not None}
    args: list[cst.Arg] = []
    for index, arg in enumerate(call.args):
        name = arg.keyword.value if arg.keyword is not None else SPEC[index] if not arg.star else None
        args.append(arg.with_changes(value=given.pop(name)) if name in given else arg)
    args += [cst.Arg(value, keyword=cst.Name(name)) for name, value in given.items()]
    return call.with_changes(args=args)


def _same(args: Sequence[cst.Arg], others: Sequence[cst.Arg]) -> bool:
    return len(args) == len(others) and all(a is b for a, b in equal_zip(args, others))


def _entries(node: cst.BaseExpression) -> list[tuple[str, cst.BaseExpression]]:
    """The entries of a dict of arguments. Raises Blocked (TFM105)."""
    entries = [(string(one.key), one.value) for one in written_entries(node) or ()]
    known = [(key, value) for key, value in entries if key is not None]
    if written_entries(node) is None or len(known) < len(entries):
        raise Blocked("TFM105", node, "the arguments of the EstimatorSpec are not literal keywords: write them out")
    return known


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


def _spread(body: Sequence[cst.BaseStatement], imports: ImportMap) -> frozenset[str]:
    """The names in `EstimatorSpec(**name)`."""
    calls = [call for statement in body for call in calls_in(statement)]
    specs = [call for call in calls if imports.resolve(call.func) == "tf.estimator.EstimatorSpec"]
    stars = [arg.value for call in specs for arg in call.args if arg.star == "**"]
    return frozenset(value.value for value in stars if isinstance(value, cst.Name))


def _body(block: cst.BaseSuite) -> Sequence[cst.BaseStatement]:
    if isinstance(block, cst.IndentedBlock):
        return block.body
    assert isinstance(block, cst.SimpleStatementSuite)
    return [cst.SimpleStatementLine(block.body)]
