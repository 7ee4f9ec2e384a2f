"""Functions that make a session of their own: they need the default graph, which TensorFlow 2 does not have by itself.

`with tf.Session() as session:` makes its graph the default one, so what is built in it stays right. What is built
before it, or for a session that is made otherwise, does not.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Union

from migrator.bridge.table import is_maker, is_trainer
from migrator.names.references import own_nodes
from migrator.syntax import walked

FUNCTION = "in_default_graph"
#: Lets all of the program be in the default graph.
FOR_ALL = "build_in_default_graph"
_SESSIONS = ("tf.Session", "tf.InteractiveSession")
# They run what is in the default graph, and do not make one.
_MONITORED = ("tf.train.MonitoredTrainingSession", "tf.train.MonitoredSession", "tf.train.SingularMonitoredSession")
# Queues and what reads from them.
_QUEUES = (
    *(f"tf.train.{kind}_input_producer" for kind in ("string", "slice", "range")),
    *("tf.train.input_producer", "tf.train.limit_epochs", "tf.train.batch", "tf.train.batch_join"),
    *("tf.train.shuffle_batch", "tf.train.shuffle_batch_join", "tf.train.start_queue_runners"),
    *("tf.TFRecordReader", "tf.WholeFileReader", "tf.TextLineReader", "tf.IdentityReader"),
    "tf.FixedLengthRecordReader",
)
# What fails, or means something else, where operations are run at once.
_OF_GRAPHS = (
    *("tf.placeholder", "tf.placeholder_with_default", "tf.train.Saver", "tf.train.import_meta_graph"),
    *("tf.data.make_initializable_iterator", "tf.train.Supervisor", "tf.train.MonitoredTrainingSession"),
    *("tf.train.MonitoredSession", "tf.train.SingularMonitoredSession", "tf.get_variable", "tf.global_variables"),
    *_QUEUES,
)
# What has to be made in a graph, wherever it is made.
_NEVER_EAGER = ("tf.summary.FileWriter", "tf.feature_column.shared_embedding_columns")
_NEEDS_GRAPH = frozenset(
    (*_SESSIONS, *_MONITORED, *_OF_GRAPHS, *_NEVER_EAGER, "tf.sparse_placeholder", "tf.global_variables_initializer")
)
_OF_ESTIMATORS = ("train", "evaluate", "predict", "export_savedmodel", "export_saved_model", "train_and_evaluate")

#: What makes a session of a program's own.
MAKERS = (
    *(*_SESSIONS, *_MONITORED, "tf.train.Supervisor", "tf.train.SessionManager"),
    *("tf.contrib.slim.learning.train", "tf.contrib.training.train", "tf.contrib.slim.evaluation.evaluate_once"),
    *("tf.contrib.slim.evaluation.evaluation_loop", "tf.contrib.training.evaluate_once"),
)

Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]


@dataclass(frozen=True)
class OwnSession:
    """A function (None: the top level of the file) whose session needs the default graph, and where that shows.

    `runs_estimators` says that it cannot run in one graph as a whole, because Estimators make graphs of their own, and
    `is_given` that it runs what is made elsewhere.
    """

    function: Function | None
    place: ast.expr
    runs_estimators: bool
    is_given: bool = False


def own_sessions(
    tree: ast.Module, meanings: Mapping[ast.expr, str], supported: Collection[ast.expr]
) -> list[OwnSession]:
    """The functions of a file that make sessions. `meanings` are canonical names, `supported` the Estimators' names."""
    found: list[OwnSession] = []
    if not _has_one_of(meanings, (*_SESSIONS, *_MONITORED)):
        return found
    functions: list[Function | None] = [n for n in walked(tree) if isinstance(n, ast.FunctionDef)]
    imported = {
        (alias.asname or alias.name).partition(".")[0]
        for node in walked(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    for function in [None, *functions]:
        if function is not None and any(_last(one) == FUNCTION for one in function.decorator_list):
            continue
        nodes = list(own_nodes(tree if function is None else function))
        calls = [node for node in nodes if isinstance(node, ast.Call)]
        inside = {
            one for node in nodes if isinstance(node, ast.With) and _enters(node, meanings) for one in _below(node)
        }
        contexts = {item.context_expr for node in nodes if isinstance(node, ast.With) for item in node.items}
        sessions = [call for call in calls if meanings.get(call.func) in _SESSIONS and not _has_graph(call)]
        if not sessions and not any(meanings.get(call.func) in _MONITORED for call in calls):
            continue
        loose = [call for call in sessions if call not in contexts and call not in inside]
        outside = [call for call in calls if meanings.get(call.func) in _OF_GRAPHS and call not in inside]
        brought = {name for node in nodes if isinstance(node, ast.With) for name in _brought(node, meanings)}
        brought |= _run(nodes) if loose and function is not None else set()
        brought -= imported
        if not loose and not outside and not brought:
            continue
        is_running = any(
            isinstance(call.func, ast.Attribute) and call.func.attr in _OF_ESTIMATORS and call.func not in meanings
            for call in calls
        ) or any(node in supported for node in nodes)
        generator = any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in nodes)
        place = (loose or outside or sessions)[0].func
        given = function is not None and not brought <= _made_in(function)
        found.append(OwnSession(function, place, is_running or generator, given))
    return found


def _brought(node: ast.With, meanings: Mapping[ast.expr, str]) -> set[str]:
    """The names of what the session of a `with` runs, and the `with` does not make."""
    made = [item.context_expr for item in node.items if isinstance(item.context_expr, ast.Call)]
    if not any(meanings.get(call.func) in _SESSIONS and not _has_graph(call) for call in made):
        return set()
    if any(isinstance(call.func, ast.Attribute) and call.func.attr == "as_default" for call in made):
        return set()  # in a graph that others have, too
    names = {
        part.id
        for item in node.items
        for part in walked(item.optional_vars or item.context_expr)
        if isinstance(part, ast.Name)
    }
    below = list(_below(node))
    return _run(below, names) - _bound(below)


def _run(nodes: Collection[ast.AST], sessions: Collection[str] = ()) -> set[str]:
    """The names of what `session.run(...)` and `tensor.eval()` compute, and of what functions get with a session."""
    runs = {
        target.id
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute) and node.value.attr == "run"
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found: set[str] = set()
    for call in nodes:
        if not isinstance(call, ast.Call):
            continue
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        asked = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if asked == "eval" and isinstance(call.func, ast.Attribute):
            run = [call.func.value]
        elif asked == "run" or name in runs:
            run = [*call.args[:1], *(k.value for k in call.keywords if k.arg in ("fetches", None))]
        elif name and any(isinstance(one, ast.Name) and one.id in sessions for one in given):
            run = [one for one in given if not (isinstance(one, ast.Name) and one.id in sessions)]
        else:
            continue
        parts = [part for one in run for part in walked(one)]
        called = {part.func for part in parts if isinstance(part, ast.Call)}
        found |= {part.id for part in parts if isinstance(part, ast.Name) and part not in called}
    return found


def _bound(nodes: Collection[ast.AST]) -> set[str]:
    """The names that some code gives values, but for second names of what is there already."""
    again = {
        part
        for node in nodes
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(node.value, (ast.Name, ast.Attribute))
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        for part in walked(target)
    }
    stored = [one for one in nodes if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)]
    return {one.id for one in stored if one not in again} | {one.arg for one in nodes if isinstance(one, ast.arg)}


