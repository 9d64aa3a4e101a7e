"""The loader: an iterable of batches with an exact position."""

from __future__ import annotations

import _weakref
import atexit

from headrace import _headrace
from headrace._arguments import choice, integer, optional, real, refuse, refuse_type
from headrace._arguments import dtype as known_dtype
from headrace._text import parse_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from headrace._samples import Samples

_SHUFFLE = {False: 0, True: 1, "global": 2}
_REMAINDER = {None: 0, "drop": 1, "pad": 2, "short": 3, "wrap": 4}
_MISSING = {"fill": 0, "nan": 1, "error": 2}
_ON_ERROR = {"raise": 0, "mask": 1}
_open: dict[int, Any] = {}  # weak references by id


@atexit.register
def _end() -> None:
    """The interpreter ends. Daemon threads that are in a call do not come back, and what they wait for ends here:
    nothing reads any more while the process takes itself apart."""
    _headrace.ending()
    for reference in list(_open.values()):
        loader = reference()
        if loader is not None and loader._handle.busy():
            loader.close()


def configure(workers: int | None = None, net_threads: int | None = None, io_threads: int | None = None) -> None:
    """Process-wide, before the first open.

    Parameters
    ----------
    workers
        Threads that decode, shared by all loaders, 1 … 1024 (default: the cores this process may use ÷ local ranks).
    net_threads
        Network threads, 1 … 4 (default 1).
    io_threads
        Extra readers for network file systems, 0 … 1024 (default 0).

    0 means the default, too.
    """
    _headrace.configure(
        optional("workers", workers, 0, 1024),
        optional("net_threads", net_threads, 0, 4),
        optional("io_threads", io_threads, 0, 1024),
    )


def open_loader(samples: Samples, **o: Any) -> Loader:
    from headrace._rank import find_rank

    for later in ("weights", "stratify"):
        if o[later] is not None:
            from headrace._errors import UnsupportedError

            raise UnsupportedError(f"{later}= comes in a later release")
    if (o["n"] is None) == (o["global_batch"] is None):
        from headrace._errors import InvalidError

        raise InvalidError(
            "give the batch size: exactly one of n (rows on this rank) and global_batch (over all ranks)"
        )
    rank, world = find_rank(o["rank"], o["world"], o["replicas"])
    given = [o["seed"], o["spread"], o["block"], o["streams"], o["remainder"], o["shuffle"] or None, o["order"]]
    handle = samples._handle.loader(
        optional("n", o["n"], 1),
        optional("global_batch", o["global_batch"], 1),
        choice("shuffle", o["shuffle"], _SHUFFLE),
        choice("remainder", o["remainder"], _REMAINDER),
        optional("seed", o["seed"], 0, 2**64 - 1),
        parse_bytes(o["memory"]),
        optional("spread", o["spread"], 1),
        optional("block", o["block"], 1),
        optional("streams", o["streams"], 1),
        rank,
        world,
        choice("missing", o["missing"], _MISSING),
        choice("on_error", o["on_error"], _ON_ERROR),
        None if o["dtype"] is None else known_dtype("dtype", o["dtype"]),
        optional("order", o["order"], 1),
        sum(1 << i for i, value in enumerate(given) if value is not None),
    )
    return Loader(handle, samples)


def _milliseconds(timeout: float | None) -> int:
    """-1: for ever."""
    if timeout is None:
        return -1
    accepted = "None, or a number of seconds from 0 on, is expected"
    seconds = real("timeout", timeout, accepted)
    if not seconds >= 0:
        refuse("timeout", timeout, accepted)
    return -1 if seconds > 1e15 else int(seconds * 1000)


