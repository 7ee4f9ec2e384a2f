"""Functions of tf.contrib.legacy_seq2seq: encoders and decoders over lists of steps, and their losses."""

import copy

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from .contrib_cells import EmbeddingWrapper, OutputProjectionWrapper, _cell_linear


def _feeds_back(embedding, output_projection=None, updates=True):
    """A function that embeds the likeliest symbol of the step before."""

    def embed(output, _):
        if output_projection is not None:
            output = tf.matmul(output, output_projection[0]) + output_projection[1]
        embedded = tf1.nn.embedding_lookup(embedding, tf.argmax(output, 1))
        return embedded if updates else tf.stop_gradient(embedded)

    return embed


def _check_projection(output_projection, num_symbols, dtype):
    """Raises ValueError where the shapes of weights and biases are not those of `num_symbols`."""
    if output_projection is not None:
        for one, shape in zip(output_projection, ([None, num_symbols], [num_symbols]), strict=True):
            tf.convert_to_tensor(one, dtype=dtype).shape.assert_is_compatible_with(shape)


def _decode_either(feed_previous, decode, updates=False):
    """`decode(feeds, updates)`, whose outputs and state depend on a tensor if `feed_previous` is one."""
    if isinstance(feed_previous, bool):
        return decode(feed_previous, True)
    like = []

    def branch(feeds):
        with tf1.variable_scope(tf1.get_variable_scope(), reuse=None if feeds else True):
            outputs, state = decode(feeds, updates)
        like.append((len(outputs), state))
        return [*outputs, *tf.nest.flatten(state)]

    made = tf1.cond(feed_previous, lambda: branch(True), lambda: branch(False))
    count, state = like[0]
    return made[:count], tf.nest.pack_sequence_as(state, made[count:])


def rnn_decoder(decoder_inputs, initial_state, cell, loop_function=None, scope=None):
    """Outputs and last state of a cell over inputs; `loop_function` makes each but the first of the output before."""
    with tf1.variable_scope(scope or "rnn_decoder"):
        state, outputs = initial_state, []
        for number, one in enumerate(decoder_inputs):
            if outputs and loop_function is not None:
                with tf1.variable_scope("loop_function", reuse=True):
                    one = loop_function(outputs[-1], number)
            if outputs:
                tf1.get_variable_scope().reuse_variables()
            output, state = cell(one, state)
            outputs.append(output)
    return outputs, state


def basic_rnn_seq2seq(encoder_inputs, decoder_inputs, cell, dtype=tf.float32, scope=None):
    """Two cells of the same kind, of which the second goes on with the state of the first."""
    with tf1.variable_scope(scope or "basic_rnn_seq2seq"):
        _, state = tf1.nn.static_rnn(copy.deepcopy(cell), encoder_inputs, dtype=dtype)
        return rnn_decoder(decoder_inputs, state, cell)


def tied_rnn_seq2seq(encoder_inputs, decoder_inputs, cell, loop_function=None, dtype=tf.float32, scope=None):
    """One cell that reads, and then writes with the same weights."""
    with tf1.variable_scope("combined_tied_rnn_seq2seq"):
        scope = scope or "tied_rnn_seq2seq"
        _, state = tf1.nn.static_rnn(cell, encoder_inputs, dtype=dtype, scope=scope)
        tf1.get_variable_scope().reuse_variables()
        return rnn_decoder(decoder_inputs, state, cell, loop_function, scope)


def embedding_rnn_decoder(
    decoder_inputs,
    initial_state,
    cell,
    num_symbols,
    embedding_size,
    output_projection=None,
    feed_previous=False,
    update_embedding_for_previous=True,
    scope=None,
):
    """`rnn_decoder` over symbols, which it embeds."""
    with tf1.variable_scope(scope or "embedding_rnn_decoder") as scope:
        _check_projection(output_projection, num_symbols, scope.dtype)
        embedding = tf1.get_variable("embedding", [num_symbols, embedding_size])
        feeds = _feeds_back(embedding, output_projection, update_embedding_for_previous) if feed_previous else None
        inputs = [tf1.nn.embedding_lookup(embedding, one) for one in decoder_inputs]
        return rnn_decoder(inputs, initial_state, cell, feeds)


