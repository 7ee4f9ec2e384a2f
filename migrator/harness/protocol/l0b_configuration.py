"""L0b: the settings that the running programs really have, field by field."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from migrator.harness.protocol import measurements
from migrator.harness.protocol.results import Divergence, LevelResult, Reason, Status
from migrator.harness.recording import Optimizer, Recording

ID, TITLE = "L0b", "Same settings"

Setting = float | bool | str | None

# What a field means to the arithmetic when one of the two optimizers does not have it at all.
_ABSENT: Mapping[str, Setting] = {
    "momentum": 0.0,
    "nesterov": False,
    "epsilon": 0.0,
    "centered": False,
    "amsgrad": False,
    "weight_decay": 0.0,
    "clipnorm": None,
    "clipvalue": None,
    "global_clipnorm": None,
    "use_ema": False,
    "l1_regularization_strength": 0.0,
    "l2_regularization_strength": 0.0,
    "l2_shrinkage_regularization_strength": 0.0,
    "beta": 0.0,
}
# Fields that change how a program is executed or named and not what it computes.
_NOT_ARITHMETIC = frozenset(
    {"name", "jit_compile", "is_legacy_optimizer", "use_locking", "ema_momentum", "ema_overwrite_frequency"}
)
_FAMILIES = {
    "gradientdescent": "sgd",
    "sgd": "sgd",
    "momentum": "sgd",
    "adagrad": "adagrad",
    "adam": "adam",
    "rmsprop": "rmsprop",
    "ftrl": "ftrl",
    "adadelta": "adadelta",
    "adamw": "adamw",
    "adamax": "adamax",
    "nadam": "nadam",
}


def family(optimizer: Optimizer) -> str:
    """The update rule behind a class name: GradientDescentOptimizer, MomentumOptimizer and SGD are one."""
    name = optimizer.name.rsplit(".", 1)[-1].lower().replace("optimizer", "").replace("_", "")
    return _FAMILIES.get(name, name)


def same(a: Setting, b: Setting) -> bool:
    """Equal as float32 within one unit in the last place; booleans and text exactly; NaN never."""
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        if isinstance(a, bool) or isinstance(b, bool):
            return bool(a) == bool(b)
        x, y = np.float32(a), np.float32(b)
        if not (np.isfinite(x) and np.isfinite(y)):
            return False
        return bool(abs(float(x) - float(y)) <= float(np.spacing(max(abs(x), abs(y)))))
    return a == b


def _known_absent(key: str, value: Setting) -> Setting:
    if value is not None:
        return value
    return _ABSENT.get(key)


def optimizer_fields(original: Recording, migrated: Recording) -> tuple[tuple[str, Setting, Setting, bool], ...]:
    """(field, original, migrated, same) for the update rule and every setting that takes part in the
    arithmetic.
    """
    if original.optimizer is None or migrated.optimizer is None:
        names = tuple(None if o is None else o.name for o in (original.optimizer, migrated.optimizer))
        return (("optimizer", names[0], names[1], False),)
    rules = family(original.optimizer), family(migrated.optimizer)
    fields: list[tuple[str, Setting, Setting, bool]] = [("update rule", *rules, rules[0] == rules[1])]
    ours, theirs = original.optimizer.settings, migrated.optimizer.settings
    for key in sorted((set(ours) | set(theirs)) - _NOT_ARITHMETIC):
        a, b = _known_absent(key, ours.get(key)), _known_absent(key, theirs.get(key))
        fields.append((key, a, b, same(a, b)))
    return tuple(fields)


def _rates(recording: Recording) -> dict[tuple[int, int], float | None]:
    positions = {task: i for i, task in enumerate(measurements.trainers(recording))}
    return {(step.number, positions[step.task]): step.learning_rate for step in recording.steps}


def _rate_difference(original: Recording, migrated: Recording) -> Divergence | None:
    ours, theirs = _rates(original), _rates(migrated)
    for key in sorted(set(ours) & set(theirs)):
        a, b = ours[key], theirs[key]
        if not same(a, b):
            return Divergence("learning rate", a, b, step=key[0], causes=("another rate, or a schedule off by one",))
    return None


def _first_sizes(recording: Recording) -> tuple[int, ...]:
    positions = measurements.trainers(recording)
    first = {batch.task: batch.size for batch in sorted(recording.batches, key=lambda b: -b.step)}
    return tuple(first[task] for task in positions if task in first)


def _dropout_places(original: Recording, migrated: Recording) -> tuple[str, str] | None:
    """The shapes that the dropouts work on, if both programs' are known and they differ."""
    ours, theirs = original.dropout_inputs, migrated.dropout_inputs
    if not ours or not theirs or None in ours or None in theirs:
        return None
    shapes = [sorted(list(shape) for shape in side if shape is not None) for side in (ours, theirs)]
    return None if shapes[0] == shapes[1] else (str(shapes[0]), str(shapes[1]))


