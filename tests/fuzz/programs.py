"""From values on the axes to the text of a TensorFlow 1 program."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from textwrap import indent

from tests.fuzz.axes import Values, value

#: What a program prints for us begins with this word; what libraries print does not.
MARK = "shown"
#: What it prints of an evaluation begins with these: the loss follows, then the step.
EVALUATED = f"{MARK} evaluated"

_EXAMPLES = 24
_CLASSES = 3


def files(values: Values) -> dict[str, str]:
    """The program's files by name; `train.py` is the one to run."""
    pick = _Picker(values)
    body = _ready(pick) if pick("family") == "ready model" else _model_fn(pick)
    made = _laid_out(pick, body)
    word = pick("comment")
    if word == "none":
        return made
    return {name: with_comments(text, word) for name, text in made.items()}


def with_comments(text: str, word: str) -> str:
    """The program with comments that name `word`, at its begin, in its functions and behind lines of code."""
    lines = []
    for line in text.splitlines():
        lines.append(line)
        if line.startswith("def ") and line.endswith(":"):
            lines.append(f"    # {word} was tried here, to no avail.")
    if lines:
        lines[-1] += f"  # see the notes on {word}"
    return f"# Notes on {word} of the results.\n" + "\n".join(lines) + "\n"


class _Picker:
    """Asks for the value of the program on an axis."""

    def __init__(self, values: Values) -> None:
        self._values = values

    def __call__(self, axis: str) -> str:
        return value(self._values, axis)

    @property
    def classes(self) -> bool:
        return self("task") == "classes"

    @property
    def outputs(self) -> int:
        return _CLASSES if self.classes else 1

    @property
    def batch(self) -> int:
        return 8 if self("batches") == "even" else 9

    @property
    def keyed(self) -> bool:
        """Whether features are a dictionary: a ready model takes its one input as it is."""
        return self("family") != "ready model"


def _block(*parts: str | Iterable[str]) -> str:
    """Lines and groups of lines, one below the other; empty ones are left out."""
    found = []
    for part in parts:
        text = part if isinstance(part, str) else "\n".join(part)
        if text.strip():
            found.append(text.strip("\n"))
    return "\n".join(found)


def _inside(head: str, *parts: str | Iterable[str]) -> str:
    return f"{head}\n" + indent(_block(*parts), "    ")


# -- data ------------------------------------------------------------------------------------------------------------


def _data(pick: _Picker) -> str:
    if pick.classes:
        labels = "labels = (np.abs(x[:, 0] * 2.0 + x[:, 1]) * 1.5).astype(np.int32) % 3"
    else:
        labels = "labels = (x[:, :1] * 2.0 - x[:, 1:2] + 0.5).astype(np.float32)"
    return _inside(
        "def examples():",
        "random = np.random.RandomState(7)",
        f"x = random.normal(size=({_EXAMPLES}, 4)).astype(np.float32)",
        labels,
        "x = x * np.float32(0.01)" if pick("features") == "small" else "",
        "return x, labels",
    )


def _features(pick: _Picker, name: str) -> str:
    return f'{{"x": {name}}}' if pick.keyed else name


def _batched(pick: _Picker, repeats: bool) -> str:
    fixed = pick("input") == "remainder dropped" or pick("network") == "static batch"
    dropped = ", drop_remainder=True" if fixed else ""
    return (".repeat()" if repeats else "") + f".batch({pick.batch}{dropped})"


