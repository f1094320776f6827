"""GLM-ORL and GLM-RLSVI (Modi and Tewari, UAI 2020): models generalised linear in contexts that anyone may choose.

With x the features of the context, ‖x‖ <= R, and weights for each pair (s, a), the rows of W* of norm at most B,

    P(·|s, a) = ∇Φ(W*x):   "logit"   softmax of the scores W*x, the last of which is fixed at 0
                           "linear"  W*x itself
    f(s, a) = ½ + θ*·x,    ‖θ*‖ <= √d

W is learned by online Newton steps, α the strong convexity of Φ, e the next state seen, and θ by ridge regression:

    Z ← Z + ½α·xxᵀ,   W ← Proj(W - (∇Φ(Wx) - e)xᵀZ⁻¹) to rows of norm <= B, in the norm of Z,   Z_0 = λI.

(The paper's step η only rescales Z: λ and η do what λ/η and 1 do.) Confidence sets of probability 1 - δ in all, with
δ' = δ/(2SA), n the visits of a pair and K the free rows of W, S or S - 1:

    ξp = β·√S·√γ·‖x‖_{Z⁻¹},   γ = KλB² + 8BR + 2·[(4/α + (8/3)·BR)·τ + (4/α)·log(det Z/λᵈ)],
                              τ = log(2·⌈2·log(Sn)⌉·n²/δ')
    ξr = (√(λd) + ½·√log(det Z_r/(δ'²·λᵈ)))·‖x‖_{Z_r⁻¹},   Z_r = λI + Σxxᵀ

GLM-ORL plans with bonuses, GLM-RLSVI with noise of standard deviation √(SH)·(H·ξp + ξr). Regret, up to logarithms and
with D = √d·max‖W*‖_F/√α + d/α:   D·β·S·H²·√(AT)   and   D·β·√(H⁷S³AT).

What is not certain: the four numbers in γ (`constants`), the size of the noise and the regret bounds come from notes,
not from the paper. That γ is large enough follows from a shorter argument. With u = (W - W*)x and ε = ∇Φ(W*x) - e, a
step gives

    ‖W' - W*‖²_{Z'} <= ‖W - W*‖²_Z - (3/2)·α‖u‖² - 2·ε·u + ‖∇Φ(Wx) - e‖²·‖x‖²_{Z'⁻¹}.

By Hoeffding's lemma exp(-3α·ε·u - (9/4)·α²‖u‖²) has conditional mean at most 1; by Ville's inequality, therefore, with
probability 1 - δ' and at all times -2·Σε·u <= (3/2)·α·Σ‖u‖² + (2/(3α))·log(1/δ'). Hence

    ‖W - W*‖²_Z <= KλB² + Σ ‖∇Φ(Wx) - e‖²·‖x‖²_{Z'⁻¹} + (2/(3α))·log(1/δ'),

whose sum is at most (4/α)·log(det Z/λᵈ) where ∇Φ is a distribution. (With the linear link Wx may be none, but
‖Wx - e‖² <= 2‖u‖² + 4 gives twice that, and log(1/δ')/α, if λ >= 4R².)

With a `return_range` values are clipped to what it leaves, and the H before ξp is their range.

In practice these constants mean pure exploration, and the least curvature of the softmax, α of about exp(-2BR)/S²,
means steps that never shorten: tune `scale`, and set `strong_convexity` to a typical value, like 1/S.

Source: named in the paper of this project; pseudo-code in the project's theory notes (§4).
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple, Self, final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.jit import Lazy
from omg_cmdp.mdp.bellman import ValueBounds, best_response, value_bounds
from omg_cmdp.mdp.environment import Environment
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.mdp.trajectory import Trajectory
from omg_cmdp.oracles.features import FeatureFunction, Features
from omg_cmdp.oracles.witnesses import Source
from omg_cmdp.planning.decision import Decision
from omg_cmdp.validation import FloatArray, one_of, positive_integer, positive_number, probability
from omg_lab.features import unit_features
from omg_lab.rivals.declared import Option, Rival, numbers_of, optional, seed_value
from omg_lab.rivals.optimism import optimistic_plan

newton = Lazy("omg_lab.rivals.compiled.newton")
compiled = Lazy("omg_cmdp.oracles.compiled.linear")


class Widths(NamedTuple):
    """Confidence widths: how far the truth may be from the model, (S, A) each."""

    rewards: FloatArray
    """ξr >= |f̂ - f*|."""
    transitions: FloatArray
    """ξp >= ‖P̂ - P*‖₁."""


def known_link(name: str, value: str) -> str:
    """Return the name of a link."""
    one_of(name, value, ("logit", "linear"))
    return value


class GLMAgent(Rival):
    """The estimates and confidence sets of both agents.

    Parameters
    ----------
    space : Space
        The states, actions and horizon.
    dimension : int
        Length d of the features.
    link : str
        "logit", the default, or "linear".
    features : function, optional
        From a context to x, (d,); by default the context itself.
    scale : float
        A factor of the bonuses, or of the noise, to be tuned; 1, the default, is the theory's.
    delta : float
        The probability δ of failure, 0.05 by default.
    ridge, feature_norm, weight_norm : float
        λ, R and B; 1, 1 and 3 by default.
    strong_convexity, smoothness : float, optional
        α and β; by default the proven ones: 1 and 1 for the linear link, for the logit link 1/S of the least
        probability there can be, and ½.
    constants : tuple of four floats
        The numbers in γ.
    reward_range, return_range
        As for every `Learner`.
    """

    _: dataclasses.KW_ONLY
    dimension: Option[int, int] = Option(positive_integer)
    link: Option[str, str] = Option(known_link, "logit")
    features: FeatureFunction | None = None
    scale: Option[float, float] = Option(positive_number, 1.0)
    delta: Option[float, float] = Option(probability, 0.05)
    ridge: Option[float, float] = Option(positive_number, 1.0)
    feature_norm: Option[float, float] = Option(positive_number, 1.0)
    weight_norm: Option[float, float] = Option(positive_number, 3.0)
    strong_convexity: Option[float | None, float] = Option(optional(positive_number), None)
    smoothness: Option[float | None, float] = Option(optional(positive_number), None)
    constants: Option[tuple[float, ...], tuple[float, ...]] = Option(numbers_of(4), (8.0, 4.0, 8.0 / 3.0, 4.0))

    derived = ("feature_map",)
    learned = ("weights", "inverses", "growths", "visits", "roots")

    def __post_init__(self) -> None:
        super().__post_init__()
        space, size = self.space, self.dimension
        self._features = Features(self.features, (size,), self.feature_norm)
        self.feature_map = self._features.settings
        least, most = _curvatures(self.link, space.states, self.weight_norm * self.feature_norm)
        self.strong_convexity, self.smoothness = self.strong_convexity or least, self.smoothness or most
        pairs = space.states * space.actions
        self._weights = np.zeros((pairs, space.states, size))
        self._inverses = np.zeros((pairs, size, size)) + np.eye(size) / self.ridge
        self._growths, self._visits = np.zeros((2, pairs))
        self._roots = np.zeros((1, size + 1, size + 1, pairs))
        self._roots[0, np.arange(size), np.arange(size)] = math.sqrt(self.ridge)

    @classmethod
    def for_world(cls, world: Environment, **options: Any) -> Self:
        """Return an agent with features of the world's contexts in the unit ball."""
        features, dimension = unit_features(world)
        # By the proven strong convexity, which is far smaller, steps would never shorten.
        usual = {"features": features, "dimension": dimension, "strong_convexity": 1.0 / world.space.states}
        return super().for_world(world, **usual | options)

    def model(self, context: Context) -> TabularMDP:
        """Return f̂, clipped to [0, 1], and P̂; with the linear link the distribution nearest to Wx."""
        row = self._features(context)
        pairs = self.space.admissible.shape
        scores = self._weights @ row[0]
        transitions = softmax(scores) if self.link == "logit" else to_simplex(scores)
        rewards = np.clip(0.5 + self._ridge(row)[0], 0.0, 1.0).reshape(pairs)
        return self.space.mdp(transitions=transitions.reshape(*pairs, -1), rewards=rewards)

    def widths(self, context: Context) -> Widths:
        """Return ξr and ξp."""
        row = self._features(context)
        size, failure = self.dimension, self.delta / (2.0 * len(self._visits))
        diagonal = self._roots[0, np.arange(size), np.arange(size)] / math.sqrt(self.ridge)
        rewards = math.sqrt(self.ridge * size) + 0.5 * np.sqrt(2.0 * (np.log(diagonal).sum(axis=0) - math.log(failure)))
        leverages = (self._inverses @ row[0]) @ row[0]
        transitions = self.smoothness * np.sqrt(self.space.states * self._radii(failure) * leverages)
        shape = (self.space.states, self.space.actions)
        return Widths((rewards * np.sqrt(self._ridge(row)[1])).reshape(shape), transitions.reshape(shape))

    def _radii(self, failure: float) -> FloatArray:
        """Return γ of every pair, with δ' = `failure`."""
        offset, noise, jump, growth = self.constants
        alpha, reach, states = self.strong_convexity, self.weight_norm * self.feature_norm, self.space.states
        rows = states - 1 if self.link == "logit" else states
        visits = np.maximum(self._visits, 1.0)
        peels = np.maximum(np.ceil(2.0 * np.log(states * visits)), 1.0)
        logarithms = np.log(2.0 * peels * visits**2 / failure)
        prior = rows * self.ridge * self.weight_norm**2 + offset * reach
        return np.asarray(prior + 2.0 * ((noise / alpha + jump * reach) * logarithms + growth / alpha * self._growths))

    def _ridge(self, row: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return θ̂·x and ‖x‖² in the norm of Z_r⁻¹, for every pair."""
        means, leverages = np.empty((2, len(self._visits)))
        compiled.regressions(self._roots[0], row, means, leverages, np.empty((self.dimension + 1, len(means))))
        return means, leverages

    def _sources(self) -> dict[str, Source]:
        return {"features": self._features}

    def _learn(self, trajectory: Trajectory, rewards: FloatArray) -> None:
        row = self._features(trajectory.context)
        self._witness(trajectory)
        pairs = trajectory.states[:-1] * self.space.actions + trajectory.actions
        np.add.at(self._visits, pairs, 1.0)
        learned = self._weights, self._inverses, self._growths
        setting = self.link == "logit", self.strong_convexity, self.weight_norm
        newton.newton_steps(*learned, row[0], pairs, trajectory.next_states, *setting)
        compiled.rotate_in(self._roots, row, pairs, rewards - 0.5)


@final
class GLMORL(GLMAgent):
    """GLM-ORL: optimism, V_h = min(H - h, max_a [f̂ + ξr + P̂·V_{h+1} + ‖V_{h+1}‖_∞·ξp]).

    The parameters are those of `GLMAgent`; `scale` multiplies the bonuses.

    >>> from omg_lab.rivals import GLMORL
    >>> from omg_lab.worlds import Decoy
    >>> GLMORL.for_world(Decoy()).policy(0).shape
    (4, 3, 3)
    """

    def decide(self, context: Context) -> Decision:
        """Return a deterministic policy, optimal for the model with bonuses."""
        model = self.model(context)
        rewards, transitions = (self.scale * width for width in self.widths(context))
        bounds = self.value_bounds
        policy, _ = optimistic_plan(model, model.rewards + rewards, lambda values: values.max() * transitions, bounds)
        return Decision(policy=policy, model=model)


@final
class GLMRLSVI(GLMAgent):
    """GLM-RLSVI: an optimal policy for rewards f̂ + N(0, SH·(H·ξp + ξr)²), drawn for every (h, s, a) of an episode.

    Parameters
    ----------
    space : Space
        The states, actions and horizon.
    seed : int
        Seeds the draws, a function of it and the number of episodes seen, so that asking twice changes nothing.
    **settings
        The parameters of `GLMAgent`; `scale` multiplies the noise.

    >>> from omg_lab.rivals import GLMRLSVI
    >>> from omg_lab.worlds import Decoy
    >>> GLMRLSVI.for_world(Decoy()).policy(0).shape
    (4, 3, 3)
    """

    _: dataclasses.KW_ONLY
    seed: Option[int, int] = Option(seed_value, 0)

    def __post_init__(self) -> None:
        super().__post_init__()
        (lows, highs), most = self.value_bounds, value_bounds(self.space.horizon).highs
        # Values of noise are not clipped in the paper; where `return_range` says more than rewards in [0, 1], they are.
        self._told = ValueBounds(np.where(lows > 0.0, lows, -np.inf), np.where(highs < most, highs, np.inf))

    def decide(self, context: Context) -> Decision:
        """Return a deterministic policy, optimal for the model with noise."""
        model, widths = self.model(context), self.widths(context)
        states, horizon = self.space.states, self.space.horizon
        deviation = math.sqrt(states * horizon) * (self.value_bounds.span * widths.transitions + widths.rewards)
        draw = np.random.default_rng((self.seed, self.episodes_seen)).standard_normal((horizon, *deviation.shape))
        policy, _ = best_response(model, model.rewards + self.scale * deviation * draw, bounds=self._told)
        return Decision(policy=policy, model=model)


def softmax(scores: FloatArray) -> FloatArray:
    """Return distributions in proportion to the exponentials of scores (..., S)."""
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(exponentials / exponentials.sum(axis=-1, keepdims=True))


def to_simplex(points: FloatArray) -> FloatArray:
    """Return the distributions nearest to `points` (..., S): max(point - μ, 0), with μ such that it sums to one.

    >>> to_simplex(np.array([[0.5, 0.5], [2.0, 0.0]]))
    array([[0.5, 0.5],
           [1. , 0. ]])
    """
    ordered = -np.sort(-points, axis=-1)
    shifts = (ordered.cumsum(axis=-1) - 1.0) / np.arange(1, points.shape[-1] + 1)
    positive = (ordered > shifts).sum(axis=-1, keepdims=True)
    return np.maximum(points - np.take_along_axis(shifts, positive - 1, axis=-1), 0.0)


def _curvatures(link: str, states: int, reach: float) -> tuple[float, float]:
    """Return α and β of Φ where no score is above `reach`.

    The Hessian diag(p) - ppᵀ, without its last row and column, has no eigenvalue below min(p)/S, and none above ½.
    """
    if link == "linear":
        return 1.0, 1.0
    if reach > 200.0:
        raise ValueError(f"`weight_norm` times `feature_norm` must be at most 200, got {reach:g}")
    others = 1.0 + max(states - 2, 0) * math.exp(reach)
    return 1.0 / (1.0 + others * math.exp(reach)) / states, 0.5