def judge(original: Recording, migrated: Recording) -> LevelResult:
    """Compares optimizer, rate at each step, batch size of each trainer, dropout rates and replicas."""
    differences = [
        Divergence(f"optimizer {name}" if name != "optimizer" else name, a, b)
        for name, a, b, equal in optimizer_fields(original, migrated)
        if not equal
    ]
    rate = _rate_difference(original, migrated)
    if rate is not None and not any(d.tensor == "optimizer learning_rate" for d in differences):
        differences.append(rate)

    sizes = _first_sizes(original), _first_sizes(migrated)
    if sizes[0] != sizes[1]:
        differences.append(
            Divergence(
                "batch size of each trainer",
                str(list(sizes[0])),
                str(list(sizes[1])),
                step=1,
                causes=("the Estimator's batch is per worker and per replica; a Keras global batch is divided",),
            )
        )
    # Partitioned variables count one term per shard in TF1, so the counts only say whether there are any; the
    # sum of the terms is judged by L3.
    if bool(original.regularizers) != bool(migrated.regularizers):
        differences.append(
            Divergence(
                "regularisation terms",
                float(original.regularizers),
                float(migrated.regularizers),
                causes=("a regulariser was dropped, or one was added that the original's loss never contained",),
            )
        )
    rates = sorted(original.dropout_rates), sorted(migrated.dropout_rates)
    if len(rates[0]) != len(rates[1]) or not all(same(a, b) for a, b in zip(*rates, strict=True)):
        causes = ("keep_prob is 1 - rate", "training=False switches a dropout off")
        differences.append(Divergence("dropout rates", str(rates[0]), str(rates[1]), causes=causes))
    elif (places := _dropout_places(original, migrated)) is not None:
        differences.append(
            Divergence("dropout inputs", *places, causes=("the dropout is at another place in the network",))
        )
    if original.replicas != migrated.replicas:
        differences.append(Divergence("replicas", float(original.replicas), float(migrated.replicas)))

    if differences:
        first = differences[0]
        return LevelResult(
            ID,
            TITLE,
            Status.DIFFERENT,
            f"{first.tensor} is {_shown(first.original)} in the original and {_shown(first.migrated)} in the "
            f"migrated program" + (f", and {len(differences) - 1} more" if len(differences) > 1 else ""),
            Reason.SETTING_DIFFERS,
            differences=tuple(differences),
        )
    if original.optimizer is None:
        raise AssertionError("optimizer_fields reports two missing optimizers as a difference")
    counted = len(optimizer_fields(original, migrated))
    return LevelResult(
        ID,
        TITLE,
        Status.EQUIVALENT,
        f"{family(original.optimizer)}: {counted} optimizer fields, the rate of every step, batch sizes "
        f"{list(sizes[0])}, {original.regularizers} regulariser(s) and {len(rates[0])} dropout rate(s) agree",
        notes=() if sizes[0] else ("batch sizes: no batch was recorded",),
    )


def _shown(value: float | str | None) -> str:
    return f"{value:.9g}" if isinstance(value, float) and not isinstance(value, bool) else str(value)
