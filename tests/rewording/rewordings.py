"""Other words for the same program: transformations of source that change nothing that a program does.

Each takes the module of a program's file and says whether it found something to say otherwise. They know Python and the
public names of tf.estimator, and nothing of how tf-migrate reads programs.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Rewording:
    """A transformation in place of one module. `apply` returns whether it changed anything.

    `write` is for what no tree tells, the layout: it changes the text of the module afterwards.
    """

    name: str
    apply: Callable[[ast.Module], bool]
    write: Callable[[str], str] = str


REWORDINGS: dict[str, Rewording] = {}


def rewording(apply: Callable[[ast.Module], bool]) -> Callable[[ast.Module], bool]:
    REWORDINGS[apply.__name__] = Rewording(apply.__name__, apply)
    return apply


def reword(text: str, *names: str) -> str | None:
    """The text in other words; None where none of the rewordings finds anything."""
    module = ast.parse(text)
    found = [REWORDINGS[name].apply(module) for name in names]
    if not any(found):
        return None
    text = ast.unparse(ast.fix_missing_locations(module)) + "\n"
    for name in names:
        text = REWORDINGS[name].write(text)
    return text


# -- what is asked of a module -----------------------------------------------------------------------------------------


def _functions(tree: ast.AST) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def _model_fns(module: ast.Module) -> list[ast.FunctionDef]:
    """Functions of the module's top level that return an EstimatorSpec."""
    return [
        node
        for node in module.body
        if isinstance(node, ast.FunctionDef)
        and any(isinstance(one, ast.Call) and _last(one.func).endswith("EstimatorSpec") for one in ast.walk(node))
        and "mode" in _parameters(node)
    ]


def _input_fns(module: ast.Module) -> list[ast.FunctionDef]:
    """Functions of the module's top level without parameters whose name is read, and not called."""
    called = {id(node.func) for node in ast.walk(module) if isinstance(node, ast.Call)}
    read = {
        node.id
        for node in ast.walk(module)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in called
    }
    return [
        node
        for node in module.body
        if isinstance(node, ast.FunctionDef) and not _parameters(node) and node.name in read
    ]


def _parameters(function: ast.FunctionDef) -> list[str]:
    return [one.arg for one in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]


def _last(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _calls(tree: ast.AST, *names: str) -> list[ast.Call]:
    """Calls of what is called so, by the last part of its name."""
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _last(node.func) in names]


def _name(identifier: str) -> ast.Name:
    return ast.Name(identifier, ast.Load())


def _parsed(text: str) -> list[ast.stmt]:
    return ast.parse(text).body


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                yield block


def _in_blocks(tree: ast.AST, rewrite: Callable[[ast.stmt], list[ast.stmt] | None]) -> bool:
    """Puts what `rewrite` returns in the place of a statement."""
    changed = False
    for block in list(_blocks(tree)):
        new: list[ast.stmt] = []
        for statement in block:
            instead = rewrite(statement)
            changed |= instead is not None
            new += [statement] if instead is None else instead
        block[:] = new
    return changed


