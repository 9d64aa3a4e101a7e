"""A dataset in SCDL under BioNeMo's name and calls, for reading."""

from __future__ import annotations

import operator
import os
import tempfile

from headrace._arguments import flag, integer, mapping, shown, text
from headrace._errors import InvalidError, InvalidTypeError, NotFoundError, UnsupportedError
from headrace.scdl._chunks import RemoteChunks
from headrace.scdl._features import FeatureIndex, ObservedFeatureIndex, VariableFeatureIndex
from headrace.scdl._files import Files
from headrace.scdl._gather import many, one
from headrace.scdl._layout import Layout, LocalChunks
from headrace.scdl._neighbors import Neighbors, open_neighbors, strategy_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from headrace.scdl._header import Header
    from headrace.scdl._rows import Row, Rows


_MAKING = "bionemo-scdl makes them, and so does, chunked, `headrace cells chunk atlas.h5ad DIRECTORY`"
_CHUNK = "`headrace cells chunk SRC DST` makes a chunked copy"
_ELSEWHERE = {  # what BioNeMo's class has besides
    "to_chunked": _CHUNK, "partition_scdl": _CHUNK, "load_h5ad": _MAKING, "paginated_load_h5ad": _MAKING,
    "regular_load_h5ad": _MAKING, "save": "nothing is changed here that would have to be saved",
    "cast_data_to_dtype": "`headrace cells chunk SRC DST --dtype uint16` makes a copy of another type",
    "concat": "hr.cells([a, b]) reads several as one, with genes matched by name",
}  # fmt: skip


