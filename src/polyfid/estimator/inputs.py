"""The one place where X, y, fidelity, weights and annotators become rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, validate_data

from polyfid.arrays import Array, Indices, hash_rows
from polyfid.estimator.constraints import read_numeric
from polyfid.estimator.levels import (
    as_column,
    declared_order,
    encode_levels,
    is_missing,
    order_levels,
)
from polyfid.estimator.unknown_trust import unknown_trust
from polyfid.rows import Rows
from polyfid.rows.survey import Block, Levels
from polyfid.text import first_few
from polyfid.values import collected, is_frame

#: More repetitions of a row than this leave no digits for the other rows.
MAX_WEIGHT = 1e15


@dataclass(frozen=True)
class FitInfo:
    """What a fit knows of its rows, besides the models of them.

    Names of classes, levels and annotators are in the order of their numbers; ``counts``
    (n_levels, n_classes) are rows with labels; ``numbers`` are rows with numbers by level, of
    numeric levels, else None; ``plan`` says exact or sparse, and why; ``notes`` tell what is
    unusual. ``labelled`` are hashes of rows and their levels, None where rows came in blocks.
    """

    classes: NDArray[Any]
    levels: Levels
    annotators: NDArray[Any] | None
    counts: NDArray[np.intp]
    n_features: int
    feature_names: NDArray[Any] | None = None
    column: FidelityColumn | None = None
    plan: str = ""
    notes: tuple[str, ...] = ()
    labelled: NDArray[np.uint64] | None = None
    numbers: tuple[int | None, ...] = ()

    @property
    def numeric(self) -> tuple[int, ...]:
        """The levels that hold numbers."""
        return tuple(t for t, n in enumerate(self.numbers) if n is not None)

    @property
    def n_rows(self) -> Indices:
        """All rows by level, (n_levels,)."""
        rows = self.counts.sum(axis=1)
        for t in self.numeric:
            rows[t] += self.numbers[t] or 0
        return np.asarray(rows)

    @classmethod
    def of(
        cls,
        columns: Columns,
        classes: NDArray[Any],
        levels: Levels,
        counts: NDArray[np.intp],
        annotators: NDArray[Any] | None = None,
        column: FidelityColumn | None = None,
        numbers: tuple[int | None, ...] = (),
    ) -> FitInfo:
        """The info of rows that can be fitted: of two classes at least."""
        if len(classes) < 2:
            if len(classes) == 0:
                raise ValueError(
                    "y holds numbers only, and a classifier needs rows of at least two classes; "
                    "add labelled rows of a level that is not numeric"
                )
            raise ValueError(
                f"y holds one class only, {classes.tolist()[0]!r}, and a classifier needs at least "
                "two classes; add rows of another class"
            )
        names, notes = getattr(columns, "feature_names_in_", None), _notes(counts, levels, classes)
        n_features = columns.n_features_in_
        info = cls(classes, levels, annotators, counts, n_features, names, column, notes=notes)
        return replace(info, numbers=numbers)


def _notes(counts: NDArray[np.intp], levels: Levels, classes: NDArray[Any]) -> tuple[str, ...]:
    """What is unusual about the numbers of rows of each level and class."""
    top, missing = levels[-1], [str(name) for name in classes[counts[-1] == 0]]
    if len(missing) == len(classes):
        return (
            f"there are no rows at the top level {top!r}: its predictions follow from the lower "
            "levels and from what is assumed about the link between them",
        )
    if len(levels) == 1 or not missing:
        return ()
    return (
        f"the top level {top!r} has no row of class {', '.join(missing)}; what is known of it "
        "comes from lower levels",
    )


class Columns(BaseEstimator):
    """The number and names of the features, for reading rows before anything is fitted."""

    n_features_in_: int


def read_rows(
    X: Any,
    y: Any,
    fidelity: Any = None,
    sample_weight: Any = None,
    annotator: Any = None,
    *,
    levels: Any = None,
    fidelity_feature: int | str | None = None,
    numeric_levels: Any = None,
) -> tuple[Rows, FitInfo]:
    """Check the arguments of a fit and turn them into numbers; rows of weight zero are left out."""
    X, fidelity, column = split_fidelity(as_table(X), fidelity, fidelity_feature)
    columns = Columns()
    block = _read(columns, levels, 0, X, y, fidelity, numeric_levels, reset=True)
    weight = read_weights(sample_weight, len(block.x))
    annotators, group = read_annotators(annotator, len(block.x))
    there = weight > 0.0
    level, value = block.level[there], None if block.value is None else block.value[there]
    numeric = read_numeric(numeric_levels, block.levels)
    labelled = ~np.isin(level, numeric)
    classes, code = np.unique(block.labels(there), return_inverse=True)
    codes = np.full(len(level), -1, dtype=np.intp)
    codes[labelled] = code
    counts = np.zeros((len(block.levels), len(classes)), dtype=np.intp)
    np.add.at(counts, (level[labelled], code), 1)
    numbers = numbers_by_level(np.bincount(level, minlength=len(block.levels)), numeric)
    info = FitInfo.of(columns, classes, block.levels, counts, annotators, column, numbers)
    info = replace(info, labelled=np.unique(hash_pairs(block.x[there], level)))
    unknown = unknown_trust(fidelity, len(block.x), block.levels)
    if unknown is not None:
        info = replace(info, notes=(unknown, *info.notes))
    return Rows.of(block.x[there], level, codes, weight[there], group[there], value), info


def numbers_by_level(rows: Indices, numeric: Sequence[int]) -> tuple[int | None, ...]:
    """Of rows by level those of numeric levels, None for others; empty if none is numeric."""
    if not numeric:
        return ()
    return tuple(n if t in numeric else None for t, n in enumerate(rows.tolist()))


def hash_pairs(x: Array, level: Indices) -> NDArray[np.uint64]:
    """A number per pair of a row and its level (n,), the same for equal pairs."""
    return hash_rows(np.column_stack([x, level]))


def read_block(
    columns: Columns,
    levels: Levels | None,
    number: int,
    block: Sequence[Any],
    reset: bool = False,
    numeric_levels: Any = None,
) -> Block | None:
    """Check X, y and perhaps fidelity and weights of a block; None if it has no rows.

    ``reset`` makes its features those of ``columns``.
    """
    X, y, fidelity, weight = (*block, None, None)[:4]
    if len(y) == 0:
        return None
    checked = _read(columns, levels, number, X, y, fidelity, numeric_levels, reset, is_part=True)
    n = len(checked.x)
    if np.ndim(weight) == 1 and len(weight) == n and not np.any(weight):
        return replace(checked, weight=np.zeros(n))  # unlike all rows of a fit, they may be absent
    return replace(checked, weight=read_weights(weight, n))


def _read(
    columns: Columns,
    given: Any,
    number: int,
    X: Any,
    y: Any,
    fidelity: Any,
    numeric_levels: Any,
    reset: bool,
    is_part: bool = False,
) -> Block:
    """Features, labels and levels, whether of a block (``is_part``) or of all rows."""
    x = read_features(columns, X, reset=reset)
    n = len(x)
    if numeric_levels is None:
        labels, value = read_labels(y, n), None
        names, level = read_levels(given, fidelity, n, is_part)
    else:
        names, level = read_levels(given, fidelity, n, is_part)
        there = [name for name in numeric_levels if name in names] if is_part else numeric_levels
        numeric = [names.index(t) for t in there] if is_part else read_numeric(there, names)
        labels, value = read_targets(y, level, names, numeric)
    ordered = given is None and declared_order(fidelity) is not None
    own = Block(number, x, labels, level, names, np.ones(n), fidelity is not None, ordered)
    return replace(own, value=value)


def read_targets(
    y: Any, level: Indices, levels: Levels, numeric: Sequence[int]
) -> tuple[NDArray[Any], Array]:
    """Classes of rows (objects, None where there is a number) and numbers (NaN where there is not).

    Rows of the ``numeric`` levels have numbers.
    """
    if y is None:
        raise ValueError(
            "the model requires y to be passed, but the target y is None; pass one class or number "
            "per row"
        )
    refuse_masked("y", y)
    column = y if isinstance(y, list | tuple) else np.asarray(y)
    check_rows("y", column, len(level))
    if np.ndim(column) != 1:
        raise ValueError(f"y must be one-dimensional, got shape {np.shape(column)}")
    entries = np.empty(len(level), dtype=object)
    entries[:] = column if isinstance(column, list | tuple) else column.tolist()
    is_number = np.isin(level, numeric)
    value = np.full(len(level), np.nan)
    with suppress(TypeError, ValueError):  # text too: clusters turn columns of both kinds into it
        value[is_number] = entries[is_number].astype(float)
    for row in np.flatnonzero(is_number & ~np.isfinite(value)):
        with suppress(TypeError, ValueError):
            value[row] = float(entries[row])
        if not np.isfinite(value[row]):
            raise ValueError(
                f"y must hold a finite number in every row of level {levels[level[row]]!r}, which "
                f"is numeric; got {entries[row]!r} in row {row}. Correct it, or drop the row"
            )
    labels = np.full(len(level), None, dtype=object)
    if not is_number.all():
        own = [v.item() if isinstance(v, np.generic) else v for v in entries[~is_number]]
        labels[~is_number] = read_labels(own, len(own)).tolist()
    return labels, value


def read_features(estimator: Any, X: Any, reset: bool) -> Array:
    """Features as an array of finite numbers, checked against those of a fitted estimator.

    ``reset`` makes their number and names the estimator's instead.
    """
    X = _dense_columns(as_table(X))
    refuse_other_than_numbers(X)
    refuse_no_rows(X)
    if X.shape[1] == 0:
        raise ValueError(
            f"X has 0 feature(s) (shape={tuple(X.shape)}) while a minimum of 1 is required; "
            "pass at least one column"
        )
    try:
        x = validate_data(estimator, X, reset=reset, dtype=np.float64, ensure_all_finite=False)
    except TypeError as error:
        if "float() argument" not in str(error):
            raise  # which says it of X
        raise TypeError(f"X must hold numbers only: {error}; encode or drop the others") from error
    except OverflowError as error:
        raise ValueError(
            f"X holds numbers that float64 cannot hold ({error}); divide them, or take logarithms"
        ) from error
    bad = ~np.isfinite(x)
    if bad.any():
        names = getattr(estimator, "feature_names_in_", np.arange(x.shape[1]))
        kind = "NaN" if np.isnan(x).any() else "infinity (inf)"
        columns = [str(c) for c in np.asarray(names)[bad.any(axis=0)][:5]]
        raise ValueError(
            f"Input X contains {kind}, in column(s) {', '.join(columns)}; all features must be "
            "finite. Impute first, for instance with sklearn.impute.SimpleImputer in a "
            "Pipeline, or drop the rows"
        )
    return np.asarray(x)


def read_labels(y: Any, n: int) -> NDArray[Any]:
    """Classes of n rows."""
    if y is None:
        raise ValueError(
            "the model requires y to be passed, but the target y is None; pass one class per row"
        )
    refuse_masked("y", y)
    labels = np.asarray(y)
    if labels.dtype.kind == "O" and any(map(is_missing, labels.ravel())):
        raise ValueError("y has missing values; give every row a class, or drop the rows")
    if isinstance(y, list | tuple) and labels.dtype.kind in "US":
        kinds = {type(label).__name__ for label in y if not isinstance(label, str | bytes)}
        if kinds and labels.ndim == 1:  # numpy would turn numbers into text
            raise ValueError(
                f"y mixes text with values of type {', '.join(sorted(kinds))}; name all classes "
                "alike, such as by strings"
            )
    if labels.dtype.kind == "O" and all(isinstance(v, bool | int | float) for v in labels.ravel()):
        labels = np.array(labels.tolist())  # numbers, which an array of objects hides
    labels = column_or_1d(labels, warn=True)
    check_rows("y", labels, n)
    assert_all_finite(labels, input_name="y")
    check_classification_targets(labels)
    return labels


def read_levels(
    given: Any, fidelity: Any, n: int, is_part: bool = False
) -> tuple[Levels, NDArray[np.intp]]:
    """Names of the levels in their order, and the level of each of n rows; see `order_levels`."""
    if fidelity is None:
        names = (0,) if given is None else order_levels((), given)
        return names, np.full(n, len(names) - 1, dtype=np.intp)
    refuse_masked("fidelity", fidelity)
    if np.ndim(fidelity):  # anything else is refused with the reason
        check_rows("fidelity", fidelity, n)
    names = order_levels(fidelity, given, is_part)
    return names, encode_levels(fidelity, names)


def read_annotators(annotator: Any, n: int) -> tuple[NDArray[Any] | None, NDArray[np.intp]]:
    """Names of the annotators and the number of each row's one; -1 where nobody is named."""
    if annotator is None:
        return None, np.full(n, -1, dtype=np.intp)
    names, group = np.unique(as_column(annotator, "annotator"), return_inverse=True)
    check_rows("annotator", group, n)
    return names, np.asarray(group, dtype=np.intp)


