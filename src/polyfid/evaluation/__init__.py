"""Do the cheaper labels help? Cross-validation on trusted rows, beside baselines.

And how good is a fitted model on other rows?

>>> from polyfid.evaluation import evaluate, score_model
"""

from polyfid.evaluation.compare import METHODS, evaluate
from polyfid.evaluation.fitted import MODEL_SCORES, ModelScores, score_model
from polyfid.evaluation.result import SCORES, Evaluation, Score
from polyfid.evaluation.verdict import Agreement, Estimate, Verdict

__all__ = [
    "METHODS",
    "MODEL_SCORES",
    "SCORES",
    "Agreement",
    "Estimate",
    "Evaluation",
    "ModelScores",
    "Score",
    "Verdict",
    "evaluate",
    "score_model",
]
