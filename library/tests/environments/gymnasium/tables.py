"""Worlds of Gymnasium's own tables."""

import functools

from gymnasium.envs.toy_text.frozen_lake import generate_random_map

from omg_cmdp.environments import from_gymnasium


@functools.cache
def lake(reward_range=None, return_range=None):
    settings = {"arguments": "success_rate", "horizon": 30, "reward_range": reward_range, "return_range": return_range}
    return from_gymnasium("FrozenLake-v1", [0.4, 0.6, 0.9], **settings)


def drawn(bits):
    """Return the arguments of a 4x4 lake with holes where the 16 bits of the context say so."""
    cells = "".join("FH"[bit] for bit in bits)
    return {"desc": [f"S{cells[1:4]}", cells[4:8], cells[8:12], f"{cells[12:15]}G"], "success_rate": 0.8}


@functools.cache
def random_maps():
    maps = ["".join(generate_random_map(size=4, p=0.7, seed=seed)) for seed in range(6)]
    contexts = [tuple(int(cell == "H") for cell in cells) for cells in maps]
    return from_gymnasium("FrozenLake-v1", contexts, arguments=drawn, horizon=25)


@functools.cache
def taxi():
    rain = {"arguments": lambda p: {"is_rainy": True, "rainy_probability": p}, "horizon": 12}
    return from_gymnasium("Taxi-v4", [0.5, 0.9], **rain)


@functools.cache
def cliff():
    return from_gymnasium("CliffWalking-v1", [False, True], arguments="is_slippery", horizon=25)


def half_best(world, context):
    """Return the mean of the best policy and the uniform one: it goes everywhere, and earns something."""
    uniform = world.space.admissible / world.space.admissible.sum(axis=1, keepdims=True)
    return 0.5 * world.truth(context).best[0] + 0.5 * uniform
