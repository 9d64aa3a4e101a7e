"""Samples as a Ray Data source: batch inference over a cluster.

Each read task is a contiguous share of the samples, in archive order, cut where chunks of the largest view begin, so
that no chunk is read by two tasks but for windows that reach over a border. What travels is a description: where the
archive is, its views, and the ids of the share (see _pickle.py). A task opens the archive where it runs.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ray.data import Datasource
from ray.data.block import BlockAccessor, BlockMetadata
from ray.data.datasource import ReadTask

from headrace._arguments import integer, refuse
from headrace._pickle import id_at, pack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headrace._archive import Archive
    from headrace._pickle import Packed
    from headrace._samples import Samples

INDEX = "index"  # the column of sample ids
_OPTIONS = ("memory", "dtype", "missing", "on_error")


class HeadraceDatasource(Datasource):
    """For ``ray.data.read_datasource``: blocks of a column for each view, and ``index``, the sample ids."""

    def __init__(self, samples: Samples, n: int, options: dict[str, Any]) -> None:
        super().__init__()
        for name, value in options.items():
            if name not in _OPTIONS:
                refuse(
                    f"ray: {name}",
                    value,
                    f"of the options of batches these hold for reading shares: {', '.join(_OPTIONS)}",
                )
        self._views = [view["name"] for view in samples.info["views"]]
        if INDEX in self._views:
            refuse("ray: view", INDEX, "a view of that name would hide the column of sample ids: call it otherwise")
        self._samples = samples
        self._n = integer("ray: n", n, 1)
        self._options = options

    def estimate_inmemory_data_size(self) -> int:
        """Bytes of all blocks."""
        return len(self._samples) * self._row_bytes()

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
    ) -> list[ReadTask]:
        """At most `parallelism` tasks; fewer where there are fewer chunks along the sample axis."""
        samples = self._samples
        origin = samples.archive.__reduce__()
        borders = _borders(samples, max(1, parallelism))
        tasks = []
        for start, stop in pairwise(borders):
            share = Share(origin, samples._again(), pack(samples._handle, start, stop), self._n, self._options)
            rows = stop - start
            metadata = BlockMetadata(
                num_rows=rows, size_bytes=rows * self._row_bytes(), exec_stats=None, input_files=None
            )
            tasks.append(ReadTask(share, metadata, per_task_row_limit=per_task_row_limit))
        return tasks

    def _row_bytes(self) -> int:
        return 8 + sum(int(view["bytes"]) for view in self._samples.info["views"])

    def __repr__(self) -> str:
        return f"<Ray datasource: {len(self._samples):,} samples of {self._samples.archive.url}, {self._n} a block>"


class Share:
    """What one task reads."""

    def __init__(self, origin: Any, described: Any, packed: Packed, n: int, options: dict[str, Any]) -> None:
        self.origin = origin
        self.described = described
        self.packed = packed
        self.n = n
        self.options = options

    def __call__(self) -> Iterator[Any]:
        _use_what_the_task_has()
        again, arguments = self.origin
        archive: Archive = again(*arguments)
        make, described = self.described
        samples: Samples = make(archive, *described, self.packed)
        with samples.batches(self.n, rank=0, world=1, **self.options) as loader:
            for batch in loader:
                yield _block(batch, self.options)


def _block(batch: Any, options: dict[str, Any]) -> Any:
    columns = {INDEX: batch.index.numpy()}
    for name, values in batch.numpy().items():
        columns.update(_rows(name, values) if isinstance(values, dict) else {name: values})
    if options.get("on_error") == "mask":
        columns["valid"] = batch.valid.numpy()
    return BlockAccessor.batch_to_block(columns)


def _rows(name: str, three: dict[str, Any]) -> dict[str, Any]:
    """Of a sparse view two columns of arrays: the values of each row, and their places."""
    import numpy as np

    borders = three["indptr"][1:-1]
    columns = {}
    for part in ("data", "indices"):
        column: Any = np.empty(len(borders) + 1, object)
        column[:] = np.split(three[part], borders)
        columns[f"{name}.{part}"] = column
    return columns


def _use_what_the_task_has() -> None:
    """As many decoding threads as CPUs were asked for, unless this process has begun with another number."""
    import ray

    from headrace._errors import Error
    from headrace._loader import configure

    cpus = ray.get_runtime_context().get_assigned_resources().get("CPU", 1)
    try:
        configure(workers=max(1, int(cpus)))
    except Error:
        pass


def _borders(samples: Samples, parts: int) -> list[int]:
    """Positions among the samples at which shares begin, and their end."""
    n = len(samples)
    step = _cells(samples)
    found = {0, n}
    for part in range(1, parts):
        wished = id_at(samples._handle, part * n // parts)
        found.add(_position(samples, round(wished / step) * step))
    return sorted(found)


def _position(samples: Samples, sample: int) -> int:
    """How many samples come before an id."""
    low, high = 0, len(samples)
    while low < high:
        middle = (low + high) // 2
        if id_at(samples._handle, middle) < sample:
            low = middle + 1
        else:
            high = middle
    return low


def _cells(samples: Samples) -> int:
    """Ids from one chunk border of the anchor to the next along the first sample axis."""
    views = samples.info["views"]
    rows = next((view["row_chunk"] for view in views if "row_chunk" in view), None)
    if rows is not None:
        return int(rows)
    anchor = samples.archive[max(views, key=lambda view: int(view["bytes"]))["arrays"][0]]
    first, *inner = samples.info["axes"]
    steps = 1
    if first["name"] in anchor.dims:
        steps = max(1, anchor.chunks[anchor.dims.index(first["name"])] // first.get("stride", 1))
    return steps * math.prod(int(axis["n"]) for axis in inner)


def datasource(samples: Samples, n: int, options: dict[str, Any]) -> HeadraceDatasource:
    return HeadraceDatasource(samples, n, options)
