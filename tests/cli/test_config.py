"""Options in a file, and the file that is written beside each output."""

import tomllib
from types import SimpleNamespace

import pytest
from typer.main import get_command

from polyfid.cli.app import app
from polyfid.cli.config import write_config

VERBS = ["demo", "check", "fit", "predict", "score", "evaluate", "report", "inspect", "convert"]


def test_round_trip(polyfid, folder):
    (folder / "deep").mkdir()
    polyfid(
        "fit --level crowd=crowd.csv --level expert=expert.csv --features heat,flow --kernel rbf "
        "--seed 3 -o deep/m.polyfid --json"
    )
    model, written = folder / "deep" / "m.polyfid", folder / "deep" / "m.polyfid.toml"
    first = tomllib.loads(written.read_text())
    assert first["command"] == "fit"
    assert first["level"] == ["crowd=crowd.csv", "expert=expert.csv"]
    assert (first["seed"], first["out"], first["features"]) == (3, "deep/m.polyfid", "heat,flow")
    assert not {"json", "quiet", "config"} & {*first}
    before = model.read_bytes()
    model.unlink()
    polyfid("fit --config deep/m.polyfid.toml")
    assert model.read_bytes() == before
    assert tomllib.loads(written.read_text()) == first


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ('files = ["tidy.csv"]\nlevels = ["expert", "crowd"]\njson = true', ["expert", "crowd"]),
        ('[level]\ncrowd = "crowd.csv"\n"a=b" = "expert.csv"', ["crowd", "a=b"]),
        ('files = "tidy.csv"\nlevels = "crowd,expert"', ["crowd", "expert"]),
        (
            'files = "tidy.csv"\nlevels = ["crowd", "expert"]\n[fit]\nkernel = "rbf"\n'
            "[evaluate]\nfolds = 3",
            ["crowd", "expert"],
        ),
    ],
)
def test_values_of_all_kinds(polyfid, folder, text, levels):
    (folder / "run.toml").write_text(text)
    assert polyfid.json("check --config run.toml")["levels"] == levels


def test_the_command_line_overrides_the_file(polyfid, folder):
    (folder / "run.toml").write_text('files = ["nowhere.csv"]\nlevels = "expert,crowd"\n')
    found = polyfid.json("check tidy.csv --config run.toml --levels crowd,expert")
    assert found["levels"] == ["crowd", "expert"]


def test_options_of_one_verb_and_files_of_another_one(polyfid, folder):
    (folder / "run.toml").write_text(
        'files = ["tidy.csv"]\nlevels = "crowd,expert"\n'
        '[fit]\nkernel = "rbf"\nno-rows = true\nout = "m.polyfid"\n'
    )
    polyfid("fit --config run.toml -q")
    assert tomllib.loads((folder / "m.polyfid.toml").read_text())["no_rows"] is True
    model = (folder / "m.polyfid").read_bytes()
    # The file of another verb gives the tables, but not the output.
    polyfid("convert --config m.polyfid.toml -o again.csv")
    assert polyfid.json("check --config m.polyfid.toml")["levels"] == ["crowd", "expert"]
    assert (folder / "m.polyfid").read_bytes() == model
    assert (folder / "again.csv").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"kernle = 'rbf'", "did you mean kernel?"),
        (b"kernel = {a = 1}", "one value"),
        (b"seed = 'x'", "seed"),
        (b"config = 'other.toml'", "has config"),
        (b"kernel = ", "is not TOML"),
        (b"\xff", "is not TOML"),
    ],
)
def test_refused(polyfid, folder, text, words):
    (folder / "run.toml").write_bytes(text)
    assert words in polyfid.refusal("fit tidy.csv --config run.toml")


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_may_be_in_the_file(polyfid, folder, verb):
    # Of all the names one is unknown, which is reported before values are read.
    command = get_command(app).commands[verb]
    names = [p.name for p in command.params if p.name not in {"help", "config"}]
    assert "json" in names
    lines = [f'{name} = "[wrong]"' for name in [*names, "no_such_option"]]
    (folder / "run.toml").write_text("\n".join(lines))
    assert "has no_such_option, which" in polyfid.refusal(f"{verb} --config run.toml")


def test_arguments_and_the_order_of_options(polyfid, folder):
    given = {"out": "out.csv", "block": 5, "new": "new.csv", "model": "model.polyfid"}
    (folder / "run.toml").write_text("".join(f"{k} = {v!r}\n" for k, v in given.items()))
    polyfid("predict --config run.toml")
    written = tomllib.loads((folder / "out.csv.toml").read_text())
    assert list(written) == ["command", "version", "model", "new", "block", "out"]
    assert given.items() <= written.items()


def test_strings_of_all_kinds_survive(folder):
    values = {"a": 'quo"te\\ \t\n\x7f ü [x]', "b": ["1,2", "c=d"], "c": None, "d": True, "e": 2}
    command = SimpleNamespace(params=[SimpleNamespace(name=name) for name in values])
    context = SimpleNamespace(info_name="fit", params=values, command=command)
    read = tomllib.loads(write_config(context, folder / "tidy.csv").read_text(encoding="utf-8"))
    assert {k: read[k] for k in "abde"} == {k: values[k] for k in "abde"}
    assert "c" not in read
