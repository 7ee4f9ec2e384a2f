"""What a training does beside its steps, each at its step: checkpoints, exports, what callbacks and hooks made of it.

One line for each in ``effects.jsonl``: {"kind", "step", "name"}, with the steps that this process has taken.

- "checkpoint": one was written; ``name`` is its path
- "holds", "lacks": how many of the model's weights a checkpoint of the migrated program has as they are then, and which
  it has not
- "export": a SavedModel was written; ``name`` is its path
- "callback": a callback or hook of the program that may end training or set its rate; ``name`` is that of its class
- "acted": that callback did so
"""

import importlib
import os

import numpy as np
import parts

# Those that only look: what they write is seen as the checkpoints and summaries that it is.
_LOOKING = (
    "BackupAndRestore",
    "BaseLogger",
    "CSVLogger",
    "History",
    "ModelCheckpoint",
    "ProgbarLogger",
    "RemoteMonitor",
    "SwapEMAWeights",
    "TensorBoard",
    "TerminateOnNaN",
    "UpdateEmaWeightsCallback",
)
# Of TensorFlow 1's own hooks those that may end a training by what they see.
_ENDING = ("_StopOnPredicateHook", "_CheckForStoppingHook")
_CALLS = (
    "on_train_begin",
    "on_epoch_begin",
    "on_epoch_end",
    "on_batch_begin",
    "on_batch_end",
    "on_train_batch_begin",
    "on_train_batch_end",
    "on_test_end",
)


#: What a callback has to name to end a training or to set its rate.
_OF_TRAINING = ("stop_training", "optimizer", "learning_rate")


def _is_stock(kind):
    return kind.__module__.partition(".")[0] in ("keras", "tf_keras", "tensorflow", "tensorflow_estimator")


def _touches(kind, names):
    """Whether the code of a user's class, or of what is defined in it, names one of these."""
    waiting = []
    for one in kind.__mro__:
        if not _is_stock(one):
            waiting += [getattr(value, "__code__", None) for value in vars(one).values()]
    while waiting:
        code = waiting.pop()
        if code is None:
            continue
        if any(name in code.co_names for name in names):
            return True
        waiting += [one for one in code.co_consts if hasattr(one, "co_names")]
    return False


#: Checkpoints that are read again, of models of so many numbers: reading takes as long as writing.
_READ, _LARGEST = 2, 1 << 24


class Effects(object):
    """The list of one task; ``steps`` tells how many steps were taken, ``weights`` those of the model by name, where
    checkpoints are to be read again (None: they are not known).
    """

    def __init__(self, folder, steps, weights=lambda: None):
        self.folder = folder
        self.steps = steps
        self.weights = weights
        self.watched = []
        self.read = 0

    def note(self, kind, name, step=None):
        step = int(self.steps() if step is None else step)
        self.folder.append_line("effects.jsonl", {"kind": kind, "step": step, "name": str(name)})

    def wrote(self, path, step=None):
        """A checkpoint was written; False where it is the variables of a SavedModel."""
        path = os.fspath(path)
        path = path.decode() if isinstance(path, bytes) else path
        folder, name = os.path.split(path)
        if os.path.basename(folder) == "variables" or name.startswith("variables_temp"):
            return False
        self.note("checkpoint", path, step)
        return True

    def reread(self, tf, path):
        """Looks for the weights of the model in a checkpoint, by their values: names in there are those of objects."""
        weights = self.weights() if self.read < _READ and self.steps() else None
        if not weights or sum(value.size for value in weights.values()) > _LARGEST:
            return
        self.read += 1
        reader = tf.train.load_checkpoint(path)
        shapes = {value.shape for value in weights.values()}
        names = [name for name, shape in reader.get_variable_to_shape_map().items() if tuple(shape) in shapes]
        held = [np.asarray(reader.get_tensor(name)) for name in names]
        lacking = [name for name, value in weights.items() if not any(np.array_equal(value, one) for one in held)]
        self.note("holds", len(weights) - len(lacking))
        for name in lacking:
            self.note("lacks", name)

    def found(self, one):
        """Notes a callback or hook; False where it is known already."""
        if any(one is other for other in self.watched):
            return False
        self.watched.append(one)
        self.note("callback", type(one).__name__)
        return True

    def watch_callback(self, callback, state):
        """From now on what a callback of Keras does to ``state()`` (whether training is to stop, its rate) is noted."""
        kind = type(callback)
        looks = kind.__name__ in _LOOKING if _is_stock(kind) else not _touches(kind, _OF_TRAINING)
        if looks or not self.found(callback):
            return

        def around(original, *args, **kwargs):
            before = state()
            result = original(*args, **kwargs)
            if state() != before:
                self.note("acted", kind.__name__)
            return result

        for name in _CALLS:
            method = getattr(callback, name, None)
            # Keras calls a method of batches only where a class has its own.
            if method is not None and not getattr(method, "_is_default", False):
                parts.wrap(callback, name, around)

    def watch_hook(self, hook):
        """From now on it is noted when a hook of a session ends training."""
        kind = type(hook)
        ends = kind.__name__ in _ENDING if _is_stock(kind) else _touches(kind, ("request_stop",))
        if not ends or not self.found(hook):
            return

        def after_run(original, run_context, run_values):
            before = run_context.stop_requested
            result = original(run_context, run_values)
            if run_context.stop_requested and not before:
                self.note("acted", kind.__name__)
            return result

        parts.wrap(hook, "after_run", after_run)


def install(effects):
    """Notes every checkpoint that is written, by TensorFlow 1's Saver and by objects."""
    tf = importlib.import_module("tensorflow")

    def save(original, saver, session, save_path, *args, **kwargs):
        path = original(saver, session, save_path, *args, **kwargs)
        # A hook that saves may be called before the one that counts.
        step = kwargs.get("global_step", args[0] if args else None)
        effects.wrote(path or save_path, step if isinstance(step, (int, np.integer)) else None)
        return path

    parts.wrap(importlib.import_module("tensorflow.python.training.saver").Saver, "save", save)

    def save_objects(original, saver, file_prefix, *args, **kwargs):
        result = original(saver, file_prefix, *args, **kwargs)
        if isinstance(file_prefix, (str, bytes, os.PathLike)) and effects.wrote(file_prefix):
            effects.reread(tf, file_prefix)
        return result

    for name in ("tensorflow.python.checkpoint.checkpoint", "tensorflow.python.training.tracking.util"):
        try:
            saver = importlib.import_module(name).TrackableSaver
        except (ImportError, AttributeError):
            continue
        parts.wrap(saver, "save", save_objects)
        break


def install_keras(effects, model):
    """Notes what a class of models saves in the formats of Keras; the others are checkpoints of TensorFlow's."""

    def around(original, self, filepath, *args, **kwargs):
        result = original(self, filepath, *args, **kwargs)
        if isinstance(filepath, (str, os.PathLike)) and os.fspath(filepath).endswith((".h5", ".hdf5", ".keras")):
            effects.wrote(filepath)
        return result

    for name in ("save", "save_weights"):
        parts.wrap(model, name, around)
