"""The uncertainty Bellman equation (O'Donoghue, Osband, Munos and Mnih, ICML 2018), one table per cell of contexts.

The posterior of a cell is a Dirichlet distribution for each row of transitions and a Beta distribution for each mean
reward. With r̄ and P̄ its means, π the optimal policy of that model and Q̄ its values,

    u_h(s, a) = ν_h(s, a) + Σ P̄(s'|s, a)·u_{h+1}(s', π),    u_H = 0,
    ν_h(s, a) = Var r + B²_{h+1}·Σ_s' Var P(s')/P̄(s') = r̄(1 - r̄)/(n + 3) + B²_{h+1}·(S - 1)/(n + αS + 1),

where B_{h+1} is the most that can be earned after step h (the paper: one Q_max for all steps). The agent plays, in
every step, an action that maximises Q̄_h(s, a) + β·ζ·√u_h(s, a) with ζ ~ N(0, 1) for each action: variances add along a
path, where bonuses add standard deviations. The paper chooses β by experiment, and proves no regret bound.

Proven, there and here, if no state can come back within an episode and rows and rewards are independent: u_h >= Var
Q^π_h for any fixed π. For P of this step is independent of V_{h+1}, and

    Var(P·V) = E Var(P·V | P) + Var(P·E V) <= Σ P̄·Var V(s') + E(Σ (P - P̄)·E V)²,

the first since Var(Σ pX) <= Σ p·Var X, the second at most Σ Var P/P̄·Σ P̄·(E V)² by Cauchy and Schwarz, and V <= B. And
Var V = Var(Σ_a π·Q) <= Σ_a π·Var Q. Where states come back, the same row is used twice, and nothing is proven.
"""

from __future__ import annotations

from typing import NamedTuple, Unpack, final

import numpy as np

from omg_cmdp.agents.base import Ranges
from omg_cmdp.contexts import Context
from omg_cmdp.mdp.bellman import best_response, policy_values
from omg_cmdp.mdp.space import Space
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.planning.decision import Decision
from omg_cmdp.validation import FloatArray, at_least_zero, positive_number, seed_number
from omg_lab.rivals.cells import CellLearner, Tally
from omg_lab.rivals.covers import Cover


class Beliefs(NamedTuple):
    """What an agent believes of a policy's values, (H, S, A) each."""

    means: FloatArray
    """Q̄."""
    variances: FloatArray
    """u."""


@final
class UncertaintyBellman(CellLearner):
    """Noise of the size of a value's uncertainty, which follows a Bellman equation of its own.

    `cover` says which contexts share a cell. `scale` is β, the constant to tune; 0 is greedy. `prior` is α, the
    pseudo-count of each next state. The noise is a function of `seed` and the number of episodes seen.
    """

    settings = ("cover", "scale", "prior", "seed")

    def __init__(
        self,
        space: Space,
        cover: Cover,
        *,
        scale: float = 1.0,
        prior: float = 0.5,
        seed: int = 0,
        **ranges: Unpack[Ranges],
    ) -> None:
        super().__init__(space, cover, **ranges)
        self.scale = at_least_zero("scale", scale)
        self.prior = positive_number("prior", prior)
        self.seed = seed_number(seed)

    def decide(self, context: Context) -> Decision:
        """Return a deterministic policy, greedy for Q̄ with noise."""
        model, beliefs = self.model(context), self.beliefs(context)
        generator = np.random.default_rng((self.seed, self.episodes_seen))
        noise = generator.standard_normal(beliefs.means.shape)
        noisy = np.where(model.admissible, beliefs.means + self.scale * noise * np.sqrt(beliefs.variances), -np.inf)
        return Decision(policy=np.eye(model.actions)[noisy.argmax(axis=2)], model=model)

    def beliefs(self, context: Context) -> Beliefs:
        """Return means and variances of the values of the model's optimal policy."""
        tally = self.tally(context)
        model = self._model(tally)
        policy, values = best_response(model, model.rewards[None], bounds=self.value_bounds)
        means = model.rewards + np.einsum("saj,hj->hsa", model.transitions, values[1:])
        return Beliefs(means, uncertainties(model, policy, self._local(tally, model)))

    def _local(self, tally: Tally, model: TabularMDP) -> FloatArray:
        """Return ν, (H, S, A)."""
        visits, states = tally.counts.sum(axis=2), self.space.states
        rewards = model.rewards * (1.0 - model.rewards) / (visits + 3.0)
        rows = (states - 1.0) / (visits + self.prior * states + 1.0)
        return np.asarray(rewards + self.value_bounds.highs[1:, None, None] ** 2 * rows)

    def _model(self, tally: Tally) -> TabularMDP:
        """Return the means of the posterior."""
        visits, states = tally.counts.sum(axis=2), self.space.states
        rows = (tally.counts + self.prior) / (visits + self.prior * states)[:, :, None]
        return self.space.mdp(transitions=rows, rewards=(tally.rewards + 1.0) / (visits + 2.0))


def uncertainties(model: TabularMDP, policy: FloatArray, local: FloatArray) -> FloatArray:
    """Return u (H, S, A) of `policy`: the values of a policy whose rewards are ν = `local`, (H, S, A)."""
    return policy_values(model, policy, local)[1]
