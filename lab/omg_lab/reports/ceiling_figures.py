"""A figure of what was lost, and what was known of it without the truth."""

from __future__ import annotations

import numpy as np

from omg_lab.reports.drawing import Figure, canvas, legend, looks, thinned
from omg_lab.reports.formats import number
from omg_lab.reports.scenarios import Scenario
from omg_lab.reports.words import say


def ceiling_figure(scenario: Scenario) -> Figure | None:
    """Draw regret, its ceiling, and what uniform play lost if it took part; None if the study kept no ceiling."""
    focus, styles = scenario.focus, looks(scenario.everyone)
    if "ceiling" not in scenario.logs[focus] or not np.isfinite(scenario.logs[focus]["ceiling"]).any():
        return None
    episodes, most = scenario.curves(focus, "cumulative_ceiling")
    regret = scenario.curves(focus, "cumulative_regret")[1]
    uniform = next((agent for agent in scenario.agents if agent.startswith("uniform")), None)
    shown = thinned(len(episodes))
    with canvas() as (drawn, axes):
        axes.plot(episodes[shown], regret.mean(axis=0)[shown], label=f"{focus}: lost", **styles[focus])
        look = {"color": styles[focus]["color"], "linestyle": "--"}
        axes.plot(episodes[shown], most.mean(axis=0)[shown], label=f"{focus}: lost at most", **look)
        if uniform is not None:
            lost = scenario.curves(uniform, "cumulative_regret")[1].mean(axis=0)
            axes.plot(episodes[shown], lost[shown], label=f"{uniform}: lost", **styles[uniform])
            axes.set_ylim(0, 1.5 * float(np.max(most.mean(axis=0))))
        axes.set(xlabel="episode", ylabel="summed over episodes", xlim=(0, None))
        legend(drawn, axes)
    settled = float(np.mean(scenario.curves(focus, "settled")[1][:, -1]))
    told = {"lost": number(regret[:, -1].mean()), "most": number(most[:, -1].mean()), "settled": settled}
    above = int((regret > most + 1e-9).any(axis=1).sum())
    caption = say("ceiling", focus=focus, seeds=len(most), above=above, **told)
    return Figure(name=f"{scenario.name}-ceiling", title="What was lost at most", caption=caption, canvas=drawn)
