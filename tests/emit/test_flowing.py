"""Estimators that go from one function, attribute or file to another: another object goes there instead."""

from __future__ import annotations

import ast
import textwrap

import pytest

from migrator.findings import Severity
from tests.rules.programs import program, run, run_project

MODEL = program(spec=", predictions={'out': logits}").partition("\n\nestimator = ")[0]
MAKE = "tf.estimator.Estimator(model_fn, model_dir=folder, params={'rate': 0.1})"
MADE = "KerasEstimator(model_fn, model_dir=folder, params={'rate': 0.1})"


def manual(text: str, strategy: str = "auto") -> list[tuple[str, str]]:
    """Why a program stays as it is: the codes, and the lines that they are about."""
    new, findings = run(text, strategy)
    assert new == text
    lines = text.splitlines()
    return [(f.code, lines[f.line - 1].strip()) for f in findings if f.severity is Severity.MANUAL]


def driven(lines: str, strategy: str = "auto") -> str:
    """What becomes of the lines behind the model_fn, without the classes that stand before them."""
    new, findings = run(f"{MODEL}\n\n{lines}", strategy)
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    tree = ast.parse(new)
    names = ("CountedSteps", "KerasEstimator", "model_fn", "input_fn")
    first = [one for one in tree.body if isinstance(one, (ast.FunctionDef, ast.ClassDef)) and one.name in names]
    after = [one for one in tree.body if one not in first and not isinstance(one, (ast.Import, ast.If))]
    return ast.unparse(ast.parse("\n".join(ast.unparse(one) for one in after)))


SAME = {
    "an attribute": f"""\
class Go:
    def __init__(self, folder):
        self.one = {MAKE}

    def fit(self):
        self.one.train(input_fn, steps=3)
        return self.one.evaluate(input_fn)
go = Go('logs')
go.fit()
print(list(go.one.predict(input_fn)), go.one.model_dir)""",
    "a builder that is called twice": f"""\
def build(folder):
    return {MAKE}
build('a').train(input_fn, steps=3)
print(build('a').evaluate(input_fn)['loss'])""",
    "a function that trains what it is given": f"""\
def run(one, steps):
    one.train(input_fn, max_steps=steps)
    return one
def build(folder):
    return {MAKE}
first = run(build('a'), 3)
second = run(one=build('b'), steps=4)
for each in (first, second):
    print(each.evaluate(input_fn))
print([each.evaluate(input_fn, steps=5 / 2) for each in (first, second)])""",
    "a pair": f"""\
def build(folder):
    return ({MAKE}, folder)
one, folder = build('a')
one.train(input_fn)
two, _ = build('b')
two.train(input_fn)""",
    "a property, a choice, a test": f"""\
class Go:
    one = None

    @property
    def made(self):
        folder = 'logs'
        if self.one is None:
            self.one = {MAKE}
        return self.one
go = Go()
(go.made if go else None).train(input_fn).train(input_fn)
again = go.made or None
print(not again, again.evaluate(input_fn))""",
    "an input function that is given": f"""\
def main(folder, data):
    def fit(one):
        one.train(data, steps=3)
    fit({MAKE})
main('logs', input_fn)
main('more', lambda: input_fn().repeat())""",
}


@pytest.mark.parametrize("lines", SAME.values(), ids=SAME)
def test_the_driver_stays(lines: str) -> None:
    assert driven(lines) == ast.unparse(ast.parse(lines.replace(MAKE, MADE)))


def test_what_the_object_does_not_take_goes() -> None:
    new = driven(f"""\
def build(folder):
    return {MAKE}
build('a').train(input_fn, None, 3)
build('a').train(steps=2, input_fn=input_fn, hooks=[tf.train.LoggingTensorHook(['loss'], 5)])
build('a').evaluate(input_fn, None, None, None, 'test')
print(list(build('a').predict(input_fn, yield_single_examples=True)))""")
    assert new.splitlines()[2:] == [
        "build('a').train(input_fn, steps=3)",
        "build('a').train(input_fn, steps=2)",
        "build('a').evaluate(input_fn)",
        "print(list(build('a').predict(input_fn)))",
    ]


