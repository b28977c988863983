"""What can go wrong, each with a name of its own."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leastaction.results.path import Path


class TraceError(TypeError):
    """A function cannot be traced. The message says which part, and what to write.

    Examples
    --------
    >>> import leastaction as la
    >>> try:
    ...     la.Lagrangian(lambda q, v: float(v[0]) ** 2, n=1)
    ... except la.TraceError:
    ...     print("float() would lose the dependence on v")
    float() would lose the dependence on v
    """


class DegenerateLagrangianError(ValueError):
    """∂²L/∂v² is singular: momenta do not determine velocities.

    Examples
    --------
    >>> import leastaction as la
    >>> still = la.Lagrangian(lambda q, v: v[0] ** 2 - q[1] ** 2, n=2)
    >>> try:
    ...     la.integrate(still, "simpson", [0.0, 1.0], v0=[1.0, 0.0], h=0.1, steps=1)
    ... except la.DegenerateLagrangianError:
    ...     print("q[1] has no kinetic term")
    q[1] has no kinetic term
    """


class ConstraintError(ValueError):
    """A start is off the constraints, or constraints depend on each other. The message says by how much, or which.

    Examples
    --------
    >>> import leastaction as la
    >>> rod = la.Lagrangian(lambda q, v: 0.5 * (v @ v) - q[1], n=2, constraints=lambda q: q @ q - 1)
    >>> try:
    ...     la.integrate(rod, "simpson", [0.0, -1.5], v0=[0.0, 0.0], h=0.1, steps=1)
    ... except la.ConstraintError:
    ...     print("la.project(system, q0, v0) gives the nearest state on them")
    la.project(system, q0, v0) gives the nearest state on them
    """


class EnergyWarning(RuntimeWarning):
    """A run loses energy that nothing takes: from there on it is not the motion of its Lagrangian.

    Examples
    --------
    >>> import warnings, numpy as np, leastaction as la
    >>> stiff = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 - 5000 * q[0] ** 2, n=1)  # ω = 100
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     path = la.integrate(stiff, "verlet", [1.0], [0.0], h=0.03, steps=20)  # hω = 3 is above 2
    >>> any(issubclass(w.category, la.EnergyWarning) for w in caught)
    True
    """


class ChartWarning(RuntimeWarning):
    """A step is too long for its way past a pole of the chart, as θ = 0 of spherical coordinates or Euler angles: from
    there on the motion may be another one, with the right energy. The message says when, and which coordinate.

    Examples
    --------
    >>> import warnings, numpy as np, leastaction as la
    >>> def pendulum(q, v):  # q = (θ, φ)
    ...     return 0.5 * (v[0] ** 2 + (np.sin(q[0]) * v[1]) ** 2) + np.cos(q[0])
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     path = la.integrate(la.Lagrangian(pendulum, n=2), "simpson", [1.0, 0.0], [0.0, 0.05], h=0.1, steps=40)
    >>> [w.category.__name__ for w in caught]
    ['ChartWarning']
    """


@contextmanager
def measuring() -> Iterator[None]:
    """Inside this context no run warns of errors of its own: the caller measures errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EnergyWarning)
        warnings.simplefilter("ignore", ChartWarning)
        yield


class StepFailed(ArithmeticError):  # noqa: N818  (a public name)
    """A step could not be solved.

    Attributes
    ----------
    path : Path
        All states before the step.
    step : int
        The index of the step that failed.
    time : float
        The time at its start.
    h : number
        The step tried.
    stage : str
        What failed: "prediction", since the state at its start has no velocity; "iteration", of its equations;
        "branch", since no root surely belongs to the motion; "event", at a wall or in locating an event.
    residual : float
        The size of the last Newton increment, relative to the step's own increment.
    iterations : int
        Newton iterations spent on the step.

    Examples
    --------
    >>> import numpy as np, leastaction as la
    >>> def kepler(q, v):
    ...     return 0.5 * (v @ v) + 1 / np.sqrt(q @ q)
    >>> try:
    ...     la.integrate(la.Lagrangian(kepler, n=2), "simpson", [1.0, 0.0], [0.0, 0.05], h=0.5, steps=10)
    ... except la.StepFailed as failure:
    ...     print(len(failure.path) > 0, failure.h)
    True 0.5
    """

    path: Path
    step: int
    time: float
    h: float
    stage: str
    residual: float
    iterations: int

    def __init__(self, message: str, **about: Any) -> None:
        super().__init__(message)
        self.__dict__.update({"residual": 0.0, "iterations": 0} | about)


class RestingContact(StepFailed):
    """Impacts follow each other without end: the motion comes to rest on a wall. ``.path`` holds all states before.

    Examples
    --------
    >>> import leastaction as la
    >>> ball = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 - 9.81 * q[0], n=1)
    >>> floor = {"floor": la.Impact(lambda q: q[0], restitution=0.5)}
    >>> try:
    ...     la.integrate(ball, "simpson", [1.0], [0.0], h=0.1, t_end=9, events=floor)
    ... except la.RestingContact as rest:
    ...     print(f"at rest from t = {rest.time:.3f} on")
    at rest from t = 1.355 on
    """


class UnstableStepError(ValueError):
    """The step h is outside the stable intervals of the method on a Quadratic system. The message names ω_max and the
    limit.

    Examples
    --------
    >>> import leastaction as la
    >>> try:
    ...     la.integrate(la.Quadratic([1.0], [1e4]), "verlet", [1.0], [0.0], h=0.03, steps=10)
    ... except la.UnstableStepError:
    ...     print("hω = 3, and the limit of Störmer–Verlet is 2")
    hω = 3, and the limit of Störmer–Verlet is 2
    """


class StoreError(OSError):
    """An archive cannot be written or read. The message says why, and what is still safe.

    Examples
    --------
    >>> import leastaction as la, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     try:
    ...         la.open(folder)
    ...     except la.StoreError:
    ...         print("this folder is no archive")
    this folder is no archive
    """

    def __str__(self) -> str:
        """The message without the number; `errno` is for programs."""
        return str(self.args[1] if len(self.args) > 1 else self.args[0] if self.args else "")
