"""Several replicas on one machine: what an Estimator's strategy computes, and what has no Keras form."""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from migrator.findings import Severity
from migrator.program.calls import calls_in, is_none
from migrator.program.parsed import Blocked, ParsedFile
from migrator.rules.rule import Rule

_COLLECTED = ("get_regularization_loss", "get_total_loss", "REGULARIZATION_LOSSES", "optimize_loss")

RULES = (
    Rule(
        "TFM707",
        "layer regularizers with several replicas",
        Severity.MANUAL,
        """
Under a MirroredStrategy an Estimator counts the terms of regularizers once, not once per replica, and then divides them
by the number of replicas with the rest of the loss: on two devices they weigh half of what the program says (measured
on TensorFlow 1.15.5 and 2.15.1, with two replicas and a weight of 0.1: two steps move a kernel by 2.0e-4, not 4.0e-4;
on 2.15.1 those of get_variable count in full). Keras counts them in full. Choose what you mean: add the terms to the
loss yourself, `0.1 * tf.nn.l2_loss(v)` for the variables in `tf.trainable_variables()`, which counts in full in both,
or migrate for `--strategy one-device`. With `--loop custom` the regularizers of layers come out as they weigh there:
the gradients have the share of one replica, the loss all of it, as does an evaluation, which is one device's without
`eval_distribute`.
""",
    ),
    Rule(
        "TFM708",
        "tf.gradients with several replicas",
        Severity.MANUAL,
        """
An optimizer's `minimize` and `compute_gradients` divide the loss by the number of replicas when the Estimator has a
strategy; `tf.gradients` does not, so the sum of the replicas' gradients is applied (measured with two replicas: steps
twice as long). Keras divides. Take `optimizer.compute_gradients(loss)`, and multiply the learning rate by the number of
replicas if that is how it was tuned.
""",
    ),
    Rule(
        "TFM720",
        "strategy settings that are dropped",
        Severity.REVIEW,
        """
How a strategy sums up gradients (`cross_device_ops` of tf.contrib, `cross_tower_ops`, `communication`) changes the
order of the sums, not what they mean; TensorFlow 2 chooses for itself. `num_gpus_per_worker` is left out because a
worker takes all the GPUs that it sees: hide others with `tf.config.set_visible_devices`. A `cluster_resolver` is left
out because the new program reads TF_CONFIG with one of its own.
""",
    ),
    Rule(
        "TFM759",
        "mirrored workers without a cluster",
        Severity.REVIEW,
        """
Where TF_CONFIG has no cluster, a MultiWorkerMirroredStrategy of a RunConfig mirrors the variables on all GPUs of the
machine (that of tf.contrib on `num_gpus_per_worker` of them), and each takes batches of its own. The new program trains
on one device there, on one batch in a step, and evaluates on it. Without GPUs, or with one, that is the same. With
several, migrate for `--strategy mirrored`; or give the program a cluster of one worker, which trains on all its GPUs,
and an evaluator beside it: `TF_CONFIG={"cluster": {"worker": ["localhost:2222"]}, "task": {"type": "worker", "index":
0}}`.
""",
    ),
    Rule(
        "TFM726",
        "a program that chooses between a strategy and none",
        Severity.REVIEW,
        """
A strategy for a RunConfig may be chosen when the program runs: by `if`s, by a conditional expression, or in a function
of the same file whose branches all return one. Each is rewritten where it stands. `None` becomes
`tf.distribute.get_strategy()`, which is one device without a strategy: the new program trains the same under it (the
same weights to the last bit, TensorFlow 2.21). An Estimator without a strategy also looked at TF_CONFIG; the new
program does not.
""",
    ),
    Rule(
        "TFM406",
        "a custom strategy is dropped for one device",
        Severity.REVIEW,
        """
With `--strategy one-device` the strategy of `train_distribute` goes. Where it had one replica, the training is the
same. Where it had several, each of them took a batch of the input function in every step: one device takes one, so that
a step is a smaller one. Give the input function the batch of all replicas for steps of the same size.
""",
    ),
    Rule(
        "TFM709",
        "an evaluation is split between replicas",
        Severity.REVIEW,
        """
An Estimator with `train_distribute` alone evaluates on one device. The new program evaluates under the strategy of its
training, where Keras divides every batch between the replicas. Metrics and losses that are means over examples are the
same. With `eval_distribute` each replica evaluates whole batches, in both.
""",
    ),
    Rule(
        "TFM721",
        "an evaluation that would split a sum between replicas",
        Severity.MANUAL,
        """
An Estimator with `train_distribute` alone evaluates on one device; Keras divides every batch between the replicas, and
reports the mean of their losses. That is the loss of the batch where it is a mean over examples (a loss of Keras), and
half of it for two replicas where the program sums (measured: 1.061 for 2.122). Give the RunConfig `eval_distribute`,
too: then each replica evaluates whole batches in both programs. Or migrate for `--strategy one-device`.
""",
    ),
    Rule(
        "TFM723",
        "replica data that end before the steps do",
        Severity.REVIEW,
        """
An Estimator whose data end before its `max_steps` stops there, and so does `fit`. Under several replicas the optimizer
of Keras 3 has then counted one step more than it made (measured on TensorFlow 2.21: 5 for 4; the weights are those of 4
steps), which a later training goes on from. Repeat the data (`dataset.repeat()`), or ask for the steps that there are.
""",
    ),
    Rule(
        "TFM724",
        "a strategy for several devices that the Estimator did not have",
        Severity.REVIEW,
        """
`--strategy mirrored` and `--strategy central-storage` write what the Estimator would have done with this strategy in
its RunConfig: every replica draws whole batches, so that a step takes as many times the examples as there are replicas,
and the training is another one than on one device. Divide the batch size of the input function by the number of
replicas, or take `--loop custom`, whose replicas divide the batches.
""",
    ),
    Rule(
        "TFM731",
        "Keras model optimizers that Estimator replicas used differently",
        Severity.MANUAL,
        """
The Estimator of a Keras model (`model_to_estimator`) under a strategy of several replicas divides the loss by their
number, and an optimizer of tf.train divides its gradients by it once more: with two replicas the steps are half as long
as the learning rate says (measured on TensorFlow 1.15.5 and 2.15.1, two steps of 32 examples: an evaluation of 1.254,
on one device and with an optimizer of Keras 1.096). Keras divides once. Clipping (`clipnorm`, `clipvalue`) of an
optimizer of Keras is that of each replica's gradients on 1.15.5 (1.403) and that of their sum on 2.15.1 (1.415), as in
Keras. Take an optimizer of Keras without clipping, with the learning rate that you mean, or migrate for
`--strategy one-device`.
""",
    ),
    Rule(
        "TFM727",
        "a Keras model that cannot be created in a strategy's scope",
        Severity.MANUAL,
        """
The variables of a model belong to the strategy in whose scope they were made. An Estimator copied the model into its
own strategy; the new program makes the model itself there: the statements before the Estimator that make it, its layers
and its optimizer go under `with strategy.scope():`, and the strategy comes before them. That cannot be done where the
model comes from elsewhere (a parameter, an optimizer beside the function that compiles it, a loop around the
Estimator), where what the strategy is made of is known only behind the model, or where code behind the model may
decide the devices or the cluster (`tf.config`, `os.environ`, functions that were not given). Make the model beside its
Estimator, behind the strategy, or migrate for `--strategy one-device`.
""",
    ),
    Rule(
        "TFM728",
        "a Keras model trained in one process, whatever TF_CONFIG says",
        Severity.REVIEW,
        """
`train_and_evaluate` trains on the cluster in TF_CONFIG. The Keras model of this program cannot be made in the scope of
a strategy (TFM727 says why), so that the new program trains on one device. For a cluster make the model beside its
Estimator.
""",
    ),
    Rule(
        "TFM729",
        "a loss that the Estimator of a Keras model divided by the number of replicas",
        Severity.REVIEW,
        """
With `eval_distribute` the Estimator of a Keras model reports the loss of its evaluations divided by the number of
replicas (measured on TensorFlow 1.15.5 and 2.15.1 with two of them: 0.7145, on one device 1.4290); on mirrored workers
its log shows that of a training so. The training itself is not concerned, nor are metrics. The new program reports the
loss as it is: look at what compares it with a number.
""",
    ),
    Rule(
        "TFM722",
        "moving averages of replicas",
        Severity.REVIEW,
        """
Every replica moves averages of its own (batch normalization). An Estimator saves their mean, and evaluates, predicts
and goes on training with that; a callback of the new program gives all replicas that mean at the end of a training and
before an evaluation (measured with two replicas: moving averages and evaluations agree within 0.8 noise floors). One
thing is left out: where the data end in a round that has a batch for the first replica only, an Estimator drops that
batch, but its first replica has moved its averages by it (measured on TensorFlow 2.15.1: six of six runs; with a
momentum of 0.8 and two replicas, a tenth of the distance between the average and that batch). The new program drops the
batch whole.
""",
    ),
)


