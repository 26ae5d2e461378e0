"""Extreme numbers, odd settings and other orders of the same data.

Whatever comes in, a fit either raises a ValueError that names an argument, or gives finite answers
that agree with each other; if it did not converge, a warning with figures says so.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import kernels as sk
from threadpoolctl import threadpool_info, threadpool_limits

from benchmarks.attacks.trial import Trial, attack
from benchmarks.figures import Context
from polyfid import MultiFidelityClassifier
from polyfid.kernels import (
    RBF,
    Additive,
    Categorical,
    Constant,
    Intercept,
    Laplacian,
    Linear,
    Matern,
    RationalQuadratic,
    White,
)
from polyfid.kernels.sklearn import SklearnKernel

SCHEMES = ("laplace", "ep", "variational")
#: Fits whose parameters are given take milliseconds.
GIVEN: dict[str, Any] = {"kernel": 1.0 * RBF(), "optimizer": None}
KERNELS: dict[str, Any] = {
    "rbf": 2.0 * RBF(1.4),
    "rbf ard": 2.0 * RBF(1.4, ard=True),
    "matern 1/2": 2.0 * Matern(1.4, 0.5),
    "matern 3/2": 2.0 * Matern(1.4, 1.5, ard="free"),
    "matern 5/2": 2.0 * Matern(1.4, 2.5),
    "rational quadratic": 2.0 * RationalQuadratic(1.4, alpha=0.6),
    "linear": Linear(1.4) + Intercept(),
    "categorical": 2.0 * Categorical(1.4),
    "laplacian": 2.0 * Laplacian(1.4),
    "additive": 2.0 * Additive(1.4),
    "white": 2.0 * White(0.3),
    "sum with noise": 1.5 * RBF(1.4) + White(0.3),
    "product": Matern(1.4, 1.5) * (Linear(1.0) + 1.0),
    "periodic": 2.0 * SklearnKernel(sk.ExpSineSquared(1.4, 3.0)),
}
SOUND = "finite, consistent answers without noise, or a ValueError that names an argument"
#: How near probabilities are of weighted and of repeated rows.
SAME = 1e-8


@dataclass(frozen=True)
class Data:
    """Arguments of a fit, and rows to predict."""

    X: Any
    y: Any
    fidelity: Any = None
    weight: Any = None
    annotator: Any = None
    new: Any = None
    levels: Any = None

    def fit(self, **settings: Any) -> MultiFidelityClassifier:
        """A model of the data."""
        model = MultiFidelityClassifier(levels=self.levels, **settings)
        return model.fit(self.X, self.y, self.fidelity, self.weight, self.annotator)

    @property
    def to_predict(self) -> Any:
        return self.X if self.new is None else self.new


@dataclass(frozen=True)
class Case:
    """A fit to try."""

    name: str
    data: Data
    settings: dict[str, Any] = field(default_factory=dict)
    #: How near probabilities are where rounding errors differ.
    tolerance: float = 1e-6

    def __str__(self) -> str:
        return self.name


def make_data(
    n: int = 40,
    n_features: int = 2,
    n_levels: int = 2,
    n_classes: int = 2,
    seed: int = 0,
    scale: Any = 1.0,
    **other: Any,
) -> Data:
    """Noisy labels of a wavy boundary, a level of trust per row, and rows inside and outside."""
    rng = np.random.RandomState(seed)
    X = rng.uniform(-2.0, 2.0, (n, n_features))
    level = np.sort(rng.randint(0, n_levels, n))
    level[:n_levels] = np.arange(n_levels)
    latent = np.sin(2.0 * X[:, 0]) + X[:, -1] + 0.3 * rng.standard_normal(n)
    y = np.digitize(latent, np.linspace(-0.7, 0.7, n_classes + 1)[1:-1])
    new = np.concatenate([X[:5], rng.uniform(-3.0, 3.0, (15, n_features)), 50.0 * X[:2]])
    with np.errstate(over="ignore"):
        far = np.clip(new * scale, -1e308, 1e308)
    return Data(X * scale, y, level if n_levels > 1 else None, new=far, **other)


# ------------------------------------------------------------------------------------ one fit


def unsound(case: Case) -> str | None:
    """What is wrong with a fit and with what the model answers, None if nothing is."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = case.data.fit(**case.settings)
            problem = _unsound_answers(model, case.data)
        except ValueError as error:
            problem = _unclear(error, case)
    return problem or _noisy(caught, locals().get("model"))


