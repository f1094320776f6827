"""What tests of exploration rules share: what a rule knows, for an agent or a model; an agent after some episodes."""

from library.tests.agents.catalogue import LABELS, ORACLES
from library.tests.agents.models import an_episode
from omg_cmdp.agents import Situation
from omg_cmdp.contexts import keyed
from omg_cmdp.mdp.bellman import value_bounds
from omg_cmdp.theory.constants import most_tuples


def finite():
    """Return oracles of finite classes."""
    return ORACLES["finite"][1]()


def situation(agent, context=LABELS[0], episode=1, tolerance=1e-6):
    """Return what a rule of `agent` knows."""
    return Situation(
        episode=episode,
        known=keyed(context),
        model=agent.model(context),
        reward_oracle=agent.reward_oracle,
        dynamics_oracle=agent.dynamics_oracle,
        tuples=most_tuples(agent.space),
        tolerance=tolerance,
        bounds=agent.value_bounds,
    )


def model_alone(model, tolerance=1e-6, rewards=None, dynamics=None, episode=1):
    """Return what a rule knows if this is the model; by default it is all that there is."""
    return Situation(
        episode=episode,
        known=keyed("c"),
        model=model,
        reward_oracle=rewards,
        dynamics_oracle=dynamics,
        tuples=most_tuples(model.space),
        tolerance=tolerance,
        bounds=value_bounds(model.horizon),
    )


def after(agent, episodes):
    """Return the agent, which believes to have seen so many episodes."""
    agent.episodes_seen = episodes
    return agent


def taught(rng, agent, contexts, episodes):
    """Return the agent after random episodes of its own policies."""
    for t in range(episodes):
        context = contexts[t % len(contexts)]
        agent.update(an_episode(rng, agent.space, context, agent.policy(context), *agent.reward_range))
    return agent
