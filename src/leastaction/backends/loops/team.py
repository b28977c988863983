"""Threads that share the work of one trajectory: the first does the run, the others help it through its long loops.

Work is cut into pieces, which do not depend on the threads nor on their number; each thread takes the next piece that
no other has taken, so that no thread waits for one that the machine has put aside. One integer, the ticket, tells what
is left of the work: its generation, its kind and the pieces left. A thread that lowers the ticket by one has a piece,
and until that piece is done the first thread waits, so that what describes the work stays.
"""

from __future__ import annotations

from leastaction.backends.layout import TEAM
from leastaction.backends.loops.machine import (
    add_shared,
    exchange_shared,
    native,
    pause,
    read_shared,
    reader,
    sleep,
    write_shared,
)

read_team = reader(TEAM)

(
    DRIFT, LEAP, LEAP_REST, ADD, ADD_MORE, BEGIN, PLACE, CHORD, CHORD_REST, PUSH, PUSH_REST, MEASURE, ASSESS,
    PROPOSE, COPY,
) = range(1, 16)  # fmt: skip
KIND, LEFT = 32, 0xFFFFFFFF  # of a ticket: where the kind begins, and the pieces left
GENERATION = 40
SPINS = 20_000  # looks at the ticket before a thread sleeps between them


@native
def share(I, D, J, kind, count, piece):
    """piece(I, D, J, i) for all i < count, by all threads; `kind` tells helpers which function that is."""
    if J.helpers == 0 or count == 1:
        for i in range(count):
            piece(I, D, J, i)
        return
    J.count[0] = count
    J.generation[0] = (J.generation[0] + 1) & 0x7FFFFF
    write_shared(J.done, 0)
    write_shared(J.ticket, (J.generation[0] << GENERATION) | (kind << KIND) | count)
    i, _ = take(J)
    while i >= 0:
        piece(I, D, J, i)
        add_shared(J.done, 1)
        i, _ = take(J)
    spins = 0
    while read_shared(J.done) < count:
        spins = wait(J, spins)


@native
def take(J):
    """The number of a piece to do and its kind; −1 where there is none."""
    while True:
        ticket = read_shared(J.ticket)
        left = ticket & LEFT
        if left == 0:
            return -1, 0
        if exchange_shared(J.ticket, ticket, ticket - 1):
            return J.count[0] - left, (ticket >> KIND) & 0xFF


@native
def wait(J, spins):
    """A moment; after many of them a thread sleeps."""
    if spins < SPINS:
        pause()
    else:
        sleep(J.nap, J.nap_time)
    return spins + 1