def _unclear(error: ValueError, case: Case) -> str | None:
    """A ValueError must name an argument."""
    arguments = {*MultiFidelityClassifier().get_params(), "X", "y", "fidelity", "sample_weight"}
    words = set(re.findall(r"\w+", str(error)))
    if type(error) is ValueError and words & arguments:
        return None
    return f"unclear {type(error).__name__}: {error}"


def _noisy(caught: Any, model: Any) -> str | None:
    """Warnings must tell the user something, and non-convergence must be told."""
    told = False
    for warning in caught:
        text = str(warning.message)
        if issubclass(warning.category, ConvergenceWarning):
            told = True
            if not re.search(r"\d", text):
                return f"ConvergenceWarning without figures: {text}"
        elif warning.category is not UserWarning:
            where = f"{warning.filename.rsplit('/', 1)[-1]}:{warning.lineno}"
            return f"{warning.category.__name__} at {where}: {text}"
    if model is not None and told == model.converged_:
        return f"converged_ is {model.converged_}, and a ConvergenceWarning came: {told}"
    return None


def _unsound_answers(model: MultiFidelityClassifier, data: Data) -> str | None:
    """What is wrong with the answers of a model."""
    X, every = data.to_predict, [None, *model.levels_]
    for level in every[: 3 if len(every) < 4 else None]:
        p, log_p = model.predict_proba(X, level), model.predict_log_proba(X, level)
        mean, variance = model.latent_mean_and_variance(X, level)
        joint_mean, covariance = model.latent_mean_and_covariance(X, level)
        samples = model.sample_latent(X, 2, level, random_state=0)
        answers = {
            "predict_proba": p,
            "latent mean": mean,
            "latent variance": variance,
            "latent covariance": covariance,
            "joint mean": joint_mean,
            "samples": samples,
        }
        for name, values in answers.items():
            if not np.isfinite(values).all():
                return f"{name} has NaN or infinity"
        if np.isnan(log_p).any() or (log_p > 0.0).any() or (log_p == -np.inf).any():
            return f"predict_log_proba from {log_p.min():.3g} to {log_p.max():.3g}"
        if (p < 0.0).any() or (p > 1.0).any() or np.abs(p.sum(axis=1) - 1.0).max() > 1e-12:
            return "probabilities outside of [0, 1] or not of sum 1"
        if (gap := np.abs(np.exp(log_p) - p).max()) > 1e-7:
            return f"exp(predict_log_proba) differs from predict_proba by {gap:.1e}"
        if (variance < 0.0).any() or (np.einsum("ii...->i...", covariance) < 0.0).any():
            return "negative variance"
        size = variance.max() + np.square(mean).max() + 1e-300
        own = np.einsum("ii...->i...", covariance)
        if (gap := np.abs(own - variance).max() / size) > 1e-3:
            return f"variance and diagonal of the covariance differ by {gap:.1e} of their scale"
        if not (model.predict(X, level) == model.classes_[p.argmax(axis=1)])[
            np.abs(p[:, 0] - p[:, 1]) > 1e-9
        ].all():
            return "predict is not the most probable class"
    value, gradient = model.log_marginal_likelihood(eval_gradient=True)
    gradients = gradient if isinstance(gradient, list) else [gradient]
    if not (np.isfinite(value) and all(np.isfinite(g).all() for g in gradients)):
        return "log_marginal_likelihood or its gradient is not finite"
    return None


