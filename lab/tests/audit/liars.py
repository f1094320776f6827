"""Agents that lie about one thing each, and the rows of an audit that must turn red (docs/liars.md)."""

from __future__ import annotations

import math

import numpy as np

import omg_cmdp as omg
from lab.tests.audit.lying import EPISODES, SHAPE, IdleDynamics, IdleRewards, Lie, finite
from omg_cmdp.agents.exploration.uncertainty import UncertaintyWeighted
from omg_cmdp.planning.decision import Mixture
from omg_lab.audit import lemmas

OF_PLANS = frozenset({*lemmas.OF_BARRIERS, *lemmas.OF_PLAIN_BARRIERS, "regret, from errors"})

LIES: dict[str, Lie] = {}


def lie(name, *, red=(), unproven=(), may=(), episodes=EPISODES, delay=0, **settings):
    """Add a lie to the catalogue."""

    def add(function):
        LIES[name] = Lie(name, function, *map(frozenset, (red, unproven, may)), settings, episodes, delay)
        return function

    return add


def owned(decision, policy, **more):
    """Return the decision with another policy, and the occupancy of that."""
    return decision._replace(policy=policy, occupancy=omg.occupancy_measure(decision.model, policy), **more)


def uniform(decision):
    return np.full(decision.policy.shape, 1.0 / decision.policy.shape[2])


CORNER = {"red": ("support", "certificate"), "unproven": OF_PLANS - {"regret, from errors"}}
BROKEN = {"red": ("model",), "unproven": {*lemmas.OF_MODELS, "support", "certificate"} | OF_PLANS}
NOT_THE_PLAN = ("certificate", "optimality")
ROOM = {"plan gap", "approximate plan", "Theorem A", "Theorem B", "Theorem B, value", "known dynamics"}
"""Bounds that leave room: red if the lie is large enough."""


@lie("worst policy", **CORNER)
def worst_policy(agent, context, decision):
    """The policy is the worst of the model; the certificate is that of the plan."""
    model = decision.model
    upside_down = model.space.mdp(transitions=model.transitions, rewards=1.0 - model.rewards)
    return owned(decision, omg.optimal_policy(upside_down)[0])


@lie("greedy in disguise", **CORNER)
def greedy(agent, context, decision):
    """The policy is the best of the model, without exploration; the certificate is that of the plan."""
    return owned(decision, omg.optimal_policy(decision.model)[0])


@lie("dropped tuple", **CORNER)
def dropped_tuple(agent, context, decision):
    """One action of the start is never played."""
    policy = decision.policy.copy()
    policy[0, 0, 1] += policy[0, 0, 2]
    policy[0, 0, 2] = 0.0
    return owned(decision, policy)


@lie("uniform, uncertified", red=("precision",), unproven=("certificate", "optimality", "plan gap", "Theorem B"))
def uncertified(agent, context, decision):
    """Play is uniform, and no certificate is given."""
    return owned(decision, uniform(decision), certificate=math.nan)


@lie("uniform, certified", red=(*NOT_THE_PLAN, "iterates"), may=ROOM)
def certified(agent, context, decision):
    """Play is uniform; the certificate is that of the plan."""
    return owned(decision, uniform(decision))


@lie("false certificate", red=(*NOT_THE_PLAN, "iterates"), may=ROOM)
def false_certificate(agent, context, decision):
    """The plan is mixed with a little uniform play; the certificate is that of the plan."""
    return owned(decision, 0.9 * decision.policy + 0.1 * uniform(decision))


@lie("idle expert", red=(*NOT_THE_PLAN, "iterates", "regret, from errors", *ROOM), held=slice(1), gamma=1e4)
def idle_expert(agent, context, decision):
    """The model is the truth, γ is large, play is uniform; the certificate is that of the plan."""
    return owned(decision, uniform(decision))


