"""Signs of life of what a program does beside the training that is recorded: trainings of other models, evaluations and
predictions may take longer than a program may show no progress.
"""

import importlib
import os
import time

import parts

#: Seconds between two of them.
_EVERY = 1.0
_BATCHES = ("on_train_batch_end", "on_test_batch_end", "on_predict_batch_end")


class Signs(object):
    """A file of a task's folder that is written anew while the program goes on."""

    def __init__(self, path):
        self.path = path
        self.last = 0.0

    def give(self):
        now = time.time()
        if now - self.last >= _EVERY:
            self.last = now
            with open(self.path, "w") as stream:
                stream.write("%f" % now)


def install(tf, folder):
    """From now on each batch of Keras, and each run of a session with hooks, is one."""
    signs = Signs(os.path.join(folder.path, "signs"))

    def after(original, *args, **kwargs):
        result = original(*args, **kwargs)
        signs.give()
        return result

    callbacks = importlib.import_module(tf.keras.callbacks.Callback.__module__)
    kind = getattr(callbacks, "CallbackList", None) or getattr(tf.keras.callbacks, "CallbackList", None)
    for name in _BATCHES:
        if hasattr(kind, name):
            parts.wrap(kind, name, after)
    sessions = importlib.import_module("tensorflow.python.training.monitored_session")
    parts.wrap(sessions._MonitoredSession, "run", after)
