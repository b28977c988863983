"""Figures of the linear systems: small steps, cost, memory, and a finite-element mast against Newmark and OpenSees.

    python -m benchmarks.quadratic [--coarse] [--only small stability million cost memory …] [--stretch 1500]

Run from the root of the repository; needs scikit-fem, and openseespy for the peer. Seconds are CPU seconds of one
thread (wall-clock time is printed beside them), so that other work on the machine disturbs the ratios little. The whole
takes about half an hour, nearly all of it for Newmark's method.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from examples.cantilever_fem import FULL, SMALL, Cantilever, Reference, cantilever, reference
from scipy.sparse import diags_array
from skfem import Basis, BilinearForm, ElementHex1, ElementVector, MeshHex, asm
from skfem.helpers import dot
from skfem.models.elasticity import lame_parameters, linear_elasticity

import leastaction as la
from leastaction.linear import definite
from leastaction.linear.factor import factor
from leastaction.linear.stability import require_stable
from leastaction.methods.oscillator import exact_step

PARTS = ("small", "stability", "million", "cost", "memory", "accuracy", "opensees")
PERIODS, TOLERANCE = 10, 1e-3
LARGEST_PLATE = 300_000  # unknowns; SuperLU's factors of one, for ω_max, take 20 kB each
COMPARED = ("newmark", "P2N2Q4Gau", "P3N3Q6Gau", "P4N4Q8Gau", "P5N5Q10Gau", "P6N6Q12Gau")


def timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """The result, CPU seconds and wall-clock seconds."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = work()
    return result, time.process_time() - cpu, time.perf_counter() - wall


def small_systems() -> None:
    """Steps of a system with n = 2."""
    print("\n# n = 2, one million steps, all stored: CPU µs per step, best of three")
    system = la.Quadratic([[2.0, 1.0], [1.0, 1.0]], [2.0, 1.0])
    for name in ("newmark", "simpson", "P2N2Q4Gau", "P4N4Q8Gau", "P8N8Q16Gau", "rk4"):
        runs = [
            timed(lambda name=name: la.integrate(system, name, [0.0, 0.5], [0.0, 0.0], h=0.1, steps=10**6))
            for _ in range(3)
        ]
        print(f"{name:12} {min(cpu for _, cpu, _ in runs):.3f}", flush=True)


def chain(n: int) -> tuple[Any, Any]:
    """M and K of n masses in a row between two walls."""
    return np.ones(n), diags_array([-np.ones(n - 1), np.full(n, 2.0), -np.ones(n - 1)], offsets=[-1, 0, 1]).tocsr()


def solid(x: Any, y: Any, z: Any) -> tuple[Any, Any]:
    """M (lumped) and K of a steel block of hexahedra between these planes, floating freely."""
    basis = Basis(MeshHex.init_tensor(x, y, z), ElementVector(ElementHex1()), intorder=2)
    K = asm(linear_elasticity(*lame_parameters(210e9, 0.3)), basis)
    M = asm(BilinearForm(lambda u, v, w: 7850.0 * dot(u, v)), basis)
    return np.asarray(M.sum(axis=1)).ravel(), K.tocsr()


def plate(n: int) -> tuple[Any, Any]:
    """A square plate of one layer, with about n unknowns."""
    line = np.linspace(0, 1, round((n / 6) ** 0.5))
    return solid(line, line, np.array([0.0, 0.01]))


def mast(n: int) -> tuple[Any, Any]:
    """A mast of 4 × 4 elements across, with about n unknowns."""
    across = np.linspace(0, 0.05, 5)
    return solid(np.linspace(0, 6, round(n / 75)), across, across)


def stability(sizes: tuple[int, ...], method: str = "simpson") -> None:
    """The check before a run, and what is computed only when asked for, beside one factorisation of a step's matrix."""
    print(
        "\n# CPU s (in brackets wall-clock s): is h stable? Simpson, at half the limit, 0.1 % below and 0.1 % above it"
    )
    print("system   unknowns     define    factor  h = limit/2     limit - 0.1 %     limit + 0.1 %    ω_max   6 modes")
    for model in (chain, plate, mast):
        for n in sizes:
            M, K = model(min(n, LARGEST_PLATE) if model is plate else n)
            system, define, _ = timed(lambda M=M, K=K: la.Quadratic(M, K))
            _, highest, _ = timed(lambda system=system: system.omega_max)
            limit = system.stable_step(method)
            _, factorise, _ = timed(lambda system=system, h=limit: factor(system.M + (h**2 / 24) * system.K))
            cells = []
            for share in (0.5, 0.999, 1.001):
                _, cpu, wall = timed(lambda system=system, h=share * limit: _stable(system, method, h))
                cells.append(f"{cpu:8.2f} ({wall:6.2f})")
            _, modes, _ = timed(lambda system=system: system.modes(6))
            asked_for = f"{highest:8.1f} {modes:9.1f}"
            before = f"{model.__name__:8}{system.n:9,} {define:10.2f} {factorise:9.2f}"
            print(before, *cells, asked_for, flush=True)


