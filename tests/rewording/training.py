"""More words for the same step of training, and for tables, modes and attributes around it."""

from __future__ import annotations

import ast
from collections.abc import Callable

from tests.rewording.everyday import REWORDINGS
from tests.rewording.rewordings import (
    _driver,
    _expression,
    _import_first,
    _in_blocks,
    _last,
    _model_fns,
    _name,
    _parsed,
    _replace,
    rewording,
)

# -- the step of training ----------------------------------------------------------------------------------------------


def _of_minimize(module: ast.Module, instead: Callable[[ast.expr, ast.Call], ast.expr]) -> bool:
    """Says `optimizer.minimize(loss, ...)` in model_fns otherwise: the optimizer and the call are given."""
    changed = False
    for function in _model_fns(module):
        changed |= _replace(
            function,
            lambda node: (
                instead(node.func.value, node)
                if isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "minimize"
                and isinstance(node.func.value, ast.Name)
                and all(place.arg == "global_step" for place in node.keywords)
                else None
            ),
        )
    return changed


def _applied(optimizer: ast.expr, call: ast.Call, pairs: str) -> ast.expr:
    """`optimizer.apply_gradients(pairs, global_step=...)`, where `pairs` reads `{pairs}` of compute_gradients."""
    name, loss = ast.unparse(optimizer), ast.unparse(call.args[0])
    computed = f"{name}.compute_gradients({loss})"
    given = [ast.unparse(one) for one in call.args[1:]] + [f"{p.arg}={ast.unparse(p.value)}" for p in call.keywords]
    return _expression(f"{name}.apply_gradients({', '.join([pairs.format(pairs=computed), *given])})")


@rewording
def gradients_apart(module: ast.Module) -> bool:
    """`optimizer.apply_gradients(optimizer.compute_gradients(loss), ...)`."""
    return _of_minimize(module, lambda optimizer, call: _applied(optimizer, call, "{pairs}"))


@rewording
def gradients_one_by_one(module: ast.Module) -> bool:
    """`[(gradient, variable) for gradient, variable in ...]`."""
    return _of_minimize(module, lambda optimizer, call: _applied(optimizer, call, "[(g, v) for g, v in {pairs}]"))


@rewording
def gradients_zipped_again(module: ast.Module) -> bool:
    return _of_minimize(module, lambda optimizer, call: _applied(optimizer, call, "list(zip(*zip(*{pairs})))"))


@rewording
def gradients_mapped(module: ast.Module) -> bool:
    """`map(lambda pair: (pair[0], pair[1]), ...)`."""
    return _of_minimize(
        module, lambda optimizer, call: _applied(optimizer, call, "map(lambda pair: (pair[0], pair[1]), {pairs})")
    )


@rewording
def gradients_by_helper(module: ast.Module) -> bool:
    """A function of the module goes over the gradients with a loop."""
    text = (
        "def kept(pairs):\n    found = []\n    for gradient, variable in pairs:\n        if gradient is not None:\n"
        "            found.append((gradient, variable))\n    return found\n"
    )
    if not _of_minimize(module, lambda optimizer, call: _applied(optimizer, call, "kept({pairs})")):
        return False
    _import_first(module, text)
    return True


@rewording
def steps_by_helper(module: ast.Module) -> bool:
    """`take_step(optimizer, loss, global_step=...)`, a function of the module."""
    if not _of_minimize(
        module, lambda optimizer, call: ast.Call(_name("take_step"), [optimizer, *call.args], call.keywords)
    ):
        return False
    _import_first(
        module,
        "def take_step(optimizer, loss, global_step=None):\n"
        "    return optimizer.minimize(loss, global_step=global_step)\n",
    )
    return True


@rewording
def steps_grouped(module: ast.Module) -> bool:
    return _of_minimize(module, lambda optimizer, call: ast.Call(_expression("tf.group"), [call], []))


@rewording
def steps_of_a_list(module: ast.Module) -> bool:
    return _of_minimize(module, lambda o, call: _expression(f"tf.group(*[{ast.unparse(call)}, tf.no_op()])"))


@rewording
def steps_by_bound_method(module: ast.Module) -> bool:
    """`getattr(optimizer, "minimize")(loss, ...)`."""
    return _of_minimize(
        module,
        lambda o, call: ast.Call(_expression(f"getattr({ast.unparse(o)}, 'minimize')"), call.args, call.keywords),
    )


@rewording
def steps_by_keyword(module: ast.Module) -> bool:
    """`minimize(loss=loss, ...)`."""

    def named(_: ast.expr, call: ast.Call) -> ast.expr:
        places = [ast.keyword(name, value) for name, value in zip(("loss", "global_step"), call.args, strict=False)]
        return ast.Call(call.func, [], [*places, *call.keywords])

    return _of_minimize(module, named)


# -- tables ------------------------------------------------------------------------------------------------------------


