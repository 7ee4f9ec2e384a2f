"""More words for the same program: layers, bindings, drivers, input functions, modules, as years of code have them."""

from __future__ import annotations

import ast
from collections.abc import Callable

from tests.rewording.habits import LACKING, lacking
from tests.rewording.rewordings import (
    REWORDINGS,
    _blocks,
    _calls,
    _driver,
    _expression,
    _functions,
    _head,
    _import_first,
    _import_of_tensorflow,
    _in_blocks,
    _input_fns,
    _keywords_as,
    _last,
    _model_fns,
    _name,
    _of_driver_calls,
    _of_locals,
    _parameters,
    _parsed,
    _plain_tail,
    _replace,
    _single,
    rewording,
)

# -- layers ------------------------------------------------------------------------------------------------------------


def _of_layers(module: ast.Module, instead: Callable[[ast.Call], ast.expr | None]) -> bool:
    """Says calls of `tf.layers.x(inputs, ...)` in model_fns otherwise."""
    found = [
        _replace(
            function,
            lambda node: (
                instead(node)
                if isinstance(node, ast.Call)
                and ast.unparse(node.func).startswith("tf.layers.")
                and _last(node.func)[:1].islower()
                else None
            ),
        )
        for function in _model_fns(module)
    ]
    return any(found)


@rewording
def layers_as_objects(module: ast.Module) -> bool:
    """`tf.layers.Dense(units)(inputs)`."""

    def instead(call: ast.Call) -> ast.expr | None:
        if _last(call.func) != "dense":
            return None
        if call.args:
            given, call.args = call.args[0], call.args[1:]
        else:
            given = next(place.value for place in call.keywords if place.arg == "inputs")
            call.keywords = [place for place in call.keywords if place.arg != "inputs"]
        call.func = _expression("tf.layers.Dense")
        return ast.Call(call, [given], [])

    return _of_layers(module, instead)


@rewording
def layers_by_helper(module: ast.Module) -> bool:
    """`def fc(x, *args, **kwargs): return layer(x, *args, **kwargs)`, two functions deep."""

    def instead(call: ast.Call) -> ast.expr | None:
        if _last(call.func) != "dense" or not call.args:
            return None
        return ast.Call(_name("fc"), call.args, call.keywords)

    if not _of_layers(module, instead):
        return False
    _import_first(
        module,
        "def layer(x, *args, **kwargs):\n    return tf.layers.dense(x, *args, **kwargs)\n\n"
        "def fc(x, *args, **kwargs):\n    return layer(x, *args, **kwargs)\n",
    )
    return True


@rewording
def layers_by_partial(module: ast.Module) -> bool:
    """`functools.partial(tf.layers.dense, units=8)(x)`."""

    def instead(call: ast.Call) -> ast.expr | None:
        first, rest = call.args[:1], call.args[1:]
        if not first or rest or not call.keywords:
            return None
        return ast.Call(ast.Call(_expression("functools.partial"), [call.func], call.keywords), first, [])

    done = _of_layers(module, instead)
    if done:
        _import_first(module, "import functools")
    return done


@rewording
def activations_called(module: ast.Module) -> bool:
    """`tf.nn.relu(tf.layers.dense(x, 8))`."""

    def instead(call: ast.Call) -> ast.expr | None:
        found = next((place for place in call.keywords if place.arg == "activation"), None)
        if found is None or not ast.unparse(found.value).startswith("tf."):
            return None
        call.keywords.remove(found)
        return ast.Call(found.value, [call], [])

    return _of_layers(module, instead)


def _of_activations(module: ast.Module, instead: Callable[[str], str]) -> bool:
    changed = False
    for function in _model_fns(module):
        for call in [one for one in ast.walk(function) if isinstance(one, ast.Call)]:
            for place in call.keywords:
                if place.arg == "activation" and ast.unparse(place.value).startswith("tf.nn."):
                    place.value = _expression(instead(_last(place.value)))
                    changed = True
    return changed


