"""Names of TensorFlow 1.15 that are other names of public symbols: the same Python objects (compared there)."""

from __future__ import annotations

_CELLS = (
    *("BasicRNNCell", "BasicLSTMCell", "LSTMCell", "GRUCell", "MultiRNNCell", "DropoutWrapper", "ResidualWrapper"),
    *("DeviceWrapper", "RNNCell", "LSTMStateTuple"),
)
_REDUCTIONS = (*("NONE", "SUM", "MEAN", "SUM_OVER_BATCH_SIZE", "SUM_BY_NONZERO_WEIGHTS", "SUM_OVER_NONZERO_WEIGHTS"),)
#: The public names of objects that TensorFlow 1.15 has under a private one, or one of contrib, too.
PUBLIC = {
    **{f"tf.contrib.rnn.{name}": f"tf.nn.rnn_cell.{name}" for name in _CELLS},
    **{f"tf.python.ops.rnn_cell.{name}": f"tf.nn.rnn_cell.{name}" for name in _CELLS},
    **{f"tf.python.ops.rnn_cell_impl.{name}": f"tf.nn.rnn_cell.{name}" for name in _CELLS},
    "tf.contrib.cluster_resolver.TPUClusterResolver": "tf.distribute.cluster_resolver.TPUClusterResolver",
    "tf.contrib.rnn.static_rnn": "tf.nn.static_rnn",
    "tf.contrib.rnn.static_bidirectional_rnn": "tf.nn.static_bidirectional_rnn",
    **{
        f"tf.python.ops.losses.losses.{name}": f"tf.losses.{name}"
        for name in ("Reduction", *(f"Reduction.{kind}" for kind in _REDUCTIONS))
    },
    "tf.python.layers.core.Dense": "tf.layers.Dense",
    "tf.python.layers.core.dense": "tf.layers.dense",
    **{
        f"tf.python.training.{module}.{name}": f"tf.train.{name}"
        for module, name in (
            *(("adam", "AdamOptimizer"), ("adagrad", "AdagradOptimizer"), ("momentum", "MomentumOptimizer")),
            *(("gradient_descent", "GradientDescentOptimizer"), ("rmsprop", "RMSPropOptimizer")),
            *(("ftrl", "FtrlOptimizer"), ("adadelta", "AdadeltaOptimizer")),
        )
    },
    **{
        f"{module}.{name}": f"tf.nest.{name}"
        for module in ("tf.python.util.nest", "tf.contrib.framework.nest")
        for name in ("map_structure", "flatten", "pack_sequence_as", "assert_same_structure")
    },
}
