"""Session hooks: left out, turned into steps, into callbacks, or refused."""

from __future__ import annotations

import ast

import pytest

from migrator.findings import Finding, Severity
from tests.rules.programs import program, run, run_project


def manual(findings: list[Finding]) -> list[str]:
    return [f.code for f in findings if f.severity is Severity.MANUAL]


def migrated(text: str) -> tuple[str, list[str]]:
    """The new program, and the codes of what there is to review."""
    new, findings = run(text)
    assert not manual(findings), findings
    ast.parse(new)
    return new, sorted({f.code for f in findings if f.severity is Severity.REVIEW})


def refused(text: str) -> list[Finding]:
    new, findings = run(text)
    assert new == text
    return [f for f in findings if f.severity is Severity.MANUAL]


TIMER = """\
class Timer(tf.train.SessionRunHook):
    # times
    def __init__(self):
        self.times = []

    def begin(self):
        self.step = tf.train.get_or_create_global_step()
        if self.step is None:
            raise RuntimeError("no step")

    def before_run(self, run_context):
        self.t0 = now()
        return tf.train.SessionRunArgs({"step": self.step})

    def after_run(self, run_context, run_values):
        del run_context
        self.times.append((run_values.results["step"], now() - self.t0))

    def end(self, session):
        print(self.times)

"""
TIMER_NEW = """\
class Timer(tf.keras.callbacks.Callback):
    # times
    def __init__(self):
        super().__init__()
        self.times = []

    def on_train_batch_begin(self, batch, logs=None):
        self.t0 = now()

    def on_train_batch_end(self, batch, logs=None):
        self.times.append((self.model.optimizer.iterations.numpy(), now() - self.t0))

    def on_train_end(self, logs=None):
        print(self.times)
"""


def test_own_hooks_become_callbacks() -> None:
    new, codes = migrated(program(driver=TIMER + "estimator.train(input_fn, steps=3, hooks=[Timer()])"))
    assert TIMER_NEW in new and codes == ["TFM161"]
    assert "model.fit(input_fn().take(3), callbacks=[Timer()])" in new


def test_lists_of_hooks_lose_those_that_are_left_out() -> None:
    driver = (
        "if now():\n    hooks = [tf.train.StepCounterHook(), Timer()]\nelse:\n    hooks = []\n"
        "if now():\n    hooks.append(tf.train.StepCounterHook())\n"
        "more = tf.train.NanTensorHook('loss')\nhooks += [more]\nhooks += [Timer()]\n"
        "estimator.train(input_fn, steps=3, hooks=hooks)\nprint(hooks[-1].times)"
    )
    new, codes = migrated(program(driver=TIMER + driver))
    assert "if now():\n    hooks = [Timer()]\nelse:\n    hooks = []\nif now():\n    pass\nhooks += [Timer()]" in new
    assert "callbacks=hooks)" in new and "more" not in new
    assert codes == ["TFM141", "TFM161"]
    first = refused(program(driver=TIMER + driver.replace("[-1]", "[0]")))
    assert [f.code for f in first] == ["TFM110"]


def test_hooks_of_several_phases() -> None:
    text = program(
        spec=", predictions=logits",
        driver=TIMER.replace('return tf.train.SessionRunArgs({"step": self.step})', "pass").replace(
            'run_values.results["step"]', "1"
        )
        + "estimator.train(input_fn, steps=3)\nresults = estimator.evaluate(input_fn, hooks=[Timer()])\n"
        "watch = Timer()\nfor one in estimator.predict(input_fn, hooks=[watch]):\n    print(one, watch.times)",
    )
    new, _ = migrated(text)
    assert "callbacks=[Timer()]" in new and "predict(predictor, input_fn(), [watch])" in new
    assert "    on_predict_batch_begin = on_test_batch_begin\n" in new
    assert "callbacks.on_predict_batch_begin(step)" in new and "tf.keras.callbacks.CallbackList" in new


