"""The report on a terminal: the same words as in a pipe, with colours around them."""

from __future__ import annotations

import io
import re
from pathlib import Path

from migrator.findings import Finding, Severity
from migrator.report.diff import to_diff
from migrator.report.outcome import ExitCode, FileOutcome, Outcome
from migrator.report.text import print_text

FINDINGS = (
    Finding("a [bold]b.py", 1, 2, "TFM102", Severity.REVIEW, "look [at] this: 'x' 3.5 " + "and that " * 30),
    Finding("a [bold]b.py", 3, 1, "TFM203", Severity.MANUAL, "cannot be carried over"),
)
OUTCOME = Outcome((FileOutcome("a [bold]b.py", False, False, FINDINGS),), dry=False, check=False)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_terminal_and_pipe_say_the_same() -> None:
    pipe, terminal = io.StringIO(), Terminal()
    print_text(OUTCOME, pipe)
    print_text(OUTCOME, terminal)
    assert pipe.getvalue() == "".join(f"{finding}\n" for finding in FINDINGS) + "1 file: 1 blocked.\n"
    plain = re.sub(r"\x1b\[[0-9;]*m|\x1b\]8;[^\x1b]*\x1b.", "", terminal.getvalue())
    assert plain == pipe.getvalue(), "one line for a finding, however long it is"


def test_exit_codes() -> None:
    def code(*severities: Severity, changed: bool = False, check: bool = False) -> ExitCode:
        findings = tuple(Finding("a.py", 1, 1, "TFM000", severity, "") for severity in severities)
        return Outcome((FileOutcome("a.py", changed, changed, findings),), check, check).exit_code

    assert code() is code(Severity.MIGRATED, Severity.REVIEW, changed=True) is ExitCode.DONE
    assert code(changed=True, check=True) is code(Severity.MANUAL) is ExitCode.LEFT
    assert code(Severity.MANUAL, Severity.ERROR) is code(Severity.ERROR, check=True, changed=True) is ExitCode.FAILED


def test_no_diff_of_equal_texts() -> None:
    assert to_diff(Path("x.py"), b"x\r\n", b"x\r\n") == b""
