"""Partitioners as people write them: chosen when the program runs, set in a scope, read from params and config."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from tests.rules.programs import program, run

KERAS = "tf.distribute.experimental.partitioners"
FIXED, MIN = f"{KERAS}.FixedShardsPartitioner", f"{KERAS}.MinSizePartitioner"
DRIVER = """\
spec = tf.estimator.TrainSpec(input_fn, max_steps=3)
tf.estimator.train_and_evaluate(estimator, spec, tf.estimator.EvalSpec(input_fn))"""


def scoped(before: str, partitioner: str = "partitioner", params: str = '{"rate": 0.1}') -> str:
    scope = f"with tf.variable_scope('net', partitioner={partitioner}):\n    net = tf.layers.dense(net, 8)"
    network = f"{before}\n{scope}"
    text = program(network=network, driver=DRIVER).replace('params={"rate": 0.1}', f"params={params}")
    return text.replace("mode, params", "mode, params, config")


@pytest.mark.parametrize(
    ("before", "params", "expected"),
    [
        (
            "partitioner = params.get('input_layer_partitioner') or tf.min_max_variable_partitioner(\n"
            "    max_partitions=config.num_ps_replicas, min_slice_size=64 << 20)",
            '{"rate": 0.1}',
            f'{MIN}(min_shard_bytes=64 << 20, max_shards=cluster.num_tasks("ps"))',
        ),
        (
            "partitioner = params.get('partitioner') or tf.fixed_size_partitioner(5)",
            '{"rate": 0.1, "partitioner": tf.fixed_size_partitioner(3)}',
            f"{FIXED}(num_shards=3)",
        ),
        (
            "n = config.num_ps_replicas if config else 0\n"
            "partitioner = tf.fixed_size_partitioner(n) if n > 1 else None",
            '{"rate": 0.1}',
            f'{FIXED}(num_shards=cluster.num_tasks("ps")) if cluster.num_tasks("ps") > 1 else None',
        ),
        (
            "n = params['shards']\npartitioner = tf.fixed_size_partitioner(n) if n > 1 else None",
            "dict(rate=0.1, shards=4)",
            f"{FIXED}(num_shards=4) if 4 > 1 else None",
        ),
        (
            "partitioner = tf.fixed_size_partitioner(max(1, config.num_ps_replicas))",
            '{"rate": 0.1}',
            f'{FIXED}(num_shards=max(1, cluster.num_tasks("ps")))',
        ),
    ],
)
def test_chosen_when_the_program_runs(before: str, params: str, expected: str) -> None:
    new, findings = run(scoped(before, params=params))
    assert not [f for f in findings if f.severity.value == "manual"], findings
    flat = "".join(new.split())
    body = new[new.index("def model_fn") : new.index("\n\n\n", new.index("def model_fn"))]
    if "cluster" in expected:  # the servers are counted where the strategy is made: it splits all layers
        assert f"variable_partitioner={expected}".replace(" ", "") in flat, new
        assert "partitioner" not in body
    else:
        assert f"scope_partitioner.splitting({expected})".replace(" ", "") in "".join(body.split()), new
    assert "config" not in body and "num_ps_replicas" not in new


def test_the_config_of_a_model_fn_is_another_than_the_drivers() -> None:
    text = scoped("partitioner = tf.fixed_size_partitioner(config.num_ps_replicas)")
    text = text.replace("estimator = ", "config = tf.estimator.RunConfig(model_dir='/tmp/m')\nestimator = ")
    text = text.replace("Estimator(model_fn, ", "Estimator(model_fn, config=config, ")
    new, findings = run(text)
    assert not [f for f in findings if f.severity.value == "manual"], findings
    assert 'num_shards=cluster.num_tasks("ps")' in new


def test_none_is_no_partitioner() -> None:
    new, findings = run(scoped("partitioner = params.get('p') or None"))
    assert "variable_partitioner" not in new
    assert not [f for f in findings if f.code in ("TFM701", "TFM702", "TFM703", "TFM890")]


def test_set_in_the_scope_of_the_model() -> None:
    text = program(network="tf.get_variable_scope().set_partitioner(tf.fixed_size_partitioner(2))", driver=DRIVER)
    new, findings = run(text)
    assert f"variable_partitioner={FIXED}(num_shards=2)" in new
    assert "set_partitioner" not in new and "TFM890" not in [f.code for f in findings]


def test_the_scope_of_the_model_by_a_name() -> None:
    given = "set_partitioner(tf.fixed_size_partitioner(2))"
    named = program(network=f"scope = tf.get_variable_scope()\nscope.{given}", driver=DRIVER)
    direct = program(network=f"tf.get_variable_scope().{given}", driver=DRIVER)
    assert run(named)[0] == run(direct)[0]


OF_SERVERS = "partitioner = tf.fixed_size_partitioner(config.num_ps_replicas)"


def test_layers_outside_of_the_scope_are_told_of() -> None:
    """Where the partitioner counts the servers, which the model_fn does not know, it splits all layers."""
    _, findings = run(scoped(OF_SERVERS))
    found = [f for f in findings if f.code == "TFM890"]
    assert len(found) == 1 and found[0].severity.value == "review"
    whole = scoped(OF_SERVERS).replace("    logits = tf.layers", "        logits = tf.layers")
    assert "TFM890" not in [f.code for f in run(whole)[1]]


def test_only_the_layers_of_the_scope_are_split() -> None:
    text = scoped("", "tf.fixed_size_partitioner(2)")
    new, findings = run(text)
    assert "TFM890" not in [f.code for f in findings]
    scope = f"""\
    with tf.name_scope('net'), scope_partitioner.splitting(
        {FIXED}(num_shards=2)
    ):
        net = tf.keras.layers.Dense(8)(net)
    logits = tf.keras.layers.Dense(1)(net)