def check_rows(name: str, values: object, n: int) -> None:
    """Raise ValueError if an argument does not have one entry per row."""
    length = len(values)  # type: ignore[arg-type]
    if length != n:
        raise ValueError(
            f"{name} has {length} entries and X has {n} rows; they must have equal length"
        )


def read_weights(sample_weight: Any, n: int) -> Array:
    """Weights of the rows (n,); one number is for all of them, None is 1."""
    if sample_weight is None:
        return np.ones(n)
    refuse_masked("sample_weight", sample_weight)
    weight = np.asarray(sample_weight)
    if weight.dtype.kind != "c":
        with suppress(TypeError, ValueError):
            weight = weight.astype(float)
    if weight.dtype.kind != "f" or weight.ndim > 1:
        raise ValueError(
            "sample_weight must be numbers, one-dimensional, one per row; got an array of type "
            f"{weight.dtype} and shape {weight.shape}"
        )
    weight = np.full(n, weight) if weight.ndim == 0 else weight
    check_rows("sample_weight", weight, n)
    if not np.isfinite(weight).all():
        raise ValueError(
            "sample_weight has missing or infinite values; give every row one, 0 to leave it out"
        )
    if (weight < 0.0).any():
        row = int(np.argmax(weight < 0.0))
        raise ValueError(
            f"sample_weight must not be negative, got {weight[row]:g} in row {row}; "
            "0 leaves a row out"
        )
    if weight.max() > MAX_WEIGHT:
        row = int(np.argmax(weight))
        raise ValueError(
            f"sample_weight must be at most {MAX_WEIGHT:g}, as it counts as repetitions of the "
            f"row, got {weight[row]:g} in row {row}; divide all weights by a number"
        )
    if not weight.any():
        raise ValueError(
            "sample_weight is zero in all rows, so that none is left; give some a weight above 0"
        )
    return weight


