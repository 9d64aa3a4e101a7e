"""Python callables on batches, in a small pool with the order kept: `Loader.map`. And native hooks."""

from __future__ import annotations

import threading

from headrace._arguments import integer, refuse, refuse_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from headrace._loader import Loader

_kept: list[Any] = []  # a hook may run shortly after its loader has gone: its code stays


def attach(loader: Loader, native: Any) -> None:
    """Have workers run a native function on each batch before it is handed over."""
    address = getattr(native, "address", native)  # numba's cfunc has one
    if isinstance(address, bool) or not isinstance(address, int):
        import ctypes

        try:
            if not callable(native):
                raise TypeError
            address = ctypes.cast(native, ctypes.c_void_p).value
        except (ctypes.ArgumentError, TypeError):
            address = None
    if not address or address < 0:
        accepted = "the address of a hr_hook, as int, a numba cfunc or a ctypes function, is expected"
        refuse_type("native", native, accepted)
    _kept.append(native)
    loader._handle.hook(address)


class Mapped:
    """A loader whose batches went through a function. Made by `Loader.map`.

    Iterate, `state_dict` and `close` as with the loader itself; the state is that of what was handed out, though the
    pool has taken more.
    """

    def __init__(self, loader: Loader, fn: Callable[[Any], Any], workers: int = 2) -> None:
        if not callable(fn):
            refuse_type("map: fn", fn, "a function of a batch is expected")
        self.loader = loader
        self.fn = fn
        self.workers = integer("map: workers", workers, 1, 256)
        self._work: _Work | None = None

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> MappedEpoch:
        if self._work is not None:
            if self._work.live():
                from headrace._errors import StateError

                raise StateError("this loader already has a live iterator: finish or close() it first")
            self._work.stop()
        self._work = _Work(self)
        return MappedEpoch(self._work)

    def set_epoch(self, epoch: int) -> None:
        """Continue at the first batch of `epoch`."""
        self._forget()
        self.loader.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """As `Loader.state_dict`, of what this iterator has handed out."""
        import json

        if self._work is None or self._work.state is None:
            return self.loader.state_dict()
        return dict(json.loads(self._work.state))

    def load_state_dict(self, state: dict[str, Any], allow: str | None = None) -> None:
        """As `Loader.load_state_dict`."""
        self._forget()
        self.loader.load_state_dict(state, allow)

    def _forget(self) -> None:
        if self._work is not None:
            self._work.stop()
            self._work = None

    def plan(self, columns: object = ()) -> Any:
        """As `Loader.plan`."""
        return self.loader.plan(columns)

    def stats(self) -> dict[str, Any]:
        """As `Loader.stats`; batches that the pool has taken count as delivered."""
        return self.loader.stats()

    def close(self) -> None:
        """Stop, and close the loader. A function that is running finishes on its own thread; nobody waits for it."""
        self.loader.close()
        if self._work is not None:
            self._work.ask_to_stop()

    def __enter__(self) -> Mapped:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        from headrace._report import loader_text

        name = getattr(self.fn, "__qualname__", type(self.fn).__name__)
        return loader_text(self.loader, f"Loader mapped by {name} on {self.workers} threads")


class MappedEpoch:
    """Iterator over what is left of one epoch. Letting go of it abandons the epoch."""

    def __init__(self, work: _Work) -> None:
        self._work = work

    def __iter__(self) -> MappedEpoch:
        return self

    def __next__(self) -> Any:
        return self._work.take()

    def close(self) -> None:
        """Abandon the epoch; the next loop starts the next one."""
        self._work.stop()

    def __del__(self) -> None:
        self._work.ask_to_stop()


