"""Continuous observations as states: the cells of a scikit-learn transformer or clusterer.

Limits. What happens next depends on where in a cell the environment is: the process of cells is not Markov, and no MDP
over them is the truth. The oracles learn an average over each cell as it was visited so far, which changes with the
policy; guarantees hold up to this misspecification, which is not measured. More cells are closer to the truth and take
longer to learn: transitions have S²·A entries. The transformer is fixed before the first episode: once it is fitted
again, its cells mean something else, and the agent must start over. Observations beyond those it was fitted to go to
cells at the edge: if a random policy does not reach what a good one reaches, fit it to observations of a good one.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.contexts import Context
from omg_cmdp.validation import FloatArray, instance_of, positive_integer, seed_number

try:
    import gymnasium
    from gymnasium.spaces import Discrete, flatten
except ImportError as error:
    raise ImportError("this needs Gymnasium: pip install 'omg-cmdp[gymnasium]'") from error


@final
class Discretised(gymnasium.ObservationWrapper[np.int64, Any, Any]):
    """An environment whose observations are the numbers of cells, by any fitted scikit-learn transformer.

    A clusterer (`predict`) names a cell by its label. A transformer (`transform`) names it by one ordinal number for
    each feature, like `KBinsDiscretizer(encode="ordinal")`, whose `n_bins_` says how many there are. If the number of
    cells cannot be read off the transformer, give it as `states`; a transformer must then return one column. It can be
    fitted to `random_observations`.

    >>> from sklearn.preprocessing import KBinsDiscretizer
    >>> pole = gymnasium.make("CartPole-v1")
    >>> bins = KBinsDiscretizer(3, encode="ordinal", strategy="uniform").fit(random_observations(pole, 500))
    >>> env = Discretised(pole, bins)
    >>> env.observation_space, env.reset(seed=0)[0] in env.observation_space
    (Discrete(81), True)
    """

    def __init__(self, env: gymnasium.Env[Any, Any], transformer: Any, *, states: int | None = None) -> None:
        instance_of("env", env, gymnasium.Env)
        super().__init__(env)
        self._transformer = transformer
        self._predicts = hasattr(transformer, "predict")
        if not self._predicts and not hasattr(transformer, "transform"):
            name = type(transformer).__name__
            raise ValueError(f"`transformer` must have a method `transform` or `predict`, got {name}")
        self._counts = _counts(transformer) if states is None else (positive_integer("states", states),)
        self.observation_space = Discrete(int(np.prod(self._counts)))
        self.observation(env.observation_space.sample())  # raises now rather than in the first episode

    def observation(self, observation: Any) -> np.int64:
        """Return the number of the cell that `observation` lies in."""
        try:
            row = np.asarray(flatten(self.env.observation_space, observation), dtype=np.float64)[None]
        except Exception as error:
            rule = f"be one of {self.env.observation_space}"
            raise ValueError(f"`observation` must {rule}, got {observation!r:.60}") from error
        try:
            cell = self._transformer.predict(row) if self._predicts else self._transformer.transform(row)
        except (AttributeError, IndexError, ValueError) as error:
            rule = "be fitted to observations like those of `env`, flattened, in float64"
            raise ValueError(f"`transformer` must {rule}, got {error}: see `random_observations`") from error
        codes = np.asarray(cell).reshape(-1)
        if codes.shape != (len(self._counts),) or not _are_codes(codes, self._counts):
            rule = f"give {len(self._counts)} integers below {self._counts}"
            raise ValueError(f"`transformer` must {rule}, got {cell!r:.80}: KBinsDiscretizer needs encode='ordinal'")
        return np.int64(np.ravel_multi_index(codes.astype(np.int64).tolist(), self._counts))


def random_observations(
    env: gymnasium.Env[Any, Any], steps: int, *, context: Context = None, seed: int = 0
) -> FloatArray:
    """Return the observations of `steps` uniformly random actions, flattened: (steps, d).

    `reset` gets the `context`, unless it is None.
    """
    instance_of("env", env, gymnasium.Env)
    seed = seed_number(seed)
    options = None if context is None else {"context": context}
    env.action_space.seed(seed)
    seen, over = [], True
    for step in range(positive_integer("steps", steps)):
        if over:
            observation, _ = env.reset(seed=seed if step == 0 else None, options=options)
            over = False
        else:
            observation, _, terminated, truncated, _ = env.step(env.action_space.sample())
            over = bool(terminated or truncated)
        seen.append(flatten(env.observation_space, observation))
    return np.array(seen, dtype=np.float64)


def _counts(transformer: Any) -> tuple[int, ...]:
    """Return how many codes each column has, read off the (last step of the) transformer."""
    last = transformer[-1] if hasattr(transformer, "steps") else transformer
    for name in ("n_bins_", "n_clusters", "n_components"):
        found = getattr(last, name, None)
        if found is not None and not isinstance(found, str):
            return tuple(int(count) for count in np.atleast_1d(found))
    fitted = "fitted, and have `n_bins_`, `n_clusters` or `n_components`; else give `states`, the number of cells"
    raise ValueError(f"`transformer` must be {fitted}, got {type(last).__name__}")


def _are_codes(codes: NDArray[Any], counts: tuple[int, ...]) -> bool:
    if codes.dtype.kind not in "iuf":
        return False
    pairs = zip(codes.tolist(), counts, strict=True)
    return all(0 <= code < count and code == int(code) for code, count in pairs)
