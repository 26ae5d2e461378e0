"""Which labels to buy next: rows of a pool, each at a level, by what they are expected to teach."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from polyfid.arrays import Array, Indices
from polyfid.estimator.classifier import MultiFidelityClassifier
from polyfid.estimator.constraints import read_whole
from polyfid.estimator.decisions import DecisionRule
from polyfid.estimator.fitted import posterior_needed
from polyfid.estimator.levels import encode_levels
from polyfid.inference.linalg import suitable_threads
from polyfid.learning.draws import Drawn, draw_posteriors
from polyfid.learning.mixture import Mixture
from polyfid.suggest.batches import Batch, Pick, Terms
from polyfid.suggest.beliefs import ClassBelief
from polyfid.suggest.candidates import (
    Candidates,
    cautious,
    is_positive,
    offered,
    read_costs,
    read_limits,
)
from polyfid.suggest.strategies import STRATEGIES, Strategy, make_strategy
from polyfid.values import is_frame

#: Rows that stand for all rows that predictions are wanted for; fewer do for a rough score.
N_TARGETS, N_ROUGH_TARGETS = 160, 48
#: Draws of hyper-parameters over which gains are averaged; of many classes each has fewer.
N_DRAWS, MIN_DRAWS = 16, 8
#: Of how many random rows per level each label is the best.
CHOICES = 8
#: Of more candidates than this some stay per level: random ones, and the best by a rough score if
#: any row may be chosen; at least so many, and so many per label that can be bought.
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
    choices: int | None = CHOICES,
    repeat: bool = False,
    error_costs: Any = None,
    threshold: float | None = None,
    random_state: Any = None,
) -> Any:
    """The labels to buy next: which rows of a pool, at which level, in order of their worth.

    A label is worth what it is expected to teach about the trusted labels of ``targets``, per unit
    of money. Rows are chosen one after the other, each with regard to what the earlier ones will
    have taught, so that a batch is diverse. While there are few trusted rows, what cheap labels
    promise counts for less, by 1 + 60 / (number of trusted rows): it holds only if the levels are
    linked as they seem to be.

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
    choices : int, optional
        Each label is the best one of so many random rows per level. None: of all rows. The very
        best rows lie far apart from each other, so that their labels do not show how noisy labels
        are, and models of them are too certain: see docs/howto/what_to_label.md.
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
            choices=choices,
            repeat=repeat,
            error_costs=error_costs,
            threshold=threshold,
            random_state=random_state,
        )
    question = Question.of(model, strategy, error_costs, threshold)
    offer = read_costs(model, costs)
    rng = check_random_state(random_state)
    choices = None if choices is None else read_whole("choices", choices, 1)
    if not (is_positive(audit) or audit == 0) or audit > 1:
        raise ValueError(f"audit must be a share from 0 to 1, got {audit!r}")
    money, most = read_limits(budget, n, min(offer.values()))
    x = rows_of(model, "pool", pool)
    at = _targets_of(model, targets, x, rng)
    with posterior_needed(), suitable_threads(max(m.size for m in model._mixtures)):
        candidates = offered(model, x, offer, repeat)
        if len(candidates) > N_EXACT:
            candidates = _thinned(question, x, candidates, at, most, choices, rng)
        cost = candidates.cost(offer)
        compared = cautious(model, cost, candidates.level)
        terms = Terms(cost, compared, money, most, float(audit), repeat, choices)
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
    question = Question.of(model, strategy, error_costs, threshold)
    top = len(model.levels_) - 1
    t = top if level is None else int(encode_levels([level], model.levels_, "level")[0])
    x = rows_of(model, "pool", pool)
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
class Question:
    """What is asked, of which model."""

    mixtures: Sequence[Mixture]
    strategy: Strategy
    weak_prior: bool

    @classmethod
    def of(
        cls, model: MultiFidelityClassifier, strategy: str, error_costs: Any, threshold: Any
    ) -> Question:
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
        if threshold is not None and not (is_positive(threshold) and threshold < 1):
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

    def rough_score(self, x: Array, candidates: Candidates, targets: Array) -> Array:
        """Which of very many candidates deserve a score, hyper-parameters taken as known."""
        beliefs = self.beliefs(x[candidates.row], candidates.level, targets)
        return self.strategy.rough_score(beliefs, slice(0, len(candidates)))

    def beliefs(
        self, x: Array, level: Indices, targets: Array, draws: list[list[Drawn]] | None = None
    ) -> list[ClassBelief]:
        """What is believed of rows at levels, sorted by level, and of targets.

        Without draws, hyper-parameters are taken as known.
        """
        top = self.mixtures[0].best.fit.prior.n_levels - 1
        tops = np.full(len(targets), top, dtype=np.intp)
        return [
            ClassBelief(m, m.placed(x, level), m.placed(targets, tops), drawn)
            for m, drawn in zip(self.mixtures, draws or itertools.repeat(None), strict=False)
        ]


def rows_of(model: MultiFidelityClassifier, name: str, rows: Any) -> Array:
    """Features of rows in numbers, in their order."""
    if len(np.shape(rows)) == 2 and np.shape(rows)[0] == 0:
        raise ValueError(f"{name} has no rows; give the rows that may be labelled")
    return model._new_rows(rows, model.levels_[-1])[0]


def _targets_of(
    model: MultiFidelityClassifier, targets: Any, x: Array, rng: np.random.RandomState
) -> Array:
    rows = x if targets is None else rows_of(model, "targets", targets)
    if len(rows) > N_TARGETS:
        rows = rows[np.sort(rng.choice(len(rows), N_TARGETS, replace=False))]
    return rows


def _thinned(
    question: Question,
    x: Array,
    candidates: Candidates,
    targets: Array,
    most: int,
    choices: int | None,
    rng: np.random.RandomState,
) -> Candidates:
    """Of very many candidates random ones, and the best by a rough score if any may be chosen."""
    if len(targets) > N_ROUGH_TARGETS:
        targets = targets[rng.choice(len(targets), N_ROUGH_TARGETS, replace=False)]
    wanted = PER_LABEL * min(most, len(candidates))
    kept, is_random = [], []
    for own in candidates.by_level():
        random = rng.permutation(own)[: max(N_RANDOM, wanted)]
        chosen = np.sort(random)
        if choices is None:
            gain = [
                question.rough_score(x, candidates.take(own[start : start + _BLOCK]), targets)
                for start in range(0, len(own), _BLOCK)
            ]
            best = own[np.argsort(-np.concatenate(gain), kind="stable")]
            chosen = np.union1d(random, best[: max(N_BEST, wanted)])
        kept.append(chosen)
        is_random.append(np.isin(chosen, random))
    thinned = candidates.take(np.concatenate(kept))
    return replace(thinned, random=np.concatenate(is_random))


def _frame(
    pool: Any,
    model: MultiFidelityClassifier,
    candidates: Candidates,
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
