"""The three partitioners, from model scope to the strategy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from migrator.findings import Severity
from migrator.ir.values import Constant, Operation, Value
from migrator.names.imports import ImportMap, dotted
from migrator.program.calls import bind, calls_in, is_none, number, string
from migrator.program.own_weights import OwnWeights
from migrator.program.parsed import Blocked, ParsedFile, names_in
from migrator.program.scopes import bindings, path_to
from migrator.rules.rule import Example, Rule
from migrator.rules.scopes import read_scopes
from migrator.rules.site import CallRule, Site, call_text, expression
from migrator.walking import walk

RULES = (
    Rule(
        "TFM701",
        "partitioners become tf.distribute.experimental.partitioners",
        Severity.MANUAL,
        """
A TensorFlow 1 partitioner belongs to a variable scope, a TensorFlow 2 one to the whole ParameterServerStrategy, so it
moves there. The two families give the same shards (compared on 3,000 random shapes), but their positional arguments
stand in another order; keywords are written.

It may be chosen when the program runs: `A if test else None` stays a choice (also as an `if` that does nothing else:
`if test: scope.set_partitioner(A)`), and `given or A` becomes `A` where nothing is given. The number of servers,
`config.num_ps_replicas`, is `cluster.num_tasks("ps")` in the function that makes the strategy: both count the servers
in TF_CONFIG. Names and params that it reads are put in their places; what then is left has to be known at the top of
the file that makes the strategy.

What remains in the way: an `axis` other than 0, because ParameterServerStrategy splits the first axis only, and a
partitioner that is a custom function, or that a helper is given: make one of the three in the model_fn.
""",
        (
            Example(
                "tf.fixed_size_partitioner(2)",
                "tf.distribute.experimental.partitioners.FixedShardsPartitioner(num_shards=2)",
            ),
            Example(
                "tf.min_max_variable_partitioner(4, min_slice_size=1 << 10)",
                "tf.distribute.experimental.partitioners.MinSizePartitioner(min_shard_bytes=1 << 10, max_shards=4)",
            ),
            Example(
                "tf.variable_axis_size_partitioner(1 << 20, max_shards=8)",
                "tf.distribute.experimental.partitioners.MaxSizePartitioner(max_shard_bytes=1 << 20, max_shards=8)",
            ),
            Example("tf.fixed_size_partitioner(2, axis=1)", None),
        ),
    ),
    Rule(
        "TFM702",
        "more than one partitioner in a program",
        Severity.MANUAL,
        """
ParameterServerStrategy takes one partitioner for all variables, which gets the shape and the type of a variable and not
its scope. Two different ones are supported where both are those of named scopes of the model_fn and the strategy is
made in its file: a `ScopePartitioner` keeps them apart. Elsewhere choose one, or leave the smaller variables whole with
a MinSizePartitioner. How variables are split changes no number. The bridge splits what TensorFlow 1 split: leave
`--style native` out.
""",
    ),
    Rule(
        "TFM890",
        "the partitioner of one scope applies to all variables",
        Severity.REVIEW,
        """
The partitioner of a variable scope splits the variables of that scope, that of a ParameterServerStrategy all variables
of the program. Where every partitioner is one of a named scope of the model_fn, and the strategy is made in its file,
the program gets a `ScopePartitioner`, which splits what is made in a `with` of it as TensorFlow 1 did, and leaves the
rest whole: nothing is reported then. Elsewhere (a partitioner of a helper, or one that counts the servers) the layers
outside of the scope are split now, too, where the partitioner finds them large enough. No number changes: the parts of
a variable are one variable to Keras, in checkpoints as well. To leave small ones whole, take a MinSizePartitioner with
a `min_shard_bytes` above their size.
""",
    ),
    Rule(
        "TFM705",
        "a variable scope does more than name and partition",
        Severity.MANUAL,
        """
`tf.variable_scope("name")` becomes `tf.name_scope("name")`, and its partitioner moves to the strategy. A scope that
sets an initializer, a regularizer, a custom getter or reuse changes what the layers inside do: give those arguments
to the layers instead. The bridge keeps such code.

