"""scikit-learn's own checks of an estimator, all of them."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from polyfid import MultiFidelityClassifier
from polyfid.kernels import RBF


@parametrize_with_checks(
    [
        MultiFidelityClassifier(),
        MultiFidelityClassifier.paper(),
        MultiFidelityClassifier(2.0 * RBF(), optimizer=None, inference="ep"),
        MultiFidelityClassifier(2.0 * RBF(), optimizer=None, inference="variational"),
    ]
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)
