"""Steps of a training that no hook has to see: several are taken in one call of TensorFlow."""

from __future__ import annotations

import time

import numpy as np
import tensorflow as tf

from .graph import draws_seeded_numbers, leaves_of
from .strategies import least_of_workers

_ANY_NUMBER = 10**6
_NEVER = -1


class UnseenSteps:
    """Takes those steps of a training that no hook has to see, with the numbers of single steps.

    TensorFlow's own hooks act every so many steps or seconds, or read the loss, and what they do in between is known.
    A hook of any other class that acts on steps sees each of them, and then no step is taken here.
    """

    steps_before = 10  # so many are seen first
    slowest = 0.02  # seconds of a step: in slower ones a call of its own costs nothing
    longest = 0.5  # seconds of a call: so late a hook that goes by the clock may be

    def __init__(self, model, hooks):
        self._model = model
        self._hooks = hooks
        self._seen = 0
        self._step = None  # the global step behind the last step
        self._moves_by_one = False  # whether the last step that was seen made it one more
        self._seconds = self.slowest  # of a step
        self._last = time.monotonic()
        self._call = None
        self._workers = 1 if model.workers is None else model.workers.count
        self._steps_before = self.steps_before if model.workers is None else 2
        self._possible_here = model.workers is not None or model.data.may_be_drawn_in_functions
        self._possible_here &= all(_sees_some(hook, model.loss) for hook in hooks)
        self._possible = True  # as far as it is known, and all workers that train in step know
        self._slowest = self.slowest
        self._agree = None  # workers in step take the same number of steps
        self._looks_left = self._pause = 0  # before they ask each other again
        if isinstance(model.traced.strategy, tf.distribute.MultiWorkerMirroredStrategy):
            self._agree = least_of_workers(model.traced.strategy)
            self._slowest = self.longest / 2  # a step by itself costs them messages, too
        else:
            self._possible = self._possible_here

    def steps_of_look(self):
        """The most steps that workers of parameter servers may take when hooks look next; none where it is theirs.

        Where the hooks need not see others, they see one as in TensorFlow 1.
        """
        single = self._possible and (self._moves_by_one or self._seen < self._steps_before)
        return [1] if self._model.workers is not None and single else []

    def saw_step(self):
        """Counts a step that hooks have seen."""
        now, step = time.monotonic(), self._model.global_step() if self._possible else None
        if self._seen:
            self._seconds = min(self._seconds, now - self._last)
            self._moves_by_one = self._possible and step == self._step + 1
        self._seen, self._step, self._last = self._seen + 1, step, now

    def take(self, context):
        """Takes steps up to the next one that a hook has to see; returns the last loss, None where there was no step.

        Raises tf.errors.OutOfRangeError behind the last batch, with the last loss as its `loss`.
        """
        if not self._possible or not self._moves_by_one or self._seen < self._steps_before:
            return None
        if self._agree is not None and self._looks_left:
            self._looks_left -= 1
            return None
        count = self._steps_to_take()
        if self._agree is not None:
            count = self._agreed(count)
        self._possible = count != _NEVER
        if count < 2:
            return None
        began = time.monotonic()
        try:
            done, loss, moves_by_one = self._call(count, self._step)
        except tf.errors.OutOfRangeError as error:
            error.loss = self._call.last_loss()
            raise
        self._last = time.monotonic()
        if not done:  # the data have ended
            return None
        self._step += done
        self._seconds = (self._last - began) / done
        with self._model.traced.graph.as_default():
            for hook in self._hooks:
                _tell(hook, done / self._workers, self._step, context, loss)
        if not moves_by_one:  # hooks that count global steps see all steps from now on
            self._possible = False
            step = self._model.global_step()
            stops = [hook for hook in self._hooks if type(hook) is tf.compat.v1.train.StopAtStepHook]
            if any(step >= hook._last_step for hook in stops):
                context.request_stop()
        return loss

    def _steps_to_take(self):
        """How many steps no hook has to see, in the time of a call."""
        workers = self._model.workers
        if not self._possible_here:
            return _NEVER
        if workers is None and self._seconds >= self._slowest:
            return 0
        count = min([self._unseen_runs(hook) for hook in self._hooks], default=_ANY_NUMBER)
        least = 0 if workers is None else workers.count * workers.steps_of_each
        count = min(count, max(least, int(self.longest / self._seconds)))
        if count > 1 and self._call is None:
            fetches = [getattr(hook, "computed_in_each_step", None) for hook in self._hooks]
            kind = SeveralSteps if workers is None else StepsOfWorkers
            self._call = kind(self._model, [self._model.train_ops, *fetches])
            self._possible_here = not self._call.draws_seeded_numbers
        return count if self._possible_here else _NEVER

    def _agreed(self, count):
        """What all workers that train in step may take; after a no they ask each other less and less often."""
        with tf.init_scope():
            count = self._agree(count)
        self._pause = min(2 * self._pause + 1, 63) if count < 2 else 0
        self._looks_left = self._pause
        return count

    def _unseen_runs(self, hook):
        """How many steps from the next one on a hook need not see."""
        runs = _unseen_runs(hook, self._step, self._model.loss)
        # A worker of TensorFlow 1 counts its own steps: those of all are so many times more.
        return runs * self._workers if type(hook) is tf.compat.v1.train.LoggingTensorHook else runs


