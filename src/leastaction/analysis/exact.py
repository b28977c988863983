"""From python-flint's exact polynomials and roots to SymPy's expressions."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from flint import fmpq

from leastaction.oscillator import Rational, Root

if TYPE_CHECKING:
    import sympy


def in_x(polynomial: Any, x: sympy.Symbol) -> sympy.Expr:
    """A polynomial in x², as a SymPy expression in x."""
    import sympy

    return sympy.Add(*(sympy.Rational(int(a.p), int(a.q)) * x ** (2 * k) for k, a in enumerate(polynomial.coeffs())))


def quotient(f: Rational, x: sympy.Symbol) -> sympy.Expr:
    """numerator / denominator in x, with whole coefficients."""
    import sympy

    return sympy.cancel(in_x(f.numerator, x) / in_x(f.denominator, x))


def algebraic(root: Root) -> sympy.Expr:
    """The root x in radicals where its polynomial has degree two at most in x², else as a root by number."""
    import sympy

    w = sympy.Symbol("w")
    poly = sympy.Poly([sympy.Rational(int(a.p), int(a.q)) for a in reversed(root.polynomial.coeffs())], w)
    if poly.degree() <= 2:
        candidates = [sympy.sqrt(x2) for x2 in sympy.roots(poly)]
        return sympy.sqrtdenest(min(candidates, key=lambda x: abs(float(x) - float(root))))
    x = sympy.Symbol("x")
    even = sympy.Poly(poly.as_expr().subs(w, x**2), x)
    reals = [real for factor, _ in even.factor_list()[1] for real in factor.real_roots()]
    return min(reals, key=lambda real: abs(float(real.evalf(30)) - float(root)))


def value(f: Rational, x: float) -> Fraction | None:
    """f(x²) for this float x, exactly; None at a pole."""
    ratio = float(x).as_integer_ratio()
    x2 = fmpq(*ratio) ** 2
    bottom = f.denominator(x2)
    if bottom == 0:
        return None
    exact = f.numerator(x2) / bottom
    return Fraction(int(exact.p), int(exact.q))
