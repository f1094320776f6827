"""Load an agent from a file alone: `omg_cmdp.load`."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from typing import Any

from omg_cmdp.agents.agent import Agent
from omg_cmdp.mdp.space import Space
from omg_cmdp.oracles.base import DynamicsOracle
from omg_cmdp.persistence import AGENT_FILE, read_arrays
from omg_cmdp.recipes.files import unpack_recipe, without_recipe
from omg_cmdp.recipes.recipe import PACKAGES, Made, Missing, Recipe, holes, walk
from omg_cmdp.validation import UNEXPECTED, file_path

LEAST_ROOM, LEAST_SPACE, ROOM = 2**23, 2**27, 2**12
"""Numbers that an oracle, and a policy, may have with any file; beyond these, how many times those in the file.

An oracle saves what it learns, so that an honest file is seldom much smaller. Adapters are the exception: their tables
have S times the numbers that they save, once for each copy of the model.
"""


def load(path: str | os.PathLike[str], **parts: Any) -> Agent:
    """Return the agent that was saved in a file, as it was: it continues bit for bit.

    Space, oracles, features, ranges and settings are in the file, for all classes of this package, and for those of
    `omg_lab` if it is imported. Functions, models of other packages and objects of your own classes are not: give them
    again, by the names that an error lists. Nothing in the file is run, and no module is imported for it.

    Parameters
    ----------
    path : str or path
        A file that `Agent.save` wrote.
    **parts
        The missing parts by name, such as `features=...`, `gamma=...` or `reward_oracle=...`. A name alone fills every
        argument of that name; a name with its place before it, `reward_oracle__features=...`, fills that one. An oracle
        should be given as it was before it learned: what it had learned is loaded from the file.

    Returns
    -------
    Agent
        The agent, with everything that it had learned.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import omg_cmdp as omg
    >>> sizes = {"states": 1, "actions": 2, "horizon": 1}
    >>> agent = omg.OMG(omg.Space(**sizes), omg.oracles.CountRewards(**sizes), omg.oracles.CountDynamics(**sizes))
    >>> agent.update(omg.Trajectory(context=None, states=[0, 0], actions=[1], rewards=[1.0]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     agent.save(pathlib.Path(folder) / "agent.npz")
    ...     again = omg.load(pathlib.Path(folder) / "agent.npz")
    >>> again.episodes_seen, bool((again.policy(None) == agent.policy(None)).all())
    (1, True)
    """
    path = file_path(path)
    arrays = read_arrays(path, **AGENT_FILE)
    try:
        recipe = unpack_recipe(arrays)
    except ValueError as error:
        raise ValueError(f"`path` must be a saved agent, got {os.fspath(path)} with {error}") from None
    if isinstance(recipe, Missing):
        advice = "make it as before, and call its method `restore`"
        raise ValueError(f"{os.fspath(path)} holds an agent {recipe.kind}, which is not of this package: {advice}")
    _check_parts(recipe, parts, os.fspath(path))
    try:
        made = [each for place, each in walk(recipe) if isinstance(each, Recipe) and not _given(place, place, parts)]
        _check_sizes(made, sum(array.size for array in arrays.values()))
        agent = _build(recipe, parts)
        if not isinstance(agent, Agent):
            raise ValueError(f"it holds a {recipe.name}")
    except MemoryError:
        raise ValueError(f"{os.fspath(path)} asks for more memory than there is") from None
    except (*UNEXPECTED, ImportError, ValueError) as error:
        raise ValueError(f"cannot make the agent in {os.fspath(path)}: {error}") from error
    agent.load_state(without_recipe(arrays))
    return agent


def _check_parts(recipe: Recipe, parts: dict[str, Any], file: str) -> None:
    """Raise unless `parts` are parts of the agent, and all that is missing is among them."""
    missing = dict(holes(recipe))
    keywords = {path: _keyword(path, missing) for path in missing}
    places = [path for path, _ in walk(recipe)]
    if unknown := [name for name in parts if name not in {*keywords.values(), *places}]:
        known = ", ".join(dict.fromkeys([*keywords.values(), *recipe.arguments]))
        raise ValueError(f"`{unknown[0]}` is no part of the {recipe.name} in {file}; its parts are {known}")
    wanted = {keywords[path]: hole.kind for path, hole in missing.items() if not _given(path, keywords[path], parts)}
    if wanted:
        told = ", ".join(f"`{name}` ({kind})" for name, kind in wanted.items())
        call = ", ".join(f"{name}=..." for name in wanted)
        rule = f"needs parts that a file cannot hold: {told}. Pass the same as before: omg_cmdp.load(path, {call})"
        raise ValueError(f"the {recipe.name} in {file} {rule}")


def _keyword(path: str, missing: dict[str, Missing]) -> str:
    """Return the keyword of a missing part: the name of its argument, or its path if there are several of that name."""
    name = path.rpartition("__")[2]
    same = {each.identity for other, each in missing.items() if other.rpartition("__")[2] == name}
    return path if len(same) > 1 or name.isdigit() else name


def _given(path: str, keyword: str, parts: dict[str, Any]) -> bool:
    """Return whether a part, or one that it is inside of, is given."""
    names = path.split("__")
    return keyword in parts or any("__".join(names[:count]) in parts for count in range(1, len(names) + 1))


def _build(part: Any, parts: dict[str, Any], path: str = "") -> Any:
    """Return what a part of a recipe stands for."""
    if path in parts:
        return parts[path]

    def inner(name: object, each: Any) -> Any:
        return _build(each, parts, f"{path}__{name}" if path else str(name))

    if isinstance(part, Missing):
        return parts[path.rpartition("__")[2]]
    if isinstance(part, Recipe):
        return _class(part)(**{name: inner(name, each) for name, each in part.arguments.items()})
    if type(part) in (list, tuple):
        return type(part)(inner(number, each) for number, each in enumerate(part))
    return {key: inner(key, each) for key, each in part.items()} if isinstance(part, dict) else part


def _class(recipe: Recipe) -> type[Made]:
    """Return the class that a recipe names, if it is one of ours and is imported."""
    for kind in _subclasses(Made):
        if kind.__name__ == recipe.name and kind.__module__.partition(".")[0] == recipe.package in PACKAGES:
            return kind
    known = recipe.package in PACKAGES[1:]
    advice = f"import {recipe.package} first, if you have it" if known else "it may be of another version"
    raise ValueError(f"the class {recipe.name!r:.60} of {recipe.package!r:.60} is not known here; {advice}")


def _subclasses(kind: type[Made]) -> Iterator[type[Made]]:
    for each in kind.__subclasses__():
        yield each
        yield from _subclasses(each)


def _check_sizes(recipes: Iterable[Recipe], count: int) -> None:
    """Raise if an object would take much more memory than the `count` numbers in its file account for."""
    for part in recipes:
        kind = _class(part)
        sizes = {name: each for name, each in part.arguments.items() if type(each) is int and name not in _COUNTS}
        if issubclass(kind, DynamicsOracle):
            sizes["next states"] = sizes.get("states", 1)
        if issubclass(kind, Space):
            sizes["horizon"] = part.arguments.get("horizon", 1)
        if not part.arguments.get("shared"):  # matrices over the features, one for each pair
            sizes |= {f"{name} again": sizes[name] for name in ("dimension", "bases") if name in sizes}
        needed = math.prod(max(1, each) for each in sizes.values() if type(each) is int)
        if needed > max(LEAST_SPACE if issubclass(kind, Space) else LEAST_ROOM, ROOM * count):
            told = ", ".join(f"{name} {each}" for name, each in sizes.items())
            raise ValueError(f"a {part.name} with {told} does not fit the {count} numbers in the file")


_COUNTS = ("seed", "horizon", "episodes", "draws", "every")
"""Whole numbers that are no sizes of tables."""
