"""One file of a bridged project: its names of TensorFlow 1 that are elsewhere now are spelled anew, and nothing else.

`import tensorflow as tf` becomes `import tensorflow.compat.v1 as tf`, so that what follows means what it meant. Only
what `tf.compat.v1` has not (Estimators, tf.contrib) is named otherwise, after the table in homes.py.
"""

from __future__ import annotations

import ast
import builtins
import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from migrator.bridge.answers import is_public, public_names
from migrator.bridge.homes import Home, Kind, home_of
from migrator.bridge.late_gradients import RESOURCES, late_gradients
from migrator.bridge.sessions import FOR_ALL, FUNCTION, needing_default_graph, own_sessions
from migrator.bridge.table import HOROVOD, LIBRARIES, NAMESPACES, OF_HOROVOD, OF_HUB, SUPPLIED, WORKERS
from migrator.names import aliases
from migrator.names.advice import advice
from migrator.names.compat import written_for_two
from migrator.names.fate import Compat, New, Renamed, exists, fate
from migrator.names.references import Binding, Names, Reference, chain_of, read_names
from migrator.names.spelling import canonical, rooted
from migrator.names.standard import STANDARD_MODULES
from migrator.rules.tf2_names import REMOVED
from migrator.syntax import parents_in, tree_of

_ROOTS = ("tensorflow", "tensorflow.compat.v1", "tensorflow_core", "tensorflow.compat.v2")
_V1 = "tensorflow.compat.v1"
_V2 = "tf.compat.v2."
#: Calls that turn off what the support file runs on.
_SWITCHES_OFF = ("tf.disable_v2_behavior", "tf.disable_eager_execution", "tf.disable_resource_variables")
EAGER = ("tf.enable_eager_execution", "tf.enable_v2_behavior", "tf.contrib.eager.enable_eager_execution")
# Keras models that a driver makes, or may make: they are those of TensorFlow 2, which have no session.
_MADE_BY_KERAS = ("tf.keras.Sequential", "tf.keras.models.load_model", "tf.keras.applications", "tf.keras.estimator")
# What TensorFlow 2.21 takes from Keras where it is asked for it.
_OF_KERAS = ("tf.layers", "tf.keras", "tf.nn.rnn_cell", "tf.contrib", "tf.feature_column")
_GRAPHS_SWITCHES = ("tf.disable_v2_behavior", "tf.disable_eager_execution")
_ELSEWHERE = (Kind.NONE, Kind.SUPPORT, Kind.SLIM)
_HOROVOD = HOROVOD.partition(".")[0]
_ESTIMATORS = "tensorflow_estimator"  # the package, which newer versions of TensorFlow do not need
_BY_HAND = "remove it by hand"
_OF_MODULES = frozenset(("__file__", "__name__", "__doc__", "__path__", "__spec__", "__builtins__"))
COMMENT = "  # before TensorFlow: it chooses Keras 2"
# Imports that may stand before the support file's: they do not import TensorFlow.
_HARMLESS = frozenset((*STANDARD_MODULES, "numpy", "pandas", "absl", "six", "scipy", "sklearn", "matplotlib"))


@dataclass(frozen=True)
class Problem:
    """Something to tell about a place in a file, 1-based."""

    line: int
    column: int
    code: str
    message: str


@dataclass(frozen=True)
class Missing:
    """A name that is gone, in a function: it raises only if the program comes there.

    `function` is the name of the innermost function around it. `problem` is what to tell where the program is known to
    come there.
    """

    symbol: str
    function: str
    problem: Problem


@dataclass(frozen=True)
class Support:
    """How a file imports the support file: its `name`, and the package that it is taken `of` (empty: none).

    `inside` says that a section of the file takes its place, where the added import stands: see `assemble.section`.
    `graphs` says that the program has sessions of its own and no Estimator: all of it is TensorFlow 1 code. It may do
    without the file then, if that is not `needed`. `runs` says that the file is part of a program: how TensorFlow runs
    is no business of another. `alone` says that the files which import TensorFlow for it are those of other programs:
    it turns TensorFlow 2 off by itself then. `eager` says that a program without an Estimator has no sessions either:
    its operations run at once, as they do in TensorFlow 2.
    """

    name: str
    of: str = ""
    inside: bool = False
    graphs: bool = False
    needed: bool = True
    runs: bool = True
    alone: bool = False
    eager: bool = False

    @property
    def line(self) -> str:
        """The statement that imports it."""
        return f"from {self.of} import {self.name}" if self.of else f"import {self.name}"

    @property
    def module(self) -> str:
        """What stands after `from` where names of it are imported."""
        return f"{self.of}.{self.name}" if self.of.strip(".") else f"{self.of}{self.name}"


@dataclass
class Bridged:
    """A file as it becomes. `used` are names of the support file; `blocking` says what stands in the way.

    `missing` are names that are gone and stand in functions, which the program may never come to.

    `eager` says that its operations are to run at once, where no graph is built, and `keras` that it uses Keras.
    `of_graphs` are its lines that need a graph: they are told where another file of the program is eager.
    `respelled` says that some of its own names change, `switched` that it turns TensorFlow 2 off itself.
    """

    text: str
    used: set[str] = field(default_factory=set)
    slim: bool = False
    eager: bool = False
    keras: bool = False
    respelled: bool = False
    switched: bool = False
    blocking: list[Problem] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)
    remarks: list[Problem] = field(default_factory=list)
    of_graphs: list[Problem] = field(default_factory=list)


@dataclass(frozen=True)
class Handed:
    """Horovod's module as a value: what a program calls it, in any file, and what others take of this file so."""

    names: frozenset[str] = frozenset()
    exported: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Stars:
    """What the project knows about a file's `import *` statements.

    `bound` are names that files of the project give by one, `taken` those that other files take of this one, and
    `unknown` says that one is of a module that is not in the project.
    """

    bound: frozenset[str] = frozenset()
    taken: frozenset[str] = frozenset()
    unknown: bool = False


