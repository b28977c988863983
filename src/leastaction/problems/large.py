"""Large systems from what people have: masses, positions and velocities of bodies; the edges of a graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from leastaction.numbers.arrays import FloatArray
from leastaction.systems.sums import Sum, Term


@dataclass(frozen=True, eq=False)
class Bodies:
    """N bodies that attract each other: a system with its data. Coordinates stand body after body: x₁, y₁, z₁, x₂, …

    Attributes
    ----------
    system : Sum
        A kinetic term over bodies, and gravity over pairs.
    q0, p0, v0 : ndarray, shape (N × dimensions,)
        Positions, momenta and velocities as `la.integrate` takes them.
    dimensions : int
        2 or 3.

    Methods
    -------
    places

    Examples
    --------
    >>> import leastaction as la
    >>> two = la.problems.n_body([1.0, 1.0], [[-0.5, 0.0], [0.5, 0.0]], [[0.0, -0.7], [0.0, 0.7]])
    >>> two.places(two.q0).shape
    (2, 2)
    """

    system: Sum
    q0: FloatArray
    p0: FloatArray
    v0: FloatArray
    dimensions: int

    def __repr__(self) -> str:
        return f"Bodies({len(self.q0) // self.dimensions} bodies in {self.dimensions} dimensions)"

    def places(self, q: ArrayLike) -> FloatArray:
        """Positions, momenta or velocities by bodies, (…, N, dimensions).

        Parameters
        ----------
        q : array_like, shape (…, n)
            As a path holds them.

        """
        array = np.asarray(q)
        return array.reshape(*array.shape[:-1], -1, self.dimensions)


def _motion(q: Any, v: Any, m: Any) -> Any:
    return 0.5 * m * np.sum(v**2)


def _gravity(q: Any, v: Any, G: Any, mm: Any, softening: Any) -> Any:
    half = len(q) // 2
    return G * mm / np.sqrt(np.sum((q[half:] - q[:half]) ** 2) + softening**2)


def n_body(
    masses: ArrayLike, positions: ArrayLike, velocities: ArrayLike, *, G: float = 1.0, softening: float = 0.0
) -> Bodies:
    """N point masses that attract each other, in two or three dimensions.

    L = ½ Σ_i m_i v_i² + G Σ_{i<j} m_i m_j / √(|q_i − q_j|² + softening²)

    Parameters
    ----------
    masses : array_like, shape (N,)
        The masses.
    positions, velocities : array_like, shape (N, 2) or (N, 3)
        The start.
    G : float, default 1
        The constant of gravity, in the units of the data.
    softening : float, default 0
        A length that bounds the attraction of bodies that meet.

    Raises
    ------
    ValueError
        Shapes do not fit together.

    Examples
    --------
    >>> import leastaction as la
    >>> two = la.problems.n_body([1.0, 1.0], [[-0.5, 0.0], [0.5, 0.0]], [[0.0, -0.7], [0.0, 0.7]])
    >>> two.system.n, two.p0
    (4, array([ 0. , -0.7,  0. ,  0.7]))
    """
    m, Q, V = (np.asarray(x, float) for x in (masses, positions, velocities))
    if m.ndim != 1 or len(m) < 2 or not (m > 0).all():
        raise ValueError(f"masses must be at least two positive numbers; got {masses!r}")
    for name, array in (("positions", Q), ("velocities", V)):
        if array.ndim != 2 or array.shape[0] != len(m) or array.shape[1] not in (2, 3):
            raise ValueError(f"{name} must have shape ({len(m)}, 2) or ({len(m)}, 3); got {array.shape}")
    if Q.shape != V.shape:
        raise ValueError(f"positions and velocities must have one shape; got {Q.shape} and {V.shape}")
    bodies = np.arange(Q.size).reshape(Q.shape)
    i, j = np.triu_indices(len(m), 1)
    terms = [
        Term(_motion, over=bodies, params={"m": m}),
        Term(
            _gravity,
            over=np.concatenate([bodies[i], bodies[j]], axis=1),
            params={"G": G, "mm": m[i] * m[j], "softening": softening},
        ),
    ]
    system = Sum(terms, Q.size, f"{len(m)} bodies")
    return Bodies(system, Q.ravel().copy(), (m[:, None] * V).ravel(), V.ravel().copy(), Q.shape[1])


def lattice(
    edges: ArrayLike, potential: Callable[..., Any], *, n: int | None = None, masses: ArrayLike = 1.0,
    onsite: Callable[..., Any] | None = None, params: Mapping[str, Any] | None = None,
    onsite_params: Mapping[str, Any] | None = None,
) -> Sum:  # fmt: skip
    """Masses joined along the edges of a graph.

    L = Σ_i (½ m_i v_i² − U(q_i)) − Σ_{(i, j)} V(q_j − q_i)

    Parameters
    ----------
    edges : array_like of int, shape (E, 2)
        Each row is a pair (i, j) of nodes.
    potential : callable
        V(r, …), a plain NumPy function of the stretch r = q_j − q_i and of `params`.
    n : int, optional
        Number of nodes. Without `n`: as many as the edges name.
    masses : float or array_like of shape (n,), default 1
        The masses.
    onsite : callable, optional
        U(q, …), the potential of one node, with `onsite_params`.
    params, onsite_params : mapping, optional
        Parameters of V and of U: numbers, or arrays with one entry for each edge or node.

    Returns
    -------
    Sum
        A system for `la.integrate`.

    Examples
    --------
    >>> import leastaction as la
    >>> ring = la.problems.lattice([[0, 1], [1, 2], [2, 0]], lambda r, k: 0.5 * k * r**2, params={"k": 2.0})
    >>> ring.acceleration([0.0, 1.0, 0.0], [0.0, 0.0, 0.0])
    array([ 2., -4.,  2.])
    """

    def bond(q: Any, v: Any, **values: Any) -> Any:
        return -potential(q[1] - q[0], **values)

    def site(q: Any, v: Any, **values: Any) -> Any:
        assert onsite is not None
        return -onsite(q[0], **values)

    bonds = Term(bond, over=edges, params=params)
    if bonds.width != 2:
        raise ValueError(f"edges must have shape (E, 2), a pair of nodes in each row; got {np.shape(edges)}")
    count = int(bonds.table.max()) + 1 if n is None else n
    kinetic = Term(lambda q, v, m: 0.5 * m * v[0] ** 2, over=np.arange(count), params={"m": masses})
    sites = [] if onsite is None else [Term(site, over=np.arange(count), params=onsite_params)]
    return Sum([kinetic, bonds, *sites], count, "a lattice")
