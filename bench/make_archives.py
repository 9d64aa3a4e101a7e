"""Write the archives that every bench cell reads, with zarr-python, into bench/data (ignored by git).

One field in every archive, so that cells differ in layout and codec alone: 4096 steps of a 181 x 360 float32 grid, a
few travelling waves plus white noise, rounded to 1/64 as archives of observations are. That makes zstd-1 about 2.5x
and blosc-lz4 (shuffle, clevel 5) about 3x, at decoding speeds typical of real fields; incompressible noise would
measure memcpy, and a smooth field alone would measure nothing. The noise of a step depends on the step alone. Element
[0, 0] of a step is the step's number and NAME.sums.npy holds a checksum of each step, so that every byte of a
loader's epoch can be checked from its batches.

Beside each NAME.zarr stands NAME.plan, the few lines from which the bare C loops know it (bench/archive.h). It is
written last: an archive with an up-to-date plan is left alone, one without is written anew.

Run it with the Python of .venv-bench311:   .venv-bench311/bin/python bench/make_archives.py [NAME ...]
"""

import argparse
import pathlib
import shutil
import time

import numpy as np
import zarr
from zarr.codecs import BloscCodec, ZstdCodec

VERSION = 2  # part of every plan: raise it when the data or the layout changes
DATA = pathlib.Path(__file__).parent / "data"
STEPS, GRID = 4096, (181, 360)
SMALL_STEPS, SMALL_GRID = 20_000, (64, 64)  # 16 KiB a step
OBJECTS = {"object_64k": (8192, (128, 128)), "object_1m": (512, (512, 512))}  # raw, a step an object
MANY_STEPS = 2_000_000  # chunks of which nearly all are missing: what opening and planning alone cost
AT_ONCE = 256  # steps generated and written together

CODECS = {
    "zstd": lambda: ZstdCodec(level=1, checksum=False),
    "lz4": lambda: BloscCodec(typesize=4, cname="lz4", clevel=5, shuffle="shuffle"),
    "raw": lambda: None,
}


def archives():
    """{name: (steps, grid, codec, steps per chunk, chunks per shard or 0)}"""
    out = {f"{codec}_c{n}": (STEPS, GRID, codec, n, 0) for codec in CODECS for n in (1, 8, 32)}
    out["sharded"] = (STEPS, GRID, "zstd", 1, 32)
    out |= {f"small_{codec}": (SMALL_STEPS, SMALL_GRID, codec, 1, 0) for codec in CODECS}
    out |= {name: (steps, grid, "raw", 1, 0) for name, (steps, grid) in OBJECTS.items()}
    out["many"] = (MANY_STEPS, SMALL_GRID, "zstd", 1, 0)
    return out


class Field:
    """Steps of the field on one grid. The waves are a product of a step's coefficients and spatial patterns."""

    WAVES = ((8.0, 3, 0, 20.0), (4.0, 5, 2, 7.0), (1.5, 11, 6, 3.0))  # amplitude, zonal, meridional, period / 2 pi

    def __init__(self, grid):
        lat = np.linspace(-np.pi / 2, np.pi / 2, grid[0])[:, None]
        lon = np.linspace(0, 2 * np.pi, grid[1], endpoint=False)[None, :]
        patterns = [280 + 30 * np.cos(lat) + 0 * lon]
        for amplitude, zonal, meridional, _ in self.WAVES:
            phase = zonal * lon - meridional * lat
            patterns += [amplitude * np.cos(lat) * np.sin(phase), amplitude * np.cos(lat) * np.cos(phase)]
        self.grid = grid
        self.patterns = np.stack(patterns).astype("f4").reshape(len(patterns), -1)

    def steps(self, start, stop):
        t = np.arange(start, stop)[:, None]
        turns = np.concatenate([f(t / period) for *_, period in self.WAVES for f in (np.cos, np.sin)], axis=1)
        coefficients = np.concatenate([np.ones_like(t), turns], axis=1).astype("f4")
        x = (coefficients @ self.patterns).reshape(len(t), *self.grid)
        for row, step in zip(x, range(start, stop)):
            row += np.float32(0.05) * np.random.default_rng(step).standard_normal(self.grid, dtype="f4")
        np.round(x * 64, out=x)
        x /= 64
        x[:, 0, 0] = t[:, 0]
        return x


