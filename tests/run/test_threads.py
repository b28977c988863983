"""The number of BLAS threads changes no step of a Lagrangian; archives of dense linear systems record the number."""

import numpy as np
import pytest

import leastaction as la
from processes import printed_by
from thrift import rest_slow

BITS = "import sys; from hostile_workers import bits; print(bits(sys.argv[1]))"


def printed(code, argument, threads):
    """What a process with so many BLAS threads prints."""
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
    return printed_by(code, argument, **dict.fromkeys(names, str(threads)))


@pytest.mark.parametrize("kind", rest_slow(["path", "tangent", "rk4", "ensemble"], ["path"]))
def test_bits_do_not_depend_on_the_threads_of_BLAS(kind):
    one, two = (printed(BITS, kind, threads) for threads in (1, 2))
    assert len(one) > 60 and one == two


def test_a_dense_linear_run_that_goes_on_with_other_threads_says_so(tmp_path, monkeypatch):
    """The number of threads decides the order of the sums in a run."""
    A = np.random.default_rng(0).standard_normal((80, 80))
    system = la.Quadratic(np.eye(80) + A @ A.T / 80, 2 * np.eye(80) + A.T @ A / 80)
    monkeypatch.setattr("leastaction.linear.system.blas_threads", lambda: 2)
    la.integrate(system, "simpson", np.ones(80), np.zeros(80), h=0.1, steps=5, store=tmp_path / "run")
    monkeypatch.setattr("leastaction.linear.system.blas_threads", lambda: 1)
    with pytest.warns(RuntimeWarning, match="its last digits may differ"):
        la.resume(tmp_path / "run", steps=5)
