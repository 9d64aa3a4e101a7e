"""What a user sees while a store lets one wait: Ctrl-C is obeyed, metadata is asked for together, and what was not
found, or not looked for, is said."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.storage import LocalStore

import headrace as hr
from conftest import write

PROGRAM = shutil.which("headrace", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}") or "headrace"


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a listener that never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/a.zarr"


OPEN = "import sys, headrace; headrace.open(sys.argv[1])"


@pytest.mark.alone
@pytest.mark.parametrize("command", ["python", "program"])
def test_ctrl_c_ends_an_open_that_waits(silent: str, command: str) -> None:
    words = [sys.executable, "-c", OPEN, silent] if command == "python" else [PROGRAM, "inspect", silent]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(3)
    assert process.poll() is None
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert time.monotonic() - start < 3
    assert process.returncode != 0
    assert "KeyboardInterrupt" in err or command == "program"


class Slow(LocalStore):
    """Counts how many reads are under way at once."""

    now = most = 0

    async def get(self, *args: Any, **named: Any) -> Any:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.02)
        try:
            return await super().get(*args, **named)
        finally:
            self.now -= 1


def test_metadata_is_asked_for_together(tmp_path: Path) -> None:
    root = zarr.open_group(tmp_path / "many.zarr", mode="w", zarr_format=3)
    for i in range(30):
        write(root, f"v{i:02}", np.full((4, 3), i, "f4"), (2, 3), ("time", "x"))
    store = Slow(tmp_path / "many.zarr")
    names = [n["path"] for n in hr.open(store).info["nodes"] if n["kind"] == "array"]
    assert names == [f"v{i:02}" for i in range(30)]
    assert store.most >= 8


def test_where_the_search_for_archives_ends_is_said(tmp_path: Path) -> None:
    for i in range(150):
        os.makedirs(tmp_path / "mix" / f"d{i:03}")
    zarr.open_group(tmp_path / "mix" / "z.zarr", mode="w", zarr_format=3)
    with pytest.raises(hr.NotFoundError, match="looked into 100 of the 151 directories"):
        hr.open(tmp_path / "mix")


@pytest.mark.parametrize("chunks", [1, 5, 40])
def test_an_array_without_chunks_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture, chunks: int) -> None:
    path = tmp_path / "gone.zarr"
    root = zarr.open_group(path, mode="w", zarr_format=3)
    write(root, "t2m", np.ones((chunks, 3), "f4"), (1, 3), ("time", "x"))
    for file in (path / "t2m" / "c").rglob("*"):
        if file.is_file():
            file.unlink()
    loader = hr.open(path).samples(along="time", x="t2m").batches(1)
    with caplog.at_level(logging.WARNING, "headrace"):
        for _ in range(3):
            for _ in loader:
                pass
    assert len([r for r in caplog.records if "is the archive complete?" in r.getMessage()]) == 1
