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

    mask = _mask(genes)
    if mask is not None:
        if mask.shape != names.shape:
            refuse("genes", mask.shape, f"a boolean for each of {len(names)} genes, or a list of names, is expected")
        if not mask.any():
            refuse("genes", mask, "the mask leaves no gene")
        to: Any = np.where(mask, np.cumsum(mask) - 1, -1).astype(np.int32)
        return Genes(names[mask], [to])
    wanted = given_names(genes)
    unique(one, wanted)
    return _wanted([one], wanted, missing)


def _mask(genes: object) -> Any:
    """As an array, where it is booleans."""
    import numpy as np

    if isinstance(genes, (list, tuple)) and not isinstance(next(iter(genes), None), (bool, np.bool_)):
        return None
    values = getattr(genes, "values", genes)  # of pandas
    values = np.asarray(values) if isinstance(values, (list, tuple)) or hasattr(values, "__array__") else None
    return values if values is not None and values.dtype.kind == "b" else None


def given_names(genes: object) -> list[str]:
    accepted = "a list of names of genes, or a boolean for each gene, is expected"
    if isinstance(genes, (str, bytes, dict)) or not hasattr(genes, "__iter__"):
        refuse_type("genes", genes, accepted)
    names = list(genes)
    wrong = next((g for g in names if not isinstance(g, str)), None)
    if wrong is not None:
        refuse_type("genes", wrong, accepted)
    if not names:
        refuse("genes", genes, "no gene is named")
    return [str(g) for g in names]


def join(sets: list[DataSet], how: object, missing: str) -> Genes:
    """Of several: "inner" in the order of the first, "outer" in the order they are first seen, or a list as it is."""
    if isinstance(how, str):
        if how not in ("inner", "outer"):
            refuse("join", how, f'"inner", "outer" or a list of names is expected{near(how, ["inner", "outer"])}')
        if all(list(one.genes) == list(sets[0].genes) for one in sets[1:]):
            return Genes(sets[0].genes, [None] * len(sets))
        names = _inner(sets) if how == "inner" else list(dict.fromkeys(g for one in sets for g in one.genes))
        return _mapped(sets, names)
    return _wanted(sets, given_names(how), missing)


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


def _wanted(sets: list[DataSet], names: list[str], missing: str) -> Genes:
    if missing not in ("raise", "ignore"):
        refuse("missing", missing, '"raise" or "ignore" is expected')
    twice = _twice(names)
    if twice:
        refuse("genes", listed(twice), "a gene is named once")
    there: set[str] = set()
    for one in sets:
        there.update(one.genes)
    unknown = [g for g in names if g not in there]
    if unknown and (missing == "raise" or len(unknown) == len(names)):
        from headrace._errors import NotFoundError

        where = sets[0].label if len(sets) == 1 else f"any of the {len(sets)} data sets"
        hint = near(unknown[0], list(there)[:50_000])
        raise NotFoundError(
            f"genes: {len(unknown)} of {len(names)} are not in {where}: {listed(unknown)}{hint}"
            + ("" if missing == "ignore" else '; missing="ignore" keeps their columns, empty')
        )
    return _mapped(sets, names)


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
        columns = ", ".join(one.var.columns) or "none"
        refuse(f"genes of {one.label}", f"{one.columns} genes", "their names are not stored as such: say which column "
               f'of var has them, as var="…"; there are {columns}')  # fmt: skip
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