class Loader:
    """Yields `Batch` after `Batch`; each ``for`` loop is one epoch.

    One iterator lives at a time. A loop that is left early abandons its epoch: the next loop starts the next one. A
    state taken at any step continues there, exactly, on any number of ranks that divides `streams`.

    >>> with train.batches(32, shuffle=True) as loader:        # doctest: +SKIP
    ...     for batch in loader:
    ...         train_step(batch["x"].torch())
    """

    def __init__(self, handle: Any, samples: Samples) -> None:
        self._handle = handle
        me = id(self)
        _open[me] = _weakref.ref(self, lambda _: _open.pop(me, None))
        self.samples = samples
        self.closed = False
        self._live: Any = None
        self._fresh = True  # the position was set, or nothing was asked for yet

    def __len__(self) -> int:
        """Steps of a whole epoch, the same on every rank."""
        return int(self._handle.steps())

    def __iter__(self) -> Epoch:
        live = self._live() if self._live is not None else None
        if live is not None and not live.ended:
            from headrace._errors import StateError

            raise StateError(
                "this loader already has a live iterator: finish or close() it first, or open a second loader"
            )
        if not self._fresh and live is None and self._live is not None:
            self._handle.rewind()
        self._fresh = False
        epoch = Epoch(self)
        self._live = _weakref.ref(epoch)
        return epoch

    def __getitem__(self, key: object) -> Any:
        from headrace._errors import InvalidTypeError

        raise InvalidTypeError(
            "a loader has no items: iterate over it; torch's DataLoader takes loader.torch() with batch_size=None"
        )

    def next(self, timeout: float | None = None) -> Any:
        """The next `Batch`, or None at the end of the epoch (the call after that starts the next epoch).

        `timeout` in seconds; `TimeoutError` when it passes, and the loader stays usable.
        """
        self._fresh = False
        return self._handle.next(_milliseconds(timeout))

    def set_epoch(self, epoch: int) -> None:
        """Continue at the first batch of `epoch`."""
        self._handle.set_epoch(integer("epoch", epoch, 0))
        self._forget()

    def state_dict(self) -> dict[str, Any]:
        """What the consumer has received, about 220 bytes as JSON, the same on every rank."""
        import json

        return dict(json.loads(self._handle.state()))

    def load_state_dict(self, state: dict[str, Any], allow: str | None = None) -> None:
        """Continue where `state` was taken. ``allow="batch"``: the global batch may differ."""
        import json

        accepted = "what state_dict() gave, a dict, is expected"
        if not isinstance(state, dict):
            refuse_type("state", state, accepted)
        may_differ = choice("allow", allow, {None: 0, "batch": 1})
        try:
            text = json.dumps(state)
        except (TypeError, ValueError, RecursionError):
            refuse("state", state, accepted)
        self._handle.load_state(text, bool(may_differ))
        self._forget()

    def _forget(self) -> None:
        live = self._live() if self._live is not None else None
        if live is not None:
            live.ended = True
        self._live = None
        self._fresh = True

    def plan(self) -> Any:
        """Reads, bytes, amplification, memory and quality of the shuffle, before a chunk is fetched. Prints as a table;
        ``plan()["…"]`` and ``dict(plan())`` have the numbers."""
        import json

        from headrace._report import Plan

        return Plan(json.loads(self._handle.plan()), self.samples.info)

    def stats(self) -> dict[str, Any]:
        """What has happened so far: batches, bytes, times, memory, requests, fills (see `docs/reports.md`). Prints as a
        table; it is a dict of the numbers."""
        import json

        from headrace._report import Stats

        return Stats(json.loads(self._handle.stats()))

    def torch(self) -> Any:
        """A ``torch.utils.data.IterableDataset`` that yields dicts of tensors: for bare loops, for
        ``DataLoader(…, batch_size=None)`` and for ``StatefulDataLoader``."""
        from headrace._torch import dataset

        return dataset(self)

    def numpy(self) -> Converted:
        """An iterable of dicts of numpy arrays; each loop over it is one epoch of the loader."""
        return Converted(self, "numpy")

    def jax(self) -> Converted:
        """An iterable of dicts of jax arrays; each loop over it is one epoch of the loader."""
        return Converted(self, "jax")

    def close(self) -> None:
        """Stop and let go of threads and memory. Idempotent; batches that are held stay valid."""
        self.closed = True
        self._handle.close()

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        from headrace._report import loader_text

        return loader_text(self)

    def _repr_html_(self) -> str:
        return str(self.plan()._repr_html_())


class Converted:
    """A loader whose batches come out as dicts of a framework's arrays."""

    __slots__ = ("_how", "loader")

    def __init__(self, loader: Loader, how: str) -> None:
        self.loader = loader
        self._how = how

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Any:
        for batch in self.loader:
            yield getattr(batch, self._how)()

    def __repr__(self) -> str:
        from headrace._report import loader_text

        return loader_text(self.loader, f"Loader of {self._how} arrays")


class Epoch:
    """Iterator over what is left of one epoch."""

    __slots__ = ("__weakref__", "_handle", "_loader", "_round", "ended")

    def __init__(self, loader: Loader) -> None:
        self._loader = loader
        self._handle = loader._handle
        self._round = loader._handle.round()
        self.ended = False

    def __iter__(self) -> Epoch:
        return self

    def __next__(self) -> Any:
        if self.ended:
            raise StopIteration
        batch = self._handle.next(-1, self._round)
        if batch is None:
            self.ended = True
            if self._loader._live is not None and self._loader._live() is self:
                self._loader._live = None
            raise StopIteration
        return batch

    def close(self) -> None:
        """Abandon the epoch; the next loop starts the next one."""
        if not self.ended:
            self.ended = True
            self._loader._live = None
            self._handle.rewind()
