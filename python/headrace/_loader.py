"""The loader: an iterable of batches with an exact position."""

from __future__ import annotations

import _weakref
import atexit

from headrace import _headrace
from headrace._arguments import choice, integer, optional, real, refuse, refuse_type
from headrace._arguments import dtype as known_dtype
from headrace._recipe import words_of
from headrace._text import parse_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from headrace._convert import Converted
    from headrace._epoch import Epoch
    from headrace._map import Mapped
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
    from headrace._rank import check_streams, find_rank

    if (o["n"] is None) == (o["global_batch"] is None):
        from headrace._errors import InvalidError

        raise InvalidError(
            "give the batch size: exactly one of n (rows on this rank) and global_batch (over all ranks)"
        )
    if not len(samples):
        from headrace._errors import InvalidError

        of = f"none of {samples.info['axis']:,} along {', '.join(samples.axes)} was chosen"
        raise InvalidError(f"no samples to make batches of: {of}; len(samples) says how many a condition leaves")
    rank, world = find_rank(o["rank"], o["world"], o["replicas"])
    if o["streams"] is not None:
        check_streams(integer("streams", o["streams"], 1), world, "streams")
    given = [o["seed"], o["spread"], o["block"], o["streams"], o["remainder"], o["shuffle"] or None, o["order"]]
    sampling, columns = _sampling(samples, o["weights"], o["stratify"])
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
        sampling,
    )
    loader = Loader(handle, samples, rank, world, None if o["steps"] is None else integer("steps", o["steps"], 1))
    loader._columns = columns
    if o["native"] is not None:
        from headrace._map import attach

        attach(loader, o["native"])
    if o["transform"] is None:
        return loader
    return loader.map(o["transform"], o["transform_workers"])  # type: ignore[return-value]


