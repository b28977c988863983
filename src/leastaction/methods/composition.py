"""Compositions: steps of one method, of lengths γ_1 h, …, γ_m h, one after the other.

    Ψ_h = Φ_{γ_m h} ∘ … ∘ Φ_{γ_1 h},      Σ_j γ_j = 1.

Ψ_h is symplectic since Φ_h is, and is symmetric if Φ_h is symmetric and the factors read the same backward. Some
factors are negative where the order is above two (Sheng 1989, Suzuki 1991).

The order is computed. Let Φ_h = exp(h X_1 + h^{p+1} X_{p+1} + …); if Φ_h is symmetric and of order p, the X_i are X_1,
X_{p+1}, X_{p+3}, …. The composition is the product of exp(Σ_i γ_j^i h^i X_i), a series of words in the X_i. It has the
order r if all words up to the degree r have the coefficients of exp(h X_1) (Hairer, Lubich and Wanner, *Geometric
Numerical Integration*, III.3 and V.3). The order found in this way is exact for methods without further relations
between the X_i.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import mpmath
import numpy as np

from leastaction.docstrings import documented
from leastaction.methods.galerkin import Galerkin, require_member
from leastaction.methods.protocol import Branch, Method
from leastaction.numbers.notation import exact, to_text
from leastaction.numbers.precision import mpmath_digits
from leastaction.numbers.rounding import to_mpf

if TYPE_CHECKING:
    from leastaction.methods.oscillator import OscillatorStep

Word = tuple[int, ...]
Series = dict[Word, Any]

DIGITS = 50  # digits with which orders are found
ROUNDED = 1e-13  # by which coefficients of factors given as floats may be off
HIGHEST = 12  # up to this degree words are looked at
MOST_FACTORS = 250

# Solutions of the equations below to some digits, the first half of the factors: of Yoshida (Physics Letters A 150,
# 1990, solutions A and D), and of Suzuki and Umeno (1993), which is shorter.
_SEEDS = {
    "yoshida6": ("0.78451361047755726382", "0.23557321335935813368", "-1.17767998417887100695"),
    "yoshida8": (
        "0.91484424622974", "0.253693336566229", "-1.44485223686048", "-0.158240635368243", "1.93813913762276",
        "-1.96061023297549", "0.102799849391985",
    ),
    "suzuki8": (
        "0.74167036435061295345", "-0.40910082580003159400", "0.19075471029623837995", "-0.57386247111608226666",
        "0.29906418130365592384", "0.33462491824529818378", "0.31529309239676659663",
    ),
}  # fmt: skip
_SIX: tuple[Word, ...] = ((3,), (5,), (1, 1, 3))
_EIGHT: tuple[Word, ...] = (*_SIX, (7,), (1, 1, 5), (1, 3, 3), (1, 1, 1, 1, 3))
_SOURCES = {
    **dict.fromkeys(("yoshida", "yoshida6", "yoshida8"), "yoshida1990"),
    "suzuki": "suzuki1990",
    "suzuki8": "suzuki1993",
}
KNOWN = {
    "yoshida": "three factors 1/(2 − 2^{1/(p+1)}): the order p of a symmetric method grows by two",
    "suzuki": "five factors 1/(4 − 4^{1/(p+1)}), shorter than a step each: the same",
    "yoshida6": "seven factors: order six from a symmetric method of order two",
    "yoshida8": "fifteen factors: order eight from a symmetric method of order two",
    "suzuki8": "the same, of Suzuki and Umeno: shorter factors, and smaller errors",
}


@documented()
@dataclass(frozen=True)
class Composition(Method):
    """Steps of one method, of lengths γ_j h, one after the other. `la.compose` makes it.

    Attributes
    ----------
    base : method
        The method whose steps are done.
    {method_facts}
    count : int
        How many steps of the innermost method one step is.

    Methods
    -------
    factors
    """

    base: Method
    given: tuple[Any, ...] = ()
    known: str = ""
    floats: bool = field(default=False, compare=False)

    @property
    def symplectic(self) -> bool:
        return self.base.symplectic

    @property
    def root(self) -> Galerkin:
        return require_member(self.base.root, "a composition")

    @documented("digits_correct")
    def factors(self, digits: int = 17) -> tuple[Any, ...]:
        """All γ_j of steps of the innermost method."""
        return _factors(self, digits)

    @property
    def count(self) -> int:
        own = {"yoshida": 3, "suzuki": 5}.get(self.known) or 2 * len(_SEEDS.get(self.known, ())) + 1
        return (own if self.known else len(self.given)) * len(self.base.factors(15))

    @property
    def name(self) -> str:
        if self.known:
            return f"{self.known}({self.base.name})"
        return f"compose({self.base.name}; {', '.join(map(_short, self.given))})"

    @property
    def text(self) -> str:
        if self.known:
            return f"{self.known}({self.base.text})"
        numbers = ", ".join(map(to_text, self.given))
        return f"compose({self.base.text}; {numbers}{'; floats' if self.floats else ''})"

    @property
    def branch(self) -> Branch:
        return self.root.branch

    @cached_property
    def symmetric(self) -> bool:
        gamma = self.factors(DIGITS)
        near = ROUNDED if self._rounded else 10.0**-DIGITS
        return self.root.symmetric and all(abs(a - b) <= near for a, b in zip(gamma, gamma[::-1], strict=True))

    @property
    def _rounded(self) -> bool:
        return self.floats or bool(getattr(self.base, "_rounded", False))

    @cached_property
    def order(self) -> int:
        if self.known in _SEEDS:
            return 6 if len(_SEEDS[self.known]) == len(_SIX) else 8
        return self.base.order + 2 if self.known else self.found_order()

    def found_order(self) -> int:
        """The degree up to which all words have the coefficients of the exact motion."""
        letters = (1, *range(self.root.order + 1, HIGHEST + 1, 2 if self.root.symmetric else 1))  # degrees i of the X_i
        with mpmath_digits(DIGITS + 20):
            found = _product(self.factors(DIGITS), letters, HIGHEST)
            near = ROUNDED if self._rounded else mpmath.mpf(10) ** -DIGITS
            wanted = {word: mpmath.mpf(set(word) <= {1}) / math.factorial(len(word)) for word in found}  # of exp(X_1)
            wrong = [sum(word) for word, value in found.items() if abs(value - wanted[word]) > near]
        return min(wrong, default=HIGHEST + 1) - 1

    @property
    def citations(self) -> tuple[str, ...]:
        return *self.base.citations, _SOURCES.get(self.known, "hairer2006")

    def on_oscillator(self) -> OscillatorStep:
        from leastaction.methods.oscillator import of_composition

        return of_composition(self)

    def __repr__(self) -> str:
        return self.name


def compose(method: Any, factors: str | Sequence[Any]) -> Composition:
    """Do steps of a method of lengths γ_1 h, …, γ_m h, one after the other, as one step. The order is found from γ.

    Parameters
    ----------
    method : str or method
        A member PsNrQu, or a composition.
    factors : str or sequence of numbers
        Numbers γ_j that sum to one, exact or floats. Or a name: "yoshida" (the triple jump) and "suzuki" (five steps)
        raise the order of a symmetric method by two; "yoshida6", "yoshida8" and "suzuki8" are for methods of order
        two.

    Examples
    --------
    >>> import leastaction as la
    >>> la.compose("verlet", "yoshida"), la.compose("verlet", "yoshida").order
    (yoshida(P1N2Q2Lob), 4)
    >>> la.compose("simpson", ["1/2", "1/2"]).order
    4
    """
    from leastaction.methods.registry import method as named

    base = named(method)
    if isinstance(factors, str):
        return _known(base, factors)
    if not hasattr(factors, "__len__"):
        raise TypeError(f"factors are a list of numbers, or one of {', '.join(KNOWN)}; got {factors!r}")
    try:
        given = tuple(exact(x) for x in factors)
    except (TypeError, ValueError) as error:
        raise type(error)(f"the factors of a composition: {error}") from None
    return made_of(base, given, any(isinstance(x, float | np.floating) for x in factors))


def made_of(base: Method, given: tuple[Any, ...], floats: bool) -> Composition:
    """The composition with these factors, checked."""
    made = Composition(base, given, "", floats)
    _check(made)
    if not given or any(x == 0 for x in given):
        raise ValueError(f"a composition has factors that are not zero, at least one; got {given!r}")
    with mpmath_digits(DIGITS + 20):
        total = mpmath.fsum(to_mpf(x, mpmath.mp.prec) for x in given)
        if abs(total - 1) > (ROUNDED if floats else mpmath.mpf(10) ** -DIGITS):
            raise ValueError(
                f"the factors of a composition sum to one, so that its step is h; these sum to {mpmath.nstr(total, 17)}"
            )
    return made


def _known(base: Method, name: str) -> Composition:
    if name not in KNOWN:
        raise ValueError(f"no composition is called {name!r}; known are {', '.join(KNOWN)}")
    made = Composition(base, (), name)
    _check(made)
    if not base.symmetric or base.order % 2:
        raise ValueError(f"the factors {name!r} are for symmetric methods; {base.name} is not symmetric")
    if name in _SEEDS and base.order != 2:
        raise ValueError(
            f"the factors {name!r} are for methods of order two; {base.name} has order {base.order}: take 'yoshida' or "
            "'suzuki', which raise any order by two"
        )
    return made


def _check(made: Composition) -> None:
    if not made.base.symplectic:
        raise ValueError(
            f"{made.base.name} is neither symmetric nor symplectic, so its compositions would have neither the order "
            "nor the structure that compositions are for; compose a member PsNrQu"
        )
    if made.count > MOST_FACTORS:
        raise ValueError(
            f"a composition of {made.count} steps is longer than {MOST_FACTORS}; take a method of higher order"
        )


@lru_cache(maxsize=128)
def _factors(made: Composition, digits: int) -> tuple[Any, ...]:
    bits = math.ceil((digits + 20) * math.log2(10))
    own = [to_mpf(x, bits) for x in made.given]
    if made.known in _SEEDS:
        own = list(_solved(made.known, digits))
    with mpmath_digits(digits + 20):
        if made.known in ("yoshida", "suzuki"):
            k = 2 if made.known == "yoshida" else 4
            outer = 1 / (k - mpmath.mpf(k) ** (mpmath.mpf(1) / (made.base.order + 1)))
            own = [outer] * (k // 2) + [1 - k * outer] + [outer] * (k // 2)
        return tuple(a * b for a in own for b in made.base.factors(digits))


@lru_cache(maxsize=16)
def _solved(name: str, digits: int) -> tuple[Any, ...]:
    """The factors of a name by Newton's iteration on the words that must vanish, begun with the digits known."""
    words = _SIX if len(_SEEDS[name]) == len(_SIX) else _EIGHT

    def whole(half: Sequence[Any]) -> list[Any]:
        return [*half, 1 - 2 * mpmath.fsum(half), *reversed(half)]

    def equations(*half: Any) -> list[Any]:
        found = _product(whole(half), (1, 3, 5, 7), max(map(sum, words)))
        return [found[word] for word in words]

    with mpmath_digits(digits + 30):
        start = [mpmath.mpf(x) for x in _SEEDS[name]]
        half = mpmath.findroot(equations, start, tol=mpmath.mpf(10) ** (-2 * digits - 40))
        return tuple(whole(list(half)))


def _product(factors: Sequence[Any], letters: Sequence[int], highest: int) -> Series:
    """The coefficients of all words up to a degree in exp(Σ γ_1^i X_i) … exp(Σ γ_m^i X_i)."""
    words = _words(tuple(letters), highest)
    total: Series = {word: mpmath.mpf(not word) for word in words}
    for gamma in factors:
        one = {word: gamma ** sum(word) / math.factorial(len(word)) for word in words}
        total = {word: mpmath.fsum(total[word[:k]] * one[word[k:]] for k in range(len(word) + 1)) for word in words}
    return total


@lru_cache(maxsize=32)
def _words(letters: tuple[int, ...], highest: int) -> tuple[Word, ...]:
    found: list[Word] = [()]
    for word in found:
        found += [(*word, i) for i in letters if sum(word) + i <= highest]
    return tuple(found)


def _short(x: Any) -> str:
    text = str(x)
    return text if len(text) <= 12 else f"{float(x):.6g}"
