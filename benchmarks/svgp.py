"""GPyTorch's sparse variational classifier with the same co-kriging prior: log-loss over time.

It runs in a process of its own, ``python -m benchmarks.svgp PROBLEM.npz OPTIONS``, with options as
JSON, and prints what it reached after every epoch, as JSON.
"""

from __future__ import annotations

import copy
import json
import sys
import time
from collections.abc import Mapping
from typing import Any

import gpytorch
import numpy as np
import torch
from sklearn.cluster import KMeans

CLIP = 1e-6  # what single precision tells from 1


class CoKriging(gpytorch.kernels.Kernel):
    """rho^(t + u) k_0(x, z) + t u k_1(x, z): the last column is the level, 0 or 1."""

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.shared, self.correction = (self._scaled_rbf(n_features) for _ in range(2))
        self.register_parameter("rho", torch.nn.Parameter(torch.ones(1)))

    @staticmethod
    def _scaled_rbf(n_features: int) -> Any:
        columns = tuple(range(n_features))
        rbf = gpytorch.kernels.RBFKernel(ard_num_dims=n_features, active_dims=columns)
        rbf.lengthscale = np.sqrt(n_features)
        scaled = gpytorch.kernels.ScaleKernel(rbf)
        scaled.outputscale = np.exp(1.5)
        return scaled

    def forward(self, a: Any, b: Any, diag: bool = False, **_: Any) -> Any:
        t, u = a[..., -1], b[..., -1]
        left, right = (1.0 + (self.rho - 1.0) * level for level in (t, u))
        if diag:
            shared, correction = (k(a, b, diag=True) for k in (self.shared, self.correction))
            return left * right * shared + t * u * correction
        shared, correction = (k(a, b).to_dense() for k in (self.shared, self.correction))
        outer, both = left[..., None] * right[..., None, :], t[..., None] * u[..., None, :]
        return outer * shared + both * correction


class Model(gpytorch.models.ApproximateGP):
    def __init__(self, inducing: Any, n_features: int) -> None:
        q = gpytorch.variational.CholeskyVariationalDistribution(len(inducing))
        strategy = gpytorch.variational.VariationalStrategy(
            self, inducing, q, learn_inducing_locations=True
        )
        super().__init__(strategy)
        self.mean_module = gpytorch.means.ZeroMean()
        self.covar_module = CoKriging(n_features)

    def forward(self, x: Any) -> Any:
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


class Logit(gpytorch.likelihoods.likelihood._OneDimensionalLikelihood):
    """Labels 0 or 1 with log-odds f."""

    def forward(self, function_samples: Any, **_: Any) -> Any:
        return torch.distributions.Bernoulli(logits=function_samples)


def fit(data: Mapping[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """Seconds and log-loss of the test rows after each epoch.

    If ``data`` has rows ``x_new``, ``new`` has their probabilities, those of the best epoch.
    """
    torch.manual_seed(options["seed"])
    torch.set_num_threads(options["threads"])
    centre, scale = data["x"].mean(axis=0), data["x"].std(axis=0)
    started, scoring = time.perf_counter(), 0.0

    def rows(x: Any, level: Any) -> Any:
        table = np.column_stack([(x - centre) / scale, np.broadcast_to(level, len(x))])
        return torch.as_tensor(table, dtype=torch.float32)

    x, y = rows(data["x"], data["level"]), torch.as_tensor(data["y"], dtype=torch.float32)
    x_test = rows(data["x_test"], 1)
    y_test = torch.as_tensor(data["y_test"], dtype=torch.float32)
    model = Model(_centres(x.numpy(), options), data["x"].shape[1])
    likelihood = Logit()
    model.train()
    likelihood.train()
    bound = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(y))
    adam = torch.optim.Adam(model.parameters(), lr=options["rate"])
    trace: list[list[float]] = []
    best: dict[str, Any] = {}
    while not trace or trace[-1][0] < options["seconds"]:
        for index in torch.randperm(len(y)).split(1024):
            adam.zero_grad()
            (-bound(model(x[index]), y[index])).backward()
            adam.step()
        now = time.perf_counter()
        trace.append([now - started - scoring, log_loss(model, x_test, y_test)])
        if trace[-1][1] == min(loss for _, loss in trace):
            best = copy.deepcopy(model.state_dict())
        scoring += time.perf_counter() - now
        print(f"    {trace[-1][0]:.1f} s: {trace[-1][1]:.4f}", file=sys.stderr, flush=True)
    result = {"options": options, "trace": trace}
    if "x_new" in data:
        model.load_state_dict(best)
        result["new"] = probabilities(model, rows(data["x_new"], 1)).double().numpy()
    return result


def _centres(x: Any, options: dict[str, Any]) -> Any:
    """Centres of clusters of the rows of each level, a quarter of them at the trusted one."""
    n_top = options["inducing"] // 4
    rng = np.random.RandomState(options["seed"])
    parts = []
    for level, count in ((0, options["inducing"] - n_top), (1, n_top)):
        own = x[x[:, -1] == level]
        own = own[rng.permutation(len(own))[:5000]]
        parts.append(KMeans(count, n_init=1, max_iter=30, random_state=rng).fit(own))
    return torch.as_tensor(np.concatenate([p.cluster_centers_ for p in parts]))


def log_loss(model: Any, x: Any, y: Any) -> float:
    """Of labels 0 or 1 under the posterior predictive."""
    p = probabilities(model, x)
    return float(-torch.where(y > 0.5, p, 1.0 - p).log().mean())


def probabilities(model: Any, x: Any) -> Any:
    """Of label 1 under the posterior predictive, by quadrature."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(32)
    nodes = torch.as_tensor(nodes, dtype=x.dtype)
    weights = torch.as_tensor(weights / weights.sum(), dtype=x.dtype)
    model.eval()
    parts = []
    with torch.no_grad():
        for block in x.split(4096):
            f = model(block)
            latent = f.mean[:, None] + f.variance.clamp_min(0.0).sqrt()[:, None] * nodes
            parts.append(torch.sigmoid(latent) @ weights)
    model.train()
    return torch.cat(parts).clamp(CLIP, 1.0 - CLIP)


if __name__ == "__main__":
    print(json.dumps(fit(np.load(sys.argv[1]), json.loads(sys.argv[2]))))
