"""The ways that pilots may take: equal steps or a pace, and how far."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from leastaction.pilots.answer import worth_trying
from leastaction.pilots.asked import Asked
from leastaction.pilots.lab import Lab
from leastaction.pilots.reach import SCOUTED, Reach, affordable, reach, scouted
from leastaction.pilots.search import following

FEWER = 100.0  # times fewer steps with a pace than equal ones, each of which is cheaper: equal ones may be left out
SHORTER_IF_STRAINED = 4.0  # times as short are the steps of pilots if their first steps need continuation


@dataclass(frozen=True, eq=False)
class Ways:
    """The paces with which pilots go, and how far each leads; the length of the pilot; and a note if equal steps are
    spared.
    """

    lab: Lab
    reaches: dict[Any, Reach]
    length: float
    spared: str = ""


def ways(asked: Asked, tol: float) -> Ways:
    """The paces that are worth a pilot, and the length of the pilot."""
    lab = _with_a_frequency(asked, tol)
    paces = worth_trying(lab, tol)
    spared = ""
    if None in asked.paces and None not in paces:
        spared = "not measured: equal steps, which do not lead to the end of the run"
    lab.asked = replace(lab.asked, paces=paces)
    found = {pace: reach(lab, pace) for pace in paces}
    reaches = {pace: one for pace, one in found.items() if one is not None}
    length = min(asked.length, max(one.time for one in reaches.values()))
    if None in reaches:
        more = _times_more(reaches, length)
        if more > FEWER:  # without a trial of equal steps, whose code would have to be loaded
            del reaches[None]
            spared = f"not measured: equal steps, of which {more:.0f} times as many are needed"
        else:
            length = min(length, affordable(lab, None))
    # Where constraints hold, strain is dear enough to avoid it in pilots of the whole run, too.
    shorter = SHORTER_IF_STRAINED if lab.strained and (length < asked.length or asked.held) else 1.0
    lab.asked = replace(lab.asked, paces=tuple(reaches), omega=shorter * lab.asked.omega)
    return Ways(lab, reaches, length, spared)


def _with_a_frequency(asked: Asked, tol: float) -> Lab:
    """The lab of the whole run. Where the start tells no frequency, a first part of the run is scouted."""
    if asked.omega * asked.length > 2 or asked.linear:
        return Lab(asked, asked.t_end)
    scout = Lab(asked, asked.t0 + math.copysign(SCOUTED * asked.length, asked.t_end - asked.t0))
    omega = scouted(scout, asked.scouting(following(asked, tol)), asked.paces[0])
    return Lab(replace(asked, omega=omega), asked.t_end, scout)


def _times_more(reaches: dict[Any, Reach], length: float) -> float:
    """How many times as many equal steps lead to the end of a pilot as steps with a pace."""
    others = [one.steps for pace, one in reaches.items() if pace is not None and one.time >= length]
    return reaches[None].steps / min(others, default=math.inf)
