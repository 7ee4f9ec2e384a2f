"""A whole driver: where the new lines stand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import libcst as cst

from migrator.emit.driver.draft import Asked, Draft, DrivenModel, FileNames, begin
from migrator.emit.driver.helpers import write_helpers
from migrator.emit.driver.planning import make_plan
from migrator.emit.driver.setting_up import copies_params, set_up
from migrator.emit.driver.strategy import left_out, strategy_lines
from migrator.emit.driver.told import tell
from migrator.emit.driver.uses import comments_in, expression, train, train_and_evaluate
from migrator.emit.file import Within
from migrator.emit.layout import statements
from migrator.program.parsed import Blocked, ParsedFile, Project
from migrator.program.training import TrainingProgram
from migrator.rules.rewriter import Rewriter
from migrator.rules.session_config import Setting
from migrator.targets import setup
from migrator.targets.choosing import own_strategy
from migrator.targets.plan import Target, TrainingPlan


@dataclass(frozen=True)
class EmittedDriver:
    """Replacements by node: statements for statements (none: removed), an expression for an expression.

    `before` are statements to put before others, `within` those that get a `with` line around them. `helpers` are
    functions to put before the driver, as source text. `in_scope` says that the model is made under a strategy.
    """

    statements: dict[cst.CSTNode, list[cst.BaseStatement]]
    expressions: dict[cst.CSTNode, cst.BaseExpression]
    before: dict[cst.CSTNode, list[cst.BaseStatement]]
    helpers: tuple[str, ...]
    needs: frozenset[str]
    remarks: tuple[Blocked, ...]
    target: Target
    within: tuple[Within, ...] = ()
    in_scope: bool = False


def emit_driver(
    project: Project, program: TrainingProgram, rewriter: Rewriter, names: FileNames, model: DrivenModel, asked: Asked
) -> EmittedDriver:
    """What takes the place of an Estimator, its specs and the calls on it.

    `rewriter` is the one that the rest of the file is rewritten with, `names` are those of the file. Raises Blocked for
    what the new driver cannot do.
    """
    draft = begin(project, program, rewriter, names, model, asked)
    write_helpers(draft)
    draft.model_name = _model_name(draft)
    if model.has_predictor:
        draft.names["predictor"] = draft.free("predictor")
    return _emit(draft)


def _model_name(draft: Draft) -> str:
    """The user's own name for the Estimator, unless that name says Estimator, or that of a model that is ready."""
    if draft.program.model.ready:
        return draft.file.code(draft.program.model.callee)
    if "estimator" in draft.program.variable.lower():
        return draft.free("model")
    return draft.program.variable


def _emit(draft: Draft) -> EmittedDriver:
    program, place = draft.program, draft.program.place.statement
    assert place is not None
    kept = [] if program.model.ready else draft.data.keep_first()
    plan = make_plan(draft)
    replaced: dict[cst.CSTNode, list[cst.BaseStatement]] = {line: [] for line in program.removed}
    replaced.update({line: _settings(draft, made) for line, made in program.session.lines.items()})
    replaced.update(_task(draft))
    before: dict[cst.CSTNode, list[cst.BaseStatement]] = {}
    first, later = draft.data.first()
    made = set_up(draft, plan, first)
    lines = draft.parsed([*kept, *made.lines])
    chosen = draft.own.choice.first if draft.own is not None and draft.own.choice is not None else None
    if chosen is not None and program.session.first:
        before[chosen] = _settings(draft, program.session.first)
    elif draft.model.scoped is None:
        lines = [*_settings(draft, program.session.first), *lines]
    replaced[place] = lines if later is None else []
    if later is not None:
        before.setdefault(later, []).extend(lines)
    within = _scope_model(draft, plan, replaced, before)
    own = own_strategy(program) if draft.target.mesh else draft.own or left_out(draft)
    if own is not None and own.line is not None and not plan.made:
        replaced[own.line] = []
    expressions: dict[cst.CSTNode, cst.BaseExpression] = dict(draft.changed)
    tell(draft, plan)
    both = program.train_and_evaluate
    if both is not None:
        assert both.place.statement is not None
        replaced[both.place.statement] = train_and_evaluate(draft, both, plan)
    for use in program.uses:
        if use.method == "train":
            assert use.place.statement is not None
            replaced[use.place.statement] = train(draft, use, plan)
        else:
            expressions[use.place.call] = expression(draft, use, plan)
    for lent in program.lent:
        name = draft.names.get("predictor", draft.model_name) if lent.predicts else draft.model_name
        expressions[lent.argument] = cst.Name(name)
        expressions.update({use.place.call: expression(draft, use, plan, lent) for use in lent.uses})
    for node in program.folders:
        assert plan.model_dir is not None
        expressions[node] = cst.parse_expression(plan.model_dir)
    _keep_comments(draft, replaced)
    remarks = draft.remarks
    if plan.evaluates_apart:  # what the strategy of the evaluations says is carried over
        remarks = [remark for remark in remarks if remark.code != "TFM173"]
    return EmittedDriver(
        statements=replaced,
        expressions=expressions,
        before=before,
        helpers=tuple(draft.helpers),
        needs=_needs(draft, plan),
        remarks=tuple(remarks),
        target=draft.target,
        within=within,
        in_scope=made.in_scope,
    )


