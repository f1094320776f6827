"""From the text of a TOML file to a plan, or to one error that names the line and the nearest valid name.

    name = "my-study"        episodes = 3000
    seeds = 10               (or a list of numbers)
    seed = 0                 from which all streams of all runs follow
    checkpoint = 1000        episodes between checkpoints
    propensities = false     whether states, actions, rewards and propensities are logged, for exports

    [worlds.NAME]  [adversaries.NAME]  [agents.NAME]     kind = "..." (by default NAME itself), and its options

Everything that a run needs is built once before a plan is returned, and every agent answers one context.
"""

from __future__ import annotations

import contextlib
import dataclasses
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from omg_cmdp.experiments.contestants import AGENTS
from omg_cmdp.experiments.kinds import REQUIRED, Kind, nearest
from omg_cmdp.experiments.plan import TABLES, Part, Plan, slug
from omg_cmdp.experiments.registry import ADVERSARIES, WORLDS, build_adversary, build_agent
from omg_cmdp.validation import positive_integer

KEYS = ("name", "description", "episodes", "seed", "seeds", "checkpoint", "propensities", *TABLES)
KINDS: dict[str, Mapping[str, Kind]] = {"worlds": WORLDS, "adversaries": ADVERSARIES, "agents": AGENTS}
SUPPLIED = ("seed", "episodes")
"""Options that a run supplies if they are not given."""

MOST_RUNS = 100_000
LONGEST_NAME = 60
FEWEST_BETWEEN_CHECKPOINTS, MOST_CHECKPOINTS = 1000, 100

Place = tuple[str, ...]
"""The path of a key."""


class ConfigurationError(ValueError):
    """What is wrong with a configuration, and where."""


class Override(NamedTuple):
    """A value from elsewhere than the file: a dotted path, the value as TOML or plain text, and what asked for it."""

    path: str
    value: str
    asked: str


def presets() -> dict[str, str]:
    """Return the texts of the presets by name."""
    folder = resources.files("omg_cmdp.experiments") / "presets"
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    return {Path(file.name).stem: file.read_text(encoding="utf-8") for file in files if file.name.endswith(".toml")}


def load_plan(source: str, overrides: Sequence[Override] = ()) -> Plan:
    """Return the plan of a preset, or of a file."""
    known = presets()
    if source in known:
        return read_plan(known[source], overrides, name=source)
    path = Path(source)
    if path.suffix != ".toml" and not path.is_file():
        raise ConfigurationError(f"{source!r} is neither a preset nor a file; {nearest(source, known)}")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{source}: {error}") from None
    return read_plan(text, overrides, name=path.stem, file=source)


def read_plan(text: str, overrides: Sequence[Override] = (), *, name: str = "experiment", file: str = "") -> Plan:
    """Return the plan that `text` describes, checked."""
    document = _Document(text, overrides, file or name)
    return checked_plan({"name": name, **document.content}, document.refuse)


Refuse = Callable[[Place, str], ConfigurationError]


def plain_refusal(path: Place, message: str) -> ConfigurationError:
    """Return the error for a configuration that is no file."""
    return ConfigurationError(f"{'.'.join(path)}: {message}" if path else message)


