"""Gymnasium's FrozenLake with its success rate as context: cross the ice, and mind the holes.

States       The 4 × 4 cells of Gymnasium's map and one more, where ended episodes stay; there only action 0 is
             admissible. Episodes start in the cell of the map's S.
Actions      4 directions.
Horizon      H = 100, Gymnasium's time limit; 200 is usual for the map "8x8".
Contexts     6 success rates from .4 to .9; any number in [0, 1] has an MDP. The features are [rate, 1 - rate].
Transitions  Gymnasium's own tables. A move goes where it should with probability `rate`, and to each side with (1 -
             rate)/2: affine in the rate, P = rate·P₁ + (1 - rate)·P₀. A hole, or the goal, ends the episode.
Rewards      1 for reaching the goal, which ends the episode: it earns 1 at most. In the table the probability to reach
             it; a sampled reward is 1 only where the episode ends.
Class        8 hypotheses on which action is which direction, permutations, for the rewards and for the transitions; the
             same one is true in both.
Dial         towards a lake where every cell has a success rate of its own, uniform in [.4, .9], whatever the context.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.mdp.episode import Episode
from omg_cmdp.validation import FloatArray, one_of
from omg_lab.worlds.gymnasium.grids import Grid, GridTables, read_tables, within_one_cell

MAPS = ("4x4", "8x8")
"""Those that Gymnasium has."""


@final
@dataclass(kw_only=True, eq=False)
class FrozenLake(Grid):
    """Gymnasium's FrozenLake with its success rate as context; needs the extra `gymnasium`.

    Parameters
    ----------
    map_name : str
        "4x4", the default, or "8x8".
    horizon : int
        The size H.
    context_count : int
        Number of contexts, evenly spread.
    class_size : int
        Number of permutations of the actions, for rewards and transitions.
    misspecification : float
        The dial ε in [0, 1): the share of what lies outside the class; 0 by default, so that the truth is a member.
    seed : int
        Draws the structure: the class, its true member and what the dial moves towards.

    >>> lake = FrozenLake(horizon=30)
    >>> [round(lake.optimal_value(rate), 3) for rate in (0.4, 0.9)]
    [0.354, 0.916]
    """

    map_name: str = "4x4"
    horizon: int = 100

    return_range = (0.0, 1.0)
    action_names, feature_names = ("left", "down", "right", "up"), ("success rate",)
    shares = (0.4, 0.9)

    def _tables(self) -> tuple[GridTables, GridTables]:
        one_of("map_name", self.map_name, MAPS)
        always, never = (read_tables("FrozenLake-v1", map_name=self.map_name, success_rate=rate) for rate in (1.0, 0.0))
        return always, never

    def _draw(self) -> None:
        super()._draw()
        side = math.isqrt(self.space.states - 1)
        self.support = within_one_cell(rows=side, columns=side)

    def sample(self, context: Context, policy: FloatArray, generator: np.random.Generator) -> Episode:
        """Play `policy` for one episode; 4H + 1 random numbers are used.

        A step that ends the episode has reached the goal with the probability that it has given this.
        """
        e, end = super().sample(context, policy, generator), self.space.states - 1
        mdp, uniforms = self.truth(context).mdp, generator.random(self.space.horizon)
        goal, ends = (table[e.states[:-1], e.actions] for table in (mdp.rewards, mdp.transitions[..., end]))
        arrives = (e.states[:-1] != end) & (e.next_states == end)
        rewards = (arrives & (uniforms * ends < goal)).astype(np.float64)
        return e.with_rewards(rewards)
