"""A RunConfig as plain data: its arguments, and the lines that made it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import libcst as cst

from migrator.program.calls import bind, calls_in, functions_in, is_none, parameters_of, string
from migrator.program.config_reads import ConfigReads, read_of
from migrator.program.devices import SETTER, check_setter
from migrator.program.parsed import Blocked, ParsedFile, name_nodes, names_in
from migrator.program.scopes import bindings, returns_in, with_values
from migrator.rules.run_config import COLLECTIVE, DISTRIBUTE, LEARN, NO_EFFECT, OF_TPU, RUN_CONFIG, SESSION, TPU
from migrator.walking import of_kinds, walk

Arguments = dict[str, cst.BaseExpression]

_KINDS = {
    "tf.estimator.RunConfig": RUN_CONFIG,
    "tf.contrib.learn.RunConfig": LEARN,
    "tf.contrib.tpu.RunConfig": TPU,
    "tf.estimator.tpu.RunConfig": TPU,
}
_DISTRIBUTE_CONFIG = ("tf.contrib.distribute.DistributeConfig", "tf.distribute.DistributeConfig")
#: Addresses of servers that sessions ran on.
_SERVERS = ("master", "evaluation_master")
_NOT_CARRIED = {
    "device_fn": (
        "a custom `device_fn` is unsupported: remove it, strategies place variables; to keep "
        "them on the CPU migrate with `--strategy central-storage`"
    ),
    "experimental_distribute": (
        "`experimental_distribute` is not a literal DistributeConfig: use the RunConfig's "
        "`train_distribute` and `eval_distribute`"
    ),
}
_NOT_MADE_HERE = "is not a `tf.estimator.RunConfig` created next to the Estimator: create it there"


@dataclass(frozen=True)
class ReadConfig:
    """The arguments that count, the calls and lines that gave them, what is left out, and remarks about that.

    `session` is the `session_config`, which is among what is left out, `values` are further expressions that count,
    with the lines that they stand in, `tpu` what it says of a TPU, `reads` what the program reads of it.
    """

    arguments: Arguments
    calls: tuple[cst.Call, ...]
    lines: tuple[cst.BaseStatement, ...]
    dropped: tuple[cst.BaseExpression, ...]
    remarks: tuple[Blocked, ...]
    session: cst.BaseExpression | None = None
    values: tuple[tuple[cst.CSTNode, cst.BaseExpression], ...] = ()
    tpu: Arguments = field(default_factory=dict)
    reads: ConfigReads = field(default_factory=ConfigReads)


def is_run_config(name: str) -> bool:
    """Whether a TensorFlow 1 symbol is a RunConfig."""
    return name in _KINDS


def read_run_config(
    file: ParsedFile,
    scope: cst.CSTNode,
    around: Sequence[cst.CSTNode],
    node: cst.BaseExpression | None,
    is_config_argument: Callable[[cst.Name], bool],
    conditional: Callable[[cst.CSTNode], bool],
    may_be_read: bool = False,
    alone: bool = False,
) -> ReadConfig:
    """Reads `RunConfig(...)`, with any number of `.replace(...)`, in place, behind a name or returned by a function.

    Where it differs by a condition, only settings that do not count may differ. `around` is the way to the Estimator,
    `is_config_argument` tells the names that are given to one, `conditional` the lines that may not run before the
    Estimator is made; with `may_be_read` the program may ask it for more. `alone` reads what a `.replace(...)` changes,
    and not the RunConfig that it is asked of. Raises Blocked (TFM108).
    """
    if is_none(node):
        return ReadConfig({}, (), (), (), ())
    assert node is not None
    reader = _Reader(file, scope, around, is_config_argument, conditional, may_be_read)
    cases = [reader.changed(node)] if alone and isinstance(node, cst.Call) else reader.read(node)
    dropped: list[cst.BaseExpression] = []
    remarks: list[Blocked] = []
    on_tpu: Arguments = {}
    for key, value in _settings(cases):
        if is_none(value):
            continue
        if key == "device_fn" and _sets_devices_of_replicas(file, value):
            message = "RunConfig's `device_fn` is dropped: the strategy places variables"
            remarks.append(Blocked("TFM140", value, message))
        elif key in COLLECTIVE:
            raise Blocked("TFM108", value, _NOT_CARRIED[key])
        elif key in OF_TPU and reader.kind is TPU:
            on_tpu.setdefault(key, value)
        elif key in _SERVERS and string(value) not in ("", "local"):
            message = (
                f"RunConfig's `{key}` is dropped: what ran on that server runs in this process now; set "
                "TF_CONFIG for the processes of a cluster"
            )
            remarks.append(Blocked("TFM140", value, message))
        elif key in SESSION:
            message = f"RunConfig's `{key}` is dropped: configure devices and threads with `tf.config` if needed"
            remarks.append(Blocked("TFM140", value, message))
        elif key == "eval_distribute":
            message = (
                "RunConfig's `eval_distribute` is dropped: evaluation uses the training strategy, and "
                "one device in a cluster's evaluator"
            )
            remarks.append(Blocked("TFM173", value, message))
        elif key in NO_EFFECT:
            why = "fit has no such option"
            if key == "keep_checkpoint_max":
                why = "fit has no such option, and `--loop custom` keeps the last five"
            elif key == "save_checkpoints_secs":
                why = "checkpoints are saved after training, or every `save_checkpoints_steps` steps"
            remarks.append(Blocked("TFM107", value, f"RunConfig's `{key}` is dropped: {why}"))
        else:
            continue
        dropped.append(value)
    arguments = _agreed(file, cases, dropped, remarks)
    evaluated = [value for key, value in _settings(cases) if key == "eval_distribute" and not is_none(value)]
    if evaluated:
        arguments["eval_distribute"] = evaluated[0]
    sessions = [value for key, value in _settings(cases) if key == "session_config" and not is_none(value)]
    same = {file.code(value) for value in sessions}
    remarks = [r for i, r in enumerate(remarks) if not any(r.node is other.node for other in remarks[:i])]
    return ReadConfig(
        arguments,
        tuple(reader.calls),
        tuple(reader.lines),
        tuple(dropped),
        tuple(remarks),
        sessions[0] if len(same) == 1 and len(sessions) == len(cases) else None,
        tuple(reader.values),
        on_tpu,
        reader.reads,
    )


def _settings(cases: Sequence[Arguments]) -> Iterable[tuple[str, cst.BaseExpression]]:
    return [item for case in cases for item in case.items()]


def _sets_devices_of_replicas(file: ParsedFile, node: cst.BaseExpression) -> bool:
    """Whether a `device_fn` is a replica_device_setter. Raises Blocked (TFM108) for one that chooses otherwise."""
    value = file.constants.get(node.value, node) if isinstance(node, cst.Name) else node
    if not isinstance(value, cst.Call) or file.imports.resolve(value.func) != SETTER:
        return False
    check_setter(value, "TFM108")
    return True


def _agreed(
    file: ParsedFile,
    cases: Sequence[Arguments],
    dropped: list[cst.BaseExpression],
    remarks: list[Blocked],
) -> Arguments:
    """The arguments that count, which must be the same in all cases; periods of checkpoints may differ."""
    counting = [
        {k: v for k, v in case.items() if not is_none(v) and not any(v is d for d in dropped)} for case in cases
    ]
    found: Arguments = {}
    for key in dict.fromkeys(key for case in counting for key in case):
        values = [case.get(key) for case in counting]
        texts = {None if value is None else file.code(value) for value in values}
        first = next(value for value in values if value is not None)
        if len(texts) == 1:
            found[key] = first
        elif key == "save_checkpoints_steps":
            dropped += [value for value in values if value is not None]
            message = "RunConfig's `save_checkpoints_steps` is conditional: checkpoints are saved only after training"
            remarks.append(Blocked("TFM107", first, message))
        else:
            message = f"RunConfig's `{key}` is conditional: choose its value first, then create one RunConfig"
            raise Blocked("TFM108", first, message)
    return found


class _Reader:
    def __init__(
        self,
        file: ParsedFile,
        scope: cst.CSTNode,
        around: Sequence[cst.CSTNode],
        is_config_argument: Callable[[cst.Name], bool],
        conditional: Callable[[cst.CSTNode], bool],
        may_be_read: bool = False,
    ) -> None:
        self.file = file
        self.scope = scope
        self.around = around
        self.is_config_argument = is_config_argument
        self.conditional = conditional
        self.may_be_read = may_be_read
        self.reads = ConfigReads()
        self.calls: list[cst.Call] = []
        self.lines: list[cst.BaseStatement] = []
        self.values: list[tuple[cst.CSTNode, cst.BaseExpression]] = []
        self.kind: Sequence[str] = RUN_CONFIG

    def read(self, node: cst.BaseExpression) -> list[Arguments]:
        """The arguments in every case."""
        if isinstance(node, cst.Call):
            name = self.file.imports.resolve(node.func)
            if name in _KINDS:
                self.kind = _KINDS[name]
                return [self._bound(node, name)]
            if isinstance(node.func, cst.Attribute) and node.func.attr.value == "replace":
                cases = self.read(node.func.value)
                more = self._bound(node, "RunConfig.replace")
                return [{**case, **more} for case in cases]
            if isinstance(node.func, cst.Name) and node.func.value in self.file.functions:
                return self._returned(node, self.file.functions[node.func.value])
        if isinstance(node, cst.Name):
            return self._behind(node)
        raise Blocked("TFM108", node, f"this {_NOT_MADE_HERE}")

    def changed(self, call: cst.Call) -> Arguments:
        """What a `.replace(...)` changes."""
        found = self._bound(call, "RunConfig.replace")
        for key, value in found.items():
            if key not in NO_EFFECT and is_none(value):
                raise Blocked("TFM108", value, f"`{key}=None` resets a setting: do not set it in the first place")
        return found

    def _bound(self, call: cst.Call, name: str) -> Arguments:
        self.calls.append(call)
        found = bind(self._written_out(call), self.kind, name, "TFM108")
        both = found.get("experimental_distribute")
        if isinstance(both, cst.Call) and self.file.imports.resolve(both.func) in _DISTRIBUTE_CONFIG:
            del found["experimental_distribute"]
            inner = bind(both, DISTRIBUTE, "DistributeConfig", "TFM108")
            if not is_none(inner.get("remote_cluster")):
                message = (
                    "`remote_cluster` is driven by one client, which `fit` does not have: remove it, and "
                    "give each process its TF_CONFIG"
                )
                raise Blocked("TFM108", inner["remote_cluster"], message)
            found.update({key: value for key, value in inner.items() if key != "remote_cluster"})
        return found

    def _written_out(self, call: cst.Call) -> cst.Call:
        """A call with the entries of a dict that is given as `**settings`, where the dict is for nothing else."""
        args: list[cst.Arg] = []
        for arg in call.args:
            if arg.star != "**" or not isinstance(arg.value, cst.Name):
                args.append(arg)
                continue
            name = arg.value.value
            finder = _Assignments(name, self.scope)
            walk(self.scope, finder)
            uses = [n for n in name_nodes(self.scope) if n.value == name]
            if len(finder.found) != 1 or not finder.plain or len(uses) != 2:
                message = (
                    f"`{name}` is not a one-line dict literal used only by this RunConfig: write its "
                    "arguments in the call"
                )
                raise Blocked("TFM108", arg, message)
            line, _, value = finder.found[0]
            self.lines.append(line)
            self.values.append((line, value))
            args += self._entries(arg, value)
        return call.with_changes(args=args)

    def _entries(self, arg: cst.Arg, value: cst.BaseExpression) -> list[cst.Arg]:
        entries: list[cst.Arg] = []
        if isinstance(value, cst.Dict):
            for element in value.elements:
                key = string(element.key) if isinstance(element, cst.DictElement) else None
                if key is None:
                    raise Blocked(
                        "TFM108",
                        arg,
                        "the keys of this dict are not literals: pass the arguments to RunConfig directly",
                    )
                entries.append(cst.Arg(element.value, keyword=cst.Name(key)))
            return entries
        if isinstance(value, cst.Call) and isinstance(value.func, cst.Name) and value.func.value == "dict":
            if all(one.keyword is not None and not one.star for one in value.args):
                return list(value.args)
        raise Blocked("TFM108", arg, "this is not a dict literal: write the arguments in the call")

    # -- behind a name ---------------------------------------------------------------------------------------------

    def _behind(self, name: cst.Name) -> list[Arguments]:
        """What a name stands for: a RunConfig, then `name = name.replace(...)` any number of times, or by condition."""
        finder = _Assignments(name.value, self.scope)
        walk(self.scope, finder)
        if not finder.found or not finder.plain:
            raise Blocked("TFM108", name, f"`{name.value}` {_NOT_MADE_HERE}")
        explained = {id(name)}
        for line, target, value in finder.found:
            if self.conditional(line) and not finder.branched(line):
                raise Blocked("TFM108", line, "the RunConfig is created in a loop or a `try`: create one for all cases")
            explained.add(id(target))
            receiver = _receiver(value)
            if receiver is not None and receiver.value == name.value:
                explained.add(id(receiver))
            self.lines.append(line)
        explained |= {id(node) for node in _of_functions(self.scope, name.value)}
        read: list[cst.Name] = []
        for node in name_nodes(self.scope):
            if node.value == name.value and id(node) not in explained and not self.is_config_argument(node):
                read.append(node)
        if read and (len(finder.found) != 1 or not self.may_be_read):
            raise Blocked(
                "TFM108",
                read[0],
                f"the RunConfig `{name.value}` is not used by the Estimator alone: create a separate one for it",
            )
        body = self.scope.body if isinstance(self.scope, cst.FunctionDef) else self.scope
        reader = _Walk(self, name.value, [line for line, _, _ in finder.found])
        cases = reader.block(body, [])
        self.lines += reader.emptied
        for node in read:
            if self.kind is not RUN_CONFIG:
                raise Blocked(
                    "TFM108",
                    node,
                    f"the RunConfig `{name.value}` is not used by the Estimator alone: create a separate one for it",
                )
            read_of(self.file, self.scope, node, finder.found[0][0], cases[0], self.reads)
        return cases

    def again(self, name: str, value: cst.BaseExpression) -> Arguments | None:
        """What `name = name.replace(...)` changes; None when the line makes another RunConfig."""
        receiver = _receiver(value)
        if receiver is None or receiver.value != name or not isinstance(value, cst.Call):
            return None
        return self._bound(value, "RunConfig.replace")

    # -- returned by a function ------------------------------------------------------------------------------------

    def _returned(self, call: cst.Call, function: cst.FunctionDef) -> list[Arguments]:
        """A RunConfig that a function of the file makes, which is called here only."""
        title = function.name.value
        mentions = [n for n in name_nodes(self.file.module) if n.value == title]
        if any(n is not function.name and n is not call.func for n in mentions) or function.decorators:
            raise Blocked(
                "TFM108",
                call,
                f"`{title}`, which creates the RunConfig, has other uses: call it once, for the Estimator",
            )
        returns = returns_in(function.body)
        last = function.body.body[-1]
        value = returns[0].value if len(returns) == 1 else None
        if value is None or not isinstance(last, cst.SimpleStatementLine) or last.body[0] is not returns[0]:
            raise Blocked(
                "TFM108", call, f"`{title}` does not end in a single return of a RunConfig: return one at its end"
            )
        params = [p.name.value for p in function.params.params]
        given = {p.name.value: p.default for p in function.params.params if p.default is not None}
        given.update(bind(call, params, title, "TFM108"))
        inner = _Reader(self.file, function, (), lambda name: name is value, lambda line: False)
        cases = inner.read(value)
        self.calls.append(call)
        self.kind = inner.kind
        own = {name for name, bound in bindings(function) if bound is not function}
        changed = {name for name, bound in bindings(function) if not isinstance(bound, cst.Param)}
        found = []
        for case in cases:
            new: Arguments = {}
            for key, argument in case.items():
                counts = key not in SESSION and key not in NO_EFFECT and not is_none(argument)
                if isinstance(argument, cst.Name) and argument.value in given.keys() - changed:
                    argument = given[argument.value]
                elif key in OF_TPU and not names_in(argument) & changed:
                    argument = with_values(argument, given)
                elif counts and names_in(argument) & own:
                    raise Blocked(
                        "TFM108",
                        argument,
                        f"`{key}` is computed in `{title}`: create the RunConfig next to the Estimator",
                    )
                new[key] = argument
            found.append(new)
        for statement in function.body.body:
            known = any(statement is line for line in (*inner.lines, last))
            if not known and not _only_settings(self.file, statement):
                raise Blocked(
                    "TFM108",
                    call,
                    f"`{title}` does more than create a RunConfig: create the RunConfig next to the Estimator",
                )
        self.lines.append(function)
        return found


def _only_settings(file: ParsedFile, line: cst.BaseStatement | cst.BaseSmallStatement) -> bool:
    """Whether a statement only says something, or makes (a part of) a ConfigProto."""
    if not isinstance(line, cst.SimpleStatementLine) or not all(
        isinstance(small, (cst.Assign, cst.Expr)) for small in line.body
    ):
        return False
    return all((file.imports.tensorflow(c.func) or "").endswith(("ConfigProto", "Options")) for c in calls_in(line))


def _receiver(value: cst.BaseExpression) -> cst.Name | None:
    """`name` of `name.replace(...)`."""
    if isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute) and value.func.attr.value == "replace":
        return value.func.value if isinstance(value.func.value, cst.Name) else None
    return None


class _Walk:
    """What a name may stand for when the statements of a block have run; `emptied` are `if`s of nothing else."""

    def __init__(self, reader: _Reader, name: str, lines: Sequence[cst.BaseStatement]) -> None:
        self.reader = reader
        self.name = name
        self.lines = list(lines)
        self.branches = 0
        self.emptied: list[cst.BaseStatement] = []

    def block(self, block: cst.CSTNode, cases: list[Arguments]) -> list[Arguments]:
        for statement in getattr(block, "body", ()):
            cases = self.statement(statement, cases)
        return cases

    def statement(self, node: cst.CSTNode, cases: list[Arguments]) -> list[Arguments]:
        if any(node is line for line in self.lines):
            assert isinstance(node, cst.SimpleStatementLine) and isinstance(node.body[0], cst.Assign)
            value = node.body[0].value
            more = self.reader.again(self.name, value)
            if more is not None:
                return [{**case, **more} for case in cases]
            if cases and not self.branches:
                raise Blocked(
                    "TFM108", node, f"`{self.name}` is bound to more than one RunConfig: use one name for each"
                )
            return self.reader.read(value)
        if isinstance(node, cst.If):
            return self.branch(node, cases)
        if isinstance(node, (cst.With, cst.For, cst.While, cst.Try)):
            return self.block(node.body, cases)
        return cases

    def branch(self, node: cst.If, cases: list[Arguments]) -> list[Arguments]:
        """What the name may stand for behind an `if`; the branch that the Estimator stands in is the one that runs."""
        if any(node.body is n for n in self.reader.around):
            return self.block(node.body, cases)
        if node.orelse is not None and any(node.orelse is n for n in self.reader.around):
            if isinstance(node.orelse, cst.If):
                return self.branch(node.orelse, cases)
            return self.block(node.orelse.body, cases)
        self.branches += 1
        one = self.block(node.body, cases)
        other: list[Arguments] = cases
        if isinstance(node.orelse, cst.If):
            other = self.branch(node.orelse, cases)
        elif isinstance(node.orelse, cst.Else):
            other = self.block(node.orelse.body, cases)
        self.branches -= 1
        if self._is_emptied(node):
            self.emptied.append(node)
        return one if one is other else [*one, *(c for c in other if not any(c is known for known in one))]

    def _is_emptied(self, node: cst.If) -> bool:
        """Whether an `if` holds nothing but lines that go, and its tests call nothing."""
        gone = [*self.lines, *self.emptied]

        def empty(block: cst.CSTNode) -> bool:
            return all(any(s is g for g in gone) for s in getattr(block, "body", ()))

        if calls_in(node.test) or not empty(node.body):
            return False
        if node.orelse is None:
            return True
        if isinstance(node.orelse, cst.If):
            return any(node.orelse is one for one in self.emptied) or self._is_emptied(node.orelse)
        return empty(node.orelse.body)


class _Assignments(cst.CSTVisitor):
    """`name = value` lines of a scope; `plain` says that nothing else gives the name a value."""

    def __init__(self, name: str, scope: cst.CSTNode) -> None:
        super().__init__()
        self.name = name
        self.scope = scope
        self.found: list[tuple[cst.SimpleStatementLine, cst.Name, cst.BaseExpression]] = []
        self.plain = True
        self._around: list[cst.CSTNode] = []
        self._branches: dict[int, bool] = {}

    def branched(self, line: cst.SimpleStatementLine) -> bool:
        """Whether nothing but `if`s (and `with`s) stands around a line."""
        return self._branches[id(line)]

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, (cst.For, cst.While, cst.Try)):
            self._around.append(node)
        return super().on_visit(node)

    def on_leave(self, original_node: cst.CSTNode) -> None:
        super().on_leave(original_node)
        if self._around and self._around[-1] is original_node:
            self._around.pop()

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return node is self.scope

    def visit_ClassDef(self, node: cst.ClassDef) -> bool:
        return False

    def visit_Lambda(self, node: cst.Lambda) -> bool:
        return False

    def visit_Param(self, node: cst.Param) -> None:
        self.plain = self.plain and node.name.value != self.name

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> None:
        self._branches[id(node)] = not self._around
        for small in node.body:
            if isinstance(small, cst.Assign):
                targets = [t.target for t in small.targets]
                names = [t for t in targets if isinstance(t, cst.Name) and t.value == self.name]
                if names and len(targets) == 1 and len(node.body) == 1:
                    self.found.append((node, names[0], small.value))
                elif any(n.value == self.name for t in targets for n in name_nodes(t)):
                    self.plain = False
            elif isinstance(small, (cst.AugAssign, cst.AnnAssign, cst.Del)):
                target = small.target
                self.plain = self.plain and not any(n.value == self.name for n in name_nodes(target))


def _of_functions(scope: cst.CSTNode, name: str) -> list[cst.Name]:
    """The mentions of a name inside of functions that give it a meaning of their own: `config` in a model_fn, say."""
    found: list[cst.Name] = []
    for function in functions_in(scope):
        if function is not scope and any(bound == name and node is not function for bound, node in bindings(function)):
            found += [param.name for param in parameters_of(function)] + list(name_nodes(function.body))
    for one in of_kinds(scope, cst.Lambda):
        if any(param.name.value == name for param in parameters_of(one)):
            found += [param.name for param in parameters_of(one)] + list(name_nodes(one.body))
    return found
