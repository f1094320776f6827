"""Bootstrapped ensembles with randomised priors (Osband et al. 2016, 2018), one table per cell of contexts.

An ensemble is K models. Each begins with random pseudo-counts and weighs every step that is seen by a random number of
its own; before an episode one of them is drawn, and its optimal policy is played to the end. The originals are
networks, with Poisson or coin weights; here the models are tables and the weights are exponential, the Bayesian
bootstrap (Rubin 1981), for a reason:

    counts of member k  =  G_k(s, a, s') + Σ of w over the visits that led to s',    G ~ Gamma(α), w ~ Exp(1).

A sum of n exponentials is Gamma(n), so that the counts are independent Gamma(α + N(s, a, s')), and the row of the
member, its counts divided by their sum, has the Dirichlet(α + N) distribution: **each member is a draw from the
posterior** of that prior, whatever the data, if others gathered them. Likewise its mean rewards, from Beta(1 + Σr, 1 +
Σ(1 - r)) for rewards that are 0 or 1. So the ensemble is `PosteriorSampling` with K draws that last: with K = 1 it is
greedy for a random prior, and with few members all may agree on something wrong for ever. What members have played,
they chose by their own weights: about data of the ensemble's own nothing is proven here, or in the papers named.

For models that generalise there is no need of another agent: `PosteriorSampling` draws from the exact posterior of the
package's oracles, and from an ensemble of copies where these are other people's learners (`oracles/adapters`).
"""

from __future__ import annotations

from typing import Unpack, final

import numpy as np

from omg_cmdp.agents.base import Ranges
from omg_cmdp.contexts import Context
from omg_cmdp.mdp.bellman import optimal_policy
from omg_cmdp.mdp.episode import Trajectory
from omg_cmdp.mdp.space import Space
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.planning.decision import Decision
from omg_cmdp.validation import FloatArray, positive_integer, positive_number, seed_number
from omg_lab.rivals.cells import CellLearner, Tally
from omg_lab.rivals.covers import Cover

SMALLEST = 1e-300
"""Added to pseudo-counts, so that a row with a tiny prior has a sum."""


@final
class BootstrappedEnsemble(CellLearner):
    """Play an optimal policy of one of several models, each fitted to its own random weights of what was seen.

    `cover` says which contexts share a cell; `members` is K, and `prior` is α, the mean pseudo-count of a next state.
    All that is random is a function of `seed`, the cell and the number of episodes seen.
    """

    settings = ("cover", "members", "prior", "seed")

    def __init__(
        self,
        space: Space,
        cover: Cover,
        *,
        members: int = 10,
        prior: float = 0.5,
        seed: int = 0,
        **ranges: Unpack[Ranges],
    ) -> None:
        super().__init__(space, cover, **ranges)
        self.members = positive_integer("members", members)
        self.prior = positive_number("prior", prior)
        self.seed = seed_number(seed)

    def decide(self, context: Context) -> Decision:
        """Return a deterministic policy, optimal in the member drawn."""
        member = int(np.random.default_rng((self.seed, self.episodes_seen)).integers(self.members))
        tally = self.tally(context)
        rows, rewards = (_shares(tables[member]) for tables in tally)
        drawn = self.space.mdp(transitions=rows, rewards=rewards[:, :, 1])
        return Decision(policy=optimal_policy(drawn, bounds=self.value_bounds)[0], model=self._model(tally))

    def _model(self, tally: Tally) -> TabularMDP:
        """Return the mean of the members."""
        rows, rewards = (_shares(tables).mean(axis=0) for tables in tally)
        return self.space.mdp(transitions=rows, rewards=rewards[:, :, 1])

    def _empty_tally(self, cell: int) -> Tally:
        """Return pseudo-counts: (K, S, A, S) of next states, and (K, S, A, 2) of rewards 0 and 1."""
        generator = np.random.default_rng((self.seed, cell, 1))
        table = (self.members, self.space.states, self.space.actions)
        counts = generator.gamma(self.prior, size=(*table, self.space.states)) + SMALLEST
        return Tally(counts, generator.gamma(1.0, size=(*table, 2)) + SMALLEST)

    def _add(self, tally: Tally, trajectory: Trajectory, rewards: FloatArray) -> None:
        generator = np.random.default_rng((self.seed, self.episodes_seen, 2))
        of_states, of_rewards = generator.standard_exponential((2, self.members, len(rewards)))
        states, actions, members = trajectory.states[:-1], trajectory.actions, np.arange(self.members)[:, None]
        np.add.at(tally.counts, (members, states, actions, trajectory.next_states), of_states)
        np.add.at(tally.rewards[..., 0], (members, states, actions), of_rewards * (1.0 - rewards))
        np.add.at(tally.rewards[..., 1], (members, states, actions), of_rewards * rewards)


def _shares(counts: FloatArray) -> FloatArray:
    """Return counts (..., n) divided by their sum."""
    return np.asarray(counts / counts.sum(axis=-1, keepdims=True))
