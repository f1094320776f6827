"""The layout of CONTRIBUTING.md, held by tests: who imports whom, how large a module and a folder may be."""

import ast
import collections
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HOMES = {"omg_cmdp": "library", "omg_lab": "lab", "omg_trial": "trial"}
MODULES = {path: name for name, home in HOMES.items() for path in sorted((ROOT / home / name).rglob("*.py"))}
LONGEST_MODULE = 300
MOST_MODULES = 15

PACKAGES = {"omg_cmdp": "", "omg_lab": "omg_cmdp", "omg_trial": "omg_cmdp"}
"""What each package may import of the others."""

LAYERS = {
    "omg_cmdp": {
        "*": "",
        "recipes": "*",
        "delays": "*",
        "mdp": "* recipes",
        "planning": "* recipes mdp",
        "oracles": "* recipes",
        "theory": "* recipes mdp planning oracles",
        "misfit": "* recipes mdp oracles",
        "agents": "* recipes mdp planning oracles theory misfit",
        "environments": "* recipes mdp",
        "adversaries": "* recipes mdp environments.base",
        "logs": "* recipes mdp oracles misfit agents.agent agents.base",
        "loading": "* recipes mdp oracles agents",
        "runs": "* recipes mdp planning oracles.counts theory misfit agents environments adversaries delays logs",
        "checks": "* recipes mdp planning oracles environments adversaries delays agents theory",
    },
    "omg_lab": {
        "worlds": "",
        "data": "worlds",
        "features": "",
        "rivals": "features",
        "audit": "",
        "sample_complexity": "",
        "shown": "",
        "studies": "worlds data features rivals audit shown",
        "reports": "audit studies shown",
        "compare": "studies reports",
        "listing": "studies reports",
    },
    "omg_trial": {
        "keys": "",
        "log": "keys",
        "trial_file": "log",
        "contract": "trial_file",
        "tokens": "trial_file contract",
        "client": "",
        "people": "keys log trial_file contract",
        "*": "keys log trial_file contract people",
        "handlers": "* keys log trial_file contract people",
        "desk": "* keys log trial_file contract people handlers",
        "export": "* keys log trial_file contract people",
        "analysis": "trial_file",
        "watching": "* log trial_file contract people handlers desk export analysis",
        "rehearsal": "* log trial_file contract people handlers desk export analysis watching",
        "operation": "* log trial_file contract people handlers desk rehearsal watching",
        "service": "* log trial_file contract people handlers desk watching operation",
        "web": "* log trial_file contract people handlers desk rehearsal export watching operation service tokens",
    },
}
"""What a room may import of its own package, besides itself; `*` are the modules in no folder and without a line.

The package's `__init__`, `__main__` and `cli` stand above all rooms.
"""
ABOVE = ("__init__", "__main__", "cli")
SHOWN_TOGETHER = {"omg_lab.worlds": "omg_lab.data"}
"""An `__init__` that also offers the names of another room."""

# What would make `import omg_cmdp` slow. The budget is 0.5 s beyond numpy's own import; seconds depend on the machine,
# so the test asserts on the cause and not on the clock.
HEAVY = {
    *("numba", "llvmlite", "scipy", "matplotlib", "pandas", "sklearn", "torch", "ray", "gymnasium", "cvxpy"),
    *("argparse", "optparse", "click", "typer", "rich", "docopt", "fire"),
}
ONLY_IN = {
    **dict.fromkeys(("fastapi", "prometheus_client", "starlette", "uvicorn"), "omg_trial.web"),
    "cryptography": "omg_trial.keys",
    "httpx": "omg_trial.client",
    "pydantic": "omg_trial",
    "sqlalchemy": "omg_trial.log",
}
"""The packages of the service, and where each may be imported: its core knows no framework."""

