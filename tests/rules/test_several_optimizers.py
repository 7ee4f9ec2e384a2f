"""Optimizers that train variables by their names: what the class is told, and what is refused, with its line."""

from __future__ import annotations

import textwrap

import pytest

from migrator.findings import Severity
from tests.rules.programs import run

PROGRAM = """\
import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(1)


def model_fn(features, labels, mode, params):
    with tf.variable_scope("body"):
        net = tf.layers.dense(features, 3)
    with tf.variable_scope("head"):
        net = tf.layers.dense(net, 1)
    loss = tf.losses.mean_squared_error(labels, net)
    step = tf.train.get_or_create_global_step()
{training}
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimator = tf.estimator.Estimator(model_fn, params={{"rate": 0.1, "scope": "head"}})
estimator.train(input_fn, steps=3)
"""
SGD = "tf.train.GradientDescentOptimizer(0.1)"
HEAD = 'tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope="head")'


def program(training: str) -> str:
    return PROGRAM.format(training=textwrap.indent(textwrap.dedent(training).strip("\n"), "    "))


def minimized(variables: str, before: str = "") -> str:
    return f"{before}train_op = {SGD}.minimize(loss, step, var_list={variables})"


# variables -> training, condition on their names
SETS = {
    "a collection and a scope": (minimized(HEAD), 'name.startswith("head")'),
    "all variables of a scope": (
        minimized('tf.get_collection(tf.GraphKeys.GLOBAL_VARIABLES, "head")'),
        'name.startswith("head")',
    ),
    "the trainable ones of a scope": (minimized('tf.trainable_variables("head/")'), 'name.startswith("head/")'),
    "a scope of the params": (
        minimized('tf.trainable_variables(params["scope"])'),
        're.match(params["scope"], name)',
    ),
    "a pattern": (minimized('tf.trainable_variables("(head|body)")'), 're.match("(head|body)", name)'),
    "a condition": (minimized('[v for v in tf.trainable_variables() if "kernel" in v.name]'), '"kernel" in name'),
    "two conditions on operations": (
        minimized('[v for v in tf.trainable_variables("head") if "a" in v.op.name if not v.name.endswith("b:0")]'),
        'name.startswith("head") and "a" in name.partition(":")[0] and not name.endswith("b:0")',
    ),
    "all but some": (
        minimized("[v for v in tf.trainable_variables() if v not in some]", f"some = {HEAD}\n"),
        'not name.startswith("head")',
    ),
    "a difference of sets": (
        minimized(f"list(set(tf.trainable_variables()) - set({HEAD}))"),
        'not name.startswith("head")',
    ),
    "a sum of lists": (
        minimized(f'{HEAD} + [v for v in tf.trainable_variables() if "bias" in v.name and "body" in v.name]'),
        'name.startswith("head") or ("bias" in name and "body" in name)',
    ),
    "a loop": (
        minimized(
            "some",
            "some = []\nfor v in tf.trainable_variables():\n"
            "    if 'a' in v.name or 'b' in v.name:\n        some.append(v)\n",
        ),
        "'a' in name or 'b' in name",
    ),
    "gradients by tf.gradients": (
        f"some = {HEAD}\npairs = zip(tf.gradients(loss, some), some)\ntrain_op = {SGD}.apply_gradients(pairs, step)",
        'name.startswith("head")',
    ),
    "optimize_loss": (
        f'train_op = tf.contrib.layers.optimize_loss(loss, step, 0.1, "SGD", variables={HEAD})',
        'name.startswith("head")',
    ),
    "create_train_op": (
        f"train_op = tf.contrib.training.create_train_op(loss, {SGD}, step, variables_to_train={HEAD})",
        'name.startswith("head")',
    ),
}


@pytest.mark.parametrize("variables", SETS)
def test_what_is_trained_is_a_condition_on_names(variables: str) -> None:
    training, condition = SETS[variables]
    new, findings = run(program(training), style="mapped")
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert f"(tf.keras.optimizers.SGD(learning_rate=0.1), lambda name: {condition})" in new, new
    assert [f.code for f in findings if f.severity is Severity.REVIEW] == ["TFM414", "TFM150"]
    assert ("import re\n" in new) == ("re.match" in condition)
    assert "trainable_variables" not in new.partition("def model_fn")[2]


