"""More words for the same program: the habits of years of training code. Settings, classes, tables, drivers, layers."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable

from tests.rewording.everyday import _constants, _said
from tests.rewording.rewordings import (
    REWORDINGS,
    _blocks,
    _calls,
    _expression,
    _import_first,
    _import_of_tensorflow,
    _in_blocks,
    _is_mode_test,
    _keywords_as,
    _last,
    _model_fns,
    _name,
    _parameters,
    _parsed,
    _replace,
    _single,
    else_for_return,
    rewording,
)
from tests.rewording.training import _of_minimize

#: Rewordings that still change an outcome, with what is lacking.
LACKING: dict[str, str] = {}


def lacking(reason: str) -> Callable[[Callable[[ast.Module], bool]], Callable[[ast.Module], bool]]:
    def of(apply: Callable[[ast.Module], bool]) -> Callable[[ast.Module], bool]:
        LACKING[apply.__name__] = reason
        return rewording(apply)

    return of


# -- settings ----------------------------------------------------------------------------------------------------------


def _types(found: dict[str, ast.expr]) -> list[tuple[str, str, str]]:
    """Name, type and text of numbers."""
    return [(name, type(ast.literal_eval(value)).__name__, ast.unparse(value)) for name, value in found.items()]


@rewording
def numbers_by_argparse(module: ast.Module) -> bool:
    def made(found: dict[str, ast.expr]) -> str:
        lines = [f"parser.add_argument('--{n}', type={kind}, default={text})\n" for n, kind, text in _types(found)]
        return (
            f"import argparse\nparser = argparse.ArgumentParser()\n{''.join(lines)}ARGS, _ = parser.parse_known_args()"
        )

    return _constants(module, lambda name: f"ARGS.{name}", made)


@rewording
def numbers_by_flags(module: ast.Module) -> bool:
    found = _import_of_tensorflow(module)
    if found is None:
        return False

    def made(found: dict[str, ast.expr]) -> str:
        kinds = {"int": "integer", "float": "float"}
        lines = [f"number_flags.DEFINE_{kinds[kind]}('{n}', {text}, 'A number.')\n" for n, kind, text in _types(found)]
        return f"number_flags = tf.app.flags\n{''.join(lines)}NUMBERS = number_flags.FLAGS"

    return _constants(module, lambda name: f"NUMBERS.{name}", made)


@rewording
def numbers_of_json(module: ast.Module) -> bool:
    def made(found: dict[str, ast.expr]) -> str:
        return f"import json\nSETTINGS = json.loads('{{{_said(found, chr(34) + '{0}' + chr(34) + ': {1}')}}}')"

    return _constants(module, lambda name: f"SETTINGS[{name!r}]", made)


@rewording
def numbers_of_an_object(module: ast.Module) -> bool:
    """`class Config(object): def __init__(self, rate=0.1): self.rate = rate`."""

    def made(found: dict[str, ast.expr]) -> str:
        body = "".join(f"        self.{name} = {name}\n" for name in found)
        head = f"class Config(object):\n    def __init__(self, {_said(found, '{0}={1}')}):\n"
        return f"{head}{body}\nCONFIG = Config()"

    return _constants(module, lambda name: f"CONFIG.{name}", made)


@rewording
def numbers_of_an_attribute_dict(module: ast.Module) -> bool:
    """`class AttrDict(dict): __getattr__ = dict.__getitem__`."""

    def made(found: dict[str, ast.expr]) -> str:
        head = "class AttrDict(dict):\n    __getattr__ = dict.__getitem__\n    __setattr__ = dict.__setitem__\n"
        return f"{head}\nCONFIG = AttrDict({_said(found, '{0}={1}')})"

    return _constants(module, lambda name: f"CONFIG.{name}", made)


@rewording
def numbers_of_a_dict_with_getattr(module: ast.Module) -> bool:
    def made(found: dict[str, ast.expr]) -> str:
        head = "class Bunch(dict):\n    def __getattr__(self, name):\n        return self[name]\n"
        return f"{head}\nCONFIG = Bunch(**{{{_said(found, '{0!r}: {1}')}}})"

    return _constants(module, lambda name: f"CONFIG.{name}", made)


@rewording
def numbers_of_updated_attributes(module: ast.Module) -> bool:
    """`self.__dict__.update(kwargs)`."""

    def made(found: dict[str, ast.expr]) -> str:
        head = "class Config:\n    def __init__(self, **kwargs):\n        self.__dict__.update(kwargs)\n"
        return f"{head}\nCONFIG = Config({_said(found, '{0}={1}')})"

    return _constants(module, lambda name: f"CONFIG.{name}", made)


@rewording
def numbers_of_a_typed_tuple(module: ast.Module) -> bool:
    def made(found: dict[str, ast.expr]) -> str:
        fields = "".join(f"    {name}: {kind} = {text}\n" for name, kind, text in _types(found))
        return f"import typing\nclass Config(typing.NamedTuple):\n{fields}\nCONFIG = Config()"

    return _constants(module, lambda name: f"CONFIG.{name}", made)


@rewording
def numbers_of_an_enumeration(module: ast.Module) -> bool:
    def made(found: dict[str, ast.expr]) -> str:
        fields = "".join(f"    {name.upper()} = {text}\n" for name, _, text in _types(found))
        return f"import enum\nclass Number(enum.Enum):\n{fields}"

    return _constants(module, lambda name: f"Number.{name.upper()}.value", made)


@rewording
def numbers_of_a_function(module: ast.Module) -> bool:
    """`def get_config(): config = {}; config["rate"] = 0.1; return config`."""

    def made(found: dict[str, ast.expr]) -> str:
        lines = "".join(f"    config[{name!r}] = {text}\n" for name, _, text in _types(found))
        return f"def get_config():\n    config = {{}}\n{lines}    return config"

    return _constants(module, lambda name: f"get_config()[{name!r}]", made)


@rewording
def numbers_set_by_a_function(module: ast.Module) -> bool:
    """`global` names, which a function sets."""

    def made(found: dict[str, ast.expr]) -> str:
        names = [name.upper() for name in found]
        lines = "".join(f"    {name.upper()} = {text}\n" for name, _, text in _types(found))
        head = "".join(f"{name} = None\n" for name in names)
        return f"{head}def configure():\n    global {', '.join(names)}\n{lines}\nconfigure()"

    return _constants(module, str.upper, made)


@rewording
def numbers_with_defaults(module: ast.Module) -> bool:
    """`CONFIG.get("rate", 0.1)` of a dict without such entries."""
    changed = False
    for function in _model_fns(module):
        for call in [one for one in ast.walk(function) if isinstance(one, ast.Call)]:
            for place in call.keywords:
                if isinstance(place.value, ast.Constant) and type(place.value.value) in (int, float):
                    place.value = _expression(f"CONFIG.get({place.arg!r}, {place.value.value!r})")
                    changed = True
    if changed:
        _import_first(module, "CONFIG = {}")
    return changed


@rewording
def numbers_calculated(module: ast.Module) -> bool:
    """`2 * 8` for 16, `1 / 4` for 0.25."""

    def instead(node: ast.AST) -> ast.AST | None:
        value = node.value if isinstance(node, ast.Constant) else None
        if type(value) is int and value > 1 and value % 2 == 0:
            return _expression(f"2 * {value // 2}")
        if type(value) is float and 0 < value < 1 and 1 / (1 / value) == value and (1 / value).is_integer():
            return _expression(f"1 / {1 / value}")
        return None

    found = [_replace(call, instead) for one in _model_fns(module) for call in _top_calls(one)]
    return any(found)


def _top_calls(tree: ast.AST) -> list[ast.Call]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _last(node.func) != "range"]


@rewording
def numbers_of_parameters(module: ast.Module) -> bool:
    """Numbers of a model_fn without `params` come to it as `params`."""
    estimators = _calls(module, "Estimator")
    found = _model_fns(module)
    if len(estimators) != 1 or len(found) != 1 or "params" in _parameters(found[0]):
        return False
    if any(place.arg in (None, "params") for place in estimators[0].keywords) or len(estimators[0].args) > 2:
        return False
    values: dict[str, ast.expr] = {}

    def made(constants: dict[str, ast.expr]) -> str:
        values.update(constants)
        return ""

    if not _constants(module, lambda name: f"params[{name!r}]", made):
        return False
    found[0].args.args.append(ast.arg("params"))
    estimators[0].keywords.append(ast.keyword("params", _expression(f"{{{_said(values, '{0!r}: {1}')}}}")))
    return True


# -- model_fns ---------------------------------------------------------------------------------------------------------


def _only_model_fn(module: ast.Module) -> ast.FunctionDef | None:
    found = _model_fns(module)
    return found[0] if len(found) == 1 else None


@rewording
def model_fns_by_configured_factory(module: ast.Module) -> bool:
    """`def make_model_fn(rate): def model_fn(...): ...; return model_fn`, with the numbers of keywords."""
    function = _only_model_fn(module)
    if function is None:
        return False
    values: dict[str, ast.expr] = {}

    def made(constants: dict[str, ast.expr]) -> str:
        values.update(constants)
        return ""

    _constants(module, lambda name: f"the_{name}", made)
    at = module.body.index(function)
    [factory] = _parsed(f"def make_{function.name}({_said(values, 'the_{0}')}):\n    return {function.name}\n")
    factory.body.insert(0, function)  # type: ignore[attr-defined]
    given = _said(values, "the_{0}={1}")
    module.body[at : at + 1] = [factory, *_parsed(f"{function.name} = make_{function.name}({given})")]
    return True


@rewording
def model_fns_as_callable_objects(module: ast.Module) -> bool:
    """`class Model: def __call__(self, features, labels, mode)`."""
    function = _only_model_fn(module)
    if function is None:
        return False
    at, name = module.body.index(function), function.name
    function.args.args.insert(0, ast.arg("self"))
    function.name = "__call__"
    module.body[at : at + 1] = [ast.ClassDef("Model", [], [], [function], []), *_parsed(f"{name} = Model()")]
    return True


@rewording
def model_fns_inherited(module: ast.Module) -> bool:
    """The model_fn of a base class is read of an object of a class without one."""
    function = _only_model_fn(module)
    if function is None:
        return False
    at = module.body.index(function)
    function.args.args.insert(0, ast.arg("self"))
    module.body[at : at + 1] = [
        ast.ClassDef("BaseModel", [_name("object")], [], [function], []),
        *_parsed(f"class Model(BaseModel):\n    name = 'model'\n{function.name} = Model().{function.name}"),
    ]
    return True


@rewording
def model_fns_of_an_abstract_class(module: ast.Module) -> bool:
    """`model_fn` of an abstract class calls `build`, which a subclass defines."""
    function = _only_model_fn(module)
    if function is None or function.args.vararg or function.args.kwarg or function.args.kwonlyargs:
        return False
    at, name = module.body.index(function), function.name
    names = ", ".join(_parameters(function))
    function.args.args.insert(0, ast.arg("self"))
    function.name = "build"
    base = (
        "import abc\nclass BaseModel(abc.ABC):\n    @abc.abstractmethod\n"
        f"    def build(self, {names}):\n        raise NotImplementedError\n\n"
        f"    def model_fn(self, {names}):\n        return self.build({names})\n"
    )
    module.body[at : at + 1] = [
        *_parsed(base),
        ast.ClassDef("Model", [_name("BaseModel")], [], [function], []),
        *_parsed(f"{name} = Model().model_fn"),
    ]
    return True


@rewording
def model_fns_through_super(module: ast.Module) -> bool:
    function = _only_model_fn(module)
    if function is None or function.args.vararg or function.args.kwarg or function.args.kwonlyargs:
        return False
    at, name = module.body.index(function), function.name
    names = ", ".join(_parameters(function))
    function.args.args.insert(0, ast.arg("self"))
    function.name = "model_fn"
    derived = (
        f"class Model(BaseModel):\n    def model_fn(self, {names}):\n"
        f"        return super(Model, self).model_fn({names})\n\n{name} = Model().model_fn"
    )
    module.body[at : at + 1] = [
        ast.ClassDef("BaseModel", [_name("object")], [], [function], []),
        *_parsed(derived),
    ]
    return True


@rewording
def model_fns_of_a_configured_object(module: ast.Module) -> bool:
    """`class Model: def __init__(self, rate): self._rate = rate`, read in its method as `self._rate`."""
    function = _only_model_fn(module)
    if function is None:
        return False
    values: dict[str, ast.expr] = {}

    def made(constants: dict[str, ast.expr]) -> str:
        values.update(constants)
        return ""

    if not _constants(module, lambda name: f"self._{name}", made):
        return False
    at = module.body.index(function)
    function.args.args.insert(0, ast.arg("self"))
    lines = "".join(f"        self._{name} = {name}\n" for name in values)
    [made_class] = _parsed(f"class Model(object):\n    def __init__(self, {_said(values, '{0}')}):\n{lines}")
    made_class.body.append(function)  # type: ignore[attr-defined]
    given = f"Model({_said(values, '{0}={1}')})"
    module.body[at : at + 1] = [made_class, *_parsed(f"model = {given}\n{function.name} = model.{function.name}")]
    return True


@rewording
def model_fns_with_types(module: ast.Module) -> bool:
    if _import_of_tensorflow(module) is None:
        return False
    found = _model_fns(module)
    for function in found:
        for one in function.args.args:
            one.annotation = _expression({"mode": "str", "params": "dict"}.get(one.arg, "'tf.Tensor'"))
        function.returns = _expression("tf.estimator.EstimatorSpec")
    return bool(found)


@rewording
def model_fns_with_all_parameters(module: ast.Module) -> bool:
    """`def model_fn(features, labels, mode, params, config): del config`."""
    changed = False
    for function in _model_fns(module):
        missing = [name for name in ("params", "config") if name not in _parameters(function)]
        if function.args.kwarg or function.args.defaults or "labels" not in _parameters(function) or not missing:
            continue
        if _last(_returned(function).func) != "EstimatorSpec":
            continue
        function.args.args += [ast.arg(name) for name in missing]
        at = 1 if ast.get_docstring(function) else 0
        function.body[at:at] = _parsed(f"del {', '.join(missing)}")
        changed = True
    return changed


def _returned(function: ast.FunctionDef) -> ast.Call:
    return next(one for one in ast.walk(function) if isinstance(one, ast.Call) and _last(one.func).endswith("Spec"))


@rewording
def model_fns_with_other_keywords(module: ast.Module) -> bool:
    """`def model_fn(features, labels, mode, **kwargs)`."""
    found = [one for one in _model_fns(module) if one.args.kwarg is None]
    for function in found:
        function.args.kwarg = ast.arg("kwargs")
    return bool(found)


@rewording
def model_fns_in_main(module: ast.Module) -> bool:
    """The model_fn is defined in the function that makes the Estimator."""
    function = _only_model_fn(module)
    drivers = [
        one
        for one in module.body
        if isinstance(one, ast.FunctionDef) and one is not function and _calls(one, "Estimator")
    ]
    if function is None or len(drivers) != 1:
        return False
    others = [one for one in module.body if one not in (function, drivers[0])]
    if any(isinstance(n, ast.Name) and n.id == function.name for one in others for n in ast.walk(one)):
        return False
    module.body.remove(function)
    at = 1 if ast.get_docstring(drivers[0]) else 0
    drivers[0].body.insert(at, function)
    return True


@rewording
def told_model_fns(module: ast.Module) -> bool:
    """A decorator with arguments, which tells what is built."""
    found = _model_fns(module)
    for function in found:
        function.decorator_list.append(_expression("told('model')"))
    if found:
        _import_first(
            module,
            "import functools\ndef told(what):\n    def decorate(function):\n        @functools.wraps(function)\n"
            "        def inner(features, labels, mode, *args, **kwargs):\n            print('builds the', what)\n"
            "            return function(features, labels, mode, *args, **kwargs)\n        return inner\n"
            "    return decorate\n",
        )
    return bool(found) and all(_parameters(one) == ["features", "labels", "mode"] for one in found)


def _bodies(module: ast.Module, text: str) -> bool:
    """The whole body of a model_fn stands under a statement."""
    found = _model_fns(module)
    for function in found:
        at = 1 if ast.get_docstring(function) else 0
        [under] = _parsed(text)
        under.body = function.body[at:]  # type: ignore[attr-defined]
        function.body[at:] = [under]
    return bool(found)


@rewording
def bodies_under_a_device(module: ast.Module) -> bool:
    return _import_of_tensorflow(module) is not None and _bodies(module, "with tf.device('/cpu:0'):\n    pass\n")


@rewording
def bodies_under_a_name_scope(module: ast.Module) -> bool:
    return _import_of_tensorflow(module) is not None and _bodies(module, "with tf.name_scope('model'):\n    pass\n")


@rewording
def bodies_under_the_scope_of_before(module: ast.Module) -> bool:
    return _import_of_tensorflow(module) is not None and _bodies(
        module, "with tf.variable_scope(tf.get_variable_scope()):\n    pass\n"
    )


@rewording
def bodies_under_try(module: ast.Module) -> bool:
    return _bodies(module, "try:\n    pass\nexcept ValueError as problem:\n    print(problem)\n    raise\n")


@rewording
def bodies_under_finally(module: ast.Module) -> bool:
    return _bodies(module, "try:\n    pass\nfinally:\n    print('built')\n")


@rewording
def bodies_under_a_context_manager(module: ast.Module) -> bool:
    """A context manager of the file's own, which does nothing."""
    done = _bodies(module, "with timed('model'):\n    pass\n")
    if done:
        _import_first(
            module,
            "import contextlib\nimport time\n@contextlib.contextmanager\ndef timed(what):\n    start = time.time()\n"
            "    yield\n    print(what, time.time() - start)\n",
        )
    return done


