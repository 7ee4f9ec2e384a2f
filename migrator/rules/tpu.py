"""Rules about TPUEstimator. The code is in program/tpu.py."""

from __future__ import annotations

from migrator.findings import Severity
from migrator.rules.rule import Rule

RULES = (
    Rule(
        "TFM144",
        "a TPUEstimator runs on the machine at hand",
        Severity.REVIEW,
        """
A program that chooses by a flag whether to use a TPU is carried over as it runs without one: a plain Keras program,
with the batch size of each mode in the `params` of its input functions, as TPUEstimator gave them. `TPUConfig` and the
cluster resolver are left out. To run it on a TPU, make the model under `tf.distribute.TPUStrategy(resolver).scope()`
and give `fit` the global batch size; `steps_per_execution` of `compile` takes the place of `iterations_per_loop`.
""",
    ),
    Rule(
        "TFM145",
        "a TPUEstimator that is not carried over",
        Severity.MANUAL,
        """
`use_tpu` is true by default: such a program runs on TPUs only, and cannot be compared here. Give the TPUEstimator
`use_tpu=False`, or a flag. A model_fn that reads `params["batch_size"]` is not carried over either, since the value
differs by mode: use `tf.shape(features)[0]`.
""",
    ),
    Rule(
        "TFM420",
        "a branch for TPUs",
        Severity.REVIEW,
        """
What stands behind `if use_tpu:` (a flag, a parameter, an attribute of such a name) and mentions what only TPUs have, a
`CrossShardOptimizer`, a `TPUClusterResolver`, a Scaffold, is left out: the program is carried over as it runs without a
TPU (TFM144). Branches on the same flag that would run anywhere stay.
""",
    ),
    Rule(
        "TFM423",
        "a host_call",
        Severity.REVIEW,
        """
`host_call` of a TPUEstimatorSpec writes summaries on the host of a TPU. It is left out, as summaries are (TFM801).
""",
    ),
)
