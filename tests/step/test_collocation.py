"""Chords with the mass of every node: inseparable systems, Gauss' rules with as many nodes as degrees."""

from dataclasses import replace
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest

import leastaction as la
from ensembles import PENDULUM
from leastaction.backends import backend
from leastaction.backends.fused import collocation, nodes, programs, shifted_systems
from leastaction.backends.fused.mass import mass_of
from leastaction.backends.fused.shifted_systems import moving
from leastaction.backends.layout import SOLVER
from leastaction.backends.singles import SingleSteps
from leastaction.backends.trajectories import single_steps
from leastaction.numbers.rounding import FLOAT64
from leastaction.program import Builder, Value, indices
from leastaction.step.form import step_of
from leastaction.step.verdict import verdict
from leastaction.systems.pace import paced
from rungs import solved_by
from systems import catalogued
from thrift import rest_slow

EPS = np.finfo(float).eps


def gauss(s):
    return la.galerkin(s, la.gauss(s))


@pytest.mark.parametrize("s", range(1, 13))
def test_tables_of_velocities_at_the_nodes(s):
    """N_ij + N_ji = 1 without rounding, which makes steps symplectic; N b integrates; λ are the eigenvalues of N b."""
    method = gauss(s)
    table, found = method.table, nodes.nodes_of(method)
    assert (found.places + found.places.T == 1).all()
    A = found.places * table.b
    for k in range(s):
        np.testing.assert_allclose(A @ table.c**k, table.c ** (k + 1) / (k + 1), rtol=0, atol=1e-15)
    np.testing.assert_allclose(found.middle[0].sum(), 0.5, rtol=1e-14)
    np.testing.assert_allclose(found.middle[1] @ table.c, 0.5, rtol=1e-13)
    shift, into, out = found.shift[0] + 1j * found.shift[1], found.into[0] + 1j * found.into[1], found.out
    x = shift[:, None] * into
    np.testing.assert_allclose(out[0] @ x.real + out[1] @ x.imag, A, rtol=0, atol=1e-8)  # it costs iterations alone
    velocities = np.random.default_rng(s).normal(size=s)
    z = found.lift @ (table.b * velocities)
    np.testing.assert_allclose(table.dl[:, 1:] @ z, velocities, rtol=0, atol=1e-12)
    np.testing.assert_allclose(table.l[:, 1:] @ z, A @ velocities, rtol=0, atol=1e-14)


@pytest.mark.parametrize("s", range(1, 13))
def test_sums_and_differences_of_opposite_nodes_stand_for_half_of_the_table(s):
    """The table that they stand for is N to round-off, and symplectic without rounding: a row of N for each unit."""
    found = nodes.nodes_of(gauss(s))
    B = Builder([("x", s)])
    program = B.build(y=indices(nodes.summed(found, B.values("x")), B))
    units = np.array([program(row)["y"] for row in np.eye(s)]).T
    np.testing.assert_allclose(units, found.places, rtol=0, atol=3e-16)
    assert sum(op == "mul" for op, *_ in program.code) <= s * s // 2 + 1
    half = s // 2
    a, middle = found.folded[:, :half], found.folded[:, half:]
    S = np.zeros((s, s), object)
    for i in range(half):
        for j in range(half):
            even, odd = Fraction(a[i, j]), -Fraction(a[j, i])
            S[i, j], S[i, s - 1 - j] = even + odd, even - odd
            S[s - 1 - i, j], S[s - 1 - i, s - 1 - j] = odd - even, -even - odd
        for across in middle[i]:
            S[i, half], S[s - 1 - i, half] = Fraction(across), -Fraction(across)
            S[half, i], S[half, s - 1 - i] = -Fraction(across), Fraction(across)
    assert (S + S.T == 0).all()
    np.testing.assert_allclose((S + 0.5).astype(float), found.places, rtol=0, atol=3e-16)  # an ulp above one


def test_rounding_does_not_hide_that_an_iteration_has_ended():
    """An increment of some ε, where increments shrink by a hundredth, is rounding: its own rate says nothing."""

    def solved(size, before, known):
        B = Builder([("x", 3)])
        size, before, known = (Value(B, B.const(number)) for number in (size, before, known))
        nothing, some = Value(B, B.const(0.0)), Value(B, B.const(1.0))
        seen = {"size": size, "before": before, "iterations": some * 5.0, "sound": some}
        seen |= dict.fromkeys(("off", "far", "doubt"), nothing)
        found = verdict(seen, fresh=False, chords=10, known=known)["solved"]
        return B.build(solved=indices([found], B))(np.zeros(3))["solved"] == [1.0]

    assert solved(size=1e-16, before=4e-16, known=0.01)
    assert not solved(size=1e-16, before=4e-16, known=0.1)
    assert not solved(size=2e-15, before=1e-13, known=0.01)


