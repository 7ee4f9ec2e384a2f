"""Helper functions inlined: where a model_fn calls one, the helper's own statements take the place of the call.

A helper that computes the network, or makes an object, is left where it is (see `helpers`). One that reads the labels,
makes the loss, the training or the metrics, or branches on the mode, says what `compile` says in the new program: its
statements are put into the model_fn, with its parameters and its local names replaced, and are read there. So are the
methods of an object that the model_fn makes and that trains, or is told the mode: its attributes become names.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar, cast

import libcst as cst

from migrator.names.bindings import Form, all_given, read_bindings, value_given
from migrator.names.free import free
from migrator.names.imports import canonical, dotted
from migrator.pairing import equal_zip
from migrator.program.calls import calls_in, is_none, nodes_in, parameters_of
from migrator.program.comments import comment_lines
from migrator.program.entries import NotFollowed, Surroundings, with_named_attributes, with_named_entries
from migrator.program.further_imports import import_of, origin_of
from migrator.program.helpers import Scope, can_stay, helper_of, makes_function, touches_training
from migrator.program.keras_losses import as_function
from migrator.program.model_reference import ModelReference
from migrator.program.modes import ALL, ModeNames, Modes, specialise
from migrator.program.own_objects import OwnObjects, decorators_of, records, takes_any
from migrator.program.parsed import Blocked, Following, Further, ParsedFile, Project, name_nodes, names_in
from migrator.program.scopes import bindings, mentions_of, returns_in
from migrator.walking import Transformer, of_kinds, remade, walk

_Node = TypeVar("_Node", bound=cst.CSTNode)
Statements = list[cst.BaseStatement]
_ROUNDS = 8


@dataclass(frozen=True)
class Inlined:
    """A model_fn without calls of the helpers that were inlined, these helpers, and the mentions that are gone.

    `classes` are those of the objects whose attributes are names now, with their bases.
    """

    node: cst.FunctionDef
    helpers: tuple[tuple[ParsedFile, cst.FunctionDef], ...]
    mentions: frozenset[cst.CSTNode]
    classes: tuple[tuple[ParsedFile, cst.ClassDef], ...] = ()


def inline_helpers(project: Project, model: ModelReference) -> Inlined:
    """Reads a model_fn through its helpers. Raises Blocked (TFM120, TFM121) for a helper that cannot be followed."""
    return _Inliner(project, model).run()


class _Inliner:
    def __init__(self, project: Project, model: ModelReference) -> None:
        self.project = project
        self.file = model.file
        self.function = model.function
        self.parameters = model.parameters
        self.scope = Scope.of(project, model.file, model.function)
        self.names = ModeNames(self.file.imports, self.parameters.mode, functions=self.file.functions)
        self.tainted = {self.parameters.labels} - {None}
        self.taken = names_in(model.function) | self.file.imports.names.keys() | self.file.names_at_top
        self.taken |= self.file.further.keys()
        self.helpers: list[tuple[ParsedFile, cst.FunctionDef]] = []
        self.mentions: set[cst.CSTNode] = set()
        self.stack: list[cst.FunctionDef] = []
        self.changed = False
        self.own: set[str] = set()  # the names of helpers' own values, as they are called in the model_fn
        self.called: set[str] = set()  # names of loss objects that are called no more
        self.dicts: set[str] = set()  # names that a helper's dict was given to
        self.objects = OwnObjects(project, self.file, self._same)

    def run(self) -> Inlined:
        original, names = self.function, self.names
        for _ in range(_ROUNDS):  # an object may be seen to be told the mode when the calls of another one are inlined
            self.names = names
            node = self._inlined()
            if node is self.function:
                break
            self.function = node
            # A function that a helper made is one of the model_fn's own now.
            self.scope = replace(self.scope, around=(*self.scope.around[:-1], node))
        if self.function is original:
            return Inlined(original, (), frozenset())
        helpers = tuple(dict.fromkeys(self.helpers))
        node = self._without_unused(self.function)
        return Inlined(node, helpers, frozenset(self.mentions), self.objects.classes())

    def _inlined(self) -> cst.FunctionDef:
        """The model_fn after one round; itself where there is nothing to inline."""
        body = self.function.body
        if not isinstance(body, cst.IndentedBlock):
            return self.function
        before = len(self.helpers), len(self.objects.made)
        self.changed = False
        new = self._block(body.body)
        node = self.function
        if self.changed or before != (len(self.helpers), len(self.objects.made)):
            node = self._same(node, node.with_changes(body=body.with_changes(body=new)))
        return self._with_names(node)

    def _with_names(self, node: cst.FunctionDef) -> cst.FunctionDef:
        """The function with the entries of dicts, and the attributes of objects that are made here, as names."""
        changed = [target for _, target in bindings(node) if isinstance(target, (cst.Attribute, cst.Subscript))]
        deep = any(isinstance(target.value, (cst.Call, cst.Subscript)) for target in changed)
        around = Surroundings(
            self._leaves, deep, self._modes, records(self.project, self.file), self._fresh, self._same
        )
        for name, made in self.objects.made.items():
            if name not in names_in(node.body):
                continue
            try:
                node = with_named_attributes(node, name, made.constants, around)
            except NotFollowed:
                message = f"`{name}` is used beyond its attributes and methods: its class stays"
                raise Blocked("TFM120", made.call, message) from None
        return with_named_entries(node, frozenset(self.dicts), around)

    def _modes(self, node: cst.FunctionDef) -> Callable[[Sequence[cst.CSTNode]], Modes]:
        """In which modes the statement runs that one of some nodes is, where these stand around each other."""
        assert isinstance(node.body, cst.IndentedBlock)
        labels = self.parameters.labels
        try:
            specialised = specialise(
                node.body.body, self.file.imports, self.parameters.mode, True, self.file.functions, labels
            )
        except Blocked:
            return lambda _: ALL
        known: dict[cst.CSTNode, Modes] = {one.node: one.modes for one in specialised.statements}
        for spec in specialised.specs:
            known[spec.statement] = known.get(spec.statement, frozenset()) | spec.modes
        return lambda nodes: next((known[one] for one in nodes if one in known), ALL)

    def _leaves(self, func: cst.BaseExpression) -> bool:
        """Whether a call of this leaves its arguments as they are: it is of a library, or of Python."""
        if isinstance(func, cst.Name) and func.value in ("dict", "len", "list", "print", "sorted", "tuple"):
            return True
        return self.file.imports.tensorflow(func) is not None

    def _without_unused(self, node: cst.FunctionDef) -> cst.FunctionDef:
        """Functions and loss objects inside the model_fn that nothing calls any more go."""
        names = self.called | {h.name.value for _, h in self.helpers if any(h is n for n in self._nested())}
        unused = {name for name in names if not mentions_of(node, name)}
        if not unused:
            return node
        new = node.visit(_Without(unused, self._same))
        assert isinstance(new, cst.FunctionDef)
        return new

    def _same(self, old: cst.CSTNode, new: _Node) -> _Node:
        """`new`, remembered as standing where `old` stood."""
        if new is not old:
            self.file.origins[new] = old
        return new

    # -- statements ------------------------------------------------------------------------------------------------

    def _block(self, statements: Sequence[cst.BaseStatement]) -> Statements:
        new: Statements = []
        for statement in statements:
            new += self._statement(statement)
        return new

    def _statement(self, statement: cst.BaseStatement) -> Statements:
        new: Statements = [statement]
        if isinstance(statement, cst.SimpleStatementLine):
            return self._simple(statement) if len(statement.body) == 1 else [statement]
        if isinstance(statement, cst.If):
            new = [self._if(statement)]
        elif isinstance(statement, (cst.With, cst.For, cst.While)) and isinstance(statement.body, cst.IndentedBlock):
            inner = self._block(statement.body.body)
            if any(a is not b for a, b in zip(inner, statement.body.body)) or len(inner) != len(statement.body.body):
                new = [self._same(statement, statement.with_changes(body=statement.body.with_changes(body=inner)))]
        return new

    def _if(self, statement: cst.If) -> cst.If:
        changes: dict[str, object] = {}
        if isinstance(statement.body, cst.IndentedBlock):
            inner = self._block(statement.body.body)
            if list(inner) != list(statement.body.body):
                changes["body"] = statement.body.with_changes(body=inner)
        if isinstance(statement.orelse, cst.If):
            other = self._if(statement.orelse)
            if other is not statement.orelse:
                changes["orelse"] = other
        elif statement.orelse is not None and isinstance(statement.orelse.body, cst.IndentedBlock):
            inner = self._block(statement.orelse.body.body)
            if list(inner) != list(statement.orelse.body.body):
                block = statement.orelse.body.with_changes(body=inner)
                changes["orelse"] = statement.orelse.with_changes(body=block)
        return self._same(statement, statement.with_changes(**changes)) if changes else statement

    def _simple(self, line: cst.SimpleStatementLine) -> Statements:
        line = self.objects.with_properties_called(line)
        small = line.body[0]
        parts = _nones(small)
        if parts:
            lines = [cst.SimpleStatementLine([part]) for part in parts]
            lines[0] = lines[0].with_changes(leading_lines=[*line.leading_lines, *comment_lines(line, leading=False)])
            self.changed = True
            return [self._same(line, part) for part in lines]
        value = getattr(small, "value", None)
        if not isinstance(value, cst.BaseExpression):
            return [line]
        if isinstance(value, cst.Call) and isinstance(small, (cst.Assign, cst.Return, cst.Expr)):
            found = self._to_inline(value)
            if found is not None:
                return self._expand(line, small, value, *found)
            made = self._closure(small, value)
            if made is not None:
                return self._expand(line, small, value, *made)
            constructed = self.objects.constructed(small, value, self._is_told)
            if constructed is not None:
                method, call = constructed
                return self._expand(line, cst.Expr(call), call, *method)
        before: Statements = []
        finder = _Calls()
        walk(value, finder)
        for call in finder.found:
            computed = as_function(call, self._value_of, self.file.imports)
            if computed is not None:
                new = line.deep_replace(call, self._same(call, computed))
                assert isinstance(new, cst.SimpleStatementLine)
                self.changed = True
                if isinstance(call.func, cst.Name):
                    self.called.add(call.func.value)
                return self._simple(self._same(line, new))
            maker = self._maker_of_told(call)
            if maker is not None and isinstance(call.func, cst.Call):
                return self._made_apart(line, call, call.func, maker)
            found = self._to_inline(call)
            if found is None:
                continue
            name = free(f"{found[1].name.value.strip('_')}_value", self.taken)
            self.taken.add(name)
            assign = cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name(name))], call)])
            before += self._simple(self._same(line, assign))
            new = line.deep_replace(call, cst.Name(name))
            assert isinstance(new, cst.SimpleStatementLine)
            line = self._same(line, self._single(before, name, new))
            return [*before, *self._simple(line)]
        self._remember(small)
        return [line]

    def _value_of(self, name: cst.Name) -> cst.BaseExpression | None:
        """The one value of a name of the model_fn, or of its file."""
        bound = [node for known, node in bindings(self.function) if known == name.value]
        if not bound:
            return self.file.constants.get(name.value)
        return value_given(self.function, bound[0]) if len(bound) == 1 else None

    def _made_apart(
        self, line: cst.SimpleStatementLine, call: cst.Call, making: cst.Call, maker: tuple[ParsedFile, cst.FunctionDef]
    ) -> Statements:
        """A line that calls what another call makes, with a line before it that gives this a name."""
        name = self._fresh("network")
        assign = cst.Assign([cst.AssignTarget(cst.Name(name))], making)
        made = self._same(line, cst.SimpleStatementLine([assign]))
        new = line.with_deep_changes(call, func=cst.Name(name))
        assert isinstance(new, cst.SimpleStatementLine)
        return [*self._expand(made, assign, making, *maker), *self._simple(self._same(line, new))]

    def _single(self, before: Statements, name: str, line: cst.SimpleStatementLine) -> cst.SimpleStatementLine:
        """Puts the value of a name that was just made for one expression back into it."""
        last = before[-1] if before else None
        if isinstance(last, cst.SimpleStatementLine) and isinstance(last.body[0], cst.Assign):
            target = last.body[0].targets[0].target
            if isinstance(target, cst.Name) and target.value == name and len(before) == 1:
                value = last.body[0].value
                if not isinstance(value, (cst.Name, cst.Call, cst.Attribute, cst.Subscript)) and not value.lpar:
                    value = value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
                new = line.visit(_Substitution({name: value}, self._same))
                assert isinstance(new, cst.SimpleStatementLine)
                before.pop()
                return new
        return line

    def _remember(self, small: cst.BaseSmallStatement) -> None:
        """Keeps account of flags of the mode and of what is computed from the labels."""
        if isinstance(small, cst.Assign) and len(small.targets) == 1 and isinstance(small.targets[0].target, cst.Name):
            when = self.names.when(small.value)
            if when is not None:
                self.names = replace(self.names, flags={**self.names.flags, small.targets[0].target.value: when})
                return
        if isinstance(small, (cst.Assign, cst.AnnAssign, cst.AugAssign)) and small.value is not None:
            targets = [t.target for t in small.targets] if isinstance(small, cst.Assign) else [small.target]
            if names_in(small.value) & self.tainted:
                for target in targets:
                    self.tainted |= names_in(target)

    # -- which calls -----------------------------------------------------------------------------------------------

    def _to_inline(self, call: cst.Call) -> tuple[ParsedFile, cst.FunctionDef] | None:
        """The helper of a call that has to be inlined; None when the call may stay."""
        method = self.objects.method(call.func)
        found = method or helper_of(self.project, self.scope, call.func)
        if found is None or any(found[1] is function for function in self.stack):
            return None
        if method is not None:
            return method
        file, helper = found
        given = set().union(*(names_in(arg.value) for arg in call.args)) if call.args else set()
        own = {n.name.value for n in self._nested() if n is helper}
        if given & self.tainted or touches_training(self.project, file, helper):
            return found
        if own and names_in(helper) & self.tainted:
            return found
        return None if can_stay(self.project, self.scope, self.names, call, file, helper) else found

    def _closure(
        self, small: cst.Assign | cst.Return | cst.Expr, call: cst.Call
    ) -> tuple[ParsedFile, cst.FunctionDef] | None:
        """The function that makes the network's function, where that is given a name and is told the mode."""
        names = _target_names(small)
        found = self._maker(call) if len(names) == 1 else None
        return found if found is not None and self._is_told(names[0], call) else None

    def _maker(self, call: cst.Call) -> tuple[ParsedFile, cst.FunctionDef] | None:
        """The function that is called, where it makes another one."""
        found = helper_of(self.project, self.scope, call.func)
        if found is None or any(found[1] is function for function in self.stack):
            return None
        return found if makes_function(self.project, *found) else None

    def _maker_of_told(self, call: cst.Call) -> tuple[ParsedFile, cst.FunctionDef] | None:
        """What makes the function that is called by `network(4)(x, training)`, where that tells the mode."""
        if not isinstance(call.func, cst.Call):
            return None
        about = {*self.tainted, *self._names_told()}
        told = any(not about.isdisjoint(names_in(arg.value)) for arg in (*call.args, *call.func.args))
        return self._maker(call.func) if told else None

    def _names_told(self) -> frozenset[str]:
        """The names that say something of the mode, those that come later in the model_fn among them."""
        names = self.names
        for target, value in all_given(self.function):
            when = names.when(value) if isinstance(target, cst.Name) else None
            if when is not None and isinstance(target, cst.Name):
                names = replace(names, flags={**names.flags, target.value: when})
        return names.about

    def _is_told(self, name: str, made: cst.Call) -> bool:
        """Whether an object is told the mode, or given labels: by the call that makes it, or by one of its methods."""
        about = {*self.tainted, *self._names_told()}
        return any(
            not about.isdisjoint(names_in(arg.value))
            for call in (made, *calls_in(self.function))
            if call is made or dotted(call.func) == name or (dotted(call.func) or "").startswith(f"{name}.")
            for arg in call.args
        )

    def _nested(self) -> list[cst.FunctionDef]:
        """The functions inside the model_fn."""
        return [node for _, node in bindings(self.function) if isinstance(node, cst.FunctionDef)]

    def _check_defaults(
        self, file: ParsedFile, helper: cst.FunctionDef, arguments: Mapping[str, cst.BaseExpression], call: cst.Call
    ) -> None:
        """Refuses a default that reads a name with several values: it was read where the helper is defined."""
        nested = any(helper is one for one in self._nested())
        scope: cst.CSTNode = self.function if nested else file.module
        params = helper.params
        for param in (*params.posonly_params, *params.params, *params.kwonly_params):
            if param.default is None or arguments.get(param.name.value) is not param.default:
                continue
            for name in sorted(names_in(param.default)):
                values = sum(known == name for known, _ in bindings(scope))
                given = nested and any(one.name.value == name for one in parameters_of(self.function))
                if values + given > 1:
                    message = (
                        f"a default of `{helper.name.value}` reads `{name}`, which is reassigned: pass it explicitly"
                    )
                    raise Blocked("TFM120", call, message)

    # -- one call --------------------------------------------------------------------------------------------------

    def _expand(
        self,
        line: cst.SimpleStatementLine,
        small: cst.Assign | cst.Return | cst.Expr,
        call: cst.Call,
        file: ParsedFile,
        helper: cst.FunctionDef,
    ) -> Statements:
        body = _plain_body(helper, call)
        said = call.func
        if self.objects.method(said) is not None:
            body = self.objects.with_bases_named(file, helper, body)
            if isinstance(said, cst.Name):
                func = self._same(said, cst.Attribute(said, cst.Name("__call__")))
                call = self._same(call, call.with_changes(func=func))
        this = self.scope.of_parent(call.func.value) if isinstance(call.func, cst.Attribute) else None
        if this is not None:
            call = call.with_deep_changes(call.func, value=this)
        arguments = _bind(helper, call, self._is_bound(call, helper))
        self._check_defaults(file, helper, arguments, call)
        bound = {name for name, node in bindings(helper) if not isinstance(node, (cst.Attribute, cst.Subscript))}
        bound |= _bound_inside(helper)
        parameters = set(arguments)
        rebound = {
            name
            for name, node in bindings(helper)
            if name in parameters and isinstance(node, (cst.Name, cst.FunctionDef, cst.ClassDef))
        }
        rebound |= _bound_inside(helper) & parameters
        mapping: dict[str, cst.BaseExpression] = self._globals(file, helper, bound | parameters, call)
        read = set().union(*(names_in(value) for value in arguments.values())) if arguments else set()
        outside = _globals_of(helper, bound | parameters)
        targets = _target_names(small)
        returned = _returned_names(body, len(targets)) if targets else None
        direct: dict[str, str] = {}
        if returned is not None and len(set(returned)) == len(returned) and len(set(targets)) == len(targets):
            for name, target in equal_zip(returned, targets):
                whole = arguments.get(name)
                same = isinstance(whole, cst.Name) and whole.value == target
                others = set().union(set(), *(names_in(v) for k, v in arguments.items() if k != name))
                local = name in bound and name not in parameters
                free_target = (
                    target not in others and target not in mapping and target not in _globals_of(helper, bound)
                )
                if free_target and ((local and target not in read) or (same and name in rebound)):
                    if target not in bound - {name}:
                        direct[name] = target
        changes = any(isinstance(node, (cst.Subscript, cst.Attribute)) for _, node in bindings(helper))
        kept = makes_function(self.project, file, helper)
        new: Statements = []
        for name, value in arguments.items():
            if name in direct:
                mapping[name] = cst.Name(direct[name])
            elif name not in rebound and self._is_function(value):
                mapping[name] = value  # a function that is called by the name of a parameter
                if _only_calls(helper, name):
                    self.mentions.add(self.file.home(value)[1] or value)
            elif (
                name not in rebound
                and _is_simple(value, changes)
                and not self._is_foreign(file, value)
                and not (kept and self._may_change(value))
            ):
                mapping[name] = value
            else:
                fresh = self._fresh(name)
                mapping[name] = cst.Name(fresh)
                assign = cst.Assign([cst.AssignTarget(cst.Name(fresh))], value)
                new.append(self._same(line, cst.SimpleStatementLine([assign])))
                self._remember(assign)
        for name in sorted(bound - parameters):
            if name in direct:
                mapping[name] = cst.Name(direct[name])
            elif isinstance(small, cst.Return) and name in self.own and name not in read | outside:
                mapping[name] = cst.Name(name)  # nothing of the model_fn comes after this helper
            else:
                mapping[name] = cst.Name(self._fresh(name))
                self.own.add(name)
        if file is not self.file and file not in self.file.others:
            self.file.others.append(file)
        substitution = _Substitution(mapping, self._same)
        substituted = [cast(cst.BaseStatement, remade(statement, substitution)) for statement in body]
        if isinstance(small, cst.Return):
            if not _terminates(substituted):
                raise Blocked("TFM120", call, f"`{helper.name.value}` may end without a return: return at its end")
            result = substituted
        else:
            result = _Returns(small, self._same, call).block(substituted)
            if len(targets) == 1:
                self.dicts.add(targets[0])
        if self.objects.method(said) is not None:
            self.changed = True  # it goes with its class
        else:
            self.helpers.append((file, helper))
        self.mentions.add(self.file.home(said)[1] or said)
        self.stack.append(helper)
        new += self._block(result)
        self.stack.pop()
        if new:
            first = new[0]
            if isinstance(first, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
                own = [empty for empty in first.leading_lines if empty.comment is not None]
                above = [*line.leading_lines, *comment_lines(line, leading=False), *own]
                new[0] = self._same(first, first.with_changes(leading_lines=above))
        return new

    def _is_bound(self, call: cst.Call, helper: cst.FunctionDef) -> bool:
        """Whether the call is one of a method through its object."""
        static = any(
            isinstance(d.decorator, cst.Name) and d.decorator.value == "staticmethod" for d in helper.decorators
        )
        if not isinstance(call.func, cst.Attribute) or static:
            return False
        return self.scope.is_own_method(call.func) or self.objects.method(call.func) is not None

    def _is_function(self, value: cst.BaseExpression) -> bool:
        """Whether an argument is a function of the project, or a method of an object that is made here."""
        of_object = isinstance(value, cst.Attribute) and self.objects.method(value) is not None
        return of_object or helper_of(self.project, self.scope, value) is not None

    def _may_change(self, value: cst.BaseExpression) -> bool:
        """Whether an argument may be something else when a function that was given it is called."""
        if isinstance(value, cst.Name):
            return len([name for name, _ in bindings(self.function) if name == value.value]) > (
                0 if any(one.name.value == value.value for one in parameters_of(self.function)) else 1
            )
        return isinstance(value, (cst.Attribute, cst.Subscript))

    def _fresh(self, name: str) -> str:
        fresh = free(name, self.taken)
        self.taken.add(fresh)
        return fresh

    def _is_foreign(self, file: ParsedFile, value: cst.BaseExpression) -> bool:
        """Whether an argument of a helper of another file reads a name that means something else there."""
        return False if file is self.file else isinstance(value, (cst.Attribute, cst.Subscript))

    def _globals(
        self, file: ParsedFile, helper: cst.FunctionDef, bound: set[str], call: cst.Call
    ) -> dict[str, cst.BaseExpression]:
        """What the names that a helper reads from around it are called where its statements go."""
        outside = sorted(_globals_of(helper, bound))
        nested = any(helper is function for function in self._nested())
        local = {name for name, node in bindings(self.function) if isinstance(node, (cst.Name, cst.Param))}
        mapping: dict[str, cst.BaseExpression] = {}
        for name in outside:
            if file is self.file and not nested and name in local:
                message = f"`{helper.name.value}` reads `{name}` of its file, which is something else here"
                raise Blocked("TFM121", call, message)
            if file is self.file or (hasattr(builtins, name) and name not in file.names_at_top):
                continue
            mapping[name] = self._adapted(file, name, helper, call)
        return {name: value for name, value in mapping.items() if not _is_name(value, name)}

    def _adapted(self, file: ParsedFile, name: str, helper: cst.FunctionDef, call: cst.Call) -> cst.BaseExpression:
        imports = self.file.imports
        origin = file.imports.names.get(name)
        if origin is not None:
            wanted = canonical(origin)
            for here, known in imports.names.items():
                if canonical(known) == wanted and (here == name or wanted.partition(".")[0] == "tf"):
                    return cst.Name(here)
            if wanted.startswith("tf."):
                for here, known in imports.names.items():
                    if canonical(known) == "tf":
                        return cst.parse_expression(here + wanted[2:])
            for here, known in imports.names.items():
                if canonical(known) == wanted:
                    return cst.Name(here)
            if self._imported(file, name):
                return cst.Name(name)
            message = f"`{helper.name.value}` of another file reads `{name}`: import `{origin}` here as well"
            raise Blocked("TFM121", call, message)
        if isinstance(call.func, cst.Attribute) and dotted(call.func.value) is not None:
            return cst.Attribute(call.func.value, cst.Name(name))
        for here, known in imports.names.items():
            module = self.project.sibling(self.file, known)
            if module is file:
                return cst.Attribute(cst.Name(here), cst.Name(name))
            whole, _, last = known.rpartition(".")
            if last == name and whole and self.project.sibling(self.file, whole) is file:
                return cst.Name(here)
        if self._imported(file, name):
            return cst.Name(name)
        message = f"`{helper.name.value}` of another file reads `{name}`: import `{name}` from there as well"
        raise Blocked("TFM121", call, message)

    def _imported(self, file: ParsedFile, name: str) -> bool:
        """Whether the file of the model_fn can import what another calls `name`, which is noted then."""
        if name not in self.file.further:
            line = import_of(self.project, self.file, file, name) if name not in self.taken else None
            if line is None:
                return False
            self.file.further[name] = Further(file, line)
            self.file.imports.names[name] = origin_of(line)
            self.taken.add(name)
        return self.file.further[name].of is file


def _nones(small: cst.BaseSmallStatement) -> list[cst.Assign]:
    """`loss, train_op = None, None`, or `loss = train_op = None`, one by one; nothing for anything else."""
    if not isinstance(small, cst.Assign):
        return []
    target, value = small.targets[0].target, small.value
    pairs: list[tuple[cst.BaseExpression, cst.BaseExpression]] = []
    if len(small.targets) > 1 and is_none(value):
        pairs = [(target.target, value) for target in small.targets]
    elif len(small.targets) == 1 and isinstance(target, cst.Tuple) and isinstance(value, cst.Tuple):
        if len(target.elements) == len(value.elements) and all(is_none(e.value) for e in value.elements):
            pairs = [(t.value, v.value) for t, v in equal_zip(target.elements, value.elements)]
    if not all(isinstance(name, cst.Name) for name, _ in pairs):
        return []
    return [cst.Assign([cst.AssignTarget(name)], given) for name, given in pairs if isinstance(name, cst.Name)]


def _only_calls(helper: cst.FunctionDef, name: str) -> bool:
    """Whether a function only calls what a parameter of it is, or asks which it is."""
    known: list[cst.CSTNode] = [call.func for call in calls_in(helper.body)]
    for one in nodes_in(helper.body):
        if isinstance(one, cst.Comparison):
            known += [one.left, *(part.comparator for part in one.comparisons)]
    return all(any(node is one for one in known) for node in name_nodes(helper.body) if node.value == name)


def _is_name(node: cst.BaseExpression, name: str) -> bool:
    return isinstance(node, cst.Name) and node.value == name


def _globals_of(helper: cst.FunctionDef, bound: set[str]) -> set[str]:
    return names_in(helper.body) - bound - {"True", "False", "None"}


def _plain_body(helper: cst.FunctionDef, call: cst.Call) -> Sequence[cst.BaseStatement]:
    """The statements of a helper that can be put elsewhere, without its docstring."""
    if not isinstance(helper.body, cst.IndentedBlock):
        raise Blocked("TFM120", call, f"`{helper.name.value}` is on one line: put its body on its own lines")
    strange = of_kinds(helper.body, cst.Yield, cst.Global, cst.Nonlocal, cst.Await, cst.Del)
    kinds = decorators_of(helper)
    if strange or kinds - {"staticmethod", "property"} or len(kinds) != len(helper.decorators):
        raise Blocked("TFM120", call, f"`{helper.name.value}` is a generator, has a decorator, or assigns global names")
    body = list(helper.body.body)
    first = body[0] if body else None
    if isinstance(first, cst.SimpleStatementLine) and isinstance(first.body[0], cst.Expr):
        if isinstance(first.body[0].value, (cst.SimpleString, cst.ConcatenatedString)):
            body = body[1:]
    return body


def _bind(helper: cst.FunctionDef, call: cst.Call, is_bound: bool) -> dict[str, cst.BaseExpression]:
    """The values of a helper's parameters in a call."""
    params = helper.params
    name = helper.name.value
    if takes_any(helper) or any(a.star for a in call.args):
        raise Blocked("TFM120", call, f"`{name}` has, or is called with, * or ** arguments: write them out")
    positional = [*params.posonly_params, *params.params]
    arguments: dict[str, cst.BaseExpression] = {}
    if is_bound:
        assert isinstance(call.func, cst.Attribute)
        arguments[positional[0].name.value] = call.func.value
        positional = positional[1:]
    for index, arg in enumerate(call.args):
        if arg.keyword is not None:
            arguments[arg.keyword.value] = arg.value
        elif index < len(positional):
            arguments[positional[index].name.value] = arg.value
        else:
            raise Blocked("TFM120", call, f"`{name}` is called with more arguments than it has parameters")
    for param in (*positional, *params.kwonly_params):
        if param.name.value not in arguments:
            if param.default is None or not _is_simple(param.default):
                raise Blocked("TFM120", call, f"the argument `{param.name.value}` of `{name}` cannot be resolved")
            arguments[param.name.value] = param.default
    known = {p.name.value for p in (*params.posonly_params, *params.params, *params.kwonly_params)}
    if set(arguments) - known:
        raise Blocked("TFM120", call, f"`{name}` has no parameter `{sorted(set(arguments) - known)[0]}`")
    return arguments


def _is_simple(node: cst.BaseExpression, changes: bool = False) -> bool:
    """Whether an expression may be read several times, and later, instead of once.

    `changes` says that entries or attributes of something get another value in between.
    """
    if isinstance(node, (cst.Name, cst.Integer, cst.Float, cst.SimpleString)):
        return True
    if changes and isinstance(node, (cst.Subscript, cst.Attribute)):
        return False
    if isinstance(node, cst.UnaryOperation):
        return isinstance(node.operator, cst.Minus) and _is_simple(node.expression)
    if isinstance(node, cst.Subscript) and len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Index):
        return isinstance(node.slice[0].slice.value, (cst.SimpleString, cst.Integer)) and _is_simple(node.value)
    return isinstance(node, cst.Attribute) and dotted(node) is not None


