"""Samples of single cells: `Cells`, and their obs, of one data set or of several one behind the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace._cells import Table
from headrace._frame import Frame, FrameColumn, code_type
from headrace._samples import Samples

if TYPE_CHECKING:
    from headrace._archive import Archive
    from headrace._atlas import DataSet
    from headrace._sentences import Sentences


class Cells(Samples):
    """Samples whose views are rows of an atlas. Besides what `Samples` has: `obs`, `var` and `genes`; columns of obs
    are names for `where`, `split`, `folds`, ``weights=``, ``stratify=`` and `coords`."""

    _word = "Cells"

    def __init__(self, handle: Any, archive: Archive, described: tuple[Any, dict[str, Any]]) -> None:
        super().__init__(handle, archive, described)
        self._recipe: tuple[Any, ...] = ()
        self._frame: JoinedFrame | None = None
        self._sets: list[DataSet] = []
        self.genes: Any = None  #: names of the genes of X, in the order of its columns

    def _become(self, recipe: tuple[Any, ...], frame: JoinedFrame, genes: Any, sets: list[DataSet]) -> None:
        self._recipe, self._frame, self.genes, self._sets = recipe, frame, genes, sets

    def _derived(self, handle: Any) -> Cells:
        one = Cells(handle, self.archive, self._described)
        one._become(self._recipe, self._frame, self.genes, self._sets)  # type: ignore[arg-type]
        return one

    def _again(self) -> tuple[Any, tuple[Any, ...]]:
        return unpack, self._recipe

    def index_dtype(self, view: str) -> str:
        """The type of a view's genes or tokens."""
        options = self._described[1][view].options
        tokens = options["form"] == 3 or options.get("tokens") is not None
        return "int64" if options.get("index_dtype") == 5 or (tokens and not options.get("index_dtype")) else "int32"

    @property
    def shape(self) -> tuple[int, int]:
        """Cells × genes, of those that were chosen."""
        return len(self), len(self.genes)

    @property
    def obs(self) -> Frame:
        """Columns of obs, all that the atlas has, by name, each with a value for every cell of it:
        ``samples.obs["cell_type"].categories``, ``samples.obs["n_genes"][batch.index.numpy()]``."""
        assert self._frame is not None
        return self._frame

    def __repr__(self) -> str:
        from headrace._report import samples_text

        return samples_text(self.info, _notes(self), self._word)

    def _repr_html_(self) -> str:
        from headrace._report import samples_html

        return samples_html(self.info, _notes(self))

    @property
    def obs_columns(self) -> Frame | None:
        """Names that conditions, splits and weights may use besides coordinates."""
        return self._frame

    @property
    def var(self) -> Frame:
        """Columns of var, of all genes of the first data set, whether X has them or not."""
        return self._sets[0].var

    def sentences(
        self, n: int, *, by: Any, controls: dict[str, Any] | None = None, partial: str = "drop", seed: int = 0
    ) -> Sentences:
        """Samples of `n` cells each that share columns of obs, near each other in the archive (docs/cells.md).

        Parameters
        ----------
        n
            Cells of a sentence. Tensors get a second dimension: ``batch["X"]`` is (rows, n, genes); rows of CSR are
            one cell after another, rows · n in all. ``batch["cells"]`` has their ids, (rows, n).
        by
            Columns of obs that the cells of a sentence share. Those among the columns of the batch have one value a
            sentence; all others have one a cell, (rows, n). Cells without a value are in no sentence.
        controls
            ``{"where": "drug == 'DMSO'", "match": ["cell_line"]}``: beside each sentence as many controls (`n`: another
            number), of these samples, that share the columns of `match` with it: ``batch["control.X"]``,
            ``batch["control.cells"]``. They are drawn from those of the same run of row chunks, or, where these are
            fewer than `pool` (2 n), from the `pool` nearest ones and others in the row chunks of these.
        partial
            Of what a group has beyond whole sentences: "drop" leaves other cells out in each epoch, "repeat" fills up
            a last sentence with cells that come twice.
        seed
            Of the draws. Which cells meet in a sentence is a pure function of (seed, epoch, sentence); which sentences
            meet in a batch is the loader's order, of its own seed.

        For example::

            cells = hr.open("atlas.zarr").cells("dense", obs=["cell_line", "drug"])
            sets = cells.sentences(32, by=["cell_line", "drug"],
                                   controls={"where": "drug == 'DMSO'", "match": ["cell_line"]})
            for batch in sets.batches(8, shuffle=True):
                batch["X"], batch["control.X"], batch["drug"]
        """
        from headrace._sentences import sentences_of

        return sentences_of(self, n, by, controls, partial, seed)


def unpack(archive: Archive, make: Any, options: dict[str, Any], packed: Any) -> Samples:
    from headrace._pickle import left_over

    return left_over(make(archive, options), packed)


def _place(one: DataSet) -> str:
    return one.matrix.path if len(one.matrix.parts) <= 1 else f"{len(one.matrix.parts)} chunks"


def _notes(samples: Cells) -> dict[str, str]:
    """What is said of views and tables."""
    from headrace._format import count, plural

    notes = {}
    for view in samples.info["views"]:
        if "form" in view:
            sets = samples._sets
            of = f"of {_place(sets[0])}" if len(sets) == 1 else f"of {len(sets)} data sets"
            stored = round(view["items_a_row"] * view["rows"])
            extent = f"{count(view['rows'])} cells × {plural(len(samples.genes), 'gene')}"
            notes[view["name"]] = f"{of}: {extent}, {count(stored)} values stored"
    for table in samples.info["tables"]:
        given = samples._described[1].get(table["name"].removeprefix("control."))
        known = getattr(given, "categories", None)
        if known is not None:
            some = ", ".join(map(str, known[:4])) + (", …" if len(known) > 4 else "")
            word = "category" if len(known) == 1 else "categories"
            notes[table["name"]] = f"{count(len(known))} {word}: {some}"
    return notes


