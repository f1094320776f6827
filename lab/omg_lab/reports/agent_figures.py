"""Figures about one agent: its regret under the theorem's bound and in parts, its exploration, its model's errors."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from omg_cmdp.theory import bounds
from omg_lab.reports.drawing import COLOURS, HEIGHT, INK, Figure, canvas, legend, logarithmic, looks, stacked, thinned
from omg_lab.reports.formats import number
from omg_lab.reports.scenarios import Scenario, is_vacuous
from omg_lab.reports.sentences import CONFIDENCE
from omg_lab.reports.statistics import NO_REGRET
from omg_lab.reports.words import say

TERMS = {"optimum_error": "optimum error", "plan_gap": "plan gap", "policy_error": "policy error"}
"""The three value differences that sum to the regret."""
FILLS = tuple(zip(COLOURS[5:2:-1], ("", "////", "\\\\\\\\"), strict=True))
ERRORS = {
    "reward_error": ("rewards", "squared errors of predicted rewards"),
    "dynamics_error": ("transitions", "squared Hellinger distances of predicted transitions"),
}
ALLOWED: dict[str, Any] = {"color": COLOURS[1], "linestyle": "--"}


def agent_figures(scenario: Scenario) -> list[Figure]:
    """Return the figures about the agent in focus, without those that have nothing to show."""
    drawn = (bound(scenario), terms(scenario), exploration(scenario), model_errors(scenario))
    return [figure for figure in drawn if figure is not None]


def bound(scenario: Scenario) -> Figure | None:
    """Draw its regret, the theorem's bound with both sets of constants, and the most that can be lost."""
    theory, focus = scenario.theory, scenario.focus
    if theory is None or is_vacuous(theory):
        return None
    episodes, values = scenario.curves(focus, "cumulative_regret")
    shown = thinned(len(episodes), geometric=True)
    t, mean = episodes[shown], values.mean(axis=0)[shown]
    shorter = [dataclasses.replace(theory, episodes=int(each)) for each in t]
    limits: dict[str, Any] = {
        "corrected": [bounds.corrected(each) for each in shorter],
        "printed": [bounds.as_printed(each) for each in shorter],
        "most": theory.horizon * t,
    }
    with canvas() as (drawn, (axes,)):
        axes.plot(
            t,
            limits["printed"],
            color=COLOURS[4],
            linestyle=(0, (1, 1)),
            label="theorem, constants printed in the paper",
        )
        axes.plot(t, limits["corrected"], label="theorem, corrected", **ALLOWED)
        axes.plot(t, limits["most"], color=INK, linewidth=0.9, label=f"most there is to lose, {theory.horizon}t")
        positive = np.where(mean > NO_REGRET, mean, np.nan)
        axes.plot(t, positive, label=focus, **looks(scenario.everyone)[focus].line(len(t)))
        axes.set(xlabel="episode", ylabel="cumulative regret")
        logarithmic(axes.xaxis, axes.yaxis)
        legend(drawn, axes)
    ends = {name: limit[-1] for name, limit in limits.items()}
    caption = say("bound", focus=focus, episodes=scenario.episodes, lost=mean[-1], confidence=CONFIDENCE, **ends)
    return Figure(name=f"{scenario.name}-bound", title="Regret and the theorem's bound", caption=caption, canvas=drawn)


def terms(scenario: Scenario) -> Figure | None:
    """Draw the three value differences that sum to its regret, stacked."""
    focus = scenario.focus
    if not scenario.known(focus, "plan_gap"):
        return None
    curves = [scenario.curves(focus, f"cumulative_{name}") for name in TERMS]
    shown = thinned(len(curves[0][0]))
    episodes, parts = curves[0][0][shown], np.array([values.mean(axis=0)[shown] for _, values in curves])
    with canvas() as (drawn, (axes,)):
        for (low, high), label, (colour, hatch) in zip(stacked(parts), TERMS.values(), FILLS, strict=True):
            fill: dict[str, Any] = {"facecolor": colour, "hatch": hatch, "edgecolor": INK, "alpha": 0.7, "linewidth": 0}
            axes.fill_between(episodes, low, high, label=label, **fill)
        axes.plot(episodes, parts.sum(axis=0), color=INK, linewidth=2.0, label="regret, their sum")
        axes.axhline(0.0, color=INK, linewidth=0.6)
        axes.set(xlabel="episode", ylabel="cumulative", xlim=(0, None))
        legend(drawn, axes)
    caption = say("terms", focus=focus, **dict(zip(("optimum", "gap", "policy"), parts[:, -1], strict=True)))
    title = f"Where the regret of {focus} comes from"
    return Figure(name=f"{scenario.name}-terms", title=title, caption=caption, canvas=drawn)


