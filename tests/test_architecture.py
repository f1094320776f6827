import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import omg_cmdp

PACKAGE = Path(omg_cmdp.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
LONGEST_MODULE = 300

# The layout of CONTRIBUTING.md: what each sub-package may import of ours, besides itself and the modules below all of
# them. `omg_cmdp/__init__.py` and `cli.py` stand above, and may import any.
GROUND = {"contexts", "jit", "persistence", "provenance", "records", "sampling", "validation"}
LAYERS = {
    "mdp": set(),
    "planning": {"mdp"},
    "oracles": set(),
    "theory": {"mdp", "planning", "oracles.losses"},
    "agents": {"mdp", "planning", "oracles", "theory"},
    "environments": {"mdp"},
    "adversaries": {"mdp", "environments.base"},
    "delays": set(),
    "logs": {"mdp", "oracles", "agents.base"},
    "runs": {"mdp", "planning", "theory", "agents", "environments", "adversaries", "delays", "logs"},
    "studies": {"mdp", "oracles", "theory", "agents", "environments", "adversaries", "delays", "logs", "runs"},
    "live": {"mdp", "oracles", "agents", "logs", "studies.document", "studies.export"},
    "reports": {"theory", "runs", "studies"},
    "checks": {"mdp", "planning", "oracles", "environments", "adversaries", "delays", "agents", "theory"},
}

# Rooms inside a room. What lies in the outer one is below them, but for its `__init__`.
INNER_ROOMS = {
    "oracles": ("combined", "offline", "adapters"),
    "agents": ("bandits", "baselines", "rivals", "information", "pac", "counterfactual"),
    "environments": ("worlds", "data", "encoders", "gymnasium"),
    "logs": ("off_policy",),
    "live": ("web", "client", "export", "commands"),
}
# Rooms that the outer one calls, and what of it they may import besides themselves.
CALLED_ROOMS = {
    "agents.exploration": ("agents.kernels",),
    "studies.outside": ("studies.document",),
    "live.log": (),
    "live.study": ("live.log",),
}
MOST_MODULES = 15
MOST_ANCESTORS = 3

# What would make `import omg_cmdp` slow. The budget is 0.5 s beyond numpy's own import; seconds depend on the machine,
# so the tests assert on the cause and not on the clock.
HEAVY = {
    *("numba", "llvmlite", "scipy", "matplotlib", "pandas", "sklearn", "torch", "ray", "gymnasium", "cvxpy"),
    *("argparse", "optparse", "click", "typer", "rich", "docopt", "fire"),
}

OPTIONAL = {
    *("fastapi", "gymnasium", "httpx", "pyarrow", "rich", "river", "sklearn", "sqlalchemy", "torch", "typer"),
    *("prometheus_client", "pydantic", "uvicorn"),
}
"""Packages without which some modules cannot be imported."""

ONLY_IN = {
    **dict.fromkeys(("fastapi", "prometheus_client", "pydantic", "starlette", "uvicorn"), "live.web"),
    "httpx": "live.client",
    "sqlalchemy": "live.log.database",
}
"""The packages of the service, and where each may be imported: its core knows no framework."""

UNSAFE_MODULES = {"pickle", "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}


def name_of(path):
    """Return the dotted name below `omg_cmdp`: "planning.plan"; "planning" for its `__init__`; "" for the root's."""
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
        ("mdp.tabular", "from omg_cmdp.planning.plan import plan"),
        ("mdp.tabular", "import omg_cmdp.planning.plan"),
        ("mdp.tabular", "from omg_cmdp import planning"),
        ("mdp.tabular", "from .. import planning"),
        ("mdp.tabular", "from ..planning import plan"),
        ("mdp.tabular", "def late():\n    from omg_cmdp.planning import plan"),
        ("planning.plan", "import omg_cmdp"),
        ("planning.plan", "from omg_cmdp import TabularMDP"),
        ("planning.plan", "from omg_cmdp.mdp_extra import anything"),
        ("adversaries.adaptive", "from omg_cmdp.environments.gymnasium import Wrapped"),
        ("adversaries.adaptive", "from omg_cmdp.environments import gymnasium"),
        ("agents.omg", "from omg_cmdp.environments.base import ContextualMDP"),
        ("environments.base", "from omg_cmdp.agents.base import Agent"),
        ("oracles.linear", "from omg_cmdp.mdp import Space"),
        ("validation", "from omg_cmdp.mdp import Space"),
        ("logs.readers", "from omg_cmdp.environments.base import ContextualMDP"),
        ("logs.warm_start", "from omg_cmdp.agents.omg import OMG"),
        ("theory.audit", "from omg_cmdp.agents.base import Decision"),
        ("studies.runner", "from omg_cmdp import cli"),
        ("studies.runner", "from omg_lab.reports import page"),
    ],
)
def test_an_import_against_the_layout_is_found(module, source):
    assert len(forbidden_imports(source, module)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("mdp.tabular", "from omg_cmdp import validation"),
        ("mdp.tabular", "from . import occupancy\nfrom ..validation import frozen"),
        ("planning.plan", "from omg_cmdp import mdp\nimport omg_cmdp.mdp.tabular\nimport numpy"),
        ("adversaries.adaptive", "from omg_cmdp.environments.base import ContextualMDP"),
        ("oracles.adapters.river", "from ..base import RewardOracle"),
        ("cli", "import omg_cmdp\nfrom omg_lab.studies import runner"),
    ],
)
def test_an_import_along_the_layout_is_allowed(module, source):
    assert forbidden_imports(source, module) == []


