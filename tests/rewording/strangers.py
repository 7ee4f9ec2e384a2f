"""More words for the same program, as a stranger writes it: attributes of the mode, tables, params, helpers."""

from __future__ import annotations

import ast
from collections.abc import Callable

from tests.rewording.everyday import _constants, _said
from tests.rewording.habits import _of_optimizers, _only_model_fn, _top_calls, _types
from tests.rewording.layers_and_drivers import LACKING, _of_layers, lacking
from tests.rewording.rewordings import (
    REWORDINGS,
    _calls,
    _expression,
    _import_first,
    _import_of_tensorflow,
    _in_blocks,
    _input_fns,
    _is_mode_test,
    _last,
    _model_fns,
    _name,
    _of_driver_calls,
    _of_locals,
    _parameters,
    _parsed,
    _replace,
    rewording,
)

# -- the mode as an attribute ------------------------------------------------------------------------------------------


def _mode_attributes(module: ast.Module, given: str, helper: str = "") -> bool:
    """The model_fn makes an object that keeps whether it trains; the tests for TRAIN ask that."""
    function = _only_model_fn(module)
    if function is None or _import_of_tensorflow(module) is None:
        return False
    train = "tf.estimator.ModeKeys.TRAIN"
    done = _replace(
        function,
        lambda node: (
            _expression("net_of_mode.is_training")
            if _is_mode_test(node) and ast.unparse(node.comparators[0]) == train  # type: ignore[attr-defined]
            else None
        ),
    )
    if not done:
        return False
    at = 1 if ast.get_docstring(function) else 0
    function.body[at:at] = _parsed("net_of_mode = NetOfMode(mode)")
    lines = given.replace("\n", "\n        ")
    _import_first(module, f"{helper}class NetOfMode(object):\n    def __init__(self, mode):\n        {lines}\n")
    return True


@rewording
def mode_attributes(module: ast.Module) -> bool:
    """`self.is_training = mode == TRAIN`."""
    return _mode_attributes(module, "self.is_training = mode == tf.estimator.ModeKeys.TRAIN")


@rewording
def mode_attributes_unpacked(module: ast.Module) -> bool:
    """`self.mode, self.is_training = mode, mode == TRAIN`."""
    return _mode_attributes(module, "self.mode, self.is_training = mode, mode == tf.estimator.ModeKeys.TRAIN")


@rewording
def mode_attributes_chained(module: ast.Module) -> bool:
    """`training = self.is_training = mode == TRAIN`."""
    return _mode_attributes(module, "training = self.is_training = mode == tf.estimator.ModeKeys.TRAIN")


@rewording
def mode_attributes_set(module: ast.Module) -> bool:
    """`setattr(self, "is_training", mode == TRAIN)`."""
    return _mode_attributes(module, "setattr(self, 'is_training', mode == tf.estimator.ModeKeys.TRAIN)")


@rewording
def mode_attributes_by_helper(module: ast.Module) -> bool:
    """`self.is_training = is_train(mode)`."""
    helper = "def is_train(mode):\n    return mode == tf.estimator.ModeKeys.TRAIN\n\n"
    return _mode_attributes(module, "self.is_training = is_train(mode)", helper)


@rewording
def mode_attributes_by_condition(module: ast.Module) -> bool:
    """`self.is_training = True if mode == TRAIN else False`."""
    return _mode_attributes(module, "self.is_training = True if mode == tf.estimator.ModeKeys.TRAIN else False")


@rewording
def mode_attributes_by_branches(module: ast.Module) -> bool:
    text = "if mode == tf.estimator.ModeKeys.TRAIN:\n    self.is_training = True\nelse:\n    self.is_training = False"
    return _mode_attributes(module, text)


# -- tables ------------------------------------------------------------------------------------------------------------


