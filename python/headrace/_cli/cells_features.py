"""Genes and cells of an AnnData as SCDL keeps them: parquet, by the rules of the package that made the layout.

A data frame with columns loses its index; one without has it as its only column, var_feature_id or obs_feature_id.
Categories become texts.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._cli.cells_header import FeatureInfo

if TYPE_CHECKING:
    from headrace._cli.cells_source import Cells

VERSION = "0.1.3"
_IDS = {"var_features": "var_feature_id", "obs_features": "obs_feature_id"}


def frame(cells: Cells, name: str) -> Any:
    """obs or var of the matrix, as a pandas data frame."""
    from anndata.io import read_elem

    lead = "raw/" if name == "var_features" and cells.matrix == "raw/X" else ""
    return read_elem(cells.group[f"{lead}{name[:3]}"])


def write(cells: Cells, name: str, folder: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    df = frame(cells, name)
    columns = {str(c): np.array(df[c].values) for c in df.columns} or {_IDS[name]: np.array(df.index.values)}
    n = cells.rows if name == "obs_features" else cells.columns
    if len(df) != n:
        raise ValueError(f"{cells.place}: {name[:3]} has {len(df)} rows, and the matrix has {n}")
    blocks = 1 if len(df) else 0
    if blocks:
        pq.write_table(pa.table({c: _values(pa, v) for c, v in columns.items()}), folder / "dataframe_0.parquet")
    label = cells.place if "://" in cells.place else os.path.abspath(cells.place)
    np.save(folder / "cumulative_sum_index.npy", np.array([-1, cells.rows][: blocks + 1]))
    np.save(folder / "labels.npy", np.array([label][:blocks], str))  # what versions up to 0.1.3 read …
    (folder / "labels.json").write_text(json.dumps([label][:blocks]))  # … and those after it
    np.save(folder / "version.npy", np.array(VERSION))


def _values(pa: Any, values: Any) -> Any:
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if v is None or v != v else str(v) for v in values], pa.string())


def entry(folder: Path, name: str) -> FeatureInfo:
    """As the header has it."""
    ends = np.load(folder / name / "cumulative_sum_index.npy")
    files = [f"{name}/{n}.npy" for n in ("cumulative_sum_index", "labels", "version")]
    files += sorted(f"{name}/{p.name}" for p in (folder / name).glob("dataframe_*.parquet"))
    return FeatureInfo(name, int(max(ends[-1], 0)), "string", files, None)


def read(folder: Path, name: str, n: int) -> Any:
    """The features of an SCDL as one data frame; for AnnData, whose index is the id where that is all there is."""
    import pandas as pd
    import pyarrow.parquet as pq

    place = folder / name if (folder / name).exists() or name != "var_features" else folder / "features"
    frames = [pq.read_table(p).to_pandas() for p in sorted(place.glob("dataframe_*.parquet"))]
    if name == "var_features" and len(frames) > 1:
        raise ValueError(f"{place}: {len(frames)} sets of genes: rows of different genes are no one AnnData")
    df = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(index=range(n))
    if len(df) != n:
        raise ValueError(f"{place}: {len(df)} rows, where the matrix has {n}")
    if list(df.columns) == [_IDS[name]]:
        return pd.DataFrame(index=pd.Index(df[_IDS[name]].astype(str).to_numpy()))
    df.index = pd.Index([str(i) for i in range(n)])
    df.columns = [str(c) for c in df.columns]
    return df