@rewording
def modes_checked(module: ast.Module) -> bool:
    """`if mode not in (...): raise ValueError("unknown mode")`."""
    if _import_of_tensorflow(module) is None:
        return False
    found = _model_fns(module)
    for function in found:
        at = 1 if ast.get_docstring(function) else 0
        function.body[at:at] = _parsed(
            "if mode not in [tf.estimator.ModeKeys.TRAIN, tf.estimator.ModeKeys.EVAL, tf.estimator.ModeKeys.PREDICT]:\n"
            "    raise ValueError('unknown mode: {}'.format(mode))\n"
        )
    return bool(found)


@rewording
def features_logged(module: ast.Module) -> bool:
    """`tf.logging.info("features: %s", features)`."""
    if _import_of_tensorflow(module) is None:
        return False
    found = _model_fns(module)
    for function in found:
        at = 1 if ast.get_docstring(function) else 0
        function.body[at:at] = _parsed("tf.logging.info('features: %s', features)")
    return bool(found)


# -- modes -------------------------------------------------------------------------------------------------------------


def _instead_of_modes(module: ast.Module, read: Callable[[str], str]) -> set[str]:
    found: set[str] = set()

    def instead(node: ast.AST) -> ast.AST | None:
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "tf.estimator.ModeKeys":
            found.add(node.attr)
            return _expression(read(node.attr))
        return None

    _replace(module, instead)
    return found


