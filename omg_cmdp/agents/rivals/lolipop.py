"""LOLIPOP: inverse gap weighting, one step at a time, with offline density estimation (Qian, Hu, Simchi-Levi, 2024).

FALCON's idea for contextual MDPs with i.i.d. contexts: O(log T) epochs, in each of which the model of the epoch before
says what a policy costs. An epoch m has H segments of 2^m episodes, one for each step h. In segment h, in context c,

    trusted     transitions (s, a, s') of the steps k < h with ρ_k(s)·P̂_m^k(s'|s, a) >= ζ_m, ρ_k(s) the largest
                probability with which a policy gets to s at step k along trusted transitions alone,
    cover       for each (s, a) the policy that maximises d̃_h(s, a; π)/(S·A + η_m·reg(π)), d̃ its probability of (s, a)
                at step h along trusted transitions, reg(π) = V̂* - V̂^π in the model M̂_{m-1} of the last epoch,
    mixture     these and the best policy of M̂_{m-1}, drawn with p(π) = 1/(λ + η_m·reg(π)),

and of an episode only step h is learned: P̂_m^h and f̂_m^h are fits to the data of this segment alone, so that they are
independent of what comes later. Before the first epoch the fits are those without data. H·log T calls of an oracle.
Segments are counted by what has been learned: late feedback is of the segment in which it arrives.

The paper (NeurIPS 2024, arXiv 2405.17796) proves regret of order √T for a class that holds the truth. Its structure is
as we know it; not certain are its powers, √(H⁷S⁴A³·T·log|M|), and its constants: η_m = `scale`·√2^m, ζ_m = `trust`/η_m,
S·A in the ratio. How it maximises over all policies is not known to us. d̃ and reg belong to two different models, and
the ratio is hard to maximise exactly; here the search charges reg along the trusted path, step by step, which is one
model and exact for Dinkelbach's method, and the exact reg(π) in M̂_{m-1} sets the weights.

What is proven here, in every context and segment:

    E_p reg(π) <= S·A/η_m,
    d̃_h(s, a; π) <= e·q_h(s, a; π) for every policy π, if P̂ <= (1 + 1/H)·P* on all trusted transitions, and that
    holds if ρ_k(s)·D²(P*, P̂)(s, a) < ζ_m·(1 - 1/√(1 + 1/H))² for all (s, a) and k < h.

Proof. Each of at most S·A policies but the best adds reg/(λ + η·reg) <= 1/η. d̃ is a sum over paths of products of P̂
over at most H - 1 trusted transitions, each at most 1 + 1/H times that of P*. If P̂ > (1 + 1/H)·P* at a transition, its
term of D² alone is (√P̂ - √P*)² > P̂·(1 - 1/√(1 + 1/H))², and ρ·P̂ >= ζ_m if it is trusted. ∎
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Unpack, final

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.agents.base import Learner, Ranges
from omg_cmdp.agents.rivals.pc_igw import inverse_gap_weights
from omg_cmdp.contexts import Context
from omg_cmdp.jit import Lazy
from omg_cmdp.mdp.episode import Trajectory
from omg_cmdp.mdp.space import Space
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.oracles.offline.fits import Offline
from omg_cmdp.persistence import State, joint_state, load_parts, numbers
from omg_cmdp.planning.decision import Decision, Mixture
from omg_cmdp.validation import FloatArray, instance_of, positive_number, seed_number

kernels = Lazy("omg_cmdp.agents.kernels.trusted")


class Segment(NamedTuple):
    """The epoch m, and the step h that is learned."""

    epoch: int
    step: int

    @classmethod
    def after(cls, episodes: int, horizon: int) -> Segment:
        """Return the segment of the next episode: epochs of H segments of 2^m episodes.

        >>> [tuple(Segment.after(episodes, 2)) for episodes in range(7)]
        [(0, 0), (0, 1), (1, 0), (1, 0), (1, 1), (1, 1), (2, 0)]
        """
        epoch = (episodes // horizon + 1).bit_length() - 1
        return cls(epoch, (episodes - horizon * (2**epoch - 1)) >> epoch)


@final
class LOLIPOP(Learner):
    """Learn one step at a time, by a cover of policies that follow trusted transitions, drawn by inverse gaps.

    `scale` and `trust` are those of η_m and ζ_m above. The oracles must be `Offline`, with one table for all steps.
    The draw is a function of `seed` and the number of episodes seen.
    """

    settings = ("scale", "trust", "seed")

    def __init__(
        self,
        space: Space,
        reward_oracle: RewardOracle,
        dynamics_oracle: DynamicsOracle,
        *,
        scale: float = 100.0,
        trust: float = 1.0,
        seed: int = 0,
        **ranges: Unpack[Ranges],
    ) -> None:
        super().__init__(space, **ranges)
        self.scale, self.trust = positive_number("scale", scale), positive_number("trust", trust)
        self.seed = seed_number(seed)
        instance_of("reward_oracle", reward_oracle, RewardOracle)
        instance_of("dynamics_oracle", dynamics_oracle, DynamicsOracle)
        # not public: a ledger would take their losses for those of the model
        self._oracles: dict[str, Any] = {"reward": reward_oracle, "dynamics": dynamics_oracle}
        for name, oracle in self._oracles.items():
            if not isinstance(oracle, Offline):
                raise ValueError(f"`{name}_oracle` must be Offline, got {type(oracle).__name__}")
        self._untaught = {name: oracle.state() for name, oracle in self._oracles.items()}
        # the fits of all steps in the last epoch, and in this one, (2, H, ...)
        self._fits = {name: self._without_data(oracle) for name, oracle in self._oracles.items()}

    def _without_data(self, oracle: Offline) -> FloatArray:
        fit = oracle.parameters()
        return np.array(np.broadcast_to(fit, (2, self.space.horizon, *fit.shape)))

    @property
    def segment(self) -> Segment:
        """That of the next episode."""
        return Segment.after(self.episodes_seen, self.space.horizon)

    def decide(self, context: Context) -> Decision:
        """Return a policy drawn from the mixture, and the mixture."""
        (epoch, step), model = self.segment, self.model(context)
        gamma = self.scale * math.sqrt(2.0**epoch)
        trusted = self.trusted(context)
        kernel, rewards, start, admissible = model.raw
        known = trusted, kernel, rewards, start, admissible
        policies, gaps = kernels.layer_cover(*known, gamma, step, self.space.horizon)
        mixture = Mixture(policies, inverse_gap_weights(gamma * gaps)[0])
        drawn = mixture.draw(np.random.default_rng((self.seed, self.episodes_seen)))
        return Decision(policy=drawn, mixture=mixture, model=model, gamma=gamma)

    def model(self, context: Context) -> TabularMDP:
        """Return the fits of the last epoch as an MDP, a table for each step."""
        steps = range(self.space.horizon)
        rewards, transitions = (self._tables(name, 0, steps, context) for name in self._oracles)
        return self.space.mdp(transitions=transitions, rewards=rewards)

    def trusted(self, context: Context) -> FloatArray:
        """Return this epoch's fits of the steps before the present one, 0 where not trusted: (h, S, A, S)."""
        epoch, step = self.segment
        fitted = self._tables("dynamics", 1, range(step), context)
        return trusted_transitions(self.space, fitted, self.trust / (self.scale * math.sqrt(2.0**epoch)))

    def _tables(self, name: str, which: int, steps: range, context: Context) -> FloatArray:
        """Return the predictions of the fits of the last epoch, 0, or of this one, 1."""
        pair = self.space.states, self.space.actions
        shape = pair if name == "reward" else (*pair, self.space.states)
        found = np.empty((len(steps), *shape))
        for step in steps:
            table = self._oracles[name].predict_with(self._fits[name][which, step], context)
            if table.shape != shape:
                raise ValueError(f"`{name}_oracle` must predict tables of shape {shape}, got {table.shape}")
            found[step] = table
        return found

    def _learn(self, trajectory: Trajectory, rewards: FloatArray) -> None:
        """Teach both oracles one step; at the end of a segment keep their fits, and let them forget."""
        context, here = trajectory.context, slice(self.segment.step, self.segment.step + 1)
        for name in self._oracles:  # both answer before either learns: a context that one refuses changes nothing
            self._tables(name, 0, range(1), context)
        if len(trajectory.actions) > here.start:
            at = context, trajectory.states[:-1][here], trajectory.actions[here]
            self._oracles["reward"].update(*at, rewards[here])
            self._oracles["dynamics"].update(*at, trajectory.next_states[here])
        later = Segment.after(self.episodes_seen + 1, self.space.horizon)
        if later != self.segment:
            for name, oracle in self._oracles.items():
                self._fits[name][1, here.start] = oracle.parameters()
                oracle.load_state(self._untaught[name])
                if later.epoch > self.segment.epoch:
                    self._fits[name][0] = self._fits[name][1]

    def _learned(self) -> dict[str, NDArray[Any]]:
        """Return what both oracles learned in this segment, and the kept fits."""
        return {**joint_state(self._oracles), **{f"{name} fits": fits.copy() for name, fits in self._fits.items()}}

    def _load_learned(self, state: State, episodes: int) -> None:
        fits = {name: numbers(f"{name} fits", state, own.shape) for name, own in self._fits.items()}
        load_parts(state, self._oracles)
        self._fits = fits


def trusted_transitions(space: Space, kernel: FloatArray, threshold: float) -> FloatArray:
    """Return `kernel` (K, S, A, S) of the first K steps, 0 where ρ·P is below `threshold`."""
    trusted = np.zeros(kernel.shape)
    kernels.trust(kernel, np.array(space.start), space.admissible.astype(np.uint8), threshold, trusted)
    return trusted
