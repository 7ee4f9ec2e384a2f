"""Whether a program for Keras 2 asks for it, as `python train.py` needs it to.

The fork server loaded Keras 2 before the program began, which tells nothing of what its user would get: from
TensorFlow 2.16 on `tf.keras` is Keras 3 unless TF_USE_LEGACY_KERAS is set before it is used. So the variable is taken
away before the program starts, and the program's first use of `tf.keras` looks whether it has set it.

It runs in the user's interpreter (no migrator package).
"""

from __future__ import annotations

import builtins
import importlib.util
import os
import sys
import sysconfig
from collections.abc import Sequence
from types import FrameType, ModuleType
from typing import Any

VARIABLE = "TF_USE_LEGACY_KERAS"
MESSAGE = (
    "the program uses tf.keras without asking for Keras 2: its user gets Keras 3; set TF_USE_LEGACY_KERAS=1 before "
    "tensorflow is imported, or verify with --keras 3"
)


def install(of_user: str | None) -> None:
    """Have the program's first use of `tf.keras` raise RuntimeError unless it asked for Keras 2.

    `of_user` is the variable as the user's shell has it. Without effect where Keras 2 is the only one.
    """
    if importlib.util.find_spec("tf_keras") is None:
        return
    os.environ.pop(VARIABLE, None)
    if of_user is not None:
        os.environ[VARIABLE] = of_user
    tensorflow = sys.modules["tensorflow"]
    real, own_import = tensorflow.keras, builtins.__import__

    def look(file: str | None) -> None:
        if file is None or _is_library(file):
            return
        if os.environ.get(VARIABLE, "").lower() not in ("1", "true"):
            raise RuntimeError(MESSAGE)
        tensorflow.keras = real  # type: ignore[attr-defined]
        if builtins.__import__ is importing:
            builtins.__import__ = own_import

    def importing(
        name: str,
        globals: dict[str, Any] | None = None,
        locals: dict[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        if level == 0 and (name + ".").startswith("tensorflow.keras."):
            look((globals or {}).get("__file__"))
        return own_import(name, globals, locals, fromlist or (), level)

    tensorflow.keras = _Keras(real, look)  # type: ignore[attr-defined]
    builtins.__import__ = importing  # type: ignore[assignment]


class _Keras(ModuleType):
    """The module `tf.keras` until the program first uses it."""

    def __init__(self, real: Any, look: Any) -> None:
        super().__init__(real.__name__, real.__doc__)
        for name in ("__file__", "__path__", "__spec__", "__loader__", "__package__"):
            if hasattr(real, name):
                self.__dict__[name] = getattr(real, name)
        self.__dict__["_real"] = real
        self.__dict__["_look"] = look

    def __getattr__(self, name: str) -> Any:
        frame: FrameType = sys._getframe(1)
        self.__dict__["_look"](frame.f_code.co_filename)
        return getattr(self.__dict__["_real"], name)

    def __dir__(self) -> list[str]:
        return dir(self.__dict__["_real"])


def _is_library(file: str) -> bool:
    """Whether a file is of Python, of an installed package or ours, so that it says nothing about the program."""
    if file.startswith("<"):
        return True
    real = os.path.realpath(file)
    if any(part in ("site-packages", "dist-packages") for part in real.split(os.sep)):
        return True
    paths = sysconfig.get_paths()
    folders = [os.path.realpath(paths[key]) for key in ("stdlib", "platstdlib") if key in paths]
    return any(real.startswith(folder + os.sep) for folder in (*folders, os.path.dirname(os.path.realpath(__file__))))
