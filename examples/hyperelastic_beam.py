"""A rubber beam, clamped at one end, swings under its own weight, bent far beyond what linear elasticity knows.

    python examples/hyperelastic_beam.py [--small] [--picture beam.png]

scikit-fem makes a mesh of triangles with more than 50,000 degrees of freedom. One triangle's energy, compressible
neo-Hookean,

    W(F) = ½ μ (tr FᵀF − 2 − 2 log J) + ½ λ (log J)²,      J = det F,

is written once, for its six coordinates; the Lagrangian is its sum over the mesh. The steps are forty times longer than
explicit ones could be: K is factorised in every step, with its sparse pattern. Some minutes, or with --small seconds.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from skfem import Basis, ElementTriP1, ElementVector, MeshTri

import leastaction as la

LENGTH, HEIGHT, THICKNESS = 1.0, 0.04, 0.02  # metres
YOUNG, POISSON, DENSITY, GRAVITY = 2e6, 0.4, 1100.0, 9.81
MU, LAME = YOUNG / (2 * (1 + POISSON)), YOUNG * POISSON / ((1 + POISSON) * (1 - 2 * POISSON))


def triangle(q, v, place, inverse, volume, mu, lam):
    """The elastic energy of a triangle, taken off L; q are the displacements of its nodes that are not clamped.

    place     (3, 2) where its nodes are at rest, the clamped ones first
    inverse   (2, 2) of the edges at rest
    """
    moved = place + np.concatenate([np.zeros(6 - len(q)), q]).reshape(3, 2)
    F = np.stack([moved[1] - moved[0], moved[2] - moved[0]], axis=1) @ inverse
    J = F[0, 0] * F[1, 1] - F[0, 1] * F[1, 0]
    log_J = np.log(J)
    return -volume * (0.5 * mu * (np.sum(F**2) - 2 - 2 * log_J) + 0.5 * lam * log_J**2)


def beam(along: int, across: int) -> tuple[la.Lagrangian, MeshTri, np.ndarray]:
    """The system, the mesh, and of each node its two coordinates, −1 where it is clamped."""
    mesh = MeshTri.init_tensor(np.linspace(0, LENGTH, along + 1), np.linspace(0, HEIGHT, across + 1))
    basis = Basis(mesh, ElementVector(ElementTriP1()))
    clamped = np.zeros(mesh.nvertices, bool)
    clamped[mesh.nodes_satisfying(lambda x: x[0] < 1e-9)] = True
    number = np.full((mesh.nvertices, 2), -1)
    number[~clamped] = np.arange(2 * (~clamped).sum()).reshape(-1, 2)
    corners = np.take_along_axis(mesh.t.T, np.argsort(~clamped[mesh.t.T], axis=1, kind="stable"), axis=1)
    place = mesh.p.T[corners]  # (elements, 3, 2)
    edges = np.stack([place[:, 1] - place[:, 0], place[:, 2] - place[:, 0]], axis=2)
    area = np.abs(np.linalg.det(edges)) / 2
    assert np.isclose(area.sum(), basis.dx.sum())
    lumped = np.zeros(mesh.nvertices)
    np.add.at(lumped, corners, DENSITY * THICKNESS * area[:, None] / 3)
    terms = [
        la.Term(
            lambda q, v, m, g: 0.5 * m * np.sum(v**2) - m * g * q[1],
            over=number[~clamped],
            params={"m": lumped[~clamped], "g": GRAVITY},
        )
    ]
    held = clamped[corners].sum(axis=1)
    for k in range(3):  # triangles with k clamped nodes
        own = held == k
        if own.any():
            rest = {"place": place, "inverse": np.linalg.inv(edges), "volume": THICKNESS * area}
            params = {f"{name}{k}": value[own] for name, value in rest.items()}

            def part(q, v, mu, lam, k=k, **own):
                return triangle(q, v, own[f"place{k}"], own[f"inverse{k}"], own[f"volume{k}"], mu, lam)

            terms.append(
                la.Term(
                    part,
                    over=number[corners[own][:, k:]].reshape(own.sum(), -1),
                    params={**params, "mu": MU, "lam": LAME},
                )
            )
    return la.Lagrangian.sum(terms, n=int(number.max()) + 1), mesh, number


def draw(file: str, path: la.Path, mesh: MeshTri, number: np.ndarray) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(9, 8), layout="constrained")
    colours = plt.get_cmap("viridis")
    for k, (t, q) in enumerate(zip(path.t, path.q, strict=True)):
        moved = np.where(number >= 0, q[number], 0.0) + mesh.p.T
        edge = mesh.boundary_facets()
        segments = moved[mesh.facets[:, edge]]
        axis.plot(segments[..., 0], segments[..., 1], color=colours(k / len(path)), lw=1)
        axis.annotate(f"t = {t:.2f} s", moved[np.argmax(mesh.p[0] + mesh.p[1])], fontsize=9)
    axis.set(aspect="equal", xlabel="x / m", ylabel="y / m", title=f"{len(path.q[0])} degrees of freedom")
    figure.savefig(file, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(
        usage="python examples/hyperelastic_beam.py [--small] [--picture FILE]", description=__doc__
    )
    parser.add_argument("--small", action="store_true", help="640 degrees of freedom")
    parser.add_argument("--picture", metavar="FILE", help="draw the beam at some times")
    given = parser.parse_args()
    clock = time.perf_counter()
    system, mesh, number = beam(*((80, 3) if given.small else (1440, 17)))
    steps, h = 120, 0.005
    path = la.integrate(
        system,
        "P2N2Q4Gau",
        q0=np.zeros(system.n),
        v0=np.zeros(system.n),
        h=h,
        steps=steps,
        every=steps // 6,
        progress=True,
    )
    E = path.energy()
    kinetic = 0.5 * (path.p * np.array([system.velocity(q, p) for q, p in zip(path.q, path.p, strict=True)])).sum(
        axis=1
    )
    spent = time.perf_counter() - clock
    iterations = path.stats["newton_iterations"] / steps
    print(f"{system.n} degrees of freedom, {steps} steps in {path.stats['run_time']:.1f} s, all in all {spent:.1f} s")
    print(f"{iterations:.1f} iterations a step")
    print(f"the energy changed by {np.abs(E - E[0]).max():.1e} J, while up to {kinetic.max():.1e} J were motion")
    if given.picture:
        draw(given.picture, path, mesh, number)


if __name__ == "__main__":
    main()