def test_members_of_lower_degree_iterate_so_in_lanes_where_that_costs_less():
    kernels = {s: programs.step_programs(PENDULUM, gauss(s)).kernels for s in (2, 3, 4, 5)}
    assert [s for s in kernels if "inner" in kernels[s]] == [4, 5]


def test_chords_correct_twice_where_derivatives_change_during_a_step():
    """The first chord of a step is plain. Where the derivatives of the middle are those of every node, all are."""
    linear = la.Lagrangian(
        lambda q, v, b: 0.5 * v @ v + b * (q[0] * v[1] - q[1] * v[0]) - q @ q, n=2, params={"b": 1.0}
    )
    for system, twice in ((PENDULUM, True), (linear, False)):
        with mock.patch.object(programs, "MOST_INSTRUCTIONS", 0):
            kernels = programs.step_programs(system, gauss(4)).kernels
        assert ("once" in kernels) == twice and "inner" in kernels


@pytest.mark.parametrize("s", [2, 3, 4, 7, 8])
def test_eigenvectors_have_an_entry_that_is_one(s):
    """One product less for each, and into and out still undo each other."""
    found = nodes.nodes_of(gauss(s))
    for real, imaginary in zip(*(part.T for part in found.out), strict=True):
        assert any((a, b) == (1.0, 0.0) for a, b in zip(real, imaginary, strict=True))
    back = found.out[0] @ found.into[0] + found.out[1] @ found.into[1]
    assert np.allclose(back, np.eye(s), rtol=0, atol=1e-11)


def test_entries_that_differ_by_their_sign_are_multiplied_once():
    B = Builder([("a", 2), ("x", 2)])
    (a, b), x = B.values("a"), B.values("x")
    rows = [[-a, a], [-b, b], [-a, -b], [a, b], [a, a]]
    found = [collocation.along(row, x) for row in rows]
    program = B.build(y=indices(found, B))
    assert sum(op == "mul" for op, *_ in program.code) == 5
    one, two = np.array([0.3, -1.7]), np.array([2.9, 0.4])
    matrix = np.array([[-0.3, 0.3], [1.7, -1.7], [-0.3, 1.7], [0.3, -1.7], [0.3, 0.3]])
    assert np.allclose(program(one, two)["y"], matrix @ two, rtol=0, atol=1e-15)


@pytest.mark.parametrize(("method", "first"), [("P4N4Q8Gau", True), ("P6N6Q12Gau", True), ("P8N8Q16Gau", False)])
def test_the_first_chord_of_lanes_takes_derivatives_of_the_middle_where_it_stays_short(method, first):
    kernels = programs.step_programs(PENDULUM, la.method(method)).kernels
    assert ("shifts" in dict(kernels["once"].outputs)) == first
    assert ("shifts" in dict(kernels["advance"].outputs)) != first


@pytest.mark.parametrize(("iterations", "known"), [(1.0, True), (2.0, False), (1.25, False)])
def test_the_square_of_the_first_rate_is_known_after_the_second_chord_alone(iterations, known):
    """A plain chord shrinks the error to 10⁻⁷; the chord behind it, which corrects twice, by 10⁻¹⁴. Where the chord
    before it corrected twice, too, 10⁻⁷ is what two corrections do.
    """
    B = Builder([("x", 1)])
    one = Value(B, B.const(1.0))
    seen = {"size": one * 1e-9, "before": one * 1e-2, "iterations": one * iterations, "sound": one}
    seen |= dict.fromkeys(("off", "far", "doubt"), one * 0.0)
    left = verdict(seen, fresh=False, chords=10, known=one, again=True, twice=True)["left"]
    (found,) = B.build(left=indices([left], B))(np.zeros(1))["left"]
    assert found == pytest.approx(1e-23 if known else 1e-16)


def test_other_members_have_no_such_tables():
    for name in ("simpson", "stormer-verlet", "P3N4Q6Lob", "P3N4Q8Gau", "P2N2Q2Lob"):
        assert nodes.nodes_of(la.method(name)) is None


