"""No native call writes beyond its arrays: what docs/runs.md lists, with Programs that are cut; and guard zones."""

import ctypes
from collections import OrderedDict

import numpy as np
import pytest

import leastaction as la
from leastaction.kernel import compile as kernel_compile
from leastaction.kernel import loops
from leastaction.kernel.guarded import GUARDING, check_zones, guarded
from leastaction.program import Builder

STEPS, MANY = 9, 9  # so many trajectories fill more than one vector


@pytest.fixture
def cut(monkeypatch):
    """Programs are cut into functions of 40 instructions: all but the shortest need room for what one function hands
    to the next.
    """
    for name in ("PIECE", "LONG_PIECE"):
        monkeypatch.setattr(kernel_compile, name, 40)
    monkeypatch.setattr(kernel_compile, "_recent", OrderedDict())  # kernels that were made before are not cut


def coupled(t, q, v, m, c):
    """A mass that depends on q and couples, and parameters in an array."""
    mass = m * (v[0] ** 2 + (1 + q[0] ** 2) * v[1] ** 2 + 0.6 * v[0] * v[1]) / 2
    return mass + np.cos(q[0] - q[1]) + c[0] * np.cos(q[1] - t / 3) - c[1] * q[0] ** 2


def separable(q, v, m):
    return m * (v @ v) / 2 + np.cos(q[0] - q[1]) - q[0] ** 4 / 4


def kepler(q, v, k):
    return (v @ v) / 2 + k / np.sqrt(q @ q)


def pushed(q, v, c, u):
    return np.array([u - c[0] * v[0], -c[1] * v[1] * q[0]])


def points(q, v, m, l):
    """Two points in the plane under gravity."""
    return (m[0] * v[:2] @ v[:2] + m[1] * v[2:] @ v[2:]) / 2 - 9.81 * (m[0] * q[1] + m[1] * q[3])


def rods(q, l):
    return np.array([q[:2] @ q[:2] - l[0] ** 2, (q[2:] - q[:2]) @ (q[2:] - q[:2]) - l[1] ** 2])


def chain(mass):
    n = 20
    along = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    terms = [
        la.Term(lambda q, v: 0.5 * v[0] ** 2, over=np.arange(n)),
        la.Term(lambda q, v, k: -k * (1 - np.cos(q[1] - q[0])), over=along, params={"k": 2.0}),
    ]
    if mass == "moving":
        terms.append(la.Term(lambda q, v: 0.2 * v[0] * v[1] * np.cos(q[0] - q[1]), over=along))
    return la.Lagrangian.sum(terms, n=n)


