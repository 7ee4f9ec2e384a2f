import collections
import importlib.util
import os

import numpy as np

# Keras 2 (tf_keras), not the Keras 3 of TensorFlow 2.16 and newer: the numbers were matched on it.
if importlib.util.find_spec("tf_keras"):
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
import tensorflow as tf

BATCH = 16


def dynamic_rnn(cell, inputs, sequence_length=None, go_backwards=False):
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


class DropoutWrapper(tf.keras.layers.Layer):
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


LSTMStateTuple = collections.namedtuple("LSTMStateTuple", ("c", "h"))


class LSTMCell(tf.keras.layers.Layer):
    """An LSTM cell with TensorFlow 1's weights: one kernel for inputs and state, and a forget bias at each step."""

    def __init__(self, num_units, forget_bias=1.0, activation="tanh", initializer="glorot_uniform", **kwargs):
        super().__init__(**kwargs)
        self.output_size = num_units
        self.forget_bias = forget_bias
        self.activation = tf.keras.activations.get(activation)
        self.initializer = initializer

    @property
    def state_size(self):
        return LSTMStateTuple(self.output_size, self.output_size)

    def build(self, input_shape):
        shape = [input_shape[-1] + self.output_size, 4 * self.output_size]
        self.kernel = self.add_weight("kernel", shape, initializer=self.initializer)
        self.bias = self.add_weight("bias", shape[1:], initializer="zeros")

    def call(self, inputs, states):
        c, h = states
        i, j, f, o = tf.split(tf.matmul(tf.concat([inputs, h], 1), self.kernel) + self.bias, 4, axis=1)
        c = c * tf.sigmoid(f + self.forget_bias) + tf.sigmoid(i) * self.activation(j)
        h = self.activation(c) * tf.sigmoid(o)
        return h, LSTMStateTuple(c, h)


def _input_fn():
    rng = np.random.RandomState(5)
    words = rng.normal(size=(320, 6, 5)).astype(np.float32)
    labels = (words[:, 0, 0] > 0).astype(np.int32)
    return tf.data.Dataset.from_tensor_slices(({"words": words}, labels)).repeat(2).batch(BATCH, drop_remainder=True)


def _model_fn(features):
    cell = LSTMCell(8)
    cell = DropoutWrapper(cell, input_rate=0.3, output_rate=0.2)
    net, _ = dynamic_rnn(cell, features["words"])
    logits = tf.keras.layers.Dense(2)(net[:, -1])
    rate = tf.keras.optimizers.schedules.PiecewiseConstantDecay([500], [0.01, 0.001])
    model = tf.keras.Model(features, logits)
    model.compile(
        optimizer=tf.keras.optimizers.legacy.Adam(learning_rate=rate, beta_1=0.9, beta_2=0.999, epsilon=1e-08),
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=[tf.keras.metrics.SparseCategoricalAccuracy(name="accuracy")],
        steps_per_execution=20,
    )
    return model


def make_inputs(dataset):
    """Returns Keras inputs for the features of a dataset of (features, labels) batches."""
    features, _ = dataset.element_spec
    return tf.nest.map_structure(
        lambda spec: tf.keras.Input(spec.shape[1:], dtype=spec.dtype),
        features,
    )


def main():
    model = _model_fn(make_inputs(_input_fn()))
    model.fit(_input_fn())
    print(model.evaluate(_input_fn().take(5), return_dict=True))


if __name__ == "__main__":
    main()
