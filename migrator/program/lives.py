"""Names that stand for one Estimator (configuration, specification, input function) after another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import libcst as cst

from migrator.names.bindings import Binding, Form, bound_in, owns
from migrator.names.free import free
from migrator.program.parsed import ParsedFile, Tracked, name_nodes
from migrator.walking import walk

_FAMILIES = ("tf.estimator.", "tf.keras.estimator.", "tf.contrib.tpu.", "tf.contrib.learn.", "tf.contrib.estimator.")
_WHOLE = (Form.ASSIGNED, Form.ANNOTATED)
#: What runs at another time than the code around it.
_DEFERRED = (cst.FunctionDef, cst.Lambda, cst.ClassDef, cst.GeneratorExp)


def with_a_name_each(file: ParsedFile) -> ParsedFile:
    """The file with a name of its own for each value of such a name; the last value keeps it, for whoever imports it.

    Only where the values follow one another in one block, so that each mention means one of them for certain.
    """
    if "stimator" not in file.bare:
        return file
    finder = _Functions()
    walk(file.module, finder)
    taken = set(file.names)
    renamed: dict[cst.CSTNode, str] = {}
    for scope in (file.module, *finder.found):
        for name, bound in _bound_again(file, scope).items():
            mentions = _by_value(file, scope, name, bound)
            if mentions is None:
                continue
            for number, nodes in enumerate(mentions[:-1], 1):
                new = free(f"{name}_{number}", taken)
                taken.add(new)
                renamed.update(dict.fromkeys(nodes, new))
    if not renamed:
        return file
    writer = _Renamed(renamed)
    module = file.module.visit(writer)
    assert isinstance(module, cst.Module)
    new_file = replace(file, module=module)
    new_file.keep_positions(writer.made, file)
    return new_file


def _bound_again(file: ParsedFile, scope: cst.CSTNode) -> Mapping[str, list[Binding]]:
    """The names of a scope that are bound several times, once at least to something of an Estimator's."""
    found: dict[str, list[Binding]] = {}
    for binding in bound_in(scope):
        found.setdefault(binding.name, []).append(binding)

    def of_estimator(binding: Binding) -> bool:
        name = file.imports.resolve(binding.value.func) if isinstance(binding.value, cst.Call) else None
        return name is not None and name.startswith(_FAMILIES)

    return {
        name: bound
        for name, bound in found.items()
        if len(bound) > 1
        and name not in file.clusters
        and name not in file.towers
        and all(binding.form in _WHOLE and binding.place is not None for binding in bound)
        and any(map(of_estimator, bound))
    }


def _by_value(file: ParsedFile, scope: cst.CSTNode, name: str, bound: list[Binding]) -> list[list[cst.Name]] | None:
    """The mentions of a name for each of its values, in order; None where it may be either value somewhere."""
    places = [binding.place for binding in bound]
    block = _statement_and_block(file, places[0])[1]
    if block is None or any(_statement_and_block(file, place)[1] is not block for place in places):
        return None
    lines = list(block.body)
    written = [
        next(at for at, one in enumerate(lines) if one is _statement_and_block(file, place)[0]) for place in places
    ]
    if written != sorted(set(written)):
        return None
    found: list[list[cst.Name]] = [[] for _ in places]
    for mention in name_nodes(file.module):
        if mention.value != name:
            continue
        around = list(_around(file, mention))
        if any(isinstance(node, (cst.NameItem, cst.Del)) for node in around[:3]):
            return None
        owner = next((node for node in around if owns(node, name)), file.module)
        if owner is not scope:
            continue
        inside = around[: next((at for at, node in enumerate(around) if node is block), 0)]
        if not inside or any(isinstance(node, _DEFERRED) for node in inside):
            return None
        at = next(index for index, one in enumerate(lines) if one is inside[-1])
        target = any(mention is place for place in places)
        life = sum(line < at or (line == at and target) for line in written) - 1
        if life < 0:
            return None
        found[life].append(mention)
    return found


def _statement_and_block(
    file: ParsedFile, place: cst.Name | None
) -> tuple[cst.CSTNode | None, cst.Module | cst.IndentedBlock | None]:
    """The line that a name is bound on alone, and the block that the line stands in; None where there is none."""
    line = block = None
    for node in _around(file, place) if place is not None else ():
        if isinstance(node, (cst.Module, cst.IndentedBlock)):
            block = node
            break
        line = node
    alone = isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1
    if not alone or (isinstance(line.body[0], cst.Assign) and len(line.body[0].targets) > 1):  # type: ignore[union-attr]
        return None, None
    return line, block


def _around(file: ParsedFile, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The nodes around one, from the inside."""
    above = file.parents.get(node)
    while above is not None:
        yield above
        above = file.parents.get(above)


class _Functions(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[cst.FunctionDef] = []

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self.found.append(node)


class _Renamed(Tracked):
    def __init__(self, names: Mapping[cst.CSTNode, str]) -> None:
        super().__init__()
        self.names = names

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        new = self.names.get(original_node)
        return updated_node if new is None else updated_node.with_changes(value=new)


__all__ = ["with_a_name_each"]
