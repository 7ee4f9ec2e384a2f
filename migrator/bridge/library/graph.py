"""A function of TensorFlow 1 code as a graph of its own, whose variables are made eagerly under a strategy."""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import functools
import itertools

import tensorflow as tf
from tensorflow.python.eager import context as eager_context
from tensorflow.python.ops import gradients_util

_QUEUES = ("FIFOQueueV2", "PaddingFIFOQueueV2", "RandomShuffleQueueV2", "PriorityQueueV2")
_FILES = ("TFRecordReaderV2", "TextLineReaderV2", "WholeFileReaderV2", "FixedLengthRecordReaderV2", "IdentityReaderV2")
_SHARED = ("IteratorV2", *_QUEUES, *_FILES)


class VariableOp:
    """What `variable.op` is in TensorFlow 1 code, which asks for its name. Who waits for it waits for nothing."""

    def __init__(self, name, owner):
        self.name = name
        self.type = "VarHandleOp"
        self.device = ""
        self._owner = owner

    @property
    def graph(self):
        return self._owner.graph

    def _as_graph_element(self):
        with self.graph.as_default(), self.graph.control_dependencies(None):
            return tf.no_op()


def _with_graph(kind, operation, read, initialize):
    """A class of variables with what TensorFlow 1 code asks for and eager variables do not have."""
    members = {
        "op": property(lambda self: operation),
        "graph": property(lambda self: operation.graph),
        "initializer": property(initialize),
        "initialized_value": lambda self: read(self),
        "_as_graph_element": lambda self: read(self),
    }
    return type(kind.__name__, (kind,), members)


