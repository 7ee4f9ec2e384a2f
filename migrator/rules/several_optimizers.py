"""Several optimizers of one model, each for its own variables, or one that trains some of them only."""

from __future__ import annotations

from migrator.findings import Severity
from migrator.rules.rule import Rule

RULES = (
    Rule(
        "TFM414",
        "optimizers that train variables by their names",
        Severity.REVIEW,
        """
The train_op names the variables that an optimizer trains (`var_list` of `minimize` or `compute_gradients`, the second
argument of `tf.gradients`, `variables` of `optimize_loss`, `variables_to_train` of `create_train_op`), by a scope
(`tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope="dnn")`, `tf.trainable_variables("dnn")`) or by a condition
on their names (`[v for v in tf.trainable_variables() if "embedding" in v.name]`, or a loop that appends). Often several
optimizers train a model together: Ftrl the wide part, Adagrad the deep one, or each layer at a rate of its own.

`compile` of Keras takes one optimizer. The new file gets a small class, `OptimizersByName`, which is an optimizer of
Keras and hands each variable to those whose condition its name meets:

    optimizer = OptimizersByName(
        (linear_optimizer, lambda name: name.startswith("linear")),
        (dnn_optimizer, lambda name: name.startswith("dnn")),
    )

What none takes keeps its value, has no slots, and does not count for a clipping by the global norm, as in TensorFlow 1.
It is not made `trainable = False`: a batch normalization with that stops normalizing by its batch, and in TensorFlow 1
it did not; its moving averages and the regularization of all weights stay what they were, too.

The names are those of TensorFlow 1, which the mapped form keeps (TFM150); the native form would rename variables and
is not used. Whoever renames a layer of such a model has to look at the conditions.

In the new program all gradients are those of the weights before the step. So they are in TensorFlow 1 with resource
variables, and where the optimizers train parts of the network that only meet in the loss. With its old variables and
layers on top of each other, though, one optimizer may have changed a kernel before the gradients of the layers below
are computed from it: in eight sessions of one program (TensorFlow 1.15.5 and 2.15.1) the loss of the second step was
18.4 or 42.7, and 18.4 in all of them with `use_resource=True`. `tf-migrate verify` finds such an original not
repeatable.

Measured (TensorFlow 2.15.1 against 2.21, 5 steps): Ftrl and Adagrad bit for bit with `verify`; gradient descent with a
falling rate, Adam and Momentum together, and Adam with a clipped norm on the head of a network with batch normalization
within the noise of one rounding; on two virtual devices of a MirroredStrategy bit for bit, too. Training goes on from a
checkpoint as if it had not been interrupted. All variables to one of the optimizers: the second loss is another one.
""",
    ),
    Rule(
        "TFM415",
        "optimizers of some variables that are not carried over",
        Severity.MANUAL,
        """
Which optimizer trains what has to be known before the network is built (see TFM414). Refused are:

- variables that are named one by one, or by what is known inside the network only. Ask for them by a scope that is
  written out, or by a condition on `v.name`;
- one optimizer that is applied several times a step (Adam would count each of them), and gradients that are computed
  after another optimizer has changed variables;
- a global step that several optimizers count: give `global_step` to one of them;
- clipping where several optimizers train, or where replicas clip before they sum their gradients;
- optimizers of different losses: two networks that train against each other are two models in Keras, with a
  `train_step` of their own.
""",
    ),
)

_HEAD = '''\
class {name}(tf.keras.optimizers.Optimizer):
    """Trains each variable with the optimizers whose condition its name meets; what none takes stays as it is."""

'''
#: The rates of an optimizer of Keras 2 that is made of `parts`.
RATES_OF_PARTS = """\
    @property
    def learning_rate(self):
        return self.parts[0].learning_rate

    def _compute_current_learning_rate(self):
        for part in self.parts:
            part._compute_current_learning_rate()

"""
_PARTS = """\
    def __init__(self, *parts):
        super().__init__(name="{name}", weight_decay=None)
        self.parts = [optimizer for optimizer, _ in parts]
        self.conditions = tuple(condition for _, condition in parts)
        for part in self.parts:
            part.iterations = self.iterations

"""
_TRAINS = """\
    def build(self, var_list):
        super().build(var_list)
        for part, condition in zip(self.parts, self.conditions):
            part.build([variable for variable in var_list if condition(variable.name)])

    def apply_gradients(self, grads_and_vars, **kwargs):
        taken = [pair for pair in grads_and_vars if any(condition(pair[1].name) for condition in self.conditions)]
        return super().apply_gradients(taken, **kwargs)

    def update_step(self, gradient, variable):
        for part in self.parts:
            if self._var_key(variable) in part._index_dict:
                part.update_step(gradient, variable)
"""
_CLIPS = """
    def _clip_gradients(self, grads):
        return self.parts[0]._clip_gradients(grads)
"""


def text(clips: bool) -> str:
    """The class, with `{name}` where its name goes; `clips` says that its only part clips gradients."""
    return _HEAD + _PARTS + RATES_OF_PARTS + _TRAINS + (_CLIPS if clips else "")