def _scaled() -> Iterator[Case]:
    """Features of extreme size, whole tables and single columns."""
    sizes: dict[str, Any] = {
        f"{s:g}": s for s in (1e-300, 1e-150, 1e-12, 1e12, 1e150, 1e300, 8e307)
    }
    sizes |= {"1e300 and 1": np.array([1e300, 1.0]), "1e-300 and 1": np.array([1e-300, 1.0])}
    sizes |= {"1e300 and 1e-300": np.array([1e300, 1e-300]), "5e-324": np.array([1.0, 5e-324])}
    sizes |= {"constant": np.array([1.0, 0.0]), "all constant": np.zeros(2)}
    ways = {
        "given": GIVEN,
        "tuned": {"kernel": 1.0 * RBF(ard=True)},
        "sparse": {**GIVEN, "n_inducing": 8},
        "sparse tuned": {"kernel": 1.0 * RBF(), "n_inducing": 8},
        "default": {},
    }
    for (size, scale), standardize, (way, settings) in product(
        sizes.items(), (True, False), ways.items()
    ):
        name = f"features times {size}, standardize={standardize}, {way}"
        yield Case(name, make_data(scale=scale), {**settings, "standardize": standardize})
    for scale, (name, kernel), m in product((1e-300, 1e300), KERNELS.items(), (None, 5)):
        settings = {"kernel": kernel, "optimizer": None, "standardize": False, "n_inducing": m}
        yield Case(f"{name}, features times {scale:g}, {m}", make_data(scale=scale), settings)


def _amplitudes() -> Iterator[Case]:
    for size, scheme in product((1e-6, 1e-3, 1.0, 1e3, 1e6), SCHEMES):
        name, own = f"amplitude {size:g}, {scheme}", {"inference": scheme}
        yield Case(name, make_data(), {**own, "kernel": size * RBF(), "optimizer": None})
        tuned = Constant(size, (1e-7, 1e7)) * RBF()
        yield Case(f"{name}, tuned", make_data(), {**own, "kernel": tuned})
        yield Case(f"{name}, tuned, no prior", make_data(), {**own, "kernel": tuned, "prior": None})
    for size, m in product((1e-6, 1e6), (1, 2, 10, 100)):
        settings = {"kernel": size * RBF(), "optimizer": None, "n_inducing": m}
        yield Case(f"amplitude {size:g}, {m} inducing points", make_data(), settings)


def _weights() -> Iterator[Case]:
    n = 40
    every, rng = np.arange(n), np.random.RandomState(1)
    weights = {f"all {w:g}": np.full(n, w) for w in (1e12, 1e-12, 1e-300, 1e300)}
    weights |= {f"some {w:g}": np.where(every % 7 == 0, w, 1.0) for w in (1e12, 1e-12)}
    weights["mixed"] = 10.0 ** rng.uniform(-12.0, 12.0, n)
    for name, weight in weights.items():
        data = make_data(weight=weight)
        for scheme in SCHEMES:
            yield Case(f"weights {name}, {scheme}", data, {**GIVEN, "inference": scheme})
        yield Case(f"weights {name}, tuned", data, {"kernel": 1.0 * RBF()})
        yield Case(f"weights {name}, sparse", data, {"kernel": 1.0 * RBF(), "n_inducing": 10})
        yield Case(f"weights {name}, default", data)
        yield Case(f"weights {name}, label noise", data, {**GIVEN, "label_noise": "fidelity"})