@rewording
def activations_by_lambda(module: ast.Module) -> bool:
    return _of_activations(module, lambda name: f"lambda value: tf.nn.{name}(value)")


@rewording
def activations_by_getattr(module: ast.Module) -> bool:
    return _of_activations(module, lambda name: f"getattr(tf.nn, {name!r})")


@rewording
def activations_of_a_table(module: ast.Module) -> bool:
    done = _of_activations(module, lambda name: f"ACTIVATIONS[{name!r}]")
    if done:
        _import_first(module, "ACTIVATIONS = {'relu': tf.nn.relu, 'tanh': tf.nn.tanh, 'softmax': tf.nn.softmax}")
    return done


@rewording
def activations_by_helper(module: ast.Module) -> bool:
    done = _of_activations(module, lambda name: f"activation({name!r})")
    if done:
        _import_first(
            module,
            "def activation(name):\n    if name == 'relu':\n        return tf.nn.relu\n    elif name == 'tanh':\n"
            "        return tf.nn.tanh\n    else:\n        raise ValueError(name)\n",
        )
    return done


@rewording
def layers_in_loops(module: ast.Module) -> bool:
    """`for units in [8]: net = tf.layers.dense(net, units)`."""
    changed = False
    for function in _model_fns(module):

        def of(statement: ast.stmt) -> list[ast.stmt] | None:
            target, value = _single(statement), getattr(statement, "value", None)
            if target is None or not isinstance(value, ast.Call) or _last(value.func) != "dense":
                return None
            if any(one.arg == "name" for one in value.keywords):
                return None  # a loop over several would give them one name
            place = next((one for one in value.keywords if one.arg == "units"), None)
            units = value.args[1] if len(value.args) > 1 else place.value if place else None
            if units is None:
                return None
            if len(value.args) > 1:
                value.args[1] = _name("units")
            elif place is not None:
                place.value = _name("units")
            return _parsed(f"for index, units in enumerate([{ast.unparse(units)}]):\n    {ast.unparse(statement)}\n")

        changed |= _in_blocks(function, of)
    return changed


# -- bindings ----------------------------------------------------------------------------------------------------------


@rewording
def values_by_nonlocal(module: ast.Module) -> bool:
    def of(target: ast.Name, value: ast.expr) -> list[ast.stmt]:
        name = target.id
        return _parsed(
            f"{name} = {name} if {name!r} in locals() else None\n"
            if False
            else f"def set_{name}():\n    nonlocal {name}\n    {name} = {ast.unparse(value)}\n\nset_{name}()\n"
        )

    changed = _of_locals(module, of)
    for function in _model_fns(module):
        outer = sorted({n for one in ast.walk(function) if isinstance(one, ast.Nonlocal) for n in one.names})
        outer = [name for name in outer if name not in _parameters(function)]
        if outer:
            at = 1 if ast.get_docstring(function) else 0
            function.body[at:at] = _parsed(" = ".join(outer) + " = None")
    return changed


@rewording
def values_of_an_iterator(module: ast.Module) -> bool:
    """`next(iter([value]))`."""
    return _of_locals(
        module,
        lambda target, value: [ast.Assign([target], _expression(f"next(iter([{ast.unparse(value)}]))"))],
    )


@rewording
def values_swapped(module: ast.Module) -> bool:
    """`other, value = ..., None`, then `other, value = value, other`."""
    return _of_locals(
        module,
        lambda target, value: _parsed(
            f"swapped, {target.id} = {ast.unparse(value)}, None\nswapped, {target.id} = {target.id}, swapped\n"
        ),
    )


@rewording
def values_by_condition(module: ast.Module) -> bool:
    """`value = None if DEBUG else ...`, with a constant."""
    done = _of_locals(
        module,
        lambda target, value: [ast.Assign([target], ast.IfExp(_name("DEBUG"), ast.Constant(None), value))],
    )
    if done:
        _import_first(module, "DEBUG = False")
    return done


