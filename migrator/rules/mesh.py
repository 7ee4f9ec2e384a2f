"""What trains on a mesh of devices (DTensor) as it did on one, and what nobody has seen do so."""

from __future__ import annotations

from migrator.findings import Severity
from migrator.rules import contrib_layers
from migrator.rules.losses import WEIGHTED_AVERAGE, WEIGHTED_MEAN
from migrator.rules.optimizers import FUSED_MOMENTUM, FUSED_RMSPROP, MOMENTUM, RMSPROP
from migrator.rules.rule import Rule
from migrator.rules.schedules import LINEAR_COSINE

RULES = (
    Rule(
        "TFM790",
        "a program that cannot run on a mesh of devices",
        Severity.MANUAL,
        """
`--strategy dtensor` writes native models on Keras 2 (`tf_keras`; Keras 3 has no DTensor) that train and evaluate in the
function that makes them: a mesh of all devices, a `LayoutMap` in whose scope the model is made, and a custom loop,
because `Model.fit` does not train there. Programs that only predict, exports, hooks, own Keras models, strategies of
the RunConfig but a MirroredStrategy that trains (TFM798), and Estimators that escape the function that creates them are
not written for it: choose another `--strategy`. For plain data parallelism take `--strategy mirrored --loop custom`,
which is written for more programs.

A mesh raises when the program makes a variable whose axis a dimension does not divide evenly (7 columns over
`model=2`). A `--layout` of a dense kernel or a table is checked where their sizes are numbers or constants of the file.
""",
    ),
    Rule(
        "TFM791",
        "a layer or a function that is untested on a mesh",
        Severity.MANUAL,
        """
Many operations have no DTensor form, or none for tensors that are divided. Tried on TensorFlow 2.21, with the numbers
of one device, are dense layers, embeddings, `Flatten`, `Reshape`, `Add`, convolutions of images with their largest
values or means (`MaxPooling2D`, `AveragePooling2D`, `GlobalAveragePooling2D`), batch normalization, dropout (TFM797),
the activations `relu`, `relu6`, `tanh`, `sigmoid`, `softmax`, `elu`, `selu`, `gelu`, `softplus`, `leaky_relu` and
`swish`, and in networks, losses and metrics arithmetic, comparisons, `where`, `cast`, `clip_by_value`, logarithms and
the like, cross entropies, norms, sums, means and extremes, `reshape`, `concat`, `one_hot` and `transpose`. A loss may
be that of a whole batch: with weights, a sum, a term of the variables or of the step. The rest is refused: choose
another `--strategy`, or write the layer of those that are known. Seen to fail: `softsign` (`SoftsignGrad` has no
layouts), layer normalization of Keras (`FusedBatchNormV3`; that of tf.contrib is plain operations), depthwise and
dilated convolutions, products with constant matrices, `split`, `stack` and `tile` along an axis that is divided, and a
dense kernel that is divided by rows behind a convolution.

Batch normalization becomes a small class of plain operations, over the whole batch, as on one device: the fused
operation of images has no layouts, and Keras' own without it keeps another moving variance (n for n - 1: 1.3e-5 after
two steps). So does `AveragePooling2D` of blocks that do not overlap. Functions that the model_fn calls to make layers
are looked at in the same way; embeddings, optimizers and metrics have to be made in the model_fn itself.

An embedding becomes the product of one-hot rows with its table. A table that is divided by rows cannot be looked up in
(`ResourceGather` raises); the sparse gradient of one that is whole gave other numbers than one device, without an error
(0.4 % off in the third loss). The product is exact with every layout of the table. An id that the table does not have
raised in TensorFlow 1 and gives zeros here.
""",
    ),
    Rule(
        "TFM792",
        "an optimizer that is unsupported on a mesh",
        Severity.MANUAL,
        """
Keras optimizers keep their slots in the layouts of the variables when they are given the mesh (the accumulators of
Adagrad alone are whole on every device). That was compared with one device, step by step, for gradient descent (also
with momentum), Adam, AdaMax, Adagrad, Adadelta, Ftrl and RMSProp of Keras, and for the classes that stand for
TensorFlow 1's RMSProp and for its momentum with a changing learning rate. Rates are constant, or those of `tf.train`
that become Keras schedules, or computed from the step by the usual functions (`cast`, `cond`, `where`, `minimum`, `pow`
and the like). Gradients may be clipped by value, by norm and by global norm: a gradient is one tensor for all devices,
however it is divided, and so is its norm. Losses agree to 2e-7 and weights to 2e-7 (TensorFlow 2.21, two devices, and 2
x 2 with divided weights).

Other optimizers are refused, and the classes that update variables by raw operations (`ResourceApplyAdagradDA` and the
like): on a mesh these end the process, as measured. Choose another `--strategy`.

Beside embeddings momentum, RMSProp, Adadelta, AdaMax and Ftrl are refused, too. TensorFlow 1 left the rows that a
batch does not use as they are there; on a mesh all rows have gradients. Gradient descent, Adam and Adagrad give the
same numbers either way. Nor are their gradients clipped: TensorFlow 1 clips the rows before those that a batch uses
twice are added up.
""",
    ),
    Rule(
        "TFM793",
        "a metric that is untested on a mesh",
        Severity.MANUAL,
        """
Metrics add up in variables, which have to be on the mesh: without it they show nonsense. Given it they were compared
with one device after three batches, the last of which is whole on every device (TensorFlow 2.21, meshes of 2 and 2 x 2,
1e-6): accuracies, means, errors, `AUC` with both curves, precision, recall and the four counts, with thresholds and
weights, and the mean of a function. Confusion matrices (`mean_iou`, `mean_per_class_accuracy`) raise there,
and tensors of the network that the loss does not read are not written. Leave the metric out, or choose another
`--strategy`.
""",
    ),
    Rule(
        "TFM797",
        "dropout on a mesh",
        Severity.REVIEW,
        """
Operations that draw from a state of their own have no DTensor form (`RandomUniform` raises), and Keras makes no dropout
under a LayoutMap unless its layers draw from `tf.random.Generator`, which the new program asks for
(`enable_tf_random_generator`). Measured on TensorFlow 2.21: each step draws another mask; devices that hold different
examples, or different columns of a tensor that is divided, drop different units, and devices that hold the same part
drop the same ones. The masks are others than those of one device with the same seed, and other ones for every layout,
as between any two runs without a seed.
""",
    ),
    Rule(
        "TFM798",
        "a MirroredStrategy becomes a mesh",
        Severity.REVIEW,
        """
Under the MirroredStrategy of its RunConfig (`train_distribute`) an Estimator drew one batch of the input function for
every replica, and its loss was the mean of the replicas' losses. A step on the mesh takes as many batches as one: those
of the devices that the strategy names, or of all devices of the mesh where it names none. Measured with two replicas,
two Estimator and mesh programs agree step by step to 1e-5. Batches at the end that are fewer than the replicas are left
out in both. Batches of one step have to be of one size, or the program raises: give the dataset
`batch(..., drop_remainder=True)` before it repeats. The evaluation has the batches of one device in both.

What a replica computes for its own batch alone is refused (TFM790): a loss over whole batches, normalized batches,
clipped gradients, values over all examples.
""",
    ),
    Rule(
        "TFM780",
        "a MirroredStrategy of a TensorFlow 2 program becomes a mesh",
        Severity.REVIEW,
        """
`--strategy dtensor` writes three shapes of programs anew, on tf_keras: a model that is compiled and trained by
`fit(dataset, epochs=..., validation_data=..., steps_per_epoch=...)`, the loop of the guides, in which a
`tf.function` gives a step to `strategy.run` and returns `strategy.reduce("SUM", losses, axis=None)`, and the loops that
`--loop custom` writes. The model is made in the scope of a `LayoutMap`, optimizer and metrics get the mesh, batches are
divided over it, and gradients applied after the `tf.function` that computes them. Functions in which they are made get
a parameter for the mesh, and one that the strategy was given gets the layouts. `strategy.num_replicas_in_sync` becomes
`mesh.size`, so that the global batch stays what it was; in a step, where it makes a replica's share of a value, it is
left out.

Models may be Sequential, functional, or classes of their own (`__init__` and `call`), whose variables are made from the
shapes of the data before the first step: `--layout` names them by their attributes there (`hidden.kernel`,
`blocks.0.kernel`), and by the names of layers elsewhere. An embedding becomes a product of one-hot rows with its table
(an id that the table does not have gives zeros, where it raised), and `BatchNormalization(synchronized=True)` a small
class of plain operations.

A loop that `--loop custom` wrote goes on from the checkpoints of its replicas on the mesh: two rounds on two replicas
and two on a mesh with a divided kernel had the losses of four on replicas (Adam, 1e-5).

A step computes the whole batch once. That is what the replicas computed together where the loss is divided by the
global batch (`tf.nn.compute_average_loss`), and in `fit` where the replicas divide a batch evenly; of a last batch that
they do not divide evenly `fit` takes the mean of the replicas' means, and the mesh the mean. `fit` prints no progress
and returns no history: a loop over the epochs prints the loss of its last step and the results of `validation_data`.
""",
    ),
    Rule(
        "TFM781",
        "layouts chosen by size",
        Severity.REVIEW,
        """
`--layout auto --device-memory 16GiB --mesh model=2` divides the fewest variables over the first dimension of `--mesh`
with which a device has room for its part of all weights, of the optimizer's slots and of the gradients: those that
save most come first. Counted are the bytes of each number (`dtype`, 4 otherwise); of slots those that Keras'
optimizers have on a mesh (TensorFlow 2.21): two of Adam, AdaMax and Adadelta (a third with `amsgrad`), one of gradient
descent, momentum or not, one to three of RMSProp, one of Adagrad and two of Ftrl, of which the accumulators are whole
on every device; and one gradient of each weight. What a step computes on its way, batches, metrics and the runtime's
own memory are not counted: leave room for them.

Columns of dense kernels are divided, rows of them where the columns are not even parts (not behind a convolution),
rows of tables, and biases where that is not enough. Filters and what normalizations keep stay whole.
""",
    ),
    Rule(
        "TFM782",
        "layouts that cannot be chosen by size",
        Severity.MANUAL,
        """
The sizes of the program's weights do not fit into `--device-memory`, however they are divided, or a size is not known
before the program runs: then the message names the weight, at the line that makes its layer. The width of what a layer
is given is known behind a layer of written units, `tf.reshape(net, [-1, 784])`, a `tf.keras.Input(shape=...)`, and from
data sets of arrays whose sizes are written down. Sizes may be numbers, constants, parameters and the like, in other
functions and files. Without `--layout auto` nothing of this is asked.
""",
    ),
    Rule(
        "TFM783",
        "a program without a tf.Module",
        Severity.MANUAL,
        """
`--strategy dtensor --style module` writes a program with DTensor's core API, as its guide does: the model is a
`tf.Module` whose layers make `DVariable`s by `call_with_layout`, the optimizer is a module of a few lines, and a
training step is one `tf.function`. Nothing of Keras is left, so the program runs with Keras 3 installed as well as
with tf_keras. Gradients are laid out as their variables (TFM777), steps are counted by a variable (TFM773), and what is
assigned is computed once, not read again.

It is written for Estimators whose model is made in straight lines of one function: dense layers with Glorot's
initial values, activations, functions of tensors; cross entropies of logits over classes and mean squared errors;
gradient descent, momentum and Adam at constant rates; and the accuracy of classes. Widths have to be known (as
for TFM782), because a module makes its variables when it is made. For anything else leave `--style module` out: the
program on Keras' DTensor is written for more.
""",
    ),
    Rule(
        "TFM799",
        "a TensorFlow 2 program that cannot move to a mesh",
        Severity.MANUAL,
        """
`--strategy dtensor` writes Estimator programs, and programs of TensorFlow 2 that train on a MirroredStrategy in one of
three shapes (TFM780). The message says what stands in the way at this line; the file stays as it is. What to do by
hand, on tf_keras:

1. make a mesh (`tf.experimental.dtensor.create_mesh`) in place of the strategy, and make the model in the scope of a
   `tf.keras.dtensor.experimental.LayoutMap(mesh=mesh)` in place of `strategy.scope()`;
2. give optimizer and metrics `mesh=mesh`;
3. write the steps out: `fit` does not train there. Take the gradients in a `tf.function`, and apply them outside of it
   (docs/dtensor.md says why);
4. divide each batch over the mesh (`tf.split`, `tf.experimental.dtensor.pack`). The global batch of the strategy is the
   batch of the mesh: leave out what divides losses or learning rates by the number of replicas.

A small program of the same model, with a MirroredStrategy and `fit`, run through `--strategy dtensor`, shows all of it.
""",
    ),
    Rule(
        "TFM794",
        "the devices of a mesh split the batches",
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
LAYERS = frozenset(
    ("Dense", "Embedding", "Flatten", "Reshape", "Activation", "Add", "Concatenate", "LeakyReLU", "Multiply", "ReLU")
)
#: Layers that draw random numbers.
DRAWING = frozenset(("Dropout",))
#: Layers of images: filters are whole on every device.
IMAGE_LAYERS = frozenset(
    (
        *("Conv1D", "Conv2D", "Conv2DTranspose", "GlobalAveragePooling1D", "GlobalAveragePooling2D"),
        *("GlobalMaxPooling2D", "MaxPooling1D", "MaxPooling2D", "UpSampling2D", "ZeroPadding2D"),
    )
)
#: Activations, by their names.
ACTIVATIONS = ("relu", "relu6", "tanh", "sigmoid", "softmax", "elu", "selu", "gelu", "softplus", "leaky_relu", "swish")
_LOSSES = (
    *("l2_loss", "sigmoid_cross_entropy_with_logits", "softmax_cross_entropy_with_logits"),
    *("sparse_softmax_cross_entropy_with_logits", "weighted_cross_entropy_with_logits"),
)
_OF_TENSORS = (
    "concat",
    "pad",
    "fill",
    "one_hot",
    "ones_like",
    "size",
    "zeros_like",
    "reshape",
    "expand_dims",
    "squeeze",
    "identity",
    "stop_gradient",
    "transpose",
)
_ELEMENTWISE = (
    *("abs", "add", "add_n", "argmax", "argmin", "cos", "count_nonzero", "divide", "divide_no_nan", "equal", "erf"),
    *("exp", "greater", "greater_equal", "less", "less_equal", "log", "log1p", "log_sigmoid", "logical_and"),
    *(
        "logical_not",
        "logical_or",
        "not_equal",
        "sign",
        "maximum",
        "minimum",
        "multiply",
        "negative",
        "pow",
        "rsqrt",
        "round",
        "sigmoid",
        "sin",
        "sqrt",
        "square",
    ),
    *("squared_difference", "subtract", "tanh", "l2_normalize"),
)
_MEANS = tuple(f"reduce_{name}" for name in ("logsumexp", "max", "mean", "min", "std", "sum", "variance"))
#: Functions on tensors that were compared with one device.
OPS = frozenset(
    (
        *(f"tf.nn.{name}" for name in (*ACTIVATIONS, *_LOSSES, "l2_normalize", "log_softmax", "moments")),
        *(f"tf.{name}" for name in (*_OF_TENSORS, "broadcast_to", "cast", "clip_by_value", "norm", "shape", "where")),
        *(f"tf.{prefix}{name}" for name in (*_ELEMENTWISE, *_MEANS) for prefix in ("", "math.")),
    )
)
#: Calls that make no tensors.
STATIC = frozenset(("tf.keras.Model", "tf.name_scope", "tf.get_logger"))
#: Optimizers by name, with the arguments that were tried.
OPTIMIZERS = {
    "SGD": frozenset(("learning_rate", "momentum", "nesterov")),
    "Adam": frozenset(("learning_rate", "beta_1", "beta_2", "epsilon")),
    "Adadelta": frozenset(("learning_rate", "rho", "epsilon")),
    "Adagrad": frozenset(("learning_rate", "initial_accumulator_value", "epsilon")),
    "Adamax": frozenset(("learning_rate", "beta_1", "beta_2", "epsilon")),
    "Ftrl": frozenset(("learning_rate", "l1_regularization_strength", "l2_regularization_strength")),
    "RMSprop": frozenset(("learning_rate", "rho", "momentum", "epsilon", "centered")),
}
#: Those whose numbers stay the same where all rows of a table have gradients, if only those of zeros.
OF_TABLES = frozenset(("SGD", "Adam", "Adagrad"))
#: Arguments of an optimizer that clip its gradients.
CLIPPING = frozenset(("clipvalue", "clipnorm", "global_clipnorm"))
#: Rates of Keras that change with the step.
SCHEDULES = frozenset(
    (
        *("CosineDecay", "CosineDecayRestarts", "ExponentialDecay", "InverseTimeDecay", "LinearCosineDecay"),
        *("PiecewiseConstantDecay", "PolynomialDecay"),
    )
)
#: Classes that a file gets, as their text, and what they are in the tables above.
CLASSES = {MOMENTUM: "SGD", RMSPROP: "RMSprop", LINEAR_COSINE: "LinearCosineDecay"}
#: What becomes of classes for one device or its replicas, whose operations a mesh has not, as their text.
FOR_MESHES = {FUSED_MOMENTUM: MOMENTUM, FUSED_RMSPROP: RMSPROP}
#: Optimizers that compute the same in `tf.keras.optimizers.legacy`.
AS_LEGACY = frozenset(OPTIMIZERS) - {"RMSprop"}
_MATH = (
    *("abs", "add", "ceil", "cos", "divide", "equal", "exp", "floor", "floordiv", "floormod", "greater"),
    *("greater_equal", "less", "less_equal", "log", "logical_and", "maximum", "minimum", "mod", "multiply", "pow"),
    *("rsqrt", "sigmoid", "sin", "sqrt", "square", "subtract", "tanh", "truediv"),
)
#: Functions of the step that were compared with one device, where a program computes its rate from it.
OF_STEPS = frozenset(
    (
        *(f"tf.{name}" for name in (*_MATH, "case", "cast", "clip_by_value", "cond", "constant", "where")),
        *(f"tf.math.{name}" for name in _MATH),
    )
)
#: Functions and layers that a file gets and that are the same on a mesh, as their text.
FUNCTIONS = (WEIGHTED_MEAN, WEIGHTED_AVERAGE, contrib_layers.CLASSES["WholeLayerNormalization"])
#: Metrics of Keras that count the same on a mesh, where they are given it; and those that are functions.
METRICS = frozenset(
    (
        *("AUC", "Accuracy", "BinaryAccuracy", "CategoricalAccuracy", "FalseNegatives", "FalsePositives", "Mean"),
        *("MeanAbsoluteError", "MeanMetricWrapper", "MeanSquaredError", "MeanTensor", "Precision", "Recall"),
        *("RootMeanSquaredError", "SparseCategoricalAccuracy", "SparseTopKCategoricalAccuracy", "TrueNegatives"),
        "TruePositives",
    )
)
METRIC_FUNCTIONS = frozenset(("sparse_top_k_categorical_accuracy",))