class Variables:
    """The variables of one graph, under the names that TensorFlow 1 gives them.

    They are made once, outside of the graph and under the strategy, whatever asks for them: `tf.get_variable`, layers,
    `tf.Variable`, metrics, an optimizer's slots. The graph has them in its collections, in the order of their making.
    """

    def __init__(self, strategy):
        self.strategy = strategy
        self.graph = None
        self.by_name = {}
        self.local = []  # those of metrics, which no checkpoint has
        self._read = {}
        self._initial = {}  # what a variable starts from, a function, a tensor or an array; and the operation
        self._seed = "none yet"  # that of the graph when a variable was made last
        self.later = []  # (variable, tensor of the graph that it starts from), in the order of their making

    def named(self, name):
        """The variable whose value has this name in TensorFlow 1; None where there is none."""
        name = name.removesuffix(":0").removesuffix("/read") if isinstance(name, str) else None
        return self.by_name.get(name)

    @property
    def saved(self):
        """Those that a checkpoint has, by name."""
        local = {id(variable) for variable in self.local}
        return {name: variable for name, variable in self.by_name.items() if id(variable) not in local}

    def make(self, next_creator, **kwargs):
        """Makes one variable. A creator for `tf.variable_creator_scope`."""
        del next_creator  # the variable is made by the strategy, outside of the graph
        seed, before, self._seed = self.graph.seed, self._seed, self.graph.seed  # the model_fn may set it itself
        if seed != before and (seed, eager_context.global_seed()) != (None, None):
            eager_context.set_global_seed(seed)
        keys = tf.compat.v1.GraphKeys
        collections = list(kwargs.get("collections") or [keys.GLOBAL_VARIABLES])
        name = self._unique(self._scope() + (kwargs.get("name") or "Variable").rstrip("/"))
        initial_value, tensor = self._initial_value(kwargs["initial_value"], kwargs.get("dtype"))
        near = kwargs.get("colocate_with")
        synchronization = kwargs.get("synchronization") or tf.VariableSynchronization.AUTO
        trainable = kwargs.get("trainable")
        if trainable is None:
            trainable = synchronization != tf.VariableSynchronization.ON_READ

        def create(value):
            with contextlib.ExitStack() as stack:
                stack.enter_context(self.strategy.scope())
                if near is not None:
                    stack.enter_context(self.strategy.extended.colocate_vars_with(near))
                return tf.Variable(
                    value,
                    trainable=trainable,
                    name=name,
                    dtype=kwargs.get("dtype"),
                    constraint=kwargs.get("constraint"),
                    synchronization=synchronization,
                    aggregation=kwargs.get("aggregation") or tf.VariableAggregation.NONE,
                )

        try:
            variable = _outside_of_graphs(create, initial_value)
        except (TypeError, ValueError, AttributeError):
            if tensor is not None or not callable(initial_value):
                raise
            tensor = tf.convert_to_tensor(initial_value(), dtype=kwargs.get("dtype"))  # of values of the graph
            variable = _outside_of_graphs(create, lambda: tf.zeros(tensor.shape, tensor.dtype))
        # Central storage updates a variable in its variable, whose slots an optimizer finds by the same operation.
        for one in (variable, getattr(variable, "_v", None)):
            if isinstance(one, tf.Variable):
                operation = VariableOp(name, self)
                one.__class__ = _with_graph(type(one), operation, self.read, self.initializer)
        self.by_name[name] = variable
        self._initial[id(variable)] = kwargs["initial_value"], None
        if tensor is not None:
            self.later.append((variable, tensor))
        if keys.LOCAL_VARIABLES in collections:
            self.local.append(variable)
        elif trainable and keys.TRAINABLE_VARIABLES not in collections:
            collections.append(keys.TRAINABLE_VARIABLES)
        for collection in collections:
            self.graph.add_to_collection(collection, variable)
        return variable

    def _scope(self):
        """The scope that a variable without one in its name is made in."""
        scope = tf.get_current_name_scope()
        return f"{scope.rstrip('/')}/" if scope else ""

    def _unique(self, name):
        numbered = (f"{name}_{number}" for number in itertools.count(1))
        return next(one for one in itertools.chain([name], numbered) if one not in self.by_name)

    @staticmethod
    def _initial_value(value, dtype):
        """What the variable is made with, and the tensor of the graph that it starts from, if it does."""
        if callable(value):
            return value, None
        static = tf.get_static_value(value) if tf.is_symbolic_tensor(value) else value
        if static is not None:
            return static, None
        return lambda: tf.zeros(value.shape, dtype or value.dtype), value

    @contextlib.contextmanager
    def under(self, strategy):
        """Makes variables under another strategy, as long as the context is open."""
        before, self.strategy = self.strategy, strategy
        try:
            yield
        finally:
            self.strategy = before

    @contextlib.contextmanager
    def in_graph(self, graph):
        """Lets a graph in this one make and see the variables, as long as the context is open."""
        whole, read = self.graph, self._read
        keys = {*whole.get_all_collection_keys(), tf.compat.v1.GraphKeys.GLOBAL_VARIABLES}
        for key in keys:
            for one in whole.get_collection(key):
                if isinstance(one, tf.Variable):
                    graph.add_to_collection(key, one)
        store = ("__variable_store",)  # where `get_variable` and `init_from_checkpoint` look for names
        graph.get_collection_ref(store).extend(whole.get_collection(store))
        self.graph, self._read = graph, {}
        try:
            yield
        finally:
            self.graph, self._read = whole, read
        for key in graph.get_all_collection_keys():
            known = {id(one) for one in whole.get_collection(key)}
            for one in graph.get_collection(key):
                if isinstance(one, tf.Variable) and id(one) not in known:
                    whole.add_to_collection(key, one)

    def read(self, variable):
        """The tensor of the graph that has the value of a variable."""
        if id(variable) not in self._read:
            with self.graph.as_default(), tf.control_dependencies(None):
                self._read[id(variable)] = variable, variable.read_value()
        return self._read[id(variable)][1]

    def read_by(self, tensor):
        """The variable that `read` gave this tensor for; None where it gave it for none."""
        return next((variable for variable, read in self._read.values() if read is tensor), None)

    def initializer(self, variable):
        """The operation of the graph that gives a variable the value that it starts from."""
        own = getattr(variable, "_initializer_op", None)  # that of a checkpoint
        value, operation = self._initial[id(variable)]
        if own is None and operation is None:
            with self.graph.as_default(), tf.control_dependencies(None):
                operation = tf.group(variable.assign(value() if callable(value) else value))
            self._initial[id(variable)] = value, operation
        return operation if own is None else own

    def initialize_later_ones(self, session):
        """Gives variables that start from tensors of the graph their values."""
        for variable, tensor in self.later:
            variable.assign(session.run(tensor))


