"""`python -m lab.benchmarks.page`: the league as a page of the guide, from the runs that `benchmarks.league` has kept.

Reads docs/league.csv, a row for each run, and writes docs/league.md with its figures. Every number of the page comes
from that table; `lab/tests/test_league.py` makes the page again and compares.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from omg_lab.reports.comparisons import Verdict, enough_seeds

from .grid import markdown
from .league_figures import draw
from .reservations import reservations
from .standings import (
    EPSILON,
    NEARLY_NOTHING,
    geometric_mean,
    mean_regrets,
    ratios_to_the_best,
    standings,
)

DOCS = Path(__file__).parents[2] / "docs"
TABLE, PAGE = DOCS / "league.csv", DOCS / "league.md"
OURS = "OMG"
SURE = 0.05
FEWEST_CELLS = 0.5
"""An agent is ranked if it plays at least this share of the cells."""
NAMES = {"finite": "Finite classes", "learned": "Learned tables"}
BEATEN = 1.5
"""Where the best of a cell is ahead of OMG by more than this factor, the page says why."""
REASONS: dict[str, str] = {
    "ACTG 175": "one policy is nearly as good for all patients, probably, and who is blind learns from all of them.",
    "arms 10": "with a constant of nearly nothing UCBVI-BF is optimism at the start, each arm once or twice, and then "
    "greedy, and so is RegCB. OMG goes back to arms while its posterior holds them possible.",
    "arms 50": "as with ten arms, and more of it.",
    "cliff": "greedy is optimistic by itself: its prior mean of ½ is above most rewards, as they are scaled.",
    "corridor": "optimism with a constant of nearly nothing walks on to the end, once; the draws of a posterior turn "
    "back now and then.",
    "deep sea": "nothing is random there, so that one visit of a pair is enough, and Rmax with m = 1 believes it. A "
    "prior of less than one pseudo-count in all would say the same.",
    "frozen lake": "a lake pays once, and OMG is not told; drawn models promise that it pays in every step. "
    "`return_range` is the next cell.",
    "frozen lake, one return": "the same way is good on all lakes, and who is blind learns from all of them.",
    "iris": "150 flowers, nearly separable: one look at each action, and then its fit, is enough.",
    "long decoy 20": "who looks into the good action early has lost 2 to 8 in all, and of many constants one does. "
    "With counts of one pair, OMG looks in about as often as it may be good.",
    "noisy room": "the good desk of a context looks bad at first, and OMG tries it as seldom as its draws call it "
    "best. On the worst seed with sorted contexts this was seen, in the last block; elsewhere most is lost in the "
    "first quarter of the episodes, probably for the same reason.",
    "treatment": "OMG has a table for each patient, as the oracle says; balls share theirs. With linear or softmax "
    "oracles OMG learns across patients, too.",
    "softmax": "much of it is one seed. Probably any path tells the functions of the class apart, so that nothing is "
    "lost by not exploring, and an offline fit learns faster than an online one.",
    "lock": "one lucky draw, played to its end, opens the lock.",
}
"""Why OMG is behind in a world, as far as we know, and what would change it."""
CELLS = """\
*Finite classes*: the worlds of the preset `league`, each with a finite class of functions that holds the truth; the
same oracles for all agents, at the guarded rate, or offline fits of the same classes. *Learned tables*: no class is
known.

| worlds | oracles |
| --- | --- |
| RiverSwim, DeepSea, the noisy room, the corridor, the treatment trial | counts, a table for each context |
| the noisy room with known rewards, a reduced ICU-Sepsis | known rewards, counts |
| the long decoy, H = 20 and 100; 10 and 50 arms | counts of rewards, known dynamics |
| linear and softmax worlds, also misspecified by .2 | `LinearRewards`, `SoftmaxDynamics` |
| ACTG 175 | known rewards, `SoftmaxDynamics` |
| FrozenLake, with and without `return_range` | `LinearRewards`, `BasisDynamics` |
| CliffWalking | counts |
| digits, iris, wine, breast cancer | `LinearRewards`, known dynamics |

