"""The classical Runge–Kutta method of order four: the baseline that is not symplectic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial, reduce
from operator import add
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from leastaction.methods.linear_form import LinearForm, of_stages
from leastaction.methods.protocol import Method
from leastaction.numbers.precision import mpmath_digits
from leastaction.numbers.rounding import to_mpf

if TYPE_CHECKING:
    from leastaction.methods.oscillator import OscillatorStep

Form = Literal["hamilton", "lagrange"]
Row = tuple[Fraction, ...]
T = TypeVar("T", bound=Any)

_HALF = Fraction(1, 2)


@dataclass(frozen=True)
class RungeKutta4(Method):
    """The classical Runge–Kutta method, on Hamilton's equations or on Lagrange's. `la.rk4` makes it.

    On (q, p): q̇ = v(q, p), ṗ = ∂L/∂q(q, v). On (q, v): q̇ = v, v̇ = L_vv⁻¹ (L_q − L_vq v − L_vt). The two forms
    differ where the mass depends on q, and the papers use both. The tableau of both is::

          0  |                        k_i = f(t + c_i h, y + h Σ_{j<i} a_ij k_j)
         1/2 | 1/2                    y⁺ = y + h Σ_i b_i k_i
         1/2 |  0   1/2
          1  |  0    0    1
        -----+--------------------
             | 1/6  1/3  1/3  1/6

    Attributes
    ----------
    form : {"hamilton", "lagrange"}
        On which equations.
    name : str
        "rk4" or "rk4-lagrange".
    order : int
        4.

    Examples
    --------
    >>> import leastaction as la
    >>> la.method("rk4").form
    'hamilton'
    """

    form: Form = "hamilton"

    c: ClassVar[Row] = (Fraction(0), _HALF, _HALF, Fraction(1))
    a: ClassVar[tuple[Row, ...]] = ((), (_HALF,), (Fraction(0), _HALF), (Fraction(0), Fraction(0), Fraction(1)))
    b: ClassVar[Row] = (Fraction(1, 6), Fraction(1, 3), Fraction(1, 3), Fraction(1, 6))

    @property
    def name(self) -> str:
        return "rk4" if self.form == "hamilton" else "rk4-lagrange"

    @property
    def text(self) -> str:
        """The text from which `la.method` makes the method again."""
        return self.name

    @property
    def order(self) -> int:
        return 4

    @property
    def symmetric(self) -> bool:
        return False

    @property
    def citations(self) -> tuple[str, ...]:
        return ("kutta1901",)

    def linear_form(self, digits: int | None = None) -> LinearForm:
        return _linear_form(digits)

    def on_oscillator(self) -> OscillatorStep:
        from leastaction.methods.oscillator import of_truncated_rotation

        return of_truncated_rotation(4)

    @property
    def nodes(self) -> NDArray[np.float64]:
        return np.array(self.c, float)

    def weights(self, times: Callable[[Fraction], T]) -> list[list[tuple[int, T]]]:
        """Of each row of a, and of b, the entries (j, times(a_ij)) that are not zero."""
        return [[(j, times(a)) for j, a in enumerate(row) if a] for row in (*self.a, self.b)]

    def __repr__(self) -> str:
        return f"rk4(form={self.form!r})"


@cache
def _linear_form(digits: int | None) -> LinearForm:
    if digits is None:
        return _linear_form(17).in_floats()
    with mpmath_digits(digits):
        rows = [[*row, *[Fraction(0)] * (4 - len(row))] for row in RungeKutta4.a]
        number = np.frompyfunc(to_mpf, 1, 1)
        return of_stages(number(RungeKutta4.c), number(rows), number(RungeKutta4.b))


def increments(
    weights: list[list[tuple[int, T]]], y: list[T], slope: Callable[[int, list[T]], list[T] | None]
) -> list[T] | None:
    """y⁺ − y, in any arithmetic, with weights h a_ij and h b_j of k_j. `slope(i, y_i)` gives k_i; None where there is
    none.
    """
    known: list[list[T]] = []
    moves: list[T] = []
    for i, row in enumerate(weights):
        of: list[Any] = [[x * weight for x in known[j]] for j, weight in row]
        moves = [*reduce(partial(map, add), of)] if of else []
        if i < len(weights) - 1:
            k = slope(i, [*map(add, y, moves)] if moves else y)
            if k is None:
                return None
            known.append(k)
    return moves


def rk4(form: Form = "hamilton") -> RungeKutta4:
    """The classical Runge–Kutta method of order four. It is not symplectic: it is there to compare with.

    Parameters
    ----------
    form : {"hamilton", "lagrange"}, default "hamilton"
        On which equations: those of (q, p) or those of (q, v). The forms differ where the mass depends on q.

    Examples
    --------
    >>> import leastaction as la
    >>> la.rk4("lagrange"), la.rk4().order
    (rk4(form='lagrange'), 4)
    """
    if form not in get_args(Form):
        raise ValueError(f"form must be 'hamilton' or 'lagrange'; got {form!r}")
    return RungeKutta4(form)
