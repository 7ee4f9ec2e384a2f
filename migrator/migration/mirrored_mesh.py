"""Programs of TensorFlow 2 on the replicas of a MirroredStrategy, brought to a mesh of devices (DTensor).

Two shapes are written, in place: a model that is compiled and trained by `fit`, and the loop of the guides, where
`strategy.run` takes a step that applies its gradients. Anything else is refused whole, with the line and what to do.

A mesh is one device to its program. So what every replica computed for its share is computed once for the whole batch,
and a sum over the replicas is that value itself: exact where the loss is divided by the global batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn, TypeVar

import libcst as cst

from migrator.emit.file import add_import, insert_classes
from migrator.emit.layout import statements
from migrator.emit.mesh import is_known
from migrator.findings import Severity
from migrator.names.free import free
from migrator.names.imports import dotted
from migrator.program.assignments import assignments
from migrator.program.calls import calls_in, classes_in, string
from migrator.program.modern import RUN, STRATEGIES, Change, Check, Edit, ModernFile, is_edit_of, keyword
from migrator.program.parsed import Blocked, name_nodes, names_in
from migrator.program.scopes import returns_in
from migrator.rules.layers import add_argument
from migrator.rules.mesh import ACTIVATIONS, CLIPPING, DRAWING, IMAGE_LAYERS, LAYERS, METRICS, OPTIMIZERS, SCHEDULES
from migrator.rules.site import keyword as argument
from migrator.targets import dtensor
from migrator.targets.dtensor import Layouts
from migrator.targets.target import LoopShape

CODE, KEPT = "TFM780", "TFM799"
_KERAS = "tf.keras."
_WORDS = {name.lower(): name for name in OPTIMIZERS}
_METRIC_WORDS = frozenset(
    (
        *("accuracy", "acc", "mae", "mean_absolute_error", "mean_squared_error", "mse"),
        *("binary_accuracy", "categorical_accuracy", "sparse_categorical_accuracy"),
    )
)
_INPUTS = ("Input", "InputLayer")
#: What a model of the program may be asked for, beside what is written anew.
_OF_MODEL = frozenset(
    (
        *("add", "build", "compile", "count_params", "evaluate", "fit", "get_layer", "layers", "losses", "metrics"),
        *("name", "non_trainable_variables", "optimizer", "summary", "trainable_variables", "trainable_weights"),
        *("variables", "weights"),
    )
)
_IN_STEPS = frozenset(
    (
        *("tf.GradientTape", "tf.function", "tf.print", "tf.name_scope", "tf.nn.compute_average_loss"),
        "tf.nn.scale_regularization_loss",
    )
)
_MADE_OUTSIDE = (
    f"{_KERAS}applications.",
    f"{_KERAS}models.load_model",
    f"{_KERAS}models.clone_model",
    "tf.saved_model.",
)
_OUTSIDE = (
    "# Not in a tf.function, which on a mesh may read the optimizer's slots before it assigns them (TensorFlow 2.21)."
)
_Node = TypeVar("_Node", bound=cst.CSTNode)


def check(layouts: Layouts) -> Check:
    """The check of files for a mesh with such layouts."""

    def of_layouts(file: ModernFile) -> Iterable[Change]:
        return changes(file, layouts)

    return of_layouts


def changes(file: ModernFile, layouts: Layouts) -> Iterable[Change]:
    """What becomes of a file that makes a strategy: all of its changes, or what blocks them."""
    made = [call for call in file.calls if _is_strategy(file, call)]
    if not made:
        return []
    try:
        return _Program(file, layouts, made).read()
    except Blocked as problem:
        place = problem.node if problem.node is not None else made[0]
        return [Change(problem.code, place, problem.message, severity=Severity.MANUAL)]


def _is_strategy(file: ModernFile, call: cst.Call) -> bool:
    name = file.name(call.func) or ""
    return name.startswith("tf.distribute.") and name.rpartition(".")[2] in STRATEGIES


def _refuse(node: cst.CSTNode | None, message: str, code: str = KEPT) -> NoReturn:
    raise Blocked(code, node, message)


@dataclass(frozen=True)
class _Gradients:
    """How a step applies its gradients: the statement, the optimizer, and what is zipped, as source text."""

    line: cst.SimpleStatementLine
    optimizer: cst.BaseExpression
    given: cst.BaseExpression
    name: str
    variables: str


class _Program:
    """The reader of one file, and what it is to become."""

    def __init__(self, file: ModernFile, layouts: Layouts, made: Sequence[cst.Call]) -> None:
        self.file = file
        self.layouts = layouts
        self.module = file.parsed.module
        self.parents = file.parsed.parents
        self.call = made[0]
        if len(made) > 1:
            _refuse(made[1], "several strategies in one file: leave one, which the mesh takes the place of")
        if not (file.name(self.call.func) or "").endswith(".MirroredStrategy"):
            _refuse(self.call, "of strategies a MirroredStrategy becomes a mesh, and no other: take that")
        if self.call.args:
            message = "a mesh has all GPUs, or all CPUs: leave the arguments of the MirroredStrategy out"
            _refuse(self.call, message)
        if not any(_imports_tf(statement) for statement in self.module.body):
            _refuse(self.call, "the mesh is written with `tf`: `import tensorflow as tf` on a line of its own")
        self.edits: list[tuple[cst.CSTNode, Edit]] = []
        self.helpers: dict[str, str] = {}
        self.imports: list[str] = []
        self.taken = set(file.parsed.names)
        self.mesh, self.scope = self.new("mesh"), self.new("layouts")
        self.done: set[cst.CSTNode] = set()  # names of the strategy that are accounted for
        self.stepped: str | None = None  # the model of a loop of the program's own
        self.placing: str | None = None  # the class that puts batches on the mesh, where there are any

    def new(self, wanted: str) -> str:
        name = free(wanted, self.taken)
        self.taken.add(name)
        return name

    def text(self, node: cst.CSTNode) -> str:
        return self.module.code_for_node(node)

    def edit(self, node: cst.CSTNode, edit: Edit) -> None:
        self.edits.append((node, edit))

    def above(self, node: cst.CSTNode, *kinds: type[_Node]) -> _Node | None:
        """The nearest node of a kind around a node."""
        one = self.parents.get(node)
        while one is not None and not isinstance(one, kinds):
            one = self.parents.get(one)
        return one

    @property
    def indent(self) -> str:
        return self.module.default_indent

    # -- the whole program --
    def read(self) -> list[Change]:
        line, name = self.line_of_strategy()
        self.uses = [node for node in name_nodes(self.module) if node.value == name.value and node is not name]
        self.check_layers()
        self.give_mesh()
        self.rewrite_fits()
        self.rewrite_loops()
        self.rewrite_results()
        self.build_model()
        for use in self.uses:
            if use not in self.done:
                self.rewrite_use(use)
        make = self.new("make_mesh")
        made = dtensor.set_up(self.layouts.variables, self.mesh, self.scope, make, self.indent)
        if self.draws:
            made = ["tf.keras.backend.experimental.enable_tf_random_generator()  # for dropout on a mesh", *made]
        lines = statements("\n".join(made) + "\n", self.module)
        self.helpers = {make: dtensor.make_mesh(self.layouts.dimensions, make, "    "), **self.helpers}
        message = "`MirroredStrategy` becomes a mesh of all devices, on which a step computes the whole batch once"
        found = [Change(CODE, self.call, message, severity=Severity.REVIEW, keras_2=True)]
        if self.draws:
            message = "other masks are drawn than those of the replicas"
            found.append(Change("TFM797", self.call, message, severity=Severity.REVIEW))
        self.edit(line, lambda node: _in_place_of(is_edit_of(node, cst.SimpleStatementLine), lines))
        self.edit(self.module, self.finish)
        edits: dict[cst.CSTNode, list[Edit]] = {}
        for node, one in self.edits:
            edits.setdefault(node, []).append(one)
        for node, several in edits.items():
            found.append(Change(CODE, node, "", edit=_each(several), severity=Severity.MIGRATED))
        return found

    def finish(self, node: cst.CSTNode) -> cst.CSTNode:
        """The file with the functions and classes of the mesh, and the modules that they need."""
        module = insert_classes(is_edit_of(node, cst.Module), self.helpers)
        for wanted in self.imports:
            module = add_import(module, wanted)
        return module

    def line_of_strategy(self) -> tuple[cst.SimpleStatementLine, cst.Name]:
        assign = self.parents[self.call]
        line = self.parents.get(assign)
        if (
            isinstance(assign, cst.Assign)
            and len(assign.targets) == 1
            and isinstance(assign.targets[0].target, cst.Name)
            and isinstance(line, cst.SimpleStatementLine)
            and len(line.body) == 1
        ):
            name = assign.targets[0].target
            if self.file.value_of(name) is not self.call:
                _refuse(self.call, f"`{name.value}` has several values: give the strategy a name of its own")
            return line, name
        _refuse(
            self.call, "the strategy is not made on a line of its own: `strategy = tf.distribute.MirroredStrategy()`"
        )

    # -- models, optimizers, metrics --
    def check_layers(self) -> None:
        """Refuses models that were not tried on a mesh."""
        self.draws = False
        layers = 0
        for call in self.file.calls:
            name = self.file.name(call.func) or ""
            if name.startswith(_MADE_OUTSIDE):
                _refuse(call, f"`{name}` makes a model without the layouts of the mesh: make it of layers here")
            if not name.startswith(f"{_KERAS}layers."):
                continue
            layers += 1
            layer = name.removeprefix(f"{_KERAS}layers.")
            if layer not in LAYERS | IMAGE_LAYERS | DRAWING | set(_INPUTS) or layer == "Embedding":
                message = (
                    f"`{layer}` was not tried on a mesh, or computes something else there: keep the MirroredStrategy"
                )
                _refuse(call, message, "TFM791")
            given = {arg.keyword.value for arg in call.args if arg.keyword is not None}
            if given & {"dilation_rate", "noise_shape", "groups"}:
                _refuse(call, f"this form of `{layer}` was not tried on a mesh: keep the MirroredStrategy", "TFM791")
            for given_activation in (
                keyword(call, "activation"),
                call.args[0] if layer == "Activation" and call.args else None,
            ):
                word = None if given_activation is None else string(given_activation.value)
                if word is not None and word not in (*ACTIVATIONS, "linear"):
                    _refuse(
                        call, f"the activation `{word}` was not tried on a mesh: keep the MirroredStrategy", "TFM791"
                    )
            self.draws = self.draws or layer in DRAWING
        if not layers:
            _refuse(
                self.call,
                "the layers of the model are made in another file, which the mesh does not reach: make them here",
            )
        for attribute in self.file.attributes:
            name = self.file.name(attribute) or ""
            if name.startswith("tf.nn.") and name.count(".") == 2 and not is_known(name) and name not in _IN_STEPS:
                _refuse(attribute, f"`{name}` was not tried on a mesh: keep the MirroredStrategy", "TFM791")
        for one in classes_in(self.module):
            bases = [self.file.name(base.value) or "" for base in one.bases]
            if any(base.startswith(_KERAS) for base in bases):
                message = (
                    f"`{one.name.value}` is a class of Keras of the program's own, which is not made anew for a mesh: "
                    "make the model of layers (Sequential, or a functional model)"
                )
                _refuse(one, message)

    def build_model(self) -> None:
        """A Sequential model gets its input's shape where it is made. Without one its first call on a mesh makes it
        anew for inputs of one axis more: dense layers take them, and convolutions raise (TensorFlow 2.21).
        """
        deferred = next((call for call in self.file.calls if self.is_deferred(call)), None)
        if deferred is None or any(_method(call) == "build" for call in self.file.calls):
            return
        around = self.above(self.call, cst.FunctionDef) or self.module
        given = list(around.body.body if isinstance(around, cst.FunctionDef) else around.body)
        made = [value for one in given for name, value in assignments(one) if name == self.stepped]
        line = self.above(made[0], cst.SimpleStatementLine) if len(made) == 1 else None
        for call in self.file.calls:
            data = call.args[0].value if _method(call) == "experimental_distribute_dataset" and call.args else None
            if not isinstance(data, cst.Name) or line is None or self.above(line, cst.With) is None:
                continue
            together = self.above(call, cst.FunctionDef) is self.above(line, cst.FunctionDef)
            if together and self.file.parsed.position(call) < self.file.parsed.position(line):
                text = f"{self.stepped}.build({data.value}.element_spec[0].shape)\n"
                new = statements(text, self.module)
                self.edit(line, _with_more(new))
                return
        message = "a Sequential model of no known input, which a mesh cannot make: give its first layer `input_shape=`"
        _refuse(deferred, message)

    def is_deferred(self, call: cst.Call) -> bool:
        """Whether a call makes a Sequential model whose first layer does not say what its input is."""
        if (self.file.name(call.func) or "").rpartition(".")[2] != "Sequential":
            return False
        layers = call.args[0].value if call.args else None
        inner: Sequence[cst.BaseExpression] = [one for one in self.file.calls if _method(one) == "add"]
        if isinstance(layers, cst.List | cst.Tuple) and layers.elements:
            inner = [layers.elements[0].value]
        text = " ".join(self.text(one) for one in inner)
        return not any(word in text for word in ("input_shape", "input_dim", "Input(", "InputLayer("))

    def give_mesh(self) -> None:
        """Optimizers and metrics are given the mesh."""
        mesh = argument("mesh", cst.Name(self.mesh))

        def with_mesh(node: cst.CSTNode) -> cst.CSTNode:
            call = is_edit_of(node, cst.Call)
            return call.with_changes(args=add_argument(list(call.args), mesh))

        around = self.above(self.call, cst.FunctionDef)
        for call in self.file.calls:
            name = self.file.name(call.func) or ""
            kind = name.rpartition(".")[2]
            if name.startswith((f"{_KERAS}optimizers.schedules.", "tf.optimizers.schedules.")):
                if kind not in SCHEDULES:
                    _refuse(call, f"`{kind}` was not tried on a mesh: take another schedule of Keras", "TFM792")
            elif name.startswith((f"{_KERAS}optimizers.", "tf.optimizers.", "tf.train.", "tf.compat.v1.train.")):
                if name.startswith("tf.train."):
                    continue  # saving one is the same on a mesh
                self.check_optimizer(call, name, kind)
                self.check_place(call, around)
                self.edit(call, with_mesh)
            elif name.startswith((f"{_KERAS}metrics.", "tf.metrics.")) and kind[:1].isupper():
                if kind not in METRICS:
                    _refuse(call, f"`{kind}` was not tried on a mesh: leave the metric out", "TFM793")
                self.check_place(call, around)
                self.edit(call, with_mesh)
            elif _method(call) in ("restore", "restore_or_initialize", "load_weights"):
                _refuse(call, "weights that are read from a checkpoint: restore them by hand, after `optimizer.build`")

    def rewrite_results(self) -> None:
        """What a metric has counted leaves the mesh: text is not formatted of a tensor there (TensorFlow 2.21)."""
        for call in self.file.calls:
            if _method(call) != "result" or call.args or self.file.runs_on_replicas(call):
                continue
            kind = self.file.made_by(call.func.value) or ""  # type: ignore[attr-defined]
            above = self.parents[call]
            if not kind.startswith((f"{_KERAS}metrics.", "tf.metrics.")) or isinstance(above, cst.Attribute):
                continue
            text = "tf.constant({}.numpy())" if isinstance(above, cst.Assign) else "{}.numpy()"
            self.edit(call, _with_text(text.format(self.text(call))))

    def check_optimizer(self, call: cst.Call, name: str, kind: str) -> None:
        known = OPTIMIZERS.get(kind)
        if known is None or name.count(".") > 3 or name.startswith("tf.compat."):
            message = (
                f"`{name}` was not tried on a mesh: take one of {', '.join(sorted(OPTIMIZERS))} of tf.keras.optimizers"
            )
            _refuse(call, message, "TFM792")
        for place, arg in enumerate(call.args):
            word = arg.keyword.value if arg.keyword is not None else None
            if arg.star or (word is None and place > 0):
                _refuse(call, f"arguments of `{kind}` without a name: write them as keywords", "TFM792")
            if word is not None and word not in known | CLIPPING | {"name"}:
                _refuse(call, f"`{word}` of `{kind}` was not tried on a mesh: leave it out", "TFM792")

    def check_place(self, call: cst.Call, around: cst.FunctionDef | None) -> None:
        """The mesh has to be known where an optimizer or a metric is made."""
        inner: cst.CSTNode | None = call
        while inner is not None and inner is not around:
            inner = self.parents.get(inner)
        if around is not None and inner is None:
            message = "made outside of the function that makes the strategy, where there is no mesh: make it there"
            _refuse(call, f"`{self.text(call.func)}` is {message}")

    # -- uses of the strategy --
    def rewrite_use(self, use: cst.Name) -> None:
        attribute = self.parents[use]
        if not isinstance(attribute, cst.Attribute) or attribute.value is not use:
            message = "the strategy is handed around, and a mesh is none: use it where it is made"
            _refuse(attribute, message)
        what = attribute.attr.value
        call = self.parents[attribute]
        if what == "scope" and isinstance(self.parents.get(call), cst.WithItem):
            self.edit(use, lambda node: cst.Name(self.scope))
        elif what == "num_replicas_in_sync":
            self.rewrite_count(attribute)
        elif what == "experimental_distribute_dataset" and isinstance(call, cst.Call) and len(call.args) == 1:
            kind = self.batches_class()
            self.edit(call, lambda node: _placed(is_edit_of(node, cst.Call), kind, self.mesh))
        else:
            message = f"`{self.text(attribute)}` has no counterpart on a mesh, or not here: keep the MirroredStrategy"
            _refuse(attribute, message)

    def rewrite_count(self, attribute: cst.Attribute) -> None:
        """In a step there is one replica, the mesh: a product with their number, or a quotient, is the value itself."""
        if not self.file.runs_on_replicas(attribute):
            self.edit(attribute, _with_text(f"{self.mesh}.size"))
            return
        whole = self.parents[attribute]
        scales = isinstance(whole, cst.BinaryOperation) and isinstance(whole.operator, cst.Divide | cst.Multiply)
        if not scales or not isinstance(whole, cst.BinaryOperation) or whole.right is not attribute:
            message = "the number of replicas in a step: a mesh computes the whole batch, so leave it out"
            _refuse(attribute, message)
        self.edit(whole, lambda node: is_edit_of(node, cst.BinaryOperation).left)

    def batches_class(self) -> str:
        if self.placing is None:
            self.placing = self.new("MeshBatches")
            self.helpers[self.placing] = dtensor.batches(self.placing, "    ")
        return self.placing

    # -- fit --
    def rewrite_fits(self) -> None:
        compiled = [call for call in self.file.calls if _method(call) == "compile"]
        models = {dotted(call.func.value) for call in compiled if isinstance(call.func, cst.Attribute)}
        for attribute in self.file.attributes:
            if dotted(attribute.value) in models and attribute.attr.value not in _OF_MODEL:
                message = (
                    f"`{self.text(attribute)}` is not written for a mesh, whose model Keras' own loops do not run: do "
                    "it in a program of its own"
                )
                _refuse(attribute, message)
        fits = [call for call in self.file.calls if _method(call) == "fit" and _receiver(call) in models]
        tests = [call for call in self.file.calls if _method(call) == "evaluate" and _receiver(call) in models]
        if not fits and not tests:
            return
        if len(models) != 1 or len(compiled) != 1:
            _refuse(compiled[-1], "several models are compiled: a mesh is written for one in a file")
        measures = self.rewrite_compile(compiled[0])
        model = models.pop() or ""
        first = min([*fits, *tests], key=self.file.parsed.position)
        line = self.statement_of(first)
        block = self.parents[line]
        for call in (*fits, *tests):
            if not self.inside(call, block):
                message = "trained and evaluated in several functions: a mesh is written for one of them"
                _refuse(call, f"`{model}` is {message}")
        loop, kind = self.new("loop"), self.new("TrainingLoop")
        shape = LoopShape(of_class=False, saves=False, measures=measures, of_batch=True)
        self.helpers[kind] = dtensor.training_loop(kind, "    ", shape)
        self.imports.append("itertools")
        for call in tests:
            self.rewrite_evaluate(call, loop, measures)
        for call in fits:
            self.rewrite_fit(call, loop)
        made = statements(f"{loop} = {kind}({model}, {self.mesh})\n", self.module)
        if self.layouts.variables:
            check = self.new("check_layouts")
            self.helpers[check] = dtensor.check_layouts(check, "    ")
            self.imports.append("re")
            made = [*statements(f"{check}({model}, {self.scope})\n", self.module), *made]
        self.edit(line, lambda node: _before(node, made))

    def inside(self, node: cst.CSTNode, block: cst.CSTNode) -> bool:
        one: cst.CSTNode | None = node
        while one is not None and one is not block:
            one = self.parents.get(one)
            if isinstance(one, cst.FunctionDef | cst.Lambda) and one is not block:
                return False
        return one is block

    def statement_of(self, node: cst.CSTNode) -> cst.SimpleStatementLine:
        line = self.above(node, cst.SimpleStatementLine)
        if line is None or len(line.body) != 1:
            _refuse(node, "a training that is part of a compound statement: give it a line of its own")
        return line

    def rewrite_compile(self, call: cst.Call) -> bool:
        """Gives the optimizer the mesh; whether the model has metrics."""
        measures = False
        for arg in call.args:
            word = arg.keyword.value if arg.keyword is not None else None
            if word not in ("optimizer", "loss", "metrics"):
                name = "an argument without a name" if word is None else f"`{word}`"
                _refuse(arg, f"{name} of `compile` is not written for a mesh: give optimizer=, loss= and metrics= only")
            named = string(arg.value)
            if word == "optimizer" and named is not None:
                kind = _WORDS.get(named.lower())
                if kind is None:
                    _refuse(arg, f"the optimizer `{named}` was not tried on a mesh: take Adam, say", "TFM792")
                self.edit(arg.value, _with_text(f"tf.keras.optimizers.{kind}(mesh={self.mesh})"))
            elif word == "metrics":
                measures = self.check_metrics(arg.value)
        return measures

    def check_metrics(self, node: cst.BaseExpression) -> bool:
        if not isinstance(node, cst.List | cst.Tuple):
            _refuse(node, "the metrics are not written out here: give `compile` a list of them", "TFM793")
        for element in node.elements:
            word = string(element.value)
            if word is not None and word not in _METRIC_WORDS:
                _refuse(element, f"the metric `{word}` was not tried on a mesh: leave it out", "TFM793")
            if word is None and not isinstance(element.value, cst.Call):
                _refuse(element, "a metric that is not made here: make it in the list", "TFM793")
        return bool(node.elements)

    def rewrite_fit(self, call: cst.Call, loop: str) -> None:
        line = self.statement_of(call)
        small = line.body[0]
        if isinstance(small, cst.Assign) and small.value is call and len(small.targets) == 1:
            target = small.targets[0].target
            read = [
                node for node in name_nodes(self.module) if isinstance(target, cst.Name) and node.value == target.value
            ]
            if len(read) != 1:
                message = (
                    f"`{self.text(target)}` is read, and a mesh keeps no history of `fit`: print what is to be kept"
                )
                _refuse(call, message)
        elif not isinstance(small, cst.Expr) or small.value is not call:
            _refuse(call, "what `fit` returns is used, and a mesh keeps no history: call it on a line of its own")
        given = self.arguments(call, ("epochs", "validation_data", "steps_per_epoch", "verbose"))
        epochs = self.text(given["epochs"]) if "epochs" in given else "1"
        data = given["x"]
        steps = given.get("steps_per_epoch")
        validation = given.get("validation_data")
        if isinstance(validation, cst.Tuple | cst.List):
            _refuse(validation, "arrays to validate on: make them a tf.data.Dataset of batches")
        shown = []
        batches = f"{loop}.batches({self.text(data)})"
        lines = []
        if steps is not None:
            name = self.new("batches")
            lines.append(f"{name} = {batches}")
            batches = f"{name}, {self.text(steps)}"
        if validation is not None:
            shown = [f"print({loop}.evaluate({loop}.batches({self.text(validation)})))"]
        body = [f"{loop}.train({batches})", *shown]
        if epochs == "1":
            lines += body
        else:
            lines += [f"for _ in range({epochs}):", *(self.indent + one for one in body)]
        new = statements("\n".join(lines) + "\n", self.module)
        self.edit(line, lambda node: _replaced(node, line, new))

    def rewrite_evaluate(self, call: cst.Call, loop: str, measures: bool) -> None:
        given = self.arguments(call, ("verbose", "return_dict"))
        text = f"{loop}.evaluate({loop}.batches({self.text(given['x'])}))"
        above = self.parents[call]
        if isinstance(above, cst.Expr):
            text = f"print({text})"
        elif "return_dict" not in given or self.text(given["return_dict"]) != "True":
            text = f"list({text}.values())" if measures else f'{text}["loss"]'
        self.edit(call, _with_text(text))

    def arguments(self, call: cst.Call, known: Sequence[str]) -> Mapping[str, cst.BaseExpression]:
        """The arguments of a call of Keras' loops, of which `x` is a dataset."""
        found: dict[str, cst.BaseExpression] = {}
        for place, arg in enumerate(call.args):
            word = arg.keyword.value if arg.keyword is not None else "x" if place == 0 and not arg.star else None
            if word == "x" or word in known:
                found[word or ""] = arg.value
            elif word in (None, "y", "batch_size", "sample_weight", "validation_split", "shuffle"):
                _refuse(arg, "a mesh takes batches of a tf.data.Dataset: make the arrays one, shuffled and batched")
            else:
                name = _method(call)
                _refuse(
                    arg, f"`{word}` of `{name}` is not written for a mesh: put what it does around the loop by hand"
                )
        if "x" not in found:
            _refuse(call, "no dataset is given")
        return found

    # -- loops of the program's own --
    def rewrite_loops(self) -> None:
        runs = [
            call
            for call in self.file.calls
            if _method(call) in RUN and isinstance(call.func, cst.Attribute) and call.func.value in self.uses
        ]
        if not runs:
            return
        by_name = {function.name.value: function for function in self.file.functions}
        for run in runs:
            target = run.args[0].value if run.args else None
            step = by_name.get(target.value) if isinstance(target, cst.Name) else None
            around = self.above(run, cst.FunctionDef)
            if step is None or around is None or self.above(step, cst.FunctionDef) is around:
                message = (
                    "`strategy.run` of a function of this file, in a tf.function of its own beside it, is written for "
                    "a mesh: put the step and its tf.function next to each other"
                )
                _refuse(run, message)
            self.rewrite_step(run, step, around)

    def rewrite_step(self, run: cst.Call, step: cst.FunctionDef, around: cst.FunctionDef) -> None:
        for call in calls_in(step.body):
            name = self.file.name(call.func)
            if name is not None and name not in _IN_STEPS and not is_known(name):
                _refuse(call, f"`{name}` was not tried on a mesh: keep the MirroredStrategy", "TFM791")
        applies = [call for call in calls_in(step.body) if _method(call) == "apply_gradients"]
        place = _decorator(self.file, around)
        if place is None:
            message = f"`{around.name.value}` is no tf.function: decorate it with `@tf.function`, without arguments"
            _refuse(around, message)
        given = self.given(run)
        if not applies:
            self.rewrite_test(run, step, around, given)
            return
        if len(applies) > 1:
            _refuse(applies[1], "several optimizers in one step are not written for a mesh: keep the MirroredStrategy")
        found = self.gradients(step, applies[0])
        self.stepped = found.variables.rpartition(".")[0]
        self.check_scaling(step, found)
        returned = self.returned(step)
        loss, gradients = free("loss", names_in(around.params)), free("gradients", names_in(around.params))
        reduced = self.body_of(run, around, returned is not None)
        result = gradients if returned is None else f"{loss}, {gradients}"
        lines = [
            f"{result} = {step.name.value}({given})",
            _OUTSIDE,
            f"{self.text(found.optimizer)}.apply_gradients(zip({gradients}, {found.variables}))",
            *([f"return tf.constant({loss}.numpy())"] if reduced else []),
        ]
        body = statements("\n".join(lines) + "\n", self.module)
        self.edit(around, lambda node: _without_function(is_edit_of(node, cst.FunctionDef), place, body))
        self.edit(step, _with_function)
        self.rewrite_apply(found)
        if returned is None:
            give = statements(f"return {found.name}\n", self.module)
            self.edit(step, lambda node: _extended(is_edit_of(node, cst.FunctionDef), give))
        else:
            self.edit(returned, lambda node: _with_gradients(is_edit_of(node, cst.Return), found.name))

    def rewrite_apply(self, found: _Gradients) -> None:
        if isinstance(found.given, cst.Name):
            self.edit(found.line, lambda node: cst.RemoveFromParent())  # type: ignore[arg-type,return-value]
            return
        text = f"{found.name} = {self.text(found.given)}\n"
        new = statements(text, self.module)
        self.edit(found.line, lambda node: _replaced(node, found.line, new))

    def rewrite_test(self, run: cst.Call, step: cst.FunctionDef, around: cst.FunctionDef, given: str) -> None:
        """A step that only measures: it is called as it is."""
        if any(_method(call) in ("gradient", "minimize") for call in calls_in(step.body)):
            message = "gradients that are not applied in the step that takes them: apply them there"
            _refuse(step, message)
        for use in self.uses:
            reduce = self.parents.get(self.parents[use])
            if (
                isinstance(reduce, cst.Call)
                and _method(reduce) == "reduce"
                and self.above(reduce, cst.FunctionDef) is around
            ):
                self.edit(reduce, _second_argument(self.check_sum(reduce)))
                self.done.add(use)
        for use in [use for use in self.uses if run.func.value is use]:  # type: ignore[attr-defined]
            self.done.add(use)
        self.edit(run, _with_text(f"{step.name.value}({given})"))

    def given(self, run: cst.Call) -> str:
        """The arguments that a step is given, as source text."""
        rest = run.args[1:]
        if len(rest) != 1 or (rest[0].keyword is not None and rest[0].keyword.value != "args"):
            _refuse(run, "a step of a mesh is given `args=(...)` only: leave the other arguments out")
        value = rest[0].value
        if not isinstance(value, cst.Tuple | cst.List):
            _refuse(run, "the arguments of the step are not written out: give `args=(batch,)`")
        return ", ".join(self.text(element.value) for element in value.elements)

    def gradients(self, step: cst.FunctionDef, call: cst.Call) -> _Gradients:
        """How a step applies its gradients. Raises Blocked for what is not that of the guides."""
        line = self.above(call, cst.SimpleStatementLine)
        zipped = call.args[0].value if len(call.args) == 1 else None
        shaped = (
            line is not None
            and self.parents[line] is step.body
            and isinstance(line.body[0], cst.Expr)
            and line.body[0].value is call
            and isinstance(zipped, cst.Call)
            and dotted(zipped.func) == "zip"
            and len(zipped.args) == 2
        )
        if not shaped or line is None or not isinstance(zipped, cst.Call) or not isinstance(call.func, cst.Attribute):
            message = "`optimizer.apply_gradients(zip(gradients, model.trainable_variables))` on a line of its own"
            _refuse(call, f"on a mesh gradients are applied after the step that takes them: write {message}")
        given, variables = (arg.value for arg in zipped.args)
        source = self.value_in(step, given) if isinstance(given, cst.Name) else given
        if not isinstance(source, cst.Call) or _method(source) != "gradient":
            message = (
                "gradients that are changed before they are applied: let the optimizer clip them (global_clipnorm)"
            )
            _refuse(call, message)
        known = self.value_in(step, variables) if isinstance(variables, cst.Name) else variables
        local = {parameter.name.value for parameter in step.params.params}
        local |= {one for one, _ in assignments(step.body)}
        for one in (known, call.func.value):
            root = (dotted(one) or "").partition(".")[0] if one is not None else ""
            if not root or root in local:
                message = f"`{self.text(call)}` takes what only the step knows: make model and optimizer outside of it"
                _refuse(call, message)
        assert known is not None
        name = given.value if isinstance(given, cst.Name) else free("gradients", local)
        body = list(step.body.body)
        model = (dotted(known) or "").rpartition(".")[0]
        for later in body[body.index(line) + 1 :]:
            if any(dotted(one.func) == model for one in calls_in(later)):
                _refuse(later, "the model is called after its weights have moved: call it before")
        return _Gradients(line, call.func.value, given, name, self.text(known))

    def value_in(self, step: cst.FunctionDef, name: cst.Name) -> cst.BaseExpression | None:
        """What a name is given in a function, if once."""
        values = [value for one, value in assignments(step.body) if one == name.value]
        return values[0] if len(values) == 1 else None

    def check_scaling(self, step: cst.FunctionDef, found: _Gradients) -> None:
        """Refuses losses whose sum over the replicas is not that of the whole batch."""
        by_name = {function.name.value: function for function in self.file.functions}
        reached = [step]
        for call in calls_in(step.body):
            function = by_name.get(dotted(call.func) or "")
            if function is not None and function not in reached:
                reached.append(function)
        names = [self.file.name(call.func) for function in reached for call in calls_in(function.body)]
        counted = any(
            "num_replicas_in_sync" in self.text(division.right) and self.above(division, cst.FunctionDef) in reached
            for division in self.file.divisions
        )
        scaled = "tf.nn.compute_average_loss" in names or "tf.reduce_sum" in names or counted
        mean = {"tf.reduce_mean", "tf.math.reduce_mean"} & set(names)
        if not scaled or (mean and not counted):
            message = (
                "a loss that is not divided by the global batch: the replicas' gradients add up, and a mesh has one. "
                "Take `tf.nn.compute_average_loss(losses, global_batch_size=...)` of the loss of each example"
            )
            _refuse(step, message)
        tape = next((call for call in calls_in(step.body) if _method(call) == "gradient"), None)
        loss = dotted(tape.args[0].value) if tape is not None and tape.args else None
        for call in calls_in(step.body):
            metric = (
                call.func.value
                if _method(call) == "update_state" and isinstance(call.func, cst.Attribute)
                else call.func
            )
            kind = self.file.made_by(metric) or ""
            if (
                kind.startswith((f"{_KERAS}metrics.", "tf.metrics."))
                and call.args
                and dotted(call.args[0].value) == loss
            ):
                message = (
                    "this mean is that of the replicas' shares of the loss, and a mesh has no shares: give the metric "
                    "`loss * strategy.num_replicas_in_sync`, which is the loss on both"
                )
                _refuse(call, message)

    def returned(self, step: cst.FunctionDef) -> cst.Return | None:
        found = returns_in(step.body)
        if not found:
            return None
        last = step.body.body[-1]
        if len(found) > 1 or self.parents[found[0]] is not last or self.parents[last] is not step.body:
            _refuse(step, "the step returns in several places: let it end with one `return loss`")
        value = found[0].value
        if value is None or isinstance(value, cst.Tuple | cst.Dict | cst.List):
            _refuse(found[0], "the step returns several values: let it return the loss, and keep others in metrics")
        return found[0]

    def body_of(self, run: cst.Call, around: cst.FunctionDef, returns: bool) -> bool:
        """Whether a tf.function returns the sum of what its step returns. Raises Blocked for other bodies."""
        body = [line for line in around.body.body if not _is_docstring(line, around)]
        reduces = [call for call in calls_in(around.body) if _method(call) == "reduce"]
        self.done |= {use for use in self.uses if self.above(use, cst.FunctionDef) is around}
        if not reduces:
            plain = len(body) == 1 and isinstance(self.parents[run], cst.Expr)
            if not plain:
                message = (
                    'what the step returns has to be summed up in its tf.function: `return strategy.reduce("SUM", ...)`'
                )
                _refuse(run, message)
            return False
        [reduce, *others] = reduces
        value = self.check_sum(reduce)
        given = self.value_in(around, value) if isinstance(value, cst.Name) else value
        shaped = (
            not others
            and returns
            and given is run
            and len(body) == (2 if isinstance(value, cst.Name) else 1)
            and isinstance(self.parents[reduce], cst.Return)
        )
        if not shaped:
            message = (
                "a tf.function that does more than to run its step and to return the sum: leave the rest to the loop"
            )
            _refuse(around, message)
        return True

    def check_sum(self, reduce: cst.Call) -> cst.BaseExpression:
        """What is summed up over the replicas."""
        axis = keyword(reduce, "axis")
        text = self.text(reduce.args[0].value) if reduce.args else ""
        whole = axis is not None and self.text(axis.value) == "None"
        if len(reduce.args) != 3 or not whole or text.rpartition(".")[2].strip("\"'").upper() != "SUM":
            message = (
                'the replicas\' values are not summed up: `strategy.reduce("SUM", value, axis=None)` of a loss that is '
                "divided by the global batch is written for a mesh"
            )
            _refuse(reduce, message)
        return reduce.args[1].value


