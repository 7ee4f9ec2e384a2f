"""A native program for a mesh, written anew with DTensor's core API: a `tf.Module` with `DVariable`s, an optimizer by
hand and steps in a `tf.function`. It has no Keras, so it runs on whichever Keras there is.

The text that is read is the one that the codemod writes for a mesh, of which one function and one class are Keras'.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import libcst as cst

from migrator.emit.file import add_import
from migrator.emit.layout import call, statements
from migrator.names.bare import bare
from migrator.names.imports import dotted
from migrator.program.calls import calls_in, functions_in, is_docstring, is_false, parameters_of, string
from migrator.program.parsed import Blocked, ParsedFile, names_in
from migrator.query.weights import Training
from migrator.walking import Transformer

CODE = "TFM783"
_KERAS = "tf.keras."
_LAYERS = f"{_KERAS}layers."
_ACTIVATIONS = frozenset(("relu", "tanh", "sigmoid", "softmax", "elu", "selu", "softplus"))
_NAMES = {"Adam", "Dense", "GradientDescent", "Momentum", "dtensor", "layout_of", "make_counter", "make_slots"}
_METHODS = {"__init__", "placed", "batches", "loss", "gradients", "train_step", "test_step", "train", "evaluate"}

_LAYOUT_OF = '''\
def layout_of(name, layouts, mesh, rank):
    """Returns the layout of the first pattern that a variable's name begins with; others are whole on every device."""
    for pattern, layout in layouts.items():
        if re.match(pattern, name):
            return layout
    return dtensor.Layout.replicated(mesh, rank=rank)
'''
_DENSE = '''\
class Dense(tf.Module):
    """A dense layer, whose weights lie on a mesh as the layouts say."""

    def __init__(self, name, inputs, units, mesh, layouts, activation=None, use_bias=True):
        super().__init__()
        self.activation = activation
        limit = (6.0 / (inputs + units)) ** 0.5
        seed = tf.random.uniform([2], maxval=2**31 - 1, dtype=tf.int32).numpy().tolist()
        kernel = dtensor.call_with_layout(
            tf.function(tf.random.stateless_uniform),
            layout_of(name + ".kernel", layouts, mesh, rank=2),
            shape=(inputs, units),
            seed=tuple(seed),
            minval=-limit,
            maxval=limit,
        )
        self.kernel = dtensor.DVariable(kernel, name=name + "/kernel")
        self.bias = None
        if use_bias:
            layout = layout_of(name + ".bias", layouts, mesh, rank=1)
            bias = dtensor.call_with_layout(tf.zeros, layout, shape=(units,))
            self.bias = dtensor.DVariable(bias, name=name + "/bias")

    def __call__(self, inputs):
        outputs = tf.matmul(inputs, self.kernel)
        if self.bias is not None:
            outputs = tf.add(outputs, self.bias)
        return outputs if self.activation is None else self.activation(outputs)
'''
_SLOTS = '''\
def make_slots(variables, name):
    """Returns a variable of zeros for each of some variables, which lies as that one does."""
    zeros = [dtensor.call_with_layout(tf.zeros, one.layout, shape=one.shape) for one in variables]
    named = zip(zeros, variables)
    return [dtensor.DVariable(zero, name=name + "/" + one.name.split(":")[0], trainable=False) for zero, one in named]
'''
_COUNTER = '''\
def make_counter(mesh):
    """Returns the number of steps as a variable: a `tf.function` would count a Python number when it is traced only."""
    layout = dtensor.Layout.replicated(mesh, rank=0)
    zero = dtensor.call_with_layout(tf.zeros, layout, shape=(), dtype=tf.int64)
    return dtensor.DVariable(zero, name="iterations", trainable=False)
