"""A program whose user has written another learning rate into it since it ran last: the number that optimizers of Keras
are made with is another one. What a checkpoint brings back then counts, as it does for the user.
"""

import numpy as np
import parts

#: Says in how many places the rate was another one.
FILE = "edited_rate.json"


def install(tf, factor, folder, keras3):
    """From now on optimizers of Keras begin with ``factor`` times the rate that the program gives them."""
    schedule = tf.keras.optimizers.schedules.LearningRateSchedule
    changed = []

    class Scaled(schedule):
        def __init__(self, inner):
            super(Scaled, self).__init__()
            self.inner = inner

        def __call__(self, step):
            return self.inner(step) * factor

        def get_config(self):
            return {"inner": self.inner}

    def edited(rate):
        if isinstance(rate, bool) or not isinstance(rate, (int, float, np.number, schedule)):
            return rate  # computed: where from, nobody knows here
        changed.append(rate)
        folder.write_json(FILE, {"changed": len(changed)})
        return Scaled(rate) if isinstance(rate, schedule) else rate * factor

    def begin(original, optimizer, learning_rate, *args, **kwargs):
        return original(optimizer, edited(learning_rate), *args, **kwargs)

    def set_hyper(original, optimizer, name, value):
        first = name == "learning_rate" and name not in optimizer._hyper
        return original(optimizer, name, edited(value) if first else value)

    if keras3:
        base = next(one for one in tf.keras.optimizers.Optimizer.__mro__ if one.__name__ == "BaseOptimizer")
        parts.wrap(base, "__init__", begin)
        return
    optimizers = tf.keras.optimizers
    legacy = getattr(optimizers, "legacy", optimizers).Optimizer
    if hasattr(legacy, "_set_hyper"):
        parts.wrap(legacy, "_set_hyper", set_hyper)
    if hasattr(optimizers.Optimizer, "_build_learning_rate"):
        parts.wrap(optimizers.Optimizer, "_build_learning_rate", begin)
