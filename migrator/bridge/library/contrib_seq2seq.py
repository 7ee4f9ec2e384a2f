"""Decoders of sequences, as tf.contrib.seq2seq had them."""

from __future__ import annotations

import collections
import contextlib

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from .contrib_attention import AttentionWrapperState


class Decoder:
    """What `dynamic_decode` goes through: the steps of a batch of sequences."""

    @property
    def batch_size(self):
        raise NotImplementedError

    @property
    def output_size(self):
        raise NotImplementedError

    @property
    def output_dtype(self):
        raise NotImplementedError

    @property
    def tracks_own_finished(self):
        """Whether a sequence that was finished may go on, as beams do."""
        return False

    def initialize(self, name=None):
        """Which sequences are finished at once, the first inputs, the first state."""
        raise NotImplementedError

    def step(self, time, inputs, state, name=None):
        """The outputs, the next state, the next inputs, and which sequences are finished."""
        raise NotImplementedError

    def finalize(self, outputs, final_state, sequence_lengths):
        raise NotImplementedError


def dynamic_decode(
    decoder,
    output_time_major=False,
    impute_finished=False,
    maximum_iterations=None,
    parallel_iterations=32,
    swap_memory=False,
    scope=None,
    **kwargs,
):
    """Decodes until all sequences are finished: their outputs, the last state, their lengths."""
    if not isinstance(decoder, Decoder):
        raise TypeError(f"Expected decoder to be type Decoder, but saw: {type(decoder)}")
    with tf1.variable_scope(scope, "decoder"):
        if maximum_iterations is not None:
            maximum_iterations = tf.convert_to_tensor(maximum_iterations, tf.int32)
            if maximum_iterations.shape.rank != 0:
                raise ValueError("maximum_iterations must be a scalar")
        finished, inputs, state = decoder.initialize(**kwargs)
        if maximum_iterations is not None:
            finished = tf.logical_or(finished, maximum_iterations <= 0)
        finished = tf.convert_to_tensor(finished)
        batch = decoder.batch_size
        static = tf.TensorShape([tf.get_static_value(batch) if tf.is_tensor(batch) else batch])
        sizes, dtypes = decoder.output_size, decoder.output_dtype

        def array(size, dtype):
            size = tf.TensorShape(size)
            shape = static.concatenate(size) if size.rank else tf.TensorShape(None)
            if size.rank == 0:
                shape = static
            return tf.TensorArray(dtype, 0, dynamic_size=True, element_shape=shape)

        arrays = tf.nest.map_structure(array, sizes, dtypes)
        if impute_finished:
            zeros = tf.nest.map_structure(
                lambda size, dtype: tf.zeros([batch, *tf.TensorShape(size).as_list()], dtype), sizes, dtypes
            )

        def goes_on(time, arrays, state, inputs, finished, lengths):
            return tf.logical_not(tf.reduce_all(finished))

        def step(time, arrays, state, inputs, finished, lengths):
            outputs, next_state, next_inputs, ends = decoder.step(time, inputs, state, **kwargs)
            if not decoder.tracks_own_finished:
                ends = tf.logical_or(ends, finished)
            lengths = tf.where(finished, lengths, time + 1)
            tf.nest.assert_same_structure(state, next_state)
            tf.nest.assert_same_structure(arrays, outputs)
            if impute_finished:

                def until_end(old, new):
                    is_row = not isinstance(new, tf.TensorArray) and tf.convert_to_tensor(new).shape.rank != 0
                    return tf1.where(finished, old, new) if is_row else new

                outputs = tf.nest.map_structure(until_end, zeros, outputs)
                next_state = tf.nest.map_structure(until_end, state, next_state)
            arrays = tf.nest.map_structure(lambda one, output: one.write(time, output), arrays, outputs)
            next_state = tf.nest.map_structure(_seq_shaped, state, next_state)
            next_inputs = tf.nest.map_structure(_seq_shaped, inputs, next_inputs)
            return time + 1, arrays, next_state, next_inputs, _seq_shaped(finished, ends), lengths

        _, arrays, state, _, _, lengths = tf1.while_loop(
            goes_on,
            step,
            (tf.constant(0), arrays, state, inputs, finished, tf.zeros_like(finished, tf.int32)),
            parallel_iterations=parallel_iterations,
            maximum_iterations=maximum_iterations,
            swap_memory=swap_memory,
        )
        outputs = tf.nest.map_structure(lambda one: one.stack(), arrays)
        with contextlib.suppress(NotImplementedError):
            outputs, state = decoder.finalize(outputs, state, lengths)
        if not output_time_major:
            outputs = tf.nest.map_structure(_seq_swapped, outputs)
    return outputs, state, lengths


