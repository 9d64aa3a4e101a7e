"""What one sample is, and which samples: `Samples`."""

from __future__ import annotations

from headrace._arguments import INT64, integer, mapping, real, refuse, refuse_type, text
from headrace._loader import Loader, open_loader
from headrace._select import View, lag, steps, window
from headrace._text import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from headrace._archive import Archive


def build(archive: Archive, along: object, views: dict[str, View | str]) -> Samples:
    if not isinstance(along, str):
        from headrace._errors import UnsupportedError

        raise UnsupportedError(
            f"along={along!r}: one sample axis, by name, is what this release reads; several axes, patches and crops "
            "come in a later one"
        )
    if not views:
        refuse("views", views, 'say what a sample takes, such as x=hr.view("t2m")')
    handle = archive._handle.samples(text("along", along))
    for name, view in views.items():
        if isinstance(view, str):
            view = View((view,), None, {}, {}, None, True)
        if not isinstance(view, View):
            refuse_type(name, view, "a view made by hr.view(…), or the name of an array, is expected")
        _add_view(handle, text("the name of a view", name), view)
    handle.count()  # freezes: what cannot be is an error here, not at the first use
    return Samples(handle, archive)


def _add_view(handle: Any, name: str, view: View) -> None:
    for array in view.arrays:
        text(name, array)
    handle.view(name, view.arrays, view.stack)
    for dim, value in view.sel.items():
        if not _add_steps(handle, name, dim, value):
            handle.sel(name, dim, to_json(value, f"view {name}: {dim}"))
    for dim, value in view.isel.items():
        if not _add_steps(handle, name, dim, value):
            _add_index(handle, name, dim, value)
    if view.dtype is not None:
        handle.dtype(name, view.dtype)
    if not view.decode:
        handle.decode(name, False)
    if view.transform:
        view.transform.apply(handle, name)


def _add_steps(handle: Any, name: str, dim: str, value: object) -> bool:
    if isinstance(value, steps):
        handle.steps(name, dim, value.first, value.last)
    elif isinstance(value, window):
        handle.window(name, dim, value.n)
    elif isinstance(value, lag):
        handle.lag(name, dim, value.duration)
    else:
        return False
    return True


def _add_index(handle: Any, name: str, dim: str, value: object) -> None:
    what = f"view {name}: isel[{dim!r}]"
    accepted = "an index, a slice or a list of indices is expected"
    if isinstance(value, slice):
        handle.isel_slice(name, dim, *_slice(what, value))
    elif isinstance(value, (list, tuple, range)) or getattr(value, "ndim", 0) == 1:
        handle.isel_list(name, dim, [integer(what, i) for i in value])  # type: ignore[attr-defined]
    else:
        handle.isel(name, dim, integer(what, value, accepted=accepted))


def _slice(what: str, value: slice) -> tuple[int | None, int | None, int]:
    """start, stop and step, which counts up; ends as far out as anybody likes."""
    ends = [None if end is None else integer(what, end, -(2**200), 2**200) for end in (value.start, value.stop)]
    start, stop = (None if end is None else max(-INT64, min(end, INT64)) for end in ends)
    return start, stop, 1 if value.step is None else integer(f"{what}: step", value.step, 1)


