"""How many steps `fit` makes in one execution."""

from __future__ import annotations

import pytest

from tests.rules.programs import program, run

SLICES = """
def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).repeat().batch(1)
"""
OLD = """
def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(1)
"""
SIZED = {
    "slices": SLICES,
    "step by step": """
def examples():
    return tf.data.Dataset.zip((tf.data.Dataset.range(9), tf.data.Dataset.from_tensor_slices([[2.0]] * 9)))


def input_fn():
    dataset = examples().map(lambda x, y: ([tf.to_float(x)], y))
    if True:
        dataset = dataset.shuffle(9)
    dataset = dataset.repeat(40).prefetch(1).batch(1)
    return dataset
""",
    "an iterator": """
def input_fn():
    iterator = tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).repeat().batch(1).make_one_shot_iterator()
    features, labels = iterator.get_next()
    return features, labels
""",
    "arrays": """
import numpy as np

input_fn = tf.estimator.inputs.numpy_input_fn(np.ones((9, 1)), np.ones((9, 1)), shuffle=False, num_epochs=None)
""",
    "a maker": """
def make_input_fn(records, training):
    def input_fn(params=None):
        data = tf.data.Dataset.from_tensor_slices(records)
        if training:
            data = data.repeat()
        return data.apply(tf.data.experimental.map_and_batch(lambda x, y: (x, y), 1))

    return input_fn


input_fn = make_input_fn(([[1.0]], [[2.0]]), True)
""",
    "files for ever": """
def input_fn():
    records = tf.data.TFRecordDataset("train").repeat()
    return records.map(lambda r: (tf.io.decode_raw(r, tf.float32), 1.0)).batch(2)
""",
}
UNKNOWN = {
    "files": 'tf.data.TFRecordDataset("train").map(lambda r: (tf.io.decode_raw(r, tf.float32), [[1.0]]))',
    "a filter": "tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).filter(lambda x, y: True).batch(1)",
    "a flat_map": """\
tf.data.Dataset.range(9).flat_map(
        lambda n: tf.data.Dataset.from_tensors(([1.0], [2.0])).repeat(n)
    ).batch(1)""",
    "another library": "make_dataset()",
    "a transformation": """\
tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).apply(
        tf.data.experimental.unbatch()
    ).batch(1)""",
    "files, twice": 'tf.data.TFRecordDataset("train").repeat(2).map(lambda r: (tf.decode_raw(r, tf.float32), 1.0))',
}
LONG = "estimator.train(input_fn, steps=1000)"


def written(text: str, **options: str) -> bool:
    new, findings = run(text, **options)
    assert "tf.keras" in new, findings
    assert ("steps_per_execution=20" in new) == ("TFM725" in [finding.code for finding in findings])
    return "steps_per_execution" in new


@pytest.mark.parametrize("name", SIZED)
def test_data_of_known_size(name: str) -> None:
    assert written(program(driver=LONG).replace(OLD, SIZED[name]))


@pytest.mark.parametrize("name", UNKNOWN)
def test_data_of_unknown_size(name: str) -> None:
    text = program(driver=LONG).replace(OLD, f"\ndef input_fn():\n    return {UNKNOWN[name]}\n")
    if name == "another library":
        text = text.replace(
            "import tensorflow as tf\n", "import tensorflow as tf\nfrom elsewhere import make_dataset\n"
        )
    assert not written(text)


ON_REPLICAS = 'params={"rate": 0.1}, config=tf.estimator.RunConfig(train_distribute=tf.distribute.MirroredStrategy())'


@pytest.mark.parametrize("loop", ["fit", "custom"])
@pytest.mark.parametrize("data", ["arrays", "files for ever", "files", "a filter"])
def test_replicas_draw_windows_only_where_the_size_is_not_known(data: str, loop: str) -> None:
    given = SIZED.get(data) or f"\ndef input_fn():\n    return {UNKNOWN[data]}\n"
    text = program(driver=LONG).replace(OLD, given).replace('params={"rate": 0.1}', ON_REPLICAS)
    new, findings = run(text, loop=loop)
    assert "def whole_rounds(context):" in new, findings
    assert ("return batches.take(batches.cardinality() // replicas * replicas)" in new) == (data in SIZED)
    assert (".window(context.num_replicas_in_sync, drop_remainder=True)" in new) == (data in UNKNOWN)
    compile(new, "train.py", "exec")


def test_all_data_count_those_of_evaluations_too() -> None:
    evaluated = f"{LONG}\nestimator.evaluate(lambda: input_fn(){{}}, steps=3)"
    assert written(program(driver=evaluated.format("")))
    assert not written(program(driver=evaluated.format(".filter(lambda x, y: True)")))


@pytest.mark.parametrize(
    ("driver", "expected"),
    [
        ("estimator.train(input_fn, steps=99)", False),
        ("estimator.train(input_fn, max_steps=100)", True),
        ("estimator.train(input_fn)", True),
        ("estimator.train(input_fn, steps=5)\nestimator.train(input_fn, steps=500)", True),
    ],
)
def test_trainings_that_are_worth_it(driver: str, expected: bool) -> None:
    assert written(program(driver=driver)) == expected


