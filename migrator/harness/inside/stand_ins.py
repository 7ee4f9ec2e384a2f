"""Lets a script do without what it would download, without files that it names and without its arguments.

Only the shapes and types of what comes of it count, since nothing is trained. Data sets of Keras and MNIST are known
beforehand; a pattern stands for a file that matches it, a file that is not there has a few lines, a table has the
columns that are asked of it, and weights that would be loaded are those that a model has. What is made up is so for the
project's own code only: libraries look for files of their own, and have to learn that they are not there.
Standard library, NumPy and TensorFlow only; pandas where it is.
"""

from __future__ import annotations

import builtins
import io
import os
import shutil
import sys

support_files = set()  # which look for files as a library does
LINES = "".join("%d\n" % number for number in range(1, 65))
# Columns that hold words: those of the tables that everybody uses (census, Titanic), and what feature columns say.
_WORDS = {
    "workclass",
    "education",
    "marital_status",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "gender",
    "sex",
    "native_country",
    "native-country",
    "income_bracket",
    "Name",
    "Sex",
    "Ticket",
    "Cabin",
    "Embarked",
    "embark_town",
    "class",
    "deck",
    "alone",
}


class _Text(io.StringIO):
    """A text file that is not there."""


def make_up(root):
    """Puts all stand-ins in place, for code in files below `root`."""

    def asked_by_the_project(depth):
        frame = sys._getframe(depth + 1)
        while frame.f_back is not None and os.path.basename(frame.f_code.co_filename) in ("codecs.py", "pathlib.py"):
            frame = frame.f_back  # they open files for others
        file = frame.f_code.co_filename
        return file.startswith(root + os.sep) and file not in support_files

    _data_sets()
    _patterns()
    _files(asked_by_the_project)
    _downloads()
    _tables(asked_by_the_project)
    _feature_columns()
    _arguments_of_argparse()
    _arguments_of_absl()


def _data_sets():
    import numpy as np
    import tensorflow as tf

    def images(size, classes, label_shape=()):
        def load_data(*args, **kwargs):
            labels = (np.arange(6000) % classes).astype("uint8").reshape((6000, *label_shape))
            return ((np.zeros((6000, *size), "uint8"), labels),) * 2

        return load_data

    def words(classes):
        def load_data(*args, **kwargs):
            rows = np.empty(64, object)
            rows[:] = [[1, 4, 2 + row % 7, 5] for row in range(64)]
            return ((rows, np.arange(64) % classes),) * 2

        return load_data

    loaders = {
        "mnist": images((28, 28), 10),
        "fashion_mnist": images((28, 28), 10),
        "cifar10": images((32, 32, 3), 10, (1,)),
        "cifar100": images((32, 32, 3), 100, (1,)),
        "boston_housing": lambda *args, **kwargs: ((np.zeros((64, 13)), np.zeros(64)),) * 2,
        "imdb": words(2),
        "reuters": words(46),
    }
    for keras in (tf.keras, tf.compat.v1.keras):
        for name in loaders:
            getattr(keras.datasets, name).load_data  # noqa: B018 - lazily imported
    for name, module in list(sys.modules.items()):  # each function is found in several modules
        folder, _, last = name.rpartition(".")
        if last in loaders and folder.endswith(".datasets") and hasattr(module, "load_data"):
            module.load_data = loaders[last]
            if hasattr(module, "get_word_index"):
                module.get_word_index = lambda *args, **kwargs: {"word%d" % n: n for n in range(1, 50)}


def _patterns():
    import glob

    import tensorflow as tf

    def names(found):
        def or_the_pattern(pattern, *args, **kwargs):
            made = found(pattern, *args, **kwargs)
            one = pattern if isinstance(pattern, (str, bytes, os.PathLike)) else pattern[0] if pattern else ""
            return made or [os.fspath(one)]

        return or_the_pattern

    glob.glob = names(glob.glob)
    for module in (tf.io.gfile, tf.compat.v1.gfile):
        for name in ("glob", "Glob"):
            if hasattr(module, name):
                setattr(module, name, names(getattr(module, name)))

    listed, walked = os.listdir, os.walk
    os.listdir = lambda path=".": listed(path) if os.path.isdir(path) else ["made-up"]
    os.walk = lambda top, *args, **kwargs: (
        walked(top, *args, **kwargs) if os.path.isdir(top) else iter([(top, [], ["made-up"])])
    )


def _is_file_name(path):
    """Whether a path that is not there would be that of a file: folders are made, files are found."""
    return bool(os.path.splitext(os.fsdecode(os.path.basename(path)))[1])


def _files(asked_by_the_project):
    import tensorflow as tf

    opened, is_file, exists = builtins.open, os.path.isfile, os.path.exists

    def made_up(mode):
        if "b" in mode:
            return io.BytesIO(LINES.encode())
        return _Text(LINES)

    def open_(file, mode="r", *args, **kwargs):
        readable = not set(mode) & set("wax+")
        absent = isinstance(file, (str, bytes, os.PathLike)) and not exists(file)
        if readable and absent and asked_by_the_project(1):
            return made_up(mode)
        return opened(file, mode, *args, **kwargs)

    def isfile(path):
        return is_file(path) or (asked_by_the_project(1) and not os.path.isdir(path))

    def exists_(path):
        return exists(path) or (asked_by_the_project(1) and _is_file_name(path))

    builtins.open = io.open = open_
    os.path.isfile, os.path.exists = isfile, exists_
    removed = shutil.rmtree
    shutil.rmtree = lambda path, *args, **kwargs: removed(path, *args, **kwargs) if exists(path) else None

    real, there = tf.io.gfile.GFile, tf.io.gfile.exists

    def gfile(name, mode="r"):
        return made_up(mode) if "r" in mode and not there(name) and asked_by_the_project(1) else real(name, mode)

    def gfile_exists(path):
        return there(path) or (asked_by_the_project(1) and _is_file_name(path))

    for module in (tf.io.gfile, tf.compat.v1.gfile, tf.compat.v1.io.gfile):
        for name in ("GFile", "Open", "FastGFile"):
            if hasattr(module, name):
                setattr(module, name, gfile)
        for name in ("exists", "Exists"):
            if hasattr(module, name):
                setattr(module, name, gfile_exists)


