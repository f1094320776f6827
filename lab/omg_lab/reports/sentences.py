"""The sentences of a report that are no captions: its title, its headline, what regret was paid for, chance or not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from omg_cmdp.theory import bounds
from omg_lab.reports.comparisons import SIGNIFICANT, log_capital
from omg_lab.reports.scenarios import DELTA, Scenario
from omg_lab.reports.words import say

VERDICTS = ("pays", "need not", "undecided")
WORTH = 0.01
"""A gain of a smaller share of the optimum is not worth exploring for."""
TERMS = ("optimum_error", "plan_gap", "policy_error")
"""The three value differences that sum to the regret."""


def title(configuration: Mapping[str, Any]) -> str:
    """Return the title of a study for readers: the first sentence of its description, or its name."""
    first = sentences(configuration["description"])[0]
    return first[:1].upper() + first[1:] or str(configuration["name"])


def sentences(description: str) -> tuple[str, str]:
    """Return the first sentence without its full stop, and the rest."""
    first, _, rest = " ".join(description.split()).partition(". ")
    return first.rstrip("."), rest


def headline(scenario: Scenario) -> str:
    """Return the result in words."""
    return say("headline", scenario=scenario)


def exploring(scenario: Scenario) -> str | None:
    """Return whether exploring "pays" in this world, "need not" pay, or is "undecided"; None without a greedy agent.

    It need not pay where it gains less than `WORTH`, and it pays where a test says that the agent in focus loses less.
    """
    greedy = scenario.greedy
    if greedy is None or not scenario.exact:
        return None
    pair = scenario.pairs[greedy]
    if scenario.share(scenario.focus) - scenario.share(greedy) < WORTH:
        return "need not"
    better = {pair.better(pair.mean), pair.better(pair.most)} - {None}
    return "pays" if better == {scenario.focus} else "undecided"


def exploring_pays(scenario: Scenario) -> list[str]:
    """Return a sentence about `exploring`, if there is one."""
    verdict, greedy = exploring(scenario), scenario.greedy
    return [] if verdict is None else [say("exploring_pays", scenario=scenario, greedy=greedy, verdict=verdict)]


def where_exploring_pays(found: Sequence[Scenario]) -> str:
    """Return in which worlds exploring pays and in which it need not."""
    verdicts = {verdict: [each.world for each in found if exploring(each) == verdict] for verdict in VERDICTS}
    return say("where_exploring_pays", worlds=verdicts) if any(verdicts.values()) else ""


def chance_or_not(scenario: Scenario) -> str:
    """Return how to read the comparisons, and whether more seeds are needed."""
    agree = log_capital(np.ones(100)) >= math.log(2.0 * len(scenario.pairs) / SIGNIFICANT)
    return say("chance_or_not", scenario=scenario, significant=SIGNIFICANT, least=1 + int(np.argmax(agree)))


def agent_sentences(scenario: Scenario) -> list[str]:
    """Return what the agent in focus lost by not knowing and by exploring, its parts, its plans, and the bound."""
    focus, theory, told = scenario.focus, scenario.theory, []
    price = scenario.exploring(focus)
    if not math.isnan(price):
        episodes, below = scenario.curves(focus, "exploration")
        late = max(float(below[:, episodes > 0.9 * scenario.episodes].mean()), 0.0)
        told.append(say("price_of_exploring", focus=focus, lost=scenario.mean(focus, "regret"), price=price, late=late))
        told.append(say("terms", focus=focus, **{term: scenario.mean(focus, term) for term in TERMS}))
    certificate = float(scenario.logs[focus]["certificate"].max())
    if not math.isnan(certificate):
        told.append(say("certificate", worst=certificate, allowed=1.0 / (16.0 * scenario.episodes)))
    if theory is not None:
        limits = {"corrected": bounds.corrected(theory), "printed": bounds.as_printed(theory)}
        told.append(say("bound", confidence=100.0 * (1.0 - DELTA), most=theory.horizon * theory.episodes, **limits))
    return told