def _single(statement: ast.stmt) -> ast.Name | None:
    """The name that a plain assignment of one name gives."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
        return statement.targets[0]
    return None


def _replace(tree: ast.AST, rewrite: Callable[[ast.AST], ast.AST | None]) -> bool:
    """Puts what `rewrite` returns in the place of an expression, the inner ones first."""
    changed = False

    class Replacer(ast.NodeTransformer):
        def generic_visit(self, node: ast.AST) -> ast.AST:
            nonlocal changed
            node = super().generic_visit(node)
            instead = rewrite(node)
            changed |= instead is not None
            return node if instead is None else instead

    Replacer().visit(tree)
    return changed


def _head(module: ast.Module) -> int:
    """Where statements may be put behind the docstring, imports of __future__ and all other first imports."""
    at = 0
    for index, statement in enumerate(module.body):
        if isinstance(statement, ast.Import | ast.ImportFrom):
            at = index + 1
        elif index and not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
            break
    return at


def _import_first(module: ast.Module, text: str) -> None:
    module.body[_head(module) : _head(module)] = _parsed(text)


def _driver(module: ast.Module) -> int | None:
    """The first statement of the top level that trains, or makes an Estimator; None where functions do it."""
    for index, statement in enumerate(module.body):
        if isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.If):
            continue
        if _calls(statement, "Estimator", "train", "train_and_evaluate", "DNNLinearCombinedClassifier"):
            return index
    return None


def _plain_tail(module: ast.Module, start: int) -> bool:
    """Whether the statements from `start` on can stand in a function: no imports, definitions or global names."""
    stored = {
        node.id
        for statement in module.body[start:]
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    before = {
        node.id
        for statement in module.body[:start]
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    simple = ast.Assign | ast.Expr | ast.AnnAssign | ast.AugAssign | ast.For | ast.With | ast.If
    return not stored & before and all(isinstance(statement, simple) for statement in module.body[start:])


def _is_mode_test(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Compare)
        and len(node.ops) == 1
        and isinstance(node.ops[0], ast.Eq)
        and isinstance(node.left, ast.Name)
        and isinstance(node.comparators[0], ast.Attribute)
        and _last(node.comparators[0].value) == "ModeKeys"
    )


# -- names and bindings ------------------------------------------------------------------------------------------------


def _of_locals(module: ast.Module, rewrite: Callable[[ast.Name, ast.expr], list[ast.stmt]]) -> bool:
    """Says the assignments of single names in the model_fns otherwise."""

    def of(statement: ast.stmt) -> list[ast.stmt] | None:
        target = _single(statement)
        return None if target is None else rewrite(target, statement.value)  # type: ignore[attr-defined]

    return sum(_in_blocks(function, of) for function in _model_fns(module)) > 0


@rewording
def annotated_assignments(module: ast.Module) -> bool:
    return _of_locals(module, lambda target, value: [ast.AnnAssign(target, ast.Constant("tf.Tensor"), value, 1)])


@rewording
def chained_assignments(module: ast.Module) -> bool:
    return _of_locals(
        module,
        lambda target, value: [ast.Assign([target, ast.Name(f"{target.id}_too", ast.Store())], value)],
    )


@rewording
def unpacked_assignments(module: ast.Module) -> bool:
    return _of_locals(
        module,
        lambda target, value: [ast.Assign([ast.Tuple([target], ast.Store())], ast.Tuple([value], ast.Load()))],
    )


@rewording
def walrus_assignments(module: ast.Module) -> bool:
    return _of_locals(module, lambda target, value: [ast.Expr(ast.NamedExpr(target, value))])


@rewording
def second_names(module: ast.Module) -> bool:
    return _of_locals(
        module,
        lambda target, value: [
            ast.Assign([ast.Name(f"the_{target.id}", ast.Store())], value),
            ast.Assign([target], _name(f"the_{target.id}")),
        ],
    )


@rewording
def values_through_a_list(module: ast.Module) -> bool:
    return _of_locals(
        module,
        lambda target, value: [
            ast.Assign([ast.Name(f"{target.id}_list", ast.Store())], ast.List([value], ast.Load())),
            ast.Assign([target], _expression(f"{target.id}_list[0]")),
        ],
    )


@rewording
def values_through_a_dict(module: ast.Module) -> bool:
    return _of_locals(
        module,
        lambda target, value: [
            ast.Assign([ast.Name(f"{target.id}_of", ast.Store())], ast.Dict([ast.Constant("value")], [value])),
            ast.Assign([target], _expression(f"{target.id}_of['value']")),
        ],
    )


@rewording
def local_names(module: ast.Module) -> bool:
    """Renames all local names of model_fns that no nested function reads."""
    changed = False
    for function in _model_fns(module):
        stored = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        stored -= set(_parameters(function))
        for node in ast.walk(function):
            if isinstance(node, ast.Name) and node.id in stored:
                node.id, changed = f"my_{node.id}", True
    return changed


@rewording
def constants_of_the_module(module: ast.Module) -> bool:
    """Numbers in calls of model_fns become constants of the module."""
    constants: list[ast.stmt] = []
    for function in _model_fns(module):
        for call in [one for one in ast.walk(function) if isinstance(one, ast.Call)]:
            for place in call.keywords:
                if isinstance(place.value, ast.Constant) and isinstance(place.value.value, int | float):
                    name = f"CONSTANT_{len(constants)}"
                    constants.append(ast.Assign([ast.Name(name, ast.Store())], place.value))
                    place.value = _name(name)
            for index, argument in enumerate(call.args):
                if isinstance(argument, ast.Constant) and isinstance(argument.value, int | float):
                    name = f"CONSTANT_{len(constants)}"
                    constants.append(ast.Assign([ast.Name(name, ast.Store())], argument))
                    call.args[index] = _name(name)
    at = _head(module)
    module.body[at:at] = constants
    return bool(constants)


@rewording
def constants_of_a_class(module: ast.Module) -> bool:
    """Numbers in keywords of model_fns become attributes of a class."""
    settings: list[ast.stmt] = []
    for function in _model_fns(module):
        for call in [one for one in ast.walk(function) if isinstance(one, ast.Call)]:
            for place in call.keywords:
                if isinstance(place.value, ast.Constant) and isinstance(place.value.value, int | float):
                    name = f"setting_{len(settings)}"
                    settings.append(ast.Assign([ast.Name(name, ast.Store())], place.value))
                    place.value = _expression(f"Settings.{name}")
    if settings:
        at = _head(module)
        module.body.insert(at, ast.ClassDef("Settings", [], [], settings, []))
    return bool(settings)


# -- names of TensorFlow -----------------------------------------------------------------------------------------------


def _import_of_tensorflow(module: ast.Module) -> ast.Import | None:
    for statement in module.body:
        if isinstance(statement, ast.Import) and statement.names[0].name in ("tensorflow", "tensorflow.compat.v1"):
            return statement if len(statement.names) == 1 and statement.names[0].asname == "tf" else None
    return None


def _spell_tensorflow(module: ast.Module, new: str) -> None:
    for node in ast.walk(module):
        if isinstance(node, ast.Name) and node.id == "tf":
            node.id = new


@rewording
def other_alias(module: ast.Module) -> bool:
    found = _import_of_tensorflow(module)
    if found is not None:
        found.names[0].asname = "tensor_flow"
        _spell_tensorflow(module, "tensor_flow")
    return found is not None


@rewording
def no_alias(module: ast.Module) -> bool:
    found = _import_of_tensorflow(module)
    if found is not None:
        found.names[0].asname = None
        _spell_tensorflow(module, found.names[0].name)
    return found is not None


@rewording
def compat_v1(module: ast.Module) -> bool:
    found = _import_of_tensorflow(module)
    if found is None or found.names[0].name == "tensorflow.compat.v1":
        return False
    if not any(_last(n) == "contrib" for n in ast.walk(module) if isinstance(n, ast.expr)):
        found.names[0].name = "tensorflow.compat.v1"
        return True
    return False


@rewording
def second_alias(module: ast.Module) -> bool:
    if _import_of_tensorflow(module) is None:
        return False
    _spell_tensorflow(module, "framework")
    _import_first(module, "framework = tf")
    return True


@rewording
def estimator_module(module: ast.Module) -> bool:
    """`from tensorflow import estimator`."""
    found = _import_of_tensorflow(module)
    if found is None:
        return False
    if any(
        isinstance(n, ast.Name | ast.arg) and "estimator" in (getattr(n, "id", ""), getattr(n, "arg", ""))
        for n in ast.walk(module)
    ):
        return False
    changed = _replace(
        module,
        lambda node: (
            _name("estimator") if isinstance(node, ast.Attribute) and ast.unparse(node) == "tf.estimator" else None
        ),
    )
    if changed:
        _import_first(module, f"from {found.names[0].name} import estimator")
    return changed


@rewording
def estimator_classes(module: ast.Module) -> bool:
    """`Estimator = tf.estimator.Estimator` and kin."""
    found: set[str] = set()

    def of(node: ast.AST) -> ast.AST | None:
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "tf.estimator" and node.attr[0].isupper():
            found.add(node.attr)
            return _name(f"Tf{node.attr}")
        return None

    _replace(module, of)
    _import_first(module, "\n".join(f"Tf{name} = tf.estimator.{name}" for name in sorted(found)))
    return bool(found)


@rewording
def layers_module(module: ast.Module) -> bool:
    """`layers = tf.layers`."""
    found = _replace(
        module,
        lambda node: (
            _name("tf_layers") if isinstance(node, ast.Attribute) and ast.unparse(node) == "tf.layers" else None
        ),
    )
    if found:
        _import_first(module, "tf_layers = tf.layers")
    return found


@rewording
def layers_by_getattr(module: ast.Module) -> bool:
    return _replace(
        module,
        lambda node: (
            _expression(f"getattr(tf.layers, {node.attr!r})")
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "tf.layers"
            else None
        ),
    )


# -- arguments ---------------------------------------------------------------------------------------------------------

_SPECS = ("TrainSpec", "EvalSpec", "EstimatorSpec", "RunConfig", "Estimator")


def _keywords_as(module: ast.Module, names: tuple[str, ...], make: Callable[[ast.Call, ast.Dict], ast.expr]) -> bool:
    changed = False
    for call in _calls(module, *names):
        if call.keywords and all(place.arg for place in call.keywords):
            keys: list[ast.expr | None] = [ast.Constant(place.arg) for place in call.keywords]
            values = ast.Dict(keys, [place.value for place in call.keywords])
            call.keywords = [ast.keyword(None, make(call, values))]
            changed = True
    return changed


@rewording
def keywords_of_a_dict(module: ast.Module) -> bool:
    return _keywords_as(module, _SPECS, lambda call, values: values)


@rewording
def keywords_of_a_dict_call(module: ast.Module) -> bool:
    def make(call: ast.Call, values: ast.Dict) -> ast.expr:
        places = [
            ast.keyword(key.value, value)  # type: ignore[union-attr]
            for key, value in zip(values.keys, values.values, strict=True)
        ]
        return ast.Call(_name("dict"), [], places)

    return _keywords_as(module, _SPECS, make)


@rewording
def keywords_of_a_named_dict(module: ast.Module) -> bool:
    """`options = {...}` stands before the statement whose call takes it."""

    def of(statement: ast.stmt) -> list[ast.stmt] | None:
        if not isinstance(statement, ast.Assign | ast.Expr | ast.Return):
            return None
        before: list[ast.stmt] = []

        def make(call: ast.Call, values: ast.Dict) -> ast.expr:
            name = f"options_of_{_last(call.func).lower()}"
            before.append(ast.Assign([ast.Name(name, ast.Store())], values))
            return _name(name)

        holder = ast.Module([statement], [])
        return [*before, statement] if _keywords_as(holder, _SPECS[:3], make) else None

    return _in_blocks(module, of)


@rewording
def keywords_in_another_order(module: ast.Module) -> bool:
    changed = False
    for call in _calls(module, *_SPECS, "dense", "conv2d", "AdamOptimizer"):
        if len(call.keywords) > 1:
            call.keywords.reverse()
            changed = True
    return changed


@rewording
def spec_by_position(module: ast.Module) -> bool:
    """`EstimatorSpec(mode, predictions, loss, train_op)`."""
    order = ("mode", "predictions", "loss", "train_op", "eval_metric_ops")
    changed = False
    for call in _calls(module, "EstimatorSpec"):
        given = {place.arg: place.value for place in call.keywords}
        if call.args or not given or None in given or not set(given) <= set(order):
            continue
        last = max(order.index(str(name)) for name in given)
        call.args = [given.get(name, ast.Constant(None)) for name in order[: last + 1]]
        call.keywords, changed = [], True
    return changed


@rewording
def partial_estimators(module: ast.Module) -> bool:
    changed = False
    for call in _calls(module, "Estimator"):
        call.func = ast.Call(_expression("functools.partial"), [call.func, *call.args], [])
        call.args, changed = [], True
    if changed:
        _import_first(module, "import functools")
    return changed


def _wrap_input_fns(module: ast.Module, make: Callable[[ast.expr], ast.expr]) -> bool:
    names = {function.name for function in _input_fns(module)}
    changed = False
    for call in [one for one in ast.walk(module) if isinstance(one, ast.Call)]:
        for place in call.keywords:
            if place.arg == "input_fn" and isinstance(place.value, ast.Name) and place.value.id in names:
                place.value, changed = make(place.value), True
        if _last(call.func) in ("train", "evaluate", "predict", "TrainSpec", "EvalSpec"):
            first = call.args[0] if call.args else None
            if isinstance(first, ast.Name) and first.id in names:
                call.args[0], changed = make(first), True
    return changed


@rewording
def lambda_input_fns(module: ast.Module) -> bool:
    return _wrap_input_fns(module, lambda value: _expression(f"lambda: {ast.unparse(value)}()"))


@rewording
def partial_input_fns(module: ast.Module) -> bool:
    changed = _wrap_input_fns(module, lambda value: _expression(f"functools.partial({ast.unparse(value)})"))
    if changed:
        _import_first(module, "import functools")
    return changed


# -- functions ---------------------------------------------------------------------------------------------------------

_IDENTITY = """
def plainly(function):
    return function
