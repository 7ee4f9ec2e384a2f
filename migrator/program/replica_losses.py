"""How the losses of a replica's step are scaled: what a value is a mean or a share of, and what divides it again.

A loss is followed through names, helpers of the file, `/=` and gradients. What is not understood is not known, and
nothing is said of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property

import libcst as cst

from migrator.names.imports import dotted
from migrator.pairing import equal_zip
from migrator.program.calls import is_none, number, string
from migrator.program.modern import ModernFile, keyword


class Kind(Enum):
    """What a value of a step is."""

    EACH = "the losses of the examples"
    PARTS = "the losses of the examples, divided by the global batch"
    SUM = "the sum over the replica's batch"
    MEAN = "the mean over the replica's batch"
    SHARE = "what the replica adds to the mean over the global batch"
    PENALTY = "the regularization losses, the same on every replica"


class Divisor(Enum):
    """What a number counts."""

    REPLICAS = "the replicas"
    GLOBAL = "the examples of the global batch"
    OWN = "the examples of a replica's batch"
    BOTH = "the examples of the global batch times the replicas"


@dataclass(frozen=True)
class Value:
    """A value of a step.

    `means` are the means over a replica's batch that it comes from, `parts` the values of a tuple, and `by` is what
    made it a share of the global batch.
    """

    kind: Kind | None = None
    means: frozenset[cst.CSTNode] = frozenset()
    parts: tuple[Value, ...] = ()
    by: str = ""


_UNKNOWN = Value()
Names = Mapping[str, Value]


@dataclass
class Scales:
    """What is known of the losses of the steps of a file.

    `twice` are the divisions by the replicas of what was divided by them already, and what did that; `penalties` the
    places where regularization losses are added to such a value as they are; `means` the means of a replica's batch
    that are divided by the replicas later.
    """

    twice: dict[cst.CSTNode, str] = field(default_factory=dict)
    penalties: set[cst.CSTNode] = field(default_factory=set)
    means: set[cst.CSTNode] = field(default_factory=set)


def read_scales(file: ModernFile) -> Scales:
    """Follows the losses of every function of a file that runs on replicas."""
    reader = _Reader(file)
    for function in file.on_replicas:
        reader.run(function, {})
    return reader.found


_DEPTH = 6
_SCALED = ("tf.nn.compute_average_loss", "tf.nn.scale_regularization_loss")
_SUMS = ("tf.reduce_sum", "tf.math.reduce_sum")
_MEANS = ("tf.reduce_mean", "tf.math.reduce_mean")
_ADDED = ("tf.add_n", "tf.math.add_n", *_SUMS)
_DIVIDES = ("tf.divide", "tf.math.divide", "tf.truediv", "tf.math.truediv", "tf.math.divide_no_nan", "tf.realdiv")
_MULTIPLIES = ("tf.multiply", "tf.math.multiply", "tf.scalar_mul", "tf.math.scalar_mul")
_SAME = ("tf.cast", "tf.identity", "tf.convert_to_tensor", "tf.constant", "tf.squeeze", "tf.reshape")
_PLAIN = ("float", "int", "list", "tuple")
# Methods of optimizers that take a loss, or gradients, and give the same, scaled for mixed precision.
_SCALING = ("get_scaled_loss", "scale_loss", "get_unscaled_gradients")
_MEAN_OF_REPLICAS = re.compile(r"all_reduce\([^()]*mean", re.IGNORECASE)


class _Reader:
    def __init__(self, file: ModernFile) -> None:
        self.file = file
        self.found = Scales()
        self.by_name: dict[str, list[cst.FunctionDef]] = {}
        for function in file.functions:
            self.by_name.setdefault(function.name.value, []).append(function)
        self.running: list[cst.FunctionDef] = []
        self.open: set[str] = set()  # names whose values are being looked at
        # A program that takes the mean of the replicas' gradients itself scales its losses in another way.
        self.own_mean = bool(_MEAN_OF_REPLICAS.search(file.parsed.bare))

    # -- statements --

    def run(self, function: cst.FunctionDef, given: Names) -> Value:
        """Goes through a function; what it returns, where all its values are of one kind."""
        if function in self.running or len(self.running) >= _DEPTH:
            return _UNKNOWN
        self.running.append(function)
        returned: list[Value] = []
        self._block(function.body, dict(given), returned)
        self.running.pop()
        return _common(returned)

    def _block(self, body: cst.BaseSuite, names: dict[str, Value], returned: list[Value]) -> None:
        for statement in body.body:
            if isinstance(statement, cst.SimpleStatementLine):
                for small in statement.body:
                    self._small(small, names, returned)
            elif isinstance(statement, cst.BaseSmallStatement):
                self._small(statement, names, returned)
            elif isinstance(statement, cst.If):
                self._branches(statement, names, returned)
            elif isinstance(statement, (cst.For, cst.While)):
                before = dict(names)
                if isinstance(statement, cst.For):
                    self._bind(statement.target, self._of(statement.iter, names), names)
                self._block(statement.body, names, returned)
                _merge(names, before)
            elif isinstance(statement, cst.With):
                self._block(statement.body, names, returned)
            elif isinstance(statement, (cst.Try, cst.TryStar)):
                self._block(statement.body, names, returned)
                for part in (statement.orelse, statement.finalbody):
                    if part is not None:
                        self._block(part.body, names, returned)

    def _branches(self, statement: cst.If, names: dict[str, Value], returned: list[Value]) -> None:
        ends = []
        branch: cst.If | cst.Else | None = statement
        while branch is not None:
            end = dict(names)
            self._block(branch.body, end, returned)
            ends.append(end)
            last, branch = branch, branch.orelse if isinstance(branch, cst.If) else None
        if isinstance(last, cst.If):
            ends.append(dict(names))
        names.clear()
        names.update(ends[0])
        for end in ends[1:]:
            _merge(names, end)

    def _small(self, small: cst.BaseSmallStatement, names: dict[str, Value], returned: list[Value]) -> None:
        if isinstance(small, cst.Assign):
            value = self._of(small.value, names)
            for target in small.targets:
                self._bind(target.target, value, names)
        elif isinstance(small, cst.AnnAssign) and small.value is not None:
            self._bind(small.target, self._of(small.value, names), names)
        elif isinstance(small, cst.AugAssign):
            self._bind(small.target, self._augmented(small, names), names)
        elif isinstance(small, cst.Return):
            returned.append(_UNKNOWN if small.value is None else self._of(small.value, names))
        elif isinstance(small, cst.Expr):
            self._of(small.value, names)

    def _augmented(self, small: cst.AugAssign, names: Names) -> Value:
        left = self._of(small.target, names)
        if isinstance(small.operator, cst.DivideAssign):
            return self._divided(left, self._divisor(small.value, names), small)
        if isinstance(small.operator, cst.MultiplyAssign):
            return self._times(left, small.target, small.value, names, small)
        if isinstance(small.operator, cst.AddAssign):
            return self._added(left, self._of(small.value, names), small)
        return _UNKNOWN

    def _bind(self, target: cst.BaseExpression, value: Value, names: dict[str, Value]) -> None:
        if isinstance(target, (cst.Tuple, cst.List)):
            parts = value.parts if len(value.parts) == len(target.elements) else ()
            for index, element in enumerate(target.elements):
                self._bind(element.value, parts[index] if parts else _UNKNOWN, names)
            return
        key = dotted(target)
        if key is not None:
            names[key] = value

    # -- expressions --

    def _of(self, node: cst.BaseExpression, names: Names) -> Value:
        """The value of an expression; all divisions in it are looked at."""
        key = dotted(node)
        if key is not None:
            if key in names:
                return names[key]
            return Value(Kind.PENALTY) if self._is_of_model(node) else _UNKNOWN
        if isinstance(node, (cst.Tuple, cst.List)):
            return Value(parts=tuple(self._of(element.value, names) for element in node.elements))
        if isinstance(node, cst.BinaryOperation):
            return self._operation(node, names)
        if isinstance(node, cst.IfExp):
            return _common([self._of(node.body, names), self._of(node.orelse, names)])
        if isinstance(node, (cst.ListComp, cst.GeneratorExp)):
            return self._comprehension(node, names)
        if isinstance(node, cst.Call):
            return self._call(node, names)
        return _UNKNOWN

    def _is_of_model(self, node: cst.BaseExpression) -> bool:
        """Whether this is `model.losses`, which the program does not fill itself."""
        is_losses = isinstance(node, cst.Attribute) and node.attr.value == "losses"
        return is_losses and self.file.name(node) is None and not self.file.is_assigned(node)

    def _operation(self, node: cst.BinaryOperation, names: Names) -> Value:
        left = self._of(node.left, names)
        if isinstance(node.operator, cst.Divide):
            return self._divided(left, self._divisor(node.right, names), node)
        if isinstance(node.operator, cst.Multiply):
            return self._times(left, node.left, node.right, names, node)
        right = self._of(node.right, names)
        if isinstance(node.operator, cst.Add):
            return self._added(left, right, node)
        return left if right.kind is None else _UNKNOWN

    def _comprehension(self, node: cst.ListComp | cst.GeneratorExp, names: Names) -> Value:
        """`[gradient / n for gradient in gradients]`, which is what its elements are."""
        inner = dict(names)
        loop: cst.CompFor | None = node.for_in
        while loop is not None:
            value = self._of(loop.iter, inner)
            each = self._zipped(loop.iter, inner) if isinstance(loop.target, cst.Tuple) else value
            self._bind(loop.target, each, inner)
            loop = loop.inner_for_in
        return self._of(node.elt, inner)

    def _zipped(self, node: cst.BaseExpression, names: Names) -> Value:
        """What a loop over `zip(a, b)` gives."""
        if isinstance(node, cst.Call) and dotted(node.func) == "zip":
            return Value(parts=tuple(self._of(arg.value, names) for arg in node.args))
        return _UNKNOWN

    def _times(
        self, left: Value, first: cst.BaseExpression, second: cst.BaseExpression, names: Names, node: cst.CSTNode
    ) -> Value:
        """A product: by one over a number, by the replicas, or by a weight, which changes no kind."""
        right = self._of(second, names)
        for value, other in ((left, second), (right, first)):
            if value.kind is None:
                continue
            divisor = self._inverse(other, names)
            if divisor is not None:
                return self._divided(value, divisor, node)
            factor = self._divisor(other, names)
            if factor is not None:
                back = factor is Divisor.REPLICAS and value.kind is Kind.SHARE
                return Value(Kind.MEAN) if back else _UNKNOWN
        return left if right.kind is None else right if left.kind is None else _UNKNOWN

    def _added(self, left: Value, right: Value, node: cst.CSTNode) -> Value:
        kinds = {left.kind, right.kind}
        means = left.means | right.means
        if kinds == {Kind.SHARE, Kind.PENALTY}:
            if not self.own_mean:
                self.found.penalties.add(node)
        for kind in (Kind.SHARE, Kind.MEAN, Kind.PARTS, Kind.EACH, Kind.SUM):
            if kind in kinds:
                return Value(kind, means, by=left.by or right.by)
        return left if kinds == {Kind.PENALTY} else _UNKNOWN

    def _divided(self, value: Value, divisor: Divisor | None, node: cst.CSTNode) -> Value:
        """A quotient, which is told of where the value was divided by the replicas before."""
        if divisor is Divisor.BOTH:
            value, divisor = self._divided(value, Divisor.GLOBAL, node), Divisor.REPLICAS
        if divisor is Divisor.REPLICAS:
            if value.kind in (Kind.SHARE, Kind.PARTS):
                if not self.own_mean:
                    self.found.twice.setdefault(node, value.by)
                return _UNKNOWN
            if value.kind in (Kind.MEAN, Kind.PENALTY):
                self.found.means |= value.means
                return Value(Kind.SHARE, value.means, by="another division")
            return _UNKNOWN
        if divisor is Divisor.GLOBAL:
            by = "the division by the global batch"
            return Value({Kind.SUM: Kind.SHARE, Kind.EACH: Kind.PARTS}.get(value.kind or Kind.MEAN), by=by)
        if divisor is Divisor.OWN:
            return Value(Kind.MEAN if value.kind is Kind.SUM else None)
        return value if value.kind in (Kind.PENALTY, Kind.SHARE, Kind.MEAN) else _UNKNOWN

    # -- calls --

    def _call(self, node: cst.Call, names: Names) -> Value:
        values = [self._of(arg.value, names) for arg in node.args]
        first = values[0] if values else _UNKNOWN
        name = self.file.name(node.func) or ""
        last = name.rpartition(".")[2]
        if name in _SCALED:
            return Value(Kind.SHARE, by=f"`{name}`")
        if name == "tf.nn.l2_loss":
            return Value(Kind.PENALTY)
        if name in _SUMS and first.kind is not Kind.PENALTY:
            kinds = {None: Kind.SUM, Kind.EACH: Kind.SUM, Kind.PARTS: Kind.SHARE}
            return replace(first, kind=kinds.get(first.kind, first.kind)) if _whole(node) else first
        if (name in _ADDED or dotted(node.func) == "sum") and first.kind is Kind.PENALTY:
            return first
        if name in _MEANS:
            whole = _whole(node) and first.kind in (None, Kind.EACH, Kind.MEAN)
            return Value(Kind.MEAN, first.means | {node}) if whole else first
        if name in _DIVIDES and len(node.args) >= 2:
            return self._divided(first, self._divisor(node.args[1].value, names), node)
        if name in _MULTIPLIES and len(node.args) >= 2:
            return self._times(first, node.args[0].value, node.args[1].value, names, node)
        if name in _SAME or dotted(node.func) in _PLAIN:
            return first
        if name.startswith(("tf.keras.losses.", "tf.losses.")) and last[:1].islower() and last != "get":
            return Value(Kind.EACH)
        if "cross_entropy" in last and name.startswith("tf.nn."):
            return Value(Kind.EACH)
        if not name and isinstance(node.func, cst.Attribute):
            method = node.func.attr.value
            if method == "gradient" or method in _SCALING:
                return first
        kind = self._of_loss_object(node)
        return Value(kind) if kind is not None else self._of_helper(node, values)

    def _of_loss_object(self, node: cst.Call) -> Kind | None:
        """What a Keras loss gives, by its reduction."""
        made = node.func if isinstance(node.func, cst.Call) else self.file.value_of(node.func)
        if not isinstance(made, cst.Call):
            return None
        name = self.file.name(made.func) or ""
        if not name.startswith(("tf.keras.losses.", "tf.losses.")) or not name.rpartition(".")[2][:1].isupper():
            return None
        return {"none": Kind.EACH, "sum": Kind.SUM, "sum_over_batch_size": Kind.MEAN}.get(reduction_of(made) or "")

    def _of_helper(self, node: cst.Call, values: list[Value]) -> Value:
        """What a function of the file returns for these values."""
        key = dotted(node.func) or ""
        head, _, name = key.rpartition(".")
        functions = self.by_name.get(name, [])
        if len(functions) != 1 or head not in ("", "self", "cls"):
            return _UNKNOWN
        parameters = [*functions[0].params.posonly_params, *functions[0].params.params]
        names = [parameter.name.value for parameter in parameters]
        if head and names[:1] == [head]:
            names = names[1:]
        given = {
            arg.keyword.value if arg.keyword is not None else names[index]: value
            for index, (arg, value) in enumerate(equal_zip(node.args, values))
            if not arg.star and (arg.keyword is not None or index < len(names))
        }
        return self.run(functions[0], given)

    # -- numbers --

    def _inverse(self, node: cst.BaseExpression, names: Names) -> Divisor | None:
        """What `1. / number` divides by."""
        node = self._number(node)
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Divide) and number(node.left) == 1:
            return self._divisor(node.right, names)
        return None

    def _number(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """A number without its casts, or what a name is given."""
        for _ in range(_DEPTH):
            if isinstance(node, cst.Call) and node.args and _is_cast(self.file, node):
                node = node.args[0].value
            elif (value := self.file.value_of(node)) is not None and not _counts(node):
                node = value
            else:
                break
        return node

    def _divisor(self, node: cst.BaseExpression, names: Names) -> Divisor | None:
        """What a number counts, as far as its name or its formula tell."""
        if isinstance(node, cst.Call) and node.args and _is_cast(self.file, node):
            return self._divisor(node.args[0].value, names)
        if _counts(node):
            return Divisor.REPLICAS
        if isinstance(node, cst.BinaryOperation):
            left, right = self._divisor(node.left, names), self._divisor(node.right, names)
            if isinstance(node.operator, cst.Multiply) and Divisor.REPLICAS in (left, right):
                other = right if left is Divisor.REPLICAS else left
                return Divisor.BOTH if other is Divisor.GLOBAL else Divisor.GLOBAL
            if isinstance(node.operator, (cst.Divide, cst.FloorDivide)) and right is Divisor.REPLICAS:
                return Divisor.OWN
            return None
        key = dotted(node)
        if key is None or key in self.open or (key in names and names[key].kind is not None):
            return None
        value = self.file.value_of(node)
        if value is not None:
            self.open.add(key)
            found = self._divisor(value, names)
            self.open.remove(key)
            if found is not None:
                return found
        last = key.rpartition(".")[2].lower()
        if "step" in last or "replica" in last:
            return None
        return Divisor.GLOBAL if "global" in last or key in self._batches else None

    @cached_property
    def _batches(self) -> set[str]:
        """The sizes of batches of data sets that a strategy divides among the replicas itself."""
        text = self.file.parsed.bare
        if "experimental_distribute_dataset" not in text or "from_function" in text:
            return set()
        sizes = [
            dotted(call.args[0].value)
            for call in self.file.calls
            if isinstance(call.func, cst.Attribute) and call.func.attr.value == "batch" and call.args
        ]
        return {size for size in sizes if size is not None}


def reduction_of(made: cst.Call) -> str | None:
    """The reduction that a Keras loss is given by name, in small letters; None where none is, or no plain one."""
    given = keyword(made, "reduction")
    if given is None:
        return None
    text = string(given.value) or dotted(given.value) or ""
    return text.rpartition(".")[2].lower() or None


def refused_by_keras_2(file: ModernFile) -> list[cst.Call]:
    """The calls in steps of replicas of Keras losses that average over the batch, as all do that are told nothing."""
    found = []
    for call in file.calls:
        if not file.runs_on_replicas(call):
            continue
        made = call.func if isinstance(call.func, cst.Call) else file.value_of(call.func)
        if not isinstance(made, cst.Call) or any(arg.star for arg in made.args):
            continue
        name = file.name(made.func) or ""
        if not name.startswith(("tf.keras.losses.", "tf.losses.")) or not name.rpartition(".")[2][:1].isupper():
            continue
        if keyword(made, "reduction") is None:
            by_place = [string(arg.value) or dotted(arg.value) or "" for arg in made.args if arg.keyword is None]
            if not any(text.rpartition(".")[2].lower() in ("none", "sum") for text in by_place):
                found.append(call)
        elif reduction_of(made) in ("auto", "sum_over_batch_size"):
            found.append(call)
    return found


def _counts(node: cst.BaseExpression) -> bool:
    """Whether a name says that it is the number of replicas."""
    last = node.attr.value if isinstance(node, cst.Attribute) else node.value if isinstance(node, cst.Name) else ""
    return "num_replicas" in last.lower()


def _is_cast(file: ModernFile, node: cst.Call) -> bool:
    return file.name(node.func) in _SAME or dotted(node.func) in _PLAIN


def _whole(node: cst.Call) -> bool:
    """Whether a sum or a mean is one over all axes, or over that of the examples."""
    axis = keyword(node, "axis")
    given = axis.value if axis is not None else None
    if given is None and len(node.args) > 1 and node.args[1].keyword is None:
        given = node.args[1].value
    return is_none(given) or number(given) == 0


def _common(values: Iterable[Value]) -> Value:
    """What all of some values are."""
    values = list(values)
    if not values:
        return _UNKNOWN
    first = values[0]
    if any(value.kind is not first.kind or len(value.parts) != len(first.parts) for value in values):
        return _UNKNOWN
    means = first.means.union(*(value.means for value in values))
    parts = tuple(_common(part) for part in equal_zip(*(value.parts for value in values)))
    return Value(first.kind, means, parts, first.by)


def _merge(names: dict[str, Value], other: Names) -> None:
    """Leaves what is the same at the end of two ways through a function."""
    for name in {*names, *other}:
        names[name] = _common([names.get(name, _UNKNOWN), other.get(name, _UNKNOWN)])
