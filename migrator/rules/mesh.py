"""What trains on a mesh of devices (DTensor) as it did on one, and what nobody has seen do so."""

from __future__ import annotations

from migrator.findings import Severity
from migrator.rules.rule import Rule

RULES = (
    Rule(
        "TFM790",
        "a program that is not written for a mesh of devices",
        Severity.MANUAL,
        """
`--strategy dtensor` writes native models on Keras 2 (`tf_keras`; Keras 3 has no DTensor) that train and evaluate in the
function that makes them: a mesh of all devices, a `LayoutMap` in whose scope the model is made, and a loop of the
program's own, because `Model.fit` does not train there. Predictions, exports, hooks, own Keras models, several devices
that the RunConfig asks for and Estimators that are handed around are not written for it: choose another `--strategy`.
For plain data parallelism take `--strategy mirrored --loop custom`, which is written for more programs.
""",
    ),
    Rule(
        "TFM791",
        "a layer or a function that was not tried on a mesh",
        Severity.MANUAL,
        """
Many operations have no DTensor form, or none for tensors that are divided. Tried on TensorFlow 2.21, with the numbers
of one device, are dense layers, embeddings, `Flatten`, `Reshape`, `Add`, convolutions of images with their largest
values or means (`MaxPooling2D`, `GlobalAveragePooling2D`), `reshape`, `concat`, `one_hot`, means and sums, and the
activations `relu`, `relu6`, `tanh`, `sigmoid`, `softmax`, `elu`, `selu`, `gelu`, `softplus`, `leaky_relu` and `swish`.
The rest is refused: choose another `--strategy`, or write the layer of those that are known. Seen to fail: `softsign`
(`SoftsignGrad` has no layouts), `AveragePooling2D` (`AvgPoolGrad`), batch and layer normalization, dropout (Keras wants
another generator of random numbers there), and a dense kernel that is divided by rows behind a convolution.

An embedding becomes the product of one-hot rows with its table. A table that is divided by rows cannot be looked up in
(`ResourceGather` raises); the sparse gradient of one that is whole gave other numbers than one device, without an error
(0.4 % off in the third loss). The product is exact with every layout of the table. An id that the table does not have
raised in TensorFlow 1 and gives zeros here.
""",
    ),
    Rule(
        "TFM792",
        "an optimizer that has no form for a mesh",
        Severity.MANUAL,
        """
Keras optimizers keep their slots in the layouts of the variables when they are given the mesh (the accumulators of
Adagrad alone are whole on every device). That was compared with
one device, step by step, for gradient descent (also with momentum), Adam, Adagrad and RMSProp of Keras with a constant
rate. Other optimizers, rates that change, clipped gradients, and the classes that stand for formulas of TensorFlow 1
which Keras has not, are refused: choose another `--strategy`.

Beside embeddings momentum and RMSProp are refused, too. TensorFlow 1 left the rows that a batch does not use as they
are there; on a mesh all rows have gradients. Gradient descent, Adam and Adagrad give the same numbers either way.
""",
    ),
    Rule(
        "TFM793",
        "a metric that was not tried on a mesh",
        Severity.MANUAL,
        """
Metrics add up in variables, which have to be on the mesh. The mean of a function or of absolute errors and sparse
categorical accuracy were tried; others (`AUC`, confusion matrices) were not. Leave the metric out, or choose another
`--strategy`.
""",
    ),
    Rule(
        "TFM794",
        "the devices of a mesh divide the batches",
        Severity.REVIEW,
        """
An Estimator without a `train_distribute` trained on one device. On a mesh all devices compute each step together, each
on its share of the batch, and the step is what it was on one device. The dimension `batch` of the mesh has to divide
the batch; a last batch that it does not divide is computed whole on every device. A pattern of `--layout` that is the
name of no variable would divide nothing, without a word: the program raises then, and tells the names. Where the model
fits on one device, `--strategy mirrored --loop custom` divides the batches as well, and is written for more
programs.
""",
    ),
    Rule(
        "TFM795",
        "a partitioner, and a mesh of devices",
        Severity.REVIEW,
        """
A partitioner split variables over the parameter servers; here their rows are divided over a dimension of the mesh: the
first one of `--mesh`, or one named `model` with as many devices as `fixed_size_partitioner` made parts. That one
divides the tables of embeddings and the kernels of dense layers that are made in its scope (tables alone where there
are images); the other partitioners, which leave small variables whole, divide tables. What is made outside of the
scope stays whole. TensorFlow 1 made uneven parts where the rows do not divide, and a mesh raises: a matrix is divided
where its rows are known to divide, and stays whole otherwise (a kernel has as many rows as its input has columns,
which is known behind a dense layer whose size is written down, not behind features). All variables stay whole where
it is not known which of them the partitioner has: layers made in a nested function, or made here and called there, a
partitioner outside of the model_fn, two different ones, or one of another axis. `--layout` given by hand takes the
partitioner's place, and a partitioner whose parts are not known before it runs needs `--mesh`. No number changes
either way.
""",
    ),
)

#: Layers that were compared with one device; see docs/dtensor.md for figures.
LAYERS = frozenset(("Dense", "Embedding", "Flatten", "Reshape", "Activation", "Add"))
#: Layers of images: filters are whole on every device.
IMAGE_LAYERS = frozenset(("Conv2D", "MaxPooling2D", "GlobalAveragePooling2D"))
_ACTIVATIONS = ("relu", "relu6", "tanh", "sigmoid", "softmax", "elu", "selu", "gelu", "softplus", "leaky_relu", "swish")
_FUNCTIONS = ("tanh", "math.tanh", "sigmoid", "math.sigmoid", "abs", "math.abs", "reshape", "concat", "one_hot")
_MEANS = ("reduce_mean", "reduce_sum", "math.reduce_mean", "math.reduce_sum")
#: Functions on tensors that were compared with one device.
OPS = frozenset(f"tf.{name}" for name in (*(f"nn.{one}" for one in _ACTIVATIONS), *_FUNCTIONS, *_MEANS))
#: Calls that make no tensors.
STATIC = frozenset(("tf.keras.Model", "tf.name_scope"))
#: Optimizers by name, with the arguments that were tried.
OPTIMIZERS = {
    "SGD": frozenset(("learning_rate", "momentum")),
    "Adam": frozenset(("learning_rate", "beta_1", "beta_2", "epsilon")),
    "Adagrad": frozenset(("learning_rate", "initial_accumulator_value", "epsilon")),
    "RMSprop": frozenset(("learning_rate", "rho", "momentum", "epsilon")),
}
METRICS = frozenset(("MeanMetricWrapper", "MeanAbsoluteError", "SparseCategoricalAccuracy"))
