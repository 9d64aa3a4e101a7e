"""Learns to find cells in an OME-NGFF image: 2-D patches of a 3-D stack, labels at half the resolution.

    python examples/segment.py [ARCHIVE]

Without an archive it makes one: planes of bright discs in noise, and a pyramid of labels. Trains on random crops, and
looks at what it has learnt patch by patch, in 2-D and 3-D.
"""

from __future__ import annotations

import sys
import tempfile

import numpy as np
import torch
import zarr

import headrace as hr


def make(path: str, planes: int = 8, side: int = 512) -> str:
    rng = np.random.default_rng(0)
    y, x = np.ogrid[:side, :side]
    cells = np.zeros((planes, side, side), "u1")
    for plane in cells:
        for cy, cx, r in rng.uniform((0, 0, 8), (side, side, 24), (60, 3)):
            plane[np.square(y - cy) + np.square(x - cx) < r * r] = 1
    image = (900.0 * cells + rng.normal(400, 250, cells.shape).clip(0)).astype("u2")
    root = zarr.open_group(path, mode="w")
    axes = [{"name": name, "type": "space"} for name in "zyx"]
    for group, arrays in ("", {"0": image}), ("labels/cells", {"0": cells, "1": cells[:, ::2, ::2]}):
        at, levels = root.require_group(group) if group else root, []
        for level, values in arrays.items():
            options = dict(chunks=(2, 128, 128), dtype=values.dtype, dimension_names=("z", "y", "x"))
            at.create_array(level, shape=values.shape, **options)[...] = values
            scale = {"type": "scale", "scale": [1.0, side / values.shape[1], side / values.shape[1]]}
            levels.append({"path": level, "coordinateTransformations": [scale]})
        at.attrs["ome"] = {"version": "0.5", "multiscales": [{"axes": axes, "datasets": levels}]}
    return path


def overlap(model: torch.nn.Module, samples: hr.Samples, batch: int) -> float:
    """Intersection over union of all patches of these samples."""
    both = either = 0
    with torch.no_grad():
        for b in samples.batches(batch).torch():
            found, true = model(b["image"].flatten(0, -3)[:, None])[:, 0] > 0, b["label"].flatten(0, -3) > 0
            both, either = both + int((found & true).sum()), either + int((found | true).sum())
    return both / either


def main(url: str) -> None:
    plate = hr.open(url)
    image = hr.view("0", mean=600.0, std=450.0, dtype="f4")  # y and x of a patch
    label = hr.view("labels/cells/1", scale={"y": 2, "x": 2})  # the same region at half the resolution
    crops = {"z": None, "n": hr.draws(8), "y": hr.crop(96), "x": hr.crop(96)}  # eight a plane, other ones each epoch
    train = plate.samples(along=crops, image=image, label=label).isel(z=slice(0, 6))
    tiles = plate.samples(along={"z": None, "y": hr.patch(128), "x": hr.patch(128)}, image=image, label=label)
    val = tiles.isel(z=slice(6, None))
    print(train, val, sep="\n")

    down, flat, out = (torch.nn.Conv2d(*shape) for shape in ((1, 12, 5, 2, 2), (12, 12, 5, 1, 2), (12, 1, 1)))
    model = torch.nn.Sequential(down, torch.nn.ReLU(), flat, torch.nn.ReLU(), out)
    loss_of, optimizer = torch.nn.BCEWithLogitsLoss(), torch.optim.Adam(model.parameters(), 5e-3)
    loader = train.batches(12, shuffle=True, seed=0)
    for epoch in range(4):
        for batch in loader.torch():
            loss = loss_of(model(batch["image"][:, None])[:, 0], batch["label"].float())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}; overlap on planes never trained on {overlap(model, val, 8):.1%}")
    side = hr.patch(256, overlap=64, edge="clip")  # the last one is moved inside
    stack = plate.samples(along={"z": hr.patch(4), "y": side, "x": side}, image=image, label=label)
    print(f"{len(stack)} overlapping boxes of {stack.info['views'][0]['shape']}: {overlap(model, stack, 2):.1%}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(sys.argv[1] if len(sys.argv) > 1 else make(f"{folder}/plate.zarr"))
