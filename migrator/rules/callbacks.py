"""Session hooks that a program defines itself, as Keras callbacks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import libcst as cst

from migrator.emit.names import free
from migrator.findings import Severity
from migrator.names.bare import bare
from migrator.names.bindings import all_given
from migrator.program.calls import attributes_in, calls_in, is_docstring, is_name, is_none, string
from migrator.program.parsed import Blocked, ParsedFile, name_nodes, names_in
from migrator.program.scopes import returns_in
from migrator.rules.rule import Rule

RULES = (
    Rule(
        "TFM161",
        "custom session hooks become Keras callbacks",
        Severity.REVIEW,
        """
A class derived from `SessionRunHook` becomes one derived from `tf.keras.callbacks.Callback`, with the bodies of its
methods as they were: `begin` and `after_create_session` are `on_train_begin`, `before_run` is `on_train_batch_begin`,
`after_run` is `on_train_batch_end` and `end` is `on_train_end` (`on_test_...` for a hook of an evaluation,
`on_predict_...` for one of a prediction). `run_context.request_stop()` is `self.model.stop_training = True`.

What a hook fetched has another source in Keras. The global step is `self.model.optimizer.iterations`, which counts the
step that has just been taken. A hook that fetched the step together with the training got that number in TensorFlow
1.15.5 (900 of 900 steps of three programs), but in 2.15.1 the number before the step counted (898 of 900), unless
something else in the graph waits for the step: a hook that ends the training by a step that it fetched may have trained
one step more. The loss is
`logs["loss"]`, and the callback calls `self.model.reset_metrics()` before each batch, because Keras reports the mean
since the start of the epoch otherwise (so the progress bar shows the loss of the last batch, as the Estimator's log
did). On parameter servers Keras refuses callbacks that act on batches: there the program trains
without them.
""",
    ),
    Rule(
        "TFM162",
        "session hooks that use the graph",
        Severity.MANUAL,
        """