def _bound_inside(helper: cst.FunctionDef) -> set[str]:
    """Names that the inner functions and comprehensions of a helper bind: they are renamed with its own."""
    return {binding.name for binding in read_bindings(helper.body) if binding.form is not Form.SCOPED}


def _target_names(small: cst.Assign | cst.Return | cst.Expr) -> list[str]:
    """The plain names that a call's result is given to; none when it is given to something else."""
    if not isinstance(small, cst.Assign) or len(small.targets) != 1:
        return []
    target = small.targets[0].target
    if isinstance(target, cst.Name):
        return [target.value]
    if isinstance(target, cst.Tuple) and all(isinstance(e.value, cst.Name) for e in target.elements):
        return [e.value.value for e in target.elements if isinstance(e.value, cst.Name)]
    return []


def _returned_names(body: Sequence[cst.BaseStatement], count: int) -> list[str] | None:
    """The names in the returns of a helper, where these are the same names in each."""
    returns = [one for statement in body for one in returns_in(statement)]
    value = returns[0].value if returns else None
    if value is None or not all(one.value is not None and value.deep_equals(one.value) for one in returns):
        return None
    if count == 1 and isinstance(value, cst.Name):
        return [value.value]
    if isinstance(value, cst.Tuple) and len(value.elements) == count > 1:
        names = [e.value.value for e in value.elements if isinstance(e.value, cst.Name)]
        return names if len(names) == count else None
    return None