def _sampling(samples: Samples, weights: object, stratify: object) -> tuple[tuple[Any, ...] | None, list[Any]]:
    """What the handle takes, and the columns that are in it."""
    if weights is None and stratify is None:
        return None, []
    from headrace._columns import column
    from headrace._strata import strata_of
    from headrace._weights import weights_of

    given = (None, None, None) if weights is None else weights_of(samples, weights)
    codes, count, columns = (None, 0, []) if stratify is None else strata_of(samples, stratify)
    known = {c.name for c in columns}
    if isinstance(weights, dict) and not known.issuperset(weights):
        columns = [*columns, *(column(samples, "weights", name) for name in weights)]
    return (*given, codes, count), columns


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
    """Yields `Batch` after `Batch`; each ``for`` loop is one epoch: a pass over the samples, or `steps` steps.

    One iterator lives at a time. A loop that is left early abandons its epoch: the next loop starts the next one. A
    state taken at any step continues there, exactly, on any number of ranks that divides `streams`.

    >>> with train.batches(32, shuffle=True) as loader:        # doctest: +SKIP
    ...     for batch in loader:
    ...         train_step(batch["x"].torch())
    """

    def __init__(self, handle: Any, samples: Samples, rank: int, world: int, steps: int | None) -> None:
        self._handle = handle
        me = id(self)
        _open[me] = _weakref.ref(self, lambda _: _open.pop(me, None))
        self.samples = samples
        self.rank = rank
        self.world = world
        self.closed = False
        self._live: Any = None
        self._fresh = True  # the position was set, or nothing was asked for yet
        self._stretch: Any = None  # of epochs by steps
        self._ended = True  # next() has said that an epoch is over, or none has begun
        self._columns: list[Any] = []  # that weights and strata are made of
        self._made_with = words_of(samples)  # of cells: what a state says of them
        if steps is not None:
            self._by_steps(steps)

    def _by_steps(self, steps: int) -> None:
        from headrace._passes import Stretch

        self._stretch = Stretch(self._handle, steps)

    def __len__(self) -> int:
        """Steps of a whole epoch, the same on every rank."""
        return self._stretch.steps if self._stretch is not None else int(self._handle.steps())

    def __iter__(self) -> Epoch:
        live = self._live() if self._live is not None else None
        if live is not None and not live.ended:
            from headrace._errors import StateError

            raise StateError(
                "this loader already has a live iterator: finish or close() it first, or open a second loader"
            )
        if not self._fresh and live is None and self._live is not None:
            self._abandon()
        self._fresh = False
        from headrace._epoch import Epoch

        epoch = Epoch(self)
        self._live = _weakref.ref(epoch)
        return epoch

    def _abandon(self) -> None:
        """The next loop starts the next epoch."""
        if self._stretch is not None:
            self._stretch.abandon()
        else:
            self._handle.rewind()

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
        limit = _milliseconds(timeout)
        if self._stretch is not None:
            return self._next_of_stretch(limit)
        batch = self._handle.next(limit)
        if batch is not None:
            batch.samples = self.samples
        return batch

    def _next_of_stretch(self, limit: int) -> Any:
        """The next batch; None where an epoch ends, once."""
        with self._stretch.lock:
            if self._ended:
                self._ended = False
            elif self._stretch.taken and self._stretch.left() == self._stretch.steps:
                self._ended = True
                return None
            return self._take(limit)

    def _take(self, limit: int) -> Any:
        """A batch of this pass, or of the next one; `_stretch.lock` is held."""
        batch = self._handle.next(limit)
        while batch is None:
            batch = self._handle.next(limit)
        batch.samples = self.samples
        self._stretch.taken += 1
        return batch

    def set_epoch(self, epoch: int) -> None:
        """Continue at the first batch of `epoch`."""
        number = integer("epoch", epoch, 0)
        if self._stretch is not None:
            self._stretch.seek(number * self._stretch.steps)
        else:
            self._handle.set_epoch(number)
        self._forget()

    def _seek(self, taken: int) -> None:
        """Continue at the batch before which that many were given, from the first pass on."""
        from headrace._passes import seek

        if self._stretch is not None:
            self._stretch.seek(taken)
        else:
            seek(self._handle, taken)
        self._forget()

    def state_dict(self) -> dict[str, Any]:
        """What the consumer has received, about 220 bytes as JSON, the same on every rank; of cells, what they
        were made with, too."""
        import json

        state = dict(json.loads(self._handle.state()))
        if self._stretch is not None:
            state.update(steps=self._stretch.steps, taken=self._stretch.taken)
        if self._made_with:
            state["cells"] = dict(self._made_with)
        return state

    def _state_text(self) -> str:
        import json

        return json.dumps(self.state_dict())

    def load_state_dict(self, state: dict[str, Any], allow: str | None = None) -> None:
        """Continue where `state` was taken. ``allow="batch"``: the global batch may differ."""
        import json

        accepted = "what state_dict() gave, a dict, is expected"
        if not isinstance(state, dict):
            refuse_type("state", state, accepted)
        may_differ = choice("allow", allow, {None: 0, "batch": 1})
        if "mix" in state:
            refuse("state", state, "it was taken of a mix; load it into one: hr.mix(…).load_state_dict(state)")
        try:
            text = json.dumps(state)
        except (TypeError, ValueError, RecursionError):
            refuse("state", state, accepted)
        self._check_world(state)
        before = json.loads(self._handle.state())["global_batch"]
        self._load(text, bool(may_differ), state.get("cells"))
        if self._stretch is None and state.get("steps") is not None:
            self._by_steps(integer("state: steps", state["steps"], 1))
        if self._stretch is not None:
            self._stretch.resume(state, before == state["global_batch"])
        self._forget()

    def _load(self, text: str, may_differ: bool, made_with: Any) -> None:
        from headrace._errors import StateError
        from headrace._recipe import differing

        try:
            self._handle.load_state(text, may_differ)
        except StateError as error:
            differs = differing(made_with, self.samples)
            if not differs or "fingerprint" not in str(error):
                raise
            raise StateError(f"{error}; the state was taken with {differs}") from None

    def _check_world(self, state: dict[str, Any]) -> None:
        streams = state.get("streams")
        if isinstance(streams, int) and streams > 0 and streams % self.world:
            from headrace._errors import StateError
            from headrace._rank import divisors

            raise StateError(
                f"the state was taken with {streams} streams, which {self.world} ranks cannot share evenly: resume on "
                f"{divisors(streams)} ranks"
            )

    def _forget(self) -> None:
        live = self._live() if self._live is not None else None
        if live is not None:
            live.ended = True
        self._live = None
        self._fresh = True
        self._ended = True

    def plan(self, columns: object = ()) -> Any:
        """Reads, bytes, amplification, memory and quality of the shuffle, before a chunk is fetched. Prints as a table;
        ``plan()["…"]`` and ``dict(plan())`` have the numbers.

        How well batches represent the epoch is told of the position in the archive, the hour and the day of the year,
        the columns of `weights` and `stratify`, and of `columns`: a name as `Samples.where` takes them, an array with a
        value for each position of the sample axis, or a list of those. None: of the position alone, so that no
        coordinate is read; the program `headrace plan` says the same.
        """
        from headrace._quality import columns_of, cycles_of, quality_of
        from headrace._report import Plan

        numbers = self._numbers()
        if columns is None:
            return Plan(numbers, self.samples.info)
        wanted = [*self._columns, *columns_of(self.samples, columns)]
        if numbers["shuffle"] != "none":
            wanted = [*cycles_of(self.samples), *wanted]
        numbers["quality"].update(quality_of(self, numbers, wanted))
        return Plan(numbers, self.samples.info)

    def _numbers(self) -> dict[str, Any]:
        """The plan without looking at columns."""
        import json

        return dict(json.loads(self._handle.plan()))

    def stats(self) -> dict[str, Any]:
        """What has happened since the loader was opened: batches, bytes, times, memory, requests, fills (see
        `docs/reports.md`). Prints as a table; it is a dict of the numbers.

        Counts go on over epochs: take the difference for one. Reads run ahead of the batches within an epoch, never
        into the next one, which begins when its first batch is asked for."""
        import json

        from headrace._report import Stats

        return Stats(json.loads(self._handle.stats()))

    def map(self, fn: Callable[[Any], Any], workers: int = 2) -> Mapped:
        """The loader with `fn` called on every batch, on `workers` threads; batches keep their order.

        `fn` gets a `Batch` and returns it, or what it made of it: anything but None, with as many rows. An exception of
        its own comes out of the loop at that batch's turn and ends the epoch.
        """
        from headrace._map import Mapped

        return Mapped(self, fn, workers)

    def torch(self, device: object = None) -> Any:
        """A ``torch.utils.data.IterableDataset`` that yields dicts of tensors: for bare loops, for
        ``DataLoader(…, batch_size=None)`` and for ``StatefulDataLoader``.

        Parameters
        ----------
        device
            Where the tensors are to lie, such as "cuda" or "cuda:1". To a CUDA device they go through two pinned
            buffers on a stream of their own, one batch ahead: the copy of a batch overlaps the work on the one before.
            Default: the CPU, the batch's own memory.
        """
        from headrace._torch import dataset

        return dataset(self, device)

    def numpy(self) -> Converted:
        """An iterable of dicts of numpy arrays; each loop over it is one epoch of the loader."""
        from headrace._convert import Converted

        return Converted(self, "numpy")

    def jax(self, sharding: object = None) -> Converted:
        """An iterable of dicts of jax arrays; each loop over it is one epoch of the loader.

        Parameters
        ----------
        sharding
            A ``jax.sharding.Sharding`` of the rows: what comes out are global arrays, to which each process has given
            its rows (``jax.make_array_from_process_local_data``). Default: arrays of this process, over the batch's
            memory.
        """
        from headrace._convert import Converted, Sharded

        return Converted(self, "jax") if sharding is None else Sharded(self, sharding)

    def tensorflow(self) -> Any:
        """A ``tf.data.Dataset`` of dicts of tensors; each pass over it is one epoch of the loader."""
        from headrace._tensorflow import dataset

        return dataset(self)

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
