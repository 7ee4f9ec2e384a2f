"""A call that a rule looks at."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import libcst as cst

from migrator.names.imports import ImportMap
from migrator.program.calls import bind
from migrator.program.modes import ModeNames
from migrator.program.own_weights import OwnWeights
from migrator.program.parsed import Blocked
from migrator.rules.generation import KERAS_2, Keras


@dataclass
class TrainingContext:
    """What the rules of optimizers and schedules know beyond their own call, and what they ask for.

    `schedules` are the calls that become schedule objects, and `scheduled` the optimizers whose rate is one (None: not
    known). `step` is the name of the step inside a schedule, `steps` are mentions of it that go away. `rates` and
    `arguments` replace the rate of an optimizer (`skipped` as it was) and add arguments to it. `averaging` says which
    keep moving averages of the weights: the text of a class, with `%s` where its base goes, and its argument. `sparse`
    says that variables may get sparse gradients, `per_replica` that several replicas clip their gradients before they
    are summed, `of_examples` that a loop of the program's own wants the loss of each example, `exports` that
    predictions are served for features that may be fewer than those trained on. `helpers` are the classes that the file
    needs: text by name. `keras` is the generation that is written for, `steps_per_execution` says that the driver tells
    how many steps `fit` makes in one go, `of_execution` is how many it always makes, `divided` that replicas divide the
    batches of one device, `resumes` that a training may go on from a checkpoint, `on_mesh` that the devices of a mesh
    compute each step as one, `fused` that one operation may update a variable (meshes have none, TPUs none for rows).
    `by_name` says that the weights of linear models are asked for by the names of their columns.
    `layer_names` are those of layers that share theirs with others of the model, by call, and `hparams` the methods
    that the program calls of its HParams. `own` are the weights that the network makes by itself.
    """

    step: str | None = None
    steps: frozenset[cst.CSTNode] = frozenset()
    schedules: frozenset[cst.CSTNode] = frozenset()
    scheduled: frozenset[cst.CSTNode] | None = None
    rates: Mapping[cst.CSTNode, str] = field(default_factory=dict)
    skipped: frozenset[cst.CSTNode] = frozenset()
    arguments: Mapping[cst.CSTNode, tuple[str, ...]] = field(default_factory=dict)
    averaging: Mapping[cst.CSTNode, tuple[str, str]] = field(default_factory=dict)
    sparse: bool = False
    per_replica: bool = False
    of_examples: bool = False
    exports: bool = False
    taken: set[str] = field(default_factory=set)
    helpers: dict[str, str] = field(default_factory=dict)
    remarks: list[Blocked] = field(default_factory=list)
    needs: set[str] = field(default_factory=set)
    keras: Keras = KERAS_2
    steps_per_execution: bool = False
    of_execution: int = 1
    divided: bool = False
    resumes: bool = False
    layer_names: Mapping[cst.CSTNode, str] = field(default_factory=dict)
    on_mesh: bool = False
    fused: bool = True
    by_name: bool = False
    hparams: frozenset[str] = frozenset()
    own: OwnWeights = field(default_factory=OwnWeights)
    _names: dict[str, str] = field(default_factory=dict)

    def helper(self, wanted: str, text: str) -> str:
        """The name of a class that the file gets; `text` has `{name}` where its name goes."""
        if text not in self._names:
            name, number = wanted, 2
            while name in self.taken:
                name, number = f"{wanted}{number}", number + 1
            self.taken.add(name)
            self._names[text] = name
            self.helpers[name] = text.replace("{name}", name)
        return self._names[text]

    def remark(self, code: str, node: cst.CSTNode, message: str) -> None:
        if not any(known.node is node and known.code == code for known in self.remarks):
            self.remarks.append(Blocked(code, node, message))


def free_name(wanted: str, taken: Collection[str]) -> str:
    """A name for what a file gets, that nothing else in it has."""
    name, number = wanted, 2
    while name in taken:
        name, number = f"{wanted}_{number}", number + 1
    return name


@dataclass(frozen=True)
class Site:
    """A TensorFlow 1 call: `original` as in the file, `call` with its arguments rewritten already.

    `updates` says whether the program runs UPDATE_OPS (None: one does, another does not). What a rule has to say about
    a call that it carries over, it appends to `remarks`; classes that the file needs for it go to `classes`.
    `only_training` says that the call is a dropout that the program runs in TRAIN mode only, `rewritten` gives the new
    form of an expression that stands elsewhere in the program.
    """

    name: str
    original: cst.Call
    call: cst.Call
    modes: ModeNames | None
    keep_regularizers: bool
    code: Callable[[cst.CSTNode], str]
    updates: bool | None = True
    remarks: list[Blocked] = field(default_factory=list)
    classes: dict[str, str] = field(default_factory=dict)
    only_training: bool = False
    imports: ImportMap | None = None
    definition: Callable[[str], cst.BaseExpression | None] = lambda name: None
    training: TrainingContext = field(default_factory=TrainingContext)
    rewritten: Callable[[cst.BaseExpression], cst.BaseExpression] = lambda node: node

    def helper(self, wanted: str, text: str) -> str:
        """The name of a function or class that the file gets; `text` has `{name}` where its name goes."""
        name = free_name(wanted, self.training.taken)
        self.classes[name] = text.replace("{name}", name)
        return name

    def tensorflow(self, node: cst.BaseExpression) -> str | None:
        """The TensorFlow 1 name of an expression."""
        return self.imports.tensorflow(node) if self.imports is not None else None

    def arguments(self, parameters: Sequence[str], code: str) -> dict[str, cst.BaseExpression]:
        """The rewritten arguments by parameter name."""
        return bind(self.call, parameters, self.name, code)

    def originals(self, parameters: Sequence[str], code: str) -> dict[str, cst.BaseExpression]:
        """The arguments as written, by parameter name."""
        return bind(self.original, parameters, self.name, code)


CallRule = Callable[[Site], cst.BaseExpression]


def keyword(name: str, value: cst.BaseExpression) -> cst.Arg:
    """`name=value`."""
    return cst.Arg(
        value, keyword=cst.Name(name), equal=cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    )


def expression(text: str) -> cst.BaseExpression:
    """Parses new code."""
    return cst.parse_expression(text)


def call_text(function: str, arguments: Sequence[str]) -> str:
    """A call on one line."""
    return f"{function}({', '.join(arguments)})"
