"""Count, mean, deviation, least and greatest of the values of a split: `Samples.moments`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from headrace._arguments import choice, flag, text
from headrace._text import parse_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace._samples import Samples

_BY = {"array": 0, "channel": 1, "grid": 2}
_PARTS = ("count", "mean", "std", "min", "max")
OF_GENES = "means and deviations by gene are made of batches of cells, as docs/cells.md shows"
_VERSION = 1  # of what is kept on disk


class _Named:
    """An array whose dimensions have names, for `view(mean=…)`."""

    def __init__(self, values: Any, dims: tuple[str, ...]) -> None:
        self.values = values
        self.dims = dims
        self.ndim = len(dims)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.values


class Moments:
    """What `Samples.moments` gave. Numbers (by "array" without a stack) or numpy arrays with the dimensions `dims`.

    ``hr.view(…, normalize=moments)`` takes it as it is. Deviations are those of the population.
    """

    def __init__(
        self,
        view: str,
        arrays: list[str],
        by: str,
        dims: tuple[str, ...],
        shape: tuple[int, ...],
        parts: dict[str, Any],
    ) -> None:
        self.view = view
        self.arrays = arrays
        self.by = by
        self.dims = dims
        self.shape = shape
        self.count = parts["count"].astype("int64") if shape else int(parts["count"])
        self.mean = parts["mean"]
        self.std = parts["std"]
        self.min = parts["min"]
        self.max = parts["max"]

    def normalization(self) -> tuple[Any, Any]:
        """mean and std for `view`: 0 and 1 where there are no values, 1 where they do not vary."""
        import numpy as np

        mean, std = np.nan_to_num(np.asarray(self.mean)), np.nan_to_num(np.asarray(self.std))
        std = np.where(std > 0, std, 1.0)
        if not self.dims:
            return float(mean), float(std)
        return _Named(mean, self.dims), _Named(std, self.dims)

    def _rows(self) -> list[list[str]]:
        import numpy as np

        parts = [np.asarray(getattr(self, name)).reshape(-1) for name in _PARTS]
        names = self.arrays if len(self.arrays) == parts[0].size else [str(i) for i in range(parts[0].size)]
        if parts[0].size == 1:
            names = [", ".join(self.arrays)]
        head = [[self.dims[0] if self.dims else "", *_PARTS]]
        return head + [[n, f"{int(p[0]):,}", *(f"{v:.6g}" for v in p[1:])] for n, p in zip(names, zip(*parts))]

    def __repr__(self) -> str:
        import numpy as np

        if np.asarray(self.count).size > 64:
            shape = ", ".join(f"{d}: {n}" for d, n in zip(self.dims, self.shape))
            count, mean, std = (np.asarray(x) for x in (self.count, self.mean, self.std))
            return (
                f"<Moments of {self.view} by {self.by} ({shape}): {int(count.sum()):,} values, mean "
                f"{np.nanmin(mean):.6g} … {np.nanmax(mean):.6g}, std {np.nanmin(std):.6g} … {np.nanmax(std):.6g}>"
            )
        rows = self._rows()
        widths = [max(len(r[i]) for r in rows) for i in range(6)]
        lines = ["  ".join([r[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(r[1:], widths[1:]))]) for r in rows]
        return "\n".join([f"<Moments of {self.view} by {self.by}>", *(f"  {line}".rstrip() for line in lines)])


# ---- on disk


def _folder() -> str:
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "headrace", "moments")


def _local(url: str) -> str | None:
    path = url[7:] if url.startswith("file://") else url
    return path if os.path.isdir(path) else None


def _identity(samples: Samples, arrays: list[str], fingerprints: str) -> str | None:
    """What the result depends on, as far as can be told without reading chunks; None: it cannot be told."""
    import hashlib
    import json

    archive = samples.archive
    local = _local(archive.url)
    if local is None and not archive.url.startswith(("http://", "https://", "s3://", "gs://", "az://")):
        return None  # a store of the caller's own
    known: list[Any] = [_VERSION, os.path.abspath(local) if local else archive.url, fingerprints]
    for path in arrays:
        node = archive[path].info
        known.append([path, node["attributes"], node["codecs"], node["fill_value"], node["chunks"]])
        for name in ("zarr.json", ".zarray", ".zattrs"):  # written anew with the data, as a rule
            try:
                known.append(os.stat(os.path.join(local, path, name)).st_mtime_ns if local else 0)
            except OSError:
                known.append(0)
    return hashlib.sha256(json.dumps(known, sort_keys=True, default=str).encode()).hexdigest()[:40]


def _load(path: str) -> tuple[tuple[str, ...], dict[str, Any]] | None:
    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as kept:
            return tuple(str(d) for d in kept["dims"]), {name: kept[name] for name in _PARTS}
    except Exception:  # none, or not whole: it is made anew
        return None


def _save(path: str, dims: tuple[str, ...], parts: dict[str, Any]) -> None:
    import tempfile

    import numpy as np

    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        handle, name = tempfile.mkstemp(dir=os.path.dirname(path), suffix=".part")
        with os.fdopen(handle, "wb") as file:
            np.savez(file, dims=np.array(dims, dtype="U"), **parts)
        os.replace(name, path)
    except OSError:  # a cache that cannot be written is none
        pass


# ---- the pass


def _bar(view: str) -> Callable[[int, int], None]:
    """A line on stderr, drawn anew at most five times a second."""
    import sys
    import time

    start, last = time.monotonic(), [0.0]

    def show(rows: int, total: int) -> None:
        now = time.monotonic()
        if now - last[0] < 0.2 and rows < total:
            return
        last[0] = now
        part = rows / max(total, 1)
        left = (now - start) / part * (1 - part) if part else 0.0
        filled = int(part * 30)
        end = f"{now - start:.0f} s\n" if rows >= total else f"{left:.0f} s left "
        bar = "█" * filled + "·" * (30 - filled)
        sys.stderr.write(f"\rmoments of {view}  {bar} {part:4.0%}  {rows:,} of {total:,} samples  {end}")
        sys.stderr.flush()

    return show


def moments(
    samples: Samples, view: str | None, by: str, memory: int | str | None, cache: bool, progress: bool | None
) -> Moments:
    import numpy as np

    number = choice("moments: by", by, _BY)
    name = None if view is None else text("moments: view", view)
    budget = parse_bytes(memory)
    flag("moments: cache", cache)
    described = next((v for v in samples.info["views"] if name in (None, v["name"])), None)
    if described is not None and "form" in described:
        from headrace._errors import UnsupportedError

        raise UnsupportedError(
            f"moments: {described['name']} has the rows of an atlas, of which there are none: {OF_GENES}"
        )
    key = samples._handle.moments_key(name, number, budget)
    assert described is not None  # the key was made from it
    identity = _identity(samples, described["arrays"], key) if cache else None
    path = os.path.join(_folder(), f"{identity}.npz") if identity else None
    found = _load(path) if path else None
    if found is None:
        if progress is None:
            import sys

            progress = bool(getattr(sys.stderr, "isatty", bool)())
        shown = _bar(described["name"]) if flag("moments: progress", progress) else None
        dims, shape, *raw = samples._handle.moments(name, number, budget, shown)
        parts = {p: np.frombuffer(data, np.float64).reshape(shape) for p, data in zip(_PARTS, raw)}
        if path:
            _save(path, dims, parts)
    else:
        dims, parts = found
    values = {p: v if v.shape else float(v) for p, v in parts.items()}
    return Moments(described["name"], described["arrays"], by, dims, np.shape(parts["mean"]), values)