def random_system(seed, n=3):
    """A mass that depends on q, a potential, a magnetic force; with an odd seed the energy is not quadratic in v, or a
    force depends on velocities and on time."""
    rng = np.random.default_rng(seed)
    a, b, c = rng.normal(size=(n, n)) / 3, rng.normal(size=n), rng.normal(size=(n, n)) / 3

    def L(t, q, v):
        w = v + 0.4 * np.sin(a @ q + b * np.cos(t)) * (b @ v)
        quartic = 0.02 * np.sum(v**4) if seed % 2 else 0.0
        return 0.5 * w @ w + quartic + np.sum(np.cos(q + b)) + np.sin(c @ q) @ v

    def F(t, q, v):
        return -0.1 * v * np.cos(q) + 0.05 * np.sin(t + b)

    return la.Lagrangian(L, n=n, force=F if seed % 3 else None), rng.normal(size=n), rng.normal(size=n)


@pytest.mark.parametrize("s", rest_slow([*range(1, 9)], [2, 8]))
@pytest.mark.parametrize("h", [0.05, 0.4])
@pytest.mark.parametrize("seed", rest_slow([*range(6)], [1]))
def test_random_systems_take_the_steps_that_newton_takes(seed, h, s):
    """One trajectory with points side by side, and trajectories in lanes; coarse steps, too.

    With seed 4 and h = 0.4 low degrees end where no root is connected with the motion: there all must end.
    """
    system, q0, v0 = random_system(seed)
    method, steps = gauss(s), 12
    assert mass_of(step_of(system, method)).collocated
    with solved_by("newton"):
        exact = states_of(system, method, q0, v0=v0, h=h, steps=steps)
    with solved_by("side by side"):
        one = states_of(system, method, q0, v0=v0, h=h, steps=steps)
    assert len(one) == len(exact)
    with solved_by("chords"):
        many = la.ensemble(system, method, np.tile(q0, (3, 1)), v0=np.tile(v0, (3, 1)), h=h, steps=steps)
    assert many.failed.tolist() == [len(exact) <= steps] * 3
    for q, p in ((one.q, one.p), (many.q[0], many.p[0]), (many.q[2], many.p[2])):
        np.testing.assert_allclose(q[: len(exact)], exact.q, rtol=0, atol=1e-12)
        np.testing.assert_allclose(p[: len(exact)], exact.p, rtol=0, atol=1e-12)


def states_of(system, method, q0, **how):
    """A path, or what there is of it where a step fails."""
    try:
        return la.integrate(system, method, q0, **how)
    except la.StepFailed as error:
        return error.path


def test_inputs_reach_the_nodes():
    """Where a force has inputs the derivatives of the middle are those of the last inputs: iterations, not errors."""
    system = la.Lagrangian(
        lambda q, v: 0.5 * (1 + 0.5 * np.cos(q[0])) * v[0] ** 2 + np.cos(q[0]),
        n=1,
        force=lambda q, v, u: u * np.sin(q) - 0.1 * u * v,
        inputs={"u": 1},
    )
    drive = {"inputs": {"u": np.sin(0.3 * np.arange(40))[:, None]}, "h": 0.1, "steps": 40}
    found = []
    for how in ("newton", "side by side", "chords"):
        with solved_by(how):
            found.append(la.integrate(system, "P4N4Q8Gau", [0.3], v0=[0.5], **drive))
    for path in found[1:]:
        np.testing.assert_allclose(path.q, found[0].q, rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    ("name", "method", "h", "most"),
    [
        ("double-pendulum-chaotic", "P4N4Q8Gau", 0.02, 4.5),
        ("double-pendulum-chaotic", "P8N8Q16Gau", 0.0278, 4.2),
        ("lagrange-top", "P4N4Q8Gau", 0.05, 5.5),  # cyclic coordinates are left out, and forces alone are iterated
        ("lagrange-top", "P8N8Q16Gau", 0.05, 5.0),
    ],
)
def test_few_iterations_and_no_doubt(name, method, h, most):
    """Where chords with one mass for all nodes took nine to thirteen iterations, and those that correct once five to
    seven, fewer are enough.
    """
    problem = catalogued(name)
    few, many = (
        la.integrate(problem.system, method, problem.q0, problem.p0, h=h, steps=steps, every=steps)
        for steps in (20, 1020)
    )
    assert few.stats["continued"] == many.stats["continued"]
    assert (many.stats["newton_iterations"] - few.stats["newton_iterations"]) / 1000 < most


