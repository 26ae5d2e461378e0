"""``polyfid check``, and the ways to give tables."""


def test_what_tables_hold(polyfid, folder):
    said = polyfid("check tidy.csv").stdout
    for words in ("crowd", "expert", "40", "20", "heat", "number", "No problems found"):
        assert words in said


def test_disagreement_and_duplicates(polyfid, folder):
    (folder / "t.csv").write_text(
        "x,label,fidelity\n1,a,crowd\n1,b,gold\n2,a,crowd\n2,a,gold\n2,a,gold\n"
    )
    said = polyfid("check t.csv").stdout
    assert "2 points in common, and disagree on 1" in said
    assert "1 row repeats another one" in said


def test_every_problem_is_reported_with_its_place(polyfid, folder):
    (folder / "bad.csv").write_text("x,label,fidelity,weight\n1,a,crowd,1\n2,,gold,-3\n3,b,,1\n")
    said = polyfid("check bad.csv", code=1).stderr
    for place in ("row 3, column 'label'", "row 4, column 'fidelity'", "row 3, column 'weight'"):
        assert f"bad.csv, {place}" in said
    assert polyfid("check bad.csv -q", code=1).stderr == said
    assert len(polyfid.json("check bad.csv", code=1)["problems"]) == 3


def test_missing_values_are_a_problem_unless_an_option_says_what_to_do(polyfid, folder):
    (folder / "gap.csv").write_text("x,label,fidelity\n1,a,low\n,b,low\n3,a,top\n4,b,top\n")
    assert "row 3, column 'x'" in polyfid("check gap.csv", code=1).stdout
    assert "row 3, column 'x'" in polyfid("check gap.csv -q", code=1).stderr
    assert "row 3, column 'x'" in polyfid("evaluate gap.csv", code=1).stderr
    polyfid("check gap.csv --missing median")


def test_a_wrong_column_gets_the_nearest_name(polyfid, folder):
    said = polyfid("check tidy.csv --target lable", code=1).stderr
    assert "did you mean 'label'?" in said


def test_text_formats(polyfid, folder):
    text = (folder / "tidy.csv").read_text()
    comma = text.replace(".", "%").replace(",", ";").replace("%", ",")
    (folder / "comma.csv").write_bytes(b"\xef\xbb\xbf" + comma.encode())
    assert polyfid.json("check comma.csv")["features"][0]["kind"] == "number"
    (folder / "tab.txt").write_text(text.replace(",", "\t"))
    polyfid("check tab.txt --delimiter tab --decimal . --encoding utf8")


def test_levels_and_standard_input(polyfid, folder):
    found = polyfid.json("check --level zebra=crowd.csv --level ant=expert.csv")
    assert found["levels"] == ["zebra", "ant"]
    found = polyfid.json("check -", input=(folder / "tidy.csv").read_bytes())
    assert found["levels"] == ["crowd", "expert"]


def test_names_with_commas_and_equals_signs(polyfid, folder):
    (folder / "a=b.csv").write_bytes((folder / "crowd.csv").read_bytes())
    levels = ("--level", "p=0.7, rough=a=b.csv", "--level", "p=1=expert.csv")
    found = polyfid.json("check", *levels, "--levels", '"p=0.7, rough",p=1')
    assert found["levels"] == ["p=0.7, rough", "p=1"]


def test_many_classes_stay_readable(polyfid, folder):
    rows = [f"{i},class{i % 100:03d},{level}" for level in ("low", "top") for i in range(200)]
    (folder / "many.csv").write_text("\n".join(["x,label,fidelity", *rows]))
    said = polyfid("check many.csv").stdout.splitlines()
    table = said[: said.index("")]
    assert len(table) == 1 + 1 + 100 + 1
    assert max(map(len, table)) <= 80