MORE = {
    "a partial": (
        "functools.partial(model_fn, params={'rate': units})",
        "functools.partial(model_fn, params={'rate': units})",
    ),
    "a lambda": (
        "lambda features, labels, mode: model_fn(features, labels, mode, {'rate': units})",
        "lambda inputs: model_fn(inputs, {'rate': units})",
    ),
    "a lambda with params": (
        "lambda features, labels, mode, params: model_fn(features, labels, mode, params)",
        "lambda inputs, params: model_fn(inputs, params)",
    ),
}


@pytest.mark.parametrize("name", MORE)
def test_a_model_fn_that_is_given_more(name: str) -> None:
    """What a partial is given counts when it is made, what a lambda reads when it is called: as before."""
    old, new = MORE[name]
    text = "import functools\ndef build(units):\n    return {}\nbuild(3).train(input_fn)\nbuild(4).train(input_fn)"
    after = driven(text.format(f"tf.estimator.Estimator({old})"))
    assert after == ast.unparse(ast.parse(text.format(f"KerasEstimator({new})").partition("\n")[2]))


CHANGED = """\
width = 3
made = tf.estimator.Estimator(lambda features, labels, mode: model_fn(features, labels, mode, {'rate': width}))
width = 4
made.train(input_fn)"""


def test_what_changes_before_the_training_is_read_in_it() -> None:
    """An Estimator calls its model_fn when it trains: so does the object."""
    new = driven(CHANGED)
    assert new == CHANGED.replace(
        CHANGED.splitlines()[1], "made = KerasEstimator(lambda inputs: model_fn(inputs, {'rate': width}))"
    )


def test_a_canned_estimator_has_what_it_was_given_when_it_was_made() -> None:
    text = """\
import tensorflow as tf


def build(units):
    column = tf.feature_column.numeric_column('x')
    return tf.estimator.DNNRegressor(units, [column], model_dir='logs')


def data():
    return tf.data.Dataset.from_tensors(({'x': [[1.0]]}, [[2.0]]))


made = build([3])
made.train(data, steps=2)
other = build([4])
other.train(data, steps=2)
"""
    new = "".join(run(text)[0].split())
    given = "dnn_regressor,feature_columns=[column],hidden_units=units"
    assert f"returnKerasEstimator(functools.partial({given}),model_dir='logs',)" in new, new


CHOICE = """\
def deep(features, labels, mode, params):
    logits = tf.layers.dense(tf.layers.dense(features, 3), 1)
    loss = tf.losses.mean_squared_error(labels, logits)
    train_op = tf.train.AdamOptimizer().minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, predictions={'out': logits})
MODELS = {'wide': model_fn, 'deep': deep}
def data(params):
    return input_fn().repeat(params['times'])
def build(name, times):
    return tf.estimator.Estimator(MODELS[name], params={'rate': 0.1, 'times': times})
build('wide', 3).train(data)
build('deep', 2).train(input_fn)"""


def test_one_of_several_model_fns_and_data_that_take_the_params() -> None:
    new, findings = run(f"{MODEL}\n\n{CHOICE}")
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert "return KerasEstimator(MODELS[name], params={'rate': 0.1, 'times': times})" in new
    assert "dataset = input_fn(**self._asked(input_fn))" in new and "import inspect\n" in new
    assert new.endswith("build('wide', 3).train(data)\nbuild('deep', 2).train(input_fn)")


SETTINGS = """\
def build(config):
    return tf.estimator.Estimator(model_fn, params={'rate': 0.1}, config=config)
one = build(tf.estimator.RunConfig(model_dir='a', tf_random_seed=3, save_checkpoints_steps=7, keep_checkpoint_max=2))
two = build(None)
one.train(input_fn)
two.train(input_fn)"""


