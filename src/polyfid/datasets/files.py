"""Where the files of data sets are, and how they are read."""

from __future__ import annotations

import csv
import gzip
import os
import zlib
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyfid.arrays import Array

Home = str | os.PathLike[str] | None

ENDINGS = (".csv.gz", ".csv", ".tsv.gz", ".tsv")

# What upstream calls a file, where it is not the name here.
UPSTREAM_NAMES = {
    "crowd/music_genre_items": "music_genre_gold",
    "crowd/music_genre_answers": "music_genre_mturk",
}

# How to come by the files that cannot be fetched.
SOURCES = {
    "music_genre": (
        "; music_genre_gold.csv, music_genre_mturk.csv and music_genre_test.csv are in data/Music "
        "of https://github.com/shahanaibrahimosu/end-to-end-crowdsourcing"
    ),
    "sentiment_polarity": (
        ". The original features are not public: the directory has to have an LSA of the sentences"
    ),
}


class DatasetNotFound(FileNotFoundError):  # noqa: N818
    """A file of a data set is in no place where it was looked for.

    Examples
    --------
    >>> from polyfid.datasets import DatasetNotFound, load_artificial
    >>> try:
    ...     load_artificial(0, data_home="no/where")
    ... except DatasetNotFound as error:
    ...     print(error)
    data_home must be a directory, got 'no/where', which is none; correct it, or leave it out...
    """


class Table(NamedTuple):
    """A text file of columns with a header."""

    path: Path
    separator: str
    names: list[str]
    lines: list[str]

    def column(self, *names: str) -> int:
        """Where the first of these columns that is there stands."""
        for name in names:
            if name in self.names:
                return self.names.index(name)
        raise ValueError(
            f"{self.path} has no column {' or '.join(names)}, only {', '.join(self.names[:5])}…; "
            "it is another file than the name says, get the right one"
        )

    def numbers(self, columns: Sequence[int]) -> Array:
        """The values of some columns (n, number of columns)."""
        try:
            return np.loadtxt(self.lines, delimiter=self.separator, usecols=columns, ndmin=2)
        except ValueError as error:
            raise ValueError(f"{self.path} is damaged, get it again: {error}") from None

    def strings(self, column: int) -> NDArray[np.str_]:
        """The values of one column (n,)."""
        # From the near end of the line, which may be long.
        if 2 * column < len(self.names):
            return np.array([line.split(self.separator, column + 1)[column] for line in self.lines])
        back = len(self.names) - column
        return np.array([line.rsplit(self.separator, back)[-back] for line in self.lines])


def read_table(name: str, data_home: Home) -> Table:
    """Find and read a file such as "pmlb/diabetes", in whichever form it is there."""
    path = _find(name, data_home)
    open_it = gzip.open if path.suffix == ".gz" else open
    try:
        with open_it(path, "rt", encoding="utf-8") as file:
            header, *lines = file.read().splitlines()
    except (EOFError, ValueError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path} is damaged, get it again: {error}") from None
    separator = "\t" if "\t" in header else ","
    return Table(path, separator, header.split(separator), lines)


def _find(name: str, data_home: Home) -> Path:
    """The file in the directory, else in the cache, else fetched into it."""
    home = named_directory(data_home)
    folder, base = name.split("/")
    if home is not None:
        for place in (home / folder, home):
            for stem in (base, UPSTREAM_NAMES.get(name, base)):
                for ending in ENDINGS:
                    path = place / (stem + ending)
                    if path.is_file():
                        return path
    looked = "no data directory is named" if home is None else f"it is not in {home}"
    problem = f"{name}.csv.gz was not found: {looked}"
    remedy = "Name a directory that has it with data_home or POLYFID_DATA"
    upstream = _upstream().get(name)
    if upstream is None:
        source = next((SOURCES[s] for s in SOURCES if base.startswith(s)), "")
        raise DatasetNotFound(
            f"{problem}, and there is no address to fetch it from. {remedy}{source}"
        )
    url, sha256 = upstream
    try:
        import pooch
    except ImportError:
        raise DatasetNotFound(
            f"{problem}, and pooch, which would fetch it, is not installed: pip install "
            f'"polyfid[experiments]". Or get {url} in another way. {remedy}'
        ) from None
    cache = Path(pooch.os_cache("polyfid")) / folder
    try:
        # Checks what is in the cache, too.
        return Path(pooch.retrieve(url, f"sha256:{sha256}", url.rpartition("/")[2], cache))
    except OSError as error:
        raise DatasetNotFound(
            f"{problem}, and {url} could not be fetched into {cache}. Try again later, or get it "
            f"in another way. {remedy}. The reason: {error}"
        ) from error


def named_directory(data_home: Home) -> Path | None:
    """The directory with data sets, if one is named."""
    what = "POLYFID_DATA" if data_home is None else "data_home"
    named = os.environ.get("POLYFID_DATA") if data_home is None else data_home
    if not named:
        return None
    home = Path(named).expanduser()
    if not home.is_dir():
        raise DatasetNotFound(
            f"{what} must be a directory, got {str(named)!r}, which is none; correct it, or leave "
            "it out to fetch what has a public address"
        )
    return home


def _upstream() -> dict[str, tuple[str, str]]:
    """Public address and sha256 of the files that have them."""
    with resources.files("polyfid.datasets").joinpath("upstream.csv").open() as lines:
        return {row["name"]: (row["url"], row["sha256"]) for row in csv.DictReader(lines)}