@lacking("a name scope around what partitioners, metrics or UPDATE_OPS are read of")
def values_under_name_scopes(module: ast.Module) -> bool:
    if _import_of_tensorflow(module) is None:
        return False

    def of(target: ast.Name, value: ast.expr) -> list[ast.stmt]:
        [under] = _parsed(f"with tf.name_scope({target.id!r}):\n    pass\n")
        under.body = [ast.Assign([target], value)]  # type: ignore[attr-defined]
        return [under]

    return _of_locals(module, of)


@rewording
def values_under_a_constant(module: ast.Module) -> bool:
    """`if not DEBUG: value = ...; else: value = None`."""

    def of(target: ast.Name, value: ast.expr) -> list[ast.stmt]:
        return _parsed(
            f"if not DEBUG:\n    {target.id} = {ast.unparse(value)}\nelse:\n    {target.id} = None\n",
        )

    done = _of_locals(module, of)
    if done:
        _import_first(module, "DEBUG = False")
    return done


@rewording
def values_of_a_namespace(module: ast.Module) -> bool:
    """`built = types.SimpleNamespace()`, `built.net = ...`, `net = built.net`."""
    done = _of_locals(
        module,
        lambda target, value: [
            ast.Assign([ast.Attribute(_name("BUILT"), target.id, ast.Store())], value),
            ast.Assign([target], _expression(f"BUILT.{target.id}")),
        ],
    )
    for function in _model_fns(module) if done else ():
        at = 1 if ast.get_docstring(function) else 0
        function.body[at:at] = _parsed("BUILT = types.SimpleNamespace()")
    if done:
        _import_first(module, "import types")
    return done


@rewording
def values_of_an_object(module: ast.Module) -> bool:
    """`class Network(object): pass`, whose object gets all values as attributes."""
    done = _of_locals(
        module,
        lambda target, value: [
            ast.Assign([ast.Attribute(_name("network"), target.id, ast.Store())], value),
            ast.Assign([target], _expression(f"network.{target.id}")),
        ],
    )
    for function in _model_fns(module) if done else ():
        at = 1 if ast.get_docstring(function) else 0
        function.body[at:at] = _parsed("network = Network()")
    if done:
        _import_first(module, "class Network(object):\n    pass\n")
    return done


@rewording
def values_by_generator(module: ast.Module) -> bool:
    """A nested generator gives the value."""

    def of(target: ast.Name, value: ast.expr) -> list[ast.stmt]:
        return _parsed(
            f"def give_{target.id}():\n    yield {ast.unparse(value)}\n\n[{target.id}] = list(give_{target.id}())\n"
        )

    return _of_locals(module, of)


@rewording
def values_popped(module: ast.Module) -> bool:
    """`stack.append(...)`, then `stack.pop()`."""
    done = _of_locals(
        module,
        lambda target, value: _parsed(f"stack.append({ast.unparse(value)})\n{target.id} = stack.pop()\n"),
    )
    for function in _model_fns(module) if done else ():
        at = 1 if ast.get_docstring(function) else 0
        function.body[at:at] = _parsed("stack = []")
    return done


# -- the driver --------------------------------------------------------------------------------------------------------


def _driver_in(module: ast.Module, head: str, tail: str, imports: str = "") -> bool:
    start = _driver(module)
    if start is None or not _plain_tail(module, start):
        return False
    [main] = _parsed(f"{head}\n    pass\n")
    main.body = module.body[start:]  # type: ignore[attr-defined]
    module.body[start:] = [main, *_parsed(tail)]
    if imports:
        _import_first(module, imports)
    return True


@rewording
def driver_by_absl(module: ast.Module) -> bool:
    return _driver_in(
        module, "def main(argv):", "if __name__ == '__main__':\n    app.run(main)\n", "from absl import app"
    )


