"""Follows the functions that build the parser of `vllm serve`, and writes down every argument they add.

A small interpreter for the few statements those functions are made of. It keeps track of two kinds of values, the
parser (or one of its groups) and the keyword dictionaries of `get_kwargs`; a statement that touches one of them in a
way it does not know ends the reading with `NotUnderstood`.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from testbed.python_sources import Definition, NotUnderstood, Sources
from testbed.vllm_tables.annotations import FOLDED, FOLDING, UNREAD, Keywords, keywords_of, literal_values

SERVE = "vllm.entrypoints.cli.serve"
PLATFORM_HOOK = "pre_register_and_update"


def _function(node: ast.Attribute | ast.Lambda) -> object:
    """The name of an action or of a converter of values; UNREAD for every other."""
    match node:
        case ast.Attribute(value=ast.Name(id="argparse"), attr=name):
            return name
        case ast.Attribute(value=ast.Name(id="json"), attr="loads"):
            return "json"
        case ast.Lambda() if ast.unparse(node) == FOLDING:
            return FOLDED
    return UNREAD


class ParserMark:
    """Represents the parser, its groups and its subparsers alike: an argument added to any of them is the command's."""

    def __repr__(self) -> str:
        return "the parser"


PARSER = ParserMark()
CONVERTERS = {"int": "int", "float": "float", "str": "text"}
Scope = dict[str, object]


@dataclass(frozen=True)
class ClassReference:
    module: str
    node: ast.ClassDef


@dataclass(frozen=True)
class Argument:
    """One `add_argument` call: its option strings (or the name of a positional) and what it was given."""

    names: tuple[str, ...]
    keywords: Mapping[str, object]


@dataclass
class ParserReading:
    """Reads one source distribution; `arguments` fills in the order in which vLLM adds them."""

    sources: Sources
    arguments: list[Argument] = field(default_factory=list)

    def read(self) -> list[Argument]:
        serve = self.sources.meaning(SERVE, "ServeSubcommand")
        if not (isinstance(serve, Definition) and isinstance(serve.node, ast.ClassDef)):
            raise NotUnderstood(SERVE, ast.Name("ServeSubcommand"), "no such class")
        command = ClassReference(serve.module, serve.node)
        self.call_method(command, "subparser_init", [PARSER])
        return self.arguments

    def call_method(self, owner: ClassReference, name: str, arguments: list[object]) -> object:
        for cls in self.ancestry(owner):
            for node in cls.node.body:
                if isinstance(node, ast.FunctionDef) and node.name == name:
                    decorated = {d.id for d in node.decorator_list if isinstance(d, ast.Name)}
                    bound = [] if "staticmethod" in decorated else [owner]
                    return self.call(Definition(cls.module, node), [*bound, *arguments], owner=cls)
        raise NotUnderstood(owner.module, owner.node, f"no method {name} in the class or its bases")

    def ancestry(self, cls: ClassReference) -> Iterator[ClassReference]:
        yield cls
        for base in cls.node.bases:
            meaning = self.sources.meaning(cls.module, base.id) if isinstance(base, ast.Name) else None
            if isinstance(meaning, Definition) and isinstance(meaning.node, ast.ClassDef):
                yield from self.ancestry(ClassReference(meaning.module, meaning.node))

    def call(self, function: Definition, arguments: list[object], owner: ClassReference | None = None) -> object:
        node = function.node
        assert isinstance(node, ast.FunctionDef)
        names = [argument.arg for argument in node.args.args]
        scope: Scope = {}
        for name, default in zip(reversed(names), reversed(node.args.defaults), strict=False):
            scope[name] = default.value if isinstance(default, ast.Constant) else UNREAD
        scope |= dict(zip(names, arguments, strict=False))
        return FunctionReading(self, function.module, scope, owner).run(node.body)


