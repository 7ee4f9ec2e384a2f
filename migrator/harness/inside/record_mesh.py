"""Records steps on a DTensor mesh: a ``tf.function`` that is called with DTensors and takes gradients, which a Keras
optimizer applies inside of it, or after it as the next thing the program does, or which the program assigns by hand.

A mesh is one device to its program, and operations that write files cannot run on it. So the traced step hands out what
it computes (loss, rate, gradients) beside its own result, and everything is written between the steps, whole: divided
values are put together first.
"""

import importlib
import os
import sys

import batches
import numpy as np
import parts
import sources

MARK = "tf_migrate_step"
SKIPPED = "skipped"  # in the place of a pending call that was not made
#: What the slots of an optimizer by hand are called before the variable's own name, as Keras has it ("m/dense/kernel"),
#: and what the tool calls them.
SLOTS = {"m": "first_moment", "v": "second_moment", "momentum": "momentum", "accumulator": "accumulator"}
ASSIGNING = ("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp")


class Again(BaseException):
    """Ends the first trace of a step that is to train on recorded batches, and was given its own."""


def started():
    """Whether the program has a mesh."""
    api = sys.modules.get("tensorflow.dtensor.python.api")
    return api is not None and api._dtensor_singleton is not None


def on_mesh(tf, value):
    """Whether a value is a DTensor, or a variable of DTensor; starts no mesh where the program has none."""
    if not started() or not (hasattr(value, "dtype") and hasattr(value, "shape")):
        return False
    return bool(tf.experimental.dtensor.is_dtensor(value))


def layout_of(tf, value):
    """The layout of a variable or tensor on a mesh."""
    layout = getattr(value, "layout", None)
    return tf.experimental.dtensor.fetch_layout(tf.convert_to_tensor(value)) if layout is None else layout


def whole(tf, value):
    """The value of a variable or tensor as an array, put together where a mesh divides it."""
    if not on_mesh(tf, value):
        return tf.convert_to_tensor(value).numpy()
    dtensor = tf.experimental.dtensor
    tensor = tf.convert_to_tensor(value)
    everywhere = dtensor.Layout.replicated(layout_of(tf, value).mesh, rank=tensor.shape.rank)
    return dtensor.relayout(tensor, everywhere).numpy()


def placed(tf, value, like):
    """An array as a tensor that lies where another one does."""
    if not on_mesh(tf, like):
        return value
    dtensor = tf.experimental.dtensor
    layout = layout_of(tf, like)
    tensor = tf.convert_to_tensor(value, like.dtype)
    everywhere = dtensor.Layout.replicated(layout.mesh, rank=tensor.shape.rank)
    return dtensor.relayout(dtensor.copy_to_mesh(tensor, everywhere), layout)


def describe(tf, variable):
    """How a mesh divides a variable: its layout, and the shape that every device holds. Empty for other variables."""
    if not on_mesh(tf, variable):
        return {}
    shards = tf.experimental.dtensor.unpack(variable.read_value())
    return {
        "layout": [str(one) for one in variable.layout.sharding_specs],
        "device_shapes": [shard.shape.as_list() for shard in shards],
    }


class ByHand(object):
    """In the place of an optimizer, where a program's step assigns the variables itself. Its rate is not known, and its
    slots are known by their names only.
    """

    def __init__(self, loop):
        loop.make_counter()
        self.iterations = loop.counter


class Pending(object):
    """A call that took gradients and applied none: what it was called with, what came out, and what it shows."""

    def __init__(self, original, function, args, kwargs, result, shown):
        self.original = original
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.result = result
        self.shown = shown