def _has_return(node: cst.CSTNode) -> bool:
    return bool(returns_in(node)) and not isinstance(node, cst.FunctionDef)


def _terminates(body: Sequence[cst.BaseStatement]) -> bool:
    """Whether a block always ends in a return or raise."""
    last = body[-1] if body else None
    if isinstance(last, cst.SimpleStatementLine):
        return isinstance(last.body[-1], (cst.Return, cst.Raise))
    if isinstance(last, cst.With):
        return _terminates(_statements(last.body))
    if isinstance(last, cst.If) and last.orelse is not None:
        other = [last.orelse] if isinstance(last.orelse, cst.If) else _statements(last.orelse.body)
        return _terminates(_statements(last.body)) and _terminates(other)
    return False


def _statements(suite: cst.BaseSuite) -> Sequence[cst.BaseStatement]:
    if isinstance(suite, cst.IndentedBlock):
        return suite.body
    assert isinstance(suite, cst.SimpleStatementSuite)
    return [cst.SimpleStatementLine(suite.body)]


class _Returns:
    """Turns the returns of a helper's body into what the calling statement does with the result."""

    def __init__(
        self,
        small: cst.Assign | cst.Expr,
        same: Callable[[cst.CSTNode, cst.CSTNode], cst.CSTNode],
        call: cst.Call,
    ) -> None:
        self.small = small
        self.same = same
        self.call = call

    def block(self, body: Sequence[cst.BaseStatement]) -> Statements:
        new: Statements = []
        for index, statement in enumerate(body):
            if isinstance(statement, (cst.FunctionDef, cst.ClassDef)) or not _has_return(statement):
                if isinstance(statement, cst.SimpleStatementLine) and isinstance(statement.body[-1], cst.Raise):
                    return [*new, statement]
                new.append(statement)
                continue
            rest = list(body[index + 1 :])
            if isinstance(statement, cst.SimpleStatementLine):
                returned = statement.body[-1]
                if len(statement.body) != 1 or not isinstance(returned, cst.Return):
                    break
                return [*new, *self._given(statement, returned.value)]
            if isinstance(statement, cst.If):
                return [*new, self._if(statement, rest)]
            if isinstance(statement, cst.With) and not rest and isinstance(statement.body, cst.IndentedBlock):
                inner = statement.body.with_changes(body=self.block(statement.body.body))
                return [*new, self._as(statement, statement.with_changes(body=inner))]
            break
        else:
            return [*new, *self._given(None, cst.Name("None"))]
        raise Blocked("TFM120", self.call, "this helper returns from inside a loop or block: return at its end")

    def _as(self, old: cst.CSTNode, new: cst.BaseStatement) -> cst.BaseStatement:
        self.same(old, new)
        return new

    def _if(self, statement: cst.If, rest: Statements) -> cst.BaseStatement:
        body = list(_statements(statement.body))
        other: Statements = []
        if isinstance(statement.orelse, cst.If):
            other = [statement.orelse]
        elif statement.orelse is not None:
            other = list(_statements(statement.orelse.body))
        open_ends = (not _terminates(body)) + (not _terminates(other))
        if open_ends == 2 and rest:
            raise Blocked("TFM120", self.call, "this helper returns from inside a block: return at its end")
        body = self.block(body if _terminates(body) else [*body, *rest])
        other = self.block(other if other and _terminates(other) else [*other, *rest])
        orelse = cst.Else(cst.IndentedBlock(other or [_PASS]))
        new = statement.with_changes(body=cst.IndentedBlock(body or [_PASS]), orelse=orelse)
        return self._as(statement, new)

    def _given(self, line: cst.SimpleStatementLine | None, value: cst.BaseExpression | None) -> Statements:
        """The statements for `return value`."""
        value = value if value is not None else cst.Name("None")
        lines = line.leading_lines if line is not None else ()
        if isinstance(self.small, cst.Expr):
            return []
        target = self.small.targets[0].target
        pairs: list[tuple[cst.BaseExpression, cst.BaseExpression]] = [(t.target, value) for t in self.small.targets]
        if len(self.small.targets) == 1 and isinstance(target, cst.Tuple) and isinstance(value, cst.Tuple):
            names = [element.value for element in target.elements]
            values = [element.value for element in value.elements]
            if len(names) == len(values) and all(isinstance(name, cst.Name) for name in names):
                hazards = any(
                    isinstance(name, cst.Name) and name.value in names_in(later)
                    for index, name in enumerate(names)
                    for later in values[index + 1 :]
                )
                if not hazards:
                    pairs = list(equal_zip(names, values))
        elif len(self.small.targets) != 1:
            small = self.small.with_changes(value=value)
            return [self._as(line or self.call, cst.SimpleStatementLine([small], leading_lines=lines))]
        new: Statements = []
        for to, given in pairs:
            if isinstance(to, cst.Name) and isinstance(given, cst.Name) and to.value == given.value:
                continue
            assert isinstance(to, cst.BaseAssignTargetExpression)
            small = self.small.with_changes(targets=[cst.AssignTarget(to)], value=given)
            self.same(self.small, small)
            made = cst.SimpleStatementLine([small], leading_lines=[] if new else lines)
            if line is not None and not new:
                made = made.with_changes(trailing_whitespace=line.trailing_whitespace)
            new.append(self._as(line or self.call, made))
        return new


