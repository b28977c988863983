"""Steps of a composition: those of its method one after the other, each with an h and with predictions of its own.

Each factor is a phase: a run (`run.run`) with its own state; its step begins where the step of the phase before has
ended. A phase remembers its own steps, which lie one whole step apart.
"""

from __future__ import annotations

from leastaction.backends.layout import ADDRESSES, RUN
from leastaction.backends.loops.machine import at, call_run, doubles, integers, native, reader

read_run = reader(RUN)


@native
def run(table, phases, first, steps, address, home, directions):
    """Whole steps first … first + steps.

    table        for each phase the addresses of what `run.run` is given
    home         (q, p) of each lane after its last whole step
    directions   the directions carried along, after the last whole step
    """
    for k in range(first, first + steps):
        for j in range(phases):
            row = at(table, j * ADDRESSES)
            A = read_run(integers(row[0]), doubles(row[1]), row[2])
            A.end[0] = k + 1
            call_run(address, row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7], row[8], row[9])
            onward = at(table, (j + 1) % phases * ADDRESSES)
            if phases > 1:
                _hand_over(A, doubles(row[3]), doubles(onward[3]))
        last = at(table, (phases - 1) * ADDRESSES)
        A = read_run(integers(last[0]), doubles(last[1]), last[2])
        if not _come_home(A, doubles(last[3]), home):
            return
        tangent = doubles(last[8])
        for i in range(A.columns * 2 * A.n):
            directions[i] = tangent[i]


@native
def _hand_over(A, old, new):
    """Hand over to the next phase: q, p, what rounding left of them, the force of explicit steps, which lanes go on."""
    T = A.stride
    for group in range(A.groups):
        X, Y = at(old, group * A.size * T), at(new, group * A.size * T)
        for i in range(T):
            Y[A.alive * T + i] = X[A.alive * T + i]
        for i in range(A.q * T, A.handed * T):
            Y[i] = X[i]


@native
def _come_home(A, states, home):
    """Keep the states of the lanes that have done a whole step; returns whether there are such lanes."""
    T, found = A.stride, False
    for group in range(A.groups):
        X = at(states, group * A.size * T)
        for i in range(A.lanes):
            if X[A.alive * T + i] != 0.0:
                found = True
                own = at(home, (group * A.lanes + i) * 2 * A.n)
                for j in range(A.n):
                    own[j] = X[A.q * T + j * A.coordinate + i]
                    own[A.n + j] = X[A.p * T + j * A.coordinate + i]
    return found
