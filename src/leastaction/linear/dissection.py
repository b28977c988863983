"""Cholesky's factorisation of large sparse matrices by nested dissection; where only the signs of its pivots are asked
for, nothing of it is kept.

A set of unknowns, the separator, parts the others into two sets without an entry between them. Each of the two is
parted again, and so on (George, 1973). Eliminated from the leaves of this tree to its root, a separator V with those
unknowns B above it to which V or a set below it has entries is a small dense matrix, the front (Duff and Reid, 1983):

    F = [[A_VV, A_VB], [A_BV, 0]] + Σ_children U,     A_VV … = L Lᵀ,     U = F_BB − W Wᵀ,   W = F_BV L⁻ᵀ.

A is positive definite exactly if every L exists. Whoever asks only that needs no factor: U goes on to the parent, and
all else is forgotten, so that a plate of 10⁶ unknowns takes some hundred megabytes. Whoever wants to solve keeps both.

Separators are levels of equal distance from one end of a set, the level that is smallest among those which leave a fair
share of the set on both sides. Unknowns with equal neighbours, such as the displacements of one node of a mesh, count
as one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.linear.factor import Factor

FloatArray = NDArray[np.float64]
Ints = NDArray[np.int64]

LEAF = 64  # nodes of a set that is not parted any more
FAIR = 0.3  # the least share of a set that is left on either side of a separator


@dataclass(frozen=True, eq=False)
class Tree:
    """Sets of unknowns, every set behind all sets below it.

    order     the unknowns, set after set
    begin     where each set begins in it, and where the last one ends
    parent    the set above each set, or −1
    """

    order: Ints
    begin: list[int]
    parent: list[int]


@dataclass(frozen=True, eq=False)
class Eliminated:
    """A set that is eliminated: L, the unknowns B by their numbers in the tree's order, and W, (B, V)."""

    first: int
    end: int
    later: Ints
    L: FloatArray
    W: FloatArray


class Dissected(Factor):
    """A sparse positive definite matrix, both halves given, with its factors."""

    def __init__(self, a: Any) -> None:
        tree = dissect(a)
        self._order, self._sets = tree.order, list(eliminated(a, tree))
        self.nnz, self.itemsize = sum(one.L.size + one.W.size for one in self._sets), 8

    def solve(self, b: NDArray[Any]) -> NDArray[Any]:
        from scipy.linalg.lapack import dtrtrs

        x = b[self._order]
        for one in self._sets:
            own = slice(one.first, one.end)
            x[own] = dtrtrs(one.L, x[own], lower=1)[0].reshape(x[own].shape)
            x[one.later] -= one.W @ x[own]
        for one in reversed(self._sets):
            own = slice(one.first, one.end)
            x[own] = dtrtrs(one.L, x[own] - one.W.T @ x[one.later], lower=1, trans=1)[0].reshape(x[own].shape)
        found = np.empty_like(x)
        found[self._order] = x
        return found


def positive_pivots(a: Any) -> bool:
    """Whether a symmetric sparse matrix, both halves given, has a factor of Cholesky."""
    try:
        for _ in eliminated(a, dissect(a)):
            pass
    except ArithmeticError:
        return False
    return True


def eliminated(a: Any, tree: Tree) -> Iterator[Eliminated]:
    """The sets of a symmetric sparse matrix in the order of their elimination; raises ArithmeticError where a pivot is
    not positive.
    """
    a = a.tocsr()
    a.sum_duplicates()
    number = np.empty_like(tree.order)
    number[tree.order] = np.arange(len(number))
    handed: list[list[tuple[Ints, FloatArray]]] = [[] for _ in tree.parent]
    for t, up in enumerate(tree.parent):
        one, left = _eliminated(a, tree, t, number, handed[t])
        handed[t] = []
        if up >= 0:
            handed[up].append((one.later, left))
        yield one


