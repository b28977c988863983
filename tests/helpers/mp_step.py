"""One step of the family and of RK4 in mpmath, written plainly from the definitions: a reference to compare with."""

import mpmath

from leastaction.methods import Galerkin
from leastaction.trace import derivatives
from reference import evaluate


class Reference:
    """Steps of a system by a method, in mpmath's current precision."""

    def __init__(self, system, method, digits):
        self.n, self.method, self.digits = system.n, method, digits
        self.hessian = derivatives(system.program, second=True)

    def at(self, t, q, v, params):
        n = self.n
        values = evaluate(self.hessian, [t], q, v, params)
        Lq, Lv = values[1 : 1 + n], values[1 + n : 1 + 2 * n]
        rest = values[1 + 2 * n :]
        Lqq, Lqv, Lvv = (mpmath.matrix(n, n) for _ in range(3))
        for k, M in enumerate((Lqq, Lqv, Lvv)):
            for i in range(n):
                for j in range(n):
                    M[i, j] = rest[k * n * n + i * n + j]
        return Lq, Lv, Lqq, Lqv, Lvv

    def step(self, t, q, p, h, params):
        if isinstance(self.method, Galerkin):
            return self._galerkin(t, q, p, h, params)
        return self._rk4(t, q, p, h, params)

    def steps(self, count, q, p, h, params, t=0):
        q, p = [mpmath.mpf(x) for x in q], [mpmath.mpf(x) for x in p]
        for k in range(count):
            q, p = self.step(t + k * h, q, p, h, params)
        return [*q, *p]

    def _galerkin(self, t, q, p, h, params):
        n, s = self.n, self.method.s
        table = self.method.exact_table(self.digits)
        b, c, l, dl, d = (table[name] for name in ("b", "c", "l", "dl", "d"))
        v = self.velocity(t, q, p, params)
        z = [[d[m] * h * v[j] for j in range(n)] for m in range(1, s + 1)]
        for _ in range(40):
            F, A = mpmath.matrix(s * n, 1), mpmath.matrix(s * n, s * n)
            impulse = [mpmath.mpf(0)] * n
            for j in range(n):
                F[j] = p[j]
            for i in range(len(b)):
                qi = [q[j] + sum(l[i][m + 1] * z[m][j] for m in range(s)) for j in range(n)]
                vi = [sum(dl[i][m + 1] * z[m][j] for m in range(s)) / h for j in range(n)]
                Lq, Lv, Lqq, Lqv, Lvv = self.at(t + c[i] * h, qi, vi, params)
                for j in range(n):
                    impulse[j] += h * b[i] * Lq[j]
                    for u in range(s):
                        F[u * n + j] += b[i] * (h * l[i][u] * Lq[j] + dl[i][u] * Lv[j])
                        for m in range(s):
                            for k in range(n):
                                A[u * n + j, m * n + k] += b[i] * (
                                    l[i][u] * (h * l[i][m + 1] * Lqq[j, k] + dl[i][m + 1] * Lqv[j, k])
                                    + dl[i][u] * (l[i][m + 1] * Lqv[k, j] + dl[i][m + 1] * Lvv[j, k] / h)
                                )
            dz = mpmath.lu_solve(A, -F)
            z = [[z[m][j] + dz[m * n + j] for j in range(n)] for m in range(s)]
            if max(abs(x) for x in dz) < mpmath.mpf(10) ** (8 - self.digits):
                return [q[j] + z[-1][j] for j in range(n)], [p[j] + impulse[j] for j in range(n)]
        raise ArithmeticError("Newton did not converge")

    def velocity(self, t, q, p, params):
        v = [mpmath.mpf(0)] * self.n
        for _ in range(60):
            _, Lv, _, _, Lvv = self.at(t, q, v, params)
            dv = mpmath.lu_solve(Lvv, mpmath.matrix([p[j] - Lv[j] for j in range(self.n)]))
            v = [v[j] + dv[j] for j in range(self.n)]
            if max(abs(x) for x in dv) < mpmath.mpf(10) ** (8 - self.digits):
                return v
        raise ArithmeticError("no velocity found")

    def _rk4(self, t, q, p, h, params):
        n, lagrange = self.n, self.method.form == "lagrange"

        def field(t, y):
            if not lagrange:
                v = self.velocity(t, y[:n], y[n:], params)
                return [*v, *self.at(t, y[:n], v, params)[0]]
            values = evaluate(self.hessian, [t], y[:n], y[n:], params)
            Lq, _, _, Lqv, Lvv = self.at(t, y[:n], y[n:], params)
            Lvt = values[-n:]
            force = [Lq[j] - sum(Lqv[k, j] * y[n + k] for k in range(n)) - Lvt[j] for j in range(n)]
            return [*y[n:], *mpmath.lu_solve(Lvv, mpmath.matrix(force))]

        y = [*q, *(self.velocity(t, q, p, params) if lagrange else p)]
        k, total = [mpmath.mpf(0)] * (2 * n), [mpmath.mpf(0)] * (2 * n)
        for c, weight in ((0, 1), (mpmath.mpf(1) / 2, 2), (mpmath.mpf(1) / 2, 2), (1, 1)):
            k = field(t + c * h, [y[i] + c * h * k[i] for i in range(2 * n)])
            total = [total[i] + weight * k[i] / 6 for i in range(2 * n)]
        y = [y[i] + h * total[i] for i in range(2 * n)]
        return y[:n], self.at(t + h, y[:n], y[n:], params)[1] if lagrange else y[n:]
