"""The contract of a contextual MDP: the true MDP of every context, its optimum, and episodes sampled from it."""

from __future__ import annotations

import abc
import copy
import functools
import operator
from collections.abc import Sequence

import numpy as np

from omg_cmdp.contexts import KEPT_BYTES, Context, ContextCache, keyed
from omg_cmdp.fingerprints import UNTOLD, fingerprint
from omg_cmdp.jit import Lazy
from omg_cmdp.mdp.environment import Environment
from omg_cmdp.mdp.episode import Episode
from omg_cmdp.mdp.limits import CostLimits, limits_of
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.mdp.truth import Truth
from omg_cmdp.validation import FloatArray, float_table, in_range, instance_of

compiled = Lazy("omg_cmdp.mdp.compiled")


def copied(context: Context) -> Context:
    """Return a context that another may keep or change: of a vector, a record, a list or a tuple a copy, deep down."""
    return copy.deepcopy(context) if isinstance(context, (np.ndarray, dict, list, tuple)) else context


class ContextualMDP(Environment, abc.ABC):
    """A contextual MDP: the true MDP of every context, with exact optimal values, and episodes sampled from it.

    One of your own needs `space` and `mdp(context)`. Rewards are Bernoulli with the mean in the table, unless
    `draw_reward` is overridden. With `costs` and `budgets`, the optimum is the best policy that keeps the budgets.

    Examples
    --------
    >>> from omg_cmdp import Space
    >>> class Coins(ContextualMDP):
    ...     space = Space(states=1, actions=2, horizon=1)
    ...     def mdp(self, context):
    ...         return self.space.mdp(transitions=np.ones((1, 2, 1)), rewards=[[context, 1.0 - context]])
    >>> Coins().optimal_value(0.3)
    0.7
    """

    kept_bytes = KEPT_BYTES
    """Memory in bytes that the truths of recent contexts may take; the last one is always kept."""

    @abc.abstractmethod
    def mdp(self, context: Context) -> TabularMDP:
        """Return the true MDP of `context`."""

    def draw_reward(self, mean: float, uniform: float) -> float:
        """Return a reward in [0, 1] with the given mean, from one uniform number."""
        return float(uniform < mean)

    def truth(self, context: Context) -> Truth:
        """Return the true MDP and its optimum; those of recent contexts are kept."""
        return self._truths.get(context, self._find_truth)

    @functools.cached_property
    def _truths(self) -> ContextCache[Truth]:
        return ContextCache(self.kept_bytes, size=operator.attrgetter("nbytes"))

    def _find_truth(self, context: Context) -> Truth:
        mdp = self.mdp(copied(context))  # a record that `mdp` takes apart is still what the agent learns from
        difference = self.space.difference(mdp.space)
        if difference is not None:
            wanted, got = difference
            raise ValueError(f"`mdp` must return an MDP with {wanted}, as `space` says, got {got}")
        return Truth(mdp, None if self._limits is None else self._limits(context))

    @functools.cached_property
    def _limits(self) -> CostLimits | None:
        return limits_of(self.space, self.costs, self.budgets)

    def fingerprint(self, contexts: Sequence[Context] = ()) -> str:
        """Return a short text that tells worlds apart: also by the tables of some contexts, and by drawn rewards."""
        witnesses = self._witnesses(contexts)
        # Single precision: other machines may compute tables with other last bits.
        tables = [[each.astype(np.float32) for each in self.mdp(context).raw[:2]] for context in witnesses]
        drawn = [self.draw_reward(mean, uniform) for mean in (0.0, 0.5, 1.0) for uniform in (0.1, 0.4, 0.6, 0.9)]
        limits = [] if self._limits is None else [self._limits(context) for context in witnesses]
        facts = fingerprint(*self._facts(witnesses), tables, drawn, *limits)
        return f"{type(self).__name__} {facts}{'' if witnesses else UNTOLD}"

    def optimal_value(self, context: Context) -> float:
        """Return V*(context)."""
        return self.truth(context).best[1]

    def sample(self, context: Context, policy: FloatArray, generator: np.random.Generator) -> Episode:
        """Play `policy` (H, S, A) for one episode in the MDP of `context`; 3H + 1 random numbers are used."""
        instance_of("generator", generator, np.random.Generator)
        known, horizon = keyed(context), self.space.horizon
        truth = self.truth(known)
        mdp = truth.mdp
        # It comes from any agent, and the propensities are only as true as its rows.
        policy = mdp.space.checked_policy(policy)
        uniforms = generator.random(3 * horizon + 1)
        states, actions = np.empty(horizon + 1, dtype=np.int64), np.empty(horizon, dtype=np.int64)
        # Filled by compiled code, which allocates nothing.
        means, earned, propensities = np.empty(horizon), np.empty(horizon), np.empty(horizon)
        transitions, rewards, start, _ = mdp.raw
        compiled.play(transitions, rewards, start, policy, uniforms, states, actions, means, earned, propensities)
        # Bernoulli rewards are drawn in the loop; only a world with rewards of its own pays for Python calls.
        if type(self).draw_reward is not ContextualMDP.draw_reward:
            pairs = zip(means.tolist(), uniforms[2 * horizon + 1 :].tolist(), strict=True)
            earned = float_table("rewards", [self.draw_reward(mean, uniform) for mean, uniform in pairs])
            in_range("rewards", earned, 0.0, 1.0)
        paid = None if truth.limits is None else truth.limits.means(states[:-1], actions)
        return Episode.of_arrays(known, (states, actions, earned), propensities, horizon, costs=paid)
