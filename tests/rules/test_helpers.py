"""Helper functions of a model_fn: those of the network stay, those of loss, training and metrics are read through."""

from __future__ import annotations

import ast

import pytest

from migrator.findings import Finding, Severity
from tests.rules.programs import program, run, run_project

HEAD = """\
import tensorflow as tf

"""
TAIL = """

def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(1)


estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn, steps=3)
"""
LOGITS = "logits = tf.layers.dense(features, 1)\n"
LOSS = "loss = tf.losses.mean_squared_error(labels, logits)\n"
OP = "tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=tf.train.get_global_step())"
TRAIN = f"train_op = {OP}\n"
END = "return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)\n"
TRAINING = "mode == tf.estimator.ModeKeys.TRAIN"


def indented(text: str) -> str:
    return "".join(f"    {line}\n" if line else "\n" for line in text.rstrip("\n").split("\n"))


def text_of(helpers: str, body: str) -> str:
    return f"{HEAD}\n{helpers}\n\ndef model_fn(features, labels, mode):\n{indented(body)}{TAIL}"


def manual(findings: list[Finding]) -> list[Finding]:
    return [f for f in findings if f.severity is Severity.MANUAL]


def migrated(helpers: str, body: str) -> str:
    new, findings = run(text_of(helpers, body))
    assert not manual(findings), findings
    ast.parse(new)
    return new


# -- helpers of the network ----------------------------------------------------------------------------------------

DROP = "def network(x, is_training):\n    x = tf.layers.dropout(x, 0.3, training=is_training)\n    return x\n"
IN_BRANCH = (
    "def network(x, is_training):\n    if is_training:\n"
    + "        # noise\n        x = tf.nn.dropout(x, 0.7)\n    return x\n"
)
BY_MODE = (
    "def network(x, mode):\n    train = mode == tf.estimator.ModeKeys.TRAIN\n"
    "    return tf.layers.dropout(x, 0.3, training=train)\n"
)
TWO_DEEP = (
    "def inner(x, rate, training=False):\n    return tf.layers.dropout(x, rate, training=training)\n\n\n"
    "def network(x, is_training):\n    return inner(x, 0.3, training=is_training)\n"
)
# helper -> (its text, what it is told, its text afterwards)
STAY = {
    "a flag": (DROP, TRAINING, "def network(x):\n    x = tf.keras.layers.Dropout(0.3)(x)\n    return x\n"),
    "a branch": (
        IN_BRANCH,
        TRAINING,
        "def network(x):\n    # noise\n    x = tf.keras.layers.Dropout(rate=1.0 - 0.7)(x)\n    return x\n",
    ),
    "the mode": (BY_MODE, "mode", "def network(x):\n    return tf.keras.layers.Dropout(0.3)(x)\n"),
    "two deep": (
        TWO_DEEP,
        TRAINING,
        "def inner(x, rate):\n    return tf.keras.layers.Dropout(rate)(x)\n\n\n"
        "def network(x):\n    return inner(x, 0.3)\n",
    ),
    "never": (
        DROP,
        "False",
        "def network(x):\n    x = tf.keras.layers.Dropout(0.3)(x, training=False)\n    return x\n",
    ),
    "unread": ("def network(x, mode):\n    return 2.0 * x\n", "mode", "def network(x):\n    return 2.0 * x\n"),
}


@pytest.mark.parametrize("name", STAY)
def test_a_helper_of_the_network_stays_without_the_mode(name: str) -> None:
    helper, told, wanted = STAY[name]
    body = f"logits = tf.layers.dense(network(features, {told}), 1)\n{LOSS}{TRAIN}{END}"
    new = migrated(helper, body)
    assert wanted in new, new
    assert "tf.keras.layers.Dense(1)(network(features))" in new


def test_a_flag_with_a_name_goes_with_the_argument() -> None:
    body = f"on = {TRAINING}\nlogits = network(x=features, is_training=on)\n{LOSS}{TRAIN}{END}"
    new = migrated(DROP, body)
    assert "on = " not in new and "logits = network(x=features)\n" in new


