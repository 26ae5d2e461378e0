"""Approximate inference: one loop over Gaussian sites, and the schemes that it runs."""

from typing import Any

from polyfid.inference.ep import EP
from polyfid.inference.fixed_point import Fixed, run
from polyfid.inference.laplace import Laplace
from polyfid.inference.loop import Report
from polyfid.inference.scheme import Scheme
from polyfid.inference.variational import Variational

SCHEMES: dict[str, Scheme[Any]] = {"laplace": Laplace(), "ep": EP(), "variational": Variational()}

__all__ = ["EP", "SCHEMES", "Fixed", "Laplace", "Report", "Scheme", "Variational", "run"]
