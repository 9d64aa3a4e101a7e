"""Conditions on columns as text: ``cell_type == 'B cell' and n_genes > 200``.

The grammar is a part of Python's: comparisons (also chained ones), ``in``, ``not in``, ``and``, ``or``, ``not``,
parentheses, ``name.isna()`` and ``name.notna()``; names of columns, in backticks where they are no identifiers; texts,
numbers, True and False. Nothing is executed: the tree of the text is walked, and what is not named here is refused.
Comparisons are made once for each category, not for each cell.

What is missing is as in pandas: unequal to everything, below, above and among nothing, and no boolean that holds.
"""

from __future__ import annotations

import ast
import operator
from typing import TYPE_CHECKING, Any

from headrace._arguments import shown
from headrace._codes import PIECE, pieces
from headrace._compare import BELOW, among, compare

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from headrace._frame import FrameColumn

    Find = Callable[[str], FrameColumn]

_MOST = 100_000  # characters
_FLIPPED = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE, ast.Eq: ast.Eq, ast.NotEq: ast.NotEq}
_PLAIN = "a column, a text, a number, True or False"


def evaluate(text: str, find: Find) -> Any:
    """A boolean for each row. `find` gives a column by name, or raises."""
    return _Walk(text, find).run()


def spaced(text: str) -> tuple[str, dict[str, str]]:
    """The text with identifiers for names in backticks, and what they stand for."""
    out: list[str] = []
    names: dict[str, str] = {}
    i = 0
    while i < len(text):
        c = text[i]
        if c in "'\"":
            end = _quote_end(text, i)
        elif c == "`":
            end = text.find("`", i + 1)
            if end < 0:
                raise ValueError(f"the backtick at {i} is not closed")
            stand_in = f"_column_{len(names)}_"
            while stand_in in text:
                stand_in += "_"
            names[stand_in] = text[i + 1 : end]
            out.append(f" {stand_in} ")
            i = end + 1
            continue
        else:
            end = i + 1
        out.append(text[i:end])
        i = end
    return "".join(out), names


def _quote_end(text: str, start: int) -> int:
    """One after a quoted text; the end where it is not closed, which the parser says."""
    i = start + 1
    while i < len(text) and text[i] != text[start]:
        i += 2 if text[i] == "\\" else 1
    return min(i + 1, len(text))


