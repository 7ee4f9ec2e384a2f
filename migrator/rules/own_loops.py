"""Training loops of the new program's own, which `--loop custom` asks for."""

from __future__ import annotations

from migrator.findings import Severity
from migrator.rules.rule import Rule

RULES = (
    Rule(
        "TFM735",
        "a program that a loop of its own is not written for",
        Severity.MANUAL,
        """
`--loop custom` writes the steps of the training out: a `GradientTape`, the loss of each example averaged over those of
all replicas, `strategy.run` in a `tf.function`. That is done for native models on Keras 2 whose loss is that of labels
and one output, whose metrics read nothing else, and whose hooks are left out. Leave `--loop custom` out: `Model.fit`
trains the same.
""",
    ),
    Rule(
        "TFM736",
        "replicas divide the batches",
        Severity.REVIEW,
        """
An Estimator without a `train_distribute` trained on one device. On the replicas of `--strategy mirrored` its loop
divides each batch of the input function between them, so that a step computes what it did on one device: measured with
2 and 4 replicas, losses agree to 2e-6. Batch normalization is the exception: each replica takes the mean of its own
examples, of which a last batch that is smaller may leave it none. Make the batches as many times larger as there are
replicas to use these fully, and see to the learning rate.
""",
    ),
    Rule(
        "TFM737",
        "a strategy without a loop of its own",
        Severity.MANUAL,
        """
Loops of the program's own are written for one device and for `--strategy mirrored`. Workers in several processes and
parameter servers train by `Model.fit`, and so do programs whose RunConfig has a MirroredStrategy, where each replica
draws whole batches: leave `--loop custom` out.
""",
    ),
)
