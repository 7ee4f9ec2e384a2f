"""libcst with `migrator.nodes`: the same trees and texts as without it."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import libcst as cst
import pytest

from migrator.names.annotated import parse_module
from migrator.program.parsed import NameCollector
from migrator.syntax import tree_of
from migrator.walking import Transformer, all_in, names_below, walk
from tests.test_walking import SYNTAX

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted([*ROOT.glob("fixtures/*/original.py"), *ROOT.glob("migrator/emit/*.py")])[::3]
# What libcst makes of files: nodes, texts, positions, and a transformer's new text.
SEEN = """
import hashlib, sys
import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider
{first}

class Renamed(cst.CSTTransformer):
    def leave_Name(self, original_node, updated_node):
        return updated_node.with_changes(value=updated_node.value + "_")

    def leave_Expr(self, original_node, updated_node):
        return cst.RemoveFromParent()

made = hashlib.sha256()
for name in sys.argv[1:]:
    text = open(name, encoding="utf-8").read()
    module = cst.parse_module(text)
    made.update(repr(module).encode() + module.code.encode() + module.visit(Renamed()).code.encode())
    wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
    places = [(type(node).__name__, repr(place)) for node, place in wrapper.resolve(PositionProvider).items()]
    made.update(repr(sorted(places)).encode())
print(made.hexdigest())
"""


def _seen(first: str) -> str:
    words = [sys.executable, "-c", SEEN.format(first=first), *map(str, FILES)]
    return subprocess.run(words, capture_output=True, text=True, check=True, cwd=ROOT).stdout


def test_trees_texts_and_positions_are_those_of_libcst_alone() -> None:
    quick = _seen("import migrator.nodes")
    assert len(quick.strip()) == hashlib.sha256().digest_size * 2
    assert quick == _seen("")


def test_nodes_made_by_hand_are_validated_and_parsed_ones_of_wrong_text_refused() -> None:
    with pytest.raises(cst.CSTValidationError):
        cst.Name("")
    with pytest.raises(cst.CSTValidationError):
        cst.Name("a", lpar=[cst.LeftParen()])
    with pytest.raises(cst.ParserSyntaxError):
        cst.parse_module("a b\n")
    with pytest.raises(cst.CSTValidationError):  # also after a text that could not be parsed
        cst.Name("1")


def test_classes_of_nodes_are_what_they_were() -> None:
    name = cst.Name("a")
    assert isinstance(name, cst.BaseExpression)
    assert not isinstance(name, (cst.BaseStatement, cst.Attribute))
    assert issubclass(cst.Name, cst.CSTNode)
    assert name == name
    assert name != name.deep_clone()
    assert {name: 1}[name] == 1
    with pytest.raises(TypeError):
        cst.CSTNode()  # type: ignore[abstract]


class _Renamed(Transformer):
    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        return updated_node.with_changes(value="b") if updated_node.value == "a" else updated_node


class _Everything(Transformer):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[type[cst.CSTNode]] = []

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> cst.CSTNode:
        self.seen.append(type(original_node))
        new: cst.CSTNode = super().on_leave(original_node, updated_node)
        return new


def test_a_transformer_goes_where_it_has_something_to_do() -> None:
    module = cst.parse_module("x = a  # 1\n1 + 2\n")
    new = module.visit(_Renamed())
    assert isinstance(new, cst.Module)
    assert new.code == "x = b  # 1\n1 + 2\n"
    assert new.body[1] is module.body[1]
    every = _Everything()
    module.visit(every)
    assert cst.Integer in every.seen
    assert cst.Comment in every.seen


def test_a_tree_is_made_once() -> None:
    text = "x = 1\n"
    assert tree_of(text) is tree_of("x = " + "1\n")
    for _ in range(2):
        with pytest.raises(SyntaxError):
            tree_of("a b")


def test_names_below_are_those_that_a_visitor_collects() -> None:
    for path in FILES[:4]:
        module = parse_module(path.read_text(encoding="utf-8"))
        for node in all_in(module):
            collector = NameCollector()
            walk(node, collector)
            assert list(names_below(node)) == collector.found
    syntax = parse_module(SYNTAX)
    collector = NameCollector()
    walk(syntax, collector)
    assert list(names_below(syntax)) == collector.found
