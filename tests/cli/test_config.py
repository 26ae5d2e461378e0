"""Options in a file, and the file that is written beside each output."""

import tomllib
from types import SimpleNamespace

import pytest
from typer.main import get_command

from polyfid.cli.app import app
from polyfid.cli.config import write_config

VERBS = ["demo", "check", "fit", "predict", "evaluate", "report", "inspect", "convert"]


def options_of(verb):
    command = get_command(app).commands[verb]
    return [p.name for p in command.params if p.name not in {"help", "config"}]


def test_round_trip(polyfid, folder):
    (folder / "deep").mkdir()
    polyfid(
        *("fit", "--level", "crowd=crowd.csv", "--level", "expert=expert.csv", "--features"),
        *("heat,flow", "--kernel", "rbf", "--seed", 3, "-o", "deep/m.polyfid", "--json"),
    )
    written = folder / "deep" / "m.polyfid.toml"
    first = tomllib.loads(written.read_text())
    assert first["command"] == "fit"
    assert first["level"] == ["crowd=crowd.csv", "expert=expert.csv"]
    assert (first["seed"], first["out"], first["features"]) == (3, "deep/m.polyfid", "heat,flow")
    assert not {"json", "quiet", "config"} & {*first}
    model = (folder / "deep" / "m.polyfid").read_bytes()
    (folder / "deep" / "m.polyfid").unlink()
    text = polyfid("fit", "--config", "deep/m.polyfid.toml").stdout
    assert "Written: deep/m.polyfid" in text
    assert (folder / "deep" / "m.polyfid").read_bytes() == model
    assert tomllib.loads(written.read_text()) == first


def test_files_and_lists_and_tables(polyfid, folder):
    (folder / "run.toml").write_text(
        'files = ["tidy.csv"]\nfeatures = ["heat", "flow"]\nlevels = ["expert", "crowd"]\n'
        "json = true\n"
    )
    found = polyfid("check", "--config", "run.toml").stdout
    assert '"expert",\n    "crowd"' in found
    (folder / "run.toml").write_text('[level]\ncrowd = "crowd.csv"\n"a=b" = "expert.csv"\n')
    assert polyfid.json("check", "--config", "run.toml")["levels"] == ["crowd", "a=b"]
    (folder / "run.toml").write_text('files = "tidy.csv"\n')
    assert polyfid.json("check", "--config", "run.toml")["levels"] == ["crowd", "expert"]


def test_the_command_line_comes_first(polyfid, folder):
    (folder / "run.toml").write_text('files = ["nowhere.csv"]\nlevels = "expert,crowd"\n')
    found = polyfid.json("check", "tidy.csv", "--config", "run.toml", "--levels", "crowd,expert")
    assert found["levels"] == ["crowd", "expert"]


def test_options_of_one_verb(polyfid, folder):
    (folder / "run.toml").write_text(
        'files = ["tidy.csv"]\n[fit]\nkernel = "rbf"\nno-rows = true\nout = "m.polyfid"\n'
        "[evaluate]\nfolds = 3\n"
    )
    polyfid("fit", "--config", "run.toml", "-q")
    assert tomllib.loads((folder / "m.polyfid.toml").read_text())["no_rows"] is True
    assert polyfid.json("check", "--config", "run.toml")["levels"] == ["crowd", "expert"]


def test_what_another_verb_wrote_gives_the_tables_but_not_the_output(polyfid, folder):
    polyfid("fit", "tidy.csv", "--kernel", "rbf", "-o", "m.polyfid", "-q")
    model = (folder / "m.polyfid").read_bytes()
    polyfid("convert", "--config", "m.polyfid.toml", "-o", "again.csv")
    assert polyfid.json("check", "--config", "m.polyfid.toml")["levels"] == ["crowd", "expert"]
    assert (folder / "m.polyfid").read_bytes() == model
    assert (folder / "again.csv").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kernle = 'rbf'", "did you mean kernel?"),
        ("kernel = 'round'", "kernel"),
        ("kernel = {a = 1}", "one value"),
        ("seed = 'x'", "seed"),
        ("config = 'other.toml'", "has config"),
        ("kernel = ", "is not TOML"),
        ("\\xff", "is not TOML"),
    ],
)
def test_refused(polyfid, folder, text, words):
    (folder / "run.toml").write_bytes(text.replace("\\xff", "\xff").encode("latin-1"))
    result = polyfid("fit", "tidy.csv", "--config", "run.toml", code=2)
    assert words in " ".join(result.stderr.replace("│", " ").split())


def test_a_file_that_is_not_there(polyfid, folder):
    assert "run.toml" in polyfid("fit", "tidy.csv", "--config", "run.toml", code=2).stderr


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_may_be_in_the_file(polyfid, folder, verb):
    # Of all the names, one is unknown; that is said before values are looked at.
    names = options_of(verb)
    assert "json" in names
    lines = [f'{name} = "[wrong]"' for name in [*names, "no_such_option"]]
    (folder / "run.toml").write_text("\n".join(lines))
    said = polyfid(verb, "--config", "run.toml", code=2).stderr
    assert "has no_such_option, which" in " ".join(said.replace("│", " ").split())


def test_predict_and_arguments(polyfid, folder):
    (folder / "run.toml").write_text(
        'model = "model.polyfid"\nnew = "new.csv"\nout = "out.csv"\nblock = 5\n'
    )
    polyfid("predict", "--config", "run.toml")
    written = tomllib.loads((folder / "out.csv.toml").read_text())
    assert (written["model"], written["new"], written["block"]) == ("model.polyfid", "new.csv", 5)
    (folder / "out.csv").unlink()
    polyfid("predict", "--config", "out.csv.toml", "-q")
    assert (folder / "out.csv").exists()


def test_strings_of_all_kinds_survive(folder):
    class Context:
        info_name = "fit"
        params = {"a": 'quo"te\\ \t\n\x7f ü [x]', "b": ["1,2", "c=d"], "c": None, "d": True, "e": 2}  # noqa: RUF012

        command = SimpleNamespace(params=[SimpleNamespace(name=name) for name in params])

    written = write_config(Context(), folder / "tidy.csv")
    read = tomllib.loads(written.read_text(encoding="utf-8"))
    assert {k: read[k] for k in "abde"} == {k: v for k, v in Context.params.items() if k != "c"}
    assert "c" not in read


def test_options_stand_in_the_order_of_the_command(polyfid, folder):
    polyfid("predict", "-o", "out.csv", "--block", 5, "model.polyfid", "new.csv", "-q")
    written = tomllib.loads((folder / "out.csv.toml").read_text())
    assert list(written) == ["command", "version", "model", "new", "out", "block"]


def test_help_tells_of_tables_for_one_verb(polyfid):
    said = polyfid("fit", "--help", env={"COLUMNS": "200", "TERMINAL_WIDTH": "200"}).stdout
    assert "Tables [fit], [report] … are for one verb" in " ".join(said.split())
