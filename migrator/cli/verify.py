"""``tf-migrate verify ORIGINAL MIGRATED``: run both programs and judge whether they train the same."""

from __future__ import annotations

import importlib.util
import json
import signal
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from migrator.cli.extras import MissingExtra, verify_extra
from migrator.cli.outputs import Outputs, output_options
from migrator.cli.progress import line_per_stage
from migrator.cli.verify_project import ProjectRequest, Shard, verify_project
from migrator.report.outcome import ExitCode
from migrator.source.discovery import module_files

if TYPE_CHECKING:
    from migrator.harness.case import Case

FORMS = ("jobs", "tfjob")  # of harness.cluster.kubernetes, which is imported when it is used
_ARGUMENTS = "tf-migrate.script-arguments"
# Fields of a Case that the command line may set for all programs of a project, by the name of the option's parameter.
_FIELDS = {
    "cluster": "cluster",
    "steps": "steps",
    "timeout": "total_timeout",
    "stall_timeout": "stall_timeout",
    "allow_writes": "allow_writes",
    "tpu_cores": "tpu_cores",
    "devices": "devices",
    "original_devices": "original_devices",
    "original_tensorflow": "original_runs",
    "promised": "promised",
    "full": "all_mutants",
    "seeds": "seeds",
    "stdin": "stdin",
    "required": "required",
    "kept": "kept",
}


