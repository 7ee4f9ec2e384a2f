"""``tf-migrate rules [TFMnnn]``: what the tool can do, and a page for each finding code."""

from __future__ import annotations

import sys

import click

from migrator.report.outcome import ExitCode


@click.command(short_help="List the rules, or explain one finding code.")
@click.argument("code", required=False, metavar="[TFMnnn]")
def command(code: str | None) -> None:
    """List what is carried over and what is found, or show the page of one finding code."""
    from migrator.rules.catalogue import all_rules

    rules = all_rules()
    if code is None:
        for rule in rules:
            click.echo(f"{rule.code}  {rule.title}")
        return
    wanted = code.upper() if code.upper().startswith("TFM") else f"TFM{code}"
    pages = [rule.page() for rule in rules if rule.code == wanted]
    if not pages:
        click.echo(f"Error: no rule has the code {code}; tf-migrate rules lists all of them.", err=True)
        raise SystemExit(int(ExitCode.FAILED))
    _show("\n".join(pages))


def _show(markdown: str) -> None:
    if not sys.stdout.isatty():
        click.echo(markdown, nl=False)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console()
    console.print(Markdown(markdown), width=min(100, console.width))