def _seq_shaped(old, new):
    """A value for the next step, which has the shape of that of the step before."""
    if tf.is_tensor(new) and tf.is_tensor(old):
        new.set_shape(old.shape)
    return new


def _seq_swapped(tensor):
    """A tensor with its first two dimensions the other way round."""
    if tensor.shape.rank is not None and tensor.shape.rank < 2:
        return tensor
    return tf.transpose(tensor, tf.concat([[1, 0], tf.range(2, tf.rank(tensor))], 0))


def _seq_embedding(embedding):
    return embedding if callable(embedding) else lambda ids: tf1.nn.embedding_lookup(embedding, ids)


class Helper:
    """Where a decoder's inputs come from, and what it takes from its outputs."""

    @property
    def batch_size(self):
        raise NotImplementedError

    @property
    def sample_ids_shape(self):
        return tf.TensorShape([])

    @property
    def sample_ids_dtype(self):
        return tf.int32

    def initialize(self, name=None):
        """Which sequences are finished at once, and the first inputs."""
        raise NotImplementedError

    def sample(self, time, outputs, state, name=None):
        raise NotImplementedError

    def next_inputs(self, time, outputs, state, sample_ids, name=None):
        """Which sequences are finished, the next inputs, the next state."""
        raise NotImplementedError


class TrainingHelper(Helper):
    """The inputs are given, for as many steps as each sequence has."""

    def __init__(self, inputs, sequence_length, time_major=False, name=None):
        self._inputs = tf.nest.map_structure(tf.convert_to_tensor, inputs)
        self._sequence_length = tf.convert_to_tensor(sequence_length)
        if self._sequence_length.shape.rank != 1:
            shape = self._sequence_length.shape
            raise ValueError(f"Expected sequence_length to be a vector, but received shape: {shape}")
        steps = self._inputs if time_major else tf.nest.map_structure(_seq_swapped, self._inputs)
        self._steps = tf.shape(tf.nest.flatten(steps)[0])[0]

        def array(one):
            ended = tf.concat([one, tf.zeros_like(one[:1])], 0)  # a last step of zeros, for when all have ended
            ended = tf.cond(
                self._steps > 0, lambda: ended, lambda: tf.zeros(tf.concat([[1], tf.shape(one)[1:]], 0), one.dtype)
            )
            made = tf.TensorArray(one.dtype, tf.shape(ended)[0], clear_after_read=False, element_shape=one.shape[1:])
            return made.unstack(ended)

        self._arrays = tf.nest.map_structure(array, steps)

    @property
    def inputs(self):
        return self._inputs

    @property
    def sequence_length(self):
        return self._sequence_length

    @property
    def batch_size(self):
        size = tf1.dimension_value(self._sequence_length.shape[0])
        return tf.size(self._sequence_length) if size is None else tf.constant(size)

    def initialize(self, name=None):
        return self._at(tf.constant(0))

    def sample(self, time, outputs, name=None, **unused_kwargs):
        return tf.argmax(outputs, -1, tf.int32)

    def next_inputs(self, time, outputs, state, name=None, **unused_kwargs):
        return *self._at(time + 1), state

    def _at(self, time):
        """Which sequences have ended before a step, and its inputs."""
        finished = tf.cast(time, self._sequence_length.dtype) >= self._sequence_length
        beyond = time + tf.cast(time >= self._steps, tf.int32)  # no step has it: that is an error
        place = tf.where(tf.reduce_all(finished), self._steps, beyond)
        return finished, tf.nest.map_structure(lambda one: one.read(place), self._arrays)


