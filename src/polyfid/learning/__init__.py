"""Hyper-parameters and structures: which ones, and how good they are."""