class _Verify(click.Command):
    """Keeps what follows `--` for the programs apart."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            place = args.index("--")
            ctx.meta[_ARGUMENTS] = tuple(args[place + 1 :])
            args = args[:place]
        return super().parse_args(ctx, args)


@click.command(
    cls=_Verify,
    short_help="Run two programs, or all of a project, and judge whether they train the same.",
    options_metavar="[OPTIONS] [-- SCRIPT ARGUMENTS]",
    epilog="Exit code: 0 EQUIVALENT, or nothing to verify; 1 DIFFERENT or worse than the baseline, 2 wrong usage, 3 "
    "INCONCLUSIVE, 4 a program failed. Of several programs: that of the worst verdict.",
)
@click.argument("paths", nargs=-1, metavar="ORIGINAL MIGRATED | PROJECT", type=click.Path(path_type=Path))
@click.option(
    "--base",
    metavar="REVISION",
    help="PROJECT: the revision of the original programs. Default: HEAD, or the settings.",
)
@click.option("--shard", type=Shard(), metavar="I/N", help="PROJECT: verify only the programs of part I of N.")
@click.option(
    "-m",
    "module",
    default="",
    metavar="MODULE",
    help="Run both programs as python -m MODULE; ORIGINAL and MIGRATED are the folders to run in.",
)
@click.option(
    "--stdin",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    metavar="FILE",
    help="The stdin of each process; - for the stdin of this command.",
)
@click.option(
    "--requirements",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Packages to install beside TensorFlow, as pip reads them (TensorFlow's own are skipped); repeatable.",
)
@click.option(
    "--with",
    "packages",
    multiple=True,
    metavar="PACKAGE",
    help="A package to install beside TensorFlow; repeatable.",
)
@click.option(
    "--cluster",
    default="",
    metavar="TYPE=N,...",
    help="Tasks to run, such as chief=1,worker=2,ps=2,evaluator=1. Default: one process without TF_CONFIG.",
)
@click.option(
    "--runner",
    type=click.Choice(["local", "ray"]),
    default="local",
    show_default=True,
    help="Where the tasks run: processes on this machine, or actors of the Ray cluster at RAY_ADDRESS (by default "
    "one on this machine).",
)
@click.option("--steps", type=click.IntRange(min=1), help="Stop training after this many global steps.")
@click.option(
    "--data-sample",
    type=click.IntRange(min=1),
    metavar="N",
    help="Use at most N batches of each data set: training stops after N steps, and evaluations after N batches.",
)
@click.option(
    "--sample-steps",
    default="",
    metavar="STEP,...",
    help="Further steps to compare one by one, reached or not, such as 500000,500001.",
)
@click.option(
    "--from-checkpoint",
    type=click.Path(path_type=Path),
    metavar="PREFIX",
    help="A checkpoint of ORIGINAL, such as model.ckpt-500000: one step from it is compared, too.",
)
@click.option(
    "--report",
    "report_dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for report.json, report.html and report.xml (JUnit). Default: a new temporary one.",
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
    help="Paired seeds of the asynchronous cluster (8 by default with --full); five runs each.",
)
@click.option(
    "--promise",
    "promised",
    type=click.FloatRange(min=0.0, min_open=True),
    default=0.05,
    show_default=True,
    help="The error that the seeds must exclude: that of a learning rate off by this share.",
)
@click.option(
    "--keras",
    type=click.Choice(["2", "3"]),
    default="2",
    show_default=True,
    help="The Keras version that MIGRATED was written for.",
)
@click.option(
    "--tpu-cores",
    type=click.IntRange(min=1, max=64),
    default=1,
    show_default=True,
    help="Virtual CPUs that replace the TPU that MIGRATED asks for.",
)
@click.option(
    "--gpu",
    is_flag=True,
    help="Give the programs the GPUs of CUDA_VISIBLE_DEVICES, or all GPUs. Default: CPUs only.",
)
@click.option(
    "--devices",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Virtual CPUs, each a replica of a MirroredStrategy() without arguments, or a replacement of one of its GPUs.",
)
@click.option(
    "--original-devices",
    type=click.IntRange(min=1),
    default=None,
    help="The same for ORIGINAL alone, if that is a TensorFlow 2 program. Default: as --devices.",
)
@click.option(
    "--original-tensorflow",
    type=click.Choice(["auto", "1", "1.15", "2.15", "2.21"]),
    default="auto",
    show_default=True,
    help="How to run ORIGINAL: with TensorFlow 1's behaviour on 2.15.1, unchanged on TensorFlow 1.15.5 or on "
    "2.15.1 (Keras 2), or unchanged in the interpreter of MIGRATED. auto: one of the first three, by the "
    "names that it uses.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.0, min_open=True),
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="The time limit of one run of one program.",
)
@click.option(
    "--stall-timeout",
    type=click.FloatRange(min=0.0, min_open=True),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="The time limit of a run without progress.",
)
@click.option(
    "--require",
    "required",
    multiple=True,
    metavar="WHAT,...",
    help="What EQUIVALENT requires: steps (all of them), steps=N, a level (such as L7), artefacts.",
)
@click.option(
    "--cache/--no-cache",
    "kept",
    default=True,
    show_default=True,
    help="Reuse what an earlier verification learned about the same original, and save this one's.",
)
@click.option(
    "--manifests",
    type=click.Choice(FORMS),
    help="Run nothing: print Kubernetes manifests for both programs, plain Jobs or a TFJob (kubectl apply -f -).",
)
@click.option(
    "--images",
    nargs=2,
    metavar="ORIGINAL MIGRATED",
    help="With --manifests: the container images of both programs, whose working directory is that of the project.",
)
@click.option(
    "--allow-writes",
    is_flag=True,
    help="Let the programs change, delete and export files outside of their runs, as they do on their own.",
)
@output_options
def command(
    paths: tuple[Path, ...],
    base: str | None,
    shard: tuple[int, int] | None,
    module: str,
    stdin: Path | None,
    requirements: tuple[Path, ...],
    packages: tuple[str, ...],
    cluster: str,
    runner: str,
    steps: int | None,
    data_sample: int | None,
    sample_steps: str,
    from_checkpoint: Path | None,
    report_dir: Path | None,
    name_map: Path | None,
    full: bool,
    seeds: int | None,
    promised: float,
    keras: str,
    tpu_cores: int,
    gpu: bool,
    devices: int,
    original_devices: int | None,
    original_tensorflow: str,
    timeout: float,
    stall_timeout: float,
    required: tuple[str, ...],
    allow_writes: bool,
    manifests: str | None,
    images: tuple[str, str] | None,
    kept: bool,
    outputs: Outputs,
) -> None:
    """Run ORIGINAL and MIGRATED on a local cluster from the same weights on the same batches, and compare.

    Both scripts run as they are, one process per task of the cluster. What they write, delete and
    export elsewhere than in the run's own folder stays in there. What follows -- is passed on to both.

    With one PATH, a folder or a script, the programs that it has are compared with what they were in git
    (--base), and one page shows all of them.
    """
    from rich.console import Console

    with verify_extra():
        from migrator.harness import session
        from migrator.harness.environments import (
            EnvironmentNotReady,
            Extra,
            first_python,
            migrated_python,
            original_python,
        )
        from migrator.harness.protocol.l6_asynchronous import RECOMMENDED_SEEDS
        from migrator.harness.report import terminal
    if runner == "ray" and importlib.util.find_spec("ray") is None:
        raise MissingExtra("ray", "ray")
    extra = Extra(requirements, packages)
    given: tuple[str, ...] | None = click.get_current_context().meta.get(_ARGUMENTS)
    with _given(stdin) as stdin_file:
        if len(paths) < 2:
            _only_for_pairs(
                "data_sample",
                "sample_steps",
                "from_checkpoint",
                "name_map",
                "keras",
                "gpu",
                "save_baseline",
                "against",
                "manifests",
                "images",
            )
            request = ProjectRequest(
                paths[0] if paths else Path(),
                base,
                shard,
                module,
                report_dir,
                given,
                _case_fields(stdin_file),
                _said(*_FIELDS, "runner"),
                extra,
                outputs.inconclusive,
                runner,
            )
            raise SystemExit(verify_project(request))
        if base is not None or shard is not None:
            raise click.UsageError("--base and --shard are for projects: give one PATH")
        original, migrated, folders = _scripts(paths[0], paths[1], module)
        context = click.get_current_context()
        original, migrated = (context.with_resource(_as_script(path)) for path in (original, migrated))
        outputs.check()
        names = _read_names(name_map) if name_map is not None else {}
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that folders are cleared away
        try:
            case = session.make_case(
                original,
                migrated,
                cluster=cluster,
                args=(*map(str, paths[2:]), *(given or ())),
                module=module,
                folders=folders,
                stdin=stdin_file,
                steps=steps,
                sample_steps=_steps(sample_steps),
                data_sample=data_sample,
                from_checkpoint=from_checkpoint,
                names=names,
                report_dir=report_dir,
                seeds=seeds if seeds is not None else RECOMMENDED_SEEDS if full else 0,
                promised=promised,
                all_mutants=full,
                total_timeout=timeout,
                stall_timeout=stall_timeout,
                allow_writes=allow_writes,
                required=required,
                kept=kept and not gpu,  # on other hardware the original's numbers are others
                keras=int(keras),
                tpu_cores=tpu_cores,
                devices=devices,
                original_devices=original_devices,
                original_runs=original_tensorflow,
                options=_said(
                    "runner",
                    "data_sample",
                    "sample_steps",
                    "from_checkpoint",
                    "full",
                    "keras",
                    "tpu_cores",
                    "gpu",
                    "devices",
                    "original_devices",
                    "original_tensorflow",
                    "seeds",
                    "promised",
                    "timeout",
                    "stall_timeout",
                    "required",
                    "allow_writes",
                    "kept",
                    "name_map",
                    "module",
                    "stdin",
                    "requirements",
                    "packages",
                ),
            )
            if manifests is not None:
                click.echo(_manifests(case, manifests, images), nl=False)
                return
            # Made only when there is something to put in: nothing is left behind by a verification that is killed.
            folder = report_dir or Path(tempfile.gettempdir(), f"tf-migrate-report-{uuid.uuid4().hex[:8]}")
            case = replace(case, log_dir=folder / "logs")
            with terminal.LiveProgress(Console(stderr=True)) as live:
                progress = live if sys.stderr.isatty() else line_per_stage("verify")
                if extra or runner != "local" or gpu:
                    pythons = original_python(_say, extra), migrated_python(_say, extra)
                    with session.open_session(
                        *pythons,
                        keras=case.keras,
                        runner=runner,
                        gpu=gpu,
                        first_python=lambda: first_python(_say, extra),
                    ) as opened:
                        report = session.verify(case, progress, session=opened)
                else:
                    report = session.verify(case, progress)
        except session.CaseError as error:
            raise click.UsageError(str(error)) from error
        except (EnvironmentNotReady, session.ForkServerError) as error:
            click.echo(f"Error: {error}", err=True)
            raise SystemExit(int(ExitCode.FAILED)) from error
        raise SystemExit(outputs.finish(report, folder))


@contextmanager
def _as_script(path: Path) -> Iterator[Path]:
    from migrator.harness.notebook_scripts import as_script
    from migrator.source.notebooks import NotebookError

    with ExitStack() as stack:
        try:
            script = stack.enter_context(as_script(path))
        except NotebookError as error:
            raise click.UsageError(f"{path}: {error}") from None
        yield script


def _said(*names: str) -> tuple[str, ...]:
    """The words of the command line for these parameters, where the user gave them."""
    context = click.get_current_context()
    options = {option.name: option for option in context.command.params if isinstance(option, click.Option)}
    words: list[str] = []
    for name in filter(_is_given, names):
        option, value = options[name], context.params[name]
        for one in list(value) if option.multiple else [value]:
            words.append(option.secondary_opts[0] if one is False else option.opts[0])
            words += [] if option.is_flag else [str(one)]
    return tuple(words)


def _is_given(name: str) -> bool:
    source = click.get_current_context().get_parameter_source(name)
    return source is click.core.ParameterSource.COMMANDLINE


def _only_for_pairs(*names: str) -> None:
    """Refuses options that a project has settings for, or whose file is of one report."""
    said = _said(*names)
    if said:
        raise click.UsageError(f"{said[0]} is for ORIGINAL and MIGRATED; the settings of a project have it by program")


def _case_fields(stdin: Path | None) -> dict[str, Any]:
    """What the command line says instead of a project's settings, as fields of a Case."""
    params = click.get_current_context().params
    found = {field: params[name] for name, field in _FIELDS.items() if _is_given(name)}
    if "stdin" in found:
        found["stdin"] = stdin
    if found.get("all_mutants") and "seeds" not in found:
        from migrator.harness.protocol.l6_asynchronous import RECOMMENDED_SEEDS

        found["seeds"] = RECOMMENDED_SEEDS
    return found


