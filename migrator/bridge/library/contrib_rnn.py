"""What tf.contrib.rnn had of fused LSTMs, and stacks of two directions; embeddings of sequences."""

from __future__ import annotations

import tensorflow as tf
import tensorflow.compat.v1 as tf1


class LSTMBlockFusedCell(tf1.layers.Layer):
    """An LSTM over whole sequences, [time, batch, features], as one operation."""

    def __init__(
        self,
        num_units,
        forget_bias=1.0,
        cell_clip=None,
        use_peephole=False,
        reuse=None,
        dtype=None,
        name="lstm_fused_cell",
    ):
        super().__init__(_reuse=reuse, name=name, dtype=dtype)
        self.num_units = num_units
        self._forget_bias = forget_bias
        self._cell_clip = -1.0 if cell_clip is None else cell_clip
        self._use_peephole = use_peephole
        self._peepholes = None

    def build(self, input_shape):
        units = self.num_units
        features = tf.TensorShape(input_shape).as_list()[2]
        self._kernel = self.add_weight("kernel", [features + units, 4 * units])
        self._bias = self.add_weight("bias", [4 * units], initializer=tf1.zeros_initializer())
        if self._use_peephole:
            self._peepholes = [self.add_weight(f"w_{gate}_diag", [units]) for gate in "ifo"]
        self.built = True

    def call(self, inputs, initial_state=None, dtype=None, sequence_length=None):
        """The outputs, [time, batch, units], and the last state."""
        time, batch = tf.shape(inputs)[0], tf.shape(inputs)[1]
        if initial_state is None:
            if dtype is None:
                raise ValueError("Either initial_state or dtype needs to be specified")
            initial_state = [tf.zeros([batch, self.num_units], dtype)] * 2
        cell, output = initial_state
        longest = time if sequence_length is None else tf.reduce_max(sequence_length)
        w_i, w_f, w_o = self._peepholes or [tf.zeros([self.num_units], cell.dtype)] * 3
        made = tf.raw_ops.BlockLSTM(
            seq_len_max=tf.cast(longest, tf.int64),
            x=inputs,
            cs_prev=cell,
            h_prev=output,
            w=self._kernel,
            wci=w_i,
            wcf=w_f,
            wco=w_o,
            b=self._bias,
            forget_bias=self._forget_bias,
            cell_clip=self._cell_clip,
            use_peephole=self._use_peephole,
        )
        cells, outputs = made.cs, made.h
        if sequence_length is None:
            last = cells[-1], outputs[-1]
        else:
            lengths = tf.cast(sequence_length, tf.int32)
            outputs *= tf.transpose(tf.sequence_mask(lengths, time, outputs.dtype))[:, :, None]
            places = tf.stack([lengths, tf.range(batch)], axis=1)
            last = [
                tf.gather_nd(tf.concat([first[None], some], 0), places)
                for first, some in ((cell, cells), (output, outputs))
            ]
        return outputs, tf1.nn.rnn_cell.LSTMStateTuple(*last)


class LSTMBlockCell(tf1.nn.rnn_cell.RNNCell):
    """One step of an LSTM, under the names of LSTMCell."""

    def __init__(
        self,
        num_units,
        forget_bias=1.0,
        cell_clip=None,
        use_peephole=False,
        dtype=None,
        reuse=None,
        name="lstm_cell",
    ):
        super().__init__(_reuse=reuse, dtype=dtype, name=name)
        self._fused = num_units, forget_bias, -1.0 if cell_clip is None else cell_clip, use_peephole
        self._peepholes = None

    @property
    def state_size(self):
        return tf1.nn.rnn_cell.LSTMStateTuple(self._fused[0], self._fused[0])

    @property
    def output_size(self):
        return self._fused[0]

    def build(self, inputs_shape):
        units = self._fused[0]
        features = tf.TensorShape(inputs_shape).as_list()[1]
        self._kernel = self.add_weight("kernel", [features + units, 4 * units])
        self._bias = self.add_weight("bias", [4 * units], initializer=tf1.zeros_initializer())
        if self._fused[3]:
            self._peepholes = [self.add_weight(f"w_{gate}_diag", [units]) for gate in "ifo"]
        self.built = True

    def call(self, inputs, state):
        _, forget_bias, cell_clip, _ = self._fused
        cell, output = state
        gates = tf.matmul(tf.concat([inputs, output], 1), self._kernel) + self._bias
        i, new, f, o = tf.split(gates, 4, axis=1)
        w_i, w_f, w_o = self._peepholes or [0.0, 0.0, 0.0]
        i, f = tf.sigmoid(i + cell * w_i), tf.sigmoid(f + forget_bias + cell * w_f)
        cell = i * tf.tanh(new) + f * cell
        if cell_clip > 0:
            cell = tf.clip_by_value(cell, -cell_clip, cell_clip)
        output = tf.sigmoid(o + cell * w_o) * tf.tanh(cell)
        return output, tf1.nn.rnn_cell.LSTMStateTuple(cell, output)