@rewording
def optimizers_of_a_class_table(module: ast.Module) -> bool:
    """`Choices.OPTIMIZERS["mine"](rate)`, a dict that is an attribute of a class."""
    kinds: list[str] = []

    def instead(target: ast.Name, value: ast.Call) -> list[ast.stmt]:
        kinds.append(ast.unparse(value.func))
        value.func = _expression("Choices.OPTIMIZERS['mine']")
        return [ast.Assign([target], value)]

    if not _of_optimizers(module, instead) or len(kinds) != 1:
        return False
    _import_first(
        module, f"class Choices(object):\n    OPTIMIZERS = {{'mine': {kinds[0]}, 'sgd': tf.train.FtrlOptimizer}}\n"
    )
    return True


@rewording
def optimizer_classes_chosen(module: ast.Module) -> bool:
    """`kind = tf.train.AdamOptimizer` in a branch, then `kind(rate)`."""

    def instead(target: ast.Name, value: ast.Call) -> list[ast.stmt]:
        kind = ast.unparse(value.func)
        if len(value.args) + len(value.keywords) != 1:
            return [ast.Assign([target], value)]  # the other one would be called with what it does not know
        value.func = _name("kind")
        return [
            *_parsed(
                f"if OPTIMIZER == 'mine':\n    kind = {kind}\nelse:\n    kind = tf.train.GradientDescentOptimizer\n"
            ),
            ast.Assign([target], value),
        ]

    if not _of_optimizers(module, instead) or not any(_calls(one, "kind") for one in _model_fns(module)):
        return False
    _import_first(module, "OPTIMIZER = 'mine'")
    return True


@rewording
def optimizer_classes_named(module: ast.Module) -> bool:
    """`kind = tf.train.AdamOptimizer`, then `kind(rate)`."""

    def instead(target: ast.Name, value: ast.Call) -> list[ast.stmt]:
        kind = ast.unparse(value.func)
        value.func = _name("kind")
        return [*_parsed(f"kind = {kind}"), ast.Assign([target], value)]

    return _of_optimizers(module, instead)


@rewording
def optimizers_by_getattr(module: ast.Module) -> bool:
    """`getattr(tf.train, "Adam" + "Optimizer")(rate)`."""

    def instead(target: ast.Name, value: ast.Call) -> list[ast.stmt]:
        name = _last(value.func).removesuffix("Optimizer")
        value.func = _expression(f"getattr(tf.train, {name!r} + 'Optimizer')")
        return [ast.Assign([target], value)]

    return _of_optimizers(module, instead)


# -- params ------------------------------------------------------------------------------------------------------------


def _of_params(module: ast.Module, instead: Callable[[ast.expr], ast.expr]) -> bool:
    """Says the params that an Estimator is given otherwise."""
    estimators = _calls(module, "Estimator")
    places = [place for one in estimators for place in one.keywords if place.arg == "params"]
    if len(estimators) != 1 or len(places) != 1 or not isinstance(places[0].value, ast.Dict):
        return False
    places[0].value = instead(places[0].value)
    return True


def _is_read_by_key(module: ast.Module) -> bool:
    """Whether model_fns only read `params["x"]`."""
    for function in _model_fns(module):
        keyed = [n.value for n in ast.walk(function) if isinstance(n, ast.Subscript)]
        for node in ast.walk(function):
            if isinstance(node, ast.Name) and node.id == "params" and not any(node is one for one in keyed):
                return False
    return True


@rewording
def params_of_a_function(module: ast.Module) -> bool:
    """`def hparams(): return {...}`."""
    made: list[str] = []

    def instead(value: ast.expr) -> ast.expr:
        made.append(f"def hparams():\n    return {ast.unparse(value)}\n")
        return _expression("hparams()")

    names = {"tf", "np"}
    found = [p.value for one in _calls(module, "Estimator") for p in one.keywords if p.arg == "params"]
    if any(isinstance(n, ast.Name) and n.id not in names for value in found for n in ast.walk(value)):
        return False
    if not _of_params(module, instead):
        return False
    _import_first(module, made[0])
    return True


@rewording
def params_by_dict(module: ast.Module) -> bool:
    """`params=dict(units=8)`."""
    return _of_params(
        module,
        lambda value: _expression(
            f"dict({', '.join(f'{k.value}={ast.unparse(v)}' for k, v in zip(value.keys, value.values, strict=True))})"  # type: ignore[attr-defined]
        ),
    )


