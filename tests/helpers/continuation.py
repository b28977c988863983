"""The root of one step's equations that belongs to the motion, followed in small steps from h = 0. Plain NumPy.

For L = v²/2 − V(q), one degree of freedom, the equations are, with x_i = q + Σ_m l_m(c_i) z^m,

    R_ν = δ_ν0 p + Σ_i b_i (−h l_ν(c_i) V′(x_i) + l_ν′(c_i) (1/h) Σ_m l_m′(c_i) z^m) = 0,   ν = 0 … s−1.
"""

import numpy as np

CONTRACTS = 1 / 16  # the second increment of Newton's iteration to the first, at most …
SHORT = 0.05  # … and the first one: both together exclude another root as near as the one found
PARTS = 1 / 512  # of h: the longest ones beside poles
FINEST = 1e-7  # the part of h below which the branch is taken to fold


def follow(table, slope, curvature, q, p, h):
    """(z, distance): the root at h, or None if the branch folds before; and how near to a fold it came.

    The branch is followed along its tangent dz/dh = −J⁻¹ ∂R/∂h, by parts of h that shrink until Newton's iteration
    contracts well from there. A fixed number of parts does not do: 200 of them jump over a fold at times.

    h R is affine in V′, so its Jacobian at h → 0 is a constant matrix S; det(J S⁻¹) is 1 there and 0 at a fold.
    """
    b, l, dl = table.b, table.l, table.dl
    S = dl[:, :-1].T @ (b[:, None] * dl[:, 1:])
    momentum = p * np.eye(len(S))[0]

    def equations(now, z):
        """R, J = ∂R/∂z, ∂R/∂h."""
        x = q + l[:, 1:] @ z
        force = l[:, :-1].T @ (b * slope(x))
        J = S - now**2 * l[:, :-1].T @ ((b * curvature(x))[:, None] * l[:, 1:])
        return S @ z - now**2 * force + now * momentum, J, momentum - 2 * now * force

    def corrected(now, z):
        """The root near z and its det(J S⁻¹); None where the iteration does not contract well."""
        lengths = []
        while len(lengths) < 2 or lengths[-1] > 1e-14 * (1 + abs(z).max()):
            R, J, _ = equations(now, z)
            determinant = np.linalg.det(J) / np.linalg.det(S)
            if determinant <= 0:
                return None
            dz = np.linalg.solve(J, -R)
            lengths.append(abs(dz).max())
            bound = SHORT if len(lengths) == 1 else max(CONTRACTS * lengths[-2], 1e-14 * (1 + abs(z).max()))
            if lengths[-1] > bound:
                return None
            z = z + dz
        return z, determinant

    z, now, part, nearest = np.zeros(len(S)), 0.0, 1 / 64, 1.0
    while now < h:
        _, J, by_h = equations(now, z)
        then = min(h, now + part * h)
        found = corrected(then, z - (then - now) * np.linalg.solve(J, by_h))
        if found is None:
            part /= 4
            if part < FINEST:
                return None, 0.0
        else:
            now, part, nearest = then, 1.5 * part, min(nearest, found[1])
            z = found[0]
    return z, nearest


