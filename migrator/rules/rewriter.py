"""One walk that carries every TensorFlow 1 reference of a tree over to TensorFlow 2.

Calls with a rule of their own (layers, initializers, optimizers, ...) are rewritten by it, symbols that live on are
renamed, and what has no home is a problem, to be reported at its line.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import libcst as cst

from migrator.findings import Severity
from migrator.names.compat import only_two
from migrator.names.fate import without_native_form
from migrator.names.imports import ImportMap, dotted, imports_tensorflow
from migrator.names.pure import kept
from migrator.names.symbols import TEXTS, Home, home, is_namespace
from migrator.program.calls import is_none
from migrator.program.modes import TRAIN, ModeNames
from migrator.program.parsed import Blocked
from migrator.rules import (
    datasets,
    embeddings,
    images,
    initializers,
    keras3,
    keras_layers,
    layers,
    logs,
    mnist,
    partitioners,
    recurrent,
    symbolic,
    weights,
)
from migrator.rules.catalogue import call_rules, phases
from migrator.rules.dropout import is_training_dropout, training_dropout
from migrator.rules.inputs import is_iterator
from migrator.rules.optimizers import compiled, starts_at_zero
from migrator.rules.rule import Example, Rule
from migrator.rules.scopes import read_scopes
from migrator.rules.site import CallRule, Site, TrainingContext, expression, free_name
from migrator.walking import Transformer

# Classes that TensorFlow 1 has under the same name, but not the same ones.
_OF_TWO = frozenset(
    f"tf.{name}"
    for name in (
        "keras.callbacks.TensorBoard",
        "keras.experimental.LinearModel",
        "keras.experimental.WideDeepModel",
        "train.Checkpoint",
    )
)
# Names that TensorFlow does not promise, but that work in 2.15.1 and 2.21 as in 1.15.5 (run in each).
_KEPT = frozenset(("tf.python.client.device_lib.list_local_devices",))
# Of a Keras model that is trained as it is; the graph of a model_fn does not move its averages.
_OF_KERAS_MODELS = frozenset(("tf.keras.layers.BatchNormalization",))
RULES = (
    Rule(
        "TFM203",
        "a TensorFlow 1 symbol without a native rule",
        Severity.MANUAL,
        """
The program uses a symbol that tf-migrate cannot carry over: it is gone from TensorFlow 2, lives on only in
`tf.compat.v1`, or is not covered yet. The whole program is left as it was. Replace the line by hand (or remove it) and
run tf-migrate again.
""",
        (Example("tf.placeholder(tf.float32)", None), Example('tf.get_variable("w", [3])', None)),
    ),
    Rule(
        "TFM259",
        "a private name that stays",
        Severity.REVIEW,
        """
The program imports from `tensorflow.python` what TensorFlow 2 still has there, under the same name and with the same
results (`device_lib.list_local_devices`, run in 1.15.5, 2.15.1 and 2.21). It stays as it is. TensorFlow does not
promise to keep it: `tf.config.list_physical_devices()` and `list_logical_devices()` are the public way to ask for
devices, with other attributes.
""",
    ),
    Rule(
        "TFM204",
        "a call whose arguments changed between versions",
        Severity.MANUAL,
        """
The symbol lives on, but an argument of this call has no counterpart in TensorFlow 2. Write the call with the arguments
that both versions share. Arguments that only have another name or place now (`keep_dims`, `reduction_indices`,
`dimension`, `squeeze_dims`) are supported.
""",
        (
            Example("tf.constant(1.0, shape=[2], verify_shape=True)", None),
            Example("tf.name_scope(name, 'block', [x])", None),
            Example("tf.reduce_mean(*arguments)", None),
        ),
    ),
    Rule(
        "TFM209",
        "names that cannot be resolved to TensorFlow",
        Severity.MANUAL,
        """
A migrated file has one `import tensorflow as tf` at its top, and `tf` means TensorFlow everywhere in it. A program is
left as it was where `tf`, or another name imported from TensorFlow, also stands for something else in the same file,
where TensorFlow is imported by `import *`, only inside a function, or through another module of the project.
""",
        (Example("print(tf)", None),),
    ),
    Rule(
        "TFM175",
        "TensorFlow 1 modules of TensorFlow Hub",
        Severity.MANUAL,
        """