@rewording
def modes_of_the_module(module: ast.Module) -> bool:
    """`TRAIN = tf.estimator.ModeKeys.TRAIN`."""
    found = _instead_of_modes(module, lambda name: f"MODE_{name}")
    _import_first(module, "\n".join(f"MODE_{name} = tf.estimator.ModeKeys.{name}" for name in sorted(found)))
    return bool(found)


@rewording
def modes_imported(module: ast.Module) -> bool:
    """`from tensorflow.estimator import ModeKeys`."""
    found = _import_of_tensorflow(module)
    if found is None or found.names[0].name != "tensorflow":
        return False
    done = _instead_of_modes(module, lambda name: f"ModeKeys.{name}")
    if done:
        _import_first(module, "from tensorflow.estimator import ModeKeys")
    return bool(done)


@rewording
def modes_of_contrib_learn(module: ast.Module) -> bool:
    """`tf.contrib.learn.ModeKeys.TRAIN`, the same strings."""
    found = _import_of_tensorflow(module)
    if found is None or found.names[0].name != "tensorflow":
        return False
    names = {"PREDICT": "INFER"}
    return bool(_instead_of_modes(module, lambda name: f"tf.contrib.learn.ModeKeys.{names.get(name, name)}"))


@rewording
def modes_by_walrus(module: ast.Module) -> bool:
    """`if is_train := mode == tf.estimator.ModeKeys.TRAIN:`."""
    changed = False
    for function in _model_fns(module):
        for node in ast.walk(function):
            if isinstance(node, ast.If) and _is_mode_test(node.test):
                node.test, changed = ast.NamedExpr(ast.Name("is_mode", ast.Store()), node.test), True
    return changed


