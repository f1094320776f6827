"""From a TOML file to a plan, or to one error that names the line and the nearest valid name.

    name = "my-study"        episodes = 3000
    seeds = 10               (or a list of numbers)
    seed = 0                 all random streams of all runs follow from it
    checkpoint = 1000        episodes between checkpoints
    propensities = false     whether states, actions, rewards and propensities are logged, for exports

    [worlds.NAME]  [adversaries.NAME]  [agents.NAME]     kind = "..." (by default NAME itself), and its options

    [vary]                   for rates: every world in other sizes, one size at a time
    H = [2, 4, 8]            T, S, A or H, and its values; [] stands for values around each world's own

A world may have its own `episodes`. Before a plan is returned, every world, adversary and agent is built once, and
every agent answers one context: what cannot run is refused before anything runs.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from omg_cmdp.studies.catalogue import KINDS, Part, build_adversary, build_agent, nearest
from omg_cmdp.studies.document import Document, Override, Place, StudyError
from omg_cmdp.studies.options import REQUIRED
from omg_cmdp.studies.plan import TABLES, Plan, slug
from omg_cmdp.studies.variations import SIZES, option_of
from omg_cmdp.validation import positive_integer

KEYS = ("name", "description", "episodes", "seed", "seeds", "checkpoint", "propensities", "vary", *TABLES)
SUPPLIED = ("seed", "episodes")
"""Options that a run supplies unless they are given."""

MOST_RUNS = 100_000
LONGEST_NAME = 60
FEWEST_BETWEEN_CHECKPOINTS, MOST_CHECKPOINTS = 1000, 100


def presets() -> dict[str, str]:
    """Return the texts of the presets by name."""
    folder = resources.files("omg_cmdp.studies") / "presets"
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    return {Path(file.name).stem: file.read_text(encoding="utf-8") for file in files if file.name.endswith(".toml")}


def load_plan(source: str, overrides: Sequence[Override] = (), *, vary: Sequence[str] = ()) -> Plan:
    """Return the plan of a preset, or of a file."""
    known = presets()
    if source in known:
        return read_plan(known[source], overrides, name=source, vary=vary)
    path = Path(source)
    if path.suffix != ".toml" and not path.is_file():
        raise StudyError(f"{source!r} is neither a preset nor a file; {nearest(source, known)}")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise StudyError(f"{source}: {error}") from None
    return read_plan(text, overrides, name=path.stem, file=source, vary=vary)


def read_plan(
    text: str,
    overrides: Sequence[Override] = (),
    *,
    name: str = "study",
    file: str = "",
    vary: Sequence[str] = (),
) -> Plan:
    """Return the plan that `text` describes, checked. If `vary` is given, only these sizes are varied."""
    document = Document(text, overrides, file or name)
    if vary:
        document.vary_only(vary)
    return checked_plan({"name": name, **document.content}, document.refuse)


Refuse = Callable[[Place, str], StudyError]


def plain_refusal(path: Place, message: str) -> StudyError:
    """Return the error about a key of a configuration that does not come from a file."""
    return StudyError(f"{'.'.join(path)}: {message}" if path else message)


def checked_plan(content: Mapping[str, Any], refuse: Refuse = plain_refusal) -> Plan:
    """Return the plan of a parsed configuration, after building everything in it once."""
    plan = unchecked_plan(content, refuse)
    _build_everything_once(plan, refuse)
    return plan


def unchecked_plan(content: Mapping[str, Any], refuse: Refuse = plain_refusal) -> Plan:
    """Return the plan of a parsed configuration, without trying whether its runs can be built."""
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
        vary=_vary(content, refuse),
    )
    _check_sizes(plan, refuse)
    runs = len(plan.seeds) * len(plan.sized_worlds()) * len(plan.adversaries) * len(plan.agents)
    if runs > MOST_RUNS:
        raise refuse(("seeds",), f"there must be at most {MOST_RUNS} runs, got {runs}")
    return plan


def _text(content: Mapping[str, Any], key: str, refuse: Refuse) -> str:
    value = content.get(key, "")
    if not isinstance(value, str):
        raise refuse((key,), f"`{key}` must be text, got {value!r}")
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
        raise refuse(
            ("seeds",), f"`seeds` must be a number of seeds, or a list of different numbers, got {value!r:.60}"
        )
    return tuple(listed)


def _vary(content: Mapping[str, Any], refuse: Refuse) -> dict[str, tuple[int, ...]]:
    table = content.get("vary", {})
    if not isinstance(table, dict):
        raise refuse(("vary",), f"there must be a table [vary], got {table!r:.60}")
    for size, values in table.items():
        if size not in SIZES:
            raise refuse(("vary", size), f"there is no size {size!r}; there are {', '.join(SIZES)}")
        listed = values if isinstance(values, list) else [None]
        if any(type(each) is not int or each < 1 for each in listed) or not len(set(listed)) == len(listed) != 1:
            rule = "must be [], or two or more different integers of at least 1"
            raise refuse(("vary", size), f"`{size}` {rule}, got {values!r:.60}")
    return {size: tuple(values) for size, values in table.items()}


def _check_sizes(plan: Plan, refuse: Refuse) -> None:
    """Refuse sizes that a world does not have, and worlds that would have the same file names."""
    for world, size in itertools.product(plan.worlds, plan.vary):
        if option_of(world.kind, size) is None:
            raise refuse(("vary", size), f"the world {world.name!r} has no size {size} that can be varied")
    names = [slug(world.name) for world in plan.sized_worlds()]
    if len(set(names)) < len(names):
        raise refuse(("vary",), "two worlds would have the same file name")


def _parts(content: Mapping[str, Any], table: str, refuse: Refuse) -> tuple[Part, ...]:
    entries = content.get(table)
    if not isinstance(entries, dict) or not entries:
        path = (table,) if table in content else ()
        raise refuse(path, f"there must be at least one table [{table}.NAME], got {entries!r:.60}")
    parts = tuple(_part(table, name, entry, refuse) for name, entry in entries.items())
    places: dict[str, str] = {}
    for part in parts:
        if not slug(part.name) or len(part.name) > LONGEST_NAME:
            raise refuse((table, part.name), f"a name must have 1 to {LONGEST_NAME} letters or digits")
        if places.setdefault(slug(part.name), part.name) != part.name:
            raise refuse(
                (table, part.name), f"{part.name!r} and {places[slug(part.name)]!r} would have the same file name"
            )
    return parts


def _part(table: str, name: str, entry: Any, refuse: Refuse) -> Part:
    if not isinstance(entry, dict):
        raise refuse((table, name), f"there must be a table [{table}.{name}], got {entry!r:.60}")
    options = dict(entry)
    named = options.pop("kind", name)
    if not isinstance(named, str) or named not in KINDS[table]:
        place = (table, name, "kind") if "kind" in entry else (table, name)
        raise refuse(place, f"[{table}] has no kind {named!r:.60}; {nearest(str(named), KINDS[table])}")
    known = {**KINDS[table][named].options, **({"episodes": None} if table == "worlds" else {})}
    if table == "worlds" and "episodes" in options:
        with _blamed((table, Part(name=name, kind=named, options=options)), None, refuse):
            positive_integer("episodes", options["episodes"])
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
    for world in plan.sized_worlds():
        with _blamed(("worlds", world), None, refuse):
            setting = plan.task(world, first.adversary, first.agent, first.seed).setting()
        for adversary in plan.adversaries:
            with _blamed(("adversaries", adversary), world, refuse):
                build_adversary(adversary.kind, adversary.options, setting)
        for agent in plan.agents:
            with _blamed(("agents", agent), world, refuse):
                build_agent(agent.kind, agent.options, setting).decide(setting.world.contexts[0])


@contextlib.contextmanager
def _blamed(culprit: tuple[str, Part], world: Part | None, refuse: Refuse) -> Iterator[None]:
    """Turn the error of a constructor into one about the option that it names, or about the part."""
    table, part = culprit
    try:
        with np.errstate(all="ignore"):
            yield
    except (ArithmeticError, LookupError, MemoryError, NotImplementedError, TypeError, ValueError) as error:
        option = next((name for name in part.options if f"`{name}`" in str(error)), None)
        path = (table, part.name) if option is None else (table, part.name, option)
        place = "" if world is None else f" in the world {world.name!r}"
        raise refuse(path, f"{part.name!r}{place}: {error}") from None