class _Work:
    """What the threads of one epoch share. Each takes a batch in turn, calls the function, and leaves the result under
    the batch's number; the consumer takes results by number. At most `workers` results wait."""

    def __init__(self, mapped: Mapped) -> None:
        self.fn = mapped.fn
        self.loader = mapped.loader
        self.state: str | None = self.loader._state_text()
        self.epoch = iter(mapped.loader)
        self.most = 2 * mapped.workers
        self.pulling = threading.Lock()  # who takes the next batch
        self.changed = threading.Condition()
        self.results: dict[int, tuple[Any, BaseException | None, str | None]] = {}
        self.pulled = self.taken = 0
        self.ended = self.stopped = False
        self.threads = [
            threading.Thread(target=self._run, name=f"headrace-map-{i}", daemon=True) for i in range(mapped.workers)
        ]
        for thread in self.threads:
            thread.start()

    def live(self) -> bool:
        return not self.stopped and not (self.ended and not self.results)

    def ask_to_stop(self) -> None:
        with self.changed:
            self.stopped = True
            self.results.clear()
            self.changed.notify_all()

    def stop(self) -> None:
        """The loader is free for the next epoch when this returns; a function may still be running."""
        self.ask_to_stop()
        with self.pulling:
            self.epoch.close()

    # ---- threads

    def _run(self) -> None:
        while (pulled := self._pull()) is not None:
            number, batch, state, error = pulled
            value = None
            if error is None:
                try:
                    value = _checked(self.fn(batch), len(batch), self.fn)
                except StopIteration as e:  # which would end the consumer's loop without a word
                    error = RuntimeError("the function of Loader.map raised StopIteration")
                    error.__cause__ = e
                except BaseException as e:  # the consumer's, at this batch's turn
                    error = e
                if error is not None:
                    error.add_note(f"in the function of Loader.map, at step {batch.step} of epoch {batch.epoch}")
            self._leave(number, value, error, state)
            del batch, value, error, pulled

    def _room(self) -> bool:
        return self.pulled - self.taken < self.most

    def _pull(self) -> tuple[int, Any, str | None, BaseException | None] | None:
        with self.pulling:
            with self.changed:
                self.changed.wait_for(lambda: self.stopped or self.ended or self._room())
                if self.stopped or self.ended:
                    return None
            batch = state = error = None
            try:
                batch = next(self.epoch, None)
                state = self.loader._state_text()
            except BaseException as e:  # of the loader: it is the consumer's too
                error = e
            with self.changed:
                number = self.pulled
                self.pulled += 1
                self.ended = batch is None
            if batch is not None:
                return number, batch, state, None
        self._leave(number, None, error, state)
        return None

    def _leave(self, number: int, value: Any, error: BaseException | None, state: str | None) -> None:
        with self.changed:
            if not self.stopped:
                self.results[number] = (value, error, state)
            self.changed.notify_all()

    # ---- consumer

    def take(self) -> Any:
        with self.changed:
            self.changed.wait_for(lambda: self.taken in self.results or self.stopped)
            if self.stopped:
                raise StopIteration
            value, error, state = self.results.pop(self.taken)
            self.taken += 1
            if error is None:
                self.state = state
            last = value is None and self.ended and self.taken == self.pulled
            self.stopped = last
            self.changed.notify_all()
        if error is not None:
            self.stop()
            raise error
        if last:
            raise StopIteration
        return value


# ---- what a function may give


def _checked(value: Any, rows: int, fn: Any) -> Any:
    """The value, if all that looks like a tensor in it has as many rows as the batch."""
    if value is None:
        refuse("map: fn", fn, "it gave None; return the batch, or what is made of it")
    listed = isinstance(value, (tuple, list))
    parts = [(repr(i), part) for i, part in enumerate(value)] if listed else [("", value)]
    while parts:
        name, part = parts.pop()
        if isinstance(part, dict) or (hasattr(part, "items") and hasattr(part, "keys")):
            parts += [(f"{name}[{key!r}]" if name else repr(key), inner) for key, inner in part.items()]
            continue
        shape = getattr(part, "shape", None)
        found = int(shape[0]) if shape is not None and len(shape) else None
        if found is not None and found != rows:
            what = name or "its value"
            refuse("map: fn", fn, f"it was given {rows} rows and gave {found} in {what}; the batch size is to be kept")
    return value