def test_one_helper_with_two_modes_is_refused() -> None:
    body = f"a = network(features, True)\nlogits = network(a, {TRAINING})\n{LOSS}{TRAIN}{END}"
    text = text_of(DROP, body)
    new, findings = run(text)
    assert new == text and "TFM122" in [f.code for f in manual(findings)]


def test_a_helper_that_is_called_elsewhere_too_is_refused() -> None:
    text = text_of(DROP, f"logits = network(features, {TRAINING})\n{LOSS}{TRAIN}{END}")
    text = text.replace("estimator = ", "print(network(1.0, True))\nestimator = ")
    new, findings = run(text)
    assert new == text
    assert [(f.code, text.splitlines()[f.line - 1]) for f in manual(findings)] == [
        ("TFM122", "print(network(1.0, True))")
    ]


CLASS = """\
class Network(object):
    def __init__(self, units):
        self.units = units

    def __call__(self, x, is_training):
        x = tf.layers.dense(x, self.units)
        for _ in range(2):
            x = network(x, is_training)
        return x


"""


def test_a_helper_that_only_a_class_calls_which_goes() -> None:
    made = f"made = Network(4)\nnet = made(features, {TRAINING})\nlogits = tf.layers.dense(net, 1)\n{LOSS}{TRAIN}{END}"
    new = migrated(f"{DROP}\n\n{CLASS}", made)
    assert "class Network" not in new
    assert "def network(x):\n    x = tf.keras.layers.Dropout(0.3)(x)\n" in new
    assert "    for _ in range(2):\n        x = network(x)\n" in new


def test_a_helper_that_a_class_calls_which_stays() -> None:
    made = f"made = Network(4)\nnet = made(features, {TRAINING})\nlogits = tf.layers.dense(net, 1)\n{LOSS}{TRAIN}{END}"
    text = text_of(f"{DROP}\n\n{CLASS}", made).replace("estimator = ", "print(Network(3))\nestimator = ")
    new, findings = run(text)
    assert new == text and "TFM122" in {f.code for f in manual(findings)}


# -- helpers that are read through ---------------------------------------------------------------------------------

