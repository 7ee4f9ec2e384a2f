"""What the user has seen and accepts: comments on lines, codes that are not selected, and those of some files."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from migrator.findings import Finding, Severity
from migrator.report.outcome import FileOutcome

UNUSED = "TFM913"
MARK = b"tf-migrate: ignore"
#: What cannot be accepted: files that could not be written as they were asked for.
NEVER = frozenset({"TFM903", "TFM904", "TFM910", "TFM912"})
_COMMENT = re.compile(r"#\s*tf-migrate: ignore(\[(?P<codes>[^\]]*)\])?")
_CODE = re.compile(r"TFM\d{3}")


@dataclass(frozen=True)
class Remark:
    """A comment that accepts codes on some lines."""

    line: int
    column: int
    codes: tuple[str, ...]
    lines: range


def accepted(
    files: Sequence[FileOutcome], remarks: Mapping[str, Sequence[Remark]], silenced: Callable[[str, str], bool]
) -> list[FileOutcome]:
    """The outcomes, with what is accepted taken from the findings; comments that accept nothing are findings.

    `remarks` are those of each file by its path, `silenced` says whether a code is accepted in all of a file. What a
    comment says of a file that was rewritten may have been about another line.
    """
    return [_accepted(file, remarks.get(file.path, ()), silenced) for file in files]


def is_silenced(code: str, select: Sequence[str], ignore: Sequence[str]) -> bool:
    """Whether a code is not selected, or is ignored; the longer word counts, of two of one length that to ignore."""
    selected = max((len(one) for one in select if code.startswith(one)), default=-1 if select else 0)
    ignored = max((len(one) for one in ignore if code.startswith(one)), default=-1)
    return selected < 0 or (ignored >= 0 and ignored >= selected)


def remarks_in(text: str) -> list[Remark]:
    """The comments in a file that accept findings: on a line of the statement, or on lines right above it."""
    found: list[Remark] = []
    waiting: list[tuple[tokenize.TokenInfo, re.Match[str]]] = []
    start = 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT and (match := _COMMENT.search(token.string)) is not None:
                waiting.append((token, match))
            elif token.type == tokenize.NEWLINE:
                lines = range(start or token.start[0], token.end[0] + 1)
                found += [_remark(one, match, lines) for one, match in waiting]
                waiting, start = [], 0
            elif token.type not in _OUTSIDE:
                start = start or token.start[0]
    except (tokenize.TokenError, SyntaxError):
        pass  # what cannot be parsed has one finding, which is not on a line that is known
    return found + [_remark(one, match, range(0)) for one, match in waiting]


_OUTSIDE = frozenset({tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER})


def _remark(token: tokenize.TokenInfo, match: re.Match[str], lines: range) -> Remark:
    codes = tuple(one.strip() for one in (match["codes"] or "").split(",") if one.strip())
    first, column = token.start
    return Remark(first, column + 1, codes, range(min(first, lines.start), lines.stop) if lines else lines)


def _accepted(file: FileOutcome, remarks: Sequence[Remark], silenced: Callable[[str, str], bool]) -> FileOutcome:
    if not file.findings and not remarks:
        return file
    kept: list[Finding] = []
    gone: list[Finding] = []
    used: set[tuple[Remark, str]] = set()
    for finding in file.findings:
        by = [one for one in remarks if finding.line in one.lines and finding.code in one.codes]
        used.update((one, finding.code) for one in by)
        is_accepted = bool(by) or silenced(file.path, finding.code)
        (gone if is_accepted and finding.code not in NEVER else kept).append(finding)
    if not file.changed:
        unused = (finding for one in remarks for finding in _unused(file.path, one, used))
        kept += [one for one in unused if not silenced(file.path, one.code)]
    return replace(file, findings=tuple(sorted(kept)), accepted=(*file.accepted, *gone))


def _unused(path: str, remark: Remark, used: set[tuple[Remark, str]]) -> Iterator[Finding]:
    def finding(message: str) -> Finding:
        return Finding(path, remark.line, remark.column, UNUSED, Severity.REVIEW, message)

    if not remark.codes:
        yield finding("this names no codes: write `# tf-migrate: ignore[TFM203]`")
    for code in remark.codes:
        if not _CODE.fullmatch(code):
            yield finding(f"`{code}` is not a code: write `# tf-migrate: ignore[TFM203]`")
        elif (remark, code) not in used:
            yield finding(f"there is no {code} here to ignore: remove it")
