"""What agents share that learn: ranges of rewards, a count of episodes, a saved state; and two oracles with a model."""

from __future__ import annotations

import abc
import contextlib
import functools
import math
from collections.abc import Hashable, Iterable
from typing import Any, ClassVar, TypedDict, Unpack, final

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.agents.agent import Agent
from omg_cmdp.agents.lessons import nothing, reward_lesson, steps_for
from omg_cmdp.contexts import Context, keyed
from omg_cmdp.fingerprints import fingerprint, setting
from omg_cmdp.mdp.bellman import scaled_returns, value_bounds
from omg_cmdp.mdp.space import Space
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.mdp.trajectory import Trajectory
from omg_cmdp.misfit.judgement import Misfit
from omg_cmdp.misfit.recent import Recent
from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.persistence import (
    State,
    Stateful,
    check_settings,
    joint_state,
    load_parts,
    numbers,
    read_state,
    undone_on_failure,
)
from omg_cmdp.planning.decision import Decision
from omg_cmdp.recipes.recipe import episodes_in_words, shown_arguments
from omg_cmdp.transactions import interrupts_held
from omg_cmdp.validation import UNEXPECTED, FloatArray, instance_of, interval, listed, return_interval, unit_scaled


class Ranges(TypedDict, total=False):
    """What every learner is told of rewards, in the units in which they arrive."""

    reward_range: tuple[float, float]
    return_range: tuple[float, float] | None