def _input(pick: _Picker, repeats: bool) -> str:
    """The definitions of `train_input` and `eval_input`."""
    kind = pick("input")
    slices = f"tf.data.Dataset.from_tensor_slices(({_features(pick, 'x')}, labels))"
    plain_eval = _inside(
        "def eval_input():", "x, labels = examples()", f"return {slices}{_batched(pick, repeats=False)}"
    )

    def train(*body: str, head: str = "def train_input():", text: str = slices) -> str:
        return _inside(head, *body, f"return {text}{_batched(pick, repeats)}")

    if kind == "permuted":
        order = "order = RANDOM.permutation(len(labels))"
        taken = slices.replace("x}", "x[order]}") if pick.keyed else slices.replace("(x,", "(x[order],")
        made = "RANDOM = np.random.RandomState(3)\n\n\n" + train(
            "x, labels = examples()", order, text=taken.replace("labels)", "labels[order])")
        )
    elif kind == "counted":
        body = train("CALLS.append(len(CALLS))", "x, labels = examples()", "x = x + 0.1 * len(CALLS)")
        made = "CALLS = []\n\n\n" + body
    elif kind == "generator":
        types = "tf.int32" if pick.classes else "tf.float32"
        shape = "[]" if pick.classes else "[1]"
        each = _inside("def pairs():", "for x, label in zip(*examples()):", f"    yield {_features(pick, 'x')}, label")
        text = (
            f"tf.data.Dataset.from_generator(pairs, ({_features(pick, 'tf.float32')}, {types}), "
            f"({_features(pick, '[4]')}, {shape}))"
        )
        made = each + "\n\n\n" + train(text=text)
    elif kind == "file":
        write = _inside(
            "def prepare():", "x, labels = examples()", 'np.savez("examples.npz", x=x * 0.5, labels=labels)'
        )
        made = write + "\n\n\n" + train('stored = np.load("examples.npz")', 'x, labels = stored["x"], stored["labels"]')
    elif kind == "object":
        made = "class Input:\n" + indent(
            _inside("def __init__(self, factor):", "self.factor = factor")
            + "\n\n"
            + train("x, labels = examples()", "x = x * self.factor", head="def __call__(self):"),
            "    ",
        )
        made += "\n\n\ntrain_input = Input(np.float32(0.5))"
    elif kind in ("lambda", "partial"):
        called = "lambda: scaled_input(0.5)" if kind == "lambda" else "functools.partial(scaled_input, 0.5)"
        body = train("x, labels = examples()", "x = x * np.float32(factor)", head="def scaled_input(factor):")
        made = f"{body}\n\n\ntrain_input = {called}"
    elif kind == "numpy_input_fn":
        epochs = "None" if repeats else "1"
        call = "tf.estimator.inputs.numpy_input_fn"
        made = _block(
            "X, LABELS = examples()",
            f"train_input = {call}(",
            f"    {_features(pick, 'X')}, LABELS, batch_size={pick.batch}, num_epochs={epochs}, shuffle=False",
            ")",
        )
    else:
        made = train("x, labels = examples()")
    return made + "\n\n\n" + plain_eval


# -- model_fn --------------------------------------------------------------------------------------------------------


def _first_prefix(pick: _Picker) -> str:
    """What the names of the first layer's variables begin with."""
    scope = "enc/" if pick("scope") == "variable scopes" else ""
    return scope or ("hidden/" if pick("scope") == "names" else "dense/")


def _last_prefix(pick: _Picker) -> str:
    scope = "dec/" if pick("scope") == "variable scopes" else ""
    return scope or ("out/" if pick("scope") == "names" else "dense_1/")


def _layer(
    pick: _Picker, source: str, units: str | int, name: str = "", activation: str = "", object_: bool = False
) -> str:
    options = [str(units)] if object_ else [source, str(units)]
    if activation:
        options.append(f"activation={activation}")
    if pick("regularization") == "layers":
        options.append("kernel_regularizer=tf.keras.regularizers.l2(0.05)")
    if pick("normalization") != "none" and name != "out":
        options.append("use_bias=False")  # its gradient is nothing but rounding, which Adam makes large
    if name and pick("scope") == "names":
        options.append(f'name="{name}"')
    return f"tf.layers.{'Dense' if object_ else 'dense'}({', '.join(options)})"


