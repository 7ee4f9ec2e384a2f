"""Programs that train by hand in a session: what of them is known, and findings about the rest."""

from __future__ import annotations

from migrator.findings import Severity
from migrator.names.bare import says
from migrator.rules.rule import Rule

SESSION = "tf.train.MonitoredTrainingSession"
PLAIN = "tf.Session"
SUPERVISOR = "tf.train.Supervisor"
PLAIN_PARAMETERS = ("target", "graph", "config")
SUPERVISOR_PARAMETERS = (
    *("graph", "ready_op", "ready_for_local_init_op", "is_chief", "init_op", "init_feed_dict", "local_init_op"),
    *("logdir", "summary_op", "saver", "global_step", "save_summaries_secs", "save_model_secs"),
    *("recovery_wait_secs", "stop_grace_secs", "checkpoint_basename", "session_manager", "summary_writer", "init_fn"),
    "local_init_run_options",
)
#: Of a Supervisor: a graph, a readiness or an initialization of the program's own.
SUPERVISOR_NOT_CARRIED = (
    *("graph", "ready_op", "ready_for_local_init_op", "init_feed_dict", "session_manager", "init_fn"),
    "checkpoint_basename",
)
SUPERVISOR_INITIALIZERS = ("init_op", "local_init_op")
MANAGED_PARAMETERS = ("master", "config", "start_standard_services", "close_summary_writer")
#: What initializes variables, which Keras does by itself.
INITIALIZERS = (
    *("tf.global_variables_initializer", "tf.local_variables_initializer", "tf.tables_initializer"),
    *("tf.initialize_all_variables", "tf.initialize_local_variables"),
)
PARAMETERS = (
    *("master", "is_chief", "checkpoint_dir", "scaffold", "hooks", "chief_only_hooks", "save_checkpoint_secs"),
    *("save_summaries_steps", "save_summaries_secs", "config", "stop_grace_period_secs", "log_step_count_steps"),
    *("max_wait_secs", "save_checkpoint_steps", "summary_dir", "save_graph_def"),
)
#: Arguments of a session that are settings of a RunConfig under another name.
CONFIG = {"config": "session_config", "save_checkpoint_steps": "save_checkpoints_steps"}
SERVER = ("server_or_cluster_def", "job_name", "task_index", "protocol", "config", "start")
SYNCHRONOUS = (
    *("opt", "replicas_to_aggregate", "total_num_replicas", "variable_averages", "variables_to_average"),
    *("use_locking", "name"),
)
#: What a program makes for its session only.
LEFT_OUT = (*INITIALIZERS, "tf.train.Saver", "tf.summary.merge_all", "tf.reset_default_graph")
#: What a loop may call between its steps without an effect on the training.
TELLING = (
    "print",
    "len",
    "str",
    "int",
    "float",
    "round",
    "format",
    "time.time",
    "datetime.now",
    "datetime.datetime.now",
)
TELLING_METHODS = ("format", "info", "debug", "warning", "strftime", "isoformat", "flush", "write", "perf_counter")
_DRIVER = (
    *("tf.train.ClusterSpec", "tf.train.Server", "tf.train.replica_device_setter", "tf.ConfigProto", "tf.GPUOptions"),
    *("tf.gfile.", "tf.io.gfile.", "tf.logging.", "tf.app.", "tf.flags.", "tf.data.", "tf.estimator.", "tf.device"),
    *("tf.set_random_seed", "tf.random.set_random_seed", "tf.compat.v1.set_random_seed"),
    *("tf.compat.v1.logging.", "tf.compat.v1.app.", "tf.contrib.data.", "tf.test."),
)
_VARIABLES = (
    "layers.",
    "losses.",
    "get_variable",
    "Variable",
    "keras.",
    "contrib.",
    "slim.",
    "train.",
    "add_to_collection",
)


def may_train(text: str) -> bool:
    """Whether a file may train in a session of its own."""
    made = ("MonitoredTrainingSession(", ".Session(", ".Supervisor(")
    return says(text, *made) and says(text, "minimize(", "apply_gradients(")


