"""Programs that built towers: on the replicas of one machine where their loop can be written, else on one device."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from migrator.findings import Finding, Severity
from migrator.migration.forms import migrate_group
from migrator.migration.state import Group, Request
from migrator.targets.registry import LOOPS, ONE_DEVICE, TARGETS


def migrate_towers(group: Group, request: Request) -> tuple[dict[Path, str], dict[Path, list[Finding]]]:
    """New texts of a group's files, or none of them and what stood in the way of the loop over the replicas."""
    replicas = replace(request, asked=TARGETS["mirrored"], loop=LOOPS["custom"])
    texts, refused = migrate_group(group, replicas)
    if texts:
        return texts, refused
    texts, findings = migrate_group(group, replace(request, asked=ONE_DEVICE, loop=LOOPS["fit"]))
    if not texts:
        return texts, findings
    first = next(one for found in refused.values() for one in found if one.severity is Severity.MANUAL)
    program = group.programs[0]
    why = f"{first.code}: {first.message}"
    message = f"one device takes the batches of all towers, since a loop over replicas is unsupported here ({why})"
    remark = program.file.finding("TFM730", Severity.REVIEW, program.place.call, message)
    return texts, {**findings, program.file.path: [*findings.get(program.file.path, []), remark]}
