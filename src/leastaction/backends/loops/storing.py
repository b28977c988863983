"""What a run does around its steps: the inputs of a step, and the states that are stored."""

from __future__ import annotations

from leastaction.backends.layout import COUNTS, STEPS
from leastaction.backends.loops.machine import at, doubles, native


@native
def drive(A, X, k, who):
    """Write the inputs of step k to the state of a group; `who` are the trajectories in its lanes. Lanes beyond the
    last trajectory have the inputs of the last one.

    With points side by side the last node is repeated where there are no nodes.
    """
    table = at(doubles(A.table), (k - A.table_first[0]) * A.table_step)
    U, r, T, vectors, pitch, last = A.channels, A.nodes, A.stride, A.vectors, A.table_node, A.trajectories - 1
    given, apart = at(X, A.inputs * T), A.table_trajectory
    if vectors > 0:
        for j in range(U):
            for e in range(vectors * T):
                given[j * vectors * T + e] = table[min(e, r - 1) * pitch + j]
        return
    for i in range(A.lanes):
        own = at(table, min(who[i], last) * apart)
        for e in range(r):
            for j in range(U):
                given[(e * U + j) * T + i] = own[e * pitch + j]


@native
def store_states(A, X, done, who, counts, stored, tangent):
    """Store the states after so many steps."""
    T, row = A.stride, done // A.every - A.skipped
    for i in range(A.lanes):
        if X[A.alive * T + i] != 0.0 or counts[who[i] * COUNTS + STEPS] == done:
            own = at(stored, (who[i] * A.rows + row) * A.width)
            for j in range(A.kept_count):
                own[j] = X[A.q * T + A.kept_numbers[j] * A.coordinate + i]
            for j in range(A.columns * 2 * A.n):
                own[A.kept_count + j] = tangent[j]