def bridge_file(
    text: str,
    support: Support,
    given: Mapping[str, str] | None = None,
    first: bool = False,
    handed: Handed | None = None,
    stars: Stars | None = None,
    read: tuple[Names, dict[str, str]] | None = None,
    by_driver: Callable[[str], bool] = lambda symbol: True,
) -> Bridged:
    """Spells a file's names anew. `given` are names of TensorFlow that reach it through files of the project.

    `first` says that the file may be the first of its process to import TensorFlow. `read` is what `read_with_stars`
    says of the text, where that is known. `by_driver` says whether a symbol may be called outside of model functions
    and input functions.
    """
    names, starred = read or read_with_stars(tree_of(text), given or {})
    stars = stars or Stars(unknown=any(not is_star_of_tensorflow(one) for one in names.stars))
    others = [n for n, origin in (given or {}).items() if origin in ("tensorflow", _V1) and n in names.module.names]
    return _File(
        text, names, support, first, handed or Handed(), starred, stars, next(iter(others), None), by_driver
    ).run()


def names_of(text: str, given: Mapping[str, str] | None = None) -> Iterable[str]:
    """The canonical names of TensorFlow that a file reads or imports."""
    names = read_names(tree_of(text), given)
    for reference in names.references:
        yield canonical(reference.origin)
    for binding in names.imported():
        if binding.origin is not None:
            yield canonical(binding.origin)


