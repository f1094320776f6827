"""The decisions of agents at the end: pictures of the policy for a few contexts, what would change it, how sure it is.

With more than three contexts, the three are shown for which the agents differ most. The distance of two policies is the
share of decisions in which they differ, Σ d·½Σ|π - π'| / Σ d, where d says how likely a state is at a step.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.runs.advice import Advice
from omg_cmdp.validation import FloatArray
from omg_lab.reports.drawing import Figure, styled
from omg_lab.reports.formats import number, percent
from omg_lab.reports.scenarios import Scenario
from omg_lab.reports.tables import ReportTable, cell
from omg_lab.reports.words import say
from omg_lab.shown import Names
from omg_lab.studies.results import Policies

SHOWN = 3
SURE = 0.8
"""A decision is sure where at least this share of the models agrees."""
LONGEST = 200
"""The most letters in the description of a context."""


Shown = Mapping[str, Advice]
"""What each agent would do for a context, the agent in focus first."""


def shown_policies(scenario: Scenario, policies: Mapping[str, Policies]) -> tuple[list[Figure], list[ReportTable], str]:
    """Return a picture for each context that is shown, a table of all, and how to read them; nothing if none is kept.

    They are those of the first seed.
    """
    seed, focus = scenario.finals.index[0], scenario.focus
    runs = scenario.runs[scenario.runs["seed"] == seed].set_index("agent")["run"]
    kept = {agent: policies[runs[agent]] for agent in (focus, *scenario.rivals) if runs[agent] in policies}
    found = chosen({agent: each.advice for agent, each in kept.items()})
    if not found:
        return [], [], ""
    names = kept[focus].names
    with styled("omg-lab"):  # names are text, never formulas
        figures = [
            Figure(
                name=f"{scenario.name}-policy-{letter.lower()}",
                title=f"Context {letter}",
                caption=_caption(focus, each, names),
                canvas=each[focus].plot(names.states, names.actions),
            )
            for letter, each in found.items()
        ]
    reading = say("policies", focus=focus, episodes=scenario.episodes, seed=seed)
    misfit = next(iter(found.values()))[focus].misfit
    reading = reading if misfit is None else f"{reading} {misfit}"
    return figures, [policies_table(scenario.name, focus, found, names)], reading


def chosen(kept: Mapping[str, Sequence[Advice]]) -> dict[str, Shown]:
    """Return the contexts to show, each with a letter: all or, of many, those for which agents differ most."""
    own = next(iter(kept.values()), ())
    alike = {agent: advice for agent, advice in kept.items() if len(advice) == len(own)}
    apart = [sum(distance(one, advice[i]) for advice in alike.values()) for i, one in enumerate(own)]
    places = sorted(sorted(range(len(own)), key=lambda i: -apart[i])[:SHOWN])
    return {
        letter: {agent: advice[i] for agent, advice in alike.items()} for letter, i in zip("ABC", places, strict=False)
    }


def distance(one: Advice, other: Advice) -> float:
    """Return the share of decisions in which two policies differ, as likely as `one` expects them."""
    return _share(one, 0.5 * np.abs(one.policy - other.policy).sum(axis=2))


def _share(advice: Advice, decisions: FloatArray) -> float:
    """Return the mean of `decisions` (K, N), each as likely as `advice` expects it."""
    # Where it does not say how likely a state is at a step, all are alike.
    likely = np.ones(decisions.shape) if advice.visits is None else advice.visits
    return float((likely * decisions).sum() / max(likely.sum(), 1e-300))


def described(context: Context, features: Sequence[str] = ()) -> str:
    """Return a context in words.

    >>> described({"age": 54, "sex": "f"}), described(np.array([0.25, -1.0]), ("age", "weight")), described("b")
    ('age 54, sex f', 'age 0.250, weight −1.00', 'b')
    """
    if isinstance(context, Mapping):
        entries = [f"{name} {_entry(value)}" for name, value in context.items()]
    else:
        values = list(context) if isinstance(context, (np.ndarray, tuple, list)) else [context]
        named = features if len(features) == len(values) else [""] * len(values)
        entries = [f"{name} {_entry(value)}".strip() for name, value in zip(named, values, strict=True)]
    return textwrap.shorten(", ".join(entries), LONGEST, placeholder=" …")


def _entry(value: Any) -> str:
    return number(float(value)) if isinstance(value, (float, np.floating)) else str(value)


def _caption(focus: str, shown: Shown, names: Names) -> str:
    """Return how sure the agent is, and how much the others differ from it."""
    own = shown[focus]
    sure = None if own.sure is None else _share(own, (own.sure >= SURE).astype(np.float64))
    apart = {agent: round(100.0 * distance(own, other)) for agent, other in shown.items() if agent != focus}
    differ = [f"{agent} in {share} %" for agent, share in apart.items() if share]
    context = described(own.context, names.features)
    return say("policy", focus=focus, context=context, sure=sure, differ=differ, others=len(apart))


def policies_table(name: str, focus: str, found: Mapping[str, Shown], names: Names) -> ReportTable:
    """Return the decisions of the agent in focus: a row for each context and state, at its most likely step."""
    rows = []
    for letter, each in found.items():
        own = each[focus]
        table = own.table(names.states, names.actions)
        records = table.to_dict("records")  # whole numbers stay whole
        for at in table["visits"].fillna(1.0).groupby(table["state"], sort=False).idxmax():
            differ = [agent for agent, other in each.items() if other.best.flat[at] != own.best.flat[at]]
            place = {"shown": letter, "context": described(own.context, names.features)}
            rows.append({**place, **records[at], "other_agents": ", ".join(differ)})
    return ReportTable(
        name=f"{name}-policies",
        caption=f"What {focus} would do, what would change it, and how sure it is",
        rows=rows,
        columns={
            "context": cell("shown"),
            "state": cell("state"),
            "step": cell("step"),
            "best action": cell("action"),
            "probability": cell("probability", percent),
            "next best": cell("runner_up"),
            "lead": cell("lead", number),
            "sure": cell("sure", percent),
            "agents that differ": lambda row: row["other_agents"] or "–",
        },
    )