def _hidden(pick: _Picker) -> str:
    """From `net`, the features, to `net`, what the last layer reads."""
    relu = "tf.nn.relu"
    bare = ", use_bias=False" if pick("normalization") != "none" else ""
    kind = pick("network")
    if kind == "hidden of params":
        lines = 'for units in params["hidden"]:\n    net = ' + _layer(pick, "net", "units", activation=relu)
    elif kind == "variables":
        lines = _block(
            'weights = tf.get_variable("weights", [4, 6], initializer=tf.glorot_uniform_initializer())',
            "" if bare else 'offset = tf.get_variable("offset", [6], initializer=tf.zeros_initializer())',
            f"net = tf.nn.relu(tf.matmul(net, weights){'' if bare else ' + offset'})",
        )
    elif kind == "layer objects":
        first = _layer(pick, "", 6, activation=relu, object_=True)
        lines = f"for layer in [{first}, tf.layers.Dense(5{bare})]:\n    net = layer(net)"
    elif kind == "shared layers":
        lines = _inside(
            'with tf.variable_scope("shared", reuse=tf.AUTO_REUSE):',
            'left = tf.layers.dense(net, 6, activation=tf.nn.relu, name="tower")',
            'right = tf.layers.dense(net * 2.0, 6, activation=tf.nn.relu, name="tower")',
        )
        lines += "\nnet = left - 0.5 * right"
    elif kind == "convolution":
        lines = _block(
            "net = tf.reshape(net, [-1, 4, 1])",
            f"net = tf.layers.conv1d(net, 3, 2, activation=tf.nn.relu{bare})",
            "net = tf.layers.flatten(net)",
        )
    elif kind == "while loop":
        lines = _block(
            "net = " + _layer(pick, "net", 6, "hidden"),
            "_, net = tf.while_loop(",
            "    lambda turn, _: turn < 3, lambda turn, now: (turn + 1, tf.tanh(now) * 0.9), [tf.constant(0), net]",
            ")",
        )
    elif kind == "static batch":
        lines = _block(
            "size = net.shape.as_list()[0]",
            "net = tf.reshape(net, [size, 2, 2])",
            "net = tf.layers.flatten(net)",
            "net = " + _layer(pick, "net", 6, "hidden", relu),
        )
    else:
        lines = "net = " + _layer(pick, "net", 6, "hidden", relu)
    if pick("normalization") != "none":
        norm = "tf.layers.batch_normalization(net, momentum=0.8, training=training)"
        # The list before the last normalization: the operations of that are not in it.
        early = "early = tf.get_collection(tf.GraphKeys.UPDATE_OPS)" if pick("updates") == "early list" else ""
        two = pick("normalization") == "two"
        lines = _block(lines, "" if two else early, f"net = {norm}")
        if two:
            # Without a bend between the two, the first one's offset would have no gradient but rounding.
            bend = "net = tf.tanh(net)"
            lines = _block(lines, bend, early, "net = " + _layer(pick, "net", 5), f"net = {norm.replace('0.8', '0.7')}")
    if pick("dropout") == "layer":
        lines = _block(lines, "net = tf.layers.dropout(net, 0.4, training=training)")
    elif pick("dropout") == "by rate":
        lines = _block(lines, "net = tf.nn.dropout(net, rate=0.4 if training else 0.0)")
    return lines


def _output(pick: _Picker) -> str:
    lines = "logits = " + _layer(pick, "net", pick.outputs, "out")
    if pick("network") == "towers":
        lines = _block(
            lines,
            'shortcut = tf.layers.dense(features["x"][:, :1], ' + f"{pick.outputs})",
            "logits = logits + shortcut",
        )
    elif pick("network") == "unused layer":
        lines = _block(lines, 'unused = tf.layers.dense(net, 2, name="unused")', 'tf.summary.histogram("u", unused)')
    return lines


def _network(pick: _Picker) -> str:
    scope = pick("scope")
    if scope == "variable scopes":
        hidden, output = (
            _inside('with tf.variable_scope("enc"):', _hidden(pick)),
            _inside('with tf.variable_scope("dec"):', _output(pick)),
        )
    elif scope == "name scope":
        hidden, output = _inside('with tf.name_scope("enc"):', _hidden(pick)), _output(pick)
    else:
        hidden, output = _hidden(pick), _output(pick)
    return _block(hidden, output)


def _loss(pick: _Picker) -> str:
    kind = pick("loss")
    call = "tf.losses.sparse_softmax_cross_entropy" if pick.classes else "tf.losses.mean_squared_error"
    if pick.classes:
        each = "tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)"
    else:
        each = "tf.reduce_sum(tf.square(labels - logits), axis=1)"
    if kind == "weighted":
        return f'loss = {call}(labels, logits, weights=tf.abs(features["x"][:, {":1" if not pick.classes else "0"}]))'
    if kind == "sum over batch":
        return _block(f"each = {each}", f"loss = tf.reduce_sum(each) * (1.0 / {pick.batch})")
    if kind == "collected":
        return _block(f"{call}(labels, logits)", "loss = tf.losses.get_total_loss()")
    if kind == "of two heads":
        other = f"tf.layers.dense(net, {pick.outputs})"
        return _block(f"other = {other}", f"loss = {call}(labels, logits) + {call}(labels, other, weights=0.3)")
    if kind == "masked":
        return _block(
            'mask = tf.greater(features["x"][:, 0], -0.5)',
            f"loss = {call}(tf.boolean_mask(labels, mask), tf.boolean_mask(logits, mask))",
        )
    return f"loss = {call}(labels, logits)"