class _File:
    def __init__(
        self,
        text: str,
        names: Names,
        support: Support,
        first: bool,
        handed: Handed,
        starred: Mapping[str, str],
        stars: Stars,
        given: str | None,
        by_driver: Callable[[str], bool],
    ) -> None:
        self.text = text
        self.starred = starred
        self.stars = stars
        self.by_driver = by_driver
        self.handed = handed
        self.raw = text.encode("utf-8")
        self.starts = [0]
        for line in self.raw.split(b"\n"):
            self.starts.append(self.starts[-1] + len(line) + 1)
        self.names = names
        self.support = support
        self.first = first
        self.edits: dict[tuple[int, int], str] = {}
        self.result = Bridged(text)
        self.needs_support = False
        self.needs_slim = False
        self.turns_off = False
        self.tensorflow = self._name_of_tensorflow() or given
        self.needs_tensorflow = False
        self.for_two = is_for_two(text, names)
        self.stays: dict[Binding, int] = {}  # how many uses of an imported name go on through it
        self.gone: dict[Binding, int] = {}
        self.deleted: set[ast.stmt] = set()

    @property
    def parents(self) -> Mapping[ast.AST, ast.AST]:
        """The node around each node."""
        return parents_in(self.names.tree)

    def run(self) -> Bridged:
        for star in self.names.stars:
            if is_star_of_tensorflow(star):
                self._star(star)
        self._libraries()
        for reference in self.names.references:
            self._reference(reference)
        self._of_handed()
        self._sessions()
        self._late_gradients()
        for statement in dict.fromkeys(b.statement for b in self.names.imported()):
            assert statement is not None
            self._import(statement)
        self._aliases()
        self.result.respelled = bool(self.edits) or self.support.alone
        self.result.switched = any(canonical(r.origin) in _GRAPHS_SWITCHES for r in self.names.references)
        self._add_imports()
        self.result.text = self._edited()
        return self.result

    def _star(self, star: ast.ImportFrom) -> None:
        """An `import *` goes where all that the file may have of it is known: each name is spelled where it stands."""
        left = self.names.unbound - set(dir(builtins)) - _OF_MODULES - self.stars.bound
        left |= set(self.starred) & (self.stars.taken | (self.stars.bound & self.names.unbound))
        if not left and not self.stars.unknown:
            self._delete(star)
            return
        of_it = f" ({', '.join(f'`{name}`' for name in sorted(left))})" if left and not self.stars.unknown else ""
        self._block(
            star, "TFM156", f"`import *` from {star.module} is unsupported: import by name what the file uses{of_it}"
        )

    # -- what the file is ----------------------------------------------------------------------------------------

    def _name_of_tensorflow(self) -> str | None:
        """The name that the module has for TensorFlow 1."""
        found = [
            binding.name
            for binding in self.names.imported()
            if binding.origin in ("tensorflow", _V1) and binding.scope is self.names.module
        ]
        of_one = [b.name for b in self.names.imported() if b.origin == _V1 and b.scope is self.names.module]
        return next(iter([*of_one, *found]), None)

    # -- names that are read ---------------------------------------------------------------------------------------

    def _reference(self, reference: Reference) -> None:
        name = canonical(reference.origin)
        self.result.keras |= name.startswith(_OF_KERAS)
        if not _is_tensorflow(name):
            found = home_of(name)
            of_horovod = name.partition(".")[0] == _HOROVOD
            if of_horovod and found.kind is not Kind.SUPPORT:
                self._of_horovod(reference, name)
            elif of_horovod and self._through_project(reference):
                pass  # the other file has it, as a value
            elif found.kind is Kind.SUPPORT:
                self.result.used.add(found.name)
                self._elsewhere(reference, found)
            else:
                self._of_library(reference)
            return
        if reference.binding is not None:
            self.stays.setdefault(reference.binding, 0)
        if self._is_switch(reference, name):
            return
        if self.for_two and not reference.origin.startswith(_V1) and not _is_only_one(name):
            self._of_two(reference, name)
            return
        found = home_of(name)
        if reference.binding is None and reference.spelled.partition(".")[0] in self.starred:
            self._of_star(reference, found)
            return
        parts = name.split(".")
        renamed = len(parts) != len(reference.origin.split(".")) or reference.origin.startswith("tensorflow.python.")
        stays = renamed and found.kind is not Kind.SUPPORT and _private_stays(reference.origin)
        is_moved = found.kind is Kind.PRIVATE and found.name != rooted(reference.origin)
        if is_moved and rooted(reference.head_origin) == "tf":
            self._gone(reference, rooted(reference.origin))
        elif found.kind is Kind.PRIVATE or stays:
            self._stay(reference)
        elif found.kind is Kind.NONE:
            if self._is_tried(reference, name):
                self._stay(reference)
            elif not self._is_namespace_of_uses(reference, name):
                self._gone(reference, name)
        elif found.kind is Kind.COMPAT:
            spelled = self._compat(found, parts)
            self._spell(reference, found, spelled, found.name if name != found.name else name)
        else:
            if found.name:
                (self.result.used.add(found.name) if found.kind is Kind.SUPPORT else None)
            self._elsewhere(reference, found)

    def _of_star(self, reference: Reference, found: Home) -> None:
        """A name that an `import *` gives: spelled as what it is."""
        if found.kind is Kind.COMPAT:
            new = self._of_tensorflow(found.name)
        else:
            self._need(found.kind)
            new = f"{self._module(found.kind)}.{found.name}"
            if found.kind is Kind.SUPPORT:
                self.result.used.add(found.name)
        self._replace(reference, found, new)

    def _of_horovod(self, reference: Reference, name: str) -> None:
        """What the support file has not of Horovod, but for the module itself, which it has as a value."""
        node = reference.nodes[-1]
        if name != HOROVOD:
            self._stay(reference)
            self._block(reference.nodes[0], "TFM157", f"`{name}` of Horovod is unsupported: {_BY_HAND}")
            return
        if self._through_project(reference):
            return  # the other file has it
        parent = self.parents.get(node)
        is_asked = isinstance(parent, (ast.BoolOp, ast.UnaryOp)) or (
            isinstance(parent, (ast.If, ast.IfExp, ast.While)) and parent.test is node
        )
        is_compared = isinstance(parent, ast.Compare) and any(
            isinstance(one, ast.Constant) and one.value is None for one in parent.comparators
        )
        self._need(Kind.SUPPORT)
        new = self.support.name
        if not is_asked and not is_compared:
            self.result.used.add(WORKERS)
            new = f"{new}.{WORKERS}"
        self.edits[self._offset(reference.nodes[0]), self._end(node)] = new
        self._left(reference)

    def _through_project(self, reference: Reference) -> bool:
        """Whether a name of Horovod is imported from another file of the project."""
        binding = reference.binding
        if binding is None:
            return True
        return binding.statement is not None and (binding.origin or "").partition(".")[0] != _HOROVOD

    def _of_handed(self) -> None:
        """What is asked of Horovod's module where that is handed on (`self.hvd.join()`), by what it is called."""
        known = {r.nodes[-1] for r in self.names.references if r.origin.partition(".")[0] == _HOROVOD}
        for node in ast.walk(self.names.tree) if self.handed.names else ():
            if isinstance(node, ast.Attribute) and node not in known and _last(node.value) in self.handed.names:
                if node.attr not in OF_HOROVOD:
                    what = f"`{ast.unparse(node)}` seems to be Horovod's, and is unsupported: {_BY_HAND}"
                    self._block(node, "TFM157", what)

    def _of_two(self, reference: Reference, name: str) -> None:
        """A name of TensorFlow 2, which 2.21 may have elsewhere, or no more."""
        found = home_of(name)
        is_later = found.kind is Kind.COMPAT and found.name.startswith(_V2) and not exists(name)
        if is_later:
            self._replace(reference, found, self._of_tensorflow(found.name))
            self._left(reference)
            return
        self._stay(reference)
        if name in REMOVED and not exists(name):
            message = f"`{name}` is gone in TensorFlow 2.21: {REMOVED[name]}"
            self._block(reference.nodes[0], "TFM156", message, reference.nodes[-1])

    def _stay(self, reference: Reference) -> None:
        if reference.binding is not None:
            self.stays[reference.binding] = self.stays.get(reference.binding, 0) + 1

    def _compat(self, found: Home, parts: list[str]) -> str:
        rest = parts[found.parts :]
        return ".".join([found.name, *rest])

    def _spell(self, reference: Reference, found: Home, new: str, name: str) -> None:
        """A symbol of `tf.compat.v1`: as it is where it is still called so."""
        old = rooted(reference.origin)
        head = canonical(reference.head_origin)
        covered = len(reference.nodes) - 1  # attributes that are spelled here
        if reference.head_origin == "tensorflow" and reference.origin.startswith(f"{_V1}.") and not self.for_two:
            self._replace(reference, found, self._of_tensorflow(found.name))  # its name is that of compat.v1 now
            self._stay(reference)
            return
        if new == old and self._head_lives(reference, head):
            self._stay(reference)
            return
        if home_of(head).kind is Kind.COMPAT and home_of(head).parts <= len(head.split(".")) and covered == 0:
            self._stay(reference)  # a symbol that was imported by itself: the import says where it is now
            return
        if home_of(head).kind is Kind.COMPAT and new.startswith(f"{home_of(head).name}.") and head != "tf":
            if old[len(head) :] == new[len(home_of(head).name) :]:
                self._stay(reference)
                return
        self._replace(reference, found, self._of_tensorflow(found.name))
        self._left(reference)

    def _head_lives(self, reference: Reference, head: str) -> bool:
        return home_of(head).kind is Kind.COMPAT and home_of(head).name == head

    def _of_tensorflow(self, name: str) -> str:
        """`tf.X` as this file spells it."""
        local = self.tensorflow
        if local is None:
            self.needs_tensorflow = True
            local = "tf"
        if self.for_two and name.startswith(_V2):
            return local + name.removeprefix(_V2.rstrip("."))
        prefix = f"{local}.compat.v1" if self.for_two and self._is_plain(local) else local
        return prefix + name.removeprefix("tf")

    def _is_plain(self, local: str) -> bool:
        return all(b.origin == "tensorflow" for b in self.names.imported() if b.name == local)

    def _elsewhere(self, reference: Reference, found: Home) -> None:
        """A symbol of the support file, or of tf_slim."""
        module = self._module(found.kind)
        head = home_of(canonical(reference.head_origin))
        if head.kind is found.kind:
            if head.name or not found.name:
                if len(reference.nodes) == 1 or (head.name and head.name == found.name):
                    self._stay(reference)  # imported, or aliased, by itself
                    return
            if not head.name and isinstance(reference.nodes[0], ast.Name) and reference.binding is not None:
                local = reference.nodes[0].id
                new = ".".join(part for part in (local, found.name) if part)
                self._stay(reference)
                self._replace(reference, found, new)
                return
        self._need(found.kind)
        self._replace(reference, found, ".".join(part for part in (module, found.name) if part))
        self._left(reference)

    def _module(self, kind: Kind) -> str:
        if kind is Kind.SUPPORT:
            return self.support.name
        slim = (b for b in self.names.imported() if b.scope is self.names.module and _is_slim(b.origin))
        return next((one.name for one in slim), "tf_slim")

    def _need(self, kind: Kind) -> None:
        if kind is Kind.SUPPORT:
            self.needs_support = True
        elif kind is Kind.SLIM:
            self.result.slim = True
            self.needs_slim |= self._module(kind) == "tf_slim"

    def _left(self, reference: Reference) -> None:
        if reference.binding is not None:
            self.gone[reference.binding] = self.gone.get(reference.binding, 0) + 1

    def _replace(self, reference: Reference, found: Home, new: str) -> None:
        """Spells the part of a dotted name that a symbol stands for anew."""
        depth = len(canonical(reference.origin).split(".")) - found.parts  # attributes that stay
        last = reference.nodes[max(0, len(reference.nodes) - 1 - depth)]
        start, end = self._offset(reference.nodes[0]), self._end(last)
        if self.raw[start:end].decode("utf-8") != new:
            self.edits[start, end] = new

    def _gone(self, reference: Reference, name: str) -> None:
        head = canonical(reference.head_origin)
        if len(reference.nodes) == 1 and head == name and reference.binding is not None:
            if reference.binding.statement is not None and not self._function_of(reference.nodes[0]):
                self._stay(reference)  # told at its import
                return
            if isinstance(reference.binding.node, ast.Assign):
                return  # told where the other name is given
        self._missing(reference, name, "TFM156", _gone_message(name))

    def _missing(self, reference: Reference, name: str, code: str, message: str) -> None:
        """A name that is gone stands in the way, at once or where the program is found to come to its function."""
        if not self._block_where_reached(reference.nodes[0], name, code, message, reference.nodes[-1]):
            self._stay(reference)
            return
        head = canonical(reference.head_origin)
        if name.startswith("tf.") and head != "tf" and home_of(head).kind is Kind.NONE:
            # What it is taken from is gone, too: nothing may be left of that where the file is imported.
            self._left(reference)
            start, end = self._offset(reference.nodes[0]), self._end(reference.nodes[-1])
            self.edits[start, end] = self._of_tensorflow(name)
        else:
            self._stay(reference)

    def _block_where_reached(
        self, node: ast.AST, name: str, code: str, message: str, end: ast.AST | None = None
    ) -> bool:
        """Tells of a name that is gone; whether it stands in a function, and blocks only who comes to that."""
        function = self._function_of(node)
        if function:
            self.result.missing.append(Missing(name, function, self._problem(node, code, message, end)))
        else:
            self._block(node, code, message, end)
        return bool(function)

    def _function_of(self, node: ast.AST) -> str:
        """The function whose body has a node.

        It is "" at the top level, and in a `try`: what catches the error of a name that is gone goes on without it.
        """
        child, parent = node, self.parents.get(node)
        while parent is not None:
            if isinstance(parent, ast.Try) and child in parent.body and parent.handlers:
                break
            if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)) and child in parent.body:
                return parent.name
            child, parent = parent, self.parents.get(parent)
        return ""

    def _is_namespace_of_uses(self, reference: Reference, name: str) -> bool:
        """Whether `layers = tf.contrib.layers` only gives a module another name: what is taken of it is looked at."""
        parent = self.parents.get(reference.nodes[-1])
        return (
            isinstance(parent, ast.Assign)
            and isinstance(parent.targets[0], ast.Name)
            and chain_of(parent.value) == reference.nodes
            and _may_be_module(name)
        )

    def _is_tried(self, reference: Reference, name: str) -> bool:
        """Whether a `try` asks for a name that TensorFlow 1.15 has not either, and does without it.

        What handles such a name is for still other versions.
        """
        node: ast.AST | None = reference.nodes[-1]
        while node is not None:
            parent = self.parents.get(node)
            tried = isinstance(parent, ast.Try) and node in parent.body and any(map(_catches_names, parent.handlers))
            if tried or (isinstance(node, ast.ExceptHandler) and _catches_names(node)):
                return not is_public(name) and not name.startswith(("tf.contrib", "tf.python", "tf.estimator"))
            node = parent
        return False

    def _is_switch(self, reference: Reference, name: str) -> bool:
        call = self.parents.get(reference.nodes[-1])
        if self.support.graphs:
            return False
        if name not in _SWITCHES_OFF or not isinstance(call, ast.Call) or call.func is not reference.nodes[-1]:
            return False
        statement = self.parents.get(call)
        if not isinstance(statement, ast.Expr):
            return False
        self._delete(statement)
        self._left(reference)
        self._remark(statement, "TFM168", f"`{name}` is dropped: the support file needs what it turns off")
        return True

    def _late_gradients(self) -> None:
        if self.support.graphs or self.for_two or any(canonical(r.origin) in RESOURCES for r in self.names.references):
            return
        meanings = {reference.nodes[-1]: canonical(reference.origin) for reference in self.names.references}
        for call in late_gradients(self.names.tree, meanings):
            message = (
                "these gradients wait for another update: TensorFlow 1 may have read the weights after it, "
                "now they read those that the loss was computed with; for the new weights, compute the loss "
                "after the update"
            )
            self._remark(call, "TFM184", message)

    def _sessions(self) -> None:
        """Functions with sessions of their own run in the default graph, as all code did."""
        if self.support.graphs:
            return
        meanings = {reference.nodes[-1]: canonical(reference.origin) for reference in self.names.references}
        supported = {r.nodes[-1] for r in self.names.references if home_of(canonical(r.origin)).kind is Kind.SUPPORT}
        sessions = own_sessions(self.names.tree, meanings, supported)
        in_driver = [own for own in sessions if own.function is None or own.runs_estimators or own.is_given]
        needing = needing_default_graph(self.names.tree, meanings, supported)
        self.result.eager = self._is_eager()
        for call in needing if not in_driver else ():
            message = (
                f"`{meanings[call.func]}` needs a graph, but TensorFlow 2 runs eagerly: put it into `with "
                "tf.get_default_graph().as_default():`"
            )
            self.result.of_graphs.append(self._problem(call.func, "TFM158", message))
        if self.result.eager:
            self.result.remarks += self.result.of_graphs
        elif needing or in_driver:
            self._need(Kind.SUPPORT)
            self.result.used.add(FOR_ALL)
            return
        for own in sessions:
            if own.function is None or own.runs_estimators or own.is_given:
                message = (
                    "this belongs to a session of the program, but TensorFlow 2 runs eagerly: put all of it "
                    "into `with tf.get_default_graph().as_default():`"
                )
                self._remark(own.place, "TFM158", message)
                continue
            self._need(Kind.SUPPORT)
            self.result.used.add(FUNCTION)
            start = self.starts[own.function.lineno - 1]
            indent = self.raw[start : start + own.function.col_offset].decode("utf-8")
            if not indent.strip():
                self.edits[start, start] = f"{indent}@{self.support.name}.{FUNCTION}\n"

    def _is_eager(self) -> bool:
        """Whether some of the file counts on operations that run at once, or on Keras models made where they do."""
        if self.for_two and any(map(self.by_driver, _plain(self.names))):
            return True
        for reference in self.names.references:
            name, node = canonical(reference.origin), reference.nodes[-1]
            if name in EAGER:
                return True
            if name.startswith(_MADE_BY_KERAS):
                parent = self.parents.get(node)
                called = isinstance(parent, ast.Call) and parent.func is node
                if not called or self.by_driver(name):
                    return True
        return False

    # -- imports -----------------------------------------------------------------------------------------------------

    def _import(self, statement: ast.Import | ast.ImportFrom) -> None:
        if isinstance(statement, ast.ImportFrom) and statement.level:
            return
        bindings = [b for b in self.names.imported() if b.statement is statement]
        lines: list[tuple[str, str, str]] = []  # ("import" or "from", module, name)
        changed = False
        for binding in bindings:
            alias = binding.node
            assert isinstance(alias, ast.alias)
            new = self._imported(binding, alias, statement)
            old = _line(statement, alias)
            changed |= new != old
            if new is not None:
                lines.append(new)
        if not changed:
            return
        taken: list[str] = []
        if self.support.inside:
            lines, taken = self._taken(lines)
        if not lines and not taken:
            parent = self.parents[statement]
            self._delete(parent if isinstance(parent, ast.Try) and _only_imports(parent) else statement)
            return
        start, end = self._offset(statement), self._end(statement)
        modules = {module for _, module, _ in lines}
        if isinstance(statement, ast.ImportFrom) and len(modules) == 1 and len(lines) == len(statement.names):
            kept = [name for _, _, name in lines] == [_line(statement, alias)[2] for alias in statement.names]
            if kept and {kind for kind, _, _ in lines} == {"from"}:
                assert statement.module is not None
                segment = self.raw[start:end].decode("utf-8")
                self.edits[start, end] = segment.replace(statement.module, next(iter(modules)), 1)
                return
        self.edits[start, end] = self._joined([*_grouped(lines), *taken], statement)

    def _taken(self, lines: Sequence[tuple[str, str, str]]) -> tuple[list[tuple[str, str, str]], list[str]]:
        """Import statements without those of the support file, and what gives the same names from its section."""
        kept, taken = [], []
        for kind, module, name in lines:
            original, _, local = (name if kind == "from" else module).partition(" as ")
            if kind == "from" and module == self.support.name:
                self.needs_support = True
                taken.append(f"{local or original} = {self.support.name}.{original}")
            elif kind == "import" and original == self.support.name:
                self.needs_support = True
                taken += [f"{local} = {original}"] if local else []
            else:
                kept.append((kind, module, name))
        return kept, taken

    def _joined(self, lines: Sequence[str], statement: ast.stmt) -> str:
        indent = " " * statement.col_offset
        before = self.raw[self.starts[statement.lineno - 1] : self._offset(statement)].decode("utf-8")
        alone = not before.strip()
        return (f"\n{before}" if alone else "; " if before else f"\n{indent}").join(lines)

    def _imported(
        self, binding: Binding, alias: ast.alias, statement: ast.Import | ast.ImportFrom
    ) -> tuple[str, str, str] | None:
        """The import of one name as it becomes; None where nothing is left that needs it."""
        old = _line(statement, alias)
        origin = alias.name if isinstance(statement, ast.Import) else f"{statement.module}.{alias.name}"
        local = alias.asname or (alias.name.partition(".")[0] if isinstance(statement, ast.Import) else alias.name)
        name = canonical(origin)
        if not _is_tensorflow(name):
            found = home_of(name)
            if found.kind is Kind.SUPPORT and isinstance(statement, ast.ImportFrom):
                return self._of_support(found, alias.asname or alias.name)
            if origin == HOROVOD and binding.scope is self.names.module and binding.name in self.handed.exported:
                return self._of_support(Home(Kind.SUPPORT, WORKERS, 2), local)
            if origin.partition(".")[0] in (_HOROVOD, _ESTIMATORS) and not self.stays.get(binding, 0):
                return None
            return old
        if origin == "tensorflow" or origin == _V1 or (isinstance(statement, ast.Import) and not alias.asname):
            return self._root(binding, alias, old, local, name)
        found = home_of(name)
        if self.for_two and not origin.startswith(_V1) and found.kind is not Kind.SUPPORT:
            return old
        if found.kind is Kind.PRIVATE and found.name != rooted(origin):  # the module has another name now
            return self._of_compat(statement, f"tensorflow{found.name.removeprefix('tf')}", local)
        if found.kind is Kind.PRIVATE or (found.kind is Kind.COMPAT and _private_stays(origin)):
            return old
        if found.kind is Kind.SUPPORT:
            return self._of_support(found, local)
        uses = self.stays.get(binding, 0)
        if found.kind is Kind.SLIM:
            if not uses and self.gone.get(binding):
                return None
            self.result.slim = True
            if not found.name:
                return "import", f"tf_slim as {local}" if local != "tf_slim" else "tf_slim", ""
            module, _, last = f"tf_slim.{found.name}".rpartition(".")
            return "from", module, last if last == local else f"{last} as {local}"
        if found.kind is Kind.NONE:
            if uses == 0 and self.gone.get(binding):
                return None
            if uses == 0 and not _is_used(self.names, binding):
                return None
            if not _may_be_module(name) or uses == 0 or not self.result.blocking:
                self._block(alias, "TFM156", _gone_message(name))
            return old
        if not uses and self.gone.get(binding):
            return None
        return self._of_compat(statement, found.name, local)

    def _of_compat(self, statement: ast.Import | ast.ImportFrom, name: str, local: str) -> tuple[str, str, str]:
        base = "tensorflow" if f"{name}.".startswith(_V2) else _V1
        public = base + name.removeprefix("tf") if name.startswith("tf.") else name
        if isinstance(statement, ast.Import):
            return "import", f"{public} as {local}", ""
        module, _, last = public.rpartition(".")
        return "from", module, last if last == local else f"{last} as {local}"

    def _of_support(self, found: Home, local: str) -> tuple[str, str, str]:
        if found.name:
            self.result.used.add(found.name)
            name = found.name if found.name == local else f"{found.name} as {local}"
            return "from", self.support.module, name
        name = self.support.name if self.support.name == local else f"{self.support.name} as {local}"
        return ("from", self.support.of, name) if self.support.of else ("import", name, "")

    def _root(
        self, binding: Binding, alias: ast.alias, old: tuple[str, str, str], local: str, name: str
    ) -> tuple[str, str, str] | None:
        """`import tensorflow`, under any name, or `import tensorflow.contrib.x`, which gives that name too."""
        uses = self.stays.get(binding, 0) + (binding.scope is self.names.module and local in self.stars.taken)
        if not uses and self.gone.get(binding) and not self._is_tensorflow_needed(local):
            return None
        if alias.name not in ("tensorflow", _V1) and old[0] == "import" and home_of(name).kind in _ELSEWHERE:
            # A module that is no more: only `tensorflow` itself is left of the import.
            if not uses and not self._is_tensorflow_needed(local):
                return None
            return "import", "tensorflow" if self.for_two else f"{_V1} as {local}", ""
        if self.for_two or alias.name == _V1 or old[0] == "from":
            return old
        if alias.name != "tensorflow" and home_of(name).kind is Kind.PRIVATE:
            return old
        return "import", f"{_V1} as {local}", ""

    def _is_tensorflow_needed(self, local: str) -> bool:
        """Whether new spellings begin with a name."""
        return any(text.startswith(f"{local}.") for text in self.edits.values())

    def _aliases(self) -> None:
        """`contrib = tf.contrib`: gone where all that is taken of it is spelled otherwise now."""
        for binding in self.names.bindings:
            node = binding.node
            if binding.chain is None or not isinstance(node, ast.Assign):
                continue
            reference = next((r for r in self.names.references if r.nodes == chain_of(node.value)), None)
            name = canonical(reference.origin) if reference is not None else ""
            if not _is_tensorflow(name) or home_of(name).kind is not Kind.NONE:
                continue
            used = self.gone.get(binding) or binding.name in self.stars.taken
            unknown = not self.support.runs and not used  # what imports the file is not here, and may ask for it
            if not self.stays.get(binding, 0) and _may_be_module(name) and not unknown:
                if binding.scope is self.names.module and binding.name in self.stars.taken:
                    self.edits[self._offset(node.value), self._end(node.value)] = "None"  # others import it
                else:
                    self._delete(node)
            elif (binding in self.stays or unknown) and not self.result.blocking:
                self._block(node.value, "TFM156", _gone_message(name))

    def _add_imports(self) -> None:
        lines = []
        if self.support.graphs and (self._imports_tensorflow() or self.support.alone):
            self.needs_support |= self.support.needed
            if self.support.runs:
                self._turn_off()
        elif self.first and self._imports_tensorflow():
            self.needs_support = True
        if self.needs_support:
            if not any(one.endswith(self.support.line) for one in self._import_lines()):
                lines.append(self.support.line + COMMENT)
        if self.needs_tensorflow:
            lines.append(f"import {_V1} as tf")
        if self.turns_off:
            lines += [f"tf.{switch}()" for switch in self._switches()]
        if self.needs_slim and not any(b.origin == "tf_slim" for b in self.names.imported()):
            lines.append("import tf_slim")
        if not lines:
            return
        place = self._place()
        if place is None:
            start = 0
        else:
            start = self.starts[place.lineno - 1]
        new = "".join(f"{line}\n" for line in lines)
        at = (start, start)
        self.edits[at] = new + self.edits.get(at, "")

    def _turn_off(self) -> None:
        """Turns off what TensorFlow 2 does instead of building one default graph, right behind its import."""
        if self.for_two or self.result.switched:
            return
        local = self.tensorflow
        imported = {b.statement for b in self.names.imported() if b.name == local and b.scope is self.names.module}
        imported -= self.deleted
        body = self.names.tree.body
        found = next((one for one in body if local and any(inner in imported for inner in ast.walk(one))), None)
        if found is None:
            self.needs_tensorflow = self.turns_off = True
            return
        end = self._line_end(found)
        text = "".join(f"{local}.{switch}()\n" for switch in self._switches())
        self.edits[end, end] = text if self.raw[:end].endswith(b"\n") else f"\n{text}"

    def _switches(self) -> tuple[str, ...]:
        """What turns off TensorFlow 2, or all of it but that operations run at once."""
        return ("disable_tensor_equality", "disable_v2_tensorshape") if self.support.eager else ("disable_v2_behavior",)

    def _line_end(self, statement: ast.stmt) -> int:
        """Where the line behind a statement begins."""
        return min(self.starts[statement.end_lineno or statement.lineno], len(self.raw))

    def _import_lines(self) -> list[str]:
        return [
            self.raw[self._offset(n) : self._end(n)].decode("utf-8")
            for n in self.names.tree.body
            if isinstance(n, (ast.Import, ast.ImportFrom))
        ]

    def _imports_tensorflow(self) -> bool:
        return any(_is_tensorflow(canonical(b.origin or "")) for b in self.names.imported())

    def _place(self) -> ast.stmt | None:
        """The top-level statement before which imports are added: the first that may import TensorFlow."""
        body = self.names.tree.body
        after = 0
        for index, node in enumerate(body):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and index == 0:
                after = 1
            elif isinstance(node, ast.ImportFrom) and node.module == "__future__":
                after = index + 1
            elif isinstance(node, (ast.Import, ast.ImportFrom)) and _is_harmless(node):
                continue
            else:
                imports = [one for one in ast.walk(node) if isinstance(one, (ast.Import, ast.ImportFrom))]
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                    break
                if imports and not all(_is_harmless(one) for one in imports):
                    return node
        return body[after] if after < len(body) else None

    # -- libraries -----------------------------------------------------------------------------------------------------

    def _libraries(self) -> None:
        told: set[tuple[str, str]] = set()
        for binding in self.names.imported():
            package = (binding.origin or "").partition(".")[0]
            if package not in LIBRARIES:
                continue
            assert binding.statement is not None
            place = package, self._function_of(binding.statement)
            if place not in told:
                told.add(place)
                message = f"`{package}` needs TensorFlow 1: {LIBRARIES[package]}"
                self._block_where_reached(binding.statement, package, "TFM157", message)

    def _of_library(self, reference: Reference) -> None:
        if reference.origin in OF_HUB:
            message = f"`{reference.origin}` needs TensorFlow 1: {OF_HUB[reference.origin]}"
            self._missing(reference, reference.origin, "TFM157", message)

    # -- texts ---------------------------------------------------------------------------------------------------------

    def _offset(self, node: ast.AST) -> int:
        return self.starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined,no-any-return]

    def _end(self, node: ast.AST) -> int:
        return self.starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined,no-any-return]

    def _delete(self, statement: ast.stmt) -> None:
        """Takes a statement out: its line where it stands alone there, and `pass` where its block would be empty."""
        self.deleted.add(statement)
        start, end = self._offset(statement), self._end(statement)
        first, last = self.starts[statement.lineno - 1], self.starts[(statement.end_lineno or 0)]
        parent = self.parents[statement]
        block = next(
            (
                body
                for field_name in ("body", "orelse", "finalbody")
                if isinstance(body := getattr(parent, field_name, None), list) and statement in body
            ),
            [],
        )
        left = [one for one in block if (self._offset(one), self._end(one)) not in self.edits and one is not statement]
        alone = not self.raw[first:start].strip() and not self.raw[end:last].partition(b"#")[0].strip()
        if not left and not isinstance(parent, ast.Module):
            self.edits[start, end] = "pass"
        elif alone:
            self.edits[first, min(last, len(self.raw))] = ""
        else:
            semicolon = self.raw.find(b";", end, last)
            if semicolon >= 0:
                while semicolon + 1 < last and self.raw[semicolon + 1 : semicolon + 2] == b" ":
                    semicolon += 1
                self.edits[start, semicolon + 1] = ""
            else:
                before = self.raw.rfind(b";", first, start)
                self.edits[before if before >= 0 else start, end] = ""

    def _edited(self) -> str:
        raw = self.raw
        for (start, end), new in sorted(self.edits.items(), reverse=True):
            raw = raw[:start] + new.encode("utf-8") + raw[end:]
        return raw.decode("utf-8")

    def _problem(self, node: ast.AST, code: str, message: str, end: ast.AST | None = None) -> Problem:
        line, column = node.lineno, node.col_offset  # type: ignore[attr-defined]
        before = self.raw[self.starts[line - 1] : self.starts[line - 1] + column].decode("utf-8")
        return Problem(line, len(before) + 1, code, message)

    def _block(self, node: ast.AST, code: str, message: str, end: ast.AST | None = None) -> None:
        problem = self._problem(node, code, message, end)
        if problem not in self.result.blocking:
            self.result.blocking.append(problem)

    def _remark(self, node: ast.AST, code: str, message: str) -> None:
        self.result.remarks.append(self._problem(node, code, message))


