"""The look of figures, and their conversion to SVG for a page and PDF for a paper.

A figure is as wide as a printed column or a phone: 9-point text stays readable at 400 pixels, and a wide screen shows
three side by side. The colours are those of Okabe and Ito, which colour-blind readers can tell apart; every curve also
has its own line style and marker. The ink of axes and text becomes `currentColor` in SVG, so that dark mode draws them
light.
"""

from __future__ import annotations

import contextlib
import dataclasses
import html
import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.drawing import COLOURS, INK, figure_class
from omg_cmdp.persistence import whole_file
from omg_lab.reports.formats import power

LINES = ("-", (0, (5, 1.5)), (0, (5, 1.5, 1, 1.5)), (0, (1, 1)), (0, (8, 2, 1, 2, 1, 2)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
POINTS = 400
"""The most points that a curve is drawn through."""
WIDTH, HEIGHT = 4.0, 2.8
"""The size of a figure in inches."""

_STYLE = Path(__file__).with_name("templates") / "report.mplstyle"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Figure:
    """A picture with its words."""

    name: str
    """The name of its files."""
    title: str
    caption: str
    """A description of what it shows."""
    canvas: Any
    """The figure of matplotlib."""

    def svg(self) -> str:
        """Return the picture for a page: no prologue, no links, unique ids; the same bytes for the same data."""
        with styled(f"omg-lab {self.name}"), io.StringIO() as file:
            self.canvas.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
            return _inline(file.getvalue(), self.name, self.title)

    def save(self, directory: Path) -> Path:
        """Write the picture as PDF, and return its path."""
        path = directory / f"{self.name}.pdf"
        with styled(self.name), whole_file(path) as temporary:
            self.canvas.savefig(temporary, format="pdf", metadata={"CreationDate": None, "Title": self.title})
        return path


def looks(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return options of `plot` for every name; the first stands out, and no two of the first 210 are alike."""
    return {
        name: {
            "color": COLOURS[i % len(COLOURS)],
            "linestyle": LINES[i % len(LINES)],
            "marker": MARKERS[i % len(MARKERS)],
            "markevery": 0.25,  # of the picture's diagonal, however many points there are
            "linewidth": 1.4 if i else 2.2,
            "zorder": 2.0 if i else 2.5,
        }
        for i, name in enumerate(names)
    }


@contextlib.contextmanager
def styled(salt: str) -> Iterator[None]:
    """Draw and write in the style of a report; `salt` decides the ids in an SVG."""
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": salt}, _STYLE):
        yield


@contextlib.contextmanager
def canvas(height: float = HEIGHT) -> Iterator[tuple[Any, Any]]:
    """Yield a figure of matplotlib and its axes; no window, no global state."""
    with styled("omg-lab"):
        drawn = figure_class()(figsize=(WIDTH, height))
        yield drawn, drawn.subplots()
        drawn.draw_without_rendering()  # fixes the layout, once for all formats
        drawn.set_layout_engine("none")


def logarithmic(*axes: Any) -> None:
    """Make axes (of x or of y) logarithmic, with ticks in plain numbers."""
    for axis in axes:
        if not axis.get_data_interval()[1] > 0.0:  # nothing was drawn, or only zeros
            continue
        axis.axes.set(**{f"{axis.axis_name}scale": "log"})
        axis.set_major_formatter(power)
        axis.set_minor_formatter("")


def legend(drawn: Any, axes: Any, *, columns: int = 2, title: str | None = None) -> None:
    """Put the legend below the axes, and make the figure taller to fit it."""
    handles, labels = axes.get_legend_handles_labels()
    rows = -(-len(labels) // columns) + (title is not None)
    drawn.set_figheight(drawn.get_figheight() + 0.18 * rows)
    options = {"loc": "outside lower left", "ncols": columns, "title": title, "alignment": "left"}
    drawn.legend(handles, labels, **options, handlelength=3.2, columnspacing=1.0, labelspacing=0.3, fontsize=8.5)


def thinned(count: int, *, geometric: bool = False) -> NDArray[np.int64]:
    """Return the indices of at most `POINTS` of `count` points, among them the first and the last."""
    if count <= POINTS:
        return np.arange(count)
    spaced = np.geomspace(1, count, POINTS) - 1.0 if geometric else np.linspace(0, count - 1, POINTS)
    return np.unique(spaced.round().astype(np.int64))


def _inline(text: str, name: str, title: str) -> str:
    """Return only the <svg> element, for a page that has others too."""
    body = text[text.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r"<!--.*?-->\s*", "", body)
    body = body.replace("xlink:href", "href").replace(INK, "currentColor").replace("DejaVu Sans", "system-ui")
    body = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", body)
    body = re.sub(r"(\d\.\d\d)\d+", r"\1", body)  # a hundredth of a point is enough
    view = re.search(r'viewBox="[\d. ]* ([\d.]+) [\d.]+"', body)
    width = float(view[1]) if view else 0.0
    # A wide figure scrolls by itself, rather than become too small to read.
    least = f' style="min-width: {1.06 * width:.0f}px"' if width > 72.0 * WIDTH else ""
    opening = f'<svg {view[0] if view else ""}{least} role="img" aria-labelledby="{name}-title">'
    return f'{opening}<title id="{name}-title">{html.escape(title)}</title>' + body[body.index(">") + 1 :].strip()
