"""The worlds of this package as Gymnasium environments, so that other people's agents can play them.

Importing this module registers them, as `worlds.register_gymnasium()` does:

    omg_lab/Arms-v0   Bandit-v0   Corridor-v0   Decoy-v0   DeepSea-v0   Linear-v0   Lock-v0   LongDecoy-v0
    omg_lab/LowerBound-v0   NoisyRoom-v0   RiverSwim-v0   Softmax-v0   Treatment-v0
    omg_lab/ACTG175-v0   Classification-v0   ICUSepsis-v0   ReducedSepsis-v0, which need the extras of these worlds

Those that are made of Gymnasium's own environments are not among them.

`gymnasium.make("omg_lab/Lock-v0", positions=3)` passes options on to the world. The environments are those of
`omg_cmdp.environments.gymnasium.world_env`, whose docstring says what they observe.
"""

from __future__ import annotations

from typing import Any

import gymnasium

from omg_cmdp.environments.gymnasium.world_env import WorldEnv
from omg_lab import worlds
from omg_lab.worlds.base import World


def make_env(world: str, *, render_mode: str | None = None, **options: Any) -> WorldEnv:
    """Return the environment of a world by the name of its class, made with these options."""
    return WorldEnv(getattr(worlds, world)(**options), render_mode=render_mode)


def register_gymnasium() -> tuple[str, ...]:
    """Register all worlds but Gymnasium's own with Gymnasium, unless they are registered; return their ids.

    >>> "omg_lab/Corridor-v0" in register_gymnasium()
    True
    """
    names = [name for name in worlds.__all__ if name not in worlds.LATE]
    kinds = [kind for name in names if isinstance(kind := getattr(worlds, name), type)]
    ours = [kind for kind in kinds if issubclass(kind, World) and kind is not World and kind.package != "gymnasium"]
    ids = {_id(kind): kind.__name__ for kind in ours}
    for name, kind in ids.items():
        if name not in gymnasium.registry:
            gymnasium.register(name, entry_point=f"{__name__}:make_env", kwargs={"world": kind})
    return tuple(ids)


def _id(kind: type[World]) -> str:
    """Return the id of a world: a synthetic one has the name of its module, one made of data that of its class."""
    room, module = kind.__module__.split(".")[-2:]
    return f"omg_lab/{kind.__name__ if room == 'data' else module.title().replace('_', '')}-v0"


register_gymnasium()