def _imports_tf(statement: cst.BaseStatement) -> bool:
    if not isinstance(statement, cst.SimpleStatementLine):
        return False
    return any(
        isinstance(small, cst.Import)
        and any(
            dotted(a.name) == "tensorflow" and a.asname is not None and dotted(a.asname.name) == "tf"
            for a in small.names
        )
        for small in statement.body
    )


def _method(call: cst.Call) -> str | None:
    return call.func.attr.value if isinstance(call.func, cst.Attribute) else None


def _receiver(call: cst.Call) -> str | None:
    return dotted(call.func.value) if isinstance(call.func, cst.Attribute) else None


def _is_docstring(line: cst.BaseStatement | cst.BaseSmallStatement, function: cst.FunctionDef) -> bool:
    first = line is function.body.body[0] and isinstance(line, cst.SimpleStatementLine)
    return first and isinstance(line.body[0], cst.Expr) and isinstance(line.body[0].value, cst.SimpleString)  # type: ignore[union-attr]


def _decorator(file: ModernFile, function: cst.FunctionDef) -> int | None:
    """Which decorator makes a function a tf.function, without arguments."""
    found = [i for i, one in enumerate(function.decorators) if file.name(one.decorator) == "tf.function"]
    return found[0] if found else None


def _with_text(text: str) -> Edit:
    """An expression in place of another one."""
    return lambda node: cst.parse_expression(text)


