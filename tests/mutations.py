"""Small errors that can be made in a Python source file: where they are possible, and the text that makes them."""

import ast
from dataclasses import dataclass
from pathlib import Path

OPERATORS = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"),
    ast.Pow: ("**", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}
"""operator -> how it is written, and what replaces it"""


@dataclass(frozen=True)
class Mutation:
    """Replace the characters from `start` to `end` of a file by `text`."""

    file: Path
    line: int
    kind: str
    start: int
    end: int
    text: str
    source: str

    @property
    def key(self) -> tuple[str, str, str]:
        """What identifies it while other lines of the file change."""
        return str(self.file), self.source, self.kind

    @property
    def name(self) -> str:
        """The same in every run as long as the file is."""
        return f"{self.file}:{self.start}-{self.end} {self.kind}"

    def apply(self, source: str) -> str:
        return source[: self.start] + self.text + source[self.end :]


def find_mutations(path: Path, file: Path) -> list[Mutation]:
    """All mutations of a file: operators, comparisons, numbers, negations and statements left out."""
    finder = _Finder(path.read_text(), file)
    finder.visit(ast.parse(finder.source))
    return finder.found


class _Finder(ast.NodeVisitor):
    def __init__(self, source: str, file: Path) -> None:
        self.source, self.file, self.found = source, file, []
        self.lines = source.splitlines(keepends=True)
        self.offsets = [0]
        for line in self.lines:
            self.offsets.append(self.offsets[-1] + len(line))

    def place(self, line: int, column: int) -> int:
        """Offset in characters; the syntax tree counts columns in bytes."""
        text = self.lines[line - 1].encode()[:column].decode()
        return self.offsets[line - 1] + len(text)

    def start(self, node: ast.expr | ast.stmt) -> int:
        return self.place(node.lineno, node.col_offset)

    def end(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.place(node.end_lineno, node.end_col_offset)

    def add(self, node: ast.expr | ast.stmt, kind: str, start: int, end: int, text: str) -> None:
        line = self.lines[node.lineno - 1].strip()
        self.found.append(Mutation(self.file, node.lineno, kind, start, end, text, line))

    def swap(self, node: ast.expr, operator: ast.AST, left: ast.expr, right: ast.expr) -> None:
        if type(operator) not in OPERATORS:
            return
        old, new = OPERATORS[type(operator)]
        start, end = self.end(left), self.start(right)
        between = self.source[start:end]
        if "#" in between or between.count(old) != 1:
            return
        at = start + between.index(old)
        self.add(node, f"{old} → {new}", at, at + len(old), new)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        self.swap(node, node.op, node.left, node.right)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        if len(node.values) == 2:  # in a longer chain another operator binds other parts together
            self.swap(node, node.op, node.values[0], node.values[1])
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        for left, operator, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
            self.swap(node, operator, left, right)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not | ast.USub | ast.Invert):
            name = {ast.Not: "not", ast.USub: "-", ast.Invert: "~"}[type(node.op)]
            self.add(node, f"without {name}", self.start(node), self.start(node.operand), "")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self.add(node, f"{value} → {not value}", self.start(node), self.end(node), str(not value))
        elif isinstance(value, int | float):
            new = value + 1 if isinstance(value, int) else 2 * value or 1.0
            self.add(node, f"{value} → {new}", self.start(node), self.end(node), repr(new))

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg != "strict":  # `zip(strict=True)` is an assertion and changes no result
            self.visit(node.value)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self.remove(node)
        self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        self.remove(node)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.remove(node)
        self.generic_visit(node)

    def visit_Continue(self, node: ast.Continue) -> None:
        self.remove(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets):
            self.remove(node)
        self.generic_visit(node)

    def remove(self, node: ast.stmt) -> None:
        self.add(node, "statement removed", self.start(node), self.end(node), "pass")

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """The body and the defaults, without annotations and decorators."""
        for part in [*node.args.defaults, *filter(None, node.args.kw_defaults), *node.body]:
            self.visit(part)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Text of messages is left alone."""
