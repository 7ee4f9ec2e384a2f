"""Which tensor of a checkpoint is which of a program: variables, slots, steps, and what does not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from migrator.checkpoint.matching import CheckpointError, CheckpointMap, match, power, read_tensors, slot_of
from migrator.harness.recording import Variable

SHAPES: dict[str, tuple[int, ...]] = {"dense/kernel": (3, 2), "dense/bias": (2,), "dense_1/kernel": (3, 2)}
ADAM = {"kinds": ["Adam"], "rate": 0.1, "own_step": False, "settings": {"beta_1": 0.9, "beta_2": 0.999}}
SGD: dict[str, Any] = {"kinds": ["SGD"], "rate": 0.5, "own_step": False, "settings": {"momentum": 0.9}}


def checkpoint(*more: str, slots: tuple[str, ...] = ("Adam", "Adam_1"), **shapes: tuple[int, ...]) -> dict[str, Any]:
    whole = {**SHAPES, **shapes}
    names = {f"{name}/{slot}": shape for name, shape in whole.items() for slot in slots}
    steps = {"global_step": (), **dict.fromkeys(more, ())}
    return {name: np.ones(shape, np.float32) for name, shape in {**whole, **names, **steps}.items()}


def created(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "trainable": name in SHAPES} for name in names]


def weights(*names: str, shape: tuple[int, ...] = (3, 2)) -> list[Variable]:
    return [
        Variable(name, (2,) if name.endswith("bias") else shape, "float32", True, order, 1)
        for order, name in enumerate(names)
    ]


def find(
    values: dict[str, Any],
    theirs: list[Variable],
    optimizer: dict[str, Any] | None = None,
    order: list[dict[str, Any]] | None = None,
    slots: tuple[str, ...] = (),
    user: dict[str, str] | None = None,
) -> CheckpointMap:
    made = [(weight.name, slot) for weight in theirs for slot in slots]
    return match(read_tensors(values, order), theirs, made, optimizer, user)


def table(found: CheckpointMap) -> dict[str, str]:
    return {entry.sources[0]: entry.target for entry in found.entries}


def test_slots_are_known_by_the_variable_that_they_hang_on() -> None:
    shapes = {"a/w": (2,), "a/w/Adam": (2,), "train/a/w/Adam_1": (2,), "a/w/count": (), "b/moving_mean": (2,)}
    trained = ["a/w"]
    found = {name: slot_of(name, shapes, trained) for name in shapes}
    assert found == {**dict.fromkeys(shapes), "a/w/Adam": "a/w", "train/a/w/Adam_1": "a/w"}


def test_weights_slots_and_the_step_by_the_order_of_the_graph() -> None:
    values = checkpoint("beta1_power", "beta2_power")
    order = created("global_step", "dense_1/kernel", "dense/kernel", "dense/bias", "beta1_power")
    found = find(values, weights("one/kernel", "two/kernel", "two/bias"), ADAM, order, ("m", "v"))
    assert found.how == "creation order"
    assert table(found) == {
        "dense_1/kernel": "weight:one/kernel",
        "dense/kernel": "weight:two/kernel",
        "dense/bias": "weight:two/bias",
        "dense_1/kernel/Adam": "slot:one/kernel|m",
        "dense_1/kernel/Adam_1": "slot:one/kernel|v",
        "dense/kernel/Adam": "slot:two/kernel|m",
        "dense/kernel/Adam_1": "slot:two/kernel|v",
        "dense/bias/Adam": "slot:two/bias|m",
        "dense/bias/Adam_1": "slot:two/bias|v",
        "global_step": "iterations",
    }
    assert found.powers == {"beta1_power": "beta_1", "beta2_power": "beta_2"}
    assert found.alone == ()


def test_without_the_graph_equal_names_decide() -> None:
    found = find(checkpoint(), weights("dense_1/kernel", "dense/kernel", "dense/bias"))
    assert found.how == "equal names"
    assert table(found) == {name: f"weight:{name}" for name in SHAPES}


def test_without_the_graph_what_looks_alike_is_refused_and_the_user_may_tell() -> None:
    theirs = weights("one/kernel", "two/kernel", "two/bias")
    with pytest.raises(CheckpointError, match=r"dense/kernel, dense_1/kernel look alike") as problem:
        find(checkpoint(), theirs)
    assert problem.value.code == "TFM863"
    user = {"dense/kernel": "two/kernel", "dense_1/kernel": "one/kernel"}
    assert table(find(checkpoint(), theirs, user=user))["dense/bias"] == "weight:two/bias"
    with pytest.raises(CheckpointError, match="'other', which is no variable") as problem:
        find(checkpoint(), theirs, user={"dense/kernel": "other"})


@pytest.mark.parametrize(
    ("theirs", "code", "says"),
    [
        (weights("dense/kernel", "dense/bias", "dense_1/kernel", "more/kernel"), "TFM861", "no values for more/kernel"),
        (weights("dense/kernel", "dense/bias"), "TFM862", r"no weight for dense_1/kernel \[3, 2\]"),
        (
            weights("dense/kernel", "dense/bias", "dense_1/kernel", shape=(4, 2)),
            "TFM863",
            r"\[3, 2\] in the .*\[4, 2\]",
        ),
    ],
)
def test_what_does_not_fit_is_refused(theirs: list[Variable], code: str, says: str) -> None:
    order = created("dense/kernel", "dense/bias", "dense_1/kernel")
    with pytest.raises(CheckpointError, match=says) as problem:
        find(checkpoint(), theirs, None, order)
    assert problem.value.code == code


def test_momentum_is_scaled_by_the_rate_unless_the_program_has_its_own_step() -> None:
    values, theirs = checkpoint(slots=("Momentum",)), weights("dense/kernel", "dense/bias", "dense_1/kernel")
    order = created("dense/kernel", "dense/bias", "dense_1/kernel")
    (entry,) = (e for e in find(values, theirs, SGD, order, ("m",)).entries if e.target == "slot:dense/bias|m")
    assert entry.to_keras(values) == pytest.approx([-0.5, -0.5])
    own = {**SGD, "own_step": True}
    (entry,) = (e for e in find(values, theirs, own, order, ("m",)).entries if e.target == "slot:dense/bias|m")
    assert entry.to_keras(values) == pytest.approx([1.0, 1.0])
    with pytest.raises(CheckpointError, match="not constant") as problem:
        find(values, theirs, {**SGD, "rate": None}, order, ("m",))
    assert problem.value.code == "TFM864"


@pytest.mark.parametrize(
    ("kind", "settings", "stored", "slots"),
    [
        ("SGD", {"momentum": 0.9}, ("Momentum",), ("momentum",)),
        ("Adam", {}, ("Adam", "Adam_1"), ("m", "v")),
        ("RMSprop", {}, ("RMSProp", "RMSProp_1"), ("rms", "momentum")),
        ("RMSprop", {"centered": True}, ("RMSProp", "RMSProp_1", "RMSProp_2"), ("rms", "mg", "momentum")),
        ("Adadelta", {}, ("Adadelta", "Adadelta_1"), ("accum_grad", "accum_var")),
    ],
)
def test_slots_of_the_classes_that_keras_had_before(
    kind: str, settings: dict[str, Any], stored: tuple[str, ...], slots: tuple[str, ...]
) -> None:
    older = {"kinds": [kind], "rate": 0.5, "own_step": False, "settings": settings, "older": True}
    found = table(find(checkpoint(slots=stored), weights(*SHAPES), older, created(*SHAPES), slots))
    assert {found[f"dense/bias/{one}"]: slot for one, slot in zip(stored, slots, strict=True)} == {
        f"slot:dense/bias|{slot}": slot for slot in slots
    }


@pytest.mark.parametrize("slots", [(), ("Adagrad",)])
def test_slots_of_another_optimizer_are_refused(slots: tuple[str, ...]) -> None:
    theirs = weights("dense/kernel", "dense/bias", "dense_1/kernel")
    with pytest.raises(CheckpointError, match="slot") as problem:
        find(checkpoint(slots=slots), theirs, ADAM, created(*SHAPES), ("m", "v"))
    assert problem.value.code == "TFM864"


def test_slots_that_are_weights_of_the_program() -> None:
    own = [f"{name}/{slot}" for name in SHAPES for slot in ("adam_m", "adam_v")]
    values = checkpoint(slots=("adam_m", "adam_v"))
    theirs = [Variable(n, values[n].shape, "float32", n in SHAPES, i, 1) for i, n in enumerate([*SHAPES, *own])]
    found = table(find(values, theirs, {**SGD, "settings": {}}, created(*SHAPES, *own)))
    assert found == {**{name: f"weight:{name}" for name in [*SHAPES, *own]}, "global_step": "iterations"}


def test_parts_that_were_saved_one_by_one_are_one_variable() -> None:
    values = {f"w/part_{i}": np.full((2, 3), i, np.float32) for i in range(11)}
    tensors = read_tensors(values, None)
    assert tensors.shapes == {"w": (22, 3)}
    (entry,) = match(tensors, weights("w", shape=(22, 3)), [], None).entries
    assert entry.to_keras(values)[:, 0].tolist() == [float(i) for i in range(11) for _ in range(2)]


def test_what_is_not_trained_may_stay_behind() -> None:
    values = checkpoint("OptimizeLoss/learning_rate", slots=("ExponentialMovingAverage",))
    order = created(*SHAPES, "OptimizeLoss/learning_rate")
    found = find(values, weights(*SHAPES), None, order)
    averages = [f"{name}/ExponentialMovingAverage" for name in SHAPES]
    assert found.alone == tuple(sorted(["OptimizeLoss/learning_rate", "global_step", *averages]))


def test_averages_of_weights_are_carried_over_where_the_program_keeps_them() -> None:
    values = checkpoint(slots=("ExponentialMovingAverage", "Momentum"))
    order = created(*SHAPES)
    found = table(find(values, weights(*SHAPES), SGD, order, ("m", "average")))
    assert found["dense/bias/ExponentialMovingAverage"] == "slot:dense/bias|average"
    assert found["dense/bias/Momentum"] == "slot:dense/bias|m"
    assert "dense/bias/ExponentialMovingAverage" in find(values, weights(*SHAPES), SGD, order, ("m",)).alone
    with pytest.raises(CheckpointError, match="keeps a moving average of `dense/") as problem:
        find(checkpoint(slots=("Momentum",)), weights(*SHAPES), SGD, order, ("m", "average"))
    assert problem.value.code == "TFM864"


def test_a_power_of_beta_after_some_steps() -> None:
    expected = np.float32(0.9)
    for _ in range(10):
        expected *= np.float32(0.9)  # as TensorFlow 1 keeps it
    assert power(0.9, 10) == pytest.approx(expected, rel=1e-6)
