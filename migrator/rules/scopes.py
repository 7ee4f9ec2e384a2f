"""`tf.variable_scope` to `tf.name_scope`; its partitioner goes to the strategy."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from migrator.names.imports import ImportMap
from migrator.program.calls import bind, is_false, is_none, string
from migrator.program.own_weights import OwnWeights
from migrator.program.parsed import Blocked
from migrator.rules.site import CallRule, Site

_PARAMETERS = (
    "name_or_scope",
    "default_name",
    "values",
    "initializer",
    "regularizer",
    "caching_device",
    "partitioner",
    "custom_getter",
    "reuse",
    "dtype",
    "use_resource",
    "constraint",
    "auxiliary_name_scope",
)
_HARMLESS = ("values", "caching_device", "use_resource", "auxiliary_name_scope")


@dataclass(frozen=True)
class Scope:
    """A `with tf.variable_scope(...)`: its name (None: the enclosing scope, so nothing) and its partitioner."""

    name: cst.BaseExpression | None
    partitioner: cst.BaseExpression | None


def read_scopes(node: cst.With, imports: ImportMap, own: OwnWeights) -> dict[cst.WithItem, Scope]:
    """The variable scopes that a with statement enters, by their items. Raises Blocked (TFM705).

    `own` says which scopes share no variables, so that the weights inside are given what they set.
    """
    return {item: _read(item, imports, own) for item in node.items if _is_scope(item, imports)}


def _read(item: cst.WithItem, imports: ImportMap, own: OwnWeights) -> Scope:
    if item.asname is not None and item.item not in own.unread:
        raise Blocked("TFM705", item, "the variable scope is bound with `as`, and that name is read: remove the `as`")
    assert isinstance(item.item, cst.Call)
    bound = bind(item.item, _PARAMETERS, "tf.variable_scope", "TFM705")
    for key, value in bound.items():
        if key in ("name_or_scope", "default_name", "partitioner", *_HARMLESS):
            continue
        carried = item.item in own.scopes and key in ("reuse", "initializer", "regularizer")
        if not carried and not is_none(value) and not (key == "reuse" and is_false(value)):
            raise Blocked("TFM705", value, f"the variable scope sets `{key}`: pass it to the layers inside")
    name, default = bound.get("name_or_scope"), bound.get("default_name")
    if is_none(name):
        name = default
    elif name is not None and default is not None and string(name) is None and string(default) is not None:
        space = cst.SimpleWhitespace(" ")
        name = cst.BooleanOperation(name, cst.Or(space, space), default)  # a parameter that is None most of the time
    if isinstance(name, cst.Call):
        if imports.resolve(name.func) != "tf.get_variable_scope":
            raise Blocked(
                "TFM705", name, "the name of the variable scope is computed by a call: assign it to a name first"
            )
        name = None
    partitioner = bound.get("partitioner")
    return Scope(name, None if is_none(partitioner) else partitioner)


def _is_scope(item: cst.WithItem, imports: ImportMap) -> bool:
    return isinstance(item.item, cst.Call) and imports.resolve(item.item.func) == "tf.variable_scope"


def _name_scope(site: Site) -> cst.BaseExpression:
    """`tf.name_scope(name)`: the default counts where there is no name only, and the values only say in which graph."""
    given = site.arguments(("name", "default_name", "values"), "TFM204")
    name, default = given.get("name"), given.get("default_name")
    if is_none(name):
        name = default
    elif not is_none(default) and string(name) is None:
        message = "`default_name` of `tf.name_scope` applies if the name is None, which cannot be told here"
        raise Blocked("TFM204", default, message)
    if name is None or is_none(name):
        raise Blocked("TFM204", site.original, "`tf.name_scope` has no name: pass one")
    if len(site.call.args) == 1 and site.call.args[0].keyword is None:
        return site.call
    return site.call.with_changes(args=[cst.Arg(name)], whitespace_before_args=cst.SimpleWhitespace(""))


CALLS: dict[str, CallRule] = {"tf.name_scope": _name_scope}
