"""Objects that remember the arguments they were made with, so that they can be shown, and made again from a file.

A *recipe* is the name of a class and its arguments, as plain values: numbers, texts, arrays, lists, dictionaries, and
the recipes of other objects. What a file cannot hold, such as a function or an object of somebody's own class, is
*missing* in it. A recipe names classes of the project's packages only, and nothing is imported for its sake.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from omg_cmdp.validation import frozen

PACKAGES = ("omg_cmdp", "omg_lab")
"""The packages whose classes a recipe may name."""
LONGEST, FEW = 60, 3
"""The longest text of an argument in a `repr`, and the longest list that is shown."""
NESTED = 8
"""How deep lists and dictionaries of an argument may be nested."""


class Missing(NamedTuple):
    """An argument that no file can hold."""

    kind: str
    """The argument in words."""
    identity: int
    """A number that is the same for the same object."""


class Recipe(NamedTuple):
    """The class and the arguments that make an object again."""

    package: str
    name: str
    """The name of its class."""
    arguments: dict[str, Any]


class _Given(NamedTuple):
    """Arguments as they were given; copies of an object share them, as nobody changes them."""

    positional: tuple[Any, ...] = ()
    named: Mapping[str, Any] = {}

    def __deepcopy__(self, memo: object) -> _Given:
        return self


class _Noting:
    _given = _Given()

    def __new__(cls, *arguments: Any, **named: Any) -> Self:
        """Return an object that is not initialised yet, with a note of its arguments."""
        made = super().__new__(cls)
        if _package(cls) in PACKAGES:
            note = _Given(tuple(map(kept, arguments)), {name: kept(each) for name, each in named.items()})
            made.__dict__["_given"] = note  # as frozen dataclasses have no other way
        return made


class Made(_Noting):
    """The base of objects that remember the arguments they were made with.

    A class needs no code for it: arguments are noted before the constructor runs, as they are then. What the caller
    does later to an array or a list that was given changes nothing.

    >>> class Fraction(Made):
    ...     def __init__(self, top, bottom=1): ...
    >>> given_arguments(Fraction(1, bottom=2))
    {'top': 1, 'bottom': 2}
    """

    def __init__(self) -> None:
        """Take no arguments; without it a class that has none of its own would seem to take any."""
        super().__init__()


def given_arguments(made: Made) -> dict[str, Any]:
    """Return the arguments that were given, by their names, as `kept` keeps them."""
    names = inspect.signature(type(made)).parameters
    return {**dict(zip(names, made._given.positional, strict=False)), **made._given.named}


def recipe(made: Made) -> Recipe:
    """Return how to make an object again, with the arguments that were given and those that were not.

    An argument that could not be noted as it was, such as a generator, is read from the attribute of its name.
    """
    arguments = given_arguments(made)
    for name, given in arguments.items():
        own = kept(getattr(made, name, None)) if isinstance(given, Missing) else None
        arguments[name] = given if own is None or any(holes(own)) else own
    for name, parameter in inspect.signature(type(made)).parameters.items():
        default = kept(parameter.default)
        if name not in arguments and not isinstance(default, Missing):  # should it change in another version
            arguments[name] = default
    return Recipe(_package(type(made)), type(made).__name__, arguments)


def kept(value: Any, depth: int = NESTED) -> Any:
    """Return `value` as a part of a recipe: a copy of what is plain, the recipe of what was made, or `Missing`.

    >>> kept([1, np.float64(2.0)]), kept(len).kind
    ([1, 2.0], 'the function len')
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is np.ndarray and value.dtype.kind in "biufU":
        return value if not value.flags.writeable and value.base is None else frozen(value.copy())
    if isinstance(value, Made) and _package(type(value)) in PACKAGES:
        return recipe(value)
    parts: list[Any] = []
    if depth and type(value) in (list, tuple):
        parts = [kept(each, depth - 1) for each in value]
        # A list of models is missing as a whole; of a list of oracles only those that are somebody's own.
        if not any(isinstance(each, Missing) for each in parts) or any(isinstance(each, Recipe) for each in parts):
            return parts if type(value) is list else tuple(parts)
    if depth and type(value) in (dict, types.MappingProxyType):
        entries = {key: kept(each, depth - 1) for key, each in value.items()}
        if not any(isinstance(each, Missing) for each in (*map(kept, entries), *entries.values())):
            return entries
    name = str(getattr(value, "__name__", ""))
    kind = f"the function {name}" if name and callable(value) else f"of class {type(value).__name__}"
    kind = "a function" if name == "<lambda>" else kind
    return Missing(kind, id(value))


def walk(part: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every part of a recipe with its path, such as "reward_oracle__features"; the whole has none."""
    yield path, part
    inner: Iterable[tuple[Any, Any]] = ()
    if isinstance(part, Recipe):
        inner = part.arguments.items()
    elif isinstance(part, dict):
        inner = part.items()
    elif type(part) in (list, tuple):
        inner = enumerate(part)
    for name, each in inner:
        yield from walk(each, f"{path}__{name}" if path else str(name))


def holes(part: Any) -> Iterator[tuple[str, Missing]]:
    """Yield what is missing in a recipe, or a part of one, with its path."""
    return ((path, each) for path, each in walk(part) if isinstance(each, Missing))


def shown_arguments(made: Made, leave_out: Sequence[str] = ()) -> str:
    """Return the arguments of an object for its `repr`, shortened; those that are None are left out."""
    return _shown({name: each for name, each in recipe(made).arguments.items() if name not in leave_out})


def episodes_in_words(count: int) -> str:
    """Return "1 episode", or "2 episodes"."""
    return f"{count} episode{'' if count == 1 else 's'}"


def _shown(arguments: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={_short(each)}" for name, each in arguments.items() if each is not None)


def _short(part: Any) -> str:
    if isinstance(part, np.ndarray):
        return f"array {part.shape}"
    if isinstance(part, Missing):
        return f"<{part.kind}>"
    if isinstance(part, Recipe):
        inner = _shown(part.arguments)
        return f"{part.name}({inner if len(inner) <= LONGEST else '...'})"
    if isinstance(part, (list, tuple, dict)) and (len(part) > FEW or any(isinstance(each, Recipe) for each in part)):
        return f"{type(part).__name__} of {len(part)}"
    text = repr(part)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _package(kind: type) -> str:
    return kind.__module__.partition(".")[0]
