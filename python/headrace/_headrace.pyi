"""The extension module over headrace.h: handles that the package's classes wrap, and the two types users hold."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, final

def open(url: str, options_json: str | None, /) -> ArchiveHandle: ...
def concat(archives: list[ArchiveHandle], along: str, /) -> ArchiveHandle: ...
def combine(archives: list[ArchiveHandle], names: list[str], /) -> ArchiveHandle: ...
def store(url: str, concurrency: int, /) -> StoreHandle: ...
def objects(url: str, options_json: str | None, /) -> ObjectsHandle: ...
def pools_cut(
    ids: Any, sizes: Any, windows: Any, members: int, repeat: bool, /
) -> tuple[bytearray, bytearray, bytearray, bytearray]:
    """First, size, count and group of each pool, int64. See hr_pools_cut."""

def configure(workers: int, net_threads: int, io_threads: int, /) -> None: ...
def dtype(name: str, /) -> str | None:
    """numpy's name of the type that is also called "f4", "<f4", …"""

def version() -> str: ...
def ending() -> None:
    """The interpreter ends: other threads do not come back from calls."""

def drain_log() -> None:
    """Hand collected log lines to the logger "headrace"."""

@final
class ArchiveHandle:
    def json(self) -> str: ...
    def array(self, path: str, /) -> str: ...
    def read(
        self,
        path: str,
        start: Sequence[int],
        count: Sequence[int],
        step: Sequence[int],
        dtype: str | None,
        decode: bool,
        item_size: int,
        unit: str | None,
        /,
    ) -> Any:
        """A `Tensor`; or bytes, where `item_size` is 0."""
    def samples(self, along: str | None, /) -> SamplesHandle: ...

@final
class StoreHandle:
    def open(self) -> ArchiveHandle:
        """Another thread has to answer meanwhile."""
    def close(self) -> None:
        """Fail what is and what will be asked."""
    def fileno(self) -> int:
        """Becomes readable when there are tasks."""
    def take(self) -> list[tuple[int, int, str, int, int]] | None:
        """(kind, id, key, offset, length) of each; None when there will be no more."""
    def answer(self, answers: list[tuple[int, Any]], /) -> None:
        """(id, bytes-like | None where there is no such object | (code, text, retryable)) of each."""

@final
class ObjectsHandle:
    def read(self, key: str, offset: int, length: int, /) -> tuple[bytes, int, int] | None:
        """(bytes, size of the object, its version); None: there is no such object. See hr_objects_read."""
    def read_into(self, key: str, offset: int, buffer: Any, /) -> tuple[int, int] | None:
        """As many bytes as the buffer has: (size of the object, its version)."""
    def list(self, prefix: str, /) -> bytes:
        """Names directly below, each ended by a NUL, folders by "/" and a NUL."""

