"""Arguments that `arg_scope` gives are written at the calls inside, where all of these can be seen."""

from __future__ import annotations

import pytest

from migrator.findings import Finding, Severity
from tests.rules.programs import program, run, run_project

HEAD = "import tensorflow as tf\n\nslim = tf.contrib.slim\n"
DENSE = "tf.keras.layers.Dense(4, activation=tf.nn.tanh)"
SCOPE = "slim.arg_scope([slim.fully_connected], activation_fn=tf.nn.tanh)"


def migrated(network: str, before: str = "") -> tuple[str, list[Finding]]:
    """A program with lines of its network and others before its functions, and what must be done by hand in it."""
    text = program(network=network).replace("import tensorflow as tf\n", HEAD + before, 1)
    new, findings = run(text)
    return new, [finding for finding in findings if finding.severity is Severity.MANUAL]


# network -> (before the functions, what the new program says)
WRITTEN = {
    f"with {SCOPE}:\n    net = slim.fully_connected(net, 4)": ("", f"    net = {DENSE}(net)\n"),
    f"with {SCOPE}:\n    # a layer\n    net = slim.fully_connected(net, 4, activation_fn=None)": (
        "",
        "    # a layer\n    net = tf.keras.layers.Dense(4)(net)\n",
    ),
    f"with tf.name_scope('a'), {SCOPE}:\n    net = slim.fully_connected(net, 4)": (
        "",
        f"    with tf.name_scope('a'):\n        net = {DENSE}(net)\n",
    ),
    f"with {SCOPE}:\n    with slim.arg_scope([slim.fully_connected], biases_initializer=None):\n"
    "        net = slim.linear(slim.relu(net, 5), 4)": (
        "",
        "layers.Dense(4, use_bias=False)(tf.keras.layers.Dense(5, use_bias=False, activation=tf.nn.relu)(net))",
    ),
    f"with {SCOPE}:\n    net = dense(net)": (
        "\n\ndef dense(x):\n    return slim.fully_connected(x, 4)\n",
        f"def dense(x):\n    return {DENSE}(x)\n",
    ),
    "with slim.arg_scope(scope_of(tf.nn.tanh)):\n    net = slim.fully_connected(net, 4)": (
        f"\n\ndef scope_of(activation=None):\n    with {SCOPE.replace('tf.nn.tanh', 'activation')} as scope:\n"
        "        return scope\n",
        f"    net = {DENSE}(net)\n",
    ),
    f"with {SCOPE}:\n    net = slim.fully_connected(net, 4)\nnet = slim.fully_connected(net, 4)": (
        "",
        f"    net = {DENSE}(net)\n    net = {DENSE.replace('tanh', 'relu')}(net)\n",
    ),
    f"with {SCOPE}:\n    points = {{}}\n    other = tf.constant([1.0])\n    points.update(net=net + other.mystery())\n"
    "    net = slim.fully_connected(points.get('net'), net.get_shape().as_list()[1])": (
        "",
        DENSE.replace("4", "net.get_shape().as_list()[1]") + "(net_2)\n",
    ),
    "options = {'decay': 0.9}\n"
    "with slim.arg_scope([slim.batch_norm], scale=True, **options):\n"
    "    net = slim.fully_connected(net, 4, normalizer_fn=slim.batch_norm, normalizer_params={'decay': 0.8})": (
        "",
        "FusedBatchNormalization(momentum=1.0)(tf.keras.layers.Dense(4, use_bias=False)(net), training=True)",
    ),
}


@pytest.mark.parametrize("network", WRITTEN)
def test_arguments_are_written_at_the_calls(network: str) -> None:
    before, said = WRITTEN[network]
    new, problems = migrated(network, before)
    assert not problems and said in new
    assert "arg_scope" not in new and "scope_of" not in new and "options" not in new.replace("options = {", "")


DROP = "\n\ndef drop(x, training):\n    return slim.dropout(x, 0.8{})\n"
IS_TRAINING = "is_training = mode == tf.estimator.ModeKeys.TRAIN\n"