Layers that have one name in several scopes get names of their own, since Keras wants one for each in all the model:
`hidden` of the scope `encoder` is called `encoder_hidden`.
""",
    ),
)

_MODULE = "tf.distribute.experimental.partitioners"
# TensorFlow 1 function -> (its parameters, TensorFlow 2 class, TensorFlow 2 keyword by TensorFlow 1 parameter in the
# order of the TensorFlow 2 signature, defaults to write out)
TABLE: dict[str, tuple[tuple[str, ...], str, dict[str, str], dict[str, str]]] = {
    "fixed_size_partitioner": (("num_shards", "axis"), "FixedShardsPartitioner", {"num_shards": "num_shards"}, {}),
    "min_max_variable_partitioner": (
        ("max_partitions", "axis", "min_slice_size", "bytes_per_string_element"),
        "MinSizePartitioner",
        {
            "min_slice_size": "min_shard_bytes",
            "max_partitions": "max_shards",
            "bytes_per_string_element": "bytes_per_string",
        },
        {"min_slice_size": "256 << 10", "max_partitions": "1"},
    ),
    "variable_axis_size_partitioner": (
        ("max_shard_bytes", "axis", "bytes_per_string_element", "max_shards"),
        "MaxSizePartitioner",
        {
            "max_shard_bytes": "max_shard_bytes",
            "max_shards": "max_shards",
            "bytes_per_string_element": "bytes_per_string",
        },
        {},
    ),
}


@dataclass(frozen=True)
class Given:
    """What a partitioner may read when the program runs: the names of the model_fn's `config` and `params` (None: it
    has none), and the value of a key of the params (None: there is no such key), which raises Blocked where that is not
    known.
    """

    config: str | None
    params: str | None
    param: Callable[[str], cst.BaseExpression | None]


def expanded(
    node: cst.BaseExpression,
    definition: Callable[[str], cst.BaseExpression | None],
    local: Callable[[str], cst.BaseExpression | None],
) -> cst.BaseExpression:
    """A partitioner with the values of names in their places: its own name's, and those that are `local` to a function.

    Raises Blocked (TFM701) if none of the three is in it.
    """
    value: cst.BaseExpression | None = node
    known: set[str] = set()
    while isinstance(value, cst.Name) and value.value not in known and not is_none(value):
        known.add(value.value)
        value = definition(value.value)
    if value is None or not isinstance(value, (cst.Call, cst.IfExp, cst.BooleanOperation)):
        raise Blocked("TFM701", node, "this partitioner is not one of the three supported ones")
    made = value.visit(_Expanded(local, frozenset(known)))
    assert isinstance(made, cst.BaseExpression)
    return made


class _Expanded(cst.CSTTransformer):
    """Puts the values of names in their places, and the values of names in these."""

    def __init__(self, local: Callable[[str], cst.BaseExpression | None], seen: frozenset[str]) -> None:
        super().__init__()
        self.local = local
        self.seen = seen

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        return False

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        value = original_node.value.visit(self)
        assert isinstance(value, cst.BaseExpression)
        return updated_node.with_changes(value=value)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(keyword=original_node.keyword)

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        value = None if original_node.value in self.seen else self.local(original_node.value)
        if value is None:
            return updated_node
        made = value.visit(_Expanded(self.local, self.seen | {original_node.value}))
        assert isinstance(made, cst.BaseExpression)
        return _in_parentheses(made)


def _in_parentheses(node: cst.BaseExpression) -> cst.BaseExpression:
    plain = isinstance(node, (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.BaseNumber, cst.BaseString))
    if plain or node.lpar:
        return node
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def for_strategy(
    node: cst.CSTNode,
    expression: cst.BaseExpression,
    imports: ImportMap,
    code: Callable[[cst.CSTNode], str],
    given: Given,
) -> str | None:
    """The partitioner that a strategy is given for one of a model_fn (at `node`); None: variables stay whole.

    Raises Blocked (TFM701) for what cannot be carried over.
    """
    if "cluster" in names_in(expression):
        raise Blocked(
            "TFM701",
            node,
            "the partitioner reads `cluster`, which becomes the name of the ClusterSpec where it moves to: rename it",
        )
    made = _Chosen(node, imports, code, given).choose(expression)
    for call in calls_in(made):
        name = imports.resolve(call.func) or dotted(call.func) or ""
        if name not in _WITHOUT_EFFECT and not name.startswith(("tf.", "math.")):
            message = f"the partitioner calls `{code(call)}`, which would run again where the strategy is created"
            raise Blocked("TFM701", node, f"{message}: assign its value to a name outside the model_fn")
    return None if is_none(made) else code(made)


def of_values(values: Sequence[Value]) -> str | None:
    """The same for what a partitioner is known to be, each time that the model_fn runs: a call with constants.

    None where that is not known, or differs.
    """
    texts = {_of_value(value) for value in values}
    return texts.pop() if len(texts) == 1 else None


def _of_value(value: Value) -> str | None:
    table = TABLE.get(value.symbol.removeprefix("tf.")) if isinstance(value, Operation) else None
    if table is None or not isinstance(value, Operation):
        return None
    parameters, keras, keywords, defaults = table
    given = {**dict(zip(parameters, value.args)), **value.kwargs}
    known = {name: one.value for name, one in given.items() if isinstance(one, Constant)}
    if len(known) != len(given) or not known.keys() <= set(parameters) or known.pop("axis", 0) != 0:
        return None
    texts = {**defaults, **{name: repr(one) for name, one in known.items() if one is not None}}
    return call_text(f"{_MODULE}.{keras}", [f"{keywords[p]}={texts[p]}" for p in keywords if p in texts])


#: Calls that may be made once more, where the strategy is made.
_WITHOUT_EFFECT = {
    *("abs", "bool", "float", "int", "len", "max", "min", "round", "str", "os.environ.get", "os.getenv"),
    "cluster.num_tasks",
}


class _Chosen(cst.CSTTransformer):
    """Rewrites a partitioner for the function that makes the strategy, where `cluster` is the cluster's spec."""

    def __init__(
        self, place: cst.CSTNode, imports: ImportMap, code: Callable[[cst.CSTNode], str], given: Given
    ) -> None:
        super().__init__()
        self.place = place
        self.imports = imports
        self.code = code
        self.given = given

    def choose(self, node: cst.BaseExpression) -> cst.BaseExpression:
        if is_none(node):
            return cst.Name("None")
        if isinstance(node, cst.IfExp):
            return self._choose_if(node)
        if isinstance(node, cst.BooleanOperation) and isinstance(node.operator, cst.Or):
            left = node.left if self._is_made(node.left) else self._value(node.left)
            if is_none(left):
                return self.choose(node.right)
            if self._is_made(left):
                return self.choose(left)
        if not self._is_made(node):
            what = self.code(node)
            raise Blocked(
                "TFM701", self.place, f"`{what}` is not one of the three supported partitioners, nor a choice of one"
            )
        assert isinstance(node, cst.Call)
        call = self._value(node)
        assert isinstance(call, cst.Call)
        name = self.imports.resolve(node.func)
        assert name is not None
        return _partitioner(Site(name, call, call, None, True, self.code, imports=self.imports))

    def _choose_if(self, node: cst.IfExp) -> cst.BaseExpression:
        if isinstance(node.test, cst.Name) and node.test.value == self.given.config:
            return self.choose(node.body)  # an Estimator always hands its config over
        first, second = self.choose(node.body), self.choose(node.orelse)
        if is_none(first) and is_none(second):
            return first
        return cst.IfExp(test=self._value(node.test), body=first, orelse=second)

    def _is_made(self, node: cst.BaseExpression) -> bool:
        return isinstance(node, cst.Call) and self.imports.resolve(node.func) in CALLS

    def _value(self, node: cst.BaseExpression) -> cst.BaseExpression:
        made = node.visit(self)
        assert isinstance(made, cst.BaseExpression)
        return made

    def leave_IfExp(self, original_node: cst.IfExp, updated_node: cst.IfExp) -> cst.BaseExpression:
        known = isinstance(original_node.test, cst.Name) and original_node.test.value == self.given.config
        return updated_node.body if known else updated_node

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        owner = dotted(original_node.value)
        if owner is not None and owner == self.given.config:
            if original_node.attr.value != "num_ps_replicas":
                message = (
                    f"the partitioner reads `config.{original_node.attr.value}`: only `num_ps_replicas` is supported"
                )
                raise Blocked("TFM701", self.place, message)
            return expression('cluster.num_tasks("ps")')
        if owner is not None and owner == self.given.params and original_node.attr.value != "get":
            return self._param(original_node.attr.value, None)
        return updated_node

    def leave_Subscript(self, original_node: cst.Subscript, updated_node: cst.Subscript) -> cst.BaseExpression:
        if dotted(original_node.value) != self.given.params or self.given.params is None:
            return updated_node
        index = original_node.slice[0].slice
        return self._param(string(index.value) if isinstance(index, cst.Index) else None, None)

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        if self.given.params is None or dotted(original_node.func) != f"{self.given.params}.get":
            return updated_node
        default = original_node.args[1].value if len(original_node.args) > 1 else cst.Name("None")
        return self._param(string(original_node.args[0].value) if original_node.args else None, default)

    def _param(self, key: str | None, default: cst.BaseExpression | None) -> cst.BaseExpression:
        if key is None:
            raise Blocked("TFM701", self.place, "the partitioner reads a param with a computed key: write a literal")
        value = self.given.param(key)
        if value is None:
            value = default
        if value is None:
            raise Blocked("TFM701", self.place, f"the partitioner reads `{key}` of `params`, which is missing there")
        return _in_parentheses(value)


