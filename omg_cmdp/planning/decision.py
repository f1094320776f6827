"""What an agent decides before an episode: a policy, or a mixture of policies, and what led to it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.sampling import draw_index
from omg_cmdp.validation import FloatArray, instance_of


class Mixture(NamedTuple):
    """Policies, one of which is drawn at the start of an episode and played to its end."""

    policies: FloatArray
    """(K, H, S, A)."""
    probabilities: FloatArray
    """(K,)."""

    def draw(self, generator: np.random.Generator) -> FloatArray:
        """Return one of the policies."""
        instance_of("generator", generator, np.random.Generator)
        return np.array(self.policies[draw_index(self.probabilities, generator.random())])


class Decision(NamedTuple):
    """A policy (H, S, A) and what led to it; None, nan and 0 stand for what an agent does not have."""

    policy: FloatArray
    """What to play."""
    mixture: Mixture | None = None
    """What `policy` was drawn from; regret is then that of the mixture."""
    model: TabularMDP | None = None
    gamma: float = float("nan")
    weights: FloatArray | None = None
    """w = γ·m of the barrier, (H, S, A), as `plan` takes it; None: all 1."""
    occupancy: FloatArray | None = None
    """The occupancy measure of `policy` in the model, (H, S, A)."""
    values: FloatArray | None = None
    """The dual values V of the plan, (H, S)."""
    certificate: float = float("nan")
    iterations: int = 0
    regulariser: str = "log"
    """What the plan was regularised by: "log", the barrier, or something else, of which an audit expects nothing."""
