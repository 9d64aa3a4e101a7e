"""Archives on a store for zarr-python and for copies of files: read through Headrace's own stores, retries and all."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterable
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import zarr
from zarr.abc.store import ByteRequest, OffsetByteRequest, RangeByteRequest, Store, SuffixByteRequest

from headrace import _headrace
from headrace._cli import cells_header
from headrace._cli.cells_raw import Joined, Offsets
from headrace._cli.cells_source import Cells, scdl_columns
from headrace._text import to_json


class ReadOnly(Store):
    """What lies at a URL. Nothing is written."""

    supports_writes = False
    supports_deletes = False
    supports_listing = True

    def __init__(self, url: str, options: Any) -> None:
        super().__init__(read_only=True)
        self._url = url
        self._objects = _headrace.objects(url, to_json(options, "options") if options else None)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReadOnly) and other._url == self._url

    def __hash__(self) -> int:
        return hash(self._url)

    async def get(self, key: str, prototype: Any, byte_range: ByteRequest | None = None) -> Any:
        found = self._read(key, byte_range)
        return None if found is None else prototype.buffer.from_bytes(found)

    def _read(self, key: str, part: ByteRequest | None) -> bytes | None:
        if isinstance(part, RangeByteRequest):
            found = self._objects.read(key, part.start, part.end - part.start)
        elif isinstance(part, SuffixByteRequest):
            found = self._objects.read(key, -part.suffix, 0)
        else:
            found = self._objects.read(key, 0, 0)
        if found is None:
            return None
        return found[0][part.offset :] if isinstance(part, OffsetByteRequest) else found[0]

    async def get_partial_values(
        self, prototype: Any, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Any]:
        return [await self.get(key, prototype, part) for key, part in key_ranges]

    async def exists(self, key: str) -> bool:
        return self._objects.read(key, 0, 0) is not None

    async def list(self) -> AsyncIterator[str]:
        raise NotImplementedError
        yield ""

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        raise NotImplementedError
        yield ""

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        for name in names(self._objects, prefix):
            yield name.rstrip("/")

    async def set(self, key: str, value: Any) -> None:
        raise NotImplementedError("this store is only read")

    async def delete(self, key: str) -> None:
        raise NotImplementedError("this store is only read")


def names(objects: Any, prefix: str) -> list[str]:
    """Directly below; folders end in a slash."""
    return [n.decode() for n in objects.list(prefix).split(b"\0") if n]


def open_group(url: str, options: Any) -> Any:
    return zarr.open_group(ReadOnly(url, options), mode="r")


# ---- SCDL ------------------------------------------------------------------------------------------------------------


def remote_scdl(url: str, options: Any, archive: Any) -> Cells:
    """Its arrays are read where they lie; its small files are brought to a folder of this process."""
    from headrace._cli.cells_source import _Fixed

    small = tempfile.TemporaryDirectory(prefix="headrace-cells-")
    folder = Path(small.name)
    objects = _headrace.objects(url, to_json(options, "options") if options else None)
    for name in ("header.sch", "version.json", "metadata.json", *_features(archive)):
        found = objects.read(name, 0, 0)
        if found is not None:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(found[0])
    header = None
    if (folder / "header.sch").exists():
        header = cells_header.parse_header((folder / "header.sch").read_bytes(), f"{url}/header.sch")
    dtypes = cells_header.dtypes(header)
    about = archive.attributes
    n, size = int(about.get("n_chunks", 1)), int(about.get("chunk_rows", about["n_obs"]) or 1)
    chunked = "n_chunks" in about
    arrays = [[_Fixed(archive[f"chunk_{k:05d}/{p}" if chunked else f"X/{p}"]) for p in ("indptr", "indices", "data")]
              for k in range(n)]  # fmt: skip
    rows = [min(int(about["n_obs"]), k * size) for k in range(n + 1)]
    starts = [0, *accumulate(a[2].shape[0] for a in arrays)]
    parts = [[partial(_one, a[i]) for a in arrays] for i in range(3)]
    made = Cells(
        url, "scdl", rows[-1], scdl_columns(folder), Offsets(parts[0], rows, starts),
        Joined(parts[1], starts, dtypes["COLPTR"]), Joined(parts[2], starts, dtypes["DATA"]),
        {"rows": rows[-1], "values": starts}, folder=folder, header=header, dtypes=dtypes,
    )  # fmt: skip
    made.stamp = {"rows": rows[-1], "values": starts[-1], "dtypes": dtypes}
    made.group = small  # the folder lasts as long as this
    return made


def _one(array: Any) -> Any:
    return array


def _features(archive: Any) -> list[str]:
    about = archive.attributes
    files = [f for n in ("var_features", "obs_features") for f in (about.get(n) or {}).get("files", ())]
    return [*files, *(f"{n}/labels.json" for n in ("var_features", "obs_features"))]
