"""Strategies that a program chooses when it runs: every branch is translated, and the choice stays (TFM726)."""

from __future__ import annotations

import pytest

from migrator.findings import Finding, Severity
from tests.rules.programs import program, run, run_project

IF = """\
if count > 1:
    own = tf.distribute.MirroredStrategy()
elif count == 1:
    own = tf.contrib.distribute.OneDeviceStrategy("/gpu:0")
else:
    own = None
"""
HELPER = """\
def pick(count):
    if count == 0:
        return tf.contrib.distribute.OneDeviceStrategy("device:CPU:0")
    elif count == 1:
        return tf.contrib.distribute.OneDeviceStrategy("device:GPU:0")
    else:
        return tf.contrib.distribute.MirroredStrategy(num_gpus=count)


def model_fn"""
TRAIN = "estimator.train(input_fn, steps=3)"


def manual(findings: list[Finding]) -> list[str]:
    return [f.code for f in findings if f.severity is Severity.MANUAL]


def text_of(before: str, given: str = "own", driver: str = TRAIN, more: str = "") -> str:
    config = f"tf.estimator.RunConfig(train_distribute={given}{more})"
    text = program(driver=driver).replace(', params={"rate": 0.1})', f", config={config}, params=dict(rate=0.1))")
    return text.replace("estimator = ", f"count = 2\n{before}estimator = ", 1)


def with_helper(before: str = "", given: str = "own", helper: str = HELPER) -> str:
    return text_of(before, given).replace("def model_fn", helper, 1)


def test_an_if_stays_with_every_branch_translated() -> None:
    new, findings = run(text_of(IF))
    assert manual(findings) == [] and "TFM726" in [f.code for f in findings]
    assert (
        "if count > 1:\n    own = tf.distribute.MirroredStrategy()\nelif count == 1:\n"
        '    own = tf.distribute.OneDeviceStrategy(device="/gpu:0")\nelse:\n'
        "    own = tf.distribute.get_strategy()\n"
    ) in new
    assert "with own.scope():\n    model = model_fn(" in new
    assert "model.fit(per_replica(lambda: input_fn()), steps_per_epoch=3, callbacks=[CountedSteps()])" in new


def test_a_function_that_returns_one_stays_where_it_is() -> None:
    new, findings = run(with_helper("own = pick(count)\n"))
    assert manual(findings) == [] and "TFM726" not in [f.code for f in findings]
    assert "own = pick(count)\n" in new and "tf.contrib" not in new
    assert 'return tf.distribute.OneDeviceStrategy(device="device:CPU:0")' in new
    assert 'MirroredStrategy(devices=[f"/gpu:{i}" for i in range(count)] or ["/cpu:0"])' in new


def test_a_function_that_is_called_in_the_run_config_is_called_where_the_estimator_was() -> None:
    new, findings = run(with_helper(given="pick(count)"))
    assert manual(findings) == []
    assert "strategy = pick(count)\nwith strategy.scope():\n" in new


def test_conditional_expressions() -> None:
    new, findings = run(text_of("", "tf.distribute.MirroredStrategy() if count > 1 else None"))
    assert manual(findings) == []
    chosen = "tf.distribute.MirroredStrategy() if count > 1 else tf.distribute.get_strategy()"
    assert f"strategy = {chosen}\nwith strategy.scope():\n" in new
    new, findings = run(text_of("own = tf.distribute.MirroredStrategy() if count > 1 else None\n"))
    assert f"own = {chosen}\n" in new and "with own.scope():\n" in new
    first = "own = None\nif count > 1:\n    own = tf.distribute.MirroredStrategy()\n"
    new, findings = run(text_of(first))
    assert manual(findings) == [] and "own = tf.distribute.get_strategy()\nif count > 1:" in new


def test_devices_only_are_one_device() -> None:
    devices = 'own = tf.distribute.OneDeviceStrategy("/gpu:0" if count else "/cpu:0")\n'
    chosen = 'if count:\n    own = tf.distribute.OneDeviceStrategy("/gpu:0")\nelse:\n    own = None\n'
    for before in (devices, chosen):
        new, findings = run(text_of(before))
        assert manual(findings) == [] and "with own.scope():\n" in new and "per_replica" not in new


