"""The tables of `omg-lab list`: presets, kinds, kinds of installed packages, and the options of one kind."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from omg_cmdp.documents import FileError, nearest
from omg_lab.reports.terminal import print_table, size_of
from omg_lab.studies.catalogue import DELAYS, KINDS, Kind, find_kind, first_clause
from omg_lab.studies.config import presets, unchecked_plan
from omg_lab.studies.options import REQUIRED
from omg_lab.studies.oracles import ORACLES, oracle_arguments
from omg_lab.studies.outside.folder import GROUPS, Folder, packaged

ALL: dict[str, Mapping[str, Kind]] = {**KINDS, "delays": DELAYS}


def print_kinds(console: Console) -> None:
    """List everything; nothing of other packages is imported."""
    plans = {name: unchecked_plan({"name": name, **tomllib.loads(text)}) for name, text in presets().items()}
    print_table(console, ["preset", "size", ""], [[name, size_of(p), p.description] for name, p in plans.items()])
    for title, kinds in ALL.items():
        console.print()
        print_table(console, [title, ""], [[kind.name, kind.description] for kind in kinds.values()])
    console.print()
    rows = [
        [name, part, _about(kinds[name])]
        for name in _oracle_names()
        for part, kinds in ORACLES.items()
        if name in kinds
    ]
    print_table(console, ["oracles", "of", ""], rows)
    brought = [[name, f"{group}: {value}"] for group in GROUPS for name, value in packaged(group).items()]
    if brought:
        console.print()
        print_table(console, ["of installed packages", ""], brought)


def print_kind(console: Console, name: str) -> None:
    """Print a preset, or the options of the kinds of this name; `module:Name` is imported."""
    known = presets()
    if name in known:
        console.print(known[name], markup=False, highlight=False, soft_wrap=True)
        return
    tables = [table for table, kinds in KINDS.items() if name in kinds or name in packaged(table)]
    parts = [part for part, names in ORACLES.items() if name in names]
    delays = [DELAYS[name]] if name in DELAYS else []
    if not (tables or parts or delays or ":" in name):
        everything = [*known, *(each for kinds in ALL.values() for each in kinds), *_oracle_names()]
        raise FileError(f"there is no preset or kind {name!r}; {nearest(name, everything)}")
    if not (tables or parts or delays):
        tables = ["worlds"]
    for kind in [*(find_kind(table, name, Folder(Path.cwd())) for table in tables), *delays]:
        _print_options(console, kind.options, f"{kind.name}: {kind.description}")
    for part in parts:
        title = f"{name} ({part}): {_about(ORACLES[part][name])}"
        _print_options(console, oracle_arguments(part, name), title)


def _print_options(console: Console, options: Mapping[str, Any], title: str) -> None:
    print_table(
        console, ["option", "default"], [[each, _default(value)] for each, value in options.items()], title=title
    )


def _oracle_names() -> list[str]:
    return list(dict.fromkeys(name for names in ORACLES.values() for name in names))


def _about(oracle: type | str) -> str:
    """Return the description of an oracle; an adapter is not imported for it."""
    return first_clause(oracle) if isinstance(oracle, type) else "a model of another package"


def _default(value: Any) -> str:
    return "(required)" if value is REQUIRED else "(chosen automatically)" if value is None else str(value)
