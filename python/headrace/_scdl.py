"""SCDL archives as data sets of cells: their matrix is read by the library, their features are parquet files, which
pyarrow reads through the archive's own store, and of them only what is asked for."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from headrace._atlas import DataSet, Matrix, Paths
from headrace._frame import Frame, FrameColumn, code_type
from headrace._tree import Tree

if TYPE_CHECKING:
    from headrace._archive import Archive

_NAMES = ("var_feature_id", "feature_id", "gene_id", "_index")  # columns that are names of genes for sure
_FOLDERS = {"obs_features": ("obs_features",), "var_features": ("var_features", "features")}  # "features": old archives


def is_scdl(archive: Archive) -> bool:
    return str(archive.info["format"]).startswith("SCDL")


class ScdlDataSet(DataSet):
    """One SCDL archive, plain or chunked. `genes`: how many there are, where the archive does not say."""

    def __init__(self, tree: Tree, label: str, layer: str | None, var: str | None, genes: int | None) -> None:
        from headrace._errors import NotFoundError

        if layer is not None:
            raise NotFoundError(f"layer={layer!r}: an SCDL archive has one matrix and no layers")
        self.tree, self.path, self.label, self._var, self._genes = tree, "", label, var, None
        attributes = tree.archive.attributes
        self.n = int(attributes["n_obs"])
        if genes is not None and not _has_pyarrow():  # what is asked for can be had without features
            self.obs, self.var, self.columns = Unread("obs", self.n), Unread("var", genes), genes
        else:
            files = Files(tree.archive)
            self.obs = ParquetFrame(files, "obs_features", attributes, self.n, "obs")
            found = ParquetFrame(files, "var_features", attributes, None, "var")
            self.var = found
            self.columns = genes if genes is not None and not found.files else self._width(found)
        parts: list[Paths] = [(f"{p}/indptr", f"{p}/indices", f"{p}/data") for p in self._places(attributes)]
        array = tree.array(parts[0][2])
        if array is None:
            raise NotFoundError(f"{label} has no array {parts[0][2]}")
        self.matrix = Matrix(parts[0][2].partition("/")[0], "csr", parts, (self.n, self.columns), array.dtype)

    @staticmethod
    def _places(attributes: dict[str, Any]) -> list[str]:  # type: ignore[override]
        if "n_chunks" not in attributes:
            return ["X"]
        return [f"chunk_{k:05d}" for k in range(int(attributes["n_chunks"]))]

    def _width(self, var: ParquetFrame) -> int:
        if not var.files:
            from headrace._errors import InvalidError

            raise InvalidError(
                f"{self.label} has no var_features, and nothing else says how many genes there are: give their number, "
                "as cells(genes=20000)"
            )
        return max(var.lengths)

    def gene_column(self) -> str | None:
        if self._var is not None:
            return self._var
        return next((n for n in _NAMES if n in self.var), None)


_PYARROW = "features of SCDL are parquet files, which pyarrow reads: pip install 'headrace[cells]'"


def _has_pyarrow() -> bool:
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        return False
    return True


class Unread(Frame):
    """Features that cannot be read here."""

    unread = _PYARROW

    def __init__(self, what: str, length: int) -> None:
        super().__init__([], None, length, what)


class ParquetFrame(Frame):
    """Features of SCDL: a parquet file for each block of rows. Those of var describe the genes of a block's cells: they
    are used where all blocks have the same."""

    def __init__(self, files: Files, name: str, attributes: dict[str, Any], length: int | None, what: str) -> None:
        self._store = files
        self.files = files.parquet(name, attributes)
        self._tables = [files.table(f) for f in self.files]
        self.lengths = [int(t.metadata.num_rows) for t in self._tables]
        columns = [[n for n in t.schema_arrow.names if not n.startswith("__index_level_")] for t in self._tables]
        names = [n for n in columns[0] if all(n in c for c in columns[1:])] if columns else []
        rows = sum(self.lengths) if what == "obs" else max(self.lengths, default=0)
        if length is not None and self.files and rows != length:
            from headrace._errors import DataError

            raise DataError(f"{name}: {rows} rows in {len(self.files)} parquet files, for {length} cells")
        super().__init__(names, None, rows if length is None else length, what)

    def _read(self, name: str) -> FrameColumn:
        from headrace._obs import one_behind_the_other

        columns = [_column(name, t, f) for t, f in zip(self._tables, self.files)]
        if self.what == "obs":
            return columns[0] if len(columns) == 1 else one_behind_the_other(name, columns, self.files)
        first = columns[0].values
        for file, other in zip(self.files[1:], columns[1:]):
            if len(other) != len(first) or not (other.values == first).all():
                from headrace._errors import UnsupportedError

                raise UnsupportedError(
                    f"{self.files[0]} and {file} differ in {name}: the archive was put together of cells with "
                    "different genes, whose columns cannot be told apart; make one archive of each source, and join "
                    "them by hr.cells"
                )
        return columns[0]


def _column(name: str, table: Any, file: str) -> FrameColumn:
    import numpy as np
    import pyarrow as pa

    try:
        read = table.read(columns=[name]).column(0)
    except (pa.ArrowException, OSError) as e:
        _broken(file, e)
    values = read.combine_chunks() if read.num_chunks != 1 else read.chunk(0)
    if pa.types.is_dictionary(values.type):
        return _coded(name, values, bool(values.type.ordered))
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        return _coded(name, values.dictionary_encode(), False)
    mask = None
    if values.null_count:
        mask = np.asarray(values.is_null())
        values = values.fill_null(False if pa.types.is_boolean(values.type) else 0)
    numbers = values.to_numpy(zero_copy_only=False)
    if numbers.dtype.kind not in "biuf":
        from headrace._errors import UnsupportedError

        raise UnsupportedError(f"{file}: column {name} is of type {read.type}: numbers, booleans and texts are read")
    return FrameColumn(name, numbers=np.array(numbers), mask=mask)


def _coded(name: str, values: Any, ordered: bool) -> FrameColumn:
    """A dictionary of arrow; one without an order is put in that of its texts."""
    import numpy as np

    categories = values.dictionary.to_numpy(zero_copy_only=False).astype(object)
    codes = np.array(values.indices.fill_null(-1)).astype(np.int64)
    if not ordered:
        order = sorted(range(len(categories)), key=lambda i: str(categories[i]))
        number: Any = np.empty(len(order) + 1, np.int64)
        number[order] = np.arange(len(order))
        number[-1] = -1
        categories, codes = categories[order], number[codes]
    return FrameColumn(name, codes=codes.astype(code_type(len(categories))), categories=categories, ordered=ordered)


def _broken(file: str, e: Exception) -> Any:
    from headrace._errors import DataError

    raise DataError(f"{file} is no parquet file that can be read: {str(e).splitlines()[0] if str(e) else e}") from None


# ---- files -----------------------------------------------------------------------------------------------------------


class Files:
    """What lies beside the arrays of an archive, through the store that it was opened with."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._made: Any = None

    def read(self, key: str, offset: int = 0, length: int = 0) -> tuple[bytes, int] | None:
        """(bytes, size of the object), or None."""
        origin = self._archive._origin
        if origin is not None and not isinstance(origin[0], str) and hasattr(origin[0], "get"):
            return self._of_mapping(origin[0], key, offset, length)
        if self._made is None:
            from headrace import _headrace
            from headrace._text import to_json

            url, options = (self._archive.url, {}) if origin is None else (origin[0], origin[1])
            self._made = _headrace.objects(str(url), to_json(options, "storage_options") if options else None)
        found = self._made.read(key, offset, length)
        return None if found is None else (found[0], found[1])

    def _of_mapping(self, store: Any, key: str, offset: int, length: int) -> tuple[bytes, int] | None:
        value = store.get(key) if hasattr(store, "__getitem__") else None
        if not isinstance(value, (bytes, bytearray, memoryview)):
            return None
        whole = bytes(value)
        end = offset + length if length and offset >= 0 else len(whole)
        return whole[offset:end], len(whole)

    def parquet(self, name: str, attributes: dict[str, Any]) -> list[str]:
        """The parquet files of features, in order: as the header lists them, or as writers name them."""
        listed = (attributes.get(name) or {}).get("files", [])
        files = sorted(f for f in listed if f.endswith(".parquet"))
        if files and self.read(files[0], 0, 4) is not None:
            return files
        for folder in _FOLDERS[name]:
            found = self.read(f"{folder}/cumulative_sum_index.npy")
            if found is not None:
                n = _blocks(f"{folder}/cumulative_sum_index.npy", found[0])
                return [f"{folder}/dataframe_{i:0{len(str(n))}d}.parquet" for i in range(n)]
        return []

    def table(self, key: str) -> Any:
        """A ``pyarrow.parquet.ParquetFile``: reads its footer."""
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            from headrace._errors import UnsupportedError

            raise UnsupportedError(f"{_PYARROW}; without them: cells(genes=20000), how many there are") from None
        found = self.read(key, 0, 4)
        if found is None:
            from headrace._errors import NotFoundError

            raise NotFoundError(f"{key}: the header names this file of features, and it is not there")
        try:
            return pq.ParquetFile(_Ranges(self, key, found[1]), pre_buffer=True)
        except (pa.ArrowException, OSError) as e:
            _broken(key, e)


def _blocks(key: str, data: bytes) -> int:
    import numpy as np

    try:
        ends = np.load(io.BytesIO(data), allow_pickle=False)
        return len(ends) - 1
    except Exception as e:
        from headrace._errors import DataError

        raise DataError(f"{key} is no index of features: {e}") from None


class _Ranges(io.RawIOBase):
    """An object as a file: each read is a range."""

    def __init__(self, files: Files, key: str, size: int) -> None:
        self._files, self._key, self._size, self._at = files, key, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = max(0, offset + (0, self._at, self._size)[whence])
        return self._at

    def tell(self) -> int:
        return self._at

    def size(self) -> int:
        return self._size

    def read(self, n: int = -1) -> bytes:
        n = self._size - self._at if n is None or n < 0 else min(n, self._size - self._at)
        if n <= 0:
            return b""
        found = self._files.read(self._key, self._at, n)
        data = b"" if found is None else found[0]
        self._at += len(data)
        return data

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)
