"""Partitioners that a model_fn chooses by an `if`, or tells a scope first of all, come out as in one expression."""

from __future__ import annotations

import pytest

from migrator.findings import Severity
from tests.rules.programs import program, run
from tests.rules.test_partitioners import DRIVER, FIXED, MIN

LAYER = "net = tf.layers.dense(net, 8)"
PARTS = "tf.fixed_size_partitioner(config.num_ps_replicas)"
CHOSEN = f'{FIXED}(num_shards=cluster.num_tasks("ps")) if cluster.num_tasks("ps") > 1 else None'


def text_of(network: str, layer: bool = True) -> str:
    text = program(network=f"{network}\n{LAYER}" if layer else network, driver=DRIVER)
    return text.replace("mode, params", "mode, params, config")


@pytest.mark.parametrize(
    ("network", "expected"),
    [
        (
            f"scope = tf.get_variable_scope()\nif config.num_ps_replicas > 1:\n    scope.set_partitioner({PARTS})",
            CHOSEN,
        ),
        (f"if config.num_ps_replicas > 1:\n    tf.get_variable_scope().set_partitioner({PARTS})", CHOSEN),
        (
            f"p = None\nif config.num_ps_replicas > 1:\n    p = {PARTS}\n"
            f"with tf.variable_scope('net', partitioner=p):\n    {LAYER}",
            CHOSEN,
        ),
        (
            f"if config.num_ps_replicas > 1:\n    p = {PARTS}\nelse:\n    p = None\n"
            f"with tf.variable_scope('net', partitioner=p):\n    {LAYER}",
            CHOSEN,
        ),
        (
            f"with tf.variable_scope('net') as scope:\n    if config.num_ps_replicas > 1:\n"
            f"        scope.set_partitioner({PARTS})\n    {LAYER}",
            CHOSEN,
        ),
        (
            f"if config.num_ps_replicas > 8:\n    p = tf.min_max_variable_partitioner(4)\n"
            f"elif config.num_ps_replicas > 1:\n    p = {PARTS}\nelse:\n    p = None\n"
            f"with tf.variable_scope('net', partitioner=p):\n    {LAYER}",
            f'{MIN}(min_shard_bytes=256 << 10, max_shards=4) if cluster.num_tasks("ps") > 8 else {CHOSEN}',
        ),
        (
            "if params['rate'] > 1:\n    tf.get_variable_scope().set_partitioner(tf.fixed_size_partitioner(2))\n"
            "else:\n    tf.get_variable_scope().set_partitioner(tf.fixed_size_partitioner(3))",
            f"{FIXED}(num_shards=2) if 0.1 > 1 else {FIXED}(num_shards=3)",
        ),
        *(
            (
                f"p = {given}\nif {test}:\n    count = config.num_ps_replicas if config else 0\n"
                f"    p = tf.min_max_variable_partitioner(max_partitions=count, min_slice_size=64 << 20)\n"
                f"with tf.variable_scope('net', partitioner=p):\n    {LAYER}",
                f'{MIN}(min_shard_bytes=64 << 20, max_shards=cluster.num_tasks("ps"))',
            )
            for given in ("params.get('partitioner')", "None")
            for test in ("not p", "p is None", "p == None")
        ),
    ],
)
def test_chosen_by_an_if(network: str, expected: str) -> None:
    new, findings = run(text_of(network))
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert f"variable_partitioner={expected}".replace(" ", "") in "".join(new.split()), new
    body = new[new.index("def model_fn") : new.index("def make_strategy")]
    assert "partitioner" not in body and "config" not in body and "__no" not in new