# what -> (helpers, body of the model_fn, what must stand in the new program, what must not)
READ: dict[str, tuple[str, str, tuple[str, ...], tuple[str, ...]]] = {
    "the loss": (
        f"def compute_loss(labels, logits):\n    # as in the paper\n    {LOSS}    return loss\n",
        f"{LOGITS}loss = compute_loss(labels, logits)\n{TRAIN}{END}",
        ("loss=tf.keras.losses.MeanSquaredError()", "# as in the paper"),
        ("compute_loss",),
    ),
    "the loss in one expression": (
        "def error(a, b):\n    return tf.square(a - b)\n",
        f"{LOGITS}loss = tf.reduce_mean(error(labels, logits))\n{TRAIN}{END}",
        ("        loss = tf.reduce_mean(tf.square(labels - logits))\n",),
        ("error(",),
    ),
    "the train_op": (
        "def train(loss, rate=0.5):\n    optimizer = tf.train.AdagradOptimizer(rate)\n"
        "    step = tf.train.get_global_step()\n    return optimizer.minimize(loss, global_step=step)\n",
        f"{LOGITS}{LOSS}train_op = train(loss)\n{END}",
        ("Adagrad(learning_rate=0.5",),
        ("def train(", "step ="),
    ),
    "network and loss together": (
        "def create_model(features, labels, units):\n    net = tf.layers.dense(features, units)\n"
        "    out = tf.layers.dense(net, 1)\n    with tf.variable_scope('loss'):\n"
        "        loss = tf.losses.mean_squared_error(labels, out)\n        return (loss, out)\n",
        f"(total_loss, logits) = create_model(features, labels, 4)\n"
        f"{TRAIN.replace('loss', 'total_loss')}{END.replace('loss=loss', 'loss=total_loss')}",
        ("net = tf.keras.layers.Dense(4)(features)", "logits = tf.keras.layers.Dense(1)(net)"),
        ("create_model", "total_loss"),
    ),
    "the whole spec of a mode": (
        f"def train_spec(mode, loss):\n    {TRAIN}    {END}",
        f"{LOGITS}{LOSS}if mode == tf.estimator.ModeKeys.EVAL:\n"
        f"    return tf.estimator.EstimatorSpec(mode, loss=loss)\nreturn train_spec(mode, loss)\n",
        ("optimizer=tf.keras.optimizers.legacy.SGD(learning_rate=0.1)",),
        ("train_spec",),
    ),
    "metrics from a function inside": (
        "",
        f"{LOGITS}{LOSS}def metric_fn(labels, logits):\n"
        "    return {'mae': tf.metrics.mean_absolute_error(labels, logits)}\n"
        f"metrics = metric_fn(labels, logits)\n{TRAIN}"
        "return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)\n",
        ("tf.keras.metrics.MeanAbsoluteError(name='mae')",),
        ("metric_fn",),
    ),
    "a helper with a branch over the mode": (
        "def output(x, mode):\n    y = tf.layers.dense(x, 1)\n    if mode == tf.estimator.ModeKeys.PREDICT:\n"
        "        return tf.sigmoid(y)\n    return y\n",
        f"logits = output(features, mode)\nif mode == tf.estimator.ModeKeys.PREDICT:\n"
        f"    return tf.estimator.EstimatorSpec(mode, predictions=logits)\n{LOSS}{TRAIN}{END}",
        ("y = tf.keras.layers.Dense(1)(features)\n    logits = y\n",),
        ("sigmoid", "def output"),
    ),
    "names that mean something else in the helper": (
        "def error(net, logits):\n    features = net - logits\n    return tf.reduce_mean(tf.square(features))\n",
        f"{LOGITS}loss = error(labels, logits)\n{TRAIN}{END}",
        ("features_2 = labels - logits\n", "model = Model(features, logits)"),
        ("def error",),
    ),
    "an entry that the helper changes": (
        "def train(loss, conf, rate):\n    conf['rate'] = 9.0\n"
        "    optimizer = tf.train.GradientDescentOptimizer(rate)\n"
        "    return optimizer.minimize(loss, global_step=tf.train.get_global_step())\n",
        f"conf = {{'rate': 0.5}}\n{LOGITS}{LOSS}train_op = train(loss, conf, conf['rate'])\n{END}",
        ("    rate_2 = 0.5\n", "    rate = rate_2\n", "SGD(learning_rate=rate)"),
        ("conf",),
    ),
    "a parameter that the helper changes": (
        "def error(a, b):\n    a = a * 2.0\n    return tf.reduce_mean(tf.square(a - b))\n",
        f"{LOGITS}loss = error(labels, logits)\n{TRAIN}{END}",
        ("a = labels\n", "a = a * 2.0\n", "tf.square(a - logits)"),
        ("labels = labels",),
    ),
}


@pytest.mark.parametrize("name", READ)
def test_a_helper_is_read_through(name: str) -> None:
    helpers, body, wanted, unwanted = READ[name]
    new = migrated(helpers, body)
    for text in wanted:
        assert text in new, new
    for text in unwanted:
        assert text not in new, new


def test_another_network_for_predictions_is_refused() -> None:
    helpers, body, _, _ = READ["a helper with a branch over the mode"]
    text = text_of(helpers, body) + "for p in estimator.predict(input_fn):\n    print(p)\n"
    new, findings = run(text)
    assert new == text and [f.code for f in manual(findings)] == ["TFM106"]


def test_a_helper_that_is_used_elsewhere_is_left() -> None:
    helper = "def error(a, b):\n    return tf.reduce_mean(tf.square(a - b))\n"
    text = text_of(helper, f"{LOGITS}loss = error(labels, logits)\n{TRAIN}{END}") + "print(error(1.0, 2.0))\n"
    new, findings = run(text)
    assert not manual(findings)
    assert "def error(a, b):" in new and "loss = tf.reduce_mean(tf.square(labels - logits))\n" in new


SIBLING = """\
import numpy as np
import tensorflow as tf

SCALE = 2.0


def network(x, is_training):
    return tf.layers.dropout(tf.layers.dense(x, 1), 0.2, training=is_training)


def error(a, b):
    return tf.reduce_mean(tf.square(a - b) * SCALE)


def power(a, b):
    return tf.reduce_mean(np.float32(2) * tf.square(a - b))
"""


