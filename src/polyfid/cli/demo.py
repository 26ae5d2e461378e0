"""``polyfid demo``: the main job on built-in data, end to end."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from polyfid.cli.parameters import Fitting, Talk


def demo(
    fitting: Fitting,
    talk: Talk,
    out: Annotated[
        Path, typer.Option("--out", "-o", file_okay=False, help="A folder for all of it.")
    ] = Path("polyfid-demo"),
) -> None:
    """Tables, model, predictions and report of built-in data, in a folder."""
    from sklearn.metrics import log_loss, roc_auc_score

    from polyfid.cli.sources import classifier
    from polyfid.cli.talk import Speaker
    from polyfid.demo import N_CROWD, N_EXPERT, WRONG, tables
    from polyfid.evaluation import evaluate
    from polyfid.report import write_report
    from polyfid.tables import Roles, read_labelled, write_table
    from polyfid.tabular import TableModel

    speaker = Speaker(talk)
    speaker.say(
        f"Breast cancer: {N_EXPERT} labels of an expert and {N_CROWD} of a crowd, of which "
        f"{WRONG:.0%} are wrong.\n"
    )
    made = tables(fitting.seed)
    out.mkdir(parents=True, exist_ok=True)
    files = {name: out / f"{name}.csv" for name in ("crowd", "expert", "new")}
    for name, file in files.items():
        write_table(getattr(made, name), str(file))

    levels = {name: str(files[name]) for name in ("crowd", "expert")}
    table = read_labelled([], Roles(), level_files=levels)
    model = TableModel.fit(table, classifier(fitting))
    model.save(out / "model.polyfid")
    speaker.say(f"{model.classifier.report_}\n")

    predicted = model.predict(made.new)
    write_table(predicted, str(out / "predictions.csv"))
    benign = made.truth == "benign"
    auc = roc_auc_score(benign, predicted["p_benign"])
    loss = log_loss(benign, predicted["p_benign"])
    speaker.say(f"{len(benign)} new rows: ROC AUC {auc:.3f}, log-loss {loss:.3f}.\n")

    with speaker.progress("Evaluating") as step:
        found = evaluate(
            *model.training(),
            levels=table.levels,
            model=model.unfitted(),
            random_state=fitting.seed,
            n_jobs=fitting.jobs or -1,
            progress=step,
        )
    speaker.say(f"{found}\n")
    write_report(
        out / "report.html",
        model=model,
        table=table,
        evaluation=found,
        command="polyfid demo",
        seed=fitting.seed,
    )
    speaker.say(f"Written to {out}: {', '.join(sorted(p.name for p in out.iterdir()))}")
    speaker.say("The same by hand:")
    speaker.say(f"  polyfid fit --level crowd={files['crowd']} --level expert={files['expert']}")
    speaker.say(f"  polyfid predict model.polyfid {files['new']} -o predictions.csv")
    speaker.result(
        {
            "folder": str(out),
            "roc_auc": auc,
            "log_loss": loss,
            "evaluation": found.to_dict(),
        }
    )
