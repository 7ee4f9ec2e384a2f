"""``tf-migrate checkpoint CHECKPOINT PROGRAM``: TensorFlow 1 weights for a migrated program, and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from migrator.cli.extras import verify_extra
from migrator.pairing import equal_zip
from migrator.report.outcome import ExitCode

if TYPE_CHECKING:
    from migrator.checkpoint.carrying import Carried

_PATH = click.Path(path_type=Path)


@click.command(
    short_help="Convert a TensorFlow 1 checkpoint for a migrated program, or back.",
    epilog="Exit code: 0 every tensor was converted and read back, 2 not.",
)
@click.argument("checkpoint", type=_PATH)
@click.argument("program", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("script_arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- SCRIPT ARGUMENTS]")
@click.option(
    "-o",
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder to write to. Default: the one that PROGRAM reads.",
)
@click.option("--back", is_flag=True, help="CHECKPOINT is of the migrated PROGRAM; write one of TensorFlow 1.")
@click.option(
    "--like",
    type=_PATH,
    help="With --back: a checkpoint of the TensorFlow 1 program, for the names of its variables.",
)
@click.option(
    "--name-map",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="JSON object from TensorFlow 1 variable names to weight names of PROGRAM, if their order does not match.",
)
def command(
    checkpoint: Path,
    program: Path,
    script_arguments: tuple[str, ...],
    out: Path | None,
    back: bool,
    like: Path | None,
    name_map: Path | None,
) -> None:
    """Write the weights, optimizer slots and step of CHECKPOINT so that the migrated PROGRAM goes on from them.

    CHECKPOINT is a model_dir, a prefix (model.ckpt-1000) or one of its files. PROGRAM runs, in one process, until it
    trains, evaluates or predicts for the first time; nothing is trained. What follows -- is passed on to it.
    """
    with verify_extra():
        from migrator.checkpoint.carrying import Order, carry
        from migrator.checkpoint.matching import CheckpointError
        from migrator.harness.environments import EnvironmentNotReady, migrated_python
    if back and (like is None or out is None):
        raise click.UsageError("--back needs --like, a checkpoint of the TensorFlow 1 program, and -o")
    if like is not None and not back:
        raise click.UsageError("--like requires --back")
    names = _read_names(name_map) if name_map is not None else {}
    try:
        python = migrated_python(lambda line: click.echo(line, err=True))
        tf1 = checkpoint if like is None else like
        order = Order(python, program, script_arguments, tf1, checkpoint if back else None, out, names)
        carried = carry(order)
    except EnvironmentNotReady as error:
        raise click.ClickException(str(error)) from None
    except CheckpointError as error:
        click.echo(f"{error.code} {error}", err=True)
        raise SystemExit(int(ExitCode.FAILED)) from None
    _show(carried)
    if not carried.good:
        raise SystemExit(int(ExitCode.FAILED))


def _read_names(path: Path) -> dict[str, str]:
    try:
        names = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise click.UsageError(f"{path} cannot be read: {error}") from None
    if not isinstance(names, dict) or not all(isinstance(value, str) for value in names.values()):
        raise click.UsageError(f"{path} is no JSON object from names to names")
    return names


def _show(carried: Carried) -> None:
    header = ("TensorFlow 1", "migrated program", "shape", "values", "read back")
    rows = [
        (row.tf1, row.keras, "x".join(map(str, row.shape)) or "-", row.done, "equal" if row.equal else "DIFFERENT")
        for row in carried.rows
    ]
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    for row in (header, *rows):
        click.echo("  ".join(cell.ljust(width) for cell, width in equal_zip(row, widths)).rstrip())
    for code, message in carried.remarks:
        click.echo(f"{code} {message}")
    different = [row for row in carried.rows if not row.equal]
    for one in different:
        click.echo(f"TFM868 `{one.tf1 or one.keras}` was read back with different values", err=True)
    if not different:
        click.echo(f"{len(rows)} tensors, paired by {carried.how}: all equal. Written: {carried.prefix}")
