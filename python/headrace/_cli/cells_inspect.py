"""``headrace cells inspect``: what an atlas holds, and how its chunks suit training."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import headrace as hr
from headrace._atlas_line import atlas_line
from headrace._cli.arguments import options_json, parser, there
from headrace._cli.cells_advice import advice
from headrace._cli.cells_source import is_scdl, scdl_columns
from headrace._format import count, size

ABOUT = """Says what an atlas of single cells holds: cells, genes, non-zeros, columns of obs, layers, obsm, obsp; how it
is cut into chunks, how often their borders are read, and what would be better. Reads metadata, and where rows begin."""


def inspect(words: list[str]) -> int:
    p = parser("cells inspect", ABOUT)
    p.add_argument("archive", metavar="ARCHIVE", help="SCDL, AnnData-Zarr or h5ad: a path, or but for h5ad a URL")
    p.add_argument("--json", action="store_true", help="as JSON")
    p.add_argument("--options", metavar="JSON", type=options_json, help="storage options of a URL")
    o = p.parse_args(words)
    there(o.archive)
    facts = describe(o.archive, o.options)
    print(json.dumps(facts) if o.json else text(facts))
    return 0


def describe(place: str, options: Any = None) -> dict[str, Any]:
    path = Path(place.removeprefix("file://"))
    if path.is_file():
        from headrace._cli.verify_arrays import Findings
        from headrace._cli.verify_h5ad import H5adReader

        reader = H5adReader(path, Findings(), 1 << 20)
        return _describe(
            {**reader.archive.info, "url": place, "format": "h5ad", "attributes": {"encoding-type": "anndata"}}
        )
    archive = hr.open(place, options)
    facts = _describe(archive.info)
    if path.is_dir() and is_scdl(path):
        facts["obs"], facts["var"] = _parquet(path / "obs_features"), _parquet(path / "var_features")
        facts["genes"] = scdl_columns(path)
        if facts["genes"] is not None:
            facts["summary"] = facts["summary"].replace(" cells", f" cells × {count(facts['genes'])} genes", 1)
    facts["reading"] = _reading(archive)
    facts["advice"] = advice(facts)
    return facts


def _describe(info: dict[str, Any]) -> dict[str, Any]:
    nodes = {n["path"]: n for n in info["nodes"]}
    lead = next((f"{p}/" for p in nodes if p == "dataset_0"), "")
    matrix = "chunk_00000" if not lead and "chunk_00000" in nodes else f"{lead}X"
    if matrix not in nodes:
        raise ValueError(f"{info['url']}: no atlas of single cells: it has no X; 'headrace inspect' shows what it has")
    scdl = info["format"].startswith("SCDL")
    arrays = {n: nodes[p] for n in ("indptr", "indices", "data") if (p := f"{matrix}/{n}") in nodes}
    facts: dict[str, Any] = {"url": info["url"], "format": info["format"], "summary": atlas_line(info)}
    facts["cells"], facts["genes"] = _shape(info, nodes, matrix)
    facts["nnz"] = info["attributes"].get("nnz") if scdl else arrays["data"]["shape"][0] if arrays else None
    facts["sets"] = max(1, sum(p.startswith("dataset_") and "/" not in p for p in nodes)) if lead else 1
    facts["encoding"] = (nodes[matrix].get("attributes") or {}).get("encoding-type", "array")
    facts["chunks"] = {n: _chunks(a) for n, a in (arrays or {"X": nodes[matrix]}).items()}
    facts["obs"], facts["var"] = _columns(nodes, f"{lead}obs"), _columns(nodes, f"{lead}var")
    facts["layers"] = _below(nodes, f"{lead}layers") + (["raw"] if f"{lead}raw/X" in nodes else [])
    facts["obsm"] = {n: _of_a_cell(nodes[f"{lead}obsm/{n}"]) for n in _below(nodes, f"{lead}obsm")}
    facts["obsp"] = _below(nodes, f"{lead}obsp")
    facts["reading"] = None
    facts["advice"] = advice(facts)
    return facts


def _of_a_cell(node: dict[str, Any]) -> list[int] | None:
    """The shape of what a cell has of an obsm; None: it is a group, with columns of its own."""
    shape = node.get("shape")
    return list(shape[1:]) if shape else None


def _shape(info: dict[str, Any], nodes: dict[str, Any], matrix: str) -> tuple[int, int | None]:
    if info["format"].startswith("SCDL"):
        return int(info["attributes"].get("n_obs", 0)), None
    about = nodes[matrix].get("attributes") or {}
    shape = nodes[matrix].get("shape") or about.get("shape") or about.get("h5sparse_shape") or [0, 0]
    return int(shape[0]), int(shape[1])


def _chunks(node: dict[str, Any]) -> dict[str, Any]:
    """Of one array. `bytes`: of a chunk, decoded."""
    items = 1
    for n in node["shape"]:
        items *= n
    chunk = 1
    for n in node["chunks"]:
        chunk *= n
    item = (node["bytes"] or 0) / max(1, items)
    return {"dtype": node.get("dtype"), "shape": node["shape"], "chunk": node["chunks"], "shard": node.get("shards"),
            "bytes": round(chunk * item), "codecs": node.get("codecs"), "all_bytes": node["bytes"]}  # fmt: skip


def _below(nodes: dict[str, Any], path: str) -> list[str]:
    return [p[len(path) + 1 :] for p in nodes if p.startswith(f"{path}/") and "/" not in p[len(path) + 1 :]]


def _columns(nodes: dict[str, Any], path: str) -> dict[str, Any]:
    """Kind of each column, and how many categories there are."""
    order = (nodes.get(path, {}).get("attributes") or {}).get("column-order")
    found: dict[str, Any] = {}
    for name in order if isinstance(order, list) else _below(nodes, path):
        node = nodes.get(f"{path}/{name}", {})
        kind = str((node.get("attributes") or {}).get("encoding-type", "array"))
        if kind == "categorical":
            shape = nodes.get(f"{path}/{name}/categories", nodes.get(f"{path}/{name}/categories/values", {})).get(
                "shape"
            )
            found[name] = {"kind": "categories", "categories": shape[0] if shape else None}
        elif kind.startswith("nullable"):
            found[name] = {"kind": kind.removesuffix("-array")}
        else:
            found[name] = {"kind": "texts" if kind == "string-array" else node.get("dtype") or kind}
    found.pop("_index", None)
    return found


def _parquet(folder: Path) -> dict[str, Any]:
    import pyarrow.parquet as pq

    files = sorted(folder.glob("dataframe_*.parquet"))
    return {f.name: {"kind": _kind(f.type)} for f in pq.read_schema(files[0])} if files else {}


def _kind(type_of: Any) -> str:
    """A type of arrow, in the words for those of AnnData."""
    import pyarrow as pa

    if pa.types.is_dictionary(type_of):
        return "categories"
    if pa.types.is_string(type_of) or pa.types.is_large_string(type_of):
        return "texts"
    words = {"float": "float32", "double": "float64", "halffloat": "float16"}
    return words.get(str(type_of), str(type_of))


def _reading(archive: Any) -> dict[str, Any] | None:
    """How training reads it: cells that are read together, and how many times a chunk is."""
    try:
        view = archive.cells(X="csr").info["views"][0]
    except (hr.Error, TypeError, AttributeError):
        return None
    keys = ("row_chunk", "chunk_reads", "chunks", "items_a_row")
    return {k: view[k] for k in keys} if all(k in view for k in keys) else None


# ---- as text ---------------------------------------------------------------------------------------------------------


def text(f: dict[str, Any]) -> str:
    lines = [f"{f['url']}  {f['format']}", f["summary"] or f"{count(f['cells'])} cells"]
    if f["nnz"] is not None and f["cells"]:
        mean = f["nnz"] / f["cells"]
        share = f", {mean / f['genes']:.2%} of the genes" if f["genes"] else ""
        lines.append(_line("a cell", f"{count(round(mean, 1))} non-zeros on average{share}"))
    for name in ("obs", "var"):
        for i, (column, about) in enumerate(f[name].items()):
            n = about.get("categories")
            lines.append(
                _line("" if i else name, f"{column:<24} {about['kind']}{f' ({count(n)})' if n is not None else ''}")
            )
    if f["layers"]:
        lines.append(_line("layers", ", ".join(f["layers"])))
    if f["obsm"]:
        lines.append(_line("obsm", ", ".join(f"{n} ({_extent(s)})" for n, s in f["obsm"].items())))
    if f["obsp"]:
        lines.append(_line("obsp", ", ".join(f["obsp"])))
    for i, (name, c) in enumerate(f["chunks"].items()):
        shard = f" in shards of {count(c['shard'][0])}" if c["shard"] else ""
        words = f"{name:<8} {c['dtype']:<8} {' × '.join(map(count, c['chunk']))} ({size(c['bytes'])}){shard}"
        lines.append(_line("" if i else "chunks", f"{words}  {c['codecs'] or ''}".rstrip()))
    r = f["reading"]
    if r:
        words = f"{count(r['row_chunk'])} cells at a time"
        if r["chunks"]:
            again = f"{r['chunk_reads'] / r['chunks']:.2f}× each"
            words += f"; {count(r['chunk_reads'])} reads of {count(r['chunks'])} chunks, {again}"
        lines.append(_line("reading", words))
    for i, words in enumerate(f["advice"]):
        lines.append(_line("" if i else "advice", words))
    return "\n".join(lines)


def _extent(shape: list[int] | None) -> str:
    return "data frame" if shape is None else " × ".join(map(count, shape)) or "1"


def _line(name: str, words: str) -> str:
    return f"  {name:<8} {words}"
