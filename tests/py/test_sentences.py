"""Sentences of cells, against numpy: who is in them, who may be beside them, and in which order they come."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import headrace as hr
from atlases import atlas, pd, sp, write

N, GENES = 640, 30
LINES, DRUGS = ("A549", "HeLa", "K562", "PC9"), ("DMSO", "d1", "d2", "d3")


def labelled(kind: str, seed: int = 0) -> Any:
    """An atlas whose groups lie one behind another ("runs"), or all over it ("mixed")."""
    rng = np.random.default_rng(seed)
    made = atlas(N, GENES, seed=seed)
    line, drug = np.repeat(np.arange(4), N // 4), np.tile(np.repeat(np.arange(4), N // 16), 4)
    if kind == "mixed":
        line, drug = rng.integers(-1, 4, N), np.minimum(rng.geometric(0.5, N) - 1, 3)
    made.obs["line"] = pd.Categorical.from_codes(line, LINES)
    made.obs["drug"] = pd.Categorical.from_codes(drug, DRUGS)
    made.obs["plate"] = rng.integers(0, 2, N)
    return made


MADE = {kind: labelled(kind) for kind in ("runs", "mixed")}
BY = ["line", "drug"]
CONTROLS = {"where": "drug == 'DMSO'", "match": ["line"]}


@pytest.fixture(scope="module")
def archives(tmp_path_factory: Any) -> Any:
    folder = tmp_path_factory.mktemp("sentences")
    return {k: hr.open(write(m, folder / f"{k}.zarr", chunks=(40, 40))) for k, m in MADE.items()}


def sentences(archives: Any, kind: str = "runs", n: int = 8, X: Any = "dense", where: Any = None, **named: Any) -> Any:
    cells = archives[kind].cells(X, obs=["line", "drug", "n_genes"], obsm=["X_pca"], row_chunk=16)
    return (cells if where is None else cells.where(where)).sentences(n, by=BY, **named)


def groups(kind: str) -> Any:
    """Group numbers of cells, -1 where a value is missing."""
    obs = MADE[kind].obs
    line, drug = obs.line.cat.codes.to_numpy(), obs.drug.cat.codes.to_numpy()
    return np.where((line < 0) | (drug < 0), -1, line * 4 + drug).astype(int)


def epoch(loader: Any, name: str = "cells") -> Any:
    return np.concatenate([np.array(b[name].numpy()) for b in loader])


@pytest.mark.parametrize("kind", ["runs", "mixed"])
@pytest.mark.parametrize("partial", ["drop", "repeat"])
def test_groups_are_shared_out(archives: Any, kind: str, partial: str) -> None:
    made, group = sentences(archives, kind, partial=partial), groups(kind)
    sizes = np.bincount(group[group >= 0], minlength=16)
    assert len(made) == (sizes // 8 if partial == "drop" else -(-sizes // 8)).sum()
    loader = made.batches(4, shuffle=True, remainder="short")
    seen = []
    for _ in range(3):
        cells = epoch(loader)
        assert cells.shape == (len(made), 8)
        assert (group[cells] == group[cells[:, :1]]).all() and (group[cells] >= 0).all()
        times = np.bincount(cells.reshape(-1), minlength=N)
        if partial == "drop":
            assert times.max() == 1
            assert (sizes - np.bincount(group[times > 0], minlength=16) == sizes % 8).all()
        else:  # every cell comes, and of a group no more come again than a sentence lacks
            assert (times[group >= 0] > 0).all()
            assert (np.bincount(group[cells.reshape(-1)], minlength=16) == -(-sizes // 8) * 8).all()
        seen.append({tuple(sorted(c)) for c in cells.tolist()})
    assert len(seen[0] & seen[1]) < len(made) // 4  # cells meet anew in each epoch


@pytest.mark.parametrize("kind", ["runs", "mixed"])
@pytest.mark.parametrize("shuffle", [False, True])
def test_values_columns_and_controls(archives: Any, kind: str, shuffle: bool) -> None:
    x, obs, group = MADE[kind].X.toarray(), MADE[kind].obs, groups(kind)
    made = sentences(archives, kind, controls=CONTROLS)
    for batch in made.batches(4, shuffle=shuffle):
        cells, controls = batch["cells"].numpy(), batch["control.cells"].numpy()
        np.testing.assert_array_equal(batch["X"].numpy(), x[cells])
        np.testing.assert_array_equal(batch["control.X"].numpy(), x[controls])
        np.testing.assert_array_equal(batch["X_pca"].numpy(), MADE[kind].obsm["X_pca"][cells])
        np.testing.assert_array_equal(batch["n_genes"].numpy(), obs.n_genes.to_numpy()[cells])
        np.testing.assert_array_equal(batch["control.n_genes"].numpy(), obs.n_genes.to_numpy()[controls])
        assert batch["drug"].shape == (len(batch),)
        np.testing.assert_array_equal(batch["line"].numpy() * 4 + batch["drug"].numpy(), group[cells[:, 0]])
        assert batch.obs("drug").tolist() == obs.drug.to_numpy()[cells[:, 0]].tolist()
        assert (obs.drug.to_numpy()[controls] == "DMSO").all()
        assert (obs.line.to_numpy()[controls] == obs.line.to_numpy()[cells[:, :1]]).all()
        available = min(int(((obs.drug == "DMSO") & (obs.line == line)).sum()) for line in LINES)
        assert all(len(set(c)) == 8 for c in controls.tolist()) or available < 8


@pytest.mark.parametrize("form", ["csr", "padded", "ranked"])
def test_forms_are_those_of_cells(archives: Any, form: str) -> None:
    X = {"csr": "csr", "padded": hr.padded(12), "ranked": hr.ranked(12)}[form]
    alone = archives["mixed"].cells(X, row_chunk=16)
    made = sentences(archives, "mixed", X=X, controls=CONTROLS)
    if form == "csr":
        x = MADE["mixed"].X
        for batch in made.batches(4, shuffle=True):
            for name in ("", "control."):
                ids = batch[f"{name}cells"].numpy().reshape(-1)
                assert batch[f"{name}X"].shape == (32, GENES)
                np.testing.assert_array_equal(batch[f"{name}X"].scipy().toarray(), x[ids].toarray())
        return
    tensors = ["X.genes", "X.values", "X.mask"] if form == "padded" else ["X.tokens", "X.mask"]
    (rows,) = alone.batches(N)  # epoch 0: random genes are drawn by cell and epoch, wherever the cell is
    for batch in made.batches(4, shuffle=True):
        for name in ("", "control."):
            ids = batch[f"{name}cells"].numpy()
            for tensor in tensors:
                assert batch[name + tensor].shape == (4, 8, 12)
                np.testing.assert_array_equal(batch[name + tensor].numpy(), rows[tensor].numpy()[ids])


def test_a_dense_array_is_taken_alike(archives: Any) -> None:
    made = archives["mixed"].cells("dense", layer="dense", genes=["g3", "g1"], log1p=True)
    made = made.sentences(8, by="drug", controls={"where": "drug == 'DMSO'"})
    stored = np.log1p(MADE["mixed"].layers["dense"][:, [3, 1]])
    for batch in made.batches(4, shuffle=True):
        np.testing.assert_allclose(batch["X"].numpy(), stored[batch["cells"].numpy()])
        np.testing.assert_allclose(batch["control.X"].numpy(), stored[batch["control.cells"].numpy()])


def test_what_was_left_out_before_is_in_none(archives: Any) -> None:
    train, val = archives["mixed"].cells("dense", row_chunk=16).split(0.7, 0.3, by="donor", seed=3)
    for part in (train, val):
        made = part.sentences(4, by=BY, controls=CONTROLS, partial="repeat")
        loader = made.batches(4, shuffle=True, remainder="short")
        for batch in loader:
            for name in ("cells", "control.cells"):
                assert np.isin(batch[name].numpy(), part.ids).all()


def test_conditions_splits_and_weights_go_by_shared_columns(archives: Any) -> None:
    made = sentences(archives, "mixed", controls=CONTROLS)
    drugs = made.obs["drug"].values
    assert (
        len(made.where("drug != 'DMSO' and line == 'HeLa'"))
        == ((drugs != "DMSO") & (made.obs["line"].values == "HeLa")).sum()
    )
    train, val = made.split(0.5, 0.5, by="drug", seed=1)
    assert not set(drugs[train.ids]) & set(drugs[val.ids]) and len(train) + len(val) == len(made)
    loader = made.batches(4, shuffle=True, weights={"drug": "balanced"}, stratify="drug")
    assert sum(len(b) for b in loader) > 0
    a, b = made.split(0.5, 0.5)  # a cut never goes through a pool: what is left of one is dropped
    first, second = (set(epoch(p.batches(1)).reshape(-1).tolist()) for p in (a, b))
    assert not first & second
    with pytest.raises(hr.InvalidError, match=r"sentences share line, drug alone: of cells it is sentences.cells.obs"):
        made.where("n_genes > 5")
    with pytest.raises(hr.NotFoundError, match="no column 'drugs'; did you mean 'drug'"):
        made.where("drugs == 'd1'")


@pytest.mark.parametrize("kind", ["runs", "mixed"])
def test_a_cut_leaves_no_cell_on_both_sides(archives: Any, kind: str) -> None:
    made = sentences(archives, kind)
    a, b = made.split(0.5, 0.5)
    sides = [set(), set()]  # type: list[set[int]]
    for side, part in zip(sides, (a, b)):
        loader = part.batches(1, shuffle=True)
        for _ in range(4):
            side |= set(epoch(loader).reshape(-1).tolist())
    assert sides[0] and sides[1] and not sides[0] & sides[1]


def test_the_order_is_one_over_ranks_and_resumes(archives: Any) -> None:
    made = sentences(archives, "mixed", n=4, controls=CONTROLS)
    options = {"shuffle": True, "seed": 5, "streams": 4}
    whole = made.batches(global_batch=8, rank=0, world=1, **options)
    batches = [[np.array(b[n].numpy()) for n in ("cells", "control.cells", "X")] for b in whole]
    again = [[np.array(b[n].numpy()) for n in ("cells", "control.cells", "X")] for b in whole]
    assert not all(np.array_equal(a[0], b[0]) for a, b in zip(batches, again))
    for world in (2, 4):
        loaders = [made.batches(global_batch=8, rank=r, world=world, **options) for r in range(world)]
        for step, parts in enumerate(zip(*loaders)):
            got = np.concatenate([np.array(p["cells"].numpy()) for p in parts])
            np.testing.assert_array_equal(got, batches[step][0])
        assert step + 1 == len(batches)
    stopped = made.batches(global_batch=8, rank=0, world=1, **options)
    for batch in stopped:
        if batch.step == 2:
            break
    state = stopped.state_dict()
    loaders = [made.batches(global_batch=8, rank=r, world=2, **options) for r in range(2)]
    for loader in loaders:
        loader.load_state_dict(state)
    for step, parts in enumerate(zip(*loaders), 3):
        for name, expected in zip(("cells", "control.cells", "X"), batches[step]):
            np.testing.assert_array_equal(np.concatenate([np.array(p[name].numpy()) for p in parts]), expected)
    other = sentences(archives, "mixed", n=4, controls=CONTROLS, seed=1).batches(global_batch=8, **options)
    with pytest.raises(hr.Error, match="views"):
        other.load_state_dict(state)


def test_little_memory_is_the_same_batches(archives: Any) -> None:
    made = sentences(archives, "mixed", X="csr", controls=CONTROLS)
    roomy = made.batches(4, shuffle=True)
    tight = made.batches(4, shuffle=True, memory=roomy.plan()["memory"]["minimum"])
    for a, b in zip(roomy, tight):
        np.testing.assert_array_equal(a["cells"].numpy(), b["cells"].numpy())
        np.testing.assert_array_equal(a["X"].scipy().toarray(), b["X"].scipy().toarray())


def test_sentences_and_samples_of_them_are_pickled(archives: Any) -> None:
    made = sentences(archives, "mixed", where="line != 'HeLa'", controls=CONTROLS, partial="repeat", seed=4)
    some = made.where("drug == 'd1'")
    for one in (made, some):
        twin = pickle.loads(pickle.dumps(one))
        assert len(twin) == len(one)
        for a, b in zip(one.batches(2, shuffle=True), twin.batches(2, shuffle=True)):
            np.testing.assert_array_equal(a["cells"].numpy(), b["cells"].numpy())
            np.testing.assert_array_equal(a["X"].numpy(), b["X"].numpy())


def test_several_data_sets_are_one(archives: Any, tmp_path: Any) -> None:
    both = hr.cells({k: a for k, a in archives.items()}, "dense", obs=["line", "drug"])
    made = both.sentences(
        4, by=["dataset", "line", "drug"], controls={"where": "drug == 'DMSO'", "match": ["dataset", "line"]}
    )
    x = np.concatenate([MADE[k].X.toarray() for k in archives])
    for batch in made.batches(4, shuffle=True):
        cells, controls = batch["cells"].numpy(), batch["control.cells"].numpy()
        np.testing.assert_array_equal(batch["X"].numpy(), x[cells])
        assert (cells // N == batch["dataset"].numpy()[:, None]).all()
        assert (controls // N == batch["dataset"].numpy()[:, None]).all()


def test_a_lost_cell_masks_its_sentence(tmp_path: Any) -> None:
    made = MADE["mixed"].copy()
    path = write(made, tmp_path / "a.zarr", chunks=(40, 40))
    import zarr

    root = zarr.open_group(path)
    data = root["X/data"][:]
    del root["X/data"]
    root.create_array("X/data", data=data, chunks=(200,))
    zarr.consolidate_metadata(root.store)
    (tmp_path / "a.zarr" / "X" / "data" / "c" / "1").write_bytes(b"junk")
    indptr = made.X.tocsr().indptr
    touched = np.flatnonzero((indptr[1:] > 200) & (indptr[:-1] < 400))
    sets = hr.open(path).cells("dense", row_chunk=8).sentences(8, by=BY)
    lost = whole = 0
    for batch in sets.batches(4, on_error="mask"):
        hit = np.isin(batch["cells"].numpy(), touched).any(1)
        valid = batch.valid.numpy().astype(bool)
        assert not (valid & hit).any()
        lost, whole = lost + (~valid).sum(), whole + valid.sum()
    assert lost > 0 and whole > 0
    with pytest.raises(hr.DataError, match=r"rows .* of X"):
        list(sets.batches(4))


def test_a_pool_of_more_controls_than_there_are_is_all_of_them(archives: Any) -> None:
    made = [
        sentences(archives, "mixed", controls={**CONTROLS, "pool": pool}, partial="repeat")
        for pool in (N, (1 << 63) - 1)
    ]
    for a, b in zip(*(one.batches(4, shuffle=True) for one in made)):
        np.testing.assert_array_equal(a["control.cells"].numpy(), b["control.cells"].numpy())


def test_frameworks_get_the_dimension(archives: Any) -> None:
    made = sentences(archives, "runs", controls=CONTROLS)
    (batch, *_) = made.batches(4)
    data = batch.xarray()
    assert data["X"].dims == ("sentence", "cell", "gene") and data["n_genes"].dims == ("sentence", "cell")
    assert data["line"].dims == ("sentence",) and data["cells"].shape == (4, 8)
    fewer = sentences(archives, "runs", controls={**CONTROLS, "n": 4})
    data = next(iter(fewer.batches(4))).xarray()
    assert data["control.X"].dims == ("sentence", "cell_control", "gene") and data["X"].shape == (4, 8, GENES)
    assert data["control.cells"].dims == ("sentence", "cell_control") and data["control.cells"].shape == (4, 4)
    torch = pytest.importorskip("torch")
    assert batch["control.X"].torch().shape == torch.Size([4, 8, GENES])
    with pytest.raises(hr.UnsupportedError, match=r"moments: sentences have none: .* batches of cells"):
        made.moments()
    assert "(cell: 8, gene: 30)" in repr(made) and made.shape == (len(made), 8, GENES)


def test_what_is_wrong_is_said(archives: Any) -> None:
    cells = archives["mixed"].cells("dense")
    for match, kind, options in [
        ("no column 'lines'; did you mean 'line'", hr.NotFoundError, {"by": ["lines"]}),
        ("name at least one column", hr.InvalidError, {"by": []}),
        (r"no group of line, drug has so many cells: the largest of 16 has \d+; partial=", hr.InvalidError, {"n": 600}),
        (r'"where" says which cells are controls', hr.InvalidError, {"controls": {"match": ["line"]}}),
        ("where, match, n, pool are known; ", hr.InvalidError, {"controls": {"were": "drug == 'DMSO'"}}),
        ("cells of a sentence do not share it: name it in by", hr.InvalidError,
         {"controls": {"where": "drug == 'DMSO'", "match": ["plate"]}}),
        ("it holds for no cell among these 640 samples", hr.InvalidError, {"controls": {"where": "n_genes > 9000"}}),
        (r"controls: 12 of 16 groups have none: no cell for which line == 'HeLa' holds has the same line as "
         r"line=A549, drug=DMSO; line=A549, drug=d1; .* and 7 more; leave those out before", hr.InvalidError,
         {"controls": {"where": "line == 'HeLa'", "match": ["line"]}}),
        ("one of|is expected", hr.InvalidError, {"partial": "keep"}),
        ("sentences: n", hr.InvalidError, {"n": 0}),
        ("n=2147483648: an integer from 1 to 2147483647 is", hr.InvalidError, {"n": 1 << 31, "partial": "repeat"}),
        ("controls: n=4611686018427387904: an integer from 1 to 2147483647 is expected", hr.InvalidError,
         {"controls": {"where": "drug == 'DMSO'", "n": 1 << 62}}),
    ]:  # fmt: skip
        with pytest.raises(kind, match=match):
            cells.sentences(**{"n": 8, "by": BY, **options})
    with pytest.raises(hr.UnsupportedError, match="these are sentences already"):
        sentences(archives).sentences(4, by=["line"])


@pytest.mark.parametrize("seed", range(12))
def test_random_worlds(tmp_path: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, n_groups = int(rng.integers(40, 900)), int(rng.integers(1, 12))
    made = atlas(n, 12, seed=seed)
    group = rng.integers(0, n_groups, n) if rng.random() < 0.5 else np.sort(rng.integers(0, n_groups, n))
    made.obs["group"] = group
    made.obs["control"] = rng.random(n) < 0.3
    made.obs.loc[made.obs.index[: n // 8], "control"] = True
    archive = hr.open(write(made, tmp_path / "a.zarr", chunks=(int(rng.integers(5, 60)), 12)))
    size, partial = int(rng.integers(1, 12)), str(rng.choice(["drop", "repeat"]))
    cells = archive.cells("csr" if rng.random() < 0.5 else "dense", row_chunk=int(rng.integers(1, 70)))
    control = {"where": "control", "n": int(rng.integers(1, 9)), "pool": 9}
    sets = cells.sentences(size, by="group", controls=control, partial=partial, seed=seed)
    sizes = np.bincount(group)
    assert len(sets) == (sizes // size if partial == "drop" else -(-sizes // size)).sum()
    loader = sets.batches(int(rng.integers(1, min(6, len(sets)) + 1)), shuffle=True, remainder="short", seed=seed)
    x = sp.csr_matrix(made.X)
    for _ in range(2):
        times = np.zeros(n, int)
        for batch in loader:
            mine, beside = batch["cells"].numpy(), batch["control.cells"].numpy()
            assert (group[mine] == group[mine[:, :1]]).all() and made.obs.control.to_numpy()[beside].all()
            for name, ids in (("X", mine), ("control.X", beside)):
                got = batch[name]
                got = got.scipy().toarray() if hasattr(got, "scipy") else got.numpy().reshape(ids.size, 12)
                np.testing.assert_array_equal(got, x[ids.reshape(-1)].toarray())
            np.add.at(times, mine.reshape(-1), 1)
        assert times.max() <= 1 or partial == "repeat"
        assert times.sum() == len(sets) * size
