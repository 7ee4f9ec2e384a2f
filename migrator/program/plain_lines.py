"""Statements that Python can say in fewer words, or in several lines: what each of them comes down to.

Every function finds the statements of one kind in a file, and gives the statements that mean the same. What is found is
certain to do the same in the same order; whatever else there is stays as it is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Union, cast

import libcst as cst

from migrator.names.bindings import Binding, Form, bound_in, dotted, read_bindings
from migrator.names.free import free
from migrator.names.standard import STANDARD_MODULES
from migrator.program.calls import calls_in, functions_in, in_parentheses, nodes_in
from migrator.program.own_graphs import ANYWHERE
from migrator.program.parsed import ParsedFile, name_nodes, names_in
from migrator.walking import of_kinds, own_of_kinds, walk

#: A statement, and those in its place; expressions, and those in theirs.
Lines = dict[cst.BaseStatement, list[cst.BaseStatement]]
Names = dict[cst.CSTNode, cst.BaseExpression]
_Scope = Union[cst.Module, cst.FunctionDef]
_DEPTH = 4
_TRAINS = ("train", "evaluate", "train_and_evaluate")
#: Packages that know nothing of TensorFlow's graphs.
_WITHOUT_GRAPHS = ("numpy", "pandas", "scipy", "sklearn", "matplotlib", "six", "tqdm", "absl", "yaml", "PIL", "cv2")
_DRIVING = (*_TRAINS, "predict", "export_savedmodel", "export_saved_model")
_PROCESSORS = ("/cpu:0", "/device:cpu:0", "cpu:0", "/cpu", "cpu")
#: What makes something else than operations.
_NO_OPERATIONS = ("_partitioner", "_initializer", "_regularizer", "Optimizer", "tf.get_collection")


def lines_apart(file: ParsedFile) -> tuple[Lines, dict[cst.CSTNode, cst.CSTNode]]:
    """`a(); b()`: each statement that shares its line with another gets its own, where one of them calls something.

    Returns the lines, and what each new node was before: its place tells in which order the statements run.
    """
    found: Lines = {}
    came: dict[cst.CSTNode, cst.CSTNode] = {}
    scopes: list[_Scope] = [file.module, *functions_in(file.module)]
    for scope in scopes:
        for line in lines_of(scope):
            if len(line.body) < 2 or not calls_in(line):
                continue
            apart = [
                cst.SimpleStatementLine([small.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)])
                for small in line.body
            ]
            apart[0] = apart[0].with_changes(leading_lines=line.leading_lines)
            apart[-1] = apart[-1].with_changes(trailing_whitespace=line.trailing_whitespace)
            found[line] = list(apart)
            for new, small in zip(apart, line.body):
                came[new] = came[new.body[0]] = small
    return found, came


def modes_apart(file: ParsedFile, is_concerned: Callable[[cst.FunctionDef], bool]) -> Lines:
    """`train_op = minimize(...) if mode == TRAIN else None`, in a model_fn: an `if` of two assignments."""
    found: Lines = {}
    for function in functions_in(file.module):
        if "mode" not in {one.name.value for one in function.params.params} or not is_concerned(function):
            continue
        flags = _names_of_modes(function)
        for line in lines_of(function):
            small = line.body[0] if len(line.body) == 1 else None
            value = getattr(small, "value", None)
            if not isinstance(small, (cst.Assign, cst.Return)) or not isinstance(value, cst.IfExp):
                continue
            said = file.code(value)
            if not names_in(value.test) & flags or "#" in said or not (calls_in(value.body) or calls_in(value.orelse)):
                continue
            if isinstance(small, cst.Assign) and not all(isinstance(one.target, cst.Name) for one in small.targets):
                continue
            found[line] = [as_statements(line, small, value)]
    return found


def objects_apart(file: ParsedFile, is_concerned: Callable[[cst.FunctionDef], bool]) -> Lines:
    """`logits = Network(4)(x)`, `Network(4).build(x)`: the object gets a name in the line before.

    The line makes it first. Only objects of classes of the file that have no base: others are read as they are.
    """
    plain = {one.name.value: one for one in file.module.body if isinstance(one, cst.ClassDef) and not one.keywords}
    plain = {name: one for name, one in plain.items() if all(dotted(base.value) == "object" for base in one.bases)}
    found: Lines = {}
    for function in functions_in(file.module) if plain else ():
        if not is_concerned(function):
            continue
        for line in lines_of(function):
            small = line.body[0] if len(line.body) == 1 else None
            call = small.value if isinstance(small, (cst.Assign, cst.Return)) else None
            of = call.func if isinstance(call, cst.Call) else None
            made = of.value if isinstance(of, cst.Attribute) else of
            if not isinstance(call, cst.Call) or not isinstance(made, cst.Call) or not isinstance(made.func, cst.Name):
                continue
            if made.func.value not in plain or made.func.value in {one.name for one in bound_in(function)}:
                continue
            name = cst.Name(free(made.func.value.lower(), {one.value for one in name_nodes(file.module)}))
            first = cst.Assign([cst.AssignTarget(name)], made)
            func = name if of is made else cast("cst.Attribute", of).with_changes(value=name)
            rest = cast("cst.Assign | cst.Return", small).with_changes(value=call.with_changes(func=func))
            found[line] = [
                cst.SimpleStatementLine([first], leading_lines=line.leading_lines),
                line.with_changes(body=[rest], leading_lines=[]),
            ]
            return found  # one name after the other
    return found


def _names_of_modes(function: cst.FunctionDef) -> set[str]:
    """`mode`, and the names that a function gives once, and what mode it is compared: `is_training = mode == TRAIN`."""
    given = Counter(binding.name for binding in bound_in(function))
    found = {"mode"}
    for line in lines_of(function):
        small = line.body[0] if len(line.body) == 1 else None
        target = small.targets[0].target if isinstance(small, cst.Assign) and len(small.targets) == 1 else None
        if isinstance(small, cst.Assign) and isinstance(target, cst.Name) and given[target.value] == 1:
            is_asked = isinstance(small.value, (cst.Comparison, cst.UnaryOperation, cst.BooleanOperation))
            if is_asked and names_in(small.value) & found and not calls_in(small.value):
                found.add(target.value)
    return found


def as_statements(line: cst.SimpleStatementLine, small: cst.Assign | cst.Return, value: cst.IfExp) -> cst.If:
    """The `if` that a line is short for which gives, or returns, a conditional expression."""

    def block(node: cst.BaseExpression) -> cst.IndentedBlock:
        if isinstance(node, cst.IfExp):
            return cst.IndentedBlock([chain(node, ())])
        return cst.IndentedBlock([cst.SimpleStatementLine([small.with_changes(value=node)])])

    def chain(node: cst.IfExp, above: Sequence[cst.EmptyLine]) -> cst.If:
        return cst.If(bare(node.test), block(node.body), cst.Else(block(node.orelse)), leading_lines=above)

    return chain(value, line.leading_lines)


def matches_apart(file: ParsedFile, is_concerned: Callable[[cst.FunctionDef], bool]) -> Lines:
    """`match mode:` with cases of values, in a function that makes a part of a training program: an `if` and `elif`."""
    found: Lines = {}
    for function in functions_in(file.module):
        matches = of_kinds(function, cst.Match) if is_concerned(function) else []
        inside = {one for match in matches for case in match.cases for one in nodes_in(case)}
        for match in matches:
            made = _as_conditions(match) if match not in inside and _is_dotted(match.subject) else None
            if made is not None:
                found[match] = [made]
    return found


def _is_dotted(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Name) or (isinstance(node, cst.Attribute) and _is_dotted(node.value))


def _as_conditions(match: cst.Match) -> cst.If | None:
    """The `if` that says the same as a match of a name with values; None where a pattern takes something apart."""
    made: cst.If | cst.Else | None = None
    for case in reversed(match.cases):
        tests = [] if _is_any(case.pattern) else [_test_of(match.subject, case.pattern)]
        tests += [case.guard] if case.guard is not None else []
        if None in tests or (not tests and made is not None):
            return None
        above = (*match.leading_lines, *case.leading_lines) if case is match.cases[0] else case.leading_lines
        if not tests:
            made = cst.Else(case.body, leading_lines=above)
            continue
        test = tests[0]
        if len(tests) == 2:
            test = cst.BooleanOperation(_grouped(tests[0]), cst.And(), _grouped(tests[1]))
        assert test is not None
        made = cst.If(test, case.body, made, leading_lines=above)
    return made if isinstance(made, cst.If) else None


def _is_any(pattern: cst.MatchPattern) -> bool:
    return isinstance(pattern, cst.MatchAs) and pattern.pattern is None and pattern.name is None


def _test_of(subject: cst.BaseExpression, pattern: cst.MatchPattern) -> cst.BaseExpression | None:
    if isinstance(pattern, cst.MatchValue):
        return cst.Comparison(subject, [cst.ComparisonTarget(cst.Equal(), pattern.value)])
    if isinstance(pattern, cst.MatchSingleton):
        return cst.Comparison(subject, [cst.ComparisonTarget(cst.Is(), pattern.value)])
    values = [one.pattern for one in pattern.patterns] if isinstance(pattern, cst.MatchOr) else []
    known = [cst.Element(one.value) for one in values if isinstance(one, cst.MatchValue)]
    if not known or len(known) != len(values):
        return None
    return cst.Comparison(subject, [cst.ComparisonTarget(cst.In(), cst.Tuple(known))])


def _grouped(node: cst.BaseExpression | None) -> cst.BaseExpression:
    assert node is not None
    return node if isinstance(node, cst.Comparison) else in_parentheses(node)


def functions_by_name(
    file: ParsedFile, is_concerned: Callable[[cst.FunctionDef], bool]
) -> tuple[Lines, dict[cst.CSTNode, cst.CSTNode]]:
    """`def data(): ...` under a condition, where `data` is assigned elsewhere: `data = data_1` behind `def data_1()`.

    In functions of drivers, and at the top: there such names are input functions, which may be chosen. Returns the
    lines, and what each new node was before.
    """
    found: Lines = {}
    came: dict[cst.CSTNode, cst.CSTNode] = {}
    taken = set(file.names)
    for scope in (file.module, *(one for one in functions_in(file.module) if is_concerned(one))):
        bound: dict[str, list[Binding]] = {}
        for binding in bound_in(scope):
            bound.setdefault(binding.name, []).append(binding)
        for name, given in bound.items():
            if {one.form for one in given} != {Form.FUNCTION, Form.ASSIGNED}:
                continue
            if isinstance(scope, cst.FunctionDef) and "EstimatorSpec" in file.code(scope):
                continue
            for one in given:
                node = one.node
                if not isinstance(node, cst.FunctionDef) or node.decorators or node.asynchronous is not None:
                    continue
                if not isinstance(next(file.above(file.parents[node]), None), (cst.If, cst.Else)):
                    continue
                new = free(f"{name}_1", taken)
                taken.add(new)
                renamed = node.with_changes(name=node.name.with_changes(value=new))
                small = cst.Assign([cst.AssignTarget(cst.Name(name))], cst.Name(new))
                line = cst.SimpleStatementLine([small])
                found[node] = [renamed, line]
                came.update({renamed: node, line: node, small: node})
    return found, came


def without_graphs(file: ParsedFile) -> Lines:
    """`with tf.Graph().as_default():` around an Estimator, which makes graphs of its own: what stands inside."""
    found: Lines = {}
    for node in of_kinds(file.module, cst.With):
        if not all(item.asname is None and _is_new_graph(file, item.item) for item in node.items):
            continue
        if not isinstance(node.body, cst.IndentedBlock) or not drives(file, node.body):
            continue
        first, *rest = node.body.body
        above = [*node.leading_lines, *getattr(first, "leading_lines", ())]
        found[node] = [first.with_changes(leading_lines=above), *rest]
    return found


def without_idle_scopes(file: ParsedFile, is_concerned: Callable[[cst.FunctionDef], bool]) -> Lines:
    """`with tf.name_scope("x"):` around lines that make no operation, so that it names nothing: what stands inside."""
    found: Lines = {}
    for function in functions_in(file.module):
        scopes = of_kinds(function.body, cst.With) if is_concerned(function) else []
        for node in scopes:
            item = node.items[0] if len(node.items) == 1 and node.items[0].asname is None else None
            call = item.item if item is not None else None
            if not isinstance(call, cst.Call) or file.imports.tensorflow(call.func) != "tf.name_scope":
                continue
            lines = node.body.body if isinstance(node.body, cst.IndentedBlock) else ()
            if not lines or calls_in(call) != [call] or not all(_makes_no_operation(file, line) for line in lines):
                continue
            first, *rest = lines
            above = [*node.leading_lines, *getattr(first, "leading_lines", ())]
            found[node] = [first.with_changes(leading_lines=above), *rest]
    return found


def _makes_no_operation(file: ParsedFile, line: cst.CSTNode) -> bool:
    """Whether a line gives names what is no tensor: a partitioner, an optimizer, a mode, or what a collection has."""
    small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
    if not isinstance(small, cst.Assign) or isinstance(small.value, (cst.BinaryOperation, cst.UnaryOperation)):
        return False
    made = [file.imports.tensorflow(call.func) or "" for call in calls_in(small)]
    if isinstance(small.value, cst.Comparison):
        compared = [small.value.left, *(one.comparator for one in small.value.comparisons)]
        return not made and any("ModeKeys." in (file.imports.tensorflow(one) or "") for one in compared)
    return isinstance(small.value, cst.Call) and all(one.endswith(_NO_OPERATIONS) for one in made)


def without_sure_asserts(file: ParsedFile, is_concerned: Callable[[cst.FunctionDef], bool]) -> Lines:
    """`assert net is not None` of what a function has made itself: the line goes, where nothing gives the name None."""
    found: Lines = {}
    for function in functions_in(file.module):
        bound = bound_in(function) if is_concerned(function) else []
        for line in lines_of(function) if bound else ():
            small = line.body[0] if len(line.body) == 1 else None
            name = _said_to_be(small.test) if isinstance(small, cst.Assert) else None
            given = [one for one in bound if one.name == name and one.form is not Form.AUGMENTED]
            values = [one.value for one in given if one.target is one.place]
            made = all(
                isinstance(one, (cst.Call, cst.BinaryOperation, cst.Dict, cst.List, cst.Tuple)) for one in values
            )
            if values and made and len(values) == len(given):
                found[line] = []
    return found


def _said_to_be(test: cst.BaseExpression) -> str | None:
    """The name of which a test says that it is not None."""
    only = test.comparisons[0] if isinstance(test, cst.Comparison) and len(test.comparisons) == 1 else None
    if only is None or not isinstance(only.operator, cst.IsNot) or dotted(only.comparator) != "None":
        return None
    left = test.left if isinstance(test, cst.Comparison) else None
    return left.value if isinstance(left, cst.Name) else None


def loops_once(file: ParsedFile, is_concerned: Callable[[cst.FunctionDef], bool]) -> Lines:
    """`for a in [b]: train_and_evaluate(estimator, *a)`, a loop of one turn: `a = b` and its lines.

    One that goes over a number, as `for units in [8]:`, is there for more of them, and stays.
    """
    found: Lines = {}
    scopes: list[_Scope] = [file.module, *filter(is_concerned, functions_in(file.module))]
    for loop in [node for scope in scopes for node in of_kinds(scope, cst.For)]:
        items = loop.iter.elements if isinstance(loop.iter, (cst.List, cst.Tuple)) else ()
        body = loop.body.body if isinstance(loop.body, cst.IndentedBlock) else ()
        if len(items) != 1 or not isinstance(items[0], cst.Element) or loop.orelse is not None or not body:
            continue
        leaves = of_kinds(loop.body, cst.Break, cst.Continue)
        trains = any((dotted(call.func) or "").rpartition(".")[2] in _TRAINS for call in calls_in(loop.body))
        if (
            leaves
            or not (trains or calls_in(items[0].value))
            or loop.asynchronous is not None
            or file.may_have_comment(loop.iter)
        ):
            continue
        given = cst.Assign([cst.AssignTarget(loop.target)], items[0].value)
        found[loop] = [cst.SimpleStatementLine([given], leading_lines=loop.leading_lines), *body]
        return found
    return found


def names_told(file: ParsedFile) -> Names:
    """`globals()["rate"]` and `getattr(sys.modules[__name__], "model_fn")`: the name of the module itself.

    Only where nothing around has that name, too.
    """
    found: Names = {}
    bound = read_bindings(file.module)
    own = {one.name for one in bound if one.scope is None}
    for node in nodes_in(file.module):
        name = _told_name(file, node)
        if name is None or name not in own or file.may_have_comment(node):
            continue
        around = [one.name for one in bound if one.scope is not None]
        if name not in around and not isinstance(file.parents.get(node), (cst.AssignTarget, cst.AugAssign, cst.Del)):
            found[node] = cst.Name(name)
    return found


def _told_name(file: ParsedFile, node: cst.CSTNode) -> str | None:
    """The text by which an expression asks the module for one of its names."""
    said: cst.BaseExpression | None = None
    if isinstance(node, cst.Subscript) and len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Index):
        asked = node.value
        is_all = isinstance(asked, cst.Call) and dotted(asked.func) == "globals" and not asked.args
        said = node.slice[0].slice.value if is_all and "globals" not in file.names_at_top else None
    elif isinstance(node, cst.Call) and dotted(node.func) == "getattr" and len(node.args) == 2:
        of = node.args[0].value
        index = of.slice[0].slice if isinstance(of, cst.Subscript) and len(of.slice) == 1 else None
        is_module = isinstance(of, cst.Subscript) and file.imports.resolve(of.value) == "sys.modules"
        is_own = isinstance(index, cst.Index) and dotted(index.value) == "__name__"
        said = node.args[1].value if is_module and is_own and "getattr" not in file.names_at_top else None
    text = said.evaluated_value if isinstance(said, cst.SimpleString) else None
    return text if isinstance(text, str) and text.isidentifier() else None


def comprehensions_apart(file: ParsedFile, is_concerned: Callable[[cst.FunctionDef], bool]) -> Lines:
    """`[estimator.train(...) for _ in range(3)]`, whose list nobody takes: a loop."""
    found: Lines = {}
    scopes: list[_Scope] = [file.module, *filter(is_concerned, functions_in(file.module))]
    for scope in scopes:
        for line in lines_of(scope):
            small = line.body[0] if len(line.body) == 1 else None
            made = small.value if isinstance(small, cst.Expr) else None
            if not isinstance(made, cst.ListComp) or file.may_have_comment(made):
                continue
            loop = made.for_in
            given = {one.value for one in name_nodes(loop.target)}
            is_own = all(sum(one.value == name for one in name_nodes(scope)) == _said(made, name) for name in given)
            if loop.inner_for_in is not None or loop.ifs or loop.asynchronous is not None or not is_own:
                continue
            body = cst.IndentedBlock([cst.SimpleStatementLine([cst.Expr(made.elt)])])
            found[line] = [cst.For(loop.target, loop.iter, body, leading_lines=line.leading_lines)]
    return found


def _said(node: cst.CSTNode, name: str) -> int:
    return sum(one.value == name for one in name_nodes(node))


def without_declarations(file: ParsedFile, is_concerned: Callable[[cst.FunctionDef], bool]) -> Lines:
    """`net: tf.Tensor` in a function, where other lines give the name its values."""
    found: Lines = {}
    for function in filter(is_concerned, functions_in(file.module)):
        bound = bound_in(function)
        given = {one.name for one in bound if one.form is Form.ASSIGNED}
        for line in lines_of(function):
            small = line.body[0] if len(line.body) == 1 else None
            if isinstance(small, cst.AnnAssign) and small.value is None and isinstance(small.target, cst.Name):
                if small.target.value in given and not file.may_have_comment(small):
                    found[line] = []
    return found


def on_the_processor(file: ParsedFile) -> Lines:
    """`with tf.device("/cpu:0"):` around datasets, which are nowhere else anyway: what stands inside."""
    found: Lines = {}
    for node in [one for one in nodes_in(file.module) if isinstance(one, cst.With)]:
        item = node.items[0].item if len(node.items) == 1 and node.items[0].asname is None else None
        if not isinstance(item, cst.Call) or file.imports.tensorflow(item.func) != "tf.device" or len(item.args) != 1:
            continue
        place = item.args[0].value
        text = place.evaluated_value if isinstance(place, cst.SimpleString) else None
        is_cpu = isinstance(text, str) and text.lower() in _PROCESSORS
        symbols = [file.imports.tensorflow(call.func) or "" for call in calls_in(node.body)]
        asked = [one for one in symbols if one]
        data = bool(asked) and all(one.startswith(("tf.data.", "tf.compat.v1.data.")) for one in asked)
        if is_cpu and data and isinstance(node.body, cst.IndentedBlock) and not file.may_have_comment(item):
            first, *rest = node.body.body
            above = [*node.leading_lines, *getattr(first, "leading_lines", ())]
            found[node] = [first.with_changes(leading_lines=above), *rest]
            return found
    return found


def without_globals(file: ParsedFile, elsewhere: Callable[[str], bool]) -> Lines:
    """`global estimator` in the only function that has to do with that name."""
    found: Lines = {}
    everywhere = [node.value for node in name_nodes(file.module)]
    for function in functions_in(file.module):
        inside = [node.value for node in name_nodes(function)]
        for line in lines_of(function):
            small = line.body[0] if len(line.body) == 1 else None
            if not isinstance(small, cst.Global):
                continue
            names = [item.name.value for item in small.names]
            own = [name for name in names if everywhere.count(name) == inside.count(name) and not elsewhere(name)]
            if own == names and all(_is_given_first(function, name, line) for name in names):
                found[line] = []
    return found


def without_forwarding_methods(file: ParsedFile, is_concerned: Callable[[cst.FunctionDef], bool]) -> Lines:
    """`def model_fn(self, ...): return super().model_fn(...)`, which says what a class inherits anyway."""
    found: Lines = {}
    classes = {one.name.value: one for one in file.module.body if isinstance(one, cst.ClassDef)}
    bound = Counter(one.name for one in read_bindings(file.module) if one.scope is None)
    for owner in classes.values():
        methods = [one for one in owner.body.body if isinstance(one, cst.FunctionDef)]
        for method in methods:
            name = method.name.value
            above = _inherited(classes, bound, owner, name)
            once = sum(one.name == name for one in bound_in(owner)) == 1
            if above is None or not once or not is_concerned(above) or not _asks_base(owner, method, above):
                continue
            only = all(line is method or is_text(line) for line in owner.body.body)
            found[method] = [cst.SimpleStatementLine([cst.Pass()])] if only else []
    return found


def _inherited(
    classes: Mapping[str, cst.ClassDef], bound: Mapping[str, int], owner: cst.ClassDef, name: str
) -> cst.FunctionDef | None:
    """The method of a name that a class has of its only base, or of that one's, in the file."""
    for _ in range(_DEPTH):
        base = owner.bases[0].value if len(owner.bases) == 1 else None
        known = classes.get(base.value) if isinstance(base, cst.Name) else None
        if known is None or known is owner or bound[known.name.value] != 1 or known.decorators or owner.keywords:
            return None
        owner = known
        own = [one for one in bound_in(owner) if one.name == name]
        if own:
            made = own[0].node
            return made if len(own) == 1 and isinstance(made, cst.FunctionDef) and not made.decorators else None
    return None