def million() -> None:
    """The check before a run of Simpson for 10⁶ unknowns: its factorisations, seconds and memory; a process each."""
    print("\n# 10⁶ unknowns: is h stable? h as a share of the limit by 60 steps of Lanczos' process")
    for model in ("chain", "mast"):  # a factor of a plate would need 20 GB
        code = f"from benchmarks.quadratic import million_of; million_of({model!r})"
        print(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout, end="")


def million_of(name: str) -> None:
    """One model in a fresh process."""
    M, K = {"chain": chain, "plate": plate, "mast": mast}[name](10**6)
    system, define, _ = timed(lambda: la.Quadratic(M, K))
    limit = float(8**0.5 / definite.extremes(system.K, 1 / np.sqrt(M))[1] ** 0.5)
    counted: list[int] = []
    decide = definite.has_cholesky
    definite.has_cholesky = lambda a: counted.append(1) or decide(a)  # type: ignore[func-returns-value]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    cells = []
    for share in (0.5, 0.98, 0.999, 1.001):
        counted.clear()
        stable, cpu, wall = timed(lambda h=share * limit: _stable(system, "simpson", h))
        cells.append(
            f"{share} {'stable' if stable else 'not'}, {len(counted)} factorisations, {cpu:.1f} ({wall:.1f}) s"
        )
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{name:6}{system.n:10,}, defined in {define:.1f} s:", "; ".join(cells), end="")
    print(f"; most memory {before:.0f} MB before, {after:.0f} MB with the checks", flush=True)


def _stable(system: la.Quadratic, method: str, h: float) -> bool:
    try:
        require_stable(la.linear.Propagator(system, method, h))
    except la.UnstableStepError:
        return False
    return True


