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
2 and 4 replicas, losses agree to 2e-6. Make the batches as many times larger as there are
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
    Rule(
        "TFM738",
        "batch normalization over all replicas",
        Severity.REVIEW,
        """
Where replicas divide the batches of one device, a batch normalization has to take the mean and the variance of the
whole batch, not of each replica's part: `synchronized=True` adds them up over the replicas. Measured on TensorFlow 2.21
with two replicas and batches of 8 (the last one of 5), seven steps: losses as on one device to 1e-7 (5e-6 where the
mean of the inputs is ten times their deviation), without it 32 % off. The moving variance of images is that of n
values, where one device keeps n / (n - 1) times that: 2.5e-4 for 8 images of 6 by 6, less for larger ones.
""",
    ),
)
