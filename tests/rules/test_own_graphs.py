"""Functions that run a graph of their own in a session, beside the training."""

from __future__ import annotations

import ast

import pytest

from migrator.findings import Severity
from tests.rules.programs import program, run

BENCHMARK = '''\
def read(path):
    tf.logging.info(path)
    with open(path, "rb") as file:
        return file.read()


def benchmark(path, feed):
    """Times a frozen graph."""
    config = tf.ConfigProto(intra_op_parallelism_threads=1)
    config.graph_options.rewrite_options.constant_folding = rewriter_config_pb2.RewriterConfig.OFF
    definition = tf.GraphDef()
    definition.ParseFromString(read(path))
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(definition, name="")
    session = tf.Session(graph=graph, config=config)

    def once(session):
        tf_logging.warn("once")
        return session.run("out:0", feed)

    return once(session)


'''
IMPORTS = """\
import tensorflow_hub as hub
from tensorflow.core.protobuf import rewriter_config_pb2
from tensorflow.python.platform import tf_logging
"""


def beside(code: str = BENCHMARK) -> str:
    called = f'{IMPORTS}\n\n{code}if len(FOLDER) > 3:\n    benchmark("a.pb", {{}})\n'
    return program().replace("estimator = ", f'{called}FOLDER = "abc"\nestimator = ', 1).replace("(FOLDER", '("abc"')


def blocking(text: str) -> list[str]:
    return sorted({finding.code for finding in run(text)[1] if finding.severity is Severity.MANUAL})


def test_it_stays_as_it_is_with_the_names_of_compat() -> None:
    new, findings = run(beside())
    assert not blocking(beside()) and "TFM187" in {finding.code for finding in findings}
    ast.parse(new)
    for line in (
        '    """Times a frozen graph."""\n    from tensorflow.core.protobuf import rewriter_config_pb2\n',
        "    config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1)\n",
        "    definition = tf.compat.v1.GraphDef()\n",
        "    session = tf.compat.v1.Session(graph=graph, config=config)\n",
        '        tf.compat.v1.logging.warn("once")\n',
        "    tf.get_logger().info(path)\n",
        "fit(",
    ):
        assert line in new, line
    assert run(new)[0] == new


def test_a_session_inside_of_its_graph() -> None:
    code = BENCHMARK.replace("    session = tf.Session(graph=graph, config=config)\n", "").replace(
        '        tf.import_graph_def(definition, name="")\n',
        '        tf.import_graph_def(definition, name="")\n        session = tf.Session(config=config)\n',
    )
    assert not blocking(beside(code)) and "tf.compat.v1.Session(config=config)" in run(beside(code))[0]


def test_a_graph_that_has_its_name_from_with() -> None:
    code = BENCHMARK.replace("    graph = tf.Graph()\n", "").replace(
        "with graph.as_default():", "with tf.Graph().as_default() as graph:"
    )
    assert not blocking(beside(code)) and "tf.compat.v1.Session(graph=graph" in run(beside(code))[0]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(graph=graph, config=config)", "(config=config)"),
        ("(graph=graph, config=config)", "(graph=tf.get_default_graph())"),
        ("graph = tf.Graph()", "graph = graphs[0]"),
        ("    with graph.as_default():", "    graph = graphs[0]\n    with graph.as_default():"),
        ("    with graph.as_default():", "    with open(path) as graph:"),
        ("    with graph.as_default():", "    with graphs[0] as graph, graph.as_default():"),
        ("    tf.logging.info(path)\n", "    tf.cast(path, tf.int32)\n"),
        ('"out:0", feed', "tf.nn.softmax(feed)"),
        ('        tf.import_graph_def(definition, name="")', "        tf.layers.dense(definition, 3)"),
        ("rewriter_config_pb2.RewriterConfig.OFF", "tf.contrib.nothing.OFF"),
        ('        tf.import_graph_def(definition, name="")', "        hub.Module(path)"),
    ],
)
def test_what_asks_for_more_than_its_own_graph_blocks(old: str, new: str) -> None:
    assert old in BENCHMARK
    text = beside(BENCHMARK.replace(old, new, 1))
    assert blocking(text) and run(text)[0] == text


IMPORTED = """\
    if FROZEN and mode == tf.estimator.ModeKeys.PREDICT:
        definition = tf.GraphDef()
        tf.graph_util.import_graph_def(definition, {"x": features}, ["y"], name="")
        found = [tf.get_default_graph().get_tensor_by_name(name + ":0") for name in ["y"]]
        return tf.estimator.EstimatorSpec(mode, predictions={"y": found[0]})
    else:
        with tf.variable_scope("model"):
            net = tf.get_variable("w", [1]) * features
            if mode == tf.estimator.ModeKeys.PREDICT:
                return tf.estimator.EstimatorSpec(mode, predictions={"y": net})
            loss = tf.losses.mean_squared_error(labels, net)
            train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
            return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
"""


def imported(body: str = IMPORTED, driver: str = "estimator.train(input_fn, steps=3)\n") -> str:
    head = "import tensorflow as tf\n\nFROZEN = None\n\n\ndef input_fn():\n"
    head += "    return tf.data.Dataset.from_tensors(1.0)\n\n\ndef model_fn(features, labels, mode):\n"
    made = "\n\nestimator = tf.estimator.Estimator(model_fn)\n"
    return f"{head}{body}{made}{driver}for one in estimator.predict(input_fn):\n    print(one)\n"