def test_a_name_of_the_caller_is_the_parameter_that_it_is_given_to() -> None:
    scoped = f"{IS_TRAINING}with slim.arg_scope([slim.dropout], is_training=is_training):\n    "
    new, problems = migrated(scoped + "net = drop(net, is_training)", DROP.format(""))
    assert not problems and "tf.keras.layers.Dropout(0.2)(net)\n" in new
    same, _ = migrated(f"{IS_TRAINING}net = drop(net, is_training)", DROP.format(", is_training=training"))
    assert new == same
    for call in ("drop(net, True)", "drop(net, not is_training)"):
        _, problems = migrated(f"{scoped}net = {call}", DROP.format(""))
        assert any("cannot see where these arguments come from" in p.message for p in problems)


SCOPED = f"with {SCOPE}:\n    "
MAKER = (
    "\n\nWHICH = tf.nn.tanh\n\n\ndef {0}(act=WHICH):\n"
    "    with slim.arg_scope([slim.fully_connected], activation_fn=act) as scope:\n        return scope\n"
)
# network -> (before the functions, why the scope stays)
STAY = {
    SCOPED + "net = dense(net)\nnet = dense(net)": (
        "\n\ndef dense(x):\n    return slim.fully_connected(x, 4)\n",
        "is called with other arguments elsewhere",
    ),
    SCOPED + "net = dense(net)": (
        "\n\ndef dense(x):\n    return slim.fully_connected(x, 4)\n\n\nKINDS = [dense]\n",
        "is used elsewhere as well",
    ),
    "rate = params['rate']\nwith slim.arg_scope([slim.dropout], keep_prob=rate):\n    net = drop(net)": (
        "\n\ndef drop(x):\n    return slim.dropout(x)\n",
        "cannot see where these arguments come from",
    ),
    SCOPED + "net = slim.repeat(net, 2, slim.fully_connected, 4)": (
        "",
        "`slim.fully_connected` is passed around inside",
    ),
    SCOPED + "layer = lambda x: slim.fully_connected(x, 4)\nnet = layer(net)": ("", "`layer` is passed around inside"),
    SCOPED + "net = params['layer'](net)": ("", "`params['layer']` is called inside and cannot be resolved"),
    SCOPED + "net = nets.dense(net)": ("import nets\n", "`nets.dense` is called inside and cannot be resolved"),
    "with scoped():\n    net = slim.fully_connected(net, 4)": (
        f"import contextlib\n\n\n@contextlib.contextmanager\ndef scoped():\n    with {SCOPE}:\n        yield\n",
        "a `yield` leaves and re-enters it",
    ),
    SCOPED + "net = part(part(net))": (
        "import functools\n\n\ndef dense(x, n):\n    return slim.fully_connected(x, n)\n\n\n"
        "def make():\n    return functools.partial(dense, n=4)\n\n\npart = make()\n",
        "`part` is called inside and cannot be resolved",
    ),
    SCOPED + "net = Net(net).out": (
        "\n\nclass Net:\n    def __init__(self, x):\n        self.out = slim.fully_connected(x, 4)\n",
        "`Net` is called inside and cannot be resolved",
    ),
    "layer = lambda x: slim.fully_connected(x, 4)\n" + SCOPED + "net = tf.map_fn(layer, net)": (
        "",
        "`layer` is passed around inside",
    ),
    "with slim.arg_scope([slim.dropout], keep_prob=tf.random_uniform([])):\n    net = slim.dropout(net)": (
        "",
        "`tf.random_uniform` is created once for all calls inside",
    ),
    "with slim.arg_scope([tf.layers.dense], units=3):\n    net = tf.layers.dense(net)": (
        "",
        "not a supported function of tf.contrib",
    ),
    "with slim.arg_scope([slim.flatten], padding='SAME'):\n    net = slim.flatten(net)": ("", "has no `padding`"),
    "with slim.arg_scope([slim.fully_connected], num_outputs=3):\n    net = slim.fully_connected(net, 4)": (
        "",
        "is also a positional argument of a call inside",
    ),
    "act = tf.nn.tanh\nwith slim.arg_scope([slim.fully_connected], activation_fn=act):\n"
    "    net = slim.fully_connected(net, 4)\n    act = tf.nn.relu\n    net = slim.fully_connected(net, 4)": (
        "",
        "`act` is reassigned inside",
    ),
    "with slim.arg_scope(made(3)):\n    net = slim.fully_connected(net, 4)": (
        "from scopes import made\n",
        "cannot tell what `made` returns",
    ),
    "builder = VGG()\n" + SCOPED + "net = builder.build(net)": (
        "from vgg import VGG\n",
        "`builder.build` is called inside and cannot be resolved",
    ),
    SCOPED + "net = BUILDER.build(net)": (
        "from vgg import VGG\n\nBUILDER = VGG()\n",
        "`BUILDER.build` is called inside and cannot be resolved",
    ),
    SCOPED + "net = params.net_fn(net)": ("", "`params.net_fn` is called inside and cannot be resolved"),
    SCOPED + "net = VGG().build(net)": (
        "from vgg import VGG\n",
        "`VGG().build` is called inside and cannot be resolved",
    ),
    SCOPED + "net = built(net)": (
        "from vgg import VGG\n\nBUILDER = VGG()\n\n\ndef built(x):\n    return BUILDER.build(x)\n",
        "cannot be passed its arguments: `BUILDER.build` is called inside and cannot be resolved",
    ),
    "with slim.arg_scope([slim.fully_connected], activation_fn=ACT):\n    choose()\n"
    "    net = slim.fully_connected(net, 4)": (
        "\nACT = tf.nn.tanh\n\n\ndef choose():\n    global ACT\n    ACT = tf.nn.relu\n",
        "`ACT` is reassigned inside",
    ),
    SCOPED + "net = starred(net)": (
        "\n\ndef starred(x, **more):\n    return slim.fully_connected(x, 4, **more)\n",
        "cannot be passed its arguments: a call inside has * or ** arguments",
    ),
    SCOPED + "net = first(net)": (
        "\n\ndef first(x):\n    return slim.fully_connected(x, 4, tf.nn.relu)\n",
        "is also a positional argument of a call inside",
    ),
    "with slim.arg_scope([slim.batch_norm], decay=0.9):\n    net = normed(net, None)": (
        "\n\ndef normed(x, norm):\n    return slim.fully_connected(x, 4, normalizer_fn=norm)\n",
        "the normalizer_fn of a call inside cannot be resolved",
    ),
    "WHICH = tf.nn.relu\nwith slim.arg_scope(shaded()):\n    net = WHICH(slim.fully_connected(net, 4))": (
        MAKER.format("shaded"),
        "the default of `act` in `shaded` has another meaning here",
    ),
    "with slim.arg_scope(early()):\n    net = slim.fully_connected(net, 4)": (
        MAKER.format("early") + "\n\nWHICH = tf.nn.relu\n",
        "the default of `act` in `early` has another meaning here",
    ),
}


