"""Forecasts the field in six hours from the last four, trained on an archive like ERA5.

    python examples/forecast.py [ARCHIVE] [EPOCHS]

Without an archive it makes one: half a year of waves that drift eastwards, every six hours, packed as reanalyses are.
"""

from __future__ import annotations

import sys
import tempfile

import numpy as np
import torch
import zarr

import headrace as hr


def make(path: str, steps: int = 730) -> str:
    """t2m and u10 on 16 × 32 points, seven steps a chunk."""
    rng = np.random.default_rng(0)
    time, lat, lon = np.ogrid[:steps, -1:1:16j, 0 : 2 * np.pi : 33j]
    lon = lon[..., :32]
    waves = sum(np.cos(k * (lon - 0.12 * time) + 3 * k * lat) / k for k in (1, 2, 3)) * (1 - lat**2)
    values = {"t2m": 285 - 20 * lat**2 + 8 * waves, "u10": 6 * np.roll(waves, 4, axis=2)}
    root = zarr.open_group(path, mode="w")
    for name, field in values.items():
        mean = float(round(field.mean()))
        packed = np.round((field + 0.3 * rng.normal(size=field.shape) - mean) * 100).astype("i2")
        options = dict(chunks=(7, 16, 32), dtype="i2", dimension_names=("time", "latitude", "longitude"))
        packing = {"scale_factor": 0.01, "add_offset": mean, "_FillValue": -32768}
        root.create_array(name, shape=packed.shape, attributes=packing, **options)[...] = packed
    options = dict(
        chunks=(steps,), dtype="i8", dimension_names=("time",), attributes={"units": "hours since 1990-01-01"}
    )
    root.create_array("time", shape=(steps,), **options)[...] = np.arange(steps) * 6
    return path


def splits(era5: hr.Archive, moments: object = None) -> hr.Splits:
    """Four fields and the next one; five days and more between training and validation."""
    both = dict(stack="channel", dtype="f4", normalize=moments)
    x, y = hr.view("t2m", "u10", time=hr.steps(-3, 0), **both), hr.view("t2m", "u10", time=hr.steps(1), **both)
    return era5.samples(along="time", x=x, y=y).split(train=0.8, val=0.2, gap="5D")


def main(url: str, epochs: int) -> None:
    era5 = hr.open(url)
    moments = splits(era5)["train"].moments("x", by="channel", progress=False)  # validation has no part in it
    parts = splits(era5, moments)
    print(moments, parts.report(), sep="\n\n")
    first, last = (torch.nn.Conv2d(a, b, 5, padding=2, padding_mode="circular") for a, b in ((8, 24), (24, 2)))
    model = torch.nn.Sequential(first, torch.nn.GELU(), last)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    loader = parts["train"].batches(32, shuffle=True, seed=0)
    for epoch in range(epochs):
        losses = []
        for batch in loader.torch():  # x: 32 × 4 steps × 2 channels × lat × lon; on a GPU: loader.torch("cuda")
            loss = (batch["x"][:, -1] + model(batch["x"].flatten(1, 2)) - batch["y"]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        error, still = [], []
        with torch.no_grad():
            for b in parts["val"].batches(64).torch():
                error.append((b["x"][:, -1] + model(b["x"].flatten(1, 2)) - b["y"]).square().mean((1, 2, 3)))
                still.append((b["x"][:, -1] - b["y"]).square().mean((1, 2, 3)))
        skill = 1 - (torch.cat(error).mean() / torch.cat(still).mean()).item()
        print(f"epoch {epoch}: training loss {np.mean(losses):.4f}; validation: {skill:.1%} better than 'as it is now'")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        given = sys.argv[1:]
        main(given[0] if given else make(f"{folder}/era5.zarr"), int(given[1]) if given[1:] else 3)