class Learner(Agent):
    """An agent that checks and counts its episodes, and can be saved.

    A subclass has `decide`, `_learn`, `_learned` and `_load_learned`. An episode outside of the ranges is refused, and
    changes nothing. A lake that pays 1 once, at its end, has the `return_range` (0, 1), whatever the horizon.

    Parameters
    ----------
    space : Space
        Sizes, horizon, start and admissible actions.
    reward_range : (float, float), default (0, 1)
        Between which numbers every reward lies, in the units in which rewards arrive.
    return_range : (float, float), optional
        Between which numbers the sum of an episode's rewards lies, in the same units; by default H times
        `reward_range`. A tighter range makes bonuses and plausible values tighter too.
    """

    settings: ClassVar[tuple[str, ...]] = ()
    """The attributes that must be the same in an agent that is saved and one that loads its state."""
    waits_for_rewards: ClassVar[bool] = False
    """Whether rewards may arrive after their episode."""

    def __init__(
        self,
        space: Space,
        *,
        reward_range: tuple[float, float] = (0.0, 1.0),
        return_range: tuple[float, float] | None = None,
    ) -> None:
        instance_of("space", space, Space)
        self.space = space
        self.reward_range: tuple[float, float] = interval("reward_range", reward_range)
        self.return_range = return_interval(return_range, space.horizon, self.reward_range)
        """What an episode can earn, in the units of `reward_range`; None for H times that range."""
        self.returns = scaled_returns(self.return_range, space.horizon, self.reward_range)
        """The range of returns for rewards scaled to [0, 1]: (least, most), 0 <= least <= most <= H."""
        self.value_bounds = value_bounds(space.horizon, self.returns)
        """What can be earned from each step on, for rewards scaled to [0, 1]."""
        self.episodes_seen = 0
        """Number of episodes learned from."""

    def __repr__(self) -> str:
        """Return the settings and the number of episodes, and below them the parts."""
        parts = {"space": self.space, "rewards": self.reward_oracle, "dynamics": self.dynamics_oracle}
        below = [f"{name + ':':<9} {part}" for name, part in parts.items() if part is not None]
        own = shown_arguments(self, leave_out=("space", "reward_oracle", "dynamics_oracle"))
        return "\n  ".join([f"{type(self).__name__}({own}) after {episodes_in_words(self.episodes_seen)}", *below])

    @abc.abstractmethod
    def decide(self, context: Context) -> Decision:
        """Return the policy, and what led to it."""

    @abc.abstractmethod
    def _learn(self, trajectory: Trajectory, rewards: FloatArray) -> None:
        """Learn from a checked episode, `rewards` scaled to [0, 1]; refuse a bad context before anything changes."""

    def _learn_rewards(self, trajectory: Trajectory, rewards: FloatArray) -> None:
        """Learn the rewards that are known; for agents that wait for them."""
        raise NotImplementedError

    @abc.abstractmethod
    def _learned(self) -> dict[str, NDArray[Any]]:
        """Return what was learned."""

    @abc.abstractmethod
    def _load_learned(self, state: State, episodes: int) -> None:
        """Load what was learned in `episodes` episodes; refuse a state that does not fit before anything changes."""

    @final
    def policy(self, context: Context) -> FloatArray:
        """Return the policy (H, S, A) for the next episode."""
        return self.decide(context).policy

    @final
    def update(self, trajectory: Trajectory) -> None:
        """Learn from an episode as far as it was seen, or refuse it and change nothing.

        Rewards that are not known yet may follow in `update_rewards`.
        """
        rewards = self._checked_rewards(trajectory)
        with interrupts_held():
            self._learn(trajectory, rewards)
            self.episodes_seen += 1

    @final
    def update_rewards(self, trajectory: Trajectory) -> None:
        """Learn the rewards of an episode that `update` has learned without them, or refuse them and change nothing.

        The trajectory is that of `update`, with what has become known in the place of None, and None in the place of
        what was known before. Each reward must be told once: an agent keeps no list of what is outstanding, and so it
        cannot refuse one that it has learned before, or one of an episode that it never saw.
        """
        if not self.waits_for_rewards:
            raise ValueError(f"`update` must be told all rewards at once for {type(self).__name__}, got some later")
        rewards = self._checked_rewards(trajectory)
        with interrupts_held():
            self._learn_rewards(trajectory, rewards)

    def _checked_rewards(self, trajectory: Trajectory) -> FloatArray:
        """Return the rewards of a trajectory that fits, scaled to [0, 1], nan where they are not known."""
        instance_of("trajectory", trajectory, Trajectory)
        trajectory.must_fit(self.space, self.reward_range, self.return_range)
        if not self.waits_for_rewards and math.isnan(trajectory.rewards.sum()):
            raise ValueError(f"`rewards` must all be known for {type(self).__name__}, got {trajectory.rewards}")
        if not self.waits_for_rewards and not trajectory.end_known:
            rule = f"hold the state after the last action for {type(self).__name__}"
            raise ValueError(f"`states` must {rule}, got {len(trajectory.states)} states and as many actions")
        rewards, bounds = trajectory.raw[2], self.reward_range
        return rewards if bounds == (0.0, 1.0) else unit_scaled(rewards, bounds)

    def _settings(self) -> str:
        parts = [f"{name} {setting(getattr(self, name))}" for name in ("reward_range", "return_range", *self.settings)]
        sizes = f"{self.space.states} states, {self.space.actions} actions, horizon {self.space.horizon}"
        tables = f"start {fingerprint(self.space.start)}, admissible {fingerprint(self.space.admissible)}"
        return ", ".join([type(self).__name__, sizes, tables, *parts])

    @final
    def state(self) -> dict[str, NDArray[Any]]:
        """Return what was learned, the settings, and the number of episodes."""
        account = {"settings": np.array(self._settings()), "episodes_seen": np.array(float(self.episodes_seen))}
        return {**account, **self._learned()}

    @final
    def load_state(self, state: State) -> None:
        """Load a state saved by an agent with the same settings; the run continues bit for bit."""
        state = read_state(state)
        check_settings(state, self._settings())
        episodes = int(numbers("episodes_seen", state, (), whole=True))
        try:
            self._load_learned(state, episodes)
        except UNEXPECTED as error:
            raise ValueError(f"`state` must be that of this {type(self).__name__}, got {error!r:.80}") from error
        self.episodes_seen = episodes


