"""The agents that a configuration can name, each with the oracles of the world's own function class.

`oracles` is "finite" (online, the default of most), "offline" (fits to all past data), "log_loss" (rewards by log loss)
or "counts" (one table per label). A number that may change with the episode t is given as such, or as a table
{scale, exponent}, which stands for scale·t^exponent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from omg_cmdp import agents, oracles
from omg_cmdp.agents.base import Agent
from omg_cmdp.agents.rivals.glm import GLMAgent
from omg_cmdp.contexts import Context, context_vectors
from omg_cmdp.environments.world import World
from omg_cmdp.studies.kinds import Kind, Setting, kinds, options_of
from omg_cmdp.validation import FloatArray

Pair = tuple[Any, Any]
"""A reward oracle and a dynamics oracle."""

UNKNOWN = "unknown"
"""As the number of `episodes`: the agent is not told."""


def oracle_pair(world: World, name: str, settings: dict[str, Any]) -> Pair:
    """Return the oracles of this name; `settings` are their `rate` and `smoothing`, where they have them."""
    if name not in ORACLES:
        raise ValueError(f"`oracles` must be one of {', '.join(ORACLES)}, got {name!r}")
    make, understood = ORACLES[name]
    for setting in settings.keys() - set(understood):
        raise ValueError(f"`{setting}` must be left out for oracles = {name!r}, got {settings[setting]!r}")
    return make(world, **settings)


def _finite(world: World, rate: str = "guarded", smoothing: float = 0.0) -> Pair:
    horizon = world.space.horizon
    dynamics = oracles.FiniteDynamics(world.transition_functions, horizon=horizon, rate=rate, smoothing=smoothing)
    if world.product_class:
        return _product(world, rate), dynamics
    return oracles.FiniteRewards(world.reward_functions, horizon=horizon, rate=rate), dynamics


def _offline(world: World, smoothing: float = 0.0) -> Pair:
    horizon = world.space.horizon
    dynamics = oracles.OfflineFiniteDynamics(world.transition_functions, horizon=horizon, smoothing=smoothing)
    if world.product_class:  # has no such fit, and keeps its online oracle
        return _product(world), dynamics
    return oracles.OfflineFiniteRewards(world.reward_functions, horizon=horizon), dynamics


def _product(world: World, rate: str = "guarded") -> oracles.ProductRewards:
    return oracles.ProductRewards(
        world.reward_functions,
        contexts=world.contexts,
        states=world.space.states,
        functions=len(world.reward_functions(world.contexts[0])),
        horizon=world.space.horizon,
        rate=rate,
    )


def _log_loss(world: World, rate: str = "guarded", smoothing: float = 0.0) -> Pair:
    rewards = oracles.LogLossRewards(world.reward_functions, horizon=world.space.horizon)
    return rewards, _finite(world, rate, smoothing)[1]


def _counts(world: World, rate: str = "guarded") -> Pair:
    space = world.space
    sizes: dict[str, Any] = {"states": space.states, "actions": space.actions, "horizon": space.horizon, "rate": rate}
    return oracles.CountRewards(contexts=world.contexts, **sizes), oracles.CountDynamics(
        contexts=world.contexts, **sizes
    )


ORACLES: dict[str, tuple[Callable[..., Pair], tuple[str, ...]]] = {
    "finite": (_finite, ("rate", "smoothing")),
    "offline": (_offline, ("smoothing",)),
    "log_loss": (_log_loss, ("rate", "smoothing")),
    "counts": (_counts, ("rate",)),
}


def _supplied(made: Callable[..., Agent], setting: Setting, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options for `made`, with what the run supplies and numbers that change with t."""
    for name in ("gamma", "epsilon"):
        if isinstance(options.get(name), dict):
            options[name] = _power(name, options[name])
    known = options_of(made)
    supplied = {"seed": setting.seed, "episodes": setting.episodes}
    given = {name: value for name, value in supplied.items() if name in known} | options
    return given | ({"episodes": None} if given.get("episodes") == UNKNOWN else {})