@pytest.mark.parametrize("network", STAY)
def test_a_scope_with_calls_that_cannot_be_seen_stays(network: str) -> None:
    before, why = STAY[network]
    _, problems = migrated(network, before)
    assert any(p.code == "TFM224" and "this `arg_scope` stays" in p.message and why in p.message for p in problems), (
        problems
    )


def test_functions_that_call_each_other() -> None:
    circle = (
        "\n\ndef a(x, n):\n    x = slim.fully_connected(x, 4)\n    return b(x, n - 1) if n else x\n"
        "\n\ndef b(x, n):\n    x = slim.fully_connected(x, 4)\n    return a(x, n - 1) if n else x\n"
    )
    new, problems = migrated(SCOPED + "net = a(net, 3)", circle)
    assert problems or new.count(DENSE) == 2
    assert not problems or any("is called with other arguments elsewhere" in p.message for p in problems)


def test_scopes_reach_over_files() -> None:
    nets = (
        "import tensorflow as tf\n\nslim = tf.contrib.slim\n\n\ndef dense(x):\n    return slim.fully_connected(x, 4)\n"
    )
    text = program(network=SCOPED + "net = nets.dense(net)").replace(
        "import tensorflow as tf\n", HEAD + "import nets\n", 1
    )
    results = run_project({"train.py": text, "nets.py": nets})
    assert not [f for _, found in results.values() for f in found if f.severity is Severity.MANUAL]
    assert f"return {DENSE}(x)" in results["nets.py"][0] and "    net = nets.dense(net)\n" in results["train.py"][0]
    other = nets.replace("slim = tf.contrib.slim", "from tensorflow.contrib import layers as slim")
    tanh = text.replace("tf.nn.tanh", "slim.nn.tanh")
    results = run_project({"train.py": tanh, "nets.py": other})
    assert any(f.code == "TFM224" for _, found in results.values() for f in found)