def point_ids(X: Any) -> NDArray[np.intp]:
    """Integers (n,) that are equal where the rows of X are: missing values equal each other."""
    if hasattr(X, "tocsr"):
        X = X.tocsr(copy=True)
        X.sum_duplicates()
        X.eliminate_zeros()
        X = X.tolil()
        keys: Iterable[Any] = zip(map(tuple, X.rows), map(tuple, X.data), strict=True)
    else:
        values = np.asarray(X)
        values = values[:, None] if values.ndim == 1 else values
        if values.dtype.kind in "biuf":
            values = values + 0.0  # -0.0 and 0.0 have different bytes
            values[np.isnan(values)] = np.nan  # so may two NaN
            keys = (row.tobytes() for row in values)
        else:
            keys = (tuple(map(_same_nan, row)) for row in values.tolist())
    ids: dict[Any, int] = {}
    return np.array([ids.setdefault(key, len(ids)) for key in keys], dtype=np.intp)


def _same_nan(value: Any) -> Any:
    """The value, or one and the same object for every NaN."""
    return np.nan if isinstance(value, float) and value != value else value


def as_table(X: Any) -> Any:
    """X with a shape of two dimensions and rows that can be selected."""
    if hasattr(X, "tocsr"):
        X = X.tocsr()
    elif not hasattr(X, "shape"):
        X = collected(X) if is_frame(X) else _as_array(X)
    refuse_masked("X", X)
    if repeated := [str(c) for c, n in Counter(_column_names(X)).items() if n > 1]:
        raise ValueError(
            f"X has several columns of the same name: {first_few(repeated, 5)}; rename them, or "
            "leave out repeats"
        )
    if len(X.shape) != 2:
        raise ValueError(
            f"X must have two dimensions, rows and features; got shape {tuple(X.shape)}. Reshape "
            "your data: array.reshape(-1, 1) if it is one feature, array.reshape(1, -1) if one row"
        )
    return X


