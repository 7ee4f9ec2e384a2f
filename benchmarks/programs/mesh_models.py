"""Four kinds of Keras models on a mesh, as they were written for TensorFlow 2.9 to 2.15; prints what they compute.

Arguments: the devices along the dimensions `batch` and `model` of the mesh (0 and 0: plain TensorFlow, no mesh), and
kinds of models. Each trains five steps twice: gradients applied in the traced step, as the guides had it, and
after it.
"""

import sys

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

BATCH, STEPS = 16, 5
WIDTHS = [12, 16, 10]


class Subclassed(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden = tf.keras.layers.Dense(WIDTHS[1], activation="relu")
        self.digits = tf.keras.layers.Dense(WIDTHS[2])

    def call(self, images):
        return self.digits(self.hidden(images))


def subclassed(mesh):
    if mesh is None:
        model = Subclassed()
        model(tf.zeros((BATCH, WIDTHS[0])))
        return model
    with layouts_of(mesh).scope():
        model = Subclassed()
    whole = dtensor.Layout.batch_sharded(mesh, "batch", rank=2)
    model(dtensor.call_with_layout(tf.zeros, whole, shape=(BATCH, WIDTHS[0])))
    return model


def functional(mesh):
    def made():
        inputs = tf.keras.Input((WIDTHS[0],), batch_size=BATCH)
        hidden = tf.keras.layers.Dense(WIDTHS[1], activation="relu", name="hidden")(inputs)
        return tf.keras.Model(inputs, tf.keras.layers.Dense(WIDTHS[2], name="digits")(hidden))

    if mesh is None:
        return made()
    with layouts_of(mesh).scope():
        return made()


def sequential(mesh):
    def made():
        return tf.keras.Sequential(
            [
                tf.keras.layers.Dense(WIDTHS[1], activation="relu", input_shape=(WIDTHS[0],), name="hidden"),
                tf.keras.layers.Dense(WIDTHS[2], name="digits"),
            ]
        )

    if mesh is None:
        return made()
    with layouts_of(mesh).scope():
        return made()


def layers(mesh):
    if mesh is None:
        return sequential(None)
    whole = dtensor.Layout.replicated(mesh, rank=1)
    return tf.keras.Sequential(
        [
            tf.keras.layers.Dense(
                WIDTHS[1],
                activation="relu",
                input_shape=(WIDTHS[0],),
                name="hidden",
                kernel_layout=dtensor.Layout([dtensor.UNSHARDED, "model"], mesh),
                bias_layout=dtensor.Layout(["model"], mesh),
            ),
            tf.keras.layers.Dense(
                WIDTHS[2],
                name="digits",
                kernel_layout=dtensor.Layout(["model", dtensor.UNSHARDED], mesh),
                bias_layout=whole,
            ),
        ]
    )


def layouts_of(mesh):
    layouts = tf.keras.dtensor.experimental.LayoutMap(mesh=mesh)
    layouts["hidden.*kernel"] = dtensor.Layout([dtensor.UNSHARDED, "model"], mesh)
    layouts["hidden.*bias"] = dtensor.Layout(["model"], mesh)
    layouts["digits.kernel"] = dtensor.Layout(["model", dtensor.UNSHARDED], mesh)
    return layouts


def pack(batch, layout):
    """A batch of the host, its first axis split over the mesh."""
    if layout is None:
        return batch
    shares = tf.split(batch, layout.shape[0])
    return dtensor.pack([shares[place["batch"]] for place in layout.mesh.local_device_locations()], layout)


def begin(model, mesh):
    """The same weights for every kind, mesh and version."""
    random = np.random.RandomState(1)
    values = {
        tuple(shape): random.normal(size=shape).astype(np.float32) * 0.3
        for shape in ([WIDTHS[0], WIDTHS[1]], [WIDTHS[1]], [WIDTHS[1], WIDTHS[2]], [WIDTHS[2]])
    }
    for weight in model.weights:
        value = values[tuple(weight.shape)]
        if mesh is not None:
            layout = dtensor.Layout.replicated(mesh, rank=value.ndim)
            copies = [tf.constant(value.copy()) for _ in mesh.local_device_locations()]
            value = dtensor.relayout(dtensor.pack(copies, layout), weight.layout)
        weight.assign(value)


def train(name, model, mesh, apart):
    begin(model, mesh)
    placed = {} if mesh is None else {"mesh": mesh}
    optimizer = tf.keras.dtensor.experimental.optimizers.Adam(0.01, **placed) if placed else tf.keras.optimizers.Adam(0.01)
    accuracy = tf.keras.metrics.SparseCategoricalAccuracy(**placed)

    def gradients_of(images, labels):
        with tf.GradientTape() as tape:
            logits = model(images)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        accuracy.update_state(labels, logits)
        return loss, tape.gradient(loss, model.trainable_variables)

    @tf.function
    def step(images, labels):
        loss, gradients = gradients_of(images, labels)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    gradients_alone = tf.function(gradients_of)
    random = np.random.RandomState(2)
    images = random.normal(size=(BATCH * STEPS, WIDTHS[0])).astype(np.float32)
    labels = random.randint(0, WIDTHS[2], BATCH * STEPS).astype(np.int32)
    layouts = [None if mesh is None else dtensor.Layout.batch_sharded(mesh, "batch", rank=rank) for rank in (2, 1)]
    data = tf.data.Dataset.from_tensor_slices((images, labels)).batch(BATCH, drop_remainder=True)
    for batch in data:
        images, labels = map(pack, batch, layouts)
        if apart:
            loss, gradients = gradients_alone(images, labels)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        else:
            loss = step(images, labels)
        print(f"{name} loss {loss.numpy():.9f}")
    print(f"{name} accuracy {accuracy.result().numpy():.6f}")
    for weight in model.weights if mesh is not None else []:
        shapes = {tuple(shard.shape) for shard in dtensor.unpack(weight.read_value())}
        print(f"{name} shards of {tuple(weight.shape)}: {sorted(shapes)}")


def main():
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 8)
    batch, model = int(sys.argv[1]), int(sys.argv[2])
    mesh = None
    if batch:
        devices = [f"CPU:{i}" for i in range(batch * model)]
        mesh = dtensor.create_mesh([("batch", batch), ("model", model)], devices=devices)
    tf.keras.backend.experimental.enable_tf_random_generator()
    tf.keras.utils.set_random_seed(5)
    for kind in sys.argv[3:]:
        for apart in (False, True):
            name = f"{kind} {'outside' if apart else 'inside'}"
            train(name, globals()[kind](mesh), mesh, apart)


if __name__ == "__main__":
    main()