def _power(name: str, table: dict[str, Any]) -> agents.Power:
    if set(table) != {"scale", "exponent"}:
        raise ValueError(f"`{name}` must be a number or a table {{scale, exponent}}, got {table!r}")
    return agents.Power(**table)


def _by_oracles(made: Callable[..., Agent], usual: str) -> Callable[[Setting, dict[str, Any]], Agent]:
    def build(setting: Setting, options: dict[str, Any]) -> Agent:
        name = options.pop("oracles", usual)
        settings: dict[str, Any] = {each: options.pop(each) for each in ("rate", "smoothing") if each in options}
        pair = oracle_pair(setting.world, name, settings)
        return made(setting.world.space, *pair, **_supplied(made, setting, options))

    return build


def _agent(name: str, made: Callable[..., Agent], description: str, *, usual: str = "finite", **others: Any) -> Kind:
    """Return a kind of agent with two oracles."""
    options = options_of(made, oracles=usual, rate="guarded", smoothing=0.0, **others)
    return Kind(name=name, description=description, build=_by_oracles(made, usual), options=options)


def _omg(space: Any, rewards: Any, dynamics: Any, gamma: Any = "adaptive", **options: Any) -> Agent:
    rule = {name: options.pop(name) for name in ("kappa", "floor") if name in options}
    if rule and gamma != "adaptive":
        raise ValueError(f"`{next(iter(rule))}` must be left out unless gamma is 'adaptive', got gamma {gamma!r}")
    return agents.OMG(space, rewards, dynamics, agents.UncertaintyWeighted(**rule) if rule else gamma, **options)


def _build_omg(setting: Setting, options: dict[str, Any]) -> Agent:
    return _by_oracles(_omg, "finite")(setting, {"episodes": setting.episodes} | options)


def _optimistic(counts: str) -> Callable[[Setting, dict[str, Any]], Agent]:
    def build(setting: Setting, options: dict[str, Any]) -> Agent:
        world, scale = setting.world, options.pop("scale", 0.03)
        if not isinstance(scale, list):
            # What is known needs no bonus: a class of one function.
            classes = (world.reward_functions, world.transition_functions)
            scale = [scale * (len(functions(world.contexts[0])) > 1) for functions in classes]
        given = {"counts": counts, "contexts": world.contexts, "scale": tuple(scale)} | options
        return _by_oracles(agents.UC3RL, "offline")(setting, given)

    return build


def _glm(made: Callable[..., Agent]) -> Callable[[Setting, dict[str, Any]], Agent]:
    def build(setting: Setting, options: dict[str, Any]) -> Agent:
        world = setting.world
        vectors = context_vectors(world.contexts)

        def features(context: Context) -> FloatArray:
            if isinstance(context, np.ndarray):
                return np.asarray(context / max(1.0, float(np.linalg.norm(context))))
            return np.asarray(vectors[world.contexts.index(context)])

        # The proven strong convexity means that steps never shorten.
        usual = {"strong_convexity": 1.0 / world.space.states, "dimension": vectors.shape[1], "features": features}
        return made(world.space, **usual | _supplied(made, setting, options))

    return build


def _ucbvi(setting: Setting, options: dict[str, Any]) -> Agent:
    name, radius, count = (options.pop(each, None) for each in ("cover", "radius", "clusters"))
    name = "per_context" if name is None else name
    if (radius is not None) > (name == "per_ball") or (count is not None) > (name == "clusters"):
        spare = "clusters" if count is not None and name != "clusters" else "radius"
        raise ValueError(f"`{spare}` must be left out for cover = {name!r}")
    if name in ("per_ball", "clusters") and not isinstance(setting.world.contexts[0], np.ndarray):
        raise ValueError(f"`cover` must be 'blind' or 'per_context' where contexts are labels, got {name!r}")
    return agents.UCBVI(setting.world.space, _cover(setting.world, name, radius, count), **options)


