"""Chunked SCDL for tests of the drop-in, and a web server that counts, delays, cuts and refuses what they ask of it."""

from __future__ import annotations

import hashlib
import http.server
import json
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

FILES = ("data.npy", "row_ptr.npy", "col_ptr.npy")
_TYPES = {"u1": 1, "u2": 2, "u4": 3, "u8": 4, "f2": 5, "f4": 6, "f8": 7}


class Cells:
    """A random CSR matrix; rows 0, 1 and the last are empty."""

    def __init__(self, rows: int, genes: int, *, mean: int = 20, dtype: str = "f4", seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        counts = rng.poisson(mean, rows).clip(0, genes)
        counts[[0, 1, -1]] = 0
        self.genes = genes
        self.indptr = np.concatenate([[0], counts.cumsum()]).astype("u8")
        parts = [np.sort(rng.choice(genes, n, replace=False)) for n in counts]
        self.columns = np.concatenate(parts).astype("u2" if genes <= 1 << 16 else "u4")
        self.values = rng.integers(1, 200, len(self.columns)).astype(dtype)

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def row(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        part = slice(int(self.indptr[i]), int(self.indptr[i + 1]))
        return self.values[part], self.columns[part]

    def dense(self, rows: Any = None) -> np.ndarray:
        rows = range(len(self)) if rows is None else rows
        out = np.zeros((len(rows), self.genes), self.values.dtype)
        for at, i in enumerate(rows):
            values, columns = self.row(int(i))
            out[at, columns] = values
        return out


def _text(s: str) -> bytes:
    return struct.pack(">I", len(s)) + s.encode()


def header(m: Cells, chunk_rows: int, *, data_type: str = "") -> bytes:
    out = b"SCDL" + bytes([0, 1, 0, 1]) + struct.pack(">II", 2 if chunk_rows else 1, 3)
    for name, array in (("DATA", m.values), ("ROWPTR", m.indptr), ("COLPTR", m.columns)):
        kind = data_type if data_type and name == "DATA" else array.dtype.str[1:]
        out += _text(name) + struct.pack(">QIB", len(array), _TYPES[kind], 0)
    out += struct.pack(">I", 0)
    if not chunk_rows:
        return out
    return out + b"\1" + struct.pack(">IIQ", chunk_rows, -(-len(m) // chunk_rows), len(m))


def _arrays(where: Path, m: Cells, first: int, end: int, packed: bool) -> None:
    where.mkdir(parents=True, exist_ok=True)
    part = slice(int(m.indptr[first]), int(m.indptr[end]))
    arrays = {
        "data": m.values[part],
        "row_ptr": m.indptr[first : end + 1] - m.indptr[first],
        "col_ptr": m.columns[part],
    }
    if packed:
        np.savez_compressed(where / "chunk.npz", **arrays)
        return
    for name, array in arrays.items():
        (where / f"{name}.npy").write_bytes(array.tobytes())


def write(where: Path, m: Cells, chunk_rows: int = 0, *, packed: bool = False, features: bool = False) -> Path:
    """A chunked dataset, or a plain one; returns `where`."""
    for i, first in enumerate(range(0, len(m), chunk_rows or len(m))):
        end = min(first + (chunk_rows or len(m)), len(m))
        _arrays(where / f"chunk_{i:05d}" if chunk_rows else where, m, first, end, packed)
    (where / "header.sch").write_bytes(header(m, chunk_rows))
    (where / "version.json").write_text('"0.1.3"')
    (where / "metadata.json").write_text(json.dumps({"num_rows": len(m)}))
    if features:
        write_features(where, m)
    return where


def write_features(where: Path, m: Cells) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables = {
        "var_features": pa.table({"feature_id": [f"gene {i}" for i in range(m.genes)]}),
        "obs_features": pa.table({"cell_type": [f"type {i % 3}" for i in range(len(m))], "n": np.arange(len(m))}),
    }
    for name, table in tables.items():
        (where / name).mkdir()
        pq.write_table(table, where / name / "dataframe_0.parquet")
        np.save(where / name / "cumulative_sum_index.npy", np.array([-1, len(m)]))
        np.save(where / name / "version.npy", np.array("0.1.3"))
        (where / name / "labels.json").write_text('["a.h5ad"]')


class Server:
    """Ranges, suffixes and ETags over a directory. `asked` counts requests by path; `rule(path, handler)` may return a
    status, or raise to drop the connection; `ranges` off: whole files, whatever is asked for."""

    def __init__(self, root: Path) -> None:
        self.root, self.asked, self.bytes = root, Counter[str](), 0
        self.rule: Callable[[str, Any], int | None] = lambda path, handler: None
        self.ranges = self.etags = True
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                outer.answer(self)

            def log_message(self, *_: Any) -> None:
                pass

        class Listener(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass  # dropped connections are wanted

        self._server = Listener(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def answer(self, h: Any) -> None:
        path = h.path.lstrip("/")
        self.asked[path] += 1
        status = self.rule(path, h)
        file = self.root / path
        if status is None and not file.is_file():
            status = 404
        if status is not None:
            h.send_response(status)
            h.send_header("Content-Length", "0")
            h.end_headers()
            return
        data = file.read_bytes()
        first, end = self._range(h.headers.get("Range"), len(data)) if self.ranges else (0, len(data))
        partial = self.ranges and "Range" in h.headers
        if partial and not data:
            h.send_response(416)
            h.send_header("Content-Range", "bytes */0")
            h.send_header("Content-Length", "0")
            h.end_headers()
            return
        h.send_response(206 if partial else 200)
        if partial:
            h.send_header("Content-Range", f"bytes {first}-{end - 1}/{len(data)}")
        if self.etags:
            h.send_header("ETag", f'"{hashlib.sha256(data).hexdigest()[:16]}"')
        h.send_header("Content-Length", str(end - first))
        h.end_headers()
        h.wfile.write(data[first:end])
        self.bytes += end - first

    @staticmethod
    def _range(text: str | None, size: int) -> tuple[int, int]:
        if not text:
            return 0, size
        a, b = text.removeprefix("bytes=").split("-")
        return (max(0, size - int(b)), size) if not a else (int(a), min(int(b) + 1, size) if b else size)

    def count(self, name: str) -> int:
        return sum(n for path, n in self.asked.items() if path.endswith(name))

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def until(condition: Callable[[], bool], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it does not come to that"
        time.sleep(0.01)
