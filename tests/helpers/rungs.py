"""The rungs of the ladder of solvers, one at a time."""

from contextlib import ExitStack, contextmanager
from unittest import mock

from leastaction.backends import backend, sum_backend
from leastaction.backends.fused import programs
from leastaction.backends.layout import SOLVER
from leastaction.backends.solver import Solvers
from leastaction.backends.trajectories import Trajectories


@contextmanager
def solved_by(how):
    """Let runs be solved by one rung of the ladder, also steps that are explicit.

    side by side    chords as kernels, the points of a step in lanes (one trajectory)
    stiff           the same, by chords of stiff steps alone, where there are such
    chords          chords as kernels, trajectories in lanes; no Newton's iteration as a kernel
    chord, shifted, newton   the loops over the points, with mass chords, shifted chords, or by Newton alone; of a sum
                             over rows `shifted` leaves mass chords out, and nothing else changes how it is solved
    """
    fields, shifts, begin, sums = Solvers._solver, Solvers._shifts, Trajectories.begin, Solvers.add_sum

    def chosen(self, step, lanes):
        return fields(self, step, lanes) | {"has_chord": how == "chord"}

    def shifted(self, step, lanes, newton_cost, value_cost):
        return shifts(self, step, lanes, 1e30, value_cost) if how == "shifted" else (-1, 1)

    def summed(self, system, method, stiff, newton):
        """A sum's solver with shifted chords, and no others."""
        add = self.memory.add

        def without_chords(*records):
            return add(*((kind, {**of, "has_chord": 0} if kind is SOLVER else of) for kind, of in records))

        with mock.patch.object(self.memory, "add", without_chords):
            return sums(self, system, method, True, newton)

    def stiffly(self, *given):
        """As if chords had been given up, and rested for good."""
        values = begin(self, *given)
        if "given_up" in self.backend.places:
            self.block(values, "given_up")[...] = self.backend.patience
            self.block(values, "rest")[...] = 1e9
        return values

    def none(*_):
        return None

    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(backend, "explicit_programs", none))
        if how in ("newton", "chord", "shifted"):
            stack.enter_context(mock.patch.object(Solvers, "_solver", chosen))
            stack.enter_context(mock.patch.object(Solvers, "_shifts", shifted))
            for name in ("alone", "step_programs"):
                stack.enter_context(mock.patch.object(backend, name, none))
        else:
            stack.enter_context(mock.patch.object(programs, "MOST_INSTRUCTIONS", 0))
        if how == "shifted":
            stack.enter_context(mock.patch.object(Solvers, "add_sum", summed))
        if how == "stiff":
            stack.enter_context(mock.patch.object(Trajectories, "begin", stiffly))
        _forget()
        yield
    _forget()


def _forget():
    backend.backend.cache_clear()
    sum_backend.sum_backend.cache_clear()
