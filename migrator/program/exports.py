"""Exports of a program: serving_input_receiver_fns, exporters of an EvalSpec, and what signatures become of them."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import libcst as cst

from migrator.emit.layout import WIDTH
from migrator.emit.names import free
from migrator.names.bindings import dotted, names_changed
from migrator.program.calls import (
    bind,
    calls_in,
    is_docstring,
    is_false,
    is_name,
    is_none,
    number,
    parameters_of,
    string,
)
from migrator.program.classes import methods_named
from migrator.program.parsed import Blocked, ParsedFile, Project, name_nodes, names_in
from migrator.program.scopes import bindings, returns_in
from migrator.walking import of_kinds

_RECEIVERS = (
    "tf.estimator.export.ServingInputReceiver",
    "tf.estimator.export.TensorServingInputReceiver",
)
_RAW = "tf.estimator.export.build_raw_serving_input_receiver_fn"
_PARSING = "tf.estimator.export.build_parsing_serving_input_receiver_fn"
_EXPORTERS = {
    "tf.estimator.FinalExporter": ("name", "serving_input_receiver_fn", "assets_extra", "as_text"),
    "tf.estimator.LatestExporter": (
        *("name", "serving_input_receiver_fn", "assets_extra", "as_text", "exports_to_keep"),
    ),
    "tf.estimator.BestExporter": (
        *("name", "serving_input_receiver_fn", "event_file_pattern", "compare_fn", "assets_extra", "as_text"),
        "exports_to_keep",
    ),
}
_EXPORT = ("export_dir_base", "serving_input_receiver_fn", "assets_extra", "as_text", "checkpoint_path")
EXPORTS = {
    "export_savedmodel": (*_EXPORT, "strip_default_attrs"),
    "export_saved_model": (*_EXPORT, "experimental_mode"),
}
_DEFAULT = "serving_default"
_TAKEN = frozenset({"predictor", "serve"})

#: The rewriter of a file, and the expressions that it puts in place of others.
Rewriting = Callable[[ParsedFile], tuple[cst.CSTTransformer, dict[cst.CSTNode, cst.BaseExpression]]]


@dataclass(frozen=True)
class Serving:
    """A serving_input_receiver_fn: the statement of `file` that makes it, and what takes its place.

    That is a function of one argument, the predictor, which returns the `tf.function` to serve.
    """

    file: ParsedFile
    node: cst.BaseStatement
    new: cst.FunctionDef


@dataclass(frozen=True)
class Exporter:
    """One exporter of an EvalSpec: its kind (Final, Latest, Best), its name, its serving function, and the call."""

    kind: str
    name: cst.BaseExpression
    serving: cst.BaseExpression
    call: cst.Call


def read_exporters(
    file: ParsedFile, scope: cst.CSTNode, node: cst.BaseExpression
) -> tuple[list[Exporter], list[Blocked]]:
    """The exporters that `exporters=` gives, and remarks on them. Raises Blocked (TFM142)."""
    found = []
    remarks: list[Blocked] = []
    for element in _elements(scope, node):
        name = file.imports.resolve(element.func) if isinstance(element, cst.Call) else None
        if name not in _EXPORTERS:
            raise Blocked("TFM142", element, "this exporter is not created next to the Estimator: create it there")
        assert isinstance(element, cst.Call)
        kind = name.rpartition(".")[2].removesuffix("Exporter")
        bound = bind(element, _EXPORTERS[name], name, "TFM142")
        remarks += check_export(bound, element)
        serving = bound["serving_input_receiver_fn"]
        title = bound.get("name") or cst.SimpleString('"best_exporter"')
        found.append(Exporter(kind, title, serving, element))
    return found, remarks


def check_export(bound: dict[str, cst.BaseExpression], call: cst.Call) -> list[Blocked]:
    """Remarks on an export (TFM176). Refuses what it asks for beside its signature (TFM142)."""
    for key in ("assets_extra", "checkpoint_path", "experimental_mode"):
        if not is_none(bound.get(key)):
            raise Blocked("TFM142", bound[key], f"`{key}` of an export is unsupported")
    if is_none(bound.get("serving_input_receiver_fn")):
        raise Blocked("TFM142", call, "the export has no serving_input_receiver_fn: pass one")
    text = bound.get("as_text")
    if is_none(text) or is_false(text):
        return []
    return [Blocked("TFM176", text or call, "`as_text` is dropped: the SavedModel is written as saved_model.pb")]


def _elements(scope: cst.CSTNode, node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    if isinstance(node, (cst.List, cst.Tuple)):
        for element in node.elements:
            yield from _elements(scope, element.value)
    elif isinstance(node, cst.Name):
        found = _values(scope, node.value)
        if len(found) != 1:
            yield node
        else:
            yield from _elements(scope, found[0][1])
    else:
        yield node


_PREDICT = "tf.estimator.export.PredictOutput"
_REGRESSION = "tf.estimator.export.RegressionOutput"
_CLASSIFICATION = "tf.estimator.export.ClassificationOutput"
#: What the function of a signature is called, of those that a program serves beside each other.
_FUNCTIONS = {_PREDICT: "predict", _REGRESSION: "regress", _CLASSIFICATION: "classify"}


@dataclass(frozen=True)
class Output:
    """An export output: of what kind it is, and which of the predictions it serves under which key.

    Without `served` the predictions are served as they are.
    """

    kind: str = _PREDICT
    served: tuple[tuple[str, str | None], ...] | None = None

    @property
    def examples(self) -> bool:
        """Whether its input is called `inputs` and must be serialized examples."""
        return self.kind != _PREDICT


@dataclass(frozen=True)
class Signatures:
    """What a program serves: the name of each signature and its output.

    `keys` are those of the predictions; none where these are no dict that is written out.
    """

    outputs: tuple[tuple[str, Output], ...] = ((_DEFAULT, Output()),)
    remarks: tuple[Blocked, ...] = field(default=(), compare=False)
    keys: frozenset[str] = field(default=frozenset(), compare=False)

    @property
    def several(self) -> bool:
        """Whether the signatures differ: the new serving function returns a dict of their functions then."""
        return len({output for _, output in self.outputs}) > 1

    @property
    def names(self) -> tuple[str, ...]:
        """The names that one function is served under; none where the signatures differ."""
        return () if self.several else tuple(name for name, _ in self.outputs)


def signature_names(
    file: ParsedFile,
    outputs: cst.BaseExpression | None,
    predictions: cst.BaseExpression | None,
    define: Callable[[str], cst.BaseExpression | None],
) -> Signatures:
    """What an EstimatorSpec serves. Raises Blocked (TFM142) for several different outputs, and for other tensors.

    `define` tells what a name of the model_fn stands for. Source: get_export_outputs of TensorFlow 1.15 serves a single
    output of another name as `serving_default` too; export_output.py names the tensors of each kind.
    """
    reader = _OutputReader(file, predictions, define)
    read = Signatures() if outputs is None or is_none(outputs) else reader.read(outputs)
    return replace(read, keys=reader.keys())


class _OutputReader:
    def __init__(
        self,
        file: ParsedFile,
        predictions: cst.BaseExpression | None,
        define: Callable[[str], cst.BaseExpression | None],
    ) -> None:
        self.file = file
        self.predictions = predictions
        self.define = define

    def _value(self, node: cst.BaseExpression) -> cst.BaseExpression:
        return (self.define(node.value) or node) if isinstance(node, cst.Name) else node

    def keys(self) -> frozenset[str]:
        """The keys of the predictions; none where these are no dict that is written out."""
        node = self._value(self.predictions) if self.predictions is not None else None
        if not isinstance(node, cst.Dict):
            return frozenset()
        found = [string(e.key) if isinstance(e, cst.DictElement) else None for e in node.elements]
        return frozenset() if None in found else frozenset(str(key) for key in found)

    def read(self, outputs: cst.BaseExpression) -> Signatures:
        node = self._value(outputs)
        if not isinstance(node, cst.Dict):
            raise Blocked("TFM142", outputs, "`export_outputs` is not a dict literal in the model_fn")
        outputs_of: dict[str, Output] = {}
        remarks: list[Blocked] = []
        for element in node.elements:
            key = element.key if isinstance(element, cst.DictElement) else None
            name = string(key)
            if name is None and (self.file.imports.resolve(key) or "").endswith(".DEFAULT_SERVING_SIGNATURE_DEF_KEY"):
                name = _DEFAULT
            if name is None:
                raise Blocked("TFM142", element, "the name of an export output is not a literal")
            outputs_of[name] = self._output(element)
            if outputs_of[name].examples:
                message = (
                    "this is now a predict signature, which the Regress and Classify APIs of TensorFlow "
                    "Serving do not accept"
                )
                remarks.append(Blocked("TFM174", element, message))
        if _DEFAULT not in outputs_of and len(set(outputs_of.values())) != 1:
            message = (
                "with several export outputs of which none is `serving_default`, an Estimator fails: give one that name"
            )
            raise Blocked("TFM142", outputs, message)
        default = outputs_of.get(_DEFAULT) or next(iter(outputs_of.values()))
        return Signatures(tuple({_DEFAULT: default, **outputs_of}.items()), tuple(remarks))

    def _output(self, element: cst.BaseDictElement) -> Output:
        given = self._value(element.value)
        if not isinstance(given, cst.Call):
            raise Blocked("TFM142", element, "this export output must be created in the model_fn, from its predictions")
        kind = self.file.imports.resolve(given.func)
        if kind == _PREDICT and len(given.args) == 1:
            served = self._value(given.args[0].value)
            if self._is_predictions(served):
                return Output()
            if isinstance(served, cst.Dict):
                entries = [
                    (string(e.key) if isinstance(e, cst.DictElement) else None, e.value) for e in served.elements
                ]
                if all(name is not None for name, _ in entries):
                    return Output(_PREDICT, tuple((str(name), self._key(element, value)) for name, value in entries))
            return Output(_PREDICT, (("output", self._key(element, served)),))
        if kind == _REGRESSION and len(given.args) == 1:
            return Output(_REGRESSION, (("outputs", self._key(element, given.args[0].value)),))
        if kind == _CLASSIFICATION:
            bound = bind(given, ("scores", "classes"), kind, "TFM142")
            found = [(key, self._key(element, value)) for key, value in bound.items() if not is_none(value)]
            return Output(_CLASSIFICATION, tuple(sorted(found)))
        raise Blocked("TFM142", element, "this export output must be created in the model_fn, from its predictions")

    def _is_predictions(self, node: cst.BaseExpression) -> bool:
        given = self.predictions
        texts = [self.file.code(one) for one in (given, given and self._value(given)) if one is not None]
        return self.file.code(node) in texts

    def _key(self, element: cst.BaseDictElement, node: cst.BaseExpression) -> str | None:
        """The key of the predictions that a tensor is (None: it is the predictions)."""
        if self._is_predictions(node) or self._is_predictions(self._value(node)):
            return None
        if isinstance(node, cst.Subscript) and len(node.slice) == 1 and self._is_predictions(node.value):
            index = node.slice[0].slice
            key = string(index.value) if isinstance(index, cst.Index) else None
            if key is not None:
                return key
        predictions = self._value(self.predictions) if self.predictions is not None else None
        if isinstance(predictions, cst.Dict):
            for entry in predictions.elements:
                key = string(entry.key) if isinstance(entry, cst.DictElement) else None
                if key is not None and self.file.code(entry.value) == self.file.code(node):
                    return key
        message = "an export output is not one of the predictions"
        raise Blocked("TFM142", element, message)


def servings_of(
    project: Project, file: ParsedFile, scope: cst.CSTNode, node: cst.BaseExpression
) -> list[tuple[ParsedFile, cst.CSTNode, cst.BaseExpression]]:
    """The serving functions that an expression may be, each with its file and scope: those of the dict that it looks
    one up in, or itself."""
    table = node.value if isinstance(node, cst.Subscript) else None
    if not isinstance(table, (cst.Name, cst.Attribute)):
        return [(file, scope, node)]
    home, name = file, table.value if isinstance(table, cst.Name) else ""
    local = isinstance(table, cst.Name) and scope is not file.module and any(n == name for n, _ in bindings(scope))
    module, _, last = (file.imports.resolve(table) or "").rpartition(".")
    other = project.sibling(file, module) if module else None
    if other is not None:
        home, name = other, last
    display = home.constants.get(name)
    if local or not isinstance(display, cst.Dict) or not all(isinstance(e, cst.DictElement) for e in display.elements):
        return [(file, scope, node)]
    return [(home, home.module, element.value) for element in display.elements]


def read_serving(
    project: Project,
    file: ParsedFile,
    scope: cst.CSTNode,
    node: cst.BaseExpression,
    single: bool,
    rewriting: Rewriting,
    signatures: Signatures,
) -> Serving:
    """The serving function that a name means, in its new form. Raises Blocked (TFM142).

    `single` says that a prediction is one tensor, which an Estimator serves as `output`.
    """
    return _Reader(project, rewriting, single, signatures).read(file, scope, node)


class _Reader:
    def __init__(self, project: Project, rewriting: Rewriting, single: bool, signatures: Signatures) -> None:
        self.project = project
        self.rewriting = rewriting
        self.single = single
        self.signatures = signatures

    def read(self, file: ParsedFile, scope: cst.CSTNode, node: cst.BaseExpression) -> Serving:
        if isinstance(node, cst.Name):
            local = [n for name, n in bindings(scope) if name == node.value]
            if len(local) == 1 and isinstance(local[0], cst.FunctionDef):
                return self._function(file, local[0])
            for place in (scope, file.module):
                found = _values(place, node.value)
                if len(found) == 1:
                    line, value = found[0]
                    if isinstance(value, cst.Call) and line is not None:
                        return Serving(file, line, self._make(file, node.value, *self._ready_made(file, value), []))
        known = self.project.function(file, node)
        if known is not None:
            return self._function(*known)
        if isinstance(node, cst.Call):
            made = serving_maker(self.project, file, node)
            if made is not None:
                return self._function(made[0], made[2])
        message = (
            "the serving_input_receiver_fn is not a function in the given files: assign it to a name on a line before"
        )
        raise Blocked("TFM142", node, message)

    def _text(self, file: ParsedFile, node: cst.BaseExpression) -> str:
        return file.code(node.visit(self.rewriting(file)[0]))  # type: ignore[arg-type]

    def _ready_made(self, file: ParsedFile, call: cst.Call) -> tuple[list[Entry], str]:
        """The receivers of a ready-made serving function, and the features that it gives."""
        name = file.imports.resolve(call.func)
        if name == _PARSING:
            bound = bind(call, ("feature_spec", "default_batch_size"), name, "TFM142")
            if "feature_spec" in bound and is_none(bound.get("default_batch_size")):
                features = f"tf.io.parse_example(examples, {self._text(file, bound['feature_spec'])})"
                return [("examples", "examples", "tf.string", "[None]")], features
        if name == _RAW:
            bound = bind(call, ("features", "default_batch_size"), name, "TFM142")
            given = bound.get("features")
            if isinstance(given, cst.Dict) and is_none(bound.get("default_batch_size")):
                taken: set[str] = {"predictor", "serve"}
                entries = [self._in_place(file, *self._item(file, e), taken) for e in given.elements]
                return entries, "{" + ", ".join(f'"{key}": {parameter}' for key, parameter, _, _ in entries) + "}"
        raise Blocked("TFM142", call, "this serving_input_receiver_fn is unsupported")

    def _item(self, file: ParsedFile, element: cst.BaseDictElement) -> tuple[str, cst.BaseExpression]:
        key = file.string(element.key) if isinstance(element, cst.DictElement) else None
        if key is None:
            raise Blocked("TFM142", element, "the names of the serving inputs are not literals")
        return key, element.value

    def _in_place(self, file: ParsedFile, key: str, node: cst.BaseExpression, taken: set[str]) -> Entry:
        """The entry of a placeholder in a dict, which becomes a parameter called like its key."""
        dtype, shape = self._placeholder(file, node)
        parameter = free(key if key.isidentifier() and not keyword.iskeyword(key) else "value", taken)
        taken.add(parameter)
        self.rewriting(file)[1][node] = cst.Name(parameter)
        return key, parameter, dtype, shape

    def _placeholder(self, file: ParsedFile, node: cst.BaseExpression) -> tuple[str, str]:
        if not isinstance(node, cst.Call) or file.imports.tensorflow(node.func) != "tf.placeholder":
            raise Blocked("TFM142", node, "a serving input is not a placeholder")
        bound = bind(node, ("dtype", "shape", "name"), "tf.placeholder", "TFM142")
        shape = bound.get("shape")
        return self._text(file, bound["dtype"]), "None" if shape is None else self._text(file, shape)

    def _function(self, file: ParsedFile, function: cst.FunctionDef) -> Serving:
        """What a serving_input_receiver_fn becomes: its statements in a `tf.function` of what were placeholders."""
        if not isinstance(function.body, cst.IndentedBlock):
            raise Blocked(
                "TFM142", function.name, "the serving_input_receiver_fn is on one line: put its body on its own lines"
            )
        body = _without_defaults(function, function.body)
        if body is not function.body and any(self._is_called(one, function) for one in self.project.files):
            raise Blocked("TFM142", function.name, "this serving_input_receiver_fn is called elsewhere as well")
        plain = function.with_changes(body=body)
        *statements, last = body.body
        returned = last.body[0] if isinstance(last, cst.SimpleStatementLine) and len(last.body) == 1 else None
        value = returned.value if isinstance(returned, cst.Return) else None
        if not isinstance(value, cst.Call):
            message = "the serving_input_receiver_fn must end with `return ServingInputReceiver(...)`"
            raise Blocked("TFM142", last, message)
        if isinstance(value.func, cst.Call) and not value.args:
            entries, features = self._ready_made(file, value.func)
        elif file.imports.resolve(value.func) in _RECEIVERS:
            names = ("features", "receiver_tensors", "receiver_tensors_alternatives")
            bound = bind(value, names, "ServingInputReceiver", "TFM142")
            if not is_none(bound.get(names[2])) or len(bound) < 2:
                raise Blocked("TFM142", value, "alternative receivers are unsupported")
            receivers = bound["receiver_tensors"]
            if isinstance(receivers, cst.Name):
                several = _comprehension(file, statements, receivers.value)
                if several is not None:
                    made = self._of_comprehension(file, function, several, bound["features"])
                    return Serving(file, function, made)
            entries, statements = self._receivers(file, plain, statements, bound)
            features = self._text(file, bound["features"])
        else:
            raise Blocked("TFM142", value, "this serving_input_receiver_fn is unsupported")
        new = [statement.visit(self.rewriting(file)[0]) for statement in statements]
        made = self._make(file, function.name.value, entries, features, new)  # type: ignore[arg-type]
        return Serving(file, function, made)

    def _is_called(self, file: ParsedFile, function: cst.FunctionDef) -> bool:
        """Whether a file calls something of the name of a function."""
        return any((dotted(one.func) or "").split(".")[-1] == function.name.value for one in calls_in(file.module))

    def _of_comprehension(
        self, file: ParsedFile, function: cst.FunctionDef, several: _Placed, features: cst.BaseExpression
    ) -> cst.FunctionDef:
        """The function to serve of `{key: tf.placeholder(...) for key in ...}`: it takes a dict of the same keys."""
        outputs = self._servable(False, function)
        if self.signatures.several and any(output != Output() for _, output in outputs):
            message = "the inputs of several export outputs are not literals"
            raise Blocked("TFM142", function.name, message)
        dtype, shape = self._placeholder(file, several.value)
        key = file.code(several.key)
        loop = self._text(file, several.loop)  # type: ignore[arg-type]
        taken = names_in(function)
        name, serve = free("signature", taken), free("serve", taken)
        as_they_are = isinstance(features, cst.Name) and features.value == several.name
        inputs = several.name
        if not several.after and as_they_are:
            inputs = free("inputs", names_in(several.key) | names_in(several.loop) | {"predictor", "serve"})
        spec = f"{key}: tf.TensorSpec({shape}, {dtype}, name={key})"
        indent = file.module.default_indent
        output = outputs[0][1]
        given = inputs if as_they_are else self._text(file, features)
        before, answer = self._answer(output, f"predictor({given})", free("predictions", {inputs, *taken, *_TAKEN}))
        last = _listed([(title, serve) for title, _ in outputs]) if self.signatures.several else serve
        source = (
            f"def {function.name.value}(predictor):\n"
            f"{indent}{name} = {{\n{indent * 2}{spec}\n{indent * 2}{loop.strip()}\n{indent}}}\n\n"
            f"{indent}@tf.function(input_signature=[{name}])\n"
            f"{indent}def {serve}({inputs}):\n"
            f"{''.join(indent * 2 + line for line in before)}{indent * 2}return {answer}\n\n"
            f"{indent}return {last}\n"
        )
        made = cst.parse_module(source, config=file.module.config_for_parsing).body[0]
        assert isinstance(made, cst.FunctionDef) and isinstance(made.body, cst.IndentedBlock)
        block = cst.IndentedBlock(several.after).visit(self.rewriting(file)[0])
        assert isinstance(block, cst.IndentedBlock)
        body = [_with_first(node, block.body) if isinstance(node, cst.FunctionDef) else node for node in made.body.body]
        return made.with_changes(body=made.body.with_changes(body=[*several.doc, *body]))

    def _receivers(
        self,
        file: ParsedFile,
        function: cst.FunctionDef,
        statements: list[cst.BaseStatement],
        bound: dict[str, cst.BaseExpression],
    ) -> tuple[list[Entry], list[cst.BaseStatement]]:
        """The served inputs, and the statements without those that only made them."""
        features, receivers = bound["features"], bound["receiver_tensors"]
        gone: list[cst.CSTNode] = []
        taken = names_in(function) | {"predictor", "serve"}
        line, node = None, receivers
        if isinstance(receivers, cst.Name):
            line, node = self._value(function, statements, receivers)
        items = [self._item(file, e) for e in node.elements] if isinstance(node, cst.Dict) else [("input", receivers)]
        entries = []
        for key, item in items:
            if isinstance(item, cst.Name):
                made, value = self._value(function, statements, item)
                entries.append((key, item.value, *self._placeholder(file, value)))
                gone.append(made)
            else:
                entries.append(self._in_place(file, key, item, taken))
        rest = [s for s in statements if not any(s is g for g in gone)]
        if isinstance(node, cst.Dict) and line is not None:
            read = names_in(features).union(*(names_in(s) for s in rest if s is not line))
            assert isinstance(receivers, cst.Name)
            _check_unchanged([s for s in rest if s is not line], receivers.value)
            rest = [s for s in rest if s is not line or receivers.value in read]
        replaced = self.rewriting(file)[1]
        for statement in rest:
            calls = [one for one in calls_in(statement) if one not in replaced]
            if any(file.imports.tensorflow(one.func) == "tf.placeholder" for one in calls):
                raise Blocked("TFM142", statement, "a placeholder is not one of the serving inputs")
        return entries, rest

    def _value(
        self, function: cst.FunctionDef, statements: list[cst.BaseStatement], name: cst.Name
    ) -> tuple[cst.CSTNode, cst.BaseExpression]:
        found = _values(function.body, name.value)
        if len(found) == 1 and any(found[0][0] is s for s in statements):
            line, value = found[0]
            assert line is not None
            return line, value
        message = f"`{name.value}` must be assigned once, in the serving function itself"
        raise Blocked("TFM142", name, message)

    def _make(
        self, file: ParsedFile, name: str, entries: list[Entry], features: str, statements: list[cst.BaseStatement]
    ) -> cst.FunctionDef:
        """`def name(predictor)` that returns the `tf.function` to serve, or a dict of several."""
        indent = file.module.default_indent
        function = file.functions.get(name)
        outputs = self._servable(len(entries) == 1 and entries[0][2].endswith("tf.string"), function)
        several = self.signatures.several
        plain = None if several else outputs[0][1]
        if plain is not None and plain.examples:
            entries = [("inputs", *entries[0][1:])]
        signature = _signature(entries, indent)
        parameters = [parameter for _, parameter, _, _ in entries]
        taken = set(parameters).union(_TAKEN, *(names_in(statement) for statement in statements))
        called = f"predictor({features})"
        before, answer = self._answer(plain, called, free("predictions", taken)) if plain else ([], called)
        functions = {Output(): "serve"} if several and not self.single else {}
        decorated = not several or any(output in functions for _, output in outputs)
        source = f"def {name}(predictor):\n{signature if decorated else ''}"
        source += f"{indent}def serve({', '.join(parameters)}):\n"
        source += f"{''.join(indent * 2 + line for line in before)}{indent * 2}return {answer}\n\n"
        for output in dict.fromkeys(output for _, output in outputs if several and output not in functions):
            title = functions[output] = free(_FUNCTIONS[output.kind], taken | set(functions.values()))
            source += self._beside(title, output, entries, indent)
        listed = _listed([(title, functions[output]) for title, output in outputs], indent) if several else "serve"
        source += f"{indent}return {listed}\n"
        made = cst.parse_module(source, config=file.module.config_for_parsing).body[0]
        assert isinstance(made, cst.FunctionDef) and isinstance(made.body, cst.IndentedBlock)
        inner, *last = made.body.body
        assert isinstance(inner, cst.FunctionDef) and isinstance(inner.body, cst.IndentedBlock)
        doc, rest = statements[:1], statements[1:]
        first = doc[0].body[0] if doc and isinstance(doc[0], cst.SimpleStatementLine) else None
        if not isinstance(first, cst.Expr) or not isinstance(first.value, (cst.SimpleString, cst.ConcatenatedString)):
            doc, rest = [], statements
        inner = inner.with_changes(body=inner.body.with_changes(body=[*rest, *inner.body.body]))
        return made.with_changes(body=made.body.with_changes(body=[*doc, inner, *last]))

    def _servable(self, examples: bool, function: cst.FunctionDef | None) -> list[tuple[str, Output]]:
        """The signatures whose inputs are there: without serialized examples TensorFlow 1 left the others out.

        Raises Blocked (TFM142) where none is left.
        """
        found = [(name, output) for name, output in self.signatures.outputs if examples or not output.examples]
        if not found:
            node = function.name if function is not None else None
            message = "the signature of this export output takes one input, serialized examples"
            raise Blocked("TFM142", node, message)
        return found

    def _beside(self, title: str, output: Output, entries: list[Entry], indent: str) -> str:
        """A signature of its own, which asks `serve` for the predictions, as source text."""
        if output.examples:
            entries = [("inputs", "inputs", *entries[0][2:])]
        parameters = ", ".join(parameter for _, parameter, _, _ in entries)
        taken = {*_TAKEN, *(parameter for _, parameter, _, _ in entries)}
        before, answer = self._answer(output, f"serve({parameters})", free("predictions", taken))
        body = "".join(indent * 2 + line for line in before)
        head = f"{_signature(entries, indent)}{indent}def {title}({parameters}):\n"
        return f"{head}{body}{indent * 2}return {answer}\n\n"

    def _answer(self, output: Output, predictions: str, name: str) -> tuple[list[str], str]:
        """A line that a function to serve needs, and what it returns."""
        if output.served is None:
            return [], f'{{"output": {predictions}}}' if self.single else predictions
        before = [] if len(output.served) == 1 else [f"{name} = {predictions}\n"]
        source = name if before else predictions
        items = [(key, source + ("" if entry is None else f'["{entry}"]')) for key, entry in output.served]
        return before, _listed(items)


def _listed(items: list[tuple[str, str]], indent: str = "") -> str:
    """A dict of some keys, as source text; one to a line where it is long and an indentation is given."""
    texts = [f'"{key}": {value}' for key, value in items]
    if not indent or len(", ".join(texts)) <= WIDTH - 16:
        return f"{{{', '.join(texts)}}}"
    return "{\n" + "".join(f"{indent * 2}{text},\n" for text in texts) + f"{indent}}}"


def _signature(entries: list[Entry], indent: str) -> str:
    """The decorator of a function to serve that takes these inputs, as a line of source text."""
    specs = [f'tf.TensorSpec({shape}, {dtype}, name="{key}")' for key, _, dtype, shape in entries]
    listed = ", ".join(specs)
    if len(listed) > 66:
        listed = "".join(f"\n{indent * 2}{spec}," for spec in specs) + f"\n{indent}"
    return f"{indent}@tf.function(input_signature=[{listed}])\n"


@dataclass
class Form:
    """A serving function as the models of some signatures want it, and the keys of the predictions of each of them."""

    function: cst.FunctionDef
    keys: list[frozenset[str]]


def joined(forms: Sequence[Form]) -> cst.FunctionDef | None:
    """One serving function of the forms that it has for different models; None where nothing tells these apart.

    A model is asked for a prediction that no model of another form has: `if "probabilities" in predictor.output:`. What
    the forms begin with alike stands above.
    """
    if len(forms) == 1:
        return forms[0].function
    if not all(keys for form in forms for keys in form.keys):
        return None
    bodies = [_lines_of(form.function) for form in forms]
    shared = 0
    while all(
        len(body) > shared + 1 and isinstance(body[shared], cst.FunctionDef) and body[shared].deep_equals(other)
        for body in bodies
        for other in bodies[0][shared : shared + 1]
    ):
        shared += 1
    made = bodies[-1][:shared]
    between = [cst.EmptyLine(indent=False)] if shared else []
    for form, body in zip(forms[:-1], bodies):
        others = [keys for other in forms if other is not form for keys in other.keys]
        own = sorted(frozenset.intersection(*form.keys).difference(*others))
        if not own:
            return None
        test = cst.parse_expression(f'"{own[0]}" in predictor.output')
        first, *rest = body[shared:]
        made.append(cst.If(test, cst.IndentedBlock([_below(first, []), *rest]), leading_lines=between))
        between = [cst.EmptyLine(indent=False)]
    first, *rest = bodies[-1][shared:]
    made += [_below(first, between), *rest]
    return forms[-1].function.with_changes(body=forms[-1].function.body.with_changes(body=made))


def _lines_of(function: cst.FunctionDef) -> list[cst.BaseStatement]:
    """The statements of a function, one to a line."""
    return [s for s in function.body.body if isinstance(s, cst.BaseStatement)]


def _below(statement: cst.BaseStatement, blank: list[cst.EmptyLine]) -> cst.BaseStatement:
    """A statement with these empty lines above it and its comments."""
    assert isinstance(statement, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
    comments = [line for line in statement.leading_lines if line.comment is not None]
    return statement.with_changes(leading_lines=[*blank, *comments])


def serving_maker(
    project: Project, file: ParsedFile, call: cst.Call
) -> tuple[ParsedFile, cst.FunctionDef, cst.FunctionDef] | None:
    """The function (or only method of its name) that is called, where it returns a serving function made in it."""
    found = project.function(file, call.func)
    if found is None and isinstance(call.func, cst.Attribute) and file.imports.resolve(call.func) is None:
        methods = methods_named(project, call.func.attr.value)
        found = methods[0] if len(methods) == 1 else None
    if found is None or not isinstance(found[1].body, cst.IndentedBlock) or found[1].decorators:
        return None
    where, maker = found
    returns = returns_in(maker.body)
    value = returns[0].value if len(returns) == 1 else None
    if not isinstance(value, cst.Name):
        return None
    inner = [s for s in maker.body.body if isinstance(s, cst.FunctionDef) and s.name.value == value.value]
    bound = [name for name, _ in bindings(maker) if name == value.value]
    return (where, maker, inner[0]) if len(inner) == 1 and len(bound) == 1 and not inner[0].decorators else None


@dataclass(frozen=True)
class _Placed:
    """A dict of placeholders that a loop makes: its name, a key and a placeholder of it, and `for key in ...`.

    `doc` are the statements before it, which say something only, and `after` those that come then.
    """

    name: str
    key: cst.BaseExpression
    value: cst.BaseExpression
    loop: cst.CSTNode
    doc: tuple[cst.BaseStatement, ...]
    after: tuple[cst.BaseStatement, ...]


def _without_defaults(function: cst.FunctionDef, body: cst.IndentedBlock) -> cst.IndentedBlock:
    """The body of a function that an Estimator calls without arguments, its literal defaults in the places of their
    names. Raises Blocked where it needs arguments, or gives such a name another value.
    """
    params = function.params
    defaults: dict[str, cst.BaseExpression] = {}
    for one in parameters_of(function):
        literal = one.default is not None and (is_none(one.default) or number(one.default) is not None)
        if literal and one.default is not None and one.name.value not in names_changed([body]):
            defaults[one.name.value] = one.default
    if len(defaults) < len(parameters_of(function)) or isinstance(params.star_arg, cst.Param) or params.star_kwarg:
        raise Blocked("TFM142", function.name, "the serving_input_receiver_fn has parameters")
    if not defaults:
        return body
    new = body.visit(_Defaults({node: defaults[node.value] for node in name_nodes(body) if node.value in defaults}))
    assert isinstance(new, cst.IndentedBlock)
    return new


class _Defaults(cst.CSTTransformer):
    """Literals in the places of names."""

    def __init__(self, said: dict[cst.Name, cst.BaseExpression]) -> None:
        super().__init__()
        self.said = said

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        value = self.said.get(original_node)
        return updated_node if value is None else value.deep_clone()


def _comprehension(file: ParsedFile, statements: Sequence[cst.BaseStatement], name: str) -> _Placed | None:
    """`name = {key: tf.placeholder(...) for key in ...}`, the first thing that a serving function makes.

    Also `name = {}` and `for key in ...: name[key] = tf.placeholder(...)` on the lines behind.
    """
    first = statements[0] if statements else None
    doc = 1 if first is not None and is_docstring(first) else 0
    if len(statements) == doc:
        return None
    found = _values(statements[doc], name)
    value = found[0][1] if len(found) == 1 and found[0][0] is statements[doc] else None
    placed = None
    if isinstance(value, cst.DictComp) and value.for_in.inner_for_in is None:
        placed = _Placed(name, value.key, value.value, value.for_in, (), tuple(statements[doc + 1 :]))
    elif isinstance(value, cst.Dict) and not value.elements and len(statements) > doc + 1:
        placed = _placed_by_loop(statements[doc + 1], name, tuple(statements[doc + 2 :]))
    made = placed.value if placed is not None else None
    if not isinstance(made, cst.Call) or file.imports.tensorflow(made.func) != "tf.placeholder":
        return None
    assert placed is not None
    if any(_values(node, name) for node in placed.after):
        return None
    _check_unchanged(placed.after, name)
    return replace(placed, doc=tuple(statements[:doc]))


def _check_unchanged(statements: Sequence[cst.BaseStatement], name: str) -> None:
    """Refuses statements that put other tensors into a dict of placeholders: those were fed then. Raises Blocked."""
    names = {name}
    for statement in statements:
        for target, value in _aliases(statement):
            names |= {target} if value in names else set()
        for known, node in bindings(statement):
            if known in names and not isinstance(node, cst.Name):
                message = f"`{name}` is changed after its placeholders are created: make the features a separate dict"
                raise Blocked("TFM142", node, message)


def _aliases(statement: cst.BaseStatement) -> list[tuple[str, str]]:
    """`name = other`, where that is all of a statement."""
    small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
    if not isinstance(small, cst.Assign) or not isinstance(small.value, cst.Name):
        return []
    return [(t.target.value, small.value.value) for t in small.targets if isinstance(t.target, cst.Name)]


def _placed_by_loop(node: cst.BaseStatement, name: str, after: tuple[cst.BaseStatement, ...]) -> _Placed | None:
    """`for key in ...: name[key] = ...`, and nothing else in the loop."""
    if not isinstance(node, cst.For) or node.orelse is not None or not isinstance(node.body, cst.IndentedBlock):
        return None
    line = node.body.body[0] if len(node.body.body) == 1 else None
    small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
    target = small.targets[0].target if isinstance(small, cst.Assign) and len(small.targets) == 1 else None
    if not isinstance(target, cst.Subscript) or len(target.slice) != 1:
        return None
    index = target.slice[0].slice
    if not isinstance(index, cst.Index) or not isinstance(target.value, cst.Name) or target.value.value != name:
        return None
    assert isinstance(small, cst.Assign)
    return _Placed(name, index.value, small.value, cst.CompFor(target=node.target, iter=node.iter), (), after)


def _with_first(function: cst.FunctionDef, statements: Sequence[cst.CSTNode]) -> cst.FunctionDef:
    """A function with statements before its own."""
    body = function.body
    assert isinstance(body, cst.IndentedBlock)
    return function.with_changes(body=body.with_changes(body=[*statements, *body.body]))


Entry = tuple[str, str, str, str]  # the key of the signature, the parameter, its dtype, its shape


def _values(scope: cst.CSTNode, name: str) -> list[tuple[cst.SimpleStatementLine | None, cst.BaseExpression]]:
    """`name = value` in a scope, with the line where that is all of it."""
    found: list[tuple[cst.SimpleStatementLine | None, cst.BaseExpression]] = []
    for line in of_kinds(scope, cst.SimpleStatementLine, cst.SimpleStatementSuite):
        for small in line.body:
            for target in small.targets if isinstance(small, cst.Assign) else ():
                if is_name(target.target, name):
                    alone = isinstance(line, cst.SimpleStatementLine) and len(line.body) == len(small.targets) == 1
                    found.append((line if alone else None, small.value))
    return found