def test_a_run_config_from_elsewhere_is_a_dict_of_what_counts() -> None:
    assert driven(SETTINGS).splitlines()[1:4] == [
        "    return KerasEstimator(model_fn, params={'rate': 0.1}, **config or {})",
        "one = build(dict(model_dir='a', seed=3, save_steps=7))",
        "two = build(None)",
    ]


def test_a_run_config_that_is_read_elsewhere() -> None:
    text = SETTINGS.replace("two.train", "print(other.master)\ntwo.train").replace(
        "one = build(", "one = build(other := "
    )
    assert "TFM108" in {code for code, _ in manual(f"{MODEL}\n\n{text}")}
    assert 'print(other.get("model_dir"))' in run(f"{MODEL}\n\n{text.replace('master', 'model_dir')}")[0]


SHARED = """\
def build(wide, config):
    if wide:
        print('wide')
        return tf.estimator.Estimator(model_fn, params={'rate': 0.1}, config=config)
    return tf.estimator.Estimator(model_fn, 'b', config, {'rate': 0.2})
def go(wide):
    config = tf.estimator.RunConfig(tf_random_seed=3)
    config = config.replace(save_checkpoints_steps=7).replace(model_dir=None if wide else wide)
    build(wide, config).train(input_fn)
    print(build(wide, config).evaluate(input_fn))
go(1)
go(0)"""


def test_a_run_config_that_is_changed_and_given_to_several() -> None:
    new = driven(SHARED.replace(".replace(model_dir=None if wide else wide)", ""))
    assert "= dict(seed=3)\n" in new and ", save_steps=7)\n" in new and new.count("**config)") == 2
    assert "replace(" not in new and "RunConfig" not in new
    twice = driven(SHARED.replace("'b', ", "None, "))
    assert ", save_steps=7), model_dir=None if wide else wide)\n" in twice
    told = manual(f"{MODEL}\n\n{SHARED.replace('None if wide else wide', 'None')}")
    assert "TFM108" in {code for code, _ in told}  # it takes back what may have been there


def test_a_run_config_that_an_estimator_of_another_form_has_too() -> None:
    other = "def other(config):\n    tf.contrib.learn.DNNRegressor([2], columns, config=config).fit(data)\n"
    text = SHARED.replace(".replace(model_dir=None if wide else wide)", "").replace(
        "    print(build", "    other(config)\n    print(build"
    )
    assert manual(f"{MODEL}\n\n{other}{text}")


SPECS = f"""\
def specs(steps):
    train_spec = tf.estimator.TrainSpec(input_fn, max_steps=steps)
    return train_spec, tf.estimator.EvalSpec(input_fn, steps=None, throttle_secs=0)
def main(folder):
    one = {MAKE}
    train_spec, eval_spec = specs(3)
    print(tf.estimator.train_and_evaluate(one, train_spec, eval_spec))
    return one
print(main('a').evaluate(input_fn))"""


def test_specs_from_elsewhere_are_dicts_of_what_counts() -> None:
    new = driven(SPECS, "one-device")
    assert "    train_spec = dict(input_fn=input_fn, max_steps=steps)\n" in new
    assert "    return (train_spec, dict(input_fn=input_fn, steps=None))\n" in new
    assert "    print(one.train_and_evaluate(train_spec, eval_spec))\n" in new


def test_train_and_evaluate_does_what_tf_config_asks_for() -> None:
    new, findings = run(f"{MODEL}\n\n{SPECS}")
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert "self.strategy = make_strategy(self.resolver)" in new and "with self.strategy.scope():" in new
    assert "make_strategy" not in run(f"{MODEL}\n\n{SPECS}", "one-device")[0]


@pytest.mark.parametrize("line", ["print(os.environ['RANK'])", "print(flags.task_index)"])
def test_what_may_differ_by_task_is_refused(line: str) -> None:
    assert manual(f"import os\n{MODEL}\n\n{SPECS}\n{line}\n")


