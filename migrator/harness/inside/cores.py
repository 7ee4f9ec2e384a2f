"""What the cores of a TPU are given to compute, kept for compile_steps.py, and what they have no operations for."""

import importlib
import json
import os
import re
import sysconfig
import traceback

from parts import wrap

HERE = os.path.dirname(os.path.abspath(__file__))
# Graphs that are kept of a run: its steps of training, evaluation and prediction, each traced a few times.
MOST = 8
_PYTHON = re.compile("(Eager)?PyFunc")
_TABLES = re.compile("(Lookup|Hash|MutableHash|AnonymousHash|InitializeTable)Table|InitializeTable")
_LEFT_OUT = re.compile("Const|Assert|Identity|.*Summary|Print")  # strings that are not computed with
_UPDATES = re.compile("(Resource)?(Sparse)?(Assign|Apply|Scatter)")
_GRADIENTS = re.compile("(^|/)(gradient_tape|gradients)/")


def lacking(operation):
    """What an operation needs that a TPU has not: strings, tables or Python; else nothing."""
    if _PYTHON.match(operation.type):
        return "Python"
    if _TABLES.match(operation.type):
        return "tables"
    return "strings" if _of_strings(operation) and not _LEFT_OUT.match(operation.type) else ""


def _of_strings(operation):
    return any(one.dtype.base_dtype.name == "string" for one in [*operation.inputs, *operation.outputs])


class Kept(object):
    """Writes the graphs of the first calls of ``strategy.run`` to ``cores/`` in a task's folder: NN.pb, the graph that
    they are part of, and NN.json, which says what part that is.
    """

    def __init__(self, tf, folder):
        self.tf = tf
        self.folder = folder
        self.known = set()
        self.layers = {}  # where the layers were made, by their names

    def note_layers(self):
        """Notes where layers are made: a functional model calls them later, from Keras' own code."""
        kind, noted = self.tf.keras.layers.Layer, self.layers
        if hasattr(kind.__init__, "noting"):
            return

        def init(original, layer, *args, **kwargs):
            original(layer, *args, **kwargs)
            noted[getattr(layer, "name", "")] = _own_line(traceback.walk_stack(None))

        wrap(kind, "__init__", init)
        kind.__init__.noting = True

    def place(self, operation):
        """[file, line] of the program that an operation comes from, or its layer; None where neither is known."""
        found = place(operation)
        for part in reversed(operation.name.split("/")):
            found = found or self.layers.get(part)
        return found

    def watching(self, run):
        """``run`` of a strategy, whose operations are kept where it makes a graph."""

        def watched(*args, **kwargs):
            graph = None if self.tf.executing_eagerly() else self.tf.compat.v1.get_default_graph()
            before = len(graph.get_operations()) if graph is not None and len(self.known) < MOST else None
            result = run(*args, **kwargs)
            if before is not None:
                try:
                    self.keep(graph, graph.get_operations()[before:], result)
                except Exception as error:  # what is not kept is told, and is no failure of the program
                    self.folder.write_json("cores_failed.json", {"said": repr(error)})
            return result

        return watched

    def keep(self, graph, operations, result):
        """Keeps these operations of a graph, whose outcome is ``result``."""
        tf = self.tf
        operations = [one for one in operations if one.type != "Placeholder"]  # what a graph is given from outside
        core = set(operations)
        key = tuple((one.type, *(str(tensor.shape) for tensor in one.outputs)) for one in operations)
        if not operations or key in self.known:
            return
        self.known.add(key)
        path = self.folder.file("cores", "%02d" % len(self.known))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        inputs = {one.name: one for one in _tensors(operations) if one.op not in core}.values()
        values = tf.nest.flatten(result, expand_composites=True)
        values = [part for value in values for part in getattr(value, "values", [value])]
        own = [one for one in operations if _is_recorders(one)]
        roots = core - set(own)
        said = {
            "core": [one.name for one in operations],
            "roots": [one.name for one in operations if one in roots and one.op_def and one.op_def.is_stateful],
            "results": [one.name for one in values if getattr(getattr(one, "op", None), "graph", None) is graph],
            "own": [one.name for one in own],
            "text": [one.name for one in operations if _of_strings(one)],
            "lacking": {one.name: lacking(one) for one in operations if one not in own and lacking(one)},
            "variables": {one.name: _variable(one) for one in inputs if one.dtype.base_dtype == tf.resource},
            "constants": {name: node for name, node in ((one.name, _constant(graph, one)) for one in inputs) if node},
            "types": {one.name: one.dtype.base_dtype.name for one in _tensors(operations)},
            "shapes": {one.name: _shape(one) for one in _tensors(operations)},
            "places": {one.name: self.place(one) for one in operations},
            "functions": {},
            "trains": any(_GRADIENTS.search(one.name) for one in operations),
            "soft_placement": bool(tf.config.get_soft_device_placement()),
        }
        waiting, definitions = list(operations), {}
        while waiting:
            for definition, function in _functions(waiting.pop()):
                name = definition.signature.name
                if name not in said["functions"]:
                    inner = function.get_operations()
                    said["functions"][name] = {one.name: [self.place(one), lacking(one)] for one in inner}
                    definitions[name] = definition
                    waiting.extend(inner)
        with open(path + ".pb", "wb") as stream:
            whole = graph.as_graph_def()
            known = {one.signature.name for one in whole.library.function}
            whole.library.function.extend(one for name, one in definitions.items() if name not in known)
            _complete(whole.library)
            stream.write(whole.SerializeToString())
        with open(path + ".json", "w") as stream:
            json.dump(said, stream)


