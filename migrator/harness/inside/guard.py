"""Keeps one task from changing what is outside of its run, and notes which line of the program tried.

Where a view of the file system holds all changes (views.py), it only notes: where a program may have written by
TensorFlow's C++ code or another process, the view has seen it, and a note says which line began it. What no view
covers is refused: by Landlock, where the kernel has it, for all code of the process and its children; by Python's
audit hooks, or wrappers of the functions before Python 3.8, for Python's own code; and by wrappers of TensorFlow's
functions for files.

It runs in the user's interpreter (Python 3.7 or newer, no migrator package).
"""

from __future__ import annotations

import builtins
import contextlib
import ctypes
import errno
import functools
import io
import json
import os
import pathlib
import shutil
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Callable, Sequence
from typing import Any

NOTES = "writes.jsonl"
REFUSED = "verify keeps programs from changing what is outside of their run (--allow-writes lets them)"
_MOST_NOTES = 1000
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_DEVICES = ("/dev", "/proc")

# Which arguments of an event, or of a function, are paths that change; whether a link stands for what it leads to.
_EVENTS: dict[str, tuple[tuple[int, ...], bool]] = {
    "os.chmod": ((0,), True),
    "os.chown": ((0,), True),
    "os.link": ((1,), False),
    "os.mkdir": ((0,), False),
    "os.remove": ((0,), False),
    "os.rename": ((0, 1), False),
    "os.rmdir": ((0,), False),
    "os.symlink": ((1,), False),
    "os.truncate": ((0,), True),
    "shutil.rmtree": ((0,), False),
    "sqlite3.connect": ((0,), True),
}
# Where an event has the descriptors of the folders that its paths are relative to.
_FOLDERS = {"os.chmod": 2, "os.link": 3, "os.mkdir": 2, "os.remove": 1, "os.rename": 2, "os.rmdir": 1, "os.symlink": 2}
_GIVES = {
    "os.mkdir": True,
    "os.remove": False,
    "os.rmdir": False,
    "shutil.rmtree": False,
    "CreateDir": True,
    "DeleteFile": False,
    "DeleteRecursively": False,
    "RecursivelyCreateDir": True,
}
_FUNCTIONS = {"unlink": "os.remove", "replace": "os.rename"}
# TensorFlow's, by the names that both of its versions give them.
_TENSORFLOW = {
    "CopyFile": (1,),
    "CreateDir": (0,),
    "CreateWritableFile": (0,),
    "DeleteFile": (0,),
    "DeleteRecursively": (0,),
    "RecursivelyCreateDir": (0,),
    "RenameFile": (0, 1),
    "WritableFile": (0,),
}


