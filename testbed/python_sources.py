"""The Python files of one source distribution, and what a name means in one of them."""

from __future__ import annotations

import ast
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path


class NotUnderstood(Exception):
    """vLLM does something this reader was never taught; the table would be a guess, so there is none."""

    def __init__(self, module: str, node: ast.AST, why: str) -> None:
        line = getattr(node, "lineno", 0)
        super().__init__(f"{module}:{line}: {why}: {ast.unparse(node)[:200]}")


@dataclass(frozen=True)
class Definition:
    """Where a name leads: a class, a function or an assigned expression of `module`."""

    module: str
    node: ast.ClassDef | ast.FunctionDef | ast.expr


@dataclass(frozen=True)
class Outside:
    """A name that comes from another package, as "package.name"."""

    name: str


Meaning = Definition | Outside | None


@dataclass
class Sources:
    """Every `vllm/**/*.py` of the archive by dotted module name; parsed when first looked at."""

    texts: dict[str, bytes]
    packages: frozenset[str]
    _trees: dict[str, ast.Module] = field(default_factory=dict)
    _names: dict[str, dict[str, ast.stmt]] = field(default_factory=dict)

    @classmethod
    def of_archive(cls, archive: Path) -> Sources:
        """Streams the archive once and keeps the package's Python files; nothing is unpacked to disk."""
        texts: dict[str, bytes] = {}
        packages: set[str] = set()
        with tarfile.open(archive, mode="r|gz") as stream:
            for member in stream:
                inside = member.name.split("/", 1)[-1]
                if not (member.isfile() and inside.startswith("vllm/") and inside.endswith(".py")):
                    continue
                content = stream.extractfile(member)
                assert content is not None
                module = inside.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
                texts[module] = content.read()
                if inside.endswith("/__init__.py"):
                    packages.add(module)
        return cls(texts, frozenset(packages))

    def tree(self, module: str) -> ast.Module:
        if module not in self._trees:
            self._trees[module] = ast.parse(self.texts[module], filename=module)
        return self._trees[module]

    def modules_below(self, package: str) -> Iterator[str]:
        return (module for module in sorted(self.texts) if module.startswith(package + "."))

    def segment(self, module: str, node: ast.AST) -> str:
        """The text of a node exactly as written."""
        return ast.get_source_segment(self.texts[module].decode(), node) or ""

    def function(self, module: str, name: str) -> ast.FunctionDef:
        meaning = self.meaning(module, name)
        if not (isinstance(meaning, Definition) and isinstance(meaning.node, ast.FunctionDef)):
            raise NotUnderstood(module, ast.Name(name), "no such function")
        return meaning.node

    def meaning(self, module: str, name: str) -> Meaning:
        """Follows imports inside of vLLM; None where the module does not say (builtins)."""
        statement = self._top_level(module).get(name)
        match statement:
            case None:
                return self._imported_with_star(module, name)
            case ast.ClassDef() | ast.FunctionDef():
                return Definition(module, statement)
            case ast.ImportFrom():
                return self._imported(module, statement, name)
            case ast.Import():
                return Outside(name)
            case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
                return Definition(module, value)
        return None

    def _imported(self, module: str, statement: ast.ImportFrom, name: str) -> Meaning:
        origin = self._absolute(module, statement)
        original = next(alias.name for alias in statement.names if (alias.asname or alias.name) == name)
        if origin in self.texts:
            return self.meaning(origin, original)
        return Outside(f"{origin}.{original}")

    def _imported_with_star(self, module: str, name: str) -> Meaning:
        for statement in _as_executed(self.tree(module).body):
            match statement:
                case ast.ImportFrom(names=[ast.alias(name="*")]):
                    origin = self._absolute(module, statement)
                    found = self.meaning(origin, name) if origin in self.texts else None
                    if found is not None:
                        return found
        return None

    def _absolute(self, module: str, statement: ast.ImportFrom) -> str:
        if not statement.level:
            return statement.module or ""
        above = module.split(".")
        up = statement.level - (module in self.packages)
        return ".".join([*above[: len(above) - up], *([statement.module] if statement.module else [])])

    def _top_level(self, module: str) -> dict[str, ast.stmt]:
        if module not in self._names:
            names: dict[str, ast.stmt] = {}
            for statement in _as_executed(self.tree(module).body):
                for name in _bound_by(statement):
                    names[name] = statement
            self._names[module] = names
        return self._names[module]


def _as_executed(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Top-level statements that run at import: what only type checkers see is left out, its alternative taken."""
    for statement in body:
        match statement:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                yield from _as_executed(statement.orelse)
            case ast.If():
                yield from _as_executed(statement.body)
                yield from _as_executed(statement.orelse)
            case ast.Try():
                yield from _as_executed(statement.body)
            case _:
                yield statement


def _bound_by(statement: ast.stmt) -> Iterator[str]:
    match statement:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
            yield name
        case ast.ImportFrom() | ast.Import():
            for alias in statement.names:
                yield alias.asname or alias.name.split(".")[0]
        case ast.Assign():
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    yield target.id
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name


def strings_in(node: ast.AST) -> set[str]:
    """Every text that the node holds, at any depth."""
    return {part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)}
