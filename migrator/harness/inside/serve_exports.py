"""Asks two SavedModels the same: each signature of the original's, with the same weights in both.

usage: python serve_exports.py JOB   (JSON: original, migrated: folders; names: {original variable: migrated one};
initial: npz of weights by the original's names; features: npz of a batch by path; result: file to write)

It runs in the migrated program's interpreter. The result is an npz file: arrays called "weights|side|variable" and
"outputs|what|signature|output", and "said", a JSON text: the signatures of both, and what could not be asked and why.
"""

import json
import sys

import halves
import numpy as np
import tensorflow as tf
from parts import moved_one_ulp, write_arrays

#: Examples of a request at most, those of one that is made up, and seeds by which weights are moved.
EXAMPLES, MADE_UP, SEEDS = 256, 16, (1, 2)
_VARIABLES = ("VarHandleOp", "VariableV2", "Variable")


class Model(object):
    """A SavedModel of either version in a session of its own; a variable has the name that it had in its program."""

    def __init__(self, folder):
        v1 = tf.compat.v1
        self.graph = tf.Graph()
        self.session = v1.Session(graph=self.graph)
        with self.graph.as_default():
            tags = [set(one.meta_info_def.tags) for one in _saved_model(folder).meta_graphs]
            chosen = next((one for one in tags if one == {"serve"}), tags[0])
            loaded = v1.saved_model.load(self.session, chosen, folder)
            self.signatures = {
                key: one for key, one in loaded.signature_def.items() if not key.startswith("__saved_model")
            }
            self.reads, self.places = {}, {}
            for operation in list(self.graph.get_operations()):
                if operation.type in _VARIABLES:
                    self._variable(operation)
        self.values = self.read()

    def _variable(self, operation):
        output = operation.outputs[0]
        if operation.type == "VarHandleOp":
            name = operation.get_attr("shared_name").decode() or operation.name
            dtype = tf.as_dtype(operation.get_attr("dtype"))
            read = tf.raw_ops.ReadVariableOp(resource=output, dtype=dtype)
            place = tf.compat.v1.placeholder(dtype)
            assign = tf.raw_ops.AssignVariableOp(resource=output, value=place)
        else:
            name, read = operation.name, tf.identity(output)
            place = tf.compat.v1.placeholder(output.dtype.base_dtype)
            assign = tf.compat.v1.assign(output, place, validate_shape=False)
        if output.dtype.base_dtype != tf.string:
            self.reads[name], self.places[name] = read, (place, assign)

    def read(self):
        """{variable: value}, of those that the SavedModel has values for."""
        found = {}
        for name, tensor in self.reads.items():
            try:
                found[name] = self.session.run(tensor)
            except tf.errors.FailedPreconditionError:  # of a table, or of an optimizer that was not saved
                continue
        return found

    def take(self, values):
        pairs = [(self.places[name], value) for name, value in values.items()]
        self.session.run([assign for (_, assign), _ in pairs], {place: value for (place, _), value in pairs})

    def inputs(self, key):
        """{name: (dtype, static shape or None)} of a signature."""
        found = {}
        for name, info in self.signatures[key].inputs.items():
            shape = tf.TensorShape(info.tensor_shape)
            found[name] = (tf.as_dtype(info.dtype), None if shape.rank is None else shape)
        return found

    def keys(self):
        """{key: how many numbers it has of each example} of the Examples that the model parses."""
        found = {}
        for operation in self.graph.get_operations():
            if operation.type not in ("ParseExample", "ParseExampleV2"):
                continue
            shapes = operation.get_attr("dense_shapes")
            # ParseExample has an input for each key, behind those of sparse features; ParseExampleV2 one for all.
            several = operation.type == "ParseExample"
            first = 2 + operation.get_attr("Nsparse") if several else 3
            names = list(operation.inputs)[first : first + (len(shapes) if several else 1)]
            values = [name for one in names for name in np.atleast_1d(self.session.run(one))]
            found.update((name.decode(), tf.TensorShape(shape).num_elements()) for name, shape in zip(values, shapes))
        return found

    def ask(self, key, asked):
        signature = self.signatures[key]
        feed = {signature.inputs[name].name: value for name, value in asked.items()}
        return self.session.run({name: info.name for name, info in signature.outputs.items()}, feed)


def _saved_model(folder):
    from tensorflow.core.protobuf import saved_model_pb2

    found = saved_model_pb2.SavedModel()
    with open(folder + "/saved_model.pb", "rb") as stream:
        found.ParseFromString(stream.read())
    return found


