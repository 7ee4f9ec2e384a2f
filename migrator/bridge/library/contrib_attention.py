"""Attention over a memory, as tf.contrib.seq2seq had it: mechanisms, and cells that look at what they found."""

from __future__ import annotations

import collections
import types

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1


class AttentionMechanism:
    """How much a query is to look at each step of a memory, [batch, time, units]."""

    _scope = "attention"

    def __init__(self, num_units, memory, lengths, query_layer, probability_fn, mask_value, change, dtype):
        memory = tf.convert_to_tensor(memory)
        if not memory.shape[2:].is_fully_defined():
            raise ValueError(f"Expected memory to have fully defined inner dims, but saw shape: {memory.shape}")
        self._num_units = num_units
        self._probability_fn = probability_fn or tf.nn.softmax
        self._mask = None
        if lengths is not None:
            lengths = tf.convert_to_tensor(lengths)
            message = "All values in memory_sequence_length must be greater than zero."
            with tf.control_dependencies([tf1.assert_positive(lengths, message=message)]):
                self._mask = tf.sequence_mask(lengths, tf.shape(memory)[1])
            inside = tf.reshape(self._mask, tf.concat([tf.shape(self._mask), [1] * (memory.shape.rank - 2)], 0))
            memory *= tf.cast(inside, memory.dtype)
        self._dtype = tf.as_dtype(dtype or tf.float32)
        self._mask_value = -np.inf if mask_value is None else mask_value
        self.query_layer = query_layer
        self.memory_layer = tf1.layers.Dense(num_units, name="memory_layer", use_bias=False, dtype=self._dtype)
        self.values = memory
        self.keys = self.memory_layer(memory)
        if change is not None:
            self.keys, self.values = change(self.keys, self.values)
        size = tf1.dimension_value(self.keys.shape[0])
        self.batch_size = tf.shape(self.keys)[0] if size is None else size
        size = tf1.dimension_value(self.keys.shape[1])
        self.alignments_size = tf.shape(self.keys)[1] if size is None else size

    @property
    def state_size(self):
        return self.alignments_size

    def initial_alignments(self, batch_size, dtype):
        return tf.zeros([batch_size, self.alignments_size], dtype)

    def initial_state(self, batch_size, dtype):
        return self.initial_alignments(batch_size, dtype)

    def __call__(self, query, state):
        """How much it looks at each step, [batch, time], and its next state, which is the same."""
        with tf1.variable_scope(None, self._scope, [query]):
            score = self._score(query if self.query_layer is None else self.query_layer(query))
        if self._mask is not None:
            score = tf.where(self._mask, score, tf.cast(self._mask_value, score.dtype))
        alignments = self._probability(score, state)
        return alignments, alignments

    def _probability(self, score, state):
        del state
        return self._probability_fn(score)


class BahdanauAttention(AttentionMechanism):
    """Scores by the sum of query and memory, each in `num_units`."""

    _scope = "bahdanau_attention"

    def __init__(
        self,
        num_units,
        memory,
        memory_sequence_length=None,
        normalize=False,
        probability_fn=None,
        score_mask_value=None,
        dtype=None,
        custom_key_value_fn=None,
        name="BahdanauAttention",
    ):
        query_layer = tf1.layers.Dense(num_units, name="query_layer", use_bias=False, dtype=dtype or tf.float32)
        with tf1.name_scope(name):
            super().__init__(
                *(num_units, memory, memory_sequence_length, query_layer, probability_fn, score_mask_value),
                *(custom_key_value_fn, dtype),
            )
        self._normalize = normalize

    def _score(self, query):
        weights = tf1.get_variable("attention_v", [self._num_units], query.dtype)
        both = self.keys + query[:, tf.newaxis]
        if self._normalize:
            first = tf1.constant_initializer(np.sqrt(1.0 / self._num_units))
            scale = tf1.get_variable("attention_g", [], query.dtype, first)
            both += tf1.get_variable("attention_b", [self._num_units], query.dtype, tf1.zeros_initializer())
            weights = scale * weights * tf.math.rsqrt(tf.reduce_sum(tf.square(weights)))
        return tf.reduce_sum(weights * tf.tanh(both), 2)


