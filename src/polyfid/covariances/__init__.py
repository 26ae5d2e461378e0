"""Structures of the latent covariance: what a set of Gaussian sites does to it."""

from polyfid.covariances.exact import ExactBelief, ExactCovariance, Start
from polyfid.covariances.inducing import Basis, Inducing, MovableBasis
from polyfid.covariances.sites import Sites

__all__ = ["Basis", "ExactBelief", "ExactCovariance", "Inducing", "MovableBasis", "Sites", "Start"]
