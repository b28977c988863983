"""Lyapunov exponents: the growth rates of small differences, from the tangent map, by QR.

With D the derivative of the run, D Q_k = Q_{k+1} R_{k+1} after every few steps, the exponents are

    λ_i = lim (1/t) Σ_k log |R_k,ii|

(Benettin, Galgani, Giorgilli and Strelcyn, Meccanica 15, 1980). The tangent map of a symplectic step is symplectic, so
the exponents come in pairs ±λ: how exactly the computed ones do so is a check. Where m constraints hold there are
2(n − m) exponents, those of the directions tangent to the manifold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from leastaction.analysis import figures
from leastaction.docstrings import documented
from leastaction.engine.stepper import FormStepper
from leastaction.integrate import integrate
from leastaction.methods import Method
from leastaction.numbers.arrays import FloatArray
from leastaction.run.plan import positive
from leastaction.step.stepper import Start
from leastaction.step.stored_row import Row
from leastaction.systems.lagrangian import Lagrangian
from leastaction.systems.projection import tangent_basis
from leastaction.systems.protocol import require_lagrangian

MOST_GROWTH = 30.0  # of a column between two QR steps: the smallest exponent loses this factor squared in round-off


@dataclass(frozen=True, eq=False)
class Lyapunov(figures.Drawn, picture=figures.draw_lyapunov):
    """Lyapunov exponents, largest first, and how they settled. `la.analysis.lyapunov` gives it.

    `plot` draws the estimates over time.

    Attributes
    ----------
    t, history : ndarray, shape (K,) and (K, 2n)
        Times, and the estimates until then.
    """

    system: Lagrangian
    method: Method
    exponents: Annotated[FloatArray, "shape (2n,)", "Per unit of time. With m constraints there are 2(n − m)."]
    t: FloatArray
    history: FloatArray

    @property
    def largest(self) -> float:
        """The largest exponent."""
        return float(self.exponents[0])

    @property
    def pairing(self) -> float:
        """max |λ_i + λ_{2n+1−i}|: zero for a symplectic step and exact arithmetic."""
        return float(np.abs(self.exponents + self.exponents[::-1]).max())

    @property
    def spread(self) -> float:
        """How far the largest exponent still moved over the second half of the run."""
        late = self.history[len(self.history) // 2 :, 0]
        return float(np.ptp(late))

    def __repr__(self) -> str:
        values = ", ".join(f"{x:.5g}" for x in self.exponents)
        pairs = f"pairs sum to zero to {self.pairing:.1e}"
        if self.system.forced:
            pairs = f"their sum, the rate at which the force changes volumes, is {self.exponents.sum():.5g}"
        return (
            f"Lyapunov exponents of {self.system.name} by {self.method.name} over t = {self.t[-1]:g}: {values}\n"
            f"(the largest moved by {self.spread:.2g} over the second half; {pairs})"
        )


@documented()
def lyapunov(
    system: Lagrangian,
    method: str | Method,
    q0: ArrayLike,
    p0: ArrayLike | None = None,
    *,
    v0: ArrayLike | None = None,
    h: float,
    steps: int,
    discard: int = 0,
    params: Mapping[str, Any] | None = None,
) -> Lyapunov:
    """All Lyapunov exponents of a motion, by its tangent map and QR factorisations.

    Parameters
    ----------
    system : Lagrangian
        What moves.
    {method, start, h}
    steps : int
        How many steps to do.
    discard : int, default 0
        Steps at the beginning that turn the directions and do not count.
    {params}

    Raises
    ------
    StepFailed
        A step cannot be solved.

    Examples
    --------
    >>> import leastaction as la
    >>> henon_heiles = la.problems.get("henon-heiles").system
    >>> found = la.analysis.lyapunov(henon_heiles, "P3N3Q6Gau", [0.0, -0.1], [0.559, 0.1], h=0.1, steps=5000)
    >>> found.exponents.shape, found.largest > 0.02
    ((4,), True)
    """
    require_lagrangian(system, "lyapunov", "A linear system's exponents are log |λ| / h of its step")
    positive("steps", steps)
    if not 0 <= discard < steps:
        raise ValueError(f"discard must be at least 0 and below steps = {steps}; got {discard!r}")
    first = integrate(system, method, q0, p0, v0=v0, h=h, steps=1, params=params)  # checks everything given
    values = system.values(params)
    q, p = first.q[0], first.p[0]
    start = Start(0.0, q, p, system.velocity(q, p, 0.0, values), first.h, values)
    n, piece, done = system.n, 1, 0
    solver = system.stepper(first.method, start, Row.whole(n, varied=2 * n))
    assert isinstance(solver, FormStepper)
    nothing = np.zeros((1, 0, 0))
    Q = tangent_basis(system, 0.0, q, p, values)
    directions = Q.shape[1]
    total = np.zeros(directions)
    times, history = [], []
    while done < steps:
        target = discard if done < discard else steps
        count = min(piece, target - done)
        D = solver.D
        D[:directions] = Q.T
        solver.D = D
        made = solver.advance(count, 0, 0, nothing)
        if solver.failure() is not None:
            # `integrate` meets the same failure and explains it.
            integrate(system, method, q0, p0, v0=v0, h=h, steps=steps, params=params, every=steps)
            raise ArithmeticError(f"the step at t = {(done + made) * h:g} could not be solved")
        Q, R = np.linalg.qr(solver.D[:directions].T)
        growth = np.abs(np.diag(R))
        if not (np.isfinite(growth).all() and (growth > 0).all()):
            raise ArithmeticError(
                f"the tangent map lost rank near t = {done * h:g}: differences grow too fast for h = {h:g}"
            )
        done += count
        if done > discard:
            total += np.log(growth)
            times.append((done - discard) * h)
            history.append(total / times[-1])
        # A piece is as long as the columns stay independent.
        most = max(growth.max(), 1 / growth.min())
        piece = max(1, min(64, count * 2 if most < MOST_GROWTH**0.5 else count // 2 if most > MOST_GROWTH else count))
    order = np.argsort(total)[::-1]
    kept = np.array(history)[:, order]
    return Lyapunov(system, first.method, kept[-1], np.array(times), kept)
