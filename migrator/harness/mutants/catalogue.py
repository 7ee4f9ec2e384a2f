"""The mistakes, as data: what inside/mutate.py is told to do, and which level should find it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any


class Family(Enum):
    """What part of a training program a mistake is made in."""

    OPTIMIZER = "optimizer"
    LOSS = "loss"
    REGULARIZATION = "regularization"
    DATA = "data"
    BATCH_NORM = "batch_norm"
    DISTRIBUTION = "distribution"
    EVALUATION = "evaluation"


@dataclass(frozen=True)
class Mutant:
    """One mistake. `parameters` are what inside/mutate.py takes beside the id, "kind" first of all.

    `expected_level` is the first level that can say DIFFERENT on a workload that exercises the mistake. An "unseen"
    mistake is made behind the place where settings are read back, so that L0b cannot be the one to find it.
    """

    id: str
    family: Family
    description: str
    expected_level: str
    parameters: Mapping[str, Any]

    @property
    def plan(self) -> dict[str, Any]:
        """The value of the plan's "mutant"."""
        return {"id": self.id, **self.parameters}


def _optimizer() -> Iterable[Mutant]:
    def mutant(id: str, description: str, level: str, kind: str, **parameters: Any) -> Mutant:
        return Mutant(id, Family.OPTIMIZER, description, level, {"kind": kind, **parameters})

    unseen = "although the settings read back right"
    for factor, text in ((1.2, "20 %"), (1.05, "5 %"), (1.01, "1 %"), (1.0001, "0.01 %")):
        yield mutant(
            f"learning-rate-x{factor}", f"the learning rate is {text} higher", "L0b", "learning_rate", factor=factor
        )
    for factor, text in ((1.05, "5 %"), (1.01, "1 %"), (1.0001, "0.01 %")):
        yield mutant(
            f"update-x{factor}",
            f"updates are made with a rate {text} higher, {unseen}",
            "L4",
            "learning_rate",
            factor=factor,
            unseen=True,
        )
    settings: tuple[tuple[str, str, dict[str, Any], str | None], ...] = (
        ("epsilon", "epsilon is Keras' default of 1e-7", {"setting": "epsilon", "value": 1e-7}, "epsilon-unseen"),
        (
            "accumulator-0.11",
            "the accumulator starts at 0.11",
            {"setting": "initial_accumulator_value", "value": 0.11},
            "accumulator-0.11-unseen",
        ),
        (
            # Not exactly zero, which would divide a zero gradient by zero and be a crash instead of a mistake.
            "accumulator-missing",
            "the accumulator starts at (nearly) zero",
            {"setting": "initial_accumulator_value", "value": 1e-6},
            None,
        ),
        ("beta-1", "beta_1 is 0.85", {"setting": "beta_1", "value": 0.85}, "beta-1-unseen"),
        ("beta-2", "beta_2 is 0.99", {"setting": "beta_2", "value": 0.99}, "beta-2-unseen"),
        (
            "momentum-added",
            "a momentum of 0.9 is added",
            {"setting": "momentum", "value": 0.9, "only_from": 0.0},
            None,
        ),
        ("momentum-removed", "there is no momentum", {"setting": "momentum", "value": 0.0}, "momentum-removed-unseen"),
    )
    for id, description, parameters, hidden in settings:
        yield mutant(id, description, "L0b", "optimizer_setting", **parameters)
        if hidden is not None:
            # Without momentum there are no slots, which L1 counts.
            level = "L1" if id == "momentum-removed" else "L4"
            yield mutant(hidden, f"{description}, {unseen}", level, "optimizer_setting", **parameters, unseen=True)
    yield mutant("nesterov", "the other of the two momentum rules", "L0b", "nesterov")
    yield mutant("nesterov-unseen", f"the other of the two momentum rules, {unseen}", "L4", "nesterov", unseen=True)
    for norm in (1.0, 5.0):
        description = f"gradients are clipped to a global norm of {norm:g}"
        yield mutant(f"clipping-{norm:g}", description, "L0b", "clipping", norm=norm)
        yield mutant(f"clipping-{norm:g}-unseen", f"{description}, {unseen}", "L4", "clipping", norm=norm, unseen=True)
    yield mutant("clipping-removed", "gradients are not clipped", "L0b", "clipping", norm=None)
    yield mutant(
        "clipping-removed-unseen", f"gradients are not clipped, {unseen}", "L4", "clipping", norm=None, unseen=True
    )
    yield mutant(
        "lazy-rows",
        "rows of an embedding that are not in the batch stay, where the original moves them",
        "L4",
        "sparse_rows",
        rows="untouched",
    )
    yield mutant(
        "dense-momentum",
        "rows of an embedding that are not in the batch move by their momentum, as in the stock Keras SGD",
        "L4",
        "sparse_rows",
        rows="dense",
    )