'''
_SGD = '''\
class GradientDescent(tf.Module):
    """Gradient descent."""

    def __init__(self, variables, mesh, learning_rate):
        super().__init__()
        self.learning_rate = learning_rate
        self.iterations = make_counter(mesh)

    def apply_gradients(self, gradients, variables):
        for gradient, variable in zip(gradients, variables):
            variable.assign_sub(self.learning_rate * dtensor.relayout(gradient, variable.layout))
        self.iterations.assign_add(1)
'''
_MOMENTUM = '''\
class Momentum(tf.Module):
    """Gradient descent with momentum, as tf.train.MomentumOptimizer has it."""

    def __init__(self, variables, mesh, learning_rate, momentum, nesterov=False):
        super().__init__()
        self.learning_rate, self.momentum, self.nesterov = learning_rate, momentum, nesterov
        self.iterations = make_counter(mesh)
        self.accumulators = make_slots(variables, "momentum")

    def apply_gradients(self, gradients, variables):
        for gradient, variable, accumulator in zip(gradients, variables, self.accumulators):
            gradient = dtensor.relayout(gradient, variable.layout)
            # The new value is computed once: an assigned variable may be read before it is assigned (TensorFlow 2.21).
            new = self.momentum * accumulator + gradient
            accumulator.assign(new)
            step = gradient + self.momentum * new if self.nesterov else new
            variable.assign_sub(self.learning_rate * step)
        self.iterations.assign_add(1)
'''
_ADAM = '''\
class Adam(tf.Module):
    """Adam, as tf.train.AdamOptimizer has it: epsilon is added to the square root before its bias is corrected."""

    def __init__(self, variables, mesh, learning_rate, beta_1=0.9, beta_2=0.999, epsilon=1e-7):
        super().__init__()
        self.learning_rate, self.beta_1, self.beta_2, self.epsilon = learning_rate, beta_1, beta_2, epsilon
        self.iterations = make_counter(mesh)
        self.means, self.squares = make_slots(variables, "m"), make_slots(variables, "v")

    def apply_gradients(self, gradients, variables):
        step = tf.cast(self.iterations + 1, tf.float32)
        rate = self.learning_rate * tf.sqrt(1.0 - tf.pow(self.beta_2, step)) / (1.0 - tf.pow(self.beta_1, step))
        for gradient, variable, mean, square in zip(gradients, variables, self.means, self.squares):
            gradient = dtensor.relayout(gradient, variable.layout)
            # New values are computed once: an assigned variable may be read before it is assigned (TensorFlow 2.21).
            new_mean = self.beta_1 * mean + (1.0 - self.beta_1) * gradient
            new_square = self.beta_2 * square + (1.0 - self.beta_2) * tf.square(gradient)
            mean.assign(new_mean)
            square.assign(new_square)
            variable.assign_sub(rate * new_mean / (tf.sqrt(new_square) + self.epsilon))
        self.iterations.assign_add(1)
'''
_OPTIMIZERS = {
    "GradientDescent": (_SGD, ("learning_rate",)),
    "Momentum": (_SLOTS + "\n\n" + _MOMENTUM, ("learning_rate", "momentum", "nesterov")),
    "Adam": (_SLOTS + "\n\n" + _ADAM, ("learning_rate", "beta_1", "beta_2", "epsilon")),
}
_LOOP = '''\
class {name}:
    """Trains and evaluates a model in steps that all devices of a mesh compute together."""

    def __init__(self, model, mesh{model_dir}):
        self.model = model
        self.mesh = mesh{restore}

{placed}
    @tf.function
    def train_step(self, batch):
        features, labels = batch
        variables = self.model.trainable_variables
        with tf.GradientTape() as tape:
            loss = self.model.loss(labels, self.model(features, training=True))
        self.model.optimizer.apply_gradients(tape.gradient(loss, variables), variables)
        return loss

    @tf.function
    def test_step(self, batch):
        features, labels = batch
        predictions = self.model(features, training=False)
        return self.model.loss(labels, predictions), {correct}