class MeshSteps(object):
    """The steps on a mesh in the program of ``loop``, a LoopRecorder."""

    def __init__(self, loop, make_step, make_trained, data_of):
        self.loop = loop
        self.tf = loop.tf
        self.recorder = loop.recorder
        self.make_step = make_step
        self.make_trained = make_trained
        self.data_of = data_of
        self.wanted = None  # the function that the program calls now, until its trace begins
        self.replayed = False  # whether the batch of the call is a recorded one
        self.apart = {}  # id of function -> the step of its last trace, where its gradients are applied after it
        self.pending = None
        self.by_hand = {}  # id of function -> the step of its last trace, where it assigns variables itself
        self.kept = None  # [(variable, value)] of before the first step by hand, if it is to be made again
        self.began = []  # the same of the variables that are trained, always
        self.unmoved = []  # [(variable, value)] of before a step whose gradients are applied after it ran first

    def takes(self, args, kwargs):
        leaves = self.tf.nest.flatten((list(args), kwargs))
        return any(on_mesh(self.tf, leaf) for leaf in leaves)

    def call(self, original, function, *args, **kwargs):
        """A call of a function with DTensors, the first one around it."""
        loop = self.loop
        if isinstance(self.pending, Pending):
            self.pending = None
            loop.folder.note_unrecorded("a step that changes weights without a Keras optimizer", sources.user_line())
        if not getattr(function._python_function, "watched", False):
            function._python_function = self.watched(function, function._python_function)
        known = loop.kinds.get(id(function))
        self.replayed = bool(self.recorder.folder.replay) and known is not None and known[1] == "train"
        if self.replayed:
            args, kwargs = self.recorded(args, kwargs)
        try:
            result = self.run(original, function, args, kwargs)
        except Again:
            self.replayed = True
            args, kwargs = self.recorded(args, kwargs)
            result = self.run(original, function, args, kwargs)
        if self.kept is not None:
            args, kwargs = self.recorded(args, kwargs)
            result = self.once_more(original, function, args, kwargs)
        result, shown = _parted(result)
        if shown and id(function) in self.apart:
            self.pending = Pending(original, function, args, kwargs, result, shown)
        elif shown:
            self.write(shown, args, kwargs)
        return result

    def once_more(self, original, function, args, kwargs):
        """The first step of a program that assigns variables itself, from where it began. It is not traced again: such
        programs may count in Python what is traced.
        """
        kept, self.kept = self.kept, None
        for variable, value in kept:
            variable.assign(placed(self.tf, value, variable))
        return self.run(original, function, args, kwargs)

    def skip(self, function):
        """In the place of a call after the last step that counts."""
        self.pending = SKIPPED if id(function) in self.apart else None

    def apply(self, original, optimizer, grads_and_vars, *args, **kwargs):
        """A call of ``optimizer.apply_gradients``: the end of a step whose gradients it is given."""
        pending = self.pending
        if pending is None or not self.tf.executing_eagerly():
            return original(optimizer, grads_and_vars, *args, **kwargs)
        self.pending = None
        if pending is SKIPPED:
            return optimizer.iterations
        step = self.apart[id(pending.function)]
        step.optimizer = optimizer
        step.gradients = list(grads_and_vars)
        if self.loop.optimizer is None:
            self.begin(pending, step)
        # Sees the rate, which a schedule computes only now, and the gradients as the optimizer has clipped them.
        update = self.recorder.tracing.step = self.make_step()
        self.recorder.tracing.model = None
        try:
            result = original(optimizer, step.gradients, *args, **kwargs)
        finally:
            self.recorder.tracing.step = None
        gradients = {part.name: gradient for part, gradient in self.recorder.named_gradients(update)}
        self.write(dict(pending.shown, learning_rate=update.rate, gradients=gradients), pending.args, pending.kwargs)
        return result

    def begin(self, pending, step):
        """Once, before gradients are applied for the first time. They were computed with the program's own weights and
        batch: with those that the training is to start from they are computed again. What that step moved, as averages
        of batches, is put back first.
        """
        tf = self.tf
        for variable, value in self.unmoved:
            variable.assign(placed(tf, value, variable))
        self.unmoved = []
        self.loop.begin(self.make_trained(step), tf.distribute.get_strategy())
        self.recorder.describe_traced()
        if self.loop.over():
            raise SystemExit(0)  # only the variables were asked for
        if self.recorder.folder.replay:
            pending.args, pending.kwargs = self.recorded(pending.args, pending.kwargs)
        before = pending.result
        again = self.run(pending.original, pending.function, pending.args, pending.kwargs)
        pending.result, pending.shown = _parted(again)
        new = {id(old): one for old, one in zip(tf.nest.flatten(before), tf.nest.flatten(pending.result))}
        if any(id(gradient) not in new for gradient, _ in step.gradients):
            self.loop.folder.note_unrecorded("gradients that are changed outside of their step", sources.user_line())
        step.gradients = [(new.get(id(gradient), gradient), variable) for gradient, variable in step.gradients]

    def run(self, original, function, args, kwargs):
        self.wanted = function
        before = []
        if self.recorder.factor != 1.0 and id(function) in self.by_hand:
            before = [(part.variable, whole(self.tf, part.variable)) for part in self.recorder.parts]
        try:
            result = original(function, *args, **kwargs)
        finally:
            self.wanted = None
        if not before and self.recorder.factor != 1.0 and id(function) in self.by_hand:
            before = self.began  # the first call, which has told just now what it is
        for variable, value in before:  # nothing has a rate that could be made greater: the step itself is
            moved = whole(self.tf, variable) - value
            variable.assign(placed(self.tf, value + np.float32(self.recorder.factor) * moved, variable))
        return result

    # -- at tracing time --
    def watched(self, function, own):
        converted = _converted(own) if function._autograph else own

        def watched(*inputs, **named):
            if self.wanted is not function:
                return converted(*inputs, **named)
            self.wanted = None
            recorder = self.recorder
            step = recorder.tracing.step = self.make_step()
            recorder.tracing.model = None
            try:
                result = converted(*inputs, **named)
            finally:
                recorder.tracing.step = None
            return result, {MARK: self.traced(function, step)}

        watched.watched = True
        return _artifact(watched)

    def traced(self, function, step):
        """What a step shows of itself; nothing where it does not train."""
        tf = self.tf
        self.loop.seen.add("evaluate" if step.loss is None else "train")
        self.apart.pop(id(function), None)
        self.by_hand.pop(id(function), None)
        apart = step.loss is not None and not step.applied
        graph = tf.compat.v1.get_default_graph()
        if apart and assigned(graph, [variable for _, variable in step.taken]):
            apart = False
            step.gradients = [(gradient, variable) for gradient, variable in step.taken if gradient is not None]
            step.applied = 1
            with tf.init_scope():
                step.optimizer = self.loop.optimizer or ByHand(self.loop)
            trained = [variable for _, variable in step.gradients]
            self.recorder.slots[id(step.optimizer)] = _slots_by_hand(assigned(graph, variables_read(graph)), trained)
            self.by_hand[id(function)] = step
        if apart:
            step.gradients = []
        if step.loss is None or not self.loop.recordable([step]):
            return {}
        # Counted here, because layers on a mesh may be classes of the program's own.
        own = [one for one in _distinct(step.layers.owned) if not one.trainable and one.dtype.is_floating]
        step.updates = len(assigned(graph, own))
        if apart:
            self.recorder.note_trace(step, graph)
            self.apart[id(function)] = step
            if self.loop.optimizer is None:
                with tf.init_scope():
                    trained = {id(variable) for _, variable in step.taken}
                    moving = [variable for variable in variables_read(graph) if id(variable) not in trained]
                    self.unmoved = [(variable, whole(tf, variable)) for variable in moving]
            return {"loss": tf.cast(step.loss, tf.float32)}
        with tf.init_scope():
            if self.loop.optimizer is None:
                self.loop.begin(self.make_trained(step), tf.distribute.get_strategy())
        self.recorder.note_trace(step, graph)
        with tf.init_scope():
            self.recorder.describe_traced()
            if self.loop.over():
                raise SystemExit(0)  # only the variables were asked for
            if id(function) in self.by_hand:
                self.began = [(part.variable, whole(tf, part.variable)) for part in self.recorder.parts]
                if self.recorder.folder.replay and not self.replayed:
                    known = _distinct(variables_read(graph) + [variable for variable, _ in self.began])
                    self.kept = [(variable, whole(tf, variable)) for variable in known]
            elif self.recorder.folder.replay and not self.replayed:
                raise Again()
        gradients = [
            (part.name, gradient)
            for part, gradient in self.recorder.named_gradients(step)
            if gradient.shape.is_fully_defined()
        ]
        return {"loss": tf.cast(step.loss, tf.float32), "learning_rate": step.rate, "gradients": dict(gradients)}

    # -- between the steps --
    def write(self, shown, args, kwargs):
        """Writes one step."""
        tf = self.tf
        recorder = self.recorder
        loop = self.loop
        number = int(loop.counter.assign_add(1).numpy())
        if loop.limit is not None and number > loop.limit:
            return
        fields = [name for name in ("loss", "learning_rate") if shown[name] is not None]
        tensors = [tf.constant(whole(tf, shown[name]), tf.float32) for name in fields]
        header = {"fields": fields}
        stamp = recorder.stamp()
        data = self.data_of(tf, args, kwargs)
        if recorder.plan.get("record_batches", True) and data is not None:
            data = tf.nest.map_structure(lambda leaf: tf.constant(whole(tf, leaf)), data)
            header["components"], described = batches.describe(tf, data)
            tensors += described
            recorder.keep_batch(stamp, data, tf.constant(number - 1, tf.int64))
        recorder.append("steps", stamp, batches.pack(tf, header, tensors))
        if number in recorder.state_steps:
            by_name = {part.name: part for part in recorder.parts}
            found = [(by_name[name], tf.constant(whole(tf, one))) for name, one in shown["gradients"].items()]
            recorder.write_gradients(found, tf.constant(number, tf.int64))
        if (number in recorder.state_steps or number == loop.limit) and recorder.folder.leads():
            name = "%08d.npz" % number
            parts.write_arrays(recorder.folder.file("states", name), recorder.current())
            parts.write_arrays(recorder.folder.file("slots", name), recorder.slot_values(loop.optimizer))

    def recorded(self, args, kwargs):
        """The arguments of a step with the next recorded batch in the place of its own."""
        tf = self.tf
        data = self.data_of(tf, args, kwargs)
        if data is None:
            return args, kwargs
        files = self.recorder.folder.replay
        place = min(self.loop.steps_done(), batches.count(files) - 1)
        spec = tf.nest.map_structure(lambda leaf: tf.TensorSpec([None, *leaf.shape[1:]], leaf.dtype), data)
        name = sorted(one for one in os.listdir(files) if one.isdigit())[place]
        batch = batches.replay_reader(tf, files, spec)(files + "/" + name)
        pairs = zip(tf.nest.flatten(data), tf.nest.flatten(batch))
        new = {id(leaf): placed(tf, np.asarray(tensor), leaf) for leaf, tensor in pairs}
        return tf.nest.map_structure(lambda leaf: new.get(id(leaf), leaf), (tuple(args), dict(kwargs)))


