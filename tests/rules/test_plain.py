"""Lines around Estimators that say nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.findings import Severity
from migrator.program.parsed import ParsedFile
from migrator.program.plain import without_what_says_nothing
from tests.rules.programs import program, run

IDLE = """\
def main(threads):
    config = tf.estimator.RunConfig().replace(
        session_config=tf.ConfigProto(inter_op_parallelism_threads=threads))
    estimator = tf.estimator.Estimator(model_fn)
    estimator.train(input_fn, steps=3)


main(2)
"""


MADE = 'estimator = tf.estimator.Estimator(model_fn, params={"rate": 0.1})\n'


def idle(driver: str) -> str:
    assert MADE in program()
    return program(driver=driver.replace("Estimator(model_fn)", "Estimator(model_fn, params={})")).replace(MADE, "")


def test_a_training_that_gives_its_estimator_the_name_it_has() -> None:
    new, findings = run(program(driver="estimator = estimator.train(input_fn, steps=3)\nestimator.evaluate(input_fn)"))
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert "model.fit(input_fn().take(3))\n" in new and "= estimator" not in new


def test_a_training_that_gives_another_name_gives_that_to_what_takes_its_place() -> None:
    driver = "trained = estimator.train(input_fn, steps=3)\ntrained.evaluate(input_fn)"
    new, findings = run(program(driver=driver))
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert new.endswith(f"{driver}\n") and "estimator = KerasEstimator(model_fn, params=" in new


def test_several_canned_estimators_of_one_name_that_are_trained_so() -> None:
    made = (
        "model = tf.estimator.LinearClassifier([tf.feature_column.numeric_column('x')])\n"
        "model = model.train(input_fn, steps={steps})\nprint(model.evaluate(input_fn))\n"
    )
    head = (
        "import tensorflow as tf\n\n\ndef input_fn():\n"
        "    return tf.data.Dataset.from_tensors(({'x': [[1.0]]}, [[1]])).repeat(9)\n\n\n"
    )
    new, findings = run(head + made.format(steps=3) + made.format(steps=4))
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert "model.fit(input_fn().take(3))" in new and "model_2.fit(input_fn().take(4))" in new


def test_a_run_config_that_nobody_is_given_goes() -> None:
    old = idle(IDLE)
    new, findings = run(old)
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert "RunConfig" not in new and "ConfigProto" not in new
    assert [f.line for f in findings if f.code == "TFM124"] == [old[: old.index("config = tf.est")].count("\n") + 1]


def test_a_run_config_that_somebody_reads_stays() -> None:
    old = idle(IDLE.replace("    estimator = tf", "    print(config.model_dir)\n    estimator = tf"))
    new, findings = run(old)
    assert new == old and all(f.code != "TFM124" for f in findings)
    calls = idle(IDLE.replace("threads))", "count_them()))"))
    assert all(f.code != "TFM124" for f in run(calls)[1])


@pytest.mark.parametrize("several", [1, 2])
def test_a_replace_whose_result_nobody_takes_goes(several: int) -> None:
    replaced = "    config.replace(tf_random_seed=3)\n" * several
    old = program(driver="estimator.train(input_fn, steps=3)").replace(
        MADE,
        "config = tf.estimator.RunConfig(save_summary_steps=100)\nif len('x'):\n"
        + replaced
        + 'estimator = tf.estimator.Estimator(model_fn, params={"rate": 0.1}, config=config)\n',
    )
    new, findings = run(old)
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert "seed" not in new and "RunConfig" not in new
    assert [f.message for f in findings if f.code == "TFM124"] == [
        "`replace` returns a new RunConfig, which is unused: the setting never had an effect"
    ] * several


DELETED = """\
def model_fn(features, labels, mode, params, config):
    del {}  # unused
    out = tf.layers.dense(features, 1)
    loss = tf.losses.mean_squared_error(labels, out)
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimator = tf.estimator.Estimator(model_fn, params={{"rate": 0.1}})
estimator.train(input_fn, steps=3)
"""


@pytest.mark.parametrize("names", ["params", "config", "params, config", "(params, config)"])
def test_what_a_model_fn_does_not_use(names: str) -> None:
    """A `del` inside of a function of the new program would hide the name of the one around it."""
    head = program().partition("def model_fn")[0]
    new, findings = run(head + DELETED.format(names))
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert "    del " not in new and "model.fit(" in new


@pytest.mark.parametrize("line", ["del labels['x']", "del other", "del params\n    print(params)"])
def test_other_deletions_stay(line: str) -> None:
    head = program().partition("def model_fn")[0]
    text = head + DELETED.format("params").replace("del params  # unused", line)
    file = ParsedFile.parse(Path("train.py"), text)
    assert without_what_says_nothing(file) == ([], [])


@pytest.mark.parametrize("call", ["tf.reset_default_graph()", "tf.summary.FileWriterCache.clear()"])
def test_what_never_concerned_an_estimator_goes(call: str) -> None:
    old = program(driver=f"{call}  # first\nestimator.train(input_fn, steps=3)")
    new, findings = run(old)
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert call not in new and [f.code for f in findings if f.line == old[: old.index(call)].count("\n") + 1] == [
        "TFM124"
    ]
    session = program(driver=f"{call}\nwith tf.Session() as session:\n    pass\nestimator.train(input_fn, steps=3)")
    assert run(session)[0] == session


SESSION = "sess = tf.{}\nestimator.train(input_fn, steps=3){}"


@pytest.mark.parametrize("made", ["InteractiveSession()", "Session(config=tf.ConfigProto(allow_soft_placement=True))"])
def test_a_session_in_which_nothing_is_run_goes(made: str) -> None:
    new, findings = run(program(driver=SESSION.format(made, "")))
    assert "Session" not in new and ".fit(" in new
    assert [f.code for f in findings if "session" in f.message] == ["TFM124"]


@pytest.mark.parametrize(
    "more", ["\nprint(sess.graph)", "\nprint(tf.constant(1.0).eval())", "\nprint(tf.get_default_session())"]
)
def test_a_session_in_which_something_may_be_run_stays(more: str) -> None:
    text = program(driver=SESSION.format("InteractiveSession()", more))
    new, findings = run(text)
    assert new == text and all(f.code != "TFM124" for f in findings)


def test_an_estimator_that_is_deleted_after_its_last_use() -> None:
    text = program(driver="estimator.train(input_fn, steps=3)\ndel estimator\nprint('done')")
    new, findings = run(text)
    assert "del estimator" not in new and ".fit(" in new and "print('done')" in new
    assert not [one for one in findings if one.severity is Severity.MANUAL]
    other = program(driver="steps = 3\nestimator.train(input_fn, steps=steps)\ndel steps")
    assert "del steps" in run(other)[0]


UNUSED = """\
def main(rate):
    opt = tf.train.GradientDescentOptimizer(rate)
    opt = tf.contrib.estimator.clip_gradients_by_norm(opt, 5.0)
    estimator = tf.estimator.Estimator(model_fn)
    estimator.train(input_fn, steps=3)