{train}
    def evaluate(self, batches):
        """Returns the mean loss of the batches{and_metrics}, by name."""
        losses, correct, examples = [], 0.0, 0
        for batch in batches:
            loss, right = self.test_step(batch)
            losses.append(loss.numpy())
            correct += right.numpy()
            examples += batch[1].shape[0]
        return {{"loss": sum(losses) / max(len(losses), 1){metrics}}}
'''
_RESTORE = """
        self.checkpoints = tf.train.CheckpointManager(tf.train.Checkpoint(model=model), model_dir, max_to_keep=5)
        latest = os.path.basename(self.checkpoints.latest_checkpoint or "")
        if not latest.startswith("model.ckpt"):  # an Estimator's
            self.checkpoints.restore_or_initialize()"""
_CHECK = '''\
def {name}(model, layouts):
    """Raises ValueError where a pattern of the layouts is that of no variable of the model."""
    names = [variable.name.partition(":")[0].replace("/", ".") for variable in model.trainable_variables]
    for pattern in layouts:
        if not any(re.match(pattern, name) for name in names):
            raise ValueError("no variable has the layout of %r: there are %s" % (pattern, ", ".join(names)))
'''
_NETWORK = '''\
class {name}(tf.Module):
    """{says}"""

    def __init__(self, {parameters}):
        super().__init__()
{made}

    def __call__(self, {features}, training=False):
{body}

    def loss(self, labels, predictions):
        """Returns the mean over the examples."""{flat}
        return tf.reduce_mean({loss})
'''
_CORRECT = '''
    def correct(self, labels, predictions):
        """Returns how many examples have their own class."""{flat}
        found = tf.cast(tf.argmax(predictions, axis=-1), labels.dtype)
        return tf.reduce_sum(tf.cast(tf.equal(found, labels), tf.float32))
