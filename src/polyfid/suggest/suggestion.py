"""Which labels to buy next: rows of a pool, each at a level, by what they are expected to teach."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from numbers import Real
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from polyfid.arrays import Array, Indices
from polyfid.estimator.classifier import MultiFidelityClassifier
from polyfid.estimator.constraints import read_whole
from polyfid.estimator.decisions import DecisionRule
from polyfid.estimator.fitted import posterior_needed
from polyfid.estimator.inputs import hash_pairs
from polyfid.estimator.levels import encode_levels
from polyfid.inference.linalg import suitable_threads
from polyfid.learning.draws import Drawn, draw_posteriors
from polyfid.learning.mixture import Mixture
from polyfid.suggest.batches import Batch, Pick, Terms
from polyfid.suggest.beliefs import ClassBelief
from polyfid.suggest.strategies import STRATEGIES, Strategy, make_strategy
from polyfid.values import is_frame, to_python

#: Rows that stand for all rows that predictions are wanted for; fewer do for a rough score.
N_TARGETS, N_ROUGH_TARGETS = 160, 48
#: Draws of hyper-parameters over which gains are averaged; of many classes each has fewer.
N_DRAWS, MIN_DRAWS = 16, 8
#: More candidates than this are first ranked by a rough score. Of each level the best ones and
#: random ones stay, at least so many and so many per label that can be bought.
N_EXACT, N_BEST, N_RANDOM, PER_LABEL = 4000, 1500, 500, 3
#: Rows whose scores are computed at a time.
_BLOCK = 8192

#: Columns of the answer.
COLUMNS = ("row", "level", "gain", "gain_per_cost", "relative_gain", "cost", "total", "audit")


def suggest(
    model: Any,
    pool: Any,
    costs: Mapping[Any, float],
    *,
    budget: float | None = None,
    n: int | None = None,
    targets: Any = None,
    strategy: str = "epig",
    audit: float = 0.2,
    repeat: bool = False,
    error_costs: Any = None,
    threshold: float | None = None,
    random_state: Any = None,
) -> Any:
    """The labels to buy next: which rows of a pool, at which level, in order of their worth.

    A label is worth what it is expected to teach about the trusted labels of ``targets``, per unit
    of money. Rows are chosen one after the other, each with regard to what the earlier ones will
    have taught, so that a batch is diverse.

    Parameters
    ----------
    model : fitted MultiFidelityClassifier or TableModel
    pool : array or data frame of shape (n_rows, n_features)
        Rows that may be labelled. For a TableModel also a path.
    costs : dict
        What a label of each level costs, such as ``{"crowd": 1, "expert": 8}``. Levels that are
        not named are not offered.
    budget : float, optional
        The money that may be spent; give it, or ``n``, or both.
    n : int, optional
        The most labels.
    targets : array or data frame, optional
        Rows that predictions are wanted for; at most 160 of them, drawn at random, are used. By
        default the pool.
    strategy : str
        "epig": information about the targets' labels, in nats; "brier": fall of their variance;
        "error": fall of their expected error, or of its cost with ``error_costs``; "boundary":
        information on whether the targets' probability is above ``threshold``; "margin", "bald" and
        "random" look at the candidate alone, and spend as much money on each level.
    audit : float
        Share of the labels at the top level that are drawn at random and marked. Scores on rows
        that were chosen are biased; on audit rows they are not.
    repeat : bool
        Also offer rows that have a label at that level, as repetitions. What is labelled is known
        of models that were fitted to rows in memory; keep others out of the pool.
    error_costs : dict, optional
        Costs of mistakes, as `MultiFidelityClassifier.decide` takes them; for "error", and for
        "boundary" with two classes.
    threshold : float, optional
        A probability of the second of two classes, for "boundary"; 0.5 by default.
    random_state : int, RandomState or None

    Returns
    -------
    data frame
        Of the library of ``pool``, of pandas for arrays: ``row`` (its position in the pool),
        ``level``, ``gain``, ``gain_per_cost``, ``relative_gain`` (how many times as much as a
        random row of that level gains now), ``cost``, ``total`` (the sum of the costs so far) and
        ``audit``. Gains are means over the targets.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid import MultiFidelityClassifier, stack_levels, suggest
    >>> from polyfid.kernels import RBF
    >>> rng = np.random.RandomState(0)
    >>> X = rng.uniform(-2, 2, (60, 1))
    >>> right = X[:, 0] > 0
    >>> X, y, fidelity = stack_levels({"crowd": (X, right), "expert": (X[:6], right[:6])})
    >>> model = MultiFidelityClassifier(1.0 * RBF()).fit(X, y, fidelity=fidelity)
    >>> pool = np.linspace(-2, 2, 41)[:, None]
    >>> batch = suggest(model, pool, {"crowd": 1, "expert": 5}, budget=12, random_state=0)
    >>> float(batch["total"].iloc[-1]) <= 12
    True
    """
    if not isinstance(model, MultiFidelityClassifier):
        return model.suggest(
            pool,
            costs,
            budget=budget,
            n=n,
            targets=targets,
            strategy=strategy,
            audit=audit,
            repeat=repeat,
            error_costs=error_costs,
            threshold=threshold,
            random_state=random_state,
        )
    question = _Question.of(model, strategy, error_costs, threshold)
    offer = _read_costs(model, costs)
    rng = check_random_state(random_state)
    if not (_is_positive(audit) or audit == 0) or audit > 1:
        raise ValueError(f"audit must be a share from 0 to 1, got {audit!r}")
    money, most = _read_limits(budget, n, min(offer.values()))
    x = _rows_of(model, "pool", pool)
    at = _targets_of(model, targets, x, rng)
    with posterior_needed(), suitable_threads(max(m.size for m in model._mixtures)):
        candidates = _offered(model, x, offer, repeat)
        candidates = _screened(question, x, candidates, at, offer, min(most, len(candidates)), rng)
        terms = Terms(candidates.cost(offer), money, most, float(audit), repeat)
        draws = question.draws(rng)
        beliefs = question.beliefs(x[candidates.row], candidates.level, at, draws)
        is_top = candidates.level == len(model.levels_) - 1
        batch = Batch(beliefs, question.strategy, terms, rng, candidates.random, is_top)
        picks = batch.choose()
    return _frame(pool, model, candidates, terms.cost, picks)


def rank(
    model: MultiFidelityClassifier,
    pool: Any,
    level: Any = None,
    *,
    targets: Any = None,
    strategy: str = "epig",
    error_costs: Any = None,
    threshold: float | None = None,
    random_state: Any = None,
) -> Array:
    """What one label of each row of a pool is worth at a level, (n_rows,).

    Unlike in `suggest`, rows do not count as labelled by each other's labels. The parameters are
    those of `suggest`; ``level`` is the top one by default.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid import MultiFidelityClassifier
    >>> from polyfid.kernels import RBF
    >>> from polyfid.suggest import rank
    >>> X = np.linspace(-2, 2, 20)[:, None]
    >>> model = MultiFidelityClassifier(1.0 * RBF()).fit(X, X[:, 0] > 0)
    >>> gain = rank(model, np.linspace(-3, 3, 7)[:, None], targets=X, random_state=0)
    >>> gain.shape, bool((gain >= 0).all())
    ((7,), True)
    """
    question = _Question.of(model, strategy, error_costs, threshold)
    top = len(model.levels_) - 1
    t = top if level is None else int(encode_levels([level], model.levels_, "level")[0])
    x = _rows_of(model, "pool", pool)
    rng = check_random_state(random_state)
    at = _targets_of(model, targets, x, rng)
    gains = [np.empty(0)]
    with posterior_needed(), suitable_threads(max(m.size for m in model._mixtures)):
        draws = question.draws(rng)
        for start in range(0, len(x), _BLOCK):
            own = x[start : start + _BLOCK]
            beliefs = question.beliefs(own, np.full(len(own), t, dtype=np.intp), at, draws)
            gains.append(question.strategy.score(beliefs, np.arange(len(own))))
    return np.concatenate(gains)


@dataclass(frozen=True)
class _Question:
    """What is asked, of which model."""

    mixtures: Sequence[Mixture]
    strategy: Strategy
    weak_prior: bool

    @classmethod
    def of(
        cls, model: MultiFidelityClassifier, strategy: str, error_costs: Any, threshold: Any
    ) -> _Question:
        check_is_fitted(model, "report_")
        if strategy not in STRATEGIES:
            raise ValueError(f"strategy must be one of {list(STRATEGIES)}, got {strategy!r}")
        n_classes = len(model.classes_)
        rule = None if error_costs is None else DecisionRule.of(error_costs, model.classes_)
        if rule is not None and strategy not in ("error", "boundary"):
            raise ValueError(
                f'error_costs go with strategy="error" or "boundary", not {strategy!r}'
            )
        if strategy == "boundary" and n_classes > 2:
            raise ValueError(
                f'strategy="boundary" is for two classes, and the model has {n_classes}; use '
                '"error" with error_costs'
            )
        if threshold is not None and strategy != "boundary":
            raise ValueError(f'threshold goes with strategy="boundary", not {strategy!r}')
        if threshold is not None and not (_is_positive(threshold) and threshold < 1):
            raise ValueError(f"threshold must be a probability between 0 and 1, got {threshold!r}")
        costs = 1.0 - np.eye(n_classes) if rule is None else rule.costs
        if threshold is None and strategy == "boundary":
            gain = costs - np.diagonal(costs)[:, None]  # what each mistake costs more
            threshold = gain[0, 1] / (gain[0, 1] + gain[1, 0])
            if not 0.0 < threshold < 1.0:
                raise ValueError(
                    f"error_costs make one decision right everywhere, and no boundary: {costs}"
                )
        weak = model._fitted.options.weak_prior
        return cls(model._mixtures, make_strategy(strategy, costs, threshold), weak)

    def draws(self, rng: np.random.RandomState) -> list[list[Drawn]]:
        """Posteriors under drawn hyper-parameters, of each class."""
        n = max(MIN_DRAWS, N_DRAWS // len(self.mixtures))
        return [draw_posteriors(m, n, self.weak_prior, rng) for m in self.mixtures]

    def beliefs(
        self, x: Array, level: Indices, targets: Array, draws: list[list[Drawn]] | None = None
    ) -> list[ClassBelief]:
        """What is believed of rows at levels, sorted by level, and of targets.

        Without draws, hyper-parameters are taken as known.
        """
        top = self.mixtures[0].best.fit.prior.n_levels - 1
        tops = np.full(len(targets), top, dtype=np.intp)
        return [
            ClassBelief(m, None, m.placed(x, level), m.placed(targets, tops), drawn)
            for m, drawn in zip(self.mixtures, draws or repeat(None), strict=False)
        ]


@dataclass(frozen=True)
class _Candidates:
    """Pairs of a row and a level, sorted by level; ``random`` ones are a random sample of all."""

    row: Indices
    level: Indices
    random: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.row)

    def cost(self, offer: Mapping[int, float]) -> Array:
        return np.array([offer[t] for t in self.level.tolist()])


def _rows_of(model: MultiFidelityClassifier, name: str, rows: Any) -> Array:
    """Features of rows in numbers, in their order."""
    if len(np.shape(rows)) == 2 and np.shape(rows)[0] == 0:
        raise ValueError(f"{name} has no rows; give the rows that may be labelled")
    return model._new_rows(rows, model.levels_[-1])[0]


def _targets_of(
    model: MultiFidelityClassifier, targets: Any, x: Array, rng: np.random.RandomState
) -> Array:
    rows = x if targets is None else _rows_of(model, "targets", targets)
    if len(rows) > N_TARGETS:
        rows = rows[np.sort(rng.choice(len(rows), N_TARGETS, replace=False))]
    return rows


def _read_costs(model: MultiFidelityClassifier, costs: Any) -> dict[int, float]:
    """Costs by number of the level."""
    if not isinstance(costs, Mapping) or not costs:
        raise ValueError(
            f"costs must be a dictionary of prices by level, such as {{{model.levels_[-1]!r}: 8}}; "
            f"got {costs!r}"
        )
    names = {to_python(name): t for t, name in enumerate(model.levels_)}
    offer = {}
    for name, cost in costs.items():
        if to_python(name) not in names:
            raise ValueError(
                f"costs name the level {name!r}, and the model's levels are {list(model.levels_)}"
            )
        if not _is_positive(cost):
            raise ValueError(f"the cost of {name!r} must be a number above 0, got {cost!r}")
        offer[names[to_python(name)]] = float(cost)
    return dict(sorted(offer.items()))


def _is_positive(value: Any) -> bool:
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    return is_number and 0.0 < float(value) < np.inf


def _read_limits(budget: Any, n: Any, least: float) -> tuple[float, int]:
    """Money, and how many labels it buys at most."""
    if budget is None and n is None:
        raise ValueError("give budget=, the money to spend, or n=, the number of labels, or both")
    if budget is not None and not _is_positive(budget):
        raise ValueError(f"budget must be a number above 0, got {budget!r}")
    if budget is not None and budget < least * (1.0 - 1e-9):
        raise ValueError(f"budget={budget:g} buys no label: the cheapest one costs {least:g}")
    most = sys.maxsize if n is None else read_whole("n", n, 1)
    if budget is None:
        return np.inf, most
    return float(budget), min(most, int(budget / least * (1.0 + 1e-9)))


def _offered(
    model: MultiFidelityClassifier, x: Array, offer: Mapping[int, float], repeat: bool
) -> _Candidates:
    """All rows at all levels that have a cost, without those that are labelled already."""
    labelled = model._fitted.info.labelled
    rows, levels = [], []
    for t in offer:
        level = np.full(len(x), t, dtype=np.intp)
        free = np.ones(len(x), dtype=bool)
        if labelled is not None and not repeat:
            free = ~np.isin(hash_pairs(x, level), labelled)
        rows.append(np.flatnonzero(free))
        levels.append(level[free])
    row = np.concatenate(rows)
    if not len(row):
        names = [model.levels_[t] for t in offer]
        raise ValueError(
            f"pool has no row without a label at the levels {names}; add rows, or pass repeat=True "
            "to label rows again"
        )
    return _Candidates(row, np.concatenate(levels), np.ones(len(row), dtype=bool))


def _screened(
    question: _Question,
    x: Array,
    all_: _Candidates,
    targets: Array,
    offer: Mapping[int, float],
    most: int,
    rng: np.random.RandomState,
) -> _Candidates:
    """Of very many candidates the best ones by a rough score, and random ones."""
    if len(all_) <= N_EXACT:
        return all_
    if len(targets) > N_ROUGH_TARGETS:
        targets = targets[rng.choice(len(targets), N_ROUGH_TARGETS, replace=False)]
    kept, is_random = [], []
    for t in offer:
        own = np.flatnonzero(all_.level == t)
        random = rng.permutation(own)[: max(N_RANDOM, PER_LABEL * most)]
        gain = [np.empty(0)]
        for start in range(0, len(own), _BLOCK):
            rows = own[start : start + _BLOCK]
            beliefs = question.beliefs(x[all_.row[rows]], all_.level[rows], targets)
            gain.append(question.strategy.rough_score(beliefs, slice(0, len(rows))))
        best = own[np.argsort(-np.concatenate(gain), kind="stable")]
        chosen = np.union1d(random, best[: max(N_BEST, PER_LABEL * most)])
        kept.append(chosen)
        is_random.append(np.isin(chosen, random))
    chosen = np.concatenate(kept)
    return _Candidates(all_.row[chosen], all_.level[chosen], np.concatenate(is_random))


def _frame(
    pool: Any,
    model: MultiFidelityClassifier,
    candidates: _Candidates,
    cost: Array,
    picks: Sequence[Pick],
) -> Any:
    """The answer as a frame of the pool's kind."""
    chosen = np.array([pick.candidate for pick in picks], dtype=np.intp)
    gain = np.array([pick.gain for pick in picks])
    level = candidates.level[chosen]
    typical = np.array([pick.typical for pick in picks])
    relative = np.divide(gain, typical, out=np.full(len(gain), np.nan), where=typical > 0.0)
    names = np.empty(len(model.levels_), dtype=object)
    names[:] = model.levels_
    values = (
        candidates.row[chosen],
        names[level].tolist(),
        gain,
        gain / cost[chosen],
        relative,
        cost[chosen],
        np.cumsum(cost[chosen]),
        np.array([pick.audit for pick in picks], dtype=bool),
    )
    columns = dict(zip(COLUMNS, values, strict=True))
    if is_frame(pool):
        backend = nw.from_native(pool).implementation
        return nw.from_dict(columns, backend=backend).to_native()
    import pandas as pd

    return pd.DataFrame(columns)