def _made_in(function: Function) -> set[str]:
    """The names that a function gives values which nothing that it is given is a part of."""
    given = {one.arg for one in walked(function.args) if isinstance(one, ast.arg)}
    found: set[str] = set()
    for node in own_nodes(function):
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            called = {part.func for part in walked(node.value) if isinstance(part, ast.Call)}
            read = {part.id for part in walked(node.value) if isinstance(part, ast.Name) and part not in called}
            if not read & given:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                found |= _bound([part for target in targets for part in walked(target)])
    return found - given


def needing_default_graph(
    tree: ast.Module, meanings: Mapping[ast.expr, str], supported: Collection[ast.expr]
) -> list[ast.Call]:
    """What the driver of a program makes that TensorFlow 2 makes in a graph only.

    The driver is the top level, the functions that use Estimators, `main`, and the functions that these call by name.
    """
    if not _has_one_of(meanings, _NEEDS_GRAPH):
        return []
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    blocks: list[ast.AST] = [tree]
    everything = walked(tree)
    for node in everything:
        if isinstance(node, ast.FunctionDef) and not _is_decorated(node):
            nodes = list(own_nodes(node))
            if node.name == "main" or any(_makes_or_runs(one, meanings, supported) for one in nodes):
                blocks.append(node)
    found: list[ast.Call] = []
    for block in blocks:  # which grows
        for node in own_nodes(block):
            if not isinstance(node, ast.Call):
                continue
            called = functions.get(node.func.id) if isinstance(node.func, ast.Name) else None
            if called is not None and called not in blocks and not _is_decorated(called):
                blocks.append(called)
            if meanings.get(node.func) in _NEEDS_GRAPH:
                found.append(node)
    blocks_entered = [node for node in everything if isinstance(node, ast.With)]
    inside = {one for node in blocks_entered if _enters(node, meanings) for one in _below(node)}
    entered = {item.context_expr for node in blocks_entered for item in node.items}
    found = [one for one in found if one not in inside and one not in entered]
    found = [one for one in found if meanings[one.func] not in _SESSIONS or not _has_graph(one)]
    for node in everything:
        if isinstance(node, ast.Call) and meanings.get(node.func) in _NEVER_EAGER and node not in inside:
            found.append(node)
    return list(dict.fromkeys(found))


def _has_one_of(meanings: Mapping[ast.expr, str], names: Collection[str]) -> bool:
    """Whether anything in a file means one of some names."""
    return not set(names).isdisjoint(meanings.values())


def _makes_or_runs(node: ast.AST, meanings: Mapping[ast.expr, str], supported: Collection[ast.expr]) -> bool:
    """Whether a node is a call that makes or runs an Estimator. A model_fn makes only specs."""
    if not isinstance(node, ast.Call):
        return False
    if node.func in supported:
        return is_maker(meanings[node.func]) or is_trainer(meanings[node.func])
    return isinstance(node.func, ast.Attribute) and node.func.attr in _OF_ESTIMATORS and node.func not in meanings


def _is_decorated(function: Function) -> bool:
    return any(_last(one) == FUNCTION for one in function.decorator_list)


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _below(node: ast.With) -> Iterator[ast.AST]:
    for statement in node.body:
        yield from walked(statement)


def _enters(node: ast.With, meanings: Mapping[ast.expr, str]) -> bool:
    """Whether a `with` makes a graph the default one."""
    for item in node.items:
        call = item.context_expr
        if isinstance(call, ast.Call):
            if meanings.get(call.func) in _SESSIONS:
                return True
            if isinstance(call.func, ast.Attribute) and call.func.attr == "as_default":
                return True
    return False


def _has_graph(call: ast.Call) -> bool:
    return len(call.args) > 1 or any(keyword.arg == "graph" for keyword in call.keywords)
