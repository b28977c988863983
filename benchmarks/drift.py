"""Does rounding let the energy drift? Slopes of the energy error, in ε a step, with standard errors.

    python benchmarks/drift.py [--steps 100000] [--starts 4] [--neighbours 64] [--alone] [system …]

What is measured stands in tests/orbits.py. `--alone` takes each trajectory by itself, the points of its
step side by side, in place of trajectories in lanes.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from orbits import SYSTEMS, slopes
from rungs import solved_by


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("systems", nargs="*", default=list(SYSTEMS))
    parser.add_argument("--methods", nargs="+", default=["P8N8Q16Gau"])
    parser.add_argument("--h", nargs="+", type=float, default=[0.1])
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--starts", type=int, default=4)
    parser.add_argument("--neighbours", type=int, default=64)
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--by", default=None, help="a rung of the ladder (tests/rungs.py)")
    given = parser.parse_args()
    sizes = {name: getattr(given, name) for name in ("steps", "starts", "neighbours", "alone")}
    print("slopes and standard errors in 1e-6 ε a step; χ² of no drift for each start")
    for name in given.systems:
        for method in given.methods:
            for h in given.h:
                began = time.process_time()
                if given.by:
                    with solved_by(given.by):
                        slope, error, scatter = slopes(name, method, h, **sizes)
                else:
                    slope, error, scatter = slopes(name, method, h, **sizes)
                shown = ", ".join(f"{a * 1e6:.0f} ± {b * 1e6:.0f}" for a, b in zip(slope, error, strict=True))
                chi = ((slope / error) ** 2).mean()
                print(f"{name:16} {method:11} h={h:<9} {shown}   χ² {chi:.1f}  walk {scatter.mean():.1f} ε"
                      f"  ({time.process_time() - began:.0f} s)", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
