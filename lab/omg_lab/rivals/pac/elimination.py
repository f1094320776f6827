"""Elimination led by optimism: what OLIVE and the agent of witness rank have in common.

A hypothesis is a pair of rewards and transitions of two finite classes. It has an optimal value, averaged over
the contexts seen, and an optimal policy. Contexts are drawn i.i.d., as part of the first observation.

    starts         n₀ episodes of anything, to know the values
    repeat         f = the hypothesis of the largest value that is left, π its policy
      evaluation   n₁ episodes of π: ε̂_h = mean of V_f(x_h) - r_h - V_f(x_{h+1})
                   if Σ_h ε̂_h <= (5/8)·ε: output π for ever
      elimination  h = argmax ε̂_h; n₂ episodes of π, but with a uniform action at step h
                   drop each g whose misfit at step h, were g's own action played there, is above φ

Σ_h ε_h = V_f - V^π, whatever f is. So if the truth f* was never dropped, V* <= V_f <= V^π + (5/8)·ε + noise when it
ends. A misfit of zero for the truth and a rank bound the number of rounds: see `lab/tests/rivals/pac/population.py`.

Both papers prove their guarantee with a φ and numbers of episodes of which no run sees the
end. By default φ is here that of the empirical Bernstein inequality (Maurer and Pontil, 2009), for each of the D ways
in which a misfit is looked at, and a round that does not drop its leader makes the next twice as long:

    φ = √(2·v·L/n₂) + 7·B·L/(3·(n₂ - 1)),   L = log(4·D·j·(j + 1)/δ) in round j, v the variance of what was seen,

B = 2·A·(1 + span V_{h+1}) its range, span over the hypotheses at the contexts seen. What is seen in a round is i.i.d.,
its mean for the truth is zero, and Σ 1/(j·(j + 1)) = 1: with probability 1 - δ the truth is never dropped, if contexts
that were not seen have no larger span. Nothing is proven of an evaluation by so few episodes as the default.

If no hypothesis were left, the least misfit would stay.

*Late feedback.* An episode that was under way when a phase ended is left out if π cannot have played it; else it is
taken, from any policy. To an elimination only the steps before h matter: given x_h and the action, the truth's misfit
has mean zero under every policy. (To look at later steps would choose by what came of the action.) But what is seen is
no longer i.i.d., and an evaluation is biased towards what both policies would do: nothing is proven then.
"""

from __future__ import annotations

import abc
import dataclasses
import enum
import math
import operator
from typing import ClassVar, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.contexts import KEPT_BYTES, Context, ContextCache
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.mdp.trajectory import Trajectory
from omg_cmdp.oracles.finite.aggregating import FiniteDynamics, FiniteRewards
from omg_cmdp.oracles.witnesses import Source
from omg_cmdp.persistence import State, numbers
from omg_cmdp.planning.decision import Decision
from omg_cmdp.validation import FloatArray, instance_of, positive_integer, positive_number, probability
from omg_lab.rivals.declared import Option, Rival, optional
from omg_lab.rivals.hypotheses import Hypotheses

STOP = 5.0 / 8.0
"""The share of ε that a policy may seem to lose when it is put out; as published, from notes."""


class Phase(enum.IntEnum):
    """What the present episodes are for."""

    STARTS = 0
    EVALUATION = 1
    ELIMINATION = 2
    OUTPUT = 3


class Step(NamedTuple):
    """What was seen at one step."""

    step: int
    state: int
    action: int
    reward: float
    next_state: int


class _Functions:
    """A class of functions, as a saved state knows it again: by what its functions say."""

    argument = "predictions"

    def __init__(self, oracle: FiniteRewards | FiniteDynamics) -> None:
        self.listed, self.facts = oracle.forecasters.functions.listed, oracle.functions


