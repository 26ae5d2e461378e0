"""``polyfid demo``: every step on built-in data."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from polyfid.cli.config import write_config
from polyfid.cli.console import Console
from polyfid.cli.evaluate import evaluate_table
from polyfid.cli.fit import fit_table
from polyfid.cli.options import Fitting, Output


def demo(
    context: typer.Context,
    fitting: Fitting,
    output: Output,
    out: Annotated[
        Path, typer.Option("--out", "-o", file_okay=False, help="The folder to write to.")
    ] = Path("polyfid-demo"),
) -> None:
    """Make tables, a model, predictions and a report from built-in data, in one folder."""
    from sklearn.metrics import log_loss, roc_auc_score

    from polyfid.datasets import N_EXPERIMENTS, N_SIMULATIONS, make_welding
    from polyfid.report import write_report
    from polyfid.tables import Roles, read_labelled, write_table

    console = Console(output)
    console.wrap(
        f"Which seams of a welding process are sound? There are {N_EXPERIMENTS} experiments, and "
        f"{N_SIMULATIONS} simulations that are sometimes wrong."
    )
    made = make_welding(fitting.seed)
    out.mkdir(parents=True, exist_ok=True)
    files = {name: out / f"{name}.csv" for name in ("simulation", "experiment", "new")}
    for name, file in files.items():
        write_table(getattr(made, name), file)

    levels = {name: str(files[name]) for name in ("simulation", "experiment")}
    with console.warnings() as notes:
        table = read_labelled([], Roles(), level_files=levels)
        with console.progress("Fitting") as bar:
            model = fit_table(table, fitting, "error", bar)
        model.save(out / "model.polyfid")
        console.say(f"\n{model.classifier.report_}\n")

        predicted = model.predict(made.new)
        write_table(predicted, out / "predictions.csv")
        sound = (made.truth == "sound").to_numpy()
        auc = roc_auc_score(sound, predicted["p_sound"])
        loss = log_loss(sound, predicted["p_sound"])
        console.say(
            f"Predictions of {len(sound)} new rows: ROC AUC {auc:.3f}, log-loss {loss:.3f}.\n"
        )
        with console.progress("Evaluating") as bar:
            result = evaluate_table(table, model.encoder, model.unfitted(), fitting, 5, bar)
    console.say(f"{result}\n")
    write_report(
        out / "report.html",
        model=model,
        table=table,
        evaluation=result,
        command=shlex.join(["polyfid", *sys.argv[1:]]),
        seed=fitting.seed,
        title="A demonstration: which seams are sound?",
        warnings=notes,
    )
    write_config(context, out / "report.html")
    console.say(f"Written to {out}: {', '.join(sorted(p.name for p in out.iterdir()))}")
    console.say("The same by hand:")
    for line in _by_hand(files, out):
        console.say(f"  {line}")
    console.result(
        {
            "folder": str(out),
            "roc_auc": auc,
            "log_loss": loss,
            "evaluation": result.to_dict(),
            "warnings": notes,
        }
    )


def _by_hand(files: dict[str, Path], out: Path) -> list[str]:
    """The commands that do the same one by one."""
    levels = [f"--level={name}={files[name]}" for name in ("simulation", "experiment")]
    model = str(out / "model.polyfid")
    new, predictions = str(files["new"]), str(out / "predictions.csv")
    return [
        shlex.join(["polyfid", "fit", *levels, "-o", model]),
        shlex.join(["polyfid", "predict", model, new, "-o", predictions]),
        shlex.join(["polyfid", "report", model, "-o", str(out / "report.html")]),
    ]