def create(name, spec):
    steps, grid, codec, per_chunk, per_shard = spec
    root = zarr.create_group(store=DATA / f"{name}.zarr", overwrite=True)
    z = root.create_array(
        "field",
        shape=(steps, *grid),
        dtype="f4",
        fill_value=0.0,
        chunks=(per_chunk, *grid),
        shards=(per_chunk * per_shard, *grid) if per_shard else None,
        compressors=CODECS[codec](),
        filters=None,
        dimension_names=("time", "lat", "lon"),
    )
    time_axis = root.create_array(
        "time",
        shape=(steps,),
        dtype="i4",
        chunks=(steps,),
        dimension_names=("time",),
        attributes={"units": "hours since 2000-01-01", "calendar": "standard"},
    )
    time_axis[:] = np.arange(steps, dtype="i4")
    zarr.consolidate_metadata(root.store)
    return z


def plan_text(name, spec):
    steps, grid, codec, per_chunk, per_shard = spec
    return (
        f"version {VERSION}\narchive {name}.zarr\ncodec {codec}\nsamples {steps}\nper_chunk {per_chunk}\n"
        f"sample_bytes {4 * grid[0] * grid[1]}\nper_shard {per_shard}\nkey_before field/c/\nkey_after /0/0\n"
    )


def written(name, spec):
    plan = DATA / f"{name}.plan"
    return plan.exists() and plan.read_text() == plan_text(name, spec)


def write(names, specs):
    """Write the archives of one grid together: the field is generated once."""
    for name in names:
        (DATA / f"{name}.plan").unlink(missing_ok=True)
        shutil.rmtree(DATA / f"{name}.zarr", ignore_errors=True)
    open_arrays = {name: create(name, specs[name]) for name in names}
    steps, grid, *_ = specs[names[0]]
    field = Field(grid)
    sums = np.empty(steps, "u8")
    for start in range(0, steps, AT_ONCE):
        x = field.steps(start, min(start + AT_ONCE, steps))
        sums[start : start + len(x)] = x.reshape(len(x), -1).view("u4").sum(axis=1, dtype="u8")
        for z in open_arrays.values():
            z[start : start + len(x)] = x
    for name in names:
        np.save(DATA / f"{name}.sums.npy", sums)
        (DATA / f"{name}.plan").write_text(plan_text(name, specs[name]))


def write_many(name, spec):
    """Two million chunks of which 264 exist: the first 64 and every 10,000th."""
    (DATA / f"{name}.plan").unlink(missing_ok=True)
    z = create(name, spec)
    field = Field(spec[1])
    z[:64] = field.steps(0, 64)
    for step in range(0, spec[0], 10_000):
        z[step : step + 1] = field.steps(step, step + 1)
    (DATA / f"{name}.plan").write_text(plan_text(name, spec))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("name", nargs="*", help="default: all")
    names = p.parse_args().name
    specs = archives()
    if unknown := set(names) - set(specs):
        p.error(f"no archive {', '.join(sorted(unknown))}; there are {' '.join(specs)}")
    DATA.mkdir(exist_ok=True)
    todo = [n for n in names or specs if not written(n, specs[n])]
    start = time.monotonic()
    for grid in dict.fromkeys(specs[n][1] for n in todo):
        if group := [n for n in todo if specs[n][1] == grid and n != "many"]:
            print("writing", *group, flush=True)
            write(group, specs)
    if "many" in todo:
        print("writing many", flush=True)
        write_many("many", specs["many"])
    print(f"{len(todo)} archives written in {time.monotonic() - start:.0f} s, {len(names or specs)} up to date")


if __name__ == "__main__":
    main()