def sibling_project(imports: str, network: str, error: str) -> dict[str, str]:
    body = f"logits = {network}(features, {TRAINING})\nloss = {error}(labels, logits)\n{TRAIN}{END}"
    return {"network.py": SIBLING, "train.py": text_of("", body).replace(HEAD, HEAD + imports + "\n")}


def test_helpers_of_a_module_beside_the_model() -> None:
    files = sibling_project("import network as nets", "nets.network", "nets.error")
    results = run_project(files)
    assert not [f for _, found in results.values() for f in manual(found)]
    assert "tf.square(labels - logits) * nets.SCALE" in results["train.py"][0]
    assert "logits = nets.network(features)" in results["train.py"][0]
    new = results["network.py"][0]
    assert "def network(x):" in new and "def error" not in new and "SCALE = 2.0" in new


def test_an_import_of_what_is_read_through_goes() -> None:
    files = sibling_project("from network import SCALE, error, network", "network", "error")
    results = run_project(files)
    assert not [f for _, found in results.values() for f in manual(found)]
    assert "from network import SCALE, network\n" in results["train.py"][0]
    assert "def error" not in results["network.py"][0]


@pytest.mark.parametrize(
    ("imports", "error", "line"),
    [
        ("from network import error, network", "error", "from network import SCALE, network\n"),
        ("from network import network, power", "power", "import numpy as np\n"),
    ],
)
def test_names_of_another_file_are_imported(imports: str, error: str, line: str) -> None:
    files = sibling_project(imports, "network", error)
    results = run_project(files)
    assert not [f for _, found in results.values() for f in manual(found)]
    new = results["train.py"][0]
    assert line in new and f"def {error}" not in results["network.py"][0]
    assert ("np" in line) == ("np.float32(2) * tf.square(labels - logits)" in new)
    assert new.count("import numpy") + new.count("SCALE,") == 1


# what stands in the way -> (what the file of the model_fn has more, what that of the helper has more)
NOT_IMPORTED = {
    "the name is used here": ("SCALE = 3.0\n", ""),
    "a function here has it as a parameter": ("def double(SCALE):\n    return SCALE * 2\n", ""),
    "the value changes there": ("", "def change():\n    global SCALE\n    SCALE = 3.0\n"),
}


@pytest.mark.parametrize("name", NOT_IMPORTED)
def test_names_of_another_file_that_cannot_be_imported(name: str) -> None:
    here, there = NOT_IMPORTED[name]
    files = sibling_project("from network import error, network", "network", "error")
    files = {"network.py": files["network.py"] + there, "train.py": files["train.py"] + here}
    results = run_project(files)
    assert {path: text for path, (text, _) in results.items()} == files
    found = manual(results["train.py"][1])
    assert [f.code for f in found] == ["TFM121"] and "import `SCALE` from there as well" in found[0].message


def test_a_finding_inside_a_helper_names_the_helpers_line() -> None:
    sibling = SIBLING.replace("tf.square(a - b) * SCALE", "tf.placeholder(tf.float32) * tf.square(a - b)")
    files = sibling_project("import network as nets", "nets.network", "nets.error") | {"network.py": sibling}
    results = run_project(files)
    assert {path: text for path, (text, _) in results.items()} == files
    found = manual(results["network.py"][1])
    assert any("tf.placeholder" in sibling.splitlines()[f.line - 1] for f in found), found