def is_star_of_tensorflow(star: ast.ImportFrom) -> bool:
    """Whether an `import *` is of a module of TensorFlow."""
    return star.level == 0 and _is_tensorflow(canonical(star.module or ""))


def read_with_stars(tree: ast.Module, given: Mapping[str, str]) -> tuple[Names, dict[str, str]]:
    """What the names of a file mean, and those of them that an `import *` from a module of TensorFlow gives."""
    names = read_names(tree, given)
    starred = names_of_stars(names.stars)
    return (read_names(tree, {**starred, **given}) if starred else names), starred


def names_of_stars(stars: Iterable[ast.ImportFrom]) -> dict[str, str]:
    """Names that each `import *` from a module of TensorFlow gives, and what they mean: those that have a home."""
    found: dict[str, str] = {}
    for node in stars:
        if is_star_of_tensorflow(node):
            module = node.module or ""
            behind = aliases.public_names().get(rooted(module), {})
            public = canonical(module)
            inside = (name.rpartition(".") for name in public_names())
            modules = [last for parent, _, last in inside if parent == public]
            every = {name: f"{module}.{name}" for name in (*behind, *modules, *public_names().get(public, ()))}
            every.update({name: f"{module}.{name}" for name in aliases.beside(rooted(module))})
            for name, origin in every.items():
                if home_of(canonical(origin)).kind in (Kind.COMPAT, Kind.SUPPORT, Kind.SLIM):
                    found[name] = origin
    return {name: origin for name, origin in found.items() if not name.startswith("_")}


