"""The page of the league: docs/league.csv from the runs, and from that what docs/league.md says between its marks."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from .entries import OURS
from .play import Game, peak_memory, play
from .statistics import FEWEST, comparisons, disasters, log_regrets, sensitivity

DOCS = Path(__file__).parents[2] / "docs"
PAGE, TABLE, MEMORY = DOCS / "league.md", DOCS / "league.csv", DOCS / "league-memory.csv"
BEGIN, END = "<!-- what follows is written by `python -m lab.league page` -->", "<!-- until here -->"
PICTURE = "![OMG's regret over that of every rival, with intervals; left of 1 OMG loses less.](figures/league.svg)"
PUBLISHED = ", as published"
"""What the name of an agent with the constant of its paper ends with."""
MEASURED = ("dense", "small gaps", "known class")
"""Memory is measured in the first of these families that an agent plays in."""
UNDECIDED = ("VIDS",)
"""Rivals from which the first play showed no difference: a lead in a second one, with other numbers, proves none."""
COLUMNS = ["agent", "family", "order", "delay", "seed", "regret", "early", "seconds", "constant", "at_end"]
ASKED = ("greedy", "ε-greedy", "posterior sampling", "UCBVI", "UCBVI-BF", "MVP", "VIDS", "regularised IDS")
"""The rivals than which OMG is to be better, by the goals of the protocol."""


def store(runs: pd.DataFrame, constants: dict[str, tuple[float, bool]]) -> pd.DataFrame:
    """Return the table of docs/league.csv: one row for each run, results to four digits, constants whole."""
    chosen = runs["agent"].map({name: constant for name, (constant, _) in constants.items()})
    own = chosen.isna() | (runs["constant"] == chosen)
    at_end = runs["agent"].map({name: at_end for name, (_, at_end) in constants.items()}).eq(True) & own
    table = runs.assign(agent=runs["agent"].where(own, runs["agent"] + PUBLISHED), at_end=at_end)[COLUMNS]
    return table.assign(**{name: table[name].map(four_digits) for name in ("regret", "early", "seconds")})


def four_digits(number: float) -> float:
    """Return a number as the table has it."""
    return float(f"{number:.4g}")


def replayed(table: pd.DataFrame, *, count: int, seed: int) -> list[str]:
    """Play some rows of the table again, drawn from a seed; return what comes out otherwise, in words.

    Rows that took longer than ten seconds are not drawn.
    """
    wrong = []
    for row in table[table["seconds"] < 10.0].sample(count, random_state=seed).to_dict("records"):
        constant = None if math.isnan(row["constant"]) else row["constant"]
        agent = row["agent"].removesuffix(PUBLISHED)
        game = Game(row["family"], agent, constant, row["seed"], row["order"], row["delay"])
        found = four_digits(play(game)["regret"])
        if found != row["regret"]:
            wrong.append(f"{game}: {found}, and {row['regret']} in the table")
    return wrong


def measured(table: pd.DataFrame) -> pd.DataFrame:
    """Play each agent once, with its constant of the table; return the family and the peak of memory, in MiB."""
    first, rows = first_season(table), []
    for name, runs in first.groupby("agent", sort=False):
        family = next(each for each in MEASURED if each in set(runs["family"]))
        run = runs[runs["family"] == family].iloc[0]
        constant = None if math.isnan(run["constant"]) else run["constant"]
        rows.append((name, family, peak_memory(Game(family, str(name), constant, run["seed"]))))
    return pd.DataFrame(rows, columns=["agent", "family", "mebibytes"]).round(2)


def write(page: Path, table: pd.DataFrame, *, commit: str, missing: int) -> None:
    """Write what follows from the table between the marks of the page."""
    before, after = page.read_text().split(BEGIN)[0], page.read_text().split(END)[1]
    state = f"{len(table)} runs, played with the code of commit `{commit[:10]}`."
    if missing:
        state += f" **Not finished**: {missing} runs are missing, and every sentence below is of those that are there."
    page.write_text(f"{before}{BEGIN}\n\n{state}\n\n{PICTURE}\n\n{text(table)}\n{END}{after}")


def first_season(table: pd.DataFrame) -> pd.DataFrame:
    """Return the runs by which agents are ranked: i.i.d. contexts without delay, tuned constants."""
    first = (table["order"] == "i.i.d.") & (table["delay"] == 0) & ~table["agent"].str.endswith(PUBLISHED)
    return table[first]


def rivals(table: pd.DataFrame) -> pd.DataFrame:
    """Return OMG beside every rival of the first season, greedy first, then as their regrets are."""
    first = first_season(table)
    found = _compared(first[first["agent"] != "uniform"])
    order = sorted(found.index, key=lambda name: (name != "greedy", -found.loc[name, "difference"]))
    return found.loc[order]


def _compared(runs: pd.DataFrame) -> pd.DataFrame:
    """Return OMG beside every rival, with what the first play allows to say."""
    found = comparisons(runs, OURS)
    undecided = found.index.isin(UNDECIDED) & (found["verdict"] == "better")
    return found.assign(verdict=found["verdict"].mask(undecided, "no difference shown"))


def text(table: pd.DataFrame) -> str:
    """Return what is concluded, in Markdown."""
    first, found = first_season(table), rivals(table)
    tested = found[found["families"] >= FEWEST]
    agents = _agents(first)
    parts = [
        "## Goals, and whether they are met",
        _markdown(_goals(first, found, agents), named=False),
        "## OMG and every rival",
        _in_words(tested),
        _markdown(_ratios(tested).assign(verdict=tested["verdict"])),
        "## Every agent",
        _markdown(agents.assign(**{"memory, MiB": _memory().reindex(agents.index)})),
        "## Other orders, and feedback 50 episodes late",
        _markdown(_seasons(table, tested.index)),
        "## Other ways to count",
        _markdown(np.exp(sensitivity(first, OURS, list(tested.index))).round(2)),
        "## Agents of few families, and constants of papers",
        _markdown(_ratios(_apart(table, found))),
        "## The families",
        _markdown(_families(first)),
    ]
    return "\n\n".join(parts) + "\n"


def _markdown(table: pd.DataFrame, *, named: bool = True) -> str:
    rows = table.reset_index(names="") if named else table
    lines = [list(rows.columns), ["---"] * rows.shape[1], *rows.astype(object).fillna("").to_numpy().tolist()]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def _ratios(found: pd.DataFrame) -> pd.DataFrame:
    """Return "OMG's regret over the rival's" with its interval, the families, and p."""
    ratios = np.exp(found[["difference", "low", "high"]])
    return pd.DataFrame(
        {
            "OMG over it": ratios["difference"].map("{:.2f}".format),
            "95 %": [f"{low:.2f} to {high:.2f}" for low, high in ratios[["low", "high"]].to_numpy()],
            "families": found["families"],
            "p, corrected": found["p, Holm"].map(lambda p: f"{p:.2g}" if p == p else ""),
        }
    )


def _in_words(tested: pd.DataFrame) -> str:
    """Return sentences: than which rivals OMG is better, from which no difference is shown, than which it is worse."""
    said = {
        "better": "OMG is better than",
        "no difference shown": "No difference is shown from",
        "worse": "It is worse than",
    }
    lines = []
    for verdict, words in said.items():
        names = list(tested.index[tested["verdict"] == verdict])
        if names:
            lines.append(f"- {words} {', '.join(names)}.")
    return "\n".join(lines)


def _agents(first: pd.DataFrame) -> pd.DataFrame:
    """Return each agent's constant, the geometric mean of its regrets + 1, and what is not the mean."""
    everywhere = first["family"].nunique()
    logs, bad, agents = log_regrets(first), disasters(first), first.groupby("agent", sort=False)
    seconds = first.pivot_table(index=["family", "seed"], columns="agent", values="seconds")
    played = seconds.notna()
    constants, ends = agents["constant"].first(), agents["at_end"].first()
    shown = {name: f"{constants[name]:.3g}" + " (end)" * bool(ends[name]) for name in constants.dropna().index}
    table = pd.DataFrame(
        {
            "constant": pd.Series(shown, dtype=object),
            "families": logs.notna().sum(),
            "mean of L": logs.mean().round(3),
            "worst family": bad["worst family"].map("{:.1f}: ".format) + bad["where"],
            "worst seeds": bad["worst tenth"].round(2),
            "first 100 episodes": _early(first).round(2),
            "time over greedy's": (seconds.sum() / played.mul(seconds["greedy"], axis=0).sum()).round(1),
        }
    )
    whole = table["families"] == everywhere
    return pd.concat([table[whole].sort_values("mean of L"), table[~whole].sort_values("mean of L")])