class LuongAttention(AttentionMechanism):
    """Scores by the product of query and memory."""

    _scope = "luong_attention"

    def __init__(
        self,
        num_units,
        memory,
        memory_sequence_length=None,
        scale=False,
        probability_fn=None,
        score_mask_value=None,
        dtype=None,
        custom_key_value_fn=None,
        name="LuongAttention",
    ):
        with tf1.name_scope(name):
            super().__init__(
                *(num_units, memory, memory_sequence_length, None, probability_fn, score_mask_value),
                *(custom_key_value_fn, dtype),
            )
        self._scale = scale

    def _score(self, query):
        depths = [tf1.dimension_value(one.shape[-1]) for one in (query, self.keys)]
        if depths[0] != depths[1]:
            message = f"Query has {depths[0]} units and keys have {depths[1]}"
            raise ValueError(f"{message}: set num_units to the query's units (that of the cell's output).")
        score = tf.squeeze(tf.matmul(query[:, tf.newaxis], self.keys, transpose_b=True), 1)
        if self._scale:
            score *= tf1.get_variable("attention_g", [], query.dtype, tf1.ones_initializer())
        return score


class _Monotonic:
    """A mechanism that never looks at a step before the one that it looked at last."""

    def _move(self, bias, noise, seed, mode):
        self._monotonic = bias, noise, seed, mode

    def initial_alignments(self, batch_size, dtype):
        return tf.one_hot(tf.zeros([batch_size], tf.int32), self.alignments_size, dtype=dtype)

    def _score(self, query):
        score = super()._score(query)
        first = tf1.constant_initializer(self._monotonic[0])
        return score + tf1.get_variable("attention_score_bias", [], score.dtype, first)

    def _probability(self, score, state):
        _, noise, seed, mode = self._monotonic
        if noise > 0:
            score += noise * tf1.random_normal(tf.shape(score), dtype=score.dtype, seed=seed)
        chosen = tf.cast(score > 0, score.dtype) if mode == "hard" else tf.sigmoid(score)
        return monotonic_attention(chosen, state, mode)


class BahdanauMonotonicAttention(_Monotonic, BahdanauAttention):
    """BahdanauAttention that only goes forward."""

    _scope = "bahdanau_monotonic_attention"

    def __init__(
        self,
        num_units,
        memory,
        memory_sequence_length=None,
        normalize=False,
        score_mask_value=None,
        sigmoid_noise=0.0,
        sigmoid_noise_seed=None,
        score_bias_init=0.0,
        mode="parallel",
        dtype=None,
        name="BahdanauMonotonicAttention",
    ):
        super().__init__(
            *(num_units, memory, memory_sequence_length, normalize, None, score_mask_value, dtype, None, name)
        )
        self._move(score_bias_init, sigmoid_noise, sigmoid_noise_seed, mode)


class LuongMonotonicAttention(_Monotonic, LuongAttention):
    """LuongAttention that only goes forward."""

    _scope = "luong_monotonic_attention"

    def __init__(
        self,
        num_units,
        memory,
        memory_sequence_length=None,
        scale=False,
        score_mask_value=None,
        sigmoid_noise=0.0,
        sigmoid_noise_seed=None,
        score_bias_init=0.0,
        mode="parallel",
        dtype=None,
        name="LuongMonotonicAttention",
    ):
        super().__init__(*(num_units, memory, memory_sequence_length, scale, None, score_mask_value, dtype, None, name))
        self._move(score_bias_init, sigmoid_noise, sigmoid_noise_seed, mode)