VALUES = {"m": 1.5, "c": [0.3, 0.2]}
FREE = {"q0": [0.4, 0.3], "v0": [0.5, -0.2]}
HELD = {"q0": [0.6, -0.8, 0.6, -1.5], "v0": [0.0, 0.0, 0.0, 0.0]}
MATRICES = {"M": [[2.0, 0.5], [0.5, 1.5]], "K": [[3.0, 1.0], [1.0, 2.0]], "C": [[0.1, 0.0], [0.0, 0.2]]}
SYSTEMS = {
    "coupled": (lambda: la.Lagrangian(coupled, n=2, params=VALUES), FREE),
    "separable": (lambda: la.Lagrangian(separable, n=2, params={"m": 1.5}), FREE),
    "forced": (lambda: la.Lagrangian(coupled, 2, VALUES, force=pushed, inputs={"u": ()}), FREE),
    "held": (lambda: la.Lagrangian(points, 4, {"m": [1, 2], "l": [1, 0.7]}, constraints=rods), HELD),
    "kepler": (lambda: la.Lagrangian(kepler, n=2, params={"k": 1.0}), {"q0": [0.4, 0.0], "v0": [0.0, 2.0]}),
    "linear": (lambda: la.Quadratic(**MATRICES, f=[0.3, -0.1]), FREE),
    "sum": (lambda: chain("plain"), {"q0": np.linspace(0, 1, 20), "v0": np.zeros(20)}),
    "stiff sum": (lambda: chain("moving"), {"q0": np.linspace(0, 1, 20), "v0": np.zeros(20)}),
}
ALL = ("coupled", "separable", "forced", "held", "kepler", "linear", "sum", "stiff sum")
SMALL = ALL[:5]
EVENTS = {"turn": la.Event(lambda q, p: p[0]), "late": la.Event(lambda t, q, p: t - 0.35 + 0.0 * q[0], stop=True)}
WALL = {"wall": la.Impact(lambda q: q[0] - 0.3)}
MATRIX = [  # method, options, systems
    ("simpson", {}, ALL),
    ("simpson", {"every": 4, "output": [1]}, ("coupled", "held", "linear")),
    ("simpson", {"tangent": True}, ALL[:6]),
    ("simpson", {"tangent": "all"}, SMALL),
    ("simpson", {"events": EVENTS}, ALL),
    ("simpson", {"events": WALL, "tangent": True}, ("coupled", "separable", "kepler")),
    ("simpson", {"pace": lambda q: np.sqrt(q @ q)}, ("kepler", "coupled")),
    ("simpson", {"branch": "any"}, ("coupled", "sum")),
    ("P3N3Q6Gau", {}, ALL),
    ("P3N3Q6Gau", {"tangent": "all"}, ("coupled", "held")),
    ("P2N3Q4Lob", {"tangent": True, "events": EVENTS}, ("coupled", "held")),
    ("stormer-verlet", {"events": EVENTS}, ("separable", "sum")),
    (la.galerkin(2, la.rule(["1/3", 1], ["3/4", "1/4"])), {"tangent": True}, ("coupled",)),
    ("yoshida(P1N2Q2Lob)", {"tangent": True}, ("coupled", "forced", "held")),
    ("yoshida(P1N2Q2Lob)", {}, SMALL),
    ("rk4", {}, ("coupled", "separable", "forced")),
    ("rk4-lagrange", {"tangent": "all"}, ("coupled", "forced")),
]


def case(method, how, name, slow):
    given = [f"{key}={value}" if isinstance(value, (bool, str)) else key for key, value in how.items()]
    return pytest.param(
        method, how, name, id="-".join([str(method), *given, name]), marks=[pytest.mark.slow] * bool(slow)
    )


@pytest.mark.parametrize(
    ("method", "how", "name"),
    [
        case(method, how, name, slow=place > (7 if (method, how) == ("simpson", {}) else 0 if how else 1))
        for method, how, names in MATRIX
        for place, name in enumerate(names)
    ],
)
def test_no_call_writes_beyond_its_arrays(cut, method, how, name):
    """One trajectory, a state between two steps, and many trajectories: each native call checks its arrays."""
    make, start = SYSTEMS[name]
    system = make()
    if system.inputs:
        how = how | {"inputs": {"u": np.sin(np.arange(STEPS))[None]}}
    one = how | {"inputs": {"u": how["inputs"]["u"][0]}} if system.inputs else how
    path = la.integrate(system, method, **start, h=0.05, steps=STEPS, **one)
    assert np.isfinite(path.q).all()
    assert "output" in how or np.isfinite(path(path.t[-1] - 0.01)).all()
    paths = la.ensemble(system, method, np.tile(start["q0"], (MANY, 1)), v0=start["v0"], h=0.05, steps=STEPS, **how)
    assert not paths.failed.any()


def network(q, v, first, shift, second, last):
    """Two layers, for what a mass and a spring leave out."""
    inner = np.tanh(first @ np.array([q[0], q[1], v[0], v[1]]) + shift)
    return (v @ v) / 2 - (q @ q) / 2 + 0.1 * (last @ np.tanh(second @ inner)) ** 2


def pendulums(q, v, m, l):
    x, y, height, L = 0.0, 0.0, 0.0, 0.0
    for i in range(len(q)):
        x, y = x + l[i] * np.cos(q[i]) * v[i], y + l[i] * np.sin(q[i]) * v[i]
        height = height - l[i] * np.cos(q[i])
        L = L + m[i] * (x**2 + y**2) / 2 - 9.81 * m[i] * height
    return L


def surface(q, first, shift, second, last):
    """A point on a surface that two layers describe."""
    return q[2] + 0.1 * (last @ np.tanh(second @ np.tanh(first @ q[:2] + shift)))


