"""The name map: total, injective, by creation order where that is safe."""

from __future__ import annotations

import pytest
from numpy_programs import Program, migrated_of, run

from migrator.harness.protocol import l1_variables, name_map
from migrator.harness.protocol.results import Reason, Status
from migrator.harness.recording import Variable


def variables(*rows: tuple[str, tuple[int, ...]], dtype: str = "float32") -> list[Variable]:
    return [Variable(name, shape, dtype, True, order, 1) for order, (name, shape) in enumerate(rows)]


ORIGINAL = variables(
    ("net/dense/kernel", (6, 16)),
    ("net/dense/bias", (16,)),
    ("net/dense_1/kernel", (16, 16)),
    ("net/dense_1/bias", (16,)),
)
MIGRATED = variables(
    ("dense/kernel:0", (6, 16)),
    ("dense/bias:0", (16,)),
    ("dense_1/kernel:0", (16, 16)),
    ("dense_1/bias:0", (16,)),
)


def test_creation_order_pairs_everything() -> None:
    names = name_map.build(ORIGINAL, MIGRATED)
    assert names.complete
    assert names.to_migrated()["net/dense_1/kernel"] == "dense_1/kernel:0"
    assert names.to_original()["dense/bias:0"] == "net/dense/bias"


def test_the_order_field_decides_and_not_the_position_in_the_tuple() -> None:
    names = name_map.build(list(reversed(ORIGINAL)), MIGRATED)
    assert names.to_migrated()["net/dense/bias"] == "dense/bias:0"


def test_another_order_of_different_shapes_is_paired_by_signature() -> None:
    shuffled = variables(
        ("dense/bias:0", (16,)),
        ("dense/kernel:0", (6, 16)),
        ("dense_1/kernel:0", (16, 16)),
        ("dense_1/bias:0", (16,)),
    )
    names = name_map.build(ORIGINAL, shuffled)
    assert names.complete
    assert names.to_migrated()["net/dense/bias"] == "dense/bias:0"


def test_a_bias_goes_with_the_kernel_of_its_layer() -> None:
    """Two convolutions of other widths, made in another order: only their kernels can be told apart by shape."""
    ours = variables(("conv1d/kernel", (2, 6, 4)), ("conv1d/bias", (4,)), ("w/kernel", (3, 6, 4)), ("w/bias", (4,)))
    theirs = variables(("a/kernel:0", (3, 6, 4)), ("a/bias:0", (4,)), ("b/kernel:0", (2, 6, 4)), ("b/bias:0", (4,)))
    assert name_map.build(ours, theirs).to_migrated() == {
        "conv1d/kernel": "b/kernel:0",
        "conv1d/bias": "b/bias:0",
        "w/kernel": "a/kernel:0",
        "w/bias": "a/bias:0",
    }
    # Two biases in one scope tell nothing: the order of creation does.
    alone = variables(("a/kernel:0", (3, 6, 4)), ("a/bias:0", (4,)), ("a/k/kernel:0", (2, 6, 4)), ("a/bias_1:0", (4,)))
    made = name_map.build(ours, alone).to_migrated()
    assert (made["conv1d/bias"], made["w/bias"]) == ("a/bias:0", "a/bias_1:0")


@pytest.mark.parametrize("drop", range(4))
def test_a_variable_too_few_on_either_side_is_incomplete(drop: int) -> None:
    short = MIGRATED[:drop] + MIGRATED[drop + 1 :]
    assert not name_map.build(ORIGINAL, short).complete
    assert not name_map.build(short, MIGRATED).complete


def test_a_kernel_is_never_taken_for_a_bias() -> None:
    names = name_map.build(variables(("a/bias", (4,))), variables(("a/gamma", (4,))))
    assert not names.complete


def test_own_names_are_paired_by_shape() -> None:
    assert name_map.build(variables(("w", (3, 2))), variables(("dense/kernel:0", (3, 2)))).complete


