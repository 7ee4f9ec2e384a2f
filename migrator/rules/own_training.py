"""Rules about train_ops that the mapped form keeps. The code is in program/own_training.py."""

from __future__ import annotations

from migrator.findings import Severity
from migrator.rules.rule import Rule

RULES = (
    Rule(
        "TFM421",
        "the program trains itself",
        Severity.REVIEW,
        """
The train_op comes from `tf.gradients`, or from an optimizer class of the program's own that applies gradients itself
(BERT's Adam with weight decay, LAMB and their like). No Keras optimizer computes that update, and none has to: in the
mapped form (TFM150) the train_op stays TensorFlow 1 code, in whichever file it is, and the `train_step` of the Keras
model runs it. `tf.trainable_variables`, the global step, and conditions on the names of variables mean what they meant;
the slots of the optimizer are variables of the model, under their TensorFlow 1 names. Such a program trains on one
device. `model.optimizer` only holds the step counter.

Measured (fixture `bert_classifier`, TensorFlow 2.15.1 against 2.21): the first loss agrees bit for bit; weights and
slots agree within the noise of one rounding over all steps.
""",
    ),
    Rule(
        "TFM422",
        "a train_op that cannot be kept",
        Severity.MANUAL,
        """
A train_op of the program's own (TFM421) is not carried over where it would do something else in a Keras model, or where
the program has to train on a cluster:

- A stock optimizer of `tf.train` beside it makes its variables anew at every call. Use one of the two.
- The global step is counted by a condition (TFM430), and the Estimator is handed around, or has a class of its own.
- The result of an assignment is not used: in TensorFlow 1 it never ran, in a Keras model it would. Take it out.
- `train_distribute`, or a cluster asked for by `--strategy`: gradients would not be summed over the workers.
""",
    ),
    Rule(
        "TFM427",
        "a program that only predicts",
        Severity.REVIEW,
        """
The program calls `predict` of its Estimator and nothing else (BERT's `extract_features`, a script that serves what
another one has trained). In the mapped form (TFM150) its model only has what a prediction runs: the statements of the
model_fn that belong to other modes are left out, its EstimatorSpec is a dict of the predictions, and there is no
optimizer. Functions that only those statements called stay, as TensorFlow 1 code (TFM171). As with an Estimator, the
values are those of the newest checkpoint in the `model_dir`, or without one those of the initializers and of
`tf.train.init_from_checkpoint`.

Measured (TensorFlow 2.15.1 against 2.21): the predictions agree to 1e-6.
""",
    ),
    Rule(
        "TFM428",
        "Keras layers in a model_fn that stays TensorFlow 1 code",
        Severity.REVIEW,
        """
A graph is made once, and so is a Keras layer in it. A Keras model runs the model_fn again and again, so its layers are
made by a small function of the new file, with `tf.compat.v1.keras.utils.get_or_create_layer`, which finds the layer of
the first call again; beside a train_op of the program's own (TFM421) it also puts the weights into the collection of
trainable variables, as Keras did in a graph. The weights keep their names. That is done for `Dense`, `Conv1D`,
`Conv2D`, `Embedding` and `LayerNormalization`, which do the same in training and outside of it; other Keras layers in
such a model_fn are refused (TFM151). A class that is derived from `LayerNormalization` and has no weights of its own
stays.

Measured (TensorFlow 2.15.1 against 2.21, five steps): losses agree to 1e-5, weights to 1e-4 or better.
""",
    ),
    Rule(
        "TFM429",
        "a bfloat16 scope outside of the model_fn",
        Severity.REVIEW,
        """
`tf.tpu.bfloat16_scope` acts on the variables that are made inside it. An Estimator calls the model_fn later and in a
graph of its own, so a scope around the place where the model_fn or the Estimator is made did nothing, and is left out.
Inside the model_fn it stays. If bfloat16 was meant, put the scope into the model_fn.
""",
    ),
    Rule(
        "TFM430",
        "not every batch counts as a step",
        Severity.REVIEW,
        """
The train_op counts the global step by a condition: gradients of several batches are accumulated, or a batch with
overflown gradients is left out. An Estimator trained until it had counted `max_steps` (or `steps` more), and so does
the new program, whose `fit` takes the whole dataset and is ended by a small callback that looks at the counter after
every batch. The dataset must have enough batches, as before.

Measured (gradients of two batches accumulated, TensorFlow 2.15.1 against 2.21): the same number of batches, weights and
counter.
""",
    ),
    Rule(
        "TFM424",
        "a module that a program which stays TensorFlow 1 shares",
        Severity.REVIEW,
        """
Of several programs that share modules all are migrated or none, with one exception: in the mapped form (TFM150) a
shared module may stay TensorFlow 1 code in a spelling that TensorFlow 1.15 knows as well (`tf.compat.v1`, say). Then
the programs that nothing blocks are migrated, and the named one goes on as it was, on TensorFlow 1.15. Where more
than the spelling of the module would change, all programs stay.

The module may be the main file of a migrated program: what the other takes of it, and all that this reads, must stay
the same but for the spelling, and the file must not do more than before when it is imported, nor need what TensorFlow
1.15 has not got. A Keras layer in such a module (TFM428) is made anew in a graph of TensorFlow 1, as before, so that
its variables keep their names; a function that made hooks for both stays for the other. Executed with both modules on
TensorFlow 2.15.1 and 1.15.5: the program that stays has the same variables, and the same losses to the last bit.
""",
    ),
    Rule(
        "TFM425",
        "a global step that is counted in any order",
        Severity.REVIEW,
        """
The train_op assigns the next global step, and nothing says that the learning rate reads the step before. A graph of
TensorFlow 1 leaves the order open: with the variables of TensorFlow 1.15.5, many steps of two short sessions of BERT's
`create_optimizer` were trained with the rate of one step later, and not the same ones in both (measured). The new
program runs in the order of its lines: the rate is that of the step itself, as written.

The same holds for the linear part of a combined canned Estimator with two optimizers of Keras, whose deep part counts
the global step, where its rate is computed from that step; a schedule of Keras counts for itself.

So `tf-migrate verify` finds another rate in such an original, and may find it not repeatable. To compare the two, put
the counting under `with tf.control_dependencies([train_op]):` first.
""",
    ),
)