def _outside_of_graphs(function, *args):
    """Calls a function where operations are eager, whatever graph is being built: each thread begins so."""
    with concurrent.futures.ThreadPoolExecutor(max_workers=1) as executor:
        return executor.submit(function, *args).result()


def in_wrapped_function():
    """Whether a graph of TensorFlow 1 code is being built: a `wrap_function`'s, or one inside of it."""
    graph = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
    while graph is not None and not getattr(graph, "name", "").startswith("wrapped_function"):
        graph = getattr(graph, "outer_graph", None)
    return graph is not None


def let_keras_see_tensorflow_1():
    """Lets Keras take the graphs of TensorFlow 1 code for what they are.

    It makes its layers there in the way of TensorFlow 1, but asks in other places whether TensorFlow 2 is used, and
    mixes the two: `tf.keras.Input` gives no tensor then, and batch normalization updates its averages at once.
    """
    modules = [tf.compat.v1, tf.compat.v1.compat.v1, tf.compat.v2.compat.v1]
    for module in modules:
        asked = module.executing_eagerly_outside_functions
        if not hasattr(asked, "__wrapped__"):
            module.executing_eagerly_outside_functions = functools.wraps(asked)(
                lambda asked=asked: not in_wrapped_function() and asked()
            )
    build = tf.keras.layers.RNN.build
    if not hasattr(build, "__wrapped__"):

        @functools.wraps(build)
        def build_in_own_scope(layer, input_shape):
            if in_wrapped_function():
                _build_cell(layer, input_shape)
            build(layer, input_shape)

        tf.keras.layers.RNN.build = build_in_own_scope
    add = tf.compat.v1.layers.Layer.add_weight
    if not hasattr(add, "__wrapped__"):

        @functools.wraps(add)
        def add_weight(layer, *args, regularizer=None, **kwargs):
            if not in_wrapped_function():
                return add(layer, *args, regularizer=regularizer, **kwargs)
            kwargs["initializer"] = _initializer_of_parts(kwargs.get("initializer"), kwargs.get("dtype") or layer.dtype)
            if regularizer is None:
                return add(layer, *args, **kwargs)
            known = {id(one) for one in tf.compat.v1.global_variables()}
            made = add(layer, *args, **kwargs)
            # The regularization of a variable counts once, however often layers share it.
            if not any(id(one) in known for one in getattr(made, "_variable_list", [made])):
                layer._handle_weight_regularization(kwargs.get("name") or args[0], made, regularizer)
            return made

        tf.compat.v1.layers.Layer.add_weight = add_weight


def without_prefetch(dataset, graph):
    """A dataset of a graph that takes no element before it is asked for, where Python code makes the elements.

    TensorFlow 2 reads ahead by itself, and makes maps parallel: a generator that gives what its caller sets in between
    would give the last.
    """
    made = (node for function in graph._functions.values() for node in function.cached_definition.node_def)
    if not any("PyFunc" in node.op for node in made):
        return dataset
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    return dataset.with_options(options)