def _shapes() -> Iterator[Case]:
    """Levels of few rows or classes, many features, few or contradicting rows."""
    full, six = make_data(), make_data(n=60, n_levels=6)
    level, n = full.fidelity, len(full.X)
    shapes = {
        "six levels": six,
        "six levels, two empty": replace(
            make_data(n=60, n_levels=4), levels=[0, "a", 1, 2, "b", 3]
        ),
        "top level empty": replace(full, levels=[0, 1, 2]),
        "lowest level empty": replace(full, levels=[-1, 0, 1]),
        "top level of one row": replace(full, fidelity=np.arange(n) == n - 1),
        "lowest level of one row": replace(full, fidelity=np.arange(n) > 0),
        "top level of one class": replace(full, y=np.where(level == 1, 1, full.y)),
        "lowest level of one class": replace(full, y=np.where(level == 0, 1, full.y)),
        "each level of its own class": replace(full, y=level),
        "500 features": make_data(n_features=500),
        "500 features, three classes": make_data(n_features=500, n_classes=3),
        "contradictions": replace(full, X=np.repeat(full.X[::2], 2, axis=0), y=np.arange(n) % 2),
        "all rows equal": replace(full, X=np.ones_like(full.X)),
        "two rows": Data([[0.0], [1.0]], [0, 1]),
        "two equal rows": Data([[0.0], [0.0]], [0, 1]),
        "two rows of two levels": Data([[0.0], [1.0]], [0, 1], [0, 1]),
        "three rows, three classes": Data([[0.0], [1.0], [2.0]], [0, 1, 2]),
        "one positive row": replace(full, y=(np.arange(n) == 5).astype(int)),
    }
    ways: dict[str, dict[str, Any]] = {
        "default": {},
        "Laplace": {"inference": "laplace"},
        "variational": {"inference": "variational"},
        "not standardised": {"standardize": False},
        "no prior": {"prior": None},
        "sparse": {"n_inducing": 5},
        "coregional": {"coupling": "coregional", "kernel": 1.0 * RBF(), "max_iter": 30},
        "label noise": {"label_noise": "fidelity"},
        "ep, no prior": {"kernel": 1.0 * RBF(ard=True), "prior": None, "inference": "ep"},
    }
    ways |= {f"given, {scheme}": {**GIVEN, "inference": scheme} for scheme in SCHEMES}
    for (shape, data), (way, settings) in product(shapes.items(), ways.items()):
        yield Case(f"{shape}, {way}", data, settings)


def _families() -> Iterator[Case]:
    """All kernels, schemes, priors, couplings and likelihoods."""
    data = make_data(n=30)
    data = replace(data, annotator=np.resize(["a", "b", "c"], len(data.X)))
    noises = (None, "fidelity", (0.2, 0.05), "annotator")
    for (name, kernel), scheme, prior, coupling, noise in product(
        KERNELS.items(), SCHEMES, ("weak", None), ("autoregressive", "coregional"), noises
    ):
        if scheme == "laplace" and noise is not None:
            continue  # refused, and told why
        settings = {"kernel": kernel, "inference": scheme, "prior": prior, "coupling": coupling}
        settings |= {"label_noise": noise, "max_iter": 15}
        yield Case(f"{name}, {scheme}, {prior}, {coupling}, {noise}", data, settings)


def _sizes() -> Iterator[Case]:
    """Extreme values of settings that are numbers."""
    values: dict[str, list[Any]] = {
        "n_inducing": [1, 2, 40, 41, 1000, [1, 40]],
        "n_tuning": [0, 1, 2, 3, {0: 0}, {1: 0}, {0: 0, 1: 0}, {0: 1, 1: 1}, {0: 0, 1: 1}, None],
        "rho_bounds": [(0, 0), (-1e-300, 1e-300), (-1e300, 1e300), (-1e12, -1e11), (100, 200)],
        "rho": [0.0, 1e-300, 1e6, 1e12, -1e19, 1e300],
        "max_iter": [1],
        "tol": [0.0, 0.5, 1e300],
        "n_restarts": [3],
    }
    ways: dict[str, dict[str, Any]] = {
        "default": {},
        "tuned": {"kernel": 1.0 * RBF()},
        "sparse": {"kernel": 1.0 * RBF(ard=True), "n_inducing": 5},
        "ep, no prior": {"kernel": 1.0 * RBF(), "inference": "ep", "prior": None},
        "variational": {"kernel": 1.0 * RBF(), "inference": "variational"},
        "label noise": {"label_noise": "fidelity"},
        "given, ep": {**GIVEN, "inference": "ep"},
    }
    for name, tried in values.items():
        for value, (way, settings) in product(tried, ways.items()):
            yield Case(f"{name}={value}, {way}", make_data(), {**settings, name: value})


