"""Study files that name the user's things, mutated: an error in a line, or a plan; and nothing else is imported.

1 000 mutations at effort 1. Beside the study lie modules that it does not name, and that must not be imported.
"""

from __future__ import annotations

import contextlib
import random
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from typer.testing import CliRunner

from lab.tests.studies import own
from omg_lab.cli import app
from tests.attack.outcome import Outcome

MUTATIONS = 1000
"""At effort 1."""
WORDS = (
    *(
        "ladder",
        "sizes",
        "garden",
        "weeks",
        "people",
        "own",
        "omg",
        "grip",
        "kind",
        "worlds",
        "agents",
        "ladder:Ladder",
    ),
    *(
        "garden:Beans",
        "ladder:Timid",
        "ladder:Halves",
        "ladder:np",
        "ladder:Nobody",
        "nobody:Ladder",
        "ladder.x:Ladder",
    ),
    *("weeks.csv", "ladder.py", "../weeks.csv", "/dev/null", "", ".", ":", "ladder:", ":Ladder", "gymnasium", "counts"),
    *("0", "-1", "1e999", "nan", "true", "[]", "{}", "[1, [2]]", '{ kind = "ladder:Ladder" }', "99999999999999999999"),
)
NOT_NAMED = ("weeks", "people", "own", "omg", "timid", "lake", "grip", "csv", "oracles", "bed", "name")
"""Modules with names that the file has in other places."""


def attack(effort: float, seed: int) -> Outcome:
    """Mutate study files, and load each of them as `omg-lab run` does."""
    draw, outcome = random.Random(seed), Outcome()
    with tempfile.TemporaryDirectory() as folder, mock.patch("omg_lab.cli.estimate", return_value=0.0):
        path = own.write(Path(folder).resolve())
        whole = path.read_text()
        for name in NOT_NAMED:
            (path.parent / f"{name}.py").write_text("raise SystemExit('imported')\n")
        files = {each.name: each.read_bytes() for each in path.parent.iterdir() if each != path}
        with _watched() as usual:
            valid = _called(path)
        if valid[0]:
            return Outcome(1, [f"the file itself is refused: {valid[1]}"])
        for number in range(max(8, round(MUTATIONS * effort))):
            outcome.tried += 1
            text = mutated(_small(whole, draw), draw)
            path.write_text(text, encoding="utf-8")
            with _watched() as asked:
                code, said = _called(path)
            if fault := _fault(code, said, text, asked - usual):
                outcome.broken.append(f"seed {seed}, mutation {number}: {fault}\n{text}")
            left = {each.name: each.read_bytes() for each in path.parent.iterdir() if each != path}
            if left != files:
                return Outcome(outcome.tried, [*outcome.broken, f"seed {seed}, mutation {number}: files were changed"])
    return outcome


def _small(whole: str, draw: random.Random) -> str:
    """Return the study with one of its worlds, which is as much as one mutation needs."""
    worlds = [own.LADDER, own.GARDEN, own.LAKE]
    for world in draw.sample(worlds, 2):
        whole = whole.replace(world, "\n")
    return whole


def mutated(text: str, draw: random.Random, others: Sequence[str] = WORDS) -> str:
    """Return the text with one to three changes: of a character, a word, a line."""
    for _ in range(draw.randint(1, 3)):
        words = list(re.finditer(r'"[^"]*"|[\w.]+', text))
        lines = text.splitlines(keepends=True)
        match draw.randrange(8):
            case 0:  # a character
                place = draw.randrange(len(text))
                text = (
                    text[:place]
                    + draw.choice(["", '"', "=", "[", "]", "\x00", "é", "\n", ":", text[place] * 2])
                    + text[place + 1 :]
                )
            case 1 | 2:  # a word becomes another of the file, or one of the list
                found = draw.choice(words)
                new = draw.choice([draw.choice(words)[0], draw.choice(others), f'"{draw.choice(others)}"'])
                text = text[: found.start()] + new + text[found.end() :]
            case 3:  # a line is left out
                lines.pop(draw.randrange(len(lines)))
                text = "".join(lines)
            case 4:  # a line comes twice, or elsewhere
                lines.insert(draw.randrange(len(lines)), draw.choice(lines))
                text = "".join(lines)
            case 6 | 7:  # a kind or a file is another
                found = draw.choice(list(re.finditer(r'(?<== )"[^"]*"', text)) or words)
                text = text[: found.start()] + f'"{draw.choice(others)}"' + text[found.end() :]
            case 5:  # two words change places
                first, second = sorted(draw.sample(words, 2), key=lambda each: each.start())
                middle = text[first.end() : second.start()]
                text = text[: first.start()] + second[0] + middle + first[0] + text[second.end() :]
        if not re.search(r"\w", text):
            break
    return text


def _fault(code: int, said: str, text: str, asked: set[str]) -> str | None:
    """Return what is wrong with the answer of the command."""
    if "Traceback" in said or code not in (0, 2):
        return f"ended with {code}: {said[-300:]}"
    if code == 2 and (len(said.strip().splitlines()) > 3 or "own.toml" not in said):
        return f"does not say where: {said[-300:]}"
    named = {each.partition(":")[0] for each in re.findall(r"[\w.]+(?=:\w)", text)}
    tops = {name.partition(".")[0] for name in named}
    # What a module of the user imports is named by it: `sizes`.
    foreign = {name for name in asked if name.partition(".")[0] not in tops | {"sizes"}}
    return f"imported {sorted(foreign)}" if foreign else None


def _called(path: Path) -> tuple[int, str]:
    """Return the exit code of the command, and what it said; an error that it did not expect is a traceback."""
    result = CliRunner().invoke(app, ["run", str(path), "--dry-run"])
    expected = result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.output if expected else f"{result.output} Traceback: {result.exception!r}"


@contextlib.contextmanager
def _watched() -> Iterator[set[str]]:
    """Yield the set of all modules that are looked for meanwhile."""
    asked: set[str] = set()

    class Watch:
        @staticmethod
        def find_spec(name: str, path: Any = None, target: Any = None) -> None:
            asked.add(name)

    sys.meta_path.insert(0, Watch)  # type: ignore[arg-type]
    try:
        yield asked
    finally:
        sys.meta_path.remove(Watch)  # type: ignore[arg-type]
