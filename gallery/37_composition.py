"""
Higher order from steps forward and back
========================================

Three Störmer–Verlet steps, one of them backward, have order four: Yoshida's triple jump of 1990. Suzuki takes five
smaller ones, and for the same number of evaluations of the force its errors are two to three times smaller. Jumping
again gives order six, which pays only where accuracy is wanted: its nine steps reach far beyond the one that they
make.
"""

import matplotlib.pyplot as plt
import numpy as np

import leastaction as la
from leastaction.results.colours import BLUE, GREEN, ORANGE, PINK, VERMILION

problem = la.problems.get("kepler")
methods = {
    "verlet": (la.method("verlet"), 1, VERMILION),
    "yoshida(verlet)": (la.compose("verlet", "yoshida"), 3, ORANGE),
    "suzuki(verlet)": (la.compose("verlet", "suzuki"), 5, BLUE),
    "yoshida(yoshida(verlet))": (la.compose(la.compose("verlet", "yoshida"), "yoshida"), 9, PINK),
    "rk4": (la.method("rk4"), 4, GREEN),
}
figure, ax = plt.subplots(figsize=(7.5, 4.6), layout="constrained")
period = problem.period
found = {}
for name, (method, cost, colour) in methods.items():
    work, errors = [], []
    for evaluations in (400, 800, 1600, 3200, 6400):
        steps = round(evaluations / cost)
        path = la.integrate(
            problem.system, method, problem.q0, problem.p0, h=period / steps, steps=10 * steps, every=steps
        )
        work.append(cost * steps)
        errors.append(np.linalg.norm(path.q[-1] - problem.q0))
    found[name] = errors
    ax.loglog(work, errors, "o-", color=colour, label=f"{name}, order {method.order}")
    print(f"{name}: " + ", ".join(f"{x:.0e}" for x in errors))
ratios = np.array(found["yoshida(verlet)"]) / np.array(found["suzuki(verlet)"])
assert (ratios > 1.9).all() and (ratios < 3.6).all()
ax.set(xlabel="evaluations of the force for a period", ylabel="error after ten periods", title="Kepler's problem")
ax.legend(fontsize=8)
plt.show()
