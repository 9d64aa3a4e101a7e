"""Messages that say what to write: names nearly right, units left out, ends the wrong way round."""

from __future__ import annotations

import functools
import http.server
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import headrace as hr
from conftest import Quiet, write


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda a: a.samples(along="time", x=hr.view("t2m", stak="c")),
            r"no dimension stak .*mean the argument 'stack'\?",
        ),
        (lambda a: a.samples(along="time", x=hr.view("t2m", lst=3)), r"no dimension lst \(it has .*did you mean lat\?"),
        (
            lambda a: a.samples(along="time", x=hr.view("z", level=slice(850, 500))),
            r"slice\(850, 500\) selects nothing of coordinate level, which runs from 500 to 1000 \(ascending\): write "
            r"slice\(500, 850\)",
        ),
        (
            lambda a: a.samples(along="time", x=hr.view("t2m", lat=slice(-10, 60))),
            r"selects nothing of coordinate lat, .* \(descending\): write slice\(60, -10\)",
        ),
        (
            lambda a: a.samples(along="time", x="t2m").sel(time=slice("1990-01-03", "1990-01-02")),
            "selects nothing.*write",
        ),
        (lambda a: a.samples(along="time", x=hr.view("z", level=slice(1, 2))), "selects nothing of dimension level"),
        (lambda a: a.samples(along=["time", "levl"], x="z"), r"axis levl .*\(it is one of .*did you mean level\?"),
    ],
)
def test_what_was_meant(climate: str, call: Callable[[Any], object], words: str) -> None:
    with pytest.raises(hr.Error, match=words):
        call(hr.open(climate))


def test_joins(climate: str, tmp_path: Path) -> None:
    root = zarr.open_group(tmp_path / "b.zarr", mode="w", zarr_format=3)
    write(root, "valid", np.arange(9), (9,), ("valid",), attributes={"units": "hours since 1990-01-01"})
    write(root, "sst", np.zeros((9, 2), "f4"), (9, 2), ("valid", "q"))
    both = hr.combine({"a": climate, "b": tmp_path / "b.zarr"})

    def open_(along: Any = "time", **join: Any) -> None:
        both.samples(along=along, x="a/z", y=hr.view("b/sst", join="left", **join))

    with pytest.raises(
        hr.InvalidError, match=r'y: b/sst \(valid, q\) has none of the sample axes.*on=\{"valid": "time"\}'
    ):
        open_()
    with pytest.raises(hr.InvalidError, match=r'join: tolerance 6 has no unit.*write "6h" for hours, "6D" for days'):
        open_(tolerance=6, on={"valid": "time"})
    open_(tolerance="6h", on={"valid": "time"})


def test_pyramids_that_do_not_come_out_even(tmp_path: Path) -> None:
    root = zarr.open_group(tmp_path / "p.zarr", mode="w", zarr_format=3)
    write(root, "0", np.zeros((101, 101), "u1"), (50, 50), ("y", "x"))
    write(root, "1", np.zeros((50, 50), "u1"), (50, 50), ("y", "x"))
    archive = hr.open(tmp_path / "p.zarr")

    def open_(edge: str) -> hr.Samples:
        along = {"y": hr.patch(32, edge=edge), "x": hr.patch(32, edge=edge)}
        return archive.samples(along=along, image="0", label=hr.view("1", scale=2))

    with pytest.raises(hr.InvalidError, match=r'y, which is 101 long, edge="clip" moves the last patch to 69.*"valid"'):
        open_("clip")
    assert len(open_("valid")) == 9 and len(open_("pad")) == 16


def test_positions_are_counted(climate: str) -> None:
    samples = hr.open(climate).samples(along=["time", "level"], x="z")
    assert "60 positions" in repr(samples) and "3 positions" in repr(samples)
    some = samples.where(lambda c: np.isin(np.arange(60), [3, 7, 40])[:, None] & (c["level"] != 850))
    assert "3 of 60 positions, 3 … 40" in repr(some) and "2 of 3 positions, 0 … 2" in repr(some)
    assert [axis["chosen"] for axis in some.axes.values()] == [3, 2]
    one = samples.isel(time=[5])
    assert "1 of 60 positions, 5" in repr(one)


def test_reports_name_their_unit(climate: str) -> None:
    archive = hr.open(climate)
    plain = archive.samples(along="time", x="t2m").split(0.5, 0.5).report()
    assert plain["unit"] == "rows" and "rows" in repr(plain)
    boxes = archive.samples(along={"time": None, "lat": hr.patch(3)}, x="t2m").split(0.5, 0.5).report()
    assert boxes["unit"] == "boxes that meet" and "boxes that meet" in repr(boxes)


def test_names_that_nobody_can_check(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("a", "b"):
        root = zarr.open_group(tmp_path / name, mode="w", zarr_format=3)
        write(root, "my_field", np.zeros(4), (2,), ("time",))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        urls = [f"http://127.0.0.1:{server.server_port}/{name}" for name in ("a", "b")]
        with caplog.at_level(logging.WARNING, "headrace"):
            whole = hr.concat(urls, along="time")
            assert whole["my_field"].shape == (8,)
            hr.concat([str(tmp_path / "a"), str(tmp_path / "b")], along="time")
    finally:
        server.shutdown()
    told = [record.getMessage() for record in caplog.records if "concat along time" in record.getMessage()]
    assert len(told) == 1 and "cannot be listed" in told[0] and "consolidate the metadata" in told[0]
