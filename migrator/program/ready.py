"""`tf.keras.estimator.model_to_estimator`: the compiled Keras model in its place."""

from __future__ import annotations

from collections.abc import Container, Sequence

import libcst as cst

from migrator.names.bindings import values_given
from migrator.pairing import pairwise
from migrator.program.body import Parameters
from migrator.program.calls import calls_in, is_none
from migrator.program.exports import EXPORTS
from migrator.program.model_reference import ModelReference
from migrator.program.parsed import Blocked, ParsedFile, Project, name_nodes, names_in
from migrator.program.region import reach
from migrator.program.scopes import bindings, path_to, returns_in
from migrator.walking import of_kinds, own_of_kinds

ESTIMATORS = ("tf.keras.estimator.model_to_estimator",)
PARAMETERS = (
    *("keras_model", "keras_model_path", "custom_objects", "model_dir", "config", "checkpoint_format"),
    *("use_v2_estimator", "metric_names_map", "export_outputs"),
)
_OPEN = ("keras_model_path", "custom_objects", "metric_names_map", "export_outputs")
_TRAINING = ("fit", "fit_generator", "train_on_batch", "load_weights", "set_weights", "evaluate", "predict")
#: What of TensorFlow makes variables, or holds some.
VARIABLES = (
    *("tf.keras.optimizers.", "tf.keras.metrics.", "tf.keras.layers.", "tf.keras.models.", "tf.keras.applications."),
    *("tf.keras.Model", "tf.keras.Sequential", "tf.keras.Input", "tf.train.", "tf.optimizers.", "tf.Variable"),
)
#: What the code of a function has that may make a part of a model.
WORDS = ("keras", "layers", "Optimizer", "Variable")
_INPUTS = ("tf.keras.Input", "tf.keras.layers.Input")


#: What a model says of how it is built, whatever its weights are.
_BUILD = ("input_names", "output_names", "name", "summary", "count_params", "input_shape", "output_shape", "get_config")


def ready_model(
    project: Project, file: ParsedFile, scope: cst.CSTNode, call: cst.Call, bound: dict[str, cst.BaseExpression]
) -> ModelReference:
    """The model that an Estimator is made of. Raises Blocked (TFM194)."""
    for key in _OPEN:
        if not is_none(bound.get(key)):
            raise Blocked("TFM194", bound[key], f"`{key}` of model_to_estimator is unsupported")
    model = bound.get("keras_model")
    if not isinstance(model, cst.Name):
        raise Blocked("TFM194", model or call, "assign the Keras model of model_to_estimator to a name")
    compiled = any(_is_compiled(project, file, value) for value in values_given(scope, model.value))
    at = file.position(call)
    # The name may stand for other models before and after.
    given = [
        file.position(node) for name, node in bindings(scope) if name == model.value and isinstance(node, cst.Name)
    ]
    first = max((place for place in given if place < at), default=None)
    _check_parts(project, file, scope, call, model.value)
    last = min((place for place in given if place > at), default=None)
    for name in [n for n in name_nodes(scope) if n.value == model.value and n is not model]:
        place = file.position(name)
        if (first is not None and place <= first) or (last is not None and place >= last):
            continue
        around = path_to(scope, name)
        if place > at and _tells_the_same(around):
            continue
        if place > at:
            raise Blocked(
                "TFM194", name, f"`{model.value}` is used after an Estimator was created from it, which had a copy"
            )
        method = around[-2].attr.value if isinstance(around[-2], cst.Attribute) else None
        compiled = compiled or method == "compile"
        if method in _TRAINING:
            raise Blocked("TFM194", name, f"`{model.value}.{method}` runs before an Estimator is created from it")
    if not compiled:
        raise Blocked(
            "TFM194", model, f"`{model.value}` is not compiled here, so it cannot be trained: compile it here"
        )
    if first is None:
        raise Blocked("TFM194", model, f"`{model.value}` is not created next to the Estimator: create it there")
    function = cst.parse_module(f"def {model.value}(features):\n    pass\n").body[0]
    assert isinstance(function, cst.FunctionDef)
    parameters = Parameters("features", None, None, None, None, frozenset())
    return ModelReference(file, function, parameters, model, ready=True)


def _tells_the_same(around: Sequence[cst.CSTNode]) -> bool:
    """Whether a mention of a model only asks for what its copy has as well: how it is built."""
    asked, above = _attribute_around(around, len(around) - 1), _attribute_around(around, len(around) - 2)
    if asked is None:
        return False
    if asked.attr.value in ("input", "output") and above is not None:
        return above.attr.value == "name"  # that of its tensor, in TensorFlow 2 without the number of an output
    changing = (cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.Attribute, cst.Del)
    return asked.attr.value in _BUILD and not (len(around) > 2 and isinstance(around[-3], changing))