class ScheduledEmbeddingTrainingHelper(TrainingHelper):
    """Now and then, the next input is the embedding of what was sampled, not what is given."""

    def __init__(
        self,
        inputs,
        sequence_length,
        embedding,
        sampling_probability,
        time_major=False,
        seed=None,
        scheduling_seed=None,
        name=None,
    ):
        super().__init__(inputs, sequence_length, time_major, name)
        self._embedding_fn = _seq_embedding(embedding)
        self._sampling_probability = tf.convert_to_tensor(sampling_probability)
        if self._sampling_probability.shape.rank not in (0, 1):
            raise ValueError("sampling_probability must be either a scalar or a vector.")
        self._seeds = seed, scheduling_seed

    def sample(self, time, outputs, state=None, name=None):
        """Ids, and -1 where the given inputs are to be taken."""
        ids = tf.random.categorical(outputs, 1, tf.int32, self._seeds[0])[:, 0]
        return tf.where(_seq_chosen(self, self._seeds[1]), ids, -1)

    def next_inputs(self, time, outputs, state, sample_ids, name=None):
        finished, given, state = super().next_inputs(time, outputs, state)
        sampled = self._embedding_fn(tf.maximum(sample_ids, 0))
        takes = tf.logical_and(sample_ids > -1, tf.logical_not(tf.reduce_all(finished)))
        return finished, tf1.where(takes, sampled, given), state


class ScheduledOutputTrainingHelper(TrainingHelper):
    """Now and then, the next input is made of the output, not what is given."""

    def __init__(
        self,
        inputs,
        sequence_length,
        sampling_probability,
        time_major=False,
        seed=None,
        next_inputs_fn=None,
        auxiliary_inputs=None,
        name=None,
    ):
        self._auxiliary = None
        if auxiliary_inputs is not None:
            inputs = tf.nest.map_structure(lambda one, more: tf.concat([one, more], -1), inputs, auxiliary_inputs)
            self._auxiliary = TrainingHelper(auxiliary_inputs, sequence_length, time_major)
        super().__init__(inputs, sequence_length, time_major, name)
        self._sampling_probability = tf.convert_to_tensor(sampling_probability)
        if self._sampling_probability.shape.rank not in (0, 1):
            raise ValueError("sampling_probability must be either a scalar or a vector.")
        self._seed = seed
        self._next_inputs_fn = next_inputs_fn or (lambda outputs: outputs)

    def sample(self, time, outputs, state=None, name=None):
        return tf.cast(_seq_chosen(self, self._seed), tf.int32)

    def next_inputs(self, time, outputs, state, sample_ids, name=None):
        finished, given, state = super().next_inputs(time, outputs, state)
        made = self._next_inputs_fn(outputs)
        if self._auxiliary is not None:
            more = self._auxiliary._at(time + 1)[1]
            made = tf.nest.map_structure(lambda one, other: tf.concat([one, other], -1), made, more)
        takes = tf.logical_and(tf.cast(sample_ids, tf.bool), tf.logical_not(tf.reduce_all(finished)))
        return finished, tf.nest.map_structure(lambda one, other: tf1.where(takes, one, other), made, given), state


def _seq_chosen(helper, seed):
    """For which sequences of a batch the sample is taken."""
    probability = helper._sampling_probability
    return tf1.random_uniform([helper.batch_size], dtype=probability.dtype, seed=seed) < probability


