"""Approximate inference: one loop over Gaussian sites, and the schemes that it runs."""

from polyfid.inference.fixed_point import Fixed, run
from polyfid.inference.loop import Report
from polyfid.inference.schemes import EP, SCHEMES, Laplace, Scheme, Variational

__all__ = ["EP", "SCHEMES", "Fixed", "Laplace", "Report", "Scheme", "Variational", "run"]
