"""Threads that share the work of one trajectory: the first does the run, the others help it through its long loops.

Work is cut into pieces, which do not depend on the threads nor on their number. Each thread has its part of the pieces,
the same part every time, so that what it works on stays in the cache of its core. A thread that has done its part takes
pieces of others who have not done half of theirs, and after a moment any piece, so that no thread waits for long for
one that the machine has put aside. (Without that moment threads that are equally fast take pieces from each other. What
such pieces work on has to come from the cache of another core; that takes long, and so pieces are taken again.)

One integer of each thread, its ticket, tells what is left of its part: the generation and the kind of the work, and the
pieces left. A thread that lowers a ticket by one has a piece, and until that piece is done the first thread waits, so
that what describes the work stays. What a thread changes often lies apart from what others read: each change would cost
them a moment.
"""

from __future__ import annotations

from leastaction.backends.layout import APART, TEAM
from leastaction.backends.loops.machine import (
    add_shared,
    at,
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
    DRIFT, LEAP, LEAP_MORE, ADD, ADD_MORE, BEGIN, PLACE, CHORD, CHORD_REST, PUSH, PUSH_REST, MEASURE, ASSESS,
    PROPOSE, COPY,
) = range(1, 16)  # fmt: skip
KIND, LEFT = 32, 0xFFFFFFFF  # of a ticket: where the kind begins, and the pieces left
GENERATION = 40
SPINS = 20_000  # looks at the tickets before a thread sleeps between them
PATIENCE = 200  # looks before a thread takes the last pieces of another


@native
def share(I, D, J, kind, count, piece):
    """piece(I, D, J, i) for all i < count, by all threads; `kind` tells helpers which function that is."""
    if J.helpers == 0 or count == 1:
        for i in range(count):
            piece(I, D, J, i)
        return
    J.count[0] = count
    J.asked[0] += count
    J.generation[0] = (J.generation[0] + 1) & 0x7FFFFF
    for k in range(J.helpers + 1):
        left = _begin(J, k + 1) - _begin(J, k)
        write_shared(at(J.ticket, k * APART), (J.generation[0] << GENERATION) | (kind << KIND) | left)
    spins = 0
    while _done(J) < J.asked[0]:
        i, _ = take(J, 0, spins)
        if i < 0:
            spins = wait(J, spins)
            continue
        piece(I, D, J, i)
        tell(J, 0)


@native
def _begin(J, k):
    """Where the part of thread k begins."""
    return J.count[0] * k // (J.helpers + 1)


@native
def _done(J):
    """The pieces that all threads have ever done."""
    total = 0
    for k in range(J.helpers + 1):
        total += read_shared(at(J.done, k * APART))
    return total


@native
def tell(J, me):
    """A piece is done."""
    add_shared(at(J.done, me * APART), 1)


@native
def take(J, me, spins):
    """The number of a piece to do and its kind, of the own part or, after so many looks, of another; −1 where there is
    none.
    """
    for other in range(J.helpers + 1):
        k = (me + other) % (J.helpers + 1)
        least = 0 if other == 0 or spins >= PATIENCE else (_begin(J, k + 1) - _begin(J, k)) // 2
        ticket = read_shared(at(J.ticket, k * APART))
        while ticket & LEFT > least:
            if exchange_shared(at(J.ticket, k * APART), ticket, ticket - 1):
                return _begin(J, k + 1) - (ticket & LEFT), (ticket >> KIND) & 0xFF
            ticket = read_shared(at(J.ticket, k * APART))
    return -1, 0


@native
def wait(J, spins):
    """A moment; after many of them a thread sleeps."""
    if spins < SPINS:
        pause()
    else:
        sleep(J.nap, J.nap_time)
    return spins + 1