def _asks_base(owner: cst.ClassDef, method: cst.FunctionDef, above: cst.FunctionDef) -> bool:
    """Whether a method only gives what that of the base does for the same arguments."""
    lines = [line for line in method.body.body if not is_text(line)]
    small = lines[0].body[0] if len(lines) == 1 and isinstance(lines[0], cst.SimpleStatementLine) else None
    call = small.value if isinstance(small, cst.Return) else None
    func = call.func if isinstance(call, cst.Call) else None
    if not isinstance(call, cst.Call) or not isinstance(func, cst.Attribute) or method.decorators:
        return False
    asked = func.value
    if not isinstance(asked, cst.Call) or dotted(asked.func) != "super" or func.attr.value != method.name.value:
        return False
    params, others = method.params, above.params
    for one in (params, others):
        if one.posonly_params or one.kwonly_params or one.star_kwarg or isinstance(one.star_arg, cst.Param):
            return False
    names = [one.name.value for one in params.params]
    if names != [one.name.value for one in others.params] or any(
        one.default for one in (*params.params, *others.params)
    ):
        return False
    given = [dotted(arg.value) for arg in asked.args if arg.keyword is None and not arg.star]
    if given not in ([], [owner.name.value, names[0]]) or len(given) != len(asked.args):
        return False
    passed = [dotted(arg.value) for arg in call.args if not arg.star]
    plain = all(arg.keyword is None or arg.keyword.value == dotted(arg.value) for arg in call.args)
    return plain and len(passed) == len(call.args) and passed == names[1:]