def named(features, keys):
    """The features by the names that a model knows them by, where only one of as many numbers has no name there."""
    free = {name: value for name, value in features.items() if name not in keys}
    found = {name: value for name, value in features.items() if name in keys}
    for key, count in keys.items():
        if key not in found:
            fitting = [name for name, value in free.items() if int(np.prod(value.shape[1:])) == count]
            if len(fitting) == 1:
                found[key] = free.pop(fitting[0])
    return dict(free, **found)


def example_protos(features):
    """Serialized `tf.train.Example`s of a batch."""
    protos = []
    for row in range(min(EXAMPLES, min(len(value) for value in features.values()))):
        entry = {}
        for name, value in features.items():
            flat = np.asarray(value[row]).reshape(-1)
            if flat.dtype.kind in "SOU":
                entry[name] = tf.train.Feature(bytes_list=tf.train.BytesList(value=list(flat)))
            elif flat.dtype.kind == "f":
                entry[name] = tf.train.Feature(float_list=tf.train.FloatList(value=flat))
            else:
                entry[name] = tf.train.Feature(int64_list=tf.train.Int64List(value=flat))
        protos.append(tf.train.Example(features=tf.train.Features(feature=entry)).SerializeToString())
    return np.array(protos, object)


def request(inputs, features, keys):
    """A value for each input of a signature: of the batch where it has one that fits, else made up; `keys` are those
    of the Examples that the model parses.
    """
    random = np.random.RandomState(7)
    rows = min([EXAMPLES if features else MADE_UP, *map(len, features.values())])
    found = {}
    for name, (dtype, shape) in sorted(inputs.items()):
        known = features.get(name, next(iter(features.values())) if len(features) == len(inputs) == 1 else None)
        fixed = shape.as_list()[0] if shape is not None and shape.ndims else None
        known = None if known is None else known[: fixed or rows]
        if known is not None and (shape is None or shape.is_compatible_with(known.shape)):
            text = known.dtype.kind in "SOU"
            if text == (dtype == tf.string):
                found[name] = known.astype(object if text else dtype.as_numpy_dtype)
                continue
        if shape is None:
            raise ValueError("the shape of input %r is not known" % name)
        sizes = [rows if size is None else size for size in shape.as_list()]
        if dtype == tf.string:
            if len(sizes) != 1 or not features:
                raise ValueError("no text is known that %r could be asked" % name)
            found[name] = example_protos(named(features, keys))
        elif dtype.is_floating:
            found[name] = random.uniform(-1.0, 1.0, sizes).astype(dtype.as_numpy_dtype)
        else:
            found[name] = random.randint(0, 2, sizes).astype(dtype.as_numpy_dtype)
    return found


def main(job):
    ours, theirs = Model(job["original"]), Model(job["migrated"])
    sides = (("original", ours), ("migrated", theirs))
    arrays = {"weights|%s|%s" % (side, name): value for side, one in sides for name, value in one.values.items()}
    with np.load(job["features"], allow_pickle=False) as archive:
        features = {name: archive[name] for name in archive.files}
    names = job["names"]
    with np.load(job["initial"]) as archive:
        initial = {names[name]: archive[name] for name in archive.files if name in names}
    same = {names[name]: value for name, value in ours.values.items() if name in names}
    absent = sorted(name for name in same if name not in theirs.values)
    said = {"original": sorted(ours.signatures), "migrated": sorted(theirs.signatures), "not_asked": {}}
    for key in said["original"]:
        if key not in said["migrated"]:
            continue
        inputs, others = ours.inputs(key), theirs.inputs(key)
        if sorted(inputs) != sorted(others):
            said["not_asked"][key] = {"original": sorted(inputs), "migrated": sorted(others)}
            continue

        def ask(what, model, asked, key=key):
            for output, value in model.ask(key, asked).items():
                value = np.asarray(value)
                arrays["outputs|%s|%s|%s" % (what, key, output)] = value.astype("S") if value.dtype == object else value

        try:
            if absent or not same:
                raise ValueError("no variable of its model is called %s" % (", ".join(absent) or "as in the original"))
            asked = request(inputs, features, ours.keys())
            half = halves.coarsest(halves.formats(ours.graph))
            ask("own", ours, asked)
            for seed in SEEDS:
                ours.take(moved_one_ulp(ours.values, seed, halves.DIGITS.get(half)))
                ask("nudged%d" % seed, ours, asked)
            theirs.take(same)
            ask("same", theirs, asked)
            if set(initial) <= set(theirs.values):
                theirs.take(initial)
                ask("control", theirs, asked)
        except (ValueError, TypeError, KeyError, tf.errors.OpError) as error:
            said["not_asked"][key] = str(error).splitlines()[0][:300]
        finally:
            ours.take(ours.values)
            theirs.take(theirs.values)
    write_arrays(job["result"], dict(arrays, said=np.array(json.dumps(said))))


if __name__ == "__main__":
    with open(sys.argv[1]) as stream:
        main(json.load(stream))
