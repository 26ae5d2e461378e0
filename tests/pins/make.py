"""Figures that must stay while the inside of polyfid changes, made through public names only.

    python tests/pins/make.py            # all files
    python tests/pins/make.py models     # one of: models, tables, command, report

writes JSON files beside this one, and ``tests/test_pins.py`` compares the same figures with them.
Make files anew only where a change of behaviour is meant, and say why in the commit.
"""

import contextlib
import io
import json
import re
import sys
import tempfile
from dataclasses import dataclass, field, replace
from functools import partial
from html import unescape
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
from sklearn.gaussian_process import kernels as sk
from sklearn.naive_bayes import GaussianNB

import polyfid
from polyfid import MultiFidelityClassifier, Pooled, Stacked, TrustedOnly, crowd, labelstudio
from polyfid.datasets import make_cokriging
from polyfid.kernels import RBF, Categorical, Constant, Linear, Matern, RationalQuadratic, White
from polyfid.tables import TableModel, read_labelled

HERE = Path(__file__).parent
N = 40

# ---------------------------------------------------------------------- models

#: Two numbers and the code of a category, as in the rows of `Problem`.
QUERY = np.array([[-1.5, 0.3, 0], [-0.4, -1.2, 1], [0.1, 0.2, 2], [0.7, 1.4, 1], [1.6, -0.6, 0]])


class Problem:
    """40 rows of two or three levels."""

    def __init__(self, *levels: str, n_classes: int = 2):
        rng = np.random.RandomState(7)
        x, kind = rng.uniform(-2, 2, (N, 2)).round(3), rng.randint(3, size=N)
        height = x[:, 0] + 0.6 * np.sin(2 * x[:, 1]) + 0.4 * (kind == 1)
        right = np.digitize(height, [0.0] if n_classes == 2 else [-0.6, 0.6])
        top = len(levels) - 1
        level = np.sort(rng.choice(top + 1, N, p=[0.65, 0.35] if top == 1 else [0.4, 0.35, 0.25]))
        wrong = rng.uniform(size=N) < np.array([0.25, 0.12, 0.0])[level + 2 - top]
        self.levels, self.n_classes = levels, n_classes
        self.X = np.column_stack([x, kind])
        self.y = np.where(wrong, (right + 1) % n_classes, right)
        self.fidelity = np.array(levels)[level]
        self.weight = rng.choice([0.5, 1.0, 2.0], N)
        self.annotator = np.where(level == top, "gold", rng.choice(["ann", "bob"], N))


TWO = Problem("low", "top")
THREE = Problem("low", "mid", "top")
CLASSES = Problem("low", "top", n_classes=3)


@dataclass(frozen=True)
class Model:
    """A classifier and what it is fitted to; ``how`` is a row of the table of tolerances."""

    how: str
    classifier: MultiFidelityClassifier
    problem: Problem = TWO
    fit: dict = field(default_factory=dict)  # arguments besides the fidelity
    blocks: bool = False

    def figures(self):
        p, model = self.problem, self.classifier.set_params(levels=self.problem.levels)
        if self.blocks:
            model.fit_blocks(polyfid.ArrayBlocks(p.X, p.y, p.fidelity, rows=16))
        else:
            model.fit(p.X, p.y, fidelity=p.fidelity, **self.fit)
        made = {"levels": list(model.levels_), "classes": model.classes_}
        for level in p.levels:
            mean, variance = model.latent_mean_and_variance(QUERY, level)
            proba = model.predict_proba(QUERY, level)
            made[level] = {"proba": proba, "mean": mean, "variance": variance}
        made["evidence"] = model.log_marginal_likelihood_value_
        if model.optimizer is None:
            theta = np.asarray(model.theta_ if p.n_classes == 2 else model.theta_[0])
            value, gradient = model.log_marginal_likelihood(theta + 0.1, eval_gradient=True)
            made["nearby"] = {"theta": theta + 0.1, "evidence": value, "gradient": gradient}
            made["covariance"] = model.latent_mean_and_covariance(QUERY[:2])[1]
        return made


