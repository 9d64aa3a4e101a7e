"""What `headrace cells` reads from: SCDL, h5ad and AnnData-Zarr, as arrays of which parts are read by `[a:b]`."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

import headrace as hr
from headrace._cli import cells_header
from headrace._cli.cells_raw import DenseRows, Joined, Numbers, Offsets, RawFile, smallest

SIGNATURE = b"\x89HDF\r\n\x1a\n"


@dataclass
class Cells:
    """Cells × genes by rows. What is dense has `dense`, and its sparse arrays are made when they are asked for."""

    place: str
    kind: str  # "scdl", "anndata"
    rows: int
    columns: int | None  # None: SCDL says so in its parquet alone
    indptr: Numbers
    indices: Numbers
    data: Numbers
    stamp: dict[str, Any]  # changes when the source does
    dense: Any = None
    folder: Path | None = None  # of a local SCDL
    header: cells_header.Header | None = None
    group: Any = None  # of an AnnData: h5py's or zarr's
    matrix: str = "X"
    dtypes: dict[str, str] = field(default_factory=dict)  # of an SCDL

    @property
    def nnz(self) -> int:
        return int(self.indptr[self.rows : self.rows + 1][0]) if self.rows else 0


def open_cells(place: str, layer: str | None = None, options: Any = None, memory: int = 256 << 20) -> Cells:
    """A path or URL. Raises ValueError or an error of headrace's that says what is wrong."""
    if "://" in place and not place.startswith("file://"):
        return _remote(place, layer, options, memory)
    path = Path(place.removeprefix("file://"))
    if not path.exists():
        raise ValueError(f"{place}: there is no such file or directory")
    if path.is_file():
        with path.open("rb") as file:
            if file.read(8) != SIGNATURE:
                raise ValueError(
                    f"{place}: a file that is no HDF5: h5ad files, SCDL and AnnData-Zarr directories are read"
                )
        return _h5ad(path, layer, memory)
    if is_scdl(path):
        if layer is not None:
            raise ValueError(f"--layer {layer}: {place} is SCDL, which has one matrix and no layers")
        return _scdl(path)
    return _zarr(place, layer, options, memory, str(path))


def is_scdl(path: Path) -> bool:
    return any((path / name).exists() for name in ("header.sch", "row_ptr.npy", "chunk_00000"))


# ---- SCDL ------------------------------------------------------------------------------------------------------------


def _scdl(folder: Path) -> Cells:
    file = folder / "header.sch"
    header = cells_header.parse_header(file.read_bytes(), str(file)) if file.exists() else None
    dtypes = cells_header.dtypes(header)
    for name in cells_header.FILES:
        if not dtypes[name].startswith("uint") and (name != "DATA" or not dtypes[name].startswith("float")):
            raise ValueError(f"{file}: {name} has a type that holds no such numbers")
    if header is not None and header.chunked_info is not None:
        indptr, indices, data = _chunked(folder, header.chunked_info, dtypes)
    else:
        indptr, indices, data = (
            RawFile(folder / cells_header.FILES[n], dtypes[n]) for n in ("ROWPTR", "COLPTR", "DATA")
        )
        _check_sizes(folder, indptr, indices, data)
    rows = indptr.shape[0] - 1
    stamp = {n: _stat(folder / n) for n in ("header.sch", "row_ptr.npy", "col_ptr.npy", "data.npy")}
    columns = scdl_columns(folder)
    return Cells(str(folder), "scdl", rows, columns, indptr, indices, data, stamp, folder=folder, header=header,
                 dtypes=dtypes)  # fmt: skip


def _check_sizes(folder: Path, indptr: Numbers, indices: Numbers, data: Numbers) -> None:
    if not indptr.shape[0]:
        raise ValueError(f"{folder}/row_ptr.npy: it is empty")
    first, last = int(indptr[0:1][0]), int(indptr[indptr.shape[0] - 1 : indptr.shape[0]][0])
    if first != 0:
        raise ValueError(f"{folder}/row_ptr.npy: it begins with {first} instead of 0")
    for name, array in (("col_ptr.npy", indices), ("data.npy", data)):
        if array.shape[0] != last:
            raise ValueError(
                f"{folder}/{name}: it holds {array.shape[0]} numbers of {array.dtype}, and row_ptr.npy ends with "
                f"{last}: a file is cut, or header.sch names another type"
            )


