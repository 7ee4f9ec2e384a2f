"""Rules about whole programs: the Estimator, how it is driven, and where it runs. The code is in program/ and emit/."""

from migrator.findings import Severity
from migrator.rules.rule import Rule

RULES = (
    Rule(
        "TFM101",
        "an Estimator program becomes a Keras program",
        Severity.MIGRATED,
        """
The model_fn becomes a function that builds and compiles a Keras functional model; RunConfig, TrainSpec and EvalSpec
give their values to `Model.fit` and `Model.evaluate`. With `train_and_evaluate` the cluster in TF_CONFIG decides when
the program starts: parameter servers, mirrored workers, or one device.
""",
    ),
    Rule(
        "TFM102",
        "an unsupported Estimator",
        Severity.MANUAL,
        """
`tf.estimator` was deleted in TensorFlow 2.16. tf-migrate migrates programs around `tf.estimator.Estimator` with their
own model_fn. Canned estimators and `model_to_estimator` are unsupported.
""",
    ),
    Rule(
        "TFM103",
        "an unsupported use of the Estimator",
        Severity.MANUAL,
        """
Understood: `estimator = tf.estimator.Estimator(...)`, or one of several that an `if` with an `else` chooses from, and
in the same function `estimator.train`, `evaluate`, `predict` or `tf.estimator.train_and_evaluate(estimator, ...)`,
outside of `with tf.Graph()...`. A function of the file that is called in one place, and returns an Estimator or trains
the one it is given, is inlined into its caller. An Estimator that escapes (an object keeps it, functions return or take
it, in any file) becomes a `KerasEstimator`: a class next to the model that trains, evaluates, predicts and exports with
it, starting at the latest checkpoint; its driver stays as it is. So does a driver that cannot be rewritten for another
reason: a line that does more than train, a dataset that comes after the Estimator, checkpoints that have names. That
needs input functions that can be resolved. train_and_evaluate does what TF_CONFIG asks for, with an evaluator task;
exporters write when it is over. Where checkpoints may be asked for by their paths, each has the name of its step and
none is deleted. What cannot be resolved (an Estimator in a list or a dict, a method that the class does not have) is
reported; the bridge keeps such an Estimator as an object (leave `--style native` out).
""",
    ),
    Rule(
        "TFM104",
        "the model_fn was not found",
        Severity.MANUAL,
        """
The model_fn is looked for in the files given to tf-migrate: give the folder instead of the file when it lives in
another module. It may be a function, also one inside another function; a method (`self.model_fn`, `Net(3).model_fn`, a
static method); an object with `__call__`; what a call of a builder returns, `model_fn_builder(config)`, where the
builder ends in one `return` of it; `functools.partial(model_fn, units=3)` with keywords; a lambda that calls one of
these with what it is given; or another name, attribute or parameter for any of them. The new driver calls it in the
same way: `model_fn_builder(config)(inputs)`. `tf.contrib.estimator.replicate_model_fn(model_fn)` built the network for
every GPU, and its TowerOptimizer joined the gradients: take both out, and `--strategy mirrored --loop custom` divides
each batch among replicas as the towers did. Where a condition, the key of a dict (`MODELS[name]`) or the calls of the
function around choose between several model_fns, all of them are migrated; they have to take and predict alike.
""",
    ),
    Rule(
        "TFM105",
        "an unsupported form of model_fn",
        Severity.MANUAL,
        """
A model_fn takes `features, labels, mode` (and `params`, `config`) and returns an EstimatorSpec from every branch over
the mode. What it returns from inside a loop or from a condition on something else cannot be resolved.
""",
    ),
    Rule(
        "TFM106",
        "the mode is used for more than branches",
        Severity.MANUAL,
        """
`mode` may be tested (`mode == tf.estimator.ModeKeys.TRAIN`, `in`, `not`, a flag like `is_training = ...`), passed as
`training=` of a layer, and passed on to functions of the project that do the same. A name with different values in
different modes is unsupported.
""",
    ),
    Rule(
        "TFM107",
        "a setting without effect on the numbers is dropped",
        Severity.REVIEW,
        """
Settings for logging, summaries and the number of checkpoints kept have no counterpart in `Model.fit`. Use a TensorBoard
callback or `tf.train.CheckpointManager` where you need them. Checkpoints are not saved every so many seconds
(`save_checkpoints_secs`), only after training. Set `save_checkpoints_steps` instead.
""",
    ),
    Rule(
        "TFM108",
        "an unsupported RunConfig setting",
        Severity.MANUAL,
        """
`device_fn` and `experimental_distribute` change where the program runs. Remove a custom `device_fn`: a strategy places
the variables, and `--strategy central-storage` keeps them on the CPU. (One that is a plain
`tf.train.replica_device_setter(...)` is left out: a strategy does what it did, TFM140.) A DistributeConfig must be a
literal, without a `remote_cluster`: there one client drove servers that did not run the program, and `fit` has no such
client. Leave it out, start the program itself in every process of the cluster, and give each its TF_CONFIG (see
docs/cluster.md). The arguments of a RunConfig must be literal keywords of its call, or a one-line dict literal used
only by it (`RunConfig(**settings)`), not put into that dict by conditions. A RunConfig is resolved in place, or as
`config = tf.estimator.RunConfig(...)` next to the Estimator, with `.replace(...)` in either; not where a condition
chooses between two, or where it is used for something else too. What may be read of it is in TFM178.
""",
    ),
    Rule(
        "TFM109",
        "when checkpoints are written and evaluated",
        Severity.REVIEW,
        """
An Estimator writes checkpoints by steps or by seconds and evaluates what it finds, at most every `throttle_secs`.
A plain `train` writes a checkpoint after every `save_checkpoints_steps` batches and at its end, so that an interrupted
training goes on where the Estimator's would (without that setting: at the end only, not every 600 seconds, which is
said of trainings of 10,000 steps or more, or of a number that is not written down: what an interrupted one has done is
lost). In train_and_evaluate, where `save_checkpoints_steps` divides `max_steps`, each period becomes an epoch with a
checkpoint and an evaluation; otherwise both come once, at the end of the training. A name that a RunConfig, TrainSpec
or EvalSpec reads must keep its value until the spec is used: its value is read there.
""",
    ),
    Rule(
        "TFM111",
        "predictions",
        Severity.REVIEW,
        """
The predictions of the EstimatorSpec become a second Keras model over the same layers where the program calls
`predict`. Where it does not, they are left out.
""",
    ),
    Rule(
        "TFM112",
        "an evaluator task without a model_dir",
        Severity.REVIEW,
        """
The evaluator of a cluster reads the checkpoints that the chief writes to the `model_dir`. Without one every Estimator
task created its own temporary folder, and the evaluator waited for ever. Now it says so and ends. Give the Estimator a
`model_dir` on a file system that all tasks share.
""",
    ),
    Rule(
        "TFM113",
        "the model_fn is used outside an Estimator",
        Severity.MANUAL,
        """
The model_fn gets another signature and returns a Keras model. A call of it elsewhere (a test, a wrapper, a function
that it is passed to) would break: change or remove that line first, and give all files of the project together.
""",
    ),
    Rule(
        "TFM114",
        "a file is shared with a blocked program",
        Severity.MANUAL,
        """
A program that is blocked stays as it is and goes on running on TensorFlow 1.15, so what it imports must run there as
well. The other programs of its modules are migrated beside it where only names change in these modules, and in what it
takes of their main files (input functions, say) (TFM424). This one is not: the message says what would no longer be
what it was. The findings of the blocked program say what blocks it; once that is gone, all of them are migrated. To
migrate this one before, copy what the other needs to another folder, or give tf-migrate its files without those of the
blocked program, which then has to keep an old copy of them.
""",
    ),
    Rule(
        "TFM198",
        "an imported file was not given",
        Severity.REVIEW,
        """
A migrated program imports a file, beside it or of its own package, that uses TensorFlow and that tf-migrate was not
given. That file stays as it is: names that TensorFlow 2 lacks raise an error there, and layers that it makes in
TensorFlow 1's way are no weights of the new model. Give tf-migrate the folder, so that all files change together.
""",
    ),
    Rule(
        "TFM115",
        "steps that may be None",
        Severity.REVIEW,
        """
`steps` or `max_steps` is a flag whose default is None, or a name that is None somewhere. An Estimator then trained to
the end of its data. `fit` needs its steps as a number, and a program that is run without one fails at once with a
TypeError or ValueError: give the flag a number. The loop of `--loop custom` takes None as the Estimator did.
""",
    ),
    Rule(
        "TFM120",
        "a helper function that cannot be inlined",
        Severity.MANUAL,
        """
A function that the model_fn calls with the labels, or that makes losses, metrics, train_op or EstimatorSpec, is
replaced by `compile` in the new program. It is inlined at the call, and removed if nothing else calls it. That needs a
function of plain parameters, without decorators, that returns at its end or from branches of an `if`, not from inside a
loop.
""",
    ),
    Rule(
        "TFM121",
        "a helper function that reads names with another meaning at its call",
        Severity.MANUAL,
        """
A helper function is inlined at its call. The names that it reads must mean there what they mean in its own file.
tf-migrate adds an import where that is safe; it is not where the file of the model_fn uses the name for something else,
where the other file assigns it more than once, and where the import would be circular. Then import the named module or
name in the file of the model_fn yourself, or rename what hides it.
""",
    ),
    Rule(
        "TFM126",
        "an EstimatorSpec for predictions that TensorFlow 1 rejects",
        Severity.REVIEW,
        """
`tf.estimator.EstimatorSpec(labels=labels, predictions=predictions)` has an argument that it does not know: TensorFlow 1
raises TypeError when it gets there. Where only predictions get there and the program makes none, nothing is lost: the
branch is left out. In a program that predicts it is refused (TFM111).
""",
    ),
    Rule(
        "TFM127",
        "a line that reports the mode or the graph is dropped",
        Severity.REVIEW,
        """
TensorFlow 1 called the model_fn anew for every training, evaluation and prediction, and a line like `print("building
for", mode)` reported which of them it was. The Keras model is built once, for all of them, so there is no mode to
report. Print it where `fit`, `evaluate` or `predict` are called, if you need it.

Lines that print or log the labels, the loss, the train_op, the global step or the variables of the graph are left out,
too, with what was computed for them alone: `print(loss)` and `for v in tf.trainable_variables(): print(v.name)` told
what the graph is made of, once for each mode, and no values. `model.summary()` prints the weights and their shapes. So
are lines that print or log anything in some modes only: `print("training")` in the branch of TRAIN; and what writes the
graph to a file (`tf.train.write_graph`): there is no such graph.
""",
    ),
    Rule(
        "TFM129",
        "the device of a part of the network is dropped",
        Severity.REVIEW,
        """
`with tf.device("/gpu:0"):` around lines of a model_fn said where they run. The strategy of the new program says that
now: what is in the block stays, the block goes. No number depends on it. To have one GPU only, call
`tf.config.set_visible_devices` first; to keep large tables away from it, take parameter servers. The bridge keeps the
block.
""",
    ),
    Rule(
        "TFM122",
        "a network helper function that takes the mode",
        Severity.MANUAL,
        """
A function that builds a part of the network stays a function. A parameter that only tells it the mode (`is_training`,
`mode`: passed as `training=` to layers, asked by `if is_training: net = tf.nn.dropout(net, 0.5)`, passed on to
functions that do the same) goes, and with it the argument in every call. All calls must say the same, and no other
code may call the function: make two functions of it.
""",
    ),
    Rule(
        "TFM181",
        "an unsupported subclass of Estimator",
        Severity.MANUAL,
        """
A subclass of Estimator has a native form only if it does nothing but configure its Estimators: one `__init__` that ends
in `super().__init__(...)`, and no code that checks for the class. The bridge keeps other classes, with its own
Estimator as the base: leave `--style native` out.
""",
    ),
    Rule(
        "TFM182",
        "a program for Ascend NPUs",
        Severity.MANUAL,
        """
`npu_bridge` is Huawei's adapter, which runs graphs of TensorFlow 1.15 on Ascend NPUs. What its RunConfig, hooks,
optimizers, loss scaling and operators compute is not known to tf-migrate, no TensorFlow 2.21 has them, and with several
NPUs (`RANK_SIZE`) it distributes the training itself. Migrate the program as it was before it was ported to NPUs; or
take the adapter out first: `npu_run_config_init(run_config=config)` is `config`, `NPURunConfig(...)` a
`tf.estimator.RunConfig(...)`, `npu_hooks_append()` no hooks, `npu_tf_optimizer(optimizer)` and
`NPUDistributedOptimizer(optimizer)` are the optimizer, `npu_ops.dropout` and `npu_unary_ops.gelu` functions of
`tf.nn`, and `from npu_bridge.npu_init import *` goes.
""",
    ),
    Rule(
        "TFM703",
        "a partitioner on one device",
        Severity.REVIEW,
        """
The program uses a partitioner, but was migrated for a strategy without parameter servers, where variables are not
split. The partitioner is left out; the numbers do not change.
""",
    ),
    Rule(
        "TFM704",
        "an unsupported distribution strategy",
        Severity.MANUAL,
        """
`RunConfig(train_distribute=...)` may be one of TensorFlow's strategies, also of tf.contrib, made in the RunConfig or
behind a name that the program gives one value, or a choice of such for the devices of one machine (TFM726). A choice
may not be between one machine and a cluster, and a name that may be None is for the RunConfig only. `eval_distribute`
needs a `train_distribute` beside it that makes the same devices (measured: `steps=10` of batches of 32, training on two
devices and evaluating on one, are 320 examples; both replicas of a Keras model would take 640). A dataset that is split
between replicas (`auto_shard_dataset`), and a model_fn whose batches do not each count as a step, are for one device. A
program that trained on one device can divide its batches among replicas: `--strategy mirrored --loop custom`.

On a cluster `train_and_evaluate` is supported, and with `--strategy parameter-server` or `multi-worker-mirrored` plain
`train` and `evaluate`. The Estimator trained on one device then: with a TF_CONFIG it did not take a plain `train` under
a MultiWorkerMirroredStrategy ("Only `STANDALONE_CLIENT` mode is supported", TensorFlow 2.15.1), and with parameter
servers the program had to start its own `tf.train.Server`. Predictions and exports are for one device, and with `auto`
so is a plain `train`. A TPUStrategy of a RunConfig is unsupported: leave it and its resolver out and take `--strategy
tpu`, which asks for the TPU itself.
""",
    ),
    Rule(
        "TFM753",
        "evaluation on the coordinator",
        Severity.REVIEW,
        """
With `--evaluate-on coordinator` the coordinator of a cluster (the chief; of mirrored workers without one the first)
evaluates after every period, or at the end of a training without periods, while the others wait: wherever an evaluator
task would find a new checkpoint. It does so on one device, with a copy of the model that has the weights of that step,
so each example counts once, and the numbers are those of an evaluator on the same checkpoint. No `model_dir` is needed
for it. An evaluator task in TF_CONFIG says so and ends. In a bridge, where `EVALUATES_ON` in the support file says who
evaluates, the chief evaluates the checkpoints themselves.

Refused natively are exporters of the EvalSpec, Keras models of the program's own (`model_to_estimator`), clusters that
the program makes by hand, and `--loop custom` on mirrored workers.
""",
    ),
    Rule(
        "TFM754",
        "parameter servers in the program's own process",
        Severity.REVIEW,
        """
With `--servers worker=2,ps=1` the new program starts so many servers in its own process where TF_CONFIG names no
cluster, and coordinates them, so that plain `python train.py` trains on parameter servers. With a TF_CONFIG nothing
changes. There is no evaluator in such a cluster: the coordinator evaluates (TFM753). In a bridge the support file does
so when it is imported (`SERVERS` in it says how many), and sets TF_CONFIG, for the program to find.

All servers share the threads and the memory of one process: it shows that the program runs on parameter servers, and is
no faster for it. Programs for other strategies, or that make their cluster by hand, start none.
""",
    ),
    Rule(
        "TFM706",
        "the coordinator does not train",
        Severity.REVIEW,
        """
In a TensorFlow 1 parameter server cluster the chief trains like a worker. In TensorFlow 2 it only coordinates: with
the same cluster one process fewer trains. Give the cluster one worker more for the same throughput. The number of
steps is global in both.

Under a ParameterServerStrategy of the RunConfig, TensorFlow 1 took the first worker for the chief where TF_CONFIG named
none. The new program raises an error there (every worker would wait for a coordinator for ever): call one worker
`"chief"`, with index 0, in the TF_CONFIG of all tasks, and count the others from 0.
""",
    ),
    Rule(
        "TFM801",
        "summaries",
        Severity.REVIEW,
        """
`tf.summary` calls in a model_fn, or on a line of their own in what it calls, are left out, and so are loops, conditions
and functions that do nothing but compute and write them (histograms of all gradients). `Model.fit` reports loss and
metrics to callbacks; `tf.keras.callbacks.TensorBoard` writes them.
""",
    ),
)
