"""The bridge over a project: the files of its Estimator programs, by their symbols, and the file that runs them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import libcst as cst

from migrator.bridge.assemble import assemble, extended, held_by, in_the_way, library, section, with_settings
from migrator.bridge.codemod import (
    COMMENT,
    EAGER,
    Bridged,
    Handed,
    Missing,
    Problem,
    Stars,
    Support,
    bridge_file,
    is_for_two,
    is_star_of_tensorflow,
    names_of_stars,
    read_with_stars,
)
from migrator.bridge.files import Imports, Placed, absolute, place, read_imports
from migrator.bridge.reached import Reached, reached
from migrator.bridge.sessions import FOR_ALL, MAKERS
from migrator.bridge.standalone_keras import PACKAGE as KERAS
from migrator.bridge.standalone_keras import Moved, moved_keras
from migrator.bridge.support import MARK, NAME
from migrator.bridge.table import HOROVOD, is_maker, is_trainer
from migrator.findings import Finding, Severity
from migrator.names.free import free
from migrator.names.references import Names, chain_of
from migrator.names.spelling import canonical
from migrator.names.standing import is_for_two as names_two
from migrator.names.standing import needs_tensorflow_1, standing
from migrator.source.discovery import SUFFIXES
from migrator.source.notebooks import END_OF_CELL, NEW_CELL
from migrator.source.reading import is_notebook
from migrator.syntax import ROOM, Trees, walked
from migrator.targets.clusters import ONE_EVALUATOR, Clusters

_SHAPES = re.compile(r"\.value\b|\bDimension\b|\.dims\b")
_NOT_IN_KERAS = (
    "`tf.keras` does not have it: replace it by hand. The keras package of TensorFlow 2.21 is Keras 3, which "
    "has no sessions"
)
_KERAS_MOVED = (
    "`keras` is now `tf.compat.v1.keras` on Keras 2 (install tf_keras): the package itself is Keras 3, which "
    "has no sessions"
)
# Names of the support file that train on parameter servers.
_ON_SERVERS = frozenset(("Estimator", "train_and_evaluate"))
# Those by which a model_fn is fed with what a caller declares.
_FED = frozenset(("build_raw_serving_input_receiver_fn", "ServingInputReceiver", "TensorServingInputReceiver"))
_KERAS_MODELS = ("tf.keras.Sequential", "tf.keras.Model", "tf.keras.models")
_PACKAGES = ("tensorflow", HOROVOD.partition(".")[0])
#: What a file says that has sessions, or whose operations run at once.
_OF_MAKERS = ("Session", "slim", "Supervisor", "enable_eager_execution", "enable_v2_behavior")
_MENTIONS = ("tensorflow", "stimator")


@dataclass
class Bridges:
    """What came of it: new texts (those of support files among them) and findings.

    `programs` are the files that make the Estimators of bridged programs, `files` all files of these programs.
    `blocked` are all files of programs of sessions that something stands in the way of.
    """

    texts: dict[Path, str] = field(default_factory=dict)
    findings: dict[Path, list[Finding]] = field(default_factory=dict)
    programs: set[Path] = field(default_factory=set)
    files: set[Path] = field(default_factory=set)
    blocked: set[Path] = field(default_factory=set)

    def add(self, path: Path, problem: Problem, severity: Severity) -> None:
        """Adds a finding once."""
        finding = Finding(str(path), problem.line, problem.column, problem.code, severity, problem.message)
        found = self.findings.setdefault(path, [])
        if finding not in found:
            found.append(finding)


def bridge_project(
    texts: Mapping[Path, str],
    left: Collection[Path] | None = None,
    reasons: Mapping[Path, list[Finding]] | None = None,
    inside: bool = False,
    lends: Lends = lambda path, names: False,
    clusters: Clusters = ONE_EVALUATOR,
    trees: Trees[cst.Module] | None = None,
) -> Bridges:
    """Bridges all programs of a project, or those that are made in the files `left`.

    `reasons` are the findings of the form that was tried before. A program is a file that makes an Estimator, with all
    that it imports, and what imports it; all of it changes, or nothing. `inside` says that the texts are one program,
    which has no place for a support file beside it: a section of the program is that. `lends` tells whether some names
    of a file that another form has changed still mean in a graph of TensorFlow 1 what they did. `clusters` is what is
    asked of programs that run on them. `trees` has what other forms parsed.
    """
    known = trees or Trees(ROOM, cst.parse_module)
    return _Project(texts, reasons or {}, inside, lends, clusters, known).run(left)


def join(
    bridges: Bridges, texts: Mapping[Path, str], findings: Mapping[Path, list[Finding]]
) -> tuple[dict[Path, str], dict[Path, list[Finding]]]:
    """The texts and findings of another form and those of bridges, without what blocked a bridged program there."""
    joined: dict[Path, list[Finding]] = {}
    for path, found in findings.items():
        solved = path in bridges.files and path not in texts
        kept = [one for one in found if not (solved and one.severity in (Severity.MANUAL, Severity.REVIEW))]
        joined[path] = kept
    for path, found in bridges.findings.items():
        told = {one.line for one in joined.get(path, ()) if one.severity is Severity.MANUAL}
        new = [one for one in found if one.severity is not Severity.MANUAL or one.line not in told]
        joined.setdefault(path, []).extend(new)
    # A support file is written before the programs that import it.
    support = {path: text for path, text in bridges.texts.items() if MARK in text}
    return {**support, **texts, **bridges.texts}, joined


_READS_A_GRAPH = "tf.train.import_meta_graph"
#: Whether names of a file mean what they did before another form changed it.
Lends = Callable[[Path, frozenset[str]], bool]


class _Project:
    def __init__(
        self,
        texts: Mapping[Path, str],
        reasons: Mapping[Path, list[Finding]],
        inside: bool,
        lends: Lends,
        clusters: Clusters,
        known: Trees[cst.Module],
    ) -> None:
        self.texts = texts
        self.trees = known
        self.lends = lends
        self.clusters = clusters
        self.settings = _settings_for(clusters)
        self.reasons = reasons
        self.inside = inside
        relevant = texts if inside else _relevant(texts)
        self.imports: Imports = read_imports(relevant)
        self.names: dict[Path, Names] = {}
        self.modules: dict[Path, cst.Module | None] = {}
        self.globals: dict[Path, dict[str, str]] = {}
        self.reaches: dict[Path, list[Path]] = {}
        self.known: dict[Path, Reached] = {}
        self.rest: dict[Path, Bridged] = {}
        self.alone: set[Path] = set()
        self.readers_of_graphs: set[Path] = set()  # that are told of
        self.of_keras: set[Path] = set()  # written files that need Keras 2
        self.eager: set[Path] = set()  # files of programs whose operations run at once
        self.result = Bridges()
        self.distributed = frozenset(
            name
            for path in self.imports.trees
            if HOROVOD.partition(".")[0] in texts[path]
            for name, origin in self._global(path).items()
            if origin == HOROVOD
        )

    def run(self, left: Collection[Path] | None) -> Bridges:
        makers: dict[Path, list[ast.AST]] = {}
        sessions: dict[Path, list[ast.expr]] = {}
        for path in self.imports.trees:
            if (left is None or path in left) and self._mentions(path):
                places = self._makers(path)
                if places:
                    makers[path] = places
                elif any(word in self.texts[path] for word in _OF_MAKERS):
                    made = self._sessions(path)
                    sessions.update({path: made} if made else {})
        self.rest = self._rest(left, {*makers, *sessions})
        self._go(makers, left, graphs=False)
        apart = {path for reach in self.reaches.values() for path in reach}
        others: set[Path] = set()
        if left is not None:  # what another form has changed is another form's
            others = {path for start in self.texts.keys() - left for path in self.imports.reach(start)}
        of_estimators = {path for path in apart | others if "tensorflow" in self.texts.get(path, "")}
        self._go(sessions, left, graphs=True, apart=of_estimators, shared=self.result.files - others, lent=others)
        self._write_rest(apart | of_estimators | self.result.files | self.result.blocked)
        return self.result

    def _mentions(self, path: Path) -> bool:
        """Whether a file speaks of TensorFlow, by whatever name it gets it from a file of the project."""
        return any(word in self.texts[path] for word in _MENTIONS) or any(self._given(path).values())

    def _rest(self, left: Collection[Path] | None, starts: Collection[Path]) -> dict[Path, Bridged]:
        """Files of TensorFlow 1 that no program imports: what runs them is elsewhere, or finds them by their names."""
        imported = {path for start in starts for path in self.imports.reach(start)}
        apart = {path for path in self.imports.trees if path not in imported and (left is None or path in left)}
        rest = {path for path in apart if needs_tensorflow_1(self._spelled_out(path))}
        for path in apart - rest:  # a file that others take TensorFlow from is as they are
            importers = {edge.importer for edge in self.imports.importers([path])}
            given = importers and importers <= rest and "tensorflow" in self._global(path).values()
            if given and not names_two(self.texts[path]):
                rest.add(path)
        support = Support(NAME, graphs=True, needed=False, runs=False)
        return {path: self._try(path, support) for path in self.imports.trees if path in rest}

    def _spelled_out(self, path: Path) -> str:
        """The text of a file, with imports of TensorFlow for the names of it that files of the project give."""
        given = {name: origin for name, origin in self._given(path).items() if origin.startswith("tensorflow")}
        return "".join(f"import {origin} as {name}\n" for name, origin in given.items()) + self.texts[path]

    def _below(self, folder: Path) -> list[Bridged]:
        """What becomes of the files in a folder that no program imports."""
        return [one for path, one in self.rest.items() if absolute(folder) in absolute(path).parents]

    def _write_rest(self, taken: Collection[Path]) -> None:
        """Spells the names of files that no program imports, where nothing is in the way of one or what it imports."""
        going = {path for path, one in self.rest.items() if path not in taken and not one.blocking and one.respelled}
        others = self.imports.trees.keys() - self.rest.keys()
        of_two = {path for path in others if "tensorflow" in self.texts[path] and names_two(self.texts[path])}
        stays = {*taken, *(self.rest.keys() - going), *of_two} - self.result.files
        while True:
            held = {path for path in going if not stays.isdisjoint(self.imports.reach(path))}
            if not held:
                break
            going -= held
            stays |= held
        for path in sorted(going):
            self._write_module(path, self.rest[path])

    def _write_module(self, path: Path, tried: Bridged) -> None:
        """Writes a file that no program imports. It shares the support file of a program above it, or has its own."""
        above = [one for one, text in self.result.texts.items() if MARK in text and one.parent in path.parents]
        shaped = bool(_SHAPES.search(self.texts[path]))
        lone = self.inside or is_notebook(path)
        bridged = tried
        if lone and tried.used:
            return
        if not lone and (tried.used or tried.keras or tried.slim or shaped):
            together = [
                one
                for one in self.result.texts
                if one in self.imports.trees and any(file.parent in one.parents for file in above)
            ]
            placed = place([*together, path], self.imports)
            if not any(file.parent == placed.folder for file in above):
                placed = place([path], self.imports)
            name = self._name(placed, [path])
            of = placed.support(path, name).of
            bridged = self._try(path, Support(name, of, graphs=True, runs=False))
            asked = _set_up(tried.slim, shaped, _asks_keras(self.texts[path]))
            message = self._write_support(placed.folder / f"{name}.py", tried.used | asked)
            if message:
                self.result.add(path, Problem(1, 1, "TFM159", message), Severity.MANUAL)
                return
        self.result.texts[path] = bridged.text
        if not lone:  # else it has still to choose Keras 2 itself
            self.result.files.add(path)
        for problem in bridged.remarks:
            self.result.add(path, problem, Severity.REVIEW)
        self._tell_slim({path: bridged})
        message = (
            "no program here imports this file: it now uses the names of tf.compat.v1, so its importers must "
            "call `tf.compat.v1.disable_v2_behavior()` first"
        )
        self.result.add(path, Problem(1, 1, "TFM185", message), Severity.REVIEW)

    def _go(
        self,
        makers: Mapping[Path, Sequence[ast.AST]],
        left: Collection[Path] | None,
        graphs: bool,
        apart: Collection[Path] = (),
        shared: Collection[Path] = (),
        lent: Collection[Path] = (),
    ) -> None:
        """Bridges the programs that are made in some files, but those that have a file of `apart`.

        `graphs`: they are made by sessions, without an Estimator. TensorFlow 2 is off for a whole process then: a file
        that Estimators' programs use, too, may not turn it off. Those of `shared` are written by now, in names that
        mean the same either way, and those of `lent` may give a program what it takes of them.
        """
        found = {path: self._reach(path, makers, left, graphs) for path in makers}
        for path, reach in found.items():
            beside = {one for one in reach if one in shared and one != path}
            own = [one for one in reach if one not in beside and one not in lent]
            beside |= {one for one in reach if one in lent and self._lends(one, own)}
            found[path] = [one for one in reach if one not in beside]
            if graphs and beside and not any("tensorflow" in self.texts[one] for one in found[path]):
                self.alone.add(path)
        reaches = {path: reach for path, reach in found.items() if set(reach).isdisjoint(apart)}
        for path in found.keys() - reaches.keys() if graphs else ():
            others = [one for one in found[path] if one in apart]
            if path not in others and not any(MARK in self.texts[one] for one in others):  # else it was migrated before
                self._tell_shared(path, makers[path][0], others[0])
        self.reaches = reaches
        if graphs:
            self.eager.update(*(reach for reach in reaches.values() if self._is_eager(reach)))
        tried = {}
        for reach in reaches.values():
            kinds = {path: self._kind(path, graphs) for path in reach}
            tried.update({path: self._try(path, kind) for path, kind in kinds.items()})
        blocked = {start for start, reach in reaches.items() if any(tried[path].blocking for path in reach)}
        self._tell_blocked(makers, reaches, blocked, tried, graphs)
        if graphs:
            self.result.blocked.update(path for start in blocked for path in reaches[start])
        going = {start: reach for start, reach in reaches.items() if start not in blocked}
        changing = {
            path for path, one in tried.items() if (one.respelled if graphs else _changes(one, self.texts[path]))
        }
        for start in going:  # as it is, it runs
            if graphs and tried[start].switched and changing.isdisjoint(going[start]):
                self.result.files.update(going[start])
        for group in _groups(going, changing):
            self._bridge(group, going, makers, tried, graphs)

    def _kind(self, path: Path, graphs: bool) -> Support:
        return Support(NAME, graphs=graphs, alone=path in self.alone, eager=path in self.eager)

    def _is_eager(self, files: Collection[Path]) -> bool:
        """Whether a program asks for eager execution and has no session."""
        read = {canonical(one.origin) for path in files for one in self._read(path).references}
        return not read.isdisjoint(EAGER) and read.isdisjoint(MAKERS)

    def _lends(self, path: Path, own: Collection[Path]) -> bool:
        """Whether a file that another form has changed gives the files of a program what it gave them."""
        taken: set[str] = set()
        for edge in self.imports.importers([path]):
            if edge.importer not in own:
                continue
            if edge.what == "*":
                return False
            if edge.what:
                taken.add(edge.what)
                continue
            module = [one for one in walked(self.imports.trees[edge.importer]) if isinstance(one, ast.Name)]
            uses = [one for one in module if one.id == edge.name]
            read = [one for one in walked(self.imports.trees[edge.importer]) if isinstance(one, ast.Attribute)]
            attributes = [one.attr for one in read if isinstance(one.value, ast.Name) and one.value.id == edge.name]
            if len(attributes) != len(uses):  # the module itself is given to something
                return False
            taken.update(attributes)
        return self.lends(path, frozenset(taken))

    def _tell_shared(self, start: Path, made: ast.AST, other: Path) -> None:
        """Tells of a program of sessions that stays: another form has changed what it uses of a file."""
        message = (
            f"this program is unchanged: it uses `{other}`, which changes for a program with an Estimator: "
            "give each its own file, or migrate both with --style bridge"
        )
        self.result.add(start, _problem(made, "TFM148", message), Severity.MANUAL)

    def _reach(
        self, start: Path, makers: Mapping[Path, Sequence[ast.AST]], left: Collection[Path] | None, graphs: bool
    ) -> list[Path]:
        """A program's files: the one that makes the Estimator, those that import it, and what all of them import.

        An importer that cannot go stays (TFM158), as does one that is a program itself, or of another form.
        """
        found = dict.fromkeys(self.imports.reach(start))
        queue, seen = [start], {start}
        while queue:
            for path in (edge.importer for edge in self.imports.importers([queue.pop(0)])):
                if path in seen or path in makers or (left is not None and path not in left):
                    continue
                seen.add(path)
                reach = self.imports.reach(path)
                support = Support(NAME, graphs=graphs)
                if not any(self._try(one, support).blocking for one in reach if one not in found):
                    found |= dict.fromkeys(reach)
                    queue.append(path)
        return list(found)

    # -- reading ---------------------------------------------------------------------------------------------------

    def _read(self, path: Path) -> Names:
        if path not in self.names:
            tree = self.imports.trees[path]
            self.names[path], _ = read_with_stars(tree, self._given(path))
        return self.names[path]

    def _given(self, path: Path) -> dict[str, str]:
        """The names of TensorFlow that a file gets from other files of the project, and what they mean."""
        found: dict[str, str] = {}
        for edge in self.imports.of.get(path, ()):
            if edge.what:
                theirs = self._global(edge.imported)
                if edge.what == "*":
                    found.update({n: origin for n, origin in theirs.items() if not n.startswith("_")})
                elif edge.what in theirs:
                    found[edge.name] = theirs[edge.what]
        return found

    def _global(self, path: Path) -> dict[str, str]:
        """What the top level of a file binds to names of TensorFlow; nothing more where files import each other."""
        if path in self.globals:
            return self.globals[path]
        found: dict[str, str] = {}
        self.globals[path] = found
        tree = self.imports.trees.get(path)
        if tree is None or "import" not in self.texts[path]:
            return found
        found.update(self._given(path))
        for node in tree.body:
            for one in walked(node) if isinstance(node, (ast.Try, ast.If)) else (node,):
                if isinstance(one, ast.Import):
                    for alias in one.names:
                        if (package := alias.name.partition(".")[0]) in _PACKAGES:
                            found[alias.asname or package] = alias.name if alias.asname else package
                elif isinstance(one, ast.ImportFrom) and not one.level and one.module:
                    if one.module.partition(".")[0] in _PACKAGES:
                        for alias in one.names:
                            found[alias.asname or alias.name] = f"{one.module}.{alias.name}"
                elif isinstance(one, ast.Assign) and one in tree.body and isinstance(one.targets[0], ast.Name):
                    head, *rest = chain_of(one.value) or (None,)
                    if isinstance(head, ast.Name) and rest and head.id in found:  # `layers = tf.contrib.layers`
                        dotted = ".".join(part.attr for part in rest if isinstance(part, ast.Attribute))
                        found[one.targets[0].id] = f"{found[head.id]}.{dotted}"
        return found

    def _makers(self, path: Path) -> list[ast.AST]:
        """Where a file makes Estimators or derives from one; where it trains some, if it does neither.

        A class of Estimators that is given to a function (`functools.partial(tf.estimator.Estimator, ...)`) makes some.
        """
        names = self._read(path)
        heads = {reference.nodes[-1]: canonical(reference.origin) for reference in names.references}
        made: list[ast.AST] = []
        given: list[ast.AST] = []
        trained: list[ast.AST] = []
        for node in walked(names.tree):
            if isinstance(node, ast.Call):
                name = heads.get(node.func, "")
                values = [*node.args, *(keyword.value for keyword in node.keywords)]
                made += [node] if is_maker(name) else []
                given += [one for one in values if is_maker(heads.get(one, "")) and not _asks_for_type(node)]
                trained += [node] if is_trainer(name) else []
            elif isinstance(node, ast.ClassDef) and any(is_maker(heads.get(base, "")) for base in node.bases):
                made.append(node)
        return made or given or trained[:1]

    def _sessions(self, path: Path) -> list[ast.expr]:
        """Where a file of TensorFlow 1 code has what makes sessions, whatever the version that runs it.

        A file without them may say that all operations run at once: it is a program as well. A maker may be called
        there, or be given a name, be handed to a function, or be derived from.
        """
        names = self._read(path)
        places = {r.nodes[-1]: r.nodes[0] for r in names.references if canonical(r.origin) in MAKERS}
        if not places and any(one.name in EAGER for one in standing(self.texts[path])):  # else it runs as it is
            places = {r.nodes[-1]: r.nodes[0] for r in names.references if canonical(r.origin) in EAGER}
        if not places or is_for_two(self.texts[path], names):
            return []
        apart: set[ast.AST] = set()  # what only speaks of the type, or is for another version
        for node in walked(names.tree):
            for one in _types_of(node):
                apart.update(walked(one))
            if isinstance(node, ast.If) and "version" in ast.unparse(node.test).lower():
                apart.update(walked(node))
        found = [first for last, first in places.items() if last not in apart]
        return sorted(found, key=lambda one: (one.lineno, one.col_offset))

    def _try(self, path: Path, support: Support, first: bool = False) -> Bridged:
        if path not in self.imports.trees:
            return Bridged(self.texts[path])
        text, keras = self.texts[path], Moved("")
        if support.graphs and KERAS in text and not is_for_two(text, self._read(path)):
            keras = moved_keras(text, self.imports.trees[path])
            text = keras.text
        names = self._read(path), names_of_stars(self._read(path).stars)
        read = names if text == self.texts[path] else None
        bridged = bridge_file(
            text,
            support,
            self._given(path),
            first,
            self._handed(path),
            self._stars(path),
            read,
            lambda symbol: self._is_by_driver(path, symbol),
        )
        for name, line in keras.left:
            bridged.blocking.append(Problem(line, 1, "TFM157", f"`{name}` belongs to Keras 2, and {_NOT_IN_KERAS}"))
        for one in bridged.missing:
            if self._comes_to(path, one):
                bridged.blocking.append(one.problem)
            else:
                message = f"{one.problem.message}; it raises an error if the program comes here"
                bridged.remarks.append(replace(one.problem, code="TFM180", message=message))
        if text != self.texts[path]:
            bridged.respelled = True
            bridged.remarks.append(Problem(keras.line, 1, "TFM277", _KERAS_MOVED))
        return bridged

    def _comes_to(self, path: Path, missing: Missing) -> bool:
        """Whether a script that has a file is taken to come to a name that is gone, in a function of the file."""
        known = self._scripts(path)
        return not known or any(one.comes_to(missing.symbol, missing.function) for one in known)

    def _makes_keras_models(self, path: Path) -> bool:
        return any(canonical(one.origin).startswith(_KERAS_MODELS) for one in self._read(path).references)

    def _is_by_driver(self, path: Path, symbol: str) -> bool:
        """Whether a script that has a file is taken to call a symbol outside of model functions and input functions."""
        known = self._scripts(path)
        return not known or any(one.drives(symbol) for one in known)

    def _scripts(self, path: Path) -> list[Reached]:
        """What the scripts that have a file do, as far as it is known."""
        files = {one for reach in self.reaches.values() if path in reach for one in reach}
        roots = [one for one in files if files.isdisjoint(edge.importer for edge in self.imports.importers([one]))]
        for root in roots:
            if root not in self.known:
                paths = [one for one in self.imports.reach(root) if one in self.imports.trees]
                modules = {one: self._module(one) for one in paths}
                self.known[root] = reached(modules, [self.imports.trees[one] for one in paths], root)
        return [self.known[root] for root in roots]

    def _module(self, path: Path) -> cst.Module | None:
        """A file's tree; None where it cannot be parsed."""
        if path not in self.modules:
            try:
                self.modules[path] = self.trees.of(self.texts[path], path)
            except (cst.ParserSyntaxError, RecursionError):
                self.modules[path] = None
        return self.modules[path]

    def _stars(self, path: Path) -> Stars:
        """What other files have to do with the `import *` statements of one."""
        names = self._read(path)
        starred = names_of_stars(names.stars)
        if not starred and "tensorflow" not in self.texts[path]:
            return Stars()
        bound: set[str] = set()
        queue, seen = [path], {path}
        while queue:
            given = {edge.imported for edge in self.imports.of.get(queue.pop(), ()) if edge.what == "*"} - seen
            seen |= given
            queue += [one for one in given if one in self.imports.trees]
            bound.update(name for one in given for name in self._top(one) if not name.startswith("_"))
        own = {*starred, *names.module.names}
        taken: set[str] = set()
        for edge in self.imports.importers([path]):
            if edge.what == "*":
                read = self._read(edge.importer)
                taken |= read.unbound | {one.spelled.partition(".")[0] for one in read.references if not one.binding}
            elif edge.what:
                taken.add(edge.what)
            else:
                taken.update(name for name in own if f"{edge.name}.{name}" in self.texts[edge.importer])
        mine = sum(not is_star_of_tensorflow(star) for star in names.stars)
        known = {(edge.imported, edge.root) for edge in self.imports.of.get(path, ()) if edge.what == "*"}
        return Stars(frozenset(bound), frozenset(taken), mine > len(known))

    def _top(self, path: Path) -> Iterable[str]:
        """The names that the top level of a file binds."""
        return self._read(path).module.names if path in self.imports.trees else ()

    def _handed(self, path: Path) -> Handed:
        """What Horovod's module is called in the project, and what others take of a file as that."""
        if not self.distributed:
            return Handed()
        own = {name for name, origin in self._global(path).items() if origin == HOROVOD}
        exported = set()
        for edge in self.imports.importers([path]):
            of_module = set() if edge.what else {n for n in own if f".{n}" in self.texts[edge.importer]}
            exported |= own if edge.what == "*" else own & {edge.what} | of_module
        return Handed(self.distributed, frozenset(exported))

    # -- what stays --------------------------------------------------------------------------------------------------

    def _tell_blocked(
        self,
        makers: Mapping[Path, Sequence[ast.AST]],
        reaches: Mapping[Path, list[Path]],
        blocked: Collection[Path],
        tried: Mapping[Path, Bridged],
        graphs: bool,
    ) -> None:
        for start in sorted(blocked):
            reasons = [(path, problem) for path in reaches[start] for problem in tried[path].blocking]
            for path, problem in reasons:
                self.result.add(path, problem, Severity.MANUAL)
            if any(path == start for path, _ in reasons):
                continue
            path, problem = reasons[0]
            whose = "the program of this session" if graphs else "this Estimator's program"
            message = f"{whose} is blocked at {path}:{problem.line}: {problem.message}"
            for node in makers[start][:1] if graphs else makers[start]:
                self.result.add(start, _problem(node, problem.code, message), Severity.MANUAL)

    # -- what goes -----------------------------------------------------------------------------------------------------

    def _bridge(
        self,
        group: Collection[Path],
        reaches: Mapping[Path, list[Path]],
        makers: Mapping[Path, Sequence[ast.AST]],
        tried: Mapping[Path, Bridged],
        graphs: bool,
    ) -> None:
        """Writes the files of programs that share some."""
        files = list(dict.fromkeys(path for start in sorted(group) for path in reaches[start]))
        changing = [path for path in files if _changes(tried[path], self.texts[path])]
        if not changing or (graphs and not any(tried[path].respelled for path in changing)):
            return
        placed = place(changing, self.imports)
        name = self._name(placed, changing)
        imported = {edge.imported for path in files for edge in self.imports.of.get(path, ()) if edge.imported != path}
        file = placed.folder / f"{name}.py"
        # A notebook is one file to its users; what it needs goes with it, unless the project has it already.
        in_cell = len(changing) == 1 and is_notebook(changing[0]) and file not in self.texts
        inside = self.inside or in_cell
        below = self._below(placed.folder)
        needed = not graphs or any(
            one.used or one.slim or one.keras for one in (*(tried[path] for path in files), *below)
        )
        needed = needed or any(not self.of_keras.isdisjoint(self.imports.reach(path)) for path in files)
        kind = replace(Support(name, graphs=graphs), needed=needed)
        done = {
            path: self._try(
                path,
                replace(
                    kind,
                    inside=inside,
                    of="" if inside else placed.support(path, name).of,
                    alone=path in self.alone,
                    eager=path in self.eager,
                ),
                path not in imported,
            )
            for path in changing
        }
        used = {one for bridged in done.values() for one in bridged.used}
        shaped = (*(self.texts[path] for path in changing), *(one.text for one in below))
        if any(bridged.eager for bridged in done.values()):
            used.discard(FOR_ALL)
            for bridged in done.values():
                bridged.remarks += [one for one in bridged.of_graphs if one not in bridged.remarks]
        slim = any(bridged.slim for bridged in (*done.values(), *below))
        used |= _set_up(slim, not graphs and any(map(_SHAPES.search, shaped)), any(map(_asks_keras, shaped)))
        if not used.isdisjoint(_FED) and any(map(self._makes_keras_models, changing)):
            used.add("let_keras_models_take_any_shape")
        if self.clusters.in_process and not graphs and used & _ON_SERVERS:
            used.add("start_servers")
        if not needed:
            pass  # TensorFlow 2.21 has all that the program needs
        elif inside:
            for bridged in done.values():
                line = f"import {name}{COMMENT}\n"
                before, _, after = bridged.text.partition(line)
                gap = "\n" if before and not before.endswith("\n\n") else ""
                made = section(used, name, library().with_settings(self.settings))
                if in_cell:
                    made = f"{NEW_CELL}\n{made.rstrip()}\n{END_OF_CELL}\n"
                bridged.text = f"{before}{gap}{made}\n{after}" if after else bridged.text
        else:
            message = self._write_support(file, used)
            if message:
                for start in group:
                    self.result.add(start, _problem(makers[start][0], "TFM159", message), Severity.MANUAL)
                return
        for path, bridged in done.items():
            if bridged.text != self.texts[path]:
                self.result.texts[path] = bridged.text
            for problem in bridged.remarks:
                self.result.add(path, problem, Severity.REVIEW)
        self._tell_slim(done)
        self._tell_importers(done)
        if any(bridged.used for bridged in done.values()):
            self._tell_readers_of_graphs()
        for start in group:
            self.result.programs.add(start)
            self.result.files.update(reaches[start])
            self.of_keras.update(path for path in reaches[start] if tried[path].keras)
            runs = f"its own `{name}`" if inside else f"`{file}`"
            message = f"the program keeps its code; {runs} runs it on Keras and tf.distribute"
            code = "TFM155"
            if graphs:
                code = "TFM199"
                kept = (
                    "eager code, as TensorFlow 2.21 has it"
                    if start in self.eager
                    else "graph and its sessions, as TensorFlow 2.21 has them"
                )
                message = f"the program keeps its {kept} in tf.compat.v1"
                message += f"; {runs} adds what is missing there" if needed else ""
            if any(HOROVOD in self.texts[path] for path in reaches[start]):
                message += "; the workers of TF_CONFIG replace Horovod's (TFM186)"
            message += self._why(reaches[start])
            self._tell_clusters(start, makers[start][0], used)
            for node in makers[start] if not graphs else makers[start][:1]:
                self.result.add(start, _problem(node, code, message), Severity.REVIEW)

    def _tell_clusters(self, start: Path, made: ast.AST, used: Collection[str]) -> None:
        """Says what of that which is asked for clusters the support file does."""
        if self.clusters.coordinates and "train_and_evaluate" in used:
            message = "on a cluster the coordinator evaluates each new checkpoint, while the workers wait"
            self.result.add(start, _problem(made, "TFM753", message), Severity.REVIEW)
        if "start_servers" in used:
            servers = f"{self.clusters.workers} worker(s) and {self.clusters.ps} parameter server(s)"
            message = f"without TF_CONFIG, {servers} start in this process"
            self.result.add(start, _problem(made, "TFM754", message), Severity.REVIEW)

    def _write_support(self, file: Path, used: Collection[str]) -> str:
        """Writes what some programs use; returns why that is not possible, else nothing."""
        before = self.result.texts.get(file, self.texts.get(file))
        source = library().with_settings(self.settings)
        if before is None:
            text: str | None = assemble({*used, *self._asked_of(file)}, source)
        else:
            text = extended(with_settings(before, self.settings), used, source)
        if text is None:
            missing = ", ".join(sorted(set(used) - held_by(before or "")))
            other = ", ".join(in_the_way(before or "", used))
            return (
                f"`{file}` lacks {missing}, and its {other} is changed or too old: move the file "
                "away, run again, and merge your changes into the new one"
            )
        if text != before:
            self.result.texts[file] = text
        return ""

    def _asked_of(self, file: Path) -> set[str]:
        """What programs that were migrated before use of a support file, which is gone."""
        asked: set[str] = set()
        for path in self.imports.trees:
            if file.stem in self.texts[path]:
                names = self._read(path)
                origins = {one.origin or "" for one in names.references} | {one.origin or "" for one in names.bindings}
                own = {one.split(".")[1] for one in origins if one.startswith(f"{file.stem}.")}
                text = self.texts[path]
                asked |= own | (_set_up(False, bool(_SHAPES.search(text)), _asks_keras(text)) if own else set())
        return asked & library().public

    def _name(self, placed: Placed, files: Collection[Path]) -> str:
        """`keras_estimator`, or another name where the project has given that one away."""
        taken = set()
        here = placed.folder / f"{NAME}.py"
        if here in self.texts and MARK not in self.texts[here]:
            taken.add(NAME)
        for path in files:
            for binding in self._read(path).bindings:
                if binding.name == NAME and not (binding.origin or "").endswith(NAME):
                    taken.add(NAME)
                if (self.inside or is_notebook(path)) and binding.name == f"make_{NAME}":
                    taken.add(NAME)
        return free(NAME, taken)

    def _tell_slim(self, done: Mapping[Path, Bridged]) -> None:
        message = "tf_slim replaces tf.contrib here: pip install tf_slim"
        for path, bridged in done.items():
            if bridged.slim:
                self.result.add(path, Problem(1, 1, "TFM167", message), Severity.REVIEW)

    def _tell_importers(self, done: Mapping[Path, Bridged]) -> None:
        """Files of TensorFlow 1 that are in no program, and import one that is."""
        with_estimators = {path for path, bridged in done.items() if bridged.used}
        for edge in self.imports.importers(with_estimators):
            if edge.importer in done or "tensorflow" not in self.texts[edge.importer]:
                continue
            message = (
                f"this file stays TensorFlow 1 code, but `{edge.imported.name}`, which it imports, now "
                "runs on TensorFlow 2: import tensorflow.compat.v1 as tf"
            )
            self.result.add(edge.importer, Problem(1, 1, "TFM158", message), Severity.REVIEW)

    def _tell_readers_of_graphs(self) -> None:
        """Files that read graphs which Estimators of TensorFlow 1 wrote beside their checkpoints."""
        message = (
            "Estimators no longer write a `.meta` file beside their checkpoints: use one that TensorFlow 1 "
            "wrote, or build the graph with the model_fn"
        )
        for path in self.imports.trees.keys() - self.readers_of_graphs:
            read = [one for one in self._read(path).references if canonical(one.origin) == _READS_A_GRAPH]
            for one in read:
                self.result.add(path, _problem(one.nodes[0], "TFM149", message), Severity.REVIEW)
                self.readers_of_graphs.add(path)

    def _why(self, reach: Collection[Path]) -> str:
        """What the form that was tried before would have needed, shortly."""
        found = [
            finding for path in reach for finding in self.reasons.get(path, ()) if finding.severity is Severity.MANUAL
        ]
        found = list({(f.path, f.line, f.code): f for f in found}.values())
        if not found:
            return ""
        told = "; ".join(f"{f.code} at {f.path}:{f.line} ({_short(f.message)})" for f in found[:2])
        return f". The native form is blocked by {told}" + (f" and {len(found) - 2} more" if len(found) > 2 else "")


