"""`Loader` as a ``tf.data.Dataset``."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from headrace._arguments import refuse


def dataset(loader: Any) -> Any:
    """Each pass over it is a loop over the loader. TensorFlow copies each batch once, out of the batch's memory."""
    plan = loader.plan()
    rows = None if plan["remainder"] == "short" else plan["rows"]
    info = loader.samples.info
    signature = {}
    for view in info["views"]:
        for name, dtype in _tensors(view, loader.samples).items():
            signature[name] = tf.TensorSpec((rows, *view["shape"]), _type(name, dtype))
    for table in info.get("tables", ()):
        shape = (rows,) if table["items"] == 1 else (rows, table["items"])
        signature[table["name"]] = tf.TensorSpec(shape, _type(table["name"], table["dtype"]))

    def batches() -> Any:
        for batch in loader:
            yield {name: _plain(x) for name, x in batch.numpy().items()}

    return tf.data.Dataset.from_generator(batches, output_signature=signature)


def _tensors(view: dict[str, Any], samples: Any) -> dict[str, str]:
    """The types of a view's tensors by name: one, but for cells."""
    name, form = view["name"], view.get("form", "dense")
    if form == "csr":
        refuse("tensorflow", name, 'it is sparse, a tf.data.Dataset has dense tensors: take the cells as X="dense", or '
               "hr.padded(…)")  # fmt: skip
    if form == "dense":
        return {name: view["dtype"]}
    column = samples.index_dtype(name)
    if form == "ranked":
        return {f"{name}.tokens": column, f"{name}.mask": "bool"}
    return {f"{name}.genes": column, f"{name}.values": view["dtype"], f"{name}.mask": "bool"}


def _type(name: str, dtype: str) -> Any:
    if dtype.startswith(("datetime64", "timedelta64")):
        return tf.int64  # which is what they are; TensorFlow has no type for them
    try:
        return tf.as_dtype(dtype)
    except TypeError:
        refuse("tensorflow", name, f"TensorFlow has no type for {dtype}: give the view a dtype=")


def _plain(x: Any) -> Any:
    return x.view("i8") if x.dtype.kind in "mM" else x
