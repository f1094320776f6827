"""Provenance of results: the version and commit of this package, and the versions of the libraries below it.

Of compiled code: the sources that it was made from.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import json
import os
import platform
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

_IMPORTS = re.compile(r"^\s*(?:from|import) ((?:omg_cmdp|omg_lab)[\w.]*)(?: import ([\w, ]+|\([^)]*\)))?", re.MULTILINE)

LIBRARIES = ("numpy", "scipy", "numba", "pandas", "pyarrow")


@functools.cache
def provenance() -> dict[str, Any]:
    """Return the version and commit of the package that is running, and the versions of its libraries."""
    versions = {"python": platform.python_version(), **{name: metadata.version(name) for name in LIBRARIES}}
    return {
        "version": sys.modules[__package__].__version__,
        "commit": commit(Path(__file__).parent),
        "versions": versions,
    }


def commit(package: Path) -> str:
    """Return the commit of the sources in the folder `package`, or "unknown".

    Where the sources differ from it, "(with uncommitted changes)" follows.

    Only a repository of the package itself counts, with the package at its top or one folder below, and not one around
    the place where it is installed.
    """
    # In a hook of git these variables would point to the repository of its caller.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}

    def git(*arguments: str) -> str:
        # It only looks: a lock on the index would stay in the repository if a study is killed here.
        command = ["git", "--no-optional-locks", "-C", str(package), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10, env=environment)
        return done.stdout.strip()

    try:
        if Path(git("rev-parse", "--show-toplevel")).resolve() in package.resolve().parents[:2]:
            git("ls-files", "--error-unmatch", "__init__.py")
            changed = git("status", "--porcelain", "--untracked-files=no")
            return git("rev-parse", "HEAD") + (" (with uncommitted changes)" if changed else "")
    except (OSError, subprocess.SubprocessError):
        pass
    return _installed_commit(package)


def _installed_commit(package: Path) -> str:
    """Return the commit from which pip installed the package, if that is what it did."""
    try:
        installed = metadata.distribution("omg-cmdp")
        if Path(str(installed.locate_file(package.name))).resolve() != package.resolve():
            return "unknown"  # an installation that is not the one that is running
        return str(json.loads(installed.read_text("direct_url.json") or "{}")["vcs_info"]["commit_id"])
    except (KeyError, TypeError, ValueError, metadata.PackageNotFoundError):
        return "unknown"


@functools.cache
def source_digest(module: str) -> str:
    """Return a digest of the source of `module` and of all that it imports from our packages."""
    found: dict[str, str] = {}
    pending = [module]
    while pending:
        name = pending.pop()
        if name not in found:
            found[name], imported = source_of(name)
            pending += imported
    return hashlib.sha256("".join(found[name] for name in sorted(found)).encode()).hexdigest()


@functools.cache
def source_of(module: str) -> tuple[str, list[str]]:
    """Return the source of a module, and what it imports of ours: modules, and names in them, which have no source."""
    try:
        spec = importlib.util.find_spec(module)
    except ImportError:  # a name that is no module, or a room whose optional package is missing
        return "", []
    if spec is None or spec.origin is None:
        return "", []
    source = Path(spec.origin).read_text(encoding="utf-8")
    imported = []
    for origin, names in _IMPORTS.findall(source):
        imported += [origin, *(f"{origin}.{name}" for name in re.findall(r"\w+", names))]
    return source, imported
