"""Notebooks as scripts that can be run: the code of their cells, among links to what lies beside them."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from migrator.source.notebooks import NotebookError, code_of, read_notebook


@contextlib.contextmanager
def as_script(path: Path) -> Iterator[Path]:
    """The path of a script; of a notebook that of a script of its code, which is there as long as the context.

    Modules beside the notebook can be imported. Lines that are no Python do nothing. Raises NotebookError.
    """
    if path.suffix != ".ipynb":
        yield path
        return
    try:
        document = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeError) as error:
        raise NotebookError(f"{path} cannot be read: {error}") from None
    read_notebook(document)
    with tempfile.TemporaryDirectory(prefix="tf-migrate-notebook-") as folder:
        for other in path.absolute().parent.iterdir():
            (Path(folder) / other.name).symlink_to(other)
        script = Path(folder) / f"notebook_{path.stem}.py"
        script.unlink(missing_ok=True)
        script.write_text(code_of(document), encoding="utf-8")
        yield script
