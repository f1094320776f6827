"""Variance-based information-directed sampling (Russo and Van Roy 2018; Lu et al. 2023, "Reinforcement learning, bit by
bit"; Hao and Lattimore 2022), with whole policies as arms.

Models M_1..M_K are drawn from the oracles' posteriors. The candidates are their optimal policies and that of the mean
model; V_i(k) is the value of candidate i in model k, and i*(k) the best candidate there. For each candidate

    Δ_i = E_k[max_j V_j(k) - V_i(k)],    v_i = Var(E[V_i | i*]) :

the regret that is expected of it, and by how much what it earns would tell which candidate is best. Played is the
mixture p of candidates that minimises (Σ pΔ)²/Σ pv. It has two policies at most: the ratio, minimised over p at a fixed
Σ pΔ, asks for the largest Σ pv, a linear program with two constraints. The best share q of two policies is the zero of
a derivative, in closed form.

Proven here, given the draws as the posterior: with m different policies among i*(1)..i*(K),

    (Σ pΔ)² <= m·Σ pv    and    (Σ pΔ)² <= ½·m·B²·I(i*; what is seen),    B the range of returns.

The first holds for Thompson sampling, which plays i with probability α_i = Pr(i* = i), and so for the minimum: by
Cauchy and Schwarz Σ αΔ = Σ_i α_i·(E[V_i | i* = i] - E V_i) <= √(m·Σ α_i²·(...)²) <= √(m·Σ_i α_i·v_i). The second
follows by Pinsker's inequality, since the return is a function of what is seen. If the draws were the whole posterior
of a single MDP, and m policies could be optimal, informations would add up to at most log m, and the expected regret to
B·√(½·m·T·log m). That is how the papers begin; their bounds for tabular MDPs, such as Hao and Lattimore's √(S³A²H⁴T) up
to logarithms, are for mutual information about the whole environment, over all policies: not for this agent. With
contexts, the information here is about the present one only; Hao, Lattimore and Qin (2022) show where that is myopic.

Source: public code of the ratio's minimum over two actions was read; arms are policies here.
"""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple, final

import numpy as np

from omg_cmdp.agents.exploration.gain import draw_count, drawn_models
from omg_cmdp.contexts import Context
from omg_cmdp.jit import Lazy
from omg_cmdp.mdp.bellman import optimal_policy
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.oracles.draws import Streams
from omg_cmdp.planning.decision import Decision, Mixture
from omg_cmdp.validation import FloatArray, positive_integer
from omg_lab.rivals.declared import ModelRival, Option, seed_value

compiled = Lazy("omg_lab.rivals.compiled.plans")


class Choice(NamedTuple):
    """A mixture of two candidates that minimises the information ratio."""

    first: int
    second: int
    share: float
    """The probability of the first."""
    ratio: float
    """(Σ pΔ)²/Σ pv; 0 where nothing is to be regretted, inf where nothing is to be learned."""


@final
class VIDS(ModelRival):
    """Play a mixture of two policies, with the least squared regret per information about which policy is best.

    Time is K plans and at most K·(K + 1) values of policies an episode.

    Parameters
    ----------
    space : Space
        The states, actions and horizon.
    reward_oracle, dynamics_oracle
        Any two oracles; the model of a context is what they predict.
    draws : int
        The number K of models drawn, 32 by default.
    seed : int
        Seeds the draws, a function of it and the number of episodes seen, so that asking twice changes nothing.
    reward_range, return_range
        As for every `Learner`.

    >>> from omg_lab.rivals import VIDS
    >>> from omg_lab.worlds import Decoy
    >>> VIDS.for_world(Decoy()).policy(0).shape
    (4, 3, 3)
    """

    _: dataclasses.KW_ONLY
    draws: Option[int, int] = Option(positive_integer, 32)
    seed: Option[int, int] = Option(seed_value, 0)

    def decide(self, context: Context) -> Decision:
        """Return a policy drawn from the mixture, and the mixture."""
        generator = np.random.default_rng((self.seed, self.episodes_seen))
        model = self.model(context)
        policies, values = self._candidates(model, context, generator)
        if len(policies) == 1:
            return Decision(policy=policies[0], model=model)
        choice = least_ratio(*regrets_and_information(values))
        shares = np.array([choice.share, 1.0 - choice.share])
        played = shares > 0.0
        mixture = Mixture(policies[[choice.first, choice.second]][played], shares[played])
        return Decision(policy=mixture.draw(generator), mixture=mixture, model=model)

    def _candidates(
        self, model: TabularMDP, context: Context, generator: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Return the candidates, all different, and their values in the drawn models, (M, H, S, A) and (M, K)."""
        streams = Streams.fresh(draw_count(model, self.draws), generator)
        rewards, transitions = drawn_models(
            model, self.reward_oracle, self.dynamics_oracle, context, streams.of(0), streams.of(1)
        )
        _, _, start, admissible = model.raw
        best, occupancies = np.empty((2, len(rewards) + 1, model.horizon, model.states, model.actions))
        best[0] = optimal_policy(model, bounds=self.value_bounds)[0]
        compiled.plan_round(transitions, rewards, start, admissible, *self.value_bounds, best[1:], occupancies[1:])
        different = {policy.tobytes(): policy for policy in best}
        policies = np.array(list(different.values()))
        values = np.empty((len(policies), len(rewards)))
        compiled.cross_values(transitions, rewards, start, policies, values)
        return policies, values


def regrets_and_information(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return Δ and v, (M,) each, of M candidates with these values (M, K) in K equally likely models.

    >>> regrets_and_information(np.array([[1.0, 0.0], [0.5, 0.5]]))
    (array([0.25, 0.25]), array([0.25, 0.  ]))
    """
    best, means = values.argmax(axis=0), values.mean(axis=1)
    information = np.zeros(len(values))
    for candidate in np.unique(best):
        told = values[:, best == candidate]
        information += told.shape[1] / values.shape[1] * (told.mean(axis=1) - means) ** 2
    return values.max(axis=0).mean() - means, information


def least_ratio(regrets: FloatArray, information: FloatArray) -> Choice:
    """Return the best mixture of two: q minimises (qΔ_i + (1-q)Δ_j)²/(q·v_i + (1-q)·v_j) over pairs i, j and q.

    With a = Δ_j, b = Δ_i - Δ_j, c = v_j, d = v_i - v_j, the derivative of (a + bq)²/(c + dq) is zero at a + bq = 0,
    where nothing is lost, and at q = (ad - 2bc)/(bd). If no candidate teaches anything, the least regret is played.

    >>> least_ratio(np.array([1.0, 5.0]), np.array([0.0, 1.0]))
    Choice(first=0, second=1, share=0.75, ratio=16.0)
    """
    free = int(regrets.argmin())
    if regrets[free] <= 0.0 or information.max() <= 0.0:
        return Choice(free, free, 1.0, 0.0 if regrets[free] <= 0.0 else math.inf)
    a, c = regrets[None, :], information[None, :]
    b, d = regrets[:, None] - a, information[:, None] - c
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = np.nan_to_num((a * d - 2.0 * b * c) / (b * d), nan=1.0, posinf=1.0, neginf=1.0)
        shares = np.stack([np.clip(inside, 0.0, 1.0), np.ones_like(inside)])
        ratios = np.nan_to_num((a + b * shares) ** 2 / (c + d * shares), nan=np.inf)
    where, first, second = np.unravel_index(ratios.argmin(), ratios.shape)
    return Choice(int(first), int(second), float(shares[where, first, second]), float(ratios[where, first, second]))
