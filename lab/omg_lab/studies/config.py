"""The reader of study files: it makes a plan of a TOML file, or one error with the line and the nearest valid name.

    name = "my-study"        episodes = 3000
    seeds = 10               (or a list of numbers)
    seed = 0                 all random streams of all runs follow from it
    checkpoint = 1000        episodes between checkpoints
    propensities = false     whether states, actions, rewards and propensities are logged, for exports
    ceiling = false          whether logs say what has been lost at most
    delay = 10               episodes until an agent learns from one; or { kind = "geometric", mean = 10.0 }

    [worlds.NAME]  [adversaries.NAME]  [agents.NAME]     kind = "..." (by default NAME itself), and its options

A world may have its own `episodes` and `delay`, say which `oracles` and `return_range` all agents have in it, and the
`state_names`, `action_names` and `feature_names` there. Before a plan is returned, everything is built once, and every
agent answers a context: mistakes are found before anything runs. A kind `module:Name` is imported only because a file
that the user has named says so.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from omg_cmdp.documents import FileError, Place, nearest, plain
from omg_cmdp.mdp.environment import NAMED
from omg_cmdp.validation import positive_integer, whole_number
from omg_lab.shown import names_of
from omg_lab.studies.agents import SHARED
from omg_lab.studies.catalogue import DIGEST, Part, build_adversary, build_agent, build_delay, check_fresh, find_kind
from omg_lab.studies.options import check_options
from omg_lab.studies.outside.folder import Folder, told
from omg_lab.studies.overrides import Override, StudyDocument
from omg_lab.studies.plan import TABLES, StudyPlan, slug

SUPPLIED = ("seed", "episodes")
"""Options that a run supplies unless they are given."""
OF_WORLDS = ("episodes", "delay", *NAMED, *SHARED)
"""Options of every world."""

MOST_RUNS = 100_000
LONGEST_NAME = 60
LONGEST_FILE_NAME = 190
"""The most bytes in the name of a run without its seed; its files have up to 60 more, and file systems take 255."""
MOST_PARTS = 10**6
"""The most parts of a log, whose numbers have six digits."""
FEWEST_BETWEEN_CHECKPOINTS, MOST_CHECKPOINTS = 1000, 100


def presets() -> dict[str, str]:
    """Return the texts of the presets by name."""
    folder = resources.files("omg_lab.studies") / "presets"
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    return {Path(file.name).stem: file.read_text(encoding="utf-8") for file in files if file.name.endswith(".toml")}


def load_plan(source: str, overrides: Sequence[Override] = ()) -> StudyPlan:
    """Return the plan of a preset, or of a file."""
    known = presets()
    if source in known:
        return read_plan(known[source], overrides, name=source)
    path = Path(source)
    if path.suffix != ".toml" and not path.is_file():
        raise FileError(f"{source!r} is neither a preset nor a file; {nearest(source, known)}")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise FileError(f"{source}: {error}") from None
    return read_plan(text, overrides, name=path.stem, file=source, folder=Folder(path.resolve().parent))


def read_plan(
    text: str, overrides: Sequence[Override] = (), *, name: str = "study", file: str = "", folder: Folder | None = None
) -> StudyPlan:
    """Return the plan that `text` describes, checked."""
    document = StudyDocument(text, overrides, file or name)
    try:
        return checked_plan({"name": name, **document.content}, folder)
    except FileError as error:
        raise document.located(error) from None


def checked_plan(content: Mapping[str, Any], folder: Folder | None = None) -> StudyPlan:
    """Return the plan of a parsed configuration, after building everything in it once."""
    plan = unchecked_plan(content, folder)
    build_everything_once(plan)
    return plan


def unchecked_plan(content: Mapping[str, Any], folder: Folder | None = None) -> StudyPlan:
    """Return the plan of a parsed configuration, without trying whether its runs can be built.

    Without a `folder` it is one of stored results: what it names outside the package is not looked at.
    """
    values: dict[str, Any] = {"name": "study"}
    for key, value in content.items():
        if key not in CHECKS and key not in TABLES:
            raise FileError(f"unknown key {key!r}; {nearest(key, [*CHECKS, *TABLES])}", (key,))
        if key in CHECKS:
            with _at(key):
                values[key] = CHECKS[key](key, value)
    if "episodes" not in values:
        raise FileError("`episodes` must be given")
    usual = max(FEWEST_BETWEEN_CHECKPOINTS, -(-values["episodes"] // MOST_CHECKPOINTS))
    values |= {table: _parts(content, table, folder) for table in TABLES}
    plan = StudyPlan(**{"checkpoint": usual, **values}, folder=folder)
    _check_sizes(plan)
    runs = len(plan.seeds) * len(plan.worlds) * len(plan.adversaries) * len(plan.agents)
    if runs > MOST_RUNS:
        raise FileError(f"there must be at most {MOST_RUNS} runs, got {runs}", ("seeds",))
    return plan


@contextlib.contextmanager
def _at(*place: str) -> Iterator[None]:
    """Turn the error of a check into one about the key at this place, or about the key below it that it names."""
    try:
        yield
    except FileError as error:
        raise FileError(error.message, (*place, *error.place)) from None
    except (TypeError, ValueError) as error:
        raise FileError(str(error), place) from None


def _of(kind: type, words: str) -> Callable[[str, Any], Any]:
    def check(key: str, value: Any) -> Any:
        if not isinstance(value, kind):
            raise ValueError(f"`{key}` must be {words}, got {value!r:.60}")
        return value

    return check


_text, _switch = _of(str, "text"), _of(bool, "true or false")


def _name(key: str, value: Any) -> str:
    """Refuse a name that is no name of a file or folder, or that a terminal would obey."""
    name: str = _text(key, value)
    if not slug(name) or len(name) > LONGEST_NAME or set(name) & set("/\\\n\t") or plain(name) != name:
        rule = f"1 to {LONGEST_NAME} characters, a letter or digit among them, and no slash or control character"
        raise ValueError(f"a name must have {rule}, got {name!r:.80}")
    return name


def _seeds(key: str, value: Any) -> tuple[int, ...]:
    if type(value) is int and 0 < value <= MOST_RUNS:
        return tuple(range(value))
    listed = value if isinstance(value, list) else []
    if not listed or len(set(map(repr, listed))) < len(listed):
        raise ValueError(f"`{key}` must be a number of seeds, or a list of different ones, got {value!r:.60}")
    return tuple(whole_number(key, each) for each in listed)


def _delay(key: str, value: Any) -> Any:
    """Return how late feedback is, as the file says it, if it can be built."""
    build_delay(value)
    return value


CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "name": _name,
    "description": _text,
    "episodes": positive_integer,
    "seed": whole_number,
    "seeds": _seeds,
    "checkpoint": positive_integer,
    "propensities": _switch,
    "ceiling": _switch,
    "delay": _delay,
}
"""The keys of a study beside its tables, each with the function that checks its value, or refuses it."""


def _check_sizes(plan: StudyPlan) -> None:
    """Refuse too many checkpoints, and names that are no names of different files."""
    for world in plan.worlds:
        if world.options.get("episodes", plan.episodes) > MOST_PARTS * plan.checkpoint:
            raise FileError(f"`checkpoint` must leave at most {MOST_PARTS} checkpoints, got {plan.checkpoint}")
    longest = ""
    for table, parts in zip(TABLES, (plan.worlds, plan.adversaries, plan.agents), strict=True):
        names: dict[str, str] = {}
        for part in parts:
            first = names.setdefault(slug(part.name), part.name)
            if first != part.name:
                raise FileError(f"{part.name!r} and {first!r} would have the same file name", (table, part.name))
        longest += "--" + max(names, key=lambda name: len(name.encode()))
    if len(longest.encode()) > LONGEST_FILE_NAME:
        raise FileError(f"names must be shorter: {longest}, in a file name, has more than {LONGEST_FILE_NAME} bytes")


def _parts(content: Mapping[str, Any], table: str, folder: Folder | None) -> tuple[Part, ...]:
    entries = content.get(table, {"iid": {}} if table == "adversaries" else None)
    with _at(table):
        if not isinstance(entries, dict) or not entries:
            raise ValueError(f"there must be at least one of the {table}: add a table [{table}.NAME]")
    return tuple(_part(table, name, entry, folder) for name, entry in entries.items())


def _part(table: str, name: str, entry: Any, folder: Folder | None) -> Part:
    with _at(table, name):
        _name("name", name)
        if not isinstance(entry, dict):
            raise ValueError(f"there must be a table [{table}.{name}], got {entry!r:.60}")
        stored = folder is None and DIGEST in entry
        options = {key: value for key, value in entry.items() if key != "kind" and not (stored and key == DIGEST)}
        for key in {"episodes", "delay"} & options.keys() if table == "worlds" else ():
            with _at(key):
                CHECKS[key](key, options[key])
        named = entry.get("kind", name)
        if stored:  # what it names was checked when the study began, and is not imported now
            return Part(name=name, kind=_text("kind", named), options=options, digest=_text(DIGEST, entry[DIGEST]))
        with _at("kind"):
            known = find_kind(table, named, folder).options
        extra = dict.fromkeys(OF_WORLDS) if table == "worlds" else {}
        check_options(named, options, {**known, **extra}, supplied=SUPPLIED)
    part = Part(name=name, kind=named, options=options)
    if folder is None:
        return part
    with _blamed(table, part):
        return dataclasses.replace(part, digest=part.found_in(folder, table))


def build_everything_once(plan: StudyPlan) -> None:
    """Build every world, every adversary and agent for every world, and let each agent answer a context."""
    first = plan.tasks()[0]
    for world in plan.worlds:
        with _blamed("worlds", world):
            setting = dataclasses.replace(first, world=world).setting()
            names_of(setting.world)
        for adversary in plan.adversaries:
            with _blamed("adversaries", adversary, world):
                two = [build_adversary(adversary.kind, adversary.options, setting) for _ in range(2)]
                check_fresh("adversary", *two)
        for agent in plan.agents:
            with _blamed("agents", agent, world):
                built = build_agent(agent.kind, agent.options, setting)
                if agent.digest:  # the user's code may return one object again and again
                    other = build_agent(agent.kind, agent.options, setting)
                    check_fresh("agent", built, other)
                    check_fresh("reward oracle", built.reward_oracle, other.reward_oracle)
                    check_fresh("dynamics oracle", built.dynamics_oracle, other.dynamics_oracle)
                built.decide(setting.world.contexts[0])


def _named_in(message: str, options: Mapping[str, Any]) -> Place:
    """Return the path of the option that a message names, which may be within a table; else the empty path."""
    for name, value in options.items():
        inner = _named_in(message, value) if isinstance(value, Mapping) else ()
        if inner or f"`{name}`" in message:
            return (name, *inner)
    return ()


@contextlib.contextmanager
def _blamed(table: str, part: Part, world: Part | None = None) -> Iterator[None]:
    """Turn the error of a constructor into one about the option that it names, or about the part."""
    try:
        with np.errstate(all="ignore"):
            yield
    except Exception as error:  # of any kind: part of what is built may be the user's
        place = (table, part.name, *_named_in(str(error), part.options))
        where = "" if world is None else f" in the world {world.name!r}"
        raise FileError(f"{part.name!r}{where}: {told(error)}", place) from None
