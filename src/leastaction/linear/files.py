"""Linear systems from files: Matrix Market for matrices; Matrix Market, NumPy or text for vectors and samples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.linear.forcing import Load, Rayleigh
from leastaction.linear.matrices import free, is_sparse
from leastaction.linear.system import Quadratic
from leastaction.step.samples import Samples

FloatArray = NDArray[np.float64]


def read_matrix(file: str | Path) -> Any:
    """A Matrix Market file: sparse from `coordinate` format, dense from `array` format, a vector from n × 1."""
    from scipy.io import mmread

    try:
        a = mmread(_existing(file))
    except ValueError as error:
        raise ValueError(f"{file} is not a Matrix Market file: {error}") from error
    if is_sparse(a):
        from scipy.sparse import csr_array

        return csr_array(a)
    return a.ravel() if a.ndim == 2 and 1 in a.shape else a


def read_numbers(file: str | Path) -> FloatArray:
    """Numbers from .mtx, .npy, or text with rows of numbers (commas or spaces between them)."""
    file = _existing(file)
    if file.suffix == ".mtx":
        a = read_matrix(file)
        return np.asarray(a.toarray() if is_sparse(a) else a, dtype=float)
    if file.suffix == ".npy":
        return np.asarray(np.load(file, allow_pickle=False), dtype=float)
    text = file.read_text(encoding="utf-8").replace(",", " ")
    try:
        return np.loadtxt(text.splitlines(), dtype=float)
    except ValueError as error:
        raise ValueError(f"{file} must hold rows of numbers: {error}") from error


def vector(given: str | None, n: int, name: str) -> FloatArray:
    """n numbers: from a file, written out ("0, 1.5, 2"), or zeros when nothing is given."""
    if given is None:
        return np.zeros(n)
    try:
        numbers = np.array([float(word) for word in given.replace(",", " ").split()])
    except ValueError:
        numbers = read_numbers(given).ravel()
    if numbers.shape != (n,):
        raise ValueError(f"{name} must have {n} numbers, one for each degree of freedom; got {numbers.size}")
    return numbers


def from_files(
    mass: str,
    stiffness: str,
    *,
    damping: str | None = None,
    rayleigh: tuple[float, float] | None = None,
    load: str | None = None,
    load_vector: str | None = None,
    ground: str | None = None,
    fixed: Sequence[int] = (),
) -> tuple[Quadratic, NDArray[np.intp]]:
    """The system of these files without its fixed degrees of freedom, and the numbers in the files of those that are
    left.

    load           rows of t, f_1 … f_n, joined by cubic splines; or of t, g_1 … g_k, with
    load_vector    n rows of k numbers: the load is this matrix times g; or with
    ground         n rows of k numbers, the directions in which the ground moves with accelerations g
    """
    if damping is not None and rayleigh is not None:
        raise ValueError("give damping by a matrix or by Rayleigh's two numbers, not both")
    M, K = read_matrix(mass), read_matrix(stiffness)
    C = Rayleigh(*rayleigh) if rayleigh else (None if damping is None else read_matrix(damping))
    f = None if load is None else _load(load, load_vector, ground, M, K.shape[0])
    if load is None and (load_vector is not None or ground is not None):
        raise ValueError(
            "a vector of the load, or a direction of the ground, needs a record of times: give the load, too"
        )
    if not len(fixed):
        return Quadratic(M, K, C=C, f=f), np.arange(K.shape[0])
    return Quadratic.without(fixed, M, K, C=C, f=f), free(K.shape[0], fixed)


def _load(file: str, load_vector: str | None, ground: str | None, M: Any, n: int) -> Samples:
    """The load of these files on all n degrees of freedom."""
    if load_vector is not None and ground is not None:
        raise ValueError("give a vector of the load or a direction of the ground, not both")
    shape = load_vector if load_vector is not None else ground
    vectors = None if shape is None else read_numbers(shape)
    if vectors is not None:
        vectors = vectors.reshape(len(np.atleast_1d(vectors)), -1)
        if len(vectors) != n:
            raise ValueError(f"{shape} must have {n} rows, one for each degree of freedom; got {len(vectors)}")
    columns = n if vectors is None else vectors.shape[1]
    table = np.atleast_2d(read_numbers(file))
    if table.shape[1] != columns + 1 or len(table) < 2:
        what = "forces" if vectors is None else "numbers"
        raise ValueError(f"{file} must have at least two rows of t and {columns} {what}; got shape {table.shape}")
    times, values = table[:, 0], table[:, 1:]
    if vectors is None:
        return Samples(times, values)
    return Load(vectors, times, values) if ground is None else Load.base(M, vectors, times, values)


def _existing(file: str | Path) -> Path:
    file = Path(file)
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file}")
    return file
