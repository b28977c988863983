"""Which Python modules of leastaction one trajectory visits: those whose functions are entered, in a first and a
second run. The second run has another start.

    python benchmarks/visited.py
"""

import sys
from pathlib import Path

import numpy as np

import leastaction as la

HOME = str(Path(la.__file__).parent)


def visited(run):
    """The modules whose functions are entered during a call; importing a module does not count."""
    names = set()

    def note(frame, event, argument):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(HOME) and code.co_name != "<module>":
            names.add(code.co_filename[len(HOME) + 1 :])

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return sorted(names)


def pendulum(q, v, g):
    return 0.5 * v[0] ** 2 + g * np.cos(q[0])


if __name__ == "__main__":
    system = la.Lagrangian(pendulum, n=1, params={"g": 9.81})
    for which, q0 in (("first", [1.0]), ("second", [0.5])):
        names = visited(lambda q0=q0: la.integrate(system, "simpson", q0=q0, v0=[0.0], h=0.01, t_end=10))
        print(f"{which} run: {len(names)} modules\n  " + "\n  ".join(names))
