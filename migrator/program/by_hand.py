"""Programs that train by hand in a MonitoredTrainingSession, written out as the Estimator programs that they are.

What is computed from a batch becomes a model_fn, what makes the batches an input function, and the loop around
`session.run(train_op)` one call of `train`, before anything else looks at the file; every rule and reader then treats
them as any other. The text that a user sees is never this one, see `canned`. Where variables live on parameter servers,
the file says which cluster the strategy is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import libcst as cst

from migrator.findings import Finding, Severity
from migrator.names.imports import dotted
from migrator.program.calls import bind, calls_in, is_none, string
from migrator.program.parsed import Blocked, ParsedFile, name_nodes, names_in
from migrator.program.scopes import bindings, free_names, path_to
from migrator.program.spread import Edit, Written, spread
from migrator.rules import sessions


@dataclass(frozen=True)
class Cluster:
    """What a program makes its strategy of: expressions, as source text. `synchronous` workers train in step."""

    spec: str
    job_name: str
    task_index: str
    synchronous: bool


# How calls begin that may change something when a session runs them.
_ACTING = (
    *("assign", "scatter", "apply", "group", "count_up_to", "increment", "py_func", "numpy_function", "get_collection"),
    *("Print", "print", "write", "enqueue", "tuple", "update", "no_op", "control_dependencies"),
)
# Methods that only compute, of tensors and arrays.
_PURE = (
    "get_shape",
    "as_list",
    "mean",
    "sum",
    "astype",
    "reshape",
    "format",
    "split",
    "join",
    "items",
    "keys",
    "values",
)


@dataclass
class _Line:
    """A statement before the loop: the names that it binds and mentions, and what kind of thing it does."""

    node: cst.BaseStatement
    binds: set[str]
    mentions: set[str]
    kind: str = "plain"


def write_out(files: Sequence[ParsedFile]) -> tuple[list[ParsedFile], list[Finding]]:
    """The files with their trainings by hand written out, and findings about those that cannot be."""
    found: list[ParsedFile] = []
    findings: list[Finding] = []
    for file in files:
        places = _places(file) if sessions.may_train(file.text) and _is_as_written(file) else []
        try:
            if len(places) > 1:
                message = "a second MonitoredTrainingSession in this file: put the trainings into files of their own"
                raise Blocked("TFM760", places[1].call, message)
            found.append(_Writer(file, places[0], files).write() if places else file)
        except Blocked as problem:
            found.append(file)
            node = problem.node if problem.node is not None else places[0].call
            findings.append(file.finding(problem.code, Severity.MANUAL, node, problem.message))
    return found, findings


def _is_as_written(file: ParsedFile) -> bool:
    """Whether the tree of a file is that of its text."""
    return file.spread is None and file.module.code == file.text


@dataclass(frozen=True)
class _Place:
    """`MonitoredTrainingSession(...)`."""

    call: cst.Call


def _places(file: ParsedFile) -> list[_Place]:
    return [_Place(call) for call in calls_in(file.module) if file.imports.tensorflow(call.func) == sessions.SESSION]


@dataclass
class _Writer:
    file: ParsedFile
    place: _Place
    others: Sequence[ParsedFile] = ()
    lines: list[_Line] = field(default_factory=list)
    said: list[Finding] = field(default_factory=list)
    server: cst.Call | None = None
    spec: cst.BaseExpression | None = None
    joins: cst.If | None = None
    setter: bool = False
    synchronous: cst.Call | None = None
    hook_names: set[str] = field(default_factory=set)
    around: set[str] = field(default_factory=set)  # names that say where operations are

    def write(self) -> ParsedFile:
        call = self.place.call
        around = path_to(self.file.module, call)
        functions = [n for n in around if isinstance(n, cst.FunctionDef)]
        if len(functions) > 1 or any(isinstance(n, cst.ClassDef) for n in around):
            raise Blocked(
                "TFM760", call, "the session is made inside a class or an inner function: train in a function"
            )
        self.scope: cst.FunctionDef | cst.Module = functions[0] if functions else self.file.module
        session = next((n for n in reversed(around) if isinstance(n, cst.With)), None)
        if session is None or session.items[0].item is not call or session.items[0].asname is None:
            raise Blocked("TFM760", call, "the session is not made by `with ... as session:`: write it so")
        if len(session.items) != 1 or not isinstance(session.items[0].asname.name, cst.Name):
            raise Blocked(
                "TFM760", call, "the `with` of the session names more than one thing: give it a line of its own"
            )
        self.session = session
        self.session_name = session.items[0].asname.name.value
        body = self._body()
        self.suffix: list[cst.BaseStatement] = []
        self._flatten(body)
        self.train_op, self.loop, steps = self._loop()
        self._classify()
        features, labels, input_fn, data = self._data()
        model = self._model({*features, *labels})
        return self._written(features, labels, input_fn, data, model, steps)

    def _body(self) -> Sequence[cst.BaseStatement]:
        scope = self.scope
        if isinstance(scope, cst.Module):
            return scope.body
        if not isinstance(scope.body, cst.IndentedBlock):
            raise Blocked("TFM760", self.place.call, "the training stands on the line of its `def`")
        return scope.body.body

    # -- the way to the session --------------------------------------------------------------------------------------

    def _flatten(self, body: Sequence[cst.BaseStatement]) -> bool:
        """Collects the statements before the session, those in blocks around graph and devices too; whether it came."""
        for index, statement in enumerate(body):
            if statement is self.session:
                self.suffix = [*body[index + 1 :], *self.suffix]
                return True
            holds = bool(path_to(statement, self.session))
            inner = self._block(statement, holds)
            if inner is not None:
                if self._flatten(inner):
                    self.suffix = [*self.suffix, *body[index + 1 :]]
                    return True
            elif holds:
                raise Blocked("TFM760", statement, "the training stands in a block whose meaning here is not known")
            else:
                defines = isinstance(statement, cst.FunctionDef)
                mentions = free_names(statement) if defines else names_in(statement)  # type: ignore[arg-type]
                own = [] if isinstance(statement, cst.FunctionDef | cst.ClassDef) else bindings(statement)
                binds = {name for name, _ in own}
                if isinstance(statement, cst.FunctionDef | cst.ClassDef):
                    binds = {statement.name.value}
                self.lines.append(_Line(statement, binds, mentions))
        return False

    def _block(self, statement: cst.BaseStatement, holds: bool) -> Sequence[cst.BaseStatement] | None:
        """What a block around devices, graphs or jobs holds; None for any other statement."""
        if isinstance(statement, cst.With) and isinstance(statement.body, cst.IndentedBlock):
            if all(self._places_only(item.item) for item in statement.items):
                return statement.body.body
        if isinstance(statement, cst.If) and self._is_server(statement.test):
            if self.joins is not None:
                raise Blocked("TFM760", statement, "servers are told from workers twice")
            self.joins = statement
            joined = [call for call in calls_in(statement.body) if (dotted(call.func) or "").endswith(".join")]
            inside = statement.body.body if isinstance(statement.body, cst.IndentedBlock) else ()
            if len(joined) != 1 or len(inside) != 1:
                raise Blocked("TFM762", statement, "the branch of servers does more than `server.join()`")
            other = statement.orelse
            if isinstance(other, cst.If):
                if other.orelse is not None:
                    raise Blocked("TFM760", other, "jobs beside `ps` and `worker` are not known")
                return other.body.body if isinstance(other.body, cst.IndentedBlock) else None
            if isinstance(other, cst.Else) and isinstance(other.body, cst.IndentedBlock):
                return other.body.body
            return []
        return None

    def _places_only(self, node: cst.BaseExpression) -> bool:
        """Whether a `with` only says where operations are: the devices of a cluster, or a new graph."""
        if not isinstance(node, cst.Call):
            return False
        self.around |= names_in(node)
        if isinstance(node.func, cst.Attribute) and node.func.attr.value == "as_default":
            return isinstance(node.func.value, cst.Call) and self._tf(node.func.value) == "tf.Graph"
        if self._tf(node) != "tf.device" or len(node.args) != 1:
            return False
        given = node.args[0].value
        if isinstance(given, cst.Name):
            made = [line for line in self.lines if given.value in line.binds]
            given = (_value(made[0].node) if len(made) == 1 else None) or given
        if isinstance(given, cst.Call) and self._tf(given) == "tf.train.replica_device_setter":
            for arg in given.args:
                name = arg.keyword.value if arg.keyword is not None else ""
                if name in ("ps_strategy", "ps_ops", "merge_devices") and not is_none(arg.value):
                    message = f"`{name}` chooses where variables live, which the strategy does by itself: leave it out"
                    raise Blocked("TFM762", arg, message)
            self.setter = True
            return True
        text = string(given)
        return text is not None and text.lower().rstrip("0123456789").rstrip(":").rsplit(":", 1)[-1].strip("/") in (
            "cpu",
            "gpu",
        )

    def _tf(self, call: cst.Call) -> str | None:
        return self.file.imports.tensorflow(call.func)

    def _is_server(self, node: cst.BaseExpression) -> bool:
        """Whether a condition is that this task is a parameter server."""
        if not isinstance(node, cst.Comparison) or len(node.comparisons) != 1:
            return False
        only = node.comparisons[0]
        return isinstance(only.operator, cst.Equal) and "ps" in (string(node.left), string(only.comparator))

    # -- the loop ----------------------------------------------------------------------------------------------------

    def _loop(self) -> tuple[str, cst.BaseStatement, tuple[str, str] | None]:
        """The name of the train_op, the loop that runs it, and how many steps it takes by itself."""
        body = self.session.body.body if isinstance(self.session.body, cst.IndentedBlock) else ()
        loops = [s for s in body if isinstance(s, cst.While | cst.For)]
        if len(loops) != 1:
            raise Blocked("TFM760", self.session, "the session holds no single loop that runs the training")
        loop = loops[0]
        at = next(index for index, statement in enumerate(body) if statement is loop)
        self.suffix = [*body[at + 1 :], *self.suffix]
        for statement in body[:at]:
            if not isinstance(statement, cst.SimpleStatementLine) or _value(statement) is None or calls_in(statement):
                message = "what stands between the session and its loop is not carried over: do it before the session"
                raise Blocked("TFM760", statement, message)
            counted = {name for name, _ in bindings(statement)}
            if any(counted & names_in(other) for other in self.suffix):
                raise Blocked("TFM760", statement, "what the loop counts is used after it")
        for statement in body:
            if statement is not loop and self._uses_session(statement):
                message = "what else the session is asked beside the training is not carried over: do it after it"
                raise Blocked("TFM760", statement, message)
        runs = [c for c in calls_in(loop.body) if self._of_session(c) == "run"]
        if len(runs) != 1 or self._count_session(loop.body) != 1:
            place = runs[1] if len(runs) > 1 else loop
            raise Blocked("TFM760", place, "the loop asks the session for more than one training step each time")
        run = bind(runs[0], ("fetches", "feed_dict", "options", "run_metadata"), "run", "TFM760")
        if not is_none(run.get("feed_dict")):
            message = (
                "batches are fed to placeholders: make a `tf.data.Dataset` of them, and train on its iterator's next"
            )
            raise Blocked("TFM761", run["feed_dict"], message)
        between = path_to(loop.body, runs[0])[1:]
        if any(
            isinstance(n, cst.If | cst.For | cst.While | cst.Try | cst.IfExp | cst.BooleanOperation) for n in between
        ):
            raise Blocked("TFM760", runs[0], "the training step is not run in every turn of the loop")
        if loop.orelse is not None:
            raise Blocked("TFM760", loop.orelse, "the `else` of the loop is not carried over: do it after the session")
        counted = {name for statement in body[:at] for name, _ in bindings(statement)}
        if isinstance(loop, cst.For) and counted & names_in(loop.iter):
            raise Blocked("TFM760", loop, "how many steps the loop takes is said inside the session: say it before it")
        self._only_tells(loop)
        steps: tuple[str, str] | None = None
        if isinstance(loop, cst.While):
            if not self._asks_to_stop(loop.test):
                raise Blocked("TFM760", loop.test, "the loop ends by something else than `session.should_stop()`")
        else:
            count = loop.iter
            if not isinstance(count, cst.Call) or dotted(count.func) not in ("range", "xrange") or len(count.args) != 1:
                raise Blocked("TFM760", loop, "how many steps this loop takes is not known: `for ... in range(n)`")
            steps = "steps", self.file.code(count.args[0].value)
        fetched = self._fetched(run["fetches"])
        self.fetched = fetched
        makers = {
            name: line
            for line in self.lines
            for name in line.binds
            if any(c.func.attr.value in ("minimize", "apply_gradients") for c in _methods(line.node))
        }
        trained = [name for name in fetched if name in makers]
        if len(trained) != 1:
            message = "the loop does not run one train_op of `minimize` or `apply_gradients` that is made here"
            raise Blocked("TFM760", runs[0], message)
        self.maker = makers[trained[0]]
        self._only_reads([name for name in fetched if name != trained[0]])
        return trained[0], loop, steps

    def _only_reads(self, names: Sequence[str]) -> None:
        """What is fetched beside the train_op may change nothing: it is not fetched any more."""
        seen: set[int] = set()
        queue = list(names)
        while queue:
            name = queue.pop()
            for line in self.lines:
                if name not in line.binds or id(line) in seen or line is self.maker:
                    continue
                seen.add(id(line))
                for call in calls_in(line.node):
                    word = call.func.attr.value if isinstance(call.func, cst.Attribute) else dotted(call.func) or ""
                    if word.startswith(_ACTING):
                        message = (
                            f"`{names[0]}` is run beside the train_op, and may change something: put it into a hook"
                        )
                        raise Blocked("TFM760", call, message)
                queue += line.mentions

    def _uses_session(self, node: cst.CSTNode) -> bool:
        return self.session_name in names_in(node)

    def _count_session(self, node: cst.CSTNode) -> int:
        return sum(1 for name in name_nodes(node) if name.value == self.session_name)

    def _of_session(self, call: cst.Call) -> str | None:
        func = call.func
        if (
            isinstance(func, cst.Attribute)
            and isinstance(func.value, cst.Name)
            and func.value.value == self.session_name
        ):
            return func.attr.value
        return None

    def _asks_to_stop(self, node: cst.BaseExpression) -> bool:
        if not isinstance(node, cst.UnaryOperation) or not isinstance(node.operator, cst.Not):
            return False
        return isinstance(node.expression, cst.Call) and self._of_session(node.expression) == "should_stop"

    def _fetched(self, node: cst.BaseExpression) -> list[str]:
        if isinstance(node, cst.Name):
            return [node.value]
        if isinstance(node, cst.List | cst.Tuple) and all(isinstance(e.value, cst.Name) for e in node.elements):
            return [e.value.value for e in node.elements if isinstance(e.value, cst.Name)]
        raise Blocked("TFM760", node, "what the loop runs is no name, and no list of names")

    def _only_tells(self, loop: cst.While | cst.For) -> None:
        """The rest of the loop may print what was fetched, and count; anything else is not known."""
        finder = _Deeds()
        loop.body.visit(finder)
        for call in finder.calls:
            name = dotted(call.func) or ""
            tells = name in sessions.TELLING or name.split(".")[-1] in sessions.TELLING_METHODS
            if self._of_session(call) != "run" and not tells:
                message = f"`{name or self.file.code(call.func)}` is called between the steps, which `fit` does not do"
                raise Blocked("TFM760", call, message)
        if finder.ends:
            message = "this ends the loop by a condition of its own: give the session a StopAtStepHook"
            raise Blocked("TFM760", finder.ends[0], message)
        for target in finder.places:
            message = "what the loop gets from the session is kept in an object or a list, which `fit` does not do"
            raise Blocked("TFM760", target, message)
        bound = {name for name, _ in bindings(loop)} - {"_"}
        later = set().union(*(names_in(s) for s in self.suffix)) if self.suffix else set()
        for name in sorted(bound & later):
            raise Blocked("TFM760", loop, f"`{name}`, which the loop gets from the session, is used after it")
        if len(loop.body.body) > 1:
            message = "what the loop printed of its steps is left out: `fit` prints the loss and the metrics"
            self.said.append(self.file.finding("TFM763", Severity.REVIEW, loop, message))

    # -- what the statements do --------------------------------------------------------------------------------------

    def _classify(self) -> None:
        tensors: set[str] = set()
        given = bind(self.place.call, sessions.PARAMETERS, "MonitoredTrainingSession", "TFM760")
        hooks = set()
        for key in ("hooks", "chief_only_hooks"):
            if key in given:
                hooks |= names_in(given[key])
        self.given = given
        for line in self.lines:
            names = [name for name in (self._tf(call) for call in calls_in(line.node)) if name is not None]
            methods = [call.func.attr.value for call in _methods(line.node)]
            if self._is_sync_hook(_value(line.node)) or self._adds_sync_hook(line.node):
                line.kind = "removed"
                self.hook_names |= line.binds - hooks | (line.binds if _value(line.node) is not None else set())
            elif "tf.train.Server" in names:
                self.server = next(c for c in calls_in(line.node) if self._tf(c) == "tf.train.Server")
                self.server_names = line.binds
                line.kind = "removed"
            elif any(name in sessions.LEFT_OUT for name in names):
                if not isinstance(line.node, cst.SimpleStatementLine) or len(line.node.body) != 1:
                    message = "what only the session needs stands in one block with something else: take it out of it"
                    raise Blocked("TFM760", line.node, message)
                line.kind = "removed"
            elif line.binds & hooks and not tensors & line.binds:
                line.kind = "hooks"
            elif "get_next" in methods or self._returns_next(line.node):
                line.kind = "next"
                tensors |= line.binds
            elif line.mentions & tensors or any(sessions.is_graph(name) for name in names):
                line.kind = "graph"
                tensors |= line.binds
            for call in calls_in(line.node):
                if self._tf(call) == "tf.train.SyncReplicasOptimizer" and call.args:
                    self.synchronous = call
                    line.mentions = names_in(line.node.deep_replace(call, call.args[0].value))
        data: set[str] = set()
        for line in self.lines:
            names = [name for name in (self._tf(call) for call in calls_in(line.node)) if name is not None]
            if line.kind == "plain" and (line.mentions & data or any(name.startswith("tf.data.") for name in names)):
                line.kind = "data"
                data |= line.binds
        self._check_cluster()

    def _is_sync_hook(self, node: cst.BaseExpression | None) -> bool:
        """Whether an expression is the hook that makes workers wait for each other."""
        if isinstance(node, cst.Name):
            return node.value in self.hook_names
        made = isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute)
        return made and node.func.attr.value == "make_session_run_hook"  # type: ignore[union-attr]

    def _adds_sync_hook(self, node: cst.BaseStatement) -> bool:
        """Whether a line only appends that hook to a list."""
        added = _appended(node)
        return added is not None and self._is_sync_hook(added)

    def _returns_next(self, node: cst.BaseStatement) -> bool:
        """Whether a statement gets the next batch of an input function of the file."""
        value = _value(node)
        function = self.file.functions.get(dotted(value.func) or "") if isinstance(value, cst.Call) else None
        return function is not None and ".get_next()" in self.file.code(function)

    def _check_cluster(self) -> None:
        if self.server is None:
            if self.joins is not None or self.setter or self.synchronous is not None:
                raise Blocked(
                    "TFM762", self.place.call, "no `tf.train.Server` of this cluster is made in this function"
                )
            return
        given = bind(self.server, sessions.SERVER, "tf.train.Server", "TFM762")
        spec = given.get("server_or_cluster_def")
        made = [line for line in self.lines if isinstance(spec, cst.Name) and spec.value in line.binds]
        value = spec if spec is not None and not made else _value(made[0].node) if len(made) == 1 else None
        if not isinstance(value, cst.Call) or self._tf(value) != "tf.train.ClusterSpec" or len(value.args) != 1:
            raise Blocked("TFM762", self.server, "the cluster is not a ClusterSpec that is made in this function")
        jobs = value.args[0].value
        keys = (
            [string(e.key) for e in jobs.elements if isinstance(e, cst.DictElement)]
            if isinstance(jobs, cst.Dict)
            else []
        )
        if sorted(key or "" for key in keys) != ["ps", "worker"]:
            message = "the jobs of the cluster are not the two `ps` and `worker` of a dict that is written out here"
            raise Blocked("TFM762", value, message)
        if self.joins is None or not self.setter:
            message = 'servers do not wait in `if job_name == "ps": server.join()`, or no replica_device_setter is used'
            raise Blocked("TFM762", self.server, message)
        for key in ("job_name", "task_index"):
            if key not in given:
                raise Blocked("TFM762", self.server, f"the server is not told its `{key}`")
            if any(self._tf(call) for call in calls_in(given[key])):
                raise Blocked("TFM762", given[key], f"`{key}` is computed by TensorFlow")
        self.spec = spec
        self.task = given["job_name"], given["task_index"]
        if self.synchronous is not None:
            self._check_synchronous(self.synchronous)

    def _check_synchronous(self, call: cst.Call) -> None:
        given = bind(call, sessions.SYNCHRONOUS, "tf.train.SyncReplicasOptimizer", "TFM764")
        for key in ("variable_averages", "variables_to_average"):
            if not is_none(given.get(key)):
                raise Blocked("TFM764", given[key], f"`{key}` of a SyncReplicasOptimizer has no counterpart")
        several, total = given.get("replicas_to_aggregate"), given.get("total_num_replicas")
        if several is None:
            raise Blocked("TFM764", call, "how many replicas are aggregated is not said")
        if is_none(total) or self.file.code(several) == self.file.code(total):  # type: ignore[arg-type]
            if self._counts_workers(several):
                return
        message = "mirrored workers wait for all of them in each step: aggregate as many replicas as there are workers"
        raise Blocked("TFM764", several, message)

    def _counts_workers(self, node: cst.BaseExpression, depth: int = 0) -> bool:
        """Whether an expression is the number of workers: `len(...)` of the hosts in the cluster."""
        if isinstance(node, cst.Name) and depth < 3:
            made = [line for line in self.lines if node.value in line.binds]
            value = _value(made[0].node) if len(made) == 1 else None
            return value is not None and self._counts_workers(value, depth + 1)
        if isinstance(node, cst.Call) and dotted(node.func) == "len" and len(node.args) == 1:
            return self.file.code(node.args[0].value).replace("'", '"') == self._workers().replace("'", '"')
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "num_tasks":
            return len(node.args) == 1 and string(node.args[0].value) == "worker"
        return False

    def _workers(self) -> str:
        """The expression of the workers' hosts in the ClusterSpec."""
        for line in self.lines:
            for call in calls_in(line.node):
                if self._tf(call) == "tf.train.ClusterSpec":
                    jobs = call.args[0].value
                    assert isinstance(jobs, cst.Dict)
                    for element in jobs.elements:
                        if isinstance(element, cst.DictElement) and string(element.key) == "worker":
                            return self.file.code(element.value)
        return ""

    # -- data and model ----------------------------------------------------------------------------------------------

    def _data(self) -> tuple[list[str], list[str], str | None, list[_Line]]:
        """The names of features and labels, the call of an input function or None, the lines of the data."""
        nexts = [line for line in self.lines if line.kind == "next"]
        if len(nexts) != 1:
            place = nexts[1].node if nexts else self.place.call
            message = "the batch is not what one iterator's `get_next()`, or an input function, gives in this function"
            raise Blocked("TFM761", place, message)
        line = nexts[0]
        self.next_line = line.node
        small = line.node.body[0] if isinstance(line.node, cst.SimpleStatementLine) else None
        if not isinstance(small, cst.Assign) or len(small.targets) != 1:
            raise Blocked("TFM761", line.node, "the next batch is not simply given to names")
        target = small.targets[0].target
        if not isinstance(target, cst.Tuple) or len(target.elements) != 2:
            raise Blocked(
                "TFM761", line.node, "the next batch is not given to two names: of its features and its labels"
            )
        pair = [e.value.value if isinstance(e.value, cst.Name) else "" for e in target.elements]
        if not all(pair):
            raise Blocked(
                "TFM761", line.node, "the next batch is not given to two names: of its features and its labels"
            )
        value = small.value
        if self._returns_next(line.node):
            line.kind = "removed"
            return [pair[0]], [pair[1]], self.file.code(value), []
        assert isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute)
        dataset, used = self._dataset(value.func.value)
        line.kind = "removed"
        needed = self._behind(used, self.lines[: self.lines.index(line)], "data")
        if not needed and isinstance(dataset, cst.Call) and dotted(dataset.func) in self.file.functions:
            return [pair[0]], [pair[1]], self.file.code(dataset), []
        self.dataset = self.file.code(dataset)
        return [pair[0]], [pair[1]], None, needed

    def _dataset(self, node: cst.BaseExpression) -> tuple[cst.BaseExpression, set[str]]:
        """The dataset behind an iterator, and the names that it reads."""
        if isinstance(node, cst.Name):
            made = [line for line in self.lines if node.value in line.binds]
            value = _value(made[0].node) if len(made) == 1 else None
            if value is None:
                raise Blocked("TFM761", node, f"`{node.value}` is not one iterator that is made in this function")
            made[0].kind = "removed"
            return self._dataset(value)
        if isinstance(node, cst.Call):
            method = node.func.attr.value if isinstance(node.func, cst.Attribute) else ""
            if method == "make_one_shot_iterator" and isinstance(node.func, cst.Attribute):
                given = node.args[0].value if self._tf(node) and len(node.args) == 1 else node.func.value
                return given, names_in(given)
        raise Blocked("TFM761", node, "this iterator is not `make_one_shot_iterator` of a dataset")

    def _behind(self, names: set[str], lines: Sequence[_Line], kind: str) -> list[_Line]:
        """The lines that make some names, and so on, which become lines of `kind`."""
        wanted = set(names)
        found: list[_Line] = []
        for line in reversed(lines):
            if line.kind != "removed" and line.binds & wanted:
                if line.kind == "next" or (kind == "data" and line.kind == "graph"):
                    raise Blocked("TFM761", line.node, "the data are computed by the graph of the model")
                if isinstance(line.node, cst.SimpleStatementLine) or line.kind == "graph":
                    found.append(line)
                    wanted |= line.mentions
        return found[::-1]

    def _model(self, batch: set[str]) -> list[_Line]:
        """The lines of the model_fn: what the train_op and its loss need, and what has effects of its own."""
        self.loss = self._loss()
        # What had the names of the batch before has nothing to do with the model.
        at = next(i for i, line in enumerate(self.lines) if line.node is self.next_line)
        for line in self.lines[:at]:
            if line.binds & batch and line.binds - batch:
                raise Blocked("TFM761", line.node, "a name of the batch stands for something else before: rename it")
        known = [line for i, line in enumerate(self.lines) if i > at or not line.binds & batch]
        needed = self._behind({self.loss, self.train_op}, known, "model")
        keep = [line for line in self.lines if line in needed or (line.kind == "graph" and not self._is_idle(line))]
        more = set().union(*(line.mentions for line in keep)) if keep else set()
        return [line for line in self.lines if line in keep or line in self._behind(more, known, "model")]

    def _loss(self) -> str:
        """The name of the loss that is minimized."""
        for call in _methods(self.maker.node):
            if call.func.attr.value == "minimize" and call.args and isinstance(call.args[0].value, cst.Name):
                return call.args[0].value.value
            for arg in call.args:
                if arg.keyword is not None and arg.keyword.value == "loss" and isinstance(arg.value, cst.Name):
                    return arg.value.value
        for line in self.lines:
            for call in _methods(line.node):
                if (
                    call.func.attr.value == "compute_gradients"
                    and call.args
                    and isinstance(call.args[0].value, cst.Name)
                ):
                    return call.args[0].value.value
            for other in calls_in(line.node):
                if self._tf(other) == "tf.gradients" and other.args and isinstance(other.args[0].value, cst.Name):
                    return other.args[0].value.value
        raise Blocked("TFM760", self.maker.node, "which loss is minimized is not known: give it a name")

    def _is_idle(self, line: _Line) -> bool:
        """Whether a statement only computes something that nothing of the training needs."""
        if not isinstance(line.node, cst.SimpleStatementLine) or len(line.node.body) != 1:
            return False
        names = [self._tf(call) for call in calls_in(line.node)]
        if any(name is not None and name.startswith("tf.summary.") for name in names):
            return True
        if not isinstance(line.node.body[0], cst.Assign):
            return False
        called = [c.func for c in calls_in(line.node) if self._tf(c) is None]
        own = [one for one in called if not isinstance(one, cst.Attribute) or one.attr.value not in _PURE]
        return not own and not any(sessions.makes_variables(name) for name in names if name is not None)

    # -- the text ----------------------------------------------------------------------------------------------------

    def _written(
        self,
        features: list[str],
        labels: list[str],
        input_fn: str | None,
        data: list[_Line],
        model: list[_Line],
        steps: tuple[str, str] | None,
    ) -> ParsedFile:
        file, indent = self.file, self.file.module.default_indent
        tf = self._tensorflow()
        self.hooks = self._hooks()
        stays = self._stays(data, model)
        self._check_names(stays)
        taken = {name for line in stays for name in line.binds}
        taken |= {name for name, _ in bindings(self.scope)} - {n for line in self.lines for n in line.binds}
        local = taken if isinstance(self.scope, cst.FunctionDef) else set()
        functions: list[list[Written]] = []
        free: set[str] = set()
        anchor = file.range(self.place.call)[0]
        if input_fn is None:
            name = self._free("train_input_fn")
            lines = [line for line in data if line not in stays]
            self._check_task(data, self.dataset)
            body = [self._moved(line.node, indent) for line in lines]
            last = _value(lines[-1].node) if lines and lines[-1].binds == {self.dataset} else None
            if last is not None:
                comments = [one for one in body.pop().text.split("\n") if one.strip().startswith("#")]
                body += [Written("".join(f"{one}\n" for one in comments), anchor)]
            returned = self.dataset if last is None else self.file.code(last)
            functions.append(
                [
                    Written(f"def {name}():\n", anchor),
                    *_closed_up(body),
                    Written(f"{indent}return {returned}\n", anchor),
                ]
            )
            free |= set().union(names_in(cst.parse_expression(self.dataset)), *(line.mentions for line in lines))
            input_text = name
        else:
            self._check_task([], input_fn)
            input_text = f"lambda: {input_fn}"
        self._check_task(model)
        model_name = self._free("model_fn")
        lines = [line for line in model if line not in stays]
        spec = f"return {tf}.estimator.EstimatorSpec(mode, loss={self.loss}, train_op={self.train_op})\n"
        functions.append(
            [
                Written(f"def {model_name}({features[0]}, {labels[0]}, mode):\n", anchor),
                *_closed_up([self._without_wrapper(line, indent) for line in lines]),
                Written(f"{indent}{spec}", anchor),
            ]
        )
        free |= set().union(*(line.mentions for line in lines)) if lines else set()
        inner = bool(free & local)
        return self._edited(functions, inner, stays, tf, model_name, input_text, steps)

    def _check_names(self, stays: list[_Line]) -> None:
        """What stays must not need what moves, nor change what that reads."""
        moved = [line for line in self.lines if line not in stays]
        left = {name for line in stays for name in line.binds}
        gone = {name for line in moved for name in line.binds} - left
        for line in stays:
            for name in sorted((line.mentions - line.binds) & gone):
                message = f"`{name}` belongs to the graph or the cluster, but is used for something else here"
                raise Blocked("TFM760", line.node, message)
        for statement in self.suffix:
            for name in sorted(names_in(statement) & gone):
                message = f"`{name}` belongs to the graph or the cluster, but is used after the training"
                raise Blocked("TFM760", statement, message)
        for index, line in enumerate(self.lines):
            if line in moved:
                for later in self.lines[index + 1 :]:
                    if later in stays and later.binds & line.mentions:
                        name = sorted(later.binds & line.mentions)[0]
                        raise Blocked("TFM760", later.node, f"`{name}` changes after the graph has read it")

    def _without_wrapper(self, line: _Line, indent: str) -> Written:
        """A line of the model_fn, without the wrapper of its optimizer that makes workers wait for each other."""
        node = line.node
        if self.synchronous is not None and path_to(node, self.synchronous):
            inner = self.synchronous.args[0].value
            small = node.body[0] if isinstance(node, cst.SimpleStatementLine) else None
            if isinstance(small, cst.Assign) and small.value is self.synchronous and isinstance(inner, cst.Name):
                target = small.targets[0].target
                if isinstance(target, cst.Name) and target.value == inner.value:
                    return Written("", self.file.range(node)[0])
            new = node.deep_replace(self.synchronous, inner)
            assert isinstance(new, cst.BaseStatement)
            node = new
        moved = self._moved(node, indent)
        return moved if node is line.node else Written(moved.text, self.file.range(line.node)[0])

    def _stays(self, data: list[_Line], model: list[_Line]) -> list[_Line]:
        """The lines that stay in the driver: those that neither function needs, or that others need as well."""
        moved = [line for line in self.lines if line in data or line in model]
        rest = [line for line in self.lines if line not in moved and line.kind in ("plain", "data", "hooks")]
        left = set().union(*(line.mentions for line in rest), names_in(self.place.call)) if rest else set()
        left |= names_in(self.place.call)
        left |= set().union(*(names_in(s) for s in self.suffix)) if self.suffix else set()
        if self.spec is not None:
            left |= names_in(self.spec) | names_in(self.task[0]) | names_in(self.task[1])
        stay: list[_Line] = list(rest)
        for line in reversed(self.lines):
            plain = line.kind == "plain"
            both = line in data and line in model
            global_name = isinstance(self.scope, cst.Module)  # every function sees it where it is
            if line not in stay and plain and (global_name or line.binds & left or both) and line in moved:
                stay.append(line)
            if line in stay:
                left |= line.mentions
        return self._without_dead([line for line in self.lines if line in stay], data, model)

    def _without_dead(self, stays: list[_Line], data: list[_Line], model: list[_Line]) -> list[_Line]:
        """The lines that stay without those that only served the session and the devices."""
        served = names_in(self.place.call) | (names_in(self.synchronous) if self.synchronous is not None else set())
        served |= set().union(*(line.mentions for line in self.lines if line not in stays))
        served |= self.around
        inside = {name for line in self.lines for name in line.mentions}
        elsewhere = [n.value for n in name_nodes(self.file.module)]
        while True:
            read = [self.file.code(n) for n in (self.spec, *self.task)] if self.spec is not None else []
            left = set().union(*(names_in(cst.parse_expression(text)) for text in read)) if read else set()
            left |= set().union(*(line.mentions - line.binds for line in stays)) if stays else set()
            left |= set().union(*(line.mentions for line in (*data, *model))) if data or model else set()
            left |= set().union(*(names_in(s) for s in self.suffix)) if self.suffix else set()
            left |= names_in(cst.parse_expression(self.hooks)) if self.hooks else set()
            for key in ("checkpoint_dir", *sessions.CONFIG):
                left |= names_in(self.given[key]) if key in self.given else set()
            if isinstance(self.loop, cst.For):
                left |= names_in(self.loop.iter)
            own = [name for name in elsewhere if isinstance(self.scope, cst.Module) and name not in inside]
            dead = [
                line
                for line in stays
                if line.kind == "plain" and _value(line.node) is not None and line.binds
                if line.binds <= served - left - set(own)
            ]
            if not dead:
                return stays
            stays = [line for line in stays if line not in dead]

    def _check_task(self, lines: Sequence[_Line], expression: str = "None") -> None:
        """On parameter servers data and model are made by the coordinator, which is no worker."""
        if self.server is None or self.synchronous is not None:
            return
        index = self.file.code(self.task[1])
        names = {index} if isinstance(self.task[1], cst.Name) else set()
        workers = self._workers()  # one more of them is wanted, since the coordinator does not train
        if workers.isidentifier():
            names.add(workers)
        for line in self.lines:
            reads = line.mentions & names or index in self.file.code(line.node)
            if line.kind == "plain" and reads and not any(self._tf(c) for c in calls_in(line.node)):
                names |= line.binds
        texts: list[tuple[cst.CSTNode, str, set[str]]]
        texts = [(line.node, self.file.code(line.node), line.mentions) for line in lines]
        texts.append((self.place.call, expression, names_in(cst.parse_expression(expression))))
        for node, text, mentions in texts:
            counts = "num_tasks" in text or (workers and not workers.isidentifier() and workers in text)
            if mentions & names or index in text or counts or self._reads_task(mentions, index, names):
                message = "this may differ by worker, but on parameter servers the coordinator makes it for all of them"
                raise Blocked("TFM765", node, message)

    def _reads_task(self, mentions: set[str], index: str, names: set[str]) -> bool:
        """Whether functions of some names read which worker this is; those of other files that speak of it may."""
        word = index.rpartition(".")[2]
        seen: set[str] = set()
        queue = list(mentions)
        while queue:
            name = queue.pop()
            function = self.file.functions.get(name)
            origin = self.file.imports.names.get(name, "")
            if (
                function is None
                and origin
                and any(word in other.text for other in self.others if other is not self.file)
            ):
                if not origin.startswith(("tensorflow", "numpy")):
                    return True
            if function is None or name in seen:
                continue
            seen.add(name)
            inside = names_in(function)
            if index in self.file.code(function) or inside & names:
                return True
            queue += inside
        return False

    def _moved(self, node: cst.BaseStatement, indent: str) -> Written:
        """A statement on another level."""
        text = self.file.module.code_for_node(node)
        if '"""' in text or "'''" in text:
            raise Blocked("TFM760", node, "a string of several lines stands in what moves to another level")
        lines = text.split("\n")
        moved = "\n".join(f"{indent}{line}" if line.strip() else "" for line in lines)
        known = node in self.file.parents
        return Written(moved, self.file.range(node)[0] if known else 0)

    def _free(self, wanted: str) -> str:
        name, number = wanted, 2
        while name in self.file.names:
            name, number = f"{wanted}_{number}", number + 1
        return name

    def _tensorflow(self) -> str:
        text = self.file.code(self.place.call.func)
        if not text.endswith(".train.MonitoredTrainingSession"):
            raise Blocked("TFM760", self.place.call, "TensorFlow is not imported as a module here: import it as `tf`")
        return text[: -len(".train.MonitoredTrainingSession")]

    def _estimator(self, tf: str, model_fn: str, input_fn: str, steps: tuple[str, str] | None) -> tuple[str, str]:
        """The lines of the Estimator and its training, and the Estimator's name."""
        given = self.given
        name = self._free("estimator")
        for key in sessions.NOT_CARRIED:
            if not is_none(given.get(key)):
                raise Blocked("TFM760", given[key], f"`{key}` of the session is not carried over")
        config = []
        for key, setting in sessions.CONFIG.items():
            if not is_none(given.get(key)):
                config.append(f"{setting}={self.file.code(given[key])}")
        arguments = [model_fn]
        if not is_none(given.get("checkpoint_dir")):
            arguments.append(f"model_dir={self.file.code(given['checkpoint_dir'])}")
        if config:
            arguments.append(f"config={tf}.estimator.RunConfig({', '.join(config)})")
        train = [input_fn]
        if self.hooks:
            train.append(f"hooks={self.hooks}")
        if steps is not None:
            if self.server is not None:
                message = (
                    "every worker counts its own steps: give the session a StopAtStepHook, which counts all of them"
                )
                raise Blocked("TFM762", self.loop, message)
            train.append(f"{steps[0]}={steps[1]}")
        line = f"{name} = {tf}.estimator.Estimator({', '.join(arguments)})\n"
        return f"{line}{name}.train({', '.join(train)})\n", name

    def _hooks(self) -> str:
        """What the training is given as its hooks."""
        texts = []
        for key in ("hooks", "chief_only_hooks"):
            value = self.given.get(key)
            if is_none(value):
                continue
            assert value is not None
            new = self._spelled_out(value)
            text = self.file.code(new)
            if text not in ("[]", "()"):
                texts.append(text)
        return " + ".join(texts)

    def _spelled_out(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """A list of hooks in place of its name, without those that make workers wait for each other."""
        if isinstance(node, cst.Name):
            made = [line for line in self.lines if node.value in line.binds]
            value = _value(made[0].node) if made else None
            first = value is not None and made[0].binds == {node.value}
            added = [_appended(line.node) for line in made[1:] if line.kind != "removed"]
            if first and isinstance(value, cst.List) and all(one is not None for one in added):
                for line in made:
                    line.kind = "removed"
                more = [cst.Element(one) for one in added if one is not None]
                elements = [e.with_changes(comma=cst.MaybeSentinel.DEFAULT) for e in value.elements] + more
                node = value.with_changes(elements=elements, lbracket=cst.LeftSquareBracket())
            elif first and isinstance(value, cst.Call) and len(made) == 1 and not self._is_sync_hook(node):
                made[0].kind = "removed"
                node = value
        if isinstance(node, cst.List):
            kept = [e for e in node.elements if not self._is_sync_hook(e.value)]
            new = [cst.Element(self._spelled_out(e.value)) for e in kept]
            return cst.List(new)
        return node

    def _edited(
        self,
        functions: list[list[Written]],
        inner: bool,
        stays: list[_Line],
        tf: str,
        model_fn: str,
        input_fn: str,
        steps: tuple[str, str] | None,
    ) -> ParsedFile:
        file = self.file
        around = path_to(file.module, self.place.call)
        body = self._body()
        own = "" if isinstance(self.scope, cst.Module) else self._indent_of(body[0])
        anchor = file.range(self.place.call)[0]
        text, name = self._estimator(tf, model_fn, input_fn, steps)
        pieces: list[Written] = []
        first = next(i for i, s in enumerate(body) if self._touched(s, stays))
        for statement in body[first:]:
            pieces += self._kept(statement, stays, own)
            if path_to(statement, self.session):
                if inner:
                    if pieces and not pieces[-1].text.endswith("\n\n"):
                        pieces.append(Written("\n", anchor))
                    for function in functions:
                        pieces += [
                            *(Written(_shifted(one.text, own), one.anchor) for one in function),
                            Written("\n", anchor),
                        ]
                pieces.append(Written(_shifted(text, own), anchor))
                pieces += [self._moved(s, own) for s in self.suffix]
                break
        start = self._start_of(body[first])
        last = next(s for s in body if path_to(s, self.session))
        end = self._start_of(body[-1]) + self._length(body[-1])
        if isinstance(self.scope, cst.Module) or last is not body[-1]:
            end = self._start_of(body[-1]) + self._length(body[-1])
        edits = [Edit(start, end, tuple(pieces))]
        if not inner:
            top = around[1]
            before = start if isinstance(self.scope, cst.Module) else self._start_of(top)  # type: ignore[arg-type]
            blank = Written("\n\n", anchor)
            pieces = [piece for function in functions for piece in (blank, *function)]
            if isinstance(self.scope, cst.Module):
                edits = [Edit(start, end, (*pieces, blank, *edits[0].pieces))]
            else:
                edits.append(Edit(before, before, tuple(pieces)))
        made = spread(file.text, edits)
        try:
            module = cst.parse_module(made.text)
        except cst.ParserSyntaxError:
            raise Blocked("TFM760", self.place.call, "the blocks around the training cannot be taken apart") from None
        clusters = {}
        if self.server is not None and self.spec is not None:
            texts = [file.code(node) for node in (self.spec, *self.task)]
            clusters[name] = Cluster(texts[0], texts[1], texts[2], self.synchronous is not None)
        written = replace(file, module=module, spread=made, said=(*file.said, *self.said), clusters=clusters)
        for key in ("imports", "_positions", "parents", "functions", "names", "names_at_top", "constants"):
            written.__dict__.pop(key, None)
        return written

    def _touched(self, statement: cst.BaseStatement, stays: Sequence[_Line]) -> bool:
        return not any(line.node is statement for line in stays)

    def _kept(self, statement: cst.BaseStatement, stays: Sequence[_Line], own: str) -> list[Written]:
        """What of a statement of the scope stays, on the scope's own level."""
        pieces = [self._stayed(line, own) for line in stays if path_to(statement, line.node)]
        if self.joins is not None and path_to(statement, self.joins) and self.synchronous is not None:
            leave = "return" if isinstance(self.scope, cst.FunctionDef) else "raise SystemExit"
            test = self.file.code(self.joins.test)
            note = "  # mirrored workers hold the variables themselves"
            block = f"if {test}:\n{self.file.module.default_indent}{leave}{note}\n"
            pieces.insert(0, Written(_shifted(block, own), self.file.range(self.joins)[0]))
        return pieces

    def _stayed(self, line: _Line, own: str) -> Written:
        """A line that stays, its lists of hooks without those that make workers wait for each other."""
        if line.kind != "hooks":
            return self._moved(line.node, own)
        new = line.node.visit(_Without(self._is_sync_hook))
        assert isinstance(new, cst.SimpleStatementLine | cst.BaseCompoundStatement)
        return Written(self._moved(new, own).text, self.file.range(line.node)[0])

    def _indent_of(self, node: cst.CSTNode) -> str:
        row = self.file.text.splitlines()[self.file.position(node)[0] - 1]
        return row[: len(row) - len(row.lstrip())]

    def _start_of(self, node: cst.BaseStatement) -> int:
        """The offset of the first line that belongs to a statement, its comments included."""
        lines = self.file.text.splitlines(keepends=True)
        nodes = [node, *getattr(node, "decorators", ())]
        row = min(self.file.position(one)[0] for one in nodes) - 1 - len(getattr(node, "leading_lines", ()))
        return sum(len(line) for line in lines[:row])

    def _length(self, node: cst.BaseStatement) -> int:
        """How long the lines of a statement are."""
        start = self._start_of(node)
        rows = self.file.module.code_for_node(node).count("\n")
        lines = self.file.text[start:].splitlines(keepends=True)
        return sum(len(line) for line in lines[:rows])


def _closed_up(pieces: list[Written]) -> list[Written]:
    """The lines of a function without blank ones at its beginning."""
    pieces = [piece for piece in pieces if piece.text]
    return [replace(pieces[0], text=pieces[0].text.lstrip("\n")), *pieces[1:]] if pieces else []


def _shifted(text: str, indent: str) -> str:
    return "\n".join(f"{indent}{line}" if line.strip() else line for line in text.split("\n"))


def _value(node: cst.CSTNode) -> cst.BaseExpression | None:
    """What a line gives to its only target."""
    small = node.body[0] if isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1 else None
    return small.value if isinstance(small, cst.Assign) and len(small.targets) == 1 else None


class _Method(cst.Call):
    func: cst.Attribute


def _methods(node: cst.CSTNode) -> list[_Method]:
    return [call for call in calls_in(node) if isinstance(call.func, cst.Attribute)]  # type: ignore[misc]


def _appended(node: cst.CSTNode) -> cst.BaseExpression | None:
    """What a line appends to a list."""
    small = node.body[0] if isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1 else None
    call = small.value if isinstance(small, cst.Expr) else None
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute) or len(call.args) != 1:
        return None
    return call.args[0].value if call.func.attr.value == "append" else None


