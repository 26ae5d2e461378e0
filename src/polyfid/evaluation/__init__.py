"""Do the cheaper labels help? Cross-validation on trusted rows, beside baselines.

>>> from polyfid.evaluation import evaluate
"""

from polyfid.evaluation.compare import METHODS, evaluate
from polyfid.evaluation.result import Estimate, Evaluation
from polyfid.evaluation.scores import SCORES, Score

__all__ = ["METHODS", "SCORES", "Estimate", "Evaluation", "Score", "evaluate"]
