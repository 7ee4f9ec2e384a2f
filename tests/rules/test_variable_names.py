"""Losses that choose variables by name, by place, or all of them: each means in Keras what it meant, or is refused.

The programs of tests/end_to_end/test_variables_by_name_train_the_same.py are run; these look at what is written.
"""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import pytest

from migrator.findings import Severity
from migrator.program.helpers import Scope
from migrator.program.name_conditions import Unknown, value_of
from migrator.program.parsed import ParsedFile, Project
from migrator.program.variable_names import named_layers
from migrator.program.variable_reads import Listed
from tests.rules.programs import program, run, run_or_blocked

ALL = "tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables()])"
SCOPED = """\
with tf.variable_scope("enc"):
    net = tf.layers.dense(net, 3)
with tf.variable_scope("dec"):
    net = tf.layers.dense(net, 3)"""
MSE = "loss = tf.losses.mean_squared_error(labels, logits)"


def parsed(text: str) -> ParsedFile:
    return ParsedFile.parse(Path("train.py"), text)


def migrated(network: str, loss: str, style: str = "native", before: str = "") -> tuple[str, list[str]]:
    """The new program, and the codes of what stands in its way."""
    text = program(network, loss).replace("def model_fn", f"{before}def model_fn")
    new, findings = run(text, style=style)
    return new, [f.code for f in findings if f.severity is Severity.MANUAL]


def choosing(condition: str) -> str:
    return f"{MSE} + tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables() if {condition}])"


# -- the names of TensorFlow 1, as 1.15.5 gives them -----------------------------------------------------------------

NETWORKS = {
    "numbers": (
        "x = tf.layers.dense(x, 3)\nx = tf.layers.dense(tf.layers.dense(x, 3), 3)\nx = tf.layers.conv2d(x, 3, 3)\n",
        ["dense", "dense_1", "dense_2", "conv2d"],
    ),
    "a name that is taken": (
        'x = tf.layers.dense(x, 3, name="dense")\nx = tf.layers.dense(x, 3)\nx = tf.layers.dense(x, 3)\n',
        ["dense", "dense_1", "dense_2"],
    ),
    "scopes": (
        'with tf.variable_scope("a"):\n    x = tf.layers.dense(x, 3)\n    with tf.variable_scope("b"):\n'
        '        x = tf.layers.dense(x, 3, name="out")\n        x = tf.layers.batch_normalization(x)\n'
        "x = tf.layers.dense(x, 3)\n",
        ["a/dense", "a/b/out", "a/b/batch_normalization", "dense"],
    ),
    "a default name of a scope": (
        'with tf.variable_scope(None, "block"):\n    x = tf.layers.dense(x, 3)\n'
        'with tf.variable_scope(None, default_name="block"):\n    x = tf.layers.dense(x, 3)\n',
        ["block/dense", "block_1/dense"],
    ),
    "objects that are called at once": (
        "x = tf.layers.Dense(3)(x)\nx = tf.layers.Dense(3).apply(x)\nx = tf.layers.Conv2D(3, 3)(x)\n",
        ["dense", "dense_1", "conv2d"],
    ),
    "a helper that is given a scope": (
        'x = block(x, "one")\n',
        ["one/dense"],
    ),
    "a helper that is called twice": ('x = block(x, "one")\nx = block(x, name="two")\n', [None, None]),
    "a loop": ("for i in range(2):\n    x = tf.layers.dense(x, 3)\nx = tf.layers.dense(x, 3)\n", [None, None]),
    "a condition": ("if deep:\n    x = tf.layers.dense(x, 3)\nx = tf.layers.dense(x, 3)\n", [None, None]),
    "another number behind a loop": (
        'for i in range(2):\n    x = tf.layers.dense(x, 3)\nwith tf.variable_scope("a"):\n'
        "    x = tf.layers.dense(x, 3)\n",
        [None, "a/dense"],
    ),
    "an object": ("layer = tf.layers.Dense(3)\nx = layer(x)\n", [None, None]),
    "a computed name": ('with tf.variable_scope("a%d" % n):\n    x = tf.layers.dense(x, 3)\n', [None]),
}
HELPER = "import tensorflow as tf\n\n\ndef block(x, name):\n    with tf.variable_scope(name):\n        return tf.layers.dense(x, 3)\n\n\n"  # noqa: E501


