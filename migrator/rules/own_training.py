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
- The global step is counted by a condition (accumulated gradients, a loss scale): a training of `max_steps` would end
  after so many batches. Count every batch.
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
        "TFM424",
        "a module that a program which stays TensorFlow 1 shares",
        Severity.REVIEW,
        """
Of several programs that share modules all are migrated or none, with one exception: in the mapped form (TFM150) a
shared module may stay TensorFlow 1 code in a spelling that TensorFlow 1.15 knows as well (`tf.compat.v1`, say). Then
the programs that nothing blocks are migrated, and the named one goes on as it was, on TensorFlow 1.15. Where more
than the spelling of the module would change, all programs stay.
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

So `tf-migrate verify` finds another rate in such an original, and may find it not repeatable. To compare the two, put
the counting under `with tf.control_dependencies([train_op]):` first.
""",
    ),
)
