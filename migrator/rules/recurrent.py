"""Recurrent networks: `tf.nn.dynamic_rnn` and its kin, and the cells of `tf.nn.rnn_cell`, as Keras recurrent layers."""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from migrator.findings import Severity
from migrator.program.calls import bind, is_false, is_none, is_true, number
from migrator.program.parsed import Blocked
from migrator.query.variables import CELLS, RECURRENT
from migrator.rules.dropout import WRAPPER, in_training, rate_of
from migrator.rules.layers import tidy_end
from migrator.rules.rule import Rule
from migrator.rules.site import Site, keyword

RULES = (
    Rule(
        "TFM279",
        "recurrent networks",
        Severity.MIGRATED,
        """
`tf.nn.dynamic_rnn`, `bidirectional_dynamic_rnn`, `static_rnn` and `static_bidirectional_rnn` become functions of the
same name in the file, around `tf.keras.layers.RNN`: beyond the length of a sequence the outputs are zeros, and the
state stays what it was. States are what they were, `LSTMStateTuple` included.

```python
cell = LSTMCell(64)
outputs, state = dynamic_rnn(cell, words, sequence_length=lengths)
```

The cells (`BasicLSTMCell`, `LSTMCell`, `GRUCell`, `BasicRNNCell`) become small classes with the weights and the
arithmetic of TensorFlow 1, so that checkpoints and starting values mean the same; `MultiRNNCell` becomes
`tf.keras.layers.StackedRNNCells`, and `DropoutWrapper` a small class around dropouts of Keras.

Keras' own cells are others: `LSTMCell` has two kernels, which start in other ways, the gates in another order, and a
forget bias that is trained from 1 on where TensorFlow 1 adds 1 to it at each step; `GRUCell` with `reset_after=False`
has the gates in the other order, and biases that start at 0 where they start at 1.
Measured beside TensorFlow 1.15.5 from the same weights, in 20 steps of Adagrad with and without lengths, in one
direction and two, in 2.15.1 and 2.21: outputs, states, losses and weights differ by less than 3e-7.

Where the numbers of a trained model need not be kept, `tf.keras.layers.LSTM` and `GRU` are faster on GPUs (cuDNN).

Unsupported are cells that are called by hand, `zero_state`, initial states, `time_major=True`, peepholes, projections,
clipping, `state_keep_prob` and other wrappers of cells, one cell in several layers of a `MultiRNNCell`, and networks of
Keras 3 and of meshes: the program becomes a bridge.
""",
    ),
)