main(2)
"""


def test_an_optimizer_that_nothing_trains_with_goes() -> None:
    new, findings = run(idle(UNUSED))
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert [f.code for f in findings].count("TFM124") == 2 and "clip_gradients" not in new and "opt =" not in new


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    estimator =", "    print(opt)\n    estimator ="),
        ("Optimizer(rate)", "Optimizer(read_rate())"),
        ("    opt = tf.contrib", "    opt.rate = 2\n    opt = tf.contrib"),
        ("    estimator =", "    global opt\n    estimator ="),
    ],
)
def test_an_optimizer_that_may_be_used_stays(old: str, new: str) -> None:
    text = idle(UNUSED.replace(old, new))
    edits, _ = without_what_says_nothing(ParsedFile.parse(Path("train.py"), text))
    assert not edits


TWICE = """\
def run():
    {before}estimator = tf.estimator.Estimator(model_fn, 'first', params={{"rate": 0.1}})
    estimator = tf.estimator.Estimator(model_fn, 'second', params={{"rate": 0.1}})
    estimator.train(input_fn, steps=3)


run()"""


def twice(before: str = "") -> str:
    """A program whose function makes an Estimator that it does not use."""
    return program(driver=TWICE.format(before=before)).replace(MADE, "")


def test_an_estimator_that_nothing_is_done_with_goes() -> None:
    old = twice()
    new, findings = run(old)
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert "'first'" not in new and "'second'" in new and "model.fit(" in new
    assert [f.line for f in findings if f.code == "TFM124"] == [old[: old.index("'first'")].count("\n") + 1]


@pytest.mark.parametrize("before", ["global estimator\n    ", "later = lambda: estimator\n    "])
def test_an_estimator_that_others_may_read_stays(before: str) -> None:
    assert all(f.code != "TFM124" for f in run(twice(before))[1])


def test_an_estimator_that_is_read_stays() -> None:
    read = twice().replace(
        "    estimator = tf.estimator.Estimator(model_fn, 'second'",
        "    print(estimator)\n    estimator = tf.estimator.Estimator(model_fn, 'second'",
    )
    assert "print(estimator)" in read and all(f.code != "TFM124" for f in run(read)[1])


def test_the_only_estimator_of_a_file_stays() -> None:
    old = program(driver="def run():\n    other = tf.estimator.Estimator(model_fn, 'first')\n\n\nrun()").replace(
        MADE, ""
    )
    new, findings = run(old)
    assert new == old and "TFM124" not in {f.code for f in findings}
