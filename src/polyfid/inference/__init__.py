"""Approximate inference: one loop over Gaussian sites, and the schemes that it runs."""

from polyfid.inference.loop import Report
from polyfid.inference.schemes import EP, SCHEMES, Fixed, Laplace, Scheme, Variational, run

__all__ = ["EP", "SCHEMES", "Fixed", "Laplace", "Report", "Scheme", "Variational", "run"]