@rewording
def params_merged(module: ast.Module) -> bool:
    """`params={**{...}, "seed": 1}`."""
    return _of_params(module, lambda value: _expression(f"{{**{ast.unparse(value)}, 'seed_of_more': 1}}"))


@rewording
def params_named(module: ast.Module) -> bool:
    """`hp = params` in the model_fn, read under both names."""
    changed = False
    for function in _model_fns(module):
        if "params" not in _parameters(function):
            continue
        reads = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == "params"]
        for node in reads[::2]:
            node.id, changed = "hp", True
        if reads:
            at = 1 if ast.get_docstring(function) else 0
            function.body[at:at] = _parsed("hp = params")
    return changed


@rewording
def params_copied(module: ast.Module) -> bool:
    """`hp = dict(params)` in the model_fn."""
    changed = False
    for function in _model_fns(module):
        reads = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == "params"]
        for node in reads:
            node.id, changed = "hp", True
        if reads:
            at = 1 if ast.get_docstring(function) else 0
            function.body[at:at] = _parsed("hp = dict(params)")
    return changed


@rewording
def params_unpacked(module: ast.Module) -> bool:
    """`units, rate = params["units"], params["rate"]` at the top of the model_fn."""
    changed = False
    for function in _model_fns(module):
        keys: dict[str, str] = {}

        def instead(node: ast.AST, keys: dict[str, str] = keys) -> ast.AST | None:
            if (
                isinstance(node, ast.Subscript)
                and ast.unparse(node.value) == "params"
                and isinstance(node.ctx, ast.Load)
            ):
                key = ast.literal_eval(node.slice)
                keys[key] = f"param_{key}"
                return _name(keys[key])
            return None

        if _replace(function, instead) and keys:
            at = 1 if ast.get_docstring(function) else 0
            targets, values = ", ".join(keys.values()), ", ".join(f"params[{key!r}]" for key in keys)
            function.body[at:at] = _parsed(f"{targets} = {values}")
            changed = True
    return changed


@rewording
def params_by_get(module: ast.Module) -> bool:
    """`params.get("units", 3)`."""
    found = [
        _replace(
            function,
            lambda node: (
                _expression(f"params.get({ast.unparse(node.slice)}, 3)")
                if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "params"
                else None
            ),
        )
        for function in _model_fns(module)
    ]
    return any(found)


@rewording
def params_of_hparams(module: ast.Module) -> bool:
    """`params=tf.contrib.training.HParams(units=8)`, read as `params.units`."""
    if not _is_read_by_key(module) or _import_of_tensorflow(module) is None:
        return False
    done = _of_params(
        module,
        lambda value: _expression(
            "tf.contrib.training.HParams("
            f"{', '.join(f'{k.value}={ast.unparse(v)}' for k, v in zip(value.keys, value.values, strict=True))})"  # type: ignore[attr-defined]
        ),
    )
    for function in _model_fns(module) if done else ():
        _replace(
            function,
            lambda node: (
                _expression(f"params.{ast.literal_eval(node.slice)}")
                if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "params"
                else None
            ),
        )
    return done


# -- settings ----------------------------------------------------------------------------------------------------------


@rewording
def numbers_of_a_frozen_dataclass(module: ast.Module) -> bool:
    """A frozen dataclass with a property, made with keywords."""

    def made(found: dict[str, ast.expr]) -> str:
        fields = "".join(f"    {name}: float\n" for name in found)
        head = f"import dataclasses\n@dataclasses.dataclass(frozen=True)\nclass Config:\n{fields}\n"
        return f"{head}CONFIG = Config({_said(found, '{0}={1}')})"

    return _constants(module, lambda name: f"CONFIG.{name}", made)


@rewording
def numbers_of_static_methods(module: ast.Module) -> bool:
    """`Settings.rate()`, static methods that return numbers."""

    def made(found: dict[str, ast.expr]) -> str:
        methods = "".join(
            f"    @staticmethod\n    def {name}():\n        return {ast.unparse(value)}\n\n"
            for name, value in found.items()
        )
        return f"class Settings(object):\n{methods}"

    return _constants(module, lambda name: f"Settings.{name}()", made)