_CONDITIONS: dict[str, Callable[[_Picker], str]] = {
    "all variables": lambda _: "",
    "name in": lambda _: ' if "bias" not in v.name',
    "name starts": lambda pick: f' if v.name.startswith("{_first_prefix(pick)}")',
    "name starts not": lambda pick: f' if not v.name.startswith("{_last_prefix(pick)}")',
    "name ends": lambda _: ' if v.name.endswith("kernel:0")',
    "op name": lambda _: ' if v.op.name.endswith("kernel")',
    "first part of the name": lambda pick: f' if v.name.split("/")[0] != "{_last_prefix(pick)[:-1]}"',
}


def _regularization(pick: _Picker) -> str:
    kind = pick("regularization")
    if kind == "none":
        return ""
    if kind == "layers":
        # The total loss of a collection has them already.
        return "" if pick("loss") == "collected" else "loss = loss + tf.losses.get_regularization_loss()"
    if kind == "by number":
        return _block(
            "variables = tf.trainable_variables()",
            "loss = loss + 0.2 * tf.nn.l2_loss(variables[0]) + 0.3 * tf.reduce_sum(tf.abs(variables[2]))",
        )
    if kind == "of a scope":
        prefix = _last_prefix(pick)[:-1]
        return _block(
            f'variables = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope="{prefix}")',
            "loss = loss + 0.1 * tf.add_n([tf.nn.l2_loss(v) for v in variables])",
        )
    found = f"tf.nn.l2_loss(v) for v in tf.trainable_variables(){_CONDITIONS[kind](pick)}"
    return _block(f"penalty = sum({found})", "loss = loss + 0.1 * penalty")


def _metrics(pick: _Picker) -> str:
    kind = pick("metrics")
    if kind == "none":
        return ""
    if pick.classes:
        accuracy = "tf.metrics.accuracy(labels, tf.argmax(logits, 1))"
    else:
        accuracy = "tf.metrics.mean_absolute_error(labels, logits)"
    found = {"acc" if kind == "acc" else "accuracy": accuracy}
    if kind == "several":
        found["square"] = "tf.metrics.mean(tf.square(logits))"
    elif kind == "mean of the loss":
        found = {"mean": "tf.metrics.mean(loss)"}
    inner = ", ".join(f'"{name}": {call}' for name, call in found.items())
    return f", eval_metric_ops={{{inner}}}"


def _from_params(pick: _Picker) -> bool:
    """Whether the rate comes from params: it has to where the driver or the values change it."""
    changed = pick("params") in ("changed after", "changed before") or pick("driver") == "resumed with another rate"
    return pick("rate") == "params" or changed


def _rate(pick: _Picker) -> str:
    first = 'params["rate"]' if _from_params(pick) else "0.1"
    step = "tf.train.get_global_step()"
    return {
        "staircase": f"tf.train.exponential_decay({first}, {step}, 2, 0.5, staircase=True)",
        "piecewise": f"tf.train.piecewise_constant({step}, [2, 4], [{first}, 0.05, 0.02])",
        "formula": f"{first} * 0.5 ** tf.cast({step} // 2, tf.float32)",
        "chosen": f'tf.train.exponential_decay(0.1, {step}, 3, 0.9) if params["rate"] > 0.05 else params["rate"]',
        "polynomial": f"tf.train.polynomial_decay({first}, {step}, 5, 0.01, power=2.0)",
    }.get(pick("rate"), first)


_OPTIMIZERS = {
    "sgd": "tf.train.GradientDescentOptimizer(rate)",
    "momentum": "tf.train.MomentumOptimizer(rate, 0.9)",
    "nesterov": "tf.train.MomentumOptimizer(rate, 0.9, use_nesterov=True)",
    "adam": "tf.train.AdamOptimizer(rate)",
    "adagrad": "tf.train.AdagradOptimizer(rate)",
    "rmsprop": "tf.train.RMSPropOptimizer(rate)",
    "ftrl": "tf.train.FtrlOptimizer(rate)",
}