def embedding_rnn_seq2seq(
    encoder_inputs,
    decoder_inputs,
    cell,
    num_encoder_symbols,
    num_decoder_symbols,
    embedding_size,
    output_projection=None,
    feed_previous=False,
    dtype=None,
    scope=None,
):
    """`basic_rnn_seq2seq` over symbols, which it embeds; without an output projection it makes one."""
    with tf1.variable_scope(scope or "embedding_rnn_seq2seq") as scope:
        if dtype is not None:
            scope.set_dtype(dtype)
        encoder = EmbeddingWrapper(copy.deepcopy(cell), num_encoder_symbols, embedding_size)
        _, encoded = tf1.nn.static_rnn(encoder, encoder_inputs, dtype=scope.dtype)
        if output_projection is None:
            cell = OutputProjectionWrapper(cell, num_decoder_symbols)

        def decode(feeds, updates):
            return embedding_rnn_decoder(
                decoder_inputs, encoded, cell, num_decoder_symbols, embedding_size, output_projection, feeds, updates
            )

        return _decode_either(feed_previous, decode)


def embedding_tied_rnn_seq2seq(
    encoder_inputs,
    decoder_inputs,
    cell,
    num_symbols,
    embedding_size,
    num_decoder_symbols=None,
    output_projection=None,
    feed_previous=False,
    dtype=None,
    scope=None,
):
    """`tied_rnn_seq2seq` over symbols, with one embedding of what it reads and writes."""
    with tf1.variable_scope(scope or "embedding_tied_rnn_seq2seq", dtype=dtype) as scope:
        dtype = scope.dtype
        _check_projection(output_projection, num_symbols, dtype)
        embedding = tf1.get_variable("embedding", [num_symbols, embedding_size], dtype)
        sources = [tf1.nn.embedding_lookup(embedding, one) for one in encoder_inputs]
        targets = [tf1.nn.embedding_lookup(embedding, one) for one in decoder_inputs]
        if output_projection is None:
            cell = OutputProjectionWrapper(cell, num_symbols if num_decoder_symbols is None else num_decoder_symbols)

        def decode(feeds, updates):
            feeds_back = _feeds_back(embedding, output_projection, updates) if feeds else None
            return tied_rnn_seq2seq(sources, targets, cell, feeds_back, dtype)

        return _decode_either(feed_previous, decode)


def attention_decoder(
    decoder_inputs,
    initial_state,
    attention_states,
    cell,
    output_size=None,
    num_heads=1,
    loop_function=None,
    dtype=None,
    scope=None,
    initial_state_attention=False,
):
    """`rnn_decoder` whose steps look at `attention_states`, which are [batch, length, size]."""
    if not decoder_inputs:
        raise ValueError("attention_decoder needs one input at least.")
    if num_heads < 1:
        raise ValueError(f"attention_decoder needs one head at least, not {num_heads}.")
    size = attention_states.shape.as_list()[2]
    if size is None:
        raise ValueError(f"The last size of attention_states has to be known: {attention_states.shape}")
    output_size = cell.output_size if output_size is None else output_size
    with tf1.variable_scope(scope or "attention_decoder", dtype=dtype) as scope:
        dtype = scope.dtype
        heads = []
        for number in range(num_heads):
            kernel = tf1.get_variable(f"AttnW_{number}", [1, 1, size, size], dtype)
            keys = tf.tensordot(attention_states, kernel[0, 0], 1)
            heads.append((keys, tf1.get_variable(f"AttnV_{number}", [size], dtype)))

        def attend(state):
            query, found = tf.concat(tf.nest.flatten(state), 1), []
            for number, (keys, weights) in enumerate(heads):
                with tf1.variable_scope(f"Attention_{number}"):
                    sought = tf.cast(_cell_linear([query], size), dtype)[:, tf.newaxis]
                scores = tf.reduce_sum(weights * tf.tanh(keys + sought), 2)
                alignments = tf.cast(tf.nn.softmax(tf.cast(scores, tf.float32)), dtype)
                found.append(tf.reduce_sum(alignments[:, :, tf.newaxis] * attention_states, 1))
            return found

        state, outputs = initial_state, []
        if initial_state_attention:
            found = attend(state)
        else:
            found = [tf.zeros([tf.shape(decoder_inputs[0])[0], size], dtype) for _ in heads]
        for number, one in enumerate(decoder_inputs):
            if outputs:
                tf1.get_variable_scope().reuse_variables()
            if outputs and loop_function is not None:
                with tf1.variable_scope("loop_function", reuse=True):
                    one = loop_function(outputs[-1], number)
            input_size = one.shape.with_rank(2).as_list()[1]
            if input_size is None:
                raise ValueError(f"The size of an input has to be known: {one.name}")
            output, state = cell(_cell_linear([tf.cast(part, dtype) for part in (one, *found)], input_size), state)
            with tf1.variable_scope(tf1.get_variable_scope(), reuse=True if initial_state_attention else None):
                found = attend(state)
            with tf1.variable_scope("AttnOutputProjection"):
                outputs.append(_cell_linear([tf.cast(output, dtype), *found], output_size))
    return outputs, state