@each_module
def test_the_packages_of_the_service_stay_in_their_rooms(path):
    used = {name.split(".")[0] for name in imported(path.read_text(), name_of(path), path.name == "__init__.py")}
    assert [name for name in used & ONLY_IN.keys() if not f"{name_of(path)}.".startswith(f"{ONLY_IN[name]}.")] == []


def test_every_sub_package_has_its_place_in_the_layout():
    sub_packages = {path.relative_to(PACKAGE).parts[0] for path in MODULES if path.parent != PACKAGE}
    assert sub_packages <= set(LAYERS)


@pytest.mark.parametrize("room", INNER_ROOMS)
def test_a_room_stands_below_the_rooms_inside_it(room):
    inside = tuple(f"omg_cmdp.{room}.{name}" for name in INNER_ROOMS[room])
    for path in (PACKAGE / room).glob("*.py"):
        if path.name != "__init__.py":
            names = list(imported(path.read_text(), name_of(path), False))
            assert [name for name in names if name.startswith(inside)] == [], path


@pytest.mark.parametrize("room", CALLED_ROOMS)
def test_a_room_that_is_called_knows_nothing_of_its_callers(room):
    outer = f"omg_cmdp.{room.split('.')[0]}."
    allowed = tuple(f"omg_cmdp.{name}." for name in (room, *CALLED_ROOMS[room]))
    for path in (PACKAGE / Path(*room.split("."))).glob("*.py"):
        names = [f"{name}." for name in imported(path.read_text(), name_of(path), path.name == "__init__.py")]
        assert [name for name in names if name.startswith(outer) and not name.startswith(allowed)] == [], path


def test_no_room_is_crowded():
    folders = {path.parent for path in MODULES}
    crowded = {folder.name: len(list(folder.glob("[!_]*.py"))) for folder in folders}
    assert {name: count for name, count in crowded.items() if count > MOST_MODULES} == {}


@each_module
def test_no_class_has_many_ancestors(path):
    """Of ours: who reads a class reads these too."""
    name = ".".join(filter(None, ["omg_cmdp", name_of(path)]))
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        missing = error.__cause__ or error  # adapters say what to install, from the error that says what is missing
        if getattr(missing, "name", None) not in OPTIONAL:
            raise
        pytest.skip(str(error))
    classes = [kind for kind in vars(module).values() if isinstance(kind, type) and kind.__module__ == name]
    assert {kind: found for kind in classes if len(found := ancestors(kind)) > MOST_ANCESTORS} == {}


def ancestors(kind):
    return [base.__name__ for base in kind.__mro__[1:] if base.__module__.split(".")[0] == "omg_cmdp"]


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
    assert "omg_cmdp.planning.plan" in loaded
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
