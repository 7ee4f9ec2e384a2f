"""What a network that is built for training in a graph shows of itself: variables, slots, optimizer, dropouts."""

import halves
import keras_variables
import own_optimizers
import parts
import v1_optimizers
from tracing import Clipping, LayerTrace, ancestors

#: The name of a moving average among the slots of a variable, and how its name in a graph ends.
AVERAGE = "average"
AVERAGED = "/ExponentialMovingAverage"


def components(variable):
    """The variables of this process's replicas, for a variable that a strategy mirrors in a graph."""
    values = getattr(variable, "values", None)
    return list(values) if isinstance(values, (tuple, list)) and values and in_graph(values[0]) else [variable]


def in_graph(variable):
    """Whether a variable is part of a graph, and not eager."""
    try:
        return variable.op is not None
    except AttributeError:  # it is eager
        return False


def component(variable):
    """The variable of the first replica."""
    return components(variable)[0]


def make_part(variable, trainable):
    """The Part of a graph variable; partitions know their place by ``_save_slice_info``."""
    copies = keras_variables.copies(variable)  # also of an eager one, whose name is that of all
    variable = component(variable)
    shape = variable.shape.as_list()
    dtype = variable.dtype.base_dtype.name
    piece = getattr(variable, "_save_slice_info", None)
    if piece is None:
        part = parts.Part(variable.op.name, variable, [0] * len(shape), shape, shape, dtype, trainable)
    else:
        part = parts.Part(piece.full_name, variable, piece.var_offset, shape, piece.full_shape, dtype, trainable)
    part.copies = copies
    return part


def stored(variable):
    """The variables that hold a variable of a layer: TensorFlow 1 gives a partitioned one as an object of its own."""
    partitions = getattr(variable, "_variable_list", None)
    return [component(one) for one in partitions or [variable]]


def whole_name(variable):
    """The name of the whole variable that a graph variable is, is a part of, or is cast from (by a custom getter)."""
    variable = halves.source(stored(variable)[0])
    piece = getattr(variable, "_save_slice_info", None)
    return variable.op.name if piece is None else piece.full_name


def counts(term, reached):
    """Whether a regularization term is among the ancestors of the loss.

    The terms of get_variable's regularizers are computed anew, in the same name scope, wherever they are used.
    """
    scope, mark, _ = term.op.name.rpartition("/Regularizer/")
    return term.op.name in reached or (bool(mark) and any(name.startswith(scope + mark) for name in reached))


def sources_of(tensor):
    """The names of all operations whose values a tensor, or a variable, is computed from."""
    seen, waiting = set(), [tensor.op]
    while waiting:
        operation = waiting.pop()
        if operation.name not in seen:
            seen.add(operation.name)
            waiting.extend(one.op for one in operation.inputs)
    return seen


def variables_of(optimizer):
    """The variables that an optimizer has made; its own `variables()` leaves out those that are no part of a graph."""
    slots, others = getattr(optimizer, "_slots", None), getattr(optimizer, "_non_slot_dict", None)
    if not isinstance(slots, dict) or not isinstance(others, dict):
        return optimizer.variables()
    return [variable for slot in slots.values() for variable in slot.values()] + list(others.values())


#: What a graph keeps the tensor under that says which step is taken.
PLACE = "_recorded_place"