def test_hooks_of_another_file() -> None:
    other = "import tensorflow as tf\n\nfrom clock import now\n\n\n" + TIMER
    driver = "from timing import Timer\nestimator.train(input_fn, steps=3, hooks=[Timer()])"
    results = run_project({"train.py": program(driver=driver), "timing.py": other})
    assert TIMER_NEW in results["timing.py"][0]
    assert "callbacks=[Timer()]" in results["train.py"][0]


def test_hooks_of_a_specification() -> None:
    driver = (
        "tf.estimator.train_and_evaluate(estimator, tf.estimator.TrainSpec(input_fn, max_steps=4, hooks=[Timer()]), "
        "tf.estimator.EvalSpec(input_fn))"
    )
    new, _ = migrated(program(driver=TIMER + driver))
    assert '*([] if "ps" in resolver.cluster_spec().jobs else [Timer()])' in new


def test_stop_at_step_in_the_model_fn() -> None:
    hooks = ", training_hooks=[tf.train.StopAtStepHook({})]"
    new, _ = migrated(program(spec=hooks.format("num_steps=2"), driver="estimator.train(input_fn)"))
    assert "model.fit(input_fn().take(2))" in new
    new, _ = migrated(program(spec=hooks.format("2")))
    assert "model.fit(input_fn().take(min(3, 2)))" in new
    assert refused(program(spec=hooks.format("last_step=2")))[0].code == "TFM110"
    assert refused(program(spec=hooks.format("num_steps=params['n']")))[0].code == "TFM110"


HELPER = """\
def logging_hook(**kwargs):
    return tf.train.LoggingTensorHook(["loss"], every_n_iter=100)


def profiler_hook(**kwargs):
    return tf.train.ProfilerHook(save_steps=10)


TABLE = {"log": logging_hook, "profile": profiler_hook}


def get_hooks(names, **kwargs):
    hooks = []
    for name in names:
        make = TABLE.get(name)
        hooks.append(make(**kwargs))
    return hooks

"""


def test_hooks_of_a_helper_function() -> None:
    text = program(driver="estimator.train(input_fn, steps=3, hooks=get_hooks(['log']))")
    results = run_project(
        {
            "train.py": text.replace("import tensor", "from helper import get_hooks\nimport tensor", 1),
            "helper.py": "import tensorflow as tf\n\n\n" + HELPER,
        }
    )
    findings = [f for _, found in results.values() for f in found]
    assert "model.fit(input_fn().take(3))" in results["train.py"][0], findings


EARLY = """\
hook = tf.estimator.experimental.{name}(estimator, {arguments}run_every_secs=None, run_every_steps=5)
tf.estimator.train_and_evaluate(
    estimator, tf.estimator.TrainSpec(input_fn, max_steps={steps}, hooks=[hook]), tf.estimator.EvalSpec(input_fn))"""
CONFIG = 'params={"rate": 0.1}, config=tf.estimator.RunConfig(save_checkpoints_steps=5))'


def early(name: str, arguments: str, steps: str = "20") -> str:
    text = program(driver=EARLY.format(name=name, arguments=arguments, steps=steps))
    return text.replace('params={"rate": 0.1})', CONFIG)


def test_early_stopping() -> None:
    new, codes = migrated(early("stop_if_no_increase_hook", "'loss', 10, "))
    assert "class StopIfNoIncrease(tf.keras.callbacks.Callback)" in new and "value > self.best" in new
    assert "hook = StopIfNoIncrease(metric_name='loss', max_steps_without_increase=10, run_every_steps=5)" in new
    assert "callbacks=[hook]" in new and codes == ["TFM163", "TFM166", "TFM617"]
    new, _ = migrated(early("stop_if_lower_hook", "'loss', 0.1, min_steps=3, ", "22"))
    assert "min_steps=3)" in new and "epochs=-(-22 // 5)" in new and ".take(22)" in new
    new, _ = migrated(early("make_early_stopping_hook", "lambda: False, ").replace("None, run_every_steps=5", "9"))
    assert "StopWhen(should_stop_fn=lambda: False, run_every_secs=9)" in new and "import time" in new