def let_iterators_start_with_the_graph():
    """Lets a one-shot iterator of TensorFlow 1 code begin where the tables of its graph do.

    TensorFlow 2 makes a shuffled dataset with an operation that such an iterator cannot be made of.
    """
    kind = tf.compat.v1.data.Dataset
    make = kind._make_one_shot_iterator
    if not hasattr(make, "__wrapped__"):

        @functools.wraps(make)
        def make_one_shot_iterator(dataset):
            graph = tf.compat.v1.get_default_graph()
            if tf.executing_eagerly() or not getattr(graph, "name", "").startswith("wrapped_function"):
                return make(dataset)
            dataset = without_prefetch(dataset, graph)
            made = tf.data.experimental.to_variant(dataset)  # where files are imported, as the case may be
            dataset = tf.data.experimental.from_variant(made, dataset.element_spec)
            iterator = tf.compat.v1.data.make_initializable_iterator(dataset)
            tf.compat.v1.add_to_collection(tf.compat.v1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
            return iterator

        kind._make_one_shot_iterator = make_one_shot_iterator


def let_gradients_leave_conditions():
    """Lets a branch of a condition ask for gradients of a loss that was computed before it.

    A branch is a graph of its own in TensorFlow 2, in which no way leads from such a loss to the weights. The gradients
    are computed where the loss is, whichever branch is taken: only what the branch does with them depends on it.
    """
    compute = gradients_util._GradientsHelper
    if not hasattr(compute, "__wrapped__"):

        @functools.wraps(compute)
        def compute_where_the_loss_is(ys, xs, grad_ys=None, *args, **kwargs):
            home = _graph_around([ys, xs, grad_ys]) if in_wrapped_function() else None
            with contextlib.nullcontext() if home is None else home.as_default():
                return compute(ys, xs, grad_ys, *args, **kwargs)

        gradients_util._GradientsHelper = compute_where_the_loss_is


def _graph_around(values):
    """The graph of all these tensors where it is one around that which is being built; None otherwise."""
    graphs = {one.graph for one in tf.nest.flatten(values, expand_composites=True) if tf.is_symbolic_tensor(one)}
    around = getattr(tf.compat.v1.get_default_graph(), "outer_graph", None)
    while around is not None and around not in graphs:
        around = getattr(around, "outer_graph", None)
    return around if len(graphs) == 1 else None


def _initializer_of_parts(initializer, dtype):
    """An initializer that draws other values for each part of a divided variable, on the scale of the whole.

    TensorFlow 1's do. Keras' give all parts the same values, on the scale of a part.
    """
    if initializer is None and tf.compat.v1.get_variable_scope().initializer is not None:
        return None  # the scope's
    if initializer is None and tf.as_dtype(dtype or tf.float32).is_floating:
        return tf.compat.v1.glorot_uniform_initializer()
    if not isinstance(initializer, tf.keras.initializers.Initializer):
        return initializer

    def draw(shape, dtype=None, partition_info=None):
        if partition_info is None:
            return initializer(shape, dtype=dtype)
        if isinstance(initializer, tf.keras.initializers.VarianceScaling):
            scale, mode, kind = initializer.scale, initializer.mode, initializer.distribution
            first = tf.compat.v1.variance_scaling_initializer(scale, mode, kind, initializer.seed)
            return first(shape, dtype, partition_info)
        anew = type(initializer).from_config(initializer.get_config())  # the same object gives the same values
        return anew(shape, dtype=dtype)

    return draw


def _build_cell(layer, input_shape):
    """Makes the variables of a recurrent layer in its own scope, not in one of its cell: `lstm/kernel`."""
    cell = layer.cell
    if getattr(cell, "built", True) or isinstance(cell, tf.keras.layers.StackedRNNCells):
        return
    shape = input_shape[0] if isinstance(input_shape, list) else input_shape
    if not tf.nest.is_nested(shape) or isinstance(shape, tuple):
        shape = tuple(tf.TensorShape(shape).as_list())
        cell.build(shape[1:] if layer.time_major else (shape[0], *shape[2:]))
        cell.built = True


class Graph:
    """TensorFlow 1 code as a graph: `result` is what the code returned, `run` computes parts of it.

    The code runs once. As in a session, only what is asked for is computed, not all that has side effects.
    """

    numbers = itertools.count()

    def __init__(self, function, signature=(), strategy=None, seed=None, variables=None):
        # Tensors and variables are equal to themselves alone, and keys of dicts, as `feed_dict` wants them.
        tf.compat.v1.disable_tensor_equality()
        let_keras_see_tensorflow_1()
        let_iterators_start_with_the_graph()
        let_gradients_leave_conditions()
        self.strategy = strategy or tf.distribute.get_strategy()
        # Under replicas TensorFlow 1 has resource variables, which are read before a step changes them.
        self._references = strategy is None or isinstance(strategy, tf.distribute.ParameterServerStrategy)
        self.variables = variables or Variables(self.strategy)
        self.result = None
        self.beside = None  # the graph of the input_fn, whose tensors are in the same graph in TensorFlow 1
        self._functions = {}

        def build(*tensors):
            self.graph = self.variables.graph = tf.compat.v1.get_default_graph()
            self.graph.as_graph_element = self._named(self.graph.as_graph_element)
            self.graph.seed = seed  # TensorFlow 1 has a graph of its own here, without the seed of the program
            with tf.variable_creator_scope(self.variables.make):
                self.result = function(*tensors)
            for operation in self.graph.get_operations():
                if operation.type in _SHARED:  # one for all functions that are made of the graph
                    name = tf.compat.as_bytes(f"{operation.name}_of_graph_{next(Graph.numbers)}")
                    operation._set_attr("shared_name", tf.compat.v1.AttrValue(s=name))

        with _seeds_of_the_program_kept(), self.strategy.scope():
            self.function = tf.compat.v1.wrap_function(build, list(signature))
        self.inputs = list(self.function.inputs[: len(signature)])

    def _named(self, find):
        """How the graph finds tensors by name: those that variables have in TensorFlow 1 are their values.

        Hooks find those of the input_fn, too, which were not there while the model_fn was called.
        """

        def as_graph_element(obj, allow_tensor=True, allow_operation=True):
            try:
                return find(obj, allow_tensor, allow_operation)
            except KeyError:
                variable = self.variables.named(obj) if allow_tensor else None
                if variable is not None:
                    return self.variables.read(variable)
                if self.beside is None:
                    raise
                return self.beside.graph.as_graph_element(obj, allow_tensor, allow_operation)

        return as_graph_element

    def value_of(self, fetch):
        """The tensor or operation that a session would compute for something: a name, a variable, a tensor."""
        if isinstance(fetch, str):
            return self.graph.as_graph_element(fetch)
        if isinstance(fetch, tf.Variable):
            return self.variables.read(fetch)
        return fetch

    def found_beside(self, fetches):
        """The tensors of the input_fn's graph in what is asked for, each once."""
        if self.beside is None:
            return []
        values = [self.value_of(leaf) for leaf in leaves_of(fetches)]
        found = {id(one): one for one in values if isinstance(one, tf.Tensor) and one.graph is self.beside.graph}
        return list(found.values())

    def variable_of(self, fetch):
        """The variable that something is, names or reads; None where it is anything else, or under replicas."""
        if not self._references:
            return None
        if isinstance(fetch, tf.Variable):  # not what an assignment gives, which is computed by assigning
            return next((one for one in self.variables.by_name.values() if one is fetch), None)
        return self.variables.read_by(self.value_of(fetch))

    def compute(self, fetches, feeds=(), values=()):
        """Computes a flat list of tensors and operations of the graph; operations give None."""
        function, looked_up = self.function_of(fetches, feeds)
        return function(*values, *tf.nest.flatten([look_up() for look_up in looked_up]))

    def takes_input(self, fetches, feeds=()):
        """Whether something is computed of the input, where these tensors are given."""
        if _key_of(fetches, feeds) in self._functions:
            return False
        behind = operations_behind(fetches, feeds)
        return any(tensor.op in behind for tensor in self.inputs)

    def function_of(self, fetches, feeds=()):
        """What computes a flat list of tensors and operations, and what gives it its further inputs."""
        key = _key_of(fetches, feeds)
        if key not in self._functions:
            # What collectives of replicas look up in each call is given to the function as further inputs: only those
            # that it has, as all workers have to look up the same, whatever else one of them computes.
            behind = operations_behind(fetches)
            graph = self.graph
            captures = zip(graph.deferred_internal_captures, graph.deferred_external_captures, strict=True)
            used = [(tensor, look_up) for tensor, look_up in captures if tensor.op in behind]
            made = [one for one in graph.get_operations() if one in behind]
            with _reads_and_writes_in_order(made, self._references):
                function = self.function.prune([*feeds, *(tensor for tensor, _ in used)], list(fetches))
            self._functions[key] = _called_with_tensors(function), [look_up for _, look_up in used], (feeds, fetches)
        return self._functions[key][:2]


@contextlib.contextmanager
def _seeds_of_the_program_kept():
    """Lets the program draw afterwards as if nothing had been drawn, or seeded, while the context was open."""
    context = eager_context.context()
    before = context._seed, getattr(context, "_rng", None)  # no generator where there was no seed yet
    try:
        yield
    finally:
        context._seed, context._rng = before


def as_one_operation(function, tensors, variables, seed=None):
    """Calls TensorFlow 1 code whose operations are one of the graph around it; returns its tensors, flat.

    What its results do not need is not in it: a function of a function would do all that has side effects.
    """

    def build(*inputs):
        graph = tf.compat.v1.get_default_graph()
        graph.seed = seed
        all_of_them = graph.get_operations

        @functools.lru_cache(maxsize=1)
        def needed():
            behind = operations_behind(graph.outputs)
            _order_writes([one for one in all_of_them() if one in behind])
            behind = operations_behind(graph.outputs)
            return [one for one in all_of_them() if one in behind]

        with variables.in_graph(graph), tf.variable_creator_scope(variables.make):
            results = tf.nest.flatten(function(*inputs))
        graph.get_operations = needed  # which the function is made of
        return results

    return _called_with_tensors(
        tf.compat.v1.wrap_function(build, [tf.TensorSpec(one.shape, one.dtype) for one in tensors])
    )(*tensors)


def _called_with_tensors(function):
    """A function that takes tensors in their order; TensorFlow's own looks for names first, in every call."""

    def call(*tensors):
        return function._call_flat(list(tensors), function.captured_inputs)

    call.outputs = function.outputs
    return call


@contextlib.contextmanager
def _reads_and_writes_in_order(operations, references):
    """Lets reads and writes of a variable wait for each other as in TensorFlow 1, as long as the context is open.

    What writes a variable waits for what the program had read it with before. Nothing else orders the two where a
    program has no control dependencies of its own between them, as BERT's, whose rate is computed of the global step
    while the global step is assigned anew. Where variables were `references`, what is read after a write waits for it
    if its use does. `operations` are in the order of their making.
    """
    before = _order_reads(operations) if references else {}
    for operation, controls in _order_writes(operations).items():
        before.setdefault(operation, controls)
    try:
        yield
    finally:
        for operation, controls in before.items():
            operation._remove_all_control_inputs()
            operation._add_control_inputs(controls)


def _order_reads(operations):
    """Lets a read wait for a write that was made before it, where what takes the value waits for that write.

    The tensor of a variable that is a reference is the variable's own memory, which is read when it is used: after
    `with tf.control_dependencies([update]): x = tf.identity(x)`, the mean of `x - mean` is the new one (1.15.5).
    Returns what the operations that wait now have waited for before.
    """
    before = {}
    writes = collections.defaultdict(list)  # of each variable, so far
    behind = functools.cache(_operations_after)
    for operation in operations:
        written, read = _handles(operation)
        if operation.type == "ReadVariableOp":
            uses = {use for value in operation.outputs for use in value.consumers()}
            for write in writes[id(read[0])]:
                if operation not in behind(write) and uses & behind(write) and write not in behind(operation):
                    before.setdefault(operation, list(operation.control_inputs))
                    operation._add_control_input(write)
        for handle in written:
            writes[id(handle)].append(operation)
    return before


def _operations_after(operation):
    """The operations that wait for one, by their inputs or otherwise."""
    waiting, found = [operation], set()
    while waiting:
        one = waiting.pop()
        after = [use for value in one.outputs for use in value.consumers()] + one._control_outputs
        waiting += [other for other in after if other not in found]
        found.update(after)
    return found


def _order_writes(operations):
    """Lets a write wait for the reads that were made before it, for good.

    Returns what the operations that wait now have waited for before.
    """
    numbers = {operation: number for number, operation in enumerate(operations)}
    reads = collections.defaultdict(list)  # of each variable, so far
    before = {}
    out_of_order = set()  # what was made to wait for what was made later: it might wait for the writes
    for operation in operations:
        written, read = _handles(operation)
        sources = [*(tensor.op for tensor in operation.inputs), *operation.control_inputs]
        if any(one in out_of_order or numbers.get(one, -1) > numbers[operation] for one in sources):
            out_of_order.add(operation)
            continue
        own = [one for handle in written for one in reads[id(handle)] if one not in sources]
        if own:
            before[operation] = list(operation.control_inputs)
            operation._add_control_inputs([done for one in own for done in _ends(one)])
        for handle in read:
            reads[id(handle)].append(operation)
    return before


def _ends(operation):
    """What is there once an operation has read its variables.

    A condition, a loop or a function lets go of what waits for it when it begins, for TensorFlow puts its body in its
    place. Only its results are there afterwards.
    """
    results = [one for one in operation.outputs if one.dtype not in (tf.resource, tf.variant)]
    if operation.type in ("ReadVariableOp", "ResourceGather", "ResourceGatherNd") or not results:
        return [operation]
    with operation.graph.as_default(), tf.control_dependencies(None):
        return [tf.identity(one).op for one in results]


def _handles(operation):
    """The handles of what an operation may write, and of what it only reads."""
    handles = [(number, one) for number, one in enumerate(operation.inputs) if one.dtype == tf.resource]
    if not handles or operation.type in ("VarIsInitializedOp", "VariableShape"):
        return [], []
    if operation.type in ("ReadVariableOp", "ResourceGather", "ResourceGatherNd"):
        return [], [one for _, one in handles]
    try:
        only_read = operation.get_attr("_read_only_resource_inputs")  # of a function, a condition, a loop
    except ValueError:
        only_read = []
    written = [one for number, one in handles if number not in only_read]
    return written, [one for number, one in handles if number in only_read]


def _key_of(fetches, feeds):
    return tuple(id(one) for one in (*feeds, None, *fetches))


def operations_behind(fetches, given=()):
    """The operations that something is computed by, where these tensors are given."""
    known = {id(tensor) for tensor in given}
    waiting = [getattr(one, "op", one) for one in fetches if id(one) not in known]
    found = set()
    while waiting:
        operation = waiting.pop()
        if operation not in found:
            found.add(operation)
            waiting += [tensor.op for tensor in operation.inputs if id(tensor) not in known]
            waiting += operation.control_inputs
    return found


def draws_seeded_numbers(graph, fetches):
    """Whether something is computed of numbers drawn from seeds: each function that computes it would begin anew."""
    nodes = [operation.node_def for operation in operations_behind(fetches)]
    nodes += [node for function in graph.as_graph_def().library.function for node in function.node_def]
    return any(node.attr[key].i for node in nodes for key in ("seed", "seed2") if key in node.attr)


class Session(tf.compat.v1.Session):
    """What hooks and scaffolds are given in the place of a TensorFlow 1 session: it runs parts of a model's graph.

    What depends on the input draws a batch for it, as it would in TensorFlow 1.
    """

    def __init__(self, graph, draw=None, others=()):
        self._graph_of_model = graph
        self._draw = draw  # returns the next batch, as a flat list
        self._others = tuple(others)

    @property
    def graph(self):
        return self._graph_of_model.graph

    @property
    def graph_def(self):
        return self.graph.as_graph_def()

    @property
    def sess_str(self):
        return ""

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass

    def __del__(self):
        pass

    def close(self):
        pass

    def as_default(self):
        return contextlib.nullcontext(self)

    def should_stop(self):
        return False

    def run(self, fetches, feed_dict=None, options=None, run_metadata=None):
        """Computes what is asked for; `fetches` may be nested, and name tensors."""
        return self.run_with(fetches, feed_dict)

    def run_with(self, fetches, feed_dict=None, batch=None, known=None):
        """Like `run`, with a batch for the input; `known` has the values of tensors of the input_fn, by their ids."""
        with tf.init_scope():  # hooks are called in the model's graph
            return self._compute(fetches, feed_dict, batch, known or {})

    def _compute(self, fetches, feed_dict, batch, known):
        leaves = leaves_of(fetches)
        if not leaves:
            return fetches
        owner = self._graph_of_model
        for other in self._others:
            if batch is None and any(getattr(leaf, "graph", None) is other.graph for leaf in leaves):
                owner = other
        feed_dict = dict(feed_dict or {})
        fed = {id(owner.variable_of(key)) for key in feed_dict}
        found = [owner.variable_of(leaf) for leaf in leaves]
        variables = [None if id(variable) in fed else variable for variable in found]
        there = [known.get(id(owner.value_of(leaf))) if known else None for leaf in leaves]
        variables = [one if value is None else Known(value) for one, value in zip(variables, there, strict=True)]
        flat = [owner.value_of(leaf) for leaf, variable in zip(leaves, variables, strict=True) if variable is None]
        feeds = [owner.value_of(key) for key in feed_dict]
        values = [tf.convert_to_tensor(value, key.dtype) for key, value in zip(feeds, feed_dict.values(), strict=True)]
        if not flat:
            results = []
        else:
            if batch is None and owner is self._graph_of_model and owner.takes_input(flat, feeds) and self._draw:
                batch = self._draw()
            if batch is None:
                results = owner.compute(flat, feeds, values)
            else:
                results = owner.compute(flat, [*owner.inputs, *feeds], [*batch, *values])
        return packed(fetches, with_variables(variables, results))


class Known:
    """A value that is there already, to be read as a variable is."""

    def __init__(self, value):
        self._value = value

    def read_value(self):
        return self._value


def with_variables(variables, results):
    """What was asked for in its order, as arrays: where there is a variable its value now, else the next result.

    A variable that is asked for is seen behind the updates of the same step, as TensorFlow 1's reference variables are.
    """
    results = iter(results)
    values = [next(results) if variable is None else variable.read_value() for variable in variables]
    return [None if value is None else _numpy(value) for value in values]


def _numpy(value):
    return value.numpy() if hasattr(value, "numpy") else value


def leaves_of(fetches):
    """The tensors, operations, variables and names in what is asked for, in its own order."""
    if fetches is None:
        return []
    if isinstance(fetches, dict):
        fetches = list(fetches.values())
    if isinstance(fetches, (list, tuple)):
        return [leaf for one in fetches for leaf in leaves_of(one)]
    if isinstance(fetches, (tf.SparseTensor, tf.IndexedSlices, tf.RaggedTensor)):
        return tf.nest.flatten(fetches, expand_composites=True)
    return [fetches]


def packed(fetches, results):
    """Values in the form of what was asked for; sparse ones as sessions give them."""
    results = iter(results)

    def pack(fetch):
        if fetch is None:
            return None
        if isinstance(fetch, dict):
            return {key: pack(one) for key, one in fetch.items()}
        if hasattr(fetch, "_fields"):
            return type(fetch)(*(pack(one) for one in fetch))
        if isinstance(fetch, tuple):
            return tuple(pack(one) for one in fetch)
        if isinstance(fetch, list):
            return [pack(one) for one in fetch]
        if isinstance(fetch, tf.SparseTensor):
            return tf.compat.v1.SparseTensorValue(*(next(results) for _ in range(3)))
        if isinstance(fetch, (tf.IndexedSlices, tf.RaggedTensor)):
            return tuple(next(results) for _ in tf.nest.flatten(fetch, expand_composites=True))
        return next(results)

    return pack(fetches)
