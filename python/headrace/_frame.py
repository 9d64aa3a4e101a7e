"""Data frames of AnnData, as they lie in Zarr: columns that are read when they are asked for.

On disk a column is an array (numbers, booleans, texts), a categorical (`codes` and `categories`; -1: missing), or a
nullable array (`values` and `mask`). Frames of anndata 0.7 have the codes as the column itself and name its categories
in an attribute.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace._arguments import near, shown, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headrace._tree import Tree

_NO_ORDER = "values of a categorical without an order"
_MANY = 1 << 16  # categories, of which …
_FEW = 8  # … so many are looked for one by one before a table is made of all


class FrameColumn:
    """One value for each row: ``values``; of categories and texts as ``codes`` into ``categories``, -1: missing.

    ``column[ids]`` gives values; ``ordered`` says whether categories have an order; ``missing`` is a boolean array.
    """

    def __init__(
        self,
        name: str,
        numbers: Any = None,
        mask: Any = None,
        codes: Any = None,
        categories: Any = None,
        ordered: bool = False,
        texts: Any = None,
    ) -> None:
        self.name = name
        self.ordered = ordered
        self._numbers, self._mask, self._texts = numbers, mask, texts
        self._codes, self._categories = codes, categories
        self._numbered: dict[tuple[bool, Any], int] | None = None
        self._spelled: Any = None
        self._looked = 0
        self._of: FrameColumn | None = None  # it is a part of
        self.memo: dict[Any, Any] = {}  # of comparisons, by category, of parts of one column

    @property
    def kind(self) -> str:
        """ "category", "text", "bool" or "number"."""
        if self._numbers is not None:
            return "bool" if self._numbers.dtype.kind == "b" else "number"
        return "text" if self._texts is not None else "category"

    def __len__(self) -> int:
        held = next(x for x in (self._numbers, self._texts, self._codes) if x is not None)
        return len(held)

    def freeze(self) -> None:
        """Numbers and codes are read-only from now on."""
        self._factorize()
        for held in (self._numbers, self._codes):
            if held is not None:
                held.setflags(write=False)

    def part(self, rows: slice, memo: dict[Any, Any]) -> FrameColumn:
        """The same of some rows, which are not copied. `memo` is shared by parts that are compared alike."""
        self._factorize()
        of = [x if x is None else x[rows] for x in (self._numbers, self._mask, self._texts, self._codes)]
        one = FrameColumn(self.name, of[0], of[1], of[3], self._categories, self.ordered, of[2])
        one._of, one.memo = self, memo
        return one

    @property
    def codes(self) -> Any:
        """Numbers of the categories, in the smallest signed type; -1: missing."""
        self._factorize()
        return self._codes

    @property
    def categories(self) -> Any:
        """What the codes stand for, as a numpy array; None for numbers and booleans."""
        self._factorize()
        return self._categories

    def _factorize(self) -> None:
        if self._texts is None or self._codes is not None:
            return
        import numpy as np

        there = slice(None) if self._mask is None else ~self._mask
        texts = [str(t) for t in self._texts[there].tolist()]  # numpy's own texts are all as long as the longest
        number = {t: i for i, t in enumerate(sorted(set(texts)))}
        self._categories = _objects(list(number))
        codes = np.full(len(self._texts), -1, code_type(len(number)))
        codes[there] = np.fromiter(map(number.__getitem__, texts), codes.dtype, len(texts))
        self._codes = codes

    def code_of(self, value: Any) -> int | None:
        """The number of a category; None: there is none such. True is not 1."""
        if self._of is not None:
            return self._of.code_of(value)
        if isinstance(value, str) and len(self.categories) > _MANY and self._looked < _FEW:
            self._looked += 1  # of millions a table is larger than all else there is of the column
            found = self.categories.tolist()
            return found.index(value) if value in found else None
        if self._numbered is None:
            categories = self.categories.tolist()
            self._numbered = {(isinstance(c, bool), c): i for i, c in reversed(list(enumerate(categories)))}
        try:
            return self._numbered.get((isinstance(value, bool), value))
        except TypeError:  # what has no hash is no category
            return None

    @property
    def missing(self) -> Any:
        import numpy as np

        if self._numbers is not None and self._numbers.dtype.kind == "f":
            nan = np.isnan(self._numbers)
            return nan if self._mask is None else nan | self._mask
        if self._mask is not None:
            return self._mask
        if self._numbers is not None:
            return np.zeros(len(self), bool)
        return np.zeros(len(self), bool) if self._texts is not None else self._codes < 0

    @property
    def values(self) -> Any:
        """Texts and categories as objects, None where missing; numbers as they are, NaN where missing."""
        return self[:]

    def __getitem__(self, rows: Any) -> Any:
        import numpy as np

        mask = None if self._mask is None else self._mask[rows]
        if self._texts is not None:
            found = self._texts[rows]
            return found if mask is None or not mask.any() else np.where(mask, None, found)
        if self._numbers is None:
            if self._spelled is None:
                self._spelled = spelled(self._categories)
            return self._spelled[self._codes[rows]]
        found = self._numbers[rows]
        if mask is None or not np.any(mask):
            return found
        return np.where(mask, None, found) if found.dtype.kind == "b" else np.where(mask, np.nan, found)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        import numpy as np

        return np.asarray(self.values, dtype)

    def to_pandas(self) -> Any:
        """As pandas has it, a copy: a Categorical, texts, numbers; Int64, boolean and the like where integers and
        truths are missing, NaN where other numbers are."""
        import numpy as np
        import pandas as pd

        if self._texts is not None:
            return self.values
        if self._numbers is None:
            return pd.Categorical.from_codes(self._codes.copy(), categories=self._categories, ordered=self.ordered)
        if self._mask is None:
            return self._numbers.copy()
        native = self._numbers.dtype.newbyteorder("=")
        if native.kind == "f":
            return np.where(self._mask, np.nan, self._numbers).astype(native)
        kinds = {"b": "boolean", "u": f"UInt{8 * native.itemsize}", "i": f"Int{8 * native.itemsize}"}
        array: Any = pd.array(self._numbers.astype(native), dtype=kinds[native.kind])
        array[self._mask] = pd.NA
        return array

    @property
    def numbers(self) -> Any:
        """Numbers and booleans as stored, whatever stands where they are missing."""
        return self._numbers

    def table(self) -> Any:
        """What a batch has of it: codes, or numbers. Booleans that may be missing are -1, 0, 1; integers that are
        missing somewhere are float64 with NaN."""
        import numpy as np

        if self._numbers is None:
            return np.ascontiguousarray(self.codes)
        native = self._numbers.dtype.newbyteorder("=")
        if self._mask is None:
            return np.ascontiguousarray(self._numbers, native)
        if native.kind == "b":
            return np.where(self._mask, -1, self._numbers.astype(np.int8)).astype(np.int8)
        if not self._mask.any():
            return np.ascontiguousarray(self._numbers, native)
        return np.where(self._mask, np.nan, self._numbers)

    def __repr__(self) -> str:
        from headrace._format import count, plural

        if self._numbers is not None:
            return f"<{self.name}: {count(len(self))} {self._numbers.dtype.name}>"
        if self._texts is not None:
            return f"<{self.name}: {plural(len(self), 'text')}>"
        some = ", ".join(map(str, self._categories[:6])) + (", …" if len(self._categories) > 6 else "")
        words = ("ordered " if self.ordered else "") + ("category" if len(self._categories) == 1 else "categories")
        return f"<{self.name}: {count(len(self))} of {count(len(self._categories))} {words}: {some}>"


def spelled(categories: Any) -> Any:
    """The categories, and None behind them, which is where code -1 looks."""
    return _objects([*categories, None])


def _objects(values: list[Any]) -> Any:
    import numpy as np

    out: Any = np.empty(len(values), object)
    out[:] = values
    return out


def code_type(n: int) -> Any:
    """The smallest signed type for codes of n categories and -1."""
    import numpy as np

    return np.dtype(next(t for t in ("int8", "int16", "int32") if n <= np.iinfo(t).max))


class Frame:
    """Columns by name, each read at its first use: ``samples.obs["cell_type"].categories``."""

    unread = ""  # why there are no columns here, though the archive may have some

    def __init__(self, names: list[str], index: str | None, length: int, what: str) -> None:
        self._names, self.index_name, self._length = names, index, length
        self.what = what  # "obs", for messages
        self._known: dict[str, FrameColumn] = {}

    @property
    def columns(self) -> list[str]:
        """Names, without the index's."""
        return [name for name in self._names if name != self.index_name]

    def keys(self) -> list[str]:
        """Names, that of the index too."""
        return self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __len__(self) -> int:
        """Rows."""
        return self._length

    def __getitem__(self, name: str) -> FrameColumn:
        name = text(f"{self.what}[…]", name, "the name of a column is expected")
        if name not in self._known:
            if name not in self:
                self._refuse(name)
            column = self._read(name)
            if len(column) != self._length:
                from headrace._errors import DataError

                raise DataError(
                    f"{self.what} column {name!r} has {len(column)} values for {self._length} rows: the data frame is "
                    "damaged"
                )
            self._known[name] = column
        return self._known[name]

    @property
    def index(self) -> Any:
        """Names of the rows: barcodes, genes."""
        return None if self.index_name is None else self[self.index_name].values

    def to_pandas(self, columns: list[str] | None = None) -> Any:
        """A pandas data frame of these columns, or of all; what may be missing has types that can be."""
        import pandas as pd

        names = self.columns if columns is None else [text("columns", name) for name in columns]
        return pd.DataFrame({name: self[name].to_pandas() for name in names}, index=self.index, columns=names)

    def _read(self, name: str) -> FrameColumn:
        raise NotImplementedError

    def _refuse(self, name: str) -> None:
        from headrace._errors import NotFoundError, UnsupportedError

        if self.unread:
            raise UnsupportedError(f"{self.what}[{shown(name)}]: {self.unread}")
        some = ", ".join(self._names[:30]) + (", …" if len(self._names) > 30 else "")
        raise NotFoundError(
            f"{self.what} has no column {shown(name)}{near(name, self._names)}; it has {some or 'no columns'}"
        )

    def __repr__(self) -> str:
        from headrace._format import count

        return f"<{self.what}: {count(self._length)} rows: {', '.join(self.columns) or 'no columns'}>"