def fixed(kernel, how="exact", problem=TWO, **params):
    """Hyper-parameters stay as they are given."""
    given = {"rho": 0.8, "inference": "laplace", "optimizer": None, "random_state": 0, **params}
    return Model(how, MultiFidelityClassifier(kernel, **given), problem)


def tuned(problem=TWO, how="tuned", **params):
    """Hyper-parameters are climbed to the very top, so that the way there does not matter."""
    given = {"kernel": 1.0 * RBF(), "tol": 1e-8, "random_state": 0, **params}
    return Model(how, MultiFidelityClassifier(**given), problem)


SMOOTH = 1.7 * RBF(0.9)
EP = {"how": "iterated", "inference": "ep"}
VARIATIONAL = {"how": "iterated", "inference": "variational"}
SPARSE = {"how": "sparse", "inference": "variational", "n_inducing": 15}
WEIGHTS, PEOPLE = {"sample_weight": TWO.weight}, {"annotator": TWO.annotator}
NUMBERS, CODES = {"columns": [0, 1]}, {"columns": [2]}

_KERNELS = {
    "Constant": Constant(0.5) + 1.2 * RBF(0.7),
    "RBF": SMOOTH,
    "RBF ard": 1.7 * RBF((0.6, 0.9, 1.8)),
    "RBF of columns": 1.7 * RBF(0.9, **NUMBERS),
    "Matern 1/2": 1.7 * Matern(0.9, nu=0.5),
    "Matern 3/2": 1.7 * Matern(0.9, nu=1.5),
    "Matern 5/2": 1.7 * Matern((0.6, 0.9, 1.8), nu=2.5),
    "RationalQuadratic": 1.7 * RationalQuadratic(0.9, alpha=1.3),
    "Linear": 0.8 * Linear(1.4) + Constant(0.3),
    "Linear ard": Linear((1.4, 0.8, 2.0)) + Constant(0.3),
    "White": SMOOTH + White(0.4),
    "Categorical": 1.7 * RBF(0.9, **NUMBERS) + 0.6 * Categorical(1.2, **CODES),
    "Sum": SMOOTH + 0.5 * Linear(1.1),
    "Product": 1.3 * (RBF(0.8, **NUMBERS) * Categorical(1.5, **CODES)),
    "scikit-learn": sk.ConstantKernel(1.7) * sk.DotProduct(0.7) + sk.Matern(0.9, nu=1.5),
    "one per level": [SMOOTH, 0.6 * Matern(1.3)],
}

