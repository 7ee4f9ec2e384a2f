"""Checkpoints by name, as TensorFlow 1 writes and reads them."""

from __future__ import annotations

import os
import time

import tensorflow as tf

from .unseen import unseen_runs_before


def kept_in_checkpoints(variables, saver=None):
    """What checkpoints have, as (key, slice, variable): all variables, or those of a Saver under the names it gives.

    A slice is where a piece of a split variable lies in the whole; "" for a variable that is not split. Raises
    ValueError for a Saver of variables that are not among these.
    """
    chosen = getattr(saver, "_var_list", None)
    names = {id(variable): name for name, variable in variables.items()}
    if chosen is None:
        chosen = list(variables.values())
    found = []
    for key, value in chosen.items() if isinstance(chosen, dict) else ((None, one) for one in chosen):
        is_list = isinstance(value, (list, tuple)) or hasattr(value, "_get_variable_list")
        for variable in value if is_list else [value]:
            name, piece = names.get(id(variable)), getattr(variable, "_save_slice_info", None)
            if name is None and isinstance(variable, tf.Variable):
                raise ValueError(f"the scaffold's saver has {variable.name}, which checkpoints of this model have not")
            if name is None:  # the state of something else
                continue
            if piece is None or (key is not None and not is_list):
                found.append((key or name, "", variable))
            else:
                found.append((key or piece.full_name, piece.spec, variable))
    return found


class NamedSaver:
    """Writes and reads variables by name, and keeps the newest checkpoints of a folder.

    Args:
        kept: what checkpoints have, as `kept_in_checkpoints` gives it.
        strategy: the strategy that they were made under.
        max_to_keep: how many checkpoints are kept; 0 or None: all.
        keep_every_n_hours: one checkpoint in so many hours is kept for ever.
        writes: whether this process writes, or only helps another that does to read the values.
    """

    def __init__(self, kept, strategy, max_to_keep=5, keep_every_n_hours=10000.0, writes=True):
        self._kept = kept
        self._strategy = strategy
        self._max_to_keep = max_to_keep
        self._writes = writes
        self._keep_seconds = keep_every_n_hours * 3600
        self._next_to_keep = time.time() + self._keep_seconds
        self._written = None  # (path, time) of those that may be deleted

    def save(self, path, step):
        """Writes a checkpoint, and returns its path."""
        path = f"{path}-{step}"
        folder = os.path.dirname(path)
        values = [_value(variable) for _, _, variable in self._kept]
        if not self._writes:
            return path
        tf.io.gfile.makedirs(folder)
        tf.raw_ops.SaveV2(
            prefix=path,
            tensor_names=[key for key, _, _ in self._kept],
            shape_and_slices=[where for _, where, _ in self._kept],
            tensors=values,
        )
        if self._written is None:  # those of earlier trainings count too
            state = tf.train.get_checkpoint_state(folder)
            known = [] if state is None else list(state.all_model_checkpoint_paths)
            self._written = [
                (one, tf.io.gfile.stat(one + ".index").mtime_nsec / 1e9)
                for one in known
                if tf.io.gfile.exists(one + ".index")
            ]
        self._written = [one for one in self._written if one[0] != path] + [(path, time.time())]
        while self._max_to_keep and len(self._written) > self._max_to_keep:
            oldest, written = self._written.pop(0)
            if written > self._next_to_keep:
                self._next_to_keep += self._keep_seconds
            else:
                for file in tf.io.gfile.glob(oldest + ".*"):
                    tf.io.gfile.remove(file)
        names = [os.path.basename(one) for one, _ in self._written]
        lines = [f'model_checkpoint_path: "{names[-1]}"', *(f'all_model_checkpoint_paths: "{name}"' for name in names)]
        state = os.path.join(folder, "checkpoint")
        with tf.io.gfile.GFile(state + ".new", "w") as file:
            file.write("\n".join(lines) + "\n")
        tf.io.gfile.rename(state + ".new", state, overwrite=True)
        return path

    def restore(self, path):
        """Gives all variables the values of a checkpoint. Raises tf.errors.NotFoundError for one that it has not."""
        reader = tf.train.load_checkpoint(path)
        for key, where, variable in self._kept:
            if not reader.has_tensor(key):
                raise tf.errors.NotFoundError(None, None, f"Key {key} not found in checkpoint {path}")
            if where:  # read alone: of a split variable's slots TensorFlow 1 may have no whole
                (value,) = tf.raw_ops.RestoreV2(
                    prefix=path, tensor_names=[key], shape_and_slices=[where], dtypes=[variable.dtype]
                )
            else:
                value = reader.get_tensor(key)
            with self._strategy.scope():
                variable.assign(value)


def _value(variable):
    """The value of a variable; of one that each replica has its own of, what these give together in this process."""
    copies = tf.distribute.get_strategy().experimental_local_results(variable)
    own = [copy.read_value() for copy in copies]
    if len(own) == 1 or getattr(variable, "synchronization", None) != tf.VariableSynchronization.ON_READ:
        return own[0]
    whole = tf.add_n(own)
    return whole / len(own) if variable.aggregation == tf.VariableAggregation.MEAN else whole


def step_of_checkpoint(model_dir):
    """The global step of the last checkpoint in a folder; 0 where there is none."""
    try:
        return int(tf.train.load_variable(model_dir, tf.compat.v1.GraphKeys.GLOBAL_STEP))
    except (tf.errors.NotFoundError, ValueError):
        return 0


class CheckpointSaver(tf.compat.v1.train.SessionRunHook):
    """Writes a checkpoint before the first step, every so often, and behind the last step.

    Clocks of several workers differ: with `agree`, they decide together whether it is time, in every tenth step that
    hooks see.
    """

    def __init__(
        self, saver, step, model_dir, save_secs=None, save_steps=None, listeners=(), name="model.ckpt", agree=None
    ):
        self._saver = saver
        self._step = step  # returns the global step
        self._path = os.path.join(model_dir, name)
        self._timer = tf.compat.v1.train.SecondOrStepTimer(every_secs=save_secs, every_steps=save_steps)
        self._listeners = list(listeners)
        self._agree = agree
        self._runs = 0

    def begin(self):
        for listener in self._listeners:
            listener.begin()

    def after_create_session(self, session, coord):
        self._save(session)

    def after_run(self, run_context, run_values):
        if self._is_time() and self._save(run_context.session):
            run_context.request_stop()

    def unseen_runs(self, step):
        """How many runs, the next of which begins at this global step, this hook need not see."""
        return unseen_runs_before(self._timer, step + 1)

    def _is_time(self):
        self._runs += 1
        if self._agree is not None and self._runs % 10:
            return False
        due = self._timer.should_trigger_for_step(self._step())
        if self._agree is None:
            return due
        with tf.init_scope():
            return self._agree(due)

    def end(self, session):
        step = self._step()
        if step != self._timer.last_triggered_step():
            self._save(session)
        for listener in self._listeners:
            listener.end(session, step)

    def _save(self, session):
        """Writes a checkpoint; returns whether a listener asks for the training to stop."""
        step = self._step()
        self._timer.update_last_triggered_step(step)
        for listener in self._listeners:
            listener.before_save(session, step)
        with tf.init_scope():  # out of the model's graph, which hooks are called in
            self._saver.save(self._path, step)
        stops = [listener.after_save(session, step) for listener in self._listeners]
        return any(stop for stop in stops)