class Guard:
    """What one task may change. `own`: folders of the run; `covered`: folders whose changes stay in a view.

    `said` is what the exception of a change that is refused says.
    """

    def __init__(self, notes: str, own: Sequence[str], covered: Sequence[str], said: str = REFUSED) -> None:
        self._said = said
        self._own = [os.path.realpath(folder) for folder in own]
        self._covered = list(covered)
        self._libraries = _library_folders()
        self._noted: set[tuple[str | None, str]] = set()
        self._notes = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._inside = threading.local()
        if not covered:
            self._without_view()

    def _without_view(self) -> None:
        # Files that nobody misses have to go somewhere.
        temporary = os.path.join(self._own[0], "temporary-%d" % os.getpid())
        os.makedirs(temporary, exist_ok=True)
        tempfile.tempdir = temporary
        home = os.path.expanduser("~")
        caches = [os.environ.get("XDG_CACHE_HOME"), os.path.join(home, ".cache"), os.path.join(home, ".keras")]
        self._own += [os.path.realpath(folder) for folder in caches if folder]

    def install(self) -> None:
        """Guard this process, which must have one thread only, from now on."""
        with contextlib.suppress(OSError):
            restrict([*self._own, *self._covered, *_DEVICES])
        if hasattr(sys, "addaudithook"):
            sys.addaudithook(self._on_event)
        else:
            self._wrap_python()
        if self._covered:
            os.rename, os.replace = _renaming(os.rename), _renaming(os.replace)
        self._wrap_tensorflow()

    def check(self, path: Any, follow: bool, folder: int = -1, gives: bool | None = None) -> None:
        """Note that `path` is about to be changed, if it is not the run's own. OSError if it must not be.

        `gives`: whether a folder is there afterwards (True), or nothing (False); if that is so already the program is
        to be told as it always is.
        """
        place = _place_of(path, follow, folder)
        if place is None or any(_below(place, above) for above in (*self._own, *_DEVICES)):
            return
        if (gives is True and os.path.isdir(place)) or (gives is False and not os.path.lexists(place)):
            return
        kept = any(_below(place, above) for above in self._covered)
        line = self._line()
        key = (line, os.path.dirname(place) if kept else place)
        if key not in self._noted and len(self._noted) < _MOST_NOTES:
            self._noted.add(key)
            note = {"path": place, "what": "kept" if kept else "refused", "where": line}
            os.write(self._notes, (json.dumps(note) + "\n").encode())
        if not kept:
            raise PermissionError(errno.EACCES, self._said, place)

    def _line(self) -> str | None:
        """The line of the program that is being executed, "file.py:12"."""
        frame = sys._getframe(2)
        while frame is not None:
            name = frame.f_code.co_filename
            if not name.startswith("<") and not any(_below(name, folder) for folder in self._libraries):
                parts = name.split(os.sep)
                if "site-packages" not in parts and "dist-packages" not in parts:
                    return "%s:%d" % (name, frame.f_lineno)
            frame = frame.f_back  # type: ignore[assignment]
        return None

    def _on_event(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open" and event not in _EVENTS:
            return
        if getattr(self._inside, "busy", False):
            return
        self._inside.busy = True
        try:
            if event == "open":
                path, mode, flags = arguments
                if _writes(mode, flags):
                    self.check(path, True)
                return
            positions, follow = _EVENTS[event]
            first = _FOLDERS.get(event)
            for offset, position in enumerate(positions):
                folder = -1
                if first is not None:
                    at = first + (offset if event == "os.rename" else 0)
                    folder = arguments[at] if len(arguments) > at else -1
                self.check(arguments[position], follow, folder, _GIVES.get(event))
        finally:
            self._inside.busy = False

    def _wrap_python(self) -> None:
        """What audit hooks do, where Python has none."""
        own_open = builtins.open

        @functools.wraps(own_open)
        def opened(file: Any, mode: str = "r", *arguments: Any, **keywords: Any) -> Any:
            self._on_event("open", (file, mode, 0))
            return own_open(file, mode, *arguments, **keywords)

        builtins.open = io.open = opened  # type: ignore[assignment]
        accessor = getattr(pathlib, "_NormalAccessor", None)
        names = [event.partition(".")[2] for event in _EVENTS if event.startswith("os.")]
        for name in ("open", *names, *_FUNCTIONS):
            function = getattr(os, name)
            event = _FUNCTIONS.get(name, "open" if name == "open" else "os." + name)
            wrapped = self._wrapped(function, event)
            setattr(os, name, wrapped)
            if accessor is not None and getattr(accessor, name, None) is not None and name != "open":
                setattr(accessor, name, staticmethod(wrapped))
        shutil.rmtree = self._wrapped(shutil.rmtree, "shutil.rmtree")  # type: ignore[assignment]

    def _wrapped(self, function: Any, event: str) -> Any:
        @functools.wraps(function)
        def wrapper(*arguments: Any, **keywords: Any) -> Any:
            positions = (0,) if event == "open" else _EVENTS[event][0]
            folder = keywords.get("dir_fd")
            if len(arguments) > max(positions):
                if event == "open":
                    self._on_event("open", (arguments[0], None, arguments[1] if len(arguments) > 1 else 0))
                elif folder is None and keywords.get("src_dir_fd") is None:
                    self._on_event(event, arguments[: max(positions) + 1])
            return function(*arguments, **keywords)

        return wrapper

    def _wrap_tensorflow(self) -> None:
        for module in _tensorflow_modules():
            for name, positions in _TENSORFLOW.items():
                function = getattr(module, name, None)
                if function is not None:
                    setattr(module, name, self._wrapped_path(function, positions))

    def _wrapped_path(self, function: Callable[..., Any], positions: tuple[int, ...]) -> Callable[..., Any]:
        @functools.wraps(function, updated=())
        def wrapper(*arguments: Any, **keywords: Any) -> Any:
            for position in positions:
                if len(arguments) > position:
                    self.check(arguments[position], False, -1, _GIVES.get(function.__name__))
            return function(*arguments, **keywords)

        return wrapper


def _renaming(function: Any) -> Any:
    """A function of os that can also rename folders that an overlay cannot."""

    @functools.wraps(function)
    def rename(source: Any, target: Any, **keywords: Any) -> None:
        try:
            function(source, target, **keywords)
        except OSError as error:
            if error.errno != errno.EXDEV or keywords or not os.path.isdir(source) or os.path.islink(source):
                raise
            if os.stat(source).st_dev != os.stat(os.path.dirname(os.path.abspath(target))).st_dev:
                raise
            if os.path.isdir(target):
                os.rmdir(target)  # an empty one is replaced
            shutil.copytree(source, target, symlinks=True)
            shutil.rmtree(source)

    return rename


def _tensorflow_modules() -> list[Any]:
    """The modules in which TensorFlow's functions for files are looked up, of those that are loaded."""
    names = ("tensorflow.python.lib.io._pywrap_file_io", "tensorflow.python.pywrap_tensorflow")
    return [sys.modules[name] for name in names if name in sys.modules]


def _writes(mode: Any, flags: Any) -> bool:
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return isinstance(flags, int) and bool(flags & _WRITING)


def _place_of(path: Any, follow: bool, folder: int) -> str | None:
    """Where a path leads; None for what is no path of this machine."""
    try:
        path = os.fsdecode(path)
    except TypeError:
        return None
    if not path or path == ":memory:" or "\0" in path:
        return None
    scheme, separator, rest = path.partition("://")
    if separator:
        if scheme != "file":
            return None
        path = rest
    if isinstance(folder, int) and folder >= 0 and not os.path.isabs(path):
        try:
            path = os.path.join(os.readlink("/proc/self/fd/%d" % folder), path)
        except OSError:
            return None
    if follow:
        return os.path.realpath(path)
    parent, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(parent), name)


