"""Rules about TPUEstimator. The code is in program/tpu.py and targets/tpu.py."""

from __future__ import annotations

import libcst as cst

from migrator.findings import Severity
from migrator.program.parsed import Blocked
from migrator.rules.rule import Example, Rule
from migrator.rules.site import CallRule, Site

RULES = (
    Rule(
        "TFM440",
        "a program that trains on a TPU",
        Severity.REVIEW,
        """
A TPUEstimator becomes a Keras model under `tf.distribute.TPUStrategy`: the resolver with the program's own arguments,
`tf.config.experimental_connect_to_cluster`, `tf.tpu.experimental.initialize_tpu_system`, then the strategy, in whose
scope the model is made. Where `use_tpu` is a flag, it decides between that and the default strategy when the program
runs. Batch sizes are those of all cores together, as a TPUEstimator's are, and `fit` divides the batches;
`iterations_per_loop` becomes `steps_per_execution` (1 without the TPU), and `fit` and `evaluate` get their number of
steps.

Left out are `CrossShardOptimizer` (gradients are summed over the cores, and each core's loss divided by their number),
`num_shards`, `initial_infeed_sleep_secs`, and `per_host_input_for_training`: the input function is called once, and
gives the batches of all cores. With `PER_SHARD` or `PER_HOST` it was called on every host or for every core, so that
the examples of one step came from several passes over the data. Hooks, as callbacks, hear of a TPU once in
`steps_per_execution` steps, as before.

What `tf-migrate verify` shows of such a program it shows on a stand-in: a MirroredStrategy over virtual CPUs. Look at
these on a TPU: shapes must be static (`drop_remainder=True` in `batch`), operations need a TPU kernel, and setting the
TPU up loses what was on it, so nothing of TensorFlow's should be made before. Checkpoints of a remote TPU are written
by the host; input files it reads itself must be where it can reach them (`gs://`).
""",
    ),
    Rule(
        "TFM144",
        "a TPUEstimator runs on the devices of its machine",
        Severity.REVIEW,
        """
A program that chooses by a flag whether to use a TPU is migrated as it runs without one: a plain Keras program, with
the batch size of each mode in the `params` of its input functions, as TPUEstimator gave them. `TPUConfig` and the
cluster resolver are left out. That is so with every `--strategy` but `auto` and `tpu`, and where something in the
program is unsupported on a TPU: the message says what. Mend that to have it train on a TPU (TFM440), or make the model
under `tf.distribute.TPUStrategy(resolver).scope()` yourself.
""",
    ),
    Rule(
        "TFM145",
        "an unsupported TPUEstimator",
        Severity.MANUAL,
        """
If the Estimator escapes the function that creates it, neither the TPU's strategy nor the batch size of each mode
reaches the training: create and train it in one function, or give it `use_tpu=False` and the batch sizes to the input
functions.

A model_fn may read `params["batch_size"]` where all modes that the program runs have the same: on a TPU that is the
batch of one core, so the new program divides it. Where they differ use `tf.shape(features)[0]`.
""",
    ),
    Rule(
        "TFM420",
        "a branch for TPUs",
        Severity.REVIEW,
        """
What stands behind `if use_tpu:` (a flag, a parameter, an attribute of such a name) and mentions what only TPUs have, a
`CrossShardOptimizer`, a `TPUClusterResolver`, a Scaffold, is left out. On a TPU the new program does the same
otherwise (TFM440): its strategy sums gradients, the driver makes the resolver, and weights from a checkpoint are given
to the model when it is made. Branches on the same flag that would run anywhere stay.
""",
    ),
    Rule(
        "TFM423",
        "a host_call",
        Severity.REVIEW,
        """
`host_call` of a TPUEstimatorSpec gives tensors of the TPU to a function on its host, in every step, to write summaries
or to print. It has no part in the training and no counterpart: under `TPUStrategy` the host is not in the step. It is
left out, as summaries are (TFM801). Give `tf.keras.callbacks.TensorBoard` to `fit` for loss and metrics, write a
callback for what it can read of the model (the rate: `model.optimizer.learning_rate`), or write `tf.summary` in a
`train_step`.
""",
    ),
    Rule(
        "TFM441",
        "one model split over several cores",
        Severity.MANUAL,
        """
`num_cores_per_replica` and `input_partition_dims` divide one model, or one example, between cores of a TPU.
`TPUStrategy` has `experimental_device_assignment` and `experimental_spmd_xla_partitioning` for this, with a training
loop of your own and a layout for each tensor: that is a decision about the model, not a spelling. Leave both out if
the model fits on one core.
""",
    ),
    Rule(
        "TFM442",
        "input that depends on the host",
        Severity.MANUAL,
        """
`InputPipelineConfig.BROADCAST` gives every host the same batch, and `params["context"]` tells an input function which
host or core it is called for. The new program calls it once, for the batches of all cores, and `fit` divides these.
Give `PER_HOST_V2` or `SLICED`, and leave the sharding by host to `tf.data` (`Dataset.shard` is not needed in one
process).
""",
    ),
    Rule(
        "TFM443",
        "TPU embeddings",
        Severity.MANUAL,
        """
`embedding_config_spec` and `tf.tpu.experimental.embedding_column` put embedding tables into the memory of the TPU's
host links, with an optimizer of their own (`AdagradParameters` and its like, which TensorFlow 2.21 does not have). The
counterpart is `tfrs.layers.embedding.TPUEmbedding` of tensorflow_recommenders, which wants another feature pipeline and
cannot be tried without a TPU. If the tables fit into a core, make the columns `tf.feature_column.embedding_column` and
leave `embedding_config_spec` out: such a program is supported.
""",
    ),
    Rule(
        "TFM444",
        "cores that train separately",
        Severity.REVIEW,
        """
No `CrossShardOptimizer` is in the program. Without it every core of a TPU trained on its own gradients, unless the
optimizer sums them itself. The new program sums them over the cores, which is what a program that runs on one core, or
on a CPU, did.
""",
    ),
    Rule(
        "TFM445",
        "unknown number of steps per execution",
        Severity.REVIEW,
        """
`iterations_per_loop` becomes `steps_per_execution` of `compile`. It cannot where it is a time ("60s"), where the
TPUConfig is made elsewhere, or where a lambda makes the model: then every step is an
execution of its own. The numbers are the same; a TPU waits for its host more often. Give `compile` a number if that is
too slow.
""",
    ),
    Rule(
        "TFM447",
        "K-FAC",
        Severity.MANUAL,
        """
The optimizers of `kfac` collect statistics of layers in a TensorFlow 1 graph, invert them every few steps, and sum over
the cores of a TPU by themselves. A Keras model has no graph for them to read. The same package has `Kfac` in
`kfac.python.keras.optimizers` for Keras models: build the model in Keras, give `compile` that optimizer, and compare.
""",
    ),
    Rule(
        "TFM448",
        "what a TPU would train differently",
        Severity.MANUAL,
        """
A `CrossShardOptimizer` divides the loss of every core by the number of cores, also one that is summed
(`Reduction.SUM`), which the new program does not: take the mean over the batch of a core. A branch `if use_tpu:` that
does more than make a resolver, a `CrossShardOptimizer` or a Scaffold (another loss, `bfloat16_scope`) is left out, so
that the new program would train otherwise on a TPU than the original. A program whose `use_tpu` is a flag comes out
without a TPU (TFM144).
""",
    ),
    Rule(
        "TFM449",
        "a CrossShardOptimizer that does not take the mean",
        Severity.MANUAL,
        """
`CrossShardOptimizer` takes the mean of the gradients of all cores, and so does the new program. With `reduction=SUM` it
adds them up: multiply the loss (or the learning rate, where that is the same) by the number of cores instead, and leave
`reduction` out.
""",
        (
            Example("tf.tpu.CrossShardOptimizer(optimizer)", "optimizer"),
            Example("tf.contrib.tpu.CrossShardOptimizer(optimizer, group_assignment=groups)", None),
        ),
    ),
    Rule(
        "TFM446",
        "unknown TPU",
        Severity.MANUAL,
        """
The new program makes one `TPUClusterResolver`, with the arguments that the old one made it with, where the Estimator
is made. Make it in the same file, once, from names that are known there (flags, parameters of the function,
constants).
""",
    ),
)


def _inner(site: Site) -> cst.BaseExpression:
    """A CrossShardOptimizer is the optimizer in it: a strategy sums the gradients of its replicas."""
    bound = site.arguments(("opt", "reduction", "name", "group_assignment"), "TFM449")
    for key in ("reduction", "group_assignment"):
        if key in bound and not (site.tensorflow(bound[key]) or "").endswith(".Reduction.MEAN"):
            raise Blocked("TFM449", site.original, f"`{key}` of this CrossShardOptimizer is unsupported")
    return bound["opt"]


CALLS: dict[str, CallRule] = dict.fromkeys(("tf.tpu.CrossShardOptimizer", "tf.contrib.tpu.CrossShardOptimizer"), _inner)
