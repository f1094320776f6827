"""The picture of the league: OMG's regret over that of every rival, from docs/league.csv."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from lab.league.page import TABLE, rivals
from lab.league.statistics import FEWEST
from omg_cmdp.drawing import COLOURS, FAINT, INK

LOOKS: dict[str, tuple[str, str, str]] = {
    "better": (COLOURS[0], "o", COLOURS[0]),
    "no difference shown": (INK, "o", "white"),
    "worse": (COLOURS[1], "D", COLOURS[1]),
}
"""Colour, marker and filling for what is said of OMG beside a rival."""

TICKS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0)


def league() -> Figure:
    """One line for each rival: the ratio with its interval; left of 1 OMG loses less."""
    found = rivals(pd.read_csv(TABLE))
    found = found[found["families"] >= FEWEST]
    drawn = Figure(figsize=(7.0, 0.9 + 0.24 * len(found)))
    FigureCanvasAgg(drawn)
    axes: Any = drawn.subplots()
    places = np.arange(len(found))
    for verdict, (colour, marker, filling) in LOOKS.items():
        chosen = (found["verdict"] == verdict).to_numpy()
        if chosen.any():
            part, style = np.exp(found.loc[chosen, ["difference", "low", "high"]]), {"color": colour}
            axes.hlines(places[chosen], part["low"], part["high"], **style, linewidth=1.5)
            axes.plot(
                part["difference"], places[chosen], marker, **style, markerfacecolor=filling, label=f"OMG: {verdict}"
            )
    axes.axvline(1.0, color=FAINT, zorder=0)
    shown = axes.get_xlim()
    axes.set_xscale("log")
    axes.set_xticks(TICKS, [f"{tick:g}" for tick in TICKS])
    axes.set_xticks([], minor=True)
    axes.set_xlim(shown)
    axes.set_yticks(places, found.index)
    axes.invert_yaxis()
    axes.set_xlabel("OMG's regret over the rival's, 24 test families (left of 1: OMG loses less)")
    axes.legend(loc="upper center", bbox_to_anchor=(0.4, 1.16), ncols=3)
    return drawn