def _cover(world: World, name: Any, radius: Any, count: Any) -> agents.Cover:
    if name == "blind":
        return agents.Blind()
    if name == "per_context":
        return agents.PerContext()
    if name == "per_ball":
        return agents.PerBall(0.4 if radius is None else radius)
    if name == "clusters":
        usual = max(2, len(world.contexts) // 4)
        return agents.Clusters.by_means(world.contexts, count=usual if count is None else count)
    raise ValueError(f"`cover` must be one of blind, per_context, per_ball, clusters, got {name!r}")


def _informed(setting: Setting, options: dict[str, Any]) -> Agent:
    return agents.Informed(setting.world.space, setting.world.mdp, **options)


_GLM = options_of(GLMAgent, without=("dimension", "features"))

AGENTS = kinds(
    _agent("boltzmann", agents.Boltzmann, "softmax of soft values: entropy of actions in the place of the barrier"),
    _agent("epoch_omg", agents.epoch_omg, "OMG with offline fits that change at doubling epochs", usual="offline"),
    _agent("epoch_pc_igw", agents.epoch_pc_igw, "PC-IGW with offline fits at doubling epochs", usual="offline"),
    _agent("epsilon_greedy", agents.EpsilonGreedy, "greedy, and uniform with probability ε_t at each step"),
    _agent("falcon", agents.FALCON, "SquareCB by epochs, with an offline oracle (H = 1)", usual="offline"),
    _agent("fast_cb", agents.FastCB, "SquareCB that explores less where losses are small (H = 1)", usual="log_loss"),
    _agent("feel_good", agents.FeelGoodThompson, "posterior sampling that favours models which promise much"),
    Kind(
        name="glm_orl",
        description="optimism with generalised linear models of the context",
        build=_glm(agents.GLMORL),
        options=_GLM,
    ),
    Kind(
        name="glm_rlsvi",
        description="noisy rewards with generalised linear models of the context",
        build=_glm(agents.GLMRLSVI),
        options={**_GLM, "seed": 0},
    ),
    _agent("greedy", agents.Greedy, "believes its model, never explores"),
    Kind(name="informed", description="knows the truth: no regret", build=_informed, options={}),
    _agent("local_igw", agents.LocalIGW, "inverse gap weighting in every state: the barrier on the policy"),
    _agent("normalised_igw", agents.NormalisedIGW, "inverse gap weighting, normalised: OMG at H = 1"),
    _agent("occupancy_entropy", agents.OccupancyEntropy, "entropy of the occupancy in the place of the barrier"),
    Kind(
        name="omg",
        description="OMG-CMDP!: a log barrier over occupancy measures",
        build=_build_omg,
        options=options_of(
            agents.OMG, oracles="finite", rate="guarded", smoothing=0.0, **options_of(agents.UncertaintyWeighted)
        ),
    ),
    _agent("pc_igw", agents.PCIGW, "inverse gap weighting over a cover of policies"),
    _agent("posterior_sampling", agents.PosteriorSampling, "plays what is optimal in a drawn model"),
    Kind(
        name="rm_ucdd",
        description="UC³RL's forerunner: counts of actions",
        build=_optimistic("policy"),
        options=options_of(agents.UC3RL, oracles="offline", smoothing=0.0),
    ),
    _agent("square_cb", agents.SquareCB, "inverse gap weighting as computed most simply (H = 1)"),
    Kind(
        name="uc3rl",
        description="optimism by counterfactual bonuses",
        build=_optimistic("occupancy"),
        options=options_of(agents.UC3RL, oracles="offline", smoothing=0.0),
    ),
    Kind(
        name="ucbvi",
        description="optimistic tables, one per cell of contexts: no model across contexts",
        build=_ucbvi,
        options=options_of(agents.UCBVI, without=("cover",), cover="per_context", radius=0.4, clusters=0),
    ),
    _agent("uniform", agents.Uniform, "never decides: all actions alike"),
)
