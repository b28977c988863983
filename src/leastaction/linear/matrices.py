"""What a user hands in as M, K or C, checked: real, square, symmetric, finite. `definite` asks for more."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.numbers.rounding import FLOAT64

FloatArray = NDArray[np.float64]

ASYMMETRY = 1e-10  # relative; assembled finite-element matrices are symmetric to a few units of 1e-16
EXACT_INTEGERS = 2**53  # float64 holds all integers up to this size


def is_sparse(a: Any) -> bool:
    """scipy.sparse matrix or array, without importing scipy.sparse (whoever made one has imported it)."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(a))


def symmetric(a: Any, name: str) -> Any:
    """A float64 copy: a dense array, or CSR for sparse input. A vector stands for a diagonal matrix."""
    if not is_sparse(a):
        if (entries := exact_entries(a)) is not None:
            try:
                a = FLOAT64.array(entries)
            except (TypeError, ValueError) as error:
                raise TypeError(
                    f"{name} must be real; got entries of type {entries.flat[0].__class__}: {error}"
                ) from None
        try:
            a = np.asarray(a)
        except ValueError:
            raise ValueError(f"{name} must be a matrix; its rows have different lengths") from None
        if a.ndim == 0:
            a = a.reshape(1, 1)
    if a.dtype.kind not in "iufb":
        kind = "complex entries" if a.dtype.kind == "c" else f"entries of type {a.dtype}"
        raise TypeError(f"{name} must be real; got {kind}. Pass {name}.real if the imaginary part is zero by design.")
    if a.ndim > 2 or (a.ndim == 2 and a.shape[0] != a.shape[1]):
        raise ValueError(f"{name} must be square (or a vector, for a diagonal matrix); got shape {a.shape}")
    if a.shape[0] == 0:
        raise ValueError(f"{name} is empty; a system needs at least one degree of freedom")
    a = a.astype(np.float64).tocsr() if is_sparse(a) else np.array(a, dtype=np.float64)
    entries = a.data if is_sparse(a) else a
    if not np.isfinite(entries).all():
        raise ValueError(f"{name} has {np.count_nonzero(~np.isfinite(entries))} entries that are NaN or infinite")
    if a.ndim == 1:
        return a
    difference = a - a.T
    gap, size = (_largest(x) for x in (difference, a))
    if gap > ASYMMETRY * size:
        raise ValueError(
            f"{name} must be symmetric; the largest |{name} − {name}ᵀ| is {gap:.3g}, {gap / size:.2g} of its largest "
            f"entry. If the asymmetry is an accident of assembly, pass ({name} + {name}.T)/2."
        )
    return a / 2 + a.T / 2 if gap > 0 else a  # symmetric to the last bit: made symmetric once more, it stays the same


def exact_entries(a: Any) -> NDArray[np.object_] | None:
    """The entries of a dense matrix as given, if some are more than machine numbers: text, Fraction, SymPy."""
    if is_sparse(a) or (isinstance(a, np.ndarray) and a.dtype.kind not in "OUiu"):
        return None
    entries = np.array(a, dtype=object)
    return None if all(_is_machine_number(x) for x in entries.flat) else entries


def _is_machine_number(x: Any) -> bool:
    if isinstance(x, int):
        return abs(x) <= EXACT_INTEGERS
    return isinstance(x, float | complex | np.number | list | tuple | np.ndarray)


def _largest(a: Any) -> float:
    entries = a.data if is_sparse(a) else a
    return float(np.abs(entries).max(initial=0.0))


def diagonal(a: Any) -> FloatArray | None:
    """The diagonal, when there is nothing else."""
    if a.ndim == 1:
        return np.asarray(a)
    off = a.copy() if is_sparse(a) else a
    d = np.asarray(a.diagonal())
    if is_sparse(off):
        off.eliminate_zeros()
        return d if off.nnz == np.count_nonzero(d) else None
    return d if np.count_nonzero(a) == np.count_nonzero(d) else None


def eliminate(a: Any, fixed: Any) -> FloatArray | Any:
    """A matrix or a diagonal without the rows and columns of held degrees of freedom.

    Parameters
    ----------
    a : array_like or sparse array, shape (n, n) or (n,)
        The matrix.
    fixed : array_like of int or bool
        Which degrees of freedom are held: indices, or a mask.

    Examples
    --------
    >>> import numpy as np, leastaction as la
    >>> la.linear.eliminate(np.arange(9).reshape(3, 3), [1])
    array([[0, 2],
           [6, 8]])
    """
    keep = free(np.shape(a)[0], fixed)
    if np.ndim(a) == 1 and not is_sparse(a):
        return np.asarray(a)[keep]
    return a.tocsr()[keep][:, keep] if is_sparse(a) else np.asarray(a)[np.ix_(keep, keep)]


def chosen_dofs(dofs: Any, n: int, name: str = "dofs") -> NDArray[np.int64]:
    """Degrees of freedom by number, checked; negative ones count from the end."""
    chosen = np.atleast_1d(np.asarray(dofs))
    if chosen.dtype.kind not in "iu" or chosen.ndim != 1 or not chosen.size or chosen.min() < -n or chosen.max() >= n:
        raise ValueError(f"{name} must list degrees of freedom as indices below n = {n}; got {dofs!r}")
    return chosen.astype(np.int64) % n


def free(n: int, fixed: Any) -> NDArray[np.intp]:
    """The degrees of freedom that are not held, ascending.

    Parameters
    ----------
    n : int
        Degrees of freedom in all.
    fixed : array_like of int or bool
        Which ones are held: indices, or a mask.

    Examples
    --------
    >>> import leastaction as la
    >>> la.linear.free(5, [0, 3])
    array([1, 2, 4])
    """
    fixed = np.asarray(fixed)
    if fixed.dtype != bool:
        if fixed.size and fixed.dtype.kind not in "iu":
            raise TypeError(f"fixed degrees of freedom are indices or a mask; got entries of type {fixed.dtype}")
        fixed = fixed.astype(np.intp)
        if fixed.size and (fixed.min() < -n or fixed.max() >= n):
            raise ValueError(f"fixed degrees of freedom are indices below n = {n}; got {fixed.min()} … {fixed.max()}")
    elif fixed.shape != (n,):
        raise ValueError(f"a mask of fixed degrees of freedom must have shape ({n},); got {fixed.shape}")
    mask = np.ones(n, dtype=bool)
    mask[fixed] = False
    if not mask.any():
        raise ValueError("every degree of freedom is fixed; nothing is left to move")
    return np.flatnonzero(mask)