@final
class SamplesHandle:
    def along(self, dim: str, /) -> None: ...
    def patch(self, dim: str, size: int, stride: int, edge: int, /) -> None: ...
    def crop(self, dim: str, size: int, parts: int, /) -> None: ...
    def draws(self, name: str, n: int, /) -> None: ...
    def pad(self, dim: str, value: float, /) -> None: ...
    def join(self, view: str, dim: str, axis: str | None, left: bool, tolerance: str | None, /) -> None: ...
    def scale(self, view: str, dim: str, scale: int, scale_of: int, /) -> None: ...
    def view(self, name: str, arrays: Sequence[str], stack: str | None, constant: bool = ..., /) -> None: ...
    def cells(self, view: str, parts: list[Any], sets: list[Any], options: dict[str, Any], /) -> None:
        """Rows of a sparse matrix. See hr_samples_cells."""
    def table(self, name: str, dtype: str, data: Any, n: int, items: int, /) -> None:
        """Numbers from memory, used where they lie. See hr_samples_table_lent."""
    def sentences(
        self, axis: str, begin: Any, cells: tuple[Any, ...], controls: tuple[Any, ...] | None, seed: int, block: int, /
    ) -> None:
        """Samples of several cells: pools are (members, first, size, cells), int64 but for the cells, which are uint32
        and used where they lie. See hr_samples_sentences."""
    def count_codes(self, type: str, codes: Any, groups: int, /) -> bytearray:
        """int64: how many samples have each code below `groups`."""
    def sort_codes(self, type: str, codes: Any, sizes: Any, out: Any, /) -> None:
        """Ids of samples by code, ascending in each: uint32 into `out`; `sizes` as they were counted, int64."""
    def row_chunks(self, view: str, /) -> bytes:
        """Where the chunks of a view begin along its sample axis, and the last one ends: int64."""
    def steps(self, view: str, dim: str, first: int, last: int, step: int = ..., /) -> None: ...
    def window(self, view: str, dim: str, n: int, /) -> None: ...
    def lag(self, view: str, dim: str, duration: str, /, tolerance: str | None = None) -> None: ...
    def gaps(self, view: str, dim: str, most: str) -> None: ...
    def isel(self, view: str, dim: str, index: int, /) -> None: ...
    def isel_slice(self, view: str, dim: str, start: int | None, stop: int | None, step: int, /) -> None: ...
    def isel_list(self, view: str, dim: str, indices: Sequence[int], /) -> None: ...
    def sel(self, view: str, dim: str, labels_json: str, /) -> None: ...
    def dtype(self, view: str, name: str, /) -> None: ...
    def decode(self, view: str, decode: bool, /) -> None: ...
    def affine(self, view: str, scale: float, offset: float, /) -> None: ...
    def log1p(self, view: str, /) -> None: ...
    def clip(self, view: str, low: float, high: float, /) -> None: ...
    def normalize(
        self, view: str, mean: bytes, std: bytes, shape: Sequence[int], dims: Sequence[str] | None, /
    ) -> None:
        """mean, std: float64, native-endian, in C order."""
    def nan(self, view: str, value: float, /) -> None: ...
    def mask(self, view: str, name: str, /) -> None: ...
    def layout(self, view: str, layout: str, /) -> None: ...
    def order(self, view: str, dims: Sequence[str], /) -> None: ...
    def moments(
        self, view: str | None, by: int, memory: int, progress: Callable[[int, int], object] | None, /
    ) -> tuple[tuple[str, ...], tuple[int, ...], bytes, bytes, bytes, bytes, bytes]:
        """(dims, shape, count, mean, std, min, max); the last five float64. `progress` gets rows done and all rows."""
    def moments_key(self, view: str | None, by: int, memory: int, /) -> str: ...
    def keep(self, start: int | None, stop: int | None, step: int, dim: str | None = ..., /) -> SamplesHandle: ...
    def keep_labels(self, labels_json: str, dim: str | None = ..., /) -> SamplesHandle: ...
    def split(self, fractions: Sequence[float], gap: int, dim: str | None = ..., /) -> tuple[SamplesHandle, ...]: ...
    def split_blocks(
        self, fractions: Sequence[float], blocks: int, keyed: bool, seed: int, gap: int, dim: str | None = ..., /
    ) -> tuple[SamplesHandle, ...]: ...
    def split_groups(
        self, type: str, groups: Any, fractions: Sequence[float], seed: int, gap: int, dim: str | None = ..., /
    ) -> tuple[SamplesHandle, ...]:
        """groups: a buffer of integers of that type, one for each id, or for each position of the axis called dim."""
    def where(self, mask: Any, dim: str | None = ..., /) -> SamplesHandle:
        """mask: a buffer of bytes, one for each id, or for each position of the axis called dim."""
    def take(self, ids: Any, dim: str | None = ..., /) -> SamplesHandle:
        """ids: a buffer of int64; of positions where dim names an axis."""
    def combine(self, other: SamplesHandle, how: int, /) -> SamplesHandle:
        """how: 0 in both, 1 in either, 2 in self alone."""
    def apart(self, other: SamplesHandle, gap: int, /) -> SamplesHandle: ...
    def shared(self, other: SamplesHandle, /) -> tuple[int, int, int]:
        """samples, rows, chunks"""
    def duration(self, text: str, dim: str | None = ..., /) -> int: ...
    def index(self, view: int, dim: str, n: int, /) -> bytearray:
        """int64: indices along the array, or steps relative to the sample."""
    def times(self, array: str, n: int, /) -> tuple[bytearray, str] | None:
        """int64 microseconds, and the calendar; None: the array holds no times."""
    def count(self) -> int: ...
    def ids(self, first: int, n: int, /) -> bytearray:
        """int64, native-endian."""
    def json(self) -> str: ...
    def loader(
        self,
        n: int,
        global_batch: int,
        shuffle: int,
        remainder: int,
        seed: int,
        memory: int,
        spread: int,
        block: int,
        streams: int,
        rank: int,
        world: int,
        missing: int,
        on_error: int,
        dtype: str | None,
        order: int,
        explicit_set: int,
        sampling: tuple[Any, ...] | None = ...,
        /,
    ) -> LoaderHandle: ...

