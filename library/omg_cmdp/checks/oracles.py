"""The contract of oracles as checks that run on any oracle: ours, an adapted one, a third party's.

Each check works on deep copies; the oracle itself is not changed.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from omg_cmdp.checks.challenges import OUTCOMES, VISITS, Challenge, accepted, challenge
from omg_cmdp.checks.subject import (
    Bits,
    Subject,
    accepted_contexts,
    bad_vectors,
    bits_of,
    require,
    require_refusal,
    saved_state,
    with_last,
)
from omg_cmdp.contexts import Context
from omg_cmdp.oracles.losses import SQUARE, Loss, loss_of
from omg_cmdp.records import context_rows
from omg_cmdp.validation import FloatArray, listed, positive_integer

EPISODES, DRAWS = 12, 200


@dataclasses.dataclass(frozen=True)
class OracleSubject(Subject):
    """An oracle under test, and the number of steps of its episodes."""

    horizon: int

    @functools.cached_property
    def loss(self) -> Loss:
        """Square loss or log loss."""
        return loss_of(self.learner)

    @functools.cached_property
    def pairs(self) -> tuple[int, ...]:
        """(S, A) or (H, S, A)."""
        return self.loss.pairs(np.shape(self.fresh().predict(self.contexts[0])))

    def episode(self, number: int) -> tuple[Context, Any, Any, Any]:
        """Return a random episode, the same for the same number; every third one is truncated."""
        generator = np.random.default_rng(number)
        count_states, count_actions = self.pairs[-2:]
        steps = int(generator.integers(1, self.horizon + 1)) if number % 3 == 2 else self.horizon
        states = generator.integers(count_states, size=steps)
        actions = generator.integers(count_actions, size=steps)
        rewards = generator.random(steps)
        outcomes = rewards if self.loss is SQUARE else generator.integers(count_states, size=steps)
        context = self.contexts[number % len(self.contexts)]
        if self.loss is not SQUARE:
            table = self.fresh().predict(context)
            rows = table[np.arange(steps), states, actions] if len(self.pairs) == 3 else table[states, actions]
            outcomes = accepted(self.learner, states, actions, outcomes, rows)
        return context, states, actions, outcomes

    def train(self, oracle: Any, numbers: Sequence[int] = range(EPISODES)) -> Any:
        """Update `oracle` with random episodes, and return it."""
        for number in numbers:
            oracle.update(*self.episode(number))
        return oracle

    def answers(self, oracle: Any) -> Bits:
        """Return the bits of what an oracle answers to everything that it can be asked."""
        asked = [table for context in self.contexts for table in _tables(oracle, context)]
        return bits_of([*asked, oracle.loss, oracle.best_loss()])


def check_oracle(
    oracle: Any, contexts: Sequence[Context] | None = None, *, horizon: int | None = None, progress: bool | None = None
) -> None:
    """Raise AssertionError if `oracle` breaks a rule of the contract; the message says which.

    Parameters
    ----------
    oracle : RewardOracle or DynamicsOracle
        The oracle; copies of it are checked, and it is not changed.
    contexts : list, optional
        Some that the oracle accepts; by default its attribute `contexts`, or what it accepts of 0, 1 and unit vectors.
    horizon : int, optional
        The number of steps of an episode; by default that of the oracle, or 5.
    progress : bool, optional
        Whether to show a bar, with the time left. By default it appears after two seconds in a terminal or notebook.

    Examples
    --------
    >>> from omg_cmdp.oracles import CountRewards
    >>> check_oracle(CountRewards(states=2, actions=2, horizon=3))
    """
    loss_of(oracle)  # refuses what is not an oracle
    known = contexts if contexts is not None else oracle.contexts
    length = positive_integer("horizon", (oracle.horizon or 5) if horizon is None else horizon)
    asked = listed("contexts", context_rows("contexts", () if known is None else known))
    subject = OracleSubject(oracle, asked or accepted_contexts(lambda c: copy.deepcopy(oracle).predict(c), []), length)
    subject.run("check_oracle", ORACLE_CHECKS, progress)


def check_predictions_are_valid(subject: OracleSubject) -> None:
    """Rewards in [0, 1], rows on the simplex, uncertainty finite and not negative: before any data, and after."""
    for oracle in (subject.fresh(), subject.trained()):
        for context in subject.contexts:
            prediction, uncertainty = oracle.predict(context), oracle.uncertainty(context)
            subject.loss.check_tables("predict", np.asarray(prediction)[None])
            require(np.shape(uncertainty) == subject.pairs, f"`uncertainty` must have shape {subject.pairs}")
            fine = np.isfinite(uncertainty).all() and (np.asarray(uncertainty) >= 0.0).all()
            require(bool(fine), "`uncertainty` must be finite and not negative")


def check_draws(subject: OracleSubject) -> None:
    """Draws are tables like the prediction, the same for equal generators, and around it as far as `uncertainty` says.

    The divergence of their mean from the prediction is at most the mean of their divergences, which should be about u.
    """
    for oracle in (subject.fresh(), subject.trained()):
        for context in subject.contexts:
            drawn, again = (oracle.draws(context, DRAWS, _generator()) for _ in range(2))
            prediction = oracle.predict(context)
            shape = (DRAWS, *np.shape(prediction))
            require(np.shape(drawn) == shape, f"`draws` must have shape {shape}, got {np.shape(drawn)}")
            subject.loss.check_tables("draws", np.asarray(drawn))
            require(bits_of([drawn]) == bits_of([again]), "`draws` must be the same for equal generators")
            moved = subject.loss.divergence(np.mean(drawn, axis=0), prediction)
            near = (moved <= 4.0 * oracle.uncertainty(context) + 4.0 / DRAWS).all()
            require(bool(near), "the mean of `draws` must be as near to `predict` as `uncertainty` says")


def check_asking_changes_nothing(subject: OracleSubject) -> None:
    """`predict`, `uncertainty`, `draws` and `regret_bound` are pure, and return fresh arrays."""
    oracle = subject.trained()
    before = subject.answers(oracle)
    for context in subject.contexts:
        for answer in _tables(oracle, context):
            answer.setflags(write=True)
            answer[...] = 0.123
    oracle.regret_bound(10, subject.horizon)
    require(before == subject.answers(oracle), "asking must change nothing, and neither must writing to the answer")


def check_input_is_not_kept(subject: OracleSubject) -> None:
    """The oracle keeps no reference to the arrays that it is given."""
    oracle, twin = subject.fresh(), subject.trained()
    for number in range(EPISODES):
        context, *arrays = subject.episode(number)
        given = [np.array(context) if isinstance(context, np.ndarray) else context, *(a.copy() for a in arrays)]
        oracle.update(*given)
        for array in given:
            if isinstance(array, np.ndarray):
                array[...] = 0
    require(subject.answers(oracle) == subject.answers(twin), "`update` must keep no reference to its input")


def check_lists_are_accepted(subject: OracleSubject) -> None:
    """Lists and small integer types teach the same as arrays."""
    oracle, twin = subject.fresh(), subject.trained()
    for number in range(EPISODES):
        context, states, actions, outcomes = subject.episode(number)
        oracle.update(context, states.astype(np.int32), actions.tolist(), outcomes.tolist())
    require(subject.answers(oracle) == subject.answers(twin), "`update` must take lists like arrays")


def check_bad_input_is_refused(subject: OracleSubject) -> None:
    """Bad input raises a ValueError, and changes nothing."""
    oracle, steps = subject.trained(), subject.episode(0)[1:]
    asks = (oracle.predict, ()), (oracle.uncertainty, ()), (oracle.draws, (1, _generator())), (oracle.update, steps)
    vectors = bad_vectors(subject.contexts[0])
    subject.require_refusals(oracle, [(what, oracle.update, given) for what, given in _bad_updates(subject)])
    subject.require_refusals(
        oracle, [(what, method, (context, *more)) for what, context in vectors for method, more in asks]
    )


def check_state_survives(subject: OracleSubject) -> None:
    """An oracle that loads a state continues to the bit. One that cannot be saved raises NotImplementedError."""
    oracle, restored = subject.trained(), subject.fresh()
    state = saved_state(oracle)
    if state is None:
        return
    restored.load_state(state)
    more = range(EPISODES, 2 * EPISODES)
    ours, theirs = subject.answers(subject.train(oracle, more)), subject.answers(subject.train(restored, more))
    require(ours == theirs, "an oracle that loads a state must continue to the bit")
    broken = dict(state)
    broken.pop(next(iter(broken)))
    require_refusal("a state with a part missing", subject.fresh().load_state, broken)


def check_account(subject: OracleSubject) -> None:
    """`loss` is the loss of the predictions made, or nan."""
    oracle = subject.fresh()
    loss = _challenged(subject, oracle, "noise", "all pairs").loss
    if not math.isnan(oracle.loss):
        require(math.isclose(oracle.loss, loss, rel_tol=1e-9, abs_tol=1e-9), "`loss` must be the loss incurred")


def check_regret_bound(subject: OracleSubject) -> None:
    """The bound is a number that grows with the episodes, and no choice of outcomes makes the regret exceed it."""
    bounds = [subject.train(subject.fresh(), range(1)).regret_bound(t, subject.horizon) for t in (1, 10, 100, 10_000)]
    require(all(bound >= 0.0 for bound in bounds), f"`regret_bound` must not be negative, got {bounds}")
    require(bounds == sorted(bounds), f"`regret_bound` must grow with the episodes, got {bounds}")
    for outcomes in OUTCOMES:
        for visits in VISITS:
            oracle = subject.fresh()
            loss = _challenged(subject, oracle, outcomes, visits).loss
            regret, bound = loss - oracle.best_loss(), oracle.regret_bound(EPISODES, subject.horizon)
            within = not regret > bound + 1e-9 + 1e-12 * loss  # what rounding takes
            require(within, f"regret {regret:.6g} above its bound {bound:.6g} ({outcomes}, {visits})")


ORACLE_CHECKS: tuple[Callable[[OracleSubject], None], ...] = tuple(
    each for name, each in vars().items() if name.startswith("check_") and each is not check_oracle
)


def _challenged(subject: OracleSubject, oracle: Any, outcomes: str, visits: str) -> Challenge:
    return challenge(
        oracle,
        subject.contexts,
        episodes=EPISODES,
        horizon=subject.horizon,
        outcomes=outcomes,
        visits=visits,
        generator=_generator(),
    )


def _generator() -> np.random.Generator:
    return np.random.default_rng(0)


def _tables(oracle: Any, context: Context) -> list[FloatArray]:
    """Return what an oracle says of a context."""
    return [oracle.predict(context), oracle.uncertainty(context), oracle.draws(context, 2, _generator())]


def _bad_updates(subject: OracleSubject) -> list[tuple[str, tuple[Any, ...]]]:
    context, states, actions, outcomes = subject.episode(0)
    count_states, count_actions = subject.pairs[-2:]
    last = -1 if subject.loss is SQUARE else count_states
    return [
        ("an episode longer than the horizon", (context, *(np.append(a, a[-1:]) for a in (states, actions, outcomes)))),
        ("arrays of different lengths", (context, states, actions[:-1], outcomes)),
        ("an empty episode", (context, [], [], [])),
        ("a state out of range", (context, with_last(states, count_states), actions, outcomes)),
        ("a negative state", (context, with_last(states, -1), actions, outcomes)),
        ("an action out of range", (context, states, with_last(actions, count_actions), outcomes)),
        ("a negative action", (context, states, with_last(actions, -1), outcomes)),
        ("an outcome out of range", (context, states, actions, with_last(outcomes, last))),
        ("an outcome that is not a number", (context, states, actions, with_last(outcomes.astype(float), np.nan))),
        ("states that are not integers", (context, states + 0.5, actions, outcomes)),
        ("actions that are text", (context, states, ["left"] * len(actions), outcomes)),
        ("outcomes that are missing", (context, states, actions, None)),
    ]
