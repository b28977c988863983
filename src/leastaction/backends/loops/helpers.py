"""What the threads do that help the first thread of a run: piece after piece, until the run is over (`team`)."""

from __future__ import annotations

from leastaction.backends.loops import team
from leastaction.backends.loops.advancing import assess_piece, measure_piece, propose_piece
from leastaction.backends.loops.explicit import copy_piece, drift_piece, leap_more_piece, leap_piece
from leastaction.backends.loops.machine import native, read_shared
from leastaction.backends.loops.rows import add_more_piece, add_piece
from leastaction.backends.loops.swift_chords import (
    begin_piece,
    chord_piece,
    chord_rest_piece,
    place_piece,
    push_piece,
    push_rest_piece,
)
from leastaction.backends.loops.team import read_team, take, tell, wait


@native
def work(I, D, place, me):
    """Help the team whose record is here as thread `me`, until the team stops."""
    J = read_team(I, D, place)
    spins = 0
    while read_shared(J.stop) == 0:
        i, kind = take(J, me)
        if i < 0:
            spins = wait(J, spins)
            continue
        spins = 0
        _do(I, D, J, i, kind)
        tell(J, me)


@native
def _do(I, D, J, i, kind):
    """A piece of work of this kind."""
    if kind == team.COPY:
        copy_piece(I, D, J, i)
    elif kind == team.DRIFT:
        drift_piece(I, D, J, i)
    elif kind == team.LEAP:
        leap_piece(I, D, J, i)
    elif kind == team.LEAP_MORE:
        leap_more_piece(I, D, J, i)
    elif kind == team.ADD:
        add_piece(I, D, J, i)
    elif kind == team.ADD_MORE:
        add_more_piece(I, D, J, i)
    elif kind == team.BEGIN:
        begin_piece(I, D, J, i)
    elif kind == team.PLACE:
        place_piece(I, D, J, i)
    elif kind == team.CHORD:
        chord_piece(I, D, J, i)
    elif kind == team.CHORD_REST:
        chord_rest_piece(I, D, J, i)
    elif kind == team.PUSH:
        push_piece(I, D, J, i)
    elif kind == team.PUSH_REST:
        push_rest_piece(I, D, J, i)
    elif kind == team.MEASURE:
        measure_piece(I, D, J, i)
    elif kind == team.ASSESS:
        assess_piece(I, D, J, i)
    elif kind == team.PROPOSE:
        propose_piece(I, D, J, i)