MODELS = {
    **{f"kernel {name}": fixed(kernel) for name, kernel in _KERNELS.items()},
    "prior three levels": fixed(SMOOTH, problem=THREE, rho=[0.8, 1.1]),
    "prior coregional": fixed([SMOOTH, 0.6 * Matern(1.3)], coupling="coregional"),
    "prior coregional, three levels": fixed(SMOOTH, problem=THREE, coupling="coregional"),
    "features as they are": fixed(SMOOTH, standardize=False),
    "scheme ep": fixed(SMOOTH, **EP),
    "scheme variational": fixed(SMOOTH, **VARIATIONAL),
    "scheme ep, three levels": fixed(SMOOTH, problem=THREE, **EP),
    "scheme variational, coregional": fixed(SMOOTH, coupling="coregional", **VARIATIONAL),
    "noise fidelity, ep": fixed(SMOOTH, label_noise="fidelity", **EP),
    "noise fidelity, variational": fixed(SMOOTH, label_noise="fidelity", **VARIATIONAL),
    "noise of known rates": fixed(SMOOTH, label_noise=[0.2, 0.05], **EP),
    "noise annotator": replace(fixed(SMOOTH, label_noise="annotator", **EP), fit=PEOPLE),
    "classes laplace": fixed(SMOOTH, problem=CLASSES),
    "classes ep": fixed(SMOOTH, problem=CLASSES, **EP),
    "weights laplace": replace(fixed(SMOOTH), fit=WEIGHTS),
    "weights variational": replace(fixed(SMOOTH, **VARIATIONAL), fit=WEIGHTS),
    "sparse": fixed(SMOOTH, **SPARSE),
    "sparse with all points": fixed(SMOOTH, **{**SPARSE, "n_inducing": N}),
    "sparse, three levels": fixed(SMOOTH, problem=THREE, **SPARSE),
    "sparse noise fidelity": fixed(SMOOTH, label_noise="fidelity", **SPARSE),
    "sparse weights": replace(fixed(SMOOTH, **SPARSE), fit=WEIGHTS),
    "sparse classes": fixed(SMOOTH, problem=CLASSES, **SPARSE),
    "blocks": replace(fixed(SMOOTH, **SPARSE), blocks=True),
    "tuned": tuned(),
    "tuned, default tolerance": tuned(tol=1e-5),
    "tuned ard": tuned(kernel=1.0 * RBF(ard=True)),
    "tuned ard free": tuned(kernel=1.0 * RBF(ard="free")),
    "tuned without prior": tuned(prior=None, rho_bounds=(-2.0, 2.0)),
    "tuned with restarts": tuned(n_restarts=2, kernel=Constant(1.0) * Matern() + White(0.1)),
    "tuned three levels": tuned(THREE),
    "tuned coregional": tuned(coupling="coregional"),
    "tuned ep": tuned(inference="ep"),
    "tuned variational": tuned(inference="variational"),
    "tuned noise fidelity": tuned(label_noise="fidelity"),
    "tuned noise annotator": replace(tuned(label_noise="annotator"), fit=PEOPLE),
    "tuned classes": tuned(CLASSES),
    "tuned weights": replace(tuned(), fit=WEIGHTS),
    # The bound is climbed to 1000 tol.
    "tuned sparse": tuned(n_inducing=15, refine_inducing=False, tol=1e-5),
    "tuned sparse, refined": tuned(n_inducing=15, tol=1e-5),
    # Few points, so that moving them changes much.
    "tuned sparse, few points": tuned(n_inducing=4, refine_inducing=False, tol=1e-5, how="learnt"),
    "tuned sparse, few points, refined": tuned(n_inducing=4, tol=1e-5, how="learnt"),
    "tuned blocks": replace(tuned(n_inducing=15, refine_inducing=False, tol=1e-5), blocks=True),
    "paper": Model("tuned", MultiFidelityClassifier.paper()),
    "structures": tuned(kernel="auto", how="learnt"),
    "structures, three levels": tuned(THREE, kernel="auto", how="learnt"),
}

# ------------------------------------------------- tables, baselines, the crowd


def _frame():
    """The rows of `TWO` as a table with names, categories and gaps."""
    kind = np.array(["red", "green", "blue"])[TWO.X[:, 2].astype(int)]
    label = np.where(TWO.y == 1, "good", "bad")
    columns = {"id": [f"r{i:02d}" for i in range(N)], "heat": TWO.X[:, 0], "flow": TWO.X[:, 1]}
    return pd.DataFrame({**columns, "kind": kind, "label": label, "fidelity": TWO.fidelity})


def _new():
    kind = np.array(["red", "green", "blue"])[QUERY[:, 2].astype(int)]
    columns = {"kind": kind, "flow": QUERY[:, 1], "heat": QUERY[:, 0]}
    return pd.DataFrame({"id": list("abcde"), **columns})


def _columns(frame):
    return {str(name): frame[name].tolist() for name in frame}


def _table_model(missing="error"):
    """Predictions of a table by a model that was saved and read again."""
    frame, new = _frame(), _new()
    if missing != "error":
        frame.loc[::7, "heat"] = np.nan
        new.loc[1, "heat"] = np.nan
    classifier = fixed(1.7 * RBF(1.3)).classifier
    model = TableModel.fit(read_labelled([frame]), classifier, missing=missing)
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder, "model.polyfid"))
        read = polyfid.load(Path(folder, "model.polyfid"))
    return {"top": _columns(read.predict(new)), "low": _columns(read.predict(new, fidelity="low"))}


def _fit_files():
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "rows.csv")
        _frame().to_csv(file, index=False)
        classifier = fixed(1.7 * RBF(1.3), **SPARSE).classifier
        model = TableModel.fit_files([file], classifier=classifier, rows=16)
    return _columns(model.predict(_new()))


