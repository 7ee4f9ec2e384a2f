"""The turnstile: trainers that share parameter servers take their steps one after another, in a fixed order.

Asynchronous training becomes repeatable by it. The trainers of an Estimator program are processes of their
own, which agree through files; those of a Keras program are served by one coordinator, which hands them
their steps.
"""

import contextlib
import json
import os
import time

import parts
from folder import BARRIER_SECONDS, process_alive

POLL_SECONDS = 0.001
LOOK_AFTER_SECONDS = 0.25


def wanted(plan, folder):
    """Whether this task is one of several trainers, or serves them, in a run that takes turns."""
    return bool(plan.get("turns")) and len(folder.trainers) > 1


def rota(limits):
    """The place of the trainer of each step: round robin, without those that have taken as many steps as
    their limit (None: no end) allows.
    """
    lap = 0
    while True:
        places = [place for place, limit in enumerate(limits) if limit is None or lap < limit]
        if not places:
            return
        for place in places:
            yield place
        lap += 1


class Turnstile(object):
    """One trainer's view of the circle; ``record/turns`` holds one file per trainer, which only it writes.

    A trainer has the turn when each trainer before it is one step ahead and each after it is level. Of two
    trainers this can never be true of both, so that nothing needs to be handed over and nothing is lost
    with a trainer that dies: the others stop waiting for it.
    """

    def __init__(self, folder):
        self.path = os.path.join(folder.record, "turns")
        self.task = folder.task
        self.trainers = list(folder.trainers)
        self.place = self.trainers.index(self.task)
        self.call = 0
        self.before = 0
        self.total = 0
        self.inside = False
        self.unannounced = False
        os.makedirs(self.path, exist_ok=True)

    def _file(self, task):
        return os.path.join(self.path, task.replace(":", "-"))

    def _write(self):
        state = {
            "call": self.call,
            "before": self.before,
            "total": self.total,
            "inside": self.inside,
            "pid": os.getpid(),
        }
        parts.atomic_write(self._file(self.task), json.dumps(state).encode("utf-8"))

    def _read(self, task):
        try:
            with open(self._file(task)) as stream:
                return json.load(stream)
        except (OSError, IOError):
            return None

    def _others(self):
        return [(place, task) for place, task in enumerate(self.trainers) if place != self.place]

    def _gone(self, state):
        """Whether a trainer's last word is that it left this circle."""
        return state is not None and (state["call"] > self.call or (state["call"] == self.call and not state["inside"]))

    def _lets_pass(self, place, state):
        """Whether the trainer at ``place`` does not stand before this one."""
        if state is None or state["call"] < self.call:
            return False
        if self._gone(state):
            return True
        ahead = 1 if place < self.place else 0
        return state["total"] - state["before"] >= self.total - self.before + ahead

    def join(self):
        """Enters the circle of the next training call; every trainer enters each, or ends."""
        self.call += 1
        self.before = self.total
        self.inside = True
        self.unannounced = False
        self._write()

    def take(self):
        """Passes on the turn if a step was taken in it, waits for the next one; the number of the step that
        may now be taken, among those of all trainers, from 1.

        RuntimeError when a trainer does not come to this training call and lives on. There is no limit for a
        step: how long one may last is the launcher's business.
        """
        if self.unannounced:
            self.unannounced = False
            self._write()
        begun = time.time()
        look_after = begun + LOOK_AFTER_SECONDS
        waiting = self._others()
        while True:
            states = [(place, task, self._read(task)) for place, task in waiting]
            blocking = [one for one in states if not self._lets_pass(one[0], one[2])]
            if blocking and time.time() > look_after:
                look_after = time.time() + LOOK_AFTER_SECONDS
                blocking = [one for one in blocking if one[2] is None or process_alive(one[2]["pid"])]
                absent = [task for _, task, state in blocking if state is None or state["call"] < self.call]
                if absent and time.time() > begun + BARRIER_SECONDS:
                    raise RuntimeError("%s never came to training call %d" % (", ".join(absent), self.call))
            if not blocking:
                break
            # Who let this trainer pass waits for it now, or is gone.
            waiting = [(place, task) for place, task, _ in blocking]
            time.sleep(POLL_SECONDS)
        return self.steps() + 1

    def stepped(self):
        """A step was taken; the turn is kept until the next ``take`` or ``leave``."""
        self.total += 1
        self.unannounced = True

    def leave(self):
        """Leaves the circle of this training call, with or without the turn."""
        self.inside = False
        self.unannounced = False
        self._write()

    def steps(self):
        """The steps that all trainers have taken; exact for the one who has the turn."""
        states = [self._read(task) for _, task in self._others()]
        return self.total + sum(state["total"] for state in states if state is not None)

    def departed(self):
        """How many of the other trainers have left, or died."""
        states = [self._read(task) for _, task in self._others()]
        return sum(1 for state in states if self._gone(state) or (state and not process_alive(state["pid"])))

    def alone(self):
        """Whether no other trainer is left."""
        return self.departed() == len(self.trainers) - 1


class Dispatcher(object):
    """Hands each train step of a coordinator to the worker whose turn it is, and waits until it is done."""

    def __init__(self, trainers):
        self.workers = [int(task.rpartition(":")[2]) for task in trainers]
        self.places = rota([None] * len(self.workers))
        self.worker = None

    def limit(self, steps):
        """Before the first step: how many steps each worker has batches for."""
        self.places = rota(steps)

    @contextlib.contextmanager
    def turn(self, coordinator):
        """What the block schedules runs on the next worker, and is over at the end of the block."""
        self.worker = self.workers[next(self.places)]
        try:
            yield
        finally:
            self.worker = None
        coordinator.join()

    def put(self, original, queue, closure, tag=None):
        """Puts a train step where only its worker looks: into the queue of that worker's own closures."""
        if tag is not None or self.worker is None:
            return original(queue, closure, tag)
        with queue._put_wait_lock, queue._queue_lock:
            queue._raise_if_error()
            closure.tag = None  # as TensorFlow has it for a closure that is waited for
            queue._tagged_queue[self.worker].put(closure, block=False)
            queue.inflight_closure_count += 1
            queue._closures_queued_condition.notify_all()
        return None
