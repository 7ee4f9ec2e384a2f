"""`tf.estimator.add_metrics`, written into the model_fn before anything else looks at the file.

The Estimator that it returns is the old one, in the same `model_dir`, whose evaluations have more metrics: those of a
function of the features, labels and predictions. That function is called in the EstimatorSpec instead; that of a canned
Estimator is written with such a call in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import libcst as cst

from migrator.emit.names import free
from migrator.findings import Finding, Severity
from migrator.names.bare import says
from migrator.program.calls import bind, calls_in, functions_in, parameters_of, string
from migrator.program.parsed import Blocked, ParsedFile, name_nodes, names_in
from migrator.program.plain import removal
from migrator.program.scopes import bindings, path_to, returns_in
from migrator.program.spread import Edit, Kept, Written
from migrator.walking import of_kinds

_ADD = "tf.estimator.add_metrics"
_ADDS = (_ADD, "tf.contrib.estimator.add_metrics")
_ESTIMATOR = "tf.estimator.Estimator"
_SPEC = "tf.estimator.EstimatorSpec"
_MODEL = ("model_fn", "model_dir", "config", "params", "warm_start_from")
_TAKES = ("features", "labels", "predictions")
_MESSAGE = "the model now has the metrics of `add_metrics`: earlier evaluations report them as well"


def adds_metrics(text: str) -> bool:
    """Whether a text may hold such a call."""
    return says(text, "add_metrics")


def with_added_metrics(file: ParsedFile) -> tuple[list[Edit], list[Finding]]:
    """The edits that write such metrics into their model_fns, and what is to be said about them.

    Only `estimator = add_metrics(estimator, function)` in the block that makes the Estimator, where everything about it
    is in this file and plain; anything else stays, and is refused as an Estimator that is handed to something unknown.
    """
    edits: list[Edit] = []
    said: list[Finding] = []
    if not adds_metrics(file.text):
        return edits, said
    found = [c for c in calls_in(file.module) if file.imports.resolve(c.func) in _ADDS]
    if len(found) != 1:
        return edits, said
    made = _Adding(file, found[0]).edits()
    return made, [said_of(file, found[0])] if made else []


def said_of(file: ParsedFile, call: cst.Call) -> Finding:
    """What is to be said about a call of `add_metrics` that is written into its model_fn."""
    return file.finding("TFM147", Severity.REVIEW, call, _MESSAGE)


@dataclass(frozen=True)
class Added:
    """What `add_metrics` gives an Estimator: the function, what it takes, the keys of the dict that it returns."""

    call: cst.Call
    function: cst.FunctionDef | cst.Lambda
    takes: tuple[str, ...]
    keys: frozenset[str]
    edits: tuple[Edit, ...]  # the call goes, and a function that is written elsewhere
    is_at_top: bool  # the function can be called where it is


def added_to(file: ParsedFile, made: cst.Call, others: Callable[[str], bool]) -> Added | None:
    """What is added to the Estimator that a call makes; None where nothing is, or it is not plain what.

    The Estimator is followed in the block that makes it, its function where that has nothing of the functions around.
    `others` says whether another file may mean a name of this one.
    """
    if not adds_metrics(file.text):
        return None
    calls = [c for c in calls_in(file.module) if file.imports.resolve(c.func) in _ADDS]
    found = [c for c in calls if _is_added(file, made, c)]
    try:
        return _added(file, made, found[0], others) if len(found) == 1 else None
    except Blocked:
        return None


def _is_added(file: ParsedFile, made: cst.Call, call: cst.Call) -> bool:
    """Whether metrics are added to this Estimator: as it is made, or by the only name that it has in its block."""
    bound = bind(call, ("estimator", "metric_fn"), _ADD, "TFM103")
    old = bound.get("estimator")
    if old is made:
        return True
    assign = file.parents.get(made)
    if not isinstance(assign, cst.Assign) or len(assign.targets) != 1 or not isinstance(old, cst.Name):
        return False
    if old.value != getattr(assign.targets[0].target, "value", None):
        return False
    line, later = file.parents[assign], file.parents.get(call)
    if not isinstance(later, (cst.Assign, cst.Return)):
        return False
    target = later.targets[0].target if isinstance(later, cst.Assign) else None
    if isinstance(later, cst.Assign) and (len(later.targets) != 1 or not isinstance(target, cst.Name)):
        return False
    place = file.parents[later]
    scope = next(one for one in file.above(call) if isinstance(one, (cst.FunctionDef, cst.Lambda, cst.Module)))
    same = isinstance(target, cst.Name) and target.value == old.value
    uses = [node for node in name_nodes(scope) if node.value == old.value]
    values = [node for name, node in bindings(scope) if name == old.value and not _is_part(node)]
    together = file.parents.get(place) is file.parents.get(line) and file.range(made) < file.range(call)
    # Under another name the Estimator without the metrics is not evaluated: nothing else reads its old one.
    return together and len(values) == 1 + same and (same or len(uses) == 2)


def _is_part(node: cst.CSTNode) -> bool:
    """Whether a place that gives a value gives it to a part of what a name stands for, or calls a method of that."""
    return isinstance(node, (cst.Attribute, cst.Subscript))


def _added(file: ParsedFile, made: cst.Call, call: cst.Call, others: Callable[[str], bool]) -> Added | None:
    bound = bind(call, ("estimator", "metric_fn"), _ADD, "TFM103")
    given = bound.get("metric_fn")
    around = path_to(file.module, call)
    function, edits, at_top = _function(file, made, given, around, others)
    if function is None:
        return None
    params = function.params
    plain = (*params.kwonly_params, *params.posonly_params)
    if plain or isinstance(params.star_arg, cst.Param) or params.star_kwarg is not None:
        return None
    takes = tuple(one.name.value for one in params.params)
    if not takes or not set(takes) <= set(_TAKES) or any(one.default is not None for one in params.params):
        return None
    keys = _keys_of(function)
    local = {
        name
        for one in around
        if isinstance(one, cst.FunctionDef)
        for name, node in bindings(one)
        if node is not one and node is not function and not _is_part(node)
    }
    own = {name for name, _ in bindings(function)}
    if keys is None or (not at_top and (names_in(function) - own) & local):
        return None
    return Added(call, function, takes, frozenset(keys), (*_call_is_gone(file, made, call), *edits), at_top)


def _function(
    file: ParsedFile,
    made: cst.Call,
    given: cst.BaseExpression | None,
    around: Sequence[cst.CSTNode],
    others: Callable[[str], bool],
) -> tuple[cst.FunctionDef | cst.Lambda | None, list[Edit], bool]:
    """The function that makes the metrics, the edits that take it out where it is, and whether it can be called there.

    It is called at the top of the file, before the statement that makes the Estimator.
    """
    if isinstance(given, cst.Lambda):
        return given, [], False
    if not isinstance(given, cst.Name):
        return None, [], False
    scopes = [one for one in around if isinstance(one, cst.FunctionDef)]
    for scope in (*reversed(scopes), file.module):
        found = [node for name, node in bindings(scope) if name == given.value and node is not scope]
        found = [node for node in found if not _is_part(node)]
        if not found:
            continue
        (function, *more) = found
        if more or not isinstance(function, cst.FunctionDef) or function.decorators or function.asynchronous:
            return None, [], False
        before = file.range(function) < file.range(path_to(file.module, made)[1])
        if scope is file.module and function in file.module.body and before:
            return function, [], True
        uses = [node for node in name_nodes(scope) if node.value == given.value]
        block = file.parents.get(function)
        alone = isinstance(block, (cst.IndentedBlock, cst.Module)) and len(block.body) > 1
        if len(uses) != 2 or not alone or (scope is file.module and others(given.value)):
            return None, [], False
        start, end = file.range(function)
        first = file.text.rfind("\n", 0, start) + 1
        return function, [Edit(first, file.text.find("\n", end) + 1 or len(file.text), ())], False
    return None, [], False


def _keys_of(function: cst.FunctionDef | cst.Lambda) -> set[str] | None:
    """The keys of the dict that a function returns; None where it is not written out."""
    if isinstance(function, cst.Lambda):
        value: cst.BaseExpression | None = function.body
    else:
        returns = returns_in(function.body)
        value = returns[0].value if len(returns) == 1 else None
    if not isinstance(value, cst.Dict):
        return None
    keys = [string(e.key) if isinstance(e, cst.DictElement) else None for e in value.elements]
    return None if None in keys else {str(key) for key in keys}


def _call_is_gone(file: ParsedFile, made: cst.Call, call: cst.Call) -> list[Edit]:
    """The Estimator in the place of `add_metrics(estimator, ...)`; a line that says `x = x` then goes."""
    old = bind(call, ("estimator", "metric_fn"), _ADD, "TFM103")["estimator"]
    later = file.parents.get(call)
    line = file.parents.get(later) if later is not None else None
    if isinstance(later, cst.Assign) and isinstance(old, cst.Name) and isinstance(line, cst.SimpleStatementLine):
        if getattr(later.targets[0].target, "value", None) == old.value and len(line.body) == 1:
            return [removal(file, line, keeps_block=False)]
    (start, end), (first, last) = file.range(call), file.range(old)
    return [Edit(start, first, ()), Edit(last, end, ())]


def written_at_top(file: ParsedFile, added: Added, name: str) -> tuple[Kept | Written, ...] | None:
    """The function under a name, as a statement at the top of the file; None where its lines cannot be put there."""
    function = added.function
    start, end = file.range(function)
    indent = file.module.default_indent
    if isinstance(function, cst.Lambda):
        body = Kept(*file.range(function.body))
        return (Written(f"def {name}({', '.join(added.takes)}):\n{indent}return ", start), body, Written("\n", start))
    strings = of_kinds(function, cst.SimpleString, cst.FormattedString)
    if any("\n" in file.code(one) for one in strings) or not isinstance(function.body, cst.IndentedBlock):
        return None
    column = start - (file.text.rfind("\n", 0, start) + 1)
    margin = file.text[start - column : start]
    after = file.range(function.name)[1]
    pieces: list[Kept | Written] = [Written(f"def {name}", start)]
    at = after
    for line in file.text[after:end].rstrip().split("\n"):
        skipped = len(margin) if at > after and line.startswith(margin) else 0
        if at > after and not skipped and margin and line.strip():
            skipped = len(line) - len(line.lstrip())  # a comment or the end of a bracket, where any column will do
        pieces += [Kept(at + skipped, at + len(line)), Written("\n", at)]
        at += len(line) + 1
    return tuple(pieces)


class _Adding:
    def __init__(self, file: ParsedFile, call: cst.Call) -> None:
        self.file = file
        self.call = call

    def edits(self) -> list[Edit]:
        line, name, metrics = self._line()
        function = self.file.functions.get(metrics) if metrics is not None else None
        model = self._model(name, line) if name is not None and line is not None else None
        if line is None or function is None or model is None or not self._is_alone(function, 2):
            return []
        takes = [param.name.value for param in parameters_of(function)]
        own = self._own_metrics(model)
        if own is None or not set(takes) <= set(_TAKES) or function.decorators:
            return []
        place, spec, given = own
        values = self._values(model, spec, takes)
        added = _keys_of(function)
        entries = [
            (string(e.key) if isinstance(e, cst.DictElement) else None, e)
            for e in (given.elements if given is not None else ())
        ]
        if values is None or added is None or any(key is None or key in added for key, _ in entries):
            return []
        begin, end = self.file.range(line)
        text = self.file.text
        removed = Edit(text.rfind("\n", 0, begin) + 1, text.find("\n", end) + 1 or len(text), ())
        moved = self._moved(function, model)
        return [removed, *moved, *self._written(place, spec, given, function, values, model)]

    def _moved(self, function: cst.FunctionDef, model: cst.FunctionDef) -> list[Edit]:
        """The function goes before the model_fn that calls it now, where it stood behind."""
        begin, end = self.file.range(function)
        first = self.file.range(model)[0]
        if begin < first or model.decorators:
            return []
        after = self.file.text.find("\n", end) + 1 or len(self.file.text)
        while self.file.text.startswith("\n", after):
            after += 1
        # As written there: whoever asks which of two lines comes first must see it before the model_fn.
        text = f"{self.file.text[begin:end].rstrip()}\n\n\n"
        return [Edit(first, first, (Written(text, first),)), Edit(begin, after, ())]

    def _written(
        self,
        place: cst.SimpleStatementLine,
        spec: cst.Call,
        given: cst.Dict | None,
        function: cst.FunctionDef,
        values: list[str],
        model: cst.FunctionDef,
    ) -> list[Edit]:
        """The lines before the EstimatorSpec that make the dict, and the dict's name in its place."""
        start, _ = self.file.range(place)
        indent = self.file.text[self.file.text.rfind("\n", 0, start) + 1 : start]
        metrics = free("metrics", names_in(model))
        pieces: list[Kept | Written] = [
            Written(f"{metrics} = {function.name.value}({', '.join(values)})\n{indent}", start)
        ]
        for element in given.elements if given is not None else ():
            assert isinstance(element, cst.DictElement)
            pieces += [Written(f"{metrics}[", start), Kept(*self.file.range(element.key)), Written("] = ", start)]
            pieces += [Kept(*self.file.range(element.value)), Written(f"\n{indent}", start)]
        if given is not None:
            begin, end = self.file.range(given)
            return [Edit(start, start, tuple(pieces)), Edit(begin, end, (Written(metrics, begin),))]
        _, end = self.file.range(spec.args[-1])
        return [
            Edit(start, start, tuple(pieces)),
            Edit(end, end, (Written(f", eval_metric_ops={metrics}", end),)),
        ]

    def _line(self) -> tuple[cst.SimpleStatementLine | None, str | None, str | None]:
        """`estimator = add_metrics(estimator, function)`: the line, the Estimator's name and the function's."""
        assign = self.file.parents.get(self.call)
        line = self.file.parents.get(assign) if assign is not None else None
        if not isinstance(assign, cst.Assign) or not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
            return None, None, None
        target = assign.targets[0].target
        try:
            bound = bind(self.call, ("estimator", "metric_fn"), _ADD, "TFM103")
        except Blocked:
            return None, None, None
        old, new = bound.get("estimator"), bound.get("metric_fn")
        if not (isinstance(target, cst.Name) and isinstance(old, cst.Name) and isinstance(new, cst.Name)):
            return None, None, None
        alike = len(assign.targets) == 1 and target.value == old.value
        return (line, old.value, new.value) if alike else (None, None, None)

    def _scope(self) -> cst.CSTNode:
        node: cst.CSTNode = self.call
        while not isinstance(node, (cst.FunctionDef, cst.Module)):
            node = self.file.parents[node]
        return node

    def _line_of(self, value: cst.Call) -> cst.CSTNode:
        """The line of a name's value."""
        return self.file.parents[self.file.parents[value]]

    def _model(self, name: str, line: cst.SimpleStatementLine) -> cst.FunctionDef | None:
        """The model_fn of the only Estimator that a name stands for, which serves no other one.

        None where `line` may be left out when the Estimator is made: it stands in another block.
        """
        scope = self._scope()
        bound = [node for known, node in bindings(scope) if known == name and isinstance(node, cst.Name)]
        values = [getattr(self.file.parents[self.file.parents[node]], "value", None) for node in bound]
        made = [v for v in values if isinstance(v, cst.Call) and self.file.imports.resolve(v.func) == _ESTIMATOR]
        if len(bound) != 2 or len(made) != 1 or self.file.range(made[0]) > self.file.range(self.call):
            return None
        if self.file.parents.get(self._line_of(made[0])) is not self.file.parents.get(line):
            return None
        try:
            given = bind(made[0], _MODEL, _ESTIMATOR, "TFM103").get("model_fn")
        except Blocked:
            return None
        function = self.file.functions.get(given.value) if isinstance(given, cst.Name) else None
        return function if function is not None and self._is_alone(function, 2) else None

    def _is_alone(self, function: cst.FunctionDef, mentions: int) -> bool:
        """Whether a function has its name for itself, and is mentioned in one place only."""
        names = [node for node in name_nodes(self.file.module) if node.value == function.name.value]
        same = [one for one in functions_in(self.file.module) if one.name.value == function.name.value]
        return len(names) == mentions and len(same) == 1

    def _own_metrics(self, model: cst.FunctionDef) -> tuple[cst.SimpleStatementLine, cst.Call, cst.Dict | None] | None:
        """The `return` of the EstimatorSpec that is evaluated, its call and its metrics (None: it has none)."""
        specs = [c for c in calls_in(model) if self.file.imports.resolve(c.func) == _SPEC]
        with_metrics = [c for c in specs if any(a.keyword and a.keyword.value == "eval_metric_ops" for a in c.args)]
        chosen = with_metrics if with_metrics else specs
        if len(chosen) != 1 or any(arg.star or arg.keyword is None for arg in chosen[0].args[1:]):
            return None
        statement = self.file.parents[chosen[0]]
        line = self.file.parents[statement]
        if not isinstance(statement, cst.Return) or not isinstance(line, cst.SimpleStatementLine) or len(line.body) > 1:
            return None
        if not with_metrics:
            return line, chosen[0], None
        (value,) = (a.value for a in chosen[0].args if a.keyword and a.keyword.value == "eval_metric_ops")
        return (line, chosen[0], value) if isinstance(value, cst.Dict) else None

    def _values(self, model: cst.FunctionDef, spec: cst.Call, takes: list[str]) -> list[str] | None:
        """What stands for the parameters of the function in the model_fn."""
        given = {arg.keyword.value: arg.value for arg in spec.args if arg.keyword is not None}
        predictions = given.get("predictions")
        own = [param.name.value for param in parameters_of(model)]
        names = {"features": own[:1], "labels": own[1:2]}
        names["predictions"] = [predictions.value] if isinstance(predictions, cst.Name) else []
        changed = {name for name, node in bindings(model) if not isinstance(node, cst.Param)}
        found = [name for one in takes for name in names[one] if one == "predictions" or name not in changed]
        return found if len(found) == len(takes) else None


__all__ = ["Added", "added_to", "adds_metrics", "said_of", "with_added_metrics", "written_at_top"]
