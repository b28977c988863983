"""From python-flint's exact polynomials and roots to SymPy's expressions."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from flint import fmpq, fmpq_series

from leastaction.methods.oscillator import Rational, Root
from leastaction.numbers.precision import flint_terms

if TYPE_CHECKING:
    import sympy


def in_x(polynomial: Any, x: sympy.Symbol) -> sympy.Expr:
    """A polynomial in x², as a SymPy expression in x."""
    import sympy

    return sympy.Add(*(to_sympy(a) * x ** (2 * k) for k, a in enumerate(polynomial.coeffs())))


def quotient(f: Rational, x: sympy.Symbol) -> sympy.Expr:
    """numerator / denominator in x, with whole coefficients."""
    import sympy

    return sympy.cancel(in_x(f.numerator, x) / in_x(f.denominator, x))


def algebraic(root: Root) -> sympy.Expr:
    """The root x in radicals where its polynomial has degree two at most in x², else as a root by number."""
    import sympy

    w = sympy.Symbol("w")
    poly = sympy.Poly([to_sympy(a) for a in reversed(root.polynomial.coeffs())], w)
    if poly.degree() <= 2:
        candidates = [sympy.sqrt(x2) for x2 in sympy.roots(poly)]
        return sympy.sqrtdenest(min(candidates, key=lambda x: abs(float(x) - float(root))))
    x = sympy.Symbol("x")
    even = sympy.Poly(poly.as_expr().subs(w, x**2), x)
    reals = [real for factor, _ in even.factor_list()[1] for real in factor.real_roots()]
    return min(reals, key=lambda real: abs(float(real.evalf(30)) - float(root)))


def value(f: Rational, x: float) -> Fraction | None:
    """f(x²) for this float x, exactly; None at a pole."""
    return value_at(f, fmpq(*float(x).as_integer_ratio()) ** 2)


def middle(root: Root) -> Any:
    """The middle of the enclosure of x²."""
    mantissa, exponent = root.x2.mid().man_exp()
    return fmpq(int(mantissa)) * fmpq(2) ** int(exponent)


def value_at(f: Rational, x2: Any) -> Fraction | None:
    """f at this rational x², exactly; None at a pole."""
    bottom = f.denominator(x2)
    if bottom == 0:
        return None
    exact = f.numerator(x2) / bottom
    return Fraction(int(exact.p), int(exact.q))


def series(f: Rational, count: int) -> list[Any]:
    """The first coefficients of f in powers of x²."""
    with flint_terms(count):
        found = _series(f)
        return [found[k] for k in range(count)]


def phase_series(sine_by_x: Rational, cosine: Rational, rho: Rational, count: int) -> list[Any]:
    """Coefficients of θ/x in powers of x², where sin θ = x sine_by_x √ρ: with tan θ = x T(x²),

    θ/x = Σ_k (−1)^k x^{2k} T^{2k+1} / (2k + 1).
    """
    with flint_terms(count):
        T: Any = _series(sine_by_x) * _series(rho).sqrt() / _series(cosine)
        total, power = T * 0, T
        for k in range(count):
            total = total + power * fmpq(1, 2 * k + 1)
            power = -power * fmpq_series([0, 1]) * T * T
        return [total[k] for k in range(count)]


def to_sympy(a: Any) -> sympy.Rational:
    import sympy

    return sympy.Rational(int(a.p), int(a.q))


def _series(f: Rational) -> Any:
    return fmpq_series(f.numerator.coeffs()) / fmpq_series(f.denominator.coeffs())
