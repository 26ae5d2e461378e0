"""Many rows: inference through inducing points, by passes over rows that need not be in memory."""

from polyfid.covariances import Basis, Inducing
from polyfid.sparse.belief import SparseBelief
from polyfid.sparse.evidence import GradientPass, MovableEvidence, SparseEvidence, ValuePass
from polyfid.sparse.gradient import GradientSums, GradientView, block_gradient
from polyfid.sparse.loop import SparseFixed, run
from polyfid.sparse.posterior import SparsePosterior
from polyfid.sparse.rows import MemoryRows, Rows, add_up
from polyfid.sparse.selection import choose
from polyfid.sparse.sums import Sums, View, block_sums

__all__ = [
    "Basis",
    "GradientPass",
    "GradientSums",
    "GradientView",
    "Inducing",
    "MemoryRows",
    "MovableEvidence",
    "Rows",
    "SparseBelief",
    "SparseEvidence",
    "SparseFixed",
    "SparsePosterior",
    "Sums",
    "ValuePass",
    "View",
    "add_up",
    "block_gradient",
    "block_sums",
    "choose",
    "run",
]
