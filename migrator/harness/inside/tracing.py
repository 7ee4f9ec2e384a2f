"""What is seen while a network is built or traced, alike for both programs: the outputs of its layers, and the
clipping of its gradients.
"""

import importlib

import batches
import loss_scales
import parts

# An activation of more elements says little that the loss does not say, and takes long to write.
LARGEST_ACTIVATION = 4000000
CLIPPING = {
    "clip_by_global_norm": "global_clipnorm",
    "clip_by_norm": "clipnorm",
    "clip_by_average_norm": "clip_by_average_norm",
    "clip_by_value": "clipvalue",
}


def ancestors(tensors):
    """The names of all operations that some tensors or operations depend on."""
    seen = set()
    waiting = [getattr(tensor, "op", tensor) for tensor in tensors]
    while waiting:
        operation = waiting.pop()
        if operation is None or operation.name in seen:
            continue
        seen.add(operation.name)
        waiting.extend(tensor.op for tensor in operation.inputs)
        waiting.extend(operation.control_inputs)
    return seen


COMPARING = ("Minimum", "Maximum", "ClipByValue", "Greater", "GreaterEqual", "Less", "LessEqual")


def thresholds(graph, reached=None):
    """The numbers that operations of a graph compare float numbers with, each once; only those of the operations
    ``reached`` where these are given. Zero, one and what only keeps a division from overflowing are left out.
    """
    found = set()
    for operation in graph.get_operations():
        if reached is not None and operation.name not in reached:
            continue
        if operation.type == "Relu6":
            found.add(6.0)
        if operation.type not in COMPARING or not operation.inputs[0].dtype.is_floating:
            continue
        for tensor in operation.inputs:
            while tensor.op.type in ("Identity", "Cast") and tensor.op.inputs:
                tensor = tensor.op.inputs[0]
            if tensor.op.type == "Const" and tensor.shape.num_elements() == 1:
                found.add(parts.float32(abs(float(parts.constant(tensor.op).reshape(-1)[0]))))
    return sorted(one for one in found if 1e-5 < one < 1e30 and one not in (1.0,))


def loops_of(tensor):
    """How many loops of its graph a tensor is computed in, the graphs around it included; None where it is eager."""
    if not hasattr(tensor, "graph"):
        return None
    count, context, graph = 0, tensor.op._get_control_flow_context(), tensor.graph
    while context is not None:
        count += bool(context.IsWhileContext())
        context = context.outer_context
    while graph is not None:
        count += type(graph).__name__ == "WhileBodyFuncGraph"
        graph = getattr(graph, "outer_graph", None)
    return count


def within(tensor, dropouts, loops=()):
    """For each dropout of a step with this loss, and for masks in so many ``loops``, in how many loops of the step it
    draws: those of time steps, say.
    """
    around = loops_of(tensor)
    every = [before.loops for _, _, before in dropouts] + list(loops)
    return [None if around is None or one is None else one - around for one in every]


class Sources(object):
    """What a tensor of a graph is computed from: names of operations of its graphs, and eager tensors by their ids."""

    def __init__(self, tensor):
        self.names, self.eager = set(), set()
        self.known = hasattr(tensor, "graph")
        self.loops = loops_of(tensor)
        self.place = (tensor.graph, tensor.op.name) if self.known else None
        seen, outer, waiting = set(), {}, [tensor] if self.known else []
        while waiting:
            one = waiting.pop()
            if not hasattr(one, "graph"):
                self.eager.add(id(one))
                continue
            place = (id(one.graph), one.op.name)
            if place in seen:
                continue
            seen.add(place)
            self.names.add(one.op.name)
            waiting.extend(one.op.inputs)
            if id(one.graph) not in outer:
                # A function gets what is outside of it through placeholders.
                captures = getattr(one.graph, "captures", ())
                outer[id(one.graph)] = {id(inside): outside for outside, inside in captures}
            if id(one) in outer[id(one.graph)]:
                waiting.append(outer[id(one.graph)][id(one)])

    def weights(self, parts):
        """How many of the trainable variables that `parts` are parts of it depends on; None where nobody knows."""
        if not self.known:
            return None
        return len({part.name for part in parts if part.trainable and self._hold(part)})

    def used(self, graph, reached):
        """Whether what comes of the tensor may be among the operations `reached` of a graph (None: nobody knows)."""
        return reached is None or self.place is None or self.place[0] is not graph or self.place[1] in reached

    def _hold(self, part):
        handles = [getattr(one, "handle", None) for one in part.copies]
        if any(id(handle) in self.eager for handle in handles if handle is not None):
            return True
        try:
            return part.variable.op.name in self.names
        except AttributeError:  # it is eager
            return False


