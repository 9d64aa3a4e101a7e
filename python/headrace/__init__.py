"""Ready-to-train batches, streamed from scientific archives where they lie.

    import headrace as hr

    era5 = hr.open("era5.zarr")
    pairs = era5.samples(along="time", x=hr.view("t2m", time=hr.steps(-6, 0)), y=hr.view("t2m", time=hr.steps(6)))
    train, val = pairs.split(0.9, 0.1)
    for batch in train.batches(32, shuffle=True, seed=0, memory="2GiB"):
        x = batch["x"].torch()          # zero-copy; also .numpy(), .jax(), DLPack

`open` gives an `Archive`, `Archive.samples` says what one sample is, `Samples.batches` gives a `Loader`, which yields
`Batch` after `Batch`. Importing this package imports neither numpy nor any framework.
"""

from headrace._archive import Archive, Array, open
from headrace._axes import crop, draws, patch
from headrace._errors import (
    BudgetError,
    ClosedError,
    DataError,
    Error,
    ForkError,
    FormatError,
    InvalidError,
    InvalidTypeError,
    NotFoundError,
    OutOfRangeError,
    StateError,
    StoreError,
    TimeoutError,
    UnsupportedError,
)
from headrace._headrace import version as _version
from headrace._loader import Loader, configure
from headrace._samples import Samples
from headrace._select import View, lag, steps, view, window

__version__ = _version()

_LATER = {  # imported when they are asked for
    "Cells": "_obs",
    "Mix": "_mix",
    "Splits": "_splits",
    "cells": "_union",
    "combine": "_joined",
    "concat": "_joined",
    "csr": "_forms",
    "dense": "_forms",
    "from_xarray": "_xarray",
    "mix": "_mix",
    "padded": "_forms",
    "ranked": "_forms",
    "write_predictions": "_predictions",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module 'headrace' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"headrace.{_LATER[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})


TYPE_CHECKING = False
if TYPE_CHECKING:
    from headrace._forms import csr, dense, padded, ranked
    from headrace._joined import combine, concat
    from headrace._mix import Mix, mix
    from headrace._obs import Cells
    from headrace._predictions import write_predictions
    from headrace._splits import Splits
    from headrace._union import cells
    from headrace._xarray import from_xarray

__all__ = [
    "Archive",
    "Array",
    "BudgetError",
    "Cells",
    "ClosedError",
    "DataError",
    "Error",
    "ForkError",
    "FormatError",
    "InvalidError",
    "InvalidTypeError",
    "Loader",
    "Mix",
    "NotFoundError",
    "OutOfRangeError",
    "Samples",
    "Splits",
    "StateError",
    "StoreError",
    "TimeoutError",
    "UnsupportedError",
    "View",
    "cells",
    "combine",
    "concat",
    "configure",
    "crop",
    "csr",
    "dense",
    "draws",
    "from_xarray",
    "lag",
    "mix",
    "open",
    "padded",
    "patch",
    "ranked",
    "steps",
    "view",
    "window",
    "write_predictions",
]