TWO = f"""\
adam = tf.train.AdamOptimizer(tf.train.exponential_decay(0.1, step, 10, 0.9))
train_ops = [adam.minimize(loss, var_list={HEAD})]
train_ops.append({SGD}.minimize(loss, var_list=tf.trainable_variables("body")))
train_op = tf.group(*train_ops)
with tf.control_dependencies([train_op]):
    train_op = tf.assign_add(step, 1)
"""


def test_several_optimizers_become_one() -> None:
    new, findings = run(program(TWO), style="auto")
    schedule = "tf.keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.9)"
    assert (
        f"    adam = tf.keras.optimizers.Adam(learning_rate={schedule}, beta_1=0.9, beta_2=0.999, epsilon=1e-08)\n"
        "    optimizer = OptimizersByName(\n"
        '        (adam, lambda name: name.startswith("head")),\n'
        '        (tf.keras.optimizers.SGD(learning_rate=0.1), lambda name: name.startswith("body")),\n'
        "    )\n"
        "    model = TF1Model(forward)\n"
        "    model.compile(optimizer=optimizer)\n"
    ) in new
    assert new.count("class OptimizersByName(tf.keras.optimizers.Optimizer):") == 1
    assert "_clip_gradients" not in new
    (remark,) = [f for f in findings if f.code == "TFM414"]
    assert "gives each variable to its optimizer" in remark.message


def test_a_rate_of_the_programs_own_comes_before_its_optimizer() -> None:
    training = TWO.replace("tf.train.exponential_decay(0.1, step, 10, 0.9)", "tf.cast(step, tf.float32) * 0.1")
    new, _ = run(program(training), style="mapped")
    assert new.index("class LearningRate") < new.index("adam = ") < new.index("optimizer = Opt")


def test_the_global_norm_is_that_of_what_is_trained() -> None:
    training = f"""
        optimizer = {SGD}
        gradients, variables = zip(*optimizer.compute_gradients(loss, {HEAD}))
        gradients, _ = tf.clip_by_global_norm(gradients, 5.0)
        train_op = optimizer.apply_gradients(zip(gradients, variables), step)
    """
    new, _ = run(program(training), style="mapped")
    assert "return self.parts[0]._clip_gradients(grads)" in new
    assert "    optimizer = tf.keras.optimizers.SGD(learning_rate=0.1, global_clipnorm=5.0)\n" in new
    assert '    optimizer = OptimizersByName((optimizer, lambda name: name.startswith("head")))\n' in new


def test_a_set_that_only_the_loss_reads_is_left_to_the_loss() -> None:
    training = f"""
        decayed = [v for v in tf.trainable_variables() if "kernel" in v.name]
        loss += 0.1 * tf.add_n([tf.nn.l2_loss(v) for v in decayed])
        train_op = {SGD}.minimize(loss, step)
    """
    new, findings = run(program(training), style="mapped")
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert "decayed = [v for v in model.trainable_variables if" in new and "OptimizersByName" not in new


# construct -> training, part of the line that the finding names
REFUSED = {
    "variables one by one": (minimized("[net]"), "var_list"),
    "a scope that the network knows": (
        minimized("tf.trainable_variables(inner.name)", 'with tf.variable_scope("head") as inner:\n    pass\n'),
        "var_list",
    ),
    "a question to more than the name": (
        minimized("[v for v in tf.trainable_variables() if v.shape.ndims > 1]"),
        "var_list",
    ),
    "a step that counts twice": (
        f"one = {SGD}.minimize(loss, step, var_list={HEAD})\n"
        f'two = {SGD}.minimize(loss, step, var_list=tf.trainable_variables("body"))\n'
        "train_op = tf.group(one, two)",
        "tf.group",
    ),
    "one optimizer twice": (
        f"optimizer = {SGD}\none = optimizer.minimize(loss, step, var_list={HEAD})\n"
        'train_op = tf.group(one, optimizer.minimize(loss, var_list=tf.trainable_variables("body")))',
        "tf.group",
    ),
    "one after the other": (
        f"one = {SGD}.minimize(loss, var_list={HEAD})\nwith tf.control_dependencies([one]):\n"
        f'    train_op = {SGD}.minimize(loss, step, var_list=tf.trainable_variables("body"))',
        "control_dependencies",
    ),
    "clipping of one of two": (
        f"optimizer = {SGD}\npairs = optimizer.compute_gradients(loss, {HEAD})\n"
        "pairs = [(tf.clip_by_norm(g, 1.0), v) for g, v in pairs]\n"
        f'one = {SGD}.minimize(loss, var_list=tf.trainable_variables("body"))\n'
        "train_op = tf.group(one, optimizer.apply_gradients(pairs, step))",
        "clip_by_norm",
    ),
}


