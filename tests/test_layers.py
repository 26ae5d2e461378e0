"""Imports point one way only, and the core stands without the extras."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src" / "polyfid"

# A module may import from lines above its own and from its own package.
# Names on one line do not import each other.
LAYERS = [
    ["_version", "arrays", "atomic", "text", "values"],
    ["model_files", "rows"],
    ["kernels"],
    ["model"],
    ["inference"],
    ["learning"],
    ["estimator"],
    ["datasets", "distributed", "evaluation", "inspection"],
    ["suggest"],
    ["tables"],
    ["crowd"],
    ["labelstudio"],
    ["plots"],
    ["__init__"],
    ["report"],
    ["cli"],
]


EXTRAS = [
    "crowdkit",
    "dask",
    "distributed",
    "jinja2",
    "matplotlib",
    "numpyro",
    "pandas",
    "polars",
    "pooch",
    "pyarrow",
    "rich",
    "typer",
    "xgboost",
]

RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}


def part_of(path):
    """The top-level module or package that a file belongs to: kernels/leaf.py → kernels."""
    return path.relative_to(SRC).parts[0].removesuffix(".py")


def imported_parts(source, path):
    """Yield the top-level parts of polyfid that a file imports, at its top or deeper."""
    package = ("polyfid", *path.relative_to(SRC).parent.parts)
    for node in ast.walk(ast.parse(source)):
        targets = []
        if isinstance(node, ast.Import):
            targets = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = node.module.split(".") if node.module else ()
            targets = [[*base, *module, alias.name] for alias in node.names]
        for root, *rest in targets:
            if root == "polyfid":
                # `from polyfid import X` is a part if there is one of that name, else the package.
                yield rest[0] if rest and (rest[0] in RANK or is_part(rest[0])) else "__init__"


def is_part(name):
    return (SRC / name).is_dir() or (SRC / f"{name}.py").is_file()


def violations(source, path):
    part = part_of(path)
    others = set(imported_parts(source, path)) - {part}
    allowed = {name for name in RANK if RANK[name] < RANK[part]}
    return sorted(others - allowed)


FILES = sorted(SRC.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SRC)))
def test_imports_point_one_way(path):
    part = part_of(path)
    assert part in RANK, f"{part} has no layer: add it to LAYERS in tests/test_layers.py"
    wrong = violations(path.read_text(encoding="utf-8"), path)
    assert not wrong, f"{path.relative_to(SRC)} must not import {', '.join(wrong)}"


@pytest.mark.parametrize(
    ("file", "source", "wrong"),
    [
        ("model/prior.py", "from ..kernels.pairs import Pairs", []),
        ("model/prior.py", "from .. import kernels, rows", []),
        ("model/prior.py", "import numpy as np", []),
        ("model/prior.py", "import polyfid.learning.climb", ["learning"]),
        ("model/prior.py", "from polyfid.learning.climb import maximise", ["learning"]),
        ("model/prior.py", "from polyfid import Anything", ["__init__"]),
        ("model/prior.py", "def f():\n    from ..learning import evidence", ["learning"]),
        ("kernels/linear.py", "from .pairs import Pairs", []),
        ("kernels/linear.py", "from ..rows import Points", []),
        ("kernels/linear.py", "from ..model import prior", ["model"]),
        ("__init__.py", "from .estimator.classifier import MultiFidelityClassifier", []),
        ("report/page.py", "from polyfid import stack_levels", []),
    ],
)
def test_the_check_itself(file, source, wrong):
    assert violations(source, SRC / file) == wrong


def module_name(path):
    parts = path.relative_to(SRC.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_no_modules_import_each_other():
    names = {module_name(path) for path in FILES}
    graph = {}
    for path in FILES:
        top = ast.parse(
            path.read_text(encoding="utf-8")
        ).body  # not inside functions or TYPE_CHECKING
        found = [(n.module, a.name) for n in top if isinstance(n, ast.ImportFrom) for a in n.names]
        imported = {f"{m}.{a}" if f"{m}.{a}" in names else m for m, a in found} & names
        graph[module_name(path)] = imported - {module_name(path)}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the modules


def test_core_imports_without_extras():
    # None in sys.modules makes an import fail as if the package were not installed. Looking for
    # the names afterwards would not do: scikit-learn itself imports pandas where it finds it.
    code = f"import sys; sys.modules.update(dict.fromkeys({EXTRAS})); import polyfid"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize(
    "path", sorted((SRC.parents[1] / "experiments").rglob("*.py")), ids=lambda path: path.stem
)
def test_experiments_use_the_public_face_only(path):
    modules = [
        node.module or ""
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
    ]
    public = {"polyfid", "polyfid.kernels", "polyfid.datasets"}
    assert {name for name in modules if name.startswith("polyfid")} <= public