def _baseline(model):
    model.fit(THREE.X, THREE.y, fidelity=THREE.fidelity)
    return {"proba": model.predict_proba(QUERY)}


def _evaluation():
    how = {"model": fixed(SMOOTH).classifier, "n_splits": 3, "n_bootstrap": 50, "random_state": 0}
    return settled(polyfid.evaluate(TWO.X, TWO.y, TWO.fidelity, **how).to_dict())


def _answers():
    """Items, answers of four annotators of whom one skips some, and gold."""
    rng = np.random.RandomState(3)
    heat = rng.uniform(-1, 1, 24).round(3)
    right = np.where(heat > 0, "hot", "cold")
    said = {}
    for worker, wrong in (("ann", 0.05), ("bob", 0.2), ("cat", 0.35), ("dan", 0.5)):
        flips = rng.uniform(size=24) < wrong
        said[worker] = np.where(flips, np.where(right == "hot", "cold", "hot"), right)
    wide = pd.DataFrame({"task": range(24), **said})
    long = wide.melt("task", var_name="worker", value_name="label")[3:]
    gold = pd.DataFrame({"task": range(0, 24, 2), "label": right[::2]})
    return pd.DataFrame({"id": range(24), "heat": heat}), long, gold


def _tasks():
    """An export of Label Studio with the same answers."""
    items, answers, gold = _answers()
    truth = gold.assign(worker="eve", ground_truth=True)
    heat = dict(enumerate(items["heat"].tolist()))
    tasks = {i: {"id": i, "data": {"tempo": x, "title": f"t{i}"}} for i, x in heat.items()}
    for given in pd.concat([answers.assign(ground_truth=False), truth]).to_dict("records"):
        choice = {"type": "choices", "from_name": "heat", "to_name": "song"}
        annotation = {
            "completed_by": {"id": ord(given["worker"][0]), "email": given["worker"]},
            "result": [{**choice, "value": {"choices": [given["label"]]}}],
            "ground_truth": given["ground_truth"],
        }
        tasks[given["task"]].setdefault("annotations", []).append(annotation)
    return list(tasks.values())


def _crowd_rows(**how):
    rows = crowd.to_rows(*_answers(), **how)
    return {**_columns(rows), "levels": list(rows["fidelity"].cat.categories)}


def _label_studio():
    export = labelstudio.read_export(_tasks(), features=["tempo"])
    proba = pd.DataFrame({"id": range(24), "p_hot": np.linspace(0.1, 0.9, 24)})
    proba["p_cold"] = 1.0 - proba["p_hot"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "predictions.json")
        names = {"from_name": "heat", "to_name": "song", "model_version": "one"}
        labelstudio.write_predictions(list(range(24)), proba, file, **names)
        written = json.loads(file.read_text())
    return {
        "answers": _columns(export.answers),
        "gold": _columns(export.gold),
        "items": _columns(labelstudio.read_items(_tasks())),
        "predictions": [[w["task"], w["score"], w["result"][0]["value"]] for w in written[:5]],
    }


def _stack_levels():
    low, top = TWO.X[:3], TWO.X[3:5]
    return list(polyfid.stack_levels({"b": (low, TWO.y[:3]), "a": (top, TWO.y[3:5])}))


def _cokriging():
    made = make_cokriging(6, 4, n_features=2, levels=3, n_test=2, random_state=5)
    names = ("data", "target", "fidelity", "latent", "rho", "test_data", "test_target")
    return {name: made[name] for name in names}


#: Name: (how it is compared, what makes it).
TABLES = {
    "table model": ("exact", _table_model),
    "table model, medians": ("exact", lambda: _table_model("median")),
    "table model, indicators": ("exact", lambda: _table_model("indicator")),
    "table model of files": ("sparse", _fit_files),
    "evaluation": ("exact", _evaluation),
    "crowd answer": ("exact", lambda: _crowd_rows(level="answer")),
    "crowd majority": ("exact", lambda: _crowd_rows(level="majority", ties="split")),
    "crowd majority, drawn": ("exact", lambda: _crowd_rows(level="majority")),
    "crowd skill": ("exact", lambda: _crowd_rows(level="skill", aggregate="majority")),
    "crowd workers": ("iterated", lambda: _columns(crowd.workers(*_answers()[1:]))),
    "label studio": ("exact", _label_studio),
    "make_cokriging": ("iterated", _cokriging),
    "stack_levels": ("exact", _stack_levels),
}
for _kind in (TrustedOnly, Pooled, Stacked):
    TABLES[f"{_kind.__name__} of naive Bayes"] = ("exact", partial(_baseline, _kind(GaussianNB())))
    TABLES[_kind.__name__] = ("tuned", partial(_baseline, _kind()))