class SeveralSteps:
    """A function of TensorFlow that takes several steps of a model, one behind the other."""

    def __init__(self, model, fetches):
        traced = model.traced
        flat = [_behind(model, fetches)]
        self._function, self._look_ups = traced.function_of(flat, traced.inputs)
        self._data = model.data
        self.draws_seeded_numbers = draws_seeded_numbers(traced.graph, flat) or draws_seeded_numbers(
            model.data.graph.graph, model.data.tensors
        )
        self._ends = False  # whether the data of workers that train in step may end: they see it together
        if isinstance(traced.strategy, tf.distribute.MultiWorkerMirroredStrategy):
            self._ends = not model.data.endless
        self._step = tf.distribute.get_strategy().experimental_local_results(model.step)[0]
        self._done = tf.Variable(0, trainable=False)
        self._loss = tf.Variable(tf.zeros([], model.loss.dtype), trainable=False, shape=model.loss.shape)
        self._call = tf.function(self._loop, autograph=False)

    def _loop(self, iterator, count, first, looked_up):
        self._done.assign(0)

        def go_on(done, goes_on):
            return (done < count) & goes_on

        def take(batch, done):
            # Waiting for a function's value is waiting for all of it only behind an operation that takes the value.
            loss = tf.identity(self._function(*batch, *looked_up)[0])
            self._loss.assign(loss)
            done += 1
            self._done.assign(done)
            is_number = tf.logical_not(tf.math.is_nan(loss)) if loss.dtype.is_floating else tf.constant(True)
            with tf.control_dependencies([loss]):
                moved = self._step.read_value() - first
            return done, tf.reshape(is_number, []) & tf.equal(moved, tf.cast(done, moved.dtype))

        def step(done, goes_on):
            del goes_on
            if not self._ends:
                return take(self._data.batch_of(iterator), done)
            following = iterator.get_next_as_optional()
            return tf.cond(
                following.has_value(),
                lambda: take(self._data.tensors_of(following.get_value()), done),
                lambda: (done, tf.constant(False)),
            )

        done, _ = tf.while_loop(go_on, step, (tf.constant(0), tf.constant(True)), parallel_iterations=1)
        return done, self._step.read_value() - first

    def __call__(self, count, first):
        """Takes so many steps from a global step on, fewer where the loss is no number or the step goes otherwise."""
        with tf.init_scope():
            looked_up = [tf.nest.flatten(look_up()) for look_up in self._look_ups]
            looked_up = [tensor for tensors in looked_up for tensor in tensors]
            first = tf.constant(first, self._step.dtype)
            done, moved = self._call(self._data.iterator(), tf.constant(int(count), tf.int32), first, looked_up)
            return int(done), self._loss.numpy(), int(moved) == int(done)

    def last_loss(self):
        """The loss of the last step of a call that failed; None where it failed in the first."""
        with tf.init_scope():
            return self._loss.numpy() if int(self._done) else None


