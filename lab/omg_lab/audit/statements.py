"""The form of a statement that an audit checks, `left <= right`; `statements.toml` beside this file has all of them."""

from __future__ import annotations

import dataclasses
import math
import tomllib
from pathlib import Path

KINDS = {
    "claim": "what a decision says of itself, computed again from the model and the policy",
    "plan": "what follows for a plan with a barrier",
    "oracle": "what an oracle promises, computed again from the episodes and the functions of its class",
    "assumption": "what the theorem assumes of the world; it may be false of one",
    "probable": "what holds with high probability: the concentration lemmas, and the theorem",
    "arithmetic": "true of any policy and any model: red only if the software computes wrongly",
}
"""The kinds of statements, in the order of a table."""


@dataclasses.dataclass(frozen=True)
class Statement:
    """A claim, where it is made, and what would make it red.

    Parameters
    ----------
    name : str
        Its name in tables.
    kind : str
        One of `KINDS`.
    claim : str
        The inequality, as a formula.
    where : str
        The place in the paper or in the guide where it is proven.
    fails_if : str
        The mistake that would make it red.
    failure : float
        The probability, in units of delta, with which it may fail in a run; 0 if it must always hold.
    most : float
        The left side never exceeds this times H, or T·H for the run; a right side beyond that says nothing.

    Examples
    --------
    >>> STATEMENTS["weights"].claim
    'γ > 0, w > 0 on Z'
    """

    name: str
    kind: str
    claim: str
    where: str
    fails_if: str
    failure: float = 0.0
    most: float = math.inf


STATEMENTS = {
    name: Statement(name, **fields)
    for name, fields in tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")).items()
}
"""Everything that an audit can check, by kind."""

Sides = tuple[str, float, float]
"""The name of a statement, its left side and its right side; NaN, or a right side of inf: nothing is shown."""
