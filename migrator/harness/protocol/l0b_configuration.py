"""L0b: the settings that the running programs really have, field by field."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np

from migrator.harness.protocol import measurements
from migrator.harness.protocol.l1_variables import AVERAGE
from migrator.harness.protocol.results import Divergence, LevelResult, Reason, Status, counted
from migrator.harness.protocol.tolerance import LAST_STATE_STEP
from migrator.harness.recording import Optimizer, Recording

ID, TITLE = "L0b", "Same settings"

Setting = float | bool | str | None


@dataclass(frozen=True)
class Field:
    """One setting of both programs. `same` is None where it is not known well enough to compare (`remark` says why).

    `step` is the training step that shows it, for settings that may change. `causes` are likely reasons for a
    difference. `effect` names the level that compares every number which the setting has an effect on: a difference is
    then a note here.
    """

    name: str
    original: Setting
    migrated: Setting
    same: bool | None
    causes: tuple[str, ...] = ()
    step: int | None = None
    remark: str = ""
    effect: str = ""


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
    """The update rule behind a class name: GradientDescentOptimizer, MomentumOptimizer and SGD are one. A class of the
    program's own may have the name of a known rule, and follow another one.
    """
    name = optimizer.name.rsplit(".", 1)[-1].lower().replace("optimizer", "").replace("_", "")
    return f"{name} (its own class)" if optimizer.own and name in _FAMILIES else _FAMILIES.get(name, name)


# Units in the last place of the greatest rate of the training that rates of steps may be off: powers and cosines of a
# schedule are rounded otherwise one by one than in the graph of a step (2 units measured on TensorFlow 2.21,
# ExponentialDecay on a mesh and on replicas), and what is left of a sum (1 + cos x) is rounded as its terms are.
_ROUNDING_OF_RATES = 4


def same(a: Setting, b: Setting, units: int = 1) -> bool:
    """Equal as float32 within so many units in the last place; booleans and text exactly; NaN never."""
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        if isinstance(a, bool) or isinstance(b, bool):
            return bool(a) == bool(b)
        x, y = np.float32(a), np.float32(b)
        if not (np.isfinite(x) and np.isfinite(y)):
            return False
        return bool(abs(float(x) - float(y)) <= units * float(np.spacing(max(abs(x), abs(y)))))
    return a == b


_CLIPPING = ("the gradients of one program are clipped, or at another value; Keras clips what its optimizer is told",)
_REASONS: Mapping[str, tuple[str, ...]] = {
    "learning_rate": ("another rate, or another schedule",),
    "epsilon": ("Keras' default epsilon is 1e-7; TF1's is 1e-8 for Adam, and Adagrad has none",),
    "initial_accumulator_value": ("another start of the accumulator: TF1's default is 0.1",),
    "clipnorm": _CLIPPING,
    "clipvalue": _CLIPPING,
    "global_clipnorm": _CLIPPING,
}
# An epsilon below this adds nothing to a root or a sum of float32 that is no zero itself.
_NOTHING = 1e-20
# A share of the weights that is far above the rounding of float32.
_SHOWS = 1e-5
# Settings that None switches off; in any other, None stands for a value that is computed at run time.
_OFF = frozenset({"clipnorm", "clipvalue", "global_clipnorm", "clip_by_average_norm", "weight_decay"})


def _setting(key: str, settings: Mapping[str, Setting]) -> tuple[Setting, bool]:
    """The value of a setting, with what its absence means filled in, and whether it is known."""
    value = settings.get(key)
    if value is not None:
        return value, value != "computed"
    return _ABSENT.get(key), key not in settings or key in _OFF


def _optimizer(original: Recording, migrated: Recording) -> tuple[Field, ...]:
    if original.optimizer is None or migrated.optimizer is None:
        names = tuple(None if o is None else o.name for o in (original.optimizer, migrated.optimizer))
        return (Field("optimizer", names[0], names[1], False),)
    several = len(original.optimizer.others), len(migrated.optimizer.others)
    if several[0] != several[1]:
        sides = original.optimizer, migrated.optimizer
        rules = [sorted({family(one) for one in (side, *side.others)}) for side in sides]
        numbers = Field("number of optimizers", several[0] + 1.0, several[1] + 1.0, False, effect="L4")
        return (numbers, Field("update rules", str(rules[0]), str(rules[1]), rules[0] == rules[1]))
    fields = _settings_of(
        original.optimizer,
        migrated.optimizer,
        lambda: _same_rates(original, migrated),
        (_greatest_rate(original), _greatest_rate(migrated)),
    )
    for number, pair in enumerate(zip(original.optimizer.others, migrated.optimizer.others, strict=True), 2):
        fields += [replace(one, name=f"{one.name} of optimizer {number}") for one in _settings_of(*pair)]
    if any(slot == AVERAGE for values in original.slots.values() for _, slot in values):
        # What TensorFlow 1 keeps beside its optimizer may be a matter of Keras' optimizer.
        fields = [replace(one, effect="L4") if one.name == "use_ema" else one for one in fields]
    return tuple(fields)


def _settings_of(
    original: Optimizer,
    migrated: Optimizer,
    same_rates: Callable[[], bool | None] | None = None,
    greatest: tuple[float | None, float | None] = (None, None),
) -> list[Field]:
    """What two optimizers are told; `same_rates` judges rates that are computed, where those of the steps are known;
    `greatest` are the greatest ones that weights are compared behind.
    """
    rules = family(original), family(migrated)
    # What a class of the program's own computes is not known by its name.
    unknown = not set(rules) <= set(_FAMILIES.values())
    ours, theirs = original.settings, migrated.settings
    # AdamW is Adam with a decay of the weights, which a program of TensorFlow 1 writes by hand.
    decays = _decay_shows(ours, theirs, greatest)
    left = unknown or (decays and set(rules) == {"adam", "adamw"})
    fields = [Field("update rule", *rules, rules[0] == rules[1], effect="L4" if left else "")]
    if unknown and rules[0] != rules[1]:
        return fields
    for key in sorted((set(ours) | set(theirs)) - _NOT_ARITHMETIC):
        (a, known_a), (b, known_b) = _setting(key, ours), _setting(key, theirs)
        causes = _REASONS.get(key, ())
        # A clipping at a computed value is a clipping all the same.
        if (known_a and known_b) or (key in _OFF and (a is None) != (b is None)):
            # Numbers that no step can show apart are left to the steps.
            least = _least_epsilon(rules, ours, theirs)
            nothing = key == "epsilon" and all(isinstance(one, float) and abs(one) < least for one in (a, b))
            left = nothing or (key == "weight_decay" and decays)
            fields.append(Field(key, a, b, same(a, b), causes, effect="L4" if left else ""))
        elif key == "learning_rate" and same_rates is not None:
            fields.append(Field(key, ours.get(key), theirs.get(key), same_rates(), causes))
        else:
            remark = f"{key} is computed at run time; only its effect is compared (L4)"
            fields.append(Field(key, ours.get(key), theirs.get(key), None, causes, remark=remark))
    return fields


def _least_epsilon(rules: Collection[str], ours: Mapping[str, Setting], theirs: Mapping[str, Setting]) -> float:
    """Below which an epsilon changes no update by more than rounding does: the squares that Adagrad adds up are never
    less than what they begin with, be the epsilon added to them or to their root.
    """
    begins = [side.get("initial_accumulator_value") for side in (ours, theirs)]
    if set(rules) != {"adagrad"} or not all(isinstance(one, float) and one > 0.0 for one in begins):
        return _NOTHING
    least = min(float(one) for one in begins if one is not None)
    return max(_NOTHING, _ROUNDING_OF_RATES * float(np.finfo(np.float32).eps) * min(2.0 * least, math.sqrt(least)))


def _decay_shows(
    ours: Mapping[str, Setting], theirs: Mapping[str, Setting], greatest: tuple[float | None, float | None]
) -> bool:
    """Whether only one optimizer decays weights by itself, and by so much in a step that the weights after it show
    whether the other program does so too.
    """
    decaying = [place for place, side in enumerate((ours, theirs)) if side.get("weight_decay")]
    if len(decaying) != 1:
        return False
    settings = (ours, theirs)[decaying[0]]
    decay, rate = settings["weight_decay"], settings.get("learning_rate")
    rate = greatest[decaying[0]] if rate is None else rate
    return isinstance(decay, float) and isinstance(rate, float) and decay * rate >= _SHOWS


def optimizer_fields(original: Recording, migrated: Recording) -> tuple[tuple[str, Setting, Setting, bool], ...]:
    """(field, original, migrated, same) for the update rule and every setting that takes part in the
    arithmetic. A setting that only its effect can be compared of counts as the same.
    """
    return tuple((f.name, f.original, f.migrated, f.same is not False) for f in _optimizer(original, migrated))


def _rates(recording: Recording) -> dict[tuple[int, int], float | None]:
    positions = {task: i for i, task in enumerate(measurements.trainers(recording))}
    return {(step.number, positions[step.task]): step.learning_rate for step in recording.steps}


def _greatest_rate(recording: Recording) -> float | None:
    """The greatest rate that is known of the steps whose weights are compared."""
    rates = [rate for (step, _), rate in _rates(recording).items() if step <= LAST_STATE_STEP]
    return max((rate for rate in rates if rate is not None and math.isfinite(rate)), default=None)


def _same_rates(original: Recording, migrated: Recording) -> bool | None:
    """Whether the rates of all steps that both took agree; None if a rate was not recorded."""
    ours, theirs = _rates(original), _rates(migrated)
    shared = set(ours) & set(theirs)
    if not shared or any(side[key] is None for side in (ours, theirs) for key in shared):
        return None
    greatest = _greatest(ours)
    return all(_same_rate(ours[key], theirs[key], greatest) for key in shared)


def _greatest(rates: Mapping[tuple[int, int], float | None]) -> float:
    return max((abs(rate) for rate in rates.values() if rate is not None and math.isfinite(rate)), default=0.0)


def _same_rate(a: float | None, b: float | None, greatest: float) -> bool:
    if same(a, b, _ROUNDING_OF_RATES) or a is None or b is None:
        return a is not None and b is not None
    return abs(a - b) <= _ROUNDING_OF_RATES * float(np.spacing(np.float32(greatest)))


def _each_rate(original: Recording, migrated: Recording) -> Field:
    """The first rate that differs, else the first one."""
    ours, theirs = _rates(original), _rates(migrated)
    shared = sorted(k for k in set(ours) & set(theirs) if ours[k] is not None and theirs[k] is not None)
    name = "learning rate of each step"
    if not shared:
        return Field(name, None, None, None, remark="learning rates: no step has one on both sides")
    greatest = _greatest(ours)
    different = (key for key in shared if not _same_rate(ours[key], theirs[key], greatest))
    first = next(different, None)
    shown = shared[0] if first is None else first
    causes = ("another rate, or a schedule off by one",)
    return Field(name, ours[shown], theirs[shown], first is None, causes, step=shown[0])


def _first_sizes(recording: Recording) -> tuple[int, ...]:
    positions = measurements.trainers(recording)
    first = {batch.task: batch.size for batch in sorted(recording.batches, key=lambda b: -b.step)}
    return tuple(first[task] for task in positions if task in first)


def _global_size(recording: Recording) -> int | None:
    """How many examples go into one update: of all synchronous replicas together; None if batches differ in a way
    that has no such number.
    """
    sizes = _first_sizes(recording)
    if not sizes or recording.replicas <= 1:
        # Asynchronous trainers update one by one.
        return sizes[0] if len(set(sizes)) == 1 else None
    # Of the replicas of an original's process, which are alike, the batch of one is recorded.
    local, rest = divmod(recording.replicas, len(sizes) * recording.replicas_of_batch)
    return None if rest else sum(sizes) * local


def _batches(original: Recording, migrated: Recording) -> tuple[Field, ...]:
    sizes = _first_sizes(original), _first_sizes(migrated)
    if not sizes[0] and not sizes[1]:
        return (Field("batch size of each trainer", None, None, None, remark="batch sizes: no batch was recorded"),)
    causes = ("the Estimator's batch is per worker and per replica; a Keras global batch is divided",)
    shown = [str(list(side)) for side in sizes]
    each = Field("batch size of each trainer", shown[0], shown[1], sizes[0] == sizes[1], causes, step=1)
    together = _global_size(original), _global_size(migrated)
    equal = None if None in together else together[0] == together[1]
    remark = "" if equal is not None else "global batch: the trainers' batches have no common size"
    return each, Field("examples in one update", together[0], together[1], equal, causes, step=1, remark=remark)


def _updates(original: Recording, migrated: Recording) -> Field:
    """Whether moving averages are updated in the train step. The counts depend on how layers are built: L4 compares
    the averages themselves.
    """
    counts = original.update_ops, migrated.update_ops
    causes: tuple[str, ...] = ()
    if counts[0] and not counts[1]:
        causes = (
            f"none of the original's {counts[0]} updates of moving averages is in the migrated train step: the layers "
            "are called with training=False, or are not trainable",
            "a custom train step that calls the layers outside of the model",
        )
    elif counts[1] and not counts[0]:
        causes = (
            "the original never runs its UPDATE_OPS (no control dependency of the train op): momentum=1.0 keeps Keras' "
            "averages still too",
            "the original calls its batch normalisation without training=True",
        )
    same_use = bool(counts[0]) == bool(counts[1])
    return Field("updates of moving averages", float(counts[0]), float(counts[1]), same_use, causes, effect="L4")


def _dropouts(original: Recording, migrated: Recording) -> tuple[Field, ...]:
    rates = sorted(original.dropout_rates), sorted(migrated.dropout_rates)
    equal = len(rates[0]) == len(rates[1]) and all(same(a, b) for a, b in zip(*rates, strict=True))
    causes = ("keep_prob is 1 - rate", "training=False switches a dropout off")
    # A mask that a program draws by itself has no rate to be read, and drops the same: what comes of it decides. So it
    # does where a rate is computed, or where a loop over time is one of Python in one of the programs.
    unread, drawn = _unread(migrated) - _unread(original), migrated.draws - original.draws
    fewer = len(rates[0]) - len(rates[1]) - unread
    unrolled = _unrolled(original, migrated) or _unrolled(migrated, original)
    effect = "L3" if fewer * drawn > 0 or (unread and not fewer) or unrolled else ""
    fields = [Field("dropout rates", str(rates[0]), str(rates[1]), equal, causes, effect=effect)]
    if not rates[0] and not rates[1] and not original.dropout_inputs and not migrated.dropout_inputs:
        return tuple(fields)
    moved = ("the dropout is at another place in the network",)
    # Where one program freezes by what its optimizer is handed, and the other its layers, they count other variables.
    counted = [sum(variable.trainable for variable in one.variables) for one in (original, migrated)]
    if counted[0] != counted[1]:
        effect = "L3"
    for name, ours, theirs in (
        ("dropout inputs", _known(original.dropout_inputs), _known(migrated.dropout_inputs)),
        ("weights before each dropout", _after(original), _after(migrated)),
    ):
        if ours is None or theirs is None:
            remark = f"{name}: not known of both programs"
            fields.append(Field(name, _text(ours), _text(theirs), None, remark=remark))
        else:
            fields.append(Field(name, _text(ours), _text(theirs), ours == theirs, moved, effect=effect))
    often = _drawn(original), _drawn(migrated)
    if None not in often and not unrolled:
        each = (
            "a DropoutWrapper draws at each time step, as dropout= of LSTM and GRU does; SpatialDropout1D draws once",
        )
        fields.append(Field("masks of dropouts", *often, often[0] == often[1], each))
    return tuple(fields)


def _unread(recording: Recording) -> int:
    """How many dropouts have a rate that is computed: from what a session is fed, say."""
    return max(len(recording.dropout_inputs) - len(recording.dropout_rates), 0)


def _unrolled(looped: Recording, other: Recording) -> bool:
    """Whether one program draws in a loop over time what the other draws for each step of time by itself."""
    if not looped.dropout_loops or not all(looped.dropout_loops) or any(one != 0 for one in other.dropout_loops):
        return False
    ours, theirs = Counter(looped.dropout_rates), Counter(other.dropout_rates)
    times = {theirs[rate] / count for rate, count in ours.items()}
    return ours.keys() == theirs.keys() and len(times) == 1 and min(times) > 1.0


def _drawn(recording: Recording) -> str | None:
    """How often the dropouts draw in a step; None where it is not known."""
    loops = recording.dropout_loops
    if not loops or None in loops:
        return None
    return "drawn anew in a loop, at each time step" if any(loops) else "drawn once in a step"


def may_draw_alike(original: Recording, migrated: Recording) -> bool:
    """Whether one program drops in a loop over time what the other may drop at all of its steps at once."""
    sides = original.dropout_loops, migrated.dropout_loops
    return any(any(ours) and None in theirs for ours, theirs in (sides, sides[::-1]))


def _text(values: list[str] | None) -> str | None:
    return None if values is None else "; ".join(values)


def _known(shapes: tuple[tuple[int, ...] | None, ...]) -> list[str] | None:
    """The shapes of one example before the dropouts, in a fixed order; None unless all are known."""
    if not shapes or None in shapes:
        return None
    return [str(list(shape)) for shape in sorted(shape for shape in shapes if shape is not None)]


def _after(recording: Recording) -> list[str] | None:
    """For each dropout how many trained variables its input depends on, with its rate if that is known to be its."""
    places, rates = recording.dropout_after, recording.dropout_rates
    if not places or None in places:
        return None
    pairs = zip(places, rates, strict=True) if len(places) == len(rates) else ((place, None) for place in places)
    return [
        str(place) if rate is None else f"{place} ({rate:.6g})"
        for place, rate in sorted(pairs, key=lambda pair: (pair[0] or 0, pair[1] or 0.0))
    ]


def fields(original: Recording, migrated: Recording) -> tuple[Field, ...]:
    """Every setting that is compared, for the verdict and as rows of the report."""
    # Partitioned variables count one term per shard in TF1, so the counts only say whether there are any; the
    # sum of the terms is judged by L3.
    terms = float(original.regularizers), float(migrated.regularizers)
    return (
        *_optimizer(original, migrated),
        _each_rate(original, migrated),
        *_batches(original, migrated),
        Field(
            "regularisation terms",
            *terms,
            bool(terms[0]) == bool(terms[1]),
            ("a regulariser was dropped, or one was added that the original's loss never contained",),
            effect="L3",
        ),
        _halves(original, migrated),
        _updates(original, migrated),
        *_dropouts(original, migrated),
        _replicas(original, migrated),
    )


def _halves(original: Recording, migrated: Recording) -> Field:
    """In which half formats products are summed up. The numbers of another format are inside the noise of a half one,
    so that none of them says it.
    """
    ours, theirs = (None if one.halves is None else ", ".join(one.halves) or "none" for one in (original, migrated))
    equal = None if ours is None or theirs is None else ours == theirs
    causes = ("a cast was left out or added, or a mixed precision policy is not that of the original",)
    return Field("half precision of products", ours, theirs, equal, causes)


def _replicas(original: Recording, migrated: Recording) -> Field:
    """Where the whole batch of all replicas of a process is known, its size says more than their number."""
    ours, theirs = original.replicas, migrated.replicas
    together = original.replicas_of_batch != migrated.replicas_of_batch
    return Field("replicas", float(ours), float(theirs), ours == theirs or together)


_OPTIMIZER_SOURCE = ("update rule", "learning rate of each step")


def _divergence(field: Field, original: Recording, migrated: Recording, optimizer: frozenset[str]) -> Divergence:
    of_optimizer = field.name in optimizer
    key = "optimizer" if of_optimizer or field.name in _OPTIMIZER_SOURCE else None
    key = "input" if field.name.startswith(("batch size", "examples")) else key
    key = "loss" if field.name.startswith("regularisation") else key
    return Divergence(
        f"optimizer {field.name}" if of_optimizer and field.name != "optimizer" else field.name,
        _plain(field.original),
        _plain(field.migrated),
        step=field.step,
        causes=field.causes,
        original_source=original.sources.get(key) if key else None,
        migrated_source=migrated.sources.get(key) if key else None,
    )


def _plain(value: Setting) -> float | str | None:
    if isinstance(value, bool):
        return str(value)
    return float(value) if isinstance(value, int) else value


def judge(original: Recording, migrated: Recording) -> LevelResult:
    """Compares the optimizer and its clipping, the rate of each step, batch sizes, regularisers, updates of moving
    averages, dropouts and replicas. What cannot be known is a note.
    """
    rows = fields(original, migrated)
    optimizer = frozenset(f.name for f in _optimizer(original, migrated))
    different = [f for f in rows if f.same is False and not f.effect]
    for rate in [f for f in different if f.name == "learning_rate"]:
        # Said once: a rate that is computed has a number in its steps only.
        again = "learning_rate" if None in (rate.original, rate.migrated) else "learning rate of each step"
        different = [f for f in different if f.name != again]
    notes = tuple(f.remark for f in rows if f.same is None and f.remark)
    notes += tuple(
        f"{f.name}: {_shown(f.original)} in the original and {_shown(f.migrated)} in the migrated program; "
        f"{f.effect} compares what comes of it" + (f" (perhaps {f.causes[0]})" if f.causes else "")
        for f in rows
        if f.same is False and f.effect
    )
    if different:
        differences = tuple(_divergence(f, original, migrated, optimizer) for f in different)
        first = differences[0]
        return LevelResult(
            ID,
            TITLE,
            Status.DIFFERENT,
            f"{first.tensor} is {_shown(different[0].original)} in the original and {_shown(different[0].migrated)} "
            "in the migrated program" + (f", and {len(differences) - 1} more" if len(differences) > 1 else ""),
            Reason.SETTING_DIFFERS,
            differences=differences,
            notes=notes,
        )
    if original.optimizer is None:
        raise AssertionError("fields() reports two missing optimizers as a difference")
    rules = [family(one) for one in (original.optimizer, *original.optimizer.others)]
    return LevelResult(
        ID,
        TITLE,
        Status.EQUIVALENT,
        f"{', '.join(rules)}: {len(optimizer)} optimizer fields, the rate of every step, batch sizes "
        f"{list(_first_sizes(original))} and {counted(len(original.dropout_rates), 'dropout rate')} agree",
        notes=notes,
    )


def _shown(value: Setting) -> str:
    return f"{value:.9g}" if isinstance(value, float) else str(value)
