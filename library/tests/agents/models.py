"""What tests of agents share: agents that know a model or learn in a world, random episodes, closed forms."""

import numpy as np
from scipy.optimize import brentq

from omg_cmdp import Trajectory, oracles

GAMMAS = (1e-3, 0.5, 10.0, 300.0, 1e5)


def filled(mdp):
    """Return the transitions with a row of probabilities where an action is inadmissible."""
    return np.where(mdp.admissible[:, :, None], mdp.transitions, np.eye(1, mdp.states)[0])


def knowing(mdp, kind, *more, **named):
    """Return an agent whose model is `mdp`."""
    rewards = oracles.KnownRewards(mdp.rewards, horizon=mdp.horizon)
    dynamics = oracles.KnownDynamics(filled(mdp), horizon=mdp.horizon)
    return kind(mdp.space, rewards, dynamics, *more, **named)


def policy_of(kind, mdp, *more):
    """Return the policy of an agent whose model is `mdp`."""
    return knowing(mdp, kind, *more).policy("c")


def learning(world, kind, *more, **named):
    """Return an agent with the function classes of `world`."""
    rewards = oracles.FiniteRewards(world.reward_functions, horizon=world.space.horizon)
    dynamics = oracles.FiniteDynamics(world.transition_functions, horizon=world.space.horizon)
    return kind(world.space, rewards, dynamics, *more, **named)


def an_episode(rng, space, context, policy, low=0.0, high=1.0):
    """Return an episode with actions from `policy`, and random rewards and next states."""
    states, actions = [int(rng.choice(space.states, p=space.start))], []
    for h in range(space.horizon):
        actions.append(int(rng.choice(space.actions, p=policy[h, states[-1]] / policy[h, states[-1]].sum())))
        states.append(int(rng.integers(space.states)))
    rewards = low + (high - low) * rng.random(space.horizon)
    return Trajectory(context=context, states=states, actions=actions, rewards=rewards)


def inverse_gap_weighting(rewards, gamma):
    """Return p_a = 1/(λ + γ·gap_a), Σ p = 1."""
    gaps = gamma * (rewards.max() - rewards)
    root = brentq(lambda x: (1.0 / (x + gaps)).sum() - 1.0, 1e-9, len(gaps) + 1e-9, xtol=1e-15, rtol=1e-15)
    return 1.0 / (root + gaps)


def uniform(mdp):
    """Return the policy (H, S, A) that plays every admissible action alike."""
    return np.tile(mdp.admissible / mdp.admissible.sum(axis=1, keepdims=True), (mdp.horizon, 1, 1))


def perturbed(rng, policy):
    """Return a policy near `policy`."""
    moved = policy * np.exp(0.01 * rng.normal(size=policy.shape))
    return moved / moved.sum(axis=2, keepdims=True)


def entropies(p):
    """Return -p·log p, 0 where p is."""
    return -(p * np.log(np.where(p > 0.0, p, 1.0)))


def divergence(p, q):
    """Return p·log(p/q), 0 where p is."""
    held = p > 0.0
    return np.where(held, p * np.log(np.where(held, p, 1.0) / np.where(held, q, 1.0)), 0.0)
