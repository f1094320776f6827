"""OMG learns Gymnasium's FrozenLake with its success rate as context; the oracles know neither kernels nor rewards.

`python -m benchmarks lake`: what share of the optimum it reaches in 3000 episodes, for several κ; takes ten minutes.

The lake has its usual 100 steps and pays only at its goal. The oracles know that rewards and transitions are linear in
the success rate, with unknown coefficients, and that a move leads at most one cell on, or ends the episode. They are
not told where the holes and the goal are, which action is which direction, nor how the ice slips.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import Report, Row
from omg_cmdp import OMG, play
from omg_cmdp.agents.exploration import UncertaintyWeighted
from omg_cmdp.environments import TableWorld, from_gymnasium
from omg_cmdp.oracles import BasisDynamics, LinearRewards
from omg_cmdp.validation import FloatArray

RATES = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
EPISODES, SIDE = 3000, 4
KAPPAS = (0.15, 0.015, 0.0015)


def lake(*, quick: bool) -> Report:
    """Learn with each κ, the default first, and report the share of the optimum: mean, and worst context."""
    shares = {kappa: learned_shares(kappa, 100 if quick else EPISODES)[0] for kappa in KAPPAS}
    rows = [
        row
        for kappa, share in shares.items()
        for row in (
            Row(f"κ = {kappa:g}: share of the optimum, mean of contexts", float(share.mean())),
            Row(f"κ = {kappa:g}: in the worst context", float(share.min())),
        )
    ]
    details = {str(kappa): share.tolist() for kappa, share in shares.items()}
    return Report(title="FrozenLake, 100 steps, success rate as context", rows=rows, details=details)


def learned_shares(kappa: float, episodes: int = EPISODES, *, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Return the exact V^π/V* for each success rate after these episodes, and the return of each episode."""
    world = from_gymnasium("FrozenLake-v1", RATES, arguments="success_rate")
    assert isinstance(world, TableWorld)
    states, actions, horizon = world.space.states, world.space.actions, world.space.horizon
    rewards = LinearRewards(states=states, actions=actions, horizon=horizon, dimension=2, features=mixture)
    dynamics = BasisDynamics(
        states=states, actions=actions, horizon=horizon, bases=2, features=mixture, support=within_one_cell()
    )
    agent = OMG(world.space, rewards, dynamics, gamma=UncertaintyWeighted(kappa=kappa), episodes=episodes)
    contexts = np.random.default_rng(seed).choice(RATES, size=episodes).tolist()
    log = play(world, agent, contexts, seed=seed)  # in Gymnasium itself; the tables only evaluate
    return np.array([world.truth(c).value(agent.policy(c)) / world.optimal_value(c) for c in RATES]), log.returns


def mixture(rate: float) -> list[float]:
    """Return the shares of two unknown kernels."""
    return [rate, 1.0 - rate]


def within_one_cell() -> NDArray[np.bool_]:
    """Return which transitions can happen, (S, A, S): to a cell at most one away, or to the end."""
    places = np.array([divmod(cell, SIDE) for cell in range(SIDE**2)])
    near = np.abs(places[:, None] - places).sum(axis=-1) <= 1
    reachable = np.zeros((SIDE**2 + 1, SIDE**2 + 1), dtype=np.bool_)
    reachable[:-1, :-1], reachable[:, -1] = near, True
    return np.repeat(reachable[:, None], 4, axis=1)
