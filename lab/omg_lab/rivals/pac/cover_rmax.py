"""Cover-Rmax (Modi, Jiang, Singh and Tewari, ALT 2018): Rmax in every ball of a cover of the contexts.

A smooth contextual MDP has ‖P_c - P_c'‖₁ <= L_p·φ(c, c') and |f_c - f_c'| <= L_r·φ(c, c') for a metric φ. Contexts
within r of a centre share a table. A pair is known in a ball once it was visited m times there; later visits teach
nothing. Contexts may be chosen by anyone.

The paper proves, up to constants and logarithms, that with probability 1 - δ at most N·S·A·H²·(S + log 1/δ)/ε³ episodes
are worse than ε, N the covering number of the contexts for r, and ε in units of the mean reward of a step (from notes,
not certain). `published_radius` and `published_visits` are its r and m; both follow from notes too, and the factors 8
and 128 are arguments. N grows like r to the minus dimension, and so must it for smooth classes.

Proven here: the inequality of `rmax.py`. In a ball the contexts differ by at most 2r, so that the mean of any of their
tables is within η_r = 2r·L_r and η_p = 2r·L_p of each of them, apart from noise.
"""

from __future__ import annotations

import copy
import math
from typing import Any, Unpack, final

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.agents.base import Learner, Ranges
from omg_cmdp.contexts import Context
from omg_cmdp.mdp.bellman import optimal_policy
from omg_cmdp.mdp.episode import Trajectory
from omg_cmdp.mdp.space import Space
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.persistence import State, numbers
from omg_cmdp.planning.decision import Decision
from omg_cmdp.validation import FloatArray, at_least_zero, instance_of, positive_integer, positive_number, probability
from omg_lab.rivals.covers import Cover
from omg_lab.rivals.pac.rmax import induced_mdp


@final
class CoverRmax(Learner):
    """Rmax on the counts of a context's cell; `cover` says which contexts share one, `PerBall` as published.

    `visits` is m. The published number, `published_visits`, is in the millions for H = 5 and ε = ½: no run would end
    its exploration. The default is what can be played; what m visits tell of a pair is believed for ever.
    """

    settings = ("cover", "visits")

    def __init__(self, space: Space, cover: Cover, *, visits: int = 20, **ranges: Unpack[Ranges]) -> None:
        super().__init__(space, **ranges)
        instance_of("cover", cover, Cover)
        self.cover = copy.deepcopy(cover)
        self.visits = positive_integer("visits", visits)
        self._empty = np.zeros((space.states, space.actions, space.states + 1))
        self._tables: list[FloatArray] = []  # counts of next states, and sums of rewards in the last column

    def decide(self, context: Context) -> Decision:
        """Return an optimal policy, deterministic, of the induced MDP."""
        model = self.model(context)
        return Decision(policy=optimal_policy(model, bounds=self.value_bounds)[0], model=model)

    def model(self, context: Context) -> TabularMDP:
        """Return the induced MDP of the context's cell."""
        cell = self.cover.cell(context)
        table = self._tables[cell] if cell < len(self._tables) else self._empty
        visits = table[:, :, :-1].sum(axis=2, keepdims=True)
        means = table / np.maximum(visits, 1.0)
        return induced_mdp(self.space, means[:, :, :-1], means[:, :, -1], visits[:, :, 0] >= self.visits)

    def _learn(self, trajectory: Trajectory, rewards: FloatArray) -> None:
        """Count the visits of pairs that are not known."""
        cell = self.cover.open(trajectory.context)
        while len(self._tables) <= cell:
            self._tables.append(self._empty.copy())
        steps = zip(trajectory.states[:-1], trajectory.actions, trajectory.next_states, rewards, strict=True)
        for state, action, next_state, reward in steps:
            row = self._tables[cell][state, action]
            if row[:-1].sum() < self.visits:
                row[next_state] += 1.0
                row[-1] += reward

    def _learned(self) -> dict[str, NDArray[Any]]:
        return {"tables": np.array(self._tables).reshape(-1, *self._empty.shape), **self.cover.state()}

    def _load_learned(self, state: State, episodes: int) -> None:
        tables = numbers("tables", state, (None, *self._empty.shape))
        cover = copy.deepcopy(self.cover)
        cover.load_state(state)
        if len(tables) > len(cover):
            raise ValueError(f"`state` must hold tables for {len(cover)} cells, got {len(tables)}")
        self.cover, self._tables = cover, list(tables)


def published_radius(
    space: Space, *, epsilon: float, reward_smoothness: float, dynamics_smoothness: float, factor: float = 8.0
) -> float:
    """Return r = min(ε/(8·H²·L_p), ε/(8·H·L_r)), for ε in units of the whole episode; the factor is not certain.

    Contexts in a ball then differ by at most 3ε/8 in the value of any policy: H·2r·L_r + (H²/2)·2r·L_p.

    >>> published_radius(Space(states=2, actions=2, horizon=2), epsilon=0.8, reward_smoothness=1, dynamics_smoothness=1)
    0.025
    """
    horizon, wanted = space.horizon, positive_number("epsilon", epsilon) / positive_number("factor", factor)
    slopes = (
        horizon * at_least_zero("reward_smoothness", reward_smoothness),
        horizon**2 * at_least_zero("dynamics_smoothness", dynamics_smoothness),
    )
    return min((wanted / slope for slope in slopes if slope > 0.0), default=math.inf)


def published_visits(space: Space, *, epsilon: float, delta: float = 0.05, factor: float = 128.0) -> int:
    """Return m = 128·(S·log 2 + log(S·A/δ))·H⁴/ε², for ε in units of the whole episode; the factor is not certain.

    >>> f"{published_visits(Space(states=5, actions=3, horizon=5), epsilon=0.5):.0e}"
    '3e+06'
    """
    states, horizon = space.states, space.horizon
    logarithm = states * math.log(2.0) + math.log(states * space.actions / probability("delta", delta))
    wanted = positive_number("epsilon", epsilon)
    return math.ceil(positive_number("factor", factor) * logarithm * horizon**4 / wanted**2)