@pytest.mark.parametrize("construct", REFUSED)
def test_refused(construct: str) -> None:
    training, part = REFUSED[construct]
    text = program(training)
    new, findings = run(text, style="mapped")
    assert new == text
    manual = [f for f in findings if f.code == "TFM415"]
    assert any(part in text.splitlines()[f.line - 1] for f in manual), findings


LIST = f"train_ops = [{SGD}.minimize(loss, step)]\n"
EMA = "tf.train.ExponentialMovingAverage(0.9).apply()"
SOME = 'some = []\nfor v in tf.trainable_variables():\n    if "head" in v.name:\n        some.append(v)\n'

# construct -> training, part of the line that the finding names
CHANGED = {
    "a loop that appends": (
        "train_ops = []\nfor s in ['head', 'body']:\n"
        f"    train_ops.append({SGD}.minimize(loss, var_list=tf.trainable_variables(s)))\n"
        f"train_ops.append({SGD}.minimize(loss, step, var_list=tf.trainable_variables('x')))\n"
        "train_op = tf.group(*train_ops)",
        "train_ops.append",
    ),
    "a condition that appends": (
        f"{LIST}if params['rate']:\n    train_ops.append({EMA})\ntrain_op = tf.group(*train_ops)",
        "train_ops.append",
    ),
    "a function that appends": (
        f"{LIST}def more():\n    train_ops.append({EMA})\n[more() for _ in (1,)]\ntrain_op = tf.group(*train_ops)",
        "train_ops.append",
    ),
    "another name of the list": (
        f"{LIST}others = train_ops\nothers.append({EMA})\ntrain_op = tf.group(*train_ops)",
        "others.append",
    ),
    "averages among the updates": (
        "update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS)\n"
        f"update_ops.append({EMA})\n"
        f"with tf.control_dependencies(update_ops):\n    train_op = {SGD}.minimize(loss, step)",
        "update_ops.append",
    ),
    "a second loop": (
        minimized("some", SOME + SOME.partition("\n")[2].replace("head", "body")),
        "some.append",
    ),
    "more after the loop": (minimized("some", f'{SOME}some.extend(tf.trainable_variables("body"))\n'), "some.extend"),
    "one taken out": (minimized("some", "some = tf.trainable_variables()\nsome.pop()\n"), "some.pop"),
    "one deleted": (minimized("some", "some = tf.trainable_variables()\ndel some[0]\n"), "del some"),
    "one of two on a line": (minimized("some", "some = tf.trainable_variables(); some.pop()\n"), "some.pop"),
    "one taken out by a value": (minimized("some", "some = tf.trainable_variables()\nv = some.pop()\n"), "some.pop"),
}


@pytest.mark.parametrize("construct", CHANGED)
def test_a_list_is_not_changed_unseen(construct: str) -> None:
    training, part = CHANGED[construct]
    text = program(training)
    new, findings = run(text, style="auto")
    assert new == text
    blocked = [f for f in findings if f.severity is Severity.MANUAL]
    assert any(part in text.splitlines()[f.line - 1] for f in blocked), findings


BODY = 'tf.trainable_variables("body")'
AFTER = "with tf.control_dependencies([done]):\n    train_op = ema.apply()"

