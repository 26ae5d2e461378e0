"""Kernels that have a name of their own, in Python and on the command line."""

from __future__ import annotations

from polyfid.kernels.columnwise import RBF, Matern52
from polyfid.kernels.contract import Kernel
from polyfid.kernels.leaf import Constant

#: Besides "auto", which learns the structure.
NAMED: dict[str, Kernel] = {
    "rbf": Constant() * RBF(),
    "ard": Constant() * RBF(ard=True),
    "matern": Constant() * Matern52(),
}