@lie("coarse plan", red=("precision",), unproven=("approximate plan",))
def coarse(agent, context, decision):
    """Play is uniform, with a true certificate, which is far from what the theorem asks for."""
    policy = uniform(decision)
    gap = omg.certificate(decision.model, policy, decision.values, gamma=decision.gamma)
    return owned(decision, policy, certificate=gap)


@lie("false occupancy", red=("occupancy",))
def false_occupancy(agent, context, decision):
    """The occupancy measure is that of uniform play."""
    return decision._replace(occupancy=omg.occupancy_measure(decision.model, uniform(decision)))


@lie("false weights", red=NOT_THE_PLAN, may=ROOM, gamma=UncertaintyWeighted(kappa=100.0))
def false_weights(agent, context, decision):
    """The weights are those of the plan, for other actions."""
    return decision._replace(weights=np.roll(decision.weights, 1, axis=2))


@lie("negative weights", red=("weights", "certificate"), unproven=("optimality", "Theorem B"), gamma="uncertainty")
def negative_weights(agent, context, decision):
    """One weight is negative."""
    weights = decision.weights.copy()
    weights[0, 0, 0] *= -1.0
    return decision._replace(weights=weights)


@lie("false gamma", red=(*NOT_THE_PLAN, "iterates"), may=ROOM)
def false_gamma(agent, context, decision):
    """γ is five times what was planned with."""
    return decision._replace(gamma=5.0 * decision.gamma)


MADE_UP = ("charge, rewards", "charge, dynamics")


@lie("false model", red=(*MADE_UP, "occupancy", *NOT_THE_PLAN, "iterates"), may=ROOM)
def false_model(agent, context, decision):
    """The model shown is the truth, not the one of the plan."""
    return decision._replace(model=agent.world.mdp(context))


@lie("swapped contexts", red=MADE_UP)
def swapped_contexts(agent, context, decision):
    """The decision is that for another context."""
    return agent.honest.decide(agent.world.contexts[agent.world.contexts.index(context) - 1])


@lie("stale model", red=MADE_UP)
def stale_model(agent, context, decision):
    """Nothing is learned after the first episodes: each context has its first decision for ever."""
    return agent.kept.setdefault(context, decision)


@lie("rewards out of range", **BROKEN)
def out_of_range(agent, context, decision):
    """A mean reward of the model is 1.5."""
    model = decision.model.space.mdp(transitions=decision.model.transitions, rewards=decision.model.rewards)
    model.raw[1][0, 0, 0] = 1.5
    return decision._replace(model=model)


@lie("rows that do not sum", **BROKEN)
def no_distribution(agent, context, decision):
    """A row of the model's transitions sums to 1.1."""
    model = decision.model.space.mdp(transitions=decision.model.transitions, rewards=decision.model.rewards)
    model.raw[0][0, 0, 0] *= 1.1
    return decision._replace(model=model)


@lie("hidden action", **BROKEN)
def hidden_action(agent, context, decision):
    """The model hides an action from the barrier, by a mask of its own; the plan is right for that."""
    mask = np.ones((3, 3), dtype=bool)
    mask[0, 2] = False
    model = omg.Space(**SHAPE, admissible=mask).mdp(
        transitions=decision.model.transitions, rewards=decision.model.rewards
    )
    plan = omg.plan(model, decision.gamma)
    parts = {name: getattr(plan, name) for name in ("policy", "occupancy", "values", "certificate")}
    return decision._replace(model=model, **parts)


@lie("false mixture", red=("played",))
def false_mixture(agent, context, decision):
    """The plan is shown as the mixture that was drawn from; what is played is not in it."""
    mixture = Mixture(decision.policy[None], np.ones(1))
    return decision._replace(mixture=mixture, policy=uniform(decision))


@lie("inflated mixture", red=("played", "optimum"), unproven=BROKEN["unproven"])
def inflated_mixture(agent, context, decision):
    """The mixture has a policy whose rows sum to 5, so that its value seems to be three times what it is."""
    return decision._replace(mixture=Mixture(np.stack([decision.policy, 5.0 * decision.policy]), np.full(2, 0.5)))