A custom hook that runs operations in the session, assigns variables, fetches tensors of the graph, or returns feeds has
no counterpart among Keras callbacks. The finding names the line. Write a `tf.keras.callbacks.Callback` in its place:
weights are at `self.model.weights` (`weight.assign(value)` changes one), the step at `self.model.optimizer.iterations`,
the learning rate at `self.model.optimizer.learning_rate`, and a value of the network that is to be watched can be a
metric of `compile` (the entry of that name in `logs`). Where the hook only watched, it may as well be removed from the
program.
""",
    ),
)

WHEN = ("train", "test", "predict")

_STEP = (
    "get_global_step",
    "get_or_create_global_step",
)
_RESERVED = frozenset(("model", "params", "validation_data", "set_model", "set_params"))
_METHODS = {
    "begin": "on_{}_begin",
    "after_create_session": "on_{}_begin",
    "before_run": "on_{}_batch_begin",
    "after_run": "on_{}_batch_end",
    "end": "on_{}_end",
}
_PARAMETERS = {"begin": 1, "after_create_session": 3, "before_run": 2, "after_run": 3, "end": 2}


def is_hook_base(name: str | None) -> bool:
    """Whether a symbol is the class that session hooks are derived from."""
    return name is not None and name.startswith("tf.") and name.rpartition(".")[2] == "SessionRunHook"


def is_global_step(name: str | None) -> bool:
    """Whether a symbol is a function that returns the global step."""
    return name is not None and name.startswith("tf.") and name.rpartition(".")[2] in _STEP


_RATE = '''
def %s(self):
    """Returns the learning rate of the last step."""
    rate, steps = self.model.optimizer.learning_rate, self.model.optimizer.iterations
    return (rate(steps - 1) if callable(rate) else rate).numpy()
'''


def as_callback(
    file: ParsedFile, node: cst.ClassDef, phases: Collection[str], tensors: Callable[[str], str | None]
) -> cst.ClassDef:
    """A hook class as a callback class for some of WHEN. `tensors` tells what a tensor's name in the graph means:
    "loss", "step" or "rate" (None: not known).

    The new class holds nodes of the old one, which are still to be rewritten. Raises Blocked (TFM162).
    """
    return _Translator(file, node, [p for p in WHEN if p in phases], tensors).translate()


def stops_training(node: cst.ClassDef) -> bool:
    """Whether a hook class asks for the end of the training."""
    return any(one.attr.value == "request_stop" for one in attributes_in(node))


def counts_steps(file: ParsedFile, node: cst.ClassDef) -> bool:
    """Whether all that a hook does is to add one to the global step in every run."""
    methods = {s.name.value: s for s in node.body.body if isinstance(s, cst.FunctionDef)}
    begin, before = methods.get("begin"), methods.get("before_run")
    if begin is None or before is None or not set(methods) <= {*_METHODS, "__init__"}:
        return False
    if any(_statements(method) for name, method in methods.items() if name not in ("begin", "before_run")):
        return False
    assigned = _own_values(begin)
    given = {name: value for name, value in assigned if isinstance(value, cst.Call)}
    steps = {n for n, v in given.items() if is_global_step(file.imports.resolve(v.func))}
    added = {n for n, v in given.items() if _adds_one(file, v, steps)}
    if len(added) != 1 or len(assigned) != len(steps) + 1:
        return False
    returned = _statements(before)
    code = bare(file.code(before.body))
    return len(returned) == 1 and "SessionRunArgs(" in code and f"self.{next(iter(added))})" in code


def _name_in_graph(node: cst.BaseExpression) -> cst.BaseExpression:
    """The name that `graph.get_tensor_by_name(name)` is given, whichever graph; other fetches as they are."""
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and len(node.args) == 1:
        return node.args[0].value if node.func.attr.value == "get_tensor_by_name" else node
    return node


def _adds_one(file: ParsedFile, node: cst.BaseExpression, steps: set[str]) -> bool:
    if not isinstance(node, cst.Call) or len(node.args) < 2:
        return False
    name = file.imports.resolve(node.func) or ""
    first, second = node.args[0].value, node.args[1].value
    known = _own(first) in steps or (isinstance(first, cst.Call) and is_global_step(file.imports.resolve(first.func)))
    return name.rpartition(".")[2] == "assign_add" and known and isinstance(second, cst.Integer) and second.value == "1"


def _statements(method: cst.FunctionDef) -> list[cst.CSTNode]:
    """The statements of a method that do something."""
    return [s for s in method.body.body if not is_docstring(s) and not _is_pass(s)]


@dataclass
class _Fetches:
    """What before_run fetches: the structure of it, and what stands for each leaf ("step", "loss", "rate")."""

    structure: cst.BaseExpression | None = None
    line: cst.SimpleStatementLine | None = None


@dataclass
class _Translator:
    file: ParsedFile
    node: cst.ClassDef
    phases: list[str]
    tensors: Callable[[str], str | None]
    steps: set[str] = field(default_factory=set)
    resets: bool = False
    reads_rate: bool = False

    def translate(self) -> cst.ClassDef:
        methods = {s.name.value: s for s in self._body() if isinstance(s, cst.FunctionDef)}
        taken = names_in(self.node)
        self.batch, self.logs = free("batch", taken), free("logs", taken)
        self.rate = free("learning_rate", taken)
        self._check(methods)
        self.steps = self._step_attributes(methods)
        fetches = self._fetches(methods.get("before_run"))
        new: dict[str, cst.FunctionDef | None] = {}
        for name, method in methods.items():
            if name in _METHODS:
                new[name] = self._method(name, method, fetches)
            elif name == "__init__":
                new[name] = self._init(method)
            else:
                new[name] = self._cleaned(method)
        self._merge_begin(new)
        self._reset(new)
        body: list[cst.BaseStatement] = []
        for statement in self._body():
            if not isinstance(statement, cst.FunctionDef):
                body.append(statement)
                continue
            name = statement.name.value
            made = new[name]
            if made is None:
                continue
            body.append(made)
            if name in _METHODS:
                body += self._aliases(made)
        if self.reads_rate:
            body.append(cst.ensure_type(cst.parse_statement(_RATE % self.rate), cst.FunctionDef))
        if not any(isinstance(s, cst.FunctionDef) for s in body):
            raise self._blocked(self.node.name, "it only prepares the graph")
        base = cst.Arg(cst.parse_expression("tf.keras.callbacks.Callback"))
        assert isinstance(self.node.body, cst.IndentedBlock)
        return self.node.with_changes(bases=[base], body=self.node.body.with_changes(body=body))

    def _body(self) -> Sequence[cst.BaseStatement]:
        if not isinstance(self.node.body, cst.IndentedBlock):
            raise self._blocked(self.node.name, "it is written on one line")
        return self.node.body.body

    def _blocked(self, node: cst.CSTNode, why: str) -> Blocked:
        message = f"`{self.node.name.value}` cannot become a Keras callback: {why}"
        return Blocked("TFM162", node, message)

    # -- what the class is -----------------------------------------------------------------------------------------

    def _check(self, methods: dict[str, cst.FunctionDef]) -> None:
        if self.node.decorators or self.node.keywords:
            raise self._blocked(self.node.name, "it has decorators or keywords")
        for name, count in _PARAMETERS.items():
            method = methods.get(name)
            if method is None:
                continue
            params = method.params
            plain = not (params.star_kwarg or params.kwonly_params or isinstance(params.star_arg, cst.Param))
            if len(params.params) != count or not plain or method.decorators:
                raise self._blocked(method.name, f"`{name}` has a different signature than SessionRunHook's")
        for attribute in attributes_in(self.node):
            if _own(attribute) is None:
                continue
            if attribute.attr.value in _RESERVED or attribute.attr.value.startswith("on_"):
                raise self._blocked(attribute, f"`self.{attribute.attr.value}` has another meaning in a callback")
        for name, method in methods.items():
            if name.startswith("on_") or name in _RESERVED:
                raise self._blocked(method.name, f"`{name}` has another meaning in a callback")

    def _step_attributes(self, methods: dict[str, cst.FunctionDef]) -> set[str]:
        """The attributes that stand for the global step's tensor."""
        given: dict[str, list[cst.BaseExpression]] = {}
        for method in methods.values():
            for name, value in _own_values(method):
                given.setdefault(name, []).append(value)
        return {
            name
            for name, values in given.items()
            if any(self._calls_step(v) for v in values) and all(self._calls_step(v) or is_none(v) for v in values)
        }

    def _calls_step(self, node: cst.BaseExpression) -> bool:
        return isinstance(node, cst.Call) and is_global_step(self.file.imports.resolve(node.func)) and not node.args

    # -- fetches ---------------------------------------------------------------------------------------------------

    def _fetches(self, method: cst.FunctionDef | None) -> _Fetches:
        if method is None:
            return _Fetches()
        returns = [r for r in returns_in(method.body) if not is_none(r.value)]
        if not returns:
            return _Fetches()
        last = method.body.body[-1]
        small = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else None
        if len(returns) > 1 or small is not returns[0]:
            raise self._blocked(returns[0], "its fetches depend on a condition")
        assert isinstance(last, cst.SimpleStatementLine)
        value = returns[0].value
        if isinstance(value, cst.Name):
            value = _value_of(method, value.value) or value
        name = self.file.imports.resolve(value.func) if isinstance(value, cst.Call) else None
        if name is None or name.rpartition(".")[2] != "SessionRunArgs" or not isinstance(value, cst.Call):
            raise self._blocked(returns[0], "`before_run` returns something other than SessionRunArgs")
        keywords = [arg.keyword.value if arg.keyword is not None else None for arg in value.args]
        if len(value.args) != 1 or keywords[0] not in (None, "fetches"):
            raise self._blocked(value, "it feeds values, or sets session options")
        structure = value.args[0].value
        if isinstance(structure, cst.Name):
            structure = _value_of(method, structure.value) or structure
        self._value(structure)  # what is fetched may be an operation with effects, also where nobody reads its result
        self.resets = False
        return _Fetches(structure, last)

    def _meaning(self, node: cst.BaseExpression) -> str:
        """The code that has a fetched value after a batch."""
        kind: str | None = None
        text = string(_name_in_graph(node))
        if text is not None:
            name = text.rpartition(":")[0] or text
            kind = "step" if name == "global_step" else self.tensors(name)  # the name that TensorFlow gives it
        elif self._is_step(node):
            kind = "step"
        if kind == "step":
            return self._step()
        if kind == "loss" and self.phases == ["train"]:
            self.resets = True
            return f'{self.logs}["loss"]'
        if kind == "rate" and self.phases == ["train"]:
            self.reads_rate = True
            return f"self.{self.rate}()"
        raise self._blocked(node, f"it fetches the graph tensor `{self.file.code(node).strip()[:40]}`")

    def _is_step(self, node: cst.BaseExpression) -> bool:
        return self._calls_step(node) or _own(node) in self.steps

    def _step(self) -> str:
        """The code for the global step."""
        if "predict" in self.phases:
            raise self._blocked(self.node.name, "it reads the global step, which predictions do not have")
        return "self.model.optimizer.iterations.numpy()"

    def _value(self, structure: cst.BaseExpression) -> cst.BaseExpression:
        """What stands for the whole of the results."""
        if isinstance(structure, (cst.List, cst.Tuple)):
            values = [e.with_changes(value=self._value(e.value)) for e in structure.elements]
            return structure.with_changes(elements=values)
        if isinstance(structure, cst.Dict):
            entries = []
            for element in structure.elements:
                if not isinstance(element, cst.DictElement):
                    raise self._blocked(structure, "its fetches are not literals")
                entries.append(element.with_changes(value=self._value(element.value)))
            return structure.with_changes(elements=entries)
        return cst.parse_expression(self._meaning(structure))

    # -- methods ---------------------------------------------------------------------------------------------------

    def _init(self, method: cst.FunctionDef) -> cst.FunctionDef:
        made = self._cleaned(method)
        if made is None:
            made = method.with_changes(body=method.body.with_changes(body=[]))
        assert isinstance(made.body, cst.IndentedBlock)
        if _calls_super(made.body):
            return made
        body = [s for s in made.body.body if not _is_pass(s)]
        line = cst.parse_statement("super().__init__()\n")
        at = 1 if body and is_docstring(body[0]) else 0
        return made.with_changes(body=made.body.with_changes(body=[*body[:at], line, *body[at:]]))

    def _method(self, name: str, method: cst.FunctionDef, fetches: _Fetches) -> cst.FunctionDef | None:
        own = [p.name.value for p in method.params.params]
        self_name, given = own[0], own[1:]
        if self_name != "self":
            raise self._blocked(method.name, "the first parameter of a method is not `self`")
        roles = dict(zip(("context", "values"), given)) if name in ("before_run", "after_run") else {}
        session = given[0] if name in ("after_create_session", "end") and given else None
        changer = _Changer(self, roles.get("context"), roles.get("values"), session, fetches)
        made = self._cleaned(method, changer)
        if made is None:
            return None
        left = (names_in(made.body) & set(given)) - {None}
        if left:
            place = _first_name(method.body, left) or method.name
            raise self._blocked(place, f"it uses the session (`{sorted(left)[0]}`)")
        new = _METHODS[name].format(self.phases[0])
        texts = [self.batch, f"{self.logs}=None"] if "batch" in new else [f"{self.logs}=None"]
        signature = cst.parse_statement(f"def {new}(self, {', '.join(texts)}): pass\n")
        assert isinstance(signature, cst.FunctionDef)
        return made.with_changes(name=signature.name, params=signature.params, returns=None)

    def _cleaned(self, method: cst.FunctionDef, changer: _Changer | None = None) -> cst.FunctionDef | None:
        """A method without what only prepared the graph; None when nothing is left of it."""
        if not isinstance(method.body, cst.IndentedBlock):
            raise self._blocked(method.name, f"`{method.name.value}` is written on one line")
        made = method.visit(changer or _Changer(self, None, None, None, _Fetches()))
        assert isinstance(made, cst.FunctionDef) and isinstance(made.body, cst.IndentedBlock)
        if _calls_super(made.body) and method.name.value in _METHODS:
            raise self._blocked(method.name, f"`{method.name.value}` calls its base class")
        return made if any(not is_docstring(s) and not _is_pass(s) for s in made.body.body) else None

    def _merge_begin(self, new: dict[str, cst.FunctionDef | None]) -> None:
        """`begin` and `after_create_session` come to one method."""
        first, second = new.get("begin"), new.get("after_create_session")
        if first is None or second is None:
            return
        if returns_in(first.body):
            raise self._blocked(first.name, "`begin` returns early")
        assert isinstance(first.body, cst.IndentedBlock) and isinstance(second.body, cst.IndentedBlock)
        rest = [s for s in second.body.body if not is_docstring(s)]
        new["begin"] = first.with_changes(body=first.body.with_changes(body=[*first.body.body, *rest]))
        new["after_create_session"] = None

    def _reset(self, new: dict[str, cst.FunctionDef | None]) -> None:
        """Where the loss of a batch is read, Keras must not average it over those before."""
        if not self.resets:
            return
        comment = cst.EmptyLine(comment=cst.Comment("# so that the logs are of this batch, not of the epoch so far"))
        line = cst.parse_statement("self.model.reset_metrics()\n").with_changes(leading_lines=[comment])
        begin = new.get("before_run")
        if begin is not None:
            assert isinstance(begin.body, cst.IndentedBlock)
            old = begin.body.body
            at = 1 if old and is_docstring(old[0]) else 0
            new["before_run"] = begin.with_changes(body=begin.body.with_changes(body=[*old[:at], line, *old[at:]]))
            return
        method = cst.parse_statement(f"def on_train_batch_begin(self, {self.batch}, {self.logs}=None): pass\n")
        assert isinstance(method, cst.FunctionDef)
        old_method = next(s for s in self._body() if isinstance(s, cst.FunctionDef) and s.name.value == "before_run")
        new["before_run"] = method.with_changes(body=cst.IndentedBlock([line]), leading_lines=old_method.leading_lines)

    def _aliases(self, method: cst.FunctionDef) -> list[cst.BaseStatement]:
        """The same method under the names of further phases."""
        name = method.name.value
        lines: list[cst.BaseStatement] = []
        for phase in self.phases[1:]:
            other = name.replace(f"on_{self.phases[0]}_", f"on_{phase}_", 1)
            line = cst.parse_statement(f"{other} = {name}\n")
            assert isinstance(line, cst.SimpleStatementLine)
            lines.append(line if lines else line.with_changes(leading_lines=[cst.EmptyLine(indent=False)]))
        return lines


