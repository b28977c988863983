"""The discrete Lagrangian of a method on a system, and what discrete mechanics says of it.

With the inner values of a step eliminated a member of the family is a function of two positions,

    L_d(q_k, q_{k+1}) = ext Σ_i h b_i L(q(c_i h), q̇(c_i h))      (Ober-Blöbaum and Saake 2014, section 3),

and everything else follows (Marsden and West, *Acta Numerica* 2001):

    p_k = −D₁L_d(q_k, q_{k+1})                      the left discrete Legendre transform
    p_{k+1} = D₂L_d(q_k, q_{k+1})                   the right one
    D₂L_d(q_{k−1}, q_k) + D₁L_d(q_k, q_{k+1}) = 0   the two-point map (q_{k−1}, q_k) ↦ (q_k, q_{k+1})
    Ω = Σ_ij (D₁D₂L_d)_ij dq_k^i ∧ dq_{k+1}^j       the discrete symplectic form, which this map conserves
    J = p · ξ(q)                                    the discrete momentum maps of a symmetry q ↦ q + ε ξ(q)

The exact discrete Lagrangian is the action of the motion between the two positions, and a method has the order r with
|L_d − L_d^exact| = O(h^{r+1}) along motions (their Theorem 2.3.1).

Values are computed by `flint.boundary` from the equations of a Step, with more digits than are asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, cast

import mpmath
import numpy as np
from numpy.typing import ArrayLike, NDArray

from leastaction.analysis.fit import Fit, fit_order
from leastaction.analysis.symmetries import Symmetry
from leastaction.docstrings import described, documented
from leastaction.flint.boundary import Boundary
from leastaction.integrate import integrate
from leastaction.linear import Quadratic
from leastaction.methods import Galerkin, Method, galerkin, require_member
from leastaction.methods import method as method_named
from leastaction.methods.quadrature import gauss
from leastaction.numbers.conversion import ball, balls, mpf, mpfs
from leastaction.numbers.precision import flint_bits
from leastaction.numbers.rounding import Digits, all_finite
from leastaction.printing import table
from leastaction.results.path import Path
from leastaction.run.plan import number
from leastaction.step.form import step_of
from leastaction.systems.lagrangian import Lagrangian
from leastaction.systems.protocol import check_system

SPARE_BITS, SPARE_DIGITS = 60, 18  # of the arithmetic beyond the digits that are asked for
FLOAT_DIGITS = 34  # digits with which float64 values are computed before they are rounded once
ORDER_DIGITS = 60  # digits with which variational orders are measured
BEYOND = 6  # degrees by which a fine member exceeds the order it is to judge
HALVINGS = 5


@documented()
def discrete_lagrangian(
    system: Lagrangian | Quadratic, method: str | Method, h: Any, *, params: Mapping[str, Any] | None = None,
    digits: int | None = None,
) -> DiscreteLagrangian:  # fmt: skip
    """The discrete Lagrangian L_d(q_k, q_{k+1}) of a member at step h, with its derivatives and what follows from
    them.

    Where h is long several motions may join the same two positions. The one that is taken is connected with h → 0: it
    is followed from short uniform motions that begin in q_k with the mean velocity (q_{k+1} − q_k)/h. Where the ends
    become conjugate that motion ends, and an ArithmeticError says so, unless it goes on there beside others, as a
    pendulum at rest does. A step of `la.integrate` keeps its momentum on the way from h → 0, and not its mean
    velocity: it may pass conjugate points, or come from the other side, and then −D₁L_d of its ends is the momentum of
    another motion. Where L is quadratic there is one motion, and that is taken.

    Parameters
    ----------
    system : Lagrangian or Quadratic
        A system without forces and constraints.
    method : str or method
        A member PsNrQu.
    h : number
        The step.
    {params}
    digits : int, optional
        Decimal digits of the values. Without `digits` they are floats, correct to the last bit.

    Raises
    ------
    ValueError
        The method has no discrete Lagrangian, or a force or a constraint acts.

    Examples
    --------
    >>> import numpy as np, leastaction as la
    >>> pendulum = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 + np.cos(q[0]), n=1)
    >>> Ld = la.discrete_lagrangian(pendulum, "simpson", h=0.5)
    >>> q0, q1 = [1.0], [0.9]
    >>> q2 = Ld.next(q0, q1)
    >>> bool(abs(Ld.D2(q0, q1) + Ld.D1(q1, q2)).max() < 1e-15)
    True
    >>> round(Ld.variational_order([1.0], v0=[0.3]).order)
    4
    """
    chosen = method_named(method)
    sums = "L_d of a composition is the sum of those of its steps, stationary in the positions between them"
    member = require_member(chosen, "la.discrete_lagrangian", f"{sums}; other methods are not variational")
    check_system(system)
    if system.linear:
        system, params = _lagrangian_of(cast(Quadratic, system), digits), None
    written_out = cast(Lagrangian, system.expanded())
    if system.m:
        raise ValueError(
            f"{system.name} has constraints. A step between two positions then has multipliers, too, and "
            "la.discrete_lagrangian does not compute them. Take coordinates that satisfy the constraints by themselves"
        )
    if system.forced:
        raise ValueError(
            f"an external force acts on {system.name}, and a force has no action: the steps follow from L_d and from "
            "discrete forces. Leave the force out"
        )
    return DiscreteLagrangian(written_out, member, h, dict(params or {}), digits)


def _lagrangian_of(system: Quadratic, digits: int | None) -> Lagrangian:
    """½ v·Mv − ½ q·Kq as a Lagrangian."""
    if system.C is not None or system.f is not None:
        raise ValueError("a Quadratic system with damping or a load has no action of its own; leave them out")
    M, K, _ = system.exact_matrices(Digits(digits or FLOAT_DIGITS))
    matrices = {"M": M.tolist(), "K": K.tolist()}
    return Lagrangian(lambda q, v, M, K: (v @ M @ v - q @ K @ q) / 2, n=system.n, params=matrices)


@dataclass(frozen=True, eq=False)
class DiscreteLagrangian:
    """L_d of a method on a system at step h: a function of two positions. `la.discrete_lagrangian` makes it.

    ``Ld(q0, q1)`` is its value, ``Ld(q0, q1, t)`` where L depends on time. `la.discrete_lagrangian` says which motion
    is taken where several join the two positions. An ArithmeticError says where no step connects them: they are too far
    apart for h, or h is too long.

    Attributes
    ----------
    system, method, h, params, digits
        What it was made of.
    """

    system: Lagrangian
    method: Galerkin
    h: Any
    params: Mapping[str, Any]
    digits: int | None = None

    def __post_init__(self) -> None:
        if number("h", self.h, self._reals) == 0:
            raise ValueError("h must not be zero")

    @property
    def _reals(self) -> Digits:
        return Digits(self.digits or FLOAT_DIGITS)

    @cached_property
    def _boundary(self) -> Any:
        reals, bits = self._reals, self._reals.bits + SPARE_BITS
        digits = math.ceil(bits * math.log10(2)) + 2
        with flint_bits(bits):
            params = balls(self.system.values(self.params, reals))
            step = step_of(self.system, self.method)
            return Boundary(self.system, step, params, ball(number("h", self.h, reals)), digits, bits)

    def _between(self, q0: ArrayLike, q1: ArrayLike, t: Any) -> dict[str, Any]:
        """Everything that is computed for two positions, as mpmath numbers."""
        left, right, n = self._position("q0", q0), self._position("q1", q1), self.system.n
        boundary = self._boundary
        with flint_bits(self._reals.bits + SPARE_BITS):
            found = boundary.solve(ball(number("t", t, self._reals)), balls(left), balls(right))
            if isinstance(found, float):
                raise ArithmeticError(
                    f"no step of {self.method.name} with h = {float(self._h):g} was found between q0 = {_show(left)} "
                    f"and q1 = {_show(right)}: the motion that begins as the uniform one was followed for "
                    f"{found:.3g} h, and ends there, at conjugate points or a singularity; take positions that are "
                    "nearer to each other, or a shorter h"
                )
            z = mpfs(found.z).reshape(-1, n)
            blocks = {name: mpfs(getattr(found, name).entries()).reshape(n, n) for name in ("D11", "D12", "D22")}
            momenta = {name: mpfs(getattr(found, name)) for name in ("p_left", "p_right")}
            action = mpf(found.action)
        if not all_finite(np.array([action, *momenta["p_left"], *momenta["p_right"]])):
            raise ArithmeticError(
                f"L has no value on the step of {self.method.name} with h = {float(self._h):g} between q0 = "
                f"{_show(left)} and q1 = {_show(right)}: it passes a singularity; take other positions"
            )
        return {"L": action, "inner": z, **momenta, **blocks}

    @property
    def _h(self) -> Any:
        return number("h", self.h, self._reals)

    def _position(self, name: str, value: ArrayLike) -> NDArray[Any]:
        try:
            q = self._reals.array(value)
        except (TypeError, ValueError) as error:
            raise TypeError(f"{name} must be {self.system.n} numbers; got {value!r} ({error})") from None
        if q.shape == () and self.system.n == 1:
            q = q.reshape(1)
        if q.shape != (self.system.n,) or not all_finite(q):
            raise ValueError(f"{name} must be {self.system.n} finite numbers; got {value!r}")
        return q

    def _rounded(self, value: Any) -> Any:
        """The value as the user asked for it: float64, or mpmath numbers of so many digits."""
        if self.digits is None:
            return float(value) if np.ndim(value) == 0 else np.asarray(value).astype(float)
        return self._reals.array(value)[()]

    def __call__(self, q0: ArrayLike, q1: ArrayLike, t: Any = 0) -> Any:
        """L_d(q0, q1)."""
        return self._rounded(self._between(q0, q1, t)["L"])

    @documented("ends")
    def inner(self, q0: ArrayLike, q1: ArrayLike, t: Any = 0) -> NDArray[Any]:
        """q^0 … q^s, (s + 1, n): the positions at the control points of the step, those inside from R_ν = 0."""
        left, z = self._position("q0", q0), self._between(q0, q1, t)["inner"]
        with self._reals.working():
            return self._rounded(np.concatenate([left[None], left + z]))

    @documented("ends")
    def D1(self, q0: ArrayLike, q1: ArrayLike, t: Any = 0) -> NDArray[Any]:
        """D₁L_d = −p_k, shape (n,)."""
        with self._reals.working():
            return self._rounded(-self._between(q0, q1, t)["p_left"])

    @documented("ends")
    def D2(self, q0: ArrayLike, q1: ArrayLike, t: Any = 0) -> NDArray[Any]:
        """D₂L_d = p_{k+1}, shape (n,)."""
        return self._rounded(self._between(q0, q1, t)["p_right"])

    @documented("ends")
    def D11(self, q0: ArrayLike, q1: ArrayLike, t: Any = 0) -> NDArray[Any]:
        """D₁D₁L_d, shape (n, n)."""
        return self._rounded(self._between(q0, q1, t)["D11"])

    @documented("ends")
    def D12(self, q0: ArrayLike, q1: ArrayLike, t: Any = 0) -> NDArray[Any]:
        """D₁D₂L_d, shape (n, n): row i by q0_i, column j by q1_j. It is regular where the method's step is."""
        return self._rounded(self._between(q0, q1, t)["D12"])

    @documented("ends")
    def D22(self, q0: ArrayLike, q1: ArrayLike, t: Any = 0) -> NDArray[Any]:
        """D₂D₂L_d, shape (n, n)."""
        return self._rounded(self._between(q0, q1, t)["D22"])

    @documented("ends")
    def left(self, q0: ArrayLike, q1: ArrayLike, t: Any = 0) -> tuple[NDArray[Any], NDArray[Any]]:
        """The left discrete Legendre transform: (q0, p0) with p0 = −D₁L_d."""
        return self._rounded(self._position("q0", q0)), self._rounded(self._between(q0, q1, t)["p_left"])

    @documented("ends")
    def right(self, q0: ArrayLike, q1: ArrayLike, t: Any = 0) -> tuple[NDArray[Any], NDArray[Any]]:
        """The right discrete Legendre transform: (q1, p1) with p1 = D₂L_d."""
        return self._rounded(self._position("q1", q1)), self.D2(q0, q1, t)

    # The two-point map.

    @documented("ends")
    def next(self, q0: ArrayLike, q1: ArrayLike, t: Any = 0) -> NDArray[Any]:
        """q2, shape (n,), of the two-point map (q0, q1) ↦ (q1, q2).

        D₂L_d(q0, q1) + D₁L_d(q1, q2) = 0 is the step from q1 with the momentum D₂L_d(q0, q1), and is solved as every
        step is. Where h is so long that L_d takes another motion between q1 and the q2 of that step, an ArithmeticError
        says so.
        """
        return self._rounded(self._next(q0, q1, t)[0])

    def _next(self, q0: ArrayLike, q1: ArrayLike, t: Any) -> tuple[NDArray[Any], dict[str, Any], dict[str, Any]]:
        """q2, and what `_between` gives for the first two and for the last two positions."""
        reals, second = self._reals, self._position("q1", q1)
        before = self._between(q0, second, t)
        with reals.working():
            later = number("t", t, reals) + self._h
        last = self._stepped(second, before["p_right"], later, reals.digits + SPARE_DIGITS).q[-1]
        after = self._between(second, last, later)
        with reals.working():
            # What rounding of half the digits of the positions would do to the momentum.
            rounding = (
                abs(after["D12"]).max() * (abs(second).max() + abs(last).max()) * mpmath.mpf(2) ** -(reals.bits // 2)
            )
            if not abs(before["p_right"] - after["p_left"]).max() <= rounding:
                raise ArithmeticError(
                    f"the two-point map found no q2 after q0 = {_show(self._position('q0', q0))} and q1 = "
                    f"{_show(second)}: the step leads to {_show(last)}, where L_d takes another motion; shorten h"
                )
        return last, before, after

    def _stepped(self, q: Any, p: Any, t: Any, digits: int | None) -> Path:
        """One step of `la.integrate`."""
        how = {"h": self.h, "steps": 1, "params": dict(self.params), "digits": digits}
        return integrate(self.system, self.method, q, p, t0=t, **how)

    @documented("ends")
    def agreement(self, q0: ArrayLike, q1: ArrayLike, t: Any = 0) -> float:
        """How far the two-point map is from a step of `la.integrate`, relative: round-off.

        The step of `la.integrate` from the right Legendre transform (q1, p1) leads to (q2, D₂L_d(q1, q2)), and p1 is
        −D₁L_d(q1, q2).
        """
        q2, before, after = self._next(q0, q1, t)
        reals, second = self._reals, self._position("q1", q1)
        with reals.working():
            later = number("t", t, reals) + self._h
        path = self._stepped(second, before["p_right"], later, self.digits)
        with reals.working():
            p1, p2 = before["p_right"], after["p_right"]
            size_q, size_p = abs(second).max() + abs(q2).max(), abs(p1).max() + abs(p2).max()
            missed = max(abs(path.p[-1] - p2).max(), abs(after["p_left"] - p1).max())
            return float(max(abs(path.q[-1] - q2).max() / (size_q or 1), missed / (size_p or 1)))

    # Structure.

    @documented("ends")
    def symplectic_form(self, q0: ArrayLike, q1: ArrayLike, t: Any = 0) -> NDArray[Any]:
        """Ω, (2n, 2n), with Ω(δ, ε) = δᵀ Ω ε on displacements (δq0, δq1): ((0, D₁D₂L_d), (−(D₁D₂L_d)ᵀ, 0))."""
        return self._rounded(_form(self._between(q0, q1, t)["D12"]))

    @documented("ends")
    def symplectic_defect(self, q0: ArrayLike, q1: ArrayLike, t: Any = 0) -> float:
        """‖Φ'ᵀ Ω Φ' − Ω‖ / ‖Ω‖ (Frobenius) of the two-point map Φ: round-off."""
        n, (_, before, after) = self.system.n, self._next(q0, q1, t)
        with self._reals.working():
            inverse = np.array((mpmath.matrix(after["D12"].tolist()) ** -1).tolist(), dtype=object)
            # D₂D₁L_d dq0 + (D₂D₂L_d + D₁D₁L_d) dq1 + D₁D₂L_d dq2 = 0
            rows = -inverse @ np.concatenate([before["D12"].T, before["D22"] + after["D11"]], axis=1)
            slope = np.concatenate([np.eye(2 * n, dtype=int)[n:].astype(object), rows])
            old, new = _form(before["D12"]), _form(after["D12"])
            return float(_norm(slope.T @ new @ slope - old) / _norm(old))

    @documented()
    def momentum_maps(
        self, symmetry: Symmetry | Callable[[NDArray[Any]], ArrayLike], q0: ArrayLike, q1: ArrayLike, t: Any = 0
    ) -> tuple[Any, Any]:
        """J⁻ = −D₁L_d·ξ(q0) and J⁺ = D₂L_d·ξ(q1): equal and conserved where L_d has the symmetry q ↦ q + ε ξ(q).

        Parameters
        ----------
        symmetry : Symmetry or callable
            One of `la.analysis.symmetries`, or a function q ↦ ξ(q).
        {ends}
        """
        found = self._between(q0, q1, t)
        left, right = self._position("q0", q0), self._position("q1", q1)
        with self._reals.working():
            if isinstance(symmetry, Symmetry):
                at = [symmetry.A.astype(object) @ q + symmetry.b for q in (left, right)]
            else:
                at = [self._reals.array(np.asarray(symmetry(q), dtype=object)) for q in (left, right)]
            return self._rounded(found["p_left"] @ at[0]), self._rounded(found["p_right"] @ at[1])

    # The exact discrete Lagrangian.

    def exact(self, degree: int | None = None) -> DiscreteLagrangian:
        """The exact discrete Lagrangian up to O(h^(2·degree + 1)): L_d of the Gauss member of this degree, at the same
        h.

        Parameters
        ----------
        degree : int, optional
            Without `degree`: the order of this method and six more.
        """
        s = self.method.order + BEYOND if degree is None else degree
        return DiscreteLagrangian(self.system, galerkin(s, gauss(s)), self.h, self.params, self.digits)

    def variational_order(
        self, q0: ArrayLike, *, v0: ArrayLike | None = None, p0: ArrayLike | None = None,
        h: Sequence[Any] | None = None, t: Any = 0, digits: int = ORDER_DIGITS,
    ) -> VariationalOrder:  # fmt: skip
        """The order r of |L_d − L_d^exact| = O(h^{r+1}), measured along a motion.

        Begin with a velocity, and not at an apsis: where the motion turns, the odd terms of the error vanish, and a
        method whose rule is not symmetric seems to be of one order more.

        Parameters
        ----------
        q0 : array_like, shape (n,)
            Where the motion begins.
        v0, p0 : array_like, shape (n,), optional
            Its velocity or momentum there.
        h : sequence of numbers, optional
            Steps. Without `h`: h, h/2, … h/32.
        t : number, default 0
            The time at q0.
        digits : int, default 60
            Decimal digits of the arithmetic.
        """
        reals = Digits(digits)
        with reals.working():
            steps = [self._h / 2**k for k in range(HALVINGS + 1)] if h is None else [number("h", x, reals) for x in h]
        steps = sorted(steps, key=lambda x: -abs(x))
        if len(steps) < 2:
            raise ValueError(f"an order needs errors at two steps at least; got {len(steps)}")
        errors = []
        for step in steps:
            own = DiscreteLagrangian(self.system, self.method, step, self.params, digits)
            fine = own.exact()
            how = {"t0": t, "h": step, "steps": 1, "params": dict(self.params), "digits": digits}
            end = integrate(self.system, fine.method, q0, p0, v0=v0, **how).q[-1]
            with reals.working():
                errors.append(float(abs(own(q0, end, t) - fine(q0, end, t))))
        used, e = np.abs(np.array(steps, float)), np.array(errors)
        fit = fit_order(used, e, np.full(len(used), 10.0**-digits * max(e)))
        return VariationalOrder(self.method, used, e, fit)

    def __repr__(self) -> str:
        return f"DiscreteLagrangian({self.system.name}, {self.method.name}, h = {float(self._h):g})"


@described
@dataclass(frozen=True, eq=False)
class VariationalOrder:
    """|L_d − L_d^exact| over h along a motion. `la.analysis.DiscreteLagrangian.variational_order` gives it.

    Examples
    --------
    >>> import leastaction as la
    >>> spring = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 - 0.5 * q[0] ** 2, n=1)
    >>> round(la.discrete_lagrangian(spring, "midpoint", h=0.5).variational_order([1.0], v0=[0.3]).order)
    2
    """

    method: Galerkin
    h: Annotated[NDArray[np.float64], "shape (K,)", "Steps."]
    error: Annotated[NDArray[np.float64], "shape (K,)", "Errors."]
    fit: Annotated[Fit, "How the slope was fitted."]

    @property
    def order(self) -> float:
        """The fitted slope, less one."""
        return self.fit.order - 1

    def __repr__(self) -> str:
        parts = zip(self.h, self.error, self.fit.slopes, strict=True)
        rows = [[f"{h:.6g}", f"{e:.3e}", "" if np.isnan(s) else f"{s - 1:.3f}"] for h, e, s in parts]
        return f"{self.method.name}: variational order {self.order:.3f}, min(2s, u) = {self.method.order}\n" + table(
            ["h", "|L_d − exact|", "order"], rows, 0
        )


def _form(D12: NDArray[Any]) -> NDArray[Any]:
    none = np.zeros(D12.shape, dtype=int).astype(object)
    return np.block([[none, D12], [-D12.T, none]])


def _norm(A: NDArray[Any]) -> Any:
    return mpmath.sqrt(mpmath.fsum(x * x for x in A.ravel()))


def _show(values: NDArray[Any]) -> str:
    return "[" + ", ".join(mpmath.nstr(x, 6) for x in values) + "]"
