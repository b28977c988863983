"""
After ten thousand periods
==========================

Simpson's variational method and the classical Runge–Kutta method have the same order, and with twenty steps a period
both follow the first one to a thousandth of a radian. Ten thousand periods later the one swings as it did, its energy
within a narrow band; the other has lost nearly all of it. This is the lesson of the papers on which this library is
built.
"""

import matplotlib.pyplot as plt
import numpy as np

import leastaction as la
from leastaction.results.colours import colour

problem = la.problems.get("pendulum")
period, count = problem.period, 10_000
figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
left = {}
for name in ("simpson", "rk4"):
    with la.errors.measuring():  # that RK4 loses energy is the point
        path = la.integrate(problem.system, name, problem.q0, problem.p0, h=period / 20, steps=20 * count)
    swing = path.energy()
    lowest = problem.system.energy(np.zeros(1), np.zeros(1))
    left[name] = (swing - lowest) / (swing[0] - lowest)
    first = np.abs(path.q[:21] - problem.exact(path.t[:21])[0]).max()
    print(f"{name}: error in the first period {first:.1e} rad")
    assert first < 1e-3
    print(f"{name}: {left[name][-1]:.4f} of the energy is left")
    axes[0].semilogx(path.t[20::20] / period, left[name][20::20], color=colour(name), label=name)
    late = path.t > path.t[-1] - 3 * period
    axes[1].plot((path.t[late] - path.t[late][0]) / period, path.q[late, 0], ".-", color=colour(name), label=name)
assert left["simpson"].min() > 0.98 and left["rk4"][-1] < 0.2
axes[0].set(xlabel="periods", ylabel="energy above rest, of the first", title="twenty steps a period")
axes[1].set(xlabel="periods, after 10,000", ylabel="angle θ (rad)", title="the last three of them")
axes[0].legend()
axes[1].legend()
plt.show()