NETS = f"""{HEAD}

def scope_of(decay=0.1):
    with slim.arg_scope([slim.fully_connected], weights_regularizer=slim.l2_regularizer(decay)):
        with slim.arg_scope([slim.fully_connected], activation_fn=tf.nn.tanh) as scope:
            return scope


def dense(x):
    return slim.fully_connected(x, 4)
"""


@pytest.mark.parametrize("imports", ["from nets import dense, scope_of\n", "from nets import scope_of\nimport nets\n"])
def test_a_function_that_makes_a_scope_goes_with_its_import(imports: str) -> None:
    call = "nets.dense(net)" if "import nets\n" in imports else "dense(net)"
    text = program(network=f"with slim.arg_scope(scope_of(decay=0.2)):\n    net = {call}")
    text = text.replace("import tensorflow as tf\n", HEAD + imports, 1)
    text = text.replace("    optimizer =", "    loss += tf.losses.get_regularization_loss()\n    optimizer =")
    results = run_project({"train.py": text, "nets.py": NETS})
    assert not [f for _, found in results.values() for f in found if f.severity is Severity.MANUAL]
    assert "kernel_regularizer=tf.keras.regularizers.L2(0.1), activation=tf.nn.tanh)(x)" in results["nets.py"][0]
    assert "scope" not in results["nets.py"][0] + results["train.py"][0]
    assert ("from nets import dense\n" if "dense," in imports else "import nets\n") in results["train.py"][0]


@pytest.mark.parametrize("own", ["ACT = tf.nn.sigmoid\n", ""])
@pytest.mark.parametrize(
    ("default", "is_said"), [("ACT", False), ("None", True), ("tf.nn.tanh", True), ("lambda x: ACT(x)", False)]
)
def test_defaults_of_a_function_of_another_file(own: str, default: str, is_said: bool) -> None:
    nets = (
        f"{HEAD}\nACT = tf.nn.tanh\n\n\ndef scope_of(act={default}):\n"
        "    with slim.arg_scope([slim.fully_connected], activation_fn=act) as scope:\n        return scope\n"
    )
    text = program(network="with slim.arg_scope(scope_of()):\n    net = slim.fully_connected(net, 4)")
    text = text.replace("import tensorflow as tf\n", f"{HEAD}from nets import scope_of\n\n{own}", 1)
    results = run_project({"train.py": text, "nets.py": nets})
    problems = [f for _, found in results.values() for f in found if f.severity is Severity.MANUAL]
    standing = {f.path for f in problems if f.code == "TFM270"}  # the function that nobody calls now has slim's names
    problems = [f for f in problems if f.code != "TFM270"]
    if is_said:
        assert standing == {"nets.py"}
        assert (
            not problems and f"tf.keras.layers.Dense(4{', activation=' * (default != 'None')}" in results["train.py"][0]
        )
    else:
        assert any("the default of `act` in `scope_of` has another meaning here" in p.message for p in problems)


def test_a_default_that_is_a_number_of_another_file() -> None:
    nets = NETS.replace("decay=0.1", "decay=DECAY").replace("\n\ndef scope_of", "\nDECAY = 0.2\n\n\ndef scope_of", 1)
    text = program(network="with slim.arg_scope(scope_of()):\n    net = dense(net)")
    text = text.replace("import tensorflow as tf\n", HEAD + "from nets import dense, scope_of\n", 1)
    text = text.replace("    optimizer =", "    loss += tf.losses.get_regularization_loss()\n    optimizer =")
    results = run_project({"train.py": text, "nets.py": nets})
    assert not [f for _, found in results.values() for f in found if f.severity is Severity.MANUAL]
    assert "kernel_regularizer=tf.keras.regularizers.L2(0.1)" in results["nets.py"][0]


def test_a_class_of_a_file_that_is_not_given() -> None:
    text = program(network="net = Net().go(net)").replace(
        "import tensorflow as tf\n",
        f"{HEAD}from base import Base\n\n\nclass Net(Base):\n    def go(self, x):\n        with {SCOPE}:\n"
        "            return super().build(x)\n",
        1,
    )
    _, findings = run(text)
    assert any("`super().build` is called inside and cannot be resolved" in f.message for f in findings)
