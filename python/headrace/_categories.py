"""Which categories of obs the parts of a split have: atlases often lie sorted, and a cut in their order then leaves
whole categories to one part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace._samples import Samples

_MANY = 1 << 16  # categories: more are names of cells, of which no part has another's
_EXPECTED = 20  # cells of a category that a part has by its share: by chance none of them is as good as never missing


def counted(parts: list[Samples]) -> dict[str, tuple[Any, Any]]:
    """Of each column of the batch with categories: these, and how often each part has each (parts × categories)."""
    import numpy as np

    frame = parts[0].obs_columns
    if frame is None or any(part.obs_columns is not frame for part in parts):
        return {}
    found = {}
    for column in (frame[t["name"]] for t in parts[0].info["tables"] if t["name"] in frame):
        if column.categories is not None and len(column.categories) <= _MANY:
            n = len(column.categories)
            found[column.name] = column.categories, np.stack([_count(part, column.codes, n) for part in parts])
    return found


def _count(part: Samples, codes: Any, n: int) -> Any:
    import numpy as np

    return np.frombuffer(part._handle.count_codes(codes.dtype.name, np.ascontiguousarray(codes), n), np.int64)


def facts(parts: list[Samples]) -> list[dict[str, Any]]:
    """For the report: of each column how many categories there are in all parts together, and in each."""
    return [
        {"name": name, "categories": int(counts.any(axis=0).sum()), "parts": [int((c > 0).sum()) for c in counts]}
        for name, (_, counts) in counted(parts).items()
    ]


def warn_if_sorted(parts: list[Samples], names: tuple[str, ...], call: str) -> None:
    """Once for a call that cut runs in archive order: where a part lacks what every random one would have."""
    worst: tuple[int, str] = (0, "")
    for column, (categories, counts) in counted(parts).items():
        share = counts.sum(axis=1) / max(counts.sum(), 1)
        for name, own, of_all in zip(names, counts, share):
            lacking = (own == 0) & (counts.sum(axis=0) * of_all >= _EXPECTED)
            if lacking.sum() > worst[0]:
                shown = ", ".join(map(str, categories[lacking][:3])) + (", …" if lacking.sum() > 3 else "")
                of = int(counts.any(axis=0).sum())
                worst = int(lacking.sum()), f"{name} has no sample of {lacking.sum()} of the {of} of {column} ({shown})"
    if worst[0]:
        import warnings

        warnings.warn(
            f'{call}: {worst[1]}: the atlas lies sorted, and fractions alone cut it in that order. by="…" keeps groups '
            "whole, blocks=500, seed=0 deals runs of neighbours at random",
            RuntimeWarning,
            stacklevel=4,
        )