@rewording
def modes_by_dict(module: ast.Module) -> bool:
    """`{tf.estimator.ModeKeys.TRAIN: True}.get(mode, False)`."""
    return _replace(
        module,
        lambda node: (
            _expression(f"{{{ast.unparse(node.comparators[0])}: True}}.get({ast.unparse(node.left)}, False)")  # type: ignore[attr-defined]
            if _is_mode_test(node)
            else None
        ),
    )


@rewording
def modes_by_function(module: ast.Module) -> bool:
    """`def is_mode(mode, key): return mode == key`."""
    done = _replace(
        module,
        lambda node: (
            ast.Call(_name("is_mode"), [node.left, node.comparators[0]], [])  # type: ignore[attr-defined]
            if _is_mode_test(node)
            else None
        ),
    )
    if done:
        _import_first(module, "def is_mode(mode, key):\n    return mode == key\n")
    return done


@rewording
def branches_in_functions(module: ast.Module) -> bool:
    """What a mode does is a nested function, which `if mode == ...` calls."""
    changed = False
    for function in _model_fns(module):
        for block in list(_blocks(function)):
            new: list[ast.stmt] = []
            for one in block:
                if isinstance(one, ast.If) and _is_mode_test(one.test) and isinstance(one.body[-1], ast.Return):
                    name = f"when_{one.test.comparators[0].attr.lower()}"  # type: ignore[attr-defined]
                    free = {n.id for s in one.body for n in ast.walk(s) if isinstance(n, ast.Name) and _stored(n)}
                    reads = {n.id for s in one.body for n in ast.walk(s) if isinstance(n, ast.Name) and not _stored(n)}
                    outer = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and _stored(n)}
                    if free & reads & outer & _stored_before(function, one):
                        new.append(one)
                        continue
                    [made] = _parsed(f"def {name}():\n    pass\n")
                    made.body, one.body, changed = one.body, _parsed_return(name), True  # type: ignore[attr-defined]
                    new.append(made)
                new.append(one)
            block[:] = new
    return changed