def _by_table(module: ast.Module, suffix: str, owner: str, read: str) -> bool:
    """Functions and classes of TensorFlow in model_fns are read of a dict of the module."""
    found: list[str] = []

    def instead(node: ast.AST) -> ast.AST | None:
        if not isinstance(node, ast.Call) or ast.unparse(node.func).rpartition(".")[0] != owner:
            return None
        name = _last(node.func)
        if not name.endswith(suffix):
            return None
        found.append(name)
        return ast.Call(_expression(read.format(name)), node.args, node.keywords)

    for function in _model_fns(module):
        _replace(function, instead)
    if found:
        entries = ", ".join(f"{name!r}: {owner}.{name}" for name in dict.fromkeys(found))
        _import_first(module, f"TABLE = {{{entries}}}")
    return bool(found)


@rewording
def optimizers_of_a_table(module: ast.Module) -> bool:
    return _by_table(module, "Optimizer", "tf.train", "TABLE[{!r}]")


@rewording
def losses_of_a_table(module: ast.Module) -> bool:
    return _by_table(module, "", "tf.losses", "TABLE.get({!r})")


@rewording
def keys_by_format(module: ast.Module) -> bool:
    """The keys of dicts that model_fns write down."""
    changed = False
    for function in _model_fns(module):
        for node in ast.walk(function):
            for index, key in enumerate(node.keys if isinstance(node, ast.Dict) else ()):
                if isinstance(key, ast.Constant) and isinstance(key.value, str) and "{" not in key.value:
                    node.keys[index] = _expression(f"'{{}}'.format({key.value!r})")  # type: ignore[attr-defined]
                    changed = True
    return changed


# -- modes, attributes, definitions ------------------------------------------------------------------------------------


@rewording
def modes_by_match(module: ast.Module) -> bool:
    """`match mode: case tf.estimator.ModeKeys.TRAIN: ...`."""

    def instead(node: ast.stmt) -> list[ast.stmt] | None:
        test = node.test if isinstance(node, ast.If) else None
        if not isinstance(node, ast.If) or not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Eq):
            return None
        key = test.comparators[0]
        if not isinstance(key, ast.Attribute) or _last(key.value) != "ModeKeys":
            return None
        cases = [ast.match_case(ast.MatchValue(key), None, node.body)]
        if node.orelse:
            cases.append(ast.match_case(ast.MatchAs(), None, node.orelse))
        return [ast.Match(test.left, cases)]

    found = [_in_blocks(function, instead) for function in _model_fns(module)]
    return any(found)


def _numbers(module: ast.Module, read: str, made: str) -> bool:
    found: dict[str, ast.expr] = {}
    for function in _model_fns(module):
        for call in [one for one in ast.walk(function) if isinstance(one, ast.Call)]:
            for place in call.keywords:
                if isinstance(place.value, ast.Constant) and type(place.value.value) in (int, float):
                    name = f"{place.arg}_{len(found)}"
                    found[name] = place.value
                    place.value = _expression(read.format(name))
    if found:
        entries = ", ".join(f"{name!r}: {ast.unparse(value)}" for name, value in found.items())
        _import_first(module, made.format(f"{{{entries}}}"))
    return bool(found)


@rewording
def numbers_by_setattr(module: ast.Module) -> bool:
    """`for name, value in {...}.items(): setattr(Settings, name, value)`."""
    made = "class Settings:\n    pass\nfor name, value in {}.items():\n    setattr(Settings, name, value)\n"
    return _numbers(module, "Settings.{}", made)


@rewording
def numbers_by_vars(module: ast.Module) -> bool:
    """`vars(SETTINGS)["rate"]`."""
    return _numbers(module, "vars(SETTINGS)[{!r}]", "import types\nSETTINGS = types.SimpleNamespace(**{})")


@rewording
def decorated_drivers(module: ast.Module) -> bool:
    """The driver is a function under a decorator that tells when it begins."""
    start = _driver(module)
    if start is None:
        return False
    text = (
        "import functools\ndef told(function):\n    @functools.wraps(function)\n    def inner(*args, **kwargs):\n"
        "        print('begins')\n        return function(*args, **kwargs)\n    return inner\n"
    )
    [main] = _parsed("@told\ndef main():\n    pass\n")
    main.body = module.body[start:]  # type: ignore[attr-defined]
    module.body[start:] = [*_parsed(text), main, *_parsed("if __name__ == '__main__':\n    main()\n")]
    return True


@rewording
def model_fns_through_kwargs(module: ast.Module) -> bool:
    """`def model_fn(features, labels, mode, params): return build(features=features, ...)`, a function beside it."""
    changed = False
    for at, node in list(enumerate(module.body)):
        if node not in _model_fns(module) or not isinstance(node, ast.FunctionDef) or node.args.kwarg is not None:
            continue
        names = [one.arg for one in node.args.args]
        [outer] = _parsed(f"def {node.name}({', '.join(names)}):\n    return None\n")
        assert isinstance(outer, ast.FunctionDef)
        inner, outer.args = f"build_{node.name}", node.args
        given = ", ".join(f"{name!r}: {name}" for name in names)
        outer.body = _parsed(f"def f():\n    return {inner}(**{{{given}}})\n")[0].body  # type: ignore[attr-defined]
        node.name = inner
        module.body.insert(at + 1 + changed, outer)
        changed = True
    return changed


__all__ = ["REWORDINGS"]