@dataclass
class FunctionReading:
    """One function's body with its local names."""

    reading: ParserReading
    module: str
    scope: Scope
    owner: ClassReference | None

    def run(self, body: list[ast.stmt]) -> object:
        """Executes the statements; gives what the function returns, UNREAD where it returns nothing tracked."""
        for statement in body:
            if isinstance(statement, ast.Return):
                return self.value(statement.value) if statement.value else UNREAD
            self._execute(statement)
        return UNREAD

    def _execute(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Expr(value=ast.Call() as call):
                self.value(call)
            case ast.Assign(targets=[target], value=value):
                self._assign(target, self.value(value))
            case ast.AugAssign(target=ast.Subscript() as target):
                self._assign(target, UNREAD)
            case ast.Delete(targets=[ast.Subscript() as target]):
                self._container(target).pop(self._key(target))
            case ast.If(test=test, body=body, orelse=otherwise):
                for inner in body if self._holds(test) else otherwise:
                    self._execute(inner)
            case ast.For(target=ast.Tuple(elts=[ast.Name(id=key), ast.Name(id=value)]), iter=iterated, body=body):
                for name, entry in self._items(iterated):
                    self.scope |= {key: name, value: entry}
                    self.run(body)
            case ast.Expr(value=ast.Constant()) | ast.ImportFrom() | ast.Import() | ast.Pass():
                return
            case _:
                raise self._lost(statement, "a statement never seen in a function that builds the parser")

    def _assign(self, target: ast.expr, value: object) -> None:
        match target:
            case ast.Name(id=name):
                self.scope[name] = value
            case ast.Subscript():
                self._container(target)[self._key(target)] = value
            case ast.Attribute(value=of) if self.value(of) is PARSER:
                return
            case _:
                raise self._lost(target, "an assignment to something that is not tracked")

    def _container(self, target: ast.Subscript) -> dict[str, object]:
        container = self.value(target.value)
        if not isinstance(container, dict):
            raise self._lost(target, "a subscript of something that is not tracked")
        return container

    def _key(self, target: ast.Subscript) -> str:
        key = self.value(target.slice)
        if not isinstance(key, str):
            raise self._lost(target, "a subscript that is not a plain name")
        return key

    def _items(self, iterated: ast.expr) -> list[tuple[str, object]]:
        match iterated:
            case ast.Call(func=ast.Attribute(value=of, attr="items"), args=[]):
                container = self.value(of)
                if isinstance(container, dict):
                    return list(container.items())
        raise self._lost(iterated, "a loop over something that is not tracked")

    def _holds(self, test: ast.expr) -> bool:
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return not self._holds(operand)
            case ast.Name(id=name) if isinstance(self.scope.get(name), bool):
                return bool(self.scope[name])
            case ast.Compare(left=ast.Constant(value=key), ops=[ast.In()], comparators=[container]):
                container_value = self.value(container)
                if isinstance(container_value, dict):
                    return key in container_value
            case ast.BoolOp(op=ast.And(), values=values) if all("sys.argv" in ast.unparse(v) for v in values):
                return False  # the condition is whether the user asked for the help text
        raise self._lost(test, "a condition that cannot be decided from the source")

    def value(self, node: ast.expr) -> object:
        """What an expression stands for, as far as it is tracked; UNREAD otherwise."""
        result: object = UNREAD
        match node:
            case ast.Constant(value=constant):
                result = constant
            case ast.Name(id=name):
                result = self.scope[name] if name in self.scope else self._global(name)
            case ast.Attribute() | ast.Lambda():
                result = _function(node)
            case ast.Subscript():
                result = self._subscripted(node)
            case ast.Dict():
                result = self._merged(node)
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                result = [self.value(element) for element in elements]
            case ast.JoinedStr(values=parts):
                result = self._joined(parts)
            case ast.Call():
                result = self._called(node)
        return result

    def _global(self, name: str) -> object:
        if name in CONVERTERS:
            return CONVERTERS[name]
        match self.reading.sources.meaning(self.module, name):
            case Definition(module=module, node=ast.ClassDef() as cls):
                return ClassReference(module, cls)
            case Definition(node=ast.Constant(value=constant)):
                return constant
        return UNREAD

    def _subscripted(self, node: ast.Subscript) -> object:
        container = self.value(node.value)
        if not isinstance(container, dict):
            return UNREAD
        key = self._key(node)
        if key not in container:
            raise self._lost(node, "a key that the class has no field for")
        return container[key]

    def _merged(self, node: ast.Dict) -> dict[str, object]:
        merged: dict[str, object] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                inner = self.value(value)
                if not isinstance(inner, dict):
                    raise self._lost(value, "keywords that are not tracked")
                merged |= inner
            elif isinstance(name := self.value(key), str):
                merged[name] = self.value(value)
        return merged

    def _joined(self, parts: list[ast.expr]) -> object:
        values = [self.value(part.value if isinstance(part, ast.FormattedValue) else part) for part in parts]
        return "".join(map(str, values)) if all(isinstance(value, str) for value in values) else UNREAD

    def _called(self, call: ast.Call) -> object:
        result: object = UNREAD
        match call.func:
            case ast.Name(id="get_kwargs"):
                result = self._get_kwargs(call)
            case ast.Name(id="get_args"):
                result = self._literal_members(call)
            case ast.Name(id="optional_type"):
                result = self.value(call.args[0])
            case ast.Name(id=name):
                result = self._function(call, name)
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr=method):
                result = self._inherited(call, method)
            case ast.Attribute(value=ast.Name(id="current_platform"), attr=method):
                result = self._platform_hook(call, method)
            case ast.Attribute(value=of, attr=method):
                result = self._method(call, self.value(of), method)
            case _:
                result = self._untouched(call)
        return result

    def _get_kwargs(self, call: ast.Call) -> dict[str, Keywords]:
        cls = self.value(call.args[0])
        if not isinstance(cls, ClassReference):
            raise self._lost(call, "get_kwargs of something that is no class of vLLM")
        return keywords_of(self.reading.sources, cls.module, cls.node)

    def _literal_members(self, call: ast.Call) -> object:
        match call.args:
            case [ast.Name()]:
                return sorted(map(str, literal_values(self.reading.sources, self.module, call.args)))
        return UNREAD

    def _function(self, call: ast.Call, name: str) -> object:
        arguments = [self.value(argument) for argument in call.args]
        if PARSER in arguments:
            meaning = self.reading.sources.meaning(self.module, name)
            if isinstance(meaning, Definition) and isinstance(meaning.node, ast.FunctionDef):
                return self.reading.call(meaning, arguments)
        return self._untouched(call)

    def _inherited(self, call: ast.Call, method: str) -> object:
        arguments = [self.value(argument) for argument in call.args]
        assert self.owner is not None
        for base in list(self.reading.ancestry(self.owner))[1:]:
            return self.reading.call_method(base, method, arguments)
        raise self._lost(call, "super() of a class without bases")

    def _platform_hook(self, call: ast.Call, method: str) -> object:
        """The platform may add arguments of its own; none of vLLM's does, and this holds them to it."""
        if method != PLATFORM_HOOK:
            return self._untouched(call)
        sources = self.reading.sources
        for module in sources.modules_below("vllm.platforms"):
            for node in ast.walk(sources.tree(module)):
                if isinstance(node, ast.FunctionDef) and node.name == method and "add_argument" in ast.unparse(node):
                    raise NotUnderstood(module, node, "a platform that adds arguments of its own")
        return UNREAD

    def _method(self, call: ast.Call, of: object, method: str) -> object:
        if of is PARSER:
            return self._parser_method(call, method)
        arguments = [self.value(argument) for argument in call.args]
        match of, method, arguments:
            case ClassReference(), _, _ if _tracked(arguments):
                return self.reading.call_method(of, method, arguments)
            case dict(), "pop", [str() as key, default]:
                return of.pop(key, default)
            case list(), "remove", [value] if value is not UNREAD:
                of.remove(value)
                return UNREAD
            case str(), "replace", [str() as old, str() as new]:
                return of.replace(old, new)
        return self._untouched(call)

    def _parser_method(self, call: ast.Call, method: str) -> object:
        if method in {"add_argument_group", "add_parser"}:
            return PARSER
        if method != "add_argument":
            raise self._lost(call, "a use of the parser never seen")
        self.reading.arguments.append(Argument(tuple(self._option_strings(call)), self._keywords(call)))
        return UNREAD

    def _option_strings(self, call: ast.Call) -> Iterator[str]:
        for argument in call.args:
            value = self.value(argument.value if isinstance(argument, ast.Starred) else argument)
            for name in value if isinstance(value, list) else [value]:
                if not isinstance(name, str):
                    raise self._lost(argument, "an option string that cannot be read")
                yield name

    def _keywords(self, call: ast.Call) -> Keywords:
        keywords: Keywords = {}
        for keyword in call.keywords:
            value = self.value(keyword.value)
            if keyword.arg is not None:
                keywords[keyword.arg] = value
            elif isinstance(value, dict):
                keywords |= value
            else:
                raise self._lost(call, "keywords that are not tracked")
        return copy.deepcopy({key: value for key, value in keywords.items() if key not in {"default", "help"}})

    def _untouched(self, call: ast.Call) -> object:
        """A call that is given neither the parser nor keyword dictionaries cannot change a flag."""
        arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
        if _tracked([self.value(argument) for argument in arguments]):
            raise self._lost(call, "a call that could add or change arguments")
        return UNREAD

    def _lost(self, node: ast.AST, why: str) -> NotUnderstood:
        return NotUnderstood(self.module, node, why)


def _tracked(values: list[object]) -> bool:
    return any(value is PARSER or isinstance(value, dict) for value in values)