def embedding_attention_decoder(
    decoder_inputs,
    initial_state,
    attention_states,
    cell,
    num_symbols,
    embedding_size,
    num_heads=1,
    output_size=None,
    output_projection=None,
    feed_previous=False,
    update_embedding_for_previous=True,
    dtype=None,
    scope=None,
    initial_state_attention=False,
):
    """`attention_decoder` over symbols, which it embeds."""
    if output_projection is not None:
        tf.convert_to_tensor(output_projection[1], dtype=dtype).shape.assert_is_compatible_with([num_symbols])
    with tf1.variable_scope(scope or "embedding_attention_decoder", dtype=dtype):
        embedding = tf1.get_variable("embedding", [num_symbols, embedding_size])
        feeds = _feeds_back(embedding, output_projection, update_embedding_for_previous) if feed_previous else None
        return attention_decoder(
            [tf1.nn.embedding_lookup(embedding, one) for one in decoder_inputs],
            initial_state,
            attention_states,
            cell,
            output_size,
            num_heads,
            feeds,
            initial_state_attention=initial_state_attention,
        )


def embedding_attention_seq2seq(
    encoder_inputs,
    decoder_inputs,
    cell,
    num_encoder_symbols,
    num_decoder_symbols,
    embedding_size,
    num_heads=1,
    output_projection=None,
    feed_previous=False,
    dtype=None,
    scope=None,
    initial_state_attention=False,
):
    """`embedding_rnn_seq2seq` whose decoder looks at the outputs of the encoder."""
    with tf1.variable_scope(scope or "embedding_attention_seq2seq", dtype=dtype) as scope:
        encoder = EmbeddingWrapper(copy.deepcopy(cell), num_encoder_symbols, embedding_size)
        outputs, encoded = tf1.nn.static_rnn(encoder, encoder_inputs, dtype=scope.dtype)
        seen = tf.concat([tf.reshape(one, [-1, 1, cell.output_size]) for one in outputs], 1)
        size = None
        if output_projection is None:
            cell, size = OutputProjectionWrapper(cell, num_decoder_symbols), num_decoder_symbols

        def decode(feeds, updates):
            return embedding_attention_decoder(
                decoder_inputs,
                encoded,
                seen,
                cell,
                num_decoder_symbols,
                embedding_size,
                num_heads,
                size,
                output_projection,
                feeds,
                updates,
                initial_state_attention=initial_state_attention,
            )

        return _decode_either(feed_previous, decode)


