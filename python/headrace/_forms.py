"""What a batch makes of rows of a sparse matrix: `csr`, `dense`, `padded`, `ranked`."""

from __future__ import annotations

from headrace._arguments import choice, flag, integer, near, real, refuse, refuse_type, shown
from headrace._arguments import dtype as known_dtype

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_KINDS = {"csr": 0, "dense": 1, "padded": 2, "ranked": 3}
_PICKS = {"first": 0, "top": 1, "random": 2, "weighted": 3}
DTYPES = {
    "bool": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "uint8": 6, "uint16": 7, "uint32": 8, "uint64": 9,
    "float16": 10, "bfloat16": 11, "float32": 12, "float64": 13,
}  # fmt: skip
_ACCEPTED = '"csr", "dense", hr.padded(1200, …) or hr.ranked(2048, …) is expected'


class Form:
    """Made by `csr`, `dense`, `padded`, `ranked`. Immutable."""

    __slots__ = ("kind", "options", "words")

    def __init__(self, kind: str, options: dict[str, Any], words: list[str]) -> None:
        self.kind, self.options, self.words = kind, options, words

    def __repr__(self) -> str:
        return f"{self.kind}({', '.join(self.words)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Form) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def resolve(self, genes: Any) -> dict[str, Any]:
        """The options of a view with these genes, names of its columns."""
        found = {"form": _KINDS[self.kind], "columns": len(genes), **self.options}
        for name, type_of, absent in (("factors", "float32", float("nan")), ("tokens", "int64", -1)):
            if found.get(name) is not None:
                found[name] = _by_gene(f"{self.kind}: {name}", found[name], genes, type_of, absent)
        return found


def form_of(given: object) -> Form:
    if isinstance(given, Form):
        return given
    if not isinstance(given, str):
        refuse_type("X", given, _ACCEPTED)
    if given in ("csr", "dense"):
        return csr() if given == "csr" else dense()
    if given in ("padded", "ranked"):
        refuse("X", given, f"say how long a row is, such as hr.{given}({1200 if given == 'padded' else 2048})")
    refuse("X", given, _ACCEPTED + near(given, _KINDS))


def dtype_number(what: str, given: object) -> int:
    """What the library calls a type of numbers; None: as it is."""
    if given is None:
        return 0
    name = known_dtype(what, given)
    if name not in DTYPES:
        refuse(what, given, f"one of {', '.join(DTYPES)} is expected")
    return DTYPES[name]


def _words(given: dict[str, tuple[Any, Any]]) -> list[str]:
    """Arguments that are not their defaults, tables only as that."""
    words = []
    for name, (value, default) in given.items():
        if value is default or (isinstance(value, (int, float, str)) and value == default):
            continue
        short = isinstance(value, (int, float, str)) or len(repr(value)) < 40
        words.append(f"{name}={value!r}" if short else f"{name}=…")
    return words


def csr(*, index_dtype: object = None) -> Form:
    """Rows as they are stored: ``batch["X"]`` is one sparse matrix, as wide as there are genes in every batch, with
    ``.torch()``, ``.scipy()`` and the three tensors ``.data``, ``.indices``, ``.indptr``.

    Parameters
    ----------
    index_dtype
        Of columns and offsets: "int32" (default) or "int64".
    """
    return Form("csr", {"index_dtype": _index("csr", index_dtype)}, _words({"index_dtype": (index_dtype, None)}))


def dense() -> Form:
    """All genes of a cell, zeros too: ``batch["X"]`` of shape (rows, genes)."""
    return Form("dense", {}, [])


def padded(
    length: int,
    *,
    pick: str = "random",
    bins: int | None = None,
    tokens: object = None,
    cls: int | None = None,
    pad: int = 0,
    pad_value: float = 0.0,
    cls_value: float = 0.0,
    index_dtype: object = None,
) -> Form:
    """The genes that a cell has, at most `length` of them, and their values: tensors ``X.genes``, ``X.values`` and
    ``X.mask`` of shape (rows, length). For scGPT and the like.

    Parameters
    ----------
    pick
        Of a cell with more genes: "random" ones, drawn by (seed, epoch, cell), anew in each epoch; "weighted" ones,
        drawn so by their values, in that order; the "top" ones by value; the "first" ones by column.
    bins
        Values as bins 1 … bins - 1 of the cell's own quantiles.
    tokens
        What stands for a gene: a dict by name (genes that are not in it are left out), or an array with a number for
        each gene, -1 to leave it out. Default: the number of its column.
    cls, cls_value
        A token before the genes, and its value.
    pad, pad_value
        What stands where there is no gene; ``X.mask`` is False there.
    index_dtype
        Of ``X.genes``: "int32" or "int64" (default: int64 with `tokens`, else int32).
    """
    size = integer("padded: length", length, 1)
    options = {
        "length": size,
        "pick": choice("padded: pick", pick, _PICKS),
        "bins": 0 if bins is None else integer("padded: bins", bins, 2, 65536),
        "tokens": tokens,
        "pad": integer("padded: pad", pad),
        "pad_value": real("padded: pad_value", pad_value, "a number is expected"),
        "special_value": real("padded: cls_value", cls_value, "a number is expected"),
        "index_dtype": _index("padded", index_dtype),
        **_special("padded", cls=cls),
    }
    given = {"pick": (pick, "random"), "bins": (bins, None), "tokens": (tokens, None), "cls": (cls, None),
             "pad": (pad, 0), "pad_value": (pad_value, 0.0), "cls_value": (cls_value, 0.0),
             "index_dtype": (index_dtype, None)}  # fmt: skip
    return Form("padded", options, [str(size), *_words(given)])


