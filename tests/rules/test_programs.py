"""Whole programs: every spelling of TensorFlow, comments and layout, and what must not change."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from migrator.findings import Severity
from migrator.migrate import migrate
from migrator.source.reading import Source, read
from tests.fixture_cases import FixtureCase, load_cases
from tests.rules.programs import program, run, run_project

CASES = load_cases()


def migrate_case(case: FixtureCase) -> dict[str, str]:
    sources = [source for path in case.original_files if isinstance(source := read(path), Source)]
    results = migrate(sources, case.options)
    assert not [f for result in results for f in result.findings if f.severity is Severity.MANUAL]
    return {str(result.source.path): result.text for result in results}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_fixture_migrates_to_the_expected_file(case: FixtureCase) -> None:
    new = migrate_case(case)
    for path, text in new.items():
        assert text == case.migrated_file(Path(path)).read_text(encoding="utf-8")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_migrated_code_stands_alone_and_is_left_alone(case: FixtureCase) -> None:
    for path in case.original_files:
        target = case.migrated_file(path)
        text = target.read_text(encoding="utf-8")
        compile(text, str(target), "exec")
        assert ("compat.v1" in text) == (case.style == "bridge")
        assert "migrator" not in text and "tf.estimator" not in text
        assert all(line == line.rstrip() for line in text.splitlines())
        if case.style != "bridge":  # of a bridge the whole project is looked at, below
            again, findings = run(text, path=str(target))
            assert again == text and not findings


@pytest.mark.parametrize("case", [case for case in CASES if case.style == "bridge"], ids=lambda case: case.name)
def test_a_bridged_project_is_left_alone(case: FixtureCase) -> None:
    files = {str(path): path.read_text(encoding="utf-8") for path in case.migrated.parent.glob("*.py")}
    assert any(path.endswith("keras_estimator.py") for path in files)
    for path, (text, findings) in run_project(files, style="auto").items():
        assert text == files[path] and not findings


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_comment_survives(case: FixtureCase) -> None:
    for path in case.original_files:
        new = case.migrated_file(path).read_text(encoding="utf-8")
        for line in path.read_text(encoding="utf-8").splitlines():
            if "#" in line:
                comment = line[line.index("#") :].strip()
                assert comment in new or case.name.startswith(("classifier", "two_files")), comment


def test_windows_newlines_give_windows_newlines() -> None:
    text = program()
    expected = run(text)[0]
    assert expected != text
    assert run(text.replace("\n", "\r\n"))[0] == expected.replace("\n", "\r\n")


SPELLINGS = {
    "compat.v1 as tf": ("import tensorflow.compat.v1 as tf", lambda text: text),
    "compat.v1 as tf1": ("import tensorflow.compat.v1 as tf1", lambda text: text.replace("tf.", "tf1.")),
    "tf.compat.v1.X": ("import tensorflow as tf", lambda text: text.replace("tf.", "tf.compat.v1.")),
    "from tensorflow import": (
        "from tensorflow.compat import v1 as tf",
        lambda text: text,
    ),
    "both": (
        "import tensorflow as tf\nimport tensorflow.compat.v1 as tf1",
        lambda text: text.replace("tf.layers", "tf1.layers").replace("tf.losses", "tf1.losses"),
    ),
    "aliases": (
        "import tensorflow as tf\nfrom tensorflow import estimator as est, layers",
        lambda text: text.replace("tf.estimator.", "est.").replace("tf.layers.", "layers."),
    ),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_means_the_same(spelling: str) -> None:
    head, change = SPELLINGS[spelling]
    text = program()
    expected = run(text)[0]
    body = text.partition("\n")[2]
    assert run(f"{head}\n{change(body)}")[0] == expected


def test_behaviour_switches_go() -> None:
    text = program()
    _, _, rest = text.partition("\n")
    switched = f"import tensorflow.compat.v1 as tf\n\ntf.disable_v2_behavior()\n{rest}"
    assert run(switched)[0] == run(text)[0]


def test_regularizers_stay_out_of_a_loss_that_never_had_them() -> None:
    network = "net = tf.layers.dense(net, 2, kernel_regularizer=tf.keras.regularizers.l2(0.1))"
    new, findings = run(program(network=network))
    assert "kernel_regularizer" not in new
    assert "TFM206" in [f.code for f in findings]
    loss = "loss = tf.losses.mean_squared_error(labels, logits) + tf.losses.get_regularization_loss()"
    new, findings = run(program(network=network, loss=loss))
    assert "kernel_regularizer=tf.keras.regularizers.l2(0.1)" in new
    assert "TFM206" not in [f.code for f in findings]


def test_hand_written_mean_becomes_a_loss_function() -> None:
    text = program(loss="error = labels - logits\nloss = tf.reduce_mean(tf.square(error))")
    new, _ = run(text.replace("dense(net, 1)", "dense(net, 3)"))
    assert "    def loss_fn(labels, logits):\n        error = labels - logits\n        return tf.square(error)\n" in new
    assert "\n\n    def loss_fn(" in new
    assert "loss=loss_fn" in new


def test_single_exit_with_none_defaults() -> None:
    text = program().replace(
        "    optimizer = tf.train.GradientDescentOptimizer(0.1)\n"
        "    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())\n",
        "    train_op = None\n"
        "    if mode == tf.estimator.ModeKeys.TRAIN:\n"
        "        optimizer = tf.train.GradientDescentOptimizer(0.1)\n"
        "        train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())\n",
    )
    assert "train_op = None" in text
    assert run(text)[0] == run(program())[0]


def test_strategy_option_writes_only_that_strategy() -> None:
    driver = (
        "tf.estimator.train_and_evaluate(estimator, tf.estimator.TrainSpec(input_fn, max_steps=5),"
        " tf.estimator.EvalSpec(input_fn, steps=None))"
    )
    automatic = run(program(driver=driver))[0]
    assert "ParameterServerStrategy" in automatic and "MultiWorkerMirroredStrategy" in automatic
    servers = run(program(driver=driver), "parameter-server")[0]
    assert "ParameterServerStrategy" in servers and "MultiWorkerMirroredStrategy" not in servers
    mirrored = run(program(driver=driver), "multi-worker-mirrored")[0]
    assert "MultiWorkerMirroredStrategy" in mirrored and "ParameterServerStrategy" not in mirrored
    single = run(program(driver=driver), "one-device")[0]
    assert "Strategy(" not in single and "model.fit(input_fn().take(5))" in single
    for text in (automatic, servers, mirrored, single):
        ast.parse(text)


def test_new_names_do_not_collide() -> None:
    text = program(driver="model = make_inputs = 1\nestimator.train(input_fn, steps=3)\nprint(model, make_inputs)")
    new = run(text)[0]
    assert "model_2 = model_fn(make_inputs_2(input_fn())" in new
    assert "print(model, make_inputs)" in new
