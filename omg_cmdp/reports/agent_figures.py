"""Figures about one agent: its regret under the theorem's bound and in parts, its exploration, its model's errors."""

from __future__ import annotations

from typing import Any

import numpy as np

from omg_cmdp.reports.contests import DELTA, Contest
from omg_cmdp.reports.drawing import (
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
from omg_cmdp.reports.formats import count, listing, number
from omg_cmdp.reports.statistics import NO_REGRET

TERMS = {"optimum_error": "optimum error", "plan_gap": "plan gap", "policy_error": "policy error"}
"""The three value differences that sum to the regret."""
ERRORS = {
    "reward_error": ("rewards", "squared errors of predicted rewards"),
    "dynamics_error": ("transitions", "squared Hellinger distances of predicted transitions"),
}
ALLOWED: dict[str, Any] = {"color": COLOURS[1], "linestyle": "--"}


def agent_figures(contest: Contest) -> list[Figure]:
    """Return the figures about the hero, in the order of a report; those with nothing to show are left out."""
    drawn = (bound(contest), terms(contest), exploration(contest), model_errors(contest))
    return [figure for figure in drawn if figure is not None]


def bound(contest: Contest) -> Figure | None:
    """Draw the hero's regret under the theorem's bound, corrected and as printed, and the most that can be lost."""
    theory, hero = contest.theory, contest.hero
    if theory is None:
        return None
    episodes, values = contest.curves(hero, "cumulative_regret")
    shown = thinned(len(episodes), geometric=True)
    t, mean = episodes[shown], values.mean(axis=0)[shown]
    corrected, printed, most = theory.corrected(t), theory.printed(t), theory.horizon * t
    with canvas() as (drawn, (axes,)):
        axes.plot(t, printed, color=COLOURS[4], linestyle=(0, (1, 1)), label="theorem, as printed")
        axes.plot(t, corrected, label="theorem, corrected", **ALLOWED)
        axes.plot(t, most, color=INK, linewidth=0.9, label=f"most there is to lose, {theory.horizon}t")
        axes.plot(t, np.where(mean > NO_REGRET, mean, np.nan), label=hero, **looks(contest.everyone)[hero].line(len(t)))
        axes.set(xlabel="episode", ylabel="cumulative regret")
        logarithmic(axes.xaxis, axes.yaxis)
        legend(drawn, axes)
    caption = (
        f"After {count(contest.episodes)} episodes {hero} has lost {number(mean[-1])}. The theorem allows "
        f"{number(corrected[-1])} with the constants that its proof supports, and {number(printed[-1])} as printed. "
        "This is so far above the curve that the axes are logarithmic"
    )
    useless = corrected[-1] > most[-1]
    caption += (
        f", and above {number(most[-1])}, the most that anyone can lose in so few episodes. " if useless else ". "
    )
    caption += (
        "What the theorem promises is the rate √t, in whatever order contexts come. Its bound is drawn at confidence "
        f"{100.0 * (1.0 - DELTA):.0f} %, and for the γ that the theorem itself would choose."
    )
    return Figure(name=f"{contest.name}-bound", title="Regret and the theorem's bound", caption=caption, canvas=drawn)


def terms(contest: Contest) -> Figure | None:
    """Draw the three value differences that sum to the hero's regret, stacked."""
    hero = contest.hero
    if not contest.known(hero, "plan_gap"):
        return None
    curves = [contest.curves(hero, f"cumulative_{name}") for name in TERMS]
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
        f"The regret of {hero}, {number(optimum + gap + policy)}, is the sum of three differences: by how much its "
        f"model underrates the best policy ({number(optimum)}, optimum error); by how much, in the model, the best "
        f"policy beats the one that was planned, the more the more it explores ({number(gap)}, plan gap); and by how "
        f"much the model overrates the one that was planned ({number(policy)}, policy error)."
    )
    if min(optimum, gap, policy) < 0.0:
        caption += " What is negative is drawn downwards: there the model erred in the agent's favour."
    return Figure(
        name=f"{contest.name}-terms", title=f"Where the regret of {hero} comes from", caption=caption, canvas=drawn
    )


def exploration(contest: Contest) -> Figure | None:
    """Draw γ_t and the certificates of the hero's plans."""
    hero = contest.hero
    if not contest.known(hero, "gamma"):
        return None
    episodes, gammas = contest.curves(hero, "gamma")
    certified, shown = contest.known(hero, "certificate"), thinned(len(episodes), geometric=True)
    certificates = contest.curves(hero, "certificate")[1].max(axis=0)
    allowed, middle = 1.0 / (16.0 * contest.episodes), np.median(gammas, axis=0)
    with canvas(1 + certified, height=HEIGHT * (1.3 if certified else 1.0)) as (drawn, axes):
        colour, t = looks(contest.everyone)[hero].color, episodes[shown]
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
    tenth = contest.episodes / 10.0
    early, late = (np.median(middle[part]) for part in (episodes <= max(tenth, 1.0), episodes > 9.0 * tenth))
    caption = (
        f"The larger γ, the more {hero} exploits and the less it explores. Its median went from {number(early)} in the "
        f"first tenth of the episodes to {number(late)} in the last. (Line: median over the seeds; band: smallest to "
        "largest.)"
    )
    if certified:
        worst = float(np.nanmax(certificates))
        caption += (
            " The certificate is a proven bound on how far a plan is from the best one, times γ. The largest was "
            f"{number(worst)}, {'within' if worst <= allowed else 'above'} the 1/(16T) = {number(allowed)} that the "
            "theorem asks for (dashed)."
        )
    return Figure(name=f"{contest.name}-exploration", title=f"How much {hero} explores", caption=caption, canvas=drawn)


def model_errors(contest: Contest) -> Figure | None:
    """Draw the summed errors of the hero's model under what its oracles' bounds allow."""
    hero, theory = contest.hero, contest.theory
    if not contest.known(hero, "reward_error"):
        return None
    sums = {name: contest.curves(hero, f"cumulative_{name}") for name in ERRORS}
    wrong = [name for name, (_, values) in sums.items() if values.max() > NO_REGRET]
    if not wrong:
        return None
    told = []
    with canvas(len(wrong), height=HEIGHT * (0.4 + 0.45 * len(wrong))) as (drawn, axes):
        for part, name in zip(axes, wrong, strict=True):
            (episodes, values), (label, words) = sums[name], ERRORS[name]
            shown, mean = thinned(len(episodes), geometric=True), values.mean(axis=0)
            look = looks(contest.everyone)[hero].line(len(shown))
            part.plot(episodes[shown], mean[shown], label=f"errors of {hero}, summed", **look)
            told.append(f"{number(mean[-1])} of {words}")
            if theory is not None:
                allowed = getattr(theory, name)
                part.axhline(allowed, label="allowed by bound", **ALLOWED)
                told[-1] += f" (allowed: {number(allowed)})"
            part.set_ylabel(label)
            logarithmic(part.xaxis, part.yaxis)
        axes[-1].set_xlabel("episode")
        legend(drawn, axes[0])
    caption = (
        f"{hero} learns a model through two regression oracles. Along its own paths, over all episodes, it adds up to "
        f"{listing(told)}. A curve that has become flat means a model that is right wherever the agent still goes."
    )
    caption += "".join(
        f" The {ERRORS[name][0]} of this world are known, without error." for name in sums if name not in wrong
    )
    if theory is None:
        caption += " These oracles have no proven bound to compare with."
    return Figure(
        name=f"{contest.name}-errors", title=f"How wrong the model of {hero} is", caption=caption, canvas=drawn
    )
