"""Labels of two levels with a curved boundary, for tests of the estimator."""

import numpy as np

from polyfid import stack_levels


def truth(X):
    return X[:, 0] + X[:, 1] ** 2 / 2 > 0.5


def draw(n_cheap=50, n_trusted=20, flip=0.15, seed=0, change=None):
    """Trusted labels, and cheap ones elsewhere: some of them flipped, or all after a change."""
    rng = np.random.default_rng(seed)
    X, Z = rng.uniform(-2, 2, (n_cheap, 2)), rng.uniform(-2, 2, (n_trusted, 2))
    cheap = change(truth(X), rng) if change else truth(X) ^ (rng.uniform(size=n_cheap) < flip)
    return stack_levels({"web": (X, cheap), "lab": (Z, truth(Z))})
