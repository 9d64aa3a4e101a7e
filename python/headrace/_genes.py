"""Genes of one data set and of several: which columns of a matrix go to which columns of a view."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace._arguments import near, refuse, refuse_type

if TYPE_CHECKING:
    from headrace._atlas import DataSet

_SHOWN = 8


def listed(names: Any) -> str:
    """ "A, B and 12 more"."""
    names = [str(n) for n in names]
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


class Genes:
    """The columns of a view: `names`, and for each data set the column that each of its own goes to, or None."""

    def __init__(self, names: Any, maps: list[Any]) -> None:
        self.names, self.maps = names, maps


def choose(one: DataSet, genes: object, missing: str) -> Genes:
    """Of one data set: all, those of a list in its order, or those of a mask."""
    names = one.genes
    if genes is None:
        return Genes(names, [None])
    import numpy as np

    mask = _array_of(genes, "b")
    if mask is not None:
        if mask.shape != names.shape:
            refuse("genes", mask.shape, f"a boolean for each of {len(names)} genes, or a list of names, is expected")
        if not mask.any():
            refuse("genes", mask, "the mask leaves no gene")
        to: Any = np.where(mask, np.cumsum(mask) - 1, -1).astype(np.int32)
        return Genes(names[mask], [to])
    numbers = _array_of(genes, "iu")
    if numbers is not None:
        return _numbered(names, numbers)
    wanted = given_names("genes", genes)
    unique(one, wanted)
    return _wanted("genes", [one], wanted, missing)


def _array_of(genes: object, kinds: str) -> Any:
    """As an array, where it is one of these kinds of numpy's: booleans, or integers."""
    import numpy as np

    if isinstance(genes, (list, tuple)) and not isinstance(next(iter(genes), None), (bool, np.bool_, int, np.integer)):
        return None
    values = getattr(genes, "values", genes)  # of pandas
    values = np.asarray(values) if isinstance(values, (list, tuple)) or hasattr(values, "__array__") else None
    return values if values is not None and values.dtype.kind in kinds else None


def _numbered(names: Any, numbers: Any) -> Genes:
    """Genes by their positions, in the order in which they are given."""
    import numpy as np

    if numbers.ndim != 1 or not len(numbers):
        refuse("genes", numbers, "a list of names or positions of genes is expected")
    outside = numbers[(numbers < 0) | (numbers >= len(names))]
    if len(outside):
        refuse("genes", int(outside[0]), f"positions of genes are from 0 to {len(names) - 1}")
    if len(np.unique(numbers)) < len(numbers):
        refuse("genes", numbers, "a gene is named once")
    to: Any = np.full(len(names), -1, np.int32)
    to[numbers] = np.arange(len(numbers))
    return Genes(names[numbers], [to])


def given_names(what: str, genes: object, one: bool = True) -> list[str]:
    """Of a list; of a dict, such as a vocabulary, its keys in their order. `one`: data set, so positions would do."""
    accepted = "a list of names is expected"
    if what == "genes":
        others = " or positions of genes, or a boolean for each gene, is expected"
        accepted = "a list of names" + others if one else accepted + ": positions and truths are of one data set alone"
    if isinstance(genes, (str, bytes, set, frozenset)) or not hasattr(genes, "__iter__"):
        refuse_type(what, genes, accepted)
    names = list(genes)
    wrong = next((g for g in names if not isinstance(g, str)), None)
    if wrong is not None:
        refuse_type(what, wrong, accepted)
    if not names:
        refuse(what, genes, "no gene is named")
    return [str(g) for g in names]


def join(sets: list[DataSet], how: object, missing: str, what: str = "join") -> Genes:
    """Of several: "inner" in the order of the first, "outer" in the order they are first seen, or a list as it is."""
    if isinstance(how, str):
        if how not in ("inner", "outer"):
            refuse("join", how, f'"inner", "outer" or a list of names is expected{near(how, ["inner", "outer"])}')
        if all(list(one.genes) == list(sets[0].genes) for one in sets[1:]):
            return Genes(sets[0].genes, [None] * len(sets))
        names = _inner(sets) if how == "inner" else list(dict.fromkeys(g for one in sets for g in one.genes))
        return _mapped(sets, names)
    return _wanted(what, sets, given_names(what, how, False), missing)


def _inner(sets: list[DataSet]) -> list[str]:
    common = set(sets[0].genes)
    for one in sets[1:]:
        common &= set(one.genes)
    if not common:
        from headrace._errors import InvalidError

        lines = "; ".join(f"{one.label} has {listed(one.genes[:3])}, …" for one in sets[:4])
        raise InvalidError(f'join="inner": the data sets have no gene in common ({lines}); var="…" names another column'
                           " of var to take the names of genes from")  # fmt: skip
    return [g for g in sets[0].genes if g in common]


def _wanted(what: str, sets: list[DataSet], names: list[str], missing: str) -> Genes:
    if missing not in ("raise", "ignore"):
        refuse("missing", missing, '"raise" or "ignore" is expected')
    twice = _twice(names)
    if twice:
        refuse(what, listed(twice), "a gene is named once")
    there: set[str] = set()
    for one in sets:
        there.update(one.genes)
    unknown = [g for g in names if g not in there]
    if unknown and (missing == "raise" or len(unknown) == len(names)):
        from headrace._errors import NotFoundError

        where = sets[0].label if len(sets) == 1 else f"any of the {len(sets)} data sets"
        hint = elsewhere(sets[0], unknown) or near(unknown[0], list(there)[:50_000])
        raise NotFoundError(
            f"{what}: {len(unknown)} of {len(names)} are not in {where}: {listed(unknown)}{hint}"
            + ("" if missing == "ignore" else '; missing="ignore" keeps their columns, empty')
        )
    return _mapped(sets, names)


def elsewhere(one: DataSet, unknown: list[str]) -> str:
    """ "; column … of var has them", where one does that names are not taken from; of var no more is read for it."""
    from headrace._errors import Error

    wanted = set(unknown)
    for name in one.var.columns:
        try:
            column = one.var[name]
        except Error:  # a damaged one is not what is asked for
            continue
        if name != one.gene_column() and column.kind in ("text", "category") and wanted & set(column.categories):
            return f'; column {name!r} of var has {"it" if len(wanted) == 1 else "such names"}: var="{name}"'
    return ""


def _mapped(sets: list[DataSet], names: list[str]) -> Genes:
    import numpy as np

    number = {g: i for i, g in enumerate(names)}
    maps = [np.array([number.get(g, -1) for g in one.genes], np.int32) for one in sets]
    return Genes(np.array(names, object), maps)


def _twice(names: Any) -> list[str]:
    seen: set[str] = set()
    return list(dict.fromkeys(g for g in names if g in seen or seen.add(g)))  # type: ignore[func-returns-value]


def unique(one: DataSet, of: list[str] | None = None) -> None:
    """Names of genes are what they are matched by: there are some, once each (of a list, if given)."""
    if one.gene_column() is None:
        from headrace._errors import InvalidError

        columns = ", ".join(one.var.columns) or "none"
        raise InvalidError(f"{one.label}: nothing says which column of var has the names of its {one.columns} genes: "
                           f'give it, as var="…"; there are {columns}')  # fmt: skip
    twice = _twice(one.genes)
    if of is not None:
        twice = [g for g in twice if g in set(of)]
    if twice:
        refuse(
            f"genes of {one.label}",
            listed(twice),
            f'{len(twice)} names are there twice or more: name a column of var that tells genes apart (var="gene_ids"; '
            f"it has {', '.join(one.var.columns) or 'none'})",
        )
