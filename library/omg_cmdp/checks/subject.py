"""What the checks of oracles and agents share: a learner under test, rules, and values that break them."""

from __future__ import annotations

import abc
import contextlib
import copy
import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.contexts import Context
from omg_cmdp.progress import Bar

Bits = list[tuple[Any, ...]]
"""Arrays that can be compared to the bit."""


@dataclasses.dataclass(frozen=True)
class Subject(abc.ABC):
    """A learner under test, with contexts that it accepts. It is never changed: checks work on copies."""

    learner: Any
    contexts: Sequence[Context]

    @abc.abstractmethod
    def train(self, learner: Any, numbers: Sequence[int] = ()) -> Any:
        """Let a copy learn the episodes of these numbers, by default the first few, and return it."""

    @abc.abstractmethod
    def answers(self, learner: Any) -> Bits:
        """Return what a copy has to say, to be compared to the bit."""

    def fresh(self) -> Any:
        """Return a copy."""
        return copy.deepcopy(self.learner)

    def trained(self) -> Any:
        """Return a copy that has learned the first few episodes."""
        return self.train(self.fresh())

    def require_refusals(self, learner: Any, calls: Iterable[tuple[str, Callable[..., Any], tuple[Any, ...]]]) -> None:
        """Raise AssertionError unless a copy refuses each of the calls, and none of them changes it."""
        before = self.answers(learner)
        for what, method, arguments in calls:
            require_refusal(what, method, *arguments)
            require(before == self.answers(learner), f"{what}: a refused `{method.__name__}` must change nothing")

    def run(self, name: str, checks: Sequence[Callable[[Self], None]], progress: bool | None) -> None:
        """Run all checks."""
        with Bar(name, len(checks), unit="rules", show=progress) as bar:
            for check in checks:
                check(self)
                bar.update()


def require(holds: bool, rule: str) -> None:
    """Raise AssertionError with the `rule`, unless it holds."""
    if not holds:
        raise AssertionError(rule)


def require_refusal(what: str, method: Callable[..., Any], *arguments: Any) -> None:
    """Raise AssertionError unless `method` raises a ValueError."""
    try:
        method(*arguments)
    except ValueError:
        return
    except Exception as error:
        raise AssertionError(f"{what} must be refused with a ValueError, got {error!r}") from error
    raise AssertionError(f"{what} must be refused with a ValueError")


def bits_of(arrays: Iterable[Any]) -> Bits:
    """Return the arrays in a form that tells all bits apart, those of two nans too."""
    return [(array.dtype.str, array.shape, array.tobytes()) for array in map(np.asarray, arrays)]


def saved_state(subject: Any) -> dict[str, NDArray[Any]] | None:
    """Return what would be saved of an oracle or agent; None if it cannot be saved."""
    try:
        state: dict[str, NDArray[Any]] = subject.state()
    except NotImplementedError:
        return None
    plain = all(isinstance(array, np.ndarray) and array.dtype.kind in "biufU" for array in state.values())
    require(plain, "`state` must be arrays of numbers and text")
    return state


def with_last(values: Any, last: float) -> Any:
    """Return a copy of `values` with another last entry."""
    changed = np.array(values)
    changed[-1] = last
    return changed


def bad_vectors(context: Context) -> list[tuple[str, Context]]:
    """Return contexts that must be refused where `context` is accepted: known for vectors only."""
    if not isinstance(context, np.ndarray):
        return []
    return [
        ("a context with a NaN", np.full_like(context, np.nan, dtype=np.float64)),
        ("a context of another dimension", np.append(context, 0.0)),
    ]


def accepted_contexts(ask: Callable[[Context], Any], known: list[Context]) -> list[Context]:
    """Return contexts with which `ask` does not raise: those known, or else 0 and 1, or some vectors."""
    vectors = [[np.eye(d)[0], np.eye(d)[-1], np.full(d, 1.0 / d)] for d in range(1, 65)]
    for candidates in (known, [0, 1], *vectors):
        accepted = []
        for context in candidates:
            with contextlib.suppress(Exception):  # whatever a user's function raises on a foreign context
                ask(context)
                accepted.append(context)
        if accepted:
            return accepted
    raise ValueError("`contexts` must be given: neither 0 nor a unit vector of up to 64 dimensions is accepted")
