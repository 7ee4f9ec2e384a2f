"""A tiny trainer in numpy that stands for a training program: it writes the recording that the harness would
read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from migrator.harness.recording import Batch, Optimizer, Recording, Step, Variable

Tensor = NDArray[np.float32]
F = np.float32
STATE_STEPS = (1, 2, 10)


@dataclass(frozen=True)
class Program:
    """What the trainer does. The defaults are the original; each known-bad migration changes one field."""

    program: str = "original"
    optimizer: str = "adagrad"
    reported: Mapping[str, float] | None = None
    learning_rate: float = 0.05
    accumulator: float = 0.1
    epsilon: float = 0.0
    momentum: float = 0.9
    beta_2: float = 0.999
    l2: float = 0.0
    loss_scale: str = "mean"
    batch_size: int = 16
    examples: int = 128
    steps: int = 30
    data_seed: int = 1
    drop_last: int = 0
    activation: str = "tanh"
    relabel: str = ""
    float64_sums: bool = False
    train_output: bool = True
    report_regularizer: bool = True
    rate_at_step: tuple[int, float] | None = None


def names(program: str) -> dict[str, str]:
    if program == "original":
        return {"k1": "dense/kernel", "b1": "dense/bias", "k2": "dense_1/kernel", "b2": "dense_1/bias"}
    return {"k1": "hidden/kernel:0", "b1": "hidden/bias:0", "k2": "output/kernel:0", "b2": "output/bias:0"}


def initial_values(seed: int = 7) -> dict[str, Tensor]:
    random = np.random.default_rng(seed)
    return {
        "k1": random.normal(0, 0.4, (6, 16)).astype(F),
        "b1": np.zeros(16, F),
        "k2": random.normal(0, 0.4, (16, 1)).astype(F),
        "b2": np.zeros(1, F),
    }


def moved_by_one_ulp(values: Mapping[str, Tensor], seed: int) -> dict[str, Tensor]:
    random = np.random.default_rng(seed)
    moved = {}
    for name, value in values.items():
        up = random.integers(0, 2, value.shape).astype(bool)
        moved[name] = np.where(up, np.nextafter(value, F(np.inf)), np.nextafter(value, F(-np.inf))).astype(F)
    return moved


def _digest(value: Tensor) -> str:
    return hashlib.sha256(value.tobytes()).hexdigest()


def _batches(p: Program) -> list[tuple[Tensor, Tensor]]:
    random = np.random.default_rng(p.data_seed)
    x = random.uniform(-1, 1, (p.examples, 6)).astype(F)
    y = (np.sin(x.sum(axis=1, keepdims=True)) + 0.1 * random.normal(size=(p.examples, 1))).astype(F)
    epoch = [(x[i : i + p.batch_size], y[i : i + p.batch_size]) for i in range(0, p.examples, p.batch_size)]
    if p.drop_last:
        epoch = epoch[: -p.drop_last]
    return [epoch[i % len(epoch)] for i in range(p.steps)]


def _matmul(a: Tensor, b: Tensor, p: Program) -> Tensor:
    """A product of matrices; with float64_sums it rounds once at the end, as another kernel might."""
    if p.float64_sums:
        return (a.astype(np.float64) @ b.astype(np.float64)).astype(F)
    return a @ b


def run(
    p: Program,
    *,
    initial: Mapping[str, Tensor] | None = None,
    ulp_seed: int | None = None,
    learning_rate_factor: float = 1.0,
) -> Recording:
    """Trains for p.steps steps and returns what a recorder would have seen."""
    name = names(p.program)
    w = {key: value.copy() for key, value in (initial or initial_values()).items()}
    if ulp_seed is not None:
        w = moved_by_one_ulp(w, ulp_seed)
    start = {name[key]: value.copy() for key, value in w.items()}
    slots: dict[str, dict[str, Tensor]] = {}
    for key, value in w.items():
        if p.optimizer == "adagrad":
            slots[key] = {"accumulator": np.full(value.shape, p.accumulator, F)}
        elif p.optimizer == "momentum":
            slots[key] = {"momentum": np.zeros_like(value)}
        elif p.optimizer == "adam":
            slots[key] = {"first_moment": np.zeros_like(value), "second_moment": np.zeros_like(value)}
        else:
            slots[key] = {}

    steps, batches, states, slot_states, gradients = [], [], {}, {}, {}
    outputs: dict[str, Tensor] = {}
    regularization = None
    for number, (x, y) in enumerate(_batches(p), start=1):
        rate = p.learning_rate
        if p.rate_at_step is not None and number >= p.rate_at_step[0]:
            rate = p.rate_at_step[1]
        rate32 = F(rate * learning_rate_factor)
        z = _matmul(x, w["k1"], p) + w["b1"]
        h = np.tanh(z) if p.activation == "tanh" else np.maximum(z, F(0))
        out = _matmul(h, w["k2"], p) + w["b2"]
        if number == 1:
            outputs = {name["k1"]: h.astype(F), name["k2"]: out.astype(F)}
        error = out - y
        count = F(error.size if p.loss_scale == "mean" else 1)
        reg = F(p.l2) * sum((np.sum(w[k] ** 2, dtype=F) for k in ("k1", "k2")), F(0))
        loss = F(np.sum(error**2, dtype=F) / count + (reg if p.report_regularizer else F(0)))
        if number == 1 and p.l2:
            regularization = float(reg)
        d = (F(2) * error / count).astype(F)
        g = {"k2": _matmul(h.T, d, p) + F(2 * p.l2) * w["k2"], "b2": d.sum(axis=0, dtype=F)}
        dh = _matmul(d, w["k2"].T, p) * ((F(1) - h**2) if p.activation == "tanh" else (z > 0).astype(F))
        g["k1"] = _matmul(x.T, dh, p) + F(2 * p.l2) * w["k1"]
        g["b1"] = dh.sum(axis=0, dtype=F)
        if not p.train_output:
            g["b2"] = np.zeros_like(g["b2"])
        for key in w:
            gradient = g[key].astype(F)
            s = slots[key]
            if p.optimizer == "adagrad":
                s["accumulator"] = s["accumulator"] + gradient**2
                w[key] = w[key] - rate32 * gradient / (np.sqrt(s["accumulator"]) + F(p.epsilon))
            elif p.optimizer == "momentum":
                s["momentum"] = F(p.momentum) * s["momentum"] + gradient
                w[key] = w[key] - rate32 * s["momentum"]
            elif p.optimizer == "adam":
                b1, b2 = F(0.9), F(p.beta_2)
                s["first_moment"] = b1 * s["first_moment"] + (F(1) - b1) * gradient
                s["second_moment"] = b2 * s["second_moment"] + (F(1) - b2) * gradient**2
                corrected = F(rate32 * np.sqrt(1 - float(b2) ** number) / (1 - float(b1) ** number))
                w[key] = w[key] - corrected * s["first_moment"] / (np.sqrt(s["second_moment"]) + F(p.epsilon))
            else:
                w[key] = w[key] - rate32 * gradient
            w[key] = w[key].astype(F)
        digest = _digest(np.concatenate([x.ravel(), y.ravel()]))
        task = "local:0"
        steps.append(Step(number, task, float(loss), float(rate32), digest))
        batches.append(
            Batch(
                task,
                number,
                digest,
                len(x),
                (
                    ("features", "float32", tuple(x.shape), _digest(x)),
                    ("labels", "float32", tuple(y.shape), _digest(y)),
                ),
            )
        )
        if number in STATE_STEPS or number == p.steps:
            states[number] = {name[key]: value.copy() for key, value in w.items()}
            gradients[number] = {name[key]: g[key].astype(F) for key in w}
            slot_states[number] = {(name[key], slot): value.copy() for key in w for slot, value in slots[key].items()}
    settings: dict[str, float | bool | str | None] = {"learning_rate": p.learning_rate}
    if p.optimizer == "adagrad":
        settings.update(initial_accumulator_value=p.accumulator)
        if p.program == "migrated":
            settings.update(epsilon=p.epsilon)
    elif p.optimizer == "momentum":
        settings.update(momentum=p.momentum)
    elif p.optimizer == "adam":
        settings.update(beta_1=0.9, beta_2=p.beta_2, epsilon=p.epsilon)
    if p.reported is not None:
        settings.update(p.reported)
    return Recording(
        program=p.program,
        tensorflow="2.15.1" if p.program == "original" else "2.21.0",
        keras="",
        variables=tuple(
            Variable(name[key], tuple(value.shape), "float32", True, order, 1)
            for order, (key, value) in enumerate(w.items())
        ),
        initial=start,
        steps=tuple(steps),
        batches=tuple(batches),
        states=states,
        slots=slot_states,
        gradients=gradients,
        optimizer=Optimizer(p.optimizer, settings),
        regularizers=2 if p.l2 else 0,
        regularization=regularization,
        update_ops=0,
        dropout_rates=(),
        replicas=1,
        evaluations=(),
        participation={"local:0": p.steps},
        activations=outputs,
    )


def migrated_of(p: Program, **changes: object) -> Program:
    return replace(p, program="migrated", **changes)  # type: ignore[arg-type]