class GreedyEmbeddingHelper(Helper):
    """The next input is the embedding of the likeliest id, until it is `end_token`."""

    def __init__(self, embedding, start_tokens, end_token):
        self._embedding_fn = _seq_embedding(embedding)
        self._start_tokens = tf.convert_to_tensor(start_tokens, tf.int32)
        self._end_token = tf.convert_to_tensor(end_token, tf.int32)
        if self._start_tokens.shape.rank != 1:
            raise ValueError("start_tokens must be a vector")
        if self._end_token.shape.rank != 0:
            raise ValueError("end_token must be a scalar")
        self._start_inputs = self._embedding_fn(self._start_tokens)

    @property
    def batch_size(self):
        size = tf1.dimension_value(self._start_tokens.shape[0])
        return tf.size(self._start_tokens) if size is None else tf.constant(size)

    def initialize(self, name=None):
        return tf.zeros_like(self._start_tokens, tf.bool), self._start_inputs

    def sample(self, time, outputs, state, name=None):
        if not tf.is_tensor(outputs):
            raise TypeError(f"Expected outputs to be a single Tensor, got: {type(outputs)}")
        return tf.argmax(outputs, -1, tf.int32)

    def next_inputs(self, time, outputs, state, sample_ids, name=None):
        finished = tf.equal(sample_ids, self._end_token)
        ids = tf.where(tf.reduce_all(finished), self._start_tokens, sample_ids)  # those that surely are embedded
        return finished, self._embedding_fn(ids), state


class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """The next input is the embedding of an id that is drawn from what the outputs say."""

    def __init__(self, embedding, start_tokens, end_token, softmax_temperature=None, seed=None):
        super().__init__(embedding, start_tokens, end_token)
        self._softmax_temperature = softmax_temperature
        self._seed = seed

    def sample(self, time, outputs, state, name=None):
        if not tf.is_tensor(outputs):
            raise TypeError(f"Expected outputs to be a single Tensor, got: {type(outputs)}")
        logits = outputs if self._softmax_temperature is None else outputs / self._softmax_temperature
        return tf.random.categorical(logits, 1, tf.int32, self._seed)[:, 0]


class CustomHelper(Helper):
    """Functions of the program say what to begin with, what to sample, and how to go on."""

    def __init__(self, initialize_fn, sample_fn, next_inputs_fn, sample_ids_shape=None, sample_ids_dtype=None):
        self._initialize_fn = initialize_fn
        self._sample_fn = sample_fn
        self._next_inputs_fn = next_inputs_fn
        self._batch_size = None
        self._shape = tf.TensorShape(sample_ids_shape or [])
        self._dtype = sample_ids_dtype or tf.int32

    @property
    def batch_size(self):
        if self._batch_size is None:
            raise ValueError("batch_size accessed before initialize was called")
        return self._batch_size

    @property
    def sample_ids_shape(self):
        return self._shape

    @property
    def sample_ids_dtype(self):
        return self._dtype

    def initialize(self, name=None):
        finished, inputs = self._initialize_fn()
        if self._batch_size is None:
            self._batch_size = tf.size(finished)
        return finished, inputs

    def sample(self, time, outputs, state, name=None):
        return self._sample_fn(time=time, outputs=outputs, state=state)

    def next_inputs(self, time, outputs, state, sample_ids, name=None):
        return self._next_inputs_fn(time=time, outputs=outputs, state=state, sample_ids=sample_ids)


class InferenceHelper(CustomHelper):
    """The next input is the sample itself, or made of it, until `end_fn` says that it is the last."""

    def __init__(self, sample_fn, sample_shape, sample_dtype, start_inputs, end_fn, next_inputs_fn=None):
        start_inputs = tf.convert_to_tensor(start_inputs)
        batch = tf.shape(start_inputs)[0]
        super().__init__(
            lambda: (tf.fill([batch], False), start_inputs),
            lambda time, outputs, state: sample_fn(outputs),
            lambda time, outputs, state, sample_ids: (
                end_fn(sample_ids),
                sample_ids if next_inputs_fn is None else next_inputs_fn(sample_ids),
                state,
            ),
            sample_shape,
            sample_dtype,
        )
        self._batch_size = batch


class BasicDecoderOutput(collections.namedtuple("BasicDecoderOutput", ("rnn_output", "sample_id"))):
    """The outputs of the cell, or of the layer behind it, and what the helper sampled from them."""