class JoinedFrame(Frame):
    """The obs of data sets one behind the other; `dataset`: the name of a column that says which one a cell is of, and
    of no other: columns of obs that are called so are not seen."""

    def __init__(
        self, sets: list[DataSet], dataset: str | None = None, names: list[str] | None = None, of: Any = ()
    ) -> None:
        frames = [one.obs for one in sets]
        common = [n for n in frames[0].keys() if n != dataset and all(n in f for f in frames[1:])]  # noqa: SIM118
        index = frames[0].index_name if frames[0].index_name in common else None
        own = [dataset] if dataset is not None else []
        super().__init__([*common, *own], index, sum(len(f) for f in frames), "obs")
        self.unread = next((f.unread for f in frames if f.unread), "")
        self._frames, self._dataset = frames, dataset
        self._sets, self._set_names, self._of = sets, names or [], of

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or (len(self._frames) == 1 and name in self._frames[0])

    def check_own(self, name: str) -> None:
        """A column that is asked for by the name of the data sets' codes: there is none of obs beside these."""
        having = [one.label for one, frame in zip(self._sets, self._frames) if name == self._dataset and name in frame]
        if having:
            from headrace._arguments import refuse
            from headrace._genes import listed

            refuse("obs", name, f"obs of {listed(having)} has a column of that name, which dataset={name!r} gives the "
                   "codes of the data sets: give dataset= another name, or None")  # fmt: skip

    def table(self, name: str) -> Table:
        column = self[name]
        column.freeze()  # batches are filled from the same memory
        return Table(column.table(), column.categories)

    def _read(self, name: str) -> FrameColumn:
        if name == self._dataset:
            return self._which(name)
        columns = [frame[name] for frame in self._frames]
        return columns[0] if len(columns) == 1 else one_behind_the_other(name, columns, [s.label for s in self._sets])

    def _which(self, name: str) -> FrameColumn:
        import numpy as np

        lengths = [len(f) for f in self._frames]
        codes: Any = np.repeat(np.array(self._of, code_type(len(self._set_names))), lengths)
        return FrameColumn(name, codes=codes, categories=np.array(self._set_names, object))

    def _refuse(self, name: str) -> None:
        lacking = [one.label for one, frame in zip(self._sets, self._frames) if name not in frame]
        if len(lacking) < len(self._sets):
            from headrace._errors import NotFoundError
            from headrace._genes import listed

            raise NotFoundError(
                f"obs: not all data sets have a column {name!r}: there is none in {listed(lacking)}; all have "
                f"{', '.join(self._names[:30])}"
            )
        super()._refuse(name)


def one_behind_the_other(name: str, columns: list[FrameColumn], labels: list[str]) -> FrameColumn:
    import numpy as np

    kinds = {c.kind for c in columns}
    if kinds <= {"category", "text"}:
        return _unified(name, columns)
    if not kinds <= {"number", "bool"} or (len(kinds) > 1):
        from headrace._arguments import refuse

        words = ", ".join(f"in {label} {c.kind}" for label, c in zip(labels, columns))
        refuse("obs", name, f"the data sets differ in its kind: {words}")
    masks = [c._mask for c in columns]
    numbers = _numbers_of(name, columns)
    if all(m is None for m in masks):
        return FrameColumn(name, numbers=numbers)
    whole = [np.zeros(len(c), bool) if m is None else m for c, m in zip(columns, masks)]
    return FrameColumn(name, numbers=numbers, mask=np.concatenate(whole))


def _numbers_of(name: str, columns: list[FrameColumn]) -> Any:
    """In the widest type. Signed and unsigned integers of 64 bits have none but float64, which would round them: those
    are in the one of the two that holds them all."""
    import numpy as np

    numbers: list[Any] = [c.numbers for c in columns]
    kind = np.result_type(*(x.dtype for x in numbers))
    if kind.kind != "f" or any(x.dtype.kind not in "iu" for x in numbers):
        return np.concatenate(numbers)
    there = [x if c._mask is None else np.where(c._mask, x.dtype.type(0), x) for x, c in zip(numbers, columns)]
    low = min(int(x.min(initial=0)) for x in there)
    high = max(int(x.max(initial=0)) for x in there)
    if low < 0 and high >= 1 << 63:
        from headrace._arguments import refuse

        refuse("obs", name, f"no type of integers holds what the data sets have of it, from {low} to {high}")
    return np.concatenate([x.astype(np.int64 if high < 1 << 63 else np.uint64) for x in there])


def _unified(name: str, columns: list[FrameColumn]) -> FrameColumn:
    """Categories in the order in which they are first seen."""
    import numpy as np

    number: dict[Any, int] = {}
    maps = []
    for column in columns:
        to = [number.setdefault(c, len(number)) for c in column.categories.tolist()]
        maps.append(np.array([*to, -1], np.int64))
    kind = code_type(len(number))
    codes = np.concatenate([to[c.codes].astype(kind) for to, c in zip(maps, columns)])
    same = all(list(c.categories) == list(columns[0].categories) for c in columns)
    ordered = same and all(c.ordered for c in columns)
    categories: Any = np.empty(len(number), object)
    categories[:] = list(number)
    return FrameColumn(name, codes=codes, categories=categories, ordered=ordered)