class SingleCellMemMapDataset:
    """Cells of a plain or chunked SCDL directory.

    Parameters
    ----------
    data_path
        The directory. For what lies behind a URL: `from_remote`.
    load_neighbors, neighbor_key, neighbor_sampling_strategy, fallback_to_identity
        Neighbours of cells, as in BioNeMo.
    n_cols
        Width of batches: the number of genes. By default that of the var features.

    Datasets are not made here: the arguments of BioNeMo's class that make one are refused.
    """

    _neighbors: Neighbors | None

    def __init__(self, data_path: str | os.PathLike[str], h5ad_path: str | None = None, num_elements: int | None = None,
                 num_rows: int | None = None, mode: Any = "r", paginated_load_cutoff: int = 10_000,
                 load_block_row_size: int = 1_000_000, var_feature_index_name: str = "var_feature_id",
                 obs_feature_index_name: str = "obs_feature_id", load_neighbors: bool = False,
                 neighbor_key: str = "next_cell_ids", neighbor_sampling_strategy: Any = "random",
                 fallback_to_identity: bool = True, data_dtype: str | None = None, data_dtype_tolerance: float = 1e-08,
                 use_X_not_raw: bool = False, *, n_cols: int | None = None) -> None:  # fmt: skip
        given = {"h5ad_path": h5ad_path, "num_elements": num_elements, "num_rows": num_rows, "data_dtype": data_dtype}
        for name, value in given.items():
            if value is not None:
                raise UnsupportedError(f"{name}={value!r}: datasets are read here, not made; {_MAKING}")
        if str(getattr(mode, "value", mode)) not in ("r", "r+"):
            raise UnsupportedError(f"mode={mode!r}: datasets are read here, not made or changed: 'r' is expected")
        path = os.fspath(data_path)
        root = path.removeprefix("file://") if isinstance(path, str) else path
        if "://" in text("data_path", root, "a path, as str, is expected"):
            raise InvalidError(f"data_path={root!r}: open a URL by SingleCellMemMapDataset.from_remote")
        if not os.path.isdir(root):
            raise NotFoundError(f"{root}: no such directory, and datasets are not made here; {_MAKING}")
        layout = Layout(Files(root, None))
        self._take(layout, LocalChunks(layout, root), None, n_cols)
        self.data_path = path
        if flag("load_neighbors", load_neighbors):
            self.load_neighbors = True
            self.neighbor_key = neighbor_key
            self.neighbor_sampling_strategy = strategy_of(neighbor_sampling_strategy)
            self.fallback_to_identity = flag("fallback_to_identity", fallback_to_identity)
            self._neighbors = open_neighbors(root, layout.rows)

    @classmethod
    def from_remote(cls, remote_path: str, cache_dir: str | os.PathLike[str] | None = None, max_cached_chunks: int = 2,
                    storage_options: dict[str, Any] | None = None, batch_download_size: int = 10,
                    use_async_downloads: bool = True, *, max_cached_bytes: int | None = None,
                    n_cols: int | None = None) -> SingleCellMemMapDataset:  # fmt: skip
        """Open a dataset at a URL (or path); chunks come down as they are needed, and ahead of that under a sampler.

        Parameters
        ----------
        remote_path
            ``s3://``, ``gs://``, ``az://``, ``http(s)://`` or ``file://`` URL, or a path.
        cache_dir
            Where chunks are kept, whole and never changed, for all processes that are given the same directory, now and
            later. None: a directory below the system's for temporary files, removed at exit.
        max_cached_chunks, max_cached_bytes
            How much of this dataset is kept. Only chunks that are being read go beyond that.
        storage_options
            Options of the store, in Headrace's spellings or fsspec's.
        batch_download_size
            Ranges of a chunk that are read at once.
        use_async_downloads
            Fetch ahead what a sampler needs next.
        """
        url = text("remote_path", os.fspath(remote_path), "a URL or path, as str, is expected").rstrip("/") or "/"
        options = mapping("storage_options", storage_options, "a dict of the store's options is expected")
        most = integer("max_cached_chunks", max_cached_chunks, 1)
        most_bytes = None if max_cached_bytes is None else integer("max_cached_bytes", max_cached_bytes, 1)
        readers = integer("batch_download_size", batch_download_size, 1, 256)
        layout = Layout(Files(url, options, readers))
        folder = os.fspath(cache_dir) if cache_dir is not None else tempfile.mkdtemp(prefix="scdl_cache_")
        chunks = RemoteChunks(layout, folder, most, most_bytes, flag("use_async_downloads", use_async_downloads),
                              made_here=cache_dir is None)  # fmt: skip
        dataset = cls.__new__(cls)
        dataset._take(layout, chunks, chunks, n_cols)
        dataset.data_path = url
        return dataset

    def _take(self, layout: Layout, chunks: Any, loader: RemoteChunks | None, n_cols: int | None) -> None:
        self._layout, self._chunks, self._chunk_loader = layout, chunks, loader
        self._n_cols = None if n_cols is None else integer("n_cols", n_cols, 1, 2**31 - 1)
        self._var = VariableFeatureIndex(*self._folder("var_features", "features"))
        self._obs = ObservedFeatureIndex(*self._folder("obs_features"))
        self.load_neighbors = False
        self._neighbors = None
        self._is_chunked = layout.chunked
        self.dtypes, self.metadata = layout.dtypes, layout.metadata

    def _folder(self, *names: str) -> tuple[Any, ...]:
        for name in names:
            if self._layout.files.end(f"{name}/cumulative_sum_index.npy", 8) is not None:
                return self._layout.files, name
        return ()

    # ---- what there is

    @property
    def header(self) -> Header | None:
        return self._layout.header

    def version(self) -> str:
        """Of the package that wrote the dataset, as `version.json` has it."""
        return self._layout.version()

    def __len__(self) -> int:
        return self.number_of_rows()

    def number_of_rows(self) -> int:
        """Cells. Raises `InvalidError` (a `ValueError`) where the var features are of another number of them."""
        features = self._var.number_of_rows()
        if len(self._var) and features != self._layout.rows:
            raise InvalidError(f"{self.data_path}: {self._layout.rows} rows, but var features of {features}")
        return self._layout.rows

    def number_of_variables(self) -> list[int]:
        """Genes, of each block of rows whose var features differ."""
        return self._var.column_dims() or [0]

    def shape(self) -> tuple[int, list[int]]:
        return self.number_of_rows(), self.number_of_variables()

    def number_of_values(self) -> int:
        """Cells × genes, zeros counted."""
        return sum(self._var.number_of_values())

    def number_nonzero_values(self) -> int:
        """Stored values. Of chunks that lie behind a URL the ends are asked for, once."""
        return sum(self._nonzero(chunk) for chunk in range(self._layout.chunks))

    def _nonzero(self, chunk: int) -> int:
        found = self._layout.files.end(self._layout.key(chunk, "row_ptr.npy"), self._layout.item("row_ptr.npy"))
        if found is not None:
            return int.from_bytes(found[0], "little")
        x = self._chunks.acquire(chunk)
        try:
            return len(x.values)
        finally:
            self._chunks.release(chunk)

    def sparsity(self) -> float:
        """Share of the values that are zero."""
        values = self.number_of_values()
        return 1 - self.number_nonzero_values() / values if values else 0.0

    @property
    def n_cols(self) -> int:
        """Width of batches; 0: unknown."""
        if self._n_cols is None:
            self._n_cols = max(self.number_of_variables())
        return self._n_cols

    def var_features(self) -> VariableFeatureIndex:
        return self._var

    def obs_features(self) -> ObservedFeatureIndex:
        return self._obs

    def stats(self) -> dict[str, Any]:
        """What reading has cost, of this process and of workers; {} where nothing is downloaded."""
        return self._chunk_loader.stats.summary() if self._chunk_loader is not None else {}

    # ---- rows

    def get_row(self, index: int, return_var_features: bool = False, var_feature_names: list[str] | None = None,
                return_obs_features: bool = False, obs_feature_names: list[str] | None = None,
                ) -> tuple[tuple[Any, Any], list[Any] | None, list[Any] | None]:  # fmt: skip
        """((values, columns), var features, obs features) of a row; features are None where they are not asked for."""
        row = one(self._layout, self._chunks, index.__index__())
        return (
            row,
            self._lookup(self._var, index, var_feature_names) if return_var_features else None,
            self._lookup(self._obs, index, obs_feature_names) if return_obs_features else None,
        )

    def _lookup(self, features: FeatureIndex, index: int, names: list[str] | None) -> list[Any]:
        row = index + self._layout.rows if index < 0 else index
        return features.lookup(row, select_features=names)[0]  # type: ignore[attr-defined,no-any-return]

    def get_row_padded(self, index: int, return_var_features: bool = False, var_feature_names: list[str] | None = None,
                       return_obs_features: bool = False, obs_feature_names: list[str] | None = None,
                       ) -> tuple[Any, list[Any] | None, list[Any] | None]:  # fmt: skip
        """(dense row as wide as there are genes, var features, obs features)."""
        import numpy as np

        (values, columns), var, obs = self.get_row(
            index, return_var_features, var_feature_names, return_obs_features, obs_feature_names
        )
        width = self._var.number_vars_at_row(index) if len(self._var) else self.n_cols
        dense = np.zeros(width)
        dense[columns] = values
        return dense, var, obs

    def get_row_column(self, index: int, column: int, impute_missing_zeros: bool = True) -> float | None:
        """The value of a gene; where none is stored: 0.0, or None."""
        import numpy as np

        (values, columns), _, _ = self.get_row(index)
        found = np.flatnonzero(columns == column)
        if len(found):
            return values[found[0]]  # type: ignore[no-any-return]
        return 0.0 if impute_missing_zeros else None

    def __repr__(self) -> str:
        layout = self._layout
        try:
            width = f" × {self.n_cols:,} genes" if self.n_cols else ""
        except Exception:  # damaged features; what asks for them says so
            width = ""
        cut = f" in {layout.chunks:,} chunks of {layout.chunk_size:,}" if layout.chunked else ""
        return f"<SingleCellMemMapDataset {self.data_path}: {layout.rows:,} cells{width}{cut}>"

    def __getattr__(self, name: str) -> Any:
        hint = f": {_ELSEWHERE[name]}" if name in _ELSEWHERE else ""
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}")

    def __getitem__(self, index: int) -> Row:
        """(2, non-zeros): values over columns."""
        try:
            row = operator.index(index)
        except TypeError:
            raise InvalidTypeError(f"dataset[{shown(index)}]: the number of a row is expected; of many at once: "
                                   "dataset.__getitems__([3, 5, 8])") from None  # fmt: skip
        return self.__getitems__([row])[0]

    def __getitems__(self, indices: Any) -> Rows:
        """Many rows at once, for DataLoaders. The result is a sequence of what `[…]` gives for each."""
        from headrace.scdl._rows import Rows

        indptr, columns, values = many(self._layout, self._chunks, indices, self.n_cols)
        return Rows(indptr, columns, values, self.n_cols, self._layout.dtypes["col_ptr.npy"])

    # ---- neighbours

    @property
    def _has_neighbors(self) -> bool:
        return self._neighbors is not None

    def _need_neighbors(self) -> Neighbors:
        if self._neighbors is None:
            raise InvalidError(
                "Cannot include neighbor data: neighbor functionality is disabled or no neighbor data available"
            )
        return self._neighbors

    def _cell(self, cell_index: int) -> int:
        if not 0 <= cell_index < self._layout.rows:
            raise IndexError(f"Cell index {cell_index} out of bounds for dataset with {self._layout.rows} cells")
        return cell_index

    def get_neighbor_indices_for_cell(self, cell_index: int) -> Any:
        """Its neighbours' rows; empty where the dataset has none."""
        import numpy as np

        self._cell(cell_index)
        return self._neighbors.of(cell_index)[0] if self._neighbors else np.array([], dtype=int)

    def get_neighbor_weights_for_cell(self, cell_index: int) -> Any:
        import numpy as np

        self._cell(cell_index)
        return self._neighbors.of(cell_index)[1] if self._neighbors else np.array([], dtype=float)

    def sample_neighbor_index(self, cell_index: int) -> int:
        """One of its neighbours, by the strategy; itself where it has none or neighbours are not loaded."""
        import numpy as np

        self._cell(cell_index)
        if not self.load_neighbors:
            return cell_index
        neighbors = self._need_neighbors().of(cell_index)[0]
        if not len(neighbors):
            return cell_index
        return int(np.random.choice(neighbors) if self.neighbor_sampling_strategy == "random" else neighbors[0])

    def get_neighbor_stats(self) -> dict[str, Any]:
        return self._neighbors.stats() if self._neighbors else {"has_neighbors": False}

    def get_row_with_neighbor(self, index: int, return_var_features: bool = False,
                              var_feature_names: list[str] | None = None, return_obs_features: bool = False,
                              obs_feature_names: list[str] | None = None) -> dict[str, Any]:  # fmt: skip
        """A row and one of its neighbours: current_cell, next_cell, their indices, and features of the first."""
        self._need_neighbors()
        cell, var, obs = self.get_row(
            index, return_var_features, var_feature_names, return_obs_features, obs_feature_names
        )
        other = self.sample_neighbor_index(index)
        return {
            "current_cell": cell,
            "next_cell": cell if other == index else self.get_row(other)[0],
            "current_cell_index": index,
            "next_cell_index": other,
            "var_features": var,
            "obs_features": obs,
        }

    def get_row_padded_with_neighbor(self, index: int, return_var_features: bool = False,
                                     var_feature_names: list[str] | None = None, return_obs_features: bool = False,
                                     obs_feature_names: list[str] | None = None) -> dict[str, Any]:  # fmt: skip
        """The same, dense."""
        found = self.get_row_with_neighbor(
            index, return_var_features, var_feature_names, return_obs_features, obs_feature_names
        )
        found["current_cell"] = self.get_row_padded(index)[0]
        found["next_cell"] = self.get_row_padded(found["next_cell_index"])[0]
        return found
