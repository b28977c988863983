"""All exceptions and all results travel between processes."""

import importlib
import inspect
import multiprocessing
import pickle
import pkgutil
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

import leastaction as la
from hostile_workers import falls_into_the_sun, goes_round, kepler
from processes import PATIENCE
from systems import catalogued


def travelled(x):
    return pickle.loads(pickle.dumps(x))


def failure():
    with pytest.raises(la.StepFailed) as caught:
        falls_into_the_sun(100)
    return caught.value


def exceptions():
    for module in pkgutil.walk_packages(la.__path__, "leastaction."):
        if module.name.endswith("__main__"):
            continue
        for _, item in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if issubclass(item, Exception) and item.__module__ == module.name:
                yield item


@pytest.mark.parametrize("kind", sorted(set(exceptions()), key=lambda kind: kind.__name__))
def test_every_exception_travels(kind):
    said = {}
    if issubclass(kind, la.StepFailed):
        said = {name: value for name, value in vars(failure()).items() if not name.startswith("_")}
    error = kind("what was expected, what came", **said)
    error.add_note("what to do")
    arrived = travelled(error)
    assert type(arrived) is kind and str(arrived) == str(error)
    assert arrived.__notes__ == ["what to do"]


def test_a_failed_step_arrives_with_all_it_says():
    error = failure()
    arrived = travelled(error)
    for name in ("step", "time", "h", "stage", "residual", "iterations"):
        assert getattr(arrived, name) == getattr(error, name)
    assert np.array_equal(arrived.path.q, error.path.q) and arrived.path.energy()[0] == error.path.energy()[0]


def test_a_failed_step_ends_a_pool():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        with pytest.raises(la.StepFailed, match="could not be solved") as caught:
            pool.map_async(falls_into_the_sun, [50]).get(PATIENCE)  # for ever, if the answer cannot be read
        assert len(caught.value.path) == caught.value.step + 1


def test_a_failed_step_ends_an_executor_and_leaves_it_whole():
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        with pytest.raises(la.StepFailed):
            pool.submit(falls_into_the_sun, 50).result(PATIENCE)
        assert len(pool.submit(goes_round, 50).result(PATIENCE)) == 51


def results(folder):
    system = la.Lagrangian(kepler, n=2)
    start = ([1.0, 0.0], [0.0, 1.0])
    quadratic = la.Quadratic([2.0, 1.0], [[2.0, -1.0], [-1.0, 2.0]], f=[1.0, 0.0])
    events = {"c": la.Event(lambda q, p: q[1]), "f": la.Impact(lambda q: q[1] + 0.5)}
    problem = catalogued("pendulum")
    path = la.integrate(system, "simpson", *start, h=0.1, steps=20)
    many = {"h": 0.1, "steps": 20, "reduce": {"E": la.EnergyRange()}, "events": events}
    yield "path", path
    yield "digits", la.integrate(system, "simpson", *start, h=0.1, steps=5, digits=30)
    yield "tangent", la.integrate(system, "simpson", *start, h=0.1, steps=5, tangent="all")
    yield "linear", la.integrate(quadratic, "simpson", *start, h=0.1, steps=5)
    yield "linear digits", la.integrate(quadratic, "simpson", *start, h=0.1, steps=5, digits=30)
    yield "stored", la.integrate(system, "simpson", *start, h=0.1, steps=20, store=folder / "path.zarr")
    yield "paths", la.ensemble(system, "simpson", np.ones((5, 2)), [0.0, 1.0], **many)
    yield "stored paths", la.ensemble(system, "simpson", np.ones((5, 2)), [0.0, 1.0], **many, store=folder / "e.zarr")
    yield "method", la.method("P3N3Q6Gau")
    yield "problem", problem
    yield "stability", la.analysis.stability("simpson")
    yield "dispersion", la.analysis.dispersion("simpson")
    yield "equivalences", la.analysis.equivalences("midpoint")
    yield "convergence", la.analysis.convergence(problem, "simpson", [0.2, 0.1, 0.05], t_end=1.0)
    yield "symmetries", la.analysis.symmetries(system)
    yield "conservation", la.analysis.symmetries(system).check(path)
    yield "structure", la.analysis.structure(system, "simpson", *start, [0.1])
    yield "lyapunov", la.analysis.lyapunov(system, "simpson", *start, h=0.1, steps=50)
    yield "resonance", la.analysis.resonance(system, "simpson", *start, [0.1, 0.2], t_end=1.0)


def test_every_result_travels_also_after_it_was_used(tmp_path):
    for name, result in results(tmp_path):
        if isinstance(result, la.Path | la.Paths):
            energy = np.asarray(result.energy())
            if isinstance(result, la.Path):
                result(result.t[0] + 0.5 * result.h)
            arrived = travelled(result)
            assert np.array_equal(np.asarray(arrived.energy()), energy), name
            assert np.array_equal(np.asarray(arrived.q), np.asarray(result.q)), name
        else:
            assert repr(travelled(result)) == repr(result), name
