"""More words for the same program, of people who never saw a list of them: the standard library in everyday use."""

from __future__ import annotations

import ast

from tests.rewording.everyday import _constants, _of_names, _said
from tests.rewording.habits import _instead_of_modes, _of_dicts, _only_model_fn, _types
from tests.rewording.layers_and_drivers import _datasets, _driver_in, _of_layers, lacking
from tests.rewording.rewordings import (
    _calls,
    _driver_under,
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
    _of_estimators,
    _of_locals,
    _parameters,
    _parsed,
    _replace,
    _spell_tensorflow,
    _wrap_input_fns,
    rewording,
)
from tests.rewording.strangers import LACKING, REWORDINGS

# -- values of model_fns -----------------------------------------------------------------------------------------------


def _values(module: ast.Module, lines: str, head: str = "", imports: str = "") -> bool:
    """Says `name = value` in model_fns by lines in which {name} and {value} stand, with others at the body's head."""
    done = _of_locals(
        module,
        lambda target, value: _parsed(lines.replace("{name}", target.id).replace("{value}", f"({ast.unparse(value)})")),
    )
    for function in _model_fns(module) if done and head else ():
        at = 1 if ast.get_docstring(function) else 0
        function.body[at:at] = _parsed(head)
    if done and imports:
        _import_first(module, imports)
    return done


@rewording
def values_by_or(module: ast.Module) -> bool:
    return _values(module, "{name} = None or {value}")


@rewording
def values_of_the_end(module: ast.Module) -> bool:
    return _values(module, "{name} = (None, {value})[-1]")


@rewording
def values_of_a_slice(module: ast.Module) -> bool:
    return _values(module, "[{name}] = [{value}, None][:1]")


@rewording
def values_by_get(module: ast.Module) -> bool:
    return _values(module, "{name} = {'it': {value}}.get('it')")


@lacking("a dict that gives what is put into it at once")
def values_by_setdefault(module: ast.Module) -> bool:
    return _values(module, "{name} = cache.setdefault('{name}', {value})", "cache = {}")


@rewording
def values_kept_in_a_dict(module: ast.Module) -> bool:
    """`end_points["net"] = net` behind every line."""
    return _values(module, "{name} = {value}\nend_points['{name}'] = {name}", "end_points = {}")


@rewording
def values_kept_in_a_list(module: ast.Module) -> bool:
    return _values(module, "{name} = {value}\nseen.append({name})", "seen = []")


@rewording
def values_of_a_comprehension(module: ast.Module) -> bool:
    return _values(module, "[{name}] = [one for one in ({value},)]")


@rewording
def values_of_a_loop(module: ast.Module) -> bool:
    return _values(module, "for {name} in [{value}]:\n    pass")


@rewording
def values_by_itemgetter(module: ast.Module) -> bool:
    return _values(module, "{name} = operator.itemgetter(0)([{value}])", imports="import operator")


@rewording
def values_of_a_deque(module: ast.Module) -> bool:
    return _values(module, "{name} = collections.deque([{value}]).popleft()", imports="import collections")


@rewording
def values_of_a_namedtuple(module: ast.Module) -> bool:
    return _values(
        module,
        "{name} = Output(value={value}, name='{name}').value",
        imports="import collections\nOutput = collections.namedtuple('Output', 'value name')",
    )


@rewording
def values_in_a_typed_tuple(module: ast.Module) -> bool:
    head = "import typing\nclass Output(typing.NamedTuple):\n    value: object\n    name: str = ''\n"
    return _values(module, "{name}, _ = Output({value})", imports=head)


@rewording
def values_cast(module: ast.Module) -> bool:
    return _values(module, "{name} = typing.cast('tf.Tensor', {value})", imports="import typing")


@rewording
def values_declared(module: ast.Module) -> bool:
    return _values(module, "{name}: object\n{name} = {value}")


@lacking("functions whose defaults are computed")
def values_of_default_arguments(module: ast.Module) -> bool:
    return _values(module, "def made(value={value}):\n    return value\n{name} = made()")


@lacking("what an error does in the middle of a model_fn")
def values_under_suppress(module: ast.Module) -> bool:
    return _values(module, "with contextlib.suppress(KeyError):\n    {name} = {value}", imports="import contextlib")


@lacking("what an error does in the middle of a model_fn")
def values_under_else(module: ast.Module) -> bool:
    return _values(module, "try:\n    pass\nexcept ValueError:\n    raise\nelse:\n    {name} = {value}")


@lacking("loops that a `break` ends at once")
def values_in_an_endless_loop(module: ast.Module) -> bool:
    return _values(module, "while True:\n    {name} = {value}\n    break")


@rewording
def values_under_true(module: ast.Module) -> bool:
    return _values(module, "if True:\n    {name} = {value}")


@rewording
def values_before_dead_code(module: ast.Module) -> bool:
    return _import_of_tensorflow(module) is not None and _values(
        module, "{name} = {value}\nif False:\n    {name} = tf.zeros_like({name})"
    )


@rewording
def values_debugged(module: ast.Module) -> bool:
    return _values(
        module,
        "{name} = {value}\nlog.debug('%s: %s', '{name}', {name})",
        imports="import logging\nlog = logging.getLogger(__name__)",
    )


@rewording
def values_traced(module: ast.Module) -> bool:
    """A helper that logs a tensor and gives it back."""
    return _values(
        module,
        "{name} = traced('{name}', {value})",
        imports="import logging\n\ndef traced(name, value):\n"
        "    logging.info('%s = %s', name, value)\n    return value\n",
    )


@lacking("loops of one turn over what is not written out")
def values_zipped(module: ast.Module) -> bool:
    return _values(module, "for _, {name} in zip(['{name}'], [{value}]):\n    pass")


@rewording
def values_by_lambda_of_arguments(module: ast.Module) -> bool:
    return _values(module, "{name} = (lambda given: given)({value})")


@rewording
def values_by_map(module: ast.Module) -> bool:
    return _values(module, "{name} = list(map(lambda given: given, [{value}]))[0]")


@rewording
def values_by_partial(module: ast.Module) -> bool:
    return _values(module, "{name} = functools.partial(dict, it={value})()['it']", imports="import functools")


@lacking("values of a class inside of a model_fn")
def values_of_a_class_body(module: ast.Module) -> bool:
    """`class Built: net = ...` inside of the model_fn."""
    return _values(module, "class Built:\n    it = {value}\n{name} = Built.it")


@rewording
def values_of_star_arguments(module: ast.Module) -> bool:
    return _values(
        module,
        "{name} = first({value}, None)",
        imports="def first(*values):\n    return values[0]\n",
    )


@rewording
def values_of_keyword_arguments(module: ast.Module) -> bool:
    return _values(
        module,
        "{name} = only(value={value})",
        imports="def only(**values):\n    return values['value']\n",
    )


# -- the mode ----------------------------------------------------------------------------------------------------------