# ----------------------------------------------------------------- the command

#: Exit code, arguments, and the table that is written; called one after the other.
_CALLS = """
0 check tidy.csv
0 check --level low=low.csv --level top=top.csv
0 check gaps.csv --missing median
0 check --items items.csv --answers long.csv --gold gold.csv --crowd answer
0 check tasks.json --features tempo
1 check bad.csv
2 check nowhere.csv
2 check tidy.csv --nothing
2 check
0 fit tidy.csv --kernel rbf -o rbf.polyfid
0 fit --level low=low.csv --level top=top.csv --kernel matern --inference ep
0 fit --items items.csv --answers long.csv --gold gold.csv --kernel ard --no-rows -o crowd.polyfid
1 fit bad.csv
2 fit tidy.csv --kernel cubic
0 predict rbf.polyfid new.csv -o out.csv > out.csv
0 predict rbf.polyfid new.csv --fidelity low -o low-out.csv > low-out.csv
0 predict crowd.polyfid items.csv --block 5 -o p.csv > p.csv
1 predict rbf.polyfid items.csv -o no.csv
1 predict tidy.csv new.csv -o no.csv
2 predict rbf.polyfid new.csv
0 evaluate tidy.csv --kernel rbf --folds 3 --jobs 1
1 evaluate top.csv
2 evaluate tidy.csv --folds 1
0 inspect rbf.polyfid
1 inspect tidy.csv
0 convert --level low=low.csv --level top=top.csv -o both.csv > both.csv
0 convert --items items.csv --answers wide.csv --gold gold.csv --crowd skill -o r.csv > r.csv
0 convert tidy.csv --to levels -o parts.csv > parts-low.csv
0 convert p.csv --to labelstudio --from-name heat --to-name song -o p.json
2 convert tidy.csv
1 report crowd.polyfid
0 demo --kernel rbf --jobs 1 > polyfid-demo/experiment.csv
2 dance
"""
#: Arguments: (exit code, table).
COMMANDS = {
    arguments: (int(code), table)
    for code, arguments, table in re.findall(r"(?m)^(\d) (.*?)(?: > (.*))?$", _CALLS)
}


@contextlib.contextmanager
def working_folder():
    """A temporary folder with the files that `COMMANDS` and the report read."""
    frame, (items, answers, gold) = _frame(), _answers()
    rows, level = frame.drop(columns="kind"), frame["fidelity"]
    tables = {
        "tidy": rows,
        "low": rows[level == "low"].drop(columns="fidelity"),
        "top": rows[level == "top"].drop(columns="fidelity"),
        "gaps": frame.assign(heat=frame["heat"].where(np.arange(N) % 7 > 0)),
        "bad": rows.assign(label=rows["label"].where(np.arange(N) != 5)),
        "new": _new().drop(columns="kind"),
        "items": items,
        "long": answers,
        "wide": answers.pivot(index="task", columns="worker", values="label").reset_index(),
        "gold": gold,
    }
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name, table in tables.items():
            table.to_csv(f"{name}.csv", index=False)
        Path("tasks.json").write_text(json.dumps(_tasks()))
        yield Path(folder)


