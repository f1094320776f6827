"""How simulated people react: by a simple model whose truth is known, or by a function of your own."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from omg_cmdp.oracles.feature_map import Category
from omg_trial.trial_file.trial import Trial

Model = Callable[[Any, str, str | None, int], tuple[float, Mapping[str, float]]]
"""(context, state, action, day) -> the expected reward, and the probabilities of the next state.

The action is None where nothing was done: the person was not available, and the trial file names no action for that.
"""


def simple_model(trial: Trial, seed: int = 0) -> Model:
    """Return people whose expected reward is linear in the context.

    Scaled to [0, 1], it is 1/2 + b(state) + e(action) + w(action)·x, kept in [0.1, 0.9], where x is the vector of the
    context; b is in [-0.1, 0.1], e in [-0.05, 0.25] and 0 for the first action, and |w| = 0.15. The next state depends
    on the state and the action alone. All of it is drawn from the seed.

    Examples
    --------
    >>> from omg_trial.trial_file import EXAMPLE
    >>> model = simple_model(Trial.parse(EXAMPLE))
    >>> reward, after = model("alone", "took it", "reminder", 0)
    >>> 0.1 <= reward <= 0.9, round(float(sum(after.values())), 9)
    (True, 1.0)
    """
    generator, (states, actions) = np.random.default_rng([seed, 1]), (len(trial.states), len(trial.actions))
    base = generator.uniform(-0.1, 0.1, states)
    effect = np.append(0.0, generator.uniform(-0.05, 0.25, actions - 1))
    slope = generator.normal(size=(actions, trial.dimension))
    slope *= 0.15 / np.linalg.norm(slope, axis=1, keepdims=True)
    after = generator.dirichlet(np.full(states, 2.0), (states, actions))
    low, high = reward_range(trial)

    def react(context: Any, state: str, action: str | None, day: int) -> tuple[float, Mapping[str, float]]:
        s, a = trial.states.index(state), 0 if action is None else trial.actions.index(action)
        share = 0.5 + base[s] + effect[a] + slope[a] @ trial.vector(context)
        return low + (high - low) * float(np.clip(share, 0.1, 0.9)), dict(zip(trial.states, after[s, a], strict=True))

    return react


def load_model(name: str) -> Model:
    """Return a function of your own, by module:function; it is imported, as any program of yours."""
    module, _, function = name.partition(":")
    try:
        found = vars(importlib.import_module(module))[function]
    except (ImportError, KeyError, ValueError) as error:
        raise ValueError(f"{name!r} is no module:function that can be imported ({error})") from None
    return found  # type: ignore[no-any-return]


def reward_range(trial: Trial) -> tuple[float, float]:
    """Return the range of a reward such that no episode leaves the range of returns."""
    low, high = trial.reward_range
    least, most = (each / trial.space.horizon for each in trial.return_range or (-np.inf, np.inf))
    return max(low, least), min(high, most)


def random_context(trial: Trial, generator: np.random.Generator) -> Any:
    """Return a context that the trial file allows, as an app would send it."""
    if trial.features is None:
        return str(generator.choice(trial.labels))
    return {
        column.column: str(generator.choice(column.labels))
        if isinstance(column, Category)
        else float(generator.uniform(column.low, column.high))
        for column in trial.features.columns
    }
