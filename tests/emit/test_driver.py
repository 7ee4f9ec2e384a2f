"""The driver of a program: where the new lines stand, what they say, and what is not carried over."""

from __future__ import annotations

import ast

import pytest

from migrator.findings import Finding, Severity
from tests.rules.programs import program, run, run_project

BOTH = (
    "tf.estimator.train_and_evaluate(estimator, tf.estimator.TrainSpec({train}, max_steps={steps}),"
    " tf.estimator.EvalSpec(input_fn))"
)


def both(train: str = "input_fn", steps: str = "5") -> str:
    return BOTH.format(train=train, steps=steps)


def manual(findings: list[Finding]) -> list[str]:
    return [f.code for f in findings if f.severity is Severity.MANUAL]


def migrated(text: str, strategy: str = "auto") -> str:
    new, findings = run(text, strategy)
    assert not manual(findings), findings
    ast.parse(new)
    return new


def in_main(text: str, before: str = "") -> str:
    """The program with its Estimator and driver in a function main."""
    head, _, tail = text.partition("\n\n\nestimator = ")
    body = "\n".join(f"    {line}" if line else "" for line in f"{before}estimator = {tail}".rstrip().splitlines())
    return f"{head}\n\n\ndef main():\n{body}\n\n\nmain()\n"


