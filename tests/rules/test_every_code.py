"""Every finding code is told by some program: a page about what never happens helps nobody.

Most codes are expected by a test of what they are about. The programs of those that no other test expects are here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from migrator.findings import Severity
from migrator.rules.catalogue import all_rules
from tests.rules.programs import program, run, run_project
from tests.rules.test_canned import canned
from tests.rules.test_hooks import INITIALIZER
from tests.rules.test_mesh import mirrored_program
from tests.rules.test_ready_models import BOTH, CONFIG, ESTIMATOR, MIRRORED, MODEL, STRATEGY, TOP
from tests.rules.test_tpu import tpu

CODE = re.compile(r"TFM\d{3}")
TESTS = Path(__file__).parent.parent
TRAIN_AND_EVALUATE = (
    "tf.estimator.train_and_evaluate(\n"
    "    estimator, tf.estimator.TrainSpec(input_fn, max_steps=3), tf.estimator.EvalSpec(input_fn)\n"
    ")"
)
PREDICTS = "    estimator.train(input_fn, steps=3)\n    print(list(estimator.predict(input_fn)))\n\n\nmain()\n"
CLASSIFIER = "tf1.estimator.DNNClassifier([8], columns{})"
DEVICES = "from tensorflow.python.client import device_lib\nprint(device_lib.list_local_devices())\n"
TRAIN = "estimator.train(input_fn, steps=3)"
PRECISION = ", eval_metric_ops={'precision': tf.metrics.precision_at_k(labels, logits, 2)}"
IMAGES = """\
training = mode == tf.estimator.ModeKeys.TRAIN
net = tf.layers.batch_normalization(tf.reshape(net, [-1, 1, 1, 1]), training=training)
net = tf.layers.flatten(net)"""
UPDATED = """\
loss = tf.losses.mean_squared_error(labels, logits)
with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
    loss = tf.identity(loss)"""
EMBEDDED = "net = tf.keras.layers.Flatten()(tf.keras.layers.Embedding(4, 2)(net))"
AVERAGED = "tf.keras.applications.MobileNet(weights=None)"
EVALUATED = MODEL + STRATEGY + CONFIG.replace("(", "(eval_distribute=strategy, ") + ESTIMATOR + BOTH
READS, DRIVES = INITIALIZER.split("\n\nread_fn", 1)
INPUT_FN = program().partition("def model_fn")[0]
READER = {
    "train.py": program(driver="import reader\nread_fn" + DRIVES.replace("Reader()", "reader.Reader()")),
    "reader.py": f"{INPUT_FN}{READS}\n",
    "reader_test.py": "import reader\n\nread, hook = reader.Reader().inputs()\n",
}

#: Code -> a program, with the options that it is migrated with.
PROGRAMS: dict[str, tuple[str, dict[str, str]]] = {
    "TFM112": (program(driver=TRAIN_AND_EVALUATE), {}),
    "TFM193": (canned(CLASSIFIER.format(""), drive=PREDICTS), {}),
    "TFM195": (canned(CLASSIFIER.format(", weight_column='w'"), drive=PREDICTS), {}),
    "TFM259": (program(driver=DEVICES + TRAIN), {}),
    "TFM302": (program(loss='loss = tf.losses.mean_squared_error(labels, logits, reduction="mine")'), {}),
    "TFM448": (tpu("True").replace("(labels, logits)", "(labels, logits, reduction=tf.losses.Reduction.SUM)"), {}),
    "TFM511": (program(spec=PRECISION, driver=f"{TRAIN}\nestimator.evaluate(input_fn)"), {}),
    "TFM722": (TOP + MIRRORED.replace("build(1)", AVERAGED), {}),
    "TFM729": (TOP + EVALUATED, {}),
    "TFM794": (program(), {"strategy": "dtensor"}),
    "TFM798": (mirrored_program(), {"strategy": "dtensor"}),
    "TFM875": (program(network=IMAGES, loss=UPDATED), {"keras": "3"}),
    "TFM876": (program(network=EMBEDDED, optimizer="tf.train.AdamOptimizer(0.1)"), {"keras": "3"}),
}


@pytest.mark.parametrize("code", PROGRAMS)
def test_a_program_that_is_told(code: str) -> None:
    text, options = PROGRAMS[code]
    _, findings = run(text, **options)
    assert code in [finding.code for finding in findings], findings


def test_an_input_function_that_others_use() -> None:
    results = run_project(READER)
    assert "TFM615" in [finding.code for finding in results["reader.py"][1]], results


def expected(path: Path) -> Iterator[str]:
    """The codes that a file of tests names, but for those that must not come."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    refuted = {
        id(node)
        for compare in ast.walk(tree)
        if isinstance(compare, ast.Compare) and any(isinstance(one, (ast.NotIn, ast.NotEq)) for one in compare.ops)
        for node in ast.walk(compare)
    }
    documents = (node.body[0] for node in ast.walk(tree) if isinstance(node, (ast.Module, ast.FunctionDef)))
    told = {id(one.value) for one in documents if isinstance(one, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in refuted | told:
            yield from CODE.findall(node.value)


def emitted(path: Path) -> Iterator[str]:
    """The codes that a module tells in code which is not the page of a rule: as that of a finding, or in its words."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    pages = {id(node) for one in calls if ast.unparse(one.func) == "Rule" for node in ast.walk(one)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in pages:
            yield from CODE.findall(node.value[:6]) + re.findall(r"\((TFM\d{3})\)$", node.value)


def test_every_code_is_told_and_expected() -> None:
    """`migrated` codes are the pages of tables, whose rows are tested as such; the others are findings."""
    codes = {rule.code for rule in all_rules() if rule.severity is not Severity.MIGRATED}
    refused = {rule.code for rule in all_rules() if any(example.after is None for example in rule.examples)}
    here = Path(__file__)
    tests = {code for path in TESTS.rglob("test_*.py") if path != here for code in expected(path)}
    source = {code for path in (TESTS.parent / "migrator").rglob("*.py") for code in emitted(path)}
    assert not codes - source, "no code tells these"
    assert not codes - tests - refused - PROGRAMS.keys() - {"TFM615"}, "no test shows these"
    assert not PROGRAMS.keys() - codes
