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
from migrator.emit.mesh import for_mesh, own_class, with_parameter
from migrator.findings import Severity
from migrator.migration import mesh_models
from migrator.migration.mesh_own_loops import METHODS, shape_of
from migrator.migration.replica_regularizers import unscaled_regularizer
from migrator.names.free import free
from migrator.names.imports import dotted
from migrator.program.assignments import assignments
from migrator.program.calls import calls_in, classes_in, is_docstring, string
from migrator.program.modern import RUN, STRATEGIES, Change, Check, Edit, ModernFile, is_edit_of, keyword
from migrator.program.parsed import Blocked, name_nodes, names_in
from migrator.program.scopes import returns_in
from migrator.rules.layers import add_argument
from migrator.rules.mesh import AS_LEGACY, CLIPPING, METRICS, OPTIMIZERS, SCHEDULES
from migrator.rules.site import keyword as argument
from migrator.targets import dtensor
from migrator.targets.dtensor import Layouts
from migrator.targets.plan import LoopShape

CODE, KEPT = "TFM780", "TFM799"
_KERAS = "tf.keras."
_WORDS = {name.lower(): name for name in OPTIMIZERS}
_METRIC_WORDS = frozenset(
    (
        *("accuracy", "acc", "mae", "mean_absolute_error", "mean_squared_error", "mse"),
        *("binary_accuracy", "categorical_accuracy", "sparse_categorical_accuracy"),
    )
)
#: What a model of the program may be asked for, beside what is written anew.
_OF_MODEL = frozenset(
    (
        *("add", "build", "compile", "count_params", "evaluate", "fit", "get_layer", "layers", "losses", "metrics"),
        *("name", "non_trainable_variables", "optimizer", "summary", "trainable_variables", "trainable_weights"),
        *("variables", "weights"),
    )
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
        self.around = self.above(self.call, cst.FunctionDef)
        self.own = self.own_loops()
        self.calls = [call for call in file.calls if self.above(call, cst.ClassDef) not in self.own]
        self.attributes = [one for one in file.attributes if self.above(one, cst.ClassDef) not in self.own]
        classes = [node for node in classes_in(self.module) if node not in self.own]
        self.models = mesh_models.read(
            file, self.calls, self.attributes, classes, self.call, dtensor.gathers(layouts.variables)
        )
        self.kinds = {
            node.name.value: kind
            for node in classes
            if (kind := own_class(node.name.value, mesh_models.text_of(file, node))) is not None
        }
        self.edits: list[tuple[cst.CSTNode, Edit]] = []
        self.handed: set[tuple[cst.FunctionDef, str]] = set()  # functions with a parameter for the mesh or the layouts
        self.helpers: dict[str, str] = {}
        self.imports: list[str] = []
        self.taken = set(file.parsed.names)
        self.mesh, self.scope = self.new("mesh"), self.new("layouts")
        self.done: set[cst.CSTNode] = set()  # names of the strategy that are accounted for
        self.stepped: str | None = None  # the model of a loop of the program's own
        self.loops_of_fit = False
        self.making: str | None = None  # the function that makes variables of models
        self.checking: str | None = None  # the function that checks the layouts
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
        self.replace_layers()
        self.give_mesh()
        self.rewrite_fits()
        self.rewrite_loops()
        self.rewrite_own_loops()
        self.rewrite_results()
        self.build_model()
        self.finish_model()
        for use in self.uses:
            if use not in self.done:
                self.rewrite_use(use)
        make = self.new("make_mesh")
        made = dtensor.set_up(self.layouts.variables, self.mesh, self.scope, make, self.indent)
        if self.models.draws:
            made = ["tf.keras.backend.experimental.enable_tf_random_generator()  # for dropout on a mesh", *made]
        lines = statements("\n".join(made) + "\n", self.module)
        self.helpers = {make: dtensor.make_mesh(self.layouts.dimensions, make, "    "), **self.helpers}
        message = "`MirroredStrategy` becomes a mesh of all devices, on which a step computes the whole batch once"
        found = [Change(CODE, self.call, message, severity=Severity.REVIEW, keras_2=True)]
        if self.models.draws:
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
    def replace_layers(self) -> None:
        """Layers that have no form on a mesh become those of classes of the file."""
        self.helpers.update(self.models.classes)
        for call in self.models.replaced:
            self.edit(call.func, _with(cst.Name(self.models.replaced[call])))

    def build_model(self) -> None:
        """A Sequential model gets its input's shape where it is made. Without one its first call on a mesh makes it
        anew for inputs of one axis more: dense layers take them, and convolutions raise (TensorFlow 2.21).
        """
        deferred = self.deferred
        if deferred is None or self.loops_of_fit:
            return
        line, data = self.line_of_model(), self.data_of_loop()
        if line is not None and data is not None and self.above(line, cst.With) is not None:
            given = data.args[0].value
            if isinstance(given, cst.Name) and self.file.parsed.position(data) < self.file.parsed.position(line):
                text = f"{self.stepped}.build({given.value}.element_spec[0].shape)\n"
                new = statements(text, self.module)
                self.edit(line, _with_more(new))
                return
        message = "a Sequential model of no known input, which a mesh cannot make: give its first layer `input_shape=`"
        _refuse(deferred, message)

    @property
    def deferred(self) -> cst.Call | None:
        """What makes a Sequential model of no known input, which nothing builds."""
        if self.models.own or any(_method(call) == "build" for call in self.calls):
            return None
        return next((call for call in self.calls if self.is_deferred(call)), None)

    def line_of_model(self) -> cst.SimpleStatementLine | None:
        """The line that makes the model of a loop of the program's own, where the strategy is made."""
        around = (self.around or self.module).body
        given = around.body if isinstance(around, cst.BaseSuite) else around
        made = [value for one in given for name, value in assignments(one) if name == self.stepped]
        return self.above(made[0], cst.SimpleStatementLine) if len(made) == 1 else None

    def data_of_loop(self) -> cst.Call | None:
        """What divides the first data of such a loop, in the same function."""
        line = self.line_of_model()
        return next(
            (
                call
                for call in self.calls
                if line is not None
                and _method(call) == "experimental_distribute_dataset"
                and call.args
                and self.above(call, cst.FunctionDef) is self.above(line, cst.FunctionDef)
            ),
            None,
        )

    def finish_model(self) -> None:
        """A model of a loop of the program's own gets its variables, and its layouts are checked."""
        if self.stepped is None or not (self.models.own or self.layouts.variables):
            return
        line = self.line_of_model()
        if line is None:
            message = f"`{self.stepped}` is not made by one line beside the strategy, as a mesh needs it: make it there"
            _refuse(self.call, message)
        new: list[cst.BaseStatement] = []
        places: list[cst.CSTNode] = [line]
        if self.models.own:
            built = next((call for call in self.calls if _method(call) == "build"), None)
            if built is not None:
                _refuse(
                    built, "a model of its own class gets its variables from its data, on a mesh: leave `build` out"
                )
            data = self.data_of_loop()
            target = self.parents[data] if data is not None else None
            if data is None or not isinstance(target, cst.Assign) or len(target.targets) > 1:
                message = (
                    "a model of its own class gets its variables from the shapes of its data, on a mesh: divide them "
                    "by `data = strategy.experimental_distribute_dataset(...)` where the model is made"
                )
                _refuse(line, message)
            new += self.made_variables(self.stepped, f"{self.text(target.targets[0].target)}.dataset")
            places.append(data)
        new += self.checked(line, self.stepped)
        last = max((self.whole_statement(one) for one in places), key=self.file.parsed.position)
        self.edit(last, lambda node: _after(node, new))

    def whole_statement(self, node: cst.CSTNode) -> cst.CSTNode:
        """The statement around a node of the block in which the strategy is made."""
        block = self.module if self.around is None else self.around.body
        while self.parents[node] is not block:
            node = self.parents[node]
        return node

    def made_variables(self, model: str, dataset: str) -> list[cst.BaseStatement]:
        """A line that makes the variables of a model of the program's own class."""
        if self.making is None:
            self.making = self.new("make_variables")
            self.helpers[self.making] = dtensor.make_variables(self.making, "    ")
        return list(statements(f"{self.making}({model}, {dataset}, {self.mesh})\n", self.module))

    def is_deferred(self, call: cst.Call) -> bool:
        """Whether a call makes a Sequential model whose first layer does not say what its input is."""
        if (self.file.name(call.func) or "").rpartition(".")[2] != "Sequential":
            return False
        layers = call.args[0].value if call.args else None
        inner: Sequence[cst.BaseExpression] = [one for one in self.calls if _method(one) == "add"]
        if isinstance(layers, (cst.List, cst.Tuple)) and layers.elements:
            first = layers.elements[0].value
            inner = [self.file.value_of(first) or first]
        text = " ".join(self.text(one) for one in inner)
        return not any(word in text for word in ("input_shape", "input_dim", "Input(", "InputLayer(", "Embedding("))

    def give_mesh(self) -> None:
        """Optimizers and metrics are given the mesh."""
        mesh = argument("mesh", cst.Name(self.mesh))
        for node in classes_in(self.module):
            text = for_mesh(node.name.value, mesh_models.text_of(self.file, node))
            if node not in self.own and text is not None:
                made = cst.ensure_type(cst.parse_statement(text, self.module.config_for_parsing), cst.ClassDef)
                self.edit(node, _with(made.with_changes(leading_lines=node.leading_lines)))

        def with_mesh(node: cst.CSTNode) -> cst.CSTNode:
            call = is_edit_of(node, cst.Call)
            func = dotted(call.func) or ""
            if ".legacy." in func:
                call = call.with_changes(func=cst.parse_expression(func.replace(".legacy.", ".")))
            return call.with_changes(args=add_argument(list(call.args), mesh))

        for call in self.calls:
            name = self.file.name(call.func) or ""
            kind = name.rpartition(".")[2]
            if name.startswith((f"{_KERAS}optimizers.schedules.", "tf.optimizers.schedules.")):
                if kind not in SCHEDULES:
                    _refuse(call, f"`{kind}` was not tried on a mesh: take another schedule of Keras", "TFM792")
            elif name.startswith((f"{_KERAS}optimizers.", "tf.optimizers.", "tf.train.", "tf.compat.v1.train.")):
                if name.startswith("tf.train."):
                    continue  # saving one is the same on a mesh
                self.check_optimizer(call, name, kind)
                self.reach(call, self.mesh)
                self.edit(call, with_mesh)
            elif name.startswith((f"{_KERAS}metrics.", "tf.metrics.")) and kind[:1].isupper():
                if kind not in METRICS:
                    _refuse(call, f"`{kind}` was not tried on a mesh: leave the metric out", "TFM793")
                self.reach(call, self.mesh)
                self.edit(call, with_mesh)
            elif self.kinds.get(dotted(call.func) or "", "") in OPTIMIZERS:
                if self.models.embeds:
                    message = "treats rows of an embedding that a batch does not use otherwise with dense gradients"
                    _refuse(call, f"`{dotted(call.func)}` {message}: keep the MirroredStrategy", "TFM792")
                self.reach(call, self.mesh)
                self.edit(call, with_mesh)
            elif _method(call) in ("restore", "restore_or_initialize", "load_weights"):
                _refuse(call, "weights that are read from a checkpoint: restore them by hand, after `optimizer.build`")

    def rewrite_results(self) -> None:
        """What a metric has counted leaves the mesh: text is not formatted of a tensor there (TensorFlow 2.21)."""
        for call in self.calls:
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
        if kind in AS_LEGACY and ".legacy." in (dotted(call.func) or ""):
            name = name.replace(".legacy.", ".")
        if known is None or name.count(".") > 3 or name.startswith("tf.compat."):
            message = (
                f"`{name}` was not tried on a mesh: take one of {', '.join(sorted(OPTIMIZERS))} of tf.keras.optimizers"
            )
            _refuse(call, message, "TFM792")
        for place, arg in enumerate(call.args):
            word = arg.keyword.value if arg.keyword is not None else None
            if arg.star or (word is None and place > 0):
                _refuse(call, f"arguments of `{kind}` without a name: write them as keywords", "TFM792")
            if self.models.embeds and word in CLIPPING:
                message = f"`{word}` with an embedding clips something else in dense gradients: leave it out"
                _refuse(call, message, "TFM792")
            if word is not None and word not in known | CLIPPING | {"name"}:
                _refuse(call, f"`{word}` of `{kind}` was not tried on a mesh: leave it out", "TFM792")

    # -- where the mesh is known --
    def reach(self, node: cst.CSTNode, name: str) -> None:
        """Hands the mesh (or the layouts), which a place reads, to the function that the place is in."""
        if self.around is None:
            return
        one: cst.CSTNode | None = node
        function: cst.CSTNode | None = None
        while one is not None and one is not self.around:
            function = one if isinstance(one, (cst.FunctionDef, cst.ClassDef)) else function
            one = self.parents.get(one)
        if one is not None:
            return
        if not isinstance(function, cst.FunctionDef):
            what = self.text(node.func if isinstance(node, cst.Call) else node)
            where = (
                "in a class"
                if isinstance(function, cst.ClassDef)
                else "outside of the function that makes the strategy"
            )
            _refuse(
                node, f"`{what}` needs the mesh {where}, where there is none: take it to where the strategy is made"
            )
        if (function, name) not in self.handed:
            self.handed.add((function, name))
            self.edit(function, lambda old: _with_parameter(is_edit_of(old, cst.FunctionDef), name))
            self.hand(function, name)

    def hand(self, function: cst.FunctionDef, name: str) -> None:
        """Gives all calls of a function the mesh."""
        given = argument(name, cst.Name(name))

        def with_it(node: cst.CSTNode) -> cst.CSTNode:
            call = is_edit_of(node, cst.Call)
            return call.with_changes(args=add_argument(list(call.args), given))

        for use in name_nodes(self.module):
            if use.value != function.name.value or use is function.name:
                continue
            call = self.parents[use]
            if not isinstance(call, cst.Call) or call.func is not use or any(arg.star for arg in call.args):
                message = f"needs the mesh, and is not called by its name here: call `{use.value}(...)`"
                _refuse(use, f"`{use.value}` {message}")
            self.reach(call, name)
            self.edit(call, with_it)

    # -- uses of the strategy --
    def rewrite_use(self, use: cst.Name) -> None:
        attribute = self.parents[use]
        if self.is_handed(use, attribute):
            self.edit(use, _with(cst.Name(self.scope)))
            return
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

    def is_handed(self, use: cst.Name, above: cst.CSTNode) -> bool:
        """Whether the strategy is the parameter of a function of the same name, or is given to one."""
        if isinstance(above, cst.Param):
            parameters = self.parents[above]
            function = self.parents.get(parameters)
            if above.default is None and isinstance(function, cst.FunctionDef):
                self.handed.add((function, self.scope))
                return True
        call = self.parents.get(above)
        if not isinstance(above, cst.Arg) or not isinstance(call, cst.Call) or above.star:
            return False
        given = [function for function in self.file.functions if function.name.value == dotted(call.func)]
        if len(given) != 1 or not isinstance(self.parents[given[0]], cst.Module):
            return False
        if above.keyword is not None:
            return False
        place = call.args.index(above)
        names = [parameter.name.value for parameter in given[0].params.params]
        return names[place : place + 1] == [use.value]

    def rewrite_count(self, attribute: cst.Attribute) -> None:
        """In a step there is one replica, the mesh: a product with their number, or a quotient, is the value itself."""
        if not self.file.runs_on_replicas(attribute):
            self.edit(attribute, _with_text(f"{self.mesh}.size"))
            return
        whole = self.parents[attribute]
        scales = isinstance(whole, cst.BinaryOperation) and isinstance(whole.operator, (cst.Divide, cst.Multiply))
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
        compiled = [call for call in self.calls if _method(call) == "compile"]
        models = {dotted(call.func.value) for call in compiled if isinstance(call.func, cst.Attribute)}
        for attribute in self.attributes:
            if dotted(attribute.value) in models and attribute.attr.value not in _OF_MODEL:
                message = (
                    f"`{self.text(attribute)}` is not written for a mesh, whose model Keras' own loops do not run: do "
                    "it in a program of its own"
                )
                _refuse(attribute, message)
        for call in compiled:  # in a function that gives the model to others
            builder = self.above(call, cst.FunctionDef)
            models |= self.given_by(builder) if builder is not None else set()
        fits, tests = ([call for call in self.calls if _method(call) == word] for word in ("fit", "evaluate"))
        if compiled and not self.own:
            for call in (*fits, *tests):
                if _receiver(call) not in models:
                    message = "is not known to be the model that is compiled here: compile it where it is trained"
                    _refuse(call, f"`{self.text(call.func)}` {message}")
        fits, tests = ([call for call in several if _receiver(call) in models] for several in (fits, tests))
        if not fits and not tests:
            return
        if len(compiled) != 1:
            _refuse(compiled[-1], "several models are compiled: a mesh is written for one in a file")
        measures = self.rewrite_compile(compiled[0])
        first = min([*fits, *tests], key=self.file.parsed.position)
        model = _receiver(first) or ""
        self.reach(first, self.mesh)
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
        data = next((arg.value for arg in first.args if arg.keyword is None or arg.keyword.value == "x"), None)
        before: list[cst.BaseStatement] = []
        if self.deferred is not None and data is not None:
            self.reach(first, self.scope)
            text = f"with {self.scope}.scope():\n{self.indent}{model}.build({self.text(data)}.element_spec[0].shape)\n"
            before += statements(text, self.module)
        if self.models.own and data is not None:
            before += self.made_variables(model, self.text(data))
        made = [*before, *self.checked(first, model), *made]
        self.loops_of_fit = True
        self.edit(line, lambda node: _before(node, made))

    def given_by(self, function: cst.FunctionDef) -> set[str | None]:
        """The names that are given what a function returns."""
        returns = {name.value for one in returns_in(function.body) if one.value is not None for name in name_nodes(one)}
        if not returns:
            return set()
        return {
            name
            for block in (self.module, *(one.body for one in self.file.functions))
            for name, value in assignments(block)
            if isinstance(value, cst.Call) and dotted(value.func) == function.name.value
        }

    def checked(self, place: cst.CSTNode, model: str) -> list[cst.BaseStatement]:
        """Lines that check that all layouts are those of a variable."""
        if not self.layouts.variables:
            return []
        self.reach(place, self.scope)
        if self.checking is None:
            self.checking = self.new("check_layouts")
            self.helpers[self.checking] = dtensor.check_layouts(self.checking, "    ", bool(self.models.own))
            self.imports.append("re")
        return list(statements(f"{self.checking}({model}, {self.scope})\n", self.module))

    # -- loops that the codemod wrote --
    def own_loops(self) -> dict[cst.CSTNode | None, LoopShape]:
        """The classes of steps of the file, and what they do."""
        found: dict[cst.CSTNode | None, LoopShape] = {}
        for node in classes_in(self.module):
            text = self.text(node.with_changes(leading_lines=[]))
            shape = None if node.bases else shape_of(text, node.name.value, self.indent)
            if shape is not None:
                found[node] = shape
        return found

    def rewrite_own_loops(self) -> None:
        """A class of steps that `--loop custom` wrote becomes that of a mesh, which is made with it."""
        for node, shape in self.own.items():
            assert isinstance(node, cst.ClassDef)
            name = node.name.value
            [new] = statements(dtensor.training_loop(name, "    ", shape), self.module)
            self.edit(node, _with(new.with_changes(leading_lines=node.leading_lines)))
            for use in name_nodes(self.module):
                if use.value == name and use is not node.name:
                    self.rewrite_own_loop(use)

    def rewrite_own_loop(self, use: cst.Name) -> None:
        call = self.parents[use]
        if not isinstance(call, cst.Call) or call.func is not use or not call.args:
            _refuse(use, f"`{use.value}` is handed around: make the loop by `loop = {use.value}(model)`")
        line = self.statement_of(call)
        model, *rest = call.args
        kept = [arg for arg in rest if arg.keyword is None or arg.keyword.value != "steps_per_call"]
        given = ", ".join([self.text(model.value), self.mesh, *(self.text(arg.value) for arg in kept)])
        self.reach(call, self.mesh)
        self.edit(call, _with_text(f"{use.value}({given})"))
        checks = self.checked(call, self.text(model.value))
        if checks:
            self.edit(line, lambda node: _before(node, checks))
        loops = {name for name, value in assignments(line) if value is call}
        for attribute in self.attributes:
            word = attribute.attr.value
            if dotted(attribute.value) not in loops or word in METHODS:
                continue
            draw = self.parents[attribute]
            drawn = draw.args[0].value if isinstance(draw, cst.Call) and len(draw.args) == 1 else None
            if word != "own_batches" or not isinstance(drawn, cst.Lambda):
                _refuse(attribute, f"`{self.text(attribute)}` is not there on a mesh: leave it out")
            self.reach(attribute, self.mesh)
            text = f"{self.text(attribute.value)}.rounds({self.text(drawn.body)}, {self.mesh}.size)"
            self.edit(draw, _with_text(text))

    def inside(self, node: cst.CSTNode, block: cst.CSTNode) -> bool:
        one: cst.CSTNode | None = node
        while one is not None and one is not block:
            one = self.parents.get(one)
            if isinstance(one, (cst.FunctionDef, cst.Lambda)) and one is not block:
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
                self.reach(arg.value, self.mesh)
                self.edit(arg.value, _with_text(f"tf.keras.optimizers.{kind}(mesh={self.mesh})"))
            elif word == "metrics":
                measures = self.check_metrics(arg.value)
        return measures

    def check_metrics(self, node: cst.BaseExpression) -> bool:
        if not isinstance(node, (cst.List, cst.Tuple)):
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
        if isinstance(validation, (cst.Tuple, cst.List)):
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
            for call in self.calls
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
        mesh_models.check_step(self.file, step)
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
        if self.models.own or self.deferred is not None:
            self.check_features(step, self.stepped)
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
        if not isinstance(value, (cst.Tuple, cst.List)):
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

    def check_features(self, step: cst.FunctionDef, model: str) -> None:
        """Refuses steps whose model does not take the first part of a batch, of which its variables are made."""
        names = [parameter.name.value for parameter in step.params.params]
        if len(names) == 1:
            parts = [one for one, value in assignments(step.body) if dotted(value) == names[0]]
            names = parts if len(parts) > 1 else names
        for call in calls_in(step.body):
            if dotted(call.func) == model and (not call.args or dotted(call.args[0].value) != names[0]):
                message = (
                    f"`{model}` gets its variables from the shapes of its data, on a mesh: give it the first part of a "
                    "batch as it is, `features, labels = inputs`"
                )
                _refuse(call, message)

    def check_scaling(self, step: cst.FunctionDef, found: _Gradients) -> None:
        """Refuses losses whose sum over the replicas is not that of the whole batch."""
        by_name = {function.name.value: function for function in self.file.functions}
        reached = [step]
        for one in reached:  # and what they call
            called = (by_name.get(dotted(call.func) or "") for call in calls_in(one.body))
            reached += [function for function in dict.fromkeys(called) if function and function not in reached]
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
        unscaled = unscaled_regularizer(self.file, reached)
        if unscaled is not None:
            message = (
                "the terms of regularizers count once for each replica, and once on a mesh: write "
                "`tf.nn.scale_regularization_loss(tf.add_n(model.losses))`, which counts them once on both"
            )
            _refuse(unscaled, message)
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
        if value is None or isinstance(value, (cst.Tuple, cst.Dict, cst.List)):
            _refuse(found[0], "the step returns several values: let it return the loss, and keep others in metrics")
        return found[0]

    def body_of(self, run: cst.Call, around: cst.FunctionDef, returns: bool) -> bool:
        """Whether a tf.function returns the sum of what its step returns. Raises Blocked for other bodies."""
        body = [line for line in around.body.body if not is_docstring(line)]
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


def _decorator(file: ModernFile, function: cst.FunctionDef) -> int | None:
    """Which decorator makes a function a tf.function, without arguments."""
    found = [i for i, one in enumerate(function.decorators) if file.name(one.decorator) == "tf.function"]
    return found[0] if found else None


def _with_text(text: str) -> Edit:
    """An expression in place of another one."""
    return lambda node: cst.parse_expression(text)


def _with(new: cst.CSTNode) -> Edit:
    """A node in place of another one."""
    return lambda node: new


def _with_parameter(node: cst.FunctionDef, name: str) -> cst.FunctionDef:
    return node.with_changes(params=with_parameter(node.params, name))


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


def _after(node: cst.CSTNode, new: Sequence[cst.BaseStatement]) -> cst.CSTNode:
    """New statements after one, or after the several that it has become."""
    several = list(node) if isinstance(node, cst.FlattenSentinel) else [node]
    return cst.FlattenSentinel([*several, *new])  # type: ignore[return-value]


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
    kept = [line for line in node.body.body[:1] if is_docstring(line)]
    block = is_edit_of(node.body, cst.IndentedBlock).with_changes(body=[*kept, *body])
    return node.with_changes(decorators=decorators, body=block)


def _extended(node: cst.FunctionDef, more: Sequence[cst.BaseStatement]) -> cst.FunctionDef:
    block = is_edit_of(node.body, cst.IndentedBlock)
    return node.with_changes(body=block.with_changes(body=[*block.body, *more]))


def _with_gradients(node: cst.Return, name: str) -> cst.Return:
    assert node.value is not None
    elements = [cst.Element(node.value), cst.Element(cst.Name(name))]
    return node.with_changes(value=cst.Tuple(elements, lpar=[], rpar=[]))
