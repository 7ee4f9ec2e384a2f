"""The support file is made of just what is asked for, is always the same, and grows without losing anything."""

from __future__ import annotations

import ast
import builtins
import os
import subprocess
import sys
from pathlib import Path

import pytest

from migrator.bridge import assemble as assemble_module
from migrator.bridge.assemble import SETTINGS, SETUP, assemble, extended, held_by, in_the_way, library, read_library

SMALL = {
    "one": '''"""One."""

from __future__ import annotations

import os
from collections import abc

import numpy as np

from .two import Base

LIMIT = 3
# What follows from it.
DOUBLE = 2 * LIMIT


@abc.Hashable.register
class Thing(Base):
    """A thing."""

    size = DOUBLE


def unused():
    """Of no use."""
    return os.getcwd()


def keep_tensorflow_1_shapes():
    """Called where the file is imported."""
    np.seterr()
''',
    "two": '''"""Two."""


class Base:
    """What things are."""
''',
}


def test_file_holds_what_is_asked_for_in_the_order_of_the_library() -> None:
    text = assemble(["Thing", "keep_tensorflow_1_shapes"], read_library(SMALL))
    assert (
        text.partition('"""\n\n')[2]
        == '''from __future__ import annotations

import importlib.util
from collections import abc

if importlib.util.find_spec("tf_keras"):  # Keras 2, which TensorFlow has no more itself from 2.16 on
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402


class Base:
    """What things are."""


LIMIT = 3
# What follows from it.
DOUBLE = 2 * LIMIT


@abc.Hashable.register
class Thing(Base):
    """A thing."""

    size = DOUBLE


def keep_tensorflow_1_shapes():
    """Called where the file is imported."""
    np.seterr()


keep_tensorflow_1_shapes()
'''.replace("import importlib.util\n", "import importlib.util\nimport os\n")
    )


def test_same_names_same_text_in_any_order() -> None:
    names = sorted(library().public)
    assert assemble(names) == assemble(reversed(names)) == assemble([*names, *names])


def undefined(text: str) -> set[str]:
    """The names that a module reads and nothing in it binds."""
    tree = ast.parse(text)
    bound = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    bound |= {one.name for one in ast.walk(tree) if isinstance(one, ast.ClassDef | ast.FunctionDef)}
    bound |= {one.name for one in ast.walk(tree) if isinstance(one, ast.ExceptHandler) and one.name}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            bound |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    read = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return read - bound - set(dir(builtins)) - {"__class__", "__file__"}


def test_file_of_every_name_reads_nothing_that_is_not_there() -> None:
    for name in sorted(library().public):
        assert not undefined(assemble([name])), name


def test_own_code_is_not_imported() -> None:
    text = assemble(library().public)
    assert "migrator" not in text and "from ." not in text
    assert [line for line in text.splitlines() if line.startswith(tuple(f"{name}(" for name in SETUP))]


def test_file_with_what_is_asked_for_stays() -> None:
    text = assemble(["Estimator"])
    assert extended(text, ["ModeKeys"]) == text
    changed = text.replace("class Estimator", "# Ours.\nclass Estimator")
    assert extended(changed, ["Estimator"]) == changed


def test_file_gets_what_it_lacks() -> None:
    both = assemble(["Estimator", "numpy_input_fn"])
    assert extended(assemble(["Estimator"]), ["numpy_input_fn"]) == both
    assert {"Estimator", "numpy_input_fn"} <= held_by(both)


def test_the_order_is_that_of_every_run() -> None:
    """Sets have another order in every process, and a file of another order would be taken for a changed one."""
    code = "from migrator.bridge.assemble import assemble, library; print(assemble(library().public))"
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3", "4")
    }
    assert len(said) == 1


def test_what_a_changed_file_lacks_comes_to_its_end() -> None:
    text = assemble(["ModeKeys"]).replace('"train"', '"TRAIN"')
    more = extended(text, ["numpy_input_fn"])
    assert more is not None and held_by(more) >= {"ModeKeys", "numpy_input_fn"}
    added = [line for line in more.split("\n") if line not in text.split("\n")]
    kept = iter(more.split("\n"))
    assert all(line in kept for line in text.rstrip("\n").split("\n"))  # in their order, none is lost
    assert any(line.startswith("def numpy_input_fn(") for line in added)
    assert not undefined(more)
    assert extended(more, ["numpy_input_fn"]) == more


def test_a_file_that_changed_what_is_needed_is_not_written() -> None:
    text = assemble(["Estimator"]).replace("class ModeKeys:", "class ModeKeys:  # ours")
    assert extended(text, ["DNNClassifier"]) is None
    assert in_the_way(text, ["DNNClassifier"]) == ("ModeKeys",)
    assert in_the_way(assemble(["ModeKeys"]) + "\n\nnp = 3\n", ["numpy_input_fn"]) == ("np",)
    assert extended("def (", ["ModeKeys"]) is None and in_the_way("def (", ["ModeKeys"]) == ("its syntax",)


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ({"one": "x = 1\n", "two": "x = 2\n"}, "defined twice"),
        ({"one": "print(1)\n"}, "only imports, definitions and constants"),
        ({"one": "from .two import x\n\ny = x\n"}, "no module two"),
        ({"one": "from .two import x\n\ny = x\n", "two": ""}, "y needs x"),
        ({"one": "from .two import x as z\n", "two": "x = 1\n"}, "import by name"),
        ({"one": "import os.path as p\n", "two": "import posixpath as p\n"}, "in two ways"),
    ],
)
def test_library_that_cannot_be_copied(texts: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_library(texts)


def test_what_is_read_bit_by_bit_is_the_whole_library() -> None:
    folder = Path(assemble_module.__file__).with_name("library")
    whole = read_library({path.stem: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.py"))})
    unread = library()
    assert list(unread.definitions) == list(whole.definitions)
    assert dict(unread.definitions) == whole.definitions and unread.imports == whole.imports


def test_settings_may_be_changed_by_the_user() -> None:
    text = assemble(["train_and_evaluate"])
    changed = text.replace('EVALUATES_ON = "evaluator"', 'EVALUATES_ON = "coordinator"')
    assert changed != text and in_the_way(changed, ["train_and_evaluate", "numpy_input_fn"]) == ()
    more = extended(changed, ["numpy_input_fn"])
    assert more == assemble(["train_and_evaluate", "numpy_input_fn"]).replace(
        'EVALUATES_ON = "evaluator"', 'EVALUATES_ON = "coordinator"'
    )
    # They are constants of the library, whose lines are found.
    for name in SETTINGS:
        new = library().with_settings({name: "7"})
        assert f"\n{name} = 7" in f"\n{new.definitions[name].text}"
