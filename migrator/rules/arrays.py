"""Input functions over arrays and data frames: numpy_input_fn, pandas_input_fn."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import libcst as cst

from migrator.emit.layout import WIDTH
from migrator.findings import Severity
from migrator.names.bindings import read_bindings, values_given
from migrator.pairing import equal_zip
from migrator.program.calls import is_false, is_none, is_true, nodes_in
from migrator.program.parsed import Blocked, ParsedFile, names_in
from migrator.rules.rule import Example, Rule
from migrator.rules.site import CallRule, Site, expression
from migrator.walking import of_kinds, walk

RULES = (
    Rule(
        "TFM611",
        "numpy_input_fn and pandas_input_fn",
        Severity.REVIEW,
        """
The arrays become a `tf.data.Dataset` of the same batches: repeated before they are batched, so that a batch may hold
the end of one epoch and the beginning of the next, and with a smaller last batch where `num_epochs` is given. With
`shuffle=True` both draw from a buffer of `queue_capacity` examples (1000) over all epochs, in an order that
TensorFlow 1 never repeats: no seed makes the two equal, and the finding says so. Without shuffling the batches are
identical, and there is no finding.
""",
        (
            Example(
                'tf.estimator.inputs.numpy_input_fn({"x": x}, y, shuffle=False)',
                'lambda: tf.data.Dataset.from_tensor_slices(({"x": x}, y)).batch(128)',
            ),
            Example(
                'tf.estimator.inputs.numpy_input_fn(x={"x": x}, y=y, batch_size=100, num_epochs=None, shuffle=True)',
                'lambda: tf.data.Dataset.from_tensor_slices(({"x": x}, y)).repeat().shuffle(1000).batch(100)',
            ),
            Example(
                "tf.estimator.inputs.pandas_input_fn(frame, None, 32, 2, False)",
                "lambda: tf.data.Dataset.from_tensor_slices(dict(frame)).repeat(2).batch(32)",
            ),
        ),
    ),
    Rule(
        "TFM613",
        "arrays that change after their input_fn was created",
        Severity.MANUAL,
        """