def cost(full: tuple[int, int], steps: int = 20) -> None:
    """One step of each method, side by side, on meshes of growing size."""
    names = ("newmark", "simpson", "P2N2Q4Gau", "P3N3Q6Gau", "P4N4Q8Gau", "P3N4Q6Lob")
    print("\n# CPU ms per step, lumped mass; in brackets ns per entry of the factors")
    print("unknowns " + "".join(f"{name:>17}" for name in names))
    for along, across in [(full[0] // 16, full[1]), (full[0] // 4, full[1]), (full[0] // 8, 2 * full[1]), full]:
        model = cantilever(along, across)
        system = la.Quadratic(model.lumped, model.K)
        h = 0.5 * system.stable_step("simpson")
        zero = np.zeros_like(model.bent)
        best: dict[str, float] = {}
        entries: dict[str, int] = {}
        steppers = {name: la.linear.Propagator(system, name, h) for name in names}
        for name, stepper in steppers.items():
            entries[name] = sum(stepper.counts()["factor_entries"])
        for _ in range(steps):  # in turns, so that a busy moment of the machine meets all methods
            for name, stepper in steppers.items():
                clock = time.process_time()
                stepper.increments(model.bent, zero)
                best[name] = min(time.process_time() - clock, best.get(name, np.inf))
        cells = "".join(f"{1e3 * best[n]:10.1f} ({1e9 * best[n] / entries[n]:4.1f})" for n in names)
        print(f"{system.n:8,} {cells}   Simpson/Newmark {best['simpson'] / best['newmark']:.2f}", flush=True)


def memory(size: tuple[int, int]) -> None:
    """Peak memory of a run, beyond what the system itself takes, over the bytes of its factors; one process each."""
    print("\n# Memory of a run: peak above the system, over the factors")
    for name in ("newmark", "simpson", "P2N2Q4Gau", "P4N4Q8Gau"):
        code = f"from benchmarks.quadratic import memory_of; memory_of({name!r}, {size!r})"
        print(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout, end="")


def memory_of(name: str, size: tuple[int, int]) -> None:
    """One method in a fresh process; the peak is sampled from the start of the run."""
    model = cantilever(*size)
    system = la.Quadratic(model.lumped, model.K)
    h = 0.5 * system.stable_step("simpson")
    before = _resident()
    Path("/proc/self/clear_refs").write_text("5")  # start counting the peak anew
    path = la.integrate(system, name, model.bent, np.zeros_like(model.bent), h=h, steps=5, output=[model.tip])
    peak, factors = _resident(peak=True) - before, path.stats["factor_bytes"]
    print(f"{name:12} factors {factors / 2**20:6.0f} MiB, peak {peak / 2**20:6.0f} MiB, ratio {peak / factors:.2f}")


def _resident(peak: bool = False) -> int:
    """Bytes in memory now, or at most."""
    name = "VmHWM" if peak else "VmRSS"
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024


def steps_needed(method: Any, exact: Reference) -> int:
    """Fewest steps per period for TOLERANCE over PERIODS, from the modes alone.

    Each mode of a motion from rest is a cos(kθ) after k steps, tan²(θ/2) = Y/X.
    """
    X, Y = exact_step(method).X, exact_step(method).Y
    parts = [
        [int(c.p) / int(c.q) for c in reversed(polynomial.coeffs())]
        for polynomial in (Y.numerator, X.denominator, Y.denominator, X.numerator)
    ]

    def error(count: int) -> float:
        h = exact.period / count
        a, b, c, d = (np.polyval(part, (h * exact.omega) ** 2) for part in parts)
        k = np.arange(PERIODS * count + 1)
        tip = np.cos(np.outer(k, 2 * np.arctan(np.sqrt(a * b / (c * d))))) @ exact.amplitude
        return float(np.abs(tip - exact.tip(k * h)).max() / np.abs(exact.amplitude.sum()))

    low, high = 1, 2
    while error(high) > TOLERANCE:
        low, high = high, 2 * high
    while high - low > max(1, high // 200):
        middle = (low + high) // 2
        low, high = (low, middle) if error(middle) <= TOLERANCE else (middle, high)
    return high


def accuracy(model: Cantilever, exact: Reference, system: la.Quadratic, stretch: int | None) -> None:
    """Time to follow the tip for ten periods to 10⁻³, method by method; for Newmark perhaps only a part of it."""
    scale, rest = abs(model.bent[model.tip]), np.zeros_like(model.bent)
    print(f"\n# {system.n:,} degrees of freedom, tip to {TOLERANCE:g} over {PERIODS} periods of {exact.period:.4f} s")
    print(f"reference: the lowest {len(exact.omega)} modes; the others make {exact.missing:.1e} of the tip")
    print("method        steps tip error  setup s    CPU s   wall s  CPU ms/step  Newmark/this")
    seconds = {}
    for name in COMPARED:
        count = steps_needed(la.method(name), exact)
        steps, h = PERIODS * count, exact.period / count
        done = min(steps, stretch) if stretch and name == "newmark" else steps
        _, setup, _ = timed(system.propagator(name, h).prepare)
        path, cpu, wall = timed(
            lambda name=name, h=h, done=done: la.integrate(
                system, name, model.bent, rest, h=h, steps=done, output=[model.tip]
            )
        )
        seconds[name] = setup + cpu * steps / done
        error = np.abs(path.q[:, 0] - exact.tip(path.t)).max() / scale
        print(
            f"{name:12} {steps:6} {error:9.2e} {setup:8.1f} {seconds[name]:8.1f} {wall:8.1f} {1e3 * cpu / done:12.1f} "
            f"{seconds['newmark'] / seconds[name]:13.1f}"
            + (f"   ({done} steps done, CPU seconds scaled)" if done < steps else ""),
            flush=True,
        )
    print(f"peak memory of the process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


def opensees(size: tuple[int, int], exact: Reference, steps: int = 20) -> None:
    """The same mesh and Newmark's method in OpenSees, a few steps in a process of its own."""
    count = steps_needed(la.method("newmark"), exact)
    command = [sys.executable, "benchmarks/opensees_mast.py", *map(str, size), str(exact.period / count), str(steps)]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        print(f"\n# OpenSees did not run: {(result.stderr.strip() or 'no message').splitlines()[-1]}")
        return
    freedoms, milliseconds = result.stdout.split()[:2]
    total = float(milliseconds) * count * PERIODS / 1e3
    print(f"\n# OpenSees, Newmark, SparseSYM factorised once: {int(freedoms):,} degrees of freedom")
    print(f"{float(milliseconds):.1f} CPU ms per step; {count * PERIODS} steps, as needed, take {total:.0f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--coarse", action="store_true", help=f"the mesh {SMALL}, to try the script")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help="some of %(choices)s")
    parser.add_argument("--stretch", type=int, metavar="N", help="of Newmark's steps do only N, and scale its time")
    args = parser.parse_args()
    size = SMALL if args.coarse else FULL
    if "small" in args.only:
        small_systems()
    if "stability" in args.only:
        stability((10_000,) if args.coarse else (10_000, 100_000, 1_000_000))
    if "million" in args.only and not args.coarse:
        million()
    if "cost" in args.only:
        cost(size)
    if "memory" in args.only:
        memory(size)
    if "accuracy" in args.only or "opensees" in args.only:
        model = cantilever(*size)
        system = la.Quadratic(model.lumped, model.K)
        exact = reference(model, system)
        if "opensees" in args.only:
            opensees(size, exact)
        if "accuracy" in args.only:
            accuracy(model, exact, system, args.stretch)


if __name__ == "__main__":
    main()
