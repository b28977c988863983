"""Path: saved and loaded to the bit, refused when damaged, converted and drawn."""

import os

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest

import leastaction as la
from processes import printed_by
from systems import case


@pytest.fixture(scope="module", params=["P3N4Q6Lob", "rk4-lagrange"])
def path(request):
    system, q0, v0 = case("driven-pendulum")
    return la.integrate(system, request.param, q0, v0=v0, h=0.1, steps=25, t0=0.3, every=4, params={"a": 0.1 + 0.2})


TIMES = np.linspace(0.3, 2.8, 40)


def test_round_trip(path, tmp_path):
    """Every array, the parameters and the system come back to the bit; energy and dense output work as before."""
    path.save(tmp_path / "run.npz")
    back = la.Path.load(tmp_path / "run.npz")
    for name in ("t", "q", "p"):
        assert getattr(back, name).tobytes() == getattr(path, name).tobytes()
    assert (back.h, back.every, back.params, back.method) == (path.h, path.every, path.params, path.method)
    assert dict(back.stats) == dict(path.stats)
    assert back.system.program == path.system.program and back.system.params == path.system.params
    assert (back.energy() == path.energy()).all() and (back(TIMES) == path(TIMES)).all()
    assert repr(back) == repr(path)


def test_load_in_a_fresh_process(path, tmp_path):
    """One file is all another process needs: no function, the same bits."""
    path.save(tmp_path / "run.npz")
    code = (
        "import sys, numpy as np, leastaction as la\n"
        "p = la.Path.load(sys.argv[1])\n"
        "print(p.energy().tobytes().hex(), p(np.linspace(0.3, 2.8, 40)).tobytes().hex())"
    )
    printed = printed_by(code, tmp_path / "run.npz").split()
    assert printed == [path.energy().tobytes().hex(), path(TIMES).tobytes().hex()]


def test_array_parameters_and_fractions_survive(tmp_path):
    """Arrays keep their shapes, exact constants stay exact."""

    def fn(q, v, k):
        return 0.5 * v @ v / 3 - 0.5 * q @ k @ q

    system = la.Lagrangian(fn, n=2, params={"k": [[2.0, 0.1], [0.1, 1.0]]})
    path = la.integrate(system, "simpson", [1.0, 0.0], [0.0, 0.1], h=0.1, steps=3)
    path.save(tmp_path / "a.npz")
    back = la.Path.load(tmp_path / "a.npz")
    assert (back.params["k"] == path.params["k"]).all() and back.params["k"].shape == (2, 2)
    assert back.system.program == system.program


