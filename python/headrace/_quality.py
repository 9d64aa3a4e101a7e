"""How well the batches of an epoch represent it: of any column of the samples, from the plan's order alone."""

from __future__ import annotations

from math import pi
from typing import TYPE_CHECKING, Any

from headrace._columns import Column, classes, column

if TYPE_CHECKING:
    from headrace._loader import Loader
    from headrace._samples import Samples

_ROWS = 1 << 17  # looked at
_RUNS = 8
_BINS = 64  # with shares of their own
_CYCLES = {"hour": 24, "dayofyear": 365.25, "month": 12, "dayofweek": 7, "minute": 60, "second": 60, "quarter": 4}


def quality_of(loader: Loader, plan: dict[str, Any], wanted: list[Column]) -> dict[str, Any]:
    """`columns`: the variance of batch means over that of independent draws; `shares`: of bins in a batch."""
    columns: list[dict[str, Any]] = []
    shares: list[dict[str, Any]] = []
    if wanted and plan["steps"] > 1:
        batches = _batches(loader, plan)
        for one in {c.name: c for c in wanted}.values():
            variance, bins = _look(one, batches)
            columns.append({"name": one.name, "variance": variance})
            shares += bins
    return {"columns": columns, "shares": shares}


def columns_of(samples: Samples, given: object) -> list[Column]:
    names = list(given) if isinstance(given, (list, tuple)) else [given]
    return [column(samples, "plan: columns", name) for name in names]


def cycles_of(samples: Samples) -> list[Column]:
    """Hour and day of the year, where the first sample axis that holds times has more than one of them."""
    from headrace._where import _time_axis

    axes = [a["name"] for a in samples.info["axes"] if a["kind"] == "steps"]
    try:
        axis = _time_axis(samples.coords, axes) if axes else ""
        if axis not in samples.coords or samples.coords.times(axis) is None:
            return []
        found = [column(samples, "plan", name) for name in (f"{axis}.hour", f"{axis}.dayofyear")]
    except Exception:  # a coordinate that cannot be read is no reason to have no plan
        return []
    return [c for c in found if len(c.values) and c.values.min() < c.values.max()]


def _batches(loader: Loader, plan: dict[str, Any]) -> Any:
    """Sample ids of whole global batches: (batches, rows)."""
    import numpy as np

    steps, rows = plan["steps"], plan["global_batch"]
    looked = max(2, min(steps, _ROWS // rows))
    runs = 1 if looked == steps else min(_RUNS, looked // 2)
    found = []
    for i in range(runs):
        n = looked // runs
        ids, valid = loader._handle.order(plan["epoch"], i * (steps - n) // max(1, runs - 1), n, n * rows)
        whole = np.frombuffer(ids, np.int64), np.frombuffer(valid, np.uint8)
        n = len(whole[0]) // rows
        grid = whole[0][: n * rows].reshape(n, rows)
        found.append(grid[whole[1][: n * rows].reshape(n, rows).all(1)])
    return np.concatenate(found)


def _ratio(values: Any) -> float | None:
    """Variance of the means of rows over that of independent draws."""
    spread = float(values.var())
    if not spread or values.shape[0] < 2:
        return None
    return float(values.mean(1).var() * values.shape[1] / spread)


def _look(one: Column, batches: Any) -> tuple[float | None, list[dict[str, Any]]]:
    import numpy as np

    values = one.at(batches)
    which = one.name.rpartition(".")[2]
    kind = values.dtype.kind
    if which in _CYCLES and kind in "iu":
        angle = values * (2 * pi / _CYCLES[which])
        ratios = [r for r in (_ratio(np.cos(angle)), _ratio(np.sin(angle))) if r is not None]
        variance = sum(ratios) / len(ratios) if ratios else None
        return variance, _shares(one, values) if which not in ("dayofyear",) else []
    if kind in "Mm":
        return _ratio(values.astype(np.int64).astype(float)), []
    if one.categories is None and kind in "iu" and int(values.max()) - int(values.min()) >= _BINS:
        return _ratio(values.astype(float)), []
    if kind == "f":
        return _ratio(values.astype(float)), []
    bins = _shares(one, values)
    total = sum(b["independent_sd"] ** 2 for b in bins)
    return (sum(b["sd"] ** 2 for b in bins) / total if total else None), bins


def _shares(one: Column, values: Any) -> list[dict[str, Any]]:
    """Of each bin in the batches: mean and standard deviation, and what independent draws would have."""
    different, codes = classes(values.reshape(-1))
    if not 1 < len(different) <= _BINS:
        return []
    out = []
    for i, value in enumerate(different):
        share = (codes.reshape(values.shape) == i).mean(1)
        p = float(share.mean())
        if one.categories is not None:
            value = one.categories[value] if value >= 0 else "missing"
        name = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
        alone = (p * (1 - p) / values.shape[1]) ** 0.5
        out.append({"column": one.name, "bin": name, "mean": p, "sd": float(share.std()), "independent_sd": alone})
    return out
