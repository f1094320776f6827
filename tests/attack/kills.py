"""`kill -9` of small studies at random moments: each, finished afterwards, equals an undisturbed one to the bit.

Some are never killed, and must be equal as well. `--effort 4` plays forty studies.
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

from tests.attack.outcome import Outcome
from tests.studies.examples import SMALL, content, run_study
from tests.studies.processes import killed_again_and_again

STUDIES = 10
"""At effort 1."""
TEXT = SMALL.replace("episodes = 60", "episodes = 200").replace("seeds = 2", "seeds = 1")


def attack(effort: float, seed: int) -> Outcome:
    """Play studies, kill each of them up to three times, the first one once, and compare."""
    draw, outcome = random.Random(seed), Outcome()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "small study.toml").write_text(TEXT)
        run_study(TEXT, Path(folder) / "whole")
        whole = content(Path(folder) / "whole")
        for number in range(max(1, round(STUDIES * effort))):
            kills, workers = (draw.randrange(4), draw.choice([1, 2])) if number else (1, 1)
            outcome.tried += 1
            out = Path(folder) / str(number)
            interrupted, error = killed_again_and_again(
                kills, Path(folder) / "small study.toml", out, workers=workers, draw=draw
            )
            what = f"seed {seed}, study {number}, killed {interrupted} times, {workers} workers"
            if error:
                outcome.broken.append(f"{what}: {error}")
            elif content(out) != whole:
                outcome.broken.append(f"{what}: not equal to the study that was left alone")
            elif left := [path.name for path in out.rglob("*.tmp-*")]:
                outcome.broken.append(f"{what}: left {left}")
    return outcome
