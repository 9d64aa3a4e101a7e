"""`open` and the opened archive."""

from __future__ import annotations

from headrace import _headrace
from headrace._arguments import flag, mapping, text
from headrace._samples import Samples, build
from headrace._select import View
from headrace._text import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Iterable
    from typing import Any

    from headrace._forms import Form
    from headrace._obs import Cells


def open(url: str | os.PathLike[str] | Any, storage_options: dict[str, Any] | None = None) -> Archive:
    """Open the archive at a path or URL, or in a store object. Reads metadata only.

    Parameters
    ----------
    url
        Directory of a Zarr v2 or v3 hierarchy, or its URL (``file://``, ``http://``, ``https://``, ``s3://``, ``gs://``,
        ``az://``). Or an object that gives bytes for keys: a zarr Store of zarr-python 3, or a mapping, such as
        fsspec's ``fs.get_mapper(…)``.
    storage_options
        Options of the store; an unknown one is an error that suggests the nearest. For store objects: ``concurrency``,
        reads under way at once (64).

    Raises `NotFoundError` (a `KeyError`) when there is no archive, `FormatError` when its metadata is broken, and
    `StoreError` (an `OSError`) when the store refuses.
    """
    path = getattr(url, "__fspath__", None)
    if path is not None:
        url = path()
    options = mapping("storage_options", storage_options, "a dict of the store's options is expected")
    if not isinstance(url, str) and hasattr(url, "get"):
        from headrace._store import open_store

        archive = open_store(url, options)
    else:
        url = text("url", url, "a path, a URL, a zarr Store or a mapping is expected")
        handle = _headrace.open(url, to_json(options, "storage_options") if options else None)
        archive = Archive(handle, _shown(url))
    archive._origin = Origin(url, dict(options))
    return archive


def _shown(url: str) -> str:
    """Without user, password and query. Before the @ of abfs:// there is a container."""
    scheme, marks, rest = url.partition("://")
    if not marks:
        return url
    place, slash, path = rest.partition("?")[0].partition("/")
    user, at, host = place.rpartition("@")
    if at and (":" in user or scheme in ("http", "https")):
        place = host
    return f"{scheme}://{place}{slash}{path}"


class Origin(tuple):  # type: ignore[type-arg]
    """What opened an archive, secrets among it: for pickles, and not to be shown."""

    __slots__ = ()

    def __new__(cls, *arguments: Any) -> Origin:
        return super().__new__(cls, arguments)

    def __repr__(self) -> str:
        return "<what it was opened with>"


