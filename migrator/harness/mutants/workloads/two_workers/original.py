"""Two workers train one mirrored model, each on its half of the data."""
import numpy as np
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


def model_fn(features, labels, mode):
    """Ten hidden units."""
    hidden = tf.layers.dense(features, 10, activation=tf.nn.tanh)
    output = tf.layers.dense(hidden, 1)
    loss = tf.losses.mean_squared_error(labels, output)
    optimizer = tf.train.MomentumOptimizer(0.05, 0.9, use_nesterov=True)
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main():
    strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy()
    config = tf.estimator.RunConfig(train_distribute=strategy)
    estimator = tf.estimator.Estimator(model_fn, config=config)
    tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(train_input_fn, max_steps=STEPS),
        tf.estimator.EvalSpec(train_input_fn, steps=1),
    )


if __name__ == "__main__":
    main()
