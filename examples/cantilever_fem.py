"""A steel mast, clamped at one end, bent by its own weight and let go: 100,500 degrees of freedom.

    python examples/cantilever_fem.py [--small] [--picture cantilever.png]

scikit-fem makes M and K of linear elasticity on a mesh of hexahedra; leastaction integrates M q̈ + K q = 0. Newmark,
Simpson (for as long as its step, limited by the highest frequency of the mesh, allows) and P2N2Q4Gau are compared with
a reference from the lowest modes. Needs scikit-fem; about three minutes and 1.3 GB, or with --small five seconds.
"""

from __future__ import annotations

import argparse
import resource
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from skfem import Basis, BilinearForm, ElementHex1, ElementVector, MeshHex, asm
from skfem.helpers import dot
from skfem.models.elasticity import lame_parameters, linear_elasticity

import leastaction as la
from leastaction.linear.factor import factor

LENGTH, WIDTH = 6.0, 0.05  # metres
YOUNG, POISSON, DENSITY, GRAVITY = 210e9, 0.3, 7850.0, 9.81
FULL, SMALL = (1340, 4), (160, 2)  # elements along and across


@dataclass
class Cantilever:
    """The free degrees of freedom of the clamped mast.

    M, K      consistent mass and stiffness, sparse; lumped (n,) the row sums of M
    bent      static shape under its own weight, (n,)
    tip       the degree of freedom watched: vertical, middle of the free end
    """

    mesh: MeshHex
    basis: Basis
    free: NDArray[np.intp]
    M: csr_array
    K: csr_array
    lumped: NDArray[np.float64]
    bent: NDArray[np.float64]
    tip: int


def cantilever(along: int, across: int) -> Cantilever:
    """The mast with `along` × `across` × `across` trilinear hexahedra."""
    section = np.linspace(-WIDTH / 2, WIDTH / 2, across + 1)
    mesh = MeshHex.init_tensor(np.linspace(0, LENGTH, along + 1), section, section)
    basis = Basis(mesh, ElementVector(ElementHex1()), intorder=2)
    K = asm(linear_elasticity(*lame_parameters(YOUNG, POISSON)), basis)
    M = asm(BilinearForm(lambda u, v, w: DENSITY * dot(u, v)), basis)
    free = np.setdiff1d(np.arange(basis.N), basis.get_dofs(lambda x: x[0] < 1e-9).all())
    M, K = (csr_array(a.tocsr()[free][:, free]) for a in (M, K))
    vertical = basis.nodal_dofs[2]
    down = np.zeros(basis.N)
    down[vertical] = -GRAVITY
    bent = factor(K).solve(M @ down[free])
    end = np.flatnonzero((mesh.p[0] > LENGTH - 1e-9) & (np.abs(mesh.p[1:]).max(axis=0) < 1e-9))[0]
    tip = int(np.searchsorted(free, vertical[end]))
    return Cantilever(mesh, basis, free, M, K, M.sum(axis=1), bent, tip)


@dataclass
class Reference:
    """The tip's exact motion as a sum of modes: Σ_i amplitude_i cos ω_i t."""

    omega: NDArray[np.float64]
    amplitude: NDArray[np.float64]
    missing: float  # what the modes left out contribute to the tip at t = 0, relative

    @property
    def period(self) -> float:
        return float(2 * np.pi / self.omega[0])

    def tip(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.cos(np.outer(t, self.omega)) @ self.amplitude


def reference(model: Cantilever, system: la.Quadratic, count: int = 40) -> Reference:
    """The tip's motion by the lowest modes of the system."""
    modes = system.modes(count)
    amplitude = modes.shape[model.tip] * (modes.dual.T @ model.bent)
    missing = abs(1 - amplitude.sum() / model.bent[model.tip])
    return Reference(modes.omega, amplitude, float(missing))


def peak_memory() -> float:
    """Largest resident size of this process so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def draw(model: Cantilever, states: list[tuple[float, NDArray[np.float64]]], filename: str) -> None:
    """The mesh's surface at several times, displacements as they are."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    figure = plt.figure(figsize=(11, 5.5), constrained_layout=True)
    axes = figure.add_subplot(projection="3d")
    corners = model.mesh.facets[:, model.mesh.boundary_facets()].T  # four nodes each
    colours = plt.get_cmap("viridis")(np.linspace(0.05, 0.9, len(states)))
    for (t, q), colour in zip(states, colours, strict=True):
        u = np.zeros(model.basis.N)
        u[model.free] = q
        moved = model.mesh.p + u[model.basis.nodal_dofs]
        style = {"facecolor": colour, "edgecolor": "k", "linewidth": 0.02, "label": f"t = {t:.3f} s", "clip_on": False}
        axes.add_collection3d(Poly3DCollection(moved.T[corners], **style))
    depth = 1.15 * np.abs(model.bent).max()
    axes.set(xlim=(0, LENGTH), ylim=(-0.4, 0.4), zlim=(-depth, depth), xlabel="x [m]", ylabel="y [m]", zlabel="z [m]")
    axes.set_box_aspect((LENGTH, 0.8, 2.4), zoom=1.5)
    axes.view_init(elev=12, azim=-75)
    axes.set_yticks([-0.4, 0.4])
    axes.legend(loc="upper left")
    axes.set_title(f"Mast of {len(model.free):,} degrees of freedom, let go from its static shape")
    figure.savefig(filename, dpi=130, bbox_inches="tight")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help=f"a coarse mesh, {SMALL[0]} × {SMALL[1]} × {SMALL[1]}")
    parser.add_argument("--picture", default="cantilever.png", help="file of the picture (default: %(default)s)")
    args = parser.parse_args()

    clock = time.perf_counter()
    model = cantilever(*(SMALL if args.small else FULL))
    print(f"{len(model.free):,} degrees of freedom, assembled in {time.perf_counter() - clock:.1f} s")
    q0, p0, scale = model.bent, np.zeros_like(model.bent), abs(model.bent[model.tip])
    lumped = la.Quadratic(model.lumped, model.K)
    exact = reference(model, lumped)
    print(f"tip down by {scale:.4f} m; first mode {1 / exact.period:.3f} Hz; modes left out: {exact.missing:.1e}")

    limit = lumped.stable_step("simpson")
    print(f"Simpson is stable for h < {limit:.3g} s, {exact.period / limit:,.0f} steps per period of the first mode")

    print(
        f"{'method':12} {'h [s]':>9} {'time [s]':>9} {'steps':>6} {'tip error':>10} {'ms/step':>8} {'factors GB':>10}"
    )
    for name, h, steps in (
        ("newmark", exact.period / 1000, 1000),
        ("P2N2Q4Gau", exact.period / 100, 100),
        ("simpson", 0.9 * limit, 300),
    ):
        path = la.integrate(lumped, name, q0, p0, h=h, steps=steps, output=[model.tip])
        error = np.abs(path.q[:, 0] - exact.tip(path.t)).max() / scale
        seconds = path.stats["run_time"]
        print(
            f"{name:12} {h:9.2e} {steps * h:9.2e} {steps:6} {error:10.1e} {1e3 * seconds / steps:8.1f} "
            f"{path.stats['factor_bytes'] / 2**30:10.2f}"
        )
    path = la.integrate(lumped, "P2N2Q4Gau", q0, p0, h=exact.period / 100, steps=50, every=10)
    draw(model, list(zip(path.t, path.q, strict=True)), args.picture)
    print(f"picture in {args.picture}; peak memory {peak_memory():.2f} GB")


if __name__ == "__main__":
    main()
