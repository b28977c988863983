"""Random Lagrangians, written once for NumPy and for SymPy."""


class Words:
    """The functions that a random Lagrangian is made of, for NumPy and for SymPy."""

    def __init__(self, module):
        self.sin, self.cos, self.exp, self.sqrt, self.tanh, self.log = (
            getattr(module, name) for name in ("sin", "cos", "exp", "sqrt", "tanh", "log")
        )


def random_lagrangian(rng, n):
    """A function of (words, q, v): a mass matrix that is diagonally dominant, a potential that is bounded below."""
    tree = rng.integers(0, 6, (n, 3))
    c = rng.uniform(0.2, 1.0, (n, 6))

    def term(w, x, kind, a, b):
        kinds = (
            lambda: w.cos(x + b),
            lambda: w.exp(-x * x),
            lambda: w.sqrt(1 + x * x),
            lambda: w.tanh(b * x),
            lambda: w.log(2 + x * x),
            lambda: x * x / (1 + x * x),
        )
        return a * kinds[kind]()

    def L(w, q, v):
        total = 0
        for i in range(n):
            j = (i + 1) % n
            mass = 2 + n + term(w, q[j], tree[i, 0], c[i, 0], c[i, 1])
            total = total + 0.5 * mass * v[i] ** 2 + 0.3 * c[i, 2] * w.sin(q[i] - q[j]) * v[i] * v[j]
            total = total + 0.2 * c[i, 5] * w.cos(q[i]) * v[j] - 0.5 * c[i, 3] * q[i] ** 2
            total = total - term(w, q[i] - 0.5 * q[j], tree[i, 1], c[i, 4], c[i, 5])
        return total

    return L