SCOPE = f"with tf.variable_scope('net', partitioner=p):\n    {LAYER}"
REFUSED = {
    "a name that is asked for, and what else": f"p = None\nif not p and config:\n    p = {PARTS}\n{SCOPE}",
    "a branch that does more": f"p = None\nif not p:\n    print(config)\n    p = {PARTS}\n{SCOPE}",
    "a number that is computed twice": (
        "p = None\nif not p:\n    n = count()\n    p = tf.fixed_size_partitioner(n) if n > 1 else None\n" + SCOPE
    ),
    "a name of the branch that is read behind it": (
        "p = None\nif not p:\n    n = config.num_ps_replicas\n    p = tf.fixed_size_partitioner(n)\nprint(n)\n" + SCOPE
    ),
    "a name that nothing else gave a value": f"if config.num_ps_replicas > 1:\n    p = {PARTS}\n{SCOPE}",
    "a function of the program's own": f"p = None\nif config.num_ps_replicas > 1:\n    p = pick()\n{SCOPE}",
    "more in the branch": f"p = None\nif config.num_ps_replicas > 1:\n    p = {PARTS}\n    print(p)\n{SCOPE}",
    "two names": f"p = q = None\nif config.num_ps_replicas > 1:\n    p = {PARTS}\nelse:\n    q = None\n{SCOPE}",
    "two different ones for all": (
        "tf.get_variable_scope().set_partitioner(tf.min_max_variable_partitioner(2))\n"
        f"if config.num_ps_replicas > 1:\n    tf.get_variable_scope().set_partitioner({PARTS})"
    ),
    "a scope that has another": (
        "with tf.variable_scope('net', partitioner=tf.min_max_variable_partitioner(2)) as scope:\n"
        f"    scope.set_partitioner(tf.fixed_size_partitioner(2))\n    {LAYER}"
    ),
    "a scope inside one that has another": (
        "with tf.variable_scope('a', partitioner=tf.min_max_variable_partitioner(2)):\n"
        f"    with tf.variable_scope('net') as scope:\n        if config.num_ps_replicas > 1:\n"
        f"            scope.set_partitioner({PARTS})\n        {LAYER}"
    ),
    "a scope that is used again": (
        "with tf.variable_scope('net') as scope:\n    scope.set_partitioner(tf.fixed_size_partitioner(2))\n"
        f"    {LAYER}\nwith tf.variable_scope(scope, reuse=True):\n    {LAYER}"
    ),
    "a scope that is told later": (
        f"with tf.variable_scope('net') as scope:\n    {LAYER}\n"
        f"    scope.set_partitioner(tf.fixed_size_partitioner(2))\n    {LAYER}"
    ),
    "a scope that is asked first": (
        "with tf.variable_scope('net') as scope:\n    if scope.name:\n"
        f"        scope.set_partitioner(tf.fixed_size_partitioner(2))\n    {LAYER}"
    ),
    "a value that is asked for": f"many = int(input())\np = None\nif many:\n    p = {PARTS}\n{SCOPE}",
    "the mode": f"p = None\nif mode == 'train':\n    p = tf.fixed_size_partitioner(2)\n{SCOPE}",
}


@pytest.mark.parametrize("why", REFUSED)
def test_refused(why: str) -> None:
    text = text_of(REFUSED[why])
    new, findings = run(text)
    assert new == text and [f for f in findings if f.severity is Severity.MANUAL]


@pytest.mark.parametrize(
    "second", ["tf.fixed_size_partitioner(config.num_ps_replicas)", "tf.fixed_size_partitioner(3)"]
)
def test_two_partitioners_of_two_scopes(second: str) -> None:
    """Each is kept in its scope, or told why not: only the strategy's function can count the servers."""
    network = (
        f"with tf.variable_scope('a', partitioner=tf.fixed_size_partitioner(2)):\n    {LAYER}\n"
        f"with tf.variable_scope('b', partitioner={second}):\n    {LAYER}"
    )
    new, findings = run(text_of(network, layer=False))
    found = [f for f in findings if f.code == "TFM702"]
    if "config" in second:
        assert len(found) == 1 and "line 10" in found[0].message and "shape and type" in found[0].message
    else:
        assert not found and new.count("scope_partitioner.splitting(") == 2 and new.count("num_shards=3") == 1, findings


def test_other_conditions_stay() -> None:
    given = "if params['rate']:\n    net = tf.nn.relu(net)"
    new, findings = run(text_of(f"tf.get_variable_scope().set_partitioner(tf.fixed_size_partitioner(2))\n{given}"))
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert "if params['rate']:" in new