@pytest.mark.parametrize(("method", "h"), [("P4N4Q8Gau", 0.1111), ("P6N6Q12Gau", 0.119)])
def test_coarse_steps_begin_again_from_the_place_they_have_reached(method, h):
    """Predictions miss a third of such a step now and then. Chords contract nevertheless, to the root that Newton's
    iteration and continuation find; without a second beginning, three steps of a hundred were continued.
    """
    problem = catalogued("double-pendulum")
    run = {"q0": problem.q0, "p0": problem.p0, "h": h}
    few, many = (la.integrate(problem.system, method, **run, steps=steps) for steps in (5, 305))
    assert few.stats["continued"] == many.stats["continued"]
    assert many.stats["newton_iterations"] - few.stats["newton_iterations"] < 300 * 11
    with solved_by("newton"):
        newton = la.integrate(problem.system, method, **run, steps=100)
    np.testing.assert_allclose(many.q[:101], newton.q, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("name", "method", "h"),
    [
        ("lagrange-top", "P8N8Q16Gau", 0.1923),
        ("double-pendulum-chaotic", "P8N8Q16Gau", 0.1),
        ("lagrange-top", "P5N5Q10Gau", 0.2),
    ],
)
def test_coarse_steps_are_predicted_by_the_motion_itself(name, method, h):
    """The last polynomial, prolonged, leads nowhere in a tenth of such steps, and continuation, which costs as much as
    hundreds of steps, had to find them. It finds the same roots.
    """
    problem = catalogued(name)
    run = la.integrate(problem.system, method, problem.q0, problem.p0, h=h, steps=60)
    assert run.stats["continued"] <= 1
    with solved_by("newton"):  # without kernels first steps do not march
        continued = la.ensemble(problem.system, method, run.q[1:60:4], run.p[1:60:4], h=h, steps=1).q[:, 1]
    found = run.q[2:61:4]
    size = np.maximum(1, np.abs(found).max(axis=1, keepdims=True))  # a run goes on from q and what rounding left over
    np.testing.assert_allclose(found / size, continued / size, rtol=0, atol=1e-13)


@pytest.mark.parametrize("s", [4, 8])
def test_lanes_march(s):
    """First steps took 90 to 130 iterations, and those for which chords failed were continued: lanes follow the motion
    now, as one trajectory does. The roots are those that continuation finds.
    """
    system, method = catalogued("double-pendulum").system, f"P{s}N{s}Q{2 * s}Gau"
    q = np.random.default_rng(0).uniform(-0.5, 0.5, (40, 2))
    given = {"p0": np.zeros(2), "h": 0.02 * s, "threads": 1}
    paths = la.ensemble(system, method, q, **given, steps=100)
    assert paths.stats["continued"] == 0
    assert la.ensemble(system, method, q, **given, steps=1).stats["newton_iterations"] <= 5 * len(q)
    with solved_by("newton"):
        for k in (0, 1, 50):
            one = la.ensemble(system, method, paths.q[:, k], **(given | {"p0": paths.p[:, k]}), steps=1)
            np.testing.assert_allclose(paths.q[:, k + 1], one.q[:, 1], rtol=0, atol=1e-13)


def even(q, v):
    """Of a motion along q[0] the other coordinate stays at zero."""
    return 0.5 * (1 + 0.3 * np.cos(q[0])) * (v @ v) + np.cos(q[0]) * np.cos(q[1])


def arenstorf(q):
    mu = catalogued("arenstorf").params["mu"]
    return 1 / np.sqrt(1 / ((q[0] + mu) ** 2 + q[1] ** 2) + 1 / ((q[0] - 1 + mu) ** 2 + q[1] ** 2))


@pytest.mark.parametrize("s", [4, 8])
@pytest.mark.parametrize("which", ["double-pendulum", "at rest", "pace"])
def test_first_steps_of_one_trajectory_march(which, s):
    """They took 22 iterations and more: lanes without a coordinate, and coordinates at rest, counted as too far."""
    given = {"h": 0.02 * s, "steps": 1}
    if which == "at rest":
        given |= {"system": la.Lagrangian(even, n=2), "q0": [0.5, 0.0], "v0": [1.0, 0.0]}
    else:
        problem = la.problems.get("arenstorf" if which == "pace" else which)
        given |= {"system": problem.system, "q0": problem.q0, "p0": problem.p0}
    if which == "pace":
        given |= {"pace": arenstorf, "h": 0.05 * s}
    path = la.integrate(method=f"P{s}N{s}Q{2 * s}Gau", **given)
    assert path.stats["newton_iterations"] <= 6
    with solved_by("newton"):
        other = la.integrate(method=f"P{s}N{s}Q{2 * s}Gau", **given)
    assert other.stats["newton_iterations"] > 6
    np.testing.assert_allclose(path.q, other.q, rtol=0, atol=1e-14)
    np.testing.assert_allclose(path.p, other.p, rtol=0, atol=1e-14)