@lie("changed afterwards", red=("played", "policy error", "decomposition"), may=("policy error, parts", "ceiling"))
def changed_afterwards(agent, context, decision):
    """Play is uniform; when the episode is over, the decision is overwritten with the plan."""
    policy = uniform(decision)
    agent.kept["after"] = ((policy, decision.policy),)
    return decision._replace(policy=policy)


def ahead_of_time(agent):
    """Return the random numbers that the world is about to use."""
    noise = np.random.default_rng(0)
    noise.bit_generator.state = agent.noise.bit_generator.state
    noise.random(10 * agent.seen)
    return noise.random(10)


def planned_with(decision, **tables):
    """Return the plan for other tables."""
    model = decision.model
    model = model.space.mdp(**({"transitions": model.transitions, "rewards": model.rewards} | tables))
    plan = omg.plan(model, decision.gamma)
    parts = {name: getattr(plan, name) for name in ("policy", "occupancy", "values", "certificate")}
    return decision._replace(model=model, **parts)


@lie("sees the rewards", red=("charge, rewards", "square loss", "Freedman"), episodes=150)
def sees_rewards(agent, context, decision):
    """The model has the rewards of the coming episode in the place of their means."""
    means = agent.world.mdp(context).rewards
    return planned_with(decision, rewards=(ahead_of_time(agent)[7:, None, None] < means).astype(float))


@lie("sees the transitions", red=("charge, dynamics", "log loss"), episodes=60)
def sees_transitions(agent, context, decision):
    """The model has the next states of the coming episode in the place of their distributions."""
    rows, uniforms = agent.world.mdp(context).transitions, ahead_of_time(agent)[1:6:2]
    reached = (uniforms[:, None, None, None] >= rows.cumsum(axis=-1)).sum(axis=-1)
    return planned_with(decision, transitions=np.eye(3)[np.minimum(reached, 2)])


@lie("false bound", red=("oracle regret, rewards", "oracle regret, dynamics"), episodes=40)
def false_bound(agent, context, decision):
    """The oracles promise a regret of -1000."""
    for oracle in (agent.reward_oracle, agent.dynamics_oracle):
        oracle.regret_bound = lambda episodes, horizon: -1000.0
    return decision


@lie("false late bound", red=("delayed regret, rewards", "delayed regret, dynamics"), episodes=40, delay=3)
def false_late_bound(agent, context, decision):
    """Feedback is late, and the oracles promise a regret of -1000 nevertheless."""
    for oracle in (agent.reward_oracle, agent.dynamics_oracle):
        oracle.delayed_regret_bound = lambda episodes, horizon, delay, constant: -1000.0
    return decision


@lie(
    "wrong class",
    red=("realizability, rewards", "realizability, dynamics"),
    may=("class not refuted", "ceiling"),
    held=slice(1, None),
)
def wrong_class(agent, context, decision):
    """The classes do not hold the truth."""
    return decision


def upside_down(rewards, dynamics):
    """Return oracles of one function each: the true rewards upside down, and that a state leads to itself."""
    means = {context: 1.0 - tables[:1] ** 0.2 for context, tables in rewards.items()}
    rows = {context: np.repeat(0.9 * np.eye(3)[None, :, None] + 0.1 / 3, 3, axis=2) for context in dynamics}
    return finite(means, rows)


@lie(
    "refuted class",
    red=("class not refuted", "realizability, rewards", "realizability, dynamics"),
    may=("square loss", "log loss", "Freedman", "theorem, corrected", "corollary", "ceiling"),
    episodes=40,
    oracles=upside_down,
)
def refuted_class(agent, context, decision):
    """The classes are so wrong that counts predict far better, without anybody knowing the truth."""
    return decision


REGRETS = ("oracle regret, rewards", "oracle regret, dynamics")
REALIZABILITY = ("realizability, rewards", "realizability, dynamics")