def test_the_settings_of_the_session_come_before_the_first_strategy() -> None:
    session = ", session_config=tf.ConfigProto(inter_op_parallelism_threads=2)"
    new, findings = run(text_of(IF, more=session))
    assert manual(findings) == []
    assert new.index("set_inter_op_parallelism_threads(2)") < new.index("if count > 1:")
    late = "session = tf.ConfigProto(inter_op_parallelism_threads=2)\n"
    given = text_of(IF, more=", session_config=session")
    before = run(given.replace("if count > 1", f"{late}if count > 1"))[0]
    assert before.index("set_inter_op_parallelism_threads(2)") < before.index("if count > 1:")
    behind = given.replace("estimator = ", f"{late}estimator = ")
    new, findings = run(behind)
    assert new == behind and manual(findings) == ["TFM704"]
    threads = "threads = 2\n"
    moved = text_of(IF, more=session.replace("=2)", "=threads)")).replace("estimator = ", f"{threads}estimator = ")
    new, findings = run(moved)
    assert new == moved and manual(findings) == ["TFM704"]


def test_a_strategy_that_is_always_there_may_be_read() -> None:
    always = IF.replace("None", "tf.distribute.OneDeviceStrategy('/cpu:0')")
    new, findings = run(text_of(always, driver="print(own.num_replicas_in_sync)\n" + TRAIN))
    assert manual(findings) == [] and "print(own.num_replicas_in_sync)" in new


REFUSED = {
    "read where it may be None": text_of(IF, driver="print(own is None)\n" + TRAIN),
    "read in a function where it may be None": text_of(IF + "def tell():\n    print(own)\n"),
    "a cluster among them": text_of(IF.replace("None", "tf.distribute.experimental.ParameterServerStrategy()")),
    "another value behind": text_of(IF, driver="own = tf.distribute.MirroredStrategy()\n" + TRAIN),
    "nothing that is known": text_of(IF.replace("None", "make()")),
    "a loop's": text_of("for own in [None, tf.distribute.MirroredStrategy()]:\n    pass\n"),
    "several values at once": text_of(IF + "own, other = pick()\n"),
    "global": text_of(IF + "def change():\n    global own\n    own = tf.distribute.OneDeviceStrategy('/cpu:0')\n"),
    "TF_CONFIG": text_of(IF).replace(
        "\n\n\ndef input_fn", "\nimport os\nprint(os.environ['TF_CONFIG'])\n\n\ndef input_fn"
    ),
    "another strategy for evaluations": text_of(IF, more=", eval_distribute=tf.distribute.MirroredStrategy()"),
    "a function without a last return": with_helper(
        "own = pick(count)\n", helper=HELPER.replace("    else:\n        return", "    if count > 1:\n        return")
    ),
    "a decorated function": with_helper("own = pick(count)\n", helper="@cached\n" + HELPER),
    "a function that may return None, used elsewhere": with_helper(
        "own = pick(count)\nprint(pick(3))\n",
        helper=HELPER.replace("count == 0", "count < 0:\n        return None\n    elif count == 0"),
    ),
    "a function of the same name here": with_helper(
        "class pick:\n    pass\n\nown = pick(count)\n", helper=HELPER.replace("(num_gpus=count)", "()")
    ),
    "a function whose name gets another value": with_helper("pick = lambda c: None\nown = pick(count)\n"),
    "names that are read by their text": text_of(IF + "print(locals()['own'])\n"),
    "a context that None does not give": text_of(IF).replace("def input_fn()", "def input_fn(input_context=None)"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_refused(why: str) -> None:
    new, findings = run(REFUSED[why])
    assert new == REFUSED[why] and {"TFM704", "TFM602", "TFM109"} & set(manual(findings)), findings


def test_a_name_that_another_file_reads() -> None:
    other = "from train import own\n\nprint(own is None)\n"
    found = run_project({"train.py": text_of(IF), "other.py": other})
    assert found["train.py"][0] == text_of(IF) and "TFM704" in manual(found["train.py"][1])
    alone = run_project({"train.py": text_of(IF), "other.py": other.replace("own", "count")})
    assert manual(alone["train.py"][1]) == []


def test_the_same_name_for_evaluations() -> None:
    _, findings = run(text_of(IF, more=", eval_distribute=own", driver=TRAIN + "\nestimator.evaluate(input_fn)"))
    assert manual(findings) == [] and "TFM709" not in [f.code for f in findings], findings


@pytest.mark.parametrize("asked", ["one-device", "dtensor"])
def test_another_strategy_that_is_asked_for_does_not_mix_with_the_choice(asked: str) -> None:
    new, findings = run(text_of(IF), asked)
    assert new == text_of(IF) and manual(findings)
