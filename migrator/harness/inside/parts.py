"""Variables that live in parts: description, joining, cutting, the one-ulp move; arrays on disk."""

import functools
import importlib
import os
import threading
import zipfile
import zlib

import numpy as np


def atomic_write(path, data):
    """Writes bytes so that a reader sees all or nothing."""
    temporary = "%s.%d.%d.tmp" % (path, os.getpid(), threading.get_ident())
    with open(temporary, "wb") as stream:
        stream.write(data)
    os.rename(temporary, path)


def write_arrays(path, arrays):
    """Writes a dict name -> array as an npz file, atomically; names may hold any character."""
    temporary = "%s.%d.%d.tmp" % (path, os.getpid(), threading.get_ident())
    with zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(arrays):
            value = np.asarray(arrays[name])
            with archive.open(name + ".npy", "w", force_zip64=value.nbytes > 1 << 30) as member:
                np.lib.format.write_array(member, value, allow_pickle=False)
    os.rename(temporary, path)


def read_arrays(path):
    """What ``write_arrays`` wrote; nothing where there is no file."""
    if not os.path.exists(path):
        return {}
    with np.load(path) as archive:
        return {name: archive[name] for name in archive.files}


def of_replicas(values):
    """What a checkpoint holds of a variable that every replica has: the mean where they differ (moving averages)."""
    if all(np.array_equal(value, values[0]) for value in values[1:]):
        return values[0]
    return np.mean(np.asarray(values, np.float64), axis=0).astype(values[0].dtype)


def first_assignment(variable):
    """The operation that gives a graph's variable its first value, and the tensor of that value. A warm start puts one
    of its own in the place of the variable's, of which a tensor may be all that is left.
    """
    operation = variable.initializer
    operation = operation if hasattr(operation, "inputs") else operation.op
    return operation, operation.inputs[1] if len(operation.inputs) > 1 else None


class Part(object):
    """One stored piece of a model variable; an unpartitioned variable is one part at offset zero.

    ``name`` is that of the whole variable, ``offset`` the first element along every axis, ``whole`` the
    whole shape. ``copies`` are the variables of all replicas of this process.
    """

    def __init__(self, name, variable, offset, shape, whole, dtype, trainable):
        self.name = name
        self.variable = variable
        self.copies = [variable]
        self.offset = tuple(int(n) for n in offset)
        self.shape = tuple(int(n) for n in shape)
        self.whole = tuple(int(n) for n in whole)
        self.dtype = dtype
        self.trainable = bool(trainable)

    def slices(self):
        return tuple(slice(start, start + size) for start, size in zip(self.offset, self.shape))


def describe(parts):
    """The JSON description of the variables in ``parts``, in their order."""
    table = {}
    for part in parts:
        entry = table.setdefault(
            part.name,
            {
                "name": part.name,
                "shape": list(part.whole),
                "dtype": part.dtype,
                "trainable": part.trainable,
                "order": len(table),
                "shards": 0,
                "rows": [],
            },
        )
        entry["shards"] += 1
        entry["rows"] += part.shape[:1]
    return list(table.values())


def join(parts, values):
    """Whole arrays by variable name, from one array per part."""
    whole = {}
    for part, value in zip(parts, values):
        value = np.asarray(value)
        if part.shape == part.whole:
            whole[part.name] = value
        else:
            if part.name not in whole:
                whole[part.name] = np.zeros(part.whole, value.dtype)
            whole[part.name][part.slices()] = value
    return whole


def cut(parts, arrays):
    """One array per part from whole arrays; KeyError or ValueError (a readable one) when they do not fit."""
    pieces = []
    for part in parts:
        if part.name not in arrays:
            raise KeyError("no initial value for variable %r" % part.name)
        value = np.asarray(arrays[part.name])
        if tuple(value.shape) != part.whole:
            raise ValueError(
                "the initial value of %r has shape %s, the variable %s" % (part.name, value.shape, part.whole)
            )
        pieces.append(value[part.slices()].astype(part.dtype))
    return pieces


def moved_one_ulp(arrays, seed, digits=None):
    """Every element of every float array moved to its neighbour above or below, at random; depends on seed
    and name only. With ``digits``, to that of so many binary digits behind the first: a format that it is cast to.
    """
    moved = {}
    for name, value in arrays.items():
        value = np.asarray(value)
        if not np.issubdtype(value.dtype, np.floating):
            moved[name] = value
            continue
        random = np.random.RandomState([int(seed) & 0x7FFFFFFF, zlib.crc32(name.encode("utf-8"))])
        up = random.randint(0, 2, size=value.shape).astype(bool)
        if digits is not None and value.dtype.itemsize > 2:
            unit = np.ldexp(1.0, np.frexp(value)[1] - 1 - digits)
            moved[name] = (value + np.where(up, unit, -unit)).astype(value.dtype)
            continue
        infinity = value.dtype.type(np.inf)
        moved[name] = np.where(up, np.nextafter(value, infinity), np.nextafter(value, -infinity)).astype(value.dtype)
    return moved


def initial_values(plan, current):
    """The values to start from, or None when the program's own stay. ``current`` returns them as whole
    arrays.
    """
    values = None
    if plan.get("initial"):
        with np.load(plan["initial"]) as archive:
            values = {name: archive[name] for name in archive.files}
    if plan.get("ulp_seed") is not None:
        values = moved_one_ulp(current() if values is None else values, plan["ulp_seed"])
    return values


def features_of(tensor):
    """The static shape of one example of a batch, None where it is unknown."""
    shape = getattr(tensor, "shape", None)
    if shape is None or getattr(shape, "ndims", None) is None:
        return None
    sizes = shape.as_list()[1:]
    return None if None in sizes else sizes


def numbers(results):
    """The scalars among results by name."""
    found = {}
    for name, value in results.items():
        array = np.asarray(value)
        if array.ndim == 0 and array.dtype.kind in "biuf":
            found[name] = float(array)
    return found


def constant(operation):
    """The value of an operation that is a constant, as an array."""
    return importlib.import_module("tensorflow.python.framework.tensor_util").MakeNdarray(operation.get_attr("value"))


def float32(value):
    """A number as float32 sees it; None, booleans and strings pass."""
    if value is None or isinstance(value, (bool, str)):
        return value
    return float(np.float32(value))


def wrap(holder, name, around):
    """Replaces ``holder.name`` by a function that calls ``around(original, ...)``."""
    original = getattr(holder, name)

    @functools.wraps(original)
    def wrapper(*args, **kwargs):
        return around(original, *args, **kwargs)

    setattr(holder, name, wrapper)
