"""The loss of a model_fn: one stock loss of the model's output, or the user's own statements (the general form)."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import libcst as cst

from migrator.names.bindings import names_bound
from migrator.names.imports import ImportMap
from migrator.program.body import Body, Definition, names_given
from migrator.program.calls import bind, calls_in, is_false, is_name, is_none, is_true, string
from migrator.program.modes import EVAL, PREDICT, TRAIN
from migrator.program.outlining import Outlined, check_pure, given, of_labels, outline, touched
from migrator.program.parsed import Blocked, name_nodes, names_in
from migrator.rules.losses import DataLoss, read_cross_entropy, read_keras_loss, read_loss
from migrator.walking import of_kinds, walk

#: The refusals of a stock loss that the general form has an answer to.
GENERAL_FORM = ("TFM301", "TFM302", "TFM304")
_REGULARIZATION = ("tf.losses.get_regularization_loss",)

ANOTHER = "EVAL mode reports another loss than TRAIN mode minimizes"


@dataclass(frozen=True)
class Loss:
    """The loss as read: its data term, whether regularization is added, and the statements that only make it.

    `index` is the first statement that belongs to the loss.
    """

    data: DataLoss
    regularized: bool
    statements: frozenset[int]
    index: int


def read_model_loss(body: Body, expression: cst.BaseExpression) -> Loss:
    """Reads the loss that the TRAIN mode's EstimatorSpec gives. Raises Blocked (TFM301, TFM302)."""
    reader = _Reader(body)
    data, regularized = reader.read(expression)
    compared = data.prediction if data.prediction is not None else data.mean_of
    tensors = names_in(compared) if compared is not None else set()
    _check_same_in_eval(body, expression, tensors)
    nodes = [expression, *(body.statements[index].node for index in reader.consumed)]
    _check_same_numbers(body, nodes, tensors if data.prediction is not None else set())
    return Loss(data, regularized, frozenset(reader.consumed), reader.index)


@dataclass(frozen=True)
class GeneralLoss:
    """A loss that a method of the model computes with the user's own statements.

    `expression` is what the EstimatorSpec says, `outlined` what the method needs, `moved` every statement of any mode
    that goes to it, `collected` what `tf.losses.get_total_loss` adds up, and `summed` whether the loss that TensorFlow
    1 notes last is a sum, which replicas add and do not average (None: not known). `minimized` is what the training
    minimizes, where that is not what the EstimatorSpec says, `evaluated` the loss of the EVAL mode, where that is
    another one.
    """

    expression: cst.BaseExpression
    outlined: Outlined
    moved: frozenset[int]
    regularized: bool
    collected: tuple[cst.BaseExpression, ...]
    summed: bool | None
    minimized: cst.BaseExpression | None = None
    evaluated: GeneralLoss | None = None

    @property
    def nodes(self) -> tuple[cst.BaseExpression, ...]:
        """The expressions that the methods compute from their statements."""
        minimized = (self.minimized,) if self.minimized is not None else ()
        return (self.expression, *self.collected, *minimized, *(self.evaluated.nodes if self.evaluated else ()))

    @property
    def statements(self) -> tuple[int, ...]:
        """The indices of the statements that the methods run."""
        return tuple(sorted({*self.outlined.statements, *(self.evaluated.statements if self.evaluated else ())}))

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the network's tensors that the methods read."""
        return tuple(dict.fromkeys((*self.outlined.outputs, *(self.evaluated.outputs if self.evaluated else ()))))


def output_of(names: Sequence[str]) -> cst.BaseExpression:
    """The output of a model whose methods need some tensors of the network, by name."""
    if len(names) == 1:
        return cst.Name(names[0])
    return cst.parse_expression("{" + ", ".join(f'"{name}": {name}' for name in names) + "}")