EARLY_REFUSED = {
    "no periods": early("stop_if_lower_hook", "'loss', 0.1, ").replace("save_checkpoints_steps=5", ""),
    "no end": early("stop_if_lower_hook", "'loss', 0.1, ", "None"),
    "evaluations of another process": early("stop_if_lower_hook", "'loss', 0.1, eval_dir='e', "),
    "no evaluations": program(
        driver="hook = tf.estimator.experimental.stop_if_lower_hook(estimator, 'loss', 0.1)\n"
        "estimator.train(input_fn, hooks=[hook])"
    ),
}


@pytest.mark.parametrize("name", EARLY_REFUSED)
def test_early_stopping_that_is_refused(name: str) -> None:
    assert [f.code for f in refused(EARLY_REFUSED[name])] == ["TFM164"]


REFUSED = {
    "runs an operation": TIMER.replace("del run_context", "run_context.session.run(self.op)"),
    "feeds": TIMER.replace('"step": self.step}', '"step": self.step}, feed_dict=self.fed').replace("print", "send"),
    "fetches by condition": TIMER.replace("        return tf", "        if now():\n            return tf"),
    "fetches a tensor": TIMER.replace('{"step": self.step}', '"relu:0"')
    .replace('results["step"]', "results")
    .replace("print", "send"),
    "an attribute of callbacks": TIMER.replace("self.times", "self.params"),
    "ends an evaluation": TIMER,
}


@pytest.mark.parametrize("name", REFUSED)
def test_own_hooks_that_are_refused(name: str) -> None:
    hook = REFUSED[name].replace("        del run_context\n", "        run_context.request_stop()\n")
    driver = "estimator.train(input_fn, steps=3, hooks=[Timer()])"
    if name == "ends an evaluation":
        driver = "estimator.train(input_fn, steps=3)\nestimator.evaluate(input_fn, hooks=[Timer()])"
    found = refused(program(driver=hook + driver))
    assert found[0].code == "TFM162" and "`Timer` cannot become a Keras callback" in found[0].message


def test_a_hook_class_that_is_used_elsewhere() -> None:
    driver = TIMER + "print(Timer)\nestimator.train(input_fn, steps=3, hooks=[Timer()])"
    assert [f.code for f in refused(program(driver=driver))] == ["TFM162"]


def test_horovod() -> None:
    text = program(driver="estimator.train(input_fn, steps=3, hooks=[hvd.BroadcastGlobalVariablesHook(0)])")
    found = refused(text.replace("import tensor", "import horovod.tensorflow as hvd\nimport tensor", 1))
    assert [f.code for f in found] == ["TFM160"]


COUNTS = """\
class Counts(tf.train.SessionRunHook):
    def begin(self):
        self.step = tf.train.get_global_step()
        self.more = tf.assign_add(self.step, 1, use_locking=True)

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self.more)

    def after_run(self, run_context, run_values):
        pass


estimator.train(input_fn, steps=3)
hooks = []
if now():
    hooks = [Counts(), tf.train.StopAtStepHook(4)]
for one in estimator.predict(input_fn, hooks=hooks):
    print(one)
"""


def test_predictions_that_a_hook_ends() -> None:
    text = program(spec=", predictions=logits", driver=COUNTS)
    new, codes = migrated(text)
    assert "hooks = [StopAfterBatches(num_steps=4)]" in new and "Counts" not in new
    assert "        if predictor.stop_training:\n            break\n" in new and "TFM141" in codes
    assert refused(text.replace("Counts(), ", ""))[0].code == "TFM110"
    assert refused(text.replace("steps=3)", "steps=3, hooks=[Counts()])"))[0].code == "TFM162"


