"""The worklist for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TextIO

_SHOWN = 10
# For one program, and for more.
_WORDS = {
    "native": ("becomes a native Keras program", "become native Keras programs"),
    "bridge": ("keeps its code and runs on Keras by a bridge", "keep their code and run on Keras by a bridge"),
    "blocked": ("is blocked, and stays as it is", "are blocked, and stay as they are"),
    "silent": ("is not judged: nothing here trains it", "are not judged: nothing here trains them"),
}
_NUMBERS = {1: "this one", 2: "these two", 3: "these three"}


def print_text(data: Mapping[str, Any], stream: TextIO) -> None:
    """Writes the worklist; coloured on a terminal."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(
        file=stream, highlight=False, soft_wrap=not stream.isatty(), width=None if stream.isatty() else 200
    )
    counted = data["programs"]
    if not counted["total"]:
        console.print("No TensorFlow 1 programs are left.", markup=False)
    else:
        console.print(f"{programs(counted['total'])} with TensorFlow 1:", markup=False)
        for form, words in _WORDS.items():
            if counted[form]:
                console.print(f"  {counted[form]:4} {words[counted[form] != 1]}", markup=False)
    if data["openings"]:
        console.print()
        for opening in data["openings"]:
            number, names = len(opening["reasons"]), _joined([name(one) for one in opening["reasons"]])
            opened = programs(len(opening["programs"]))
            console.print(f"Replacing {_NUMBERS[number]} unblocks {opened}: {names}", markup=False)
    if data["reasons"]:
        table = Table("programs", "alone", "code", "what blocks them", box=None, title_justify="left")
        for one in data["reasons"][:_SHOWN]:
            what = Text(one["what"])
            table.add_row(str(len(one["programs"])), str(one["alone"]), one["code"], what)
        console.print()
        console.print(table)
        if len(data["reasons"]) > _SHOWN:
            console.print(f"and {len(data['reasons']) - _SHOWN} more: see --format html or json", markup=False)
    if data["list"]:
        console.print()
        for program in data["list"]:
            row = Text(
                f"{program['form']:8} ", style={"blocked": "bold red", "silent": "dim"}.get(program["form"], "green")
            )
            row.append(program["place"], style="bold")
            row.append(f" {_joined([name(one) for one in program['blocking']])}".rstrip(), style="default")
            console.print(row)
    for one in data["unreadable"]:
        console.print(f"unread   {one['place']} {one['code']} {one['message']}", markup=False)
    effort = data["effort"]
    if effort["minutes"]:
        parts = "; ".join(f"{one['minutes']} min: {one['what']} ({one['count']})" for one in effort["parts"])
        console.print(f"\nEffort: {effort['about']}. A rule of thumb, not measured: {parts}.", markup=False)


def programs(number: int) -> str:
    """A number of programs in words."""
    return "1 program" if number == 1 else f"{number} programs"


def name(reason: Mapping[str, Any]) -> str:
    """What a reason is called."""
    return f"{reason['what']} ({reason['code']})" if reason["is_symbol"] else f"{reason['code']} {reason['what']}"


def _joined(names: list[str]) -> str:
    return ", ".join(names)