@pytest.mark.parametrize("name", NETWORKS)
def test_names_of_layers_are_those_of_a_graph(name: str) -> None:
    body, expected = NETWORKS[name]
    lines = "".join(f"    {line}\n" for line in body.rstrip("\n").split("\n"))
    file = parsed(f"{HELPER}def net(x, deep, n):\n{lines}")
    function = file.functions["net"]
    assert isinstance(function.body, cst.IndentedBlock)
    project = Project.of([file])
    layers = named_layers(project, Scope.of(project, file, function), function.body.body, {})
    assert [layer.exact for layer in layers] == expected


# -- conditions ------------------------------------------------------------------------------------------------------

CONDITIONS: dict[str, object] = {
    "'bias' not in v.name": True,
    "v.name.startswith('enc/')": True,
    "v.op.name.endswith('kernel')": True,
    "v.name.endswith('kernel')": False,
    "v.name.split('/')[0] == 'enc'": True,
    "any(part in v.name for part in PARTS)": False,
    "any(part in v.name for part in ('gamma', 'kernel'))": True,
    "re.search('dense_?[0-9]*/k', v.name) is not None": True,
    "decays(v)": True,
    "decays(v, 'kernel')": False,
    "'enc' in v.name and not v.name.endswith('bias:0')": True,
    "v.name[:3]": "enc",
    "2.0 if 'dense_1' in v.name else 1.0": 1.0,
    "f'{v.op.name}!' == 'enc/dense/kernel!'": True,
    "{part: part in v.name for part in ('enc', 'dec')}['dec']": False,
    "(lambda name: name.split('/')[-1])(v.op.name)": "kernel",
    "decays(**{'v': v, 'without': 'kernel'})": False,
}
UNKNOWN = ["v", "v.name in names", "len(v.shape) > 1", "open(v.name)", "__import__('os').getcwd()", "v.name * 9999"]
MODULE = """\
import re

PARTS = ["gamma", "beta"]


def decays(v, without="bias"):
    \"\"\"Whether a variable decays.\"\"\"
    for part in PARTS:
        if part in v.name:
            return False
    return without not in v.name
"""


def condition(text: str) -> object:
    file = parsed(MODULE)
    code = Listed(file, (), frozenset(), frozenset(("v",)), file.module)
    return value_of(cst.parse_expression(text), code, "enc/dense/kernel:0")


@pytest.mark.parametrize("text", CONDITIONS)
def test_a_condition_is_worked_out(text: str) -> None:
    assert condition(text) == CONDITIONS[text]


@pytest.mark.parametrize("text", UNKNOWN)
def test_what_is_more_than_names_is_not(text: str) -> None:
    with pytest.raises(Unknown):
        condition(text)


# -- programs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "condition", ["'bias' not in v.name", "v.name.endswith('kernel:0')", "v.op.name.split('/')[-1] == 'kernel'"]
)
def test_a_condition_on_weights_changes_no_layer(condition: str) -> None:
    new, refused = migrated(SCOPED, choosing(condition))
    assert not refused and "name=" not in new.replace('Mean(name="loss")', "")


@pytest.mark.parametrize(
    "condition", ["v.name.startswith('enc/')", "'dec' not in v.op.name", "v.name.split('/')[0] == 'enc'"]
)
def test_a_condition_on_layers_gives_them_the_names_of_tensorflow_1(condition: str) -> None:
    new, refused = migrated(SCOPED, choosing(condition))
    assert not refused
    assert all(
        f'Dense({units}, name="{name}")' in new for units, name in ((3, "enc/dense"), (3, "dec/dense"), (1, "dense"))
    )
    assert ".op.name" not in new


