"""The sentences of a report that are no captions: its title, its headline, what regret was paid for, chance or not."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from omg_cmdp.theory import bounds
from omg_lab.reports.comparisons import SIGNIFICANT, Verdict, compare_all, enough_seeds
from omg_lab.reports.scenarios import DELTA, Scenario, is_vacuous, regret_interval
from omg_lab.reports.words import say

if TYPE_CHECKING:
    import pandas

CONFIDENCE = f"{100.0 * (1.0 - DELTA):.0f}"


def title(configuration: Mapping[str, Any]) -> str:
    """Return the title of a study for readers: the first sentence of its description, or its name."""
    first = sentences(configuration["description"])[0]
    return first[:1].upper() + first[1:] or str(configuration["name"])


def sentences(description: str) -> tuple[str, str]:
    """Return the first sentence without its full stop, and the rest."""
    first, _, rest = " ".join(description.split()).partition(". ")
    return first.rstrip("."), rest


def headline(finals: pandas.DataFrame, focus: str, scenario_count: int = 1) -> str:
    """Return the result in words; `finals` has a row per seed, a column per agent, best first."""
    rivals = [agent for agent in finals.columns if agent != focus]
    pairs = compare_all({agent: finals[agent].to_numpy() for agent in (focus, *rivals)}) if rivals else ()
    worst = finals.columns[-1]
    return say(
        "headline",
        focus=focus,
        own=regret_interval(finals[focus]),
        rival=rivals[0] if rivals else None,
        best=regret_interval(finals[rivals[0]]) if rivals else None,
        where="" if scenario_count == 1 else f" over {scenario_count} scenarios",
        p=pairs[0].adjusted if pairs else None,  # of the focus and the best of the others
        pairs=len(pairs),
        seeds=len(finals),
        significant=SIGNIFICANT,
        worst=worst,
        worst_loss=finals[worst].mean(),
    )


def chance_or_not(scenario: Scenario) -> str:
    """Return how to read the comparisons, and whether more seeds are needed."""
    finals, focus, rival = scenario.finals, scenario.focus, scenario.rivals[0]
    level = 1.0 - SIGNIFICANT / len(scenario.rivals)  # the rival is the best of these
    watched = enough_seeds((finals[focus] - finals[rival]).sort_index(), level)
    better, worse = {
        Verdict.FIRST: (focus, rival),
        Verdict.SECOND: (rival, focus),
        Verdict.UNDECIDED: (None, None),
    }[watched.verdict]
    return say(
        "chance_or_not",
        focus=focus,
        rival=rival,
        seeds=len(finals),
        pairs=math.comb(len(scenario.agents), 2),
        others=len(scenario.rivals),
        significant=SIGNIFICANT,
        least=2.0 ** (1 - len(finals)),
        watched={"better": better, "worse": worse, "seeds": watched.seeds, "more": watched.more},
    )


def agent_sentences(scenario: Scenario) -> list[str]:
    """Return what its regret was paid for, and the theorem's bound where it is above everything that can be lost."""
    focus, theory, told = scenario.focus, scenario.theory, []
    price = scenario.exploring(focus)
    if not math.isnan(price):
        episodes, below = scenario.curves(focus, "exploration")
        late = max(float(below[:, episodes > 0.9 * scenario.episodes].mean()), 0.0)
        lost = float(scenario.finals[focus].mean())
        told.append(say("price_of_exploring", focus=focus, lost=lost, price=price, late=late))
    if theory is not None and is_vacuous(theory):
        limits = {"corrected": bounds.corrected(theory), "printed": bounds.as_printed(theory)}
        told.append(say("vacuous_bound", confidence=CONFIDENCE, most=theory.horizon * theory.episodes, **limits))
    return told
