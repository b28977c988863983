"""Factorisations, dense and sparse, behind one name: `factor(a).solve(b)`.

Sparse matrices go to SciPy's SuperLU. Every M − h²γK with γ off the positive real axis has 0 outside its field of
values, so elimination needs no pivoting, and SuperLU may keep the diagonal (its symmetric mode, ordering
`MMD_AT_PLUS_A`). On a plate this takes half the time of SuperLU's default, which pivots and orders for AᵀA; on bulky
and on slender bodies the times are equal. No inverse is formed.

SuperLU calls BLAS for blocks of a few dozen rows. Threads inside such calls gain nothing, and on a busy machine they
wait for each other: a complex factorisation was seen to take forty times as long. So sparse work has one BLAS thread.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache, partial
from typing import Any, NamedTuple

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


class Factorised(NamedTuple):
    """A factorised matrix A: `solve(b)` is x with A x = b. It keeps `nnz` entries of `itemsize` bytes."""

    solve: Callable[[Array], Array]
    nnz: int
    itemsize: int


def factor(a: Any, *, definite: bool = True) -> Factorised:
    """Factorise a symmetric matrix, real or complex, dense or sparse; a vector is a diagonal matrix.

    definite    the matrix is e^{iθ} times one with a positive definite real part, so that no pivoting is needed
    """
    if is_sparse(a):
        lu = sparse_lu(a, definite)
        return Factorised(partial(_solve_sparse, lu, np.iscomplexobj(a)), lu.nnz, a.dtype.itemsize)
    if a.ndim == 1:
        return Factorised(lambda b: b / (a if b.ndim == 1 else a[:, None]), a.size, a.itemsize)
    from scipy.linalg import cho_factor, cho_solve, lu_factor, lu_solve

    if definite and not np.iscomplexobj(a):
        return Factorised(partial(cho_solve, cho_factor(a, lower=True)), a.size, a.itemsize)
    return Factorised(partial(lu_solve, lu_factor(a)), a.size, a.itemsize)


def sparse_lu(a: Any, definite: bool) -> Any:
    """SuperLU's factors of a sparse matrix."""
    from scipy.sparse.linalg import splu

    options: dict[str, Any] = {}
    if definite:
        options = {"permc_spec": "MMD_AT_PLUS_A", "diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
    try:
        with one_thread():
            return splu(a.tocsc(), **options)
    except RuntimeError as error:  # SuperLU: "Factor is exactly singular"
        raise ArithmeticError(f"a step's matrix of size {a.shape[0]} cannot be factorised: {error}") from error


def _solve_sparse(lu: Any, is_complex: bool, b: Array) -> Array:
    with one_thread() if b.ndim == 2 else nullcontext():  # SuperLU calls BLAS for many right-hand sides, too
        if is_complex or not np.iscomplexobj(b):
            return np.asarray(lu.solve(b))
        return np.asarray(lu.solve(b.real) + 1j * lu.solve(b.imag))
