import os

os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
import numpy as np
import tensorflow as tf

R = np.random.RandomState(2)
X = R.uniform(-1, 1, size=(96, 5, 3)).astype(np.float32)
Y = X[:, -1, :1] * X[:, 0, 1:2]

model = tf.keras.Sequential(
    [
        tf.keras.layers.GRU(6, reset_after=False, return_sequences=True),
        tf.keras.layers.LSTM(4, recurrent_activation="hard_sigmoid"),
        tf.keras.layers.Dense(1),
    ]
)
model.build([None, 5, 3])
model.compile(tf.keras.optimizers.Adagrad(0.1, initial_accumulator_value=0.1, epsilon=0.0), "mse")
model.fit(tf.data.Dataset.from_tensor_slices((X, Y)).batch(12), verbose=0)
