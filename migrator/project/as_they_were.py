"""What became of converted files, as changes of the files that users have."""

from __future__ import annotations

from dataclasses import replace

from migrator.project.python2 import Before
from migrator.project.run import Migrated
from migrator.source.newlines import old_lines, unified


def as_it_was(one: Migrated, before: Before) -> Migrated:
    """What the engine made of a converted file, as a change of the file that there is."""
    old = old_lines(unified(before.source.text), unified(before.text))
    findings = {*before.findings, *(replace(finding, line=old(finding.line)) for finding in one.findings)}
    return Migrated(before.source, one.text, tuple(sorted(findings)), alone=False)


def only_converted(before: Before) -> Migrated:
    """A converted file that the engine was not shown."""
    return Migrated(before.source, before.text, before.findings, alone=False)
