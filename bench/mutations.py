"""Mutants of Python source: one small change of one expression or statement each, as an edit of the text.

The changes are typical mistakes: a comparison with another boundary or the opposite one, `and` for `or`, a negated
condition, a filter or statement that is left out, a number that is one more, the other truth value. Annotations,
docstrings, messages (f-strings) and decorators stay as they are: no decision depends on them.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

_OPPOSITES: dict[type[ast.cmpop], str] = {
    ast.Eq: "!=", ast.NotEq: "==", ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.In: "not in",
    ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change: `start` and `end` are offsets in the text as UTF-8, `line` is that of the changed code, from 1."""

    file: str
    line: int
    start: int
    end: int
    replacement: str
    description: str

    def applied(self, source: str) -> str:
        """The source with the change."""
        content = source.encode()
        return (content[: self.start] + self.replacement.encode() + content[self.end :]).decode()


def mutants_of(file: str, source: str) -> list[Mutant]:
    """Every mutant of a module in the order of the source; SyntaxError for a text that is not Python."""
    finder = _Finder(file, source)
    finder.visit(ast.parse(source))
    return sorted(finder.mutants, key=lambda mutant: (mutant.start, mutant.end, mutant.replacement))


class _Finder(ast.NodeVisitor):
    def __init__(self, file: str, source: str) -> None:
        self.mutants: list[Mutant] = []
        self._file = file
        self._content = source.encode()
        lengths = [len(line) for line in self._content.splitlines(keepends=True)]
        self._offsets = [sum(lengths[:number]) for number in range(len(lengths) + 1)]

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Texts for people; Python 3.11 has no positions inside of them."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._visit_body(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._visit_body(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._visit_body(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test) != "TYPE_CHECKING":
            self._negate(node.test)
            self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for condition in node.ifs:
            self._replace(condition, "True", "filter left out")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        word, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._replace_between(left, right, word, other)
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        for left, operator, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
            self._replace_between(left, right, _text_of(operator), _OPPOSITES[type(operator)])
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._replace(node, f"bool({ast.unparse(node.operand)})", "`not` left out")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._replace(node, str(not node.value), f"{node.value} is {not node.value}")
        elif isinstance(node.value, int):
            self._replace(node, str(node.value + 1), f"{node.value} is {node.value + 1}")

    def visit_Expr(self, node: ast.Expr) -> None:
        is_text = isinstance(node.value, ast.Constant)
        if not is_text:
            # a function stays a generator without its only `yield`
            left_out = "yield from ()" if isinstance(node.value, ast.Yield | ast.YieldFrom) else "pass"
            if ast.unparse(node) != left_out:
                self._replace(node, left_out, f"`{ast.unparse(node)[:60]}` left out")
            self.generic_visit(node)

    def visit_Continue(self, node: ast.Continue) -> None:
        self._replace(node, "pass", "`continue` left out")

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._replace(node, "pass", f"`{ast.unparse(node)[:60]}` left out")
        self.generic_visit(node)

    def _visit_body(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        if not isinstance(node, ast.ClassDef):
            for default in (*node.args.defaults, *node.args.kw_defaults):
                if default is not None:
                    self.visit(default)
        for statement in node.body:
            self.visit(statement)

    def _negate(self, test: ast.expr) -> None:
        # `if not x` and `if a == b` have a mutant of their own that says the same
        if not isinstance(test, ast.Compare | ast.BoolOp) and not _is_negation(test):
            self._replace(test, f"not ({self._text(test)})", "condition negated")

    def _replace(self, node: ast.expr | ast.stmt, replacement: str, description: str) -> None:
        start, end = self._span(node)
        self.mutants.append(Mutant(self._file, node.lineno, start, end, replacement, description))

    def _replace_between(self, left: ast.expr, right: ast.expr, word: str, other: str) -> None:
        """Replace the operator between two operands; brackets around them are between them too."""
        start, end = self._span(left)[1], self._span(right)[0]
        between = self._content[start:end].decode()
        at = between.find(word)
        if at >= 0 and "#" not in between:
            first = start + len(between[:at].encode())
            line = left.end_lineno or left.lineno
            self.mutants.append(Mutant(self._file, line, first, first + len(word), other, f"`{word}` is `{other}`"))

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
        return self._offsets[node.lineno - 1] + node.col_offset, self._offsets[end_line - 1] + end_column

    def _text(self, node: ast.expr) -> str:
        start, end = self._span(node)
        return self._content[start:end].decode()


def _is_negation(node: ast.expr) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


def _text_of(operator: ast.cmpop) -> str:
    """The operator as it is written, with one space in `not in` and `is not`."""
    compared = ast.Compare(ast.Name("a"), [operator], [ast.Name("b")])
    return ast.unparse(compared)[2:-2]