def without_kernels(singles):
    """The same single steps by the solver of the loops."""
    memory = singles.solvers.duplicate().memory
    memory.I[memory.number(singles.alone, SOLVER, "kernels")] = -1
    return SingleSteps(singles.backend, replace(singles.solvers, memory=memory), singles.alone)


@pytest.mark.parametrize("s", [4, 6, 8, 12])
def test_single_steps_of_any_length_by_kernels(s):
    """Forwards and backwards, with the bits of tables that Python makes; the roots are those of the loops."""
    problem, method = catalogued("double-pendulum"), f"P{s}N{s}Q{2 * s}Gau"
    how = backend.backend(problem.system, la.method(method), 1)
    unit, powers = how.unit_tables
    for h in (0.3, -0.07, 1e-9):
        scaled = np.where(powers[:, None] > 0, unit * h, np.where(powers[:, None] < 0, unit * (1 / h), unit))
        assert (scaled == how.tables.numbers(h)).all()
    singles = single_steps(how)
    lengths = np.array([0.05, 1e-3, -0.05, 1e-9, 0.02])
    starts = np.tile(np.concatenate([[0.0], problem.q0, problem.p0 + 0.1]), (len(lengths), 1))
    given = starts, lengths, problem.system.values()
    for found, other in zip(singles.polynomials(*given), without_kernels(singles).polynomials(*given), strict=True):
        np.testing.assert_allclose(found, other, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    "n, s, count",
    [(2, 8, 60), *(pytest.param(n, s, 2000, marks=pytest.mark.slow) for n in (1, 2, 3) for s in (4, 6, 8))],
)
def test_roots_of_single_steps_by_kernels_are_the_continued_ones(n, s, count):
    """Coarse steps over waves: most of them follow the march; the others are left to the loops."""
    rng, method = np.random.default_rng(20 * n + s), la.method(f"P{s}N{s}Q{2 * s}Gau")
    k, f = 2 * rng.normal(size=(count, 3, n)), rng.uniform(0, 6, (count, 3))
    a = rng.uniform(0.1, 5.0, (count, 3)) / (k**2).sum(2)
    params = np.concatenate([k.reshape(count, -1), f, a], axis=1)
    system = la.Lagrangian(waves, n=n, params={"k": k[0], "f": f[0], "a": a[0]})
    singles = single_steps(backend.backend(system, method, 1))
    starts = np.concatenate([np.zeros((count, 1)), rng.normal(size=(count, 2 * n))], axis=1)
    lengths = rng.uniform(0.1, 1.0, count)
    found = singles.polynomials(starts, lengths, params)[0][:, -1]
    other = without_kernels(singles).polynomials(starts, lengths, params)[0][:, -1]
    both = np.isfinite(found).all(axis=1) & np.isfinite(other).all(axis=1)
    assert both.sum() > 0.8 * count
    np.testing.assert_allclose(found[both], other[both], rtol=0, atol=1e-9)


def waves(q, v, k, f, a):
    """Coarse steps over waves have many roots; the mass changes with the place, too."""
    return 0.5 * (1 + 0.5 * np.sin(k[0] @ q + f[1])) * (v @ v) - np.sum(a * np.cos(k @ q + f)) - 0.1 * (q @ q) ** 2


