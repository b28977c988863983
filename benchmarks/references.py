"""Where the motions of benchmarks/peers.py truly are: `python benchmarks/references.py` writes references.json.

Each motion is computed at 32 digits by the library from the doubles that all programs start from, and once more by
heyoka's Taylor method with 128 bits. The two share nothing but the equations. Their difference is printed and kept.
Where constant steps leave a difference of truncation above 10⁻¹⁸ (close encounters), heyoka's places are kept.
`--only kepler` does just this motion. The two larger ones take some ten minutes each.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
from motions import SAMPLES, Motion, motions
from numpy.typing import NDArray

import leastaction as la

FILE = Path(__file__).with_name("references.json")
DIGITS, BITS = 32, 128
ENOUGH = 1e-18  # a difference far below the rounding of doubles


def ours(motion: Motion) -> tuple[str, NDArray[Any]]:
    """The member's name, and q at the motion's times as mpmath numbers."""
    s, steps = motion.reference
    problem, name = motion.problem, f"P{s}N{s}Q{2 * s}Gau"
    end = mpmath.mpf(motion.span)
    path = la.integrate(
        problem.system,
        name,
        problem.q0,
        problem.p0,
        params=problem.params,  # as doubles, since the other programs take them so
        h=end / steps,
        steps=steps,
        every=steps // SAMPLES,
        digits=DIGITS,
    )
    return f"{name}, {steps} steps", path.q[1:]


class Reals:
    """The functions that fields call, for heyoka's expressions."""

    def __init__(self) -> None:
        import heyoka

        self.sin, self.cos = heyoka.sin, heyoka.cos

    def number(self, value: float) -> Any:
        import heyoka

        return heyoka.expression(heyoka.real(float(value), BITS))

    def inverse_cube(self, square: Any) -> Any:
        return square**-1.5


def heyokas(motion: Motion) -> NDArray[Any]:
    """q at the motion's times by Taylor's method with 128 bits."""
    import heyoka as hy

    def real(value: float) -> Any:
        return hy.real(float(value), BITS)

    y = hy.make_vars(*(f"y{i}" for i in range(len(motion.start))))
    equations = [*zip(y, motion.field(Reals(), y), strict=True)]
    start = np.array(motion.exact_start(real), dtype=hy.real)
    tolerance = hy.real("1e-34", BITS)
    integrator = hy.taylor_adaptive(
        equations, start, fp_type=hy.real, prec=BITS, tol=tolerance, compact_mode=True, high_accuracy=True
    )
    found = []
    for t in motion.times:
        integrator.propagate_until(real(t))
        found.append([mpmath.mpf(str(x)) for x in integrator.state[: motion.n]])
    return np.array(found, dtype=object)


def make(motion: Motion) -> dict[str, Any]:
    with mpmath.workdps(DIGITS + 8):
        clock = time.perf_counter()
        member, q = ours(motion)
        seconds = time.perf_counter() - clock
        other = heyokas(motion)
        difference = max(float(abs(x - y)) / max(1.0, float(abs(y))) for x, y in zip(q.flat, other.flat, strict=True))
        print(f"{motion.name}: {member}, {seconds:.0f} s; heyoka differs by {difference:.1e}", flush=True)
        kept, by = (q, member) if difference < ENOUGH else (other, "heyoka")
        values = [[mpmath.nstr(x, 24) for x in row] for row in kept]
    return {"t": [*map(float, motion.times)], "q": values, "by": by, "difference": difference}


def reference(motion: Motion) -> NDArray[np.float64]:
    """q at the motion's times, (SAMPLES, n), from the file."""
    kept = json.loads(FILE.read_text())[motion.name]
    if kept["t"] != [*map(float, motion.times)]:
        raise ValueError(f"{FILE.name} has other times for {motion.name}: run `python benchmarks/references.py`")
    return np.array(kept["q"], dtype=float)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(motions()), help="motions, with commas between: %(default)s")
    for name in parser.parse_args().only.split(","):
        made = make(motions()[name])
        kept = json.loads(FILE.read_text()) if FILE.exists() else {}
        FILE.write_text(json.dumps(kept | {name: made}, indent=1) + "\n")


if __name__ == "__main__":
    main()