# helper -> (its text, the code)
REFUSED = {
    "a generator": "def error(a, b):\n    yield tf.reduce_mean(tf.square(a - b))\n",
    "star arguments": "def error(*args):\n    return tf.reduce_mean(tf.square(args[0] - args[1]))\n",
    "a return in a loop": (
        "def error(a, b):\n    for _ in range(2):\n        return tf.reduce_mean(tf.square(a - b))\n"
    ),
    "a decorator": "@keep\ndef error(a, b):\n    return tf.reduce_mean(tf.square(a - b))\n",
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_helper_that_cannot_be_followed_is_refused(name: str) -> None:
    text = text_of(REFUSED[name], f"{LOGITS}loss = error(labels, logits)\n{TRAIN}{END}")
    new, findings = run(text)
    assert new == text
    lines = [text.splitlines()[f.line - 1] for f in manual(findings) if f.code == "TFM120"]
    assert lines == ["    loss = error(labels, logits)"], findings


TWICE = """\
def tower(x):
    return tf.layers.dense(x, 4, name="tower")


"""


@pytest.mark.parametrize(
    "network",
    [
        "net = tower(net) + tower(net * 2)",
        "for _ in range(2):\n    net = tower(net)",
        "net = sum([tower(net) for _ in range(2)])",
    ],
    ids=["two calls", "a loop", "a list"],
)
def test_a_helper_with_a_layer_name_is_called_once(network: str) -> None:
    text = program(network=network).replace("def model_fn", TWICE + "def model_fn")
    new, findings = run(text)
    assert new == text
    found = [f for f in findings if f.code == "TFM202"]
    assert found and "tower(net" in text.splitlines()[found[0].line - 1]
    once = program(network="net = tower(net)").replace("def model_fn", TWICE + "def model_fn")
    assert not [f for f in run(once)[1] if f.severity is Severity.MANUAL]


@pytest.mark.parametrize("top", [False, True])
def test_a_default_that_is_read_before_its_name_changes(top: bool) -> None:
    lines = "scale = 0.5\ndef scaled(value, by=scale):\n    return value * by\n"
    loss = "loss = tf.losses.mean_squared_error(labels, logits)\n"
    again = "scale = 100.0\n"
    if top:
        text = program(loss=loss + "loss = scaled(loss)").replace("def input_fn", lines + again + "\n\ndef input_fn", 1)
        once = text.replace(again, "")
    else:
        text = program(loss=loss + lines + again + "loss = scaled(loss)")
        once = program(loss=loss + lines + "loss = scaled(loss)")
    assert "TFM120" in [f.code for f in run(text)[1]]
    assert run(text)[0] == text
    assert run(once)[0] != once


# -- functions that a helper makes ---------------------------------------------------------------------------------

MAKER = (
    "def make(units):\n    def network(x, is_training):\n        x = tf.layers.dense(x, units)\n"
    "        return tf.layers.dropout(x, 0.3, training=is_training)\n\n    return network\n"
)
BY_ANOTHER = f"{MAKER}\n\ndef outer(size):\n    units = {{1: 2}}[size]\n    return make(units)\n"
WITH_BLOCK = (
    "def block(x, is_training):\n    return tf.layers.dropout(x, 0.3, training=is_training)\n\n\n"
    "def make(units, part):\n    def network(x, is_training):\n"
    "        return part(tf.layers.dense(x, units), is_training)\n\n    return network\n"
)
# what -> (helpers, lines that make the logits, what stands in the new model_fn)
MADE: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "named": (
        MAKER,
        f"net = make(4)\nlogits = net(features, {TRAINING})\n",
        ("x_2 = features\n", "tf.keras.layers.Dense(4)(x_2)", "tf.keras.layers.Dropout(0.3)(x_2)"),
    ),
    "called at once": (
        MAKER,
        f"logits = make(4)(features, {TRAINING})\n",
        ("x_2 = features\n", "tf.keras.layers.Dense(4)(x_2)", "tf.keras.layers.Dropout(0.3)(x_2)"),
    ),
    "a flag that comes later": (
        MAKER,
        f"net = make(4)\non = {TRAINING}\nlogits = net(features, on)\n",
        ("tf.keras.layers.Dense(4)(x_2)",),
    ),
    "made by another": (
        BY_ANOTHER,
        f"net = outer(1)\nlogits = net(features, {TRAINING})\n",
        ("units = {1: 2}[1]\n", "tf.keras.layers.Dense(units)(x_2)"),
    ),
    "a function as an argument": (
        WITH_BLOCK,
        f"net = make(4, block)\nlogits = net(features, {TRAINING})\n",
        ("logits = block(tf.keras.layers.Dense(4)(features))\n",),
    ),
    "what it was given is something else later": (
        MAKER,
        f"n = 4\nnet = make(n)\nn = 7\nlogits = tf.layers.dense(net(features, {TRAINING}), n)\n",
        ("    n = 4\n    units = n\n", "tf.keras.layers.Dense(units)(x_2)"),
    ),
}


