"""Three bodies in the plane that attract each other: periodic orbits, and the Pythagorean problem.

    L = ½ Σ_i m_i v_i·v_i + Σ_{i<j} m_i m_j/|q_i − q_j|,    six coordinates, body after body

"figure-eight": three equal masses chase each other along one curve (C. Moore, 1993; A. Chenciner, R. Montgomery, Annals
of Mathematics 152, 2000, 881–901, with the data of C. Simó, whose start is symmetric). The other periodic orbits
begin in a row, at (−1, 0), (1, 0) and (0, 0), with the velocities (a, b), (a, b) and (−2a, −2b): M. Šuvakov,
V. Dmitrašinović, Physical Review Letters 110, 2013, 114301, who give five digits of a, b and T. Here these numbers were
refined with 34 and more digits, in steps of a pace; in the tests the orbits close to 10⁻¹⁰ in float64.

"pythagorean": the masses 3, 4 and 5 at rest at the corners of a triangle with these sides, each mass opposite to the
side of its own number (C. Burrau, 1913; V. Szebehely, C. F. Peters, Astronomical Journal 72, 1967, 876–883). After many
close passes the mass 3 is thrown out, and the others are left as a double star. No solution is known in closed form:
the reference state is the library's own, where P20N20Q40Gau and P24N24Q48Gau agree, with a pace and 68 digits: to
4·10⁻¹⁹. The places at t = 10, 20, … 70 are from `benchmarks/accuracy.py --only pythagorean`, with the digits in which
P16N16Q32Gau agrees for two steps, with 60 digits.
"""

from __future__ import annotations

from typing import Any

from leastaction.numbers.symbolic import symbolic
from leastaction.problems.gravity import attraction, invariants
from leastaction.problems.problem import Parts, catalogued

EQUAL, PYTHAGOREAN = (1, 1, 1), (3, 4, 5)


# a, b and T of the orbits that begin in a row.
IN_A_ROW = {
    "butterfly": (
        "0.3068934204643792258356661312786",
        "0.1255065670152831518459733639392",
        "6.234674838727808775392912565379",
    ),
    "moth": (
        "0.4644451728180666818221407827175",
        "0.3960600146528147819278081482380",
        "14.89430517504212372266816894112",
    ),
    "yin-yang": (
        "0.5139385374603281043296234925746",
        "0.3047359193468461147514074061212",
        "17.32883401861623713767496459188",
    ),
}
# q and p of the Pythagorean problem at t = 3, after the first close pass.
AT_3 = (
    ("0.37119923299594228", "-0.0854782316465062754", "-1.45387091903911382",
     "0.0377234960418016068", "0.940377195433725686", "0.0211081421544624798"),
    ("2.81520557245892374", "-10.5308222993715223", "0.442013721899516021",
     "2.62572215477972295", "-3.25721929435843976", "7.90510014459179934"),
)  # fmt: skip

# Of the masses 3 and 4; the mass 5 is where the centre of mass stays at rest.
LATER = (
    (10, ("0.7784804101380854931090928104211614736434803", "0.1413923002900861686167927708724562554154744",
         "-2.0250924779781985861603583754525798173646470", "0.0972193841460583965024714916513109209603540")),
    (20, ("3.0042926366963992054477232424173616099578247", "0.5119252350246858655976826453423301256919132",
         "-1.3886265375108953924555291859798279953316177", "-0.4704760502527221681279461508363538462388880")),
    (30, ("0.856340498897316071067973568378090240495124", "2.287093663696249937070844641159650904656594",
         "-0.877983879031849956839638775981797656676210", "-0.865963827715747153360836084184356111367020")),
    (40, ("-0.62200369180109712225625074534529391035883", "1.85831815789977275285740531263585895575272",
         "0.17354455681643980011214821163693478969674", "-2.36841044328316416792227128984882159291398")),
    (50, ("-2.70146140926552472522371055415103815343", "-3.79722268272244799632575404802190171234",
         "1.50593819242068106663534704026482942920", "0.96081342493837606430765139207822819395")),
    (60, ("0.743807500118082915421967315020206950", "1.939947951094863299431044540122341620",
         "0.264010334686256538944149612397817494", "-0.731624394869963716818894950601199127")),
    (70, ("6.93346359901188729033469620354888062", "20.26180430595171413836723483042258020",
         "-2.00300600260598408676059458655022570", "-6.87246343582454484560749771681920350")),
)  # fmt: skip


