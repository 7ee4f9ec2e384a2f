"""For an inconclusive or failed verdict: what was found, what is ruled out all the same, and what settles it."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from migrator.harness.protocol.l6_asynchronous import RECOMMENDED_SEEDS
from migrator.harness.protocol.results import AsyncEvidence, LevelResult, Reason, Remedy, Status

# A longer run than before, where the number of steps is what is missing.
LONGER = 4
FEWEST_STEPS = 20
DEFAULT_TIMEOUT = 600.0
# One core leaves one order to add numbers up in.
_ONE_CORE = ("taskset", "-c", "0")


@dataclass(frozen=True)
class Context:
    """What the comparison was run with.

    `command` are the words of the command line that led to the verdict. `levels` are all levels, for what they rule
    out. `steps` is the number of steps of the original's run, `seeds` that of the asynchronous comparison (None:
    not run) and `timeout` the seconds that one run may take, `stall_timeout` those that it may show no progress.
    `failure` is how a run failed (a kind of cluster.launch.FAILURE_KINDS; empty: by what it left, or when its training
    was over).
    """

    command: Sequence[str]
    levels: Sequence[LevelResult] = ()
    steps: int | None = None
    seeds: int | None = None
    timeout: float | None = None
    stall_timeout: float | None = None
    failure: str = ""
    asynchronous: AsyncEvidence | None = None


def with_options(command: Sequence[str], options: Mapping[str, str | None]) -> str:
    """The command line with options set: replaced if they are there, else added before `--` or at the end.

    An empty text is an option without a value, None takes an option (and its value) away.
    """
    words = list(command)
    end = words.index("--") if "--" in words else len(words)
    head, tail = words[:end], words[end:]
    for name, value in options.items():
        place = next((i for i, word in enumerate(head) if word == name or word.startswith(name + "=")), None)
        if place is not None:
            # A flag has no value; every other option's follows it, unless it is written with "=".
            separate = value != "" and "=" not in head[place]
            del head[place : place + 1 + separate]
        if value is not None:
            head += [name] if value == "" else [name, value]
    return shlex.join([*head, *tail])


def remedy(level: LevelResult, context: Context) -> Remedy | None:
    """The remedy for the level that made the verdict INCONCLUSIVE (by its own word, or by not being exercised) or
    FAILED; None for any other.

    Every reason that leads there has one. A reason whose cause lies in the scripts themselves, or in the machine, has
    no command, and `found` says what to change before the same one is given again.
    """
    if level.status is Status.FAILED:
        advice, command = _failed(level, context)
    elif level.status in (Status.INCONCLUSIVE, Status.NOT_EXERCISED):
        advice, command = _ADVICE[level.reason or Reason.MISSING_VALUES](level, context)
    else:
        return None
    if command == shlex.join(context.command):
        command = None  # what it would set is set already
    return Remedy(f"{level.id}: {level.summary}. {advice}", _ruled_out(level, context), command)


# -- what is ruled out ----------------------------------------------------------------------------------------


def _percent(ln_rate: float) -> str:
    return f"{100.0 * math.expm1(abs(ln_rate)):.2g} %"


def _ruled_out(level: LevelResult, context: Context) -> str:
    told = []
    evidence = context.asynchronous
    if evidence is not None and all(math.isfinite(end) for end in evidence.ci90):
        widest = max(abs(end) for end in evidence.ci90)
        promised = f"{100.0 * evidence.promised:.2g} %"
        told.append(
            f"running freely, an error like a learning rate more than {_percent(widest)} off is excluded; "
            f"one of {promised} is not"
            if widest > evidence.margin
            else f"running freely, an error like a learning rate {promised} off is excluded"
        )
    told += [
        f"{other.id}: {other.excluded}"
        for other in context.levels
        if other.excluded and other.id != level.id and other.status is Status.EQUIVALENT
    ]
    if level.horizon_step and level.id != "L6":
        told.append(f"{level.id}: the losses agree up to step {level.horizon_step}")
    if not told:
        agreed = [other.id for other in context.levels if other.status is Status.EQUIVALENT]
        told = (
            [f"what {', '.join(agreed)} compare agrees, and no smaller error than that is excluded"] if agreed else []
        )
    return "; ".join(told) or "nothing yet"


# -- what to do -----------------------------------------------------------------------------------------------

_Advice = tuple[str, str | None]


def _more_steps(context: Context, least: int = FEWEST_STEPS) -> str:
    return str(max(least, LONGER * (context.steps or 0)))


def _control(level: LevelResult, context: Context) -> _Advice:
    if level.id == "L6":
        return _seeds(level, context)
    steps = _more_steps(context)
    return (
        f"The known-bad version looked like a good one: train longer ({steps} steps), or on data on which the losses "
        "move.",
        with_options(context.command, {"--steps": steps}),
    )


def _horizon(level: LevelResult, context: Context) -> _Advice:
    steps = max(1, level.horizon_step or 1)
    return (
        f"Rounding noise grows in this training until it hides a learning rate 1% off: after step {steps} no run can "
        "tell the two programs apart. Compare the steps that can be judged.",
        with_options(context.command, {"--steps": str(steps)}),
    )


def _seeds(level: LevelResult, context: Context) -> _Advice:
    evidence = context.asynchronous
    needed = None if evidence is None else evidence.seeds_needed
    count = max(needed or 0, 2 * (context.seeds or RECOMMENDED_SEEDS // 2))
    told = f"About {needed} seeds would settle it." if needed else f"{count} seeds halve what is left of the noise."
    return told, with_options(context.command, {"--full": "", "--seeds": str(count)})


def _participation(level: LevelResult, context: Context) -> _Advice:
    steps = _more_steps(context, 200)
    return (
        "A trainer that takes no steps tests nothing. With more steps every trainer gets its share, unless it cannot "
        "start at all (its log says why).",
        with_options(context.command, {"--steps": steps}),
    )


def _unstable(level: LevelResult, context: Context) -> _Advice:
    return (
        "Runs of the original itself differ by more than rounding: other work on this machine, or operations that add "
        "up in another order each time. On one core, with nothing else running, the order is fixed.",
        with_options(context.command, {"--full": ""})
        if tuple(context.command[: len(_ONE_CORE)]) == _ONE_CORE
        else shlex.join([*_ONE_CORE, *context.command]),
    )


def _names(level: LevelResult, context: Context) -> _Advice:
    return (
        "Write the pairs that cannot be found as a JSON object from original to migrated names, "
        '{"dense/kernel": "hidden/kernel:0"}, into names.json.',
        with_options(context.command, {"--name-map": "names.json"}),
    )


def _missing(level: LevelResult, context: Context) -> _Advice:
    if level.id == "L7":
        return (
            "Give the metric its original name in the migrated program (compile(metrics=[...(name=...)])), or add it.",
            None,
        )
    if (context.steps or 0) < FEWEST_STEPS:
        return "More steps leave more to record.", with_options(context.command, {"--steps": str(FEWEST_STEPS)})
    return (
        "One of the two programs trains in a way that the recorder does not see (a custom loop, a variable outside "
        "the model): the notes of the level name what is missing.",
        None,
    )


def _not_replayable(level: LevelResult, context: Context) -> _Advice:
    if level.id == "L0" and "in TensorFlow 1's mode" in level.summary:
        return (
            "Keras trains the same without TensorFlow 1's mode, where its steps can be recorded. Take "
            "tf.disable_v2_behavior(), tf.disable_eager_execution() and `import tensorflow.compat.v1` out of a copy of "
            "the original, verify the migrated program against the copy, and compare the losses that original and copy "
            "print.",
            None,
        )
    if level.id == "L0":
        return (
            (
                "Steps can be recorded and compared in Estimator.train, in Model.fit (also with your own "
                "train_step in a subclass of Model), and in strategy.run inside a tf.function: train through one "
                "of these, and repeat."
            ),
            None,
        )
    return (
        (
            "The migrated program must use the batches of its input function: features and labels of the same "
            "structure, dtypes and shapes as the original's. Change that and repeat."
        ),
        None,
    )


def _random_original(level: LevelResult, context: Context) -> _Advice:
    if level.id != "L2":
        return (
            (
                "The original's numbers change from run to run. If it applies gradients one by one, an update "
                "may change weights that another gradient still reads: compute them with gate_gradients=True "
                "(tf.gradients) or GATE_GRAPH (compute_gradients), or apply them under tf.control_dependencies "
                "of all, and repeat."
            ),
            None,
        )
    return _random_data(level, context)


def _random_data(level: LevelResult, context: Context) -> _Advice:
    if context.steps is not None and "--steps" in context.command:
        return (
            (
                "Which examples a part of an epoch contains is random. Over whole epochs both programs must read "
                "each example equally often: leave the number of steps to the script, or give the shuffle a seed."
            ),
            with_options(context.command, {"--steps": None}),
        )
    return (
        ("Which examples a part of an epoch contains is random: give the shuffle a seed in both programs, and repeat."),
        None,
    )


def _order(level: LevelResult, context: Context) -> _Advice:
    return (
        (
            "The data is the same, but its order is not: give the migrated program's shuffle the original's seed "
            "(or no seed, if it has none), and repeat."
        ),
        None,
    )


def _non_finite(level: LevelResult, context: Context) -> _Advice:
    step = level.differences[0].step if level.differences else None
    if step is not None and step > 1:
        return (
            f"The original's own numbers are not finite from step {step} on. Compare the steps before.",
            with_options(context.command, {"--steps": str(step - 1)}),
        )
    return (
        "The original's own numbers are not finite: lower its learning rate or fix its data, and repeat.",
        None,
    )


def _not_exercised(level: LevelResult, context: Context) -> _Advice:
    return "This part was not run.", with_options(context.command, {"--full": ""})


def _required(level: LevelResult, context: Context) -> _Advice:
    return (
        "The list of what was not shown says why. Without --require the verdict rests on what was compared.",
        with_options(context.command, {"--require": None}),
    )


def _not_compiled(level: LevelResult, context: Context) -> _Advice:
    return "The numbers agree on CPUs. Change that line, and verify again.", None


def _timeout(level: LevelResult, context: Context) -> _Advice:
    seconds = LONGER * (context.timeout or DEFAULT_TIMEOUT)
    return (
        f"A run took longer than {context.timeout or DEFAULT_TIMEOUT:g} s.",
        with_options(context.command, {"--timeout": f"{seconds:g}"}),
    )


# -- after a failure ------------------------------------------------------------------------------------------

DEFAULT_STALL_TIMEOUT = 60.0
_NO_MODULE = re.compile(r"No module named '([A-Za-z0-9_]+)")
_NO_FILE = re.compile(r"No such file or directory|\bNotFoundError|FileNotFoundError")
_REFUSED = "verify keeps programs from changing what is outside of their run"


def _failed(level: LevelResult, context: Context) -> _Advice:
    return _AFTER.get(context.failure, _exit)(level, context)


def _exit(level: LevelResult, context: Context) -> _Advice:
    said = "\n".join((level.summary, *level.notes))
    module = _NO_MODULE.search(said)
    if module is not None and module[1] not in ("tensorflow", "keras", "tf_keras"):
        return (
            (
                "The environment of the programs has only TensorFlow and its dependencies: name the package that "
                "provides this module (its name may differ)."
            ),
            with_options(context.command, {"--with": module[1]}),
        )
    if _REFUSED in said:
        return (
            "The program's writes there can be allowed: it then changes your files.",
            with_options(context.command, {"--allow-writes": ""}),
        )
    if _NO_FILE.search(said):
        return (
            (
                "The program runs in the working directory of this command, where its relative paths start: "
                "change to the directory that it expects, or pass the program the path after `--`."
            ),
            None,
        )
    if "exit code 2" in level.summary:
        return "The program may not know its arguments: pass its own after `--`, as `-- --data_dir=data`.", None
    return (
        (
            "The last lines of the task say where it failed, and its whole log is in the report's folder. Fix "
            "that, and verify again."
        ),
        None,
    )


def _signal(level: LevelResult, context: Context) -> _Advice:
    return (
        (
            "The process was killed: a crash in compiled code leaves the stacks of its threads in the log, in "
            "the report's folder; a SIGKILL comes from outside, such as a container's memory limit."
        ),
        None,
    )


def _stopped(level: LevelResult, context: Context) -> _Advice:
    return "This says nothing about the program: first end what stopped it (a debugger, a job of the shell).", None


def _stall(level: LevelResult, context: Context) -> _Advice:
    limit = context.stall_timeout or DEFAULT_STALL_TIMEOUT
    return (
        (
            "The stack shows where it waits. If it is only slow there, on large data or a busy machine, give it "
            "more time."
        ),
        with_options(context.command, {"--stall-timeout": f"{LONGER * limit:g}"}),
    )


def _not_started(level: LevelResult, context: Context) -> _Advice:
    return (
        (
            "No first step was taken: the stack shows where the program waits. A cluster waits for all of its "
            "tasks: do those of --cluster match what the program expects in TF_CONFIG or its arguments?"
        ),
        None,
    )


def _memory(level: LevelResult, context: Context) -> _Advice:
    return (
        (
            "Both programs run at the same time, with all their tasks. End other work on this machine, or give "
            "the programs smaller batches or fewer tasks."
        ),
        None,
    )


def _disk(level: LevelResult, context: Context) -> _Advice:
    return (
        "Runs are kept in the temporary folder while they are compared: choose one with more space.",
        shlex.join(["env", "TMPDIR=/path/with/room", *context.command]),
    )


def _ports(level: LevelResult, context: Context) -> _Advice:
    return "Other processes use the ports of this machine, or it has no address for itself: end those first.", None


_AFTER: Mapping[str, Callable[[LevelResult, Context], _Advice]] = {
    "exit": _exit,
    "signal": _signal,
    "stopped": _stopped,
    "stall": _stall,
    "not_started": _not_started,
    "memory": _memory,
    "disk": _disk,
    "ports": _ports,
}


_ADVICE: Mapping[Reason, Callable[[LevelResult, Context], _Advice]] = {
    Reason.DEGENERATE_PARTICIPATION: _participation,
    Reason.NON_FINITE: _non_finite,
    Reason.UNMAPPED_VARIABLE: _names,
    Reason.ORDER_DIFFERS: _order,
    Reason.DATA_NOT_REPLAYABLE: _not_replayable,
    Reason.MISSING_VALUES: _missing,
    Reason.CONTROL_NOT_DETECTED: _control,
    Reason.BEYOND_TRUSTED_HORIZON: _horizon,
    Reason.NONDETERMINISTIC_ORIGINAL: _random_original,
    Reason.ENVIRONMENT_UNSTABLE: _unstable,
    Reason.INSUFFICIENT_SEEDS: _seeds,
    Reason.NOT_EXERCISED: _not_exercised,
    Reason.TIMEOUT: _timeout,
    Reason.REQUIRED_MISSING: _required,
    Reason.NOT_COMPILED: _not_compiled,
}
