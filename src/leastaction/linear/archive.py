"""A Quadratic system as plain arrays, to keep it in a file beside the path it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.linear.forcing import Constant, Load, Rayleigh
from leastaction.linear.matrices import is_sparse
from leastaction.linear.system import Quadratic
from leastaction.numbers.notation import to_text
from leastaction.reading import entry, floats, integer, listing, numbers
from leastaction.step.samples import RULES, Samples

Arrays = dict[str, NDArray[Any]]


def to_arrays(system: Quadratic) -> Arrays:
    """M, K and C, a sparse matrix as its three CSR arrays; and the load, unless the load is a user's function."""
    arrays: Arrays = {}
    if isinstance(system.f, Samples):
        arrays |= {
            "f.times": system.f.times,
            "f.values": system.f.values,
            "f.rule": np.array(RULES.index(system.f.rule)),
        }
        if isinstance(system.f, Load):
            arrays["f.vector"] = system.f.vector
    elif isinstance(system.f, Constant):
        arrays["f"] = system.f.value
    elif system.f is not None:
        raise ValueError(
            "a system whose load f(t) is a function cannot be saved; give the load as samples, or save path.t, q and p"
        )
    matrices: dict[str, Any] = {"M": system.M, "K": system.K, "C": system.C}
    for name, a in matrices.items():
        if isinstance(a, Rayleigh):
            arrays["rayleigh"] = np.array([a.alpha, a.beta])
        elif is_sparse(a):
            arrays |= {f"{name}.data": a.data, f"{name}.indices": a.indices, f"{name}.indptr": a.indptr}
        elif a is not None:
            arrays[name] = a
    exact = {name: np.array([to_text(x) for x in a.flat]).reshape(a.shape) for name, a in system.unrounded.items()}
    return arrays | exact


def from_arrays(arrays: Mapping[str, Any], names: Any = ()) -> Quadratic:
    """The system that `to_arrays` wrote. The arrays may come from a stranger: everything in them is checked."""
    matrices: dict[str, Any] = {}
    for name in "MKC":
        if name in arrays:
            matrices[name] = _numbers(arrays, name)
        elif f"{name}.data" in arrays:
            matrices[name] = _sparse(arrays, name)
    if missing := [name for name in "MK" if name not in matrices]:
        raise ValueError(f"the matrix {missing[0]} of the system is missing")
    if "rayleigh" in arrays:
        matrices["C"] = Rayleigh(*map(float, floats(arrays, "rayleigh", (2,))))
    load: Any = _numbers(arrays, "f") if "f" in arrays else None
    if "f.times" in arrays:
        times = floats(arrays, "f.times", (None,))
        rule = RULES[integer(floats(arrays, "f.rule", (), np.int64).item(), "f.rule", 0, len(RULES) - 1)]
        values = floats(arrays, "f.values", (len(times), None))
        if "f.vector" in arrays:
            load = Load(floats(arrays, "f.vector", (None, values.shape[1])), times, values, rule)
        else:
            load = Samples(times, values, rule)
    return Quadratic(**matrices, f=load, names=listing(list(names), "names"))


def _numbers(arrays: Mapping[str, Any], name: str) -> NDArray[Any]:
    """A matrix or a vector of floats, or of texts of exact numbers."""
    found = np.asarray(arrays[name])
    if found.dtype.kind == "U":
        return np.array(numbers(found.tolist(), name), dtype=object)
    if found.dtype != float:
        raise ValueError(f"{name} must hold floats, or texts of exact numbers; got {found.dtype}")
    return found


def _sparse(arrays: Mapping[str, Any], name: str) -> Any:
    """A CSR matrix with checked indices: SciPy's own loops would read and write wherever wrong indices point."""
    from scipy.sparse import csr_array

    data = floats(arrays, f"{name}.data", (None,))
    places = [np.asarray(entry(arrays, f"{name}.{part}")) for part in ("indices", "indptr")]
    if any(a.ndim != 1 or a.dtype not in (np.int32, np.int64) for a in places):
        raise ValueError(f"{name}.indices and {name}.indptr must be lists of integers")
    indices, indptr = places
    n = len(indptr) - 1
    if n < 1 or indptr[0] != 0 or (np.diff(indptr) < 0).any() or not indptr[-1] == len(data) == len(indices):
        raise ValueError(f"{name}.indptr must ascend from 0 to the number of entries, {len(data)}")
    if len(indices) and not 0 <= indices.min() <= indices.max() < n:
        raise ValueError(f"{name}.indices must be from 0 to {n - 1}; got {indices.min()} … {indices.max()}")
    return csr_array((data, indices, indptr), (n, n))