def _task(draft: Draft) -> dict[cst.CSTNode, list[cst.BaseStatement]]:
    """The line that takes the place of a RunConfig which the program asks for its task."""
    reads = draft.program.config_reads
    if reads.line is None:
        return {}
    name = draft.helper("ClusterTask", lambda name: setup.cluster_task(name, draft.indent, reads.task))
    draft.needs |= {"json", "os"}
    message = f"`{reads.name}` has only those attributes of the RunConfig that come from TF_CONFIG"
    draft.say("TFM178", reads.line, message)
    return {reads.line: draft.parsed([f"{reads.name} = {name}()"])}


def _scope_model(
    draft: Draft,
    plan: TrainingPlan,
    replaced: dict[cst.CSTNode, list[cst.BaseStatement]],
    before: dict[cst.CSTNode, list[cst.BaseStatement]],
) -> tuple[Within, ...]:
    """Puts the statements that make a model of the program's own into the strategy's scope, and it before them."""
    scoped = draft.model.scoped
    if scoped is None:
        return ()
    settings = _settings(draft, draft.program.session.first)
    for line, made in draft.program.session.lines.items():
        if draft.file.position(line) > draft.file.position(scoped.first):
            settings += _settings(draft, made)
            replaced[line] = []
    strategy = strategy_lines(draft, plan)
    if scoped.runs and [*settings, *strategy]:
        before[scoped.runs[0][-1]] = [*settings, *draft.parsed(strategy)]
    return tuple(Within(f"with {plan.strategy_name}.scope():", run) for run in scoped.runs)


def _needs(draft: Draft, plan: TrainingPlan) -> frozenset[str]:
    """Modules that the new lines import."""
    needs = {"os", "time"} if draft.program.servings else {"os"} if plan.model_dir is not None else set()
    needs |= {"copy"} if copies_params(draft) else set()
    needs |= {"itertools"} if draft.iterates else set()
    if draft.loop.own and draft.target.mirrored_workers and plan.model_dir is not None:
        needs.add("tempfile")
    return frozenset(needs | draft.needs)


def _keep_comments(draft: Draft, replaced: dict[cst.CSTNode, list[cst.BaseStatement]]) -> None:
    """Puts the comments inside replaced statements over what comes in their place.

    Those of removed statements are kept by the file's rewriter.
    """
    for node, lines in replaced.items():
        if not lines:
            continue
        text = draft.file.code(draft.file.module.with_changes(body=lines))
        empty = [cst.EmptyLine(comment=cst.Comment(value)) for value in comments_in(node) if value not in text]
        first = lines[0]
        assert isinstance(first, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
        lines[0] = first.with_changes(leading_lines=[*empty, *first.leading_lines])


def _settings(draft: Draft, made: Sequence[Setting]) -> list[cst.BaseStatement]:
    """The statements that say what a ConfigProto said."""
    if any("{gpu}" in setting.text for setting in made) and "gpu" not in draft.names:
        draft.names["gpu"] = draft.free("gpu")
    return session_lines(made, draft.text, draft.names.get("gpu", ""), draft.file, draft.target.per_replica)


def session_lines(
    made: Sequence[Setting],
    text: Callable[[cst.BaseExpression], str],
    gpu: str,
    file: ParsedFile,
    replicas: bool = False,
) -> list[cst.BaseStatement]:
    """The statements that say what a ConfigProto said; `gpu` is a free name."""
    found: list[cst.BaseStatement] = []
    for setting in made:
        if setting.of_replicas and not replicas:
            continue
        value = "" if setting.value is None else text(setting.value)
        found += statements(setting.text.format(value=value, gpu=gpu) + "\n", file.module)
    return found


__all__ = ["EmittedDriver", "emit_driver"]