UNSAFE_MODULES = {"pickle", "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}

PROBES = {
    "fingerprint": "a function of the user may have one",
    "has_intercept": "so may this: features with a constant of their own",
    "space": "what `check_agent` is given may be anything",
    "_real_set_num_threads": "threadpoolctl's controllers differ by BLAS",
    "initial_state_distrib": "an attribute of Gymnasium's toy texts only",
    "orig": "an error of SQLAlchemy, with or without the driver's",
}
"""Attributes that other people's objects have or not; ours declare what they have."""


def name_of(path):
    """Return the dotted name of a module: "omg_cmdp.planning.plan"; "omg_cmdp.planning" for an `__init__`."""
    parts = path.relative_to(ROOT / HOMES[MODULES[path]]).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(source):
    """Yield the name of everything that `source` imports, wherever in the file; we import by absolute names only."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module if not node.level else ''}.{alias.name}" for alias in node.names)


def room_of(name):
    """Return the room of a dotted name of ours, as `LAYERS` calls it; None for what stands above all rooms."""
    package, _, rest = name.partition(".")
    room = rest.partition(".")[0]
    if not room or room in ABOVE:
        return None
    place = ROOT / HOMES[package] / package / room
    return room if room in LAYERS[package] or place.is_dir() else "*" if place.with_suffix(".py").is_file() else None


def within(name, rooms):
    """Return whether a dotted name is one of `rooms`, or inside of one."""
    return any(f"{name}.".startswith(f"{room}.") for room in rooms)


def forbidden_imports(source, module):
    """Return what `module` imports of ours against PACKAGES and LAYERS."""
    package, room = module.partition(".")[0], room_of(module)
    found = []
    for name in imported(source):
        other = name.partition(".")[0]
        if other not in HOMES:
            if not other:
                found.append(name)  # relative
        elif other != package:
            found += [name] if other not in PACKAGES[package].split() else []
        elif room is not None and not within(name, [SHOWN_TOGETHER.get(module)]):
            allowed = [room, *LAYERS[package][room].split()]
            whole, parts = {each for each in allowed if "." not in each}, [f"{package}.{each}" for each in allowed]
            found += [name] if room_of(name) not in whole and not within(name, parts) else []
    return found


def unsafe_constructs(source):
    """Return what could run code that comes from data: pickles, `eval`, `exec`."""
    found = [name for name in imported(source) if name.split(".")[0] in UNSAFE_MODULES]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and node.id in ("eval", "exec"):
            found.append(node.id)
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle" and ast.unparse(node.value) != "False":
            found.append("allow_pickle")
    return found


def probes(source):
    """Return the attributes that are asked for with `getattr(x, "name", default)`, but Python's own."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call) and len(node.args) == 3]
    names = [call.args[1] for call in calls if isinstance(call.func, ast.Name) and call.func.id == "getattr"]
    return [name.value for name in names if isinstance(name, ast.Constant) and not name.value.startswith("__")]


def offences(rule):
    """Return module -> what `rule(source, module)` finds there, where it finds something."""
    return {module: found for module, source in SOURCES.items() if (found := rule(source, module))}


SOURCES = {name_of(path): path.read_text() for path in MODULES}


def test_imports_go_in_the_direction_of_the_layout():
    assert offences(forbidden_imports) == {}


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("omg_cmdp.mdp.tabular", "from omg_cmdp.planning.plan import plan"),
        ("omg_cmdp.mdp.tabular", "import omg_cmdp.planning.plan"),
        ("omg_cmdp.mdp.tabular", "from omg_cmdp import planning"),
        ("omg_cmdp.mdp.tabular", "from ..validation import frozen"),
        ("omg_cmdp.mdp.tabular", "def late():\n    from omg_cmdp.planning import plan"),
        ("omg_cmdp.planning.plan", "import omg_cmdp"),
        ("omg_cmdp.planning.plan", "from omg_cmdp import TabularMDP"),
        ("omg_cmdp.planning.plan", "from omg_cmdp.mdp_extra.inside import anything"),
        ("omg_cmdp.adversaries.worst_regret", "from omg_cmdp.environments import gymnasium"),
        ("omg_cmdp.agents.omg", "from omg_cmdp.environments.base import ContextualMDP"),
        ("omg_cmdp.oracles.linear.rewards", "from omg_cmdp.mdp import Space"),
        ("omg_cmdp.validation", "from omg_cmdp.mdp import Space"),
        ("omg_cmdp.logs.warm_start", "from omg_cmdp.agents.omg import OMG"),
        ("omg_cmdp.agents.omg", "from omg_lab.rivals import UCBVI"),
        ("omg_cmdp", "import omg_trial"),
        ("omg_lab.cli", "from omg_trial.export import decisions"),
        ("omg_lab.studies.runner", "from omg_lab import cli"),
        ("omg_lab.studies.runner", "from omg_lab.reports import page"),
        ("omg_trial.desk", "import omg_lab"),
        ("omg_trial.desk", "from omg_trial.web import server"),
        ("omg_trial.rules", "from omg_trial.desk import Desk"),
    ],
)
def test_an_import_against_the_layout_is_found(module, source):
    assert len(forbidden_imports(source, module)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("omg_cmdp.mdp.tabular", "from omg_cmdp import validation"),
        ("omg_cmdp.planning.plan", "from omg_cmdp import mdp\nimport omg_cmdp.mdp.tabular\nimport numpy"),
        ("omg_cmdp.adversaries.worst_regret", "from omg_cmdp.environments.base import ContextualMDP"),
        ("omg_lab.cli", "import omg_cmdp\nfrom omg_lab.studies import runner"),
        ("omg_lab.worlds.arms", "from omg_cmdp import Space"),
    ],
)
def test_an_import_along_the_layout_is_allowed(module, source):
    assert forbidden_imports(source, module) == []