_LSTM_STATE = """\
{name} = collections.namedtuple("LSTMStateTuple", ("c", "h"))
"""
_LSTM = '''\
class {name}(tf.keras.layers.Layer):
    """An LSTM cell with TensorFlow 1's weights: one kernel for inputs and state, and a forget bias at each step."""

    def __init__(self, num_units, forget_bias=1.0, activation="tanh", initializer="glorot_uniform", **kwargs):
        super().__init__(**kwargs)
        self.output_size = num_units
        self.forget_bias = forget_bias
        self.activation = tf.keras.activations.get(activation)
        self.initializer = initializer

    @property
    def state_size(self):
        return {state}(self.output_size, self.output_size)

    def build(self, input_shape):
        shape = [input_shape[-1] + self.output_size, 4 * self.output_size]
        self.kernel = self.add_weight("kernel", shape, initializer=self.initializer)
        self.bias = self.add_weight("bias", shape[1:], initializer="zeros")

    def call(self, inputs, states):
        c, h = states
        i, j, f, o = tf.split(tf.matmul(tf.concat([inputs, h], 1), self.kernel) + self.bias, 4, axis=1)
        c = c * tf.sigmoid(f + self.forget_bias) + tf.sigmoid(i) * self.activation(j)
        h = self.activation(c) * tf.sigmoid(o)
        return h, {state}(c, h)
'''
_GRU = '''\
class {name}(tf.keras.layers.Layer):
    """A GRU cell with TensorFlow 1's weights: the state is reset before it meets the candidate's kernel."""

    def __init__(self, num_units, activation="tanh", kernel_initializer=None, bias_initializer=None, **kwargs):
        super().__init__(**kwargs)
        self.output_size = self.state_size = num_units
        self.activation = tf.keras.activations.get(activation)
        self.kernel_initializer = kernel_initializer or "glorot_uniform"
        self.bias_initializer = bias_initializer

    def build(self, input_shape):
        units, rows = self.output_size, input_shape[-1] + self.output_size
        start, bias = self.kernel_initializer, self.bias_initializer
        self.gates_kernel = self.add_weight("gates/kernel", [rows, 2 * units], initializer=start)
        self.gates_bias = self.add_weight("gates/bias", [2 * units], initializer=bias or "ones")
        self.kernel = self.add_weight("candidate/kernel", [rows, units], initializer=start)
        self.bias = self.add_weight("candidate/bias", [units], initializer=bias or "zeros")

    def call(self, inputs, states):
        h = tf.nest.flatten(states)[0]
        gates = tf.sigmoid(tf.matmul(tf.concat([inputs, h], 1), self.gates_kernel) + self.gates_bias)
        reset, update = tf.split(gates, 2, axis=1)
        candidate = self.activation(tf.matmul(tf.concat([inputs, reset * h], 1), self.kernel) + self.bias)
        h = update * h + (1 - update) * candidate
        return h, h
'''
_PLAIN = '''\
class {name}(tf.keras.layers.Layer):
    """The plain recurrent cell with TensorFlow 1's weights: one kernel for inputs and state."""

    def __init__(self, num_units, activation="tanh", **kwargs):
        super().__init__(**kwargs)
        self.output_size = self.state_size = num_units
        self.activation = tf.keras.activations.get(activation)

    def build(self, input_shape):
        shape = [input_shape[-1] + self.output_size, self.output_size]
        self.kernel = self.add_weight("kernel", shape, initializer="glorot_uniform")
        self.bias = self.add_weight("bias", shape[1:], initializer="zeros")

    def call(self, inputs, states):
        h = tf.nest.flatten(states)[0]
        h = self.activation(tf.matmul(tf.concat([inputs, h], 1), self.kernel) + self.bias)
        return h, h
'''
_DROPPING = '''\
class {name}(tf.keras.layers.Layer):
    """A cell with dropout on what it is given and what it gives, drawn anew at each step: in training, or always."""

    def __init__(self, cell, input_rate=0.0, output_rate=0.0, always=False, **kwargs):
        super().__init__(**kwargs)
        self.cell = cell
        self.input_dropout = tf.keras.layers.Dropout(input_rate)
        self.output_dropout = tf.keras.layers.Dropout(output_rate)
        self.phase = True if always else None

    @property
    def state_size(self):
        return self.cell.state_size

    @property
    def output_size(self):
        return self.cell.output_size

    def build(self, input_shape):
        with tf.name_scope(self.cell.name):
            self.cell.build(input_shape)
        self.cell.built = True

    def call(self, inputs, states):
        outputs, states = self.cell(self.input_dropout(inputs, training=self.phase), states)
        return self.output_dropout(outputs, training=self.phase), states
'''
_DYNAMIC = '''\
def {name}(cell, inputs, sequence_length=None, go_backwards=False):
    """Returns the outputs of a cell, zeros beyond the length of a sequence, and its state at that length."""
    layer = tf.keras.layers.RNN(
        cell,
        return_sequences=True,
        return_state=True,
        go_backwards=go_backwards,
        zero_output_for_mask=True,
        dtype=inputs.dtype,
    )
    mask = None if sequence_length is None else tf.sequence_mask(sequence_length, tf.shape(inputs)[1])
    outputs, *state = layer(inputs, mask=mask)
    return outputs, tf.nest.pack_sequence_as(cell.state_size, tf.nest.flatten(state))
'''
_BOTH = '''\
def {name}(cell_fw, cell_bw, inputs, sequence_length=None):
    """Returns the outputs of two cells, one of which reads backwards, and their last states."""
    outputs_fw, state_fw = {dynamic_rnn}(cell_fw, inputs, sequence_length)
    outputs_bw, state_bw = {dynamic_rnn}(cell_bw, inputs, sequence_length, go_backwards=True)
    return (outputs_fw, tf.reverse(outputs_bw, [1])), (state_fw, state_bw)
'''
_STATIC = '''\
def {name}(cell, inputs, sequence_length=None):
    """Returns the outputs of a cell for a list of inputs, as a list, and its last state."""
    outputs, state = {dynamic_rnn}(cell, tf.stack(inputs, axis=1), sequence_length)
    return tf.unstack(outputs, axis=1), state
'''
_STATIC_BOTH = '''\
def {name}(cell_fw, cell_bw, inputs, sequence_length=None):
    """Returns the outputs of two cells for a list of inputs, one of which reads backwards, and their last states."""
    outputs, states = {bidirectional_dynamic_rnn}(cell_fw, cell_bw, tf.stack(inputs, axis=1), sequence_length)
    return (tf.unstack(tf.concat(outputs, -1), axis=1), *states)
'''
_NETWORKS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "dynamic_rnn": (_DYNAMIC, ()),
    "bidirectional_dynamic_rnn": (_BOTH, ("dynamic_rnn",)),
    "static_rnn": (_STATIC, ("dynamic_rnn",)),
    "static_bidirectional_rnn": (_STATIC_BOTH, ("bidirectional_dynamic_rnn",)),
}
_CLASSES = {"BasicLSTMCell": _LSTM, "LSTMCell": _LSTM, "GRUCell": _GRU, "BasicRNNCell": _PLAIN}
_KEPT = (
    *("num_units", "forget_bias", "activation", "initializer", "kernel_initializer", "bias_initializer", "name"),
    *("cell", "cell_fw", "cell_bw", "inputs", "sequence_length"),
)
_WITHOUT_MEANING = ("scope", "dtype", "swap_memory", "parallel_iterations", "num_unit_shards", "num_proj_shards")


