"""``tf-migrate verify ORIGINAL MIGRATED``: run both programs and judge whether they train the same."""

from __future__ import annotations

import json
import signal
import sys
import tempfile
import uuid
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from migrator.cli.extras import verify_extra
from migrator.cli.outputs import Outputs, output_options
from migrator.cli.progress import line_per_stage
from migrator.report.outcome import ExitCode

if TYPE_CHECKING:
    pass

_SCRIPT = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(
    short_help="Run two programs and judge whether they train the same.",
    epilog="Exit code: 0 EQUIVALENT, 1 DIFFERENT or worse than the baseline, 2 wrong usage, 3 INCONCLUSIVE, "
    "4 a program failed.",
)
@click.argument("original", type=_SCRIPT)
@click.argument("migrated", type=_SCRIPT)
@click.argument("script_arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- SCRIPT ARGUMENTS]")
@click.option(
    "--cluster",
    default="",
    metavar="TYPE=N,...",
    help="Tasks to run, chief=1,worker=2,ps=2,evaluator=1 say; one process without TF_CONFIG when left out.",
)
@click.option("--steps", type=click.IntRange(min=1), help="End training after so many global steps.")
@click.option(
    "--report",
    "report_dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for report.json, report.html and report.xml (JUnit); a new temporary one when left out.",
)
@click.option(
    "--name-map",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="JSON object from variable names of the original to those of the migrated program.",
)
@click.option(
    "--full",
    is_flag=True,
    help="Also compare the free asynchronous cluster over paired seeds, and try every known-bad version.",
)
@click.option(
    "--seeds",
    type=click.IntRange(min=3),
    help="Paired seeds of the asynchronous cluster (with --full 8 when left out); five runs each.",
)
@click.option(
    "--promise",
    "promised",
    type=click.FloatRange(min=0.0, min_open=True),
    default=0.05,
    show_default=True,
    help="What the seeds have to exclude: an error like a learning rate off by this share.",
)
@click.option(
    "--keras",
    type=click.Choice(["2", "3"]),
    default="2",
    show_default=True,
    help="The generation of Keras that MIGRATED was written for.",
)
@click.option(
    "--tpu-cores",
    type=click.IntRange(min=1, max=64),
    default=1,
    show_default=True,
    help="Virtual CPUs that stand in for a TPU where MIGRATED asks for one.",
)
@click.option(
    "--devices",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Virtual CPUs, each a replica of a MirroredStrategy() without arguments, or in the place of one of its GPUs.",
)
@click.option(
    "--original-devices",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="The same for ORIGINAL alone, with --tensorflow2.",
)
@click.option(
    "--tensorflow2",
    is_flag=True,
    help="ORIGINAL is a TensorFlow 2 program too, and runs in the interpreter of MIGRATED.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.0, min_open=True),
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="The longest that one run of one program may take.",
)
@click.option(
    "--stall-timeout",
    type=click.FloatRange(min=0.0, min_open=True),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="The longest that a run may show no progress.",
)
@click.option(
    "--allow-writes",
    is_flag=True,
    help="Let the programs change, delete and export files outside of their runs, as they do by themselves.",
)
@output_options
def command(
    original: Path,
    migrated: Path,
    script_arguments: tuple[str, ...],
    cluster: str,
    steps: int | None,
    report_dir: Path | None,
    name_map: Path | None,
    full: bool,
    seeds: int | None,
    promised: float,
    keras: str,
    tpu_cores: int,
    devices: int,
    original_devices: int,
    tensorflow2: bool,
    timeout: float,
    stall_timeout: float,
    allow_writes: bool,
    outputs: Outputs,
) -> None:
    """Run ORIGINAL and MIGRATED on a local cluster from the same weights on the same batches, and compare.

    Both scripts run as they are, one process per task of the cluster. What they write, delete and
    export elsewhere than in the run's own folder stays in there. What follows -- is passed on to both.
    """
    from rich.console import Console

    with verify_extra():
        from migrator.harness import session
        from migrator.harness.environments import EnvironmentNotReady
        from migrator.harness.protocol.l6_asynchronous import RECOMMENDED_SEEDS
        from migrator.harness.report import terminal
    outputs.check()
    names = _read_names(name_map) if name_map is not None else {}
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that folders are cleared away
    try:
        case = session.make_case(
            original,
            migrated,
            cluster=cluster,
            args=script_arguments,
            steps=steps,
            names=names,
            report_dir=report_dir,
            seeds=seeds if seeds is not None else RECOMMENDED_SEEDS if full else 0,
            promised=promised,
            all_mutants=full,
            total_timeout=timeout,
            stall_timeout=stall_timeout,
            allow_writes=allow_writes,
            keras=int(keras),
            tpu_cores=tpu_cores,
            devices=devices,
            original_devices=original_devices,
            both_migrated=tensorflow2,
            options=_said(
                "full",
                "keras",
                "tpu_cores",
                "devices",
                "original_devices",
                "tensorflow2",
                "seeds",
                "promised",
                "timeout",
                "stall_timeout",
                "allow_writes",
                "name_map",
            ),
        )
        # Made only when there is something to put in: nothing is left behind by a verification that is killed.
        folder = report_dir or Path(tempfile.gettempdir(), f"tf-migrate-report-{uuid.uuid4().hex[:8]}")
        case = replace(case, log_dir=folder / "logs")
        with terminal.LiveProgress(Console(stderr=True)) as live:
            report = session.verify(case, live if sys.stderr.isatty() else line_per_stage("verify"))
    except session.CaseError as error:
        raise click.UsageError(str(error)) from error
    except (EnvironmentNotReady, session.ForkServerError) as error:
        click.echo(f"Error: {error}", err=True)
        raise SystemExit(int(ExitCode.FAILED)) from error
    raise SystemExit(outputs.finish(report, folder))


def _said(*names: str) -> tuple[str, ...]:
    """The words of the command line for these parameters, where the user gave them."""
    context = click.get_current_context()
    options = {option.name: option for option in context.command.params if isinstance(option, click.Option)}
    words: list[str] = []
    for name in names:
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            words.append(options[name].opts[0])
            words += [] if options[name].is_flag else [str(context.params[name])]
    return tuple(words)


def _read_names(path: Path) -> dict[str, str]:
    try:
        names = json.loads(path.read_bytes())
    except ValueError as error:
        raise click.UsageError(f"{path} is not JSON: {error}") from error
    if not isinstance(names, dict) or not all(isinstance(name, str) for name in names.values()):
        raise click.UsageError(f"{path} is not a JSON object from names to names")
    return names
