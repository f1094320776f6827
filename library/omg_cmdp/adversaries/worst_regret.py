"""An adversary that looks at the agent first, and shows it the context on which it does worst."""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

import numpy as np

from omg_cmdp.adversaries.base import Adversary, View, context_list
from omg_cmdp.contexts import Context
from omg_cmdp.validation import positive_integer


@final
class WorstRegret(Adversary):
    """The context of the largest exact regret V*(c) - V^π(c) of the policy π that the agent would play now.

    In every episode it asks for the agent's policy on every candidate, which costs as many plans. The first of equals
    is shown.

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

    settings = ("contexts", "look")

    def __init__(self, contexts: Iterable[Context], *, look: int | None = None) -> None:
        self.contexts = context_list("contexts", contexts)
        self.look = len(self.contexts) if look is None else positive_integer("look", look)
        if self.look > len(self.contexts):
            raise ValueError(f"`look` must be at most the number of contexts {len(self.contexts)}, got {look}")

    def context(self, episode: int, view: View, generator: np.random.Generator) -> Context:
        """Return the candidate with the largest regret."""
        candidates = list(range(len(self.contexts)))
        if self.look < len(candidates):
            # Sorted: of equally bad contexts the first of the list comes, as without `look`.
            candidates = sorted(generator.choice(len(candidates), self.look, replace=False).tolist())
        regrets = [present_regret(self.contexts[i], view) for i in candidates]
        return self.contexts[candidates[int(np.argmax(regrets))]]


def present_regret(context: Context, view: View) -> float:
    """Return what the agent would lose now, computed in the true MDP."""
    truth = view.environment.truth(context)
    return truth.regret(truth.mdp.space.checked_policy(view.policy(context)))