def _partitioner(site: Site) -> cst.BaseExpression:
    parameters, keras, keywords, defaults = TABLE[site.name.rpartition(".")[2]]
    bound = site.arguments(parameters, "TFM701")
    axis = bound.pop("axis", None)
    if axis is not None and number(axis) != 0:
        raise Blocked("TFM701", site.original, "`axis` must be 0: ParameterServerStrategy splits the first axis only")
    texts = {**defaults, **{name: site.code(value) for name, value in bound.items() if not is_none(value)}}
    return expression(call_text(f"{_MODULE}.{keras}", [f"{keywords[p]}={texts[p]}" for p in keywords if p in texts]))


CALLS: dict[str, CallRule] = {f"tf.{name}": _partitioner for name in TABLE}


def divides_rows(node: cst.BaseExpression, imports: ImportMap) -> bool:
    """Whether every partitioner in an expression is known to divide the first axis."""
    for call in calls_in(node):
        table = TABLE.get((imports.resolve(call.func) or "").removeprefix("tf."))
        if table is None:
            continue
        try:
            axis = bind(call, table[0], "a partitioner", "TFM701").get("axis")
        except Blocked:
            return False
        if axis is not None and number(axis) != 0:
            return False
    return True


def told_to_a_scope(statement: cst.CSTNode) -> cst.Call | None:
    """The call that a statement `scope.set_partitioner(...)` consists of, whatever scope that is."""
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return None
    small = statement.body[0]
    call = small.value if isinstance(small, cst.Expr) else None
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute) or len(call.args) != 1:
        return None
    return call if call.func.attr.value == "set_partitioner" else None


