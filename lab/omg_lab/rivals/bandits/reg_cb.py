"""RegCB: confidence bounds from a regression oracle (Foster, Agarwal, Dudík, Luo and Schapire, ICML 2018).

With F the plausible functions (`plausible.py`), low(a) = min f(c, a) and high(a) = max f(c, a) over them,

    optimistic     play argmax high
    elimination    play any a with high(a) >= max low, each as often

UCB and LinUCB are special cases. The paper refits at doubling epochs, with β_m of order (M - m + 1)·log(|F|·T/δ) in the
m-th of M (the constant is not certain), and proves regret bounds under assumptions on the distribution of contexts and
on F; without them no optimism of this kind is safe. In its experiments, as here, the set changes in every round, with
β_t = C₀·log(A·t) and C₀ to be tuned; here β is a number or a function of t.

Proven here: in a round in which the truth is plausible, the regret of playing a is at most

    optimistic     high(a) - low(a)                        because max f* <= max high = high(a)
    elimination    2·max (high - low) over the survivors   because high(a) >= max low >= low(a*), and a* survives

Source: named in the paper of this project.
"""

from __future__ import annotations

import dataclasses
from typing import final

import numpy as np

from omg_cmdp.agents.exploration.schedules import Schedule, Tuned
from omg_cmdp.contexts import Context
from omg_cmdp.planning.decision import Decision
from omg_lab.rivals.bandits.plausible import RADIUS, plausible
from omg_lab.rivals.declared import Bandit, Option, flag, schedule


@final
class RegCB(Bandit):
    """Play the best action of the most hopeful plausible function, or any action that may be the best.

    Parameters
    ----------
    space : Space
        A space of horizon 1.
    reward_oracle : RewardOracle
        An online oracle.
    dynamics_oracle : DynamicsOracle
        Any; dynamics do not matter in one step.
    radius : float, Power or function of the episode
        β, the loss by which a function may be behind the best and stay plausible; 3 by default.
    optimistic : bool
        True, the default: the most hopeful action; False: the uniform distribution over the survivors.
    reward_range, return_range
        As for every `Learner`.

    >>> from omg_lab.rivals import RegCB
    >>> from omg_lab.worlds import Arms
    >>> RegCB.for_world(Arms()).policy(0).shape
    (1, 1, 10)
    """

    radius: Option[Tuned, Schedule] = Option(schedule, RADIUS)
    _: dataclasses.KW_ONLY
    optimistic: Option[bool, bool] = Option(flag, True)

    def decide(self, context: Context) -> Decision:
        """Return one action in each state, or the uniform distribution over the survivors."""
        model, radius = self.model(context), self.radius(self.episodes_seen + 1)
        seen = plausible(self.reward_oracle, context, radius, self.space.admissible)
        if self.optimistic:
            policy = np.eye(self.space.actions)[seen.highs.argmax(axis=1)]
        else:
            policy = seen.survivors / seen.survivors.sum(axis=1, keepdims=True)
        return Decision(policy=policy[None], model=model)
