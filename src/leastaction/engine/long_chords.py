"""How the equations of a long step are solved: by an elimination with matrices from the middle of the step."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.engine.increment_tables import held_of, shifts_of
from leastaction.engine.long_form import FloatArray, LongForm, Middle
from leastaction.kernel.elimination import Assemble, Factor, Matrix, Permuted, Profile, SolveLanes, SolveOne, profile
from leastaction.kernel.script import Operation, Place, When
from leastaction.program import dot
from leastaction.step.rows import Row, apply

MOST_PRODUCTS = 1e8  # of an elimination along a profile: some 50 ms; SuperLU, ordering by least degree, then is faster


class Eliminated:
    """Matrices in the middle of a step, or at another of the times, and how they are eliminated.

    factored, solved   operations: factors, and right-hand sides ← solutions
    broken             what tells that a matrix has no factors
    """

    factored: list[Operation]
    solved: list[Operation]
    broken: list[Place]

    def __init__(self, form: LongForm, what: Sequence[str], time: int | None = None) -> None:
        self.form, work, W = form, form.work, form.lanes
        self.middle: Middle = form.how.middle(form, what, len(form.samples.tau) if time is None else time)
        row, column, self.n = self.middle.row, self.middle.column, len(form.arranged)
        self.profile = _profile(self.n, np.append(row, column), np.append(column, row), W, form.n)
        places = self.profile.places(row, column)
        mirrored = self.profile.places(column, row)
        table = np.stack([np.where(places >= 0, places, mirrored), self.middle.one, self.middle.other], axis=1)
        self.table = work.keep(np.ascontiguousarray(table))
        index = form.arranged[self.profile.order]
        self.straight = bool((index == np.arange(self.n)).all())
        self.index = work.keep(index)
        self.rows = work.keep(self.profile.tables())

    @cached_property
    def wide(self) -> bool:
        """Whether a profile takes too many products; or multipliers stand beside a mass whose diagonal has zeros, which
        SuperLU pivots around.
        """
        if self.n > self.form.n and self.form.how.hollow:
            return True
        widths = (self.profile.last - np.arange(self.n)).astype(float)
        return float(widths @ widths) > MOST_PRODUCTS

    def matrix(self, parts: int) -> Matrix:
        work, n = self.form.work, self.n
        half, pad = self.profile.size + 8, n + 8
        F, inverse = work.block(parts * half), work.block(parts * n)
        return Matrix(self.rows, n, F, self.profile.size, half, inverse, work.block(parts * pad), pad)

    def systems(self, terms: Sequence[Any]) -> list[int]:
        """A right-hand side for each of these matrices (`Assemble`), in two parts of complex ones: where they begin."""
        work, W, length = self.form.work, self.form.lanes, self.form.height + 3 * self.form.lanes
        parts = [len(own) for own in terms]
        x = [work.block(count * length + W) + W for count in parts]
        begins = [a + k * length for a, count in zip(x, parts, strict=True) for k in range(count)]
        self.broken, self.factored, self.solved = [work.single() for _ in terms], [*self.middle.operations], []
        if self.wide:

            def rights(work: FloatArray) -> list[Any]:
                whole = [[work[a + k * length :][: self.form.height, None] for k in range(count)]
                         for a, count in zip(x, parts, strict=True)]  # fmt: skip
                return [own[0] + 1j * own[1] if len(own) > 1 else own[0] for own in whole]

            self.factored.append(self.factor_sparse(terms, self.broken))
            self.solved.append(self.solve_sparse(rights, x, length))
            return begins
        y = work.block(2 * length + W) + W
        for a, own, broken in zip(x, terms, self.broken, strict=True):
            matrix, both = self.matrix(len(own)), [k * length for k in range(len(own))]
            self.factored += [Assemble(matrix, self.table, len(self.middle.row), own), Factor(matrix, len(own), broken)]
            self.solved += [Permuted(self.index, self.n, y + k, a + k) for k in both]
            self.solved.append(SolveOne(matrix, len(own), y, length))
            self.solved += [Permuted(self.index, self.n, a + k, y + k, back=True) for k in both]
        return begins

    def factor_sparse(self, terms: Sequence[Any], broken: Sequence[Place]) -> Operation:
        """Factors of matrices that are sums of entries, as `Assemble` has them, by SuperLU."""
        from scipy.sparse import csc_array
        from scipy.sparse.linalg import splu

        middle, n = self.middle, self.n
        # Without multipliers the matrix is eliminated as it stands; where they are its diagonal has zeros.
        pivots = {"diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}} if n == self.form.n else {}
        where = (np.append(middle.row, middle.column), np.append(middle.column, middle.row))

        def values(state: FloatArray, work: FloatArray, part: Any) -> FloatArray:
            total = np.zeros(len(middle.row))
            for begin, at in part:
                own = 0.5 * (work[begin + middle.one] + work[begin + middle.other])
                total += own if at is None else own * state[at.begins[0]]
            return total

        def factor(state: FloatArray, work: FloatArray) -> None:
            self._factors(work)[:] = factors = []
            for parts, flag in zip(terms, broken, strict=True):
                x = values(state, work, parts[0]) + (1j * values(state, work, parts[1]) if len(parts) > 1 else 0.0)
                x = np.append(x, np.where(middle.row == middle.column, 0.0, x))
                try:
                    factors.append(splu(csc_array((x, where), shape=(n, n)), permc_spec="MMD_AT_PLUS_A", **pivots))
                    work[flag.begins[0]] = 0.0
                except (RuntimeError, ValueError):
                    work[flag.begins[0]] = 1.0
                    return

        return self.form.python(factor)

    def solve_sparse(self, rights: Any, begins: Sequence[int] = (), length: int = 0) -> Operation:
        """The right-hand sides ← solutions: those that `rights` gives as views, or, of real and imaginary parts at a
        distance of `length`, where they begin.
        """
        own = self.form.arranged

        def solve(state: FloatArray, work: FloatArray) -> None:
            for k, (lu, right) in enumerate(zip(self._factors(work), rights(work), strict=False)):
                found = lu.solve(np.ascontiguousarray(right[own]))
                if not begins:
                    right[own] = found
                    continue
                work[begins[k] + own] = found.real[:, 0]
                if np.iscomplexobj(found):
                    work[begins[k] + length + own] = found.imag[:, 0]

        return self.form.python(solve)

    def _factors(self, work: FloatArray) -> Any:
        """Those of SuperLU that go with a work."""
        return self.form.works[work.ctypes.data][-1].setdefault(id(self), [])


class MassChord(Eliminated):
    """dz = −h (S⁻¹ ⊗ M⁻¹) R with the mass in the middle of the step, or a constant mass, which is factored once."""

    def __init__(self, form: LongForm) -> None:
        super().__init__(form, ("m_v",))
        work, W, s, n, height = form.work, form.lanes, form.s, self.n, form.height
        vectors = -(-s // W)
        pitch = vectors * W
        room, self.broken = height * pitch, [work.single()]
        x = work.block(room)
        self.place = Place("work", tuple(x + k for k in range(s)), W * pitch, pitch)
        self.held = Place("work", tuple(x + form.count * W * pitch + k for k in range(s)), W * pitch, pitch)
        part = (((self.middle.entries["m_v"], None),),)
        if self.wide:
            factor: list[Operation] = [self.factor_sparse([part], self.broken)]
            self.solved = [self.solve_sparse(lambda work: [work[x : x + room].reshape(height, pitch)])]
        else:
            matrix = self.matrix(1)
            factor = [Assemble(matrix, self.table, len(self.middle.row), part), Factor(matrix, 1, self.broken[0])]
            self.solved = [SolveLanes(matrix, x, vectors)]
            if not self.straight:
                y = work.block(room)
                self.solved = [Permuted(self.index, n, y, x, pitch), SolveLanes(matrix, y, vectors),
                               Permuted(self.index, n, x, y, pitch, back=True)]  # fmt: skip
        self.factored = [*self.middle.operations, *factor]
        if form.how.constant and n == form.n:
            self.factored = [When(work.single(), self.factored, until=True)]

    def right(self, rows: Any, R: Row) -> Row:
        return apply(rows, rows.columns("solve"), R)

    def increments(self, rows: Any, solved: Row) -> Row:
        return solved

    def held_right(self, g: Row) -> Row:
        return [-a for a in g]

    def pushes(self, rows: Any, solved: Row) -> Row:
        return apply(rows, rows.columns("push"), solved)


class ShiftedChord(Eliminated):
    """Derivatives of the middle of the step for all its points: with A⁻¹B = V γ V⁻¹ the equations fall apart into

        X_j = m_v + h α_j (m_q − f_v) + h² γ_j f_q,        X_j w_j = −h (V⁻¹A⁻¹R)_j,        dz = V w,

    one system for each real γ_j and each pair of conjugate ones (`increment_tables`). X is made symmetric.
    """

    def __init__(self, form: LongForm) -> None:
        super().__init__(form, form.how.stiffness)
        entries, terms = self.middle.entries, []
        self.shifts = shifts_of(form.method) | held_of(form.method)
        self.complex = [bool(g[1] != 0.0) for g in self.shifts["gamma"]]
        for e, both in enumerate(self.complex):
            own: list[Any] = []
            for k in range(1 + both):
                part: list[Any] = [] if k else [(entries["m_v"], None)]
                part.append((entries["f_q"], form.table_place(f"gamma {k}", e)))
                part += [(entries[name], form.table_place(f"alpha {k}", e)) for name in ("gyro",) if name in entries]
                own.append(tuple(part))
            terms.append(tuple(own))
        begins = self.systems(terms)
        self.place = Place("work", tuple(begins), form.lanes)
        self.held = Place("work", tuple(begin + form.count * form.lanes for begin in begins), form.lanes)

    def right(self, rows: Any, R: Row) -> Row:
        ((minus,),) = rows.columns("minus h")
        return [minus * a for a in self._into("into", R)]

    def _into(self, name: str, R: Row) -> Row:
        found: Row = []
        for e, both in enumerate(self.complex):
            found += [dot(row, R) for row in self.shifts[name][e].T.tolist()[: 1 + both]]
        return found

    def held_right(self, g: Row) -> Row:
        return [-a for a in self._into("into_held", g)]

    def pushes(self, rows: Any, solved: Row) -> Row:
        ((inverse,),) = rows.columns("1/h²")
        return [inverse * a for a in self.increments(rows, solved, "out_held")]

    def increments(self, rows: Any, solved: Row, name: str = "out") -> Row:
        moves: Row = [0.0] * self.form.s
        k = 0
        for e, both in enumerate(self.complex):
            re, im = self.shifts[name][:, e].T.tolist()
            moves = [a + c * solved[k] for a, c in zip(moves, re, strict=True)]
            if both:
                moves = [a - c * solved[k + 1] for a, c in zip(moves, im, strict=True)]
            k += 1 + both
        return moves


def _profile(n: int, row: NDArray[np.int64], column: NDArray[np.int64], lanes: int, moving: int) -> Profile:
    """As coordinates stand, or in the order of Cuthill and McKee, where that has a smaller profile.

    A multiplier, of which the diagonal has nothing, follows the coordinates of its constraint.
    """

    def ordered(place: NDArray[np.int64]) -> Profile:
        held = (row >= moving) & (column < moving)
        np.maximum.at(place, row[held], place[column[held]])
        return profile(np.lexsort((np.arange(n) >= moving, place)), row, column, lanes)

    plain = ordered(np.where(np.arange(n) < moving, np.arange(n), 0))
    if len(row) == 2 * n or len(row) > n * n // 2:
        return plain
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    pattern = csr_array((np.ones(len(row)), (row, column)), shape=(n, n))
    place = np.empty(n, np.int64)
    place[reverse_cuthill_mckee(pattern, symmetric_mode=True)] = np.arange(n)
    found = ordered(np.where(np.arange(n) < moving, place, 0))
    return plain if plain.size <= found.size else found
