"""What a report says in words: its title, its headline, what an agent's regret was paid for, chance or not."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from omg_lab.reports.comparisons import Verdict, compare_all, enough_seeds
from omg_lab.reports.formats import chance, estimate, number, plural
from omg_lab.reports.scenarios import DELTA, Scenario, regret_interval
from omg_lab.reports.tables import SIGNIFICANT

if TYPE_CHECKING:
    import pandas


def title(configuration: Mapping[str, Any]) -> str:
    """Return what a study is called for readers: the first sentence of its description, or its name."""
    first = sentences(configuration["description"])[0]
    return first[:1].upper() + first[1:] or str(configuration["name"])


def sentences(description: str) -> tuple[str, str]:
    """Return the first sentence without its full stop, and the rest."""
    first, _, rest = " ".join(description.split()).partition(". ")
    return first.rstrip("."), rest


def totals(found: Sequence[Scenario]) -> pandas.DataFrame:
    """Return the regret summed over scenarios: a row per seed, a column for every agent in all of them, best first."""
    table = functools.reduce(operator.add, (scenario.finals for scenario in found))
    table = table.dropna(axis="columns", how="all").dropna()
    return table[table.mean().sort_values(kind="stable").index]


def headline(finals: pandas.DataFrame, focus: str, scenario_count: int = 1) -> str:
    """Return the result in words; `finals` has a row per seed, a column per agent, best first."""
    own, rivals = regret_interval(finals[focus]), [agent for agent in finals.columns if agent != focus]
    where = "" if scenario_count == 1 else f" over {scenario_count} scenarios"
    against = "Against the best policy for each context,"
    if not rivals:
        return f"{against} {focus} lost {estimate(*own)} in total{where}."
    rival, best = rivals[0], regret_interval(finals[rivals[0]])
    if own.mean <= best.mean:
        share = (
            f"{100.0 * own.mean / best.mean:.0f} % of the {number(best.mean)}"
            if best.mean > 0.0
            else "the same as that"
        )
        words = f"{against} {focus} lost least: {estimate(*own)} in total{where}, {share} of the runner-up, {rival}."
    else:
        ratio = own.mean / best.mean if best.mean > 0.0 else math.nan
        times = "" if math.isnan(ratio) else ", about as much" if ratio < 1.05 else f", {number(ratio)} times as much"
        words = (
            f"{against} {rival} lost least: {estimate(*best)} in total{where}; {focus} lost {estimate(*own)}{times}."
        )
    pairs = compare_all({agent: finals[agent].to_numpy() for agent in (focus, *rivals)})
    p = pairs[0].adjusted  # the focus and its best rival
    if p <= SIGNIFICANT:
        words += (
            f" The difference is more than chance (p = {chance(p)}, corrected for {plural(len(pairs), 'comparison')})."
        )
    else:
        words += f" With {plural(len(finals), 'seed')}, the difference may be chance (p = {chance(p)}, corrected)."
    worst = finals.columns[-1]
    if worst not in (focus, rival):
        words += f" Most was lost by {worst}: {number(finals[worst].mean())}."
    return words


def chance_or_not(scenario: Scenario) -> str:
    """Return how to read the comparisons, and whether more seeds are needed."""
    seeds, focus, rival = len(scenario.finals), scenario.focus, scenario.rivals[0]
    least, pairs = 2.0 ** (1 - seeds), math.comb(len(scenario.agents), 2)
    words = (
        "All agents met the same seeds, and are compared seed by seed. Here p is the chance of a difference this large "
        f"if both agents were equally good, corrected for {plural(pairs, 'comparison')}; if it is at most "
        f"{SIGNIFICANT}, the difference counts as more than chance. "
    )
    if least > SIGNIFICANT:
        words += f"With {plural(seeds, 'seed')}, p cannot be below {number(least)}: at least 6 seeds are needed. "
    level = 1.0 - SIGNIFICANT / len(scenario.rivals)  # the rival is the best of these
    watched = enough_seeds((scenario.finals[focus] - scenario.finals[rival]).sort_index(), level)
    if watched.verdict is Verdict.UNDECIDED:
        return words + (
            f"A second test, which may be repeated after every seed, has not yet decided whether {focus} or {rival} is "
            f"better; about {plural(watched.more, 'more seed')} may be enough."
        )
    better, worse = (focus, rival) if watched.verdict is Verdict.FIRST else (rival, focus)
    return words + (
        f"A second test, which may be repeated after every seed, found {better} better than {worse} after "
        f"{plural(watched.seeds, 'seed')}."
    )


def agent_sentences(scenario: Scenario) -> list[str]:
    """Return what its regret was paid for, and the theorem's bound where it is above everything that can be lost."""
    focus, theory, told = scenario.focus, scenario.theory, []
    price = scenario.exploring(focus)
    if not math.isnan(price):
        lost = float(scenario.finals[focus].mean())
        episodes, below = scenario.curves(focus, "exploration")
        late = max(float(below[:, episodes > 0.9 * scenario.episodes].mean()), 0.0)
        told.append(
            f"In total {focus} lost {number(lost)}: {number(lost - price)} for what it did not know yet, which the "
            f"best policy of its model would have lost, too, and {number(price)} for exploring"
            + (" (it did better than its model's best: that was wrong). " if price < 0.0 else ". ")
            + f"In the last tenth of the episodes {focus} played {number(late)} an episode below the best policy of "
            "its own model. That is what it would gain by stopping to explore, if its model is right."
        )
    if theory is not None and theory.is_vacuous(scenario.episodes):
        t = np.array([scenario.episodes])
        told.append(
            f"The theorem's bound is not drawn: at confidence {100.0 * (1.0 - DELTA):.0f} % it allows a regret of "
            f"{number(theory.corrected(t)[0])} ({number(theory.printed(t)[0])} as printed), and no agent can lose more "
            f"than {number(theory.horizon * scenario.episodes)} in so few episodes. What the theorem promises is the "
            "rate √t, in whatever order contexts come."
        )
    return told
