"""The options that several verbs share: the fields of dataclasses, which verbs take whole."""

# ruff: noqa: RUF009  (the calls in the dataclasses make fields)

from __future__ import annotations

import codecs
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Annotated, Any, Literal

import typer

from polyfid.cli.config import split

Text = str | None


def _option(
    panel: str, help: str, *names: str, default: Any = None, shown: str | bool = True, **more: Any
) -> Any:
    """A field that is an option; ``shown`` says in words what happens without it."""
    option = typer.Option(*names, help=help, show_default=shown, rich_help_panel=panel, **more)
    return field(default=default, metadata={"option": option})


_tables, _crowd = partial(_option, "Tables"), partial(_option, "Crowd tables and Label Studio")
_model, _many = partial(_option, "Model"), partial(_option, "Many rows")
_costs = partial(_option, "Costs")
running = partial(_option, "Running")


def out_option(help: str) -> Any:
    """The option ``--out``."""
    return typer.Option("--out", "-o", metavar="FILE", help=help)


#: The option ``--seed`` of verbs whose only random numbers are draws between tied answers.
Seed = Annotated[int, typer.Option(min=0, help="Seed of the draws between tied answers.")]
#: The option ``--embeddings`` of verbs that take rows to predict.
EmbeddingsOfRows = Annotated[
    str | None,
    typer.Option(
        "--embeddings",
        metavar="FILE",
        help="Embeddings of the rows, for a model that was fitted to some: .npy in the order of "
        "the rows, or CSV or Parquet with a column of ids.",
    ),
]


@dataclass(frozen=True)
class Tables:
    """Tables with labelled rows, and the meaning of their columns."""

    files: list[str] | None = field(
        default=None,
        metadata={
            "option": typer.Argument(
                metavar="FILES",
                help="Tables with features, label and fidelity: CSV (also .gz), Parquet, a JSON "
                "export of Label Studio, or - for standard input.",
                show_default=False,
            )
        },
    )
    level: list[str] | None = _tables(
        "One table per level, least trusted first: --level crowd=a.csv --level expert=b.csv",
        metavar="NAME=FILE",
    )
    target: Text = _tables("Column of the labels.", shown="label")
    fidelity: Text = _tables("Column of the levels of trust.", shown="fidelity")
    value: list[str] | None = _tables(
        "Column that holds the numbers of a level, whose rows then need no label: --value "
        "simulation=deflection. Can be repeated.",
        metavar="LEVEL=COLUMN",
    )
    id: Text = _tables("Column with names of the rows.", shown="id, if present")
    weight: Text = _tables("Column of weights; 2 counts twice.", shown="weight, if present")
    audit: Text = _tables(
        "Column that marks (1, 0) rows which were drawn at random. If trusted rows are marked, "
        "only those are scored.",
        shown="audit, if present",
    )
    levels: Text = _tables(
        "Names of the levels, least trusted first. Quote a name that has a comma.",
        shown="the order of --level, or of numbers",
        metavar="LOW,…,HIGH",
    )
    features: Text = _tables(
        "Columns to learn from. * stands for any letters: 'lsa*'.",
        shown="all other columns",
        metavar="A,B,…",
    )
    exclude: Text = _tables("Columns to leave out; * as above.", shown="none", metavar="A,B,…")
    categorical: Text = _tables(
        "Columns of numbers that are categories; * as above.",
        shown="columns of text only",
        metavar="A,B,…",
    )
    text: list[str] | None = _tables(
        "Columns of free text, which become numbers by their words; * as above. Can be repeated.",
        metavar="A,B,…",
    )
    embeddings: Text = _tables(
        "Numbers that another program made of images, sound or texts, as further features: .npy "
        "with one row per row of the tables (of the items, of the tasks) in their order, or CSV or "
        "Parquet with a column of ids.",
        metavar="FILE",
    )
    missing: Literal["error", "median", "indicator"] = _tables(
        "Missing values. error: refuse them. median: replace them. indicator: also mark them.",
        default="error",
    )


