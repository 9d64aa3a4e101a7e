"""Several loaders as one: which of them gives the next batch is a keyed draw by position."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace._arguments import choice, integer, mapping, near, real, refuse, refuse_type, text
from headrace._convert import Converted, Sharded
from headrace._loader import Loader

if TYPE_CHECKING:
    from collections.abc import Iterator

_STOP = {"first": 0, "all": 1}
_VERSION = 1
_TAG = 0x6D6978  # "mix"
_MASK = 2**64 - 1


def _splitmix(z: int) -> int:
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & _MASK
    return z ^ (z >> 31)


def _word(key: int, index: int) -> int:
    return _splitmix((index + 1) * 0x9E3779B97F4A7C15 + key & _MASK)


def mix(
    loaders: dict[str, Loader],
    weights: dict[str, float] | None = None,
    *,
    seed: int = 0,
    steps: int | None = None,
    stop: str = "first",
) -> Mix:
    """One loader out of several: every batch is of one of them, drawn with their weights.

    Parameters
    ----------
    loaders
        By name; a batch says in ``batch.source`` whose it is. They go on from where they are, pass after pass, and
        belong to the mix from now on.
    weights
        By name, not negative; default: the steps of a pass of each, so that all last equally long. They may change at
        any time: ``mix.weights = {…}``, or with other ones given to the mix that loads a state.
    seed
        Of the draws. Which loader gives batch i of epoch e is a pure function of (seed, e, i) and the weights, the same
        on every rank.
    steps
        Of an epoch. Default: an epoch ends as `stop` says.
    stop
        "first": when one of the loaders has given as many batches as a pass has; "all": when all of them have.

    >>> old, new = train.split(0.5, 0.5)                                                  # doctest: +SKIP
    >>> both = hr.mix({"old": old.batches(4), "new": new.batches(4)}, {"old": 1, "new": 3})  # doctest: +SKIP
    >>> for batch in both:                                                                # doctest: +SKIP
    ...     train_step(batch["x"].torch())
    """
    return Mix(loaders, weights, seed, steps, stop)


class Mix:
    """Made by `mix`. Iterable as a `Loader` is, with an exact state."""

    def __init__(
        self, loaders: dict[str, Loader], weights: dict[str, float] | None, seed: int, steps: int | None, stop: str
    ) -> None:
        accepted = "a dict of loaders by name is expected"
        self.loaders: dict[str, Loader] = dict(mapping("mix: loaders", loaders, accepted))
        if not self.loaders:
            refuse("mix: loaders", loaders, accepted)
        for name, loader in self.loaders.items():
            if not isinstance(loader, Loader):
                refuse_type(f"mix: {name}", loader, accepted)
        worlds = {(loader.rank, loader.world) for loader in self.loaders.values()}
        if len(worlds) > 1:
            refuse(
                "mix: loaders", sorted(worlds), "these are different (rank, world): one rank takes part in all of them"
            )
        self.seed = integer("mix: seed", seed, 0, 2**64 - 1)
        self._steps = None if steps is None else integer("mix: steps", steps, 1)
        self._all = choice("mix: stop", stop, _STOP) == 1
        self._own_weights = weights is not None
        self._set_weights(weights)
        self.epoch = 0
        self.position = 0  # batches of this epoch
        self._counts = dict.fromkeys(self.loaders, 0)  # … by source
        self._live: object = None  # a token of the iterator under way
        self.closed = False

    # ---- draws -------------------------------------------------------------------------------------------------------

    @property
    def weights(self) -> dict[str, float]:
        """By name, adding up to 1. Setting them takes effect with the next draw."""
        return dict(self._weights)

    @weights.setter
    def weights(self, weights: dict[str, float]) -> None:
        self._set_weights(weights)

    def _set_weights(self, weights: dict[str, float] | None) -> None:
        self._given = self._checked(weights)
        whole = sum(self._given.values())
        self._weights = {name: weight / whole for name, weight in self._given.items()}
        self._ends: list[tuple[int, str]] = []
        total = 0.0
        for name, weight in self._weights.items():
            if weight > 0:
                total += weight
                self._ends.append((int(total * 2.0**53), name))
        self._ends[-1] = (2**53, self._ends[-1][1])

    def _checked(self, weights: dict[str, float] | None) -> dict[str, float]:
        accepted = f"a dict of weights for {', '.join(self.loaders)} is expected"
        if weights is None:
            weights = {name: len(loader) for name, loader in self.loaders.items()}
        given = mapping("mix: weights", weights, accepted)
        for name in given:
            if name not in self.loaders:
                refuse("mix: weights", given, f"no loader is called {name!r}{near(name, self.loaders)}")
        for name in self.loaders:
            if name not in given:
                refuse("mix: weights", given, f"{name!r} has none; 0 leaves it out")
        numbers = {name: real(f"mix: weight of {name}", given[name], accepted) for name in self.loaders}
        for name, weight in numbers.items():
            if not 0 <= weight < float("inf"):
                refuse(f"mix: weight of {name}", given[name], "a number, not negative and finite, is expected")
        total = sum(numbers.values())
        if not 0 < total < float("inf"):
            refuse("mix: weights", given, "at least one is positive, and their sum finite")
        return numbers

    def _draw(self, epoch: int, position: int) -> str:
        key = _word(_splitmix(self.seed ^ _TAG), epoch)
        at = _word(key, position) >> 11
        return next(name for end, name in self._ends if at < end)

    def _over(self, position: int, counts: dict[str, int]) -> bool:
        """Is an epoch over after so many batches?"""
        if self._steps is not None:
            return position >= self._steps
        done = [counts[name] >= len(self.loaders[name]) for _, name in self._ends]
        return all(done) if self._all else any(done)

    def _run(self, epoch: int, position: int, counts: dict[str, int]) -> Iterator[str]:
        """Draws up to the end of an epoch; `counts` goes along."""
        while not self._over(position, counts):
            name = self._draw(epoch, position)
            counts[name] += 1
            position += 1
            yield name

    # ---- batches -----------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """Steps of this epoch, with the present weights from here on; the same on every rank."""
        if self._steps is not None:
            return self._steps
        return self.position + sum(1 for _ in self._run(self.epoch, self.position, dict(self._counts)))

    def next(self, timeout: float | None = None) -> Any:
        """The next `Batch`, or None at the end of the epoch (the call after that starts the next epoch)."""
        if self._over(self.position, self._counts):
            self._begin(self.epoch + 1)
            return None
        name = self._draw(self.epoch, self.position)
        batch = self.loaders[name].next(timeout)
        if batch is None:  # of a pass: the next one follows
            batch = self.loaders[name].next(timeout)
        self.position += 1
        self._counts[name] += 1
        batch.source = name
        return batch

    def _begin(self, epoch: int) -> None:
        self.epoch = epoch
        self.position = 0
        self._counts = dict.fromkeys(self.loaders, 0)

    def __iter__(self) -> Iterator[Any]:
        """What is left of this epoch; a loop that is left early abandons it."""
        if self._live is not None:
            from headrace._errors import StateError

            raise StateError("this mix already has a live iterator: finish or close() it first")
        self._live = token = object()
        iterator = self._epoch(token)
        next(iterator)  # begun, so that it ends even if no batch is asked for
        return iterator

    def _epoch(self, token: object) -> Iterator[Any]:
        finished = False
        try:
            yield None
            while self._live is token:
                batch = self.next()
                finished = batch is None
                if finished:
                    return
                yield batch
        finally:
            if self._live is token:
                self._live = None
                if not finished:
                    self._begin(self.epoch + 1)

    # ---- positions ---------------------------------------------------------------------------------------------------

    def set_epoch(self, epoch: int) -> None:
        """Continue at the first batch of `epoch`, as if all before it had been run to their ends with the present
        weights: the draws up to it are made again, about a million a second."""
        number = integer("epoch", epoch, 0)
        taken = dict.fromkeys(self.loaders, 0)
        for e in range(number):
            counts = dict.fromkeys(self.loaders, 0)
            for _ in self._run(e, 0, counts):
                pass
            for name, n in counts.items():
                taken[name] += n
        for name, loader in self.loaders.items():
            loader._seek(taken[name])
        self._live = None
        self._begin(number)

    def state_dict(self) -> dict[str, Any]:
        """Where the mix is and where each loader is: the same on every rank."""
        over = self._over(self.position, self._counts)
        return {
            "mix": _VERSION,
            "seed": self.seed,
            "epoch": self.epoch + over,
            "position": 0 if over else self.position,
            "weights": dict(self._given),
            "counts": dict.fromkeys(self.loaders, 0) if over else dict(self._counts),
            "sources": {name: loader.state_dict() for name, loader in self.loaders.items()},
        }

    def load_state_dict(self, state: dict[str, Any], allow: str | None = None) -> None:
        """Continue where `state` was taken, each loader too. Weights that were given to this mix hold from here on;
        otherwise those of the state do."""
        from headrace._errors import StateError

        if not isinstance(state, dict):
            refuse_type("state", state, "what state_dict() gave, a dict, is expected")
        if state.get("mix") != _VERSION:
            raise StateError(f"not a state of a mix (version {_VERSION}): {', '.join(map(str, list(state)[:8]))}")
        sources = state.get("sources")
        if not isinstance(sources, dict) or set(sources) != set(self.loaders):
            names = ", ".join(sources) if isinstance(sources, dict) else "nothing"
            raise StateError(
                f"the loaders differ: the state was taken of {names}; the mix has {', '.join(self.loaders)}"
            )
        if state.get("seed") != self.seed:
            raise StateError(f"seed differs: the state was taken with {state.get('seed')}, the mix has {self.seed}")
        epoch, position = (integer(f"state: {k}", state.get(k), 0) for k in ("epoch", "position"))
        counts = mapping("state: counts", state.get("counts"), "a dict is expected")
        counts = {name: integer(f"state: counts of {name}", counts.get(name), 0) for name in self.loaders}
        if not self._own_weights:
            self._set_weights(state.get("weights"))
        for name, loader in self.loaders.items():
            try:
                loader.load_state_dict(sources[name], allow)
            except StateError as e:
                raise StateError(f"{text('name', name)}: {e}") from None
        self._live = None
        self.epoch, self.position, self._counts = epoch, position, counts

    # ---- the rest of a loader ----------------------------------------------------------------------------------------

    def plan(self) -> dict[str, Any]:
        """The plan of each loader."""
        return {name: loader.plan() for name, loader in self.loaders.items()}

    def stats(self) -> dict[str, Any]:
        """The stats of each loader."""
        return {name: loader.stats() for name, loader in self.loaders.items()}

    def torch(self, device: object = None) -> Any:
        """A ``torch.utils.data.IterableDataset`` of dicts of tensors, as `Loader.torch` gives."""
        from headrace._torch import dataset

        return dataset(self, device)

    def numpy(self) -> Converted:
        """An iterable of dicts of numpy arrays."""
        return Converted(self, "numpy")

    def jax(self, sharding: object = None) -> Converted:
        """An iterable of dicts of jax arrays, as `Loader.jax` gives."""
        return Converted(self, "jax") if sharding is None else Sharded(self, sharding)

    def close(self) -> None:
        """Close all loaders."""
        self.closed = True
        for loader in self.loaders.values():
            loader.close()

    def __enter__(self) -> Mix:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        shares = ", ".join(f"{name} {100 * share:.3g} %" for name, share in self._weights.items())
        return f"<Mix: epoch {self.epoch}, step {self.position} of {len(self):,}: {shares}>"
