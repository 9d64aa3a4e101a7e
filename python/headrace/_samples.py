"""What one sample is, and which samples: `Samples`."""

from __future__ import annotations

from headrace._arguments import INT64, integer, mapping, near, refuse, refuse_type, text
from headrace._axes import add_axes, crop, patch
from headrace._errors import InvalidError, NotFoundError
from headrace._loader import open_loader
from headrace._select import ARGUMENTS, View, lag, steps, window
from headrace._text import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from headrace._archive import Archive
    from headrace._coords import Coordinates
    from headrace._frame import Frame
    from headrace._loader import Loader
    from headrace._moments import Moments
    from headrace._splits import Splits


class Added:
    """What adds a view of its own kind to samples: rows of a sparse matrix, a table."""

    def add(self, handle: Any, name: str) -> None:
        raise NotImplementedError


def build(archive: Archive, along: object, views: dict[str, View | str], kind: type[Samples] | None = None) -> Samples:
    if not views:
        refuse("views", views, 'say what a sample takes, such as x=hr.view("t2m")')
    handle = archive._handle.samples(None)
    axes = add_axes(handle, along)
    for name, view in views.items():
        if isinstance(view, str):
            view = View((view,), None, {}, {}, None, True)
        if isinstance(view, Added):
            view.add(handle, text("the name of a view", name))
            continue
        if not isinstance(view, View):
            refuse_type(name, view, "a view made by hr.view(…), or the name of an array, is expected")
        _add_view(handle, text("the name of a view", name), view, archive, axes)
    handle.count()  # freezes: what cannot be is an error here, not at the first use
    return (kind or Samples)(handle, archive, (along, dict(views)))


def _add_view(handle: Any, name: str, view: View, archive: Archive, axes: dict[str, Any]) -> None:
    for array in view.arrays:
        text(name, array)
    joined = None if view.join is None else _joined(view, name, archive, axes)
    elsewhere = joined is not None and not any(dim in axes for dim in archive[view.arrays[0]].dims)
    handle.view(name, view.arrays, view.stack, view.constant or elsewhere)
    if joined is not None and view.join is not None:
        handle.join(name, *joined, view.join.left, view.join.tolerance)
    if view.scale is not None:
        for dim, scale in _scales(view, archive, axes).items():
            handle.scale(name, dim, scale.numerator, scale.denominator)
    for dim, value in view.sel.items():
        try:
            if not _add_steps(handle, name, dim, value):
                handle.sel(name, dim, to_json(value, f"view {name}: {dim}"))
        except NotFoundError as error:
            raise _meant(error, dim, archive[view.arrays[0]].dims) from None
    for dim, value in view.isel.items():
        if not _add_steps(handle, name, dim, value):
            _add_index(handle, name, dim, value)
    if view.dtype is not None:
        handle.dtype(name, view.dtype)
    if not view.decode:
        handle.decode(name, False)
    if view.transform:
        view.transform.apply(handle, name)


def _meant(error: NotFoundError, dim: str, dims: Any) -> NotFoundError:
    """A name that is no dimension is perhaps an argument of `view`."""
    meant = "" if dim in dims or "did you mean" in str(error) else near(dim, ARGUMENTS)
    return NotFoundError(f"{error}{meant.replace('mean', 'mean the argument')}") if meant else error


def _joined(view: View, name: str, archive: Archive, axes: dict[str, Any]) -> tuple[str, str | None]:
    """The dimension that is joined, and the sample axis it is laid on."""
    join: Any = view.join
    dims = [str(dim) for dim in archive[view.arrays[0]].dims if dim in axes]
    if join.dim is not None:
        return join.dim, join.axis
    if len(dims) != 1:
        path, has = view.arrays[0], ", ".join(map(str, archive[view.arrays[0]].dims))
        there = f"several sample axes ({', '.join(dims)})" if dims else f"none of the sample axes ({', '.join(axes)})"
        write = f'"{dims[0]}"' if dims else f'{{"{archive[path].dims[0]}": "{next(iter(axes))}"}}'
        raise InvalidError(
            f"view {name}: {path} ({has}) has {there}: say which of its dimensions is joined, such as on={write}"
        )
    return dims[0], None


