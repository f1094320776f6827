"""Valid files, mangled: bytes, values of JSON, arrays, tables, and cells of SQLite databases."""

from __future__ import annotations

import contextlib
import copy
import json
import random
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas

from omg_cmdp.persistence import AGENT_FILE, read_arrays, write_arrays

DEEP = "[" * 100_000
VALUES = (
    *(None, True, False, 0, -1, 1, 2**31, 2**53 + 1, 2**63, -(10**30), 10**400, 0.5, -0.0, 1e308, 5e-324),
    *("", "x", "p1", "0", "-1", "NaN", "1e999", "../x", "\x00", "\x1b[2J", "é\U0001f600", "\ud800", "x" * 10_000),
    *([], {}, [None], [1, "x"], [[]], [[[1.0]]], {"a": 1}, {"": []}, {"person": "p1"}),
)
"""What may stand in the place of any value."""
CELLS = (None, 0, -1, 2**62, 0.5, "", "x", "{}", "[]", "null", '{"a":', DEEP, b"", b"\x00\xff", "\ud7ff", "é", 10**18)
"""What may stand in a cell of SQLite."""
NUMBERS = (0, -1, 0.5, 1, 10**6, 2**40, 2**62, -1e300, 1e300, np.inf, np.nan, 5e-324)
"""What may stand in an array."""


def mangled_bytes(content: bytes, other: bytes, draw: random.Random) -> bytes:
    """Return the content with bits flipped, cut, doubled, swapped, overwritten or spliced with another one."""
    whole = bytearray(content)
    for _ in range(draw.choice((1, 1, 2, 8))):
        place, end = sorted(draw.randrange(len(whole) + 1) for _ in range(2))
        match draw.randrange(8):
            case 0 if whole:
                whole[min(place, len(whole) - 1)] ^= 1 << draw.randrange(8)
            case 1:
                del whole[place:]
            case 2:
                del whole[place:end]
            case 3:
                whole[place:place] = whole[place:end]
            case 4:
                whole[place:end] = draw.choice((b"", b"\x00" * (end - place), b"\xff" * 8, b"9" * 400, DEEP.encode()))
            case 5:
                whole[place:] = other[draw.randrange(len(other) + 1) :]
            case 6:
                whole[place : place + 4] = draw.choice((0, 1, 2**31, 2**32 - 1)).to_bytes(4, "little")
            case 7 if whole:
                whole[min(place, len(whole) - 1)] = draw.randrange(256)
    return bytes(whole)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every table and list within a value of JSON, with each of its keys."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from places(value[key])


def mangled_value(value: Any, draw: random.Random) -> Any:
    """Return a value of JSON in which one to three parts are others, missing, doubled or renamed."""
    value = copy.deepcopy(value)
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        found = list(places(value))
        if not found or draw.random() < 0.02:
            return draw.choice(VALUES)
        holder, key = draw.choice(found)
        match draw.randrange(7):
            case 0:
                del holder[key]
            case 1:
                other, place = draw.choice(found)
                with contextlib.suppress(LookupError):
                    holder[key] = copy.deepcopy(other[place])
            case 2 if isinstance(holder, dict):
                holder[draw.choice(("x", "", "person", "format", str(key) + " "))] = holder.pop(key)
            case 2 | 3 if isinstance(holder, list):
                holder.insert(key, copy.deepcopy(holder[key]))
            case 4 if isinstance(holder[key], (int, float)):
                holder[key] += draw.choice((-1, 1, 0.5, 1e-9))
            case _:
                holder[key] = draw.choice(VALUES)
    return value


def mangled_json(text: str, draw: random.Random) -> str:
    """Return the text of a value of JSON that was mangled; rarely one that is nested too deep."""
    if draw.random() < 0.03:
        return draw.choice((DEEP, '{"a":' * 50_000, "1" * 5000, "NaN", "Infinity", ""))
    return json.dumps(mangled_value(json.loads(text), draw))