def test_a_weight_in_the_name_of_a_scope_is_seen() -> None:
    network = 'with tf.variable_scope("bias_net"):\n    net = tf.layers.dense(net, 3)'
    new, refused = migrated(network, choosing("'bias' not in v.name"))
    assert not refused and 'name="bias_net/dense"' in new


REFUSED = {
    "names of a loop": ("for i in range(2):\n    net = tf.layers.dense(net, 3)", choosing("'dense_1' in v.name")),
    "weights of contrib": ("net = tf.contrib.layers.fully_connected(net, 3)", choosing("'weights' in v.name")),
    "a place": ("net = tf.nn.relu(net)", f"{MSE} + tf.nn.l2_loss(tf.trainable_variables()[0])"),
    "a place in a list of terms": (
        "net = tf.nn.relu(net)",
        f"terms = [tf.nn.l2_loss(v) for v in tf.trainable_variables()]\n{MSE} + terms[-1]",
    ),
    "beside another list": (
        "net = tf.nn.relu(net)",
        f"{MSE} + tf.add_n([r * tf.nn.l2_loss(v) for r, v in zip([0.1, 0.2], tf.trainable_variables())])",
    ),
    "a place, in a helper": ("net = tf.nn.relu(net)", f"{MSE} + first(tf.trainable_variables())"),
    "a layer that nothing reads": ("extra = tf.layers.dense(net, 3)", f"{MSE} + {ALL}"),
    "a layer that only a summary reads": (
        'extra = tf.layers.dense(net, 3)\ntf.summary.histogram("extra", extra)',
        f"{MSE} + {ALL}",
    ),
    "a result of a helper that nothing reads": ("net, extra = two(net)", f"{MSE} + {ALL}"),
    "a layer whose name is given anew": ("h = tf.layers.dense(net, 3)\nh = net * 2.0\nnet = h", f"{MSE} + {ALL}"),
    "a regularizer of a layer that nothing reads": (
        "extra = tf.layers.dense(net, 3, kernel_regularizer=tf.contrib.layers.l2_regularizer(0.1))",
        f"{MSE} + tf.losses.get_regularization_loss()",
    ),
}
HELPERS = """\
def first(variables):
    return tf.nn.l2_loss(variables[0])


def two(net):
    h = tf.layers.dense(net, 3)
    return h, tf.layers.dense(h, 2)


"""


@pytest.mark.parametrize("name", REFUSED)
def test_a_native_model_is_refused_that_has_other_variables(name: str) -> None:
    network, loss = REFUSED[name]
    assert "TFM312" in migrated(network, loss, before=HELPERS)[1]


def test_a_layer_inside_of_a_summary_is_refused() -> None:
    network = 'tf.summary.histogram("extra", tf.layers.dense(net, 3))'
    assert "TFM312" in migrated(network, f"{MSE} + {ALL}")[1]


def test_one_variable_by_its_name_may_be_taken_from_a_list() -> None:
    loss = f'{MSE} + tf.nn.l2_loss([v for v in tf.trainable_variables() if v.name == "dense/kernel:0"][0])'
    new, refused = migrated("net = tf.nn.relu(net)", loss)
    assert not refused and 'name="dense")' in new


def test_unused_layers_matter_only_where_variables_are_read() -> None:
    assert not migrated("extra = tf.layers.dense(net, 3)", MSE)[1]


def test_what_trains_makes_no_variables_of_the_network() -> None:
    text = program(loss=f"{MSE} + {ALL}").replace(
        "optimizer.minimize(loss, global_step=tf.train.get_global_step())",
        "tf.contrib.layers.optimize_loss(loss, tf.train.get_global_step(), 0.1, 'SGD')",
    )
    assert not run_or_blocked(text)[1]
