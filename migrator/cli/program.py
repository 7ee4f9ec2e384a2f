"""The group of all commands: one file each, imported when it is called."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any

import click
from click.shell_completion import CompletionItem

from migrator import __version__

MODULES = {
    "status": "migrator.cli.status",
    "verify": "migrator.cli.verify",
    "checkpoint": "migrator.cli.checkpoint",
    "report": "migrator.cli.report",
    "selftest": "migrator.cli.selftest",
    "rules": "migrator.cli.rules",
    "environments": "migrator.cli.environments",
}
_MIGRATE = ""
_OWN_OPTIONS = ("--version", "--help", "-h")


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:  # which click would take for 1
        click.echo("Interrupted.", err=True)
        raise SystemExit(130) from None


class DefaultContext(click.Context):
    """Context of the command that has no name."""

    @property
    def command_path(self) -> str:
        """The words that call the command, as help and errors show them."""
        return self.parent.command_path if self.parent is not None else super().command_path


class DefaultCommand(click.Command):
    """The command that is meant when the first argument names none."""

    context_class = DefaultContext


class Program(click.Group):
    """Takes the first argument for the name of a command, and for a path to migrate when it names none."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns the names of the commands that have one."""
        return list(MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports the module of a command and returns it."""
        module = "migrator.cli.migrate" if cmd_name == _MIGRATE else MODULES.get(cmd_name)
        if module is None:
            return None
        command = importlib.import_module(module).command
        assert isinstance(command, click.Command)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Puts the name of the default command in front of arguments that start with no other."""
        if args and args[0] not in MODULES and args[0] not in _OWN_OPTIONS:
            args = [_MIGRATE, *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Completes the first word: a command, or an option or a path of the one that has no name."""
        command = self.get_command(ctx, _MIGRATE)
        assert command is not None
        if incomplete.startswith("-"):
            more = command.shell_complete(DefaultContext(command, parent=ctx), incomplete)
        else:
            more = [CompletionItem(incomplete, type="file")]
        return [*super().shell_complete(ctx, incomplete), *more]

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Reads the arguments; Ctrl-C ends that with 130, too."""
        with _interruptible():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command; Ctrl-C ends it with 130, as in shells, since 1 is an answer of most commands."""
        with _interruptible():
            return super().invoke(ctx)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the help of the migration, then the other commands."""
        command = self.get_command(ctx, _MIGRATE)
        assert command is not None
        inner = command.context_class(command, info_name=_MIGRATE, parent=ctx)
        command.format_usage(inner, formatter)
        command.format_help_text(inner, formatter)
        params = [*command.get_params(inner)[:-1], *self.get_params(ctx)]
        options = [param for param in params if isinstance(param, click.Option)]
        records = [record for option in options if (record := option.get_help_record(inner))]
        with formatter.section("Options"):
            formatter.write_dl(records)
        self.format_commands(ctx, formatter)
        command.format_epilog(inner, formatter)


def _show_version(ctx: click.Context, _param: click.Parameter, value: bool) -> Any:
    if value and not ctx.resilient_parsing:
        click.echo(f"tf-migrate {__version__}")
        ctx.exit()


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version.",
)
def program() -> None:
    """Turn TensorFlow 1 Estimator programs into Keras and tf.distribute programs."""