@rewording
def driver_by_keyword_run(module: ast.Module) -> bool:
    return _import_of_tensorflow(module) is not None and _driver_in(
        module,
        "def main(_):",
        "if __name__ == '__main__':\n    tf.app.run(main=main, argv=[sys.argv[0]])\n",
        "import sys",
    )


@rewording
def driver_by_click(module: ast.Module) -> bool:
    return _driver_in(
        module, "@click.command()\ndef main():", "if __name__ == '__main__':\n    main()\n", "import click"
    )


@rewording
def driver_by_system_exit(module: ast.Module) -> bool:
    return _driver_in(
        module,
        "def main(argv=None):",
        "if __name__ == '__main__':\n    raise SystemExit(main(sys.argv))\n",
        "import sys",
    )


@rewording
def driver_by_table(module: ast.Module) -> bool:
    """`ACTIONS = {"train": run}`, then `ACTIONS["train"]()`."""
    return _driver_in(
        module, "def run():", "ACTIONS = {'train': run}\nif __name__ == '__main__':\n    ACTIONS['train']()\n"
    )


@rewording
def driver_of_arguments(module: ast.Module) -> bool:
    """`main(parser.parse_args())`."""
    return _driver_in(
        module,
        "def main(args):",
        "if __name__ == '__main__':\n    parser = argparse.ArgumentParser()\n"
        "    parser.add_argument('--verbose', action='store_true')\n    main(parser.parse_args())\n",
        "import argparse",
    )


@rewording
def mains_reversed(module: ast.Module) -> bool:
    """`if "__main__" == __name__:`."""
    done = False
    for one in module.body:
        if isinstance(one, ast.If) and ast.unparse(one.test) == "__name__ == '__main__'":
            one.test, done = _expression("'__main__' == __name__"), True
    return done


@rewording
def mains_called_plainly(module: ast.Module) -> bool:
    """`main()` with no test of __name__."""
    last = module.body[-1]
    if not isinstance(last, ast.If) or ast.unparse(last.test) != "__name__ == '__main__'":
        return False
    module.body[-1:] = last.body
    return True


@rewording
def driver_interrupted(module: ast.Module) -> bool:
    """`except KeyboardInterrupt:` around the training."""

    def made(call: ast.Call) -> list[ast.stmt]:
        return _parsed(f"try:\n    {ast.unparse(call)}\nexcept KeyboardInterrupt:\n    print('stopped')\n")

    return _of_driver_calls(module, made)


@rewording
def driver_by_mode(module: ast.Module) -> bool:
    """`if MODE in ("all", "train"):` around the training."""

    def made(call: ast.Call) -> list[ast.stmt]:
        return _parsed(f"if MODE in ('all', 'train'):\n    {ast.unparse(call)}\n")

    done = _of_driver_calls(module, made)
    if done:
        _import_first(module, "MODE = 'all'")
    return done


@rewording
def driver_calls_bound(module: ast.Module) -> bool:
    """`run = estimator.train`, then `run(...)`."""

    def made(call: ast.Call) -> list[ast.stmt]:
        bound = ast.Assign([ast.Name("run_it", ast.Store())], call.func)
        call.func = _name("run_it")
        return [bound, ast.Expr(call)]

    return _of_driver_calls(module, made)


@rewording
def driver_calls_of_a_dict(module: ast.Module) -> bool:
    """`estimator.train(**dict(input_fn=..., steps=...))`."""
    return _keywords_as(
        module, ("train", "evaluate", "train_and_evaluate"), lambda call, values: ast.Call(_name("dict"), [values], [])
    )


@rewording
def driver_calls_through_functions(module: ast.Module) -> bool:
    """`def train_model(run, **kwargs): return run_model(run, **kwargs)`, two functions deep."""

    def made(call: ast.Call) -> list[ast.stmt]:
        return [ast.Expr(ast.Call(_name("train_model"), [call.func, *call.args], call.keywords))]

    if not _of_driver_calls(module, made):
        return False
    _import_first(
        module,
        "def run_model(function, *args, **kwargs):\n    return function(*args, **kwargs)\n\n"
        "def train_model(function, *args, **kwargs):\n    return run_model(function, *args, **kwargs)\n",
    )
    return True