@rewording
def numbers_of_nested_dicts(module: ast.Module) -> bool:
    """`CONFIG["model"]["units"]`."""
    return _constants(
        module,
        lambda name: f"CONFIG['model'][{name!r}]",
        lambda found: f"CONFIG = {{'model': {{{_said(found, '{0!r}: {1}')}}}, 'name': 'mine'}}",
    )


@rewording
def numbers_of_nested_classes(module: ast.Module) -> bool:
    """`Config.Model.units`."""

    def made(found: dict[str, ast.expr]) -> str:
        lines = "".join(f"        {name} = {ast.unparse(value)}\n" for name, value in found.items())
        return f"class Config:\n    class Model:\n{lines}"

    return _constants(module, lambda name: f"Config.Model.{name}", made)


@rewording
def numbers_of_derived_classes(module: ast.Module) -> bool:
    """`class Large(Base): units = 8`, made into an object."""

    def made(found: dict[str, ast.expr]) -> str:
        lines = "".join(f"    {name} = {ast.unparse(value)}\n" for name, value in found.items())
        zeros = "".join(f"    {name} = 0\n" for name in found)
        return f"class Base(object):\n{zeros}\nclass Large(Base):\n{lines}\nCONFIG = Large()"

    return _constants(module, lambda name: f"CONFIG.{name}", made)


@rewording
def numbers_of_the_environment(module: ast.Module) -> bool:
    """`float(os.environ.get("RATE", "0.1"))`, where nothing sets it."""

    def made(found: dict[str, ast.expr]) -> str:
        lines = [
            f"{name.upper()} = {kind}(os.environ.get('{name.upper()}_', '{text}'))\n"
            for name, kind, text in _types(found)
        ]
        return f"import os\n{''.join(lines)}"

    return _constants(module, str.upper, made)


# -- the body ----------------------------------------------------------------------------------------------------------


