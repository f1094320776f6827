"""Varied random MDPs: dense to deterministic kernels, with and without steps, masks and start distributions."""

from __future__ import annotations

import numpy as np

from omg_cmdp.mdp import TabularMDP

STATES = (1, 2, 3, 4, 5, 7, 10, 15)
ACTIONS = (1, 2, 3, 4, 6)
HORIZONS = (1, 2, 3, 5, 8, 12, 20)


def dense(rng, shape, states):
    return rng.dirichlet(np.ones(states), shape)


def concentrated(rng, shape, states):
    return rng.dirichlet(np.full(states, 0.05), shape)


def deterministic(rng, shape, states):
    return np.eye(states)[rng.integers(states, size=shape)]


def near_deterministic(rng, shape, states):
    noise = 10.0 ** rng.uniform(-12, -1)
    return (1.0 - noise) * deterministic(rng, shape, states) + noise * dense(rng, shape, states)


def sparse(rng, shape, states):
    kept = dense(rng, shape, states) * (rng.random((*shape, states)) < 0.3)
    kept[..., 0] += 1e-9  # no row is empty; some states are reached through this alone
    return kept


KERNELS = {f.__name__: f for f in (dense, concentrated, deterministic, near_deterministic, sparse)}


def uniform(rng, shape):
    return rng.random(shape)


def zero_one(rng, shape):
    return (rng.random(shape) < 0.2).astype(float)


def equal(rng, shape):
    return np.full(shape, rng.choice([0.0, 0.5, 1.0]))


REWARDS = {f.__name__: f for f in (uniform, zero_one, equal)}


def random_mdp(
    rng,
    states=None,
    actions=None,
    horizon=None,
    *,
    kernel=None,
    rewards=None,
    kernel_steps=None,
    reward_steps=None,
    start_distribution=None,
    masked=None,
):
    """Return a random TabularMDP; what is None is drawn.

    `kernel` and `rewards` are keys of KERNELS and REWARDS. `kernel_steps` and `reward_steps` (step-dependent tables?),
    `start_distribution` (or a single state?) and `masked` are booleans.
    """
    states = states or int(rng.choice(STATES))
    actions = actions or int(rng.choice(ACTIONS))
    horizon = horizon or int(rng.choice(HORIZONS))
    kernel = kernel or str(rng.choice(list(KERNELS)))
    rewards = rewards or str(rng.choice(list(REWARDS), p=[0.65, 0.25, 0.1]))
    table = (states, actions)

    transitions = KERNELS[kernel](rng, (horizon, *table) if _or_draw(rng, kernel_steps, 0.4) else table, states)
    return TabularMDP(
        transitions=transitions / transitions.sum(axis=-1, keepdims=True),
        rewards=REWARDS[rewards](rng, (horizon, *table) if _or_draw(rng, reward_steps, 0.5) else table),
        horizon=horizon,
        start=rng.dirichlet(np.ones(states)) if _or_draw(rng, start_distribution, 0.4) else int(rng.integers(states)),
        admissible=random_mask(rng, states, actions) if _or_draw(rng, masked, 0.4) else None,
    )


def random_mdps(rng, count, **fixed):
    """Return `count` MDPs of `random_mdp`."""
    return [random_mdp(rng, **fixed) for _ in range(count)]


def random_mask(rng, states, actions):
    """Return a boolean mask (S, A) with an action in every state."""
    mask = rng.random((states, actions)) < 0.6
    mask[np.arange(states), rng.integers(actions, size=states)] = True
    return mask


def random_policy(rng, mdp):
    """Return a policy (H, S, A) that gives every admissible action a positive probability."""
    weights = rng.exponential(size=(mdp.horizon, mdp.states, mdp.actions)) * mdp.admissible
    return weights / weights.sum(axis=2, keepdims=True)


def by_step(mdp):
    """Return kernel (H, S, A, S) and rewards (H, S, A) with every step written out."""
    shape = (mdp.horizon, mdp.states, mdp.actions)
    return np.broadcast_to(mdp.transition_steps, (*shape, mdp.states)), np.broadcast_to(mdp.reward_steps, shape)


def with_tables(mdp, **changes):
    """Return a copy of `mdp` in which some tables are replaced."""
    tables = {name: getattr(mdp, name) for name in ("transitions", "rewards", "horizon", "start", "admissible")}
    return TabularMDP(**(tables | changes))


def _or_draw(rng, given, probability):
    return rng.random() < probability if given is None else given
