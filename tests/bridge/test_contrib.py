"""What tf.contrib had around Estimators, against TensorFlow 1.15.5."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from tests.bridge.sides import LIBRARY, TENSORFLOW1, run_both
from tests.bridge.test_exports import alike
from tests.rules.test_exits import ASKED, MADE

needs_tensorflow1 = pytest.mark.skipif(
    not TENSORFLOW1, reason="no TensorFlow 1.15.5: TF_MIGRATE_TENSORFLOW1_PYTHON is not set"
)


def test_hparams_answer_as_those_of_tensorflow1() -> None:
    spec = importlib.util.spec_from_file_location("hparams", LIBRARY / "library" / "hparams.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    scope: dict[str, Any] = {"HParams": module.HParams}
    exec(f"def new():\n    return HParams({MADE})\n{ASKED}", scope)
    answers = "".join(f"{one}\n" for one in scope["asked"]())
    # What 1.15.5 printed for the same lines.
    assert answers == (Path(__file__).parents[1] / "rules" / "hparams_of_tensorflow1.txt").read_text()


SETUP = """\
    import types
    est = types.SimpleNamespace(**{name: getattr(tf.estimator, name) for name in dir(tf.estimator) if name[0] != "_"})
    from tensorflow import contrib
    vars(est).update({name: getattr(contrib.estimator, name) for name in dir(contrib.estimator) if name[0] != "_"})
    est.InMemoryEvaluatorHook = tf.estimator.experimental.InMemoryEvaluatorHook
    est.make_stop_at_checkpoint_step_hook = tf.estimator.experimental.make_stop_at_checkpoint_step_hook
    est.Experiment, est.run_experiment = contrib.learn.Experiment, contrib.learn.learn_runner.run
    est.LearnRunConfig, est.make_export_strategy = contrib.learn.RunConfig, contrib.learn.make_export_strategy
    est.HParams = contrib.training.HParams
    est.predictor_from_saved_model = contrib.predictor.from_saved_model
    est.predictor_from_estimator = contrib.predictor.from_estimator
    est.build_parsing = tf.estimator.export.build_parsing_serving_input_receiver_fn
    est.build_raw = tf.estimator.export.build_raw_serving_input_receiver_fn
"""

PROGRAM = """
import glob

if not OLD:
    est.build_parsing = est.build_parsing_serving_input_receiver_fn
    est.build_raw = est.build_raw_serving_input_receiver_fn
fc = tf.feature_column
X = np.random.RandomState(1).normal(size=(12, 2)).astype(np.float32)
LABELS = (X[:, 0] > 0).astype(np.int32)
x = fc.numeric_column("x", shape=(2,))


def input_fn(epochs=1):
    features = {"x": X, "key": np.arange(12)}
    return tf.data.Dataset.from_tensor_slices((features, LABELS)).repeat(epochs).batch(4)


def config(**more):
    return est.RunConfig(log_step_count_steps=None, save_summary_steps=None, **more)


# The linear model begins with zeros: both sides train it from the start.
def linear(name, **more):
    folder = os.path.join(FOLDER, sys.argv[1] + "-" + name)
    return est.LinearClassifier([x], model_dir=folder, config=config(), **more)


clipped = est.clip_gradients_by_norm(tf.train.MomentumOptimizer(0.5, 0.9), 0.3)
estimator = linear("clipped", optimizer=clipped)
estimator.train(input_fn)
found["clipped"] = estimator.get_variable_value("linear/linear_model/x/weights")


def more_metrics(labels, predictions, features, config):
    weighed = tf.cast(features["key"], tf.float32) * tf.cast(labels, tf.float32)
    return {"weighed": tf.metrics.mean(weighed), "accuracy": tf.metrics.mean(predictions["logistic"]),
            "folder": tf.metrics.mean(tf.cast(len(config.model_dir) > 3, tf.float32))}


found["metrics"] = dict(est.add_metrics(estimator, more_metrics).evaluate(input_fn))
rows = list(est.forward_features(estimator, "key").predict(input_fn))
found["forwarded"] = [[row["key"], row["logistic"]] for row in rows]
rows = list(est.forward_features(estimator).predict(input_fn))
found["all forwarded"] = [[row["key"], row["x"]] for row in rows]


def error(call, *arguments, **keywords):
    try:
        result = call(*arguments, **keywords)
        list(result.predict(input_fn))
    except Exception as wrong:
        return type(wrong).__name__
    return None


found["errors"] = [
    error(est.add_metrics, estimator, lambda other: {}),
    error(est.forward_features, estimator, 3),
    error(est.forward_features, estimator, ["none"]),
    error(est.InMemoryEvaluatorHook, estimator, input_fn, every_n_iter=0),
]


def evaluations(folder):
    steps = []
    for path in sorted(glob.glob(os.path.join(folder, "events*"))):
        for event in tf.train.summary_iterator(path):
            values = {v.tag: v.simple_value for v in event.summary.value if v.HasField("simple_value")}
            if values:
                steps.append([event.step, values["average_loss"]])
    return steps