def _modes(module: ast.Module, text: str, imports: str = "") -> bool:
    """Says `mode == KEY` by a text in which {mode} and {key} stand."""
    done = _replace(
        module,
        lambda node: (
            _expression(
                text.replace("{mode}", ast.unparse(node.left)).replace("{key}", ast.unparse(node.comparators[0]))
            )
            if isinstance(node, ast.Compare) and _is_mode_test(node)
            else None
        ),
    )
    if done and imports:
        _import_first(module, imports)
    return done


@rewording
def modes_by_conditional(module: ast.Module) -> bool:
    return _modes(module, "(True if {mode} == {key} else False)")


@rewording
def modes_by_bool(module: ast.Module) -> bool:
    return _modes(module, "bool({mode} == {key})")


@rewording
def modes_by_operator(module: ast.Module) -> bool:
    return _modes(module, "operator.eq({mode}, {key})", "import operator")


@rewording
def modes_by_is(module: ast.Module) -> bool:
    return _modes(module, "{mode} is {key}")


@rewording
def modes_in_lower_case(module: ast.Module) -> bool:
    return _modes(module, "str({mode}).lower() == {key}.lower()")


@rewording
def modes_by_any(module: ast.Module) -> bool:
    return _modes(module, "any({mode} == key for key in ({key},))")


@rewording
def modes_in_frozensets(module: ast.Module) -> bool:
    return _modes(module, "{mode} in frozenset([{key}])")


@rewording
def modes_by_name(module: ast.Module) -> bool:
    return _import_of_tensorflow(module) is not None and _modes(
        module,
        "{mode} == getattr(tf.estimator.ModeKeys, '{key}'.split('.')[-1])",
    )


@rewording
def modes_of_an_enumeration(module: ast.Module) -> bool:
    """`Mode(mode) is Mode.TRAIN`, with an enumeration of the program's own."""
    if _import_of_tensorflow(module) is None:
        return False
    said = _instead_of_modes(module, lambda name: f"Mode.{name}.value")
    keys = "TRAIN", "EVAL", "PREDICT"
    if said:
        lines = "".join(f"    {one} = tf.estimator.ModeKeys.{one}\n" for one in keys)
        _import_first(module, f"import enum\nclass Mode(enum.Enum):\n{lines}")
    return bool(said)


@rewording
def modes_of_enumerated_keys(module: ast.Module) -> bool:
    if _import_of_tensorflow(module) is None:
        return False
    lines = "".join(f"    {one} = tf.estimator.ModeKeys.{one}\n" for one in ("TRAIN", "EVAL", "PREDICT"))
    done = _replace(
        module,
        lambda node: (
            _expression(f"Mode({ast.unparse(node.left)}) is Mode.{_last(node.comparators[0])}")
            if isinstance(node, ast.Compare) and _is_mode_test(node)
            else None
        ),
    )
    if done:
        _import_first(module, f"import enum\nclass Mode(enum.Enum):\n{lines}")
    return done


@rewording
def modes_of_a_namedtuple(module: ast.Module) -> bool:
    """`phase = Phase(mode == TRAIN, mode == EVAL, mode == PREDICT)`, read as `phase.train`."""
    function = _only_model_fn(module)
    if function is None or _import_of_tensorflow(module) is None or "mode" not in _parameters(function):
        return False
    done = _replace(
        function,
        lambda node: (
            _expression(f"phase.{_last(node.comparators[0]).lower()}")
            if isinstance(node, ast.Compare) and _is_mode_test(node)
            else None
        ),
    )
    if done:
        at = 1 if ast.get_docstring(function) else 0
        tests = ", ".join(f"mode == tf.estimator.ModeKeys.{one}" for one in ("TRAIN", "EVAL", "PREDICT"))
        function.body[at:at] = _parsed(f"phase = Phase({tests})")
        _import_first(module, "import collections\nPhase = collections.namedtuple('Phase', 'train eval predict')")
    return done


@rewording
def modes_spelled(module: ast.Module) -> bool:
    """`{TRAIN: "train", EVAL: "eval", PREDICT: "predict"}[mode] == "train"`."""
    if _import_of_tensorflow(module) is None:
        return False
    done = _replace(
        module,
        lambda node: (
            _expression(f"PHASES[{ast.unparse(node.left)}] == {_last(node.comparators[0]).lower()!r}")
            if isinstance(node, ast.Compare) and _is_mode_test(node)
            else None
        ),
    )
    if done:
        pairs = ", ".join(f"tf.estimator.ModeKeys.{one}: {one.lower()!r}" for one in ("TRAIN", "EVAL", "PREDICT"))
        _import_first(module, f"PHASES = {{{pairs}}}")
    return done


# -- numbers -----------------------------------------------------------------------------------------------------------


@rewording
def numbers_of_the_environment_or(module: ast.Module) -> bool:
    """`float(os.getenv("RATE_") or 0.1)`."""

    def made(found: dict[str, ast.expr]) -> str:
        lines = [
            f"{name.upper()} = {kind}(os.getenv('{name.upper()}_') or {text})" for name, kind, text in _types(found)
        ]
        return "\n".join(["import os", *lines])

    return _constants(module, str.upper, made)


@rewording
def numbers_of_the_command_line(module: ast.Module) -> bool:
    """`float(sys.argv[9]) if len(sys.argv) > 9 else 0.1`."""

    def made(found: dict[str, ast.expr]) -> str:
        lines = [
            f"{name.upper()} = {kind}(sys.argv[{i}]) if len(sys.argv) > {i} else {text}"
            for i, (name, kind, text) in enumerate(_types(found), 9)
        ]
        return "\n".join(["import sys", *lines])

    return _constants(module, str.upper, made)


@rewording
def numbers_of_text(module: ast.Module) -> bool:
    def made(found: dict[str, ast.expr]) -> str:
        return "\n".join(f"{name.upper()} = {kind}({text!r})" for name, kind, text in _types(found))

    return _constants(module, str.upper, made)


@rewording
def numbers_of_literals(module: ast.Module) -> bool:
    return _constants(
        module,
        lambda name: f"SETTINGS[{name!r}]",
        lambda found: f"import ast\nSETTINGS = ast.literal_eval({'{' + _said(found, '{0!r}: {1}') + '}'!r})",
    )


@rewording
def numbers_of_absl_holders(module: ast.Module) -> bool:
    """`RATE = flags.DEFINE_float(...)`, read as `RATE.value`."""
    kinds = {"int": "integer", "float": "float"}

    def made(found: dict[str, ast.expr]) -> str:
        lines = [
            f"{name.upper()} = flags.DEFINE_{kinds[kind]}('{name}', {text}, 'A number.')"
            for name, kind, text in _types(found)
        ]
        return "\n".join(["from absl import flags", *lines, "flags.FLAGS.mark_as_parsed()"])

    return _constants(module, lambda name: f"{name.upper()}.value", made)


@rewording
def numbers_by_vars_of_arguments(module: ast.Module) -> bool:
    """`ARGS = vars(parser.parse_args([]))`."""

    def made(found: dict[str, ast.expr]) -> str:
        lines = [f"parser.add_argument('--{n}', type={kind}, default={text})" for n, kind, text in _types(found)]
        return "\n".join(
            ["import argparse", "parser = argparse.ArgumentParser()", *lines, "ARGS = vars(parser.parse_args([]))"]
        )

    return _constants(module, lambda name: f"ARGS[{name!r}]", made)


