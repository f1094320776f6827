"""The decisions of agents at the end: pictures of the policy for a few contexts, what would change it, how sure it is.

With more than three contexts, three are shown: the typical one, whose policy is nearest to the mean of all, and the two
for which the agents differ most; where they do not differ, those whose policies are farthest from the mean. The
distance of two policies is the share of decisions in which they differ, Σ d·½Σ|π - π'| / Σ d, where d says how likely a
state is at a step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.runs.advice import Advice
from omg_cmdp.runs.shown import Names
from omg_cmdp.validation import FloatArray
from omg_lab.reports.drawing import COLOURS, FAINT, INK, Figure, canvas, legend
from omg_lab.reports.formats import number
from omg_lab.reports.scenarios import AgentsInWorld
from omg_lab.reports.tables import ReportTable, cell
from omg_lab.reports.words import say
from omg_lab.studies.results import Policies

SHOWN = 3
SURE = 0.8
"""The picture has a question mark where a smaller share of the models agrees."""
SELDOM = 1e-3
"""A state that is less likely than this at a step is left out of the picture."""
MOST_ACTIONS = 5
"""Actions with a colour of their own; the others share one."""
FILLS = (*COLOURS[:MOST_ACTIONS], FAINT)
HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "")
LONGEST = 200
"""The most letters in the description of a context."""


class Shown(NamedTuple):
    """A context, why it is shown, and what each agent would do, the agent in focus first."""

    letter: str
    reason: str
    advice: Mapping[str, Advice]


def shown_policies(
    place: AgentsInWorld, policies: Mapping[str, Policies]
) -> tuple[list[Figure], list[ReportTable], str]:
    """Return a picture for each context that is shown, a table of all, and how to read them; nothing if none is kept.

    They are those of the first seed.
    """
    seed, focus = place.finals.index[0], place.focus
    runs = place.runs[place.runs["seed"] == seed].set_index("agent")["run"]
    kept = {agent: policies[runs[agent]] for agent in (focus, *place.rivals)}
    names, found = kept[focus].names, chosen({agent: each.advice for agent, each in kept.items()})
    if not found:
        return [], [], ""
    figures = [
        policy_figure(
            each.advice[focus],
            names.states,
            names.actions,
            name=f"{place.name}-policy-{each.letter.lower()}",
            title=f"Context {each.letter}" + (f": {each.reason}" if each.reason else ""),
            caption=_caption(focus, each, names),
        )
        for each in found
    ]
    reading = say("policies", focus=focus, episodes=place.episodes, seed=seed)
    return figures, [policies_table(place.name, focus, found, names)], reading


def chosen(kept: Mapping[str, Sequence[Advice]]) -> list[Shown]:
    """Return the contexts to show: all, or the typical one and those for which agents differ most."""
    own, *others = kept.values()
    alike = [advice for advice in others if len(advice) == len(own)]
    spread = [_spread(one, [other[i] for other in alike]) for i, one in enumerate(own)]
    places: list[tuple[int, str]]
    if len(own) <= SHOWN:
        places = [(i, "") for i in range(len(own))]
    else:
        mean = np.mean([one.policy for one in own], axis=0)
        away = [distance(one, mean) for one in own]
        typical = int(np.argmin(away))
        far = sorted(range(len(own)), key=lambda i: (-spread[i], -away[i]))
        reasons = ["where agents differ most" if each > 0.0 else "least typical" for each in spread]
        places = [(typical, "typical"), *((i, reasons[i]) for i in far if i != typical)][:SHOWN]
    return [
        Shown("ABC"[place], reason, {agent: advice[i] for agent, advice in kept.items() if len(advice) == len(own)})
        for place, (i, reason) in enumerate(places)
    ]


def distance(one: Advice, other: Advice | FloatArray) -> float:
    """Return the share of decisions in which two policies differ, as likely as `one` expects them."""
    theirs = other.policy if isinstance(other, Advice) else other
    apart = 0.5 * np.abs(one.policy - theirs).sum(axis=2)
    likely = _likely(one)
    return float((likely * apart).sum() / max(likely.sum(), 1e-300))


def _spread(own: Advice, others: Sequence[Advice]) -> float:
    """Return how far the others are from `own` on average; 0 where a caption says that they decide alike."""
    shares = [distance(own, other) for other in others]
    return float(np.mean(shares)) if any(round(100.0 * share) for share in shares) else 0.0


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
    text = ", ".join(entries)
    return text if len(text) <= LONGEST else f"{text[:LONGEST].rpartition(',')[0] or text[:LONGEST]}, …"


def _entry(value: Any) -> str:
    return number(float(value)) if isinstance(value, (float, np.floating)) else str(value)


def policy_figure(
    advice: Advice,
    state_names: Sequence[str] = (),
    action_names: Sequence[str] = (),
    *,
    title: str,
    caption: str = "",
    name: str = "policy",
) -> Figure:
    """Draw the policy: for each state a row of bars, one for each step, stacked by action."""
    states = [state_names[s] if state_names else f"state {s}" for s in advice.states]
    groups = _groups(advice.policy, action_names)
    rows, width = len(states), np.arange(len(advice.steps))
    often = _likely(advice) >= SELDOM
    with canvas(height=0.7 + 0.42 * rows) as (drawn, (axes,)):
        for row in range(rows):
            base = np.full(len(width), float(rows - 1 - row))
            for (label, actions), colour, hatch in zip(groups.items(), FILLS, HATCHES, strict=False):
                share = 0.8 * advice.policy[:, row, actions].sum(axis=1) * often[:, row]
                fill = {"facecolor": colour, "hatch": hatch, "edgecolor": INK, "linewidth": 0.0, "alpha": 0.75}
                axes.bar(width, share, 0.9, base, label=label if row == 0 else None, **fill)
                base += share
            for step in np.flatnonzero(often[:, row]):
                if advice.sure is not None and advice.sure[step, row] < SURE:
                    place = {"ha": "center", "va": "center", "fontsize": 12, "fontweight": "bold"}
                    axes.text(step, rows - 1 - row + 0.4, "?", **place)
        axes.set_yticks(np.arange(rows)[::-1] + 0.4, states)
        axes.set_xticks(width, [str(step + 1) for step in advice.steps])
        axes.set(xlabel="step", xlim=(-0.5, len(width) - 0.5), ylim=(-0.1, rows))
        axes.tick_params(length=0)
        axes.grid(visible=False)
        axes.spines[["left", "bottom"]].set_visible(False)
        legend(drawn, axes, columns=3)
    return Figure(name=name, title=title, caption=caption, canvas=drawn)


def _groups(policy: FloatArray, names: Sequence[str]) -> dict[str, list[int]]:
    """Return the actions that have a colour, by name: all, or the likeliest and "others"."""
    actions = policy.shape[2]
    label = list(names) or [f"action {a}" for a in range(actions)]
    if actions <= MOST_ACTIONS:
        return {label[a]: [a] for a in range(actions)}
    likely = np.argsort(-policy.sum(axis=(0, 1)), kind="stable")
    first = np.sort(likely[:MOST_ACTIONS]).tolist()
    return {**{label[a]: [a] for a in first}, "others": likely[MOST_ACTIONS:].tolist()}


def _caption(focus: str, shown: Shown, names: Names) -> str:
    """Return how sure the agent is, and how much the others differ from it."""
    own, sure = shown.advice[focus], None
    if own.sure is not None:
        likely = _likely(own)
        sure = float((likely * (own.sure >= SURE)).sum() / max(likely.sum(), 1e-300))
    apart = {agent: round(100.0 * distance(own, other)) for agent, other in shown.advice.items() if agent != focus}
    differ = [f"{agent} in {share} %" for agent, share in apart.items() if share]
    context = described(own.context, names.features)
    return say("policy", focus=focus, context=context, sure=sure, differ=differ, others=len(apart))


def policies_table(name: str, focus: str, found: Sequence[Shown], names: Names) -> ReportTable:
    """Return the decisions of the agent in focus: a row for each context and state, at its most likely step."""
    rows = []
    for each in found:
        own, context = each.advice[focus], described(each.advice[focus].context, names.features)
        table = own.table(names.states, names.actions)
        records = table.assign(place=range(len(table))).to_dict("records")
        for row in (
            records[place] for place in table["visits"].fillna(1.0).groupby(table["state"], sort=False).idxmax()
        ):
            place = divmod(row.pop("place"), len(own.states))
            rivals = {agent: other for agent, other in each.advice.items() if agent != focus}
            otherwise = [agent for agent, other in rivals.items() if other.best[place] != own.best[place]]
            rows.append({"shown": each.letter, "context": context, **row, "other_agents": ", ".join(otherwise)})
    return ReportTable(
        name=f"{name}-policies",
        caption=f"What {focus} would do, what would change it, and how sure it is",
        rows=rows,
        columns={
            "context": cell("shown"),
            "state": cell("state"),
            "step": lambda row: str(row["step"] + 1),
            "best action": cell("action"),
            "probability": cell("probability", percent),
            "next best": cell("runner_up"),
            "lead": cell("lead", number),
            "sure": cell("sure", percent),
            "agents that differ": lambda row: row["other_agents"] or "–",
        },
    )


def percent(share: float) -> str:
    """Return a share in per cent.

    >>> percent(0.256), percent(float("nan"))
    ('26 %', '–')
    """
    return "–" if np.isnan(share) else f"{100.0 * share:.0f} %"


def _likely(advice: Advice) -> FloatArray:
    """Return how likely each state is at each step; where that is unknown, all are alike."""
    return np.ones(advice.policy.shape[:2]) if advice.visits is None else advice.visits