def _stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def _stored_before(function: ast.FunctionDef, end: ast.stmt) -> set[str]:
    return {
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and _stored(node) and node.lineno < end.lineno
    } | set(_parameters(function))


def _parsed_return(name: str) -> list[ast.stmt]:
    return [ast.Return(_expression(f"{name}()"))]


@rewording
def branches_of_a_table(module: ast.Module) -> bool:
    """`return {TRAIN: when_train, EVAL: when_eval}[mode]()`."""
    changed = False
    for function in _model_fns(module):
        if not isinstance(function.body[-1], ast.Return) or len(function.body) < 2:
            continue
        starts = [i for i, one in enumerate(function.body) if isinstance(one, ast.If) and _is_mode_test(one.test)]
        if not starts or not isinstance(function.body[starts[-1]].body[-1], ast.Return):  # type: ignore[attr-defined]
            continue
        test = function.body[starts[-1]]
        assert isinstance(test, ast.If)
        if test.orelse:
            continue
        rest = function.body[starts[-1] + 1 :]
        bodies = [*test.body, *rest]
        stored = {n.id for s in bodies for n in ast.walk(s) if isinstance(n, ast.Name) and _stored(n)}
        if stored & _stored_before(function, test):
            continue
        one, two = _parsed("def in_this_mode():\n    pass\n\ndef in_other_modes():\n    pass\n")
        one.body, two.body = test.body, rest  # type: ignore[attr-defined]
        key = ast.unparse(test.test.comparators[0])  # type: ignore[attr-defined]
        function.body[starts[-1] :] = [
            one,
            two,
            ast.Return(_expression(f"{{{key}: in_this_mode}}.get(mode, in_other_modes)()")),
        ]
        changed = True
    return changed


