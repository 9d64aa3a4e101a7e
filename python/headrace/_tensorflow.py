"""`Loader` as a ``tf.data.Dataset``."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from headrace._arguments import refuse


def dataset(loader: Any) -> Any:
    """Each pass over it is a loop over the loader. TensorFlow copies each batch once, out of the batch's memory."""
    plan = loader.plan()
    rows = None if plan["remainder"] == "short" else plan["rows"]
    views = {view["name"]: view for view in loader.samples.info["views"]}
    signature = {
        name: tf.TensorSpec((rows, *view["shape"]), _type(name, view["dtype"])) for name, view in views.items()
    }

    def batches() -> Any:
        for batch in loader:
            yield {name: _plain(x) for name, x in batch.numpy().items()}

    return tf.data.Dataset.from_generator(batches, output_signature=signature)


def _type(name: str, dtype: str) -> Any:
    if dtype.startswith(("datetime64", "timedelta64")):
        return tf.int64  # which is what they are; TensorFlow has no type for them
    try:
        return tf.as_dtype(dtype)
    except TypeError:
        refuse("tensorflow", name, f"TensorFlow has no type for {dtype}: give the view a dtype=")


def _plain(x: Any) -> Any:
    return x.view("i8") if x.dtype.kind in "mM" else x
