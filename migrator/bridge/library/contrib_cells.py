"""Cells of tf.contrib.rnn that TensorFlow 2 has no more."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1


def _cell_linear(parts, size, has_bias=True):
    """A dense layer over several tensors, in the scope that it is called in."""
    inputs = tf.concat(parts, 1)
    made = tf.matmul(inputs, tf1.get_variable("kernel", [inputs.shape.as_list()[1], size], inputs.dtype))
    if has_bias:
        made += tf1.get_variable("bias", [size], inputs.dtype, tf1.zeros_initializer())
    return made


def _normed_gates(inputs, scope, gain, shift):
    """Gates [batch, size] with mean `shift` and deviation `gain` in each row, when nothing is trained yet."""
    with tf1.variable_scope(scope):
        gamma = tf1.get_variable("gamma", inputs.shape[-1:], inputs.dtype, tf1.constant_initializer(gain))
        beta = tf1.get_variable("beta", inputs.shape[-1:], inputs.dtype, tf1.constant_initializer(shift))
        mean, variance = tf.nn.moments(inputs, [1], keepdims=True)
        return tf.nn.batch_normalization(inputs, mean, variance, beta, gamma, 1e-12)


class LinearOfParts:
    """A linear map of one or several inputs side by side, [batch, size] each; `kernel` and `bias` of the scope.

    Args:
        args: the inputs, or one.
        output_size: size of what comes out.
        build_bias: whether something is added.
        bias_initializer: None: zeros.
        kernel_initializer: None: that of the scope.
    """

    def __init__(self, args, output_size, build_bias, bias_initializer=None, kernel_initializer=None):
        parts = tf.nest.flatten(args)
        sizes = [part.shape[1] for part in parts]
        self._kernel = tf1.get_variable(
            "kernel", [sum(sizes), output_size], dtype=parts[0].dtype, initializer=kernel_initializer
        )
        self._bias = None
        if build_bias:
            with tf1.variable_scope(tf1.get_variable_scope()) as scope:
                scope.set_partitioner(None)
                initializer = bias_initializer or tf1.zeros_initializer(parts[0].dtype)
                self._bias = tf1.get_variable("bias", [output_size], dtype=parts[0].dtype, initializer=initializer)

    def __call__(self, args):
        parts = tf.nest.flatten(args)
        made = tf.matmul(parts[0] if len(parts) == 1 else tf.concat(parts, 1), self._kernel)
        return made if self._bias is None else tf.nn.bias_add(made, self._bias)


def linear_of_parts(args, output_size, bias, bias_initializer=None, kernel_initializer=None):
    """A linear map of one or several inputs side by side: what older cells call `_linear`."""
    return LinearOfParts(args, output_size, bias, bias_initializer, kernel_initializer)(args)


class LayerNormBasicLSTMCell(tf1.nn.rnn_cell.RNNCell):
    """An LSTM whose gates are normalized, and whose dropout keeps what it remembers."""

    def __init__(
        self,
        num_units,
        forget_bias=1.0,
        input_size=None,
        activation=tf.tanh,
        layer_norm=True,
        norm_gain=1.0,
        norm_shift=0.0,
        dropout_keep_prob=1.0,
        dropout_prob_seed=None,
        reuse=None,
    ):
        super().__init__(_reuse=reuse)
        self._num_units = num_units
        self._settings = activation, forget_bias, layer_norm
        self._norm = norm_gain, norm_shift
        self._dropout = dropout_keep_prob, dropout_prob_seed

    @property
    def state_size(self):
        return tf1.nn.rnn_cell.LSTMStateTuple(self._num_units, self._num_units)

    @property
    def output_size(self):
        return self._num_units

    def call(self, inputs, state):
        activation, forget_bias, normed = self._settings
        cell, output = state
        both = tf.concat([inputs, output], 1)
        kernel = tf1.get_variable("kernel", [both.shape.as_list()[1], 4 * self._num_units], both.dtype)
        gates = tf.matmul(both, kernel)
        if not normed:
            gates += tf1.get_variable("bias", [4 * self._num_units], both.dtype)
        i, new, f, o = tf.split(gates, 4, axis=1)
        if normed:
            names = zip((i, new, f, o), ("input", "transform", "forget", "output"), strict=True)
            i, new, f, o = (_normed_gates(one, name, *self._norm) for one, name in names)
        new = activation(new)
        keep, seed = self._dropout
        if not isinstance(keep, float) or keep < 1:
            new = tf1.nn.dropout(new, keep, seed=seed)
        cell = cell * tf.sigmoid(f + forget_bias) + tf.sigmoid(i) * new
        if normed:
            cell = _normed_gates(cell, "state", *self._norm)
        output = activation(cell) * tf.sigmoid(o)
        return output, tf1.nn.rnn_cell.LSTMStateTuple(cell, output)


class HighwayWrapper(tf1.nn.rnn_cell.RNNCell):
    """A cell whose outputs are mixed with its inputs."""

    def __init__(self, cell, couple_carry_transform_gates=True, carry_bias_init=1.0):
        super().__init__()
        self._cell = cell
        self._couples, self._bias = couple_carry_transform_gates, carry_bias_init

    @property
    def state_size(self):
        return self._cell.state_size

    @property
    def output_size(self):
        return self._cell.output_size

    def zero_state(self, batch_size, dtype):
        return self._cell.zero_state(batch_size, dtype)

    def __call__(self, inputs, state, scope=None):
        outputs, state = self._cell(inputs, state, scope=scope)

        def mix(one, output):
            size = one.shape.as_list()[1]
            carry = _highway_gate(one, "carry", size, self._bias)
            passed = 1 - carry if self._couples else _highway_gate(one, "transform", size, -self._bias)
            return one * carry + output * passed

        tf.nest.map_structure(lambda one, other: one.shape.assert_is_compatible_with(other.shape), inputs, outputs)
        return tf.nest.map_structure(mix, inputs, outputs), state


def _highway_gate(inputs, name, size, bias):
    kernel = tf1.get_variable(f"{name}_w", [size, size], inputs.dtype)
    bias = tf1.get_variable(f"{name}_b", [size], inputs.dtype, tf1.constant_initializer(bias))
    return tf.sigmoid(tf.matmul(inputs, kernel) + bias)


class InputProjectionWrapper(tf1.nn.rnn_cell.RNNCell):
    """A cell with a dense layer before it."""

    def __init__(self, cell, num_proj, activation=None, input_size=None, reuse=None):
        super().__init__(_reuse=reuse)
        self._cell, self._num_proj, self._activation = cell, num_proj, activation

    @property
    def state_size(self):
        return self._cell.state_size

    @property
    def output_size(self):
        return self._cell.output_size

    def zero_state(self, batch_size, dtype):
        return self._cell.zero_state(batch_size, dtype)

    def call(self, inputs, state):
        made = _cell_linear([inputs], self._num_proj)
        return self._cell(made if self._activation is None else self._activation(made), state)


class OutputProjectionWrapper(tf1.nn.rnn_cell.RNNCell):
    """A cell with a dense layer behind it."""

    def __init__(self, cell, output_size, activation=None, reuse=None):
        if output_size < 1:
            raise ValueError(f"Parameter output_size must be > 0: {output_size}.")
        super().__init__(_reuse=reuse)
        self._cell, self._size, self._activation = cell, output_size, activation

    @property
    def state_size(self):
        return self._cell.state_size

    @property
    def output_size(self):
        return self._size

    def zero_state(self, batch_size, dtype):
        return self._cell.zero_state(batch_size, dtype)

    def call(self, inputs, state):
        output, state = self._cell(inputs, state)
        made = _cell_linear([output], self._size)
        return made if self._activation is None else self._activation(made), state


class EmbeddingWrapper(tf1.nn.rnn_cell.RNNCell):
    """A cell with an embedding before it."""

    def __init__(self, cell, embedding_classes, embedding_size, initializer=None, reuse=None):
        if embedding_classes <= 0 or embedding_size <= 0:
            raise ValueError(f"Both embedding_classes and embedding_size must be > 0: {embedding_classes}.")
        super().__init__(_reuse=reuse)
        self._cell, self._shape, self._initializer = cell, [embedding_classes, embedding_size], initializer

    @property
    def state_size(self):
        return self._cell.state_size

    @property
    def output_size(self):
        return self._cell.output_size

    def zero_state(self, batch_size, dtype):
        return self._cell.zero_state(batch_size, dtype)

    def call(self, inputs, state):
        limit = np.sqrt(3)  # variance 1
        first = self._initializer or tf1.get_variable_scope().initializer
        first = first or tf1.random_uniform_initializer(-limit, limit)
        dtype = tf.nest.flatten(state)[0].dtype
        embedding = tf1.get_variable("embedding", self._shape, dtype, first)
        return self._cell(tf1.nn.embedding_lookup(embedding, tf.reshape(inputs, [-1])), state)


class AttentionCellWrapper(tf1.nn.rnn_cell.RNNCell):
    """A cell that looks at its last `attn_length` outputs."""

    def __init__(
        self,
        cell,
        attn_length,
        attn_size=None,
        attn_vec_size=None,
        input_size=None,
        state_is_tuple=True,
        reuse=None,
    ):
        super().__init__(_reuse=reuse)
        if not state_is_tuple:
            raise ValueError("AttentionCellWrapper has its state as a tuple here: state_is_tuple=False is no more.")
        if attn_length <= 0:
            raise ValueError(f"attn_length should be greater than zero, got {attn_length}")
        size = cell.output_size if attn_size is None else attn_size
        self._cell, self._length, self._size = cell, attn_length, size
        self._vec_size = size if attn_vec_size is None else attn_vec_size
        self._input_size = input_size

    @property
    def state_size(self):
        return self._cell.state_size, self._size, self._size * self._length

    @property
    def output_size(self):
        return self._size

    def call(self, inputs, state):
        state, found, seen = state
        seen = tf.reshape(seen, [-1, self._length, self._size])
        size = self._input_size or inputs.shape.as_list()[1]
        output, state = self._cell(_cell_linear([inputs, found], size), state)
        with tf1.variable_scope("attention"):
            kernel = tf1.get_variable("attn_w", [1, 1, self._size, self._vec_size], inputs.dtype)
            weights = tf1.get_variable("attn_v", [self._vec_size], inputs.dtype)
            query = _cell_linear(tf.nest.flatten(state), self._vec_size)[:, tf.newaxis]
            keys = tf.tensordot(seen, kernel[0, 0], 1)
            alignments = tf.nn.softmax(tf.reduce_sum(weights * tf.tanh(keys + query), 2))
        found = tf.reduce_sum(alignments[:, :, tf.newaxis] * seen, 1)
        with tf1.variable_scope("attn_output_projection"):
            output = _cell_linear([output, found], self._size)
        seen = tf.concat([seen[:, 1:], output[:, tf.newaxis]], 1)
        return output, (state, found, tf.reshape(seen, [-1, self._length * self._size]))


class GRUBlockCell(tf1.nn.rnn_cell.RNNCell):
    """A GRU, under names of its own."""

    _names = ("w_ru", "b_ru", "w_c", "b_c")

    def __init__(self, num_units=None, cell_size=None, reuse=None, name="gru_cell"):
        super().__init__(_reuse=reuse, name=name)
        if (num_units is None) == (cell_size is None):
            raise ValueError("Exactly one of num_units or cell_size must be provided.")
        self._units = num_units or cell_size

    @property
    def state_size(self):
        return self._units

    @property
    def output_size(self):
        return self._units

    def build(self, inputs_shape):
        size = tf.TensorShape(inputs_shape).as_list()[1] + self._units
        w_ru, b_ru, w_c, b_c = self._names
        self._w_ru = self.add_weight(w_ru, [size, 2 * self._units])
        self._b_ru = self.add_weight(b_ru, [2 * self._units], initializer=tf1.ones_initializer())
        self._w_c = self.add_weight(w_c, [size, self._units])
        self._b_c = self.add_weight(b_c, [self._units], initializer=tf1.zeros_initializer())
        self.built = True

    def call(self, inputs, state):
        gates = tf.sigmoid(tf.matmul(tf.concat([inputs, state], 1), self._w_ru) + self._b_ru)
        r, u = tf.split(gates, 2, axis=1)
        new = tf.tanh(tf.matmul(tf.concat([inputs, r * state], 1), self._w_c) + self._b_c)
        state = u * state + (1 - u) * new
        return state, state


class GRUBlockCellV2(GRUBlockCell):
    """A GRU, under the names of GRUCell."""

    _names = ("gates/kernel", "gates/bias", "candidate/kernel", "candidate/bias")


class UGRNNCell(tf1.nn.rnn_cell.RNNCell):
    """A recurrent cell with one gate, of what it updates."""

    def __init__(self, num_units, initializer=None, forget_bias=1.0, activation=tf.tanh, reuse=None):
        super().__init__(_reuse=reuse)
        self._units, self._initializer = num_units, initializer
        self._settings = forget_bias, activation

    @property
    def state_size(self):
        return self._units

    @property
    def output_size(self):
        return self._units

    def call(self, inputs, state):
        forget_bias, activation = self._settings
        with tf1.variable_scope(tf1.get_variable_scope(), initializer=self._initializer):
            gate, new = tf.split(_cell_linear([inputs, state], 2 * self._units), 2, axis=1)
        gate = tf.sigmoid(gate + forget_bias)
        state = gate * state + (1 - gate) * activation(new)
        return state, state


class NASCell(tf1.nn.rnn_cell.RNNCell):
    """The recurrent cell that neural architecture search found.

    Args:
        num_units: size of the cell.
        num_proj: size that the output is projected to; None: it is not.
        use_bias: whether there is a bias.
        reuse: whether the variables are those of the scope.
    """

    def __init__(self, num_units, num_proj=None, use_bias=False, reuse=None, **kwargs):
        super().__init__(_reuse=reuse, **kwargs)
        self._units, self._projected, self._use_bias = num_units, num_proj, use_bias
        self._size = num_units if num_proj is None else num_proj

    @property
    def state_size(self):
        return tf1.nn.rnn_cell.LSTMStateTuple(self._units, self._size)

    @property
    def output_size(self):
        return self._size

    def call(self, inputs, state):
        old, output = state
        recurrent_kernel = tf1.get_variable("recurrent_kernel", [self._size, 8 * self._units])
        kernel = tf1.get_variable("kernel", [inputs.shape[1], 8 * self._units])
        of_output, of_inputs = tf.matmul(output, recurrent_kernel), tf.matmul(inputs, kernel)
        if self._use_bias:
            of_output += tf1.get_variable("bias", [8 * self._units], initializer=tf1.zeros_initializer())
        both = list(zip(tf.split(of_inputs, 8, axis=1), tf.split(of_output, 8, axis=1), strict=True))
        sums = [one + other for one, other in both]
        gate = tf.tanh(tf.sigmoid(sums[0]) * tf.nn.relu(sums[1]))
        new = tf.tanh(gate + old) * tf.tanh(tf.sigmoid(sums[2]) + tf.nn.relu(both[3][0] * both[3][1]))
        reads = tf.tanh(tf.tanh(sums[4]) * tf.sigmoid(sums[5])) + tf.sigmoid(tf.tanh(sums[6]) + tf.sigmoid(sums[7]))
        output = tf.tanh(new * tf.tanh(reads))
        if self._projected is not None:
            output = tf.matmul(output, tf1.get_variable("projection_weights", [self._units, self._projected]))
        return output, tf1.nn.rnn_cell.LSTMStateTuple(new, output)


class ConvLSTMCell(tf1.nn.rnn_cell.RNNCell):
    """An LSTM of convolutions."""

    def __init__(
        self,
        conv_ndims,
        input_shape,
        output_channels,
        kernel_shape,
        use_bias=True,
        skip_connection=False,
        forget_bias=1.0,
        initializers=None,
        name="conv_lstm_cell",
    ):
        super().__init__(name=name)
        if conv_ndims != len(input_shape) - 1:
            raise ValueError(f"Invalid input_shape {input_shape} for conv_ndims={conv_ndims}.")
        self._kernel_shape = list(kernel_shape)
        self._channels, self._use_bias, self._skips = output_channels, use_bias, skip_connection
        self._forget_bias = forget_bias
        state = tf.TensorShape([*input_shape[:-1], output_channels])
        self._state_size = tf1.nn.rnn_cell.LSTMStateTuple(state, state)
        more = input_shape[-1] if skip_connection else 0
        self._output_size = tf.TensorShape([*input_shape[:-1], output_channels + more])

    @property
    def state_size(self):
        return self._state_size

    @property
    def output_size(self):
        return self._output_size

    def call(self, inputs, state, scope=None):
        cell, hidden = state
        both = tf.concat([inputs, hidden], -1)
        shape = [*self._kernel_shape, both.shape.as_list()[-1], 4 * self._channels]
        gates = tf.nn.convolution(both, tf1.get_variable("kernel", shape, both.dtype), padding="SAME")
        if self._use_bias:
            gates += tf1.get_variable("biases", [4 * self._channels], both.dtype, tf1.zeros_initializer())
        i, new, f, o = tf.split(gates, 4, axis=-1)
        cell = tf.sigmoid(f + self._forget_bias) * cell + tf.sigmoid(i) * tf.tanh(new)
        output = tf.tanh(cell) * tf.sigmoid(o)
        if self._skips:
            output = tf.concat([output, inputs], -1)
        return output, tf1.nn.rnn_cell.LSTMStateTuple(cell, output)


class Conv1DLSTMCell(ConvLSTMCell):
    """An LSTM of convolutions over one dimension."""

    def __init__(self, name="conv_1d_lstm_cell", **kwargs):
        super().__init__(conv_ndims=1, name=name, **kwargs)


class Conv2DLSTMCell(ConvLSTMCell):
    """An LSTM of convolutions over two dimensions."""

    def __init__(self, name="conv_2d_lstm_cell", **kwargs):
        super().__init__(conv_ndims=2, name=name, **kwargs)


class Conv3DLSTMCell(ConvLSTMCell):
    """An LSTM of convolutions over three dimensions."""

    def __init__(self, name="conv_3d_lstm_cell", **kwargs):
        super().__init__(conv_ndims=3, name=name, **kwargs)


class CoupledInputForgetGateLSTMCell(tf1.nn.rnn_cell.RNNCell):
    """An LSTM that forgets as much as it takes in. As in TensorFlow 1, `initializer` is not used."""

    def __init__(
        self,
        num_units,
        use_peepholes=False,
        initializer=None,
        num_proj=None,
        proj_clip=None,
        num_unit_shards=1,
        num_proj_shards=1,
        forget_bias=1.0,
        state_is_tuple=True,
        activation=tf.tanh,
        reuse=None,
        layer_norm=False,
        norm_gain=1.0,
        norm_shift=0.0,
    ):
        super().__init__(_reuse=reuse)
        self._units, self._size, self._is_tuple = num_units, num_proj or num_units, state_is_tuple
        self._settings = use_peepholes, forget_bias, activation
        self._projection = num_proj, proj_clip
        self._shards = num_unit_shards, num_proj_shards
        self._norm = (norm_gain, norm_shift) if layer_norm else None

    @property
    def state_size(self):
        if self._is_tuple:
            return tf1.nn.rnn_cell.LSTMStateTuple(self._units, self._size)
        return self._units + self._size

    @property
    def output_size(self):
        return self._size

    def _gate(self, inputs, name):
        return _normed_gates(inputs, name, *self._norm) if self._norm else inputs

    def call(self, inputs, state):
        peeps, forget_bias, activation = self._settings
        old, output = state if self._is_tuple else tf.split(state, [self._units, self._size], axis=1)
        both, dtype = tf.concat([inputs, output], 1), inputs.dtype
        kernel = _in_shards("W", [both.shape.as_list()[1], 3 * self._units], dtype, self._shards[0])
        bias = tf1.get_variable("B", [3 * self._units], dtype, tf1.zeros_initializer())
        gates = tf.matmul(both, kernel)
        new, f, o = tf.split(gates if self._norm else gates + bias, 3, axis=1)
        new, f, o = self._gate(new, "transform"), self._gate(f, "forget"), self._gate(o, "output")
        f += forget_bias
        if peeps:
            of_forget = tf1.get_variable("W_F_diag", [self._units], dtype)
            of_output = tf1.get_variable("W_O_diag", [self._units], dtype)
            f += of_forget * old
        f = tf.sigmoid(f)
        cell = self._gate(f * old + (1 - f) * activation(new), "state")
        if peeps:
            o += of_output * cell
        output = tf.sigmoid(o) * activation(cell)
        size, clip = self._projection
        if size is not None:
            output = tf.matmul(output, _in_shards("W_P", [self._units, size], dtype, self._shards[1]))
            if clip is not None:
                output = tf.clip_by_value(output, -clip, clip)
        if self._is_tuple:
            return output, tf1.nn.rnn_cell.LSTMStateTuple(cell, output)
        return output, tf.concat([cell, output], 1)


def _in_shards(name, shape, dtype, count):
    """A matrix of which `count` variables hold the rows."""
    rows, more = divmod(shape[0], count)
    if not rows:
        raise ValueError(f"{count} shards are too many for {shape[0]} rows.")
    sizes = [rows + (number < more) for number in range(count)]
    shards = [tf1.get_variable(f"{name}_{number}", [one, shape[1]], dtype) for number, one in enumerate(sizes)]
    return tf.concat(shards, 0)


class IntersectionRNNCell(tf1.nn.rnn_cell.RNNCell):
    """A cell that passes its state on through time, and its inputs through depth."""

    def __init__(
        self, num_units, num_in_proj=None, initializer=None, forget_bias=1.0, y_activation=tf.nn.relu, reuse=None
    ):
        super().__init__(_reuse=reuse)
        self._units, self._projects, self._initializer = num_units, bool(num_in_proj), initializer
        self._settings = forget_bias, y_activation

    @property
    def state_size(self):
        return self._units

    @property
    def output_size(self):
        return self._units

    def call(self, inputs, state):
        forget_bias, activation = self._settings
        with tf1.variable_scope(tf1.get_variable_scope(), initializer=self._initializer):
            if inputs.shape.as_list()[1] != self._units:
                if not self._projects:
                    raise ValueError(f"Inputs of this cell have size {self._units}, or num_in_proj projects them.")
                with tf1.variable_scope("in_projection"):
                    inputs = _cell_linear([inputs], self._units)
            in_time, new, in_depth, passed = tf.split(_cell_linear([inputs, state], 4 * self._units), 4, axis=1)
        in_time, in_depth = tf.sigmoid(in_time + forget_bias), tf.sigmoid(in_depth + forget_bias)
        state = in_time * state + (1 - in_time) * tf.tanh(new)
        return in_depth * inputs + (1 - in_depth) * activation(passed), state


class PhasedLSTMCell(tf1.nn.rnn_cell.RNNCell):
    """An LSTM whose inputs are times [batch, 1] and features, and that is open for a part of each period."""

    def __init__(
        self,
        num_units,
        use_peepholes=False,
        leak=0.001,
        ratio_on=0.1,
        trainable_ratio_on=True,
        period_init_min=1.0,
        period_init_max=1000.0,
        reuse=None,
    ):
        super().__init__(_reuse=reuse, autocast=False)
        self._units, self._peeps, self._leak = num_units, use_peepholes, leak
        self._ratio = ratio_on, trainable_ratio_on
        self._period = period_init_min, period_init_max

    @property
    def state_size(self):
        return tf1.nn.rnn_cell.LSTMStateTuple(self._units, self._units)

    @property
    def output_size(self):
        return self._units

    def _openness(self, time):
        """How open the cell is, between 0 and 1, [batch, units]."""
        low, high = (np.log(one) for one in self._period)

        def spread(shape, dtype=tf.float32, partition_info=None):
            return tf.exp(tf.random.uniform(shape, low, high, dtype))

        period = tf1.get_variable("period", [self._units], initializer=spread)
        first = tf1.random_uniform_initializer(0.0, period.initial_value)
        phase = tf1.get_variable("phase", [self._units], initializer=first)
        start, trainable = self._ratio
        start = tf1.constant_initializer(start)
        ratio_on = tf1.get_variable("ratio_on", [self._units], initializer=start, trainable=trainable)
        period = tf.cast(period, time.dtype)
        shifted = time - tf.cast(phase, time.dtype)
        # Gradients go through the remainder as if it were the number itself.
        remainder = tf.stop_gradient(tf.math.floormod(shifted, period) - shifted) + shifted
        ratio = tf.cast(remainder / period, tf.float32)
        rises = 2 * ratio / ratio_on
        falls = tf.where(ratio < ratio_on, 2 - rises, self._leak * ratio)
        return tf.where(ratio < 0.5 * ratio_on, rises, falls)

    def call(self, inputs, state):
        old, output = state
        time, features = inputs
        both = [features, output]
        with tf1.variable_scope("mask_gates"):
            gates = tf.sigmoid(_cell_linear([*both, old] if self._peeps else both, 2 * self._units))
            i, f = tf.split(gates, 2, axis=1)
        with tf1.variable_scope("new_input"):
            new = tf.tanh(_cell_linear(both, self._units))
        cell = old * f + i * new
        with tf1.variable_scope("output_gate"):
            o = tf.sigmoid(_cell_linear([*both, cell] if self._peeps else both, self._units))
        opened = self._openness(time)
        output = opened * tf.tanh(cell) * o + (1 - opened) * output
        return output, tf1.nn.rnn_cell.LSTMStateTuple(opened * cell + (1 - opened) * old, output)


class GLSTMCell(tf1.nn.rnn_cell.RNNCell):
    """An LSTM of groups, of which each reads its part of the inputs and of the outputs before."""

    def __init__(
        self,
        num_units,
        initializer=None,
        num_proj=None,
        number_of_groups=1,
        forget_bias=1.0,
        activation=tf.tanh,
        reuse=None,
    ):
        super().__init__(_reuse=reuse)
        if num_units % number_of_groups or (num_proj or 0) % number_of_groups:
            raise ValueError(f"num_units and num_proj have to be multiples of number_of_groups, {number_of_groups}.")
        self._units, self._size, self._projected = num_units, num_proj or num_units, num_proj
        self._groups, self._initializer = number_of_groups, initializer
        self._settings = forget_bias, activation

    @property
    def state_size(self):
        return tf1.nn.rnn_cell.LSTMStateTuple(self._units, self._size)

    @property
    def output_size(self):
        return self._size

    def call(self, inputs, state):
        old, output = state
        forget_bias, activation = self._settings
        if inputs.shape.as_list()[1] % self._groups:
            raise ValueError(f"The size of inputs {inputs.shape} has to be a multiple of {self._groups}, the groups.")
        parts = zip(tf.split(inputs, self._groups, axis=1), tf.split(output, self._groups, axis=1), strict=True)
        with tf1.variable_scope(tf1.get_variable_scope(), initializer=self._initializer):
            gates = []
            for number, both in enumerate(parts):
                with tf1.variable_scope(f"group{number}"):
                    made = _cell_linear(both, 4 * self._units // self._groups, has_bias=False)
                    gates.append(tf.split(made, 4, axis=1))
            i, new, f, o = (
                tf.concat(of_groups, 1)
                + tf1.get_variable(f"bias_{name}", [self._units], inputs.dtype, tf1.zeros_initializer())
                for name, of_groups in zip("ijfo", zip(*gates, strict=True), strict=True)
            )
        cell = tf.sigmoid(f + forget_bias) * old + tf.sigmoid(i) * tf.tanh(new)
        output = tf.sigmoid(o) * activation(cell)
        if self._projected is not None:
            with tf1.variable_scope("projection"):
                output = _cell_linear([output], self._projected, has_bias=False)
        return output, tf1.nn.rnn_cell.LSTMStateTuple(cell, output)


class LayerRNNCell(tf1.nn.rnn_cell.RNNCell):
    """A cell whose `build` makes its variables with `add_weight`, under the name of the layer."""

    def __call__(self, inputs, state, scope=None, *args, **kwargs):
        # Not that of RNNCell, which makes variables in the scope of the caller.
        return super(tf1.nn.rnn_cell.RNNCell, self).__call__(inputs, state, *args, scope=scope, **kwargs)

    def _depth(self, inputs_shape):
        depth = tf.TensorShape(inputs_shape).as_list()[1]
        if depth is None:
            raise ValueError(f"The last size of inputs has to be known: {inputs_shape}")
        return depth

    def _weights(self, depth, units, names, kernel_initializer=None, bias_initializer=None):
        """A kernel for inputs, one for the state, of which each unit reads its own number, and a bias."""
        return (
            self.add_weight(names[0], [depth, units], initializer=kernel_initializer),
            self.add_weight(names[1], [1, units], initializer=tf1.random_uniform_initializer(-1, 1)),
            self.add_weight(names[2], [units], initializer=bias_initializer or tf1.zeros_initializer()),
        )


class SRUCell(LayerRNNCell):
    """A cell whose gates read the inputs alone."""

    def __init__(self, num_units, activation=None, reuse=None, name=None, **kwargs):
        super().__init__(_reuse=reuse, name=name, **kwargs)
        self._units, self._activation = num_units, activation or tf.tanh

    @property
    def state_size(self):
        return self._units

    @property
    def output_size(self):
        return self._units

    def build(self, inputs_shape):
        self._kernel = self.add_weight("kernel", [self._depth(inputs_shape), 4 * self._units])
        self._bias = self.add_weight("bias", [2 * self._units], initializer=tf1.zeros_initializer())
        self.built = True

    def call(self, inputs, state):
        new, f, r, passed = tf.split(tf.matmul(inputs, self._kernel), 4, axis=1)
        f, r = tf.split(tf.sigmoid(tf.concat([f, r], 1) + self._bias), 2, axis=1)
        state = f * state + (1 - f) * new
        return r * self._activation(state) + (1 - r) * passed, state


class IndRNNCell(LayerRNNCell):
    """A cell of units that do not read each other."""

    def __init__(self, num_units, activation=None, reuse=None, name=None, dtype=None):
        super().__init__(_reuse=reuse, name=name, dtype=dtype)
        self._units, self._activation = num_units, activation or tf.tanh

    @property
    def state_size(self):
        return self._units

    @property
    def output_size(self):
        return self._units

    def build(self, inputs_shape):
        self._own = self._weights(self._depth(inputs_shape), self._units, ("kernel_w", "kernel_u", "bias"))
        self.built = True

    def call(self, inputs, state):
        kernel, of_state, bias = self._own
        state = self._activation(tf.matmul(inputs, kernel) + state * of_state + bias)
        return state, state


class IndyGRUCell(LayerRNNCell):
    """A GRU of units that do not read each other."""

    def __init__(
        self,
        num_units,
        activation=None,
        reuse=None,
        kernel_initializer=None,
        bias_initializer=None,
        name=None,
        dtype=None,
    ):
        super().__init__(_reuse=reuse, name=name, dtype=dtype)
        self._units, self._activation = num_units, activation or tf.tanh
        self._initializers = kernel_initializer, bias_initializer

    @property
    def state_size(self):
        return self._units

    @property
    def output_size(self):
        return self._units

    def build(self, inputs_shape):
        depth, (kernel, bias) = self._depth(inputs_shape), self._initializers
        names = "gates/kernel_w", "gates/kernel_u", "gates/bias"
        self._gates = self._weights(depth, 2 * self._units, names, kernel, bias or tf1.ones_initializer())
        names = "candidate/kernel", "candidate/kernel_u", "candidate/bias"
        self._candidate = self._weights(depth, self._units, names, kernel, bias)
        self.built = True

    def call(self, inputs, state):
        kernel, of_state, bias = self._gates
        gates = tf.matmul(inputs, kernel) + tf.tile(state, [1, 2]) * of_state + bias
        r, u = tf.split(tf.sigmoid(gates), 2, axis=1)
        kernel, of_state, bias = self._candidate
        new = self._activation(tf.matmul(inputs, kernel) + r * state * of_state + bias)
        state = u * state + (1 - u) * new
        return state, state


class IndyLSTMCell(LayerRNNCell):
    """An LSTM of units that do not read each other."""

    def __init__(
        self,
        num_units,
        forget_bias=1.0,
        activation=None,
        reuse=None,
        kernel_initializer=None,
        bias_initializer=None,
        name=None,
        dtype=None,
    ):
        super().__init__(_reuse=reuse, name=name, dtype=dtype)
        self._units, self._activation = num_units, activation or tf.tanh
        self._forget_bias, self._initializers = forget_bias, (kernel_initializer, bias_initializer)

    @property
    def state_size(self):
        return tf1.nn.rnn_cell.LSTMStateTuple(self._units, self._units)

    @property
    def output_size(self):
        return self._units

    def build(self, inputs_shape):
        names = "kernel_w", "kernel_u", "bias"
        self._own = self._weights(self._depth(inputs_shape), 4 * self._units, names, *self._initializers)
        self.built = True

    def call(self, inputs, state):
        (cell, output), (kernel, of_state, bias) = state, self._own
        gates = tf.matmul(inputs, kernel) + tf.tile(output, [1, 4]) * of_state + bias
        i, new, f, o = tf.split(gates, 4, axis=1)
        cell = cell * tf.sigmoid(f + self._forget_bias) + tf.sigmoid(i) * self._activation(new)
        output = self._activation(cell) * tf.sigmoid(o)
        return output, tf1.nn.rnn_cell.LSTMStateTuple(cell, output)


def transpose_batch_time(x):
    """A tensor with its first two dimensions the other way round; others as they are."""
    if x.shape.rank is not None and x.shape.rank < 2:
        return x
    return tf.transpose(x, tf.concat([[1, 0], tf.range(2, tf.rank(x))], 0))


def stack_bidirectional_rnn(
    cells_fw,
    cells_bw,
    inputs,
    initial_states_fw=None,
    initial_states_bw=None,
    dtype=None,
    sequence_length=None,
    scope=None,
):
    """Layers of two directions over a list of steps, of which each reads what both of the layer before gave."""
    if not cells_fw or not cells_bw or len(cells_fw) != len(cells_bw):
        raise ValueError("Forward and Backward cells must have the same depth, of one at least.")
    none = [None] * len(cells_fw)
    states = []
    with tf1.variable_scope(scope or "stack_bidirectional_rnn"):
        pairs = zip(cells_fw, cells_bw, initial_states_fw or none, initial_states_bw or none, strict=True)
        for number, (forward, backward, first, first_backward) in enumerate(pairs):
            with tf1.variable_scope(f"cell_{number}") as of_cell:
                inputs, *last = tf1.nn.static_bidirectional_rnn(
                    forward, backward, inputs, first, first_backward, dtype, sequence_length, of_cell
                )
            states.append(last)
    forward_states, backward_states = zip(*states, strict=True)
    return inputs, forward_states, backward_states