# ------------------------------------------------------------------------------------ invariance


def differing(case: Case) -> str | None:
    """How probabilities change with the order of rows and columns, names of labels and units.

    Row order, processes and threads change no bit; the others change rounding errors.
    """
    data = case.data
    rng = np.random.RandomState(0)
    rows, columns = rng.permutation(len(data.X)), rng.permutation(data.X.shape[1])
    expected = _probabilities(data, case.settings)
    X, new = data.X, data.new
    shuffled = replace(data, X=X[rows], y=data.y[rows], fidelity=data.fidelity[rows])
    turned = replace(data, X=X[:, columns], new=new[:, columns])
    tolerance = case.tolerance
    others = {
        "row order": (_probabilities(shuffled, case.settings), 0.0),
        "n_jobs": (_probabilities(data, {**case.settings, "n_jobs": 2}), 0.0),
        "column order": (_probabilities(turned, case.settings), tolerance),
        "label swap": (
            _probabilities(replace(data, y=1 - data.y), case.settings)[:, ::-1],
            tolerance,
        ),
    }
    for unit in (2.0**-40, 8.0, 3.7):
        scaled = replace(data, X=X * unit, new=new * unit)
        others[f"times {unit:g}"] = (_probabilities(scaled, case.settings), tolerance)
    with threadpool_limits(1, user_api="blas"):
        others["one thread of BLAS"] = (_probabilities(data, case.settings), 0.0)
    for other, (found, allowed) in others.items():
        if (gap := float(np.abs(found - expected).max())) > allowed:
            return f"{other} changes probabilities by {gap:.1e}"
    return None


