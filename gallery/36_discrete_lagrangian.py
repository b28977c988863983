"""
The action that a method makes stationary
=========================================

Behind every method stands a discrete Lagrangian L_d(q₀, q₁), and the method is the rule that makes its sum
stationary. The best one is the action of the true motion between q₀ and q₁. How far a method's own is from it says
all about the method: the difference falls like h to the order plus one.
"""

import matplotlib.pyplot as plt
import numpy as np

import leastaction as la
from leastaction.results.colours import line


def pendulum(q, v):
    return 0.5 * v[0] ** 2 + np.cos(q[0])


system = la.Lagrangian(pendulum, n=1)
names = ("midpoint", "stormer-verlet", "simpson", "P3N3Q6Gau")
figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
steps = np.array([1.6, 0.8, 0.4, 0.2])
for name in names:
    gaps = []
    for h in steps:
        Ld = la.discrete_lagrangian(system, name, h=h)
        motion = la.integrate(system, "P8N8Q16Gau", q0=[1.0], p0=[0.3], h=h, steps=1)
        gaps.append(abs(Ld(motion.q[0], motion.q[1]) - Ld.exact()(motion.q[0], motion.q[1])))
    order = la.method(name).order
    slope = np.log(gaps[-2] / gaps[-1]) / np.log(2)
    print(f"{name}: L_d is off by a power h^{slope:.2f}; its order is {order}")
    assert abs(slope - order - 1) < 0.3
    axes[0].loglog(steps, gaps, label=f"{name}, $h^{order + 1}$", **line(name))
axes[0].set(xlabel="step h", ylabel="|L_d − action|", title="how far from the action of the motion")
axes[0].set_xticks(steps, [f"{h:g}" for h in steps])
axes[0].set_xticks([], minor=True)
axes[0].legend(fontsize=8)

# %%
# From q₀ = 1 the action to every q₁ within a step of 1.6: its slope is the momentum on arrival.
h, ends = 1.6, np.linspace(-1.5, 2.5, 41)
for name in names:
    Ld = la.discrete_lagrangian(system, name, h=h)
    axes[1].plot(
        ends, [Ld([1.0], [q]) for q in ends], color=line(name)["color"], linestyle=line(name)["linestyle"], label=name
    )
exact = la.discrete_lagrangian(system, "simpson", h=h).exact()
axes[1].plot(ends, [exact([1.0], [q]) for q in ends], color="#222222", linewidth=0.8, label="action of the motion")
axes[1].set(xlabel="q₁", ylabel="L_d(1, q₁)", title=f"h = {h}")
axes[1].legend(fontsize=8)
plt.show()
