"""Methods by name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import get_args

from leastaction.methods.composition import KNOWN, Composition, compose, made_of
from leastaction.methods.galerkin import Galerkin, galerkin
from leastaction.methods.protocol import Branch, Method
from leastaction.methods.quadrature import READY, gauss, lobatto, rule
from leastaction.methods.rk4 import rk4
from leastaction.numbers.notation import exact

ANY_BRANCH = ", any branch"

ALIASES: dict[str, Method] = {
    "midpoint": galerkin(1, gauss(1)),
    "newmark": galerkin(1, gauss(1)),
    "stormer-verlet": galerkin(1, lobatto(2)),
    **dict.fromkeys(("leapfrog", "verlet", "velocity-verlet", "stormer", "trapezoid"), galerkin(1, lobatto(2))),
    "simpson": galerkin(2, lobatto(3)),
    "rk4": rk4("hamilton"),
    "rk4-hamilton": rk4("hamilton"),
    "rk4-lagrange": rk4("lagrange"),
}

_FAMILIES = {  # names of many methods: which one?
    "gauss": "'gauss' names a family: say how many nodes s, as 'P2N2Q4Gau' (Gauss collocation, order 4), 'P3N3Q6Gau' "
    "(order 6), or la.galerkin(s, la.gauss(s)), of order 2s; 'midpoint' is that of one node",
    "lobatto": "'lobatto' names a family: say the degree s and the nodes, as 'simpson' (P2N3Q4Lob, order 4), "
    "'P3N4Q6Lob' (order 6), or la.galerkin(s, la.lobatto(s + 1)), of order 2s; the IIIA–IIIB pairs are "
    "la.galerkin(s, la.lobatto(s))",
    "radau": "'radau' names a family: say the degree s, the nodes and the end, as 'P2N2Q3RadR' (order 3), or "
    "la.galerkin(s, la.radau(r)), la.galerkin(s, la.radau(r, 'left')), of order min(2s, 2r − 1)",
    "chebyshev": "'chebyshev' names a family: say the degree s and the nodes, as 'P2N4Q4Che' (order 4), or "
    "la.galerkin(s, la.chebyshev(r)); la.clenshaw_curtis(r) has both ends among its nodes",
    **{
        name: f"{name!r} names factors of a composition: say of which method, as '{name}(verlet)', or "
        f"la.compose('verlet', {name!r})"
        for name in KNOWN
    },
}

_FAMILY_NAME = re.compile(rf"P(\d+)N(\d+)Q(\d+)({'|'.join(READY)})?", re.IGNORECASE)
_OWN = re.compile(r"P(\d+)N\d+Q\d+([A-Za-z]+)\[([^;]+);([^;]+?)(; floats)?\]")
_COMPOSED = re.compile(rf"(compose|{'|'.join(KNOWN)})\((.*)\)")
_RULES = {suffix.lower(): make for suffix, make in READY.items()}


def family(max_s: int = 5, max_r: int | None = None) -> Iterator[Galerkin]:
    """Every member of the family with 1 ≤ s ≤ max_s and s ≤ r ≤ max_r (without max_r: s + 1)."""
    for s in range(1, max_s + 1):
        for r in range(s, (s + 1 if max_r is None else max_r) + 1):
            yield galerkin(s, gauss(r))
            if r >= 2:
                yield galerkin(s, lobatto(r))


def method(name: str | Method) -> Method:
    """A method by its name.

    Parameters
    ----------
    name : str or method
        An alias such as "simpson", a member of the family such as "P3N4Q6Lob", or a composition such as
        "yoshida(P1N2Q2Lob)". A method is returned as it is.

    Examples
    --------
    >>> import leastaction as la
    >>> la.method("simpson")
    P2N3Q4Lob
    >>> la.method("P3N4Q6Lob").order
    6
    """
    if isinstance(name, Method):
        return name
    if not isinstance(name, str):
        raise TypeError(f"expected a method or its name, such as 'simpson' or 'P3N4Q6Lob'; got {name!r}")
    return _named(name)


@lru_cache(maxsize=256)
def _named(name: str) -> Method:
    key = name.strip().lower().replace("ö", "o").replace("_", "-").replace(" ", "-")
    if key in ALIASES:
        return ALIASES[key]
    if match := _COMPOSED.fullmatch(name.strip()):
        return _composed(*match.groups())
    if name.endswith(ANY_BRANCH):
        return with_branch(name.removesuffix(ANY_BRANCH), "any")
    if match := _FAMILY_NAME.fullmatch(name.strip()):
        return _member(name.strip(), *match.groups())
    if match := _OWN.fullmatch(name.strip()):
        return _own(*match.groups())
    if key in _FAMILIES:
        raise ValueError(_FAMILIES[key])
    known = {word.lower(): word for word in (*ALIASES, *_FAMILIES, *(member.name for member in family()))}
    near = [known[word] for word in difflib.get_close_matches(key, known, n=3)]
    hint = f"Did you mean {' or '.join(map(repr, near))}? " if near else ""
    raise ValueError(
        f"unknown method {name!r}. {hint}Known are {', '.join(ALIASES)}, "
        "and PsNrQu with Gau, Lob, RadL, RadR, Che or Cle, such as 'P3N4Q6Lob'."
    )


def with_branch(name: str | Method, branch: Branch) -> Method:
    """The same method with another choice of roots."""
    if branch not in get_args(Branch):
        raise ValueError(f"branch must be 'followed' or 'any'; got {branch!r}")
    chosen = method(name)
    if isinstance(chosen, Galerkin):
        return replace(chosen, branch=branch)
    if isinstance(chosen, Composition):
        return replace(chosen, base=with_branch(chosen.base, branch))
    if branch == "any":
        raise ValueError(f"{chosen.name} solves no equations, so that there are no branches: leave branch= out")
    return chosen


def _member(name: str, s: str, r: str, u: str, suffix: str | None) -> Galerkin:
    rules = []
    for key in [suffix.lower()] if suffix else ["gau", "lob"]:
        if int(r) >= (2 if key in ("lob", "cle") else 1):
            rules.append(_RULES[key](int(r)))
    for candidate in rules:
        if candidate.order == int(u):
            return galerkin(int(s), candidate)
    orders = " or ".join(f"P{s}N{r}Q{candidate.order}{candidate.family}" for candidate in rules)
    raise ValueError(
        f"{name!r} does not exist: a rule of {r} points has order u = 2r (Gau), 2r − 2 (Lob, r ≥ 2), 2r − 1 (RadL, "
        "RadR), and r or r + 1, whichever is even (Che; Cle, r ≥ 2)" + (f"; did you mean {orders}?" if orders else ".")
    )


def _own(s: str, name: str, c: str, b: str, floats: str | None) -> Galerkin:
    """A member with a rule of one's own, from its text."""
    nodes, weights = ([x.strip() for x in numbers.split(",")] for numbers in (c, b))
    made = rule(nodes, weights, name)
    return galerkin(int(s), replace(made, floats=True) if floats else made)


def _composed(kind: str, inside: str) -> Composition:
    """A composition from its text."""
    if kind != "compose":
        return compose(inside, kind)
    floats = inside.endswith("; floats")
    base, _, numbers = inside.removesuffix("; floats").rpartition(";")
    return made_of(method(base), tuple(exact(x.strip()) for x in numbers.split(",")), floats)
