"""``tf-migrate rules [TFMnnn | SYMBOL]``: what the tool can do, and a page for each finding code and symbol."""

from __future__ import annotations

import sys

import click

from migrator.report.outcome import ExitCode


@click.command(short_help="List the rules, or explain one finding code or symbol.")
@click.argument("code", required=False, metavar="[TFMnnn | tf.SYMBOL]")
def command(code: str | None) -> None:
    """List what is carried over and what is found, or show the page of one finding code.

    Of a TensorFlow 1 symbol, as in `tf-migrate rules tf.train.AdamOptimizer`: what a call of it becomes.
    """
    from migrator.rules.catalogue import all_rules

    rules = all_rules()
    if code is None:
        for rule in rules:
            click.echo(f"{rule.code}  {rule.title}")
        return
    if code.startswith(("tf.", "tensorflow")):
        _show(_of_symbol(code))
        return
    wanted = code.upper() if code.upper().startswith("TFM") else f"TFM{code}"
    pages = [rule.page() for rule in rules if rule.code == wanted]
    if not pages:
        click.echo(f"Error: no rule has the code {code}; tf-migrate rules lists all of them.", err=True)
        raise SystemExit(int(ExitCode.FAILED))
    _show("\n".join(pages))


def _of_symbol(name: str) -> str:
    from migrator.catalogue.page import page
    from migrator.catalogue.rows import row, symbols

    symbol = name.replace("tensorflow.", "tf.", 1).replace("tf.compat.v1.", "tf.", 1)
    known_symbols = symbols()
    if symbol in known_symbols:
        return page(row(symbol))
    if symbol.partition(".")[0] == "tf":
        from migrator.bridge.answers import is_public
        from migrator.catalogue.answers import lines

        if is_public(symbol):
            return lines(symbol)
    last = symbol.rpartition(".")[2].lower()
    near = [known for known in known_symbols if known.rpartition(".")[2].lower() == last]
    hint = f"; did you mean {', '.join(near)}?" if near else ""
    click.echo(f"Error: no rule rewrites calls of {symbol}{hint}.", err=True)
    raise SystemExit(int(ExitCode.FAILED))


def _show(markdown: str) -> None:
    if not sys.stdout.isatty():
        click.echo(markdown, nl=False)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console()
    console.print(Markdown(markdown), width=min(100, console.width))
