"""Stock hooks that end a training, as callbacks that end it after the same step."""

from __future__ import annotations

from dataclasses import dataclass, field

import libcst as cst

from migrator.findings import Severity
from migrator.program.calls import bind, is_none
from migrator.program.parsed import Blocked
from migrator.rules.rule import Rule

RULES = (
    Rule(
        "TFM163",
        "early stopping",
        Severity.REVIEW,
        """
`make_early_stopping_hook`, `stop_if_no_decrease_hook`, `stop_if_no_increase_hook`, `stop_if_lower_hook` and
`stop_if_higher_hook` become a small callback in the program, which ends the training after the same step as the hook
did. `tf.keras.callbacks.EarlyStopping` does not: it counts epochs, looks at the end of each, and starts with the first
evaluation; a hook looked after the first step and every `run_every_steps` steps from there (measured: evaluations
every 5 steps, `run_every_steps=5`, a loss that never falls for 10 steps: the Estimator stops after step 16, one step
into the next part of the training).

Things to look at: with `run_every_secs` the clock decides, in both programs. `EvalSpec(throttle_secs=...)` (600 seconds
unless it is given) made the Estimator skip evaluations; the new program evaluates after every part of the training, so
that it may stop earlier. Evaluations of an earlier run of the program, which the hook read from the folder of the
`model_dir`, are not known to the callback. A program with such a hook is migrated for one device: in a cluster the
evaluator is a process of its own, which the callback does not hear.
""",
    ),
    Rule(
        "TFM166",
        "a hook ends the training of a program that may run on a cluster",
        Severity.REVIEW,
        """
`train_and_evaluate` runs on whatever cluster TF_CONFIG tells, and so does the program that it becomes, unless a hook
ends the training: on a cluster every worker would have to stop after the same step, which a callback cannot see to (the
others wait for a worker that has stopped). The program is migrated for one device.
""",
    ),
    Rule(
        "TFM164",
        "unsupported early stopping",
        Severity.MANUAL,
        """
A hook of the `stop_if_...` family reads the evaluations of the program. It needs `train_and_evaluate`, `max_steps`,
and a RunConfig with `save_checkpoints_steps`, because every checkpoint is followed by an evaluation; without these the
evaluations came by the clock, or from another process (`eval_dir=`). Give these arguments, or write a
`tf.keras.callbacks.Callback` that sets `self.model.stop_training = True`.
""",
    ),
)

STOP_AT_STEP = '''\
class {name}(tf.keras.callbacks.Callback):
    """Ends the training after `num_steps` more steps, or after step `last_step` of all."""

    def __init__(self, num_steps=None, last_step=None):
        super().__init__()
        self.num_steps, self.last_step = num_steps, last_step

    def on_train_begin(self, logs=None):
        if self.num_steps is not None:
            self.last_step = self.model.optimizer.iterations.numpy() + self.num_steps

    def on_train_batch_end(self, batch, logs=None):
        if self.model.optimizer.iterations.numpy() >= self.last_step:
            self.model.stop_training = True
'''

_STOP_PREDICTION = '''\
class {name}(tf.keras.callbacks.Callback):
    """Ends a prediction after `num_steps` batches."""

    def __init__(self, num_steps):
        super().__init__()
        self.num_steps = num_steps

    def on_predict_batch_end(self, batch, logs=None):
        self.model.stop_training = batch + 1 >= self.num_steps
'''

_STOP_WHEN = '''\
class {name}(tf.keras.callbacks.Callback):
    """Ends the training when `should_stop_fn` says so; it is asked after the first step and {every}."""

    def __init__(self, should_stop_fn, {period}):
        super().__init__()
        self.should_stop_fn, self.{period} = should_stop_fn, {period}
        self.looked = None

    def on_train_batch_end(self, batch, logs=None):
        {now}
        if self.looked is None or {variable} >= self.looked + self.{period}:
            self.looked = {variable}
            if self.should_stop_fn():
                self.model.stop_training = True
'''

_STOP_IF = '''\
class {name}(tf.keras.callbacks.Callback):
    """Ends the training when {when}.

    It looks at the evaluations after the first step and {every}.
    """

    def __init__(self, metric_name, {limit}, {period}, min_steps=0):
        super().__init__()
        self.metric_name, self.{limit}, self.min_steps = metric_name, {limit}, min_steps
        self.{period} = {period}
        {state}
        self.looked = None

    def on_train_batch_end(self, batch, logs=None):
        {now}
        self.looks = self.looked is None or {variable} >= self.looked + self.{period}
        if self.looks:
            self.looked = {variable}
            if self.enough:
                self.model.stop_training = True

    def on_epoch_end(self, epoch, logs=None):
        step, value = self.model.optimizer.iterations.numpy(), logs["val_" + self.metric_name]
        if step >= self.min_steps:
{judged}
        if self.looks and self.enough:
            self.model.stop_training = True
'''

_IMPROVEMENT = """\
            if self.best is None or value {better} self.best:
                self.best, self.best_step = value, step
            self.enough = self.enough or step - self.best_step >= self.{limit}"""
_THRESHOLD = """\
            self.enough = self.enough or value {better} self.{limit}"""