@rewording
def driver_calls_with_hooks(module: ast.Module) -> bool:
    """`estimator.train(..., hooks=[])`."""
    changed = False
    for call in _calls(module, "train"):
        if not isinstance(call.func, ast.Attribute) or any(place.arg in ("hooks", None) for place in call.keywords):
            continue
        if call.args[1:] or ast.unparse(call.func.value) == "tf":
            continue
        call.keywords.append(ast.keyword("hooks", ast.List([], ast.Load())))
        changed = True
    return changed


@rewording
def estimators_by_subclass(module: ast.Module) -> bool:
    """`class Model(tf.estimator.Estimator): def __init__(self, **kwargs): super().__init__(**kwargs)`."""
    found = [one for one in _calls(module, "Estimator") if ast.unparse(one.func) == "tf.estimator.Estimator"]
    if len(found) != 1:
        return False
    found[0].func = _name("OurEstimator")
    text = (
        "class OurEstimator(tf.estimator.Estimator):\n    def __init__(self, *args, **kwargs):\n"
        "        super(OurEstimator, self).__init__(*args, **kwargs)\n"
    )
    module.body[_head(module) : _head(module)] = _parsed(text)
    return True


@lacking("the driver gets its Estimator of an object of its own")
def estimators_of_an_object(module: ast.Module) -> bool:
    """`self.estimator` of a class that is made with the arguments of the Estimator."""
    found = [one for one in _calls(module, "Estimator") if ast.unparse(one.func) == "tf.estimator.Estimator"]
    if len(found) != 1 or len(found[0].args) > 1:
        return False
    call = ast.unparse(found[0])
    names = {n.id for n in ast.walk(found[0]) if isinstance(n, ast.Name) and n.id != "tf"}
    made = {one.name for one in module.body if isinstance(one, ast.FunctionDef | ast.ClassDef)}
    given = sorted(names - made)
    if any(n in dir(__builtins__) for n in given):
        return False
    text = (
        f"class Trainer(object):\n    def __init__(self, {', '.join(given)}):\n        self._made = {call}\n\n"
        "    @property\n    def estimator(self):\n        return self._made\n"
    )
    call_node = _expression(f"Trainer({', '.join(given)}).estimator")
    _replace(module, lambda node: call_node if node is found[0] else None)
    functions = [at for at, one in enumerate(module.body) if isinstance(one, ast.FunctionDef) and one.name != "main"]
    at = max(functions, default=_head(module) - 1) + 1
    start = _driver(module)
    at = at if start is None else min(at, start)
    module.body[at:at] = _parsed(text)
    return True


@rewording
def configs_replaced(module: ast.Module) -> bool:
    """`tf.estimator.RunConfig().replace(model_dir=...)`."""
    allowed = {
        *("model_dir", "tf_random_seed", "save_summary_steps", "save_checkpoints_steps", "session_config"),
        *("keep_checkpoint_max", "log_step_count_steps", "train_distribute", "eval_distribute"),
    }

    def instead(node: ast.AST) -> ast.AST | None:
        if not isinstance(node, ast.Call) or not ast.unparse(node.func).endswith("estimator.RunConfig"):
            return None
        if not node.keywords or node.args or not {place.arg for place in node.keywords} <= allowed:
            return None
        return ast.Call(ast.Attribute(ast.Call(node.func, [], []), "replace", ast.Load()), [], node.keywords)

    return _replace(module, instead)


# -- input functions ---------------------------------------------------------------------------------------------------