def mangled_rows(file: Path, draw: random.Random) -> None:
    """Change a cell, delete or double a row, or change the schema of a SQLite file."""
    with contextlib.closing(sqlite3.connect(file)) as opened, contextlib.suppress(sqlite3.Error), opened:
        tables = [name for (name,) in opened.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        table = draw.choice([name for name in tables if not name.startswith("sqlite_")])
        columns = [row[1] for row in opened.execute(f'PRAGMA table_info("{table}")')]
        rows = [row for (row,) in opened.execute(f'SELECT rowid FROM "{table}"')]
        column, row = draw.choice(columns), draw.choice(rows or [0])
        match draw.randrange(8):
            case 0:
                opened.execute(f'DELETE FROM "{table}" WHERE rowid = ?', (row,))
            case 1:
                opened.execute(f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO other')
            case 2:
                opened.execute(f'DROP TABLE "{table}"')
            case 3 if len(rows) > 1:
                other = draw.choice(rows)
                query = f'UPDATE "{table}" SET "{column}" = (SELECT "{column}" FROM "{table}" WHERE rowid = ?) '
                opened.execute(f"{query} WHERE rowid = ?", (other, row))
            case _:
                opened.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = ?', (draw.choice(CELLS), row))


def forged_arrays(path: Path, draw: random.Random, file: Mapping[str, Any] = AGENT_FILE) -> None:
    """Change an array of a saved agent, or its recipe, and the digest with it; or of another file of arrays."""
    arrays = read_arrays(path, kind=file["kind"], version=file["version"])
    name = draw.choice(sorted(arrays))
    array = arrays[name]
    match draw.randrange(8):
        case 0:
            del arrays[name]
        case 1:
            arrays[name] = arrays[draw.choice(sorted(arrays))]
        case 2:
            arrays[name] = array.reshape(-1)[: draw.randrange(array.size + 1)]
        case 3:
            arrays[name] = np.array(draw.choice((0, -1, 2**62, 1e300, np.nan, "x", "", True, 1j)))
        case 4:
            arrays[name] = array.astype(draw.choice(("f4", "f8", "i8", "c16", "?", "U")))
        case 5 if "made with/recipe" in arrays:
            name = "made with/recipe"
            arrays[name] = np.array(mangled_json(str(arrays[name]), draw).replace("\x00", ""))
        case _ if array.size and array.dtype.kind in "ifU":
            texts, array = array.dtype.kind == "U", array.astype(object)
            place = draw.randrange(array.size)
            array.flat[place] = mangled_json(array.flat[place], draw) if texts else draw.choice(NUMBERS)
            arrays[name] = array.astype(str) if texts else array.astype(float)
    write_arrays(path, arrays, kind=file["kind"], version=file["version"])


def mangled_lines(path: Path, draw: random.Random) -> None:
    """Mangle one line of JSON."""
    lines = path.read_text().splitlines()
    place = draw.randrange(len(lines))
    lines[place] = mangled_json(lines[place], draw)
    path.write_text("\n".join(lines) + "\n")


def mangled_frame(path: Path, draw: random.Random) -> None:
    """Change cells, columns or kinds of a table."""
    parquet = path.suffix == ".parquet"
    frame = pandas.read_parquet(path) if parquet else pandas.read_csv(path, dtype=str)
    column = draw.choice(list(frame))
    match draw.randrange(6):
        case 0:
            frame = frame.drop(columns=column)
        case 1:
            frame = frame.rename(columns={column: draw.choice([*frame, "x", "", "person"])})
        case 2:
            frame = pandas.concat([frame, frame.sample(1, random_state=draw.randrange(99))])
        case 3:
            frame[column] = draw.choice(("x", 1, 1.5, True, None, b"\xff", 2**60))
        case 4:
            frame[column] = pandas.to_datetime(frame[column], errors="coerce", utc=True, format="%Y")
        case _:
            frame[column] = frame[column].astype(object)
            frame.iloc[draw.randrange(len(frame)), list(frame).index(column)] = draw.choice(
                ("x", "", "-1", "1e999", "nan", "[1", '{"a":', "99999999999999999999", "1.5", "0x10")
            )
    frame.to_parquet(path) if parquet else frame.to_csv(path, index=False)