def one2many_rnn_seq2seq(
    encoder_inputs,
    decoder_inputs_dict,
    enc_cell,
    dec_cells_dict,
    num_encoder_symbols,
    num_decoder_symbols_dict,
    embedding_size,
    feed_previous=False,
    dtype=None,
    scope=None,
):
    """`embedding_rnn_seq2seq` with several decoders: outputs and states by their names."""
    for one in (enc_cell, *dec_cells_dict.values()):
        if not isinstance(one, tf1.nn.rnn_cell.RNNCell):
            raise TypeError(f"{type(one)} is not an RNNCell")
    if set(dec_cells_dict) != set(decoder_inputs_dict):
        raise ValueError("The names in dec_cells_dict are not those in decoder_inputs_dict.")
    made = {}
    with tf1.variable_scope(scope or "one2many_rnn_seq2seq", dtype=dtype) as scope:
        encoder = EmbeddingWrapper(enc_cell, num_encoder_symbols, embedding_size)
        _, encoded = tf1.nn.static_rnn(encoder, encoder_inputs, dtype=scope.dtype)
        for name, inputs in decoder_inputs_dict.items():
            symbols = num_decoder_symbols_dict[name]
            with tf1.variable_scope(f"one2many_decoder_{name}"):
                cell = OutputProjectionWrapper(dec_cells_dict[name], symbols)

                def decode(feeds, _, inputs=inputs, cell=cell, symbols=symbols):
                    return embedding_rnn_decoder(inputs, encoded, cell, symbols, embedding_size, feed_previous=feeds)

                made[name] = _decode_either(feed_previous, decode)
    return {name: outputs for name, (outputs, _) in made.items()}, {name: state for name, (_, state) in made.items()}


def legacy_sequence_loss_by_example(
    logits, targets, weights, average_across_timesteps=True, softmax_loss_function=None, name=None
):
    """The weighted loss of each example, over lists of steps."""
    if len(targets) != len(logits) or len(weights) != len(logits):
        raise ValueError(f"Not as many steps: {len(logits)} logits, {len(weights)} weights, {len(targets)} targets.")
    with tf1.name_scope(name, "sequence_loss_by_example", [*logits, *targets, *weights]):
        losses = []
        for logit, target, weight in zip(logits, targets, weights, strict=True):
            if softmax_loss_function is None:
                target = tf.reshape(target, [-1])
                loss = tf1.nn.sparse_softmax_cross_entropy_with_logits(labels=target, logits=logit)
            else:
                loss = softmax_loss_function(labels=target, logits=logit)
            losses.append(loss * weight)
        losses = tf.add_n(losses)
        return losses / (tf.add_n(weights) + 1e-12) if average_across_timesteps else losses


def legacy_sequence_loss(
    logits,
    targets,
    weights,
    average_across_timesteps=True,
    average_across_batch=True,
    softmax_loss_function=None,
    name=None,
):
    """The weighted loss of a batch, over lists of steps."""
    with tf1.name_scope(name, "sequence_loss", [*logits, *targets, *weights]):
        losses = legacy_sequence_loss_by_example(
            logits, targets, weights, average_across_timesteps, softmax_loss_function
        )
        loss = tf.reduce_sum(losses)
        return loss / tf.cast(tf.shape(targets[0])[0], loss.dtype) if average_across_batch else loss


def model_with_buckets(
    encoder_inputs,
    decoder_inputs,
    targets,
    weights,
    buckets,
    seq2seq,
    softmax_loss_function=None,
    per_example_loss=False,
    name=None,
):
    """Outputs and losses of a model for each bucket, which is a number of steps to read and one of steps to write."""
    sources, steps = buckets[-1]
    for what, found, needed in (
        ("encoder_inputs", encoder_inputs, sources),
        ("targets", targets, steps),
        ("weights", weights, steps),
    ):
        if len(found) < needed:
            raise ValueError(f"The last bucket needs {needed} of {what}, which has {len(found)}.")
    loss_of = legacy_sequence_loss_by_example if per_example_loss else legacy_sequence_loss
    outputs, losses = [], []
    with tf1.name_scope(name, "model_with_buckets", [*encoder_inputs, *decoder_inputs, *targets, *weights]):
        for sources, steps in buckets:
            with tf1.variable_scope(tf1.get_variable_scope(), reuse=True if outputs else None):
                made, _ = seq2seq(encoder_inputs[:sources], decoder_inputs[:steps])
                loss = loss_of(made, targets[:steps], weights[:steps], softmax_loss_function=softmax_loss_function)
            outputs.append(made)
            losses.append(loss)
    return outputs, losses
