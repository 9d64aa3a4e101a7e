"""The atlas of the benchmark of single cells, in every layout that it compares, the same bytes whenever it is made.

    make.py FOLDER [--cells N] [LAYOUT...]

200,000 cells × 20,000 genes. A cell is as many draws from the genes of its type as it has molecules; what differs from
droplet data is that nobody measured it. 40 donors of 5,000 cells follow one another, a donor's cells are in the
order of
their types (25): so do atlases lie that were put together of studies, and it is what shuffling has to overcome.

scdl          plain SCDL: values float32, columns uint16, offsets uint32, raw; header.sch and feature tables
scdl_10k      the same, chunked: 10,000 rows in each directory
scdl_100k     100,000 rows in each
lz4_u2        AnnData on Zarr v3 as annbatch lays it out: shards, inner chunks of 64 cells or so, blosc lz4 level 3
lz4_i4        AnnData on Zarr v3, a file for each chunk of 65,536 items, int32 columns, blosc lz4
zstd          the same in zstd, level 1
raw_zarr      the files of `scdl` again, as Zarr arrays of one chunk: links
"""

from __future__ import annotations

import argparse
import json
import shutil
import struct
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

CELLS, GENES, DONORS, TYPES = 200_000, 20_000, 40, 25
MOLECULES, BLOCK, SEED = 2100, 1000, 6
CHUNK, SHARD = 65536, 1 << 26
LAYOUTS = ("scdl", "scdl_10k", "scdl_100k", "lz4_u2", "lz4_i4", "zstd", "raw_zarr")
ENUM = {"float32": 6, "uint16": 2, "uint32": 3}
RAW = (("DATA", "data.npy", "f4"), ("ROWPTR", "row_ptr.npy", "u4"), ("COLPTR", "col_ptr.npy", "u2"))


# ---- cells -----------------------------------------------------------------------------------------------------------


def quantiles(rng: Any) -> Any:
    """For each type of cell a gene for each of 65,536 quantiles: a draw is one look-up."""
    usual = 1 / (np.arange(GENES) + 20.0) ** 1.2
    usual = rng.permutation(usual)
    tables = np.empty((TYPES, 1 << 16), "u2")
    for t in range(TYPES):
        weight = usual * np.exp(rng.normal(0, 0.8, GENES))
        edges = np.cumsum(weight) / weight.sum()
        tables[t] = np.minimum(
            np.searchsorted(edges, (np.arange(1 << 16) + rng.random(1 << 16)) / (1 << 16)), GENES - 1
        )
    return tables


def labels(cells: int) -> tuple[Any, Any]:
    """Donor and type of each cell."""
    rng = np.random.default_rng([SEED, 1])
    donor = np.arange(cells) * DONORS // cells
    kind = np.empty(cells, "u1")
    for d in range(DONORS):
        own = donor == d
        kind[own] = np.sort(rng.choice(TYPES, own.sum(), p=rng.dirichlet(np.full(TYPES, 0.6))))
    return donor.astype("u1"), kind


def block(tables: Any, kind: Any, number: int) -> tuple[Any, Any, Any]:
    """Items of each cell, their genes (rising) and counts."""
    rng = np.random.default_rng([SEED, 2, number])
    n = np.clip(rng.lognormal(np.log(MOLECULES), 0.55, len(kind)), 300, 40000).astype("i8")
    cell = np.repeat(np.arange(len(kind), dtype="u4"), n)
    gene = tables[np.repeat(kind, n), rng.integers(0, 1 << 16, len(cell), dtype="u2")]
    key = np.sort(cell << 15 | gene)
    first = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
    count = np.diff(np.append(first, len(key)))
    key = key[first]
    return np.bincount(key >> 15, minlength=len(kind)), (key & 0x7FFF).astype("u2"), count.astype("f4")


