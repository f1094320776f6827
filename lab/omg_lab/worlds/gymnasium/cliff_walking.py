"""Gymnasium's CliffWalking with wind as context: along the edge if it is calm, and far from it if not.

States       The 4 × 12 cells and one more, where ended episodes stay; there only action 0 is admissible. Episodes start
             in the lower left corner, the goal is the lower right one, and the cells between are the cliff.
Actions      4 directions.
Horizon      H = 30.
Contexts     6 strengths of wind w from .05 to .5; any number in [0, 1] has an MDP. The features are [w, 1 - w].
Transitions  Gymnasium's own tables, (1 - w)·P + w·P', P those of the calm and P' those of the slippery environment,
             where a move goes to either side with probability ⅓ each. A step over the edge leads back to the start; the
             goal ends the episode.
Rewards      Gymnasium's -1 for a step and -100 over the edge are divided by 100, and 1 is added to every step: .99, 0,
             and 1 once the episode has ended. A value V here is 100·(V - H) there, and regrets there are 100 times
             those here. Given state and action a sampled reward has its true distribution, and is independent of the
             next state.
Class        8 hypotheses on which action is which direction, permutations, for the rewards and for the transitions; the
             same one is true in both.
Dial         towards a cliff where every cell has a wind of its own, uniform in [.05, .5], whatever the context.
"""

from __future__ import annotations

from typing import final

from omg_lab.worlds.gymnasium.grids import Grid, GridTables, read_tables, within_one_cell

ROWS, COLUMNS = 4, 12
START = 36
FALL = 100.0
"""What a step over the edge costs; every other step costs 1."""

STEP = 1.0 - 1.0 / FALL


@final
class CliffWalking(Grid):
    """Gymnasium's CliffWalking with wind as context; needs the extra `gymnasium`.

    Parameters
    ----------
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

    >>> cliff = CliffWalking()
    >>> round(FALL * (cliff.optimal_value(0.0) - cliff.space.horizon), 9)  # calm: 13 steps of -1
    -13.0
    """

    action_names, feature_names = ("up", "right", "down", "left"), ("wind",)
    shares = (0.05, 0.5)

    def _tables(self) -> tuple[GridTables, GridTables]:
        windy, calm = (read_tables("CliffWalking-v1", is_slippery=slippery) for slippery in (True, False))
        return _rescaled(windy), _rescaled(calm)

    def _draw(self) -> None:
        super()._draw()
        self.support = within_one_cell(rows=ROWS, columns=COLUMNS)
        self.support[:-1, :, START] = True

    def draw_reward(self, mean: float, uniform: float) -> float:
        """Return .99 for a step, 0 for one over the edge, 1 after the end, with the given mean."""
        return 1.0 if mean > STEP else STEP * (uniform * STEP < mean)


def _rescaled(tables: GridTables) -> GridTables:
    return tables._replace(rewards=1.0 + tables.rewards / FALL)
