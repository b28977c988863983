"""The work of the external forces along a path, and the change that they make to the momentum of a symmetry.

Over one step a method sees the forces at its nodes, so their effect along a direction x(q, v) is

    ∫ F · x dt ≈ Σ_i h b_i F(t_i, q_i, v_i) · x(q_i, v_i)

with the polynomial and the rule of the step itself. Along v this is the work W, and E − W is constant up to the
method's order if L does not depend on time. Along a symmetry's ξ(q) = A q + b it is exactly the change of p · ξ(q): put
δz^ν = ξ(q^ν) into the discrete Lagrange–d'Alembert equations (Marsden and West, Acta Numerica 10, 2001, section 3.2.5).
RK4 weighs the cubic between its states by Simpson's rule, whose weights are its own: order 4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leastaction.methods import Composition, Galerkin
from leastaction.results.dense import increments, stepped
from leastaction.step.form import samples, stencils

if TYPE_CHECKING:
    from leastaction.results.path import Path

Reals = NDArray[Any]  # float64, or mpmath numbers
Direction = Callable[[Reals, Reals], Reals]  # q, v ↦ x, all (K, n)

BLOCK = 4096  # steps whose nodes are in memory at once


def accumulated(path: Path, along: Direction) -> Reals:
    """∫ F · x dt since the start at every stored time, (K,), for the direction x(q, v) of `along`."""
    if not path.system.forced:
        return path.reals.array(np.zeros(len(path)))
    if path.pace is not None:
        raise ValueError(
            "the work of forces is summed over equal steps of time, and this run has a pace. path.work() of such a "
            "run is known where neither L nor σ depends on t"
        )
    if isinstance(path.method, Composition):
        raise ValueError(
            f"the work of forces is not known for compositions, some of whose steps go back in time: run "
            f"{path.method.root.name}, or another method of order {path.method.order}"
        )
    if path.method.branch == "any":
        raise ValueError(
            "the work of forces is not known for a run with branch='any': steps that are solved again may have other "
            "roots"
        )
    found = [path.reals.array([0])]
    for states in _pieces(path):
        steps = [len(one) - 1 for one in states]
        left = np.concatenate([one[:-1] for one in states])
        right = np.concatenate([one[1:] for one in states])
        t, q, v, weights = _nodes(path, left, right)
        F = path.mechanics.external_force(q, v, t, path.params, *_driving(path, left[:, 0]))
        powers = (F * along(q, v)).sum(axis=1).reshape(-1, len(weights)) @ weights
        ends = np.cumsum(steps)[:-1]
        found.append(np.array([part.sum() for part in np.split(powers, ends)], powers.dtype))
    return np.cumsum(np.concatenate(found))


def _driving(path: Path, t: Reals) -> list[Reals]:
    """The inputs at the nodes of the steps that begin at t, a row for each node; an empty list without inputs."""
    if path.inputs is None:
        return []
    c: Any = np.array([0, 1, 2]) / path.reals.array(2)  # the places at which Simpson's rule weighs the forces of RK4
    if isinstance(path.method, Galerkin):
        c = samples(path.method, digits=path.digits).tau
    found = path.inputs.nodes(t, path.h, c)
    return [found.reshape(-1, found.shape[2])]


def _pieces(path: Path) -> Iterator[list[Reals]]:
    """Pieces of states (t, q, p) after every step from one stored time to the next, both included; some at once."""
    stored = np.concatenate([path.t[:, None], path.q, path.p], axis=1)
    at_once = max(1, BLOCK // path.every)
    for begin in range(0, len(path) - 1, at_once):
        end = min(begin + at_once, len(path) - 1)
        yield [_between(path, stored[k], stored[k + 1]) for k in range(begin, end)]


def _between(path: Path, left: Reals, right: Reals) -> Reals:
    steps = round(float((right[0] - left[0]) / path.h))
    rows = stepped(path, left[0], left[1:], steps - 1) if steps > 1 else left[None, :0].reshape(0, len(left) - 1)
    times = left[0] + np.arange(1, steps) * path.h
    return np.concatenate([left[None], np.concatenate([times[:, None], rows], axis=1), right[None]])


def _nodes(path: Path, left: Reals, right: Reals) -> tuple[Reals, Reals, Reals, Reals]:
    """t, q and v at the r nodes of K steps, (K r,) and (K r, n), and the weights h b_i."""
    n, h = path.system.n, path.h
    t, q = left[:, 0], left[:, 1 : 1 + n]
    if isinstance(path.method, Galerkin):
        z = increments(path, h, t, left[:, 1:])
        table = stencils(samples(path.method, digits=path.digits), h)
        nodes_q = q[:, None] + np.einsum("iv,kvj->kij", table.gather["q"], z)
        nodes_v = np.einsum("iv,kvj->kij", table.gather["v"], z)
        return (t[:, None] + table.times).ravel(), nodes_q.reshape(-1, n), nodes_v.reshape(-1, n), table.weights
    end = right[:, 1 : 1 + n]
    v, v_end = (path.mechanics.velocity(x[:, 1 : 1 + n], x[:, 1 + n :], x[:, 0], path.params) for x in (left, right))
    q_mid, v_mid = (q + end) / 2 + h * (v - v_end) / 8, 3 * (end - q) / (2 * h) - (v + v_end) / 4
    times = np.stack([t, t + h / 2, t + h], axis=1)
    nodes_q, nodes_v = np.stack([q, q_mid, end], axis=1), np.stack([v, v_mid, v_end], axis=1)
    return times.ravel(), nodes_q.reshape(-1, n), nodes_v.reshape(-1, n), np.array([1, 4, 1]) * (h / 6)