Contexts are i.i.d., sorted in blocks, or *adaptive*: the one with the largest regret at that moment, of all contexts or
of three. A rival plays the cells that its paper allows for, and where an episode does not take it too long; the cells
are data, in `benchmarks/cells.py`. A world of one name is another one in every seed, where it has random parts."""
GROUPS: dict[str, str] = {
    "an episode is one decision": "horizon == 1",
    "episodes have several steps, and a class that holds the truth is known": "horizon > 1 and league == 'finite'",
    "episodes have several steps, and tables are learned": "horizon > 1 and league == 'learned'",
    "there are at most five contexts, and tables are learned": "contexts <= 5 and league == 'learned'",
    "contexts are independent draws": "adversary == 'iid'",
    "contexts come in blocks": "adversary == 'sorted'",
    "contexts may react to what you do": "adversary.str.startswith('adaptive')",
}
"""When somebody asks which agent to use: a condition in words, and as a query of the table."""


def add(runs: pd.DataFrame, league: str, delay: int, only: Sequence[str] | None = None) -> None:
    """Keep the runs of a league, in the place of earlier ones with the same delay; `only` those of these agents."""
    new = runs.assign(league=league, delay=delay)
    kept = pd.read_csv(TABLE, keep_default_na=False) if TABLE.exists() else new[:0]
    is_replaced = (kept["league"] == league) & (kept["delay"] == delay)
    if only:
        is_replaced &= kept["agent"].isin(only)
    rows = pd.concat([kept[~is_replaced], new])
    rows.sort_values(["league", "delay", "world", "adversary", "agent", "seed"]).to_csv(
        TABLE, index=False, float_format="%.4g"
    )


def page(rows: pd.DataFrame) -> str:
    """Return the page."""
    played = {name: rows[(rows["league"] == name) & (rows["delay"] == 0)] for name in NAMES}
    played = {name: part for name, part in played.items() if len(part)}
    chances = {name: _against_ours(part) for name, part in played.items()}
    parts = [_head(rows, played, chances), "## The cells", CELLS]
    for name, part in played.items():
        parts += [f"## {NAMES[name]}", *_league(name, part, chances[name])]
    parts += ["## Late feedback", *_delays(rows)]
    parts += ["## Which agent should I use?", *_rules(rows[rows["delay"] == 0])]
    return "\n\n".join(parts) + "\n"


def _head(rows: pd.DataFrame, played: Mapping[str, pd.DataFrame], chances: Mapping[str, Mapping[str, str]]) -> str:
    sentences = []
    for name, part in played.items():
        ranked = _ranked(part)
        first, second = ranked.index[:2]
        sentences.append(
            f"**{NAMES[name]}**, with these reservations: {first} is first, {ranked.iloc[0, 1]:.2f} times the best "
            f"regret of a cell in the geometric mean; {second} is second, {ranked.iloc[1, 1]:.2f}. "
            f"{_difference(chances[name], first, second)}"
        )
    agents, runs = rows["agent"].nunique(), len(rows)
    seeds = " and ".join(f"{part['seed'].nunique()} seeds of {NAMES[name].lower()}" for name, part in played.items())
    return "\n\n".join(
        [
            "# The league",
            reservations(rows),
            f"{agents} agents, {runs} runs, {seeds}. This page is made by `python -m lab.benchmarks.page` from "
            "[league.csv](league.csv), which `python -m lab.benchmarks.league` fills; every number below comes from "
            "there. A cell is a world with an adversary that chooses the contexts. The constant of a rival is chosen "
            "from a grid on other seeds; OMG's default has none. Ratios are to the best agent of the cell, one unit of "
            "regret added to both. What the agents are, what is proven of each, where that is tested, and what could "
            "not be confirmed at its source is in [the rivals](rivals.md#what-is-proven-and-where-it-is-tested).",
            *sentences,
        ]
    )


def _difference(chances: Mapping[str, str], first: str, second: str) -> str:
    """Say whether one of the first and the second is ahead on most worlds and seeds, if OMG is one of them."""
    if OURS not in (first, second):
        return ""
    is_sure = chances[second if first == OURS else first].startswith("**")
    shown = "is more than chance" if is_sure else "may be chance"
    return f"That one of the two is ahead on most worlds and seeds {shown}."


def _ranked(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the standings of agents that play enough cells to be ranked."""
    table = standings(runs)
    return table[table["scenarios"] >= FEWEST_CELLS * table["scenarios"].max()]


