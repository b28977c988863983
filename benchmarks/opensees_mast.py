"""The mast of examples/cantilever_fem.py in OpenSees: milliseconds per step of its Newmark method, factorised once.

    python benchmarks/opensees_mast.py ALONG ACROSS H STEPS

The same mesh of trilinear bricks, material and method (γ = ½, β = ¼). Prints one line: degrees of
freedom, CPU ms per step.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import openseespy.opensees as ops

LENGTH, WIDTH = 6.0, 0.05
YOUNG, POISSON, DENSITY = 210e9, 0.3, 7850.0


def mast(along: int, across: int) -> int:
    """Build the model with a load at the tip; return the number of free degrees of freedom."""
    ops.wipe()
    ops.model("basic", "-ndm", 3, "-ndf", 3)
    side = across + 1

    def tag(i: int, j: int, k: int) -> int:
        return 1 + (i * side + j) * side + k

    section = np.linspace(-WIDTH / 2, WIDTH / 2, side)
    for i, x in enumerate(np.linspace(0, LENGTH, along + 1)):
        for j, y in enumerate(section):
            for k, z in enumerate(section):
                ops.node(tag(i, j, k), float(x), float(y), float(z))
                if i == 0:
                    ops.fix(tag(i, j, k), 1, 1, 1)
    ops.nDMaterial("ElasticIsotropic", 1, YOUNG, POISSON, DENSITY)
    element = 0
    for i in range(along):
        for j in range(across):
            for k in range(across):
                element += 1
                bottom = [tag(i, j, k), tag(i + 1, j, k), tag(i + 1, j + 1, k), tag(i, j + 1, k)]
                ops.element("stdBrick", element, *bottom, *(node + 1 for node in bottom), 1)
    ops.timeSeries("Constant", 1)
    ops.pattern("Plain", 1, 1)
    ops.load(tag(along, across // 2, across // 2), 0.0, 0.0, -100.0)
    return along * side * side * 3


def main() -> None:
    along, across, h, steps = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
    freedoms = mast(along, across)
    ops.constraints("Plain")
    ops.numberer("RCM")
    ops.system("SparseSYM")
    ops.integrator("Newmark", 0.5, 0.25)
    ops.algorithm("Linear", "-factorOnce")
    ops.analysis("Transient")
    if ops.analyze(1, h):
        raise SystemExit("OpenSees did not take its first step")
    clock = time.process_time()
    ops.analyze(steps, h)
    print(freedoms, 1e3 * (time.process_time() - clock) / steps)


if __name__ == "__main__":
    main()