@pytest.mark.parametrize(
    ("period", "expected"), [("None", True), ("40", True), ("50", False), ("EVERY", True), ("1 + EVERY", False)]
)
def test_checkpoints_between_executions(period: str, expected: bool) -> None:
    text = program(driver=LONG).replace(
        "params={", f'model_dir="m", config=tf.estimator.RunConfig(save_checkpoints_steps={period}), params={{'
    )
    assert written(text.replace("import tensorflow as tf\n", "import tensorflow as tf\n\nEVERY = 60\n")) == expected


BOTH = """
train_spec = tf.estimator.TrainSpec(input_fn, max_steps=300)
tf.estimator.train_and_evaluate(estimator, train_spec, tf.estimator.EvalSpec(lambda: input_fn().take(5), steps=None))
"""


def test_a_program_that_may_find_a_cluster() -> None:
    text = program(driver=BOTH).replace(OLD, SLICES)
    config = 'model_dir="m", config=tf.estimator.RunConfig(save_checkpoints_steps=30), params={'
    new, findings = run(text.replace("params={", config))
    assert "    model = model_fn(\n" in new and "def model_fn(features, params, steps_per_execution=1):" in new
    assert '        steps_per_execution=1 if "ps" in resolver.cluster_spec().jobs else 20,\n' in new
    assert (
        "    if isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):" in new
        and "ClusterCoordinator" not in new
    )
    assert "TFM725" in [finding.code for finding in findings]
    for other in (program(driver=BOTH), text.replace("=300", "=30")):
        assert "steps_per_execution" not in run(other)[0]
    assert "steps_per_execution" not in run(text.replace("params={", config), strategy="parameter-server")[0]


@pytest.mark.parametrize(
    ("steps", "period", "several"),
    [("300", "None", 10), ("2000", "100", 5), ("2000", "600", 10), ("150", "None", 7), ("STEPS", "None", 5)],
)
def test_workers_of_parameter_servers_have_twenty_executions_in_an_epoch(steps: str, period: str, several: int) -> None:
    config = f"config=tf.estimator.RunConfig(save_checkpoints_steps={period}), params={{"
    text = program(driver=BOTH.replace("=300", f"={steps}")).replace(OLD, SLICES).replace("params={", config)
    text = text.replace("import tensorflow as tf\n", "import tensorflow as tf\n\nSTEPS = read()\n")
    new, findings = run(text)
    assert f'steps_per_execution={several} if "ps" in resolver.cluster_spec().jobs else 20,\n' in new
    assert "    set_train_function(model)\n" in new or "\nset_train_function(model)\n" in new
    assert "TFM725" in [finding.code for finding in findings]
    new = run(text, strategy="parameter-server")[0]
    assert f"        steps_per_execution={several},\n" in new and "set_train_function(model)\n" in new
    assert "steps_per_execution" not in run(text, loop="custom", strategy="parameter-server")[0]


def test_what_sees_single_steps() -> None:
    hook = """
class Counter(tf.train.SessionRunHook):
    def after_run(self, run_context, run_values):
        print("one more")


"""
    text = program(driver="estimator.train(input_fn, steps=1000, hooks=[Counter()])")
    assert not written(text.replace("def model_fn", hook.lstrip("\n") + "def model_fn"))


@pytest.mark.parametrize("driver", [LONG, BOTH])
def test_replicas_and_workers_in_step_make_the_same_steps(driver: str) -> None:
    text = program(driver=driver).replace(OLD, SLICES)
    text = text.replace("params={", 'config=tf.estimator.RunConfig(model_dir="m", save_checkpoints_steps=60), params={')
    assert written(text, strategy="mirrored")
    assert written(text, strategy="central-storage")
    assert driver is LONG or written(text, strategy="multi-worker-mirrored")


ELSEWHERE = [
    {"keras": "3", "strategy": "mirrored"},
    {"loop": "custom"},
]


@pytest.mark.parametrize("options", ELSEWHERE)
def test_elsewhere_each_step_is_an_execution(options: dict[str, str]) -> None:
    assert not written(program(driver=LONG), **options)


def test_on_keras_3_the_data_end_where_the_steps_do() -> None:
    text = program(driver=LONG.replace("1000", "STEPS")).replace(OLD, SLICES)
    text = text.replace("import tensorflow as tf\n", "import tensorflow as tf\n\nSTEPS = read()\n")
    assert written(text, keras="3") and "model.fit(input_fn().take(STEPS))" in run(text, keras="3")[0]


@pytest.mark.parametrize(
    ("steps", "period", "expected"),
    [("300", "60", True), ("300", "None", True), ("300", "50", False), ("310", "60", False), ("STEPS", "60", False)],
)
def test_on_keras_3_periods_are_whole_executions(steps: str, period: str, expected: bool) -> None:
    config = f'config=tf.estimator.RunConfig(model_dir="m", save_checkpoints_steps={period}), params={{'
    text = program(driver=BOTH.replace("=300", f"={steps}")).replace(OLD, SLICES).replace("params={", config)
    text = text.replace("import tensorflow as tf\n", "import tensorflow as tf\n\nSTEPS = read()\n")
    assert written(text, keras="3", strategy="one-device") == expected
    new = run(text, keras="3", strategy="one-device")[0]
    assert ("input_fn().take(60 - steps % 60)" in new) == (steps == "300" and period == "60")
