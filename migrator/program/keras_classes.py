"""Keras layers and models that are classes of the program: whether their layers train where a call says so.

`call(self, inputs, training)` hands what it is told on to the layers that do something else in training. Then a
`training=` that is the test for TRAIN mode goes, as it does of Keras' own classes: `fit` and `evaluate` say it.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from migrator.program import keras_calls
from migrator.program.calls import calls_in, is_false, is_none, nodes_in
from migrator.program.classes import find_class
from migrator.program.parsed import ParsedFile, Project, name_nodes
from migrator.program.scopes import bindings
from migrator.walking import of_kinds

_BASES = (*keras_calls.FUNCTIONALS, "tf.keras.layers.Layer")
_METHODS = ("__init__", "build", "call", "compute_output_shape")
_TRAINING = "training"


def own_class(project: Project, file: ParsedFile, node: cst.BaseExpression) -> tuple[ParsedFile, cst.ClassDef] | None:
    """The class of the program that an expression names, where its layers train as its calls are told."""
    found = find_class(project, file, file.module, node)
    if found is not None and sum(name == found[1].name.value for name, _ in bindings(found[0].module)) != 1:
        return None
    return found if found is not None and _tells_its_layers(*found) else None


def _tells_its_layers(file: ParsedFile, owner: cst.ClassDef) -> bool:
    named = [keras_calls.one_value((file.module,), a.value) for a in owner.bases if a.keyword is None and not a.star]
    bases = [file.imports.tensorflow(one) for one in named if one is not None]
    if len(bases) != len(owner.bases) or len(bases) != 1 or bases[0] not in _BASES or owner.decorators:
        return False
    functions = {one.name.value: one for one in owner.body.body if isinstance(one, cst.FunctionDef)}
    if not functions.keys() <= {*_METHODS} or "call" not in functions:
        return False
    call = functions["call"]
    told = {one.name.value: one.default for one in (*call.params.params[1:], *call.params.kwonly_params)}
    if call.decorators or call.params.star_kwarg is not None or "mask" in told:
        return False
    default = told.get(_TRAINING)
    if not is_none(default) and not is_false(default):  # it trains where nobody says that it does not
        return False
    phased = keras_calls.mentions(file, owner, keras_calls.PHASED)
    names = list(_given_to_self(file, functions, phased))
    if len(names) != len(phased) or len(set(names)) != len(names):
        return False
    return not phased or (_TRAINING in told and _passes_on(owner, call, frozenset(names)))


def _given_to_self(
    file: ParsedFile, functions: dict[str, cst.FunctionDef], phased: list[cst.BaseExpression]
) -> Iterator[str]:
    """The attributes of the object that layers are given to, where each is made for one attribute alone."""
    for name in ("__init__", "build"):
        for line in nodes_in(functions[name].body) if name in functions else ():
            if not isinstance(line, cst.Assign) or len(line.targets) != 1 or not isinstance(line.value, cst.Call):
                continue
            attribute = _of_self(line.targets[0].target)
            if attribute is not None and any(line.value.func is one for one in phased):
                yield attribute


def _passes_on(owner: cst.ClassDef, call: cst.FunctionDef, names: frozenset[str]) -> bool:
    """Whether `call` calls each of some layers with the `training=` that it is told, and nothing else has them."""
    settled, passed = set(), list[cst.BaseExpression]()
    for one in calls_in(call.body):
        value = _told(one)
        if _of_self(one.func) in names and isinstance(value, cst.Name) and value.value == _TRAINING:
            settled.add(one.func)
            passed.append(value)
    uses = [node for node in nodes_in(owner) if _of_self(node) in names]
    stored = [t.target for node in of_kinds(owner, cst.Assign) for t in node.targets]
    if any(node not in settled and not any(node is one for one in stored) for node in uses):
        return False
    if sum(any(node is one for one in stored) for node in uses) != len(names):
        return False
    told = [node for node in name_nodes(call.body) if node.value == _TRAINING]
    passed += [arg.value for one in calls_in(call.body) for arg in one.args if arg.keyword is not None]
    return all(any(node is one for one in passed) for node in told)


def _told(call: cst.Call) -> cst.BaseExpression | None:
    """What the call of a layer that trains otherwise says of that: by name, or behind its inputs."""
    given = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
    places = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
    return given.get(_TRAINING, places[1] if len(places) == 2 and len(call.args) == 2 else None)


def _of_self(node: cst.CSTNode) -> str | None:
    """The attribute of `self` that a node is."""
    known = isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name) and node.value.value == "self"
    return node.attr.value if known and isinstance(node, cst.Attribute) else None


__all__ = ["own_class"]