"""
    assert scope in new and new.count("class ScopePartitioner(") == 1
    assert "import contextlib\n" in new and "variable_partitioner=scope_partitioner)" in new
    whole, _ = run(text.replace("    logits = tf.layers", "        logits = tf.layers"))
    assert "ScopePartitioner" not in whole and f"variable_partitioner={FIXED}(num_shards=2)" in whole


def test_two_estimators_share_the_partitioner_of_scopes() -> None:
    text = scoped("", "tf.fixed_size_partitioner(2)")
    second = text[text.index("estimator = ") :].replace("estimator = ", "other = ").replace("(estimator,", "(other,")
    second = second.replace("spec = ", "more = ").replace(" spec,", " more,")
    new, findings = run(f"{text}\n{second}")
    assert not [f for f in findings if f.severity.value == "manual" or f.code == "TFM890"], findings
    assert new.count("class ScopePartitioner(") == new.count("scope_partitioner.splitting(") == 1
    assert new.count("variable_partitioner=scope_partitioner)") == 1 and FIXED in new


def test_what_the_partitioner_of_scopes_splits() -> None:
    """The class that programs get, on its own: innermost scope, none, and none again after an error."""
    new, _ = run(scoped("", "tf.fixed_size_partitioner(2)"))
    start = new.index("class ScopePartitioner(")
    text = new[start : new.index("def make_strategy")].replace(
        "(tf.distribute.experimental.partitioners.Partitioner)", ""
    )
    names: dict[str, Any] = {"contextlib": contextlib}
    exec(text, names)
    given = names["scope_partitioner"]

    def rows(count: int) -> Callable[..., list[int]]:
        return lambda shape, dtype, axis: [min(count, shape[0]), *[1] * (len(shape) - 1)]

    assert given(shape=(8, 3), dtype="float32") == [1, 1]
    with given.splitting(rows(2)):
        assert given(shape=(8, 3), dtype="float32") == [2, 1]
        with given.splitting(rows(4)):
            assert given(shape=(8,), dtype="float32") == [4]
        with given.splitting(None):
            assert given(shape=(8,), dtype="float32") == [1]
        assert given(shape=(8,), dtype="float32") == [2]
    with pytest.raises(ValueError), given.splitting(rows(2)):
        raise ValueError
    assert given(shape=(8,), dtype="float32") == [1]


def test_on_one_device_no_partitioner_is_in_the_way() -> None:
    network = 'with tf.variable_scope("a", partitioner=tf.fixed_size_partitioner(2, axis=1)):\n    net = net + 1'
    new, findings = run(program(network=network))
    assert "artitioner" not in new and "TFM703" in [f.code for f in findings]


@pytest.mark.parametrize(
    ("before", "params", "code"),
    [
        ("partitioner = params.get('p') or tf.fixed_size_partitioner(2)", "make_params()", "TFM701"),
        ("partitioner = tf.fixed_size_partitioner(params['n'])", '{"rate": 0.1}', "TFM701"),
        ("partitioner = tf.fixed_size_partitioner(config.num_worker_replicas)", '{"rate": 0.1}', "TFM701"),
        ("partitioner = make_partitioner(3)", '{"rate": 0.1}', "TFM701"),
        ("partitioner = tf.fixed_size_partitioner(2, axis=1) if mode else None", '{"rate": 0.1}', "TFM701"),
        (
            "partitioner = tf.fixed_size_partitioner(2)\n"
            "tf.get_variable_scope().set_partitioner(tf.min_max_variable_partitioner(2))",
            '{"rate": 0.1}',
            "TFM702",
        ),
    ],
)
def test_refused(before: str, params: str, code: str) -> None:
    text = scoped(before, params=params)
    new, findings = run(text)
    assert new == text
    assert code in [f.code for f in findings if f.severity.value == "manual"], findings


def test_params_that_are_changed_later_are_refused() -> None:
    text = scoped("partitioner = tf.fixed_size_partitioner(params['n'])", params="P")
    known = text.replace("\n\n", "\n\nP = {'n': 2}\n", 1)
    assert f"{FIXED}(num_shards=2)" in run(known)[0]
    for changed in ("P['n'] = 16", "P.update(n=16)"):
        new, findings = run(known.replace("estimator = ", f"{changed}\nestimator = "))
        assert "TFM701" in [f.code for f in findings if f.severity.value == "manual"], new


CANNED = """\
import tensorflow as tf

columns = [tf.feature_column.numeric_column("x")]


def input_fn():
    return tf.data.Dataset.from_tensor_slices(({"x": [[1.0]]}, [[1]])).batch(1)


config = tf.estimator.RunConfig(model_dir="/tmp/model")
estimator = tf.estimator.DNNClassifier([4], columns, config=config, input_layer_partitioner=GIVEN)
spec = tf.estimator.TrainSpec(input_fn, max_steps=3)
tf.estimator.train_and_evaluate(estimator, spec, tf.estimator.EvalSpec(input_fn))
"""


def test_of_a_canned_estimator() -> None:
    new, findings = run(CANNED.replace("GIVEN", "tf.min_max_variable_partitioner(4, min_slice_size=64 << 20)"))
    assert f"{MIN}(min_shard_bytes=64 << 20, max_shards=4)" in "".join(new.split("\n")).replace("        ", "")
    assert "set_partitioner" not in new
    assert {"TFM891"} == {f.code for f in findings if f.code.startswith(("TFM89", "TFM70"))} - {"TFM706"}
    assert "variable_partitioner" not in run(CANNED.replace("GIVEN", "None"))[0]