SAVES = """\
class Saves(tf.train.CheckpointSaverHook):
    def __init__(self, last, *args, **kwargs):
        super(Saves, self).__init__(*args, **kwargs)
        self.last = last

    def _save(self, session, step):
        mllog.mllog_start(key="checkpoint", metadata={"step": step})
        return super(Saves, self)._save(session, step)


estimator.train(input_fn, steps=3, hooks=[Saves(checkpoint_dir="m", save_steps=4, last=8)])
"""


def test_own_hooks_derived_from_stock_hooks() -> None:
    text = program(driver=SAVES).replace("import tensor", "from mlperf_logging import mllog\nimport tensor", 1)
    new, codes = migrated(text)
    assert "Saves" not in new and codes == ["TFM141"]
    assert refused(text.replace("mllog.mllog_start(", "session.run("))[0].code == "TFM162"


def test_hooks_of_the_specification_from_a_function() -> None:
    text = program(
        loss="loss = tf.losses.mean_squared_error(labels, logits)\nlog = show(loss, 3)",
        spec=", training_hooks=[log]",
    ).replace(
        "def model_fn", "def show(loss, n):\n    return tf.train.LoggingTensorHook({'l': loss}, n)\n\n\ndef model_fn"
    )
    new, _ = migrated(text)
    assert "show" not in new and "Hook" not in new
    text = program(spec=", training_hooks=[tf.train.StopAtStepHook(2), tf.train.StepCounterHook()]")
    new, findings = run(text)
    assert not manual(findings) and "take(min(3, 2))" in new and "Hook" not in new


LOSS = """\
class Enough(tf.train.SessionRunHook):
    def before_run(self, run_context):
        return tf.train.SessionRunArgs(fetches=["total_loss:0", "head/step:0", "rate:0"])

    def after_run(self, run_context, run_values):
        loss, step, rate = run_values.results
        print(step, rate)
        if loss < 0.1:
            run_context.request_stop()


estimator.train(input_fn, steps=3, hooks=[Enough()])"""
LOSS_NEW = """\
class Enough(tf.keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None):
        # so that the logs are of this batch, not of the epoch so far
        self.model.reset_metrics()

    def on_train_batch_end(self, batch, logs=None):
        loss, step, rate = [
            logs["loss"],
            self.model.optimizer.iterations.numpy(),
            self.learning_rate(),
        ]
        print(step, rate)
        if loss < 0.1:
            self.model.stop_training = True

    def learning_rate(self):
        \"\"\"Returns the learning rate of the last step.\"\"\"
        rate, steps = self.model.optimizer.learning_rate, self.model.optimizer.iterations
        return (rate(steps - 1) if callable(rate) else rate).numpy()
"""
NAMED = (
    "loss = tf.losses.mean_squared_error(labels, logits)\n"
    'tf.identity(loss, "total_loss")\ntf.identity(tf.train.get_global_step(), name="step")\n'
    'rate = 0.1\ntf.identity(rate, name="rate")'
)


def test_tensors_by_name() -> None:
    text = program(loss=NAMED, optimizer="tf.train.GradientDescentOptimizer(rate)", driver=LOSS)
    new, codes = migrated(text)
    assert "".join(LOSS_NEW.split()).replace(",]", "]") in "".join(new.split()).replace(",]", "]")
    assert "identity" not in new and codes == ["TFM161"]
    new, _ = migrated(text.replace("head/step:0", "global_step:0"))
    assert "self.model.optimizer.iterations.numpy()," in new
    new, _ = migrated(text.replace('"rate:0"', 'run_context.session.graph.get_tensor_by_name("rate:0")'))
    assert "".join(LOSS_NEW.split()).replace(",]", "]") in "".join(new.split()).replace(",]", "]")
    assert refused(text.replace("tf.identity(loss,", "tf.identity(logits,"))[0].code == "TFM162"
    assert refused(text.replace('name="step"', 'name="total_loss"'))[0].code == "TFM162"


