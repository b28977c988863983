"""Citations: the entries that stand behind a run, and the files that tell the version."""

import re
from pathlib import Path

import numpy as np
import pytest

import leastaction as la
from systems import catalogued

ROOT = Path(__file__).parents[2]


def keys(text):
    return re.findall(r"^@\w+\{(\w+),", text, re.MULTILINE)


def run(name="kepler", method="simpson", **changes):
    problem = catalogued(name)
    options = {"h": 0.01, "steps": 3} | changes
    return la.integrate(problem.system, method, problem.q0, problem.p0, **options)


def test_the_papers_of_a_run():
    found = keys(la.cite(run()))
    assert found[0] == "leastaction"
    assert {"marsden2001", "oberbloebaum2014", "dubois2023", "rojasquintero2025"} <= set(found)
    assert "rojasquintero2024" not in found and "arb2017" not in found


def test_what_a_run_has_used():
    """Constraints, pace, events and digits bring their papers; nothing is named twice."""
    assert "andersen1983" in keys(la.cite(run("pendulum-cartesian", "verlet")))
    assert "hairer2006" in keys(la.cite(run("pendulum-cartesian", "P2N2Q4Gau")))
    assert "hairer1997" in keys(la.cite(run(pace=lambda q: np.sqrt(q @ q))))
    assert "chandrupatla1997" in keys(la.cite(run(events={"axis": la.Event(lambda q, p: q[1])})))
    fine = keys(la.cite(run(digits=30)))
    assert "arb2017" in fine and "llvm2004" not in fine
    composed = keys(la.cite(run(method=la.compose(la.compose("verlet", "yoshida"), "yoshida"))))
    assert composed.count("yoshida1990") == 1 and "verlet1967" in composed


def test_linear_systems_and_ensembles():
    system = la.Quadratic(np.eye(2), np.eye(2))
    path = la.integrate(system, "newmark", [1.0, 0.0], v0=[0.0, 0.0], h=0.1, steps=3)
    assert {"newmark1959", "scipy2020"} <= set(keys(la.cite(path)))
    simpson = la.integrate(system, "simpson", [1.0, 0.0], v0=[0.0, 0.0], h=0.1, steps=3)
    assert "rojasquintero2024" in keys(la.cite(simpson)) and "dubois2023" not in keys(la.cite(simpson))
    problem = catalogued("kepler")
    paths = la.ensemble(problem.system, "rk4", problem.q0[None], problem.p0, h=0.1, steps=3)
    assert "kutta1901" in keys(la.cite(paths)) and "oberbloebaum2014" not in keys(la.cite(paths))


def test_methods_by_name():
    assert "rojasquintero2024" in keys(la.cite("simpson"))
    assert keys(la.cite(la.method("rk4"))) == ["leastaction", "kutta1901"]
    with pytest.raises(ValueError, match="unknown method"):
        la.cite("simpsonn")
    with pytest.raises(TypeError, match="expected a path"):
        la.cite(3)


def test_entries_are_well_formed():
    """Balanced braces, an author, a title and a year each; every key that can be asked for is there."""
    from leastaction.results import citations

    entries = citations._entries()
    for key, text in entries.items():
        assert text.count("{") == text.count("}")
        fields = dict(re.findall(r"^  (\w+) = \{(.*)\},$", text, re.MULTILINE))
        assert {"author", "title"} <= set(fields)
        assert key == "leastaction" or re.fullmatch(r"\d{4}", fields["year"])
        assert not any(ord(letter) > 127 for letter in text), "plain BibTeX is ASCII"
    files = [Path(citations.__file__), *(ROOT / "src/leastaction/methods").glob("*.py")]
    asked = {key for file in files for key in re.findall(r'"([a-z]+\d{4})"', file.read_text("utf-8"))}
    assert asked | {"leastaction"} == set(entries)


def test_one_version():
    """version.py tells it; CITATION.cff says the same, and no other file says any."""
    assert f"\nversion: {la.__version__}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    assert 'dynamic = ["version"]' in (ROOT / "pyproject.toml").read_text("utf-8")
    assert la.__version__ not in (ROOT / "recipe" / "meta.yaml").read_text("utf-8")


def test_the_recipe_needs_what_the_wheel_needs():
    import tomllib

    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    recipe = (ROOT / "recipe" / "meta.yaml").read_text("utf-8").replace("matplotlib-base", "matplotlib")
    run_part = recipe.split("  run:\n")[1].split("\n\n")[0]
    assert {line.strip(" -").replace(" ", "") for line in run_part.splitlines()[1:]} == set(wanted)