def run(arguments):
    """Exit code and JSON of ``polyfid`` ``arguments`` ``--json``, in this process."""
    from polyfid.cli import main

    out, argv = io.TextIOWrapper(io.BytesIO(), "utf-8"), ["polyfid", *arguments.split(), "--json"]
    with (
        mock.patch.object(sys, "argv", argv),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        out.flush()
        said = out.buffer.getvalue().decode()
    return code, json.loads(said) if said.strip() else None


#: Depends on the file format, the machine, or the version.
VOLATILE = {"arrays", "sha256", "schema", "format", "versions"}
#: Sentences for people: they may be reworded, appear and go together.
SENTENCES = {"sentence", "notes", "warnings", "problems", "created_by"}


def settled(value, key=""):
    """JSON of the command without what may change."""
    if key in SENTENCES:
        return bool(value)
    if key == "structures":  # named by sentences
        return list(value.values())
    if isinstance(value, dict):
        return {k: settled(v, k) for k, v in value.items() if k not in VOLATILE}
    if isinstance(value, list):
        return [settled(v, key) for v in value]
    return value


def commands():
    """What each of `COMMANDS` says and writes; later ones read what earlier ones wrote."""
    made = {}
    with working_folder():
        for arguments, (_, table) in COMMANDS.items():
            code, said = run(arguments)
            written = _columns(pd.read_csv(table)) if table else None
            made[arguments] = {"code": code, "json": settled(said), "table": written}
    return made


# ------------------------------------------------------------------ the report


def _inside(tag, html):
    return re.findall(rf"<(?:{tag})\b[^>]*>(.*?)</(?:{tag})>", html, re.DOTALL)


def _texts(tag, html):
    bare = [unescape(re.sub(r"<[^>]+>", "", text)) for text in _inside(tag, html)]
    return [re.sub(r"\s+", " ", text).strip() for text in bare]


def _numbers(text):
    return [float(n) for n in re.findall(r"[+-]?\d+\.?\d*", text.replace("\N{MINUS SIGN}", "-"))]


def _table(html):
    rows = [_texts("t[hd]", row) for body in _inside("tbody", html) for row in _inside("tr", body)]
    return {
        "header": [text for head in _inside("thead", html) for text in _texts("th", head)],
        "names": [row[0] for row in rows],
        "numbers": [[_numbers(cell) for cell in row[1:]] for row in rows],
    }


def report():
    """What ``polyfid report`` shows of the tidy table."""
    with working_folder():
        code, said = run(
            "report tidy.csv --levels low,top --kernel rbf --folds 3 --jobs 1 -o page.html"
        )
        page = Path("page.html").read_text()
    html = re.sub(r"<(svg|style|script|small)\b.*?</\1>", "", page, flags=re.DOTALL)
    text, verdict = _texts("body", html)[0], said["evaluation"]["verdict"]
    return {
        "code": code,
        "json": settled(said),
        "title": _texts("title", html),
        "headings": _texts("h[123]", html),
        "captions": [(_texts("b", c) or [c])[0] for c in _inside("figcaption", html)],
        "n_figures": len(_inside("figure", html)),
        "verdict": verdict,
        "verdict is shown": verdict.lower() in text.lower(),
        "names shown": [n for n in ("heat", "flow", "low", "top", "good", "bad") if n in text],
        "loads nothing": not re.search(r'(src|href)="(https?:)?//', page),
        "tables": [_table(table) for table in _inside("table", html)],
    }


# ----------------------------------------------------------------- the writing


def plain(value):
    """Values that JSON has; numbers to 12 digits, NaN as null."""
    return json.loads(
        json.dumps(value, default=lambda array: array.tolist()),
        parse_float=lambda text: float(f"{float(text):.12g}"),
        parse_constant=lambda _: None,
    )


FILES = {
    "models": lambda: {name: model.figures() for name, model in MODELS.items()},
    "tables": lambda: {name: make() for name, (_, make) in TABLES.items()},
    "command": commands,
    "report": report,
}


def main():
    for name in sys.argv[1:] or FILES:
        text = json.dumps(plain(FILES[name]()), indent=1)
        for lists in (r"\[[^\[\]{}]*\]", r"\[(\s*\[[^\[\]{}]*\],?)*\s*\]"):  # in a line each
            text = re.sub(lists, lambda match: re.sub(r"\s+", " ", match[0]), text)
        (HERE / f"{name}.json").write_text(text + "\n")
        print(f"{HERE / name}.json, {len(text):,} characters")


if __name__ == "__main__":
    main()
