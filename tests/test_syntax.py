"""Python's own trees: what goes over them says what `ast` says, and the trees that are kept stay few."""

from __future__ import annotations

import ast
from pathlib import Path

from migrator.program.parsed import ParsedFile
from migrator.syntax import Trees, children_of, parents_in, walked

TEXT = '''\
import os

def model(features, *rest, rate: float = 0.5, **more):
  """Text."""
  with open(f"{os.sep}x") as file, file:
    a, (b, *c) = [x for x in file if x], {"k": rate, **more}
  try:
    del a[1:2]
  except (OSError, ValueError) as error:
    raise error from None
  return lambda y=b: (y := 1) + -y if y < 2 else rest
'''


def test_the_nodes_below_a_node_are_those_of_ast_but_for_contexts() -> None:
    tree = ast.parse(TEXT)

    def plain(nodes: object) -> list[ast.AST]:
        return [one for one in nodes if not isinstance(one, ast.expr_context)]  # type: ignore[attr-defined]

    assert walked(tree) == plain(ast.walk(tree))
    for node in ast.walk(tree):
        assert children_of(node) == plain(ast.iter_child_nodes(node))


def test_the_node_around_each_node() -> None:
    tree = ast.parse(TEXT)
    around = parents_in(tree)
    statements = [node for node in ast.walk(tree) if isinstance(node, (ast.stmt, ast.Call, ast.Name))]
    assert all(one is tree or one in ast.iter_child_nodes(around[one]) for one in statements)
    assert tree not in around


def test_trees_are_parsed_once_and_not_all_of_them_are_kept() -> None:
    parsed: list[str] = []

    def parse(text: str) -> list[str]:
        parsed.append(text)
        return [text]

    trees = Trees(10, parse)
    first = trees.of("aaaa")
    assert trees.of("aaaa") is first
    assert trees.of("aaaa", Path("other.py")) is not first  # nodes of two files are never the same ones
    trees.of("bbbb")
    assert trees.of("aaaa") is not first
    assert parsed == ["aaaa", "aaaa", "bbbb", "aaaa"]


def test_what_may_have_a_comment() -> None:
    file = ParsedFile.parse(Path("a.py"), 'a = f(1)\n# One.\nb = g("#")\nc = [\n  1,  # Two.\n]\nd = {}\n')
    said = [file.may_have_comment(line) for line in file.module.body]
    assert said == [False, True, True, False]
    assert said == ["#" in file.code(line) for line in file.module.body]
