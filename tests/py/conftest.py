"""Archives of the tests: small, written by zarr-python, read back by it too."""

from __future__ import annotations

import functools
import http.server
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import headrace as hr

pytest.register_assert_rewrite("scdl_use")

# Started in the background, where Ctrl-C is ignored: the programs that tests start are to hear it all the same.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)


def field(shape: tuple[int, ...], dtype: str = "f4", seed: int = 0) -> np.ndarray:
    """Smooth plus noise, so that codecs have something to do and every element differs."""
    rng = np.random.default_rng(seed)
    grid = np.add.outer(np.arange(shape[0]), rng.normal(size=shape[1:]).cumsum(axis=-1) if len(shape) > 1 else 0.0)
    values = np.asarray(grid).reshape(shape) + rng.normal(scale=0.01, size=shape)
    return (values * 100).astype(dtype) if np.dtype(dtype).kind in "iu" else values.astype(dtype)


def write(
    root: Any, name: str, data: np.ndarray, chunks: tuple[int, ...], dims: tuple[str, ...], **options: Any
) -> Any:
    """One array; `options` go to zarr's create_array; `attributes` too."""
    version = root.metadata.zarr_format
    attributes = dict(options.pop("attributes", {}))
    if version == 3:
        options.setdefault("dimension_names", dims)
    else:
        attributes["_ARRAY_DIMENSIONS"] = list(dims)
        options.pop("dimension_names", None)
    array = root.create_array(name, shape=data.shape, chunks=chunks, dtype=data.dtype, attributes=attributes, **options)
    array[...] = data
    return array


@pytest.fixture
def climate(tmp_path: Path) -> str:
    """t2m, u10 (time 60, lat 6, lon 8; 4 a chunk), z (time, level, lat, lon), coordinates time, lat, level."""
    path = tmp_path / "climate.zarr"
    root = zarr.open_group(path, mode="w", zarr_format=3)
    for i, name in enumerate(("t2m", "u10")):
        write(root, name, field((60, 6, 8), seed=i), (4, 6, 8), ("time", "lat", "lon"))
    write(root, "z", field((60, 3, 6, 8), seed=9), (1, 2, 6, 5), ("time", "level", "lat", "lon"))
    hours = np.arange(60, dtype="i8") * 6
    write(root, "time", hours, (60,), ("time",), attributes={"units": "hours since 1990-01-01", "calendar": "standard"})
    write(root, "lat", np.linspace(90, -90, 6).astype("f4"), (6,), ("lat",))
    write(root, "level", np.array([500, 850, 1000], "i4"), (3,), ("level",))
    return str(path)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def served(climate: str) -> Iterator[str]:
    """The URL of a web server with the climate archive."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=climate)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def loader(climate: str) -> hr.Loader:
    """A shuffled loader of 8 rows over t2m."""
    with hr.open(climate).samples(along="time", x="t2m").batches(8, shuffle=True, seed=3) as one:
        yield one


def ids_of(loader: Any) -> list[int]:
    """Sample ids of what is left of the epoch, valid ones only."""
    out: list[int] = []
    for batch in loader:
        out += batch.index.numpy()[batch.valid.numpy()].tolist()
    return out