def _chunked(folder: Path, cut: cells_header.ChunkedInfo, dtypes: dict[str, str]) -> tuple[Numbers, Numbers, Numbers]:
    names = [folder / f"chunk_{k:05d}" for k in range(cut.num_chunks)]
    rows = [min(cut.total_rows, k * cut.chunk_size) for k in range(cut.num_chunks + 1)]
    ends = []
    for k, chunk in enumerate(names):
        parts = [RawFile(chunk / cells_header.FILES[p], dtypes[p]) for p in ("ROWPTR", "COLPTR", "DATA")]
        _check_sizes(chunk, *parts)
        if parts[0].shape[0] != rows[k + 1] - rows[k] + 1:
            raise ValueError(
                f"{chunk}/row_ptr.npy: {parts[0].shape[0] - 1} rows, where header.sch has {rows[k + 1] - rows[k]}"
            )
        ends.append(parts[2].shape[0])
    starts = [0, *accumulate(ends)]

    def files(part: str) -> list[Any]:
        return [partial(RawFile, c / cells_header.FILES[part], dtypes[part]) for c in names]

    return (
        Offsets(files("ROWPTR"), rows, starts),
        Joined(files("COLPTR"), starts, dtypes["COLPTR"]),
        Joined(files("DATA"), starts, dtypes["DATA"]),
    )


def scdl_columns(folder: Path) -> int | None:
    """Genes, from the parquet of var: of several sets of them, the most."""
    for name in ("var_features", "features"):
        found = sorted((folder / name).glob("dataframe_*.parquet"))
        if found:
            import pyarrow.parquet as pq

            return max(int(pq.read_metadata(f).num_rows) for f in found)
    return None


def _stat(path: Path) -> list[int] | None:
    try:
        s = os.stat(path)
    except FileNotFoundError:
        return None
    return [s.st_size, s.st_mtime_ns]


# ---- AnnData ---------------------------------------------------------------------------------------------------------


def _h5ad(path: Path, layer: str | None, memory: int) -> Cells:
    import h5py

    from headrace._cli.cells_old import opened

    file = opened(path)
    where = matrix_path(layer)
    node = file.get(where)
    if node is None:
        raise ValueError(f"{path}: it has no matrix {where}; there are {', '.join(_matrices(file)) or 'none'}")
    stamp = {"file": _stat(path)}
    if isinstance(node, h5py.Dataset):
        return _dense(str(path), file, where, node, stamp, memory)
    kind = _text(node.attrs.get("encoding-type", node.attrs.get("h5sparse_format", "")))
    rows, columns = (int(n) for n in node.attrs.get("shape", node.attrs.get("h5sparse_shape", (0, 0))))
    _check_kind(str(path), where, kind)
    return _sparse(str(path), where, (rows, columns), [node[n] for n in ("indptr", "indices", "data")], stamp, file)


def _zarr(place: str, layer: str | None, options: Any, memory: int, path: str | None) -> Cells:
    archive = hr.open(place, options)
    where = matrix_path(layer)
    nodes = {n["path"]: n for n in archive.info["nodes"]}
    arrays = [[n["path"], n["shape"], n["dtype"]] for n in archive.info["nodes"] if n["kind"] == "array"]
    stamp: dict[str, Any] = {"arrays": arrays}
    if path is not None:
        stamp["files"] = {
            p: _stat(Path(path) / p) for p in ("zarr.json", ".zattrs", f"{where}/data", f"{where}/data/c")
        }
    node = nodes.get(where)
    if node is None:
        known = [p for p in nodes if p in ("X", "raw/X") or (p.startswith("layers/") and p.count("/") == 1)]
        raise ValueError(f"{place}: it is no AnnData with a matrix {where}; there are {', '.join(known) or 'none'}")
    group = _open_group(place, path, options)
    if node["kind"] == "array":
        return _dense(place, group, where, archive[where], stamp, memory)
    attributes = node.get("attributes") or {}
    _check_kind(place, where, attributes.get("encoding-type", attributes.get("h5sparse_format", "")))
    shape = attributes.get("shape") or attributes.get("h5sparse_shape") or (0, 0)
    parts: list[Any] = [_Fixed(archive[f"{where}/{n}"]) for n in ("indptr", "indices", "data")]
    return _sparse(place, where, (int(shape[0]), int(shape[1])), parts, stamp, group)