@dataclass(frozen=True)
class TextFormat:
    """The format of text files, where it should not be detected."""

    delimiter: Text = _tables("Character between cells, or the word tab.", shown="detected")
    decimal: Literal[".", ","] | None = _tables("Decimal mark.", shown="detected")
    encoding: Text = _tables("Encoding of text files.", shown="UTF-8")

    @property
    def csv(self) -> dict[str, Any]:
        """The options that were given, as arguments of `polyfid.tables.read_table`."""
        given = {name: getattr(self, name) for name in ("delimiter", "decimal", "encoding")}
        given = {name: value for name, value in given.items() if value is not None}
        if self.delimiter in {"tab", "\\t"}:
            given["delimiter"] = "\t"
        if len(given.get("delimiter", ",")) != 1:
            raise typer.BadParameter(
                f"must be one character, or tab; got {self.delimiter!r}", param_hint="--delimiter"
            )
        try:
            codecs.lookup(given.get("encoding", "utf-8"))
        except LookupError:
            raise typer.BadParameter(
                f"there is no encoding {self.encoding!r}; common ones are utf-8, cp1252, utf-16",
                param_hint="--encoding",
            ) from None
        return given


@dataclass(frozen=True)
class Sources(TextFormat, Tables):
    """All that labelled rows can be read from: tables, or the answers of a crowd."""

    items: Text = _crowd("Table of items with their features.", metavar="FILE")
    answers: Text = _crowd(
        "Table of answers: columns task, worker, label, or one column per worker.", metavar="FILE"
    )
    gold: Text = _crowd("Table of trusted labels (columns task, label).", metavar="FILE")
    crowd: Literal["answer", "majority", "skill"] | None = _crowd(
        "How answers become rows. answer: one row per answer. majority: one row per item. skill: "
        "one row per answer, and one level per group of annotators of similar skill.",
        shown="majority",
    )
    ties: Literal["draw", "split"] = _crowd(
        "Tied majorities: draw one label, or split the weight over a row per label.", default="draw"
    )
    groups: int = _crowd("Number of groups of annotators for --crowd skill.", default=2, min=1)
    aggregate: (
        Literal["majority", "dawid-skene", "one-coin-dawid-skene", "glad", "mace", "m-msr"] | None
    ) = _crowd("Aggregate the answers to one row per item; all but majority by crowd-kit.")
    task: Text = _crowd(
        "Column of answers and gold that names the item.", shown="task, item, …, whichever is there"
    )
    worker: Text = _crowd(
        "Column that names the annotator.", shown="worker, annotator, … if present"
    )
    form: Literal["long", "wide"] | None = _crowd("Form of the answers.", shown="detected")
    trusted: Text = _crowd(
        "Label Studio: trusted annotators, by id or e-mail address.", metavar="A,B,…"
    )
    from_name: Text = _crowd("Label Studio: name of the Choices tag.", shown="the only one")


@dataclass(frozen=True)
class Fitting:
    """How a model is fitted."""

    kernel: Literal["auto", "rbf", "ard", "matern"] = _model(
        "auto averages several kernels; one named kernel is many times faster.", default="auto"
    )
    mean: Literal["auto", "boosted", "none"] = _model(
        "Boosted trees that learn from large levels first. auto: where that is better.",
        default="auto",
    )
    inference: Literal["auto", "laplace", "ep", "variational"] = _model(
        "laplace is fastest; ep and variational give better probabilities.", default="auto"
    )
    noise: list[str] | None = _model(
        "Error variance of the numbers of a level (--value), in their unit squared: --noise "
        "simulation=0.1. Can be repeated.",
        shown="learnt",
        metavar="LEVEL=VARIANCE",
    )
    warp: bool = _model(
        "Numbers of levels may be skewed: learn to warp them.", "--warp", default=False
    )
    outliers: bool = _model(
        "A few numbers of levels may be far off. The structure is then not learnt.",
        "--outliers",
        default=False,
    )
    seed: int = running("Seed of all random numbers.", default=0, min=0, max=2**32 - 1)
    jobs: int | None = running("Number of processes.", shown="all cores; 1 for small tables", min=1)

    @property
    def variances(self) -> dict[str, float] | None:
        """The parameter ``noise`` of the classifier."""
        given = {}
        for pair in self.noise or ():
            level, _, text = pair.rpartition("=")
            try:
                given[level.strip()] = variance = float(text)
            except ValueError:
                variance = 0.0
            if not (level and 0.0 < variance < inf):
                raise typer.BadParameter(
                    "must be LEVEL=VARIANCE with a variance above 0, as in --noise simulation=0.1; "
                    f"got {pair!r}",
                    param_hint="--noise",
                )
        return given or None