class Archive:
    """An opened hierarchy of arrays. Prints as a tree; ``archive["t2m"]`` is one array. Pickled, it is what `open` was
    given, options and all, and is opened anew."""

    def __init__(self, handle: Any, url: str) -> None:
        self._handle = handle
        self.url = url
        self._info: dict[str, Any] | None = None
        self._origin: tuple[Any, ...] | None = None  # what open() was given …
        self._again: Any = open  # … or another function that makes it

    def __reduce__(self) -> tuple[Any, ...]:
        if self._origin is None:
            from headrace._errors import UnsupportedError

            raise UnsupportedError("pickle: this archive was not opened by hr.open: nothing says how to open it again")
        return self._again, tuple(self._origin)

    @property
    def info(self) -> dict[str, Any]:
        """Everything known of the archive, as plain dicts and lists (see `docs/reports.md`)."""
        if self._info is None:
            import json

            self._info = json.loads(self._handle.json())
        return self._info

    @property
    def attributes(self) -> dict[str, Any]:
        """Attributes of the root."""
        return dict(self.info.get("attributes") or {})

    @property
    def arrays(self) -> list[str]:
        """Paths of all arrays."""
        return [n["path"] for n in self.info["nodes"] if n["kind"] == "array"]

    def __iter__(self) -> Any:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)

    def __contains__(self, path: object) -> bool:
        return path in self.arrays

    def __getitem__(self, path: str) -> Array:
        """One array. Raises `NotFoundError` (a `KeyError`) naming near matches."""
        import json

        name = text("archive[…]", path, "the path of an array, as str, is expected")
        return Array(self, json.loads(self._handle.array(name)))

    def samples(self, views: dict[str, View | str] | None = None, *, along: Any, **named: View | str) -> Samples:
        """Say what one sample is.

        Parameters
        ----------
        along
            The sample axes. The name of a dimension: one sample for each of its positions. A list of names: one for
            each combination (``["time", "member"]``). A dict by dimension, of None (each position), `patch`, `crop`
            or, for an axis of its own, `draws`: ``{"z": None, "y": hr.patch(256), "x": hr.patch(256)}``. Sample ids
            are row-major over the axes, in this order.
        views, named
            One tensor each, by name: a `view`, or the name of an array to take whole. `views` is for names that are no
            identifiers.

        >>> archive.samples(along="time", x=hr.view("t2m", time=hr.steps(-1, 0)), y="t2m")  # doctest: +SKIP
        """
        return build(self, along, {**mapping("views", views, "a dict of views by name is expected"), **named})

    def cells(
        self,
        X: str | Form = "csr",
        *,
        layer: str | None = None,
        obs: Iterable[str] = (),
        obsm: Iterable[str] = (),
        neighbors: dict[str, int] | None = None,
        genes: object = None,
        var: str | None = None,
        missing: str = "raise",
        group: str = "",
        dtype: object = None,
        normalize: float | None = None,
        normalize_over: str = "all",
        log1p: bool = False,
        row_chunk: int | None = None,
    ) -> Cells:
        """Samples of an atlas of single cells: AnnData in Zarr, a collection of annbatch, or SCDL. One
        sample is one cell.

        Parameters
        ----------
        X
            What a batch has of the matrix: "csr", "dense", or `csr`, `dense`, `padded`, `ranked` with their options.
        layer
            The name of a layer, or "raw"; default: X.
        obs
            Columns of obs for every batch: categories and texts as integer codes (-1: missing), of which
            ``samples.obs["cell_type"].categories`` is the dictionary; numbers as they are.
        obsm
            Arrays of obsm, whose rows are to be in every batch.
        neighbors
            Matrices of obsp, and how many neighbours of each cell are drawn, by weight, anew in each epoch:
            ``{"connectivities": 8}`` gives tensors ``connectivities.cells`` (ids of cells, -1 where there are fewer),
            ``connectivities.weights`` and ``connectivities.mask``. Of SCDL the name is "neighbors".
        genes
            Names or positions, in the order of the columns that are wanted, or a boolean for each gene; default: all.
            Of SCDL without features: how many there are.
        var
            The column of var that names genes, such as "gene_ids"; default: its index.
        missing
            "raise" if there is no gene of such a name; "ignore" keeps its column, without values.
        group
            Where in the archive it is, such as "mod/rna".
        dtype
            Of values; default: as stored, float32 where something is done to them.
        normalize
            Scale the values of a cell to this total, such as 1e4: of all its genes (``normalize_over="all"``), or of
            those that are taken ("genes").
        log1p
            Then log(1 + value).
        row_chunk
            Cells that are read together; default: chosen so that little is read twice.

        For example::

            samples = hr.open("atlas.zarr").cells(obs=["cell_type"])
            for batch in samples.batches(64, shuffle=True):
                batch["X"].torch(), batch["cell_type"].torch()
        """
        from headrace._union import cells_of, named_counts, names_of

        return cells_of(self, {
            "X": X, "layer": layer, "obs": names_of("obs", obs), "obsm": names_of("obsm", obsm),
            "neighbors": named_counts(neighbors),
            "genes": genes, "var": var, "missing": missing, "group": group, "dtype": dtype, "normalize": normalize,
            "normalize_over": normalize_over, "log1p": log1p, "row_chunk": row_chunk,
        })  # fmt: skip

    def __repr__(self) -> str:
        from headrace._report import archive_text

        return archive_text(self.info)

    def _repr_html_(self) -> str:
        from headrace._report import archive_html

        return archive_html(self.info)


class Array:
    """One array of an archive: its metadata, and numpy slices of it through the same decoders."""

    def __init__(self, archive: Archive, node: dict[str, Any]) -> None:
        self.archive = archive
        self.info = node
        self.path: str = node["path"]
        self.shape: tuple[int, ...] = tuple(node["shape"] or ())
        self.dims: tuple[str | None, ...] = tuple(node["dims"] or [None] * len(self.shape))
        self.chunks: tuple[int, ...] = tuple(node["chunks"] or ())
        self.dtype: str = node["dtype"]
        self.attributes: dict[str, Any] = dict(node.get("attributes") or {})

    def __repr__(self) -> str:
        from headrace._report import array_text

        return array_text(self.info)

    def __getitem__(self, key: Any) -> Any:
        """Stored numbers of a region, as numpy would slice them; packing is not decoded (see `read`)."""
        return self.read(key, decode=False)

    def read(self, key: Any = ..., *, dtype: Any = None, decode: bool = True) -> Any:
        """A region as a numpy array, CF packing decoded.

        Parameters
        ----------
        key
            Integers, slices and an ellipsis, as in numpy's basic indexing.
        dtype
            Type of the result; default: as xarray would choose.
        """
        from headrace._read import read

        return read(self, key, dtype, flag("decode", decode))