def _league(name: str, runs: pd.DataFrame, chance: Mapping[str, str]) -> Iterator[str]:
    table = standings(runs)
    greedy = table["µs"].get("greedy", np.nan)
    shown = pd.DataFrame(
        {
            "agent": table.index,
            "constant": table["constant"].to_numpy(),
            "geometric mean": table["ratio, geometric mean"].to_numpy(),
            "worst": table["worst ratio"].to_numpy(),
            "where": table["where"].to_numpy(),
            f"{OURS} over it": [chance.get(agent, "") for agent in table.index],
            "mistakes": table["mistakes"].astype(int).to_numpy(),
            "cost": (table["µs"] / greedy).round(1).to_numpy(),
            "late/early": (table["µs late"] / table["µs early"]).round(2).to_numpy(),
            "cells": table["scenarios"].to_numpy(),
        }
    )
    yield markdown(shown)
    yield (
        f"*{OURS} over it*: ratio of regrets, geometric mean over the worlds and seeds that both play; bold if one of "
        f"the two is ahead on most of these by more than chance (p ≤ {SURE}, corrected for all rivals, by the test "
        "of most seeds). "
        f"*Mistakes*: episodes that lose more than {EPSILON:g}, the mean over cells. *Cost*: its own time per episode, "
        "in units of greedy's. *Late/early*: its time in the last tenth of the episodes over that in the second."
    )
    yield f"![Ratios to the best agent in every cell](figures/league-{name}.svg)"
    yield f"![Regret against cost](figures/league-{name}-cost.svg)"
    yield from _winners(runs)


def _log_ratios(runs: pd.DataFrame) -> pd.DataFrame:
    """Return log (R of OMG + 1)/(R of a rival + 1): a row for each world and seed, the mean over adversaries."""
    regret = runs.pivot_table(index=["world", "adversary", "seed"], columns="agent", values="regret")
    logs = np.log(regret + NEARLY_NOTHING)
    return logs.rsub(logs[OURS], axis=0).drop(columns=OURS).groupby(["world", "seed"]).mean()


def _against_ours(runs: pd.DataFrame) -> dict[str, str]:
    """Return OMG's ratio to every rival, bold if one of the two is ahead on most worlds and seeds beyond chance."""
    logs = _log_ratios(runs).sort_index(level="seed")  # a test that looks after every seed sees all worlds early
    level = 1.0 - SURE / len(logs.columns)
    texts = {}
    for rival, each in logs.items():
        sure = enough_seeds(each.dropna(), level=level).verdict is not Verdict.UNDECIDED
        texts[str(rival)] = f"**{np.exp(each.mean()):.2f}**" if sure else f"{np.exp(each.mean()):.2f}"
    return texts


def _winners(runs: pd.DataFrame) -> Iterator[str]:
    regret = mean_regrets(runs)
    best = regret.idxmin(axis=1)
    seeds = runs.pivot_table(index=["world", "adversary", "seed"], columns="agent", values="regret")
    rows = []
    for cell, winner in best.items():
        ours, own, here = regret.loc[cell, OURS], regret.loc[cell, winner], seeds.loc[cell]
        ahead = f"{(here[winner] < here[OURS]).sum()} of {len(here)}" if winner != OURS else ""
        ratio = (ours + NEARLY_NOTHING) / (own + NEARLY_NOTHING)
        rows.append([*cell, winner, f"{own:.1f}", f"{ours:.1f}", f"{ratio:.2f}", ahead])
    names = ["world", "adversary", "best", "its regret", f"{OURS}'s", "ratio", "seeds on which it is ahead"]
    frame = pd.DataFrame(rows, columns=names)
    counts = best.value_counts()
    yield from _beaten(frame)
    yield "Who wins where: " + ", ".join(f"{agent} {count}" for agent, count in counts.items()) + "."
    yield markdown(frame)