@pytest.mark.filterwarnings("ignore::leastaction.EnergyWarning")
@pytest.mark.parametrize(
    "n, s, count",
    [(2, 6, 40), *(pytest.param(n, s, 400, marks=pytest.mark.slow) for n in (1, 2, 3) for s in (4, 6, 8))],
)
def test_roots_of_marching_lanes_are_the_continued_ones(n, s, count):
    rng, method = np.random.default_rng(10 * n + s), f"P{s}N{s}Q{2 * s}Gau"
    k, f = 2 * rng.normal(size=(count, 3, n)), rng.uniform(0, 6, (count, 3))
    params = {"k": k, "f": f, "a": rng.uniform(0.1, 5.0, (count, 3)) / (k**2).sum(2)}
    system = la.Lagrangian(waves, n=n, params={name: values[0] for name, values in params.items()})
    run = la.ensemble(
        system, method, rng.normal(size=(count, n)), v0=rng.normal(size=(count, n)), h=1.0, steps=4, params=params
    )
    which, step = np.nonzero(np.isfinite(run.q[:, 1:]).all(axis=2))
    with solved_by("newton"):
        own = {name: values[which] for name, values in params.items()}
        one = la.ensemble(system, method, run.q[which, step], run.p[which, step], h=1.0, steps=1, params=own).q[:, 1]
    found = np.isfinite(one).all(axis=1)
    assert found.sum() > 2 * count
    np.testing.assert_allclose(run.q[which, step + 1][found], one[found], rtol=0, atol=1e-9)


def test_chords_that_stand_still_by_rounding_are_ended_by_newton():
    """The angle of the top moves by little, and what it is summed from rounds to 10⁻¹³ of that: chords come so far and
    stand still. Newton's iteration ended them from the prediction, or continuation did; from the place where chords
    stand it always can, and from then on chords know what rounding does.
    """
    problem = catalogued("lagrange-top")
    run = {"h": 10 / 52, "every": 2000, "steps": 2000}
    path = la.integrate(problem.system, "P8N8Q16Gau", problem.q0, problem.p0, **run)
    assert path.stats["continued"] == 0
    # Rounding decides how often chords stand still: 15,900 to 16,400 iterations, if h differs by 2 %. Continuation, as
    # of the first step, takes some 360 a step, and 131 of these steps were continued.
    assert path.stats["newton_iterations"] < 9 * 2000


@pytest.mark.parametrize("degree", [5, 6, 8])
def test_lanes_of_high_degree_take_chords(degree):
    """Newton's iteration as one kernel costs more there than the chords that a step takes."""
    system = catalogued("double-pendulum").system
    assert {"inner", "outer"} <= programs.step_programs(system, gauss(degree)).kernels.keys()