# construct -> training, code, the line that the finding names
GIVEN_AGAIN = {
    "an optimizer of several": (
        f"opt = {SGD}\na = opt.minimize(loss, step, var_list={HEAD})\nopt = tf.train.AdamOptimizer(0.1)\n"
        f"train_op = tf.group(a, opt.minimize(loss, var_list={BODY}))",
        "TFM403",
        "opt = tf.train.AdamOptimizer(0.1)",
    ),
    "the only optimizer": (
        f"opt = {SGD}\ntrain_op = opt.minimize(loss, step)\nopt = tf.train.AdamOptimizer(0.1)",
        "TFM403",
        "opt = tf.train.AdamOptimizer(0.1)",
    ),
    "an optimizer beside averages": (
        f"opt = {SGD}\ndone = opt.minimize(loss, step)\nopt = tf.train.AdamOptimizer(0.1)\n"
        f"ema = tf.train.ExponentialMovingAverage(0.9)\n{AFTER}",
        "TFM403",
        "opt = tf.train.AdamOptimizer(0.1)",
    ),
    "a rate of several": (
        "lr = 0.1\n"
        f"a = tf.train.GradientDescentOptimizer(lr).minimize(loss, step, var_list={HEAD})\nlr = 0.01\n"
        f"b = tf.train.GradientDescentOptimizer(lr).minimize(loss, var_list={BODY})\ntrain_op = tf.group(a, b)",
        "TFM403",
        "lr = 0.01",
    ),
    "the only rate": (
        "lr = 0.1\ntrain_op = tf.train.GradientDescentOptimizer(lr).minimize(loss, step)\nlr = 0.01",
        "TFM403",
        "lr = 0.01",
    ),
    "a rate that lines compute": (
        "lr = tf.cast(step, tf.float32) * 0.1\nopt = tf.train.GradientDescentOptimizer(lr)\n"
        "lr = lr * 2.0\ntrain_op = opt.minimize(loss, step)",
        "TFM402",
        "lr = lr * 2.0",
    ),
    "a scope": (
        minimized("some", 's = "head"\nsome = [v for v in tf.trainable_variables() if s in v.name]\ns = "body"\n'),
        "TFM403",
        's = "body"',
    ),
    "the scope of the second": (
        f's = params["scope"]\na = {SGD}.minimize(loss, step, var_list=tf.trainable_variables(s))\ns = s + "_2"\n'
        f"b = {SGD}.minimize(loss, var_list=[v for v in tf.trainable_variables() if s in v.name])\n"
        "train_op = tf.group(a, b)",
        "TFM403",
        's = s + "_2"',
    ),
    "a list of scopes": (
        minimized(
            "some",
            'scopes = ["head"]\nsome = [v for v in tf.trainable_variables() if v.name in scopes]\nscopes.append("b")\n',
        ),
        "TFM403",
        'scopes.append("b")',
    ),
    "a decay": (
        f"d = 0.9\nema = tf.train.ExponentialMovingAverage(d)\nd = 0.5\ndone = {SGD}.minimize(loss, step)\n{AFTER}",
        "TFM413",
        "d = 0.5",
    ),
    "a norm after the optimizer": (
        f"norm = 1.0\nopt = {SGD}\nnorm = 5.0\npairs = opt.compute_gradients(loss)\n"
        "train_op = opt.apply_gradients([(tf.clip_by_norm(g, norm), v) for g, v in pairs], step)",
        "TFM403",
        "norm = 5.0",
    ),
}


@pytest.mark.parametrize("construct", GIVEN_AGAIN)
def test_a_name_does_not_get_another_value_after_it_was_read(construct: str) -> None:
    training, code, line = GIVEN_AGAIN[construct]
    text = program(training)
    new, findings = run(text, style="auto")
    assert new == text
    assert (code, line) in {(f.code, text.splitlines()[f.line - 1].strip()) for f in findings}, findings


def test_optimizers_that_have_names_are_made_in_their_order() -> None:
    training = f"""
        lr = 0.1
        one = tf.train.GradientDescentOptimizer(lr)
        lr = 0.01
        other = tf.train.GradientDescentOptimizer(lr)
        a = one.minimize(loss, step, var_list={HEAD})
        train_op = tf.group(a, other.minimize(loss, var_list={BODY}))
    """
    new, _ = run(program(training), style="mapped")
    sgd = "tf.keras.optimizers.SGD(learning_rate=lr)"
    assert f"    lr = 0.1\n    one = {sgd}\n    lr = 0.01\n    other = {sgd}\n" in new


def test_layers_of_the_native_form_have_other_names() -> None:
    text = program(minimized(HEAD))
    new, findings = run(text, style="native")
    assert new == text
    assert "TFM415" in {f.code for f in findings}


def test_an_optimizer_of_a_helper_function() -> None:
    training = f"train_op = made().minimize(loss, step, var_list={HEAD})"
    text = program(training).replace("def model_fn", f"def made():\n    return {SGD}\n\n\ndef model_fn")
    new, _ = run(text, style="mapped")
    assert 'optimizer = OptimizersByName((made(), lambda name: name.startswith("head")))\n' in new
