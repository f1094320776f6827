"""KWIK_LR-Rmax (Modi, Jiang, Singh and Tewari, ALT 2018): Rmax with linear regressions that know what they know.

Contexts are mixtures, c >= 0 with Σc = 1, of d types whose MDPs are unknown: P_c = Σ_i c_i·P_i and f_c = Σ_i c_i·f_i.
Each pair (s, a) has a regression of the next state (as a unit vector) and of the reward on c,

    Q = (I + Σ ccᵀ)⁻¹,   W = Σ c·yᵀ,   ŷ = cᵀ·Q·W,

over the visits at which it was not known. It is known for c iff ‖Qc‖₁ <= α, `threshold`; else it answers "I do not
know", and the pair absorbs with maximal value (`rmax.py`). ŷ of the next state is clipped at 0 and normalised.

Proven here.
1. Without noise, y = cᵀθ, the error is exactly cᵀ·Q·θ: W = (Q⁻¹ - I)·θ. Rows of θ = (P_1, ..., P_d) are
   distributions, so ‖cᵀQθ‖₁ <= ‖Qc‖₁ <= α, and α bounds the error of a reward likewise. Clipping moves no closer entry
   away, and normalising at most doubles the error: ‖P̂ - P*‖₁ <= 2α. With α = ε/(4·H·(1 + H)) known pairs cost at most
   ε/2.
2. It does not know at most n times, n the largest with n·log(1 + α²/d) <= d·log(1 + n/d). For ‖Qc‖₁ <= √d·‖Qc‖₂ and
   ‖Qc‖₂² <= cᵀQc, since Q <= I; so an unknown visit has cᵀQc > α²/d, and multiplies det Q⁻¹ by 1 + cᵀQc. That
   determinant is at most (1 + n/d)^d, by the mean of its eigenvalues and ‖c‖₂ <= 1. ∎

What is not certain: the norm in the test of what is known is that of another implementation, found in public. The
paper's α, of order ε² and smaller, could not be confirmed, nor its bound, notes say Õ(d²·H·S·A·max(d², S²)/ε⁵)
episodes worse than ε; α is to be tuned. A pair is known at c after some 1/α visits in the direction of c.

Source: named in the paper of this project; pseudo-code in the project's theory notes (§5).
"""

from __future__ import annotations

import dataclasses
from typing import Any, Self, final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.mdp.bellman import optimal_policy
from omg_cmdp.mdp.environment import Environment
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.mdp.trajectory import Trajectory
from omg_cmdp.oracles.features import FeatureFunction, Features
from omg_cmdp.oracles.witnesses import Source
from omg_cmdp.planning.decision import Decision
from omg_cmdp.validation import BoolArray, FloatArray, positive_integer, positive_number
from omg_lab.features import unit_features
from omg_lab.rivals.declared import Option, Rival
from omg_lab.rivals.pac.rmax import induced_mdp


@final
class KWIKRmax(Rival):
    """Rmax on regressions of next states and rewards on the context, each of which knows what it knows.

    Parameters
    ----------
    space : Space
        The states, actions and horizon.
    dimension : int
        Length d of the features.
    features : function, optional
        From a context to c, (d,), of norm at most 1; by default the context. What is proven wants mixture weights.
    threshold : float
        α, below which a prediction counts as known; 0.05 by default, to be tuned.
    reward_range, return_range
        As for every `Learner`.

    >>> from omg_lab.rivals import KWIKRmax
    >>> from omg_lab.worlds import Decoy
    >>> KWIKRmax.for_world(Decoy()).policy(0).shape
    (4, 3, 3)
    """

    _: dataclasses.KW_ONLY
    dimension: Option[int, int] = Option(positive_integer)
    features: FeatureFunction | None = None
    threshold: Option[float, float] = Option(positive_number, 0.05)

    derived = ("feature_map",)
    learned = ("inverses", "moments")

    def __post_init__(self) -> None:
        super().__post_init__()
        self._features = Features(self.features, (self.dimension,), 1.0)
        self.feature_map = self._features.settings
        pairs = self.space.admissible.shape
        self._inverses = np.tile(np.eye(self.dimension), (*pairs, 1, 1))
        self._moments = np.zeros((*pairs, self.dimension, self.space.states + 1))  # the last column is of rewards

    @classmethod
    def for_world(cls, world: Environment, **options: Any) -> Self:
        """Return an agent with features of the world's contexts in the unit ball."""
        features, dimension = unit_features(world)
        return super().for_world(world, **{"features": features, "dimension": dimension} | options)

    def decide(self, context: Context) -> Decision:
        """Return an optimal policy, deterministic, of the induced MDP."""
        model = self.model(context)
        return Decision(policy=optimal_policy(model, bounds=self.value_bounds)[0], model=model)

    def model(self, context: Context) -> TabularMDP:
        """Return the induced MDP of a context."""
        (weights,) = self._features(context)
        directions = self._inverses @ weights  # Qc, (S, A, d)
        predictions = np.einsum("sad,sadj->saj", directions, self._moments)
        positive = np.maximum(predictions[:, :, :-1], 0.0)
        mass = positive.sum(axis=2, keepdims=True)
        transitions = np.where(mass > 0.0, positive / np.where(mass > 0.0, mass, 1.0), 1.0 / self.space.states)
        return induced_mdp(self.space, transitions, np.clip(predictions[:, :, -1], 0.0, 1.0), self._known(directions))

    def _known(self, directions: FloatArray) -> BoolArray:
        return np.asarray(np.abs(directions).sum(axis=-1) <= self.threshold)

    def _learn(self, trajectory: Trajectory, rewards: FloatArray) -> None:
        """Add the visits of pairs that are not known to their regressions."""
        (weights,) = self._features(trajectory.context)
        self._witness(trajectory)
        steps = zip(trajectory.states[:-1], trajectory.actions, trajectory.next_states, rewards, strict=True)
        for state, action, next_state, reward in steps:
            inverse = self._inverses[state, action]
            direction = inverse @ weights
            if not self._known(direction):
                inverse -= np.outer(direction, direction) / (1.0 + weights @ direction)
                self._moments[state, action, :, next_state] += weights
                self._moments[state, action, :, -1] += weights * reward

    def _sources(self) -> dict[str, Source]:
        return {"features": self._features}
