"""`python -m tools.renames REVISION [FOLDER...]`: whether Python files differ from a revision in names of locals alone.

Prints each file that differs in anything else than layout, comments and names of locals and parameters, and each
renamed parameter that a call may pass by its keyword. No output and exit 0 prove that a change only renamed locals. A
file that only one side has differs.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.names import FOLDERS, REPOSITORY
from tools.scopes import canonical

# Decorators whose functions are called as they are written; others may pass arguments by name, as click and pytest do.
PLAIN_DECORATORS = frozenset((
    "asynccontextmanager", "cache", "cached_property", "classmethod", "contextmanager", "lru_cache", "override",
    "property", "staticmethod",
))  # fmt: skip

_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Parameter:
    """A renamed parameter: `callee` is the name under which calls find its function."""

    callee: str
    before: str
    after: str
    is_decorated: bool


def differs(before: str, after: str) -> bool:
    """Whether two modules differ in more than names of locals; SyntaxError for a text that is not Python."""
    return canonical(before) != canonical(after)


def renamed_parameters(before: str, after: str) -> Iterator[Parameter]:
    """The parameters whose names changed between two modules of the same shape; positional-only ones are left out."""
    for (function, callee), (changed, _) in zip(_functions(before), _functions(after), strict=True):
        old = [*function.args.args, *function.args.kwonlyargs]
        new = [*changed.args.args, *changed.args.kwonlyargs]
        for parameter, renamed in zip(old, new, strict=True):
            if parameter.arg != renamed.arg:
                names = {_terminal_name(decorator) for decorator in function.decorator_list}
                yield Parameter(callee, parameter.arg, renamed.arg, not names <= PLAIN_DECORATORS)


def keyword_calls(sources: dict[str, str], keywords: set[str]) -> Iterator[tuple[str, str, str]]:
    """(callee, keyword, file) of each call that passes one of the keywords; a class counts as its `__init__`."""
    for file, source in sources.items():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Call):
                for keyword in node.keywords:
                    if keyword.arg in keywords:
                        yield _terminal_name(node), keyword.arg, file


def compare(revision: str, folders: list[str]) -> list[str]:
    """What is more than a renamed local between a revision and the work tree, as lines."""
    lines: list[str] = []
    parameters: list[Parameter] = []
    for file in _changed_files(revision, folders):
        path = REPOSITORY / file
        command = ["git", "show", f"{revision}:{file}"]
        shown = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
        if shown.returncode != 0 or not path.is_file():
            lines.append(f"{file}: is new, or is gone")
        elif differs(shown.stdout, path.read_text(encoding="utf-8")):
            lines.append(f"{file}: more changed than names of locals")
        else:
            parameters += renamed_parameters(shown.stdout, path.read_text(encoding="utf-8"))
    lines += (
        f"{parameter.callee}({parameter.before}): renamed, and its decorator may pass arguments by name"
        for parameter in parameters
        if parameter.is_decorated
    )
    renamed = {(parameter.callee, parameter.before) for parameter in parameters}
    sources = {str(path): path.read_text(encoding="utf-8") for folder in FOLDERS for path in Path(folder).rglob("*.py")}
    for callee, keyword, file in keyword_calls(sources, {parameter.before for parameter in parameters}):
        if (callee, keyword) in renamed:
            lines.append(f"{file}: passes {keyword}= to {callee}, whose parameter was renamed")
    return lines


def _changed_files(revision: str, folders: list[str]) -> list[str]:
    command = ["git", "diff", "--name-only", revision, "--", *(f":(glob){folder}/**/*.py" for folder in folders)]
    listed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    return listed.stdout.split()


def _functions(source: str) -> Iterator[tuple[_Function, str]]:
    """Each function with a name, with the name under which it is called: `__init__` by its class."""
    return _functions_in(ast.parse(source), "")


def _functions_in(parent: ast.AST, class_name: str) -> Iterator[tuple[_Function, str]]:
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node, class_name if node.name == "__init__" else node.name
        yield from _functions_in(node, node.name if isinstance(node, ast.ClassDef) else class_name)


def _terminal_name(node: ast.AST) -> str:
    """`c` of a.b.c, of a.b.c(...) and of c; empty for another expression."""
    match node:
        case ast.Call(func=callee):
            return _terminal_name(callee)
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def main(arguments: list[str]) -> int:
    """Print what differs; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.renames", description=__doc__)
    parser.add_argument("revision", help="the commit to compare with")
    parser.add_argument("folders", nargs="*", default=list(FOLDERS), help="default: every folder with Python files")
    options = parser.parse_args(arguments)
    lines = compare(options.revision, options.folders)
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