MUTANTS: tuple[Mutant, ...] = (
    *_optimizer(),
    Mutant(
        "sum-for-mean",
        Family.LOSS,
        "the loss is summed over the batch instead of averaged",
        "L3",
        {"kind": "loss_reduction"},
    ),
    Mutant(
        "partial-batch",
        Family.LOSS,
        "the loss of a partial batch is divided by the size of a full one",
        "L4",
        {"kind": "partial_batch"},
    ),
    Mutant(
        "regularizers-dropped",
        Family.REGULARIZATION,
        "the regularisers are left out",
        "L3",
        {"kind": "regularizers", "change": "dropped"},
    ),
    Mutant(
        "regularizer-dropped",
        Family.REGULARIZATION,
        "the first of the regularisers is left out",
        "L3",
        {"kind": "regularizers", "change": "first_dropped"},
    ),
    Mutant(
        "regularizers-doubled",
        Family.REGULARIZATION,
        "the regularisers count twice",
        "L3",
        {"kind": "regularizers", "change": "doubled"},
    ),
    Mutant("dropout-off", Family.REGULARIZATION, "dropout is not at work", "L0b", {"kind": "dropout", "change": "off"}),
    Mutant(
        "dropout-keep-prob",
        Family.REGULARIZATION,
        "dropout keeps what it should drop",
        "L0b",
        {"kind": "dropout", "change": "keep_prob"},
    ),
    Mutant(
        "dropout-rate",
        Family.REGULARIZATION,
        "the dropout rate is a tenth higher",
        "L0b",
        {"kind": "dropout", "change": "more"},
    ),
    Mutant(
        "batch-half",
        Family.DATA,
        "the batch is divided between replicas instead of given to each",
        "L0b",
        {"kind": "batch_size", "change": "half"},
    ),
    Mutant(
        "batch-minus-one",
        Family.DATA,
        "each batch is one example short",
        "L0b",
        {"kind": "batch_size", "change": "minus_one"},
    ),
    Mutant(
        "last-batch-dropped",
        Family.DATA,
        "the last batch of an epoch is dropped",
        "L2",
        {"kind": "dropped_batch", "side": "train"},
    ),
    Mutant("shuffle-seed", Family.DATA, "another shuffle seed", "L2", {"kind": "shuffle", "change": "seed"}),
    Mutant("shuffle-missing", Family.DATA, "the data is not shuffled", "L2", {"kind": "shuffle", "change": "none"}),
    Mutant(
        "update-ops-missing",
        Family.BATCH_NORM,
        "the moving statistics of batch normalisation are never updated",
        "L4",
        {"kind": "batch_norm_updates"},
    ),
    Mutant(
        "batch-norm-momentum",
        Family.BATCH_NORM,
        "the moving statistics have a momentum of 0.9",
        "L4",
        {"kind": "batch_norm_setting", "setting": "momentum", "value": 0.9},
    ),
    Mutant(
        "batch-norm-epsilon",
        Family.BATCH_NORM,
        "the epsilon of batch normalisation is 1e-5",
        "L3",
        {"kind": "batch_norm_setting", "setting": "epsilon", "value": 1e-5},
    ),
    Mutant(
        "batch-norm-inference",
        Family.BATCH_NORM,
        "batch normalisation is in inference mode during training",
        "L3",
        {"kind": "batch_norm_mode", "phase": "train"},
    ),
    Mutant(
        "gradients-averaged-twice",
        Family.DISTRIBUTION,
        "averaged gradients are divided by the number of replicas once more",
        "L4",
        {"kind": "replica_gradients", "change": "averaged"},
    ),
    Mutant(
        "gradients-summed",
        Family.DISTRIBUTION,
        "the gradients of the replicas are summed instead of averaged",
        "L4",
        {"kind": "replica_gradients", "change": "summed"},
    ),
    Mutant(
        "worker-lost",
        Family.DISTRIBUTION,
        "what the last worker computes is lost",
        "L4",
        {"kind": "replica_gradients", "change": "last_lost"},
    ),
    Mutant("same-shard", Family.DISTRIBUTION, "every worker reads the same shard", "L2", {"kind": "same_shard"}),
    Mutant(
        "partitioner-missing",
        Family.DISTRIBUTION,
        "variables are not divided over the parameter servers",
        "L1",
        {"kind": "partitioner", "change": "none"},
    ),
    Mutant(
        "partitioner-shards",
        Family.DISTRIBUTION,
        "variables are divided into one shard more",
        "L1",
        {"kind": "partitioner", "change": "more"},
    ),
    Mutant(
        "evaluation-stale",
        Family.EVALUATION,
        "the weights that training began with are evaluated",
        "L7",
        {"kind": "stale_evaluation"},
    ),
    Mutant(
        "evaluation-last-batch",
        Family.EVALUATION,
        "the last batch of an evaluation is dropped",
        "L7",
        {"kind": "dropped_batch", "side": "evaluate"},
    ),
    Mutant(
        "evaluation-threshold",
        Family.EVALUATION,
        "metrics see predictions that are 0.1 higher",
        "L7",
        {"kind": "metrics", "change": "threshold"},
    ),
    Mutant(
        "evaluation-labels",
        Family.EVALUATION,
        "metrics count the classes from one",
        "L7",
        {"kind": "metrics", "change": "labels"},
    ),
    Mutant(
        "evaluation-batch-norm",
        Family.EVALUATION,
        "batch normalisation is in training mode during evaluation",
        "L7",
        {"kind": "batch_norm_mode", "phase": "evaluate"},
    ),
    Mutant(
        "evaluation-regularization",
        Family.EVALUATION,
        "the loss of an evaluation is reported without regularisation",
        "L7",
        {"kind": "evaluation_loss"},
    ),
    Mutant(
        "predictions-changed",
        Family.EVALUATION,
        "what the model predicts is 1 % larger",
        "L8",
        {"kind": "predictions", "factor": 1.01},
    ),
    Mutant(
        "weights-changed",
        Family.EVALUATION,
        "the weights are 1 % larger when training is over",
        "L7",
        {"kind": "changed_weights", "factor": 1.01},
    ),
)

BY_ID: Mapping[str, Mutant] = {mutant.id: mutant for mutant in MUTANTS}

SENTINELS: tuple[Mutant, ...] = tuple(
    BY_ID[id] for id in ("learning-rate-x1.01", "last-batch-dropped", "update-ops-missing", "sum-for-mean")
)
"""The mutants of every run; all others are for the self-test."""


def select(wanted: Iterable[str]) -> tuple[Mutant, ...]:
    """The mutants with these ids or of these families, in the order of the catalogue; "sentinels" are the four.

    ValueError names what is neither.
    """
    families = {family.value for family in Family}
    chosen: set[str] = set()
    for word in wanted:
        if word == "sentinels":
            chosen |= {mutant.id for mutant in SENTINELS}
        elif word in families:
            chosen |= {mutant.id for mutant in MUTANTS if mutant.family.value == word}
        elif word in BY_ID:
            chosen.add(word)
        else:
            raise ValueError(f"no mutant and no family of mutants is called {word}")
    return tuple(mutant for mutant in MUTANTS if mutant.id in chosen)
