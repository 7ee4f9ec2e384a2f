"""What is known of a training by hand while it is read: its statements, its session, its loop and its cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import libcst as cst

from migrator.findings import Finding
from migrator.names.bindings import read_bindings
from migrator.program.calls import attribute_asked, calls_in
from migrator.program.parsed import Blocked, ParsedFile, names_in


@dataclass(frozen=True)
class Supervisor:
    """A Supervisor: the call that makes it, its name, and what it is given."""

    call: cst.Call
    name: str
    given: Mapping[str, cst.BaseExpression]


@dataclass
class Line:
    """A statement before the loop: the names that it binds and mentions, and what kind of thing it does.

    Kinds are `plain`, `data`, `next` (draws the batch), `graph`, `hooks`, and `removed` (only the session needs it).
    """

    node: cst.BaseStatement
    binds: set[str]
    mentions: set[str]
    kind: str = "plain"


@dataclass
class Training:
    """A training by hand: `call` makes its session; the rest is found out step by step, in the order of `write_out`.

    `scope` is the function (or module) that holds it, `lines` what stands before the session, `suffix` what follows it.
    `around` are names that say where operations are. `steps` is what a counted loop takes, as source text.
    """

    file: ParsedFile
    call: cst.Call
    others: Sequence[ParsedFile] = ()
    lines: list[Line] = field(default_factory=list)
    suffix: list[cst.BaseStatement] = field(default_factory=list)
    said: list[Finding] = field(default_factory=list)
    around: set[str] = field(default_factory=set)
    # of the session
    scope: cst.FunctionDef | cst.Module = field(init=False)
    session: cst.BaseStatement = field(init=False)
    session_name: str = ""
    inside: Sequence[cst.BaseStatement] = ()
    given: Mapping[str, cst.BaseExpression] = field(default_factory=dict)
    # of a Supervisor, and what hooks stop where it would
    supervisor: Supervisor | None = None
    stop: cst.List | None = None
    # of the loop
    loop: cst.While | cst.For = field(init=False)
    train_op: str = ""
    maker: Line = field(init=False)
    steps: str | None = None
    # of the cluster, and the function that makes its server where another one trains
    caller: Caller | None = None
    server: cst.Call | None = None
    spec: cst.BaseExpression | None = None
    task: tuple[cst.BaseExpression, ...] = ()
    told: cst.BaseExpression = field(init=False)  # the index of the task where the server is made
    joins: cst.If | None = None
    setter: bool = False
    synchronous: cst.Call | None = None
    hook_names: set[str] = field(default_factory=set)
    # of the batches and the network
    features: str = ""
    labels: str = ""
    input_fn: str | None = None
    dataset: str = ""
    next_line: cst.BaseStatement = field(init=False)
    loss: str = ""
    hooks: str = ""
    # of batches that are fed: the statements of their generator, and the specs of its features and labels
    generator: list[cst.BaseStatement] = field(default_factory=list)
    specs: tuple[str, str] = ("", "")
    # of towers: whether they are in a model_fn; how many there are, as source text; whether they take parts of one
    # batch; names of what they filled
    of_model: bool = False
    towers: str = ""
    whole: bool = True
    gone: set[str] = field(default_factory=set)
    unused: list[cst.FunctionDef] = field(default_factory=list)  # functions that nothing calls any more
    fewer: dict[cst.FunctionDef, set[str]] = field(default_factory=dict)  # parameters that nothing gives any more
    origins: dict[cst.CSTNode, cst.CSTNode] = field(default_factory=dict)  # of statements that were made

    def used_later(self) -> set[str]:
        """Names that what follows the session mentions, and the generator of its batches."""
        specs = {name for spec in self.specs if spec for name in names_in(cst.parse_expression(spec))}
        return specs | {name for one in (*self.suffix, *self.generator) for name in names_in(one)}

    @property
    def tensorflow(self) -> str:
        """The name that TensorFlow has in the file. Raises Blocked (TFM760) where it is not imported as a module."""
        text = self.file.code((self.supervisor or self).call.func)
        for made in _MADE:
            if text.endswith(made):
                return text[: -len(made)]
        raise Blocked("TFM760", self.call, "TensorFlow is not imported as a module: write `import tensorflow as tf`")

    def line_of(self, name: str) -> Line | None:
        """The only line before the session that gives a name its value."""
        made = [line for line in self.lines if name in line.binds]
        return made[0] if len(made) == 1 else None

    def value_of(self, name: str) -> cst.BaseExpression | None:
        """What the only line that gives a name its value gives it."""
        line = self.line_of(name)
        return None if line is None else value_of(line.node)

    def tf(self, call: cst.Call) -> str | None:
        """What of TensorFlow's a call calls; None for anything else."""
        func = call.func
        return self.file.imports.tensorflow((self.asked(func) if isinstance(func, cst.Call) else None) or func)

    def asked(self, call: cst.Call) -> cst.Attribute | None:
        """`x.name` where a call is `getattr(x, "name")`; else None."""
        found = attribute_asked(call)
        own = found is not None and any(one.name == "getattr" for one in read_bindings(self.file.module))
        return None if own else found


_MADE = (".train.MonitoredTrainingSession", ".train.Supervisor", ".Session")


def value_of(node: cst.CSTNode) -> cst.BaseExpression | None:
    """What a line gives to its only target."""
    small = node.body[0] if isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1 else None
    return small.value if isinstance(small, cst.Assign) and len(small.targets) == 1 else None


def counted_step(call: cst.Call) -> cst.BaseExpression | None:
    """The step that `minimize` or `apply_gradients` counts."""
    for arg in call.args:
        if arg.keyword is not None and arg.keyword.value == "global_step":
            return arg.value
    return call.args[1].value if len(call.args) > 1 and call.args[1].keyword is None else None


class Method(cst.Call):
    """A call of an attribute."""

    func: cst.Attribute


def methods_in(node: cst.CSTNode) -> list[Method]:
    """The calls of attributes in a node."""
    return [call for call in calls_in(node) if isinstance(call.func, cst.Attribute)]  # type: ignore[misc]


def appended(node: cst.CSTNode) -> cst.BaseExpression | None:
    """What a line appends to a list."""
    small = node.body[0] if isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1 else None
    call = small.value if isinstance(small, cst.Expr) else None
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute) or len(call.args) != 1:
        return None
    return call.args[0].value if call.func.attr.value == "append" else None


@dataclass
class Caller:
    """The call of the function that trains: `here` is what stands around it, read as a training is.

    `given` is what the parameters are given; those in `dropped` are given the server, or something of it. One of them
    takes the cluster instead, by its own name, where `cluster` says so.
    """

    here: Training
    call: cst.Call
    statement: cst.SimpleStatementLine
    given: Mapping[str, cst.BaseExpression]
    dropped: set[str]
    cluster: str = ""