def own_weights(layer):
    """The TensorFlow variables that a layer owns itself, not through layers inside it."""
    if not hasattr(layer, "_trainable_weights"):  # Keras 3, whose variables hold TensorFlow's
        own = list(layer._trainable_variables) + list(layer._non_trainable_variables)
        return [variable._value for variable in own]
    return list(layer._trainable_weights) + list(layer._non_trainable_weights)


class LayerTrace(object):
    """The calls, in one trace of a network, of layers that own weights themselves."""

    def __init__(self):
        self.calls = []  # (first weight, output tensor or None)
        self.owned = []  # every weight of those layers
        self.outermost = []  # the layers and models that are called by no other
        self.inputs = []  # the tensors that those were called with
        self._under_way = []

    def go_on_from(self, around):
        """What is called from now on is called within what is under way in the trace ``around`` this one."""
        self._under_way = list(around._under_way)

    def call(self, tf, original, layer, *args, **kwargs):
        # The call of a base class is part of the same call.
        if self._under_way and self._under_way[-1] is layer:
            return original(layer, *args, **kwargs)
        if not self._under_way:
            given = tf.nest.flatten((args, kwargs))
            self.inputs += [one for one in given if isinstance(one, tf.Tensor) and not hasattr(one, "graph")]
            if not any(layer is one for one in self.outermost):
                self.outermost.append(layer)
        self._under_way.append(layer)
        try:
            outputs = original(layer, *args, **kwargs)
        finally:
            self._under_way.pop()
        weights = own_weights(layer)
        if weights:
            self.owned.extend(weights)
            floats = [
                tensor
                for tensor in tf.nest.flatten(outputs)
                if isinstance(tensor, tf.Tensor) and tensor.dtype.is_floating
            ]
            self.calls.append((weights[0], floats[0] if floats else None))
        return outputs

    def activations(self, tf, graph, name_of, reached):
        """[(name of the first weight, output)] of the calls whose output can be read in ``graph`` and is one of
        the operations ``reached``; both are None for what is run eagerly. A later call of the same layer is
        "name#2". ``name_of`` gives None for a stranger's variable.
        """
        found = {}
        counts = {}
        for weight, tensor in self.calls:
            name = name_of(weight)
            # A network that is first built on placeholders has outputs that no step can compute.
            if name is None or tensor is None or not _readable(tensor, graph, reached):
                continue
            counts[name] = counts.get(name, 0) + 1
            key = name if counts[name] == 1 else "%s#%d" % (name, counts[name])
            size = tensor.shape.num_elements() if tensor.shape.ndims is not None else None
            if size is None or size <= LARGEST_ACTIVATION:
                found.setdefault(key, tensor)
        return list(found.items())


def _idle(tensor, graph, reached):
    """Whether nothing reached depends on a tensor."""
    known = reached is not None and getattr(tensor, "graph", None) is graph
    return known and tensor.op.name not in reached


def _readable(tensor, graph, reached):
    """Whether a tensor belongs to a graph itself, and not to a loop or branch in it."""
    if graph is None:
        return not hasattr(tensor, "graph")
    if getattr(tensor, "graph", None) is not graph or _idle(tensor, graph, reached):
        return False
    context = getattr(tensor.op, "_get_control_flow_context", None)
    return context is None or context() is None


def pack_activations(tf, activations):
    """A scalar string tensor with the activations; in the place of one that proves too large it has no bytes."""

    def serialized(tensor):
        return tf.cond(
            tf.size(tensor) <= LARGEST_ACTIVATION,
            lambda: tf.io.serialize_tensor(tensor),
            lambda: tf.constant("", tf.string),
        )

    header = {"names": [name for name, _ in activations]}
    return batches.pack_serialized(tf, header, [serialized(tensor) for _, tensor in activations])


