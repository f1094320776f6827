"""Feel-good Thompson sampling: posterior sampling, tilted towards models with large optimal values.

Zhang (*SIAM Journal on Mathematics of Data Science* 2022) for contextual bandits; Agarwal and Zhang (NeurIPS 2022,
"optimistic posterior sampling") for models of MDPs. A pair of rewards f and transitions P is drawn with weight

    w(f, P) ∝ exp(-2·Σ(f - r)² + Σ log P(s') + λ_t·Σ_{i<t} V*_{f,P}(c_i)),

V*_{f,P}(c) the optimal value of the pair at context c. Plain posterior sampling (λ = 0) has a guarantee on average
over the prior only. With the "feel-good" term there is one for every truth in the class, with λ of order 1/√T and T
known; the rates of the losses, 2 and 1, are those of the textbooks and of `PosteriorSampling`, and larger than
those of the proofs. λ_t = `optimism`/√t, for a T that is not known, is our choice: nothing is proven for it.

The tilt couples f and P, so that all N·M pairs are enumerated: one backward induction for all of them at every new
context, O(N·M·H·S²·A), half a millisecond for 32 × 32 pairs at (H, S, A) = (5, 5, 3), and O(N·M) from then on.

Source: the project's theory notes (§8) have the formula of its weights.
"""

from __future__ import annotations

import dataclasses
import operator
from typing import final

import numpy as np

from omg_cmdp.contexts import KEPT_BYTES, Context, ContextCache
from omg_cmdp.mdp.bellman import optimal_policy
from omg_cmdp.mdp.trajectory import Trajectory
from omg_cmdp.oracles.draws import Streams, resample
from omg_cmdp.oracles.finite.aggregating import FiniteDynamics, FiniteRewards
from omg_cmdp.persistence import State, numbers
from omg_cmdp.planning.decision import Decision
from omg_cmdp.validation import FloatArray
from omg_lab.rivals.declared import ModelRival, Option, finite, seed_value
from omg_lab.rivals.hypotheses import Hypotheses


@final
class FeelGoodThompson(ModelRival):
    """Draw f and P together from the tilted posterior of two finite classes, and play an optimal policy of the pair.

    Parameters
    ----------
    space : Space
        The states, actions and horizon.
    reward_oracle : FiniteRewards
        The class of reward functions.
    dynamics_oracle : FiniteDynamics
        The class of transition functions.
    optimism : float
        λ_0 of λ_t = λ_0/√t, 0.1 by default; 0 is posterior sampling.
    seed : int
        Seeds the draws, a function of it and the number of episodes seen, so that asking twice changes nothing.
    reward_range, return_range
        As for every `Learner`.

    >>> from omg_lab.rivals import FeelGoodThompson
    >>> from omg_lab.worlds import Decoy
    >>> FeelGoodThompson.for_world(Decoy()).policy(0).shape
    (4, 3, 3)
    """

    reward_oracle: FiniteRewards = dataclasses.field()
    dynamics_oracle: FiniteDynamics = dataclasses.field()
    _: dataclasses.KW_ONLY
    optimism: Option[float, float] = Option(finite, 0.1)
    seed: Option[int, int] = Option(seed_value, 0)

    needs = FiniteRewards, FiniteDynamics
    learned = ("value_sums",)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._value_sums = np.zeros((0, 0))  # Σ_i V*_{f,P}(c_i), (N, M) from the first episode on
        self._kept: ContextCache[FloatArray] = ContextCache(KEPT_BYTES, size=operator.attrgetter("nbytes"))

    def decide(self, context: Context) -> Decision:
        """Return a deterministic policy, optimal in the pair drawn."""
        generator = np.random.default_rng((self.seed, self.episodes_seen))
        weights = self.weights(context)
        (reward,) = resample(weights.sum(axis=1), Streams.fresh(1, generator))
        (moves,) = resample(weights[reward], Streams.fresh(1, generator))
        drawn = self.space.mdp(
            rewards=self.reward_oracle.functions(context)[reward],
            transitions=self.dynamics_oracle.functions(context)[moves],
        )
        return Decision(policy=optimal_policy(drawn, bounds=self.value_bounds)[0], model=self.model(context))

    def weights(self, context: Context) -> FloatArray:
        """Return the tilted posterior (N, M) of all pairs; `context` only determines N and M."""
        logs = np.add.outer(
            np.log(self.reward_oracle.posterior(context)), np.log(self.dynamics_oracle.posterior(context))
        )
        if self._value_sums.size:
            logs += self.optimism / np.sqrt(self.episodes_seen + 1.0) * self._value_sums
        weights = np.exp(logs - logs.max())
        return np.asarray(weights / weights.sum())

    def _learn(self, trajectory: Trajectory, rewards: FloatArray) -> None:
        """Teach both oracles, and add the optimal values of all pairs at the episode's context."""
        values = self._kept.get(trajectory.context, self._optimal_values)
        super()._learn(trajectory, rewards)
        self._value_sums = self._value_sums + values if self._value_sums.size else values

    def _optimal_values(self, context: Context) -> FloatArray:
        """Return V*_{f,P}(context) of all pairs, (N, M)."""
        rewards, transitions = self.reward_oracle.functions(context), self.dynamics_oracle.functions(context)
        pairs = Hypotheses(self.space, rewards, transitions, self.value_bounds)
        return pairs.starts.reshape(len(rewards), len(transitions))

    def _read(self, state: State, episodes: int) -> dict[str, FloatArray]:
        # An oracle has no losses before it learns, as the one of rewards has while all of them are still to come.
        sizes = [len(numbers(f"{part}/class_losses", state, (None,))) or None for part in ("reward", "dynamics")]
        return {"value_sums": numbers("value_sums", state, (sizes[0], sizes[1]))}
