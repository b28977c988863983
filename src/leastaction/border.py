"""The border: what a user hands over, checked, and completed to what a run starts from."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leastaction.backends.stepper import Start
from leastaction.errors import DegenerateLagrangianError
from leastaction.linear import Quadratic
from leastaction.numbers.rounding import FLOAT64, Reals, all_finite
from leastaction.running import positive

FloatArray = NDArray[np.float64]

MOST_STEPS = 2**53  # so many float64 numbers and the native loops can count


def number(name: str, value: Any, arithmetic: Reals = FLOAT64) -> Any:
    try:
        array = arithmetic.array(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be a number; got {value!r} ({error})") from None
    if array.shape != ():
        raise TypeError(f"{name} must be one number; got {value!r}")
    if not all_finite(array):
        raise ValueError(f"{name} must be finite; got {value!r}")
    return array.item()


def count_steps(h: Any, steps: int | None, t_end: Any, t0: Any) -> tuple[int, Any]:
    """The number of steps and the step, from either way of saying how long."""
    if h == 0:
        raise ValueError("h must not be zero; a negative h goes backward in time")
    if steps is None and t_end is None:
        raise ValueError("say how long: give steps= or t_end=")
    if steps is not None and t_end is not None:
        raise ValueError("say how long: give either steps= or t_end=, not both")
    if steps is not None:
        check_count(positive("steps", steps))
        return int(steps), h
    length = t_end - t0
    if length == 0:
        raise ValueError(f"t_end must differ from the start, t0 = {float(t0):g}")
    if (length > 0) != (h > 0):
        raise ValueError(
            f"h = {float(h):g} leads away from t_end = {float(t_end):g} (the run starts at t0 = {float(t0):g}); "
            f"give h = {float(-h):g}"
        )
    ratio = float(length / h)
    check_count(ratio)
    nearest = round(ratio)
    # A hair above a whole number is that number: h need not be representable. Never a whole step of 10⁹ and more.
    count = max(1, nearest if ratio - nearest <= 1e-9 * ratio else math.ceil(ratio))
    return count, length / count


def check_count(count: float) -> None:
    """Refuse more steps than a run can count."""
    if count > MOST_STEPS:
        raise ValueError("a run of more than 2⁵³ ≈ 9·10¹⁵ steps is too long to be counted; take fewer, or a larger h")


def check_times(system: Any, t0: Any, h: Any, count: int) -> None:
    """Refuse times that rounding does not tell apart where they matter; elsewhere warn, since the states are right."""
    farthest = max(t0, t0 + count * h, key=abs)
    if farthest + h != farthest and farthest - h != farthest:
        return
    lost = f"the step h = {float(h):g} is lost in the rounding of t = {float(farthest):g}"
    if system.depends_on_time:
        raise ValueError(f"{lost}, and {system.name} depends on t: measure time from nearer by, or run with digits=")
    warnings.warn(f"{lost}: the states are right, their times are not told apart", RuntimeWarning, stacklevel=3)


def vector(name: str, value: Any, n: int, arithmetic: Reals = FLOAT64) -> NDArray[Any]:
    try:
        array = arithmetic.array(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be {n} numbers; got {value!r} ({error})") from None
    if array.shape == () and n == 1:
        array = array.reshape(1)
    if array.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), one entry per degree of freedom; got shape {array.shape}")
    if not all_finite(array):
        raise ValueError(f"{name} must be finite; got {array}")
    return array


def _either(p0: Any, v0: Any) -> None:
    if p0 is None and v0 is None:
        raise ValueError("the start lacks its momenta or velocities: give p0= or v0=")
    if p0 is not None and v0 is not None:
        raise ValueError("give either p0= (momenta) or v0= (velocities), not both")


def start(
    system: Any,
    q0: Any,
    p0: Any,
    v0: Any,
    t0: Any,
    h: Any,
    values: NDArray[Any],
    arithmetic: Reals = FLOAT64,
) -> Start:
    """Initial data, checked and completed; `system` is a Lagrangian, or its Mechanics at another precision."""
    _either(p0, v0)
    q = vector("q0", q0, system.n, arithmetic)
    if v0 is not None:
        v = vector("v0", v0, system.n, arithmetic)
        system.check_regular(q, v, t0, values)
        p = system.momentum(q, v, t0, values)
    else:
        p = vector("p0", p0, system.n, arithmetic)
        try:
            v = system.velocity(q, p, t0, values)
        except DegenerateLagrangianError:
            system.check_regular(q, arithmetic.array(np.zeros(system.n)), t0, values)
            raise
        system.check_regular(q, v, t0, values)
    if not all_finite(p):
        raise ValueError(f"the momentum is not finite at the start, q = {q}, v = {v}: p = {p}")
    if not all_finite(np.array(system.energy(q, p, t0, values))):
        raise ValueError(f"L is not finite at the start, q = {q}, v = {v}: the motion begins outside its domain")
    a = system.acceleration(q, v, t0, values)
    if not all_finite(a):
        raise ValueError(f"the acceleration is not finite at the start, q = {q}, v = {v}: {a}")
    return Start(t0, q, p, v, h, values)


def phase_point(
    system: Quadratic, q0: ArrayLike, p0: ArrayLike | None, v0: ArrayLike | None
) -> tuple[FloatArray, FloatArray]:
    """Initial (q, p) of a linear system, checked."""
    _either(p0, v0)
    q = vector("q0", q0, system.n)
    return q, vector("p0", p0, system.n) if v0 is None else system.momentum(q, vector("v0", v0, system.n))