def _open_group(place: str, path: str | None, options: Any) -> Any:
    import zarr

    if path is not None:
        return zarr.open_group(path, mode="r")
    from headrace._cli.cells_store import open_group

    return open_group(place, options)


class _Fixed:
    """An array of an archive: `[a:b]`, and its type as numpy has it."""

    def __init__(self, array: Any) -> None:
        self._array, self.shape, self.dtype = array, array.shape, np.dtype(array.dtype)

    def __getitem__(self, key: slice) -> Any:
        return self._array[key]


def matrix_path(layer: str | None) -> str:
    return "X" if layer in (None, "X") else "raw/X" if layer == "raw" else f"layers/{layer}"


def _matrices(file: Any) -> list[str]:
    return [n for n in ("X", "raw/X") if n in file] + [f"layers/{n}" for n in file.get("layers", ())]


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _check_kind(place: str, where: str, kind: str) -> None:
    if kind in ("csc_matrix", "csc"):
        raise ValueError(
            f"{place}: {where} is stored by genes (CSC), and cells are read by rows; store it by cells, in Python: "
            "a.X = a.X.tocsr(), and write it again"
        )
    if kind not in ("csr_matrix", "csr"):
        raise ValueError(f"{place}: {where} is neither a sparse matrix nor an array ({kind or 'no encoding-type'})")


def _sparse(place: str, where: str, shape: tuple[int, int], parts: list[Any], stamp: Any, group: Any) -> Cells:
    indptr, indices, data = parts
    rows, columns = shape
    last = int(indptr[rows : rows + 1][0]) if indptr.shape[0] == rows + 1 else -1
    if last != indices.shape[0] or last != data.shape[0]:
        raise ValueError(
            f"{place}: {where} has {rows} rows; its indptr has {indptr.shape[0]} items, indices {indices.shape[0]} and "
            f"data {data.shape[0]}, which do not belong together"
        )
    return Cells(place, "anndata", rows, columns, indptr, indices, data, stamp, group=group, matrix=where)


def _dense(place: str, group: Any, where: str, array: Any, stamp: Any, memory: int) -> Cells:
    if len(array.shape) != 2:
        raise ValueError(f"{place}: {where} has {len(array.shape)} dimensions, and a matrix of cells and genes has 2")
    rows, columns = array.shape
    counted = cache(lambda: DenseRows(array, memory))

    class Later:
        """Counted when it is first looked at: a copy that stays dense never does."""

        def __init__(self, part: Any, dtype: Any) -> None:
            self._part, self.dtype = part, np.dtype(dtype)

        @property
        def shape(self) -> tuple[int, ...]:
            return tuple(self._part().shape)

        def __getitem__(self, key: slice) -> Any:
            return self._part()[key]

    parts = (
        Later(lambda: counted().indptr, "uint64"),
        Later(lambda: counted().part(0), smallest(max(0, columns - 1))),
        Later(lambda: counted().part(1), array.dtype),
    )
    return Cells(place, "anndata", rows, columns, *parts, stamp, dense=array, group=group, matrix=where)


# ---- on a store ------------------------------------------------------------------------------------------------------


def _remote(place: str, layer: str | None, options: Any, memory: int) -> Cells:
    if place.partition("?")[0].endswith(".h5ad"):
        raise ValueError(f"{place}: h5ad files are read where they lie on a disk; AnnData-Zarr and SCDL from a URL")
    archive = hr.open(place, options)
    if "n_obs" not in archive.attributes:
        return _zarr(place, layer, options, memory, None)
    from headrace._cli.cells_store import remote_scdl

    return remote_scdl(place, options, archive)


def identity(cells: Cells) -> dict[str, Any]:
    """What unfinished work remembers of its source, as JSON has it."""
    place = cells.place if "://" in cells.place else os.path.abspath(cells.place)
    found: dict[str, Any] = json.loads(json.dumps({"source": place, "matrix": cells.matrix, "stamp": cells.stamp}))
    return found
