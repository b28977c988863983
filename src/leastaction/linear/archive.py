"""A Quadratic system as plain arrays, to keep it in a file beside the path it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.exact import to_text
from leastaction.linear.forcing import Constant, Rayleigh, Samples
from leastaction.linear.matrices import is_sparse
from leastaction.linear.system import Quadratic

Arrays = dict[str, NDArray[Any]]


def to_arrays(system: Quadratic) -> Arrays:
    """M, K and C, a sparse matrix as its three CSR arrays; and the load, unless it is a function of the user's."""
    arrays: Arrays = {}
    if isinstance(system.f, Samples):
        arrays |= {"f.times": system.f.times, "f.values": system.f.values, "f.degree": np.array(system.f.degree)}
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


def from_arrays(arrays: Mapping[str, Any]) -> Quadratic:
    """The system that `to_arrays` wrote."""
    matrices: dict[str, Any] = {}
    for name in "MKC":
        if name in arrays:
            matrices[name] = arrays[name]
        elif f"{name}.data" in arrays:
            from scipy.sparse import csr_array

            n = len(arrays[f"{name}.indptr"]) - 1
            matrices[name] = csr_array(
                tuple(arrays[f"{name}.{part}"] for part in ("data", "indices", "indptr")), (n, n)
            )
    if "rayleigh" in arrays:
        matrices["C"] = Rayleigh(*map(float, arrays["rayleigh"]))
    load: Any = arrays.get("f")
    if "f.times" in arrays:
        load = Samples(arrays["f.times"], arrays["f.values"], int(arrays["f.degree"]))
    return Quadratic(**matrices, f=load)