class StepsOfWorkers:
    """Several steps of the workers of parameter servers."""

    draws_seeded_numbers = False  # they know by themselves

    def __init__(self, model, fetches):
        self._model = model
        self._loss = _behind(model, fetches)

    def __call__(self, count, first):
        """Lets the workers take so many steps from a global step on; returns what `SeveralSteps` do."""
        losses = self._model.workers.losses_of(self._loss, count)
        wrong = losses[np.isnan(losses)] if losses.dtype.kind == "f" else losses[:0]
        moves_by_one = self._model.global_step() == first + len(losses)
        return len(losses), wrong[0] if wrong.size else losses[-1], moves_by_one

    def last_loss(self):
        """A call that failed tells none."""


def _behind(model, fetches):
    """The loss of a model, computed behind something: a function would leave it out."""
    flat = [model.traced.value_of(leaf) for leaf in leaves_of(fetches)]
    with model.traced.graph.as_default(), tf.control_dependencies(flat):
        return tf.identity(model.loss)


def unseen_runs_before(timer, number):
    """How many runs a hook need not see that asks its timer for this number in the next one, and so on."""
    if not hasattr(timer, "_every_steps"):  # it never acts
        return _ANY_NUMBER
    last = timer.last_triggered_step()
    if last is None:
        return 0
    if timer._every_secs is not None:
        return _ANY_NUMBER if time.time() < timer._last_triggered_time + timer._every_secs else 0
    return last + timer._every_steps - number


def _unseen_runs(hook, step, loss):
    """How many runs, the next of which begins at this global step, a hook need not see."""
    kind, v1 = type(hook), tf.compat.v1.train
    if hasattr(hook, "unseen_runs"):
        return hook.unseen_runs(step)
    if kind.before_run is v1.SessionRunHook.before_run and kind.after_run is v1.SessionRunHook.after_run:
        return _ANY_NUMBER
    if kind is v1.StopAtStepHook:
        return hook._last_step - step - 1
    if kind is v1.NanTensorHook:
        return _ANY_NUMBER if hook._loss_tensor is loss else 0
    if kind is v1.LoggingTensorHook:
        return unseen_runs_before(hook._timer, hook._iter_count)
    if kind is v1.SummarySaverHook:
        return unseen_runs_before(hook._timer, step + 1) if hook._next_step == step + 1 else 0
    if kind is v1.StepCounterHook:
        return unseen_runs_before(hook._timer, step + hook._steps_per_run)
    return 0


def _sees_some(hook, loss):
    """Whether it is known which runs a hook has to see: it is not each one."""
    kind, v1 = type(hook), tf.compat.v1.train
    if hasattr(hook, "unseen_runs"):
        return True
    if kind.before_run is v1.SessionRunHook.before_run and kind.after_run is v1.SessionRunHook.after_run:
        return True
    if kind is v1.NanTensorHook:
        return hook._loss_tensor is loss
    return kind in (v1.StopAtStepHook, v1.LoggingTensorHook, v1.SummarySaverHook, v1.StepCounterHook)


def _tell(hook, runs, step, context, loss):
    """Brings a hook to where it would be if it had seen so many runs, up to this global step."""
    kind, v1 = type(hook), tf.compat.v1.train
    if kind is v1.LoggingTensorHook:
        hook._iter_count += round(runs)
    elif kind is v1.SummarySaverHook:
        hook._next_step = step + 1
    elif kind is v1.StepCounterHook:
        hook._last_global_step = step - 1
    elif kind is v1.NanTensorHook:
        hook.after_run(context, v1.SessionRunValues(loss, None, None))
