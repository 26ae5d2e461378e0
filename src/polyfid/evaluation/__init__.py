"""Do the cheaper labels help? Cross-validation on trusted rows, beside baselines.

>>> from polyfid.evaluation import evaluate
"""

from polyfid.evaluation.compare import METHODS, evaluate
from polyfid.evaluation.result import SCORES, Estimate, Evaluation, Score

__all__ = ["METHODS", "SCORES", "Estimate", "Evaluation", "Score", "evaluate"]
