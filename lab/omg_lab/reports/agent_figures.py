"""Figures about one agent: its regret under the theorem's bound and in parts, its exploration, its model's errors."""

from __future__ import annotations

from typing import Any

import numpy as np

from omg_lab.reports.drawing import (
    COLOURS,
    HEIGHT,
    INK,
    Figure,
    canvas,
    legend,
    logarithmic,
    looks,
    stacked,
    thinned,
)
from omg_lab.reports.formats import count, listing, number
from omg_lab.reports.scenarios import DELTA, Scenario
from omg_lab.reports.statistics import NO_REGRET

TERMS = {"optimum_error": "optimum error", "plan_gap": "plan gap", "policy_error": "policy error"}
"""The three value differences that sum to the regret."""
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
    """Draw its regret, the theorem's bound, corrected and as printed, and the most that can be lost."""
    theory, focus = scenario.theory, scenario.focus
    if theory is None or theory.is_vacuous(scenario.episodes):
        return None
    episodes, values = scenario.curves(focus, "cumulative_regret")
    shown = thinned(len(episodes), geometric=True)
    t, mean = episodes[shown], values.mean(axis=0)[shown]
    corrected, printed, most = theory.corrected(t), theory.printed(t), theory.horizon * t
    with canvas() as (drawn, (axes,)):
        axes.plot(t, printed, color=COLOURS[4], linestyle=(0, (1, 1)), label="theorem, as printed")
        axes.plot(t, corrected, label="theorem, corrected", **ALLOWED)
        axes.plot(t, most, color=INK, linewidth=0.9, label=f"most there is to lose, {theory.horizon}t")
        axes.plot(
            t, np.where(mean > NO_REGRET, mean, np.nan), label=focus, **looks(scenario.everyone)[focus].line(len(t))
        )
        axes.set(xlabel="episode", ylabel="cumulative regret")
        logarithmic(axes.xaxis, axes.yaxis)
        legend(drawn, axes)
    caption = (
        f"After {count(scenario.episodes)} episodes {focus} has lost {number(mean[-1])}. The theorem allows "
        f"{number(corrected[-1])} with the constants that its proof supports, and {number(printed[-1])} as printed. "
        f"The most that any agent can lose is {number(most[-1])}. What the theorem promises is the rate √t, in "
        "whatever order contexts come. Its bound is drawn at confidence "
        f"{100.0 * (1.0 - DELTA):.0f} %, and for the γ that the theorem would choose."
    )
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
        fills = zip(stacked(parts), TERMS.values(), COLOURS[5:2:-1], ("", "////", "\\\\\\\\"), strict=True)
        for (low, high), label, colour, hatch in fills:
            style: dict[str, Any] = {
                "facecolor": colour,
                "alpha": 0.7,
                "hatch": hatch,
                "edgecolor": INK,
                "linewidth": 0,
            }
            axes.fill_between(episodes, low, high, label=label, **style)
        axes.plot(episodes, parts.sum(axis=0), color=INK, linewidth=2.0, label="regret, their sum")
        axes.axhline(0.0, color=INK, linewidth=0.6)
        axes.set(xlabel="episode", ylabel="cumulative", xlim=(0, None))
        legend(drawn, axes)
    optimum, gap, policy = parts[:, -1]
    caption = (
        f"The regret of {focus}, {number(optimum + gap + policy)}, is the sum of three differences: how much its "
        f"model underrates the best policy ({number(optimum)}, optimum error); how much the best policy beats the one "
        f"played, in the model, as that explores ({number(gap)}, plan gap); and how much the model "
        f"overrates the policy played ({number(policy)}, policy error)."
    )
    if min(optimum, gap, policy) < 0.0:
        caption += " Negative parts are drawn downwards: there the model erred in the agent's favour."
    return Figure(
        name=f"{scenario.name}-terms", title=f"Where the regret of {focus} comes from", caption=caption, canvas=drawn
    )


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
    caption = (
        f"The larger γ is, the less {focus} explores. Its median went from {number(early)} in the first tenth of the "
        f"episodes to {number(late)} in the last. (Line: median over the seeds; band: smallest to largest.)"
    )
    if certified:
        worst = float(np.nanmax(certificates))
        caption += (
            " The certificate is γ times a proven bound on how far a plan is from the best one. The largest was "
            f"{number(worst)}, {'within' if worst <= allowed else 'above'} the 1/(16T) = {number(allowed)} that the "
            "theorem asks for (dashed)."
        )
    return Figure(
        name=f"{scenario.name}-exploration", title=f"How much {focus} explores", caption=caption, canvas=drawn
    )


def model_errors(scenario: Scenario) -> Figure | None:
    """Draw the summed errors of its model, and what the bounds of its oracles allow."""
    focus, theory = scenario.focus, scenario.theory
    if not scenario.known(focus, "reward_error"):
        return None
    sums = {name: scenario.curves(focus, f"cumulative_{name}") for name in ERRORS}
    wrong = [name for name, (_, values) in sums.items() if values.max() > NO_REGRET]
    if not wrong:
        return None
    text = []
    with canvas(len(wrong), height=HEIGHT * (0.4 + 0.45 * len(wrong))) as (drawn, axes):
        for part, name in zip(axes, wrong, strict=True):
            (episodes, values), (label, words) = sums[name], ERRORS[name]
            shown, mean = thinned(len(episodes), geometric=True), values.mean(axis=0)
            look = looks(scenario.everyone)[focus].line(len(shown))
            part.plot(episodes[shown], mean[shown], label=f"errors of {focus}, summed", **look)
            text.append(f"{number(mean[-1])} in {words}")
            if theory is not None:
                allowed = getattr(theory, name)
                part.axhline(allowed, label="allowed by bound", **ALLOWED)
                text[-1] += f" (allowed: {number(allowed)})"
            part.set_ylabel(label)
            logarithmic(part.xaxis, part.yaxis)
        axes[-1].set_xlabel("episode")
        legend(drawn, axes[0])
    caption = (
        f"Through two regression oracles {focus} learns a model. Where its policies lead, the errors of all episodes "
        f"add up to {listing(text)}. A flat curve means that the model is now right wherever the agent goes."
    )
    caption += "".join(f" The {ERRORS[name][0]} of this world are known." for name in sums if name not in wrong)
    if theory is None:
        caption += " These oracles have no proven bound to compare with."
    return Figure(
        name=f"{scenario.name}-errors", title=f"How wrong the model of {focus} is", caption=caption, canvas=drawn
    )
