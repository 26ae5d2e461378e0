"""What users' tables hold is shown as it is, and steers nothing."""

EVIL = [
    "[red]x[/red]",
    "<script>alert(1)</script>",
    "\x1b[31mred\x07",
    "[/bold]",
    "a=b,c",
    "ü\u202e",
]


LEVELS = ("--levels", '[bold]low,"to,p="')


def write(path, labels):
    rows = ["x,[link]y,label,fidelity"]
    for level in ("[bold]low", "to,p="):
        rows += [f'{i}.5,{(i * 7) % 11},"{labels[i % len(labels)]}","{level}"' for i in range(24)]
    path.write_text("\n".join(rows))


def harmless(text):
    return not any(ord(c) < 32 and c != "\n" for c in text) and "\u202e" not in text


def test_check(polyfid, folder):
    write(folder / "evil.csv", EVIL)
    said = polyfid("check", "evil.csv", *LEVELS).stdout
    assert harmless(said)
    assert "[red]x[/red]" in said
    assert "\\x1b[31mred" in said
    assert "[bold]low" in said
    assert set(polyfid.json("check", "evil.csv", *LEVELS)["classes"]) == set(EVIL)


def test_from_fit_to_report(polyfid, folder):
    labels = EVIL[1:3]
    write(folder / "evil.csv", labels)
    fitted = polyfid("fit", "evil.csv", *LEVELS, "--kernel", "rbf", "-o", "evil.polyfid")
    assert harmless(fitted.stdout + fitted.stderr)
    assert set(polyfid.json("inspect", "evil.polyfid")["classes"]) == set(labels)
    assert harmless(polyfid("inspect", "evil.polyfid").stdout)
    polyfid("predict", "evil.polyfid", "evil.csv", "-o", "out.csv")
    first = (folder / "out.csv").read_text().splitlines()[0]
    assert "p_<script>alert(1)</script>" in first
    said = polyfid("report", "evil.polyfid", "-o", "evil.html", "--folds", 0)
    assert harmless(said.stdout)
    page = (folder / "evil.html").read_text()
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)" in page
    again = polyfid("fit", "--config", "evil.polyfid.toml", "-q", "-o", "again.polyfid")
    assert again.stdout == ""
    assert polyfid.json("inspect", "again.polyfid")["levels"] == ["[bold]low", "to,p="]


def test_errors(polyfid, folder):
    (folder / "worse.csv").write_text("x,label,fidelity\n\x1b[31m[/red],a,low\n2,b,top\n3,b,top\n")
    assert harmless(polyfid("check", "worse.csv", code=1).stdout)
    (folder / "other.csv").write_text("x,label,fidelity\n1,a,low\n2,b,top\n")
    said = polyfid("check", "worse.csv", "other.csv", code=1).stderr
    assert "[/red]" in said
    assert harmless(said)
    for text in ("[/red]", "[bold"):
        assert text in polyfid("check", "--level", text, code=2).stderr
    assert harmless(polyfid("check", "\x1b[31m.csv", code=2).stderr)
