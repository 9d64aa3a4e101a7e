"""headrace inspect, and the same in Python."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from program import climate, good, run

import headrace as hr


@pytest.fixture
def rich(tmp_path: Path) -> str:
    """Groups, a sharded array, one without dimensions or names, texts, one of a long name, and one that cannot be read."""
    root = zarr.create_group(tmp_path / "rich.zarr", zarr_format=3)
    group = root.create_group("ocean").create_group("deep")
    group.create_array(
        "salt", shape=(40, 30), chunks=(5, 10), shards=(20, 30), dtype="f8", dimension_names=("depth", None)
    )
    root.create_array("n", shape=(), dtype="i4")
    root.create_array("plain", shape=(2000, 3000), chunks=(100, 100), dtype="u2")
    root.create_array("a" * 60, shape=(3,), chunks=(2,), dtype="c16")
    texts = root.create_array("texts", shape=(3,), chunks=(2,), dtype=str)
    texts[...] = np.array(["a", "bc", "d"], object)
    odd = root.create_array("odd", shape=(3,), chunks=(2,), dtype="i4")
    document = Path(tmp_path / "rich.zarr" / odd.path / "zarr.json")
    document.write_text(document.read_text().replace('"bytes"', '"nobody"', 1))
    return str(tmp_path / "rich.zarr")


def test_python_prints_the_same_tree(rich: str) -> None:
    for path in (climate(), rich, f"{climate()}/t2m"):
        shown, printed = good("inspect", path).splitlines(), repr(hr.open(path)).splitlines()
        assert shown[1:] == printed[1:]
        assert printed[0] == f"<Archive {path}: {shown[0].removeprefix(path).strip()}>"
    text = good("inspect", rich)
    for part in ("└─ ", "5×10 (400 B) in shards of 20×30", "12.0 MB", "(depth: 40, 30)", "cannot be read: ", "ocean/"):
        assert part in text


class Unlisted(http.server.SimpleHTTPRequestHandler):
    def list_directory(self, path: Any) -> None:
        self.send_error(404)

    def log_message(self, *words: Any) -> None:
        pass


@pytest.fixture
def unlisted() -> Iterator[str]:
    """The climate archive on a server that lists nothing."""
    handler = partial(Unlisted, directory=climate())
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_what_cannot_be_listed_is_said_so_and_read_by_name(unlisted: str) -> None:
    shown = good("inspect", unlisted)
    assert "arrays known" in shown.splitlines()[0] and "time" in shown and "t2m" not in shown
    assert f"headrace inspect {unlisted} NAME" in shown
    assert "(time: 60, lat: 6, lon: 8)" in good("inspect", unlisted, "t2m")
    done = run("inspect", unlisted, "t2n")
    assert done.returncode == 1 and 'no array "t2n"; this store cannot list' in done.stderr
    archive = hr.open(unlisted)
    assert "arrays known" in repr(archive) and 'archive["NAME"]' in repr(archive)
    assert archive["t2m"].shape == (60, 6, 8)
    with pytest.raises(hr.NotFoundError, match='did you mean "t2m"'):
        archive["t2n"]
    with pytest.raises(hr.NotFoundError, match="cannot list"):
        hr.open(unlisted)["t2n"]