'''
_FLAT = """
        if labels.shape.rank == 2:  # a column
            labels = tf.squeeze(labels, axis=1)"""
_LOSSES = {
    "SparseCategoricalCrossentropy": (
        "tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=predictions)"
    ),
    "CategoricalCrossentropy": "tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=predictions)",
    "MeanSquaredError": "tf.math.squared_difference(predictions, labels)",
}


def as_module(file: ParsedFile, known: Training) -> str:
    """The text of a native program for a mesh as one of the core API. Raises Blocked (TFM783) for what has no form."""
    taken = sorted(_NAMES & file.names_at_top)
    if taken:
        raise Blocked(CODE, None, f"the program has its own name `{taken[0]}`, which the tf.Module needs: rename it")
    models = [one for one in functions_in(file.module) if any(_of(c) == f"{_KERAS}Model" for c in calls_in(one.body))]
    if len(models) != 1 or models[0] not in file.module.body:
        message = "a tf.Module needs a model that is created by one function at the top of its file"
        raise Blocked(CODE, models[0] if models else None, message)
    network = _read(file, models[0], known)
    writing = _Writing(file, network)
    module = file.module.visit(writing)
    assert isinstance(module, cst.Module)
    module = add_import(module, "re")
    module = _without_unused(module)
    left = re.search(r"\btf\.keras\.[\w.]+|\bmake_inputs\b", bare(module.code))
    if left is not None:
        raise Blocked(CODE, None, f"`{left[0]}` is unsupported without Keras: leave `--style module` out")
    return module.code


@dataclass
class _Network:
    """What a function that makes a model says, as source text."""

    function: cst.FunctionDef
    name: str
    features: str
    parameters: list[str]
    says: str
    made: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    optimizer: str = ""
    loss: str = ""
    accuracy: str | None = None


def _of(node: cst.Call) -> str:
    return dotted(node.func) or ""


def _given(node: cst.Call, names: Sequence[str]) -> dict[str, cst.BaseExpression]:
    """The arguments of a call by name. Raises Blocked for others than these."""
    found: dict[str, cst.BaseExpression] = {}
    for index, one in enumerate(node.args):
        name = one.keyword.value if one.keyword is not None else names[index] if index < len(names) else ""
        if one.star or name not in names:
            raise Blocked(CODE, node, f"`{name or '*'}` of `{_of(node)}` is unsupported in a tf.Module: leave it out")
        found[name] = one.value
    return found


def _read(file: ParsedFile, function: cst.FunctionDef, known: Training) -> _Network:
    """What the function that makes a model does, in straight lines."""
    params = function.params
    if params.kwonly_params or isinstance(params.star_arg, cst.Param) or any(p.default for p in params.params):
        message = (
            f"`{function.name.value}` has parameters with defaults, unsupported in a tf.Module: remove the defaults"
        )
        raise Blocked(CODE, function, message)
    names = [one.name.value for one in parameters_of(function)]
    if len(names) < 2 or names[-1] != "mesh":
        raise Blocked(
            CODE, function, f"`{function.name.value}` does not take features and mesh, which a tf.Module needs"
        )
    said = function.get_docstring()
    whole = said or f"The network of `{function.name.value}`, with its loss and its optimizer."
    network = _Network(function, _free("Network", file), names[0], [*names[1:-1], "mesh", "layouts"], whole)
    kernels = [one for one in known.weights if one.name.endswith(".kernel")]
    reading = _Reading(file, network, [(one.name.rpartition(".")[0], one.shape[0]) for one in kernels])
    for statement in function.body.body:
        if is_docstring(statement):
            continue
        if not isinstance(statement, cst.SimpleStatementLine):
            message = (
                "a network with blocks (`if`, `for`, `with`) is unsupported as a tf.Module: write the layers in line"
            )
            raise Blocked(CODE, function, message)
        for small in statement.body:
            reading.statement(small)
    if reading.layers:
        raise Blocked(CODE, function, f"layers of `{function.name.value}` are created elsewhere: create them in it")
    if not network.optimizer or not network.loss:
        raise Blocked(
            CODE, function, "the optimizer or the loss is not created in the function of the model: create it there"
        )
    return network


def _free(name: str, file: ParsedFile) -> str:
    while name in file.names:
        name += "_"
    return name


class _Reading:
    """Reads the statements of a function that makes a model, one after the other."""

    def __init__(self, file: ParsedFile, network: _Network, layers: list[tuple[str, int]]) -> None:
        self.file = file
        self.network = network
        self.layers = layers  # names and widths of inputs of the dense layers that are still to come
        self.tensors = {network.features}
        self.optimizers: dict[str, str] = {}
        self.indent = file.module.default_indent

    def code(self, node: cst.CSTNode) -> str:
        return self.file.module.code_for_node(node)

    def statement(self, node: cst.BaseSmallStatement) -> None:
        calls = calls_in(node)
        names = [_of(one) for one in calls]
        value = node.value if isinstance(node, (cst.Assign, cst.Expr)) else None
        target = node.targets[0].target if isinstance(node, cst.Assign) and len(node.targets) == 1 else None
        if isinstance(value, cst.Call) and _of(value).startswith(f"{_KERAS}optimizers."):
            self.optimizers[self.code(target) if target is not None else ""] = self.optimizer(value)
        elif isinstance(value, cst.Call) and _of(value) == f"{_KERAS}Model":
            given = _given(value, ("inputs", "outputs"))
            if self.code(given["inputs"]) != self.network.features:
                raise Blocked(CODE, self.network.function, "the inputs of the model are not its features")
            self.network.body.append(f"return {self.code(self.call_of(given['outputs']))}")
        elif isinstance(value, cst.Call) and _of(value).endswith(".compile"):
            self.compile(value)
        elif isinstance(node, cst.Return):
            return
        elif not names_in(node) & self.tensors and not any(name.startswith(_KERAS) for name in names):
            self.network.made.append(self.code(node))  # of numbers only
            if isinstance(node, cst.Assign):
                self.network.body.append(self.code(self.of_self(node)))
        else:
            self.network.body.append(self.code(self.of_self(self.call_of(node))))
            for one in node.targets if isinstance(node, cst.Assign) else ():
                self.tensors |= names_in(one.target)

    def call_of(self, node: cst.CSTNode) -> cst.CSTNode:
        """A node with its layers as attributes of the module."""
        new = node.visit(_Layers(self))
        assert isinstance(new, cst.CSTNode)
        return new

    def of_self(self, node: cst.CSTNode) -> cst.CSTNode:
        """A node with the parameters of the function as attributes of the module."""
        own = set(self.network.parameters[:-2]) & names_in(node)
        for name in sorted(own):
            if f"self.{name} = {name}" not in self.network.made:
                self.network.made.insert(0, f"self.{name} = {name}")
        new = node.visit(_OfSelf(own))
        assert isinstance(new, cst.CSTNode)
        return new

    def layer(self, node: cst.Call) -> str:
        """The text that calls what a layer becomes; makes the attribute that holds it."""
        kind = _of(node).removeprefix(_LAYERS)
        if kind == "Dense":
            return self.dense(node)
        if kind == "Activation":
            return self.activation(_given(node, ("activation", "name")).get("activation"), node)
        if kind in ("ReLU", "Softmax") and not node.args:
            return f"tf.nn.{kind.lower()}"
        message = f"`{kind}` is unsupported in a tf.Module, which supports dense layers and activations"
        raise Blocked(CODE, self.network.function, f"{message}: leave `--style module` out")

    def dense(self, node: cst.Call) -> str:
        given = _given(node, ("units", "activation", "use_bias", "name"))
        if not self.layers:
            raise Blocked(CODE, self.network.function, "the input of a dense layer is unknown")
        name, width = self.layers.pop(0)
        if "name" in given and string(given["name"]) != name:
            raise Blocked(CODE, self.network.function, f"the position of layer `{name}` is unknown")
        arguments = [f'"{name}"', str(width), self.code(given["units"]), "mesh", "layouts"]
        if "activation" in given:
            arguments.append(f"activation={self.activation(given['activation'], node)}")
        if "use_bias" in given:
            arguments.append(f"use_bias={self.code(given['use_bias'])}")
        attribute = re.sub(r"\W", "_", name)
        if not attribute.isidentifier() or attribute in ("loss", "optimizer", "correct", "name"):
            attribute = f"layer_{attribute}"
        self.network.made.append(call(f"self.{attribute} = Dense", arguments, self.indent, 2))
        return f"self.{attribute}"

    def activation(self, node: cst.BaseExpression | None, place: cst.Call) -> str:
        word = string(node) if node is not None else None
        if word in _ACTIVATIONS:
            return f"tf.nn.{word}" if word != "tanh" else "tf.math.tanh"
        if node is None or word is not None or (dotted(node) or "").startswith(_KERAS):
            raise Blocked(
                CODE, self.network.function, f"the activation of `{_of(place)}` is unsupported in a tf.Module"
            )
        return self.code(node)

    def optimizer(self, node: cst.Call) -> str:
        kind = _of(node).rpartition(".")[2]
        given = {
            one.keyword.value: one.value for one in node.args if one.keyword is not None and one.keyword.value != "mesh"
        }
        kind = {"SGD": "Momentum" if "momentum" in given else "GradientDescent"}.get(kind, kind)
        if kind not in _OPTIMIZERS:
            message = f"`{kind}` is unsupported in a tf.Module, which supports gradient descent, momentum and Adam"
            raise Blocked(CODE, self.network.function, message)
        allowed = _OPTIMIZERS[kind][1]
        for name, value in given.items():
            if name not in allowed or any(_of(one).startswith(_KERAS) for one in calls_in(value)):
                message = f"`{name}` of `{kind}`, or its value, is unsupported in a tf.Module: give plain numbers"
                raise Blocked(CODE, self.network.function, message)
        arguments = ["self.trainable_variables", "mesh", *(f"{name}={self.code(one)}" for name, one in given.items())]
        return call(f"self.optimizer = {kind}", arguments, self.indent, 2)

    def compile(self, node: cst.Call) -> None:
        given = _given(node, ("optimizer", "loss", "metrics"))
        optimizer = given.get("optimizer")
        if isinstance(optimizer, cst.Call):
            self.network.optimizer = self.optimizer(optimizer)
        elif optimizer is not None:
            self.network.optimizer = self.optimizers.get(self.code(optimizer), "")
        loss = given.get("loss")
        kind = _of(loss).rpartition(".")[2] if isinstance(loss, cst.Call) else ""
        of_loss = _given(loss, ("from_logits", "reduction")) if isinstance(loss, cst.Call) else {}
        from_logits = "from_logits" in of_loss and not is_false(of_loss["from_logits"])
        if kind not in _LOSSES or ("Cross" in kind) is not from_logits:
            message = "a tf.Module supports only cross entropies of logits over classes and the mean squared error"
            raise Blocked(CODE, self.network.function, f"{message}: leave `--style module` out")
        self.network.loss = _LOSSES[kind]
        metrics = given.get("metrics")
        listed = metrics.elements if isinstance(metrics, cst.List) else ()
        for one in listed:
            made = one.value
            name = _of(made) if isinstance(made, cst.Call) else ""
            of_classes = name == f"{_KERAS}metrics.SparseCategoricalAccuracy"
            if not isinstance(made, cst.Call) or not of_classes or len(listed) > 1:
                message = (
                    f"`{name or 'a metric'}` is unsupported in a tf.Module, which supports the accuracy of classes only"
                )
                raise Blocked(CODE, self.network.function, f"{message}: leave the metric out")
            self.network.accuracy = string(_given(made, ("name", "mesh"))["name"])


class _Layers(Transformer):
    """Calls of layers that are made in place become calls of what the module has."""

    def __init__(self, reading: _Reading) -> None:
        super().__init__()
        self.reading = reading
        self.made: dict[cst.Call, str] = {}

    def visit_Call(self, node: cst.Call) -> None:
        inner = node.func
        if isinstance(inner, cst.Call) and _of(inner).startswith(_LAYERS):  # made before what it is called with is
            self.made[node] = self.reading.layer(inner)

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        if original_node in self.made:
            return updated_node.with_changes(func=cst.parse_expression(self.made[original_node]))
        return updated_node


class _OfSelf(Transformer):
    """Names become attributes of the module."""

    def __init__(self, names: set[str]) -> None:
        super().__init__()
        self.names = names

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(keyword=original_node.keyword)

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.Attribute:
        return updated_node.with_changes(attr=original_node.attr)

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        if original_node.value in self.names:
            return cst.Attribute(cst.Name("self"), updated_node)
        return updated_node


class _Writing(Transformer):
    """Writes the whole file: the module in the place of the function, the loop, and the lines that make them."""

    def __init__(self, file: ParsedFile, network: _Network) -> None:
        super().__init__()
        self.file = file
        self.network = network
        self.indent = file.module.default_indent
        self.layouts: set[str] = set()
        for node in file.module.body:
            if isinstance(node, cst.ClassDef) and node.name.value.startswith("TrainingLoop"):
                self.loop = node
                break
        else:
            raise Blocked(CODE, network.function, "the program has no custom loop for the mesh")
        methods = {one.name.value for one in node.body.body if isinstance(one, cst.FunctionDef)}
        if not methods <= _METHODS or not {"loss", "gradients"} <= methods:
            message = "a loss of whole batches, replicas or random layers are unsupported in a tf.Module"
            raise Blocked(CODE, network.function, f"{message}: leave `--style module` out")

    def text(self, text: str) -> Sequence[cst.BaseStatement]:
        text = text if self.indent == "    " else text.replace("    ", self.indent)
        return statements(text, self.file.module)

    def leave_FunctionDef(
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement] | cst.RemovalSentinel:
        name = original_node.name.value
        if original_node is self.network.function:
            return self.flattened(self.classes(), original_node)
        if name.startswith("check_layouts"):
            return self.flattened([_CHECK.format(name=name)], original_node)
        if name.startswith("make_inputs") and f"{_KERAS}Input(" in self.file.module.code_for_node(original_node):
            return cst.RemoveFromParent()
        return updated_node

    def leave_ClassDef(
        self, original_node: cst.ClassDef, updated_node: cst.ClassDef
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement]:
        if original_node is not self.loop:
            return updated_node
        methods = {one.name.value: one for one in original_node.body.body if isinstance(one, cst.FunctionDef)}
        saves = len(methods["__init__"].params.params) > 3
        kept = [self.file.module.code_for_node(methods[name]) for name in ("placed", "batches")]
        level = self.indent
        written = ["\n".join(level + line if line.strip() else "" for line in _lines(one)) for one in kept]
        train = "\n".join(level + line if line.strip() else "" for line in _lines(self.code(methods["train"])))
        name = self.network.accuracy
        correct = "self.model.correct(labels, predictions)" if name else "tf.constant(0.0)"
        text = _LOOP.format(
            name=original_node.name.value,
            model_dir=", model_dir" if saves else "",
            restore=_RESTORE if saves else "",
            placed="@@placed@@",
            correct=correct,
            train="@@train@@",
            and_metrics=" and the accuracy of the examples" if name else "",
            metrics=f', "{name}": correct / max(examples, 1)' if name else "",
        )
        if not name:  # nothing is counted
            text = text.replace("losses, correct, examples = [], 0.0, 0", "losses = []")
            two = "loss, right = self.test_step(batch)\n            losses.append(loss.numpy())"
            text = text.replace(two, "losses.append(self.test_step(batch).numpy())")
            text = text.replace("            correct += right.numpy()\n            examples += batch[1].shape[0]\n", "")
            text = text.replace("predictions), tf.constant(0.0)", "predictions)")
        text = text if self.indent == "    " else text.replace("    ", self.indent)
        text = text.replace("@@placed@@", "\n\n".join(written) + "\n").replace("@@train@@", train + "\n")
        new = statements(text, self.file.module)
        return cst.FlattenSentinel([new[0].with_changes(leading_lines=original_node.leading_lines)])

    def code(self, node: cst.CSTNode) -> str:
        return self.file.module.code_for_node(node)

    def classes(self) -> list[str]:
        """What stands in the place of the function."""
        network = self.network
        inner = self.indent * 2
        made = [one for one in network.made if one] + [network.optimizer]
        kind = re.search(r"= (\w+)\(", network.optimizer)
        assert kind is not None
        text = _NETWORK.format(
            name=network.name,
            says=network.says,
            parameters=", ".join(network.parameters),
            made="\n".join(f"@@{one}" for one in made),
            features=network.features,
            body="\n".join(f"@@{one}" for one in network.body),
            loss=network.loss,
            flat=_FLAT if "sparse" in network.loss else "",
        )
        text += _CORRECT.format(flat=_FLAT) if network.accuracy else ""
        text = text if self.indent == "    " else text.replace("    ", self.indent)
        optimizer = _OPTIMIZERS[kind[1]][0]
        return [_LAYOUT_OF, _DENSE, _COUNTER, *optimizer.split("\n\n\n"), text.replace("@@", inner)]

    def flattened(self, texts: Sequence[str], old: cst.FunctionDef) -> cst.FlattenSentinel[cst.BaseStatement]:
        new: list[cst.BaseStatement] = []
        for text in texts:
            one = text if self.indent == "    " or text is texts[-1] else text.replace("    ", self.indent)
            made = statements(one, self.file.module)
            blank = [cst.EmptyLine(indent=False)] * 2
            new.append(made[0].with_changes(leading_lines=blank if new else old.leading_lines))
        return cst.FlattenSentinel(new)

    # -- the lines that make the model
    def visit_Assign(self, node: cst.Assign) -> None:
        if isinstance(node.value, cst.Call) and _of(node.value).endswith(".LayoutMap"):
            self.layouts.add(dotted(node.targets[0].target) or "")

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:
        if isinstance(original_node.value, cst.Call) and _of(original_node.value).endswith(".LayoutMap"):
            return updated_node.with_changes(value=cst.Dict([]))
        return updated_node

    def leave_With(
        self, original_node: cst.With, updated_node: cst.With
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement]:
        first = original_node.items[0].item
        scope = _of(first).rpartition(".") if isinstance(first, cst.Call) else ("", "", "")
        if scope[0] in self.layouts and scope[2] == "scope" and isinstance(updated_node.body, cst.IndentedBlock):
            body = list(updated_node.body.body)
            body[0] = body[0].with_changes(leading_lines=[*original_node.leading_lines, *_leading(body[0])])
            return cst.FlattenSentinel(body)
        return updated_node

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        if _of(original_node) != self.network.function.name.value:
            return updated_node
        if not original_node.args or original_node.args[0].keyword is not None or len(self.layouts) != 1:
            raise Blocked(CODE, original_node, "this call of the model's function was not written by the codemod")
        [layouts] = self.layouts
        given = [*updated_node.args[1:]]
        equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
        last = given[-1].with_changes(comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")))
        more = cst.Arg(cst.Name(layouts), keyword=cst.Name("layouts"), equal=equal)
        return updated_node.with_changes(func=cst.Name(self.network.name), args=[*given[:-1], last, more])


def _leading(node: cst.BaseStatement) -> Sequence[cst.EmptyLine]:
    found = getattr(node, "leading_lines", ())
    return found if isinstance(found, Sequence) else ()


def _lines(text: str) -> list[str]:
    return text.strip("\n").splitlines()


def _without_unused(module: cst.Module) -> cst.Module:
    """A file that does not choose Keras 2 any more, with DTensor's own name, and without the modules that this took."""
    chooses = [one for one in module.body if "TF_USE_LEGACY_KERAS" in module.code_for_node(one)]
    rest = [one for one in module.body if one not in chooses]
    code = re.sub(r"^import .*$", "", bare("\n".join(module.code_for_node(one) for one in rest)), flags=re.MULTILINE)
    unused = [one for one in ("os", "importlib.util") if not re.search(rf"\b{one.partition('.')[0]}\.", code)]
    body: list[cst.BaseStatement | cst.SimpleStatementLine] = []
    above: list[cst.EmptyLine] = []  # what stood before lines that are gone, where nothing stands before the next
    for statement in module.body:
        imported = _imports(statement)
        leading = list(_leading(statement))
        if statement in chooses:
            above += [line for line in leading if line.comment is not None and "Keras" not in line.comment.value]
            continue
        if imported in unused:
            above += leading
            continue
        if above and not leading:
            statement = statement.with_changes(leading_lines=above)
        above = []
        body.append(statement)
        if imported == "tensorflow as tf":
            body += statements("from tensorflow.experimental import dtensor\n", module)
    return module.with_changes(body=body)


def _imports(line: cst.CSTNode) -> str:
    """What a plain import of one module says behind its first word; "" for other lines."""
    one = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
    if not isinstance(one, cst.Import) or len(one.names) != 1:
        return ""
    name = one.names[0]
    return (dotted(name.name) or "") + (f" as {name.asname.name.value}" if name.asname is not None else "")  # type: ignore


__all__ = ["as_module"]
