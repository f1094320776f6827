"""What a user gets: three distributions of one version, each installed in an empty environment."""

import os
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest

import omg_cmdp
import omg_lab
import omg_trial

ROOT = Path(__file__).parent.parent
MOST_PACKAGES, MOST_MEGABYTES = 40, 600
COMMANDS = {"library": None, "lab": ("omg-lab", "list"), "trial": ("omg-trial", "--help")}

HEAVY = (
    *("matplotlib", "typer", "click", "rich", "argparse", "gymnasium", "sklearn", "torch", "ray", "pyarrow"),
    *("numba", "scipy", "pandas"),
)
PROGRAM = f"""
import importlib.metadata, sys
import omg_cmdp
assert "site-packages" in omg_cmdp.__file__, omg_cmdp.__file__
loaded = {{name.split(".")[0] for name in sys.modules}} & set({HEAVY!r})
assert not loaded, loaded
print(len(list(importlib.metadata.distributions())))
import numpy
mdp = omg_cmdp.TabularMDP(transitions=numpy.ones((1, 2, 1)), rewards=[[1.0, 0.0]], horizon=1)
assert omg_cmdp.optimal_policy(mdp)[1] == 1.0
"""


def test_there_is_one_version():
    projects = [tomllib.loads((ROOT / name / "pyproject.toml").read_text())["project"] for name in COMMANDS]
    cited = [
        line.split()[1] for line in (ROOT / "CITATION.cff").read_text().splitlines() if line.startswith("version:")
    ]
    packages = [package.__version__ for package in (omg_cmdp, omg_lab, omg_trial)]
    assert len({*(project["version"] for project in projects), *packages, *cited}) == 1


def test_no_test_asks_for_what_its_package_needs_anyway():
    """The groups of each pyproject.toml add to its dependencies."""
    for name in COMMANDS:
        content = tomllib.loads((ROOT / name / "pyproject.toml").read_text())
        needed = {_name(each) for each in content["project"]["dependencies"]}
        assert not needed & {_name(each) for each in content["dependency-groups"]["test"]}, name


def _name(requirement):
    return requirement.partition(" ")[0].partition("[")[0].partition(">")[0].partition("=")[0].lower()


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_distribution_installs_alone(name, tmp_path):
    bare = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    run = {"cwd": tmp_path, "env": bare, "check": True, "capture_output": True, "text": True}
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", tmp_path, ROOT / name]
    subprocess.run(pip, **run)
    (wheel,) = tmp_path.glob("*.whl")
    place = tmp_path / "empty"
    venv.create(place, with_pip=True)
    python = place / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--constraint", ROOT / "constraints.txt", wheel], **run)
    if command := COMMANDS[name]:
        subprocess.run([place / "bin" / command[0], *command[1:]], **run)
        return
    assert int(subprocess.run([python, "-c", PROGRAM], **run).stdout) <= MOST_PACKAGES
    assert sum(file.lstat().st_size for file in place.rglob("*") if file.is_file()) <= MOST_MEGABYTES * 1e6