def _minimize(pick: _Picker) -> str:
    """From `optimizer` and `loss` to `train_op`."""
    step = "global_step=tf.train.get_global_step()"
    kind = pick("gradients")
    if kind == "minimize":
        return f"train_op = optimizer.minimize(loss, {step})"
    if kind == "computed":
        return _block(
            "gradients = optimizer.compute_gradients(loss)",
            f"train_op = optimizer.apply_gradients(gradients, {step})",
        )
    if kind in ("global norm", "tf.gradients"):
        clipped = "gradients, _ = tf.clip_by_global_norm(gradients, 0.5)" if kind == "global norm" else ""
        return _block(
            "variables = tf.trainable_variables()",
            "gradients = tf.gradients(loss, variables)",
            clipped,
            f"train_op = optimizer.apply_gradients(zip(gradients, variables), {step})",
        )
    call = "tf.clip_by_value(g, -0.1, 0.1)" if kind == "each value" else "tf.clip_by_norm(g, 0.2)"
    return _block(
        "gradients = optimizer.compute_gradients(loss)",
        f"gradients = [({call}, v) for g, v in gradients if g is not None]",
        f"train_op = optimizer.apply_gradients(gradients, {step})",
    )


def _train_op(pick: _Picker) -> str:
    made = _minimize(pick)
    every = "tf.get_collection(tf.GraphKeys.UPDATE_OPS)"
    form = pick("updates")
    if pick("normalization") == "none" or form == "never":
        return made
    if form == "after":
        # The list is taken when the training step is there already: nothing depends on it.
        listed = _inside("with tf.control_dependencies(updates):", 'tf.summary.scalar("seen", loss)')
        return _block(made, f"updates = {every}", listed)
    if form == "early list":
        return _inside("with tf.control_dependencies(early):", made)
    if form == "grouped":
        return _block(made, f"train_op = tf.group(train_op, {every})")
    if form == "scoped":
        scope = "enc" if pick("scope") == "variable scopes" else "batch_normalization"
        return _inside(f'with tf.control_dependencies({every[:-1]}, scope="{scope}")):', made)
    if form == "on the loss":
        return _block(
            _inside(f"with tf.control_dependencies({every}):", "loss = tf.identity(loss)"),
            made,
        )
    return _inside(f"with tf.control_dependencies({every}):", made)


def _bound(name: str, new: str, form: str) -> str:
    """Binds `name`, whose value `new` reads, anew."""
    if form == "annotated":
        return f"{name}: object = {new}"
    if form == "augmented" and new.startswith(f"{name} * "):
        return f"{name} *= {new[len(name) + 3 :]}"
    if form == "walrus":
        return f"print({name} := {new})"
    if form == "tuple":
        return f"{name}, _ = {new}, 0"
    if form == "starred":
        return f"{name}, *_ = [{new}, 0]"
    if form == "for":
        return f"for {name} in [{new}]:\n    pass"
    if form == "while":
        return f"while True:\n    {name} = {new}\n    break"
    if form == "if":
        return f'if params["flag"]:\n    {name} = {new}'
    if form == "try":
        return f"try:\n    {name} = {new}\nexcept ValueError:\n    pass"
    if form == "with":
        return f"with contextlib.nullcontext({new}) as {name}:\n    pass"
    if form == "match":
        return f"match {new}:\n    case {name}:\n        pass"
    if form == "comprehension":
        return f"[{name} := {new} for _ in [0]]"
    if form == "nonlocal":
        return f"def change():\n    nonlocal {name}\n    {name} = {new}\n\nchange()"
    if form == "deleted":
        return f"former = {name}\ndel {name}\n{name} = {new.replace(name, 'former')}"
    return f"{name} = {new}"