def write_raw(to: Path, cells: int) -> None:
    rng = np.random.default_rng([SEED, 0])
    tables, (donor, kind) = quantiles(rng), labels(cells)
    lengths, totals = [], []
    with open(to / "data.npy", "wb") as values, open(to / "col_ptr.npy", "wb") as columns:
        for i in range(0, cells, BLOCK):
            n, gene, count = block(tables, kind[i : i + BLOCK], i // BLOCK)
            count.tofile(values)
            gene.tofile(columns)
            lengths.append(n)
            totals.append(np.add.reduceat(count, np.cumsum(n) - n))
    n = np.concatenate(lengths)
    np.concatenate([[0], np.cumsum(n)]).astype("u4").tofile(to / "row_ptr.npy")
    np.savez(to.parent / "obs.npz", donor=donor, cell_type=kind, n_genes=n, n_counts=np.concatenate(totals))


# ---- SCDL ------------------------------------------------------------------------------------------------------------


def text(s: str) -> bytes:
    return struct.pack(">I", len(s)) + s.encode()


def header(items: int, rows: int, chunk_rows: int = 0) -> bytes:
    lengths = {"DATA": items, "COLPTR": items, "ROWPTR": rows + 1}
    out = b"SCDL" + bytes([0, 1, 0, 1]) + struct.pack(">II", 2 if chunk_rows else 1, len(RAW))
    for name, _, kind in RAW:
        out += text(name) + struct.pack(">QIBII", lengths[name], ENUM[np.dtype(kind).name], 1, 1, lengths[name])
    out += struct.pack(">I", 2)
    for name, n in (("var_features", rows), ("obs_features", rows)):
        files = ["cumulative_sum_index.npy", "labels.json", "version.npy", "dataframe_0.parquet"]
        out += text(name) + struct.pack(">QII", n, 8, len(files)) + b"".join(text(f"{name}/{f}") for f in files) + b"\0"
    if chunk_rows:
        out += struct.pack(">BIIQ", 1, chunk_rows, -(-rows // chunk_rows), rows)
    return out


def table_folder(to: Path, frame: Any, cells: int) -> None:
    """A table for all cells; of genes, too: the index says which cells it holds for."""
    to.mkdir()
    np.save(to / "cumulative_sum_index.npy", np.array([-1, cells], "i8"))
    np.save(to / "version.npy", np.array("0.1.3"))
    (to / "labels.json").write_text("[null]")
    np.save(to / "labels.npy", np.array([None], object), allow_pickle=True)  # what release 0.1.3 reads
    frame.to_parquet(to / "dataframe_0.parquet", index=False)


def frames(folder: Path) -> tuple[Any, Any]:
    """obs and var."""
    import pandas as pd

    o = np.load(folder / "obs.npz")
    obs = pd.DataFrame(
        {
            "cell_type": pd.Categorical.from_codes(o["cell_type"], [f"type {i}" for i in range(TYPES)]),
            "donor": pd.Categorical.from_codes(o["donor"], [f"donor {i}" for i in range(DONORS)]),
            "n_genes": o["n_genes"].astype("i4"),
            "n_counts": o["n_counts"].astype("f4"),
        },
        index=[f"cell{i}" for i in range(len(o["donor"]))],
    )
    return obs, pd.DataFrame(
        {"feature_id": [f"G{i:05}" for i in range(GENES)]}, index=[f"G{i:05}" for i in range(GENES)]
    )


def scdl_facts(folder: Path, to: Path, items: int, rows: int, chunk_rows: int = 0) -> None:
    obs, var = frames(folder)
    (to / "version.json").write_text('"0.1.3"')
    (to / "metadata.json").write_text(json.dumps({"num_rows": rows}))
    (to / "header.sch").write_bytes(header(items, rows, chunk_rows))
    table_folder(to / "obs_features", obs.astype({"cell_type": str, "donor": str}), rows)
    table_folder(to / "var_features", var, rows)


def raw(folder: Path) -> dict[str, Any]:
    return {name: np.memmap(folder / "scdl" / name, kind, "r") for _, name, kind in RAW}


def make_scdl(folder: Path, to: Path, cells: int) -> None:
    write_raw(to, cells)
    scdl_facts(folder, to, (to / "col_ptr.npy").stat().st_size // 2, cells)


def make_chunked(folder: Path, to: Path, rows: int) -> None:
    x = raw(folder)
    offsets = x["row_ptr.npy"]
    cells = len(offsets) - 1
    for i in range(0, cells, rows):
        part = to / f"chunk_{i // rows:05}"
        part.mkdir()
        own = offsets[i : min(i + rows, cells) + 1]
        (own - own[0]).tofile(part / "row_ptr.npy")
        for name in ("data.npy", "col_ptr.npy"):
            x[name][own[0] : own[-1]].tofile(part / name)
    scdl_facts(folder, to, int(offsets[-1]), cells, rows)


# ---- AnnData on Zarr -------------------------------------------------------------------------------------------------


def matrix_attributes(cells: int) -> dict[str, Any]:
    return {"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": [cells, GENES]}


def make_anndata(folder: Path, to: Path, column: str, codec: Any, shards: bool) -> None:
    import zarr
    from anndata.io import write_elem

    x = raw(folder)
    root = zarr.open_group(to, mode="w", zarr_format=3)
    root.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
    obs, var = frames(folder)
    write_elem(root, "obs", obs)
    write_elem(root, "var", var)
    group = root.create_group("X", attributes=matrix_attributes(len(obs)))
    for name, source, kind in (("data", "data.npy", "f4"), ("indices", "col_ptr.npy", column)):
        items = x[source]
        step = SHARD if shards else CHUNK * 64
        array = group.create_array(
            name,
            shape=items.shape,
            dtype=kind,
            chunks=(CHUNK,),
            shards=(SHARD,) if shards else None,
            compressors=[codec],
        )
        for i in range(0, len(items), step):
            array[i : i + step] = items[i : i + step].astype(kind)
    offsets = x["row_ptr.npy"].astype("i8")
    group.create_array("indptr", shape=offsets.shape, dtype="i8", chunks=offsets.shape)[:] = offsets
    zarr.consolidate_metadata(to)


def make_lz4_u2(folder: Path, to: Path) -> None:
    from zarr.codecs import BloscCodec

    make_anndata(folder, to, "u2", BloscCodec(cname="lz4", clevel=3, shuffle="shuffle"), True)


def make_lz4_i4(folder: Path, to: Path) -> None:
    from zarr.codecs import BloscCodec

    make_anndata(folder, to, "i4", BloscCodec(cname="lz4", clevel=5, shuffle="shuffle"), False)


def make_zstd(folder: Path, to: Path) -> None:
    from zarr.codecs import ZstdCodec

    make_anndata(folder, to, "i4", ZstdCodec(level=1), False)


def make_raw_zarr(folder: Path, to: Path) -> None:
    """Uncompressed arrays of one chunk each, which is the file of SCDL."""

    def document(path: Path, facts: dict[str, Any]) -> None:
        path.mkdir(parents=True, exist_ok=True)
        (path / "zarr.json").write_text(json.dumps({"zarr_format": 3, **facts}))

    cells = (folder / "scdl" / "row_ptr.npy").stat().st_size // 4 - 1
    document(to, {"node_type": "group", "attributes": {}})
    document(to / "X", {"node_type": "group", "attributes": matrix_attributes(cells)})
    for name, source, kind in (
        ("data", "data.npy", "f4"),
        ("indices", "col_ptr.npy", "u2"),
        ("indptr", "row_ptr.npy", "u4"),
    ):
        file = folder / "scdl" / source
        n = file.stat().st_size // np.dtype(kind).itemsize
        document(
            to / "X" / name,
            {
                "node_type": "array", "shape": [n], "data_type": np.dtype(kind).name, "fill_value": 0, "attributes": {},
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [n]}},
                "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
                "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
            },
        )  # fmt: skip
        (to / "X" / name / "c").mkdir()
        (to / "X" / name / "c" / "0").symlink_to(Path("../../../../scdl") / source)


# ---- where chunks are, for the bare loop -----------------------------------------------------------------------------


def inner_chunks(array: Path, sharded: bool, n: int) -> list[tuple[Path, int, int]]:
    """(file, offset, bytes) of each chunk."""
    if not sharded:
        files = [array / "c" / str(i) for i in range(n)]
        return [(f, 0, f.stat().st_size) for f in files]
    out = []
    per_shard = SHARD // CHUNK
    for s in range(-(-n // per_shard)):
        file = array / "c" / str(s)
        with open(file, "rb") as f:
            f.seek(-(16 * per_shard + 4), 2)
            index = np.frombuffer(f.read(16 * per_shard), "<u8").reshape(-1, 2)
        out += [(file, int(at), int(size)) for at, size in index[: n - len(out)]]
    return out


def list_chunks(folder: Path, layout: str) -> Path:
    """What cells_floor.c reads."""
    file = folder / f"{layout}.chunks"
    if file.exists():
        return file
    array = json.loads((folder / layout / "X" / "indices" / "zarr.json").read_text())
    n = -(-array["shape"][0] // CHUNK)
    sharded = array["codecs"][0]["name"] == "sharding_indexed"
    pair = zip(*(inner_chunks(folder / layout / "X" / name, sharded, n) for name in ("data", "indices")))
    size = np.dtype(array["data_type"]).itemsize
    lines = [f"{'zstd' if layout == 'zstd' else 'blosc'} {CHUNK} {size} {n}"]
    lines += [" ".join(str(x) for x in (*values, *columns)) for values, columns in pair]
    file.write_text("\n".join(lines) + "\n")
    return file


# ---- all of it -------------------------------------------------------------------------------------------------------


def make(folder: Path, layout: str, cells: int) -> None:
    """Into a folder beside, renamed when it is whole."""
    done, half = folder / layout, folder / f"{layout}.half"
    if done.exists():
        return
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir(parents=True)
    start = time.monotonic()
    if layout == "scdl":
        make_scdl(folder, half, cells)
    elif layout.startswith("scdl_"):
        make_chunked(folder, half, int(layout[5:-1]) * 1000)
    else:
        globals()[f"make_{layout}"](folder, half)
    half.rename(done)
    if (done / "X").exists() and layout != "raw_zarr":
        list_chunks(folder, layout)
    size = sum(f.stat().st_size for f in done.rglob("*") if f.is_file() and not f.is_symlink())
    print(f"{layout}: {size / 1e6:,.0f} MB in {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder", type=Path)
    p.add_argument("layouts", nargs="*", default=LAYOUTS)
    p.add_argument("--cells", type=int, default=CELLS)
    a = p.parse_args()
    for layout in dict.fromkeys(["scdl", *a.layouts]):
        make(a.folder, layout, a.cells)


if __name__ == "__main__":
    main()