@rewording
def one_spec_for_all_modes(module: ast.Module) -> bool:
    """`loss = train_op = None` at first, and one EstimatorSpec at the end with what the modes gave."""
    changed = False
    for function in _model_fns(module):
        returns = [one for one in ast.walk(function) if isinstance(one, ast.Return)]
        specs = [one.value for one in returns if isinstance(one.value, ast.Call)]
        if len(specs) != len(returns) or len(specs) < 2 or any(one.args and len(one.args) > 1 for one in specs):
            continue
        if any(_last(one.func) != "EstimatorSpec" or any(p.arg is None for p in one.keywords) for one in specs):
            continue
        names = list(dict.fromkeys(str(p.arg) for one in specs for p in one.keywords if p.arg != "mode"))
        else_for_return(ast.Module([function], []))

        def of(statement: ast.stmt) -> list[ast.stmt] | None:
            if not isinstance(statement, ast.Return):
                return None
            assert isinstance(statement.value, ast.Call)
            return [
                ast.Assign([ast.Name(f"spec_{p.arg}", ast.Store())], p.value)
                for p in statement.value.keywords
                if p.arg != "mode"
            ]

        func = copy.deepcopy(specs[0].func)
        _in_blocks(function, of)
        at = 1 if ast.get_docstring(function) else 0
        function.body[at:at] = _parsed(" = ".join(f"spec_{name}" for name in names) + " = None")
        given = ", ".join(f"{name}=spec_{name}" for name in names)
        function.body.append(ast.Return(_expression(f"{ast.unparse(func)}(mode=mode, {given})")))
        changed = True
    return changed


# -- specs, metrics, optimizers ----------------------------------------------------------------------------------------


@rewording
def specs_grown(module: ast.Module) -> bool:
    """`spec = {}`, `spec["loss"] = loss` ..., `EstimatorSpec(**spec)`."""

    def of(statement: ast.stmt) -> list[ast.stmt] | None:
        if not isinstance(statement, ast.Assign | ast.Expr | ast.Return):
            return None
        before: list[ast.stmt] = []

        def make(call: ast.Call, values: ast.Dict) -> ast.expr:
            before.extend(_parsed("spec = {}"))
            for key, value in zip(values.keys, values.values, strict=True):
                target = ast.Subscript(_name("spec"), key, ast.Store())  # type: ignore[arg-type]
                before.append(ast.Assign([target], value))
            return _name("spec")

        holder = ast.Module([statement], [])
        return [*before, statement] if _keywords_as(holder, ("EstimatorSpec",), make) else None

    return _in_blocks(module, of)


@rewording
def specs_replaced(module: ast.Module) -> bool:
    """`EstimatorSpec(mode, loss=loss)._replace(eval_metric_ops=metrics)`."""

    def instead(node: ast.AST) -> ast.AST | None:
        if not isinstance(node, ast.Call) or _last(node.func) != "EstimatorSpec":
            return None
        moved = [place for place in node.keywords if place.arg == "eval_metric_ops"]
        node.keywords = [place for place in node.keywords if place not in moved]
        return ast.Call(ast.Attribute(node, "_replace", ast.Load()), [], moved) if moved else None

    return _replace(module, instead)


def _of_dicts(module: ast.Module, instead: Callable[[ast.Name, ast.Dict], list[ast.stmt]]) -> bool:
    """Says the dicts that names of model_fns are given otherwise."""

    def of(statement: ast.stmt) -> list[ast.stmt] | None:
        target = _single(statement)
        value = getattr(statement, "value", None)
        if target is None or not isinstance(value, ast.Dict) or not value.keys or None in value.keys:
            return None
        return instead(target, value)

    found = [_in_blocks(function, of) for function in _model_fns(module)]
    return any(found)


@rewording
def dicts_grown(module: ast.Module) -> bool:
    """`metrics = {}`, then `metrics["accuracy"] = ...`."""

    def instead(target: ast.Name, value: ast.Dict) -> list[ast.stmt]:
        entries = [
            ast.Assign([ast.Subscript(_name(target.id), key, ast.Store())], one)  # type: ignore[arg-type]
            for key, one in zip(value.keys, value.values, strict=True)
        ]
        return [ast.Assign([target], ast.Dict([], [])), *entries]

    return _of_dicts(module, instead)


@rewording
def dicts_updated(module: ast.Module) -> bool:
    """`metrics = dict()`, then `metrics.update({...})`."""
    return _of_dicts(
        module,
        lambda target, value: [
            ast.Assign([target], _expression("dict()")),
            ast.Expr(ast.Call(_expression(f"{target.id}.update"), [value], [])),
        ],
    )


@rewording
def dicts_zipped(module: ast.Module) -> bool:
    return _of_dicts(
        module,
        lambda target, value: [
            ast.Assign(
                [target],
                _expression(
                    f"dict(zip([{', '.join(ast.unparse(k) for k in value.keys if k)}],"
                    f" [{', '.join(ast.unparse(v) for v in value.values)}]))"
                ),
            )
        ],
    )