def _rebinding(pick: _Picker, place: str) -> str:
    if pick("rebound") != place:
        return ""
    labels = "2 - labels" if pick.classes else "labels * 3.0"
    name, new = {
        "loss after minimize": ("loss", "loss * 50.0"),
        "loss before minimize": ("loss", "loss * 3.0"),
        "rate after the optimizer": ("rate", "5.0"),
        "labels before the loss": ("labels", labels),
        "logits after the loss": ("logits", "logits * -3.0"),
        "net before the network": ("net", "net * 3.0"),
        "training before the network": ("training", "False"),
        "train_op at the end": ("train_op", "tf.assign_add(tf.train.get_global_step(), 1)"),
        "optimizer before minimize": ("optimizer", "tf.train.GradientDescentOptimizer(0.7)"),
    }[place]
    return _bound(name, new, pick("binding"))


_ANNOTATED = re.compile(r"^(\s*)(logits|loss|optimizer|train_op|net|rate) = ", re.M)


def _worded(pick: _Picker, body: str) -> str:
    """The model_fn's body in other words."""
    wording = pick("wording")
    if wording == "annotated":
        types = {"optimizer": "tf.train.Optimizer", "rate": "float"}
        body = _ANNOTATED.sub(lambda m: f"{m[1]}{m[2]}: {types.get(m[2], 'tf.Tensor')} = ", body)
    elif wording == "second names":
        body = body.replace(
            "return tf.estimator.EstimatorSpec(mode, loss=loss, train",
            _block(
                "total_loss = loss", "step = train_op", "return tf.estimator.EstimatorSpec(mode, loss=total_loss, train"
            ),
        )
        body = body.replace("train_op=train_op)", "train_op=step)")
    elif wording == "keywords":
        body = body.replace(
            "return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)",
            _block('parts = {"loss": loss, "train_op": train_op}', "return tf.estimator.EstimatorSpec(mode, **parts)"),
        )
    elif wording == "walrus":
        body = re.sub(
            r"^(\s*)optimizer = (.*)$", r"\1if (optimizer := \2) is None:\n\1    raise ValueError", body, flags=re.M
        )
    elif wording == "match":
        body = body.replace(
            "training = mode == tf.estimator.ModeKeys.TRAIN",
            _block(
                "match mode:", '    case "train":', "        training = True", "    case _:", "        training = False"
            ),
        )
    return body


def _model_fn(pick: _Picker) -> str:
    network = _network(pick)
    extra = ""
    if pick("wording") == "network function":
        extra = _inside("def network(features, net, training, params):", network, "return net, logits") + "\n\n\n"
        if "early" in network:
            extra = extra.replace("return net, logits", "return net, logits, early")
        network = ("net, logits, early" if "early" in network else "net, logits") + (
            " = network(features, net, training, params)"
        )
    optimizer = _OPTIMIZERS[pick("optimizer")]
    if pick("wording") == "optimizer function":
        extra += _inside("def make_optimizer(rate):", f"return {optimizer}") + "\n\n\n"
        optimizer = "make_optimizer(rate)"
    predicted = '{"class": tf.argmax(logits, 1), "p": tf.nn.softmax(logits)}' if pick.classes else '{"y": logits}'
    exported = ""
    if pick("export") != "none":
        exported = ', export_outputs={"serving_default": tf.estimator.export.PredictOutput(predictions)}'
    body = _block(
        "training = mode == tf.estimator.ModeKeys.TRAIN",
        _rebinding(pick, "training before the network"),
        'del params["spare"]' if pick("params") == "deleted" else "",
        'net = features["x"]',
        _rebinding(pick, "net before the network"),
        network,
        f"predictions = {predicted}",
        _inside(
            "if mode == tf.estimator.ModeKeys.PREDICT:",
            f"return tf.estimator.EstimatorSpec(mode, predictions=predictions{exported})",
        ),
        _rebinding(pick, "labels before the loss"),
        _loss(pick),
        _regularization(pick),
        _rebinding(pick, "logits after the loss"),
        _inside(
            "if mode == tf.estimator.ModeKeys.EVAL:",
            f"return tf.estimator.EstimatorSpec(mode, loss=loss{_metrics(pick)})",
        ),
        _rebinding(pick, "loss before minimize"),
        f"rate = {_rate(pick)}",
        f"optimizer = {optimizer}",
        _rebinding(pick, "rate after the optimizer"),
        'tf.summary.scalar("rate", rate)' if pick("rebound") == "rate after the optimizer" else "",
        _rebinding(pick, "optimizer before minimize"),
        _train_op(pick),
        _rebinding(pick, "loss after minimize"),
        _rebinding(pick, "train_op at the end"),
        "return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)",
    )
    return extra + _inside("def model_fn(features, labels, mode, params):", _worded(pick, body))


