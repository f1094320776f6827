"""The figures of the league: ratios in every cell, regret against cost, and what late feedback does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from omg_cmdp.drawing import COLOURS, FAINT, INK
from omg_lab.reports.drawing import LINES, MARKERS, logarithmic

from .standings import geometric_mean, mean_regrets, ratios_to_the_best, standings

STYLE: dict[Any, Any] = {
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.constrained_layout.use": True,
    "font.size": 9.0,
    "savefig.facecolor": "white",
    "svg.fonttype": "none",
    "svg.hashsalt": "omg-cmdp",
    "text.color": INK,
    "text.parse_math": False,
}
MOST = 32.0
"""Ratios above are drawn as this one."""
NAMED, DRAWN = 5, 12
"""So many agents have their names in the figure of costs, besides those that nobody beats in both; so many lines are in
that of delays."""


def draw(rows: pd.DataFrame, folder: Path) -> list[Path]:
    """Draw all figures that the runs allow for, and return the files."""
    figures: dict[str, Figure] = {}
    with matplotlib.rc_context(STYLE):
        for league in rows["league"].unique():
            runs = rows[(rows["league"] == league) & (rows["delay"] == 0)]
            if len(runs):
                figures[f"league-{league}"] = _cells(runs)
                figures[f"league-{league}-cost"] = _costs(runs)
        if rows["delay"].max() > 0:
            figures["league-delay"] = _delays(rows)
        for name, figure in figures.items():
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None, "Creator": None})
    return [folder / f"{name}.svg" for name in figures]


def _new(width: float, height: float, panels: int = 1) -> tuple[Figure, Any]:
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    return figure, figure.subplots(1, panels, squeeze=False)[0]


def _cells(runs: pd.DataFrame) -> Figure:
    ratio = ratios_to_the_best(mean_regrets(runs))
    ratio = ratio[geometric_mean(ratio).sort_values().index]
    figure, [axes] = _new(2.5 + 0.24 * ratio.shape[1], 1.8 + 0.17 * len(ratio))
    shown = axes.imshow(np.log2(ratio.clip(upper=MOST)), cmap="cividis_r", aspect="auto", vmin=0, vmax=np.log2(MOST))
    axes.set_xticks(range(ratio.shape[1]), ratio.columns, rotation=90)
    axes.set_yticks(range(len(ratio)), [", ".join(cell) for cell in ratio.index])
    axes.set_facecolor("#eeeeee")  # did not play
    for row, column in zip(*np.nonzero((ratio == 1.0).to_numpy()), strict=True):
        axes.text(column, row, "●", ha="center", va="center", fontsize=6, color="#D55E00")
    bar = figure.colorbar(shown, ax=axes, shrink=0.5, ticks=range(6), label="regret over that of the best (●)")
    bar.ax.set_yticklabels(["1", "2", "4", "8", "16", f"≥ {MOST:.0f}"])
    return figure


def _costs(runs: pd.DataFrame) -> Figure:
    table = standings(runs)
    table = table[table["scenarios"] >= 0.5 * table["scenarios"].max()]
    figure, [axes] = _new(6.5, 4.2)
    axes.scatter(table["µs"], table["ratio, geometric mean"], color=COLOURS[0], s=18)
    front = table["µs"] <= table["µs"].cummin()  # the table is in order of regret
    named = table[front | (np.arange(len(table)) < NAMED)].sort_values("µs")
    for number, (agent, row) in enumerate(named.iterrows()):
        place, offset = (row["µs"], row["ratio, geometric mean"]), (4, 4 if number % 2 else -10)
        axes.annotate(str(agent), place, xytext=offset, textcoords="offset points", fontsize=8)
    axes.set(xscale="log", yscale="log", xlabel="own time of an episode (µs)", ylabel="regret over the best of a cell")
    logarithmic(axes.xaxis, axes.yaxis)
    return figure


def _delays(rows: pd.DataFrame) -> Figure:
    leagues = [league for league in rows["league"].unique() if rows[rows["league"] == league]["delay"].max() > 0]
    figure, panels = _new(5.5 * len(leagues), 4.0, len(leagues))
    for axes, league in zip(panels, leagues, strict=True):
        runs = rows[rows["league"] == league]
        delays = sorted(runs["delay"].unique())
        means = pd.DataFrame({d: _common(runs, d) for d in delays}).dropna().sort_values(delays[0]).head(DRAWN)
        for place, (agent, values) in enumerate(means.iterrows()):
            style = {"color": COLOURS[place % 6], "linestyle": LINES[place % 5], "marker": MARKERS[place % 7]}
            axes.plot(range(len(delays)), values, label=str(agent), markersize=4, linewidth=1.2, **style)
        axes.set_xticks(range(len(delays)), [str(d) for d in delays])
        axes.set(yscale="log", xlabel="delay (episodes)", ylabel="mean regret (geometric)", title=league)
        logarithmic(axes.yaxis)
        axes.legend(frameon=False, fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def _common(runs: pd.DataFrame, delay: int) -> pd.Series[float]:
    """Return the geometric mean of regrets over the cells that were played with every delay, of agents in all."""
    cells = [set(map(tuple, part[["world", "adversary"]].to_numpy())) for _, part in runs.groupby("delay")]
    common = sorted(set.intersection(*cells))
    regret = mean_regrets(runs[runs["delay"] == delay]).loc[common]
    return geometric_mean(regret.dropna(axis=1) + 1.0)
