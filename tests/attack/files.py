"""Files of a study that were changed, torn, swapped or deleted: an error that names the file, or the same results.

Of files that a stranger has forged, digests and all, results may be others, which an audit finds; but every error is a
line that names the file.
"""

from __future__ import annotations

import random
import re
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas
from typer.testing import CliRunner

from lab.tests.studies.examples import content, run_study
from omg_lab.cli import app
from omg_lab.studies.store import StudyStore
from tests.attack.outcome import Outcome

TRIES = 400
"""At effort 1."""
TEXT = """
episodes = 40
seeds = 2
checkpoint = 20
propensities = true
[worlds.decoy]
context_count = 2
reward_class_size = 4
[agents.greedy]
[agents.uniform]
"""
Change = Callable[[Path, random.Random], list[Path]]
"""Spoils a file; returns the files of which an error may speak."""


def torn(file: Path, draw: random.Random) -> list[Path]:
    """Keep only its beginning."""
    whole = file.read_bytes()
    file.write_bytes(whole[: draw.randrange(len(whole))])
    return [file]


def flipped(file: Path, draw: random.Random) -> list[Path]:
    """Flip up to three bits."""
    whole = bytearray(file.read_bytes())
    for _ in range(draw.randint(1, 3)):
        whole[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
    file.write_bytes(whole)
    return [file]


def deleted(file: Path, draw: random.Random) -> list[Path]:
    """Delete it."""
    file.unlink()
    return [file]


def swapped(file: Path, draw: random.Random) -> list[Path]:
    """Swap it with another file of its folder, or put one over the other."""
    other = draw.choice([each for each in sorted(file.parent.iterdir()) if each.is_file()])
    ours, theirs = file.read_bytes(), other.read_bytes()
    file.write_bytes(theirs)
    if draw.random() < 0.5:
        other.write_bytes(ours)
    return [file, other]


def edited(file: Path, draw: random.Random) -> list[Path]:
    """Change one digit of a number in JSON; of another file, a byte."""
    if file.suffix != ".json":
        return flipped(file, draw)
    text = file.read_text()
    place = draw.choice([found.start() for found in re.finditer(r"[0-9]", text)])
    file.write_text(text[:place] + str((int(text[place]) + draw.randint(1, 9)) % 10) + text[place + 1 :])
    return [file]


def inflated(file: Path, draw: random.Random) -> list[Path]:
    """Let a member of an npz declare a huge shape, or be a huge one in little space; tear other files."""
    if file.suffix != ".npz":
        return torn(file, draw)
    with zipfile.ZipFile(file) as opened:
        members = {name: opened.read(name) for name in opened.namelist()}
    name = draw.choice(sorted(members))
    if draw.random() < 0.5:
        shape = re.compile(rb"'shape': \([^)]*\), }\s{12}")
        members[name] = shape.sub(lambda found: b"'shape': (99999999999,), }".ljust(len(found[0])), members[name])
        form = zipfile.ZIP_STORED
    else:
        members["junk.npy"], form = bytes(2**22), zipfile.ZIP_DEFLATED
    with zipfile.ZipFile(file, "w", form) as opened:
        for each, member in members.items():
            opened.writestr(each, member)
    return [file]


VALUES = (
    None,
    True,
    0,
    -1,
    10**30,
    1.5,
    "",
    "x",
    "../x",
    "\x1b[2J",
    [],
    {},
    [1],
    {"a": 1},
    [[]],
    {"kind": "omg"},
    2**53,
)


def forged(file: Path, draw: random.Random) -> list[Path]:
    """Change a value of a JSON file, and its digest with it; tear other files."""
    if file.suffix != ".json":
        return torn(file, draw)
    store = StudyStore(file.parent if file.name == "study.json" else file.parents[1])
    found: Any = store.study() if file.name == "study.json" else store.result(file.stem)
    holder, key = draw.choice(list(_entries(found)))
    if draw.random() < 0.2:
        del holder[key]
    else:
        holder[key] = draw.choice(VALUES)
    store.write_study(found) if file.name == "study.json" else store.write_result(file.stem, found)
    # Where the plan is another, results do not fit it, nor does the study that is run there.
    return [file, store.directory, *sorted((store.directory / "runs").iterdir())]


def _entries(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every table and list within a value of JSON, with each of its keys."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _entries(value[key])


CHANGES: tuple[Change, ...] = (torn, flipped, deleted, swapped, edited, inflated, forged)


def attack(effort: float, seed: int) -> Outcome:
    """Spoil one file of a study, run it, export it, and see whether anything else than the same results is shown."""
    draw, outcome = random.Random(seed), Outcome()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "small study.toml").write_text(TEXT)
        run_study(TEXT, root / "whole")
        whole = content(root / "whole"), _exported(root / "whole")[1]
        for _ in range(max(6, round(TRIES * effort))):
            outcome.tried += 1
            study = root / "study"
            shutil.copytree(root / "whole", study)
            if draw.random() < 0.5:  # a run that will be continued from its checkpoint
                draw.choice(sorted((study / "runs").iterdir())).unlink()
            file = draw.choice([path for path in sorted(study.rglob("*.*")) if path.is_file() and path.stat().st_size])
            change = draw.choice(CHANGES)
            may_name = change(file, draw)
            if fault := _fault(root / "small study.toml", study, may_name, None if change is forged else whole):
                outcome.broken.append(f"seed {seed}, try {outcome.tried}, {change.__name__} {file.name}: {fault}")
            shutil.rmtree(study)
    return outcome


def _fault(plan: Path, study: Path, may_name: list[Path], whole: object) -> str | None:
    """Return what is wrong with the answer of the command; if `whole` is None, results may be any."""
    ran, said = _called("run", plan, "--out", study, "--workers", 1, "--quiet")
    code, exported = _exported(study)
    for result, output in ((ran, said), (code, exported)):
        if "Traceback" in output:
            return f"ended with {result}: {output[-300:]}"
        if result and not any(path.name in output for path in may_name):
            return f"does not name the file: {output[-300:]}"
    if whole is not None and ran == 0 and code == 0 and (content(study), exported) != whole:
        return "other results"
    return None


def _exported(study: Path) -> tuple[int, str]:
    """Return the exit code of an export, and what it wrote, without seconds, or said."""
    code, said = _called("export", study, "--out", study / "export")
    if code:
        return code, said
    table = pandas.read_csv(study / "export" / "log.csv")
    return 0, table[[name for name in table if "seconds" not in name]].to_csv()


def _called(*arguments: object) -> tuple[int, str]:
    """Return the exit code of the command, and what it said; an error that it did not expect is a traceback."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    expected = result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.output if expected else f"{result.output} Traceback: {result.exception!r}"