class Elimination(Rival):
    """The frame: phases, and what was seen in the present one.

    Parameters
    ----------
    space : Space
        The states, actions and horizon.
    reward_oracle : FiniteRewards
        The class of reward functions.
    dynamics_oracle : FiniteDynamics
        The class of transition functions.
    epsilon : float
        ε, for returns of rewards scaled to [0, 1]; 0.2 by default.
    delta : float
        The probability δ of failure, 0.05 by default.
    evaluations : int
        The numbers n₀ and n₁ of episodes for the starts and for an evaluation; 100 by default.
    rollouts : int
        The first number n₂ of episodes for an elimination; 400 by default.
    threshold : float, optional
        φ; by default the empirical Bernstein inequality decides.
    reward_range, return_range
        As for every `Learner`.
    """

    reward_oracle: dataclasses.InitVar[FiniteRewards] = dataclasses.field()
    dynamics_oracle: dataclasses.InitVar[FiniteDynamics] = dataclasses.field()
    _: dataclasses.KW_ONLY
    epsilon: Option[float, float] = Option(positive_number, 0.2)
    delta: Option[float, float] = Option(probability, 0.05)
    evaluations: Option[int, int] = Option(positive_integer, 100)
    rollouts: Option[int, int] = Option(positive_integer, 400)
    threshold: Option[float | None, float | None] = Option(optional(positive_number), None)

    learned = ("place", "alive", "value_sums", "spans", "errors", "misfits")
    most_hypotheses: ClassVar[int]

    def __post_init__(self, reward_oracle: FiniteRewards, dynamics_oracle: FiniteDynamics) -> None:
        super().__post_init__()
        pair = ("reward_oracle", reward_oracle, FiniteRewards), ("dynamics_oracle", dynamics_oracle, FiniteDynamics)
        for name, oracle, kind in pair:
            instance_of(name, oracle, kind)
            if oracle.horizon != self.space.horizon:
                raise ValueError(f"`{name}` must have horizon {self.space.horizon}, got {oracle.horizon}")
        self._classes = reward_oracle, dynamics_oracle  # asked for their functions, and taught nothing
        self.phase = Phase.STARTS
        self.rounds = 0
        """How many eliminations there were."""
        self._seen, self._leader, self._step, self._needed = 0, 0, 0, self.rollouts
        self._value_sums, self._alive = np.zeros(0), np.zeros(0)
        self._spans = np.zeros(self.space.horizon)
        self._errors = np.zeros((2, self.space.horizon))  # their sums, and how many there are
        self._misfits = np.zeros((2, 0, 0))  # sums and sums of squares, (2, K, D)
        self._kept: ContextCache[Hypotheses] = ContextCache(KEPT_BYTES, size=operator.attrgetter("nbytes"))

    @abc.abstractmethod
    def misfits(self, hypotheses: Hypotheses, which: NDArray[np.int64], seen: Step) -> FloatArray:
        """Return by how much a step is not what these hypotheses (N,) expect, looked at in D ways, (N, D)."""

    @final
    def hypotheses(self, context: Context) -> Hypotheses:
        """Return the hypotheses at a context."""
        found = self._kept.get(context, self._made)
        if len(self._alive) not in (0, found.count):
            raise ValueError(f"`reward_oracle` must leave {len(self._alive)} pairs as before, got {found.count}")
        return found

    def _made(self, context: Context) -> Hypotheses:
        rewards, transitions = (oracle.functions(context) for oracle in self._classes)
        count = len(rewards) * len(transitions)
        if count > self.most_hypotheses:
            raise ValueError(f"`reward_oracle` must leave at most {self.most_hypotheses} pairs, got {count}")
        self.space.mdp(transitions=transitions[0], rewards=rewards[0])  # refuses tables that are not of this space
        return Hypotheses(self.space, rewards, transitions, self.value_bounds)

    @property
    def alive(self) -> NDArray[np.bool_]:
        """Which hypotheses are left, (K,); empty before the first episode."""
        return self._alive > 0.0

    @final
    def decide(self, context: Context) -> Decision:
        """Return the policy of the phase."""
        hypotheses = self.hypotheses(context)
        leader = self._leading(hypotheses)
        policy = hypotheses.policy(leader)
        if self.phase is Phase.ELIMINATION:
            policy[self._step] = self.space.admissible / self.space.admissible.sum(axis=1, keepdims=True)
        return Decision(policy=policy, model=hypotheses.mdp(leader))

    @final
    def model(self, context: Context) -> TabularMDP:
        """Return the hypothesis that leads; before the values are known, the one of the largest value in `context`."""
        hypotheses = self.hypotheses(context)
        return hypotheses.mdp(self._leading(hypotheses))

    def _leading(self, hypotheses: Hypotheses) -> int:
        return int(hypotheses.starts.argmax()) if self.phase is Phase.STARTS else self._leader

    @final
    def _learn(self, trajectory: Trajectory, rewards: FloatArray) -> None:
        hypotheses = self.hypotheses(trajectory.context)
        self._witness(trajectory)
        if not self._alive.size:
            ways = self.misfits(hypotheses, np.arange(1), Step(0, 0, 0, 0.0, 0)).shape[1]
            self._alive, self._value_sums = np.ones(hypotheses.count), np.zeros(hypotheses.count)
            self._misfits = np.zeros((2, hypotheses.count, ways))
        if self.phase is Phase.OUTPUT:
            return
        self._value_sums += hypotheses.starts
        self._spans = np.maximum(self._spans, hypotheses.spans)
        self._seen += self._take(hypotheses, trajectory, rewards)
        if self._seen >= (self._needed if self.phase is Phase.ELIMINATION else self.evaluations):
            self._end_phase()

    def _take(self, hypotheses: Hypotheses, trajectory: Trajectory, rewards: FloatArray) -> bool:
        """Return whether an episode tells something for the present phase, and keep what it tells."""
        if self.phase is Phase.STARTS:
            return True
        states, actions, length = trajectory.states, trajectory.actions, len(trajectory.actions)
        steps = np.arange(length)
        as_planned = actions == hypotheses.actions[self._leader, steps, states[:-1]]
        if self.phase is Phase.EVALUATION:
            if not as_planned.all():
                return False
            values = hypotheses.values[self._leader]
            self._errors[0, :length] += values[steps, states[:-1]] - rewards - values[steps + 1, states[1:]]
            self._errors[1, :length] += 1.0
            return True
        step = self._step
        if step >= length or not as_planned[:step].all():
            return False
        seen = Step(step, int(states[step]), int(actions[step]), float(rewards[step]), int(states[step + 1]))
        which = np.flatnonzero(self.alive & (hypotheses.actions[:, step, seen.state] == seen.action))
        # A uniform action is g's own with probability 1/A; weighed by A, the mean is as if g's own were played.
        weighed = self.space.admissible[seen.state].sum() * self.misfits(hypotheses, which, seen)
        self._misfits[0, which] += weighed
        self._misfits[1, which] += weighed**2
        return True

    def _end_phase(self) -> None:
        if self.phase is Phase.EVALUATION:
            errors = self._errors[0] / np.maximum(self._errors[1], 1.0)
            self._step = int(errors.argmax())
            self.phase = Phase.OUTPUT if errors.sum() <= STOP * self.epsilon else Phase.ELIMINATION
        else:
            if self.phase is Phase.ELIMINATION:
                self.rounds += 1
                self._drop()
                self._needed *= 1 + int(self.alive[self._leader])
            self._leader = int(np.where(self.alive, self._value_sums, -np.inf).argmax())
            self.phase = Phase.EVALUATION
        self._seen = 0
        self._errors, self._misfits = np.zeros_like(self._errors), np.zeros_like(self._misfits)

    def _drop(self) -> None:
        """Drop what does not fit; if nothing would be left, what fits least badly stays."""
        means, squares = self._misfits / self._seen
        allowed = self._widths(squares - means**2) if self.threshold is None else np.full(means.shape, self.threshold)
        excess = np.where(self.alive, (np.abs(means) - allowed).max(axis=1), np.inf)
        self._alive = (excess <= max(0.0, excess.min())).astype(np.float64)

    def _widths(self, variances: FloatArray) -> FloatArray:
        """Return φ by the empirical Bernstein inequality, for the variances (K, D) of what was seen in this round."""
        others = max(self._seen - 1, 1)
        logarithm = math.log(4.0 * variances.shape[1] * self.rounds * (self.rounds + 1) / self.delta)
        width = 2.0 * self.space.admissible.sum(axis=1).max() * (1.0 + self._spans[self._step])
        spread = np.sqrt(2.0 * logarithm * np.maximum(variances, 0.0) / others)  # v·n/(n - 1) is the unbiased one
        return np.asarray(spread + 7.0 * width * logarithm / (3.0 * others))

    def _sources(self) -> dict[str, Source]:
        rewards, dynamics = self._classes
        return {"reward class": _Functions(rewards), "dynamics class": _Functions(dynamics)}

    @property
    def _place(self) -> FloatArray:
        """Where in its rounds the agent is, as numbers that can be saved."""
        place = self.phase, self.rounds, self._seen, self._needed, self._leader, self._step
        return np.array(place, dtype=np.float64)

    @_place.setter
    def _place(self, place: FloatArray) -> None:
        phase, self.rounds, self._seen, self._needed, self._leader, self._step = (int(number) for number in place)
        self.phase = Phase(phase)

    def _read(self, state: State, episodes: int) -> dict[str, FloatArray]:
        count, horizon = len(numbers("alive", state, (None,))), self.space.horizon
        shapes = {"place": (6,), "alive": (count,), "value_sums": (count,), "spans": (horizon,), "errors": (2, horizon)}
        arrays = {name: numbers(name, state, shapes.get(name, (2, count, None))) for name in self.learned}
        place, limits = arrays["place"], [len(Phase), math.inf, math.inf, math.inf, max(count, 1), horizon]
        if (place != place.astype(int)).any() or (place < 0.0).any() or (place >= limits).any():
            raise ValueError(f"`state` must hold a phase, counts, a hypothesis and a step under 'place', got {place}")
        return arrays