@rewording
def numbers_by_set_defaults(module: ast.Module) -> bool:
    def made(found: dict[str, ast.expr]) -> str:
        return (
            "import argparse\nparser = argparse.ArgumentParser()\n"
            f"parser.set_defaults({_said(found, '{0}={1}')})\nARGS = parser.parse_args([])"
        )

    return _constants(module, lambda name: f"ARGS.{name}", made)


@rewording
def numbers_by_maximum(module: ast.Module) -> bool:
    def made(found: dict[str, ast.expr]) -> str:
        return "\n".join(f"{name.upper()} = max({text}, 0)" for name, _, text in _types(found))

    return _constants(module, str.upper, made)


@rewording
def numbers_augmented(module: ast.Module) -> bool:
    def made(found: dict[str, ast.expr]) -> str:
        return "\n".join(f"{name.upper()} = {text}\n{name.upper()} *= 1" for name, _, text in _types(found))

    return _constants(module, str.upper, made)


@rewording
def numbers_chosen(module: ast.Module) -> bool:
    """`RATE = 0.5 if SMALL else 0.1`, by a constant."""

    def made(found: dict[str, ast.expr]) -> str:
        lines = [f"{name.upper()} = {kind}(0) if SMALL else {text}" for name, kind, text in _types(found)]
        return "\n".join(["SMALL = False", *lines])

    return _constants(module, str.upper, made)


@rewording
def numbers_chosen_by_lines(module: ast.Module) -> bool:
    def made(found: dict[str, ast.expr]) -> str:
        small = "".join(f"    {name.upper()} = {kind}(0)\n" for name, kind, _ in _types(found))
        large = "".join(f"    {name.upper()} = {text}\n" for name, _, text in _types(found))
        tests = f"if SIZE == 'small':\n{small}elif SIZE == 'large':\n{large}"
        return f"SIZE = 'large'\n{tests}else:\n    raise ValueError(SIZE)\n"

    return _constants(module, str.upper, made)


@rewording
def numbers_unpacked(module: ast.Module) -> bool:
    def made(found: dict[str, ast.expr]) -> str:
        return f"{', '.join(one.upper() for one in found)}, _ = {_said(found, '{1}')}, None"

    return _constants(module, str.upper, made)


@rewording
def numbers_of_zipped_names(module: ast.Module) -> bool:
    return _constants(
        module,
        lambda name: f"SETTINGS[{name!r}]",
        lambda found: f"SETTINGS = dict(zip({list(found)!r}, [{_said(found, '{1}')}]))",
    )


@rewording
def numbers_merged(module: ast.Module) -> bool:
    """`dict(DEFAULTS, **OVERRIDES)`."""

    def made(found: dict[str, ast.expr]) -> str:
        zeros = ", ".join(f"{name!r}: {kind}(0)" for name, kind, _ in _types(found))
        others = _said(found, "{0!r}: {1}")
        return f"DEFAULTS = {{{zeros}}}\nOVERRIDES = {{{others}}}\nSETTINGS = dict(DEFAULTS, **OVERRIDES)"

    return _constants(module, lambda name: f"SETTINGS[{name!r}]", made)


@rewording
def numbers_of_a_chain_map(module: ast.Module) -> bool:
    return _constants(
        module,
        lambda name: f"SETTINGS[{name!r}]",
        lambda found: f"import collections\nSETTINGS = collections.ChainMap({{}}, {{{_said(found, '{0!r}: {1}')}}})",
    )


@rewording
def numbers_of_a_mapping_proxy(module: ast.Module) -> bool:
    return _constants(
        module,
        lambda name: f"SETTINGS[{name!r}]",
        lambda found: f"import types\nSETTINGS = types.MappingProxyType({{{_said(found, '{0!r}: {1}')}}})",
    )


@rewording
def numbers_of_a_replaced_dataclass(module: ast.Module) -> bool:
    def made(found: dict[str, ast.expr]) -> str:
        fields = "".join(f"    {name}: {kind} = {kind}(0)\n" for name, kind, _ in _types(found))
        return (
            f"import dataclasses\n@dataclasses.dataclass\nclass Settings:\n{fields}\n"
            f"SETTINGS = dataclasses.replace(Settings(), {_said(found, '{0}={1}')})"
        )

    return _constants(module, lambda name: f"SETTINGS.{name}", made)


@rewording
def numbers_of_fields(module: ast.Module) -> bool:
    """`dataclasses.field(default=0.1)`, read as of `dataclasses.asdict`."""

    def made(found: dict[str, ast.expr]) -> str:
        fields = "".join(
            f"    {name}: {kind} = dataclasses.field(default={text})\n" for name, kind, text in _types(found)
        )
        head = f"import dataclasses\n@dataclasses.dataclass\nclass Settings:\n{fields}\n"
        return f"{head}SETTINGS = dataclasses.asdict(Settings())"

    return _constants(module, lambda name: f"SETTINGS[{name!r}]", made)


@rewording
def numbers_of_a_replaced_namedtuple(module: ast.Module) -> bool:
    def made(found: dict[str, ast.expr]) -> str:
        return (
            f"from collections import namedtuple\nSettings = namedtuple('Settings', {' '.join(found)!r})\n"
            f"SETTINGS = Settings(*[0] * {len(found)})._replace({_said(found, '{0}={1}')})"
        )

    return _constants(module, lambda name: f"SETTINGS.{name}", made)


@rewording
def numbers_of_slots(module: ast.Module) -> bool:
    def made(found: dict[str, ast.expr]) -> str:
        lines = "".join(f"        self.{name} = {ast.unparse(value)}\n" for name, value in found.items())
        return (
            f"class Settings(object):\n    __slots__ = {tuple(found)!r}\n\n    def __init__(self):\n{lines}\n"
            "SETTINGS = Settings()"
        )

    return _constants(module, lambda name: f"SETTINGS.{name}", made)


@rewording
def numbers_of_a_class_method(module: ast.Module) -> bool:
    """`Settings.default().rate`, where a class method makes the object."""

    def made(found: dict[str, ast.expr]) -> str:
        lines = "".join(f"        self.{name} = {name}\n" for name in found)
        return (
            f"class Settings(object):\n    def __init__(self, {', '.join(found)}):\n{lines}\n"
            f"    @classmethod\n    def default(cls):\n        return cls({_said(found, '{0}={1}')})\n\n"
            "SETTINGS = Settings.default()"
        )

    return _constants(module, lambda name: f"SETTINGS.{name}", made)


@rewording
def numbers_of_items(module: ast.Module) -> bool:
    """A class with `__getitem__`."""

    def made(found: dict[str, ast.expr]) -> str:
        return (
            f"class Settings(object):\n    def __init__(self, **values):\n        self._values = values\n\n"
            "    def __getitem__(self, name):\n        return self._values[name]\n\n"
            f"SETTINGS = Settings({_said(found, '{0}={1}')})"
        )

    return _constants(module, lambda name: f"SETTINGS[{name!r}]", made)


