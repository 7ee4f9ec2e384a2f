"""Sessions, devices and graphs that stand around what drives an Estimator, which makes all of them itself.

`with tf.Session() as sess: estimator.train(...)` runs nothing in that session, and `with tf.device("/cpu:0"):` places
nothing: an Estimator makes a graph and a session of its own in each call, for which neither counts. Where nothing else
is done inside, the program without them is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import libcst as cst

from migrator.names.bindings import bound_in, dotted
from migrator.program.calls import calls_in, nodes_in
from migrator.program.folding import lines_instead
from migrator.program.parsed import Blocked, ParsedFile, Remover, name_nodes, removed_by
from migrator.program.plain import gpus_of
from migrator.program.plain_lines import drives
from migrator.program.scopes import path_to
from migrator.rules.sessions import INITIALIZERS

#: What makes a session.
SESSIONS = ("tf.Session", "tf.InteractiveSession")
_SETTINGS = ("tf.ConfigProto", "tf.GPUOptions", "tf.GraphOptions", "tf.OptimizerOptions", "tf.RunOptions")
_GRAPH = "tf.Graph"
_DEVICE = "tf.device"
#: What works in the session that a `with` makes the default one, without a mention of it.
_IMPLIED = ("eval", "get_default_session", "get_session")


def without_surroundings(file: ParsedFile) -> tuple[ParsedFile, list[Blocked]]:
    """The file with Estimators that stand by themselves, and a remark for each thing that was left out."""
    if "stimator" not in file.bare or not any(word in file.bare for word in ("Session(", "device(", "as_default(")):
        return file, []
    found: list[Blocked] = []
    while True:  # what stands in a function that is called inside of another such statement goes first
        file, gone = removed_by(_Remover(file), file)
        found += gone
        if not gone:
            return file, found


class _Remover(Remover):
    """Puts what stands inside in the place of `with` statements that do nothing to it."""

    def __init__(self, file: ParsedFile) -> None:
        super().__init__()
        self.file = file
        self._idle: set[cst.With] = set()
        self._unneeded: set[cst.CSTNode] = set()  # lines that initialize what is not there, or make settings
        for node in [one for one in nodes_in(file.module) if isinstance(one, cst.With)]:
            self._read(node)

    def leave_With(self, original_node: cst.With, updated_node: cst.With) -> Any:
        if original_node not in self._idle or not isinstance(updated_node.body, cst.IndentedBlock):
            return updated_node
        shown = self.file.code(original_node.items[0].item)
        message = (
            f"`{shown}` does not affect an Estimator, which creates its own graph and session: it "
            f"is dropped{gpus_of(self.file) if 'Session' in shown else ''}"
        )
        self.gone.append(Blocked("TFM124", original_node, message))
        return lines_instead(updated_node.body.body, updated_node.leading_lines)

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> Any:
        return cst.RemoveFromParent() if original_node in self._unneeded else updated_node

    def _read(self, node: cst.With) -> None:
        body = node.body
        if not isinstance(body, cst.IndentedBlock) or node.asynchronous is not None:
            return
        scope = self._scope(node)
        runs: list[cst.BaseStatement] = []
        kinds = [self._kind(item.item, scope) for item in node.items]
        for item, kind in zip(node.items, kinds):
            name = item.asname.name if item.asname is not None else None
            if kind is None or not (name is None or isinstance(name, cst.Name)):
                return
            if kind == "session" and asks_default_session(self.file):
                return
            if isinstance(name, cst.Name):
                runs += self._initializations(body, name.value) if kind == "session" else []
                if not self._is_unread(node, name, runs):
                    return
        inside = [line for line in body.body if line not in runs]
        # A session in which nothing runs leaves the graph the one that it is, whatever operations are made in it.
        alone = any(kind != "session" or _has_graph(item.item) for item, kind in zip(node.items, kinds))
        if not inside or not drives(self.file, cst.IndentedBlock(inside), alone):
            return
        self._idle.add(node)
        self._unneeded |= set(runs)
        for item in node.items:
            self._unneeded |= set(lines_of_settings(self.file, item.item, scope))

    def _scope(self, node: cst.CSTNode) -> cst.CSTNode:
        around = [one for one in path_to(self.file.module, node) if isinstance(one, cst.FunctionDef)]
        return around[-1] if around else self.file.module

    def _kind(self, node: cst.BaseExpression, scope: cst.CSTNode) -> str | None:
        """What a context is: a "session" of settings alone, a "device", or a "graph" that is new; None for another."""
        if not isinstance(node, cst.Call):
            return None
        name = self.file.imports.tensorflow(node.func)
        if name in SESSIONS:
            return "session" if all(is_setting(self.file, arg) for arg in node.args) else None
        if name == _DEVICE:
            return "device" if not any(calls_in(arg) for arg in node.args) else None
        if isinstance(node.func, cst.Attribute) and node.func.attr.value == "as_default" and not node.args:
            return "graph" if self._is_graph(node.func.value, scope) else None
        return None

    def _is_graph(self, node: cst.BaseExpression, scope: cst.CSTNode) -> bool:
        """Whether an expression is `tf.Graph()`, or a name that is given that, and nothing else reads."""
        if isinstance(node, cst.Name):
            given = [one.value for one in bound_in(scope) if one.name == node.value]
            mentions = [one for one in name_nodes(scope) if one.value == node.value]
            return len(given) == 1 and len(mentions) == 2 and given[0] is not None and self._is_graph(given[0], scope)
        return isinstance(node, cst.Call) and not node.args and self.file.imports.tensorflow(node.func) == _GRAPH

    def _initializations(self, body: cst.IndentedBlock, session: str) -> list[cst.BaseStatement]:
        """`sess.run(tf.global_variables_initializer())` among some lines: nothing else is run there that reads them."""
        found: list[cst.BaseStatement] = []
        for line in body.body:
            small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
            call = small.value if isinstance(small, cst.Expr) else None
            if not isinstance(call, cst.Call) or dotted(call.func) != f"{session}.run" or len(call.args) != 1:
                continue
            made = [one for one in calls_in(call) if one is not call]
            if made and all(self.file.imports.tensorflow(one.func) in INITIALIZERS for one in made):
                found.append(line)
        return found

    def _is_unread(self, node: cst.With, name: cst.Name, allowed: Sequence[cst.CSTNode]) -> bool:
        """Whether nothing reads the name that a `with` gives, but for some lines of it."""
        own = {inner for line in allowed for inner in name_nodes(line)}
        others = [one for one in name_nodes(self.file.module) if one.value == name.value and one not in own]
        givers = [
            item.asname.name
            for w in nodes_in(self.file.module)
            if isinstance(w, cst.With)
            for item in w.items
            if item.asname is not None
        ]
        inside = set(name_nodes(node))
        if any(one in inside and one is not name for one in others):
            return False
        return all(any(one is giver for giver in givers) or self._is_elsewhere(one, name.value) for one in others)

    def _is_elsewhere(self, node: cst.Name, name: str) -> bool:
        """Whether a mention stands in another `with` that gives the same name."""
        around = [one for one in path_to(self.file.module, node) if isinstance(one, cst.With)]
        given = [item.asname.name for one in around for item in one.items if item.asname is not None]
        return any(isinstance(one, cst.Name) and one.value == name for one in given)


def _has_graph(session: cst.BaseExpression) -> bool:
    """Whether a session may be one of a graph of its own."""
    args = session.args if isinstance(session, cst.Call) else ()
    return len(args) > 1 or any(arg.keyword is not None and arg.keyword.value == "graph" for arg in args)


def asks_default_session(file: ParsedFile) -> bool:
    """Whether something in a file may run in the default session, without a mention of it."""
    for call in calls_in(file.module):
        func = call.func
        method = func.attr.value if isinstance(func, cst.Attribute) else ""
        if method in _IMPLIED or (file.imports.tensorflow(func) or "").rpartition(".")[2] in _IMPLIED:
            return True
    return False


def is_setting(file: ParsedFile, arg: cst.Arg) -> bool:
    """Whether an argument of a session is a setting, or a new graph, and making it does nothing else."""
    if arg.star or any(file.imports.tensorflow(c.func) not in (*_SETTINGS, _GRAPH) for c in calls_in(arg)):
        return False
    return arg.keyword is None or arg.keyword.value in ("config", "target", "graph")


def lines_of_settings(file: ParsedFile, session: cst.BaseExpression, scope: cst.CSTNode) -> list[cst.CSTNode]:
    """The lines of a function that make the settings of a session, where nothing else reads them."""
    found: list[cst.CSTNode] = []
    args = session.args if isinstance(session, cst.Call) else ()
    for name in {one.value for arg in args for one in name_nodes(arg.value)}:
        given = [one for one in bound_in(scope) if one.name == name and isinstance(one.value, cst.Call)]
        made = given[0].value if len(given) == 1 else None
        if not isinstance(made, cst.Call) or file.imports.tensorflow(made.func) not in _SETTINGS:
            continue
        lines: list[cst.CSTNode] = []
        others = 0
        for mention in [one for one in name_nodes(scope) if one.value == name]:
            line = next((n for n in path_to(scope, mention) if isinstance(n, cst.SimpleStatementLine)), None)
            small = line.body[0] if line is not None and len(line.body) == 1 else None
            target = small.targets[0].target if isinstance(small, cst.Assign) and len(small.targets) == 1 else None
            if line is not None and target is not None and (dotted(target) or "").partition(".")[0] == name:
                lines.append(line)
            else:
                others += 1
        calls = [call for line in lines for call in calls_in(line)]
        if others == 1 and all(file.imports.tensorflow(call.func) in _SETTINGS for call in calls):
            found += lines
    return found


__all__ = ["SESSIONS", "asks_default_session", "is_setting", "lines_of_settings", "without_surroundings"]
