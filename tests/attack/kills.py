"""`kill -9` of small studies at random moments: each, finished afterwards, equals an undisturbed one to the bit.

Some are never killed, and must be equal as well. Every second one is of worlds, agents and oracles of the user: by
`module:Class`, with and without tables, of Gymnasium by its id, and of ACTG 175. `--effort 4` plays forty studies.
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

from lab.tests.studies import own
from lab.tests.studies.examples import SMALL, content, run_study
from lab.tests.studies.processes import killed_again_and_again
from omg_lab.studies.catalogue import WORLDS
from tests.attack.outcome import Outcome

STUDIES = 10
"""At effort 1."""
OWN = (own.LADDER, own.GARDEN, own.LAKE, *(["[worlds.actg175]\n"] if "actg175" in WORLDS else []))
HEAD = own.HEAD.replace("episodes = 30", "episodes = 120").replace("checkpoint = 10", "checkpoint = 20")
TEXT = SMALL.replace("episodes = 60", "episodes = 200").replace("seeds = 2", "seeds = 1")


def attack(effort: float, seed: int) -> Outcome:
    """Play studies, kill each of them up to three times, the first one once, and compare."""
    draw, outcome = random.Random(seed), Outcome()
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = Path(folder) / "small study.toml", own.write(Path(folder) / "own", *OWN, head=HEAD)
        ours.write_text(TEXT)
        run_study(TEXT, Path(folder) / "whole")
        whole = {ours: content(Path(folder) / "whole")}
        for number in range(max(1, round(STUDIES * effort))):
            kills, workers = (draw.randrange(4), draw.choice([1, 2])) if number else (1, 1)
            file, out = theirs if number % 2 else ours, Path(folder) / str(number)
            if file not in whole:
                own.run(file, Path(folder) / "whole of theirs")
                whole[file] = content(Path(folder) / "whole of theirs")
            outcome.tried += 1
            interrupted, error = killed_again_and_again(kills, file, out, workers=workers, draw=draw)
            what = f"seed {seed}, study {number}, killed {interrupted} times, {workers} workers"
            if error:
                outcome.broken.append(f"{what}: {error}")
            elif content(out) != whole[file]:
                outcome.broken.append(f"{what}: not equal to the study that was left alone")
            elif left := [path.name for path in out.rglob("*.tmp-*")]:
                outcome.broken.append(f"{what}: left {left}")
    return outcome