@final
class LoaderHandle:
    def next(self, timeout_ms: int, round: int = ..., /) -> Batch | None: ...
    def round(self) -> int: ...
    def steps(self) -> int: ...
    def set_epoch(self, epoch: int, /) -> None: ...
    def rewind(self) -> None: ...
    def state(self) -> str: ...
    def load_state(self, state: str, allow_batch: bool, /) -> None: ...
    def order(self, epoch: int, step: int, n: int, room: int, /) -> tuple[bytes, bytes]: ...
    def plan(self) -> str: ...
    def stats(self) -> str: ...
    def hook(self, address: int, /) -> None: ...
    def busy(self) -> bool:
        """Whether another thread is in a call."""
    def close(self) -> None: ...

@final
class Batch:
    """One step of a loader: finished tensors, one per view, by name.

    The memory belongs to the batch and lives as long as any tensor or array made from it.
    """

    @property
    def samples(self) -> Any: ...
    @samples.setter
    def samples(self, value: Any, /) -> None: ...
    @property
    def source(self) -> str | None: ...
    @source.setter
    def source(self, value: str | None, /) -> None: ...
    @property
    def coords(self) -> dict[str, Any]: ...
    @property
    def starts(self) -> dict[str, Any]: ...
    @property
    def _places(self) -> Tensor | None: ...
    def xarray(self) -> Any: ...
    def obs(self, name: str) -> Any:
        """A column of obs for the cells of the batch."""
    def write(self, array: Any, values: Any, step: int = 0) -> None: ...
    @property
    def index(self) -> Tensor:
        """Sample ids: int64 of shape (rows,)."""
    @property
    def valid(self) -> Tensor:
        """bool of shape (rows,): False where a row is padding or masked."""
    @property
    def step(self) -> int:
        """Step of the epoch, from 0."""
    @property
    def epoch(self) -> int:
        """Epoch, from 0."""
    @property
    def filled(self) -> int:
        """Chunks that were missing and filled."""
    def keys(self) -> list[str]:
        """Names of the views."""
    def items(self) -> list[tuple[str, Any]]:
        """(name, `Tensor` or `Sparse`) of every view."""
    def numpy(self) -> dict[str, Any]:
        """numpy arrays over the batch's memory, without a copy."""
    def torch(self) -> dict[str, Any]:
        """torch tensors over the batch's memory, without a copy."""
    def jax(self) -> dict[str, Any]:
        """jax arrays over the batch's memory, without a copy on CPU."""
    def __getitem__(self, name: str, /) -> Any:
        """A `Tensor`; of a sparse view a `Sparse`."""
    def __contains__(self, name: object, /) -> bool: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int:
        """Rows."""

@final
class Tensor:
    """Typed memory of a batch: C-contiguous, 256-byte aligned, writable, shared without a copy."""

    @property
    def name(self) -> str:
        """Name of the view."""
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def dtype(self) -> str:
        """numpy's name of the type."""
    @property
    def nbytes(self) -> int: ...
    def numpy(self) -> Any:
        """A writable numpy array over the same memory."""
    def torch(self) -> Any:
        """A torch tensor over the same memory."""
    def jax(self) -> Any:
        """A jax array over the same memory (CPU), read-only as jax has it."""
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any: ...
    def __dlpack__(
        self,
        *,
        stream: None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]:
        """(1, 0): the CPU."""
    def __getitem__(self, key: Any, /) -> Any:
        """Through numpy."""
    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
