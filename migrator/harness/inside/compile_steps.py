"""Compiles by XLA, for a CPU, what the cores of a stand-in for a TPU were given to compute.

usage: python compile_steps.py JOB   (JSON: graphs: paths without their suffixes, see cores.py; components: [type,
shape] of the parts of a batch of the whole training; cores: how many there are; result: file to write)

The result is a list with an object for each graph: ``trains``; ``operations``, how many were compiled; ``host``,
[type, what it lacks, place] of those that no TPU has; ``refused``, [type, what XLA says, place] or None; ``open``, why
it is not known whether it compiles, or None; ``sizes``, whether the size of its batches is known before they come. It
runs in the migrated program's interpreter.
"""

import importlib
import json
import re
import sys

import tensorflow as tf

#: In the place of an axis whose length nobody knows.
GUESS = 8
_UNSUPPORTED = re.compile(r"No registered '(\w+)' OpKernel.*?\{\{node ([^}]+)\}\}")
_OURS = re.compile(r"Function \S+ is not defined")  # what was not kept, and no fault of the program
_NODE = re.compile(r"\{\{node ([^}]+)\}\}")
_BETWEEN_CORES = re.compile("Collective|Nccl")
_UNPASSED = ("string", "variant", "resource")
_TOLD_ELSEWHERE = re.compile("StringFormat|Print|.*Summary|Assert")  # what a TPUStrategy leaves to the host anyway


