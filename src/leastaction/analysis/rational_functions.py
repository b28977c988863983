"""From python-flint's exact polynomials and roots to SymPy's expressions."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from flint import fmpq, fmpq_poly, fmpq_series

from leastaction.methods.oscillator import Rational, Root
from leastaction.numbers.precision import flint_terms

if TYPE_CHECKING:
    import sympy

# RK4's step on the oscillator: the exponential series of a rotation, cut after x⁴.
ONE = Rational(fmpq_poly([1]), fmpq_poly([1]))
TRUNCATED_SINE = Rational(fmpq_poly([1, fmpq(-1, 6)]), fmpq_poly([1]))  # sin θ / x, in powers of x²
TRUNCATED_COSINE = Rational(fmpq_poly([1, fmpq(-1, 2), fmpq(1, 24)]), fmpq_poly([1]))


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
    return _at(f, fmpq(*float(x).as_integer_ratio()) ** 2)


def value_at_root(f: Rational, root: Root) -> Fraction | None:
    """f at the middle of the root's enclosure, exactly; None at a pole."""
    mantissa, exponent = root.x2.mid().man_exp()
    return _at(f, fmpq(int(mantissa)) * fmpq(2) ** int(exponent))


def _at(f: Rational, x2: Any) -> Fraction | None:
    bottom = f.denominator(x2)
    if bottom == 0:
        return None
    exact = f.numerator(x2) / bottom
    return Fraction(int(exact.p), int(exact.q))


def series(f: Rational, count: int) -> list[Any]:
    """The first coefficients of f in powers of x²."""
    with flint_terms(count):
        return _coefficients(_series(f), count)


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
        return _coefficients(total, count)


def to_sympy(a: Any) -> sympy.Rational:
    import sympy

    return sympy.Rational(int(a.p), int(a.q))


def _series(f: Rational) -> Any:
    return fmpq_series(f.numerator.coeffs()) / fmpq_series(f.denominator.coeffs())


def _coefficients(found: Any, count: int) -> list[Any]:
    return [found[k] for k in range(count)]