def is_for_two(text: str, names: Names) -> bool:
    """Whether a plain `tf.X` means what TensorFlow 2 calls so."""
    imported = list(names.imported())
    heads = {b.name for b in imported if b.origin == "tensorflow"}
    if not heads:
        return False
    compat = {b.name for b in imported if b.origin == _V1}
    if "compat.v1" in text and written_for_two(text, heads, compat):
        return True
    fates = [fate(name) for name in _plain(names)]
    of_one = any(isinstance(one, (Compat, Renamed)) for one in fates)
    return not of_one and any(isinstance(one, New) for one in fates)


def _plain(names: Names) -> set[str]:
    """The symbols of TensorFlow that a file reads as `tf.X`, but for Estimators, tf.contrib and tf.compat."""
    return {
        name
        for reference in names.references
        if reference.head_origin == "tensorflow"
        and (name := canonical(reference.origin)) != "tf"
        and not reference.origin.startswith(_V1)
        and not name.startswith(("tf.estimator", "tf.contrib", "tf.compat"))
    }


def _line(statement: ast.Import | ast.ImportFrom, alias: ast.alias) -> tuple[str, str, str]:
    name = f"{alias.name} as {alias.asname}" if alias.asname else alias.name
    return ("import", name, "") if isinstance(statement, ast.Import) else ("from", statement.module or "", name)