def monotonic_attention(p_choose_i, previous_attention, mode):
    """The chance that each step is the one looked at next, [batch, time], from that of stopping at it."""
    chosen, before = tf.convert_to_tensor(p_choose_i), tf.convert_to_tensor(previous_attention)
    if mode == "hard":
        chosen *= tf.cumsum(before, axis=1)
        return chosen * tf.math.cumprod(1 - chosen, axis=1, exclusive=True)
    if mode == "parallel":
        passed = safe_cumprod(1 - chosen, axis=1, exclusive=True)
        return chosen * passed * tf.cumsum(before / tf.clip_by_value(passed, 1e-10, 1.0), axis=1)
    if mode != "recursive":
        raise ValueError("mode must be 'recursive', 'parallel', or 'hard'.")
    passed = tf.concat([tf.ones_like(chosen[:, :1]), 1 - chosen[:, :-1]], 1)
    steps = tf.transpose(passed), tf.transpose(before)
    reached = tf.scan(lambda last, one: one[0] * last + one[1], steps, tf.zeros_like(before[:, 0]))
    return chosen * tf.transpose(reached)


def safe_cumprod(x, *args, **kwargs):
    """A cumulative product of numbers between 0 and 1, as a sum of logarithms."""
    x = tf.convert_to_tensor(x)
    tiny = np.finfo(x.dtype.as_numpy_dtype).tiny
    return tf.exp(tf.cumsum(tf.math.log(tf.clip_by_value(x, tiny, 1)), *args, **kwargs))


def hardmax(logits, name=None):
    """One where the highest number of a row is, and zero elsewhere."""
    logits = tf.convert_to_tensor(logits)
    depth = tf1.dimension_value(logits.shape[-1])
    return tf.one_hot(tf.argmax(logits, -1), depth or tf.shape(logits)[-1], dtype=logits.dtype, name=name)


class AttentionWrapperState(
    collections.namedtuple(
        "AttentionWrapperState",
        ("cell_state", "attention", "time", "alignments", "alignment_history", "attention_state"),
    )
):
    """The state of an AttentionWrapper."""

    def clone(self, **kwargs):
        """The state with other values of the same shapes."""

        def check(old, new):
            if tf.is_tensor(old) and tf.is_tensor(new) and not old.shape.is_compatible_with(new.shape):
                raise ValueError(f"A state of shape {old.shape} cannot be replaced by one of shape {new.shape}.")
            return new

        return tf.nest.map_structure(check, self, self._replace(**kwargs))