class BasicDecoder(Decoder):
    """A cell, and a helper that gives it its inputs."""

    def __init__(self, cell, helper, initial_state, output_layer=None):
        if not isinstance(helper, Helper):
            raise TypeError(f"helper must be a Helper, received: {type(helper)}")
        self._cell = cell
        self._helper = helper
        self._initial_state = initial_state
        self._output_layer = output_layer

    @property
    def batch_size(self):
        return self._helper.batch_size

    def _rnn_output_size(self):
        return _seq_output_size(self._cell, self._output_layer)

    @property
    def output_size(self):
        return BasicDecoderOutput(self._rnn_output_size(), self._helper.sample_ids_shape)

    @property
    def output_dtype(self):
        dtype = tf.nest.flatten(self._initial_state)[0].dtype
        outputs = tf.nest.map_structure(lambda _: dtype, self._rnn_output_size())
        return BasicDecoderOutput(outputs, self._helper.sample_ids_dtype)

    def initialize(self, name=None):
        return (*self._helper.initialize(), self._initial_state)

    def step(self, time, inputs, state, name=None):
        outputs, state = self._cell(inputs, state)
        if self._output_layer is not None:
            outputs = self._output_layer(outputs)
        ids = self._helper.sample(time=time, outputs=outputs, state=state)
        finished, inputs, state = self._helper.next_inputs(time=time, outputs=outputs, state=state, sample_ids=ids)
        return BasicDecoderOutput(outputs, ids), state, inputs, finished


def _seq_output_size(cell, layer):
    """The size of the outputs of a cell, or of a layer behind it."""
    if layer is None:
        return cell.output_size
    return tf.nest.map_structure(
        lambda size: tf.TensorShape(layer.compute_output_shape(tf.TensorShape([1]).concatenate(size)))[1:],
        tf.nest.map_structure(tf.TensorShape, cell.output_size),
    )


def tile_batch(t, multiplier, name=None):
    """Each entry of a batch so many times in a row: what beams begin with."""

    def tile(one):
        if isinstance(one, tf.TensorArray) or not tf.convert_to_tensor(one).shape.rank:
            raise ValueError("t must have a batch dimension")
        one = tf.convert_to_tensor(one)
        tiled = tf.repeat(one, multiplier, axis=0)
        size = tf1.dimension_value(one.shape[0])
        count = tf.get_static_value(tf.convert_to_tensor(multiplier))
        known = None if size is None or count is None else int(size * count)
        tiled.set_shape(tf.TensorShape([known]).concatenate(one.shape[1:]))
        return tiled

    with tf1.name_scope(name, "tile_batch"):
        return tf.nest.map_structure(tile, t)


class BeamSearchDecoderState(
    collections.namedtuple(
        "BeamSearchDecoderState", ("cell_state", "log_probs", "finished", "lengths", "accumulated_attention_probs")
    )
):
    """The state of the beams of a batch, [batch, beams, ...] each."""


class BeamSearchDecoderOutput(
    collections.namedtuple("BeamSearchDecoderOutput", ("scores", "predicted_ids", "parent_ids"))
):
    """What one step chose: scores, ids, and the beam that each goes on from."""


class FinalBeamSearchDecoderOutput(
    collections.namedtuple("FinalBeamDecoderOutput", ("predicted_ids", "beam_search_decoder_output"))
):
    """The ids of the sequences, best first, and what each step chose."""


