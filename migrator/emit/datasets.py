"""The datasets of a program: what its input functions give, asked for as an Estimator asked for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from migrator.names.bindings import value_given
from migrator.names.imports import dotted
from migrator.program.calls import is_none, parameters_of
from migrator.program.parsed import Blocked, Project, name_nodes, names_in
from migrator.program.region import class_of
from migrator.program.scopes import returns_in
from migrator.program.tpu import check_input
from migrator.program.training import TrainingProgram, bindings, path_to, rebound
from migrator.rules.arrays import is_array_input
from migrator.rules.inputs import check_returns
from migrator.rules.rewriter import Rewriter
from migrator.targets.choosing import own_strategy
from migrator.targets.plan import Target, primary
from migrator.targets.registry import AUTO, TPU
from migrator.walking import own_of_kinds


@dataclass(frozen=True)
class Datasets:
    """Makes the expressions of datasets. `strategy` is the name of the new program's strategy; `apart`: it evaluates
    under one, too; `divided`: its replicas divide the batches of an Estimator that had no strategy; `only_shapes`: the
    datasets are only asked what they consist of.
    """

    project: Project
    program: TrainingProgram
    rewriter: Rewriter
    target: Target
    strategy: str
    apart: bool
    divided: bool
    only_shapes: bool = False

    def _text(self, node: cst.BaseExpression) -> str:
        new = node.visit(self.rewriter)
        assert isinstance(new, cst.BaseExpression)
        return self.program.file.code(new)

    def text(self, node: cst.BaseExpression | None, place: cst.CSTNode, mode: str) -> str:
        """The expression that makes the dataset of an input function, which Estimator called in `mode`."""
        if node is None:
            raise Blocked("TFM602", place, "no input function is given")
        if isinstance(node, cst.Lambda):
            if isinstance(node.body, cst.Tuple):
                raise Blocked("TFM602", node, "the input function returns tensors, not a dataset")
            if isinstance(node.body, cst.Call):
                self.check_returned(node.body.func)
            body = _filled(node, self.passed(node, 0, set(), node, mode))
            if body is None:
                raise Blocked("TFM602", node, "the input function is a lambda with parameters other than `params`")
            return self._text(body)
        if isinstance(node, cst.Call):
            return self._called(node, mode)
        if dotted(node) is None:
            raise Blocked("TFM602", node, "the input function must be a name, a lambda or a partial")
        callee = self.callee(node)
        self.check_returned(node)
        arguments = [] if callee is None else self.passed(*callee, node, mode)
        return f"{self._text(node)}({', '.join(map(_written, arguments))})"

    def _called(self, node: cst.Call, mode: str) -> str:
        """The dataset of an input function that a call returns."""
        name = self.program.file.imports.resolve(node.func)
        if is_array_input(self.program.file.imports.tensorflow(node.func)):
            made = node.visit(self.rewriter)
            if isinstance(made, cst.Lambda):
                return self.program.file.code(made.body)
        if name != "functools.partial" or not node.args or node.args[0].keyword:
            found = self.callee(node)
            self.check_returned(node)
            arguments = [] if found is None else self.passed(*found, node, mode)
            return f"{self._text(node)}({', '.join(map(_written, arguments))})"
        new = node.visit(self.rewriter)
        assert isinstance(new, cst.Call)
        given = [a.with_changes(comma=cst.MaybeSentinel.DEFAULT) for a in new.args[1:]]
        texts = [self.program.file.code(a).strip() for a in given]
        callee = self.callee(node)
        self.check_returned(node.args[0].value)
        if callee is not None and not any(a.star for a in given):
            texts += map(_written, self.passed(*callee, node, mode))
        return f"{self.program.file.code(new.args[0].value)}({', '.join(texts)})"

    def check_returned(self, node: cst.BaseExpression) -> None:
        """Refuses an input function that returns tensors (TFM601)."""
        callee = self.callee(node)
        function = callee[0] if callee is not None else None
        if not isinstance(function, cst.FunctionDef):
            return
        file = next((f for f in self.project.files if path_to(f.module, function)), self.program.file)
        try:
            check_returns(function, file.imports, file.functions.keys())
        except Blocked as problem:
            place = problem.node if file is self.program.file else node
            raise Blocked(problem.code, place, problem.message) from problem

    def _latest(self, node: cst.Name, functions: Sequence[cst.FunctionDef]) -> cst.FunctionDef | None:
        """The function that a name means where a script gives it to one after the other, as notebooks do."""
        scope = self.program.scope
        if not isinstance(scope, cst.Module) or any(f not in scope.body for f in functions):
            return None
        around = [n for n in path_to(scope, node) if isinstance(n, (cst.FunctionDef, cst.ClassDef))]
        before = [f for f in functions if self.program.file.position(f) < self.program.file.position(node)]
        if around or not before:
            return None
        made = self.program.file.position(self.program.place.call)
        latest = max(before, key=self.program.file.position)
        # The model is made where the Estimator was, of the data of the first call: it must be the same function there.
        between = [f for f in before if f is not latest and self.program.file.position(f) > made]
        return None if between else latest

    def callee(
        self, node: cst.BaseExpression, depth: int = 0
    ) -> tuple[cst.FunctionDef | cst.Lambda, int, set[str]] | None:
        """The function that an expression stands for, and how many of its arguments and which keywords are given.

        Followed are names of the same scope, partials, functions that return a function of their own, and objects of
        the project's classes.
        """
        if isinstance(node, cst.Lambda):
            return node, 0, set()
        if depth > 6:
            return None
        if isinstance(node, cst.Call):
            if self.program.file.imports.resolve(node.func) == "functools.partial" and node.args:
                inner = self.callee(node.args[0].value, depth + 1)
                if inner is None:
                    return None
                keywords = {a.keyword.value for a in node.args[1:] if a.keyword is not None}
                return inner[0], inner[1] + len(node.args) - 1 - len(keywords), inner[2] | keywords
            made = self._made_by(node)
            return self._method(node, "__call__") if made is None else (made, 0, set())
        if isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name):
            method = self._method(self._object(node.value), node.attr.value)
            if method is not None:
                return method
        if isinstance(node, cst.Name):
            bound = [n for name, n in bindings(self.program.scope) if name == node.value]
            functions = [n for n in bound if isinstance(n, cst.FunctionDef)]
            if len(bound) == 1 and functions:
                return functions[0], 0, set()
            latest = self._latest(node, functions) if len(functions) == len(bound) else None
            if latest is not None:
                return latest, 0, set()
            if functions:
                raise Blocked("TFM602", node, f"`{node.value}` is defined more than once")
            if len(bound) == 1:
                value = value_given(self.program.scope, bound[0])
                if isinstance(value, (cst.Lambda, cst.Call)):
                    return self.callee(value, depth + 1)
        found = self.project.function(self.program.file, node)
        if found is None and isinstance(node, cst.Name):
            return self._method(self._object(node), "__call__")
        return None if found is None else (found[1], 0, set())

    def _object(self, name: cst.Name) -> cst.BaseExpression | None:
        """What a name of the driver, or of its module, is given once."""
        bound = [node for known, node in bindings(self.program.scope) if known == name.value]
        if len(bound) != 1:
            return None if bound else self.program.file.constants.get(name.value)
        return value_given(self.program.scope, bound[0])

    def _method(self, made: cst.BaseExpression | None, name: str) -> tuple[cst.FunctionDef, int, set[str]] | None:
        """A method of the object that a call of a class of the project makes; its `self` is given."""
        found = class_of(self.project, self.program.file, made.func) if isinstance(made, cst.Call) else None
        methods = [] if found is None else [s for s in found[1].body.body if isinstance(s, cst.FunctionDef)]
        method = next((one for one in methods if one.name.value == name and not one.decorators), None)
        return None if method is None else (method, 1, set())

    def _made_by(self, node: cst.Call) -> cst.FunctionDef | cst.Lambda | None:
        """The function inside another one that a call of that one returns."""
        maker = self.callee(node.func, 5)
        if maker is None or not isinstance(maker[0], cst.FunctionDef):
            return None
        functions = {one.name.value: one for one in own_of_kinds(maker[0], cst.FunctionDef) if one is not maker[0]}
        values = [one.value for one in returns_in(maker[0].body)]
        inner = [functions.get(value.value) if isinstance(value, cst.Name) else value for value in values]
        if len(inner) == 1 and isinstance(inner[0], (cst.FunctionDef, cst.Lambda)):
            return inner[0]
        return None

    def passed(
        self,
        function: cst.FunctionDef | cst.Lambda,
        positional: int,
        keywords: set[str],
        node: cst.BaseExpression,
        mode: str,
    ) -> list[tuple[str | None, str, str]]:
        """What Estimator passes to an input function of which some arguments are given already.

        For each argument the keyword (None by position), the parameter and the text.
        """
        arguments: list[tuple[str | None, str, str]] = []
        in_order = not keywords
        for index, parameter in enumerate(parameters_of(function)):
            name = parameter.name.value
            if index < positional or name in keywords:
                continue
            if name == "config" and name in names_in(function.body):
                message = "the input function reads its `config`, which Keras does not pass"
                raise Blocked(
                    "TFM602", node, f"{message}: remove the parameter, and read TF_CONFIG where a task needs it"
                )
            if name == "config":
                arguments.append((None if in_order else name, name, "None"))  # nobody reads it
                continue
            context = self._context(parameter, node, mode) if name == "input_context" else None
            if context is not None:
                arguments.append((None if in_order else name, name, context))
                continue
            if name not in ("params", "mode"):
                if parameter.default is None and not (index == 0 and name == "self"):
                    raise Blocked(
                        "TFM602",
                        node,
                        f"the input function needs an argument `{name}`: bind it with `functools.partial`",
                    )
                in_order = in_order and name == "self"
                continue
            in_order = in_order and parameter not in function.params.kwonly_params
            if self.target is TPU and name == "params":
                check_input(function)
            text = f'"{mode}"' if name == "mode" else self._params_text(mode)
            arguments.append((None if in_order else name, name, text))
        return arguments

    def _context(self, parameter: cst.Param, node: cst.BaseExpression, mode: str) -> str | None:
        """What an Estimator with a strategy passes to the `input_context` of an input function; None for nothing."""
        if self.target.alone or self.target in (AUTO, TPU):
            return None
        if self.divided or (mode != "train" and not (mode == "eval" and self.apart)):
            return None
        if self.target.mesh:
            message = "the input function reads its `input_context`, which is undefined on a mesh: leave it out"
            raise Blocked("TFM790", node, message)
        if self.only_shapes:
            return None if parameter.default is not None else "tf.distribute.InputContext()"
        if self.target.replicas:
            own = own_strategy(self.program) if self.program.config.get("train_distribute") is not None else None
            if own is not None and own.choice is not None and own.choice.nones:
                message = (
                    "the input function reads its `input_context`, which an Estimator without a strategy does not pass"
                )
                raise Blocked("TFM602", node, message)
            return f"tf.distribute.InputContext(num_replicas_in_sync={self.strategy}.num_replicas_in_sync)"
        both = self.program.train_and_evaluate
        if both is None or is_none(both.train.get("max_steps")):
            message = "the input function reads its `input_context`, so `fit` needs a number of steps: set `max_steps`"
            raise Blocked("TFM602", node, message)
        return "context"

    def _params_text(self, mode: str) -> str:
        """The params of the Estimator, which an input function reads too; a TPUEstimator adds the batch size.

        The shapes that a model is made for are those of one core where it reads the batch size of one core.
        """
        params = self.program.params
        given = self.program.batch_sizes.get(mode)
        size = None if given is None else self._text(given)
        if size is not None and self.only_shapes and self.target is TPU and self.program.model_batch is not None:
            size = f"{primary(size)} // {self.strategy}.num_replicas_in_sync"
        if params is None:
            return "{}" if size is None else f'{{"batch_size": {size}}}'
        last = self.program.calls[-1]
        changed = rebound(self.program.file, self.program.scope, params, self.program.place.call, last)
        if changed is not None:
            message = f"`{changed[0]}` changes after the Estimator is created, but an input function reads it"
            raise Blocked("TFM103", changed[1], message)
        text = self._text(params)
        return text if size is None else f"dict({text}, batch_size={size})"


class _Filled(cst.CSTTransformer):
    """Replaces parameters by what is passed for them."""

    def __init__(self, values: dict[str, cst.BaseExpression]) -> None:
        super().__init__()
        self.values = values

    def visit_Arg_keyword(self, node: cst.Arg) -> None:
        return None

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(keyword=original_node.keyword)

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.Attribute:
        return updated_node.with_changes(attr=original_node.attr)

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        return self.values.get(original_node.value, updated_node)


def _filled(function: cst.Lambda, passed: list[tuple[str | None, str, str]]) -> cst.BaseExpression | None:
    """The body of a lambda with its parameters filled in; None when one is read twice, or is an attribute's name."""
    values = {name: cst.parse_expression(text) for _, name, text in passed}
    for name in values:
        read = sum(node.value == name for node in name_nodes(function.body))
        if read > 1 and not isinstance(values[name], (cst.Name, cst.SimpleString)):
            return None
    if not values:
        return function.body
    body = function.body.visit(_Filled(values))
    assert isinstance(body, cst.BaseExpression)
    return body


def _written(argument: tuple[str | None, str, str]) -> str:
    keyword, _, text = argument
    return text if keyword is None else f"{keyword}={text}"