`hub.Module` (and the feature columns made of one) puts the graph of a module in the TF1 Hub format into a session's
graph, with variables that the session initialises. There are no sessions any more, and newer versions of
tensorflow_hub do not have it. Most publishers offer the same module as a TF2 SavedModel under another handle:
`hub.KerasLayer(handle, trainable=True)` takes its place. That its weights are the same is the publisher's to say, so
tf-migrate does not exchange it. A bridge (`--style bridge`, or `auto`) keeps the module: its graph and its variables go
into that of the model_fn, as before.
""",
    ),
    Rule(
        "TFM208",
        "symbols that moved",
        Severity.MIGRATED,
        """
The same Python object under another name (compared object by object in TensorFlow 2.21), or a function that means the
same for the arguments given.
""",
        (
            Example("tf.log(x)", "tf.math.log(x)"),
            Example("tf.GraphKeys.GLOBAL_STEP", '"global_step"'),
            Example(
                "tf.contrib.linalg.LinearOperatorLowerTriangular(x).to_dense()",
                "tf.linalg.LinearOperatorLowerTriangular(x).to_dense()",
            ),
            Example("tf.to_float(x)", "tf.cast(x, tf.float32)"),
            Example("x.shape[-1].value", "x.shape[-1]"),
            Example("x.get_shape()[1].value * 2", "x.get_shape()[1] * 2"),
            Example("tf.random_uniform([2])", "tf.random.uniform([2])"),
            Example("tf.argmax(logits, 1)", "tf.argmax(logits, 1)"),
            Example("tf.argmax(logits, dimension=1)", "tf.argmax(logits, axis=1)"),
            Example("tf.reduce_mean(x, keep_dims=True)", "tf.reduce_mean(x, keepdims=True)"),
            Example("tf.reduce_sum(x, reduction_indices=[1])", "tf.reduce_sum(x, axis=[1])"),
            Example("tf.nn.in_top_k(logits, labels, 5)", "tf.math.in_top_k(predictions=logits, targets=labels, k=5)"),
            Example("tf.gather(x, y, name='g', axis=1)", "tf.gather(x, y, name='g', axis=1)"),
            Example("tf.gfile.Copy(a, newpath=b)", "tf.io.gfile.copy(a, dst=b)"),
            Example('tf.name_scope("block")', 'tf.name_scope("block")'),
            Example('tf.name_scope("loss", [logits, labels])', 'tf.name_scope("loss")'),
            Example('tf.name_scope(None, "loss", values=[x])', 'tf.name_scope("loss")'),
            Example("tf.app.run()", "absl.app.run(main)"),
            Example("tf.app.run(argv=sys.argv)", "absl.app.run(main, argv=sys.argv)"),
            Example("tf.app.run(None, sys.argv)", "absl.app.run(main, sys.argv)"),
            Example("tf.VERSION", "tf.version.VERSION"),
            Example("tf.estimator.ModeKeys.EVAL", '"eval"'),
            Example('tf.flags.DEFINE_string("data", "", "Folder.")', 'absl.flags.DEFINE_string("data", "", "Folder.")'),
        ),
    ),
)

_CASTS = {"tf.to_float": "float32", "tf.to_double": "float64", "tf.to_int32": "int32", "tf.to_int64": "int64"}


def _cast(site: Site) -> cst.BaseExpression:
    value = site.arguments(("x", "name"), "TFM204")["x"]
    return cst.parse_expression(f"tf.cast({site.code(value)}, tf.{_CASTS[site.name]})")


def _app_run(site: Site) -> cst.BaseExpression:
    args = list(site.call.args)
    given = next((i for i, arg in enumerate(args) if arg.keyword is None or arg.keyword.value == "main"), None)
    asks = given is None or is_none(args[given].value)
    if asks and site.training.taken and "main" not in site.training.taken:
        raise Blocked("TFM204", site.original, "`tf.app.run()` calls `main`, which this script does not define")
    if given is None:  # the `main` of the script
        comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")) if args else cst.MaybeSentinel.DEFAULT
        args.insert(0, cst.Arg(cst.Name("main"), comma=comma))
    elif is_none(args[given].value):
        args[given] = args[given].with_changes(value=cst.Name("main"))
    if site.imports is not None and "argparse" in site.imports.names.values():
        # tf.app.run leaves arguments that are no flags to main; absl.app.run ends the program at the first of them.
        parser = cst.parse_expression("lambda argv: absl.flags.FLAGS(argv, known_only=True)")
        equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
        last = args[-1]
        args[-1] = last.with_changes(comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")))
        args.append(cst.Arg(parser, keyword=cst.Name("flags_parser"), equal=equal))
    return site.call.with_changes(func=cst.parse_expression("absl.app.run"), args=args)


_FLAGS = ("tf.flags", "tf.app.flags")
_HUB = (
    "Module",
    "ModuleSpec",
    "create_module_spec",
    "load_module_spec",
    "text_embedding_column",
    "image_embedding_column",
)
_LAYERS = ("tf.layers.", "tf.contrib.layers.", "tf.contrib.slim.")
_PHASES = phases()
_READ_AS_WRITTEN = ("reuse", "normalizer_fn", "updates_collections")
_NEEDS = {
    **dict.fromkeys(mnist.LOADERS, ("types",)),
    **dict.fromkeys(mnist.TABLES, ("csv", "types")),
    "tf.app.run": ("absl.app",),
}
_CALLS: dict[str, CallRule] = {
    "tf.app.run": _app_run,
    **call_rules(),
    **dict.fromkeys(_CASTS, _cast),
}


_REFERENCES = {**initializers.REFERENCES, **logs.REFERENCES, **images.REFERENCES}
# What datasets and iterators of TensorFlow 1 said of their elements; nothing else has these attributes.
_OF_DATASETS = {"output_types": "dtype", "output_shapes": "shape"}
# Protocol messages: the same classes in both versions, which TensorFlow 2 has under this name only.
_MESSAGES = tuple(
    f"tf.{name}"
    for name in (
        *("AttrValue", "ConfigProto", "Event", "GPUOptions", "GraphDef", "GraphOptions", "HistogramProto"),
        *("LogMessage", "MetaGraphDef", "NameAttrList", "NodeDef", "OptimizerOptions", "RunMetadata", "RunOptions"),
        *("SessionLog", "Summary", "SummaryMetadata", "TensorInfo"),
    )
)


def is_dimension(node: cst.Attribute) -> bool:
    """Whether this is `x.shape[i].value` or `x.get_shape()[i].value`: TensorFlow 2 gives the number itself."""
    if node.attr.value != "value" or not isinstance(node.value, cst.Subscript) or len(node.value.slice) != 1:
        return False
    whole = node.value.value
    if isinstance(whole, cst.Call):
        return isinstance(whole.func, cst.Attribute) and whole.func.attr.value == "get_shape" and not whole.args
    return isinstance(whole, cst.Attribute) and whole.attr.value == "shape"


def _is_reduction(name: str | None) -> bool:
    return name is not None and name.startswith("tf.losses.Reduction.")


class Rewriter(Transformer):
    """Rewrites every TensorFlow reference below a node.

    `problems` collects what could not be carried over, `partitioners` the partitioners of variable scopes (the node
    that gave each, and it with the values of names that are `local` to a function), `remarks` what is carried over and
    should be looked at, `classes` the classes that the file needs (name and text). `updates` says whether the program
    runs UPDATE_OPS (None: one does, another does not). `replaced` are calls, names and attributes that somebody else
    found the new form of.
    Visit only nodes of the file's own tree, so that problems have places.
    """

    def __init__(
        self,
        imports: ImportMap,
        code: Callable[[cst.CSTNode], str],
        modes: ModeNames | None = None,
        keep_regularizers: bool = True,
        definition: Callable[[str], cst.BaseExpression | None] = lambda name: None,
    ) -> None:
        super().__init__()
        self.imports = imports
        self.code = code
        self.modes = modes
        self.keep_regularizers = keep_regularizers
        self.definition = definition
        self.problems: list[Blocked] = []
        self.partitioners: list[tuple[cst.CSTNode, cst.BaseExpression]] = []
        self.local: Callable[[str], cst.BaseExpression | None] = lambda name: None
        self.unsplit: list[cst.Call] = []  # layers outside of scopes with a partitioner
        self.splits_all = False
        self.tables = embeddings.NO_TABLES
        self._split_tables: set[cst.CSTNode] = set()
        self._mixing: list[tuple[cst.CSTNode, cst.Call]] = []  # tables, and lookups that give the ids to parts in turn
        self._splitting = 0
        self.split_scopes: list[tuple[cst.CSTNode, cst.Call]] = []  # partitioners, and the scopes that stay of theirs
        self.updates: bool | None = True
        self.remarks: list[Blocked] = []
        self.classes: dict[str, str] = {}
        self.training_calls: set[cst.CSTNode] = set()  # dropouts that run in TRAIN mode only
        self.dropped_regularizers: list[cst.CSTNode] = []
        self.needs: set[str] = set()
        self.training = TrainingContext()
        self.of_keras_models = False
        self.moves_averages = False  # the training moves those of the batch normalizations of Keras, as `fit` does
        self.replaced: dict[cst.CSTNode, cst.BaseExpression] = {}
        self.dropped_arguments: Mapping[cst.CSTNode, frozenset[int]] = {}  # of calls of helpers, by index
        self.untold: Collection[cst.CSTNode] = ()  # calls of Keras layers that nobody told to train
        self._consumed: set[cst.CSTNode] = set()
        self._known_objects: set[cst.CSTNode] = set()
        self._object_classes: dict[str, str | None] = {}

    def values_of(self, name: str) -> list[cst.BaseExpression | None]:
        """What a name is given anywhere in the file; None for what is not known."""
        return []

    def of_network(self, new: cst.CSTNode, place: cst.CSTNode) -> cst.CSTNode:
        """New code that builds a network, as the generation of Keras wants it; its problems are reported at `place`."""
        if self.training.keras.symbolic_tensorflow and symbolic.selects(new):
            name = free_name("where", self.training.taken)
            self.classes[name] = symbolic.SELECT.replace("{name}", name)
            new = symbolic.selecting_by(new, name)
        by_name = symbolic.in_network(new, images.helpers_in(self.classes), self.values_of)
        if by_name is not None:
            code = "TFM244" if by_name in self.classes else "TFM240"
            message = f"the network would call `{by_name}`, which rejects symbolic Keras tensors"
            self.problems.append(Blocked(code, place, message))
        asked = symbolic.asked_of_tensors(new)
        if asked is not None:
            message = f"the network uses `{asked}` of a tensor, which symbolic Keras tensors do not have"
            self.problems.append(Blocked("TFM240", place, message))
        if self.training.keras.symbolic_tensorflow:
            return new
        carried = keras3.on_symbolic(new, self.code)
        self.problems += [Blocked(code, place, message) for code, message in carried.problems]
        self.remarks += [Blocked(code, place, message) for code, message in carried.remarks]
        self.classes.update(carried.classes)
        return carried.node

    def visit_Import(self, node: cst.Import) -> bool:
        self._import(node)
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        self._import(node)
        return False

    def _import(self, node: cst.Import | cst.ImportFrom) -> None:
        """An import below the node that is rewritten: of TensorFlow it cannot stay."""
        if imports_tensorflow(node) is not False:
            self.problems.append(
                Blocked("TFM209", node, "TensorFlow is imported inside a function: import it at the top of the file")
            )

    def visit_Comparison(self, node: cst.Comparison) -> bool:
        return self.modes is None or self.modes.when(node) is None

    def visit_IfExp(self, node: cst.IfExp) -> None:
        if self._in_training(node.test) and is_training_dropout(node.body, node.orelse, self.imports):
            self.training_calls.add(node.body)

    def leave_IfExp(self, original_node: cst.IfExp, updated_node: cst.IfExp) -> cst.BaseExpression:
        return updated_node.body if original_node.body in self.training_calls else updated_node

    def visit_If(self, node: cst.If) -> None:
        call = self._dropout_of(node)
        if call is not None:
            self.training_calls.add(call)

    def leave_If(
        self, original_node: cst.If, updated_node: cst.If
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement]:
        """`if mode == TRAIN: net = dropout(net)` inside a loop, say: what a Keras dropout does by itself."""
        if self._dropout_of(original_node) is None:
            return updated_node
        assert isinstance(updated_node.body, cst.IndentedBlock)
        statement = updated_node.body.body[0]
        assert isinstance(statement, cst.SimpleStatementLine)
        lines = [*original_node.leading_lines, *statement.leading_lines]
        return cst.FlattenSentinel([statement.with_changes(leading_lines=lines)])

    def _in_training(self, test: cst.BaseExpression) -> bool:
        return self.modes is not None and self.modes.when(test) == frozenset((TRAIN,))

    def _dropout_of(self, node: cst.If) -> cst.Call | None:
        """The dropout that is all that an `if` of the TRAIN mode does."""
        if not isinstance(node.body, cst.IndentedBlock) or len(node.body.body) != 1 or node.orelse is not None:
            return None
        return training_dropout(node.body.body[0], self.imports) if self._in_training(node.test) else None

    def visit_Param(self, node: cst.Param) -> bool:
        return node.default is not None

    def visit_Arg(self, node: cst.Arg) -> bool:
        if node.keyword is not None:
            self._consumed.add(node.keyword)
        return node.value not in self.training.skipped

    def visit_With(self, node: cst.With) -> bool:
        try:
            scopes = read_scopes(node, self.imports, self.training.own)
        except Blocked as problem:
            self.problems.append(problem)
            return True
        for item, scope in scopes.items():
            self._consumed.add(item)
            if scope.partitioner is not None:
                self._collect_partitioner(scope.partitioner)
                self._splitting += 1
        return True

    def visit_WithItem(self, node: cst.WithItem) -> bool:
        return node not in self._consumed

    def leave_With(
        self, original_node: cst.With, updated_node: cst.With
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement]:
        if not any(item in self._consumed for item in original_node.items):
            return updated_node
        scopes = read_scopes(original_node, self.imports, self.training.own)
        items: list[cst.WithItem] = []
        for old, new in zip(original_node.items, updated_node.items):
            scope = scopes.get(old)
            if scope is None:
                items.append(new)
                continue
            if scope.partitioner is not None:
                self._splitting -= 1
            if scope.name is None:
                continue
            call = cst.Call(cst.parse_expression("tf.name_scope"), [cst.Arg(scope.name)])
            if scope.partitioner is not None:
                self.split_scopes.append((scope.partitioner, call))
            if not any(self.code(one.item) == self.code(call) for one in items):
                items.append(new.with_changes(item=call, asname=None))
        if items:
            items[-1] = items[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
            return updated_node.with_changes(items=items)
        assert isinstance(updated_node.body, cst.IndentedBlock)
        first, *rest = updated_node.body.body
        if isinstance(first, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
            first = first.with_changes(leading_lines=[*original_node.leading_lines, *first.leading_lines])
        return cst.FlattenSentinel([first, *rest])

    def takes_partitioner(self, statement: cst.CSTNode) -> bool:
        """Whether a statement only gives the variables after it a partitioner, which is noted then."""
        given = partitioners.set_in_scope(statement, self.imports)
        if given is None:
            return False
        if not is_none(given):
            self._collect_partitioner(given)
            self.splits_all = True
            self._check_tables()
        return True

    def _collect_partitioner(self, node: cst.BaseExpression) -> None:
        try:
            self.partitioners.append((node, partitioners.expanded(node, self.definition, self.local)))
        except Blocked as problem:
            self.problems.append(problem)

    def visit_Call(self, node: cst.Call) -> bool:
        if node in self.replaced:
            return False
        if is_iterator(node):
            self.problems.append(
                Blocked("TFM601", node, "these iterator tensors are used, not just returned: do this in `Dataset.map`")
            )
        name = self.imports.tensorflow(node.func)
        if name is None:
            self._check_hub(node)
        own = self.training.own
        owned = node in own.weights
        if name is not None and (
            name in _CALLS
            or owned
            or node in own.cells
            or node in own.recurrent
            or node in self.tables.variables
            or node in self.tables.lookups
        ):
            self._consumed.add(node.func)
        if name == "tf.logging.set_verbosity":
            self._consumed.update(arg.value for arg in node.args if self.imports.tensorflow(arg.value) in logs.LEVELS)
        if name is not None and name.startswith("tf.losses."):
            reductions = (arg.value for arg in node.args if _is_reduction(self.imports.tensorflow(arg.value)))
            self._consumed.update(reductions)
        if name is not None and name.endswith(".embed_sequence") and (self._splitting or self.splits_all):
            self._split_tables.add(node)  # it looks up in its own table, as `"mod"` says
            self._mixing.append((node, node))
            self._check_tables()
        if node in self.tables.variables or owned:
            given = self.tables.variables[node] if node in self.tables.variables else weights.partitioner(name, node)
            if given is not None:
                self._collect_partitioner(given)
            if name == "tf.Variable" and (self._splitting or self.splits_all):
                self.unsplit.append(node)
            elif given is not None or self._splitting or self.splits_all:
                self._split_tables.add(node)
                self._check_tables()
            else:
                self.unsplit.append(node)
        elif name is not None and not self._splitting and partitioners.makes_variables(name):
            self.unsplit.append(node)
        if name is not None and name.startswith(_LAYERS) and name in _CALLS:
            self._skip_arguments(name, node)
        if self._object_class(node.func) is not None:
            receiver = _receiver(node.func)
            (self._known_objects if isinstance(receiver, cst.Call) else self._consumed).add(receiver)
        return True

    def _check_hub(self, node: cst.Call) -> None:
        """Modules of TensorFlow Hub in the form of TensorFlow 1 need a graph and a session."""
        origin = self.imports.resolve(node.func) or ""
        if origin.startswith("tensorflow_hub.") and origin.rpartition(".")[2] in _HUB:
            message = f"`{origin}` loads a TensorFlow 1 Hub module: use `hub.KerasLayer` with a TF2 SavedModel"
            self.problems.append(Blocked("TFM175", node, message))

    def visit_Assign(self, node: cst.Assign) -> bool:
        target = node.targets[0].target
        if len(node.targets) == 1 and isinstance(target, cst.Name) and isinstance(node.value, cst.Call):
            if self.definition(target.value) is node.value:
                self._known_objects.add(node.value)
                self._consumed.add(target)
        return True

    def _skip_arguments(self, name: str, node: cst.Call) -> None:
        """Arguments of a layer that its rule reads as they are, or leaves out."""
        phase = _PHASES.get(name)
        for index, arg in enumerate(node.args):
            key = arg.keyword.value if arg.keyword is not None else None
            if phase is not None and (key == phase[0] or (key is None and index == phase[1])):
                if self.modes is not None and self.modes.when(arg.value) is not None:
                    self._consumed.add(arg.value)
            if key in _READ_AS_WRITTEN and self.imports.tensorflow(arg.value) is not None:
                self._consumed.add(arg.value)
            if key == "normalizer_params" and isinstance(arg.value, cst.Dict):
                self._consumed.update(
                    element.value
                    for element in arg.value.elements
                    if self.imports.tensorflow(element.value) == "tf.GraphKeys.UPDATE_OPS"
                )
            if key is not None and key.endswith("_regularizer") and not self.keep_regularizers:
                if not is_none(arg.value):
                    self._consumed.add(arg.value)
                    self.dropped_regularizers.append(arg)

    def _object_class(self, func: cst.BaseExpression) -> str | None:
        """The class of tf.layers whose object a call calls (or applies); None for any other call."""
        node = _receiver(func)
        if isinstance(node, cst.Call):
            name = self.imports.tensorflow(node.func)
            return name if layers.is_class(name) else None
        if not isinstance(node, cst.Name):
            return None
        if node.value not in self._object_classes:
            value = self.definition(node.value)
            name = self.imports.tensorflow(value.func) if isinstance(value, cst.Call) else None
            self._object_classes[node.value] = name if layers.is_class(name) else None
        return self._object_classes[node.value]

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        new = self._call(original_node, updated_node)
        if original_node in self.training.own.named and isinstance(new, cst.Call):
            # It is called like the variable scope around it, whose name the new code does not ask for.
            said = [i for i, a in enumerate(new.args) if a.keyword is not None and a.keyword.value == "name"]
            new = _without(new, frozenset(said))
        tensor = self.training.own.applied.get(original_node)
        return new if tensor is None else weights.called(new, tensor)

    def _call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        """The new form of a call."""
        if original_node in self.replaced:
            return self.replaced[original_node]
        name = self.imports.tensorflow(original_node.func)
        object_class = self._object_class(original_node.func) if name is None else None
        if original_node in self.dropped_arguments:
            return self._without_dropped(original_node, updated_node)
        if original_node in self.untold:
            return keras_layers.told_not_to_train(original_node, updated_node, self.remarks)
        if original_node in self.tables.variables:
            return self._table(updated_node)
        if original_node in self.tables.lookups:
            return self._looked_up(original_node, updated_node)
        try:
            if original_node in self.training.own.weights:
                plan = self.training.own.weights[original_node]
                return weights.layer(self._site(name or "", original_node, updated_node), plan)
            if original_node in self.training.own.cells:
                site = self._site(name or "", original_node, updated_node)
                return recurrent.cell(site, self.training.own.cells[original_node])
            if original_node in self.training.own.recurrent:
                return recurrent.network(self._site(name or "", original_node, updated_node))
            if object_class is not None:
                return layers.called_object(self._site(object_class, original_node, updated_node), updated_node)
            if starts_at_zero(original_node, name) and (self.of_keras_models or name is not None):
                message = "Adagrad by name starts at 0.0, as in TensorFlow 1.15; TensorFlow 2 starts it at 0.1"
                self.remarks.append(Blocked("TFM431", original_node, message))
            if name is None and self.of_keras_models:
                updated_node = compiled(updated_node, self.values_of)
            if name is None:
                return datasets.applied(original_node, updated_node, self.imports)
            if original_node in self.training.own.lookups and not weights.divides(original_node):
                self._mixing.append((self.training.own.lookups[original_node], original_node))
                self._check_tables()
            if name in _CALLS:
                if layers.has_phase(name) and original_node not in self._known_objects:
                    message = f"this `{name}` object must be called where it is created, or under a single name"
                    raise Blocked("TFM202", original_node, message)
                site = self._site(name, original_node, updated_node)
                if name in _NEEDS:
                    self.needs.update(_NEEDS[name])
                    if "argparse" in self.imports.names.values():
                        self.needs.add("absl.flags")
                return _CALLS[name](site)
            if self.training.keras.number == 3 and keras3.lines_up(name):
                message = (
                    f"`{name}` of Keras 3 broadcasts labels and outputs to one shape, where TensorFlow 1 "
                    "compares a table"
                )
                raise Blocked("TFM870", original_node, f"{message}: leave `--keras 3` out")
            found = home(name)
            if found is not None:
                try:
                    return self._renamed(name, found, original_node, updated_node)
                except Blocked:
                    old = self._kept(name, original_node.func)
                    if old is None:
                        raise
                    return updated_node.with_changes(func=old)
        except Blocked as problem:
            # The rule sees rewritten arguments, which have no place in the file: report at the call.
            self.problems.append(Blocked(problem.code, original_node, problem.message))
        return updated_node

    def _kept(self, name: str, original: cst.BaseExpression) -> cst.BaseExpression | None:
        """The function of TensorFlow 1 itself, for new code; None where the name may mean that of TensorFlow 2."""
        old = None if self.imports.may_be_two(original) else kept(name)
        return None if old is None else cst.parse_expression(old)

    def _table(self, updated: cst.Call) -> cst.BaseExpression:
        """The layer of a table of embeddings."""
        name, (rows, columns), initializer = embeddings.arguments(updated)
        start = '"glorot_uniform"' if initializer is None else self.code(initializer)
        return expression(embeddings.layer([self.code(name), self.code(rows), self.code(columns), start]))

    def _expression(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """The new form of an expression that stands elsewhere in the program."""
        new = node.visit(self)
        assert isinstance(new, cst.BaseExpression)
        return new

    def _looked_up(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression:
        """The call of a table where its rows are looked up."""
        table, divided = self.tables.lookups[original]
        if not divided:
            self._mixing.append((table, original))
            self._check_tables()
        return cst.Call(embeddings.table_of(updated), [cst.Arg(embeddings.ids(updated))])

    def _check_tables(self) -> None:
        """Refuses lookups that mix the rows of a table; which of the two is rewritten first is not known."""
        for place in [place for table, place in self._mixing if self.splits_all or table in self._split_tables]:
            message = (
                "a partitioner splits this table, and the lookup assigns ids to the shards in turn, so "
                'that ids are not row numbers: pass `partition_strategy="div"`'
            )
            problem = Blocked("TFM796", place, message)
            if problem not in self.problems:
                self.problems.append(problem)

    def _site(self, name: str, original: cst.Call, updated: cst.Call) -> Site:
        return Site(
            name,
            original,
            updated,
            self.modes,
            self.keep_regularizers,
            self.code,
            self.updates,
            self.remarks,
            self.classes,
            original in self.training_calls,
            self.imports,
            self.definition,
            self.training,
            self._expression,
        )

    def _without_dropped(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        """The call of a helper without what told it the mode."""
        return _without(updated_node, self.dropped_arguments.get(original_node, frozenset()))

    def _renamed(self, name: str, found: Home, original: cst.Call, updated: cst.Call) -> cst.Call:
        """The call with the names that its arguments have in TensorFlow 2, for a symbol whose signature changed."""
        signature = found.signature
        if signature is None:
            return updated
        args: list[cst.Arg] = []
        for index, arg in enumerate(updated.args):
            if arg.star:
                raise Blocked("TFM204", arg, f"`{name}` is called with * or ** arguments: write them out")
            if arg.keyword is not None:
                parameter = signature.named(arg.keyword.value)
            else:
                parameter = signature.parameters[index] if index < len(signature.parameters) else None
            if parameter is None:
                which = f"`{arg.keyword.value}`" if arg.keyword is not None else f"argument {index + 1}"
                raise Blocked("TFM204", arg, f"{which} of `{name}` has no counterpart in TensorFlow 2")
            if arg.keyword is None and index >= signature.shared and self.imports.is_of_two(original.func):
                return updated
            if arg.keyword is None and index >= signature.shared and self.imports.may_be_two(original.func):
                message = f"argument {index + 1} of `{name}` is a different one in TensorFlow 2: pass it by keyword"
                raise Blocked("TFM204", arg, message)
            if parameter.only is not None and self.code(arg.value) != parameter.only:
                message = f"`{parameter.old}` of `{name}` must be {parameter.only}: TensorFlow 2 has no such argument"
                raise Blocked("TFM204", arg, message)
            if parameter.new is None:
                continue
            if arg.keyword is not None or index >= signature.shared:
                arg = arg.with_changes(
                    keyword=cst.Name(parameter.new),
                    equal=cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace("")),
                )
            args.append(arg)
        if args and len(args) < len(updated.args):
            args[-1] = args[-1].with_changes(comma=updated.args[-1].comma)
        return updated.with_changes(args=args)

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        self._consumed.add(node.attr)
        if node in self._consumed or node in self.replaced:
            return False
        return self.imports.tensorflow(node) is None

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        if original_node in self.replaced:
            return self.replaced[original_node]
        if original_node in self._consumed:
            return updated_node
        name = self.imports.tensorflow(original_node)
        if name is None and original_node.attr.value in _OF_DATASETS and isinstance(original_node.value, cst.Name):
            what = _OF_DATASETS[original_node.attr.value]
            text = f"tf.nest.map_structure(lambda spec: spec.{what}, {original_node.value.value}.element_spec)"
            return cst.parse_expression(text)
        if name is None:
            return updated_node.value if is_dimension(original_node) else updated_node
        return self._reference(name, original_node, updated_node)

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        if original_node in self.replaced:
            return self.replaced[original_node]
        if original_node in self._consumed:
            return updated_node
        if original_node.value not in self.imports.names:
            if layers.has_phase(self._object_class(original_node)):
                message = f"`{original_node.value}` is used without being called"
                self.problems.append(Blocked("TFM202", original_node, message))
            return updated_node
        name = self.imports.tensorflow(original_node)
        if name is None:
            return updated_node
        if name == "tf":
            self.problems.append(
                Blocked(
                    "TFM209",
                    original_node,
                    "the TensorFlow module itself is used as a value: use its functions by name",
                )
            )
            return updated_node
        return self._reference(name, original_node, updated_node)

    def _reference(self, name: str, original: cst.BaseExpression, updated: cst.BaseExpression) -> cst.BaseExpression:
        """A TensorFlow symbol that is not the function of a call with a rule."""
        if name in _REFERENCES:
            return cst.parse_expression(_REFERENCES[name])
        if name in _CASTS:  # as a value: `dataset.map(tf.to_float)`
            return cst.parse_expression(f"(lambda tensor: tf.cast(tensor, tf.{_CASTS[name]}))")
        if name in logs.LEVELS and self.imports.names.get("logging", "logging") == "logging":
            self.needs.add("logging")
            return cst.parse_expression(logs.LEVELS[name])
        if name == logs.NAMES and self.imports.names.get("logging", "logging") == "logging":
            self.needs.add("logging")
            return cst.parse_expression("logging.__dict__")
        if name in logs.NUMBERS:
            return cst.Integer(str(logs.NUMBERS[name]))
        if name in TEXTS:
            return cst.SimpleString(f'"{TEXTS[name]}"')
        if (self.of_keras_models or self.moves_averages) and name in _OF_KERAS_MODELS:
            return cst.parse_expression(name)
        if name in _KEPT:
            message = f"`{name.rpartition('.')[2]}` is a private name: TensorFlow 2.21 has it, a later one may not"
            self.remarks.append(Blocked("TFM259", original, message))
            return updated
        for prefix in _FLAGS:
            if name == prefix or name.startswith(prefix + "."):
                self.needs.add("absl.flags")
                return cst.parse_expression("absl.flags" + name[len(prefix) :])
        if self.imports.means_two(original) and only_two(name):
            return updated
        if name.startswith(_MESSAGES) and f"{name}.".startswith(tuple(f"{message}." for message in _MESSAGES)):
            return cst.parse_expression(f"tf.compat.v1.{name.removeprefix('tf.')}")
        found, rest = home(name), ""
        shorter = name
        while found is None and shorter.count(".") > 1:
            shorter, _, last = shorter.rpartition(".")
            rest = f".{last}{rest}"
            if is_namespace(shorter):
                break
            found = home(shorter)
        if found is None and name in _OF_TWO and self.imports.may_be_two(original):
            return updated
        if found is None:
            old = self._kept(name, original)
            if old is not None:
                return old
            self.problems.append(Blocked("TFM203", original, without_native_form(name)))
            return updated
        text = found.name + rest
        return updated if dotted(updated) == text else cst.parse_expression(text)


def _without(call: cst.Call, dropped: frozenset[int]) -> cst.Call:
    """A call without some of its arguments, by index."""
    if not dropped:
        return call
    args = [arg for index, arg in enumerate(call.args) if index not in dropped]
    if args and len(call.args) - 1 in dropped:
        last = call.args[-1]
        args[-1] = args[-1].with_changes(comma=last.comma, whitespace_after_arg=last.whitespace_after_arg)
    return call.with_changes(args=args)


def _receiver(func: cst.BaseExpression) -> cst.BaseExpression:
    """What is called, or whose `apply` is."""
    if isinstance(func, cst.Attribute) and func.attr.value in ("apply", "__call__"):
        return func.value
    return func