def checked_plan(content: Mapping[str, Any], refuse: Refuse = plain_refusal) -> Plan:
    """Return the plan of a configuration that was parsed."""
    for key in content:
        if key not in KEYS:
            raise refuse((key,), f"unknown key {key!r}; {nearest(key, KEYS)}")
    numbers = {key: _integer(content, key, refuse) for key in ("episodes", "checkpoint") if key in content}
    if "episodes" not in numbers:
        raise refuse((), "`episodes` must be given")
    plan = Plan(
        name=_text(content, "name", refuse),
        description=_text(content, "description", refuse),
        episodes=numbers["episodes"],
        seed=_seed(content, refuse),
        seeds=_seeds(content.get("seeds", 1), refuse),
        checkpoint=numbers.get(
            "checkpoint", max(FEWEST_BETWEEN_CHECKPOINTS, -(-numbers["episodes"] // MOST_CHECKPOINTS))
        ),
        propensities=_flag(content, "propensities", refuse),
        worlds=_parts(content, "worlds", refuse),
        adversaries=_parts({"adversaries": {"iid": {}}} | dict(content), "adversaries", refuse),
        agents=_parts(content, "agents", refuse),
    )
    runs = len(plan.seeds) * len(plan.worlds) * len(plan.adversaries) * len(plan.agents)
    if runs > MOST_RUNS:
        raise refuse(("seeds",), f"there must be at most {MOST_RUNS} runs, got {runs}")
    _build_everything_once(plan, refuse)
    return plan


def _text(content: Mapping[str, Any], key: str, refuse: Refuse) -> str:
    value = content.get(key, "")
    if not isinstance(value, str):
        raise refuse((key,), f"`{key}` must be a text, got {value!r}")
    return value


def _flag(content: Mapping[str, Any], key: str, refuse: Refuse) -> bool:
    value = content.get(key, False)
    if not isinstance(value, bool):
        raise refuse((key,), f"`{key}` must be true or false, got {value!r}")
    return value


def _integer(content: Mapping[str, Any], key: str, refuse: Refuse) -> int:
    try:
        return positive_integer(key, content[key])
    except ValueError as error:
        raise refuse((key,), str(error)) from None


def _seed(content: Mapping[str, Any], refuse: Refuse) -> int:
    value = content.get("seed", 0)
    if type(value) is not int or value < 0:
        raise refuse(("seed",), f"`seed` must be an integer of at least 0, got {value!r}")
    return value


def _seeds(value: Any, refuse: Refuse) -> tuple[int, ...]:
    if type(value) is int and 0 < value <= MOST_RUNS:
        return tuple(range(value))
    listed = value if isinstance(value, list) else []
    if not listed or any(type(each) is not int or each < 0 for each in listed) or len(set(listed)) < len(listed):
        raise refuse(("seeds",), f"`seeds` must be their number, or a list of different numbers, got {value!r:.60}")
    return tuple(listed)


def _parts(content: Mapping[str, Any], table: str, refuse: Refuse) -> tuple[Part, ...]:
    entries = content.get(table)
    if not isinstance(entries, dict) or not entries:
        path = (table,) if table in content else ()
        raise refuse(path, f"there must be a table [{table}.NAME] at least, got {entries!r:.60}")
    parts = tuple(_part(table, name, entry, refuse) for name, entry in entries.items())
    places: dict[str, str] = {}
    for part in parts:
        if not slug(part.name) or len(part.name) > LONGEST_NAME:
            raise refuse((table, part.name), f"a name must have 1 to {LONGEST_NAME} letters or digits")
        if places.setdefault(slug(part.name), part.name) != part.name:
            raise refuse((table, part.name), f"{part.name!r} and {places[slug(part.name)]!r} would be the same file")
    return parts


def _part(table: str, name: str, entry: Any, refuse: Refuse) -> Part:
    if not isinstance(entry, dict):
        raise refuse((table, name), f"there must be a table [{table}.{name}], got {entry!r:.60}")
    options = dict(entry)
    named = options.pop("kind", name)
    if not isinstance(named, str) or named not in KINDS[table]:
        place = (table, name, "kind") if "kind" in entry else (table, name)
        raise refuse(place, f"there is no {table} kind {named!r:.60}; {nearest(str(named), KINDS[table])}")
    known = KINDS[table][named].options
    for option in options:
        if option not in known:
            raise refuse((table, name, option), f"{named!r} has no option {option!r}; {nearest(option, known)}")
    for option, default in known.items():
        if default is REQUIRED and option not in options and option not in SUPPLIED:
            raise refuse((table, name), f"{named!r} needs the option {option!r}")
    return Part(name=name, kind=named, options=options)


def _build_everything_once(plan: Plan, refuse: Refuse) -> None:
    """Build every world, every adversary and agent for every world, and let each agent answer a context."""
    first = plan.tasks()[0]
    for world in plan.worlds:
        with _blamed(("worlds", world), None, refuse):
            setting = dataclasses.replace(first, world=world).setting()
        for adversary in plan.adversaries:
            with _blamed(("adversaries", adversary), world, refuse):
                build_adversary(adversary.kind, adversary.options, setting)
        for agent in plan.agents:
            with _blamed(("agents", agent), world, refuse):
                build_agent(agent.kind, agent.options, setting).decide(setting.world.contexts[0])


@contextlib.contextmanager
def _blamed(culprit: tuple[str, Part], world: Part | None, refuse: Refuse) -> Iterator[None]:
    """Turn what a constructor says into an error about the option that it names, or about the part."""
    table, part = culprit
    try:
        with np.errstate(all="ignore"):
            yield
    except (ArithmeticError, LookupError, MemoryError, NotImplementedError, TypeError, ValueError) as error:
        option = next((name for name in part.options if f"`{name}`" in str(error)), None)
        path = (table, part.name) if option is None else (table, part.name, option)
        place = "" if world is None else f" in the world {world.name!r}"
        raise refuse(path, f"{part.name!r}{place}: {error}") from None


class _Document:
    """The content of a file, with overrides, and where in it everything stands."""

    def __init__(self, text: str, overrides: Sequence[Override], file: str) -> None:
        self.file = file
        try:
            self.content: dict[str, Any] = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise ConfigurationError(f"{file}: {error}") from None
        self._places = {path: f"line {number}" for path, number in _lines(text)}
        for override in overrides:
            self._apply(override)

    def refuse(self, path: Place, message: str) -> ConfigurationError:
        """Return the error for what stands at `path`, or as near to it as is known."""
        near = (path[:end] for end in range(len(path), 0, -1))
        place = next((self._places[each] for each in near if each in self._places), None)
        return ConfigurationError(", ".join([self.file, *([place] if place else [])]) + f": {message}")

    def _apply(self, override: Override) -> None:
        path = tuple(override.path.split("."))
        if not all(path):
            raise ConfigurationError(f"{override.asked}: {override.path!r} must be names with dots between them")
        table = self.content
        for key in path[:-1]:
            table = table.setdefault(key, {})
            if not isinstance(table, dict):
                raise ConfigurationError(f"{override.asked}: {key!r} is no table")
        try:
            table[path[-1]] = tomllib.loads(f"value = {override.value}")["value"]
        except (tomllib.TOMLDecodeError, RecursionError):
            table[path[-1]] = override.value  # a text without quotes
        self._places[path] = override.asked


def _lines(text: str) -> list[tuple[Place, int]]:
    """Return the path of every key that stands at the beginning of a line. (tomllib does not tell.)"""
    found: list[tuple[Place, int]] = []
    table: Place = ()
    for number, line in enumerate(text.splitlines(), start=1):
        left, equals, _ = line.partition("=")
        header = line.lstrip().startswith("[")
        try:
            inner = _only_path(tomllib.loads(line if header else f"{left}=0")) if header or equals else ()
        except (tomllib.TOMLDecodeError, RecursionError):
            continue  # the inside of a value of many lines
        table = inner if header else table
        if inner:
            found.append((inner if header else (*table, *inner), number))
    return found


def _only_path(content: Any) -> Place:
    path: Place = ()
    while isinstance(content, dict) and content:
        ((key, content),) = content.items()
        path = (*path, key)
    return path