class AttentionWrapper(tf1.nn.rnn_cell.RNNCell):
    """A cell that is given, beside its inputs, what attention found in a memory by its last output."""

    def __init__(
        self,
        cell,
        attention_mechanism,
        attention_layer_size=None,
        alignment_history=False,
        cell_input_fn=None,
        output_attention=True,
        initial_cell_state=None,
        name=None,
        attention_layer=None,
        attention_fn=None,
        dtype=None,
    ):
        super().__init__(name=name, dtype=dtype)
        if attention_layer_size is not None and attention_layer is not None:
            raise ValueError("Only one of attention_layer_size and attention_layer should be set")
        several = isinstance(attention_mechanism, (list, tuple))
        mechanisms = tuple(attention_mechanism) if several else (attention_mechanism,)
        if not all(isinstance(one, AttentionMechanism) for one in mechanisms):
            raise TypeError("attention_mechanism must be an AttentionMechanism, or a list of them")
        layers = attention_layer
        if attention_layer_size is not None:
            sizes = attention_layer_size if isinstance(attention_layer_size, (list, tuple)) else [attention_layer_size]
            layers = [
                tf1.layers.Dense(size, name="attention_layer", use_bias=False, dtype=mechanism._dtype)
                for size, mechanism in zip(sizes, mechanisms, strict=False)
            ]
            if len(sizes) != len(mechanisms):
                raise ValueError("attention_layer_size must have one number for each attention_mechanism")
        if layers is None:
            layers = [None] * len(mechanisms)
        elif not isinstance(layers, (list, tuple)):
            layers = [layers]
        if len(layers) != len(mechanisms):
            raise ValueError("attention_layer must have one layer for each attention_mechanism")
        self._cell = cell
        self._several = several
        # Keras would follow what lists and tuples hold, and wrap them.
        self._parts = types.SimpleNamespace(
            mechanisms=mechanisms,
            layers=tuple(layers),
            first=initial_cell_state,
            inputs_of=cell_input_fn or (lambda inputs, attention: tf.concat([inputs, attention], -1)),
            attend=attention_fn or _attention_of,
        )
        self._keeps_history = alignment_history
        self._gives_attention = output_attention
        self._attention_size = sum(map(self._size_of, mechanisms, layers))

    def _size_of(self, mechanism, layer):
        """How many numbers of attention a mechanism gives."""
        values = tf1.dimension_value(mechanism.values.shape[-1])
        if layer is None:
            return values
        given = tf.TensorShape([None, self._cell.output_size + values])
        return tf1.dimension_value(tf.TensorShape(layer.compute_output_shape(given))[-1])

    def _packed(self, values):
        """A value for each mechanism, or the one."""
        values = tuple(values)
        return values if self._several else values[0]

    def _each(self, values):
        return values if self._several else (values,)

    @property
    def output_size(self):
        return self._attention_size if self._gives_attention else self._cell.output_size

    @property
    def state_size(self):
        mechanisms = self._parts.mechanisms
        sizes = self._packed(one.alignments_size for one in mechanisms)
        return AttentionWrapperState(
            cell_state=self._cell.state_size,
            attention=self._attention_size,
            time=tf.TensorShape([]),
            alignments=sizes,
            alignment_history=sizes if self._keeps_history else self._packed(() for _ in mechanisms),
            attention_state=self._packed(one.state_size for one in mechanisms),
        )

    def zero_state(self, batch_size, dtype):
        """The state before the first step; its cell's part is `initial_cell_state`, where that was given."""
        parts = self._parts
        with tf1.name_scope(type(self).__name__ + "ZeroState"):
            first = self._cell.zero_state(batch_size, dtype) if parts.first is None else parts.first
            message = (
                "The batch of the memory has not the size that the state is asked for. With a BeamSearchDecoder, give "
                "the mechanism a memory, and its lengths, that were tiled by tile_batch, and ask for the zero_state of "
                "batch_size * beam_width."
            )
            checks = [tf1.assert_equal(one.batch_size, batch_size, message=message) for one in parts.mechanisms]
            with tf.control_dependencies([one for one in checks if one is not None]):
                first = tf.nest.map_structure(tf.identity, first)
            alignments = [one.initial_alignments(batch_size, dtype) for one in parts.mechanisms]
            return AttentionWrapperState(
                cell_state=first,
                attention=tf.zeros([batch_size, self._attention_size], dtype),
                time=tf.zeros([], tf.int32),
                alignments=self._packed(alignments),
                alignment_history=self._packed(
                    tf.TensorArray(dtype, 0, dynamic_size=True, clear_after_read=False, element_shape=one.shape)
                    if self._keeps_history
                    else ()
                    for one in alignments
                ),
                attention_state=self._packed(one.initial_state(batch_size, dtype) for one in parts.mechanisms),
            )

    def call(self, inputs, state):
        """The attention, or the cell's output, and the next state."""
        if not isinstance(state, AttentionWrapperState):
            raise TypeError(f"Expected state to be an AttentionWrapperState, received {type(state)}: use zero_state")
        parts = self._parts
        output, cell_state = self._cell(parts.inputs_of(inputs, state.attention), state.cell_state)
        states, histories = self._each(state.attention_state), self._each(state.alignment_history)
        found = [
            parts.attend(mechanism, output, before, layer)
            for mechanism, before, layer in zip(parts.mechanisms, states, parts.layers, strict=True)
        ]
        attention = tf.concat([one[0] for one in found], 1)
        next_state = AttentionWrapperState(
            cell_state=cell_state,
            attention=attention,
            time=state.time + 1,
            alignments=self._packed(one[1] for one in found),
            alignment_history=self._packed(
                history.write(state.time, one[1]) if self._keeps_history else ()
                for history, one in zip(histories, found, strict=True)
            ),
            attention_state=self._packed(one[2] for one in found),
        )
        return attention if self._gives_attention else output, next_state


def _attention_of(mechanism, output, state, layer):
    """What a mechanism finds by an output, how much it looks at each step, and its next state."""
    alignments, next_state = mechanism(output, state=state)
    found = tf.squeeze(tf.matmul(alignments[:, tf.newaxis], mechanism.values), 1)
    return found if layer is None else layer(tf.concat([output, found], 1)), alignments, next_state
