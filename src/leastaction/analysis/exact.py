"""From python-flint's exact polynomials to SymPy's expressions, and back to floats with a guarantee."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from flint import ctx, fmpq, fmpq_poly

from leastaction.oscillator import Rational

if TYPE_CHECKING:
    import sympy

BITS = 256  # of the enclosures of roots: they are far narrower than the spacing of floats


def in_x(polynomial: Any, x: sympy.Symbol) -> sympy.Expr:
    """A polynomial in x², as a SymPy expression in x."""
    import sympy

    return sympy.Add(*(sympy.Rational(int(a.p), int(a.q)) * x ** (2 * k) for k, a in enumerate(polynomial.coeffs())))


def quotient(f: Rational, x: sympy.Symbol) -> sympy.Expr:
    """numerator / denominator in x, with whole coefficients."""
    import sympy

    return sympy.cancel(in_x(f.numerator, x) / in_x(f.denominator, x))


@dataclass(frozen=True)
class Root:
    """A positive x with f(x²) = 0 for an irreducible polynomial f, enclosed: `x2` is the ball that holds x²."""

    polynomial: Any
    x2: Any
    order: int  # as a zero (positive) or a pole (negative)

    def __float__(self) -> float:
        """The float nearest to x: the enclosure decides it."""
        with ctx.workprec(BITS):
            root = self.x2.sqrt()
            lower, upper = float(root.lower()), float(root.upper())
        return (lower + upper) / 2

    def exact(self) -> sympy.Expr:
        """x in radicals where the polynomial has degree two at most in x², else as a root by number."""
        import sympy

        w = sympy.Symbol("w")
        poly = sympy.Poly([sympy.Rational(int(a.p), int(a.q)) for a in reversed(self.polynomial.coeffs())], w)
        if poly.degree() <= 2:
            candidates = [sympy.sqrt(root) for root in sympy.roots(poly)]
            return sympy.sqrtdenest(min(candidates, key=lambda root: abs(float(root) - float(self))))
        x = sympy.Symbol("x")
        even = sympy.Poly(poly.as_expr().subs(w, x**2), x)
        reals = [root for factor, _ in even.factor_list()[1] for root in factor.real_roots()]
        return min(reals, key=lambda root: abs(float(root.evalf(30)) - float(self)))


def positive_roots(f: Rational) -> list[Root]:
    """Every zero and pole of f at x² > 0, in ascending order; complete, by isolation of all complex roots."""
    found = []
    with ctx.workprec(BITS):
        for polynomial, sign in ((f.numerator, 1), (f.denominator, -1)):
            for factor, multiplicity in polynomial.factor()[1]:
                irreducible = fmpq_poly(factor.coeffs())
                roots: Any = irreducible.complex_roots()
                for root, _ in roots:
                    if root.imag == 0 and root.real > 0:
                        found.append(Root(irreducible, root.real, sign * multiplicity))
        found.sort(key=lambda root: float(root.x2.mid()))
        for low, high in pairwise(found):
            if not low.x2 < high.x2:
                raise ArithmeticError(f"two roots near x² = {low.x2} could not be told apart with {BITS} bits")
    return found


def value(f: Rational, x: float) -> Fraction | None:
    """f(x²) for this float x, exactly; None at a pole."""
    ratio = float(x).as_integer_ratio()
    x2 = fmpq(*ratio) ** 2
    bottom = f.denominator(x2)
    if bottom == 0:
        return None
    exact = f.numerator(x2) / bottom
    return Fraction(int(exact.p), int(exact.q))
