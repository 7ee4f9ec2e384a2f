"""What tells for which Python a file was written."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from migrator.names.references import Names, chain_of, read_names
from migrator.syntax import NOT_PYTHON, tree_of

#: Built-in names that only Python 2 has.
BUILT_IN = frozenset(
    ("xrange", "raw_input", "unicode", "unichr", "basestring", "long", "execfile", "file", "cmp", "reload", "intern")
)
_CALLED = frozenset(("file", "reload", "intern", "execfile"))  # the others are given to `isinstance` and `map`, too
_METHODS = frozenset(("iteritems", "itervalues", "iterkeys", "viewitems", "viewvalues", "viewkeys", "has_key"))
_MODULES = frozenset(
    (
        *("cPickle", "StringIO", "cStringIO", "urllib2", "urlparse", "Queue", "ConfigParser", "httplib", "HTMLParser"),
        *("Tkinter", "tkMessageBox", "tkFileDialog", "SocketServer", "BaseHTTPServer", "SimpleHTTPServer", "Cookie"),
        *("copy_reg", "commands", "__builtin__", "thread", "htmlentitydefs", "xmlrpclib", "cookielib", "robotparser"),
    )
)
_DOTTED = frozenset(
    (
        *(
            "sys.maxint",
            "os.getcwdu",
            "itertools.izip",
            "itertools.imap",
            "itertools.ifilter",
            "itertools.izip_longest",
        ),
        *("string.letters", "string.lowercase", "string.uppercase", "string.maketrans", "string.join", "string.atoi"),
        *("string.atof", "string.split", "string.replace", "string.strip", "string.lower", "string.upper"),
        *("types.StringType", "types.StringTypes", "types.UnicodeType", "types.IntType", "types.LongType"),
        *("types.FloatType", "types.ListType", "types.DictType", "types.TupleType", "types.BooleanType"),
        *("urllib.urlretrieve", "urllib.urlopen", "urllib.urlencode", "urllib.quote"),
    )
)
_PLAIN = [name.split(".")[1] for name in _DOTTED if not name.startswith(("string.", "urllib."))]
_OF_MODULES = [re.escape(name) for name in _DOTTED if name.startswith(("string.", "urllib."))]
#: What a text with a sign has: most files of Python 3 have none of it, and need not be parsed.
_ANY = re.compile(
    rf"(?<![\w.])(?:{'|'.join(sorted(BUILT_IN - _CALLED))})(?=\s*[(),\]])"
    rf"|(?<![\w.])(?:{'|'.join(sorted(_CALLED))})\s*\("
    rf"|\.(?:{'|'.join(sorted(_METHODS))})\s*\("
    rf"|^[ \t]*(?:import|from)[ \t][^\n]*\b(?:{'|'.join(sorted(_MODULES))})\b"
    rf"|\b(?:{'|'.join(sorted([*_PLAIN, *_OF_MODULES]))})\b"
    r"|^[ \t]*from[ \t]+(?:string|urllib)[ \t]+import\b"
    r"|\bprint\s*>>|^[ \t]*print[ \t]*$|^[ \t]*print[ \t]*\(.*\)\s*[%,]",
    re.MULTILINE,
)
_VERSION = re.compile(r"version_info|\bPY2\b|\bPY3\b|sys\.version|\bpython_version\b")
_DIVISION = re.compile(
    r"^[ \t]*from[ \t]+__future__[ \t]+import\b[^\n]*\bdivision\b|^from __future__ import \([^)]*\bdivision\b", re.M
)


def parsed(text: str) -> ast.Module | None:
    """The tree of a text, None where it is not Python 3."""
    try:
        return tree_of(text)
    except NOT_PYTHON:
        return None


def divides_truly(text: str) -> bool:
    """Whether a file of Python 2 divided whole numbers as Python 3 does."""
    return _DIVISION.search(text) is not None


def signs(text: str) -> list[tuple[int, str]]:
    """The lines, from 1, of what only Python 2 has, in a text that is Python 3 as well, and how that is called.

    What a file looks for first (`try: ... except ImportError`, a test of the version) is for both Pythons.
    """
    if _ANY.search(text) is None:
        return []
    tree = parsed(text)
    if tree is None:
        return []
    names = read_names(tree)
    if names.stars and any(not star.level and star.module in ("six.moves", "past.builtins") for star in names.stars):
        return []
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    found = {(node.lineno, what) for node, what in _found(tree, names, own)}
    return sorted(found)


def _found(tree: ast.Module, names: Names, own: set[str]) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    free = names.unbound - own
    for node in _plain(tree):
        if isinstance(node, ast.Name) and node.id in BUILT_IN and node.id in free:
            yield node, node.id
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS - own:
            if not isinstance(node.func.value, ast.Name) or node.func.value.id not in ("six", "utils"):
                yield node, f".{node.func.attr}()"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name in _MODULES:
                    yield node, alias.name
        elif isinstance(node, ast.ImportFrom) and not node.level:
            if node.module in _MODULES:
                yield node, str(node.module)
            for alias in node.names:
                if f"{node.module}.{alias.name}" in _DOTTED:
                    yield node, f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Name) and node.value.id == "print":
            yield node, "print"
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.RShift):
            if isinstance(node.left, ast.Name) and node.left.id == "print":
                yield node, "print >>"
        elif isinstance(node, ast.Expr) and _prints_more(node.value):
            yield node, "print"
    for reference in names.references:
        if reference.origin in _DOTTED and len(reference.nodes) > 1 and not _is_guarded(tree, reference.nodes[-1]):
            yield reference.nodes[-1], reference.origin


def _prints_more(value: ast.expr) -> bool:
    """Whether what is printed goes on behind the parentheses: `print("%d") % x`, `print("loss"), x`."""
    if isinstance(value, ast.Tuple) and len(value.elts) > 1:
        first, *others = value.elts
        return _is_print(first) and not any(map(_is_print, others))
    return isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mod) and _is_print(value.left)


def _is_print(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "print"


def _plain(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a tree, those left out that are there for one of two Pythons."""
    queue = [tree]
    while queue:
        node = queue.pop()
        if isinstance(node, ast.Try) and _catches_names(node):
            queue += [*node.orelse, *node.finalbody]
            continue
        if isinstance(node, (ast.If, ast.IfExp)) and _VERSION.search(ast.dump(node.test).replace("attr='", "")):
            continue
        yield node
        queue += ast.iter_child_nodes(node)