def cell(site: Site, dtype: str) -> cst.BaseExpression:
    """The cell in the place of one of TensorFlow 1's; `dtype` is that of its weights. Raises Blocked (TFM203)."""
    kind = site.name.rpartition(".")[2]
    if kind == "MultiRNNCell":
        _check(site, CELLS[site.name], ("cells",))
        args = [arg for arg in site.call.args if arg.keyword is None or arg.keyword.value == "cells"][:1]
        return site.call.with_changes(func=cst.parse_expression("tf.keras.layers.StackedRNNCells"), args=tidy_end(args))
    if site.name == WRAPPER:
        return _wrapper(site, dtype)
    text = _CLASSES[kind]
    if text is _LSTM:
        site.training.needs.add("collections")
        text = text.replace("{state}", site.training.helper("LSTMStateTuple", _LSTM_STATE))
        kind = "LSTMCell"
    args = _kept(site, CELLS[site.name])
    if dtype != "float32":
        args.append(keyword("dtype", cst.parse_expression(f"tf.{dtype}")))
    return site.call.with_changes(func=cst.Name(site.training.helper(kind, text)), args=_ended(args, site))


def _wrapper(site: Site, dtype: str) -> cst.BaseExpression:
    """The wrapper of a cell: what it keeps in training only, or always, as rates of dropouts."""
    parameters = CELLS[WRAPPER]
    _check(site, parameters, ("cell", "input_keep_prob", "output_keep_prob", "state_keep_prob", "seed"))
    given = bind(site.call, parameters, site.name, "TFM203")
    if not is_none(given.get("state_keep_prob")) and number(given["state_keep_prob"]) != 1.0:
        raise Blocked("TFM203", site.original, f"`state_keep_prob` of `{site.name}` is unsupported")
    args, phases = [cst.Arg(given["cell"])], set()
    for name in ("input", "output"):
        keep = given.get(f"{name}_keep_prob")
        if keep is None or is_none(keep) or number(keep) == 1.0:
            continue
        chosen = in_training(keep, 1.0, site.modes, site.definition)
        phases.add(site.only_training or chosen is not keep)
        args.append(keyword(f"{name}_rate", rate_of(chosen)))
    if len(phases) > 1:
        message = f"`{site.name}` has dropout for training only and dropout that is always active, which is unsupported"
        raise Blocked("TFM203", site.original, message)
    if False in phases:
        message = "dropout stays active in evaluation and prediction, as before"
        site.remarks.append(Blocked("TFM222", site.original, message))
        args.append(keyword("always", cst.Name("True")))
    if dtype != "float32":
        args.append(keyword("dtype", cst.parse_expression(f"tf.{dtype}")))
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    args = [one.with_changes(comma=comma) for one in args[:-1]] + args[-1:]
    return site.call.with_changes(func=cst.Name(site.training.helper("DropoutWrapper", _DROPPING)), args=args)


def network(site: Site) -> cst.BaseExpression:
    """The call of the function that runs cells over sequences. Raises Blocked (TFM203)."""
    name = _helper(site, site.name.rpartition(".")[2])
    return site.call.with_changes(func=cst.Name(name), args=_ended(_kept(site, RECURRENT[site.name]), site))


def _helper(site: Site, name: str) -> str:
    text, inner = _NETWORKS[name]
    for one in inner:
        text = text.replace("{" + one + "}", _helper(site, one))
    return site.training.helper(name, text)


def _check(site: Site, parameters: tuple[str, ...], kept: tuple[str, ...] = _KEPT) -> None:
    """Refuses arguments that mean something which the new form has not. Raises Blocked (TFM203)."""
    for name, value in bind(site.original, parameters, site.name, "TFM203").items():
        if name in kept or name in _WITHOUT_MEANING or is_none(value) or is_false(value):
            continue
        if not (name == "state_is_tuple" and is_true(value)):
            raise Blocked("TFM203", site.original, f"`{name}` of `{site.name}` is unsupported")
    given = bind(site.original, parameters, site.name, "TFM203").get("state_is_tuple")
    if given is not None and not is_true(given):
        raise Blocked("TFM203", site.original, f"`state_is_tuple` of `{site.name}` is unsupported")


def _kept(site: Site, parameters: tuple[str, ...]) -> list[cst.Arg]:
    _check(site, parameters)
    found: list[cst.Arg] = []
    for index, (arg, old) in enumerate(zip(site.call.args, site.original.args)):
        name = arg.keyword.value if arg.keyword is not None else parameters[index]
        if name not in _KEPT or is_none(old.value):
            continue
        if arg.keyword is None and (len(found) != index or index > 2):
            arg = keyword(name, arg.value).with_changes(comma=arg.comma)
        found.append(arg)
    return found


def _ended(args: list[cst.Arg], site: Site) -> list[cst.Arg]:
    """Arguments that end as those of the call did."""
    if not args:
        return args
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    args = [
        arg if isinstance(arg.comma, cst.Comma) or arg is args[-1] else arg.with_changes(comma=comma) for arg in args
    ]
    last = site.call.args[-1]
    args[-1] = args[-1].with_changes(comma=last.comma, whitespace_after_arg=last.whitespace_after_arg)
    return args


__all__ = ["RULES", "cell", "network"]