def read_general_loss(
    body: Body, consumed: Collection[int], minimized: cst.BaseExpression | None = None
) -> GeneralLoss:
    """Reads any loss; `consumed` are the statements that say something else, `minimized` is another loss that the
    training minimizes. Raises Blocked (TFM301, TFM311).
    """
    expressions = {mode: body.piece("loss", mode) for mode in (TRAIN, EVAL)}
    of_mode = {mode: expression for mode, expression in expressions.items() if expression is not None}
    found = [_general(body, expression, consumed, mode) for mode, expression in of_mode.items()]
    first, other = found[0], found[-1]
    another = first is not other and not _are_one(body, first, other)
    if another:
        first, other = (_general(body, expression, consumed, mode, True) for mode, expression in of_mode.items())
        for one in (first, other):
            _check_around(body, one)
    for one in (first, other):
        if not one.outlined.outputs:
            raise Blocked("TFM301", one.expression, "the loss depends on no tensor of the network")
    both = replace(first, moved=first.moved | other.moved)
    if another:
        both = replace(both, regularized=first.regularized or other.regularized, evaluated=other)
        both = replace(both, moved=both.moved | _of_methods(body, both))
    return both if minimized is None else _with_minimized(body, both, consumed, minimized)


def _with_minimized(
    body: Body, loss: GeneralLoss, consumed: Collection[int], minimized: cst.BaseExpression
) -> GeneralLoss:
    """A loss that is reported, with another one that the training minimizes beside it. Raises Blocked (TFM301)."""
    if loss.collected:
        raise Blocked("TFM301", minimized, "the minimized loss is not the loss of the EstimatorSpec")
    trained = _general(body, minimized, consumed, TRAIN)
    position = max(s.position for s, b in body.specs if TRAIN in s.modes and not is_none(b.get("loss")))
    outlined = outline(body, [(loss.expression, position), (minimized, position)], consumed, TRAIN)
    if trained.collected or trained.summed != loss.summed or not trained.outlined.outputs:
        raise Blocked("TFM301", minimized, "the minimized loss is not the loss of the EstimatorSpec")
    return replace(
        loss,
        outlined=outlined,
        moved=loss.moved | trained.moved,
        regularized=loss.regularized or trained.regularized,
        minimized=minimized,
    )


def _codes(body: Body, loss: GeneralLoss) -> list[str]:
    nodes = [body.statements[index].node for index in loss.outlined.statements]
    return [body.file.code(node).strip() for node in (*nodes, loss.expression, *loss.collected)]


def _general(
    body: Body, expression: cst.BaseExpression, consumed: Collection[int], mode: str, apart: bool = False
) -> GeneralLoss:
    position = max(s.position for s, b in body.specs if mode in s.modes and not is_none(b.get("loss")))
    roots = [(expression, position)]
    imports = body.file.imports
    outlined = outline(body, roots, consumed, mode, apart)
    nodes = [*(body.statements[index].node for index in outlined.statements), expression]
    collected: list[cst.BaseExpression] = []
    regularized = False
    for call in (call for node in nodes for call in calls_in(node)):
        name = imports.resolve(call.func) or ""
        if name in ("tf.losses.get_total_loss", "tf.losses.get_losses") or collection_of(call, imports) == "LOSSES":
            collected = _collected(body, consumed, mode, call)
        regularized = regularized or name.startswith("tf.losses.get_regularization_loss")
        regularized = regularized or collection_of(call, imports) == "REGULARIZATION_LOSSES"
        if name == "tf.losses.get_total_loss":
            added = bind(call, ("add_regularization_losses", "name", "scope"), name, "TFM301")
            regularized = regularized or not is_false(added.get("add_regularization_losses"))
    if collected:
        outlined = outline(body, [*roots, *((node, position) for node in collected)], consumed, mode, apart)
    moved = outlined.moved | {
        i for i, s in enumerate(body.statements) if mode in s.modes and _is_bare_loss(s.node, imports)
    }
    return GeneralLoss(expression, outlined, frozenset(moved), regularized, tuple(collected), _is_summed(body, nodes))


def collection_of(call: cst.Call, imports: ImportMap) -> str | None:
    """The name in tf.GraphKeys whose collection a call reads; None for any other call."""
    if imports.resolve(call.func) != "tf.get_collection" or not call.args:
        return None
    key = call.args[0].value
    name = string(key) or imports.resolve(key) or ""
    known = {
        "losses": "LOSSES",
        "regularization_losses": "REGULARIZATION_LOSSES",
        "trainable_variables": "TRAINABLE_VARIABLES",
    }
    return known.get(name, name.removeprefix("tf.GraphKeys."))