def _scales(view: View, archive: Archive, axes: dict[str, Any]) -> dict[str, Any]:
    """By dimension: one number is for the patch and crop axes that the arrays have; without any, for all."""
    if isinstance(view.scale, dict):
        return view.scale
    dims = [dim for dim in archive[view.arrays[0]].dims if dim in axes]
    boxes = [dim for dim in dims if isinstance(axes[dim], (patch, crop))]
    return {str(dim): view.scale for dim in boxes or dims}


def _add_steps(handle: Any, name: str, dim: str, value: object) -> bool:
    if isinstance(value, (steps, window)) and value.gaps is not None:
        handle.gaps(name, dim, value.gaps)
    if isinstance(value, steps):
        handle.steps(name, dim, value.first, value.last, value.step)
    elif isinstance(value, window):
        handle.window(name, dim, value.n)
    elif isinstance(value, lag):
        handle.lag(name, dim, value.duration, value.tolerance)
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


def _positions(what: str, values: Any, length: int) -> Any:
    """int64 positions of a list of indices, which may count from the end."""
    if getattr(getattr(values, "dtype", None), "kind", "") in ("i", "u") and len(values):
        import numpy as np

        outside = (values < -length) | (values >= length)
        if outside.any():
            integer(what, values[outside][0], -length, length - 1)
        return np.ascontiguousarray(np.where(values < 0, values + length, values), np.int64)
    import array

    whole = [integer(what, i, -length, length - 1) for i in values]
    return array.array("q", [i + length if i < 0 else i for i in whole])


def _same(other: object) -> Samples:
    if not isinstance(other, Samples):
        refuse_type("samples", other, "samples derived from the same description are expected")
    return other


