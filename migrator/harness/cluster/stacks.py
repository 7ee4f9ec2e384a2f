"""Where the threads of a task are, from what faulthandler wrote, and what that says about who waits for whom."""

from __future__ import annotations

import enum
import itertools
import linecache
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_FRAME = re.compile(r'^  File "(?P<path>.*)", line (?P<line>\d+|\?\?\?) in (?P<function>.*)$')
_THREAD = re.compile(r"^(Current thread|Thread) 0x")
_STANDARD = re.compile(r"^<frozen |/lib(64)?/python\d\.\d+/(?!(site|dist)-packages/)")
_PACKAGE = re.compile(r"/(?:site|dist)-packages/([^/]+)")
#: Code that waits for other tasks on behalf of a program.
_RUNTIME = ("tensorflow", "tensorflow_core", "tensorflow_estimator", "tf_keras", "keras", "grpc", "absl")
_INSIDE = Path(__file__).resolve().parent.parent / "inside"
#: Where a task whose script is over waits for the threads that the script has left.
_LEAVING = str(_INSIDE / "child.py")


class Suspicion(enum.IntEnum):
    """How much a task's stacks speak for it being the one that others wait for."""

    NONE = 0
    #: A thread other than the main one is in code of the program (a Python function in an input pipeline, say).
    THREAD = 1
    #: The main thread is in code of the program, and sleeps there: probably it looks for something now and then.
    SLEEPS = 2
    #: The main thread is in code of the program, not in a call of TensorFlow's.
    OWN_CODE = 3


@dataclass(frozen=True)
class Frame:
    """A line of Python that a thread is at, or that called the one before it."""

    path: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.function} ({self.path}:{self.line})"

    @property
    def standard(self) -> bool:
        """Whether it belongs to Python's standard library, which waits on behalf of whoever called it."""
        return _STANDARD.search(self.path) is not None

    @property
    def runtime(self) -> bool:
        """Whether it belongs to TensorFlow, or to what the tool put into the task."""
        package = _PACKAGE.search(self.path)
        if package is not None:
            return package.group(1).partition(".")[0] in _RUNTIME
        return Path(self.path).parent == _INSIDE and self.path != _LEAVING

    @property
    def sleeps(self) -> bool:
        """Whether the line says that it waits for a time, not for an event."""
        return "sleep" in self.source

    @property
    def source(self) -> str:
        """The text of the line, empty if there is none."""
        linecache.checkcache(self.path)
        return linecache.getline(self.path, self.line).strip()


@dataclass(frozen=True)
class Stacks:
    """The Python stacks of all threads of one task, each with its innermost frame first; the main thread is last."""

    threads: tuple[tuple[Frame, ...], ...] = ()

    @staticmethod
    def parse(text: str) -> Stacks:
        """What faulthandler wrote when it was asked once; no threads if it wrote nothing."""
        threads: list[list[Frame]] = []
        for line in text.splitlines():
            if _THREAD.match(line):
                threads.append([])
            elif threads and (found := _FRAME.match(line)):
                number = found["line"]
                threads[-1].append(Frame(found["path"], int(number) if number.isdigit() else 0, found["function"]))
        return Stacks(tuple(tuple(frames) for frames in threads))

    def suspicion(self) -> Suspicion:
        """How much the stacks speak against the task."""
        own = _own(self.threads[-1]) if self.threads else None
        if own is not None:
            return Suspicion.SLEEPS if own.sleeps else Suspicion.OWN_CODE
        return Suspicion.THREAD if any(map(_at_work, self.threads[:-1])) else Suspicion.NONE

    def telling(self) -> tuple[Frame, ...]:
        """The stack that says most: the main thread's, unless only another one is in the program's code."""
        backwards = self.threads[::-1]
        main = backwards[0] if backwards else ()
        own = _own(main)
        if own is not None and own.path != _LEAVING:
            return main
        return next(filter(_at_work, backwards[1:]), main)

    def place(self) -> Frame | None:
        """The innermost frame of `telling` that is not the standard library's; None without stacks."""
        telling = self.telling()
        return next(iter(_calls(telling)), telling[0] if telling else None)

    def stuck_since(self, earlier: Stacks) -> bool:
        """Whether the main thread is in the same call of the program's code as it was, and not asleep."""
        if not self.suspicion() == earlier.suspicion() == Suspicion.OWN_CODE:
            return False
        now, before = (_calls(stacks.threads[-1]) for stacks in (self, earlier))
        # The innermost line may be any of a loop's.
        return now[1:] == before[1:] and (now[0].path, now[0].function) == (before[0].path, before[0].function)


def _calls(thread: Sequence[Frame]) -> list[Frame]:
    """`thread` without the calls into Python's standard library that it is in."""
    return list(itertools.dropwhile(lambda frame: frame.standard, thread))


def _at_work(thread: Sequence[Frame]) -> bool:
    own = _own(thread)
    return own is not None and not own.sleeps


def _own(thread: Sequence[Frame]) -> Frame | None:
    """The frame in the program's code that `thread` is in; None if it is in TensorFlow or only in Python's own."""
    frame = next(iter(_calls(thread)), None)
    return None if frame is None or frame.runtime else frame
