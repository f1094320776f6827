"""Two control problems of Gymnasium with contexts and continuous observations, to be played in cells.

*Cart pole*. Keep a pole upright by pushing its cart to the left or to the right; the context is the length of the pole,
1 for the usual one. A step pays 1, and the episode ends when the pole has fallen. The agent sees the angle, its speed
and, with `cart=True`, the place of the cart and its speed. A longer pole falls more slowly, and is harder to move.

*Mountain car*. Swing a car out of a valley; the context is the strength of its motor, 1 for the usual one. A step costs
1 until the car is at the top, so that rewards lie in [-1, 0]. The agent sees place and speed. Random pushes do not
reach the top with a weak motor: hold them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from omg_cmdp.validation import instance_of, positive_number

try:
    import gymnasium
    from gymnasium.spaces import Box
    from gymnasium.wrappers import TransformObservation
except ImportError as error:
    raise ImportError("this needs Gymnasium: pip install gymnasium") from error

Env = gymnasium.Env[Any, Any]


def cart_pole(*, cart: bool = False) -> Env:
    """Return a CartPole whose `reset` takes the pole's length, relative to the usual one.

    Parameters
    ----------
    cart : bool
        Whether the cart's position and speed are observed too. False, the default, leaves the pole's angle and speed,
        which are enough to balance it.

    >>> env = cart_pole()
    >>> env.reset(seed=0, options={"context": 2.0})[0].shape, env.unwrapped.length
    ((2,), 1.0)
    """
    instance_of("cart", cart, bool)
    env = _Adjusted(gymnasium.make("CartPole-v1"), _lengthen)
    return env if cart else TransformObservation(env, lambda seen: seen[2:], Box(-np.inf, np.inf, (2,)))


def mountain_car() -> Env:
    """Return a MountainCar whose `reset` takes the strength of the motor, relative to the usual one.

    >>> mountain_car().reset(seed=0, options={"context": 1.5})[0].shape
    (2,)
    """
    return _Adjusted(gymnasium.make("MountainCar-v0"), _strengthen)


class _Adjusted(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment whose physics follow from the context, a positive number."""

    def __init__(self, env: Env, adjust: Callable[[Any, float], None]) -> None:
        super().__init__(env)
        self._adjust = adjust

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode of `options["context"]`, 1 by default."""
        self._adjust(self.unwrapped, positive_number("context", (options or {}).get("context", 1.0)))
        return super().reset(seed=seed)


def _lengthen(pole: Any, factor: float) -> None:
    pole.length = 0.5 * factor
    pole.polemass_length = pole.masspole * pole.length


def _strengthen(car: Any, factor: float) -> None:
    car.force = 0.001 * factor
