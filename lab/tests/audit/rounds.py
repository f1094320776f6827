"""Rounds made by hand: any truth, any model, any barrier, plans as loose as one likes."""

import numpy as np

from library.tests.random_mdps import random_mdp, random_policy, with_tables
from omg_cmdp.mdp import Episode, occupancy_measure
from omg_cmdp.mdp.truth import Truth
from omg_cmdp.planning import certificate, plan
from omg_cmdp.planning.decision import Decision
from omg_cmdp.theory.rounds import account

SIZES = {"states": (1, 2, 3, 5), "actions": (1, 2, 3), "horizon": (1, 2, 3, 6)}


def random_pair(rng, *, known_dynamics=False, **fixed):
    """Return a truth and a model of it: unrelated, close, or with the same dynamics."""
    sizes = {name: int(rng.choice(choices)) for name, choices in SIZES.items()} | fixed
    truth = random_mdp(rng, **sizes)
    other = random_mdp(rng, **(sizes | {"masked": False, "kernel_steps": truth.transitions.ndim == 4}))
    model = with_tables(other, start=truth.start, admissible=truth.admissible)
    if known_dynamics:
        model = with_tables(model, transitions=truth.transitions)
    elif rng.random() < 0.5:
        near = 10.0 ** rng.uniform(-4, -1)
        model = with_tables(model, transitions=(1.0 - near) * truth.transitions + near * other.transitions)
    return truth, model


def random_weights(rng, model):
    """Return weights (H, S, A) over several orders of magnitude, or None for ones."""
    shape = (model.horizon, model.states, model.actions)
    return None if rng.random() < 0.4 else 10.0 ** rng.uniform(-3, 1, size=shape)


def planned(rng, model, gamma, weights, *, loosened=0.0):
    """Return a decision: a plan, its policy mixed with a random one, and a certificate of the result."""
    solution = plan(model, gamma, weights=weights)
    policy, proof = solution.policy, solution.certificate
    if loosened:
        policy = (1.0 - loosened) * policy + loosened * random_policy(rng, model)
        proof = certificate(model, policy, solution.values, gamma=gamma, weights=weights)
    held = solution.occupancy > 0.0
    occupancy = np.where(held, occupancy_measure(model, policy), 0.0)
    return Decision(policy=policy, model=model, gamma=gamma, weights=weights, occupancy=occupancy, certificate=proof)


def unplanned(policy, model):
    """Return the decision of an agent without a barrier."""
    return Decision(policy=policy, model=model)


def played(truth, decision, episode=1):
    """Return the round of an episode that stands still."""
    steps = truth.horizon
    stay = Episode(context=0, states=[0] * (steps + 1), actions=[0] * steps, rewards=[0.0] * steps)
    return account(episode, Truth(truth), decision, stay)
