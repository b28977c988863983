"""
The butterfly effect in a double pendulum
=========================================

Two hundred double pendulums start with the same shape, their upper angles a billionth of a radian apart from one to
the next. For some seconds they are one pendulum to the eye; then each goes its own way. Differences grow like
exp(λt): every further digit of the start buys some four seconds of prediction.
"""

import matplotlib.pyplot as plt
import numpy as np

import leastaction as la
from leastaction.results.colours import BLACK, VERMILION


def double_pendulum(q, v, g):
    T = v[0] ** 2 + 0.5 * v[1] ** 2 + v[0] * v[1] * np.cos(q[0] - q[1])
    return T + g * (2 * np.cos(q[0]) + np.cos(q[1]))


system = la.Lagrangian(double_pendulum, n=2, params={"g": 9.81})
first = 2.4 + 1e-9 * np.arange(200)
paths = la.ensemble(system, "P4N4Q8Gau", q0=np.stack([first, 0 * first + 2.8], axis=1), p0=[0, 0], h=0.02, t_end=24)

# %%
# Where the lower mass hangs to the side, for each of them, and how far they are apart.
side = np.sin(paths.q).sum(axis=2)
spread = np.std(paths.q[..., 0], axis=0)
early = (spread > 1e-7) & (spread < 1e-1)
rate = np.polyfit(paths.t[early], np.log(spread[early]), 1)[0]
print(f"differences grow like exp({rate:.2f} t): tenfold in {np.log(10) / rate:.1f} s")
assert 3 < np.log(10) / rate < 5

figure, axes = plt.subplots(2, 1, figsize=(8, 5), sharex=True, layout="constrained", height_ratios=(2, 1))
colours = plt.colormaps["viridis"](np.linspace(0, 1, len(paths)))
for one, colour in zip(side, colours, strict=True):
    axes[0].plot(paths.t, one, color=colour, linewidth=0.4)
axes[0].set(ylabel="lower mass, sideways", title="200 double pendulums, 10⁻⁹ rad apart")
axes[1].semilogy(paths.t, spread, color=BLACK)
axes[1].semilogy(paths.t[early], spread[early], color=VERMILION, linewidth=2, label=f"exp({rate:.2f} t)")
axes[1].set(xlabel="time t (s)", ylabel="spread of θ₁")
axes[1].legend()
plt.show()
