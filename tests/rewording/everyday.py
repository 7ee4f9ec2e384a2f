"""More words for the same program, as people write them: containers, closures, helpers, loops, layout, imports."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from tests.rewording.rewordings import (
    REWORDINGS,
    Rewording,
    _blocks,
    _calls,
    _driver,
    _driver_under,
    _expression,
    _import_first,
    _in_blocks,
    _input_fns,
    _keywords_as,
    _last,
    _model_fns,
    _name,
    _of_estimators,
    _of_locals,
    _parsed,
    _plain_tail,
    _replace,
    _wrap_input_fns,
    rewording,
)

# -- bindings and containers -------------------------------------------------------------------------------------------


@rewording
def starred_assignments(module: ast.Module) -> bool:
    """`value, *_ = (..., None)`."""
    return _of_locals(
        module,
        lambda target, value: [
            ast.Assign(
                [ast.Tuple([target, ast.Starred(ast.Name("_", ast.Store()), ast.Store())], ast.Store())],
                ast.Tuple([value, ast.Constant(None)], ast.Load()),
            )
        ],
    )


@rewording
def values_by_closure(module: ast.Module) -> bool:
    """A nested function computes the value out of the names around it."""

    def of(target: ast.Name, value: ast.expr) -> list[ast.stmt]:
        [made] = _parsed(f"def make_{target.id}():\n    return None\n")
        made.body[0].value = value  # type: ignore[attr-defined]
        return [made, ast.Assign([target], _expression(f"make_{target.id}()"))]

    return _of_locals(module, of)


@rewording
def values_by_lambda(module: ast.Module) -> bool:
    return _of_locals(
        module,
        lambda target, value: [ast.Assign([target], ast.Call(ast.Lambda(_no_arguments(), value), [], []))],
    )


def _no_arguments() -> ast.arguments:
    return ast.arguments([], [], None, [], [], None, [])


def _constants(module: ast.Module, read: Callable[[str], str], made: Callable[[dict[str, ast.expr]], str]) -> bool:
    """Numbers that are given by keyword in model_fns are read of something that the module makes of them."""
    found: dict[str, ast.expr] = {}
    for function in _model_fns(module):
        for call in [one for one in ast.walk(function) if isinstance(one, ast.Call)]:
            for place in call.keywords:
                if isinstance(place.value, ast.Constant) and type(place.value.value) in (int, float):
                    name = f"{place.arg}_{len(found)}"
                    found[name] = place.value
                    place.value = _expression(read(name))
            for index, argument in enumerate(call.args):
                if isinstance(argument, ast.Constant) and type(argument.value) in (int, float):
                    name = f"number_{len(found)}"
                    found[name] = argument
                    call.args[index] = _expression(read(name))
    if found:
        _import_first(module, made(found))
    return bool(found)


def _said(found: dict[str, ast.expr], form: str) -> str:
    return ", ".join(form.format(name, ast.unparse(value)) for name, value in found.items())


@rewording
def numbers_of_a_dict(module: ast.Module) -> bool:
    return _constants(module, lambda name: f"SETTINGS[{name!r}]", lambda f: f"SETTINGS = {{{_said(f, '{0!r}: {1}')}}}")


@rewording
def numbers_of_a_namedtuple(module: ast.Module) -> bool:
    def made(found: dict[str, ast.expr]) -> str:
        names = [f"{name}" for name in found]
        head = f"import collections\nSettings = collections.namedtuple('Settings', {names!r})\n"
        return head + f"SETTINGS = Settings({_said(found, '{0}={1}')})"

    return _constants(module, lambda name: f"SETTINGS.{name}", made)


@rewording
def numbers_of_a_dataclass(module: ast.Module) -> bool:
    def made(found: dict[str, ast.expr]) -> str:
        fields = "".join(f"    {name}: float = {ast.unparse(value)}\n" for name, value in found.items())
        return f"import dataclasses\n@dataclasses.dataclass\nclass Settings:\n{fields}\nSETTINGS = Settings()"

    return _constants(module, lambda name: f"SETTINGS.{name}", made)


@rewording
def numbers_of_properties(module: ast.Module) -> bool:
    def made(found: dict[str, ast.expr]) -> str:
        methods = "".join(
            f"    @property\n    def {name}(self):\n        return {ast.unparse(value)}\n"
            for name, value in found.items()
        )
        return f"class Settings:\n{methods}\nSETTINGS = Settings()"

    return _constants(module, lambda name: f"SETTINGS.{name}", made)


def _of_names(module: ast.Module, make: Callable[[str], ast.expr]) -> bool:
    """The names of layers, variables and scopes in model_fns, said otherwise."""
    changed = False
    for function in _model_fns(module):
        for call in [one for one in ast.walk(function) if isinstance(one, ast.Call)]:
            for place in call.keywords:
                if place.arg == "name" and isinstance(place.value, ast.Constant) and isinstance(place.value.value, str):
                    place.value, changed = make(place.value.value), True
            first = call.args[0] if call.args and _last(call.func) in ("variable_scope", "name_scope") else None
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                call.args[0], changed = make(first.value), True
    return changed


@rewording
def names_by_f_string(module: ast.Module) -> bool:
    return _of_names(
        module, lambda text: _expression(f"f'{{{text[:1]!r}}}{text[1:]}'".replace("{'", '{"').replace("'}", '"}'))
    )


@rewording
def names_by_percent(module: ast.Module) -> bool:
    return _of_names(module, lambda text: _expression(f"'%s%s' % ({text[:1]!r}, {text[1:]!r})"))


@rewording
def names_by_format(module: ast.Module) -> bool:
    return _of_names(module, lambda text: _expression(f"'{{}}'.format({text!r})"))


@rewording
def estimators_unpacked(module: ast.Module) -> bool:
    """`estimator, config = Estimator(...), None`."""
    return _of_estimators(
        module,
        lambda target, value: [
            ast.Assign(
                [ast.Tuple([target, ast.Name("nothing", ast.Store())], ast.Store())],
                ast.Tuple([value, ast.Constant(None)], ast.Load()),
            )
        ],
    )


@rewording
def estimators_of_a_global(module: ast.Module) -> bool:
    """The driver's names are global ones of a function."""
    start = _driver(module)
    if start is None or not _plain_tail(module, start):
        return False
    stored = {
        node.id
        for statement in module.body[start:]
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    if not stored:
        return False
    [main] = _parsed("def main():\n    pass\n")
    assert isinstance(main, ast.FunctionDef)
    main.body = [ast.Global(sorted(stored)), *module.body[start:]]
    module.body[start:] = [main, *_parsed("main()")]
    return True


# -- arguments ---------------------------------------------------------------------------------------------------------

_SPECS = ("TrainSpec", "EvalSpec", "EstimatorSpec", "RunConfig", "Estimator")


@rewording
def keywords_of_merged_dicts(module: ast.Module) -> bool:
    """`**{**{...}, **{...}}`."""

    def make(call: ast.Call, values: ast.Dict) -> ast.expr:
        inner = [ast.Dict([key], [value]) for key, value in zip(values.keys, values.values, strict=True)]
        return ast.Dict([None] * len(inner), list(inner))

    return _keywords_as(module, _SPECS, make)


@rewording
def keywords_of_an_updated_dict(module: ast.Module) -> bool:
    """`**dict({...}, last=...)`."""

    def make(call: ast.Call, values: ast.Dict) -> ast.expr:
        *keys, last = values.keys
        assert isinstance(last, ast.Constant) and isinstance(last.value, str)
        first = ast.Dict(keys, values.values[:-1])
        return ast.Call(_name("dict"), [first], [ast.keyword(last.value, values.values[-1])])

    return _keywords_as(module, _SPECS, make)


@rewording
def keywords_through_a_helper(module: ast.Module) -> bool:
    """`make(tf.estimator.Estimator, model_fn=...)`, where `make` hands on what it is given."""
    changed = False
    for call in _calls(module, "Estimator", "TrainSpec", "EvalSpec"):
        call.func, call.args, changed = _name("make"), [call.func, *call.args], True
    if changed:
        _import_first(module, "def make(function, *args, **kwargs):\n    return function(*args, **kwargs)\n")
    return changed


@rewording
def arguments_of_a_tuple(module: ast.Module) -> bool:
    """`parts = (estimator, train_spec, eval_spec)`, then `train_and_evaluate(*parts)`."""

    def of(statement: ast.stmt) -> list[ast.stmt] | None:
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not isinstance(call, ast.Call) or _last(call.func) != "train_and_evaluate" or call.keywords:
            return None
        before = ast.Assign([ast.Name("parts", ast.Store())], ast.Tuple(list(call.args), ast.Load()))
        call.args = [ast.Starred(_name("parts"), ast.Load())]
        return [before, statement]

    return _in_blocks(module, of)


@rewording
def specs_by_walrus(module: ast.Module) -> bool:
    """`train_and_evaluate(estimator, train_spec := TrainSpec(...), ...)`."""
    changed = False
    for call in _calls(module, "train_and_evaluate"):
        for index, given in enumerate(call.args):
            if isinstance(given, ast.Call) and _last(given.func) in ("TrainSpec", "EvalSpec"):
                call.args[index] = ast.NamedExpr(ast.Name(f"spec_{index}", ast.Store()), given)
                changed = True
    return changed


# -- functions ---------------------------------------------------------------------------------------------------------


@rewording
def input_fns_by_closure(module: ast.Module) -> bool:
    """`input_fn=make_inputs(train_input_fn)`, which returns a nested function."""
    changed = _wrap_input_fns(module, lambda value: _expression(f"make_inputs({ast.unparse(value)})"))
    if changed:
        text = "def make_inputs(function):\n    def inputs():\n        return function()\n    return inputs\n"
        _import_first(module, text)
    return changed


@rewording
def wrapped_input_fns(module: ast.Module) -> bool:
    """A decorator that tells when the function is called."""
    found = _input_fns(module)
    for function in found:
        function.decorator_list.append(_name("told"))
    if found:
        text = (
            "import functools\ndef told(function):\n    @functools.wraps(function)\n    def inner(*args, **kwargs):\n"
        )
        _import_first(module, text + "        return function(*args, **kwargs)\n    return inner\n")
    return bool(found)


@rewording
def input_fns_of_a_class(module: ast.Module) -> bool:
    """The input functions are class methods."""
    found = _input_fns(module)
    if not found:
        return False
    names = {function.name for function in found}
    at = min(module.body.index(function) for function in found)
    rest = [one for one in module.body if one not in found]
    if any(isinstance(n, ast.Name) and n.id in names for one in rest[:at] for n in ast.walk(one)):
        return False
    if any(isinstance(n, ast.Name) and n.id in names for one in found for n in ast.walk(one)):
        return False
    for one in rest:
        _replace(
            one,
            lambda node: _expression(f"Inputs.{node.id}") if isinstance(node, ast.Name) and node.id in names else None,
        )
    for function in found:
        function.args.args.insert(0, ast.arg("cls"))
        function.decorator_list.append(_name("classmethod"))
    module.body[:] = [*rest[:at], ast.ClassDef("Inputs", [], [], list(found), []), *rest[at:]]
    return True


@rewording
def model_fns_as_class_methods(module: ast.Module) -> bool:
    """The model_fn is a method of a class."""
    found = _model_fns(module)
    if len(found) != 1:
        return False
    [function] = found
    at = module.body.index(function)
    function.args.args.insert(0, ast.arg("cls"))
    function.decorator_list.append(_name("classmethod"))
    module.body[at : at + 1] = [
        ast.ClassDef("Model", [], [], [function], []),
        *_parsed(f"{function.name} = Model.{function.name}"),
    ]
    return True


@rewording
def train_op_by_condition(module: ast.Module) -> bool:
    """`train_op = ... if mode == TRAIN else None`, in a model_fn that tests the mode so."""
    changed = False
    for function in _model_fns(module) if _import_of_tensorflow(module) is not None else ():
        for block in list(_blocks(function)):
            for statement in block:
                if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
                    continue
                if isinstance(statement.targets[0], ast.Name) and _last(statement.value.func) == "minimize":
                    test = _expression("mode == tf.estimator.ModeKeys.TRAIN")
                    statement.value, changed = ast.IfExp(test, statement.value, ast.Constant(None)), True
    return changed


# -- the driver --------------------------------------------------------------------------------------------------------


@rewording
def driver_under_a_graph(module: ast.Module) -> bool:
    return _driver_under(module, "with tf.Graph().as_default():\n    pass\n")


@rewording
def driver_in_an_endless_loop(module: ast.Module) -> bool:
    start = _driver(module)
    done = _driver_under(module, "while True:\n    pass\n")
    if done:
        module.body[start].body.append(ast.Break())  # type: ignore[attr-defined,index]
    return done


@rewording
def driver_behind_an_early_return(module: ast.Module) -> bool:
    """`def main(argv): if len(argv) > 99: return 1`, then the driver."""
    start = _driver(module)
    if start is None or not _plain_tail(module, start):
        return False
    [main] = _parsed("def main(argv):\n    if len(argv) > 99:\n        print('too many')\n        return 1\n")
    assert isinstance(main, ast.FunctionDef)
    main.body += [*module.body[start:], ast.Return(ast.Constant(0))]
    module.body[start:] = [main, *_parsed("if __name__ == '__main__':\n    sys.exit(main(sys.argv[1:]))\n")]
    _import_first(module, "import sys")
    return True


@rewording
def driver_by_app_run(module: ast.Module) -> bool:
    start = _driver(module)
    if start is None or not _plain_tail(module, start):
        return False
    [main] = _parsed("def main(_):\n    pass\n")
    assert isinstance(main, ast.FunctionDef)
    main.body = module.body[start:]
    module.body[start:] = [main, *_parsed("if __name__ == '__main__':\n    tf.app.run(main)\n")]
    return True


# -- imports and layout ------------------------------------------------------------------------------------------------


def _import_of_tensorflow(module: ast.Module) -> int | None:
    for index, statement in enumerate(module.body):
        if isinstance(statement, ast.Import) and ast.unparse(statement) == "import tensorflow as tf":
            return index
    return None


@rewording
def import_under_try(module: ast.Module) -> bool:
    at = _import_of_tensorflow(module)
    if at is not None:
        text = "try:\n    import tensorflow as tf\nexcept ImportError:\n    raise SystemExit('install TensorFlow')\n"
        module.body[at : at + 1] = _parsed(text)
    return at is not None


@rewording
def import_of_either(module: ast.Module) -> bool:
    """`tensorflow.compat.v1` where there is one."""
    at = _import_of_tensorflow(module)
    if at is not None:
        text = "try:\n    import tensorflow.compat.v1 as tf\nexcept ImportError:\n    import tensorflow as tf\n"
        module.body[at : at + 1] = _parsed(text)
    return at is not None


@rewording
def import_in_the_model_fn(module: ast.Module) -> bool:
    """A model_fn imports TensorFlow itself, under another name."""
    if _import_of_tensorflow(module) is None:
        return False
    found = _model_fns(module)
    for function in found:
        for statement in function.body:
            _replace(
                statement,
                lambda node: _name("flow") if isinstance(node, ast.Name) and node.id == "tf" else None,
            )
        at = 1 if ast.get_docstring(function) is not None else 0
        function.body[at:at] = _parsed("import tensorflow as flow")
    return bool(found)


def _always(module: ast.Module) -> bool:
    return True


def _joined(text: str) -> str:
    """Statements of one line beside each other, with semicolons."""
    simple = re.compile(
        r"^( *)(?!(def|class|if|else|elif|for|while|with|try|except|finally|return|import|from|@|\"|'))\S"
    )
    lines: list[str] = []
    for line in text.splitlines():
        last = lines[-1] if lines else ""
        one, two = simple.match(last), simple.match(line)
        if one and two and one[1] == two[1] and len(last) + len(line) < 110:
            lines[-1] = f"{last}; {line.strip()}"
        else:
            lines.append(line)
    joined = "\n".join(lines) + "\n"
    try:
        same = ast.dump(ast.parse(joined)) == ast.dump(ast.parse(text))
    except SyntaxError:
        same = False
    return joined if same else text


def _continued(text: str) -> str:
    """Assignments go on behind a backslash."""
    made = re.sub(r"^( *\w+) = (?=[^'\"\n]*$)", r"\1 = \\\n        ", text, flags=re.MULTILINE)
    return made if ast.dump(ast.parse(made)) == ast.dump(ast.parse(text)) else text


def _commented(text: str) -> str:
    """A comment over every statement of a model_fn, and one at its end."""
    lines = []
    for line in text.splitlines():
        indent = line[: len(line) - len(line.lstrip())]
        if re.match(r" +\w+ = [^'\"]*$", line):
            lines += [f"{indent}# the next line", f"{line}  # this line"]
        else:
            lines.append(line)
    made = "\n".join(lines) + "\n"
    return made if ast.dump(ast.parse(made)) == ast.dump(ast.parse(text)) else text


for name, write in (("semicolons", _joined), ("backslashes", _continued), ("comments", _commented)):
    REWORDINGS[name] = Rewording(name, _always, write)

__all__ = ["REWORDINGS"]