def is_variable_scope(node: cst.BaseExpression, around: Sequence[cst.CSTNode], imports: ImportMap) -> bool:
    """Whether an expression is surely a variable scope: that of its place, or a name for one.

    `around` are the nodes around it, the outermost first.
    """
    if isinstance(node, cst.Call):
        return imports.resolve(node.func) == "tf.get_variable_scope"
    if not isinstance(node, cst.Name):
        return False
    for index in range(len(around) - 1, -1, -1):
        scope = around[index]
        if not isinstance(scope, (cst.FunctionDef, cst.Module)):
            continue
        bound = [n for name, n in bindings(scope) if name == node.value and not isinstance(n, cst.Attribute)]
        if bound:
            return all(_binds_scope(n, [*around[:index], *path_to(scope, n)], imports) for n in bound)
    return False


def _binds_scope(node: cst.CSTNode, path: Sequence[cst.CSTNode], imports: ImportMap) -> bool:
    """Whether `with tf.variable_scope(...) as name` or `name = tf.get_variable_scope()` binds a name."""
    above = path[-3] if len(path) > 2 else None
    if isinstance(above, cst.WithItem) and isinstance(above.item, cst.Call):
        return imports.resolve(above.item.func) == "tf.variable_scope"
    if not isinstance(above, cst.Assign):
        return False
    again = isinstance(above.value, cst.Name) and isinstance(node, cst.Name) and above.value.value == node.value
    return not again and is_variable_scope(above.value, path[:-3], imports)


def set_in_scope(statement: cst.CSTNode, imports: ImportMap) -> cst.BaseExpression | None:
    """The partitioner of a statement `tf.get_variable_scope().set_partitioner(...)`."""
    call = told_to_a_scope(statement)
    scope = call.func.value if call is not None and isinstance(call.func, cst.Attribute) else None
    if call is None or not isinstance(scope, cst.Call):
        return None
    return call.args[0].value if imports.resolve(scope.func) == "tf.get_variable_scope" else None