class _Changer(cst.CSTTransformer):
    """Puts what Keras has in the place of what a session gave."""

    def __init__(
        self,
        translator: _Translator,
        context: str | None,
        values: str | None,
        session: str | None,
        fetches: _Fetches,
    ) -> None:
        super().__init__()
        self.translator = translator
        self.context, self.values, self.session, self.fetches = context, values, session, fetches

    def leave_Expr(
        self, original_node: cst.Expr, updated_node: cst.Expr
    ) -> cst.BaseSmallStatement | cst.RemovalSentinel:
        value = original_node.value
        if _is_super(value):
            return cst.RemoveFromParent()
        if isinstance(value, cst.Call) and self._is_attribute(value.func, self.context, "request_stop"):
            if "test" in self.translator.phases:
                raise self.translator._blocked(value, "it ends an evaluation: limit its dataset")
            made = cst.parse_statement("self.model.stop_training = True\n")
            assert isinstance(made, cst.SimpleStatementLine)
            return made.body[0]
        return updated_node

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        translator = self.translator
        if self._is_attribute(original_node.func, self.session, "run") and len(original_node.args) == 1:
            if translator._is_step(original_node.args[0].value):
                return cst.parse_expression(translator._step())
        return updated_node

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        if self._is_attribute(original_node, self.values, "results"):
            if self.fetches.structure is None:
                raise self.translator._blocked(original_node, "it reads results, but fetches nothing")
            return self.translator._value(self.fetches.structure)
        return updated_node

    def visit_Subscript(self, node: cst.Subscript) -> bool:
        return self._entry(node) is None

    def leave_Subscript(self, original_node: cst.Subscript, updated_node: cst.Subscript) -> cst.BaseExpression:
        entry = self._entry(original_node)
        return updated_node if entry is None else self.translator._value(entry)

    def _entry(self, node: cst.Subscript) -> cst.BaseExpression | None:
        """The fetched expression that `run_values.results[...]` is the value of."""
        if not self._is_attribute(node.value, self.values, "results") or len(node.slice) != 1:
            return None
        index = node.slice[0].slice
        key = index.value if isinstance(index, cst.Index) else None
        structure = self.fetches.structure
        if isinstance(structure, (cst.List, cst.Tuple)) and isinstance(key, cst.Integer):
            place = key.evaluated_value
            if place < len(structure.elements):
                return structure.elements[place].value
        if isinstance(structure, cst.Dict) and key is not None:
            for element in structure.elements:
                if isinstance(element, cst.DictElement) and string(element.key) is not None:
                    if string(element.key) == string(key):
                        return element.value
        return None

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.BaseStatement | cst.RemovalSentinel:
        if original_node is self.fetches.line:
            return cst.RemoveFromParent()
        if len(original_node.body) == 1 and isinstance(original_node.body[0], cst.Assign):
            small = original_node.body[0]
            if len(small.targets) == 1 and _own(small.targets[0].target) in self.translator.steps:
                return cst.RemoveFromParent()
        return updated_node

    def leave_If(self, original_node: cst.If, updated_node: cst.If) -> cst.BaseStatement | cst.RemovalSentinel:
        test = original_node.test
        if (
            isinstance(test, cst.Comparison)
            and _own(test.left) in self.translator.steps
            and original_node.orelse is None
        ):
            if is_none(test.comparisons[0].comparator) and _only_raises(original_node.body):
                return cst.RemoveFromParent()
        return updated_node

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        if updated_node.body:
            return updated_node
        return updated_node.with_changes(body=[cst.SimpleStatementLine([cst.Pass()])])

    def leave_Del(self, original_node: cst.Del, updated_node: cst.Del) -> cst.BaseSmallStatement | cst.RemovalSentinel:
        """`del run_context`, which only says that it is not used."""
        given = {self.context, self.values, self.session, "coord"} - {None}
        return cst.RemoveFromParent() if names_in(original_node) <= given else updated_node

    @staticmethod
    def _is_attribute(node: cst.CSTNode, name: str | None, attribute: str) -> bool:
        return (
            name is not None
            and isinstance(node, cst.Attribute)
            and node.attr.value == attribute
            and isinstance(node.value, cst.Name)
            and node.value.value == name
        )


