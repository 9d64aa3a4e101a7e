"""Several archives as one: `concat` and `combine`."""

from __future__ import annotations

from headrace import _headrace
from headrace._archive import Archive, Origin, open
from headrace._arguments import mapping, refuse, refuse_type, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

_AT_ONCE = 16  # archives being opened


def concat(
    archives: Iterable[Archive | str | Any], along: str, storage_options: dict[str, Any] | None = None
) -> Archive:
    """Archives one behind the other along a dimension, such as one store per year: an `Archive` like any other, as in
    ``hr.concat(["1990.zarr", "1991.zarr"], along="time")``.

    Parameters
    ----------
    archives
        Opened archives, or whatever `open` takes, in the order of the coordinate.
    along
        The dimension. Arrays that have it are the archives' arrays one behind the other; all others, and attributes,
        are those of the first archive.
    storage_options
        For those that are opened here.

    The archives agree in all other dimensions (their coordinates too), in types and in calendars. Chunks may differ in
    length along the dimension, compression and packing as they like; times may count from another moment in each.
    Raises `InvalidError` where archives overlap, are out of order or differ; arrays that cannot be joined say so when
    they are used.

    >>> hr.concat([archive], along="time")  # doctest: +SKIP
    """
    name = text("along", along, "the name of a dimension is expected")
    if isinstance(archives, (str, bytes, Archive)) or not hasattr(archives, "__iter__"):
        refuse_type("archives", archives, "a list of archives, paths or URLs is expected")
    members = _opened(list(archives), mapping("storage_options", storage_options, "a dict is expected"))
    if not members:
        refuse("archives", archives, "at least one archive is expected")
    handle = _headrace.concat([member._handle for member in members], name)
    _headrace.drain_log()  # what could not be checked
    whole = Archive(handle, f"{_listed([member.url for member in members])} along {name}")
    whole._again, whole._origin = concat, Origin(members, name)
    return whole


def combine(archives: Mapping[str, Archive | str | Any], storage_options: dict[str, Any] | None = None) -> Archive:
    """Archives side by side, each under a name: ``combine({"era5": a, "sst": b})["sst/sst"]``.

    Parameters
    ----------
    archives
        By name, opened archives or whatever `open` takes. Their arrays are called ``name/path``.
    storage_options
        For those that are opened here.

    >>> hr.combine({"era5": archive})["era5/t2m"]  # doctest: +SKIP
    """
    given = mapping("archives", archives, "a dict of archives by name is expected")
    if not given:
        refuse("archives", archives, "at least one archive is expected")
    names = [text("archives", name, "names of archives are texts") for name in given]
    members = _opened(list(given.values()), mapping("storage_options", storage_options, "a dict is expected"))
    handle = _headrace.combine([member._handle for member in members], names)
    whole = Archive(handle, _listed([f"{name}: {member.url}" for name, member in zip(names, members)]))
    whole._again, whole._origin = combine, Origin(dict(zip(names, members)))
    return whole


def _listed(urls: list[str]) -> str:
    return ", ".join(urls if len(urls) < 4 else [urls[0], "…", urls[-1]])


def _opened(archives: list[Any], options: dict[str, Any]) -> list[Archive]:
    """Many at once, for each may be a journey over a network."""
    later = [a for a in archives if not isinstance(a, Archive)]
    if options and not later:
        refuse("storage_options", options, "they belong to `open`: these archives are opened already")
    if len(later) < 2:
        return [a if isinstance(a, Archive) else open(a, options or None) for a in archives]
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(min(len(later), _AT_ONCE), "headrace-open")
    try:
        coming = {id(a): pool.submit(open, a, options or None) for a in later}
        return [a if isinstance(a, Archive) else coming[id(a)].result() for a in archives]
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