def _is_guarded(tree: ast.AST, wanted: ast.AST) -> bool:
    return not any(node is wanted for node in _plain(tree))


def _catches_names(node: ast.Try) -> bool:
    caught = {
        one.id
        for handler in node.handlers
        for one in ([] if handler.type is None else ast.walk(handler.type))
        if isinstance(one, ast.Name)
    }
    bare = any(handler.type is None for handler in node.handlers)
    return bare or bool(caught & {"ImportError", "NameError", "AttributeError", "ModuleNotFoundError", "Exception"})


def is_of_python_3(text: str) -> bool:
    """Whether a text that parses has what only Python 3 has: annotations, f-strings, `super()`, `print(file=)`."""
    tree = parsed(text)
    if tree is None:
        return False
    prints = "print_function" in text
    for node in ast.walk(tree):
        if isinstance(node, (ast.JoinedStr, ast.AnnAssign, ast.AsyncFunctionDef, ast.Nonlocal, ast.YieldFrom)):
            return True
        if isinstance(node, (ast.Starred,)) and isinstance(node.ctx, ast.Store):
            return True
        if isinstance(node, ast.arguments) and node.kwonlyargs:
            return True
        if isinstance(node, ast.arg) and node.annotation is not None:
            return True
        if isinstance(node, ast.FunctionDef) and node.returns is not None:
            return True
        if isinstance(node, ast.Raise) and node.cause is not None:
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id == "super" and not node.args:
                return True
            if node.func.id == "print" and node.keywords and not prints:
                return True
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            return True
    return False


def dotted(node: ast.expr) -> str:
    """`a.b.c` as it stands there; empty for anything else."""
    chain = chain_of(node)
    if not chain:
        return ""
    head = chain[0]
    assert isinstance(head, ast.Name)
    return ".".join([head.id, *(one.attr for one in chain[1:] if isinstance(one, ast.Attribute))])