def refuse_masked(name: str, values: Any) -> None:
    """Raise ValueError if an argument is a masked array with masked, that is missing, values."""
    # Not of other arrays with a mask: pandas' nullable ones have one too.
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise ValueError(
            f"{name} is a masked array with masked values, which are missing ones; fill them in "
            f"with {name}.filled(...), or drop the rows"
        )


def _column_names(X: Any) -> list[Any]:
    """Names of the columns of a data frame; of anything else none."""
    names = getattr(X, "column_names", None)  # a table of pyarrow, whose columns are data
    return names if isinstance(names, list) else list(getattr(X, "columns", ()))


def _as_array(X: Any) -> NDArray[Any]:
    """The array of a list of rows, or of what numpy can make one of."""
    try:
        array = np.asarray(X)
    except ValueError as error:
        raise ValueError(
            f"X must have as many features in every row as in the first; {error}"
        ) from error
    if array.dtype.kind == "O" and array.ndim == 0:
        raise ValueError(
            "X must be an array, a data frame or a list of rows, with two dimensions; got "
            f"{type(X).__name__}"
        )
    return array


def _dense_columns(X: Any) -> Any:
    """X, with pandas' sparse columns as usual ones."""
    if not hasattr(X, "dtypes"):
        return X
    pairs = zip(X.columns, list(X.dtypes), strict=True)
    kinds = {c: t.subtype for c, t in pairs if type(t).__name__ == "SparseDtype"}
    return X.astype(kinds) if kinds else X


