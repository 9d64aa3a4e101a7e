"""A LightningDataModule: splits, loaders for fit and validate, and a position in Lightning's own checkpoints.

    python examples/lightning_data.py

Trains for three epochs; once more, but stops in the middle of the second; and goes on with the batch that comes next.
"""

from __future__ import annotations

import logging
import tempfile
from typing import Any

import lightning as L
import numpy as np
import torch
import zarr
from lightning.pytorch.callbacks import ModelCheckpoint

import headrace as hr


class Fields(L.LightningDataModule):
    """The step to come from the two before. Under DDP each rank reads its own rows: who it is, the loader finds out."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url

    def setup(self, stage: str) -> None:
        now, then = hr.view("t2m", time=hr.steps(-1, 0)), hr.view("t2m", time=hr.steps(1))
        self.train, self.val = hr.open(self.url).samples(along="time", x=now, y=then).split(0.8, 0.2)

    def train_dataloader(self) -> Any:
        return self.train.batches(16, shuffle=True, seed=0).torch()  # Lightning keeps its state_dict()

    def val_dataloader(self) -> Any:
        return self.val.batches(16).torch()


class Model(L.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.net = torch.nn.Conv2d(2, 1, 3, padding=1)
        self.seen: list[float] = []  # a number for each batch, to compare runs by

    def training_step(self, batch: Any, _: int) -> Any:
        self.seen.append(batch["x"].sum().item())
        return torch.nn.functional.mse_loss(self.net(batch["x"])[:, 0], batch["y"])

    def validation_step(self, batch: Any, _: int) -> None:
        self.log("loss", torch.nn.functional.mse_loss(self.net(batch["x"])[:, 0], batch["y"]))

    def configure_optimizers(self) -> Any:
        return torch.optim.Adam(self.parameters(), 1e-2)


def fit(url: str, stop: int = -1, keep: str | None = None, resume: str | None = None) -> list[float]:
    model = Model()
    save = [ModelCheckpoint(keep, "stopped", every_n_train_steps=stop)] if keep else []
    quiet = dict(logger=False, enable_progress_bar=False, enable_model_summary=False, enable_checkpointing=bool(save))
    trainer = L.Trainer(max_steps=stop, max_epochs=3, accelerator="cpu", callbacks=save, **quiet)
    trainer.fit(model, Fields(url), ckpt_path=resume)
    print(f"after step {trainer.global_step}: validation loss {trainer.callback_metrics['loss'].item():.6f}")
    return model.seen


if __name__ == "__main__":
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        url = f"{folder}/a.zarr"
        values = np.random.default_rng(0).normal(size=(400, 8, 8)).astype("f4").cumsum(axis=0) / 20
        options = dict(shape=values.shape, chunks=(10, 8, 8), dtype="f4", dimension_names=("time", "lat", "lon"))
        zarr.open_group(url, mode="w").create_array("t2m", **options)[...] = values
        whole = fit(url)
        stopped, rest = fit(url, 28, keep=folder), fit(url, resume=f"{folder}/stopped.ckpt")
    print(
        f"{len(whole)} steps; {len(stopped)} and {len(rest)} around a stop: the same batches: {stopped + rest == whole}"
    )
