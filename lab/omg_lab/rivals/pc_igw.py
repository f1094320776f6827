"""E2D with PC-IGW: inverse gap weighting of a cover of policies (Foster, Kakade, Qian and Rakhlin, 2021, Algorithm 4).

The same setting as OMG-CMDP!: adversarial contexts, two online oracles, a class that holds the truth. In the estimated
model, for every reachable (h, s, a), of which there are n, a policy is found that maximises

    q_h(s, a|π)/(2n + γ·gap(π)),    gap(π) = V̂* - V̂^π,

and one of them, or the greedy policy, is drawn with probability p(π) = 1/(λ + γ·gap(π)), λ in [1, 2n], and played for
the whole episode. The paper measures values in units of H, and its parameter is η = γ·H; in our units γ stands where
OMG's does. With q̄ the mean occupancy in the model and err = (f* - f̂) + (P* - P̂)·V*, in every episode

    E_p gap(π) <= 2n/γ,    q(π') <= q̄·(2n + γ·gap(π')) for every policy π',
    V* - E_p V̂^π <= 4n/γ + (γ·H/4)·Σ q̄·err²:

as for OMG, with four times its price of exploration and H times its weight of errors. The paper counts H·S·A tuples;
the reachable ones are enough. It maximises over all policies; by which method is not certain.

Two facts make it fast here. The gap of a policy is Σ q·(V̂* - Q̂*), so that a policy that gets to s at step h with
probability d, loses g before that, plays a there and is greedy from then on, has the ratio

    d/(2n + γ·(g + d·loss_a)) = 1/((2n + γ·g)/d + γ·loss_a),    loss_a = V̂*_h(s) - Q̂*_h(s, a):

the best way to s does not depend on what is to be done there, and one search serves all actions. And the search is
Dinkelbach's: a few backward inductions over the steps before h.

Source: named in the paper of this project; pseudo-code in the project's theory notes (§1).
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple, final

import numpy as np

from omg_cmdp.agents.exploration.schedules import Power, Schedule, Tuned
from omg_cmdp.contexts import Context
from omg_cmdp.jit import Lazy
from omg_cmdp.mdp.occupancy import reachable_states
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.planning.decision import Decision, Mixture
from omg_cmdp.validation import FloatArray
from omg_lab.rivals.declared import ModelRival, Option, schedule, seed_value

compiled = Lazy("omg_lab.rivals.compiled.inverse_gap")


ROOT = Power(100.0, 0.5)
"""100·√t."""


class PolicyCover(NamedTuple):
    """Deterministic policies, all different, the optimal one first."""

    policies: FloatArray
    """(K, H, S, A), one-hot."""
    gaps: FloatArray
    """V* - V^π, (K,)."""
    plans: int
    """The number of backward inductions."""


@final
class PCIGW(ModelRival):
    """Play one policy of the cover, drawn by inverse gap weighting.

    Parameters
    ----------
    space : Space
        The states, actions and horizon.
    reward_oracle, dynamics_oracle
        Any two oracles; the model of a context is what they predict.
    gamma : float, Power or function of the episode
        γ; 100·√t by default, to be tuned.
    seed : int
        Seeds the draws, a function of it and the number of episodes seen, so that asking twice changes nothing.
    reward_range, return_range
        As for every `Learner`.

    >>> from omg_lab.rivals import PCIGW
    >>> from omg_lab.worlds import Decoy
    >>> PCIGW.for_world(Decoy()).policy(0).shape
    (4, 3, 3)
    """

    gamma: Option[Tuned, Schedule] = Option(schedule, ROOT)
    _: dataclasses.KW_ONLY
    seed: Option[int, int] = Option(seed_value, 0)

    def decide(self, context: Context) -> Decision:
        """Return a policy drawn from the mixture, and the mixture."""
        gamma = self.gamma(self.episodes_seen + 1)
        model = self.model(context)
        cover = policy_cover(model, gamma)
        mixture = Mixture(cover.policies, inverse_gap_weights(gamma * cover.gaps)[0])
        drawn = mixture.draw(np.random.default_rng((self.seed, self.episodes_seen)))
        return Decision(policy=drawn, mixture=mixture, model=model, gamma=gamma, iterations=cover.plans)


def policy_cover(mdp: TabularMDP, gamma: float) -> PolicyCover:
    """Return, for every reachable (h, s, a), a policy that maximises q_h(s, a)/(2n + γ·gap); equal ones are merged."""
    transitions, rewards, start, admissible = mdp.raw
    greedy, gains = np.empty((mdp.horizon, mdp.states), np.int64), np.zeros((mdp.horizon, mdp.states, mdp.actions))
    compiled.plan_steps(transitions, admissible, rewards, np.zeros(mdp.states), greedy, gains)
    losses = np.take_along_axis(gains, greedy[:, :, None], axis=2) - gains
    ways, gaps, plans = compiled.policy_cover(
        transitions, start, admissible, losses, greedy, reachable_states(mdp), gamma
    )
    different = {way.tobytes(): index for index, way in reversed(list(enumerate(ways)))}
    first = sorted(different.values())
    return PolicyCover(np.eye(mdp.actions)[ways[first]], gaps[first], plans)


def inverse_gap_weights(gaps: FloatArray) -> tuple[FloatArray, float]:
    """Return p_i = 1/(λ + gap_i), Σ p = 1, and λ, in [1, K] for K gaps; the least gap is 0.

    >>> inverse_gap_weights(np.array([0.0, 1.0]))[0].round(3)
    array([0.618, 0.382])
    """
    weights = np.empty(len(gaps))
    normaliser = compiled.inverse_gap_weights(gaps, weights)
    return weights, normaliser
