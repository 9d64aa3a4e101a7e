"""AnnData-Zarr v3 in shards, of an SCDL or another AnnData: matrices in bounded memory, all else by anndata itself.

A chunk holds the non-zeros of about 64 cells, so that a random run of cells costs little more than its own bytes; a
shard is one object of about 1 GB, of which chunks are read alone.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from headrace._cli import cells_features
from headrace._cli.cells_raw import smallest, steps
from headrace._cli.cells_scdl import Report, check_columns, offsets
from headrace._cli.cells_shard import Change, ShardedArray
from headrace._cli.cells_source import Cells, matrix_path, open_cells
from headrace._cli.cells_work import Work

OFFSETS = 1 << 16  # items of a chunk of indptr
DENSE = 1 << 20  # bytes of a chunk of a dense matrix, about
_FRAME = ("obs", "var", "obsm", "varm", "obsp", "varp", "uns")


class ZarrWriter:
    def __init__(self, source: Cells, work: Work, shard_bytes: int, chunk_rows: int, memory: int) -> None:
        self.source, self.work = source, work
        self.shard_bytes, self.chunk_rows, self.memory = shard_bytes, chunk_rows, memory
        self.matrices = list(self._matrices())
        self.plans = [(where, cells, self._arrays(where, cells)) for where, cells in self.matrices]

    def _matrices(self) -> Iterator[tuple[str, Cells]]:
        """By their paths in the target. Those by genes are copied with the rest."""
        if self.source.kind == "scdl":
            if self.source.columns is None:
                raise ValueError(f"{self.source.place}: no var_features say how many genes there are")
            yield "X", self.source
            return
        group = self.source.group
        for layer in [n for n in ("X", "raw") if n in group] + list(group.get("layers", ())):
            where = matrix_path(layer)
            if where == self.source.matrix:
                yield where, self.source
            elif where in group and _by_rows(group[where]):
                yield where, self._open(layer)

    def _open(self, layer: str) -> Cells:
        found = open_cells(self.source.place, layer, None, self.memory)
        return replace(found, group=self.source.group)

    def _arrays(self, where: str, cells: Cells) -> dict[str, ShardedArray]:
        if cells.dense is not None:
            dtype = np.dtype(cells.dense.dtype)
            width = max(1, (cells.columns or 1) * dtype.itemsize)
            rows = max(1, DENSE // width)
            shape = (cells.rows, cells.columns or 0)
            return {"": ShardedArray(where, shape, dtype.name, rows, max(rows, self.shard_bytes // width))}
        nnz = cells.nnz
        chunk = max(1, round(nnz / max(1, cells.rows))) * self.chunk_rows
        dtypes = {"indices": smallest(max(0, (cells.columns or 1) - 1)), "data": np.dtype(cells.data.dtype).name}
        made = {n: ShardedArray(f"{where}/{n}", (nnz,), t, chunk, self._shard(t)) for n, t in dtypes.items()}
        wide = "int32" if nnz < 1 << 31 else "int64"  # as anndata has it: scipy knows no others
        made["indptr"] = ShardedArray(f"{where}/indptr", (cells.rows + 1,), wide, OFFSETS, self._shard(wide))
        return made

    def _shard(self, dtype: str) -> int:
        return self.shard_bytes // np.dtype(dtype).itemsize

    @property
    def total(self) -> int:
        return sum(a.nbytes for _, _, arrays in self.plans for a in arrays.values())

    # ---- writing ----

    def write(self, report: Report) -> None:
        for where, cells, arrays in self.plans:
            if cells.dense is not None:
                arrays[""].write(self.work, cells.dense, _same, self.memory, report)
                continue
            attributes = {"encoding-type": "csr_matrix", "encoding-version": "0.1.0"}
            self._group(where, {**attributes, "shape": [cells.rows, cells.columns]})
            for name, array in arrays.items():
                array.write(self.work, getattr(cells, name), _checked(cells, name), self.memory, report)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of other packages, of versions to come
            self._write_rest()
        self._consolidate()

    def _group(self, path: str, attributes: dict[str, Any]) -> None:
        document = {"zarr_format": 3, "node_type": "group", "attributes": attributes}
        with self.work.file(f"{path}/zarr.json".lstrip("/")) as file:
            file.write(json.dumps(document).encode())

    def _write_rest(self) -> None:
        """Data frames and what else there is. Each has its name once it is whole."""
        self._group("", {"encoding-type": "anndata", "encoding-version": "0.1.0"})
        source, written = self.source.group, {where for where, _ in self.matrices}
        for name in _FRAME:
            if self.source.kind == "scdl":
                self._element(name, self._of_scdl(name))
            elif name in source:
                self._element(name, _later(source[name]))
            else:
                self._element(name, dict)
        self._group("layers", {"encoding-type": "dict", "encoding-version": "0.1.0"})
        if self.source.kind == "scdl":
            return
        for layer in source.get("layers", ()):
            if f"layers/{layer}" not in written:
                self._element(f"layers/{layer}", _later(source[f"layers/{layer}"]))
        if "raw" in source:
            self._group("raw", {"encoding-type": "raw", "encoding-version": "0.1.0"})
            for name in [n for n in source["raw"] if f"raw/{n}" not in written]:
                self._element(f"raw/{name}", _later(source[f"raw/{name}"]))
        if "X" in source and "X" not in written:
            self._element("X", _later(source["X"]))

    def _of_scdl(self, name: str) -> Any:
        folder, n = self.source.folder, {"obs": self.source.rows, "var": self.source.columns or 0}
        if name in n and folder is not None:
            return lambda: cells_features.read(folder, f"{name}_features", n[name])
        return dict

    def _element(self, name: str, value: Any) -> None:
        """`value` makes it."""
        import zarr
        from anndata.io import write_elem

        if self.work.has(name):
            return
        with self.work.directory(name) as folder:
            parent = zarr.open_group(str(folder.parent), mode="r+", zarr_format=3, use_consolidated=False)
            try:
                write_elem(parent, folder.name, value())
            except (TypeError, AttributeError, NotImplementedError, KeyError) as error:
                said = str(error).splitlines() or [""]
                raise ValueError(f"{self.source.place}: {name} is something that anndata cannot read or write: "
                                 f"{type(error).__name__}: {said[0]}") from None  # fmt: skip

    def _consolidate(self) -> None:
        """All metadata in the root's: an object store is asked once."""
        import zarr

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            zarr.consolidate_metadata(str(self.work.folder), zarr_format=3)

    # ---- reading back ----

    def compare(self, report: Report) -> int:
        import zarr

        root = zarr.open_group(str(self.work.folder), mode="r")
        for where, cells, arrays in self.plans:
            for name, array in arrays.items():
                source = cells.dense if not name else getattr(cells, name)
                found = root[array.path]
                block = max(1, self.memory // 16 // max(1, array.chunk * array.row_bytes)) * array.chunk
                for i, j in steps(0, array.shape[0], block):
                    stored, wanted = np.asarray(found[i:j]), np.asarray(source[i:j])
                    if not np.array_equal(stored, wanted, equal_nan=wanted.dtype.kind == "f"):
                        raise ValueError(
                            f"{self.work.folder}/{array.path}: read back, it differs from {cells.place} in items {i} "
                            f"to {j - 1} of {where}"
                        )
                    report((j - i) * array.row_bytes)
        return self.source.rows


def _same(values: Any, at: int) -> Any:
    return values


def _checked(cells: Cells, name: str) -> Change:
    """Offsets ascend, columns are genes."""
    nnz = cells.nnz

    def change(values: Any, at: int) -> Any:
        if name == "indptr":
            before = max(0, at - 1)  # a run that begins lower than the last one ended goes down, too
            return offsets(cells, before, at + len(values), 0, nnz)[at - before :]
        if name == "indices":
            check_columns(cells, values, at)
        return values

    return change


def _by_rows(node: Any) -> bool:
    kind = node.attrs.get("encoding-type", node.attrs.get("h5sparse_format", ""))
    return hasattr(node, "shape") or kind in ("csr_matrix", "csr", b"csr")


def _later(node: Any) -> Any:
    from anndata.io import read_elem

    return lambda: read_elem(node)
