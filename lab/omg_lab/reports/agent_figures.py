"""Figures about one agent: what it lost at most, and how wrong its model is."""

from __future__ import annotations

import numpy as np

from omg_lab.reports.drawing import Figure, canvas, legend, logarithmic, looks, thinned
from omg_lab.reports.formats import number
from omg_lab.reports.scenarios import Scenario
from omg_lab.reports.statistics import NO_REGRET
from omg_lab.reports.words import say

ERRORS = {
    "reward_error": ("rewards", "squared errors of predicted rewards"),
    "dynamics_error": ("transitions", "squared Hellinger distances of predicted transitions"),
}


def agent_figures(scenario: Scenario) -> list[Figure]:
    """Return the figures about the agent in focus, without those that have nothing to show."""
    drawn = (ceiling(scenario), model_errors(scenario))
    return [figure for figure in drawn if figure is not None]


def ceiling(scenario: Scenario) -> Figure | None:
    """Draw regret and its ceiling; None if the study kept no ceiling."""
    focus, styles = scenario.focus, looks(scenario.everyone)
    if "ceiling" not in scenario.logs[focus] or not np.isfinite(scenario.logs[focus]["ceiling"]).any():
        return None
    episodes, most = scenario.curves(focus, "cumulative_ceiling")
    regret = scenario.curves(focus, "cumulative_regret")[1]
    shown = thinned(len(episodes))
    with canvas() as (drawn, axes):
        axes.plot(episodes[shown], regret.mean(axis=0)[shown], label=f"{focus}: lost", **styles[focus])
        look = {"color": styles[focus]["color"], "linestyle": "--"}
        axes.plot(episodes[shown], most.mean(axis=0)[shown], label=f"{focus}: lost at most", **look)
        axes.set(xlabel="episode", ylabel="summed over episodes", xlim=(0, None))
        legend(drawn, axes)
    settled = float(np.mean(scenario.curves(focus, "settled")[1][:, -1]))
    told = {"lost": number(regret[:, -1].mean()), "most": number(most[:, -1].mean()), "settled": settled}
    above = int((regret > most + 1e-9).any(axis=1).sum())
    caption = say("ceiling", focus=focus, seeds=len(most), above=above, **told)
    return Figure(name=f"{scenario.name}-ceiling", title="What was lost at most", caption=caption, canvas=drawn)


def model_errors(scenario: Scenario) -> Figure | None:
    """Draw the summed errors of its model, and what the bounds of its oracles allow."""
    focus, theory = scenario.focus, scenario.theory
    if not scenario.logs[focus]["reward_error"].notna().any():
        return None
    sums = {name: scenario.curves(focus, f"cumulative_{name}") for name in ERRORS}
    wrong = [name for name, (_, values) in sums.items() if values.max() > NO_REGRET]
    if not wrong:
        return None
    told = []
    with canvas() as (drawn, axes):
        for name, look in zip(wrong, looks(ERRORS).values(), strict=False):
            (episodes, values), (label, words) = sums[name], ERRORS[name]
            shown, mean = thinned(len(episodes), geometric=True), values.mean(axis=0)
            axes.plot(episodes[shown], mean[shown], label=label, **look)
            told.append(f"{number(mean[-1])} in {words}")
            if theory is not None:
                allowed = getattr(theory, name)
                axes.axhline(allowed, label=f"{label}, allowed", color=look["color"], linestyle="--")
                told[-1] += f" (allowed: {number(allowed)})"
        axes.set(xlabel="episode", ylabel="errors, summed")
        logarithmic(axes.xaxis, axes.yaxis)
        legend(drawn, axes)
    known = [ERRORS[name][0] for name in sums if name not in wrong]
    caption = say("model_errors", focus=focus, errors=told, known=known, proven=theory is not None)
    title = f"How wrong the model of {focus} is"
    return Figure(name=f"{scenario.name}-errors", title=title, caption=caption, canvas=drawn)