@dataclass(frozen=True)
class Deciding:
    """How costs turn probabilities into decisions."""

    costs: Text = _costs(
        "What wrong decisions cost: fp=1,fn=20 for two classes, the second of which is positive; "
        "'TRUE>PREDICTED=COST,…' for any; or a table, FILE.csv, with a row per true class and a "
        "column per decision. Mistakes that are not named cost 1.",
        shown="the most probable class is predicted",
        metavar="COSTS",
    )
    cost_abstain: float | None = _costs(
        "What it costs to decide nothing. Where any decision is expected to cost more, the "
        "predicted label is empty.",
        shown="always decide",
        min=0.0,
        metavar="COST",
    )


@dataclass(frozen=True)
class Blocks:
    """How rows are read that may be more than memory holds."""

    block: int = _many("Rows per block.", default=50_000, min=1)
    dask: Text = _many("Address of the scheduler of a Dask cluster to use.", metavar="ADDRESS")


@dataclass(frozen=True)
class ManyRows(Blocks):
    """How a model is fitted to many rows."""

    in_blocks: bool | None = _many(
        "Read tables in blocks, or at once.", "--in-blocks/--in-memory", shown="by their size"
    )
    spool: Text = _many(
        "Folder for rows during a fit in blocks.", shown="that of temporary files", metavar="FOLDER"
    )
    checkpoint: Text = _many(
        "Save the state after every pass of a fit in blocks; the same command resumes from it. "
        "Removed at the end.",
        metavar="FILE",
    )
    inducing: Text = _many(
        "Inducing points: auto, none for exact inference, a number, or one per latent process.",
        shown="auto",
        metavar="N[,N…]",
    )
    refine: bool = _many(
        "Optimise inducing points, or keep them at rows.", "--refine/--no-refine", default=True
    )
    tuning: Text = _many(
        "Number of rows to tune hyper-parameters on, in all or per level: crowd=10000,expert=5000.",
        shown="3000, or 20000 with inducing points",
        metavar="N or LEVEL=N,…",
    )

    @property
    def n_inducing(self) -> str | int | tuple[int, ...] | None:
        """The parameter ``n_inducing`` of the classifier."""
        words = split(self.inducing or "auto")
        if words in (("auto",), ("none",)):
            return "auto" if words == ("auto",) else None
        if not all(word.isdecimal() and int(word) > 0 for word in words):
            raise typer.BadParameter(
                "must be auto, none, an integer from 1, or one per latent process; got "
                f"{self.inducing!r}",
                param_hint="--inducing",
            )
        numbers = tuple(map(int, words))
        return numbers[0] if len(numbers) == 1 else numbers

    @property
    def n_tuning(self) -> str | int | dict[str, int]:
        """The parameter ``n_tuning`` of the classifier."""
        if self.tuning is None:
            return "auto"
        words = [word.rpartition("=") for word in split(self.tuning)]
        counts = {level.strip(): number.strip() for level, _, number in words}
        valid = all(map(str.isdecimal, counts.values())) and len(counts) == len(words)
        if valid and "" not in counts:
            return {level: int(number) for level, number in counts.items()}
        if valid and len(words) == 1 and int(counts[""]) > 0:
            return int(counts[""])
        raise typer.BadParameter(
            f"must be an integer from 1, or LEVEL=N for some levels; got {self.tuning!r}",
            param_hint="--tuning",
        )