def exploration(scenario: Scenario) -> Figure | None:
    """Draw γ_t and the certificates of its plans."""
    focus = scenario.focus
    if not scenario.known(focus, "gamma"):
        return None
    episodes, gammas = scenario.curves(focus, "gamma")
    certified, shown = scenario.known(focus, "certificate"), thinned(len(episodes), geometric=True)
    certificates = scenario.curves(focus, "certificate")[1].max(axis=0)
    allowed, middle = 1.0 / (16.0 * scenario.episodes), np.median(gammas, axis=0)
    with canvas(1 + certified, height=HEIGHT * (1.3 if certified else 1.0)) as (drawn, axes):
        colour, t = looks(scenario.everyone)[focus].color, episodes[shown]
        low, high = gammas.min(axis=0)[shown], gammas.max(axis=0)[shown]
        axes[0].fill_between(t, low, high, color=colour, alpha=0.18, linewidth=0)
        axes[0].plot(t, middle[shown], color=colour, linewidth=1.0)
        axes[0].set_ylabel("γ")
        logarithmic(axes[0].xaxis, axes[0].yaxis)
        if certified:
            axes[1].plot(t, certificates[shown], ".", color=colour, markersize=3)
            axes[1].axhline(allowed, **ALLOWED)
            axes[1].annotate("1/(16T)", (1.0, allowed), xytext=(2, 3), textcoords="offset points")
            axes[1].set_ylabel("certificate")
            logarithmic(axes[1].yaxis)
        axes[-1].set_xlabel("episode")
    tenth = scenario.episodes / 10.0
    early, late = (np.median(middle[part]) for part in (episodes <= max(tenth, 1.0), episodes > 9.0 * tenth))
    worst = float(np.nanmax(certificates)) if certified else None
    caption = say("exploration", focus=focus, early=early, late=late, worst=worst, allowed=allowed)
    title = f"How much {focus} explores"
    return Figure(name=f"{scenario.name}-exploration", title=title, caption=caption, canvas=drawn)


def model_errors(scenario: Scenario) -> Figure | None:
    """Draw the summed errors of its model, and what the bounds of its oracles allow."""
    focus, theory = scenario.focus, scenario.theory
    if not scenario.known(focus, "reward_error"):
        return None
    sums = {name: scenario.curves(focus, f"cumulative_{name}") for name in ERRORS}
    wrong = [name for name, (_, values) in sums.items() if values.max() > NO_REGRET]
    if not wrong:
        return None
    told = []
    with canvas(len(wrong), height=HEIGHT * (0.4 + 0.45 * len(wrong))) as (drawn, axes):
        for part, name in zip(axes, wrong, strict=True):
            (episodes, values), (label, words) = sums[name], ERRORS[name]
            shown, mean = thinned(len(episodes), geometric=True), values.mean(axis=0)
            look = looks(scenario.everyone)[focus].line(len(shown))
            part.plot(episodes[shown], mean[shown], label=f"errors of {focus}, summed", **look)
            told.append(f"{number(mean[-1])} in {words}")
            if theory is not None:
                allowed = getattr(theory, name)
                part.axhline(allowed, label="allowed by bound", **ALLOWED)
                told[-1] += f" (allowed: {number(allowed)})"
            part.set_ylabel(label)
            logarithmic(part.xaxis, part.yaxis)
        axes[-1].set_xlabel("episode")
        legend(drawn, axes[0])
    known = [ERRORS[name][0] for name in sums if name not in wrong]
    caption = say("model_errors", focus=focus, errors=told, known=known, proven=theory is not None)
    title = f"How wrong the model of {focus} is"
    return Figure(name=f"{scenario.name}-errors", title=title, caption=caption, canvas=drawn)