def equal_masses(q: Any, v: Any) -> Any:
    return attraction(q, v, 1, EQUAL, 2)


def pythagorean_masses(q: Any, v: Any) -> Any:
    return attraction(q, v, 1, PYTHAGOREAN, 2)


# Of the figure eight: places of the first body, velocity of the third, which is at the centre, and the period.
EIGHT = ("0.97000435669734", "-0.24308753153583", "-0.93240737144104", "-0.86473146092102", "6.32591398292621")


@catalogued("Figure eight", "Three equal masses chase each other along one curve.", "Chenciner and Montgomery 2000")
def figure_eight() -> Parts:
    """Three equal masses on one curve like an 8."""
    x, y, vx, vy, period = (symbolic(number) for number in EIGHT)
    return _closed((x, y, -x, -y, 0, 0), (-vx / 2, -vy / 2, -vx / 2, -vy / 2, vx, vy), period)


ROW = "Three equal masses from a row, on the periodic orbit called {}."
ROWS = "Šuvakov and Dmitrašinović 2013"


@catalogued("Butterfly", ROW.format("butterfly"), ROWS)
def butterfly() -> Parts:
    """The orbit I.A.1 of Šuvakov and Dmitrašinović."""
    return _in_a_row(*IN_A_ROW["butterfly"])


@catalogued("Moth", ROW.format("moth"), ROWS)
def moth() -> Parts:
    """The orbit I.B.1 of Šuvakov and Dmitrašinović."""
    return _in_a_row(*IN_A_ROW["moth"])


@catalogued("Yin-yang", ROW.format("yin-yang"), ROWS)
def yin_yang() -> Parts:
    """The orbit II.C.2a of Šuvakov and Dmitrašinović."""
    return _in_a_row(*IN_A_ROW["yin-yang"])


@catalogued(
    "Pythagorean problem",
    "Masses 3, 4 and 5 fall from rest, pass closely many times, and one is thrown out.",
    "Szebehely and Peters 1967",
)
def pythagorean() -> Parts:
    """Masses 3, 4, 5 at rest at the corners of a triangle with these sides."""
    return Parts(
        lagrangian=pythagorean_masses,
        q0=(1, 3, -2, -1, 1, -1),
        p0=(0,) * 6,
        invariants=invariants(lambda c: (1, PYTHAGOREAN), 2),
        period=1,
        period_of="about the time in which the bodies fall towards each other; the motion has none",
        reference=(3, *AT_3),
        places=tuple((t, _with_the_third(tuple(map(symbolic, q)))) for t, q in LATER),
    )


def _with_the_third(q: tuple[Any, ...]) -> tuple[Any, ...]:
    """The places of the masses 3, 4 and 5 from those of the first two."""
    return (*q, *(-(3 * q[k] + 4 * q[k + 2]) / 5 for k in range(2)))


def _in_a_row(*numbers: str) -> Parts:
    a, b, period = (symbolic(number) for number in numbers)
    return _closed((-1, 0, 1, 0, 0, 0), (a, b, a, b, -2 * a, -2 * b), period)


def _closed(q0: Any, p0: Any, period: Any) -> Parts:
    orbit = {"q0": q0, "p0": p0, "period": period, "reference": (period, q0, p0)}
    return Parts(lagrangian=equal_masses, invariants=invariants(lambda c: (1, EQUAL), 2), **orbit)
