"""Runs a script unchanged and notes how long its training steps take. Python 3.7, in the interpreter of the program.

usage: python stepwatch.py SCRIPT OUTPUT WARM [ARGUMENT ...]

The first WARM steps of a process are left out: they hold tracing and the first checkpoint; so is what comes behind the
last step (a cluster takes up to 2.5 seconds to end a `fit`, which gives its data back). OUTPUT-PID gets
{"steps", "start", "end"}: steps counted since, when they began and ended. Every process, also one that serves, writes
lines of "time CPU-seconds" to OUTPUT-PID.cpu. In the environment: STEPWATCH says what trains ("estimator", "session": a
MonitoredTrainingSession, "fit", "loop": a loop that prints "step N: ..." between its calls, "bridge": the Estimator of
a support file); with STEPWATCH_SECONDS the
training is ended so long after the first step that counts, and trainings behind it are not counted; with STEPWATCH_TPU
so many virtual CPUs stand in for a TPU; with STEPWATCH_DEVICES there are so many of them.
"""

import atexit
import builtins
import json
import os
import runpy
import sys
import threading
import time

script, output, warm = sys.argv[1], sys.argv[2], int(sys.argv[3])
limit = float(os.environ.get("STEPWATCH_SECONDS") or 0)
seen = {"over": False, "steps": 0, "first": 0, "start": None, "last": None}


def write_cpu():
    with open("%s-%d.cpu" % (output, os.getpid()), "w") as file:
        while True:
            times = os.times()
            file.write("%.4f %.4f\n" % (time.time(), times[0] + times[1]))
            file.flush()
            time.sleep(0.05)


def is_long_enough():
    return bool(limit) and seen["start"] is not None and time.time() - seen["start"] > limit


def stepped(count=1):
    """Counts; whether the training has lasted long enough."""
    if seen["over"]:
        return True
    seen["steps"] += count
    if seen["start"] is None and seen["steps"] >= warm:
        seen["start"], seen["first"] = time.time(), seen["steps"]
    if seen["start"] is not None:
        seen["last"] = time.time()
    return is_long_enough()


def rest():
    """The training call is over."""
    seen["over"] = seen["over"] or is_long_enough()


def report():
    if seen["start"] is None or seen["last"] is None or seen["steps"] == seen["first"]:
        return
    found = {"steps": seen["steps"] - seen["first"], "start": seen["start"], "end": seen["last"]}
    with open("%s-%d" % (output, os.getpid()), "w") as file:
        json.dump(found, file)


def counting_hook():
    import tensorflow.compat.v1 as tf

    class Watch(tf.train.SessionRunHook):
        def after_run(self, context, values):
            if stepped():
                context.request_stop()

        def end(self, session):
            rest()

    return Watch()


def watch_estimators():
    from tensorflow_estimator.python.estimator import estimator

    original = estimator.Estimator._train_with_estimator_spec

    def train(self, spec, worker_hooks, *args, **kwargs):
        worker_hooks.append(counting_hook())
        result = original(self, spec, worker_hooks, *args, **kwargs)
        rest()
        return result

    estimator.Estimator._train_with_estimator_spec = train


def watch_sessions():
    from tensorflow.python.training import monitored_session, session_manager

    manager = session_manager.SessionManager
    wait = manager.wait_for_session

    def soon(self, *args, **kwargs):
        self._recovery_wait_secs = 0.1  # not 30: the chief would be done before another trainer looks again
        return wait(self, *args, **kwargs)

    manager.wait_for_session = soon

    kind = monitored_session.MonitoredSession
    begin = kind.__init__

    def init(self, session_creator=None, hooks=None, *args, **kwargs):
        begin(self, session_creator, [*(hooks or []), counting_hook()], *args, **kwargs)

    kind.__init__ = init


def watch_fit():
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
        if hasattr(execution, "assign"):  # the last execution may be shorter; asking for it is a message to a server
            assign = execution.assign

            def assigned(value, *args, **kwargs):
                nonlocal several
                several = int(value)
                return assign(value, *args, **kwargs)

            execution.assign = assigned
        coordinator = getattr(self, "_cluster_coordinator", None)

        def watched(*inputs):
            count = several
            result = function(*inputs)
            if coordinator is not None and seen["start"] is None and seen["steps"] + count >= warm:
                coordinator.join()  # what was scheduled so far has not been done
            if stepped(count):
                self.stop_training = True
            return result

        watched.watched = True
        self.train_function = watched
        return watched if made is not None else None

    class Done(tf.keras.callbacks.Callback):
        """Where an epoch ends, `fit` has waited for all steps that it gave to workers."""

        def on_epoch_end(self, epoch, logs=None):
            if getattr(self.model, "_cluster_coordinator", None) is not None and not seen["over"]:
                seen["last"] = time.time()

    def timed_fit(self, *args, **kwargs):
        kwargs["callbacks"] = [Done(), *(kwargs.get("callbacks") or [])]  # before checkpoints are written
        result = fit(self, *args, **kwargs)
        rest()
        return result

    kind.make_train_function, kind.fit = make_train_function, timed_fit


def watch_bridge():
    make = builtins.__build_class__

    def build_class(function, name, *bases, **keywords):
        made = make(function, name, *bases, **keywords)
        if name == "ModelOfModelFn":
            watch(made)
        return made

    def watch(kind):
        done = {}  # the global step of each model

        def wrap(run):
            def watched(self, *args, **kwargs):
                if self.spec.mode != "train":
                    return run(self, *args, **kwargs)
                before = done[id(self)] if id(self) in done else self.global_step()
                values, stops = run(self, *args, **kwargs)
                done[id(self)] = self.global_step()
                return values, done[id(self)] != before and stepped(done[id(self)] - before) or stops

            return watched

        kind.run, kind.run_unseen = wrap(kind.run), wrap(kind.run_unseen)

    builtins.__build_class__ = build_class


def watch_loop():
    show = builtins.print

    def shown(*values, **kwargs):
        show(*values, **kwargs)
        words = str(values[0]).split() if values else []
        if len(words) > 1 and words[0] == "step" and words[1].rstrip(":").isdigit():
            if stepped(int(words[1].rstrip(":")) - seen["steps"]):
                sys.exit(0)

    builtins.print = shown


class Nowhere(object):
    """The folder that the stand-in would write to."""

    def write_json(self, *args):
        pass


if os.environ.get("STEPWATCH_TPU"):
    sys.path.insert(0, os.environ["STEPWATCH_INSIDE"])
    import tpu_stand_in

    program = "migrated" if os.environ["STEPWATCH"] in ("fit", "loop", "bridge") else "original"
    tpu_stand_in.install({"tpu_cores": int(os.environ["STEPWATCH_TPU"])}, Nowhere(), program)
if os.environ.get("STEPWATCH_DEVICES"):
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
    import tensorflow

    processor = tensorflow.config.list_physical_devices("CPU")[0]
    pieces = [tensorflow.config.LogicalDeviceConfiguration()] * int(os.environ["STEPWATCH_DEVICES"])
    tensorflow.config.set_logical_device_configuration(processor, pieces)
threading.Thread(target=write_cpu, daemon=True).start()
watches = {"estimator": watch_estimators, "session": watch_sessions, "fit": watch_fit, "loop": watch_loop}
watches["bridge"] = watch_bridge
watches[os.environ["STEPWATCH"]]()
atexit.register(report)
sys.argv = [script, *sys.argv[4:]]
sys.path[0] = os.path.dirname(os.path.abspath(script))
runpy.run_path(script, run_name="__main__")
