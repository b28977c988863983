"""Poles of charts: whether a step leaps over one.

Where a pivot of the mass M_cc of cyclic coordinates (`step.cyclic`) is zero, the chart has a pole, as at θ = 0 of a
spherical pendulum, M_cc = sin²θ. A motion passes there only if its momenta let it: twice the energy of the cyclic
motion,

    U(t, q_r) = (p_c − m_c) · M_cc⁻¹ (p_c − m_c),      m_c = m_c(t, q_r, v = 0),

is infinite at a pole, as 1/x² at the distance x, unless p_c − m_c is zero there. But nodes on both sides of a pole may
miss it, and then the step leaps over it without a word: the other coordinates see a force that is smooth at every node.
Such a root is not connected with h → 0. There all nodes are where the step begins, and as h grows, none of them passes
a place where U is infinite. So on the way from the start to the first node, from there to the second, … U must not be
more than BARRIER times what it is at both ends of this way and what kinetic energy the step has, Σ |p z^s|/h. Places
between are asked, SAMPLES on each way. Two neighbours among them differ by a factor of more than 5.8 wherever a pole
lies on the way, so where two differ by more than STEEP, the largest U near them is looked for, to NARROW of the way. A
barrier of which the places at a distance of 0.07 NARROW are not part is not seen: momenta which are zero but for their
rounding let a motion pass.

All this is asked of steps that chords in kernels do not solve, of every root that is tried (`loops.poles`). Of those
that they solve it is asked where a pivot would change, by its slope, by more than MILD of itself on the way from a node
to the next one. In ordinary steps it does not. Wherever uniform motions of up to nine radians, or accelerated ones,
lead over poles of sin²θ, it does, s ≥ 4; of s = 3 three in a thousand are not told. The pivots alone would not do: they
may be alike at all nodes of a step over two poles.

Such a step of chords is also refused if U differs from a node to the next by more than STEEP, where U is not small
beside the kinetic energy: so near to a pole a coarse step has several roots on its own side, too. Then the prediction
is not used, and the step is found from its velocity alone, as other coarse steps are (`step.verdict`).

Which members have such barriers. If a rule of r nodes is exact to degree s − 1, Σ_i b_i l_ν′(c_i) = l_ν(1) − l_ν(0). So
the equations Σ_i b_i l_ν′(c_i) m_c,i = (l_ν(1) − l_ν(0)) p_c have the solution m_c,i = p_c, and if r = s no other: U
counts at every node, as with Gauss' rules. Only these leave cyclic coordinates out. Other members with r = s, and steps
at N digits, are solved by iterations of all coordinates, which ask nothing of what lies between two nodes: their steps
may leap over a pole. If r > s, m_c,i is not p_c. The matrix of the cyclic velocities, Σ_i b_i l_μ′ l_ν′ M_cc,i, stays
definite where a node is at a pole, as long as s others are not. So nodes may pass poles on the branch from h → 0, and
only the energy tells that such a step is too coarse (`run.motion_checks`).
"""

from __future__ import annotations

from typing import Any

MILD = 0.5  # the part of itself by which a pivot of M_cc may change from a node to the next, by its slope, unasked
STEEP = 4.0  # the factor by which U differs at two places, where a pole may be near
SAMPLES = 4  # ways into which the way from a node to the next is cut
BARRIER = 16.0  # a step does not pass places where U is so many times the energies that it has
NARROW = 1e-8  # of the way from a node to the next: where the search for the largest U ends
LEAPT = 3.0  # what a state remembers of chords that ended so


def steep(pivot: Any, change: Any) -> Any:
    """Whether a pivot of M_cc would change, by its slope, by more than MILD of itself."""
    return abs(change) > MILD * abs(pivot)