class Samples:
    """Immutable: `sel`, `isel` and `split` give new ones. `batches` opens a loader."""

    def __init__(self, handle: Any, archive: Archive) -> None:
        self._handle = handle
        self.archive = archive
        self._info: dict[str, Any] | None = None

    @property
    def info(self) -> dict[str, Any]:
        """Views with their shapes and types, and the range of ids, as plain dicts and lists."""
        if self._info is None:
            import json

            self._info = json.loads(self._handle.json())
        return self._info

    @property
    def along(self) -> str:
        """The sample axis."""
        return str(self.info["along"])

    def __len__(self) -> int:
        return int(self._handle.count())

    @property
    def ids(self) -> Any:
        """Sample ids, ascending: numpy int64 of shape (len,). An id is a position on the sample axis."""
        import numpy as np

        return np.frombuffer(self._handle.ids(0, len(self)), np.int64)

    def isel(self, indexers: dict[str, slice] | None = None, **named: slice) -> Samples:
        """Keep the samples whose id lies in a slice of the sample axis: ``isel(time=slice(0, 1000))``."""
        value = self._one("isel", indexers, named)
        if not isinstance(value, slice):
            refuse_type(f"isel: {self.along}", value, "a slice of sample ids is expected")
        return Samples(self._handle.keep(*_slice(f"isel: {self.along}", value)), self.archive)

    def sel(self, indexers: dict[str, object] | None = None, **named: object) -> Samples:
        """Keep the samples whose own coordinate fits: ``sel(time=slice("1990", "2020"))``, both ends included.

        Windows of the samples that are left may reach outside the selection.
        """
        value = to_json(self._one("sel", indexers, named), f"sel: {self.along}")
        return Samples(self._handle.keep_labels(value), self.archive)

    def where(self, condition: object) -> Samples:
        """Masks and conditions come in a later release."""
        from headrace._errors import UnsupportedError

        raise UnsupportedError("where: masks and conditions come in a later release; sel and isel select by range")

    def _one(self, call: str, given: Any, named: dict[str, Any]) -> Any:
        indexers = {**mapping(f"{call}: indexers", given, "a dict by dimension is expected"), **named}
        if list(indexers) != [self.along]:
            from headrace._errors import InvalidError

            raise InvalidError(
                f"{call} chooses samples along {self.along}, not along {', '.join(indexers) or 'nothing'}: to take a "
                "part of each sample, select in hr.view"
            )
        return indexers[self.along]

    def split(self, *fractions: float, gap: int | str = "auto") -> tuple[Samples, ...]:
        """Cut into contiguous runs in archive order, at block borders nearest the fractions.

        Parameters
        ----------
        fractions
            Adding up to at most 1.
        gap
            Samples dropped between runs; "auto" drops the fewest such that no two runs' windows share a row.
        """
        if isinstance(gap, str) and gap != "auto":
            refuse("split: gap", gap, "a number of samples, or 'auto', is expected")
        between = -1 if isinstance(gap, str) else integer("split: gap", gap, 0)
        accepted = "a fraction, above 0 and at most 1, is expected"
        shares = [real("split: fraction", f, accepted) for f in fractions]
        for share in shares:
            if not 0 < share <= 1:
                refuse("split: fraction", share, accepted)
        return tuple(Samples(h, self.archive) for h in self._handle.split(shares, between))

    def batches(
        self,
        n: int | None = None,
        *,
        global_batch: int | None = None,
        shuffle: bool | str = False,
        seed: int | None = None,
        memory: int | str | None = None,
        spread: int | None = None,
        block: int | None = None,
        streams: int | None = None,
        rank: int | None = None,
        world: int | None = None,
        replicas: int = 1,
        remainder: str | None = None,
        weights: object = None,
        stratify: object = None,
        dtype: object = None,
        missing: str = "fill",
        on_error: str = "raise",
        order: int | None = None,
    ) -> Loader:
        """Open a loader. Plans, and reads no chunk before the first batch is asked for.

        Parameters
        ----------
        n, global_batch
            Rows a batch on this rank, or over all ranks: exactly one of the two.
        shuffle
            False: archive order. True: the spread order, which needs `spread` blocks open and represents the archive
            better than independent draws. "global": an exact permutation, for what fits the budget.
        seed
            Of the order (default 0). Everything is a pure function of (seed, epoch, position).
        memory
            Budget in bytes, or a text such as "4GiB". Default: a quarter of what the process may use, at most 4 GiB.
        spread, block
            Blocks open at any moment (default 16), and anchor chunk cells a block (default: from geometry).
        streams
            Canonical sequences of an epoch (default: the world size). Any world that divides it sees the same batches.
        rank, world, replicas
            This process among all; default: torch.distributed, JAX, or the variables RANK and WORLD_SIZE. `replicas`
            neighbouring ranks get the same data.
        remainder
            "drop", "pad" (with ``batch.valid``), "short" or "wrap"; default: "drop" when shuffling, else "pad" on
            several ranks and "short" on one.
        dtype
            Type of the tensors of views without one of their own.
        missing
            What stands for chunks that do not exist: "fill", "nan", or "error".
        on_error
            "raise", or "mask": rows of a chunk that cannot be read stay, filled, with ``batch.valid`` False.
        order
            Version of the order; default: the newest.
        """
        return open_loader(
            self,
            n=n, global_batch=global_batch, shuffle=shuffle, seed=seed, memory=memory, spread=spread, block=block,
            streams=streams, rank=rank, world=world, replicas=replicas, remainder=remainder, weights=weights,
            stratify=stratify, dtype=dtype, missing=missing, on_error=on_error, order=order,
        )  # fmt: skip

    def __repr__(self) -> str:
        from headrace._report import samples_text

        return samples_text(self.info)

    def _repr_html_(self) -> str:
        from headrace._report import samples_html

        return samples_html(self.info)
