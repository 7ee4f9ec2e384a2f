"""The variables of a Keras program, wherever they live: on replicas, in shards on parameter servers, on a mesh."""

import gc

import parts
import record_mesh


def creation_order(variable):
    """A number that grows with every eager variable made in this process."""
    tail = str(getattr(variable, "_unique_id", "")).rpartition("_")[2]
    return int(tail) if tail.isdigit() else 1 << 60


def with_names(tf, names):
    """{name: variable} of those variables of this process whose names, as `parts_of` would give them, are among
    ``names``; without those of which there are more, or fewer, than ``names`` tell.
    """
    found = {}
    for one in gc.get_objects():
        if issubclass(type(one), tf.Variable) and hasattr(one, "_unique_id"):
            found.setdefault(one.name.partition(":")[0], []).append(one)
    chosen = {}
    for name, variables in found.items():
        numbered = [name, *("%s#%d" % (name, n) for n in range(2, len(variables) + 1))]
        if all(one in names for one in numbered) and "%s#%d" % (name, len(variables) + 1) not in names:
            chosen.update(zip(numbered, sorted(variables, key=creation_order)))
    return chosen


def copies(variable):
    """The variables of this process's replicas, for one that a strategy distributes; else the variable itself."""
    values = getattr(variable, "_values", None) or getattr(variable, "values", None)
    return list(values) if isinstance(values, (tuple, list)) and values else [variable]


def read(tf, variable):
    """The value of a variable as an array, wherever it lives."""
    return parts.of_replicas([record_mesh.whole(tf, one) for one in copies(variable)])


def assign(tf, variable, value):
    for one in copies(variable):
        one.assign(record_mesh.placed(tf, value, one))


def parts_of(tf, model):
    """Parts of a Keras 2 model's variables, whole variables in creation order, shards in place.

    Metrics that are attributes of a model count among its variables; what they add up is no weight.
    """
    groups = {}
    trainable = {id(variable) for variable in model.trainable_variables}
    sums = {id(variable) for metric in model.metrics for variable in metric.variables}
    for variable in model.variables:
        if id(variable) in sums:
            continue
        pieces = list(getattr(variable, "variables", [])) or [variable]
        for piece in pieces:
            container = getattr(piece, "_sharded_container", None)
            whole = container() if container is not None else None
            key = id(piece) if whole is None else id(whole)
            group = groups.setdefault(key, {"whole": whole, "pieces": [], "trainable": False})
            group["pieces"].append(piece)
            group["trainable"] |= id(variable) in trainable
    found = []
    names = {}
    ordered = sorted(groups.values(), key=lambda one: min(creation_order(piece) for piece in one["pieces"]))
    if any(record_mesh.on_mesh(tf, group["pieces"][0]) for group in ordered):
        ordered = groups.values()  # a LayoutMap makes a layer's variables anew, in an order of its own
    for group in ordered:
        whole = group["whole"]
        first = group["pieces"][0]
        name = first.name.partition(":")[0]
        if whole is not None:
            name = name.rpartition("/part_")[0]
        names[name] = names.get(name, 0) + 1
        if names[name] > 1:
            name = "%s#%d" % (name, names[name])
        dtype = first.dtype.base_dtype.name if hasattr(first.dtype, "base_dtype") else first.dtype.name
        if whole is None:
            shape = first.shape.as_list()
            found.append(parts.Part(name, first, [0] * len(shape), shape, shape, dtype, group["trainable"]))
            continue
        row = 0
        for piece in whole.variables:  # shards always divide the first axis
            shape = piece.shape.as_list()
            offset = [row] + [0] * (len(shape) - 1)
            found.append(parts.Part(name, piece, offset, shape, whole.shape.as_list(), dtype, group["trainable"]))
            row += shape[0]
    return found
