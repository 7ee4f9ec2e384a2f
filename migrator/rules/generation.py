"""The two generations of Keras that new programs are written for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Keras:
    """What a generation of Keras asks of new code.

    - `choose`: a file has to choose it before it imports TensorFlow
    - `symbolic_tensorflow`: TensorFlow's functions take the symbolic tensors of a network
    - `fits_on_clusters`: `Model.fit` works under the strategies of a cluster
    - `loss_has_phase`: `compute_loss` is told whether the model trains
    - `loss_sees_labels`: a loss function is given the labels as they are, not as floats
    - `compiles`: `compile` may choose XLA by itself
    - `checkpoints_by_manager`: a program keeps its checkpoints with tf.train itself
    - `named_inputs`: inputs of a dict bear the names of its keys
    - `clips_per_replica`: replicas clip their gradients before these are summed, as in TensorFlow 1
    - `adds_rows`: gradients of a row that a batch uses twice are added up before the row is updated
    - `wants_float_rates`: a rate must be a float
    - `fuses`: it has optimizers that update a variable by one operation, as TensorFlow 1's did
    - `cuts_executions`: the last execution ends with the steps that `fit` is told (or else with the data only)
    """

    number: int
    choose: bool
    symbolic_tensorflow: bool
    fits_on_clusters: bool
    loss_has_phase: bool
    loss_sees_labels: bool
    compiles: bool
    checkpoints_by_manager: bool
    named_inputs: bool
    clips_per_replica: bool
    adds_rows: bool
    wants_float_rates: bool
    fuses: bool
    cuts_executions: bool


KERAS_2 = Keras(
    number=2,
    choose=True,
    symbolic_tensorflow=True,
    fits_on_clusters=True,
    loss_has_phase=False,
    loss_sees_labels=True,
    compiles=False,
    checkpoints_by_manager=False,
    named_inputs=False,
    clips_per_replica=False,
    adds_rows=True,
    wants_float_rates=False,
    fuses=True,
    cuts_executions=True,
)
KERAS_3 = Keras(
    number=3,
    choose=False,
    symbolic_tensorflow=False,
    fits_on_clusters=False,
    loss_has_phase=True,
    loss_sees_labels=False,
    compiles=True,
    checkpoints_by_manager=True,
    named_inputs=True,
    clips_per_replica=True,
    adds_rows=False,
    wants_float_rates=True,
    fuses=False,
    cuts_executions=False,
)
#: By the word of the command line.
GENERATIONS = {"2": KERAS_2, "3": KERAS_3}