def refuse_no_rows(X: Any) -> None:
    """Raise ValueError for an empty table."""
    if X.shape[0] == 0:
        raise ValueError("X has no rows (0 samples); at least one is needed")


def refuse_other_than_numbers(X: Any) -> None:
    """Raise ValueError that names the columns of a table without real numbers."""
    if np.iscomplexobj(X):
        raise ValueError("Complex data not supported: X must hold real numbers; split them")
    dtypes, columns = getattr(X, "dtypes", None), getattr(X, "columns", None)
    if dtypes is not None and columns is not None:
        # All but numbers and truth values of pandas (pyarrow's too) and polars.
        numeric = ("int", "uint", "float", "double", "bool", "decimal", "sparse")
        kinds = {str(c): str(t) for c, t in zip(columns, list(dtypes), strict=True)}
        bad = [f"{c} ({t})" for c, t in kinds.items() if not t.lower().startswith(numeric)]
    else:
        values = np.asarray(X)
        if values.dtype.kind in "mMV":
            raise ValueError(
                f"X must hold numbers, got an array of {values.dtype}; turn dates and times into "
                "numbers, such as days since a date"
            )
        if values.dtype.kind not in "OSU" or values.ndim != 2:
            return
        bad = [str(c) for c in range(values.shape[1]) if any(map(_is_text, values[:, c]))]
    if bad:
        raise ValueError(
            f"X has columns that are not numeric: {first_few(bad, 5)}. Encode them first, for "
            "instance with sklearn.preprocessing.OneHotEncoder, or with OrdinalEncoder and "
            "polyfid.kernels.Categorical on those columns; if they hold numbers, convert them "
            "with astype(float)"
        )


def _is_text(value: Any) -> bool:
    try:
        float(value) if isinstance(value, str | bytes) else None
    except ValueError:
        return True
    return False


@dataclass(frozen=True)
class FidelityColumn:
    """The column of X that holds the fidelity: its place, and its name in a data frame."""

    place: int
    name: Any

    @classmethod
    def find(cls, X: Any, column: int | str) -> FidelityColumn:
        """The column of this place or name."""
        names, n_columns = _column_names(X), X.shape[1]
        if column in names:
            return cls(names.index(column), column)
        if isinstance(column, int | np.integer) and -n_columns <= column < n_columns:
            place = int(column) % n_columns
            return cls(place, names[place] if names else None)
        there = f"columns {names}" if names else f"{n_columns} columns and no names"
        raise ValueError(
            f"fidelity_feature must be a column of X, got {column!r}, and X has {there}; pass the "
            "place or, for a data frame, the name of the column"
        )

    def split_if_there(self, X: Any, n_features: int) -> tuple[Any, Any]:
        """New rows without the column, and the column, or None if they come without it."""
        names = _column_names(X)
        if names and self.name is not None:
            return _split(X, names.index(self.name)) if self.name in names else (X, None)
        return _split(X, self.place) if X.shape[1] == n_features + 1 else (X, None)


def split_fidelity(
    X: Any, fidelity: Any, feature: int | str | None
) -> tuple[Any, Any, FidelityColumn | None]:
    """X, the fidelity of its rows, and the column of X that held it, if one did."""
    if feature is None:
        return X, fidelity, None
    if fidelity is not None:
        raise ValueError(
            f"fidelity was passed although fidelity_feature={feature!r} says that a column of X "
            "holds it; use one of the two"
        )
    column = FidelityColumn.find(X, feature)
    return *_split(X, column.place), column


def _split(X: Any, place: int) -> tuple[Any, Any]:
    others = np.delete(np.arange(X.shape[1]), place)
    rest = _safe_indexing(X, others, axis=1)
    if hasattr(X, "tocsr"):
        return rest, X[:, [place]].toarray()[:, 0]
    return rest, _safe_indexing(X, place, axis=1)
