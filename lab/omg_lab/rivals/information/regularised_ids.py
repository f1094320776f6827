"""Regularised information-directed sampling (Hao and Lattimore, NeurIPS 2022): information as a reward.

Models M_1..M_K are drawn from the oracles' posteriors, and an optimal policy of the mean model is played for

    f̂(s, a) + λ_t·I(s, a),    I(s, a) = E_k KL(P_k(s, a) ‖ P̄(s, a)) + E_k kl(f_k(s, a) ‖ f̄(s, a)),

P̄ and f̄ the means of the draws: what one visit tells about the model, in nats. Rewards count as coins, for which kl is
the divergence; the paper knows them, and has the first term only.

Why (the paper's argument, in two lines): let Δ and I be the regret and the information that are expected of an episode,
and Γ such that Thompson sampling has Δ² <= Γ·I. The policy minimises Δ - λI, and for Thompson sampling that is at most
√(ΓI) - λI <= Γ/(4λ). So Δ_t <= Γ/(4λ_t) + λ_t·I_t, and over T episodes, if λ does not fall and all information is at
most I,

    E regret <= Σ Γ/(4λ_t) + λ_T·I,    for λ_t = λ_0·√t at most √T·(Γ/(2λ_0) + λ_0·I).

The paper takes one λ for a known T, and proves for tabular MDPs whose tables differ from step to step a Bayesian regret
of order √(S³A²H⁴T) up to logarithms. Its two steps need that a policy's mean value is that in the mean model, and that
information adds up over steps: both hold for independent tables at each step, not for tables that steps share, as in
most of our worlds. λ_0 is the constant to tune; from what the proof would choose, nothing is computed. Contexts: as in
`VIDS`. With a `return_range` the values of rewards are clipped to what it leaves, those of information are not.

Source: the abstract and the introduction of the paper were read; λ is left to be tuned.
"""

from __future__ import annotations

import dataclasses
from typing import final

import numpy as np

from omg_cmdp.agents.exploration.gain import draw_count, drawn_models
from omg_cmdp.agents.exploration.schedules import Power, Schedule, Tuned
from omg_cmdp.contexts import Context
from omg_cmdp.mdp.bellman import ValueBounds
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.oracles.draws import Streams
from omg_cmdp.planning.decision import Decision
from omg_cmdp.validation import FloatArray, positive_integer
from omg_lab.rivals.declared import ModelRival, Option, schedule, seed_value

ROOT = Power(0.1, 0.5)
"""√t/10."""


@final
class RegularisedIDS(ModelRival):
    """Play an optimal policy of the mean model, with the information of a visit added to its reward.

    Parameters
    ----------
    space : Space
        The states, actions and horizon.
    reward_oracle, dynamics_oracle
        Any two oracles; the model of a context is what they predict.
    worth : float, Power or function of the episode
        λ, what a nat of information is worth; √t/10 by default, to be tuned.
    draws : int
        The number K of models drawn, 32 by default.
    seed : int
        Seeds the draws, a function of it and the number of episodes seen, so that asking twice changes nothing.
    reward_range, return_range
        As for every `Learner`.

    >>> from omg_lab.rivals import RegularisedIDS
    >>> from omg_lab.worlds import Decoy
    >>> RegularisedIDS.for_world(Decoy()).policy(0).shape
    (4, 3, 3)
    """

    worth: Option[Tuned, Schedule] = Option(schedule, ROOT)
    _: dataclasses.KW_ONLY
    draws: Option[int, int] = Option(positive_integer, 32)
    seed: Option[int, int] = Option(seed_value, 0)

    def decide(self, context: Context) -> Decision:
        """Return a deterministic policy, optimal with information as a reward."""
        model = self.model(context)
        generator = np.random.default_rng((self.seed, self.episodes_seen))
        streams = Streams.fresh(draw_count(model, self.draws), generator)
        drawn = drawn_models(model, self.reward_oracle, self.dynamics_oracle, context, streams.of(0), streams.of(1))
        worth = self.worth(self.episodes_seen + 1)
        return Decision(policy=informed_policy(model, worth * information(*drawn), self.value_bounds), model=model)


def informed_policy(model: TabularMDP, worths: FloatArray, bounds: ValueBounds) -> FloatArray:
    """Return a policy (H, S, A), one-hot, that is optimal for rewards plus `worths` (steps, S, A).

    `bounds` say what can be earned from each step on; information is no part of a return, and has no bounds. Ties go
    to the lowest action.
    """
    policy, rows = np.zeros((model.horizon, model.states, model.actions)), np.arange(model.states)
    values, told = np.zeros((2, model.states))
    for h in reversed(range(model.horizon)):
        transitions = model.transition_steps[h % len(model.transition_steps)]
        earning = model.reward_steps[h % len(model.reward_steps)] + transitions @ values
        telling = worths[h % len(worths)] + transitions @ told
        chosen = np.where(model.admissible, earning + telling, -np.inf).argmax(axis=1)
        policy[h, rows, chosen] = 1.0
        values, told = np.clip(earning[rows, chosen], bounds.lows[h], bounds.highs[h]), telling[rows, chosen]
    return policy


def information(rewards: FloatArray, transitions: FloatArray) -> FloatArray:
    """Return I (steps, S, A) of drawn `rewards` (K, steps, S, A) and `transitions` (K, steps, S, A, S), in nats.

    >>> information(np.array([0.0, 1.0]).reshape(2, 1, 1, 1), np.ones((2, 1, 1, 1, 1))).round(4)
    array([[[0.6931]]])
    """
    coins = np.stack([rewards, 1.0 - rewards], axis=-1)
    return np.asarray(_divergence(transitions) + _divergence(coins))


def _divergence(rows: FloatArray) -> FloatArray:
    """Return E_k KL(p_k ‖ p̄) for rows (K, ..., n): the entropy of the mean, less the mean entropy."""
    return np.asarray(np.maximum(_entropy(rows.mean(axis=0)) - _entropy(rows).mean(axis=0), 0.0))


def _entropy(rows: FloatArray) -> FloatArray:
    return np.asarray(-(rows * np.log(np.where(rows > 0.0, rows, 1.0))).sum(axis=-1))
