"""The name under which tf-migrate is installed and started, which nobody else has.

`migrator` is also what others call a module of theirs. So that package is found here by its place and not by its name:
installed it is a part of this one, in a checkout it is beside it. In this process `import migrator` means ours, and
nobody else's `migrator`, on the path or in the folder that is looked at, is imported or written over.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

__all__ = ["begin_process", "main"]


def main() -> None:
    """Runs ``tf-migrate`` with the arguments of the process and ends the process with its exit code."""
    _user_path_last()
    from migrator.cli import main as run

    run()


def begin_process(folder: str) -> None:
    """Makes a process that helps another one ready for work in a folder.

    It is here and not in `migrator`: a new interpreter knows that package once this module is imported.
    """
    import signal

    from migrator.collecting import seldom_until_the_end

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    seldom_until_the_end()
    os.chdir(folder)


def _user_path_last() -> None:
    """What PYTHONPATH names is looked at last: a click.py or random.py of the user's is not ours."""
    named = [Path(entry).resolve() for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    sys.path.sort(key=lambda entry: Path(entry).resolve() in named)


def _find_migrator() -> None:
    here = Path(__file__).resolve().parent
    start = next(
        path for path in (here / "migrator/__init__.py", here.parent / "migrator/__init__.py") if path.exists()
    )
    spec = importlib.util.spec_from_file_location("migrator", start, submodule_search_locations=[str(start.parent)])
    assert spec is not None
    assert spec.loader is not None
    known = sys.modules.get("migrator")
    if known is None or getattr(known, "__file__", None) != str(start):
        sys.modules["migrator"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules["migrator"])


_find_migrator()