EXPORTS = f"""\
def serve():
    x = tf.placeholder(tf.float32, [None, 1])
    return tf.estimator.export.ServingInputReceiver(x, {{'x': x}})
def run(one):
    last = tf.estimator.FinalExporter('last', serve)
    train_spec = tf.estimator.TrainSpec(input_fn, max_steps=3)
    tf.estimator.train_and_evaluate(one, train_spec, tf.estimator.EvalSpec(input_fn, exporters=last))
    return one
def build(folder):
    return {MAKE}
print(run(build('a')).export_savedmodel('x', serve))
"""


def test_exports_stay_where_they_are() -> None:
    new = driven(EXPORTS)
    assert "    last = ('last', serve)\n" in new and "dict(input_fn=input_fn, exporters=[last])" in new
    assert new.endswith("params={'rate': 0.1})).export_saved_model('x', serve))")
    inline = EXPORTS.replace("exporters=last", "exporters=[tf.estimator.FinalExporter('more', serve)]")
    assert "exporters=[('more', serve)]" in driven(
        inline.replace("    last = tf.estimator.FinalExporter('last', serve)\n", "")
    )


def test_a_program_that_only_exports() -> None:
    """The serving function tells the shapes of the features."""
    text = (
        EXPORTS.partition("def run")[0]
        + f"def build(folder):\n    return {MAKE}\nbuild('a').export_savedmodel('x', serve)"
    )
    assert driven(text).endswith("params={'rate': 0.1})\nestimator.export_saved_model('x', serve)")


EXPORTERS = {
    "several evaluations, of which one is the best": (
        "FinalExporter('last', serve)",
        "BestExporter('best', serve)",
        "params={'rate': 0.1}",
        "params={'rate': 0.1}, config=tf.estimator.RunConfig(save_checkpoints_steps=2)",
    ),
    "given to somebody": ("    return one\n", "    foreign(last)\n    return one\n"),
    "another exporter": ("tf.estimator.FinalExporter('last', serve)", "make()"),
}


@pytest.mark.parametrize("name", EXPORTERS)
def test_exporters_that_are_refused(name: str) -> None:
    text = EXPORTS
    given = EXPORTERS[name]
    for old, new in zip(given[::2], given[1::2], strict=True):
        assert old in text
        text = text.replace(old, new)
    assert "TFM142" in {code for code, _ in manual(f"{MODEL}\n\n{text}")}


CHOICES = f"""\
def build(folder):
    return {MAKE}
one = build('a')
one.train(input_fn, steps=3)
path = one.latest_checkpoint()
one.train(input_fn, steps=3)
print(one.evaluate(input_fn, checkpoint_path=path), one.params)
print(list(one.predict(input_fn, ['out'], checkpoint_path=path)))
print(list(one.predict(input_fn, yield_single_examples=False)))"""


def test_a_choice_of_checkpoints_keys_and_batches() -> None:
    new = driven(CHOICES)
    assert new.endswith(
        "print(list(one.predict(input_fn, predict_keys=['out'], checkpoint_path=path)))\n"
        "print(list(one.predict(input_fn, yield_single_examples=False)))"
    )
    assert "path = one.latest_checkpoint()" in new and "print(one.evaluate(input_fn, checkpoint_path=path)" in new
    told = manual(
        f"{MODEL}\n\n{CHOICES.replace('checkpoint_path=path', 'checkpoint_path=path or {!r}'.format('model.ckpt-3'))}"
    )
    assert "TFM110" in {code for code, _ in told}