def without_local_imports(file: ParsedFile) -> tuple[Lines, Names]:
    """`import tensorflow as flow` in a function of a file that imports it anyway: the name that it has there."""
    lines: Lines = {}
    names: Names = {}
    bound = read_bindings(file.module)
    top = [one for one in bound if one.is_global and one.origin == "tensorflow" and _is_at_the_top(file, one.node)]
    if len(top) != 1 or sum(one.name == top[0].name for one in bound) != 1:
        return lines, names
    for function in functions_in(file.module):
        for line in lines_of(function):
            small = line.body[0] if len(line.body) == 1 else None
            if not isinstance(small, cst.Import) or len(small.names) != 1:
                continue
            alias = small.names[0]
            if dotted(alias.name) != "tensorflow" or alias.asname is None:
                continue
            name = dotted(alias.asname.name) or ""
            if sum(one.name == name for one in bound) != 1:
                continue
            lines[line] = []
            names.update({node: cst.Name(top[0].name) for node in name_nodes(function) if node.value == name})
    return lines, names


def bare(node: cst.BaseExpression) -> cst.BaseExpression:
    """An expression without the parentheses around it, where it stands on one line."""
    return node if "\n" in cst.Module([]).code_for_node(node) else node.with_changes(lpar=(), rpar=())


