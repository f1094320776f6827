"""The tables of `omg-lab list`: presets, kinds, and the options of one kind."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from omg_cmdp.documents import FileError, nearest
from omg_lab.reports.terminal import print_table, size_of
from omg_lab.studies.catalogue import DELAYS, KINDS, find_kind
from omg_lab.studies.config import presets, unchecked_plan
from omg_lab.studies.options import REQUIRED, Kind, first_clause
from omg_lab.studies.oracles import ORACLES, oracle_arguments
from omg_lab.studies.outside.folder import Folder

ALL: dict[str, Mapping[str, Kind]] = {**KINDS, "delays": DELAYS}


def print_kinds(console: Console) -> None:
    """List everything."""
    plans = {name: unchecked_plan({"name": name, **tomllib.loads(text)}) for name, text in presets().items()}
    print_table(console, ["preset", "size", ""], [[name, size_of(p), p.description] for name, p in plans.items()])
    shown = {title: {name: kind.description for name, kind in kinds.items()} for title, kinds in ALL.items()}
    for part, oracles in ORACLES.items():
        shown[f"oracles of {part}"] = {name: first_clause(oracle) for name, oracle in oracles.items()}
    for title, descriptions in shown.items():
        console.print()
        print_table(console, [title, ""], list(descriptions.items()))


def print_kind(console: Console, name: str) -> None:
    """Print a preset, or the options of the kinds of this name; `module:Name` is imported."""
    known = presets()
    if name in known:
        console.print(known[name], markup=False, highlight=False, soft_wrap=True)
        return
    found = [kinds[name] for kinds in ALL.values() if name in kinds]
    options = {f"{name}: {kind.description}": kind.options for kind in found}
    for part in (each for each in ORACLES if name in ORACLES[each]):
        options[f"{name} ({part}): {first_clause(ORACLES[part][name])}"] = oracle_arguments(part, name)
    if not options and ":" in name:
        kind = find_kind("worlds", name, Folder(Path.cwd()))
        options[f"{name}: {kind.description}"] = kind.options
    if not options:
        everything = [*known, *(each for kinds in (*ALL.values(), *ORACLES.values()) for each in kinds)]
        raise FileError(f"there is no preset or kind {name!r}; {nearest(name, everything)}")
    for title, each in options.items():
        print_table(
            console, ["option", "default"], [[key, _default(value)] for key, value in each.items()], title=title
        )


def _default(value: Any) -> str:
    return "(required)" if value is REQUIRED else "(chosen automatically)" if value is None else str(value)
