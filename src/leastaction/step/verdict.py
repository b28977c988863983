"""The verdict on an iteration: is the step solved, is the root to be trusted, is the kept Jacobian worth keeping?

An iteration changes the unknowns by increments. Each coordinate is judged on its own scale, so that neither units nor a
fast or heavy neighbour matter: with d_j the largest increment of coordinate j at any control point and scale_j the
largest |z_j^ν| in this step so far, the size of the k-th increment is δ_k = max_j d_j / scale_j, and θ = δ_k/δ_{k−1}.

    done        if what would come next is negligible, or if δ_k is small and shrinks no more (θ > ½): the floor. A
                chord may also be slow, so its δ_k has to be next to nothing, or the rounding of momenta (below).
                After a fresh Jacobian at both, the next increment is δ_k θ² (Newton), else δ_k θ (a chord). After a
                chord that contracts by θ, one that corrects twice contracts by θ², too.
    in doubt    if the first increment is longer, in any coordinate, than thrice the latest steps and than one and a
                half times h times the velocity; if the root is farther away than twice that; or if the iteration
                contracts less than the theorem below promises; or if the determinant has turned.
    keep        if as many chords as cost a fresh Jacobian will end the iteration, or if δ_k is rounding.

If the second Newton increment is at most a quarter of the first, the root is the only one near the prediction (the
affine-invariant Newton–Kantorovich theorem; Deuflhard, *Newton Methods for Nonlinear Problems*, 2.1). With the first
Jacobian kept the second increment is shorter, κ/2 of the first, not (κ/2)/(1 − κ): where the latter factor is a
quarter, κ = 1/3, the former is a sixth. The theorem's κ holds all along: with κ ≤ 1/3 a third Newton increment is at
most a fourteenth of the second, and one with a kept Jacobian is never more than 0.42 of the one before. Where later
increments are longer than a quarter, or a half, of those before, the first two were no evidence, and the root may be a
wrong one. Where the first increment of a chord is a small part of the step already (NEARBY), a half is enough for the
second, too. The theorem's constant is seen at one place only, so this is no proof; `docs/design.md` says what was
measured.

Begun again. Where a step is coarse, its prediction is often too far off to be judged by: the first increment is as long
as half the step, and the second a third of the first, though all that follow shrink by ten and more. The theorem holds
from any place. So where the second increment is longer than the theorem allows, but shorter than the first, the place
that the first one led to becomes the prediction: the second increment is now the first one, and the next one has to be
a sixth of it. Where the first increment reaches too far, the prediction was wild: it is dropped once, with its scale,
and the place that the increment led to becomes the prediction. Both happens BEGUN_AGAIN times at most. How far the
increments from there and the root may reach stays as it is.

Turned. Along the branch from h = 0 the determinant of ∂R/∂z keeps the sign that it has at h → 0, that of det(L_vv)^s,
as long as the branch has no fold. A root where it has the other sign is not connected with h → 0, or only beyond a
fold, however well the iteration contracts: it is in doubt, and continuation decides (`step.continuation`). Newton's
iteration knows the sign from its pivots. Chords contract only where the determinant has the sign of the matrix that
they solve with, and the mass has the right one. With multipliers the sign at h → 0 is known to continuation alone.

Coarse. Over the waves of a force the last step tells nothing of the next one, and a prediction may come near any of
several roots, by chance as near as one likes, with the right sign and with the best contraction. What tells is the
matrix: roots are many only where h² times the slope of the force is not small beside the mass. So wherever a matrix is
eliminated, its pivots are compared with those of a short step (`coarse`, `departs`); where one of them differs by more
than COARSE, the prediction is not used. The step is then found from the velocity alone, by the linearised step
(`step.prediction`) or by continuation. Mass chords are not asked, since they contract only where the matrix is near
that of a short step; nor is Newton's iteration where chords in kernels came NEARBY before they failed; nor a step
whose ∂R/∂z does not depend on z, which has one root (`Step.branching`).

Unique. Pivots differ from those of a short step wherever a step is stiff, and where many coordinates move, one of them
often reaches farther than it did lately. But where the slope of the force changes by little, a step has one root,
however stiff it is. So where a step is in doubt, or coarse, its iteration goes on, from elsewhere if that was wild.
Its root is good if it is the only one in a box around it (`backends.fused.uniqueness`): the root itself says how wide
the box has to be, not the prediction, nor the velocity, which tells nothing where h ω is large.

Steady. An increment of some ε (ROUNDING) is rounding for the most part, and its size is chance. If the verdict looked
at that size, chance would decide where the iteration ends: rather where rounding has led back to the place before,
which lies on the side of the prediction. Roundings would be chosen, in step after step: the energy of charges by
shifted chords drifted by up to 4.8·10⁻⁴ ε a step. So there such an increment counts as θ δ_{k−1}, with the rate θ
before it, or as ROUNDING where that is less, and so do those that follow: longer increments decide how many there are.

In continuation (`step.continuation`) scale_j is at least the longest step of coordinate j on the way from h = 0: a
coordinate that turns back and passes the place where it began has no step there, and would have no scale. A coordinate
that has not moved at all on the way has no reach, either: if it moves now, as a body that another one meets, then
others have set it in motion, and the contraction alone can judge it.

Floors. A coordinate may rest, or all but rest, while rounding moves it: its increments are then noise, and there is
nothing to compare them with. Noise of coordinate j is some ε of what its step is summed from, with the matrix X of the
midpoint rule, so that what is stiff holds its place, and the noise of coordinates moves others:

    x_j = |h| Σ_k |X⁻¹|_jk ( |p_k| + Σ_l (|m_q|_kl |q_l| + |m_v|_kl |v_l|)
                                + |h| (|f_k| + Σ_l |f_q|_kl |q_l| + |f_v|_kl |v_l|) ),

    X = m_v + h/2 (m_q − f_v) − h²/4 f_q.

Constraints g(t, q) = 0, which are met to their rounding, add b = |K| |∂g/∂q| |q| without a power of h, K =
M⁻¹Gᵀ(G M⁻¹Gᵀ)⁻¹, and (|m_q − f_v| + |h| |f_q|) b to what momenta are summed from, and pass a part of any coordinate's
noise on to all. Where continuation was needed, x_j is computed, and continuation itself has these floors where it finds
no root without them. From then on, as long as coordinate j moves by little of x_j (STILL NOISE), increments count by
what they exceed NOISE x_j, and the reach is at least that. But x_j is a bound, and what shrinks is no noise: in the
loops, without constraints, an iteration goes on as long as its increments, in units of the floors, shrink by half, and
what comes next is not negligible beside x_j. Steps of many stiff coordinates ended too early without this rule, and
their momenta, by h f_q δz, were off by 10⁵ ε (`tests/test_dense_mass.py`).

The rounding of momenta. Where a mass is ill-conditioned, as that of a long chain in angles, the rounding of momenta is
a large part of a step: 10⁻¹³ with twenty links, 10⁻¹² with fifty. A mass chord moves momenta by M dz/h. Momenta are
summed from M z/h. So an increment is their rounding if it could come from other last bits of the mass,

    |M dz^ν|_k ≤ UNCERTAIN (|L| |U| scale)_k    for all k and ν,        M = L U.

At the floor the left side was one to four ε of the right one, with s = 1 … 16 and n = 20, and with s = 8 and n = 50.
Each momentum is judged in its own unit, and no inverse is needed: M dz is −h S⁻¹ R of the mass chord. An increment that
is not rounding does not pass, whether it shrinks or not: chords that diverge from a good prediction are as small as
those at a high floor. What comes next is negligible, too, if it is beside the rounding of momenta what is negligible
beside that of a step: θ |M dz^ν|_k ≤ NEGLIGIBLE ε (|L| |U| scale)_k.

Woken. A coordinate that others alone set in motion, as by v_k² of a neighbour that starts from rest, is not moved by
the first iteration, or by next to nothing, and all of its step comes with a later iteration: on its own scale that
increment is one, however well the iteration contracts. But the theorem holds in any norm. Where an iteration makes the
step of coordinate j so many times longer than it was (WAKING), its increment counts as a part WOKEN of δ_{k−1} at most,
as it does in a norm with a longer scale_j. Every increment that follows is measured by the new scale.

The rule is written once, without branches, on Values of a Builder: inlined in fused kernels, compiled for the native
loops, evaluated at any precision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leastaction.program import Builder, Program

EPS = 2.0**-52
# An increment that changes nothing any more, relative to the step: this part of the last place …
NEGLIGIBLE = 1e-3
# … and one so small that, if it shrinks no more, rounding is the reason: this power of the last place.
ACCEPTABLE = 1e-7
# Where the last increments are not part of the result, but only the place of the last forces, they may be longer …
FINISHED = 8.0
UNSEEN = 1e-4  # … as long as the result is off by no more than this part of what is negligible: 10⁻⁷ ε
ONE_SIDED = 1e-2  # of what is negligible: where a chord ends, what is left has a side, that of the prediction
AT_THE_FLOOR = 2.0**18  # negligible increments: some hundred units in the last place
ROUNDING = 2.0**13  # negligible increments: some units in the last place, where rounding may be all that is seen
UNCERTAIN = 16 * EPS  # an increment is rounding if it moves momenta by no more than this part of their summands
MOST_ITERATIONS = 50
# Increments that small are no motion, and have no digits left to compare.
TINY = 1e-280
ON_THE_BRANCH = 0.25
SECOND_CHORD = ON_THE_BRANCH / 1.5
NEARBY = 1 / 16  # a prediction that missed by no more than this part of the step was near any root there is
FOLLOWED = 2.0**-10  # a first step that the motion from node to node missed by no more than this is that motion
LATER_CHORD = 0.5
BEGUN_AGAIN = 2  # times that a place reached by chords becomes the prediction, at most
REACH = 3.0  # a step may be thrice as long as the latest ones (the longest of these, fading) …
GOING = 1.5  # … or half as long again as h times the velocity
FAR = 2.0
NOISE = 2.0**-46  # of x_j: increments as small as that are rounding
STILL = 2.0**40  # the noise of a coordinate that moves by more than so many times its noise does not count
WAKING = 2.0**10  # a step so many times longer than before this iteration was set in motion by others …
WOKEN = 0.1  # … and its increment counts as this part of the last one, at most
SETTLED = 1e-9  # an increment of a sum's velocity so small, relative to it, is rounding if it shrinks no more
ROUGH = 64 * EPS  # of what momenta move a velocity by: what their rounding does
FORGETTING = 0.5  # the factor by which the length of an old step shrinks with every step
PART = 0.25  # an iteration that leads to a new prediction counts as this part of one
COARSE = 0.4  # by so much of itself a pivot may differ from that of a short step, where roots are trusted
DEAR = 3  # where a fresh Jacobian costs more than so many chords, the second iteration is a chord

# What an iteration tells the verdict: its size, that of the one before, iterations before this one; whether all numbers
# are finite, the first increment reaches too far, the root lies too far; whether there was doubt before; and whether a
# chord's increment is the rounding of momenta, whether the root will be shown to be the only one (`unique`), and how
# large the increments are, and were before, in units of the floors of coordinates that have one.
SEEN = (
    "size", "before", "iterations", "sound", "off", "far", "doubt", "hidden", "unique", "noisy", "noisy_before",
)  # fmt: skip
# What it answers to loops that do not begin again.
DECISIONS = ("solved", "ended", "good", "doubt", "keep", "left", "size")


def verdict(
    x: Mapping[str, Any],
    *,
    fresh: bool,
    chords: int,
    checked: bool = True,
    known: Any = None,
    again: bool = False,
    twice: bool = False,
    hidden: Any = None,
    unique: Any = None,
    noisy: Any = None,
    noisy_before: Any = None,
    finished: bool = False,
    sided: bool = False,
    steady: Any = None,
    negligible: Any = NEGLIGIBLE * EPS,
    acceptable: Any = ACCEPTABLE,
) -> dict[str, Any]:
    """From what was SEEN of an iteration: solved, ended, good, doubt and keep, each 1 or 0; `left`, what comes next;
    `size`, as which the increment counts; `counts`, by which the number of iterations is to grow: by one, or by less
    where the iteration begins again; and `anew`, whether it does so with another scale.

    fresh     whether this iteration had a fresh Jacobian
    chords    how many iterations with a kept Jacobian cost about as much as a fresh one
    checked   whether a root must be seen to be the one nearby; else any root is good, and nothing is in doubt
    known     a rate by which increments shrink, if it is known from before: rounding may hide it now, and where an
              increment is no more than rounding, it also tells how long the increment would have been without
    steady    the same rate, of chords that chance must not end: an increment that is rounding counts as this rate says
    again     whether chords may begin again from the place they have reached
    twice     whether this chord corrects twice, while the first one corrected once
    hidden    how many times a chord's increment is contained in the rounding of momenta, zero if nobody has looked
    unique    whether it will be asked once the step is solved if that is the only root: then nothing is in doubt now
    noisy     how large the increments are in units of the floors, and `noisy_before`: what shrinks is no noise
    finished  whether, once solved, the forces at the place that was reached are evaluated, and the result follows from
              these: then it is off by θ times what comes next, which may be FINISHED times as long, or longer where
              that is UNSEEN
    sided     whether what is left is part of the result, by a chord that comes from the side of the prediction, step
              after step: then it must be less (ONE_SIDED)
    """
    enough = negligible * FINISHED if finished else negligible * ONE_SIDED if sided else negligible
    size, before, iterations = x["size"], x["before"], x["iterations"]
    first, second = iterations < 1, (iterations < 2) & ~(iterations < 1)
    if noisy is not None:  # all increments may have been noise before
        before = (before <= 0.0).where(TINY, before)
    if steady is not None:
        rounding = negligible * ROUNDING
        size = (~first & (size <= rounding)).where((before * steady).op("min", rounding), size)
    rate = size / before
    gain = rate  # of a chord that follows
    if fresh and chords <= DEAR:
        gain = second.where(rate * rate, rate)
    if twice:  # where the iteration has begun again, the chord before this one corrected twice, too
        gain = (second & (iterations < 1.0 + 0.5 * PART)).where(rate * rate, rate)
    if known is not None:
        gain = gain.op("min", known)
    small = size <= acceptable
    left = size * gain
    if known is not None:
        left = (size <= negligible * ROUNDING).where(size.op("min", before * known) * gain, left)
    # A Newton increment that shrinks no more is rounding; a chord's may also be slow, unless it is next to nothing.
    floor: Any = small if fresh else size <= negligible * AT_THE_FLOOR
    if hidden is not None and not fresh:
        floor = floor | (hidden >= 1.0)
    stalled = (rate > 0.5) & floor
    over = (left <= enough) | (left * gain <= negligible * UNSEEN) if finished else left <= enough
    if hidden is not None and not fresh:
        over = over | (gain * UNCERTAIN <= hidden * negligible)
    solved = x["sound"] & ((size <= negligible) | (~first & (over | stalled)))
    if noisy is not None:
        least = enough / NOISE
        shrinks = first | ((noisy <= 0.5 * noisy_before) & (noisy * noisy > least * noisy_before))
        settling = solved & shrinks & (noisy > least)
        solved = solved & ~settling
    ended = solved | ~x["sound"] | (iterations > MOST_ITERATIONS - 1.5)
    most: Any = ON_THE_BRANCH if fresh else (second & (before > NEARBY)).where(SECOND_CHORD, LATER_CHORD)
    doubt, counts, anew = x["doubt"], 1.0, size * 0.0
    if checked:
        off, slow = first & x["off"], ~first & ~small & ~(rate <= most)
        if again:
            anew = off & (iterations < 0.5 * PART)
            begun = anew | (slow & (rate < 1.0) & (iterations < 1.0 + (BEGUN_AGAIN - 0.5) * PART))
            off, slow, counts = off & ~anew, slow & ~begun, begun.where(PART, 1.0)
        doubt, far = doubt | off | slow, x["far"]
        if unique is not None:
            doubt, far = doubt & ~unique, far & ~unique
    keep: Any = left * _power(gain, chords) <= enough
    if fresh:
        keep = ~first & keep if chords <= DEAR else first | ~first
    else:
        keep = first | keep if hidden is None else first | keep | (hidden >= 1.0)
        if noisy is not None:
            keep = keep | settling
    if checked and again:
        keep = keep | begun
    return {
        "solved": solved,
        "ended": ended,
        "good": solved & ~doubt & ~far if checked else solved,
        "doubt": doubt,
        "keep": keep,
        "left": left,
        "size": size,
        "counts": counts,
        "anew": anew,
    }


def coarse(ratios: Sequence[Any]) -> Any:
    """Whether a step is so coarse that a root near its prediction may be any of several: from the ratios of the pivots
    of ∂R/∂z for h → 0 to those at the root.
    """
    most = abs(ratios[0] - 1.0)
    for ratio in ratios[1:]:
        most = most.op("max", abs(ratio - 1.0))
    return ~(most <= COARSE)


def departs(real: float, imaginary: float) -> bool:
    """The same of one ratio, on floats: the native loops translate it. Pivots of a shifted chord are complex."""
    return not (real - 1.0) ** 2 + imaginary**2 <= COARSE**2


def landed(size: Any, before: Any, negligible: Any = NEGLIGIBLE * EPS) -> Any:
    """Whether a result from these forces is as good as one that the verdict of a `finished` iteration allows: they have
    moved the places by the size, and are off by what comes next.
    """
    return (size <= negligible * FINISHED) | (size * (size / before) <= negligible * UNSEEN)


def _power(x: Any, exponent: int) -> Any:
    """x to the power of a positive integer, by squaring."""
    if exponent == 1:
        return x
    half = _power(x, exponent // 2)
    return half * half if exponent % 2 == 0 else half * half * x


def verdict_program(
    fresh: bool, chords: int, checked: bool = True, sided: bool = False, steady: bool = False
) -> Program:
    """The verdict as a Program: SEEN, negligible, acceptable and, if steady, the rate ↦ solved, ended, good, doubt,
    keep, left, size.
    """
    B = Builder([(name, 1) for name in (*SEEN, "negligible", "acceptable", *(["rate"] if steady else []))])
    x = {name: value for name, (value,) in B.blocks().items()}
    negligible, acceptable = x["negligible"], x["acceptable"]
    found = verdict(
        x, fresh=fresh, chords=chords, checked=checked, hidden=x["hidden"], unique=x["unique"], sided=sided,
        noisy=x["noisy"], noisy_before=x["noisy_before"], steady=x.get("rate"),
        negligible=negligible, acceptable=acceptable,
    )  # fmt: skip
    return B.finished(**{name: [value] for name, value in found.items() if name in DECISIONS})
