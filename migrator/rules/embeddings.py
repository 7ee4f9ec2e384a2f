"""Tables of embeddings that are variables: `tf.get_variable` whose rows `tf.nn.embedding_lookup` looks up."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from migrator.findings import Severity
from migrator.names.imports import ImportMap
from migrator.program.calls import bind, calls_in, is_none, string
from migrator.program.parsed import Blocked, name_nodes
from migrator.rules.rule import Rule
from migrator.rules.site import call_text
from migrator.walking import walk

RULES = (
    Rule(
        "TFM796",
        "an embedding table whose rows the lookup would mix up",
        Severity.MANUAL,
        """
`tf.get_variable` of a table whose rows `tf.nn.embedding_lookup` looks up, and that nothing else reads, becomes a
`tf.keras.layers.Embedding` at its place, which is called where the rows are looked up:

```python
table = tf.keras.layers.Embedding(WORDS, 16, embeddings_initializer="glorot_uniform", name="table")
net = table(features["words"])
```

Refused is a lookup in a table that a partitioner splits, without `partition_strategy="div"`. The default, `"mod"`,
gives the ids to the parts in turn, so that the row of an id is not the row of that number: of 12 rows in two parts, id
1 is row 6. A table that was trained so means another thing to a layer. Where no such checkpoint has to be read, give
the lookup `partition_strategy="div"`, which draws the same values for other rows.
""",
    ),
)

_VARIABLE = (
    *("name", "shape", "dtype", "initializer", "regularizer", "trainable", "collections", "caching_device"),
    *("partitioner", "validate_shape", "use_resource", "custom_getter", "constraint", "synchronization", "aggregation"),
)
_LOOKUP = ("params", "ids", "partition_strategy", "name", "validate_indices", "max_norm")
_KNOWN = frozenset(("name", "shape", "dtype", "initializer", "partitioner"))


@dataclass(frozen=True)
class Tables:
    """The tables of a function.

    `variables` are the calls that make them, with the partitioners that they are given themselves (None: none), and
    `lookups` the calls that look rows up, whether as `"div"` says, by the call that makes their table.
    """

    variables: Mapping[cst.CSTNode, cst.BaseExpression | None]
    lookups: Mapping[cst.CSTNode, tuple[cst.CSTNode, bool]]


NO_TABLES = Tables({}, {})


def tables(function: cst.FunctionDef, imports: ImportMap) -> Tables:
    """The tables that are made under a name of their own and only looked up in."""
    made = _Made(imports)
    walk(function.body, made)
    mentions: dict[str, int] = {}
    for node in name_nodes(function.body):
        mentions[node.value] = mentions.get(node.value, 0) + 1
    variables: dict[cst.CSTNode, cst.BaseExpression | None] = {}
    lookups: dict[cst.CSTNode, tuple[cst.CSTNode, bool]] = {}
    for name, call in made.found.items():
        given = _variable(call, imports)
        found = _lookups(name, function, imports)
        # Each mention is that of a lookup, but the one where the table is made.
        if given is None or not found or mentions[name] != len(found) + 1:
            continue
        variables[call] = given.get("partitioner")
        lookups.update({node: (call, divided) for node, divided in found.items()})
    return Tables(variables, lookups)


def layer(code: Sequence[str]) -> str:
    """The layer in the place of a variable; `code` is the text of its name, rows, columns and initializer."""
    name, rows, columns, initializer = code
    return call_text(
        "tf.keras.layers.Embedding", [rows, columns, f"embeddings_initializer={initializer}", f"name={name}"]
    )


def arguments(call: cst.Call) -> tuple[cst.BaseExpression, Sequence[cst.BaseExpression], cst.BaseExpression | None]:
    """The name, the shape and the initializer (None: the default) of a table."""
    given = bind(call, _VARIABLE, "tf.get_variable", "TFM203")
    shape = given["shape"]
    assert isinstance(shape, (cst.List, cst.Tuple))
    initializer = given.get("initializer")
    return given["name"], [e.value for e in shape.elements], None if is_none(initializer) else initializer


def table_of(call: cst.Call) -> cst.BaseExpression:
    """What a lookup looks up in."""
    return bind(call, _LOOKUP, "tf.nn.embedding_lookup", "TFM203")["params"]


def ids(call: cst.Call) -> cst.BaseExpression:
    """What a lookup looks up."""
    return bind(call, _LOOKUP, "tf.nn.embedding_lookup", "TFM203")["ids"]


def _variable(call: cst.Call, imports: ImportMap) -> dict[str, cst.BaseExpression] | None:
    """The arguments of a call that makes a table of a plain form."""
    try:
        given = bind(call, _VARIABLE, "tf.get_variable", "TFM203")
    except Blocked:
        return None
    given = {key: value for key, value in given.items() if not is_none(value)}
    name, shape, initializer = given.get("name"), given.get("shape"), given.get("initializer")
    named = string(name) if name is not None else None
    if not given.keys() <= _KNOWN or named is None or not re.fullmatch(r"[A-Za-z0-9_.-]+", named):
        return None
    if not isinstance(shape, (cst.List, cst.Tuple)) or len(shape.elements) != 2:
        return None
    if any(isinstance(element, cst.StarredElement) for element in shape.elements):
        return None
    if "dtype" in given and imports.resolve(given["dtype"]) != "tf.float32":
        return None
    return given if initializer is None or isinstance(initializer, cst.Call) else None


def _lookups(name: str, function: cst.FunctionDef, imports: ImportMap) -> dict[cst.CSTNode, bool]:
    """The lookups in a table, and whether each divides the ids as a partitioner does."""
    found: dict[cst.CSTNode, bool] = {}
    for call in calls_in(function.body):
        if imports.resolve(call.func) != "tf.nn.embedding_lookup":
            continue
        try:
            given = bind(call, _LOOKUP, "tf.nn.embedding_lookup", "TFM203")
        except Blocked:
            continue
        params = given.get("params")
        if not isinstance(params, cst.Name) or params.value != name or not is_none(given.get("max_norm")):
            continue
        if "ids" in given and not any(node.value == name for node in name_nodes(given["ids"])):
            strategy = given.get("partition_strategy")
            found[call] = strategy is not None and string(strategy) == "div"
    return found


class _Made(cst.CSTVisitor):
    """The names that are given a variable once, and nothing else, outside of loops and nested functions."""

    def __init__(self, imports: ImportMap) -> None:
        super().__init__()
        self.imports = imports
        self.found: dict[str, cst.Call] = {}

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return False

    def visit_Lambda(self, node: cst.Lambda) -> bool:
        return False

    def visit_For(self, node: cst.For) -> bool:
        return False

    def visit_While(self, node: cst.While) -> bool:
        return False

    def visit_Assign(self, node: cst.Assign) -> None:
        target = node.targets[0].target
        if len(node.targets) == 1 and isinstance(target, cst.Name) and isinstance(node.value, cst.Call):
            if self.imports.resolve(node.value.func) == "tf.get_variable":
                self.found[target.value] = node.value