class Clipping(object):
    """The calls of TensorFlow's clipping functions in one trace of a train step."""

    def __init__(self):
        self.calls = []  # (name of the function, value, output tensors)
        self.inputs = []  # (output, input) of each tensor that was clipped
        self.before_gradients = 0  # how many calls came before the gradients, for a step that is run eagerly

    def saw(self, name, arguments, inputs, outputs):
        inputs, outputs = (list(inputs), outputs[0]) if name == "clip_by_global_norm" else ([inputs], [outputs])
        self.inputs += [(made, of) for made, of in zip(outputs, inputs) if made is not None]
        tensors = [_tensor(one) for one in outputs if one is not None]
        self.calls.append((name, _clipping_value(name, *arguments), tensors))

    def before(self, gradient):
        """A gradient as it was before it was clipped."""
        found = [given for made, given in self.inputs if made is gradient]
        return self.before(found[-1]) if found and found[-1] is not gradient else gradient

    def after(self, gradient):
        """A gradient as the program has clipped it."""
        found = [made for made, given in self.inputs if given is gradient]
        return self.after(found[-1]) if found and found[-1] is not gradient else gradient

    def settings(self, gradients, loss):
        """{setting: value} of the calls that the gradients went through, as a Keras optimizer names them; for gradients
        of a multiple of the loss, the value by that multiple.

        A value that is no plain number is text: other forms of clipping, a value that is computed, or several.
        """
        found = {}
        gradients = [_tensor(one) for one in gradients if one is not None]
        if not self.calls or not gradients:
            return {}
        graph = getattr(gradients[0], "graph", None)
        calls = self.calls[self.before_gradients :]
        if graph is not None:
            # What clips the inputs of the loss comes before every gradient, but clips none.
            reached = ancestors(gradients) - (ancestors([loss]) if loss is not None else set())
            calls = [
                (name, value, tensors)
                for name, value, tensors in self.calls
                if any(one.graph is graph and one.op.name in reached for one in tensors)
            ]
        for name, value, tensors in calls:
            scale = 1.0 if graph is None else loss_scales.at(tensors, loss)
            found.setdefault(CLIPPING[name], []).append(_of_unscaled(value, scale))
        return {key: one_value(values) for key, values in found.items()}


def _of_unscaled(value, scale):
    if scale == 1.0 or not isinstance(value, float):
        return value
    return "%g times the scale of the loss" % value if scale is None else parts.float32(value / scale)


def _tensor(value):
    """The tensor of a gradient, which may be sparse or have one part for each replica."""
    values = getattr(value, "values", None)
    if values is None:
        return value
    return values[0] if isinstance(values, (tuple, list)) else values


def one_value(values):
    """The value that all are, or else a text with all that there are."""
    distinct = sorted(set(values), key=str)
    return distinct[0] if len(distinct) == 1 else ", ".join(str(value) for value in distinct)


def _clipping_value(name, numbers, axes):
    if None in numbers:
        return "computed"
    if name == "clip_by_value":
        low, high = numbers
        return high if low == -high else "[%g, %g]" % (low, high)
    return numbers[0] if axes is None else "%g along axes %s" % (numbers[0], axes)


_ARITHMETIC = {
    "Add": lambda a, b: a + b,
    "AddV2": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "RealDiv": lambda a, b: a / b,
    "Neg": lambda a: -a,
    "Identity": lambda a: a,
    "Cast": lambda a: a,
}


def known_number(value):
    """A number that is known before anything runs, also one that is computed of such numbers, as float32 sees it; else
    None.
    """
    found = _constant(value)
    operation = getattr(value, "op", None) if hasattr(value, "graph") else None
    if found is not None or getattr(operation, "type", None) not in _ARITHMETIC:
        return found
    given = [known_number(one) for one in operation.inputs]
    return None if None in given else parts.float32(_ARITHMETIC[operation.type](*given))


def _constant(value):
    """A number that is known before anything runs, as float32 sees it; else None."""
    try:
        known = importlib.import_module("tensorflow.python.framework.tensor_util").constant_value(value)
    except (TypeError, AttributeError):
        known = value
    try:
        return parts.float32(float(known))
    except (TypeError, ValueError):
        return None


def watch_clipping(current):
    """From now on the clipping functions of TensorFlow tell the Clipping that ``current()`` returns, if any."""
    holders = []
    for name in ("tensorflow", "tensorflow.compat.v1", "tensorflow.compat.v2", "tensorflow.python.ops.clip_ops"):
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        if not any(module is other for other in holders):
            holders.append(module)

    def around(name):
        def clip(original, *args, **kwargs):
            outputs = original(*args, **kwargs)
            clipping = current()
            if clipping is not None:
                names = ("clip_value_min", "clip_value_max") if name == "clip_by_value" else ("clip_norm",)
                given = dict(zip(names, args[1:]))
                given.update((key, kwargs[key]) for key in names if key in kwargs)
                axes = kwargs.get("axes", args[2] if name == "clip_by_norm" and len(args) > 2 else None)
                inputs = args[0] if args else kwargs.get("t_list", kwargs.get("t"))
                clipping.saw(name, ([_constant(given.get(key)) for key in names], axes), inputs, outputs)
            return outputs

        return clip

    for name in CLIPPING:
        for module in holders:
            if hasattr(module, name):
                parts.wrap(module, name, around(name))
