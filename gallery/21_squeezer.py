"""
Andrews' squeezing mechanism
============================

Seven bodies, three closed loops, a spring, and a motor with a constant torque: for forty years this small machine has
tested programs for mechanisms. In thirty milliseconds the crank goes round two and a half times, faster and faster,
while the arms that hang on it twitch. The end of the run agrees with the published solution.
"""

import matplotlib.pyplot as plt
import numpy as np

import leastaction as la
from leastaction.problems.drawings import LOOKS
from leastaction.results.colours import BLUE

problem = la.problems.get("andrews-squeezer")
path = la.integrate(problem.system, "P3N3Q6Gau", problem.q0, problem.p0, h=3e-5, t_end=0.03)
published = [
    15.81077119629904,
    -15.75637105984298,
    0.04082224013073101,
    -0.5347301163226948,
]  # β, Θ, γ, Φ; Hairer, Wanner
difference = np.abs(path.q[-1, :4] - published).max()
print(f"after 0.03 s: largest difference from the published solution {difference:.1e}")
assert difference < 1e-4

# %%
# The drawing that the catalogue brings along, at many times.
look = LOOKS["andrews-squeezer"]
takes = ("xa", "ya", "xb", "yb", "xc", "yc", "d", "e", "rr", "sc", "sd", "u", "zt")
figure, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
shades = plt.colormaps["viridis"](np.linspace(0, 1, 40))
for k, shade in zip(np.linspace(0, len(path) - 1, 40).astype(int), shades, strict=True):
    points, links = look.draw(path.q[k], **{name: problem.params[name] for name in takes})
    for i, j, *kind in links:
        dashes = ":" if kind else "-"
        axes[0].plot(*np.array([points[i], points[j]]).T, dashes, color=shade, linewidth=0.9)
axes[0].set(aspect="equal", xlabel="x (m)", ylabel="y (m)", title="forty moments, dark to light")
axes[1].plot(1e3 * path.t, path.q[:, 0] / (2 * np.pi), color=BLUE)
axes[1].set(xlabel="time t (ms)", ylabel="turns of the crank", title="driven by a constant torque")
plt.show()
