"""The main job on built-in data: a few trusted labels, many cheap ones, and what they are worth.

Run it with ``python -m polyfid.demo``.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from polyfid import MultiFidelityClassifier, Pooled, Stacked, TrustedOnly, stack_levels

N_TRUSTED, N_CHEAP, WRONG = 30, 300, 0.3


@dataclass(frozen=True)
class Result:
    """One row of the table."""

    method: str
    roc_auc: float
    log_loss: float
    seconds: float


def simulate(seed: int = 0) -> tuple[Any, Any, Any, Any, Any]:
    """Breast cancer features; a few right labels, many from a crowd that errs, and test rows."""
    X, y = load_breast_cancer(return_X_y=True)
    rng = np.random.RandomState(seed)
    rows = rng.permutation(len(y))
    trusted, cheap, test = np.split(rows, [N_TRUSTED, N_TRUSTED + N_CHEAP])
    crowd = y[cheap] ^ (rng.uniform(size=N_CHEAP) < WRONG)
    levels = {"crowd": (X[cheap], crowd), "expert": (X[trusted], y[trusted])}
    return (*stack_levels(levels), X[test], y[test])


def methods() -> dict[str, Any]:
    """What is compared: the multi-fidelity model and each baseline around two classifiers."""
    gp = MultiFidelityClassifier()
    logistic = make_pipeline(StandardScaler(), LogisticRegression())
    table: dict[str, Any] = {"multi-fidelity GP": MultiFidelityClassifier()}
    for name, wrap in (("trusted only", TrustedOnly), ("pooled", Pooled), ("stacked", Stacked)):
        table[f"{name}, GP"] = wrap(gp)
        table[f"{name}, logistic regression"] = wrap(logistic)
    return table


def compare(seed: int = 0) -> tuple[list[Result], MultiFidelityClassifier]:
    """Fit every method on the same rows and score it on the same test rows."""
    X, y, fidelity, X_test, y_test = simulate(seed)
    results, fitted = [], {}
    for name, model in methods().items():
        start = time.perf_counter()
        fitted[name] = model.fit(X, y, fidelity=fidelity)
        seconds = time.perf_counter() - start
        p = model.predict_proba(X_test)[:, 1]
        results.append(Result(name, roc_auc_score(y_test, p), log_loss(y_test, p), seconds))
    return results, fitted["multi-fidelity GP"]


def verdict(results: list[Result], model: MultiFidelityClassifier) -> str:
    """Say whether the cheap labels helped and how far they can be trusted."""
    ours = results[0]
    alone = next(r for r in results if r.method == "trusted only, GP")
    gain, drop = ours.roc_auc - alone.roc_auc, alone.log_loss - ours.log_loss
    if drop > 0 and gain > 0:
        helped = "The cheap labels helped"
    elif drop <= 0 and gain <= 0:
        helped = "The cheap labels did not help"
    else:
        helped = "The cheap labels helped in part"
    X, _, fidelity, *_ = simulate()
    cheap = fidelity == "crowd"
    # Would the crowd's label agree with an expert's? Both as the model sees them.
    p_crowd = model.predict_proba(X[cheap], fidelity="crowd")[:, 1]
    p_expert = model.predict_proba(X[cheap])[:, 1]
    agree = np.mean(p_crowd * p_expert + (1 - p_crowd) * (1 - p_expert))
    return (
        f"{helped}: against {N_TRUSTED} trusted labels alone, ROC AUC {gain:+.3f} and log-loss "
        f"{-drop:+.3f}.\nHow far to trust them: the model expects a crowd label to agree with an "
        f"expert's in {agree:.0%} of cases\n(in truth {1 - WRONG:.0%}), rho = {model.rho_[0]:.2f}."
    )


def main() -> None:
    """Print the table and the verdict."""
    print(
        f"Breast cancer: {N_TRUSTED} trusted labels, {N_CHEAP} crowd labels of which "
        f"{WRONG:.0%} are wrong.\n"
    )
    results, model = compare()
    print(f"{'method':<34}{'ROC AUC':>9}{'log-loss':>10}{'fit, s':>9}")
    for r in results:
        print(f"{r.method:<34}{r.roc_auc:>9.3f}{r.log_loss:>10.3f}{r.seconds:>9.2f}")
    print(f"\n{verdict(results, model)}\n")
    print(model.report_)


if __name__ == "__main__":
    main()