def _settings_for(clusters: Clusters) -> dict[str, str]:
    """The settings of a support file that are asked for, as source text."""
    found = {"EVALUATES_ON": '"coordinator"'} if clusters.coordinates else {}
    if clusters.in_process:
        found["SERVERS"] = f'{{"worker": {clusters.workers}, "ps": {clusters.ps}}}'
    return found


def _asks_keras(text: str) -> bool:
    """Whether a file may ask tf.keras for its version, or a module that this may be."""
    return "__version__" in text and "keras" in text


def _set_up(slim: bool, shaped: bool, versions: bool) -> set[str]:
    """What a support file does when it is imported, for files that use tf_slim, TensorFlow 1's shapes, or the version
    of tf.keras.
    """
    asked = {
        "let_tf_slim_find_its_layers": slim,
        "keep_tensorflow_1_shapes": shaped,
        "tell_version_of_keras": versions,
    }
    return {name for name, one in asked.items() if one}


def _asks_for_type(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "issubclass")


def _types_of(node: ast.AST) -> list[ast.expr]:
    """What of a node only speaks of types: annotations, what is in brackets, what `isinstance` is asked for."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return [node.returns] if node.returns is not None else []
    if isinstance(node, ast.arg):
        return [node.annotation] if node.annotation is not None else []
    if isinstance(node, ast.AnnAssign):
        return [node.annotation]
    if isinstance(node, ast.Subscript):
        return [node.slice]
    return list(node.args[1:]) if isinstance(node, ast.Call) and _asks_for_type(node) else []


def _short(message: str) -> str:
    first = message.partition(": ")[0] if len(message) > 120 else message
    return first if len(first) <= 160 else f"{first[:157]}..."


def _problem(node: ast.AST, code: str, message: str) -> Problem:
    return Problem(node.lineno, node.col_offset + 1, code, message)  # type: ignore[attr-defined]


def _changes(bridged: Bridged, before: str) -> bool:
    return bridged.text != before


def _groups(reaches: Mapping[Path, list[Path]], changing: Collection[Path]) -> list[list[Path]]:
    """The programs, those together that share a file which changes."""
    groups: list[tuple[set[Path], list[Path]]] = []
    for start, reach in reaches.items():
        files, members = {path for path in reach if path in changing}, [start]
        rest = []
        for other, starts in groups:
            if other & files:
                files |= other
                members = [*starts, *members]
            else:
                rest.append((other, starts))
        groups = [*rest, (files, members)]
    return [members for _, members in groups]


def _relevant(texts: Mapping[Path, str]) -> dict[Path, str]:
    return {path: text for path, text in texts.items() if path.suffix in SUFFIXES}