@rewording
def networks_in_a_function(module: ast.Module) -> bool:
    """The first lines of the model_fn with layers are a function, if only one name leaves it."""
    function = _only_model_fn(module)
    if function is None or (ast.get_docstring(function) is not None and len(function.body) < 3):
        return False
    start = 1 if ast.get_docstring(function) else 0
    lines: list[ast.stmt] = []
    for one in function.body[start:]:
        plain = isinstance(one, ast.Assign) and len(one.targets) == 1 and isinstance(one.targets[0], ast.Name)
        layers = any(ast.unparse(call.func).startswith("tf.layers.") for call in _top_calls(one))
        said = {n.id for n in ast.walk(one) if isinstance(n, ast.Name)}
        if not plain or not layers or said & {"mode", "labels"}:
            break
        lines.append(one)
    if len(lines) < 1:
        return False
    rest = function.body[start + len(lines) :]
    stored = [one.targets[0].id for one in lines]  # type: ignore[attr-defined]
    read = {n.id for one in rest for n in ast.walk(one) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    leave = [name for name in dict.fromkeys(stored) if name in read]
    if len(leave) != 1:
        return False
    used = {n.id for one in lines for n in ast.walk(one) if isinstance(n, ast.Name)}
    given = [name for name in _parameters(function) if name in used]
    [made] = _parsed(f"def network({', '.join(given)}):\n    return {leave[0]}\n")
    made.body[:0] = lines  # type: ignore[attr-defined]
    function.body[start : start + len(lines)] = _parsed(f"{leave[0]} = network({', '.join(given)})")
    module.body.insert(module.body.index(function), made)
    return True


@rewording
def layers_by_reduce(module: ast.Module) -> bool:
    """`functools.reduce(lambda net, units: dense(net, units), [8], net)`."""

    def instead(call: ast.Call) -> ast.expr | None:
        if _last(call.func) != "dense" or len(call.args) != 2 or any(p.arg == "name" for p in call.keywords):
            return None
        given, units = call.args
        call.args = [_name("net"), _name("units")]
        text = f"functools.reduce(lambda net, units: {ast.unparse(call)}, [{ast.unparse(units)}], {ast.unparse(given)})"
        return _expression(text)

    done = _of_layers(module, instead)
    if done:
        _import_first(module, "import functools")
    return done


@rewording
def layers_of_a_table(module: ast.Module) -> bool:
    """`LAYERS = {"dense": tf.layers.dense}`, then `LAYERS["dense"](...)`."""
    names: set[str] = set()

    def instead(call: ast.Call) -> ast.expr | None:
        name = _last(call.func)
        names.add(name)
        call.func = _expression(f"LAYERS[{name!r}]")
        return call

    done = _of_layers(module, instead)
    if done:
        _import_first(module, f"LAYERS = {{{', '.join(f'{one!r}: tf.layers.{one}' for one in sorted(names))}}}")
    return done


@rewording
def losses_by_getattr(module: ast.Module) -> bool:
    """`getattr(tf.losses, "mean_squared_error")(...)`."""
    found = [
        _replace(
            function,
            lambda node: (
                ast.Call(_expression(f"getattr(tf.losses, {_last(node.func)!r})"), node.args, node.keywords)
                if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("tf.losses.")
                else None
            ),
        )
        for function in _model_fns(module)
    ]
    return any(found)


@rewording
def values_asserted(module: ast.Module) -> bool:
    """`assert net is not None, "no net"` behind every line."""
    return _of_locals(
        module,
        lambda target, value: [
            ast.Assign([target], value),
            *_parsed(f"assert {target.id} is not None, 'no {target.id}'"),
        ],
    )


@rewording
def values_by_nested_function_with_arguments(module: ast.Module) -> bool:
    """`def make(value): return value`, inside, for the results of calls."""

    def of(target: ast.Name, value: ast.expr) -> list[ast.stmt]:
        if not isinstance(value, ast.Call):
            return [ast.Assign([target], value)]
        return [ast.Assign([target], ast.Call(_name("passed"), [value], []))]

    done = _of_locals(module, of)
    for function in _model_fns(module) if done else ():
        at = 1 if ast.get_docstring(function) else 0
        function.body[at:at] = _parsed("def passed(value):\n    return value\n")
    return done


@rewording
def features_named(module: ast.Module) -> bool:
    """`x, y = features, labels` at the top of the model_fn, which reads these."""
    changed = False
    for function in _model_fns(module):
        if _parameters(function)[:2] != ["features", "labels"]:
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.Name) and node.id in ("features", "labels"):
                node.id, changed = {"features": "x_in", "labels": "y_in"}[node.id], True
        at = 1 if ast.get_docstring(function) else 0
        function.body[at:at] = _parsed("x_in, y_in = features, labels")
    return changed


@rewording
def specs_in_a_helper(module: ast.Module) -> bool:
    """`def make_spec(mode, **kwargs): return EstimatorSpec(mode, **kwargs)`."""
    found = [
        one
        for function in _model_fns(module)
        for one in _calls(function, "EstimatorSpec")
        if all(place.arg is not None for place in one.keywords) and len(one.args) <= 1
    ]
    if not found:
        return False
    func = ast.unparse(found[0].func)
    for one in found:
        mode = next((place.value for place in one.keywords if place.arg == "mode"), None)
        one.keywords = [place for place in one.keywords if place.arg != "mode"]
        one.args = [*one.args, *([mode] if mode is not None else [])]
        one.func = _name("make_spec")
    module.body.insert(
        min(module.body.index(one) for one in _model_fns_by(module, "make_spec")),
        *_parsed(f"def make_spec(mode, **kwargs):\n    return {func}(mode, **kwargs)\n"),
    )
    return True


def _model_fns_by(module: ast.Module, name: str) -> list[ast.stmt]:
    return [one for one in module.body if isinstance(one, ast.FunctionDef) and _calls(one, name)]


# -- the driver --------------------------------------------------------------------------------------------------------