@contextmanager
def _given(stdin: Path | None) -> Iterator[Path | None]:
    """A file with what the programs read; that of `-` is there for the block."""
    if stdin != Path("-"):
        yield stdin
        return
    with tempfile.TemporaryDirectory(prefix="tf-migrate-stdin-") as folder:
        file = Path(folder) / "stdin"
        file.write_bytes(sys.stdin.buffer.read())
        yield file


def _scripts(original: Path, migrated: Path, module: str) -> tuple[Path, Path, tuple[Path | None, Path | None]]:
    """The files of two programs, and the folders that they run in (None: this one)."""
    for path in (original, migrated):
        if not path.exists():
            raise click.UsageError(f"{path} does not exist")
        if path.is_dir() != bool(module):
            raise click.UsageError(f"{path} is a {'file' if module else 'folder'}; see --help for -m and for a project")
    if not module:
        return original, migrated, (None, None)
    found = []
    for folder in (original, migrated):
        own, package = module_files(folder.absolute(), module.split("."))
        candidates = [own, package.with_name("__main__.py")]
        file = next((one for one in candidates if one.is_file()), None)
        if file is None:
            raise click.UsageError(f"there is no module {module} in {folder}")
        found.append(file)
    return found[0], found[1], (original.absolute(), migrated.absolute())


