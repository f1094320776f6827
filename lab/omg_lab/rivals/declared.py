"""Rivals declare what they are made with, as fields; constructor, checks and `settings` follow from these.

    class Boltzmann(ModelRival):
        gamma: Option[Tuned, Schedule] = Option(schedule, Power(1.0, 0.5))

is an agent with the arguments `space`, `reward_oracle`, `dynamics_oracle`, `gamma`, and by keyword `reward_range` and
`return_range`. What else it needs is made in `__post_init__`.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar, dataclass_transform, get_args, get_origin, overload

from numpy.typing import NDArray

from omg_cmdp.agents.base import Learner, ModelAgent
from omg_cmdp.agents.exploration.schedules import Schedule, Tuned
from omg_cmdp.mdp.space import Space
from omg_cmdp.mdp.trajectory import Trajectory
from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.oracles.witnesses import Source, Witnesses
from omg_cmdp.persistence import State, numbers, part_of
from omg_cmdp.validation import FloatArray, instance_of, positive_number, real_number, seed_number

Given = TypeVar("Given")
Kept = TypeVar("Kept")


class Option(Generic[Given, Kept]):
    """An argument of a rival that is one of its settings: checked whenever it is set, and kept as the check returns it.

    Parameters
    ----------
    check : function
        From the argument's name and value to what is kept; raises for a value that is refused.
    default : optional
        Without it the argument is required.
    """

    def __init__(self, check: Callable[[str, Any], Kept], *default: Given) -> None:
        self._check, self._default, self._name = check, default, ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, rival: None, owner: type) -> Given: ...

    @overload
    def __get__(self, rival: object, owner: type) -> Kept: ...

    def __get__(self, rival: object | None, owner: type) -> Given | Kept:
        if rival is not None:
            kept: Kept = rival.__dict__[self._name]
            return kept
        if not self._default:  # by this a dataclass sees that there is none
            raise AttributeError(f"`{self._name}` has no default")
        return self._default[0]

    def __set__(self, rival: object, value: Given) -> None:
        rival.__dict__[self._name] = self._check(self._name, value)


def schedule(name: str, value: Tuned) -> Schedule:
    """Return a number, or a function of the episode, as a schedule."""
    return Schedule(value, name)


def seed_value(name: str, value: int) -> int:
    """Return a seed, of any size."""
    return seed_number(value)


def flag(name: str, value: bool) -> bool:
    """Return True or False."""
    instance_of(name, value, bool)
    return value


def finite(name: str, value: float) -> float:
    """Return a finite number of at least 0."""
    found = real_number(value)
    if not 0.0 <= found < math.inf:
        raise ValueError(f"`{name}` must be a finite number of at least 0, got {value!r}")
    return found


def numbers_of(count: int) -> Callable[[str, Any], tuple[float, ...]]:
    """Return a check for `count` positive numbers."""

    def check(name: str, value: Any) -> tuple[float, ...]:
        if not isinstance(value, tuple | list) or len(value) != count:
            raise ValueError(f"`{name}` must be {count} positive numbers, got {value!r:.60}")
        return tuple(positive_number(name, each) for each in value)

    return check


def optional(check: Callable[[str, Any], Kept]) -> Callable[[str, Any], Any]:
    """Return a check that lets None pass."""
    return lambda name, value: None if value is None else check(name, value)


def _in_signature(hint: Any) -> Any:
    """Return the type of what is given for an option; any other annotation as it is."""
    origin: Any = get_origin(hint)
    return get_args(hint)[0] if origin is Option else hint


@dataclass_transform(field_specifiers=(dataclasses.field,))
class _Declared:
    """Makes a dataclass of every class that derives from it; agents are compared by identity."""

    settings: ClassVar[tuple[str, ...]]
    derived: ClassVar[tuple[str, ...]] = ()
    """Settings that are no options, but made of other arguments."""

    def __init_subclass__(cls) -> None:
        hints = inspect.get_annotations(cls, eval_str=True)
        cls.__annotations__ = {name: _in_signature(hint) for name, hint in hints.items()}
        dataclasses.dataclass(eq=False, repr=False)(cls)
        names = [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]
        options = [name for name in names if isinstance(inspect.getattr_static(cls, name, None), Option)]
        cls.settings = (*options, *cls.derived)


class Rival(_Declared, Learner):
    """A rival with a model of its own; `learned` names the arrays that are saved: "counts" is `_counts`."""

    space: Space
    _: dataclasses.KW_ONLY
    reward_range: tuple[float, float] = (0.0, 1.0)
    return_range: tuple[float, float] | None = None

    learned: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        Learner.__init__(self, self.space, reward_range=self.reward_range, return_range=self.return_range)

    def _sources(self) -> dict[str, Source]:
        """Return the functions of contexts among the arguments, which a saved state must know again, by their names."""
        return {}

    @functools.cached_property
    def _witnesses(self) -> dict[str, Witnesses]:
        return {name: Witnesses(source) for name, source in self._sources().items()}

    def _witness(self, trajectory: Trajectory) -> None:
        """Note what the functions of contexts say where an episode was learned."""
        for each in self._witnesses.values():
            each.learn(trajectory.known)

    def _learned(self) -> dict[str, NDArray[Any]]:
        own = {name: getattr(self, f"_{name}").copy() for name in self.learned}
        seen = {name: each.state() for name, each in self._witnesses.items()}
        return {**own, **{f"{name}/{key}": text for name, texts in seen.items() for key, text in texts.items()}}

    def _load_learned(self, state: State, episodes: int) -> None:
        arrays = self._read(state, episodes)
        found = {name: each.check(part_of(state, name)) for name, each in self._witnesses.items()}
        for name, array in arrays.items():
            setattr(self, f"_{name}", array)
        for name, each in self._witnesses.items():
            each.load(found[name])

    def _read(self, state: State, episodes: int) -> dict[str, FloatArray]:
        """Return the arrays that were saved, checked; nothing changes."""
        return {name: numbers(name, state, getattr(self, f"_{name}").shape) for name in self.learned}


class ModelRival(Rival, ModelAgent):
    """A rival with two oracles, of the kinds that `needs` says."""

    reward_oracle: RewardOracle = dataclasses.field()  # required, though every agent has None
    dynamics_oracle: DynamicsOracle = dataclasses.field()

    needs: ClassVar[tuple[type, type]] = RewardOracle, DynamicsOracle

    def __post_init__(self) -> None:
        pair = self.reward_oracle, self.dynamics_oracle
        for name, oracle, kind in zip(("reward_oracle", "dynamics_oracle"), pair, self.needs, strict=True):
            instance_of(name, oracle, kind)
        ModelAgent.__init__(self, self.space, *pair, reward_range=self.reward_range, return_range=self.return_range)

    def _learned(self) -> dict[str, NDArray[Any]]:
        return {**ModelAgent._learned(self), **Rival._learned(self)}

    def _load_learned(self, state: State, episodes: int) -> None:
        self._read(state, episodes)  # a bad state is refused before the oracles load theirs
        ModelAgent._load_learned(self, state, episodes)
        Rival._load_learned(self, state, episodes)


class Bandit(ModelRival):
    """A rival for episodes of one step; its oracle of dynamics is there for the ledger."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.space.horizon != 1:
            raise ValueError(f"`space` must have horizon 1 for a bandit, got {self.space.horizon}")
