"""Bins of samples that batches hold in their shares, from what `stratify=` is given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace._arguments import refuse
from headrace._codes import joined_codes
from headrace._columns import Column, column

if TYPE_CHECKING:
    from headrace._samples import Samples

_MOST = 1024
_ACCEPTED = "the name of a coordinate or of a part of its dates, a list of names, or an array of bins is expected"


def strata_of(samples: Samples, given: object) -> tuple[Any, int, list[Column]]:
    """The bin of each position (uint16), how many there are, and the columns that they are made of."""
    import numpy as np

    names = isinstance(given, (list, tuple)) and 0 < len(given) < samples.info["axis"]
    parts: list[Any] = list(given) if names and all(isinstance(x, str) for x in given) else [given]  # type: ignore[call-overload,attr-defined]
    columns: list[Column] = []
    all_codes: list[tuple[Any, int]] = []
    for part in parts:
        found = column(samples, "stratify", part)
        different, each = found.classes()
        if len(different) > _MOST:
            refuse(
                f"stratify: {found.name}",
                f"{len(different)} different values",
                f"at most {_MOST} bins are expected; make some of them, as np.digitize(values, edges)",
            )
        columns.append(found)
        all_codes.append((each, len(different)))
    codes, count = all_codes[0] if len(parts) == 1 else joined_codes(all_codes)  # only what is there
    if count > _MOST:
        refuse("stratify", given, f"together they have {count} bins, and at most {_MOST} are expected")
    return np.ascontiguousarray(codes.reshape(-1), np.uint16), count, columns
