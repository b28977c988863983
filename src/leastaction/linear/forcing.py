"""Damping and load: the forces of M q̈ + C q̇ + K q = f(t) that do not come from the Lagrangian."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leastaction.docstrings import documented
from leastaction.linear.matrices import symmetric
from leastaction.numbers.rounding import FLOAT64
from leastaction.step.samples import Samples

FloatArray = NDArray[np.float64]
Force = Callable[[float], ArrayLike]


@dataclass(frozen=True)
class Rayleigh:
    """Proportional damping C = α M + β K.

    Parameters
    ----------
    alpha, beta : float, default 0
        Not negative; α in 1/time, β in time.

    Methods
    -------
    from_ratios

    Examples
    --------
    >>> import leastaction as la
    >>> la.Quadratic([1.0], [4.0], C=la.linear.Rayleigh(alpha=0.1))
    Quadratic(dense, n=1, with damping)
    """

    alpha: float = 0.0
    beta: float = 0.0

    def __post_init__(self) -> None:
        for name, value in (("alpha", self.alpha), ("beta", self.beta)):
            if not (np.isfinite(value) and value >= 0):
                raise ValueError(f"Rayleigh damping needs a finite {name} ≥ 0; got {value!r}")

    @classmethod
    def from_ratios(cls, first: tuple[float, float], second: tuple[float, float]) -> Rayleigh:
        """The α and β that give the damping ratio ζ = (α/ω + β ω)/2 at two frequencies.

        Parameters
        ----------
        first, second : tuple (ω, ζ)
            Two frequencies in radians per unit of time, each with its ratio to critical damping.
        """
        (w1, z1), (w2, z2) = first, second
        if not (w1 > 0 and w2 > 0 and w1 != w2):
            raise ValueError(f"two different positive frequencies are needed; got {w1!r} and {w2!r}")
        beta = 2 * (w2 * z2 - w1 * z1) / (w2**2 - w1**2)
        return cls(alpha=float(2 * z1 * w1 - beta * w1**2), beta=float(beta))


@documented()
class Load(Samples):
    """A load that is a vector times a record, f(t) = vector · g(t), with g joined by the rule of `la.Samples`.

    Nothing of size n × m is kept.

    Parameters
    ----------
    vector : array_like, shape (n,) or (n, k)
        One vector, or k of them.
    times : array_like, shape (m,)
        Ascending.
    samples : array_like, shape (m,) or (m, k)
        One record, or k of them.
    {rule}

    Methods
    -------
    base

    Examples
    --------
    >>> import leastaction as la
    >>> load = la.linear.Load([0.0, 2.0, 1.0], times=[0, 1, 2], samples=[0, 3, 0], rule="linear")
    >>> load(0.5)
    array([0. , 3. , 1.5])
    """

    def __init__(self, vector: ArrayLike, times: ArrayLike, samples: ArrayLike, rule: str = "cubic") -> None:
        v, g = (np.asarray(x, dtype=float) for x in (vector, samples))
        if v.ndim not in (1, 2) or not v.size or not np.isfinite(v).all():
            raise ValueError(
                f"a load's vector must be n finite numbers, or (n, k) for k records; got shape {v.shape}"
                + ("" if np.isfinite(v).all() else " with entries that are NaN or infinite")
            )
        self.vector = v.reshape(len(v), -1)
        g = g[:, None] if g.ndim == 1 else g
        if g.ndim != 2 or g.shape[1] != self.vector.shape[1]:
            raise ValueError(
                f"samples must have the shape ({len(np.atleast_1d(times))}, {self.vector.shape[1]}): a row for each "
                f"time, a column for each vector of the load; got {np.shape(samples)}"
            )
        super().__init__(times, g, rule)

    @classmethod
    @documented()
    def base(cls, M: Any, direction: ArrayLike, times: ArrayLike, acceleration: ArrayLike, rule: str = "cubic") -> Load:
        """The load −M r a(t) of a ground that moves with the acceleration a(t), where q is counted from the ground.

        M (q̈ + r a) + C q̇ + K q = 0: springs and dampers do not feel a motion that all share (of damping αM that is
        the convention). Degrees of freedom held to the ground are taken out afterwards, by `la.Quadratic.without`.

        Parameters
        ----------
        M : array_like or sparse array
            The mass of all degrees of freedom, as `la.Quadratic` takes it.
        direction : array_like, shape (n,) or (n, k)
            r: how far each degree of freedom, held ones included, moves when the ground moves by one. With k
            directions `acceleration` has k columns.
        times : array_like, shape (m,)
            Ascending.
        acceleration : array_like, shape (m,) or (m, k)
            The record.
        {rule}
        """
        mass, r = symmetric(M, "M"), np.asarray(direction, dtype=float)
        n = mass.shape[0]
        if r.ndim not in (1, 2) or len(r) != n:
            raise ValueError(f"the direction must have {n} rows, one for each degree of freedom; got shape {r.shape}")
        inertia = mass[:, None] * r.reshape(n, -1) if mass.ndim == 1 else mass @ r.reshape(n, -1)
        return cls(-inertia, times, acceleration, rule)

    def __call__(self, t: Any) -> FloatArray:
        """The load at one time or many, shape t.shape + (n,)."""
        return np.einsum("...k,nk->...n", super().__call__(t), self.vector)


@dataclass(frozen=True, eq=False)
class Constant:
    """A load that does not change."""

    value: FloatArray

    def __call__(self, t: float) -> FloatArray:
        return self.value


def reduced(f: Any, keep: NDArray[np.intp]) -> Any:
    """A load, as the user gives it, on some of the degrees of freedom."""
    if f is None:
        return None
    if isinstance(f, Load):
        return Load(f.vector[keep], f.times, f.values, f.rule)
    if isinstance(f, Samples):
        return Samples(f.times, f.values[:, keep], f.rule)
    if callable(f):
        return lambda t: np.asarray(f(t))[keep]
    if _is_pair(f):
        return f[0], np.asarray(f[1])[:, keep]
    return np.asarray(f)[keep]


def as_load(f: Any, n: int) -> Force | None:
    """A function of time (Samples and Load among them), samples (times, values), a constant vector, or nothing."""
    if f is None or callable(f):
        load = f
    elif _is_pair(f):
        load = Samples(*f)
    else:
        load = Constant(FLOAT64.array(f))
    if type(load) is Samples and load.values.ndim != 2:
        m = len(load.times)
        raise ValueError(f"samples of the load must have shape ({m}, n), a row for each time; got {load.values.shape}")
    if load is not None:
        start = load.start if isinstance(load, Samples) else 0.0
        checked(load(start), n, start)
    return load


def is_constant(f: Any) -> bool:
    """Whether a load, as the user gives it, is a vector that does not change."""
    return not (f is None or callable(f) or _is_pair(f))


def _is_pair(f: Any) -> bool:
    """(times, values), not the two numbers of a constant load."""
    return isinstance(f, tuple) and len(f) == 2 and np.ndim(f[0]) > 0


def at_times(f: Force, n: int, times: FloatArray) -> FloatArray:
    """The load at many times, shape t.shape + (n,): samples at once, a function one time after the other."""
    if isinstance(f, Samples):
        return np.ascontiguousarray(f(times), float)
    if isinstance(f, Constant):
        return np.tile(f.value, (*times.shape, 1))
    return np.array([checked(f(t), n, t) for t in times.ravel().tolist()]).reshape(*times.shape, n)


def checked(value: ArrayLike, n: int, t: float) -> FloatArray:
    """The load at one time: n finite real numbers."""
    f = np.asarray(value)
    if f.dtype.kind not in "iufb" or f.shape != (n,):
        raise ValueError(f"the load f(t) must give {n} real numbers; at t = {t:g} it gave {f.dtype} of shape {f.shape}")
    if not np.isfinite(f).all():
        raise ValueError(f"the load f(t) is not finite at t = {t:g}")
    return f.astype(float)
