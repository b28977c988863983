"""Runs whose method, step and pace are chosen for a tolerance, for one trajectory and for many.

1. How errors grow (`growth`): two runs with the same steps, about 1/ω long, whose starts differ by one unit in the last
   place. Their difference at the end is what rounding makes of it. Where it leaves nothing of the end, as in chaotic
   motions, the time until which the tolerance can be kept is aimed at.
2. The step (`search`): runs with shorter and shorter steps. The difference of two runs is the error of the one with
   longer steps, and by the order of the member it tells the step for the tolerance. Once it is known, the work of all
   members is computed (`ladder`); another one is taken if it saves more than its machine code costs.
3. The evidence: two runs with different steps agree within the tolerance, and so does a third one by three quarters of
   the order. Rounding is measured again with the final step. The error told is the largest of all these.

A run takes as many instructions as it has iterations, times those of the Programs at its nodes. Nothing looks at a
clock, so the same call gives the same answer on every machine. Equal steps come first; the pace that the library makes
from L joins where they take much work (`search.settle`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from leastaction.errors import StepFailed
from leastaction.results.path import Path
from leastaction.run.advice import Advice
from leastaction.systems.protocol import System, check_system
from leastaction.tolerance.report import advice_of, warn_if_missed, with_run
from leastaction.tolerance.search import NO_STEPS, judged_by_all, settle
from leastaction.tolerance.trials import Many, One

__all__ = ["Many", "One", "advice_for", "advice_for_many", "integrate_within", "measurable"]


def advice_for(one: One, tol: float) -> Advice:
    """The advice for one trajectory."""
    return advice_of(one, settle(one, tol), tol)


def advice_for_many(many: Many, tol: float) -> Advice:
    """One advice for many trajectories: the step is found with some of them, and all judge it."""
    some = many.sample()
    found = settle(some, tol)
    if some is not many:
        found = judged_by_all(many, found, tol)
    advice = advice_of(many, found, tol)
    warn_if_missed(advice, 4)
    return advice


def integrate_within(one: One, tol: float, **options: Any) -> Path:
    """A run of one trajectory that keeps the tolerance, or says that it does not."""
    advice = advice_for(one, tol)
    chosen = advice.chosen
    try:
        path = one.whole(chosen.method, chosen.h, chosen.pace, advice=advice, **options)
    except StepFailed as failure:  # only a part of a long run was tried
        failure.add_note(NO_STEPS)
        raise
    if options.get("store") is None:
        path = replace(path, advice=with_run(path.advice or advice, path))
    warn_if_missed(path.advice or advice, 4)
    return path


def measurable(system: System, pace: Any, inputs: Any = None) -> System:
    """The system as trials can run it: a sum is written out, unless it is large and has no pace. Inputs, which belong
    to steps, are refused.
    """
    check_system(system)
    if inputs or system.inputs:
        raise ValueError(
            "tol= tries many methods and steps, and inputs have values for the steps of one method: give method= and "
            "h=, and compare with a run of h/2"
        )
    return system.expanded() if system.has_tangent or pace is not None else system