_PASS = cst.SimpleStatementLine([cst.Pass()])


class _Without(Following):
    """Takes functions out of another function, and lines that only give a name a value."""

    def __init__(self, names: set[str], same: Callable[[cst.CSTNode, cst.CSTNode], object]) -> None:
        super().__init__(same)
        self.names = names

    def leave_FunctionDef(
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.BaseStatement | cst.RemovalSentinel:
        return cst.RemoveFromParent() if original_node.name.value in self.names else updated_node

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.BaseStatement | cst.RemovalSentinel:
        small = original_node.body[0]
        targets = [one.target for one in small.targets] if isinstance(small, cst.Assign) else []
        names = [one.value for one in targets if isinstance(one, cst.Name)]
        goes = len(original_node.body) == len(targets) == len(names) == 1 and names[0] in self.names
        return cst.RemoveFromParent() if goes else updated_node

    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> cst.BaseSuite:
        return updated_node if updated_node.body else updated_node.with_changes(body=[_PASS])


class _Calls(cst.CSTVisitor):
    """Calls in an expression that are made whenever it is evaluated, inner ones first."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[cst.Call] = []

    def leave_Call(self, original_node: cst.Call) -> None:
        self.found.append(original_node)

    def _closed(self, node: cst.CSTNode) -> bool:
        return False

    visit_Lambda = visit_IfExp = visit_BooleanOperation = _closed
    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _closed


class _Substitution(Transformer):
    """Replaces names by expressions, and remembers for every new node where the old one stood."""

    def __init__(
        self, mapping: Mapping[str, cst.BaseExpression], same: Callable[[cst.CSTNode, cst.CSTNode], object]
    ) -> None:
        super().__init__()
        self.mapping = mapping
        self.same = same
        self._kept: set[cst.CSTNode] = set()

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        self._kept.add(node.attr)
        return True

    def visit_Arg(self, node: cst.Arg) -> bool:
        if node.keyword is not None:
            self._kept.add(node.keyword)
        return True

    def visit_ImportAlias(self, node: cst.ImportAlias) -> bool:
        return False

    def on_leave(self, original_node, updated_node):  # type: ignore[no-untyped-def]
        new = super().on_leave(original_node, updated_node)
        made = not isinstance(original_node, cst.Name) or isinstance(new, cst.Name)
        if new is not original_node and isinstance(new, cst.CSTNode) and made:
            self.same(original_node, new)
        return new

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        if original_node in self._kept or original_node.value not in self.mapping:
            return updated_node
        new = self.mapping[original_node.value]
        if isinstance(new, cst.Name):
            return updated_node.with_changes(value=new.value)
        return new
