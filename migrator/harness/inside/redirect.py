"""Maps every folder that a script keeps its training state in to one below the run's own model folder."""

import functools
import glob
import inspect
import os


class Redirect(object):
    """The same folder always becomes the same folder, in every task of a run; nesting is kept."""

    def __init__(self, model_dir):
        self.root = os.path.abspath(model_dir)

    def folder(self, path):
        """The new place of a folder. None stays None; a path inside the model folder stays."""
        if path is None or isinstance(path, int):
            return path
        path = os.fspath(path)
        if isinstance(path, bytes):
            path = path.decode("utf-8")
        absolute = os.path.abspath(path)
        if absolute == self.root or absolute.startswith(self.root + os.sep):
            return path
        return os.path.join(self.root, absolute.lstrip(os.sep))

    def file(self, path):
        """The new place of a file to write, or of a checkpoint prefix; its folder is made."""
        if path is None or not isinstance(path, (str, bytes, os.PathLike)):
            return path
        path = os.fspath(path)
        if isinstance(path, bytes):
            path = path.decode("utf-8")
        folder, name = os.path.split(path)
        # "dir/" means the folder, and a prefix without a name.
        target = self.folder(folder or os.curdir)
        os.makedirs(target, exist_ok=True)
        return os.path.join(target, name)

    def reading(self, path):
        """The place to read a file or a checkpoint from: a file that this run did not write is read where
        it is.
        """
        moved = self.file(path)
        if isinstance(moved, str) and isinstance(path, (str, os.PathLike)):
            escape = glob.escape
            if not glob.glob(escape(moved) + "*") and glob.glob(escape(os.fspath(path)) + "*"):
                return os.fspath(path)
        return moved


def wrap_argument(function, argument, change):
    """``function`` with ``change`` applied to the argument of that name, however it is passed."""
    names = list(inspect.signature(function).parameters)
    position = names.index(argument)

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        if argument in kwargs:
            kwargs[argument] = change(kwargs[argument])
        elif len(args) > position:
            args = (*args[:position], change(args[position]), *args[position + 1 :])
        return function(*args, **kwargs)

    return wrapper


def patch_argument(holder, name, argument, change):
    """Wraps ``holder.name`` in place; does nothing where this TensorFlow has no such thing."""
    function = getattr(holder, name, None)
    if function is None:
        return
    try:
        setattr(holder, name, wrap_argument(function, argument, change))
    except ValueError:
        return


def patch_checkpoint_functions(modules, redirect):
    """The functions of tf.train that take a checkpoint folder or prefix, in several copies of the tf.train
    module.
    """
    for train in modules:
        patch_argument(train, "latest_checkpoint", "checkpoint_dir", redirect.folder)
        patch_argument(train, "get_checkpoint_state", "checkpoint_dir", redirect.folder)
        patch_argument(train, "checkpoint_exists", "checkpoint_prefix", redirect.reading)
        for name in ("load_checkpoint", "list_variables", "load_variable", "init_from_checkpoint"):
            patch_argument(train, name, "ckpt_dir_or_file", redirect.reading)