FACTORY = {
    "hooks.py": '''\
import tensorflow as tf
import logger


class ExamplesHook(tf.train.SessionRunHook):
    """Tells a logger how many examples a second are trained."""

    def __init__(self, batch_size, every_n_steps, metric_logger=None):
        if every_n_steps < 1:
            raise ValueError("every_n_steps")
        self._logger = metric_logger or logger.BaseLogger()
        self._timer = tf.train.SecondOrStepTimer(every_steps=every_n_steps)
        self._batch_size = batch_size

    def begin(self):
        self._step = tf.train.get_global_step()
        if self._step is None:
            raise RuntimeError("no step")

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self._step)

    def after_run(self, run_context, run_values):
        if self._timer.should_trigger_for_step(run_values.results):
            seconds, steps = self._timer.update_last_triggered_step(run_values.results)
            self._tell(self._batch_size * steps / seconds)

    def _tell(self, value):
        self._logger.log_metric("examples", value)


class MetricHook(tf.train.LoggingTensorHook):
    def __init__(self, tensors, metric_logger):
        super(MetricHook, self).__init__(tensors=tensors, every_n_iter=10)
        self._logger = metric_logger

    def end(self, session):
        self._logger.log_metric("end", session.run(self._current_tensors))
''',
    "factory.py": """\
import tensorflow as tf
import hooks
from hooks import MetricHook
import logger


def examples_hook(batch_size=8, **kwargs):
    return hooks.ExamplesHook(batch_size, 100, logger.get_logger())


def metric_hook(**kwargs):
    return MetricHook(["loss"], logger.get_logger())


def logging_hook(**kwargs):
    return tf.train.LoggingTensorHook(["loss"], every_n_iter=100)


HOOKS = {"examples": examples_hook, "metric": metric_hook, "logging": logging_hook}


def get_train_hooks(names, **kwargs):
    if not names:
        return []
    train_hooks = []
    for name in names:
        make = HOOKS.get(name.lower())
        if make is None:
            raise ValueError(name)
        train_hooks.append(make(**kwargs))
    return train_hooks
""",
    "logger.py": "class BaseLogger(object):\n    pass\n\n\ndef get_logger():\n    return BaseLogger()\n",
}


def test_a_factory_of_hooks_in_other_files() -> None:
    driver = (
        "train_hooks = factory.get_train_hooks(['logging'], batch_size=3)\nestimator.train(input_fn, hooks=train_hooks)"
    )
    text = program(driver=driver).replace("import tensor", "import factory\nimport tensor", 1)
    results = run_project({**FACTORY, "train.py": text})
    findings = [f for _, found in results.values() for f in found]
    assert not manual(findings), findings
    assert "train_hooks" not in results["train.py"][0] and "model.fit(input_fn())" in results["train.py"][0]
    for name in ("hooks.py", "factory.py"):
        assert "Hook" not in results[name][0] and "hook" not in results[name][0].replace("import hooks\n", "")
    stops = FACTORY["hooks.py"].replace("self._tell(self", "run_context.request_stop()\n            self._tell(self")
    results = run_project({**FACTORY, "hooks.py": stops, "train.py": text})
    assert {f.code for _, found in results.values() for f in found if f.severity is Severity.MANUAL} == {"TFM162"}


def test_what_reads_the_names_of_hooks_keeps_them() -> None:
    driver = (
        "train_hooks = factory.get_train_hooks(['logging'], batch_size=3)\nestimator.train(input_fn, hooks=train_hooks)"
    )
    text = program(driver=driver).replace("import tensor", "import factory\nimport tensor", 1)
    flags = "import factory\n\nHELP = ', '.join(name for name in factory.HOOKS)\nKNOWN = 'metric' in factory.HOOKS\n"
    tests = (
        "import unittest\nimport factory\n\n\nclass FactoryTest(unittest.TestCase):\n"
        "    def test_names(self):\n        self.assertEqual(factory.get_train_hooks([]), [])\n"
    )
    results = run_project({**FACTORY, "train.py": text, "options.py": flags, "factory_test.py": tests})
    findings = [f for _, found in results.values() for f in found]
    assert not manual(findings), findings
    assert 'HOOKS = ("examples", "metric", "logging")\n' in results["factory.py"][0]
    assert "def " not in results["factory.py"][0] and results["options.py"][0] == flags
    assert [(f.code, f.line) for f in results["factory_test.py"][1]] == [("TFM125", 7)]
    # What is called through the table elsewhere stays, and then so does all that blocks it.
    calls = flags + "MADE = factory.HOOKS['logging']()\n"
    results = run_project({**FACTORY, "train.py": text, "options.py": calls})
    assert {f.code for _, found in results.values() for f in found if f.severity is Severity.MANUAL} >= {"TFM203"}
    assert results["factory.py"][0] == FACTORY["factory.py"]


