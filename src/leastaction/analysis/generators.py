"""A space of affine maps q ↦ A q + b, given by any basis, in a basis that people can read, and its names."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from leastaction.numbers.arrays import FloatArray

SHARE = 1e-12  # as ROUND, for shares of a mass: the share of a light body is small, but not zero
ROUND = 1e-7  # entries this near to a simple fraction are that fraction; symmetries are verified afterwards
LARGEST_DENOMINATOR = 12


def readable_basis(null: FloatArray, n: int, heaviness: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
    """Pure translations; generators with few entries, by the reduced row echelon form; those of the centre alone.

    Generators of the centre move q along translations, by an amount that depends on q: bodies that only attract each
    other can be turned about their centre of mass, and apart from that the centre can be turned about the origin.

    null        rows (A, b), A row-major, of length n² + n
    heaviness   (n,), how much each coordinate weighs in L: the rows of A for heavy coordinates are known best
    """
    felt = np.sqrt(np.outer(heaviness, 1 / heaviness)).ravel()  # how much an entry of A changes L, by √(m_i/m_j)
    translations = _rational(_echelon(_pure(null, n, felt)[:, n * n :]))
    order = _above_first(n)
    arranged = _echelon(np.concatenate([null[:, order], null[:, n * n :]], axis=1), columns=n * n)
    rest = np.zeros_like(arranged)
    rest[:, order], rest[:, n * n :] = arranged[:, : n * n], arranged[:, n * n :]
    whole = np.array(null)
    if len(translations):  # b is determined up to translations: their part of b is removed
        T = translations.T
        for rows in (rest, whole):
            rows[:, n * n :] -= (T @ np.linalg.lstsq(T, rows[:, n * n :].T, rcond=None)[0]).T
    central = _of_the_centre(whole, translations, n, heaviness, felt)
    chosen = list(central)
    for row in sorted(rest, key=lambda row: (np.abs(row) > ROUND).sum()):
        if len(chosen) == len(rest):  # more would be round-off
            break
        if np.linalg.matrix_rank(np.array([*chosen, row]), tol=1e-8) > len(chosen):
            chosen.append(row)
    maps = [*chosen[len(central) :], *central]
    first_pivots = sorted(
        range(len(maps) - len(central)), key=lambda i: int(np.flatnonzero(np.abs(maps[i]) > ROUND)[0])
    )
    others = [_oriented(maps[i], n, ROUND) for i in first_pivots]
    return [(np.zeros((n, n)), b) for b in translations] + others + [_oriented(row, n, SHARE) for row in central]


def _oriented(row: FloatArray, n: int, tolerance: float) -> tuple[FloatArray, FloatArray]:
    """A and b, rounded; a rotation turns the first coordinate towards the second, A_10 > 0."""
    A, b = _rational(row[: n * n], tolerance).reshape(n, n), _rational(row[n * n :])
    below = A.T.ravel()
    sign = np.sign(below[np.flatnonzero(below)[0]])
    return A * sign + 0.0, b * sign + 0.0


def _of_the_centre(
    rest: FloatArray, translations: FloatArray, n: int, heaviness: FloatArray, felt: FloatArray
) -> FloatArray:
    """The generators with A = T Ω W: their range lies in the translations T. Ω = T⁺ A T is brought to echelon form.

    T⁺ weighs the rows of A by `heaviness`: W, the bodies' shares of the mass, is read best from a heavy body's row.
    """
    k = len(translations)
    if not len(rest) or not 0 < k < n:
        return np.zeros((0, n * n + n))
    T = translations.T
    weighted = T.T * (heaviness / heaviness.max())
    inverse = np.linalg.solve(weighted @ T, weighted)
    A = rest[:, : n * n].reshape(-1, n, n)
    outside = (A - T @ inverse @ A).reshape(len(rest), -1)
    left, values, _ = np.linalg.svd(outside * felt)
    rank = int((values > 1e-8 * max(1.0, np.abs(rest[:, : n * n] * felt).max())).sum())
    inside = left[:, rank:].T @ rest
    inside[:, : n * n] = (T @ inverse @ inside[:, : n * n].reshape(-1, n, n)).reshape(-1, n * n)
    omega = (inverse @ inside[:, : n * n].reshape(-1, n, n) @ T).reshape(len(inside), k * k)
    order = _above_first(k)
    return _echelon(np.concatenate([omega[:, order], inside], axis=1), columns=k * k)[:, k * k :]


def describe(A: FloatArray, b: FloatArray, translations: FloatArray) -> str:
    """What q ↦ q + ε (A q + b) does, in words; `translations` (k, n) are those that are symmetries themselves."""
    if not A.any():
        return _translation(b)
    name = _central(A, translations) or _linear(A)
    if not b.any():
        return name
    centre = np.linalg.lstsq(A, -b, rcond=None)[0]
    left = b + A @ centre
    used = np.flatnonzero(A.any(axis=0))
    if np.abs(centre).max() > 1e-9:
        name += " about (" + ", ".join(f"q{j} = {number(centre[j])}" for j in used) + ")"
    if np.abs(left).max() > 1e-9 * np.abs(b).max():
        name += " with " + _translation(_rational(left), keep=True)
    return name


def number(x: float) -> str:
    """A number, as a fraction where it is a simple one."""
    near = Fraction(float(x)).limit_denominator(LARGEST_DENOMINATOR)
    return str(near) if abs(float(near) - x) <= 1e-12 * max(1.0, abs(x)) else f"{round(x, 10):.6g}"


def _pure(null: FloatArray, n: int, felt: FloatArray) -> FloatArray:
    """The combinations of rows for which A, weighted by `felt`, is zero."""
    if not len(null):
        return null
    left, values, _ = np.linalg.svd(null[:, : n * n] * felt)
    rank = int((values > 1e-8 * max(1.0, values.max(initial=0.0))).sum())
    return left[:, rank:].T @ null


def _echelon(rows: FloatArray, columns: int | None = None) -> FloatArray:
    """The reduced row echelon form by the first `columns` columns, without rows that vanish there."""
    R = np.array(rows, float)
    rank = 0
    for j in range(R.shape[1] if columns is None else columns):
        if rank == len(R):
            break
        best = rank + int(np.abs(R[rank:, j]).argmax())
        if abs(R[best, j]) < 1e-8:
            continue
        R[[rank, best]] = R[[best, rank]]
        R[rank] /= R[rank, j]
        for i in range(len(R)):
            if i != rank:
                R[i] -= R[i, j] * R[rank]
        rank += 1
    return R[:rank]


def _rational(x: FloatArray, tolerance: float = ROUND) -> FloatArray:
    """Entries near simple fractions become them."""
    simple = np.array([float(Fraction(float(y)).limit_denominator(LARGEST_DENOMINATOR)) for y in x.ravel()])
    simple = simple.reshape(x.shape)
    return np.where(np.abs(simple - x) <= tolerance * np.maximum(1.0, np.abs(x)), simple, x) + 0.0


def _above_first(n: int) -> list[int]:
    """The places of the entries of A: those above the diagonal, those on it, and the mirrored ones below."""
    place = np.arange(n * n).reshape(n, n)
    above = np.triu_indices(n, 1)
    return [*place[above], *place.diagonal(), *place.T[above]]


def _translation(b: FloatArray, keep: bool = False) -> str:
    """The translation in words; its length does not matter unless `keep`."""
    used = np.flatnonzero(b)
    names = ", ".join(f"q{j}" for j in used)
    if len(used) == 1:
        return f"translation of {names}" + (f" by {number(b[used[0]])}" if keep else "")
    if not keep and (b[used] == b[used][0]).all():
        return f"joint translation of {names}"
    return "translation along (" + ", ".join(number(x) for x in b) + ")"


def _central(A: FloatArray, translations: FloatArray) -> str | None:
    """The name of a rotation of the centre alone, A = T Ω W with Ω a rotation in one plane of the translations T."""
    if not 0 < len(translations) < len(A):
        return None
    T = translations.T
    inverse = np.linalg.pinv(T)
    omega = _rational(inverse @ A @ T)
    planes = np.argwhere(np.triu(omega, 1))
    if len(planes) != 1 or (omega != -omega.T).any() or np.abs(A - T @ inverse @ A).max() > 1e-9:
        return None
    i, j = ("(" + ", ".join(f"q{m}" for m in np.flatnonzero(translations[row])) + ")" for row in planes[0])
    return f"rotation of the centre alone in the plane of {i} and {j}"


def _linear(A: FloatArray) -> str:
    planes = [(i, j) for i in range(len(A)) for j in range(i + 1, len(A)) if A[i, j] or A[j, i]]
    diagonal = np.flatnonzero(np.diag(A))
    if diagonal.size and not planes:
        rates = np.diag(A)[diagonal]
        names = ", ".join(f"q{j}" for j in diagonal)
        if (rates == rates[0]).all():
            return f"{'joint ' if len(rates) > 1 else ''}scaling of {names}"
        return f"scaling of {names} at the rates {', '.join(number(x) for x in rates)}"
    separate = len({i for plane in planes for i in plane}) == 2 * len(planes)
    if not diagonal.size and separate:
        turns = [-A[i, j] * A[j, i] for i, j in planes]
        names = ", ".join(f"(q{i}, q{j})" for i, j in planes)
        where = f"in the plane{'s' if len(planes) > 1 else ''} {names}"
        if (A == -A.T).all():
            pace = [A[j, i] for i, j in planes]
            if len(set(pace)) == 1:
                return f"{'joint ' if len(planes) > 1 else ''}rotation {where}"
            return f"rotation {where} at the rates {', '.join(number(x) for x in pace)}"
        if all(turn > 0 for turn in turns):
            return f"elliptic rotation {where}"
        if all(turn < 0 for turn in turns):
            return f"hyperbolic rotation {where}"
    kind = "rotation" if (A == -A.T).all() else "linear map"
    rows = []
    for i in np.flatnonzero(A.any(axis=1)):
        terms = [f"{'-' if A[i, j] < 0 else '+'} {number(abs(A[i, j]))} q{j}" for j in np.flatnonzero(A[i])]
        rows.append(f"δq{i} = {' '.join(terms).removeprefix('+ ')}")
    return f"{kind} {', '.join(rows)}"
