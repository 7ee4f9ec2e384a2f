"""Names that stand for one Estimator (configuration, specification, input function) after another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import takewhile

import libcst as cst

from migrator.names.bindings import Binding, Form, bound_in, owns
from migrator.names.free import free
from migrator.program.calls import functions_in
from migrator.program.parsed import ParsedFile, Tracked, name_nodes, names_in

_FAMILIES = ("tf.estimator.", "tf.keras.estimator.", "tf.contrib.tpu.", "tf.contrib.learn.", "tf.contrib.estimator.")
_WHOLE = (Form.ASSIGNED, Form.ANNOTATED)
#: What runs at another time than the code around it.
_DEFERRED = (cst.FunctionDef, cst.Lambda, cst.ClassDef, cst.GeneratorExp)


def with_a_name_each(file: ParsedFile) -> ParsedFile:
    """The file with a name of its own for each value of such a name; the last value keeps it, for whoever imports it.

    Only where each mention means one of them for certain: where they follow one another, or stand in the branches of a
    condition.
    """
    if "stimator" not in file.bare:
        return file
    taken = set(file.names)
    renamed: dict[cst.CSTNode, str] = {}
    for scope in (file.module, *functions_in(file.module)):
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
    lines = [_statement_and_block(file, place) for place in places]
    if any(line is None or block is None for line, block in lines):
        return None
    if len({id(block) for _, block in lines}) > 1 and not _is_its_own(file, scope, places[0]):
        return None  # whoever imports the file reads the value of either branch
    found: list[list[cst.Name]] = [[] for _ in places]
    made = [line for line, _ in lines]
    above = [{id(node) for node in file.above(line)} if line is not None else set() for line in made]
    for mention in name_nodes(file.module):
        if mention.value != name:
            continue
        around = list(file.above(mention))
        if any(isinstance(node, (cst.NameItem, cst.Del)) for node in around[:3]):
            return None
        owner = next((node for node in around if owns(node, name)), file.module)
        if owner is not scope:
            continue
        own = next((at for at, place in enumerate(places) if mention is place), None)
        life = _life(mention, around, scope, made, above) if own is None else own
        if life is None:
            return None
        found[life].append(mention)
    return found


def _is_its_own(file: ParsedFile, scope: cst.CSTNode, place: cst.Name | None) -> bool:
    """Whether nobody outside of a file reads the names of a scope at a place: in a function, or in a script's part."""
    around = file.above(place) if scope is file.module and place is not None else ()
    tests = [node.test for node in around if isinstance(node, cst.If)]
    return scope is not file.module or any("__name__" in names_in(test) for test in tests)


def _life(
    mention: cst.Name,
    around: list[cst.CSTNode],
    scope: cst.CSTNode,
    made: list[cst.CSTNode | None],
    above: list[set[int]],
) -> int | None:
    """Which of the lines `made`, each with what is `above` it, gave a name the value that it has where it is mentioned;
    None where several may have.

    A block is left for the one around it: what came before the whole statement counts then, unless another part of the
    statement may have run before this one, as the round of a loop, or what a `try` handles.
    """
    inside: cst.CSTNode = mention
    for node in around:
        if isinstance(node, (cst.Module, cst.IndentedBlock)):
            for statement in reversed(list(takewhile(lambda one, end=inside: one is not end, node.body))):  # type: ignore[misc]
                for at, line in enumerate(made):
                    if statement is line:
                        return at
                    if id(statement) in above[at]:
                        return None
        goes_round = isinstance(node, (cst.For, cst.While, cst.Try)) and any(id(node) in nodes for nodes in above)
        if goes_round or node is scope or isinstance(node, _DEFERRED):
            return None
        inside = node
    return None


def _statement_and_block(
    file: ParsedFile, place: cst.Name | None
) -> tuple[cst.CSTNode | None, cst.Module | cst.IndentedBlock | None]:
    """The line that a name is bound on alone, and the block that the line stands in; None where there is none."""
    line = block = None
    for node in file.above(place) if place is not None else ():
        if isinstance(node, (cst.Module, cst.IndentedBlock)):
            block = node
            break
        line = node
    alone = isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1
    if not alone or (isinstance(line.body[0], cst.Assign) and len(line.body[0].targets) > 1):  # type: ignore[union-attr]
        return None, None
    return line, block


class _Renamed(Tracked):
    def __init__(self, names: Mapping[cst.CSTNode, str]) -> None:
        super().__init__()
        self.names = names

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        new = self.names.get(original_node)
        return updated_node if new is None else updated_node.with_changes(value=new)


__all__ = ["with_a_name_each"]