@pytest.mark.parametrize("package", LAYERS)
def test_the_layout_has_no_cycle_and_no_room_without_a_line(package):
    below = {room: {name.split(".")[0] for name in rooms.split()} for room, rooms in LAYERS[package].items()}
    while leaves := {room for room, rooms in below.items() if not rooms & below.keys()}:
        below = {room: rooms for room, rooms in below.items() if room not in leaves}
    assert below == {}
    rooms = {room_of(name_of(path)) for path, name in MODULES.items() if name == package} - {None}
    assert rooms == LAYERS[package].keys()


@pytest.mark.parametrize(
    "room",
    sorted({path.parent for path in MODULES if len(path.relative_to(ROOT).parts) > 4}),
    ids=lambda room: room.name,
)
def test_a_room_and_the_room_around_it_import_in_one_direction(room):
    """Either the outer one calls the inner one, or the inner one builds on it; an `__init__` only shows names."""
    inner = sorted(room.glob("[!_]*.py"))
    outer = sorted(room.parent.glob("[!_]*.py"))
    down = [path for path in outer if any(within(name, map(name_of, inner)) for name in imported(path.read_text()))]
    up = [path for path in inner if any(within(name, map(name_of, outer)) for name in imported(path.read_text()))]
    assert not (down and up), (down, up)


@pytest.mark.parametrize("package", HOMES)
def test_the_tests_of_a_package_need_only_what_it_needs(package):
    known = {package, *PACKAGES[package].split()}
    strange = {name for other in HOMES.keys() - known for name in (other, HOMES[other])}
    for path in sorted((ROOT / HOMES[package] / "tests").rglob("*.py")):
        assert {name for name in imported(path.read_text()) if name.split(".")[0] in strange} == set(), path


def test_the_packages_of_the_service_stay_in_their_rooms():
    def strange(source, module):
        used = {name.split(".")[0] for name in imported(source)}
        return [name for name in used & ONLY_IN.keys() if not within(module, [ONLY_IN[name]])]

    assert offences(strange) == {}


def test_no_room_is_crowded():
    count = collections.Counter(path.parent for path in MODULES if not path.name.startswith("__"))
    assert {folder: number for folder, number in count.items() if number > MOST_MODULES} == {}


def test_no_module_is_long():
    long = {name: len(source.splitlines()) for name, source in SOURCES.items()}
    assert {name: length for name, length in long.items() if length > LONGEST_MODULE} == {}


def test_a_class_name_is_one_class():
    """In all packages; names with an underscore are a module's own."""
    homes = collections.defaultdict(list)
    for module, source in SOURCES.items():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(module)
    assert {name: modules for name, modules in homes.items() if len(modules) > 1} == {}


def test_our_types_are_not_probed():
    assert offences(lambda source, _: set(probes(source)) - PROBES.keys()) == {}


def test_importing_the_library_imports_nothing_heavy():
    """A fresh interpreter: compiled code waits for the first plan."""
    command = [sys.executable, "-c", "import sys, omg_cmdp; print(*sys.modules)"]
    loaded = subprocess.run(command, cwd=ROOT / "library", capture_output=True, text=True, check=True).stdout.split()
    assert "omg_cmdp.planning.plan" in loaded
    assert HEAVY.isdisjoint(loaded)


def test_no_module_runs_code_from_data():
    assert offences(lambda source, _: unsafe_constructs(source)) == {}


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
