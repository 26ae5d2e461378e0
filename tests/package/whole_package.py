"""sdist and wheel as users meet them: `make test-package`.

Both are built, checked and compared with the files that git tracks; then the wheel is installed in
empty environments, with each extra alone, and runs the example of the README and the demo.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: What else is in the wheel, and in the sdist.
METADATA = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}
BESIDE = {"CHANGELOG.md", "CITATION.cff", "LICENSE", "README.md", "pyproject.toml", "PKG-INFO"}
#: Extras for those who work on polyfid itself.
OURS = {"dev", "docs", "release", "test", "experiments", "mcmc"}
#: Data for the example of the README.
DATA = """
import numpy as np
rng = np.random.RandomState(0)
X_crowd, X_expert, X_new, X_pool = (rng.uniform(-2, 2, (n, 2)) for n in (60, 20, 5, 40))
def right(X): return X[:, 0] + X[:, 1] > 0
y_crowd, y_expert = right(X_crowd) ^ (rng.uniform(size=60) < 0.2), right(X_expert)
y_crowd, y_expert = y_crowd.astype(int), y_expert.astype(int)
"""


def run(*command: object, cwd: Path = ROOT) -> str:
    """The output of a command; an error with all of it if it fails."""
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{command} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def tracked() -> set[str]:
    """The files of the package that git tracks, from its root on."""
    files = run("git", "ls-files", "src/polyfid").split()
    return {name.removeprefix("src/") for name in files}


def check_contents(wheel: Path, sdist: Path) -> None:
    """Each holds the package, what describes it, and nothing else."""
    expected, version = tracked(), wheel.name.split("-")[1]
    own = {f"polyfid-{version}.dist-info/{name}" for name in METADATA}
    with zipfile.ZipFile(wheel) as file:
        names = set(file.namelist())
    same(names, expected | own, wheel.name)
    assert "polyfid/py.typed" in names
    with tarfile.open(sdist) as file:
        names = {m.name.partition("/")[2] for m in file.getmembers() if m.isfile()}
    ignored = {".gitignore"}  # hatchling always adds it
    same(names - ignored, {f"src/{name}" for name in expected} | BESIDE, sdist.name)


def same(found: set[str], expected: set[str], what: str) -> None:
    """Raise an error that names what is missing or should not be there."""
    missing, extra = sorted(expected - found), sorted(found - expected)
    if missing or extra:
        raise SystemExit(f"{what} lacks {missing} and should not have {extra}")


def readme_example() -> str:
    """The first Python of the README, with data to run on."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert found is not None
    return DATA + found[1]


def try_extra(wheel: Path, extra: str, folder: Path) -> None:
    """Install the wheel with one extra, run the example, and the demo if there is a command."""
    place = folder / (extra or "core")
    venv.create(place, with_pip=True)
    python = place / "bin" / "python"
    asked = f"polyfid[{extra}] @ {wheel.as_uri()}" if extra else str(wheel)
    run(python, "-m", "pip", "install", "-qq", "--disable-pip-version-check", asked)
    example = readme_example()
    if not has_tables(python):  # suggestions are a data frame
        example = re.sub(r"^model\.suggest.*\n", "", example, flags=re.MULTILINE)
    run(python, "-c", example, cwd=folder)
    command = place / "bin" / "polyfid"
    if has_command(python):
        run(command, "demo", "--quiet", cwd=place)
    else:
        said = subprocess.run([command, "demo"], capture_output=True, text=True, check=False)
        assert said.returncode, said
        assert 'pip install "polyfid[' in said.stdout + said.stderr, said
    print(f"polyfid{f'[{extra}]' if extra else ''}: the example ran", flush=True)


def has_tables(python: Path) -> bool:
    return _imports(python, "pandas")


def has_command(python: Path) -> bool:
    return _imports(python, "typer") and _imports(python, "jinja2")


def _imports(python: Path, module: str) -> bool:
    return subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode == 0


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
        (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
        print(run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist), end="")
        check_contents(wheel, sdist)
        print(f"{wheel.name} and {sdist.name}: contents are as they should be", flush=True)
        with (ROOT / "pyproject.toml").open("rb") as file:
            extras = tomllib.load(file)["project"]["optional-dependencies"]
        for extra in ["", *sorted(set(extras) - OURS)]:
            try_extra(wheel, extra, folder)


if __name__ == "__main__":
    main()
