"""OptCMDP with bonuses (Efroni, Mannor and Pirotta, 2020), and a pessimistic sister, on tables for cells of contexts.

With UCBVI's bonus β(s, a) (Hoeffding) on the counts of a cell and |c_j| the largest cost, both solve a linear program
over the occupancy measures q of the frequencies P̂ in every episode:

    OptCMDP    max ⟨q, f̂ + β⟩   subject to   ⟨q, c_j - β·|c_j|⟩ <= b_j      optimistic in rewards and in costs
    OptPess    max ⟨q, f̂ + β⟩   subject to   ⟨q, c_j + β·|c_j|⟩ <= b_j      optimistic in rewards, pessimistic in costs

Where no policy meets the pessimistic budgets, OptPess plays the cheapest actions, its safe policy. Costs are known
here; the bonus pays for the transitions. OptCMDP's regret and its violation, without cancellations, are both of order
√T for a single MDP; a pessimistic program violates nothing with high probability, if a strictly safe policy is known
(Liu, Zhou, Kalathil, Kumar and Tian, 2021). On K cells they grow by √K.

Where this differs: the bonus is UCBVI's, with a `scale` to tune, in the place of the papers' constants, and the model
is stationary. Liu et al. enlarge the bonus of rewards by a factor that depends on how safe the safe policy is; here it
is the same.

Source: of both papers the abstract and introduction, and the notation of the second's successor (Bura et al., 2021);
the programs are as they are usually written, and no constant of them is confirmed.
"""

from __future__ import annotations

from typing import final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.mdp.budgets import MET, best_mixture
from omg_cmdp.planning.decision import Decision
from omg_cmdp.planning.solution import Status
from omg_lab.rivals.budgets.limited import Limited, cheapest_policy
from omg_lab.rivals.ucbvi import Hoeffding


class _Program(Limited, Hoeffding):
    """Solves the program with costs that are `_sign` bonuses away from the known ones."""

    _sign = -1.0

    def decide(self, context: Context) -> Decision:
        """Return a mixture of at most J + 1 deterministic policies; the cheapest actions if no policy is feasible."""
        tally, limits = self.tally(context), self.limits(context)
        model, bonus = self._model(tally, context), self.bonus(tally.counts.sum(axis=2))
        largest = np.abs(limits.costs).max(axis=(1, 2, 3), keepdims=True)
        moved = limits._replace(costs=np.where(model.admissible, limits.costs + self._sign * bonus * largest, 0.0))
        best = best_mixture(model, moved, model.reward_steps + bonus)
        kept = best.worst <= MET * model.horizon
        return Decision(
            policy=best.policy if kept else cheapest_policy(model, limits),
            model=model,
            limits=limits,
            prices=best.prices / limits.scales,
            status=Status.SOLVED if kept else Status.INFEASIBLE,
        )


@final
class OptCMDP(_Program):
    """The linear program of a constrained MDP, optimistic in rewards and in costs.

    Parameters
    ----------
    space : Space
        The states, actions and horizon.
    cover : Cover
        Which contexts share a cell: `Blind()`, `PerContext()` or `PerBall(radius)`.
    scale : float
        The constant c of the bonus, to be tuned; 1 by default.
    delta : float
        The probability δ with which the bonus may fail, 0.05 by default.
    costs, budgets
        As for `OMG`; required.
    known_rewards, known_transitions : function, optional
        From a context to the true tables, (S, A) and (S, A, S), where they are known; by default both are learned.
    reward_range, return_range
        As for every `Learner`.

    >>> from omg_lab.rivals import OptCMDP
    >>> from omg_lab.worlds import Reminders
    >>> OptCMDP.for_world(Reminders(), scale=0.1).policy(0).shape
    (7, 6, 3)
    """


@final
class OptPess(_Program):
    """The linear program of a constrained MDP, optimistic in rewards and pessimistic in costs.

    Parameters
    ----------
    space, cover, scale, delta, costs, budgets
        As for `OptCMDP`.
    known_rewards, known_transitions : function, optional
        From a context to the true tables, (S, A) and (S, A, S), where they are known; by default both are learned.
    reward_range, return_range
        As for every `Learner`.

    >>> from omg_lab.rivals import OptPess
    >>> from omg_lab.worlds import Reminders
    >>> OptPess.for_world(Reminders()).policy(0)[0, 0]  # nothing is known yet: silence
    array([1., 0., 0.])
    """

    _sign = 1.0