@rewording
def dicts_by_comprehension(module: ast.Module) -> bool:
    def instead(target: ast.Name, value: ast.Dict) -> list[ast.stmt]:
        pairs = ", ".join(
            f"({ast.unparse(k)}, {ast.unparse(v)})" for k, v in zip(value.keys, value.values, strict=True) if k
        )
        return [ast.Assign([target], _expression(f"{{name: value for name, value in [{pairs}]}}"))]

    return _of_dicts(module, instead)


@rewording
def dicts_by_loop(module: ast.Module) -> bool:
    def instead(target: ast.Name, value: ast.Dict) -> list[ast.stmt]:
        pairs = ", ".join(
            f"({ast.unparse(k)}, {ast.unparse(v)})" for k, v in zip(value.keys, value.values, strict=True) if k
        )
        return _parsed(f"{target.id} = {{}}\nfor key, value in [{pairs}]:\n    {target.id}[key] = value\n")

    return _of_dicts(module, instead)


@rewording
def dicts_in_order(module: ast.Module) -> bool:
    """`collections.OrderedDict([("accuracy", ...)])`."""

    def instead(target: ast.Name, value: ast.Dict) -> list[ast.stmt]:
        pairs = ", ".join(
            f"({ast.unparse(k)}, {ast.unparse(v)})" for k, v in zip(value.keys, value.values, strict=True) if k
        )
        return [ast.Assign([target], _expression(f"collections.OrderedDict([{pairs}])"))]

    changed = _of_dicts(module, instead)
    if changed:
        _import_first(module, "import collections")
    return changed


def _of_optimizers(module: ast.Module, instead: Callable[[ast.Name, ast.Call], list[ast.stmt]]) -> bool:
    def of(statement: ast.stmt) -> list[ast.stmt] | None:
        target = _single(statement)
        value = getattr(statement, "value", None)
        if target is None or not isinstance(value, ast.Call) or not ast.unparse(value.func).startswith("tf.train."):
            return None
        return instead(target, value) if _last(value.func).endswith("Optimizer") else None

    found = [_in_blocks(function, of) for function in _model_fns(module)]
    return any(found)


@lacking("a mesh reads optimizers in branches that are never taken")
def optimizers_by_name(module: ast.Module) -> bool:
    """`if OPTIMIZER == "sgd": ... elif OPTIMIZER == "mine": ... else: raise ValueError`."""

    def instead(target: ast.Name, value: ast.Call) -> list[ast.stmt]:
        return _parsed(
            f"if OPTIMIZER == 'ftrl':\n    {target.id} = tf.train.FtrlOptimizer(0.5)\n"
            f"elif OPTIMIZER == 'mine':\n    {target.id} = {ast.unparse(value)}\n"
            "else:\n    raise ValueError('unknown optimizer: %s' % OPTIMIZER)\n"
        )

    changed = _of_optimizers(module, instead)
    if changed:
        _import_first(module, "OPTIMIZER = 'mine'")
    return changed


@lacking("replicas that clip, and meshes, want the optimizer in the model_fn")
def optimizers_by_helper(module: ast.Module) -> bool:
    """`get_optimizer("mine", rate)`, with a chain of returns."""
    helpers: list[str] = []

    def instead(target: ast.Name, value: ast.Call) -> list[ast.stmt]:
        rates = [place for place in value.keywords if place.arg == "learning_rate"]
        given = ast.unparse(value.args[0] if value.args else rates[0].value)
        if value.args:
            value.args[0] = _name("learning_rate")
        else:
            rates[0].value = _name("learning_rate")
        helpers.append(
            "def get_optimizer(name, learning_rate):\n    name = name.lower()\n    if name == 'sgd':\n"
            "        return tf.train.GradientDescentOptimizer(learning_rate)\n    if name == 'mine':\n"
            f"        return {ast.unparse(value)}\n    raise ValueError(name)\n"
        )
        return _parsed(f"{target.id} = get_optimizer('Mine', {given})")

    changed = _of_optimizers(module, instead)
    if len(helpers) > 1:
        return False
    if changed:
        _import_first(module, helpers[0])
    return changed


@rewording
def rates_by_helper(module: ast.Module) -> bool:
    """`def get_learning_rate(): return 0.1`."""
    helpers: list[str] = []

    def instead(target: ast.Name, value: ast.Call) -> list[ast.stmt]:
        place = next((one for one in value.keywords if one.arg == "learning_rate"), None)
        given = value.args[0] if value.args else place.value if place else None
        if not isinstance(given, ast.Constant):
            return [ast.Assign([target], value)]
        helpers.append(f"def get_learning_rate():\n    base = {ast.unparse(given)}\n    return base\n")
        if value.args:
            value.args[0] = _expression("get_learning_rate()")
        else:
            assert place is not None
            place.value = _expression("get_learning_rate()")
        return [ast.Assign([target], value)]

    _of_optimizers(module, instead)
    if len(helpers) != 1:
        return False
    _import_first(module, helpers[0])
    return True