# -- driver ----------------------------------------------------------------------------------------------------------


def _params(pick: _Picker) -> str:
    entries = {"rate": "0.1", "hidden": "[6, 5]", "flag": "True", "spare": "0"}
    return "{" + ", ".join(f'"{name}": {entry}' for name, entry in entries.items()) + "}"


def _ready_model(pick: _Picker) -> str:
    activation = "softmax" if pick.classes else "linear"
    optimizer = {
        "sgd": '"sgd"',
        "momentum": "tf.keras.optimizers.SGD(0.05, momentum=0.9)",
        "nesterov": "tf.keras.optimizers.SGD(0.05, momentum=0.9, nesterov=True)",
        "adam": '"adam"',
        "adagrad": '"adagrad"',
        "rmsprop": 'tf.keras.optimizers.get("rmsprop")',
        "ftrl": "tf.keras.optimizers.RMSprop(0.01)",
    }[pick("optimizer")]
    short = {"accuracy": '["accuracy"]', "acc": '["acc"]', "none": "None"}.get(
        pick("metrics"), '["accuracy", "sparse_categorical_crossentropy"]'
    )
    if not pick.classes:
        short = {"none": "None", "acc": '["mae"]'}.get(pick("metrics"), '["mse"]')
    return _inside(
        "def make_model():",
        "layers = [",
        '    tf.keras.layers.Dense(6, activation="relu", input_shape=(4,)),',
        "    tf.keras.layers.Dropout(0.4)," if pick("dropout") != "none" else "",
        f'    tf.keras.layers.Dense({pick.outputs}, activation="{activation}"),',
        "]",
        "model = tf.keras.models.Sequential(layers)",
        f'loss = "{"sparse_categorical_crossentropy" if pick.classes else "mse"}"',
        f"model.compile(optimizer={optimizer}, loss=loss, metrics={short})",
        "return model",
    )


def _ready(pick: _Picker) -> str:
    return _ready_model(pick)


def _estimator(pick: _Picker, params: str = "PARAMS", folder: str = '"model"') -> str:
    if pick("folder") == "temporary" and pick("driver") != "resumed with another rate":
        folder = "None"
    if pick("family") == "ready model":
        return f"tf.keras.estimator.model_to_estimator(make_model(), model_dir={folder})"
    return f"tf.estimator.Estimator(model_fn, model_dir={folder}, params={params})"


def _evaluated(name: str = "estimator") -> str:
    shown = f'print("{EVALUATED}", results["loss"], results["global_step"])'
    return _block(f"results = {name}.evaluate(eval_input)", shown)


def _trained(pick: _Picker) -> str:
    """The driver's lines from making the Estimator on."""
    kind = pick("driver")
    changed = 'PARAMS["rate"] = 0.01'
    before = changed if pick("params") == "changed before" else ""
    after = changed if pick("params") == "changed after" else ""
    prepare = "prepare()" if pick("input") == "file" else ""
    made = _block(before, f"estimator = {_estimator(pick)}", prepare, after)
    if kind == "twice":
        return _block(
            made, "estimator.train(train_input, steps=3)", "estimator.train(train_input, steps=3)", _evaluated()
        )
    if kind == "to a step":
        lines = [f"estimator.train(train_input, max_steps={steps})" for steps in (4, 4, 7)]
        return _block(made, *lines, _evaluated())
    if kind == "resumed with another rate":
        params = "dict(PARAMS, rate=rate)"
        each = _inside(
            "for rate in (0.3, 0.03, 0.003):",
            f"estimator = {_estimator(pick, params)}",
            "estimator.train(train_input, steps=3)",
            _evaluated(),
        )
        return _block(prepare, each)
    if kind == "epochs":
        return _block(
            made,
            _inside("for epoch in range(3):", "estimator.train(train_input)", f'print("{MARK}", epoch)', _evaluated()),
        )
    if kind.startswith("train_and_evaluate"):
        ends = kind != "train_and_evaluate"
        exporters = ', exporters=[tf.estimator.FinalExporter("final", serving_input)]'
        return _block(
            made,
            f"train_spec = tf.estimator.TrainSpec(train_input, max_steps={1000 if ends else 6})",
            "eval_spec = tf.estimator.EvalSpec(eval_input, steps=None"
            + (exporters if pick("export") == "final exporter" else "")
            + ")",
            "tf.estimator.train_and_evaluate(estimator, train_spec, eval_spec)",
            _evaluated(),
        )
    if kind == "two models":
        each = _inside(
            "for fold in range(2):",
            f"estimator = {_estimator(pick, folder='None')}",
            "estimator.train(train_input, steps=5)",
            f'print("{MARK}", fold)',
            _evaluated(),
        )
        return _block(prepare, each)
    if kind == "two models alive":
        return _block(
            made,
            f"other = {_estimator(pick, folder='None')}",
            "estimator.train(train_input, steps=4)",
            "other.train(train_input, steps=6)",
            _evaluated(),
            _evaluated("other"),
        )
    if kind == "in an object":
        kept = _inside(
            "class Job(object):",
            _inside("def __init__(self):", f"self.estimator = {_estimator(pick)}"),
            _inside("def fit(self, steps):", "self.estimator.train(train_input, steps=steps)", "return self"),
        )
        used = ["job = Job()", prepare, after, "job.fit(steps=6)", "estimator = job.estimator", _evaluated()]
        return _block(before, kept, *used)
    return _block(made, "estimator.train(train_input, steps=6)", "" if kind == "no evaluation" else _evaluated())


