"""The examples on the rule pages are true."""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import pytest

from migrator.findings import Severity
from migrator.modern import modernize
from migrator.names.imports import read_imports
from migrator.program.modes import ModeNames
from migrator.rules.catalogue import all_rules
from migrator.rules.rewriter import Rewriter
from migrator.rules.rule import Example
from tests.rules.programs import program, run

MODERN_CODES = ("TFM272", "TFM71", "TFM744", "TFM745", "TFM77")
EXPRESSIONS = [
    (rule.code, example)
    for rule in all_rules()
    for example in rule.examples
    if not rule.code.startswith(("TFM30", "TFM411", *MODERN_CODES))
]
MODERN = [
    (rule.code, example) for rule in all_rules() for example in rule.examples if rule.code.startswith(MODERN_CODES)
]
RATES = [(rule.code, example) for rule in all_rules() for example in rule.examples if rule.code == "TFM411"]
LOSSES = [(rule.code, example) for rule in all_rules() for example in rule.examples if rule.code.startswith("TFM30")]


@pytest.mark.parametrize(("code", "example"), EXPRESSIONS, ids=lambda value: getattr(value, "before", value))
def test_expression(code: str, example: Example) -> None:
    module = cst.parse_module(f"import tensorflow as tf\nresult = {example.before}\n")
    line = module.body[1]
    assert isinstance(line, cst.SimpleStatementLine) and isinstance(line.body[0], cst.Assign)
    imports = read_imports(module)
    rewriter = Rewriter(imports, module.code_for_node, ModeNames(imports, "mode", {}))
    new = line.body[0].value.visit(rewriter)
    if example.after is None:
        assert [problem.code for problem in rewriter.problems] == [code]
    else:
        assert not rewriter.problems
        assert module.code_for_node(new) == example.after


@pytest.mark.parametrize(("code", "example"), RATES, ids=lambda value: getattr(value, "before", value))
def test_rate(code: str, example: Example) -> None:
    new, findings = run(program(optimizer=f"tf.train.GradientDescentOptimizer({example.before})"))
    assert not [f for f in findings if f.severity is Severity.MANUAL]
    assert f"SGD(learning_rate={example.after})" in new


@pytest.mark.parametrize(("code", "example"), LOSSES, ids=lambda value: getattr(value, "before", value))
def test_loss(code: str, example: Example) -> None:
    text = program(loss=f"loss = {example.before}")
    new, findings = run(text)
    if example.after is None:
        assert new == text
        assert [f.code for f in findings if f.severity is Severity.MANUAL] == [code]
    else:
        assert f"loss={example.after}" in new


@pytest.mark.parametrize(("code", "example"), MODERN, ids=lambda value: getattr(value, "before", value))
def test_modern(code: str, example: Example) -> None:
    path = Path("train.py")
    text = "from tensorflow import keras\nimport tensorflow as tf\nresult = {}\n"
    new, findings = modernize({path: text.format(example.before)}, ())
    if example.after is None:
        assert [f.code for f in findings[path] if f.severity is Severity.MANUAL] == [code]
        assert text.format(example.before).splitlines()[2] in new.get(path, text.format(example.before))
    else:
        assert new[path].endswith(f"result = {example.after}\n")
        assert {f.code for f in findings[path]} <= {code, "TFM712"}


def test_codes_are_unique_and_pages_say_something() -> None:
    rules = all_rules()
    assert len({rule.code for rule in rules}) == len(rules)
    for rule in rules:
        assert len(rule.text.strip()) > 60, rule.code
        assert rule.page().startswith(f"# {rule.code}: ")
