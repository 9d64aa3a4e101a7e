"""Loaders whose batches come out as dicts of a framework's arrays."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


class Converted:
    """A loader, or a mix, whose batches come out as dicts of a framework's arrays."""

    __slots__ = ("_how", "loader")

    def __init__(self, loader: Any, how: str) -> None:
        self.loader = loader
        self._how = how

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self.loader:
            yield self._convert(batch)

    def _convert(self, batch: Any) -> dict[str, Any]:
        return getattr(batch, self._how)()  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        from headrace._report import loader_text

        return loader_text(self.loader, f"Loader of {self._how} arrays")


class Sharded(Converted):
    """Batches as global arrays of JAX: every process gives its rows, and all of them hold the same arrays.

    Row for row a global array is the global batch: ranks are processes, and a mesh of ``jax.devices()`` has the devices
    of process 0 first.
    """

    __slots__ = ("sharding",)

    def __init__(self, loader: Any, sharding: Any) -> None:
        from headrace._arguments import refuse, refuse_type

        accepted = "a jax.sharding.Sharding of the rows is expected, such as NamedSharding(mesh, PartitionSpec('data'))"
        if not hasattr(sharding, "addressable_devices"):
            refuse_type("jax: sharding", sharding, accepted)
        super().__init__(loader, "jax")
        self.sharding = sharding
        for one in getattr(loader, "loaders", {"": loader}).values():
            for view in one.samples.info["views"]:
                if view.get("form") == "csr":
                    accepted = 'rows of dense arrays are dealt to devices: take X="dense", or hr.padded(…)'
                    refuse("jax: sharding", sharding, f"{view['name']} is sparse: {accepted}")
                _check(sharding, one.plan(), view["shape"])

    def _convert(self, batch: Any) -> dict[str, Any]:
        import jax

        return {name: jax.make_array_from_process_local_data(self.sharding, x) for name, x in batch.numpy().items()}


def _check(sharding: Any, plan: Any, shape: list[int]) -> None:
    """Every batch can be dealt to the devices."""
    from headrace._arguments import refuse

    whole = plan["global_batch"]
    last = plan["samples"] % whole if plan["remainder"] == "short" else 0
    for rows, what in (whole, "a global batch of"), (last, "the last batch of an epoch, of"):
        try:
            sharding.shard_shape((rows, *shape))
        except ValueError as e:
            hint = "use remainder='pad', 'drop' or 'wrap'" if rows != whole else str(e).splitlines()[0]
            refuse("jax: sharding", sharding, f"{what} {rows} rows cannot be dealt evenly to its devices: {hint}")