@lacking("the driver hands its Estimator to an object of its own")
def trainer_objects(module: ast.Module) -> bool:
    """`class Trainer: def __init__(self, estimator); def fit(self, *args, **kwargs): self.estimator.train(...)`."""
    if _calls(module, "train_and_evaluate"):
        return False
    changed = False

    def made(call: ast.Call) -> list[ast.stmt]:
        nonlocal changed
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "train":
            return [ast.Expr(call)]
        changed = True
        owner = ast.unparse(call.func.value)
        call.func = _expression(f"Trainer({owner}).fit")
        return [ast.Expr(call)]

    _of_driver_calls(module, made)
    if changed:
        _import_first(
            module,
            "class Trainer(object):\n    def __init__(self, estimator):\n        self.estimator = estimator\n\n"
            "    def fit(self, *args, **kwargs):\n        self.estimator.train(*args, **kwargs)\n        return self\n",
        )
    return changed


@rewording
def specs_of_a_loop(module: ast.Module) -> bool:
    """`for train_spec, eval_spec in [(a, b)]: train_and_evaluate(estimator, train_spec, eval_spec)`."""

    def made(call: ast.Call) -> list[ast.stmt]:
        if _last(call.func) != "train_and_evaluate" or len(call.args) != 3:
            return [ast.Expr(call)]
        one, two = call.args[1:]
        call.args[1:] = [_name("one_spec"), _name("other_spec")]
        text = f"for one_spec, other_spec in [({ast.unparse(one)}, {ast.unparse(two)})]:\n    {ast.unparse(call)}\n"
        return _parsed(text)

    return bool(_calls(module, "train_and_evaluate")) and _of_driver_calls(module, made)


@rewording
def timed_driver(module: ast.Module) -> bool:
    """`start = time.time()` above a training, and its time printed below."""

    def made(call: ast.Call) -> list[ast.stmt]:
        return _parsed(f"start = time.time()\n{ast.unparse(call)}\nprint('took', time.time() - start)\n")

    done = _of_driver_calls(module, made)
    if done:
        _import_first(module, "import time")
    return done


@rewording
def input_fns_with_arguments(module: ast.Module) -> bool:
    """`def input_fn(unused=None)`: arguments with defaults that nobody gives."""
    found = _input_fns(module)
    for function in found:
        function.args.args += [ast.arg("shuffled"), ast.arg("seed")]
        function.args.defaults += [ast.Constant(False), ast.Constant(None)]
    return bool(found)


@rewording
def input_fns_by_name(module: ast.Module) -> bool:
    """One dict of all input functions, by name."""
    found = _input_fns(module)
    if not found:
        return False
    names = {one.name for one in found}
    keyed = {id(n.func) for n in ast.walk(module) if isinstance(n, ast.Call)}

    def instead(node: ast.AST) -> ast.AST | None:
        if isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Load) and id(node) not in keyed:
            return _expression(f"INPUTS[{node.id!r}]")
        return None

    last = max(module.body.index(one) for one in found)
    done = [_replace(one, instead) for one in module.body[last + 1 :]]
    table = ", ".join(f"{name!r}: {name}" for name in sorted(names))
    module.body[last + 1 : last + 1] = _parsed(f"INPUTS = {{{table}}}")
    return any(done)


@rewording
def estimators_by_keywords_of_a_dict(module: ast.Module) -> bool:
    """`settings = dict(model_fn=model_fn); settings["params"] = ...; Estimator(**settings)`."""
    found = [one for one in _calls(module, "Estimator") if ast.unparse(one.func) == "tf.estimator.Estimator"]
    if len(found) != 1 or len(found[0].args) > 1 or any(place.arg is None for place in found[0].keywords):
        return False

    def of(statement: ast.stmt) -> list[ast.stmt] | None:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.If | ast.With | ast.For | ast.Try):
            return None
        if not any(node is found[0] for node in ast.walk(statement)):
            return None
        call = found[0]
        lines = ["settings = {}"]
        lines += [f"settings['model_fn'] = {ast.unparse(one)}" for one in call.args]
        lines += [f"settings[{place.arg!r}] = {ast.unparse(place.value)}" for place in call.keywords]
        call.args, call.keywords = [], [ast.keyword(None, _name("settings"))]
        return [*_parsed("\n".join(lines)), statement]

    return _in_blocks(module, of)


__all__ = ["LACKING", "REWORDINGS"]
