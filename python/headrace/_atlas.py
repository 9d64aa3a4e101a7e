"""Atlases of single cells in archives: AnnData and its matrices, and collections of annbatch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace._arguments import near, refuse, text
from headrace._frame import Frame, ZarrFrame
from headrace._tree import Tree

if TYPE_CHECKING:
    from typing import NoReturn

    from headrace._archive import Archive, Array

_ANNDATA = "anndata"
_COLLECTION = "annbatch-preshuffled"


Paths = tuple["str | None", "str | None", str]


class Matrix:
    """Cells × genes. `kind`: "csr", with paths of indptr, indices and data; or "dense", with None, None and that of the
    array."""

    def __init__(self, path: str, kind: str, paths: list[Paths], shape: tuple[int, int], dtype: Any):
        self.path, self.kind, self.parts, self.shape, self.dtype = path, kind, paths, shape, dtype


class DataSet:
    """One AnnData: the group `path` of an archive. `label` names it in messages."""

    def __init__(self, tree: Tree, path: str, label: str, layer: str | None, var: str | None) -> None:
        self.tree, self.path, self.label = tree, path, label
        self._lead = f"{path}/" if path else ""
        place, var_path = self._places(layer)
        self.matrix = matrix_at(tree, place, label, self._others(place))
        self.n, self.columns = self.matrix.shape
        self.obs: Frame = ZarrFrame(tree, f"{self._lead}obs", self.n, f"obs of {label}" if path else "obs")
        self.var: Frame = ZarrFrame(tree, var_path, self.columns, var_path)
        self._var = var
        self._genes: Any = None

    def _places(self, layer: str | None) -> tuple[str, str]:
        """Paths of the matrix and of the frame of its genes."""
        if layer is None:
            return f"{self._lead}X", f"{self._lead}var"
        if layer == "raw":
            if not self.tree.has(f"{self._lead}raw/X"):
                self._no_layer(layer)
            return f"{self._lead}raw/X", f"{self._lead}raw/var"
        if not self.tree.has(f"{self._lead}layers/{layer}") and not is_sparse(self.tree, f"{self._lead}layers/{layer}"):
            self._no_layer(layer)
        return f"{self._lead}layers/{layer}", f"{self._lead}var"

    def layers(self) -> list[str]:
        raw = ["raw"] if self.tree.has(f"{self._lead}raw/X") else []
        return [*self.tree.children(f"{self._lead}layers"), *raw]

    def _no_layer(self, layer: str) -> NoReturn:
        from headrace._errors import NotFoundError

        known = self.layers()
        raise NotFoundError(
            f"layer={layer!r}: {self.label} has no such layer{near(layer, known)}; besides X there are "
            f"{', '.join(known) or 'none'}"
        )

    def _others(self, place: str) -> list[str]:
        """Words for other matrices that can be read by rows, as arguments."""
        names = {f"{self._lead}X": "X"}
        names.update({f"{self._lead}layers/{n}": f'layer="{n}"' for n in self.tree.children(f"{self._lead}layers")})
        names[f"{self._lead}raw/X"] = 'layer="raw"'
        return [words for path, words in names.items() if path != place and is_sparse(self.tree, path)]

    @property
    def genes(self) -> Any:
        """Names of the genes, texts, in the order of the columns."""
        if self._genes is None:
            import numpy as np

            name = self.gene_column()
            names = range(self.columns) if name is None else self.var[name].values
            self._genes = np.array([str(g) for g in names], object)
        return self._genes

    def gene_column(self) -> str | None:
        """The column of var that names genes; None: they have numbers alone."""
        name = self.var.index_name if self._var is None else self._var
        return None if name is None or (self._var is None and name not in self.var) else name


# ---- finding them ----------------------------------------------------------------------------------------------------


def data_sets(
    archive: Archive, group: str, layer: str | None, var: str | None, label: str = "", genes: int | None = None
) -> list[DataSet]:
    """Those of an archive, or of a group in it: one, or all of a collection in their order."""
    from headrace._scdl import ScdlDataSet, is_scdl

    path = text("group", group, "the path of a group is expected").strip("/")
    tree = Tree(archive)
    name = label or (path or "this archive")
    if is_scdl(archive) and not path:
        return [ScdlDataSet(tree, label or "this archive", layer, var, genes)]
    attributes = tree.attributes(path)
    if attributes.get("encoding-type") == _COLLECTION:
        found = [f"{path}/{n}" if path else n for n in _numbered(tree.children(path))]
        if not found:
            from headrace._errors import FormatError

            raise FormatError(f"{name}: a collection of annbatch with no dataset_0 in it")
        return [DataSet(tree, p, p, layer, var) for p in found]
    if attributes.get("encoding-type") != _ANNDATA and not _looks_like(tree, path):
        _no_atlas(tree, archive, path)
    return [DataSet(tree, path, name, layer, var)]


def _numbered(names: list[str]) -> list[str]:
    """dataset_0, dataset_1, …, dataset_10, …"""
    numbers = [(int(n[8:]), n) for n in names if n.startswith("dataset_") and n[8:].isdecimal()]
    return [n for _, n in sorted(numbers)]


def _looks_like(tree: Tree, path: str) -> bool:
    """Written before anndata said so, or told of by a store that cannot list."""
    lead = f"{path}/" if path else ""
    has_matrix = is_sparse(tree, f"{lead}X") or tree.has(f"{lead}X")
    return has_matrix and (tree.has(f"{lead}obs") or not tree.complete)


def _no_atlas(tree: Tree, archive: Archive, path: str) -> NoReturn:
    from headrace._errors import NotFoundError, UnsupportedError

    inside = [p for p in tree.encoded((_ANNDATA, _COLLECTION)) if p]
    where = f'group "{path}" of {archive.url}' if path else archive.url
    if path and not tree.has(path):
        raise NotFoundError(f"group={path!r}: there is no such group{near(path, inside)}")
    hint = f"; there is one in it: group={inside[0]!r}" if inside else ""
    more = f" (and {len(inside) - 1} more)" if len(inside) > 1 else ""
    old = tree.array(f"{path}/obs" if path else "obs") is not None
    if old:
        hint = "; anndata before 0.7 wrote it, whose obs is one array: read it and write it again with a newer one"
    raise UnsupportedError(
        f"{where} is no atlas of single cells: AnnData has X, obs and var in one group, with the attribute "
        f"encoding-type anndata{hint}{more}"
    )


# ---- matrices --------------------------------------------------------------------------------------------------------


def is_sparse(tree: Tree, path: str) -> bool:
    """Whether it is a matrix in rows."""
    return _encoding(tree, path) == "csr"


def _encoding(tree: Tree, path: str) -> str:
    """ "csr", "csc", or "" for what is no sparse matrix."""
    attributes = tree.attributes(path)
    kind = attributes.get("encoding-type") or attributes.get("h5sparse_format")  # the latter: before anndata 0.7
    if kind in ("csr_matrix", "csr"):
        return "csr"
    if kind in ("csc_matrix", "csc"):
        return "csc"
    return "csr" if not kind and tree.array(f"{path}/indptr") is not None else ""


def matrix_at(tree: Tree, path: str, label: str, others: list[str]) -> Matrix:
    from headrace._errors import FormatError, NotFoundError, UnsupportedError

    kind = _encoding(tree, path)
    if kind == "csc":
        either = f"{others[0]} is by cells; " if others else ""
        of = f"{label}: " if label != "this archive" and not path.startswith(f"{label}/") else ""
        raise UnsupportedError(
            f"{of}{path} is stored by genes (CSC): the rows of cells cannot be read in place. {either}or store it by "
            "cells once: a = anndata.read_zarr(…); a.X = a.X.tocsr(); a.write_zarr(…)"
        )
    if kind == "csr":
        return _sparse(tree, path)
    array = tree.sound(path)
    if array is None:
        hint = f"; there is {' and '.join(others)}" if others else ""
        if not tree.has(path):
            raise NotFoundError(f"{label} has no matrix {path}{hint}")
        raise FormatError(f"{path} is neither a sparse matrix nor an array{hint}")
    if len(array.shape) != 2:
        raise FormatError(f"{path} has {len(array.shape)} dimensions; a matrix of cells and genes has 2")
    return Matrix(path, "dense", [(None, None, array.path)], (array.shape[0], array.shape[1]), array.dtype)


def _sparse(tree: Tree, path: str) -> Matrix:
    from headrace._errors import FormatError

    parts: list[Array] = []
    for name in ("indptr", "indices", "data"):
        array = tree.sound(f"{path}/{name}")
        if array is None:
            raise FormatError(f"{path}: a sparse matrix has arrays indptr, indices and data; there is no {name}")
        if len(array.shape) != 1:
            raise FormatError(f"{array.path} has {len(array.shape)} dimensions; {name} of a sparse matrix has 1")
        parts.append(array)
    attributes = tree.attributes(path)
    shape = attributes.get("shape") or attributes.get("h5sparse_shape") or [parts[0].shape[0] - 1, None]
    rows = parts[0].shape[0] - 1
    if not isinstance(shape, (list, tuple)) or len(shape) != 2 or shape[0] != rows:
        raise FormatError(
            f"{path}: its attribute shape is {shape}, and its indptr has {rows + 1} items, one more than there are rows"
        )
    columns = shape[1] if shape[1] is not None else _columns(tree, path)
    if not isinstance(columns, int) or isinstance(columns, bool) or columns < 0:
        raise FormatError(f"{path}: its attribute shape is {shape}: two numbers, of cells and of genes, are expected")
    paths = (parts[0].path, parts[1].path, parts[2].path)
    return Matrix(path, "csr", [paths], (rows, columns), parts[2].dtype)


def _columns(tree: Tree, path: str) -> int:
    """How many genes there are, where the store does not tell the shape: as many as var has rows."""
    place = path.rpartition("/")[0]
    lead = (place.rpartition("/")[0] if place.rpartition("/")[2] == "layers" else place) + "/"
    lead = lead.lstrip("/")
    for name in ("_index", "_index/values", "index"):
        array = tree.array(f"{lead}var/{name}")
        if array is not None:
            return int(array.shape[0])
    refuse(
        "cells",
        path,
        "the store cannot list and its metadata is not consolidated: nothing says how many genes there are",
    )
