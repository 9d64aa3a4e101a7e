"""Several processes and one cache of the drop-in."""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scdl_make import Cells, Server
from scdl_use import ROWS, remote

pytest_plugins = ["scdl_use"]
warnings.filterwarnings("ignore", "Sparse")


_CHILD = """
import sys, time
from headrace.scdl import SingleCellMemMapDataset as D
ds = D.from_remote(sys.argv[1], sys.argv[2], max_cached_chunks=int(sys.argv[3]), n_cols=300)
print("begun", flush=True)
for row in map(int, sys.argv[4:]):
    ds.get_row(row)
print(ds.stats()["download_count"], flush=True)
"""


def child(server: Server, cache: Path, *rows: int, cached: int = 20) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _CHILD, server.url, str(cache), str(cached), *map(str, rows)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_processes_share_what_one_downloads(server: Server, tmp_path: Path) -> None:
    server.rule = lambda path, handler: time.sleep(0.05)
    rows = range(50, ROWS, 100)
    both = [child(server, tmp_path, *rows) for _ in range(2)]
    counts = [int(p.communicate(timeout=60)[0].split()[-1]) for p in both]
    assert sum(counts) == 20
    assert all(server.count(f"chunk_{i:05d}/data.npy") <= 3 for i in range(20))


def test_a_process_that_is_killed_while_it_downloads_leaves_nothing_in_the_way(
    server: Server, cells: Cells, tmp_path: Path
) -> None:
    stuck, come = threading.Event(), threading.Event()

    def rule(path: str, handler: Any) -> None:
        if path.endswith("chunk_00000/data.npy") and "=-" not in handler.headers.get("Range", "") and not come.is_set():
            stuck.set()
            come.wait(20)

    server.rule = rule
    process = child(server, tmp_path, 50)
    assert stuck.wait(30)
    assert list(tmp_path.rglob("chunk_00000.part-*"))
    process.send_signal(signal.SIGKILL)
    process.wait(10)
    come.set()
    ds = remote(server, tmp_path)
    np.testing.assert_array_equal(ds.get_row(50)[0][0], cells.row(50)[0])
    assert not list(tmp_path.rglob("*.part-*"))
    assert process.stdout
    process.stdout.close()


def test_chunks_that_another_process_holds_are_not_evicted(server: Server, tmp_path: Path) -> None:
    holder, other = remote(server, tmp_path, max_cached_chunks=2), remote(server, tmp_path, max_cached_chunks=1)
    holder.get_row(50)
    for row in range(150, 1000, 100):
        other.get_row(row)
    assert len(list(tmp_path.rglob("chunk_00000-*"))) == 1
    assert len(list(tmp_path.rglob("chunk_*-*"))) == 2
    holder.get_row(60)
    assert holder.stats()["download_count"] == 1


def _rows_in_child(ds: Any, out: Any) -> None:
    out.put([ds.get_row(i)[0][0].tolist() for i in (50, 150, 50)])


@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_a_dataset_works_in_processes_that_are_made_of_this_one(server: Server, cells: Cells, how: str) -> None:
    ds = remote(server, max_cached_chunks=1)
    ds.get_row(50)
    context: Any = multiprocessing.get_context(how)
    out = context.Queue()
    process = context.Process(target=_rows_in_child, args=(ds, out))
    process.start()
    got = out.get(timeout=60)
    process.join(30)
    assert process.exitcode == 0
    assert got == [cells.row(i)[0].tolist() for i in (50, 150, 50)]
    ds.get_row(250)
    copy = pickle.loads(pickle.dumps(ds))
    np.testing.assert_array_equal(copy.get_row(350)[0][0], cells.row(350)[0])