def _own_values(node: cst.CSTNode) -> list[tuple[str, cst.BaseExpression]]:
    """The attributes of `self` that some code gives values to, and the values."""
    return [(name, value) for target, value in all_given(node) if (name := _own(target)) is not None]


def _is_super(node: cst.BaseExpression) -> bool:
    """Whether this is `super().method(...)` of a method that does nothing in the class of all hooks."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return False
    receiver = node.func.value
    if node.func.attr.value not in _METHODS or not isinstance(receiver, cst.Call):
        return False
    return isinstance(receiver.func, cst.Name) and receiver.func.value == "super"


def _own(node: cst.CSTNode) -> str | None:
    """The name in `self.name`."""
    if isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name) and node.value.value == "self":
        return node.attr.value
    return None


def _value_of(method: cst.FunctionDef, name: str) -> cst.BaseExpression | None:
    """What a method gives to a name, when it does so once."""
    found: list[cst.BaseExpression] = []
    for statement in method.body.body:
        if isinstance(statement, cst.SimpleStatementLine):
            for small in statement.body:
                if isinstance(small, cst.Assign):
                    found += [
                        small.value for t in small.targets if isinstance(t.target, cst.Name) and t.target.value == name
                    ]
    return found[0] if len(found) == 1 else None


def _first_name(node: cst.CSTNode, names: Collection[str]) -> cst.CSTNode | None:
    return next((n for n in name_nodes(node) if n.value in names), None)


def _is_pass(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.SimpleStatementLine) and all(isinstance(s, cst.Pass) for s in node.body)


def _only_raises(node: cst.BaseSuite) -> bool:
    return len(node.body) == 1 and isinstance(_last_small(node.body[0]), cst.Raise)


def _last_small(node: cst.CSTNode) -> cst.CSTNode:
    return node.body[-1] if isinstance(node, cst.SimpleStatementLine) else node


def _calls_super(node: cst.CSTNode) -> bool:
    """Whether something below a node calls `super()`."""
    return any(is_name(call.func, "super") for call in calls_in(node))