class _Without(cst.CSTTransformer):
    """Lists without some elements."""

    def __init__(self, drop: Callable[[cst.BaseExpression | None], bool]) -> None:
        super().__init__()
        self.drop = drop

    def leave_List(self, original_node: cst.List, updated_node: cst.List) -> cst.List:
        both = zip(original_node.elements, updated_node.elements, strict=True)
        kept = [new for old, new in both if not self.drop(old.value)]
        if len(kept) == len(updated_node.elements):
            return updated_node
        if kept:
            kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        return updated_node.with_changes(elements=kept)


class _Deeds(cst.CSTVisitor):
    """The calls of a loop, and what ends it."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[cst.Call] = []
        self.ends: list[cst.CSTNode] = []
        self.places: list[cst.CSTNode] = []  # parts of objects that are assigned to

    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
        targets: list[cst.BaseExpression] = [node.target]
        while targets:
            target = targets.pop()
            if isinstance(target, cst.Tuple | cst.List):
                targets += [element.value for element in target.elements]
            elif not isinstance(target, cst.Name):
                self.places.append(target)

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        if not isinstance(node.target, cst.Name):
            self.places.append(node.target)

    def visit_Global(self, node: cst.Global) -> None:
        self.places.append(node)

    def visit_Continue(self, node: cst.Continue) -> None:
        self.ends.append(node)

    def visit_Call(self, node: cst.Call) -> None:
        self.calls.append(node)

    def visit_Break(self, node: cst.Break) -> None:
        self.ends.append(node)

    def visit_Return(self, node: cst.Return) -> None:
        self.ends.append(node)

    def visit_Raise(self, node: cst.Raise) -> None:
        self.ends.append(node)