@rewording
def lambdas_as_functions(module: ast.Module) -> bool:
    """Input functions that are lambdas become nested functions."""
    count = 0

    def of(statement: ast.stmt) -> list[ast.stmt] | None:
        nonlocal count
        if not isinstance(statement, ast.Assign | ast.Expr):
            return None
        before: list[ast.stmt] = []
        for call in [one for one in ast.walk(statement) if isinstance(one, ast.Call)]:
            places = [place for place in call.keywords if place.arg == "input_fn"]
            for place in places:
                if isinstance(place.value, ast.Lambda) and not place.value.args.args:
                    count += 1
                    before += _parsed(f"def input_fn_{count}():\n    return {ast.unparse(place.value.body)}\n")
                    place.value = _name(f"input_fn_{count}")
            if _last(call.func) in ("train", "evaluate") and call.args and isinstance(call.args[0], ast.Lambda):
                count += 1
                before += _parsed(f"def input_fn_{count}():\n    return {ast.unparse(call.args[0].body)}\n")
                call.args[0] = _name(f"input_fn_{count}")
        return [*before, statement] if before else None

    return _in_blocks(module, of)


def _datasets(module: ast.Module) -> list[tuple[ast.FunctionDef, ast.Return]]:
    """Functions that return a chain of calls on tf.data.Dataset, and the statement that does."""
    return [
        (function, node)
        for function in _functions(module)
        for node in ast.walk(function)
        if isinstance(node, ast.Return)
        and node.value is not None
        and ast.unparse(node.value).startswith("tf.data.Dataset.")
        and "iterator" not in ast.unparse(node.value)
    ]


@rewording
def datasets_step_by_step(module: ast.Module) -> bool:
    """`dataset = dataset.batch(8)` for each of the calls of a chain."""

    def of(statement: ast.stmt) -> list[ast.stmt] | None:
        if not any(statement is found for _, found in _datasets(module)):
            return None
        calls: list[ast.Call] = []
        node = statement.value  # type: ignore[attr-defined]
        while (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Call)
        ):
            calls.insert(0, node)
            node = node.func.value
        lines: list[ast.stmt] = [ast.Assign([ast.Name("dataset", ast.Store())], node)]
        for call in calls:
            call.func.value = _name("dataset")  # type: ignore[attr-defined]
            lines.append(ast.Assign([ast.Name("dataset", ast.Store())], call))
        return [*lines, ast.Return(_name("dataset"))]

    return _in_blocks(module, of)


@rewording
def datasets_by_iterator(module: ast.Module) -> bool:
    """`features, labels = dataset.make_one_shot_iterator().get_next()` in input functions."""
    if "distribute" in ast.unparse(module):
        return False
    named = {one.name for one in _input_fns(module)}
    found = [(function, node) for function, node in _datasets(module) if function.name in named]
    for function, node in found:
        assert node.value is not None
        text = f"one, two = ({ast.unparse(node.value)}).make_one_shot_iterator().get_next()\nreturn one, two"
        _in_blocks(
            function,
            lambda one, node=node, text=text: (  # type: ignore[misc]
                _parsed(f"def f():\n    {text.replace(chr(10), chr(10) + '    ')}")[0].body if one is node else None  # type: ignore[attr-defined]
            ),
        )
    return bool(found)


@rewording
def datasets_with_mapped_pairs(module: ast.Module) -> bool:
    """`dataset.map(lambda features, labels: (features, labels))`."""
    named = {one.name for one in _input_fns(module)}
    found = [node for function, node in _datasets(module) if function.name in named]
    for node in found:
        node.value = _expression(f"{ast.unparse(node.value)}.map(lambda one, two: (one, two))")  # type: ignore[arg-type]
    return bool(found)


@rewording
def datasets_prefetched_by_settings(module: ast.Module) -> bool:
    """Numbers of chains of a dataset are arguments with defaults of the input function."""
    named = {one.name for one in _input_fns(module)}
    changed = False
    for function, node in _datasets(module):
        if function.name not in named or function.args.args:
            continue
        for call in [one for one in ast.walk(node) if isinstance(one, ast.Call) and _last(one.func) == "batch"]:
            if call.args and "size" not in _parameters(function):
                function.args.args.append(ast.arg("size"))
                function.args.defaults.append(call.args[0])
                call.args[0], changed = _name("size"), True
    return changed


