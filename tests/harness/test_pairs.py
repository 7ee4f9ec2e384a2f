"""Pairs of programs that differ in form, and wrong ones of the same form: judged by what they compute."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from migrator.harness import session
from migrator.harness.telling import report_of
from tests.end_to_end.proving import told

pytestmark = pytest.mark.tensorflow
PAIRS = Path(__file__).parent / "pairs"


#: The verdict and the level that decides, by pair and by the program that is held against its original.
VERDICTS: dict[str, dict[str, tuple[str, str | None]]] = {
    # Pixels of another scale, one-hot rows for classes, an eager loop for an Estimator.
    "pixels": {"migrated": ("EQUIVALENT", None), "wrong_scale": ("DIFFERENT", "L3")},
    # GRUCell and LSTMCell against the layers of Keras, and features that have a name in one program only.
    "gru": {"migrated": ("EQUIVALENT", None), "wrong_forget_bias": ("DIFFERENT", "L3")},
    # An eager loop that counts its steps in Python, for its rate and for its end.
    "counted": {
        "migrated": ("EQUIVALENT", None),
        "wrong_end": ("DIFFERENT", "L2"),
        "wrong_rate": ("DIFFERENT", "L0b"),
    },
    # One model after another, each trained in a loop of the program's own.
    "folds": {
        "migrated": ("EQUIVALENT", None),
        "eager": ("EQUIVALENT", None),
        "wrong_third": ("DIFFERENT", "L8"),
        "wrong_count": ("DIFFERENT", "L8"),
    },
    # Models that are all evaluated after all were trained, each in a loop within a tf.function.
    "late": {"migrated": ("EQUIVALENT", None), "wrong_second": ("DIFFERENT", "L8")},
    # Gradients of parts of a batch, or of several batches, applied together; batches of a list, of arrays, and such as
    # a function asks for one after another.
    "together": {
        "parts": ("EQUIVALENT", None),
        "several": ("EQUIVALENT", None),
        "unrolled": ("EQUIVALENT", None),
        "lists": ("EQUIVALENT", None),
        "arrays": ("EQUIVALENT", None),
        "wrong_share": ("DIFFERENT", "L3"),
        "wrong_batches": ("DIFFERENT", "L0b"),
    },
    # Gradients of three batches, each of which is a step, added up in variables, and in a list.
    "summed": {
        "migrated": ("EQUIVALENT", None),
        "variables": ("EQUIVALENT", None),
        "wrong_count": ("DIFFERENT", "L4"),
        "wrong_sums": ("DIFFERENT", "L4"),
    },
    # Layers of one shape, made in another order.
    "towers": {"migrated": ("EQUIVALENT", None)},
    # A program that keeps its session (TFM199), and a rate 1 % higher.
    "sessions": {"migrated": ("EQUIVALENT", None), "wrong_rate": ("DIFFERENT", "L0b")},
    # Data of three generators without a seed, which both programs draw alike; an evaluation after data whose end
    # Keras does not know. An epsilon that is next to nothing beside the data.
    "drawn": {"migrated": ("EQUIVALENT", None), "wrong_epsilon": ("DIFFERENT", "L4b")},
    # `fit` begins data of unknown size twice, and reads the second order of a shuffle with a seed. Batches that are
    # shuffled are others. A callback keeps the averages of the weights, or a loop does.
    "passes": {
        "migrated": ("EQUIVALENT", None),
        "loop": ("EQUIVALENT", None),
        "wrong_averages": ("DIFFERENT", "L4"),
        "wrong_batches": ("DIFFERENT", "L2"),
        "wrong_order": ("DIFFERENT", "L2"),
    },
    # What Keras fits before the Estimator is no training that is compared. An evaluation on batches of a generator.
    "baseline": {
        "migrated": ("EQUIVALENT", None),
        "generator": ("EQUIVALENT", None),
        "wrong_generator": ("DIFFERENT", "L7"),
        "wrong_rate": ("DIFFERENT", "L0b"),
    },
    # A loop that evaluates averages of the weights, which it has copied into its model, for a network that reads them.
    "averaged": {
        "migrated": ("EQUIVALENT", None),
        "wrong_raw": ("DIFFERENT", "L7"),
        "wrong_half": ("DIFFERENT", "L7"),
    },
    # Weights that are divided by something of each batch, in batches of another order of the same shuffle.
    "weighted": {"migrated": ("EQUIVALENT", None), "wrong_mean": ("DIFFERENT", "L3")},
    # Classes that nce_loss draws; as many others.
    "sampled": {
        "migrated": ("EQUIVALENT", None),
        "wrong_count": ("DIFFERENT", "L3"),
    },
    # An AlphaDropout, which is noise to TensorFlow, against one that is written out.
    "selu": {
        "migrated": ("EQUIVALENT", None),
        "wrong_rate": ("DIFFERENT", "L3"),
        "wrong_dropout": ("DIFFERENT", "L3"),
    },
    # The queue of numpy_input_fn makes an order that no seed fixes: what both programs read without it is compared.
    "queue": {
        "migrated": ("EQUIVALENT", None),
        "arrays": ("EQUIVALENT", None),
        "wrong_buffer": ("DIFFERENT", "L2"),
        "wrong_labels": ("INCONCLUSIVE", None),
    },
    # A schedule that changes at a step that no run reaches; a clip that no batch comes near; train_on_batch,
    # and test_on_batch, which is not seen as an evaluation that is missing.
    "far": {
        "train_on_batch": ("EQUIVALENT", None),
        "wrong_boundary": ("DIFFERENT", "L4b"),
        "wrong_clip": ("DIFFERENT", "L4b"),
    },
    # A DropoutWrapper in batches of a fixed size, and a rate that changes at a step that no run reaches.
    "wrapped": {
        "migrated": ("EQUIVALENT", None),
        "wrong_rate": ("DIFFERENT", "L0b"),
        "wrong_boundary": ("DIFFERENT", "L4b"),
    },
    # A network that multiplies in bfloat16, by a custom getter and by a policy of Keras. Processors that have such
    # products themselves round otherwise than those that have not: a step shows the smoothing there, before L7 does.
    "half": {
        "migrated": ("EQUIVALENT", None),
        "wrong_format": ("DIFFERENT", "L0b"),
        "wrong_smoothing": ("DIFFERENT", "L4b or L7"),
    },
    # Updates that do not wait for the gradients that read what they change.
    "racing": {"migrated": ("EQUIVALENT", None), "wrong_epsilon": ("DIFFERENT", "L4")},
    # Arrays and generators for `fit`, and a model that knows its inputs by them only. At the end of a generator
    # Keras counts a step that it does not take, and Adam corrects its moments by that count.
    "arrays": {
        "migrated": ("EQUIVALENT", None),
        "generator": ("EQUIVALENT", None),
        "wrong_count": ("DIFFERENT", "L4"),
    },
    # A loss is multiplied, and its gradients are divided again; clipped before that; divided alone.
    "scaled": {
        "migrated": ("EQUIVALENT", None),
        "optimizer": ("EQUIVALENT", None),
        "wrong_clip": ("DIFFERENT", "L0b"),
        "wrong_scale": ("DIFFERENT", "L4"),
    },
}


@pytest.mark.parametrize("name", VERDICTS)
def test_what_programs_compute_decides(session_for: Callable[[int], session.Session], name: str) -> None:
    opened = session_for(2)
    evidence, versions = None, (opened.original.describe(), opened.migrated.describe())
    for migrated, wanted in VERDICTS[name].items():
        case = session.make_case(PAIRS / name / "original.py", PAIRS / name / f"{migrated}.py")
        findings = session.compare(case, lambda _: None, opened, evidence)
        # Runs that were given one order are no evidence for a program that has not been looked at.
        evidence = None if findings.case.one_order else findings.original
        made = report_of(findings, versions, 0.0, 0.0)
        decided = made.document["decided_by"] if made.status.value == "DIFFERENT" else None
        verdict, levels = wanted
        assert made.status.value == verdict, told(made.document)
        assert decided in ([None] if levels is None else levels.split(" or ")), told(made.document)


def test_noise_of_keras_3_is_that_of_the_original(session_for: Callable[[int], session.Session]) -> None:
    case = session.make_case(PAIRS / "selu" / "original.py", PAIRS / "selu" / "keras3.py", keras=3)
    made = session.verify(case, session=session_for(3))
    assert made.status.value == "EQUIVALENT", told(made.document)


def test_keras_in_a_graph_is_told_by_name(session_for: Callable[[int], session.Session]) -> None:
    opened = session_for(2)
    case = session.make_case(PAIRS / "arrays" / "in_graph.py", PAIRS / "arrays" / "migrated.py")
    made = session.verify(case, session=opened)
    assert made.status.value == "INCONCLUSIVE", told(made.document)
    assert "fit of a Keras model in TensorFlow 1's mode" in made.document["levels"][0]["summary"]