class ModelAgent(Learner):
    """An agent with two oracles. Its model of a context is what they predict, frozen until the next update.

    A subclass has `decide`, which often begins with `self.model(context)`.

    Parameters
    ----------
    space : Space
        Sizes, horizon, start and admissible actions.
    reward_oracle : RewardOracle
        Learns the mean rewards; the model's f̂.
    dynamics_oracle : DynamicsOracle
        Learns the transitions; the model's P̂.
    reward_range : (float, float), default (0, 1)
        Between which numbers every reward lies, in the units in which rewards arrive.
    return_range : (float, float), optional
        Between which numbers the sum of an episode's rewards lies, in the same units; by default H times
        `reward_range`. A tighter range makes bonuses and plausible values tighter too.
    """

    reward_oracle: RewardOracle
    dynamics_oracle: DynamicsOracle
    recent: Recent
    waits_for_rewards = True
    usual_oracles: ClassVar[str] = "finite"
    """The kind of oracles that its paper assumes, as study files call it."""

    def __init__(
        self, space: Space, reward_oracle: RewardOracle, dynamics_oracle: DynamicsOracle, **ranges: Unpack[Ranges]
    ) -> None:
        super().__init__(space, **ranges)
        for name, oracle, kind in (
            ("reward_oracle", reward_oracle, RewardOracle),
            ("dynamics_oracle", dynamics_oracle, DynamicsOracle),
        ):
            instance_of(name, oracle, kind)
            if oracle.horizon not in (None, space.horizon):
                raise ValueError(f"`{name}` must have horizon {space.horizon}, got {oracle.horizon}")
            if oracle.sizes not in (None, (space.states, space.actions)):
                wanted, got = (space.states, space.actions), oracle.sizes
                raise ValueError(f"`{name}` must have the (states, actions) of the space, {wanted}, got {got}")
        self.reward_oracle = reward_oracle
        self.dynamics_oracle = dynamics_oracle
        self._answered: Hashable | None = None  # the context of the last model since the last update
        self.recent = Recent()

    def misfit(self, episodes: Iterable[Trajectory] | None = None) -> Misfit:
        """Return whether `episodes`, by default the last 2048 to 4096 it was taught, contradict an oracle's class."""
        recent = self.recent
        if episodes is not None:
            recent = Recent([(each, self._checked_rewards(each)) for each in listed("episodes", episodes)])
        return recent.judge(self.reward_oracle, self.dynamics_oracle)

    def model(self, context: Context) -> TabularMDP:
        """Return f̂ and P̂ of both oracles as an MDP."""
        known, rewards, dynamics = keyed(context), self.reward_oracle, self.dynamics_oracle
        # The MDP copies both tables, once, and checks them: an oracle may be a user's.
        model = self.space.mdp(
            transitions=dynamics.predict(known.to(dynamics)), rewards=rewards.predict(known.to(rewards))
        )
        self._answered = known.key
        return model

    def _learn(self, trajectory: Trajectory, rewards: FloatArray) -> None:
        """Teach both oracles the episode, or neither."""
        known, oracle = trajectory.known, self.dynamics_oracle
        # Both answer, with tables that fit, before either learns: a context that one of them refuses changes nothing.
        if self._answered is None or self._answered != known.key:
            self.model(known.to(self))
        states, actions = steps_for(trajectory, oracle)
        of_rewards = reward_lesson(self.reward_oracle, trajectory, rewards)
        moves = states[:-1], actions[: len(states) - 1], states[1:]
        # Of a single step, nobody may know where it led.
        of_dynamics = functools.partial(oracle.update, known.to(oracle), *moves) if len(states) > 1 else nothing
        self._answered = None
        # An oracle that may refuse an episode learns first, so that nothing must be undone; if both may, the first is.
        if self.reward_oracle.surely_learns:
            of_dynamics()
            of_rewards()
        else:
            if len(states) > 1:
                oracle.check_steps(*moves)
            with contextlib.nullcontext() if oracle.surely_learns else undone_on_failure(self.reward_oracle):
                of_rewards()
                of_dynamics()
        self.recent.add(trajectory, rewards)

    def _learn_rewards(self, trajectory: Trajectory, rewards: FloatArray) -> None:
        reward_lesson(self.reward_oracle, trajectory, rewards)()
        self._answered = None
        self.recent.add(trajectory, rewards, is_late=True)

    def _oracles(self) -> dict[str, Stateful]:
        return {"reward": self.reward_oracle, "dynamics": self.dynamics_oracle}

    def _learned(self) -> dict[str, NDArray[Any]]:
        return joint_state(self._oracles())

    def _load_learned(self, state: State, episodes: int) -> None:
        load_parts(state, self._oracles())
        self._answered = None
        self.recent.forget()
