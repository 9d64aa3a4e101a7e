"""A zarr v3 archive made of nothing but the standard library, for faulty.py: element i of "whole" is i, of "sharded" 3 i + 1,
as int32, uncompressed. Of `steps` steps of 48 elements two are a chunk, and eight chunks a shard."""

from __future__ import annotations

import array
import json
import struct
from pathlib import Path

ROW, CHUNK, SHARD = 48, 2, 16
NUMBERS = {"name": "bytes", "configuration": {"endian": "little"}}


def metadata(steps: int, chunk: int, codecs: list[object]) -> str:
    return json.dumps({
        "zarr_format": 3, "node_type": "array", "shape": [steps, ROW], "data_type": "int32", "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [chunk, ROW]}},
        "chunk_key_encoding": {"name": "default"}, "codecs": codecs, "dimension_names": ["time", "x"], "attributes": {},
    })  # fmt: skip


def chunk(first: int, a: int, b: int) -> bytes:
    """Two steps from `first` on, of elements a i + b."""
    return array.array("i", (a * i + b for i in range(first * ROW, (first + CHUNK) * ROW))).tobytes()


def put(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def make(root: Path, steps: int = 96) -> None:
    (root / "whole").mkdir()
    (root / "sharded").mkdir()
    inner = {"chunk_shape": [CHUNK, ROW], "codecs": [NUMBERS], "index_codecs": [NUMBERS], "index_location": "end"}
    texts = {
        "whole": metadata(steps, CHUNK, [NUMBERS]),
        "sharded": metadata(steps, SHARD, [{"name": "sharding_indexed", "configuration": inner}]),
    }
    arrays = {name: json.loads(text) for name, text in texts.items()}
    group = {"zarr_format": 3, "node_type": "group", "attributes": {}}
    group["consolidated_metadata"] = {"kind": "inline", "must_understand": False, "metadata": arrays}
    (root / "zarr.json").write_text(json.dumps(group))
    for name, text in texts.items():
        (root / name / "zarr.json").write_text(text)
    for i in range(steps // CHUNK):
        put(root / f"whole/c/{i}/0", chunk(i * CHUNK, 1, 0))
    for i in range(steps // SHARD):
        chunks = [chunk(i * SHARD + at, 3, 1) for at in range(0, SHARD, CHUNK)]
        size = len(chunks[0])
        index = b"".join(struct.pack("<QQ", at * size, size) for at in range(len(chunks)))
        put(root / f"sharded/c/{i}/0", b"".join(chunks) + index)