def assigned(graph, variables):
    """Those of some variables that a traced step assigns."""
    handles = {id(outermost(graph, one.inputs[0])) for one in graph.get_operations() if one.type in ASSIGNING}
    return [variable for variable in variables if id(variable.handle) in handles]


def outermost(graph, tensor):
    """What a tensor of a function, or of a loop in one, is outside of all functions."""
    while graph is not None:
        captured = {id(internal): external for external, internal in getattr(graph, "captures", ())}
        if id(tensor) not in captured:
            break
        tensor, graph = captured[id(tensor)], getattr(graph, "outer_graph", None)
    return tensor


def _slots_by_hand(moved, trained):
    """[(variable, name of the slot, slot)] of variables that a step assigns, by their names and shapes."""
    by_name = {variable.name.partition(":")[0]: variable for variable in trained}
    found = []
    for one in moved:
        slot, _, name = one.name.partition(":")[0].partition("/")
        variable = by_name.get(name)
        if slot in SLOTS and variable is not None and one.shape == variable.shape:
            found.append((variable, SLOTS[slot], one))
    return found


def _distinct(variables):
    return list({id(variable): variable for variable in variables}.values())


def variables_read(graph):
    """The variables that a trace has read so far; `graph.variables` has none before its end."""
    return _distinct(getattr(graph, "_watched_variables", []))


def _parted(result):
    """The result of a watched function, and what its step shows (nothing: None)."""
    if isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], dict) and MARK in result[1]:
        return result[0], result[1][MARK]
    return result, None


def _converted(fn):
    """A function as a ``tf.function`` converts it."""
    impl = importlib.import_module("tensorflow.python.autograph.impl.api")
    context = importlib.import_module("tensorflow.python.autograph.core.ag_ctx")
    return impl.tf_convert(fn, context.ControlStatusCtx(status=context.Status.ENABLED))


def _artifact(function):
    return importlib.import_module("tensorflow.python.autograph.impl.api").autograph_artifact(function)
