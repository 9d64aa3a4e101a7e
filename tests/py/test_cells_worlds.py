"""Whole atlases, from Zarr to tensors, in every form and under every kind of loader, against numpy (cell_worlds.py)."""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import headrace as hr
from cell_worlds import VALUES, Recipe, binned, cell, opened, part, write

WORLDS = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
seeds = st.integers(0, 1 << 40)


class World:
    """Data sets as one, read in some way; `rows` are (part, row of it) by id."""

    def __init__(self, folder: Path, seed: int) -> None:
        r = self.r = random.Random(seed)
        dtype = r.choice(VALUES)
        whole = [f"G{i}" for i in range(r.choice((1, 2, 9, 60, 300)))]
        self.parts = []
        for k in range(r.choice((1, 1, 1, 2, 3))):
            genes = whole if r.random() < 0.4 else r.sample(whole, r.randint(1 + len(whole) // 2, len(whole)))
            kind = dtype if r.random() < 0.7 else r.choice(("u1", "f4"))
            p = part(r, r.choice((1, 2, 11, 60)), genes, kind, tidy=r.random() < 0.7)
            write(r, p, folder / f"{seed}_{k}.zarr")
            self.parts.append(p)
        self.rows = [(p, i) for p in self.parts for i in range(len(p.rows))]
        self.options, self.how = self._recipe(whole)
        self.form, self.words = self._form()
        self.obs = r.sample(list(self.parts[0].obs), r.randint(0, 3))
        self.samples = opened(self.parts, X=self.form, obs=self.obs, **self.options)

    def _recipe(self, whole: list[str]) -> tuple[dict[str, Any], Recipe]:
        r, options = self.r, {}  # type: ignore[var-annotated]
        common = [g for g in self.parts[0].genes if all(g in p.genes for p in self.parts)]
        genes = list(dict.fromkeys(g for p in self.parts for g in p.genes))
        chosen = r.sample(genes, r.randint(1, len(genes))) if r.random() < 0.4 else None
        if len(self.parts) == 1 and chosen is not None:
            options["genes"], genes = chosen, chosen
        elif len(self.parts) > 1:
            options["join"] = "inner" if common and r.random() < 0.4 else "outer"
            genes = common if options["join"] == "inner" else genes
            if chosen is not None:
                options["join"] = genes = chosen
        how = Recipe(genes, r.choice((None, None, 1e4)), r.choice(("all", "genes")), r.random() < 0.3, None, None)
        options.update(normalize=how.normalize, normalize_over=how.over, log1p=how.log1p)
        if r.random() < 0.5:
            options["row_chunk"] = r.choice((1, 2, 5, 1000))
        return options, how

    def _form(self) -> tuple[Any, dict[str, Any]]:
        r, genes = self.r, self.how.genes
        kind = r.choice(("csr", "csr", "dense", "padded", "ranked"))
        if kind == "csr":
            index = r.choice((None, "int64"))
            return hr.csr(index_dtype=index), {"kind": kind, "index": index or "int32"}
        if kind == "dense":
            return hr.dense(), {"kind": kind}
        tokens = (
            {g: 10 + 3 * i for i, g in enumerate(genes) if i == 0 or r.random() < 0.8} if r.random() < 0.5 else None
        )
        self.how.tokens = tokens
        length = r.choice((2, 3, 8, 400))
        if kind == "ranked":
            factors = {g: r.choice((0.5, 2.0, 3.0)) for i, g in enumerate(genes) if i == 0 or r.random() < 0.8}
            self.how.factors = factors if r.random() < 0.5 else None
            special = {"cls": 7, "eos": 8} if r.random() < 0.5 else {}
            form = hr.ranked(length, tokens=tokens, factors=self.how.factors, pad=-9, **special)  # type: ignore[arg-type]
            return form, {"kind": kind, "length": length, **special}
        pick, bins = r.choice(("first", "top", "random", "weighted")), r.choice((None, None, 2, 5, 51))
        special = {"cls": 7} if r.random() < 0.5 else {}
        form = hr.padded(length, pick=pick, bins=bins, tokens=tokens, pad=-9, pad_value=-2.0, **special)  # type: ignore[arg-type]
        return form, {"kind": kind, "length": length, "pick": pick, "bins": bins, **special}

    def loader(self, r: random.Random, **more: Any) -> Any:
        options = {"n": r.choice((1, 3, 16, 200)), "shuffle": r.choice((False, True, "global")), "seed": 5,
                   "remainder": "short", **more}  # fmt: skip
        memory = r.choice((None, None, 1 << 12, 1 << 16))
        while memory is not None:
            try:
                return self.samples.batches(memory=memory, **options)
            except hr.BudgetError:
                memory += max(memory // 8, 1024)
        return self.samples.batches(**options)

    # ---- what a batch has to be

    def plain(self) -> bool:
        return self.how.normalize is None and not self.how.log1p and self.how.factors is None

    def check(self, batch: Any) -> list[int]:
        """Everything of it; the ids that count."""
        ids = np.asarray(batch.index)
        cells = [cell(*self.rows[i], self.how) for i in ids]
        getattr(self, f"_{self.words['kind']}")(batch, ids, cells)
        for name in self.obs:
            self._column(batch, ids, name)
        return [int(i) for i in ids[np.asarray(batch.valid, bool)]]

    def _same(self, got: Any, stored: Any, wide: Any, bound: float = 2e-7) -> None:
        if self.plain():
            np.testing.assert_array_equal(got.astype("f8"), stored.astype("f8"))
        else:
            np.testing.assert_allclose(got.astype("f8"), wide, rtol=bound, atol=1e-30)

    def _csr(self, batch: Any, ids: Any, cells: Any) -> None:
        m = batch["X"].numpy()
        assert m["indices"].dtype == self.words["index"] and batch["X"].shape == (len(ids), len(self.how.genes))
        np.testing.assert_array_equal(m["indptr"], np.concatenate([[0], np.cumsum([len(c[0]) for c in cells])]))
        np.testing.assert_array_equal(m["indices"], np.concatenate([c[0] for c in cells]))
        self._same(m["data"], np.concatenate([c[1] for c in cells]), np.concatenate([c[2] for c in cells]))

    def _dense(self, batch: Any, ids: Any, cells: Any) -> None:
        got = batch["X"].numpy()
        assert got.shape == (len(ids), len(self.how.genes))
        for row, (to, stored, wide) in zip(got, cells):
            want, exact = np.zeros(len(row)), np.zeros(len(row))
            want[to], exact[to] = wide, stored
            self._same(row, exact, want)

    def _frame(self, tokens: Any, mask: Any, n: int) -> int:
        """How many genes there are room for; special tokens and padding are checked."""
        first, last = "cls" in self.words, "eos" in self.words
        n = min(n, self.words["length"] - first - last)
        end = n + first + last
        np.testing.assert_array_equal(mask, np.arange(self.words["length"]) < end)
        assert (tokens[end:] == -9).all()
        assert not first or tokens[0] == 7
        assert not last or tokens[end - 1] == 8
        return n

    def _token(self, to: Any) -> Any:
        if self.how.tokens is None:
            return to
        return np.array([self.how.tokens[self.how.genes[c]] for c in to], "i8")

    def _ranked(self, batch: Any, ids: Any, cells: Any) -> None:
        for tokens, mask, (to, stored, wide) in zip(batch["X.tokens"].numpy(), batch["X.mask"].numpy(), cells):
            there = stored != 0
            to, value = to[there], wide[there].astype("f4")
            n = self._frame(tokens, mask, len(to))
            got = tokens[("cls" in self.words) :][:n]
            by = dict(zip(self._token(to).tolist(), value))
            np.testing.assert_allclose([by[t] for t in got.tolist()], np.sort(value)[::-1][:n], rtol=2e-7)
            assert len(set(got.tolist())) == n
            if self.plain():
                np.testing.assert_array_equal(got, self._token(to)[np.lexsort((to, -value))][:n])

    def _padded(self, batch: Any, ids: Any, cells: Any) -> None:
        tensors = (batch[f"X.{t}"].numpy() for t in ("genes", "values", "mask"))
        for genes, got, mask, (to, stored, wide) in zip(*tensors, cells):
            there = (stored != 0) & ((wide > 0) | (self.words["pick"] != "weighted"))
            value = wide[stored != 0]
            shown = binned(value, self.words["bins"]) if self.words["bins"] else value
            by = dict(zip(self._token(to[stored != 0]).tolist(), zip(shown, value, to[stored != 0])))
            n = self._frame(genes, mask, there.sum())
            at = int("cls" in self.words)
            assert (got[n + at :] == -2).all() and (not at or got[0] == 0)
            mine = [by[t] for t in genes[at:][:n].tolist()]
            assert len(set(genes[at:][:n].tolist())) == n
            if self.words["bins"]:
                assert self.plain() is False or [m[0] for m in mine] == got[at:][:n].tolist()
            else:
                np.testing.assert_allclose(got[at:][:n], [m[0] for m in mine], rtol=2e-7)
            columns = [m[2] for m in mine]
            if self.words["pick"] in ("first", "random"):
                assert columns == sorted(columns)
            if self.words["pick"] == "first":
                assert columns == to[stored != 0][:n].tolist()
            if self.words["pick"] == "top":
                np.testing.assert_allclose([m[1] for m in mine], np.sort(value)[::-1][:n], rtol=2e-7)

    def _column(self, batch: Any, ids: Any, name: str) -> None:
        kind = self.rows[0][0].obs[name][0]
        want = [self.rows[i][0].obs[name][1][self.rows[i][1]] for i in ids]
        got = batch[name].numpy()
        if kind in ("category", "text", "nullable text"):
            known = self.samples.obs[name].categories
            assert [None if c < 0 else known[c] for c in got.tolist()] == want
            assert batch.obs(name).tolist() == want
            return
        assert [None if v is None else float(v) for v in want] == [
            None if v != v or (v == -1 and name == "flag") else float(v) for v in got.tolist()
        ]


def contents(world: World, loader: Any) -> list[tuple[int, bytes]]:
    """Each row by id, with its bytes."""
    out = []
    for batch in loader:
        ids = world.check(batch)
        arrays = [np.asarray(batch[t]) for t in batch if t in ("X", "X.genes", "X.tokens", "X.values") and t != "X"]
        for k, i in enumerate(ids):
            out.append((i, b"".join(a[k].tobytes() for a in arrays)))
    return out


@WORLDS
@given(seed=seeds)
def test_every_cell_of_every_atlas_is_numpys(tmp_path_factory: Any, seed: int) -> None:
    world = World(tmp_path_factory.mktemp("w"), seed)
    with world.loader(world.r) as loader:
        for _ in range(2):
            assert sorted(i for batch in loader for i in world.check(batch)) == list(range(len(world.rows)))


@settings(WORLDS, max_examples=12)
@given(seed=seeds)
def test_drawn_genes_are_those_of_seed_epoch_and_cell_alone(tmp_path_factory: Any, seed: int) -> None:
    """Whatever rank reads them, in whatever order, with whatever budget, and when resumed in the middle of an epoch."""
    world = World(tmp_path_factory.mktemp("w"), seed)
    n = len(world.rows)
    with world.loader(world.r) as loader:
        want = dict(contents(world, loader))
    size = world.r.choice([k for k in (1, 2, 3, 4) if k <= n])
    seen: dict[int, set[bytes]] = defaultdict(set)
    for rank in range(size):
        with world.loader(world.r, n=2, shuffle=True, world=size, rank=rank, remainder="pad") as loader:
            for i, row in contents(world, loader):
                seen[i].add(row)
    assert {i: {row} for i, row in want.items()} == dict(seen)
    with world.loader(random.Random(1), shuffle=True) as loader:
        first, stop = [], world.r.randrange(1, 4)
        for batch in loader:
            first += world.check(batch)
            stop -= 1
            if not stop:
                break
        state = loader.state_dict()
    with world.loader(random.Random(1), shuffle=True) as loader:
        loader.load_state_dict(state)
        rest = contents(world, loader)
    if len(first) < n:
        assert sorted(first + [i for i, _ in rest]) == list(range(n))
        assert all(want[i] == row for i, row in rest)


@settings(WORLDS, max_examples=10)
@given(seed=seeds)
def test_conditions_splits_and_weights_choose_cells_and_change_none(tmp_path_factory: Any, seed: int) -> None:
    world = World(tmp_path_factory.mktemp("w"), seed)
    ages = [p.obs["age"][1][i] for p, i in world.rows]
    kept = [i for i, age in enumerate(ages) if age is not None and age > 40]
    if not kept:
        with pytest.raises(hr.Error):
            world.samples.where("age > 40").batches(4)
        return
    world.samples = some = world.samples.where("age > 40")
    with world.loader(world.r) as loader:
        assert sorted(i for batch in loader for i in world.check(batch)) == kept
    with world.loader(world.r, weights={"kind": "balanced"}) as loader:
        drawn = [i for batch in loader for i in world.check(batch)]
    assert set(drawn) <= set(kept)
    texts = {world.rows[i][0].obs["text"][1][world.rows[i][1]] for i in kept}
    halves = some.split(0.5, 0.5, by="text", seed=1) if len(texts) > 3 else ()
    seen: list[int] = []
    for half in halves:
        world.samples = half
        with world.loader(world.r) as loader:
            seen += [i for batch in loader for i in world.check(batch)]
    assert not halves or sorted(seen) == kept