estimator = linear("in_memory", optimizer="SGD")
hook = est.InMemoryEvaluatorHook(estimator, input_fn, every_n_iter=2, name="memory")
stop = est.make_stop_at_checkpoint_step_hook(estimator, 5)
estimator.train(lambda: input_fn(None), hooks=[hook, stop])
found["in memory"] = evaluations(estimator.eval_dir("memory"))
found["stopped at"] = int(estimator.get_variable_value("global_step"))

serving = est.build_parsing({"x": tf.FixedLenFeature([2], tf.float32)})
feature = tf.train.Feature(float_list=tf.train.FloatList(value=[0.5, -1.0]))
example = tf.train.Example(features=tf.train.Features(feature={"x": feature})).SerializeToString()
path = estimator.export_saved_model(os.path.join(FOLDER, sys.argv[1] + "-export"), serving).decode()
made = est.predictor_from_saved_model(path)
found["predictor"] = [sorted(made.feed_tensors), sorted(made.fetch_tensors), made({"inputs": [example]})]
made = est.predictor_from_saved_model(path, signature_def_key="predict")
found["predictor of predict"] = made({"examples": [example, example]})
names = {"e": made.feed_tensors["examples"].name}, {"p": made.fetch_tensors["logistic"].name}
found["predictor of names"] = est.predictor_from_saved_model(path, input_names=names[0], output_names=names[1])(
    {"e": [example]})


def raw():
    return est.build_raw({"x": tf.placeholder(tf.float32, [None, 2])})()


made = est.predictor_from_estimator(estimator, raw, output_key="predict")
found["predictor of estimator"] = made({"x": [[0.5, -1.0]]})


STEPS = []


class Notes(tf.train.SessionRunHook):
    def after_create_session(self, session, coord):
        STEPS.append(int(session.run(tf.train.get_global_step())))


def experiment_fn(run_config, params):
    model = est.LinearRegressor([x], config=run_config, optimizer=tf.train.GradientDescentOptimizer(params.rate))
    return est.Experiment(
        model, lambda: input_fn(None), input_fn, train_steps=6, eval_steps=None, min_eval_frequency=2,
        export_strategies=[est.make_export_strategy(serving, exports_to_keep=1)], check_interval_secs=0,
        train_steps_per_iteration=4, eval_delay_secs=0, continuous_eval_throttle_secs=0, eval_hooks=[Notes()],
    )


def run_config(name):
    return est.LearnRunConfig(model_dir=os.path.join(FOLDER, sys.argv[1] + "-" + name), save_checkpoints_steps=2)


RATE = est.HParams(rate=0.1)
made = run_config("run")
results, exported = est.run_experiment(experiment_fn, run_config=made, hparams=RATE)
found["experiment"] = [results, [len(os.path.basename(path)) for path in exported]]
found["experiment's last evaluation"] = evaluations(os.path.join(made.model_dir, "eval"))[-1]
found["experiment's evaluations"] = list(STEPS)
found["experiment's exports"] = len(os.listdir(os.path.join(made.model_dir, "export", "Servo")))
found["schedules"] = [
    est.run_experiment(experiment_fn, run_config=run_config("test"), hparams=RATE, schedule="test"),
    est.run_experiment(experiment_fn, None, "continuous_train_and_eval", run_config("turns"), RATE)[0],
    est.run_experiment(experiment_fn, run_config=run_config("turns"), hparams=RATE, schedule="evaluate"),
]
found["config"] = [made.save_checkpoints_secs, made.save_checkpoints_steps, made.environment, made.is_chief,
                   made.tf_config.gpu_options.per_process_gpu_memory_fraction]
"""
CASES = (
    *("clipped", "metrics", "forwarded", "all forwarded", "errors", "in memory", "stopped at", "predictor"),
    *("predictor of predict", "predictor of names", "predictor of estimator", "experiment"),
    *("experiment's last evaluation", "experiment's exports", "schedules", "config"),
)
MODULES = ("exporting", "heads", "estimator", "canned", "extenders", "predictors", "hparams", "contrib_learn")


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    return run_both(PROGRAM, tmp_path_factory.mktemp("contrib"), MODULES, setup=SETUP)


@needs_tensorflow1
@pytest.mark.tensorflow
@pytest.mark.parametrize("case", CASES)
def test_it_is_as_in_contrib(case: str, sides: tuple[dict[str, Any], dict[str, Any]]) -> None:
    old, new = sides
    assert alike(old[case], new[case]), (old[case], new[case])


@needs_tensorflow1
@pytest.mark.tensorflow
def test_what_it_is(sides: tuple[dict[str, Any], dict[str, Any]]) -> None:
    _, new = sides
    assert [step for step, _ in new["in memory"]] == [0, 2, 4, 5] and new["stopped at"] == 5
    assert all(new["errors"]) and new["experiment"][0]["global_step"] == 6
    # 1.15.5's monitor reads the step before or behind its update, as it happens: that one sees the last step or not.
    assert new["experiment's evaluations"] == [2, 4, 6, 6]
