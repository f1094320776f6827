"""Adversaries that look at the agent first, and show it the context on which it does worst.

In every episode they ask for the agent's policy on every candidate, which costs as many plans. With many contexts,
`look` draws a few candidates for each episode.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Iterable
from typing import final

import numpy as np

from omg_cmdp.adversaries.base import Adversary, View, context_list
from omg_cmdp.contexts import Context
from omg_cmdp.mdp.divergence import squared_hellinger
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.mdp.truth import Truth
from omg_cmdp.validation import FloatArray, positive_integer


class Worst(Adversary):
    """An adversary that shows the candidate with the largest `harm`, the first of equals.

    Where the harm is unknown, contexts come in turn. A subclass defines `harm`.

    Parameters
    ----------
    contexts : iterable of contexts, or a table
        The candidates.
    look : int, optional
        The number of candidates to compare in each episode, drawn without replacement; by default all. Each costs a
        plan.
    """

    settings = ("contexts", "look")

    def __init__(self, contexts: Iterable[Context], *, look: int | None = None) -> None:
        self.contexts = context_list("contexts", contexts)
        self.look = len(self.contexts) if look is None else positive_integer("look", look)
        if self.look > len(self.contexts):
            raise ValueError(f"`look` must be at most the number of contexts {len(self.contexts)}, got {look}")

    @abc.abstractmethod
    def harm(self, context: Context, view: View) -> float:
        """Return the number that the adversary wants to be large; nan if it is unknown."""

    @final
    def context(self, episode: int, view: View, generator: np.random.Generator) -> Context:
        """Return the most harmful candidate."""
        count = len(self.contexts)
        candidates = list(range(count))
        if self.look < count:
            # Sorted: of equally bad contexts the first of the list comes, as without `look`.
            candidates = sorted(generator.choice(count, self.look, replace=False).tolist())
        harms = [self.harm(self.contexts[i], view) for i in candidates]
        worst = int(np.argmax(harms))  # the first nan, if there is one
        return self.contexts[episode % count if math.isnan(harms[worst]) else candidates[worst]]


@final
class WorstRegret(Worst):
    """The context of the largest exact regret V*(c) - V^π(c) of the policy π that the agent would play now.

    Parameters
    ----------
    contexts : iterable of contexts, or a table
        The candidates.
    look : int, optional
        The number of candidates to compare in each episode, drawn without replacement; by default all. Each costs a
        plan.

    Examples
    --------
    >>> adversary = WorstRegret(["easy", "hard"])
    >>> adversary.contexts, adversary.look
    (('easy', 'hard'), 2)
    """

    def harm(self, context: Context, view: View) -> float:
        """Return the regret, computed in the true MDP."""
        truth = view.environment.truth(context)
        return truth.regret(_policy(truth, context, view))


@final
class LargestDisagreement(Worst):
    """The context with the largest error of the agent's model, where the agent's own policy leads.

    The error is Σ_{h,s,a} q_h(s, a)·[(f - f̂)² + D²(P, P̂)](s, a), with q the true occupancy of the policy that the
    agent would play and D² the squared Hellinger distance: the loss that the oracles are expected to pay in this
    episode. An agent without a model sees all contexts in turn.

    Parameters
    ----------
    contexts : iterable of contexts, or a table
        The candidates.
    look : int, optional
        The number of candidates to compare in each episode, drawn without replacement; by default all. Each costs a
        plan.

    Examples
    --------
    >>> LargestDisagreement(range(100), look=3).look
    3
    """

    def harm(self, context: Context, view: View) -> float:
        """Return the expected error of the model in one episode; nan without a model."""
        model = view.model(context)
        if model is None:
            return math.nan
        truth = view.environment.truth(context)
        # Under the truth, not the model: this is where the episode will be.
        occupancy = truth.occupancy(_policy(truth, context, view))
        return float((occupancy * _errors(truth.mdp, model)).sum())


def _policy(truth: Truth, context: Context, view: View) -> FloatArray:
    return truth.mdp.space.checked_policy(view.policy(context))


def _errors(true: TabularMDP, model: TabularMDP) -> FloatArray:
    """Return (f - f̂)² + D²(P, P̂), of shape (1, S, A) or (H, S, A)."""
    rewards = true.reward_steps - model.reward_steps
    return np.asarray(rewards**2 + squared_hellinger(true.transition_steps, model.transition_steps))