@rewording
def rates_constant_schedules(module: ast.Module) -> bool:
    """`learning_rate = tf.constant(0.1)` would be a tensor; `learning_rate = float("0.1")` is a number."""

    def instead(target: ast.Name, value: ast.Call) -> list[ast.stmt]:
        place = next((one for one in value.keywords if one.arg == "learning_rate"), None)
        given = value.args[0] if value.args else place.value if place else None
        if not isinstance(given, ast.Constant):
            return [ast.Assign([target], value)]
        if value.args:
            value.args[0] = _expression(f"float('{given.value!r}')")
        else:
            assert place is not None
            place.value = _expression(f"float('{given.value!r}')")
        return [ast.Assign([target], value)]

    return _of_optimizers(module, instead)


@rewording
def optimizers_unnamed(module: ast.Module) -> bool:
    """`tf.train.AdamOptimizer(0.1).minimize(loss)`, where the optimizer is read once."""
    changed = False
    for function in _model_fns(module):
        for block in list(_blocks(function)):
            for one in list(block):
                target, value = _single(one), getattr(one, "value", None)
                if target is None or not isinstance(value, ast.Call) or not _last(value.func).endswith("Optimizer"):
                    continue
                reads = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == target.id]
                if len(reads) != 2:
                    continue
                block.remove(one)
                _replace(
                    function,
                    lambda node, target=target, value=value: (
                        value if isinstance(node, ast.Name) and node.id == target.id and not _stored(node) else None
                    ),
                )
                changed = True
    return changed


@rewording
def steps_bound(module: ast.Module) -> bool:
    """`minimize = optimizer.minimize`, then `minimize(loss, ...)`."""

    def of(statement: ast.stmt) -> list[ast.stmt] | None:
        target, value = _single(statement), getattr(statement, "value", None)
        if target is None or not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
            return None
        if value.func.attr != "minimize":
            return None
        bound = ast.Assign([ast.Name("minimize", ast.Store())], value.func)
        value.func = _name("minimize")
        return [bound, statement]

    found = [_in_blocks(function, of) for function in _model_fns(module)]
    return any(found)


@rewording
def steps_of_a_dict(module: ast.Module) -> bool:
    """`minimize(**{"loss": loss, ...})`."""

    def instead(optimizer: ast.expr, call: ast.Call) -> ast.expr:
        names = [f"'{n}': {ast.unparse(v)}" for n, v in zip(("loss", "global_step"), call.args, strict=False)]
        names += [f"{place.arg!r}: {ast.unparse(place.value)}" for place in call.keywords]
        return _expression(f"{ast.unparse(optimizer)}.minimize(**{{{', '.join(names)}}})")

    return _of_minimize(module, instead)


@rewording
def global_steps_created(module: ast.Module) -> bool:
    """`tf.train.get_or_create_global_step()`, named."""
    changed = False
    for function in _model_fns(module):
        done = _replace(
            function,
            lambda node: (
                _name("step")
                if isinstance(node, ast.Call) and ast.unparse(node) == "tf.train.get_global_step()"
                else None
            ),
        )
        if done:
            at = 1 if ast.get_docstring(function) else 0
            function.body[at:at] = _parsed("step = tf.train.get_or_create_global_step()")
        changed |= done
    return changed


@rewording
def losses_summed(module: ast.Module) -> bool:
    """`losses = []`, `losses.append(...)`, `loss = tf.add_n(losses)`."""
    changed = False
    for function in _model_fns(module) if _import_of_tensorflow(module) is not None else ():

        def of(statement: ast.stmt) -> list[ast.stmt] | None:
            target, value = _single(statement), getattr(statement, "value", None)
            if target is None or target.id != "loss":
                return None
            return _parsed(f"losses = []\nlosses.append({ast.unparse(value)})\nloss = tf.add_n(losses)\n")

        changed |= _in_blocks(function, of)
    return changed


@rewording
def hooks_by_condition(module: ast.Module) -> bool:
    """`hooks = []`, more of them where a constant says so, and `training_hooks=hooks`."""
    changed = False
    for function in _model_fns(module) if _import_of_tensorflow(module) is not None else ():

        def of(statement: ast.stmt) -> list[ast.stmt] | None:
            value = getattr(statement, "value", None)
            if not isinstance(statement, ast.Return) or not isinstance(value, ast.Call):
                return None
            if not any(place.arg == "train_op" for place in value.keywords) or _last(value.func) != "EstimatorSpec":
                return None
            value.keywords.append(ast.keyword("training_hooks", _name("hooks")))
            return [
                *_parsed(
                    "hooks = []\nif DEBUG:\n"
                    "    hooks.append(tf.train.LoggingTensorHook({'loss': loss}, every_n_iter=10))\n"
                ),
                statement,
            ]

        changed |= _in_blocks(function, of)
    if changed:
        _import_first(module, "DEBUG = False")
    return changed


__all__ = ["LACKING", "REWORDINGS"]