def follow_beside_poles(table, slope, curvature, q, p, h):
    """z, as `follow` has it, or None, where V is infinite at all multiples of π: barriers that are far narrower than
    the way of a part of h. So parts are short, and no node may come from one side of a barrier to the other, nor move
    by more than a tenth of its distance from it in one part.

    The unknowns are the places x_i of the nodes, since rounding is the less the better the matrix is conditioned:

        z = h p U + h² W V′(x),     x = q + Λ z,     U = −S⁻¹ e₀,     W = S⁻¹ l₀ᵀ diag(b),     Λ_im = l_m(c_i),

    whose Jacobian 1 − h² Λ W diag(V″) has the determinant of J S⁻¹.
    """
    b, l, dl = table.b, table.l, table.dl
    S, one = dl[:, :-1].T @ (b[:, None] * dl[:, 1:]), np.eye(len(b))
    U, W = -np.linalg.inv(S)[:, 0], np.linalg.solve(S, l[:, :-1].T * b)
    ahead, pull = l[:, 1:] @ U * p, l[:, 1:] @ W

    def corrected(now, x):
        """The root near x, or None."""
        last = 1e-3
        for _ in range(12):
            J = one - now**2 * pull * curvature(x)
            dx = np.linalg.solve(J, q + now * ahead + now**2 * pull @ slope(x) - x)
            x, size, rounding = x + dx, abs(dx).max(), 1e-14 * (1 + abs(x).max())
            if np.linalg.det(J) <= 0 or size > max(last, rounding):
                return None
            if size <= rounding:
                return x
            last = size / 4
        return x

    x, now, part = np.full(len(b), q), 0.0, PARTS
    while now < h:
        then, J = min(h, now + part * h), one - now**2 * pull * curvature(x)
        found = corrected(then, x + (then - now) * np.linalg.solve(J, ahead + 2 * now * pull @ slope(x)))
        if found is not None:
            sides = np.floor(found / np.pi) == np.floor(x / np.pi)
            if (sides & (abs(found - x) <= 0.1 * abs(np.sin(x)) + 1e-9)).all():
                now, x, part = then, found, min(1.5 * part, PARTS)
                continue
        part /= 4
        if part < 1e-12:
            return None
    return h * p * U + h**2 * W @ slope(x)


def follow_midpoint(force, slope, mass, q, v, h, parts=2000):
    """z of a midpoint step in several coordinates, M z = h M v + ½ h² f(q + z/2): the root followed from h = 0 along
    (M − ¼ h² f′) dz/dh = M v + h f.
    """
    z = 0 * q
    for k in range(parts):
        before, now = h * k / parts, h * (k + 1) / parts
        J = mass - 0.25 * before**2 * slope(q + z / 2)
        z = z + (now - before) * np.linalg.solve(J, mass @ v + before * force(q + z / 2))
        for _ in range(4):
            J = mass - 0.25 * now**2 * slope(q + z / 2)
            z = z - np.linalg.solve(J, mass @ (z - now * v) - 0.5 * now**2 * force(q + z / 2))
    return z


def follow_many(table, potential, q, p, h, parts):
    """(z, followed): the roots of B steps with mass one from the rows of q and p, (B, s, n), and whether their branches
    go as far as h: along dz/dh, each part corrected by Newton's iteration. A branch ends where the determinant turns
    or at infinity.

    `potential` has gradient(x, which) and hessian(x, which) at places (K, r, n) of the steps `which`.
    """
    b, l0, l1 = table.b, table.l[:, :-1], table.l[:, 1:]
    S = table.dl[:, :-1].T @ (b[:, None] * table.dl[:, 1:])
    (B, n), s = q.shape, len(S)
    sense, stiff, column = np.sign(np.linalg.det(S)) ** n, np.kron(S, np.eye(n)), (-1, s * n, 1)
    result, followed = np.zeros((B, s, n)), np.zeros(B, bool)
    which, z = np.arange(B), np.zeros((B, s, n))
    infinity = 1e6 * (1 + np.abs(q).max(1) + abs(h) * np.abs(p).max(1))  # of runs that have lost their energy long ago

    def equations(now, z):
        x = q[which, None] + np.einsum("im,bmn->bin", l1, z)
        force, slope = potential.gradient(x, which), potential.hessian(x, which)
        pull = np.einsum("i,iv,bin->bvn", b, l0, force)
        R, by_h = np.einsum("vm,bmn->bvn", S, z) - now**2 * pull, -2 * now * pull
        R[:, 0] += now * p[which]
        by_h[:, 0] += p[which]
        J = stiff - now**2 * np.einsum("i,iv,im,binj->bvnmj", b, l0, l1, slope).reshape(-1, s * n, s * n)
        return R.reshape(column), J, by_h.reshape(column)

    for k in range(parts if B else 0):
        before, now = h * k / parts, h * (k + 1) / parts
        _, J, by_h = equations(before, z)
        z = z - (now - before) * np.linalg.solve(J, by_h).reshape(z.shape)
        for _ in range(3):
            R, J, _ = equations(now, z)
            going = (np.linalg.det(J) * sense > 0) & (np.abs(z) < infinity[which, None, None]).all(axis=(1, 2))
            which, z = which[going], z[going] - np.linalg.solve(J[going], R[going]).reshape(-1, s, n)
    result[which], followed[which] = z, True
    return result, followed