def _each(edits: Sequence[Edit]) -> Edit:
    def edit(node: cst.CSTNode) -> cst.CSTNode:
        for one in edits:
            node = one(node)
        return node

    return edit


def _in_place_of(old: cst.SimpleStatementLine, new: Sequence[cst.BaseStatement]) -> cst.CSTNode:
    """New statements, the first of which has the comments of the old one."""
    first = new[0].with_changes(leading_lines=old.leading_lines)
    return cst.FlattenSentinel([first, *new[1:]])  # type: ignore[return-value]


def _before(node: cst.CSTNode, new: Sequence[cst.BaseStatement]) -> cst.CSTNode:
    """New statements before one, or before the several that it has become."""
    several = list(node) if isinstance(node, cst.FlattenSentinel) else [node]
    leading = several[0].leading_lines  # type: ignore[union-attr]
    first = new[0].with_changes(leading_lines=leading)
    rest = [several[0].with_changes(leading_lines=[]), *several[1:]]
    return cst.FlattenSentinel([first, *new[1:], *rest])  # type: ignore[return-value]


def _with_more(new: Sequence[cst.BaseStatement]) -> Edit:
    """New statements after one."""
    return lambda node: cst.FlattenSentinel([node, *new])  # type: ignore[return-value]


def _replaced(node: cst.CSTNode, old: cst.SimpleStatementLine, new: Sequence[cst.BaseStatement]) -> cst.CSTNode:
    """New statements in place of an old one, which may have got others before it."""
    if isinstance(node, cst.FlattenSentinel):
        return cst.FlattenSentinel([*list(node)[:-1], *new])  # type: ignore[return-value]
    return _in_place_of(old, new)


