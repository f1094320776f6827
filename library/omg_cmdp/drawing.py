"""Figures of matplotlib, which is imported with the first of them: no window, no global state."""

from __future__ import annotations

import contextlib
import functools
import io
from collections.abc import Iterator
from typing import Any

INK, FAINT = "#1c2126", "#8b929a"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""The colours of Okabe and Ito, which colour-blind readers can tell apart."""
STYLE: dict[Any, Any] = {
    **{"figure.facecolor": "white", "axes.facecolor": "white", "figure.dpi": 120, "savefig.dpi": 160},
    **{"font.size": 9.0, "axes.titlesize": 9.5, "axes.titlelocation": "left", "axes.labelsize": 9.0},
    **{"axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": FAINT, "axes.linewidth": 0.8},
    **{"text.color": INK, "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK},
    **{"axes.grid": True, "axes.axisbelow": True, "grid.color": "#e4e7ea", "grid.linewidth": 0.7},
    **{"legend.frameon": False, "legend.fontsize": 8.5, "lines.linewidth": 1.6},
}


@functools.cache
def figure_class() -> Any:
    """Return a class of matplotlib's figures that notebooks show, whether or not pyplot is imported."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        advice = "pip install matplotlib, or, in a clone, pip install './library[plot]'"
        raise ImportError(f"`plot` needs matplotlib, which is not installed: {advice}") from error

    class Picture(Figure):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            FigureCanvasAgg(self)

        def _repr_png_(self) -> bytes:
            with io.BytesIO() as file:
                self.savefig(file, format="png")
                return file.getvalue()

    return Picture


@contextlib.contextmanager
def picture(
    rows: int = 1, columns: int = 1, *, width: float = 7.2, height: float = 3.0, **options: Any
) -> Iterator[Any]:
    """Yield a figure and its axes, (rows, columns), in the style of the package.

    Its method `savefig` writes it, and a notebook shows it; matplotlib.pyplot need not be imported.
    """
    make = figure_class()
    import matplotlib

    with matplotlib.rc_context(STYLE):
        drawn = make(figsize=(width, height), layout="constrained")
        yield drawn, drawn.subplots(rows, columns, squeeze=False, **options)
        drawn.draw_without_rendering()  # the layout is that of this style, whatever the caller's is
        drawn.set_layout_engine("none")
