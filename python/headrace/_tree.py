"""Groups, arrays and attributes of an archive by path, also where the store cannot list."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from headrace._archive import Archive, Array


class Tree:
    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self._nodes = {node["path"]: node for node in archive.info["nodes"]}
        self.complete = bool(archive.info["complete"])
        self._asked: dict[str, Array | None] = {}

    def array(self, path: str) -> Array | None:
        node = self._nodes.get(path)
        if node is not None:
            return self.archive[path] if node["kind"] == "array" else None
        if self.complete:
            return None
        if path not in self._asked:
            from headrace._errors import NotFoundError

            try:
                self._asked[path] = self.archive[path]
            except NotFoundError:
                self._asked[path] = None
        return self._asked[path]

    def sound(self, path: str) -> Array | None:
        """An array whose metadata is in order; what is wrong with that of another is raised."""
        array = self.array(path)
        if array is not None and array.info.get("error"):
            from headrace._errors import FormatError

            raise FormatError(f"{self.archive.url}: {array.info['error']}")
        return array

    def attributes(self, path: str) -> dict[str, Any]:
        """Of an array or a group; of a group that the store does not tell of: none."""
        if not path:
            return self.archive.attributes
        node = self._nodes.get(path)
        if node is not None:
            return dict(node.get("attributes") or {})
        array = self.array(path)
        return {} if array is None else array.attributes

    def children(self, path: str) -> list[str]:
        """Names directly below, as far as they are known."""
        lead = f"{path}/" if path else ""
        below = (p[len(lead) :].partition("/")[0] for p in self._nodes if p.startswith(lead) and p != path)
        return list(dict.fromkeys(name for name in below if name))

    def has(self, path: str) -> bool:
        """Whether something lies there."""
        return path in self._nodes or bool(self.children(path)) or self.array(path) is not None

    def encoded(self, kinds: tuple[str, ...]) -> list[str]:
        """Paths of the groups and arrays of these encodings."""
        return [p for p, n in self._nodes.items() if (n.get("attributes") or {}).get("encoding-type") in kinds]

    def column(self, path: str) -> bool:
        """Whether there is a column of a data frame."""
        return any(self.array(p) is not None for p in (path, f"{path}/codes", f"{path}/values"))

    def values(self, path: str) -> Any:
        """All values of an array, or of one with a mask (where nothing is missing): categories."""
        from headrace._frame import read_column

        return read_column(self, path, path, path.rpartition("/")[0]).values