class Capture(object):
    """What one call of model_fn for training showed: tensors of one replica of this worker. The first one keeps the
    captures of all of them in ``replicas``, and ``reduced``, the loss of all together.
    """

    def __init__(self, graph, features, labels):
        self.replicas = [self]
        self.reduced = None
        self.graph = graph
        self.features = features
        self.labels = labels
        self.loss = None
        self.train_op = None
        self.applied = []  # (optimizer, [(gradient, variable)])
        self.averages = []  # (variable, moving average of it, what moves it)
        self.updates = []  # what updates the weights
        self.of_keras = {}  # settings of optimizers of Keras, before they become variables
        self.offered = []  # gradients as a wrapping optimizer got them, too
        self.layers = LayerTrace()
        self.clipping = Clipping()
        self.draws = 0  # random numbers that no dropout of TensorFlow asked for
        self.draw_loops = []  # in how many loops each is drawn
        self.dropouts = []  # (rate, shape of an example, Sources) of every dropout at work
        self.optimizer_line = None
        self.train_op = None  # of an Estimator
        self.own_rate = None  # of an optimizer class of the program's own
        self.local = None  # [(gradient, variable)] of this replica alone, where applied ones are of all replicas
        self.conditional = False  # gradients are applied by a condition: they were added up before
        self.racing = []  # variables that an update may change before all of the step has read them
        self.targets = []  # the losses that optimizers were asked to minimise
        self.computed = []  # [(gradient, variable)] as they were asked for last
        self.counters = set()  # names of variables that count steps, where the program has its own

    def optimizer(self):
        return self.applied[0][0] if self.applied else None

    def minimised(self, tf):
        """The sum of the losses of several optimizers, each of which minimises its own; None where there are not."""
        if len(self.targets) < 2 or len(self.applied) < 2:
            return None
        return tf.add_n([tf.cast(tf.reshape(loss, []), tf.float32) for loss in self.targets])

    def model_parts(self, tf):
        """Parts of the model's variables in creation order: no slots, no global step, no variable for the rate."""
        excluded = set(self.rate_variables(tf))
        for optimizer, _ in self.applied:
            # Keras' own stand in the graph once for each replica.
            excluded.update(copy.op.name for variable in variables_of(optimizer) for copy in components(variable))
            hyper = [value for value in getattr(optimizer, "_hyper", {}).values() if hasattr(value, "assign")]
            excluded.update(component(variable).op.name for variable in hyper)
        step = tf.train.get_global_step(self.graph)
        if step is not None:
            excluded.add(component(step).op.name)
        excluded.update(self.counters)
        excluded.update(component(total).op.name for total, _ in self.sums(tf))
        excluded.update(component(average).op.name for _, average, _ in self.averages)
        trainable = {component(v).op.name for v in self.graph.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES)}
        found = []
        for variable in self.graph.get_collection(tf.GraphKeys.GLOBAL_VARIABLES):
            name = component(variable).op.name
            if name not in excluded:
                found.append(make_part(variable, name in trainable))
        return found

    def sums(self, tf):
        """[(variable, the trained one)] of variables that add up the gradients of several batches."""
        if not self.conditional:
            return []
        trainable = {component(v).op.name for v in self.graph.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES)}
        others = {component(v).op.name: v for v in self.graph.get_collection(tf.GraphKeys.GLOBAL_VARIABLES)}
        found = []
        for _, pairs in self.applied:
            for gradient, variable in pairs:
                for name in sources_of(gradient):
                    known = others.get(name)
                    if known is not None and name not in trainable and known.shape == variable.shape:
                        found.append((known, variable))
        return found

    def gradients(self):
        """[(optimizer, [(gradient, variable)])] of a batch."""
        if not self.conditional:
            return self.applied
        known = [(gradient, variable) for gradient, variable in self.computed if gradient is not None]
        known = [pair for pair in known if self._may_be_fetched(getattr(pair[0], "values", pair[0]))]
        return [(self.optimizer(), known)] if known else []

    def _may_be_fetched(self, tensor):
        """Whether a tensor is no condition's own."""
        return tensor.graph is self.graph and self.graph.is_fetchable(tensor)

    def rate_variables(self, tf):
        """Names of variables that only hold a rate: tf.contrib.layers.optimize_loss makes one."""
        rates = [getattr(optimizer, name, None) for optimizer, _ in self.applied for name in own_optimizers.RATES]
        tensors = [rate for rate in rates if isinstance(rate, tf.Tensor)]
        reached = ancestors(tensors + [rate for rate in rates if isinstance(rate, tf.Variable)])
        trainable = {component(v).op.name for v in self.graph.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES)}
        needed = ancestors([self.loss]) if self.loss is not None else set()
        for variable in self.graph.get_collection(tf.GraphKeys.GLOBAL_VARIABLES):
            name = component(variable).op.name
            if name in reached and name not in trainable and name not in needed:
                yield name

    def slot_parts(self, tf, model_parts):
        """Canonical slot name -> (parts, slot variables); parts carry the model variable's name."""
        table = {}
        by_name = {part.variable.op.name: part for part in model_parts}
        for total, variable in self.sums(tf):
            owners, values = table.setdefault("sum", ([], []))
            owners.append(by_name[component(variable).op.name])
            values.append(component(total))
        for optimizer, pairs in self.applied:
            for slot in optimizer.get_slot_names():
                # TensorFlow 1 keeps this slot without momentum too, where nothing ever reads it.
                if slot == "momentum" and getattr(optimizer, "_momentum", None) == 0.0:
                    continue
                for _, variable in pairs:
                    value = optimizer.get_slot(variable, slot)
                    if value is not None:
                        owners, values = table.setdefault(v1_optimizers.SLOTS.get(slot, slot), ([], []))
                        owners.append(by_name[component(variable).op.name])
                        values.append(component(value))
        for variable, average in self.ordered_averages():
            if component(variable).op.name in by_name:
                owners, values = table.setdefault(AVERAGE, ([], []))
                owners.append(by_name[component(variable).op.name])
                values.append(component(average))
        return table

    def averages_of(self, part):
        """The variables that hold moving averages of a part: they start where it does."""
        kept = [(component(variable).op.name, average) for variable, average, _ in self.averages]
        return [copy for name, average in kept if name == part.variable.op.name for copy in components(average)]

    def ordered_averages(self):
        """The variables and their moving averages, where the program says whether weights move before or after them.

        Where it does not, two runs of it may differ.
        """
        updated = ancestors(self.updates) if self.averages else set()
        ordered = {move.name: move.name in updated for _, _, move in self.averages}
        for move in {move.name: move for _, _, move in self.averages}.values():
            ordered[move.name] |= not ancestors([move]).isdisjoint(update.name for update in self.updates)
        return [(variable, average) for variable, average, move in self.averages if ordered[move.name]]

    def settings(self):
        """Canonical optimizer class and settings; a setting that is a tensor is None. `others` are those of further
        optimizers, which train other variables.
        """
        found = []
        for optimizer, _ in self.applied:
            if not any(optimizer is known for known in found):
                found.append(optimizer)
        if not found:
            return None
        return dict(self.settings_of(found[0]), others=[self.settings_of(other) for other in found[1:]])

    def settings_of(self, optimizer):
        if id(optimizer) in self.of_keras:
            return {"name": type(optimizer).__name__, "settings": self.of_keras[id(optimizer)]}
        return v1_optimizers.described(optimizer)
