"""The settings of a RunConfig: which count, which change nothing in the numbers, which cannot be carried over."""

from __future__ import annotations

from migrator.findings import Severity
from migrator.rules.rule import Rule

RUN_CONFIG = (
    "model_dir",
    "tf_random_seed",
    "save_summary_steps",
    "save_checkpoints_steps",
    "save_checkpoints_secs",
    "session_config",
    "keep_checkpoint_max",
    "keep_checkpoint_every_n_hours",
    "log_step_count_steps",
    "train_distribute",
    "device_fn",
    "protocol",
    "eval_distribute",
    "experimental_distribute",
    "experimental_max_worker_delay_secs",
    "session_creation_timeout_secs",
    "checkpoint_save_graph_def",
)
LEARN = (
    "master",
    "num_cores",
    "log_device_placement",
    "gpu_memory_fraction",
    "tf_random_seed",
    "save_summary_steps",
    "save_checkpoints_secs",
    "save_checkpoints_steps",
    "keep_checkpoint_max",
    "keep_checkpoint_every_n_hours",
    "log_step_count_steps",
    "protocol",
    "evaluation_master",
    "model_dir",
    "session_config",
    "session_creation_timeout_secs",
)
TPU = ("tpu_config", "evaluation_master", "master", "cluster", *RUN_CONFIG)

NO_EFFECT = (
    "save_summary_steps",
    "log_step_count_steps",
    "keep_checkpoint_max",
    "keep_checkpoint_every_n_hours",
    "save_checkpoints_secs",
    "experimental_max_worker_delay_secs",
    "session_creation_timeout_secs",
    "checkpoint_save_graph_def",
)
SESSION = (
    "session_config",
    "protocol",
    "num_cores",
    "log_device_placement",
    "gpu_memory_fraction",
    "tpu_config",
    "cluster",
    "master",
    "evaluation_master",
)
OF_TPU = ("tpu_config", "cluster", "master", "evaluation_master")
COLLECTIVE = ("device_fn", "experimental_distribute")
DISTRIBUTE = ("train_distribute", "eval_distribute", "remote_cluster")

RULES = (
    Rule(
        "TFM173",
        "eval_distribute is dropped",
        Severity.REVIEW,
        """
An Estimator could evaluate under another strategy than it trained under. A Keras model trains and evaluates under the
strategy that it was made in. With `eval_distribute`, every replica of one machine evaluates whole batches, as an
Estimator's does; other devices than those of `train_distribute` are refused (TFM704). The evaluator of a cluster
evaluates on one device: where the `eval_distribute` of a cluster had several, each took batches of its own, and `steps`
batches were as many for each of them.
""",
    ),
    Rule(
        "TFM178",
        "a RunConfig whose task is read",
        Severity.REVIEW,
        """
`print(config.task_type)`, `if config.is_chief:` and the like go on to work: a small class with these names, which
reads TF_CONFIG as a RunConfig does, takes the place of the RunConfig. What the RunConfig was given itself
(`config.model_dir`) is written where it is read. Refused (TFM108) is what would mean something else: a number of
workers or a task's number that is computed with (on parameter servers the chief does not train, and one process makes
the data of all workers), calls in such a line or branch that are not known to do no more than print, log, ask, or make
and remove files and folders, reads in functions, addresses of sessions, and all of it beside a `train_distribute`, with
which a RunConfig did not read TF_CONFIG.
""",
    ),
    Rule(
        "TFM140",
        "session settings are dropped",
        Severity.REVIEW,
        """
`session_config` (and `protocol`, and contrib's `num_cores`, `gpu_memory_fraction`, `log_device_placement`) say how a
session uses the machine: threads, memory of GPUs, placement. There are no sessions any more, so they are left out with
the lines that made them. The numbers do not depend on them beyond the order of sums. Where you need them, say the same
with `tf.config.threading.set_intra_op_parallelism_threads`, `tf.config.experimental.set_memory_growth`,
`tf.config.set_visible_devices`, `tf.config.set_soft_device_placement` or `tf.debugging.set_log_device_placement`,
before the first operation of the program.

contrib.learn's `master` and `evaluation_master` (`"grpc://..."`) named a server on which all of it ran, while the
program waited: the new program runs in its own process. To use other machines, start it on them with TF_CONFIG.
""",
    ),
)