def _probabilities(data: Data, settings: dict[str, Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return data.fit(random_state=0, **settings).predict_proba(data.to_predict)


def _orders(quick: bool) -> Iterator[Case]:
    ways: dict[str, dict[str, Any]] = {
        **{f"given, {scheme}": {**GIVEN, "inference": scheme} for scheme in SCHEMES},
        "sparse": {**GIVEN, "n_inducing": 10},
        "tuned": {"kernel": 1.0 * RBF()},
        "tuned, ep": {"kernel": 1.0 * RBF(ard=True), "inference": "ep"},
        "sparse tuned": {"kernel": 1.0 * RBF(), "n_inducing": 10},
        "default": {},
        "default, sparse": {"n_inducing": 10},
    }
    for seed, (way, settings) in product(range(1 if quick else 10), ways.items()):
        yield Case(f"{way}, seed {seed}", make_data(n=60, n_features=3, seed=seed), settings)


def unequal_to_repetitions(case: Case) -> str | None:
    """How far probabilities of weighted rows are from those of rows that are repeated."""
    data, weight = case.data, np.asarray(case.data.weight)
    rows = np.repeat(np.arange(len(weight)), weight.astype(int))
    repeated = replace(
        data, X=data.X[rows], y=data.y[rows], fidelity=data.fidelity[rows], weight=None
    )
    found, expected = (_probabilities(d, case.settings) for d in (data, repeated))
    gap = float(np.abs(found - expected).max())
    return None if gap <= SAME else f"repetitions differ from weights by {gap:.1e}"


def _repetitions(quick: bool) -> Iterator[Case]:
    ways: dict[str, dict[str, Any]] = {
        **{f"given, {scheme}": {**GIVEN, "inference": scheme} for scheme in SCHEMES},
        "sparse": {**GIVEN, "n_inducing": 10},
        "tuned": {"kernel": 1.0 * RBF()},
        "sparse tuned": {"kernel": 1.0 * RBF(), "n_inducing": 10},
        "label noise": {"kernel": 1.0 * RBF(), "label_noise": "fidelity"},
        "default": {},
    }
    for seed, (way, settings) in product(range(1 if quick else 10), ways.items()):
        weight = np.random.RandomState(seed).randint(0, 5, 40)
        yield Case(f"{way}, seed {seed}", make_data(seed=seed, weight=weight), settings)


# --------------------------------------------------------------------------------------- threads

#: Fits of several kinds at once, so that limits of BLAS threads overlap in all ways.
AT_ONCE: list[dict[str, Any]] = [
    {**GIVEN},
    {"kernel": 1.0 * RBF(), "n_inducing": 30},
    {**GIVEN, "inference": "ep"},
    {"kernel": 1.0 * RBF()},
    {"n_inducing": 30},
    {},
    {**GIVEN, "inference": "variational"},
    {"kernel": 1.0 * RBF(ard=True)},
]


def _answers(model: MultiFidelityClassifier) -> list[Any]:
    """Of more points than single precision begins at."""
    X = np.random.RandomState(5).uniform(-2.0, 2.0, (6000, 2))
    return [model.predict_proba(X), *model.latent_mean_and_variance(X)]


def disturbed(seed: int) -> str | None:
    """What changes where eight threads fit and eight predict at once."""
    data = [make_data(n=80, seed=seed + i) for i in range(len(AT_ONCE))]

    def fit(i: int) -> MultiFidelityClassifier:
        return data[i].fit(random_state=0, **AT_ONCE[i])

    with warnings.catch_warnings():  # once for all threads, which share the filters
        warnings.simplefilter("ignore", ConvergenceWarning)
        models = [fit(i) for i in range(len(AT_ONCE))]
        expected, limits = [_answers(m) for m in models], _blas_threads()
        with ThreadPoolExecutor(16) as pool:
            again = [pool.submit(lambda i=i: _answers(fit(i))) for i in range(len(AT_ONCE))]
            asked = [pool.submit(_answers, m) for m in models]
            found = [[job.result() for job in jobs] for jobs in (again, asked)]
    for what, answers in zip(("fits", "predictions"), found, strict=True):
        for i, (some, own) in enumerate(zip(answers, expected, strict=True)):
            if not all(map(np.array_equal, some, own)):
                return f"{what} of {AT_ONCE[i]} in threads differ from those one after another"
    if _blas_threads() != limits:
        return f"threads of BLAS were {limits} and are {_blas_threads()}"
    return None


def _blas_threads() -> list[int]:
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def trials(context: Context) -> Iterator[Trial]:
    """All attacks; a few cases of each with ``quick``."""
    groups = {
        "kernel amplitudes of 1e-6 to 1e6": _amplitudes,
        "features of 1e-300 to 8e307": _scaled,
        "weights of 1e-12 to 1e12 and beyond": _weights,
        "levels, classes and rows of odd numbers": _shapes,
        "kernels, schemes, priors, couplings, likelihoods": _families,
        "extreme settings": _sizes,
    }
    for what, cases in groups.items():
        chosen = list(cases())
        yield attack(
            what, SOUND, chosen[:: 1 + len(chosen) // 12] if context.quick else chosen, unsound
        )
    same = "the same probabilities: to the bit for rows, n_jobs and threads, else to 1e-6"
    yield attack("other orders and units", same, _orders(context.quick), differing)
    yield attack(
        "weights and repetitions",
        f"the same probabilities to {SAME:g}",
        _repetitions(context.quick),
        unequal_to_repetitions,
    )
    rounds = range(0, 80, 40) if context.quick else range(0, 800, 40)
    alone = "the same bits as one after another, and BLAS with as many threads as before"
    yield attack("8 threads that fit and 8 that predict", alone, rounds, disturbed)
