"""What a benchmark reports: rows with a target, shown as a plain table, and everything that was measured, as JSON."""

from __future__ import annotations

import dataclasses
import datetime
import importlib.metadata
import json
import os
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import omg_cmdp

RESULTS = Path(__file__).parent / "results"
_PACKAGES = ("numpy", "scipy", "numba", "cvxpy", "clarabel", "piqp", "quantecon", "river", "scikit-learn")


@dataclasses.dataclass(frozen=True)
class Row:
    """One measured number; a target is a bound from below (`at_least`) or from above (`at_most`), or absent."""

    name: str
    value: float
    unit: str = ""
    _: dataclasses.KW_ONLY
    at_least: float | None = None
    at_most: float | None = None

    @property
    def target(self) -> str:
        """The target in words; empty if there is none."""
        if self.at_least is not None:
            return f"≥ {self.at_least:g}"
        return f"≤ {self.at_most:g}" if self.at_most is not None else ""

    @property
    def verdict(self) -> str:
        """`met` or `MISSED`; empty without a target. A NaN misses every target."""
        if not self.target:
            return ""
        met = self.value >= self.at_least if self.at_least is not None else self.value <= (self.at_most or 0.0)
        return "met" if met else "MISSED"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Report:
    """What one part of the benchmark found: rows for the table, and `details` for the JSON file alone."""

    title: str
    rows: list[Row]
    details: Any


def show(report: Report) -> None:
    """Print the rows of one part as an aligned table."""
    cells = [(row.name, f"{row.value:.4g} {row.unit}".strip(), row.target, row.verdict) for row in report.rows]
    widths = [max(len(cell[column]) for cell in cells) for column in range(3)]
    print(f"\n{report.title}")
    for name, value, target, verdict in cells:
        print(f"  {name:<{widths[0]}}  {value:>{widths[1]}}  {target:<{widths[2]}}  {verdict}".rstrip())


def write(reports: dict[str, Report], *, quick: bool) -> Path:
    """Write all numbers to `results/bench.json`, whole or not at all; return its path."""
    content = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "quick": quick,
        "machine": {"cpu": _cpu_model(), "cores": os.cpu_count(), "system": platform.platform()},
        "versions": {"python": platform.python_version(), "omg-cmdp": omg_cmdp.__version__, **_versions(_PACKAGES)},
        "parts": {
            name: {
                "rows": [dataclasses.asdict(row) | {"verdict": row.verdict} for row in report.rows],
                "details": report.details,
            }
            for name, report in reports.items()
        },
    }
    RESULTS.mkdir(exist_ok=True)
    path, unfinished = RESULTS / "bench.json", RESULTS / "bench.json.unfinished"
    unfinished.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    unfinished.replace(path)
    return path


def _versions(packages: Iterable[str]) -> dict[str, str]:
    installed = {each.name: each.version for each in importlib.metadata.distributions()}
    return {name: installed.get(name, "not installed") for name in packages}


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
