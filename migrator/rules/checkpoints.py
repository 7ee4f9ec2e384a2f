"""TensorFlow 1 checkpoints: what `tf-migrate checkpoint` carries over, and what it says where it cannot."""

from __future__ import annotations

from migrator.findings import Severity
from migrator.rules.rule import Rule

RULES = (
    Rule(
        "TFM850",
        "TensorFlow 1 checkpoints in the model_dir",
        Severity.REVIEW,
        """
An Estimator goes on from the newest checkpoint in its `model_dir`, and so does the migrated program; but it writes and
reads checkpoints of Keras objects. Those of the TensorFlow 1 program (`model.ckpt-...`) stay where they are and are not
read: with such a `model_dir` the training would begin anew, and a program that trains nothing ends with an error. To go
on from them, run once, before the migrated program

    tf-migrate checkpoint MODEL_DIR migrated.py

which writes weights, optimizer slots and the step for it. The TensorFlow 1 program cannot go on from what the migrated
program writes: `tf-migrate checkpoint --back` does that.
""",
    ),
    Rule(
        "TFM860",
        "this is not a checkpoint that can be converted",
        Severity.ERROR,
        """
`tf-migrate checkpoint CHECKPOINT PROGRAM` reads a checkpoint of TensorFlow 1: a `model_dir` with its `checkpoint` file,
a prefix such as `model_dir/model.ckpt-1000`, or one of the files of that prefix. With `--back` CHECKPOINT is one that
the migrated program wrote, and `--like` names the one of TensorFlow 1.
""",
    ),
    Rule(
        "TFM861",
        "the checkpoint lacks weights of the program",
        Severity.ERROR,
        """
The migrated program has a weight that no variable of the checkpoint can be: another network, another hyperparameter, or
a checkpoint from before a layer was added. Pass the arguments that the checkpoint was trained with behind `--`. Nothing
was written.
""",
    ),
    Rule(
        "TFM862",
        "the checkpoint has variables that the program lacks",
        Severity.ERROR,
        """
A trained variable of the checkpoint has no weight in the migrated program: another network, or another hyperparameter.
Nothing was written. As a remark it is about what is not trained and was left out: the learning rate that
`optimize_loss` keeps in a variable, moving averages of weights, variables of hooks.
""",
    ),
    Rule(
        "TFM863",
        "ambiguous mapping of variables to weights",
        Severity.ERROR,
        """
Weights are paired with variables in the order in which the two programs make them, as `tf-migrate verify` pairs them;
the order of TensorFlow 1 is in the `.meta` file beside the checkpoint. Shapes, types and the last parts of names
(kernel, bias, gamma ...) must agree. Without the file, names decide where they are equal, and shapes where they occur
once. Where that is not enough, `--name-map names.json` names the pairs: `{"logits/kernel": "dense_3/kernel"}`.
""",
    ),
    Rule(
        "TFM864",
        "the optimizer has other slots",
        Severity.ERROR,
        """
What an optimizer remembers (momentum, mean squares) is converted, too, so that the training goes on as it would have.
The checkpoint has other slots than the program's optimizer: it was trained with another optimizer. Keras' momentum is
-rate times that of TensorFlow 1, which is converted where the learning rate is one number. Nothing was written.
""",
    ),
    Rule(
        "TFM865",
        "the program never used a model",
        Severity.ERROR,
        """
To learn its weights, `tf-migrate checkpoint` runs the migrated program up to the first `fit`, `evaluate`, `predict` or
`load_weights` of a Keras model, without TF_CONFIG, and then ends it. It failed before, or ended. Pass the arguments
that it needs behind `--`.
""",
    ),
    Rule(
        "TFM866",
        "where to write",
        Severity.ERROR,
        """
Without `-o` the weights go to the folder in which the program itself looks for its newest checkpoint. A program without
a `model_dir` looks for none, and a folder with a checkpoint of the migrated program is not written over.
""",
    ),
    Rule(
        "TFM867",
        "Adam has counted another number of steps",
        Severity.REVIEW,
        """
Adam divides by one minus a power of beta. TensorFlow 1 keeps these powers in variables of the optimizer, Keras takes
the number of steps from `optimizer.iterations`, which becomes the global step. Where the two disagree (the global step
was set by hand, or counted by something else as well), the first steps after the change are of another size.
""",
    ),
    Rule(
        "TFM868",
        "a tensor was read back with other values",
        Severity.ERROR,
        """
What was written is loaded again, as the program will load it, and compared tensor by tensor. This one differs: do not
use what was written, and report it.
""",
    ),
)
