"""The adversary that looks at the agent first, and shows it the context on which it does worst.

In every episode it asks for the agent's policy on every candidate, which costs as many plans. With many contexts,
`look` draws a few candidates for each episode.
"""

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

    Of equals the first is shown.

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

    def regret(self, context: Context, view: View) -> float:
        """Return the regret in a context, computed in the true MDP."""
        truth = view.environment.truth(context)
        return truth.regret(truth.mdp.space.checked_policy(view.policy(context)))

    def context(self, episode: int, view: View, generator: np.random.Generator) -> Context:
        """Return the candidate of the largest regret."""
        count = len(self.contexts)
        candidates = list(range(count))
        if self.look < count:
            # Sorted: of equally bad contexts the first of the list comes, as without `look`.
            candidates = sorted(generator.choice(count, self.look, replace=False).tolist())
        return self.contexts[max(candidates, key=lambda place: self.regret(self.contexts[place], view))]
