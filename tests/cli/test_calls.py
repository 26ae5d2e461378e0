"""Calls that make no sense: exit code 2, a message that says why, and nothing is written."""

import pytest

CALLS = [
    # Which rows?
    ("check", "in one way"),
    ("check tidy.csv --level a=crowd.csv", "in one way"),
    ("check .", "Is a directory"),
    ("check --level crowd.csv", "NAME=FILE"),
    ("check --level a=crowd.csv --level a=expert.csv", "twice"),
    ("check --level a=- --level b=-", "only once"),
    ("check --level a=crowd.csv --levels b", "--levels names b"),
    ("check tidy.csv --target fidelity", "both column 'fidelity'"),
    ("check tidy.csv --features heat,heat", "distinct"),
    ("check tidy.csv --encoding klingon", "klingon"),
    ("check tidy.csv --delimiter ;;", "one character"),
    ("check --items crowd.csv", "--answers"),
    ("check a.json b.csv", "only file"),
    # Answers of a crowd
    ("check --items a --answers b --crowd majority --aggregate glad", "leave one out"),
    ("check --items a --answers b --fidelity f", "--fidelity is a column of tidy tables"),
    # Fits
    ("fit tidy.csv -o -", "cannot go to standard output"),
    ("fit tidy.csv -o no/such/m.polyfid", "no folder no/such"),
    ("fit tidy.csv -o .", "is a folder"),
    ("fit tidy.csv -o tidy.csv", "would be replaced"),
    ("fit tidy.csv --kernel round", "--kernel"),
    ("fit tidy.csv --inducing 0", "an integer from 1"),
    *((f"fit tidy.csv --tuning {n}", "--tuning") for n in ("0", "few", "-5", "3,4", "crowd=")),
    ("fit tidy.csv --tuning crowd=2,crowd=3", "an integer from 1, or LEVEL=N"),
    ("fit tidy.csv --in-memory --checkpoint c.polyfid", "leave --in-memory out"),
    ("fit --items new.csv --answers crowd.csv --in-blocks", "polyfid convert"),
    # Predictions
    ("predict model.polyfid new.csv --json", "cannot both go to standard output"),
    ("predict model.polyfid new.csv -o model.polyfid", "would be replaced"),
    ("predict model.polyfid new.csv -o out.xlsx", "must end in"),
    ("predict model.polyfid new.csv --fidelity oracle", "crowd, expert"),
    ("inspect nowhere.polyfid", "No such file"),
    # Evaluations and reports
    ("report tidy.csv --folds 1", "0, or 2 or more"),
    ("report model.polyfid --kernel rbf", "leave out --kernel"),
    ("report model.polyfid tidy.csv", "the only file"),
    # Other formats
    ("convert tidy.csv -o - --json", "cannot both"),
    ("convert tidy.csv -o - --to levels", "cannot go to standard output"),
    ("convert tidy.csv new.csv -o x.csv --to table", "one file"),
    ("convert new.csv --to labelstudio -o p.json", "--from-name"),
    ("convert new.csv --to labelstudio --from-name a --to-name b -o p.csv", ".json"),
]


@pytest.mark.parametrize(("call", "words"), CALLS)
def test_refused(polyfid, folder, not_drawn, call, words):
    before = {path: path.read_bytes() for path in folder.iterdir()}
    result = polyfid(call, code=2)
    assert words in " ".join(result.stderr.replace("│", " ").split())
    assert result.stdout == ""
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("verb", ["fit tidy.csv -o m.polyfid", "predict model.polyfid new.csv"])
def test_a_cluster_that_does_not_answer(polyfid, folder, monkeypatch, verb):
    pytest.importorskip("distributed")
    monkeypatch.setattr("polyfid.cli.sources.TIMEOUT", 0.3)
    said = polyfid.refusal(f"{verb} --dask tcp://127.0.0.1:9")
    assert "no Dask scheduler with workers answers at tcp://127.0.0.1:9 within 0.3 s" in said
    assert not (folder / "m.polyfid").exists()