def _is_summed(body: Body, nodes: Sequence[cst.CSTNode]) -> bool | None:
    """Whether the last loss that is computed, one of tf.losses or a loss object of Keras, adds up its examples:
    Estimator does not average the losses of replicas then. None where a function of Keras comes behind such a sum: it
    may stand for an object (keras_losses.py), which TensorFlow notes, or for itself.
    """
    summed: bool | None = False
    for call in _as_they_run(nodes):
        reducing = _reducing(body, call)
        if reducing is not None:
            values = [arg.value for arg in reducing.args]
            names = [string(value) or body.file.imports.resolve(value) or "" for value in values]
            summed = any(name.endswith("Reduction.SUM") or name == "sum" for name in names)
        elif summed and (body.file.imports.resolve(call.func) or "").startswith("tf.keras.losses."):
            summed = None
    return summed


class _AsTheyRun(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[cst.Call] = []

    def leave_Call(self, original_node: cst.Call) -> None:
        self.found.append(original_node)


def _as_they_run(nodes: Sequence[cst.CSTNode]) -> list[cst.Call]:
    """The calls below some nodes, each behind those that give it its function and arguments."""
    collector = _AsTheyRun()
    for node in nodes:
        walk(node, collector)
    return collector.found


def _reducing(body: Body, call: cst.Call) -> cst.Call | None:
    """The call that says how the examples of a loss become one number, where ``call`` computes a loss that TensorFlow
    notes as its last one; None for any other call.
    """
    imports = body.file.imports
    name = imports.resolve(call.func) or ""
    if name.startswith("tf.losses."):
        return None if name.startswith("tf.losses.get_") or name == "tf.losses.add_loss" else call
    maker = call.func
    made = imports.resolve(maker.func) or "" if isinstance(maker, cst.Call) else ""
    is_class = made.startswith("tf.keras.losses.") and made.rpartition(".")[2][:1].isupper()
    return maker if isinstance(maker, cst.Call) and is_class else None


def _is_bare_loss(node: cst.CSTNode, imports: ImportMap) -> bool:
    """Whether a statement is a call of tf.losses that only adds to the collection of losses."""
    if not isinstance(node, cst.SimpleStatementLine) or len(node.body) != 1 or not isinstance(node.body[0], cst.Expr):
        return False
    value = node.body[0].value
    return isinstance(value, cst.Call) and (imports.resolve(value.func) or "").startswith("tf.losses.")


def _collected(body: Body, consumed: Collection[int], mode: str, total: cst.Call) -> list[cst.BaseExpression]:
    """What the collection of losses holds: names of losses, and the calls that have none."""
    imports = body.file.imports
    inside = {id(call) for call in calls_in(body.node)}
    for call in calls_in(body.file.module):
        name = imports.resolve(call.func) or ""
        if id(call) not in inside and name.startswith("tf.losses.") and not name.startswith("tf.losses.get_"):
            raise Blocked(
                "TFM301", call, "`get_total_loss` of the model_fn may add up this loss: create it in the model_fn"
            )
    found: list[cst.BaseExpression] = []
    for index, statement in enumerate(body.statements):
        if any(call is total for call in calls_in(statement.node)):
            break  # what comes later is not in the collection yet
        if index in consumed or mode not in statement.modes:
            continue
        for call in calls_in(statement.node):
            name = imports.resolve(call.func) or ""
            if not name.startswith("tf.losses.") or name.startswith("tf.losses.get_"):
                continue
            if name == "tf.losses.add_loss":
                message = "this term is added to the loss collection by hand: add it to the loss itself"
                raise Blocked("TFM301", call, message)
            own = [d for d in body.definitions if d.index == index and d.value is call]
            if own and len(body.definitions_of(own[0].name, mode)) == 1:
                found.append(cst.Name(own[0].name))
            elif _is_bare_loss(statement.node, imports):
                found.append(call)
            else:
                raise Blocked("TFM301", call, "the contents of the loss collection cannot be resolved")
    if not found:
        raise Blocked("TFM301", total, "the loss collection is filled outside the model_fn: fill it inside")
    return found


def read_output(body: Body, data: DataLoss, label_names: Collection[str]) -> cst.BaseExpression:
    """The tensor that the model answers with: what the loss compares with the labels. Raises Blocked."""
    if data.prediction is not None:
        if names_in(data.prediction) & set(label_names):
            raise Blocked("TFM304", _reads_labels(body, data.prediction), "the network reads the labels")
        return data.prediction
    assert data.mean_of is not None
    check_pure(data.mean_of, body)
    local = {d.name for d in body.definitions} | {body.parameters.features}
    tensors = sorted((_behind(body, data.mean_of, set(label_names)) & local) - set(label_names))
    if len(tensors) != 1 or tensors[0] == body.parameters.features:
        raise Blocked("TFM301", data.mean_of, "the loss does not depend on exactly one tensor of the network")
    return cst.Name(tensors[0])


def check_not_changed_later(
    body: Body, loss: Loss, output: cst.BaseExpression, label_names: set[str], consumed: Collection[int]
) -> None:
    """What the loss read must still be called that at the end of the function, where the model is made."""
    read = names_in(output)
    if loss.data.labels is not None:
        read |= names_in(loss.data.labels) & label_names
    for index in range(loss.index + 1, len(body.statements)):
        if index in consumed or not body.statements[index].modes & {TRAIN, EVAL}:
            continue
        changed = read & (names_given((body.statements[index],)))
        if changed:
            raise Blocked(
                "TFM301",
                body.statements[index].node,
                f"`{sorted(changed)[0]}` is reassigned after the loss: use another name",
            )
    predictions = [(s, b["predictions"]) for s, b in body.specs if PREDICT in s.modes and "predictions" in b]
    for spec, node in predictions:
        later = names_given(body.statements[spec.position :]) & names_in(node)
        if later:
            raise Blocked("TFM301", node, f"`{sorted(later)[0]}` is reassigned after the predictions: use another name")


def taken_by_key(node: cst.CSTNode, name: str | None) -> cst.CSTNode | None:
    """Where a name is taken apart by a string key: what it stands for is a dict."""
    one: cst.Subscript
    for one in of_kinds(node, cst.Subscript):
        element = one.slice[0].slice
        if is_name(one.value, name) and isinstance(element, cst.Index) and string(element.value) is not None:
            return one
    return None


def check_labels_are_a_tensor(body: Body) -> None:
    """Refuses labels that are taken apart by key. Raises Blocked (TFM301)."""
    found = taken_by_key(body.node.body, body.parameters.labels)
    if found is not None:
        raise Blocked("TFM301", found, "the labels are a dict: pass the model a single labels tensor")


def _values(body: Body, loss: cst.BaseExpression, mode: str) -> list[str]:
    """What a loss is in one mode: the assignments of its name, one after the other, or its expression."""
    given = body.definitions_of(loss.value, mode) if isinstance(loss, cst.Name) else []
    if isinstance(loss, cst.Name) and len(given) == 1:
        return [body.file.code(given[0].value)]
    if isinstance(loss, cst.Name):
        return [loss.value, *(f"{d.index}" for d in given)]
    return [body.file.code(loss)]


def _is_same(body: Body, trained: cst.BaseExpression, evaluated: cst.BaseExpression, tensors: Collection[str]) -> bool:
    """Whether the losses of two modes are one computation, whatever names its parts have in each of them.

    `tensors` are those of the network that the losses read.
    """
    of_data = of_labels(body)
    first, second = (
        _written_out(body, node, mode, len(body.statements), of_data, tensors)
        for node, mode in ((trained, TRAIN), (evaluated, EVAL))
    )
    return first is not None and first == second


def _written_out(
    body: Body, node: cst.BaseExpression, mode: str, before: int, of_data: Collection[str], tensors: Collection[str]
) -> str | None:
    """The code of an expression that stands before a statement, with what names have in a mode in their place.

    Names of the network that the same lines of both modes give get the numbers of these (`of_data` are those that the
    labels reach). None where another one may get its value, or a part of it (`terms.append(x)`), in another way than
    by an assignment of its own, and where the losses that were made so far count.
    """
    if any(_reads_losses(call, body.file.imports) for call in calls_in(node)):
        return None
    own: dict[cst.CSTNode, str] = {}
    for name in name_nodes(node):
        lines = [
            i
            for i, one in enumerate(body.statements[:before])
            if mode in one.modes and name.value in touched(one, body.file)
        ]
        if name.value not in of_data and all({TRAIN, EVAL} <= body.statements[index].modes for index in lines):
            own[name] = "_".join([name.value, *map(str, lines)])
            if (
                name.value not in tensors
                and _line_of_one(body, {name.value}, {body.parameters.features, *tensors}) is not None
            ):
                return None
            continue
        if name.value in body.unclear:
            return None
        if lines:
            last = next((one for one in body.definitions_of(name.value, mode) if one.index == lines[-1]), None)
            value = _written_out(body, last.value, mode, last.index, of_data, tensors) if last is not None else None
            if value is None:
                return None
            own[name] = f"({value})"
    text = body.file.code(node.visit(_InPlace(own)) if own else node)  # type: ignore[arg-type]
    return ast.unparse(ast.parse(f"({text})"))  # without parentheses that say nothing


def _reads_losses(call: cst.Call, imports: ImportMap) -> bool:
    """Whether a call gives the losses that were made before it."""
    read = imports.resolve(call.func) in ("tf.losses.get_total_loss", "tf.losses.get_losses")
    return read or collection_of(call, imports) == "LOSSES"


class _InPlace(cst.CSTTransformer):
    """Writes names as what they stand for."""

    def __init__(self, own: Mapping[cst.CSTNode, str]) -> None:
        super().__init__()
        self.own = own

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        value = self.own.get(original_node)
        return updated_node if value is None else cst.parse_expression(value)


def _check_same_in_eval(body: Body, loss: cst.BaseExpression, tensors: Collection[str]) -> None:
    evaluated = body.piece("loss", EVAL)
    if evaluated is None:
        return
    if _values(body, evaluated, EVAL) != _values(body, loss, TRAIN) and not _is_same(body, loss, evaluated, tensors):
        raise Blocked("TFM301", evaluated, ANOTHER)


def _check_same_numbers(body: Body, nodes: Sequence[cst.CSTNode], tensors: Collection[str]) -> None:
    """Refuses `weight = 2.0` of one mode: what a loss reads beside the labels and `tensors` of the network.

    `nodes` are its statements. Raises Blocked (TFM301).
    """
    if body.piece("loss", EVAL) is not None and not _same_numbers(body, nodes, tensors):
        raise Blocked("TFM301", nodes[0], ANOTHER)


def _same_numbers(body: Body, nodes: Sequence[cst.CSTNode], tensors: Collection[str]) -> bool:
    """Whether what statements read beside the labels and `tensors` of the network is the same in both modes."""
    apart = {*of_labels(body), *tensors, body.parameters.features}
    read = {name for node in nodes for name in names_in(node)} - apart
    return _line_of_one(body, read, apart) is None


def _are_one(body: Body, trained: GeneralLoss, evaluated: GeneralLoss) -> bool:
    """Whether one method computes the losses of both modes: statements, and numbers around them, are the same."""
    tensors = {*trained.outlined.outputs, *evaluated.outlined.outputs}
    if _codes(body, trained) != _codes(body, evaluated) or trained.outlined.outputs != evaluated.outlined.outputs:
        by_hand = not trained.collected and not evaluated.collected
        return by_hand and _is_same(body, trained.expression, evaluated.expression, tensors)
    nodes = [body.statements[index].node for index in trained.outlined.statements]
    if any(names_in(node) & body.about for node in (trained.expression, *trained.collected, *nodes)):
        return False
    return _same_numbers(body, [trained.expression, *trained.collected, *nodes], tensors)


def _of_methods(body: Body, loss: GeneralLoss) -> set[int]:
    """The statements of one mode that methods run and nothing else reads."""
    others = [one.node for index, one in enumerate(body.statements) if index not in loss.statements]
    told = [value for _, bound in body.specs for key, value in bound.items() if key != "loss"]
    read = set[str]().union(*(names_in(one) for one in (*others, *told)))
    lines = {index: body.statements[index] for index in loss.statements}
    return {i for i, line in lines.items() if not {TRAIN, EVAL} <= line.modes and not given(line) & read}


def _check_around(body: Body, loss: GeneralLoss) -> None:
    """Refuses a loss of one of two modes whose method would find a name around itself with the value of the other one,
    or change what stands around it. Raises Blocked (TFM301).
    """
    lines = [body.statements[index] for index in loss.outlined.statements]
    own = set[str](loss.outlined.reads)
    for line in lines:
        bound = names_bound([line.node])
        changed = next((name for name in touched(line, body.file) - bound if name not in own), None)
        if changed is not None or own & touched(line, body.file) & {body.parameters.features}:
            raise Blocked("TFM301", line.node, ANOTHER)
        own |= bound
    read = {name for node in (*loss.nodes, *(line.node for line in lines)) for name in names_in(node)}
    index = _line_of_one(body, read - own, own)
    if index is not None:
        raise Blocked("TFM301", body.statements[index].node, ANOTHER)


def _line_of_one(body: Body, names: Collection[str], apart: Collection[str]) -> int | None:
    """A statement behind some names that the training runs and the evaluation does not, or the other way round, or that
    asks for the mode and is no line of the network, which is told it by `training=`.
    """
    trained, evaluated = (_lines_behind(body, names, mode, apart) for mode in (TRAIN, EVAL))
    for index in (*trained, *evaluated):
        if (index in trained) != (index in evaluated):
            return index
        if names_in(body.statements[index].node) & body.about and not _reads_features(body, index):
            return index
    return None


def _reads_features(body: Body, index: int) -> bool:
    """Whether the features are behind a statement of both modes."""
    behind = _lines_behind(body, names_in(body.statements[index].node), TRAIN, ())
    return any(body.parameters.features in names_in(body.statements[one].node) for one in (index, *behind))


def _lines_behind(body: Body, names: Collection[str], mode: str, apart: Collection[str]) -> list[int]:
    """The statements of a mode that the values of some names can come from; `apart` are names that are not followed."""
    end = max(spec.position for spec, _ in body.specs if mode in spec.modes)
    wanted, found = set(names), list[int]()
    for index in range(end - 1, -1, -1):
        statement = body.statements[index]
        if mode in statement.modes and touched(statement, body.file) & wanted - set(apart):
            found.append(index)
            wanted |= names_in(statement.node)
    return found


def _behind(body: Body, node: cst.CSTNode, through: set[str]) -> set[str]:
    """The names in an expression and in the values of those names that are in `through`."""
    names, queue = names_in(node), list(names_in(node) & through)
    while queue:
        name = queue.pop()
        for definition in body.definitions:
            if definition.name == name:
                new = names_in(definition.value) - names
                names |= new
                queue += new & through
    return names


def _reads_labels(body: Body, node: cst.BaseExpression) -> cst.CSTNode:
    """The first statement behind an expression that reads the labels themselves."""
    behind = _behind(body, node, {d.name for d in body.definitions})
    for definition in body.definitions:
        if definition.name in behind and body.parameters.labels in names_in(definition.value):
            return definition.value
    return node


class _Reader:
    def __init__(self, body: Body) -> None:
        self.body = body
        self.imports = body.file.imports
        self.consumed: set[int] = set()
        self.index = len(body.statements)

    def _definitions_of(self, name: str) -> list[Definition]:
        return self.body.definitions_of(name, TRAIN)

    def read(self, expression: cst.BaseExpression) -> tuple[DataLoss, bool]:
        terms = list(self._terms(expression, len(self.body.statements)))
        data: list[DataLoss] = []
        regularized = False
        for term in terms:
            name = self.imports.resolve(term.func) if isinstance(term, cst.Call) else None
            if name in _REGULARIZATION:
                regularized = True
            elif name == "tf.losses.get_total_loss":
                assert isinstance(term, cst.Call)
                added = bind(term, ("add_regularization_losses", "name"), name, "TFM301").get(
                    "add_regularization_losses"
                )
                if added is not None and not (is_true(added) or is_false(added)):
                    raise Blocked(
                        "TFM301", added, "a computed value decides about the regularization losses: pass True or False"
                    )
                regularized = regularized or not is_false(added)
                data.extend(self._collected())
            else:
                code = self.body.file.code
                found = read_loss(term, self.imports, code) if isinstance(term, cst.Call) else None
                if found is None and isinstance(term, cst.Call):
                    found = self._of_object(term)
                if found is None:
                    raise Blocked("TFM301", term, "this loss is unsupported")
                if found.mean_of is not None:
                    found = self._through_names(found)
                data.append(found)
        if len(data) != 1:
            raise Blocked("TFM301", expression, f"the loss has {len(data)} data terms: only one is supported")
        return data[0], regularized

    def _of_object(self, term: cst.Call) -> DataLoss | None:
        """`loss_fn(labels, logits)`, where `loss_fn` is a loss object of Keras that is made here, or above."""
        made: cst.BaseExpression | None = term.func
        given: list[Definition] = []
        if isinstance(made, cst.Name):
            self.body.check_clear(made, "TFM301")
            given = [d for d in self._definitions_of(made.value) if d.index < self.index]
            made = given[0].value if len(given) == 1 else None if given else self.body.file.constants.get(made.value)
        if not isinstance(made, cst.Call):
            return None
        found = read_keras_loss(term, made, self.imports, self.body.file.code)
        if found is not None:
            self.consumed |= {one.index for one in given}
        return found

    def _through_names(self, found: DataLoss) -> DataLoss:
        """`reduce_mean(x)` where x is a name for a cross entropy."""
        inner = found.mean_of
        if isinstance(inner, cst.Name):
            self.body.check_clear(inner, "TFM301")
            definitions = self._definitions_of(inner.value)
            if len(definitions) == 1:
                self.consumed.add(definitions[0].index)
                self.index = min(self.index, definitions[0].index)
                value = definitions[0].value
                if isinstance(value, cst.Call):
                    known = read_cross_entropy(value, self.imports)
                    if known is not None:
                        return known
                return DataLoss(None, None, None, (), mean_of=value)
        return found

    def _terms(self, node: cst.BaseExpression, before: int) -> Iterator[cst.BaseExpression]:
        """The terms of a sum, names followed to what they stand for just before statement `before`."""
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
            yield from self._terms(node.left, before)
            yield from self._terms(node.right, before)
            return
        if isinstance(node, cst.Name):
            self.body.check_clear(node, "TFM301")
            earlier = [d for d in self._definitions_of(node.value) if d.index < before]
            if earlier:
                last = earlier[-1]
                self.consumed.add(last.index)
                yield from self._terms(last.value, last.index)
                return
        if isinstance(node, cst.Call):
            name = self.imports.resolve(node.func)
            if name == "tf.add_n" and node.args and isinstance(node.args[0].value, (cst.List, cst.Tuple)):
                for element in node.args[0].value.elements:
                    yield from self._terms(element.value, before)
                return
            if name in ("tf.identity", "tf.check_numerics") and node.args:
                yield from self._terms(node.args[0].value, before)
                return
        self.index = min(self.index, before)
        yield node

    def _collected(self) -> list[DataLoss]:
        """The tf.losses calls of the body, which get_total_loss adds up."""
        found = []
        for index, statement in enumerate(self.body.statements):
            for call in calls_in(statement.node):
                name = self.imports.resolve(call.func) or ""
                if name.startswith("tf.losses.") and not name.startswith("tf.losses.get_"):
                    loss = read_loss(call, self.imports, self.body.file.code)
                    if loss is None:
                        raise Blocked("TFM301", call, f"`{name}` is unsupported")
                    found.append(loss)
                    self.consumed.add(index)
                    self.index = min(self.index, index)
        return found
