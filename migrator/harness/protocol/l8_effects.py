"""What a training does beside its steps, as a list for both programs: when it saves, evaluates and exports, what it
tells TensorBoard, and which of its callbacks and hooks never did anything.
"""

from __future__ import annotations

from collections.abc import Sequence

from migrator.harness.protocol import l2_data
from migrator.harness.protocol.results import Artefact
from migrator.harness.recording import Recording

SAME, DIFFERENT, MISSING, NOT_COMPARED = "same", "different", "missing", "not compared"
#: What every Estimator writes by itself.
_OF_ESTIMATORS = ("loss", "loss_1", "global_step/sec")
#: Numbers of summaries are compared up to this step, before rounding has grown in a training, or at the first that both
#: have; and are the same within this share.
_EARLY, _CLOSE = 10, 1e-3
#: The folder that stands for the temporary one of an Estimator without a `model_dir`.
_UNNAMED = "/model/unnamed-"
_LISTED = 6


def compare(original: Recording, migrated: Recording) -> list[Artefact]:
    """An artefact for each kind of effect that the original has, and for each callback that never acted. None of them
    says that the programs train another model.
    """
    found = []
    if len(original.participation) == 1:
        # Trainers of a cluster count their own steps, and another one of them may save.
        found += _cadence("checkpoints", "writes no checkpoint", saved(original), saved(migrated))
        found += _held(original, migrated)
        exports = [_steps(one, "export") for one in (original, migrated)]
        found += _cadence("times of exports", "exports nothing", *exports)
    evaluated = [sorted({e.step for e in one.evaluations if e.step is not None}) for one in (original, migrated)]
    found += _cadence("times of evaluations", "evaluates nothing", *evaluated)
    found += _summaries(original, migrated)
    for whose, one in (("original", original), ("migrated program", migrated)):
        found += _callbacks(whose, one)
    return found


def _steps(recording: Recording, kind: str) -> list[int]:
    return sorted({one.step for one in recording.effects if one.kind == kind})


def saved(recording: Recording) -> list[int]:
    """The steps after which a training saved its weights, at a place of its own."""
    found = {one.step for one in recording.effects if one.kind == "checkpoint" and _UNNAMED not in one.name}
    return sorted(found - {0})


def _held(original: Recording, migrated: Recording) -> list[Artefact]:
    """What the checkpoints of the migrated program hold, where the original leaves any behind."""
    name = "what checkpoints hold"
    held = [int(one.name) for one in migrated.effects if one.kind == "holds"]
    lacking = sorted({one.name for one in migrated.effects if one.kind == "lacks"})
    if not saved(original) or not held:
        return []
    if not lacking:
        return [Artefact(name, SAME, f"all {held[-1]} weights as they were then")]
    return [Artefact(name, MISSING, f"those of the migrated program lack the values of {', '.join(lacking)}")]


def listed(steps: Sequence[int]) -> str:
    """Steps in words: "20, 40 and 60"; of many the first, how many there are, and the last."""
    if len(steps) > _LISTED:
        return f"{', '.join(map(str, steps[:3]))} ... {steps[-1]} ({len(steps)} times)"
    told = list(map(str, steps))
    return " and ".join([", ".join(told[:-1]), told[-1]]) if len(told) > 1 else "".join(told)


def _cadence(name: str, nothing: str, ours: Sequence[int], theirs: Sequence[int]) -> list[Artefact]:
    if not ours:
        return []
    if list(ours) == list(theirs):
        return [Artefact(name, SAME, f"after steps {listed(ours)}")]
    other = f"after steps {listed(theirs)} in the migrated program" if theirs else f"the migrated program {nothing}"
    return [Artefact(name, MISSING, f"after steps {listed(ours)} in the original; {other}")]


def _summaries(original: Recording, migrated: Recording) -> list[Artefact]:
    tags = sorted(set(original.summaries) - set(_OF_ESTIMATORS))
    if not tags:
        return []
    absent = [tag for tag in tags if tag not in migrated.summaries]
    if absent:
        found = [Artefact("tags of summaries", MISSING, f"the migrated program writes no {', '.join(absent)}")]
    else:
        found = [Artefact("tags of summaries", SAME, ", ".join(tags))]
    return found + _numbers(original, migrated, [tag for tag in tags if tag not in absent])


def _numbers(original: Recording, migrated: Recording, tags: Sequence[str]) -> list[Artefact]:
    """Whether the scalars are the same, where both programs read the same batches."""
    name = "numbers of summaries"
    if not l2_data.same_sequences(original, migrated):
        return []
    compared, apart = [], []
    for tag in tags:
        ours, theirs = ({k: v for k, v in one.summaries[tag].items() if v is not None} for one in (original, migrated))
        # TensorFlow 1 may count a step before it writes its summaries, or after that.
        shift = max((0, -1, 1), key=lambda by: len({step + by for step in ours} & theirs.keys()))
        common = sorted(step for step in ours if step + shift in theirs)
        for step in [one for one in common if one <= _EARLY] or common[:1]:
            compared.append(tag)
            a, b = ours[step], theirs[step + shift]
            if abs(a - b) > _CLOSE * max(abs(a), abs(b)):
                apart.append(f"{tag} is {a:.6g} at step {step}, and {b:.6g} in the migrated program")
                break
    if apart:
        return [Artefact(name, MISSING, "; ".join(apart))]
    return [Artefact(name, SAME, ", ".join(dict.fromkeys(compared)))] if compared else []


def _callbacks(whose: str, recording: Recording) -> list[Artefact]:
    acted = {one.name for one in recording.effects if one.kind == "acted"}
    names = [one.name for one in recording.effects if one.kind == "callback"]
    last = max((step.number for step in recording.steps), default=0)
    return [
        Artefact(
            f"{name} of the {whose}",
            NOT_COMPARED,
            f"it ended no training and set no rate within {last} steps; when it would is not shown",
        )
        for name in dict.fromkeys(names)
        if name not in acted
    ]
