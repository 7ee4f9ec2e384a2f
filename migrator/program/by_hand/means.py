"""Whether the mean of the towers' losses is the loss of the whole batch: a mean over examples that do not meet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from migrator.names.imports import dotted
from migrator.pairing import equal_zip
from migrator.program.by_hand.training import Line, Training, methods_in, value_of
from migrator.program.calls import calls_in, is_none
from migrator.program.parsed import Blocked, names_in
from migrator.program.scopes import bindings

Statements = Sequence[cst.SimpleStatementLine]

# Losses of tf.losses that are means over all numbers as long as no weights are given.
_MEANS = (
    *("mean_squared_error", "absolute_difference", "log_loss", "huber_loss", "hinge_loss", "sigmoid_cross_entropy"),
    *("softmax_cross_entropy", "sparse_softmax_cross_entropy"),
)
# What treats every example by itself; anything else of TensorFlow's is not known to.
_APART = (
    *("relu", "relu6", "elu", "selu", "leaky_relu", "tanh", "sigmoid", "softplus", "swish", "crelu", "dropout"),
    *("conv1d", "conv2d", "max_pool", "avg_pool", "bias_add", "local_response_normalization", "lrn"),
    *("embedding_lookup", "exp", "log", "sqrt", "square", "abs", "squared_difference", "maximum", "minimum"),
    *("add", "subtract", "multiply", "divide", "div", "pow", "negative", "matmul", "cast", "to_float", "to_int32"),
    *("to_int64", "reshape", "one_hot", "clip_by_value", "equal", "get_variable", "constant", "flatten", "zeros"),
    *("ones", "dense", "conv3d", "conv2d_transpose", "separable_conv2d", "max_pooling2d", "average_pooling2d"),
    *("max_pooling1d", "average_pooling1d", "fully_connected", "max_pool2d", "avg_pool2d", "variable_scope"),
    *("name_scope", "xw_plus_b", "sigmoid_cross_entropy_with_logits", "softmax_cross_entropy_with_logits"),
    *("shape", "identity", "softmax_cross_entropy_with_logits_v2", "sparse_softmax_cross_entropy_with_logits"),
    *("get_variable_scope", "l1_regularizer", "l2_regularizer", "get_regularization_loss"),
    *("get_regularization_losses"),
)
_WITH_AXIS = ("concat", "expand_dims", "stack", "argmax", "l2_normalize", "split")
_PLAIN = ("weights", "reduction", "scope", "loss_collection")
_BUILTINS = ("len", "int", "float", "str", "range", "dict", "list", "tuple", "zip", "isinstance", "print", "max", "min")


def check_mean(training: Training, lines: Sequence[Line]) -> None:
    """Raises Blocked (TFM768, TFM769) where the mean of what towers do may not be what the whole batch does."""
    computed = [call for line in lines for call in methods_in(line.node) if call.func.attr.value == "compute_gradients"]
    given = computed[0].args[0].value if computed and computed[0].args else None
    if given is None:
        raise Blocked("TFM768", training.call, "cannot tell which loss the towers minimize: assign it to a name")
    check_mean_of(training, lines, given)


def check_mean_of(training: Training, lines: Sequence[Line], given: cst.BaseExpression) -> None:
    """Raises Blocked (TFM768, TFM769) where the mean of a number of all towers may not be that of the whole batch."""
    statements = _statements(lines)
    reader = _Reader(training)
    if not reader.is_mean(given, statements, 0):
        message = (
            "cannot tell that the loss of a tower is a mean over its examples, so that the mean "
            "over towers is that of the whole batch: use a loss of tf.losses without weights, or "
            "tf.reduce_mean of the losses per example"
        )
        raise Blocked("TFM768", _place(training, given), message)
    reader.check_apart([given, *_needed(given, statements)])


def check_rows(training: Training, lines: Sequence[Line], given: cst.BaseExpression) -> None:
    """Raises Blocked (TFM769) where the rows of all towers may not be those of the whole batch."""
    _Reader(training).check_apart([given, *_needed(given, _statements(lines))])


def _statements(lines: Sequence[Line]) -> list[cst.SimpleStatementLine]:
    return [statement for line in lines for statement in simple_lines(line.node)]


def _needed(given: cst.BaseExpression, statements: Statements) -> list[cst.SimpleStatementLine]:
    """The statements that a value is computed by."""
    wanted, needed = names_in(given), []
    for statement in reversed(statements):
        if {name for name, _ in bindings(statement)} & wanted:
            needed.append(statement)
            wanted |= names_in(statement)
    return needed


def _place(training: Training, node: cst.CSTNode) -> cst.CSTNode:
    return node if node in training.file.parents else training.call


def simple_lines(node: cst.CSTNode) -> Iterator[cst.SimpleStatementLine]:
    """The lines of a statement, those in blocks and branches too."""
    if isinstance(node, cst.SimpleStatementLine):
        yield node
    elif isinstance(node, (cst.With, cst.If, cst.Else)) and isinstance(node.body, cst.IndentedBlock):
        for inner in node.body.body:
            yield from simple_lines(inner)
        if isinstance(node, cst.If) and node.orelse is not None:
            yield from simple_lines(node.orelse)


class _Reader:
    """Reads the loss of a tower through names and functions of the file."""

    def __init__(self, training: Training) -> None:
        self.training = training
        self.seen: set[str] = set()
        self.means: set[int] = set()  # means over all examples that are terms of the loss

    def is_mean(self, node: cst.BaseExpression, statements: Statements, depth: int) -> bool:
        """Whether an expression is a mean over examples, terms of the weights added."""
        if depth > 8:
            return False
        if isinstance(node, cst.Name):
            made = _made(node, statements)
            return made is not None and self.is_mean(made, statements, depth + 1)
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
            both = node.left, node.right
            means = [self.is_mean(one, statements, depth + 1) for one in both]
            others = [self.is_of_weights(one, statements, depth + 1) for one in both]
            return any(means) and all(a or b for a, b in equal_zip(means, others))
        if not isinstance(node, cst.Call):
            return False
        name = self.training.tf(node) or ""
        if name.startswith("tf.losses.") and name.removeprefix("tf.losses.") in _MEANS:
            changed = any(arg.star or (arg.keyword and arg.keyword.value in _PLAIN) for arg in node.args)
            return not changed and sum(arg.keyword is None for arg in node.args) <= 2
        if name == "tf.reduce_mean":
            self.means.add(id(node))
            return len(node.args) == 1
        function = self.training.file.functions.get(dotted(node.func) or "")
        if function is None or not isinstance(function.body, cst.IndentedBlock):
            return False
        lines = [one for statement in function.body.body for one in simple_lines(statement)]
        last = function.body.body[-1]
        small = last.body[0] if isinstance(last, cst.SimpleStatementLine) else None
        if not isinstance(small, cst.Return) or small.value is None:
            return False
        return self.is_mean(small.value, lines, depth + 1)

    def is_of_weights(
        self, node: cst.BaseExpression, statements: Sequence[cst.SimpleStatementLine], depth: int
    ) -> bool:
        """Whether an expression is a regularization: the same in every tower, since all share their variables."""
        if isinstance(node, cst.Name) and depth < 8:
            made = _made(node, statements)
            return made is not None and self.is_of_weights(made, statements, depth + 1)
        return [self.training.tf(call) for call in calls_in(node)] in (
            ["tf.losses.get_regularization_loss"],
            ["tf.add_n", "tf.losses.get_regularization_losses"],
        )

    def check_apart(self, nodes: Sequence[cst.CSTNode]) -> None:
        """Examples must not meet before the loss: on the whole batch they would meet others."""
        for call in (call for node in nodes for call in calls_in(node)):
            name = self.training.tf(call)
            if name is None:
                self._follow(call)
            elif id(call) not in self.means and not self._apart(call, name):
                message = (
                    f"`{name}` may mix examples: the whole batch may not give what the towers give together "
                    "(batch normalization, for one, has the moving averages of one tower)"
                )
                raise Blocked("TFM769", _place(self.training, call), message)

    def _apart(self, call: cst.Call, name: str) -> bool:
        word = name.rpartition(".")[2]
        if name.startswith("tf.losses.") and word in _MEANS:
            return True
        if word.endswith("initializer") or ".initializers." in name or ".regularizers." in name or word == "add_n":
            return True  # of add_n only regularizations get here, see is_mean
        axis = _axis(call)
        if word.startswith("reduce_") or word in _WITH_AXIS:
            return axis is not None and all(number.isdigit() and number != "0" for number in _numbers(self._code(axis)))
        if word in ("softmax", "log_softmax", "squeeze"):
            return len(call.args) == 1 or (axis is not None and _numbers(self._code(axis)) not in (["0"], []))
        if word in ("dropout",):
            return not any(arg.keyword is not None and arg.keyword.value == "noise_shape" for arg in call.args)
        crossed = any(
            arg.keyword is not None and arg.keyword.value.startswith(("transpose", "adjoint")) for arg in call.args
        )
        return word in _APART and not crossed

    def _code(self, node: cst.BaseExpression) -> str:
        return self.training.file.code(node)

    def _follow(self, call: cst.Call) -> None:
        if self.training.asked(call) is not None:
            return  # nothing is computed
        name = dotted(call.func) or ""
        function = self.training.file.functions.get(name)
        if function is not None:
            if name not in self.seen:
                self.seen.add(name)
                self.check_apart(list(function.body.body))
            return
        origin = self.training.file.imports.names.get(name.partition(".")[0], "")
        of_object = isinstance(call.func, cst.Attribute) and not origin  # a tensor's, an optimizer's, an iterator's
        if not of_object and name not in _BUILTINS and not origin.startswith("numpy"):
            message = f"`{name}` is not in this file: cannot tell whether it treats every example separately"
            raise Blocked("TFM769", _place(self.training, call), message)


def _made(node: cst.Name, statements: Statements) -> cst.BaseExpression | None:
    """What a name is given by the only statement that gives it something, and what others add to that."""
    found = [one for one in statements if node.value in {name for name, _ in bindings(one)}]
    value = value_of(found[0]) if found else None
    for statement in found[1:]:
        more = statement.body[0]
        if value is None or not isinstance(more, cst.AugAssign) or not isinstance(more.operator, cst.AddAssign):
            return None
        value = cst.BinaryOperation(value, cst.Add(), more.value)
    return value


def _axis(call: cst.Call) -> cst.BaseExpression | None:
    """The axis along which an operation goes; None where it is not said."""
    for arg in call.args:
        if arg.keyword is not None and arg.keyword.value in ("axis", "dim", "reduction_indices"):
            return None if is_none(arg.value) else arg.value
    plain = [arg.value for arg in call.args if arg.keyword is None]
    return plain[1] if len(plain) > 1 and not is_none(plain[1]) else None


def _numbers(text: str) -> list[str]:
    return [number for number in text.strip("[]() ").replace(" ", "").split(",") if number]
