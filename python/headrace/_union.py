"""`Archive.cells` and `cells`: samples of single cells, of one data set or of several as one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace._arguments import integer, mapping, refuse, refuse_type, text
from headrace._atlas import DataSet, data_sets
from headrace._forms import Form
from headrace._genes import Genes, choose, given_names, join, unique
from headrace._obs import Cells, JoinedFrame
from headrace._samples import build
from headrace._views import matrix_view, neighbors_view, obsm_view

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from headrace._archive import Archive


def cells_of(archive: Archive, options: dict[str, Any]) -> Cells:
    """`Archive.cells`, its arguments as a dict."""
    o = dict(options)
    number = o["genes"] if isinstance(o["genes"], int) and not isinstance(o["genes"], bool) else None
    if number is not None:  # how many, where the archive does not say
        integer("genes", number, 1)
        o["genes"] = None
    sets = data_sets(archive, o.pop("group"), _layer(o["layer"]), _optional_text("var", o["var"]), genes=number)
    if number is not None and sets[0].columns != number:
        refuse("genes", number, f"there are {sets[0].columns}")
    if len(sets) == 1:
        genes = choose(sets[0], o["genes"], o["missing"])
    else:
        genes = _joined(sets, "outer" if o["genes"] is None else o["genes"], o["missing"], "genes")
    paths = [one.path for one in sets]
    return _describe(archive, sets, paths, genes, o, (cells_of, options), JoinedFrame(sets))


def cells(
    archives: Iterable[Archive | str | Any] | Mapping[str, Archive | str | Any],
    X: str | Form = "csr",
    *,
    join: str | list[str] = "inner",
    obs: Iterable[str] = (),
    obsm: Iterable[str] = (),
    neighbors: dict[str, int] | None = None,
    genes: object = None,
    layer: str | None = None,
    var: str | None = None,
    missing: str = "raise",
    dataset: str | None = "dataset",
    group: str = "",
    dtype: object = None,
    normalize: float | None = None,
    normalize_over: str = "all",
    log1p: bool = False,
    row_chunk: int | None = None,
    storage_options: dict[str, Any] | None = None,
) -> Cells:
    """Several data sets of single cells as one, with genes matched by name: samples run through the first archive, then
    the second, and so on.

    Parameters
    ----------
    archives
        A list, or a dict by name, of opened archives or of whatever `open` takes.
    join
        Genes of the view: "inner", those that all have, in the order of the first; "outer", all, in the order in which
        they are first seen; or a list of names, or a dict by name such as a vocabulary, in its own order.
    neighbors
        As in `Archive.cells`: those of a cell are of its own data set, by their ids among all cells.
    genes
        Instead of `join`: a list of names, or a dict by name.
    var
        Column of var that genes are matched by, such as "gene_ids"; default: its index. Names that are there twice are
        refused.
    missing
        Of a list: "raise" if no data set has a gene; "ignore" keeps its column, without values.
    dataset
        Name of the table that says of which archive a cell is, in every batch; None: without. Conditions, groups and
        weights by this name mean it too, whatever columns of that name the archives' obs have.
    storage_options
        For those that are opened here.

    All others as in `Archive.cells`. Categories of `obs` are unified; types of numbers are the widest.

    For example::

        both = hr.cells({"lung": "lung.zarr", "liver": "liver.zarr"}, join="outer", obs=["cell_type"])
    """
    from headrace._joined import combine

    if isinstance(archives, (str, bytes)) or not hasattr(archives, "__iter__"):
        refuse_type("archives", archives, "a list or a dict of archives, paths or URLs is expected")
    given: Any = archives
    members: dict[str, Any] = dict(given) if hasattr(given, "keys") else {str(i): a for i, a in enumerate(given)}
    if not members:
        refuse("archives", archives, "at least one archive is expected")
    whole = combine(members, storage_options)
    obs, obsm = names_of("obs", obs), names_of("obsm", obsm)
    if genes is not None and join != "inner":
        refuse("join", join, "genes= says which genes there are: give one of the two")
    options = {
        "X": X, "join": join, "genes": None if genes is None else given_names("genes", genes, False), "obs": obs,
        "obsm": obsm, "neighbors": named_counts(neighbors), "layer": layer, "var": var, "missing": missing,
        "dataset": dataset, "group": group, "dtype": dtype, "normalize": normalize, "normalize_over": normalize_over,
        "log1p": log1p, "row_chunk": row_chunk,
    }  # fmt: skip
    return _cells_of_many(whole, options)


def _cells_of_many(whole: Archive, options: dict[str, Any]) -> Cells:
    o = dict(options)
    members: dict[str, Archive] = whole._origin[0]  # type: ignore[index]
    layer, var, group = _layer(o["layer"]), _optional_text("var", o["var"]), o.pop("group")
    sets: list[DataSet] = []
    paths: list[str] = []
    of: list[int] = []
    for number, (name, archive) in enumerate(members.items()):
        found = data_sets(archive, group, layer, var, name)
        sets += found
        paths += [f"{name}/{one.path}" if one.path else name for one in found]
        of += [number] * len(found)
    how, named = o.pop("join"), o.pop("genes")
    genes = _joined(sets, how, o["missing"]) if named is None else _joined(sets, named, o["missing"], "genes")
    dataset = _optional_text("dataset", o.pop("dataset"))
    frame = JoinedFrame(sets, dataset, list(members), of)
    return _describe(whole, sets, paths, genes, o, (_cells_of_many, options), frame, dataset)


def _joined(sets: list[DataSet], how: object, missing: str, what: str = "join") -> Genes:
    for one in sets:
        unique(one)
    return join(sets, how, missing, what)


def _layer(layer: object) -> str | None:
    if layer is None or (isinstance(layer, str) and layer == "X"):
        return None
    return text("layer", layer, "the name of a layer is expected")


def _optional_text(what: str, value: object) -> str | None:
    return None if value is None else text(what, value)


def names_of(what: str, given: object) -> list[str]:
    """A list of names; one name is a list too."""
    if isinstance(given, str):
        given = [given]
    if not hasattr(given, "__iter__"):
        refuse_type(what, given, "a list of names is expected")
    names = [text(what, name) for name in given]
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        refuse(what, twice, "it is named twice")
    return names


def named_counts(neighbors: object) -> dict[str, Any]:
    return mapping("neighbors", neighbors, "how many by name, as {'connectivities': 8}, is expected")


def _free(what: str, name: str, views: dict[str, Any]) -> None:
    """Nothing in the batch has that name."""
    if name in views:
        taken = "the matrix is called that in a batch" if name == "X" else "there is a view of that name already"
        refuse(what, name, taken)


def _describe(
    archive: Archive,
    sets: list[DataSet],
    paths: list[str],
    genes: Genes,
    o: dict[str, Any],
    recipe: tuple[Any, ...],
    frame: JoinedFrame,
    dataset: str | None = None,
) -> Cells:
    """Samples; data set i is the group paths[i] of the archive."""
    if not len(frame):
        refuse("cells", archive.url, "there are no cells in it")
    x, along = matrix_view(archive, sets, paths, genes, o)
    views: dict[str, Any] = {"X": x}
    if dataset is not None and dataset not in o["obs"]:
        _free("dataset", dataset, views)
    for name in o["obs"]:
        _free("obs", name, views)
        frame.check_own(name)
        views[name] = frame.table(name)
    if dataset is not None and dataset not in views:
        views[dataset] = frame.table(dataset)
    for name in o["obsm"]:
        _free("obsm", name, views)
        views[name], along = obsm_view(archive, sets, paths, name, along)
    for name, number in (o.get("neighbors") or {}).items():
        _free("neighbors", name, views)
        views[name] = neighbors_view(sets, paths, text("neighbors", name), number)
    samples = build(archive, along, views, Cells)
    assert isinstance(samples, Cells)
    samples._become(recipe, frame, genes.names, sets)
    return samples
