"""An h5ad file as `headrace verify` reads archives: HDF5 checks what it has checksums of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from headrace._cli.verify_arrays import Findings, Reader, Rule


class H5adReader(Reader):
    def __init__(self, path: Path, found: Findings, memory: int) -> None:
        from headrace._cli.cells_old import opened

        self._file = opened(path)
        nodes: list[dict[str, Any]] = []
        self._file.visititems(lambda name, node: nodes.append(_node(name, node)))
        super().__init__(_Opened(nodes), None, found, memory, False)

    def read(self, path: str, rule: Rule | None, report: Callable[[int], None]) -> None:
        array = self._file[path]
        self.read_arrays += 1
        for block in self._blocks(self.nodes[path]):
            try:
                values = array[block]
            except OSError as error:
                where = ", ".join(f"{s.start}:{s.stop}" for s in block)
                self.found.add(path, f"[{where}] cannot be read: {error}", "read")
                continue
            n = int(getattr(values, "nbytes", 0))
            self.read_bytes += n
            report(n)
            if rule is not None:
                rule(values, block[0].start if block else 0)


class _Opened:
    """What the reader of archives asks of one."""

    def __init__(self, nodes: list[dict[str, Any]]) -> None:
        self.info = {"nodes": nodes, "complete": True}
        self.attributes: dict[str, Any] = {}


def _node(name: str, node: Any) -> dict[str, Any]:
    attributes = {
        k: v for k, v in node.attrs.items() if k in ("encoding-type", "h5sparse_format", "shape", "h5sparse_shape")
    }
    if "column-order" in node.attrs:  # of a data frame: also which of its arrays is the index
        attributes["column-order"] = [str(n) for n in getattr(node.attrs["column-order"], "flat", ())]
    for key in ("encoding-type", "h5sparse_format"):
        if isinstance(attributes.get(key), bytes):
            attributes[key] = attributes[key].decode()
    for key in ("shape", "h5sparse_shape"):
        if key in attributes:
            attributes[key] = [int(n) for n in attributes[key]]
    if not hasattr(node, "dtype"):
        return {"path": name, "kind": "group", "attributes": attributes, "error": None}
    shape = list(node.shape or ())
    size = node.dtype.itemsize
    for n in shape:
        size *= n
    return {
        "path": name,
        "kind": "array",
        "attributes": attributes,
        "error": None,
        "shape": shape,
        "dtype": node.dtype.name,
        "chunks": list(node.chunks or shape),
        "shards": None,
        "bytes": size,
        "codecs": node.compression or "",
    }
