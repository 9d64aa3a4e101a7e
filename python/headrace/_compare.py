"""One column and a value, or some: for each row whether it is equal, below or above, by the rules of _expression.py."""

from __future__ import annotations

import ast
import operator
from typing import TYPE_CHECKING, Any

from headrace._arguments import near, shown

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from headrace._frame import FrameColumn

    Refuse = Callable[[str], NoReturn]

BELOW = {ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge}


def compare(column: FrameColumn, op: type[ast.cmpop], value: Any, refuse: Refuse) -> Any:
    """column op value, for each row."""
    if column.numbers is None:
        key = (op, type(value), value)
        if key not in column.memo:
            column.memo[key] = _by_category(column, op, value, refuse)
        return column.memo[key][column.codes]
    _check(column, value, refuse)
    numbers, value = _meeting(column.numbers, value)
    if op in (ast.Eq, ast.NotEq):
        equal = (numbers == value) & ~column.missing
        return equal if op is ast.Eq else ~equal
    return BELOW[op](numbers, value) & ~column.missing


def among(column: FrameColumn, values: list[Any], refuse: Refuse) -> Any:
    """Whether it is one of the values. Lists may be long: of barcodes, say."""
    import numpy as np

    if column.numbers is None:
        key = ("in", tuple((type(value), value) for value in values))
        if key not in column.memo:
            holds: Any = np.zeros(len(column.categories) + 1, bool)  # the last is for code -1
            holds[[category_number(column, value) for value in values]] = True
            column.memo[key] = holds
        return column.memo[key][column.codes]
    for value in values:
        _check(column, value, refuse)
    kind = column.numbers.dtype
    if kind.kind in "iu" and all(isinstance(value, int) for value in values):
        there = [v for v in values if np.iinfo(kind).min <= v <= np.iinfo(kind).max]
        return np.isin(column.numbers, np.array(there, kind)) & ~column.missing
    whole: Any = np.zeros(len(column), bool)
    for value in values:
        whole |= compare(column, ast.Eq, value, refuse)
    return whole


def _check(column: FrameColumn, value: Any, refuse: Refuse) -> None:
    if isinstance(value, str):
        refuse(f"{column.name} holds {column.numbers.dtype.name}, not texts such as {shown(value)}")
    if column.kind == "bool" and value not in (0, 1):
        refuse(f"{column.name} is True or False, never {shown(value)}")


def _meeting(numbers: Any, value: Any) -> tuple[Any, Any]:
    """The two in types that have room for the value."""
    import numpy as np

    if numbers.dtype.kind != "f":
        return numbers, value
    try:
        value = float(value)
    except OverflowError:  # an integer beyond all floats
        value = float("inf") if value > 0 else float("-inf")
    large = abs(value) > float(np.finfo(numbers.dtype).max)
    return numbers.astype(np.float64) if large else numbers, value


def _by_category(column: FrameColumn, op: type[ast.cmpop], value: Any, refuse: Refuse) -> Any:
    """Whether it holds, for each category, and for what is missing."""
    import numpy as np

    categories = column.categories.tolist()
    holds: Any = np.zeros(len(categories) + 1, bool)  # the last is for code -1
    if op in (ast.Eq, ast.NotEq):
        holds[category_number(column, value)] = True
        return holds if op is ast.Eq else ~holds
    if column.ordered:
        at = category_number(column, value)
        holds[:-1] = BELOW[op](np.arange(len(categories)), at)
    else:
        texts = all(isinstance(c, str) for c in categories)
        if column.kind == "category" and texts:
            refuse(f"{column.name} has categories without an order: they are equal, or not")
        if not texts and any(isinstance(c, str) for c in categories):
            refuse(f"{column.name} has texts and numbers as categories, which have no order: they are equal, or not")
        if isinstance(value, str) != texts:
            refuse(f"{column.name} holds {'texts' if texts else 'numbers'}, not {shown(value)}")
        holds[:-1] = [BELOW[op](c, value) for c in categories]
    return holds


def category_number(column: FrameColumn, value: Any) -> int:
    found = column.code_of(value)
    if found is not None:
        return found
    from headrace._errors import NotFoundError

    categories = column.categories.tolist()
    texts = [str(c) for c in categories]
    if str(value) in texts and not isinstance(value, str):
        hint = f"; it is the text '{value}'"
    elif isinstance(value, str) and value in texts:
        hint = f"; it is the number {value}"
    else:
        hint = near(str(value), texts[:50_000])
    some = ", ".join(map(repr, categories[:12])) + (f" and {len(categories) - 12} more" if len(categories) > 12 else "")
    raise NotFoundError(f"where: {column.name} has no value {shown(value)}{hint}; it has {some or 'none'}")