def _memory() -> pd.Series[str]:
    """Return the peak of memory of each agent that was measured, with the family where that is not the first."""
    kept = pd.read_csv(MEMORY, index_col="agent")
    elsewhere = kept["family"].where(kept["family"] == MEASURED[0], ": " + kept["family"]).replace(MEASURED[0], "")
    return kept["mebibytes"].map("{:.2f}".format) + elsewhere


def _early(first: pd.DataFrame) -> pd.Series[float]:
    """Return the mean of L of the first hundred episodes."""
    return log_regrets(first.assign(regret=first["early"])).mean()


def _goals(first: pd.DataFrame, found: pd.DataFrame, agents: pd.DataFrame) -> pd.DataFrame:
    whole = agents[agents["families"] == first["family"].nunique()]
    least, worst = whole["mean of L"].idxmin(), disasters(first)
    seeds = whole["worst seeds"].astype(float)
    rows: list[tuple[str, bool, str]] = [
        ("the least mean of L of all agents that play everywhere", least == OURS, f"{least} has the least")
    ]
    for name in ASKED:
        if name in found.index:
            verdict, ratio = found.loc[name, "verdict"], np.exp(found.loc[name, "difference"])
            rows.append((f"better than {name}", verdict == "better", f"{verdict}, OMG over it {ratio:.2f}"))
    ratio, where = worst.loc[OURS, ["worst family", "where"]]
    rows.append(("the worst family at most 2.5 times the best agent there", ratio <= 2.5, f"{ratio:.1f}: {where}"))
    rows.append(
        (
            "the worst tenth of seeds at most any other agent's",
            seeds.idxmin() == OURS,
            f"{seeds.idxmin()} has the least",
        )
    )
    return pd.DataFrame(
        [(goal, "met" if met else "**not met**", said) for goal, met, said in rows], columns=["goal", "", "found"]
    )