`numpy_input_fn` and `pandas_input_fn` keep the arrays that they are given. The new input function reads their names
when it is called. Where one of them has several values, and the line is `name = numpy_input_fn(...)`, a parameter with
a default keeps the arrays of that line: `def name(arrays={"x": x}):`, and another one what else has several values,
as in `batch_size=batch_size`. What is refused is such a call elsewhere. Give the arrays of each input function names
of their own.
""",
    ),
)

_PARAMETERS = ("x", "y", "batch_size", "num_epochs", "shuffle", "queue_capacity", "num_threads", "target_column")
_NUMPY = ("tf.estimator.inputs.numpy_input_fn", "tf.contrib.learn.io.numpy_input_fn")
_PANDAS = ("tf.estimator.inputs.pandas_input_fn", "tf.contrib.learn.io.pandas_input_fn")


def is_array_input(name: str | None) -> bool:
    """Whether a symbol makes an input function of arrays."""
    return name in _NUMPY or name in _PANDAS


def _dataset(site: Site) -> cst.BaseExpression:
    """`lambda: dataset` of the same batches. Source of the defaults: the signatures of TensorFlow 1.15."""
    given = site.arguments(_PARAMETERS, "TFM611")
    if "x" not in given:
        raise Blocked("TFM613", site.original, "pass the arrays by keyword or as the first argument")
    slices = site.code(given["x"])
    if site.name in _PANDAS:
        slices = f"dict({slices})"
    labels = given.get("y")
    if labels is not None and not is_none(labels):
        slices = f"({slices}, {site.code(labels)})"
    text = f"tf.data.Dataset.from_tensor_slices({slices})"
    epochs = given.get("num_epochs")
    if epochs is not None and is_none(epochs):
        text += ".repeat()"
    elif epochs is not None and not (isinstance(epochs, cst.Integer) and epochs.value == "1"):
        text += f".repeat({site.code(epochs)})"
    shuffle = given.get("shuffle")
    capacity = site.code(given["queue_capacity"]) if "queue_capacity" in given else "1000"
    if is_true(shuffle) or (shuffle is None and site.name.startswith("tf.contrib.")):
        text += f".shuffle({capacity})"
    elif shuffle is not None and not is_false(shuffle):
        text += f".shuffle({capacity} if {site.code(shuffle)} else 1)"
    batch = site.code(given["batch_size"]) if "batch_size" in given else "128"
    return expression(f"lambda: {text}.batch({batch})")


#: The parameter of an input function that keeps its arrays.
_KEPT = "arrays"
CALLS: dict[str, CallRule] = dict.fromkeys((*_NUMPY, *_PANDAS), _dataset)


@dataclass(frozen=True)
class ArrayInput:
    """A call that makes an input function of arrays; `line` where it is `name = call`, and what follows it there.

    `keeps` says that names of the arrays have several values, so that the function must keep those of its line, and
    `values` are such names among its other arguments.
    """

    call: cst.Call
    line: cst.SimpleStatementLine | None
    name: str
    airy: bool
    at_top: bool
    keeps: bool = False
    values: tuple[str, ...] = ()


def array_inputs(file: ParsedFile) -> tuple[list[ArrayInput], list[Blocked], list[Blocked]]:
    """Every such call of a file, problems (names that change), and remarks (orders that cannot be repeated)."""
    finder = _Finder(file)
    walk(file.module, finder)
    problems, remarks = [], []
    every = []
    for found, scope in finder.found:
        given = {a.keyword.value if a.keyword else i: a.value for i, a in enumerate(found.call.args)}
        shuffle = given.get("shuffle", given.get(4))
        if not is_false(shuffle):
            message = "shuffled arrays come in random order in both programs: their batches cannot be compared"
            remarks.append(Blocked("TFM611", found.call, message))
        places: dict[str, list[cst.CSTNode]] = {}
        for binding in read_bindings(scope):
            if scope is not file.module or binding.is_global:
                places.setdefault(binding.name, []).append(binding.node)
        loops = of_kinds(scope, cst.For, cst.While)
        loop = any(found.call in nodes_in(outer) for outer in loops)
        arrays = [given.get("x", given.get(0)), given.get("y", given.get(1))]
        others = {name for value in given.values() if value not in arrays for name in names_in(value)}
        # What has its last value when the function is made keeps it, unless a loop comes round again.
        changing = [
            name
            for name in sorted(names_in(found.call))
            if len(places.get(name, ())) > 1
            and not _is_always_the_same(file, scope, name, len(places[name]))
            and (loop or any(file.position(n) > file.position(found.call) for n in places[name]))
        ]
        part = _changing_part(file, nodes_in(scope), found.call, loop)
        if part is not None:
            message = f"`{part}` changes after this line, and the input_fn would read its last value: assign it once"
            problems.append(Blocked("TFM613", found.call, message))
        kept = names_in(cst.Tuple([cst.Element(value) for value in arrays if value is not None]))
        if changing and (found.line is None or _KEPT in others):
            message = (
                f"`{changing[0]}` has more than one value in this scope, and the input_fn would read "
                "the last: assign it once"
            )
            problems.append(Blocked("TFM613", found.call, message))
        values = tuple(name for name in changing if name in others)
        every.append(replace(found, keeps=any(name in kept for name in changing), values=values))
    return every, problems, remarks


def _changing_part(file: ParsedFile, nodes: Iterable[cst.CSTNode], call: cst.Call, loop: bool) -> str | None:
    """An attribute or element that an argument reads, and that is given another value later."""
    targets: list[cst.CSTNode] = []
    for node in nodes:
        if isinstance(node, cst.Assign):
            targets += [target.target for target in node.targets]
        elif isinstance(node, cst.AugAssign):
            targets.append(node.target)
    parts = [node for node in targets if isinstance(node, (cst.Attribute, cst.Subscript))]
    later = {file.code(node) for node in parts if loop or file.position(node) > file.position(call)}
    read = of_kinds(call, cst.Attribute, cst.Subscript) if later else []
    return next((code for code in map(file.code, read) if code in later), None)


def _is_always_the_same(file: ParsedFile, scope: cst.CSTNode, name: str, count: int) -> bool:
    """Whether all values of a name are the same number or text, written out."""
    values = values_given(scope, name)
    written = {file.code(value) for value in values if isinstance(value, (cst.BaseNumber, cst.SimpleString))}
    return len(values) == count and len(written) == 1 and all(file.code(value) in written for value in values)


def as_function(found: ArrayInput, body: cst.BaseExpression, module: cst.Module, width: int = WIDTH) -> cst.FunctionDef:
    """`def name(): return dataset`, over two lines where one is too long."""
    indent = module.default_indent
    parameters = [f"{name}={name}" for name in found.values]
    if found.keeps and isinstance(body, cst.Call):
        slices = _innermost(body)
        parameters.insert(0, f"{_KEPT}={module.code_for_node(slices.args[0].value)}")
        kept = slices.with_changes(args=[cst.Arg(cst.Name(_KEPT))])
        replaced = body.deep_replace(slices, kept)
        assert isinstance(replaced, cst.Call)
        body = replaced
    text = module.code_for_node(body)
    lines = [f"return {text}"]
    if len(indent) + len(lines[0]) > width and isinstance(body, cst.Call):
        head = _innermost(body)
        first = module.code_for_node(head)
        lines = [f"dataset = {first}", f"return dataset{text[len(first) :]}"]
    source = f"def {found.name}({', '.join(parameters)}):\n" + "".join(f"{indent}{line}\n" for line in lines)
    function = cst.parse_module(source, config=module.config_for_parsing).body[0]
    assert isinstance(function, cst.FunctionDef) and isinstance(function.body, cst.IndentedBlock)
    blank = [cst.EmptyLine(indent=False)] * (2 if found.at_top else 1)
    leading = [] if found.line is not None and found.line.leading_lines else blank
    footer = [] if found.airy else blank
    return function.with_changes(leading_lines=leading, body=function.body.with_changes(footer=footer))


def _innermost(node: cst.Call) -> cst.Call:
    """The first call of a chain of methods."""
    while isinstance(node.func, cst.Attribute) and isinstance(node.func.value, cst.Call):
        node = node.func.value
    return node


class _Finder(cst.CSTVisitor):
    def __init__(self, file: ParsedFile) -> None:
        super().__init__()
        self.file = file
        self.found: list[tuple[ArrayInput, cst.CSTNode]] = []
        self._scopes: list[cst.CSTNode] = [file.module]
        self._lines: dict[cst.CSTNode, tuple[cst.SimpleStatementLine, str, bool, bool]] = {}

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self._scopes.append(node)

    def leave_FunctionDef(self, original_node: cst.FunctionDef) -> None:
        self._scopes.pop()

    def visit_Module(self, node: cst.Module) -> None:
        self._block(node.body, True)

    def visit_IndentedBlock(self, node: cst.IndentedBlock) -> None:
        self._block(node.body, False)

    def _block(self, body: object, at_top: bool) -> None:
        statements = list(body)  # type: ignore[call-overload]
        for statement, after in equal_zip(statements, [*statements[1:], None]):
            if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1:
                small = statement.body[0]
                if isinstance(small, cst.Assign) and len(small.targets) == 1:
                    target = small.targets[0].target
                    if isinstance(target, cst.Name):
                        lines = getattr(after, "leading_lines", ())
                        airy = after is None or any(line.comment is None for line in lines)
                        self._lines[small.value] = statement, target.value, airy, at_top

    def visit_Call(self, node: cst.Call) -> None:
        if is_array_input(self.file.imports.tensorflow(node.func)):
            line, name, airy, at_top = self._lines.get(node, (None, "", True, False))
            self.found.append((ArrayInput(node, line, name, airy, at_top), self._scopes[-1]))