def lines_of(scope: _Scope) -> list[cst.SimpleStatementLine]:
    """The lines of a scope itself, functions and classes inside left out."""
    return own_of_kinds(scope, cst.SimpleStatementLine, inner=(cst.FunctionDef, cst.ClassDef))


def _is_at_the_top(file: ParsedFile, node: cst.CSTNode) -> bool:
    """Whether an import stands at the top level, or where that only chooses how TensorFlow is imported."""
    lines = [line for line in file.module.body if isinstance(line, cst.SimpleStatementLine)]
    return any(node is one for line in (*lines, *file.imports.collapsed) for one in nodes_in(line))


def _is_given_first(function: cst.FunctionDef, name: str, line: cst.SimpleStatementLine) -> bool:
    """Whether a plain assignment gives a name its value, in the function's own block, before all that reads it."""
    for statement in function.body.body:
        if statement is line or name not in names_in(statement):
            continue
        small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
        if not isinstance(small, cst.Assign) or name in names_in(small.value):
            return False
        return any(isinstance(one.target, cst.Name) and one.target.value == name for one in small.targets)
    return False


def _is_new_graph(file: ParsedFile, node: cst.BaseExpression) -> bool:
    """Whether an expression is `tf.Graph().as_default()`."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute) or node.args:
        return False
    made = node.func.value
    is_graph = isinstance(made, cst.Call) and not made.args and file.imports.tensorflow(made.func) == "tf.Graph"
    return is_graph and node.func.attr.value == "as_default"


def drives(file: ParsedFile, block: cst.IndentedBlock, alone: bool = True) -> bool:
    """Whether statements make or drive Estimators; `alone`: and do nothing else that a graph around them matters to."""
    reader = _Driver(file)
    reader.read(block, _DEPTH)
    return reader.drives and not (alone and reader.other)


class _Driver(cst.CSTVisitor):
    """What statements do with TensorFlow, with the functions of the file that they call."""

    def __init__(self, file: ParsedFile) -> None:
        super().__init__()
        self.file = file
        self.drives = self.other = False
        self.depth = 0
        self.seen: set[str] = set()

    def read(self, node: cst.CSTNode, depth: int) -> None:
        before, self.depth = self.depth, depth
        walk(node, self)
        self.depth = before

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return False  # what an Estimator is given runs in its own graph; what is called is read then

    def visit_Lambda(self, node: cst.Lambda) -> bool:
        return False

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        return not self._read(node)

    def visit_Name(self, node: cst.Name) -> None:
        self._read(node)

    def visit_Call(self, node: cst.Call) -> None:
        name = dotted(node.func) or ""
        origin = self.file.imports.names.get(name.partition(".")[0])
        if origin is not None and not self.file.imports.tensorflow(node.func):
            head = origin.partition(".")[0]
            self.other = self.other or (head not in STANDARD_MODULES and head not in _WITHOUT_GRAPHS)
            return
        self.drives = self.drives or (isinstance(node.func, cst.Attribute) and node.func.attr.value in _DRIVING)
        function = self.file.functions.get(name)
        if function is None or name in self.seen:
            return
        self.seen.add(name)
        self.other = self.other or self.depth == 0
        if self.depth:
            self.read(function.body, self.depth - 1)

    def _read(self, node: cst.Attribute | cst.Name) -> bool:
        name = self.file.imports.tensorflow(node)
        if name is None:
            return False
        self.drives = self.drives or name.startswith("tf.estimator.")
        allowed = ("tf.estimator", *ANYWHERE)
        self.other = self.other or not any(name == one or name.startswith(f"{one}.") for one in allowed)
        return True


def forwarded(file: ParsedFile, call: cst.Call) -> cst.Call | None:
    """What a call of a function comes down to that only hands on what it is given: `return f(*args, **kwargs)`.

    `f` is its first parameter, or a name of the module that is given all parameters in their order.
    """
    function = file.functions.get(call.func.value) if isinstance(call.func, cst.Name) else None
    is_static = isinstance(call.func, cst.Attribute)
    function = _static_method(file, call.func) if isinstance(call.func, cst.Attribute) else function
    if (
        function is None
        or (function.decorators and not is_static)
        or function.asynchronous is not None
        or not call.args
    ):
        return None
    bound = [one for one in read_bindings(file.module) if one.name == function.name.value]
    if [one.form for one in bound] != [Form.FUNCTION] and not is_static:
        return None
    params = function.params
    rest = [params.star_arg if isinstance(params.star_arg, cst.Param) else None, params.star_kwarg]
    if params.posonly_params or params.kwonly_params or any(one.default is not None for one in params.params):
        return None
    lines = list(function.body.body)
    line = lines[-1] if lines else None
    small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
    inner = small.value if isinstance(small, cst.Return) else None
    if not isinstance(inner, cst.Call) or len(lines) > 2 or (len(lines) == 2 and not is_text(lines[0])):
        return None
    passed = [(arg.star, dotted(arg.value)) for arg in inner.args]
    wanted = [(star, one.name.value) for star, one in zip(("*", "**"), rest) if one is not None]
    names = [one.name.value for one in params.params]
    of, count = (dotted(inner.func) or "").partition(".")[0], len(names)
    if any(arg.keyword is not None for arg in inner.args) or not wanted:
        return None
    first, others = call.args[:count], call.args[count:]
    if len(first) != count or any(one.keyword is not None or one.star for one in first):
        return None
    if names == [dotted(inner.func)] and passed == wanted and dotted(first[0].value) is not None:
        new = call.with_changes(func=first[0].value, args=others)
    elif passed == [*(("", name) for name in names), *wanted] and of and _is_of_module(file, of, call, function):
        new = call.with_changes(func=inner.func)
    else:
        return None
    keywords = any(arg.keyword is not None or arg.star == "**" for arg in others)
    places = any(arg.keyword is None and arg.star != "**" for arg in others)
    if (keywords and rest[1] is None) or (places and rest[0] is None):
        return None
    if any(arg.keyword is not None and arg.keyword.value in names for arg in others):
        return None
    return new


def _called(file: ParsedFile, func: cst.BaseExpression) -> cst.FunctionDef | None:
    """The function without decorators that a name is, and nothing else, or the static method of a class."""
    if isinstance(func, cst.Attribute):
        return _static_method(file, func)
    function = file.functions.get(func.value) if isinstance(func, cst.Name) else None
    if function is None or function.decorators:
        return None
    bound = [one for one in read_bindings(file.module) if one.name == function.name.value]
    return function if [one.form for one in bound] == [Form.FUNCTION] else None


def _static_method(file: ParsedFile, func: cst.Attribute) -> cst.FunctionDef | None:
    """The static method that `Layers.dense` is, of a class that nothing but its statement binds and nothing changes."""
    owner = file.classes.get(func.value.value) if isinstance(func.value, cst.Name) else None
    bound = read_bindings(file.module)
    if owner is None or owner.decorators or sum(one.name == owner.name.value for one in bound) != 1:
        return None
    found = [one for one in bound_in(owner) if one.name == func.attr.value]
    made = found[0].node if len(found) == 1 else None
    if not isinstance(made, cst.FunctionDef) or [dotted(one.decorator) for one in made.decorators] != ["staticmethod"]:
        return None
    asked = [
        one for one in nodes_in(file.module) if isinstance(one, cst.Attribute) and one.attr.value == func.attr.value
    ]
    kept = (cst.AssignTarget, cst.AugAssign, cst.Del, cst.Element)
    is_set = any(isinstance(file.parents.get(one), kept) for one in asked) or "setattr" in file.bare
    return None if is_set or "staticmethod" in file.names_at_top else made


def _is_of_module(file: ParsedFile, name: str, call: cst.Call, function: cst.FunctionDef) -> bool:
    """Whether a name is TensorFlow's, or a function of the module, in a function and where that is called."""
    around: cst.CSTNode | None = call
    while around is not None:
        if isinstance(around, (cst.FunctionDef, cst.Lambda, cst.ClassDef)):
            if any(one.name == name for one in bound_in(around)):
                return False
        around = file.parents.get(around)
    known = name in file.functions or file.imports.tensorflow(cst.Name(name)) is not None
    return known and all(one.name != name for one in bound_in(function))


def is_text(line: cst.CSTNode) -> bool:
    """Whether a line is a text."""
    small = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
    return isinstance(small, cst.Expr) and isinstance(small.value, (cst.SimpleString, cst.ConcatenatedString))


def called_lambda(file: ParsedFile, call: cst.Call) -> cst.BaseExpression | None:
    """`(lambda: value)()`: the value. Not in a class, whose names a lambda does not see."""
    made = call.func
    if call.args or not isinstance(made, cst.Lambda) or made.params.params or made.params.kwonly_params:
        return None
    if made.params.posonly_params or isinstance(made.params.star_arg, cst.Param) or made.params.star_kwarg:
        return None
    if of_kinds(made.body, cst.NamedExpr, cst.Yield, cst.Await):
        return None
    around: cst.CSTNode | None = call
    while around is not None and not isinstance(around, (cst.FunctionDef, cst.Lambda)):
        if isinstance(around, cst.ClassDef):
            return None
        around = file.parents.get(around)
    return made.body
