"""Make logistic.json: integrals of the logistic sigmoid against a Gaussian, to 17 digits.

Run from the root of the repository (needs mpmath, some minutes on one core):

    python tests/references/make_logistic.py

For f ~ N(mean, sd^2) each row stores

- "moments": E log sigmoid(f), E sigmoid(f) and E sigmoid'(f);
- "tilted": for each power p, the logarithm of Z = E sigmoid(f)^p and its first two derivatives in
  the mean.

All are integrals of smooth functions over u = (f - mean) / sd, by composite Gauss-Legendre rules
with 60 digits: a cut every two units of u, as far as a Gaussian tilted by e^f or e^-f reaches, and
cuts around f = 0. Everything is computed twice, by rules with different cuts and orders; the
script stops if the two differ by more than 1e-20, relatively.
"""

import json
from itertools import pairwise
from pathlib import Path

from mpmath import exp, log, log1p, mp, mpf, pi, sqrt
from mpmath.calculus.quadrature import GaussLegendre

OUT = Path(__file__).with_name("logistic.json")
MEANS = ["0", "1e-9", "1e-3", "0.4", "3", "12", "50"]  # and their negatives
SDS = ["1e-8", "1e-6", "1e-4", "0.01", "0.2", "1", "3", "10", "30", "100"]
POWERS = ["1", "0.6", "0.1"]
mp.dps = 60
NODES = {order: GaussLegendre(mp).calc_nodes(order, mp.prec + 20) for order in (4, 5)}


def log_sigmoid(f):
    return -log1p(exp(-f)) if f > 0 else f - log1p(exp(f))


class Rule:
    """Expectations of functions of f, sigmoid(f) and sigmoid(-f) under f ~ N(m, s^2)."""

    def __init__(self, m, s, order, shift):
        reach = int(s) + 16
        cuts = {2 * k + shift for k in range(-reach // 2, reach // 2 + 1)}
        around = (0, 1, 2, 4, 7, 11, 16, 24, 35, 50, 80)
        cuts |= {(sign * f + shift - m) / s for f in around for sign in (-1, 1)}
        edges = sorted(c for c in cuts if abs(c) <= reach)
        self.points = []
        for a, b in pairwise(edges):
            for t, weight in NODES[order]:
                u = (a + b + (b - a) * t) / 2
                density = weight * (b - a) / 2 * exp(-u * u / 2) / sqrt(2 * pi)
                f = m + s * u
                self.points.append((density, f, exp(log_sigmoid(f)), exp(log_sigmoid(-f))))

    def __call__(self, function):
        return mp.fsum(density * function(f, p, q) for density, f, p, q in self.points)


def figures(rule):
    def tilted(a):
        z0 = rule(lambda f, p, q: p**a)
        z1 = rule(lambda f, p, q: a * p**a * q)
        z2 = rule(lambda f, p, q: a * p**a * q * (a - (a + 1) * p))
        return [log(z0), z1 / z0, z2 / z0 - (z1 / z0) ** 2]

    return {
        "moments": [
            rule(lambda f, p, q: log_sigmoid(f)),
            rule(lambda f, p, q: p),
            rule(lambda f, p, q: p * q),
        ],
        "tilted": [tilted(mpf(a)) for a in POWERS],
    }


def same(a, b):
    for name in a:
        for left, right in zip(mp.matrix(a[name]), mp.matrix(b[name]), strict=True):
            assert abs(left - right) <= mpf(10) ** -20 * abs(right), (name, left, right)


def plain(value):
    return [plain(v) for v in value] if isinstance(value, list) else float(value)


def main():
    means = sorted({sign * mpf(m) for m in MEANS for sign in (-1, 1)})
    rows = []
    for m in means:
        for sd in SDS:
            row = figures(Rule(m, mpf(sd), 4, mpf(0)))
            same(row, figures(Rule(m, mpf(sd), 5, mpf("0.37"))))
            rows.append({"mean": float(m), "sd": float(sd)} | {k: plain(v) for k, v in row.items()})
    lines = ",\n".join(json.dumps(row) for row in rows)
    head = f'"made_by": "tests/references/make_logistic.py",\n"powers": [{", ".join(POWERS)}]'
    OUT.write_text(f'{{\n{head},\n"rows": [\n{lines}\n]\n}}\n')


if __name__ == "__main__":
    main()