def _attribute_around(around: Sequence[cst.CSTNode], index: int) -> cst.Attribute | None:
    """The attribute that is asked of the node of an index, among nodes that stand around each other."""
    node = around[index - 1] if index > 0 else None
    return node if isinstance(node, cst.Attribute) and node.value is around[index] else None


def _is_compiled(project: Project, file: ParsedFile, value: cst.BaseExpression) -> bool:
    """Whether a value is what a function of the given files returns, which compiles it."""
    found = project.function(file, value.func) if isinstance(value, cst.Call) else None
    if found is None:
        return False
    returned = {node.value.value for node in returns_in(found[1].body) if isinstance(node.value, cst.Name)}
    return _compiles(found[1].body, returned)


def _compiles(body: cst.BaseSuite, names: Container[str]) -> bool:
    """Whether the statements of a block surely compile a model of one of these names."""
    return any(_statement_compiles(statement, names) for statement in body.body)


def _statement_compiles(statement: cst.CSTNode | None, names: Container[str]) -> bool:
    if isinstance(statement, cst.With):
        return _compiles(statement.body, names)
    if isinstance(statement, cst.If):
        other = statement.orelse
        orelse = _compiles(other.body, names) if isinstance(other, cst.Else) else _statement_compiles(other, names)
        return orelse and _compiles(statement.body, names)
    if not isinstance(statement, cst.SimpleStatementLine):
        return False
    calls = [small.value for small in statement.body if isinstance(small, cst.Expr)]
    return any(
        isinstance(made, cst.Call)
        and isinstance(made.func, cst.Attribute)
        and made.func.attr.value == "compile"
        and isinstance(made.func.value, cst.Name)
        and made.func.value.value in names
        for made in calls
    )


def _surely_before(scope: cst.CSTNode, node: cst.CSTNode, call: cst.CSTNode) -> bool:
    """Whether a node, which stands before a call, is run each time before it."""
    around = path_to(scope, call)
    blocks = path_to(scope, node)
    return all(
        any(block is one for one in around) or isinstance(above, cst.With)
        for above, block in pairwise(blocks)
        if isinstance(block, cst.IndentedBlock)
    )


def _made_of(
    project: Project, file: ParsedFile, scope: cst.CSTNode, call: cst.Call, model: str
) -> tuple[list[cst.CSTNode], set[str]]:
    """The lines that make the model and its parts which have variables, and the names of these objects at the call."""
    lines = _lines(scope)
    at = file.position
    before = sorted((one for one in lines if at(one[0]) < at(call)), key=lambda one: at(one[0]))
    before = [one for one in before if not path_to(one[0], call)]
    live, slice_ = {model}, []
    own = {name for name, node in bindings(scope) if not isinstance(node, (cst.FunctionDef, cst.ClassDef))}
    own -= file.imports.names.keys()
    for line, bound, read in reversed(before):
        if bound & live:
            slice_.append((line, bound, read))
            plain = {name for name, node in bindings(line) if isinstance(node, cst.Name)}
            # `x = f(x)` reads what x was before.
            if _surely_before(scope, line, call):
                live -= plain - _read(line)
            live |= (read & own) - (bound - _read(line))
    made: list[cst.CSTNode] = []
    names: set[str] = set()
    for line, bound, read in reversed(slice_):
        plain = {name for name, node in bindings(line) if isinstance(node, cst.Name)}
        if any(_has_variables(project, file, one) for one in calls_in(line)) or (_read(line) | (bound - plain)) & names:
            made.append(line)
            names |= bound
        elif isinstance(line, cst.SimpleStatementLine) and read:
            names -= plain
    for line, bound, _ in before:
        value = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
        if isinstance(value, cst.Assign) and _root(value.value) in {*names, model}:
            names |= bound
    return made, {*names, model}


def _read(line: cst.CSTNode) -> set[str]:
    """The names that a line reads."""
    written = [node for _, node in bindings(line) if isinstance(node, cst.Name)]
    return {node.value for node in name_nodes(line) if not any(node is one for one in written)}


def _root(node: cst.CSTNode) -> str | None:
    """The name that an expression is, or takes a part of."""
    while isinstance(node, (cst.Attribute, cst.Subscript)) or (
        isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "get_layer"
    ):
        if isinstance(node, cst.Attribute) and node.attr.value not in ("layers", "optimizer", "weights", "get_layer"):
            return None
        node = node.func if isinstance(node, cst.Call) else node.value
    return node.value if isinstance(node, cst.Name) else None