class BeamSearchDecoder(Decoder):
    """Goes on from the `beam_width` best sequences of each entry of the batch."""

    def __init__(
        self,
        cell,
        embedding,
        start_tokens,
        end_token,
        initial_state,
        beam_width,
        output_layer=None,
        length_penalty_weight=0.0,
        coverage_penalty_weight=0.0,
        reorder_tensor_arrays=True,
    ):
        self._cell = cell
        self._output_layer = output_layer
        self._embedding_fn = _seq_embedding(embedding)
        self._start_tokens = tf.convert_to_tensor(start_tokens, tf.int32)
        self._end_token = tf.convert_to_tensor(end_token, tf.int32)
        if self._start_tokens.shape.rank != 1:
            raise ValueError("start_tokens must be a vector")
        if self._end_token.shape.rank != 0:
            raise ValueError("end_token must be a scalar")
        self._beam_width = beam_width
        self._weights = length_penalty_weight, coverage_penalty_weight
        self._reorder = reorder_tensor_arrays
        size = tf1.dimension_value(self._start_tokens.shape[0])
        self._batch_size = tf.size(self._start_tokens) if size is None else tf.constant(size)
        self._static_size = size
        self._dtype = tf.nest.flatten(initial_state)[0].dtype
        self._initial_state = tf.nest.map_structure(self._split, initial_state)
        first = tf.tile(self._start_tokens[:, tf.newaxis], [1, beam_width])
        self._start_ids = first
        self._start_inputs = self._embedding_fn(first)

    @property
    def batch_size(self):
        return self._batch_size

    @property
    def output_size(self):
        beams = tf.TensorShape([self._beam_width])
        return BeamSearchDecoderOutput(beams, beams, beams)

    @property
    def output_dtype(self):
        return BeamSearchDecoderOutput(self._dtype, tf.int32, tf.int32)

    @property
    def tracks_own_finished(self):
        return True

    def _split(self, one):
        """[batch * beams, ...] as [batch, beams, ...]; numbers and arrays as they are."""
        if isinstance(one, tf.TensorArray) or tf.convert_to_tensor(one).shape.rank == 0:
            return one
        one = tf.convert_to_tensor(one)
        split = tf.reshape(one, tf.concat([[self._batch_size, self._beam_width], tf.shape(one)[1:]], 0))
        split.set_shape(tf.TensorShape([self._static_size, self._beam_width]).concatenate(one.shape[1:]))
        return split

    def _merge(self, one):
        """[batch, beams, ...] as [batch * beams, ...]."""
        if isinstance(one, tf.TensorArray) or tf.convert_to_tensor(one).shape.rank == 0:
            return one
        merged = tf.reshape(one, tf.concat([[self._batch_size * self._beam_width], tf.shape(one)[2:]], 0))
        size = None if self._static_size is None else self._static_size * self._beam_width
        merged.set_shape(tf.TensorShape([size]).concatenate(one.shape[2:]))
        return merged

    def initialize(self, name=None):
        """All beams but the first begin as if finished: else all were the same."""
        first = tf.one_hot(tf.zeros([self._batch_size], tf.int32), self._beam_width, True, False, dtype=tf.bool)
        first.set_shape([self._static_size, self._beam_width])
        attended = ()
        if self._weights[1] != 0.0:
            attended = tf.zeros_like(self._attended(self._initial_state))
        state = BeamSearchDecoderState(
            cell_state=self._initial_state,
            log_probs=tf.where(first, tf.zeros([], self._dtype), -self._dtype.as_numpy_dtype("inf")),
            finished=tf.logical_not(first),
            lengths=tf.zeros_like(first, tf.int64),
            accumulated_attention_probs=attended,
        )
        return state.finished, self._start_inputs, state

    def _attended(self, cell_state):
        """How much was looked at each step of the memory, on average over all attention, [batch, beams, time]."""
        states = [cell_state] if isinstance(cell_state, AttentionWrapperState) else cell_state
        states = (
            [one for one in states if isinstance(one, AttentionWrapperState)]
            if isinstance(states, (list, tuple))
            else []
        )
        if not states:
            raise ValueError("coverage_penalty_weight must be 0.0 if no cell is attentional.")
        means = [tf.add_n(found) / len(found) for found in (tf.nest.flatten(one.alignments) for one in states)]
        return self._split_if_merged(tf.add_n(means) / len(means))

    def _split_if_merged(self, one):
        return one if one.shape.rank == 3 else self._split(one)

    def step(self, time, inputs, state, name=None):
        outputs, cell_state = self._cell(
            tf.nest.map_structure(self._merge, inputs), tf.nest.map_structure(self._merge, state.cell_state)
        )
        logits = tf.nest.map_structure(self._split, outputs)
        if self._output_layer is not None:
            logits = self._output_layer(logits)
        output, state = self._choose(logits, tf.nest.map_structure(self._split, cell_state), state)
        ids = tf.where(tf.reduce_all(state.finished), self._start_ids, output.predicted_ids)
        return output, state, self._embedding_fn(ids), state.finished

    def _choose(self, logits, cell_state, state):
        """The best of all ways to go on, and the state behind them."""
        count = tf1.dimension_value(logits.shape[-1]) or tf.shape(logits)[-1]
        end = tf.one_hot(self._end_token, count, True, False, dtype=tf.bool)
        finished = state.finished[:, :, tf.newaxis]
        chances = tf.nn.log_softmax(logits)
        stays = tf.where(end, tf.zeros([], chances.dtype), chances.dtype.min)  # what is finished only ends again
        totals = state.log_probs[:, :, tf.newaxis] + tf.where(finished, stays, chances)
        longer = tf.cast(tf.logical_not(tf.logical_or(finished, end)), tf.int64)
        attended = state.accumulated_attention_probs
        length_weight, coverage_weight = self._weights
        scores = totals
        if not isinstance(length_weight, (int, float)) or length_weight != 0:
            lengths = tf.cast(state.lengths[:, :, tf.newaxis] + longer, totals.dtype)
            scores /= ((5.0 + lengths) / 6.0) ** length_weight
        if coverage_weight != 0.0:
            attended += tf.where(finished, tf.zeros([], totals.dtype), self._attended(cell_state))
            # Only finished sequences are weighed so, and by those steps of the memory that any beam may look at.
            looked_at = tf.where(tf.equal(attended, 0.0), tf.ones([], totals.dtype), tf.minimum(attended, 1.0))
            coverage = tf.reduce_sum(tf.math.log(looked_at), 2, keepdims=True)
            scores += coverage_weight * tf.where(finished, coverage, tf.zeros([], totals.dtype))
        best, places = tf.nn.top_k(tf.reshape(scores, [self._batch_size, -1]), self._beam_width)
        best.set_shape([self._static_size, self._beam_width])
        places.set_shape([self._static_size, self._beam_width])
        parents, ids = places // count, places % count

        def of_parents(one):
            if isinstance(one, tf.TensorArray) or one.shape.rank == 0:
                return one
            return tf.gather(one, parents, batch_dims=1)

        ended = of_parents(state.finished)
        state = BeamSearchDecoderState(
            cell_state=tf.nest.map_structure(of_parents, cell_state),
            log_probs=tf.gather(tf.reshape(totals, [self._batch_size, -1]), places, batch_dims=1),
            finished=tf.logical_or(ended, tf.equal(ids, self._end_token)),
            lengths=of_parents(state.lengths) + tf.cast(tf.logical_not(ended), tf.int64),
            accumulated_attention_probs=tf.nest.map_structure(of_parents, attended),
        )
        return BeamSearchDecoderOutput(best, ids, parents), state

    def finalize(self, outputs, final_state, sequence_lengths):
        """The sequences along their beams; arrays of the state in their order, as tensors."""
        longest = tf.cast(tf.reduce_max(final_state.lengths, 1), tf.int32)
        ids = gather_tree(outputs.predicted_ids, outputs.parent_ids, longest, self._end_token)
        if self._reorder:
            beams = tf.zeros_like(outputs.parent_ids) + tf.range(self._beam_width)
            inside = tf.sequence_mask(final_state.lengths, tf.shape(beams)[0])
            ways = tf.where(tf.transpose(inside, [2, 0, 1]), _seq_ways(outputs.parent_ids, longest), beams)

            def in_order(one):
                if not isinstance(one, tf.TensorArray):
                    return one
                if not self._orders(one.element_shape):
                    tf1.logging.warning("An array of the state stays as it is: its static shape is not that of beams.")
                    return one
                steps, time = one.stack(), tf.shape(ways)[0]
                shape = tf.shape(steps)
                split = tf.reshape(steps[:time], tf.concat([tf.shape(ways), shape[2:]], 0))
                ordered = tf.reshape(tf.gather(split, ways, batch_dims=2), tf.concat([[time], shape[1:]], 0))
                ordered.set_shape(steps.shape)
                return ordered

            cell_state = tf.nest.map_structure(in_order, final_state.cell_state)
            final_state = final_state._replace(cell_state=cell_state)
        return FinalBeamSearchDecoderOutput(ids, outputs), final_state

    def _orders(self, shape):
        """Whether arrays of such elements are brought in order: as in 1.15, hardly any of wholly known shape is."""
        if not shape.rank:
            return False
        known = [tf1.dimension_value(one) for one in shape[:2]]
        if self._static_size is None or known[0] is None:
            return True
        if known[0] != self._static_size * self._beam_width:
            return False
        return known[1:] in ([], [None]) or known == [self._static_size, self._beam_width]


