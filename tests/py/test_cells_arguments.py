"""What is no argument of cells, in every place of it: refused in one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as hr
from atlases import atlas, pd, write

JUNK: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 5, 2**31, 2**63, 2**64, 1.5, float("nan"), float("inf"), "", "x", "g1", b"x", [], ["g1"],
    ["g1", "g1"], ["zz"], [1], [None], [True] * 10, np.ones(10, bool), np.zeros(10, bool), np.arange(10), np.arange(10) - 5.0,
    np.full(10, 2**62), np.array(["g1"], object), np.ones((10, 2)), {}, {"g1": 1}, {"g1": -5}, {"g1": 1.5}, {"g1": "a"},
    {"g1": None}, {"g1": 2**63}, {"g1": float("inf")}, {1: 1}, pd.Series({"g1": 3}), pd.Series([True] * 10, dtype="boolean"),
    pd.Index(["g1", "g2"]), object(), np.dtype("f4"), "float32", "bool",
)  # fmt: skip


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write(atlas(40, 10), tmp_path_factory.mktemp("a") / "a.zarr")


def answered(what: str, call: Callable[..., Any], **given: Any) -> None:
    """The call with it."""
    try:
        call(**given)
    except hr.Error as e:
        assert "\n" not in str(e) and len(str(e)) < 700, what
    except Exception as e:
        pytest.fail(f"{what}: {type(e).__name__}: {e}")


@pytest.mark.parametrize("value", JUNK, ids=lambda v: repr(v)[:30].replace("\n", " ").partition(" at 0x")[0])
def test_whatever_is_given_is_taken_or_refused(path: str, value: Any) -> None:
    archive = hr.open(path)
    cells = archive.cells()
    plain = (
        "X",
        "layer",
        "obs",
        "obsm",
        "genes",
        "var",
        "missing",
        "group",
        "dtype",
        "normalize",
        "log1p",
        "row_chunk",
    )
    places: dict[Callable[..., Any], tuple[str, ...]] = {
        lambda **o: first(archive.cells(**o)): plain,
        lambda **o: first(archive.cells(hr.padded(4, **o))): ("pick", "bins", "tokens", "cls", "pad", "pad_value"),
        lambda **o: first(archive.cells(hr.ranked(4, **o))): ("factors", "tokens", "cls", "eos", "pad", "index_dtype"),
        lambda **o: first(hr.cells([path, path], **o)): ("join", "obs", "layer", "dataset", "dtype"),
        cells.where: ("cell_type", "n_genes", "age", "treated", "donor", "stage", "score", "nope"),
    }
    for call, names in places.items():
        for name in names:
            answered(f"{name}={value!r}", call, **{name: value})
    for name in ("weights", "stratify"):
        answered(f"{name}={value!r}", cells.batches, n=4, shuffle=True, **{name: {"cell_type": value}})


def first(samples: Any) -> Any:
    return next(iter(samples.batches(16)))


@pytest.mark.parametrize(
    ("tokens", "says"),
    [({"g1": 1.5}, r"tokens\['g1'\]=1.5: an integer"), ({"g1": "7"}, r"tokens\['g1'\]='7': an integer"),
     ({"g1": 2**63}, r"tokens\['g1'\]=9223372036854775808: an integer")],
)  # fmt: skip
def test_tokens_are_integers_and_not_rounded_to_them(path: str, tokens: Any, says: str) -> None:
    for form in (hr.padded(4, tokens=tokens), hr.ranked(4, tokens=tokens)):
        with pytest.raises(hr.Error, match=says):
            hr.open(path).cells(form)
