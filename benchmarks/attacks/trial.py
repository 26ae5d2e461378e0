"""The outcome of an attack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Trial:
    """One kind of attack: how often it was tried, how often the product held, what went wrong."""

    what: str
    expected: str
    tried: int = 0
    held: int = 0
    failures: Counter[str] = field(default_factory=Counter)

    def count(self, problem: str | None) -> None:
        """Count one attempt; ``problem`` says what went wrong, None that nothing did."""
        self.tried += 1
        self.held += problem is None
        if problem is not None:
            self.failures[problem[:200]] += 1


def attack(
    what: str,
    expected: str,
    cases: Iterable[Any],
    problem_of: Callable[[Any], str | None],
) -> Trial:
    """Try all cases; ``problem_of`` says what went wrong with one, and may raise."""
    trial = Trial(what, expected)
    for case in cases:
        try:
            problem = problem_of(case)
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
        trial.count(None if problem is None else f"{case}: {problem}")
    return trial