def is_graph(name: str) -> bool:
    """Whether a symbol of TensorFlow's makes something in the graph of a model."""
    return not name.endswith("Hook") and not name.startswith(_DRIVER)


def makes_variables(name: str) -> bool:
    """Whether a call of a symbol may do more than compute: make variables, or add to a collection."""
    return name.removeprefix("tf.").startswith(_VARIABLES)


RULES = (
    Rule(
        "TFM760",
        "an unsupported custom training loop",
        Severity.MANUAL,
        """
A custom training loop is supported where it builds its graph and trains in one function (or at the top of a script):
`with tf.train.MonitoredTrainingSession(...) as session:` around one loop (`while not session.should_stop():`, also with
`and step < n` of the fetched global step, or `for ... in range(n):`), which runs one train_op and prints what it
fetched. The batch comes from one iterator. What is computed from it becomes the function that makes the model, what
makes the dataset an input function, and the loop `Model.fit`. The named line does something else.
""",
    ),
    Rule(
        "TFM761",
        "the batches of a custom training loop",
        Severity.MANUAL,
        """
`x, y = dataset.make_one_shot_iterator().get_next()` (also of an input function of the file) is supported. Batches that
are fed to placeholders, other iterators and queues are not: make a `tf.data.Dataset` of the arrays or of a generator
(`tf.data.Dataset.from_generator`), and take features and labels from its iterator.
""",
    ),
    Rule(
        "TFM762",
        "a cluster that the program creates",
        Severity.MANUAL,
        """
Understood is between-graph training: `tf.train.ClusterSpec({"ps": ..., "worker": ...})`, a `tf.train.Server` with its
job and index, `if job_name == "ps": server.join()`, and the graph under `tf.train.replica_device_setter`, also where
`main` makes the server and calls one function that trains (`train(server, cluster)`). It becomes
ParameterServerStrategy. The hosts stay those of the command line; the first worker is the coordinator now and does not
train: give the new program one worker more than the old one, and at least two. A `ps_strategy` has no counterpart:
variables go to the servers in turn. Steps are counted over all workers, by a StopAtStepHook.
""",
    ),
    Rule(
        "TFM763",
        "what a training loop printed",
        Severity.REVIEW,
        """
`fit` prints the loss and the metrics of its steps; what the loop fetched and printed beside is left out. A
`tf.keras.callbacks.LambdaCallback` can print more.
""",
    ),
    Rule(
        "TFM764",
        "SyncReplicasOptimizer",
        Severity.MANUAL,
        """
Where as many replicas are aggregated as there are workers, the workers train in step, and the program becomes
MultiWorkerMirroredStrategy: every worker holds the variables, and `ps` tasks end at once (leave them out). With fewer
(backup workers), whichever gradients come first are used and the others thrown away, which no strategy of TensorFlow 2
does: aggregate all of them. `variable_averages` have no counterpart either.

A difference remains at the start. SyncReplicasOptimizer begins with a token for each worker, so that every worker
computes its second gradient from the values of the first, which is thrown away as stale: one batch of each worker is
read for nothing. Mirrored workers use every batch.
""",
    ),
    Rule(
        "TFM766",
        "towers on several GPUs",
        Severity.MANUAL,
        """
A loop that builds the same network on every GPU (`for i in range(n): with tf.device("/gpu:%d" % i):`), appends what
`compute_gradients` gives to a list, and applies the mean once, becomes one network on the whole batch; the replicas of
a MirroredStrategy divide that batch again, in a custom training loop (`tf-migrate rules TFM736`). Understood are the
parts of a `tf.split` into as many as there are towers, and batches that each tower draws from one iterator, which
become one batch. All towers have to share their variables: `variable_scope(..., reuse=i > 0)`, `reuse=tf.AUTO_REUSE`
inside the loop, or `reuse_variables()`. The named line does something else.
""",
    ),
    Rule(
        "TFM767",
        "how tower gradients are averaged",
        Severity.MANUAL,
        """
The function that the towers' gradients are given to has to be in this file and to return, for each variable, the mean
of its gradients and the variable: `for pairs in zip(*towers)` with `tf.stack` or `tf.concat` and `tf.reduce_mean`
along the first axis, or `tf.add_n` divided by their number. Sums, weights, clipping in between and gradients that are
left out are another training: change the gradients of all towers together, behind their mean.
""",
    ),
    Rule(
        "TFM768",
        "the loss of a tower",
        Severity.MANUAL,
        """
The mean of the towers' losses is the loss of the whole batch if it is a mean over examples: a loss of `tf.losses`
without weights and reduction, or `tf.reduce_mean` of the losses of examples, plus
`tf.losses.get_regularization_loss()`, which is the same in every tower. A sum, a mean over weights that are not zero,
and `get_total_loss` (which adds up the losses of the towers before) give another loss on the whole batch.
""",
    ),
    Rule(
        "TFM769",
        "towers whose examples interact",
        Severity.MANUAL,
        """
Batch normalization and other operations over the examples of a batch see those of one tower only, and the moving
averages of a batch normalization are those of one tower or of all in turn: the whole batch gives other numbers, and so
does a strategy. Functions of other files are not looked into: put the network into this one.
""",
    ),
    Rule(
        "TFM732",
        "batches fed through feed_dict",
        Severity.MANUAL,
        """
A loop that feeds its batches to placeholders becomes a generator of them: what makes a batch stays Python code, in its
order, and `yield` takes the place of `session.run(train_op, feed_dict={x: ..., y: ...})`. Understood are two
placeholders whose shapes are written out, features and labels, and numbers that are the same in every step, in a dict
at the call; loops over ranges and other sequences, and lines that only print what was fetched. The named line does
something else.
""",
    ),
    Rule(
        "TFM733",
        "unsupported sessions",
        Severity.MANUAL,
        """
A plain `with tf.Session() as session:` that initializes all variables and trains in one loop is supported, and so is
`with supervisor.managed_session(...) as session:` of a `tf.train.Supervisor`, whose loop asks it whether to stop,
counts (`for ... in range(n)`), or ends by the global step that it fetched (`while step < n`, `if step >= n: break`):
that becomes a StopAtStepHook. What the session is asked after the training (an accuracy, say), a graph or a target of
its own, and an `init_fn` or an `init_op` that does more than initialize are not: evaluate in a program of its own.

The step that is fetched beside the train_op is read before or after it counts. TensorFlow 1.15.5 read it after, in all
of eight programs that were tried, which makes n steps; 2.15.1 before in six of them, which makes one step more.
""",
    ),
    Rule(
        "TFM730",
        "towers on one device",
        Severity.REVIEW,
        """
The program used several GPUs. Its training is the same on one device that takes the batches of all towers at once; for
the replicas of a MirroredStrategy a custom loop would be needed, and the finding says what is in its way.
""",
    ),
    Rule(
        "TFM765",
        "data or a model that differ between workers",
        Severity.MANUAL,
        """
On parameter servers the coordinator traces the input function and makes the model once, for all workers: what reads
the index of the task (`dataset.shard(n, task_index)`, a seed of its own, also from TF_CONFIG or a flag like
`FLAGS.task_index`) would be the same for all of them, which is another training: measured, two workers that read every
second example of eight both read the same four, and the other four were never seen. Shuffle with seeds that the tasks
do not choose, and let every worker read all data. `input_context.input_pipeline_id`, by which an Estimator with a
ParameterServerStrategy divided its data, is the same case: TensorFlow 2 says that it is 0 of 1 in every worker. The
number of workers, printing, and asking for an `evaluator` or a `ps` are the same for all workers, and stay.

Without `ps` tasks every worker makes its own data, and such a program is right as it is. Say so with
`--strategy multi-worker-mirrored`, or `--strategy one-device` for one process.
""",
    ),
)