INITIALIZER = """\
class Initializer(tf.train.SessionRunHook):
    def __init__(self):
        super(Initializer, self).__init__()
        self.function = None

    def after_create_session(self, session, coord):
        self.function(session)


class Reader(object):
    def inputs(self):
        hook = Initializer()

        def read():
            iterator = input_fn().make_initializable_iterator()
            hook.function = lambda session: session.run(iterator.initializer)
            return iterator.get_next()

        return read, hook


read_fn, read_hook = Reader().inputs()
estimator.train(read_fn, steps=3, hooks=[read_hook])
"""


def test_hooks_that_initialize_iterators() -> None:
    new, found = run(program(driver=INITIALIZER))
    assert not manual(found) and "TFM614" in [f.code for f in found]
    assert "Initializer" not in new and "hook" not in new and "return input_fn()\n\n        return read\n" in new
    assert "read_fn = Reader().inputs()" in new


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("        self.function(session)", "        self.function(session)\n        count(session)", "TFM165"),
        ("self.function = None", "self.function = print", "TFM165"),
        ("session.run(iterator.initializer)", "session.run([iterator.initializer, other])", "TFM165"),
        ("        return read, hook", "        print(hook)\n        return read, hook", "TFM165"),
        ("hooks=[read_hook])", "hooks=[read_hook])\nread_hook.function(None)", "TFM165"),
        ("iterator = ", "other = input_fn().make_initializable_iterator()\n            iterator = ", "TFM601"),
        ("return iterator.get_next()", "return iterator.get_next(), iterator", "TFM601"),
    ],
)  # fmt: skip
def test_hooks_that_do_more_than_to_initialize_iterators(old: str, new: str, code: str) -> None:
    found = refused(program(driver=INITIALIZER.replace(old, new)))
    assert code in [f.code for f in found], found


FEEDS = """\
            x = np.ones((4, 1))
            features = tf.placeholder(tf.float32, [None, 1])
            iterator = tf.data.Dataset.from_tensor_slices((features, features)).batch(1).make_initializable_iterator()
            hook.function = lambda session: session.run(iterator.initializer, {features: x})
"""


def test_what_an_initializer_feeds() -> None:
    text = program(
        driver=INITIALIZER.replace(
            INITIALIZER[INITIALIZER.index("            iter") : INITIALIZER.index("            return it")], FEEDS
        )
    )
    new, found = run(text.replace("import tensor", "import numpy as np\nimport tensor", 1))
    assert not manual(found), found
    assert "from_tensor_slices((tf.constant(x, tf.float32), tf.constant(x, tf.float32))).batch(1)" in new
    late = text.replace("            x = np.ones((4, 1))\n", "").replace(
        "            return it", "            x = np.ones((4, 1))\n            return it"
    )
    assert "TFM601" in [f.code for f in refused(late)]


def test_a_hook_of_the_training_and_of_its_evaluations() -> None:
    driver = (
        "tf.estimator.train_and_evaluate(estimator, tf.estimator.TrainSpec(input_fn, max_steps=10, hooks=[Timer()]), "
        "tf.estimator.EvalSpec(input_fn, hooks=[Timer()]))"
    )
    text = program(driver=TIMER + driver)
    new, _ = migrated(text)
    assert "model.evaluate(input_fn().take(100), callbacks=[Timer()])" in new
    found = refused(text.replace('params={"rate": 0.1})', CONFIG))
    assert [f.code for f in found] == ["TFM162"]


