"""Rows of results: what one holds, and the file they are kept in."""

from __future__ import annotations

import contextlib
import csv
import functools
import io
import json
import os
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import roc_auc_score

from polyfid.atomic import replacing

#: Rows of a side file besides rows.csv, by the file's name.
Files = Mapping[str, Sequence[Mapping[str, Any]]]

CLIP = 1e-15  # log-loss is finite for a method that is sure and wrong


class Key(NamedTuple):
    """What a row is about, as written in the file; no two rows share it."""

    experiment: str
    problem: str
    method: str
    mode: str
    noise: str
    seed: str
    setting: str


class Scores(NamedTuple):
    """How probabilities fare against true labels."""

    roc_auc: float
    log_loss: float
    brier: float
    accuracy: float

    @classmethod
    def of(cls, y: ArrayLike, proba: ArrayLike) -> Scores:
        """Scores of the probabilities of class 1 against labels 0 and 1.

        Examples
        --------
        >>> from polyfid.experiments.rows import Scores
        >>> Scores.of([0, 1, 1], [0.5, 0.5, 0.75]).roc_auc
        0.75
        """
        y, p = np.asarray(y, dtype=float), np.asarray(proba, dtype=float)
        if y.shape != p.shape or not np.isin(y, (0.0, 1.0)).all():
            raise ValueError(
                f"y must hold labels 0 and 1, one for each of the {len(p)} probabilities; got "
                f"{len(y)} labels with the values {np.unique(y)[:5].tolist()}"
            )
        if not ((p >= 0.0) & (p <= 1.0)).all():
            raise ValueError(
                f"proba must lie in [0, 1]; {int((~((p >= 0.0) & (p <= 1.0))).sum())} of "
                f"{len(p)} do not, or are not numbers"
            )
        sure = np.clip(p, CLIP, 1.0 - CLIP)
        return cls(
            float(roc_auc_score(y, p)),
            float(-np.mean(np.where(y == 1.0, np.log(sure), np.log1p(-sure)))),
            float(np.mean((p - y) ** 2)),
            float(np.mean((p > 0.5) == (y == 1.0))),
        )


def as_setting(**coordinates: Any) -> str:
    """Further coordinates of a row, as compact JSON; empty if there are none.

    Examples
    --------
    >>> from polyfid.experiments.rows import as_setting
    >>> as_setting(share=0.2, cost=1)
    '{"cost":1,"share":0.2}'
    >>> as_setting()
    ''
    """
    if not coordinates:
        return ""
    return json.dumps(coordinates, sort_keys=True, separators=(",", ":"))


