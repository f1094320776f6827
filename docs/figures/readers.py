"""Diagrams of the home page, one for each reader: boxes and arrows on a canvas of 100 by 32 units."""

from __future__ import annotations

from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from omg_cmdp.drawing import COLOURS, FAINT, INK

BLUE, RED, GREEN, _, YELLOW, SKY = COLOURS
Point = tuple[float, float]


def reader_library() -> Figure:
    """Context, oracles, plan, episode, and back."""
    drawn, axes = _canvas()
    _box(axes, (1, 11), 17, "context", "a patient, a visitor,\na machine", INK)
    _box(axes, (26, 11), 21, "two oracles", "predict rewards and\ntransitions for it", GREEN)
    _box(axes, (55, 11), 19, "planner", "a policy, with a\nproven certificate", BLUE)
    _box(axes, (82, 11), 17, "episode", "you play\nup to H steps", RED)
    for tail, head in ((18.5, 25.5), (47.5, 54.5), (74.5, 81.5)):
        _arrow(axes, (tail, 18), (head, 18))
    _arrow(axes, (90, 10.5), (37, 10.5), curve=-0.28)
    axes.text(63.5, 0.2, "update: learn from what you saw", ha="center", va="bottom", color=INK)
    return drawn


def reader_lab() -> Figure:
    """A study file, its runs, and what is made of them."""
    drawn, axes = _canvas()
    _box(axes, (1, 9), 24, "study.toml", "worlds × adversaries\n× agents × seeds", INK, height=17)
    _box(axes, (36, 9), 24, "runs", "exact regret, resumable,\nthe same to the bit", BLUE, height=17)
    for y, title, text, colour in (
        (22.5, "report", "who lost least; is it chance?", GREEN),
        (12.5, "audit", "does every lemma hold?", RED),
        (2.5, "league", "every rival, equally tuned", YELLOW),
    ):
        _box(axes, (71, y), 28, title, text, colour, height=7.5)
        _arrow(axes, (60.5, 17.5), (70.5, y + 3.75))
    _arrow(axes, (25.5, 17.5), (35.5, 17.5))
    return drawn


def reader_trial() -> Figure:
    """App, service, log; the model and the analysis are computed from the log."""
    drawn, axes = _canvas()
    _box(axes, (1, 11), 17, "app", "asks what to do\nfor a person now", INK)
    _box(axes, (35, 11), 21, "service", "decides once, with\nan exact probability", BLUE)
    _box(axes, (73, 20.5), 26, "log", "append-only, chained", RED, height=9)
    _box(axes, (73, 2.5), 26, "replay and export", "to the bit; one table", GREEN, height=9)
    _arrow(axes, (18.5, 20.5), (34.5, 20.5))
    _arrow(axes, (34.5, 15.5), (18.5, 15.5))
    axes.text(26.5, 21.8, "context, state", ha="center", color=INK)
    axes.text(26.5, 12.2, "action", ha="center", color=INK)
    _arrow(axes, (56.5, 20.0), (72.5, 27.0))
    _arrow(axes, (72.5, 22.5), (56.5, 15.5))
    axes.text(62.8, 25.8, "events", ha="right", color=INK)
    axes.text(67.0, 16.4, "model", ha="left", color=INK)
    _arrow(axes, (86, 20.0), (86, 12.0))
    return drawn


def _canvas() -> tuple[Figure, Any]:
    drawn = Figure(figsize=(7.0, 2.3))
    FigureCanvasAgg(drawn)
    axes = drawn.subplots()
    axes.set(xlim=(0, 100), ylim=(0, 32))
    axes.axis("off")
    return drawn, axes


def _box(axes: Any, corner: Point, width: float, title: str, text: str, colour: str, *, height: float = 14.0) -> None:
    shape = FancyBboxPatch(corner, width, height, boxstyle="round,pad=0,rounding_size=1.2", mutation_aspect=1.4)
    shape.set(facecolor="white", edgecolor=colour, linewidth=2.0)
    axes.add_patch(shape)
    middle, lines = corner[0] + width / 2.0, text.count("\n") + 1
    top = corner[1] + height / 2.0 + 1.5 * lines
    axes.text(middle, top, title, ha="center", va="center", color=INK, weight="bold")
    axes.text(middle, top - 1.5 - 1.5 * lines, text, ha="center", va="center", color=INK, fontsize=7.5)


def _arrow(axes: Any, tail: Point, head: Point, *, curve: float = 0.0) -> None:
    style = {"arrowstyle": "-|>", "mutation_scale": 10.0, "connectionstyle": f"arc3,rad={curve}"}
    axes.add_patch(FancyArrowPatch(tail, head, color=FAINT, linewidth=1.5, shrinkA=0.0, shrinkB=0.0, **style))
