"""The figure of `scaling`: three panels, log-log, planner and peer, with the fitted power laws."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

NAMES = {"S": "number of states S", "A": "number of actions A", "H": "horizon H"}
# Blue and vermilion of Okabe and Ito: told apart by colour-blind readers; the markers differ too, for print in grey.
STYLES = {"plan": ("#0072B2", "o", "omg-cmdp"), "peer": ("#D55E00", "s", "cvxpy + Clarabel (QDLDL)")}


def draw(sweeps: Mapping[str, Mapping[str, Any]], base: Mapping[str, int], folder: Path) -> list[Path]:
    """Draw `sweeps` (axis to points and fits) and return the files written, as SVG and PNG."""
    import matplotlib  # takes a second to import

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    figure, panels = plt.subplots(1, len(sweeps), figsize=(11, 4), sharey=True, layout="constrained")
    for panel, (axis, sweep) in zip(panels, sweeps.items(), strict=True):
        _panel(panel, axis, sweep)
        fixed = ", ".join(f"{name} = {value}" for name, value in base.items() if name != axis)
        panel.set_title(fixed, fontsize=10)
    panels[0].set_ylabel("time of one plan (s)")
    handles, _ = panels[0].get_legend_handles_labels()
    handles.append(Line2D([], [], color="black", linestyle=(0, (4, 3)), label="power law, upper half of the range"))
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles), frameon=False)
    folder.mkdir(exist_ok=True)
    paths = [folder / "scaling.svg", folder / "scaling.png"]
    for path in paths:
        figure.savefig(path, dpi=150)
    plt.close(figure)
    return paths


def _panel(panel: Any, axis: str, sweep: Mapping[str, Any]) -> None:
    for side, (colour, marker, label) in STYLES.items():
        known = [point for point in sweep["points"] if point[side] is not None]
        sizes, times = [point[axis] for point in known], [point[side] for point in known]
        panel.loglog(sizes, times, color=colour, marker=marker, markersize=5, linewidth=1.2, label=label)
        fit = sweep["fits"][side]
        panel.loglog(fit["sizes"], fit["times"], color="black", linestyle=(0, (4, 3)), linewidth=1.2, zorder=3)
        # Above the peer and below ours: no curve comes near there.
        above = side == "peer"
        panel.annotate(
            f"$\\propto {axis}^{{{fit['exponent']:.2f}}}$",
            (fit["sizes"][1], fit["times"][1]),
            xytext=(0, 10 if above else -10),
            textcoords="offset points",
            color=colour,
            ha="right" if above else "left",
            va="bottom" if above else "top",
        )
    ticks = [point[axis] for point in sweep["points"]][:: 1 if len(sweep["points"]) < 8 else 3]
    panel.set_xticks(ticks, [str(tick) for tick in ticks])
    panel.minorticks_off()
    panel.set_xlabel(NAMES[axis])
    panel.grid(visible=True, which="major", color="#dddddd", linewidth=0.6)
    panel.spines[["top", "right"]].set_visible(False)
