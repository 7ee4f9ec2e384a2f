"""The tutorials of the site as programs: what they have the reader save and run, and what they show of it.

A block of `console` holds commands behind `$ `, each with the output that it gives below it (`...` is anything). A
comment right before a block says more: `<!-- file: NAME -->` has it saved under this name, `<!-- tensorflow -->` says
that its commands run TensorFlow, `<!-- shown -->` that it is not run.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs/tutorials"
TUTORIALS = tuple(sorted(FOLDER.glob("*.md")))
_BLOCK = re.compile(
    r"(?:^<!-- (?P<note>[^>]+) -->\n)?^```(?P<kind>\w*)[^\n]*\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
_COMMAND = re.compile(r"^\$ (?P<command>(?:[^\n]*\\\n)*[^\n]*)\n(?P<output>(?:(?!\$ )[^\n]*\n)*)", re.MULTILINE)


@dataclass(frozen=True)
class Command:
    """A command of a tutorial, what it is shown to print, and where in the text that stands."""

    command: str
    output: str
    place: tuple[int, int]
    tensorflow: bool


@dataclass(frozen=True)
class File:
    """A file that the reader saves."""

    name: str
    text: str


def steps(text: str) -> list[Command | File]:
    """What the reader of a tutorial does, in this order."""
    found: list[Command | File] = []
    for block in _BLOCK.finditer(text):
        note = block["note"] or ""
        if note.startswith("file: "):
            found.append(File(note.removeprefix("file: "), block["text"]))
        elif block["kind"] == "console" and note != "shown":
            start = block.start("text")
            for match in _COMMAND.finditer(block["text"]):
                place = (start + match.start("output"), start + match.end("output"))
                found.append(Command(match["command"], match["output"], place, note == "tensorflow"))
    return found


def run(command: Command, folder: Path) -> str:
    """Runs a command as the reader would, in `folder`; returns what it prints. AssertionError where it fails."""
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "GIT_CONFIG_GLOBAL": os.devnull,
        **{f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "COLUMNS": "100",
    }
    for name in ("PYTHONPATH", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        environment.pop(name, None)
    done = subprocess.run(
        ["bash", "-c", command.command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"$ {command.command}\n{done.stdout}exit code {done.returncode}"
    return done.stdout


def same(shown: str, printed: str) -> bool:
    """Whether a command printed what a tutorial shows."""
    return doctest.OutputChecker().check_output(shown, printed, doctest.ELLIPSIS)


def prepare(folder: Path) -> None:
    """Gives a folder the fixtures, as a checkout has them."""
    (folder / "fixtures").symlink_to(ROOT / "fixtures")


def follow(text: str, folder: Path, tensorflow: bool) -> list[tuple[Command, str]]:
    """Does what a tutorial says; returns what each command printed. Those that run TensorFlow only if asked for."""
    prepare(folder)
    printed: list[tuple[Command, str]] = []
    for step in steps(text):
        if isinstance(step, File):
            path = folder / step.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(step.text)
        elif tensorflow or not step.tensorflow:
            printed.append((step, run(step, folder)))
    return printed


def update(path: Path, folder: Path, tensorflow: bool) -> bool:
    """Writes what the commands of a tutorial print now into it, where it is not what it shows; whether it changed."""
    text = new = path.read_text(encoding="utf-8")
    for command, output in reversed(follow(text, folder, tensorflow)):
        if not same(command.output, output):
            ending = output if not output or output.endswith("\n") else f"{output}\n"
            new = new[: command.place[0]] + ending + new[command.place[1] :]
    if new != text:
        path.write_text(new, encoding="utf-8")
    return new != text
