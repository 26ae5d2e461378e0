"""Structures of the latent covariance: what a set of Gaussian sites does to it."""

from polyfid.covariances.exact import ExactBelief, ExactCovariance, Start
from polyfid.covariances.sites import Sites

__all__ = ["ExactBelief", "ExactCovariance", "Sites", "Start"]