def test_a_hook_that_is_not_known() -> None:
    found = refused(program(driver="read, hook = other.inputs()\nestimator.train(input_fn, hooks=[hook])"))
    assert found[0].code == "TFM110" and "`other.inputs(...)`" in found[0].message


OFFICIAL = "estimator.train(input_fn, hooks=hooks_helper.get_train_hooks({}, batch_size=3))"


@pytest.mark.parametrize(
    ("place", "names"), [("official.utils.logs", "flags.hooks"), ("copy_of.logs", '["ExamplesPerSecondHook"]')]
)
def test_hooks_of_the_official_models(place: str, names: str) -> None:
    text = program(driver=OFFICIAL.format(names)).replace("import t", f"from {place} import hooks_helper\nimport t", 1)
    new, findings = migrated(text)
    assert "get_train_hooks" not in new and "TFM188" in findings


@pytest.mark.parametrize(("place", "names"), [("copy_of.logs", "flags.hooks"), ("copy_of.logs", '["OtherHook"]')])
def test_but_not_of_what_may_be_something_else(place: str, names: str) -> None:
    text = program(driver=OFFICIAL.format(names)).replace("import t", f"from {place} import hooks_helper\nimport t", 1)
    assert [f.code for f in refused(text)] == ["TFM110"]


def test_a_name_that_is_used_twice() -> None:
    driver = COUNTS.replace(
        "estimator.train(input_fn, steps=3)\nhooks = []",
        "hooks = [tf.train.ProfilerHook(save_steps=3)]\nestimator.train(input_fn, steps=3, hooks=hooks)\nhooks = []",
    )
    new, _ = migrated(program(spec=", predictions=logits", driver=driver))
    assert "StopAfterBatches(num_steps=4)" in new and "ProfilerHook" not in new
    assert refused(program(spec=", predictions=logits", driver="for _ in 'ab':\n    " + driver.replace("\n", "\n    ")))


TRACER = """\
from datetime import datetime

from tensorflow.core.protobuf import config_pb2
from tensorflow.python.client import timeline
from tensorflow.python.training import training_util


class Tracer(tf.train.SessionRunHook):
    def __init__(self, traces):
        self.traces = traces

    def begin(self):
        self.count = 0
        self.step = training_util._get_or_create_global_step_read()

    def before_run(self, run_context):
        self.since = datetime.now()
        if self.traces:
            options = config_pb2.RunOptions(trace_level=config_pb2.RunOptions.FULL_TRACE)
            return tf.train.SessionRunArgs({"step": self.step}, options=options)
        return tf.train.SessionRunArgs({"step": self.step})

    def after_run(self, run_context, run_values):
        self.count += 1
        print(self.count, datetime.now() - self.since)
        if self.traces:
            with tf.gfile.Open("trace.json", "w") as file:
                file.write(timeline.Timeline(run_values.run_metadata.step_stats).generate_chrome_trace_format())

"""


def with_tracer(tracer: str = TRACER) -> str:
    text = program(driver="estimator.train(input_fn, steps=3, hooks=[Tracer(False)])")
    return text.replace("\n\ndef input_fn", f"\n{tracer}\n\ndef input_fn", 1)


def test_hooks_that_trace_are_left_out() -> None:
    new, codes = migrated(with_tracer())
    assert "TFM141" in codes and "Tracer" not in new
    assert "tensorflow.python" not in new and "config_pb2" not in new


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("timeline.Timeline(run_values.run_metadata.step_stats).generate_chrome_trace_format()", "'x'"),
        ("self.count += 1\n", "self.count += 1\n        run_context.session.run(self.other)\n"),
        ("self.count += 1\n", "self.count += 1\n        run_context.request_stop()\n"),
    ],
)
def test_hooks_that_do_more_than_trace_stay(old: str, new: str) -> None:
    assert old in TRACER
    assert {finding.code for finding in refused(with_tracer(TRACER.replace(old, new, 1)))} & {"TFM110", "TFM162"}


