"""Data sets of the paper, read from a directory or fetched, and samples from the model itself.

A loader looks in the directory that ``data_home`` or the environment variable ``POLYFID_DATA``
names, then in the cache of earlier downloads, then at the public address of the file, where it has
one. Reading needs numpy only, fetching needs pooch.
"""

from polyfid.datasets.cokriging import make_cokriging
from polyfid.datasets.files import DatasetNotFound
from polyfid.datasets.loaders import (
    available_artificial,
    load_artificial,
    load_music_genre,
    load_pmlb,
    load_sentiment_polarity,
)

__all__ = [
    "DatasetNotFound",
    "available_artificial",
    "load_artificial",
    "load_music_genre",
    "load_pmlb",
    "load_sentiment_polarity",
    "make_cokriging",
]
