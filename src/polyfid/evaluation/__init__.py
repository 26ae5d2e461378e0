"""Do the cheaper labels help? Cross-validation on trusted rows, beside baselines.

>>> from polyfid.evaluation import evaluate
"""

from polyfid.evaluation.compare import METHODS, evaluate
from polyfid.evaluation.result import SCORES, Evaluation, Score
from polyfid.evaluation.verdict import Agreement, Estimate, Verdict

__all__ = [
    "METHODS",
    "SCORES",
    "Agreement",
    "Estimate",
    "Evaluation",
    "Score",
    "Verdict",
    "evaluate",
]
