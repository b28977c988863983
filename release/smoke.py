"""What an installed leastaction must do without extras: trace, compile, run, look, cite. Run outside of the clone."""

import importlib.util
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np

import leastaction as la

for extra in ("zarr", "xarray", "starlette", "uvicorn", "anywidget", "distributed"):
    assert importlib.util.find_spec(extra) is None, f"{extra} is an extra, and is installed"
here = Path(la.__file__).parent
assert "site-packages" in here.parts, f"this is not the installed one: {here}"
assert version("leastaction") == la.__version__


def pendulum(q, v, g):
    return 0.5 * v[0] ** 2 + g * np.cos(q[0])


system = la.Lagrangian(pendulum, n=1, params={"g": 9.81})
path = la.integrate(system, "simpson", q0=[1.0], v0=[0.0], h=0.01, t_end=10)
assert abs(path.energy() / path.energy()[0] - 1).max() < 1e-7
assert "numba" not in sys.modules
many = la.ensemble(system, "P4N4Q8Gau", q0=np.linspace(0.1, 1, 9)[:, None], p0=[0.0], h=0.05, steps=100)
assert not many.failed.any()
fine = la.integrate(system, "P2N2Q4Gau", q0=["1"], v0=["0"], h="1/10", steps=3, digits=40)
assert fine.digits == 40
linear = la.integrate(la.Quadratic(np.eye(2), np.eye(2)), "newmark", [1.0, 0.0], v0=[0.0, 0.0], h=0.1, steps=10)
assert len(linear) == 11
page = Path("run.html")
path.to_html(page)
assert page.stat().st_size > 50_000 and "<script" in page.read_text("utf-8")
page.unlink()
assert "@software{leastaction" in la.cite(path)
told = subprocess.run([sys.executable, "-m", "leastaction", "--version"], capture_output=True, text=True, check=True)
assert la.__version__ in told.stdout
try:
    path.to_xarray()
except ImportError as error:
    assert "leastaction[xarray]" in str(error)
else:
    raise AssertionError("xarray is an extra")
print(f"leastaction {la.__version__} works on Python {sys.version.split()[0]}")