def layers(inputs):
    sizes, rng = {"first": (8, inputs), "shift": 8, "second": (7, 8), "last": 7}, np.random.default_rng(3)
    return {name: 0.3 * rng.standard_normal(size) for name, size in sizes.items()}


EPS = (
    2.0**-17
)  # central differences then have errors of EPS² of third derivatives and 2⁻⁵²/EPS of the state: some 10⁻¹⁰
CLOSE = 1e-7
LONG = {
    "network": (la.Lagrangian(network, n=2, params=layers(4)), {"q0": [0.3, 0.4], "v0": [0.1, 0.2]}),
    "pendulums": (
        la.Lagrangian(pendulums, n=9, params={"m": np.ones(9), "l": np.full(9, 1 / 9)}),
        {"q0": np.full(9, 0.3), "v0": np.zeros(9)},
    ),
}


def last_state(path):
    return np.concatenate([path.q[-1], path.p[-1]])


@pytest.mark.parametrize("method", ["simpson", "P3N3Q6Gau"])
@pytest.mark.parametrize("name", LONG)
def test_derivatives_by_many_parameters(name, method):
    """Along one direction, against differences of runs."""
    system, start = LONG[name]
    rng, how = np.random.default_rng(4), {"h": 0.02, "steps": 4}
    step = {key: EPS * rng.standard_normal(np.shape(value)) for key, value in system.params.items()}
    path = la.integrate(system, method, **start, **how, tangent="all")
    found = 2 * path.sensitivity[-1][:, :-1] @ np.concatenate([step[key].ravel() for key in system.params])
    q0, p0 = path.q[0], path.p[0]
    moved = [{key: value + sign * step[key] for key, value in system.params.items()} for sign in (1, -1)]
    ahead, behind = (last_state(la.integrate(system, method, q0, p0, **how, params=values)) for values in moved)
    np.testing.assert_allclose(found, ahead - behind, atol=CLOSE * abs(found).max())


@pytest.mark.parametrize("method", ["simpson", "P3N3Q6Gau"])
def test_derivatives_on_a_surface_with_many_parameters(method):
    """Along one direction on the surface, against differences of runs."""
    system = la.Lagrangian(lambda q, v: v @ v / 2 - q @ q / 2 - q[2], n=3, params=layers(2), constraints=surface)
    starts = [la.project(system, [0.5 + x, 0.2 - 2 * x, 0.0], [0.3, 0.1, 0.0]) for x in (EPS, 0, -EPS)]
    ahead, path, behind = (la.integrate(system, method, q, v0=v, h=0.02, steps=4, tangent=True) for q, v in starts)
    found = path.tangent[-1] @ np.concatenate([ahead.q[0] - behind.q[0], ahead.p[0] - behind.p[0]])
    np.testing.assert_allclose(found, last_state(ahead) - last_state(behind), atol=CLOSE * abs(found).max())


def write_at(array, place):
    (ctypes.c_int64 * 1).from_address(array.ctypes.data + 8 * place)[0] = 0


@pytest.mark.parametrize("dtype", [np.float64, np.int64])
def test_a_write_beyond_an_array_names_it(dtype):
    """The first and the last number of an array may be written, those beside them not."""
    for place, where in ((-1, "before"), (3, "behind"), (8, "behind")):
        array = guarded((3,), "a", dtype)
        assert (array == 0).all()
        for free in (0, 2):
            write_at(array, free)
        check_zones(array)
        write_at(array, place)
        with pytest.raises(RuntimeError, match=f"native code wrote {where} a"):
            check_zones(array)


def test_a_call_that_writes_beyond_an_array_is_an_error():
    """An array without guard zones has some for the time of a native call: here four results are written into three."""
    assert GUARDING
    B = Builder([("x", 2)])
    kernel = kernel_compile.compile_program(B.build(y=B.input("x")[:1]))
    with pytest.raises(RuntimeError, match=r"native code wrote behind argument 5 of points"):
        loops._points()(kernel.address, 4, 2, 1, np.ones((4, 2)), np.zeros((3, 1)), np.zeros(1))