class ZarrFrame(Frame):
    """A data frame of AnnData: a group with an array or a group for each column."""

    def __init__(self, tree: Tree, path: str, length: int, what: str) -> None:
        attributes = tree.attributes(path)
        index = attributes.get("_index")
        if index is None:
            index = next((name for name in ("_index", "index") if tree.column(f"{path}/{name}")), None)
        order = attributes.get("column-order", [])
        if not isinstance(order, list) or not all(isinstance(n, str) for n in [*order, index or ""]):
            from headrace._errors import FormatError

            raise FormatError(f"{path}: its attributes column-order and _index are {shown(order)} and {shown(index)}; "
                              "a list of names of columns, and one of them, are expected")  # fmt: skip
        names = list(order)
        if not names:
            names = [n for n in tree.children(path) if n not in ("__categories", index)]
        super().__init__([*([index] if index is not None and index not in names else []), *names], index, length, what)
        self._tree, self._path = tree, path

    def __contains__(self, name: object) -> bool:
        if super().__contains__(name):
            return True
        # a store that cannot list says what it has when it is asked
        return isinstance(name, str) and not self._tree.complete and self._tree.column(f"{self._path}/{name}")

    def _read(self, name: str) -> FrameColumn:
        return read_column(self._tree, f"{self._path}/{name}", name, self._path)