class CudnnCompatibleLSTMCell(LSTMBlockCell):
    """An LSTM with the weights of cuDNN's, on any device: nothing is added to its forget gate."""

    def __init__(self, num_units, reuse=None):
        super().__init__(num_units, forget_bias=0.0, reuse=reuse, name="cudnn_compatible_lstm_cell")


class CudnnCompatibleGRUCell(tf1.nn.rnn_cell.GRUCell):
    """A GRU with the weights of cuDNN's, on any device: its reset gate acts behind a product of its own."""

    def __init__(self, num_units, reuse=None, kernel_initializer=None):
        super().__init__(num_units, reuse=reuse, kernel_initializer=kernel_initializer)

    def build(self, inputs_shape):
        inputs, units = int(inputs_shape[1]), self._num_units

        def kernel(name, rows, columns):
            return self.add_variable(f"{name}/kernel", [rows, columns], initializer=self._kernel_initializer)

        def bias(name, columns, value):
            constant = tf1.constant_initializer(value, dtype=self.dtype)
            return self.add_variable(f"{name}/bias", [columns], initializer=constant)

        self._gates = kernel("gates", inputs + units, 2 * units), bias("gates", 2 * units, 1.0)
        # Both kernels come before both biases, as among the variables of TensorFlow 1.
        names = ("candidate/input_projection", "candidate/hidden_projection")
        kernels = [kernel(name, rows, units) for name, rows in zip(names, (inputs, units), strict=True)]
        biases = [bias(name, units, 0.0) for name in names]
        self._of_inputs, self._of_state = zip(kernels, biases, strict=True)
        self.built = True

    def call(self, inputs, state):
        def dense(values, weights):
            return tf.nn.bias_add(tf.matmul(values, weights[0]), weights[1])

        reset, update = tf.split(tf.sigmoid(dense(tf.concat([inputs, state], 1), self._gates)), 2, axis=1)
        candidate = self._activation(dense(inputs, self._of_inputs) + reset * dense(state, self._of_state))
        new = (1 - update) * candidate + update * state
        return new, new


class TimeReversedFusedRNN:
    """A fused cell that goes through the sequences from their ends."""

    def __init__(self, cell):
        self._cell = cell

    def __call__(self, inputs, initial_state=None, dtype=None, sequence_length=None, scope=None):
        settings = {} if scope is None else {"scope": scope}
        outputs, state = self._cell(
            _reversed(inputs, sequence_length),
            initial_state=initial_state,
            dtype=dtype,
            sequence_length=sequence_length,
            **settings,
        )
        return _reversed(outputs, sequence_length), state


def _reversed(steps, lengths):
    return tf.reverse(steps, [0]) if lengths is None else tf.reverse_sequence(steps, lengths, 0, 1)


def stack_bidirectional_dynamic_rnn(
    cells_fw,
    cells_bw,
    inputs,
    initial_states_fw=None,
    initial_states_bw=None,
    dtype=None,
    sequence_length=None,
    parallel_iterations=None,
    time_major=False,
    scope=None,
    swap_memory=False,
):
    """Layers of two directions, of which each reads what both of the layer before gave."""
    if not cells_fw or not cells_bw or len(cells_fw) != len(cells_bw):
        raise ValueError("Forward and Backward cells must have the same depth, of one at least.")
    none = [None] * len(cells_fw)
    states = []
    with tf1.variable_scope(scope or "stack_bidirectional_rnn"):
        pairs = zip(cells_fw, cells_bw, initial_states_fw or none, initial_states_bw or none, strict=True)
        for number, (forward, backward, first, first_backward) in enumerate(pairs):
            with tf1.variable_scope(f"cell_{number}"):
                outputs, last = tf1.nn.bidirectional_dynamic_rnn(
                    forward,
                    backward,
                    inputs,
                    sequence_length,
                    first,
                    first_backward,
                    dtype,
                    parallel_iterations,
                    swap_memory,
                    time_major,
                )
                inputs = tf.concat(outputs, 2)
            states.append(last)
    forward_states, backward_states = zip(*states, strict=True)
    return inputs, forward_states, backward_states


def embed_sequence(
    ids,
    vocab_size=None,
    embed_dim=None,
    unique=False,
    initializer=None,
    regularizer=None,
    trainable=True,
    scope=None,
    reuse=None,
):
    """The embeddings of ids; `unique` only saved work."""
    del unique
    if not (reuse or (vocab_size and embed_dim)):
        got = f"Got vocab_size={vocab_size} and embed_dim={embed_dim}"
        raise ValueError(f"Must specify vocab size and embedding dimension when not reusing. {got}")
    with tf1.variable_scope(scope, "EmbedSequence", [ids], reuse=reuse):
        keys = tf1.GraphKeys
        embeddings = tf1.get_variable(
            "embeddings",
            None if vocab_size is None or embed_dim is None else [vocab_size, embed_dim],
            initializer=initializer,
            regularizer=regularizer,
            trainable=trainable,
            collections=[keys.GLOBAL_VARIABLES, keys.MODEL_VARIABLES],
        )
        return tf1.nn.embedding_lookup(embeddings, ids)