def _grouped(lines: Sequence[tuple[str, str, str]]) -> list[str]:
    """Import statements, the names of one module together."""
    found: dict[tuple[str, str], list[str]] = {}
    for kind, module, name in lines:
        key = (kind, module if kind == "from" else "")
        found.setdefault(key, []).append(name if kind == "from" else module)
    return [
        f"from {module} import {', '.join(names)}" if kind == "from" else f"import {', '.join(names)}"
        for (kind, module), names in found.items()
    ]


def _is_tensorflow(name: str) -> bool:
    return name == "tf" or name.startswith(("tf.", "tensorflow_estimator."))


def _is_slim(origin: str | None) -> bool:
    """Whether what is imported becomes tf_slim itself."""
    found = home_of(canonical(origin or "")) if (origin or "").startswith("tensorflow.contrib.") else None
    return found is not None and found.kind is Kind.SLIM and not found.name


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_only_one(name: str) -> bool:
    return name.startswith(("tf.estimator", "tf.contrib", "tensorflow_estimator.", "tf.keras.estimator")) or any(
        name == one or name.startswith(f"{one}.") for one in NAMESPACES
    )


def _may_be_module(name: str) -> bool:
    """Whether a name of tf.contrib, or a private one, is that of a module: these are written small."""
    return (
        name.startswith(
            ("tf.contrib", "tf.python", "tf.estimator", "tf.keras.estimator", "tf.examples", "tensorflow_estimator.")
        )
        and name.rpartition(".")[2].islower()
    )


