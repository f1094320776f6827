"""Modules of optional packages that are not installed are left out; any other import error is an error."""

import importlib.util

OPTIONAL = {
    "fastapi": ("omg_cmdp/live/web",),
    "gymnasium": tuple(
        f"omg_cmdp/environments/gymnasium/{name}.py" for name in ("control", "discretise", "registered")
    ),
    "httpx": ("omg_cmdp/live/client",),
    "river": ("omg_cmdp/oracles/adapters/river.py",),
    "sklearn": ("omg_cmdp/oracles/adapters/sklearn.py",),
    "sqlalchemy": ("omg_cmdp/live/log/database.py", "tests/live"),
    "torch": ("omg_cmdp/oracles/adapters/tensors.py", "omg_cmdp/oracles/adapters/torch.py"),
    "typer": ("omg_cmdp/cli.py", "omg_cmdp/live/commands", "omg_cmdp/reports/terminal.py"),
}

collect_ignore = [
    path for package, paths in OPTIONAL.items() if importlib.util.find_spec(package) is None for path in paths
]