def ranked(
    length: int,
    *,
    factors: object = None,
    tokens: object = None,
    cls: int | None = None,
    eos: int | None = None,
    pad: int = 0,
    index_dtype: object = None,
) -> Form:
    """Genes by falling value, at most `length` tokens: ``X.tokens`` and ``X.mask`` of shape (rows, length). For
    Geneformer: ``hr.ranked(2048, factors=medians, tokens=vocabulary, cls=2, eos=3)`` with ``normalize=1e4``.

    Parameters
    ----------
    factors
        Values are divided by these: a dict by name (genes that are not in it are left out), or an array with a number
        for each gene, NaN to leave it out.
    tokens
        What stands for a gene: a dict by name (genes that are not in it are left out), or an array with a number for
        each gene, -1 to leave it out. Default: the number of its column.
    cls, eos
        Tokens before and behind the genes, counted in `length`.
    pad
        What stands behind; ``X.mask`` is False there.
    index_dtype
        Of ``X.tokens``: "int64" (default) or "int32".
    """
    size = integer("ranked: length", length, 1)
    options = {
        "length": size,
        "factors": factors,
        "tokens": tokens,
        "pad": integer("ranked: pad", pad),
        "index_dtype": _index("ranked", index_dtype),
        **_special("ranked", cls=cls, eos=eos),
    }
    given = {"factors": (factors, None), "tokens": (tokens, None), "cls": (cls, None), "eos": (eos, None),
             "pad": (pad, 0), "index_dtype": (index_dtype, None)}  # fmt: skip
    return Form("ranked", options, [str(size), *_words(given)])


def _index(what: str, given: object) -> int:
    number = dtype_number(f"{what}: index_dtype", given)
    if number not in (0, DTYPES["int32"], DTYPES["int64"]):
        refuse(f"{what}: index_dtype", given, '"int32" or "int64" is expected')
    return number


def _special(what: str, cls: int | None = None, eos: int | None = None) -> dict[str, int]:
    out = {}
    for name, value, ours in (("cls", cls, "first"), ("eos", eos, "last")):
        if value is not None:
            out[ours] = integer(f"{what}: {name}", value)
            out[f"has_{ours}"] = 1
    return out


def _by_gene(what: str, given: Any, genes: Any, type_of: str, absent: Any) -> Any:
    """One number for each gene, from a dict by name or an array."""
    values = _numbers(what, given, genes, type_of, absent)
    if type_of == "float32":
        _check_factors(what, values, genes)
    return values


def _check_factors(what: str, values: Any, genes: Any) -> None:
    """Values are divided by them; NaN leaves a gene out."""
    wrong = (values <= 0) | (values == float("inf"))
    if wrong.any():
        at = int(wrong.argmax())
        more = f" (and {int(wrong.sum()) - 1} more)" if wrong.sum() > 1 else ""
        refuse(f"{what}[{shown(genes[at])}]", float(values[at]), f"a number above 0 that values are divided by is "
               f"expected, or NaN to leave the gene out{more}")  # fmt: skip


def _numbers(what: str, given: Any, genes: Any, type_of: str, absent: Any) -> Any:
    import numpy as np

    if hasattr(given, "to_dict"):  # a Series
        given = given.to_dict()
    if isinstance(given, dict):
        _check_numbers(what, given, type_of)
        values: Any = np.array([given.get(gene, absent) for gene in genes], type_of)
        known = np.array([gene in given for gene in genes], bool)
        if not known.any():
            some = ", ".join(map(repr, list(given)[:3]))
            ours = ", ".join(map(repr, list(genes[:3])))
            refuse(what, f"{len(given)} names", f"it has none of the genes: it has {some}, …, and the genes are {ours}"
                   ', …; var="…" names another column of var to take their names from')  # fmt: skip
        return values
    values = np.asarray(given)
    if values.shape != (len(genes),) or values.dtype.kind not in "iuf":
        refuse(what, given, f"a dict by name, or an array with a number for each of {len(genes)} genes, is expected")
    if type_of == "int64" and values.dtype.kind == "f":
        refuse(what, given, "tokens are integers")
    return np.ascontiguousarray(values, type_of)


def _check_numbers(what: str, given: dict[Any, Any], type_of: str) -> None:
    """Tokens are integers that fit, factors are numbers: a token of 1.5 is none, and nothing is rounded to one."""
    for name, value in given.items():
        if type_of == "int64":
            integer(f"{what}[{shown(name)}]", value, -1)
        else:
            real(f"{what}[{shown(name)}]", value, "a number is expected")


def flags(normalize: object, over: object, log1p: object) -> dict[str, Any]:
    """What is done to values, of `cells`."""
    options: dict[str, Any] = {"log1p": int(flag("log1p", log1p))}
    options["total_selected"] = choice("normalize_over", over, {"all": 0, "genes": 1})
    if normalize is not None:
        accepted = "a total above 0, such as 1e4, is expected"
        options["total"] = real("normalize", normalize, accepted)
        if not 0 < options["total"] < float("inf"):
            refuse("normalize", normalize, accepted)
    return options
