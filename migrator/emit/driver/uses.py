"""What the calls on an Estimator become: trainings, evaluations, predictions, exports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import libcst as cst

from migrator.emit.driver.data import MODES
from migrator.emit.driver.draft import Draft
from migrator.emit.driver.helpers import asks_for_keys, name_of_prediction
from migrator.emit.driver.planning import callbacks, named
from migrator.emit.driver.steps import batches, counted, is_endless, limits, never_end, tells_steps
from migrator.emit.layout import call
from migrator.names.bindings import bound_in
from migrator.program.calls import is_none
from migrator.program.comments import comment_lines
from migrator.program.exports import EXPORTS
from migrator.program.model_variables import is_one_linear_model
from migrator.program.parsed import Blocked, names_in
from migrator.program.starts import VARIABLES, asks_for_weights, asks_global_step
from migrator.program.training import Lent, TrainAndEvaluate, Use, bindings
from migrator.rules.arrays import is_array_input
from migrator.targets import setup
from migrator.targets.plan import TrainingPlan, as_argument, evaluated

_LONGEST = 120  # a line of the user's with something else on it is broken beyond this


def train(draft: Draft, use: Use, plan: TrainingPlan) -> list[cst.BaseStatement]:
    """The statements that train."""
    begin: list[str] = []
    given = limits(draft, use.arguments, use.place.call)
    steps, max_steps = given.get("steps"), given.get("max_steps")
    told = never_end(draft, use.arguments, "train")
    own = replace(plan, callbacks=callbacks(draft, use.arguments), told_steps=told)
    if any(hooks.reads_evaluations for _, hooks in draft.program.hooks):
        raise Blocked("TFM164", use.place.call, "a hook reads evaluation results, which `train` does not produce")
    if is_none(max_steps) and is_none(steps):
        begin += draft.data.keep_counted(use.arguments.get("input_fn"), plan.max_steps)
    dataset = draft.data.dataset(use.arguments.get("input_fn"), use.place.call, MODES[use.method])
    if not is_none(max_steps):
        assert max_steps is not None
        own = replace(own, endless=is_endless(draft, max_steps))
        lines = own.loop.train(own, dataset, batches(draft, max_steps), True)
    else:
        text = None if is_none(steps) else batches(draft, steps)  # type: ignore[arg-type]
        is_endless(draft, steps)
        lines = own.loop.train(own, dataset, text, False)
    return draft.parsed([*begin, *lines])


def train_and_evaluate(draft: Draft, both: TrainAndEvaluate, plan: TrainingPlan) -> list[cst.BaseStatement]:
    """The statements that train and evaluate, and what the program does with the answer."""
    counted_first = draft.data.keep_counted(both.train.get("input_fn"), plan.max_steps)
    lines = draft.parsed([*counted_first, plan.loop.train_and_evaluate(plan)])
    exported = draft.parsed(_exporters(draft, both, plan)) if both.exporters else []
    return [*lines, *_answered(draft, both, plan), *exported]


def _answered(draft: Draft, both: TrainAndEvaluate, plan: TrainingPlan) -> list[cst.BaseStatement]:
    """The user's line that goes on with the result of train_and_evaluate; none where it only names that."""
    if not both.answers or named(both) is not None:
        return []
    assert both.place.statement is not None
    draft.rewriter.replaced[both.place.call] = cst.parse_expression(plan.result)
    line = both.place.statement.visit(draft.rewriter)
    assert isinstance(line, cst.SimpleStatementLine)
    return [line.with_changes(leading_lines=())]