@functools.cache
def versions() -> str:
    """Versions of what the figures depend on."""
    found = []
    for name in ("polyfid", "numpy", "scipy", "scikit-learn", "xgboost-cpu", "xgboost"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found.append(f"{name.removesuffix('-cpu')} {metadata.version(name)}")
    return "; ".join([*dict.fromkeys(found), f"python {platform.python_version()}"])


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of results: what was run, how it scored, how it went.

    Numbers that do not exist (the noise of a crowd, the rho of a logistic regression, the scores
    of what failed) are None, and empty in the file. ``setting`` is made by `as_setting`.

    Examples
    --------
    >>> from polyfid.experiments.rows import Row
    >>> row = Row(experiment="pmlb", problem="splice", method="gpc", mode="trusted", seed=0)
    >>> row.key.problem, row.roc_auc is None
    ('splice', True)
    """

    experiment: str
    column: str = ""
    problem: str
    method: str
    mode: str
    noise: float | None = None
    seed: int
    setting: str = ""
    n_trusted: int | None = None
    n_cheap: int | None = None
    roc_auc: float | None = None
    log_loss: float | None = None
    brier: float | None = None
    accuracy: float | None = None
    fit_seconds: float | None = None
    predict_seconds: float | None = None
    rho: float | None = None
    evidence: float | None = None
    converged: bool | None = None
    error: str = ""
    versions: str = ""

    @property
    def key(self) -> Key:
        """What the row is about."""
        return Key(*(_text(getattr(self, name)) for name in Key._fields))

    def as_text(self) -> dict[str, str]:
        """The row as the file has it."""
        return {name: _text(getattr(self, name)) for name in COLUMNS}


#: The header of rows.csv.
COLUMNS = tuple(field.name for field in fields(Row))


class Rows:
    """The rows in a directory: those that are there, and a way to add more.

    ``rows.csv`` has one line a row, written and flushed as soon as it is known. Whatever stops a
    run, what is finished stays: a last line that was cut short is dropped when the file is opened.
    Where two lines share a key, as after a failure was retried, the later one counts.

    Examples
    --------
    >>> import tempfile
    >>> from polyfid.experiments.rows import Row, Rows
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rows = Rows(folder)
    ...     row = Row(experiment="pmlb", problem="splice", method="gpc", mode="trusted", seed=0)
    ...     rows.append([row])
    ...     len(Rows(folder)), row.key in Rows(folder)
    (1, True)
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = Path(directory)
        self.path = self.directory / "rows.csv"
        self._rows: dict[Key, dict[str, str]] = {}
        self.repeats = False  #: whether lines of the file share a key
        self.directory.mkdir(parents=True, exist_ok=True)
        if self.path.exists():
            header, records, tidy = _read(self.path)
            if header is not None and tuple(header) != COLUMNS:
                raise ValueError(
                    f"{self.path} has the columns {header}, and rows of results have "
                    f"{list(COLUMNS)}; name another directory with --out"
                )
            for record in records:
                self._keep(record)
            if not tidy or self.repeats:
                self.tidy()

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[dict[str, str]]:
        return iter(list(self._rows.values()))

    def __contains__(self, key: Key) -> bool:
        return key in self._rows

    def failed(self, key: Key) -> bool:
        """Whether the row of that key is there and holds an error."""
        return key in self._rows and bool(self._rows[key]["error"])

    def count(self, key: Key) -> int:
        """How many sound rows share all of the key but the setting."""
        return sum(
            other[:-1] == key[:-1] and not record["error"] for other, record in self._rows.items()
        )

    def append(
        self, rows: Iterable[Row], files: Files | None = None, *, instead_of: Key | None = None
    ) -> None:
        """Add rows to rows.csv, and to side files first.

        A row in rows.csv therefore means that what belongs to it is complete. The first column of
        a side file says whose its rows are: those with a value that comes again are replaced. The
        row of the key ``instead_of``, an error of an earlier run, goes.
        """
        for name, records in (files or {}).items():
            self._append_aside(self.directory / name, records)
        texts = [row.as_text() for row in rows]
        _append(self.path, COLUMNS, texts)
        stale = None if instead_of is None else self._rows.pop(instead_of, None)
        for text in texts:
            self._keep(text)
        if stale is not None:
            self.tidy()

    def tidy(self) -> None:
        """Write rows.csv anew, one row a key."""
        _write(self.path, COLUMNS, list(self._rows.values()))
        self.repeats = False

    def _keep(self, record: dict[str, str]) -> None:
        key = Key(*(record[name] for name in Key._fields))
        self.repeats |= self._rows.pop(key, None) is not None  # the later one, in the later place
        self._rows[key] = record

    def _append_aside(self, path: Path, records: Sequence[Mapping[str, Any]]) -> None:
        texts = [{name: _text(value) for name, value in record.items()} for record in records]
        if not texts:
            return
        columns = tuple(texts[0])
        if not path.exists():
            _append(path, columns, texts)
            return
        header, there, tidy = _read(path)
        whose = {text[columns[0]] for text in texts}
        if tuple(header or ()) == columns:
            kept = [record for record in there if record[columns[0]] not in whose]
        else:
            kept = []  # of another version: nothing that could stand beside the new rows
        if tidy and kept == there:
            _append(path, columns, texts)
        else:
            _write(path, columns, [*kept, *texts])


def _text(value: Any) -> str:
    """A value as the file has it."""
    if value is None:
        return ""
    if isinstance(value, float | np.floating):
        return f"{value:.8g}"
    return " ".join(str(value).split())  # a row is one line


def _read(path: Path) -> tuple[list[str] | None, list[dict[str, str]], bool]:
    """Header, whole lines, and whether that is all of the file."""
    text = path.read_bytes().decode("utf-8", errors="replace")
    whole = text[: text.rfind("\n") + 1]
    lines = list(csv.reader(io.StringIO(whole, newline="")))
    if not lines:
        return None, [], not text
    header, body = lines[0], lines[1:]
    sound = [dict(zip(header, line, strict=True)) for line in body if len(line) == len(header)]
    return header, sound, whole == text and len(sound) == len(body)


def _append(path: Path, columns: Sequence[str], records: Sequence[Mapping[str, str]]) -> None:
    """Add lines in one go, with a header if the file is new."""
    new = not path.exists() or path.stat().st_size == 0
    with path.open("ab") as file:
        file.write(_lines(columns, records, header=new))
        file.flush()
        os.fsync(file.fileno())


def _write(path: Path, columns: Sequence[str], records: Sequence[Mapping[str, str]]) -> None:
    """Replace the file at once: there is never half of one."""
    with replacing(path) as file:
        file.write(_lines(columns, records, header=True))


def _lines(columns: Sequence[str], records: Sequence[Mapping[str, str]], *, header: bool) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    if header:
        writer.writeheader()
    writer.writerows(records)
    return text.getvalue().encode()
