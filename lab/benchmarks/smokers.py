"""The numbers of docs/tutorials/smokers.md: its own code, with 16 seeds and 1 000 episodes.

    python -m lab.benchmarks.smokers [EPISODES SEEDS]

Prints the table and the report's headline; needs the package `causaldata`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "tutorials" / "smokers.md"
SMALL = "EPISODES, SEEDS = 40, 2\n"

SHOW = """
from omg_lab.reports.scenarios import scenarios
from omg_lab.reports.sentences import headline

found = comparison.table()
print("| agent | regret | 95 % interval | share of the optimum | milliseconds an episode |")
print("|---|---|---|---|---|")
for name, row in found.iterrows():
    numbers = f"{row['regret']:.0f} | {row['low']:.0f} to {row['high']:.0f} | {row['share_of_optimum']:.1%}"
    print(f"| {name} | {numbers} | {row['milliseconds_per_episode']:.1f} |")
[scenario] = scenarios(comparison.results)
print(headline(scenario))
"""


def main() -> None:
    """Run the page's code with more episodes and seeds, and print the table."""
    episodes, seeds = sys.argv[1:3] if len(sys.argv) > 2 else ("1000", "16")
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL))
    if SMALL not in code:
        raise ValueError(f"{PAGE} must have the line {SMALL!r}")
    larger = code.replace(SMALL, f"EPISODES, SEEDS = {int(episodes)}, {int(seeds)}\n")
    subprocess.run([sys.executable, "-c", larger + SHOW], check=True)


if __name__ == "__main__":
    main()
