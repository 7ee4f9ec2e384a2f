"""Variables are split the same: the same ones, into as many shards, of as many rows."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from migrator.findings import Severity
from migrator.harness.cluster import ClusterShape, ForkServer, Launch
from migrator.harness.environments import migrated_python
from migrator.harness.runs import plan_for
from migrator.rules.partitioners import TABLE
from tests import warm
from tests.end_to_end.proving import Servers
from tests.rules.programs import program, run

pytestmark = pytest.mark.tensorflow

# In one process: a partitioner of TensorFlow 1, and what the rule makes of it, for random shapes, types and limits.
COMPARE = """
import random, sys
import tensorflow.compat.v1 as tf1
import tensorflow as tf
chance = random.Random(7)
split = 0
for number in range(3000):
    COUNT, SIZE = chance.randint(1, 9), chance.choice((1, 16, 100, 256, 1 << 10, 1 << 14, 256 << 10))
    SHAPE = [chance.choice((1, 2, 3, 7, 10, 64, 1000)) for _ in range(chance.randint(1, 4))]
    DTYPE = chance.choice((tf.float32, tf.float64, tf.float16, tf.int64, tf.string))
    for name, old, new in (PAIRS):
        shape = tf.TensorShape(SHAPE)
        before, after = list(old(shape=shape, dtype=DTYPE)), list(new(shape, DTYPE))
        assert before == after, (name, SHAPE, DTYPE, COUNT, SIZE, before, after)
        split += before[0] > 1
print("split", split)
"""
FORMS = (
    "tf.fixed_size_partitioner(COUNT)",
    "tf.min_max_variable_partitioner(COUNT, 0, SIZE)",
    "tf.min_max_variable_partitioner(COUNT, bytes_per_string_element=SIZE)",
    "tf.variable_axis_size_partitioner(SIZE)",
    "tf.variable_axis_size_partitioner(SIZE, 0, 8, COUNT)",
)


def carried(form: str) -> str:
    """What a partitioner becomes in a migrated program."""
    names = "COUNT = 2\nSIZE = 3\n\n\ndef input_fn"
    network = f"tf.get_variable_scope().set_partitioner({form})\nnet = tf.layers.dense(net, 4)"
    driver = "spec = tf.estimator.TrainSpec(input_fn, max_steps=3)\n"
    driver += "tf.estimator.train_and_evaluate(estimator, spec, tf.estimator.EvalSpec(input_fn))"
    new, findings = run(program(network=network, driver=driver).replace("def input_fn", names, 1))
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    found = (node for node in ast.walk(ast.parse(new)) if isinstance(node, ast.keyword))
    return next(ast.unparse(node.value) for node in found if node.arg == "variable_partitioner")


def test_both_families_split_random_shapes_alike() -> None:
    assert {form.partition("(")[0].removeprefix("tf.") for form in FORMS} == set(TABLE)
    pairs = [f"({form!r}, {form.replace('tf.', 'tf1.')}, {carried(form)})" for form in FORMS]
    done = warm.run(migrated_python(), "-c", COMPARE.replace("PAIRS", ", ".join(pairs)))
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) > 3000


PROGRAM = """\
import numpy as np
import tensorflow as tf

MODEL_DIR = "/tmp/tf_migrate_tests/partitioners"


def input_fn():
    x = np.random.RandomState(1).uniform(-1.0, 1.0, [64, 7]).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((x, x[:, :1])).repeat().batch(8)


def model_fn(features, labels, mode, params, config):
    PARTITIONER
    with tf.variable_scope("net"SCOPE):
        net = tf.layers.dense(features, 24, activation=tf.nn.relu)
        net = tf.layers.dense(net, 10, activation=tf.nn.relu)
        logits = tf.layers.dense(net, 1)
    loss = tf.losses.mean_squared_error(labels, logits)
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


