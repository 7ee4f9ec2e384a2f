"""Two workers train one mirrored model, each on its half of the data."""
import importlib.util
import os

import numpy as np

# Keras 2 (tf_keras), not the Keras 3 of TensorFlow 2.16 and newer, which cannot fit on a cluster.
if importlib.util.find_spec("tf_keras"):
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
import tensorflow as tf

STEPS = 20


def train_input_fn(input_context):
    """Batches of eight of this worker's own examples; the last batch of an epoch is a small one."""
    random = np.random.RandomState(5)
    x = random.uniform(-1.0, 1.0, size=(88, 4)).astype(np.float32)
    y = np.sin(2.0 * x.sum(axis=1, keepdims=True)).astype(np.float32)
    dataset = tf.data.Dataset.from_tensor_slices((x, y))
    dataset = dataset.shard(input_context.num_input_pipelines, input_context.input_pipeline_id)
    return dataset.batch(8).repeat()


def model_fn(features):
    """Ten hidden units."""
    hidden = tf.keras.layers.Dense(10, activation=tf.nn.tanh)(features)
    output = tf.keras.layers.Dense(1)(hidden)
    model = tf.keras.Model(features, output)
    model.compile(
        optimizer=tf.keras.optimizers.SGD(learning_rate=0.05, momentum=0.9, nesterov=True),
        loss=tf.keras.losses.MeanSquaredError(),
    )
    return model


def main():
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    strategy = tf.distribute.MultiWorkerMirroredStrategy(cluster_resolver=resolver)
    with strategy.scope():
        model = model_fn(tf.keras.Input([4]))
    model.fit(
        # Every worker draws batches of its own: the batch size is per replica, as an Estimator's is.
        tf.keras.utils.experimental.DatasetCreator(train_input_fn),
        steps_per_epoch=STEPS,
    )


if __name__ == "__main__":
    main()