def read_column(tree: Tree, path: str, name: str, frame: str) -> FrameColumn:
    codes = tree.array(f"{path}/codes")
    if codes is not None:
        ordered = bool(tree.attributes(path).get("ordered", False))
        return _category(name, codes[...], tree.values(f"{path}/categories"), ordered, path)
    values = tree.array(f"{path}/values")
    if values is not None:
        return _plain(name, values[...], tree.array(f"{path}/mask"), path)
    array = tree.array(path)
    if array is None:
        from headrace._errors import FormatError

        kind = tree.attributes(path).get("encoding-type")
        raise FormatError(f"{path}: a column of a data frame is an array, codes and categories, or values and a mask"
                          + (f"; this is a {kind}" if kind else ""))  # fmt: skip
    named = array.attributes.get("categories")
    if isinstance(named, str):  # anndata 0.7: "__categories/cell_type", seen from the frame
        place = next((p for p in (f"{frame}/{named}", named.lstrip("/")) if tree.array(p) is not None), None)
        if place is None:
            from headrace._errors import FormatError

            raise FormatError(f"{path}: its attribute names the categories {named}, and there are none")
        ordered = bool(tree.attributes(place).get("ordered", False))
        return _category(name, array[...], tree.values(place), ordered, path)
    return _plain(name, array[...], None, path)


def _category(name: str, codes: Any, categories: Any, ordered: bool, path: str) -> FrameColumn:
    import numpy as np

    if codes.dtype.kind not in "iu" or codes.ndim != 1:
        _damaged(path, f"codes of type {codes.dtype} and {codes.ndim} dimensions")
    n = len(categories)
    if codes.dtype.kind == "u":  # missing ones cannot be among them
        codes = codes.astype(np.int64)
    if len(codes) and not -1 <= int(codes.min()) <= int(codes.max()) < n:
        _damaged(path, f"codes from {codes.min()} to {codes.max()} for {n} categories")
    return FrameColumn(name, codes=codes.astype(code_type(n), copy=False), categories=categories, ordered=ordered)


def _plain(name: str, values: Any, mask: Any, path: str) -> FrameColumn:
    if values.ndim != 1:
        _damaged(path, f"{values.ndim} dimensions")
    if mask is not None:
        mask = mask[...].astype(bool)
        if mask.shape != values.shape:
            _damaged(path, f"{len(values)} values and {len(mask)} in its mask")
    if values.dtype.kind in "OUS":
        return FrameColumn(name, texts=_texts(values), mask=mask)
    if values.dtype.kind not in "biuf":
        from headrace._errors import UnsupportedError

        raise UnsupportedError(f"{path}: values of type {values.dtype} are no column that cells can have")
    return FrameColumn(name, numbers=values.astype(values.dtype.newbyteorder("="), copy=False), mask=mask)


def _texts(values: Any) -> Any:
    import numpy as np

    if values.dtype.kind == "S":
        return np.array([v.decode("utf-8", "replace") for v in values.tolist()], object)
    return values if values.dtype.kind == "O" else values.astype(object)


def _damaged(path: str, found: str) -> None:
    from headrace._errors import DataError

    raise DataError(f"{path}: {found}: the column is damaged")
