"""What a user gets: the wheel, installed in an empty environment."""

import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MOST_PACKAGES, MOST_MEGABYTES = 40, 600

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


@pytest.mark.slow
def test_the_wheel_is_light(tmp_path):
    run = {"cwd": tmp_path, "check": True, "capture_output": True, "text": True}
    subprocess.run([sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", tmp_path, ROOT], **run)
    (wheel,) = tmp_path.glob("*.whl")
    place = tmp_path / "empty"
    venv.create(place, with_pip=True)
    python = place / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--constraint", ROOT / "constraints.txt", wheel], **run)
    packages = int(subprocess.run([python, "-c", PROGRAM], **run).stdout)
    assert packages <= MOST_PACKAGES
    size = sum(file.lstat().st_size for file in place.rglob("*") if file.is_file())
    assert size <= MOST_MEGABYTES * 1e6
    lacking = subprocess.run([place / "bin" / "omg-cmdp", "list"], cwd=tmp_path, capture_output=True, text=True)
    assert lacking.returncode != 0
    assert "omg-cmdp[studies]" in lacking.stderr
