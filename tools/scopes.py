"""Which variable a name of a module stands for, by the scoping rules of Python, to compare modules up to such names.

`variables(tree)` finds every local variable and parameter with the nodes that name it. `canonical(source)` is the
module as text, in which locals and parameters have numbers for names: two modules have the same text exactly if they
differ in names of locals, comments and layout alone. Names of modules, classes, attributes, imports and keywords count.
Source: https://docs.python.org/3/reference/executionmodel.html#resolution-of-names
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
# The kinds of scopes that have local variables. A function does not see the names of a class around it.
MODULE, CLASS, FUNCTION, COMPREHENSION = "module", "class", "function", "comprehension"


@dataclass
class Variable:
    """A local or parameter, with the nodes that name it and the attribute of each that holds the name.

    `is_fixed`: an import or a `nonlocal` statement names it too, so that its name counts.
    """

    name: str
    occurrences: list[tuple[ast.AST, str]] = field(default_factory=list)
    is_fixed: bool = False


@dataclass
class _Scope:
    number: int
    kind: str
    parent: _Scope | None
    bound: set[str] = field(default_factory=set)
    fixed: set[str] = field(default_factory=set)
    global_names: set[str] = field(default_factory=set)
    nonlocal_names: set[str] = field(default_factory=set)
    occurrences: list[tuple[ast.AST, str, str]] = field(default_factory=list)

    def owner_of(self, name: str) -> _Scope | None:
        """The function or comprehension whose variable `name` is here; None for names of modules and classes."""
        if name in self.global_names or (self.kind in (MODULE, CLASS) and name in self.bound):
            return None
        scope: _Scope | None = self
        while scope is not None:
            owns = name in scope.bound and name not in scope.nonlocal_names | scope.global_names
            if owns and scope.kind in (FUNCTION, COMPREHENSION):
                return scope
            scope = scope.parent
        return None


def variables(tree: ast.AST) -> list[Variable]:
    """All locals and parameters, in an order that depends on the shape of the tree and on no name."""
    builder = _ScopeBuilder()
    builder.visit(tree)
    by_owner: dict[tuple[int, str], Variable] = {}
    for scope in builder.scopes:
        for node, attribute, name in scope.occurrences:
            owner = scope.owner_of(name)
            if owner is not None:
                variable = by_owner.setdefault((owner.number, name), Variable(name))
                variable.occurrences.append((node, attribute))
                variable.is_fixed |= name in owner.fixed
    return list(by_owner.values())


def canonical(source: str) -> str:
    """The module as text without layout and comments, with a number for the name of each local and parameter."""
    tree = ast.parse(source)
    for number, variable in enumerate(variables(tree)):
        if not variable.is_fixed:
            for node, attribute in variable.occurrences:
                setattr(node, attribute, f"local {number}")
    return ast.dump(tree)


class _ScopeBuilder(ast.NodeVisitor):
    """Notes for each scope which names occur in it; decorators, defaults and annotations belong to the scope around."""

    def __init__(self) -> None:
        self.scopes = [_Scope(0, MODULE, None)]
        self._now = self.scopes[0]

    def visit_Name(self, node: ast.Name) -> None:
        self._name(node, "id", node.id, binds=not isinstance(node.ctx, ast.Load))

    def visit_arg(self, node: ast.arg) -> None:
        self._name(node, "arg", node.arg, binds=True)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self._optional_name(node, "name", node.name)

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        self._optional_name(node, "name", node.name)

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        self._optional_name(node, "name", node.name)

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        self._optional_name(node, "rest", node.rest)

    def visit_Global(self, node: ast.Global) -> None:
        self._now.global_names.update(node.names)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        # the statement has no node for each name, so the variable keeps its name
        self._now.nonlocal_names.update(node.names)
        for name in node.names:
            owner = self._now.owner_of(name)
            if owner is not None:
                owner.fixed.add(name)

    def visit_Import(self, node: ast.Import) -> None:
        self._imported(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self._imported(node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        scope = self._now
        while scope.kind == COMPREHENSION and scope.parent is not None:
            scope = scope.parent
        self._name(node.target, "id", node.target.id, binds=True, scope=scope)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._function(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._around(node.args)
        outer = self._enter(FUNCTION)
        self._parameters(node.args)
        self.visit(node.body)
        self._now = outer

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for part in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(part)
        self._name(node, "name", node.name, binds=True)
        outer = self._enter(CLASS)
        for statement in node.body:
            self.visit(statement)
        self._now = outer

    def generic_visit(self, node: ast.AST) -> None:
        if isinstance(node, COMPREHENSIONS):
            self._comprehension(node)
        else:
            super().generic_visit(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for decorator in node.decorator_list:
            self.visit(decorator)
        self._around(node.args)
        if node.returns is not None:
            self.visit(node.returns)
        self._name(node, "name", node.name, binds=True)
        outer = self._enter(FUNCTION)
        self._parameters(node.args)
        for statement in node.body:
            self.visit(statement)
        self._now = outer

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        self.visit(node.generators[0].iter)
        outer = self._enter(COMPREHENSION)
        for position, generator in enumerate(node.generators):
            self.visit(generator.target)
            for part in (*([generator.iter] if position else []), *generator.ifs):
                self.visit(part)
        for part in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
            self.visit(part)
        self._now = outer

    def _around(self, arguments: ast.arguments) -> None:
        """Defaults and annotations, which the scope around evaluates."""
        for default in (*arguments.defaults, *arguments.kw_defaults):
            if default is not None:
                self.visit(default)
        for argument in _all_arguments(arguments):
            if argument.annotation is not None:
                self.visit(argument.annotation)

    def _parameters(self, arguments: ast.arguments) -> None:
        for argument in _all_arguments(arguments):
            self.visit_arg(argument)

    def _imported(self, node: ast.Import | ast.ImportFrom) -> None:
        names = {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        self._now.bound |= names
        self._now.fixed |= names

    def _optional_name(self, node: ast.AST, attribute: str, name: str | None) -> None:
        if name is not None:
            self._name(node, attribute, name, binds=True)
        super().generic_visit(node)

    def _name(self, node: ast.AST, attribute: str, name: str, *, binds: bool, scope: _Scope | None = None) -> None:
        scope = scope or self._now
        scope.occurrences.append((node, attribute, name))
        if binds:
            scope.bound.add(name)

    def _enter(self, kind: str) -> _Scope:
        outer = self._now
        self._now = _Scope(len(self.scopes), kind, outer)
        self.scopes.append(self._now)
        return outer


def _all_arguments(arguments: ast.arguments) -> Iterator[ast.arg]:
    yield from (*arguments.posonlyargs, *arguments.args)
    if arguments.vararg is not None:
        yield arguments.vararg
    yield from arguments.kwonlyargs
    if arguments.kwarg is not None:
        yield arguments.kwarg
