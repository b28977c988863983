"""Pilots of advice: which are run, and which are spared, by runs that take no time and whose errors are known."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import leastaction as la
from leastaction.pilots import budget, lab
from leastaction.pilots.answer import answer, worth_trying
from leastaction.pilots.asked import Asked
from leastaction.pilots.budget import Budget
from leastaction.pilots.lab import MOST, Lab, Pilot
from leastaction.pilots.reach import reach
from leastaction.pilots.search import following
from leastaction.pilots.step import Mark, measured


class Runs:
    """Runs of a motion that ends at 1: error = C h^2s; each step takes `each` seconds by the clock of pilots."""

    def __init__(self, monkeypatch, each=0.0, continued=lambda h: 0.0, ends=True):
        self.each, self.continued, self.ends, self.done, self.now = each, continued, ends, [], 0.0
        monkeypatch.setattr(lab, "time", SimpleNamespace(thread_time=lambda: self.now))

    def __call__(self, method, h, t_end, pace, every, tangent, most):
        s, steps = int(method[1 : method.index("N")]), round(t_end / h)
        self.now += self.each * min(steps, most)
        self.done.append((s, h))
        path = SimpleNamespace(
            q=np.array([[1.0 + 0.01 * h ** (2 * s)]]), p=np.array([[0.0]]), t=np.array([t_end]), pace=None,
            stats={"steps": min(steps, most), "continued": int(self.continued(h) * steps)},
        )  # fmt: skip
        if pace is not None:
            path.pace = SimpleNamespace(t=path.t)
            if not self.ends:
                path.t, path.stats["steps"] = np.array([t_end / 2]), most
        return path


def lab_of(runs, length=10.0, held=0) -> Lab:
    return Lab(Asked(runs, "a motion", 1, 0.0, length, (None,), False, held, omega=1.0), length)


def marked(tol) -> Mark:
    return Mark(Pilot(8, 0.25, np.array([1.0, 0.0]), 40, 10.0, 0.0, 0), 0.0, np.ones(2), tol)


# How much time is left ------------------------------------------------------------------------------------------------


def shared(s):
    """No member has code of its own."""
    return False


def test_pilots_beside_the_run():
    """Pilots may take PATIENCE and as long as the best run found."""
    rested = Budget(lambda s: 0.05 * s, shared, spent=0.5)
    assert rested.allows(0.0, 0.1) and not rested.allows(0.0, 0.3) and rested.allows(0.2, 0.3)


def test_a_member_that_has_not_run_has_to_pay():
    """Its code takes as long to load as that of others, or longer; it must fit into the time, and pay after OFTEN_RUN
    runs.
    """
    rested = Budget(lambda s: 0.05 * s, shared, spent=0.1, loads={(4, id(None)): 0.01})
    assert rested.expected(6, None) == pytest.approx(0.3) and rested.expected(6, "auto") > 0.6
    assert rested.allows_loading(6, None, 0.3 / budget.OFTEN_RUN + 1e-6) and not rested.allows_loading(6, None, 0.001)
    rested.loads = {(4, id(None)): 0.4}
    assert rested.expected(6, None) == pytest.approx(0.6)
    assert not rested.allows_loading(6, None, 0.1) and rested.allows_loading(6, None, 1.0)


def test_derivatives_are_carried_by_a_member_at_hand():
    """The member that is asked for, if it has run or can be loaded SOON; else the next higher one that has run."""
    early = Budget(lambda s: 0.05 * s, shared, spent=0.1, loads={(8, id(None)): 0.4})
    assert early.at_hand(4, None) == 4
    late = Budget(lambda s: 0.05 * s, shared, spent=0.1, loads={(8, id(None)): 0.8})
    assert late.at_hand(4, None) == 8 and late.at_hand(4, "auto") == 4  # with that pace none has run
    late.loads |= {(3, id(None)): 0.1, (6, id(None)): 0.1}
    assert late.at_hand(4, None) == 6 and late.at_hand(3, None) == 3


def test_code_of_its_own_beside_loops_belongs_to_the_run():
    """Quick code that takes long to compile is loaded if nothing but loops has run, since the run that is chosen has to
    load it, too; a second such member is not.
    """
    held = Budget(lambda s: 0.8, lambda s: s < 4, spent=0.3, loads={(6, id(None)): 0.5})
    assert held.at_hand(2, None) == 2 and held.at_hand(4, None) == 6
    held.loads[3, id(None)] = 0.8
    assert held.at_hand(2, None) == 3
    squeezer = Asked(None, "", 7, 0.0, 1.0, (None,), False, 6)  # steps of P2 alone have code of their own
    assert [following(squeezer, tol) for tol in (1e-3, 1e-6, 1e-9)] == [2, 2, 4]
    assert [squeezer.scouting(s) for s in (2, 3)] == [6, 3]


def test_a_pace_must_save_more_than_its_code_takes():
    """Where code is at hand, a run of some milliseconds is too short for a pace; where code was compiled, any run is
    that takes less time.
    """
    warm, cold = (Budget(lambda s: 0.05 * s, shared, loads={(8, id(None)): load}) for load in (0.001, 0.6))
    assert warm.easy(8) == pytest.approx(budget.WITH_A_PACE * 0.4 / budget.OFTEN_RUN) and cold.easy(8) == 0.6


def test_one_member_where_constraints_hold():
    """The answer comes from a member that is also worth to be chosen. Where steps have machine code of their own,
    another one is expected to take long to compile; larger systems share loops.
    """
    small, large, none = (Asked(None, "", n, 0.0, 1.0, (None,), False, held) for n, held in ((2, 1), (7, 6), (2, 0)))
    assert [one.reference for one in (small, large, none)] == [4, 6, 8]
    assert small.compiling(3) > 1.0 > large.compiling(4) == none.compiling(4)


# Which pilots are run -------------------------------------------------------------------------------------------------


def test_steps_that_are_too_short_with_a_pace_are_not_tried_again(monkeypatch):
    """Where MOST steps do not lead to the end, shorter ones do not either."""
    runs = Runs(monkeypatch, ends=False)
    here = lab_of(runs)
    assert here.pilot(8, 0.01, "auto") is None
    count = len(runs.done)
    assert here.pilot(8, 0.005, "auto") is None and here.pilot(4, 0.01, "auto") is None and len(runs.done) == count
    assert measured(here, 8, "auto", marked(1e-6), 0.0, 1.0) is None
    assert min(h for _, h in runs.done if h > 1e-3) == 0.01


def test_the_answer_goes_to_the_shortest_steps(monkeypatch):
    """Where a halved step would be too short, the shortest one is taken: two ends agree by it."""
    runs = Runs(monkeypatch)
    here = lab_of(runs, length=0.6 * 0.125 * MOST)  # one halving leads beyond MOST steps
    here.asked = Asked(runs, "", 1, 0.0, here.length, (None,), False, omega=2.0)
    found = answer(here, here.asked, None, here.length, 1e-14, None)
    assert found is not None and found.known.steps == MOST and found.unsure < 1e-14


def test_pilots_whose_steps_are_dear_have_few(monkeypatch):
    """No pilot takes longer than MOST_SECONDS, as far as the steps before tell."""
    runs = Runs(monkeypatch, each=0.01)
    here = lab_of(runs)
    here.pilot(8, 0.1, None)
    assert here.shortest(None) == pytest.approx(10.0 * 0.01 / lab.MOST_SECONDS)
    answer(here, here.asked, None, here.length, 1e-30, None)
    assert max(round(10.0 / h) for _, h in runs.done if h > 1e-3) <= 1.01 * lab.MOST_SECONDS / 0.01


@pytest.mark.parametrize(
    ("noise", "tol", "paces"),
    [(1e-13, 1e-13, (None,)), (1e-13, 1e-15, (None, "auto")), (1e-10, 1e-10, (None, "auto")), (0.0, 1e-10, (None,))],
)
def test_an_answer_that_rounding_limits_is_an_answer(noise, tol, paces, monkeypatch):
    """Ends that differ by less than a unit in the last place a step: no pace is tried, unless tol is far below."""
    runs = Runs(monkeypatch)

    def rounded(*given):
        path = runs(*given)
        path.q += noise * (-1) ** len(runs.done)
        return path

    here = lab_of(rounded, length=1000.0)
    here.asked = Asked(rounded, "", 1, 0.0, here.length, (None, "auto"), False, omega=1.0)
    assert worth_trying(here, tol) == paces


@pytest.mark.parametrize(("part", "whole"), [(0.6, True), (0.4, False)])
def test_a_pilot_that_is_nearly_the_run_is_the_run(part, whole, monkeypatch):
    runs = Runs(monkeypatch)
    here = lab_of(lambda *given: runs(*given[:2], part * given[2], *given[3:]))
    assert reach(here, "auto").time == pytest.approx(10.0 if whole else 4.0)


def test_steps_with_much_continuation_are_not_lengthened(monkeypatch):
    """Longer steps need more continuation, which is dear: a pilot that is as accurate as asked for is enough."""
    for part, longest in ((0.0, 0.3), (0.05, 0.05)):
        runs = Runs(monkeypatch, continued=lambda h, part=part: part)
        here = lab_of(runs)
        here.pilot(4, 0.05, None)
        option = measured(here, 4, None, marked(1e-6), 0.0, 1.0)
        assert option is not None and not option.why and max(h for _, h in runs.done) >= longest
        assert (option.h == 0.05) == (part > 0)


@pytest.mark.parametrize("spent", [0.0, 10.0])
def test_a_member_without_time_is_judged_by_what_was_run(spent, monkeypatch):
    """Pilots that were run for another reason are used; further ones only if there is time."""
    runs = Runs(monkeypatch, each=1e-4)
    here = lab_of(runs)
    here.pilot(4, 0.25, None)
    here.budget.spent += spent
    count = len({h for _, h in runs.done})
    option = measured(here, 4, None, marked(1e-6), 0.0, 0.01)
    assert option is not None and not option.why
    assert (len({h for _, h in runs.done}) == count) == (spent > 0)
    assert measured(here, 6, None, marked(1e-6), 0.0, 0.01) is None or spent == 0.0


def test_a_horizon_follows_from_the_law_of_growth():
    """Errors of Kepler's problem grow like t: a tolerance that is missed at t = 10⁶ is kept for far longer than a pilot
    takes, and is missed long before the end.
    """
    problem, tol = la.problems.get("kepler"), 1e-9
    start = {"q0": problem.q0, "p0": problem.p0}
    advice = la.advise(problem.system, **start, t_end=1e6, tol=tol)
    assert advice.growth.rate == 0 and 1e4 < advice.horizon < 3e5
    assert f"kept until t = {advice.horizon:.4g}" in advice.notes[0]
    chosen, half = advice.chosen, advice.horizon / 2
    path = la.integrate(
        problem.system, chosen.method, **start, h=chosen.h / 1.25, t_end=half, pace=chosen.pace, every=2**40
    )  # fmt: skip
    assert np.abs(path.q[-1] - problem.exact(half)[0]).max() <= tol * advice.size


def test_errors_that_grow_beyond_all_numbers():
    """The derivative of a chaotic pilot overflows, without a warning of NumPy, which would fail the test."""
    problem = la.problems.get("double-pendulum-chaotic")
    advice = la.advise(problem.system, problem.q0, problem.p0, t_end=2000.0, tol=1e-9)
    assert 5 < advice.horizon < 20 and advice.growth.rate > 0


def test_a_pace_may_take_far_more_steps_than_equal_ones_that_end_anywhere():
    """Two of three bodies nearly collide: equal steps of a pilot pass through the encounter and end anywhere; the pace
    needs fifty times as many.
    """

    def three(q, v):
        pairs = ((0, 1), (0, 2), (1, 2))
        return 0.5 * v @ v + sum(
            1 / np.sqrt((q[2 * i] - q[2 * j]) ** 2 + (q[2 * i + 1] - q[2 * j + 1]) ** 2) for i, j in pairs
        )

    q0 = [0.9561313203622692, -0.4783145246567615, -0.23187847869863876, 0.7609112545110903, 0.38024559345811393,
        -0.6600839119582034]  # fmt: skip
    v0 = [0.14149046053948477, -0.4783003741509432, 0.2487488201359036, 0.10468672395088685, 0.16250654701293432,
        0.06770289881495961]  # fmt: skip
    system, tol = la.Lagrangian(three, n=6), 7.97e-06
    path = la.integrate(system, q0=q0, v0=v0, t_end=2.7701982104051526, tol=tol)
    given = {"q0": q0, "v0": v0, "t_end": 2.7701982104051526, "pace": "auto", "every": 2**40}
    fine = la.integrate(system, "P12N12Q24Gau", **given, h=0.05)
    assert path.advice.chosen.pace == "auto" and path.advice.reached <= tol
    assert np.abs(path.q[-1] - fine.q[-1]).max() <= tol * path.advice.size
