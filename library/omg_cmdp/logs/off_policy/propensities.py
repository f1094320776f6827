"""Propensities of a log whose actions were chosen by people: estimated, each from other people's decisions.

The probability of the action that was taken, given context, state and step, is fitted to all folds of episodes but its
own (Chernozhukov et al., 2018), so that nobody's choice predicts itself. An action that the folds never saw keeps a
little of the uniform distribution: A/(n + A) for n examples.

What it assumes cannot be seen in the log: that nothing else influenced both the action and its outcome, and that those
who decided did not change their rules on the way.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.logs.log import Log
from omg_cmdp.logs.off_policy.design import Features, context_rows
from omg_cmdp.mdp.episode import Episode
from omg_cmdp.validation import FloatArray, instance_of, integer, seed_number

RARE = 0.01
"""The probability below which an action hardly ever happens."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Overlap:
    """The estimated probabilities of a log's actions in summary; `str` is a few sentences. `log.overlap` is one.

    Parameters
    ----------
    smallest : float
        The smallest probability of an action that was taken.
    effective_sample_size : float
        (Σ w)²/Σ w² over the steps, with weights w = 1/probability: what is left if every action is to count the same.
    steps : int
        The number of steps with a decision.
    rare : float
        The share of steps at which some allowed action had a probability below 0.01.
    never_taken : tuple of (state, action)
        The allowed actions that were never taken in a state that was visited, by name.

    Examples
    --------
    >>> print(Overlap(smallest=0.2, effective_sample_size=80.0, steps=100, rare=0.0, never_taken=(("ill", "drug B"),)))
    The least likely action that was taken had probability 0.2; weighted, 100 steps are worth 80.
    At 0 % of the steps an allowed action had a probability below 0.01.
    Never taken: drug B in ill. Nothing in the log says what it would have done.
    """

    smallest: float
    effective_sample_size: float
    steps: int
    rare: float
    never_taken: tuple[tuple[Any, Any], ...]

    def __str__(self) -> str:
        lines = [
            f"The least likely action that was taken had probability {self.smallest:.2g}; "
            f"weighted, {self.steps} steps are worth {self.effective_sample_size:.0f}.",
            f"At {100 * self.rare:.0f} % of the steps an allowed action had a probability below {RARE}.",
        ]
        if self.never_taken:
            pairs = ", ".join(f"{action} in {state}" for state, action in self.never_taken[:8])
            more = f" and {len(self.never_taken) - 8} more" if len(self.never_taken) > 8 else ""
            lines.append(f"Never taken: {pairs}{more}. Nothing in the log says what it would have done.")
        return "\n".join(lines)


