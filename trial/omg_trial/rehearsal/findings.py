"""What a rehearsal has found: the estimates of the final analysis, beside the truth that only a simulation knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from omg_cmdp.validation import FloatArray
from omg_trial.analysis.clustered import ClusteredEstimate
from omg_trial.analysis.effects import arm_difference, earned, fixed_probabilities, treatment_effect
from omg_trial.export.decisions import decisions
from omg_trial.rehearsal.player import Player

if TYPE_CHECKING:
    import pandas


class Estimated(NamedTuple):
    """An estimate of the analysis, its interval, and the truth."""

    name: str
    value: float
    low: float
    high: float
    truth: float

    @property
    def covered(self) -> bool:
        """Whether the interval has the truth in it."""
        return self.low <= self.truth <= self.high


def analyse(player: Player, level: float = 0.95) -> list[Estimated]:
    """Return the estimates of a rehearsal's final analysis, with the truth of each.

    The truth of an effect is its mean over the decision points at which both actions could be drawn. That of the fixed
    probabilities is exact, by a forward recursion over the steps of each episode that was begun. That of the gain is
    the expected reward of what was drawn, less that; the arms differ by the same. People who were taken out are not in
    any of them.
    """
    trial, table = player.trial, decisions(player.trial, player.store.read())
    places = list(zip(table["episode"], table["step"], strict=True))
    means = np.array([player.truth[place] for place in places])
    chances = table[[f"probability_{name}" for name in trial.actions]].to_numpy(np.float64)
    found: list[Estimated] = []
    for place, action in enumerate(trial.actions[1:], start=1):
        both = (chances[:, [0, place]] > 0.0).all(axis=1)
        gains = means[:, place] - means[:, 0]
        found += _beside(treatment_effect(trial, table, action), [gains[both].mean()], level)
        states = [state for state in sorted(trial.states) if (both & (table["state"] == state)).any()]
        by_state = [gains[both & (table["state"] == state)].mean() for state in states]
        found += _beside(treatment_effect(trial, table, action, by="state"), by_state, level)
    learning = np.ones(len(table), dtype=bool) if "arm" not in table else (table["arm"] != "control").to_numpy()
    fixed = fixed_means(player, table)
    names = (*trial.actions, "")  # the last one for nothing at all
    done = [names.index(name) for name in table["action"].fillna("")]
    drawn = np.isfinite(chances).all(axis=1)
    played = np.where(drawn, (np.nan_to_num(chances) * means[:, :-1]).sum(axis=1), means[np.arange(len(table)), done])
    gain = played[learning].mean() - fixed[learning].mean()
    found += _beside(earned(trial, table), [fixed[learning].mean(), gain], level)
    if not learning.all():
        found += _beside(arm_difference(trial, table), [fixed.mean(), gain], level)
    return found


def fixed_means(player: Player, table: pandas.DataFrame) -> FloatArray:
    """Return the expected reward of every decision, had its episode been played by the fixed probabilities.

    Somebody who is not available has the trial's action for that, or none, as often as the script says.
    """
    trial, known = player.trial, {}
    policy, missing = fixed_probabilities(trial, trial.fixed_policy()[0] > 0.0), player.script.unavailable
    for episode in table["episode"].unique():
        phone, first, day = player.of_episode[episode]
        here = (np.array(trial.states) == first).astype(np.float64)
        for step in range(trial.space.horizon):
            reward, after = 0.0, np.zeros(len(here))
            for state, name in enumerate(trial.states):
                chances = [*((1.0 - missing) * policy[state]), missing]
                for action, chance in zip((*trial.actions, trial.action_name(trial.unavailable)), chances, strict=True):
                    mean, moves = player.expected(phone, name, action, day)
                    reward += here[state] * chance * mean
                    after += here[state] * chance * moves
            known[episode, step], here = reward, after
    return np.array([known[place] for place in zip(table["episode"], table["step"], strict=True)])


def _beside(estimate: ClusteredEstimate, truths: list[float], level: float) -> list[Estimated]:
    rows = zip(estimate.names, estimate.values, estimate.interval(level), truths, strict=True)
    return [Estimated(name, float(value), *map(float, (*ends, truth))) for name, value, ends, truth in rows]
