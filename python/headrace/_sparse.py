"""Rows of a sparse matrix in a batch."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from headrace._headrace import Tensor


class Sparse:
    """Rows of a sparse matrix (CSR) of `shape` (rows, genes), which are as many genes in every batch.

    `data`, `indices` and `indptr` are its tensors; whatever is made of them shares the batch's memory.
    """

    __slots__ = ("data", "indices", "indptr", "name", "shape")

    def __init__(self, name: str, data: Tensor, indices: Tensor, indptr: Tensor, shape: tuple[int, int]) -> None:
        self.name, self.data, self.indices, self.indptr, self.shape = name, data, indices, indptr, shape

    @property
    def nnz(self) -> int:
        """Values stored."""
        return len(self.data)

    @property
    def dtype(self) -> str:
        return self.data.dtype

    @property
    def nbytes(self) -> int:
        return self.data.nbytes + self.indices.nbytes + self.indptr.nbytes

    def __len__(self) -> int:
        """Rows."""
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Any:
        """Rows as ``scipy`` has them, a copy: ``batch["X"][0]`` is a matrix of one row."""
        return self.scipy()[rows]

    def torch(self) -> Any:
        """``torch.sparse_csr_tensor`` over the same memory."""
        import torch

        return torch.sparse_csr_tensor(
            self.indptr.torch(), self.indices.torch(), self.data.torch(), self.shape, check_invariants=False
        )

    def scipy(self) -> Any:
        """``scipy.sparse.csr_matrix`` over the same memory."""
        from scipy.sparse import csr_matrix

        return csr_matrix((self.data.numpy(), self.indices.numpy(), self.indptr.numpy()), self.shape, copy=False)

    def toarray(self) -> Any:
        """A dense numpy array, a copy."""
        import numpy as np

        indptr = self.indptr.numpy()
        out: Any = np.zeros(self.shape, self.data.numpy().dtype)
        out[np.repeat(np.arange(len(self)), np.diff(indptr)), self.indices.numpy()] = self.data.numpy()
        return out

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """``np.asarray(batch["X"])``: as ``toarray``."""
        if copy is False:
            raise ValueError("a dense array of a sparse matrix is a copy; .data, .indices and .indptr are not")
        out = self.toarray()
        return out if dtype is None else out.astype(dtype)

    def numpy(self) -> dict[str, Any]:
        """The three arrays by name: data, indices, indptr."""
        return {"data": self.data.numpy(), "indices": self.indices.numpy(), "indptr": self.indptr.numpy()}

    def jax(self) -> Any:
        """``jax.experimental.sparse.BCSR`` over the same memory (CPU)."""
        from jax.experimental.sparse import BCSR

        return BCSR((self.data.jax(), self.indices.jax(), self.indptr.jax()), shape=self.shape)

    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"<Sparse {self.name}: {rows} × {columns} {self.dtype}, {self.nnz} values>"