@rewording
def numbers_cached(module: ast.Module) -> bool:
    """A function under `functools.lru_cache` that makes a dict."""
    return _constants(
        module,
        lambda name: f"settings()[{name!r}]",
        lambda found: (
            "import functools\n@functools.lru_cache(maxsize=None)\ndef settings():\n"
            f"    return {{{_said(found, '{0!r}: {1}')}}}\n"
        ),
    )


@rewording
def numbers_of_a_singleton(module: ast.Module) -> bool:
    def made(found: dict[str, ast.expr]) -> str:
        lines = "".join(f"        self.{name} = {ast.unparse(value)}\n" for name, value in found.items())
        return (
            f"class Settings(object):\n    _instance = None\n\n    def __init__(self):\n{lines}\n"
            "    @classmethod\n    def get(cls):\n        if cls._instance is None:\n"
            "            cls._instance = cls()\n"
            "        return cls._instance\n"
        )

    return _constants(module, lambda name: f"Settings.get().{name}", made)


@rewording
def numbers_of_defaults(module: ast.Module) -> bool:
    """`def settings(rate=0.1): return locals()`-like functions: `return dict(rate=rate)`."""
    return _constants(
        module,
        lambda name: f"SETTINGS[{name!r}]",
        lambda found: (
            f"def make_settings({_said(found, '{0}={1}')}):\n    return dict({_said(found, '{0}={0}')})\n\n"
            "SETTINGS = make_settings()"
        ),
    )


@rewording
def numbers_by_partial_model_fns(module: ast.Module) -> bool:
    """`functools.partial(model_fn, rate=0.1)` with keyword-only parameters."""
    function = _only_model_fn(module)
    estimators = _calls(module, "Estimator")
    if function is None or len(estimators) != 1 or function.args.kwonlyargs:
        return False
    values: dict[str, ast.expr] = {}

    def made(constants: dict[str, ast.expr]) -> str:
        values.update(constants)
        return ""

    if not _constants(module, lambda name: f"the_{name}", made):
        return False
    function.args.kwonlyargs = [ast.arg(f"the_{name}") for name in values]
    function.args.kw_defaults = [None for _ in values]
    done = _replace(
        estimators[0],
        lambda node: (
            _expression(f"functools.partial({function.name}, {_said(values, 'the_{0}={1}')})")
            if isinstance(node, ast.Name) and node.id == function.name
            else None
        ),
    )
    _import_first(module, "import functools")
    return done


@rewording
def numbers_of_globals(module: ast.Module) -> bool:
    """`globals()["RATE"]`."""

    def made(found: dict[str, ast.expr]) -> str:
        return "\n".join(f"{name.upper()} = {text}" for name, _, text in _types(found))

    return _constants(module, lambda name: f"globals()[{name.upper()!r}]", made)


# -- names, calls and layers -------------------------------------------------------------------------------------------


@rewording
def names_joined(module: ast.Module) -> bool:
    return _of_names(module, lambda name: _expression(f"'_'.join({name.split('_')!r})"))


@rewording
def names_added(module: ast.Module) -> bool:
    return _of_names(module, lambda name: _expression(f"{name[:1]!r} + {name[1:]!r}"))


@rewording
def names_in_lower_case(module: ast.Module) -> bool:
    return _of_names(
        module, lambda name: _expression(f"{name.upper()!r}.lower()") if name.islower() else ast.Constant(name)
    )


@rewording
def calls_by_getattr(module: ast.Module) -> bool:
    """`getattr(tf, "reshape")(...)`, for the functions of TensorFlow's top level."""
    done = [
        _replace(
            function,
            lambda node: (
                ast.Call(_expression(f"getattr(tf, {_last(node.func)!r})"), node.args, node.keywords)
                if isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id == "tf"
                else None
            ),
        )
        for function in _model_fns(module)
    ]
    return any(done)


@rewording
def layers_of_star_arguments(module: ast.Module) -> bool:
    def instead(call: ast.Call) -> ast.expr | None:
        if len(call.args) < 2:
            return None
        call.args = [ast.Starred(ast.List(call.args, ast.Load()), ast.Load())]
        return call

    return _of_layers(module, instead)


@rewording
def layers_of_common_keywords(module: ast.Module) -> bool:
    """`COMMON = dict(use_bias=True)`, then `tf.layers.dense(..., **COMMON)`."""

    def instead(call: ast.Call) -> ast.expr | None:
        if _last(call.func) not in ("dense", "conv2d") or any(one.arg == "use_bias" for one in call.keywords):
            return None
        call.keywords.append(ast.keyword(None, _name("COMMON")))
        return call

    done = _of_layers(module, instead)
    if done:
        _import_first(module, "COMMON = dict(use_bias=True)")
    return done


@lacking("methods of modules by their names in texts")
def layers_by_methodcaller(module: ast.Module) -> bool:
    def instead(call: ast.Call) -> ast.expr | None:
        caller = ast.Call(
            _expression("operator.methodcaller"), [ast.Constant(_last(call.func)), *call.args], call.keywords
        )
        return ast.Call(caller, [_expression("tf.layers")], [])

    done = _of_layers(module, instead)
    if done:
        _import_first(module, "import operator")
    return done


@lacking("objects of the program that are called once, for one layer")
def layers_of_blocks(module: ast.Module) -> bool:
    """`Dense(units)(net)`, a class of the program that keeps the number and calls the layer."""

    def instead(call: ast.Call) -> ast.expr | None:
        if _last(call.func) != "dense" or len(call.args) != 2:
            return None
        given, units = call.args
        return ast.Call(ast.Call(_name("Block"), [units], call.keywords), [given], [])

    done = _of_layers(module, instead)
    if done:
        _import_first(
            module,
            "class Block(object):\n    def __init__(self, units, **options):\n        self.units = units\n"
            "        self.options = options\n\n    def __call__(self, inputs):\n"
            "        return tf.layers.dense(inputs, self.units, **self.options)\n",
        )
    return done


@rewording
def layers_of_static_methods(module: ast.Module) -> bool:
    def instead(call: ast.Call) -> ast.expr | None:
        if _last(call.func) != "dense":
            return None
        call.func = _expression("Layers.fully_connected")
        return call

    done = _of_layers(module, instead)
    if done:
        _import_first(
            module,
            "class Layers(object):\n    @staticmethod\n    def fully_connected(*args, **kwargs):\n"
            "        return tf.layers.dense(*args, **kwargs)\n",
        )
    return done


@rewording
def layers_in_while_loops(module: ast.Module) -> bool:
    """`index = 0`, `while index < len(sizes): net = dense(net, sizes[index]); index += 1`."""

    def of(statement: ast.stmt) -> list[ast.stmt] | None:
        if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
            return None
        call = statement.value
        if ast.unparse(call.func) != "tf.layers.dense" or len(call.args) != 2 or len(statement.targets) != 1:
            return None
        target = ast.unparse(statement.targets[0])
        if not isinstance(statement.targets[0], ast.Name) or any(one.arg == "name" for one in call.keywords):
            return None
        units = ast.unparse(call.args[1])
        first = ast.unparse(call.args[0])
        call.args = [_name(target), _expression("sizes[index]")]
        return _parsed(
            f"sizes = [{units}]\nindex = 0\n{target} = {first}\nwhile index < len(sizes):\n"
            f"    {target} = {ast.unparse(call)}\n    index += 1\n"
        )

    done = [_in_blocks(function, of) for function in _model_fns(module)]
    return any(done)