def _seasons(table: pd.DataFrame, names: Iterable[str]) -> pd.DataFrame:
    """Return OMG's regret over each rival's in every season, with the verdict of that season."""
    columns = {}
    for (order, delay), part in table[~table["agent"].str.endswith(PUBLISHED)].groupby(["order", "delay"], sort=False):
        found = _compared(part[part["agent"].isin([OURS, *names])])
        said = found["verdict"].map({"no difference shown": ""}).fillna(", " + found["verdict"])
        columns[f"{order}, {delay} late" if delay else str(order)] = (
            np.exp(found["difference"]).map("{:.2f}".format) + said
        )
    return pd.DataFrame(columns).reindex(list(names))


def _apart(table: pd.DataFrame, found: pd.DataFrame) -> pd.DataFrame:
    """Return OMG beside agents that play in few families, and beside those with the constants of their papers."""
    first = table[(table["order"] == "i.i.d.") & (table["delay"] == 0)]
    names = [name for name in first["agent"].unique() if name.endswith(PUBLISHED)]
    published = comparisons(first[first["agent"].isin([OURS, *names])], OURS)
    return pd.concat([found[found["families"] < FEWEST], published]).assign(**{"p, Holm": np.nan})


def _families(first: pd.DataFrame) -> pd.DataFrame:
    regret = first.groupby(["family", "agent"], sort=False)["regret"].mean().unstack()
    best = regret.idxmin(axis=1)
    return pd.DataFrame(
        {
            "OMG": regret[OURS].map("{:.3g}".format),
            "greedy": regret["greedy"].map("{:.3g}".format),
            "uniform": regret["uniform"].map("{:.3g}".format),
            "the best": [f"{regret.loc[family, name]:.3g}: {name}" for family, name in best.items()],
        }
    )