config = tf.estimator.RunConfig(model_dir=MODEL_DIR)
estimator = tf.estimator.Estimator(model_fn, config=config, params={"layers": 2})
spec = tf.estimator.TrainSpec(input_fn, max_steps=6)
tf.estimator.train_and_evaluate(estimator, spec, tf.estimator.EvalSpec(input_fn, steps=1))
"""
# Name: the lines that make the partitioner, what the scope is given, and the number of shards of each kernel and bias.
IDIOMS = {
    "the input layer's, or as many as servers": (
        "partitioner = params.get('input_layer_partitioner') or tf.min_max_variable_partitioner(\n"
        "        max_partitions=config.num_ps_replicas, min_slice_size=200)",
        ", values=(features,), partitioner=partitioner",
        {"7x24": 3, "24": 1, "24x10": 3, "10": 1, "10x1": 1, "1": 1},
    ),
    "set in the scope, where there are several servers": (
        "n = config.num_ps_replicas\n"
        "    tf.get_variable_scope().set_partitioner(tf.fixed_size_partitioner(n) if n > 1 else None)",
        "",
        {"7x24": 3, "24": 3, "24x10": 3, "10": 3, "10x1": 3, "1": 1},
    ),
    "set by an if": (
        "scope = tf.get_variable_scope()\n"
        "    if config.num_ps_replicas > 1:\n"
        "        scope.set_partitioner(tf.fixed_size_partitioner(config.num_ps_replicas))",
        "",
        {"7x24": 3, "24": 3, "24x10": 3, "10": 3, "10x1": 3, "1": 1},
    ),
    "chosen by an if, and an elif that is not so": (
        "partitioner = None\n"
        "    if config.num_ps_replicas > 8:\n"
        "        partitioner = tf.fixed_size_partitioner(2)\n"
        "    elif config.num_ps_replicas:\n"
        "        partitioner = tf.min_max_variable_partitioner(config.num_ps_replicas, min_slice_size=350)",
        ", partitioner=partitioner",
        {"7x24": 2, "24": 1, "24x10": 3, "10": 1, "10x1": 1, "1": 1},
    ),
    "one for each of two scopes, and none for the third": (
        'with tf.variable_scope("first", partitioner=tf.fixed_size_partitioner(2)):\n'
        "        features = tf.layers.dense(features, 6)\n"
        '    with tf.variable_scope("second", partitioner=tf.fixed_size_partitioner(3)):\n'
        "        features = tf.layers.dense(features, 5)",
        "",
        {"7x6": 2, "6": 2, "6x5": 3, "5": 3, "5x24": 1, "24": 1, "24x10": 1, "10": 1, "10x1": 1, "1": 1},
    ),
    "told to the scope in it": (
        "",
        ") as scope:\n"
        "        scope.set_partitioner(tf.min_max_variable_partitioner(config.num_ps_replicas, min_slice_size=200))",
        {"7x24": 3, "24": 1, "24x10": 3, "10": 1, "10x1": 1, "1": 1},
    ),
}


def variables(server: ForkServer, kind: str, text: str, shape: str, folder: Path) -> list[dict[str, Any]]:
    """The variables of a program on a cluster, as the process that leads it saw them."""
    folder.mkdir()
    (folder / "train.py").write_text(text, encoding="utf-8")
    cluster = ClusterShape.parse(shape, coordinated=kind == "migrated")
    plan = plan_for(kind, folder, cluster)
    outcome = server.run(Launch(kind, folder / "train.py", (), cluster, folder, plan))
    assert outcome.failure is None, outcome.failure
    described = next((folder / "record").glob("*/program.json"))
    found: list[dict[str, Any]] = json.loads(described.read_text(encoding="utf-8"))["variables"]
    return found


@pytest.mark.parametrize("idiom", IDIOMS)
def test_a_cluster_holds_the_same_shards(idiom: str, servers: Servers, tmp_path: Path) -> None:
    made, scope, shards = IDIOMS[idiom]
    text = PROGRAM.replace("PARTITIONER", made or "pass").replace("SCOPE):", scope if "\n" in scope else f"{scope}):")
    new, findings = run(text)
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    before = variables(servers[0], "original", text, "chief=1,ps=3", tmp_path / "a")
    after = variables(servers[1], "migrated", new, "chief=1,worker=1,ps=3", tmp_path / "b")
    assert {"x".join(map(str, v["shape"])): v["shards"] for v in before} == shards
    assert [(v["shape"], v["dtype"], v["rows"]) for v in after] == [(v["shape"], v["dtype"], v["rows"]) for v in before]
