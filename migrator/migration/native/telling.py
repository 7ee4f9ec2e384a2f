"""What is said of the programs of a group."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from migrator.findings import Finding, Severity
from migrator.migration.state import GroupState
from migrator.program.canned import remarks_of
from migrator.program.parsed import Blocked

#: What stands in the way of a strategy that the program asks for.
_OF_STRATEGIES = ("TFM704", "TFM707", "TFM708", "TFM721", "TFM790")
#: What may stand in the way of writing a driver anew, and not of leaving it.
_OF_DRIVERS = frozenset(("TFM103", "TFM109", "TFM110", "TFM602"))
#: What a program is made of: symbols that have no home, and need none where it is carried over.
_OF_PROGRAMS = (
    *("tf.estimator.", "tf.contrib.estimator.", "tf.contrib.tpu.", "tf.tpu.", "tf.keras.estimator.", "tf.metrics."),
    *("tf.contrib.distribute.", "tf.distribute.", "tf.contrib.cluster_resolver.", "tf.contrib.learn."),
)
#: Strategies under which several steps in one execution are the same steps, to the last bit (measured).
_SAME_STEPS = ("mirrored", "multi-worker-mirrored", "central-storage")


def _is_of_program(problem: Blocked) -> bool:
    """Whether a problem is a symbol without a home that goes where its program is carried over."""
    return problem.code == "TFM203" and problem.message.startswith(tuple(f"`{one}" for one in _OF_PROGRAMS))


def findings_of(state: GroupState, refused: bool) -> dict[Path, list[Finding]]:
    """The findings of a group by file: what stands in the way, or what was done and what has to be looked at."""
    found: dict[Path, list[Finding]] = {}
    causes = any(not _is_of_program(problem) for problems in state.problems.values() for problem in problems)
    for path, file in [*state.group.files.items(), *state.outside.items()]:
        found.setdefault(path, [])
        for problem in state.problems[path]:
            if causes and _is_of_program(problem):
                continue  # it goes with its program, which something else is in the way of
            finding = file.finding(problem.code, Severity.MANUAL, problem.node, problem.message)
            found.setdefault(Path(finding.path), []).append(finding)
        if not refused:
            for said in remarks_of([file]):
                found[path].append(said)
            for remark in state.remarks.get(path, []):
                finding = file.finding(remark.code, Severity.REVIEW, remark.node, remark.message)
                found.setdefault(Path(finding.path), []).append(finding)
    if not refused:
        for program in state.group.programs:
            message = f"`{program.model_fn.name.value}` and its Estimator are now a Keras program"
            done = program.file.finding("TFM101", Severity.MIGRATED, program.place.call, message)
            places = program.file.choices.get((done.line, done.column), ())
            message = "this Estimator, one alternative of a condition, is now a Keras program"
            found[program.file.path] += [
                replace(done, line=line, column=column, message=message) for line, column in places
            ] or [done]
            if (done.line, done.column) in program.file.built:
                path, (line, column) = program.file.built[done.line, done.column]
                found.setdefault(path, []).append(replace(done, path=str(path), line=line, column=column))
    return {path: list(dict.fromkeys(lines)) for path, lines in found.items() if lines}