_PERIODS = {
    "run_every_steps": ("every `run_every_steps` steps", "step = self.model.optimizer.iterations.numpy()", "step"),
    "run_every_secs": ("every `run_every_secs` seconds", "now = time.time()", "now"),
}
_FAMILY = {
    "stop_if_no_decrease_hook": ("StopIfNoDecrease", "max_steps_without_decrease", "<", "has not decreased for"),
    "stop_if_no_increase_hook": ("StopIfNoIncrease", "max_steps_without_increase", ">", "has not increased for"),
    "stop_if_lower_hook": ("StopIfLower", "threshold", "<", "is lower than"),
    "stop_if_higher_hook": ("StopIfHigher", "threshold", ">", "is higher than"),
}


@dataclass(frozen=True)
class StockCallback:
    """A callback in the place of a stock hook: the class (its wanted name, and its text with `{name}` in it), and the
    call's arguments, nodes of the old call. `given` are the arguments of the old call by name.
    """

    name: str
    text: str
    arguments: dict[str, cst.BaseExpression | None] = field(default_factory=dict)
    given: dict[str, cst.BaseExpression] = field(default_factory=dict)
    defaults: dict[str, str] = field(default_factory=dict)
    needs: frozenset[str] = frozenset()
    reads_evaluations: bool = False
    remark: str | None = None


def stop_at_step(node: cst.Call, name: str) -> StockCallback:
    """The callback in place of a StopAtStepHook."""
    given = {k: v for k, v in bind(node, ("num_steps", "last_step"), name, "TFM110").items() if not is_none(v)}
    if len(given) != 1:
        raise Blocked("TFM110", node, "StopAtStepHook takes one of `num_steps` and `last_step`")
    return StockCallback("StopAtStep", STOP_AT_STEP, dict(given), given)


def stop_prediction(node: cst.Call, name: str) -> StockCallback | None:
    """The callback in place of a StopAtStepHook of a prediction, beside a hook that counts its batches as steps."""
    made = stop_at_step(node, name)
    if "num_steps" not in made.given:
        return None
    return StockCallback("StopAfterBatches", _STOP_PREDICTION, made.arguments, made.given)


def read_early_stopping(node: cst.Call, name: str) -> StockCallback | None:
    """The callback in place of a hook of early stopping; None for another call. Raises Blocked (TFM164)."""
    last = name.rpartition(".")[2]
    if last == "make_early_stopping_hook":
        given = bind(node, ("estimator", "should_stop_fn", "run_every_secs", "run_every_steps"), name, "TFM164")
        if "should_stop_fn" not in given:
            raise Blocked("TFM164", node, "`should_stop_fn` is missing")
        period, value = _period(node, given)
        every, now, variable = _PERIODS[period]
        text = _fill(_STOP_WHEN, period=period, every=every, now=now, variable=variable)
        arguments = {"should_stop_fn": given["should_stop_fn"], period: value}
        message = f"the early stopping hook is now a callback, which checks {every} as well"
        return _stock("StopWhen", text, arguments, given, period, False, message)
    if last not in _FAMILY:
        return None
    wanted, limit, better, what = _FAMILY[last]
    parameters = ("estimator", "metric_name", limit, "eval_dir", "min_steps", "run_every_secs", "run_every_steps")
    given = bind(node, parameters, name, "TFM164")
    if not is_none(given.get("eval_dir")):
        raise Blocked("TFM164", given["eval_dir"], "`eval_dir`, with evaluations of another process, is unsupported")
    if "metric_name" not in given or limit not in given:
        raise Blocked("TFM164", node, f"`metric_name` or `{limit}` is missing")
    period, value = _period(node, given)
    every, now, variable = _PERIODS[period]
    threshold = limit == "threshold"
    text = _fill(
        _STOP_IF,
        when=f"a metric of the evaluations {what} " + ("`threshold`" if threshold else f"`{limit}` steps"),
        every=every,
        limit=limit,
        period=period,
        state="self.enough = False" if threshold else "self.best, self.best_step, self.enough = None, None, False",
        now=now,
        variable=variable,
        judged=_fill(_THRESHOLD if threshold else _IMPROVEMENT, better=better, limit=limit),
    )
    arguments = {"metric_name": given["metric_name"], limit: given[limit], period: value}
    if not is_none(given.get("min_steps")):
        arguments["min_steps"] = given["min_steps"]
    message = f"`{last}` is now a callback, which checks the evaluation after each part of the training"
    return _stock(wanted, text, arguments, given, period, True, message)


def _stock(
    name: str,
    text: str,
    arguments: dict[str, cst.BaseExpression | None],
    given: dict[str, cst.BaseExpression],
    period: str,
    reads: bool,
    message: str,
) -> StockCallback:
    needs = frozenset(("time",)) if period == "run_every_secs" else frozenset[str]()
    defaults = {"run_every_secs": "60"}
    return StockCallback(name, text, arguments, given, defaults, needs, reads, message)


def _period(node: cst.Call, given: dict[str, cst.BaseExpression]) -> tuple[str, cst.BaseExpression | None]:
    """Which of the two periods counts, and its value (None: the default)."""
    steps, seconds = given.get("run_every_steps"), given.get("run_every_secs")
    if is_none(steps):
        if seconds is not None and is_none(seconds):
            raise Blocked("TFM164", node, "`run_every_secs` or `run_every_steps` is missing")
        return "run_every_secs", seconds
    if seconds is None or not is_none(seconds):
        raise Blocked("TFM164", node, "`run_every_steps` needs `run_every_secs=None`")
    return "run_every_steps", steps


def _fill(text: str, **values: str) -> str:
    for key, value in values.items():
        text = text.replace("{" + key + "}", value)
    return text