def _eliminated(
    a: Any, tree: Tree, t: int, number: Ints, children: list[tuple[Ints, FloatArray]]
) -> tuple[Eliminated, FloatArray]:
    """A set, and the lower half of U."""
    from scipy.linalg.blas import dsyrk, dtrsm
    from scipy.linalg.lapack import dpotrf

    first, end = tree.begin[t], tree.begin[t + 1]
    m, own = end - first, tree.order[first:end]
    column, entries, count = _rows(a.indptr, a.indices, own)
    column, row = number[column], np.repeat(np.arange(m), count)
    kept = column >= first  # the others were eliminated before
    column, row, value = column[kept], row[kept], a.data[entries[kept]]
    later = np.unique(np.concatenate([column[column >= end], *(b[b >= end] for b, _ in children)]))

    def place(of: Ints) -> Ints:
        return np.where(of < end, of - first, m + np.searchsorted(later, of))

    front = np.zeros((m + len(later), m + len(later)), order="F")
    front[place(column), row] = value
    for b, u in children:
        at = place(b)
        front[np.ix_(at, at)] += u
    L, failed = dpotrf(front[:m, :m], lower=1, clean=0)
    if failed:
        raise ArithmeticError("a pivot is not positive")
    if not len(later):
        return Eliminated(first, end, later, L, np.zeros((0, m))), np.zeros((0, 0))
    W = dtrsm(1.0, L, front[m:, :m], side=1, lower=1, trans_a=1)
    return Eliminated(first, end, later, L, W), dsyrk(-1.0, W, 1.0, front[m:, m:], lower=1)


def _rows(begin: Any, column: Any, rows: Ints) -> tuple[Ints, Ints, Ints]:
    """The columns of the entries of some rows, the places of these entries, and how many each row has."""
    count = (begin[rows + 1] - begin[rows]).astype(np.int64)
    places = np.repeat(begin[rows] - np.cumsum(count) + count, count) + np.arange(count.sum())
    return column[places], places, count


def dissect(a: Any) -> Tree:
    """The tree of a symmetric sparse matrix."""
    a = a.tocsr()
    group, graph = _nodes(a)
    sets, parent = _parted(graph)
    order = _bottom_up(parent)
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    of_node = np.empty(graph.shape[0], np.int64)
    for t, nodes in enumerate(sets):
        of_node[nodes] = number[t]
    of = of_node[group]
    unknowns = np.argsort(of, kind="stable")
    begin = np.searchsorted(of[unknowns], np.arange(len(order) + 1))
    return Tree(unknowns, begin.tolist(), [int(number[parent[t]]) if parent[t] >= 0 else -1 for t in order])


def _nodes(a: Any) -> tuple[Ints, Any]:
    """The node of each unknown, and which nodes have entries between them. Unknowns with equal neighbours are a node,
    told by sums of random numbers: among 10⁶ unknowns two different sums of 62 bits are equal once in 10⁷ times.
    """
    from scipy.sparse import csr_array

    n = a.shape[0]
    pattern = csr_array((np.ones(a.nnz, np.int64), a.indices, a.indptr), shape=a.shape)
    names = np.random.default_rng(0).integers(0, 2**62, n)
    own = np.zeros(n, np.int64)
    own[a.diagonal() == 0] = 1  # an unknown is among its neighbours even without an entry there
    _, first, group = np.unique(pattern @ names + own * names, return_index=True, return_inverse=True)
    rows = pattern[first]
    count = np.diff(rows.indptr)
    graph = csr_array(
        (np.ones(rows.nnz, np.int8), (np.repeat(np.arange(len(first)), count), group[rows.indices])),
        shape=(len(first), len(first)),
    )
    return group, graph