_LAYERS = ("tf.layers.", "tf.contrib.layers.", "tf.keras.layers.", "tf.contrib.slim.")
_WITHOUT_VARIABLES = ("dropout", "flatten", "pool", "input", "activation", "lambda", "concat", "reshape")


def makes_variables(name: str) -> bool:
    """Whether a function of TensorFlow 1 may be one that makes the variables of a layer."""
    if name in ("tf.feature_column.input_layer", "tf.feature_column.linear_model"):
        return True
    last = name.rpartition(".")[2].lower()
    return name.startswith(_LAYERS) and not any(word in last for word in _WITHOUT_VARIABLES)


@dataclass(frozen=True)
class Made:
    """A matrix that a model_fn makes: a table of embeddings or the kernel of a dense layer.

    `split` says whether it is made under a partitioner, `name` its layer's name, `size` the rows of the table or the
    columns of the kernel, where they are known.
    """

    table: bool
    split: bool
    name: str | None
    size: int | None


def matrices_made(
    function: cst.FunctionDef, file: ParsedFile, tables: Mapping[cst.CSTNode, cst.BaseExpression | None]
) -> tuple[Made, ...] | None:
    """The matrices that a model_fn makes, in the order of its text; None where it is not known which a partitioner has.

    That is so for layers that are made in a nested function, and for those that are made here and called there: the
    scope in which they are called counts. `tables` are calls that make tables, with partitioners of their own.
    """
    found = _Made(function, file, tables)
    walk(function, found)
    return tuple(found.made) if found.told else None


def literal(node: cst.BaseExpression | None) -> int | None:
    """The value of an integer that is written out."""
    return int(node.evaluated_value) if isinstance(node, cst.Integer) else None


_KERNELS = ("dense", "fully_connected", "linear")


class _Made(cst.CSTVisitor):
    def __init__(
        self, function: cst.FunctionDef, file: ParsedFile, tables: Mapping[cst.CSTNode, cst.BaseExpression | None]
    ) -> None:
        super().__init__()
        self.file = file
        self.tables = tables
        self.told = True
        self.made: list[Made] = []
        self._function = function
        self._scopes: set[cst.With] = set()  # those around that have a partitioner
        self._nested = 0
        self._rest = False  # whether the scope of the model itself was given one
        self._called: set[cst.CSTNode] = set()

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self._nested += node is not self._function

    def leave_FunctionDef(self, original_node: cst.FunctionDef) -> None:
        self._nested -= original_node is not self._function

    def visit_Lambda(self, node: cst.Lambda) -> None:
        self._nested += 1

    def leave_Lambda(self, original_node: cst.Lambda) -> None:
        self._nested -= 1

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> None:
        given = set_in_scope(node, self.file.imports)
        if given is not None:
            self._rest = not is_none(given)
            self.told = self.told and node in self._function.body.body

    def visit_With(self, node: cst.With) -> None:
        try:
            scopes = read_scopes(node, self.file.imports, OwnWeights())
        except Blocked:
            self.told = False
            return
        if any(scope.partitioner is not None for scope in scopes.values()):
            self._scopes.add(node)

    def leave_With(self, original_node: cst.With) -> None:
        self._scopes.discard(original_node)

    def visit_Call(self, node: cst.Call) -> None:
        self._called.add(node.func)
        name = self.file.imports.tensorflow(node.func) or ""
        last = name.rpartition(".")[2]
        table = node in self.tables or last == "Embedding"
        if not table and not makes_variables(name):
            return
        self.told = self.told and not self._nested and (not last[0].isupper() or node in self._called)
        if not table and last.lower() not in _KERNELS:
            return
        split = self._rest or bool(self._scopes) or not is_none(self.tables.get(node))
        arguments = {a.keyword.value: a.value for a in node.args if a.keyword is not None}
        given = [a.value for a in node.args if a.keyword is None]
        named = given[0] if node in self.tables and given else arguments.get("name")
        size = None
        if not table:
            position = 0 if last[0].isupper() else 1
            size = arguments.get("units", given[position] if len(given) > position else None)
        elif node not in self.tables:
            size = arguments.get("input_dim", given[0] if given else None)
        self.made.append(Made(table, split, None if named is None else string(named), literal(size)))
