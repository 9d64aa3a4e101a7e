"""Archives from datasets that xarray has opened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace._arguments import refuse, refuse_type

if TYPE_CHECKING:
    from headrace._archive import Archive

_WRAPPERS = ("array", "_array")


def from_xarray(ds: Any) -> Archive:
    """The archive behind a dataset that xarray opened from Zarr and that nothing was computed of yet.

    Parameters
    ----------
    ds
        Of ``xarray.open_zarr`` or ``open_dataset(…, engine="zarr")``, with dask or without. Variables have the names
        they have in the store; packing and times are decoded from its attributes, as xarray does. Selections are not
        taken over: make them with `Samples.sel` and `view`.
    """
    if not hasattr(ds, "data_vars") or not hasattr(ds, "encoding"):
        refuse_type("from_xarray: ds", ds, "an xarray.Dataset is expected")
    arrays = {name: _array_behind(name, variable) for name, variable in ds.variables.items() if name in ds.data_vars}
    if not arrays:
        refuse("from_xarray: ds", list(ds.variables), "it has no data variables")
    found = {name: array for name, array in arrays.items() if array is not None}
    archive = _open_store(next(iter(found.values())), found) if found else _open_source(ds)
    for name, variable in ds.data_vars.items():
        path = found[name].path if name in found else name
        _compare(archive, str(name), _inside(archive, str(path)), variable)
    return archive


def _array_behind(name: object, variable: Any) -> Any:
    """The zarr array of a lazily opened variable; None where dask holds it."""
    data = getattr(variable, "_data", None)
    if hasattr(data, "dask"):
        return None
    import zarr

    for _ in range(16):
        if isinstance(data, zarr.Array):
            return data
        key = getattr(data, "key", None)
        if key is not None and any(k != slice(None) for k in getattr(key, "tuple", ())):
            refuse(
                f"from_xarray: {name}", getattr(key, "tuple", ()),
                "a part was selected: open the whole dataset, and select with samples.sel and hr.view",
            )  # fmt: skip
        data = next((getattr(data, w) for w in _WRAPPERS if hasattr(data, w)), None)
    refuse(
        f"from_xarray: {name}", type(getattr(variable, "_data", None)).__name__,
        "it was loaded, computed or not opened from Zarr: give the dataset as xarray.open_zarr opened it",
    )  # fmt: skip


def _open_store(first: Any, arrays: dict[Any, Any]) -> Archive:
    from zarr.storage import LocalStore

    from headrace._archive import open

    for name, array in arrays.items():
        if array.store != first.store:
            refuse(f"from_xarray: {name}", str(array.store), f"it lies in another store than {first.store}")
    if isinstance(first.store, LocalStore):
        return open(str(first.store.root))
    return open(first.store)


def _open_source(ds: Any) -> Archive:
    from headrace._archive import open

    source = ds.encoding.get("source")
    if not isinstance(source, str):
        refuse("from_xarray: ds", "encoding", "nothing says where it was opened from (encoding['source']): use hr.open")
    return open(source)


def _inside(archive: Archive, path: str) -> str:
    """Dask hides the path: of a dataset opened from a group, the one array of that name."""
    if path in archive:
        return path
    found = [p for p in archive.arrays if p.rpartition("/")[2] == path]
    return found[0] if len(found) == 1 else path


def _compare(archive: Archive, name: str, path: str, variable: Any) -> None:
    array = archive[path]
    shape = tuple(variable.shape)
    if array.shape[: len(shape)] != shape:  # texts of characters lose a dimension
        refuse(
            f"from_xarray: {name}", shape,
            f"the array has the shape {array.shape}: open the whole dataset, and select with samples.sel and hr.view",
        )  # fmt: skip
