"""Steps of a program's own loop that a coordinator schedules on workers (``ClusterCoordinator.schedule``).

The graph of a step is traced in the coordinator and run by workers: what it writes lands in the folder of the worker
that runs it, and its number is that of the optimizer, which lives on the servers. What lies between steps is read by
the coordinator once all of them are done, as it is for ``Model.fit``.
"""

import importlib
import inspect
import threading

import parts
import replicas


def _steps_of(fn, args):
    """Where a call says how many steps it makes, and how many, if more than one: a parameter ``steps``, a number.

    So tf-migrate writes loops for parameter servers. Each step is then scheduled by itself, to be recorded: several
    ones in a call compute the same, but hide the weights between.
    """
    names = list(inspect.signature(getattr(fn, "python_function", fn)).parameters)
    if "steps" not in names:
        return None
    place = names.index("steps")
    count = args[place] if args is not None and place < len(args) else None
    return (place, count) if type(count) is int and count > 1 else None


class ScheduledSteps(object):
    """What the recorder of loops does where a coordinator schedules the steps."""

    def __init__(self, loop):
        self.loop = loop
        self.coordinator = None

    def elsewhere(self):
        """Whether this thread serves a worker, which runs what was traced before."""
        return self.coordinator is not None and threading.current_thread() is not threading.main_thread()

    def busy(self):
        """Whether this is the doing of Keras' own loops, which the Keras recorder knows, or of the recorder."""
        loop = self.loop
        return loop.passive or loop.recorder.training_depth or self.elsewhere()

    def create_per_worker_dataset(self, original, coordinator, dataset_fn):
        """The data of a training, for which recorded batches are taken where there are any."""
        if self.busy():
            return original(coordinator, dataset_fn)
        self.seen(coordinator)
        recorder = self.loop.recorder
        if not recorder.folder.replay or not callable(dataset_fn):
            return original(coordinator, dataset_fn)
        tf = recorder.tf

        def replayed():
            return recorder.replayed(replicas.spec_of_one(tf, dataset_fn()))()

        return original(coordinator, replayed)

    def schedule(self, original, coordinator, fn, args=None, kwargs=None):
        """One step, or something else that a worker is to do."""
        if self.busy():
            return original(coordinator, fn, args, kwargs)
        self.seen(coordinator)
        several = _steps_of(fn, args)
        if several is not None:
            place, count = several
            for _ in range(count):
                one = (*args[:place], 1, *args[place + 1 :])
                result = self.schedule(original, coordinator, fn, one, kwargs)
            return result
        loop = self.loop
        kind = loop.kinds.get(id(fn), (None, None))[1]
        if kind == "train" and loop.over():
            return loop.last  # the program goes on to what it does after the training
        if kind != "evaluate":
            self.take_point(coordinator, kind)
        loop.seen, loop.updated = set(), []
        with self.loop.recorder.turn(None if kind == "evaluate" else coordinator):
            result = original(coordinator, fn, args, kwargs)
        if loop.seen:
            kind = "train" if "train" in loop.seen else "evaluate"
            loop.kinds[id(fn)] = (fn, kind)
        if kind == "train":
            recorder = loop.recorder
            recorder.steps_done += 1
            loop.last = result
            loop.dirty = True
            if recorder.steps_done in recorder.state_steps or loop.over():
                loop.settle()
        return result

    def take_point(self, coordinator, kind):
        """Gives the program what its next step is to start from, once the workers have taken the one before."""
        recorder = self.loop.recorder
        if not recorder.points.given:
            return
        recorder.points.counter(recorder.tf, coordinator.strategy)  # before a step is traced, which reads it
        if kind == "train":
            coordinator.join()
            recorder.take_point(recorder.steps_done, self.loop.optimizer, coordinator.strategy)

    def seen(self, coordinator):
        self.coordinator = coordinator
        self.loop.recorder.coordinated = True

    def join(self):
        """Waits until the workers have done what they were given."""
        if self.coordinator is not None:
            self.coordinator.join()

    def install(self):
        module = importlib.import_module("tensorflow.python.distribute.coordinator.cluster_coordinator")
        parts.wrap(module.ClusterCoordinator, "create_per_worker_dataset", self.create_per_worker_dataset)
        parts.wrap(module.ClusterCoordinator, "schedule", self.schedule)