def _seq_ways(parent_ids, lengths):
    """The beam that each final beam came through, at each step, [time, batch, beams]."""
    beams = tf.shape(parent_ids)[2]
    times = tf.range(tf.shape(parent_ids)[0])

    def before(way, step):
        parents, time = step
        return tf.where((time < lengths)[:, tf.newaxis], tf.gather(parents, way, batch_dims=1), way)

    last = tf.zeros_like(parent_ids[0]) + tf.range(beams)
    ways = tf.scan(before, (parent_ids, times), last, reverse=True)
    return tf.concat([ways[1:], last[tf.newaxis]], 0)


def gather_tree(step_ids, parent_ids, max_sequence_lengths, end_token, name=None):
    """The ids [time, batch, beams] along each beam from its end, and `end_token` behind it."""
    step_ids, lengths = tf.convert_to_tensor(step_ids), tf.convert_to_tensor(max_sequence_lengths)
    ids = tf.gather(step_ids, _seq_ways(tf.convert_to_tensor(parent_ids), lengths), batch_dims=2)
    inside = tf.transpose(tf.sequence_mask(lengths, tf.shape(ids)[0]))[:, :, tf.newaxis]
    ended = tf.cumsum(tf.cast(tf.equal(ids, end_token), tf.int32), 0, exclusive=True) > 0
    return tf.where(tf.logical_and(inside, tf.logical_not(ended)), ids, end_token, name=name)