def _exporters(draft: Draft, both: TrainAndEvaluate, plan: TrainingPlan) -> list[str]:
    """Lines that export when the training is over: in the process that evaluates."""
    lines = []
    for exporter in both.exporters:
        if plan.model_dir is None:
            raise Blocked("TFM142", exporter.call, "exporters write to the `model_dir`: give the Estimator one")
        if exporter.kind == "Best" and plan.period is not None:
            raise Blocked("TFM142", exporter.call, "BestExporter is unsupported with several evaluations")
        if exporter.kind != "Final" and (plan.period is not None or draft.target.reads_cluster):
            message = f"the {exporter.kind}Exporter exports once, after the training"
            draft.say("TFM143", exporter.call, message)
        folder = f'os.path.join({plan.model_dir}, "export", {draft.text(exporter.name)})'
        arguments = [draft.names.get("predictor", draft.model_name), draft.text(exporter.serving), folder]
        depth = 1 if draft.target.reads_cluster else 0
        lines.append(draft.indent * depth + call(draft.names["export_model"], arguments, draft.indent, depth))
    if draft.target.reads_cluster:
        evaluates = f'{plan.resolver}.task_type == "evaluator" or not {plan.resolver}.cluster_spec().jobs'
        lines.insert(0, f"if {evaluates}:")
    return lines


def expression(draft: Draft, use: Use, plan: TrainingPlan, lent: Lent | None = None) -> cst.BaseExpression:
    """What a call that answers becomes, here or in a function that the model is lent to."""
    if use.method in EXPORTS:
        return _export(draft, use, lent)
    if use.method in VARIABLES:
        return _variables(draft, use)
    if use.method == "evaluate":
        return _on_lines(draft, use, *_evaluate(draft, use, plan, lent))
    return _on_lines(draft, use, *_predict(draft, use, lent))


def _export(draft: Draft, use: Use, lent: Lent | None) -> cst.BaseExpression:
    """The call that exports the model."""
    folder = draft.text(use.arguments["export_dir_base"])
    serving = draft.text(use.arguments["serving_input_receiver_fn"])
    text = f"{draft.names['export_model']}({_predictor(draft, lent)}, {serving}, {folder})"
    statement = use.place.statement
    small = statement.body[0] if statement is not None else None
    if not isinstance(small, cst.Expr) or small.value is not use.place.call:
        text += ".encode()"  # an Estimator answers with bytes
    return cst.parse_expression(text)


def _predictor(draft: Draft, lent: Lent | None) -> str:
    """The name of what predicts."""
    return draft.names.get("predictor", draft.model_name) if lent is None else lent.parameter


def _dataset(draft: Draft, use: Use, lent: Lent | None) -> str:
    """The dataset that a call is given."""
    if lent is not None:
        return _lent_dataset(draft, use, lent)
    return draft.data.dataset(use.arguments.get("input_fn"), use.place.call, MODES[use.method])


def _evaluate(draft: Draft, use: Use, plan: TrainingPlan, lent: Lent | None) -> tuple[str, list[str]]:
    """What an evaluation calls, and its arguments."""
    dataset = _dataset(draft, use, lent)
    model = draft.model_name if lent is None else lent.parameter
    given = use.arguments.get("steps")
    watched = as_argument(callbacks(draft, use.arguments), draft.indent, 0)
    if plan.evaluates_apart:
        count = None if given is None or is_none(given) else batches(draft, given)
        fed = evaluated(replace(plan, eval_dataset=dataset, eval_steps=count), 1)
    else:
        data, steps = counted(draft, dataset, given, None, never_end(draft, use.arguments, "eval"))
        fed = [data, *([] if steps is None else [f"steps={steps}"])]
    on_cluster = plan.local and draft.program.train_and_evaluate is None
    head = f"{plan.local}.current().evaluate" if on_cluster else f"{model}.evaluate"
    arguments = [*fed, *watched, "return_dict=True"]
    if draft.loop.own:
        loop = draft.names["loop"]
        head, arguments = f"{loop}.evaluate", [f"{loop}.batches({fed[0]})"]
    if tells_steps(draft, use, draft.program.scope if lent is None else lent.function):
        step = f"global_step=int({model}.optimizer.iterations.numpy())"
        return "dict", [f"{head}({', '.join(arguments)})", step]
    return head, arguments


def _predict(draft: Draft, use: Use, lent: Lent | None) -> tuple[str, list[str]]:
    """What a prediction calls, and its arguments."""
    arguments = [_predictor(draft, lent), _dataset(draft, use, lent)]
    watched = as_argument(callbacks(draft, use.arguments), draft.indent, 0)
    arguments += [argument.removeprefix("callbacks=") for argument in watched]
    if asks_for_keys(use):
        arguments.append(f"predict_keys={draft.text(use.arguments['predict_keys'])}")
    return draft.names[name_of_prediction(use)], arguments


