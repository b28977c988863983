"""What a new user may give by mistake: refused before anything is computed, with what to do."""

import copy
import pickle
import random
import time

import numpy as np
import pytest

import leastaction as la

PENDULUM = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 + np.cos(q[0]), n=1)
PAIR = la.Lagrangian(lambda q, v: 0.5 * v @ v - 0.5 * q @ q, n=2)
RUN = {"q0": [1.0, 0.0], "p0": [0.0, 0.0], "h": 0.1, "steps": 3}
GENERATOR = np.random.default_rng(0)


@pytest.mark.parametrize("drawn", [np.random.rand, GENERATOR.normal, random.random, time.perf_counter])
def test_a_lagrangian_that_is_another_one_each_time_is_refused(drawn):
    with pytest.raises(la.TraceError, match=r"another result when it was called again .* give them as params="):
        la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 - drawn() * q[0] ** 2, n=1)
    with pytest.raises(la.TraceError, match="another result"):
        la.integrate(PAIR, "simpson", **RUN, events={"a": la.Event(lambda q, p: q[0] - drawn())})


@pytest.mark.parametrize("drawn", [lambda: np.random.randint(2), lambda: random.randrange(2)])  # noqa: NPY002
def test_random_numbers_are_refused_also_where_they_are_often_the_same_twice(drawn):
    for _ in range(20):
        with pytest.raises(la.TraceError, match="another result when it was called again"):
            la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 - (1 + drawn()) * q[0] ** 2, n=1)


@pytest.mark.parametrize("output", [[0, 0], [1, -1]])
def test_a_coordinate_is_stored_once(output):
    for run in (la.integrate, la.ensemble):
        with pytest.raises(ValueError, match="output must list each degree of freedom once"):
            run(PAIR, "simpson", **RUN, output=output)


def test_more_digits_nodes_and_coordinates_than_can_be_done():
    """The limits are counted, so that no run is prepared for minutes."""
    with pytest.raises(ValueError, match="digits must be at most 10000"):
        la.integrate(PAIR, "simpson", **RUN, digits=10**9)
    for name in ("P99N99Q198Gau", "P65N66Q130Lob"):
        with pytest.raises(ValueError, match="a rule has at most 64 nodes"):
            la.integrate(PAIR, name, **RUN)
    with pytest.raises(ValueError, match="the degree s is at most 63, since a step has s \\+ 1 control points; got 64"):
        la.integrate(PAIR, "P64N64Q128Gau", **RUN)
    with pytest.raises(ValueError, match="at most 64 nodes"):
        la.rule(np.linspace(0, 1, 65), np.full(65, 1 / 65))
    with pytest.raises(ValueError, match=r"at most 10000 coordinates; got n = 1000000000\. .*Lagrangian\.sum"):
        la.Lagrangian(lambda q, v: 0.5 * v @ v, n=10**9)


@pytest.mark.parametrize("store, error", [(3, TypeError), (True, TypeError), ("", ValueError)])
def test_an_archive_has_a_path(store, error):
    for run in (la.integrate, la.ensemble):
        with pytest.raises(error, match="store must be the path of an archive, such as"):
            run(PAIR, "simpson", **RUN, store=store)
    for read in (la.open, la.resume):
        with pytest.raises(error, match="path must be the path of an archive"):
            read(store)


@pytest.mark.parametrize(
    "g, message",
    [
        (lambda q, p: q, r"array of shape \(2,\); g is one number: give an event for each component"),
        (
            lambda q, p: q[0] > 1,
            "true or false, and an event is where a number changes its sign: for x > 1 return x − 1",
        ),
        (lambda q, p: None, "returned None; a `return` is missing"),
    ],
)
def test_an_event_is_where_a_number_changes_its_sign(g, message):
    with pytest.raises(la.TraceError, match=message):
        la.integrate(PAIR, "simpson", **RUN, events={"a": la.Event(g)})


@pytest.mark.parametrize("event", [la.Event(lambda q, p: q[0], direction=1, most=2), la.Impact(lambda q: q[0], 0.5)])
def test_events_of_lambdas_travel_or_say_how(event, monkeypatch):
    assert copy.deepcopy(event) == event
    pytest.importorskip("cloudpickle")
    again = pickle.loads(pickle.dumps(event))
    assert type(again) is type(event) and again.g(*[[2.0]] * again.g.__code__.co_argcount) == 2.0
    assert [getattr(again, name) for name in again.__match_args__[1:]] == [
        getattr(event, name) for name in event.__match_args__[1:]
    ]
    monkeypatch.setitem(__import__("sys").modules, "cloudpickle", None)
    with pytest.raises(pickle.PicklingError, match="define it with def at the top of a module, or install cloudpickle"):
        pickle.dumps(event)