def sequence_loss(
    logits,
    targets,
    weights,
    average_across_timesteps=True,
    average_across_batch=True,
    sum_over_timesteps=False,
    sum_over_batch=False,
    softmax_loss_function=None,
    name=None,
):
    """The weighted cross entropy of sequences: [batch, time], or its means or sums."""
    for what, tensor, rank in (("Logits", logits, 3), ("Targets", targets, 2), ("Weights", weights, 2)):
        if len(tensor.shape) != rank:
            raise ValueError(f"{what} must be a {rank}-dimensional tensor")
    for what, mean, total in (
        ("timesteps", average_across_timesteps, sum_over_timesteps),
        ("batch", average_across_batch, sum_over_batch),
    ):
        if mean and total:
            raise ValueError(f"average_across_{what} and sum_over_{what} cannot be set to True at same time.")
    with tf1.name_scope(name, "sequence_loss", [logits, targets, weights]):
        count = tf.shape(logits)[2]
        function = softmax_loss_function or tf1.nn.sparse_softmax_cross_entropy_with_logits
        losses = function(labels=tf.reshape(targets, [-1]), logits=tf.reshape(logits, [-1, count]))
        losses *= tf.reshape(weights, [-1])
        if average_across_timesteps and average_across_batch:
            return tf.reduce_sum(losses) / (tf.reduce_sum(weights) + 1e-12)
        if sum_over_timesteps and sum_over_batch:
            used = tf.math.count_nonzero(weights, dtype=losses.dtype)
            return tf.math.divide_no_nan(tf.reduce_sum(losses), used)
        losses = tf.reshape(losses, tf.shape(logits)[:2])
        axis = [number for number, one in ((0, average_across_batch), (1, average_across_timesteps)) if one]
        if axis:
            return tf.reduce_sum(losses, axis) / (tf.reduce_sum(weights, axis) + 1e-12)
        axis = [number for number, one in ((0, sum_over_batch), (1, sum_over_timesteps)) if one]
        if axis:
            used = tf.math.count_nonzero(weights, axis, dtype=losses.dtype)
            return tf.math.divide_no_nan(tf.reduce_sum(losses, axis), used)
        return losses
