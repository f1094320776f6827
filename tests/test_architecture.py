import ast
import subprocess
import sys
from pathlib import Path

import pytest

import omg_cmdp

PACKAGE = Path(omg_cmdp.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
LONGEST_MODULE = 300

# The layout of DESIGN.md: what each sub-package may import of ours, besides itself and the modules below all of
# them. `omg_cmdp/__init__.py` and `cli.py` stand above, and may import any.
GROUND = {"archive", "contexts", "validation"}
LAYERS = {
    "mdp": set(),
    "planning": {"mdp"},
    "oracles": set(),
    "environments": {"mdp"},
    "adversaries": {"environments.base"},
    "agents": {"mdp", "planning", "oracles"},
    "logged": {"mdp", "oracles", "agents.base"},
    "theory": {"mdp", "planning"},
    "experiments": {"mdp", "planning", "oracles", "environments", "adversaries", "agents", "theory"},
    "checks": {"mdp", "planning", "oracles", "environments", "adversaries", "agents", "theory"},
}

# What would make `import omg_cmdp` slow. The budget is 0.5 s beyond numpy's own import; seconds depend on the machine,
# so the tests assert on the cause and not on the clock.
HEAVY = {
    *("numba", "llvmlite", "scipy", "matplotlib", "pandas", "sklearn", "torch", "ray", "gymnasium", "cvxpy"),
    *("argparse", "optparse", "click", "typer", "rich", "docopt", "fire"),
}

UNSAFE_MODULES = {"pickle", "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}


def name_of(path):
    """Return the dotted name below `omg_cmdp`: "planning.barrier"; "planning" for its `__init__`; "" for the root's."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(source, module, is_package):
    """Yield the absolute name of everything that `source` imports, wherever in the file."""
    package = ["omg_cmdp", *module.split(".")] if module else ["omg_cmdp"]
    package = package if is_package else package[:-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{origin}.{alias.name}" for alias in node.names)


def forbidden_imports(source, module, is_package=False):
    """Return what `module` imports of ours against LAYERS."""
    layer = module.split(".")[0]
    if layer not in GROUND | LAYERS.keys():  # the root and the command line
        return []
    allowed = tuple(f"omg_cmdp.{name}." for name in {layer, *GROUND, *LAYERS.get(layer, ())})
    ours = [name for name in imported(source, module, is_package) if name.split(".")[0] == "omg_cmdp"]
    return [name for name in ours if not f"{name}.".startswith(allowed)]


def unsafe_constructs(source):
    """Return what could run code that comes from data: pickles, `eval`, `exec`."""
    found = [name for name in imported(source, "", True) if name.split(".")[0] in UNSAFE_MODULES]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and node.id in ("eval", "exec"):
            found.append(node.id)
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle" and ast.unparse(node.value) != "False":
            found.append("allow_pickle")
    return found


each_module = pytest.mark.parametrize("path", MODULES, ids=lambda path: name_of(path) or "omg_cmdp")


@each_module
def test_imports_go_in_the_direction_of_the_layout(path):
    assert forbidden_imports(path.read_text(), name_of(path), path.name == "__init__.py") == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("mdp.tabular", "from omg_cmdp.planning.barrier import plan"),
        ("mdp.tabular", "import omg_cmdp.planning.barrier"),
        ("mdp.tabular", "from omg_cmdp import planning"),
        ("mdp.tabular", "from .. import planning"),
        ("mdp.tabular", "from ..planning import plan"),
        ("mdp.tabular", "def late():\n    from omg_cmdp.planning import plan"),
        ("planning.barrier", "import omg_cmdp"),
        ("planning.barrier", "from omg_cmdp import TabularMDP"),
        ("planning.barrier", "from omg_cmdp.mdp_extra import anything"),
        ("adversaries.adaptive", "from omg_cmdp.environments.gymnasium import Wrapped"),
        ("adversaries.adaptive", "from omg_cmdp.environments import gymnasium"),
        ("agents.omg", "from omg_cmdp.environments.base import ContextualMDP"),
        ("environments.base", "from omg_cmdp.agents.base import Agent"),
        ("oracles.linear", "from omg_cmdp.mdp import Space"),
        ("validation", "from omg_cmdp.mdp import Space"),
        ("logged.frames", "from omg_cmdp.environments.base import ContextualMDP"),
        ("logged.warm_start", "from omg_cmdp.agents.omg import OMG"),
        ("theory.audit", "from omg_cmdp.experiments import store"),
        ("experiments.runner", "from omg_cmdp import cli"),
    ],
)
def test_an_import_against_the_layout_is_found(module, source):
    assert len(forbidden_imports(source, module)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("mdp.tabular", "from omg_cmdp import validation"),
        ("mdp.tabular", "from . import occupancy\nfrom ..validation import frozen"),
        ("planning.barrier", "from omg_cmdp import mdp\nimport omg_cmdp.mdp.tabular\nimport numpy"),
        ("adversaries.adaptive", "from omg_cmdp.environments.base import ContextualMDP"),
        ("oracles.adapters.river", "from ..base import RewardOracle"),
        ("cli", "import omg_cmdp\nfrom omg_cmdp.experiments import runner"),
    ],
)
def test_an_import_along_the_layout_is_allowed(module, source):
    assert forbidden_imports(source, module) == []


def test_every_sub_package_has_its_place_in_the_layout():
    sub_packages = {path.relative_to(PACKAGE).parts[0] for path in MODULES if path.parent != PACKAGE}
    assert sub_packages <= set(LAYERS)


def test_the_layout_has_no_cycle():
    above = {layer: {name.split(".")[0] for name in below} for layer, below in LAYERS.items()}
    while leaves := {layer for layer, below in above.items() if not below & above.keys()}:
        above = {layer: below for layer, below in above.items() if layer not in leaves}
    assert above == {}


def test_importing_the_package_imports_nothing_heavy():
    """A fresh interpreter: compiled code waits for the first plan, and the command line for its command."""
    loaded = subprocess.run(
        [sys.executable, "-c", "import sys, omg_cmdp; print(*sys.modules)"],
        cwd=PACKAGE.parent,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert "omg_cmdp.planning.barrier" in loaded
    assert HEAVY.isdisjoint(loaded)


@each_module
def test_no_module_is_long(path):
    assert len(path.read_text().splitlines()) <= LONGEST_MODULE


@each_module
def test_no_module_runs_code_from_data(path):
    assert unsafe_constructs(path.read_text()) == []


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from pickle import loads",
        "import pickle as p",
        "eval('1')",
        "run = exec",
        "np.load(path, allow_pickle=True)",
        "np.load(path, allow_pickle=trusted)",
    ],
)
def test_code_from_data_is_found(source):
    assert len(unsafe_constructs(source)) == 1


def test_refusing_pickles_is_safe():
    assert unsafe_constructs("np.load(path, allow_pickle=False)  # no pickle, no eval") == []
