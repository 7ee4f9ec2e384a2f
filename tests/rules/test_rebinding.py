"""Every way to bind a name at the places where its value decides what is trained: understood, or refused by name."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from migrator.findings import Finding, Severity
from tests.rules.programs import program, run, run_project

PROGRAM = """\
import contextlib
import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(1)


def model_fn(features, labels, mode, params):
{body}
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimator = tf.estimator.Estimator(model_fn, params={{"rate": 0.1}})
estimator.train(input_fn, steps=3)
"""
NET = "logits = tf.layers.dense(features, 1)\n"
LOSS = "loss = tf.losses.mean_squared_error(labels, logits)\n"
SGD = "optimizer = tf.train.GradientDescentOptimizer(0.1)\n"
TRAIN = "train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())\n"
#: The name, its new value, and the body around the statement that gives it.
PLACES = {
    "the loss after it is minimized": ("loss", "loss + 100.0", NET + LOSS + SGD + TRAIN + "{}"),
    "the rate after the optimizer is made": (
        *("rate", "5.0"),
        NET + LOSS + "rate = 0.1\noptimizer = tf.train.GradientDescentOptimizer(rate)\n{}print(rate)\n" + TRAIN,
    ),
    "the labels before the loss": ("labels", "labels * 3.0", NET + "{}" + LOSS + SGD + TRAIN),
    "the logits after the loss": ("logits", "logits * 3.0", NET + LOSS + "{}" + SGD + TRAIN + "print(logits)\n"),
    "the features before the network": ("features", "features * 3.0", "{}" + NET + LOSS + SGD + TRAIN),
    "the mode": (
        *("mode", '"eval"'),
        NET
        + "{}logits = tf.layers.dropout(logits, 0.5, training=mode == tf.estimator.ModeKeys.TRAIN)\n"
        + LOSS
        + SGD
        + TRAIN,
    ),
    "the train_op": ("train_op", "tf.no_op()", NET + LOSS + SGD + TRAIN + "{}"),
    "the optimizer": ("optimizer", "tf.train.GradientDescentOptimizer(0.7)", NET + LOSS + SGD + "{}" + TRAIN),
}
FORMS = {
    "annotated": "{n}: tf.Tensor = {v}",
    "walrus": "print({n} := {v})",
    "walrus given": "kept = ({n} := {v})",
    "walrus in a comprehension": "[{n} := {v} for _ in [0]]",
    "walrus in a condition": "while ({n} := {v}) is None:\n    pass",
    "walrus in elif": "if not params:\n    pass\nelif ({n} := {v}) is not None:\n    pass",
    "capture": "match {v}:\n    case {n}:\n        pass",
    "capture of a rest": "match [0, {v}]:\n    case [_, *{n}]:\n        {n} = {n}[0]",
    "capture of a mapping": 'match {{"a": {v}}}:\n    case {{"a": {n}}}:\n        pass',
    "in a match statement": "match 1:\n    case 1:\n        {n} = {v}",
    "tuple": "{n}, _ = {v}, 0",
    "star": "*_, {n} = 0, {v}",
    "for": "for {n} in [{v}]:\n    pass",
    "with": "with contextlib.nullcontext({v}) as {n}:\n    pass",
    "try": "try:\n    {n} = {v}\nexcept ValueError:\n    pass",
    "except": "try:\n    raise ValueError\nexcept ValueError as {n}:\n    pass",
    "import": "import math as {n}",
    "class": "class {n}:\n    pass",
    "def": "def {n}():\n    pass",
    "nonlocal": "def change():\n    nonlocal {n}\n    {n} = {v}\nchange()",
    "del": "kept = {v}\ndel {n}\n{n} = kept",
}
#: What no reader follows.
NOT_FOLLOWED = (
    *("walrus in a condition", "walrus in elif"),
    *("capture", "capture of a rest", "capture of a mapping", "except", "import", "class", "def"),
)
#: What comes out, by place: TensorFlow 1 and the new program were run for each, and trained the same.
MIGRATED = {
    "the rate after the optimizer is made": {*FORMS} - {*NOT_FOLLOWED},
    "the labels before the loss": {
        *("annotated", "walrus", "walrus given", "tuple", "star", "for", "try", "nonlocal"),
        *("in a match statement", "del", "walrus in a comprehension"),
    },
    "the features before the network": {*FORMS} - {*NOT_FOLLOWED},
    "the optimizer": {
        *("annotated", "walrus", "walrus given", "tuple", "star", "nonlocal", "for", "in a match statement"),
        "walrus in a comprehension",
    },
}


def _program(place: str, form: str) -> tuple[str, str]:
    name, value, body = PLACES[place]
    line = FORMS[form].format(n=name, v=value)
    return PROGRAM.format(body=indent(dedent(body.format(f"{line}\n")), "    ")), line


def _outcome(text: str) -> tuple[str, list[Finding]]:
    new, findings = run(text)
    return new, [one for one in findings if one.severity in (Severity.MANUAL, Severity.ERROR)]


@pytest.mark.parametrize("place", PLACES)
def test_every_form(place: str) -> None:
    name = PLACES[place][0]
    migrated = set()
    for form in FORMS:
        text, line = _program(place, form)
        new, refused = _outcome(text)
        if not refused:
            migrated.add(form)
            assert new != text
            assert ("inputs = features\n" in new) == (name == "features")  # which are others from here on
        else:
            assert new == text
        if form in NOT_FOLLOWED:
            first = text[: text.index(f"    {line.splitlines()[0]}\n")].count("\n") + 1
            assert [one.code for one in refused] == ["TFM128"], form
            assert first <= refused[0].line < first + len(line.splitlines()), form
            assert f"`{name}`" in refused[0].message
    assert migrated == MIGRATED.get(place, set())


@pytest.mark.parametrize("place", PLACES)
def test_an_annotation_changes_nothing(place: str) -> None:
    name, value, _ = PLACES[place]
    annotated, line = _program(place, "annotated")
    plain = annotated.replace(line, f"{name} = {value}")
    new, refused = _outcome(annotated)
    expected, same = _outcome(plain)
    assert [(one.code, one.line) for one in refused] == [(one.code, one.line) for one in same]
    if not refused:
        assert new.replace(f"{name}: tf.Tensor = ", f"{name} = ") == expected


def test_annotations_that_only_tensorflow_1_can_evaluate() -> None:
    text = program(
        network="net: tf.Tensor = tf.nn.relu(net)",
        optimizer="tf.train.GradientDescentOptimizer(0.1)",
    )
    plain = run(text.replace("net: tf.Tensor", "net"))[0]
    typed = (
        text.replace("optimizer =", "optimizer: tf.train.Optimizer =")
        .replace("estimator = ", "estimator: tf.estimator.Estimator = ")
        .replace("mode, params):", "mode: tf.estimator.ModeKeys, params: dict = None) -> tf.estimator.EstimatorSpec:")
    )
    new, findings = run(typed)
    assert new.replace("net: tf.Tensor", "net").replace("params: dict = None", "params") == plain
    assert not [one for one in findings if one.severity is Severity.MANUAL]


@pytest.mark.parametrize(
    ("walrus", "lines"),
    [
        ("kept = (u := 3)", "u = 3\n    kept = u"),
        ("# why\nprint(u := 3)  # said", "# why\n    u = 3\n    print(u)  # said"),
        ('print("u", u := (v := 3) + 1, v)', 'v = 3\n    u = v + 1\n    print("u", u, v)'),
        ("if (u := 3) > 2:\n    print(u)", "u = 3\n    if u > 2:\n        print(u)"),
        ("for _ in range(u := 3):\n    print(u)", "u = 3\n    for _ in range(u):\n        print(u)"),
        ("print(u := (3 +\n    1), u)", "u = (3 +\n        1)\n    print(u, u)"),
        ("print(u := 3 +\n    1, u)", "u = (3 +\n        1)\n    print(u, u)"),
    ],
)
def test_assignment_expressions_as_lines(walrus: str, lines: str) -> None:
    text = program(network=f"{walrus}\nnet = tf.layers.dense(net, u)")
    new, findings = run(text)
    assert not [one for one in findings if one.severity is Severity.MANUAL]
    assert f"    {lines}\n" in new and ":=" not in new


@pytest.mark.parametrize(
    "line",
    [
        "print(print(), u := 3)",  # what comes before it may have an effect
        "u = 2\nprint(u, u := 3)",  # or reads the name
        "print(net is None or (u := 3))",  # it may not be evaluated
        "print([(u := i) for i in range(3)])",  # or more than once
        "print(lambda: (u := 3), u := 3, (lambda: 1)(), u := 4)",
    ],
)
def test_assignment_expressions_that_stay(line: str) -> None:
    text = program(network=f"{line}\nnet = tf.layers.dense(net, u)")
    new, findings = run(text)
    assert new == text
    assert [one.code for one in findings if one.severity is Severity.MANUAL] == ["TFM128"]


def test_names_that_stay_in_their_statement_are_nobody_s_business() -> None:
    network = "sizes = [n for m in (1, 2) if (n := m * 2)]\nmatch sizes:\n    case [first, *_]:\n        print(first)"
    new, findings = run(program(network=network))
    assert not [one for one in findings if one.severity is Severity.MANUAL]
    assert "if (n := m * 2)" in new and "case [first, *_]:" in new


@pytest.mark.parametrize("line", ["match 5:\n    case steps:\n        pass", "print([steps := 5 for _ in [0]])"])
def test_what_a_driver_reads(line: str) -> None:
    text = program(driver=f"steps = 3\n{line}\nestimator.train(input_fn, steps=steps)")
    new, findings = run(text)
    assert new == text
    assert [one.code for one in findings if one.severity is Severity.MANUAL] == ["TFM128"]
    beside = program(driver=f"{line.replace('steps', 'other')}\nprint(other)\nestimator.train(input_fn, steps=3)")
    assert run(beside)[0] != beside


HIDDEN = {
    "exec of a text": 'exec("RATE = 5.0")\n',
    "exec of a file": "exec(open('settings.py').read())\n",
    "exec with globals": "exec(compile(TEXT, 'x', 'exec'), globals())\n",
    "globals": "globals()['RATE'] = 5.0\n",
    "globals in a loop": "for name in ['RATE']:\n    globals()[name] = 5.0\n",
    "globals updated": "globals().update(RATE=5.0)\n",
    "vars": "vars()['RATE'] = 5.0\n",
    "module": "import sys\nsetattr(sys.modules[__name__], 'RATE', 5.0)\n",
    "dict of a module": "import sys\nsys.modules[__name__].__dict__['RATE'] = 5.0\n",
    "a name of TensorFlow": "tf.layers.dense = print\n",
    "setattr of TensorFlow": "setattr(tf.layers, 'dense', print)\n",
}
READING = NET + LOSS + "optimizer = tf.train.GradientDescentOptimizer(RATE)\n" + TRAIN


@pytest.mark.parametrize("hidden", HIDDEN)
def test_names_that_are_bound_without_a_statement(hidden: str) -> None:
    text = PROGRAM.format(body=indent(READING.rstrip(), "    ")).replace(
        "\n\n\ndef input_fn", "\nRATE = 0.1\n{}\n\ndef input_fn"
    )
    assert not refusals(run(text.replace("{}", ""))[1])
    old = text.replace("{}", HIDDEN[hidden])
    new, findings = run(old)
    assert new == old
    assert set(refusals(findings)) - {"TFM203"} == {"TFM128"}


@pytest.mark.parametrize(
    "place", ["exec('loss = loss * 50.0')\n", "locals()['loss'] = 50.0\n", "exec(params['text'])\n"]
)
def test_names_of_a_model_fn_that_are_bound_without_a_statement(place: str) -> None:
    text = PROGRAM.format(body=indent((NET + LOSS + place + SGD + TRAIN).rstrip(), "    "))
    assert refusals(run(text)[1]) == ["TFM128"]


@pytest.mark.parametrize(
    "line",
    [
        "globals()['UNREAD_NAME'] = 1\n",
        "exec('unread_name = 1')\n",
        "space = {}\nexec('RATE = 5.0', space)\n",
        "class Bag:\n    pass\n\n\nbag = Bag()\nsetattr(bag, 'RATE', 5.0)\n",
        "def never():\n    exec(input())\n",
        "print(globals().get('RATE'), vars())\n",
    ],
)
def test_what_binds_no_name_that_is_read(line: str) -> None:
    text = PROGRAM.format(body=indent(READING.rstrip(), "    ")).replace(
        "\n\n\ndef input_fn", f"\nRATE = 0.1\n{line}\n\ndef input_fn"
    )
    assert not refusals(run(text)[1])


def refusals(findings: list[Finding]) -> list[str]:
    return sorted({f.code for f in findings if f.severity is Severity.MANUAL})


@pytest.mark.parametrize("form", ["try", "for", "while", "if", "with"])
@pytest.mark.parametrize("metric", ["labels", "weights=labels, labels=features"])
def test_a_metric_of_labels_that_a_block_changes(form: str, metric: str) -> None:
    blocks = {
        "try": "try:\n    labels = 2.0 - labels\nexcept ValueError:\n    pass\n",
        "for": "for labels in [2.0 - labels]:\n    pass\n",
        "while": "while True:\n    labels = 2.0 - labels\n    break\n",
        "if": "if params['rate']:\n    labels = 2.0 - labels\n",
        "with": "with contextlib.nullcontext(2.0 - labels) as labels:\n    pass\n",
    }
    named = "labels" if metric == "labels" else "labels=features, weights=labels"
    ops = f"metrics = {{'mse': tf.metrics.mean_squared_error({named}, predictions=logits)}}\n"
    body = NET + blocks[form] + LOSS + SGD + TRAIN + ops
    text = PROGRAM.format(body=indent(body.rstrip(), "    ")).replace(
        "train_op=train_op)", "train_op=train_op, eval_metric_ops=metrics)"
    )
    new, findings = run(
        text.replace(
            "estimator.train(input_fn, steps=3)", "estimator.train(input_fn, steps=3)\nestimator.evaluate(input_fn)"
        )
    )
    assert refusals(findings) or "labels = 2.0 - labels" in new.partition("compute_metrics")[2], new


NETWORK = "import tensorflow as tf\n\n\ndef network(x):\n    return tf.layers.dense(x, {0})\n\n\n"
NETWORK += "def net(x):\n    return tf.layers.dense(x, {0})\n"
FROM_TWO = {
    "a condition": "if os.environ.get('WIDE'):\n    from one import network\nelse:\n    from two import network\n",
    "an error": "try:\n    from one import network\nexcept ImportError:\n    from two import network\n",
    "one after the other": "from one import network\nfrom two import network\n",
    "another name": "if os.environ.get('W'):\n    from one import net as network\nelse:\n    from two import network\n",
    "a package": "from both import network\n",
}


@pytest.mark.parametrize("how", FROM_TWO)
def test_a_name_of_two_files(how: str) -> None:
    """Either may be what runs, so both have to be carried over; a native program would be that of one."""
    files = {"one.py": NETWORK.format(4), "two.py": NETWORK.format(8), "both/__init__.py": FROM_TWO["an error"]}
    main = f"import os\n{FROM_TWO[how]}" + program(network="net = network(net)")
    made = run_project({"train.py": main, **files})
    assert all(made[name][0] == text for name, text in {"train.py": main, **files}.items())
    codes = {one.code for _, found in made.values() for one in found if one.severity is Severity.MANUAL}
    assert "TFM128" in codes


def test_a_name_of_one_file_said_twice() -> None:
    twice = "try:\n    from one import network\nexcept ImportError:\n    from .one import network\n"
    main = twice + program(network="net = network(net)")
    made = run_project({"train.py": main, "one.py": NETWORK.format(4)})
    assert "keras.layers.Dense(4)" in made["one.py"][0] and made["train.py"][0] != main


def test_a_module_between_two_others() -> None:
    """What a module passes on is part of the program, whether or not that module says anything of TensorFlow."""
    main = "from between import network\n" + program(network="net = network(net)")
    between = {"between.py": "from further import network\n", "further.py": "import os\nfrom one import network\n"}
    made = run_project({"train.py": main, "one.py": NETWORK.format(4), **between})
    assert "keras.layers.Dense(4)" in made["one.py"][0] and made["train.py"][0] != main
    assert all(made[name][0] == text for name, text in between.items())