# -- modules and layout ------------------------------------------------------------------------------------------------


@rewording
def of_the_future(module: ast.Module) -> bool:
    """`from __future__ import ...`, three of them, as files for Python 2 and 3 have."""
    at = 1 if ast.get_docstring(module) else 0
    module.body[at:at] = _parsed(
        "from __future__ import absolute_import\nfrom __future__ import division\n"
        "from __future__ import print_function\n"
    )
    return True


@rewording
def behaviour_disabled(module: ast.Module) -> bool:
    """`import tensorflow.compat.v1 as tf` and `tf.disable_v2_behavior()`."""
    found = _import_of_tensorflow(module)
    if found is None or found.names[0].name != "tensorflow" or "contrib" in ast.unparse(module):
        return False
    found.names[0].name = "tensorflow.compat.v1"
    module.body[module.body.index(found) + 1 : module.body.index(found) + 1] = _parsed("")
    _import_first(module, "tf.disable_v2_behavior()")
    return True


@rewording
def compat_of_tensorflow(module: ast.Module) -> bool:
    """`import tensorflow as tf`, then `tf = tf.compat.v1`."""
    found = _import_of_tensorflow(module)
    if found is None or found.names[0].name != "tensorflow" or "contrib" in ast.unparse(module):
        return False
    _import_first(module, "tf = tf.compat.v1")
    return True


@rewording
def imports_in_functions(module: ast.Module) -> bool:
    """NumPy is imported by the functions that read it."""
    found = [one for one in module.body if isinstance(one, ast.Import) and ast.unparse(one) == "import numpy as np"]
    if not found:
        return False
    readers = [
        one
        for one in module.body
        if any(isinstance(node, ast.Name) and node.id == "np" for node in ast.walk(one)) and one is not found[0]
    ]
    if not all(isinstance(one, ast.FunctionDef) for one in readers):
        return False
    module.body.remove(found[0])
    for one in readers:
        assert isinstance(one, ast.FunctionDef)
        at = 1 if ast.get_docstring(one) else 0
        one.body[at:at] = _parsed("import numpy as np")
    return True


@rewording
def unused_code(module: ast.Module) -> bool:
    """Imports, constants, functions and classes that nothing reads."""
    if _import_of_tensorflow(module) is None:
        return False
    _import_first(
        module,
        "import os\nimport random\nVERSION = '0.1'\ndef old_model(x):\n    h = tf.layers.dense(x, 10)\n"
        "    return tf.nn.softmax(h)\n\nclass OldNetwork(object):\n    def __init__(self, sess=None):\n"
        "        self.sess = sess\n\n    def fit(self, x):\n        return self.sess.run(old_model(x))\n",
    )
    return True


@rewording
def strings_and_passes(module: ast.Module) -> bool:
    """Strings in place of comments, and `pass`."""
    found = _model_fns(module)
    for function in found:
        for block in list(_blocks(function)):
            block[:0] = [] if block is function.body else [ast.Expr(ast.Constant("a new part")), ast.Pass()]
        at = 1 if ast.get_docstring(function) else 0
        function.body[at:at] = [ast.Expr(ast.Constant("the network")), ast.Pass()] if at else [ast.Pass()]
    return bool(found)


@rewording
def names_deleted(module: ast.Module) -> bool:
    """`del train_input_fn`-like statements: a name of the module that is not read again is deleted."""
    names = [one.id for one in map(_single, module.body) if one is not None]
    functions = [one for one in module.body if isinstance(one, ast.FunctionDef | ast.ClassDef)]
    free = [
        name
        for name in names
        if not any(isinstance(n, ast.Name) and n.id == name for one in functions for n in ast.walk(one))
    ]
    if not free:
        return False
    module.body += _parsed(f"del {', '.join(dict.fromkeys(free))}")
    return True


__all__ = ["LACKING", "REWORDINGS"]