def _manifests(case: Case, form: str, images: tuple[str, str] | None) -> str:
    """The objects of Kubernetes for both programs, each on its cluster."""
    from migrator.harness.cluster import kubernetes
    from migrator.harness.runs import migrated_shape

    if images is None:
        raise click.UsageError("--manifests requires --images: the images that contain your programs")
    objects = []
    shapes = (case.shape, migrated_shape(case, case.shape))
    for number, (kind, script) in enumerate((("original", case.original), ("migrated", case.migrated))):
        folder = (case.folders[number] or Path.cwd()).absolute()
        if not script.absolute().is_relative_to(folder):
            raise click.UsageError(f"{script} is not below {folder}, which the image has as its working directory")
        run = kubernetes.PodRun(
            kubernetes.name_of(f"{script.stem}-{kind}"),
            images[number],
            script.absolute().relative_to(folder),
            case.args,
            shapes[number],
            module=case.module,
            seconds=case.total_timeout,
        )
        try:
            objects += kubernetes.jobs(run) if form == "jobs" else kubernetes.tfjob(run)
        except kubernetes.ManifestError as error:
            raise click.UsageError(str(error)) from error
    return kubernetes.text_of(objects)


def _say(line: str) -> None:
    click.echo(line, err=True)


def _steps(text: str) -> tuple[int, ...]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not all(word.isdecimal() and int(word) >= 1 for word in words):
        raise click.UsageError(f"--sample-steps {text}: give positive whole numbers, separated by commas")
    return tuple(map(int, words))


def _read_names(path: Path) -> dict[str, str]:
    try:
        names = json.loads(path.read_bytes())
    except ValueError as error:
        raise click.UsageError(f"{path} is not JSON: {error}") from error
    if not isinstance(names, dict) or not all(isinstance(name, str) for name in names.values()):
        raise click.UsageError(f"{path} is not a JSON object from names to names")
    return names