class _Walk:
    def __init__(self, text: str, find: Find) -> None:
        self.text, self._find = text, find
        self._names: dict[str, str] = {}
        self._found: dict[str, tuple[FrameColumn, dict[Any, Any]]] = {}  # columns, and memos of their parts
        self._piece = slice(0, PIECE)  # rows that are looked at

    def refuse(self, why: str) -> NoReturn:
        from headrace._errors import InvalidError

        raise InvalidError(f"where={shown(self.text)}: {why}")

    def run(self) -> Any:
        import warnings

        if len(self.text) > _MOST:
            self.refuse(f"{len(self.text)} characters; give an array of booleans instead")
        try:
            plain, self._names = spaced(self.text)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of odd escapes and the like: it is no code of anyone's
                tree = ast.parse(plain.strip(), mode="eval")
            return self._whole(tree.body)
        except SyntaxError as e:
            self.refuse(
                f"{e.msg}: comparisons joined by and, or, not are expected, such as \"cell_type == 'B cell' and "
                'n_genes > 200"; names with spaces stand in backticks'
            )
        except (RecursionError, MemoryError):
            self.refuse("it is nested too deeply")
        except ValueError as e:  # NUL, half characters, numbers of thousands of digits, backticks
            from headrace._errors import Error

            if isinstance(e, Error):
                raise
            self.refuse(str(e))

    def _whole(self, body: ast.expr) -> Any:
        """Piece by piece: of a hundred million rows no numbers are made but the answer."""
        import numpy as np

        first = self._condition(body)
        n = max((len(column) for column, _ in self._found.values()), default=len(first))
        if n <= len(first):
            return first
        whole: Any = np.empty(n, bool)
        whole[self._piece] = first
        for piece in pieces(n):
            if piece.start:
                self._piece = piece
                whole[piece] = self._condition(body)
        return whole

    # ---- conditions

    def _condition(self, node: ast.expr) -> Any:
        if isinstance(node, ast.BoolOp):
            masks = [self._condition(value) for value in node.values]
            join = operator.and_ if isinstance(node.op, ast.And) else operator.or_
            whole = masks[0].copy()
            for mask in masks[1:]:
                whole = join(whole, mask)
            return whole
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return ~self._condition(node.operand)
        if isinstance(node, ast.Compare):
            return self._chain(node)
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._bare(node)
        self._no(node, "a condition is expected, such as a comparison")

    def _bare(self, node: ast.expr) -> Any:
        column = self._column(node)
        if column.kind != "bool":
            what = column.kind if column.kind != "number" else column.numbers.dtype.name
            self.refuse(
                f"{column.name} is no condition by itself: it is a column of kind {what}; compare it with something"
            )
        return column.numbers & ~column.missing

    def _call(self, node: ast.Call) -> Any:
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if method in ("isna", "isnull", "notna", "notnull") and not node.args and not node.keywords:
            missing = self._column(node.func.value).missing  # type: ignore[attr-defined]
            return missing.copy() if method.startswith("is") else ~missing
        self._no(node, "of functions there are name.isna() and name.notna()")

    def _no(self, node: ast.AST, why: str) -> NoReturn:
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr)):
            word = "and" if isinstance(node.op, ast.BitAnd) else "or"
            self.refuse(f"write {word}, not {'&' if word == 'and' else '|'}: here it is a word")
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
            self.refuse("write not, not ~: here it is a word")
        part = self._source(node)
        self.refuse(f"{part}: {why}; for all else give an array of booleans or a function of the columns")

    def _source(self, node: ast.AST) -> str:
        try:
            part = ast.unparse(node)
        except Exception:  # of what ast itself cannot write
            part = type(node).__name__
        for stand_in, name in self._names.items():
            part = part.replace(stand_in, f"`{name}`")
        return part if len(part) <= 60 else part[:57] + "…"

    # ---- comparisons

    def _chain(self, node: ast.Compare) -> Any:
        left, whole = node.left, None
        for op, right in zip(node.ops, node.comparators):
            mask = self._compare(left, op, right, node)
            whole = mask if whole is None else whole & mask
            left = right
        return whole

    def _compare(self, left: ast.expr, op: ast.cmpop, right: ast.expr, node: ast.Compare) -> Any:
        if isinstance(op, (ast.Is, ast.IsNot)):
            self._no(node, "write ==, or name.isna() for what is missing")
        if isinstance(op, (ast.In, ast.NotIn)):
            return self._among(left, op, right)
        first, second = self._is_column(left), self._is_column(right)
        if first and second:
            return self._two(self._column(left), op, self._column(right))
        if not first and not second:
            self._no(node, "one side of a comparison is a column")
        if first:
            return compare(self._column(left), type(op), self._constant(right), self.refuse)
        return compare(self._column(right), _FLIPPED[type(op)], self._constant(left), self.refuse)

    def _among(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Any:
        if not isinstance(right, (ast.List, ast.Tuple, ast.Set)):
            self._no(right, "a list is expected after in, such as ('a', 'b')")
        column = self._column(left)
        whole = among(column, [self._constant(x) for x in right.elts], self.refuse)
        return whole if isinstance(op, ast.In) else ~whole

    def _two(self, a: FrameColumn, op: ast.cmpop, b: FrameColumn) -> Any:
        if a.numbers is None or b.numbers is None:
            self.refuse(f"{a.name}, {b.name}: of two columns only numbers are compared")
        there = ~(a.missing | b.missing)
        if isinstance(op, (ast.Eq, ast.NotEq)):
            equal = (a.numbers == b.numbers) & there
            return equal if isinstance(op, ast.Eq) else ~equal
        return BELOW[type(op)](a.numbers, b.numbers) & there

    # ---- what is compared

    def _is_column(self, node: ast.expr) -> bool:
        return isinstance(node, (ast.Name, ast.Attribute))

    def _column(self, node: ast.expr) -> FrameColumn:
        if isinstance(node, ast.Attribute):
            self._no(node, "names of columns with points stand in backticks")
        if not isinstance(node, ast.Name):
            self._no(node, "the name of a column is expected")
        name = self._names.get(node.id, node.id)
        if name not in self._found:
            self._found[name] = self._find(name), {}
        column, memo = self._found[name]
        return column.part(self._piece, memo)

    def _constant(self, node: ast.expr) -> Any:
        sign = 1
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            sign, node = (-1 if isinstance(node.op, ast.USub) else 1), node.operand
            if not isinstance(node, ast.Constant) or isinstance(node.value, (bool, str)):
                self._no(node, "a number is expected behind the sign")
        if not isinstance(node, ast.Constant):
            self._no(node, f"{_PLAIN} is expected")
        if node.value is None:
            self.refuse("None: what is missing is found by name.isna()")
        if not isinstance(node.value, (bool, int, float, str)):
            self._no(node, f"{_PLAIN} is expected")
        return sign * node.value if sign < 0 else node.value
