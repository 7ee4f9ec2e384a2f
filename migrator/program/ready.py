"""`tf.keras.estimator.model_to_estimator`: the compiled Keras model in its place."""

from __future__ import annotations

from collections.abc import Container, Sequence

import libcst as cst

from migrator.program.body import Parameters
from migrator.program.calls import is_none
from migrator.program.model_reference import ModelReference
from migrator.program.parsed import Blocked, ParsedFile, Project, name_nodes
from migrator.program.scopes import bindings, path_to, returns_in, values_of

ESTIMATORS = ("tf.keras.estimator.model_to_estimator",)
PARAMETERS = (
    *("keras_model", "keras_model_path", "custom_objects", "model_dir", "config", "checkpoint_format"),
    *("use_v2_estimator", "metric_names_map", "export_outputs"),
)
_OPEN = ("keras_model_path", "custom_objects", "metric_names_map", "export_outputs")
_TRAINING = ("fit", "fit_generator", "train_on_batch", "load_weights", "set_weights", "evaluate", "predict")


def ready_model(
    project: Project, file: ParsedFile, scope: cst.CSTNode, call: cst.Call, bound: dict[str, cst.BaseExpression]
) -> ModelReference:
    """The model that an Estimator is made of. Raises Blocked (TFM194)."""
    for key in _OPEN:
        if not is_none(bound.get(key)):
            raise Blocked("TFM194", bound[key], f"`{key}` of model_to_estimator is not carried over")
    model = bound.get("keras_model")
    if not isinstance(model, cst.Name):
        raise Blocked("TFM194", model or call, "give model_to_estimator its Keras model by a name")
    compiled = any(_is_compiled(project, file, value) for value in values_of(scope, model.value))
    at = file.position(call)
    # The name may stand for other models before and after.
    given = [
        file.position(node) for name, node in bindings(scope) if name == model.value and isinstance(node, cst.Name)
    ]
    first = max((place for place in given if place < at), default=None)
    last = min((place for place in given if place > at), default=None)
    for name in [n for n in name_nodes(scope) if n.value == model.value and n is not model]:
        place = file.position(name)
        if (first is not None and place <= first) or (last is not None and place >= last):
            continue
        if place > at:
            raise Blocked(
                "TFM194", name, f"`{model.value}` is used after an Estimator was made of it, which had a copy"
            )
        around = path_to(scope, name)
        method = around[-2].attr.value if isinstance(around[-2], cst.Attribute) else None
        compiled = compiled or method == "compile"
        if method in _TRAINING:
            raise Blocked("TFM194", name, f"`{model.value}.{method}` before an Estimator is made of it")
    if not compiled:
        raise Blocked("TFM194", model, f"`{model.value}` is not compiled here, so that it cannot be trained")
    if first is None:
        raise Blocked("TFM194", model, f"`{model.value}` is not made beside the Estimator")
    function = cst.parse_module(f"def {model.value}(features):\n    pass\n").body[0]
    assert isinstance(function, cst.FunctionDef)
    parameters = Parameters("features", None, None, None, None, frozenset())
    return ModelReference(file, function, parameters, model, ready=True)


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


def check_uses(call: cst.Call, methods: Sequence[str]) -> None:
    """Refuses what the model itself does otherwise than its Estimator (TFM194)."""
    for method in methods:
        if method not in ("train", "evaluate"):
            raise Blocked(
                "TFM194", call, f"`{method}` of an Estimator that is made of a Keras model is not carried over"
            )