def test_weights_of_contrib_are_kernels_between_variables_of_another_order() -> None:
    original = variables(
        ("Conv/weights", (3, 4)),
        ("Conv/biases", (4,)),
        ("LayerNorm/beta", (4,)),
        ("LayerNorm/gamma", (4,)),
    )
    migrated = variables(
        ("conv/kernel", (3, 4)),
        ("conv/bias", (4,)),
        ("norm/gamma", (4,)),
        ("norm/beta", (4,)),
    )
    names = name_map.build(original, migrated)
    assert names.complete
    assert names.to_migrated() == {
        "Conv/weights": "conv/kernel",
        "Conv/biases": "conv/bias",
        "LayerNorm/beta": "norm/beta",
        "LayerNorm/gamma": "norm/gamma",
    }
    assert not name_map.build(original, [*migrated[:1], *migrated[2:]]).complete


def test_another_dtype_or_a_transposed_shape_is_incomplete() -> None:
    assert not name_map.build(variables(("w", (3, 2))), variables(("w", (2, 3)))).complete
    assert not name_map.build(variables(("w", (3,))), variables(("w", (3,)), dtype="float64")).complete


def test_nothing_on_both_sides_is_incomplete() -> None:
    assert not name_map.build([], []).complete


def test_the_users_map_comes_first() -> None:
    same = variables(("a", (4,)), ("b", (4,))), variables(("x", (4,)), ("y", (4,)))
    names = name_map.build(*same, {"a": "y"})
    assert names.complete
    assert names.to_migrated() == {"a": "y", "b": "x"}


@pytest.mark.parametrize("user", [{"nowhere": "x"}, {"a": "nowhere"}, {"a": "x", "b": "x"}])
def test_a_wrong_users_map_is_an_error_that_says_what_there_is(user: dict[str, str]) -> None:
    with pytest.raises(name_map.NameMapError):
        name_map.build(variables(("a", (4,)), ("b", (4,))), variables(("x", (4,)), ("y", (4,))), user)


def test_a_users_pair_of_different_shapes_is_a_conflict() -> None:
    names = name_map.build(variables(("a", (4,))), variables(("x", (5,))), {"a": "x"})
    assert not names.complete
    assert "shape" in names.conflicts[0]


@pytest.mark.parametrize(
    ("name", "leaf"),
    [
        ("a/kernel:0", "kernel"),
        ("a/b/bias_3", "bias"),
        ("a/kernel/part_0:0", "kernel"),
        ("weights_2", "weights_2"),
    ],
)
def test_leaf(name: str, leaf: str) -> None:
    assert name_map.leaf(name) == leaf


def test_l1_sees_another_trainability_and_a_lost_slot() -> None:
    from dataclasses import replace

    ours, theirs = run(Program()), run(migrated_of(Program()))
    names = name_map.build(ours.variables, theirs.variables)
    assert l1_variables.judge(ours, theirs, names).status is Status.EQUIVALENT
    frozen = replace(theirs, variables=tuple(replace(v, trainable=False) for v in theirs.variables))
    assert l1_variables.judge(ours, frozen, names).reason is Reason.VARIABLES_DIFFER
    # What an optimizer is not handed is frozen, whether or not it is called trainable.
    first = theirs.variables[0].name
    one_frozen = replace(
        theirs, variables=tuple(replace(v, trainable=v.trainable and v.name != first) for v in theirs.variables)
    )
    assert l1_variables.judge(ours, one_frozen, names).summary.startswith("trainability of")
    kept = names.to_original()[first]
    handed = {step: {k: v for k, v in values.items() if k != kept} for step, values in ours.gradients.items()}
    assert all(len(values) == len(ours.variables) - 1 for values in handed.values())
    assert l1_variables.judge(replace(ours, gradients=handed), one_frozen, names).status is Status.EQUIVALENT
    split = replace(theirs, variables=tuple(replace(v, shards=2) for v in theirs.variables))
    assert l1_variables.judge(ours, split, names).status is Status.EQUIVALENT
    shards = l1_variables.judge(ours, split, names, parameter_servers=True)
    assert shards.reason is Reason.VARIABLES_DIFFER and "shards of" in shards.summary
    slotless = replace(theirs, slots={step: {} for step in theirs.slots})
    assert l1_variables.judge(ours, slotless, names).reason is Reason.VARIABLES_DIFFER