LAYOUTS = {
    "spec after the functions": ("config = tf.estimator.RunConfig(tf_random_seed=1)\n", ", config=config"),
    "switch after the functions": ("tf.disable_v2_behavior()\n", ""),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_helpers_survive_a_removed_anchor(layout: str) -> None:
    line, argument = LAYOUTS[layout]
    text = program(driver=both()).replace("estimator = ", f"{line}estimator = ", 1)
    text = text.replace('params={"rate": 0.1})', f'params={{"rate": 0.1}}{argument})')
    new = migrated(text)
    for name in ("make_strategy", "make_inputs"):
        assert new.count(f"def {name}(") == 1
        assert new.index(f"def {name}(") < new.index(f"{name}(", new.index("\nresolver = "))


DATA = "x = [[1.0]]\n\ndef train_fn():\n    return tf.data.Dataset.from_tensors((x, x))\n\n"


def test_set_up_waits_for_its_data() -> None:
    new = migrated(in_main(program(driver=DATA + both("train_fn"))))
    assert new.index("def train_fn") < new.index("make_inputs(train_fn())")
    assert "        model = model_fn(make_inputs(train_fn())" in new
    new = migrated(program(driver=DATA + "for _ in range(2):\n    estimator.train(train_fn)\n    print(1)"))
    assert '\nmodel = model_fn(make_inputs(train_fn()), {"rate": 0.1})\nfor _ in range(2):\n' in new


def test_set_up_waits_for_what_an_input_function_reads() -> None:
    driver = "x = [[1.0]]\nestimator.train(lambda: make(), steps=3)"
    text = program(driver=driver).replace(
        "def model_fn", "def make():\n    return tf.data.Dataset.from_tensors((x, x))\n\n\ndef model_fn"
    )
    new = migrated(text)
    assert new.index("x = [[1.0]]") < new.index("model = model_fn(make_inputs(make())")


LATE = {
    "data in a loop": "for x in [1, 2]:\n    estimator.train(lambda: input_fn().skip(x))",
    "data of a function": "def go():\n    n = 3\n    estimator.train(lambda: input_fn().skip(n))\n\ngo()",
    "params change": "n = 3\nrate = 2\nestimator.train(lambda: input_fn().skip(n))",
}


@pytest.mark.parametrize("name", LATE)
def test_a_set_up_that_cannot_wait_leaves_the_driver(name: str) -> None:
    """The object makes its model when it trains, with the params that it was given when it was made."""
    text = program(driver=LATE[name])
    text = text.replace("estimator = ", "rate = 1\nestimator = ", 1).replace('"rate": 0.1', '"rate": rate')
    new = migrated(text)
    assert 'rate = 1\nestimator = KerasEstimator(model_fn, params={"rate": rate})\n' in new
    assert new.endswith(f"{LATE[name]}\n") and "self.params = copy.deepcopy(params or {})" in new


def split(driver: str, **parts: str) -> dict[str, str]:
    """The program in model.py and train.py."""
    whole = program(driver=driver, **parts)
    head, _, tail = whole.partition("def model_fn")
    model_fn, _, rest = tail.partition("\n\n\nestimator")
    return {
        "model.py": "import tensorflow as tf\n\n\ndef model_fn" + model_fn + "\n",
        "train.py": head.replace("tf\n", "tf\nfrom model import model_fn\n", 1) + "estimator" + rest,
    }


def test_a_shared_model_blocks_the_other_program() -> None:
    files = split("estimator.train(input_fn)")
    files["other.py"] = files["train.py"].replace("estimator.train(input_fn)", "estimator.latest_checkpoint()")
    results = run_project(files)
    assert {path: text for path, (text, _) in results.items()} == files
    assert manual(results["other.py"][1]) == ["TFM103"]
    assert manual(results["train.py"][1]) == ["TFM114"]


REFERENCES = {
    "call": ("test_model.py", "from model import model_fn\n\nmodel_fn(1, 2, 'train', {})\n", 3),
    "passed": ("wrap.py", "import tensorflow as tf\nimport model\n\nwrap(model.model_fn)\n", 4),
}


@pytest.mark.parametrize("name", REFERENCES)
def test_another_use_of_the_model_fn_blocks(name: str) -> None:
    path, text, line = REFERENCES[name]
    files = {**split("estimator.train(input_fn)"), path: text}
    results = run_project(files)
    assert {path: text for path, (text, _) in results.items()} == files
    assert [(f.code, f.line) for f in results[path][1]] == [("TFM113", line)]


def test_a_local_name_is_no_use_of_the_model_fn() -> None:
    files = {**split("estimator.train(input_fn)"), "wrap.py": "def wrap(model_fn):\n    return model_fn(1)\n"}
    assert "tf.keras" in run_project(files)["model.py"][0]


@pytest.mark.parametrize("strategy", ["parameter-server", "multi-worker-mirrored"])
def test_plain_calls_run_on_a_cluster_that_is_asked_for(strategy: str) -> None:
    text = program(driver="estimator.train(input_fn, steps=3)\nprint(estimator.evaluate(input_fn, steps=2))")
    new, findings = run(text, strategy)
    assert manual(findings) == []
    assert "DatasetCreator(lambda context: input_fn()),\n    steps_per_epoch=3," in new
    # Under the strategy itself examples would count several times or never, or losses would be means of parts.
    assert "print(local.current().evaluate(input_fn().take(2), return_dict=True))" in new
    assert 'raise ValueError("this program evaluates where it trains, and has no evaluator task")' in new
    assert "make_strategy" not in migrated(text)


def test_a_training_on_all_data_on_a_cluster_counts_them() -> None:
    new = run(program(driver="estimator.train(input_fn)"), "parameter-server")[0]
    assert "steps = sum(1 for _ in input_fn())\nif resolver.cluster_spec().jobs:\n    steps *= resolver" in new
    assert "DatasetCreator(lambda context: input_fn().repeat())" in new and "LocalCopy" not in new


def test_checkpoints_between_steps_are_not_written_by_a_coordinator() -> None:
    text = program().replace(
        ', params={"rate": 0.1})',
        ', params={"rate": 0.1}, model_dir="m", config=tf.estimator.RunConfig(save_checkpoints_steps=2))',
    )
    new, findings = run(text, "parameter-server")
    assert "save_freq" not in new and "TFM109" in [one.code for one in findings]
    assert "save_freq=2" in run(text, "multi-worker-mirrored")[0]


@pytest.mark.parametrize("strategy", ["parameter-server", "multi-worker-mirrored"])
@pytest.mark.parametrize(
    "driver",
    [
        "estimator.train(input_fn, steps=3)\nprint(list(estimator.predict(input_fn)))",
        "estimator.train(input_fn, steps=3)\nmeasure(estimator)",
        "estimator.train(input_fn, steps=3)\n" + both(),
    ],
)
def test_other_plain_calls_do_not_run_on_a_cluster(driver: str, strategy: str) -> None:
    text = program(driver=f"def measure(estimator):\n    estimator.evaluate(input_fn)\n\n\n{driver}")
    new, findings = run(text, strategy)
    assert new == text and set(manual(findings)) & {"TFM704"}


def test_plain_calls_after_train_and_evaluate_are_to_be_reviewed() -> None:
    text = program(driver=both() + "\nestimator.evaluate(input_fn)")
    assert "TFM704" in [f.code for f in run(text)[1] if f.severity is Severity.REVIEW]
    migrated(text)


def test_train_distribute_with_plain_calls_is_carried_over() -> None:
    config = "tf.estimator.RunConfig(train_distribute=tf.distribute.experimental.MultiWorkerMirroredStrategy())"
    text = program().replace(', params={"rate": 0.1})', f", config={config}, params=dict(rate=0.1))")
    new = migrated(text)
    assert "MultiWorkerMirroredStrategy(cluster_resolver=resolver)" in new and "steps_per_epoch=3" in new


def test_two_estimators_share_helpers_but_not_names() -> None:
    second = 'other_estimator = tf.estimator.Estimator(model_fn, params={"rate": 1.0})\nother_estimator.train(input_fn)'
    new = migrated(program(driver=f"estimator.train(input_fn)\n{second}"))
    assert new.count("def make_inputs") == 1
    assert "\nmodel = model_fn(" in new and "\nmodel_2 = model_fn(" in new and "model_2.fit(input_fn())" in new


def test_max_steps_count_from_the_start() -> None:
    once = migrated(program(driver="estimator.train(input_fn, max_steps=3)"))
    assert "model.fit(input_fn().take(3))" in once
    twice = migrated(program(driver="estimator.train(input_fn, max_steps=3)\nestimator.train(input_fn, max_steps=9)"))
    assert "steps = 9 - model.optimizer.iterations.numpy()\nif steps > 0:\n" in twice
    loop = migrated(program(driver="while go():\n    estimator.train(input_fn, max_steps=a or b)"))
    assert "steps = (a or b) - model.optimizer.iterations.numpy()" in loop


def saving(every: str, driver: str, model_dir: str = ', model_dir="m"') -> str:
    config = f'params={{"rate": 0.1}}, config=tf.estimator.RunConfig(save_checkpoints_steps={every}){model_dir}'
    return program(driver=driver).replace('params={"rate": 0.1}', config)


def test_checkpoints_between() -> None:
    new = migrated(saving("7", "estimator.train(input_fn, steps=30)"))
    savers = [line.strip() for line in new.split("\n") if "ModelCheckpoint" in line or "save_freq" in line]
    assert len(savers) == 3 and savers[-1] == "save_freq=7,"
    assert "save_freq" not in migrated(saving("7", "estimator.train(input_fn, steps=30)", ""))
    may_be_none = "def main(every):\n    if every == 0:\n        every = None\n"
    text = saving("every", "pass").replace("\nestimator = ", f"\n{may_be_none}    estimator = ")
    text = text.replace("\npass\n", "\n    estimator.train(input_fn, steps=30)\n\n\nmain(3)\n")
    assert 'save_freq=every or "epoch",' in migrated(text)


def test_checkpoints_between_on_keras_3() -> None:
    new, findings = run(saving("2 * 3", "estimator.train(input_fn, steps=30)"), keras="3")
    assert not manual(findings), findings
    assert "(batch + 1) % (2 * 3) == 0 and checkpoints.save(model.optimizer.iterations.numpy())" in new
    ast.parse(new)


def test_a_period_that_may_not_be_given() -> None:
    driver = "estimator.train(input_fn, steps=30)"
    assert 'save_freq=os.getpid() or "epoch",' in migrated("import os\n" + saving("os.getpid()", driver))
    assert "save_freq" not in migrated(saving("0", driver))
    new, _ = run("import os\n" + saving("os.getpid()", driver), keras="3")
    assert "os.getpid() and (batch + 1) % os.getpid() == 0 and checkpoints.save(" in new


@pytest.mark.parametrize(
    ("given", "written"), [("1e4", "10000"), ("100 / 16", "math.ceil(100 / 16)"), ("N", "math.ceil(N)"), ("7", "7")]
)
def test_steps_that_are_floats(given: str, written: str) -> None:
    """An Estimator compares the global step with them, and so takes the next whole number."""
    new = migrated(program(driver=f"estimator.train(input_fn, steps={given})").replace("\n\n", "\n\nN = 1e2\n", 1))
    assert f".take({written})" in new and ("import math\n" in new) == ("math" in written)


def test_parentheses_before_take() -> None:
    new = migrated(program(driver="estimator.train(lambda: a() if b else c(), steps=3)"))
    assert "model.fit((a() if b else c()).take(3))" in new


FUNCTIONS = {
    "default": ("def f(params=None):", "f", 'f({"rate": 0.1})'),
    "second": ("def f(n=1, params=None):", "f", 'f(params={"rate": 0.1})'),
    "keyword only": ("def f(*, params):", "f", 'f(params={"rate": 0.1})'),
    "partial": ("def f(n, params):", "functools.partial(f, 2)", 'f(2, {"rate": 0.1})'),
    "imported partial": (
        "def f(n, params):",
        "partial(f, n=tf.log(2.0))",
        'f(n=tf.math.log(2.0), params={"rate": 0.1})',
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_params_of_an_input_function(name: str) -> None:
    head, given, expected = FUNCTIONS[name]
    text = program(driver=f"estimator.train({given}, steps=3)").replace(
        "def model_fn", f"{head}\n    return input_fn()\n\n\ndef model_fn"
    )
    new = migrated("import functools\nfrom functools import partial\n" + text)
    assert f"model.fit({expected}.take(3))" in new


@pytest.mark.parametrize("parameter", ["n", "config=None, n=1, *, m"])
def test_other_parameters_of_an_input_function(parameter: str) -> None:
    text = program(driver=f"def f({parameter}):\n    return input_fn()\n\nestimator.train(f, steps=3)")
    new, findings = run(text)
    assert new == text and manual(findings) == ["TFM602"]


def test_params_that_the_estimator_does_not_give() -> None:
    text = program().replace(', params={"rate": 0.1})', ")")
    assert "model_fn(make_inputs(input_fn()), {})" in migrated(text)


HELPER = (
    "def helper(net):\n"
    "    return tf.layers.dense(net, 2, kernel_regularizer=tf.keras.regularizers.l2(0.1))\n\n\ndef model_fn"
)


def test_regularizers_of_helpers() -> None:
    text = program(network="net = helper(net)").replace("def model_fn", HELPER)
    new, findings = run(text)
    assert "tf.keras.Model" in new and "regularizer" not in new
    assert "TFM206" in [f.code for f in findings]
    loss = "loss = tf.losses.mean_squared_error(labels, logits) + tf.losses.get_regularization_loss()"
    text = program(network="net = helper(net)", loss=loss).replace("def model_fn", HELPER)
    assert "kernel_regularizer=tf.keras.regularizers.l2(0.1)" in migrated(text)


SCOPE = (
    "def helper(net):\n"
    '    with tf.variable_scope("h", partitioner=tf.fixed_size_partitioner(2)):\n'
    "        return tf.layers.dense(net, 4)\n\n\ndef model_fn"
)


def test_partitioners_of_helpers() -> None:
    text = program(network="net = helper(net)", driver=both()).replace("def model_fn", SCOPE)
    assert "variable_partitioner=" in migrated(text)
    assert "TFM703" in [f.code for f in run(text, "one-device")[1]]
    network = 'with tf.variable_scope("a", partitioner=tf.fixed_size_partitioner(3)):\n    net = helper(net)'
    _, findings = run(program(network=network, driver=both()).replace("def model_fn", SCOPE))
    assert manual(findings) == ["TFM702"]


def test_partitioner_that_reads_local_names() -> None:
    network = (
        'with tf.variable_scope("a", partitioner=tf.fixed_size_partitioner(params["n"])):\n'
        "    net = tf.layers.dense(net, 3)"
    )
    text = program(network=network, driver=both())
    new, findings = run(text)
    assert new == text and manual(findings) == ["TFM701"]


def test_spec_whose_names_change() -> None:
    driver = "n = 1\nspec = tf.estimator.TrainSpec(input_fn, max_steps=n)\nn = 2\n"
    driver += "tf.estimator.train_and_evaluate(estimator, spec, tf.estimator.EvalSpec(input_fn))"
    new = migrated(program(driver=driver))
    assert "n = 1\nspec = dict(input_fn=input_fn, max_steps=n)\nn = 2\n" in new


def test_predict_only_takes_features_alone() -> None:
    new = migrated(program(spec=", predictions=logits", driver="print(list(estimator.predict(input_fn)))"))
    assert "features = spec[0] if isinstance(spec, tuple) else spec" in new


def test_a_graph_around_the_driver_blocks() -> None:
    text = program(driver="with tf.Graph().as_default():\n    estimator.train(input_fn)\n    print(tf.constant(1.0))")
    new, findings = run(text)
    assert new == text and manual(findings)[0] == "TFM103"
    assert "\nestimator.train(input_fn)\n" not in migrated(text.replace("\n    print(tf.constant(1.0))", ""))


IMPORTS = "import keras_estimator  # before TensorFlow: it chooses Keras 2\nimport tensorflow.compat.v1 as tf"
SURROUNDINGS = {
    "one line": "if go: keep(estimator.train(input_fn))",
    "result": "keep(estimator.train(input_fn))",
}


@pytest.mark.parametrize("name", SURROUNDINGS)
def test_a_driver_that_stays_as_it_is(name: str) -> None:
    text = program(driver=SURROUNDINGS[name])
    new, findings = run(text)
    assert new == text and manual(findings) == ["TFM103"]
    bridged, findings = run(text, style="auto")
    made = "estimator = keras_estimator.Estimator(model_fn"
    assert bridged == text.replace("import tensorflow as tf", IMPORTS).replace("tf.estimator.", "keras_estimator.")
    assert made in bridged and not manual(findings)


def test_comments_inside_the_driver_survive() -> None:
    driver = (
        "spec = tf.estimator.TrainSpec(\n    input_fn,  # the data\n    max_steps=5,  # enough\n)  # training\n"
        "tf.estimator.train_and_evaluate(\n    estimator,  # ours\n    spec,\n    tf.estimator.EvalSpec(input_fn),\n)\n"
        "print(estimator.evaluate(\n    input_fn,  # again\n))"
    )
    text = program(driver=driver).replace("0.1})", "0.1})  # new", 1)
    new = migrated(text)
    for comment in ("# the data", "# enough", "# training", "# ours", "# again", "# new"):
        assert new.count(comment) == 1, comment


LENT = """\
def show(model, make_data, epoch):
    for one in {body}:
        print(epoch, one)


def model_fn"""


def test_long_lines_are_broken() -> None:
    words = "the loss of this evaluation, in the mean of all of its batches, with two digits"
    text = f'print("{words}: %.2f" % estimator.evaluate(input_fn)["loss"])'
    new = migrated(program(driver="estimator.train(input_fn, steps=3)\n" + text))
    assert "model.evaluate(\n    input_fn(),\n    return_dict=True,\n)" in new


def test_a_warm_start_is_refused() -> None:
    text = program().replace("params=", "warm_start_from='m', params=")
    assert manual(run(text)[1]) == ["TFM146"]


def lending(body: str, driver: str, spec: str = ", predictions={'out': logits}") -> str:
    text = program(driver=driver, spec=spec).replace("def model_fn", LENT.format(body=body), 1)
    return in_main(text)


def test_an_estimator_given_to_a_function_that_predicts() -> None:
    driver = "eval_fn = lambda: input_fn()\nfor epoch in range(2):\n    estimator.train(input_fn)\n"
    new = migrated(lending("model.predict(make_data)", driver + "    show(estimator, eval_fn, epoch)"))
    assert "for one in predict(model, make_data()):" in new
    assert "show(predictor, eval_fn, epoch)" in new


def test_several_estimators_given_to_one_function() -> None:
    more = "other = tf.estimator.Estimator(model_fn, params={'rate': 0.2})\nother.train(input_fn, steps=2)\n"
    driver = f"estimator.train(input_fn, steps=3)\nshow(estimator, input_fn, 1)\n{more}show(other, input_fn, epoch=2)"
    new = migrated(lending("model.predict(make_data)", driver))
    assert new.count("for one in predict(model, make_data()):") == 1
    assert "show(predictor, input_fn, 1)" in new and "show(predictor_2, input_fn, epoch=2)" in new


def test_a_name_of_an_estimator_that_means_something_else() -> None:
    """`estimator` of `more` is whatever that is called with: `show` goes on with what has the methods of one."""
    more = "def more(estimator):\n    show(estimator, input_fn, 2)\n\n\n"
    text = lending("model.predict(make_data)", "estimator.train(input_fn, steps=3)\nshow(estimator, input_fn, 1)")
    new = migrated(text.replace("def model_fn", f"{more}def model_fn", 1))
    assert "in model.predict(make_data):" in new and "estimator = KerasEstimator(model_fn, params=" in new


def test_a_function_that_has_the_estimator_under_its_name() -> None:
    text = program(driver="estimator.train(input_fn, steps=3)\nshow(estimator, input_fn)", spec=", predictions=logits")
    show = "def show(estimator, data):\n    for one in estimator.predict(data):\n        print(one)\n\n\n"
    new = migrated(text.replace("def model_fn", f"{show}def model_fn", 1))
    assert "for one in predict(estimator, data()):" in new and "show(predictor, input_fn)" in new


def test_an_estimator_given_to_a_function_that_evaluates() -> None:
    driver = "estimator.train(input_fn, steps=3)\nshow(epoch=1, model=estimator, make_data=input_fn)"
    new = migrated(lending("model.evaluate(make_data).items()", driver))
    results = "dict(model.evaluate(make_data(),return_dict=True),global_step=int(model.optimizer.iterations.numpy()),)"
    assert f"foronein{results}.items():" in "".join(new.split())
    assert "show(epoch=1, model=model_2, make_data=input_fn)" in new


KEPT = {
    "goes on": ("[other(model), model.predict(make_data)]", "show(estimator, input_fn, 1)"),
    "of another file": ("[]", "foreign.show(estimator)"),
}


@pytest.mark.parametrize("name", KEPT)
def test_an_estimator_given_away_blocks(name: str) -> None:
    body, call = KEPT[name]
    text = lending(body, "estimator.train(input_fn, steps=3)\n" + call)
    new, findings = run(text)
    assert new == text and manual(findings) == ["TFM103"]


LENT_TO = {
    "shown": ("[model, model.predict(make_data)]", "show(estimator, input_fn, 1)"),
    "trains": ("[model.train(make_data)]", "show(estimator, input_fn, 1)"),
}


@pytest.mark.parametrize("name", LENT_TO)
def test_an_estimator_given_away_to_train(name: str) -> None:
    body, call = LENT_TO[name]
    text = lending(body, "estimator.train(input_fn, steps=3)\n" + call).replace("print(epoch, one)", "keep(epoch, one)")
    assert manual(run(text)[1]) == ["TFM103"]
    new, findings = run(text, style="auto")
    assert "keras_estimator.Estimator(" in new and not manual(findings)
    assert f"for one in {body}:" in new and call.replace("\n", "\n    ") in new


def test_a_program_without_data_is_blocked() -> None:
    text = program(driver="estimator.export_savedmodel('x', f)", spec=", predictions={'out': logits}")
    assert manual(run(text)[1]) == ["TFM103", "TFM142"]


REDEFINED = """\
estimator.train(lambda: read(2), steps=3)


def read(size, repeat=False):
    return input_fn().batch(size)


estimator.evaluate(lambda: read(3, True))
"""


def test_a_script_that_gives_a_name_to_one_function_after_the_other() -> None:
    first = "def read(size):\n    return input_fn()\n\n\n"
    text = program(driver=REDEFINED).replace("def model_fn", first + "def model_fn")
    new, findings = run(text)
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert 'model = model_fn(make_inputs(read(2)), {"rate": 0.1})' in new
    assert new.index("model.fit(read(2).take(3))") < new.index("def read(size, repeat") < new.index("read(3, True)")
    between = text.replace("estimator.train(", first + "estimator.train(")
    assert "estimator.train(lambda: read(2), steps=3)" in migrated(between)


@pytest.mark.parametrize(
    ("steps", "config", "told"),
    [
        ("200000", "", True),
        ("STEPS", "", True),
        ("9000", "", False),
        ("200000", "save_checkpoints_steps=1000", False),
        ("200000", "save_checkpoints_secs=None, save_checkpoints_steps=None", False),
    ],
)
@pytest.mark.parametrize("both", [True, False])
def test_a_long_training_whose_only_checkpoint_comes_at_its_end(
    steps: str, config: str, told: bool, both: bool
) -> None:
    spec = f"tf.estimator.TrainSpec(input_fn, max_steps={steps}), tf.estimator.EvalSpec(input_fn, steps=3)"
    call = (
        f"tf.estimator.train_and_evaluate(estimator, {spec})" if both else f"estimator.train(input_fn, steps={steps})"
    )
    made = f'config=tf.estimator.RunConfig("models", {config}), params={{'
    text = program(driver=call).replace("params={", made)
    text = text.replace("import tensorflow as tf\n", "import tensorflow as tf\n\nSTEPS = read()\n")
    messages = [f.message for f in run(text)[1] if f.code == "TFM109"]
    assert any("every 600 seconds" in one for one in messages) == told
    assert any("and evaluated" in one for one in messages) == (told and both)


def test_result_of_train_and_evaluate_is_that_of_the_evaluation() -> None:
    new = migrated(program(driver=f"print({both()})"), "one-device")
    assert "results = dict(\n    model.evaluate(" in new and "return_dict=True" in new
    assert "global_step=int(model.optimizer.iterations.numpy()),\n), []\nprint(results)\n" in new


def test_result_of_train_and_evaluate_keeps_its_name() -> None:
    driver = f"outcome = {both()}\nprint(outcome[0])"
    new = migrated(program(driver=driver), "one-device")
    assert "outcome = dict(" in new and "\nprint(outcome[0])\n" in new and "outcome = outcome" not in new


def test_result_of_train_and_evaluate_is_none_on_a_cluster() -> None:
    new = migrated(program(driver=f"metrics, exports = {both()}\nprint(metrics)"))
    at = [new.index(part) for part in ("results = None\nif resolver.task_type", "results = dict(", "exports = results")]
    assert at == sorted(at)


def test_result_of_train_and_evaluate_with_periods_is_the_last_of_its_evaluations() -> None:
    text = program(driver=f"print({both(steps='40')})").replace(
        "Estimator(model_fn", "Estimator(model_fn, config=tf.estimator.RunConfig('/tmp/x', save_checkpoints_steps=20)"
    )
    assert "save_checkpoints_steps" in text
    new = migrated(text, "one-device")
    assert "results = last_evaluation(model)\nprint(results)\n" in new and "model.evaluate(" not in new


def test_statements_that_share_a_line() -> None:
    alone = migrated(program(driver="estimator.train(input_fn)\ngo()"))
    assert migrated(program(driver="estimator.train(input_fn); go()")) == alone


LINES = {
    "another call comes first": f"print(input(), {both()})",
    "it may not be evaluated": f"print(input_fn and {both()})",
    "it is evaluated later": f"later = lambda: {both()}\nlater()",
    "its exports are asked for": "print("
    + both().replace("EvalSpec(input_fn)", "EvalSpec(input_fn, exporters=tf.estimator.FinalExporter('x', serve))")
    + ")",
}


@pytest.mark.parametrize("driver", LINES.values(), ids=LINES)
def test_a_line_of_train_and_evaluate_that_stays(driver: str) -> None:
    serve = "def serve():\n    x = tf.placeholder(tf.float32, [None, 1])\n"
    serve += "    return tf.estimator.export.TensorServingInputReceiver(x, {'x': x})\n\n\ndef model_fn"
    text = program(driver=driver, spec=", predictions={'out': logits}").replace("def model_fn", serve)
    new = migrated(text).splitlines()
    assert any("estimator.train_and_evaluate(" in line for line in new)
    assert ("        return results, exports" in new) == ("Exporter" in driver)


FOLDER = "estimator = tf.estimator.Estimator(model_fn, params={'rate': 0.1}, model_dir='logs')\n"
CONFIGURED = FOLDER.replace("model_dir='logs'", "config=tf.estimator.RunConfig(model_dir='logs')")
LATEST = {
    "asked": (
        f"{FOLDER}estimator.train(input_fn, steps=3)\n"
        "estimator.evaluate(input_fn, checkpoint_path=estimator.latest_checkpoint())"
    ),
    "of the folder": (
        f"{CONFIGURED}estimator.train(input_fn, steps=3)\n"
        "estimator.evaluate(input_fn, checkpoint_path=tf.train.latest_checkpoint('logs'))"
    ),
    "by a name": (
        f"{FOLDER}estimator.train(input_fn, steps=3)\nnewest = estimator.latest_checkpoint()\n"
        "estimator.evaluate(input_fn, checkpoint_path=newest)"
    ),
}
NOT_LATEST = {
    "named before a training": (
        f"{FOLDER}newest = estimator.latest_checkpoint()\nestimator.train(input_fn, steps=3)\n"
        "estimator.evaluate(input_fn, checkpoint_path=newest)"
    ),
    "trained in a function": (
        f"{FOLDER}def more():\n    estimator.train(input_fn, steps=3)\nmore()\nnewest = estimator.latest_checkpoint()\n"
        "more()\nestimator.evaluate(input_fn, checkpoint_path=newest)"
    ),
    "told": f"{FOLDER}estimator.train(input_fn, steps=3)\nprint(estimator.latest_checkpoint())",
    "of another folder": (
        f"{CONFIGURED}estimator.train(input_fn, steps=3)\n"
        "estimator.evaluate(input_fn, checkpoint_path=tf.train.latest_checkpoint('best'))"
    ),
    "told by a name": (
        f"{FOLDER}estimator.train(input_fn, steps=3)\nnewest = estimator.latest_checkpoint()\n"
        "estimator.evaluate(input_fn, checkpoint_path=newest)\nprint(newest)"
    ),
}


def _driven(driver: str) -> str:
    text = program(driver=driver)
    return text.replace('estimator = tf.estimator.Estimator(model_fn, params={"rate": 0.1})\n', "")


@pytest.mark.parametrize("name", LATEST)
def test_the_latest_checkpoint_is_the_model_itself(name: str) -> None:
    new, findings = run(_driven(LATEST[name]))
    assert "model.evaluate(input_fn(), return_dict=True)" in new, findings
    assert "latest_checkpoint()" not in new and "newest" not in new and "'best'" not in new


@pytest.mark.parametrize("name", NOT_LATEST)
def test_a_checkpoint_that_may_be_another_is_read(name: str) -> None:
    """Checkpoints whose paths somebody may have are called by their steps: none is written over."""
    new = migrated(_driven(NOT_LATEST[name]))
    assert new.endswith("\n".join(NOT_LATEST[name].splitlines()[1:]) + "\n")
    assert """f"ckpt-{int(model.optimizer.iterations.numpy())}\"""" in new and '"ckpt")' not in new


MADE = FOLDER + FOLDER.replace("estimator = ", "second = ")
TRAINED = "estimator.train(input_fn, steps=3)\n"
SHARED = {
    "made before": f"{MADE}{TRAINED}second.evaluate(input_fn)",
    "by a constant": (
        "WHERE = 'logs'\n" + MADE.replace("='logs'", "=WHERE", 1) + f"{TRAINED}second.evaluate(input_fn)"
    ),
    "in turn": f"{MADE}for step in range(3):\n    second.evaluate(input_fn)\n    {TRAINED}",
    "the first again": f"{FOLDER}{TRAINED}{MADE.splitlines()[1]}\nsecond.train(input_fn)\nestimator.evaluate(input_fn)",
}
APART = {
    "made behind": f"{FOLDER}{TRAINED}{MADE.splitlines()[1]}\nsecond.evaluate(input_fn)",
    "of two folders": f"{MADE.replace('logs', 'first', 1)}{TRAINED}second.evaluate(input_fn)",
    "by no training": f"{MADE}estimator.evaluate(input_fn)\nsecond.evaluate(input_fn)",
}


@pytest.mark.parametrize("name", [*SHARED, *APART])
def test_estimators_that_train_in_one_folder(name: str) -> None:
    """An Estimator reads the latest checkpoint whenever it is used: 1.15.5 evaluates what the other has trained."""
    text = _driven({**SHARED, **APART}[name])
    new, findings = run(text)
    told = [finding.message for finding in findings if "in the same model_dir" in finding.message]
    assert (bool(told), new == text) == ((True, True) if name in SHARED else (False, False)), findings


@pytest.mark.parametrize("shows", ["print", "repr", "str"])
def test_the_result_of_a_training_may_be_shown(shows: str) -> None:
    """What only shows that there is an object is no obstacle; a function of that name in the file is."""
    text = program(driver=f"trained = estimator.train(input_fn, steps=3)\n{shows}(trained)")
    assert f"{shows}(trained)" in migrated(text) and "KerasEstimator(" in migrated(text)
    own = text.replace("def input_fn", f"def {shows}(one):\n    return keep(one)\n\n\ndef input_fn")
    assert manual(run(own)[1])[:1] == ["TFM103"]
