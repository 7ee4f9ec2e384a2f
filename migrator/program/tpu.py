"""TPUEstimator on the machine at hand (use_tpu=False): what it says otherwise than an Estimator does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from migrator.program.body import Definition
from migrator.program.calls import bind, is_false, is_none, is_true
from migrator.program.modes import ModalStatement
from migrator.program.parsed import Blocked, ParsedFile

ESTIMATORS = ("tf.contrib.tpu.TPUEstimator", "tf.estimator.tpu.TPUEstimator")
SPECS = ("tf.contrib.tpu.TPUEstimatorSpec", "tf.estimator.tpu.TPUEstimatorSpec")
PARAMETERS = (
    *("model_fn", "model_dir", "config", "params", "use_tpu", "train_batch_size", "eval_batch_size"),
    *("predict_batch_size", "batch_axis", "eval_on_tpu", "export_to_tpu", "warm_start_from"),
)
SPEC = (
    *("mode", "predictions", "loss", "train_op", "eval_metrics", "export_outputs", "scaffold_fn", "host_call"),
    *("training_hooks", "evaluation_hooks", "prediction_hooks"),
)
_SIZES = {"train": "train_batch_size", "eval": "eval_batch_size", "infer": "predict_batch_size"}
_OPEN = "TFM144"


@dataclass(frozen=True)
class TpuArguments:
    """The batch sizes by mode that a TPUEstimator puts into `params`, and a remark about where the program runs."""

    batch_sizes: dict[str, cst.BaseExpression]
    remarks: tuple[Blocked, ...]


def read_tpu(bound: dict[str, cst.BaseExpression], call: cst.Call) -> TpuArguments:
    """What the arguments of a TPUEstimator say beside those of an Estimator. Raises Blocked (TFM145)."""
    use = bound.get("use_tpu")
    if use is None or is_true(use):
        raise Blocked(
            "TFM145", use or call, "this TPUEstimator wants a TPU: give it `use_tpu=False` to have it migrated"
        )
    remarks: list[Blocked] = []
    if not is_false(use):
        message = "the new program runs on the machine at hand, whatever this says: TPUs want a TPUStrategy"
        remarks.append(Blocked(_OPEN, use, message))
    sizes = {mode: bound[key] for mode, key in _SIZES.items() if not is_none(bound.get(key))}
    return TpuArguments(sizes, tuple(remarks))


def bind_spec(call: cst.Call, name: str | None) -> dict[str, cst.BaseExpression]:
    """The arguments of a TPUEstimatorSpec, `eval_metrics` among them. Raises Blocked for what changes the training."""
    bound = bind(call, SPEC, name or "TPUEstimatorSpec", "TFM105")
    if not is_none(bound.get("host_call")):
        raise Blocked("TFM110", bound["host_call"], "`host_call` is not carried over: write summaries from a callback")
    return bound


def metric_ops(
    file: ParsedFile,
    statements: Sequence[ModalStatement],
    definitions: Sequence[Definition],
    node: cst.BaseExpression,
) -> tuple[cst.BaseExpression, set[int], cst.FunctionDef]:
    """The dict of metrics that `eval_metrics=(metric_fn, tensors)` means, the statements that only made it, metric_fn.

    The body of metric_fn is read as if it stood in the model_fn. Raises Blocked (TFM501).
    """
    gone: set[int] = set()
    node = _followed(definitions, node, gone)
    if not isinstance(node, cst.Tuple) or len(node.elements) != 2:
        raise Blocked("TFM501", node, "`eval_metrics` is not a pair of a function and its tensors")
    head, tensors = node.elements[0].value, _followed(definitions, node.elements[1].value, gone)
    function = None
    if isinstance(head, cst.Name):
        for index, statement in enumerate(statements):
            if isinstance(statement.node, cst.FunctionDef) and statement.node.name.value == head.value:
                function = statement.node
                gone.add(index)
        function = function or file.functions.get(head.value)
    if function is None or not isinstance(function.body, cst.IndentedBlock):
        raise Blocked("TFM501", head, "the function of `eval_metrics` is not one of this file")
    values = _arguments(function, tensors)
    result: cst.BaseExpression | None = None
    for line in function.body.body:
        small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
        if isinstance(small, cst.Return) and small.value is not None:
            result = _with(small.value, values)
        elif isinstance(small, cst.Assign) and len(small.targets) == 1 and result is None:
            target = small.targets[0].target
            if not isinstance(target, cst.Name):
                raise Blocked(
                    "TFM501", function.name, "the function of `eval_metrics` is not read: give it plain lines"
                )
            values[target.value] = _with(small.value, values)
        elif not (isinstance(small, cst.Expr) and isinstance(small.value, cst.SimpleString)):
            raise Blocked("TFM501", function.name, "the function of `eval_metrics` is more than plain lines")
    if result is None:
        raise Blocked("TFM501", function.name, "the function of `eval_metrics` returns nothing")
    return result, gone, function


def _followed(definitions: Sequence[Definition], node: cst.BaseExpression, gone: set[int]) -> cst.BaseExpression:
    if isinstance(node, cst.Name):
        found = [d for d in definitions if d.name == node.value]
        if len(found) == 1 and isinstance(found[0].value, cst.Tuple | cst.List | cst.Dict):
            gone.add(found[0].index)
            return found[0].value
    return node


def _arguments(function: cst.FunctionDef, tensors: cst.BaseExpression) -> dict[str, cst.BaseExpression]:
    """What a metric_fn is called with: tensors by position, or by name."""
    names = [p.name.value for p in function.params.params]
    if isinstance(tensors, cst.List | cst.Tuple):
        given = [element.value for element in tensors.elements]
        if len(given) == len(names):
            return dict(zip(names, given, strict=True))
    if isinstance(tensors, cst.Dict):
        found: dict[str, cst.BaseExpression] = {}
        for element in tensors.elements:
            key = element.key if isinstance(element, cst.DictElement) else None
            if not isinstance(key, cst.SimpleString):
                break
            found[str(key.evaluated_value)] = element.value
        if set(found) == set(names):
            return found
    raise Blocked("TFM501", tensors, "the tensors of `eval_metrics` are not those that its function takes")


def _with(node: cst.BaseExpression, values: dict[str, cst.BaseExpression]) -> cst.BaseExpression:
    """An expression with names replaced by what they stand for."""
    new = node.visit(_Replaced(values))
    assert isinstance(new, cst.BaseExpression)
    return new


class _Replaced(cst.CSTTransformer):
    """Puts values in place of names; names of attributes and keywords stay."""

    def __init__(self, values: dict[str, cst.BaseExpression]) -> None:
        super().__init__()
        self.values = values

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        value = self.values.get(original_node.value)
        if value is None:
            return updated_node
        loose = isinstance(value, cst.BinaryOperation | cst.Comparison | cst.IfExp | cst.BooleanOperation)
        if loose and not value.lpar:
            value = value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        return value.deep_clone()

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.Attribute:
        return updated_node.with_changes(attr=original_node.attr)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(keyword=original_node.keyword)


__all__ = ["ESTIMATORS", "PARAMETERS", "SPECS", "TpuArguments", "bind_spec", "metric_ops", "read_tpu"]
