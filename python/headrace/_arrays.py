"""A `Tensor` as an array of numpy, torch or jax, over the same memory. Each framework is imported at first use."""

from __future__ import annotations

from typing import Any


def numpy(tensor: Any) -> Any:
    import numpy as np

    array = np.asarray(memoryview(tensor))
    name = tensor.dtype
    if name == "bfloat16":
        try:
            import ml_dtypes
        except ImportError:
            from headrace._errors import UnsupportedError

            raise UnsupportedError(
                "numpy has no bfloat16: install ml_dtypes, use .torch() or .jax(), or ask for dtype='float32'"
            ) from None
        return array.view(ml_dtypes.bfloat16)
    if name.startswith(("datetime64", "timedelta64")):
        return array.view(name)
    if name.startswith("V"):
        return array.view(name)
    return array


def torch(tensor: Any) -> Any:
    import torch as framework

    return framework.from_dlpack(tensor)


def jax(tensor: Any) -> Any:
    import jax.dlpack

    return jax.dlpack.from_dlpack(tensor)
