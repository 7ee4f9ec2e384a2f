"""What becomes of each TensorFlow 1 symbol that a rule knows: one call of it, in both generations of Keras."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

import libcst as cst

from migrator.catalogue.samples import ALIASES, SAMPLES
from migrator.names.imports import ImportMap, read_imports
from migrator.program.calls import calls_in
from migrator.program.modes import ModeNames
from migrator.program.parsed import Blocked
from migrator.rules import keras3
from migrator.rules.canned import TWO
from migrator.rules.catalogue import all_rules, call_rules, rules_beside
from migrator.rules.generation import KERAS_2, KERAS_3, Keras
from migrator.rules.metrics import FUNCTIONS, Metric, read_metric
from migrator.rules.rewriter import Rewriter
from migrator.rules.schedules import GLOBAL_STEPS, is_schedule
from migrator.rules.site import TrainingContext

# What stands among the layers of a network, where Keras 3 wants functions of its own.
_OF_NETWORKS = ("tf.layers.", "tf.contrib.layers.", "tf.contrib.slim.", "tf.nn.dropout", "tf.nn.xw", "tf.div")


@dataclass(frozen=True)
class Form:
    """What a call becomes: `text`, or None where it is refused with `codes`.

    `classes` are the classes and functions that the file gets for it, text by name; `codes` is what is said of it.
    """

    text: str | None
    classes: Mapping[str, str]
    codes: tuple[str, ...]


@dataclass(frozen=True)
class Row:
    """One symbol: a call of it, its form on tf_keras and on Keras 3, and the rules whose pages name it."""

    symbol: str
    call: str
    keras2: Form
    keras3: Form
    codes: tuple[str, ...]


def symbols() -> list[str]:
    """Every TensorFlow 1 symbol that has a row, sorted: calls that rules rewrite, and metrics."""
    # The global step goes with the call that it is an argument of; `tf.cond` is one of rates; TWO is a name of ours.
    # What an optimizer's name gives is in the rows of the optimizers.
    parts = {*GLOBAL_STEPS, "tf.cond", "tf.keras.optimizers.get", f"tf.{TWO}"}
    known = {*call_rules(), *(f"tf.metrics.{name}" for name in FUNCTIONS)} - parts
    return sorted(name for name in known if name.startswith("tf.") and not name.startswith("tf.python."))


@cache
def row(symbol: str) -> Row:
    """The row of a symbol. Raises KeyError where there is no rule for it."""
    call = _calls()[symbol]
    forms = [_form(symbol, call, keras) for keras in (KERAS_2, KERAS_3)]
    said = {code for form in forms for code in form.codes}
    codes = said.union(_pages(symbol)) or {rule.code for rule in rules_beside(symbol)}
    return Row(symbol, call, forms[0], forms[1], tuple(sorted(codes)))


def _shown() -> Iterator[tuple[str, str]]:
    """The calls that there are, each with the symbol that it shows; those of rule pages first."""
    examples = [example for rule in all_rules() for example in rule.examples]
    calls = [e.before for e in examples if e.after is not None] + list(SAMPLES) + [e.before for e in examples]
    first_of_all = [(call.partition("(")[0], call) for call in calls]
    yield from first_of_all
    for call in calls:
        tree = cst.parse_expression(call)
        yield from ((cst.Module([]).code_for_node(inner.func), call) for inner in calls_in(tree))


@cache
def _calls() -> dict[str, str]:
    found: dict[str, str] = {}
    for symbol, call in _shown():
        found.setdefault(symbol, call)
    return {symbol: found.get(symbol) or _of_alias(symbol, found) for symbol in symbols()}


def _of_alias(symbol: str, shown: Mapping[str, str]) -> str:
    """The call of a symbol that is shown by another name only. Raises ValueError where it is not."""
    name = symbol
    while name not in shown:
        start = max((alias for alias in ALIASES if name.startswith(alias)), key=len)
        name = ALIASES[start] + name.removeprefix(start)
    return shown[name].replace(name, symbol)


def _pages(symbol: str) -> Iterator[str]:
    for rule in all_rules():
        if any(f"{symbol}(" in example.before for example in rule.examples) or f"`{symbol}`" in rule.text:
            yield rule.code


def _form(symbol: str, call: str, keras: Keras) -> Form:
    module = cst.parse_module(f"import tensorflow as tf\nresult = {call}\n")
    line = module.body[1]
    assert isinstance(line, cst.SimpleStatementLine) and isinstance(line.body[0], cst.Assign)
    node, imports = line.body[0].value, read_imports(module)
    made: Mapping[str, str]
    if call.startswith("tf.metrics."):
        found, made = _of_metric(node, imports, module), {}
    else:
        # Tables are made outside of the model_fn.
        modes = None if ".lookup." in call else ModeNames(imports, "mode", {})
        rewriter = Rewriter(imports, module.code_for_node, modes)
        names = {inner: imports.resolve(inner.func) for inner in calls_in(node)}
        rewriter.training = TrainingContext(
            keras=keras,
            schedules=frozenset(inner for inner, name in names.items() if is_schedule(name)),
            steps=frozenset(inner for inner, name in names.items() if name in GLOBAL_STEPS),
        )
        new = node.visit(rewriter)
        assert isinstance(new, cst.BaseExpression)
        text = module.code_for_node(new)
        if symbol.startswith(_OF_NETWORKS) and not rewriter.problems:
            text = module.code_for_node(rewriter.of_network(new, node))
        problems = [*rewriter.problems, *rewriter.remarks, *rewriter.training.remarks]
        codes = tuple(dict.fromkeys(problem.code for problem in problems))
        classes = {**rewriter.classes, **rewriter.training.helpers}
        found = Form(None if rewriter.problems else text, classes, codes)
        made = rewriter.training.helpers  # for this generation
    return found if keras.number == 2 else _on_keras3(found, made)


def _on_keras3(form: Form, made: Collection[str]) -> Form:
    """A form with the names and classes of Keras 3; `made` are those that are made for it."""
    if form.text is None:
        return form
    module = keras3.renamed(cst.parse_module(f"{form.text}\n"))
    classes = {name: text if name in made else keras3.class_text(name, text) for name, text in form.classes.items()}
    if keras3.foreign_names(module) or None in classes.values():
        return Form(None, {}, ("TFM870",))
    return Form(module.code.strip(), {name: text for name, text in classes.items() if text is not None}, form.codes)


def _of_metric(node: cst.BaseExpression, imports: ImportMap, module: cst.Module) -> Form:
    assert isinstance(node, cst.Call)
    try:
        metric: Metric = read_metric(node, imports, module.code_for_node)
    except Blocked as problem:
        return Form(None, {}, (problem.code,))
    keras = metric.title or f"tf.keras.metrics.{metric.keras}"
    codes = tuple(code for code, _ in metric.remarks)
    text = "\n".join([f"class {metric.title}(tf.keras.metrics.{metric.keras}):", "    def result(self):"])
    text += "".join(f"\n        {line}" for line in metric.body)
    return Form(f"{keras}({', '.join(metric.arguments)})", {metric.title: text} if metric.title else {}, codes)