def _placed(call: cst.Call, kind: str, mesh: str) -> cst.Call:
    last = cst.Arg(cst.Name(mesh))
    first = call.args[0].with_changes(comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")))
    return call.with_changes(func=cst.Name(kind), args=[first, last])


def _second_argument(value: cst.BaseExpression) -> Edit:
    return lambda node: is_edit_of(node, cst.Call).args[1].value


def _with_function(node: cst.CSTNode) -> cst.CSTNode:
    """A function as a tf.function."""
    function = is_edit_of(node, cst.FunctionDef)
    decorator = cst.Decorator(cst.parse_expression("tf.function"))
    return function.with_changes(decorators=[decorator, *function.decorators])


def _without_function(node: cst.FunctionDef, place: int, body: Sequence[cst.BaseStatement]) -> cst.FunctionDef:
    """A function with another body, which is no tf.function any more."""
    decorators = [one for index, one in enumerate(node.decorators) if index != place]
    kept = [line for line in node.body.body[:1] if _is_docstring(line, node)]
    block = is_edit_of(node.body, cst.IndentedBlock).with_changes(body=[*kept, *body])
    return node.with_changes(decorators=decorators, body=block)


def _extended(node: cst.FunctionDef, more: Sequence[cst.BaseStatement]) -> cst.FunctionDef:
    block = is_edit_of(node.body, cst.IndentedBlock)
    return node.with_changes(body=block.with_changes(body=[*block.body, *more]))


def _with_gradients(node: cst.Return, name: str) -> cst.Return:
    assert node.value is not None
    elements = [cst.Element(node.value), cst.Element(cst.Name(name))]
    return node.with_changes(value=cst.Tuple(elements, lpar=[], rpar=[]))
