"""Zarr v3 arrays in shards, written chunk by chunk: what is held is one block of numbers, however large a shard is.

A shard is its chunks, each compressed, one behind the other, then where each of them lies (64-bit offset and size, both
all ones for what is behind the end of the array), and a crc32c of that.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any

import numpy as np

from headrace._cli.cells_raw import Numbers, steps
from headrace._cli.cells_work import Work

NOTHING = (1 << 64) - 1
LEVEL = 3
Change = Callable[[Any, int], Any]  # numbers and the number of the first, to what is stored


class ShardedArray:
    """A 1-D array at `path`, or a 2-D one cut along its rows. `chunk` and `shard`: rows of each."""

    def __init__(self, path: str, shape: tuple[int, ...], dtype: str, chunk: int, shard: int) -> None:
        self.path, self.shape, self.dtype = path, shape, np.dtype(dtype).newbyteorder("<")
        self.chunk = max(1, min(chunk, shape[0] or 1))
        self.shard = max(1, min(shard // self.chunk, -(-shape[0] // self.chunk))) * self.chunk
        self.row_bytes = int(np.prod(shape[1:], dtype=np.int64)) * self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.shape[0] * self.row_bytes

    def metadata(self, attributes: dict[str, Any]) -> dict[str, Any]:
        """The document zarr.json."""
        rest = list(self.shape[1:])
        little = {"name": "bytes", "configuration": {"endian": "little"}}
        size = self.dtype.itemsize
        blosc = {"typesize": size, "cname": "lz4", "clevel": LEVEL, "shuffle": "shuffle", "blocksize": 0}
        sharding = {
            "chunk_shape": [self.chunk, *rest],
            "codecs": [little if size > 1 else {"name": "bytes"}, {"name": "blosc", "configuration": blosc}],
            "index_codecs": [little, {"name": "crc32c"}],
            "index_location": "end",
        }
        zero: Any = False if self.dtype.kind == "b" else 0.0 if self.dtype.kind == "f" else 0
        return {
            "zarr_format": 3,
            "node_type": "array",
            "shape": list(self.shape),
            "data_type": self.dtype.name,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [self.shard, *rest]}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": zero,
            "codecs": [{"name": "sharding_indexed", "configuration": sharding}],
            "attributes": attributes,
        }

    def write(self, work: Work, source: Numbers, change: Change, memory: int, report: Callable[[int], None]) -> None:
        with work.file(f"{self.path}/zarr.json") as file:
            file.write(json.dumps(self.metadata({"encoding-type": "array", "encoding-version": "0.2.0"})).encode())
        zeros = "/0" * (len(self.shape) - 1)
        for k, (a, b) in enumerate(steps(0, self.shape[0], self.shard)):
            name = f"{self.path}/c/{k}{zeros}"
            if work.has(name):
                report((b - a) * self.row_bytes)
                continue
            with work.file(name) as file:
                self._write_shard(file, a, b, source, change, memory, report)

    def _write_shard(self, file: IO[bytes], a: int, b: int, source: Numbers, change: Change, memory: int,
                     report: Callable[[int], None]) -> None:  # fmt: skip
        from numcodecs.blosc import SHUFFLE, Blosc

        codec = Blosc(cname="lz4", clevel=LEVEL, shuffle=SHUFFLE)
        block = max(1, memory // 16 // max(1, self.chunk * self.row_bytes)) * self.chunk
        index, at = [], 0
        with ThreadPoolExecutor(2) as pool:
            for i, j in steps(a, b, block):
                values = np.ascontiguousarray(change(np.asarray(source[i:j]), i), dtype=self.dtype)
                for packed in pool.map(codec.encode, self._chunks(values)):
                    file.write(packed)
                    index.append((at, len(packed)))
                    at += len(packed)
                report((j - i) * self.row_bytes)
        file.write(_index(index, self.shard // self.chunk))

    def _chunks(self, values: Any) -> Any:
        """The last one of an array is filled up with zeros."""
        for i, j in steps(0, len(values), self.chunk):
            part = values[i:j]
            if len(part) < self.chunk:
                part = np.concatenate([part, np.zeros((self.chunk - len(part), *self.shape[1:]), self.dtype)])
            yield part


def _index(entries: list[tuple[int, int]], n: int) -> bytes:
    import google_crc32c

    raw = b"".join(struct.pack("<QQ", *e) for e in entries) + struct.pack("<QQ", NOTHING, NOTHING) * (n - len(entries))
    return raw + struct.pack("<I", google_crc32c.value(raw))
