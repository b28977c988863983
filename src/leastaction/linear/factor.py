"""Factorisations, dense and sparse, behind one name: `factor(a).solve(b)`.

Sparse matrices go to SciPy's SuperLU. Every M − h²γK with γ off the positive real axis has 0 outside its field of
values, so elimination needs no pivoting, and SuperLU may keep the diagonal (its symmetric mode, ordering
`MMD_AT_PLUS_A`). On a plate this takes half the time of SuperLU's default, which pivots and orders for AᵀA; on bulky
and on slender bodies the times are equal. No inverse is formed.

SuperLU calls BLAS for blocks of a few dozen rows. Threads inside such calls gain nothing, and on a busy machine they
wait for each other: a complex factorisation was seen to take forty times as long. So sparse work has one BLAS thread.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.linear.matrices import is_sparse

Array = NDArray[Any]


@cache
def _pools() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_thread() -> AbstractContextManager[Any]:
    """BLAS with one thread inside this."""
    limited: AbstractContextManager[Any] = _pools().limit(limits=1, user_api="blas")
    return limited


def blas_threads() -> int:
    """Threads of BLAS now, outside `one_thread`."""
    from threadpoolctl import threadpool_info

    return max((int(pool["num_threads"]) for pool in threadpool_info() if pool["user_api"] == "blas"), default=1)


class Factor(ABC):
    """A matrix, factorised. `nnz` counts the entries kept, `itemsize` their bytes."""

    nnz: int
    itemsize: int

    @abstractmethod
    def solve(self, b: Array) -> Array:
        """x with A x = b."""


class Diagonal(Factor):
    def __init__(self, d: Array) -> None:
        self.d, self.nnz, self.itemsize = d, len(d), d.itemsize

    def solve(self, b: Array) -> Array:
        return b / (self.d if b.ndim == 1 else self.d[:, None])


class Cholesky(Factor):
    def __init__(self, a: Array) -> None:
        from scipy.linalg import cho_factor

        self.parts, self.nnz, self.itemsize = cho_factor(a, lower=True), a.size, a.itemsize

    def solve(self, b: Array) -> Array:
        from scipy.linalg import cho_solve

        return np.asarray(cho_solve(self.parts, b))


class DenseLU(Factor):
    def __init__(self, a: Array) -> None:
        from scipy.linalg import lu_factor

        self.parts, self.nnz, self.itemsize = lu_factor(a), a.size, a.itemsize

    def solve(self, b: Array) -> Array:
        from scipy.linalg import lu_solve

        return np.asarray(lu_solve(self.parts, b))


class SparseLU(Factor):
    def __init__(self, a: Any, *, definite: bool) -> None:
        from scipy.sparse.linalg import splu

        options: dict[str, Any] = {}
        if definite:
            options = {"permc_spec": "MMD_AT_PLUS_A", "diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
        try:
            with one_thread():
                self.lu = splu(a.tocsc(), **options)
        except RuntimeError as error:  # SuperLU: "Factor is exactly singular"
            raise ArithmeticError(f"a step's matrix of size {a.shape[0]} cannot be factorised: {error}") from error
        self.complex = np.iscomplexobj(a)
        self.nnz, self.itemsize = self.lu.nnz, a.dtype.itemsize

    @property
    def positive(self) -> bool:
        """Whether elimination took every pivot from the diagonal, and all are positive."""
        return bool((self.lu.perm_r == self.lu.perm_c).all() and (self.lu.U.diagonal() > 0).all())

    def solve(self, b: Array) -> Array:
        if b.ndim == 2:  # SuperLU calls BLAS for many right-hand sides, too
            with one_thread():
                return self._solve(b)
        return self._solve(b)

    def _solve(self, b: Array) -> Array:
        if self.complex or not np.iscomplexobj(b):
            return np.asarray(self.lu.solve(b))
        return np.asarray(self.lu.solve(b.real) + 1j * self.lu.solve(b.imag))


def factor(a: Any, *, definite: bool = True) -> Factor:
    """Factorise a symmetric matrix, real or complex, dense or sparse; a vector is a diagonal matrix.

    definite    the matrix is e^{iθ} times one with a positive definite real part, so that no pivoting is needed
    """
    if getattr(a, "ndim", 2) == 1:
        return Diagonal(a)
    if is_sparse(a):
        return SparseLU(a, definite=definite)
    return Cholesky(a) if definite and not np.iscomplexobj(a) else DenseLU(a)