def energy_errors(steps, samples, count=32, method="P8N8Q16Gau"):
    """E(t) − E(0) of double pendulums with steps so short that truncation is far below ε; in units of ε E."""
    system = catalogued("double-pendulum").system
    q0 = np.random.default_rng(0).uniform(-0.5, 0.5, (count, 2))
    paths = la.ensemble(system, method, q0, np.zeros_like(q0), h=0.03, steps=steps, every=steps // samples)
    energy = paths.energy()
    return (energy - energy[:, :1]) / abs(energy[:, :1]) / EPS


def test_energies_scatter_and_do_not_drift():
    """Forces of the velocities before the last increment let every trajectory drift, by some 10⁻⁴ ε a step."""
    errors = energy_errors(30_000, 1)[:, -1]
    assert errors.std() < 4
    assert abs(errors.mean()) < 4 * errors.std() / np.sqrt(len(errors))


@pytest.mark.slow
def test_no_drift_in_a_million_steps():
    errors = energy_errors(10**6, 4)
    spread = errors.std(axis=0)
    assert spread[4] < 3 * spread[1]  # a walk doubles in four times the steps, a drift is four times as long
    assert spread[4] < 30
    assert abs(errors[:, -1].mean()) < 4 * spread[4] / np.sqrt(len(errors))


@pytest.mark.slow
def test_mass_chords_of_other_members_do_not_drift():
    """Forces of the increments before the last one let trajectories drift: by 5.5 ε on the average, 4.8 times its
    standard deviation.
    """
    assert "inner" in programs.step_programs(catalogued("double-pendulum").system, la.method("P8N9Q16Lob")).kernels
    errors = energy_errors(100_000, 1, 64, "P8N9Q16Lob")[:, -1]
    assert errors.std() < 8
    assert abs(errors.mean()) < 4 * errors.std() / np.sqrt(len(errors))


@pytest.mark.slow
@pytest.mark.parametrize(("rung", "steps"), [("chord", 100_000), ("newton", 60_000)])
def test_the_loops_do_not_drift(rung, steps):
    """With forces before the last increment the mean by mass chords was 3.2 ε, 3.9 times its standard deviation, and
    the spread, 6.6 ε, grew with the number of steps. With κ p between the forces and the momenta (`step.form`) the mean
    was −2.3 ε, 4.5 times its standard deviation, and by Newton's iteration as much.
    """
    with solved_by(rung):
        errors = energy_errors(steps, 1, 64)[:, -1]
    assert errors.std() < 5
    assert abs(errors.mean()) < 4 * errors.std() / np.sqrt(len(errors))


@pytest.mark.slow
def test_no_drift_of_single_runs_over_ten_million_steps():
    """Six double pendulums, each alone, the nodes of a step side by side."""
    system, steps, errors = catalogued("double-pendulum").system, 10**7, []
    for q0 in np.random.default_rng(1).uniform(-0.5, 0.5, (6, 2)):
        energy = la.integrate(system, "P8N8Q16Gau", q0, [0.0, 0.0], h=0.02, steps=steps, every=steps // 16).energy()
        errors.append((energy - energy[0]) / abs(energy[0]) / EPS)
    errors = np.array(errors)
    assert abs(errors).max() < 100, errors[:, ::4]
    assert abs(errors[:, -1].mean()) < 4 * errors[:, -1].std(ddof=1) / np.sqrt(len(errors)), errors[:, ::4]


def test_chords_that_lead_astray_are_left_to_newton():
    """With an E that has the wrong sign they do not contract: Newton's iteration takes the same steps."""
    problem = catalogued("double-pendulum")
    run = {"q0": problem.q0, "p0": problem.p0, "h": 0.05, "steps": 30}
    exact = la.integrate(problem.system, "P8N8Q16Gau", **run)
    backend.backend.cache_clear()
    with mock.patch.object(
        collocation, "inverses", lambda *given: [-0.7 * a for a in shifted_systems.inverses(*given)]
    ):
        path = la.integrate(problem.system, "P8N8Q16Gau", **run)
    backend.backend.cache_clear()
    np.testing.assert_allclose(path.q, exact.q, rtol=0, atol=1e-13)
    assert path.stats["newton_iterations"] != exact.stats["newton_iterations"]


def test_large_systems_keep_the_mass_of_the_middle():
    """With many coordinates the inverses cost more than the iterations that they save."""
    for n, wanted in ((3, True), (20, False)):
        step = step_of(la.Lagrangian(lambda q, v: 0.5 * v @ v + q[:-1] @ v[1:] + np.sum(np.cos(q)), n=n), gauss(4))
        assert mass_of(step).collocated
        assert programs._mass(step).collocated == wanted


def test_a_coordinate_that_never_moves_is_left_out_of_the_inverses():
    """The energy of a motion with a pace, a coordinate of mass 2³⁰⁰; heavy neighbours that move stay."""
    problem = catalogued("kepler")
    system = paced(problem.system, lambda q: np.sqrt(q[0] ** 2 + q[1] ** 2), FLOAT64)
    assert moving(step_of(system, la.method("P4N4Q8Gau"))) == (0, 1)
    for mass in (1e50, 1e70):
        heavy = la.Lagrangian(
            lambda q, v, mass=mass: 0.5 * (v[0] ** 2 * (1 + q[0] ** 2) + mass * v[1] ** 2) - q[0] * q[1], n=2
        )
        assert moving(step_of(heavy, la.method("P4N4Q8Gau"))) == (0, 1)


def test_energy_stays_where_predictions_lead_far_away():
    """Four steps a period of order 32: a first increment is longer than the step, and its rounding must not stay."""

    def relativistic(q, v):
        return -np.sqrt(1 - v @ v) - 0.5 * (q @ q) - 0.1 * q[0] * q[1] ** 2

    system = la.Lagrangian(relativistic, n=2)
    path = la.integrate(system, "P16N16Q32Gau", [0.5, 0.3], v0=[0.2, -0.1], h=1.575, steps=40_000, every=40_000)
    E = path.energy()
    assert abs(E[-1] - E[0]) < 200 * np.spacing(abs(E[0]))  # random rounding leaves some 20; a drift left 1500


def test_a_degree_at_which_rounding_makes_real_shifts_of_a_pair():
    """With s = 32 float64 finds two real eigenvalues where there is a pair, and one shift more."""
    problem = la.problems.get("double-pendulum")
    low, high = (
        la.integrate(problem.system, f"P{s}N{s}Q{2 * s}Gau", [1.0, 1.0], [0.0, 0.0], h=0.1, steps=3) for s in (12, 32)
    )
    np.testing.assert_allclose(high.q, low.q, atol=1e-13)
