"""`Cells.sentences`: samples of several cells that share columns of obs, beside controls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace._arguments import choice, integer, near, refuse, refuse_type
from headrace._cells import Table
from headrace._frame import Frame, FrameColumn
from headrace._moments import OF_GENES
from headrace._obs import Cells
from headrace._samples import Added, build

if TYPE_CHECKING:
    from headrace._pools import Pools

_CONTROLS = 'a dict is expected, such as {"where": "drug == \'DMSO\'", "match": ["cell_line"]}'
_AXIS = "sentence"
_MOST = 2**31 - 1  # cells of a sentence


class Controls:
    """What was asked for: a condition, columns that a control shares with its sentence, how many, out of how many."""

    def __init__(self, given: Any, n: int, by: list[str]) -> None:
        if not isinstance(given, dict):
            refuse_type("controls", given, _CONTROLS)
        known = ("where", "match", "n", "pool")
        wrong = next((k for k in given if k not in known), None)
        if wrong is not None:
            refuse("controls", wrong, f"{', '.join(known)} are known{near(str(wrong), known)}; {_CONTROLS}")
        if given.get("where") is None:
            refuse("controls", given, f'"where" says which cells are controls: {_CONTROLS}')
        from headrace._union import names_of

        self.where = given["where"]
        self.match = names_of("controls: match", given.get("match", ()))
        apart = [name for name in self.match if name not in by]
        if apart:
            refuse("controls: match", apart[0], f"cells of a sentence do not share it: name it in by, too (it is {by})")
        self.n = n if given.get("n") is None else integer("controls: n", given["n"], 1, _MOST)
        self.pool = 2 * self.n if given.get("pool") is None else integer("controls: pool", given["pool"], self.n)


class Described(Added):
    """How cells become sentences; adds them to samples that are being built, and then knows its pools."""

    def __init__(self, cells: Cells, n: int, by: list[str], controls: Controls | None, repeat: bool, seed: int) -> None:
        self.cells, self.n, self.by, self.controls, self.repeat, self.seed = cells, n, by, controls, repeat, seed
        self.pools: Pools
        self.representative: Any = None  # of each group a cell

    def add(self, handle: Any, name: str) -> None:
        import numpy as np

        from headrace._codes import group_codes
        from headrace._pools import Grouped, cut, window_chunks

        cells = self.cells
        edges: Any = np.frombuffer(handle.row_chunks("X"), np.int64)
        codes, n = group_codes([cells.obs[c] for c in self.by], int(edges[-1]))
        grouped = Grouped(cells._handle, codes, n)
        del codes  # it is as large as a column
        self._check(grouped.sizes)
        self.representative = grouped.firsts()
        block = window_chunks(grouped, self.n, edges, self._row_bytes())
        windows = edges[block:-1:block]
        self.pools = pools = cut(grouped, self.n, windows, self.repeat)
        controls = None if self.controls is None else self._controls(self.controls, windows, edges)
        handle.sentences(
            _AXIS, pools.begin, (self.n, pools.first, pools.size, grouped.rows), controls, self.seed, block
        )
        pools.first = pools.size = pools.middle = None

    def _row_bytes(self) -> float:
        """Of a cell as it is decoded, about."""
        view = next(v for v in self.cells.info["views"] if v["name"] == "X")
        return float(8 * view["items_a_row"] if "form" in view else view["bytes"])

    def _check(self, sizes: Any) -> None:
        groups = int((sizes > 0).sum())
        if not groups:
            refuse("sentences: by", ", ".join(self.by), f"none of {len(self.cells)} cells has a value in all of them")
        most = int(sizes.max())
        if most < self.n and not self.repeat:
            refuse("sentences: n", self.n, f"no group of {', '.join(self.by)} has so many cells: the largest of "
                   f'{groups} has {most}; partial="repeat" fills sentences with repeats')  # fmt: skip

    def _controls(self, c: Controls, windows: Any, edges: Any) -> Any:
        import numpy as np

        from headrace._codes import group_codes
        from headrace._pools import Grouped, nearest

        among = self.cells.where(c.where)
        if not len(among):
            everywhere = f" among these {len(self.cells)} samples: what is left out before, by where or a split, "
            refuse("controls: where", c.where, f"it holds for no cell{everywhere}is no control either")
        codes, n = group_codes([self.cells.obs[m] for m in c.match], int(edges[-1]))
        keys: Any = np.where(self.representative < 0, -1, codes[self.representative])  # of each group
        controls = Grouped(among._handle, codes, n)
        del codes
        self._matched(c, keys, controls.sizes)
        keys, most = keys[self.pools.group].astype(np.int64), min(c.pool, len(among))
        first, size = nearest(self.pools, keys, windows, edges, controls, most)
        return (c.n, first, size, controls.rows)

    def _matched(self, c: Controls, keys: Any, sizes: Any) -> None:
        """Each group that has a sentence has a control."""
        import numpy as np

        there = np.unique(self.pools.group)
        lacks = there[sizes[keys[there]] == 0]
        if not len(lacks):
            return
        some = "; ".join(self._words(g) for g in lacks[:5]) + (f" and {len(lacks) - 5} more" if len(lacks) > 5 else "")
        from headrace._errors import InvalidError

        raise InvalidError(
            f"controls: {len(lacks)} of {len(there)} groups have none: no cell for which {c.where} holds has the same "
            f"{', '.join(c.match)} as {some}; leave those out before (cells.where), or match fewer columns"
        )

    def _words(self, group: int) -> str:
        row = self.representative[group]
        return ", ".join(f"{name}={self.cells.obs[name][row : row + 1][0]}" for name in self.by)

    def sentence_cells(self) -> Any:
        """For each sentence a cell of its group."""
        import numpy as np

        return np.repeat(self.representative[self.pools.group], self.pools.count)


class Shared(Added):
    """A column of obs that the cells of a sentence share, by sentence."""

    def __init__(self, of: Described, name: str) -> None:
        self.of, self.name = of, name
        column = of.cells.obs[name]
        self.categories = column.categories

    def add(self, handle: Any, name: str) -> None:
        Table(self.of.cells.obs[self.name].table()[self.of.sentence_cells()]).add(handle, name)


class SharedFrame(Frame):
    """Columns of obs that sentences have a value of, one for each sentence."""

    def __init__(self, of: Described) -> None:
        super().__init__(list(of.by), None, int(of.pools.count.sum()), "sentences")
        self._of, self._known = of, {}

    def _read(self, name: str) -> FrameColumn:
        column, rows = self._of.cells.obs[name], self._of.sentence_cells()
        if column.numbers is None:
            return FrameColumn(name, codes=column.codes[rows], categories=column.categories, ordered=column.ordered)
        mask = column.missing[rows]
        return FrameColumn(name, numbers=column.numbers[rows], mask=mask if mask.any() else None)

    def _refuse(self, name: str) -> None:
        if name in self._of.cells.obs:
            refuse("obs", name, f"sentences share {', '.join(self._of.by)} alone: of cells it is "
                   f"sentences.cells.obs[{name!r}][batch[\"cells\"].numpy()]")  # fmt: skip
        super()._refuse(name)


class Sentences(Cells):
    """Samples of several cells each, made by `Cells.sentences`. `obs` has the columns that the cells of a sentence
    share, with a value for each sentence; they are names for `where`, `split`, ``weights=`` and ``stratify=``."""

    _of: Described
    _word = "Sentences"

    def _derived(self, handle: Any) -> Sentences:
        one = Sentences(handle, self.archive, self._described)
        one._become(self._recipe, self._frame, self.genes, self._sets)  # type: ignore[arg-type]
        one._of = self._of
        return one

    @property
    def shape(self) -> tuple[int, int, int]:  # type: ignore[override]
        """Sentences × cells of one × genes."""
        return len(self), self._of.n, len(self.genes)

    @property
    def cells(self) -> Cells:
        """What they are made of: ``sentences.cells.obs["n_genes"][batch["cells"].numpy()]``."""
        return self._of.cells

    def index_dtype(self, view: str) -> str:
        return super().index_dtype(view.removeprefix("control."))

    def sentences(self, *given: Any, **named: Any) -> Sentences:
        from headrace._errors import UnsupportedError

        raise UnsupportedError(
            "these are sentences already: sentences.cells.sentences(…) makes others of the same cells"
        )

    def moments(self, *given: Any, **named: Any) -> Any:
        from headrace._errors import UnsupportedError

        raise UnsupportedError(f"moments: sentences have none: {OF_GENES}, such as sentences.cells")


def sentences_of(cells: Cells, n: object, by: object, controls: object, partial: object, seed: object) -> Sentences:
    from headrace._pickle import pack
    from headrace._union import names_of

    size = integer("sentences: n", n, 1, _MOST)
    names = names_of("sentences: by", by)
    if not names:
        refuse("sentences: by", by, "name at least one column of obs that the cells of a sentence share")
    for name in names:
        cells.obs[name]  # says what there is
    repeat = choice("sentences: partial", partial, {"drop": 0, "repeat": 1}) == 1
    key = integer("sentences: seed", seed, 0)
    asked = None if controls is None else Controls(controls, size, names)
    of = Described(cells, size, names, asked, repeat, key)
    along, views = cells._described
    shared = [name for name in views if name in names]
    for name in shared:
        if name == "cells" or (asked and name.startswith("control.")):
            refuse("sentences: by", name, "a name that sentences have of their own; take the column under another")
    described: dict[str, Any] = {name: view for name, view in views.items() if name not in shared}
    described["sentences"] = of
    described.update({name: Shared(of, name) for name in shared})
    made = build(cells.archive, along, described, Sentences)
    assert isinstance(made, Sentences)
    recipe = (_again, {"cells": (cells._again(), pack(cells._handle)), "n": size, "by": names, "controls": controls,
                       "partial": partial, "seed": key})  # fmt: skip
    made._become(recipe, SharedFrame(of), cells.genes, cells._sets)  # type: ignore[arg-type]
    made._of = of
    return made


def _again(archive: Any, options: dict[str, Any]) -> Sentences:
    """Sentences of cells that are made anew of the archive."""
    (make, arguments), packed = options["cells"]
    cells = make(archive, *arguments, packed)
    return sentences_of(cells, options["n"], options["by"], options["controls"], options["partial"], options["seed"])