def _parted(graph: Any) -> tuple[list[Ints], list[int]]:
    """Sets of nodes and the number of the set above each. All sets of one depth are parted at once."""
    n = graph.shape[0]
    edges = graph.tocoo()
    row, column = edges.row.astype(np.int64), edges.col.astype(np.int64)
    part = np.zeros(n, np.int64)  # of each node: which part it is in, or −1 if it is in a set already
    above = np.array([-1])  # of each part: the set above it
    sets: list[Ints] = []
    parent: list[int] = []
    while len(above):
        inside = (part[row] == part[column]) & (part[row] >= 0)
        row, column = row[inside], column[inside]
        side = _sides(
            n, len(above), part, row, column
        )  # 0, 1, 2: before the separator, behind, not connected; 3: in it
        free = part >= 0
        for k, nodes in _by_number(np.where(free & (side == 3), part, -1)):
            parent.append(int(above[k]))
            sets.append(nodes)
            above[k] = len(sets) - 1
        kept = free & (side < 3)
        names, child = np.unique(3 * part[kept] + side[kept], return_inverse=True)
        part[:] = -1
        part[kept] = child
        above = above[names // 3]
    return sets, parent


def _by_number(number: Ints) -> list[tuple[int, Ints]]:
    """The places of every number that is not negative."""
    order = np.argsort(number, kind="stable")
    order = order[np.searchsorted(number[order], 0) :]
    if not len(order):
        return []
    cuts = np.flatnonzero(np.diff(number[order])) + 1
    return [(int(number[some[0]]), some) for some in np.split(order, cuts)]


def _sides(n: int, parts: int, part: Ints, row: Ints, column: Ints) -> Ints:
    """On which side of the separator of its part a node is; all nodes of a part that is small are in it."""
    nodes = np.flatnonzero(part >= 0)
    size = np.bincount(part[nodes], minlength=parts)
    begin = np.searchsorted(row, np.arange(n + 1))  # the edges are sorted by rows
    start = np.full(parts, -1)
    start[part[nodes[::-1]]] = nodes[::-1]
    large = size > LEAF
    far = _distances(n, start[large], begin, column)
    last = nodes[np.lexsort((far[nodes], part[nodes]))]
    start[part[last]] = last  # the node that is farthest from the first
    level = _distances(n, start[large], begin, column)
    side = np.full(n, 3)
    split = nodes[large[part[nodes]]]
    side[split] = np.where(level[split] < 0, 2, 3)
    reached = split[level[split] >= 0]
    if not len(reached):
        return side
    # The nodes of each level of each part, how many there are before it, and the level that is taken.
    deepest = int(level[reached].max()) + 1
    key, count = np.unique(part[reached] * deepest + level[reached], return_counts=True)
    of, total = key // deepest, np.bincount(part[reached], minlength=parts)
    before = np.cumsum(count) - count
    before -= before[np.searchsorted(of, np.arange(parts))[of]] if len(of) else 0
    behind = total[of] - before - count
    least = np.minimum(before, behind)
    cost = np.where(least < FAIR * total[of], total[of] + count - least, count)
    cost = np.where(least > 0, cost, 4 * total[of])
    best = np.lexsort((cost, of))
    best = best[np.searchsorted(of[best], np.unique(of))]
    best = best[least[best] > 0]  # a part without a level between others is not parted
    cut = np.full(parts, -1)
    cut[of[best]] = key[best] % deepest
    reached = reached[cut[part[reached]] >= 0]
    at = cut[part[reached]]
    side[reached] = np.where(level[reached] < at, 0, np.where(level[reached] > at, 1, 3))
    # A node of the level without a neighbour behind it belongs to what is before.
    needed = np.zeros(n, bool)
    needed[row[(side[row] == 3) & (side[column] == 1)]] = True
    here = reached[(side[reached] == 3) & ~needed[reached]]
    side[here] = 0
    return side


def _distances(n: int, start: Ints, begin: Ints, column: Ints) -> Ints:
    """How many edges each node is away from a start; −1 where no edges lead to it."""
    found = np.full(n, -1)
    found[start] = 0
    front, far = start, 0
    while len(front):
        far += 1
        new, _, _ = _rows(begin, column, front)
        new = new[found[new] < 0]
        found[new] = far
        front = np.unique(new)
    return found


def _bottom_up(parent: list[int]) -> Ints:
    """An order with every set behind all sets below it, one branch after the other."""
    children: list[list[int]] = [[] for _ in parent]
    roots: list[int] = []
    for t, up in enumerate(parent):
        (roots if up < 0 else children[up]).append(t)
    order, waiting = [], roots
    while waiting:
        t = waiting.pop()
        order.append(t)
        waiting += children[t]
    return np.array(order[::-1])
