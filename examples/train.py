"""A training script that may be killed at any time: it goes on with the batch after its last checkpoint.

    python examples/train.py era5.zarr checkpoint.pt [EPOCHS]

Predicts the next step of t2m from two, with a single convolution: the model is not the point. Any archive or URL with
t2m along time will do, such as demo-out/earth-2048.zarr, which `make demo` leaves. Needs torch.
"""

from __future__ import annotations

import os
import sys

import torch

import headrace as hr

EVERY = 20  # steps from one checkpoint to the next


def loaders(url: str) -> tuple[hr.Loader, hr.Loader]:
    """Training and validation; no window of one shares a time step with the other."""
    samples = hr.open(url).samples(
        along="time",
        x=hr.view("t2m", time=hr.steps(-1, 0), dtype="f4"),
        y=hr.view("t2m", time=hr.steps(1), dtype="f4"),
    )
    train, val = samples.split(0.8, 0.2)
    return train.batches(16, shuffle=True, seed=0, memory="512MiB"), val.batches(16, memory="128MiB")


def loss_of(model: torch.nn.Module, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """Of temperatures in units of 20 K around 280 K."""
    x, y = (batch["x"] - 280) / 20, (batch["y"] - 280) / 20
    return (model(x)[:, 0] - y).square().mean()


def save(path: str, **parts: object) -> None:
    """At once or not at all: a kill in the middle of writing leaves the checkpoint before."""
    torch.save(parts, path + ".new")
    os.replace(path + ".new", path)


def main(url: str, path: str, epochs: int) -> None:
    train, val = loaders(url)
    model = torch.nn.Conv2d(2, 1, 3, padding=1)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    if os.path.exists(path):
        parts = torch.load(path)
        model.load_state_dict(parts["model"])
        optimizer.load_state_dict(parts["optimizer"])
        train.load_state_dict(parts["loader"])
    for epoch in range(train.state_dict()["epoch"], epochs):
        for batch in train:
            loss = loss_of(model, {"x": batch["x"].torch(), "y": batch["y"].torch()})
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(f"epoch {epoch} step {batch.step} loss {loss.item():.4f}", flush=True)
            if batch.step % EVERY == EVERY - 1 or batch.step == len(train) - 1:
                save(path, model=model.state_dict(), optimizer=optimizer.state_dict(), loader=train.state_dict())
        with torch.no_grad():
            losses = [loss_of(model, batch).item() for batch in val.torch()]
        print(f"epoch {epoch} validation {sum(losses) / len(losses):.4f}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        raise SystemExit("usage: python examples/train.py ARCHIVE CHECKPOINT [EPOCHS]")
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 3)
