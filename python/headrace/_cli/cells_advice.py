"""What would make an atlas faster to train from: judged by its metadata."""

from __future__ import annotations

from typing import Any

from headrace._format import count, size

LARGE = 8 << 20  # bytes of a chunk, decoded: a random run of cells reads all of it
SMALL = 16 << 10  # of one that is an object of its own: requests cost more than bytes
OBJECTS = 200_000
PAGE = 32 << 20  # of offsets in one chunk
AGAIN = 1.15
CHUNK = "headrace cells chunk SRC DST --format anndata"


def advice(f: dict[str, Any]) -> list[str]:
    if f["encoding"] == "csc_matrix":
        return ["X is stored by genes (CSC): cells cannot be read by rows; store it as CSR"]
    if f["format"] == "h5ad":
        return [f"h5ad is read through a copy: {CHUNK}, or --format scdl"]
    said = []
    if f["format"] == "SCDL":
        said.append("one file for all cells: for object stores, headrace cells chunk SRC DST")
    if not f["format"].startswith("SCDL"):
        said += [words for name, c in f["chunks"].items() for words in _of_array(name, c, f)]
    r = f["reading"]
    if r and r["chunks"] and r["chunk_reads"] / r["chunks"] > AGAIN:
        said.append(f"borders of chunks are read {r['chunk_reads'] / r['chunks']:.2f} times: more cells at a time "
                    f"(row_chunk={2 * r['row_chunk']}) read less twice, and shuffle in larger runs")  # fmt: skip
    return said or ["none: it is cut well"]


def _of_array(name: str, c: dict[str, Any], f: dict[str, Any]) -> list[str]:
    said = []
    objects = -(-c["shape"][0] // max(1, (c["shard"] or c["chunk"])[0])) if c["shape"] else 0
    if name == "indptr":
        if c["bytes"] > PAGE:
            said.append(f"indptr is read in chunks of {size(c['bytes'])}: smaller ones open sooner")
        return said
    cells = f["cells"] * c["chunk"][0] / max(1, c["shape"][0])
    if c["bytes"] > LARGE:
        said.append(f"a chunk of {name} is {size(c['bytes'])}, of some {count(round(cells))} cells: a run of them "
                    f"reads all of it; {CHUNK} makes chunks of 64 cells")  # fmt: skip
    elif c["bytes"] < SMALL and not c["shard"] and objects > 1000:
        said.append(f"{count(objects)} chunks of {name} are {size(c['bytes'])} each, each an object: {CHUNK} puts "
                    "them into shards")  # fmt: skip
    elif objects > OBJECTS:
        said.append(f"{name} lies in {count(objects)} objects: {CHUNK} puts them into shards")
    if "gzip" in (c["codecs"] or "") or "zlib" in (c["codecs"] or ""):
        said.append(f"{name} is packed with {c['codecs']}, which unpacks slowly; blosc with lz4, or zstd, is faster")
    return said
