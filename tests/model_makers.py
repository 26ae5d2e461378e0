"""Fitted models of every sort, and whether two are the same to the last bit."""

import numpy as np
import pandas as pd
from saved_models import two_levels
from sklearn.gaussian_process import kernels as sk

from polyfid import MultiFidelityClassifier
from polyfid.kernels import RBF, Categorical, Constant, Linear, Matern, RationalQuadratic, White

NEW = np.random.RandomState(9).standard_normal((40, 2))


def binary(**changes):
    X, y, fidelity = two_levels()
    given = {"kernel": 1.0 * RBF(), "random_state": 0, **changes}
    return MultiFidelityClassifier(**given).fit(X, y, fidelity=fidelity)


def three_classes():
    X, y, fidelity = two_levels()
    code = y.astype(int) + 2 * (X[:, 1] > 1.0)
    return MultiFidelityClassifier(1.0 * RBF()).fit(X, np.minimum(code, 2) * 10, fidelity=fidelity)


def annotators():
    X, y, fidelity = two_levels()
    who = np.array(["ann", "bob", "eve"])[np.arange(len(X)) % 3]
    model = MultiFidelityClassifier(
        1.0 * RBF(), label_noise="annotator", inference="ep", max_iter=20, tol=1e-3
    )
    return model.fit(X, y, fidelity=fidelity, annotator=who)


def frame_with_fidelity():
    X, y, fidelity = two_levels()
    frame = pd.DataFrame(X, columns=["length", "naïve <b>"]).assign(trust=fidelity)
    labels = pd.Series(np.where(y, "yes", "no"), dtype=object)
    levels = {"fidelity_feature": "trust", "levels": ["crowd", "expert"]}
    return MultiFidelityClassifier(1.0 * RBF(), **levels).fit(frame, labels)


def weighted():
    X, y, fidelity = two_levels()
    weight = np.random.RandomState(1).choice([0.0, 0.5, 1.0, 3.0], len(X))
    model = MultiFidelityClassifier(1.0 * RBF(), n_tuning=30, random_state=3)
    return model.fit(X, y, fidelity=fidelity, sample_weight=weight)


def with_categories():
    X, y, fidelity = two_levels(40)
    X = np.column_stack([X[:, 0], np.eye(3)[np.arange(40) % 3]])
    return MultiFidelityClassifier(random_state=0, verbose=0).fit(X, y, fidelity=fidelity)


KERNELS = (
    RBF(ard=True) * Constant(2.0, (0.1, 10.0)),
    Matern(2.0, 2.5) + White(0.1, "fixed") + Linear(columns=[1]) * RationalQuadratic(alpha=0.7),
)
MAKERS = {
    "plain": binary,
    "structures averaged": with_categories,
    "three classes": three_classes,
    "known label noise": lambda: binary(label_noise=(0.2, 0.01), optimizer=None, inference="ep"),
    "learnt label noise": lambda: binary(
        label_noise="fidelity", inference="variational", max_iter=5, tol=1e-2
    ),
    "annotators": annotators,
    "sources without order": lambda: binary(coupling="coregional"),
    "one kernel per level": lambda: binary(kernel=list(KERNELS), rho_bounds="fixed", rho=[0.5]),
    "kernel of scikit-learn": lambda: binary(kernel=2.0 * sk.Matern([1.0, 2.0], nu=2.5)),
    "wrapped kernel": lambda: binary(
        kernel=Constant(2.0) * wrapped(),
        optimizer=None,
        standardize=False,
        levels=("crowd", "expert"),
    ),
    "categories by hand": lambda: binary(
        kernel=Matern(nu=0.5, columns=[0]) * Categorical(columns=[1])
    ),
    "fidelity in a data frame": frame_with_fidelity,
    "weights and a tuning sample": weighted,
    "inducing points": lambda: binary(n_inducing=8),
    "inducing points and noise": lambda: binary(n_inducing=8, label_noise="fidelity"),
    "inference by EP": lambda: binary(inference="ep", levels=np.array(["crowd", "expert"])),
}


def wrapped():
    """A kernel that has no native counterpart; nothing in it is tuned, so that nothing warns."""
    return sk.ExpSineSquared(2.0, 3.0, "fixed", "fixed") + sk.PairwiseKernel(
        metric="laplacian", gamma=0.3, gamma_bounds="fixed"
    )


def new_rows(model):
    if model.n_features_in_ == 4:
        return np.column_stack([NEW[:, 0], np.eye(3)[np.arange(40) % 3]])
    if hasattr(model, "feature_names_in_"):
        return pd.DataFrame(NEW, columns=model.feature_names_in_)
    return NEW


def same(a, b):
    """Equal to the last bit, types included."""
    assert type(a) is type(b)
    if isinstance(a, list | tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        if a.dtype.kind == "O":
            same(a.tolist(), b.tolist())
        else:
            assert a.tobytes() == b.tobytes()
    elif isinstance(a, dict):
        same(list(a.items()), list(b.items()))
    else:
        assert repr(a) == repr(b)