def _on_lines(draft: Draft, use: Use, head: str, arguments: Sequence[str]) -> cst.BaseExpression:
    """A call in the place of another one: on one line where it fits there, with the comments of the old one."""
    text = f"{head}({', '.join(arguments)})"
    comments = [value for value in comments_in(use.place.call) if value not in text]
    if comments or _is_too_long(draft, use.place.call, text):
        # Lines in parentheses are printed with the indentation of the block that they come to.
        above = "".join(f"{value}\n{draft.indent}" for value in comments)
        filler = "" if comments else " " * _LONGEST  # what stands around it makes the line too long
        text = call(head, [above + arguments[0], *arguments[1:]], draft.indent, 0, filler).rstrip()
    return cst.parse_expression(text)


def _lent_dataset(draft: Draft, use: Use, lent: Lent) -> str:
    """The dataset of an input function in a function that has the model from elsewhere."""
    node = use.arguments.get("input_fn")
    if isinstance(node, cst.Name):
        given = lent.given(node.value)
        if given is not None:
            draft.datasets.check_returned(given)
            callee = draft.datasets.callee(given)
            if callee is not None and draft.datasets.passed(*callee, given, MODES[use.method]):
                raise Blocked(
                    "TFM602", given, "an input function that takes `params` cannot be passed to another function"
                )
            return f"{node.value}()"
        if any(is_array_input(draft.file.imports.tensorflow(made)) for made in _made_in(lent.function, node.value)):
            return f"{node.value}()"  # the line becomes a function of that name
    if node is not None and names_in(node) & {name for name, _ in bindings(draft.program.scope)}:
        shared = names_in(node) & {name for name, _ in bindings(draft.program.scope)}
        if not shared <= draft.file.functions.keys():
            raise Blocked(
                "TFM602", node, "the name of this input function has another meaning in the driver: rename it"
            )
    return draft.datasets.text(node, use.place.call, MODES[use.method])


def _is_too_long(draft: Draft, old: cst.Call, text: str) -> bool:
    """Whether a line gets too long when a call on it that fits there becomes `text`."""
    before = draft.file.code(old)
    if "\n" in before:
        return draft.file.position(old)[1] - 1 + len(text) > _LONGEST
    line = draft.file.text.splitlines()[draft.file.position(old)[0] - 1].rstrip()
    return len(line) - len(before) + len(text) > max(_LONGEST, len(line))


def _variables(draft: Draft, use: Use) -> cst.BaseExpression:
    """What the Estimator's newest checkpoint has, asked of the model."""
    call_node, name = use.place.call, use.arguments.get("name")
    if use.method == "get_variable_value" and asks_global_step(draft.file, name):
        return cst.parse_expression(f"int({draft.model_name}.optimizer.iterations.numpy())")
    if asks_for_weights(draft.file, use.method, name) and name is not None and not draft.target.mesh:
        if is_one_linear_model(draft.program.model_file, draft.program.model_fn):
            asked = draft.helper("weights_of", lambda free: setup.weights_of(free, draft.indent))
            return cst.parse_expression(f"{asked}({draft.model_name}, {draft.text(name)})")
    message = "variables have these names in TensorFlow 1 only: use the bridge"
    raise Blocked("TFM853", call_node, message)


def _made_in(function: cst.FunctionDef, name: str) -> list[cst.BaseExpression]:
    """What is called for the only value of a name of a function's own; nothing where it has others."""
    own = [one for one in bound_in(function) if one.name == name]
    return [one.value.func for one in own if len(own) == 1 and isinstance(one.value, cst.Call)]


def comments_in(node: cst.CSTNode) -> list[str]:
    """The comments inside a node and at its end, not those over a statement."""
    return [line.comment.value for line in comment_lines(node, leading=False) if line.comment is not None]


__all__ = ["comments_in", "expression", "train", "train_and_evaluate"]