def _private_stays(origin: str) -> bool:
    """Whether a name is spelled as one of tensorflow.python, and TensorFlow 2.21 still has it there."""
    if not origin.startswith("tensorflow.python."):
        return False
    module, _, name = rooted(origin).rpartition(".")
    if name in aliases.beside(module):  # of an earlier version: 1.15 has it elsewhere, and so has 2.21
        return False
    return home_of("tf" + origin.removeprefix("tensorflow")).kind is Kind.PRIVATE


def _is_used(names: Names, binding: Binding) -> bool:
    return any(reference.binding is binding for reference in names.references)


def _only_imports(node: ast.Try) -> bool:
    """Whether a `try` holds one import, and its handlers only say that there is no such module."""

    def tells(one: ast.stmt) -> bool:
        if isinstance(one, ast.Assign):
            return isinstance(one.value, ast.Constant) and not one.value.value
        return isinstance(one, (ast.Pass, ast.Raise)) or (isinstance(one, ast.Expr) and isinstance(one.value, ast.Call))

    handled = [one for handler in node.handlers for one in handler.body]
    return len(node.body) == 1 and not node.orelse and not node.finalbody and all(map(tells, handled))


def _catches_names(handler: ast.ExceptHandler) -> bool:
    """Whether a handler is for modules that lack a name."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = [one.id if isinstance(one, ast.Name) else "" for one in kinds if one is not None]
    return handler.type is None or any(one in ("AttributeError", "Exception") for one in names)


def _is_harmless(node: ast.Import | ast.ImportFrom) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.level == 0 and (node.module or "").partition(".")[0] in _HARMLESS
    return all(alias.name.partition(".")[0] in _HARMLESS for alias in node.names)


def _gone_message(name: str) -> str:
    if name in REMOVED:
        return f"`{name}` is gone in TensorFlow 2.21: {REMOVED[name]}"
    public = name if name.startswith("tensorflow_estimator") else name.replace("tf.python.", "tensorflow.python.")
    if "BoostedTrees" in name or "boosted_trees" in name:
        return (
            f"`{public}` is gone from TensorFlow 2.21: train boosted trees with another library, such as TF "
            "Decision Forests"
        )
    unknown = name.startswith("tf.estimator.") and name not in SUPPLIED and not name.endswith("V2")
    near = difflib.get_close_matches(name, SUPPLIED, 1, 0.94) if unknown else []
    if near:  # of this module all names are known
        return f"`{public}` does not exist in TensorFlow 1.15: did you mean `{near[0]}`?"
    if not is_public(name):
        return f"`{public}` is gone from TensorFlow 2.21 without a successor: replace it by hand"
    told = advice(name)
    package = f"; `pip install {told.package}`" if told.package else ""
    return f"`{public}` is gone from TensorFlow 2.21: replace it with {told.text}{package}"