@pytest.mark.parametrize("what", MADE)
def test_a_function_that_a_helper_makes_is_read(what: str) -> None:
    helpers, lines, wanted = MADE[what]
    new = migrated(helpers, f"{lines}logits = tf.layers.dense(logits, 1)\n{LOSS}{TRAIN}{END}")
    assert all(one in new for one in wanted), new
    assert "make(" not in new


def test_a_made_function_that_is_told_nothing_stays() -> None:
    helper = "def make(units):\n    def network(x):\n        return tf.layers.dense(x, units)\n\n    return network\n"
    new, findings = run(
        text_of(helper, f"net = make(4)\nlogits = tf.layers.dense(net(features), 1)\n{LOSS}{TRAIN}{END}")
    )
    assert "net = make(4)\n" in new or manual(findings), new


def test_a_made_function_that_keeps_count_is_refused() -> None:
    helper = (
        "def make():\n    n = 0\n\n    def network(x, is_training):\n        nonlocal n\n        n += 1\n"
        "        return tf.layers.dropout(tf.layers.dense(x, n), 0.3, training=is_training)\n\n    return network\n"
    )
    text = text_of(helper, f"net = make()\nlogits = tf.layers.dense(net(features, {TRAINING}), 1)\n{LOSS}{TRAIN}{END}")
    new, findings = run(text)
    assert new == text and manual(findings)


def test_a_function_that_is_passed_on_keeps_what_it_is_told() -> None:
    helpers = (
        "def block(x, is_training):\n    return tf.layers.dropout(x, 0.3, training=is_training)\n\n\n"
        "def twice(x, part):\n    return part(part(x, False), False)\n\n\n"
        "def make(part):\n    def network(x, is_training):\n"
        "        return twice(part(tf.layers.dense(x, 4), is_training), part)\n\n    return network\n"
    )
    text = text_of(
        helpers, f"net = make(block)\nlogits = tf.layers.dense(net(features, {TRAINING}), 1)\n{LOSS}{TRAIN}{END}"
    )
    new, findings = run(text)
    assert new == text and {f.code for f in manual(findings)} == {"TFM122"}


def test_a_helper_that_a_package_passes_on() -> None:
    model = "import tensorflow as tf\nfrom nets import network\n\n\ndef model_fn(features, labels, mode):\n"
    body = indented(f"logits = tf.layers.dense(network(features, {TRAINING}), 1)\n{LOSS}{TRAIN}{END}")
    files = {
        "train.py": f"{model}{body}{TAIL}",
        "nets/__init__.py": "from .layers import network\n",
        "nets/layers.py": f"import tensorflow as tf\n\n\n{DROP}",
    }
    found = run_project(files)
    assert not [f for _, findings in found.values() for f in manual(findings)], found
    assert "tf.keras.layers.Dense(1)(network(features))" in found["train.py"][0]
    assert "def network(x):\n    x = tf.keras.layers.Dropout(0.3)(x)\n" in found["nets/layers.py"][0]
    # What another file calls by the package is told the mode, too.
    files["other.py"] = "import nets\n\nprint(nets.network(1.0, True))\n"
    found = run_project(files)
    assert [f.code for f in manual(found["other.py"][1])] == ["TFM122"], found
    assert found["train.py"][0] == files["train.py"]


METHODS = """\
class Net(object):
    def __init__(self, size):
        self.size = size

    def __call__(self, x, training):
        for units in self.size:
            x = self.layer(x, units, self.block, training)
        return x

    def layer(self, x, units, block_fn, training):
        return block_fn(tf.layers.dense(x, units), training)

    def block(self, x, training):
        return tf.layers.dropout(x, 0.3, training=training)
"""


def test_a_method_of_an_object_as_an_argument() -> None:
    body = f"net = Net([4, 4])\nlogits = tf.layers.dense(net(features, {TRAINING}), 1)\n"
    new = migrated(METHODS, f"{body}{LOSS}{TRAIN}{END}")
    assert "class Net" not in new and "tf.keras.layers.Dropout(0.3)(" in new, new