GO = f"def build(folder):\n    return {MAKE}\n\n\none = build('a')\nbuild('b').train(input_fn)\n"
REFUSED = {
    "a list": "made = [one] * 2\nmade[0].train(input_fn)",
    "another function": "foreign(one)",
    "a container's method": "every.append(one)",
    "an attribute that is not there": "print(one.config)",
    "a method that is not there": "print(one.get_variable_names())",
    "listeners": "one.train(input_fn, saving_listeners=[own])",
    "a graph around a caller": "def fit():\n    one.train(input_fn)\n\n\ngraph = tf.Graph()\n"
    "with graph.as_default():\n    fit()\nprint(graph)",
    "a cluster": "import os\n\n\nprint(os.environ['TF_CONFIG'])",
    "a strategy around": "with tf.distribute.MirroredStrategy().scope():\n    one.train(input_fn)",
    "tensors": "one.train(lambda: ({'x': [1.0]}, [1.0]))",
    "tensors of a function": "def data():\n    return features, labels\n\n\none.train(data)",
    "arguments of the Estimator's": "def data(mode):\n    return input_fn()\n\n\none.train(data)",
    "unknown data": "def fit(data):\n    one.train(data)\n\n\nfit(make())",
    "all arguments at once": "one.train(*everything)",
    "the function itself": "go(build)",
    "a default": "def later(one=build('c')):\n    print(one.config)\n\n\nlater()",
    "a comprehension": "made = [build(one) for one in 'ab']\nmade[0].train(input_fn)",
    "a lambda": "later = lambda: one\nlater().train(input_fn)",
}


@pytest.mark.parametrize("lines", REFUSED.values(), ids=REFUSED)
def test_what_is_not_followed_is_refused(lines: str) -> None:
    told = manual(f"{MODEL}\n\n{GO}{lines}\n")
    assert told and (lines == REFUSED["a cluster"] or not [line for _, line in told if line == f"return {MAKE}"]), told


@pytest.mark.parametrize("strategy", ["mirrored", "parameter-server", "multi-worker-mirrored", "tpu", "dtensor"])
def test_other_strategies(strategy: str) -> None:
    assert {code for code, _ in manual(f"{MODEL}\n\n{GO}", strategy)} & {"TFM704", "TFM103"}


def test_other_forms_of_keras() -> None:
    for keras, loop in (("3", "fit"), ("2", "custom")):
        text = f"{MODEL}\n\n{GO}"
        new, findings = run(text, keras=keras, loop=loop)
        assert new == text and any(f.severity is Severity.MANUAL for f in findings)


FILES = {
    "models.py": f"{MODEL}\n\n\ndef build(folder):\n    return {MAKE}\n",
    "data.py": "import tensorflow as tf\n\n\ndef more():\n    data = tf.data.Dataset.from_tensors(([1.0], [2.0]))\n"
    "    return data.make_one_shot_iterator().get_next()\n",
    "go.py": "import tensorflow as tf\nimport data\nimport models\n\nestimator = models.build('a')\n"
    "estimator.train(data.more, None, 3)\nestimator.train(data.more)\nmodels.build('b').train(data.more)\n",
}


def test_other_files() -> None:
    new = {path: text for path, (text, _) in run_project(FILES).items()}
    assert f"return {MADE}" in new["models.py"] and new["go.py"].count("KerasEstimator") == 0
    assert "estimator.train(data.more, steps=3)\nestimator.train(data.more)\n" in new["go.py"]
    assert "return data\n" in new["data.py"] and "one_shot" not in new["data.py"]


@pytest.mark.parametrize("lines", [*SAME.values(), CHOICE], ids=[*SAME, "data that take the params"])
def test_what_the_class_needs_is_imported(lines: str) -> None:
    tree = ast.parse(run(f"{MODEL}\n\n{lines}")[0])
    names = {alias.asname or alias.name for one in ast.walk(tree) if isinstance(one, ast.Import) for alias in one.names}
    made = next(one for one in tree.body if isinstance(one, ast.ClassDef) and one.name == "KerasEstimator")
    reads = {one.id for one in ast.walk(made) if isinstance(one, ast.Name)}
    assert reads & {"copy", "inspect", "json", "math", "os", "tempfile", "tf"} <= names


