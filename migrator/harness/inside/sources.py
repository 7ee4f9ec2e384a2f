"""Which line of the user's files made something: the innermost frame that is neither Python's, nor a library's,
nor the recorder's.
"""

import functools
import os
import sys
import sysconfig

_INSIDE = os.path.dirname(os.path.abspath(__file__))
_PATHS = sysconfig.get_paths()
_LIBRARIES = tuple(
    {
        os.path.realpath(path) + os.sep
        for path in (_PATHS.get("stdlib"), _PATHS.get("platstdlib"), os.path.dirname(os.__file__), _INSIDE)
        if path
    }
)
_known = {}
MARK = "_recorded_source"


def is_users(path):
    """Whether a file is one of the user's own program."""
    if path not in _known:
        real = os.path.realpath(path)
        # Code that AutoGraph made has no lines that a user could find.
        made = path.startswith("<") or os.path.basename(path).startswith("__autograph_generated_file")
        installed = {"site-packages", "dist-packages"} & set(real.split(os.sep))
        _known[path] = not made and not installed and not real.startswith(_LIBRARIES)
    return _known[path]


def _of_itself(frame, target, method):
    """Whether a frame runs ``method`` of ``target`` itself, as in a user's subclass that calls its base."""
    code = frame.f_code
    if code.co_name != method or not code.co_argcount:
        return False
    return frame.f_locals.get(code.co_varnames[0]) is target


def user_line(target=None, method=""):
    """[path, line] of the innermost frame of the user's that is not ``method`` of ``target``; None without one."""
    frame = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        if is_users(path) and not (target is not None and _of_itself(frame, target, method)):
            return [os.path.abspath(path), frame.f_lineno]
        frame = frame.f_back
    return None


def user_lines():
    """(path, line) of every frame of the user's that is under way, from the innermost on."""
    found = []
    frame = sys._getframe(1)
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            found.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return tuple(found)


def outermost(methods, target):
    """The object whose method of one of these names was called first, of those under way; else ``target``."""
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_name in methods and code.co_argcount:
            owner = frame.f_locals.get(code.co_varnames[0])
            if marked(owner) is not None:
                target = owner
        frame = frame.f_back
    return target


def mark(target, line):
    """Notes on an object which line made it, past whatever its class does with attributes."""
    target.__dict__[MARK] = line


def marked(target):
    """The line noted on an object, or None."""
    return getattr(target, "__dict__", {}).get(MARK)


def line_of_operation(operation):
    """[path, line] of the user's line that made a graph operation, or None."""
    for entry in reversed(list(getattr(operation, "traceback", None) or ())):
        path = getattr(entry, "filename", None) or entry[0]
        if is_users(path):
            return [os.path.abspath(path), int(getattr(entry, "lineno", None) or entry[1])]
    return None


def line_of_function(function):
    """[path, line] where a user's function (partial, bound, decorated, or an object that is called) begins, or
    None.
    """
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        else:
            break
    code = getattr(function, "__code__", None)
    if code is None and callable(function):
        code = getattr(type(function).__call__, "__code__", None)
    if code is None or not is_users(code.co_filename):
        return None
    return [os.path.abspath(code.co_filename), code.co_firstlineno]