KEEPS_A_HOOK = """\
class Trainer:
    def __init__(self):
        self.tensors = {"p": "p"}
        self.hook = tf.train.LoggingTensorHook(self.tensors, every_n_iter=10)

    def train(self):
        estimator = tf.estimator.Estimator(model_fn, params={"rate": 0.1})
        estimator.train(input_fn, steps=3, hooks=[self.hook])
        estimator.evaluate(input_fn, hooks=[self.hook])


Trainer().train()
"""


def keeping(old: str = "", new: str = "") -> str:
    text = program().split("estimator = tf.estimator.Estimator(")[0]
    return text + KEEPS_A_HOOK.replace(old, new)


def test_a_hook_that_an_object_keeps_is_left_out() -> None:
    new, codes = migrated(keeping())
    assert "Hook" not in new and "self.tensors" in new and "TFM141" in codes


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Trainer().train()", "trainer = Trainer()\ntrainer.train()\nprint(trainer.hook)"),
        ("Trainer().train()", "trainer = Trainer()\ntrainer.hook = make()\ntrainer.train()"),
        ("Trainer().train()", "trainer = Trainer()\ntrainer.hook, other = make()\ntrainer.train()"),
        ("tf.train.LoggingTensorHook(self.tensors, every_n_iter=10)", "tf.train.StopAtStepHook(2)"),
    ],
)
def test_an_attribute_that_may_be_another_hook_is_refused(old: str, new: str) -> None:
    assert "TFM110" in [f.code for f in refused(keeping(old, new))]


UNUSED = 'names = {"p": "p"}\nhook = tf.train.LoggingTensorHook(names, every_n_iter=10)\n'
TRAINS = "estimator.train(input_fn, steps=3)"


def test_a_hook_that_nobody_uses_is_left_out() -> None:
    new, codes = migrated(program(driver=UNUSED + TRAINS))
    assert "Hook" not in new and "names" not in new and "TFM141" in codes


@pytest.mark.parametrize("more", ["\nprint(hook)", "\n\n\ndef get():\n    return hook"])
def test_a_hook_that_somebody_reads_stays(more: str) -> None:
    assert "TFM203" in [f.code for f in refused(program(driver=UNUSED + TRAINS + more))]


OF_METRICS = """\
import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [0])).batch(1)


def model_fn(features, labels, mode):
    logits = tf.layers.dense(features, 2)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    accuracy = tf.metrics.accuracy(labels, tf.argmax(logits, -1))
    tensors = {"loss": loss, "accuracy": accuracy[1]}
    hook = tf.train.LoggingTensorHook(tensors, every_n_iter=2)
    train_op = tf.train.AdamOptimizer(0.05).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=train_op, eval_metric_ops={"acc": accuracy}, training_hooks=[hook])


estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn, steps=3)
print(estimator.evaluate(input_fn))
"""


def test_a_hook_that_logs_metrics_is_left_out_with_what_it_logs() -> None:
    new, codes = migrated(OF_METRICS)
    assert "TFM141" in codes and "Hook" not in new and "tensors" not in new
    assert 'metrics=[tf.keras.metrics.SparseCategoricalAccuracy(name="acc")]' in new
    inside = OF_METRICS.replace("Hook(tensors,", 'Hook({"accuracy": accuracy[1]},').replace(
        '    tensors = {"loss": loss, "accuracy": accuracy[1]}\n', ""
    )
    assert "Hook" not in migrated(inside)[0]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    hook =", "    loss = loss + 0.0 * accuracy[1]\n    hook ="),
        ("training_hooks=[hook]", 'predictions=tensors["accuracy"], training_hooks=[hook]'),
        ("tf.train.LoggingTensorHook(tensors, every_n_iter=2)", "Own(tensors)"),
    ],
)
def test_metrics_that_more_than_a_hook_reads(old: str, new: str) -> None:
    assert refused(OF_METRICS.replace(old, new))