def _downloads():
    import urllib.request

    import tensorflow as tf

    def get_file(fname=None, origin="", *args, **kwargs):
        return os.fspath(fname or os.path.basename(origin))

    get = tf.keras.utils.get_file
    for module in list(sys.modules.values()):
        if getattr(module, "get_file", None) is get:
            module.get_file = get_file
    tf.keras.utils.get_file = tf.compat.v1.keras.utils.get_file = get_file
    urllib.request.urlretrieve = lambda url, filename=None, *args, **kwargs: (filename or os.path.basename(url), None)
    urllib.request.urlopen = lambda *args, **kwargs: io.BytesIO(LINES.encode())

    loads = tf.keras.Model.load_weights

    def load_weights(self, filepath, *args, **kwargs):
        return loads(self, filepath, *args, **kwargs) if os.path.exists(filepath) else None

    tf.keras.Model.load_weights = load_weights


def _tables(asked_by_the_project):
    try:
        import pandas as pd
    except ImportError:
        return
    import numpy as np

    def values(rows, name, kind=None):
        if kind is None and name in _WORDS:
            return np.full(rows, "1", object)
        return np.ones(rows, np.int64).astype(kind or np.int64)

    class Table(pd.DataFrame):
        """Numbers, in the columns that it was said to have and in all that are asked for."""

        @property
        def _constructor(self):
            return Table

        def _have(self, keys):
            for key in keys if isinstance(keys, (list, pd.Index)) else [keys]:
                if isinstance(key, str) and key not in self.columns:
                    super().__setitem__(key, values(len(self), key))
                elif isinstance(key, str) and key in _WORDS and super().__getitem__(key).dtype.kind == "i":
                    super().__setitem__(key, super().__getitem__(key).astype(str).astype(object))

        def __getitem__(self, key):
            self._have(key)
            return super().__getitem__(key)

        def __getattr__(self, name):
            if name.startswith("_") or not asked_by_the_project(1):
                raise AttributeError(name)
            return self[name]

        def pop(self, item):
            self._have(item)
            return super().pop(item)

        def drop(self, labels=None, *args, columns=None, **kwargs):
            self._have([key for key in [*_listed(labels), *_listed(columns)] if isinstance(key, str)])
            return super().drop(labels, *args, columns=columns, **kwargs)

    def _listed(keys):
        return [] if keys is None else [keys] if isinstance(keys, str) else list(keys)

    def or_made_up(reads):
        def read(source, *args, **kwargs):
            path = os.fspath(source) if isinstance(source, (str, os.PathLike)) else ""
            if not isinstance(source, _Text) and (not path or ("://" not in path and os.path.exists(path))):
                return reads(source, *args, **kwargs)
            types = kwargs.get("dtype")
            types = types if isinstance(types, dict) else {}
            names = kwargs.get("names") or kwargs.get("usecols") or list(types)
            names = [name for name in names if not callable(name)] if not callable(names) else []
            made = Table(index=range(64))
            for name in names:
                made[name] = values(64, name, types.get(name))
            return made

        return read

    for name in ("read_csv", "read_table", "read_excel", "read_json", "read_pickle", "read_hdf", "read_parquet"):
        setattr(pd, name, or_made_up(getattr(pd, name)))


def _feature_columns():
    import tensorflow as tf

    for module in (tf.feature_column, tf.compat.v1.feature_column):
        for kind in ("vocabulary_list", "vocabulary_file", "hash_bucket"):
            name = "categorical_column_with_%s" % kind
            setattr(module, name, noting_words(getattr(module, name)))


def noting_words(make):
    """A function that makes feature columns, which tells what columns of tables hold words."""

    def made(*args, **kwargs):
        column = make(*args, **kwargs)
        kind = getattr(column, "dtype", None)
        if kind is not None and getattr(kind, "name", kind) == "string":
            _WORDS.add(getattr(column, "column_name", None) or column.key)
        return column

    return made


def _arguments_of_argparse():
    import argparse

    def value(action):
        if action.choices:
            return next(iter(action.choices))
        if action.type in (int, float):
            return action.type(1)
        return [] if action.nargs in ("*", "+") else "made-up"

    parse = argparse.ArgumentParser.parse_known_args

    def parse_known_args(self, args=None, namespace=None):
        for action in self._actions:
            if action.required and not isinstance(action, argparse._SubParsersAction):
                if action.option_strings:
                    action.required, action.default = False, value(action)
                else:
                    action.nargs, action.default = action.nargs or "?", value(action)
                    action.required = False
        return parse(self, args, namespace)

    argparse.ArgumentParser.parse_known_args = parse_known_args


def _arguments_of_absl():
    import tensorflow as tf
    from absl import flags

    values = {"integer": 1, "float": 1.0, "boolean": False}

    def required(name, flag_values=flags.FLAGS, **kwargs):
        flag = flag_values[name]
        if flag.value is None:
            flag.value = flag.default = values.get(flag.parser.syntactic_help.rpartition(" ")[2], "made-up")

    def all_required(names, flag_values=flags.FLAGS):
        for name in names:
            required(name, flag_values)

    for module in (flags, tf.compat.v1.flags, tf.compat.v1.app.flags):
        module.mark_flag_as_required = required
        module.mark_flags_as_required = all_required