def _tensors(operations):
    return [tensor for one in operations for tensor in [*one.inputs, *one.outputs]]


def _shape(tensor):
    return None if tensor.shape.rank is None else tensor.shape.as_list()


def _variable(handle):
    """(type, shape) of the variable of a handle; None of anything else, or where it is not known."""
    data = importlib.import_module("tensorflow.python.ops.handle_data_util").get_resource_handle_data(handle)
    if not data.is_set or len(data.shape_and_type) != 1:
        return None
    one = data.shape_and_type[0]
    shape = [int(axis.size) for axis in one.shape.dim]
    return None if one.shape.unknown_rank or min(shape or [0]) < 0 else (int(one.dtype), shape)


def _constant(graph, tensor):
    """The serialized node of a constant outside that a graph was given; nothing of anything else."""
    while tensor.op.type in ("Placeholder", "Identity") and hasattr(graph, "captures"):
        outside = [outer for outer, inner in graph.captures if inner is tensor]
        if not outside or not hasattr(outside[0], "graph"):
            return ""
        tensor, graph = outside[0], outside[0].graph
    return tensor.op.node_def.SerializeToString().hex() if tensor.op.type == "Const" else ""


def _functions(operation):
    """(definition, graph) of the functions that an operation calls."""
    for value in operation.node_def.attr.values():
        for name in [value.func.name, *(one.name for one in value.list.func)]:
            known = operation.graph._get_function(name) if name else None
            graph = getattr(known, "graph", None)
            if graph is not None:
                yield known.definition, graph


def _complete(library):
    """Adds the functions that those of a library call and that only this process knows."""
    context = importlib.import_module("tensorflow.python.eager.context").context()
    known = {one.signature.name for one in library.function}
    waiting = list(library.function)
    while waiting:
        for node in waiting.pop().node_def:
            for value in node.attr.values():
                for name in [value.func.name, *(one.name for one in value.list.func)]:
                    if name and name not in known and context.has_function(name):
                        known.add(name)
                        waiting.append(library.function.add())
                        waiting[-1].CopyFrom(context.get_function_def(name))


def _of(filename, *packages):
    return any("/%s/" % name in filename for name in packages)


def _is_recorders(operation):
    """Whether an operation is there because the run is recorded: this code asked TensorFlow for it."""
    frames = [frame for frame in _frames(operation) if not _of(frame.filename, "tensorflow")]
    return bool(frames) and frames[-1].filename.startswith(HERE) and not _UPDATES.match(operation.type)


def _frames(operation):
    """Where an operation was made, outermost first; nothing where that is not known."""
    return list(operation.traceback or ())


def place(operation):
    """[file, line] of the program that an operation comes from; None where none is known."""
    for frame in reversed(_frames(operation)):
        if _is_programs(frame.filename):
            return [frame.filename, frame.lineno]
    return None


def _own_line(stack):
    """[file, line] of the innermost line of the program in a stack; None where there is none."""
    return next(([one.f_code.co_filename, line] for one, line in stack if _is_programs(one.f_code.co_filename)), None)


def _is_programs(filename):
    """Whether a file is the program's: neither Python's, nor of a package, nor made while it runs, nor one of ours."""
    made = filename.startswith("<") or "__autograph_generated" in filename or not os.path.isabs(filename)
    if made or _of(filename, "site-packages", "dist-packages"):
        return False
    return not filename.startswith((sysconfig.get_path("stdlib"), HERE))
