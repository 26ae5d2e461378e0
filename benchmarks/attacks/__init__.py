"""Attacks on the product: each module tries one side of it and counts what held."""
