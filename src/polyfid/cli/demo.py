"""``polyfid demo``: the main job on built-in data, end to end."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from polyfid.cli.config import write_config
from polyfid.cli.importing import importing
from polyfid.cli.parameters import Fitting, Talk


def demo(
    context: typer.Context,
    fitting: Fitting,
    talk: Talk,
    out: Annotated[
        Path, typer.Option("--out", "-o", file_okay=False, help="A folder for all of it.")
    ] = Path("polyfid-demo"),
) -> None:
    """Tables, model, predictions and report of built-in data, in a folder."""
    from sklearn.metrics import log_loss, roc_auc_score

    with importing():
        from polyfid.cli.fitting import fit_table
        from polyfid.cli.judging import judge
        from polyfid.cli.layout import compare
        from polyfid.cli.talk import Speaker
        from polyfid.datasets import N_EXPERIMENTS, N_SIMULATIONS, make_welding
        from polyfid.report import write_report
        from polyfid.tables import Roles, read_labelled, write_table

    speaker = Speaker(talk)
    speaker.wrapped(
        f"Which seams of a welding process are sound? {N_EXPERIMENTS} experiments say, and "
        f"{N_SIMULATIONS} simulations, which err."
    )
    made = make_welding(fitting.seed)
    out.mkdir(parents=True, exist_ok=True)
    files = {name: out / f"{name}.csv" for name in ("simulation", "experiment", "new")}
    for name, file in files.items():
        write_table(getattr(made, name), file)

    levels = {name: str(files[name]) for name in ("simulation", "experiment")}
    with speaker.warnings() as notes:
        table = read_labelled([], Roles(), level_files=levels)
        with speaker.progress("Fitting"):
            model = fit_table(table, fitting)
        model.save(out / "model.polyfid")
        speaker.say(f"\n{model.classifier.report_}\n")

        predicted = model.predict(made.new)
        write_table(predicted, out / "predictions.csv")
        sound = (made.truth == "sound").to_numpy()
        auc = roc_auc_score(sound, predicted["p_sound"])
        loss = log_loss(sound, predicted["p_sound"])
        speaker.say(f"{len(sound)} new rows: ROC AUC {auc:.3f}, log-loss {loss:.3f}.\n")

        with speaker.progress("Evaluating") as step:
            found = judge(table, model.recipe, model.unfitted(), fitting, 5, step)
    speaker.wrapped(found.sentence)
    speaker.say(f"\n{compare(found)}\n")
    write_report(
        out / "report.html",
        model=model,
        table=table,
        evaluation=found,
        command=shlex.join(["polyfid", *sys.argv[1:]]),
        seed=fitting.seed,
        title="A demonstration: which seams are sound?",
        warnings=notes,
    )
    write_config(context, out / "report.html")
    speaker.say(f"Written to {out}: {', '.join(sorted(p.name for p in out.iterdir()))}")
    speaker.say("The same by hand:")
    for line in _by_hand(files, out):
        speaker.say(f"  {line}")
    speaker.result(
        {
            "folder": str(out),
            "roc_auc": auc,
            "log_loss": loss,
            "evaluation": found.to_dict(),
            "warnings": notes,
        }
    )


def _by_hand(files: dict[str, Path], out: Path) -> list[str]:
    levels = [f"--level={name}={files[name]}" for name in ("simulation", "experiment")]
    model = str(out / "model.polyfid")
    new, predictions = str(files["new"]), str(out / "predictions.csv")
    return [
        shlex.join(["polyfid", "fit", *levels, "-o", model]),
        shlex.join(["polyfid", "predict", model, new, "-o", predictions]),
        shlex.join(["polyfid", "report", model, "-o", str(out / "report.html")]),
    ]