def _beaten(cells: pd.DataFrame) -> Iterator[str]:
    """Say where OMG is behind, and why."""
    behind = cells[cells["ratio"].astype(float) > BEATEN]
    if not len(behind):
        yield f"Nowhere is an agent ahead of {OURS} by more than {BEATEN:g} times."
        return
    yield f"Another agent is ahead of {OURS} by more than {BEATEN:g} times in {len(behind)} of {len(cells)} cells:"
    yield "\n".join(
        f"- **{world}** ({', '.join(part['adversary'] + ': ' + part['best'] + ', ' + part['ratio'] + ' times')}): "
        f"{REASONS.get(str(world), 'we do not know why.')}"
        for world, part in behind.groupby("world", sort=False)
    )


def _delays(rows: pd.DataFrame) -> Iterator[str]:
    late = sorted(set(rows["delay"]) - {0})
    if not late:
        yield "Not measured yet."
        return
    yield (
        "Feedback of an episode arrives d episodes later, and the constants are those that were chosen without delay. "
        f"*Added* is the regret of {OURS} with delay minus that without, over 2d times the regret of its first "
        "episode, in the worst cell. At most 1 is what one hopes for, and nobody can promise: "
        "[k things that are learned one after another](tutorials/late-feedback.md) cost k·d. Places are with the "
        "reservations at the top of the page."
    )
    table = []
    for league in NAMES:
        for delay in late:
            runs = rows[(rows["league"] == league) & (rows["delay"] == delay)]
            if not len(runs):
                continue
            ranked, added = _ranked(runs), _added(rows, league, delay)
            place = list(ranked.index).index(OURS) + 1
            table.append(
                [
                    NAMES[league],
                    delay,
                    runs["seed"].nunique(),
                    f"{ranked.loc[OURS, 'ratio, geometric mean']:.2f}",
                    place,
                    ranked.index[0] if place > 1 else ranked.index[1],
                    f"{ranked.loc[OURS, 'worst ratio']:.1f}",
                    f"{added.max():.2f}",
                    ", ".join(added.idxmax()),
                    f"{(added > 1).sum()} of {len(added)}",
                ]
            )
    columns = [
        "league",
        "d",
        "seeds",
        f"{OURS}, geometric mean",
        "place",
        "best other",
        "worst",
        "added",
        "where",
        "above 1",
    ]
    yield markdown(pd.DataFrame(table, columns=columns))
    yield "![The league with late feedback](figures/league-delay.svg)"


def _added(rows: pd.DataFrame, league: str, delay: int) -> pd.Series[float]:
    """Return by how much a delay adds to the regret of OMG in every cell, in units of 2d first episodes."""
    own = rows[(rows["league"] == league) & (rows["agent"] == OURS)]
    cells = ["world", "adversary", "seed"]
    both = own[own["delay"] == delay].merge(own[own["delay"] == 0], on=cells, suffixes=("", " before"))
    means = both.groupby(cells[:2], sort=False)[["regret", "regret before", "first"]].mean()
    return (means["regret"] - means["regret before"]) / (2 * delay * means["first"].clip(lower=1e-9))


def _rules(rows: pd.DataFrame) -> Iterator[str]:
    yield (
        "By rule, from the tables above: in the cells for which a condition holds, the agents with the smallest "
        "geometric mean of ratios, among those that play at least half of them. With the reservations at the top of "
        "the page: a hint what to try, and no proof that it is the best. More in [which agent](which-agent.md)."
    )
    table = []
    for words, query in GROUPS.items():
        runs = rows.query(query, engine="python")
        if not len(runs):
            continue
        regret = mean_regrets(runs.assign(world=runs["league"] + " " + runs["world"]))
        enough = regret.count() >= FEWEST_CELLS * len(regret)
        means = geometric_mean(ratios_to_the_best(regret))[enough].sort_values()
        listed = ", ".join(f"{agent} {value:.2f}" for agent, value in means.head(3).items())
        table.append([f"If {words}", means.index[0], listed, len(regret)])
    yield markdown(pd.DataFrame(table, columns=["", "try", "ratios", "cells"]))


def main() -> None:
    """Write the page and its figures."""
    rows = pd.read_csv(TABLE, keep_default_na=False)
    PAGE.write_text(page(rows), encoding="utf-8")
    for path in draw(rows, DOCS / "figures"):
        print(path)


if __name__ == "__main__":
    main()
