"""Permutations and reflections of the coordinates that leave L as it is: q ↦ P q with one ±1 in each row and column.

    L(t, Pq, Pv) = L(t, q, v)    at every (t, q, v)

A candidate is a symmetry if L and its gradient agree at random points: ∇L(Px) = P ∇L(x). Each component must agree
relative to its own size, so that the masses of two light bodies beside a heavy one are told apart. In addition the
symmetry must be proven on the Program of L, since L may be flat at the points. What is not proven, but holds at points
far away, too, is given apart. Up to `EVERY` coordinates all 2ⁿ n! candidates are tried, and up to `EVERY_SIGN` all 2ⁿ
reflections. Beyond that the candidates are: reflections of one coordinate, of one body, of one axis of all bodies and
of everything; exchanges of two coordinates, of two bodies and of two axes; the reversed order, and the order shifted by
one body. (Bodies are blocks of equal length, in all ways in which n is divisible.)

The listed symmetries generate all others that were found. Conserved momenta belong to continuous symmetries alone; a
step of a variational integrator commutes with P.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations, product
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from leastaction.docstrings import described
from leastaction.numbers.arrays import FloatArray

Signed = tuple[tuple[int, ...], tuple[int, ...]]  # (where each coordinate comes from, with which sign)

EVERY, EVERY_SIGN = 5, 12
POINTS = 24
SAME_VALUE, SAME_COMPONENT = 1e-12, 1e-9  # relative: of L, of a component of its gradient


@described
@dataclass(frozen=True, eq=False)
class DiscreteSymmetry:
    """A permutation or reflection of coordinates, q ↦ P q, that leaves L unchanged. `la.analysis.symmetries` gives it.

    ``one(q)`` is P q, for one configuration (n,) or many (K, n).
    """

    name: Annotated[str, 'Such as "reflection of q0".']
    P: Annotated[FloatArray, "shape (n, n)", "One ±1 in each row and column."]

    def __call__(self, q: ArrayLike) -> FloatArray:
        """P q, for one configuration (n,) or many (K, n); for velocities and momenta alike."""
        return np.asarray(np.asarray(q, float) @ self.P.T)

    def __repr__(self) -> str:
        return self.name


def discrete(sampler: Any, proof: Any) -> tuple[tuple[DiscreteSymmetry, ...], tuple[DiscreteSymmetry, ...]]:
    """Generators of the permutations and reflections that are proven on the Program; and what holds at points alone."""
    test = _Test(sampler, proof)
    proven = found = _found(test)
    if not all(proof.leaves(*one) for one in found):
        proven = _found(_Test(sampler, proof, proven=True))
    doubtful = [one for one in found if not proof.leaves(*one)]
    return tuple(map(_symmetry, proven)), tuple(map(_symmetry, doubtful))


def _symmetry(candidate: Signed) -> DiscreteSymmetry:
    """(P q)_i = sign_i q_{order_i}, with its name."""
    order, sign = candidate
    return DiscreteSymmetry(describe(candidate), np.array(sign, float)[:, None] * np.eye(len(order))[list(order)])


def _found(test: _Test) -> list[Signed]:
    """Generators of the candidates that pass a test."""
    n = test.sampler.system.n
    place = tuple(range(n))
    mirrors = _independent([(place, sign) for sign in _signs(n) if min(sign) < 0], test)
    candidates = product(permutations(place), product((1, -1), repeat=n)) if n <= EVERY else _arrangements(n)
    return [*mirrors, *_generators(test.likely([pair for pair in candidates if pair[0] != place]), mirrors, test, n)]


class _Test:
    """Tests whether candidates leave L and its gradient unchanged, at points drawn once and everywhere."""

    def __init__(self, sampler: Any, proof: Any, far: bool = False, proven: bool = False) -> None:
        self.sampler, self.proof, self.is_far, self.proven = sampler, proof, far, proven
        self.t, self.q, self.v, _ = sampler.points(POINTS, far)
        self.L, self.Lq, self.Lv = self._evaluated(self.t, self.q, self.v)
        with np.errstate(all="ignore"):
            terms = np.abs(self.Lq * self.q).sum(axis=1) + np.abs(self.Lv * self.v).sum(axis=1)
        self.size = np.abs(self.L) + terms
        self.components = [np.median(np.abs(part), axis=0) for part in (self.Lq, self.Lv)]

    def _evaluated(self, t: FloatArray, q: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        system = self.sampler.system
        at = system._evaluate(system.gradient, q, v, t, self.sampler.values)
        return at["L"][:, 0], at["Lq"], at["Lv"]

    def likely(self, candidates: list[Signed]) -> list[Signed]:
        """The candidates that leave L unchanged at one point; most candidates do not."""
        if not candidates:
            return []
        order, sign = (np.array(part) for part in zip(*candidates, strict=True))
        q, v = self.q[0][order] * sign, self.v[0][order] * sign
        L, _, _ = self._evaluated(np.full(len(q), self.t[0]), q, v)
        return [candidates[i] for i in np.flatnonzero(np.abs(L - self.L[0]) <= SAME_VALUE * self.size[0])]

    def holds(self, candidate: Signed) -> bool:
        """Whether L and its gradient agree at every point."""
        order, sign = np.array(candidate[0]), np.array(candidate[1])
        L, Lq, Lv = self._evaluated(self.t, self.q[:, order] * sign, self.v[:, order] * sign)
        if not (np.abs(L - self.L) <= SAME_VALUE * self.size).all():
            return False
        for part, other, typical in zip((Lq, Lv), (self.Lq, self.Lv), self.components, strict=True):
            turned, usual = other[:, order] * sign, typical[order]
            if not (np.abs(part - turned) <= SAME_COMPONENT * (np.abs(turned) + usual)).all():
                return False
        if self.is_far:
            return True
        if not self.proof.keeps(*candidate):
            return False
        return self.proof.leaves(*candidate) or (not self.proven and self._far.holds(candidate))

    @cached_property
    def _far(self) -> _Test:
        return _Test(self.sampler, self.proof, far=True)


def _signs(n: int) -> Iterator[tuple[int, ...]]:
    """Reflections to try, those of few coordinates first."""
    if n <= EVERY_SIGN:
        every = list(product((1, -1), repeat=n))
        yield from sorted(every, key=lambda s: (sum(x < 0 for x in s), s))
        return
    for i in range(n):
        yield tuple(-1 if j == i else 1 for j in range(n))
    for d in _blocks(n):
        for axis in range(d):
            yield tuple(-1 if j % d == axis else 1 for j in range(n))
        for body in range(n // d):
            yield tuple(-1 if j // d == body else 1 for j in range(n))
    yield (-1,) * n


def _blocks(n: int) -> list[int]:
    """Lengths of blocks into which n coordinates can be cut, more than one and shorter than n."""
    return [d for d in range(2, n) if n % d == 0]


def _arrangements(n: int) -> Iterator[Signed]:
    """Permutations to try where n! are too many: exchanges, the reversed order, a shift; each also with a sign."""
    place = tuple(range(n))
    orders: list[tuple[int, ...]] = [_exchanged(place, i, j, 1) for i in range(n) for j in range(i + 1, n)]
    for d in _blocks(n):
        bodies = n // d
        orders += [_exchanged(place, i, j, d) for i in range(bodies) for j in range(i + 1, bodies)]
        for a in range(d):
            for b in range(a + 1, d):
                axis = {a: b, b: a}
                orders.append(tuple(k - k % d + axis.get(k % d, k % d) for k in range(n)))
    for d in (1, *_blocks(n)):
        blocks = [place[k : k + d] for k in range(0, n, d)]
        orders.append(tuple(k for block in reversed(blocks) for k in block))
        orders.append((*place[d:], *place[:d]))
    for order in dict.fromkeys(orders):
        if order != place:
            yield order, (1,) * n
            yield order, (-1,) * n


def _exchanged(place: tuple[int, ...], i: int, j: int, d: int) -> tuple[int, ...]:
    """The order with the i-th and the j-th block of length d exchanged."""
    order = list(place)
    order[i * d : (i + 1) * d], order[j * d : (j + 1) * d] = order[j * d : (j + 1) * d], order[i * d : (i + 1) * d]
    return tuple(order)


def _independent(candidates: list[Signed], test: _Test) -> list[Signed]:
    """Reflections none of which is a product of others: a basis over the field of two elements."""
    chosen: list[Signed] = []
    basis: list[int] = []
    for candidate in test.likely(candidates):
        bits = sum(1 << i for i, x in enumerate(candidate[1]) if x < 0)
        for known in basis:
            bits = min(bits, bits ^ known)
        if bits and test.holds(candidate):
            basis.append(bits)
            chosen.append(candidate)
    return chosen


def _generators(likely: list[Signed], mirrors: list[Signed], test: _Test, n: int) -> list[Signed]:
    """Simple symmetries, which together with the mirrors generate the others."""
    from sympy.combinatorics import Permutation, PermutationGroup

    def points(pair: Signed) -> Any:
        """A signed permutation as one of 2n points, the coordinates and their opposites."""
        order, sign = pair
        plain = [k if s > 0 else k + n for k, s in zip(order, sign, strict=True)]
        return Permutation([*plain, *((k + n) % (2 * n) for k in plain)])

    chosen: list[Signed] = []
    group = PermutationGroup([Permutation(2 * n - 1), *map(points, mirrors)])
    for candidate in sorted(likely, key=_plainness):
        if not group.contains(points(candidate)) and test.holds(candidate):
            chosen.append(candidate)
            group = PermutationGroup([*group.generators, points(candidate)])
    return chosen


def _plainness(candidate: Signed) -> tuple[Any, ...]:
    """A sort key, simple candidates first: few coordinates moved, few signs, exchanges before longer cycles."""
    order, sign = candidate
    moved = sum(i != k for i, k in enumerate(order))
    cycles = _cycles(order)
    return moved, sum(x < 0 for x in sign), max(map(len, cycles), default=0) > 2, len(cycles), cycles


def _cycles(order: tuple[int, ...]) -> list[list[int]]:
    """Where coordinates go: q_i takes the place of the next in its cycle."""
    from sympy.combinatorics import Permutation

    return (~Permutation(list(order))).cyclic_form


def describe(candidate: Signed) -> str:
    """The name of a candidate, in words.

    >>> describe(((1, 0, 2), (1, 1, 1))), describe(((2, 3, 0, 1), (1, 1, 1, 1))), describe(((0, 1), (-1, 1)))
    ('exchange of q0 and q1', 'exchange of (q0, q1) and (q2, q3)', 'reflection of q0')
    """
    order, sign = candidate
    cycles = _cycles(order)
    mirrored = ", ".join(f"q{i}" for i, s in enumerate(sign) if s < 0)
    if not cycles:
        return f"reflection of {mirrored}"
    if all(len(cycle) == 2 for cycle in cycles):
        first, second = ([cycle[k] for cycle in cycles] for k in (0, 1))
        if len(cycles) == 1:
            text = f"exchange of q{first[0]} and q{second[0]}"
        elif order == tuple(reversed(range(len(order)))):
            text = "reversal of the order of the coordinates"
        elif len({b - a for a, b in cycles}) == 1 and first == list(range(first[0], first[0] + len(first))):
            text = "exchange of " + " and ".join(
                "(" + ", ".join(f"q{i}" for i in part) + ")" for part in (first, second)
            )
        else:
            text = "exchange of " + ", ".join(f"q{a} and q{b}" for a, b in cycles)
    else:
        text = "permutation " + ", ".join(" → ".join(f"q{i}" for i in [*cycle, cycle[0]]) for cycle in cycles)
    return text + (f", with reflection of {mirrored}" if mirrored else "")