"""


@rewording
def decorated_functions(module: ast.Module) -> bool:
    found = [*_model_fns(module), *_input_fns(module)]
    for function in found:
        function.decorator_list.insert(0, _name("plainly"))
    if found:
        _import_first(module, _IDENTITY)
    return bool(found)


@rewording
def annotated_functions(module: ast.Module) -> bool:
    found = _model_fns(module)
    for function in found:
        for one in function.args.args:
            one.annotation = _expression("object")
        function.returns = _expression("object")
    return bool(found)


@rewording
def documented_functions(module: ast.Module) -> bool:
    found = [function for function in _functions(module) if ast.get_docstring(function) is None]
    for function in found:
        function.body.insert(0, ast.Expr(ast.Constant(f"{function.name}: see elsewhere.")))
    return bool(found)


@rewording
def model_fns_by_factory(module: ast.Module) -> bool:
    """`def make_model_fn(): def model_fn(...): ...; return model_fn`, called where the name was read."""
    found = _model_fns(module)
    for function in found:
        maker = f"make_{function.name}"
        at = module.body.index(function)
        body: list[ast.stmt] = [function, ast.Return(_name(function.name))]
        made = ast.parse(f"def {maker}():\n    pass\n").body[0]
        assert isinstance(made, ast.FunctionDef)
        made.body = body
        module.body[at : at + 1] = [made, *_parsed(f"{function.name} = {maker}()")]
    return bool(found)


@rewording
def model_fns_in_a_class(module: ast.Module) -> bool:
    """The model_fn is a static method, read of the class."""
    found = _model_fns(module)
    if len(found) != 1:
        return False
    [function] = found
    at = module.body.index(function)
    is_read = any(isinstance(node, ast.Name) and node.id == function.name for node in ast.walk(module))
    function.decorator_list.append(_name("staticmethod"))
    module.body[at] = ast.ClassDef("Model", [], [], [function], [])
    for node in list(ast.walk(module)):
        for field, value in ast.iter_fields(node):
            if isinstance(value, ast.Name) and value.id == function.name:
                setattr(node, field, _expression(f"Model.{function.name}"))
            elif isinstance(value, list):
                for index, one in enumerate(value):
                    if isinstance(one, ast.Name) and one.id == function.name:
                        value[index] = _expression(f"Model.{function.name}")
    if not is_read:
        module.body[at + 1 : at + 1] = _parsed(f"{function.name} = Model.{function.name}")  # another file reads it
    return True


@rewording
def model_fns_as_methods(module: ast.Module) -> bool:
    """The model_fn is a method of an object that is made where its name is read."""
    found = _model_fns(module)
    if len(found) != 1:
        return False
    [function] = found
    at = module.body.index(function)
    function.args.args.insert(0, ast.arg("self"))
    module.body[at : at + 1] = [
        ast.ClassDef("Model", [], [], [function], []),
        *_parsed(f"{function.name} = Model().{function.name}"),
    ]
    return True


@rewording
def lambda_model_fns(module: ast.Module) -> bool:
    """`model_fn=lambda features, ...: model_fn(features, ...)`."""
    found = {function.name: function for function in _model_fns(module)}
    changed = False
    for call in _calls(module, "Estimator"):
        for place in [*call.args[:1], *(p.value for p in call.keywords if p.arg == "model_fn")]:
            if isinstance(place, ast.Name) and place.id in found:
                names = ", ".join(_parameters(found[place.id]))
                new = _expression(f"lambda {names}: {place.id}({names})")
                if call.args and call.args[0] is place:
                    call.args[0] = new
                else:
                    next(p for p in call.keywords if p.arg == "model_fn").value = new
                changed = True
    return changed


@rewording
def loss_by_helper(module: ast.Module) -> bool:
    """The value of `loss` is computed by a function of the module that takes the local names that it reads."""
    changed = False
    for function in _model_fns(module):
        local = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        local |= set(_parameters(function))
        for block in list(_blocks(function)):
            for statement in block:
                target = _single(statement)
                if target is None or target.id != "loss" or changed:
                    continue
                value = statement.value  # type: ignore[attr-defined]
                read = sorted({n.id for n in ast.walk(value) if isinstance(n, ast.Name)} & local)
                [helper] = _parsed(f"def compute_loss({', '.join(read)}):\n    return None\n")
                helper.body[0].value = value  # type: ignore[attr-defined]
                statement.value = _expression(f"compute_loss({', '.join(read)})")  # type: ignore[attr-defined]
                module.body.insert(module.body.index(function), helper)
                changed = True
    return changed


# -- control flow of model_fns -----------------------------------------------------------------------------------------


@rewording
def one_return(module: ast.Module) -> bool:
    """`spec = EstimatorSpec(...)`, then `return spec`."""

    def of(statement: ast.stmt) -> list[ast.stmt] | None:
        if not isinstance(statement, ast.Return) or not isinstance(statement.value, ast.Call):
            return None
        return [ast.Assign([ast.Name("spec", ast.Store())], statement.value), ast.Return(_name("spec"))]

    return sum(_in_blocks(function, of) for function in _model_fns(module)) > 0


@rewording
def else_for_return(module: ast.Module) -> bool:
    """What follows an `if` that returns stands under its `else`."""
    changed = False
    for function in _model_fns(module):
        block = function.body
        while True:
            ends = [
                index
                for index, one in enumerate(block[:-1])
                if isinstance(one, ast.If) and not one.orelse and isinstance(one.body[-1], ast.Return)
            ]
            if not ends:
                break
            test = block[ends[0]]
            assert isinstance(test, ast.If)
            test.orelse = block[ends[0] + 1 :]
            del block[ends[0] + 1 :]
            block, changed = test.orelse, True
    return changed


@rewording
def modes_reversed(module: ast.Module) -> bool:
    return _replace(
        module,
        lambda node: (
            ast.Compare(node.comparators[0], [ast.Eq()], [node.left])  # type: ignore[attr-defined]
            if _is_mode_test(node)
            else None
        ),
    )


@rewording
def modes_in_tuples(module: ast.Module) -> bool:
    return _replace(
        module,
        lambda node: (
            ast.Compare(node.left, [ast.In()], [ast.Tuple(node.comparators, ast.Load())])  # type: ignore[attr-defined]
            if _is_mode_test(node)
            else None
        ),
    )


@rewording
def modes_not_unequal(module: ast.Module) -> bool:
    return _replace(
        module,
        lambda node: (
            ast.UnaryOp(ast.Not(), ast.Compare(node.left, [ast.NotEq()], node.comparators))  # type: ignore[attr-defined]
            if _is_mode_test(node)
            else None
        ),
    )


@rewording
def modes_as_strings(module: ast.Module) -> bool:
    values = {"TRAIN": "train", "EVAL": "eval", "PREDICT": "infer"}
    return _replace(
        module,
        lambda node: (
            ast.Compare(node.left, node.ops, [ast.Constant(values[node.comparators[0].attr])])  # type: ignore[attr-defined]
            if _is_mode_test(node)
            else None
        ),
    )


@rewording
def modes_named(module: ast.Module) -> bool:
    """`is_train = mode == tf.estimator.ModeKeys.TRAIN` at the start of the model_fn."""
    changed = False
    for function in _model_fns(module):
        found: dict[str, ast.expr] = {}

        def of(node: ast.AST, found: dict[str, ast.expr] = found) -> ast.AST | None:
            if not _is_mode_test(node):
                return None
            name = f"is_{node.comparators[0].attr.lower()}"  # type: ignore[attr-defined]
            found[name] = copy.deepcopy(node)  # type: ignore[assignment]
            return _name(name)

        _replace(function, of)
        at = 1 if ast.get_docstring(function) else 0
        function.body[at:at] = [ast.Assign([ast.Name(name, ast.Store())], value) for name, value in found.items()]
        changed |= bool(found)
    return changed


@rewording
def printed_steps(module: ast.Module) -> bool:
    """model_fns print what they do."""
    found = _model_fns(module)
    for function in found:
        at = 1 if ast.get_docstring(function) else 0
        function.body.insert(at, _parsed("print('building the model')")[0])
    return bool(found)


@rewording
def printed_modes(module: ast.Module) -> bool:
    """model_fns print for which mode they are called."""
    found = _model_fns(module)
    for function in found:
        at = 1 if ast.get_docstring(function) else 0
        function.body.insert(at, _parsed("print('building the model for', mode)")[0])
    return bool(found)


@rewording
def asserted_shapes(module: ast.Module) -> bool:
    found = _model_fns(module)
    for function in found:
        at = 1 if ast.get_docstring(function) else 0
        function.body.insert(at, _parsed("assert mode is not None")[0])
    return bool(found)


# -- the driver --------------------------------------------------------------------------------------------------------


@rewording
def driver_in_main(module: ast.Module) -> bool:
    start = _driver(module)
    if start is None or not _plain_tail(module, start):
        return False
    [main] = _parsed("def main():\n    pass\n")
    main.body = module.body[start:]  # type: ignore[attr-defined]
    module.body[start:] = [main, *_parsed("if __name__ == '__main__':\n    main()\n")]
    return True


@rewording
def main_at_the_top_level(module: ast.Module) -> bool:
    """What a main without parameters does stands under `if __name__ == "__main__"`."""
    mains = [one for one in module.body if isinstance(one, ast.FunctionDef) and one.name == "main"]
    called = _calls(module, "main")
    last = module.body[-1]
    if len(mains) != 1 or _parameters(mains[0]) or len(called) != 1 or not isinstance(last, ast.If):
        return False
    if len(last.body) != 1 or any(isinstance(node, ast.Return) for node in ast.walk(mains[0])):
        return False
    last.body = mains[0].body
    module.body.remove(mains[0])
    return True


@rewording
def driver_in_main_of_arguments(module: ast.Module) -> bool:
    start = _driver(module)
    if start is None or not _plain_tail(module, start) or _import_of_tensorflow(module) is None:
        return False
    [main] = _parsed("def main(_):\n    pass\n")
    main.body = module.body[start:]  # type: ignore[attr-defined]
    module.body[start:] = [main, *_parsed("if __name__ == '__main__':\n    tf.app.run(main)\n")]
    return True


def _driver_under(module: ast.Module, text: str) -> bool:
    start = _driver(module)
    if start is None or not _plain_tail(module, start):
        return False
    [under] = _parsed(text)
    under.body = module.body[start:]  # type: ignore[attr-defined]
    module.body[start:] = [under]
    return True


@rewording
def driver_under_if(module: ast.Module) -> bool:
    return _driver_under(module, "if True:\n    pass\n")


@rewording
def driver_under_try(module: ast.Module) -> bool:
    return _driver_under(module, "try:\n    pass\nfinally:\n    print('done')\n")


@rewording
def driver_under_with(module: ast.Module) -> bool:
    done = _driver_under(module, "with contextlib.ExitStack():\n    pass\n")
    if done:
        _import_first(module, "import contextlib")
    return done


@rewording
def driver_in_a_loop(module: ast.Module) -> bool:
    return _driver_under(module, "for _ in range(1):\n    pass\n")


@rewording
def driver_in_a_class(module: ast.Module) -> bool:
    start = _driver(module)
    if start is None or not _plain_tail(module, start):
        return False
    [runner] = _parsed("class Runner:\n    def run(self):\n        pass\n")
    runner.body[0].body = module.body[start:]  # type: ignore[attr-defined]
    module.body[start:] = [runner, *_parsed("Runner().run()\n")]
    return True


def _of_driver_calls(module: ast.Module, rewrite: Callable[[ast.Call], list[ast.stmt]]) -> bool:
    def of(statement: ast.stmt) -> list[ast.stmt] | None:
        if isinstance(statement, ast.Expr) and statement.value in _calls(statement, "train_and_evaluate", "train"):
            assert isinstance(statement.value, ast.Call)
            return rewrite(statement.value)
        return None

    return _in_blocks(module, of)


@rewording
def results_named(module: ast.Module) -> bool:
    return _of_driver_calls(module, lambda call: [ast.Assign([ast.Name("outcome", ast.Store())], call)])


@rewording
def results_printed(module: ast.Module) -> bool:
    return _of_driver_calls(
        module,
        lambda call: (
            [ast.Expr(ast.Call(_name("print"), [call], []))] if _last(call.func) != "train" else [ast.Expr(call)]
        ),
    )


def _of_estimators(module: ast.Module, rewrite: Callable[[ast.Name, ast.expr], list[ast.stmt]]) -> bool:
    def of(statement: ast.stmt) -> list[ast.stmt] | None:
        target = _single(statement)
        if target is None or not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
            return None
        if not _last(statement.value.func).endswith(("Estimator", "Classifier", "Regressor")):
            return None
        return rewrite(target, statement.value)

    return _in_blocks(module, of)


@rewording
def estimators_in_a_list(module: ast.Module) -> bool:
    return _of_estimators(
        module,
        lambda target, value: [
            ast.Assign([ast.Name("estimators", ast.Store())], ast.List([value], ast.Load())),
            ast.Assign([target], _expression("estimators[0]")),
        ],
    )


@rewording
def estimators_in_a_dict(module: ast.Module) -> bool:
    return _of_estimators(
        module,
        lambda target, value: [
            ast.Assign([ast.Name("models", ast.Store())], ast.Dict([ast.Constant("one")], [value])),
            ast.Assign([target], _expression("models['one']")),
        ],
    )


@rewording
def estimators_by_builder(module: ast.Module) -> bool:
    """`def build_estimator(): return Estimator(...)`, where all that it reads belongs to the module."""
    changed = False
    top = [statement for statement in module.body if _single(statement) is not None]
    for statement in top:
        value = statement.value  # type: ignore[attr-defined]
        if isinstance(value, ast.Call) and _last(value.func).endswith(("Estimator", "Classifier", "Regressor")):
            [builder] = _parsed("def build_estimator():\n    return None\n")
            builder.body[0].value = value  # type: ignore[attr-defined]
            statement.value = _expression("build_estimator()")  # type: ignore[attr-defined]
            module.body.insert(module.body.index(statement), builder)
            changed = True
    return changed


@rewording
def specs_in_a_function(module: ast.Module) -> bool:
    """TrainSpec and EvalSpec are made by a function that returns both."""
    for block in list(_blocks(module)):
        for index in range(len(block) - 1):
            one, two = block[index : index + 2]
            first, second = _single(one), _single(two)
            if first is None or second is None:
                continue
            values = [one.value, two.value]  # type: ignore[attr-defined]
            if [_last(v.func) if isinstance(v, ast.Call) else "" for v in values] != ["TrainSpec", "EvalSpec"]:
                continue
            [maker] = _parsed("def make_specs():\n    return None\n")
            maker.body[0].value = ast.Tuple(values, ast.Load())  # type: ignore[attr-defined]
            target = ast.Tuple([first, second], ast.Store())
            block[index : index + 2] = [maker, ast.Assign([target], _expression("make_specs()"))]
            return True
    return False


#: Those of this file: tests/rewording/everyday.py adds others, which the evaluator by itself does not all see through.
FIRST = tuple(REWORDINGS)
