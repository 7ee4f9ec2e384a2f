"""Conditional random fields, as tf.contrib.crf had them."""

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1


def crf_sequence_score(inputs, tag_indices, sequence_lengths, transition_params):
    """The score of each sequence of tags, [batch], not normalized.

    `inputs` are the scores of tags [batch, time, tags]; `transition_params[i, j]` is that of tag j after tag i.
    """
    return crf_unary_score(tag_indices, sequence_lengths, inputs) + crf_binary_score(
        tag_indices, sequence_lengths, transition_params
    )


def crf_unary_score(tag_indices, sequence_lengths, inputs):
    """The sum of the scores of the tags of each sequence, [batch]."""
    chosen = tf.gather(inputs, tf.cast(tag_indices, tf.int32), batch_dims=2)
    return tf.reduce_sum(chosen * _steps_of(sequence_lengths, inputs, inputs.dtype), axis=1)


def crf_binary_score(tag_indices, sequence_lengths, transition_params):
    """The sum of the scores of the transitions in each sequence, [batch]."""
    tags = tf.cast(tag_indices, tf.int32)
    scores = tf.gather_nd(transition_params, tf.stack([tags[:, :-1], tags[:, 1:]], axis=-1))
    return tf.reduce_sum(scores * _steps_of(sequence_lengths, tags, scores.dtype)[:, 1:], axis=1)


def crf_log_norm(inputs, sequence_lengths, transition_params):
    """The logarithm of the sum over all sequences of tags of the exponential of their score, [batch]."""

    def step(state, element):
        scores, is_inside = element
        new = scores + tf.reduce_logsumexp(state[:, :, tf.newaxis] + transition_params, axis=1)
        return tf.where(is_inside[:, tf.newaxis], new, state)

    last = _states(step, inputs, sequence_lengths)[-1]
    norm = tf.reduce_logsumexp(last, axis=1)
    return tf.where(tf.cast(sequence_lengths, tf.int32) <= 0, tf.zeros_like(norm), norm)


def crf_log_likelihood(inputs, tag_indices, sequence_lengths, transition_params=None):
    """The log-likelihood of each sequence of tags, [batch], and the parameters of the transitions."""
    if transition_params is None:
        tags = tf1.dimension_value(inputs.shape[2])
        transition_params = tf1.get_variable("transitions", [tags, tags])
    score = crf_sequence_score(inputs, tag_indices, sequence_lengths, transition_params)
    return score - crf_log_norm(inputs, sequence_lengths, transition_params), transition_params


def crf_decode(potentials, transition_params, sequence_length):
    """The best tags of each sequence [batch, time], 0 behind its end, and their score [batch]."""

    def step(state, element):
        scores, is_inside = element
        new = scores + tf.reduce_max(state[:, :, tf.newaxis] + transition_params, axis=1)
        return tf.where(is_inside[:, tf.newaxis], new, state)

    def before(tag, element):
        state, is_inside = element  # the state of the step before, and whether this step is in the sequence
        best = tf.argmax(state + tf.gather(tf.transpose(transition_params), tag), axis=1, output_type=tf.int32)
        return tf.where(is_inside, best, tag)

    length = tf.maximum(tf.cast(sequence_length, tf.int32), 1)
    states = _states(step, potentials, length)
    inside = tf.transpose(_steps_of(length, potentials, tf.bool))
    last = tf.argmax(states[-1], axis=1, output_type=tf.int32)
    tags = tf.scan(before, (states[:-1], inside[1:]), initializer=last, reverse=True)
    tags = tf.transpose(tf.concat([tags, last[tf.newaxis]], axis=0))
    return tags * _steps_of(length, potentials, tf.int32), tf.reduce_max(states[-1], axis=1)


def viterbi_decode(score, transition_params):
    """The best tags of one sequence of scores [time, tags], as NumPy has them, and their score."""
    best, pointers = np.array(score[0]), []
    for scores in score[1:]:
        ways = best[:, np.newaxis] + transition_params
        pointers.append(np.argmax(ways, axis=0))
        best = scores + np.max(ways, axis=0)
    tags = [np.argmax(best)]
    for pointer in reversed(pointers):
        tags.append(pointer[tags[-1]])
    return tags[::-1], np.max(best)


def _steps_of(sequence_lengths, inputs, dtype):
    """Which steps are in each sequence, [batch, time]. The lengths may be a placeholder without a shape."""
    steps = tf.sequence_mask(tf.cast(sequence_lengths, tf.int32), tf.shape(inputs)[1], dtype=dtype)
    return tf.ensure_shape(steps, [None, None])


def _states(step, inputs, sequence_lengths):
    """The states [time, batch, tags] that begin with the scores of the first tags, and go on by `step`."""
    elements = tf.transpose(inputs, [1, 0, 2])[1:], tf.transpose(_steps_of(sequence_lengths, inputs, tf.bool))[1:]
    first = inputs[:, 0]
    return tf.concat([first[tf.newaxis], tf.scan(step, elements, initializer=first)], axis=0)
