"""What a program that stays TensorFlow 1 borrows of the main file of another: input functions, readers of data."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import zip_longest
from pathlib import Path

from migrator.program.calls import attributes_in, is_name
from migrator.program.parsed import ParsedFile, Project, name_nodes
from migrator.program.shared import runs_in_both

#: Of what a new file needs when it is imported, what TensorFlow 1.15 has got beside what `runs_in_both` knows.
_AT_IMPORT = frozenset(("tf.keras.Model", "tf.keras.callbacks.Callback", "tf.keras.layers.Layer"))
#: Where the names of TensorFlow 1 are in TensorFlow 2.
_MODULES = frozenset(("tf", "absl"))
#: How the lines begin that choose Keras 2.
_CHOICE = 'if importlib.util.find_spec("tf_keras")'
#: What a program starts where it is installed, and its new one does without.
_HOROVOD = "horovod"
#: A function that asks for these gives tensors of its graph; what is written for TensorFlow 2 gives the data.
_TENSORS = ("get_next", "make_one_shot_iterator", "make_initializable_iterator")


def names_read(project: Project, path: Path, others: Collection[Path]) -> Collection[str] | None:
    """The names of a file that others read; None where one of them does what is not followed."""
    found: set[str] = set()
    readers = [file for file in project.files if file.path != path and file.path in others]
    starts_horovod = any(file.path == path and _HOROVOD in file.bare for file in project.files)
    if starts_horovod and any(_HOROVOD in origin for file in readers for origin in file.imports.names.values()):
        return None
    for file in readers:
        if any(_is(project, file, star, path) for star in file.imports.stars):
            return None
        for name, origin in file.imports.names.items():
            module, _, attribute = origin.rpartition(".")
            if name.startswith("*"):
                continue
            if _is(project, file, origin, path):
                attributes = [one.attr.value for one in attributes_in(file.module) if is_name(one.value, name)]
                if len(attributes) != sum(node.value == name for node in name_nodes(file.module)):
                    return None
                found |= set(attributes)
            elif module and _is(project, file, module, path):
                found.add(attribute)
    return found


def _is(project: Project, file: ParsedFile, module: str, path: Path) -> bool:
    other = project.sibling(file, module)
    return other is not None and other.path == path


def not_to_borrow(old: str, new: str, names: Collection[str] | None, never_there: Collection[str]) -> str | None:
    """Why a new file would not give a program that stays TensorFlow 1 the `names` that the old one gave; or None."""
    if names is None:
        return "cannot tell which names it imports"
    try:
        before, after = _Module(old), _Module(new)
    except SyntaxError:
        return "Python 3.7 could not read the new one"
    needed = after.at_import() - before.at_import() - _AT_IMPORT
    first = next((name for name in sorted(needed) if not runs_in_both("", name, never_there)), None)
    if first is not None:
        return f"the new one needs `{first}` at import"
    runs = list(zip_longest(before.runs(), after.runs(), fillvalue=""))
    if not all(_same(*both, never_there) for both in runs):
        return "the new one does something else at import"
    for name in [*sorted(names), *sorted(before.closure(names) | after.closure(names))]:
        gone = name in before.units and name not in after.units
        if gone or not _same(before.unit(name), after.unit(name), never_there):
            return f"`{name}` changes"
    return None


def _same(before: str, after: str, never_there: Collection[str]) -> bool:
    """Whether a definition means the same to TensorFlow 1: only TensorFlow's names in it are spelled anew."""
    if before == after:
        return True
    if not after or any(before.count(name) != after.count(name) for name in _TENSORS):
        return False
    # What the new file has besides is called by what it has anew.
    return (not before or _own_names(before) == _own_names(after)) and runs_in_both(before, after, never_there)


def _own_names(text: str) -> tuple[list[str], set[str]]:
    """The parameters of the functions in a text, and the names in it that are no module's of TensorFlow."""
    nodes = list(ast.walk(ast.parse(text)))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return [ast.dump(node.args) for node in nodes if isinstance(node, ast.FunctionDef)], names - _MODULES


class _Module:
    """The definitions of a module by name, as Python 3.7 reads it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = ast.parse(text, feature_version=(3, 7))
        self.units: dict[str, list[ast.stmt]] = {}
        for statement in self.tree.body:
            for name in _given(statement):
                self.units.setdefault(name, []).append(statement)

    def unit(self, name: str) -> str:
        """The definition of a name as source text; empty where there is none but an import."""
        found = [node for node in self.units.get(name, ()) if not isinstance(node, (ast.Import, ast.ImportFrom))]
        return "\n".join(ast.get_source_segment(self.text, node) or "" for node in found)

    def closure(self, names: Iterable[str]) -> set[str]:
        """Names, and those of the module that their definitions read, without what is imported."""
        found: set[str] = set()
        queue = list(names)
        while queue:
            name = queue.pop()
            if name in found or (name in self.units and not self.unit(name)):
                continue
            found.add(name)
            for node in self.units.get(name, ()):
                queue += [read for read in _read(node) if read in self.units]
        return found

    def at_import(self) -> set[str]:
        """What of TensorFlow is named by what runs when the module is imported."""
        return {name for node in self.tree.body if not _is_main(node) for name in _named(node)}

    def runs(self) -> list[str]:
        """The statements that run when the module is imported, but for definitions, imports and the choice of Keras.

        Neither is the start of Horovod one of them, in a `try`: `names_read` sees to it that nobody asks for that.
        """
        quiet = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Global)
        found = [node for node in self.tree.body if not isinstance(node, quiet) and not _is_main(node)]
        texts = [ast.get_source_segment(self.text, node) or "" for node in found if not _starts_horovod(node)]
        return [text for text in texts if not text.startswith(_CHOICE)]


def _given(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement of a module gives a value, those of functions inside it left out."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        yield statement.name
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name


def _read(node: ast.AST) -> Iterator[str]:
    return (inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name))


def _is_main(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "__main__" in ast.dump(node.test)


def _starts_horovod(node: ast.stmt) -> bool:
    imported = [inner for inner in ast.walk(node) if isinstance(inner, (ast.Import, ast.ImportFrom))]
    return isinstance(node, ast.Try) and any(_HOROVOD in ast.dump(inner) for inner in imported)


def _named(node: ast.AST) -> Iterator[str]:
    """The dotted names of TensorFlow in a statement, without the bodies of functions."""
    if isinstance(node, ast.Attribute):
        name = ast.unparse(node)
        if name.startswith("tf."):
            yield name
            return
    children: Mapping[str, object] = dict(ast.iter_fields(node))
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        children = {"args": node.args, "decorators": node.decorator_list}
    elif isinstance(node, ast.Lambda):
        children = {"args": node.args}
    for child in children.values():
        for inner in child if isinstance(child, list) else [child]:
            if isinstance(inner, ast.AST):
                yield from _named(inner)


__all__ = ["names_read", "not_to_borrow"]