def check_replicas(region: Mapping[cst.CSTNode, ParsedFile], local: bool, shares: bool = False) -> bool:
    """Refuses what replicas in step compute in another way in Keras; whether regularizers are among what they compute.

    `region` are the functions of a program's model, with their files. `local` are replicas of one process; `shares`
    says that a loop divides what the regularizers of layers add. Raises Blocked (TFM707, TFM708).
    """
    text = "".join(file.code(node) for node, file in region.items())
    collected = any(name in text for name in _COLLECTED)
    found = False
    for node, file in region.items():
        for call in calls_in(node):
            called = file.imports.resolve(call.func) or ""
            if called == "tf.gradients":
                message = "`tf.gradients` of a loss is not divided by the number of replicas: use compute_gradients"
                raise Blocked("TFM708", call, message)
            for arg in call.args:
                name = arg.keyword.value if arg.keyword is not None else ""
                if local and collected and name.endswith("regularizer") and not is_none(arg.value):
                    found = True
                    if not shares or not called.startswith("tf.layers."):
                        message = "an Estimator divides regularization losses by the number of replicas, Keras does not"
                        if called.startswith("tf.layers."):
                            message += ": `--loop custom` does it, without `eval_distribute`"
                        raise Blocked("TFM707", arg.value, message)
    return found