class Step(object):
    """The part of a graph that a core computes, but for what was taken out of it."""

    def __init__(self, path, components, cores):
        with open(path + ".json") as stream:
            self.said = json.load(stream)
        graph = tf.compat.v1.GraphDef()
        with open(path + ".pb", "rb") as stream:
            graph.ParseFromString(stream.read())
        self.graph = graph
        # What a function calls is looked for there, and importing a graph leaves some of it out.
        known = importlib.import_module("tensorflow.python.eager.context").context()
        known.ensure_initialized()
        for function in graph.library.function:
            if not known.has_function(function.signature.name):
                known.add_function_def(function)
        self.nodes = {node.name: node for node in graph.node}
        self.components, self.cores = components, cores
        self.core = set(self.said["core"])
        self.out = {name for name in self.said["text"] if self.nodes[name].op != "Assert"}
        self.out |= {name for name in self.core if _BETWEEN_CORES.match(self.nodes[name].op)}
        self.out |= set(self.said["lacking"])
        self.guessed = False

    def selected(self):
        """Names of the operations that are compiled, and names of the tensors that they are given."""
        again = True
        while again:
            again = False
            found, given = {}, {}
            roots = [*self.said["roots"], *(tensor.rpartition(":")[0] for tensor in self.said["results"])]
            waiting = [name for name in roots if name in self.core and name not in self.out]
            while waiting:
                name = waiting.pop()
                if name in found:
                    continue
                found[name] = node = self.nodes[name]
                for given_by in node.input:
                    place, _, number = given_by.lstrip("^").partition(":")
                    tensor = "%s:%s" % (place, number or "0")
                    inside = place in self.core and place not in self.out
                    if inside and not (given_by.startswith("^") and place in self.said["own"]):
                        waiting.append(place)
                    elif not given_by.startswith("^") and self.nodes[place].op == "Const":
                        found[place] = self.nodes[place]
                    elif not given_by.startswith("^") and tensor not in self.said["constants"]:
                        if self.unpassed(tensor):
                            self.out.add(name)
                            again = True
                        given[tensor] = None
        return found, list(given)

    def unpassed(self, tensor):
        kind = self.said["types"].get(tensor)
        return kind is None or (kind in _UNPASSED and not self.said["variables"].get(tensor))

    def spec(self, tensor):
        """What a core is given for a tensor: its type and its shape, which is that of the first batch."""
        kind, shape = self.said["types"][tensor], self.said["shapes"][tensor]
        if shape is None or None in shape:
            shape = self.like(kind, shape)
        return tf.TensorSpec(shape, kind)

    def like(self, kind, shape):
        for other, whole in self.components:
            fits = shape is not None and kind == other and len(whole) == len(shape) > 0
            if fits and all(a is None or a == b for a, b in zip(shape[1:], whole[1:])):
                return [shape[0] or max(1, whole[0] // self.cores), *whole[1:]]
        sizes = [whole[0] for _, whole in self.components if whole]
        if shape is None or None in shape[1:] or not sizes:
            self.guessed = True
        first = max(1, sizes[0] // self.cores) if sizes else GUESS
        return [first if place == 0 and n is None else n or GUESS for place, n in enumerate(shape or [None])]

    def sizes_known(self):
        """Whether what comes from outside has a size for its first axis."""
        _, given = self.selected()
        outside = [one for one in given if one.rpartition(":")[0] not in self.core]
        shapes = [self.said["shapes"][one] for one in outside if self.said["types"][one] not in _UNPASSED]
        return all(shape is not None and (not shape or shape[0] is not None) for shape in shapes)

    def compiled(self):
        """How many operations XLA was given, and what it says; nothing if it compiled them."""
        found, given = self.selected()
        graph = tf.compat.v1.GraphDef()
        graph.CopyFrom(self.graph)
        del graph.node[:]
        constants = {}
        for tensor, serialized in self.said["constants"].items():
            node = graph.node.add()
            node.ParseFromString(bytes.fromhex(serialized))
            node.name = "constant_of_outside_%d" % len(constants)
            constants[tensor] = node.name
            _plain(node)
        names = {tensor: "given_from_outside_%d" % place for place, tensor in enumerate(given)}
        for name in found:
            node = graph.node.add()
            node.CopyFrom(found[name])
            _plain(node)
            inputs = list(node.input)
            del node.input[:]
            for one in inputs:
                place, _, number = one.lstrip("^").partition(":")
                tensor = "%s:%s" % (place, number or "0")
                if one.startswith("^"):
                    if place in found:
                        node.input.append(one)
                else:
                    node.input.append(constants.get(tensor) or names.get(tensor) or one)
        specs, handles = {}, {}
        for tensor, name in names.items():
            variable = self.said["variables"].get(tensor)
            if variable:
                handles[name + ":0"] = tf.Variable(tf.zeros(variable[1], tf.as_dtype(variable[0])))
            else:
                specs[name + ":0"] = self.spec(tensor)
        results = [one for one in self.said["results"] if one.rpartition(":")[0] in found]
        results = [one for one in results if self.said["types"].get(one, "string") not in _UNPASSED]

        def core(*values):
            inputs = dict(zip(specs, values))
            within = tf.compat.v1.get_default_graph()
            inputs.update((name, within.capture(variable.handle)) for name, variable in handles.items())
            return tf.graph_util.import_graph_def(graph, inputs, [*results] or None, name="core")

        try:
            function = tf.function(core, jit_compile=True, autograph=False)
            function.experimental_get_compiler_ir(*specs.values())(stage="hlo")
        except (ValueError, tf.errors.OpError) as error:
            return len(found), str(error)
        return len(found), ""

    def own_name(self, node):
        """The name that an operation of the compiled graph has in the program's; None of one in a function."""
        name = node[len("core/") :] if node.startswith("core/") else node
        return name if name in self.core else None

    def place(self, node):
        """The place of an operation, or of the one that its name begins with; in a function of the core's, too."""
        name = node[len("core/") :] if node.startswith("core/") else node
        for begun in (name, name.rpartition("gradient_tape/")[2]):
            name = begun
            while name:
                found = [self.said["places"].get(name), *(place for place, _ in self.inner(name))]
                found = [one for one in found if one]
                if found:
                    return found[0]
                name = name.rpartition("/")[0]
        return None

    def inner(self, node):
        """[place, what it lacks] of the operations of this name in functions."""
        return [one[node] for one in self.said["functions"].values() if node in one]

    def judged(self):
        host = [[self.nodes[name].op, what, self.place(name)] for name, what in self.said["lacking"].items()]
        host = [one for one in host if not _TOLD_ELSEWHERE.match(one[0])]
        count, refused, unknown = 0, None, None
        while True:
            count, error = self.compiled()
            absent = _UNSUPPORTED.findall(error)
            names = [self.own_name(node) for _, node in absent]
            for kind, node in absent:
                lacks = [what for _, what in self.inner(node) if what]
                host += [[kind, lacks[0] if lacks else "", self.place(node)]] * (not _TOLD_ELSEWHERE.match(kind))
            if not absent or None in names:
                break
            self.out.update(name for name in names if name)
        if absent:
            unknown = "what follows an operation without a kernel in a function was not compiled"
        elif error:
            nodes = _NODE.findall(error)
            said = error.partition("Failed getting HLO text: ")[2].strip("'") or error
            place = self.place(nodes[-1]) if nodes else None
            kind = self.own_name(nodes[-1]) if nodes else None
            refused = [self.nodes[kind].op if kind else "", said.strip().partition("\n")[0], place]
            if _OURS.search(error):
                unknown, refused = "what it calls is not known: " + refused[1], None
            elif self.guessed:  # another length may be what it needs
                unknown, refused = "shapes of what it is given are not known: " + refused[1], None
        told = []
        for one in host:
            if one not in told:
                told.append(one)
        return {
            "trains": self.said["trains"],
            "operations": count,
            "host": told,
            "refused": refused,
            "open": unknown,
            "sizes": self.sizes_known(),
            "soft_placement": self.said["soft_placement"],
        }


def _plain(node):
    """An operation without what ties it to others and to devices."""
    node.device = ""
    for name in ("_class", "_output_shapes"):
        node.attr.pop(name, None)


def main():
    with open(sys.argv[1]) as stream:
        job = json.load(stream)
    found = [Step(path, job["components"], job["cores"]).judged() for path in job["graphs"]]
    with open(job["result"], "w") as stream:
        json.dump(found, stream)


if __name__ == "__main__":
    main()
