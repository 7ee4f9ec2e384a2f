"""The new files, and what becomes of lines that belong to no program."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import libcst as cst

from migrator.emit.file import FileRewriter, finish_imports, insert_classes
from migrator.emit.further_imports import with_imports
from migrator.emit.layout import statements
from migrator.migration.state import GroupState
from migrator.names.imports import dotted
from migrator.places import text_of
from migrator.program.borrowed import names_read
from migrator.program.config_reads import written
from migrator.program.parsed import Blocked, ParsedFile
from migrator.program.shared import asks_for_iterators, spelled_for_both, with_old_datasets
from migrator.rules import flags, keras3
from migrator.rules.summary_writers import written_summaries
from migrator.walking import transformed


class NewTexts(dict[Path, str]):
    """The texts of new files, each written when it is asked for; those of `in_both` run in TensorFlow 1.15, too.

    `asked` says whose datasets are asked for what only those of TensorFlow 1 have.
    """

    def __init__(
        self, modules: Mapping[Path, cst.Module], in_both: Collection[Path], asked: Callable[[Path], bool]
    ) -> None:
        super().__init__()
        self._modules = modules
        self._in_both = in_both
        self._asked = asked

    def __missing__(self, path: Path) -> str:
        module = self._modules[path]
        text = text_of(module, module)
        if self._asked(path):
            text = with_old_datasets(text)
        self[path] = spelled_for_both(text) if path in self._in_both else text
        return self[path]


def asked_for_iterators(state: GroupState, path: Path) -> bool:
    """Whether code that does not change with the group may ask datasets of a file for an iterator."""
    files = [file for file in state.project.files if file.path not in state.group.files]
    asking = [file.path for file in files if asks_for_iterators(file.text)]
    return bool(asking) and names_read(state.project, path, asking) != set()


def write_config_reads(state: GroupState) -> None:
    """Writes what a RunConfig was given where it is read, before the new lines that may hold it are made."""
    for program in state.group.programs:
        rewriter = state.rewriters[program.file.path]
        for place, value in program.config_reads.given.items():
            new = value.visit(rewriter)
            assert isinstance(new, cst.BaseExpression)
            rewriter.replaced[place] = written(program.file, place, new)


def check_config_reads(state: GroupState, texts: Mapping[Path, str]) -> None:
    """Finds reads of a RunConfig that got into new lines by another way, where it is not made any more."""
    for path, file in state.group.files.items():
        reads = [p.config_reads for p in state.group.programs if p.file.path == path]
        given = [node for one in reads for node in one.given if isinstance(node, cst.Attribute)]
        given = list(dict.fromkeys(given))
        for text in sorted({dotted(node) or "" for node in given}):
            places = [node for node in given if dotted(node) == text]
            count = re.compile(rf"(?<![\w.]){re.escape(text)}\b")
            if len(count.findall(texts[path])) > len(count.findall(file.text)) - len(places):
                message = f"`{text}` is read in lines that are replaced: assign it to a name before"
                state.problems[path].append(Blocked("TFM108", places[0], message))


def find_partitioners(state: GroupState, path: Path, file: ParsedFile) -> None:
    """Partitioners of variable scopes outside the model_fns."""
    if not any("partitioner" in one.text for one in state.project.files):
        return  # all three have the word in their names, and no new code has it from elsewhere
    probe = FileRewriter(file.imports, file.code, definition=file.constants.get)
    transformed(file.module, probe.prepare(file.module, state.changes[path]))
    state.partitioners += [(file, node, text) for node, text in probe.partitioners]


def parse_flags(state: GroupState, path: Path, file: ParsedFile) -> None:
    """Parses the command line before a flag is read outside of functions, as TensorFlow 1 did by itself."""
    found = flags.first_read(file.module, file.imports)
    if found is None:
        return
    name, statement = found
    line = statements(f"{name}(sys.argv)\n", file.module)
    before = state.rewriters[path].before
    before[statement] = [*line, *before.get(statement, [])]
    state.changes[path].needs.add("sys")
    state.remarks[path].append(
        Blocked("TFM856", statement, "the command line is now parsed before a flag is read here")
    )


def write_summaries(state: GroupState, path: Path, file: ParsedFile) -> None:
    """Summaries that the driver writes for TensorBoard itself."""

    def rewrite(node: cst.BaseExpression) -> str:
        new = node.visit(state.rewriters[path])
        assert isinstance(new, cst.BaseExpression)
        return file.code(new)

    found = written_summaries(file, rewrite)
    state.changes[path].statements.update(found.statements)
    state.problems[path] += found.problems


def finish_file(state: GroupState, file: ParsedFile) -> cst.Module:
    """The new tree of a file, with the classes, functions and imports that it needs."""
    module = transformed(file.module, state.rewriters[file.path])
    assert isinstance(module, cst.Module)
    changes = state.changes[file.path]
    training = state.training[file.path]
    changes.needs |= state.rewriters[file.path].needs | training.needs
    state.remarks[file.path] += [*state.rewriters[file.path].remarks, *training.remarks]
    changes.classes.update(state.rewriters[file.path].classes)
    if not state.keras.symbolic_tensorflow:
        module = _on_keras3(state, file, module)
    for name in sorted(changes.classes.keys() & file.names):
        state.problems[file.path].append(Blocked("TFM224", None, f"the file needs a class `{name}`: rename yours"))
    changes.classes.update(training.helpers)
    module = insert_classes(module, changes.classes)
    module = finish_imports(module, changes)
    return with_imports(module, {name: found.line for name, found in file.further.items()})


def _on_keras3(state: GroupState, file: ParsedFile, module: cst.Module) -> cst.Module:
    """A new file, and the classes that it needs, in their form for Keras 3; what has none is a problem."""
    module = keras3.renamed(module)
    changes = state.changes[file.path]
    place = next((p.place.call for p in state.group.programs if p.file is file), None)
    for name, text in list(changes.classes.items()):
        new = keras3.class_text(name, text)
        if new is None:
            message = f"`{name}`, which the new file would need, is untested on Keras 3: leave `--keras 3` out"
            state.problems[file.path].append(Blocked("TFM870", place, message))
        else:
            changes.classes[name] = new
    for name in keras3.foreign_names(module):
        message = f"`{name}` does not exist or is untested on Keras 3: leave `--keras 3` out"
        state.problems[file.path].append(Blocked("TFM870", place, message))
    return module