class Samples:
    """Immutable: `sel`, `isel`, `where`, `split` and `folds` give new ones, as do ``a & b``, ``a | b`` and ``a - b`` of
    samples derived from one description. `batches` opens a loader. Pickled, they are the description and the ids: where
    they are unpickled the archive is opened anew."""

    def __init__(self, handle: Any, archive: Archive, described: tuple[Any, dict[str, Any]]) -> None:
        self._handle = handle
        self.archive = archive
        self._described = described  # the sample axis and the views, as they were given
        self._info: dict[str, Any] | None = None
        self._coords: Coordinates | None = None

    @property
    def obs_columns(self) -> Frame | None:
        """Columns of obs, of samples that are cells: names for conditions, groups, weights and strata."""
        return None

    def _derived(self, handle: Any) -> Samples:
        return Samples(handle, self.archive, self._described)

    def _again(self) -> tuple[Any, tuple[Any, ...]]:
        """What makes them anew of the archive, these arguments, and packed ids."""
        from headrace._pickle import unpack

        return unpack, self._described

    def __reduce__(self) -> tuple[Any, ...]:
        from headrace._pickle import pack

        make, arguments = self._again()
        return make, (self.archive, *arguments, pack(self._handle))

    @property
    def info(self) -> dict[str, Any]:
        """Views with their shapes and types, and the range of ids, as plain dicts and lists."""
        if self._info is None:
            import json

            self._info = json.loads(self._handle.json())
        return self._info

    @property
    def along(self) -> str:
        """The sample axis; of several, the first."""
        return str(self.info["along"])

    @property
    def axes(self) -> dict[str, dict[str, Any]]:
        """What samples run along, by name, in the order of ids: kind, n (positions), length, size, stride, …"""
        return {axis["name"]: axis for axis in self.info["axes"]}

    def positions(self, ids: Any = None) -> dict[str, Any]:
        """By axis, the positions of `ids` (default: all of these samples): numpy int64."""
        from headrace._axes import positions

        return positions(self.info, self.ids if ids is None else ids)

    def __len__(self) -> int:
        return int(self._handle.count())

    @property
    def ids(self) -> Any:
        """Sample ids, ascending: numpy int64 of shape (len,). An id is a position on the sample axis."""
        import numpy as np

        return np.frombuffer(self._handle.ids(0, len(self)), np.int64)

    @property
    def coords(self) -> Coordinates:
        """One-dimensional arrays along a sample axis, by name: ``samples.coords["station"][batch.index.numpy()]``.
        Times are decoded; parts of dates are there too (``coords["time.month"]``). Read once, when asked for."""
        if self._coords is None:
            from headrace._coords import Coordinates

            twin = self._derived(self._handle)  # not self: a circle would keep the archive open for a while
            twin._info = self.info
            self._coords = Coordinates(twin)
        return self._coords

    def isel(self, indexers: dict[str, object] | None = None, **named: object) -> Samples:
        """Keep the samples whose position lies in a slice of a sample axis, or in a list: ``isel(time=slice(0, 9))``.

        A list keeps what is there of it, in archive order.
        """
        handle = self._handle
        for axis, value in self._by_axis("isel", indexers, named).items():
            what = f"isel: {axis}"
            if isinstance(value, slice):
                handle = handle.keep(*_slice(what, value), axis)
                continue
            if not isinstance(value, (list, tuple, range)) and getattr(value, "ndim", 0) != 1:
                value = [integer(what, value, accepted="a slice, or a list of indices, is expected")]
            handle = handle.take(_positions(what, value, self.axes[axis]["n"]), axis)
        return self._derived(handle)

    def sel(self, indexers: dict[str, object] | None = None, **named: object) -> Samples:
        """Keep the samples whose own coordinate fits: ``sel(time=slice("1990", "2020"))``, both ends included.

        Windows of the samples that are left may reach outside the selection.
        """
        handle = self._handle
        for axis, value in self._by_axis("sel", indexers, named).items():
            handle = handle.keep_labels(to_json(value, f"sel: {axis}"), axis)
        return self._derived(handle)

    def where(self, condition: object = None, /, **named: object) -> Samples:
        """Keep the samples for which a condition holds.

        Parameters
        ----------
        condition
            A boolean array with a value for each position of the sample axis (of several axes: of their shape, or one
            that broadcasts to it); sample ids, in any order; or a function that gets the coordinates and gives such a
            boolean array: ``where(lambda c: c["time.month"] == 6)``. Or a text over columns of obs, or over arrays
            along the sample axis: ``where("cell_type == 'B cell' and n_genes > 200")`` (docs/cells.md). Or a dict of
            conditions by name, for names that are no identifiers.
        named
            Conditions by name, all of which must hold: a sample axis itself, as in `sel`; any other one-dimensional
            array along one; a part of its dates (year, month, day, hour, minute, second, dayofyear, dayofweek, quarter,
            season) or of another array's ("valid_time.month"). Each takes a value, a list, or a slice with both ends
            included.

        >>> train.where(month=[1, 2], hour=0)                              # doctest: +SKIP
        >>> train.where(lambda c: c["time.hour"] < 12)                     # doctest: +SKIP

        What is kept is held as bits: 12.5 MB for 10⁸ positions.
        """
        from headrace._where import where

        return self._derived(where(self, condition, dict(named)))

    def foreground(self, label: str, share: float = 0.01, values: object = None) -> Samples:
        """Keep the patches of which at least `share` lies in the foreground of a label:
        ``tiles.foreground("labels/nuclei/3", share=0.05)``.

        Parameters
        ----------
        label
            Path of the label, at any level of its pyramid: a coarse one reads little. All of its dimensions are sample
            axes.
        share
            Of the patch's area inside the array, counted on the label's own grid.
        values
            What is foreground: a value or a list of them; default: everything but 0.
        """
        from headrace._foreground import foreground

        return self._derived(foreground(self, label, share, values))

    def apart(self, other: Samples, gap: int | str = "auto") -> Samples:
        """Drop the samples too near one of `other`: whose windows share a row with it ("auto"), that are at most `gap`
        positions away, or a duration such as "5D"."""
        from headrace._splits import _gap

        return self._derived(self._handle.apart(_same(other)._handle, _gap(self, gap, self.along)))

    def __and__(self, other: Samples) -> Samples:
        return self._derived(self._handle.combine(_same(other)._handle, 0))

    def __or__(self, other: Samples) -> Samples:
        return self._derived(self._handle.combine(_same(other)._handle, 1))

    def __sub__(self, other: Samples) -> Samples:
        return self._derived(self._handle.combine(_same(other)._handle, 2))

    def _by_axis(self, call: str, given: Any, named: dict[str, Any]) -> dict[str, Any]:
        indexers = {**mapping(f"{call}: indexers", given, "a dict by dimension is expected"), **named}
        others = [name for name in indexers if name not in self.axes]
        if others or not indexers:
            raise InvalidError(
                f"{call} chooses samples along {' × '.join(self.axes)}, not along {', '.join(others) or 'nothing'}: to "
                "take a part of each sample, select in hr.view"
            )
        return indexers

    def split(
        self,
        *fractions: float | dict[str, Any],
        gap: int | str = "auto",
        by: object = None,
        blocks: int | str | None = None,
        seed: int | None = None,
        along: str | None = None,
        **named: Any,
    ) -> Splits:
        """Cut into parts that share no sample, and no row through their windows.

        Parameters
        ----------
        fractions, named
            ``split(0.8, 0.1, 0.1)``, or with names ``split(train=0.8, val=0.2)``, also as a dict: runs in archive
            order, cut at block borders nearest the fractions, which add up to at most 1. Or by a coordinate:
            ``split(time={"train": slice("1979", "2015"), "test": slice("2018", None)})``, or a list of slices and
            labels; any name that `where` takes.
        gap
            What is dropped between parts: "auto" drops the fewest samples such that no two parts' windows share a row;
            a number of positions, or a duration such as "5D". The part named earlier gives way.
        by
            Groups that stay whole: the name of an array along the sample axis or of a part of its dates
            ("time.year"), or an array with a value for each position. Which group goes where is keyed by `seed`.
        blocks
            Cut into that many runs (a text: runs of that duration), which are dealt to the parts in turn, or, with
            `seed`, in a keyed order.
        along
            The axis that is cut, where there are several; default: the first.
        """
        from headrace._splits import split

        return split(self, fractions, named, gap, by, blocks, seed, along)

    def folds(
        self,
        k: int,
        *,
        gap: int | str = "auto",
        by: object = None,
        blocks: int | str | None = None,
        seed: int | None = None,
        along: str | None = None,
    ) -> Iterator[Splits]:
        """k pairs (train, val): each sample is in one val. `gap` is taken from train.

        Without `by` and `blocks` the val parts are runs in archive order; those as in `split`.

        >>> for fit, val in train.folds(4, gap="1D"):                      # doctest: +SKIP
        ...     loaders = fit.batches(8, shuffle=True), val.batches(8)
        """
        from headrace._splits import folds

        return folds(self, k, gap, by, blocks, seed, along)

    def moments(
        self,
        view: str | None = None,
        by: str = "array",
        *,
        memory: int | str | None = None,
        cache: bool = True,
        progress: bool | None = None,
    ) -> Moments:
        """Count, mean, standard deviation, least and greatest of a view's values over these samples, for
        ``hr.view(…, normalize=…)``.

        One pass in archive order that reads each chunk once. Values count at the samples' own positions, once each,
        whatever windows the view has; after decoding and its affine, log1p and clip. NaN is no value.

        Parameters
        ----------
        view
            Its name; default: the first.
        by
            "array": one number for each stacked array. "channel": for each position along the stack, or a dimension
            called channel, c, band or variable. "grid": for each place of a sample.
        memory
            Budget of the pass, as for `batches`.
        cache
            Keep the result in ``~/.cache/headrace`` (or ``$XDG_CACHE_HOME``), and take it from there when archive, view
            and split are the same. Chunks that change under metadata that do not are not noticed.
        progress
            Whether a line on stderr shows how far it is; default: where stderr is a terminal.
        """
        from headrace._moments import moments

        return moments(self, view, by, memory, cache, progress)

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
        steps: int | None = None,
        weights: object = None,
        stratify: object = None,
        dtype: object = None,
        missing: str = "fill",
        on_error: str = "raise",
        order: int | None = None,
        transform: Callable[[Any], Any] | None = None,
        transform_workers: int = 2,
        native: object = None,
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
            Blocks open at any moment (default 16; of single cells 16 to 40, by their row chunks' size), and anchor
            chunk cells a block (default: from geometry).
        streams
            Canonical sequences of an epoch (default: the world size). Any world that divides it sees the same batches.
        rank, world, replicas
            This process among all; default: torch.distributed, Ray Train, JAX or mpi4py where they run, or the
            variables of torchrun, MPI and SLURM. `replicas` neighbouring ranks, such as those of one tensor- or
            pipeline-parallel group, get the same data.
        remainder
            "drop", "pad" (with ``batch.valid``), "short" or "wrap"; default: "drop" when shuffling, else "pad" on
            several ranks and "short" on one.
        steps
            Steps of an epoch; default: those of one pass over the samples. Passes then follow each other without a
            break, and ``batch.epoch`` and ``batch.step`` still count passes and steps in them.
        weights
            How often each sample appears in an epoch, on average (docs/weights.md): a number from 0 on for each
            position of the sample axis, the name of an array that holds them, or by class:
            ``{"label": {"rare": 20, "common": 1}}``, ``{"label": "balanced"}``. Fractions are chances, drawn anew in
            each epoch.
        stratify
            Bins that each batch holds close to the shares of the split (docs/weights.md): a name that `where` takes
            ("month", "hour", "label"), a list of names, or an array with a bin for each position. Needs shuffle=True.
        dtype
            Type of the tensors of views without one of their own.
        missing
            What stands for chunks that do not exist: "fill", "nan" (not of cells), or "error".
        on_error
            "raise", or "mask": rows of a chunk that cannot be read stay, filled, with ``batch.valid`` False.
        order
            Version of the order; default: the newest.
        transform, transform_workers
            A function of a batch, called on that many threads: what comes back is ``loader.map(transform, …)``.
        native
            A native function that workers run on each batch before it is handed over: the address of a ``hr_hook`` (see
            headrace.h), a numba ``cfunc`` or a ctypes function.
        """
        return open_loader(
            self,
            n=n, global_batch=global_batch, shuffle=shuffle, seed=seed, memory=memory, spread=spread, block=block,
            streams=streams, rank=rank, world=world, replicas=replicas, remainder=remainder, weights=weights,
            steps=steps, stratify=stratify, dtype=dtype, missing=missing, on_error=on_error, order=order,
            transform=transform, transform_workers=transform_workers, native=native,
        )  # fmt: skip

    def ray(self, n: int, **options: Any) -> Any:
        """A ``ray.data.Datasource``, for ``ray.data.read_datasource``: these samples once, in archive order, read by as
        many tasks as Ray likes, on whichever machines; for predictions over a cluster.

        Each task opens the archive and reads a contiguous share. Rows have a column for each view, and ``index``, the
        sample ids.

        Parameters
        ----------
        n
            Rows a block.
        options
            Of `batches`, for each task: `memory`, `dtype`, `missing`, `on_error` ("mask" adds a column ``valid``).

        For example::

            rows = ray.data.read_datasource(samples.ray(32))
            rows.map_batches(predict, batch_format="numpy").write_parquet("predictions")
        """
        from headrace._ray import datasource

        return datasource(self, n, options)

    def __repr__(self) -> str:
        from headrace._report import samples_text

        return samples_text(self.info)

    def _repr_html_(self) -> str:
        from headrace._report import samples_html

        return samples_html(self.info)
