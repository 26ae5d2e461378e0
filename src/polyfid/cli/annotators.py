"""The verb on people: ``polyfid annotators``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from polyfid.cli.console import Console, width
from polyfid.cli.options import Sources, out_option
from polyfid.cli.sources import ENDINGS, check_out, crowd_tables, inputs_of, is_crowd, tables_of

if TYPE_CHECKING:
    import pandas as pd


def annotators(
    context: typer.Context,
    sources: Sources,
    console: Console,
    out: Annotated[str | None, out_option("Also write the table to this file, or to -.")] = None,
) -> None:
    """Report on each annotator: agreement with trusted labels and others, and where errors gather.

    It takes crowd tables (--answers, and --gold and --items if there are any),
    an export of Label Studio, or tables with a column of annotators, whose top
    level is trusted. Intervals are of 95 %.
    """
    from polyfid.tables import write_table

    inputs = inputs_of(sources)
    if out is not None:
        check_out(out, inputs, ENDINGS, console)
    with console.warnings() as notes:
        table = _read(sources)
    classes = table.attrs["classes"]
    if out != "-":
        console.say("\n".join(_lines(table, classes)))
    found = {"annotators": table.to_dict("records"), "classes": classes, "warnings": notes}
    if out is None:
        console.result(found)
        return
    write_table(table, out)
    console.written(context, out, **found, out=out)


def _read(sources: Sources) -> pd.DataFrame:
    from polyfid import crowd
    from polyfid.tables import read_labelled

    if is_crowd(sources):
        answers, gold, items, columns = crowd_tables(sources)
        return crowd.annotators(answers, gold, items, **columns)
    files, roles, levels = tables_of(sources)
    table = read_labelled(files, roles, level_files=levels, **sources.csv)
    return crowd.annotators(*crowd.answers_of(table))


def _lines(table: pd.DataFrame, classes: list[object]) -> list[str]:
    """The table for people: shares in per cent, with their intervals."""
    from polyfid.text import aligned

    two = len(classes) == 2
    shares = ["sensitivity", "specificity"] if two else []
    rows: list[list[object]] = [
        ["annotator", "answers", "trusted", "agreement", *shares, "with majority"]
    ]
    for row in table.to_dict("records"):
        cells = [_share(row, name) for name in ("agreement_gold", *shares, "agreement_majority")]
        rows.append([row["worker"], row["n"], row["n_gold"], *cells])
    lines = aligned(rows)
    if two:
        negative, positive = classes
        lines += [
            "",
            f"Sensitivity is how often they say {positive!r} where that is the trusted label, "
            "specificity how",
            f"often they say {negative!r} where that is. Shares in per cent, with 95 % intervals.",
        ]
    else:
        by_class: list[list[object]] = [["right where trusted is", *classes]]
        for row in table.to_dict("records"):
            accuracy = [_percent(row[f"accuracy_{name}"]) for name in classes]
            by_class.append([row["worker"], *accuracy])
        shown = aligned(by_class)
        if max(map(len, shown)) > width():
            shown = ["  Accuracy by class does not fit here; -o FILE and --json have it."]
        lines += ["", *shown, "", "Shares in per cent, with 95 % intervals."]
    errs = zip(table["worker"], table.get("errs_most", []), strict=False)
    notes = [f"  - {worker} {text}" for worker, text in errs if text]
    return [*lines, "", "Where errors gather:", *notes] if notes else lines


def _share(row: dict[object, float], name: str) -> str:
    """A share with its interval, if it has one."""
    low, high = row.get(f"{name}_low"), row.get(f"{name}_high")
    text = _percent(row[name])
    if not text or low is None or high is None:
        return text
    return f"{text} ({_percent(low)} to {_percent(high)})"


def _percent(share: float) -> str:
    return "" if share != share else f"{100.0 * share:.0f}"  # NaN: of nothing
