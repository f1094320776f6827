"""Liars before an audit: the catalogue of `tests/theory/liars.py` in random worlds, and claims that make no sense."""

from __future__ import annotations

import math
import traceback

import numpy as np

from lab.tests.audit.liars import LIES
from lab.tests.audit.lying import Lie, audited, complaint
from omg_cmdp.planning.decision import Mixture
from tests.attack.outcome import Outcome

WORLDS, MALFORMED = 25, 600
"""How many at effort 1."""


def attack(effort: float, seed: int) -> Outcome:
    """Let every liar loose on random worlds, and an honest agent too; then make claims that make no sense."""
    outcome = Outcome()
    for world in range(max(1, round(WORLDS * effort))):
        for which in (None, *LIES.values()):
            outcome.tried += 1
            problem = complaint(which, 1000 * seed + world)
            if problem:
                outcome.broken.append(problem)
    for number in range(round(MALFORMED * effort)):
        outcome.tried += 1
        problem = _nonsense(1000 * seed + number)
        if problem:
            outcome.broken.append(problem)
    return outcome


def _nonsense(seed: int) -> str:
    """Audit one claim that makes no sense: there must be rows, and no exception."""
    rng, said = np.random.default_rng(seed), []

    def senseless(agent, context, decision):
        said[:] = rng.choice(np.array(list(_claims(rng, decision).items()), dtype=object))
        return decision._replace(**{said[0]: said[1]})

    try:
        rows = audited(Lie("nonsense", senseless, episodes=1), seed).rows()
        assert rows
        assert [row.record() for row in rows]
    except Exception:
        return f"seed {seed}, {said[0]} = {said[1]!r:.200}: {traceback.format_exc(limit=-1)}"
    return ""


def _claims(rng, decision):
    """Return one claim for each field of a decision."""
    steps, shape = decision.policy.shape[:2], decision.policy.shape
    tables = [np.zeros(shape), np.full(shape, math.nan), -np.ones(shape), np.ones((2, 2)), rng.random(shape), None]
    values = [None, np.zeros(steps), np.full(steps, math.nan), np.full(steps, 1e300), np.ones((1, 1))]
    model = decision.model.space.mdp(transitions=decision.model.transitions, rewards=decision.model.rewards)
    model.raw[int(rng.integers(2))][...] = rng.choice([math.nan, -1.0, 0.0, 7.0])
    mixture = Mixture(np.stack([decision.policy] * 2), rng.choice([0.0, 0.5, 1.0, -1.0, math.nan], 2))
    number = rng.choice([math.nan, math.inf, -math.inf, 0.0, -1.0, 1e300, 1e-300])
    table = tables[rng.integers(len(tables))]
    return {
        "gamma": number,
        "certificate": number,
        "weights": table,
        "occupancy": table,
        "values": values[rng.integers(len(values))],
        "model": model if rng.random() < 0.8 else None,
        "mixture": mixture,
    }