def _below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _library_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    found = {paths[key] for key in ("stdlib", "platstdlib") if key in paths}
    return (*found, *(os.path.realpath(path) for path in found), os.path.dirname(os.path.abspath(__file__)))


# -- Landlock --------------------------------------------------------------------------------------------------

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PR_SET_NO_NEW_PRIVS = 38
# By the version of the interface that knows them: writing, removing, making; moving to another folder; truncating.
_RIGHTS = {1: (1 << 1) | sum(1 << bit for bit in range(4, 13)), 2: 1 << 13, 3: 1 << 14}
_OF_FILES = (1 << 1) | (1 << 14)


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32)]


def restrict(writable: Sequence[str]) -> None:
    """Have the kernel refuse to this thread, and to all that it starts, to change anything but below `writable`.

    OSError where the kernel has no Landlock, or one that would forbid moving files from folder to folder.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if not sys.platform.startswith("linux"):
        raise OSError(errno.ENOSYS, "only Linux has Landlock")
    version = libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    if version < 2:
        raise OSError(errno.ENOSYS, "no Landlock, or its first version")
    rights = sum(mask for known, mask in _RIGHTS.items() if known <= version)
    handled = ctypes.c_uint64(rights)
    ruleset = libc.syscall(_CREATE_RULESET, ctypes.byref(handled), ctypes.c_size_t(8), ctypes.c_uint32(0))
    if ruleset < 0:
        raise OSError(ctypes.get_errno(), "landlock_create_ruleset")
    try:
        for path in writable:
            try:
                descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except OSError:
                continue
            allowed = rights if os.path.isdir(path) else rights & _OF_FILES
            rule = _PathBeneath(allowed, descriptor)
            result = libc.syscall(_ADD_RULE, ruleset, 1, ctypes.byref(rule), ctypes.c_uint32(0))
            os.close(descriptor)
            if result != 0:
                raise OSError(ctypes.get_errno(), "landlock_add_rule")
        libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if libc.syscall(_RESTRICT_SELF, ruleset, ctypes.c_uint32(0)) != 0:
            raise OSError(ctypes.get_errno(), "landlock_restrict_self")
    finally:
        os.close(ruleset)
