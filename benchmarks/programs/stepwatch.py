"""Runs a script unchanged and notes how long its training steps take. Python 3.7, in the interpreter of the program.

usage: python stepwatch.py SCRIPT OUTPUT WARM [ARGUMENT ...]

The first WARM steps of a process are left out: they hold tracing and the first checkpoint. OUTPUT-PID gets
{"steps", "start", "end", "cpu"}: steps counted since, when they began and ended, CPU seconds of this process between.
With STEPWATCH_SECONDS in the environment the training is ended so long after the first step that counts, and trainings
behind it are not counted.
"""

import atexit
import json
import os
import runpy
import sys
import time

script, output, warm = sys.argv[1], sys.argv[2], int(sys.argv[3])
limit = float(os.environ.get("STEPWATCH_SECONDS") or 0)
seen = {"over": False, "steps": 0, "start": None, "cpu": 0.0, "last": None, "last_cpu": 0.0}


def cpu():
    times = os.times()
    return times[0] + times[1]


def stepped(count=1):
    """Counts; whether the training has lasted long enough."""
    if seen["over"]:
        return True
    seen["steps"] += count
    if seen["start"] is None and seen["steps"] >= warm:
        seen["start"], seen["first"], seen["cpu"] = time.time(), seen["steps"], cpu()
    return bool(limit) and seen["start"] is not None and time.time() - seen["start"] > limit


def rest():
    """The training call is over: what was under way has been waited for."""
    if seen["over"]:
        return
    seen["over"] = bool(limit) and seen["start"] is not None and time.time() - seen["start"] > limit
    seen["last"], seen["last_cpu"] = time.time(), cpu()


def report():
    if seen["start"] is None or seen["last"] is None:
        return
    found = {"steps": seen["steps"] - seen["first"], "start": seen["start"], "end": seen["last"]}
    with open("%s-%d" % (output, os.getpid()), "w") as file:
        json.dump(dict(found, cpu=seen["last_cpu"] - seen["cpu"]), file)


def watch_estimators():
    import tensorflow.compat.v1 as tf
    from tensorflow_estimator.python.estimator import estimator

    class Watch(tf.train.SessionRunHook):
        def after_run(self, context, values):
            if stepped():
                context.request_stop()

    original = estimator.Estimator._train_with_estimator_spec

    def train(self, spec, worker_hooks, *args, **kwargs):
        worker_hooks.append(Watch())
        result = original(self, spec, worker_hooks, *args, **kwargs)
        rest()
        return result

    estimator.Estimator._train_with_estimator_spec = train


def watch_keras():
    import tensorflow as tf

    kind = tf.keras.Model
    make, fit = kind.make_train_function, kind.fit

    def make_train_function(self, *args, **kwargs):
        made = make(self, *args, **kwargs)
        function = self.train_function
        if getattr(function, "watched", False):
            return made
        execution = getattr(self, "steps_per_execution", None) or getattr(self, "_steps_per_execution", 1)
        several = int(execution.numpy()) if hasattr(execution, "numpy") else int(execution or 1)

        def watched(*inputs):
            count = int(execution.numpy()) if several > 1 and hasattr(execution, "numpy") else several
            result = function(*inputs)
            if stepped(count):  # the last execution may be shorter
                self.stop_training = True
            return result

        watched.watched = True
        self.train_function = watched
        return watched if made is not None else None

    def timed_fit(self, *args, **kwargs):
        result = fit(self, *args, **kwargs)
        rest()
        return result

    kind.make_train_function, kind.fit = make_train_function, timed_fit


(watch_estimators if os.environ["STEPWATCH"] == "original" else watch_keras)()
atexit.register(report)
sys.argv = [script, *sys.argv[4:]]
sys.path[0] = os.path.dirname(os.path.abspath(script))
runpy.run_path(script, run_name="__main__")
