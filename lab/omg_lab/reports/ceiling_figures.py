"""A figure of what was lost, and what was known of it without the truth."""

from __future__ import annotations

import numpy as np

from omg_cmdp.agents.baselines.uniform import uniform_policy
from omg_cmdp.contexts import context_from_json
from omg_cmdp.validation import FloatArray
from omg_lab.reports.drawing import Figure, canvas, legend, looks, thinned
from omg_lab.reports.formats import number
from omg_lab.reports.scenarios import Scenario
from omg_lab.reports.words import say
from omg_lab.studies.config import unchecked_plan


def uniform_losses(scenario: Scenario) -> FloatArray | None:
    """Return what uniform play would have lost in the contexts of the agent in focus, summed, (R, T).

    None if the log lacks episodes, or if the world is not of this package, whose code alone is run for a report.
    """
    tasks = {
        each.seed: each for each in unchecked_plan(scenario.configuration).tasks() if each.world.name == scenario.world
    }
    table = scenario.logs[scenario.focus].pivot(index="seed", columns="episode", values="context")
    if len(table.columns) < scenario.episodes or any(":" in tasks[seed].world.kind for seed in table.index):
        return None
    lost = []
    for seed, contexts in table.iterrows():
        world = tasks[seed].setting().world
        each = {
            text: world.truth(context_from_json(text)).regret(uniform_policy(world.space)) for text in set(contexts)
        }
        lost.append([each[text] for text in contexts])
    return np.asarray(np.cumsum(lost, axis=1))


def ceiling_figure(scenario: Scenario) -> Figure | None:
    """Draw regret, its ceiling, and what uniform play would have lost; None if the study kept no ceiling."""
    focus, styles = scenario.focus, looks(scenario.everyone)
    if "ceiling" not in scenario.logs[focus] or not np.isfinite(scenario.logs[focus]["ceiling"]).any():
        return None
    episodes, most = scenario.curves(focus, "cumulative_ceiling")
    regret = scenario.curves(focus, "cumulative_regret")[1]
    uniform = uniform_losses(scenario)
    shown = thinned(len(episodes))
    with canvas() as (drawn, axes):
        axes.plot(episodes[shown], regret.mean(axis=0)[shown], label=f"{focus}: lost", **styles[focus])
        look = {"color": styles[focus]["color"], "linestyle": "--"}
        axes.plot(episodes[shown], most.mean(axis=0)[shown], label=f"{focus}: lost at most", **look)
        if uniform is not None:
            look = {"color": "grey", "linestyle": ":"}
            axes.plot(episodes[shown], uniform.mean(axis=0)[shown], label="uniform play: would have lost", **look)
            axes.set_ylim(0, 1.5 * float(np.max(most.mean(axis=0))))
        axes.set(xlabel="episode", ylabel="summed over episodes", xlim=(0, None))
        legend(drawn, axes)
    settled = float(np.mean(scenario.curves(focus, "settled")[1][:, -1]))
    told = {"lost": number(regret[:, -1].mean()), "most": number(most[:, -1].mean()), "settled": settled}
    above = int((regret > most + 1e-9).any(axis=1).sum())
    caption = say("ceiling", focus=focus, seeds=len(most), above=above, **told)
    return Figure(name=f"{scenario.name}-ceiling", title="What was lost at most", caption=caption, canvas=drawn)