@lie(
    "idle oracles",
    unproven=(*REGRETS, *REALIZABILITY, "corollary"),
    episodes=40,
    oracles=lambda rewards, dynamics: (IdleRewards(), IdleDynamics()),
)
def idle(agent, context, decision):
    """The oracles never learn, and say that their loss is the best, their bound 1 and their class at no distance."""
    return decision


@lie(
    "idle oracles, class listed",
    red=REGRETS,
    unproven=("corollary",),
    episodes=40,
    oracles=lambda *classes: (
        IdleRewards(lambda _, c: classes[0][c]),
        IdleDynamics(lambda _, c: classes[1][c]),
    ),
)
def idle_and_listed(agent, context, decision):
    """The same, with a list of the functions of their class, one of which is true."""
    return decision


def own_prediction(oracle, context):
    return oracle.prediction[None]


@lie(
    "idle oracles, own class",
    red=REALIZABILITY,
    episodes=40,
    oracles=lambda rewards, dynamics: (IdleRewards(own_prediction), IdleDynamics(own_prediction)),
)
def idle_and_alone(agent, context, decision):
    """The same, with a class of one function, which is what they predict: this has no regret."""
    return decision


def moving(oracle, context):
    """Return functions that are others after every episode."""
    return (oracle.prediction / (1.0 + 0.01 * oracle.episodes))[None]


@lie(
    "changing class",
    unproven=(*REGRETS, *REALIZABILITY, "corollary"),
    episodes=40,
    oracles=lambda rewards, dynamics: (IdleRewards(moving), IdleDynamics(moving)),
)
def changing_class(agent, context, decision):
    """The same, with a list of functions that are others after every episode."""
    return decision


def without_losses(rewards, dynamics):
    oracles = IdleRewards(), IdleDynamics()
    for oracle in oracles:
        oracle.cost = lambda predicted, seen: 0.0
    return oracles


@lie("false losses", red=MADE_UP, unproven=(*REGRETS, *REALIZABILITY, "corollary"), oracles=without_losses)
def false_losses(agent, context, decision):
    """The oracles never learn, and say that they lose nothing by it."""
    return decision


def warm(rewards, dynamics):
    oracles = finite(rewards, dynamics)
    for oracle, outcomes in zip(oracles, ([1.0, 1.0, 1.0], [0, 0, 0]), strict=True):
        oracle.update("a", [0, 0, 0], [0, 0, 0], outcomes)
    return oracles


@lie("warm oracles", unproven=(*REGRETS, "corollary"), oracles=warm)
def warm_oracles(agent, context, decision):
    """The oracles have learned before the run; their bounds are for the first episodes that they learn from."""
    return decision


OF_RUNS = ("regret, from errors", "theorem, corrected", "corollary")


@lie("silent now and then", unproven=OF_RUNS)
def silent(agent, context, decision):
    """Every third decision claims nothing."""
    if agent.seen % 3:
        return decision
    return decision._replace(occupancy=None, values=None, certificate=math.nan)


@lie("no model now and then", unproven=("support", "certificate", "optimality", *OF_RUNS, "square loss", "log loss"))
def hidden_model(agent, context, decision):
    """Every third decision hides its model."""
    return decision if agent.seen % 3 else decision._replace(model=None)


WITHIN = {"budgets": [0.9], "may": {"Theorem H"}}


@lie("overspending", red=("budget", "budget certificate"), **WITHIN)
def overspending(agent, context, decision):
    """The plan is mixed with the dearest policy; the costs are said to be within the budget."""
    dearest = np.tile(np.eye(3)[2], (3, 3, 1))
    return owned(decision, 0.5 * decision.policy + 0.5 * dearest)


@lie("false prices", red=("budget certificate",), **WITHIN)
def false_prices(agent, context, decision):
    """The prices are half of those that the plan was made with."""
    return decision._replace(prices=0.5 * decision.prices)