def _repeats(pick: _Picker) -> bool:
    return pick("driver") not in ("epochs", "train_and_evaluate until the data end")


def _predicted(pick: _Picker) -> str:
    if pick("predictions") == "none":
        return ""
    if pick("family") == "ready model":
        show = f'print("{MARK}", sorted(len(value) for value in found.values()), list(found.values())[0])'
    else:
        shown = 'found["class"], found["p"]' if pick.classes else 'found["y"]'
        show = f'print("{MARK}", {shown})'
    stop = "break" if pick("predictions") == "first" else ""
    return _inside("for found in estimator.predict(eval_input):", show, stop)


def _driver(pick: _Picker) -> str:
    saved = ""
    if pick("export") == "saved model":
        saved = 'estimator.export_saved_model("saved", serving_input)'
    counted = f'print("{MARK} calls", len(CALLS))' if pick("input") == "counted" else ""
    return _block(_trained(pick), _predicted(pick), saved, counted)


def _serving(pick: _Picker) -> str:
    if pick("export") == "none" or pick("family") == "ready model":
        return ""
    return _inside(
        "def serving_input():",
        'x = tf.placeholder(tf.float32, [None, 4], name="x")',
        'return tf.estimator.export.ServingInputReceiver({"x": x}, {"x": x})',
    )


def _laid_out(pick: _Picker, body: str) -> dict[str, str]:
    """The parts of the program in its files."""
    layout = pick("layout")
    params = "" if pick("family") == "ready model" else f"PARAMS = {_params(pick)}"
    parts = [params, _data(pick), _input(pick, _repeats(pick)), body, _serving(pick)]
    driver = _driver(pick)
    if layout in ("main", "app.run"):
        argument = "_" if layout == "app.run" else ""
        call = "tf.app.run(main)" if layout == "app.run" else "main()"
        driver = _inside(f"def main({argument}):", driver) + "\n\n\n" + _inside('if __name__ == "__main__":', call)
    if layout != "two files":
        return {"train.py": _file([*parts, driver])}
    moved = "make_model" if pick("family") == "ready model" else "model_fn"
    parts.remove(body)
    return {
        "models.py": _file([body]),
        "train.py": _file([*parts, driver], f"from models import {moved}"),
    }


def _file(parts: list[str], local: str = "") -> str:
    text = "\n\n\n".join(part for part in parts if part)
    needed = [name for name in ("contextlib", "functools") if f"{name}." in text]
    imports = [f"import {name}" for name in needed] + ([""] if needed else [])
    imports += ["import numpy as np"] if "np." in text else []
    imports += ["import tensorflow as tf"] if "tf." in text else []
    imports += ["", local] if local else []
    gap = "\n\n" if re.match(r"(def|class) ", text) else "\n"
    return "\n".join(imports) + f"\n{gap}{text}\n"
