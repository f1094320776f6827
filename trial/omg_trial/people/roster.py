"""People in a file: a CSV table with a row for each, to be enrolled together."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from omg_trial.contract import Contract, Refusal
from omg_trial.contract.calls import Enrol
from omg_trial.trial_file.trial import Trial


def read_roster(trial: Trial, path: Path) -> list[dict[str, Any]]:
    r"""Return the enrolments of a file, all of them checked; the error names the first line that is wrong.

    Columns are `person` and, if wanted, `arm`, `zone`, `consent_from`, `consent_to` and `end`. An empty cell is not
    named in the call: it changes nothing of somebody who is there.

    >>> import tempfile
    >>> from omg_trial.trial_file import EXAMPLE
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "people.csv")
    ...     _ = file.write_text("person,zone,end\np1,Asia/Tokyo,\n")
    ...     read_roster(Trial.parse(EXAMPLE), file)
    [{'person': 'p1', 'zone': 'Asia/Tokyo'}]
    """
    contract, known, found = Contract(trial), list(Enrol.model_fields), dict[str, dict[str, Any]]()
    with path.open(encoding="utf-8-sig", newline="") as file:
        table = csv.DictReader(file)
        for number, row in enumerate(_rows(table, path), start=2):
            names = list(table.fieldnames or ())
            if strange := [name for name in names if name not in known or names.count(name) > 1]:
                told = "separate columns by commas" if ";" in strange[0] else f"there are {', '.join(known)}"
                raise ValueError(f"{path}: the column {strange[0]!r} is unknown, or there twice; {told}")
            fields = {name: value for name, value in row.items() if value}
            try:
                contract.parse("enrol", fields)
            except Refusal as refusal:
                raise ValueError(f"{path}, line {number}: {refusal.message}") from None
            if fields["person"] in found:
                raise ValueError(f"{path}, line {number}: the person is in another line too")
            found[fields["person"]] = fields
    return list(found.values())


def _rows(table: csv.DictReader[str], path: Path) -> Iterator[dict[str, str]]:
    try:
        for row in table:
            if table.restkey in row:
                raise ValueError(f"{path}, line {table.line_num}: there are more cells than columns")
            yield row
    except csv.Error as error:
        raise ValueError(f"{path}, line {table.line_num}: {error}") from None