def broken_copies(data):
    """Files that are not whole: cut short, empty, text, and with bits flipped all along."""
    yield b""
    yield b"not a path at all"
    for cut in (10, len(data) // 2, len(data) - 1):
        yield data[:cut]
    for place in np.linspace(0, len(data) - 1, 60).astype(int):
        flipped = bytearray(data)
        flipped[place] ^= 0x10
        yield bytes(flipped)


def test_damaged_files_are_refused_or_whole(path, tmp_path):
    """A damaged file gives an error that names it, or, where only idle bytes of the archive changed, the same path."""
    file = tmp_path / "run.npz"
    path.save(file)
    whole, refused = file.read_bytes(), 0
    for data in broken_copies(whole):
        file.write_bytes(data)
        try:
            back = la.Path.load(file)
        except ValueError as error:
            assert "run.npz is not a path saved by leastaction, or is damaged: " in str(error)
            refused += 1
        else:
            assert all((getattr(back, name) == getattr(path, name)).all() for name in ("t", "q", "p"))
            assert (back.energy() == path.energy()).all()
    assert refused > 50


def test_other_files_are_refused(tmp_path):
    np.savez(tmp_path / "other.npz", t=np.zeros(3))
    np.save(tmp_path / "other.npy", np.zeros(3))
    for name in ("other.npz", "other.npy"):
        with pytest.raises(ValueError, match=f"{name} is not a path saved by leastaction, or is damaged"):
            la.Path.load(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        la.Path.load(tmp_path / "nothing.path")


def test_failed_save_leaves_the_old_file(path, tmp_path, monkeypatch):
    """A file is replaced only by a whole one, and nothing else is left behind."""
    file = tmp_path / "run.npz"
    path.save(file)
    before = file.read_bytes()

    def disk_full(stream, **arrays):
        stream.write(b"half")
        raise OSError("No space left on device")

    monkeypatch.setattr(np, "savez", disk_full)
    with pytest.raises(OSError, match="No space left"):
        path.save(file)
    assert file.read_bytes() == before
    assert os.listdir(tmp_path) == ["run.npz"]


def test_saved_file_has_ordinary_permissions(path, tmp_path):
    (tmp_path / "plain").write_text("")
    path.save(tmp_path / "run.npz")
    assert (tmp_path / "run.npz").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_to_xarray(path):
    data = path.to_xarray()
    assert data.q.dims == ("t", "dof") and data.energy.dims == ("t",)
    assert (data.q.values == path.q).all() and (data.p.values == path.p).all()
    assert (data.energy.values == path.energy()).all() and (data.t.values == path.t).all()
    assert data.attrs["method"] == path.method.name and data.attrs["h"] == path.h
    assert float(data.q.sel(t=path.t[3], dof=0)) == path.q[3, 0]


@pytest.mark.parametrize("name", ["driven-pendulum", "kepler-3d"])
@pytest.mark.parametrize(
    ("what", "x", "y"),
    [("configuration", "time", "position"), ("phase", "position", "momentum"), ("energy", "time", "energy")],
)
def test_plot(name, what, x, y):
    """Each kind draws its curves, labels its axes, and takes an axis to draw on; few states are joined by the method's
    polynomial.
    """
    system, q0, v0 = case(name)
    path = la.integrate(system, "simpson", q0, v0=v0, h=0.05, steps=40)
    ax = path.plot(what)
    lines = ax.get_lines()
    assert len(lines) == (1 if what == "energy" else system.n)
    assert x in ax.get_xlabel() and y in ax.get_ylabel() and "P2N3Q4Lob" in ax.get_title(loc="left")
    energy = path.energy()
    # The driving force changes the energy by more than the energy itself: that change is not drawn relative to it.
    scale = 1.0 if name == "driven-pendulum" else abs(energy[0])
    curves = {"configuration": path.q[:, 0], "phase": path.p[:, 0], "energy": (energy - energy[0]) / scale}
    drawn = lines[0].get_ydata()
    between = (len(drawn) - 1) // (len(path) - 1)
    assert between == (1 if what == "energy" else 2)
    assert ("relative" in ax.get_ylabel()) == (what == "energy" and scale != 1.0)
    np.testing.assert_allclose(drawn[::between], curves[what], atol=1e-15)
    _, mine = plt.subplots()
    assert path.plot(what, ax=mine) is mine
    plt.close("all")


def test_unknown_plot(path):
    with pytest.raises(ValueError, match=r"expected one of 'configuration', 'phase', 'energy', .*; got 'torus'"):
        path.plot("torus")


def test_repr_and_length(path):
    assert len(path) == 8  # 0, 4, …, 24 and 25
    assert (
        repr(path)
        == f"Path(driven_pendulum, {path.method.name}, t = 0.3 … 2.8, h = 0.1, 8 states of 1 degree of freedom)"
    )


def test_a_step_is_solved_again_without_regard_to_its_neighbours():
    """The polynomial of one step, asked for alone or among others, has the same bits."""

    def double_pendulum(q, v):
        T = v[0] ** 2 + 0.5 * v[1] ** 2 + v[0] * v[1] * np.cos(q[0] - q[1])
        return T + 20 * np.cos(q[0]) + 10 * np.cos(q[1])

    system = la.Lagrangian(double_pendulum, n=2)
    path = la.integrate(system, "P3N3Q6Gau", [1.0, 0.3], [0.2, 0.1], h=0.05, steps=400)
    t = np.random.default_rng(1).permutation(path.t[:-1] + 0.02)
    together = path(t)
    for k in range(len(t)):
        np.testing.assert_array_equal(path(t[k]), together[k])


# ------------------------------------------------------------------------------------------ endings


def short(digits=None, **options):
    return la.integrate(
        la.Lagrangian(lambda q, v: 0.5 * (v @ v) - 0.5 * (q @ q), n=2),
        "simpson",
        ["1/3", 0],
        [0, "1/7"],
        h="1/10",
        steps=5,
        digits=digits,
        **options,
    )


@pytest.mark.parametrize("digits", [None, 40])
def test_a_csv_is_a_table_with_every_digit(tmp_path, digits):
    path = short(digits)
    path.save(tmp_path / "run.csv")
    lines = (tmp_path / "run.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "t,q0,q1,p0,p1" and len(lines) == 7
    rows = np.array([line.split(",") for line in lines[1:]])
    for name, columns in (("t", [0]), ("q", [1, 2]), ("p", [3, 4])):
        back = path.reals.array(rows[:, columns].tolist())
        assert (back == getattr(path, name).reshape(back.shape)).all()
    with pytest.raises(ValueError, match="no NPZ file") as caught:
        la.Path.load(tmp_path / "run.csv")
    assert "allow_pickle" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("a.zarr", "store="),
        ("a.txt", r"\.csv"),
        ("a.h5", "to_netcdf"),
        ("a.png", "plot"),
        ("a.npy", r"\.npz"),
        ("a.csv.gz", r"\.csv"),
        ("a.html", "to_html"),
        ("a.gif", "animate"),
        ("a.cvs", r"the ending \.cvs is not known"),
        ("h0.01", r"add \.npz"),
    ],
)
def test_endings_of_other_formats_are_refused(tmp_path, name, advice):
    with pytest.raises(ValueError, match=advice):
        short().save(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_npz_or_no_ending_is_a_whole_path(tmp_path):
    for name in ("a.npz", "a", "b.NPZ"):
        short().save(tmp_path / name)
        assert len(la.Path.load(tmp_path / name)) == 6


@pytest.mark.parametrize("content", [b"", b"t,q\n1,2\n", b"\x93NUM\0"])
def test_what_is_no_path_is_said_to_be_none(tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ValueError, match="not a path saved by leastaction, or is damaged: it is no NPZ file"):
        la.Path.load(tmp_path / "file")


def test_an_archive_is_opened_not_loaded(tmp_path):
    short(store=tmp_path / "run.zarr")
    with pytest.raises(ValueError, match=r"run\.zarr is a folder, .*la\.open"):
        la.Path.load(tmp_path / "run.zarr")


def test_one_degree_of_freedom():
    one = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 - q[0] ** 2, n=1)
    assert "states of 1 degree of freedom)" in repr(la.integrate(one, "simpson", [1.0], [0.0], h=0.1, steps=2))
    assert "Tangent of 1 degree of freedom" in repr(la.tangent(one, "simpson", [1.0], [0.0], h=0.1))


@pytest.mark.parametrize("method", ["simpson", "P4N4Q8Gau", "rk4", la.compose("verlet", "yoshida")], ids=str)
def test_dense_output_ends_where_a_run_ends_inside_a_step(method):
    """An event stops the run: the last piece is a step of its own length, and the path goes through its last state."""
    pendulum = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 + np.cos(q[0]), n=1)
    events = {"bottom": la.Event(lambda q, p: q[0], stop=True)}
    path = la.integrate(pendulum, method, [1.0], [0.0], h=0.5, t_end=10, events=events)
    np.testing.assert_allclose(path(path.t), path.q, atol=1e-15)


@pytest.mark.parametrize("method", ["P3N3Q6Gau", "P6N6Q12Gau"])
def test_dense_output_ends_where_a_paced_run_meets_its_end(method):
    kepler = la.problems.get("kepler", eccentricity="0.6")
    path = la.integrate(kepler.system, method, kepler.q0, kepler.p0, h=0.1, t_end=20, pace="auto")
    np.testing.assert_allclose(path(path.t), path.q, atol=1e-13)