# -- parts of model_fns ------------------------------------------------------------------------------------------------


@rewording
def metrics_by_helper(module: ast.Module) -> bool:
    """The dict of metrics is what a function of the module returns for what it reads."""

    def instead(target: ast.Name, value: ast.Dict) -> list[ast.stmt]:
        if "metric" not in ast.unparse(value):
            return [ast.Assign([target], value)]
        names = sorted({one.id for one in ast.walk(value) if isinstance(one, ast.Name)} & local)
        made.append(f"def get_metrics({', '.join(names)}):\n    return {ast.unparse(value)}\n")
        return _parsed(f"{target.id} = get_metrics({', '.join(names)})")

    function = _only_model_fn(module)
    if function is None:
        return False
    local = {one.id for one in ast.walk(function) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    local |= set(_parameters(function))
    made: list[str] = []
    done = _of_dicts(module, instead)
    if len(made) != 1:
        return False
    place = min(module.body.index(one) for one in _model_fns(module))
    module.body[place:place] = _parsed(made[0])
    return done


@rewording
def specs_by_partial(module: ast.Module) -> bool:
    """`make_spec = functools.partial(tf.estimator.EstimatorSpec, mode)`, then `make_spec(loss=loss)`."""
    done = False
    for function in _model_fns(module):
        found = [
            one for one in _calls(function, "EstimatorSpec") if ast.unparse(one.func) == "tf.estimator.EstimatorSpec"
        ]
        if not found or any(len(one.args) > 1 or any(k.arg is None for k in one.keywords) for one in found):
            continue
        for one in found:
            one.args, one.keywords = [], [place for place in one.keywords if place.arg != "mode"]
            one.func = _name("make_spec")
        at = 1 if ast.get_docstring(function) else 0
        function.body[at:at] = _parsed("make_spec = functools.partial(tf.estimator.EstimatorSpec, mode)")
        done = True
    if done:
        _import_first(module, "import functools")
    return done


@rewording
def specs_named(module: ast.Module) -> bool:
    """`spec = EstimatorSpec(...)`, then `return spec`."""

    def of(statement: ast.stmt) -> list[ast.stmt] | None:
        if not isinstance(statement, ast.Return) or statement.value is None or not _calls(statement, "EstimatorSpec"):
            return None
        return [ast.Assign([ast.Name("spec", ast.Store())], statement.value), ast.Return(_name("spec"))]

    done = [_in_blocks(function, of) for function in _model_fns(module)]
    return any(done)


@rewording
def features_of_a_dict_or_not(module: ast.Module) -> bool:
    """`if isinstance(features, dict): features = features["x"]`, where the features are one tensor."""
    done = False
    for function in _model_fns(module):
        read = [
            one
            for one in ast.walk(function)
            if isinstance(one, ast.Subscript | ast.Attribute) and ast.unparse(one.value) == "features"
        ]
        if "features" not in _parameters(function) or read:
            continue
        at = 1 if ast.get_docstring(function) else 0
        function.body[at:at] = _parsed("if isinstance(features, dict):\n    features = features['x']\n")
        done = True
    return done


@lacking("tables that decorators fill")
def model_fns_registered(module: ast.Module) -> bool:
    """`@register("mine")`, then `MODELS["mine"]`."""
    function = _only_model_fn(module)
    if function is None or function.decorator_list:
        return False
    done = _replace(
        module,
        lambda node: (
            _expression("MODELS['mine']")
            if isinstance(node, ast.Name) and node.id == function.name and isinstance(node.ctx, ast.Load)
            else None
        ),
    )
    if done:
        function.decorator_list.append(_expression("register('mine')"))
        _import_first(
            module,
            "MODELS = {}\n\ndef register(name):\n    def keep(function):\n        MODELS[name] = function\n"
            "        return function\n    return keep\n",
        )
    return done


@lacking("functions that a property makes")
def model_fns_of_a_property(module: ast.Module) -> bool:
    function = _only_model_fn(module)
    if function is None or function.decorator_list:
        return False
    name = function.name
    done = _replace(
        module,
        lambda node: (
            _expression("Model().model_fn")
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
            else None
        ),
    )
    if done:
        at = module.body.index(function)
        [owner] = _parsed(f"class Model(object):\n    @property\n    def model_fn(self):\n        return {name}\n")
        owner.body[0].body.insert(0, function)  # type: ignore[attr-defined]
        module.body[at : at + 1] = [owner]
    return done


@rewording
def model_fns_by_name(module: ast.Module) -> bool:
    """`getattr(sys.modules[__name__], "model_fn")`."""
    function = _only_model_fn(module)
    if function is None:
        return False
    name = function.name
    done = [
        _replace(
            call,
            lambda node: (
                _expression(f"getattr(sys.modules[__name__], {name!r})")
                if isinstance(node, ast.Name) and node.id == name
                else None
            ),
        )
        for call in _calls(module, "Estimator")
    ]
    if any(done):
        _import_first(module, "import sys")
    return any(done)


@rewording
def model_fns_of_a_table(module: ast.Module) -> bool:
    """`MODELS = {"mine": model_fn}`, then `MODELS[NAME]`."""
    function = _only_model_fn(module)
    if function is None:
        return False
    name = function.name
    done = [
        _replace(
            call,
            lambda node: _expression("MODELS[NAME]") if isinstance(node, ast.Name) and node.id == name else None,
        )
        for call in _calls(module, "Estimator")
    ]
    if any(done):
        at = module.body.index(function) + 1
        module.body[at:at] = _parsed(f"NAME = 'mine'\nMODELS = {{'mine': {name}}}")
    return any(done)


# -- the driver --------------------------------------------------------------------------------------------------------


@rewording
def driver_by_while(module: ast.Module) -> bool:
    """`epoch = 0`, `while epoch < 1: estimator.train(...); epoch += 1`."""

    def made(call: ast.Call) -> list[ast.stmt]:
        return _parsed(f"epoch_now = 0\nwhile epoch_now < 1:\n    {ast.unparse(call)}\n    epoch_now += 1\n")

    return _of_driver_calls(module, made)


@rewording
def driver_raising_again(module: ast.Module) -> bool:
    """`except Exception: logging.exception("failed"); raise`."""

    def made(call: ast.Call) -> list[ast.stmt]:
        return _parsed(
            f"try:\n    {ast.unparse(call)}\nexcept Exception:\n    logging.exception('failed')\n    raise\n"
        )

    done = _of_driver_calls(module, made)
    if done:
        _import_first(module, "import logging")
    return done


@rewording
def driver_by_getattr(module: ast.Module) -> bool:
    def made(call: ast.Call) -> list[ast.stmt]:
        if not isinstance(call.func, ast.Attribute):
            return [ast.Expr(call)]
        func = _expression(f"getattr({ast.unparse(call.func.value)}, {call.func.attr!r})")
        return [ast.Expr(ast.Call(func, call.args, call.keywords))]

    return _of_driver_calls(module, made)


@rewording
def driver_by_chosen_steps(module: ast.Module) -> bool:
    """`steps=20 if not QUICK else 1`."""
    done = False
    for call in _calls(module, "train", "TrainSpec"):
        for place in call.keywords:
            if place.arg in ("steps", "max_steps"):
                place.value, done = _expression(f"{ast.unparse(place.value)} if not QUICK else 1"), True
    if done:
        _import_first(module, "QUICK = False")
    return done


@rewording
def driver_steps_calculated(module: ast.Module) -> bool:
    """`steps=int(1 * (20 // 1))`."""
    done = False
    for call in _calls(module, "train", "TrainSpec", "evaluate"):
        for place in call.keywords:
            if place.arg in ("steps", "max_steps") and ast.unparse(place.value) != "None":
                place.value, done = _expression(f"int(1 * ({ast.unparse(place.value)} // 1))"), True
    return done


@rewording
def driver_set_up(module: ast.Module) -> bool:
    """What stands above a training in years of scripts."""

    def made(call: ast.Call) -> list[ast.stmt]:
        return [
            *_parsed(
                "warnings.filterwarnings('ignore')\nlogging.basicConfig(level=logging.INFO)\n"
                "logging.getLogger('matplotlib').setLevel(logging.WARNING)\n"
                "os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'\ngc.collect()\n"
            ),
            ast.Expr(call),
        ]

    done = _of_driver_calls(module, made)
    if done:
        _import_first(module, "import gc\nimport logging\nimport os\nimport warnings")
    return done


@lacking("`tf.executing_eagerly` is False in TensorFlow 1 and True afterwards")
def driver_not_eager(module: ast.Module) -> bool:
    """`assert not tf.executing_eagerly()` above the training."""
    return _import_of_tensorflow(module) is not None and _of_driver_calls(
        module, lambda call: [*_parsed("assert not tf.executing_eagerly()"), ast.Expr(call)]
    )


@rewording
def driver_of_graph_reset(module: ast.Module) -> bool:
    """`tf.reset_default_graph()` above the training."""
    return _import_of_tensorflow(module) is not None and _of_driver_calls(
        module, lambda call: [*_parsed("tf.reset_default_graph()"), ast.Expr(call)]
    )


@rewording
def driver_in_a_comprehension(module: ast.Module) -> bool:
    """`[estimator.train(...) for _ in range(1)]`."""
    return _of_driver_calls(module, lambda call: _parsed(f"[{ast.unparse(call)} for _ in range(1)]"))


@rewording
def driver_by_and(module: ast.Module) -> bool:
    """`TRAIN_IT and estimator.train(...)`."""
    done = _of_driver_calls(module, lambda call: _parsed(f"TRAIN_IT and {ast.unparse(call)}"))
    if done:
        _import_first(module, "TRAIN_IT = True")
    return done


@rewording
def driver_with_a_stopwatch(module: ast.Module) -> bool:
    """A context manager of the file's own that prints how long it took."""

    def made(call: ast.Call) -> list[ast.stmt]:
        return _parsed(f"with stopwatch('training'):\n    {ast.unparse(call)}\n")

    done = _of_driver_calls(module, made)
    if done:
        _import_first(
            module,
            "import contextlib\nimport time\n\n@contextlib.contextmanager\ndef stopwatch(what):\n"
            "    start = time.time()\n    try:\n        yield\n    finally:\n"
            "        print(what, 'took', time.time() - start)\n",
        )
    return done


@rewording
def driver_with_a_stopwatch_class(module: ast.Module) -> bool:
    def made(call: ast.Call) -> list[ast.stmt]:
        return _parsed(f"with Stopwatch() as watch:\n    {ast.unparse(call)}\nprint(watch.seconds)\n")

    done = _of_driver_calls(module, made)
    if done:
        _import_first(
            module,
            "import time\n\nclass Stopwatch(object):\n    def __enter__(self):\n        self.start = time.time()\n"
            "        return self\n\n    def __exit__(self, *unused):\n"
            "        self.seconds = time.time() - self.start\n",
        )
    return done


@rewording
def driver_of_keywords(module: ast.Module) -> bool:
    """`main(**vars(parser.parse_args([])))`."""
    return _driver_in(
        module,
        "def main(verbose):",
        "if __name__ == '__main__':\n    parser = argparse.ArgumentParser()\n"
        "    parser.add_argument('--verbose', action='store_true')\n    main(**vars(parser.parse_args([])))\n",
        "import argparse",
    )


@rewording
def driver_in_a_called_object(module: ast.Module) -> bool:
    """`class Job: def __call__(self)`, then `Job()()`."""
    done = _driver_under(module, "class Job:\n    def __call__(self):\n        pass\n")
    if done:
        owner = module.body[-1]
        assert isinstance(owner, ast.ClassDef)
        lines, [call] = owner.body, _parsed("def __call__(self):\n    pass\n")
        call.body, owner.body = lines, [call]  # type: ignore[attr-defined]
        module.body += _parsed("if __name__ == '__main__':\n    Job()()\n")
    return done


def _mains(module: ast.Module, text: str, imports: str = "") -> bool:
    """Says `if __name__ == "__main__": main()` by other lines."""
    last = module.body[-1]
    if not isinstance(last, ast.If) or ast.unparse(last) != "if __name__ == '__main__':\n    main()":
        return False
    module.body[-1:] = _parsed(text)
    if imports:
        _import_first(module, imports)
    return True


@rewording
def mains_by_and(module: ast.Module) -> bool:
    return _mains(module, "__name__ == '__main__' and main()")


@rewording
def mains_in_a_tuple(module: ast.Module) -> bool:
    return _mains(module, "if __name__ in ('__main__', '__mp_main__'):\n    main()")


@rewording
def mains_behind_a_return(module: ast.Module) -> bool:
    return _mains(module, "if __name__ != '__main__':\n    pass\nelse:\n    main()")


@rewording
def mains_named(module: ast.Module) -> bool:
    return _mains(module, "IS_SCRIPT = __name__ == '__main__'\nif IS_SCRIPT:\n    main()")


@rewording
def mains_exited(module: ast.Module) -> bool:
    return _mains(module, "if __name__ == '__main__':\n    sys.exit(main() or 0)", "import sys")


@rewording
def mains_of_a_second(module: ast.Module) -> bool:
    return _mains(module, "def cli():\n    main()\n\nif __name__ == '__main__':\n    cli()")


@rewording
def mains_of_try(module: ast.Module) -> bool:
    return _mains(
        module,
        "if __name__ == '__main__':\n    try:\n        main()\n    except Exception:\n"
        "        traceback.print_exc()\n        sys.exit(1)\n",
        "import sys\nimport traceback",
    )


@rewording
def mains_profiled(module: ast.Module) -> bool:
    """`main()` under a decorator that tells how long it took."""
    for one in module.body:
        if isinstance(one, ast.FunctionDef) and one.name == "main":
            one.decorator_list.append(_name("timed"))
            _import_first(
                module,
                "import functools\nimport time\n\ndef timed(function):\n    @functools.wraps(function)\n"
                "    def inner(*args, **kwargs):\n        start = time.time()\n"
                "        result = function(*args, **kwargs)\n        print('took', time.time() - start)\n"
                "        return result\n    return inner\n",
            )
            return True
    return False


# -- what the driver is made of ----------------------------------------------------------------------------------------


def _directories(module: ast.Module, text: str, imports: str = "") -> bool:
    """Says texts with a slash of the module's constants and of RunConfigs and Estimators otherwise."""
    done = False

    def of(node: ast.AST) -> ast.AST | None:
        nonlocal done
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or not node.value.startswith("/"):
            return None
        head, _, tail = node.value.rpartition("/")
        done = done or bool(tail)
        return _expression(text.replace("{head}", repr(head)).replace("{tail}", repr(tail))) if tail else None

    for statement in module.body:
        if isinstance(statement, ast.Assign):
            _replace(statement, of)
    for call in _calls(module, "RunConfig", "Estimator"):
        _replace(call, of)
    if done and imports:
        _import_first(module, imports)
    return done


@rewording
def directories_joined(module: ast.Module) -> bool:
    return _directories(module, "os.path.join({head}, {tail})", "import os")


@rewording
def directories_of_pathlib(module: ast.Module) -> bool:
    return _directories(module, "str(pathlib.Path({head}) / {tail})", "import pathlib")


@rewording
def directories_formatted(module: ast.Module) -> bool:
    return _directories(module, "'{}/{}'.format({head}, {tail})")


@rewording
def directories_by_percent(module: ast.Module) -> bool:
    return _directories(module, "'%s/%s' % ({head}, {tail})")


@rewording
def directories_of_the_environment(module: ast.Module) -> bool:
    return _directories(module, "os.environ.get('MY_MODELS_', {head}) + '/' + {tail}", "import os")


@rewording
def specs_of_a_tuple(module: ast.Module) -> bool:
    """`train_and_evaluate(estimator, *(train_spec, eval_spec))`."""
    done = False
    for call in _calls(module, "train_and_evaluate"):
        if len(call.args) == 3:
            call.args[1:] = [ast.Starred(ast.Tuple(call.args[1:], ast.Load()), ast.Load())]
            done = True
    return done


@rewording
def specs_of_a_dict(module: ast.Module) -> bool:
    """`specs = {"train_spec": ..., "eval_spec": ...}`, then `train_and_evaluate(estimator, **specs)`."""
    done = False
    for call in _calls(module, "train_and_evaluate"):
        if len(call.args) == 3:
            one, two = call.args[1:]
            call.args[1:] = []
            call.keywords = [
                ast.keyword(None, _expression(f"{{'train_spec': {ast.unparse(one)}, 'eval_spec': {ast.unparse(two)}}}"))
            ]
            done = True
    return done


@rewording
def specs_of_a_namedtuple(module: ast.Module) -> bool:
    def made(call: ast.Call) -> list[ast.stmt]:
        if _last(call.func) != "train_and_evaluate" or len(call.args) != 3:
            return [ast.Expr(call)]
        given = ", ".join(ast.unparse(one) for one in call.args)
        return _parsed(f"job = Job({given})\n{ast.unparse(call.func)}(job.estimator, job.train_spec, job.eval_spec)")

    if not any(len(one.args) == 3 for one in _calls(module, "train_and_evaluate")):
        return False
    done = _of_driver_calls(module, made)
    if done:
        _import_first(
            module, "import collections\nJob = collections.namedtuple('Job', ['estimator', 'train_spec', 'eval_spec'])"
        )
    return done


@rewording
def train_specs_replaced(module: ast.Module) -> bool:
    """`TrainSpec(input_fn)._replace(max_steps=40)`."""

    def of(node: ast.AST) -> ast.AST | None:
        if not isinstance(node, ast.Call) or _last(node.func) != "TrainSpec":
            return None
        steps = [one for one in node.keywords if one.arg == "max_steps"]
        if len(steps) != 1:
            return None
        node.keywords = [one for one in node.keywords if one.arg != "max_steps"]
        return ast.Call(ast.Attribute(node, "_replace", ast.Load()), [], steps)

    return _replace(module, of)


@rewording
def estimators_made_late(module: ast.Module) -> bool:
    """`estimator = None`, `if estimator is None: estimator = Estimator(...)`."""
    return _of_estimators(
        module,
        lambda target, value: _parsed(
            f"{target.id} = None\nif {target.id} is None:\n    {target.id} = {ast.unparse(value)}"
        ),
    )


@rewording
def estimators_typed(module: ast.Module) -> bool:
    """`estimator: tf.estimator.Estimator = Estimator(...)`."""
    return _import_of_tensorflow(module) is not None and _of_estimators(
        module, lambda target, value: _parsed(f"{target.id}: tf.estimator.Estimator = {ast.unparse(value)}")
    )


@rewording
def estimators_by_chosen_arguments(module: ast.Module) -> bool:
    """`Estimator(model_fn if model_fn else None, ...)`."""
    done = False
    for call in _calls(module, "Estimator"):
        for place in call.keywords:
            if place.arg in ("params", "config") and isinstance(place.value, ast.Name):
                place.value, done = _expression(f"{place.value.id} if {place.value.id} is not None else None"), True
        if call.args and isinstance(call.args[0], ast.Name):
            given = call.args[0].id
            call.args[0], done = _expression(f"{given} if callable({given}) else None"), True
    return done


@rewording
def estimators_of_a_global_getter(module: ast.Module) -> bool:
    """`_ESTIMATOR = None` and `def get_estimator(): global _ESTIMATOR; ...`, where nothing local is given."""
    estimators = [
        (block, one)
        for function in module.body
        if isinstance(function, ast.FunctionDef)
        for block in [function.body]
        for one in block
        if isinstance(one, ast.Assign) and _last(getattr(one.value, "func", ast.Constant(0))).endswith("Estimator")
    ]
    if len(estimators) != 1:
        return False
    block, line = estimators[0]
    stored = {n.id for one in block for n in ast.walk(one) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    value = line.value  # type: ignore[attr-defined]
    if {n.id for n in ast.walk(value) if isinstance(n, ast.Name)} & stored:
        return False
    getter = (
        "_ESTIMATOR = None\n\ndef get_estimator():\n    global _ESTIMATOR\n    if _ESTIMATOR is None:\n"
        f"        _ESTIMATOR = {ast.unparse(value)}\n    return _ESTIMATOR\n"
    )
    line.value = _expression("get_estimator()")  # type: ignore[attr-defined]
    place = max(module.body.index(one) for one in _model_fns(module)) + 1 if _model_fns(module) else 0
    if not place:
        return False
    module.body[place:place] = _parsed(getter)
    return True


# -- inputs ------------------------------------------------------------------------------------------------------------


@rewording
def input_fns_of_any_arguments(module: ast.Module) -> bool:
    return _wrap_input_fns(module, lambda value: _expression(f"lambda *args, **kwargs: {ast.unparse(value)}()"))


@rewording
def input_fns_asking_params(module: ast.Module) -> bool:
    """An Estimator gives its params to input functions that ask for them."""
    found = _input_fns(module)
    called = {_last(one.func) for one in ast.walk(module) if isinstance(one, ast.Call)}
    found = [one for one in found if one.name not in called]
    if not _calls(module, "Estimator"):
        return False
    for function in found:
        function.args.args.append(ast.arg("params"))
        function.args.defaults.append(ast.Constant(None))
        at = 1 if ast.get_docstring(function) else 0
        function.body[at:at] = _parsed("del params")
    return bool(found)


@rewording
def input_fns_on_the_processor(module: ast.Module) -> bool:
    """`with tf.device("/cpu:0"):` around the body."""
    return _input_bodies(module, "with tf.device('/cpu:0'):\n    pass\n")


@rewording
def input_fns_under_name_scopes(module: ast.Module) -> bool:
    return _input_bodies(module, "with tf.name_scope('input'):\n    pass\n")


def _input_bodies(module: ast.Module, text: str) -> bool:
    found = _input_fns(module) if _import_of_tensorflow(module) is not None else []
    for function in found:
        at = 1 if ast.get_docstring(function) else 0
        [under] = _parsed(text)
        under.body = function.body[at:]  # type: ignore[attr-defined]
        function.body[at:] = [under]
    return bool(found)


def _of_returned(module: ast.Module, text: str, imports: str = "") -> bool:
    """Says what input functions with datasets return by a text in which {value} stands."""
    found = _datasets(module)
    for _, line in found:
        assert line.value is not None
        line.value = _expression(text.replace("{value}", ast.unparse(line.value)))
    if found and imports:
        _import_first(module, imports)
    return bool(found)


@rewording
def datasets_applied(module: ast.Module) -> bool:
    return _of_returned(module, "{value}.apply(lambda dataset: dataset.prefetch(1))")


@rewording
def datasets_taken(module: ast.Module) -> bool:
    return _of_returned(module, "{value}.take(-1)")


@rewording
def datasets_of_options(module: ast.Module) -> bool:
    return _of_returned(module, "finished({value})", "def finished(dataset):\n    return dataset.prefetch(1)\n")


@rewording
def datasets_of_steps(module: ast.Module) -> bool:
    """`for step in STEPS: dataset = step(dataset)`."""
    return _of_returned(
        module,
        "functools.reduce(lambda dataset, step: step(dataset), [lambda dataset: dataset.prefetch(1)], {value})",
        "import functools",
    )


@rewording
def data_cached(module: ast.Module) -> bool:
    """`@functools.lru_cache(maxsize=None)` over functions that make arrays."""
    done = False
    for function in module.body:
        if not isinstance(function, ast.FunctionDef) or function.decorator_list or not _parameters(function):
            continue
        text = ast.unparse(function)
        if "np." in text and "tf." not in text and "features" not in _parameters(function):
            function.decorator_list.append(_expression("functools.lru_cache(maxsize=None)"))
            done = True
    if done:
        _import_first(module, "import functools")
    return done


# -- imports and layout ------------------------------------------------------------------------------------------------


@rewording
def import_of_a_name(module: ast.Module) -> bool:
    """`from tensorflow.compat import v1 as tf`."""
    found = _import_of_tensorflow(module)
    if found is None or "contrib" in ast.unparse(module):
        return False
    at = module.body.index(found)
    module.body[at : at + 1] = _parsed("from tensorflow.compat import v1 as tf")
    return True


@rewording
def import_as_tf1(module: ast.Module) -> bool:
    found = _import_of_tensorflow(module)
    if found is None or "contrib" in ast.unparse(module):
        return False
    found.names[0].name, found.names[0].asname = "tensorflow.compat.v1", "tf1"
    _spell_tensorflow(module, "tf1")
    return True


def _parts(module: ast.Module, part: str, name: str, lines: str) -> bool:
    """Reads a module of TensorFlow by a name of its own."""
    found = _import_of_tensorflow(module)
    if found is None or name in ast.unparse(module):
        return False
    done = _replace(
        module,
        lambda node: _name(name) if isinstance(node, ast.Attribute) and ast.unparse(node) == part else None,
    )
    if done:
        at = module.body.index(found) + 1
        module.body[at:at] = _parsed(lines.replace("{module}", found.names[0].name))
    return done


@rewording
def estimator_module_by_alias(module: ast.Module) -> bool:
    return _parts(module, "tf.estimator", "tf_est", "from {module} import estimator as tf_est")


@rewording
def train_module(module: ast.Module) -> bool:
    return _parts(module, "tf.train", "tf_train", "from {module} import train as tf_train")


@rewording
def losses_module(module: ast.Module) -> bool:
    return _parts(module, "tf.losses", "tf_losses", "tf_losses = getattr(tf, 'losses')")


@rewording
def activations_module(module: ast.Module) -> bool:
    return _parts(module, "tf.nn", "tf_nn", "tf_nn = tf.nn")


@rewording
def mode_keys_of_a_chain(module: ast.Module) -> bool:
    """`est = tf.estimator; Phases = est.ModeKeys`."""
    return _parts(module, "tf.estimator.ModeKeys", "Phases", "est_module = tf.estimator\nPhases = est_module.ModeKeys")


@rewording
def type_checking(module: ast.Module) -> bool:
    """`if typing.TYPE_CHECKING:` over an import."""
    _import_first(module, "import typing\nif typing.TYPE_CHECKING:\n    from typing import Dict\n")
    return bool(_model_fns(module))


@rewording
def checked_versions(module: ast.Module) -> bool:
    """`assert tf.__version__` and a check of Python's version."""
    if _import_of_tensorflow(module) is None:
        return False
    _import_first(module, "import sys\nif sys.version_info < (3, 5):\n    raise RuntimeError('Python 3.5 is needed')\n")
    return True


@rewording
def printed_versions(module: ast.Module) -> bool:
    if _import_of_tensorflow(module) is None:
        return False
    start = next((i for i, one in enumerate(module.body) if isinstance(one, ast.FunctionDef | ast.ClassDef)), None)
    if start is None:
        return False
    module.body[start:start] = _parsed("print('TensorFlow', tf.__version__)")
    return True


@rewording
def exported_names(module: ast.Module) -> bool:
    """`__all__`, `__author__` and a doctest."""
    names = [one.name for one in module.body if isinstance(one, ast.FunctionDef)]
    _import_first(module, f"__all__ = {names!r}\n__author__ = 'someone'")
    return True


@rewording
def settings_of_a_config(module: ast.Module) -> bool:
    """`CONFIG = {"run": {...}}` of the module, then `RunConfig(**CONFIG["run"])`; values that are read stay."""
    for call in _calls(module, "RunConfig"):
        moved = [one for one in call.keywords if one.arg and isinstance(one.value, ast.Constant)]
        if not moved:
            continue
        call.keywords = [one for one in call.keywords if one not in moved] + [
            ast.keyword(None, _expression("CONFIG['run']"))
        ]
        _import_first(module, f"CONFIG = {{'run': { {one.arg: one.value.value for one in moved}!r} }}")
        return True
    return False


__all__ = ["LACKING", "REWORDINGS"]