def estimate_propensities(
    log: Log, model: Any = None, *, features: Features | None = None, folds: int = 5, seed: int = 0
) -> Log:
    """Return the log with estimated probabilities of its actions, each fitted to other people's decisions.

    Parameters
    ----------
    log : Log
        Episodes whose actions were chosen by rules that did not change. Propensities that it already has are replaced.
    model : classifier, optional
        An object with `fit` and `predict_proba`, as in scikit-learn; it is copied for every fold. Its inputs are the
        features of the context, the step and the state, and the features again for each state. By default
        scikit-learn's multinomial logistic regression, of the extra `sklearn`.
    features : callable, optional
        context -> (d,), numbers of the size of 1 without a constant. By default vectors are standardised, and records
        and labels encoded, gaps and categories included.
    folds : int, default 5
        The number of parts into which the episodes are divided, at least 2.
    seed : int, default 0
        The seed of that division.

    Returns
    -------
    Log
        A log with the same episodes and their `propensities`; its `overlap` says how far they can be trusted.

    Examples
    --------
    >>> from omg_cmdp import Space
    >>> steps = {"states": [0, 0], "rewards": [0.0]}
    >>> episodes = [Episode(context="c", actions=[int(t % 4 == 0)], **steps) for t in range(200)]
    >>> log = estimate_propensities(Log(Space(states=1, actions=2, horizon=1), episodes))
    >>> log.propensities[:2, 0].round(1)
    array([0.3, 0.8])
    >>> log.overlap.never_taken
    ()

    References
    ----------
    V. Chernozhukov et al., *Double/debiased machine learning for treatment and structural parameters*, The
    Econometrics Journal 21, 2018.
    """
    instance_of("log", log, Log)
    folds = integer("folds", folds, 2)
    generator = np.random.default_rng(seed_number(seed))
    if len(log) < folds:
        raise ValueError(f"`log` must hold at least as many episodes as there are folds, {folds}, got {len(log)}")
    if model is None:
        model = _logistic_regression()
    elif not all(callable(getattr(model, name, None)) for name in ("fit", "predict_proba")):
        raise ValueError(f"`model` must have `fit` and `predict_proba`, got {type(model).__name__}")
    space = log.space
    lengths = np.array([episode.length for episode in log.episodes])
    owners, when = np.nonzero(np.arange(space.horizon) < lengths[:, None])
    states, actions = log.states[owners, when], log.actions[owners, when]
    rows = context_rows(log.contexts, features)[owners]
    here = np.eye(space.states)[:, np.unique(states)][states]
    crossed = (here[:, :, None] * rows[:, None, :]).reshape(len(rows), -1)
    inputs = np.hstack([rows, np.eye(space.horizon)[when], here, crossed if here.shape[1] > 1 else here[:, :0]])
    part = generator.permutation(np.arange(len(log)) % folds)[owners]
    chances = np.empty((len(rows), space.actions))
    for fold in range(folds):
        others = part != fold
        chances[~others] = _predicted(model, inputs[others], actions[others], inputs[~others], space.actions)
    allowed = space.admissible[states]
    chances = np.where(allowed, chances, 0.0)
    chances /= chances.sum(axis=1, keepdims=True)
    taken = chances[np.arange(len(actions)), actions]
    made = log._of([])
    ends = np.cumsum(lengths)
    for episode, end in zip(log.episodes, ends.tolist(), strict=True):
        known = np.ones(len(episode.actions))
        known[: episode.length] = taken[end - episode.length : end]
        made.episodes.append(Episode.of_arrays(episode.known, episode.raw, known, episode.length, episode.costs))
    tried = np.zeros((space.states, space.actions), dtype=np.bool_)
    tried[states, actions] = True
    lacking = np.argwhere(space.admissible & ~tried & tried.any(axis=1, keepdims=True))
    made.overlap = Overlap(
        smallest=float(taken.min()),
        effective_sample_size=float((1.0 / taken).sum() ** 2 / (1.0 / taken**2).sum()),
        steps=len(taken),
        rare=float(((chances < RARE) & allowed).any(axis=1).mean()),
        never_taken=tuple((log.state_names[s], log.action_names[a]) for s, a in lacking.tolist()),
    )
    return made


def _predicted(
    model: Any, inputs: FloatArray, actions: NDArray[np.int64], queries: FloatArray, count: int
) -> FloatArray:
    """Return the probabilities of all actions, (n, A), by a copy of the model that was fitted to examples."""
    import copy

    chances, found = np.zeros((len(queries), count)), np.unique(actions)
    if len(found) == 1:  # nothing to tell apart, which most classifiers refuse
        chances[:, found[0]] = 1.0
    else:
        fitted = copy.deepcopy(model).fit(inputs, actions)
        chances[:, np.asarray(fitted.classes_, dtype=np.int64)] = fitted.predict_proba(queries)
    share = count / (len(actions) + count)
    return (1.0 - share) * chances + share / count


def _logistic_regression() -> Any:
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        advice = "pip install scikit-learn, or give a `model` with `fit` and `predict_proba`"
        raise ImportError(f"the default `model` is scikit-learn's logistic regression: {advice}") from None
    return LogisticRegression(max_iter=2000)