def test_a_result_that_a_file_without_tensorflow_leaves_alone() -> None:
    models = FILES["models.py"] + "\n\ndef main():\n    one = build('a')\n    one.train(input_fn)\n    return one\n"
    files = {"models.py": models, "go.py": "import models\n\nmodels.main()\n"}
    assert MADE.replace("folder", "'a'") in run_project(files)["models.py"][0]
    files["go.py"] = "import models\n\nprint(models.main().train(None))\n"
    assert run_project(files)["models.py"][0] == models


def test_a_method_that_is_called_like_a_function() -> None:
    lines = f"""\
def build(folder):
    return {MAKE}
class Go:
    def build(self):
        self.one = build('a')
    def train(self):
        self.one.train(input_fn)
go = Go()
go.build()
go.train()"""
    assert MADE in driven(lines)


OTHERS = {
    "what is not there": "import tensorflow as tf\nimport models\n\nprint(models.build('a').config)\n",
    "a file without TensorFlow": "import models\n\nmodels.build('c').train(data, None, 3)\n",
    "all names": "from models import *\n\nprint(build('a').config)\n",
}


BESIDE = """\
def build(folder):
    config = tf.estimator.RunConfig(model_dir=folder)
    {between}
    return tf.estimator.Estimator(model_fn, params={{'rate': 0.1}}, config=config)
build('a').train(input_fn)
build('b').train(input_fn)"""


def test_a_run_config_beside_it_whose_names_change() -> None:
    assert "KerasEstimator(model_fn, model_dir=folder, " in driven(BESIDE.format(between="print(folder)"))
    told = manual(f"{MODEL}\n\n{BESIDE.format(between='folder = other()')}")
    assert told == [("TFM109", "folder = other()")]


def test_a_run_config_that_stands_in_for_none() -> None:
    made = "tf.estimator.Estimator(model_fn, folder, config=config or tf.estimator.RunConfig(save_checkpoints_steps=5))"
    build = f"def build(folder, config=None):\n    return {made}\n"
    driver = "build('a').train(input_fn)\nbuild('b').train(input_fn)\n"
    made = "KerasEstimator(model_fn, model_dir=folder, **config or dict(save_steps=5))"
    assert made in driven(build + driver)
    given = driver.replace("'b'", "'b', tf.estimator.RunConfig()")  # without settings: a dict that is false
    assert {code for code, _ in manual(f"{MODEL}\n\n{build}{given}")} == {"TFM108"}


def test_an_estimator_that_nothing_is_done_with() -> None:
    text = f"{MODEL}\n\ndef build(folder):\n    return {MAKE}\n"
    assert manual(text) == [("TFM103", f"return {MAKE}")]  # somebody else may call it
    assert driven(f"one = {MAKE.replace('folder', 'None')}").startswith("one = KerasEstimator(model_fn, ")
    files = {**FILES, "models.py": f"{MODEL}\n\n\none = {MAKE.replace('folder', 'None')}\n"}
    files["go.py"] = "import models\nimport tensorflow as tf\n\ngetattr(models, 'one').train(tf.data.Dataset)\n"
    assert {path: new for path, (new, _) in run_project(files).items()} == files
    line = "build('a').train(input_fn, saving_listeners=[own])"
    assert manual(f"{text}{line}\n") == [("TFM110", line)]


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_a_file_that_uses_it_otherwise_keeps_all(text: str) -> None:
    files = {**FILES, "other.py": text}
    assert {path: new for path, (new, _) in run_project(files).items()} == files


def test_what_is_taken_by_name_cannot_be_mixed_up() -> None:
    """`steps` was the third argument of an Estimator's `train`: the object has no second one."""
    new, _ = run(f"{MODEL}\n\n{GO}")
    assert "def train(self, input_fn, *, steps=None, max_steps=None, callbacks=()):" in new
    assert textwrap.dedent(new).count("class KerasEstimator") == 1