def _has_variables(project: Project, file: ParsedFile, call: cst.Call) -> bool:
    function = project.function(file, call.func)
    if function is not None:
        made = reach(project, *function)
        return any(word in where.code(node) for node, where in made.items() for word in WORDS)
    name = file.imports.tensorflow(call.func) or ""
    return name.startswith(VARIABLES) and name not in _INPUTS


def _check_parts(project: Project, file: ParsedFile, scope: cst.CSTNode, call: cst.Call, model: str) -> None:
    """Refuses other uses of what the model is made of: the Estimator had copies of all. Raises Blocked (TFM194)."""
    made, names = _made_of(project, file, scope, call, model)
    for other in calls_in(scope):
        if other is call or file.imports.resolve(other.func) not in ESTIMATORS or not path_to(scope, other):
            continue
        given = next((a.value for a in other.args if a.keyword is None or a.keyword.value == "keras_model"), None)
        if isinstance(given, cst.Name):
            shared = {id(line) for line in made} & {
                id(s) for s in _made_of(project, file, scope, other, given.value)[0]
            }
            if shared:
                line = next(one for one in made if id(one) in shared)
                raise Blocked(
                    "TFM194",
                    line,
                    ("two Estimators are created from this model, and each had a copy: create a model for each"),
                )
    at = file.position
    for name in name_nodes(scope):
        if name.value not in names - {model}:
            continue
        if at(name) < at(call):
            above = path_to(scope, name)[-2]
            if isinstance(above, cst.Attribute) and above.attr.value in _TRAINING:
                message = f"`{name.value}.{above.attr.value}` runs before an Estimator is created from it"
                raise Blocked("TFM194", name, message)
            continue
        again = [node for bound, node in bindings(scope) if bound == name.value and isinstance(node, cst.Name)]
        if any(at(call) < at(node) <= at(name) and _surely_before(scope, node, name) for node in again):
            continue
        message = f"`{name.value}` of the model is used after an Estimator was created from it, which had a copy"
        raise Blocked("TFM194", name, message)


def check_kept(
    file: ParsedFile, scope: cst.CSTNode, call: cst.Call, model: cst.BaseExpression, uses: Sequence[cst.Call]
) -> None:
    """Refuses a name of the model that stands for something else before the Estimator's last use (TFM194).

    `uses` drive the Estimator; where there is none, other functions do, at any time.
    """
    assert isinstance(model, cst.Name)
    at = file.position
    last = max(map(at, uses), default=None)
    message = f"`{model.value}` is reassigned before the last use of the Estimator created from it: use another name"
    for name, node in bindings(scope):
        if name != model.value or isinstance(node, (cst.Attribute, cst.Subscript)):
            continue
        loops = [one for one in path_to(scope, node) if isinstance(one, (cst.For, cst.While))]
        if at(node) > at(call):
            again = any(path_to(loop, one) for loop in loops for one in (call, *uses))
            if last is None or at(node) < last or again:
                raise Blocked("TFM194", node, message)
        elif any(at(use) < at(call) and path_to(loop, use) for loop in loops for use in uses):
            raise Blocked("TFM194", node, message)
    for one in of_kinds(scope, cst.NameItem):
        if one.name.value != model.value:
            continue
        if not (isinstance(scope, cst.FunctionDef) and any(path_to(s, one) for s in scope.body.body[:1])):
            raise Blocked("TFM194", one, message)


def check_uses(call: cst.Call, methods: Sequence[str]) -> None:
    """Refuses what the model itself does otherwise than its Estimator (TFM194)."""
    for method in methods:
        if method not in ("train", "evaluate", "predict", *EXPORTS):
            raise Blocked("TFM194", call, f"`{method}` of an Estimator created from a Keras model is unsupported")


def _lines(scope: cst.CSTNode) -> list[tuple[cst.CSTNode, set[str], set[str]]]:
    """The lines of a scope, and the heads of its loops, with the names that they bind and read."""
    found: list[tuple[cst.CSTNode, set[str], set[str]]] = []
    for node in own_of_kinds(scope, cst.For, cst.SimpleStatementLine, inner=(cst.FunctionDef, cst.ClassDef)):
        if isinstance(node, cst.For):
            found.append((node.iter, names_in(node.target), names_in(node.iter)))
        else:
            found.append((node, {name for name, _ in bindings(node)}, names_in(node)))
    return found
